/* tokenizer_files.c: which file is what: tokenizers by their content and their name, and those of a model's folder. */
#include "tokenizer_json.h"

#include <qkv/unstable/util.h>

#include "../base/file.h"
#include "pipeline.h"
#include "json_rules.h"

#include <stdio.h>
#include <string.h>

#define FILE_MAX QKV__TOKENIZER_FILE_MAX

/* ---- paths ---- */

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && !strcmp(text + n - m, end);
}

/* The path with its last `cut` bytes replaced. qkv__release_text() it; NULL with the error set. */
static char *beside(const char *path, size_t cut, const char *name)
{
    qkv_buffer text = { 0 };
    char *copy = NULL;
    if (!qkv__buffer_put(&text, path, strlen(path) - cut) && !qkv__buffer_put(&text, name, strlen(name)))
        copy = qkv__copy_text(text.data);
    qkv_buffer_free(&text);
    return copy;
}

static size_t name_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? strlen(slash + 1) : strlen(path);
}

/* ---- JSON ---- */

/* Reads tokenizer_config.json from the folder of a file; empty without it. */
static qkv_status read_config(const char *path, qkv__json_doc *config)
{
    char *name = beside(path, name_length(path), "tokenizer_config.json");
    qkv_status status = name ? QKV_OK : QKV_MEMORY;
    *config = (qkv__json_doc){ 0 };
    if (!status && qkv__file_exists(name)) {
        status = qkv__json_load(name, FILE_MAX, config);
        if (!status && !qkv__json_is_object(config->top)) status = qkv__fail(QKV_FORMAT, "%s: it holds no object", name);
    }
    qkv__release_text(name);
    return status;
}

/* A tokenizer of a tokenizer.json that was made here, which it is saved as. The description is freed. */
static qkv_tokenizer *from_description(const char *path, qkv__json_writer *w)
{
    qkv_tokenizer *t = w->status ? NULL : qkv__tokenizer_from_json(path, w->text, w->length);
    qkv_status status = t && t->pipeline ? qkv__buffer_put(&t->pipeline->source, w->text, w->length) : QKV_OK;
    qkv__json_writer_free(w);
    if (!status) return t;
    qkv_tokenizer_free(t);
    return NULL;
}

/* ---- special tokens that only their names tell ---- */

enum { MOST_NAMES = 8 };

/* Names and their ids in a vocabulary; -1: not in it. */
typedef struct known_names {
    const char *names[MOST_NAMES];
    int64_t ids[MOST_NAMES];
    int n;
} known_names;

static int64_t id_of(const known_names *k, const char *name)
{
    for (int i = 0; i < k->n; i++)
        if (!strcmp(k->names[i], name)) return k->ids[i];
    return -1;
}

static void put_added_tokens(qkv__json_writer *w, const known_names *k)
{
    qkv__json_open_array(w, "added_tokens");
    for (int i = 0; i < k->n; i++) {
        if (k->ids[i] < 0) continue;
        qkv__json_open_object(w, NULL);
        qkv__json_put_int(w, "id", k->ids[i]);
        qkv__json_put_text(w, "content", k->names[i]);
        qkv__json_put_bool(w, "single_word", false);
        qkv__json_put_bool(w, "lstrip", !strcmp(k->names[i], QKV_SPECIAL_MASK));
        qkv__json_put_bool(w, "rstrip", false);
        qkv__json_put_bool(w, "normalized", false);
        qkv__json_put_bool(w, "special", true);
        qkv__json_close(w);
    }
    qkv__json_close(w);
}

static void put_token_and_id(qkv__json_writer *w, const char *key, const char *name, int64_t id)
{
    qkv__json_open_array(w, key);
    qkv__json_put_text(w, NULL, name);
    qkv__json_put_int(w, NULL, id);
    qkv__json_close(w);
}

/* [CLS] text [SEP], or what these are called, where the vocabulary has both; else null. */
static void put_post_processor(qkv__json_writer *w, const char *type, const known_names *k, const char *cls, const char *sep)
{
    int64_t first = id_of(k, cls), last = id_of(k, sep);
    if (first < 0 || last < 0) {
        qkv__json_put_null(w, "post_processor");
        return;
    }
    qkv__json_open_object(w, "post_processor");
    qkv__json_put_text(w, "type", type);
    put_token_and_id(w, "sep", sep, last);
    put_token_and_id(w, "cls", cls, first);
    qkv__json_close(w);
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
    if (qkv_utf8_valid(text, *length) == *length && !memchr(text, '\0', *length)) return QKV_OK;
    return qkv__fail(QKV_FORMAT, "%s: line %lld: it is not UTF-8, or has a NUL", path, (long long)number);
}

/* A merge a line; the first line may say a version. */
static qkv_status put_merges(qkv__json_writer *w, const char *path, const qkv__bytes *file)
{
    qkv_status status = QKV_OK;
    int64_t number = 1;
    qkv__json_open_array(w, "merges");
    for (size_t at = 0, length; at < file->size && !status; number++) {
        const char *line;
        status = next_line(path, file, &at, &line, &length, number);
        if (status || !length || (number == 1 && length > 8 && !memcmp(line, "#version", 8))) continue;
        qkv__json_put_string(w, NULL, line, length);
    }
    qkv__json_close(w);
    return status ? status : w->status;
}

/* Finds the ids of the names in a vocab.json, and copies all tokens to w unless it is NULL. */
static qkv_status copy_vocabulary(const qkv__json_source *source, known_names *k, qkv__json_writer *w)
{
    qkv__json_pull p;
    qkv_status status = QKV_OK;
    qkv__json_pull_begin(&p, source);
    qkv__json_next(&p);
    qkv__json_enter(&p);
    while (!status && qkv__json_next(&p)) {
        if (p.type != QKV__JSON_INT)
            status = qkv__fail(QKV_FORMAT, "%s: model.vocab: the id of \"%.*s\" is no whole number", source->name,
                               (int)(p.key_length < 200 ? p.key_length : 200), p.key);
        for (int i = 0; i < k->n; i++)
            if (p.key_length == strlen(k->names[i]) && !memcmp(p.key, k->names[i], p.key_length)) k->ids[i] = p.whole;
        if (w) qkv__json_put_key(w, p.key, p.key_length), qkv__json_put_int(w, NULL, p.whole);
    }
    if (!status) qkv__json_next(&p); /* the file ends here */
    qkv_status pulled = qkv__json_pull_end(&p);
    return status ? status : pulled;
}

static void put_byte_level(qkv__json_writer *w, const char *key)
{
    qkv__json_open_object(w, key);
    qkv__json_put_text(w, "type", "ByteLevel");
}

static qkv_status describe_byte_pairs(const qkv__json_source *vocab, const char *merges_path, const qkv__bytes *merges,
                                      const qkv__json_value *config, qkv__json_writer *w)
{
    known_names k = { { QKV_SPECIAL_START, QKV_SPECIAL_PAD, QKV_SPECIAL_END, QKV_SPECIAL_UNKNOWN, QKV_SPECIAL_MASK,
                        QKV_SPECIAL_GPT2_END },
                      { -1, -1, -1, -1, -1, -1 },
                      6 };
    qkv_status status = copy_vocabulary(vocab, &k, NULL);
    if (status) return status;
    qkv__json_open_object(w, NULL);
    put_added_tokens(w, &k);
    qkv__json_put_null(w, "normalizer");
    put_byte_level(w, "pre_tokenizer");
    qkv__json_put_bool(w, "add_prefix_space", qkv__flag(config, "add_prefix_space", false));
    qkv__json_put_bool(w, "trim_offsets", true);
    qkv__json_put_bool(w, "use_regex", true);
    qkv__json_close(w);
    if (id_of(&k, QKV_SPECIAL_MASK) < 0) qkv__json_put_null(w, "post_processor");
    else put_post_processor(w, "RobertaProcessing", &k, QKV_SPECIAL_START, QKV_SPECIAL_END);
    put_byte_level(w, "decoder");
    qkv__json_close(w);
    qkv__json_open_object(w, "model");
    qkv__json_put_text(w, "type", "BPE");
    qkv__json_open_object(w, "vocab");
    status = copy_vocabulary(vocab, &k, w);
    qkv__json_close(w);
    if (!status) status = put_merges(w, merges_path, merges);
    qkv__json_close(w);
    qkv__json_close(w);
    return status ? status : w->status;
}

static qkv_tokenizer *load_byte_pairs(const char *path, const qkv__bytes *file)
{
    const qkv__json_source vocab = {
        .name = path, .text = (const char *)file->data, .length = file->size, .flags = QKV__JSON_NUL
    };
    qkv_tokenizer *t = NULL;
    qkv__json_doc config = { 0 };
    qkv__json_writer w = { .style = QKV__JSON_LINES };
    qkv__bytes merges = { 0 };
    if (!ends_with(path, "vocab.json")) {
        qkv__fail(QKV_UNSUPPORTED, "%s: a vocabulary without merges: both are read from files named vocab.json and merges.txt",
                  path);
        return NULL;
    }
    char *name = beside(path, strlen("vocab.json"), "merges.txt");
    qkv_status status = name ? qkv__file_read(name, FILE_MAX, &merges) : QKV_MEMORY;
    if (!status) status = read_config(path, &config);
    if (!status) status = describe_byte_pairs(&vocab, name, &merges, config.top, &w);
    if (!status) t = from_description(path, &w);
    qkv__json_writer_free(&w);
    qkv__bytes_free(&merges);
    qkv__json_free(&config);
    qkv__release_text(name);
    return t;
}

/* ---- vocab.txt ---- */

/* One token per line; a tokenizer serves as index of the lines. */
static qkv_status read_lines(const char *path, const qkv__bytes *file, qkv_tokenizer **lines)
{
    qkv_status status = QKV_OK;
    const char *line;
    size_t n = 0, length;
    for (size_t at = 0; at < file->size && !status; n++) status = next_line(path, file, &at, &line, &length, (int64_t)n + 1);
    if (status) return status;
    if (n > INT32_MAX) return qkv__fail(QKV_LIMIT, "%s: %zu lines are too many", path, n);
    qkv_tokenizer *t = *lines = qkv__tokenizer_new(QKV_TOKEN_CHARACTERS, n, 0);
    if (!t) return QKV_MEMORY;
    n = 0;
    for (size_t at = 0; at < file->size && !status; n++) {
        next_line(path, file, &at, &line, &length, (int64_t)n + 1);
        status = qkv__tokenizer_set_bytes(t, (int32_t)n, line, length, false, false);
    }
    int32_t twice = -1;
    if (!status) status = qkv__tokenizer_sort(t, &twice);
    if (status || twice < 0) return status;
    return qkv__fail(QKV_FORMAT, "%s: line %d: \"%.200s\" is there twice", path, (int)twice + 1,
                     qkv__tokenizer_spelling(t, twice));
}

static void describe_bert(const qkv_tokenizer *lines, const qkv__json_value *config, qkv__json_writer *w)
{
    known_names k = { { QKV_SPECIAL_BERT_PAD, QKV_SPECIAL_BERT_UNKNOWN, QKV_SPECIAL_BERT_START, QKV_SPECIAL_BERT_END,
                        QKV_SPECIAL_BERT_MASK },
                      { 0 },
                      5 };
    bool lower = qkv__flag(config, "do_lower_case", true);
    for (int i = 0; i < k.n; i++) k.ids[i] = qkv_tokenizer_id(lines, k.names[i]);
    qkv__json_open_object(w, NULL);
    put_added_tokens(w, &k);
    qkv__json_open_object(w, "normalizer");
    qkv__json_put_text(w, "type", "BertNormalizer");
    qkv__json_put_bool(w, "clean_text", true);
    qkv__json_put_bool(w, "handle_chinese_chars", qkv__flag(config, "tokenize_chinese_chars", true));
    qkv__json_put_bool(w, "strip_accents", qkv__flag(config, "strip_accents", lower));
    qkv__json_put_bool(w, "lowercase", lower);
    qkv__json_close(w);
    qkv__json_open_object(w, "pre_tokenizer");
    qkv__json_put_text(w, "type", "BertPreTokenizer");
    qkv__json_close(w);
    put_post_processor(w, "BertProcessing", &k, QKV_SPECIAL_BERT_START, QKV_SPECIAL_BERT_END);
    qkv__json_open_object(w, "decoder");
    qkv__json_put_text(w, "type", "WordPiece");
    qkv__json_put_text(w, "prefix", "##");
    qkv__json_put_bool(w, "cleanup", true);
    qkv__json_close(w);
    qkv__json_open_object(w, "model");
    qkv__json_put_text(w, "type", "WordPiece");
    qkv__json_put_text(w, "unk_token", QKV_SPECIAL_BERT_UNKNOWN);
    qkv__json_put_text(w, "continuing_subword_prefix", "##");
    qkv__json_put_int(w, "max_input_chars_per_word", 100);
    qkv__json_open_object(w, "vocab");
    for (size_t i = 0; i < lines->n; i++) {
        qkv__json_put_key(w, qkv__tokenizer_spelling(lines, (int32_t)i), lines->tokens[i].spelling_length);
        qkv__json_put_int(w, NULL, (int64_t)i);
    }
    for (int i = 0; i < 3; i++) qkv__json_close(w);
}

static qkv_tokenizer *load_bert(const char *path, const qkv__bytes *file)
{
    qkv_tokenizer *t = NULL, *lines = NULL;
    qkv__json_doc config = { 0 };
    qkv__json_writer w = { .style = QKV__JSON_LINES };
    if (!read_lines(path, file, &lines) && !read_config(path, &config)) {
        describe_bert(lines, config.top, &w);
        t = from_description(path, &w);
    }
    qkv__json_writer_free(&w);
    qkv__json_free(&config);
    qkv_tokenizer_free(lines);
    return t;
}

/* ---- SentencePiece ---- */

/* What goes around a text, as tokenizer_config.json says it; the classes of Llama and T5 have habits of their own. */
static qkv_status read_spm_template(const char *path, qkv_tokenizer *t)
{
    qkv__json_doc config;
    qkv_status status = read_config(path, &config);
    const char *class = qkv__json_get_text(config.top, "tokenizer_class");
    bool first = qkv__flag(config.top, "add_bos_token", class && !strncmp(class, "Llama", 5));
    bool last = qkv__flag(config.top, "add_eos_token", class && !strncmp(class, "T5", 2));
    t->pipeline->template_is_said = class || qkv__json_get(config.top, "add_bos_token");
    int32_t begin = first ? qkv_tokenizer_id(t, QKV_SPECIAL_START) : -1, end = last ? qkv_tokenizer_id(t, QKV_SPECIAL_END) : -1;
    for (int two = 0; two < 2 && !status; two++) {
        qkv__template *f = two ? &t->pipeline->pair : &t->pipeline->single;
        for (int k = 0; k <= two && !status; k++) {
            if (begin >= 0) status = qkv__template_put(f, begin, 0);
            if (!status) status = qkv__template_put(f, k ? QKV__SECOND_TEXT : QKV__FIRST_TEXT, 0);
            if (!status && end >= 0) status = qkv__template_put(f, end, 0);
        }
    }
    qkv__json_free(&config);
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

/* An object of tokens and ids, without a "model" object. */
static bool is_vocabulary(const char *path, const qkv__bytes *file)
{
    const qkv__json_source source = {
        .name = path, .text = (const char *)file->data, .length = file->size, .flags = QKV__JSON_NUL
    };
    qkv__json_pull p;
    qkv__json_pull_begin(&p, &source);
    bool is_object = qkv__json_next(&p) == QKV__JSON_OBJECT, has_model = false;
    qkv__json_enter(&p);
    bool has_id = is_object && qkv__json_next(&p) == QKV__JSON_INT;
    while (has_id && !has_model && qkv__json_next(&p))
        has_model = p.type == QKV__JSON_OBJECT && p.key_length == 5 && !memcmp(p.key, "model", 5);
    return !qkv__json_pull_end(&p) && has_id && !has_model;
}

static qkv_tokenizer *load_json(const char *path, const qkv__bytes *file)
{
    qkv_tokenizer *t = is_vocabulary(path, file) ? load_byte_pairs(path, file)
                                                 : qkv__tokenizer_from_json(path, (const char *)file->data, file->size);
    if (!t || !t->pipeline || t->pipeline->source.length) return t;
    if (!qkv__buffer_put(&t->pipeline->source, file->data, file->size)) return t;
    qkv_tokenizer_free(t);
    return NULL;
}

qkv_tokenizer *qkv__tokenizer_read(const char *name, const qkv_buffer *text)
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
