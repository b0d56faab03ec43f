/* train.c: learns a tokenizer: its options, its special tokens, and the way for each kind. */
#include "train.h"

#include <qkv/unstable/util.h>

#include "../base/options.h"

#include <string.h>

enum { DEFAULT_SIZE = 8000, DEFAULT_MIN_COUNT = 2 };

/* ---- the vocabulary ---- */

qkv_status qkv__add_special(qkv__bag *tokens, const char *special)
{
    size_t number, n = tokens->n;
    if (!special || !*special) return qkv__fail(QKV_USAGE, "tokenizer: a special token is empty");
    size_t length = strlen(special);
    if (qkv_utf8_valid(special, length) < length) return qkv__fail(QKV_USAGE, "tokenizer: a special token is not UTF-8");
    if (qkv__bag_number(tokens, special, length, &number)) return QKV_MEMORY;
    return number == n ? QKV_OK : qkv__fail(QKV_USAGE, "tokenizer: the special token \"%.200s\" is given twice", special);
}

static qkv_status set_tokens(qkv_tokenizer *t, const qkv__bag *tokens, size_t n_specials)
{
    qkv_buffer spelling = { 0 };
    qkv_status status = QKV_OK;
    for (size_t i = 0; i < tokens->n && !status; i++) {
        bool special = i < n_specials;
        qkv__buffer_clear(&spelling);
        status = qkv__buffer_put(&spelling, tokens->text.data + tokens->words[i].start, tokens->words[i].length);
        if (!status) status = qkv__tokenizer_set(t, (int32_t)i, spelling.data, special, special);
    }
    qkv_buffer_free(&spelling);
    return status;
}

qkv_tokenizer *qkv__make_tokenizer(qkv_token_kind kind, const qkv__bag *tokens, size_t n_specials, const qkv__merge *merges,
                                   size_t n_merges)
{
    int32_t twice;
    qkv_tokenizer *t = qkv__tokenizer_new(kind, tokens->n, n_merges);
    if (!t) return NULL;
    if (n_merges) memcpy(t->merges, merges, n_merges * sizeof *merges);
    qkv_status status = set_tokens(t, tokens, n_specials);
    if (!status) status = qkv__tokenizer_sort(t, &twice);
    if (!status && kind != QKV_TOKEN_BPE) t->unknown = qkv_tokenizer_id(t, QKV_SPECIAL_UNKNOWN);
    if (!status && !qkv__tokenizer_finish(t, "tokenizer")) return t;
    qkv_tokenizer_free(t);
    return NULL;
}

/* ---- training ---- */

static void add_defaults(qkv_tokenizer_opts *o)
{
    static const char *const specials[] = { QKV_SPECIALS };
    if (!o->vocab_size) o->vocab_size = DEFAULT_SIZE;
    if (!o->min_count) o->min_count = DEFAULT_MIN_COUNT;
    if (o->n_specials < 0) o->n_specials = 0;
    else if (!o->n_specials) o->specials = specials, o->n_specials = 4;
}

qkv_tokenizer *qkv_tokenizer_train(const qkv_word_counts *w, const qkv_tokenizer_opts *opts)
{
    qkv_tokenizer_opts o;
    if (QKV__READ_OPTIONS(&o, n_specials, opts, "tokenizer")) return NULL;
    add_defaults(&o);
    if (!w || (o.n_specials && !o.specials) || o.n_specials > INT32_MAX - 256 || o.min_count < 1)
        return qkv__fail(QKV_USAGE, "tokenizer: words or special tokens are NULL, or min_count is negative"), NULL;
    return w->kind == QKV_TOKEN_BPE ? qkv__train_byte_pairs(&w->bag, &o) : qkv__train_units(w->kind, &w->bag, &o);
}
