/* tokens.h: ids and tokens as text: as JSON, in several styles, and as people type them. */
#ifndef QKV_APP_REPORT_TOKENS_H
#define QKV_APP_REPORT_TOKENS_H

#include <qkv/qkv.h>
#include <qkv/unstable/buffer.h>

/* Ids as a JSON object in *out, which is yours: "ids", with types also "types", "tokens" as the tokenizer's file spells them,
 * "shown" as qkv_tokenizer_show() does, and "spans". USAGE for NULL and ids that the tokenizer does not have; MEMORY. */
QKV_API qkv_status qkv_ids_json(const qkv_tokenizer *t, const qkv_encoding *ids, int with_types, qkv_buffer *out);

/* ---- lines of tokens, as people read and type them ---- */
typedef enum qkv_token_style {
    QKV_TOKEN_STYLE_SHOWN, /* as qkv_tokenizer_show() shows them */
    QKV_TOKEN_STYLE_RAW,   /* as the tokenizer's file spells them */
    QKV_TOKEN_STYLE_ID     /* their numbers */
} qkv_token_style;

/* n ids on a line in *out, which is yours, with a space between them and no newline. USAGE for NULL, an id that the tokenizer
 * does not have and another style; MEMORY. */
QKV_API qkv_status qkv_tokens_text(const qkv_tokenizer *t, const int32_t *ids, size_t n, qkv_token_style style,
                                   qkv_buffer *out);

/* Ids that were typed. A zero struct is empty, used again and again. */
typedef struct token_ids {
    int32_t *ids;
    size_t n, bytes;
} token_ids;
void token_ids_free(token_ids *ids);

/* And back: the ids of a line, which ends with a NUL. Spaces separate; of raw characters, one where a token must start is the
 * space itself. FORMAT, in a sentence that calls the tokenizer by name, for what is none of its tokens; USAGE for NULL and another
 * style; MEMORY. *out then holds no ids. */
QKV_API qkv_status qkv_tokens_parse(const qkv_tokenizer *t, const char *line, qkv_token_style style, const char *name,
                                    token_ids *out);

/* Ids without a tokenizer, such as "5,6,2", each below `vocabulary`. USAGE, in a sentence that begins with name, for anything
 * else; MEMORY. *out then holds no ids. */
QKV_API qkv_status qkv_ids_parse(const char *text, int64_t vocabulary, const char *name, token_ids *out);

#endif
