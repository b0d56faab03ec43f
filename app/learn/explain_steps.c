/* explain_steps.c: an explanation as a list of steps, each with its words, its formula and its tables. */
#include "explained.h"

#include "../term/language.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const labels no_names = { 0 };

static shown *add_table(step *s, const char *key, const char *symbol, const qkv_tensor *values, labels row, labels column)
{
    s->tables[s->n] = (shown){ key, symbol, values, row, column, .is_by_query = false };
    return &s->tables[s->n++];
}

/* ---- from tokens to queries, keys and values ---- */

static int list_inputs(const explained *e, step *s)
{
    if (!e->x) return 0;
    snprintf(s->title, sizeof s->title, "%s", e->about ? _("Hidden states X") : _("Embeddings X"));
    snprintf(s->formula, sizeof s->formula, "X");
    snprintf(s->note, sizeof s->note, "%s", e->x_note);
    add_table(s, "x", "X", e->x, e->queries, no_names)->is_by_query = true;
    if (!e->y) return 1;
    snprintf(s[1].title, sizeof s[1].title, "%s", _("The other side Y"));
    snprintf(s[1].formula, sizeof s[1].formula, "Y");
    snprintf(s[1].note, sizeof s[1].note, "%s", _("Keys and values come from here: the other text."));
    add_table(&s[1], "y", "Y", e->y, e->keys, no_names);
    return 2;
}

static spelled_sum first_product(const explained *e, const qkv_tensor *from, const qkv_tensor *w, const qkv_tensor *result,
                                 char name)
{
    int64_t n = qkv_tensor_dim(w, 0), i = name == 'Q' && e->token > 0 ? e->token : 0;
    spelled_sum sum = { .a = qkv_tensor_data(from) + i * n, .b = qkv_tensor_data(w), .step = qkv_tensor_dim(w, 1), .n = n };
    sum.result = qkv_tensor_data(result)[i * qkv_tensor_dim(result, 1)];
    snprintf(sum.name, sizeof sum.name, "%c[%lld][0]", name, (long long)i);
    return sum;
}

static void list_projection(const explained *e, int part, step *s)
{
    static const struct {
        const char *title, *note, *letter, *key, *weight_key, *weight, *bias_key, *bias;
    } words[] = {
        { N_("Queries"), N_("A query is what a token looks for."), "Q", "q", "w_q", "W_Q", "b_q", "b_Q" },
        { N_("Keys"), N_("A key is what a token can be found by."), "K", "k", "w_k", "W_K", "b_k", "b_K" },
        { N_("Values"), N_("A value is what a token hands over when it is looked at."), "V", "v", "w_v", "W_V", "b_v", "b_V" },
    };
    const qkv_tensor *const results[] = { e->q, e->k, e->v }, *w = e->w[part], *from = part && e->y ? e->y : e->x;
    const char *letter = words[part].letter, *source = part && e->y ? "Y" : "X";
    char formula[64] = "";
    if (w)
        snprintf(formula, sizeof formula, " = %s %s%s%s", source, words[part].weight, e->b[part] ? " + " : "",
                 e->b[part] ? words[part].bias : "");
    snprintf(s->title, sizeof s->title, "%s %s%s", _(words[part].title), letter, formula);
    snprintf(s->formula, sizeof s->formula, "%s%s", letter, formula);
    snprintf(s->note, sizeof s->note, "%s%s", _(words[part].note),
             e->is_turned && part < 2 ? _(" Rotary positions have turned each by an angle that its place gives.") : "");
    if (w) add_table(s, words[part].weight_key, words[part].weight, w, no_names, no_names);
    if (e->b[part]) add_table(s, words[part].bias_key, words[part].bias, e->b[part], no_names, no_names);
    add_table(s, words[part].key, letter, results[part], part ? e->keys : e->queries, no_names)->is_by_query = !part;
    if (w && !e->b[part]) s->sum = first_product(e, from, w, results[part], *letter);
}

static int list_split(const explained *e, step *s)
{
    if (e->heads == 1) return 0;
    snprintf(s->title, sizeof s->title, _("Split into %lld heads"), (long long)e->heads);
    snprintf(
        s->note, sizeof s->note,
        _("Nothing is computed: head h takes columns h * %lld to h * %lld + %lld of Q and K, and %lld of V, and attends with "
          "them alone."),
        (long long)qkv_tensor_dim(e->split[0], 2), (long long)qkv_tensor_dim(e->split[0], 2),
        (long long)qkv_tensor_dim(e->split[0], 2) - 1, (long long)qkv_tensor_dim(e->split[2], 2));
    add_table(s, "q_heads", "Q", e->split[0], e->queries, no_names)->is_by_query = true;
    add_table(s, "k_heads", "K", e->split[1], e->keys, no_names);
    add_table(s, "v_heads", "V", e->split[2], e->keys, no_names);
    return 1;
}

/* ---- scores and weights ---- */

static shown *add_between(const explained *e, step *s, const char *key, const char *symbol, const qkv_tensor *values)
{
    shown *t = add_table(s, key, symbol, values, e->queries, e->key_columns);
    t->is_by_query = t->is_between = true;
    return t;
}

static int64_t first_head(const explained *e) { return e->head < 0 ? 0 : e->head; }
static int64_t first_query(const explained *e) { return e->token < 0 ? 0 : e->token; }

static int list_scores(const explained *e, step *s)
{
    int64_t d_k = qkv_tensor_dim(e->split[0], 2), tokens = qkv_tensor_dim(e->q, 0), keys = qkv_tensor_dim(e->k, 0),
            i = first_query(e);
    int64_t h = first_head(e), of_keys = h / (e->heads / e->kv_heads);
    snprintf(s->title, sizeof s->title, "%s S = Q K^T", _("Scores"));
    snprintf(s->formula, sizeof s->formula, "S = Q K^\\top");
    snprintf(s->note, sizeof s->note, "%s",
             _("Each query meets each key: S[i][j] = q_i . k_j, large where they point the same way."));
    add_between(e, s, "scores", "S", e->scores);
    s->sum = (spelled_sum){ .a = qkv_tensor_data(e->split[0]) + (h * tokens + i) * d_k,
                            .b = qkv_tensor_data(e->split[1]) + of_keys * keys * d_k,
                            .step = 1,
                            .n = d_k,
                            .result = qkv_tensor_data(e->scores)[(h * tokens + i) * keys] };
    snprintf(s->sum.name, sizeof s->sum.name, "S[%lld][0]", (long long)i);
    snprintf(s[1].title, sizeof s[1].title, "%s S / sqrt(d_k) = S / %.3f", _("Scaled"), sqrt((double)d_k));
    snprintf(s[1].formula, sizeof s[1].formula, "\\frac{S}{\\sqrt{d_k}} = \\frac{S}{\\sqrt{%lld}}", (long long)d_k);
    snprintf(s[1].note, sizeof s[1].note, "%s", _("The variance of a score grows with d_k; dividing by the root undoes that."));
    add_between(e, &s[1], "scaled", "S / sqrt(d_k)", e->scaled);
    return 2;
}

static int list_masked(const explained *e, step *s)
{
    if (!e->bias && !e->hidden) return 0;
    snprintf(s->title, sizeof s->title, "%s", _("Masked"));
    snprintf(s->formula, sizeof s->formula, "S' = \\frac{S}{\\sqrt{d_k}} + M");
    snprintf(s->note, sizeof s->note, "%s%s%s", e->bias ? _("The bias is added. ") : "",
             e->mask.causal ? _("Causal: a key that comes after the query is hidden by -inf. ") : "",
             e->mask.keep ? _("Padding is hidden by -inf from every query. ") : "");
    if (e->bias) add_table(s, "bias", "M", e->bias, no_names, no_names);
    add_between(e, s, "masked", "S'", e->masked);
    return 1;
}

static int list_weights(const explained *e, step *s)
{
    const char *of = e->bias || e->hidden ? "S'" : "\\frac{S}{\\sqrt{d_k}}";
    snprintf(s->title, sizeof s->title, "%s A = softmax", _("Weights"));
    snprintf(s->formula, sizeof s->formula, "A = \\mathrm{softmax}\\left(%s\\right)", of);
    snprintf(s->note, sizeof s->note, "%s%s",
             _("A[i][j] = exp(s_ij) / (exp(s_i0) + exp(s_i1) + ...). Each row becomes shares that sum to 1."),
             e->hidden ? _(" What is hidden (///) has no share: its weight is exactly 0.") : "");
    shown *t = add_between(e, s, "weights", "A", e->weights);
    t->has_sums = t->is_masked = true;
    s->is_read = true;
    return 1;
}

/* ---- from weights to the output ---- */

static void list_attended(const explained *e, step *s)
{
    int64_t keys = qkv_tensor_dim(e->k, 0), tokens = qkv_tensor_dim(e->q, 0), d_v = qkv_tensor_dim(e->split[2], 2),
            i = first_query(e);
    int64_t h = first_head(e), of_keys = h / (e->heads / e->kv_heads);
    snprintf(s->title, sizeof s->title, "%s", e->heads > 1 ? _("Each head's output O = A V") : _("Output O = A V"));
    snprintf(s->formula, sizeof s->formula, "O = A V");
    snprintf(s->note, sizeof s->note, "%s",
             _("Each token takes the values by its shares: O[i] = A[i][0] v_0 + A[i][1] v_1 + ..."));
    add_table(s, "attended", "O", e->attended, e->queries, no_names)->is_by_query = true;
    s->sum = (spelled_sum){ .a = qkv_tensor_data(e->weights) + (h * tokens + i) * keys,
                            .b = qkv_tensor_data(e->split[2]) + of_keys * keys * d_v,
                            .step = d_v,
                            .n = keys,
                            .result = qkv_tensor_data(e->attended)[(h * tokens + i) * d_v] };
    snprintf(s->sum.name, sizeof s->sum.name, "O[%lld][0]", (long long)i);
}

static int list_concat(const explained *e, step *s)
{
    if (e->heads == 1) return 0;
    snprintf(s->title, sizeof s->title, "%s", _("Concat"));
    snprintf(s->formula, sizeof s->formula, "C = \\mathrm{Concat}(O_1, \\ldots, O_{%lld})", (long long)e->heads);
    snprintf(s->note, sizeof s->note, "%s", _("The outputs of the heads side by side again, a row for each token."));
    add_table(s, "concat", "C", e->concat, e->queries, no_names)->is_by_query = true;
    return 1;
}

static int list_output(const explained *e, step *s)
{
    if (!e->output) return 0;
    char formula[64];
    snprintf(formula, sizeof formula, "%s W_O%s", e->heads > 1 ? "C" : "O", e->b[PART_O] ? " + b_O" : "");
    snprintf(s->title, sizeof s->title, "%s Z = %s", _("Output of all"), formula);
    snprintf(s->formula, sizeof s->formula, "Z = %s", formula);
    snprintf(s->note, sizeof s->note, "%s",
             e->is_part ? _("What this head adds: the rows of W_O that belong to it. The other heads add theirs, and the bias.")
                        : _("W_O mixes what the heads have found."));
    add_table(s, "w_o", "W_O", e->w[PART_O], no_names, no_names);
    if (e->b[PART_O]) add_table(s, "b_o", "b_O", e->b[PART_O], no_names, no_names);
    add_table(s, "output", "Z", e->output, e->queries, no_names)->is_by_query = true;
    return 1;
}

int list_steps(const explained *e, step steps[MOST_STEPS])
{
    int n = list_inputs(e, steps);
    for (int part = 0; part < 3; part++) list_projection(e, part, &steps[n++]);
    n += list_split(e, &steps[n]);
    n += list_scores(e, &steps[n]);
    n += list_masked(e, &steps[n]);
    n += list_weights(e, &steps[n]);
    list_attended(e, &steps[n++]);
    n += list_concat(e, &steps[n]);
    return n + list_output(e, &steps[n]);
}

void heads_shown(const explained *e, const shown *s, int64_t *first, int64_t *n)
{
    int64_t heads = qkv_tensor_ndim(s->values) == 3 ? qkv_tensor_dim(s->values, 0) : 1;
    *first = e->head < 0 || heads == 1 ? 0 : e->head * heads / e->heads;
    *n = e->head < 0 ? heads : 1;
}

/* ---- a row in words ---- */

/* What has been written of a sentence; what does not fit is lost. */
typedef struct sentence {
    char *text;
    size_t room, used;
} sentence;

static void put_words(sentence *s, const char *words)
{
    int n = snprintf(s->text + s->used, s->room - s->used, "%s", words);
    s->used += (size_t)n < s->room - s->used ? (size_t)n : s->room - s->used - 1;
}

static const char *word_of(const char *const *words, labels l, int64_t i, char name[NAME_ROOM])
{
    if (words) return words[i];
    snprintf(name, NAME_ROOM, "%s%lld", l.prefix ? l.prefix : "", (long long)i);
    return name;
}

static void put_share(const explained *e, sentence *s, int64_t i, int64_t j, float weight)
{
    char name[NAME_ROOM], words[NAME_ROOM + 64];
    if (e->is_self && i == j) snprintf(words, sizeof words, _("%.3f to itself"), (double)weight);
    else snprintf(words, sizeof words, _("%.3f to %s"), (double)weight, word_of(e->key_words, e->key_columns, j, name));
    put_words(s, words);
}

/* The largest weight that is seen and not told yet; -1: none. */
static int64_t next_largest(const float *weights, const uint8_t *hidden, const uint8_t *told, int64_t n)
{
    int64_t best = -1;
    for (int64_t j = 0; j < n; j++)
        if (!(hidden && hidden[j]) && !told[j] && (best < 0 || weights[j] > weights[best])) best = j;
    return best;
}

static void put_rest(sentence *s, const float *weights, const uint8_t *hidden, const uint8_t *told, int64_t n)
{
    double rest = 0;
    int others = 0;
    char words[96];
    for (int64_t j = 0; j < n; j++)
        if (!(hidden && hidden[j]) && !told[j]) rest += (double)weights[j], others++;
    if (!others) return;
    snprintf(words, sizeof words, _(", and %.3f to %d others"), rest, others);
    put_words(s, words);
}

static void put_hidden(const explained *e, sentence *s, const uint8_t *hidden, int64_t n)
{
    enum { NAMED = 4 };
    int64_t count = 0;
    char name[NAME_ROOM], words[NAME_ROOM];
    for (int64_t j = 0; hidden && j < n; j++) {
        if (!hidden[j] || count++ >= NAMED) continue;
        put_words(s, count == 1 ? _("; hidden from it: ") : _(", "));
        put_words(s, word_of(e->key_words, e->key_columns, j, name));
    }
    if (count <= NAMED) return;
    snprintf(words, sizeof words, _(" and %lld more"), (long long)(count - NAMED));
    put_words(s, words);
}

void read_row(const explained *e, int64_t h, int64_t i, char *text, size_t room)
{
    enum { TOLD = 4 };
    int64_t keys = qkv_tensor_dim(e->k, 0), row = h * qkv_tensor_dim(e->q, 0) + i, j;
    const float *weights = qkv_tensor_data(e->weights) + row * keys;
    const uint8_t *hidden = e->hidden ? e->hidden + row * keys : NULL;
    uint8_t *told = calloc((size_t)keys + 1, 1);
    char name[NAME_ROOM], words[NAME_ROOM + 64];
    sentence s = { text, room, 0 };
    const char *query = word_of(e->words, e->queries, i, name);
    *text = '\0';
    if (told && next_largest(weights, hidden, told, keys) < 0) {
        snprintf(words, sizeof words, _("%s may see nothing: its weights and its output are 0."), query);
        put_words(&s, words);
    } else if (told) {
        snprintf(words, sizeof words, _("%s attends "), query);
        put_words(&s, words);
        for (int n = 0; n < TOLD && (j = next_largest(weights, hidden, told, keys)) >= 0; n++) {
            if (n) put_words(&s, _(", "));
            put_share(e, &s, i, j, weights[j]);
            told[j] = 1;
        }
        put_rest(&s, weights, hidden, told, keys);
        put_hidden(e, &s, hidden, keys);
        put_words(&s, _("."));
    }
    free(told);
}
