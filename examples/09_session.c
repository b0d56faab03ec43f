/* 09_session.c: a session: a prompt read at once, two continuations that share it, tokens one by one. The model is a small one
 * with random weights: what it writes has no meaning, how it is asked is the same for every decoder. */
#include <qkv/qkv.h>

#include <stdio.h>

enum { VOCABULARY = 40, PROMPT = 6, ROWS = 2, STEPS = 8 };

/* The likeliest next token of a row; the second row leaves the first row's choice out, so that they part. */
static int32_t choose(const float *logits, int32_t but_not)
{
    int32_t best = but_not == 0;
    for (int32_t id = 0; id < VOCABULARY; id++)
        if (id != but_not && logits[id] > logits[best]) best = id;
    return best;
}

static qkv_status continue_twice(qkv_session *s, const int32_t *prompt)
{
    int64_t n = PROMPT;
    qkv_status status = qkv_session_start(s, 1);
    if (!status) status = qkv_session_read(s, prompt, &n, QKV_LOGITS_LAST); /* one forward for the whole prompt */
    if (status) return status;
    int32_t next[ROWS] = { choose(qkv_tensor_data(qkv_session_logits(s)), -1) };
    next[1] = choose(qkv_tensor_data(qkv_session_logits(s)), next[0]);
    status = qkv_session_select(s, (const int64_t[ROWS]){ 0, 0 },
                                ROWS); /* the prompt's keys and values are shared, not copied */
    for (int i = 0; i < STEPS && !status; i++) {
        printf("%2d %2d\n", next[0], next[1]);
        status = qkv_session_read(s, next, NULL, QKV_LOGITS_LAST); /* one token of each row */
        for (int r = 0; r < ROWS && !status; r++) next[r] = choose(qkv_tensor_data(qkv_session_logits(s)) + r * VOCABULARY, -1);
    }
    return status;
}

int main(void)
{
    const qkv_config o = {
        .vocab_size = VOCABULARY, .decoder_layers = 2, .dim = 32, .heads = 4, .d_ff = 64, .pre_norm = 1, .untied = 1
    };
    const int32_t prompt[PROMPT] = { 3, 1, 4, 1, 5, 9 };
    qkv_model *m = qkv_model_new(&o, 2); /* or qkv_model_load(folder, NULL) */
    qkv_session *s = m ? qkv_session_new(m, NULL) : NULL;
    qkv_status status = s ? continue_twice(s, prompt) : qkv_error_status();
    if (status) fprintf(stderr, "%s\n", qkv_error());
    else printf("each row has %lld tokens\n", (long long)qkv_session_length(s, 0));
    qkv_session_free(s);
    qkv_model_free(m);
    return status != QKV_OK;
}
