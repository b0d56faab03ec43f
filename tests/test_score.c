/* test_score.c: BLEU and chrF: words, counts and scores by hand, by definition (golden/make_score.py) and by sacreBLEU. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "json_values.h"
#include "failing.h"
#include "scores.h"
#include "score/score_words.h"

#include <qkv/qkv.h>
#include "report/scores.h"

#include <math.h>

/* ---- words ---- */

enum {
    T13A = QKV_SCORE_TOKENIZER_13A,
    ZH = QKV_SCORE_TOKENIZER_ZH,
    CHAR = QKV_SCORE_TOKENIZER_CHAR,
    INTL = QKV_SCORE_TOKENIZER_INTL,
    NONE = QKV_SCORE_TOKENIZER_NONE
};

typedef struct words_row {
    int tokenizer, lowercase;
    const char *text, *words; /* with one space between */
} words_row;

/* clang-format off */
static const words_row by_hand[] = {
    { T13A, 0, "Hello, world!", "Hello , world !" },
    { T13A, 0, "It costs 1,000.5 or 1,000.", "It costs 1,000.5 or 1,000 ." },
    { T13A, 0, ".5 and 5.", ". 5 and 5 ." },
    { T13A, 0, "1990-1995 well-known a-1", "1990 - 1995 well-known a-1" },
    { T13A, 0, "don't 'quote'", "don't 'quote'" },
    { T13A, 0, "&quot;R&amp;D&quot; &lt;b&gt; &amp;lt; &apos;", "\" R & D \" < b > < & apos ;" },
    { T13A, 0, "one<skipped> two", "one two" },
    { T13A, 0, "a/b (c) [d] {e} f_g 5% $6", "a / b ( c ) [ d ] { e } f _ g 5 % $ 6" },
    { T13A, 0, "wait... what,,,", "wait . . . what , , ," },
    { T13A, 0, "line-\nbreak and\nnew", "linebreak and new" },
    { T13A, 0, "  spaces\t\xC2\xA0 \xE3\x80\x80 all  ", "spaces all" },
    { T13A, 0, "我爱你。", "我爱你。" },
    { T13A, 1, "ÄÖÜ ẞ", "äöü ß" },
    { T13A, 1, "ΟΔΟΣ. ΣΟΦΟΣ Σ ΑΣ'Α", "οδος . σοφος σ ασ'α" },
    { T13A, 1, "İstanbul", "i\xCC\x87stanbul" },
    { T13A, 0, "", "" },
    { ZH, 0, "小明去商店，买了3.5kg苹果。", "小 明 去 商 店 ， 买 了 3.5kg 苹 果 。" },
    { ZH, 0, " .5", ".5" },
    { ZH, 0, "“是”——吗…", "“ 是 ” — — 吗 …" },
    { ZH, 0, "&quot;a&quot;", "& quot ; a & quot ;" },
    { ZH, 0, "\xF0\xA0\x80\x80\xF0\xA0\x80\x81 한국어", "\xF0\xA0\x80\x80\xF0\xA0\x80\x81 한국어" },
    { ZH, 0, "２０２４年", "２ ０ ２ ４ 年" },
    { CHAR, 0, "ab 你,\xF0\x9F\x98\x80", "a b 你 , \xF0\x9F\x98\x80" },
    { INTL, 0, "Hello, “world”!", "Hello , “ world ” !" },
    { INTL, 0, "1,000.5 x,5 5,x 5.", "1,000.5 x , 5 5 , x 5." },
    { INTL, 0, "5€ + 3 = x²", "5 € + 3 = x²" },
    { INTL, 0, "don't &quot;", "don ' t & quot ;" },
    { INTL, 0, "我爱你。他，", "我爱你 。 他 ，" },
    { NONE, 0, "as, it\t is.", "as, it is." },
};
static const words_row golden_words[] = {
#define WORDS(...) { __VA_ARGS__ },
#define SCORE(...)
#include "golden/score.inc"
#undef WORDS
#undef SCORE
};
/* clang-format on */

static void number_words(qkv__score_words *w, const char *text, bool lowercase, int tokenizer, qkv__symbols *numbers)
{
    assert_int_equal(qkv__score_words_read(w, qkv_cstr(text), lowercase, (qkv__place){ "text", 1 }), QKV_OK);
    assert_int_equal(qkv__score_words_tokenize(w, (qkv_score_tokenizer)tokenizer), QKV_OK);
    assert_int_equal(qkv__score_words_number(w, numbers), QKV_OK);
}

/* Words with equal numbers are equal: the wanted ones get theirs from the same dictionary. */
static void check_words(const words_row *row)
{
    qkv__score_words w = { 0 };
    qkv__symbols found = { 0 }, wanted = { 0 };
    number_words(&w, row->text, row->lowercase, row->tokenizer, &found);
    number_words(&w, row->words, false, NONE, &wanted);
    size_t same = 0;
    while (same < found.n && same < wanted.n && found.at[same] == wanted.at[same]) same++;
    if (same < found.n || same < wanted.n)
        fail_msg("tokenizer %d: \"%s\": word %zu of %zu is not that of \"%s\"", row->tokenizer, row->text, same + 1, found.n,
                 row->words);
    qkv__symbols_free(&found);
    qkv__symbols_free(&wanted);
    qkv__score_words_free(&w);
}

static void words_by_hand(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof by_hand / sizeof *by_hand; i++) check_words(&by_hand[i]);
}

static void words_by_definition(void **state)
{
    (void)state;
    assert_int_equal(sizeof golden_words / sizeof *golden_words, 100);
    for (size_t i = 0; i < sizeof golden_words / sizeof *golden_words; i++) check_words(&golden_words[i]);
}

static void different_words_have_different_numbers(void **state)
{
    (void)state;
    qkv__score_words w = { 0 };
    qkv__symbols numbers = { 0 };
    number_words(&w, "a b ab ba a abc b", false, NONE, &numbers);
    assert_int_equal(numbers.n, 7);
    for (size_t i = 0; i < 7; i++)
        for (size_t j = 0; j < i; j++)
            assert_int_equal(numbers.at[i] == numbers.at[j], (i == 4 && j == 0) || (i == 6 && j == 1));
    qkv__symbols_free(&numbers);
    qkv__score_words_free(&w);
}

/* ---- scores ---- */

#define NEAR(found, wanted, tolerance)                                                                                \
    do {                                                                                                              \
        double found_ = (found), wanted_ = (wanted);                                                                  \
        if (!(fabs(found_ - wanted_) <= (tolerance))) fail_msg("%s is %.17g, wanted %.17g", #found, found_, wanted_); \
    } while (0)

static qkv_bleu_score bleu_of(const char *hypothesis, const char *reference, qkv_bleu_opts opts)
{
    qkv_bleu_score s;
    const char *const *references = &reference;
    assert_int_equal(bleu_of_strings(&hypothesis, &references, 1, 1, &opts, &s), QKV_OK);
    return s;
}

static qkv_chrf_score chrf_of(const char *hypothesis, const char *reference, qkv_chrf_opts opts)
{
    qkv_chrf_score s;
    const char *const *references = &reference;
    assert_int_equal(chrf_of_strings(&hypothesis, &references, 1, 1, &opts, &s), QKV_OK);
    return s;
}

static void identical_text_is_100(void **state)
{
    (void)state;
    const char *text = "The cat sat on the mat.";
    NEAR(bleu_of(text, text, (qkv_bleu_opts){ 0 }).score, 100, 1e-12);
    NEAR(chrf_of(text, text, (qkv_chrf_opts){ 0 }).score, 100, 1e-12);
    NEAR(chrf_of(text, text, (qkv_chrf_opts){ .word_order = 2 }).score, 100, 1e-12);
}

static void bleu_by_hand(void **state)
{
    (void)state;
    /* "the" matches as often as the reference has it; one pair matches; nothing longer does: a half, then a quarter. */
    qkv_bleu_score s = bleu_of("the the the the cat the the", "the cat is on the mat", (qkv_bleu_opts){ 0 });
    const int64_t matches[] = { 3, 1, 0, 0 }, totals[] = { 7, 6, 5, 4 };
    assert_memory_equal(s.matches, matches, sizeof matches);
    assert_memory_equal(s.totals, totals, sizeof totals);
    const double precisions[] = { 300.0 / 7, 100.0 / 6, 50.0 / 5, 25.0 / 4 };
    for (int n = 0; n < 4; n++) NEAR(s.precisions[n], precisions[n], 1e-12);
    NEAR(s.brevity_penalty, 1, 0);
    NEAR(s.score, pow(300.0 / 7 * 100 / 6 * 10 * 6.25, 0.25), 1e-12);

    s = bleu_of("the cat is on", "the cat is on the mat", (qkv_bleu_opts){ 0 });
    NEAR(s.brevity_penalty, exp(-0.5), 1e-15);
    NEAR(s.score, 100 * exp(-0.5), 1e-12);

    s = bleu_of("The Cat sat here now", "the cat SAT here now", (qkv_bleu_opts){ .lowercase = 1 });
    NEAR(s.score, 100, 1e-12);
}

static void little_or_nothing(void **state)
{
    (void)state;
    qkv_bleu_score s = bleu_of("", "a b c d", (qkv_bleu_opts){ 0 });
    assert_true(s.score == 0 && s.brevity_penalty == 0 && s.precisions[0] == 0);
    assert_int_equal(s.hyp_length, 0);
    assert_int_equal(s.ref_length, 4);
    s = bleu_of("", "", (qkv_bleu_opts){ 0 });
    assert_true(s.score == 0 && s.brevity_penalty == 1);
    s = bleu_of("w x y z", "a b c d", (qkv_bleu_opts){ 0 });
    assert_true(s.score == 0 && s.precisions[0] == 0);
    s = bleu_of("a b c", "a b c", (qkv_bleu_opts){ 0 }); /* no n-gram of 4 words: smoothing does not make one */
    assert_true(s.score == 0 && s.totals[3] == 0);
    NEAR(s.precisions[2], 100, 1e-12);

    assert_true(chrf_of("", "abc", (qkv_chrf_opts){ 0 }).score == 0);
    assert_true(chrf_of("abc", "", (qkv_chrf_opts){ 0 }).score == 0);
    assert_true(chrf_of("", "", (qkv_chrf_opts){ .word_order = 2 }).score == 0);
    assert_true(chrf_of("xyz", "abc", (qkv_chrf_opts){ .word_order = 2 }).score == 0);
}

static void an_empty_line_counts(void **state)
{
    (void)state;
    const char *hypotheses[] = { "a b c d e", "" }, *references[] = { "a b c d e", "f g h i j" }, *const *all = references;
    qkv_bleu_score s;
    assert_int_equal(bleu_of_strings(hypotheses, &all, 1, 2, NULL, &s), QKV_OK);
    assert_int_equal(s.ref_length, 10);
    NEAR(s.score, 100 * exp(-1), 1e-12);
}

static void chrf_by_hand(void **state)
{
    (void)state;
    /* "abc" and "a bd": 2 of 3 letters, 1 of 2 pairs, 0 of 1 triples; both sides have as many, so P = R. */
    qkv_chrf_score s = chrf_of("abc", "a bd", (qkv_chrf_opts){ 0 });
    NEAR(s.score, 100 * (2.0 / 3 + 1.0 / 2) / 3, 1e-12);
    /* The hypothesis has no triple: only the first two orders count. P = 1, R = (1/2 + 1/3) / 2. */
    s = chrf_of("ab", "abcd", (qkv_chrf_opts){ 0 });
    NEAR(s.precision, 100, 1e-12);
    NEAR(s.recall, 500.0 / 12, 1e-12);
    NEAR(s.score, 2500.0 / 53, 1e-12);
    /* Words: "(hi" ")" against "(" "hi": none shared. */
    s = chrf_of("(hi)", "(hi", (qkv_chrf_opts){ .word_order = 2 });
    const int64_t words[] = { 0, 0 }, of_hypothesis[] = { 2, 1 };
    assert_memory_equal(s.matches + 6, words, sizeof words);
    assert_memory_equal(s.hyp_totals + 6, of_hypothesis, sizeof of_hypothesis);
    NEAR(chrf_of("ABC", "abc", (qkv_chrf_opts){ .lowercase = 1 }).score, 100, 1e-12);
}

static void the_first_of_equal_references(void **state)
{
    (void)state;
    const char *hypotheses[] = { "xyz", "abc" }, *first[] = { "a", "abc" }, *second[] = { "abcdefgh", "abc" };
    const char *const *both[] = { first, second };
    qkv_chrf_score with_both, with_first;
    assert_int_equal(chrf_of_strings(hypotheses, both, 2, 2, NULL, &with_both), QKV_OK);
    assert_int_equal(chrf_of_strings(hypotheses, both, 1, 2, NULL, &with_first), QKV_OK);
    assert_int_equal(with_both.ref_totals[0], 4);
    NEAR(with_both.score, with_first.score, 0);
    assert_int_equal(strncmp(with_both.signature, "nrefs:2|", 8), 0);
}

static void signatures(void **state)
{
    (void)state;
    assert_string_equal(bleu_of("a", "a", (qkv_bleu_opts){ 0 }).signature,
                        "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:qkv-" QKV_VERSION_STRING);
    assert_string_equal(bleu_of("a", "a", (qkv_bleu_opts){ .tokenizer = QKV_SCORE_TOKENIZER_ZH, .lowercase = 1 }).signature,
                        "nrefs:1|case:lc|eff:no|tok:zh|smooth:exp|version:qkv-" QKV_VERSION_STRING);
    assert_string_equal(chrf_of("a", "a", (qkv_chrf_opts){ .word_order = 2 }).signature,
                        "nrefs:1|case:mixed|eff:yes|nc:6|nw:2|space:no|version:qkv-" QKV_VERSION_STRING);
}

/* ---- scores by definition ---- */

typedef struct score_row {
    int tokenizer, lowercase, n_references, n;
    const char *hypotheses[3], *references[3][3];
    int64_t matches[4], totals[4], hyp_length, ref_length;
    double precisions[4], brevity_penalty, bleu, chrf[2];
} score_row;

/* clang-format off */
static const score_row golden_scores[] = {
#define WORDS(...)
#define SCORE(...) { __VA_ARGS__ },
#include "golden/score.inc"
#undef WORDS
#undef SCORE
};
/* clang-format on */

static void check_scores(const score_row *row)
{
    const char *const *references[] = { row->references[0], row->references[1], row->references[2] };
    qkv_bleu_opts opts = { .tokenizer = (qkv_score_tokenizer)row->tokenizer, .lowercase = row->lowercase };
    qkv_bleu_score s;
    assert_int_equal(bleu_of_strings(row->hypotheses, references, row->n_references, row->n, &opts, &s), QKV_OK);
    assert_memory_equal(s.matches, row->matches, sizeof s.matches);
    assert_memory_equal(s.totals, row->totals, sizeof s.totals);
    assert_int_equal(s.hyp_length, row->hyp_length);
    assert_int_equal(s.ref_length, row->ref_length);
    for (int n = 0; n < 4; n++) NEAR(s.precisions[n], row->precisions[n], 1e-10);
    NEAR(s.brevity_penalty, row->brevity_penalty, 1e-12);
    NEAR(s.score, row->bleu, 1e-10);
    for (int i = 0; i < 2; i++) {
        qkv_chrf_opts chrf_opts = { .word_order = 2 * i, .lowercase = row->lowercase };
        qkv_chrf_score c;
        assert_int_equal(chrf_of_strings(row->hypotheses, references, row->n_references, row->n, &chrf_opts, &c), QKV_OK);
        NEAR(c.score, row->chrf[i], 1e-10);
    }
}

static void scores_by_definition(void **state)
{
    (void)state;
    assert_int_equal(sizeof golden_scores / sizeof *golden_scores, 40);
    for (size_t i = 0; i < sizeof golden_scores / sizeof *golden_scores; i++) check_scores(&golden_scores[i]);
}

/* ---- what cannot be scored ---- */

static void wrong_arguments(void **state)
{
    (void)state;
    const char *good[] = { "a", "b" }, *bad[] = { "a", "b\xC3(" };
    const char *const *refs = good, *const *bad_refs = bad, *const * many[QKV_SCORE_REFERENCES + 1] = { NULL };
    qkv_bleu_score s = { .score = 7 };
    qkv_chrf_score c = { .score = 7 };
    assert_int_equal(bleu_of_strings(good, &refs, 1, 0, NULL, &s), QKV_USAGE);
    assert_int_equal(bleu_of_strings(good, &refs, 0, 2, NULL, &s), QKV_USAGE);
    assert_int_equal(bleu_of_strings(NULL, &refs, 1, 2, NULL, &s), QKV_USAGE);
    assert_int_equal(bleu_of_strings(good, NULL, 1, 2, NULL, &s), QKV_USAGE);
    assert_int_equal(bleu_of_strings(good, many, 1, 2, NULL, &s), QKV_USAGE);
    assert_int_equal(bleu_of_strings(good, many, QKV_SCORE_REFERENCES + 1, 2, NULL, &s), QKV_LIMIT);
    assert_int_equal(bleu_of_strings(good, &refs, 1, 2, &(qkv_bleu_opts){ .tokenizer = (qkv_score_tokenizer)5 }, &s),
                     QKV_USAGE);
    assert_int_equal(chrf_of_strings(good, &refs, 1, 2, &(qkv_chrf_opts){ .word_order = 3 }, &c), QKV_USAGE);
    assert_int_equal(chrf_of_strings(good, &refs, 1, 2, &(qkv_chrf_opts){ .word_order = -1 }, &c), QKV_USAGE);
    assert_int_equal(bleu_of_strings(bad, &refs, 1, 2, NULL, &s), QKV_FORMAT);
    assert_string_equal(qkv_error(), "hypothesis 2: byte 2 is not UTF-8");
    assert_int_equal(chrf_of_strings(good, &bad_refs, 1, 2, NULL, &c), QKV_FORMAT);
    assert_string_equal(qkv_error(), "reference 2: byte 2 is not UTF-8");
    assert_true(s.score == 0 && c.score == 0);
}

static void a_text_may_be_long(void **state)
{
    (void)state;
    const size_t most = QKV_SCORE_CHARACTERS;
    char *text = malloc(most + 2);
    memset(text, 'a', most + 1);
    text[most + 1] = '\0';
    const char *hypothesis = text, *const *references = &hypothesis;
    qkv_bleu_score s;
    assert_int_equal(bleu_of_strings(&hypothesis, &references, 1, 1, NULL, &s), QKV_LIMIT);
    text[1 << 20] = '\0'; /* a megabyte of one letter */
    qkv_bleu_opts opts = { .tokenizer = QKV_SCORE_TOKENIZER_CHAR };
    assert_int_equal(bleu_of_strings(&hypothesis, &references, 1, 1, &opts, &s), QKV_OK);
    assert_int_equal(s.matches[3], (1 << 20) - 3);
    NEAR(s.score, 100, 1e-12);
    free(text);
}

static qkv_status score_everything(void)
{
    static const char *const hypotheses[] = { "The cat sat on 2-3 mats, or 1,000.", "我爱你。 Yes.", "" };
    static const char *const first[] = { "A cat sits on 2-3 mats: 1,000!", "我也爱你。", "nothing" };
    static const char *const second[] = { "x", "我 爱 你", "something else" };
    static const char *const *const references[] = { first, second };
    qkv_status status = QKV_OK;
    for (int t = T13A; t <= NONE && !status; t++) {
        qkv_bleu_score s;
        status = bleu_of_strings(hypotheses, references, 2, 3,
                                 &(qkv_bleu_opts){ .tokenizer = (qkv_score_tokenizer)t, .lowercase = 1 }, &s);
    }
    qkv_chrf_score c;
    return status ? status
                  : chrf_of_strings(hypotheses, references, 2, 3, &(qkv_chrf_opts){ .word_order = 2, .lowercase = 1 }, &c);
}

static void memory_runs_out(void **state)
{
    (void)state;
    assert_true(each_allocation_fails(score_everything) > 40);
}

/* ---- sacreBLEU's own numbers ---- */

enum { MOST_LINES = 4096 };

static int64_t load_lines(const char *path, const char *lines[MOST_LINES])
{
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    int64_t n = 0;
    char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, file) >= 0 && n < MOST_LINES) {
        line[strcspn(line, "\n")] = '\0';
        lines[n++] = strdup(line);
    }
    free(line);
    fclose(file);
    return n;
}

static void free_lines(const char *lines[MOST_LINES], int64_t n)
{
    for (int64_t i = 0; i < n; i++) free((char *)lines[i]);
}

static void check_details(const qkv__json_value *wanted, const qkv_bleu_score *s)
{
    for (size_t n = 0; n < 4; n++) {
        NEAR(s->precisions[n], qkv__json_number(qkv__json_at(qkv__json_get(wanted, "precisions"), n)), 1e-4);
        assert_int_equal(s->matches[n], qkv__json_int(qkv__json_at(qkv__json_get(wanted, "counts"), n)));
        assert_int_equal(s->totals[n], qkv__json_int(qkv__json_at(qkv__json_get(wanted, "totals"), n)));
    }
    NEAR(s->brevity_penalty, qkv__json_number(qkv__json_get(wanted, "bp")), 1e-4);
    assert_int_equal(s->hyp_length, qkv__json_int(qkv__json_get(wanted, "sys_len")));
    assert_int_equal(s->ref_length, qkv__json_int(qkv__json_get(wanted, "ref_len")));
}

/* Every score the row has; gives how many those are. */
static int check_row(const qkv__json_value *row, const char *const *hypotheses, const char *const *references, int64_t n)
{
    static const struct {
        const char *key;
        qkv_bleu_opts opts;
    } bleus[] = { { "bleu_13a", { 0 } },
                  { "bleu_13a_lc", { .lowercase = 1 } },
                  { "bleu_zh", { .tokenizer = QKV_SCORE_TOKENIZER_ZH } },
                  { "bleu_char", { .tokenizer = QKV_SCORE_TOKENIZER_CHAR } },
                  { "bleu_intl", { .tokenizer = QKV_SCORE_TOKENIZER_INTL } },
                  { "bleu_none", { .tokenizer = QKV_SCORE_TOKENIZER_NONE } } };
    int checked = 0;
    for (size_t i = 0; i < sizeof bleus / sizeof *bleus; i++) {
        const qkv__json_value *wanted = qkv__json_get(row, bleus[i].key);
        qkv_bleu_score s;
        if (!wanted) continue;
        assert_int_equal(bleu_of_strings(hypotheses, &references, 1, n, &bleus[i].opts, &s), QKV_OK);
        NEAR(s.score, qkv__json_number(wanted), 1e-4);
        if (i == 0) check_details(qkv__json_get(row, "13a_detail"), &s);
        checked++;
    }
    for (int i = 0; i < 2; i++) {
        qkv_chrf_score s;
        assert_int_equal(chrf_of_strings(hypotheses, &references, 1, n, &(qkv_chrf_opts){ .word_order = 2 * i }, &s), QKV_OK);
        NEAR(s.score, qkv__json_number(qkv__json_get(row, i ? "chrf++" : "chrf")), 1e-4);
        checked++;
    }
    return checked;
}

static void scores_by_sacrebleu(void **state)
{
    (void)state;
    static const char *hypotheses[MOST_LINES], *references[MOST_LINES];
    const qkv__json_value *rows = json_read(SCORE_DATA "/scores.json");
    if (!rows) {
        print_message("skipped: there is no " SCORE_DATA "/scores.json\n");
        skip();
    }
    int checked = 0;
    for (size_t i = 0; i < qkv__json_size(rows); i++) {
        const qkv__json_value *row = qkv__json_at(rows, i);
        const char *set = qkv__json_text(qkv__json_get(row, "set"));
        const char *language = strchr(qkv__json_text(qkv__json_get(row, "lp")), '-') + 1;
        char path[512];
        snprintf(path, sizeof path, SCORE_DATA "/%s.%s.%s", set, qkv__json_text(qkv__json_get(row, "sys")), language);
        int64_t n = load_lines(path, hypotheses);
        snprintf(path, sizeof path, SCORE_DATA "/%s.%s", set, language);
        assert_int_equal(load_lines(path, references), n);
        checked += check_row(row, hypotheses, references, n);
        free_lines(hypotheses, n);
        free_lines(references, n);
    }
    assert_true(checked >= 7 * (int)qkv__json_size(rows) && qkv__json_size(rows));
    json_free(rows);
}

/* ---- classes ---- */

static void classes_by_hand(void **state)
{
    (void)state;
    const int64_t counts[] = { 5, 1, 0, 2, 3, 0, 1, 0, 0 }; /* nothing was said to be of the third class */
    qkv_class_scores *all = NULL;
    assert_int_equal(qkv_score_classes(counts, 3, &all), QKV_OK);
    const qkv_class_score *each = all->classes;
    assert_int_equal(all->n_classes, 3);
    assert_int_equal(all->correct, 8);
    assert_int_equal(all->n, 12);
    assert_true(all->accuracy == 8 / 12.0 && all->micro_f1 == all->accuracy);
    assert_true(each[0].precision == 5 / 8.0 && each[0].recall == 5 / 6.0 && each[0].f1 == 10 / 14.0 && each[0].support == 6);
    assert_true(each[1].precision == 3 / 4.0 && each[1].recall == 3 / 5.0 && each[1].f1 == 6 / 9.0 && each[1].support == 5);
    assert_true(each[2].precision == 0 && each[2].recall == 0 && each[2].f1 == 0 && each[2].support == 1);
    assert_true(fabs(all->macro_f1 - (10 / 14.0 + 6 / 9.0) / 3) < 1e-15);
    const int64_t none[4] = { 0 };
    assert_int_equal(qkv_score_classes(none, 2, &all), QKV_OK);
    assert_true(all->accuracy == 0 && all->macro_f1 == 0 && all->n == 0);
    qkv_free(all);
}

static void classes_that_cannot_be_scored(void **state)
{
    (void)state;
    const int64_t counts[] = { 1, -1, 0, 0 }, many[] = { INT64_MAX, 0, 0, 1 };
    qkv_class_scores *all = NULL;
    assert_int_equal(qkv_score_classes(NULL, 2, &all), QKV_USAGE);
    assert_int_equal(qkv_score_classes(many, 2, NULL), QKV_USAGE);
    assert_int_equal(qkv_score_classes(many, 0, &all), QKV_USAGE);
    assert_int_equal(qkv_score_classes(many, INT64_MAX, &all), QKV_USAGE);
    assert_int_equal(qkv_score_classes(counts, 2, &all), QKV_USAGE);
    assert_int_equal(qkv_score_classes(many, 2, &all), QKV_LIMIT);
    assert_true(!all || !all->classes);
    qkv_free(all);
}

/* ---- as text ---- */

static void scores_become_text(void **state)
{
    (void)state;
    const char *const labels[] = { "no", "a \"b\"" };
    const int64_t counts[] = { 3, 1, 0, 4 };
    qkv_buffer text = { 0 };
    assert_int_equal(qkv_classes_text(counts, 2, labels, 0, &text), QKV_OK);
    assert_memory_equal(text.data, "accuracy 0.8750 (7 of 8), macro F1 0.8730\n\n", 43);
    assert_non_null(strstr(text.data, "   no     1.0000  0.7500  0.8571       4\n"));
    assert_non_null(strstr(text.data, "\n   no      3      1\n"));
    assert_int_equal(qkv_classes_text(counts, 2, (const char *const[]){ "Rückgabe", "退货" }, 0, &text), QKV_OK);
    assert_non_null(strstr(text.data, "\n    退货     0.8000  1.0000  0.8889       4\n"));
    assert_non_null(
        strstr(text.data, "\n          Rückgabe      退货\nRückgabe         3         1\n    退货         0         4\n"));
    assert_int_equal(qkv_classes_text(counts, 2, labels, 1, &text), QKV_OK);
    assert_non_null(strstr(text.data, "\"a \\\"b\\\"\": {\"precision\": 0.800000, "));
    assert_int_equal(qkv_classes_csv(counts, 2, labels, &text), QKV_OK);
    assert_string_equal(text.data, "label,said,texts\n\"no\",\"no\",3\n\"no\",\"a \"\"b\"\"\",1\n"
                                   "\"a \"\"b\"\"\",\"no\",0\n\"a \"\"b\"\"\",\"a \"\"b\"\"\",4\n");
    assert_int_equal(qkv_classes_text(counts, 2, (const char *const[]){ "no", NULL }, 0, &text), QKV_USAGE);
    assert_int_equal(qkv_classes_csv(counts, 0, labels, &text), QKV_USAGE);
    const qkv_bleu_score bleu = { .score = 12.34, .precisions = { 1, 2, 3, 4 }, .hyp_length = 3, .ref_length = 4 };
    assert_int_equal(qkv_bleu_text(&bleu, 0, &text), QKV_OK);
    assert_memory_equal(text.data, "BLEU 12.3 1.0/2.0/3.0/4.0 (BP = 0.000 ratio = 0.750 hyp_len = 3 ref_len = 4)\n", 77);
    const qkv_chrf_score chrf = { .score = 50, .precision = 40, .recall = 60, .signature = "s" };
    assert_int_equal(qkv_chrf_text(&chrf, 2, 0, &text), QKV_OK);
    assert_string_equal(text.data, "chrF2++ 50.0 (precision = 40.0 recall = 60.0)\n     s\n");
    assert_int_equal(qkv_chrf_text(&chrf, 0, 1, &text), QKV_OK);
    assert_non_null(strstr(text.data, "\"ref_totals\": [0, 0, 0, 0, 0, 0]}"));
    assert_int_equal(qkv_chrf_text(&chrf, 3, 1, &text), QKV_USAGE);
    qkv_buffer_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_by_hand),
        cmocka_unit_test(words_by_definition),
        cmocka_unit_test(different_words_have_different_numbers),
        cmocka_unit_test(identical_text_is_100),
        cmocka_unit_test(bleu_by_hand),
        cmocka_unit_test(little_or_nothing),
        cmocka_unit_test(an_empty_line_counts),
        cmocka_unit_test(chrf_by_hand),
        cmocka_unit_test(the_first_of_equal_references),
        cmocka_unit_test(signatures),
        cmocka_unit_test(scores_by_definition),
        cmocka_unit_test(wrong_arguments),
        cmocka_unit_test(a_text_may_be_long),
        cmocka_unit_test(memory_runs_out),
        cmocka_unit_test(scores_by_sacrebleu),
        cmocka_unit_test(classes_by_hand),
        cmocka_unit_test(classes_that_cannot_be_scored),
        cmocka_unit_test(scores_become_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
