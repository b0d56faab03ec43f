/* bind.c: the weights of params and the tensors of a folder's files. */
#include "bind.h"

#include "../base/pool.h"
#include "../base/size.h"
#include "../base/error_list.h"
#include "../base/number.h"
#include "../tensor/quantized.h"
#include "../tensor/tape.h"
#include "params_file.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* How a weight lies in a tensor of a file: its rows (of a vector, numbers) are first .. of the `all` that the tensor has. */
typedef struct place {
    qkv__rename how;
    int64_t first, all;
    int64_t d_k; /* rows of a head */
} place;

/* Where a weight lies. */
typedef struct source {
    const qkv__stored *stored;
    const qkv__stored *scales; /* of one that is stored in 8 or 4 bits; NULL: it is not */
    place at;
} source;

enum {
    LINE = 16,  /* floats in 64 bytes */
    SOME = 1024 /* numbers at a time */
};

/* What the params hold while they use it. */
typedef struct loaded {
    qkv__weights weights;
    float *decoded; /* weights that cannot stay as they are, side by side */
    size_t decoded_bytes;
    char *quantized; /* weights that become 8 or 4 bits, values and scales, side by side */
    size_t quantized_bytes;
} loaded;

static void release_loaded(void *what)
{
    loaded *l = what;
    qkv__weights_close(&l->weights);
    qkv__release(l->decoded, l->decoded_bytes);
    qkv__release(l->quantized, l->quantized_bytes);
    qkv__release(l, sizeof *l);
}

/* What is found of all weights, and what is wrong with it. */
typedef struct comparison {
    const qkv__family *family;
    const qkv__weights *weights;
    int64_t d_k; /* of the model */
    int bits;    /* that config.json says */
    int found;   /* fewest bits of a quantized matrix; 0: none is quantized */
    source *sources;
    bool *used;
    qkv__error_list wrong, types;
} comparison;

/* ---- finding ---- */

static const qkv__stored *with_ending(const qkv__weights *w, const char *name, const char *ending, const char *other)
{
    char changed[QKV_NAME_MAX];
    size_t n = strlen(name), e = strlen(ending);
    if (n < e || strcmp(name + n - e, ending)) return NULL;
    int length = snprintf(changed, sizeof changed, "%.*s%s", (int)(n - e), name, other);
    return length < (int)sizeof changed ? qkv__weights_find(w, changed) : NULL;
}

/* By its name, or by what the oldest files call the two parts of a norm. */
static const qkv__stored *find_exactly(const qkv__weights *w, const char *name)
{
    const qkv__stored *t = qkv__weights_find(w, name);
    if (!t) t = with_ending(w, name, "LayerNorm.weight", "LayerNorm.gamma");
    return t ? t : with_ending(w, name, "LayerNorm.bias", "LayerNorm.beta");
}

static const qkv__stored *find_prefixed(const qkv__family *f, const qkv__weights *w, const char *name)
{
    const qkv__stored *t = find_exactly(w, name);
    size_t prefix = strlen(f->prefix);
    return t || strncmp(name, f->prefix, prefix) ? t : find_exactly(w, name + prefix);
}

/* The n-th place that weight i may have, and its name there; false after the last. Parts of one tensor are made one after the
 * other, with a bias between two at most: those that are near are all of them. */
static bool place_of(const qkv__family *f, const qkv_params *p, int64_t d_k, int i, int n, char theirs[QKV_NAME_MAX],
                     place *out)
{
    enum { NEAR = 4 };
    char other[QKV_NAME_MAX];
    qkv__rename how;
    const qkv_tensor *w = qkv_params_at(p, i);
    *out = (place){ .all = w->ndim ? w->shape[0] : 1, .d_k = d_k };
    if (!qkv__family_place(f, qkv_params_name(p, i), n, theirs, &out->how)) return false;
    for (int k = i - NEAR; out->how.parts && k <= i + NEAR; k++) {
        if (k == i || k < 0 || k >= qkv_params_size(p)) continue;
        if (!qkv__family_place(f, qkv_params_name(p, k), n, other, &how) || strcmp(other, theirs)) continue;
        out->all += qkv_params_at(p, k)->shape[0];
        if (how.part < out->how.part) out->first += qkv_params_at(p, k)->shape[0];
    }
    return true;
}

/* Theirs is the name that the file should have, found or not. */
static source find_source(const comparison *c, const qkv_params *p, int i, char theirs[QKV_NAME_MAX])
{
    source s = { 0 };
    char other[QKV_NAME_MAX];
    snprintf(theirs, QKV_NAME_MAX, "%s", qkv_params_name(p, i));
    s.at.all = qkv_params_at(p, i)->shape[0];
    if (!c->family) return s.stored = qkv__weights_find(c->weights, theirs), s;
    for (int n = 0; !s.stored && place_of(c->family, p, c->d_k, i, n, other, &s.at); n++) {
        if (n == 0) memcpy(theirs, other, sizeof other);
        s.stored = find_prefixed(c->family, c->weights, other);
    }
    return s;
}

/* ---- comparing ---- */

/* The shape that a weight has in the file. */
static void stored_shape(const qkv_tensor *w, const place *at, qkv__stored *out)
{
    bool turned = at->how.how == QKV__TURNED && w->ndim == 2;
    out->ndim = w->ndim;
    memcpy(out->shape, w->shape, sizeof out->shape);
    if (turned) out->shape[0] = w->shape[1];
    if (w->ndim) out->shape[turned] = at->all; /* w->count * 8 fits an int64_t, and so do 3 of its dimensions */
    if (at->how.how != QKV__SQUEEZED) return;
    out->shape[1] = out->shape[0], out->shape[0] = 1;
    out->ndim = 2;
}

static bool same_shape(const qkv__stored *a, const qkv__stored *b)
{
    return a->ndim == b->ndim && !memcmp(a->shape, b->shape, sizeof *a->shape * (size_t)a->ndim);
}

/* ---- 8 and 4 bits ---- */

#define SCALES "_scale" /* behind the name of the tensor that they are of */

/* Whether affine and gather alone read it: the rows of positions are added as they are, and pool.weight is a query. */
static bool is_matrix(const qkv_tensor *w, const char *name)
{
    return w->ndim == 2 && !strstr(name, "positions.") && strcmp(name, "pool.weight") != 0;
}

/* The type that a matrix has in a model of 8, 4 or 16 bits; tables and what is before a softmax have 8 in both. NULL: float. */
static const qkv__type *quantized_type(int bits, const qkv_tensor *w, const char *name)
{
    static const char *const finest[] = { "embed.weight",          "target_embed.weight", "token_types.weight",
                                          "output.weight",         "classifier.weight",   "token_classifier.weight",
                                          "span_classifier.weight" };
    if (bits == 16 && is_matrix(w, name)) return qkv__type_bf16_both();
    if (!bits || !is_matrix(w, name) || w->shape[1] > QKV__INT8_COLUMNS) return NULL;
    for (size_t i = 0; i < sizeof finest / sizeof *finest; i++)
        if (!strcmp(name, finest[i])) return qkv__type_quantized(8);
    return qkv__type_quantized(bits);
}

/* What a weight of ours is in the file as this type: a matrix lies (out, in) whatever its family does with floats, and parts of
 * one lie one after the other. Its values have bytes of rows, its scales one number a row or one a group. */
static qkv__stored quantized_shape(const qkv_tensor *w, const place *at, const qkv__type *type, bool scales)
{
    qkv__stored t = { .ndim = scales && type->bits == 8 ? 1 : 2, .dtype = scales ? type->scales : type->name };
    t.shape[0] = at->all;
    t.shape[1] = scales ? qkv__type_row_scales(type, w->shape[1]) : qkv__type_row_bytes(type, w->shape[1]);
    t.count = t.shape[0] * t.shape[1];
    return t;
}

static qkv_status name_scales(const char *name, char out[QKV_NAME_MAX])
{
    if (snprintf(out, QKV_NAME_MAX, "%s" SCALES, name) < QKV_NAME_MAX) return QKV_OK;
    return qkv__fail(QKV_LIMIT, "tensor \"%.40s...\": its name is too long", name);
}

static float scale_at(const qkv__stored *t, int64_t i)
{
    float scale;
    qkv__safetensors_decode_some(t, i, 1, &scale);
    return scale;
}

/* Only of 4 bits a scale may be negative: the number of the largest size is -8 of it. */
static void check_scales(const qkv__stored *t, const qkv__type *type, qkv__error_list *wrong)
{
    for (int64_t i = 0; i < t->count; i++) {
        float scale = scale_at(t, i);
        if (isfinite(scale) && (type->bits == 4 || scale >= 0)) continue;
        qkv__error_list_add(wrong, "tensor \"%.200s\": scale %lld is %g", t->name, (long long)i, (double)scale);
        return;
    }
    if ((uintptr_t)t->data % (size_t)qkv__type_scale_bytes(type))
        qkv__error_list_add(wrong, "tensor \"%.200s\" does not lie at a multiple of its number's size", t->name);
}

static void compare_quantized(const qkv_tensor *w, const qkv__weights *all, source *s, qkv__error_list *wrong)
{
    char name[QKV_NAME_MAX];
    const qkv__type *type = qkv__type_named(s->stored->dtype);
    qkv__stored values = quantized_shape(w, &s->at, type, false), scales = quantized_shape(w, &s->at, type, true);
    s->scales = name_scales(s->stored->name, name) ? NULL : qkv__weights_find(all, name);
    if (!same_shape(s->stored, &values))
        qkv__error_list_add(wrong, "tensor \"%.200s\" of %d bits is %s, expected %s", s->stored->name, type->bits,
                            QKV_TEXT(s->stored), QKV_TEXT(&values));
    else if (!s->scales) qkv__error_list_add(wrong, "tensor \"%.200s" SCALES "\" is missing", s->stored->name);
    else if (strcmp(s->scales->dtype, type->scales) != 0 || !same_shape(s->scales, &scales))
        qkv__error_list_add(wrong, "tensor \"%.200s\" is %s %s, expected %s %s", s->scales->name, s->scales->dtype,
                            QKV_TEXT(s->scales), type->scales, QKV_TEXT(&scales));
    else check_scales(s->scales, type, wrong);
}

/* ---- comparing all ---- */

/* Whether a tensor is to be read as 8 or 4 bits with scales: in a file of such a model, and only where a matrix is. */
static bool is_quantized(const qkv__stored *t, int bits, const qkv_tensor *w, const char *name)
{
    const qkv__type *type = qkv__type_named(t->dtype);
    return bits && type && type->scales && is_matrix(w, name) && w->shape[1] <= QKV__INT8_COLUMNS;
}

static void compare_weight(comparison *c, const qkv_params *p, int i, source *s)
{
    const qkv_tensor *w = qkv_params_at(p, i);
    const char *ours = qkv_params_name(p, i);
    char name[QKV_NAME_MAX];
    qkv__stored expected = { 0 };
    *s = find_source(c, p, i, name);
    const qkv__stored *t = s->stored;
    stored_shape(w, &s->at, &expected);
    if (!t) qkv__error_list_add(&c->wrong, "tensor \"%.200s\" is missing", name);
    else if (is_quantized(t, c->bits, w, ours)) {
        const int bits = qkv__type_named(t->dtype)->bits;
        if (!c->found || bits < c->found) c->found = bits;
        compare_quantized(w, c->weights, s, &c->wrong);
    } else if (!same_shape(t, &expected))
        qkv__error_list_add(&c->wrong, "tensor \"%.200s\" is %s, expected %s", t->name, QKV_TEXT(t), QKV_TEXT(&expected));
    else if (!qkv__safetensors_decodes(t))
        qkv__error_list_add(&c->types, "tensor \"%.200s\" is %s, not a float type", t->name, t->dtype);
    if (t) c->used[t - c->weights->tensors] = true;
    if (s->scales) c->used[s->scales - c->weights->tensors] = true;
}

static qkv_status compare_weights(const qkv_params *p, comparison *c)
{
    const qkv__weights *w = c->weights;
    for (int i = 0; i < qkv_params_size(p); i++) compare_weight(c, p, i, &c->sources[i]);
    for (int i = 0; i < w->n; i++)
        if (!c->used[i] && !(c->family && qkv__family_ignores(c->family, w->tensors[i].name)))
            qkv__error_list_add(&c->wrong, "tensor \"%.200s\" has no place", w->tensors[i].name);
    qkv_status status = qkv__error_list_end(&c->wrong, w->path, QKV_FORMAT);
    if (!status) status = qkv__error_list_end(&c->types, w->path, QKV_UNSUPPORTED);
    if (status || c->found == c->bits) return status;
    return qkv__fail(QKV_FORMAT, "%s: config.json says %d bits: %s", w->path, c->bits,
                     c->found == 8   ? "the matrices have 8"
                     : c->found == 4 ? "some matrices have 4"
                                     : "no matrix is quantized");
}

/* ---- values ---- */

/* A matrix stored as (in, all): rows of our (out, in) are columns first .. first+out-1 of it. Read a few rows at a time, so
 * that what is written lies together. */
static void turn(const qkv__stored *t, int64_t first, int64_t out, int64_t in, float *to)
{
    enum { ROWS = 16, COLUMNS = 256 };
    int64_t all = t->shape[1];
    float rows[ROWS][COLUMNS];
    for (int64_t c = 0; c < out; c += COLUMNS)
        for (int64_t r = 0; r < in; r += ROWS) {
            int64_t n = qkv__min(ROWS, in - r), width = qkv__min(COLUMNS, out - c);
            for (int64_t i = 0; i < n; i++) qkv__safetensors_decode_some(t, (r + i) * all + first + c, width, rows[i]);
            for (int64_t j = 0; j < width; j++)
                for (int64_t i = 0; i < n; i++) to[(c + j) * in + r + i] = rows[i][j];
        }
}

static bool is_turned(const source *s, const qkv_tensor *w) { return s->at.how.how == QKV__TURNED && w->ndim == 2; }

/* Numbers of a tensor that come before ours. */
static int64_t floats_before(const place *at, const qkv_tensor *w)
{
    return w->ndim == 2 ? at->first * w->shape[1] : at->first;
}

/* Where the values can stay; NULL when they cannot. */
static float *in_place(const source *s, const qkv_tensor *w)
{
    bool changes = is_turned(s, w) || s->at.how.how == QKV__LESS_ONE || s->at.how.how == QKV__BY_HEAD;
    const float *values = changes ? NULL : qkv__safetensors_floats(s->stored);
    return values ? (float *)values + floats_before(&s->at, w) : NULL;
}

/* The type that a matrix can stay in; NULL: none. */
static const qkv__type *in_place_type(const source *s, const qkv_tensor *w, const char *name)
{
    const qkv__type *type = qkv__type_named(s->stored->dtype);
    if (s->scales) return type;
    if (!is_matrix(w, name) || is_turned(s, w) || s->at.how.how == QKV__BY_HEAD || !type || type->scales) return NULL;
    return (uintptr_t)s->stored->data % ((size_t)type->bits / 8) == 0 ? type : NULL;
}

/* The row of a tensor that row i of ours is. */
static int64_t row_by_head(const place *at, int64_t i)
{
    return (i / at->d_k * at->how.parts + at->how.part) * at->d_k + i % at->d_k;
}

/* Rows first .. first+rows-1 of a matrix. */
static void decode_rows(const source *s, const qkv_tensor *w, int64_t first, int64_t rows, float *to)
{
    int64_t in = w->shape[1], at = s->at.first + first;
    if (s->at.how.how == QKV__BY_HEAD)
        for (int64_t i = 0; i < rows; i++)
            qkv__safetensors_decode_some(s->stored, row_by_head(&s->at, first + i) * in, in, to + i * in);
    else if (is_turned(s, w)) turn(s->stored, at, rows, in, to);
    else qkv__safetensors_decode_some(s->stored, at * in, rows * in, to);
}

static void decode_weight(const source *s, const qkv_tensor *w, float *to)
{
    if (w->ndim == 2) decode_rows(s, w, 0, w->shape[0], to);
    else if (s->at.how.how == QKV__BY_HEAD)
        for (int64_t i = 0; i < w->count; i++) qkv__safetensors_decode_some(s->stored, row_by_head(&s->at, i), 1, to + i);
    else qkv__safetensors_decode_some(s->stored, s->at.first, w->count, to);
    for (int64_t i = 0; s->at.how.how == QKV__LESS_ONE && i < w->count; i++) to[i] += 1;
}

/* How each weight gets its values: those that are decoded or quantized lie in memory of l's. */
typedef struct placing {
    qkv_params *p;
    const source *sources;
    bool *decoded; /* those that are */
    int bits;      /* to be quantized to; 0: no */
    const char *path;
    loaded *l;
} placing;

static void decode_task(void *work, int64_t task, void *scratch)
{
    (void)scratch;
    const placing *x = work;
    const qkv_tensor *w = qkv_params_at(x->p, (int)task);
    if (x->decoded[task]) decode_weight(&x->sources[task], w, w->data);
}

/* Whether weight i, which is to be BF16, is that in its file and can stay there. */
static bool stays_bf16(const placing *x, int i)
{
    const qkv__type *type = in_place_type(&x->sources[i], qkv_params_at(x->p, i), qkv_params_name(x->p, i));
    return x->bits == 16 && type && !strcmp(type->name, qkv__type_bf16_both()->name);
}

/* The type that weight i is to be given here; NULL: it stays float, or has one in its file. */
static const qkv__type *type_to_make(const placing *x, int i)
{
    if (x->sources[i].scales || stays_bf16(x, i)) return NULL;
    return quantized_type(x->bits, qkv_params_at(x->p, i), qkv_params_name(x->p, i));
}

static void place_quantized(const placing *x, int i)
{
    const qkv_tensor *w = qkv_params_at(x->p, i);
    const source *s = &x->sources[i];
    const qkv__type *type = qkv__type_named(s->stored->dtype);
    int64_t row = s->at.first;
    qkv__params_place_typed(x->p, i, s->stored->data + row * qkv__type_row_bytes(type, w->shape[1]),
                            s->scales->data + row * qkv__type_row_scales(type, w->shape[1]) * qkv__type_scale_bytes(type),
                            type);
}

/* Places every weight that can stay as it is, and counts the floats of those that are decoded. */
static int64_t place_still(const placing *x)
{
    int64_t floats = 0;
    for (int i = 0; i < qkv_params_size(x->p); i++) {
        const qkv_tensor *w = qkv_params_at(x->p, i);
        const source *s = &x->sources[i];
        float *values = in_place(s, w);
        const qkv__type *type = values ? NULL : in_place_type(s, w, qkv_params_name(x->p, i));
        bool is_made = type_to_make(x, i);
        x->decoded[i] = !values && !type && !is_made;
        if (is_made) continue;
        if (values) qkv__params_place(x->p, i, values);
        else if (type && type->scales) place_quantized(x, i);
        else if (type)
            qkv__params_place_typed(x->p, i, s->stored->data + s->at.first * qkv__type_row_bytes(type, w->shape[1]), NULL,
                                    stays_bf16(x, i) ? qkv__type_bf16_both() : type);
        else floats += qkv__round_up(w->count, LINE);
    }
    return floats;
}

static qkv_status decode_weights(const placing *x, int64_t floats)
{
    int64_t at = 0;
    if (!floats) return QKV_OK;
    x->l->decoded_bytes = sizeof(float) * (size_t)floats;
    if (!(x->l->decoded = qkv__alloc(x->l->decoded_bytes))) return QKV_MEMORY;
    for (int i = 0; i < qkv_params_size(x->p); i++) {
        if (!x->decoded[i]) continue;
        qkv__params_place(x->p, i, x->l->decoded + at);
        at += qkv__round_up(qkv_params_at(x->p, i)->count, LINE);
    }
    return qkv__parallel(qkv_params_size(x->p), 0, decode_task, (void *)(uintptr_t)x);
}

typedef struct quantizing {
    const source *source;
    const qkv_tensor *w;
    const qkv__type *type;
    char *values, *scales;
    atomic_bool failed;
} quantizing;

enum { SLAB = 32 }; /* rows that are quantized at a time */

static void quantize_slab(void *work, int64_t task, void *scratch)
{
    quantizing *x = work;
    int64_t in = x->w->shape[1], from = task * SLAB, rows = qkv__min(SLAB, x->w->shape[0] - from);
    int64_t scales = qkv__type_row_scales(x->type, in) * qkv__type_scale_bytes(x->type);
    decode_rows(x->source, x->w, from, rows, scratch);
    if (!qkv__quantize_weight(x->type, scratch, rows, in, x->values + from * qkv__type_row_bytes(x->type, in),
                              x->scales + from * scales))
        atomic_store(&x->failed, true);
}

/* Quantizes weight i to memory at *at, where that is not NULL, and moves *bytes behind it. */
static qkv_status quantize_weight(const placing *x, int i, const qkv__type *type, size_t *bytes)
{
    enum { CACHE_LINE = 64 };
    const qkv_tensor *w = qkv_params_at(x->p, i);
    int64_t out = w->shape[0], in = w->shape[1];
    int64_t values = qkv__round_up(out * qkv__type_row_bytes(type, in), CACHE_LINE);
    int64_t scales = qkv__round_up(out * qkv__type_row_scales(type, in) * qkv__type_scale_bytes(type), CACHE_LINE);
    char *at = x->l->quantized ? x->l->quantized + *bytes : NULL;
    *bytes += (size_t)(values + scales);
    if (!at) return QKV_OK;
    quantizing work = { .source = &x->sources[i], .w = w, .type = type, .values = at, .scales = at + values };
    qkv_status status = qkv__parallel(qkv__ceil_div(out, SLAB), sizeof(float) * (size_t)(SLAB * in), quantize_slab, &work);
    if (!status && work.failed)
        status = qkv__fail(QKV_NUMERIC, "%s: a value of \"%s\" is not finite, or too large for %d bits", x->path,
                           qkv_params_name(x->p, i), type->bits);
    qkv__params_place_typed(x->p, i, at, at + values, type);
    return status;
}

/* Once to count their bytes, once to make them. */
static qkv_status quantize_weights(const placing *x)
{
    qkv_status status = QKV_OK;
    for (int round = 0; round < 2 && !status; round++) {
        size_t bytes = 0;
        for (int i = 0; i < qkv_params_size(x->p) && !status; i++) {
            const qkv__type *type = type_to_make(x, i);
            if (type) status = quantize_weight(x, i, type, &bytes);
        }
        if (round || !bytes) continue;
        x->l->quantized_bytes = bytes;
        if (!(x->l->quantized = qkv__alloc(bytes))) return QKV_MEMORY;
    }
    return status;
}

enum { PAGE = 4096 };

static void mark_pages(bool *used, const qkv__bytes *file, const void *weight, int64_t bytes)
{
    const unsigned char *from = weight;
    if (!weight || from < file->data || from >= file->data + file->size) return;
    for (size_t page = (size_t)(from - file->data) / PAGE; page * PAGE < (size_t)(from - file->data) + (size_t)bytes; page++)
        used[page] = true;
}

/* A file that was read into memory gives up the pages that no weight lies in: those that were decoded or quantized are elsewhere.
 * A map has none to give up. */
static qkv_status drop_pages(const qkv_params *p, const qkv__bytes *file)
{
    size_t pages = (file->size + PAGE - 1) / PAGE;
    bool *used = file->is_copy ? qkv__alloc_zero(pages) : NULL;
    if (!used) return file->is_copy ? QKV_MEMORY : QKV_OK;
    for (int i = 0; i < qkv_params_size(p); i++) {
        const qkv_tensor *w = qkv_params_at(p, i);
        const int64_t out = w->ndim ? w->shape[0] : 1, in = w->count / out;
        mark_pages(used, file, w->data, w->count * (int64_t)sizeof *w->data);
        if (!w->type) continue;
        mark_pages(used, file, w->values, out * qkv__type_row_bytes(w->type, in));
        mark_pages(used, file, w->scales, out * qkv__type_row_scales(w->type, in) * qkv__type_scale_bytes(w->type));
    }
    for (size_t page = 0, n; page < pages; page += n + 1) {
        for (n = 0; page + n < pages && !used[page + n]; n++) {}
        if (n) qkv__bytes_drop(file, page * PAGE, n * PAGE);
    }
    qkv__release(used, pages);
    return QKV_OK;
}

qkv_status qkv__bind(qkv_params *p, const qkv__family *f, qkv__weights *w, int64_t d_k, int stored_bits, int wanted_bits)
{
    int n = qkv_params_size(p);
    size_t bytes = sizeof(source) * (size_t)n, used_bytes = (size_t)(w->n > n ? w->n : n);
    source *sources = qkv__alloc_zero(bytes);
    bool *used = qkv__alloc_zero(used_bytes); /* tensors, and then weights that are decoded */
    loaded *l = qkv__alloc_zero(sizeof *l);
    comparison c = { .family = f, .weights = w, .d_k = d_k, .bits = stored_bits, .sources = sources, .used = used };
    const placing x = { p, sources, used, wanted_bits, w->path, l };
    qkv_status status = sources && used && l ? compare_weights(p, &c) : QKV_MEMORY;
    if (!status) status = decode_weights(&x, place_still(&x));
    if (!status) status = quantize_weights(&x);
    for (int i = 0; l && l->quantized && i < w->n_files; i++) qkv__bytes_forget(&w->files[i].file); /* most was read once */
    for (int i = 0; i < w->n_files && !status && (l->quantized || l->decoded); i++) status = drop_pages(p, &w->files[i].file);
    if (!status) {
        l->weights = *w;
        *w = (qkv__weights){ 0 };
        qkv__params_retain(p, l, release_loaded);
    } else if (l) release_loaded(l);
    qkv__release(sources, bytes);
    qkv__release(used, used_bytes);
    return status;
}

qkv_status qkv__bind_check(const qkv_params *p, bool copies)
{
    const loaded *l = qkv__params_held(p);
    for (int i = 0; l && (copies || !l->weights.is_copy) && i < l->weights.n_files; i++)
        if (!qkv__file_is_same(l->weights.paths[i], &l->weights.files[i].file.stamp))
            return qkv__fail(QKV_IO, "%s: the file has changed since the model was loaded: load it again", l->weights.paths[i]);
    return QKV_OK;
}

/* ---- saving ---- */

/* A tensor of the file. */
typedef struct entry {
    char name[QKV_NAME_MAX];
    qkv__stored shape; /* only ndim and shape */
    void *made;        /* memory for one that is put together; NULL: the weight itself */
    size_t made_bytes;
} entry;

typedef struct listing {
    int n, room;
    entry *entries;
    qkv__to_store *tensors;
} listing;

static void free_listing(listing *l)
{
    for (int i = 0; l->entries && i < l->room; i++) qkv__release(l->entries[i].made, l->entries[i].made_bytes);
    qkv__release(l->entries, sizeof *l->entries * (size_t)l->room);
    qkv__release(l->tensors, sizeof *l->tensors * (size_t)l->room);
}

static qkv_status make_listing(listing *l, int room)
{
    *l = (listing){ .room = room };
    l->entries = qkv__alloc_zero(sizeof *l->entries * (size_t)room);
    l->tensors = qkv__alloc(sizeof *l->tensors * (size_t)room);
    return l->entries && l->tensors ? QKV_OK : QKV_MEMORY;
}

/* Our part of a tensor that is put together: the inverse of decode_weight(). */
static void put_weight_part(const qkv_tensor *w, const place *at, const qkv__stored *shape, float *to)
{
    int64_t wide = w->ndim == 2 ? w->shape[1] : 1;
    for (int64_t i = 0; at->how.how == QKV__BY_HEAD && i < w->shape[0]; i++)
        qkv__widen(w, i * wide, wide, to + row_by_head(at, i) * wide);
    if (at->how.how == QKV__BY_HEAD) return;
    if (at->how.how != QKV__TURNED || w->ndim != 2) {
        to += floats_before(at, w);
        qkv__widen(w, 0, w->count, to);
        for (int64_t i = 0; at->how.how == QKV__LESS_ONE && i < w->count; i++) to[i] -= 1;
        return;
    }
    int64_t out = w->shape[0], in = w->shape[1], all = shape->shape[1], first = at->first;
    float some[SOME];
    for (int64_t c = 0; c < out; c++)
        for (int64_t r = 0; r < in; r += SOME) {
            int64_t n = qkv__min(SOME, in - r);
            qkv__widen(w, c * in + r, n, some);
            for (int64_t i = 0; i < n; i++) to[(r + i) * all + first + c] = some[i];
        }
}

/* The entry that an earlier part has made; the parts of a tensor follow each other closely. */
static entry *find_listed(const listing *l, const char *name)
{
    for (int i = l->n - 1; i >= 0; i--)
        if (!strcmp(l->entries[i].name, name)) return &l->entries[i];
    return NULL;
}

static entry *list_new(listing *l, const char *name, const qkv_tensor *w, const place *at, bool is_made)
{
    entry *e = &l->entries[l->n];
    int64_t count = w->ndim ? w->count / w->shape[0] * at->all : w->count;
    memcpy(e->name, name, sizeof e->name);
    stored_shape(w, at, &e->shape);
    e->made_bytes = is_made ? sizeof(float) * (size_t)count : 0;
    if (is_made && !(e->made = qkv__alloc(e->made_bytes))) return NULL;
    qkv__to_store *t = &l->tensors[l->n++];
    *t = qkv__weight_to_store(e->name, w);
    t->ndim = e->shape.ndim;
    t->shape = e->shape.shape;
    t->count = count;
    if (is_made) t->data = e->made, t->get = NULL;
    return e;
}

/* Adds the values or the scales of a weight as they are kept; parts of a tensor are put together. */
static qkv_status list_bytes(listing *l, const char *name, const qkv_tensor *w, const place *at, bool scales)
{
    const qkv__stored shape = quantized_shape(w, at, w->type, scales);
    int64_t size = scales ? qkv__type_scale_bytes(w->type) : 1;
    size_t row = (size_t)(size * shape.count / at->all);
    const void *from = scales ? w->scales : w->values;
    entry *e = at->how.parts ? find_listed(l, name) : NULL;
    if (!e) {
        e = &l->entries[l->n];
        snprintf(e->name, sizeof e->name, "%s", name);
        e->shape = shape;
        e->made_bytes = at->how.parts ? row * (size_t)at->all : 0;
        if (at->how.parts && !(e->made = qkv__alloc(e->made_bytes))) return QKV_MEMORY;
        l->tensors[l->n++] = (qkv__to_store){ .name = e->name,
                                              .dtype = shape.dtype,
                                              .ndim = shape.ndim,
                                              .shape = e->shape.shape,
                                              .count = shape.count,
                                              .data = at->how.parts ? e->made : from };
    }
    if (at->how.parts) memcpy((char *)e->made + (size_t)at->first * row, from, (size_t)w->shape[0] * row);
    return QKV_OK;
}

static qkv_status list_quantized(listing *l, const char *name, const qkv_tensor *w, const place *at)
{
    char scales[QKV_NAME_MAX];
    qkv_status status = name_scales(name, scales);
    if (!status) status = list_bytes(l, name, w, at, false);
    return status ? status : list_bytes(l, scales, w, at, true);
}

static qkv_status list_weight(listing *l, const qkv_params *p, int i, const qkv__family *f, int64_t d_k)
{
    char theirs[QKV_NAME_MAX];
    const qkv_tensor *w = qkv_params_at(p, i);
    place at = { .all = w->ndim ? w->shape[0] : 1 };
    snprintf(theirs, sizeof theirs, "%s", qkv_params_name(p, i));
    if (f && !place_of(f, p, d_k, i, 0, theirs, &at))
        return qkv__fail(QKV_UNSUPPORTED, "a %s model has no place for the weight \"%.200s\"", f->type, qkv_params_name(p, i));
    if (qkv__is_quantized(w)) return list_quantized(l, theirs, w, &at);
    bool is_made = at.how.parts || at.how.how == QKV__LESS_ONE || (at.how.how == QKV__TURNED && w->ndim == 2);
    entry *e = at.how.parts ? find_listed(l, theirs) : NULL;
    if (!e) e = list_new(l, theirs, w, &at, is_made);
    if (!e) return QKV_MEMORY;
    if (is_made) put_weight_part(w, &at, &e->shape, e->made);
    return QKV_OK;
}

qkv_status qkv__bind_save(const qkv_params *p, const qkv__family *f, int64_t d_k, const char *path)
{
    listing l = { 0 };
    qkv_status status = make_listing(&l, 2 * qkv_params_size(p));
    for (int i = 0; i < qkv_params_size(p) && !status; i++) status = list_weight(&l, p, i, f, d_k);
    if (!status) status = qkv__safetensors_write(path, l.n, l.tensors, f ? 1 : 0, &(qkv__note){ "format", "pt" });
    free_listing(&l);
    return status;
}
