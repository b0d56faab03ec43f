/* bind.c: the weights of params and the tensors of a folder's files. */
#include "bind.h"

#include "../base/pool.h"
#include "../base/size.h"
#include "../io/error_list.h"
#include "../op/types.h"
#include "../tensor/tape.h"
#include "params_file.h"

#include <stdio.h>
#include <string.h>

/* Where a weight lies. */
typedef struct source {
    const qkv__stored *stored;
    qkv__rename how;
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
} loaded;

static void release_loaded(void *what)
{
    loaded *l = what;
    qkv__weights_close(&l->weights);
    qkv__release(l->decoded, l->decoded_bytes);
    qkv__release(l, sizeof *l);
}

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

/* Theirs is the name that the file should have, found or not. */
static source find_source(const qkv__family *f, const qkv__weights *w, const char *ours, char theirs[QKV_NAME_MAX])
{
    source s = { 0 };
    snprintf(theirs, QKV_NAME_MAX, "%s", ours);
    if (!f) return s.stored = qkv__weights_find(w, ours), s;
    char other[QKV_NAME_MAX];
    for (int i = 0; !s.stored && qkv__family_place(f, ours, i, other, &s.how); i++) {
        if (i == 0) memcpy(theirs, other, sizeof other);
        s.stored = find_prefixed(f, w, other);
    }
    return s;
}

/* ---- comparing ---- */

/* The shape that a weight has in the file. */
static void stored_shape(const qkv_tensor *w, const qkv__rename *how, qkv__stored *out)
{
    bool turned = how->how == QKV__TURNED && w->ndim == 2;
    int parts = how->parts ? how->parts : 1, wide = turned; /* the dimension that the parts share */
    out->ndim = w->ndim;
    memcpy(out->shape, w->shape, sizeof out->shape);
    if (turned) out->shape[0] = w->shape[1], out->shape[1] = w->shape[0];
    if (w->ndim) out->shape[wide] *= parts; /* w->count * 8 fits an int64_t, and so do 3 of its dimensions */
    if (how->how != QKV__SQUEEZED) return;
    out->shape[1] = out->shape[0], out->shape[0] = 1;
    out->ndim = 2;
}

static bool same_shape(const qkv__stored *a, const qkv__stored *b)
{
    return a->ndim == b->ndim && !memcmp(a->shape, b->shape, sizeof *a->shape * (size_t)a->ndim);
}

static qkv_status compare_weights(const qkv_params *p, const qkv__family *f, const qkv__weights *w, source *sources, bool *used)
{
    qkv__error_list wrong = { 0 }, types = { 0 };
    for (int i = 0; i < qkv_params_tensors(p); i++) {
        char name[QKV_NAME_MAX];
        qkv__stored expected = { 0 };
        sources[i] = find_source(f, w, qkv_params_name(p, i), name);
        const qkv__stored *t = sources[i].stored;
        stored_shape(qkv_params_tensor(p, i), &sources[i].how, &expected);
        if (!t) qkv__error_list_add(&wrong, "tensor \"%.200s\" is missing", name);
        else if (!same_shape(t, &expected))
            qkv__error_list_add(&wrong, "tensor \"%.200s\" is %s, expected %s", t->name, QKV_TEXT(t), QKV_TEXT(&expected));
        else if (!qkv__safetensors_decodes(t))
            qkv__error_list_add(&types, "tensor \"%.200s\" is %s, not a float type", t->name, t->dtype);
        if (t) used[t - w->tensors] = true;
    }
    for (int i = 0; i < w->n; i++)
        if (!used[i] && !(f && qkv__family_ignores(f, w->tensors[i].name)))
            qkv__error_list_add(&wrong, "tensor \"%.200s\" has no place", w->tensors[i].name);
    qkv_status status = qkv__error_list_end(&wrong, w->path, QKV_FORMAT);
    return status ? status : qkv__error_list_end(&types, w->path, QKV_UNSUPPORTED);
}

/* ---- values ---- */

/* A matrix stored as (in, all): our (out, in) is columns first .. first+out-1 of it. Read a few rows at a time, so that what is
 * written lies together. */
static void turn(const qkv__stored *t, int64_t first, const qkv_tensor *w, float *to)
{
    enum { ROWS = 16, COLUMNS = 256 };
    int64_t out = w->shape[0], in = w->shape[1], all = t->shape[1];
    float rows[ROWS][COLUMNS];
    for (int64_t c = 0; c < out; c += COLUMNS)
        for (int64_t r = 0; r < in; r += ROWS) {
            int64_t n = qkv__min(ROWS, in - r), width = qkv__min(COLUMNS, out - c);
            for (int64_t i = 0; i < n; i++) qkv__safetensors_decode_some(t, (r + i) * all + first + c, width, rows[i]);
            for (int64_t j = 0; j < width; j++)
                for (int64_t i = 0; i < n; i++) to[(c + j) * in + r + i] = rows[i][j];
        }
}

static bool is_turned(const source *s, const qkv_tensor *w) { return s->how.how == QKV__TURNED && w->ndim == 2; }

/* Where the values can stay; NULL when they cannot. */
static float *in_place(const source *s, const qkv_tensor *w)
{
    const float *values = is_turned(s, w) ? NULL : qkv__safetensors_floats(s->stored);
    return values ? (float *)values + s->how.part * w->count : NULL;
}

/* The type that a matrix can stay in, NULL: none; the rows of positions are added as they are, and pool.weight is a query. */
static const qkv__type *in_place_type(const source *s, const qkv_tensor *w, const char *name)
{
    if (w->ndim != 2 || is_turned(s, w) || s->how.part || strstr(name, "positions.") || !strcmp(name, "pool.weight"))
        return NULL;
    const qkv__type *type = qkv__type_named(s->stored->dtype);
    return type && !type->scales && (uintptr_t)s->stored->data % ((size_t)type->bits / 8) == 0 ? type : NULL;
}

static void decode_weight(const source *s, const qkv_tensor *w, float *to)
{
    if (is_turned(s, w)) turn(s->stored, s->how.part * w->shape[0], w, to);
    else qkv__safetensors_decode_some(s->stored, s->how.part * w->count, w->count, to);
}

typedef struct decoding {
    const qkv_params *p;
    const source *sources;
    const bool *decoded; /* those that are */
} decoding;

static void decode_task(void *work, int64_t task, void *scratch)
{
    (void)scratch;
    const decoding *d = work;
    const qkv_tensor *w = qkv_params_tensor(d->p, (int)task);
    if (d->decoded[task]) decode_weight(&d->sources[task], w, w->data);
}

/* Places every weight that can stay as it is, and counts the floats of the others. */
static int64_t place_still(qkv_params *p, const source *sources, bool *decoded)
{
    int64_t floats = 0;
    for (int i = 0; i < qkv_params_tensors(p); i++) {
        const qkv_tensor *w = qkv_params_tensor(p, i);
        float *values = in_place(&sources[i], w);
        const qkv__type *type = values ? NULL : in_place_type(&sources[i], w, qkv_params_name(p, i));
        decoded[i] = !values && !type;
        if (values) qkv__params_place(p, i, values);
        else if (type) qkv__params_place_typed(p, i, sources[i].stored->data, NULL, type);
        else floats += qkv__round_up(w->count, LINE);
    }
    return floats;
}

/* Those that must be decoded lie in memory of l's. */
static qkv_status place_weights(qkv_params *p, const source *sources, bool *decoded, loaded *l)
{
    int64_t floats = place_still(p, sources, decoded), at = 0;
    if (!floats) return QKV_OK;
    l->decoded_bytes = sizeof(float) * (size_t)floats;
    if (!(l->decoded = qkv__alloc(l->decoded_bytes))) return QKV_MEMORY;
    for (int i = 0; i < qkv_params_tensors(p); i++) {
        if (!decoded[i]) continue;
        qkv__params_place(p, i, l->decoded + at);
        at += qkv__round_up(qkv_params_tensor(p, i)->count, LINE);
    }
    return qkv__parallel(qkv_params_tensors(p), 0, decode_task, &(decoding){ p, sources, decoded });
}

qkv_status qkv__bind(qkv_params *p, const qkv__family *f, qkv__weights *w)
{
    int n = qkv_params_tensors(p);
    size_t bytes = sizeof(source) * (size_t)n, used_bytes = (size_t)(w->n > n ? w->n : n);
    source *sources = qkv__alloc_zero(bytes);
    bool *used = qkv__alloc_zero(used_bytes); /* tensors, and then weights that are decoded */
    loaded *l = qkv__alloc_zero(sizeof *l);
    qkv_status status = sources && used && l ? compare_weights(p, f, w, sources, used) : QKV_MEMORY;
    if (!status) status = place_weights(p, sources, used, l);
    if (!status) {
        l->weights = *w;
        *w = (qkv__weights){ 0 };
        qkv__params_retain(p, l, release_loaded);
    } else if (l) release_loaded(l);
    qkv__release(sources, bytes);
    qkv__release(used, used_bytes);
    return status;
}

qkv_status qkv__bind_check(const qkv_params *p)
{
    const loaded *l = qkv__params_held(p);
    for (int i = 0; l && i < l->weights.n_files; i++)
        if (!qkv__file_is_same(l->weights.paths[i], &l->weights.files[i].file.stamp))
            return qkv__fail(QKV_IO, "%s: the file has changed since the model was loaded: load it again", l->weights.paths[i]);
    return QKV_OK;
}

/* ---- saving ---- */

/* A tensor of the file. */
typedef struct entry {
    char name[QKV_NAME_MAX];
    qkv__stored shape; /* only ndim and shape */
    float *made;       /* memory for one that is put together; NULL: the weight itself */
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
static void put_weight_part(const qkv_tensor *w, const qkv__rename *how, const qkv__stored *shape, float *to)
{
    if (how->how != QKV__TURNED || w->ndim != 2) {
        qkv__widen(w, 0, w->count, to + how->part * w->count);
        return;
    }
    int64_t out = w->shape[0], in = w->shape[1], all = shape->shape[1], first = how->part * out;
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

static entry *list_new(listing *l, const char *name, const qkv_tensor *w, const qkv__rename *how, bool is_made)
{
    entry *e = &l->entries[l->n];
    int64_t count = w->count * (how->parts ? how->parts : 1);
    memcpy(e->name, name, sizeof e->name);
    stored_shape(w, how, &e->shape);
    e->made_bytes = is_made ? sizeof(float) * (size_t)count : 0;
    if (is_made && !(e->made = qkv__alloc(e->made_bytes))) return NULL;
    qkv__to_store *t = &l->tensors[l->n++];
    *t = qkv__weight_to_store(e->name, w);
    t->ndim = e->shape.ndim;
    t->shape = e->shape.shape;
    t->count = count;
    if (is_made) t->data = e->made;
    return e;
}

static qkv_status list_weight(listing *l, const qkv_params *p, int i, const qkv__family *f)
{
    char theirs[QKV_NAME_MAX];
    qkv__rename how = { 0 };
    const qkv_tensor *w = qkv_params_tensor(p, i);
    if (!qkv__family_place(f, qkv_params_name(p, i), 0, theirs, &how))
        return qkv__fail(QKV_UNSUPPORTED, "a %s model has no place for the weight \"%.200s\"", f->type, qkv_params_name(p, i));
    bool is_made = how.parts || (how.how == QKV__TURNED && w->ndim == 2);
    entry *e = how.parts ? find_listed(l, theirs) : NULL;
    if (!e) e = list_new(l, theirs, w, &how, is_made);
    if (!e) return QKV_MEMORY;
    if (is_made) put_weight_part(w, &how, &e->shape, e->made);
    return QKV_OK;
}

qkv_status qkv__bind_save(const qkv_params *p, const qkv__family *f, const char *path)
{
    listing l = { 0 };
    qkv_status status = make_listing(&l, qkv_params_tensors(p));
    for (int i = 0; i < qkv_params_tensors(p) && !status; i++) status = list_weight(&l, p, i, f);
    if (!status) status = qkv__safetensors_write(path, l.n, l.tensors, 1, &(qkv__note){ "format", "pt" });
    free_listing(&l);
    return status;
}
