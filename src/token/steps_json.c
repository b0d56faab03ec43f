/* steps_json.c: the normalizers, pre-tokenizers and decoders of a tokenizer.json. */
#include "steps_json.h"

#include <stdio.h>
#include <string.h>

typedef struct place {
    const char *path;
    const char *where; /* the object's key, for sentences */
    const qkv__json_value *object;
    qkv__steps *steps;
} place;

typedef struct step_type {
    const char *type;
    qkv_status (*read)(const place *p);
    qkv__rule rules[8]; /* beside "type" */
} step_type;

/* ---- values ---- */

static qkv_status malformed_step(const place *p, const char *key, const char *what)
{
    return qkv__fail(QKV_FORMAT, "%s: %s.%s: %s", p->path, p->where, key, what);
}

static qkv_status add(const place *p, qkv__rewrite *rewrite, qkv__step **step)
{
    if (!(*step = qkv__steps_add(p->steps))) return QKV_MEMORY;
    (*step)->rewrite = rewrite;
    return QKV_OK;
}

static qkv_status add_plain(const place *p, qkv__rewrite *rewrite)
{
    qkv__step *step;
    return add(p, rewrite, &step);
}

static qkv_status keep_text(const char *text, char **copy) { return (*copy = qkv__copy_text(text)) ? QKV_OK : QKV_MEMORY; }

static qkv_status get_text(const place *p, const char *key, char **copy)
{
    const char *text = qkv__json_get_text(p->object, key);
    return text ? keep_text(text, copy) : malformed_step(p, key, "a text is expected");
}

/* {"String": ..} or {"Regex": ..} */
static qkv_status get_pattern(const place *p, qkv__step *step)
{
    char name[512];
    const qkv__json_value *pattern = qkv__json_get(p->object, "pattern");
    const char *text = qkv__json_get_text(pattern, "String");
    const char *regex = qkv__json_get_text(pattern, "Regex");
    if (qkv__json_size(pattern) != 1 || (!text && !regex)) return malformed_step(p, "pattern", "String or Regex is expected");
    if (text && !*text) return malformed_step(p, "pattern", "it is empty");
    if (text) return keep_text(text, &step->text);
    snprintf(name, sizeof name, "%s: %s.pattern", p->path, p->where);
    return (step->pattern = qkv__pattern_compile(name, regex)) ? QKV_OK : qkv_error_status();
}

/* A word of a list; -1 with the error set for another. */
static int get_word(const place *p, const char *key, const char *const *words, int otherwise)
{
    const qkv__json_value *value = qkv__json_get(p->object, key);
    if (!value) return otherwise;
    for (int i = 0; words[i]; i++)
        if (qkv__is_text(value, words[i])) return i;
    qkv__fail(QKV_UNSUPPORTED, "%s: %s.%s: \"%.100s\" is not supported", p->path, p->where, key,
              qkv__json_is_string(value) ? qkv__json_text(value) : "a value that is no text");
    return -1;
}

static qkv_status get_behavior(const place *p, qkv__step *step, int otherwise)
{
    static const char *const words[] = { "Isolated", "Removed", "Contiguous", "MergedWithPrevious", "MergedWithNext", NULL };
    int behavior = get_word(p, "behavior", words, otherwise);
    if (behavior < 0)
        return otherwise < 0 && !qkv__json_get(p->object, "behavior") ? malformed_step(p, "behavior", "it is missing")
                                                                      : QKV_UNSUPPORTED;
    step->behavior = (qkv__behavior)behavior;
    return QKV_OK;
}

/* ---- normalizers ---- */

static qkv_status add_form(const place *p, bool compat, bool compose)
{
    qkv__step *step;
    qkv_status status = add(p, qkv__normal_form, &step);
    if (status) return status;
    step->compat = compat;
    step->compose = compose;
    return QKV_OK;
}

static qkv_status read_nfc(const place *p) { return add_form(p, false, true); }
static qkv_status read_nfd(const place *p) { return add_form(p, false, false); }
static qkv_status read_nfkc(const place *p) { return add_form(p, true, true); }
static qkv_status read_nfkd(const place *p) { return add_form(p, true, false); }
static qkv_status read_lowercase(const place *p) { return add_plain(p, qkv__lowercase); }
static qkv_status read_nmt(const place *p) { return add_plain(p, qkv__nmt); }
static qkv_status read_byte_level_normalizer(const place *p) { return add_plain(p, qkv__byte_level); }
static qkv_status read_strip_accents(const place *p) { return add_plain(p, qkv__strip_accents); }

static qkv_status read_bert_normalizer(const place *p)
{
    qkv__step *step;
    qkv_status status = add(p, qkv__bert_normalize, &step);
    if (status) return status;
    step->clean = qkv__flag(p->object, "clean_text", true);
    step->chinese = qkv__flag(p->object, "handle_chinese_chars", true);
    step->lowercase = qkv__flag(p->object, "lowercase", true);
    step->strip_accents = qkv__flag(p->object, "strip_accents", step->lowercase);
    return QKV_OK;
}

static qkv_status read_replace(const place *p)
{
    qkv__step *step;
    qkv_status status = add(p, qkv__replace, &step);
    if (!status) status = get_pattern(p, step);
    return status ? status : get_text(p, "content", &step->content);
}

static qkv_status read_prepend(const place *p)
{
    qkv__step *step;
    qkv_status status = add(p, qkv__prepend_text, &step);
    return status ? status : get_text(p, "prepend", &step->text);
}

static qkv_status read_strip(const place *p)
{
    qkv__step *step;
    qkv_status status = add(p, qkv__strip, &step);
    if (status) return status;
    step->left = qkv__flag(p->object, "strip_left", true);
    step->right = qkv__flag(p->object, "strip_right", true);
    return QKV_OK;
}

/* ---- base64 ---- */

static int base64_value(char c)
{
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* FORMAT without a sentence for text that is none. */
static qkv_status read_base64(const char *text, qkv_buffer *out)
{
    size_t length = strlen(text);
    qkv_status status = length % 4 ? QKV_FORMAT : QKV_OK;
    while (length && text[length - 1] == '=') length--;
    unsigned bits = 0;
    for (size_t i = 0; i < length && !status; i++) {
        int value = base64_value(text[i]);
        if (value < 0) return QKV_FORMAT;
        bits = bits << 6 | (unsigned)value;
        size_t have = i % 4; /* characters before this one in its group: 1, 2 and 3 complete a byte */
        if (have) status = qkv__buffer_put(out, &(char){ (char)(bits >> (6 - 2 * have)) }, 1);
    }
    return status;
}

static qkv_status read_precompiled(const place *p)
{
    qkv__step *step;
    char name[512];
    qkv_buffer bytes = { 0 };
    const char *text = qkv__json_get_text(p->object, "precompiled_charsmap");
    if (!text) return malformed_step(p, "precompiled_charsmap", "a text is expected");
    if (!*text) return QKV_OK;
    snprintf(name, sizeof name, "%s: %s.precompiled_charsmap", p->path, p->where);
    qkv_status status = read_base64(text, &bytes);
    if (status == QKV_FORMAT) malformed_step(p, "precompiled_charsmap", "it is no base64");
    if (!status) status = add(p, qkv__precompiled, &step);
    if (!status && !(step->map = qkv__charsmap_new(name, (unsigned char *)bytes.data, bytes.length)))
        status = qkv_error_status();
    qkv_buffer_free(&bytes);
    return status;
}

/* ---- pre-tokenizers ---- */

static qkv_status add_prefix(const place *p, const char *text, qkv__prepend prepend)
{
    qkv__step *step;
    if (prepend == QKV__NEVER) return QKV_OK;
    qkv_status status = add(p, qkv__prepend_missing, &step);
    if (status) return status;
    step->prepend = prepend;
    return keep_text(text, &step->text);
}

static qkv_status read_byte_level(const place *p)
{
    qkv__step *step;
    qkv_status status = add_prefix(p, " ", qkv__flag(p->object, "add_prefix_space", true) ? QKV__ALWAYS : QKV__NEVER);
    if (!status && qkv__flag(p->object, "use_regex", true)) {
        status = add(p, qkv__split, &step);
        if (!status && !(step->pattern = qkv__pattern_new())) status = qkv_error_status();
    }
    return status ? status : add_plain(p, qkv__byte_level);
}

static qkv_status read_split(const place *p)
{
    qkv__step *step;
    qkv_status status = add(p, qkv__split, &step);
    if (!status) status = get_pattern(p, step);
    if (!status) status = get_behavior(p, step, -1);
    if (!status) step->invert = qkv__flag(p->object, "invert", false);
    return status;
}

/* When text gets the sign before it. Older files say it with add_prefix_space. -1 with the error set. */
static int get_prepend(const place *p)
{
    static const char *const words[] = { "never", "always", "first", NULL };
    int otherwise = qkv__flag(p->object, "add_prefix_space", true) ? QKV__ALWAYS : QKV__NEVER;
    return get_word(p, "prepend_scheme", words, otherwise);
}

static qkv_status get_sign(const place *p, char **sign)
{
    qkv_status status = get_text(p, "replacement", sign);
    if (!status && !**sign) status = malformed_step(p, "replacement", "it is empty");
    return status;
}

static qkv_status read_metaspace(const place *p)
{
    qkv__step *step;
    char *sign;
    int prepend = get_prepend(p);
    if (prepend < 0) return QKV_UNSUPPORTED;
    qkv_status status = add(p, qkv__replace, &step);
    if (!status) status = keep_text(" ", &step->text);
    if (!status) status = get_sign(p, &step->content);
    if (status) return status;
    sign = step->content; /* the steps move when they grow, texts do not */
    status = add_prefix(p, sign, (qkv__prepend)prepend);
    if (status || !qkv__flag(p->object, "split", true)) return status;
    status = add(p, qkv__split, &step);
    if (status) return status;
    step->behavior = QKV__MERGED_WITH_NEXT;
    return keep_text(sign, &step->text);
}

static qkv_status read_digits(const place *p)
{
    qkv__step *step;
    qkv_status status = add(p, qkv__digits, &step);
    if (!status) step->individual = qkv__flag(p->object, "individual_digits", false);
    return status;
}

static qkv_status read_punctuation(const place *p)
{
    qkv__step *step;
    qkv_status status = add(p, qkv__punctuation, &step);
    return status ? status : get_behavior(p, step, QKV__ISOLATED);
}

static qkv_status read_delimiter(const place *p)
{
    qkv__step *step;
    qkv_status status = add(p, qkv__split, &step);
    if (!status) status = get_text(p, "delimiter", &step->text);
    if (!status && !*step->text) status = malformed_step(p, "delimiter", "it is empty");
    if (!status) step->behavior = QKV__REMOVED;
    return status;
}

static qkv_status read_fixed_length(const place *p)
{
    qkv__step *step;
    const qkv__json_value *length = qkv__json_get(p->object, "length");
    qkv_status status = add(p, qkv__fixed_length, &step);
    if (!status) step->start = length ? qkv__json_int(length) : 5; /* as its authors have it */
    if (!status && step->start < 1) status = malformed_step(p, "length", "it must be at least 1");
    return status;
}

static qkv_status read_whitespace(const place *p) { return add_plain(p, qkv__whitespace); }
static qkv_status read_whitespace_split(const place *p) { return add_plain(p, qkv__whitespace_split); }
static qkv_status read_bert_split(const place *p) { return add_plain(p, qkv__bert_split); }
static qkv_status read_unicode_scripts(const place *p) { return add_plain(p, qkv__unicode_scripts); }

/* ---- decoders ---- */

static qkv_status read_decode_byte_level(const place *p) { return add_plain(p, qkv__decode_byte_level); }
static qkv_status read_decode_byte_fallback(const place *p) { return add_plain(p, qkv__decode_byte_fallback); }
static qkv_status read_decode_fuse(const place *p) { return add_plain(p, qkv__decode_fuse); }

static qkv_status read_decode_wordpiece(const place *p)
{
    qkv__step *step;
    qkv_status status = add(p, qkv__decode_wordpiece, &step);
    if (!status) step->cleanup = qkv__flag(p->object, "cleanup", true);
    return status ? status : get_text(p, "prefix", &step->text);
}

static qkv_status read_decode_metaspace(const place *p)
{
    qkv__step *step;
    int prepend = get_prepend(p);
    if (prepend < 0) return QKV_UNSUPPORTED;
    qkv_status status = add(p, qkv__decode_metaspace, &step);
    if (!status) step->prepend = (qkv__prepend)prepend;
    return status ? status : get_sign(p, &step->text);
}

static qkv_status read_decode_suffix(const place *p)
{
    qkv__step *step;
    qkv_status status = add(p, qkv__decode_suffix, &step);
    if (!status) status = get_text(p, "suffix", &step->text);
    if (!status && !*step->text) status = malformed_step(p, "suffix", "it is empty");
    return status;
}

static qkv_status read_decode_strip(const place *p)
{
    qkv__step *step;
    qkv_status status = add(p, qkv__decode_strip, &step);
    if (!status) status = get_text(p, "content", &step->text);
    if (status) return status;
    if (!*step->text) return malformed_step(p, "content", "it is empty");
    step->start = qkv__json_int(qkv__json_get(p->object, "start"));
    step->stop = qkv__json_int(qkv__json_get(p->object, "stop"));
    return QKV_OK;
}

static qkv_status read_decode_ctc(const place *p)
{
    qkv__step *step;
    qkv_status status = add(p, qkv__decode_ctc, &step);
    if (!status) status = get_text(p, "pad_token", &step->text);
    if (!status) status = get_text(p, "word_delimiter_token", &step->content);
    if (!status && !*step->text) status = malformed_step(p, "pad_token", "it is empty");
    if (!status && !*step->content) status = malformed_step(p, "word_delimiter_token", "it is empty");
    if (!status) step->cleanup = qkv__flag(p->object, "cleanup", true);
    return status;
}

/* ---- which there are ---- */

#define BOOL(key)                          \
    {                                      \
        key, qkv__is_bool, "true or false" \
    }
#define BOOL_OR_NULL(key)                           \
    {                                               \
        key, is_bool_or_null, "true, false or null" \
    }
#define ANY(key)                    \
    {                               \
        key, qkv__is_anything, NULL \
    }
#define COUNT(key)                     \
    {                                  \
        key, qkv__is_count, "a number" \
    }
#define TEXT(key)                     \
    {                                 \
        key, qkv__is_string, "a text" \
    }
static bool is_bool_or_null(const qkv__json_value *v) { return qkv__json_is_null(v) || qkv__json_is_bool(v); }

/* clang-format off */
static const step_type normalizers[] = {
    { "NFC", read_nfc, { { 0 } } },
    { "NFD", read_nfd, { { 0 } } },
    { "NFKC", read_nfkc, { { 0 } } },
    { "NFKD", read_nfkd, { { 0 } } },
    { "Lowercase", read_lowercase, { { 0 } } },
    { "StripAccents", read_strip_accents, { { 0 } } },
    { "BertNormalizer", read_bert_normalizer,
      { BOOL("clean_text"), BOOL("handle_chinese_chars"), BOOL_OR_NULL("strip_accents"), BOOL("lowercase") } },
    { "Replace", read_replace, { ANY("pattern"), ANY("content") } },
    { "Prepend", read_prepend, { ANY("prepend") } },
    { "Strip", read_strip, { BOOL("strip_left"), BOOL("strip_right") } },
    { "Precompiled", read_precompiled, { ANY("precompiled_charsmap") } },
    { "Nmt", read_nmt, { { 0 } } },
    { "ByteLevel", read_byte_level_normalizer, { { 0 } } },
    { 0 },
};

static const step_type pre_tokenizers[] = {
    { "ByteLevel", read_byte_level, { BOOL("add_prefix_space"), BOOL("trim_offsets"), BOOL("use_regex") } },
    { "Split", read_split, { ANY("pattern"), ANY("behavior"), BOOL("invert") } },
    { "Whitespace", read_whitespace, { { 0 } } },
    { "WhitespaceSplit", read_whitespace_split, { { 0 } } },
    { "BertPreTokenizer", read_bert_split, { { 0 } } },
    { "Metaspace", read_metaspace,
      { ANY("replacement"), ANY("str_rep"), BOOL("add_prefix_space"), ANY("prepend_scheme"), BOOL("split") } },
    { "Digits", read_digits, { BOOL("individual_digits") } },
    { "Punctuation", read_punctuation, { ANY("behavior") } },
    { "CharDelimiterSplit", read_delimiter, { ANY("delimiter") } },
    { "FixedLength", read_fixed_length, { COUNT("length") } },
    { "UnicodeScripts", read_unicode_scripts, { { 0 } } },
    { 0 },
};

static const step_type decoders[] = {
    { "ByteLevel", read_decode_byte_level, { BOOL("add_prefix_space"), BOOL("trim_offsets"), BOOL("use_regex") } },
    { "WordPiece", read_decode_wordpiece, { ANY("prefix"), BOOL("cleanup") } },
    { "Metaspace", read_decode_metaspace,
      { ANY("replacement"), ANY("str_rep"), BOOL("add_prefix_space"), ANY("prepend_scheme"), BOOL("split") } },
    { "Replace", read_replace, { ANY("pattern"), ANY("content") } },
    { "ByteFallback", read_decode_byte_fallback, { { 0 } } },
    { "Fuse", read_decode_fuse, { { 0 } } },
    { "BPEDecoder", read_decode_suffix, { ANY("suffix") } },
    { "CTC", read_decode_ctc, { TEXT("pad_token"), TEXT("word_delimiter_token"), BOOL("cleanup") } },
    { "Strip", read_decode_strip, { TEXT("content"), COUNT("start"), COUNT("stop") } },
    { 0 },
};
/* clang-format on */

static qkv_status check_rules(const place *p, const step_type *type)
{
    char where[256];
    qkv__rule rules[sizeof type->rules / sizeof *type->rules + 1] = { ANY("type") };
    memcpy(rules + 1, type->rules, sizeof type->rules);
    snprintf(where, sizeof where, "%s.", p->where);
    return qkv__check_keys(p->path, where, p->object, rules);
}

static qkv_status read_steps(const place *p, const step_type *types, const char *list);

static qkv_status read_step_list(const place *p, const step_type *types, const char *list)
{
    const qkv__json_value *all = qkv__json_get(p->object, list);
    qkv_status status = qkv__json_is_array(all) ? QKV_OK : malformed_step(p, list, "an array is expected");
    for (size_t i = 0; i < qkv__json_size(all) && !status; i++) {
        char where[256];
        snprintf(where, sizeof where, "%.200s.%s[%zu]", p->where, list, i);
        status = read_steps(&(place){ p->path, where, qkv__json_at(all, i), p->steps }, types, list);
    }
    return status;
}

/* list is the key under which a Sequence has its steps. */
static qkv_status read_steps(const place *p, const step_type *types, const char *list)
{
    const qkv__json_value *type = qkv__json_get(p->object, "type");
    if (qkv__is_null(p->object)) return QKV_OK;
    if (qkv__is_text(type, "Sequence")) return read_step_list(p, types, list);
    while (types->type && !qkv__is_text(type, types->type)) types++;
    if (!types->type)
        return qkv__fail(QKV_UNSUPPORTED, "%s: %s.type: \"%.100s\" is not supported", p->path, p->where,
                         qkv__json_is_string(type) ? qkv__json_text(type) : "a value that is no text");
    size_t before = p->steps->n;
    qkv_status status = check_rules(p, types);
    if (!status) status = types->read(p);
    for (size_t i = before; i < p->steps->n; i++) p->steps->at[i].name = types->type;
    if (!status && p->steps->n > QKV__STEPS_MAX)
        status = qkv__fail(QKV_LIMIT, "%s: %s: more than %d steps", p->path, p->where, QKV__STEPS_MAX);
    return status;
}

qkv_status qkv__read_steps(const char *path, const qkv__json_value *top, qkv__pipeline *p)
{
    const struct {
        const char *key, *list;
        const step_type *types;
        qkv__steps *steps;
    } parts[] = { { "normalizer", "normalizers", normalizers, &p->normalizers },
                  { "pre_tokenizer", "pretokenizers", pre_tokenizers, &p->pre_tokenizers },
                  { "decoder", "decoders", decoders, &p->decoders } };
    qkv_status status = QKV_OK;
    for (int i = 0; i < 3 && !status; i++)
        status = read_steps(&(place){ path, parts[i].key, qkv__json_get(top, parts[i].key), parts[i].steps }, parts[i].types,
                            parts[i].list);
    p->join_with_spaces = qkv__is_null(qkv__json_get(top, "decoder"));
    return status;
}
