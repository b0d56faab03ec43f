/* tokenizer_json.c: Hugging Face's tokenizer.json: its model, its tokens and its added tokens. What would give other ids than
 * ours is refused by name. */
#include "tokenizer_json.h"
#include "units.h"

#include "alphabet.h"
#include "steps_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what keys hold ---- */

static bool is_version(const json_t *v) { return json_is_null(v) || qkv__is_text(v, "1.0"); }

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

static const char *text_at(const json_t *object, const char *key) { return json_string_value(json_object_get(object, key)); }

/* Older files do not name the type: it is the first, in this order, whose keys are all there, as Hugging Face reads it. */
static const char *untyped_name(const json_t *model)
{
    const json_t *vocab = json_object_get(model, "vocab");
    if (json_object_get(model, "merges")) return "BPE";
    if (text_at(model, "unk_token") && text_at(model, "continuing_subword_prefix") &&
        json_object_get(model, "max_input_chars_per_word"))
        return "WordPiece";
    if (text_at(model, "unk_token")) return "WordLevel";
    return json_is_array(vocab) ? "Unigram" : NULL;
}

/* NULL with the error set. */
static const struct model_type *type_of(const char *path, const json_t *model)
{
    const json_t *type = json_object_get(model, "type");
    const char *name = type ? json_string_value(type) : untyped_name(model);
    if (!type && !name) return qkv__malformed(path, "model", "it has no type, and the keys of none"), NULL;
    for (int i = 0; i < MODEL_TYPES; i++)
        if (name && !strcmp(name, model_types[i].name)) return &model_types[i];
    qkv__fail(QKV_UNSUPPORTED, "%s: model.type: only \"BPE\", \"WordPiece\", \"Unigram\" or \"WordLevel\" is supported", path);
    return NULL;
}

/* ---- the kinds that qkv trains: they are read into their own form, which is faster ---- */

static bool is_byte_level_or_null(const json_t *v) { return qkv__is_null(v) || qkv__has_type(v, "ByteLevel"); }
static bool is_fuse_or_null(const json_t *v) { return qkv__is_null(v) || qkv__has_type(v, "Fuse"); }
static bool is_byte_level(const json_t *v) { return qkv__has_type(v, "ByteLevel"); }
static bool is_lowercase(const json_t *v) { return qkv__has_type(v, "Lowercase"); }
static bool is_whitespace_split(const json_t *v) { return qkv__has_type(v, "WhitespaceSplit"); }
static bool is_bert_split(const json_t *v) { return qkv__has_type(v, "BertPreTokenizer"); }
static bool is_character_split(const json_t *v)
{
    const json_t *pattern = json_object_get(v, "pattern");
    return qkv__has_type(v, "Split") && qkv__is_text(json_object_get(pattern, "Regex"), QKV__ANY_CHARACTER) &&
           qkv__is_text(json_object_get(v, "behavior"), "Isolated") && !qkv__flag(v, "invert", false);
}

static const struct {
    qkv__model_kind model;
    bool (*fits[4])(const json_t *part);
} trained[] = {
    [QKV_TOKEN_BYTE_PAIRS] = { QKV__BPE, { qkv__is_null, is_byte_level, is_byte_level_or_null, is_byte_level_or_null } },
    [QKV_TOKEN_WORDS] = { QKV__WORD_LEVEL, { is_lowercase, is_whitespace_split, qkv__is_null, qkv__is_null } },
    [QKV_TOKEN_CHARACTERS] = { QKV__WORD_LEVEL, { qkv__is_null, is_character_split, qkv__is_null, is_fuse_or_null } },
    [QKV_TOKEN_WORDPUNCT] = { QKV__WORD_LEVEL, { is_lowercase, is_bert_split, qkv__is_null, qkv__is_null } },
};

/* Whether every added token is found in the text just as it is. With words, it must be one that a word may be too. */
static bool added_are_plain(const json_t *added, const json_t *vocab, bool words)
{
    for (size_t i = 0; i < json_array_size(added); i++) {
        const json_t *a = json_array_get(added, i);
        const char *content = json_string_value(json_object_get(a, "content"));
        if (qkv__flag(a, "single_word", false) || qkv__flag(a, "lstrip", false) || qkv__flag(a, "rstrip", false)) return false;
        if (words && (qkv__flag(a, "normalized", false) || !content || !json_object_get(vocab, content))) return false;
    }
    return true;
}

static bool has_text(const json_t *object, const char *key) { return text_at(object, key) && *text_at(object, key); }

static qkv_token_kind kind_of(const json_t *top, qkv__model_kind model, const json_t *vocab)
{
    static const char *const parts[] = { "normalizer", "pre_tokenizer", "post_processor", "decoder" };
    const json_t *o = json_object_get(top, "model");
    bool plain = !qkv__flag(o, "ignore_merges", false) &&
                 (model != QKV__BPE || (!has_text(o, "continuing_subword_prefix") && !has_text(o, "end_of_word_suffix")));
    for (int kind = QKV_TOKEN_BYTE_PAIRS; kind < QKV_TOKEN_PUBLISHED && plain; kind++) {
        bool fits = trained[kind].model == model;
        for (int i = 0; i < 4 && fits; i++) fits = trained[kind].fits[i](json_object_get(top, parts[i]));
        if (fits && added_are_plain(json_object_get(top, "added_tokens"), vocab, qkv__has_lower_words((qkv_token_kind)kind)))
            return (qkv_token_kind)kind;
    }
    return QKV_TOKEN_PUBLISHED;
}

/* ---- reading ---- */

/* One of 0 .. n-1; -1, with the error set, for others. */
static int32_t get_id(const char *path, const char *key, const char *token, const json_t *value, size_t n)
{
    json_int_t number = json_integer_value(value);
    if (json_is_integer(value) && number >= 0 && (uint64_t)number < n) return (int32_t)number;
    if (!json_is_integer(value)) qkv__fail(QKV_FORMAT, "%s: %s: the id of \"%.200s\" is no whole number", path, key, token);
    else
        qkv__fail(QKV_FORMAT, "%s: %s: \"%.200s\" has the id %lld, but there are %zu tokens", path, key, token,
                  (long long)number, n);
    return -1;
}

/* Adds a spelling of the file to text, with the NULs that QKV__NUL_SIGN stands in for. */
static qkv_status put_spelling(const qkv_tokenizer *t, const char *spelling, size_t length, qkv_text *text)
{
    const size_t sign = strlen(QKV__NUL_SIGN);
    qkv_status status = QKV_OK;
    bool has_nul = t->pipeline && t->pipeline->has_nul;
    if (!has_nul) return qkv__text_put(text, spelling, length);
    for (size_t at = 0; at < length && !status;) {
        bool is_nul = length - at >= sign && !memcmp(spelling + at, QKV__NUL_SIGN, sign);
        status = qkv__text_put(text, is_nul ? "" : spelling + at, 1);
        at += is_nul ? sign : 1;
    }
    return status;
}

static qkv_status read_vocab_token(const char *path, qkv_tokenizer *t, const char *token, const json_t *value, qkv_text *text)
{
    int32_t id = get_id(path, "model.vocab", token, value, t->n);
    if (id < 0) return QKV_FORMAT;
    if (t->tokens[id].is_set)
        return qkv__fail(QKV_FORMAT, "%s: model.vocab: \"%.200s\" and \"%.200s\" both have the id %d", path,
                         qkv__tokenizer_spelling(t, id), token, id);
    qkv__text_clear(text);
    qkv_status status = put_spelling(t, token, strlen(token), text);
    return status ? status : qkv__tokenizer_set_bytes(t, id, text->data, text->length, false, false);
}

static qkv_status read_vocab(const char *path, qkv_tokenizer *t, const json_t *vocab)
{
    const char *token;
    json_t *value;
    qkv_text text = { 0 };
    qkv_status status = QKV_OK;
    json_object_foreach ((json_t *)vocab, token, value) {
        status = read_vocab_token(path, t, token, value, &text);
        if (status) break;
    }
    qkv_text_free(&text);
    return status;
}

static qkv_status read_added_token(const char *path, qkv_tokenizer *t, const json_t *entry, const json_t *vocab, size_t i)
{
    char key[48];
    snprintf(key, sizeof key, "added_tokens[%zu].", i);
    qkv_status status = qkv__check_keys(path, key, entry, added_rules);
    if (status) return status;
    key[strlen(key) - 1] = '\0';
    const char *content = json_string_value(json_object_get(entry, "content"));
    if (!content || !*content) return qkv__malformed(path, key, "its content is no text, or empty");
    int32_t id = get_id(path, key, content, json_object_get(entry, "id"), t->n);
    if (id < 0) return QKV_FORMAT;
    bool same = t->tokens[id].is_set && !t->tokens[id].is_added && !strcmp(content, qkv__tokenizer_spelling(t, id));
    if ((json_object_get(vocab, content) || t->tokens[id].is_set) && !same)
        return qkv__fail(QKV_FORMAT, "%s: %s: \"%.200s\" has the id %d, which does not agree with the other tokens", path, key,
                         content, id);
    bool special = qkv__flag(entry, "special", false);
    status = qkv__tokenizer_set(t, id, content, true, special);
    t->tokens[id].single_word = qkv__flag(entry, "single_word", false);
    t->tokens[id].takes_left = qkv__flag(entry, "lstrip", false);
    t->tokens[id].takes_right = qkv__flag(entry, "rstrip", false);
    t->tokens[id].is_normalized = qkv__flag(entry, "normalized", !special);
    return status;
}

static qkv_status read_added(const char *path, qkv_tokenizer *t, const json_t *added, const json_t *vocab)
{
    qkv_status status = QKV_OK;
    for (size_t i = 0; i < json_array_size(added) && !status; i++)
        status = read_added_token(path, t, json_array_get(added, i), vocab, i);
    int32_t twice = -1;
    if (!status) status = qkv__tokenizer_sort(t, &twice);
    if (status || twice < 0) return status;
    return qkv__fail(QKV_FORMAT, "%s: added_tokens: \"%.200s\" is there twice", path, qkv__tokenizer_spelling(t, twice));
}

/* "left right" or ["left", "right"]; both end up in text, the right one from *cut on. */
static qkv_status split_merge(const char *path, const qkv_tokenizer *t, const json_t *entry, size_t i, qkv_text *text,
                              size_t *cut)
{
    const char *whole = json_string_value(entry), *space = whole ? strchr(whole, ' ') : NULL;
    const char *a = json_string_value(json_array_get(entry, 0)), *b = json_string_value(json_array_get(entry, 1));
    if (whole ? !space || strchr(space + 1, ' ') : !a || !b || json_array_size(entry) != 2)
        return qkv__fail(QKV_FORMAT, "%s: model.merges[%zu]: \"left right\" or [\"left\", \"right\"] is expected", path, i);
    if (whole) {
        a = whole;
        b = space + 1;
    }
    qkv__text_clear(text);
    qkv_status status = put_spelling(t, a, whole ? (size_t)(space - whole) : strlen(a), text);
    *cut = text->length;
    return status ? status : put_spelling(t, b, strlen(b), text);
}

/* What both make is spelled by both, without the sign that the right one continues a word. */
static qkv_status read_merge(const char *path, qkv_tokenizer *t, const json_t *entry, size_t i, qkv_text *text)
{
    qkv__merge *m = &t->merges[i];
    size_t cut = 0, sign = t->pipeline && t->pipeline->prefix ? strlen(t->pipeline->prefix) : 0;
    qkv_status status = split_merge(path, t, entry, i, text, &cut);
    if (status) return status;
    size_t begin = 0, end = cut, right = text->length - cut;
    m->left = qkv__tokenizer_find(t, text->data, cut);
    m->right = m->left < 0 ? -1 : qkv__tokenizer_find(t, text->data + cut, right);
    if (m->left >= 0) begin = cut, end = text->length;
    if (m->right >= 0 && right >= sign) {
        memmove(text->data + cut, text->data + cut + sign, right - sign);
        begin = 0, end = text->length - sign;
        m->made = qkv__tokenizer_find(t, text->data, end);
        if (m->made >= 0) return QKV_OK;
    }
    return qkv__fail(QKV_FORMAT, "%s: model.merges[%zu]: \"%.*s\" is not in model.vocab", path, i,
                     (int)(end - begin < 200 ? end - begin : 200), text->data + begin);
}

static qkv_status read_merges(const char *path, qkv_tokenizer *t, const json_t *merges)
{
    qkv_text text = { 0 };
    qkv_status status = QKV_OK;
    for (size_t i = 0; i < t->n_merges && !status; i++) status = read_merge(path, t, json_array_get(merges, i), i, &text);
    qkv_text_free(&text);
    return status;
}

/* BPE may do without; the others need it. */
static qkv_status read_unknown(const char *path, qkv_tokenizer *t, const json_t *model, qkv__model_kind kind,
                               const json_t *vocab)
{
    const char *token = json_string_value(json_object_get(model, "unk_token"));
    if (kind == QKV__UNIGRAM) {
        const json_t *id = json_object_get(model, "unk_id");
        if (qkv__is_null(id)) return QKV_OK;
        t->unknown = get_id(path, "model.unk_id", "unknown", id, json_object_size(vocab));
        return t->unknown >= 0 ? QKV_OK : QKV_FORMAT;
    }
    if (!token && kind == QKV__BPE) return QKV_OK;
    if (!token) return qkv__malformed(path, "model.unk_token", "a token is expected");
    t->unknown = kind == QKV__BPE || json_object_get(vocab, token) ? qkv_tokenizer_find(t, token) : -1;
    return t->unknown >= 0 ? QKV_OK : qkv__malformed(path, "model.unk_token", "it is not in model.vocab");
}

/* Whether an added token is none of the vocabulary. */
static bool is_new(const json_t *entry, const json_t *vocab)
{
    const char *content = text_at(entry, "content");
    return !content || !json_object_get(vocab, content);
}

static size_t count_vocabulary(const json_t *vocab, const json_t *added)
{
    size_t n = json_object_size(vocab);
    for (size_t i = 0; i < json_array_size(added); i++) n += is_new(json_array_get(added, i), vocab);
    return n;
}

/* One more than the highest id: ids may have gaps, though not so many that a small file asks for much memory. */
static size_t count_ids(const json_t *vocab, const json_t *added)
{
    const char *token;
    json_t *value;
    size_t n = count_vocabulary(vocab, added), most = 8 * n + 65536, ids = n;
    json_object_foreach ((json_t *)vocab, token, value) {
        json_int_t id = json_integer_value(value);
        if (id >= (json_int_t)ids && (uint64_t)id < most) ids = (size_t)id + 1;
    }
    for (size_t i = 0; i < json_array_size(added); i++) {
        json_int_t id = json_integer_value(json_object_get(json_array_get(added, i), "id"));
        if (id >= (json_int_t)ids && (uint64_t)id < most) ids = (size_t)id + 1;
    }
    return ids;
}

/* Hugging Face's reader numbers new tokens by itself, whatever the file says: where ids have gaps, the two can differ. */
static qkv_status check_new_ids(const char *path, const json_t *vocab, const json_t *added)
{
    size_t next = json_object_size(vocab);
    for (size_t i = 0; i < json_array_size(added); i++) {
        const json_t *entry = json_array_get(added, i), *id = json_object_get(entry, "id");
        if (!is_new(entry, vocab) || !json_is_integer(id)) continue;
        if (json_integer_value(id) != (json_int_t)next)
            return qkv__fail(QKV_UNSUPPORTED,
                             "%s: added_tokens[%zu]: the id %lld is not the next one, %zu, which others would read it with",
                             path, i, (long long)json_integer_value(id), next);
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
        t->pipeline->byte_ids[byte] = qkv_tokenizer_find(t, spelling);
    }
}

/* A score as Hugging Face's reader has it: its digits as a whole number, divided by a power of ten, which rounds twice. Ways of
 * equal scores, such as those of a row of dashes, are told apart by that last bit. The shortest digits are the
 * file's. */
static double reread_score(double score)
{
    char text[40];
    double power = 1;
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, score);
        if (strtod(text, NULL) == score) break;
    }
    char *point = strchr(text, '.');
    if (!point || strchr(text, 'e')) return score;
    size_t decimals = strlen(point + 1);
    for (size_t i = 0; i < decimals; i++) power *= 10; /* exact up to 10^22 */
    memmove(point, point + 1, decimals + 1);
    return decimals <= 22 ? (double)strtoll(text, NULL, 10) / power : score;
}

/* Added tokens that are not in the vocabulary have no score, and are never looked for there. */
static qkv_status read_scores(qkv_tokenizer *t, const json_t *list)
{
    qkv__pipeline *p = t->pipeline;
    double lowest = 0;
    if (!(p->scores = qkv__alloc_zero(t->n * sizeof *p->scores))) return QKV_MEMORY;
    for (size_t i = 0; i < json_array_size(list); i++) {
        p->scores[i] = reread_score(json_number_value(json_array_get(json_array_get(list, i), 1)));
        if (!i || p->scores[i] < lowest) lowest = p->scores[i];
    }
    for (size_t i = json_array_size(list); i < t->n; i++) p->scores[i] = -1e300;
    p->unknown_score = lowest - 10;
    return QKV_OK;
}

/* NULL where it is not there or empty. UNSUPPORTED, MEMORY. */
static qkv_status copy_affix(const char *path, const json_t *model, const char *key, char **copy)
{
    if (!has_text(model, key)) return QKV_OK;
    if (strlen(text_at(model, key)) > QKV__AFFIX_MAX)
        return qkv__fail(QKV_UNSUPPORTED, "%s: model.%s: more than %d bytes are not supported", path, key, QKV__AFFIX_MAX);
    return (*copy = qkv__copy_text(text_at(model, key))) ? QKV_OK : QKV_MEMORY;
}

/* Before the merges, which leave the prefix out. */
static qkv_status read_affixes(const char *path, qkv__pipeline *p, const json_t *model)
{
    qkv_status status = copy_affix(path, model, "continuing_subword_prefix", &p->prefix);
    if (!status) status = copy_affix(path, model, "end_of_word_suffix", &p->suffix);
    if (status || !(p->prefix || p->suffix) || !qkv__flag(model, "byte_fallback", false)) return status;
    return qkv__fail(QKV_UNSUPPORTED, "%s: model.byte_fallback: with a prefix or a suffix only false is supported", path);
}

static qkv_status read_wordpiece(qkv__pipeline *p, const json_t *model)
{
    const json_t *prefix = json_object_get(model, "continuing_subword_prefix");
    const json_t *longest = json_object_get(model, "max_input_chars_per_word");
    p->longest_word = longest ? (size_t)json_integer_value(longest) : 100;
    return (p->prefix = qkv__copy_text(prefix ? json_string_value(prefix) : "##")) ? QKV_OK : QKV_MEMORY;
}

static qkv_status read_published(const char *path, qkv_tokenizer *t, const json_t *top)
{
    const json_t *model = json_object_get(top, "model");
    qkv__pipeline *p = t->pipeline;
    p->byte_fallback = qkv__flag(model, "byte_fallback", false);
    p->ignore_merges = qkv__flag(model, "ignore_merges", false);
    p->fuse_unknown = p->model == QKV__UNIGRAM || qkv__flag(model, "fuse_unk", false);
    find_fallback_bytes(t);
    qkv_status status = qkv__read_templates(path, top, t->n, p);
    if (!status && p->model == QKV__BPE) status = qkv__tokenizer_index_merges(t, path);
    if (!status && p->model == QKV__WORDPIECE) status = read_wordpiece(p, model);
    if (!status && p->model == QKV__UNIGRAM) status = read_scores(t, json_object_get(model, "vocab"));
    return status ? status : qkv__pipeline_finish(t);
}

/* ---- all of it ---- */

/* The tokens of a Unigram by their spelling, as the other models have them. */
static qkv_status index_pieces(const char *path, const json_t *list, json_t **vocab)
{
    if (!json_is_array(list)) return qkv__malformed(path, "model.vocab", "an array is expected");
    if (!(*vocab = json_object())) return qkv__fail(QKV_MEMORY, "%s: out of memory while reading it", path);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *entry = json_array_get(list, i);
        const char *piece = json_string_value(json_array_get(entry, 0));
        if (!piece || json_array_size(entry) != 2 || !json_is_number(json_array_get(entry, 1)))
            return qkv__fail(QKV_FORMAT, "%s: model.vocab[%zu]: [\"token\", score] is expected", path, i);
        if (json_object_get(*vocab, piece))
            return qkv__fail(QKV_FORMAT, "%s: model.vocab[%zu]: \"%.200s\" is there twice", path, i, piece);
        if (json_object_set_new(*vocab, piece, json_integer((json_int_t)i)))
            return qkv__fail(QKV_MEMORY, "%s: out of memory while reading it", path);
    }
    return QKV_OK;
}

static bool holds_nul(const json_t *value)
{
    const char *key;
    json_t *member;
    bool found = json_is_string(value) && strstr(json_string_value(value), QKV__NUL_SIGN);
    for (size_t i = 0; i < json_array_size(value) && !found; i++) found = holds_nul(json_array_get(value, i));
    json_object_foreach ((json_t *)value, key, member) found = found || holds_nul(member);
    return found;
}

/* A NUL is put back into tokens alone: steps and added tokens would look for the sign that stands in for it. */
static qkv_status check_nuls(const char *path, const json_t *top)
{
    static const char *const parts[] = { "added_tokens", "normalizer", "pre_tokenizer", "post_processor", "decoder" };
    static const char *const texts[] = { "unk_token", "continuing_subword_prefix", "end_of_word_suffix" };
    const json_t *model = json_object_get(top, "model");
    bool found = false;
    for (int i = 0; i < 5; i++) found = found || holds_nul(json_object_get(top, parts[i]));
    for (int i = 0; i < 3; i++) found = found || holds_nul(json_object_get(model, texts[i]));
    return found ? qkv__fail(QKV_UNSUPPORTED, "%s: a NUL is supported in model.vocab and model.merges alone", path) : QKV_OK;
}

static qkv_status check_file(const char *path, const json_t *top, const struct model_type **type, json_t **vocab)
{
    const json_t *model = json_object_get(top, "model"), *added = json_object_get(top, "added_tokens");
    if (!json_is_object(top)) return qkv__fail(QKV_FORMAT, "%s: not a tokenizer.json: it holds no object", path);
    qkv_status status = qkv__check_all_keys(path, top, top_rules);
    if (status) return status;
    if (!json_is_object(model)) return qkv__malformed(path, "model", "an object is expected");
    if (!(*type = type_of(path, model))) return qkv_error_status();
    status = qkv__check_keys(path, "model.", model, (*type)->rules);
    if (status) return status;
    *vocab = json_object_get(model, "vocab");
    if ((*type)->kind == QKV__UNIGRAM) status = index_pieces(path, *vocab, vocab);
    else if (json_is_object(*vocab)) json_incref(*vocab);
    else *vocab = NULL, status = qkv__malformed(path, "model.vocab", "an object is expected");
    if (!status && (*type)->kind == QKV__BPE && !json_is_array(json_object_get(model, "merges")))
        status = qkv__malformed(path, "model.merges", "an array is expected");
    if (status || qkv__is_null(added) || json_is_array(added)) return status;
    return qkv__malformed(path, "added_tokens", "an array is expected");
}

static qkv_status read_parts(const char *path, qkv_tokenizer *t, const json_t *top, qkv__model_kind kind, const json_t *vocab)
{
    const json_t *model = json_object_get(top, "model"), *cutting = json_object_get(top, "pre_tokenizer");
    t->prefix_space = qkv__flag(cutting, "add_prefix_space", true);
    t->whole_text = !qkv__flag(cutting, "use_regex", true);
    qkv_status status = t->pipeline && kind == QKV__BPE ? read_affixes(path, t->pipeline, model) : QKV_OK;
    if (!status) status = read_vocab(path, t, vocab);
    if (!status) status = read_added(path, t, json_object_get(top, "added_tokens"), vocab);
    if (!status) status = read_merges(path, t, json_object_get(model, "merges"));
    if (!status) status = read_unknown(path, t, model, kind, vocab);
    if (status) return status;
    return t->pipeline ? read_published(path, t, top) : qkv__tokenizer_finish(t, path);
}

/* The steps are read for every kind, so that their keys are checked; those that are trained do without them. */
static qkv_status make_from_json(const char *path, const json_t *top, bool has_nul, qkv__model_kind kind, const json_t *vocab,
                                 qkv_tokenizer **made)
{
    const json_t *added = json_object_get(top, "added_tokens"),
                 *merges = json_object_get(json_object_get(top, "model"), "merges");
    size_t n = count_ids(vocab, added);
    bool has_gaps = n > count_vocabulary(vocab, added);
    qkv_token_kind token_kind = has_gaps || has_nul ? QKV_TOKEN_PUBLISHED : kind_of(top, kind, vocab);
    qkv_tokenizer *t = qkv__tokenizer_new(token_kind, n, json_array_size(merges));
    if (!(*made = t) || !(t->pipeline = qkv__alloc_zero(sizeof *t->pipeline))) return QKV_MEMORY;
    t->pipeline->model = kind;
    t->pipeline->has_nul = has_nul;
    qkv_status status = has_gaps ? check_new_ids(path, vocab, added) : QKV_OK;
    if (!status) status = qkv__read_steps(path, top, t->pipeline);
    if (!status && token_kind != QKV_TOKEN_PUBLISHED) {
        status = qkv__read_templates(path, top, t->n, t->pipeline);
        qkv__pipeline_free(t->pipeline, t->n);
        t->pipeline = NULL;
    }
    return status ? status : read_parts(path, t, top, kind, vocab);
}

qkv_tokenizer *qkv__tokenizer_from_json(const char *path, const json_t *top, bool has_nul)
{
    qkv_tokenizer *t = NULL;
    const struct model_type *type = NULL;
    json_t *vocab = NULL;
    qkv_status status = check_file(path, top, &type, &vocab);
    if (!status && has_nul) status = check_nuls(path, top);
    if (!status) status = make_from_json(path, top, has_nul, type->kind, vocab, &t);
    json_decref(vocab);
    if (!status) return t;
    qkv_tokenizer_free(t);
    return NULL;
}
