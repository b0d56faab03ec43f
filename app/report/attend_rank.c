/* attend_rank.c: heads in the order of what they do. */
#include "attention.h"
#include "../../src/inspect/attend.h"

#include "out.h"
#include "../term/translator.h"

#include <stdlib.h>

enum { MEASURE_WIDTH = 11 };

static double measure_of(const qkv_head_measures *x, int by)
{
#define MEASURE_VALUE(constant, member) x->member,
    const double values[] = { QKV_HEAD_MEASURE_LIST(MEASURE_VALUE) };
#undef MEASURE_VALUE
    return values[by];
}

/* Little entropy is what is sharp; of the others much. */
static int compare_heads(const void *a, const void *b, void *by)
{
    const qkv_ranked_head *x = a, *y = b;
    int measure = *(const int *)by;
    double difference = measure_of(&x->measures, measure) - measure_of(&y->measures, measure);
    if (difference != 0) return (difference < 0) == (measure == QKV_HEAD_MEASURE_ENTROPY) ? -1 : 1;
    if (x->layer != y->layer) return x->layer < y->layer ? -1 : 1;
    return x->head < y->head ? -1 : x->head > y->head;
}

qkv_status qkv_attention_capture_rank(const qkv_attention_capture *a, qkv_attention_kind kind, qkv_head_measure by,
                                      qkv_ranked_head *heads)
{
    int measure = (int)by;
    if (!a || !heads) return qkv__fail(QKV_USAGE, "attention: what was attended to and a place for the heads are needed");
    if ((unsigned)by >= QKV_HEAD_MEASURE_COUNT) return qkv__fail(QKV_USAGE, "attention: there is no measure %d", measure);
    qkv_status status = qkv_attention_stats(a, kind, 0, 0, &heads->measures); /* says what the model has instead */
    if (status) return status;
    int64_t n = (int64_t)a->layers[kind] * a->heads;
    for (int64_t i = 0; i < n && !status; i++) {
        heads[i] = (qkv_ranked_head){ .layer = (int)(i / a->heads), .head = (int)(i % a->heads) };
        status = qkv_attention_stats(a, kind, heads[i].layer, heads[i].head, &heads[i].measures);
    }
    if (!status) qsort_r(heads, (size_t)n, sizeof *heads, compare_heads, &measure);
    return status;
}

/* ---- as text ---- */

#define MEASURE_NAME(constant, member) #member,
static const char *const measure_names[] = { QKV_HEAD_MEASURE_LIST(MEASURE_NAME) };
#undef MEASURE_NAME

static const char *const measure_heads[] = { QKV__N("entropy"),  QKV__N("diagonality"), QKV__N("first"),
                                             QKV__N("previous"), QKV__N("same"),        QKV__N("next") };
_Static_assert(sizeof measure_heads / sizeof *measure_heads == QKV_HEAD_MEASURE_COUNT, "a head for every measure");

/* What a head mostly does, where half of its weight or more is in one place. */
static const char *main_place(const qkv_head_measures *x)
{
    const struct {
        double weight;
        const char *words;
    } places[] = { { x->same, QKV__N("same position") },
                   { x->previous, QKV__N("previous token") },
                   { x->next, QKV__N("next token") },
                   { x->first, QKV__N("first token") } };
    int most = 0;
    for (int i = 1; i < 4; i++)
        if (places[i].weight > places[most].weight) most = i;
    if (places[most].weight >= 0.5) return qkv__translated(places[most].words);
    return qkv__translated(x->entropy >= 1 ? QKV__N("spread over many tokens") : QKV__N("a few tokens, by content"));
}

static void put_ranked(qkv__out *out, const qkv_ranked_head *heads, int64_t n)
{
    qkv__out_printf(out, "%s", qkv__translated("layer  head"));
    for (int k = 0; k < QKV_HEAD_MEASURE_COUNT; k++) {
        qkv__out_printf(out, "  ");
        qkv__out_name(out, qkv__translated(measure_heads[k]), MEASURE_WIDTH, true);
    }
    qkv__out_printf(out, "  %s", qkv__translated("attends to"));
    for (int i = 0; i < n; i++) {
        qkv__out_printf(out, "\n%5d  %4d", heads[i].layer, heads[i].head);
        for (int k = 0; k < QKV_HEAD_MEASURE_COUNT; k++)
            qkv__out_printf(out, "  %*.3f", MEASURE_WIDTH, measure_of(&heads[i].measures, k));
        qkv__out_printf(out, "  %s", main_place(&heads[i].measures));
    }
    qkv__out_printf(out, "\n");
}

static void put_ranked_json(qkv__out *out, const qkv_ranked_head *heads, int64_t n, const char *kind)
{
    qkv__out_printf(out, "{\"kind\": \"%s\", \"heads\": [", kind);
    for (int64_t i = 0; i < n; i++) {
        qkv__out_printf(out, "%s\n {\"layer\": %d, \"head\": %d", i ? "," : "", heads[i].layer, heads[i].head);
        for (int k = 0; k < QKV_HEAD_MEASURE_COUNT; k++)
            qkv__out_printf(out, ", \"%s\": %.17g", measure_names[k], measure_of(&heads[i].measures, k));
        qkv__out_printf(out, "}");
    }
    qkv__out_printf(out, "]}\n");
}

qkv_status qkv_attention_rank_text(const qkv_attention_capture *a, qkv_attention_kind kind, qkv_head_measure by, int json,
                                   qkv_buffer *out)
{
    qkv_head_measures first;
    if (!out) return qkv__fail(QKV_USAGE, "attention: a place for the text is needed");
    qkv_status status = qkv_attention_stats(a, kind, 0, 0, &first); /* says what the model has instead */
    if (status) return status;
    int64_t n = (int64_t)a->layers[kind] * a->heads;
    size_t bytes = sizeof(qkv_ranked_head) * (size_t)n;
    qkv_ranked_head *heads = qkv__alloc(bytes);
    if (!heads) return QKV_MEMORY;
    status = qkv_attention_capture_rank(a, kind, by, heads);
    qkv__out text = qkv__out_begin(out);
    if (!status && json) put_ranked_json(&text, heads, n, qkv_attention_kind_name(kind));
    else if (!status) put_ranked(&text, heads, n);
    qkv__release(heads, bytes);
    if (status) text.status = status;
    return qkv__out_end(&text);
}
