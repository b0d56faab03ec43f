/* test_published.c: the tasks with published models: texts as their files frame them, and the numbers of plain forwards. */
#include <qkv/qkv.h>
#include <qkv/unstable/util.h>
#include "report/attention.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "json_values.h"
#include "failing.h"
#include "folder.h"
#include "io/safetensors.h"
#include "model/classes.h"
#include "nn/params.h"
#include "model/model.h"
#include "as_strings.h"

enum { VOCABULARY = 23 };

/* ---- models with a tokenizer: the golden ones know ids alone ---- */

/* Token i is the word "ti", but for those that have a name here, which are special; a frame is such names with A and B. */
typedef struct vocabulary {
    const char *names[8];
    int ids[8];
    const char *single, *pair; /* "[CLS] A [SEP] B:1 [SEP]:1"; NULL: no frame */
    const char *decoder, *normalizer;
} vocabulary;

static const vocabulary of_bert = { { "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]" },
                                    { 0, 1, 2, 3, 4 },
                                    "[CLS] A [SEP]",
                                    "[CLS] A [SEP] B:1 [SEP]:1",
                                    NULL,
                                    NULL };
static const vocabulary of_roberta = {
    { "<s>", "<pad>", "</s>", "<unk>", "<mask>" }, { 0, 1, 2, 3, 22 }, "<s> A </s>", "<s> A </s> </s> B </s>", NULL, NULL
};
static const vocabulary of_marian = { { "</s>", "<unk>", "<pad>" }, { 0, 1, 22 }, "A </s>", "A B </s>", NULL, NULL };
static const vocabulary of_gpt2 = { { "<|endoftext|>", "<unk>" }, { 22, 0 }, NULL, NULL, NULL, NULL };
static const vocabulary of_llama = { { "<unk>", "<s>", "</s>", "<eot>" }, { 0, 1, 2, 3 }, "<s> A", "<s> A <s> B", NULL, NULL };

static int id_of(const vocabulary *v, const char *name)
{
    for (int i = 0; i < 8 && v->names[i]; i++)
        if (!strcmp(v->names[i], name)) return v->ids[i];
    return atoi(name + 1);
}

/* The items of a frame, "<s> A </s>:1": a list, or with `specials` an object of its special tokens. */
static void put_frame(qkv__json_writer *w, const char *key, const char *items, const vocabulary *v, bool specials)
{
    char copy[128];
    strcpy(copy, items);
    if (specials) qkv__json_open_object(w, key);
    else qkv__json_open_array(w, key);
    for (char *item = strtok(copy, " "); item; item = strtok(NULL, " ")) {
        char *colon = strchr(item, ':');
        int type = colon ? atoi(colon + 1) : 0;
        if (colon) *colon = '\0';
        bool is_text = !strcmp(item, "A") || !strcmp(item, "B");
        if (specials && (is_text || strstr(items, item) != items + (item - copy))) continue; /* each once */
        qkv__json_open_object(w, specials ? item : NULL);
        if (!specials) qkv__json_open_object(w, is_text ? "Sequence" : "SpecialToken");
        qkv__json_put_text(w, "id", item);
        if (specials) {
            char rest[64];
            snprintf(rest, sizeof rest, "[%d]", id_of(v, item));
            qkv__json_put_raw(w, "ids", rest, strlen(rest));
            qkv__json_open_array(w, "tokens");
            qkv__json_put_text(w, NULL, item);
        } else qkv__json_put_int(w, "type_id", type);
        qkv__json_close(w);
        qkv__json_close(w);
    }
    qkv__json_close(w);
}

static void put_parsed(qkv__json_writer *w, const char *key, const char *json)
{
    if (!json) json = "null";
    qkv__json_put_raw(w, key, json, strlen(json));
}

static void write_tokenizer(const vocabulary *v)
{
    static const char *const flags[] = { "single_word", "lstrip", "rstrip", "normalized", "special" };
    qkv__json_writer w = { 0 };
    const char *unknown = "t0";
    qkv__json_open_object(&w, NULL);
    qkv__json_open_array(&w, "added_tokens");
    for (int i = 0; i < 8 && v->names[i]; i++) {
        const char *name = v->names[i];
        if (!strcmp(name, "[UNK]") || !strcmp(name, "<unk>")) unknown = name;
        if ((name[0] != '<' && name[0] != '[') || !strncmp(name, "<0x", 3)) continue;
        qkv__json_open_object(&w, NULL);
        qkv__json_put_int(&w, "id", v->ids[i]);
        qkv__json_put_text(&w, "content", name);
        for (int k = 0; k < 5; k++) qkv__json_put_bool(&w, flags[k], k == 4 || (k == 1 && !strcmp(name, "<mask>")));
        qkv__json_close(&w);
    }
    qkv__json_close(&w);
    put_parsed(&w, "normalizer", v->normalizer);
    put_parsed(&w, "pre_tokenizer", "{\"type\":\"WhitespaceSplit\"}");
    if (v->single) {
        qkv__json_open_object(&w, "post_processor");
        qkv__json_put_text(&w, "type", "TemplateProcessing");
        put_frame(&w, "single", v->single, v, false);
        put_frame(&w, "pair", v->pair, v, false);
        put_frame(&w, "special_tokens", v->pair, v, true);
        qkv__json_close(&w);
    } else put_parsed(&w, "post_processor", NULL);
    put_parsed(&w, "decoder", v->decoder);
    qkv__json_open_object(&w, "model");
    qkv__json_put_text(&w, "type", "WordLevel");
    qkv__json_put_text(&w, "unk_token", unknown);
    qkv__json_open_object(&w, "vocab");
    for (int i = 0; i < VOCABULARY; i++) {
        char word[16];
        bool is_named = false;
        for (int k = 0; k < 8 && v->names[k]; k++) is_named = is_named || v->ids[k] == i;
        snprintf(word, sizeof word, "t%d", i);
        if (!is_named) qkv__json_put_int(&w, word, i);
    }
    for (int i = 0; i < 8 && v->names[i]; i++) qkv__json_put_int(&w, v->names[i], v->ids[i]);
    for (int i = 0; i < 3; i++) qkv__json_close(&w);
    assert_int_equal(qkv__json_save(&w, in_folder("tokenizer.json")), QKV_OK);
}

static void copy_golden(const char *name)
{
    char command[1024];
    snprintf(command, sizeof command, "rm -rf %s && cp -r '" QKV_GOLDEN "/families/%s' %s && chmod -R u+w %s", folder, name,
             folder, folder);
    assert_int_equal(system(command), 0);
}

static qkv_model *load(void)
{
    qkv_model *m = qkv_model_load(folder, NULL);
    if (!m) fail_msg("%s", qkv_error());
    return m;
}

static qkv_model *golden_with(const char *name, const vocabulary *v)
{
    copy_golden(name);
    write_tokenizer(v);
    qkv_model *m = load();
    assert_non_null(qkv_model_tokenizer(m, QKV_SIDE_SOURCE));
    return m;
}

static void set_key(const char *file, const char *key, const char *value)
{
    const qkv__json_value *config = json_read(in_folder(file));
    json_edit(&config, key, value);
    assert_int_equal(json_write(config, in_folder(file)), 0);
    json_free(config);
}

/* ---- what stands around texts ---- */

static void reads_side(const qkv_model *m, qkv_side side, const char *text, int raw, const char *wanted)
{
    qkv_encoding *ids = NULL;
    char got[128] = "";
    assert_int_equal(qkv_model_tokenize(m, side, qkv_cstr(text), &(qkv_encode_opts){ .no_special = raw }, &ids), QKV_OK);
    for (int64_t i = 0; i < ids->n; i++) sprintf(got + strlen(got), "%d ", ids->ids[i]);
    assert_string_equal(got, wanted);
    for (int64_t i = 0; i < ids->n; i++) /* what was added comes from no place */
        assert_true(ids->types[i] == 0 && (ids->ids[i] == 5 || ids->ids[i] == 6) == (ids->spans[i].end > ids->spans[i].begin));
    qkv_free(ids);
}

static void sides_as_they_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const vocabulary *v;
        qkv_side side;
        const char *whole, *raw, *nothing; /* of "t5 t6", and of an empty text */
    } rows[] = { { "bert_mlm", &of_bert, QKV_SIDE_SOURCE, "2 5 6 3 ", "5 6 ", "2 3 " },
                 { "marian", &of_marian, QKV_SIDE_SOURCE, "5 6 0 ", "5 6 ", "0 " },
                 { "marian", &of_marian, QKV_SIDE_TARGET, "22 5 6 ", "5 6 ", "22 " },
                 { "gpt2", &of_gpt2, QKV_SIDE_TARGET, "5 6 ", "5 6 ", "" },
                 { "llama", &of_llama, QKV_SIDE_TARGET, "1 5 6 ", "5 6 ", "1 " } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        qkv_model *m = golden_with(rows[i].name, rows[i].v);
        reads_side(m, rows[i].side, "t5 t6", 0, rows[i].whole);
        reads_side(m, rows[i].side, "t5 t6", 1, rows[i].raw);
        reads_side(m, rows[i].side, NULL, 0, rows[i].nothing);
        reads_side(m, rows[i].side, NULL, 1, "");
        qkv_model_free(m);
    }
    qkv_encoding *ids = NULL;
    qkv_model *m = golden_with("bert_mlm", &of_bert);
    assert_int_equal(qkv_model_tokenize(m, (qkv_side)2, qkv_cstr("t5"), NULL, &ids), QKV_USAGE);
    assert_int_equal(qkv_model_tokenize(m, QKV_SIDE_SOURCE, qkv_cstr("\xff"), NULL, &ids), QKV_FORMAT);
    assert_int_equal(ids->n, 0);
    qkv_free(ids);
    qkv_model_free(m);
}

static void frames(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const vocabulary *v;
        qkv_special_tokens wanted;
    } rows[] = { { "bert_mlm", &of_bert, { sizeof(qkv_special_tokens), 2, 3, 0, 4, 5, 3 } },
                 { "distilbert_classify", &of_bert, { sizeof(qkv_special_tokens), 2, 3, 0, 4, 5, 3 } },
                 { "roberta_mlm", &of_roberta, { sizeof(qkv_special_tokens), 0, 2, 1, 22, 4, 2 } },
                 { "marian", &of_marian, { sizeof(qkv_special_tokens), 22, 0, 22, -1, 2, 0 } },
                 { "gpt2", &of_gpt2, { sizeof(qkv_special_tokens), 22, 22, 22, -1, 1, 22 } },
                 { "llama", &of_llama, { sizeof(qkv_special_tokens), 1, 2, 2, -1, 4, 2 } } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        qkv_model *m = golden_with(rows[i].name, rows[i].v);
        qkv_special_tokens f = { .size = sizeof f };
        assert_int_equal(qkv_model_special_tokens(m, &f), QKV_OK);
        if (memcmp(&f, &rows[i].wanted, sizeof f))
            fail_msg("%s: %d %d %d %d %d %d", rows[i].name, f.start, f.end, f.pad, f.mask, f.first_ordinary, f.source_end);
        qkv_model_free(m);
    }
    const vocabulary bare_bert = { { "[UNK]", "[CLS]", "[SEP]" }, { 1, 2, 3 }, NULL, NULL, NULL, NULL };
    const vocabulary nothing = { { "[UNK]" }, { 1 }, NULL, NULL, NULL, NULL };
    qkv_special_tokens f = { .size = sizeof f };
    qkv_model *m = golden_with("bert_mlm", &bare_bert); /* by spelling, where no frame says it */
    assert_int_equal(qkv_model_special_tokens(m, &f), QKV_OK);
    assert_true(f.start == 2 && f.end == 3 && f.mask == -1);
    qkv_model_free(m);
    m = golden_with("bert_mlm", &nothing);
    assert_int_equal(qkv_model_special_tokens(m, &f), QKV_USAGE);
    assert_int_equal(qkv_model_special_tokens(NULL, &f), QKV_USAGE);
    assert_int_equal(qkv_model_special_tokens(m, NULL), QKV_USAGE);
    qkv_model_free(m);
    copy_golden("bert_mlm");
    m = load();
    assert_int_equal(qkv_model_special_tokens(m, &f), QKV_USAGE);
    assert_non_null(strstr(qkv_error(), "no tokenizer"));
    qkv_model_free(m);
}

/* ---- forwards by hand ---- */

static void softmax_of(const float *logits, int64_t n, double *p)
{
    double most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++) most = fmax(most, (double)logits[i]);
    for (int64_t i = 0; i < n; i++) sum += p[i] = exp((double)logits[i] - most);
    for (int64_t i = 0; i < n; i++) p[i] /= sum;
}

/* The logits of every place, (n, vocabulary); the decoder's when there is a target. */
static const float *logits_of(const qkv_model *m, qkv_tape *t, const int32_t *ids, int64_t n, const int32_t *target, int64_t k)
{
    const qkv__transformer *x = qkv__model_transformer(m);
    const qkv_config *o = qkv__transformer_config(x);
    qkv_tape_reset(t);
    qkv_tensor *memory = o->encoder_layers ? qkv__transformer_encode(x, t, &(qkv_tokens){ .ids = ids, .rows = 1, .length = n })
                                           : NULL,
               *last = memory;
    if (o->decoder_layers)
        last = qkv__transformer_decode(x, t, &(qkv_tokens){ .ids = target ? target : ids, .rows = 1, .length = target ? k : n },
                                       memory, NULL);
    const float *logits = qkv_tensor_data(qkv__transformer_logits(x, last));
    if (!logits) fail_msg("%s", qkv_error());
    return logits;
}

static void classes_of(const qkv_model *m, const int32_t *ids, const int32_t *types, int64_t n, double *p)
{
    const qkv__transformer *x = qkv__model_transformer(m);
    qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .inference = 1 });
    qkv_tensor *hidden = qkv__transformer_encode(x, t, &(qkv_tokens){ .ids = ids, .types = types, .rows = 1, .length = n });
    softmax_of(qkv_tensor_data(qkv__transformer_classify(x, hidden, NULL)), 3, p);
    qkv_tape_free(t);
}

/* ---- classification ---- */

static void check_row(const float *got, const double *wanted, int64_t n, double most)
{
    for (int64_t i = 0; i < n; i++)
        if (!(fabs((double)got[i] - wanted[i]) <= most))
            fail_msg("number %d is %g, expected %g", (int)i, (double)got[i], wanted[i]);
}

/* The golden rows, whose first and last ids are made the frame: what PyTorch says comes out of a text. */
static void classes_are_pytorchs(void **state)
{
    (void)state;
    static const struct {
        const char *single, *pair, *text;
        int64_t row;
    } rows[] = { { "t3 A t7", "t3 A B t7", "t7 t2 t20 t3 t8", 0 }, { "t11 A t21", "t11 A B t21", "t10 t2", 1 } };
    static const char *const models[] = { "roberta_classify", "distilbert_classify" };
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < 2; i++) {
            const vocabulary v = { { NULL }, { 0 }, rows[i].single, rows[i].pair, NULL, NULL };
            qkv_model *m = golden_with(models[k], &v);
            qkv__safetensors golden;
            assert_int_equal(qkv__safetensors_read(in_folder("golden.safetensors"), &golden), QKV_OK);
            double wanted[3];
            softmax_of(qkv__safetensors_floats(qkv__safetensors_find(&golden, "classes")) + 3 * rows[i].row, 3, wanted);
            qkv_matrix *found = NULL;
            assert_int_equal(qkv_classify(m, as_strings(&rows[i].text, NULL, 1), 1, NULL, &found), QKV_OK);
            check_row(found->data, wanted, 3, 1e-4);
            qkv_free(found);
            qkv__safetensors_free(&golden);
            qkv_model_free(m);
        }
}

static const char *const firsts[] = { "t7", "t7 t8 t9", "", "t10 t11 t12 t13 t14 t15 t16 t17" };
static const char *const seconds[] = { "t9", "t10", "t12", "t20 t21 t18 t5" };
static const int32_t pair_ids[4][12] = {
    { 2, 7, 3, 9, 3 }, { 2, 7, 8, 9, 3, 10, 3 }, { 2, 3, 12, 3 }, { 2, 10, 11, 12, 13, 14, 3, 20, 21, 18, 5, 3 }
}; /* cut: 12 positions */
static const int32_t pair_types[4][12] = {
    { 0, 0, 0, 1, 1 }, { 0, 0, 0, 0, 0, 1, 1 }, { 0, 0, 1, 1 }, { 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1 }
};
static const int64_t pair_lengths[4] = { 5, 7, 4, 12 };

static void pairs_have_types(void **state)
{
    (void)state;
    qkv_model *m = golden_with("bert_classify", &of_bert);
    qkv_matrix *found = NULL;
    assert_int_equal(
        qkv_classify(m, as_strings(firsts, NULL, 4), 4, &(qkv_encoder_opts){ .pairs = as_strings(seconds, NULL, 4) }, &found),
        QKV_OK);
    assert_int_equal(found->truncated, 1);
    for (int i = 0; i < 4; i++) {
        double wanted[3];
        classes_of(m, pair_ids[i], pair_types[i], pair_lengths[i], wanted);
        check_row(found->data + 3 * i, wanted, 3, 1e-6);
    }
    const char *const alone[] = { "t7 t8", "t7 [SEP] t8" };
    const int32_t alone_ids[2][5] = { { 2, 7, 8, 3 }, { 2, 7, 1, 8, 3 } }; /* what a text spells is text */
    assert_int_equal(qkv_classify(m, as_strings(alone, NULL, 2), 2, NULL, &found), QKV_OK);
    for (int i = 0; i < 2; i++) {
        double wanted[3];
        classes_of(m, alone_ids[i], NULL, 4 + i, wanted);
        check_row(found->data + 3 * i, wanted, 3, 1e-6);
    }
    qkv_free(found);
    qkv_model_free(m);
}

/* RoBERTa has two tokens between the texts, and one type. */
static void pairs_of_roberta(void **state)
{
    (void)state;
    qkv_model *m = golden_with("roberta_classify", &of_roberta);
    const int32_t ids[] = { 0, 7, 8, 2, 2, 9, 2 };
    qkv_matrix *found = NULL;
    assert_int_equal(qkv_classify(m, as_strings((const char *[]){ "t7 t8" }, NULL, 1), 1,
                                  &(qkv_encoder_opts){ .pairs = as_strings((const char *[]){ "t9" }, NULL, 1) }, &found),
                     QKV_OK);
    double wanted[3];
    classes_of(m, ids, NULL, 7, wanted);
    check_row(found->data, wanted, 3, 1e-6);
    qkv_dataset *p = qkv_dataset_new();
    qkv_batch *b = NULL;
    assert_int_equal(
        qkv_dataset_add(
            p, m, &(qkv_example){ .kind = QKV_EXAMPLE_CLASS, .text = { "t7 t8", 5 }, .pair = { "t9", 2 }, .class_id = 1 }),
        QKV_OK);
    qkv_loader *e = qkv_loader_new(p, &(qkv_batch_opts){ .end = 2 }, 0);
    assert_int_equal(qkv_loader_batch(e, 0, &b), QKV_OK);
    assert_int_equal(b->source_length, 7);
    assert_memory_equal(b->source, ids, sizeof ids);
    qkv_free(b);
    qkv_loader_free(e);
    qkv_dataset_free(p);
    qkv_free(found);
    qkv_model_free(m);
}

/* What is learned from is what is read later, types too. */
static void learning_reads_alike(void **state)
{
    (void)state;
    qkv_model *m = golden_with("bert_classify", &of_bert);
    qkv_special_tokens f = { .size = sizeof f };
    assert_int_equal(qkv_model_special_tokens(m, &f), QKV_OK);
    qkv_dataset *p = qkv_dataset_new();
    for (int i = 0; i < 4; i++)
        assert_int_equal(qkv_dataset_add(p, m,
                                         &(qkv_example){ .kind = QKV_EXAMPLE_CLASS,
                                                         .text = { firsts[i], strlen(firsts[i]) },
                                                         .pair = { seconds[i], strlen(seconds[i]) },
                                                         .class_id = i % 3 }),
                         QKV_OK);
    assert_int_equal(
        qkv_dataset_add(p, m,
                        &(qkv_example){ .kind = QKV_EXAMPLE_CLASS, .text = { "t7 t8 t9", 8 }, .max_length = 3, .class_id = 1 }),
        QKV_OK); /* cut to [CLS] t7 t8 */
    const qkv_batch_opts opts = { .sequential = 1, .start = f.start, .end = f.end, .pad = f.pad };
    qkv_loader *e = qkv_loader_new(p, &opts, 0);
    qkv_batch *b = NULL;
    assert_int_equal(qkv_loader_batch(e, 0, &b), QKV_OK);
    assert_int_equal(b->rows, 5);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(b->source_lengths[i], pair_lengths[i]);
        assert_memory_equal(b->source + i * b->source_length, pair_ids[i], sizeof(int32_t) * (size_t)pair_lengths[i]);
    }
    assert_int_equal(b->source_lengths[4], 4);
    qkv_matrix *found = NULL;
    assert_int_equal(
        qkv_classify(m, as_strings(firsts, NULL, 4), 4, &(qkv_encoder_opts){ .pairs = as_strings(seconds, NULL, 4) }, &found),
        QKV_OK);
    qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .inference = 1 });
    const float *together = qkv_tensor_data(qkv_softmax(qkv__classify_batch(m, t, b)));
    assert_non_null(together);
    assert_memory_equal(together, found->data, sizeof(float) * 12);
    const qkv_loss o = qkv_loss_classification(NULL, 3);
    double loss, wanted = 0, p3[3];
    assert_int_equal(qkv_evaluate(m, p, &(qkv_evaluate_opts){ .loss = &o, .batches = &opts }, &loss), QKV_OK);
    for (int i = 0; i < 4; i++) {
        classes_of(m, pair_ids[i], pair_types[i], pair_lengths[i], p3);
        wanted -= log(p3[i % 3]) / 5;
    }
    classes_of(m, (const int32_t[]){ 2, 7, 8, 3 }, NULL, 4, p3);
    wanted -= log(p3[1]) / 5;
    assert_true(fabs(loss - wanted) < 1e-5);
    assert_null(qkv__classify_batch(NULL, t, b));
    qkv_tape_free(t);
    qkv_free(found);
    qkv_free(b);
    qkv_loader_free(e);
    qkv_dataset_free(p);
    qkv_model_free(m);
}

/* ---- embedding ---- */

static void embeds_as_published(void **state)
{
    (void)state;
    qkv_model *m = golden_with("bert_sentence", &of_bert); /* the mean, normalised, of 10 tokens */
    const char *const texts[] = { "t7 t8 t9 t10 t11 t12 t13 t14 t15 t16" };
    const int32_t cut[] = { 2, 7, 8, 9, 10, 11, 12, 13, 14, 3 }, whole[] = { 2, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 3 };
    qkv_matrix *found = NULL;
    const qkv__transformer *x = qkv__model_transformer(m);
    qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .inference = 1 });
    for (int plain = 0; plain < 2; plain++) {
        int64_t n = plain ? 12 : 10;
        const float *hidden = qkv_tensor_data(
            qkv__transformer_encode(x, t, &(qkv_tokens){ .ids = plain ? whole : cut, .rows = 1, .length = n }));
        double mean[16] = { 0 }, sum = 0;
        for (int64_t i = 0; i < 16 * n; i++) mean[i % 16] += (double)hidden[i] / (double)n;
        for (int i = 0; i < 16; i++) sum += mean[i] * mean[i];
        for (int i = 0; i < 16 && !plain; i++) mean[i] /= sqrt(sum);
        assert_int_equal(
            qkv_embed(m, as_strings(texts, NULL, 1), 1, plain ? &(qkv_embed_opts){ .as = QKV_EMBED_AS_GIVEN } : NULL, &found),
            QKV_OK);
        assert_int_equal(found->truncated, !plain);
        check_row(found->data, mean, 16, 1e-5);
        qkv_tape_reset(t);
    }
    qkv_tape_free(t);
    qkv_free(found);
    qkv_model_free(m);
}

/* ---- filling ---- */

static void check_filled(const qkv_model *m, const qkv_filled *f, int64_t mask, const int32_t *ids, int64_t n, int64_t place)
{
    qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .inference = 1 });
    double p[VOCABULARY];
    softmax_of(logits_of(m, t, ids, n, NULL, 0) + place * VOCABULARY, VOCABULARY, p);
    for (int i = 0; i < f->n_best; i++) {
        const qkv_filling *x = &f->best[mask * f->n_best + i];
        assert_true(fabs(x->p - p[x->id]) < 1e-6);
        int better = 0;
        for (int k = 0; k < qkv_tokenizer_vocab_size(qkv_model_tokenizer(m, QKV_SIDE_SOURCE)); k++)
            better += p[k] > p[x->id] + 1e-6;
        assert_true(better <= i);
        if (i) assert_true(x->p <= x[-1].p);
        assert_int_equal(strlen(x->text.data), x->text.length);
    }
    qkv_tape_free(t);
}

static void fills_masks(void **state)
{
    (void)state;
    static const char text[] = "t7 [MASK]  t8 <mask>t9";
    const int32_t ids[] = { 2, 7, 4, 8, 4, 9, 3 };
    static const char *const models[] = { "bert_mlm", "distilbert_mlm" };
    qkv_filled *f = NULL;
    for (int k = 0; k < 2; k++) {
        qkv_model *m = golden_with(models[k], &of_bert);
        assert_int_equal(qkv_fill_mask(m, qkv_cstr(text), NULL, &f), QKV_OK);
        assert_true(f->masks == 2 && f->n_best == 5);
        assert_true(f->places[0].begin == 3 && f->places[0].end == 9 && f->places[1].begin == 14 && f->places[1].end == 20);
        check_filled(m, f, 0, ids, 7, 2);
        check_filled(m, f, 1, ids, 7, 4);
        char wanted[64];
        snprintf(wanted, sizeof wanted, "t7 %s  t8 <mask>t9", f->best[0].token.data);
        assert_string_equal(f->best[0].text.data, wanted);
        assert_string_equal(f->best[0].token.data, qkv_tokenizer_token(qkv_model_tokenizer(m, QKV_SIDE_SOURCE), f->best[0].id));
        assert_int_equal(qkv_fill_mask(m, qkv_cstr("[MASK]"), &(qkv_fill_opts){ .n_best = 1000 }, &f), QKV_OK);
        assert_int_equal(f->n_best, VOCABULARY);
        double sum = 0;
        for (int i = 0; i < VOCABULARY; i++) sum += f->best[i].p;
        assert_true(fabs(sum - 1) < 1e-5);
        qkv_model_free(m);
    }
    qkv_model *m = golden_with("roberta_mlm", &of_roberta); /* its mask takes the space before it */
    assert_int_equal(qkv_fill_mask(m, qkv_cstr("t7 <mask> t8"), &(qkv_fill_opts){ .n_best = 3 }, &f), QKV_OK);
    check_filled(m, f, 0, (const int32_t[]){ 0, 7, 22, 8, 2 }, 5, 2);
    assert_true(f->places[0].begin == 3 && !strncmp(f->best[0].text.data, "t7 ", 3) && strlen(f->best[0].text.data) >= 8);
    qkv_model_free(m);
    qkv_free(f);
    qkv_free(NULL);
}

/* A token that continues a word has no space before it; one that starts a word has what the mask had. */
static void fills_word_pieces(void **state)
{
    (void)state;
    copy_golden("bert_mlm");
    FILE *file = fopen(in_folder("vocab.txt"), "w");
    fputs("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nplay\n##ing\n##ed\nchess\n(\n)\n", file);
    fclose(file);
    qkv_model *m = load();
    qkv_filled *f = NULL;
    static const char text[] = "Play \xEF\xBF\xBD [MASK] play [MASK] ([MASK])";
    assert_int_equal(qkv_fill_mask(m, qkv_cstr(text), &(qkv_fill_opts){ .n_best = 11 }, &f), QKV_OK);
    int seen = 0;
    for (int i = 0; i < 33; i++) {
        const qkv_filling *x = &f->best[i];
        const char *wanted = i / 11 == 1 && x->id == 6   ? "Play \xEF\xBF\xBD [MASK] playing ([MASK])"
                             : i / 11 == 1 && x->id == 8 ? "Play \xEF\xBF\xBD [MASK] play chess ([MASK])"
                             : i / 11 == 2 && x->id == 8 ? "Play \xEF\xBF\xBD [MASK] play [MASK] (chess)"
                                                         : NULL;
        if (wanted) assert_string_equal(x->text.data, wanted);
        seen += wanted != NULL;
    }
    assert_int_equal(seen, 3);
    qkv_free(f);
    qkv_model_free(m);
}

/* A mask may be the first token of a vocabulary. */
static void fills_the_id_0(void **state)
{
    (void)state;
    const vocabulary v = {
        { "<mask>", "<pad>", "</s>", "<unk>", "<s>" }, { 0, 1, 2, 3, 22 }, "<s> A </s>", "<s> A </s> B </s>", NULL, NULL
    };
    qkv_model *m = golden_with("roberta_mlm", &v);
    qkv_filled *f = NULL;
    assert_int_equal(qkv_fill_mask(m, qkv_cstr("t7 <mask> t8"), &(qkv_fill_opts){ .n_best = 3 }, &f), QKV_OK);
    assert_true(f->masks == 1 && f->n_best == 3 && f->places[0].begin == 3 && f->places[0].end == 9);
    qkv_free(f);
    qkv_model_free(m);
}

/* A token may be the byte 0, which ends no text. */
static void fills_in_a_nul(void **state)
{
    (void)state;
    vocabulary v = of_bert;
    v.names[5] = "<0x00>", v.ids[5] = 9;
    v.decoder = "{\"type\": \"ByteFallback\"}";
    qkv_model *m = golden_with("bert_mlm", &v);
    qkv_filled *f = NULL;
    assert_int_equal(qkv_fill_mask(m, qkv_cstr("t7 [MASK]"), &(qkv_fill_opts){ .n_best = 1000 }, &f), QKV_OK);
    int i = 0;
    while (i < f->n_best && f->best[i].id != 9) i++;
    assert_true(i < f->n_best);
    assert_int_equal(f->best[i].text.length, 3);
    assert_memory_equal(f->best[i].text.data, "t7\0", 4);
    qkv_free(f);
    qkv_model_free(m);
}

static void fills_refusals(void **state)
{
    (void)state;
    qkv_filled *f = NULL;
    qkv_model *m = golden_with("bert_mlm", &of_bert);
    assert_int_equal(qkv_fill_mask(m, qkv_cstr("t7 t8"), &(qkv_fill_opts){ .n_best = 1 }, &f), QKV_USAGE);
    assert_non_null(strstr(qkv_error(), "no mask: write [MASK]"));
    assert_int_equal(qkv_fill_mask(m, qkv_cstr("[MASK]"), &(qkv_fill_opts){ .n_best = -1 }, &f), QKV_USAGE);
    assert_int_equal(qkv_fill_mask(m, (qkv_str){ NULL, 6 }, &(qkv_fill_opts){ .n_best = 1 }, &f), QKV_USAGE);
    assert_int_equal(qkv_fill_mask(NULL, qkv_cstr("[MASK]"), &(qkv_fill_opts){ .n_best = 1 }, &f), QKV_USAGE);
    assert_int_equal(qkv_fill_mask(m, qkv_cstr("[MASK]"), &(qkv_fill_opts){ .n_best = 1 }, NULL), QKV_USAGE);
    static const char much[] = "[MASK] t7 t7 t7 t7 t7 t7 t7 t7 t7 t7";
    assert_int_equal(qkv_fill_mask(m, qkv_cstr(much), &(qkv_fill_opts){ .n_best = 1 }, &f), QKV_LIMIT);
    assert_string_equal(qkv_error(), "fill: the text has 13 tokens, the model has positions for 12");
    assert_int_equal(qkv_fill_mask(m, (qkv_str){ much, strlen(much) - 3 }, &(qkv_fill_opts){ .n_best = 1 }, &f), QKV_OK);
    assert_int_equal(qkv_fill_mask(m, (qkv_str){ "[MASK] \xff", 8 }, &(qkv_fill_opts){ .n_best = 1 }, &f), QKV_OK);
    assert_null(strchr(f->best[0].text.data, '\xff'));
    qkv__tensor_data(qkv_params_find(qkv_model_params(m), "embed.weight"))[4 * 16] = NAN;
    assert_int_equal(qkv_fill_mask(m, qkv_cstr("[MASK]"), &(qkv_fill_opts){ .n_best = 1 }, &f), QKV_NUMERIC);
    assert_true(f->masks == 0 && !f->best);
    qkv_model_free(m);
    m = golden_with("bert_classify", &of_bert);
    assert_int_equal(qkv_fill_mask(m, qkv_cstr("[MASK]"), &(qkv_fill_opts){ .n_best = 1 }, &f), QKV_USAGE);
    qkv_model_free(m);
    m = golden_with("gpt2", &of_gpt2);
    assert_int_equal(qkv_fill_mask(m, qkv_cstr("[MASK]"), &(qkv_fill_opts){ .n_best = 1 }, &f), QKV_USAGE);
    qkv_model_free(m);
    m = golden_with("bert_mlm", &of_marian);
    assert_int_equal(qkv_fill_mask(m, qkv_cstr("[MASK]"), &(qkv_fill_opts){ .n_best = 1 }, &f), QKV_USAGE);
    qkv_model_free(m);
    qkv_free(f);
}

/* Of words, as `qkv train mask` makes it. */
static qkv_model *model_of_ours(void)
{
    static const char *const specials[] = { "<pad>", "<s>", "</s>", "<unk>", "<mask>" };
    const qkv_config o = { .vocab_size = VOCABULARY, .encoder_layers = 1, .dim = 16, .heads = 2, .d_ff = 16 };
    qkv_word_counts *w = qkv_word_counts_new(QKV_TOKEN_WORDS);
    assert_int_equal(qkv_word_counts_add(w, (qkv_str){ "a good film is it", 17 }), QKV_OK);
    const qkv_tokenizer_opts opts = { .vocab_size = VOCABULARY, .min_count = 1, .specials = specials, .n_specials = 5 };
    qkv_tokenizer *t = qkv_tokenizer_train(w, &opts);
    qkv_model *m = qkv_model_new(&o, 4);
    assert_int_equal(qkv_model_set_tokenizers(m, t, NULL), QKV_OK);
    qkv_word_counts_free(w);
    return m;
}

static void fills_in_ours(void **state)
{
    (void)state;
    qkv_model *m = model_of_ours();
    const qkv_tokenizer *t = qkv_model_tokenizer(m, QKV_SIDE_SOURCE);
    const int32_t ids[] = { 1, qkv_tokenizer_id(t, "a"), 4, qkv_tokenizer_id(t, "film"), 2 };
    qkv_filled *f = NULL;
    assert_int_equal(qkv_fill_mask(m, qkv_cstr("A [MASK] film"), &(qkv_fill_opts){ .n_best = 3 }, &f), QKV_OK);
    check_filled(m, f, 0, ids, 5, 2);
    char wanted[64];
    snprintf(wanted, sizeof wanted, "A %s film", f->best[1].token.data);
    assert_string_equal(f->best[1].text.data, wanted);
    qkv_free(f);
    qkv_model_free(m);
}

/* ---- generation ---- */

static int32_t likeliest(const float *logits, const bool *forbidden)
{
    int32_t best = -1;
    for (int32_t i = 0; i < VOCABULARY; i++)
        if (!forbidden[i] && (best < 0 || logits[i] > logits[best])) best = i;
    return best;
}

static void check_greedy(const qkv_model *m, const char *prompt, const int32_t *read, int64_t n_read, int64_t most,
                         bool must_end)
{
    const qkv__model_info *info = qkv__model_get_info(m);
    qkv_generated *g = NULL;
    assert_int_equal(qkv_generate(m, qkv_cstr(prompt), &(qkv_generate_opts){ .max_tokens = most }, &g), QKV_OK);
    int32_t ids[64];
    int64_t n = n_read;
    bool forbidden[VOCABULARY] = { false }, ended = false;
    for (int32_t i = 0; i < VOCABULARY; i++)
        forbidden[i] = qkv_tokenizer_is_special(qkv_model_tokenizer(m, QKV_SIDE_SOURCE), i);
    for (int i = 0; i < info->n_ends; i++) forbidden[info->ends[i]] = false;
    memcpy(ids, read, sizeof *ids * (size_t)n_read);
    qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .inference = 1 });
    while (n - n_read < most) {
        const float *logits = logits_of(m, t, ids, n, NULL, 0) + (n - 1) * VOCABULARY;
        double p[VOCABULARY];
        int32_t id = likeliest(logits, forbidden);
        softmax_of(logits, VOCABULARY, p);
        for (int i = 0; i < info->n_ends; i++) ended |= info->ends[i] == id;
        if (ended) break;
        assert_true(n - n_read < g->n);
        assert_int_equal(g->ids[n - n_read], id);
        assert_true(fabs(g->log_p[n - n_read] - log(p[id])) < 1e-5);
        ids[n++] = id;
    }
    assert_int_equal(g->n, n - n_read);
    assert_int_equal(g->finish, ended ? QKV_FINISH_END : QKV_FINISH_LENGTH);
    assert_true(ended || !must_end);
    qkv_tape_free(t);
    qkv_free(g);
}

static void generates_greedily(void **state)
{
    (void)state;
    static const char *const models[] = { "llama", "qwen2", "mistral" };
    for (int k = 0; k < 3; k++) {
        qkv_model *m = golden_with(models[k], &of_llama);
        check_greedy(m, "t7 t8", (const int32_t[]){ 1, 7, 8 }, 3, 20, false);
        check_greedy(m, "", (const int32_t[]){ 1 }, 1, 9, false);
        qkv_model_free(m);
    }
    qkv_model *m = golden_with("gpt2", &of_gpt2);
    check_greedy(m, "t7 t8", (const int32_t[]){ 7, 8 }, 2, 10, false); /* nothing is put before it */
    check_greedy(m, "", (const int32_t[]){ 22 }, 1, 4, false);
    qkv_generated *g = NULL;
    assert_int_equal(qkv_generate(m, qkv_cstr("t7 t8"), NULL, &g), QKV_OK);
    assert_true(g->n == 10 && g->finish == QKV_FINISH_LENGTH); /* 12 positions */
    static const char full[] = "t7 t7 t7 t7 t7 t7 t7 t7 t7 t7 t7 t7";
    assert_int_equal(qkv_generate(m, qkv_cstr(full), NULL, &g), QKV_LIMIT);
    qkv_free(g);
    qkv_model_free(m);
}

/* The tokenizer that GPT-2's files really have is one of the kinds that are trained here too, but without an <s>: the token
 * that the config calls the beginning must not come before a prompt. */
static void prompts_of_byte_pairs_begin_with_nothing(void **state)
{
    (void)state;
    static const char *const specials[] = { "<|endoftext|>" };
    const qkv_config o = { .vocab_size = 257,
                           .decoder_layers = 1,
                           .dim = 16,
                           .heads = 2,
                           .d_ff = 16,
                           .pre_norm = 1,
                           .activation = QKV_ACTIVATION_GELU_TANH,
                           .positions = QKV_POSITION_LEARNED,
                           .max_positions = 16,
                           .unscaled = 1 };
    qkv_word_counts *w = qkv_word_counts_new(QKV_TOKEN_BPE);
    qkv_tokenizer *t = qkv_tokenizer_train(w,
                                           &(qkv_tokenizer_opts){ .vocab_size = 257, .specials = specials, .n_specials = 1 });
    qkv_model *made = qkv_model_new(&o, 5);
    assert_int_equal(qkv_model_set_tokenizers(made, t, NULL), QKV_OK);
    assert_int_equal(qkv_model_save(made, folder, "gpt2"), QKV_OK);
    set_key("config.json", "bos_token_id", "0");
    set_key("config.json", "eos_token_id", "0");
    qkv_model *m = load();
    assert_int_equal(qkv__model_get_info(m)->begin, 0);
    const int32_t ids[] = { qkv_tokenizer_id(t, "a"), qkv_tokenizer_id(t, "b") };
    qkv_tape *tape = qkv_tape_new(&(qkv_tape_opts){ .inference = 1 });
    double p[257];
    softmax_of(logits_of(m, tape, ids, 2, NULL, 0) + 257, 257, p);
    qkv_generated *g = NULL;
    assert_int_equal(qkv_generate(m, qkv_cstr("ab"), &(qkv_generate_opts){ .max_tokens = 1 }, &g), QKV_OK);
    assert_int_equal(g->n, 1);
    assert_true(fabs(g->log_p[0] - log(p[g->ids[0]])) < 1e-6);
    const int32_t begin = 0; /* but where there is nothing else to read */
    softmax_of(logits_of(m, tape, &begin, 1, NULL, 0), 257, p);
    assert_int_equal(qkv_generate(m, qkv_cstr(""), &(qkv_generate_opts){ .max_tokens = 1 }, &g), QKV_OK);
    assert_true(g->n == 0 ? p[0] > 0 : fabs(g->log_p[0] - log(p[g->ids[0]])) < 1e-6);
    qkv_free(g);
    qkv_tape_free(tape);
    qkv_model_free(m);
    qkv_model_free(made);
    qkv_word_counts_free(w);
}

/* A SentencePiece file of one-byte lengths: <unk>, <s> and </s>, then the words t3 to t22 with their space. */
static void write_spm(void)
{
    static const char *const specials[] = { "<unk>", "<s>", "</s>" };
    FILE *f = fopen(in_folder("tokenizer.model"), "wb");
    assert_non_null(f);
    for (int i = 0; i < VOCABULARY; i++) {
        char text[16];
        if (i < 3) snprintf(text, sizeof text, "%s", specials[i]);
        else snprintf(text, sizeof text, "\xE2\x96\x81t%d", i);
        int n = (int)strlen(text), type = i == 0 ? 2 : i < 3 ? 3 : 1;                   /* unknown, control, normal */
        fprintf(f, "\x0A%c\x0A%c%s\x15%c%c\x80\xBF\x18%c", n + 9, n, text, 0, 0, type); /* a score of -1 */
    }
    assert_int_equal(fclose(f), 0);
}

/* Programs put <s> before what a Llama reads where its SentencePiece file stands alone, unless tokenizer_config.json
 * says otherwise. */
static void prompts_of_sentencepiece_begin_as_said(void **state)
{
    (void)state;
    static const struct {
        const char *config;
        bool begins;
    } rows[] = { { "{}", true },
                 { "{\"add_bos_token\": true}", true },
                 { "{\"add_bos_token\": false}", false },
                 { "{\"tokenizer_class\": \"LlamaTokenizer\"}", true },
                 { "{\"tokenizer_class\": \"LlamaTokenizer\", \"add_bos_token\": false}", false },
                 { "{\"tokenizer_class\": \"T5Tokenizer\", \"add_eos_token\": false}", false } };
    static const int32_t read[] = { 1, 7, 8 };
    copy_golden("llama");
    write_spm();
    qkv_model *m = load();
    check_greedy(m, "t7 t8", read, 3, 9, false);
    reads_side(m, QKV_SIDE_TARGET, "t5 t6", 0, "1 5 6 "); /* as generated from */
    reads_side(m, QKV_SIDE_TARGET, "t5 t6", 1, "5 6 ");
    reads_side(m, QKV_SIDE_TARGET, NULL, 0, "1 ");
    qkv_model_free(m);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        FILE *f = fopen(in_folder("tokenizer_config.json"), "w");
        assert_true(f && fputs(rows[i].config, f) >= 0 && !fclose(f));
        m = load();
        if (rows[i].begins) check_greedy(m, "t7 t8", read, 3, 9, false);
        else check_greedy(m, "t7 t8", read + 1, 2, 9, false);
        qkv_model_free(m);
    }
    unlink(in_folder("tokenizer_config.json"));
    set_key("config.json", "bos_token_id", "0"); /* <s> is not what a text begins with */
    m = load();
    check_greedy(m, "t7 t8", read + 1, 2, 9, false);
    qkv_model_free(m);
    vocabulary bare = of_llama; /* a tokenizer.json says it all: nothing is nothing */
    bare.single = bare.pair = NULL;
    m = golden_with("llama", &bare);
    check_greedy(m, "t7 t8", read + 1, 2, 9, false);
    qkv_model_free(m);
}

/* SentencePiece's files are copied from the folder; without it nothing is written, not half of a model. */
static void saving_without_its_folder(void **state)
{
    (void)state;
    char command[512];
    copy_golden("llama");
    write_spm();
    snprintf(command, sizeof command, "rm -rf %s.was %s.saved && cp -r %s %s.was", folder, folder, folder, folder);
    assert_int_equal(system(command), 0);
    char was[128], saved[128];
    snprintf(was, sizeof was, "%s.was", folder);
    snprintf(saved, sizeof saved, "%s.saved", folder);
    qkv_model *m = qkv_model_load(was, NULL);
    assert_non_null(m);
    snprintf(command, sizeof command, "rm -r %s", was);
    assert_int_equal(system(command), 0);
    assert_int_equal(qkv_model_save(m, saved, NULL), QKV_IO);
    assert_non_null(strstr(qkv_error(), was));
    assert_int_equal(access(saved, F_OK), -1);
    qkv_model_free(m);
}

/* Whichever of several ids comes first ends a text. */
static void several_ids_end_a_text(void **state)
{
    (void)state;
    copy_golden("llama");
    write_tokenizer(&of_llama);
    qkv_model *m = load();
    qkv_generated *g = NULL;
    assert_int_equal(qkv_generate(m, qkv_cstr("t7 t8"), &(qkv_generate_opts){ .max_tokens = 4 }, &g), QKV_OK);
    assert_int_equal(g->n, 4);
    int32_t third = g->ids[2];
    assert_true(third != g->ids[0] && third != g->ids[1]);
    qkv_model_free(m);
    char ends[32];
    snprintf(ends, sizeof ends, "[2, %d]", third);
    set_key("config.json", "eos_token_id", ends);
    m = load();
    check_greedy(m, "t7 t8", (const int32_t[]){ 1, 7, 8 }, 3, 20, true);
    assert_int_equal(qkv_generate(m, qkv_cstr("t7 t8"), &(qkv_generate_opts){ .start = 1, .end = -1 }, &g), QKV_OK);
    assert_int_equal(g->n, 64 - 3); /* options that are given count, and the context ends it */
    const qkv_generate_opts past = { .size = sizeof past, .max_tokens = 100, .start = 1, .end = -1, .past_context = 1 };
    assert_int_equal(qkv_generate(m, qkv_cstr("t7 t8"), &past, &g), QKV_OK);
    assert_int_equal(g->n, 100);
    qkv_model_free(m);
    set_key("config.json", "max_new_tokens", "2");
    m = load();
    assert_int_equal(qkv_generate(m, qkv_cstr("t7 t8"), NULL, &g), QKV_OK);
    assert_int_equal(g->n, 2);
    qkv_free(g);
    qkv_model_free(m);
}

static qkv_status gather_piece(void *data, const qkv_generated *so_far, qkv_str piece)
{
    (void)so_far;
    assert_int_equal(qkv_utf8_valid(piece.data, piece.length), piece.length);
    strncat(data, piece.data, piece.length);
    return QKV_OK;
}

/* Pieces together are what the tokenizer makes of all new ids, also where a character is several of them. */
static void pieces_are_the_text(void **state)
{
    (void)state;
    static const vocabulary bytes = {
        { "<unk>", "<s>", "</s>", "<0xE6>", "<0x97>", "<0xA5>", "\xE2\x96\x81word" },
        { 0, 1, 2, 9, 10, 11, 12 },
        "<s> A",
        "<s> A <s> B",
        "{\"type\": \"Sequence\", \"decoders\": [{\"type\": \"Replace\", \"pattern\": {\"String\": \"\xE2\x96\x81\"}, "
        "\"content\": \" \"}, {\"type\": \"ByteFallback\"}, {\"type\": \"Fuse\"}, {\"type\": \"Strip\", \"content\": \" \", "
        "\"start\": 1, \"stop\": 0}]}",
        NULL
    };
    qkv_model *m = golden_with("llama", &bytes);
    const qkv_tokenizer *t = qkv_model_tokenizer(m, QKV_SIDE_SOURCE);
    qkv_generated *g = NULL;
    qkv_text *repaired = NULL;
    qkv_text *all = NULL;
    int waited = 0;
    for (uint64_t seed = 0; seed < 60; seed++) {
        char pieces[4096] = "";
        const qkv_generate_opts o = {
            .max_tokens = 24, .temperature = 3, .seed = seed, .on_text = gather_piece, .on_text_data = pieces
        };
        const char *prompt = seed % 2 ? "t7" : "";
        assert_int_equal(qkv_generate(m, qkv_cstr(prompt), &o, &g), QKV_OK);
        int32_t ids[32] = { 7 };
        int64_t before = (int64_t)(seed % 2);
        memcpy(ids + before, g->ids, sizeof *ids * (size_t)g->n);
        assert_int_equal(qkv_tokenizer_decode(t, ids, before + g->n, 0, &all), QKV_OK);
        assert_int_equal(qkv_utf8_repair((qkv_str){ all->data, all->length }, &repaired), QKV_OK);
        assert_string_equal(pieces, repaired->data + (before ? 2 : 0));
        assert_string_equal(pieces, g->text.data);
        waited += strstr(pieces, "\xE6\x97\xA5") != NULL || strstr(pieces, "\xEF\xBF\xBD") != NULL;
    }
    assert_true(waited > 10);
    qkv_free(repaired);
    qkv_free(all);
    qkv_free(g);
    qkv_model_free(m);
}

/* ---- translation ---- */

static double greedy_by_hand(const qkv_model *m, const int32_t *source, int64_t n, int64_t most, int32_t *to, int64_t *n_to)
{
    int32_t ids[64] = { 22 };
    bool forbidden[VOCABULARY] = { [22] = true, [5] = true };
    double sum = 0;
    qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .inference = 1 });
    for (*n_to = 0; *n_to < most;) {
        double p[VOCABULARY];
        const float *logits = logits_of(m, t, source, n, ids, *n_to + 1) + *n_to * VOCABULARY;
        int32_t id = likeliest(logits, forbidden);
        softmax_of(logits, VOCABULARY, p);
        sum += log(p[id]);
        if (!id) break;
        to[*n_to] = ids[*n_to + 1] = id;
        ++*n_to;
    }
    qkv_tape_free(t);
    return sum;
}

static const char *const sources[] = { "t7 t8 t9", "t10", "t3 t4 t20 t21 t6", "  ", "t2 t2" };
static const int32_t source_ids[5][6] = { { 7, 8, 9, 0 }, { 10, 0 }, { 3, 4, 20, 21, 6, 0 }, { 0 }, { 2, 2, 0 } };
static const int64_t source_lengths[5] = { 4, 2, 6, 0, 3 };

static void translates_greedily(void **state)
{
    (void)state;
    qkv_model *m = golden_with("marian", &of_marian);
    qkv_translations *found = NULL;
    for (int64_t most = 0; most <= 20; most += 20) { /* 0: the files say 11 with the start */
        const qkv_translate_opts o = { .beam_size = 1, .max_length = most };
        assert_int_equal(qkv_translate(m, as_strings(sources, NULL, 5), 5, &o, &found), QKV_OK);
        for (int i = 0; i < 5; i++) {
            assert_int_equal(found->n_source[i], source_lengths[i]);
            if (!source_lengths[i]) continue;
            assert_memory_equal(found->source_ids[i], source_ids[i], sizeof(int32_t) * (size_t)source_lengths[i]);
            int32_t ids[64];
            int64_t n;
            double log_p = greedy_by_hand(m, source_ids[i], source_lengths[i], most ? most : 10, ids, &n);
            assert_int_equal(found->best[i].n_ids, n);
            assert_memory_equal(found->best[i].ids, ids, sizeof *ids * (size_t)n);
            assert_true(fabs(found->best[i].log_p - log_p) < 1e-4);
            int64_t length = n + !found->best[i].truncated;
            assert_true(fabs(found->best[i].score - log_p / pow((double)length, 0.8)) < 1e-4);
        }
    }
    qkv_free(found);
    qkv_model_free(m);
}

/* Without options a published model is searched as its files say; options win. */
static void search_is_by_the_files(void **state)
{
    (void)state;
    qkv_model *m = golden_with("marian", &of_marian);
    const int32_t banned[] = { 5 };
    const qkv_search_opts same = { .start = 22,
                                   .end = 0,
                                   .pad = 22,
                                   .beam_size = 4,
                                   .n_best = 4,
                                   .length_penalty = 0.8f,
                                   .length_norm = 1,
                                   .max_length = 10,
                                   .banned = banned,
                                   .n_banned = 1 };
    qkv_translations *found = NULL;
    qkv_search_result *wanted = NULL;
    assert_int_equal(qkv_beam_search(m, &(qkv_tokens){ .ids = source_ids[0], .rows = 1, .length = 4 }, &same, &wanted), QKV_OK);
    assert_int_equal(qkv_translate(m, as_strings(sources, NULL, 1), 1, &(qkv_translate_opts){ .n_best = 4 }, &found), QKV_OK);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(found->best[i].n_ids, wanted->best[i].n);
        assert_memory_equal(found->best[i].ids, wanted->best[i].ids, sizeof(int32_t) * (size_t)wanted->best[i].n);
        assert_true(found->best[i].score == wanted->best[i].score);
        for (int64_t k = 0; k < found->best[i].n_ids; k++)
            assert_true(found->best[i].ids[k] != 5 && found->best[i].ids[k] != 22);
    }
    const qkv_translate_opts narrower = { .beam_size = 4, .n_best = 5 };
    assert_int_equal(qkv_translate(m, as_strings(sources, NULL, 1), 1, &narrower, &found),
                     QKV_USAGE); /* more than its beam of 4 */
    const qkv_translate_opts wider = { .beam_size = 5, .n_best = 5, .no_length_penalty = 1, .max_length = 30 };
    assert_int_equal(qkv_translate(m, as_strings(sources, NULL, 1), 1, &wider, &found), QKV_OK);
    assert_true(found->best[0].score == found->best[0].log_p);
    const qkv_translate_opts prefixed = { .target_prefix = "t5" }; /* banned */
    assert_int_equal(qkv_translate(m, as_strings(sources, NULL, 1), 1, &prefixed, &found), QKV_USAGE);
    qkv_free(wanted), wanted = NULL;
    qkv_free(found), found = NULL;
    qkv_model_free(m);
    m = golden_with("marian", &of_marian);
    assert_int_equal(qkv_beam_search(m, &(qkv_tokens){ .ids = source_ids[0], .rows = 1, .length = 4 }, &same, &wanted), QKV_OK);
    const int32_t ends[] = { 0, 9, wanted->best[0].ids[2] };
    char listed[32];
    snprintf(listed, sizeof listed, "[0, 9, %d]", ends[2]);
    set_key("generation_config.json", "eos_token_id", listed);
    qkv_model *ending = load();
    qkv_search_opts several = same;
    several.ends = ends, several.n_ends = 3;
    assert_int_equal(qkv_beam_search(m, &(qkv_tokens){ .ids = source_ids[0], .rows = 1, .length = 4 }, &several, &wanted),
                     QKV_OK);
    assert_int_equal(qkv_translate(ending, as_strings(sources, NULL, 1), 1, &(qkv_translate_opts){ .n_best = 4 }, &found),
                     QKV_OK);
    int uncut = 0;
    for (int i = 0; i < 4; i++) {
        assert_int_equal(found->best[i].n_ids, wanted->best[i].n);
        assert_true(found->best[i].score == wanted->best[i].score);
        for (int64_t k = 0; k < found->best[i].n_ids; k++)
            assert_true(found->best[i].ids[k] != ends[1] && found->best[i].ids[k] != ends[2]);
        uncut += !found->best[i].truncated;
    }
    assert_true(uncut > 0);
    several.n_ends = -1;
    assert_int_equal(qkv_beam_search(m, &(qkv_tokens){ .ids = source_ids[0], .rows = 1, .length = 4 }, &several, &wanted),
                     QKV_USAGE);
    qkv_free(wanted);
    qkv_free(found);
    qkv_model_free(ending);
    qkv_model_free(m);
}

static void same_found(const qkv_translations *found, const qkv_search_result *wanted)
{
    for (int i = 0; i < 4; i++) {
        assert_int_equal(found->best[i].n_ids, wanted->best[i].n);
        if (wanted->best[i].n > 0)
            assert_memory_equal(found->best[i].ids, wanted->best[i].ids, sizeof(int32_t) * (size_t)wanted->best[i].n);
    }
}

/* Runs that do not come twice, and a padding whose id is 0. */
static void search_is_by_more_of_the_files(void **state)
{
    (void)state;
    qkv_model *m = golden_with("marian", &of_marian);
    qkv_translations *found = NULL;
    qkv_search_result *wanted = NULL;
    const int32_t banned = 5, end = 9;
    qkv_search_opts o = { .start = 22,
                          .end = 0,
                          .pad = 22,
                          .beam_size = 4,
                          .n_best = 4,
                          .length_penalty = 0.8f,
                          .length_norm = 1,
                          .max_length = 10,
                          .banned = &banned,
                          .n_banned = 1 };
    qkv_model_free(m);
    set_key("generation_config.json", "no_repeat_ngram_size", "1");
    m = load();
    for (int given = 0; given <= 2; given += 2) { /* an option wins */
        o.no_repeat_ngram = given ? given : 1;
        assert_int_equal(qkv_beam_search(m, &(qkv_tokens){ .ids = source_ids[0], .rows = 1, .length = 4 }, &o, &wanted),
                         QKV_OK);
        const qkv_translate_opts options = { .n_best = 4, .no_repeat_ngram = given };
        assert_int_equal(qkv_translate(m, as_strings(sources, NULL, 1), 1, &options, &found), QKV_OK);
        same_found(found, wanted);
    }
    qkv_model_free(m);
    set_key("generation_config.json", "no_repeat_ngram_size", "0");
    set_key("generation_config.json", "eos_token_id", "9");
    set_key("generation_config.json", "pad_token_id", "0");
    m = load();
    assert_int_equal(qkv__params_materialize(qkv_model_params(m)), QKV_OK);
    qkv_tensor_data_mut(qkv_params_find(qkv_model_params(m), "output.bias"))[0] = 20; /* which the model would like to say */
    o.no_repeat_ngram = 0, o.end = end, o.pad = 0;
    assert_int_equal(qkv_beam_search(m, &(qkv_tokens){ .ids = source_ids[0], .rows = 1, .length = 4 }, &o, &wanted), QKV_OK);
    assert_int_equal(qkv_translate(m, as_strings(sources, NULL, 1), 1, &(qkv_translate_opts){ .n_best = 4 }, &found), QKV_OK);
    same_found(found, wanted);
    o.pad = 22; /* else this shows nothing */
    assert_int_equal(qkv_beam_search(m, &(qkv_tokens){ .ids = source_ids[0], .rows = 1, .length = 4 }, &o, &wanted), QKV_OK);
    int zeros = 0;
    for (int i = 0; i < 4; i++)
        for (int64_t k = 0; k < wanted->best[i].n; k++) zeros += wanted->best[i].ids[k] == 0;
    assert_true(zeros > 0);
    qkv_free(wanted);
    qkv_free(found);
    qkv_model_free(m);
}

/* A tokenizer that puts nine tokens in one place is refused by whoever would read a text. */
static void too_many_marks(void **state)
{
    (void)state;
    static const char nine[] = "A <s> <s> <s> <s> <s> <s> <s> <s> <s>", eight[] = "A <s> <s> <s> <s> <s> <s> <s> <s>";
    static const char *const models[] = { "marian", "llama", "roberta_mlm" };
    for (int i = 0; i < 3; i++)
        for (int much = 0; much < 2; much++) {
            vocabulary v = {
                { "</s>", "<unk>", "<pad>", "<s>", "<mask>" }, { 0, 1, 2, 3, 4 }, much ? nine : eight, "A <s> B", NULL, NULL
            };
            qkv_model *m = golden_with(models[i], &v);
            const char *text = "t7 <mask>";
            qkv_translations *found = NULL;
            qkv_generated *g = NULL;
            qkv_filled *f = NULL;
            qkv_attention_capture *a = NULL;
            qkv_special_tokens tokens = { .size = sizeof tokens };
            qkv_status status = i == 0   ? qkv_translate(m, as_strings(&text, NULL, 1), 1, NULL, &found)
                                : i == 1 ? qkv_generate(m, (qkv_str){ text, 9 }, &(qkv_generate_opts){ .max_tokens = 1 }, &g)
                                         : qkv_fill_mask(m, (qkv_str){ text, 9 }, &(qkv_fill_opts){ .n_best = 1 }, &f);
            assert_int_equal(status, much ? QKV_UNSUPPORTED : QKV_OK);
            if (much) assert_non_null(strstr(qkv_error(), "more than 8 tokens in one place"));
            status = qkv_model_special_tokens(m, &tokens);
            assert_int_equal(status, much ? QKV_UNSUPPORTED : QKV_OK);
            status = qkv_attend(m, qkv_cstr("t7"), NULL, &a);
            assert_int_equal(status, much ? QKV_UNSUPPORTED : QKV_OK);
            qkv_free(found);
            qkv_free(g);
            qkv_free(f);
            qkv_free(a);
            qkv_model_free(m);
        }
}

/* The first ordinary id comes after what begins a text, be that special or not. */
static void ordinary_begins_after_the_marks(void **state)
{
    (void)state;
    vocabulary bare = of_roberta;
    bare.single = bare.pair = NULL;
    qkv_model_free(golden_with("roberta_mlm", &bare));
    set_key("config.json", "bos_token_id", "7");
    qkv_model *m = load();
    qkv_special_tokens tokens = { .size = sizeof tokens };
    assert_int_equal(qkv_model_special_tokens(m, &tokens), QKV_OK);
    assert_int_equal(tokens.start, 7);
    assert_int_equal(tokens.first_ordinary, 8);
    qkv_model_free(m);
}

static void sources_end_at_the_context(void **state)
{
    (void)state;
    qkv_model *m = golden_with("marian", &of_marian);
    const char *const texts[] = { "t7 t7 t7 t7 t7 t7 t7 t7 t7 t7 t7", "t7 t7 t7 t7 t7 t7 t7 t7 t7 t7 t7 t7" };
    qkv_translations *found = NULL;
    assert_int_equal(qkv_translate(m, as_strings(texts, NULL, 2), 2, NULL, &found), QKV_OK);
    assert_true(found->status[0] == QKV_OK && found->status[1] == QKV_LIMIT && found->n_source[1] == 13);
    qkv_free(found);
    qkv_model_free(m);
}

/* ---- language ---- */

static double nats_of(const qkv_model *m, const int32_t *ids, int64_t n)
{
    qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .inference = 1 });
    const float *logits = logits_of(m, t, ids, n, NULL, 0);
    double sum = 0, p[VOCABULARY];
    for (int64_t i = 0; i + 1 < n; i++) {
        softmax_of(logits + i * VOCABULARY, VOCABULARY, p);
        sum -= log(p[ids[i + 1]]);
    }
    qkv_tape_free(t);
    return sum;
}

static void documents_as_the_model_reads_them(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const vocabulary *v;
        int32_t ids[4];
    } rows[] = { { "llama", &of_llama, { 1, 7, 8, 2 } }, { "gpt2", &of_gpt2, { 22, 7, 8, 22 } } };
    for (int i = 0; i < 2; i++) {
        qkv_model *m = golden_with(rows[i].name, rows[i].v);
        qkv_nll sum = { 0 };
        assert_int_equal(qkv_log_likelihood(m, qkv_cstr("t7 t8"), &(qkv_likelihood_opts){ .context = 10 }, &sum), QKV_OK);
        assert_int_equal(sum.tokens, 3);
        assert_true(fabs(sum.nats - nats_of(m, rows[i].ids, 4)) < 1e-4);
        qkv_dataset *p = qkv_dataset_new();
        assert_int_equal(
            qkv_dataset_add(p, m, &(qkv_example){ .kind = QKV_EXAMPLE_DOCUMENT, .text = { "t7 t8", 5 }, .max_length = 10 }),
            QKV_OK);
        const qkv_loss o = qkv_loss_language_model();
        double loss;
        assert_int_equal(
            qkv_evaluate(m, p, &(qkv_evaluate_opts){ .loss = &o, .batches = &(qkv_batch_opts){ .target_has_both = 1 } }, &loss),
            QKV_OK);
        assert_true(fabs(loss - sum.nats / 3) < 1e-5);
        qkv_dataset_free(p);
        qkv_model_free(m);
    }
}

static void masks_words_of_bert(void **state)
{
    (void)state;
    qkv_model *m = golden_with("bert_mlm", &of_bert);
    qkv_special_tokens f = { .size = sizeof f };
    assert_int_equal(qkv_model_special_tokens(m, &f), QKV_OK);
    const qkv_loss o = qkv_loss_masked_lm(m, &QKV_OPTS(qkv_masked_lm_opts, .rate = 0.5f));
    qkv_dataset *p = qkv_dataset_new();
    assert_int_equal(qkv_dataset_add(p, m, &(qkv_example){ .kind = QKV_EXAMPLE_TEXT, .text = { "t7 t8 t9 t10", 12 } }), QKV_OK);
    qkv_loader *e = qkv_loader_new(p, &(qkv_batch_opts){ .start = f.start, .end = f.end, .pad = f.pad }, 0);
    qkv_batch *b = NULL;
    int masked = 0;
    for (uint64_t pass = 0; pass < 20; pass++) {
        const int32_t whole[] = { 2, 7, 8, 9, 10, 3 };
        assert_int_equal(qkv_loader_batch(e, 0, &b), QKV_OK);
        assert_int_equal(b->source_length, 6);
        assert_memory_equal(b->source, whole, sizeof whole);
        assert_int_equal(o.prepare(&o, b, 1, pass), QKV_OK);
        assert_true(b->source[0] == 2 && b->source[5] == 3);
        for (int i = 0; i < 6; i++) masked += b->source[i] == f.mask;
        qkv_tape *t = qkv_tape_new(NULL);
        assert_non_null(o.compute(&o, m, t, b, 0));
        qkv_tape_free(t);
    }
    assert_true(masked > 10);
    qkv_free(b);
    qkv_loader_free(e);
    qkv_dataset_free(p);
    qkv_model_free(m);
}

/* ---- attention ---- */

static void check_side(const qkv_axis *s, int n, const char *const *names, const uint8_t *special)
{
    assert_int_equal(s->n, n);
    for (int i = 0; i < n; i++) {
        assert_string_equal(s->names[i], names[i]);
        assert_int_equal(s->is_special[i], special[i]);
    }
}

static void attends(void **state)
{
    (void)state;
    qkv_attention_capture *a = NULL;
    qkv_model *m = golden_with("bert_mlm", &of_bert);
    assert_int_equal(qkv_attend(m, qkv_cstr("t7  Word t8"), NULL, &a), QKV_OK);
    check_side(&a->source, 5, (const char *[]){ "[CLS]", "t7", "Word", "t8", "[SEP]" }, (const uint8_t[]){ 1, 0, 0, 0, 1 });
    assert_int_equal(a->layers[QKV_ATTENTION_ENCODER], 2);
    qkv_model_free(m);
    m = golden_with("marian", &of_marian);
    assert_int_equal(qkv_attend(m, qkv_cstr("t7 t8"), &(qkv_attend_opts){ .target = qkv_cstr("t9") }, &a), QKV_OK);
    check_side(&a->source, 3, (const char *[]){ "t7", "t8", "</s>" }, (const uint8_t[]){ 0, 0, 1 });
    check_side(&a->target, 2, (const char *[]){ "<pad>", "t9" }, (const uint8_t[]){ 1, 0 });
    check_side(&a->predicted, 2, (const char *[]){ "t9", "</s>" }, (const uint8_t[]){ 0, 1 });
    assert_int_equal(qkv_attend(m, qkv_cstr("t7 t8"), NULL, &a), QKV_OK);
    qkv_translations *found = NULL;
    assert_int_equal(qkv_translate(m, as_strings((const char *[]){ "t7 t8" }, NULL, 1), 1, NULL, &found), QKV_OK);
    assert_int_equal(a->found->n_ids, found->best->n_ids);
    assert_memory_equal(a->found->ids, found->best->ids, sizeof(int32_t) * (size_t)found->best->n_ids);
    qkv_free(found);
    qkv_model_free(m);
    m = golden_with("gpt2", &of_gpt2);
    assert_int_equal(qkv_attend(m, qkv_cstr("t7 t8"), NULL, &a), QKV_OK);
    check_side(&a->target, 2, (const char *[]){ "t7", "t8" }, (const uint8_t[]){ 0, 0 });
    qkv_model_free(m);
    m = golden_with("llama", &of_llama);
    assert_int_equal(qkv_attend(m, qkv_cstr("t7 t8"), &(qkv_attend_opts){ .target = qkv_cstr("t9") }, &a), QKV_OK);
    assert_string_equal(a->target.names[0], "<s>");
    qkv_model_free(m);
    qkv_free(a);
}

/* Tokens of single bytes are one unit where they make one character. */
static void bytes_are_one_unit(void **state)
{
    (void)state;
    qkv_tokenizer *t = qkv_tokenizer_load(QKV_GOLDEN "/spm_bytes.model");
    assert_non_null(t);
    const qkv_config o = { .vocab_size = qkv_tokenizer_vocab_size(t), .decoder_layers = 1, .dim = 8, .heads = 1, .d_ff = 8 };
    qkv_model *m = qkv_model_new(&o, 1);
    assert_int_equal(qkv_model_set_tokenizers(m, t, NULL), QKV_OK);
    qkv_attention_capture *a = NULL;
    static const char text[] = "a \xF0\x9F\xA6\xA9 b"; /* a flamingo, which no token spells */
    assert_int_equal(qkv_attend(m, qkv_cstr(text), NULL, &a), QKV_OK);
    int birds = 0;
    for (int64_t i = 0; i < a->target.n; i++)
        if (!strcmp(a->target.names[i], "\xF0\x9F\xA6\xA9"))
            birds++, assert_int_equal(a->target.first[i + 1] - a->target.first[i], 4);
    assert_int_equal(birds, 1);
    qkv_free(a);
    qkv_model_free(m);
}

/* ---- files that go with a model ---- */

static void put_text(const char *name, const char *text)
{
    FILE *f = fopen(in_folder(name), "w");
    assert_true(f && fputs(text, f) >= 0 && !fclose(f));
}

static bool is_in_copy(const char *name)
{
    char path[300];
    snprintf(path, sizeof path, "%s-copy/%s", folder, name);
    return access(path, F_OK) == 0;
}

/* What is about a tokenizer goes along, whatever else lies there stays; a folder that is gone is an error. */
static void files_go_along(void **state)
{
    (void)state;
    char copy[100], command[300];
    snprintf(copy, sizeof copy, "%s-copy", folder);
    snprintf(command, sizeof command, "rm -rf %s", copy);
    qkv_model_free(golden_with("llama", &of_llama));
    put_text("tokenizer_config.json", "{}");
    put_text("special_tokens_map.json", "{}");
    put_text("README.md", "");
    put_text("vocab.json", "{}");
    qkv_model *m = load();
    assert_int_equal(qkv_model_save(m, copy, NULL), QKV_OK);
    assert_true(is_in_copy("tokenizer_config.json") && is_in_copy("special_tokens_map.json") && is_in_copy("tokenizer.json"));
    assert_true(!is_in_copy("README.md") && !is_in_copy("vocab.json"));
    assert_int_equal(system(command), 0);
    qkv_model_free(m);
    unlink(in_folder("tokenizer.json"));
    write_spm(); /* which cannot be written anew */
    m = load();
    assert_int_equal(qkv_model_save(m, copy, NULL), QKV_OK);
    assert_true(is_in_copy("tokenizer_config.json") && is_in_copy("tokenizer.model") && is_in_copy("vocab.json"));
    assert_true(!is_in_copy("README.md") && !is_in_copy("tokenizer.json"));
    assert_int_equal(system(command), 0);
    unlink(in_folder("tokenizer_config.json")); /* a file that cannot be read is not written as an empty one */
    assert_int_equal(symlink("nowhere", in_folder("special_tokens_map.json.new")), 0);
    assert_int_equal(rename(in_folder("special_tokens_map.json.new"), in_folder("special_tokens_map.json")), 0);
    assert_int_equal(qkv_model_save(m, copy, NULL), QKV_IO);
    assert_int_equal(system(command), 0);
    char gone[100];
    snprintf(gone, sizeof gone, "%s-gone", folder);
    assert_int_equal(rename(folder, gone), 0);
    assert_int_equal(qkv_model_save(m, copy, NULL), QKV_IO);
    assert_int_equal(rename(gone, folder), 0);
    assert_int_equal(system(command), 0);
    qkv_model_free(m);
}

/* ---- memory that is out ---- */

static qkv_status all_of_it(void)
{
    static const char *const text[] = { "t7 [MASK]" }, *const second[] = { "t9" };
    qkv_model *m = qkv_model_load(folder, NULL);
    qkv_filled *filled = NULL;
    qkv_matrix *rows = NULL;
    qkv_dataset *p = m ? qkv_dataset_new() : NULL;
    qkv_status status = p ? QKV_OK : qkv_error_status();
    if (!status) status = qkv_fill_mask(m, (qkv_str){ *text, 9 }, &(qkv_fill_opts){ .n_best = 3 }, &filled);
    if (!status)
        status = qkv_embed(m, as_strings(text, NULL, 1), 1,
                           &(qkv_embed_opts){ .reading = &(qkv_encoder_opts){ .pairs = as_strings(second, NULL, 1) } }, &rows);
    if (!status)
        status = qkv_dataset_add(
            p, m, &(qkv_example){ .kind = QKV_EXAMPLE_CLASS, .text = { *text, 9 }, .pair = { *second, 2 }, .class_id = 1 });
    if (!status) status = qkv_dataset_add(p, m, &(qkv_example){ .kind = QKV_EXAMPLE_TEXT, .text = { *text, 9 } });
    qkv_free(filled);
    qkv_free(rows);
    qkv_dataset_free(p);
    qkv_model_free(m);
    return status;
}

static qkv_status all_of_llama(void)
{
    qkv_model *m = qkv_model_load(folder, NULL);
    qkv_generated *g = NULL;
    qkv_status status = m ? QKV_OK : qkv_error_status();
    if (!status) status = qkv_generate(m, qkv_cstr("t7"), &(qkv_generate_opts){ .max_tokens = 3 }, &g);
    qkv_free(g);
    qkv_model_free(m);
    return status;
}

static void memory_runs_out(void **state)
{
    (void)state;
    qkv_model_free(golden_with("bert_mlm", &of_bert));
    assert_true(each_allocation_fails(all_of_it) > 20);
    qkv_model_free(golden_with("llama", &of_llama));
    assert_true(each_allocation_fails(all_of_llama) > 20);
}

/* What is out of a window is hidden, in a layer's map and where all layers have one, and has no weight. */
static void windows_are_shown(void **state)
{
    (void)state;
    const char *text = "t5 t6 t7 t8 t9";
    copy_golden("mistral");
    write_tokenizer(&of_llama);
    set_key("config.json", "sliding_window", "2");
    qkv_model *m = load();
    qkv_attention_capture *a = NULL;
    qkv_attention_maps maps = { 0 };
    assert_int_equal(qkv_attend(m, qkv_cstr(text), NULL, &a), QKV_OK);
    for (int layer = -1; layer < 2; layer++) {
        const qkv_attention_maps_opts o = { .kind = QKV_ATTENTION_DECODER, .layer = layer, .head = QKV_ATTENTION_MEAN };
        assert_int_equal(qkv_attention_maps_make(a, &o, &maps), QKV_OK);
        int64_t n = maps.rows->n;
        assert_int_equal(n, 6);
        for (int64_t i = 0; i < n * n; i++) {
            bool hidden = i % n > i / n || i / n - i % n >= 2;
            assert_int_equal(maps.hidden[i], hidden);
            assert_int_equal(maps.maps[0].weights[i] == 0, hidden);
        }
    }
    qkv_attention_maps_free(&maps);
    qkv_free(a);
    qkv_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sides_as_they_are_read),
        cmocka_unit_test(windows_are_shown),
        cmocka_unit_test(frames),
        cmocka_unit_test(classes_are_pytorchs),
        cmocka_unit_test(pairs_have_types),
        cmocka_unit_test(pairs_of_roberta),
        cmocka_unit_test(learning_reads_alike),
        cmocka_unit_test(embeds_as_published),
        cmocka_unit_test(fills_masks),
        cmocka_unit_test(fills_word_pieces),
        cmocka_unit_test(fills_refusals),
        cmocka_unit_test(fills_the_id_0),
        cmocka_unit_test(fills_in_a_nul),
        cmocka_unit_test(fills_in_ours),
        cmocka_unit_test(generates_greedily),
        cmocka_unit_test(prompts_of_byte_pairs_begin_with_nothing),
        cmocka_unit_test(prompts_of_sentencepiece_begin_as_said),
        cmocka_unit_test(saving_without_its_folder),
        cmocka_unit_test(several_ids_end_a_text),
        cmocka_unit_test(pieces_are_the_text),
        cmocka_unit_test(translates_greedily),
        cmocka_unit_test(search_is_by_the_files),
        cmocka_unit_test(search_is_by_more_of_the_files),
        cmocka_unit_test(too_many_marks),
        cmocka_unit_test(ordinary_begins_after_the_marks),
        cmocka_unit_test(sources_end_at_the_context),
        cmocka_unit_test(documents_as_the_model_reads_them),
        cmocka_unit_test(masks_words_of_bert),
        cmocka_unit_test(attends),
        cmocka_unit_test(bytes_are_one_unit),
        cmocka_unit_test(files_go_along),
        cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
