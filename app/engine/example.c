/* example.c: texts to begin with; the page opens with the first. A model that we trained has texts of its training beside it;
 * for others there are sentences in a language that the tokenizer knows. */
#include "about.h"

#include <qkv/unstable/util.h>

#include "../../src/base/file.h"
#include "../../src/model/model_info.h"
#include "../../src/token/tokenizer.h"

#include <stdio.h>
#include <string.h>

enum { RECORD_BYTES = 64 << 10, PATH_BYTES = 4200, MAX_EXAMPLES = 8 };

/* The same sentence, and how many words it has. English comes first: it wins where nothing is clearly better. */
static const struct sentence {
    const char *language, *text;
    int words;
} sentences[] = {
    { "en", "I love you", 3 },
    { "ar", "أنا أحبك", 2 },
    { "cs", "Já tě miluji", 3 },
    { "de", "Ich liebe dich", 3 },
    { "es", "Te quiero mucho", 3 },
    { "fr", "Je vous aime", 3 },
    { "hi", "मैं तुमसे प्यार करता हूँ", 5 },
    { "it", "Ti amo tanto", 3 },
    { "ja", "私はあなたを愛しています", 5 },
    { "ko", "나는 너를 사랑해", 3 },
    { "nl", "Ik hou van jou", 4 },
    { "pl", "Bardzo cię kocham", 3 },
    { "pt", "Eu te amo", 3 },
    { "ru", "Я тебя люблю", 3 },
    { "sv", "Jag älskar dig", 3 },
    { "tr", "Seni seviyorum", 2 },
    { "uk", "Я тебе кохаю", 3 },
    { "vi", "Tôi yêu bạn", 3 },
    { "zh", "我爱你", 3 },
};

/* What may be chosen beside it, by models that do one of these jobs. */
static const struct more {
    const char *language;
    int jobs;
    const char *text;
} more[] = {
    { "en", QKV__TRANSLATES, "The cat is black." },
    { "en", QKV__TRANSLATES | QKV__ENCODES, "She reads a book every day." },
    { "en", QKV__TRANSLATES, "Where do you live?" },
    { "en", QKV__TRANSLATES, "He did not know what to say." },
    { "en", QKV__CLASSIFIES, "It was boring and far too long" },
    { "en", QKV__CLASSIFIES, "A good story, but the ending was weak" },
    { "en", QKV__GENERATES, "One day, a little girl" },
    { "en", QKV__GENERATES, "The dog was happy because" },
    { "en", QKV__ENCODES, "The bank of the river" },
    { "de", QKV__TRANSLATES | QKV__ENCODES, "Die Katze ist schwarz." },
    { "de", QKV__TRANSLATES, "Wo wohnst du?" },
    { "es", QKV__TRANSLATES | QKV__ENCODES, "El gato es negro." },
    { "fr", QKV__TRANSLATES | QKV__ENCODES, "Le chat est noir." },
    { "fr", QKV__TRANSLATES, "Où habitez-vous ?" },
    { "ja", QKV__TRANSLATES | QKV__ENCODES, "猫は黒いです。" },
    { "ru", QKV__TRANSLATES | QKV__ENCODES, "Кошка чёрная." },
    { "zh", QKV__TRANSLATES | QKV__ENCODES, "猫是黑色的。" },
    { "zh", QKV__TRANSLATES, "你住在哪里？" },
};

/* In English there is one for every job. */
static const char *english_for(qkv__job job)
{
    switch (job) {
    case QKV__TRANSLATES: return "I love you";
    case QKV__CLASSIFIES: return "The film was wonderful";
    case QKV__GENERATES: return "Once upon a time";
    default: return "The cat sat on the mat";
    }
}

/* How many tokens a text has; 0: the tokenizer does not know all of it. */
static qkv_status count_known_tokens(const qkv_tokenizer *t, const char *text, qkv_encoding **ids, int64_t *n)
{
    qkv_status status = qkv_tokenizer_encode(t, qkv_cstr(text), NULL, ids);
    *n = status ? 0 : (*ids)->n;
    for (int64_t i = 0; i < *n; i++)
        if ((*ids)->ids[i] == t->unknown) *n = 0;
    return status == QKV_MEMORY ? status : QKV_OK;
}

/* The sentence in this language; where that is not known, the one with the fewest tokens a word, since texts that a tokenizer
 * was not made for fall into small pieces. */
static qkv_status choose_sentence(const qkv_tokenizer *t, const char *language, qkv_encoding **ids,
                                  const struct sentence **best)
{
    double fewest = 0;
    *best = NULL;
    for (size_t i = 0; i < sizeof sentences / sizeof *sentences; i++) {
        const struct sentence *s = &sentences[i];
        int64_t n;
        qkv_status status = count_known_tokens(t, s->text, ids, &n);
        if (status) return status;
        bool is_wanted = n && !strcmp(s->language, language);
        double a_word = (double)n / s->words;
        if (!n || (*best && !is_wanted && a_word >= 0.75 * fewest)) continue;
        *best = s;
        fewest = a_word;
        if (is_wanted) break;
    }
    return QKV_OK;
}

/* Nothing of all that is known: the first tokens that are. */
static qkv_status put_first_tokens(qkv__json *j, const qkv_tokenizer *t)
{
    int32_t ids[4];
    int64_t n = 0;
    qkv_text *text = NULL;
    for (int32_t id = 0; id < qkv_tokenizer_vocab_size(t) && n < 4; id++)
        if (!qkv_tokenizer_is_special(t, id) && id != t->unknown) ids[n++] = id;
    qkv_status status = qkv_tokenizer_decode(t, ids, n, QKV_DECODE_SKIP_SPECIAL, &text);
    if (!status) qkv__put_string(j, text->data, text->length);
    qkv_free(text);
    return status;
}

/* *s: the sentence of its language, NULL: none is known. *text is it, or another of that language for this job; NULL with it. */
static qkv_status choose_example(const qkv_model *m, const char *language, const struct sentence **s, const char **text)
{
    const qkv_tokenizer *t = qkv_model_tokenizer(m, QKV_SIDE_SOURCE);
    const char *english = english_for(qkv__job_of(m));
    qkv_encoding *ids = NULL;
    int64_t n = 0;
    qkv_status status = choose_sentence(t, language, &ids, s);
    if (!status && (!*s || !strcmp((*s)->language, "en"))) status = count_known_tokens(t, english, &ids, &n);
    *text = n ? english : *s ? (*s)->text : NULL;
    qkv_free(ids);
    return status;
}

/* The texts that the training wrote, as strings with commas between; *n of them, 0 without such a file. */
static qkv_status put_recorded(qkv__json *j, const qkv_model *m, int most, int *n)
{
    const char *folder = qkv__model_folder(m);
    char path[PATH_BYTES];
    qkv__bytes file;
    qkv_text *line = NULL;
    *n = 0;
    if (!folder || snprintf(path, sizeof path, "%s/" QKV__EXAMPLES, folder) >= PATH_BYTES || !qkv__file_exists(path))
        return QKV_OK;
    qkv_status status = qkv__file_read(path, RECORD_BYTES, &file);
    if (status) return status;
    const char *at = (const char *)file.data, *end = at + file.size;
    for (const char *next; at < end && *n < most && !status; at = next + 1) {
        next = memchr(at, '\n', (size_t)(end - at));
        if (!next) next = end;
        if (next == at) continue;
        status = qkv_utf8_repair((qkv_str){ at, (size_t)(next - at) }, &line);
        if (status) break;
        if ((*n)++) qkv__put_raw(j, ",");
        qkv__put_string(j, line->data, line->length);
    }
    qkv_free(line);
    qkv__bytes_free(&file);
    return status;
}

qkv_status qkv__put_example(qkv__json *j, const qkv_model *m, const char *language)
{
    const struct sentence *s;
    const char *text;
    int n;
    qkv_status status = put_recorded(j, m, 1, &n);
    if (status || n) return status;
    status = choose_example(m, language, &s, &text);
    if (!status && text) qkv__put_name(j, text);
    else if (!status) status = put_first_tokens(j, qkv_model_tokenizer(m, QKV_SIDE_SOURCE));
    return status;
}

/* Texts that fall into letters are none that the model was made for: a token has two bytes at least, on average. */
qkv_status qkv__put_examples(qkv__json *j, const qkv_model *m, const char *language)
{
    const struct sentence *s;
    const char *first;
    qkv_encoding *ids = NULL;
    int n_recorded;
    qkv__put_raw(j, "[");
    qkv_status status = put_recorded(j, m, MAX_EXAMPLES, &n_recorded);
    if (status || n_recorded) return qkv__put_raw(j, "]"), status;
    status = choose_example(m, language, &s, &first);
    if (!status) status = qkv__put_example(j, m, language);
    for (size_t i = 0; first && i < sizeof more / sizeof *more && !status; i++) {
        int64_t n;
        if (!(more[i].jobs & (int)qkv__job_of(m)) || strcmp(more[i].language, s ? s->language : "en")) continue;
        status = count_known_tokens(qkv_model_tokenizer(m, QKV_SIDE_SOURCE), more[i].text, &ids, &n);
        if (status || !n || 2 * n > (int64_t)strlen(more[i].text)) continue;
        qkv__put_raw(j, ",");
        qkv__put_name(j, more[i].text);
    }
    qkv__put_raw(j, "]");
    qkv_free(ids);
    return status;
}
