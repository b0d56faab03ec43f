/* shortlist.c: which target tokens a sentence may have: a file, and the ids of a batch. */
#include "shortlist.h"

#include <qkv/unstable/shortlist.h>

#include "../base/hash.h"
#include "../base/memory.h"
#include "../base/size.h"
#include "../base/number.h"
#include "../io/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- memory ---- */

qkv_shortlist *qkv__shortlist_new(int64_t sources, int64_t targets, int64_t n_always, int64_t n_ids)
{
    qkv_shortlist *s = qkv__alloc_zero(sizeof *s);
    if (!s) return NULL;
    *s = (qkv_shortlist){ .sources = sources, .targets = targets, .n_always = n_always };
    s->always_bytes = sizeof *s->always * (size_t)n_always;
    s->begins_bytes = sizeof *s->begins * ((size_t)sources + 1);
    s->ids_bytes = sizeof *s->ids * (size_t)n_ids;
    s->always = qkv__alloc(s->always_bytes);
    s->begins = qkv__alloc_zero(s->begins_bytes);
    s->ids = qkv__alloc(s->ids_bytes);
    if (s->always && s->begins && s->ids) return s;
    qkv_shortlist_free(s);
    return NULL;
}

void qkv_shortlist_free(qkv_shortlist *s)
{
    if (!s) return;
    qkv__release(s->always, s->always_bytes);
    qkv__release(s->begins, s->begins_bytes);
    qkv__release(s->ids, s->ids_bytes);
    qkv__release(s, sizeof *s);
}

/* ---- whose it is ---- */

static uint64_t hash_spellings(uint64_t h, const qkv_tokenizer *t)
{
    for (int32_t id = 0; id < qkv_tokenizer_vocab_size(t); id++) {
        const char *spelling = qkv_tokenizer_token(t, id);
        h = qkv__hash_bytes(h, spelling, strlen(spelling));
        h = qkv__hash_add(h, 0x100); /* an end that no byte is */
    }
    return h;
}

uint64_t qkv__tokenizers_fingerprint(const qkv_model *m)
{
    const qkv_tokenizer *source = qkv_model_tokenizer(m, QKV_SIDE_SOURCE), *target = qkv_model_tokenizer(m, QKV_SIDE_TARGET);
    if (!source) return 0;
    uint64_t h = hash_spellings(QKV__HASH_START, source);
    if (target && target != source) h = hash_spellings(h, target);
    return h ? h : 1;
}

/* ---- the file: "always", "counts" (of the targets of each source) and "ids", all I32 ---- */

#define FORMAT_NAME "qkv-shortlist-1"

static qkv__to_store numbers_to_store(const char *name, const int64_t *n, const int32_t *ids)
{
    return (qkv__to_store){ .name = name, .dtype = "I32", .ndim = 1, .shape = n, .count = *n, .data = (const float *)ids };
}

qkv_status qkv_shortlist_save(const qkv_shortlist *s, const char *path)
{
    if (!s || !path) return qkv__fail(QKV_USAGE, "shortlist: a list and a path are needed");
    size_t bytes = sizeof(int32_t) * (size_t)s->sources;
    int32_t *counts = qkv__alloc(bytes);
    if (!counts) return QKV_MEMORY;
    for (int64_t i = 0; i < s->sources; i++) counts[i] = (int32_t)(s->begins[i + 1] - s->begins[i]);
    char vocabulary[32], tokenizers[32];
    snprintf(vocabulary, sizeof vocabulary, "%lld", (long long)s->targets);
    snprintf(tokenizers, sizeof tokenizers, "%016llx", (unsigned long long)s->tokenizers);
    const qkv__note notes[] = { { "format", FORMAT_NAME }, { "target_vocabulary", vocabulary }, { "tokenizers", tokenizers } };
    qkv__to_store tensors[] = { numbers_to_store("always", &s->n_always, s->always),
                                numbers_to_store("counts", &s->sources, counts),
                                numbers_to_store("ids", &s->begins[s->sources], s->ids) };
    qkv_status status = qkv__safetensors_write(path, 3, tensors, s->tokenizers ? 3 : 2, notes);
    qkv__release(counts, bytes);
    return status;
}

/* The vector of that name; NULL with FORMAT. */
static const qkv__stored *numbers_in(const qkv__safetensors *file, const char *name)
{
    const qkv__stored *t = qkv__safetensors_find(file, name);
    if (t && !strcmp(t->dtype, "I32") && t->ndim == 1) return t;
    qkv__fail(QKV_FORMAT, "%s: a shortlist has a vector \"%s\" of I32", file->path, name);
    return NULL;
}

static int32_t number_at(const qkv__stored *t, int64_t i) { return (int32_t)qkv__load(t->data + 4 * i, 4, false); }

/* Ascending ids of the targets, from `from` on. */
static qkv_status copy_ids(const qkv__safetensors *file, const qkv__stored *t, int64_t from, int64_t n, int64_t targets,
                           int32_t *to)
{
    for (int64_t i = 0, last = -1; i < n; last = to[i++]) {
        to[i] = number_at(t, from + i);
        if (to[i] <= last || to[i] >= targets)
            return qkv__fail(QKV_FORMAT, "%s: \"%s\": %d at place %lld: expected ids that ascend, below %lld", file->path,
                             t->name, to[i], (long long)(from + i), (long long)targets);
    }
    return QKV_OK;
}

static qkv_status copy_lists(const qkv__safetensors *file, const qkv__stored *counts, const qkv__stored *ids, qkv_shortlist *s)
{
    for (int64_t i = 0; i < s->sources; i++) {
        int64_t n = number_at(counts, i);
        if (n < 0 || n > ids->count - s->begins[i])
            return qkv__fail(QKV_FORMAT, "%s: \"counts\": %lld at place %lld: %lld ids are left", file->path, (long long)n,
                             (long long)i, (long long)(ids->count - s->begins[i]));
        qkv_status status = copy_ids(file, ids, s->begins[i], n, s->targets, s->ids + s->begins[i]);
        if (status) return status;
        s->begins[i + 1] = s->begins[i] + n;
    }
    if (s->begins[s->sources] == ids->count) return QKV_OK;
    return qkv__fail(QKV_FORMAT, "%s: %lld ids belong to no source", file->path,
                     (long long)(ids->count - s->begins[s->sources]));
}

static int64_t vocabulary_in(const qkv__safetensors *file)
{
    const char *format = qkv__safetensors_note(file, "format"), *text = qkv__safetensors_note(file, "target_vocabulary");
    char *end = NULL;
    long long n = text && *text >= '1' && *text <= '9' ? strtoll(text, &end, 10) : 0;
    return format && !strcmp(format, FORMAT_NAME) && end && !*end && n <= INT32_MAX ? n : 0;
}

/* Files of older releases have none. */
static qkv_status read_fingerprint(const qkv__safetensors *file, uint64_t *out)
{
    const char *text = qkv__safetensors_note(file, "tokenizers");
    *out = text && strspn(text, "0123456789abcdef") == 16 && !text[16] ? strtoull(text, NULL, 16) : 0;
    if (!text || *out) return QKV_OK;
    return qkv__fail(QKV_FORMAT, "%s: \"tokenizers\" is not a number of 16 hexadecimal digits", file->path);
}

static qkv_status read_shortlist(const qkv__safetensors *file, qkv_shortlist **out)
{
    int64_t targets = vocabulary_in(file);
    if (!targets) return qkv__fail(QKV_FORMAT, "%s: not a shortlist: \"qkv shortlist\" writes one", file->path);
    const qkv__stored *always = numbers_in(file, "always"), *counts = always ? numbers_in(file, "counts") : NULL,
                      *ids = counts ? numbers_in(file, "ids") : NULL;
    if (!ids) return QKV_FORMAT;
    if (counts->count > INT32_MAX) return qkv__fail(QKV_LIMIT, "%s: a vocabulary has at most 2147483647 ids", file->path);
    qkv_shortlist *s = *out = qkv__shortlist_new(counts->count, targets, always->count, ids->count);
    if (!s) return QKV_MEMORY;
    qkv_status status = read_fingerprint(file, &s->tokenizers);
    if (!status) status = copy_ids(file, always, 0, always->count, targets, s->always);
    return status ? status : copy_lists(file, counts, ids, s);
}

qkv_shortlist *qkv_shortlist_load(const char *path)
{
    qkv__safetensors file;
    qkv_shortlist *s = NULL;
    if (!path) qkv__fail(QKV_USAGE, "shortlist: there is no path");
    if (!path || qkv__safetensors_read(path, &file)) return NULL;
    qkv_status status = read_shortlist(&file, &s);
    qkv__safetensors_free(&file);
    if (!status) return s;
    qkv_shortlist_free(s);
    return NULL;
}

/* ---- the ids of a batch ---- */

static void set_bits(uint64_t *bits, const int32_t *ids, int64_t n)
{
    for (int64_t i = 0; i < n; i++) bits[ids[i] / 64] |= (uint64_t)1 << ids[i] % 64;
}

static int64_t count_bits(const uint64_t *bits, int64_t words)
{
    int64_t n = 0;
    for (int64_t i = 0; i < words; i++) n += __builtin_popcountll(bits[i]);
    return n;
}

static void list_bits(const uint64_t *bits, int64_t words, int32_t *to)
{
    for (int64_t i = 0; i < words; i++)
        for (uint64_t left = bits[i]; left; left &= left - 1) *to++ = (int32_t)(64 * i + __builtin_ctzll(left));
}

static void mark_sentence(const qkv_shortlist *s, const int32_t *source, int64_t n, uint64_t *bits)
{
    set_bits(bits, s->always, s->n_always);
    for (int64_t i = 0; i < n; i++) {
        if (source[i] < 0 || source[i] >= s->sources) continue; /* whoever reads it refuses it */
        set_bits(bits, s->ids + s->begins[source[i]], s->begins[source[i] + 1] - s->begins[source[i]]);
    }
}

int64_t qkv__shortlist_ids(const qkv_shortlist *s, const int32_t *source, int64_t n, int32_t *ids)
{
    if (!s || n < 0 || (n && !source)) return qkv__fail(QKV_USAGE, "shortlist: a list and a source are needed"), -1;
    int64_t words = qkv__ceil_div(s->targets, 64);
    size_t bytes = sizeof(uint64_t) * (size_t)words;
    uint64_t *bits = qkv__alloc_zero(bytes);
    if (!bits) return -1;
    mark_sentence(s, source, n, bits);
    int64_t count = count_bits(bits, words);
    if (ids) list_bits(bits, words, ids);
    qkv__release(bits, bytes);
    return count;
}

/* Ids of `own` become their places in all. Both ascend. */
static void ids_to_places(int32_t *own, int64_t n, const int32_t *all)
{
    int32_t at = 0;
    for (int64_t i = 0; i < n; i++) {
        while (all[at] != own[i]) at++;
        own[i] = at;
    }
}

qkv_status qkv__batch_targets_find(const qkv_shortlist *s, const int32_t *sources, int64_t sentences, int64_t length,
                                   const int32_t *lengths, const int32_t *more, int64_t n_more, qkv__batch_targets *out)
{
    int64_t words = qkv__ceil_div(s->targets, 64), used = 0;
    if (qkv__grow((void **)&out->bits, &out->bits_bytes, 2 * sizeof *out->bits * (size_t)words) ||
        qkv__grow((void **)&out->begins, &out->begins_bytes, sizeof *out->begins * ((size_t)sentences + 1)))
        return QKV_MEMORY;
    uint64_t *own = out->bits, *all = own + words;
    memset(all, 0, sizeof *all * (size_t)words);
    for (int64_t i = 0; i < sentences; i++) {
        memset(own, 0, sizeof *own * (size_t)words);
        mark_sentence(s, sources + i * length, lengths ? lengths[i] : length, own);
        set_bits(own, more, n_more);
        int64_t n = count_bits(own, words);
        if (qkv__grow((void **)&out->places, &out->places_bytes, sizeof *out->places * (size_t)(used + n))) return QKV_MEMORY;
        list_bits(own, words, out->places + used);
        for (int64_t k = 0; k < words; k++) all[k] |= own[k];
        out->begins[i] = used;
        used += n;
    }
    out->begins[sentences] = used;
    out->n_all = count_bits(all, words);
    if (qkv__grow((void **)&out->all, &out->all_bytes, sizeof *out->all * (size_t)out->n_all)) return QKV_MEMORY;
    list_bits(all, words, out->all);
    for (int64_t i = 0; i < sentences; i++)
        ids_to_places(out->places + out->begins[i], out->begins[i + 1] - out->begins[i], out->all);
    return QKV_OK;
}

void qkv__batch_targets_free(qkv__batch_targets *t)
{
    qkv__release(t->all, t->all_bytes);
    qkv__release(t->begins, t->begins_bytes);
    qkv__release(t->places, t->places_bytes);
    qkv__release(t->bits, t->bits_bytes);
    *t = (qkv__batch_targets){ 0 };
}
