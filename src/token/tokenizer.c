/* tokenizer.c: a vocabulary and its merges, ready to be looked up. */
#include "tokenizer.h"

#include <qkv/unstable/util.h>

#include "../base/size.h"
#include "alphabet.h"
#include "pipeline.h"

#include <stdlib.h>
#include <string.h>

/* ---- making one ---- */

qkv_tokenizer *qkv__tokenizer_new(qkv_token_kind kind, size_t n, size_t n_merges)
{
    qkv_tokenizer *t = qkv__alloc_zero(sizeof *t);
    if (!t) return NULL;
    *t = (qkv_tokenizer){ .kind = kind, .n = n, .n_merges = n_merges, .unknown = -1 };
    t->tokens = qkv__alloc_zero(n * sizeof *t->tokens);
    t->merges = qkv__alloc_zero(n_merges * sizeof *t->merges);
    if (t->tokens && t->merges) return t;
    qkv_tokenizer_free(t);
    return NULL;
}

void qkv_tokenizer_free(qkv_tokenizer *t)
{
    if (!t) return;
    qkv__release(t->tokens, t->n * sizeof *t->tokens);
    qkv__release(t->merges, t->n_merges * sizeof *t->merges);
    qkv__release(t->by_spelling, t->n * sizeof *t->by_spelling);
    qkv__release(t->table, t->places * sizeof *t->table);
    qkv__release(t->first, (t->n + 1) * sizeof *t->first);
    qkv__release(t->pairs, t->n_merges * sizeof *t->pairs);
    qkv__release(t->added, t->n_added * sizeof *t->added);
    qkv__pattern_free(t->pattern);
    qkv__pipeline_free(t->pipeline, t->n);
    qkv_buffer_free(&t->pool);
    qkv__release(t, sizeof *t);
}

/* Decodes a byte-level spelling. False if it has a character outside the byte alphabet: then the token means itself. */
static bool read_spelled_bytes(const char *spelling, size_t length, char *to, size_t *n)
{
    *n = 0;
    for (size_t at = 0, step = 1; at < length; at += step) {
        unsigned char c = (unsigned char)spelling[at];
        bool is_itself = c > ' ' && c < 0x7F;
        int byte = is_itself ? c : qkv__character_to_byte(qkv_utf8_next(spelling + at, length - at, &step));
        if (is_itself) step = 1;
        if (byte < 0) return false;
        to[(*n)++] = (char)byte;
    }
    return true;
}

qkv_status qkv__tokenizer_set(qkv_tokenizer *t, int32_t id, const char *spelling, bool is_added, bool is_special)
{
    return qkv__tokenizer_set_bytes(t, id, spelling, strlen(spelling), is_added, is_special);
}

qkv_status qkv__tokenizer_set_bytes(qkv_tokenizer *t, int32_t id, const char *spelling, size_t length, bool is_added,
                                    bool is_special)
{
    qkv__token token = {
        .spelling = t->pool.length, .spelling_length = length, .is_set = true, .is_added = is_added, .is_special = is_special
    };
    size_t bytes = 0, wanted;
    if (!qkv__size_mul(length, 2, &wanted) || !qkv__size_add(wanted, t->pool.length + 2, &wanted))
        return qkv__fail(QKV_MEMORY, "out of memory: a token of %zu bytes", length);
    if (qkv__grow((void **)&t->pool.data, &t->pool.capacity, wanted)) return QKV_MEMORY;
    char *to = t->pool.data + t->pool.length; /* the spelling, a NUL, and its bytes where they differ */
    if (length) memcpy(to, spelling, length);
    to[length] = '\0';
    bool is_spelled = !is_added && t->kind == QKV_TOKEN_BPE && read_spelled_bytes(spelling, length, to + length + 1, &bytes);
    token.bytes = is_spelled ? token.spelling + length + 1 : token.spelling;
    token.bytes_length = is_spelled ? bytes : length;
    t->pool.length += length + 1 + (is_spelled ? bytes : 0);
    t->pool.data[t->pool.length] = '\0';
    t->tokens[id] = token;
    return QKV_OK;
}

/* ---- looking things up ---- */

const char *qkv__tokenizer_spelling(const qkv_tokenizer *t, int32_t id)
{
    return t->tokens[id].is_set ? t->pool.data + t->tokens[id].spelling : "";
}

/* How a spelling compares to a token's: byte by byte, a start of another before it. */
static int compare_spelling(const qkv_tokenizer *t, const char *spelling, size_t length, int32_t id)
{
    size_t n = t->tokens[id].spelling_length;
    int order = memcmp(spelling, qkv__tokenizer_spelling(t, id), length < n ? length : n);
    return order ? order : (length > n) - (length < n);
}

static int by_spelling(const void *a, const void *b, void *tokenizer)
{
    const qkv_tokenizer *t = tokenizer;
    int32_t first = *(const int32_t *)a;
    return compare_spelling(t, qkv__tokenizer_spelling(t, first), t->tokens[first].spelling_length, *(const int32_t *)b);
}

static unsigned char first_byte(const qkv_tokenizer *t, int32_t id) { return (unsigned char)*qkv__tokenizer_spelling(t, id); }

/* The first 8 bytes; zeros after the end. */
static uint64_t load_start(const char *spelling, size_t length)
{
    uint64_t start = 0;
    memcpy(&start, spelling, length < 8 ? length : 8);
    return start;
}

/* Multiplies 8 bytes at a time; the high bits, which depend on all of them, are folded into the low ones. */
static uint64_t hash_of(const char *spelling, size_t length)
{
    uint64_t h = length;
    for (size_t at = 0; at < length; at += 8) {
        h = (h ^ load_start(spelling + at, length - at)) * 0x9E3779B97F4A7C15u;
        h ^= h >> 32;
    }
    return h;
}

/* A token without a free place is found by bisection, so that no file can make lookups slow. */
enum { PROBES = 8 };
static qkv_status fill_table(qkv_tokenizer *t)
{
    size_t places = 16;
    while (places < 2 * t->n) places *= 2;
    if (!(t->table = qkv__alloc(places * sizeof *t->table))) return QKV_MEMORY;
    t->places = places;
    memset(t->table, -1, places * sizeof *t->table);
    for (size_t id = 0; id < t->n; id++) {
        if (!t->tokens[id].is_set) continue;
        const char *spelling = qkv__tokenizer_spelling(t, (int32_t)id);
        size_t length = t->tokens[id].spelling_length;
        uint64_t h = hash_of(spelling, length);
        for (size_t i = 0; i < PROBES; i++) {
            qkv__slot *place = &t->table[(h + i) & (places - 1)];
            if (place->id >= 0) continue;
            *place = (qkv__slot){ load_start(spelling, length), (uint32_t)length, (int32_t)id };
            break;
        }
    }
    return QKV_OK;
}

/* ---- in order ---- */

/* A token and the first 8 bytes of its spelling, as a number that is in their order. */
typedef struct start_and_id {
    uint64_t start;
    int32_t id;
} start_and_id;

static uint64_t start_of(const qkv_tokenizer *t, int32_t id)
{
    unsigned char bytes[8] = { 0 };
    uint64_t start = 0;
    size_t n = t->tokens[id].spelling_length;
    memcpy(bytes, qkv__tokenizer_spelling(t, id), n < 8 ? n : 8);
    for (int i = 0; i < 8; i++) start = start << 8 | bytes[i];
    return start;
}

/* By the last of the bytes first, each time without changing the order of equal ones; both have n, and *from ends up sorted. */
static void sort_by_start(start_and_id **from, start_and_id **to, size_t n)
{
    for (int shift = 0; shift < 64; shift += 8) {
        size_t places[256] = { 0 }, sum = 0;
        for (size_t i = 0; i < n; i++) places[(*from)[i].start >> shift & 0xFF]++;
        for (int k = 0; k < 256; k++) {
            size_t count = places[k];
            places[k] = sum;
            sum += count;
        }
        for (size_t i = 0; i < n; i++) (*to)[places[(*from)[i].start >> shift & 0xFF]++] = (*from)[i];
        start_and_id *sorted = *to;
        *to = *from;
        *from = sorted;
    }
}

qkv_status qkv__tokenizer_sort(qkv_tokenizer *t, int32_t *twice)
{
    size_t n = 0, bytes = 2 * t->n * sizeof(start_and_id);
    *twice = -1;
    start_and_id *both = qkv__alloc(bytes);
    if (!both || !(t->by_spelling = qkv__alloc(t->n * sizeof *t->by_spelling))) {
        qkv__release(both, bytes);
        return QKV_MEMORY;
    }
    start_and_id *sorted = both, *other = both + t->n;
    for (size_t i = 0; i < t->n; i++)
        if (t->tokens[i].is_set) sorted[n++] = (start_and_id){ start_of(t, (int32_t)i), (int32_t)i };
    sort_by_start(&sorted, &other, n);
    t->n_spelled = n;
    for (size_t i = 0; i < n; i++) t->by_spelling[i] = sorted[i].id;
    for (size_t begin = 0, end; begin < n; begin = end) { /* those that begin alike: by all of their bytes */
        for (end = begin + 1; end < n && sorted[end].start == sorted[begin].start;) end++;
        if (end > begin + 1) qsort_r(t->by_spelling + begin, end - begin, sizeof *t->by_spelling, by_spelling, t);
        for (size_t i = begin + 1; i < end; i++)
            if (!by_spelling(&t->by_spelling[i - 1], &t->by_spelling[i], t))
                *twice = t->by_spelling[i] > t->by_spelling[i - 1] ? t->by_spelling[i] : t->by_spelling[i - 1];
    }
    qkv__release(both, bytes);
    for (size_t i = 0; i < n; i++) t->by_first[first_byte(t, t->by_spelling[i]) + 1]++;
    for (size_t i = 0; i < 256; i++) t->by_first[i + 1] += t->by_first[i];
    return fill_table(t);
}

static int32_t bisect(const qkv_tokenizer *t, const char *spelling, size_t length)
{
    size_t low = 0, high = t->n_spelled;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int32_t id = t->by_spelling[middle];
        int order = compare_spelling(t, spelling, length, id);
        if (!order) return id;
        if (order < 0) high = middle;
        else low = middle + 1;
    }
    return -1;
}

int32_t qkv__tokenizer_find(const qkv_tokenizer *t, const char *spelling, size_t length)
{
    uint64_t h = hash_of(spelling, length), start = load_start(spelling, length);
    for (size_t i = 0; i < PROBES; i++) {
        const qkv__slot *place = &t->table[(h + i) & (t->places - 1)];
        if (place->id < 0) return -1;
        if (place->start != start || place->length != (uint32_t)length) continue;
        if (length <= 8 || !compare_spelling(t, spelling, length, place->id)) return place->id;
    }
    return bisect(t, spelling, length);
}

/* ---- the starts of a text ---- */

qkv__walk qkv__walk_begin(const qkv_tokenizer *t) { return (qkv__walk){ 0, t->n_spelled, 0 }; }

/* The byte of a spelling after the first `depth`; -1, below every byte, where it is over. */
static int byte_after(const qkv_tokenizer *t, int32_t id, size_t depth)
{
    return t->tokens[id].spelling_length > depth ? (unsigned char)qkv__tokenizer_spelling(t, id)[depth] : -1;
}

/* The first token of low .. high-1 whose next byte is not below `byte`. */
static size_t first_from(const qkv_tokenizer *t, const qkv__walk *w, size_t low, int byte)
{
    size_t high = w->high;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (byte_after(t, t->by_spelling[middle], w->depth) < byte) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* The index by first bytes has empty spellings among those that start with a NUL. */
bool qkv__walk_step(const qkv_tokenizer *t, qkv__walk *w, unsigned char byte)
{
    if (w->depth || !byte) {
        w->low = first_from(t, w, w->low, byte);
        w->high = first_from(t, w, w->low, byte + 1);
    } else {
        w->low = t->by_first[byte];
        w->high = t->by_first[byte + 1];
    }
    w->depth++;
    return w->low < w->high;
}

int32_t qkv__walk_token(const qkv_tokenizer *t, const qkv__walk *w)
{
    int32_t id = t->by_spelling[w->low];
    return t->tokens[id].spelling_length == w->depth ? id : -1;
}

int32_t qkv_tokenizer_id(const qkv_tokenizer *t, const char *spelling)
{
    return t && spelling ? qkv__tokenizer_find(t, spelling, strlen(spelling)) : -1;
}

uint32_t qkv__tokenizer_rank(const qkv_tokenizer *t, int32_t left, int32_t right)
{
    size_t low = t->first[left], high = t->first[left + 1];
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const qkv__pair *p = &t->pairs[middle];
        if (p->right == right) return p->rank;
        if (right < p->right) high = middle;
        else low = middle + 1;
    }
    return QKV__NO_RANK;
}

qkv_token_kind qkv_tokenizer_kind(const qkv_tokenizer *t) { return t ? t->kind : QKV_TOKEN_BPE; }

int32_t qkv_tokenizer_vocab_size(const qkv_tokenizer *t) { return t ? (int32_t)t->n : 0; }

static bool has(const qkv_tokenizer *t, int32_t id) { return t && id >= 0 && (size_t)id < t->n; }

const char *qkv_tokenizer_token(const qkv_tokenizer *t, int32_t id)
{
    return has(t, id) ? qkv__tokenizer_spelling(t, id) : NULL;
}

int qkv_tokenizer_is_special(const qkv_tokenizer *t, int32_t id) { return has(t, id) && t->tokens[id].is_special; }

/* ---- what encoding needs ---- */

static int by_right(const void *a, const void *b)
{
    const qkv__pair *x = a, *y = b;
    return (x->right > y->right) - (x->right < y->right);
}

static qkv_status check_twice(const qkv_tokenizer *t, const char *name, const qkv__pair *p, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (p[i - 1].right == p[i].right) {
            const qkv__merge *m = &t->merges[p[i].rank];
            return qkv__fail(QKV_FORMAT, "%s: model.merges has \"%.100s\" and \"%.100s\" twice", name,
                             qkv__tokenizer_spelling(t, m->left), qkv__tokenizer_spelling(t, m->right));
        }
    return QKV_OK;
}

qkv_status qkv__tokenizer_index_merges(qkv_tokenizer *t, const char *name)
{
    t->first = qkv__alloc_zero((t->n + 1) * sizeof *t->first);
    t->pairs = qkv__alloc(t->n_merges * sizeof *t->pairs);
    if (!t->first || !t->pairs) return QKV_MEMORY;
    for (size_t i = 0; i < t->n_merges; i++) t->first[t->merges[i].left + 1]++;
    for (size_t i = 0; i < t->n; i++) t->first[i + 1] += t->first[i];
    /* Filling moves each start to the next one's place; from the back, so that it ends at its own. */
    for (size_t i = t->n_merges; i-- > 0;)
        t->pairs[--t->first[t->merges[i].left + 1]] = (qkv__pair){ t->merges[i].right, (uint32_t)i };
    memmove(t->first, t->first + 1, t->n * sizeof *t->first);
    t->first[t->n] = t->n_merges;
    qkv_status status = QKV_OK;
    for (size_t i = 0; i < t->n && !status; i++) {
        size_t n = t->first[i + 1] - t->first[i];
        if (n > 1) qsort(t->pairs + t->first[i], n, sizeof *t->pairs, by_right);
        status = check_twice(t, name, t->pairs + t->first[i], n);
    }
    return status;
}

static qkv_status find_byte_tokens(qkv_tokenizer *t, const char *name)
{
    for (int byte = 0; byte < 256; byte++) {
        char spelling[QKV__SPELLED_MAX + 1];
        spelling[qkv__spell_byte(byte, spelling)] = '\0';
        t->byte_ids[byte] = qkv_tokenizer_id(t, spelling);
        if (t->byte_ids[byte] < 0)
            return qkv__fail(QKV_UNSUPPORTED, "%s: model.vocab has no token \"%s\" for byte 0x%02X", name, spelling, byte);
        if (t->tokens[t->byte_ids[byte]].is_special)
            return qkv__fail(QKV_UNSUPPORTED, "%s: the special token \"%s\" also stands for byte 0x%02X", name, spelling, byte);
    }
    return QKV_OK;
}

/* Text must never turn into a special token unless the caller asks for it. */
static qkv_status check_made(const qkv_tokenizer *t, const char *name)
{
    for (size_t i = 0; i < t->n_merges; i++)
        if (t->tokens[t->merges[i].made].is_special)
            return qkv__fail(QKV_UNSUPPORTED, "%s: model.merges[%zu] makes the special token \"%.200s\"", name, i,
                             qkv__tokenizer_spelling(t, t->merges[i].made));
    return QKV_OK;
}

static int by_byte_and_length(const void *a, const void *b, void *tokenizer)
{
    const qkv_tokenizer *t = tokenizer;
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    if (first_byte(t, x) != first_byte(t, y)) return first_byte(t, x) < first_byte(t, y) ? -1 : 1;
    size_t m = t->tokens[x].spelling_length, n = t->tokens[y].spelling_length;
    return (m < n) - (m > n);
}

static qkv_status list_added(qkv_tokenizer *t)
{
    size_t n = 0;
    for (size_t i = 0; i < t->n; i++) n += t->tokens[i].is_added;
    if (!(t->added = qkv__alloc(n * sizeof *t->added))) return QKV_MEMORY;
    t->n_added = n;
    n = 0;
    for (size_t i = 0; i < t->n; i++)
        if (t->tokens[i].is_added) t->added[n++] = (int32_t)i;
    qsort_r(t->added, n, sizeof *t->added, by_byte_and_length, t);
    for (size_t i = 0; i < n; i++) t->added_first[first_byte(t, t->added[i]) + 1]++;
    for (size_t i = 0; i < 256; i++) t->added_first[i + 1] += t->added_first[i];
    return QKV_OK;
}

static qkv_status finish_byte_pairs(qkv_tokenizer *t, const char *name)
{
    qkv_status status = find_byte_tokens(t, name);
    if (!status) status = check_made(t, name);
    if (!status) status = qkv__tokenizer_index_merges(t, name);
    if (!status && !(t->pattern = qkv__pattern_new())) status = qkv_error_status();
    return status;
}

qkv_status qkv__tokenizer_finish(qkv_tokenizer *t, const char *name)
{
    qkv_status status = t->kind == QKV_TOKEN_BPE ? finish_byte_pairs(t, name) : QKV_OK;
    return status ? status : list_added(t);
}
