/* decoding.c: reading a prompt, generating and beam search, against the machine's peak and the speed of its memory. The models
 * have the shapes of real ones and random weights; they are saved and loaded, as a user's are. */
#include "bench.h"

#include <qkv/qkv.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { PROMPT = 512, STEPS = 64, SENTENCES = 32, SOURCE = 24, TARGET = 32, BEAM = 4 };

static void stop_on(qkv_status status)
{
    if (!status) return;
    fprintf(stderr, "bench: %s\n", qkv_error());
    exit(1);
}

static qkv_model *saved_and_loaded(const qkv_transformer_opts *o)
{
    char folder[] = "/tmp/qkv-bench-XXXXXX", path[64];
    if (!mkdtemp(folder)) stop_on(QKV_IO);
    qkv_model *m = qkv_model_new(o, 1);
    stop_on(m ? qkv_model_save(m, folder) : qkv_error_status());
    qkv_model_free(m);
    m = qkv_model_load(folder);
    stop_on(m ? QKV_OK : qkv_error_status());
    const char *const files[] = { "config.json", "model.safetensors" };
    for (int i = 0; i < 2; i++) snprintf(path, sizeof path, "%s/%s", folder, files[i]), unlink(path); /* it stays mapped */
    rmdir(folder);
    return m;
}

/* Multiply-adds, and bytes of weights, that one token costs in the layers and in the output. */
static double layer_weights(const qkv_transformer_opts *o)
{
    double d = (double)o->dim, ffn = (o->activation == QKV_ACTIVATION_SILU_GATED ? 3 : 2) * d * (double)o->d_ff;
    return o->decoder_layers * ((o->encoder_layers ? 6 : 4) * d * d + ffn);
}
static double output_weights(const qkv_transformer_opts *o) { return (double)o->dim * (double)o->vocabulary; }

static void print_rate(const char *what, double tokens, const samples *s, double share, double median_share, const char *of)
{
    printf("%-44s %8.1f / %8.1f tokens/s, %.2f / %.2f of the %s\n", what, tokens / best_of(s), tokens / median_of(s), share,
           median_share, of);
}

/* A decoder alone: a prompt in one read, then token by token. */
static void measure_generation(int threads, int rounds)
{
    const qkv_transformer_opts o = { .vocabulary = 32000,
                                     .decoder_layers = 12,
                                     .dim = 768,
                                     .heads = 12,
                                     .d_ff = 2048,
                                     .pre_norm = 1,
                                     .norm = QKV_NORM_RMS,
                                     .activation = QKV_ACTIVATION_SILU_GATED,
                                     .positions = QKV_POSITION_ROTARY,
                                     .no_bias = 1,
                                     .untied = 1 };
    qkv_model *m = saved_and_loaded(&o);
    qkv_session *s = qkv_session_new(m, NULL);
    stop_on(s ? QKV_OK : qkv_error_status());
    int32_t ids[PROMPT];
    for (int i = 0; i < PROMPT; i++) ids[i] = (i * 7919) % 32000;
    samples prompt = { 0 }, steps = { 0 };
    for (int round = 0; round <= rounds; round++) { /* the first finds its memory */
        stop_on(qkv_session_start(s, 1));
        double begin = seconds();
        stop_on(qkv_session_read(s, ids, (int64_t[]){ PROMPT }, QKV_LOGITS_LAST));
        double middle = seconds();
        for (int i = 0; i < STEPS; i++) stop_on(qkv_session_step(s, ids + i));
        if (round) add_sample(&prompt, middle - begin), add_sample(&steps, seconds() - middle);
    }
    double flops = 2 * (PROMPT * layer_weights(&o) + output_weights(&o)) / peak_flops(threads);
    double bytes = 4 * STEPS * (layer_weights(&o) + output_weights(&o)) / read_bandwidth(threads);
    print_rate("Llama shape, 134M, prompt of 512", PROMPT, &prompt, flops / best_of(&prompt), flops / median_of(&prompt),
               "peak");
    print_rate("Llama shape, 134M, generation", STEPS, &steps, bytes / best_of(&steps), bytes / median_of(&steps),
               "memory's speed");
    qkv_session_free(s);
    qkv_model_free(m);
}

static void measure_search(int threads, int rounds)
{
    qkv_transformer_opts o = QKV_OPTS(qkv_transformer_opts);
    stop_on(qkv_transformer_preset("base", 32000, &o));
    qkv_model *m = saved_and_loaded(&o);
    int32_t ids[SENTENCES * SOURCE];
    for (int i = 0; i < SENTENCES * SOURCE; i++) ids[i] = 3 + (i * 7919) % 31000;
    for (int beam = 1; beam <= BEAM; beam += BEAM - 1)
        for (int64_t n = 1; n <= SENTENCES; n += SENTENCES - 1) {
            const qkv_search_opts opts = { .start = 1, .end = 2, .pad = 0, .beam = beam, .max_length = TARGET };
            qkv_search_result found = { 0 };
            samples taken = { 0 };
            for (int round = 0; round <= rounds; round++) {
                double begin = seconds();
                stop_on(qkv_search(m, ids, n, SOURCE, NULL, &opts, &found));
                if (round) add_sample(&taken, seconds() - begin);
            }
            char what[80];
            snprintf(what, sizeof what, "base, %lld sentence%s, beam %d, 32 tokens each", (long long)n, n > 1 ? "s" : "", beam);
            double tokens = (double)(n * TARGET);
            double flops = 2 * tokens * beam * (layer_weights(&o) + output_weights(&o)) / peak_flops(threads);
            print_rate(what, tokens, &taken, flops / best_of(&taken), flops / median_of(&taken), "peak");
            qkv_search_result_free(&found);
        }
    qkv_model_free(m);
}

/* Keys and values while a beam goes on, whose rows share what they have in common: against rows that have all of it for
 * themselves. Of the rows of a sentence two come from its best, one each from the next two. */
static void measure_caches(void)
{
    enum { ROWS = SENTENCES * BEAM };
    static const int64_t from[BEAM] = { 0, 0, 1, 2 };
    qkv_transformer_opts o = QKV_OPTS(qkv_transformer_opts);
    stop_on(qkv_transformer_preset("base", 32000, &o));
    qkv_model *m = qkv_model_new(&o, 1);
    qkv_session *s = m ? qkv_session_new(m, NULL) : NULL;
    stop_on(s ? QKV_OK : qkv_error_status());
    int32_t ids[SENTENCES * SOURCE] = { 0 };
    int64_t parents[ROWS], plain = ROWS * (SOURCE + TARGET) * 2 * o.decoder_layers * o.dim * (int64_t)sizeof(float);
    stop_on(qkv_session_encode(s, ids, SENTENCES, SOURCE, NULL));
    for (int i = 0; i < ROWS; i++) parents[i] = i / BEAM;
    stop_on(qkv_session_select(s, parents, ROWS));
    for (int i = 0; i < ROWS; i++) parents[i] = i / BEAM * BEAM + from[i % BEAM];
    for (int step = 0; step < TARGET; step++) {
        stop_on(qkv_session_read(s, ids, NULL, QKV_LOGITS_NONE));
        stop_on(qkv_session_select(s, parents, ROWS));
    }
    printf("%-44s %8.1f MB, %.2f of what rows by themselves have\n", "base, caches of 32 sentences, beam 4",
           (double)qkv_session_bytes(s) / 1e6, (double)qkv_session_bytes(s) / (double)plain);
    qkv_session_free(s);
    qkv_model_free(m);
}

void bench_decoding(int threads, bool quick)
{
    printf("\ndecoding, %d thread%s: float32; best / median\n", threads, threads > 1 ? "s" : "");
    measure_generation(threads, quick ? 1 : 5);
    measure_search(threads, quick ? 1 : 5);
    measure_caches();
}
