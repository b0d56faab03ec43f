/* tokenizer_save.c: writes a tokenizer.json. */
#include "tokenizer_json.h"
#include "units.h"

#include "../base/file.h"
#include "pipeline.h"

#include <stdio.h>
#include <string.h>

typedef struct output {
    qkv_text text;
    qkv_status status;  /* the first error; nothing is put after it */
    const char *around; /* "post_processor" */
} output;

static void write_bytes(output *o, const char *bytes, size_t n)
{
    if (!o->status) o->status = qkv__text_put(&o->text, bytes, n);
}

static void write_string(output *o, const char *text) { write_bytes(o, text, strlen(text)); }

static void put_inside_quotes(output *o, const char *text)
{
    for (; *text; text++) {
        char escape[8];
        if ((unsigned char)*text < 0x20)
            snprintf(escape, sizeof escape, "\\u%04x", (unsigned char)*text), write_string(o, escape);
        else if (*text == '"' || *text == '\\') write_bytes(o, (const char[]){ '\\', *text }, 2);
        else write_bytes(o, text, 1);
    }
}

static void put_quoted(output *o, const char *text)
{
    write_string(o, "\"");
    put_inside_quotes(o, text);
    write_string(o, "\"");
}

static void write_number(output *o, size_t n)
{
    char text[24];
    snprintf(text, sizeof text, "%zu", n);
    write_string(o, text);
}

static void put_added(output *o, const qkv_tokenizer *t)
{
    const char *before = "\n";
    for (size_t id = 0; id < t->n; id++) {
        if (!t->tokens[id].is_added) continue;
        write_string(o, before);
        write_string(o, "    { \"id\": ");
        write_number(o, id);
        write_string(o, ", \"content\": ");
        put_quoted(o, qkv__tokenizer_spelling(t, (int32_t)id));
        write_string(o, ", \"single_word\": false, \"lstrip\": false, \"rstrip\": false, \"normalized\": false, \"special\": ");
        write_string(o, t->tokens[id].is_special ? "true }" : "false }");
        before = ",\n";
    }
}

static void put_byte_level(output *o, const char *key, bool prefix_space, bool use_regex)
{
    write_string(o, "  \"");
    write_string(o, key);
    write_string(o, "\": { \"type\": \"ByteLevel\", \"add_prefix_space\": ");
    write_string(o, prefix_space ? "true" : "false");
    write_string(o, ", \"trim_offsets\": false, \"use_regex\": ");
    write_string(o, use_regex ? "true },\n" : "false },\n");
}

/* Added tokens are in the vocabulary as well: Hugging Face's reader numbers those that are not by itself. */
static void put_vocab(output *o, const qkv_tokenizer *t)
{
    for (size_t id = 0; id < t->n; id++) {
        write_string(o, id ? ",\n      " : "\n      ");
        put_quoted(o, qkv__tokenizer_spelling(t, (int32_t)id));
        write_string(o, ": ");
        write_number(o, id);
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
        write_string(o, i ? ",\n      " : "\n      ");
        write_string(o, pairs ? "[\"" : "\"");
        put_inside_quotes(o, qkv__tokenizer_spelling(t, t->merges[i].left));
        write_string(o, pairs ? "\", \"" : " ");
        put_inside_quotes(o, qkv__tokenizer_spelling(t, t->merges[i].right));
        write_string(o, pairs ? "\"]" : "\"");
    }
}

static void put_around(output *o)
{
    write_string(o, "  \"post_processor\": ");
    write_string(o, o->around);
    write_string(o, ",\n");
}

static void put_bpe(output *o, const qkv_tokenizer *t)
{
    write_string(o, "  \"normalizer\": null,\n");
    put_byte_level(o, "pre_tokenizer", t->prefix_space, !t->whole_text);
    put_around(o);
    put_byte_level(o, "decoder", false, true);
    write_string(o, "  \"model\": {\n    \"type\": \"BPE\",\n    \"dropout\": null,\n    \"unk_token\": ");
    if (t->unknown < 0) write_string(o, "null");
    else put_quoted(o, qkv__tokenizer_spelling(t, t->unknown));
    write_string(o, ",\n    \"continuing_subword_prefix\": null,\n    \"end_of_word_suffix\": null,\n    \"fuse_unk\": false,\n"
                    "    \"byte_fallback\": false,\n    \"vocab\": {");
    put_vocab(o, t);
    write_string(o, "\n    },\n    \"merges\": [");
    put_merges(o, t);
    write_string(o, "\n    ]\n  }\n");
}

static void put_word_level(output *o, const qkv_tokenizer *t)
{
    bool has_words = qkv__has_lower_words(t->kind);
    if (has_words) {
        write_string(o, "  \"normalizer\": { \"type\": \"Lowercase\" },\n  \"pre_tokenizer\": { \"type\": \"");
        write_string(o, t->kind == QKV_TOKEN_WORDS ? "WhitespaceSplit\" },\n" : "BertPreTokenizer\" },\n");
    } else {
        write_string(o, "  \"normalizer\": null,\n  \"pre_tokenizer\": { \"type\": \"Split\", \"pattern\": { \"Regex\": ");
        put_quoted(o, QKV__ANY_CHARACTER);
        write_string(o, " }, \"behavior\": \"Isolated\", \"invert\": false },\n");
    }
    put_around(o);
    write_string(o, has_words ? "  \"decoder\": null,\n" : "  \"decoder\": { \"type\": \"Fuse\" },\n");
    write_string(o, "  \"model\": {\n    \"type\": \"WordLevel\",\n    \"unk_token\": ");
    put_quoted(o, qkv__tokenizer_spelling(t, t->unknown));
    write_string(o, ",\n    \"vocab\": {");
    put_vocab(o, t);
    write_string(o, "\n    }\n  }\n");
}

static void put_tokenizer(output *o, const qkv_tokenizer *t)
{
    write_string(o, "{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n  \"padding\": null,\n  \"added_tokens\": [");
    put_added(o, t);
    write_string(o, "\n  ],\n");
    if (t->kind == QKV_TOKEN_BYTE_PAIRS) put_bpe(o, t);
    else put_word_level(o, t);
    write_string(o, "}\n");
}

bool qkv__tokenizer_is_json(const qkv_tokenizer *t) { return !t->pipeline || t->pipeline->source.length; }

qkv_status qkv_tokenizer_save(const qkv_tokenizer *t, const char *path) { return qkv__tokenizer_save_framed(t, path, "null"); }

static qkv_status write_framed(const qkv_tokenizer *t, const char *name, const char *post_processor, qkv_text *out)
{
    output o = { .around = post_processor };
    if (!qkv__tokenizer_is_json(t))
        return qkv__fail(QKV_UNSUPPORTED, "%s: a SentencePiece tokenizer cannot be written as a tokenizer.json", name);
    if (t->pipeline) write_bytes(&o, t->pipeline->source.data, t->pipeline->source.length);
    else put_tokenizer(&o, t);
    *out = o.text;
    return o.status;
}

qkv_status qkv__tokenizer_write(const qkv_tokenizer *t, qkv_text *out) { return write_framed(t, "tokenizer", "null", out); }

qkv_status qkv__tokenizer_save_framed(const qkv_tokenizer *t, const char *path, const char *post_processor)
{
    qkv_text text = { 0 };
    if (!t || !path) return qkv__fail(QKV_USAGE, "tokenizer: tokenizer or path is NULL");
    qkv_status status = write_framed(t, path, post_processor, &text);
    if (!status) status = qkv_file_write(path, text.data, text.length);
    qkv_text_free(&text);
    return status;
}
