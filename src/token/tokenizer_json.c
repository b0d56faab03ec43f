/* tokenizer_json.c: Hugging Face's tokenizer.json: its model, its tokens and its added tokens. What would give other ids than
 * ours is refused by name. */
#include "tokenizer_json.h"
#include "units.h"

#include "alphabet.h"
#include "steps_json.h"

#include <stdio.h>
#include <string.h>

/* ---- what keys hold ---- */

static bool is_version(const qkv__json_value *v) { return qkv__json_is_null(v) || qkv__is_text(v, "1.0"); }

/* How much of a text is taken, and what fills up a batch, is not the tokenizer's business here. */
static const qkv__rule top_rules[] = {
    { "version", is_version, "\"1.0\"" },         { "truncation", qkv__is_anything, NULL },
    { "padding", qkv__is_anything, NULL },        { "added_tokens", qkv__is_anything, NULL },
    { "normalizer", qkv__is_anything, NULL },     { "pre_tokenizer", qkv__is_anything, NULL },
    { "post_processor", qkv__is_anything, NULL }, { "decoder", qkv__is_anything, NULL },
    { "model", qkv__is_anything, NULL },          { 0 },
};

static const qkv__rule added_rules[] = {
    { "id", qkv__is_anything, NULL },
    { "content", qkv__is_anything, NULL },
    { "single_word", qkv__is_bool, "true or false" },
    { "lstrip", qkv__is_bool, "true or false" },
    { "rstrip", qkv__is_bool, "true or false" },
    { "normalized", qkv__is_bool, "true or false" },
    { "special", qkv__is_bool, "true or false" },
    { 0 },
};

static const struct model_type {
    const char *name;
    qkv__model_kind kind;
    qkv__rule rules[12];
} model_types[] = {
    { "BPE",
      QKV__BPE,
      { { "type", qkv__is_anything, NULL },
        { "dropout", qkv__is_nothing, "null" },
        { "unk_token", qkv__is_string_or_null, "null or a token" },
        { "continuing_subword_prefix", qkv__is_string_or_null, "null or a text" },
        { "end_of_word_suffix", qkv__is_string_or_null, "null or a text" },
        { "fuse_unk", qkv__is_bool, "true or false" },
        { "byte_fallback", qkv__is_bool, "true or false" },
        { "ignore_merges", qkv__is_bool, "true or false" },
        { "vocab", qkv__is_anything, NULL },
        { "merges", qkv__is_anything, NULL } } },
    { "WordPiece",
      QKV__WORDPIECE,
      { { "type", qkv__is_anything, NULL },
        { "unk_token", qkv__is_anything, NULL },
        { "continuing_subword_prefix", qkv__is_string, "a text" },
        { "max_input_chars_per_word", qkv__is_count, "a number" },
        { "vocab", qkv__is_anything, NULL } } },
    { "Unigram",
      QKV__UNIGRAM,
      { { "type", qkv__is_anything, NULL },
        { "unk_id", qkv__is_anything, NULL },
        { "byte_fallback", qkv__is_bool, "true or false" },
        { "vocab", qkv__is_anything, NULL } } },
    { "WordLevel",
      QKV__WORD_LEVEL,
      { { "type", qkv__is_anything, NULL }, { "unk_token", qkv__is_anything, NULL }, { "vocab", qkv__is_anything, NULL } } },
};
enum { MODEL_TYPES = sizeof model_types / sizeof *model_types };

/* Older files do not name the type: it is the first, in this order, whose keys are all there, as Hugging Face reads it. */
static const char *untyped_name(const qkv__json_value *model)
{
    const qkv__json_value *vocab = qkv__json_get(model, "vocab");
    if (qkv__json_get(model, "merges")) return "BPE";
    if (qkv__json_get_text(model, "unk_token") && qkv__json_get_text(model, "continuing_subword_prefix") &&
        qkv__json_get(model, "max_input_chars_per_word"))
        return "WordPiece";
    if (qkv__json_get_text(model, "unk_token")) return "WordLevel";
    return qkv__json_is_array(vocab) ? "Unigram" : NULL;
}

/* NULL with the error set. */
static const struct model_type *type_of(const char *path, const qkv__json_value *model)
{
    const qkv__json_value *type = qkv__json_get(model, "type");
    const char *name = type ? qkv__json_text(type) : untyped_name(model);
    if (!type && !name) return qkv__malformed(path, "model", "it has no type, and the keys of none"), NULL;
    for (int i = 0; i < MODEL_TYPES; i++)
        if (name && !strcmp(name, model_types[i].name)) return &model_types[i];
    qkv__fail(QKV_UNSUPPORTED, "%s: model.type: only \"BPE\", \"WordPiece\", \"Unigram\" or \"WordLevel\" is supported", path);
    return NULL;
}

/* ---- the kinds that qkv trains: they are read into their own form, which is faster ---- */

static bool is_byte_level_or_null(const qkv__json_value *v) { return qkv__is_null(v) || qkv__has_type(v, "ByteLevel"); }
static bool is_fuse_or_null(const qkv__json_value *v) { return qkv__is_null(v) || qkv__has_type(v, "Fuse"); }
static bool is_byte_level(const qkv__json_value *v) { return qkv__has_type(v, "ByteLevel"); }
static bool is_lowercase(const qkv__json_value *v) { return qkv__has_type(v, "Lowercase"); }
static bool is_whitespace_split(const qkv__json_value *v) { return qkv__has_type(v, "WhitespaceSplit"); }
static bool is_bert_split(const qkv__json_value *v) { return qkv__has_type(v, "BertPreTokenizer"); }
static bool is_character_split(const qkv__json_value *v)
{
    const qkv__json_value *pattern = qkv__json_get(v, "pattern");
    return qkv__has_type(v, "Split") && qkv__is_text(qkv__json_get(pattern, "Regex"), QKV__ANY_CHARACTER) &&
           qkv__is_text(qkv__json_get(v, "behavior"), "Isolated") && !qkv__flag(v, "invert", false);
}

static const struct {
    qkv__model_kind model;
    bool (*fits[4])(const qkv__json_value *part);
} trained[] = {
    [QKV_TOKEN_BPE] = { QKV__BPE, { qkv__is_null, is_byte_level, is_byte_level_or_null, is_byte_level_or_null } },
    [QKV_TOKEN_WORDS] = { QKV__WORD_LEVEL, { is_lowercase, is_whitespace_split, qkv__is_null, qkv__is_null } },
    [QKV_TOKEN_CHARACTERS] = { QKV__WORD_LEVEL, { qkv__is_null, is_character_split, qkv__is_null, is_fuse_or_null } },
    [QKV_TOKEN_WORDPUNCT] = { QKV__WORD_LEVEL, { is_lowercase, is_bert_split, qkv__is_null, qkv__is_null } },
};

/* ---- the file ---- */

typedef struct json_file {
    const char *path;
    qkv__json_source source; /* the text */
    qkv__json_doc doc;
    const qkv__json_value *top, *model, *added, *vocab, *merges; /* the last two are tables */
    qkv__model_kind kind;
    qkv__added
        names; /* what added tokens are called, and the unknown one: ids are those of the vocabulary, -1: it is not there */
    int64_t highest_id; /* in the vocabulary */
    bool has_nul;       /* a token has */
} json_file;

/* The tokens of the vocabulary, one by one. */
typedef struct vocab_reader {
    qkv__json_pull p; /* at the id, or the score */
    const char *spelling;
    size_t length, n; /* n: tokens so far */
    double score;     /* Unigram */
    qkv_status status;
} vocab_reader;

static void begin_vocab(const json_file *f, vocab_reader *r)
{
    *r = (vocab_reader){ 0 };
    qkv__json_pull_table(&r->p, &f->source, f->vocab);
}

static qkv_status end_vocab(vocab_reader *r)
{
    qkv_status status = qkv__json_pull_end(&r->p);
    return r->status ? r->status : status;
}

/* Reads a score as Hugging Face does: the digits as an integer, divided by a power of ten, which rounds twice. Equal segmentations,
 * such as those of a row of dashes, differ in that last bit. */
static double read_score(const qkv__json_pull *p)
{
    double power = 1;
    if (p->is_cut || p->exponent > 0 || p->exponent < -22) return qkv__json_real(p);
    for (int64_t i = p->exponent; i < 0; i++) power *= 10; /* exact */
    double score = (double)p->digits / power;
    return p->is_negative ? -score : score;
}

/* ["token", score] */
static bool read_piece(const json_file *f, vocab_reader *r, qkv__json_type type)
{
    qkv__json_pull *p = &r->p;
    qkv__json_enter(p);
    bool ok = type == QKV__JSON_ARRAY && qkv__json_next(p) == QKV__JSON_STRING;
    r->spelling = p->text;
    r->length = p->length;
    type = ok ? qkv__json_next(p) : QKV__JSON_NONE;
    ok = type == QKV__JSON_INT || type == QKV__JSON_REAL;
    if (ok) r->score = read_score(p);
    ok = ok && !qkv__json_next(p);
    if (ok || p->status) return ok;
    r->status = qkv__fail(QKV_FORMAT, "%s: model.vocab[%zu]: [\"token\", score] is expected", f->path, r->n);
    return false;
}

static bool next_token(const json_file *f, vocab_reader *r)
{
    qkv__json_type type = qkv__json_next(&r->p);
    if (!type) return false;
    r->spelling = r->p.key;
    r->length = r->p.key_length;
    if (f->kind == QKV__UNIGRAM && !read_piece(f, r, type)) return false;
    r->n++;
    return true;
}

/* Only for texts in f->names. */
static bool is_in_vocab(const json_file *f, const char *text)
{
    int32_t at = text && f->names.n ? qkv_tokenizer_id(f->names.spellings, text) : -1;
    return at >= 0 && f->names.ids[at] >= 0;
}

static qkv_status begin_names(json_file *f)
{
    const char *unknown = qkv__json_get_text(f->model, "unk_token");
    size_t n = 0;
    for (size_t i = 0; i < qkv__json_size(f->added); i++) n += qkv__json_get_text(qkv__json_at(f->added, i), "content") != NULL;
    if (!n && !unknown) return QKV_OK;
    qkv_status status = qkv__added_begin(&f->names, n + (unknown != NULL));
    n = 0;
    for (size_t i = 0; i < qkv__json_size(f->added) && !status; i++) {
        const char *content = qkv__json_get_text(qkv__json_at(f->added, i), "content");
        if (content) status = qkv__added_set(&f->names, n++, content, -1);
    }
    if (!status && unknown) status = qkv__added_set(&f->names, n, unknown, -1);
    return status ? status : qkv__added_end(&f->names);
}

/* Finds the names in the vocabulary and its highest id. Gaps between ids are limited, so that a small file cannot ask for much
 * memory. */
static qkv_status measure_vocab(json_file *f)
{
    vocab_reader r;
    int64_t most = 8 * (int64_t)(qkv__json_size(f->vocab) + qkv__json_size(f->added)) + 65536;
    qkv_status status = begin_names(f);
    if (status) return status;
    begin_vocab(f, &r);
    while (next_token(f, &r)) {
        int32_t name = f->names.n ? qkv__tokenizer_find(f->names.spellings, r.spelling, r.length) : -1;
        if (name >= 0) f->names.ids[name] = 0;
        f->has_nul = f->has_nul || memchr(r.spelling, '\0', r.length);
        if (f->kind != QKV__UNIGRAM && r.p.type == QKV__JSON_INT && r.p.whole > f->highest_id && r.p.whole < most)
            f->highest_id = r.p.whole;
    }
    return end_vocab(&r);
}

/* Whether every added token is found in the text just as it is. With words, it must be one that a word may be too. */
static bool added_are_plain(const json_file *f, bool words)
{
    for (size_t i = 0; i < qkv__json_size(f->added); i++) {
        const qkv__json_value *a = qkv__json_at(f->added, i);
        if (qkv__flag(a, "single_word", false) || qkv__flag(a, "lstrip", false) || qkv__flag(a, "rstrip", false)) return false;
        if (words && (qkv__flag(a, "normalized", false) || !is_in_vocab(f, qkv__json_get_text(a, "content")))) return false;
    }
    return true;
}

static bool has_text(const qkv__json_value *object, const char *key)
{
    const char *text = qkv__json_get_text(object, key);
    return text && *text;
}

static qkv_token_kind kind_of(const json_file *f)
{
    static const char *const parts[] = { "normalizer", "pre_tokenizer", "post_processor", "decoder" };
    bool has_affix = has_text(f->model, "continuing_subword_prefix") || has_text(f->model, "end_of_word_suffix");
    bool plain = !qkv__flag(f->model, "ignore_merges", false) && !(f->kind == QKV__BPE && has_affix);
    for (int kind = QKV_TOKEN_BPE; kind < QKV_TOKEN_PUBLISHED && plain; kind++) {
        bool fits = trained[kind].model == f->kind;
        for (int i = 0; i < 4 && fits; i++) fits = trained[kind].fits[i](qkv__json_get(f->top, parts[i]));
        if (fits && added_are_plain(f, qkv__has_lower_words((qkv_token_kind)kind))) return (qkv_token_kind)kind;
    }
    return QKV_TOKEN_PUBLISHED;
}

/* ---- reading ---- */

/* One of 0 .. n-1; -1, with the error set, for others. */
static int32_t get_id(const char *path, const char *key, const char *token, bool is_whole, int64_t number, size_t n)
{
    if (is_whole && number >= 0 && (uint64_t)number < n) return (int32_t)number;
    if (!is_whole) qkv__fail(QKV_FORMAT, "%s: %s: the id of \"%.200s\" is no whole number", path, key, token);
    else
        qkv__fail(QKV_FORMAT, "%s: %s: \"%.200s\" has the id %lld, but there are %zu tokens", path, key, token,
                  (long long)number, n);
    return -1;
}

/* A token as a C string, for error messages. */
#define SHOWN(text, length) ((text_of((char[201]){ 0 }, text, length)))
static const char *text_of(char to[201], const char *text, size_t length)
{
    return memcpy(to, text, length < 200 ? length : 200);
}

static qkv_status read_vocab(const json_file *f, qkv_tokenizer *t)
{
    vocab_reader r;
    begin_vocab(f, &r);
    while (!r.status && next_token(f, &r)) {
        const qkv__json_pull *p = &r.p;
        int32_t id = (int32_t)(r.n - 1);
        if (f->kind != QKV__UNIGRAM) {
            bool is_whole = p->type == QKV__JSON_INT;
            bool is_id = is_whole && p->whole >= 0 && (uint64_t)p->whole < t->n;
            id = is_id ? (int32_t)p->whole
                       : get_id(f->path, "model.vocab", SHOWN(r.spelling, r.length), is_whole, p->whole, t->n);
        }
        if (id < 0) r.status = QKV_FORMAT;
        else if (t->tokens[id].is_set)
            r.status = qkv__fail(QKV_FORMAT, "%s: model.vocab: \"%.200s\" and \"%.200s\" both have the id %d", f->path,
                                 qkv__tokenizer_spelling(t, id), SHOWN(r.spelling, r.length), id);
        else r.status = qkv__tokenizer_set_bytes(t, id, r.spelling, r.length, false, false);
    }
    return end_vocab(&r);
}

static qkv_status read_added_token(const json_file *f, qkv_tokenizer *t, const qkv__json_value *entry, size_t i)
{
    char key[48];
    snprintf(key, sizeof key, "added_tokens[%zu].", i);
    qkv_status status = qkv__check_keys(f->path, key, entry, added_rules);
    if (status) return status;
    key[strlen(key) - 1] = '\0';
    const char *content = qkv__json_get_text(entry, "content");
    const qkv__json_value *number = qkv__json_get(entry, "id");
    if (!content || !*content) return qkv__malformed(f->path, key, "its content is no text, or empty");
    int32_t id = get_id(f->path, key, content, qkv__json_is_int(number), qkv__json_int(number), t->n);
    if (id < 0) return QKV_FORMAT;
    bool same = t->tokens[id].is_set && !t->tokens[id].is_added && !strcmp(content, qkv__tokenizer_spelling(t, id));
    if ((is_in_vocab(f, content) || t->tokens[id].is_set) && !same)
        return qkv__fail(QKV_FORMAT, "%s: %s: \"%.200s\" has the id %d, which does not agree with the other tokens", f->path,
                         key, content, id);
    bool special = qkv__flag(entry, "special", false);
    status = qkv__tokenizer_set(t, id, content, true, special);
    t->tokens[id].single_word = qkv__flag(entry, "single_word", false);
    t->tokens[id].takes_left = qkv__flag(entry, "lstrip", false);
    t->tokens[id].takes_right = qkv__flag(entry, "rstrip", false);
    t->tokens[id].is_normalized = qkv__flag(entry, "normalized", !special);
    return status;
}

qkv_status qkv__refuse_repeated(const char *path, const char *spelling)
{
    return qkv__fail(QKV_FORMAT, "%s: not JSON: duplicate key \"%.200s\"", path, spelling);
}

/* Also sorts all tokens. Duplicates in the vocabulary are reported before errors of added tokens. */
static qkv_status read_added(const json_file *f, qkv_tokenizer *t)
{
    qkv_status status = QKV_OK;
    for (size_t i = 0; i < qkv__json_size(f->added) && !status; i++)
        status = read_added_token(f, t, qkv__json_at(f->added, i), i);
    int32_t twice = -1;
    qkv_status sorted = status == QKV_MEMORY ? status : qkv__tokenizer_sort(t, &twice);
    if (sorted || twice < 0) return sorted ? sorted : status;
    const char *spelling = qkv__tokenizer_spelling(t, twice);
    if (t->tokens[twice].is_added)
        return qkv__fail(QKV_FORMAT, "%s: added_tokens: \"%.200s\" is there twice", f->path, spelling);
    if (f->kind != QKV__UNIGRAM) return qkv__refuse_repeated(f->path, spelling);
    return qkv__fail(QKV_FORMAT, "%s: model.vocab[%d]: \"%.200s\" is there twice", f->path, (int)twice, spelling);
}

/* "left right" or ["left", "right"]; both end up in text, the right one from *cut on. */
static qkv_status split_merge(const json_file *f, qkv__json_pull *p, size_t i, qkv_buffer *text, size_t *cut)
{
    qkv_status status = QKV_OK;
    bool ok = false;
    qkv__buffer_clear(text);
    if (p->type == QKV__JSON_STRING) {
        const char *space = memchr(p->text, ' ', p->length), *end = p->text + p->length;
        ok = space && !memchr(space + 1, ' ', (size_t)(end - space) - 1);
        if (ok) status = qkv__buffer_put(text, p->text, *cut = (size_t)(space - p->text));
        if (ok && !status) status = qkv__buffer_put(text, space + 1, (size_t)(end - space) - 1);
    } else if (p->type == QKV__JSON_ARRAY) {
        qkv__json_enter(p);
        ok = qkv__json_next(p) == QKV__JSON_STRING;
        if (ok) status = qkv__buffer_put(text, p->text, *cut = p->length);
        ok = ok && qkv__json_next(p) == QKV__JSON_STRING;
        if (ok && !status) status = qkv__buffer_put(text, p->text, p->length);
        ok = ok && !qkv__json_next(p);
    }
    if (ok || p->status) return p->status ? p->status : status;
    return qkv__fail(QKV_FORMAT, "%s: model.merges[%zu]: \"left right\" or [\"left\", \"right\"] is expected", f->path, i);
}

/* Most files number tokens in the order of their merges: the id after the last one is tried first, without a lookup. */
static int32_t find_made(const qkv_tokenizer *t, size_t i, const char *spelling, size_t length)
{
    int32_t guess = i ? t->merges[i - 1].made + 1 : 0;
    bool fits = (size_t)guess < t->n && t->tokens[guess].is_set && t->tokens[guess].spelling_length == length &&
                !memcmp(qkv__tokenizer_spelling(t, guess), spelling, length);
    return fits ? guess : qkv__tokenizer_find(t, spelling, length);
}

/* What both make is spelled by both, without the sign that the right one continues a word. */
static qkv_status read_merge(const json_file *f, qkv_tokenizer *t, qkv__json_pull *p, size_t i, qkv_buffer *text)
{
    qkv__merge *m = &t->merges[i];
    size_t cut = 0, sign = t->pipeline && t->pipeline->prefix ? strlen(t->pipeline->prefix) : 0;
    qkv_status status = split_merge(f, p, i, text, &cut);
    if (status) return status;
    size_t begin = 0, end = cut, right = text->length - cut;
    m->left = qkv__tokenizer_find(t, text->data, cut);
    m->right = m->left < 0 ? -1 : qkv__tokenizer_find(t, text->data + cut, right);
    if (m->left >= 0) begin = cut, end = text->length;
    if (m->right >= 0 && right >= sign) {
        memmove(text->data + cut, text->data + cut + sign, right - sign);
        begin = 0, end = text->length - sign;
        m->made = find_made(t, i, text->data, end);
        if (m->made >= 0) return QKV_OK;
    }
    return qkv__fail(QKV_FORMAT, "%s: model.merges[%zu]: \"%.*s\" is not in model.vocab", f->path, i,
                     (int)(end - begin < 200 ? end - begin : 200), text->data + begin);
}

static qkv_status read_merges(const json_file *f, qkv_tokenizer *t)
{
    qkv__json_pull p;
    qkv_buffer text = { 0 };
    qkv_status status = QKV_OK;
    qkv__json_pull_table(&p, &f->source, f->merges);
    for (size_t i = 0; i < t->n_merges && !status && qkv__json_next(&p); i++) status = read_merge(f, t, &p, i, &text);
    qkv_buffer_free(&text);
    qkv_status pulled = qkv__json_pull_end(&p);
    return status ? status : pulled;
}

/* BPE may do without; the others need it. */
static qkv_status read_unknown(const json_file *f, qkv_tokenizer *t)
{
    const char *token = qkv__json_get_text(f->model, "unk_token");
    if (f->kind == QKV__UNIGRAM) {
        const qkv__json_value *id = qkv__json_get(f->model, "unk_id");
        if (qkv__is_null(id)) return QKV_OK;
        t->unknown = get_id(f->path, "model.unk_id", "unknown", qkv__json_is_int(id), qkv__json_int(id),
                            qkv__json_size(f->vocab));
        return t->unknown >= 0 ? QKV_OK : QKV_FORMAT;
    }
    if (!token && f->kind == QKV__BPE) return QKV_OK;
    if (!token) return qkv__malformed(f->path, "model.unk_token", "a token is expected");
    t->unknown = f->kind == QKV__BPE || is_in_vocab(f, token) ? qkv_tokenizer_id(t, token) : -1;
    return t->unknown >= 0 ? QKV_OK : qkv__malformed(f->path, "model.unk_token", "it is not in model.vocab");
}

/* Whether an added token is none of the vocabulary. */
static bool is_new(const json_file *f, const qkv__json_value *entry)
{
    return !is_in_vocab(f, qkv__json_get_text(entry, "content"));
}

static size_t count_vocabulary(const json_file *f)
{
    size_t n = qkv__json_size(f->vocab);
    for (size_t i = 0; i < qkv__json_size(f->added); i++) n += is_new(f, qkv__json_at(f->added, i));
    return n;
}

/* One more than the highest id. */
static size_t count_ids(const json_file *f)
{
    size_t n = count_vocabulary(f), most = 8 * n + 65536, ids = n;
    if (f->highest_id >= (int64_t)ids && (uint64_t)f->highest_id < most) ids = (size_t)f->highest_id + 1;
    for (size_t i = 0; i < qkv__json_size(f->added); i++) {
        int64_t id = qkv__json_int(qkv__json_get(qkv__json_at(f->added, i), "id"));
        if (id >= (int64_t)ids && (uint64_t)id < most) ids = (size_t)id + 1;
    }
    return ids;
}

/* Hugging Face's reader numbers new tokens by itself, whatever the file says: where ids have gaps, the two can differ. */
static qkv_status check_new_ids(const json_file *f)
{
    size_t next = qkv__json_size(f->vocab);
    for (size_t i = 0; i < qkv__json_size(f->added); i++) {
        const qkv__json_value *entry = qkv__json_at(f->added, i), *id = qkv__json_get(entry, "id");
        if (!is_new(f, entry) || !qkv__json_is_int(id)) continue;
        if (qkv__json_int(id) != (int64_t)next)
            return qkv__fail(QKV_UNSUPPORTED,
                             "%s: added_tokens[%zu]: the id %lld is not the next one, %zu, which others would read it with",
                             f->path, i, (long long)qkv__json_int(id), next);
        next++;
    }
    return QKV_OK;
}

/* ---- what only published tokenizers have ---- */

static void find_fallback_bytes(qkv_tokenizer *t)
{
    for (int byte = 0; byte < 256; byte++) {
        char spelling[QKV__BYTE_LENGTH + 1];
        qkv__spell_byte_token(byte, spelling);
        t->pipeline->byte_ids[byte] = qkv_tokenizer_id(t, spelling);
    }
}

/* Added tokens that are not in the vocabulary have no score, and are never looked for there. */
static qkv_status read_scores(const json_file *f, qkv_tokenizer *t)
{
    qkv__pipeline *p = t->pipeline;
    double lowest = 0;
    vocab_reader r;
    if (!(p->scores = qkv__alloc_zero(t->n * sizeof *p->scores))) return QKV_MEMORY;
    begin_vocab(f, &r);
    while (next_token(f, &r)) {
        p->scores[r.n - 1] = r.score;
        if (r.n == 1 || r.score < lowest) lowest = r.score;
    }
    for (size_t i = r.n; i < t->n; i++) p->scores[i] = -1e300;
    p->unknown_score = lowest - 10;
    return end_vocab(&r);
}

/* NULL where it is not there or empty. UNSUPPORTED, MEMORY. */
static qkv_status copy_affix(const char *path, const qkv__json_value *model, const char *key, char **copy)
{
    if (!has_text(model, key)) return QKV_OK;
    if (strlen(qkv__json_get_text(model, key)) > QKV__AFFIX_MAX)
        return qkv__fail(QKV_UNSUPPORTED, "%s: model.%s: more than %d bytes are not supported", path, key, QKV__AFFIX_MAX);
    return (*copy = qkv__copy_text(qkv__json_get_text(model, key))) ? QKV_OK : QKV_MEMORY;
}

/* Before the merges, which leave the prefix out. */
static qkv_status read_affixes(const char *path, qkv__pipeline *p, const qkv__json_value *model)
{
    qkv_status status = copy_affix(path, model, "continuing_subword_prefix", &p->prefix);
    if (!status) status = copy_affix(path, model, "end_of_word_suffix", &p->suffix);
    if (status || !(p->prefix || p->suffix) || !qkv__flag(model, "byte_fallback", false)) return status;
    return qkv__fail(QKV_UNSUPPORTED, "%s: model.byte_fallback: with a prefix or a suffix only false is supported", path);
}

static qkv_status read_wordpiece(qkv__pipeline *p, const qkv__json_value *model)
{
    const qkv__json_value *prefix = qkv__json_get(model, "continuing_subword_prefix");
    const qkv__json_value *longest = qkv__json_get(model, "max_input_chars_per_word");
    p->longest_word = longest ? (size_t)qkv__json_int(longest) : 100;
    return (p->prefix = qkv__copy_text(prefix ? qkv__json_text(prefix) : "##")) ? QKV_OK : QKV_MEMORY;
}

static qkv_status read_published(const json_file *f, qkv_tokenizer *t)
{
    qkv__pipeline *p = t->pipeline;
    p->byte_fallback = qkv__flag(f->model, "byte_fallback", false);
    p->ignore_merges = qkv__flag(f->model, "ignore_merges", false);
    p->fuse_unknown = p->model == QKV__UNIGRAM || qkv__flag(f->model, "fuse_unk", false);
    find_fallback_bytes(t);
    qkv_status status = qkv__read_templates(f->path, f->top, t->n, p);
    if (!status && p->model == QKV__BPE) status = qkv__tokenizer_index_merges(t, f->path);
    if (!status && p->model == QKV__WORDPIECE) status = read_wordpiece(p, f->model);
    if (!status && p->model == QKV__UNIGRAM) status = read_scores(f, t);
    return status ? status : qkv__pipeline_finish(t);
}

/* ---- all of it ---- */

static qkv_status check_file(json_file *f)
{
    const struct model_type *type;
    f->top = f->doc.top;
    if (!qkv__json_is_object(f->top)) return qkv__fail(QKV_FORMAT, "%s: not a tokenizer.json: it holds no object", f->path);
    qkv_status status = qkv__check_all_keys(f->path, f->top, top_rules);
    if (status) return status;
    f->model = qkv__json_get(f->top, "model");
    if (!qkv__json_is_object(f->model)) return qkv__malformed(f->path, "model", "an object is expected");
    if (!(type = type_of(f->path, f->model))) return qkv_error_status();
    status = qkv__check_keys(f->path, "model.", f->model, type->rules);
    if (status) return status;
    f->kind = type->kind;
    f->vocab = qkv__json_get(f->model, "vocab");
    f->merges = qkv__json_get(f->model, "merges");
    if (!qkv__json_is_array(f->merges)) f->merges = NULL;
    f->added = qkv__json_get(f->top, "added_tokens");
    if (f->kind == QKV__UNIGRAM && !qkv__json_is_array(f->vocab))
        return qkv__malformed(f->path, "model.vocab", "an array is expected");
    if (f->kind != QKV__UNIGRAM && !qkv__json_is_object(f->vocab))
        return qkv__malformed(f->path, "model.vocab", "an object is expected");
    if (f->kind == QKV__BPE && !f->merges) return qkv__malformed(f->path, "model.merges", "an array is expected");
    if (!qkv__is_null(f->added) && !qkv__json_is_array(f->added))
        return qkv__malformed(f->path, "added_tokens", "an array is expected");
    /* Steps and added tokens are C strings. */
    return f->doc.has_nul ? qkv__fail(QKV_UNSUPPORTED, "%s: a NUL is supported in model.vocab and model.merges alone", f->path)
                          : QKV_OK;
}

static qkv_status read_parts(const json_file *f, qkv_tokenizer *t)
{
    const qkv__json_value *cutting = qkv__json_get(f->top, "pre_tokenizer");
    t->prefix_space = qkv__flag(cutting, "add_prefix_space", true);
    t->whole_text = !qkv__flag(cutting, "use_regex", true);
    qkv_status status = t->pipeline && f->kind == QKV__BPE ? read_affixes(f->path, t->pipeline, f->model) : QKV_OK;
    if (!status) status = read_vocab(f, t);
    if (!status) status = read_added(f, t);
    if (!status) status = read_merges(f, t);
    if (!status) status = read_unknown(f, t);
    if (status) return status;
    return t->pipeline ? read_published(f, t) : qkv__tokenizer_finish(t, f->path);
}

/* The steps are read for every kind, so that their keys are checked; those that are trained do without them. */
static qkv_status make_from_json(const json_file *f, qkv_tokenizer **made)
{
    size_t n = count_ids(f);
    bool has_gaps = n > count_vocabulary(f);
    qkv_token_kind kind = has_gaps || f->has_nul ? QKV_TOKEN_PUBLISHED : kind_of(f);
    qkv_tokenizer *t = qkv__tokenizer_new(kind, n, qkv__json_size(f->merges));
    if (!(*made = t) || !(t->pipeline = qkv__alloc_zero(sizeof *t->pipeline))) return QKV_MEMORY;
    t->pipeline->model = f->kind;
    qkv_status status = has_gaps ? check_new_ids(f) : QKV_OK;
    if (!status) status = qkv__read_steps(f->path, f->top, t->pipeline);
    if (!status && kind != QKV_TOKEN_PUBLISHED) {
        status = qkv__read_templates(f->path, f->top, t->n, t->pipeline);
        qkv__pipeline_free(t->pipeline, t->n);
        t->pipeline = NULL;
    }
    return status ? status : read_parts(f, t);
}

qkv_tokenizer *qkv__tokenizer_from_json(const char *path, const char *text, size_t length)
{
    static const char *const tables[] = { "vocab", "merges", NULL };
    qkv_tokenizer *t = NULL;
    json_file f = { .path = path,
                    .source = { .name = path, .text = text, .length = length, .flags = QKV__JSON_NUL, .tables = tables } };
    qkv_status status = qkv__json_parse(&f.source, &f.doc);
    if (!status) status = check_file(&f);
    if (!status) status = measure_vocab(&f);
    if (!status) status = make_from_json(&f, &t);
    qkv__added_free(&f.names);
    qkv__json_free(&f.doc);
    if (!status) return t;
    qkv_tokenizer_free(t);
    return NULL;
}
