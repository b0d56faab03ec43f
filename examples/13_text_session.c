/* 13_text_session.c MODEL TEXT [N [TEMPERATURE]]: continues TEXT by at most N tokens, sampled one by one from a session; greedy
 * without a temperature. MODEL: a folder of "qkv train generate" or a published decoder. */
#include <qkv/qkv.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_IDS = 4096 };

int main(int argc, char **argv)
{
    if (argc < 3) return fprintf(stderr, "usage: 13_text_session MODEL TEXT [N [TEMPERATURE]]\n"), QKV_USAGE;
    const qkv_sampling_opts how = { .temperature = argc > 4 ? (float)atof(argv[4]) : 0, .top_p = 0.95f, .seed = 1 };
    int64_t most = argc > 3 ? atol(argv[3]) : 20, n = 0;
    static int32_t ids[MAX_IDS];
    qkv_special_tokens special = QKV_OPTS(qkv_special_tokens);
    qkv_encoding *prompt = NULL;
    qkv_text *text = NULL;
    qkv_model *m = qkv_model_load(argv[1], NULL);
    qkv_session *s = m ? qkv_session_new(m, NULL) : NULL;
    qkv_sampler *sampler = s ? qkv_sampler_new(m, &how) : NULL;
    qkv_status status = sampler ? qkv_model_special_tokens(m, &special) : qkv_error_status();
    /* Adds the model's start token, such as <s>; qkv_tokenizer_encode() does not know the model. */
    if (!status) status = qkv_model_tokenize(m, QKV_SIDE_TARGET, qkv_cstr(argv[2]), NULL, &prompt);
    if (!status && prompt->n + most > MAX_IDS) status = qkv_set_error(QKV_LIMIT, "too many tokens");
    if (!status) memcpy(ids, prompt->ids, (size_t)(n = prompt->n) * sizeof *ids);
    if (!status) status = qkv_session_start(s, 1);
    if (!status) status = qkv_session_read(s, ids, &n, QKV_LOGITS_LAST); /* one forward for the whole prompt */
    while (!status && n < prompt->n + most) {
        const float *logits = qkv_tensor_data(qkv_session_logits(s));
        status = qkv_sampler_next(sampler, logits, ids, n, prompt->n, &ids[n]);
        if (status || ids[n] == special.end) break;
        status = qkv_session_read(s, &ids[n++], NULL, QKV_LOGITS_LAST); /* one token */
    }
    if (!status) status = qkv_tokenizer_decode(qkv_model_tokenizer(m, QKV_SIDE_TARGET), ids, n, QKV_DECODE_SKIP_SPECIAL, &text);
    if (status) fprintf(stderr, "%s\n", qkv_error());
    else puts(text->data);
    qkv_free(text), qkv_free(prompt);
    qkv_sampler_free(sampler), qkv_session_free(s), qkv_model_free(m);
    return (int)status;
}
