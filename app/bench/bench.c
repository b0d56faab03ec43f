/* bench.c: samples, and a row of each measurement. */
#include "bench.h"

#include <qkv/unstable/util.h>
#include "measure.h"

#include "../../src/base/clock.h"
#include "../../src/base/options.h"
#include "../report/out.h"

#include <stdlib.h>
#include <string.h>

/* ---- samples ---- */

void qkv__sample_add(qkv__samples *s, double duration)
{
    if (s->n < QKV__MOST_SAMPLES) s->at[s->n++] = duration;
}

static int by_duration(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double qkv__samples_best(const qkv__samples *s)
{
    double best = s->at[0];
    for (int i = 1; i < s->n; i++)
        if (s->at[i] < best) best = s->at[i];
    return best;
}

double qkv__samples_median(const qkv__samples *s)
{
    qkv__samples sorted = *s;
    qsort(sorted.at, (size_t)sorted.n, sizeof *sorted.at, by_duration);
    return sorted.at[sorted.n / 2];
}

/* Seconds of a run. Weights are packed at their second use, and a tape has its memory in one piece after its first reset. */
static qkv_status warm_up(qkv__bench_run *run, void *work, double *duration)
{
    enum { RUNS = 2 };
    const double enough = 2; /* seconds */
    double begin = qkv__seconds(), now = begin;
    qkv_status status = QKV_OK;
    for (int i = 0; i < RUNS && now - begin < enough && !status; i++) {
        double start = now, aside = 0;
        status = run(work, &aside);
        now = qkv__seconds();
        *duration = now - start - aside;
    }
    return status;
}

/* Where memory bounds a run, its speed is looked at before every sample and after the last: it changes from second to second. */
typedef struct bandwidth {
    qkv__reading block; /* none: not asked for */
    double at[QKV__MOST_SAMPLES + 1];
} bandwidth;

static qkv_status look_at_bandwidth(bandwidth *b, int sample)
{
    enum { TRIALS = 3 };
    if (!b->block.n) return QKV_OK;
    return (b->at[sample] = qkv__reading_now(&b->block, TRIALS)) > 0 ? QKV_OK : qkv_error_status();
}

static qkv_status take_samples(const qkv_bench_opts *o, qkv__bench_run *run, void *work, double duration, qkv__samples *s,
                               bandwidth *read)
{
    const double worth_a_look = 2e-3; /* seconds: what is shorter is run several times between two looks at the clock */
    int64_t runs = duration < worth_a_look ? (int64_t)(worth_a_look / (duration + 1e-9)) + 1 : 1;
    int least = o->repeat ? o->repeat : o->quick ? 1 : 5;
    double end = o->repeat ? 0 : qkv__seconds() + (o->quick ? 0.1 : 1);
    qkv_status status = look_at_bandwidth(read, 0);
    while (!status && s->n < QKV__MOST_SAMPLES && (s->n < least || qkv__seconds() < end)) {
        double begin = qkv__seconds(), aside = 0;
        for (int64_t i = 0; i < runs && !status; i++) status = run(work, &aside);
        qkv__sample_add(s, (qkv__seconds() - begin - aside) / (double)runs);
        if (!status) status = look_at_bandwidth(read, s->n);
    }
    return status;
}

/* ---- rows ---- */

static bool is_busy(const qkv_bench_row *r)
{
    return r->others > 0.25 || r->stolen > 0.05 || (r->samples >= 3 && r->median > 1.15 * r->best);
}

/* A share of the bandwidth is a duration over another: that of reading the bytes, and the sample's. */
static void set_shares(qkv_bench_row *row, const qkv__samples *s, const bandwidth *read)
{
    qkv__samples readings = { 0 }, inverse = { 0 };
    for (int i = 0; i <= s->n; i++) qkv__sample_add(&readings, read->at[i]);
    for (int i = 0; i < s->n; i++) qkv__sample_add(&inverse, s->at[i] * (read->at[i] + read->at[i + 1]) / 2 / row->bytes);
    row->bandwidth = qkv__samples_median(&readings);
    row->share_best = 1 / qkv__samples_best(&inverse);
    row->share_median = 1 / qkv__samples_median(&inverse);
}

qkv_status qkv__bench_measure(const qkv__bench *b, qkv_bench_row row, qkv__bench_run *run, void *work)
{
    qkv__samples s = { 0 };
    bandwidth read = { 0 };
    qkv__usage usage;
    double duration = 0;
    row.kind = b->kind;
    row.threads = qkv_num_threads();
    qkv_bench_peak(); /* here too: it keeps the best, and one look may fall into a moment in which a core is away */
    qkv_status status = row.bytes > 0 ? qkv__reading_begin(&read.block, (size_t)row.block) : QKV_OK;
    qkv__usage_begin(&usage);
    if (!status) status = warm_up(run, work, &duration);
    if (!status) status = take_samples(&b->o, run, work, duration, &s, &read);
    qkv__reading_end(&read.block);
    if (status) return status;
    row.peak = qkv_bench_peak();
    if (row.bytes > 0) set_shares(&row, &s, &read);
    qkv__usage_end(&usage, &row.others, &row.stolen);
    row.samples = s.n;
    row.best = qkv__samples_best(&s);
    row.median = qkv__samples_median(&s);
    row.resident = qkv__resident();
    row.resident_peak = qkv__resident_peak();
    row.packed = (double)qkv_packed_bytes();
    row.is_busy = is_busy(&row);
    return b->each(b->data, &row);
}

/* ---- rows as text ---- */

#define NAME_WIDTH "46"

const char *qkv_bench_heading(void)
{
    return "best / median                                            a second            Gop/s   of the peak  of bandwidth  "
           "  MB held";
}

static double ratio(double a, double b) { return b > 0 ? a / b : 0; }

/* Of the best sample or the median, which took so long. */
static double share_of_bandwidth(const qkv_bench_row *r, double share, double duration)
{
    return share > 0 ? share : ratio(r->bytes, duration) / r->bandwidth;
}

static void put_shares(qkv__out *out, const qkv_bench_row *r)
{
    qkv__out_printf(out, " %8.1f   %4.2f / %4.2f", ratio(r->operations, r->best) * 1e-9,
                    ratio(ratio(r->operations, r->best), r->peak), ratio(ratio(r->operations, r->median), r->peak));
    if (r->bandwidth > 0)
        qkv__out_printf(out, "   %4.2f / %4.2f", share_of_bandwidth(r, r->share_best, r->best),
                        share_of_bandwidth(r, r->share_median, r->median));
    else qkv__out_printf(out, "   %11s", "");
}

static void put_line(qkv__out *out, const qkv_bench_row *r)
{
    qkv__out_printf(out, "%-" NAME_WIDTH "s %9.1f / %9.1f %-9s", r->name, ratio(r->amount, r->best),
                    ratio(r->amount, r->median), r->unit ? r->unit : "");
    put_shares(out, r);
    qkv__out_printf(out, " %10.0f", r->resident * 1e-6);
    if (!r->is_busy) return;
    qkv__out_printf(out, "  busy:");
    if (r->others > 0.25) qkv__out_printf(out, " others use %.1f cores", r->others);
    if (r->stolen > 0.05) qkv__out_printf(out, " %.1f cores are stolen", r->stolen);
    if (r->median > 1.15 * r->best) qkv__out_printf(out, " median %.2f of best", ratio(r->median, r->best));
}

static void put_number(qkv__out *out, const char *key, double value) { qkv__out_printf(out, ", \"%s\": %.9g", key, value); }

static void put_pair(qkv__out *out, const char *key, double best, double median)
{
    qkv__out_printf(out, ", \"%s\": {\"best\": %.9g, \"median\": %.9g}", key, best, median);
}

static void put_json(qkv__out *out, const qkv_bench_row *r)
{
    double per_best = ratio(1, r->best), per_median = ratio(1, r->median);
    const char *kind = qkv_bench_name(r->kind), *isa = qkv_isa();
    qkv__out_printf(out, "{\"bench\": \"%s\", \"name\": ", kind ? kind : "");
    qkv__out_json(out, r->name, strnlen(r->name, sizeof r->name));
    qkv__out_printf(out, ", \"isa\": \"%s\", \"threads\": %d, \"samples\": %d, \"unit\": \"%s\"", isa ? isa : "", r->threads,
                    r->samples, r->unit ? r->unit : "");
    put_number(out, "amount", r->amount);
    put_pair(out, "seconds", r->best, r->median);
    put_pair(out, "per_second", r->amount * per_best, r->amount * per_median);
    put_pair(out, "operations_per_second", r->operations * per_best, r->operations * per_median);
    put_number(out, "peak", r->peak);
    put_pair(out, "share_of_peak", ratio(r->operations * per_best, r->peak), ratio(r->operations * per_median, r->peak));
    if (r->bandwidth > 0) {
        put_number(out, "bandwidth", r->bandwidth);
        put_number(out, "block", r->block);
        put_pair(out, "share_of_bandwidth", share_of_bandwidth(r, r->share_best, r->best),
                 share_of_bandwidth(r, r->share_median, r->median));
    }
    put_number(out, "resident", r->resident);
    put_number(out, "resident_peak", r->resident_peak);
    put_number(out, "packed", r->packed);
    put_number(out, "others", r->others);
    put_number(out, "stolen", r->stolen);
    qkv__out_printf(out, ", \"busy\": %s}", r->is_busy ? "true" : "false");
}

qkv_status qkv_bench_text(const qkv_bench_row *row, int json, qkv_buffer *out)
{
    if (!row || !out) return qkv__fail(QKV_USAGE, "bench: a row and a place for its text are needed");
    qkv__out to = qkv__out_begin(out);
    if (json) put_json(&to, row);
    else put_line(&to, row);
    return qkv__out_end(&to);
}

/* ---- the call ---- */

#define BENCH_NAME(constant, name) name,
static const char *const names[] = { QKV_BENCH_LIST(BENCH_NAME) };
#undef BENCH_NAME

const char *qkv_bench_name(qkv_bench_kind kind) { return (unsigned)kind < QKV_BENCH_KINDS ? names[kind] : NULL; }

static qkv_status check_bench_options(const qkv__bench *b)
{
    const qkv_bench_opts *o = &b->o;
    if (o->repeat < 0 || o->batch < 0 || o->beam < 0 || o->length < 0 || o->new_tokens < 0)
        return qkv__fail(QKV_USAGE, "bench: repeat, batch, beam, length and new_tokens are at least 0");
    if (o->repeat > QKV__MOST_SAMPLES) return qkv__fail(QKV_USAGE, "bench: at most %d samples", QKV__MOST_SAMPLES);
    if (o->batch > 1 << 16 || o->length > 1 << 20 || o->new_tokens > 1 << 20)
        return qkv__fail(QKV_USAGE, "bench: a batch is at most 65536, and lengths are at most 1048576");
    if (o->beam && b->kind != QKV_BENCH_TRANSLATE)
        return qkv__fail(QKV_USAGE, "bench: %s has no beam: only translate has", names[b->kind]);
    if (o->new_tokens && b->kind != QKV_BENCH_TRANSLATE && b->kind != QKV_BENCH_GENERATE)
        return qkv__fail(QKV_USAGE, "bench: %s writes no tokens: only translate and generate do", names[b->kind]);
    if (o->folder && b->kind < QKV_BENCH_TRANSLATE)
        return qkv__fail(QKV_USAGE, "bench: %s needs no model: it measures shapes of its own", names[b->kind]);
    return QKV_OK;
}

qkv_status qkv_bench(qkv_bench_kind kind, const qkv_bench_opts *opts, qkv_bench_each each, void *data)
{
    static qkv_status (*const benches[QKV_BENCH_KINDS])(const qkv__bench *) = {
        [QKV_BENCH_MATMUL] = qkv__bench_products,     [QKV_BENCH_ATTENTION] = qkv__bench_attention,
        [QKV_BENCH_TRAIN] = qkv__bench_training,      [QKV_BENCH_TRANSLATE] = qkv__bench_translation,
        [QKV_BENCH_GENERATE] = qkv__bench_generation, [QKV_BENCH_EMBED] = qkv__bench_embedding,
    };
    qkv__bench b = { .kind = kind, .each = each, .data = data };
    if (!each || (unsigned)kind >= QKV_BENCH_KINDS)
        return qkv__fail(QKV_USAGE, "bench: something to measure, and a place for the rows, are needed");
    qkv_status status = QKV__READ_OPTIONS(&b.o, weights, opts, "bench");
    if (!status) status = check_bench_options(&b);
    if (!status && !qkv_isa()) status = qkv_error_status();
    return status ? status : benches[kind](&b);
}
