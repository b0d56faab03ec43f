/* bench_embedding.c: sentences to vectors, tokenizing included. */
#include "bench.h"
#include "measure.h"

#include "../../src/base/buffer.h"

#include "../../src/base/memory.h"
#include "../../src/base/size.h"

#include <qkv/task.h>

#include <stdio.h>
#include <string.h>

enum { LENGTH = 15, SENTENCES = 256, AROUND = 2 };

/* The shape of MiniLM, as sentence encoders have it. */
static const qkv_config minilm = { .vocab_size = 30522,
                                   .encoder_layers = 6,
                                   .dim = 384,
                                   .heads = 12,
                                   .d_ff = 1536,
                                   .activation = QKV_ACTIVATION_GELU,
                                   .positions = QKV_POSITION_LEARNED,
                                   .max_positions = 512,
                                   .embed_norm = 1,
                                   .unscaled = 1 };
static const char *const words[] = { "the", "people", "of", "a", "small", "town", "like", "to", "walk", "and", "talk", "by" };
enum { WORDS = sizeof words / sizeof *words };

typedef struct embedding {
    const qkv_model *m;
    qkv_str *texts;
    int64_t n;
    qkv_matrix *vectors;
} embedding;

static qkv_status embed_once(void *work, double *aside)
{
    (void)aside;
    embedding *e = work;
    return qkv_embed(e->m, e->texts, e->n, NULL, &e->vectors);
}

/* The words, again and again, until they make so many tokens; *tokens then says how many they are. */
static qkv_status make_sentence(const qkv_tokenizer *t, int64_t wanted, qkv_buffer *out, int64_t *tokens)
{
    qkv_encoding *ids = NULL;
    qkv_status status = QKV_OK;
    *tokens = 0;
    for (int64_t i = 0; *tokens < wanted && !status; i++) {
        if (i) status = qkv__buffer_put(out, " ", 1);
        if (!status) status = qkv__buffer_put(out, words[i % WORDS], strlen(words[i % WORDS]));
        if (!status) status = qkv_tokenizer_encode(t, (qkv_str){ out->data, out->length }, NULL, &ids);
        if (!status) *tokens = ids->n;
    }
    qkv_free(ids);
    return status;
}

/* The same sentence again and again. */
static qkv_status measure_sentences(const qkv__bench *b, embedding *e, const char *sentence, int64_t tokens)
{
    int64_t n = b->o.batch ? b->o.batch : SENTENCES;
    size_t bytes = sizeof *e->texts * (size_t)n;
    if (!(e->texts = qkv__alloc(bytes))) return QKV_MEMORY;
    for (int64_t i = 0; i < n; i++) e->texts[i] = qkv_cstr(sentence);
    e->n = n;
    qkv_bench_row row = { .unit = "sentences", .amount = (double)n };
    row.operations = 2 * (double)(n * (tokens + AROUND)) * qkv__encoder_weights(e->m).count;
    snprintf(row.name, sizeof row.name, "%s, %lld sentences of %lld tokens", b->o.folder ? "model" : "MiniLM", (long long)n,
             (long long)(tokens + AROUND));
    qkv_status status = qkv__bench_measure(b, row, embed_once, e);
    qkv_free(e->vectors);
    qkv__release(e->texts, bytes);
    return status;
}

static qkv_status measure_embedding(const qkv__bench *b, const qkv_model *m)
{
    qkv_config x = { .size = sizeof x };
    qkv_model_config(m, &x);
    const qkv_tokenizer *t = qkv_model_tokenizer(m, QKV_SIDE_SOURCE);
    if (!x.encoder_layers || !t) return qkv__fail(QKV_USAGE, "bench: to embed, the model needs an encoder and a tokenizer");
    embedding e = { .m = m };
    qkv_buffer sentence = { 0 };
    int64_t tokens, wanted = qkv__max(1, (b->o.length ? b->o.length : LENGTH) - AROUND);
    qkv_status status = make_sentence(t, wanted, &sentence, &tokens);
    if (!status) status = measure_sentences(b, &e, sentence.data, tokens);
    qkv_buffer_free(&sentence);
    return status;
}

qkv_status qkv__bench_embedding(const qkv__bench *b)
{
    qkv_buffer all = { 0 };
    qkv_status status = QKV_OK;
    for (int i = 0; i < WORDS && !status; i++) {
        status = qkv__buffer_put(&all, words[i], strlen(words[i]));
        if (!status) status = qkv__buffer_put(&all, " ", 1);
    }
    qkv_model *m = status ? NULL : qkv__bench_model(b, &minilm, all.data);
    qkv_buffer_free(&all);
    if (!m) return status ? status : qkv_error_status();
    status = measure_embedding(b, m);
    qkv_model_free(m);
    return status;
}
