/* qkv/bench.h: how fast this machine computes, trains, translates, generates and embeds, and how much that is of what the
 * machine can do: of its fused multiply-adds, and of the speed at which it reads what has the size of the weights.
 *
 * Threads: one call at a time in a process that does nothing else: it is the machine that is measured. */
#ifndef QKV_BENCH_H
#define QKV_BENCH_H

#include <qkv/model.h>
#include <qkv/unstable/buffer.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What is measured: QKV_BENCH_MATMUL, and so on, each with its name. */
#define QKV_BENCH_LIST(B)                                                                                        \
    B(MATMUL, "matmul")       /* y = x W^T, as layers have it */                                                 \
    B(ATTENTION, "attention") /* 8 heads of 64, forward alone and with backward, full and causal */              \
    B(TRAIN, "train")         /* a step of an encoder-decoder with Adam: the presets "small" and "base" */       \
    B(TRANSLATE, "translate") /* beam search of the preset "base" with 32,000 tokens, or of a model */           \
    B(GENERATE, "generate")   /* a prompt, then token by token: a Llama of 134 million parameters, or a model */ \
    B(EMBED, "embed")         /* sentences: an encoder of 6 layers and 384 dimensions, or a model */

#define QKV_BENCH_ENUM(constant, name) QKV_BENCH_##constant,
typedef enum qkv_bench_kind { QKV_BENCH_LIST(QKV_BENCH_ENUM) QKV_BENCH_KINDS } qkv_bench_kind;
#undef QKV_BENCH_ENUM

/* "matmul" and so on, static text; NULL for another number. */
QKV_API const char *qkv_bench_name(qkv_bench_kind kind);

/* Zero means the default. A beam, or new tokens, where there are none, is USAGE. */
typedef struct qkv_bench_opts {
    size_t size;
    const char *folder; /* the model to translate, generate or embed with; NULL: random weights, saved to a temporary folder (in
                           TMPDIR, or /tmp) and loaded, as a user's are */
    int repeat;         /* samples of each; 0: at least 5, for a second */
    int quick;          /* 1: at least 1, for a tenth of a second, and of matmul and train the small ones alone */
    int64_t batch;      /* rows of x, sequences, pairs, sentences or prompts at a time; 0: those that docs/bench.md lists */
    int beam;           /* of translate; 0: 1 and 4 */
    int64_t length; /* tokens that are read: of a sequence, a source, a prompt, a sentence; 0: as docs/bench.md lists them */
    int64_t new_tokens; /* tokens that are written; 0: 32 of a translation, 64 of a generation */
    qkv_dtype weights;  /* of the model: as stored, bfloat16, 8 or 4 bits */
} qkv_bench_opts;

/* One measurement. A sample is the time of one run; before the first one it has run twice, or for two seconds. */
typedef struct qkv_bench_row {
    qkv_bench_kind kind;
    char name[128];   /* what ran, in words */
    const char *unit; /* what amount counts: "tokens", "sentences", "products", "calls" */
    double amount;    /* of one run */
    int threads;
    int samples;
    double best, median;   /* seconds of a run */
    double operations;     /* of one run: two for every multiply-add that the mathematics needs; of translate, generate and
                                embed those with weights alone */
    double bytes;          /* of weights, and of cached keys and values of generate, that one run must read from memory; 0: the
                                memory's speed is not what bounds it */
    double peak;           /* operations a second: fused multiply-adds of float32 on all threads, the best seen so far */
    double bandwidth;      /* bytes a second that all threads read of a block as large as the weights, before and after every
                                sample, the median; 0 where bytes is */
    double block;          /* bytes of it */
    double resident;       /* bytes of memory that the process holds at the end of the last sample: mapped weights too */
    double resident_peak;  /* the most it has held so far, by an earlier measurement too */
    double packed;         /* bytes of weights that are kept a second time; resident has them */
    double others, stolen; /* cores that other processes, and other virtual machines, used meanwhile */
    int is_busy;           /* 1: so much of that, or samples so far apart, that the figures say little */
    /* of bandwidth: bytes / seconds of a sample over the mean of the readings just before and after it, the best sample's and
     * the median; 0: from best, median and bandwidth */
    double share_best, share_median;
    void *reserved[2];
} qkv_bench_row;

/* Is handed each measurement as it is done, for the call only. Not OK ends it, and is handed on. */
typedef qkv_status (*qkv_bench_each)(void *data, const qkv_bench_row *row);

/* Measures one kind, row by row. USAGE for NULL, numbers below 0, a kind that there is not, a model that cannot do it; the
 * errors of qkv_model_load() and of what is measured; IO where the temporary folder cannot be written; and what each gave. */
QKV_API qkv_status qkv_bench(qkv_bench_kind kind, const qkv_bench_opts *opts, qkv_bench_each each, void *data);

/* A row as a line of text in *out, which is yours, without a newline: columns under qkv_bench_heading(), static text; or with
 * json as a JSON object with all of it, and "per_second" (best and median), "operations_per_second", "share_of_peak" and
 * "share_of_bandwidth". USAGE for NULL; MEMORY. */
QKV_API qkv_status qkv_bench_text(const qkv_bench_row *row, int json, qkv_buffer *out);
QKV_API const char *qkv_bench_heading(void);

/* Operations a second, two a multiply-add, that all threads reach in registers; and bytes a second that they read, again and
 * again, of a block of so many: what it says of a cache's size is the cache's speed. 0: MEMORY. */
QKV_API double qkv_bench_peak(void);
QKV_API double qkv_bench_bandwidth(size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
