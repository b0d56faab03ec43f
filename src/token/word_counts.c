/* word_counts.c: the words of a corpus, each once, with how often it occurs. */
#include "word_counts.h"

#include <qkv/unstable/util.h>

#include "units.h"

#include "../base/hash.h"

#include <string.h>

/* ---- the bag ---- */

static uint64_t hash_of(const char *word, size_t length) /* mixed so that its low bits depend on all of it */
{
    uint64_t h = qkv__hash_bytes(QKV__HASH_START, word, length);
    return h ^ h >> 32;
}

static size_t *place_of_word(const qkv__bag *b, uint64_t hash, const char *word, size_t length)
{
    for (size_t i = (size_t)hash;; i++) {
        size_t *place = &b->table[i & (b->places - 1)];
        if (!*place) return place;
        const qkv__word_count *w = &b->words[*place - 1];
        if (w->hash == hash && w->length == length && !memcmp(b->text.data + w->start, word, length)) return place;
    }
}

static qkv_status grow_table(qkv__bag *b)
{
    qkv__bag larger = *b;
    larger.places = b->places ? 2 * b->places : 1024;
    if (!(larger.table = qkv__alloc_zero(larger.places * sizeof *larger.table))) return QKV_MEMORY;
    for (size_t i = 0; i < b->n; i++) {
        const qkv__word_count *w = &b->words[i];
        *place_of_word(&larger, w->hash, b->text.data + w->start, w->length) = i + 1;
    }
    qkv__release(b->table, b->places * sizeof *b->table);
    *b = larger;
    return QKV_OK;
}

qkv_status qkv__bag_number(qkv__bag *b, const char *word, size_t length, size_t *number)
{
    if (b->n >= b->places / 2 && grow_table(b)) return QKV_MEMORY;
    uint64_t hash = hash_of(word, length);
    size_t *place = place_of_word(b, hash, word, length), start = b->text.length;
    if (!*place) {
        if (qkv__grow((void **)&b->words, &b->words_bytes, (b->n + 1) * sizeof *b->words) ||
            qkv__buffer_put(&b->text, word, length))
            return QKV_MEMORY;
        b->words[b->n] = (qkv__word_count){ .start = start, .length = length, .hash = hash };
        *place = ++b->n;
    }
    *number = *place - 1;
    return QKV_OK;
}

void qkv__bag_free(qkv__bag *b)
{
    qkv_buffer_free(&b->text);
    qkv__release(b->words, b->words_bytes);
    qkv__release(b->table, b->places * sizeof *b->table);
    *b = (qkv__bag){ 0 };
}

/* ---- words ---- */

qkv_word_counts *qkv_word_counts_new(qkv_token_kind kind)
{
    if ((unsigned)kind >= QKV_TOKEN_PUBLISHED) return qkv__fail(QKV_USAGE, "words: %d is no kind of token", (int)kind), NULL;
    qkv_word_counts *w = qkv__alloc_zero(sizeof *w);
    if (w) w->kind = kind;
    if (w && (kind != QKV_TOKEN_BPE || (w->pattern = qkv__pattern_new()))) return w;
    qkv_word_counts_free(w);
    return NULL;
}

void qkv_word_counts_free(qkv_word_counts *w)
{
    if (!w) return;
    qkv__bag_free(&w->bag);
    qkv__cutter_free(&w->cutter);
    qkv__pattern_free(w->pattern);
    qkv_buffer_free(&w->spelling);
    qkv__release(w, sizeof *w);
}

int64_t qkv__word_counts_size(const qkv_word_counts *w) { return w ? (int64_t)w->bag.n : 0; }

static qkv_status count_word(qkv_word_counts *w, const char *word, size_t length)
{
    size_t number;
    qkv_status status = qkv__bag_number(&w->bag, word, length, &number);
    if (!status) w->bag.words[number].count++;
    return status;
}

static qkv_status add_pieces(qkv_word_counts *w, const char *line, size_t length)
{
    qkv__cut_begin(&w->cutter, line, length);
    for (size_t begin, end;;) {
        qkv_status status = qkv__cut_next(&w->cutter, w->pattern, &begin, &end);
        if (!status && begin == end) return QKV_OK;
        if (!status) status = count_word(w, line + begin, end - begin);
        if (status) return status;
    }
}

static qkv_status add_units(qkv_word_counts *w, const char *line, size_t length)
{
    qkv_status status = QKV_OK;
    for (size_t begin, end = 0; !status && qkv__next_unit(w->kind, line, length, &begin, &end);) {
        status = qkv__spell_unit(w->kind, line + begin, end - begin, &w->spelling);
        if (!status) status = count_word(w, w->spelling.data, w->spelling.length);
    }
    return status;
}

qkv_status qkv_word_counts_add(qkv_word_counts *w, qkv_str line)
{
    if (!w || (!line.data && line.length)) return qkv__fail(QKV_USAGE, "words: words or line is NULL");
    size_t good = qkv_utf8_valid(line.data, line.length);
    if (good < line.length) return qkv__fail(QKV_FORMAT, "words: the line is not UTF-8 at offset %zu", good);
    return w->kind == QKV_TOKEN_BPE ? add_pieces(w, line.data, line.length) : add_units(w, line.data, line.length);
}
