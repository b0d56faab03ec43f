/* attention_capture.c: what was attended to, as the JSON that the explorer page reads. */
#include "attention_capture.h"

#include "../report/attention.h"

#include "../../src/base/size.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- tokens ---- */

static void put_side(qkv__json *j, const char *name, const qkv_axis *side)
{
    qkv__put_name(j, name);
    qkv__put_raw(j, ":{\"tokens\":[");
    for (int64_t i = 0; i < side->n; i++) {
        if (i) qkv__put_raw(j, ",");
        qkv__put_name(j, side->names[i]);
    }
    qkv__put_raw(j, "],\"special\":[");
    for (int64_t i = 0; i < side->n; i++) {
        if (i) qkv__put_raw(j, ",");
        qkv__put_whole(j, side->is_special[i]);
    }
    qkv__put_raw(j, "]}");
}

static const char *side_name(const qkv_attention_capture *a, const qkv_axis *side)
{
    return side == &a->source ? "source" : side == &a->target ? "read" : "chosen";
}

static void put_kind(qkv__json *j, const qkv_attention_capture *a, qkv_attention_kind kind)
{
    qkv__put_raw(j, "{\"kind\":");
    qkv__put_name(j, qkv_attention_kind_name(kind));
    qkv__put_raw(j, ",\"layers\":");
    qkv__put_whole(j, a->layers[kind]);
    qkv__put_raw(j, ",\"heads\":");
    qkv__put_whole(j, a->heads);
    qkv__put_raw(j, ",\"rows\":");
    qkv__put_name(j, side_name(a, qkv_attention_rows(a, kind)));
    qkv__put_raw(j, ",\"columns\":");
    qkv__put_name(j, side_name(a, qkv_attention_columns(a, kind)));
    qkv__put_raw(j, "}");
}

void qkv__put_sides(qkv__json *j, const qkv_attention_capture *a, int only)
{
    const struct {
        const char *name;
        const qkv_axis *side;
        bool is_there;
    } sides[] = { { "source", &a->source, a->layers[QKV_ATTENTION_ENCODER] > 0 },
                  { "read", &a->target, a->layers[QKV_ATTENTION_DECODER] > 0 },
                  { "chosen", &a->predicted, a->layers[QKV_ATTENTION_CROSS] > 0 } };
    bool follows = false;
    qkv__put_raw(j, "\"sides\":{");
    for (int i = 0; i < 3; i++) {
        if (!sides[i].is_there) continue;
        if (follows) qkv__put_raw(j, ",");
        put_side(j, sides[i].name, sides[i].side);
        follows = true;
    }
    qkv__put_raw(j, "},\"kinds\":[");
    follows = false;
    for (qkv_attention_kind kind = 0; kind < QKV_ATTENTION_KINDS; kind++) {
        if (!a->layers[kind] || (only >= 0 && only != (int)kind)) continue;
        if (follows) qkv__put_raw(j, ",");
        put_kind(j, a, kind);
        follows = true;
    }
    qkv__put_raw(j, "]");
}

/* ---- weights ---- */

/* A head's weights and how many; release them with qkv__release(). NULL for an error. */
typedef struct map {
    int64_t rows, columns;
    float *weights;
    size_t bytes;
} map;

static qkv_status new_map(const qkv_attention_capture *a, qkv_attention_kind kind, map *m)
{
    const qkv_axis *rows = qkv_attention_rows(a, kind), *columns = qkv_attention_columns(a, kind);
    *m = (map){ 0 };
    if (!rows || !columns)
        return qkv__fail(QKV_USAGE, "\"kind\" is \"%s\": the model has no such attention", qkv_attention_kind_name(kind));
    m->rows = rows->n;
    m->columns = columns->n;
    if (!qkv__size_mul((size_t)m->rows, (size_t)m->columns, &m->bytes) || !qkv__size_mul(m->bytes, sizeof(float), &m->bytes))
        return qkv__fail(QKV_LIMIT, "too many tokens");
    return (m->weights = qkv__alloc(m->bytes)) ? QKV_OK : QKV_MEMORY;
}

static void put_size(qkv__json *j, qkv_attention_kind kind, int64_t rows, int64_t columns)
{
    qkv__put_raw(j, "{\"kind\":");
    qkv__put_name(j, qkv_attention_kind_name(kind));
    qkv__put_raw(j, ",\"rows\":");
    qkv__put_whole(j, rows);
    qkv__put_raw(j, ",\"columns\":");
    qkv__put_whole(j, columns);
}

static void put_number_or_mean(qkv__json *j, const char *name, int x)
{
    qkv__put_raw(j, ",");
    qkv__put_name(j, name);
    qkv__put_raw(j, ":");
    if (x == QKV__MEAN) qkv__put_raw(j, "\"mean\"");
    else if (x == QKV__ROLLOUT) qkv__put_raw(j, "\"rollout\"");
    else qkv__put_whole(j, x);
}

qkv_status qkv__put_head(qkv__json *j, const qkv_attention_capture *a, qkv_attention_kind kind, int layer, int head,
                         qkv__put_numbers *put_weights)
{
    map m;
    qkv_status status = new_map(a, kind, &m);
    if (!status && layer == QKV__ROLLOUT) status = qkv_attention_rollout(a, kind, m.weights);
    else if (!status) status = qkv_attention_weights(a, kind, layer, head, m.weights);
    if (!status) {
        put_size(j, kind, m.rows, m.columns);
        put_number_or_mean(j, "layer", layer);
        if (layer != QKV__ROLLOUT) put_number_or_mean(j, "head", head);
        qkv__put_raw(j, ",\"weights\":");
        put_weights(j, m.weights, (size_t)(m.rows * m.columns));
        qkv__put_raw(j, "}");
    }
    qkv__release(m.weights, m.bytes);
    return status;
}

/* ---- thumbnails ---- */

/* The largest weight of each cell as a byte. */
static void shrink(const map *m, int64_t rows, int64_t columns, unsigned char *cells)
{
    memset(cells, 0, (size_t)(rows * columns));
    for (int64_t i = 0; i < m->rows; i++)
        for (int64_t k = 0; k < m->columns; k++) {
            unsigned char *cell = &cells[i * rows / m->rows * columns + k * columns / m->columns];
            long shade = lroundf(255 * m->weights[i * m->columns + k]);
            if (shade > *cell) *cell = (unsigned char)(shade > 255 ? 255 : shade);
        }
}

static qkv_status put_maps(qkv__json *j, const qkv_attention_capture *a, qkv_attention_kind kind, map *m, int64_t rows,
                           int64_t columns)
{
    size_t bytes = (size_t)(rows * columns);
    unsigned char *cells = qkv__alloc(bytes);
    qkv_status status = cells ? QKV_OK : QKV_MEMORY;
    for (int layer = 0; layer < a->layers[kind] && !status; layer++) {
        qkv__put_raw(j, layer ? ",[" : "[");
        for (int head = 0; head < a->heads && !status; head++) {
            if ((status = qkv_attention_weights(a, kind, layer, head, m->weights))) break;
            shrink(m, rows, columns, cells);
            if (head) qkv__put_raw(j, ",");
            qkv__put_base64(j, cells, bytes);
        }
        qkv__put_raw(j, "]");
    }
    qkv__release(cells, bytes);
    return status;
}

qkv_status qkv__put_thumbnails(qkv__json *j, const qkv_attention_capture *a, qkv_attention_kind kind, int64_t cells)
{
    map m;
    qkv_status status = new_map(a, kind, &m);
    if (status) return status;
    int64_t rows = qkv__min(m.rows, cells), columns = qkv__min(m.columns, cells);
    put_size(j, kind, rows, columns);
    qkv__put_raw(j, ",\"maps\":[");
    status = put_maps(j, a, kind, &m, rows, columns);
    qkv__put_raw(j, "]}");
    qkv__release(m.weights, m.bytes);
    return status;
}

/* ---- ranks ---- */

static void put_measures(qkv__json *j, int layer, int head, const qkv_head_measures *x)
{
#define NAMED_MEASURE(constant, member) { #member, x->member },
    const struct {
        const char *name;
        double x;
    } measures[] = { QKV_HEAD_MEASURE_LIST(NAMED_MEASURE) };
#undef NAMED_MEASURE
    qkv__put_raw(j, "{\"layer\":");
    qkv__put_whole(j, layer);
    qkv__put_raw(j, ",\"head\":");
    qkv__put_whole(j, head);
    for (int i = 0; i < QKV_HEAD_MEASURE_COUNT; i++) {
        qkv__put_raw(j, ",");
        qkv__put_name(j, measures[i].name);
        qkv__put_raw(j, ":");
        qkv__put_double(j, measures[i].x);
    }
    qkv__put_raw(j, "}");
}

qkv_status qkv__put_ranks(qkv__json *j, const qkv_attention_capture *a, qkv_attention_kind kind, int layer, int head)
{
    qkv_head_measures x;
    qkv_status status = QKV_OK;
    bool follows = false;
    if (!a->layers[kind])
        return qkv__fail(QKV_USAGE, "\"kind\" is \"%s\": the model has no such attention", qkv_attention_kind_name(kind));
    qkv__put_raw(j, "{\"kind\":");
    qkv__put_name(j, qkv_attention_kind_name(kind));
    qkv__put_raw(j, ",\"heads\":[");
    for (int l = 0; l < a->layers[kind]; l++)
        for (int h = 0; h < a->heads && !status; h++) {
            if ((layer >= 0 && layer != l) || (head >= 0 && head != h)) continue;
            if ((status = qkv_attention_stats(a, kind, l, h, &x))) break;
            if (follows) qkv__put_raw(j, ",");
            put_measures(j, l, h, &x);
            follows = true;
        }
    qkv__put_raw(j, "]}");
    return status;
}

/* ---- results ---- */

void qkv__put_translation(qkv__json *j, const char *text, size_t length, const double *score, const int32_t *ids, int64_t n)
{
    qkv__put_raw(j, "{\"text\":");
    qkv__put_string(j, text, length);
    qkv__put_raw(j, ",\"score\":");
    if (score) qkv__put_double(j, *score);
    else qkv__put_raw(j, "null");
    qkv__put_raw(j, ",\"ids\":");
    qkv__put_ids(j, ids, n);
    qkv__put_raw(j, "}");
}

typedef struct scored {
    float probability;
    int64_t class_id;
} scored;

static int most_probable_first(const void *a, const void *b)
{
    const scored *x = a, *y = b;
    if (x->probability != y->probability) return x->probability > y->probability ? -1 : 1;
    return x->class_id < y->class_id ? -1 : x->class_id > y->class_id;
}

static void put_name_of(qkv__json *j, const qkv_model *m, int64_t class_id)
{
    const char *label = qkv_model_label(m, class_id);
    if (label) qkv__put_name(j, label);
    else {
        qkv__put_raw(j, "\"");
        qkv__put_whole(j, class_id);
        qkv__put_raw(j, "\"");
    }
}

/* All but the brace at its end. */
static void put_class(qkv__json *j, const qkv_model *m, const scored *s)
{
    qkv__put_raw(j, "{\"label\":");
    put_name_of(j, m, s->class_id);
    qkv__put_raw(j, ",\"probability\":");
    qkv__put_float(j, s->probability);
}

/* The only class of a model: its logit, and what the logistic function makes of it. */
static void put_only_class(qkv__json *j, const qkv_model *m, float logit)
{
    qkv__put_raw(j, "\"classes\":[");
    put_class(j, m, &(scored){ 1 / (1 + expf(-logit)), 0 });
    qkv__put_raw(j, ",\"logit\":");
    qkv__put_float(j, logit);
    qkv__put_raw(j, "}]");
}

static void put_number(qkv__json *j, float number)
{
    qkv__put_raw(j, "\"number\":");
    qkv__put_float(j, number);
}

/* The labels that are more likely than not, the likeliest first, before all of them. */
static void put_likely(qkv__json *j, const qkv_model *m, const scored *order, int64_t n)
{
    qkv__put_raw(j, "\"labels\":[");
    for (int64_t i = 0; i < n && order[i].probability >= 0.5f; i++) {
        if (i) qkv__put_raw(j, ",");
        put_name_of(j, m, order[i].class_id);
    }
    qkv__put_raw(j, "],");
}

void qkv__put_classes(qkv__json *j, const qkv_model *m, const float *probabilities, int64_t n)
{
    qkv_problem problem = qkv_model_get_info(m)->problem;
    if (problem == QKV_PROBLEM_REGRESSION || (n == 1 && !problem)) {
        if (problem) put_number(j, probabilities[0]);
        else put_only_class(j, m, probabilities[0]);
        return;
    }
    scored *order = qkv__alloc(sizeof *order * (size_t)n);
    if (!order) {
        if (!j->status) j->status = QKV_MEMORY;
        return;
    }
    for (int64_t i = 0; i < n; i++) order[i] = (scored){ probabilities[i], i };
    qsort(order, (size_t)n, sizeof *order, most_probable_first);
    if (problem == QKV_PROBLEM_MULTILABEL) put_likely(j, m, order, n);
    qkv__put_raw(j, "\"classes\":[");
    for (int64_t i = 0; i < n; i++) {
        if (i) qkv__put_raw(j, ",");
        put_class(j, m, &order[i]);
        qkv__put_raw(j, "}");
    }
    qkv__put_raw(j, "]");
    qkv__release(order, sizeof *order * (size_t)n);
}
