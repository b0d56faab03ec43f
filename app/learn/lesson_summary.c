/* lesson_summary.c: the page summary: formulas, shapes and key points, with the lesson that shows each. */
#include "lesson.h"

#include <stdio.h>

typedef struct line {
    const char *formula, *says; /* N_() where there are words */
} line;

static const line attention[] = {
    { "Attention(Q, K, V) = softmax(Q K^T / sqrt(d_k)) V", N_("a search that returns a mixture of values (1)") },
    { "Q = X W_Q   K = Y W_K   V = Y W_V", N_("self-attention: Y is X; cross-attention: Y is the source (5)") },
    { N_("Var(q . k) = d_k, so divide by sqrt(d_k)"), N_("else the softmax saturates and its gradient vanishes (2)") },
    { "softmax(x)_i = exp(x_i) / sum_j exp(x_j)", N_("normalises, emphasises, is differentiable (12)") },
    { N_("score + mask, mask = 0 or -inf"), N_("before the softmax: causal, padding, or both (3)") },
    { "MultiHead(X) = Concat(head_1..head_h) W_O", N_("h views of d_k = d_model / h numbers at the cost of one (4, 14)") },
};
static const line shapes[] = {
    { "X (B, T, d)   W_Q (d, d)   Q (B, T, d)", N_("projected") },
    { "Q, K, V (B, h, T, d_k)", N_("split into heads") },
    { "Q K^T (B, h, T_q, T_k)", N_("scores and weights; not square in cross-attention") },
    { N_("output (B, T_q, d)"), N_("concatenated, times W_O; as X, so that it can be added") },
    { "logits (B, T, V)", N_("one score for each word of the vocabulary") },
};
static const line parts[] = {
    { "x = E[id] sqrt(d) + PE(pos)", N_("embedding and position; E is tied to the output (12)") },
    { "PE(pos, 2i) = sin(pos / 10000^(2i/d)), 2i+1: cos", N_("products depend on the distance alone (6)") },
    { "FFN(x) = max(0, x W_1 + b_1) W_2 + b_2", N_("each token alone, d_ff = 4 d (13)") },
    { "y = LayerNorm(x + Dropout(Sublayer(x)))", N_("residual connection and norm around every sub-layer (7)") },
    { N_("encoder: 2 sub-layers x 6; decoder: 3 x 6"), N_("base: d 512, h 8, d_ff 2048 (11)") },
    { "O(n^2 d), O(1), O(1)", N_("work, steps one after another, longest path; RNN: O(n d^2), O(n), O(n) (10)") },
};
static const line training[] = {
    { "lrate = d^-0.5 min(step^-0.5, step warmup^-1.5)", N_("peak 0.000699 at step 4000 (16)") },
    { "Adam: beta1 0.9, beta2 0.98, eps 1e-9", N_("a stride of its own for each weight (8, 16)") },
    { N_("loss = cross-entropy, smoothing 0.1"), N_("hurts perplexity, helps BLEU (7, 16)") },
    { N_("beam 4: log p / ((5 + length) / 6)^0.6"), N_("keeps several beginnings (17)") },
    { "BLEU = BP (p1 p2 p3 p4)^(1/4)", N_("28.4 EN-DE and 41.8 EN-FR for the big model (16, 17)") },
    { N_("BERT: encoder; GPT: decoder; T5: both"), N_("understanding, generating, turning one text into another (15)") },
    { N_("Llama: RoPE, grouped heads, RMSNorm, gated SiLU"), N_("the same machine, other parts (18)") },
};

static void show_lines(const char *heading, const line *lines, size_t n)
{
    say_heading(heading);
    for (size_t i = 0; i < n; i++) printf("    %s\n        %s\n", _(lines[i].formula), _(lines[i].says));
    putchar('\n');
}

static qkv_status run_summary(void)
{
    say(_("Everything on one page; the numbers in brackets are lessons."));
    show_lines(_("Attention"), attention, sizeof attention / sizeof *attention);
    show_lines(_("Shapes: batch B, tokens T, width d = d_model, heads h, vocabulary V"), shapes,
               sizeof shapes / sizeof *shapes);
    show_lines(_("The Transformer"), parts, sizeof parts / sizeof *parts);
    show_lines(_("Training, searching, scoring"), training, sizeof training / sizeof *training);
    return QKV_OK;
}

const lesson lesson_summary = { .name = "summary", .title = N_("Summary: formulas, shapes, key points"), .run = run_summary };
