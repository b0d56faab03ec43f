/* flow_text.c: attention step by step as lines of text, with the shape of each. */
#include "flow.h"

#include "../term/translator.h"
#include "../../src/base/options.h"
#include "../report/out.h"

#include <stdio.h>

static const char call[] = "flow";

/* ---- what is asked for ---- */

static qkv_status check_flow(const qkv_flow *flow, qkv__flow_drawing *d)
{
    if (!flow) return qkv__fail(QKV_USAGE, "%s: there is nothing to draw", call);
    if (flow->tokens < 1 || flow->dim < 1 || flow->heads < 1 || flow->d_k < 1 || flow->d_v < 1 || flow->memory < 0)
        return qkv__fail(
            QKV_USAGE,
            "%s: %lld tokens of %lld numbers, %lld heads of %lld and %lld, %lld tokens on the other side: each is at "
            "least 1, the last at least 0",
            call, (long long)flow->tokens, (long long)flow->dim, (long long)flow->heads, (long long)flow->d_k,
            (long long)flow->d_v, (long long)flow->memory);
    if (__builtin_mul_overflow(flow->heads, flow->d_k, &d->all_k) || __builtin_mul_overflow(flow->heads, flow->d_v, &d->all_v))
        return qkv__fail(QKV_USAGE, "%s: %lld heads of %lld and %lld are too many numbers", call, (long long)flow->heads,
                         (long long)flow->d_k, (long long)flow->d_v);
    d->f = flow;
    d->keys = flow->memory ? flow->memory : flow->tokens;
    return QKV_OK;
}

qkv_status qkv__flows_take(const qkv_flow *flows, int64_t n, const qkv_flow_opts *opts, qkv__flow_drawings *all)
{
    *all = (qkv__flow_drawings){ .n = n };
    qkv_status status = QKV__READ_OPTIONS(&all->o, batch, opts, call);
    if (!status && (n < 1 || n > QKV__MOST_FLOWS))
        status = qkv__fail(QKV_USAGE, "%s: %lld of them side by side, expected 1 to %d", call, (long long)n, QKV__MOST_FLOWS);
    if (!status && all->o.batch < 0) status = qkv__fail(QKV_USAGE, "%s: a batch of %lld", call, (long long)all->o.batch);
    for (int64_t i = 0; i < n && !status; i++) {
        status = check_flow(flows ? &flows[i] : NULL, &all->at[i]);
        all->at[i].o = &all->o;
    }
    return status;
}

/* ---- as text ---- */

/* A flow on its way into text. */
typedef struct flow_text {
    qkv__out out;
    const qkv__flow_drawing *d;
    int how; /* columns of how a step comes about */
} flow_text;

static void put_step(flow_text *t, const char *name, const char *how, int64_t heads, int64_t rows, int64_t columns)
{
    enum { NAME = 9 };
    qkv__out_printf(&t->out, "    ");
    qkv__out_name(&t->out, name, NAME, false);
    qkv__out_name(&t->out, how, t->how, false);
    if (t->d->o->batch) qkv__out_printf(&t->out, "%lld x ", (long long)t->d->o->batch);
    if (heads > 1) qkv__out_printf(&t->out, "%lld x ", (long long)heads);
    qkv__out_printf(&t->out, "%lld x %lld\n", (long long)rows, (long long)columns);
}

static void name_product(char how[QKV__FLOW_LABEL], const char *from, int64_t inner, int64_t columns)
{
    snprintf(how, QKV__FLOW_LABEL, qkv__translated("= %s, a matrix %lld x %lld"), from, (long long)inner, (long long)columns);
}

static void put_product(flow_text *t, const char *name, const char *from, int64_t inner, int64_t rows, int64_t columns)
{
    char how[QKV__FLOW_LABEL];
    name_product(how, from, inner, columns);
    put_step(t, name, how, 1, rows, columns);
}

/* So that the longest product, which has the largest numbers, is no nearer to its shape than two spaces. */
static int how_columns(const qkv__flow_drawing *d)
{
    enum { USUAL = 41, GAP_COLUMNS = 2 };
    const int64_t sizes[][2] = { { d->f->dim, d->all_k }, { d->f->dim, d->all_v }, { d->all_v, d->f->dim } };
    const char *const from[] = { "X W_K", "X W_V", qkv__translated("concat W_O") };
    int most = USUAL;
    for (int i = 0; i < 3; i++) {
        char how[QKV__FLOW_LABEL];
        name_product(how, from[i], sizes[i][0], sizes[i][1]);
        if (qkv__width(how) + GAP_COLUMNS > most) most = qkv__width(how) + GAP_COLUMNS;
    }
    return most;
}

static void put_split(flow_text *t, const qkv_flow *f, int64_t keys)
{
    const char *how = qkv__translated("split into heads");
    if (f->heads == 1) return;
    put_step(t, "Q", how, f->heads, f->tokens, f->d_k);
    put_step(t, "K", how, f->heads, keys, f->d_k);
    put_step(t, "V", how, f->heads, keys, f->d_v);
}

static void put_scores(flow_text *t, const qkv_flow *f, int64_t keys)
{
    const qkv__flow_drawing *d = t->d;
    char scale[96];
    snprintf(scale, sizeof scale, "= %s / sqrt(%lld)", qkv__translated("scores"), (long long)f->d_k);
    put_step(t, qkv__translated("scores"), "= Q K^T", f->heads, f->tokens, keys);
    put_step(t, qkv__translated("scaled"), scale, f->heads, f->tokens, keys);
    if (d->o->mask)
        put_step(t, qkv__translated("masked"), qkv__translated("what a mask hides becomes -inf"), f->heads, f->tokens, keys);
    put_step(t, qkv__translated("weights"),
             d->o->mask ? qkv__translated("= softmax(masked), rows sum to 1")
                        : qkv__translated("= softmax(scaled), rows sum to 1"),
             f->heads, f->tokens, keys);
}

static void put_flow(flow_text *t)
{
    const qkv__flow_drawing *d = t->d;
    const qkv_flow *f = d->f;
    int64_t keys = d->keys, h = f->heads;
    const char *kind = f->memory ? qkv__translated("Cross-attention") : qkv__translated("Self-attention");
    qkv__out_printf(&t->out, h > 1 ? qkv__translated("%s, %lld heads") : qkv__translated("%s, %lld head"), kind, (long long)h);
    qkv__out_printf(&t->out, "\n\n");
    put_step(t, "X", "", 1, f->tokens, f->dim);
    if (f->memory) put_step(t, "Y", qkv__translated("the other text"), 1, f->memory, f->dim);
    put_product(t, "Q", "X W_Q", f->dim, f->tokens, d->all_k);
    put_product(t, "K", f->memory ? "Y W_K" : "X W_K", f->dim, keys, d->all_k);
    put_product(t, "V", f->memory ? "Y W_V" : "X W_V", f->dim, keys, d->all_v);
    put_split(t, f, keys);
    put_scores(t, f, keys);
    put_step(t, h > 1 ? qkv__translated("heads") : qkv__translated("head"), qkv__translated("= weights V"), h, f->tokens,
             f->d_v);
    if (h > 1) put_step(t, qkv__translated("concat"), qkv__translated("the heads side by side"), 1, f->tokens, d->all_v);
    put_product(t, qkv__translated("output"), h > 1 ? qkv__translated("concat W_O") : qkv__translated("head W_O"), d->all_v,
                f->tokens, f->dim);
}

qkv_status qkv_flows_text(const qkv_flow *flows, int64_t n, const qkv_flow_opts *opts, qkv_buffer *out)
{
    qkv__flow_drawings all;
    if (!out) return qkv__fail(QKV_USAGE, "%s: a place for the text is needed", call);
    qkv_status status = qkv__flows_take(flows, n, opts, &all);
    if (status) return status;
    flow_text text = { .out = qkv__out_begin(out) };
    for (int64_t i = 0; i < n; i++) {
        text.d = &all.at[i];
        text.how = how_columns(text.d);
        if (i) qkv__out_printf(&text.out, "\n");
        put_flow(&text);
    }
    return qkv__out_end(&text.out);
}

qkv_status qkv_flow_text(const qkv_flow *flow, qkv_buffer *out) { return qkv_flows_text(flow, 1, NULL, out); }
