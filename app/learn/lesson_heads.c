/* lesson_heads.c: lesson 4: a task that one head cannot do, however long it trains, and two can. */
#include "../draw/view.h"
#include "lesson.h"
#include "../term/errors.h"
#include "../term/print.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SEATS = 6, ROUNDS = 1 << SEATS, WIDTH = 8, STEPS = 300, TOLD = 5, STARTS = 3 };
static const int told[TOLD] = { 0, 25, 50, 100, STEPS };

/* Attention alone: queries and keys from the seats, values from the cards. */
typedef struct model {
    qkv_params *params;
    qkv_linear q, k, v, out;
    int64_t heads;
    float loss[STEPS + 1];
    float maps[2 * SEATS * SEATS]; /* (heads, SEATS, SEATS) after training */
} model;

/* Every way the cards can be dealt, +1 or -1 at each seat, what each seat must tell, and who sits where (one-hot). */
static struct {
    float cards[ROUNDS * SEATS], neighbours[ROUNDS * SEATS * 2], seats[ROUNDS * SEATS * SEATS];
} table_of_cards;

static void deal_cards(void)
{
    float *cards = table_of_cards.cards;
    for (int i = 0; i < ROUNDS * SEATS; i++) cards[i] = (i / SEATS >> i % SEATS) & 1 ? 1 : -1;
    for (int i = 0; i < ROUNDS * SEATS; i++) {
        int round = i / SEATS * SEATS;
        table_of_cards.neighbours[2 * i] = cards[round + (i + SEATS - 1) % SEATS];
        table_of_cards.neighbours[2 * i + 1] = cards[round + (i + 1) % SEATS];
        table_of_cards.seats[i * SEATS + i % SEATS] = 1;
    }
}

static qkv_status make_model(model *m, int64_t heads, uint64_t seed)
{
    m->heads = heads;
    m->params = qkv_params_new(seed);
    m->q = qkv_linear_new(m->params, "q", SEATS, WIDTH, false);
    m->k = qkv_linear_new(m->params, "k", SEATS, WIDTH, false);
    m->v = qkv_linear_new(m->params, "v", 1, WIDTH, false);
    m->out = qkv_linear_new(m->params, "out", WIDTH, 2, false);
    return qkv_params_status(m->params) ? library_failed() : QKV_OK;
}

/* The mean squared error over all rounds, seats and both answers. */
static qkv_tensor *loss_of(const model *m, qkv_tape *t, qkv_tensor **weights)
{
    qkv_tensor *seats = qkv_constant(t, QKV_SHAPE(ROUNDS, SEATS, SEATS), table_of_cards.seats);
    qkv_tensor *cards = qkv_constant(t, QKV_SHAPE(ROUNDS, SEATS, 1), table_of_cards.cards);
    qkv_tensor *wanted = qkv_constant(t, QKV_SHAPE(ROUNDS, SEATS, 2), table_of_cards.neighbours);
    qkv_tensor *y = qkv_attention(qkv_linear_forward(&m->q, seats), qkv_linear_forward(&m->k, seats),
                                  qkv_linear_forward(&m->v, cards), NULL,
                                  &(qkv_attention_opts){ .heads = m->heads, .weights = weights });
    return qkv_mse(qkv_linear_forward(&m->out, y), wanted);
}

static qkv_status keep_maps(model *m, qkv_tape *t)
{
    qkv_tensor *weights = NULL;
    m->loss[STEPS] = qkv_tensor_item(loss_of(m, t, &weights));
    if (qkv_tape_status(t)) return library_failed();
    memcpy(m->maps, qkv_tensor_data(weights),
           sizeof *m->maps * (size_t)(m->heads * SEATS * SEATS)); /* the same in every round */
    return QKV_OK;
}

static qkv_status train_heads(model *m, qkv_tape *t, qkv_optimizer *o)
{
    for (int step = 0; step < STEPS; step++) {
        qkv_tape_reset(t);
        qkv_tensor *loss = loss_of(m, t, NULL);
        if (qkv_backward(loss)) return library_failed();
        m->loss[step] = qkv_tensor_item(loss);
        if (qkv_optimizer_step(o)) return library_failed();
    }
    qkv_tape_reset(t);
    return keep_maps(m, t);
}

static qkv_status make_and_train(model *m, int64_t heads, uint64_t seed)
{
    qkv_status status = make_model(m, heads, seed);
    qkv_optimizer *o = status ? NULL
                              : qkv_optimizer_new(m->params, &(qkv_optimizer_opts){ .rule = QKV_OPTIMIZER_ADAM, .lr = 0.05f });
    qkv_tape *t = o ? qkv_tape_new(NULL) : NULL;
    if (!status) status = t ? train_heads(m, t, o) : library_failed();
    qkv_tape_free(t);
    qkv_optimizer_free(o);
    return status;
}

static void introduce_heads(void)
{
    say(_("%d people sit around a table, and each holds a card that says +1 or -1. Everyone must tell two "
          "things: the card on the left and the card on the right. People see each other by attention only. The queries and "
          "keys "
          "are made of the seat numbers, the values of the cards, and a matrix W_O turns what attention returns into the two "
          "answers. The loss is the mean squared error over all %d ways the cards can be dealt; who always answers 0 has a "
          "loss of "
          "1."),
        SEATS, ROUNDS);
    say_heading(_("Why one head cannot"));
    say(_("With one head a seat has one row of weights w. Whatever W_V and W_O are, all that it gets to know is one number, "
          "z = sum of w_j x_j over the cards x_j, because each number of the output is a multiple of z. The best guess of the "
          "left card that is a multiple of z has the mean squared error 1 - w_left^2 / W, where W is the sum of all w_j^2, and "
          "the best guess of the right card 1 - w_right^2 / W. So"));
    puts("    loss >= 1 - (w_left^2 + w_right^2) / (2 W) >= 1 - 1/2 = 0.5\n");
    say(_(
        "for all weights there are: what helps one answer hurts the other. Two heads have two rows of weights and two numbers "
        "z. Nothing stops them from reaching 0."));
}

static void show_losses(const model *one, const model *two)
{
    float losses[TOLD * 2];
    char names[TOLD][48];
    const char *rows[TOLD];
    for (int i = 0; i < TOLD; i++) {
        losses[2 * i] = one->loss[told[i]], losses[2 * i + 1] = two->loss[told[i]];
        snprintf(names[i], sizeof names[i], _("step %d"), told[i]), rows[i] = names[i];
    }
    say_heading(_("Trained on the spot"));
    say(_("Two models of %lld weights each, trained alike: one head of width %d, and two heads of width %d."),
        (long long)qkv_params_count(one->params), WIDTH, WIDTH / 2);
    print_table(&(table){ .values = losses,
                          .rows = TOLD,
                          .columns = 2,
                          .row.names = rows,
                          .column.names = (const char *const[]){ _("one head"), _("two heads") },
                          .decimals = 5 });
    putchar('\n');
    say(_("After %d steps one head is at %.5f, above 0.5 as it must be, and two heads are at %.5f."), STEPS,
        (double)one->loss[STEPS], (double)two->loss[STEPS]);
}

static void show_head(const char *title, const float *map)
{
    say("%s", title);
    print_table(&(table){ .values = map, .rows = SEATS, .columns = SEATS, .decimals = 3, .sums = true });
    putchar('\n');
}

static void show_heads(const model *one, const model *two)
{
    say_heading(_("Who looks at whom"));
    say(_("A row is a seat that looks, a column a seat that is looked at. Seat 0 has seat %d on its left and seat 1 on its "
          "right."),
        SEATS - 1);
    show_head(_("One head:"), one->maps);
    show_head(_("Two heads, the first:"), two->maps);
    show_head(_("Two heads, the second:"), two->maps + SEATS * SEATS);
    say(_("Each of the two heads has taken one side. The one head may look left, right, or at both: all are equally bad."));
}

static void show_starts(const model *one, const model *two)
{
    float losses[STARTS * 2];
    for (int i = 0; i < STARTS; i++) losses[2 * i] = one[i].loss[STEPS], losses[2 * i + 1] = two[i].loss[STEPS];
    say(_("It is not bad luck. The losses from %d different random starts, the first being the one above:"), STARTS);
    print_table(&(table){ .values = losses,
                          .rows = STARTS,
                          .columns = 2,
                          .column.names = (const char *const[]){ _("one head"), _("two heads") },
                          .decimals = 5 });
    putchar('\n');
}

static qkv_status draw_heads(const model *one, const model *two)
{
    const qkv_heatmap maps[] = { { one->maps, _("one head") },
                                 { two->maps, _("two heads: the first") },
                                 { two->maps + SEATS * SEATS, _("two heads: the second") } };
    double steps[STEPS + 1], losses[2][STEPS + 1];
    for (int i = 0; i <= STEPS; i++) steps[i] = i, losses[0][i] = (double)one->loss[i], losses[1][i] = (double)two->loss[i];
    const qkv_curve curves[] = { { _("one head"), steps, losses[0], STEPS + 1 },
                                 { _("two heads"), steps, losses[1], STEPS + 1 } };
    qkv_status status = draw_maps("heads", maps, 3,
                                  &(qkv_heatmap_opts){ .rows = SEATS,
                                                       .columns = SEATS,
                                                       .row_axis = _("query (attending)"),
                                                       .column_axis = _("key (attended)"),
                                                       .high = 1,
                                                       .across = 3 });
    if (status) return status;
    return draw_curves("heads_loss", curves, 2,
                       &(qkv_curve_opts){ .title = _("both neighbours' cards"), .x_axis = _("step"), .y_axis = _("loss") });
}

static qkv_status run_heads_lesson(void)
{
    model one[STARTS] = { 0 }, two[STARTS] = { 0 };
    qkv_status status = QKV_OK;
    introduce_heads();
    deal_cards();
    for (int i = 0; i < STARTS && !status; i++) status = make_and_train(&one[i], 1, (uint64_t)i + 1);
    for (int i = 0; i < STARTS && !status; i++) status = make_and_train(&two[i], 2, (uint64_t)i + 1);
    if (!status) {
        show_losses(one, two);
        show_heads(one, two);
        show_starts(one, two);
        status = draw_heads(one, two);
    }
    for (int i = 0; i < STARTS; i++) qkv_params_free(one[i].params), qkv_params_free(two[i].params);
    return status;
}

const lesson lesson_heads = {
    .name = "4",
    .title = N_("Several heads against one"),
    .run = run_heads_lesson,
    .question = N_(
        "In a Transformer a feed-forward layer, which is not linear, follows the attention. Could it help the one head?"),
    .answer = N_(
        "With cards, yes. If the weights are 2/3 and 1/3, z takes four different values, 1, 1/3, -1/3 and -1, one for each "
        "pair of cards, and a layer that is not linear can tell them apart. With any real numbers instead of cards, no: "
        "many pairs give the same z, and what the sum has mixed nothing can separate. Two heads do not need the trick."),
};
