/* lesson_multihead.c: lesson 14: split, attend in every head, concatenate, W_O, with all numbers. */
#include "lesson.h"

#include "../term/errors.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { TOKENS = 3, DIM = 4, HEADS = 2, HEAD_DIM = DIM / HEADS };

static const char *const tokens[TOKENS] = { "哈基咪", "南北", "绿豆" };
static const float example_x[TOKENS * DIM] = { 1, 0, 1, 0, 0, 1, 1, 0, 1, 1, 0, 1 };
static const float identity[DIM * DIM] = { 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1 };
static const float example_v[DIM * DIM] = { 1, 2, 0, 0, 3, 4, 0, 0, 0, 0, 1, -1, 0, 0, 1, 1 };  /* rows: inputs */
static const float example_o[DIM * DIM] = { 1, 0, 0, 1, 0, 1, 1, 0, 1, 0, -1, 0, 0, 1, 0, -1 }; /* rows: inputs */

/* Everything on the way, a tensor a step. */
typedef struct steps {
    qkv_tensor *x, *q, *k, *v, *w_o;
    qkv_tensor *weights, *heads; /* (HEADS, TOKENS, TOKENS), (HEADS, TOKENS, HEAD_DIM) */
    qkv_tensor *concat, *output;
} steps;

/* (TOKENS, DIM) -> (1, HEADS, TOKENS, HEAD_DIM): columns are shared out, nothing is computed. */
static qkv_tensor *split_heads(qkv_tensor *x)
{
    return qkv_transpose(qkv_reshape(x, QKV_SHAPE(1, TOKENS, HEADS, HEAD_DIM)), 1, 2);
}

static qkv_status compute_steps(qkv_tape *t, steps *s)
{
    s->x = qkv_constant(t, QKV_SHAPE(TOKENS, DIM), example_x);
    qkv_tensor *w_q = qkv_constant(t, QKV_SHAPE(DIM, DIM), identity), *w_v = qkv_constant(t, QKV_SHAPE(DIM, DIM), example_v);
    s->w_o = qkv_constant(t, QKV_SHAPE(DIM, DIM), example_o);
    s->q = qkv_matmul(s->x, w_q, 0);
    s->k = qkv_matmul(s->x, w_q, 0);
    s->v = qkv_matmul(s->x, w_v, 0);
    s->heads = qkv_attention(split_heads(s->q), split_heads(s->k), split_heads(s->v), NULL,
                             &(qkv_attention_opts){ .weights = &s->weights });
    s->concat = qkv_reshape(qkv_transpose(s->heads, 1, 2), QKV_SHAPE(TOKENS, DIM));
    s->output = qkv_matmul(s->concat, s->w_o, 0);
    return qkv_tape_status(t) ? library_failed() : QKV_OK;
}

static void show_rows(const qkv_tensor *x, int decimals)
{
    show_numbers(qkv_tensor_data(x), qkv_tensor_dim(x, 0), qkv_tensor_dim(x, 1), (labels){ .names = tokens }, (labels){ 0 },
                 decimals);
}

static void show_split(const steps *s)
{
    puts("    MultiHead(X) = Concat(head_1, ..., head_h) W_O\n"
         "    head_i = Attention(X W_Q^i, X W_K^i, X W_V^i)\n");
    say(_("Here is all of it with %d heads, small enough to follow with a pencil. %d tokens of d_model = %d numbers, the "
          "matrix "
          "X:"),
        HEADS, TOKENS, DIM);
    show_rows(s->x, 0);
    say_heading(_("Step 1: project and split"));
    say(_("W_Q and W_K are the identity here, so that Q = K = X. W_V mixes; its product V = X W_V:"));
    show_rows(s->v, 0);
    say(_("Nobody makes %d small matrices. One product gives all columns, and the columns are shared out: head 1 takes columns "
          "0 and 1 of Q, K and V, head 2 takes 2 and 3. Each has d_k = d_model / h = %d numbers a token. That is a reshape, "
          "(%d, %d) to (%d, %d, %d), and no arithmetic."),
        HEADS, HEAD_DIM, TOKENS, DIM, HEADS, TOKENS, HEAD_DIM);
}

static void show_heads(const steps *s)
{
    say_heading(_("Step 2: every head attends on its own"));
    for (int h = 0; h < HEADS; h++) {
        say(_("The weights of head %d, softmax(Q K^T / sqrt(%d)) of its own columns:"), h + 1, HEAD_DIM);
        print_table(&(table){ .values = qkv_tensor_data(s->weights) + h * TOKENS * TOKENS,
                              .rows = TOKENS,
                              .columns = TOKENS,
                              .row.names = tokens,
                              .column.names = tokens,
                              .decimals = 4,
                              .sums = true });
        putchar('\n');
        say(_("and what it returns, these weights times its two columns of V:"));
        show_numbers(qkv_tensor_data(s->heads) + h * TOKENS * HEAD_DIM, TOKENS, HEAD_DIM, (labels){ .names = tokens },
                     (labels){ 0 }, 4);
    }
    const float *w = qkv_tensor_data(s->weights);
    say(_("The same sentence, looked at in two ways: %s gives %s the weight %.4f in head 1 and %.4f in head 2. With one head "
          "of "
          "width %d there would be one table."),
        tokens[0], tokens[1], (double)w[1], (double)w[TOKENS * TOKENS + 1], DIM);
}

static void show_concat(const steps *s)
{
    say_heading(_("Step 3: concatenate, and W_O"));
    say(_("The results are laid side by side again, head 1 on the left:"));
    show_rows(s->concat, 4);
    say(_("So far no head knows of the other. W_O lets them talk: each number of the result is a sum over all columns of all "
          "heads. W_O:"));
    show_numbers(qkv_tensor_data(s->w_o), DIM, DIM, (labels){ 0 }, (labels){ 0 }, 0);
    say(_("and the output, Concat W_O, of the shape that X had, so that it can be added to X:"));
    show_rows(s->output, 4);
    const float *c = qkv_tensor_data(s->concat);
    say(_("The first number by hand, row 0 of the concatenation times column 0 of W_O: %.4f * 1 + %.4f * 0 + %.4f * 1 + %.4f * "
          "0 = %.4f."),
        (double)c[0], (double)c[1], (double)c[2], (double)c[3], (double)qkv_tensor_data(s->output)[0]);
}

/* A weight of the library is (out, in): the transpose of what stands in the formula. */
static void set_transposed(qkv_tensor *weight, const float *matrix)
{
    for (int i = 0; i < DIM; i++)
        for (int j = 0; j < DIM; j++) qkv_tensor_data_mut(weight)[i * DIM + j] = matrix[j * DIM + i];
}

static qkv_status compare_with_layer(qkv_tape *t, const steps *s)
{
    qkv_params *p = qkv_params_new(1);
    qkv_mha m = qkv_mha_new(p, "mha", &(qkv_mha_opts){ .dim = DIM, .heads = HEADS, .no_bias = 1 });
    qkv_status status = qkv_params_status(p) ? library_failed() : QKV_OK;
    if (!status) {
        set_transposed(m.q.weight, identity), set_transposed(m.k.weight, identity);
        set_transposed(m.v.weight, example_v), set_transposed(m.out.weight, example_o);
        qkv_tensor *x = qkv_reshape(s->x, QKV_SHAPE(1, TOKENS, DIM)), *y = qkv_mha_forward(&m, x, x, NULL);
        if (qkv_tape_status(t)) status = library_failed();
        else
            say(_("qkv_mha_forward(), the layer of this library, with these matrices gives the same numbers; the largest "
                  "difference is %.6f."),
                largest_difference(qkv_tensor_data(y), qkv_tensor_data(s->output), TOKENS * DIM));
    }
    qkv_params_free(p);
    return status;
}

/* ---- the paper's size ---- */

enum { BATCH = 2, LENGTH = 5, WIDE = 512, MANY = 8 };

static qkv_status show_paper_shapes(qkv_tape *t)
{
    qkv_params *p = qkv_params_new(1);
    qkv_mha m = qkv_mha_new(p, "mha", &(qkv_mha_opts){ .dim = WIDE, .heads = MANY }),
            one = qkv_mha_new(p, "one", &(qkv_mha_opts){ .dim = WIDE, .heads = 1 });
    qkv_tensor *x = qkv_constant(t, QKV_SHAPE(BATCH, LENGTH, WIDE), NULL), *weights = NULL;
    qkv_tensor *q = qkv_linear_forward(&m.q, x), *split = qkv_reshape(q, QKV_SHAPE(BATCH, LENGTH, MANY, -1));
    qkv_tensor *heads = qkv_transpose(split, 1, 2);
    qkv_tensor *y = qkv_attention(heads, heads, heads, NULL, &(qkv_attention_opts){ .weights = &weights });
    qkv_tensor *concat = qkv_reshape(qkv_transpose(y, 1, 2), QKV_SHAPE(BATCH, LENGTH, WIDE));
    qkv_tensor *output = qkv_linear_forward(&m.out, concat);
    qkv_status status = qkv_params_status(p) || qkv_tape_status(t) ? library_failed() : QKV_OK;
    if (!status) {
        say_heading(_("The paper's size, with a batch"));
        say(_("d_model = %d, h = %d, a batch of %d sentences of %d tokens. The shapes, as they are computed:"), WIDE, MANY,
            BATCH, LENGTH);
        show_shape(_("X: batch, tokens, d_model"), x);
        show_shape("X W_Q", q);
        show_shape(_("split: batch, tokens, heads, d_k"), split);
        show_shape(_("swapped: batch, heads, tokens, d_k"), heads);
        show_shape(_("weights: batch, heads, queries, keys"), weights);
        show_shape(_("heads' results"), y);
        show_shape(_("concatenated"), concat);
        show_shape(_("times W_O"), output);
        putchar('\n');
        int64_t count = qkv_params_count(p) / 2;
        say(_("The layer has %lld weights, biases included. With one head of width %d it would have as many: heads cut the "
              "columns, they add none."),
            (long long)count, (int)qkv_tensor_dim(one.q.weight, 0));
        say(_(
            "PyTorch's nn.MultiheadAttention returns weights of shape (2, 5, 5), the mean over heads, unless it is called with "
            "average_attn_weights=False. Some tutorials say (2, 8, 5, 5) without it."));
        say(_("Weights start at random, uniform within sqrt(6 / (in + out)) (Xavier), as the projections of "
              "nn.MultiheadAttention do. A bare nn.Linear starts within 1 / sqrt(in), which is not Xavier: %.4f instead of "
              "%.4f "
              "for %d x %d."),
            1 / sqrt((double)WIDE), sqrt(6 / (2.0 * WIDE)), WIDE, WIDE);
    }
    qkv_params_free(p);
    return status;
}

static qkv_status run_multihead_lesson(void)
{
    steps s;
    qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .inference = 1 });
    qkv_status status = t ? compute_steps(t, &s) : library_failed();
    if (!status) {
        show_split(&s), show_heads(&s), show_concat(&s);
        status = compare_with_layer(t, &s);
    }
    if (!status) status = show_paper_shapes(t);
    qkv_tape_free(t);
    return status;
}

const lesson lesson_multihead = {
    .name = "14",
    .title = N_("Multi-head attention: split, concatenate, W_O"),
    .run = run_multihead_lesson,
    .question = N_("Eight heads of 64 numbers cost as much as one head of 512. What do they cost that one head does not, and "
                   "where does it stop being worth it?"),
    .answer = N_("Weights and multiplications are the same, but there are eight tables of n x n attention weights instead of "
                 "one. And each head compares with 64 numbers only: in the paper's table 3, 8 and 16 heads are best (BLEU 25.8 "
                 "on the development set), one head has 24.9, and 32 heads of 16 numbers fall to 25.4."),
};
