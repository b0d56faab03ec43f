/* models.c: models to measure, and what a token costs in them. */
#include "measure.h"

#include "../../src/base/file.h"
#include "../../src/nn/layer.h"
#include "../../src/tensor/types.h"
#include "../../src/model/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- random weights ---- */

static qkv_tokenizer *tokenizer_of(const char *words)
{
    qkv_word_counts *w = qkv_word_counts_new(QKV_TOKEN_WORDS);
    qkv_status status = w ? qkv_word_counts_add(w, qkv_cstr(words)) : QKV_MEMORY;
    const qkv_tokenizer_opts opts = { .vocab_size = 8000, .min_count = 1 };
    qkv_tokenizer *t = status ? NULL : qkv_tokenizer_train(w, &opts);
    qkv_word_counts_free(w);
    return t;
}

static qkv_status save_random_model(const qkv_config *shape, const char *words, const char *folder)
{
    qkv_model *m = qkv_model_new(shape, 1);
    qkv_tokenizer *t = m && words ? tokenizer_of(words) : NULL;
    qkv_status status = m && !words == !t ? QKV_OK : qkv_error_status();
    if (t && !status && (status = qkv_model_set_tokenizers(m, t, NULL))) qkv_tokenizer_free(t);
    if (!status) status = qkv_model_save(m, folder, NULL);
    qkv_model_free(m);
    return status;
}

/* What is mapped stays. */
static void remove_model(const char *folder)
{
    static const char *const files[] = { "config.json", "model.safetensors", "tokenizer.json" };
    char path[4096];
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        unlink(path);
    }
    rmdir(folder);
}

/* The one place where a model is loaded to be measured. */
static qkv_model *load_bench_model(const qkv__bench *b, const char *folder)
{
    qkv_load_opts o = QKV_OPTS(qkv_load_opts);
    o.dtype = b->o.weights;
    return qkv_model_load(folder, &o);
}

qkv_model *qkv__bench_model(const qkv__bench *b, const qkv_config *shape, const char *words)
{
    char folder[2048];
    if (b->o.folder) return load_bench_model(b, b->o.folder);
    if ((size_t)snprintf(folder, sizeof folder, "%s/qkv-bench-XXXXXX", qkv__temporary_folder()) >= sizeof folder ||
        !mkdtemp(folder)) {
        qkv__fail(QKV_IO, "bench: no folder for a model can be made in %s (TMPDIR names another)", qkv__temporary_folder());
        return NULL;
    }
    qkv_status status = save_random_model(shape, words, folder);
    qkv_model *m = status ? NULL : load_bench_model(b, folder);
    remove_model(folder);
    return m;
}

void qkv__some_ids(int32_t *ids, int64_t n, int64_t vocabulary)
{
    for (int64_t i = 0; i < n; i++) ids[i] = (int32_t)((i * 7919 + 3) % vocabulary);
}

/* ---- weights ---- */

static void add_linear(qkv__weights *w, const qkv_linear *l)
{
    if (!l->weight) return;
    const qkv__type *type = qkv__type_of(l->weight);
    int64_t out = l->weight->shape[0], in = l->weight->shape[1];
    w->count += (double)l->weight->count;
    w->bytes += (double)(out * qkv__type_row_bytes(type, in));
    if (type->scales) w->bytes += (double)(out * qkv__type_row_scales(type, in) * qkv__type_scale_bytes(type));
}

static void add_layer(qkv__weights *w, const qkv__layer *l)
{
    const qkv_linear *const all[] = { &l->self.q,    &l->self.k, &l->self.v,   &l->self.out, &l->cross.q,
                                      &l->cross.out, &l->ffn.in, &l->ffn.gate, &l->ffn.out };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) add_linear(w, all[i]);
}

qkv__weights qkv__encoder_weights(const qkv_model *m)
{
    const qkv__transformer *x = qkv__model_transformer(m);
    qkv__weights w = { 0 };
    for (int i = 0; i < x->stacks[QKV__ENCODER].n; i++) add_layer(&w, &x->stacks[QKV__ENCODER].layers[i]);
    for (int i = 0; i < x->stacks[QKV__DECODER].n; i++) {
        add_linear(&w, &x->stacks[QKV__DECODER].layers[i].cross.k);
        add_linear(&w, &x->stacks[QKV__DECODER].layers[i].cross.v);
    }
    return w;
}

qkv__weights qkv__decoder_weights(const qkv_model *m)
{
    const qkv__transformer *x = qkv__model_transformer(m);
    qkv__weights w = { 0 };
    for (int i = 0; i < x->stacks[QKV__DECODER].n; i++) add_layer(&w, &x->stacks[QKV__DECODER].layers[i]);
    return w;
}

qkv__weights qkv__output_weights(const qkv_model *m)
{
    qkv__weights w = { 0 };
    add_linear(&w, &qkv__model_transformer(m)->head);
    add_linear(&w, &qkv__model_transformer(m)->output);
    return w;
}
