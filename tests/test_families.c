/* test_families.c: published models as their files have them: the numbers that PyTorch gives for them, what their configs say
 * besides, and models of ours saved under their names. */
#include <qkv/qkv.h>
#include <qkv/unstable/util.h>

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
#include "failing.h"
#include "folder.h"
#include "io/safetensors.h"
#include "kern/kern.h"
#include "model/classes.h"
#include "nn/params.h"
#include "tensor/packed.h"
#include "tensor/types.h"
#include "model/model.h"

enum { BATCH = 2, MOST = 8192 };

static const char *const names[] = { "marian",
                                     "bert_mlm",
                                     "bert_classify",
                                     "bert_sentence",
                                     "distilbert_mlm",
                                     "roberta_mlm",
                                     "roberta_classify",
                                     "distilbert_classify",
                                     "gpt2",
                                     "llama",
                                     "qwen2",
                                     "mistral",
                                     "pegasus",
                                     "modernbert_mlm",
                                     "modernbert_classify",
                                     "t5",
                                     "flan_t5",
                                     "bart",
                                     "mbart",
                                     "m2m_100",
                                     "mpnet_mlm",
                                     "mpnet_classify",
                                     "electra_mlm",
                                     "electra_classify",
                                     "albert_mlm",
                                     "albert_classify",
                                     "modernbert_window",
                                     "umt5",
                                     "bart_classify",
                                     "bert_tag",
                                     "bert_answer",
                                     "roberta_tag",
                                     "roberta_answer",
                                     "distilbert_tag",
                                     "distilbert_answer",
                                     "modernbert_tag",
                                     "modernbert_answer",
                                     "electra_tag",
                                     "electra_answer",
                                     "albert_tag",
                                     "albert_answer",
                                     "mpnet_tag",
                                     "mpnet_answer" };
enum { MODELS = sizeof names / sizeof *names };

static const char *golden_folder(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, QKV_GOLDEN "/families/%s", name);
    return path;
}

static qkv_model *load(const char *path)
{
    qkv_model *m = qkv_model_load(path, NULL);
    if (!m) fail_msg("%s: %s", path, qkv_error());
    return m;
}

/* ---- what PyTorch says ---- */

static qkv__safetensors golden;

static qkv_status open_golden(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, QKV_GOLDEN "/families/%s/golden.safetensors", name);
    return qkv__safetensors_read(path, &golden);
}

/* NULL when it has none. */
static const float *numbers(const char *name, int64_t *count)
{
    const qkv__stored *t = qkv__safetensors_find(&golden, name);
    if (count) *count = t ? t->count : 0;
    return t ? qkv__safetensors_floats(t) : NULL;
}

static int64_t dimension(const char *name, int i) { return qkv__safetensors_find(&golden, name)->shape[i]; }

static void whole_numbers(const char *name, int32_t *to)
{
    int64_t n;
    const float *values = numbers(name, &n);
    assert_non_null(values);
    for (int64_t i = 0; i < n; i++) to[i] = (int32_t)values[i];
}

/* Rows of padding are not compared. */
static void compare(const char *model, const char *what, qkv_tensor *got, const int32_t *lengths)
{
    int64_t n;
    const float *expected = numbers(what, &n);
    if (!got) fail_msg("%s: %s: %s", model, what, qkv_error());
    assert_int_equal(qkv_tensor_count(got), n);
    int64_t width = qkv_tensor_dim(got, -1), length = qkv_tensor_ndim(got) == 3 ? qkv_tensor_dim(got, 1) : 1;
    for (int64_t i = 0; i < n; i++) {
        int64_t row = i / width / length, place = i / width % length;
        if (lengths && place >= lengths[row]) continue;
        double difference = fabs((double)qkv_tensor_data(got)[i] - (double)expected[i]);
        if (!(difference <= 1e-4))
            fail_msg("%s: %s: number %lld is %.8g, PyTorch says %.8g", model, what, (long long)i,
                     (double)qkv_tensor_data(got)[i], (double)expected[i]);
    }
}

typedef struct batch {
    int32_t ids[64], types[64], target[64], lengths[BATCH], target_lengths[BATCH];
    int64_t length, target_length;
} batch;

static batch read_batch(bool has_target)
{
    batch b = { .length = dimension("ids", 1) };
    whole_numbers("ids", b.ids);
    whole_numbers("types", b.types);
    whole_numbers("lengths", b.lengths);
    if (has_target) {
        b.target_length = dimension("target", 1);
        whole_numbers("target", b.target);
        whole_numbers("target_lengths", b.target_lengths);
    }
    return b;
}

/* The last hidden states of a batch. */
static qkv_tensor *run(const qkv_model *model, qkv_tape *t, const batch *b)
{
    const qkv__transformer *m = qkv__model_transformer(model);
    const qkv_config *o = qkv__transformer_config(m);
    if (!o->encoder_layers)
        return qkv__transformer_decode(
            m, t, &(qkv_tokens){ .ids = b->ids, .rows = BATCH, .length = b->length, .lengths = b->lengths }, NULL, NULL);
    qkv_tensor *x = qkv__transformer_encode(m, t,
                                            &(qkv_tokens){ .ids = b->ids,
                                                           .types = o->token_types ? b->types : NULL,
                                                           .rows = BATCH,
                                                           .length = b->length,
                                                           .lengths = b->lengths });
    if (!o->decoder_layers) return x;
    return qkv__transformer_decode(
        m, t, &(qkv_tokens){ .ids = b->target, .rows = BATCH, .length = b->target_length, .lengths = b->target_lengths }, x,
        b->lengths);
}

static void compare_folder(const char *path, const char *name)
{
    qkv_model *model = load(path);
    const qkv__transformer *m = qkv__model_transformer(model);
    const qkv_config *o = qkv__transformer_config(m);
    assert_int_equal(open_golden(name), QKV_OK);
    batch b = read_batch(o->encoder_layers && o->decoder_layers);
    qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .inference = 1, .keep_hidden = 1 });
    qkv_tensor *last = run(model, t, &b);
    const int32_t *lengths = o->encoder_layers && o->decoder_layers ? b.target_lengths : b.lengths;
    int n = 0;
    for (char what[32]; snprintf(what, sizeof what, "hidden.%d", n), numbers(what, NULL); n++)
        compare(name, what, qkv_tape_hidden(t, n), n <= o->encoder_layers || !o->encoder_layers ? b.lengths : b.target_lengths);
    assert_true(n >= 2);
    assert_null(qkv_tape_hidden(t, n));
    if (numbers("tags", NULL)) compare(name, "tags", qkv__transformer_tag(m, last), lengths);
    if (numbers("logits", NULL)) compare(name, "logits", qkv__transformer_logits(m, last), lengths);
    if (numbers("classes", NULL)) compare(name, "classes", qkv__transformer_classify(m, last, b.lengths), NULL);
    if (o->classes && o->decoder_layers) {
        const qkv_batch alone = { .rows = BATCH, .source_length = b.length, .source = b.ids, .source_lengths = b.lengths };
        compare(name, "classes", qkv__classify_batch(model, t, &alone), NULL);
    }
    qkv_tape_free(t);
    qkv__safetensors_free(&golden);
    qkv_model_free(model);
}

static void compare_model(const char *name) { compare_folder(golden_folder(name), name); }

static void parity_with_pytorch(void **state)
{
    (void)state;
    for (int i = 0; i < MODELS; i++) compare_model(names[i]);
}

/* ---- token by token ---- */

static void steps_equal_a_whole_forward(void **state)
{
    (void)state;
    static const char *const decoders[] = { "marian", "pegasus", "gpt2", "llama", "qwen2", "mistral",
                                            "t5",     "flan_t5", "umt5", "bart",  "mbart", "m2m_100" };
    for (size_t i = 0; i < sizeof decoders / sizeof *decoders; i++) {
        qkv_model *model = load(golden_folder(decoders[i]));
        const qkv__transformer *m = qkv__model_transformer(model);
        bool has_encoder = qkv__transformer_config(m)->encoder_layers > 0;
        assert_int_equal(open_golden(decoders[i]), QKV_OK);
        batch b = read_batch(has_encoder);
        const int32_t *ids = has_encoder ? b.target : b.ids;
        int64_t length = has_encoder ? b.target_length : b.length;
        qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .inference = 1 });
        qkv_tensor *memory = has_encoder
                                 ? qkv__transformer_encode(
                                       m, t,
                                       &(qkv_tokens){ .ids = b.ids, .rows = BATCH, .length = b.length, .lengths = b.lengths })
                                 : NULL;
        qkv_tensor *whole = qkv__transformer_logits(
            m, qkv__transformer_decode(m, t, &(qkv_tokens){ .ids = ids, .rows = BATCH, .length = length }, memory,
                                       memory ? b.lengths : NULL));
        qkv_session *s = qkv_session_new(model, NULL);
        assert_int_equal(
            has_encoder
                ? qkv_session_encode(s, &(qkv_tokens){ .ids = b.ids, .rows = BATCH, .length = b.length, .lengths = b.lengths })
                : qkv_session_start(s, BATCH),
            QKV_OK);
        int64_t size = qkv_tensor_dim(whole, -1);
        for (int64_t n = 0; n < length; n++) {
            assert_int_equal(qkv_session_read(s, (int32_t[]){ ids[n], ids[length + n] }, NULL, QKV_LOGITS_LAST), QKV_OK);
            const float *logits = qkv_tensor_data(qkv_session_logits(s));
            for (int r = 0; r < BATCH; r++)
                assert_memory_equal(logits + r * size, qkv_tensor_data(whole) + (r * length + n) * size,
                                    sizeof(float) * (size_t)size);
        }
        qkv_session_free(s);
        qkv_tape_free(t);
        qkv__safetensors_free(&golden);
        qkv_model_free(model);
    }
}

/* PyTorch's choices, one after another: each the likeliest token that a row does not have yet. */
static void compare_greedy(const char *name)
{
    qkv_model *m = load(golden_folder(name));
    assert_int_equal(open_golden(name), QKV_OK);
    batch b = read_batch(true);
    int64_t length = dimension("greedy", 1), size = qkv__model_config(m)->vocab_size;
    const float *wanted = numbers("greedy", NULL);
    int32_t start = qkv__model_get_info(m)->start, ids[BATCH] = { start, start };
    bool written[BATCH][64] = { { false } };
    written[0][start] = written[1][start] = true;
    qkv_session *s = qkv_session_new(m, NULL);
    assert_int_equal(
        qkv_session_encode(s, &(qkv_tokens){ .ids = b.ids, .rows = BATCH, .length = b.length, .lengths = b.lengths }), QKV_OK);
    for (int64_t n = 0; n < length; n++) {
        assert_int_equal(qkv_session_read(s, ids, NULL, QKV_LOGITS_LAST), QKV_OK);
        for (int r = 0; r < BATCH; r++) {
            const float *logits = qkv_tensor_data(qkv_session_logits(s)) + r * size;
            ids[r] = -1;
            for (int32_t i = 0; i < size; i++)
                if (!written[r][i] && (ids[r] < 0 || logits[i] > logits[ids[r]])) ids[r] = i;
            if (ids[r] != (int)wanted[r * length + n])
                fail_msg("%s: token %lld of row %d is %d, PyTorch says %d", name, (long long)n, r, ids[r],
                         (int)wanted[r * length + n]);
            written[r][ids[r]] = true;
        }
    }
    assert_int_equal(length, 20);
    qkv_session_free(s);
    qkv__safetensors_free(&golden);
    qkv_model_free(m);
}

static void writes_what_pytorch_writes(void **state)
{
    (void)state;
    static const char *const writers[] = { "pegasus", "t5", "flan_t5", "umt5", "bart", "mbart", "m2m_100" };
    for (size_t i = 0; i < sizeof writers / sizeof *writers; i++) compare_greedy(writers[i]);
}

/* ---- gradients ---- */

/* The mean cross-entropy of what a model says: of its classes with 0 and 1, or of its logits with the ids that it read. */
static qkv_tensor *loss_of(const qkv_model *model, qkv_tape *t, const batch *b)
{
    static const int32_t classes[BATCH] = { 0, 1 };
    const qkv__transformer *m = qkv__model_transformer(model);
    const qkv_config *o = qkv__transformer_config(m);
    qkv_tensor *last = run(model, t, b);
    if (o->classes) return qkv_cross_entropy(qkv__transformer_classify(m, last, b->lengths), classes, NULL);
    int64_t length = o->decoder_layers ? b->target_length : b->length;
    const int32_t *ids = o->decoder_layers ? b->target : b->ids, *lengths = o->decoder_layers ? b->target_lengths : b->lengths;
    int32_t labels[64];
    for (int64_t i = 0; i < BATCH * length; i++) labels[i] = i % length < lengths[i / length] ? ids[i] : QKV_IGNORE;
    return qkv_cross_entropy(qkv__transformer_logits(m, last), labels, NULL);
}

static int compare_gradients(const char *name)
{
    int compared = 0;
    qkv_model *model = load(golden_folder(name));
    qkv_params *p = qkv__model_params(model);
    assert_int_equal(open_golden(name), QKV_OK);
    assert_int_equal(qkv__params_materialize(p), QKV_OK);
    qkv_params_zero_grad(p);
    batch b = read_batch(qkv__model_config(model)->decoder_layers > 0);
    qkv_tape *t = qkv_tape_new(NULL);
    assert_int_equal(qkv_backward(loss_of(model, t, &b)), QKV_OK);
    for (int i = 0; i < qkv_params_size(p); i++) {
        char what[128];
        int64_t n;
        snprintf(what, sizeof what, "grad.%s", qkv_params_name(p, i));
        const float *expected = numbers(what, &n), *got = qkv_tensor_grad(qkv_params_at(p, i));
        for (int64_t k = 0; k < n; k++)
            if (!(fabs((double)got[k] - (double)expected[k]) <= 1e-4))
                fail_msg("%s: %s: number %lld is %.8g, PyTorch says %.8g", name, what, (long long)k, (double)got[k],
                         (double)expected[k]);
        compared += n > 0;
    }
    qkv_tape_free(t);
    qkv__safetensors_free(&golden);
    qkv_model_free(model);
    return compared;
}

static void gradients_of_pytorch(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int weights;
    } rows[] = { { "t5", 6 },
                 { "flan_t5", 7 },
                 { "bart", 5 },
                 { "mbart", 5 },
                 { "m2m_100", 3 },
                 { "mpnet_mlm", 2 },
                 { "mpnet_classify", 2 },
                 { "electra_mlm", 4 },
                 { "electra_classify", 4 },
                 { "albert_mlm", 3 },
                 { "albert_classify", 3 },
                 { "modernbert_window", 4 },
                 { "umt5", 4 },
                 { "bart_classify", 6 } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) assert_int_equal(compare_gradients(rows[i].name), rows[i].weights);
}

/* ---- what the files say ---- */

static void info_of_marian(void **state)
{
    (void)state;
    qkv_model *m = load(golden_folder("marian"));
    const qkv__model_info *f = qkv__model_get_info(m);
    assert_string_equal(f->family, "marian");
    assert_int_equal(f->can, QKV_CAN_TRANSLATE);
    assert_true(f->start == 22 && f->pad == 22 && f->begin == -1 && f->n_ends == 1 && f->ends[0] == 0);
    assert_true(f->beam == 4 && f->length_penalty == 0.8f && f->max_length == 11); /* generation_config.json overrides */
    assert_true(f->n_banned == 2 && f->banned[0] == 22 && f->banned[1] == 5 && f->context == 12 && f->files == 1);
    assert_true(f->bytes > 50000);
    qkv_model_free(m);
}

static void info_of_the_others(void **state)
{
    (void)state;
    static const struct {
        const char *name, *family;
        int can;
        int64_t context;
        int n_ends;
        int32_t end, begin;
    } rows[] = { { "pegasus", "pegasus", QKV_CAN_TRANSLATE, 32, 1, 1, 0 },
                 { "bert_mlm", "bert", QKV_CAN_EMBED | QKV_CAN_FILL, 12, 0, 0, -1 },
                 { "bert_classify", "bert", QKV_CAN_EMBED | QKV_CAN_CLASSIFY, 12, 0, 0, -1 },
                 { "distilbert_mlm", "distilbert", QKV_CAN_EMBED | QKV_CAN_FILL, 12, 0, 0, -1 },
                 { "roberta_mlm", "roberta", QKV_CAN_EMBED | QKV_CAN_FILL, 10, 1, 2, 0 },
                 { "modernbert_mlm", "modernbert", QKV_CAN_EMBED | QKV_CAN_FILL, 12, 1, 3, 2 },
                 { "modernbert_classify", "modernbert", QKV_CAN_EMBED | QKV_CAN_CLASSIFY, 12, 1, 3, 2 },
                 { "bert_tag", "bert", QKV_CAN_EMBED | QKV_CAN_TAG, 12, 0, 0, -1 },
                 { "modernbert_tag", "modernbert", QKV_CAN_EMBED | QKV_CAN_TAG, 12, 1, 3, 2 },
                 { "modernbert_answer", "modernbert", QKV_CAN_EMBED | QKV_CAN_ANSWER, 12, 1, 3, 2 },
                 { "gpt2", "gpt2", QKV_CAN_GENERATE, 12, 1, 22, 22 },
                 { "llama", "llama", QKV_CAN_GENERATE, 64, 2, 2, 1 },
                 { "qwen2", "qwen2", QKV_CAN_GENERATE, 64, 1, 2, 1 },
                 { "mistral", "mistral", QKV_CAN_GENERATE, 64, 1, 2, 1 } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        qkv_model *m = load(golden_folder(rows[i].name));
        const qkv__model_info *f = qkv__model_get_info(m);
        assert_string_equal(f->family, rows[i].family);
        assert_int_equal(f->can, rows[i].can);
        assert_int_equal(f->context, rows[i].context);
        assert_int_equal(f->n_ends, rows[i].n_ends);
        if (f->n_ends) assert_int_equal(f->ends[0], rows[i].end);
        assert_int_equal(f->begin, rows[i].begin);
        qkv_model_free(m);
    }
    qkv_model *m = load(golden_folder("roberta_classify"));
    assert_string_equal(qkv_model_label(m, 2), "good");
    assert_null(qkv_model_label(m, 3));
    qkv_model_free(m);
    m = load(golden_folder("bert_sentence"));
    const qkv__model_info *f = qkv__model_get_info(m);
    assert_true(f->can == QKV_CAN_EMBED && f->pooling == QKV_POOLING_MEAN && f->normalise == 1 && f->embed_length == 10);
    qkv_model_free(m);
}

/* ---- folders of our own ---- */

/* Copies a golden model's folder, but for golden.safetensors. */
static void copy_golden(const char *name)
{
    char command[1024];
    snprintf(command, sizeof command, "rm -rf %s && cp -r '%s' %s && rm %s/golden.safetensors && chmod -R u+w %s", folder,
             golden_folder(name), folder, folder, folder);
    assert_int_equal(system(command), 0);
}

/* Sets a key of a JSON file in the folder; a NULL value removes it. */
static void set_key(const char *file, const char *key, const char *value)
{
    const qkv__json_value *config = json_read(in_folder(file));
    if (!config) config = json_parse_text("{}");
    json_edit(&config, key, value);
    assert_int_equal(json_write(config, in_folder(file)), 0);
    json_free(config);
}

/* CamemBERT and XLM-RoBERTa are RoBERTas by other names: what PyTorch says of those, all of it. */
static void other_names_of_roberta(void **state)
{
    (void)state;
    static const char *const types[][2] = { { "camembert", "Camembert" }, { "xlm-roberta", "XLMRoberta" } };
    static const char *const models[][2] = { { "roberta_mlm", "ForMaskedLM" },
                                             { "roberta_classify", "ForSequenceClassification" },
                                             { "roberta_tag", "ForTokenClassification" },
                                             { "roberta_answer", "ForQuestionAnswering" } };
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 4; k++) {
            char type[32], architectures[64];
            snprintf(type, sizeof type, "\"%s\"", types[i][0]);
            snprintf(architectures, sizeof architectures, "[\"%s%s\"]", types[i][1], models[k][1]);
            copy_golden(models[k][0]);
            set_key("config.json", "model_type", type);
            set_key("config.json", "architectures", architectures);
            compare_folder(folder, models[k][0]);
        }
}

static void refuses(const char *row, qkv_status status, const char *words)
{
    qkv_model *m = qkv_model_load(folder, NULL);
    if (m) fail_msg("%s: it was loaded", row);
    if (qkv_error_status() != status || !strstr(qkv_error(), words))
        fail_msg("%s: status %d, \"%s\"; expected %d, \"%s\"", row, (int)qkv_error_status(), qkv_error(), (int)status, words);
}

static void bad_keys(void **state)
{
    (void)state;
    static const struct {
        const char *model, *file, *key, *value;
        qkv_status status;
        const char *words;
    } rows[] = {
        { "bert_mlm", "config.json", "model_type", "\"xlnet\"", QKV_UNSUPPORTED, "\"xlnet\": supported are marian" },
        { "bert_mlm", "config.json", "model_type", "7", QKV_FORMAT, "\"model_type\" is missing" },
        { "bert_mlm", "config.json", "model_type", NULL, QKV_OK, "" }, /* its architecture tells */
        { "bert_mlm", "config.json", "architectures", "[\"BertForMultipleChoice\"]", QKV_UNSUPPORTED,
          "\"BertForMultipleChoice\"" },
        { "bert_mlm", "config.json", "architectures", "7", QKV_FORMAT, "\"architectures\"" },
        { "bert_mlm", "config.json", "hidden_size", NULL, QKV_FORMAT, "\"hidden_size\" is missing" },
        { "bert_mlm", "config.json", "hidden_size", "32", QKV_FORMAT, "is (23, 16), expected (23, 32)" },
        { "bert_mlm", "config.json", "num_hidden_layers", "3", QKV_FORMAT,
          "\"bert.encoder.layer.2.attention.self.query.weight\" is missing" },
        { "bert_mlm", "config.json", "num_hidden_layers", "1", QKV_FORMAT,
          "\"bert.encoder.layer.1.attention.output.LayerNorm.beta\" has no place" },
        { "bert_mlm", "config.json", "num_hidden_layers", "10000", QKV_FORMAT, "10000 layers, but" },
        { "bert_mlm", "config.json", "hidden_act", "\"quick_gelu\"", QKV_UNSUPPORTED, "\"quick_gelu\"" },
        { "bert_mlm", "config.json", "position_embedding_type", "\"relative_key\"", QKV_UNSUPPORTED, "only absolute" },
        { "bert_mlm", "config.json", "is_decoder", "true", QKV_UNSUPPORTED, "\"is_decoder\" is true: only false" },
        { "bert_mlm", "config.json", "tie_word_embeddings", "\"no\"", QKV_FORMAT, "true or false" },
        { "bert_mlm", "config.json", "pad_token_id", "23", QKV_OK, "" }, /* outside the vocabulary: there is none */
        { "bert_mlm", "config.json", "pad_token_id", "-1", QKV_OK, "" },
        { "bert_mlm", "config.json", "pad_token_id", "\"0\"", QKV_FORMAT, "\"pad_token_id\": expected an id" },
        { "gpt2", "config.json", "bos_token_id", "50256", QKV_OK, "" },
        { "gpt2", "config.json", "eos_token_id", "[3, 50256]", QKV_OK, "" },
        { "gpt2", "config.json", "eos_token_id", "[[3]]", QKV_OK, "" },
        { "gpt2", "generation_config.json", "eos_token_id", "50256", QKV_OK, "" },
        { "gpt2", "generation_config.json", "bos_token_id", "50256", QKV_OK, "" },
        { "marian", "config.json", "decoder_start_token_id", "50256", QKV_FORMAT, "expected an id of the vocabulary" },
        /* Every key is read, on the list of harmless ones, or refused by name. */
        { "llama", "config.json", "no_rope_layers", "[1, 0]", QKV_UNSUPPORTED,
          "key \"no_rope_layers\" is [1,0]: it is unknown here" },
        { "llama", "config.json", "sliding_window", "4096", QKV_UNSUPPORTED, "key \"sliding_window\" is 4096" },
        { "llama", "config.json", "sliding_window", "null", QKV_OK, "" },
        { "llama", "config.json", "is_causal", "false", QKV_UNSUPPORTED, "\"is_causal\" is false: only true" },
        { "llama", "config.json", "partial_rotary_factor", "0.5", QKV_UNSUPPORTED, "partial_rotary_factor" },
        { "llama", "config.json", "rope_scaling", "{\"rope_type\": \"default\", \"mrope_section\": [1, 1]}", QKV_UNSUPPORTED,
          "\"mrope_section\" is [1,1]" },
        { "llama", "config.json", "auto_map", "{\"AutoConfig\": \"configuration.C\"}", QKV_OK, "" },
        { "bert_mlm", "config.json", "is_causal", "true", QKV_UNSUPPORTED, "\"is_causal\" is true: only false" },
        { "bert_mlm", "config.json", "pruned_heads", "{}", QKV_OK, "" },
        { "bert_mlm", "config.json", "pruned_heads", "{\"1\": [2]}", QKV_UNSUPPORTED, "\"pruned_heads\" is {\"1\":[2]}" },
        { "bert_mlm", "config.json", "directionality", "\"left\"", QKV_UNSUPPORTED, "only bidi" },
        { "bert_mlm", "config.json", "is_encoder_decoder", "true", QKV_UNSUPPORTED, "only false" },
        { "gpt2", "config.json", "hidden_size", "16", QKV_OK, "" },
        { "gpt2", "config.json", "hidden_size", "32", QKV_UNSUPPORTED, "\"hidden_size\" is 32: only the value of n_embd" },
        { "t5", "config.json", "is_gated_act", "true", QKV_UNSUPPORTED, "what feed_forward_proj says" },
        { "t5", "config.json", "dense_act_fn", "\"silu\"", QKV_UNSUPPORTED, "what feed_forward_proj says" },
        { "bert_classify", "config.json", "id2label", "{\"0\": \"a\"}", QKV_FORMAT,
          "\"classifier.weight\" is (3, 16), expected (1" },
        { "bert_classify", "config.json", "id2label", "{\"0\": \"a\", \"1\": \"b\", \"7\": \"c\"}", QKV_FORMAT,
          "class 2 has no name" },
        { "bert_classify", "config.json", "problem_type", "\"regression\"", QKV_UNSUPPORTED, "\"problem_type\"" },
        { "bert_sentence", "1_Pooling/config.json", "pooling_mode_max_tokens", "true", QKV_OK, "" },
        { "bert_dense", "2_Dense/config.json", "activation_function", "\"torch.nn.Mish\"", QKV_UNSUPPORTED, "\"Mish\"" },
        { "bert_dense", "2_Dense/config.json", "module_input_name", "\"token_embeddings\"", QKV_UNSUPPORTED,
          "token_embeddings" },
        { "bert_dense", "2_Dense/config.json", "in_features", "16", QKV_FORMAT, "the module before gives 96 numbers" },
        { "bert_dense", "2_Dense/config.json", "out_features", "9", QKV_FORMAT, "not 9 x 96 floats" },
        { "bert_dense", "3_Dense/config.json", "bias", "true", QKV_FORMAT, "\"linear.bias\" is missing" },
        { "bert_dense", "1_Pooling/config.json", "pooling_mode_max_tokens", "false", QKV_FORMAT, "gives 80 numbers" },
        { "bert_sentence", "1_Pooling/config.json", "pooling_mode_mean_tokens", "false", QKV_FORMAT, "how tokens are pooled" },
        { "roberta_mlm", "config.json", "pad_token_id", "12", QKV_FORMAT, "\"pad_token_id\"" },
        { "roberta_mlm", "config.json", "hidden_act", "\"relu\"", QKV_UNSUPPORTED, "only gelu" },
        { "modernbert_mlm", "config.json", "hidden_activation", "\"relu\"", QKV_UNSUPPORTED, "\"relu\"" },
        { "modernbert_mlm", "config.json", "hidden_activation", "\"silu\"", QKV_UNSUPPORTED, "value of hidden_activation" },
        { "modernbert_mlm", "config.json", "classifier_activation", "\"relu\"", QKV_UNSUPPORTED, "value of hidden_activation" },
        { "modernbert_mlm", "config.json", "classifier_activation", NULL, QKV_OK, "" },
        { "modernbert_mlm", "config.json", "mlp_bias", "true", QKV_UNSUPPORTED, "\"attention_bias\"" },
        { "modernbert_mlm", "config.json", "norm_bias", "true", QKV_FORMAT, "\"model.embeddings.norm.bias\" is missing" },
        { "modernbert_mlm", "config.json", "norm_bias", "1", QKV_FORMAT, "\"norm_bias\": expected true or false" },
        { "modernbert_mlm", "config.json", "decoder_bias", "false", QKV_FORMAT, "\"decoder.bias\" has no place" },
        { "modernbert_mlm", "config.json", "classifier_bias", "true", QKV_FORMAT, "\"head.dense.bias\" is missing" },
        { "modernbert_mlm", "config.json", "tie_word_embeddings", "false", QKV_OK, "" },
        { "modernbert_mlm", "config.json", "architectures", "[\"ModernBertForMultipleChoice\"]", QKV_UNSUPPORTED,
          "MultipleChoice" },
        { "modernbert_mlm", "config.json", "architectures", NULL, QKV_OK, "" }, /* its tensors tell */
        { "modernbert_mlm", "config.json", "global_attn_every_n_layers", NULL, QKV_OK, "" },
        { "modernbert_mlm", "config.json", "global_attn_every_n_layers", "0", QKV_FORMAT, "at least 1" },
        { "modernbert_mlm", "config.json", "layer_types", "[\"full_attention\"]", QKV_FORMAT, "expected 3 words" },
        { "modernbert_mlm", "config.json", "rope_scaling", "{\"rope_type\": \"yarn\"}", QKV_UNSUPPORTED, "rope_scaling" },
        { "modernbert_mlm", "config.json", "rope_parameters", "7", QKV_FORMAT, "\"rope_parameters\": expected an object" },
        { "modernbert_mlm", "config.json", "rope_parameters", "{\"full_attention\": {\"rope_type\": \"linear\"}}",
          QKV_UNSUPPORTED, "the type default" },
        { "modernbert_classify", "config.json", "local_attention", "0", QKV_FORMAT, "\"local_attention\": expected a whole" },
        { "modernbert_classify", "config.json", "layer_types",
          "[\"full_attention\", \"full_attention\", \"sliding_attention\"]", QKV_OK, "" },
        { "modernbert_classify", "config.json", "rope_parameters", "{\"sliding_attention\": {\"rope_type\": \"yarn\"}}",
          QKV_UNSUPPORTED, "the type default" },
        { "modernbert_classify", "config.json", "local_rope_theta", "\"10\"", QKV_FORMAT, "\"local_rope_theta\"" },
        { "modernbert_classify", "config.json", "classifier_pooling", "\"max\"", QKV_UNSUPPORTED, "cls or mean" },
        { "modernbert_classify", "config.json", "classifier_pooling", NULL, QKV_OK, "" },
        { "modernbert_classify", "config.json", "problem_type", "\"regression\"", QKV_UNSUPPORTED, "\"problem_type\"" },
        { "gpt2", "config.json", "n_inner", "32", QKV_FORMAT, "\"h.0.mlp.c_fc.weight\" is (16, 64), expected (16, 32)" },
        { "gpt2", "config.json", "scale_attn_by_inverse_layer_idx", "true", QKV_UNSUPPORTED, "inverse_layer" },
        { "gpt2", "config.json", "n_embd", "4611686018427387904", QKV_FORMAT, "\"n_embd\"" },
        { "gpt2", "config.json", "tie_word_embeddings", "false", QKV_FORMAT, "\"lm_head.weight\" is missing" },
        { "llama", "config.json", "tie_word_embeddings", "true", QKV_OK, "" },
        { "llama", "config.json", "num_key_value_heads", "3", QKV_FORMAT, "multiple of kv_heads" },
        { "llama", "config.json", "num_key_value_heads", "4", QKV_FORMAT,
          "\"model.layers.0.self_attn.k_proj.weight\" is (8, 16), expected (16, 16)" },
        { "llama", "config.json", "attention_bias", "true", QKV_UNSUPPORTED, "\"attention_bias\"" },
        { "llama", "config.json", "hidden_act", "\"gelu\"", QKV_UNSUPPORTED, "\"hidden_act\" is \"gelu\": only silu" },
        { "llama", "config.json", "rope_scaling", "{\"rope_type\": \"ntk\", \"factor\": 2.0}", QKV_UNSUPPORTED, "llama3" },
        { "llama", "config.json", "rope_scaling", "{\"rope_type\": \"yarn\", \"factor\": 0.5}", QKV_FORMAT, "at least 1" },
        { "llama", "config.json", "rope_scaling", "{\"rope_type\": \"linear\"}", QKV_FORMAT, "\"factor\" is missing" },
        { "llama", "config.json", "rope_scaling", "{\"rope_type\": \"llama3\", \"factor\": 2.0}", QKV_FORMAT,
          "low_freq_factor" },
        { "llama", "config.json", "rope_scaling", "7", QKV_FORMAT, "\"rope_scaling\": expected an object" },
        { "llama", "config.json", "eos_token_id", "[2, \"99\"]", QKV_FORMAT, "\"eos_token_id\": expected ids" },
        { "llama", "generation_config.json", "eos_token_id", "[2, \"99\"]", QKV_FORMAT,
          "generation_config.json: key \"eos_token_id\"" },
        { "llama", "generation_config.json", "temperature", "\"hot\"", QKV_FORMAT,
          "\"temperature\": expected a finite number" },
        { "marian", "config.json", "decoder_ffn_dim", "32", QKV_UNSUPPORTED, "only equal ones" },
        { "marian", "config.json", "normalize_before", "true", QKV_UNSUPPORTED, "\"normalize_before\" is true: only false" },
        { "pegasus", "config.json", "decoder_attention_heads", "2", QKV_UNSUPPORTED, "only equal ones" },
        { "pegasus", "config.json", "normalize_before", "false", QKV_UNSUPPORTED, "\"normalize_before\" is false: only true" },
        { "pegasus", "config.json", "add_final_layer_norm", "false", QKV_UNSUPPORTED, "only true" },
        { "pegasus", "config.json", "add_final_layer_norm", NULL, QKV_OK, "" },
        { "pegasus", "config.json", "architectures", "[\"PegasusModel\"]", QKV_OK, "" },
        { "pegasus", "config.json", "encoder_layers", "3", QKV_FORMAT, "model.encoder.layers.2" },
        { "marian", "config.json", "share_encoder_decoder_embeddings", "false", QKV_FORMAT,
          "\"model.decoder.embed_tokens.weight\" is missing" },
        { "marian", "generation_config.json", "bad_words_ids", "[[1, 2]]", QKV_UNSUPPORTED, "single tokens" },
        { "marian", "generation_config.json", "num_beams", "-1", QKV_FORMAT, "\"num_beams\"" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        copy_golden(rows[i].model);
        set_key(rows[i].file, rows[i].key, rows[i].value);
        if (rows[i].status) refuses(rows[i].key, rows[i].status, rows[i].words);
        else qkv_model_free(load(folder));
    }
}

/* Draws only where the files ask for them; what is out of range is as if it were not there. */
static void generation_that_files_ask_for(void **state)
{
    (void)state;
    copy_golden("llama");
    set_key("generation_config.json", "temperature", "0.5");
    set_key("generation_config.json", "top_p", "7");
    set_key("generation_config.json", "min_p", "0.25");
    set_key("generation_config.json", "no_repeat_ngram_size", "3");
    qkv_model *m = load(folder);
    qkv_generate_opts o = QKV_OPTS(qkv_generate_opts);
    assert_int_equal(qkv_sampling_defaults(m, &o), QKV_OK);
    assert_true(o.temperature == 0 && o.top_p == 0 && o.min_p == 0.25f && o.no_repeat_ngram == 3 && o.repetition_penalty == 0);
    qkv_model_free(m);
    set_key("generation_config.json", "do_sample", "true");
    m = load(folder);
    assert_int_equal(qkv_sampling_defaults(m, &o), QKV_OK);
    assert_true(o.temperature == 0.5f);
    qkv_model_free(m);
    set_key("generation_config.json", "temperature", NULL);
    m = load(folder);
    assert_int_equal(qkv_sampling_defaults(m, &o), QKV_OK);
    assert_true(o.temperature == 1);
    qkv_model_free(m);
    assert_int_equal(qkv_sampling_defaults(NULL, &o), QKV_OK);
    assert_true(o.temperature == 0 && o.max_tokens == 0);
    static const char *const keys[] = { "top_p", "min_p", "top_k", "repetition_penalty", "max_new_tokens" };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) set_key("generation_config.json", keys[i], "1");
    m = load(folder);
    assert_int_equal(qkv_sampling_defaults(m, &o), QKV_OK);
    assert_true(o.top_p == 1 && o.min_p == 1 && o.top_k == 1 && o.repetition_penalty == 1 && o.max_tokens == 1);
    qkv_model_free(m);
}

static void same_ids(const int32_t *a, int n, const int32_t *b, int m)
{
    assert_int_equal(n, m);
    if (n) assert_memory_equal(a, b, sizeof *a * (size_t)n);
}

/* What the files say comes back from a folder that was saved, the id 0 too. */
static void info_comes_back(void **state)
{
    (void)state;
    static const char *const models[] = { "marian", "llama", "roberta_mlm", "gpt2" };
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        for (int zero = 0; zero < 2; zero++) {
            copy_golden(models[i]);
            if (zero && i != 2) set_key("config.json", "pad_token_id", "0"); /* where RoBERTa's positions begin */
            if (zero) set_key("config.json", "bos_token_id", i ? "0" : "3");
            if (zero && i == 0) set_key("config.json", "decoder_start_token_id", "0");
            if (zero) set_key("generation_config.json", "eos_token_id", i == 1 ? "[0, 3, 5]" : "0");
            if (i == 1) set_key("generation_config.json", "do_sample", "true");
            if (i == 1) set_key("generation_config.json", "top_k", "7");
            if (i == 1) set_key("generation_config.json", "temperature", "0.5");
            if (i == 1) set_key("generation_config.json", "top_p", "0.25");
            if (i == 1) set_key("generation_config.json", "repetition_penalty", "1.5");
            if (i == 1) set_key("generation_config.json", "max_new_tokens", "9");
            qkv_model *m = load(folder);
            char saved[80];
            snprintf(saved, sizeof saved, "%s", in_folder("saved"));
            assert_int_equal(qkv_model_save(m, saved, NULL), QKV_OK);
            qkv_model *again = load(saved);
            const qkv__model_info *a = qkv__model_get_info(m), *b = qkv__model_get_info(again);
            assert_true(a->begin == b->begin && a->pad == b->pad && a->start == b->start && a->can == b->can);
            assert_true(!zero ||
                        (a->begin == (i ? 0 : 3) && a->ends[0] == 0 && (i == 2 || a->pad == 0) && (i || a->start == 0)));
            same_ids(a->ends, a->n_ends, b->ends, b->n_ends);
            same_ids(a->banned, a->n_banned, b->banned, b->n_banned);
            assert_true(a->beam == b->beam && a->max_length == b->max_length && a->max_new == b->max_new);
            assert_true(a->length_penalty == b->length_penalty && a->context == b->context && a->sample == b->sample);
            assert_true(a->top_k == b->top_k && a->temperature == b->temperature && a->top_p == b->top_p);
            assert_true(a->repetition_penalty == b->repetition_penalty);
            qkv_model *like = qkv_model_adapt(m, qkv__model_config(m), 1);
            b = qkv__model_get_info(like);
            assert_non_null(b);
            same_ids(a->ends, a->n_ends, b->ends, b->n_ends);
            same_ids(a->banned, a->n_banned, b->banned, b->n_banned);
            assert_true(a->begin == b->begin && a->pad == b->pad && a->start == b->start && b->files == 0 && b->bytes == 0);
            qkv_model_free(m);
            qkv_model_free(again);
            qkv_model_free(like);
        }
}

/* GPT-2 has its matrices the other way round; they are turned in tiles of 16 by 256, which these are no multiples of. */
static void turned_matrices_come_back(void **state)
{
    (void)state;
    const qkv_config o = { .vocab_size = 23,
                           .decoder_layers = 2,
                           .dim = 40,
                           .heads = 2,
                           .d_ff = 270,
                           .pre_norm = 1,
                           .activation = QKV_ACTIVATION_GELU_TANH,
                           .positions = QKV_POSITION_LEARNED,
                           .max_positions = 8,
                           .unscaled = 1 };
    qkv_model *m = qkv_model_new(&o, 4);
    assert_int_equal(qkv_model_save(m, folder, "gpt2"), QKV_OK);
    qkv_model *again = load(folder);
    const qkv_params *a = qkv__model_params(m), *b = qkv__model_params(again);
    assert_int_equal(qkv_params_size(a), qkv_params_size(b));
    for (int i = 0; i < qkv_params_size(a); i++) {
        const qkv_tensor *x = qkv_params_at(a, i), *y = qkv_params_find(b, qkv_params_name(a, i));
        assert_int_equal(qkv_tensor_count(x), qkv_tensor_count(y));
        if (memcmp(qkv_tensor_data(x), qkv_tensor_data(y), sizeof(float) * (size_t)qkv_tensor_count(x)))
            fail_msg("%s is another", qkv_params_name(a, i));
    }
    qkv_model_free(m);
    qkv_model_free(again);
}

/* A config.json has the keys that the model's files had something to say for, and no others. */
static void only_what_is_said_is_written(void **state)
{
    (void)state;
    static const char *const keys[] = { "num_beams",   "max_length", "max_new_tokens", "length_penalty", "do_sample",
                                        "temperature", "top_k",      "top_p",          "bad_words_ids",  "repetition_penalty" };
    static const char *const models[] = { "gpt2", "marian", "llama" }; /* one end, one, two */
    for (int i = 0; i < 3; i++) {
        copy_golden(models[i]);
        unlink(in_folder("generation_config.json"));
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) set_key("config.json", keys[k], NULL);
        qkv_model *m = load(folder);
        char saved[80];
        snprintf(saved, sizeof saved, "%s", in_folder("saved"));
        assert_int_equal(qkv_model_save(m, saved, NULL), QKV_OK);
        const qkv__json_value *config = json_read(in_folder("saved/config.json"));
        assert_non_null(config);
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
            if (qkv__json_get(config, keys[k])) fail_msg("%s: \"%s\" is written", models[i], keys[k]);
        const qkv__json_value *end = qkv__json_get(config, "eos_token_id");
        assert_true(qkv__model_get_info(m)->n_ends > 1 ? qkv__json_size(end) == 2 : qkv__json_is_int(end));
        assert_int_equal(qkv__json_get(config, "decoder_start_token_id") != NULL, i == 1);
        json_free(config);
        qkv_model_free(m);
    }
}

/* Other programs look labels up both ways. */
static void labels_are_written_both_ways(void **state)
{
    (void)state;
    qkv_model *m = load(golden_folder("roberta_classify"));
    assert_int_equal(qkv_model_save(m, folder, NULL), QKV_OK);
    const qkv__json_value *config = json_read(in_folder("config.json"));
    const qkv__json_value *labels = qkv__json_get(config, "id2label"), *ids = qkv__json_get(config, "label2id");
    int n = 0;
    for (const char *label; (label = qkv_model_label(m, n)); n++) {
        char key[16];
        snprintf(key, sizeof key, "%d", n);
        assert_string_equal(qkv__json_text(qkv__json_get(labels, key)), label);
        assert_int_equal(qkv__json_int(qkv__json_get(ids, label)), n);
    }
    assert_true(n == 3 && qkv__json_size(labels) == 3 && qkv__json_size(ids) == 3);
    json_free(config);
    qkv_model_free(m);
}

static qkv_status make_one_like_marian(void)
{
    qkv_model *m = qkv_model_load(golden_folder("marian"), NULL);
    qkv_model *like = m ? qkv_model_adapt(m, qkv__model_config(m), 1) : NULL;
    qkv_status status = like ? QKV_OK : qkv_error_status();
    qkv_model_free(like);
    qkv_model_free(m);
    return status;
}

static void memory_for_one_like_it_may_fail(void **state)
{
    (void)state;
    assert_true(each_allocation_fails(make_one_like_marian) > 20);
}

/* The last value that is allowed is read, the next is not. */
static void bounds_of_keys(void **state)
{
    (void)state;
    static const struct {
        const char *model, *key, *last, *next;
    } rows[] = {
        { "marian", "num_beams", "10000", "10001" },           { "marian", "num_beams", "0", "-1" },
        { "llama", "max_length", "2147483647", "2147483648" }, { "llama", "max_new_tokens", "0", "0.5" },
        { "marian", "decoder_start_token_id", "22", "23" },    { "llama", "temperature", "0", "1e39" },
        { "llama", "length_penalty", "-2", "true" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        copy_golden(rows[i].model);
        set_key("generation_config.json", rows[i].key, rows[i].last);
        qkv_model_free(load(folder));
        set_key("generation_config.json", rows[i].key, rows[i].next);
        refuses(rows[i].next, QKV_FORMAT, rows[i].key);
    }
    FILE *f = fopen(in_folder("generation_config.json"), "w");
    fputs("[]", f);
    fclose(f);
    refuses("a list", QKV_FORMAT, "generation_config.json: expected a JSON object");
}

/* bos, eos and pad outside of the vocabulary (23 tokens) are none, in both files. */
static void ids_outside(void **state)
{
    (void)state;
    static const char *const files[] = { "config.json", "generation_config.json" };
    for (int i = 0; i < 2; i++)
        for (int outside = 0; outside < 2; outside++) {
            copy_golden("llama");
            if (!i) remove(in_folder(files[1]));
            set_key(files[i], "bos_token_id", outside ? "23" : "22");
            set_key(files[i], "pad_token_id", outside ? "-1" : "0");
            set_key(files[i], "eos_token_id", outside ? "[4, 23, 50256]" : "[4, 22]");
            qkv_model *m = load(folder);
            const qkv__model_info *info = qkv__model_get_info(m);
            assert_int_equal(info->begin, outside ? -1 : 22);
            assert_int_equal(info->pad, outside ? -1 : 0);
            assert_int_equal(info->n_ends, outside ? 1 : 2);
            assert_int_equal(info->ends[0], 4);
            qkv_model_free(m);
        }
}

/* A regression is one logit: what it is for does not matter, but its weights must be there. */
static void one_class_of_any_kind(void **state)
{
    (void)state;
    copy_golden("bert_classify");
    set_key("config.json", "problem_type", "\"regression\"");
    set_key("config.json", "id2label", "{\"0\": \"score\"}");
    refuses("regression", QKV_FORMAT, "\"classifier.weight\" is (3, 16), expected (1");
}

/* It is saved too. */
static void several_labels_a_text(void **state)
{
    (void)state;
    copy_golden("bert_classify");
    set_key("config.json", "problem_type", "\"multi_label_classification\"");
    for (int i = 0; i < 2; i++) {
        qkv_model *m = load(folder);
        assert_int_equal(qkv_model_get_info(m)->problem, QKV_PROBLEM_MULTILABEL);
        assert_int_equal(qkv_model_set_labels(m, NULL, 0, QKV_PROBLEM_REGRESSION, NULL), QKV_USAGE); /* it has three outputs */
        assert_int_equal(qkv_model_save(m, folder, NULL), QKV_OK);
        qkv_model_free(m);
    }
    set_key("config.json", "problem_type", "\"guessing\"");
    refuses("guessing", QKV_UNSUPPORTED, "\"problem_type\"");
}

static void bad_modules(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        qkv_status status;
        const char *words;
    } rows[] = {
        { "{}", QKV_FORMAT, "expected a list of modules" },
        { "[1]", QKV_FORMAT, "module type" },
        { "[{\"type\": \"sentence_transformers.models.LayerNorm\", \"path\": \"2_LayerNorm\"}]", QKV_UNSUPPORTED,
          "\"LayerNorm\"" },
        { "[{\"type\": \"sentence_transformers.models.Dense\", \"path\": \"2_Dense\"}]", QKV_IO, "2_Dense/config.json" },
        { "[{\"type\": \"Pooling\", \"path\": \"../1_Pooling\"}]", QKV_FORMAT, "a folder in the same folder" },
        { "[{\"type\": \"Pooling\", \"path\": \"\"}]", QKV_FORMAT, "a folder in the same folder" },
        { "[{\"type\": \"Pooling\", \"path\": \"elsewhere\"}]", QKV_IO, "elsewhere/config.json" },
        { "[", QKV_FORMAT, "modules.json: line" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        copy_golden("bert_sentence");
        FILE *f = fopen(in_folder("modules.json"), "w");
        assert_non_null(f);
        fputs(rows[i].text, f);
        fclose(f);
        refuses(rows[i].text, rows[i].status, rows[i].words);
    }
}

/* Keys that may be missing have the values of the published programs. */
static void missing_keys(void **state)
{
    (void)state;
    copy_golden("llama");
    set_key("config.json", "architectures", NULL);
    set_key("config.json", "rope_scaling", NULL);
    set_key("config.json", "rope_theta", NULL);
    set_key(
        "config.json", "rope_parameters",
        "{\"rope_type\": \"llama3\", \"rope_theta\": 500.0, \"factor\": 8.0, \"low_freq_factor\": 1.0, \"high_freq_factor\": "
        "4.0, \"original_max_position_embeddings\": 16}");
    qkv_model *m = load(folder), *same = load(golden_folder("llama"));
    assert_memory_equal(qkv__model_config(m), qkv__model_config(same), sizeof(qkv_config));
    qkv_model_free(m);
    qkv_model_free(same);
    copy_golden("bert_mlm"); /* the tensors tell that it has a head */
    set_key("config.json", "architectures", NULL);
    m = load(folder);
    assert_true(qkv__model_config(m)->head);
    qkv_model_free(m);
}

/* ---- saving ---- */

static int64_t copy_last(const qkv_model *m, const batch *b, float *to)
{
    qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .inference = 1 });
    qkv_tensor *x = run(m, t, b);
    if (!x) fail_msg("%s", qkv_error());
    const qkv_config *o = qkv__model_config(m);
    bool has_words = o->head || !o->embed_dim; /* narrow tables alone are no output layer */
    qkv_tensor *logits = has_words ? qkv__transformer_logits(qkv__model_transformer(m), x) : x;
    int64_t n = qkv_tensor_count(logits);
    assert_true(n > 0 && n <= MOST);
    memcpy(to, qkv_tensor_data(logits), sizeof(float) * (size_t)n);
    qkv_tape_free(t);
    return n;
}

static void same_weights(const qkv_model *a, const qkv_model *b)
{
    qkv_params *p = qkv__model_params(a), *q = qkv__model_params(b);
    assert_int_equal(qkv__params_materialize(p), QKV_OK); /* some may be kept in 16 bits */
    assert_int_equal(qkv__params_materialize(q), QKV_OK);
    assert_int_equal(qkv_params_size(p), qkv_params_size(q));
    for (int i = 0; i < qkv_params_size(p); i++) {
        qkv_tensor *w = qkv_params_at(p, i), *other = qkv_params_find(q, qkv_params_name(p, i));
        assert_non_null(other);
        assert_int_equal(qkv_tensor_count(w), qkv_tensor_count(other));
        assert_memory_equal(qkv_tensor_data(w), qkv_tensor_data(other), sizeof(float) * (size_t)qkv_tensor_count(w));
    }
}

static void same_model_info(const qkv__model_info *a, const qkv__model_info *b)
{
    assert_true(a->can == b->can && a->start == b->start && a->begin == b->begin && a->pad == b->pad && a->n_ends == b->n_ends);
    assert_true(a->n_banned == b->n_banned && a->beam == b->beam && a->length_penalty == b->length_penalty);
    assert_true(a->max_length == b->max_length && a->context == b->context && a->embed_length == b->embed_length);
    assert_true(a->pooling == b->pooling && a->normalise == b->normalise);
}

/* A published model saved as what it is, and as ours, is the same model. */
static void saved_and_loaded(void **state)
{
    (void)state;
    static float first[MOST], second[MOST];
    for (int i = 0; i < MODELS; i++) {
        qkv_model *m = load(golden_folder(names[i]));
        assert_int_equal(open_golden(names[i]), QKV_OK);
        batch b = read_batch(numbers("target", NULL));
        int64_t n = copy_last(m, &b, first);
        const char *kinds[] = { qkv_model_get_info(m)->family, "qkv" };
        for (int k = 0; k < 2; k++) {
            remove_folder(NULL); /* nothing of another model may help */
            make_folder(NULL);
            if (k == 1 && !strcmp(names[i], "bart_classify")) { /* ours read an encoder */
                assert_int_equal(qkv_model_save(m, folder, kinds[k]), QKV_UNSUPPORTED);
                continue;
            }
            if (qkv_model_save(m, folder, kinds[k])) fail_msg("%s as %s: %s", names[i], kinds[k], qkv_error());
            qkv_model *again = load(folder);
            assert_string_equal(qkv_model_get_info(again)->family, kinds[k]);
            same_weights(m, again);
            if (k == 0) same_model_info(qkv__model_get_info(m), qkv__model_get_info(again));
            assert_int_equal(copy_last(again, &b, second), n);
            assert_memory_equal(first, second, sizeof(float) * (size_t)n);
            for (int64_t c = 0; qkv_model_label(m, c); c++)
                assert_string_equal(qkv_model_label(m, c), qkv_model_label(again, c));
            qkv_model_free(again);
        }
        qkv__safetensors_free(&golden);
        qkv_model_free(m);
    }
}

static const qkv_config ours[] = {
    { .vocab_size = 11,
      .encoder_layers = 2,
      .decoder_layers = 1,
      .dim = 8,
      .heads = 2,
      .d_ff = 12,
      .positions = QKV_POSITION_SINUSOID_HALVES },
    { .vocab_size = 11,
      .target_vocab_size = 9,
      .encoder_layers = 1,
      .decoder_layers = 2,
      .dim = 8,
      .heads = 2,
      .d_ff = 12,
      .positions = QKV_POSITION_SINUSOID_HALVES,
      .untied = 1,
      .output_bias = 1,
      .unscaled = 1 },
    { .vocab_size = 11,
      .encoder_layers = 1,
      .dim = 8,
      .heads = 2,
      .d_ff = 12,
      .positions = QKV_POSITION_LEARNED,
      .max_positions = 6,
      .unscaled = 1,
      .embed_norm = 1,
      .token_types = 2,
      .classes = 4,
      .pooling = QKV_POOLING_FIRST,
      .pooler = QKV_POOLER_TANH },
    { .vocab_size = 11,
      .decoder_layers = 2,
      .dim = 8,
      .heads = 2,
      .d_ff = 12,
      .positions = QKV_POSITION_LEARNED,
      .max_positions = 6,
      .unscaled = 1,
      .pre_norm = 1,
      .untied = 1,
      .activation = QKV_ACTIVATION_GELU_TANH },
    { .vocab_size = 11,
      .decoder_layers = 1,
      .dim = 8,
      .heads = 4,
      .kv_heads = 2,
      .d_ff = 12,
      .positions = QKV_POSITION_ROPE,
      .unscaled = 1,
      .pre_norm = 1,
      .norm = QKV_NORM_RMS,
      .activation = QKV_ACTIVATION_SWIGLU,
      .no_bias = 1 },
    { .vocab_size = 11,
      .encoder_layers = 2,
      .decoder_layers = 1,
      .dim = 8,
      .heads = 2,
      .d_ff = 12,
      .positions = QKV_POSITION_SINUSOID_HALVES,
      .pre_norm = 1 },
    { .vocab_size = 11,
      .encoder_layers = 1,
      .decoder_layers = 2,
      .dim = 8,
      .heads = 2,
      .d_ff = 12,
      .positions = QKV_POSITION_SINUSOID_HALVES,
      .pre_norm = 1,
      .activation = QKV_ACTIVATION_GELU,
      .untied = 1,
      .output_bias = 1,
      .unscaled = 1 },
#define MODERNBERT                                                                                                          \
    .vocab_size = 11, .encoder_layers = 2, .dim = 8, .heads = 2, .d_ff = 12, .positions = QKV_POSITION_ROPE, .pre_norm = 1, \
    .no_first_norm = 1, .embed_norm = 1, .unscaled = 1
    { MODERNBERT, .activation = QKV_ACTIVATION_GEGLU, .no_bias = 1, .no_norm_bias = 1, .head = 1, .no_head_bias = 1,
      .output_bias = 1 },
    { MODERNBERT, .activation = QKV_ACTIVATION_SWIGLU, .head = 1, .untied = 1 },
    { MODERNBERT, .activation = QKV_ACTIVATION_GEGLU },
    { MODERNBERT, .activation = QKV_ACTIVATION_GEGLU, .head = 1, .output_bias = 1, .classes = 3, .pooling = QKV_POOLING_FIRST,
      .pooler = QKV_POOLER_HEAD },
    { MODERNBERT, .activation = QKV_ACTIVATION_GEGLU, .window_size = 2, .global_every = 2, .window_rope_base = 50 },
    { MODERNBERT, .activation = QKV_ACTIVATION_GEGLU, .window_size = 1, .window_from_layer = 1 },
};
static const char *const ours_as[] = { "marian",     "marian",     "bert",       "gpt2",       "llama",
                                       "pegasus",    "pegasus",    "modernbert", "modernbert", "modernbert",
                                       "modernbert", "modernbert", "modernbert" };

static const batch few = { .ids = { 1, 5, 7, 2, 9, 4 },
                           .target = { 3, 8, 1, 0 },
                           .lengths = { 3, 2 },
                           .target_lengths = { 2, 1 },
                           .length = 3,
                           .target_length = 2 };

/* Models that were made here, under published names: the same weights, and the same logits. */
static void ours_under_their_names(void **state)
{
    (void)state;
    static float first[MOST], second[MOST];
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) {
        qkv_model *m = qkv_model_new(&ours[i], 3);
        if (qkv_model_save(m, folder, ours_as[i])) fail_msg("%s", qkv_error());
        qkv_model *again = load(folder);
        assert_string_equal(qkv_model_get_info(again)->family, ours_as[i]);
        same_weights(m, again);
        int64_t n = copy_last(m, &few, first);
        assert_int_equal(copy_last(again, &few, second), n);
        assert_memory_equal(first, second, sizeof(float) * (size_t)n);
        qkv_model_free(again);
        qkv_model_free(m);
    }
}

/* They leave with a head that lets everything through: the same logits but for rounding. */
static void words_without_a_head(void **state)
{
    (void)state;
    const qkv_config o = { MODERNBERT, .activation = QKV_ACTIVATION_GEGLU, .no_bias = 1, .no_norm_bias = 1 };
    static float first[MOST], second[MOST];
    const batch b = { .ids = { 1, 5, 7, 2, 9, 4 }, .lengths = { 3, 2 }, .length = 3 };
    qkv_model *m = qkv_model_new(&o, 3);
    float *gain = qkv_tensor_data_mut(qkv_params_find(qkv__model_params(m), "encoder.norm.weight"));
    for (int i = 0; i < 8; i++) gain[i] = i % 3 ? 0.4f * (float)i : -2;
    int64_t n = copy_last(m, &b, first);
    assert_int_equal(qkv_model_save(m, folder, "modernbert"), QKV_OK);
    qkv_model *again = load(folder);
    assert_true(qkv_model_get_info(again)->can & QKV_CAN_FILL);
    assert_int_equal(copy_last(again, &b, second), n);
    for (int64_t i = 0; i < n; i++) assert_float_equal(second[i], first[i], 2e-5f);
    qkv_model_free(again);

    gain[3] = 0; /* what is 0 does not come back: the encoder leaves alone */
    assert_int_equal(qkv_model_save(m, folder, "modernbert"), QKV_OK);
    again = load(folder);
    assert_false(qkv_model_get_info(again)->can & QKV_CAN_FILL);
    qkv_model_free(again);
    qkv_model_free(m);
}

static void shapes_that_stand_in_the_way(void **state)
{
    (void)state;
    const struct {
        int model;
        const char *family, *words;
    } rows[] = { { 0, "bert", "an encoder alone" },
                 { 0, "gpt2", "a decoder alone" },
                 { 2, "marian", "an encoder and a decoder" },
                 { 3, "llama", "positions are rotary" },
                 { 4, "gpt2", "are learned" },
                 { 4, "qwen2", "have a bias" },
                 { 5, "marian", "after each sub-layer" },
                 { 0, "pegasus", "before each sub-layer" },
                 { 2, "distilbert", "no types" },
                 { 7, "bert", "positions are learned" },
                 { 2, "modernbert", "are rotary" },
                 { 2, "roberta", "first position" },
                 { 0, "t5", "in place of positions" },
                 { 0, "bart", "positions are learned" },
                 { 2, "electra", "pooler is a GELU" },
                 { 0, "xlnet", "there is no family \"xlnet\"" } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        qkv_model *m = qkv_model_new(&ours[rows[i].model], 3);
        assert_int_equal(qkv_model_save(m, folder, rows[i].family), QKV_UNSUPPORTED);
        if (!strstr(qkv_error(), rows[i].words)) fail_msg("row %zu says \"%s\"", i, qkv_error());
        qkv_model_free(m);
    }
    qkv_model *m = qkv_model_new(&ours[0], 3);
    assert_int_equal(qkv_model_save(NULL, folder, "qkv"), QKV_USAGE);
    qkv_model_free(m);
}

/* Models whose shape only weights make up for: other weights, the same logits. */
static void folded_under_their_names(void **state)
{
    (void)state;
    static float first[MOST], second[MOST];
    for (int i = 0; i < 4; i++) { /* a translator, with two tables, one with the norms first, and a Llama */
        static const int shapes[] = { 0, 0, 5, 4 };
        qkv_config o = ours[shapes[i]];
        if (i < 3) o.positions = QKV_POSITION_SINUSOID;
        else o.unscaled = o.untied = 0;
        if (i == 1) o.target_vocab_size = 9;
        qkv_model *m = qkv_model_new(&o, 3);
        if (qkv_model_save(m, folder, ours_as[shapes[i]])) fail_msg("%s", qkv_error());
        qkv_model *again = load(folder);
        int64_t n = copy_last(m, &few, first);
        assert_int_equal(copy_last(again, &few, second), n);
        for (int64_t k = 0; k < n; k++) assert_float_equal(first[k], second[k], 1e-5);
        qkv_model_free(again);
        qkv_model_free(m);
    }
    qkv_config odd = ours[0];
    odd.positions = QKV_POSITION_SINUSOID, odd.dim = 9, odd.heads = 3;
    qkv_model *m = qkv_model_new(&odd, 3);
    assert_int_equal(qkv_model_save(m, folder, "marian"), QKV_UNSUPPORTED);
    assert_non_null(strstr(qkv_error(), "sinusoid_halves"));
    qkv_model_free(m);
}

/* A new classifier on a published encoder. */
static void like_another(void **state)
{
    (void)state;
    qkv_model *m = load(golden_folder("bert_mlm"));
    qkv_config o = *qkv__model_config(m);
    o.classes = 5;
    qkv_model *made = qkv_model_adapt(m, &o, 1);
    assert_non_null(made);
    qkv_params *p = qkv__model_params(m), *q = qkv__model_params(made);
    assert_int_equal(qkv_params_size(q), qkv_params_size(p) + 2);
    for (int i = 0; i < qkv_params_size(p); i++) {
        qkv_tensor *w = qkv_params_at(p, i);
        assert_memory_equal(qkv_tensor_data(w), qkv_tensor_data(qkv_params_find(q, qkv_params_name(p, i))),
                            sizeof(float) * (size_t)qkv_tensor_count(w));
    }
    const qkv__model_info *f = qkv__model_get_info(made);
    assert_string_equal(f->family, "bert");
    assert_true((f->can & QKV_CAN_CLASSIFY) && f->pad == 0 && f->files == 0);
    qkv_model_free(m); /* nothing of it is needed any more */
    assert_int_equal(qkv_model_save(made, folder, NULL), QKV_OK);
    qkv_model *again = load(folder);
    same_weights(made, again);
    assert_string_equal(qkv_model_label(again, 4), "LABEL_4");
    qkv_model_free(again);
    qkv_model_free(made);
    assert_null(qkv_model_adapt(NULL, &o, 1));
}

static qkv_tokenizer *learn(const char *line)
{
    qkv_word_counts *w = qkv_word_counts_new(QKV_TOKEN_BPE);
    assert_int_equal(qkv_word_counts_add(w, qkv_cstr(line)), QKV_OK);
    qkv_tokenizer *t = qkv_tokenizer_train(w, &(qkv_tokenizer_opts){ .vocab_size = 300 });
    assert_non_null(t);
    qkv_word_counts_free(w);
    return t;
}

/* Two tokenizers may share a vocabulary, as those of OPUS-MT do; and a tokenizer may not have more tokens than the model. */
static void tokenizers_of_a_model(void **state)
{
    (void)state;
    qkv_config o = ours[0];
    o.vocab_size = 300;
    qkv_model *m = qkv_model_new(&o, 3);
    qkv_tokenizer *source = learn("a line of text"), *target = learn("eine Zeile Text");
    assert_int_equal(qkv_model_set_tokenizers(m, source, target), QKV_OK);
    assert_ptr_equal(qkv_model_tokenizer(m, QKV_SIDE_SOURCE), source);
    assert_ptr_equal(qkv_model_tokenizer(m, QKV_SIDE_TARGET), target);
    assert_int_equal(qkv_model_save(m, folder, "marian"), QKV_OK);
    qkv_model *again = load(folder);
    const qkv__model_info *f = qkv__model_get_info(again); /* its ids are those of its tokens */
    assert_true(f->pad == 0 && f->begin == 1 && f->start == 1 && f->n_ends == 1 && f->ends[0] == 2);
    assert_ptr_not_equal(qkv_model_tokenizer(again, QKV_SIDE_SOURCE), qkv_model_tokenizer(again, QKV_SIDE_TARGET));
    qkv_model_free(again);
    qkv_model_free(m);
    o.vocab_size = 200; /* and now a folder of a smaller model with that tokenizer */
    m = qkv_model_new(&o, 3);
    assert_int_equal(qkv_model_save(m, folder, "marian"), QKV_OK);
    refuses("a tokenizer that is too large", QKV_FORMAT, "but the model's vocabulary 200");
    qkv_model_free(m);
}

/* ---- weights stay in their file ---- */

static void nothing_is_copied(void **state)
{
    (void)state;
    const qkv_config o = { .vocab_size = 1000,
                           .decoder_layers = 2,
                           .dim = 128,
                           .heads = 4,
                           .d_ff = 256,
                           .positions = QKV_POSITION_ROPE,
                           .unscaled = 1,
                           .pre_norm = 1,
                           .norm = QKV_NORM_RMS,
                           .activation = QKV_ACTIVATION_SWIGLU,
                           .no_bias = 1 };
    qkv_model *m = qkv_model_new(&o, 3);
    assert_int_equal(qkv_model_save(m, folder, "llama"), QKV_OK);
    qkv_shutdown();
    const qkv__memory table = { failing_alloc, failing_release };
    size_t bytes = sizeof(float) * (size_t)qkv_params_count(qkv__model_params(m));
    qkv_model_free(m);
    failing = (struct failing){ .fail_at = -1 };
    qkv__set_memory(&table);
    m = load(folder);
    if (!(failing.held < bytes / 20)) fail_msg("%zu bytes are held for %zu bytes of weights", failing.held, bytes);
    qkv_tensor *embed = qkv_params_find(qkv__model_params(m), "embed.weight");
    const float *mapped = qkv_tensor_data(embed);
    float before = mapped[7];
    assert_null(qkv_tensor_grad(embed));
    assert_int_equal(qkv__params_materialize(qkv__model_params(m)), QKV_OK);
    assert_ptr_not_equal(qkv_tensor_data(embed), mapped);
    assert_true(qkv_tensor_data(embed)[7] == before && qkv_tensor_grad(embed));
    assert_true(failing.held > 2 * bytes);
    qkv_model_free(m);
    qkv_shutdown();
    assert_int_equal(failing.held, 0);
    qkv__set_memory(NULL);
}

/* A loaded model trains as if it had been made here. */
static void loaded_models_train(void **state)
{
    (void)state;
    qkv_model *m[2] = { qkv_model_new(&ours[4], 3), NULL };
    static const int32_t ids[] = { 1, 2, 3, 4 }, labels[] = { 2, 3, 4, 5 };
    assert_int_equal(qkv_model_save(m[0], folder, "llama"), QKV_OK);
    m[1] = load(folder);
    for (int i = 0; i < 2; i++) {
        qkv_optimizer *adam = qkv_optimizer_new(qkv__model_params(m[i]), &(qkv_optimizer_opts){ .rule = QKV_OPTIMIZER_ADAM });
        qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .train = 1 });
        const qkv__transformer *x = qkv__model_transformer(m[i]);
        for (int step = 0; step < 3; step++) {
            qkv_tensor *logits = qkv__transformer_logits(
                x, qkv__transformer_decode(x, t, &(qkv_tokens){ .ids = ids, .rows = 1, .length = 4 }, NULL, NULL));
            assert_int_equal(qkv_backward(qkv_cross_entropy(logits, labels, NULL)), QKV_OK);
            assert_int_equal(qkv_optimizer_step(adam), QKV_OK);
            qkv_tape_reset(t);
        }
        qkv_tape_free(t);
        qkv_optimizer_free(adam);
    }
    same_weights(m[0], m[1]);
    qkv_model *first = load(folder); /* the file has not changed */
    assert_memory_not_equal(qkv_tensor_data(qkv_params_at(qkv__model_params(first), 0)),
                            qkv_tensor_data(qkv_params_at(qkv__model_params(m[0]), 0)), 64);
    qkv_model_free(first);
    qkv_model_free(m[0]);
    qkv_model_free(m[1]);
}

/* ---- 16 bits ---- */

static uint16_t *draw_narrow(int64_t n)
{
    uint16_t *x = malloc(sizeof *x * (size_t)n);
    uint32_t state = 9;
    for (int64_t i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = (uint16_t)(state >> 31 << 15 | (0x3000 + (state >> 16) % 0x0C00)); /* as halves 0.125 to 1, as bfloats tiny */
    }
    return x;
}

/* Rows of x times a weight, and rows of the weight itself: the same bits as with the weight widened. */
static void narrow_products(void **state)
{
    (void)state;
    static const int64_t rows[] = { 1, 2, 3, 4, 7, 20, 60 }, widths[] = { 1, 3, 64, 300, 1100 }, outs[] = { 1, 7, 33, 500 };
    static const int32_t ids[] = { 0 };
    for (int i = 0; i < 7 * 5 * 4 * 2; i++) {
        int64_t m = rows[i % 7], k = widths[i / 7 % 5], n = outs[i / 35 % 4];
        bool is_half = i / 140;
        qkv_params *p = qkv__params_plan();
        qkv_tensor *w = qkv_params_add(p, "w", QKV_SHAPE(n, k), QKV_INIT_ZERO, 0);
        uint16_t *values = draw_narrow(n * k);
        qkv__params_place_typed(p, 0, values, NULL, qkv__type_named(is_half ? "F16" : "BF16"));
        qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .inference = 1 });
        qkv_tensor *x = qkv_constant(t, QKV_SHAPE(m, k), NULL);
        for (int64_t j = 0; j < m * k; j++) qkv_tensor_data_mut(x)[j] = (float)((j * 37 + 11) % 101) / 50 - 1;
        qkv_tensor *narrow = qkv_affine(x, w, NULL), *row = qkv_gather(t, w, ids, 1, (int64_t[]){ 1 });
        assert_non_null(narrow);
        assert_null(qkv_tensor_data(w));
        assert_int_equal(qkv__params_materialize(p), QKV_OK);
        qkv_tensor *wide = qkv_affine(x, w, NULL), *wide_row = qkv_gather(t, w, ids, 1, (int64_t[]){ 1 });
        assert_memory_equal(qkv_tensor_data(narrow), qkv_tensor_data(wide), sizeof(float) * (size_t)(m * n));
        assert_memory_equal(qkv_tensor_data(row), qkv_tensor_data(wide_row), sizeof(float) * (size_t)k);
        qkv_tape_free(t);
        qkv_params_free(p);
        free(values);
    }
}

/* A weight that is read again is packed at its second large product, of any type; the bits are the same, and so they are
 * without room for it; owning the weight ends it. */
static void packed_products(void **state)
{
    (void)state;
    static const int64_t rows[] = { 49, 60, 200 }, widths[] = { 3, 300, 1100, 2050 }, outs[] = { 7, 33, 500, 1100 };
    static const char *const types[] = { "F32", "F16", "BF16" };
    const size_t limit = qkv_packed_limit();
    for (int i = 0; i < 3 * 4 * 4 * 3; i++) {
        int64_t m = rows[i % 3], k = widths[i / 3 % 4], n = outs[i / 12 % 4];
        const qkv__type *type = qkv__type_named(types[i / 48]);
        qkv_params *p = qkv__params_plan();
        qkv_tensor *w = qkv_params_add(p, "w", QKV_SHAPE(n, k), QKV_INIT_ZERO, 0);
        uint16_t *values = draw_narrow(n * k);
        float *wide = malloc(sizeof *wide * (size_t)(n * k));
        for (int64_t j = 0; j < n * k; j++) wide[j] = (float)(values[j] % 1000) / 500 - 1;
        if (type->bits == 32) qkv__params_place(p, 0, wide);
        else qkv__params_place_typed(p, 0, values, NULL, type);
        qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .inference = 1 });
        qkv_tensor *x = qkv_constant(t, QKV_SHAPE(m, k), NULL), *y[4];
        for (int64_t j = 0; j < m * k; j++) qkv_tensor_data_mut(x)[j] = (float)((j * 37 + 11) % 101) / 50 - 1;
        qkv__set_packed_limit(i % 2 ? limit : 0);
        for (int j = 0; j < 3; j++) {
            assert_int_equal(qkv_packed_bytes() > 0, j == 2 && i % 2 && kern->packed_floats(n, k));
            y[j] = qkv_affine(x, w, NULL);
        }
        assert_int_equal(qkv__params_materialize(p), QKV_OK);
        assert_int_equal(qkv_packed_bytes(), 0);
        y[3] = qkv_affine(x, w, NULL);
        for (int j = 0; j < 3; j++)
            assert_memory_equal(qkv_tensor_data(y[j]), qkv_tensor_data(y[3]), sizeof(float) * (size_t)(m * n));
        qkv_tape_free(t);
        qkv_params_free(p);
        free(values);
        free(wide);
    }
    qkv__set_packed_limit(limit);
}

/* A model of 16 bits gives the bits it gives when it is widened; and its matrices were not widened before. */
static void narrow_models(void **state)
{
    (void)state;
    static float narrow[MOST], wide[MOST];
    static const char *const some[] = { "qwen2", "mistral" };
    for (int i = 0; i < 2; i++) {
        qkv_model *m = load(golden_folder(some[i]));
        assert_int_equal(open_golden(some[i]), QKV_OK);
        batch b = read_batch(false);
        assert_null(qkv_tensor_data(qkv_params_find(qkv__model_params(m), "decoder.0.self.q.weight")));
        assert_null(qkv_tensor_data(qkv_params_find(qkv__model_params(m), "embed.weight")));
        int64_t n = copy_last(m, &b, narrow);
        assert_int_equal(qkv__params_materialize(qkv__model_params(m)), QKV_OK);
        assert_non_null(qkv_tensor_data(qkv_params_find(qkv__model_params(m), "embed.weight")));
        assert_int_equal(copy_last(m, &b, wide), n);
        assert_memory_equal(narrow, wide, sizeof(float) * (size_t)n);
        qkv__safetensors_free(&golden);
        qkv_model_free(m);
    }
}

/* A model is saved from where its weights lie: they stay there, in 16 bits, and its folder may be gone by then. */
static void saving_changes_nothing(void **state)
{
    (void)state;
    static const char *const some[] = { "qwen2", "mistral", "gpt2" };
    for (int i = 0; i < 3; i++) {
        char command[1024];
        snprintf(command, sizeof command, "rm -rf %s && mkdir %s && cp -r %s %s", folder, folder, golden_folder(some[i]),
                 in_folder("was"));
        assert_int_equal(system(command), 0);
        qkv_model *m = load(in_folder("was"));
        const qkv_tensor *w = qkv_params_find(qkv__model_params(m), "embed.weight");
        const float *lies = qkv_tensor_data(w);
        assert_true(i == 2 ? lies != NULL : lies == NULL);
        qkv_dtype dtype = qkv_tensor_dtype(w);
        assert_true(i == 2 ? dtype == QKV_DTYPE_F32 : dtype == QKV_DTYPE_BF16 || dtype == QKV_DTYPE_F16);
        assert_true(qkv_tensor_bytes(w) && (i < 2 || qkv_tensor_bytes(w) == lies));
        assert_int_equal(rename(in_folder("was"), in_folder("moved")), 0);
        assert_int_equal(qkv_model_save(m, in_folder("saved"), NULL), QKV_OK);
        if (i < 2) assert_int_equal(qkv_model_save(m, in_folder("saved/ours"), "qkv"), QKV_OK);
        assert_true(qkv_tensor_data(w) == lies);
        qkv_model *again = load(in_folder("saved")), *native = load(in_folder(i < 2 ? "saved/ours" : "moved"));
        same_weights(again, native);
        same_weights(m, again);
        qkv_model_free(m);
        qkv_model_free(again);
        qkv_model_free(native);
    }
}

/* What cannot read such a weight says so. */
static void narrow_weights_elsewhere(void **state)
{
    (void)state;
    qkv_model *m = load(golden_folder("qwen2"));
    qkv_tensor *w = qkv_params_find(qkv__model_params(m), "embed.weight");
    qkv_tape *t = qkv_tape_new(NULL);
    qkv_tensor *x = qkv_variable(t, QKV_SHAPE(3, 16), NULL);
    assert_null(qkv_add(x, w));
    assert_int_equal(qkv_tape_status(t), QKV_USAGE);
    assert_non_null(strstr(qkv_error(), "QKV_DTYPE_F32"));
    qkv_tape_reset(t);
    assert_null(qkv_on(t, w));
    assert_int_equal(qkv_tape_status(t), QKV_USAGE);
    qkv_tape_reset(t);
    x = qkv_variable(t, QKV_SHAPE(3, 16), NULL);
    qkv_tensor *y = qkv_sum(qkv_affine(x, w, NULL),
                            QKV_ALL_DIMS); /* its backward widens the weight: dx is the sum of its rows */
    assert_int_equal(qkv_backward(y), QKV_OK);
    qkv_tape *plain = qkv_tape_new(&(qkv_tape_opts){ .inference = 1 });
    qkv_tensor *identity = qkv_constant(plain, QKV_SHAPE(16, 16), NULL);
    for (int i = 0; i < 16; i++) qkv_tensor_data_mut(identity)[17 * i] = 1;
    qkv_tensor *columns = qkv_affine(identity, w, NULL); /* (16, V): the weight, turned */
    for (int i = 0; i < 16; i++) {
        double sum = 0;
        for (int64_t v = 0; v < qkv_tensor_dim(columns, 1); v++)
            sum += (double)qkv_tensor_data(columns)[i * qkv_tensor_dim(columns, 1) + v];
        assert_float_equal(qkv_tensor_grad(x)[i], sum, 1e-4);
    }
    qkv_tape_free(plain);
    qkv_tape_free(t);
    qkv_model_free(m);
}

/* ---- failing calls ---- */

static const char *loaded_folder;

static qkv_status load_once(void)
{
    qkv_model *m = qkv_model_load(loaded_folder, NULL);
    qkv_status status = m ? QKV_OK : qkv_error_status();
    qkv_model_free(m);
    return status;
}

static qkv_status save_once(void)
{
    qkv_model *m = qkv_model_load(loaded_folder, NULL);
    qkv_status status = m ? qkv_model_save(m, folder, NULL) : qkv_error_status();
    qkv_model_free(m);
    return status;
}

static void any_allocation_may_fail(void **state)
{
    (void)state;
    static const char *const some[] = { "marian", "bert_classify", "gpt2" };
    for (int i = 0; i < 3; i++) {
        loaded_folder = golden_folder(some[i]);
        assert_true(each_allocation_fails(load_once) > 20);
    }
    loaded_folder = golden_folder("gpt2");
    assert_true(each_allocation_fails(save_once) > 20);
}

static void any_file_call_may_fail(void **state)
{
    (void)state;
    loaded_folder = golden_folder("bert_sentence");
    for (long n = 0;; n++) {
        use_failing_files(n);
        qkv_status status = load_once();
        bool failed = failing.failed;
        assert_int_equal(failing.open, 0);
        assert_int_equal(failing.mapped, 0);
        qkv__set_files(NULL);
        if (!failed) {
            assert_int_equal(status, QKV_OK);
            assert_true(n > 5);
            break;
        }
        assert_true(status == QKV_IO || status == QKV_OK); /* a file that could not be closed was read all the same */
    }
}

/* ---- a model that someone else trained ---- */

static void stories(void **state)
{
    (void)state;
    const qkv__json_value *said = json_read(STORIES "/reference_logits.json");
    if (!said) {
        print_message("skipped: there is no " STORIES "\n");
        skip();
    }
    qkv_model *m = load(STORIES);
    const qkv__json_value *ids = qkv__json_get(said, "ids"), *logits = qkv__json_get(said, "logits");
    int64_t length = (int64_t)qkv__json_size(ids);
    int32_t given[64];
    assert_true(length > 1 && length <= 64);
    for (int64_t i = 0; i < length; i++) given[i] = (int32_t)qkv__json_int(qkv__json_at(ids, (size_t)i));
    qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .inference = 1 });
    const qkv__transformer *x = qkv__model_transformer(m);
    qkv_tensor *got = qkv__transformer_logits(
        x, qkv__transformer_decode(x, t, &(qkv_tokens){ .ids = given, .rows = 1, .length = length }, NULL, NULL));
    int64_t size = qkv_tensor_dim(got, -1);
    double worst = 0;
    for (int64_t i = 0; i < length; i++)
        for (int64_t k = 0; k < size; k++) {
            const qkv__json_value *row = qkv__json_at(logits, (size_t)i);
            double expected = qkv__json_number(qkv__json_at(row, (size_t)k));
            worst = fmax(worst, fabs(expected - (double)qkv_tensor_data(got)[i * size + k]));
        }
    if (!(worst <= 1e-4)) fail_msg("logits differ by %g", worst);
    print_message("logits of stories260K differ by %.3g at most\n", worst);
    qkv_tape_free(t);
    qkv_model_free(m);
    json_free(said);
}

/* The tokenizer's file goes along, since it cannot be written anew. */
static void stories_are_saved(void **state)
{
    (void)state;
    char command[1024];
    snprintf(command, sizeof command, "cp '%s'/config.json '%s'/model.safetensors '%s'/../tok512.model %s", STORIES, STORIES,
             STORIES, folder);
    FILE *there = fopen(STORIES "/config.json", "r");
    if (!there) {
        print_message("skipped: there is no " STORIES "\n");
        skip();
    }
    fclose(there);
    assert_int_equal(system(command), 0);
    char saved[128];
    snprintf(saved, sizeof saved, "%s/saved", folder);
    qkv_model *m = load(folder);
    const qkv_tokenizer *t = qkv_model_tokenizer(m, QKV_SIDE_SOURCE);
    assert_int_equal(qkv_tokenizer_vocab_size(t), 512);
    if (qkv_model_save(m, saved, NULL)) fail_msg("%s", qkv_error());
    qkv_model *again = load(saved);
    same_weights(m, again);
    assert_int_equal(qkv_tokenizer_vocab_size(qkv_model_tokenizer(again, QKV_SIDE_SOURCE)), 512);
    qkv_model_free(again);
    qkv_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parity_with_pytorch),
        cmocka_unit_test(steps_equal_a_whole_forward),
        cmocka_unit_test(writes_what_pytorch_writes),
        cmocka_unit_test(gradients_of_pytorch),
        cmocka_unit_test(info_of_marian),
        cmocka_unit_test(info_of_the_others),
        cmocka_unit_test_setup_teardown(bad_keys, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(other_names_of_roberta, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(generation_that_files_ask_for, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(info_comes_back, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(turned_matrices_come_back, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(only_what_is_said_is_written, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(labels_are_written_both_ways, make_folder, remove_folder),
        cmocka_unit_test(memory_for_one_like_it_may_fail),
        cmocka_unit_test_setup_teardown(bounds_of_keys, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(ids_outside, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(one_class_of_any_kind, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(several_labels_a_text, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(bad_modules, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(missing_keys, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(saved_and_loaded, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(ours_under_their_names, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(words_without_a_head, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(shapes_that_stand_in_the_way, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(folded_under_their_names, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(like_another, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(tokenizers_of_a_model, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(nothing_is_copied, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(loaded_models_train, make_folder, remove_folder),
        cmocka_unit_test(narrow_products),
        cmocka_unit_test(narrow_models),
        cmocka_unit_test(saving_changes_nothing),
        cmocka_unit_test(packed_products),
        cmocka_unit_test(narrow_weights_elsewhere),
        cmocka_unit_test_setup_teardown(any_allocation_may_fail, make_folder, remove_folder),
        cmocka_unit_test(any_file_call_may_fail),
        cmocka_unit_test(stories),
        cmocka_unit_test_setup_teardown(stories_are_saved, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
