/* shown.c: tokens as people read them, and back. */
#include "alphabet.h"

#include <qkv/unstable/util.h>
#include "../base/result.h"
#include "pipeline.h"
#include "tokenizer.h"

#include <string.h>

#define SPACE_SIGN "\xE2\x96\x81" /* U+2581, as SentencePiece has it */

static bool decodes_bytes(const qkv__pipeline *p)
{
    for (size_t i = 0; i < p->decoders.n; i++)
        if (p->decoders.at[i].rewrite == qkv__decode_byte_level) return true;
    return false;
}

/* Whether each character of a spelling stands for a byte. */
static bool spells_bytes(const qkv_tokenizer *t) { return t->pipeline ? decodes_bytes(t->pipeline) : t->kind == QKV_TOKEN_BPE; }

/* ---- there ---- */

/* What a spelling stands for; the spelling itself where a character of it stands for no byte. */
static qkv_status put_meaning(const char *spelling, size_t length, qkv_buffer *out)
{
    qkv_status status = QKV_OK;
    for (size_t at = 0, step; at < length && !status; at += step) {
        int byte = qkv__character_to_byte(qkv_utf8_next(spelling + at, length - at, &step));
        if (byte < 0) {
            qkv__buffer_clear(out);
            return qkv__buffer_put(out, spelling, length);
        }
        status = qkv__buffer_put(out, &(char){ (char)byte }, 1);
    }
    return status;
}

/* What cannot be seen, is not whole, or would read back as something else. */
static bool needs_codes(int32_t c, const char *text, size_t length)
{
    bool is_control = c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x2028 || c == 0x2029;
    return is_control || c == 0x2581 || (c == '<' && length >= 3 && !memcmp(text, QKV__BYTE_OPENS, 3));
}

static qkv_status put_visibly(const char *text, size_t length, qkv_buffer *out)
{
    qkv_status status = qkv__buffer_put(out, "", 0);
    for (size_t bytes; length && !status; text += bytes, length -= bytes) {
        int32_t c = qkv_utf8_next(text, length, &bytes);
        if (c == ' ') status = qkv__buffer_put(out, SPACE_SIGN, 3);
        else if (needs_codes(c, text, length))
            status = qkv__buffer_put_hex(out, QKV__BYTE_OPENS, text, bytes, QKV__BYTE_CLOSES);
        else status = qkv__buffer_put(out, text, bytes);
    }
    return status;
}

static qkv_status show_token(const qkv_tokenizer *t, int32_t id, qkv_buffer *out)
{
    const char *spelling = qkv_tokenizer_token(t, id);
    if (!spelling) return qkv__fail(QKV_USAGE, "tokenizer: there is no token %d", id);
    size_t length = t->tokens[id].spelling_length;
    bool spells = spells_bytes(t) && !t->tokens[id].is_added;
    if (!spells && t->kind == QKV_TOKEN_PUBLISHED) return qkv__buffer_put(out, spelling, length);
    qkv_buffer meaning = { 0 };
    qkv_status status = spells ? put_meaning(spelling, length, &meaning) : qkv__buffer_put(&meaning, spelling, length);
    if (!status) status = put_visibly(meaning.data, meaning.length, out);
    qkv_buffer_free(&meaning);
    return status;
}

qkv_status qkv_tokenizer_show(const qkv_tokenizer *t, int32_t id, qkv_text **out)
{
    qkv_buffer *text = qkv__text_begin(out);
    return text ? qkv__text_end(*out, show_token(t, id, text)) : qkv_error_status();
}

/* ---- and back ---- */

static qkv_status read_visible(const char *shown, qkv_buffer *out)
{
    qkv_status status = qkv__buffer_put(out, "", 0);
    while (*shown && !status) {
        int byte = qkv__byte_of_token(shown, strnlen(shown, QKV__BYTE_LENGTH));
        bool is_space = !strncmp(shown, SPACE_SIGN, 3);
        status = qkv__buffer_put(out, byte >= 0 ? &(char){ (char)byte } : is_space ? " " : shown, 1);
        shown += byte >= 0 ? QKV__BYTE_LENGTH : is_space ? 3 : 1;
    }
    return status;
}

static qkv_status spell(const qkv_buffer *bytes, qkv_buffer *out)
{
    char character[QKV__SPELLED_MAX];
    qkv_status status = qkv__buffer_put(out, "", 0);
    for (size_t i = 0; i < bytes->length && !status; i++)
        status = qkv__buffer_put(out, character, qkv__spell_byte((unsigned char)bytes->data[i], character));
    return status;
}

static bool is_shown_as(const qkv_tokenizer *t, int32_t id, const char *shown)
{
    qkv_buffer text = { 0 };
    bool is_same = id >= 0 && !show_token(t, id, &text) && !strcmp(text.data, shown);
    qkv_buffer_free(&text);
    return is_same;
}

/* It is spelled byte by byte, or means itself, or is an added token that is shown as it is. */
int32_t qkv_tokenizer_find_shown(const qkv_tokenizer *t, const char *shown)
{
    qkv_buffer meaning = { 0 }, spelling = { 0 };
    int32_t id = -1;
    if (!t || !shown) return -1;
    if (!read_visible(shown, &meaning) && !spell(&meaning, &spelling)) {
        if (spells_bytes(t)) id = qkv__tokenizer_find(t, spelling.data, spelling.length);
        if (!is_shown_as(t, id, shown)) id = qkv__tokenizer_find(t, meaning.data, meaning.length);
        if (!is_shown_as(t, id, shown)) id = qkv_tokenizer_id(t, shown);
        if (!is_shown_as(t, id, shown)) id = -1;
    }
    qkv_buffer_free(&meaning);
    qkv_buffer_free(&spelling);
    return id;
}
