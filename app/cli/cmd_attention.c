/* cmd_attention.c: qkv attention: arrays in, output and weights out. */
#include "../report/arrays.h"
#include "../report/results.h"
#include "../learn/walk.h"
#include "options.h"
#include "results.h"

#include <math.h>
#include <string.h>

static struct {
    const char *q, *k, *v, *keep, *bias, *lengths, *out, *weights;
    bool causal, print, quiet;
    int heads, kv_heads;
    float scale;
} given = { .scale = NAN }; /* not given: 0 must be told from nothing, the library takes 0 as 1/sqrt(d_k) */

static const option options[] = {
    { "q", .value = "FILE", .help = "the queries", .required = true, .text = &given.q },
    { "k", .value = "FILE", .help = "the keys", .required = true, .text = &given.k },
    { "v", .value = "FILE", .help = "the values", .required = true, .text = &given.v },
    { "causal", .help = "causal mask: query i sees keys 0..i; with fewer queries, the last sees all", .flag = &given.causal },
    { "lengths", .is_rare = true, .value = "N,N..", .help = "keys per sequence; later ones are hidden",
      .text = &given.lengths },
    { "keep", .is_rare = true, .value = "FILE", .help = "mask of 1 (may be seen) and 0 (hidden)", .text = &given.keep },
    { "bias", .is_rare = true, .value = "FILE", .help = "mask added to the scaled scores; -inf hides", .text = &given.bias },
    { "heads", .value = "N", .help = "the last dimension holds N heads side by side", .count = &given.heads },
    { "kv-heads", .is_rare = true, .value = "N", .help = "key and value heads, if fewer", .count = &given.kv_heads },
    { "scale", .is_rare = true, .value = "S", .help = "scale of the scores instead of 1/sqrt(d_k)", .number = &given.scale },
    { "out", 'o', .value = "FILE", .help = "write the output as .npy", .text = &given.out },
    { "weights", .value = "FILE", .help = "write the weights as .npy", .text = &given.weights },
    { "print", .help = "print output and weights (default without --out and --weights)", .flag = &given.print },
    { "quiet", .is_rare = true, .help = "do not report files written", .flag = &given.quiet },
    { 0 },
};

/* Heads side by side come in 3 dimensions: an array of 2 is one sequence. */
static qkv_tensor *tensor_from(qkv_tape *t, const qkv_array *a)
{
    int64_t one_sequence[] = { 1, a->shape[0], a->shape[1] };
    return given.heads && a->ndim == 2 ? qkv_constant(t, 3, one_sequence, a->data)
                                       : qkv_constant(t, a->ndim, a->shape, a->data);
}

/* Everything is computed and checked before the first byte is written. */
static qkv_status compute(qkv_tape *t, const operands *o, const qkv_mask *mask)
{
    bool print = given.print || (!given.out && !given.weights), no_batch = o->q.ndim == 2;
    qkv_tensor *q = tensor_from(t, &o->q), *k = tensor_from(t, &o->k), *v = tensor_from(t, &o->v), *weights = NULL;
    qkv_attention_opts opts = { .scale = isnan(given.scale) ? 0 : given.scale,
                                .heads = given.heads,
                                .kv_heads = given.kv_heads };
    if (given.weights || print) opts.weights = &weights;
    qkv_tensor *y = qkv_attention(q, k, v, mask, &opts);
    if (qkv_tape_status(t)) return library_failed();
    qkv_status status = check_finite(_("the output"), qkv_tensor_data(y), qkv_tensor_count(y));
    result output = drop_dims(y, given.heads && no_batch, false);
    result shares = drop_dims(weights, no_batch, !given.heads && o->q.ndim < 4);
    if (!status) status = write_result(given.out, &output, given.quiet);
    if (!status) status = write_result(given.weights, &shares, given.quiet);
    if (status || !print) return status;
    print_result(N_("output"), &output, "q", "", false);
    print_result(N_("weights"), &shares, "q", "k", true);
    return QKV_OK;
}

static qkv_status check_options(void)
{
    if (given.kv_heads && !given.heads) return fail(QKV_USAGE, "--kv-heads needs --heads");
    if (given.out && given.weights && !strcmp(given.out, given.weights))
        return fail(QKV_USAGE, "--out and --weights name the same file: %s", given.out);
    if (given.scale == 0) return fail(QKV_USAGE, "--scale must not be 0");
    qkv_status status = check_output(given.out);
    return status ? status : check_output(given.weights);
}

static qkv_status load_mask(qkv_mask_arrays *m, const operands *o)
{
    bool one_head = !given.heads && o->q.ndim == 3;
    qkv_status status = QKV_OK;
    if (given.heads && o->q.ndim == 4) return fail(QKV_USAGE, "--heads: %s has a dimension for heads already", given.q);
    m->mask.causal = given.causal;
    if (given.lengths) status = qkv_mask_parse_lengths(given.lengths, o->q.ndim == 2 ? 1 : o->q.shape[0], "--lengths", m);
    if (!status && given.keep) status = qkv_mask_read_keep(given.keep, one_head, m);
    if (!status && given.bias) status = qkv_mask_read_bias(given.bias, one_head, m);
    return status ? library_failed() : QKV_OK;
}

static qkv_status run_attention(void)
{
    operands o = { 0 };
    qkv_mask_arrays m = { 0 };
    qkv_status status = check_options();
    if (!status) status = load_operands(&o, given.q, given.k, given.v);
    if (!status) status = load_mask(&m, &o);
    qkv_tape *t = status ? NULL : qkv_tape_new(&(qkv_tape_opts){ .inference = 1 });
    if (!status) status = t ? compute(t, &o, &m.mask) : library_failed();
    qkv_tape_free(t);
    qkv_mask_arrays_free(&m);
    free_operands(&o);
    return status;
}

const command attention_command = {
    .name = "attention",
    .summary = "compute attention from .npy files",
    .about = "Computes softmax(Q K^T / sqrt(d_k)) V for each sequence and head.\n"
             "\n"
             "The arrays are .npy files of any number type, rows of numbers such as CSV, or typed\n"
             "(\"1 0; 0 1\"), all with 2 dimensions (T, D), 3 (B, T, D) or 4 (B, H, T, D): sequences\n"
             "B, heads H, positions T, numbers D.\n"
             "With --heads N the last dimension is N*D. Keys and values may have fewer heads\n"
             "than the queries and another length; values may have another width.\n"
             "\n"
             "Masks combine: a key is seen only if all of them let it be seen. --keep and\n"
             "--bias have 1 to 4 dimensions, which stretch to the shape of the scores.\n"
             "A query that may see nothing gives a row of zeros.",
    .example = "  qkv attention --q q.npy --k k.npy --v v.npy --causal --out o.npy \\\n"
               "    --weights w.npy",
    .options = options,
    .run = run_attention,
};
