/* 03_reverse.c: one attention layer learns to write eight digits backwards.
 *
 * For every place of the answer the model asks one question: "which digit belongs here?". The question knows only the
 * place, the keys know place and digit. So the layer must learn that place i of the answer looks at place 7 - i, and its
 * attention map becomes the anti-diagonal, which is printed at the end. */
#include <qkv/qkv.h>

#include <stdio.h>

enum { DIGITS = 10, LENGTH = 8, DIM = 32, BATCH = 64, TESTS = 250, STEPS = 1000 };

typedef struct model {
    qkv_embedding digit;
    qkv_embedding place;
    qkv_mha attention;
    qkv_linear out;
} model;

/* ids: batch x LENGTH digits   ->   (batch, LENGTH, DIGITS), how well each digit fits at each place of the answer */
static qkv_tensor *forward(const model *m, qkv_tape *t, const int32_t *ids, int64_t batch)
{
    qkv_tensor *place = qkv_on(t, m->place.weight);
    qkv_tensor *digits = qkv_add(qkv_embedding_forward(&m->digit, t, ids, batch, LENGTH), place);
    qkv_tensor *questions = qkv_add(qkv_constant(t, QKV_SHAPE(batch, LENGTH, DIM), NULL), place);
    return qkv_linear_forward(&m->out, qkv_mha_forward(&m->attention, questions, digits, NULL));
}

/* A small random number generator, so that every run is the same. */
static int random_digit(void)
{
    static uint32_t state = 2017;
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return (int)(state % DIGITS);
}

/* Random sequences and their reversals. Those whose digits sum to a multiple of 7 are kept for the test: training never
 * sees one. */
static void draw(int32_t *x, int32_t *y, int count, int for_test)
{
    for (int i = 0; i < count;) {
        int sum = 0;
        for (int j = 0; j < LENGTH; j++) {
            int digit = random_digit();
            sum += digit;
            x[i * LENGTH + j] = y[i * LENGTH + LENGTH - 1 - j] = digit;
        }
        i += (sum % 7 == 0) == for_test;
    }
}

static int best_digit(const float *logits)
{
    int best = 0;
    for (int i = 1; i < DIGITS; i++)
        if (logits[i] > logits[best]) best = i;
    return best;
}

/* The attention of one sequence as text: a row for each place of the answer, a column for each digit read. */
static void print_map(const float *map, const int32_t *x, const int32_t *y)
{
    printf("\n      reads\nwrites");
    for (int j = 0; j < LENGTH; j++) printf("  %d  ", x[j]);
    for (int i = 0; i < LENGTH; i++) {
        printf("\n  %d   ", y[i]);
        for (int j = 0; j < LENGTH; j++) printf(" %.2f", (double)map[i * LENGTH + j]);
    }
    printf("\n\n");
}

/* How well the model does on sequences it has never seen. */
typedef struct score {
    double right;  /* the part of all digits that are right */
    double mirror; /* the least attention any place of any answer pays to its mirror place */
} score;

static score test(const model *m, const int32_t *x, const int32_t *y, int show)
{
    score s = { 0, 1 };
    qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .inference = 1, .keep_attention = 1 });
    const float *logits = qkv_tensor_data(forward(m, t, x, TESTS)), *maps = qkv_tensor_data(qkv_tape_attention(t, 0));
    for (int i = 0; logits && maps && i < TESTS * LENGTH; i++) {
        s.right += best_digit(logits + i * DIGITS) == y[i];
        double weight = (double)maps[i * LENGTH + LENGTH - 1 - i % LENGTH];
        if (weight < s.mirror) s.mirror = weight;
    }
    s.right /= TESTS * LENGTH;
    if (show && maps) print_map(maps, x, y);
    qkv_tape_free(t);
    return s;
}

int main(void)
{
    qkv_params *p = qkv_params_new(42); /* owns every weight and its gradient */
    model m;
    m.digit = qkv_embedding_new(p, "digit", DIGITS, DIM);
    m.place = qkv_embedding_new(p, "place", LENGTH, DIM);
    m.attention = qkv_mha_new(p, "attention", &(qkv_mha_opts){ .dim = DIM, .heads = 1 });
    m.out = qkv_linear_new(p, "out", DIM, DIGITS, 1);
    qkv_optimizer *adam = qkv_optimizer_new(p, &(qkv_optimizer_opts){ .rule = QKV_OPTIMIZER_ADAM, .lr = 5e-3f });
    qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .train = 1 });

    int32_t unseen_x[TESTS * LENGTH], unseen_y[TESTS * LENGTH];
    draw(unseen_x, unseen_y, TESTS, 1);

    int learned = 0;
    qkv_status status = QKV_OK;
    for (int step = 1; step <= STEPS && !learned && !status; step++) {
        int32_t x[BATCH * LENGTH], y[BATCH * LENGTH];
        draw(x, y, BATCH, 0);
        qkv_tensor *loss = qkv_cross_entropy(forward(&m, t, x, BATCH), y, NULL);
        status = qkv_backward(loss); /* also reports whatever failed before it, making the layers included */
        if (!status) status = qkv_optimizer_step(adam);
        if (step % 20 == 0 && !status) {
            score s = test(&m, unseen_x, unseen_y, 0);
            learned = s.right == 1 && s.mirror > 2.0 / 3;
            printf("step %4d   loss %.4f   unseen digits right %5.1f%%   attention to the mirror place at least %.2f\n", step,
                   (double)qkv_tensor_item(loss), 100 * s.right, s.mirror);
        }
        qkv_tape_reset(t); /* forgets this step, keeps its memory */
    }
    if (status) fprintf(stderr, "%s\n", qkv_error());
    else test(&m, unseen_x, unseen_y, 1);
    if (!learned) printf("it did not learn to reverse\n");

    qkv_tape_free(t);
    qkv_optimizer_free(adam);
    qkv_params_free(p);
    return !learned;
}
