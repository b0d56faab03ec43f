/* decoding.c: generating, translating and embedding, against the machine and the programs that the environment names; and what
 * the caches of a beam take. */
#include "bench/bench.h"

#include <qkv/unstable/util.h>
#include "bench.h"

#include <stdio.h>

enum { SENTENCES = 32, SOURCE = 24, TARGET = 32, BEAM = 4, PROMPT = 512, NEW_TOKENS = 64 };

/* ---- rows and their peers ---- */

static void tell_program(void *data, const qkv_bench_row *row) { ask_program(data, row); }

/* Of a generation the prompt comes first. */
typedef struct generation {
    question prompt, text;
    int row;
} generation;

static void tell_generators(void *data, const qkv_bench_row *row)
{
    generation *g = data;
    ask_program(g->row++ ? &g->text : &g->prompt, row);
}

static void measure_generation(bool quick, qkv_dtype weights)
{
    qkv_bench_opts o = { .quick = quick, .batch = 1, .length = PROMPT, .new_tokens = NEW_TOKENS, .weights = weights };
    generation g = { .prompt = { "QKV_BENCH_LLAMA", "prompt", o }, .text = { "QKV_BENCH_LLAMA", "generate", o } };
    run_bench(QKV_BENCH_GENERATE, &o, tell_generators, &g);
}

static void measure_translation(bool quick, qkv_dtype weights)
{
    for (int64_t batch = 1; batch <= SENTENCES; batch += SENTENCES - 1)
        for (int beam = 1; beam <= BEAM; beam += BEAM - 1) {
            question q = {
                "QKV_BENCH_CT2",
                "translate",
                { .quick = quick, .batch = batch, .beam = beam, .length = SOURCE, .new_tokens = TARGET, .weights = weights }
            };
            run_bench(QKV_BENCH_TRANSLATE, &q.o, tell_program, &q);
        }
}

static void measure_embedding(bool quick, qkv_dtype weights)
{
    question q = { "QKV_BENCH_ORT", "embed", { .quick = quick, .batch = 256, .length = 15, .weights = weights } };
    run_bench(QKV_BENCH_EMBED, &q.o, tell_program, &q);
}

/* ---- caches ---- */

/* Keys and values while a beam goes on, whose rows share what they have in common: against rows that have all of it for
 * themselves. Of the rows of a sentence two come from its best, one each from the next two. */
static void measure_caches(void)
{
    enum { ROWS = SENTENCES * BEAM };
    static const int64_t from[BEAM] = { 0, 0, 1, 2 };
    qkv_config o = QKV_OPTS(qkv_config);
    stop_on(qkv_config_preset("base", 32000, &o));
    qkv_model *m = qkv_model_new(&o, 1);
    qkv_session *s = m ? qkv_session_new(m, NULL) : NULL;
    stop_on(s ? QKV_OK : qkv_error_status());
    int32_t ids[SENTENCES * SOURCE] = { 0 };
    int64_t parents[ROWS], plain = ROWS * (SOURCE + TARGET) * 2 * o.decoder_layers * o.dim * (int64_t)sizeof(float);
    stop_on(qkv_session_encode(s, &(qkv_tokens){ .ids = ids, .rows = SENTENCES, .length = SOURCE }));
    for (int i = 0; i < ROWS; i++) parents[i] = i / BEAM;
    stop_on(qkv_session_select(s, parents, ROWS));
    for (int i = 0; i < ROWS; i++) parents[i] = i / BEAM * BEAM + from[i % BEAM];
    for (int step = 0; step < TARGET; step++) {
        stop_on(qkv_session_read(s, ids, NULL, QKV_LOGITS_NONE));
        stop_on(qkv_session_select(s, parents, ROWS));
    }
    printf("caches of 32 sentences, base, beam 4: %.1f MB, %.2f of what rows by themselves have\n",
           (double)qkv_session_bytes(s) / 1e6, (double)qkv_session_bytes(s) / (double)plain);
    qkv_session_free(s);
    qkv_model_free(m);
}

void bench_decoding(int threads, bool quick)
{
    static const qkv_dtype kept[] = { QKV_DTYPE_STORED, QKV_DTYPE_BF16, QKV_DTYPE_INT8, QKV_DTYPE_INT4 };
    stop_on(qkv_set_num_threads(threads));
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        char line[64];
        printf("\ndecoding%s, %s\n%s\n", kept[i] == QKV_DTYPE_INT4 || kept[i] == QKV_DTYPE_BF16 ? "" : " and embedding",
               weights_name(kept[i]), qkv_bench_heading());
        snprintf(line, sizeof line, "{\"weights\": \"%s\"}", weights_name(kept[i]));
        keep_json(threads, line);
        if (kept[i] == QKV_DTYPE_STORED || kept[i] == QKV_DTYPE_INT8) {
            measure_embedding(quick, kept[i]);
            measure_translation(quick, kept[i]);
        }
        measure_generation(quick, kept[i]);
    }
    measure_caches();
}
