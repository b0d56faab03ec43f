/* tokens.c: POST /tokenize and /detokenize: in our form, in llama.cpp's and in vLLM's, chosen by the member with the text. */
#include "../../src/model/special_tokens.h"

#include <qkv/unstable/util.h>
#include "logprobs.h"
#include "prompts.h"
#include "server.h"

#include <string.h>

/* ---- POST /tokenize: "text" ---- */

static qkv_status put_own_tokens(qkv__request *r, const qkv_tokenizer *t)
{
    qkv__strings given;
    qkv_encoding *ids = NULL;
    qkv_status status = qkv__need_strings(r->body, "text", &given);
    if (given.is_array) qkv__put_raw(&r->answer, "{\"results\":[");
    for (int64_t i = 0; i < given.n && !status; i++) {
        status = qkv_tokenizer_encode(t, given.texts[i], NULL, &ids);
        if (i) qkv__put_raw(&r->answer, ",");
        if (!status) qkv__put_token_list(&r->answer, t, ids);
    }
    qkv__put_raw(&r->answer, given.is_array ? "]}\n" : "\n");
    qkv_free(ids);
    return status;
}

/* ---- "content" of llama.cpp, "prompt" of vLLM ---- */

typedef struct id_list {
    int32_t *ids;
    int64_t n;
    size_t bytes;
} id_list;

static qkv_status add_ids(id_list *to, const int32_t *ids, int64_t n)
{
    if (qkv__grow((void **)&to->ids, &to->bytes, (size_t)(to->n + n) * sizeof *ids)) return QKV_MEMORY;
    if (n) memcpy(to->ids + to->n, ids, (size_t)n * sizeof *ids);
    to->n += n;
    return QKV_OK;
}

/* A piece that is no text is a list of its bytes. */
static void put_piece(qkv__json *j, qkv__logprobs *l, const qkv_tokenizer *t, int32_t before, int32_t id)
{
    const char *piece = NULL;
    size_t length = 0;
    qkv_status status = qkv__find_token_piece(l, t, before, id, &piece, &length);
    if (!j->status) j->status = status;
    if (j->status) return;
    qkv__put_raw(j, "{\"id\":");
    qkv__put_whole(j, id);
    qkv__put_raw(j, ",\"piece\":");
    if (qkv_utf8_valid(piece, length) == length) qkv__put_string(j, piece, length);
    else {
        for (size_t i = 0; i < length; i++) {
            qkv__put_raw(j, i ? "," : "[");
            qkv__put_whole(j, (unsigned char)piece[i]);
        }
        qkv__put_raw(j, "]");
    }
    qkv__put_raw(j, "}");
}

static void put_pieces(qkv__json *j, const qkv_tokenizer *t, const id_list *ids)
{
    qkv__logprobs l = { 0 };
    qkv__put_raw(j, "{\"tokens\":[");
    for (int64_t i = 0; i < ids->n && !j->status; i++) {
        if (i) qkv__put_raw(j, ",");
        put_piece(j, &l, t, i ? ids->ids[i - 1] : -1, ids->ids[i]);
    }
    qkv__put_raw(j, "]}\n");
    qkv__logprobs_free(&l);
}

/* Options of these two forms. */
typedef struct token_wishes {
    bool specials, parse, pieces, spellings;
} token_wishes;

static qkv_status get_wishes(const qkv__json_value *body, bool of_llama, token_wishes *w)
{
    *w = (token_wishes){ .specials = !of_llama, .parse = true };
    qkv_status status = qkv__get_flag(body, of_llama ? "add_special" : "add_special_tokens", &w->specials);
    if (status) return status;
    if (!of_llama) return qkv__get_flag(body, "return_token_strs", &w->spellings);
    status = qkv__get_flag(body, "parse_special", &w->parse);
    return status ? status : qkv__get_flag(body, "with_pieces", &w->pieces);
}

static void put_vllm_tokens(qkv__json *j, const qkv__special_tokens *f, const qkv_tokenizer *t, const id_list *ids,
                            const token_wishes *w)
{
    const int64_t context = f->info->context ? f->info->context : f->max_tokens;
    qkv__put_raw(j, "{\"count\":");
    qkv__put_whole(j, ids->n);
    qkv__put_raw(j, ",\"max_model_len\":");
    if (context) qkv__put_whole(j, context);
    else qkv__put_raw(j, "null");
    qkv__put_raw(j, ",\"tokens\":");
    qkv__put_ids(j, ids->ids, ids->n);
    qkv__put_raw(j, ",\"token_strs\":");
    for (int64_t i = 0; i < ids->n && w->spellings; i++) {
        qkv__put_raw(j, i ? "," : "[");
        qkv__put_name(j, qkv_tokenizer_token(t, ids->ids[i]));
    }
    qkv__put_raw(j, !w->spellings ? "null}\n" : ids->n ? "]}\n" : "[]}\n");
}

static qkv_status put_others_tokens(qkv__request *r, const qkv_tokenizer *t, bool of_llama)
{
    const char *name = of_llama ? "content" : "prompt", *text = NULL;
    size_t length = 0;
    token_wishes w;
    qkv__special_tokens f;
    qkv_encoding *encoded = NULL;
    id_list ids = { 0 };
    qkv_encode_opts o = QKV_OPTS(qkv_encode_opts);
    qkv_status status = qkv__get_string(r->body, name, &text, &length);
    if (!status) status = get_wishes(r->body, of_llama, &w);
    if (!status) status = qkv__special_tokens_of(r->served->model, &f);
    if (status) return status;
    o.parse_special = w.parse;
    /* special tokens around a source, or before a prompt */
    const bool is_framed = w.specials && t == f.source;
    status = qkv_tokenizer_encode(t, (qkv_str){ text, length }, &o, &encoded);
    if (!status && is_framed) status = add_ids(&ids, f.single.before.ids, f.single.before.n);
    if (!status) status = add_ids(&ids, encoded->ids, encoded->n);
    if (!status && is_framed && f.t->encoder_layers) status = add_ids(&ids, f.single.after.ids, f.single.after.n);
    qkv_free(encoded);
    if (!status && !of_llama) put_vllm_tokens(&r->answer, &f, t, &ids, &w);
    else if (!status && w.pieces) put_pieces(&r->answer, t, &ids);
    else if (!status) {
        qkv__put_raw(&r->answer, "{\"tokens\":");
        qkv__put_ids(&r->answer, ids.ids, ids.n);
        qkv__put_raw(&r->answer, "}\n");
    }
    qkv__release(ids.ids, ids.bytes);
    return status;
}

static bool has_member(const qkv__json_value *body, const char *name)
{
    const qkv__json_value *x = qkv__json_get(body, name);
    return x && !qkv__json_is_null(x);
}

qkv_status qkv__serve_tokens(qkv__request *r)
{
    const qkv_tokenizer *t = NULL;
    const bool of_llama = has_member(r->body, "content"), of_vllm = has_member(r->body, "prompt");
    if (of_llama + of_vllm + has_member(r->body, "text") > 1)
        return qkv__fail(QKV_USAGE, "give one of \"text\", \"content\" and \"prompt\": their answers differ");
    qkv_status status = qkv__get_tokenizer(r->body, r->served->model, &t);
    if (status) return status;
    return of_llama || of_vllm ? put_others_tokens(r, t, of_llama) : put_own_tokens(r, t);
}

/* ---- POST /detokenize ---- */

/* The answer is llama.cpp's and vLLM's at once. */
qkv_status qkv__serve_detokenized(qkv__request *r)
{
    const qkv_tokenizer *t = NULL;
    qkv__prompts given = { 0 };
    qkv_text *bytes = NULL, *text = NULL;
    qkv_status status = qkv__get_tokenizer(r->body, r->served->model, &t);
    if (!status) status = qkv__get_ids(r->body, "tokens", qkv_tokenizer_vocab_size(t), &given);
    if (!status) status = qkv_tokenizer_decode(t, given.ids, (int64_t)given.n_ids, 0, &bytes);
    if (!status) status = qkv_utf8_repair((qkv_str){ bytes->data, bytes->length }, &text);
    if (!status) {
        qkv__put_raw(&r->answer, "{\"content\":");
        qkv__put_string(&r->answer, text->data, text->length);
        qkv__put_raw(&r->answer, ",\"prompt\":");
        qkv__put_string(&r->answer, text->data, text->length);
        qkv__put_raw(&r->answer, "}\n");
    }
    qkv__prompts_free(&given);
    qkv_free(bytes);
    qkv_free(text);
    return status;
}
