/* train_units.c: learns a vocabulary of whole words or characters: those that occur most often. */
#include "train.h"

#include <stdlib.h>
#include <string.h>

/* Largest count first, then smaller bytes: no two words have both the same, so the order they came in does not matter. */
static int by_count(const void *a, const void *b, void *bag)
{
    const qkv__bag *words = bag;
    const qkv__word_count *x = &words->words[*(const size_t *)a], *y = &words->words[*(const size_t *)b];
    if (x->count != y->count) return x->count > y->count ? -1 : 1;
    int order = memcmp(words->text.data + x->start, words->text.data + y->start, x->length < y->length ? x->length : y->length);
    return order ? order : (x->length > y->length) - (x->length < y->length);
}

/* Adds the words that occur min_count times or more, up to size tokens. One that is spelled like a special token has a number
 * already; one with a NUL cannot be spelled. */
static qkv_status add_frequent_words(qkv__bag *tokens, const qkv__bag *words, size_t *order, const qkv_tokenizer_opts *o)
{
    size_t n = 0, number;
    for (size_t i = 0; i < words->n; i++) {
        const qkv__word_count *w = &words->words[i];
        if (w->count >= o->min_count && !memchr(words->text.data + w->start, '\0', w->length)) order[n++] = i;
    }
    qsort_r(order, n, sizeof *order, by_count, (void *)words);
    for (size_t i = 0; i < n && tokens->n < (size_t)o->vocab_size; i++) {
        const qkv__word_count *w = &words->words[order[i]];
        if (qkv__bag_number(tokens, words->text.data + w->start, w->length, &number)) return QKV_MEMORY;
    }
    return QKV_OK;
}

static qkv_status add_specials(qkv__bag *tokens, const qkv_tokenizer_opts *o)
{
    bool has_unknown = false;
    if (o->vocab_size < o->n_specials)
        return qkv__fail(QKV_USAGE, "tokenizer: a vocabulary of %d has no room for %d special tokens", o->vocab_size,
                         o->n_specials);
    for (int i = 0; i < o->n_specials; i++) {
        qkv_status status = qkv__add_special(tokens, o->specials[i]);
        if (status) return status;
        has_unknown |= !strcmp(o->specials[i], QKV_SPECIAL_UNKNOWN);
    }
    if (has_unknown) return QKV_OK;
    return qkv__fail(QKV_USAGE, "tokenizer: words and characters need the special token " QKV_SPECIAL_UNKNOWN);
}

qkv_tokenizer *qkv__train_units(qkv_token_kind kind, const qkv__bag *words, const qkv_tokenizer_opts *o)
{
    qkv__bag tokens = { 0 };
    size_t *order = qkv__alloc(words->n * sizeof *order);
    bool done = order && !add_specials(&tokens, o) && !add_frequent_words(&tokens, words, order, o);
    qkv_tokenizer *t = done ? qkv__make_tokenizer(kind, &tokens, (size_t)o->n_specials, NULL, 0) : NULL;
    qkv__release(order, words->n * sizeof *order);
    qkv__bag_free(&tokens);
    return t;
}
