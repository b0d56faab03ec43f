/* serve_models.h: small models with random weights for the tests of the server, one for each job. */
#ifndef QKV_TESTS_SERVE_MODELS_H
#define QKV_TESTS_SERVE_MODELS_H

#include <qkv/qkv.h>
#include "nn/params.h"
#include "serve/serve.h"

#include <string.h>

enum { MODEL_PAIR, MODEL_CLASSES, MODEL_LANGUAGE, MODEL_ENCODER, MODEL_KINDS };

static inline qkv_tokenizer *learn_tokens(void)
{
    static const char *const corpus[] = {
        "the cat sat on the mat", "I love you", "you love the cat",    "我爱你",
        "猫坐在垫子上",           "你爱猫",     "the dog and the cat", "the mat and the dog"
    };
    qkv_word_counts *w = qkv_word_counts_new(QKV_TOKEN_BPE);
    qkv_tokenizer *t = NULL;
    qkv_status status = w ? QKV_OK : qkv_error_status();
    for (size_t i = 0; i < sizeof corpus / sizeof *corpus && !status; i++) status = qkv_word_counts_add(w, qkv_cstr(corpus[i]));
    if (!status) t = qkv_tokenizer_train(w, &(qkv_tokenizer_opts){ .vocab_size = 330, .min_count = 1 });
    qkv_word_counts_free(w);
    return t;
}

/* Larger weights than usual, so that the model has opinions, and an end that does not come at once. */
static inline void sharpen(qkv_model *m, int64_t dim)
{
    qkv_params *p = qkv_model_params(m);
    for (int64_t i = 0; i < qkv__params_block(p); i++) qkv__params_data(p)[i] *= 1.7f;
    float *end = qkv_tensor_data_mut(qkv_params_find(p, "embed.weight")) + 2 * dim;
    for (int64_t i = 0; i < dim; i++) end[i] *= 0.3f;
}

static inline qkv_model *make_served(int kind)
{
    static const char *const labels[] = { "good", "bad", "so so" };
    qkv_tokenizer *t = learn_tokens();
    qkv_config o = { .vocab_size = qkv_tokenizer_vocab_size(t), .dim = 16, .heads = 2, .d_ff = 32 };
    if (kind != MODEL_LANGUAGE) o.encoder_layers = 2;
    if (kind == MODEL_PAIR || kind == MODEL_LANGUAGE) o.decoder_layers = 2;
    if (kind == MODEL_CLASSES) o.classes = 3;
    qkv_model *m = t ? qkv_model_new(&o, 11) : NULL;
    qkv_status status = m ? qkv_model_set_tokenizers(m, t, NULL) : QKV_FAILURE;
    if (status) qkv_tokenizer_free(t);
    if (!status && kind == MODEL_CLASSES) status = qkv_model_set_labels(m, labels, 3, QKV_PROBLEM_CLASSIFICATION, NULL);
    if (!status) {
        sharpen(m, o.dim);
        return m;
    }
    qkv_model_free(m);
    return NULL;
}

/* ---- one server for each kind ---- */
static qkv_model *models[MODEL_KINDS];
static qkv_server *servers[MODEL_KINDS];
static int ports[MODEL_KINDS];

static inline int start_servers(qkv_server_opts opts)
{
    opts.source_language = "en", opts.target_language = "zh";
    for (int kind = 0; kind < MODEL_KINDS; kind++) {
        if (!(models[kind] = make_served(kind))) return -1;
        if (!(servers[kind] = qkv_server_new(models[kind], &opts))) return -1;
        ports[kind] = qkv_server_port(servers[kind]);
    }
    return 0;
}

static inline int stop_servers(void **state)
{
    (void)state;
    for (int kind = 0; kind < MODEL_KINDS; kind++) {
        qkv_server_free(servers[kind]);
        qkv_model_free(models[kind]);
    }
    qkv_shutdown();
    return 0;
}

#endif
