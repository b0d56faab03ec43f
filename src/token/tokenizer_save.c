/* tokenizer_save.c: writes a tokenizer.json. */
#include "tokenizer_json.h"

#include <qkv/unstable/util.h>
#include "units.h"

#include "../base/file.h"
#include "pipeline.h"

#include <string.h>

/* Opens an object on one line; end_type() closes it and returns to LINES. */
static void put_type(qkv__json_writer *w, const char *key, const char *type)
{
    w->style = QKV__JSON_PADDED;
    qkv__json_open_object(w, key);
    if (type) qkv__json_put_text(w, "type", type);
}

static void end_type(qkv__json_writer *w)
{
    qkv__json_close(w);
    w->style = QKV__JSON_LINES;
}

static void put_added(qkv__json_writer *w, const qkv_tokenizer *t)
{
    qkv__json_open_array(w, "added_tokens");
    for (size_t id = 0; id < t->n; id++) {
        if (!t->tokens[id].is_added) continue;
        put_type(w, NULL, NULL);
        qkv__json_put_int(w, "id", (int64_t)id);
        qkv__json_put_text(w, "content", qkv__tokenizer_spelling(t, (int32_t)id));
        qkv__json_put_bool(w, "single_word", false);
        qkv__json_put_bool(w, "lstrip", false);
        qkv__json_put_bool(w, "rstrip", false);
        qkv__json_put_bool(w, "normalized", false);
        qkv__json_put_bool(w, "special", t->tokens[id].is_special);
        end_type(w);
    }
    qkv__json_close(w);
}

static void put_byte_level(qkv__json_writer *w, const char *key, bool prefix_space, bool use_regex)
{
    put_type(w, key, "ByteLevel");
    qkv__json_put_bool(w, "add_prefix_space", prefix_space);
    qkv__json_put_bool(w, "trim_offsets", false);
    qkv__json_put_bool(w, "use_regex", use_regex);
    end_type(w);
}

/* Added tokens are in the vocabulary as well: Hugging Face's reader numbers those that are not by itself. */
static void put_vocab(qkv__json_writer *w, const qkv_tokenizer *t)
{
    qkv__json_open_object(w, "vocab");
    for (size_t id = 0; id < t->n; id++) qkv__json_put_int(w, qkv__tokenizer_spelling(t, (int32_t)id), (int64_t)id);
    qkv__json_close(w);
}

/* Older readers know only "left right"; a token with a space in it needs the newer ["left", "right"]. */
static bool merges_need_pairs(const qkv_tokenizer *t)
{
    for (size_t i = 0; i < t->n_merges; i++)
        if (strchr(qkv__tokenizer_spelling(t, t->merges[i].made), ' ')) return true;
    return false;
}

static void put_merges(qkv__json_writer *w, const qkv_tokenizer *t)
{
    bool pairs = merges_need_pairs(t);
    qkv_buffer both = { 0 };
    qkv__json_open_array(w, "merges");
    for (size_t i = 0; i < t->n_merges && !w->status; i++) {
        const char *left = qkv__tokenizer_spelling(t, t->merges[i].left);
        const char *right = qkv__tokenizer_spelling(t, t->merges[i].right);
        if (pairs) {
            w->style = QKV__JSON_SPACED;
            qkv__json_open_array(w, NULL);
            qkv__json_put_text(w, NULL, left);
            qkv__json_put_text(w, NULL, right);
            end_type(w);
            continue;
        }
        qkv__buffer_clear(&both);
        w->status = qkv__buffer_put(&both, left, strlen(left));
        if (!w->status) w->status = qkv__buffer_put(&both, " ", 1);
        if (!w->status) w->status = qkv__buffer_put(&both, right, strlen(right));
        if (!w->status) qkv__json_put_string(w, NULL, both.data, both.length);
    }
    qkv__json_close(w);
    qkv_buffer_free(&both);
}

static void put_unknown(qkv__json_writer *w, const qkv_tokenizer *t)
{
    if (t->unknown < 0) qkv__json_put_null(w, "unk_token");
    else qkv__json_put_text(w, "unk_token", qkv__tokenizer_spelling(t, t->unknown));
}

static void put_bpe(qkv__json_writer *w, const qkv_tokenizer *t, const char *around)
{
    qkv__json_put_null(w, "normalizer");
    put_byte_level(w, "pre_tokenizer", t->prefix_space, !t->whole_text);
    qkv__json_put_raw(w, "post_processor", around, strlen(around));
    put_byte_level(w, "decoder", false, true);
    qkv__json_open_object(w, "model");
    qkv__json_put_text(w, "type", "BPE");
    qkv__json_put_null(w, "dropout");
    put_unknown(w, t);
    qkv__json_put_null(w, "continuing_subword_prefix");
    qkv__json_put_null(w, "end_of_word_suffix");
    qkv__json_put_bool(w, "fuse_unk", false);
    qkv__json_put_bool(w, "byte_fallback", false);
    put_vocab(w, t);
    put_merges(w, t);
    qkv__json_close(w);
}

static void put_word_level(qkv__json_writer *w, const qkv_tokenizer *t, const char *around)
{
    bool has_words = qkv__has_lower_words(t->kind);
    if (has_words) {
        put_type(w, "normalizer", "Lowercase");
        end_type(w);
        put_type(w, "pre_tokenizer", t->kind == QKV_TOKEN_WORDS ? "WhitespaceSplit" : "BertPreTokenizer");
        end_type(w);
    } else {
        qkv__json_put_null(w, "normalizer");
        put_type(w, "pre_tokenizer", "Split");
        qkv__json_open_object(w, "pattern");
        qkv__json_put_text(w, "Regex", QKV__ANY_CHARACTER);
        qkv__json_close(w);
        qkv__json_put_text(w, "behavior", "Isolated");
        qkv__json_put_bool(w, "invert", false);
        end_type(w);
    }
    qkv__json_put_raw(w, "post_processor", around, strlen(around));
    if (has_words) qkv__json_put_null(w, "decoder");
    else put_type(w, "decoder", "Fuse"), end_type(w);
    qkv__json_open_object(w, "model");
    qkv__json_put_text(w, "type", "WordLevel");
    put_unknown(w, t);
    put_vocab(w, t);
    qkv__json_close(w);
}

static void put_tokenizer(qkv__json_writer *w, const qkv_tokenizer *t, const char *around)
{
    qkv__json_open_object(w, NULL);
    qkv__json_put_text(w, "version", "1.0");
    qkv__json_put_null(w, "truncation");
    qkv__json_put_null(w, "padding");
    put_added(w, t);
    if (t->kind == QKV_TOKEN_BPE) put_bpe(w, t, around);
    else put_word_level(w, t, around);
    qkv__json_close(w);
}

bool qkv__tokenizer_is_json(const qkv_tokenizer *t) { return !t->pipeline || t->pipeline->source.length; }

qkv_status qkv_tokenizer_save(const qkv_tokenizer *t, const char *path) { return qkv__tokenizer_save_framed(t, path, "null"); }

static qkv_status write_framed(const qkv_tokenizer *t, const char *name, const char *post_processor, qkv_buffer *out)
{
    qkv__json_writer w = { .style = QKV__JSON_LINES, .long_escapes = true, .wraps_empty = true };
    if (!qkv__tokenizer_is_json(t))
        return qkv__fail(QKV_UNSUPPORTED, "%s: a SentencePiece tokenizer cannot be written as a tokenizer.json", name);
    if (t->pipeline) return qkv__buffer_put(out, t->pipeline->source.data, t->pipeline->source.length);
    put_tokenizer(&w, t, post_processor);
    *out = (qkv_buffer){ w.text, w.length, w.capacity };
    return w.status ? w.status : qkv__buffer_put(out, "\n", 1);
}

qkv_status qkv__tokenizer_write(const qkv_tokenizer *t, qkv_buffer *out) { return write_framed(t, "tokenizer", "null", out); }

qkv_status qkv__tokenizer_save_framed(const qkv_tokenizer *t, const char *path, const char *post_processor)
{
    qkv_buffer text = { 0 };
    if (!t || !path) return qkv__fail(QKV_USAGE, "tokenizer: tokenizer or path is NULL");
    qkv_status status = write_framed(t, path, post_processor, &text);
    if (!status) status = qkv_file_write(path, text.data, text.length);
    qkv_buffer_free(&text);
    return status;
}
