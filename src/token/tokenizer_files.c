/* tokenizer_files.c: which file is what: tokenizers by their content and their name, and those of a model's folder. */
#include "tokenizer_json.h"

#include "../io/json.h"

#include "../base/file.h"
#include "pipeline.h"
#include "json_rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_MAX ((size_t)256 << 20) /* the largest published ones have a tenth of that */

/* ---- paths ---- */

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && !strcmp(text + n - m, end);
}

/* The path with its last `cut` bytes replaced. qkv__release_text() it; NULL with the error set. */
static char *beside(const char *path, size_t cut, const char *name)
{
    qkv_text text = { 0 };
    char *copy = NULL;
    if (!qkv__text_put(&text, path, strlen(path) - cut) && !qkv__text_put(&text, name, strlen(name)))
        copy = qkv__copy_text(text.data);
    qkv_text_free(&text);
    return copy;
}

static size_t name_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? strlen(slash + 1) : strlen(path);
}

/* ---- JSON ---- */

static qkv_status parse_json(const char *path, const qkv__bytes *file, json_t **top)
{
    json_error_t error;
    *top = json_loadb((const char *)file->data, file->size, JSON_REJECT_DUPLICATES, &error);
    if (*top) return QKV_OK;
    if (qkv__json_out_of_memory(&error, (const char *)file->data, file->size))
        return qkv__fail(QKV_MEMORY, "%s: out of memory while reading it", path);
    return qkv__fail(QKV_FORMAT, "%s: line %d, byte %d: not JSON: %s", path, error.line, error.position, error.text);
}

qkv_status qkv__read_json(const char *path, json_t **top)
{
    qkv__bytes file;
    qkv_status status = qkv__file_read(path, FILE_MAX, &file);
    if (status) return status;
    status = parse_json(path, &file, top);
    qkv__bytes_free(&file);
    return status;
}

/* tokenizer_config.json beside a file; an empty object where there is none. */
static qkv_status read_config(const char *path, json_t **config)
{
    char *name = beside(path, name_length(path), "tokenizer_config.json");
    qkv_status status = name ? QKV_OK : QKV_MEMORY;
    *config = NULL;
    if (!status && qkv__file_exists(name)) status = qkv__read_json(name, config);
    else if (!status && !(*config = json_object())) status = qkv__fail(QKV_MEMORY, "%s: out of memory while reading it", path);
    if (!status && !json_is_object(*config)) status = qkv__fail(QKV_FORMAT, "%s: it holds no object", name);
    qkv__release_text(name);
    return status;
}

/* A tokenizer of a tokenizer.json that was made here, which it is saved as. The description is given back. */
static qkv_tokenizer *from_description(const char *path, json_t *top)
{
    qkv_tokenizer *t = top ? qkv__tokenizer_from_json(path, top, false) : NULL;
    char *text = t && t->pipeline ? json_dumps(top, JSON_INDENT(2)) : NULL;
    qkv_status status = text ? qkv__text_put(&t->pipeline->source, text, strlen(text)) : QKV_OK;
    if (!top || (t && t->pipeline && !text)) status = qkv__fail(QKV_MEMORY, "%s: out of memory while reading it", path);
    free(text);
    json_decref(top);
    if (!status) return t;
    qkv_tokenizer_free(t);
    return NULL;
}

/* ---- special tokens that only their names tell ---- */

static json_t *added_tokens(const json_t *vocab, const char *const *names)
{
    json_t *list = json_array();
    for (; *names; names++) {
        json_t *id = json_object_get(vocab, *names);
        if (id)
            json_array_append_new(list, json_pack("{s:O, s:s, s:b, s:b, s:b, s:b, s:b}", "id", id, "content", *names,
                                                  "single_word", 0, "lstrip", !strcmp(*names, QKV_SPECIAL_MASK), "rstrip", 0,
                                                  "normalized", 0, "special", 1));
    }
    return list;
}

/* [CLS] text [SEP], or what these are called, where the vocabulary has both; else null. */
static json_t *post_processor(const char *type, const json_t *vocab, const char *cls, const char *sep)
{
    json_t *first = json_object_get(vocab, cls), *last = json_object_get(vocab, sep);
    if (!first || !last) return json_null();
    return json_pack("{s:s, s:[s, O], s:[s, O]}", "type", type, "sep", sep, last, "cls", cls, first);
}

/* ---- vocab.json and merges.txt ---- */

static qkv_status next_line(const char *path, const qkv__bytes *file, size_t *at, const char **line, size_t *length,
                            int64_t number)
{
    const char *text = (const char *)file->data + *at, *end = memchr(text, '\n', file->size - *at);
    *line = text;
    *length = end ? (size_t)(end - text) : file->size - *at;
    *at += *length + (end != NULL);
    if (*length && text[*length - 1] == '\r') --*length;
    if (qkv_utf8_check(text, *length) == *length && !memchr(text, '\0', *length)) return QKV_OK;
    return qkv__fail(QKV_FORMAT, "%s: line %lld: it is not UTF-8, or has a NUL", path, (long long)number);
}

/* A merge a line; the first line may say a version. */
static qkv_status read_merges(const char *path, json_t *merges)
{
    qkv__bytes file;
    qkv_status status = qkv__file_read(path, FILE_MAX, &file);
    if (status) return status;
    int64_t number = 1;
    for (size_t at = 0, length; at < file.size && !status; number++) {
        const char *line;
        status = next_line(path, &file, &at, &line, &length, number);
        if (status || !length || (number == 1 && length > 8 && !memcmp(line, "#version", 8))) continue;
        if (json_array_append_new(merges, json_stringn(line, length)))
            status = qkv__fail(QKV_MEMORY, "%s: out of memory while reading it", path);
    }
    qkv__bytes_free(&file);
    return status;
}

static json_t *describe_byte_pairs(const json_t *vocab, json_t *merges, const json_t *config)
{
    static const char *const names[] = {
        QKV_SPECIAL_START, QKV_SPECIAL_PAD, QKV_SPECIAL_END, QKV_SPECIAL_UNKNOWN, QKV_SPECIAL_MASK, QKV_SPECIAL_GPT2_END, NULL
    };
    json_t *around = json_object_get(vocab, QKV_SPECIAL_MASK)
                         ? post_processor("RobertaProcessing", vocab, QKV_SPECIAL_START, QKV_SPECIAL_END)
                         : json_null();
    return json_pack("{s:o, s:n, s:{s:s, s:b, s:b, s:b}, s:o, s:{s:s}, s:{s:s, s:O, s:O}}", "added_tokens",
                     added_tokens(vocab, names), "normalizer", "pre_tokenizer", "type", "ByteLevel", "add_prefix_space",
                     qkv__flag(config, "add_prefix_space", false), "trim_offsets", 1, "use_regex", 1, "post_processor", around,
                     "decoder", "type", "ByteLevel", "model", "type", "BPE", "vocab", vocab, "merges", merges);
}

static qkv_tokenizer *load_byte_pairs(const char *path, const json_t *vocab)
{
    qkv_tokenizer *t = NULL;
    json_t *config = NULL, *merges = json_array();
    if (!ends_with(path, "vocab.json")) {
        qkv__fail(QKV_UNSUPPORTED, "%s: a vocabulary without merges: both are read from files named vocab.json and merges.txt",
                  path);
        json_decref(merges);
        return NULL;
    }
    char *name = beside(path, strlen("vocab.json"), "merges.txt");
    if (name && !read_merges(name, merges) && !read_config(path, &config))
        t = from_description(path, describe_byte_pairs(vocab, merges, config));
    qkv__release_text(name);
    json_decref(config);
    json_decref(merges);
    return t;
}

/* ---- vocab.txt ---- */

static qkv_status read_lines(const char *path, const qkv__bytes *file, json_t *vocab)
{
    qkv_status status = QKV_OK;
    qkv_text token = { 0 };
    int64_t number = 0;
    for (size_t at = 0, length; at < file->size && !status; number++) {
        const char *line;
        qkv__text_clear(&token);
        status = next_line(path, file, &at, &line, &length, number + 1);
        if (!status) status = qkv__text_put(&token, line, length);
        if (!status && json_object_get(vocab, token.data))
            status = qkv__fail(QKV_FORMAT, "%s: line %lld: \"%.200s\" is there twice", path, (long long)number + 1, token.data);
        if (!status && json_object_set_new(vocab, token.data, json_integer(number)))
            status = qkv__fail(QKV_MEMORY, "%s: out of memory while reading it", path);
    }
    qkv_text_free(&token);
    return status;
}

static json_t *describe_bert(json_t *vocab, const json_t *config)
{
    static const char *const names[] = { QKV_SPECIAL_BERT_PAD, QKV_SPECIAL_BERT_UNKNOWN, QKV_SPECIAL_BERT_START,
                                         QKV_SPECIAL_BERT_END, QKV_SPECIAL_BERT_MASK,    NULL };
    bool lower = qkv__flag(config, "do_lower_case", true);
    return json_pack("{s:o, s:{s:s, s:b, s:b, s:b, s:b}, s:{s:s}, s:o, s:{s:s, s:s, s:b}, s:{s:s, s:s, s:s, s:i, s:O}}",
                     "added_tokens", added_tokens(vocab, names), "normalizer", "type", "BertNormalizer", "clean_text", 1,
                     "handle_chinese_chars", qkv__flag(config, "tokenize_chinese_chars", true), "strip_accents",
                     qkv__flag(config, "strip_accents", lower), "lowercase", lower, "pre_tokenizer", "type", "BertPreTokenizer",
                     "post_processor", post_processor("BertProcessing", vocab, QKV_SPECIAL_BERT_START, QKV_SPECIAL_BERT_END),
                     "decoder", "type", "WordPiece", "prefix", "##", "cleanup", 1, "model", "type", "WordPiece", "unk_token",
                     QKV_SPECIAL_BERT_UNKNOWN, "continuing_subword_prefix", "##", "max_input_chars_per_word", 100, "vocab",
                     vocab);
}

static qkv_tokenizer *load_bert(const char *path, const qkv__bytes *file)
{
    qkv_tokenizer *t = NULL;
    json_t *config = NULL, *vocab = json_object();
    if (!read_lines(path, file, vocab) && !read_config(path, &config)) t = from_description(path, describe_bert(vocab, config));
    json_decref(config);
    json_decref(vocab);
    return t;
}

/* ---- SentencePiece ---- */

/* What goes around a text, as tokenizer_config.json says it; the classes of Llama and T5 have habits of their own. */
static qkv_status read_spm_template(const char *path, qkv_tokenizer *t)
{
    json_t *config = NULL;
    qkv_status status = read_config(path, &config);
    const char *class = json_string_value(json_object_get(config, "tokenizer_class"));
    bool first = qkv__flag(config, "add_bos_token", class && !strncmp(class, "Llama", 5));
    bool last = qkv__flag(config, "add_eos_token", class && !strncmp(class, "T5", 2));
    t->pipeline->template_is_said = class || json_object_get(config, "add_bos_token");
    int32_t begin = first ? qkv_tokenizer_find(t, QKV_SPECIAL_START) : -1,
            end = last ? qkv_tokenizer_find(t, QKV_SPECIAL_END) : -1;
    for (int two = 0; two < 2 && !status; two++) {
        qkv__template *f = two ? &t->pipeline->pair : &t->pipeline->single;
        for (int k = 0; k <= two && !status; k++) {
            if (begin >= 0) status = qkv__template_put(f, begin, 0);
            if (!status) status = qkv__template_put(f, k ? QKV__SECOND_TEXT : QKV__FIRST_TEXT, 0);
            if (!status && end >= 0) status = qkv__template_put(f, end, 0);
        }
    }
    json_decref(config);
    return status;
}

static qkv_tokenizer *load_spm(const char *path, const qkv__bytes *file)
{
    qkv_tokenizer *t = qkv__tokenizer_from_spm(path, file->data, file->size);
    if (!t || !read_spm_template(path, t)) return t;
    qkv_tokenizer_free(t);
    return NULL;
}

/* ---- any file ---- */

static bool is_vocabulary(const json_t *top)
{
    void *first = json_object_iter((json_t *)top);
    return first && !json_is_object(json_object_get(top, "model")) && json_is_integer(json_object_iter_value(first));
}

/* The NULs of JSON's strings become QKV__NUL_SIGN, which is written as long. Whether there was any. */
static bool replace_nuls(char *text, size_t length)
{
    bool found = false;
    for (size_t at = 0; at + 6 <= length; at++) {
        if (text[at] != '\\') continue;
        at++; /* what follows a backslash is no other one's */
        if (memcmp(text + at, "u0000", 5)) continue;
        memcpy(text + at, "ufdd0", 5);
        found = true;
    }
    return found;
}

/* The file is kept as it was, for saving. */
static qkv_status parse_vocabulary(const char *path, const qkv__bytes *file, json_t **top, bool *has_nul)
{
    qkv_text copy = { 0 };
    *has_nul = false;
    if (!memmem(file->data, file->size, "\\u0000", 6)) return parse_json(path, file, top);
    qkv_status status = qkv__text_put(&copy, file->data, file->size);
    if (status) return status;
    *has_nul = replace_nuls(copy.data, copy.length);
    status = parse_json(path, &(qkv__bytes){ .data = (unsigned char *)copy.data, .size = copy.length }, top);
    qkv_text_free(&copy);
    return status;
}

static qkv_tokenizer *load_json(const char *path, const qkv__bytes *file)
{
    json_t *top = NULL;
    bool has_nul;
    if (parse_vocabulary(path, file, &top, &has_nul)) return NULL;
    qkv_tokenizer *t = is_vocabulary(top) ? load_byte_pairs(path, top) : qkv__tokenizer_from_json(path, top, has_nul);
    json_decref(top);
    if (!t || !t->pipeline || t->pipeline->source.length) return t;
    if (!qkv__text_put(&t->pipeline->source, file->data, file->size)) return t;
    qkv_tokenizer_free(t);
    return NULL;
}

qkv_tokenizer *qkv__tokenizer_read(const char *name, const qkv_text *text)
{
    return load_json(name, &(qkv__bytes){ .data = (unsigned char *)text->data, .size = text->length });
}

/* Its first field is a piece, whose first field is its text. */
static bool is_spm(const char *path, const qkv__bytes *file)
{
    if (ends_with(path, ".json")) return false;
    return ends_with(path, ".spm") || ends_with(path, ".model") ||
           (file->size > 2 && file->data[0] == 0x0A && file->data[1] != 0x0A && file->data[2] == 0x0A);
}

qkv_tokenizer *qkv_tokenizer_load(const char *path)
{
    qkv__bytes file;
    qkv_tokenizer *t;
    if (!path) return qkv__fail(QKV_USAGE, "tokenizer: the path is NULL"), NULL;
    if (qkv__file_read(path, FILE_MAX, &file)) return NULL;
    if (ends_with(path, ".txt")) t = load_bert(path, &file);
    else if (is_spm(path, &file)) t = load_spm(path, &file);
    else t = load_json(path, &file);
    qkv__bytes_free(&file);
    return t;
}
