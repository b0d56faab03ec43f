/* 13_text_session.c DIR TEXT [N]: text, ids, session, text: a decoder continues TEXT by at most N tokens, each the likeliest.
 * The model is a folder of "qkv train generate" or a published one. */
#include <qkv/qkv.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int32_t likeliest(const float *logits, int64_t n)
{
    int64_t best = 0;
    for (int64_t id = 1; id < n; id++)
        if (logits[id] > logits[best]) best = id;
    return (int32_t)best;
}

/* Reads the prompt and generates; *n is the space in room, then the number of ids. */
static qkv_status continue_ids(qkv_session *s, const qkv_encoding *prompt, int64_t vocabulary, int32_t end, int32_t *room,
                               int64_t *n)
{
    const int64_t count = prompt->n, most = *n;
    *n = 0;
    qkv_status status = qkv_session_start(s, 1);
    if (!status) status = qkv_session_read(s, prompt->ids, &count, QKV_LOGITS_LAST);
    while (!status && *n < most) {
        room[*n] = likeliest(qkv_tensor_data(qkv_session_logits(s)), vocabulary);
        if (room[*n] == end) break;
        status = qkv_session_read(s, &room[(*n)++], NULL, QKV_LOGITS_LAST);
    }
    return status;
}

int main(int argc, char **argv)
{
    if (argc < 3) return fprintf(stderr, "usage: 13_text_session DIR TEXT [N]\n"), 2;
    int64_t n = argc > 3 ? atoi(argv[3]) : 20;
    qkv_special_tokens special = { .size = sizeof special };
    qkv_encoding *ids = NULL;
    qkv_text *text = NULL;
    int32_t *all = NULL;
    qkv_model *m = qkv_model_load(argv[1], NULL);
    qkv_session *s = m ? qkv_session_new(m, NULL) : NULL;
    qkv_status status = s ? qkv_model_special_tokens(m, &special) : qkv_error_status();
    /* Adds the model's start token, such as <s>; qkv_tokenizer_encode() does not know the model. */
    if (!status) status = qkv_model_tokenize(m, QKV_SIDE_TARGET, qkv_cstr(argv[2]), NULL, &ids);
    if (!status && !(all = malloc((size_t)(ids->n + n) * sizeof *all))) status = QKV_MEMORY;
    if (!status) {
        memcpy(all, ids->ids, (size_t)ids->n * sizeof *all);
        qkv_config config = { .size = sizeof config };
        qkv_model_config(m, &config);
        const int64_t vocabulary = config.vocabulary;
        status = continue_ids(s, ids, vocabulary, special.end, all + ids->n, &n);
    }
    if (!status)
        status = qkv_tokenizer_decode(qkv_model_tokenizer(m, QKV_SIDE_TARGET), all, ids->n + n, QKV_DECODE_SKIP_SPECIAL, &text);
    if (status) fprintf(stderr, "%s\n", qkv_error());
    else printf("%s\n", text->data);
    free(all);
    qkv_free(text);
    qkv_free(ids);
    qkv_session_free(s);
    qkv_model_free(m);
    return (int)status;
}
