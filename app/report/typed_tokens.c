/* typed_tokens.c: tokens and ids as lines that people read and type. */
#include "tokens.h"

#include <qkv/unstable/util.h>
#include "out.h"
#include "../../src/base/memory.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool is_style(qkv_token_style style) { return (unsigned)style <= QKV_TOKEN_STYLE_ID; }

/* ---- ids to a line ---- */

static qkv_status put_token(qkv__out *out, const qkv_tokenizer *t, int32_t id, qkv_token_style style, qkv_text **shown)
{
    const char *token = qkv_tokenizer_token(t, id);
    if (style == QKV_TOKEN_STYLE_SHOWN || !token) { /* which refuses an id that is none */
        qkv_status status = qkv_tokenizer_show(t, id, shown);
        if (status) return status;
        token = (*shown)->data;
    }
    if (style == QKV_TOKEN_STYLE_ID) qkv__out_printf(out, "%d", id);
    else qkv__out_bytes(out, token, strlen(token));
    return QKV_OK;
}

qkv_status qkv_tokens_text(const qkv_tokenizer *t, const int32_t *ids, size_t n, qkv_token_style style, qkv_buffer *out)
{
    qkv_text *shown = NULL;
    qkv_status status = QKV_OK;
    if (!t || (n && !ids) || !out || !is_style(style))
        return qkv__fail(QKV_USAGE, "tokens: a tokenizer, ids, a style and a place for the line are needed");
    qkv__out line = qkv__out_begin(out);
    for (size_t i = 0; i < n && !status; i++) {
        if (i) qkv__out_bytes(&line, " ", 1);
        status = put_token(&line, t, ids[i], style, &shown);
    }
    qkv_free(shown);
    if (!line.status) line.status = status;
    return qkv__out_end(&line);
}

/* ---- a line to ids ---- */

void token_ids_free(token_ids *ids)
{
    qkv__release(ids->ids, ids->bytes);
    *ids = (token_ids){ 0 };
}

static qkv_status put_id(token_ids *out, int32_t id)
{
    if (qkv__grow((void **)&out->ids, &out->bytes, (out->n + 1) * sizeof *out->ids)) return QKV_MEMORY;
    out->ids[out->n++] = id;
    return QKV_OK;
}

static int32_t read_token(const qkv_tokenizer *t, const char *word, qkv_token_style style)
{
    char *end;
    if (style == QKV_TOKEN_STYLE_RAW) return qkv_tokenizer_id(t, word);
    if (style == QKV_TOKEN_STYLE_SHOWN) return qkv_tokenizer_find_shown(t, word);
    if (!isdigit((unsigned char)*word)) return -1;
    long id = strtol(word, &end, 10);
    return *end || id >= qkv_tokenizer_vocab_size(t) ? -1 : (int32_t)id;
}

/* The word at *rest, up to a space, as a text of its own; false after the last. */
static bool next_word(const char **rest, bool has_spaces, qkv_buffer *word, qkv_status *status)
{
    const char *begin = *rest + (has_spaces ? 0 : strspn(*rest, " "));
    if (!*begin) return false;
    const char *end = begin + 1 + strcspn(begin + 1, " ");
    *rest = *end ? end + 1 : end;
    qkv__out out = qkv__out_begin(word);
    qkv__out_bytes(&out, begin, (size_t)(end - begin));
    *status = qkv__out_end(&out);
    return true;
}

qkv_status qkv_tokens_parse(const qkv_tokenizer *t, const char *line, qkv_token_style style, const char *name, token_ids *out)
{
    qkv_buffer word = { 0 };
    qkv_status status = QKV_OK;
    if (!t || !line || !name || !out || !is_style(style))
        return qkv__fail(QKV_USAGE, "tokens: a tokenizer, its name, a line and a place for the ids are needed");
    bool has_spaces = style == QKV_TOKEN_STYLE_RAW && qkv_tokenizer_kind(t) == QKV_TOKEN_CHARACTERS;
    out->n = 0;
    while (!status && next_word(&line, has_spaces, &word, &status) && !status) {
        int32_t id = read_token(t, word.data, style);
        if (id >= 0) status = put_id(out, id);
        else
            status = qkv__fail(QKV_FORMAT, "\"%.100s\" is no %s of %s", word.data, style == QKV_TOKEN_STYLE_ID ? "id" : "token",
                               name);
    }
    qkv_buffer_free(&word);
    if (status) out->n = 0;
    return status;
}

/* ---- ids alone ---- */

static qkv_status put_typed(token_ids *out, long long id, int64_t vocabulary, const char *name)
{
    if (id < vocabulary) return put_id(out, (int32_t)id);
    return qkv__fail(QKV_USAGE, "%s: %lld is outside 0..%lld", name, id, (long long)vocabulary - 1);
}

qkv_status qkv_ids_parse(const char *text, int64_t vocabulary, const char *name, token_ids *out)
{
    qkv_status status = QKV_OK;
    if (!text || !name || !out || vocabulary > INT32_MAX)
        return qkv__fail(QKV_USAGE, "ids: a text, its name and a place for the ids are needed");
    out->n = 0;
    for (const char *at = text; at && !status;) {
        char *end;
        errno = 0;
        long long id = strtoll(at, &end, 10);
        if (!isdigit((unsigned char)*at) || (*end && *end != ',') || errno)
            status = qkv__fail(QKV_USAGE, "%s: \"%s\" is not a list of ids such as 5,6,7", name, text);
        else status = put_typed(out, id, vocabulary, name);
        at = *end ? end + 1 : NULL;
    }
    if (status) out->n = 0;
    return status;
}
