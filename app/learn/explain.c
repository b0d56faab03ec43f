/* explain.c: reads what is to be explained and computes every step of it. */
#include "../report/arrays.h"

#include <qkv/unstable/util.h>
#include "../report/results.h"
#include "explained.h"

#include "../term/errors.h"
#include "../term/language.h"
#include "walk.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the example: a tutorial's embeddings and matrices, which give the queries, keys and values of walk.h ---- */

enum { EXAMPLE_TOKENS = 3, EXAMPLE_DIM = 4, EXAMPLE_VOCABULARY = 1000 };
static const float example_w[3][16] = {
    { 0.2f, 0.1f, 0.3f, 0.5f, 0.4f, 0.6f, 0.1f, 0.2f },
    { 0.1f, 0.3f, 0.2f, 0.4f, 0.5f, 0.7f, 0.1f, 0.2f },
    { 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1 },
};

static void take_example(explained *e)
{
    static const int64_t widths[3] = { 2, 2, 4 };
    e->x = qkv_constant(e->tape, QKV_SHAPE(EXAMPLE_TOKENS, EXAMPLE_DIM), example_operands.v.data); /* W_V is the identity */
    for (int i = 0; i < 3; i++) e->w[i] = qkv_constant(e->tape, QKV_SHAPE(EXAMPLE_DIM, widths[i]), example_w[i]);
    e->queries = e->keys = (labels){ .names = example_tokens };
    e->key_columns = (labels){ .names = example_columns };
    e->words = e->key_words = example_columns;
    e->is_self = true;
    int n = snprintf(e->note_text, sizeof e->note_text, "%s", _(example_about));
    snprintf(
        e->note_text + n, sizeof e->note_text - (size_t)n,
        _(" Each id selects a row of the embedding table, here %d rows of %d numbers. Rows 133, 23 and 58 form X. X, W_Q, W_K "
          "and W_V are the tutorial's numbers; a model learns its own. W_V is the identity matrix, so V = X. (The tutorial "
          "also prints embeddings whose rows for ids 23 and 58 contradict its own V; they are not used here.)"),
        EXAMPLE_VOCABULARY, EXAMPLE_DIM);
    e->x_note = e->note_text;
}

/* ---- arrays that were typed ---- */

/* A matrix on the tape; one row may be given as a list. Reports its error. */
static qkv_status load_tensor(qkv_tape *t, const char *option, const char *source, int most_dims, qkv_tensor **out)
{
    qkv_array a = { 0 };
    qkv_status status = qkv_array_read(source, &a);
    if (status) return fail(status, "--%s: %s", option, library_error());
    if (a.ndim < 1 || a.ndim > most_dims)
        status = fail(QKV_USAGE, "--%s: %.200s has %d dimensions: one attention is explained at a time, from %s", option,
                      source, a.ndim, most_dims > 2 ? _("1 to 3") : _("2 (T,D)"));
    int64_t row[] = { 1, a.shape[0] };
    if (!status) *out = a.ndim == 1 ? qkv_constant(t, 2, row, a.data) : qkv_constant(t, a.ndim, a.shape, a.data);
    qkv_array_free(&a);
    return !status && qkv_tape_status(t) ? library_failed() : status;
}

static qkv_status load_matrix(explained *e, const char *option, const char *source, qkv_tensor **out)
{
    if (!source) return QKV_OK;
    qkv_status status = load_tensor(e->tape, option, source, 2, out);
    return status ? status : check_finite(option, qkv_tensor_data(*out), qkv_tensor_count(*out));
}

/* A matrix, or one of a batch of them, (B, T, D). */
static qkv_status load_sequence(explained *e, const explain_input *in, const char *option, const char *source, qkv_tensor **out)
{
    if (!source) return QKV_OK;
    qkv_status status = load_tensor(e->tape, option, source, 3, out);
    if (!status && qkv_tensor_ndim(*out) == 3) {
        int64_t batch = qkv_tensor_dim(*out, 0), rows = qkv_tensor_dim(*out, 1), columns = qkv_tensor_dim(*out, 2);
        if (in->sequence >= batch)
            return fail(QKV_USAGE, "--sequence %lld: --%s holds sequences 0 to %lld", (long long)in->sequence, option,
                        (long long)batch - 1);
        *out = qkv_reshape(qkv_slice(*out, 0, in->sequence, in->sequence + 1), QKV_SHAPE(rows, columns));
        if (!*out) return library_failed();
        snprintf(e->batch_text, sizeof e->batch_text, _("Sequence %lld of a batch of %lld."), (long long)in->sequence,
                 (long long)batch);
    } else if (!status && in->sequence)
        status = fail(QKV_USAGE, "--sequence is for a batch, an array (B,T,D); --%s has %d dimensions", option,
                      qkv_tensor_ndim(*out));
    return status ? status : check_finite(option, qkv_tensor_data(*out), qkv_tensor_count(*out));
}

/* A list of whole numbers below `limit` such as 3,5: gives how many, -1, reported, for anything else. */
static int64_t read_places(const char *option, const char *text, int64_t limit, int32_t *places, int64_t room)
{
    int64_t n = 0;
    for (const char *at = text;; at++) {
        char *end;
        errno = 0;
        long long place = isdigit((unsigned char)*at) ? strtoll(at, &end, 10) : -1;
        if (place < 0 || errno || (*end && *end != ',') || n == room)
            return fail(QKV_USAGE, "--%s: \"%s\" is not a list of whole numbers such as 3,5", option, text), -1;
        if (place >= limit) return fail(QKV_USAGE, "--%s: %lld is outside 0..%lld", option, place, (long long)limit - 1), -1;
        places[n++] = (int32_t)place;
        if (!*(at = end)) return n;
    }
}

/* X as rows of a table. */
static qkv_status look_up(explained *e, const explain_input *in)
{
    enum { MOST_IDS = 4096 };
    int32_t ids[MOST_IDS];
    qkv_tensor *rows_of = NULL;
    if (!in->ids) return fail(QKV_USAGE, "--embed needs --ids: which rows of the table are looked up, such as --ids 5,6,2");
    qkv_status status = load_matrix(e, "embed", in->embed, &rows_of);
    int64_t rows = qkv_tensor_dim(rows_of, 0), n = status ? 0 : read_places("ids", in->ids, rows, ids, MOST_IDS);
    if (status || n < 0) return status ? status : QKV_USAGE;
    e->x = qkv_gather(e->tape, rows_of, ids, 1, &n);
    snprintf(e->note_text, sizeof e->note_text,
             _("Each token has an id, and each id a row of the embedding table, which has %lld rows of %lld numbers here. Rows "
               "%s are looked up; one under the other they are X."),
             (long long)rows, (long long)qkv_tensor_dim(rows_of, 1), in->ids);
    e->x_note = e->note_text;
    return QKV_OK;
}

static const char *const part_names[PARTS] = { "q", "k", "v", "o" };

static qkv_status load_weights(explained *e, const explain_input *in)
{
    qkv_status status = QKV_OK;
    for (int i = 0; i < PARTS && !status; i++) {
        char name[8];
        snprintf(name, sizeof name, "w%s", part_names[i]);
        status = load_matrix(e, name, in->w[i], &e->w[i]);
        *name = 'b';
        if (!status) status = load_matrix(e, name, in->b[i], &e->b[i]);
        if (!status && in->b[i] && !in->w[i])
            status = fail(QKV_USAGE, "--b%s is added to a product with --w%s, which is missing", part_names[i], part_names[i]);
    }
    return status;
}

static qkv_status load_projected(explained *e, const explain_input *in)
{
    if (in->q || in->k || in->v) return fail(QKV_USAGE, "--q, --k and --v, or --x with --wq, --wk and --wv: choose one");
    if (in->x && in->embed) return fail(QKV_USAGE, "--x and --embed: choose one");
    if (!in->x && !in->embed) return fail(QKV_USAGE, "--x is missing: what --wq, --wk and --wv are multiplied with");
    if (!in->w[PART_Q] || !in->w[PART_K] || !in->w[PART_V]) return fail(QKV_USAGE, "--wq, --wk and --wv go together");
    qkv_status status = in->embed ? look_up(e, in) : load_sequence(e, in, "x", in->x, &e->x);
    if (!status) status = load_sequence(e, in, "y", in->y, &e->y);
    e->is_self = !in->y;
    e->queries = e->keys = e->key_columns = (labels){ .prefix = "t" };
    if (in->y) e->keys = e->key_columns = (labels){ .prefix = "y" };
    if (!in->embed) e->x_note = _("A row of numbers for each token.");
    return status;
}

static qkv_status load_operand_matrices(explained *e, const explain_input *in)
{
    if (!in->q || !in->k || !in->v) return fail(QKV_USAGE, "--q, --k and --v go together");
    if (in->y || in->ids || in->w[PART_Q] || in->w[PART_K] || in->w[PART_V])
        return fail(QKV_USAGE, "--q, --k and --v, or --x with --wq, --wk and --wv: choose one");
    e->queries = (labels){ .prefix = "q" };
    e->keys = e->key_columns = (labels){ .prefix = "k" };
    qkv_status status = load_sequence(e, in, "q", in->q, &e->q);
    if (!status) status = load_sequence(e, in, "k", in->k, &e->k);
    return status ? status : load_sequence(e, in, "v", in->v, &e->v);
}

/* ---- products ---- */

static qkv_status check_equal(const char *what, int64_t a, const char *other, int64_t b)
{
    if (a == b) return QKV_OK;
    return fail(QKV_USAGE, "%s (%lld) and %s (%lld) must be equal", _(what), (long long)a, _(other), (long long)b);
}

/* Q, K and V of X and Y. */
static qkv_status project(explained *e)
{
    static const char *const rows[] = { N_("rows of W_Q"), N_("rows of W_K"), N_("rows of W_V") };
    qkv_tensor **to[] = { &e->q, &e->k, &e->v };
    for (int i = 0; e->x && i < 3; i++) {
        bool is_other = i && e->y;
        qkv_tensor *from = is_other ? e->y : e->x;
        qkv_status status = check_equal(is_other ? N_("columns of Y") : N_("columns of X"), qkv_tensor_dim(from, 1), rows[i],
                                        qkv_tensor_dim(e->w[i], 0));
        if (status) return status;
        *to[i] = qkv_matmul(from, e->w[i], 0);
        if (e->b[i]) *to[i] = qkv_add(*to[i], e->b[i]);
    }
    return qkv_tape_status(e->tape) ? library_failed() : QKV_OK;
}

static qkv_status check_heads(const explained *e)
{
    const qkv_tensor *const parts[] = { e->q, e->k, e->v };
    for (int i = 0; i < 3; i++)
        if (qkv_tensor_dim(parts[i], 1) % (i ? e->kv_heads : e->heads))
            return fail(QKV_USAGE, "%c has %lld columns, which do not divide into %lld heads", "QKV"[i],
                        (long long)qkv_tensor_dim(parts[i], 1), (long long)e -> heads);
    qkv_status status = check_equal(N_("columns of Q"), qkv_tensor_dim(e->q, 1) / e->heads, N_("columns of K"),
                                    qkv_tensor_dim(e->k, 1) / e->kv_heads);
    if (!status) status = check_equal(N_("rows of K"), qkv_tensor_dim(e->k, 0), N_("rows of V"), qkv_tensor_dim(e->v, 0));
    if (!status && e->w[PART_O])
        status = check_equal(N_("columns of V"), qkv_tensor_dim(e->v, 1) / e->kv_heads * e->heads, N_("rows of W_O"),
                             qkv_tensor_dim(e->w[PART_O], 0));
    return status;
}

/* (T, H*D) as (H, T, D). */
static qkv_tensor *split_heads(qkv_tensor *x, int64_t heads)
{
    qkv_tensor *y = qkv_reshape(x, QKV_SHAPE(qkv_tensor_dim(x, 0), heads, qkv_tensor_dim(x, 1) / heads));
    return qkv_permute(y, (int[]){ 1, 0, 2 });
}

static qkv_tensor *as_batch(qkv_tensor *x) { return qkv_reshape(x, QKV_SHAPE(1, qkv_tensor_dim(x, 0), qkv_tensor_dim(x, 1))); }

static qkv_tensor *without_batch(qkv_tensor *x)
{
    if (qkv_tensor_ndim(x) == 3) return qkv_reshape(x, QKV_SHAPE(qkv_tensor_dim(x, 1), qkv_tensor_dim(x, 2)));
    return qkv_reshape(x, QKV_SHAPE(qkv_tensor_dim(x, 1), qkv_tensor_dim(x, 2), qkv_tensor_dim(x, 3)));
}

static qkv_status mark_hidden(explained *e)
{
    int64_t n = qkv_tensor_count(e->masked), hidden = 0;
    const float *scores = qkv_tensor_data(e->masked);
    if (!(e->hidden = calloc((size_t)n + 1, 1))) return fail(QKV_MEMORY, "out of memory");
    for (int64_t i = 0; i < n; i++) hidden += e->hidden[i] = scores[i] == -INFINITY;
    if (!hidden) free(e->hidden), e->hidden = NULL;
    return QKV_OK;
}

qkv_status compute_explained(explained *e)
{
    qkv_tensor *scores = NULL, *masked = NULL, *weights = NULL;
    qkv_status status = check_heads(e);
    if (status) return status;
    const qkv_attention_opts opts = {
        .heads = e->heads, .kv_heads = e->kv_heads, .scores = &scores, .scaled = &masked, .weights = &weights
    };
    qkv_tensor *y = qkv_attention(as_batch(e->q), as_batch(e->k), as_batch(e->v), &e->mask, &opts);
    e->split[0] = split_heads(e->q, e->heads);
    e->split[1] = split_heads(e->k, e->kv_heads);
    e->split[2] = split_heads(e->v, e->kv_heads);
    e->scores = without_batch(scores);
    e->scaled = qkv_scale(e->scores, 1 / sqrtf((float)qkv_tensor_dim(e->split[0], 2)));
    e->masked = without_batch(masked);
    e->weights = without_batch(weights);
    e->concat = without_batch(y);
    e->attended = split_heads(e->concat, e->heads);
    if (e->w[PART_O]) e->output = qkv_matmul(e->concat, e->w[PART_O], 0);
    if (e->b[PART_O]) e->output = qkv_add(e->output, e->b[PART_O]);
    if (qkv_tape_status(e->tape)) return library_failed();
    for (int64_t i = 0; i < qkv_tensor_count(e->scaled); i++)
        if (!isfinite(qkv_tensor_data(e->scaled)[i]))
            return fail(QKV_NUMERIC, "the scores Q K^T are not finite: queries or keys are too large");
    return mark_hidden(e);
}

/* ---- masks ---- */

static qkv_status hide_padding(explained *e, const char *places)
{
    int64_t keys = qkv_tensor_dim(e->k, 0);
    int32_t *hidden = malloc(sizeof *hidden * (size_t)(keys + 1));
    free(e->keep);
    e->keep = malloc((size_t)keys + 1);
    if (!hidden || !e->keep) return free(hidden), fail(QKV_MEMORY, "out of memory");
    memset(e->keep, 1, (size_t)keys);
    int64_t n = read_places("mask padding", places, keys, hidden, keys);
    for (int64_t i = 0; i < n; i++) e->keep[hidden[i]] = 0;
    free(hidden);
    e->mask.keep = e->keep;
    memcpy(e->mask.keep_shape, (int64_t[]){ 1, 1, 1, keys }, sizeof e->mask.keep_shape);
    return n < 0 ? QKV_USAGE : QKV_OK;
}

static qkv_status read_mask(explained *e, const explain_input *in)
{
    static const char padding[] = "padding:";
    char parts[256];
    qkv_status status = QKV_OK;
    e->mask.causal = in->causal;
    snprintf(parts, sizeof parts, "%s", in->mask ? in->mask : "");
    for (char *rest = parts, *part; !status && (part = strsep(&rest, "+"));) {
        if (!in->mask) continue;
        if (!strcmp(part, "causal")) e->mask.causal = 1;
        else if (!strncmp(part, padding, strlen(padding))) status = hide_padding(e, part + strlen(padding));
        else
            status = fail(QKV_USAGE,
                          "--mask \"%s\": give causal, or padding: and the keys that are padding, from 0, such as padding:3,5, "
                          "or causal+padding:3",
                          in->mask);
    }
    return status;
}

static qkv_status load_bias(explained *e, const explain_input *in)
{
    if (!in->bias) return QKV_OK;
    qkv_status status = load_tensor(e->tape, "bias", in->bias, 3, &e->bias);
    if (status) return status;
    bool has_heads = qkv_tensor_ndim(e->bias) == 3;
    int64_t shape[4] = { 1, has_heads ? qkv_tensor_dim(e->bias, 0) : 1, qkv_tensor_dim(e->bias, -2),
                         qkv_tensor_dim(e->bias, -1) };
    memcpy(e->mask.bias_shape, shape, sizeof shape);
    e->mask.bias = qkv_tensor_data(e->bias);
    return QKV_OK;
}

/* ---- names ---- */

static void make_token_name(const char *text, char name[NAME_ROOM])
{
    size_t used = 0, bytes;
    *name = '\0';
    if (*text == ' ' && text[1]) text++;
    for (size_t left = strlen(text); left; text += bytes, left -= bytes) {
        int32_t c = qkv_utf8_next(text, left, &bytes);
        const char *seen = c < 0x20 || (c >= 0x7F && c < 0xA0) ? "·" : c == ' ' ? "␣" : text;
        size_t size = seen == text ? bytes : strlen(seen);
        if (used + size >= NAME_ROOM) return;
        memcpy(name + used, seen, size);
        name[used += size] = '\0';
    }
}

bool make_token_list(token_list *list, const char *const *texts, int64_t n)
{
    list->text = calloc((size_t)n + 1, sizeof *list->text);
    list->names = calloc((size_t)n + 1, sizeof *list->names);
    if (!list->text || !list->names) return false;
    for (list->n = 0; list->n < n; list->n++) {
        make_token_name(texts[list->n], list->text[list->n]);
        list->names[list->n] = list->text[list->n];
    }
    return true;
}

void free_token_list(token_list *list)
{
    free(list->text);
    free(list->names);
}

/* Names that were typed, a blank or a comma between them. */
static qkv_status name_tokens(explained *e, const char *typed)
{
    enum { MOST_NAMES = 1024 };
    const char *names[MOST_NAMES];
    char *text = strdup(typed), *rest = text, *name;
    int64_t n = 0, tokens = qkv_tensor_dim(e->q, 0);
    for (char *wide = text; wide && (wide = strstr(wide, "，")); wide += 3) memcpy(wide, "   ", 3);
    while (text && n < MOST_NAMES && (name = strsep(&rest, " ,\t\n")))
        if (*name) names[n++] = name;
    bool is_done = text && make_token_list(&e->query_list, names, n);
    free(text);
    if (!is_done) return fail(QKV_MEMORY, "out of memory");
    if (n != tokens) return fail(QKV_USAGE, "--tokens: %lld names for %lld tokens", (long long)n, (long long)tokens);
    e->queries = (labels){ .names = e->query_list.names };
    e->words = e->query_list.names;
    if (qkv_tensor_dim(e->k, 0) != tokens || e->y) return QKV_OK;
    e->keys = e->key_columns = e->queries;
    e->key_words = e->words;
    e->is_self = true;
    return QKV_OK;
}

qkv_status find_token(const char *typed, const token_list *list, int64_t n, int64_t *place)
{
    char *end;
    long long number = isdigit((unsigned char)*typed) ? strtoll(typed, &end, 10) : -1;
    if (number >= 0 && !*end) {
        *place = number;
        return number < n ? QKV_OK : fail(QKV_USAGE, "--token %s: there are tokens 0 to %lld", typed, (long long)n - 1);
    }
    for (*place = 0; *place < list->n; ++*place)
        if (!strcmp(list->names[*place], typed)) return QKV_OK;
    char names[256] = "";
    for (int64_t i = 0; i < list->n && strlen(names) < 200; i++)
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%.40s", i ? ", " : "", list->names[i]);
    return fail(QKV_USAGE, "--token \"%s\": the queries are %s: give one of them, or its number from 0 to %lld", typed, names,
                (long long)n - 1);
}

/* ---- all of it ---- */

static qkv_status choose_shown(explained *e, const explain_input *in)
{
    char *end = NULL;
    if (in->head && strcmp(in->head, "all")) {
        e->head = isdigit((unsigned char)*in->head) ? strtoll(in->head, &end, 10) : -1;
        if (e->head < 0 || *end || e->head >= e->heads)
            return fail(QKV_USAGE, "--head %s: give a number from 0 to %lld, or all", in->head, (long long)e->heads - 1);
    }
    return in->token ? find_token(in->token, &e->query_list, qkv_tensor_dim(e->q, 0), &e->token) : QKV_OK;
}

static qkv_status explain_typed(explained *e, const explain_input *in)
{
    bool is_projected = in->x || in->embed || in->w[PART_Q] || in->w[PART_K] || in->w[PART_V];
    bool is_example = !is_projected && !in->q && !in->k && !in->v;
    qkv_status status = QKV_OK;
    if (in->layer || in->text || in->target || in->kind >= 0)
        return fail(QKV_USAGE, "a text, --target, --layer and --kind are for a model: give it with --model");
    e->heads = e->kv_heads = in->heads ? in->heads : 1;
    if (is_example) take_example(e);
    else status = is_projected ? load_projected(e, in) : load_operand_matrices(e, in);
    if (!status) status = load_weights(e, in);
    if (!status) status = project(e);
    if (!status) status = read_mask(e, in);
    if (!status) status = load_bias(e, in);
    if (!status && in->tokens) status = name_tokens(e, in->tokens);
    if (!status) status = choose_shown(e, in);
    return status ? status : compute_explained(e);
}

static qkv_status check_model_input(const explain_input *in)
{
    bool has_arrays = in->q || in->k || in->v || in->x || in->y || in->embed || in->ids || in->bias || in->mask || in->causal;
    for (int i = 0; i < PARTS; i++) has_arrays = has_arrays || in->w[i] || in->b[i];
    if (has_arrays || in->heads || in->tokens)
        return fail(QKV_USAGE, "--model has its own numbers: leave arrays and masks out");
    return in->text ? QKV_OK : fail(QKV_USAGE, "a text is missing: what the model reads");
}

static qkv_status print_steps(const explained *e, explain_format format)
{
    step *steps = calloc(MOST_STEPS, sizeof *steps);
    if (!steps) return fail(QKV_MEMORY, "out of memory");
    int n = list_steps(e, steps);
    qkv_status status = QKV_OK;
    if (format == EXPLAIN_JSON) status = print_explained_json(e, steps, n);
    else if (format == EXPLAIN_LATEX) print_explained_latex(e, steps, n);
    else print_explained(e, steps, n);
    free(steps);
    return status;
}

qkv_status explain(const explain_input *in, explain_format format, qkv_status (*before_printing)(void))
{
    explained e = { .head = EXPLAIN_ALL, .token = EXPLAIN_ALL };
    qkv_model *m = NULL;
    qkv_status status = in->model ? check_model_input(in) : QKV_OK;
    if (!status && in->model && !(m = qkv_model_load(in->model, NULL))) status = library_failed();
    if (!status &&
        !(e.tape = qkv_tape_new(&(qkv_tape_opts){ .size = sizeof(qkv_tape_opts), .inference = 1, .keep_projections = 1 })))
        status = library_failed();
    if (!status) status = m ? explain_model(&e, in, m) : explain_typed(&e, in);
    if (!status) status = before_printing();
    if (!status) status = print_steps(&e, format);
    qkv_tape_free(e.tape);
    qkv_model_free(m);
    free(e.hidden);
    free(e.keep);
    free_token_list(&e.query_list);
    free_token_list(&e.key_list);
    return status;
}
