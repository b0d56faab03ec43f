/* test_languages.c: translators of several languages, texts of several sentences, and summaries. */
#include <qkv/qkv.h>
#include <qkv/unstable/util.h>
#include "serve/serve.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "json_values.h"
#include "folder.h"
#include "http_client.h"
#include "model/model.h"
#include "as_strings.h"

enum { VOCABULARY = 23, FIRST_CODE = 20 };

/* ---- models with a tokenizer: the golden ones know ids alone ---- */

static void put_special(qkv__json_writer *w, const char *spelling, int id)
{
    static const char *const flags[] = { "single_word", "lstrip", "rstrip", "normalized" };
    qkv__json_open_object(w, NULL);
    qkv__json_put_int(w, "id", id);
    qkv__json_put_text(w, "content", spelling);
    for (int i = 0; i < 4; i++) qkv__json_put_bool(w, flags[i], false);
    qkv__json_put_bool(w, "special", true);
    qkv__json_close(w);
}

#define ITEM(type, id) "{\"" type "\":{\"id\":\"" id "\",\"type_id\":0}}"

/* Token i is the word "ti", but for four, and for codes from FIRST_CODE on. `after`: the first code stands behind </s> around a
 * text; else the file says nothing of frames. */
static void write_tokenizer(const char *const codes[3], bool after)
{
    static const char *const names[] = { "<s>", "<pad>", "</s>", "<unk>" };
    qkv__json_writer w = { 0 };
    qkv__json_open_object(&w, NULL);
    for (int in_vocabulary = 0; in_vocabulary < 2; in_vocabulary++) {
        if (in_vocabulary) {
            qkv__json_open_object(&w, "model");
            qkv__json_put_text(&w, "type", "WordLevel");
            qkv__json_put_text(&w, "unk_token", "<unk>");
            qkv__json_open_object(&w, "vocab");
        } else qkv__json_open_array(&w, "added_tokens");
        for (int i = 0; i < VOCABULARY; i++) {
            char word[16];
            bool is_code = i >= FIRST_CODE && codes[i - FIRST_CODE], is_special = i < 4 || is_code;
            snprintf(word, sizeof word, "t%d", i);
            const char *spelling = i < 4 ? names[i] : is_code ? codes[i - FIRST_CODE] : word;
            if (in_vocabulary) qkv__json_put_int(&w, spelling, i);
            else if (is_special) put_special(&w, spelling, i);
        }
        qkv__json_close(&w);
    }
    qkv__json_close(&w);
    static const char pre[] = "{\"type\":\"WhitespaceSplit\"}";
    qkv__json_put_raw(&w, "pre_tokenizer", pre, strlen(pre));
    char frame[1024] = "null";
    if (after)
        snprintf(
            frame, sizeof frame,
            "{\"type\":\"TemplateProcessing\",\"single\":[" ITEM("Sequence", "A") "," ITEM("SpecialToken", "</s>") "," ITEM(
                "SpecialToken",
                "%s") "],\"pair\":[" ITEM("Sequence",
                                          "A") "," ITEM("Sequence",
                                                        "B") "],"
                                                             "\"special_tokens\":{\"</s>\":{\"id\":\"</"
                                                             "s>\",\"ids\":[2],\"tokens\":[\"</s>\"]},"
                                                             "\"%s\":{\"id\":\"%s\",\"ids\":[%d],\"tokens\":[\"%s\"]}}}",
            codes[0], codes[0], codes[0], FIRST_CODE, codes[0]);
    qkv__json_put_raw(&w, "post_processor", frame, strlen(frame));
    qkv__json_close(&w);
    assert_int_equal(qkv__json_save(&w, in_folder("tokenizer.json")), QKV_OK);
}

static void set_key(const char *key, const char *value)
{
    const qkv__json_value *config = json_read(in_folder("config.json"));
    json_edit(&config, key, value);
    assert_int_equal(json_write(config, in_folder("config.json")), 0);
    json_free(config);
}

static qkv_model *golden_with(const char *name, const char *const codes[3], bool after, int start)
{
    char command[1024];
    snprintf(command, sizeof command, "rm -rf %s && cp -r '" QKV_GOLDEN "/families/%s' %s && chmod -R u+w %s", folder, name,
             folder, folder);
    assert_int_equal(system(command), 0);
    write_tokenizer(codes, after);
    char number[16];
    snprintf(number, sizeof number, "%d", start);
    if (start) set_key("decoder_start_token_id", number);
    qkv_model *m = qkv_model_load(folder, NULL);
    if (!m) fail_msg("%s: %s", name, qkv_error());
    return m;
}

static const char *const of_mbart[] = { "en_XX", "de_DE", "zh_CN" }, *const of_nllb[] = { "eng_Latn", "deu_Latn", "zho_Hans" },
                         *const of_m2m[] = { "__en__", "__de__", "__zh__" }, *const of_none[] = { NULL, NULL, NULL };

/* ---- codes ---- */

/* The first of a translation of "t5 t6" by a search for its ids alone: what the library must give. */
static void same_as_search(const qkv_model *m, const int32_t *source, int64_t n, int32_t start, int32_t first,
                           const qkv_translation *got)
{
    qkv_search_result *found = NULL;
    const qkv_search_opts o = { .size = sizeof o,
                                .start = start,
                                .end = 2,
                                .pad = 1,
                                .beam_size = 4,
                                .length_penalty = 1,
                                .length_norm = 1,
                                .max_length = 23,
                                .no_repeat_ngram = 3,
                                .prefix = &first,
                                .n_prefix = first >= 0,
                                .n_forced = first >= 0 };
    assert_int_equal(qkv_beam_search(m, &(qkv_tokens){ .ids = source, .rows = 1, .length = n }, &o, &found), QKV_OK);
    assert_int_equal(found->best[0].n, got->n_ids);
    assert_memory_equal(found->best[0].ids, got->ids, sizeof(int32_t) * (size_t)got->n_ids);
    assert_true(found->best[0].log_p == got->log_p);
    if (first >= 0) assert_int_equal(got->ids[0], first);
    qkv_free(found);
}

static void codes_stand_where_they_belong(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        const char *const *codes;
        bool after; /* in the tokenizer's file */
        int start;
        const char *source, *target;
        int32_t ids[4];
        int32_t wanted_start, wanted_first;
    } rows[] = {
        { "mbart", of_mbart, true, FIRST_CODE, "de_DE", "zh_CN", { 5, 6, 2, 21 }, 22, -1 },   /* of 25 languages */
        { "mbart", of_mbart, true, FIRST_CODE, NULL, NULL, { 5, 6, 2, 20 }, FIRST_CODE, -1 }, /* as the files say */
        { "mbart", of_mbart, false, 0, "en_XX", "de_DE", { 20, 5, 6, 2 }, 2, 21 },            /* of 50 */
        { "m2m_100", of_nllb, true, 0, "zho_Hans", "eng_Latn", { 22, 5, 6, 2 }, 2, 20 },      /* whatever the file says */
        { "m2m_100", of_nllb, true, 0, NULL, "deu_Latn", { 20, 5, 6, 2 }, 2, 21 },
        { "m2m_100", of_m2m, false, 0, "en", "de", { 20, 5, 6, 2 }, 2, 21 },
        { "m2m_100", of_m2m, false, 0, "__zh__", "__en__", { 22, 5, 6, 2 }, 2, 20 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        qkv_model *m = golden_with(rows[i].model, rows[i].codes, rows[i].after, rows[i].start);
        qkv_translations *t = NULL;
        const qkv_translate_opts o = { .size = sizeof o, .source_lang = rows[i].source, .target_lang = rows[i].target };
        if (qkv_translate(m, as_strings((const char *[]){ "t5 t6" }, NULL, 1), 1, &o, &t))
            fail_msg("row %d: %s", (int)i, qkv_error());
        assert_int_equal(t->n_source[0], 4);
        assert_memory_equal(t->source_ids[0], rows[i].ids, sizeof rows[i].ids);
        same_as_search(m, rows[i].ids, 4, rows[i].wanted_start, rows[i].wanted_first, t->best);
        assert_null(strchr(t->best[0].text.data, '_')); /* a code is no text */
        qkv_free(t);
        qkv_model_free(m);
    }
}

static void languages_it_has_not(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        const char *const *codes;
        const char *source, *target, *words;
    } rows[] = {
        { "m2m_100", of_nllb, "xx", "deu_Latn",
          "source_lang: the model has no language \"xx\"; of its 3: eng_Latn, deu_Latn, zho_Hans" },
        { "m2m_100", of_nllb, "eng_Latn", "t5", "target_lang: the model has no language \"t5\"; of its 3: eng_Latn" },
        { "m2m_100", of_m2m, "en", NULL, "several languages: target_lang says which; of its 3: __en__, __de__" },
        { "bart", of_none, "en", NULL, "has no codes of languages: source_lang" },
        { "bart", of_none, NULL, "<pad>", "has no codes of languages: target_lang" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        qkv_model *m = golden_with(rows[i].model, rows[i].codes, false, 0);
        qkv_translations *t = NULL;
        const qkv_translate_opts o = { .size = sizeof o, .source_lang = rows[i].source, .target_lang = rows[i].target };
        assert_int_equal(qkv_translate(m, NULL, 0, &o, &t), QKV_USAGE);
        if (!strstr(qkv_error(), rows[i].words)) fail_msg("row %d: %s", (int)i, qkv_error());
        assert_int_equal(qkv_summarize(m, NULL, 0, &o, &t), QKV_USAGE);
        if (strstr(qkv_error(), "translate")) fail_msg("row %d: %s", (int)i, qkv_error()); /* it is no translation */
        qkv_free(t);
        qkv_model_free(m);
    }
}

/* The decoder of BART's classifier reads the text a place later; of a short one and a long one together each has its own last
 * token. */
static void bart_classifies(void **state)
{
    (void)state;
    qkv_model *m = golden_with("bart_classify", of_none, false, 0);
    const char *const texts[] = { "t5 t6", "t7 t8 t9 t10" };
    qkv_matrix *got = NULL;
    assert_int_equal(qkv_classify(m, as_strings(texts, NULL, 2), 2, NULL, &got), QKV_OK);
    assert_int_equal(got->width, 3);
    for (int i = 0; i < 2; i++) {
        const qkv__transformer *f = qkv__model_transformer(m);
        qkv_encoding *ids = NULL;
        assert_int_equal(qkv_model_tokenize(m, QKV_SIDE_SOURCE, qkv_cstr(texts[i]), NULL, &ids), QKV_OK);
        int32_t later[16] = { 2 };
        memcpy(later + 1, ids->ids, sizeof *later * (size_t)(ids->n - 1));
        qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .inference = 1 });
        qkv_tensor *memory = qkv__transformer_encode(f, t, &(qkv_tokens){ .ids = ids->ids, .rows = 1, .length = ids->n });
        qkv_tensor *last = qkv__transformer_decode(f, t, &(qkv_tokens){ .ids = later, .rows = 1, .length = ids->n }, memory,
                                                   NULL);
        assert_memory_equal(got->data + 3 * i, qkv_tensor_data(qkv_softmax(qkv__transformer_classify(f, last, NULL))),
                            3 * sizeof(float));
        qkv_tape_free(t);
        qkv_free(ids);
    }
    qkv_translations *t = NULL;
    assert_int_equal(qkv_translate(m, as_strings(texts, NULL, 2), 2, NULL, &t), QKV_UNSUPPORTED);
    assert_int_equal(qkv_model_get_info(m)->can, QKV_CAN_CLASSIFY);
    qkv_free(t);
    qkv_free(got);
    qkv_model_free(m);
}

/* BART begins with <s>, which costs nothing: the sum is that of the other tokens and the end. */
static void a_forced_token_is_certain(void **state)
{
    (void)state;
    qkv_model *m = golden_with("bart", of_none, false, 0);
    qkv_translations *t = NULL;
    assert_int_equal(
        qkv_translate(m, as_strings((const char *[]){ "t5 t6" }, NULL, 1), 1, &(qkv_translate_opts){ .beam_size = 1 }, &t),
        QKV_OK);
    const qkv_translation *x = t->best;
    assert_int_equal(x->ids[0], 0);
    int32_t target[64] = { 2 };
    memcpy(target + 1, x->ids, sizeof *target * (size_t)x->n_ids);
    target[x->n_ids + 1] = 2;
    const qkv__transformer *f = qkv__model_transformer(m);
    qkv_tape *tape = qkv_tape_new(&(qkv_tape_opts){ .inference = 1 });
    qkv_tensor *memory = qkv__transformer_encode(f, tape,
                                                 &(qkv_tokens){ .ids = t->source_ids[0], .rows = 1, .length = t->n_source[0] });
    qkv_tensor *p = qkv_log_softmax(qkv__transformer_logits(
        f, qkv__transformer_decode(f, tape, &(qkv_tokens){ .ids = target, .rows = 1, .length = x->n_ids + 1 }, memory, NULL)));
    double sum = 0;
    for (int64_t i = 1; i < x->n_ids + !x->truncated; i++) sum += (double)qkv_tensor_data(p)[i * VOCABULARY + target[i + 1]];
    assert_true(x->n_ids > 2 && fabs(sum - x->log_p) < 1e-3);
    qkv_tape_free(tape);
    qkv_free(t);
    qkv_model_free(m);
}

static void ends_come_late_enough(void **state)
{
    (void)state;
    qkv_model *m = golden_with("t5", of_none, false, 0);
    const int32_t source[] = { 5, 6, 1 };
    qkv_search_opts o = { .size = sizeof o, .start = 0, .end = 1, .pad = 0, .beam_size = 1, .max_length = 8 };
    qkv_search_result *found = NULL;
    assert_int_equal(qkv_beam_search(m, &(qkv_tokens){ .ids = source, .rows = 1, .length = 3 }, &o, &found), QKV_OK);
    assert_true(found->best[0].n > 0);
    const int32_t likeliest = found->best[0].ids[0];
    o.ends = &likeliest;
    o.n_ends = 1;
    assert_int_equal(qkv_beam_search(m, &(qkv_tokens){ .ids = source, .rows = 1, .length = 3 }, &o, &found), QKV_OK);
    assert_int_equal(found->best[0].n, 0);
    o.min_length = 3;
    assert_int_equal(qkv_beam_search(m, &(qkv_tokens){ .ids = source, .rows = 1, .length = 3 }, &o, &found), QKV_OK);
    assert_true(found->best[0].n >= 3);
    qkv_free(found);
    qkv_model_free(m);
}

/* ---- passages ---- */

static char *text_of(const qkv_model *m, const char *source, const qkv_translate_opts *o)
{
    qkv_translations *t = NULL;
    if (qkv_translate(m, as_strings(&source, NULL, 1), 1, o, &t)) fail_msg("%s: %s", source, qkv_error());
    char *copy = strdup(t->best[0].text.data);
    qkv_free(t);
    return copy;
}

static void sentences_one_by_one(void **state)
{
    (void)state;
    qkv_model *m = golden_with("bart", of_none, false, 0);
    static const char *const texts[] = { "t5 t6 \xE3\x80\x82 t7 t8 t9 \xE3\x80\x82", "", "t10 t11" };
    qkv_translate_opts o = { .size = sizeof o, .beam_size = 2, .n_best = 2 };
    char *first = text_of(m, "t5 t6 \xE3\x80\x82", &o), *second = text_of(m, "t7 t8 t9 \xE3\x80\x82", &o);
    char *third = text_of(m, texts[2], &o), joined[512];
    snprintf(joined, sizeof joined, "%s %s", first, second);
    o.split = QKV_SPLIT_SENTENCES;
    qkv_translations *t = NULL;
    assert_int_equal(qkv_translate(m, as_strings(texts, NULL, 3), 3, &o, &t), QKV_OK);
    assert_int_equal(t->n, 3);
    assert_string_equal(t->best[0].text.data, joined);
    assert_string_equal(t->best[2].text.data, "");
    assert_string_equal(t->best[4].text.data, third);
    assert_true(t->best[0].n_ids > t->best[4].n_ids || strlen(first) == 0);
    o.attention = 1;
    assert_int_equal(qkv_translate(m, as_strings(texts, NULL, 3), 3, &o, &t), QKV_USAGE);
    o.attention = 0, o.max_source = 2; /* of one sentence that is too long the text has no translation */
    assert_int_equal(qkv_translate(m, as_strings(texts, NULL, 3), 3, &o, &t), QKV_OK);
    assert_true(t->status[0] == QKV_LIMIT && !t->status[1] && !t->status[2]);
    qkv_free(t);
    free(first), free(second), free(third);
    qkv_model_free(m);
}

static void summaries_in_parts(void **state)
{
    (void)state;
    qkv_model *m = golden_with("t5", of_none, false, 0);
    const qkv__summary_params *said = &qkv__model_get_info(m)->summary;
    assert_string_equal(said->prefix, "summarize: ");
    assert_true(said->beam == 4 && said->no_repeat == 3 && said->max_length == 200 && said->min_length == 30);
    const qkv_translate_opts as_said = {
        .size = sizeof as_said, .beam_size = 4, .no_repeat_ngram = 3, .length_penalty = 2, .max_length = 199, .min_length = 29
    };
    char *first = text_of(m, "summarize: t5 t6 \xE3\x80\x82", &as_said), joined[2048];
    char *second = text_of(m, "summarize: t7 t8 \xE3\x80\x82\nt9 \xE3\x80\x82", &as_said);
    snprintf(joined, sizeof joined, "%s %s", first, second);
    qkv_translations *t = NULL;
    const char *text = "t5 t6 \xE3\x80\x82\nt7 t8 \xE3\x80\x82\nt9 \xE3\x80\x82\n";
    /* 8 tokens: the prefix has one, and the second sentence goes with the third, not with the first */
    assert_int_equal(qkv_summarize(m, as_strings(&text, NULL, 1), 1, &(qkv_translate_opts){ .max_source = 8 }, &t), QKV_OK);
    assert_string_equal(t->best[0].text.data, joined);
    char *whole = text_of(m, "summarize: t5 t6 \xE3\x80\x82\nt7 t8 \xE3\x80\x82\nt9 \xE3\x80\x82", &as_said);
    assert_int_equal(qkv_summarize(m, as_strings(&text, NULL, 1), 1, NULL, &t), QKV_OK);
    assert_string_equal(t->best[0].text.data, whole);
    qkv_free(t);
    free(first), free(second), free(whole);
    qkv_model_free(m);
}

/* A request for two languages is answered as the library does it, whatever is asked beside it. */
static void served_by_code(void **state)
{
    (void)state;
    static const char *const pairs[][2] = { { "eng_Latn", "deu_Latn" },
                                            { "deu_Latn", "zho_Hans" },
                                            { "zho_Hans", "eng_Latn" } };
    qkv_model *m = golden_with("m2m_100", of_nllb, false, 0);
    qkv_server *s = qkv_server_new(m, &(qkv_server_opts){ .size = sizeof(qkv_server_opts) });
    if (!s) fail_msg("%s", qkv_error());
    for (int i = 0; i < 3; i++) {
        char body[256];
        const qkv_translate_opts o = { .size = sizeof o, .source_lang = pairs[i][0], .target_lang = pairs[i][1] };
        char *wanted = text_of(m, "t5 t6", &o);
        snprintf(body, sizeof body, "{\"q\":\"t5 t6\",\"source_lang\":\"%s\",\"target_lang\":\"%s\"}", pairs[i][0],
                 pairs[i][1]);
        reply r = post(qkv_server_port(s), "/translate", body);
        const qkv__json_value *x = json_parse_text(r.body);
        if (r.status != 200) fail_msg("%d: %s", r.status, r.body);
        assert_string_equal(qkv__json_text(qkv__json_get(x, "translatedText")), wanted);
        json_free(x);
        free_reply(&r);
        free(wanted);
    }
    /* Where the server has no names for its languages, "source" and "target" are these codes. */
    const qkv_translate_opts own = { .size = sizeof own, .source_lang = "deu_Latn", .target_lang = "zho_Hans" };
    char *by_own = text_of(m, "t5 t6", &own);
    static const char *const alike[] = {
        "{\"q\":\"t5 t6\",\"source\":\"deu_Latn\",\"target\":\"zho_Hans\"}",
        "{\"q\":\"t5 t6\",\"source\":\"de\",\"source_lang\":\"deu_Latn\",\"target\":\"zho_Hans\"}"
    };
    for (int i = 0; i < 2; i++) {
        reply r = post(qkv_server_port(s), "/translate", alike[i]);
        const qkv__json_value *x = json_parse_text(r.body);
        if (r.status != 200) fail_msg("%d: %s", r.status, r.body);
        assert_string_equal(qkv__json_text(qkv__json_get(x, "translatedText")), by_own);
        json_free(x);
        free_reply(&r);
    }
    free(by_own);
    reply unknown = post(qkv_server_port(s), "/translate", "{\"q\":\"t5\",\"source\":\"en\",\"target\":\"fr\"}");
    assert_int_equal(unknown.status, 400);
    assert_non_null(strstr(unknown.body, "eng_Latn, deu_Latn"));
    free_reply(&unknown);
    static const char *const wrong[] = { "{\"q\":\"t5\",\"source_lang\":\"eng_Latn\",\"target_lang\":\"fra_Latn\"}",
                                         "{\"q\":\"t5\",\"source_lang\":\"eng_Latn\"}",
                                         "{\"q\":\"t5\",\"source_lang\":7,\"target_lang\":\"deu_Latn\"}" };
    static const char *const words[] = { "has no language \\\"fra_Latn\\\"", "\\\"target\\\" is missing", "source_lang" };
    for (int i = 0; i < 3; i++) {
        reply r = post(qkv_server_port(s), "/translate", wrong[i]);
        assert_int_equal(r.status, 400);
        if (!strstr(r.body, words[i])) fail_msg("row %d says %s", i, r.body);
        free_reply(&r);
    }
    qkv_server_free(s);
    qkv_model_free(m);
}

static void write_text(const char *name, const char *text)
{
    FILE *f = fopen(in_folder(name), "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

/* M2M-100's files: SentencePiece cuts, vocab.json numbers, the codes come behind it. */
static void files_of_m2m(void **state)
{
    (void)state;
    qkv_model *m = golden_with("m2m_100", of_none, false, 0);
    qkv_model_free(m);
    char command[1024];
    snprintf(command, sizeof command,
             "rm %s/tokenizer.json && cp '" QKV_GOLDEN "/spm_unigram.model' %s/sentencepiece.bpe.model", folder, folder);
    assert_int_equal(system(command), 0);
    write_text("vocab.json", "{\"<s>\":0,\"<pad>\":1,\"</s>\":2,\"<unk>\":3,\"\xE2\x96\x81the\":4}");
    write_text("special_tokens_map.json", "{\"additional_special_tokens\":[\"__en__\",\"__de__\"]}");
    qkv_tokenizer *source = NULL, *target = NULL;
    assert_int_equal(qkv_tokenizers_load(folder, &source, &target), QKV_OK);
    assert_int_equal(qkv_tokenizer_vocab_size(source), 7);
    assert_int_equal(qkv_tokenizer_id(source, "__de__"), 6);
    assert_true(qkv_tokenizer_is_special(source, 6));
    qkv_tokenizer_free(source);
    write_text("special_tokens_map.json", "{\"additional_special_tokens\":[\"the\"]}");
    assert_int_equal(qkv_tokenizers_load(folder, &source, &target), QKV_FORMAT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(codes_stand_where_they_belong, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(languages_it_has_not, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(bart_classifies, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(a_forced_token_is_certain, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(ends_come_late_enough, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(sentences_one_by_one, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(summaries_in_parts, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(served_by_code, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(files_of_m2m, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
