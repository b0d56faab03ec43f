/* tokenizer_folder.c: the tokenizers of a model's folder. */
#include "../base/file.h"

#include <qkv/unstable/util.h>
#include "pipeline.h"
#include "tokenizer_json.h"

#include <string.h>

static char *path_of(const char *folder, const char *name)
{
    qkv_buffer text = { 0 };
    char *copy = NULL;
    if (!qkv__buffer_put(&text, folder, strlen(folder)) && !qkv__buffer_put(&text, "/", 1) &&
        !qkv__buffer_put(&text, name, strlen(name)))
        copy = qkv__copy_text(text.data);
    qkv_buffer_free(&text);
    return copy;
}

/* MEMORY; false where it is not there. */
static qkv_status has(const char *folder, const char *name, bool *is_there)
{
    char *path = path_of(folder, name);
    *is_there = path && qkv__file_exists(path);
    qkv__release_text(path);
    return path ? QKV_OK : QKV_MEMORY;
}

static qkv_status load_in_folder(const char *folder, const char *name, qkv_tokenizer **t)
{
    char *path = path_of(folder, name);
    if (!path) return QKV_MEMORY;
    *t = qkv_tokenizer_load(path);
    qkv__release_text(path);
    return *t ? QKV_OK : qkv_error_status();
}

/* ---- OPUS-MT: SentencePiece cuts, vocab.json numbers ---- */

static bool has_around(const char *spelling, const char *before, const char *after)
{
    size_t n = strlen(spelling);
    return n > 4 && !memcmp(spelling, before, 2) && !strcmp(spelling + n - 2, after);
}

/* OPUS-MT's >>deu<< is written into texts; M2M-100's __de__ is not. */
static bool is_written_code(const char *spelling) { return has_around(spelling, ">>", "<<"); }
static bool is_special_code(const char *spelling) { return has_around(spelling, "__", "__"); }

static qkv_status set_token(const char *path, qkv_tokenizer *t, const char *spelling, bool is_whole, int64_t id)
{
    if (!is_whole || id < 0 || (uint64_t)id >= t->n)
        return qkv__fail(QKV_FORMAT, "%s: \"%.200s\" has no id below %zu, the number of tokens", path, spelling, t->n);
    if (t->tokens[id].is_set)
        return qkv__fail(QKV_FORMAT, "%s: \"%.200s\" and \"%.200s\" both have the id %d", path,
                         qkv__tokenizer_spelling(t, (int32_t)id), spelling, (int)id);
    bool special = !strcmp(spelling, QKV_SPECIAL_END) || !strcmp(spelling, QKV_SPECIAL_UNKNOWN) ||
                   !strcmp(spelling, QKV_SPECIAL_PAD) || is_special_code(spelling);
    return qkv__tokenizer_set(t, (int32_t)id, spelling, special || is_written_code(spelling), special);
}

/* A vocabulary file. It is pulled, never a tree. */
typedef struct numbered {
    qkv__json_source source;
    qkv__bytes file;
    size_t n; /* tokens in it */
} numbered;

/* Copies the tokens to t (NULL: only counts them). */
static qkv_status read_tokens(const numbered *v, qkv_tokenizer *t, size_t *n)
{
    qkv__json_pull p;
    qkv_buffer spelling = { 0 };
    qkv_status status = QKV_OK;
    qkv__json_pull_begin(&p, &v->source);
    if (qkv__json_next(&p) != QKV__JSON_OBJECT && !p.status)
        status = qkv__fail(QKV_FORMAT, "%s: it holds no object", v->source.name);
    qkv__json_enter(&p);
    for (*n = 0; !status && qkv__json_next(&p); ++*n) {
        if (!t) continue;
        qkv__buffer_clear(&spelling);
        bool is_whole = p.type == QKV__JSON_INT;
        status = qkv__buffer_put(&spelling, p.key, p.key_length);
        if (!status) status = set_token(v->source.name, t, spelling.data, is_whole, p.whole);
    }
    if (!status) qkv__json_next(&p); /* the file ends here */
    qkv_buffer_free(&spelling);
    qkv_status pulled = qkv__json_pull_end(&p);
    return status ? status : pulled;
}

/* M2M-100 appends its language codes, in the order of special_tokens_map.json, to the vocabulary. */
static qkv_status set_languages(const numbered *v, qkv_tokenizer *t, const char *path, const qkv__json_value *codes)
{
    qkv_status status = QKV_OK;
    for (size_t i = 0; i < qkv__json_size(codes) && !status; i++) {
        const char *spelling = qkv__json_text(qkv__json_at(codes, i));
        if (!spelling || !is_special_code(spelling))
            status = qkv__fail(QKV_FORMAT, "%s: token %zu of \"additional_special_tokens\" is no new code of a language", path,
                               i);
        else status = set_token(v->source.name, t, spelling, true, (int64_t)(v->n + i));
    }
    return status;
}

static qkv_status set_tokens(const numbered *v, qkv_tokenizer *t, const char *list, const qkv__json_value *codes)
{
    int32_t twice;
    size_t n;
    qkv_status status = read_tokens(v, t, &n);
    if (!status) status = set_languages(v, t, list, codes);
    if (!status) status = qkv__tokenizer_sort(t, &twice);
    if (status) return status;
    if (twice >= 0 && (size_t)twice >= v->n)
        return qkv__fail(QKV_FORMAT, "%s: token %zu of \"additional_special_tokens\" is no new code of a language", list,
                         (size_t)twice - v->n);
    if (twice >= 0) return qkv__refuse_repeated(v->source.name, qkv__tokenizer_spelling(t, twice));
    t->unknown = qkv_tokenizer_id(t, QKV_SPECIAL_UNKNOWN);
    return t->unknown >= 0 ? QKV_OK : qkv__fail(QKV_FORMAT, "%s: it has no " QKV_SPECIAL_UNKNOWN, v->source.name);
}

/* What SentencePiece knows but the vocabulary does not is unknown too. */
static qkv_status number_pieces(qkv_tokenizer *t)
{
    const qkv_tokenizer *pieces = t->pipeline->pieces;
    int32_t *ids = t->pipeline->ids_of_pieces = qkv__alloc(pieces->n * sizeof *ids);
    if (!ids) return QKV_MEMORY;
    for (size_t i = 0; i < pieces->n; i++) {
        int32_t id = qkv_tokenizer_id(t, qkv__tokenizer_spelling(pieces, (int32_t)i));
        ids[i] = id < 0 ? t->unknown : id;
    }
    return QKV_OK;
}

/* Signs become spaces again, and none is left at the ends. */
static qkv_status add_decoders(qkv__pipeline *p)
{
    qkv__rewrite *const rewrites[] = { qkv__replace, qkv__decode_fuse, qkv__strip };
    for (int i = 0; i < 3; i++) {
        qkv__step *s = qkv__steps_add(&p->decoders);
        if (!s) return QKV_MEMORY;
        s->rewrite = rewrites[i];
        s->left = s->right = true;
        if (!i && (!(s->text = qkv__copy_text("\xE2\x96\x81")) || !(s->content = qkv__copy_text(" ")))) return QKV_MEMORY;
    }
    return QKV_OK;
}

static qkv_status add_end(qkv_tokenizer *t)
{
    int32_t end = qkv_tokenizer_id(t, QKV_SPECIAL_END);
    qkv__template *frames[] = { &t->pipeline->single, &t->pipeline->pair };
    qkv_status status = QKV_OK;
    for (int i = 0; i < 2 && !status; i++) {
        status = qkv__template_put(frames[i], QKV__FIRST_TEXT, 0);
        if (!status && i) status = qkv__template_put(frames[i], QKV__SECOND_TEXT, 0);
        if (!status && end >= 0) status = qkv__template_put(frames[i], end, 0);
    }
    return status;
}

static qkv_status make_numbered(const numbered *v, const char *list, const qkv__json_value *codes, qkv_tokenizer **pieces,
                                qkv_tokenizer **made)
{
    qkv_tokenizer *t = *made = qkv__tokenizer_new(QKV_TOKEN_PUBLISHED, v->n + qkv__json_size(codes), 0);
    if (!t || !(t->pipeline = qkv__alloc_zero(sizeof *t->pipeline))) return QKV_MEMORY;
    t->pipeline->pieces = *pieces;
    *pieces = NULL;
    qkv_status status = set_tokens(v, t, list, codes);
    if (!status) status = number_pieces(t);
    if (!status) status = add_decoders(t->pipeline);
    if (!status) status = add_end(t);
    return status ? status : qkv__pipeline_finish(t);
}

/* languages: the file that lists them, where there is one; NULL: there are none. */
static qkv_status load_numbered(const char *folder, const char *spm, const char *vocabulary, const char *languages,
                                qkv_tokenizer **t)
{
    qkv_tokenizer *pieces = NULL;
    numbered v = { .n = 0 };
    qkv__json_doc map = { 0 };
    char *path = path_of(folder, vocabulary), *list = languages ? path_of(folder, languages) : NULL;
    qkv_status status = path && !list == !languages ? load_in_folder(folder, spm, &pieces) : QKV_MEMORY;
    if (!status) status = qkv__file_read(path, QKV__TOKENIZER_FILE_MAX, &v.file);
    v.source = (qkv__json_source){ .name = path, .text = (const char *)v.file.data, .length = v.file.size };
    if (!status) status = read_tokens(&v, NULL, &v.n);
    if (!status && list && qkv__file_exists(list)) status = qkv__json_load(list, QKV__TOKENIZER_FILE_MAX, &map);
    const qkv__json_value *codes = qkv__json_get(map.top, "additional_special_tokens");
    if (!status) status = make_numbered(&v, list, qkv__json_is_array(codes) ? codes : NULL, &pieces, t);
    qkv__bytes_free(&v.file);
    qkv__json_free(&map);
    qkv_tokenizer_free(pieces);
    qkv__release_text(path);
    qkv__release_text(list);
    return status;
}

static qkv_status load_opus(const char *folder, qkv_tokenizer **source, qkv_tokenizer **target)
{
    bool separate;
    qkv_status status = has(folder, "target_vocab.json", &separate);
    if (!status) status = load_numbered(folder, "source.spm", "vocab.json", NULL, source);
    return status ? status : load_numbered(folder, "target.spm", separate ? "target_vocab.json" : "vocab.json", NULL, target);
}

static qkv_status load_m2m(const char *folder, qkv_tokenizer **source, qkv_tokenizer **target)
{
    (void)target;
    return load_numbered(folder, "sentencepiece.bpe.model", "vocab.json", "special_tokens_map.json", source);
}

/* ---- any folder ---- */

static qkv_status load_json(const char *folder, qkv_tokenizer **source, qkv_tokenizer **target)
{
    bool two;
    qkv_status status = has(folder, "target_tokenizer.json", &two);
    if (!status) status = load_in_folder(folder, "tokenizer.json", source);
    return status || !two ? status : load_in_folder(folder, "target_tokenizer.json", target);
}

static qkv_status load_byte_pairs(const char *folder, qkv_tokenizer **source, qkv_tokenizer **target)
{
    (void)target;
    return load_in_folder(folder, "vocab.json", source);
}

static qkv_status load_bert(const char *folder, qkv_tokenizer **source, qkv_tokenizer **target)
{
    (void)target;
    return load_in_folder(folder, "vocab.txt", source);
}

/* The first *.model, unless one has the name that most have. */
static qkv_status load_spm(const char *folder, qkv_tokenizer **source)
{
    static const char *const usual[] = { "tokenizer.model", "spiece.model" };
    qkv__names names;
    const char *name = NULL;
    qkv_status status = qkv__folder_list(folder, &names);
    for (int k = 0; k < 3 && !status && !name; k++)
        for (size_t i = 0; i < names.n && !name; i++) {
            size_t n = strlen(names.at[i]);
            bool fits = k < 2 ? !strcmp(names.at[i], usual[k]) : n > 6 && !strcmp(names.at[i] + n - 6, ".model");
            if (fits) name = names.at[i];
        }
    if (!status && name) status = load_in_folder(folder, name, source);
    qkv__names_free(&names);
    return status;
}

static const struct {
    const char *files[3];
    qkv_status (*load)(const char *folder, qkv_tokenizer **source, qkv_tokenizer **target);
} kinds[] = { { { "tokenizer.json" }, load_json },
              { { "source.spm", "target.spm", "vocab.json" }, load_opus },
              { { "sentencepiece.bpe.model", "vocab.json" }, load_m2m },
              { { "vocab.json", "merges.txt" }, load_byte_pairs },
              { { "vocab.txt" }, load_bert } };

qkv_status qkv_tokenizers_load(const char *folder, qkv_tokenizer **source, qkv_tokenizer **target)
{
    if (!folder || !source || !target) return qkv__fail(QKV_USAGE, "tokenizers: folder or result is NULL");
    bool found = false;
    qkv_status status = QKV_OK;
    *source = *target = NULL;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && !found && !status; i++) {
        found = true;
        for (int k = 0; k < 3 && kinds[i].files[k] && found && !status; k++) status = has(folder, kinds[i].files[k], &found);
        if (found && !status) status = kinds[i].load(folder, source, target);
    }
    if (!found && !status) status = load_spm(folder, source);
    if (!status) return QKV_OK;
    qkv_tokenizer_free(*source);
    qkv_tokenizer_free(*target);
    *source = *target = NULL;
    return status;
}
