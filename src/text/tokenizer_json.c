/* tokenizer_json.c: Hugging Face's tokenizer.json, as far as it describes a byte-level BPE, words in lower case, or characters.
 * What would give other ids than ours is refused by name. */
#include "tokenizer.h"

#include "../base/file.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#define FILE_MAX ((size_t)256 << 20) /* the largest published ones have a tenth of that */

/* ---- which keys may be there ---- */

static bool is_null(const json_t *v) { return !v || json_is_null(v); }
static bool is_bool(const json_t *v) { return json_is_boolean(v); }
static bool is_false(const json_t *v) { return json_is_false(v); }
static bool is_anything(const json_t *v) { return v != NULL; }
static bool is_text(const json_t *v, const char *text) { return json_is_string(v) && !strcmp(json_string_value(v), text); }
static bool has_type(const json_t *v, const char *type) { return is_text(json_object_get(v, "type"), type); }
static bool is_version(const json_t *v) { return json_is_null(v) || is_text(v, "1.0"); }
static bool is_model_type(const json_t *v) { return is_text(v, "BPE") || is_text(v, "WordLevel"); }
static bool is_no_text(const json_t *v) { return json_is_null(v) || (json_is_string(v) && !json_string_length(v)); }
static bool is_no_number(const json_t *v) { return json_is_null(v) || (json_is_number(v) && json_number_value(v) == 0); }
static bool is_text_or_null(const json_t *v) { return json_is_null(v) || json_is_string(v); }
static bool is_byte_level(const json_t *v) { return has_type(v, "ByteLevel"); }
static bool is_byte_level_or_null(const json_t *v) { return is_null(v) || is_byte_level(v); }
static bool is_lowercase(const json_t *v) { return has_type(v, "Lowercase"); }
static bool is_whitespace_split(const json_t *v) { return has_type(v, "WhitespaceSplit"); }
static bool is_fuse_or_null(const json_t *v) { return is_null(v) || has_type(v, "Fuse"); }

#define ANY_CHARACTER "[\\s\\S]"
static bool is_character_split(const json_t *v)
{
    const json_t *pattern = json_object_get(v, "pattern");
    return has_type(v, "Split") && json_object_size(pattern) == 1 &&
           is_text(json_object_get(pattern, "Regex"), ANY_CHARACTER) && is_text(json_object_get(v, "behavior"), "Isolated") &&
           json_is_false(json_object_get(v, "invert"));
}

typedef struct rule {
    const char *key;
    bool (*fits)(const json_t *value);
    const char *wants;
} rule;

static const rule top_rules[] = {
    { "version", is_version, "\"1.0\"" },    { "truncation", is_null, "null" },
    { "padding", is_null, "null" },          { "added_tokens", is_anything, NULL },
    { "normalizer", is_anything, NULL },     { "pre_tokenizer", is_anything, NULL },
    { "post_processor", is_anything, NULL }, { "decoder", is_anything, NULL },
    { "model", is_anything, NULL },          { 0 },
};

static const rule byte_level_rules[] = {
    { "type", is_anything, NULL },
    { "add_prefix_space", is_bool, "true or false" },
    { "trim_offsets", is_bool, "true or false" },
    { "use_regex", is_bool, "true or false" },
    { 0 },
};

static const rule type_rules[] = { { "type", is_anything, NULL }, { 0 } };

static const rule split_rules[] = {
    { "type", is_anything, NULL },
    { "pattern", is_anything, NULL },
    { "behavior", is_anything, NULL },
    { "invert", is_anything, NULL },
    { 0 },
};

/* What text goes through beside the model; what is not there is null. */
enum { PARTS = 4 };
typedef struct part {
    rule rule;
    const rule *inside;
} part;

static const part parts_of_kind[][PARTS] = {
    [QKV_BYTE_PAIRS] = {
        { { "normalizer", is_null, "null" }, NULL },
        { { "pre_tokenizer", is_byte_level, "the type ByteLevel" }, byte_level_rules },
        { { "post_processor", is_byte_level_or_null, "null or the type ByteLevel" }, byte_level_rules },
        { { "decoder", is_byte_level_or_null, "null or the type ByteLevel" }, byte_level_rules },
    },
    [QKV_WORDS] = {
        { { "normalizer", is_lowercase, "the type Lowercase" }, type_rules },
        { { "pre_tokenizer", is_whitespace_split, "the type WhitespaceSplit or Split" }, type_rules },
        { { "post_processor", is_null, "null" }, NULL },
        { { "decoder", is_null, "null" }, NULL },
    },
    [QKV_CHARACTERS] = {
        { { "normalizer", is_null, "null" }, NULL },
        { { "pre_tokenizer", is_character_split, "Split with the regex " ANY_CHARACTER ", isolated and not inverted," },
          split_rules },
        { { "post_processor", is_null, "null" }, NULL },
        { { "decoder", is_fuse_or_null, "null or the type Fuse" }, type_rules },
    },
};

/* Every byte has a token, so what is said about unknown characters never matters. */
static const rule bpe_rules[] = {
    { "type", is_model_type, "\"BPE\" or \"WordLevel\"" },
    { "dropout", is_no_number, "null" },
    { "unk_token", is_text_or_null, "null or a token" },
    { "continuing_subword_prefix", is_no_text, "null or empty" },
    { "end_of_word_suffix", is_no_text, "null or empty" },
    { "fuse_unk", is_bool, "true or false" },
    { "byte_fallback", is_bool, "true or false" },
    { "ignore_merges", is_false, "false" },
    { "vocab", is_anything, NULL },
    { "merges", is_anything, NULL },
    { 0 },
};

static const rule word_level_rules[] = {
    { "type", is_anything, NULL },
    { "unk_token", is_anything, NULL },
    { "vocab", is_anything, NULL },
    { 0 },
};

static const rule added_rules[] = {
    { "id", is_anything, NULL },
    { "content", is_anything, NULL },
    { "single_word", is_false, "false" },
    { "lstrip", is_false, "false" },
    { "rstrip", is_false, "false" },
    { "normalized", is_bool, "true or false" },
    { "special", is_bool, "true or false" },
    { 0 },
};

/* where is "" or ends with a dot. */
static qkv_status check_keys(const char *path, const char *where, const json_t *object, const rule *rules)
{
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *)object, key, value) {
        const rule *r = rules;
        while (r->key && strcmp(r->key, key)) r++;
        if (!r->key) return qkv__fail(QKV_UNSUPPORTED, "%s: %s%.100s: this key is not known", path, where, key);
        if (!r->fits(value)) return qkv__fail(QKV_UNSUPPORTED, "%s: %s%s: only %s is supported", path, where, key, r->wants);
    }
    return QKV_OK;
}

static qkv_status malformed(const char *path, const char *key, const char *what)
{
    return qkv__fail(QKV_FORMAT, "%s: %s: %s", path, key, what);
}

static qkv_status check_part(const char *path, const part *p, const json_t *value)
{
    char where[32];
    if (!p->rule.fits(value))
        return qkv__fail(QKV_UNSUPPORTED, "%s: %s: only %s is supported", path, p->rule.key, p->rule.wants);
    snprintf(where, sizeof where, "%s.", p->rule.key);
    return p->inside ? check_keys(path, where, value, p->inside) : QKV_OK;
}

static qkv_status check_model(const char *path, const json_t *model, qkv_token_kind kind)
{
    bool is_bpe = kind == QKV_BYTE_PAIRS;
    qkv_status status = check_keys(path, "model.", model, is_bpe ? bpe_rules : word_level_rules);
    if (status) return status;
    if (!json_is_object(json_object_get(model, "vocab"))) return malformed(path, "model.vocab", "an object is expected");
    if (is_bpe && !json_is_array(json_object_get(model, "merges")))
        return malformed(path, "model.merges", "an array is expected");
    return QKV_OK;
}

static qkv_token_kind kind_of(const json_t *top)
{
    if (!has_type(json_object_get(top, "model"), "WordLevel")) return QKV_BYTE_PAIRS;
    return has_type(json_object_get(top, "pre_tokenizer"), "Split") ? QKV_CHARACTERS : QKV_WORDS;
}

static qkv_status check_file(const char *path, const json_t *top)
{
    const json_t *model = json_object_get(top, "model"), *added = json_object_get(top, "added_tokens");
    qkv_token_kind kind = kind_of(top);
    if (!json_is_object(top)) return qkv__fail(QKV_FORMAT, "%s: not a tokenizer.json: it holds no object", path);
    qkv_status status = check_keys(path, "", top, top_rules);
    if (status) return status;
    if (!json_is_object(model)) return malformed(path, "model", "an object is expected");
    for (int i = 0; i < PARTS && !status; i++) {
        const part *p = &parts_of_kind[kind][i];
        status = check_part(path, p, json_object_get(top, p->rule.key));
    }
    if (!status) status = check_model(path, model, kind);
    if (status || is_null(added) || json_is_array(added)) return status;
    return malformed(path, "added_tokens", "an array is expected");
}

/* ---- reading ---- */

/* Ids are 0 .. n-1 without gaps, so n tokens with distinct ids below n are all of them. -1, with the error set, for others. */
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

static qkv_status read_vocab(const char *path, qkv_tokenizer *t, const json_t *vocab)
{
    const char *token;
    json_t *value;
    json_object_foreach ((json_t *)vocab, token, value) {
        int32_t id = get_id(path, "model.vocab", token, value, t->n);
        if (id < 0) return QKV_FORMAT;
        if (t->tokens[id].is_set)
            return qkv__fail(QKV_FORMAT, "%s: model.vocab: \"%.200s\" and \"%.200s\" both have the id %d", path,
                             qkv__tokenizer_spelling(t, id), token, id);
        qkv_status status = qkv__tokenizer_set(t, id, token, false, false);
        if (status) return status;
    }
    return QKV_OK;
}

/* An added token is found in the text as it is, but a word in lower case may be spelled like one: it has the same id then. */
static qkv_status check_added_word(const char *path, const json_t *entry, const char *key, bool is_in_vocab)
{
    if (json_is_true(json_object_get(entry, "normalized")))
        return qkv__fail(QKV_UNSUPPORTED, "%s: %s.normalized: only false is supported", path, key);
    return is_in_vocab ? QKV_OK : qkv__fail(QKV_UNSUPPORTED, "%s: %s: only a token of model.vocab is supported", path, key);
}

static qkv_status read_added_token(const char *path, qkv_tokenizer *t, const json_t *entry, const json_t *vocab, size_t i)
{
    char key[48];
    snprintf(key, sizeof key, "added_tokens[%zu].", i);
    qkv_status status = check_keys(path, key, entry, added_rules);
    if (status) return status;
    key[strlen(key) - 1] = '\0';
    const char *content = json_string_value(json_object_get(entry, "content"));
    if (!content || !*content) return malformed(path, key, "its content is no text, or empty");
    int32_t id = get_id(path, key, content, json_object_get(entry, "id"), t->n);
    if (id < 0) return QKV_FORMAT;
    bool same = t->tokens[id].is_set && !t->tokens[id].is_added && !strcmp(content, qkv__tokenizer_spelling(t, id));
    if ((json_object_get(vocab, content) || t->tokens[id].is_set) && !same)
        return qkv__fail(QKV_FORMAT, "%s: %s: \"%.200s\" has the id %d, which does not agree with the other tokens", path, key,
                         content, id);
    status = t->kind == QKV_WORDS ? check_added_word(path, entry, key, same) : QKV_OK;
    return status ? status : qkv__tokenizer_set(t, id, content, true, json_is_true(json_object_get(entry, "special")));
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

/* "left right" or ["left", "right"]; both end up in text, one after the other. */
static bool split_merge(const json_t *entry, qkv_text *text, const char **left, const char **right, qkv_status *status)
{
    const char *whole = json_string_value(entry), *space = whole ? strchr(whole, ' ') : NULL;
    const char *a = json_string_value(json_array_get(entry, 0)), *b = json_string_value(json_array_get(entry, 1));
    if (whole ? !space || strchr(space + 1, ' ') : !a || !b || json_array_size(entry) != 2) return false;
    if (whole) {
        a = whole;
        b = space + 1;
    }
    size_t length = whole ? (size_t)(space - whole) : strlen(a);
    qkv__text_clear(text);
    *status = qkv__text_put(text, a, length);
    if (!*status) *status = qkv__text_put(text, "", 1);
    if (!*status) *status = qkv__text_put(text, b, strlen(b));
    *left = text->data;
    *right = text->data + length + 1;
    return true;
}

static qkv_status read_merge(const char *path, qkv_tokenizer *t, const json_t *entry, size_t i, qkv_text *text)
{
    qkv__merge *m = &t->merges[i];
    const char *left, *right;
    qkv_status status = QKV_OK;
    if (!split_merge(entry, text, &left, &right, &status))
        return qkv__fail(QKV_FORMAT, "%s: model.merges[%zu]: \"left right\" or [\"left\", \"right\"] is expected", path, i);
    if (status) return status;
    m->left = qkv_tokenizer_find(t, left);
    m->right = qkv_tokenizer_find(t, right);
    const char *missing = m->left < 0 ? left : m->right < 0 ? right : NULL;
    if (!missing) {
        size_t length = strlen(left);
        memmove(text->data + length, right, strlen(right) + 1);
        m->made = qkv_tokenizer_find(t, missing = text->data);
        if (m->made >= 0) return QKV_OK;
    }
    return qkv__fail(QKV_FORMAT, "%s: model.merges[%zu]: \"%.200s\" is not in model.vocab", path, i, missing);
}

static qkv_status read_merges(const char *path, qkv_tokenizer *t, const json_t *merges)
{
    qkv_text text = { 0 };
    qkv_status status = QKV_OK;
    for (size_t i = 0; i < t->n_merges && !status; i++) status = read_merge(path, t, json_array_get(merges, i), i, &text);
    qkv_text_free(&text);
    return status;
}

static qkv_status read_unknown(const char *path, qkv_tokenizer *t, const json_t *model)
{
    const char *token = json_string_value(json_object_get(model, "unk_token"));
    bool is_needed = t->kind != QKV_BYTE_PAIRS;
    if (!token) return is_needed ? malformed(path, "model.unk_token", "a token is expected") : QKV_OK;
    t->unknown = qkv_tokenizer_find(t, token);
    if (is_needed && !json_object_get(json_object_get(model, "vocab"), token)) t->unknown = -1;
    return t->unknown >= 0 ? QKV_OK : malformed(path, "model.unk_token", "it is not in model.vocab");
}

static size_t count_tokens(const json_t *vocab, const json_t *added)
{
    size_t n = json_object_size(vocab);
    for (size_t i = 0; i < json_array_size(added); i++) {
        const char *content = json_string_value(json_object_get(json_array_get(added, i), "content"));
        n += !content || !json_object_get(vocab, content);
    }
    return n;
}

static qkv_status read_parts(const char *path, qkv_tokenizer *t, const json_t *top)
{
    const json_t *model = json_object_get(top, "model"), *vocab = json_object_get(model, "vocab");
    const json_t *cutting = json_object_get(top, "pre_tokenizer");
    t->prefix_space = !json_is_false(json_object_get(cutting, "add_prefix_space"));
    t->whole_text = json_is_false(json_object_get(cutting, "use_regex"));
    qkv_status status = read_vocab(path, t, vocab);
    if (!status) status = read_added(path, t, json_object_get(top, "added_tokens"), vocab);
    if (!status) status = read_merges(path, t, json_object_get(model, "merges"));
    if (!status) status = read_unknown(path, t, model);
    return status ? status : qkv__tokenizer_finish(t, path);
}

static qkv_status read_json(const char *path, json_t **top)
{
    qkv__bytes file;
    json_error_t error;
    qkv_status status = qkv__file_read(path, FILE_MAX, &file);
    if (status) return status;
    *top = json_loadb((const char *)file.data, file.size, JSON_REJECT_DUPLICATES, &error);
    qkv__bytes_free(&file);
    if (*top) return QKV_OK;
    if (!error.text[0] || json_error_code(&error) == json_error_out_of_memory)
        return qkv__fail(QKV_MEMORY, "%s: out of memory while reading it", path);
    return qkv__fail(QKV_FORMAT, "%s: line %d, byte %d: not JSON: %s", path, error.line, error.position, error.text);
}

qkv_tokenizer *qkv_tokenizer_load(const char *path)
{
    json_t *top = NULL;
    qkv_tokenizer *t = NULL;
    if (!path) return qkv__fail(QKV_USAGE, "tokenizer: the path is NULL"), NULL;
    qkv_status status = read_json(path, &top);
    if (!status) status = check_file(path, top);
    if (!status) {
        const json_t *model = json_object_get(top, "model");
        size_t n = count_tokens(json_object_get(model, "vocab"), json_object_get(top, "added_tokens"));
        t = qkv__tokenizer_new(kind_of(top), n, json_array_size(json_object_get(model, "merges")));
        status = t ? read_parts(path, t, top) : QKV_MEMORY;
    }
    json_decref(top);
    if (!status) return t;
    qkv_tokenizer_free(t);
    return NULL;
}

/* ---- writing ---- */

typedef struct output {
    qkv_text text;
    qkv_status status; /* the first error; nothing is put after it */
} output;

static void put_bytes(output *o, const char *bytes, size_t n)
{
    if (!o->status) o->status = qkv__text_put(&o->text, bytes, n);
}

static void put(output *o, const char *text) { put_bytes(o, text, strlen(text)); }

static void put_inside_quotes(output *o, const char *text)
{
    for (; *text; text++) {
        char escape[8];
        if ((unsigned char)*text < 0x20) snprintf(escape, sizeof escape, "\\u%04x", (unsigned char)*text), put(o, escape);
        else if (*text == '"' || *text == '\\') put_bytes(o, (const char[]){ '\\', *text }, 2);
        else put_bytes(o, text, 1);
    }
}

static void put_quoted(output *o, const char *text)
{
    put(o, "\"");
    put_inside_quotes(o, text);
    put(o, "\"");
}

static void put_number(output *o, size_t n)
{
    char text[24];
    snprintf(text, sizeof text, "%zu", n);
    put(o, text);
}

static void put_added(output *o, const qkv_tokenizer *t)
{
    const char *before = "\n";
    for (size_t id = 0; id < t->n; id++) {
        if (!t->tokens[id].is_added) continue;
        put(o, before);
        put(o, "    { \"id\": ");
        put_number(o, id);
        put(o, ", \"content\": ");
        put_quoted(o, qkv__tokenizer_spelling(t, (int32_t)id));
        put(o, ", \"single_word\": false, \"lstrip\": false, \"rstrip\": false, \"normalized\": false, \"special\": ");
        put(o, t->tokens[id].is_special ? "true }" : "false }");
        before = ",\n";
    }
}

static void put_byte_level(output *o, const char *key, bool prefix_space, bool use_regex)
{
    put(o, "  \"");
    put(o, key);
    put(o, "\": { \"type\": \"ByteLevel\", \"add_prefix_space\": ");
    put(o, prefix_space ? "true" : "false");
    put(o, ", \"trim_offsets\": false, \"use_regex\": ");
    put(o, use_regex ? "true },\n" : "false },\n");
}

/* Added tokens are in the vocabulary as well: Hugging Face's reader numbers those that are not by itself. */
static void put_vocab(output *o, const qkv_tokenizer *t)
{
    for (size_t id = 0; id < t->n; id++) {
        put(o, id ? ",\n      " : "\n      ");
        put_quoted(o, qkv__tokenizer_spelling(t, (int32_t)id));
        put(o, ": ");
        put_number(o, id);
    }
}

/* Older readers know only "left right"; a token with a space in it needs the newer ["left", "right"]. */
static bool merges_need_pairs(const qkv_tokenizer *t)
{
    for (size_t i = 0; i < t->n_merges; i++)
        if (strchr(qkv__tokenizer_spelling(t, t->merges[i].made), ' ')) return true;
    return false;
}

static void put_merges(output *o, const qkv_tokenizer *t)
{
    bool pairs = merges_need_pairs(t);
    for (size_t i = 0; i < t->n_merges; i++) {
        put(o, i ? ",\n      " : "\n      ");
        put(o, pairs ? "[\"" : "\"");
        put_inside_quotes(o, qkv__tokenizer_spelling(t, t->merges[i].left));
        put(o, pairs ? "\", \"" : " ");
        put_inside_quotes(o, qkv__tokenizer_spelling(t, t->merges[i].right));
        put(o, pairs ? "\"]" : "\"");
    }
}

static void put_bpe(output *o, const qkv_tokenizer *t)
{
    put(o, "  \"normalizer\": null,\n");
    put_byte_level(o, "pre_tokenizer", t->prefix_space, !t->whole_text);
    put(o, "  \"post_processor\": null,\n");
    put_byte_level(o, "decoder", false, true);
    put(o, "  \"model\": {\n    \"type\": \"BPE\",\n    \"dropout\": null,\n    \"unk_token\": ");
    if (t->unknown < 0) put(o, "null");
    else put_quoted(o, qkv__tokenizer_spelling(t, t->unknown));
    put(o, ",\n    \"continuing_subword_prefix\": null,\n    \"end_of_word_suffix\": null,\n    \"fuse_unk\": false,\n"
           "    \"byte_fallback\": false,\n    \"vocab\": {");
    put_vocab(o, t);
    put(o, "\n    },\n    \"merges\": [");
    put_merges(o, t);
    put(o, "\n    ]\n  }\n");
}

static void put_word_level(output *o, const qkv_tokenizer *t)
{
    if (t->kind == QKV_WORDS)
        put(o, "  \"normalizer\": { \"type\": \"Lowercase\" },\n  \"pre_tokenizer\": { \"type\": \"WhitespaceSplit\" },\n"
               "  \"post_processor\": null,\n  \"decoder\": null,\n");
    else {
        put(o, "  \"normalizer\": null,\n  \"pre_tokenizer\": { \"type\": \"Split\", \"pattern\": { \"Regex\": ");
        put_quoted(o, ANY_CHARACTER);
        put(o, " }, \"behavior\": \"Isolated\", \"invert\": false },\n"
               "  \"post_processor\": null,\n  \"decoder\": { \"type\": \"Fuse\" },\n");
    }
    put(o, "  \"model\": {\n    \"type\": \"WordLevel\",\n    \"unk_token\": ");
    put_quoted(o, qkv__tokenizer_spelling(t, t->unknown));
    put(o, ",\n    \"vocab\": {");
    put_vocab(o, t);
    put(o, "\n    }\n  }\n");
}

static void put_tokenizer(output *o, const qkv_tokenizer *t)
{
    put(o, "{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n  \"padding\": null,\n  \"added_tokens\": [");
    put_added(o, t);
    put(o, "\n  ],\n");
    if (t->kind == QKV_BYTE_PAIRS) put_bpe(o, t);
    else put_word_level(o, t);
    put(o, "}\n");
}

qkv_status qkv_tokenizer_save(const qkv_tokenizer *t, const char *path)
{
    output o = { 0 };
    qkv__writer w;
    if (!t || !path) return qkv__fail(QKV_USAGE, "tokenizer: tokenizer or path is NULL");
    put_tokenizer(&o, t);
    qkv_status status = o.status;
    if (!status) {
        status = qkv__write_begin(&w, path);
        if (!status) status = qkv__write_put(&w, o.text.data, o.text.length);
        if (!status) status = qkv__write_end(&w);
        if (status) qkv__write_abandon(&w);
    }
    qkv_text_free(&o.text);
    return status;
}
