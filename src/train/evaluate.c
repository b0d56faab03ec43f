/* evaluate.c: the mean loss of pairs, whose batches ranks share. */
#include "trainer.h"

#include "../base/memory.h"
#include "../base/options.h"
#include "../base/result.h"
#include "../dist/tree.h"

/* What a batch adds to the mean. */
typedef struct measured {
    double loss;
    int64_t tokens;
} measured;

/* This rank's share of an epoch's batches. */
static qkv_status measure_batches(const qkv_model *m, const qkv_loss *o, const qkv_loader *e, uint64_t seed,
                                  const qkv_hooks *hooks, measured *out)
{
    qkv__node share = qkv__tree_share(qkv_loader_size(e), qkv_dist_rank(), qkv_dist_size());
    qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .inference = 1 });
    qkv_status status = t ? QKV_OK : qkv_error_status();
    qkv_batch *b = NULL;
    for (int64_t i = share.from; !status && i < share.to; i++) {
        if ((status = qkv__cancelled(hooks, "evaluation"))) break;
        if ((status = qkv__make_batch(o, e, i, 0, 1, seed, (uint64_t)i, &b))) break;
        qkv_tensor *mean = o->compute(o, m, t, b, 0);
        if ((status = qkv_tape_status(t))) break;
        out[i] = (measured){ (double)qkv_tensor_item(mean), b->tokens };
        qkv_tape_reset(t);
    }
    qkv_free(b);
    qkv_tape_free(t);
    return status;
}

/* Batch by batch, as one rank would add them. */
static qkv_status mean_loss(const measured *all, int64_t n, double *loss)
{
    double sum = 0;
    int64_t tokens = 0;
    for (int64_t i = 0; i < n; i++) sum += all[i].loss * (double)all[i].tokens, tokens += all[i].tokens;
    if (!tokens) return qkv__fail(QKV_USAGE, "evaluation: nothing in the pairs counts");
    *loss = sum / (double)tokens;
    return QKV_OK;
}

qkv_status qkv_evaluate(const qkv_model *m, const qkv_dataset *d, const qkv_evaluate_opts *opts, double *mean)
{
    const qkv_loss seq2seq = qkv_loss_seq2seq();
    qkv_evaluate_opts o;
    qkv_batch_opts batches;
    qkv_status status = QKV__READ_OPTIONS(&o, hooks, opts, "evaluation");
    if (!status) status = QKV__READ_OPTIONS(&batches, source_has_end, o.batches, "evaluation");
    if (status) return status;
    if (!mean) return qkv__fail(QKV_USAGE, "evaluation: a place for the mean is needed");
    if (!qkv_dataset_size(d)) return qkv__fail(QKV_USAGE, "evaluation: there are no pairs");
    qkv_loader *e = qkv_loader_new(d, o.batches, 0);
    int64_t n = qkv_loader_size(e);
    measured *all = e ? qkv__alloc_zero(sizeof *all * (size_t)n) : NULL;
    status = all ? measure_batches(m, o.loss ? o.loss : &seq2seq, e, batches.seed, o.hooks, all) : qkv_error_status();
    if (!status) status = qkv__share_parts(all, sizeof *all, n);
    if (!status) status = mean_loss(all, n, mean);
    qkv__release(all, sizeof *all * (size_t)n);
    qkv_loader_free(e);
    return status;
}
