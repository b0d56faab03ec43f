/* lesson_imdb.c: the lesson imdb: a thousand film reviews through one layer of self-attention. */
#include "../draw/view.h"

#include <qkv/unstable/util.h>
#include "lesson.h"

#include "../draw/print_maps.h"
#include "../term/errors.h"
#include "../corpora/sentiment.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 100, MOST = 1000, LENGTH = 20, DIM = 64, BATCH = 32, VOCABULARY = 50000 };

/* ---- reviews ---- */

typedef struct reviews {
    char *text[MOST];
    size_t length[MOST];
    int n;
    bool is_full; /* there may be more, which are not read */
} reviews;

static qkv_status add_review(reviews *r, const char *text, size_t length)
{
    char *copy = malloc(length + 1);
    if (!copy) return fail(QKV_MEMORY, "out of memory");
    memcpy(copy, text, length);
    copy[length] = '\0';
    r->text[r->n] = copy;
    r->length[r->n++] = length;
    return QKV_OK;
}

/* Reading ends with a status when there are enough. */
static qkv_status each_review(void *data, const qkv_labelled *x)
{
    reviews *r = data;
    qkv_status status = add_review(r, x->text.data, x->text.length);
    r->is_full = r->n == MOST;
    return status ? status : r->is_full ? QKV_LIMIT : QKV_OK;
}

/* The one CSV file of these reviews that people have names its columns in its own way. */
static qkv_status read_reviews(reviews *r)
{
    static const qkv_labelled_opts usual = { 0 }, imdb = { .label = "sentiment", .text = "review" };
    qkv_status status = QKV_FORMAT;
    if (strstr(lesson_data, ".csv")) status = qkv_read_labelled(lesson_data, &imdb, each_review, r, NULL);
    if (status == QKV_FORMAT && !r->n) status = qkv_read_labelled(lesson_data, &usual, each_review, r, NULL);
    if (r->is_full) return QKV_OK;
    if (status) return library_failed();
    return r->n ? QKV_OK
                : fail(QKV_FORMAT, "%s: there is no review in it (of a folder, DIR/CLASS/*.txt are read)", lesson_data);
}

static qkv_status make_reviews(reviews *r)
{
    uint64_t random = 1;
    char text[REVIEW_ROOM];
    qkv_status status = QKV_OK;
    while (r->n < MOST && !status) {
        draw_review(&random, text);
        status = add_review(r, text, strlen(text));
    }
    return status;
}

static void free_reviews(reviews *r)
{
    for (int i = 0; i < r->n; i++) free(r->text[i]);
}

/* ---- ids ---- */

typedef struct tokens {
    qkv_tokenizer *tokenizer;
    int32_t ids[MOST * LENGTH], lengths[MOST];
    int n;
} tokens;

static qkv_status learn_words(const reviews *r, tokens *out)
{
    qkv_word_counts *words = qkv_word_counts_new(QKV_TOKEN_WORDS);
    qkv_status status = words ? QKV_OK : qkv_error_status();
    for (int i = 0; i < r->n && !status; i++) status = qkv_word_counts_add(words, (qkv_str){ r->text[i], r->length[i] });
    if (!status) out->tokenizer = qkv_tokenizer_train(words, &(qkv_tokenizer_opts){ .vocab_size = VOCABULARY, .min_count = 1 });
    qkv_word_counts_free(words);
    return out->tokenizer ? QKV_OK : library_failed();
}

static qkv_status encode_reviews(const reviews *r, tokens *out)
{
    qkv_encoding *ids = NULL;
    int32_t pad = qkv_tokenizer_id(out->tokenizer, QKV_SPECIAL_PAD);
    for (; out->n < r->n; out->n++) {
        const qkv_str text = { r->text[out->n], r->length[out->n] };
        if (qkv_tokenizer_encode(out->tokenizer, text, NULL, &ids)) return qkv_free(ids), library_failed();
        for (int j = 0; j < LENGTH; j++) out->ids[out->n * LENGTH + j] = j < ids->n ? ids->ids[j] : pad;
        out->lengths[out->n] = ids->n < LENGTH ? (int32_t)ids->n : LENGTH;
    }
    qkv_free(ids);
    return QKV_OK;
}

/* Whole characters, no more of them than asked for, as one line. */
static void print_start(const char *text, int characters)
{
    for (size_t bytes; *text && characters--; text += bytes) {
        qkv_utf8_next(text, strlen(text), &bytes);
        if ((unsigned char)*text < ' ' || *text == 127) putchar(' '); /* control characters are orders to a terminal */
        else printf("%.*s", (int)bytes, text);
    }
}

static void tell_data(const reviews *r, const tokens *x)
{
    int padded = 0;
    for (int i = 0; i < x->n; i++) padded += x->lengths[i] < LENGTH;
    say(_("Reviews are put into lower case and split at white space, each word gets a number, and of every review the first "
          "%d words are taken. Shorter ones are filled up with %s, which is masked: nobody attends to it."),
        LENGTH, QKV_SPECIAL_PAD);
    printf(_("    data size: %d reviews, %d tokens each (%d of them padded)\n"), x->n, LENGTH, padded);
    printf(_("    vocabulary: %d tokens\n"), (int)qkv_tokenizer_vocab_size(x->tokenizer));
    printf(_("    first review, %d characters at most: "), SHOWN);
    print_start(r->text[0], SHOWN);
    puts("\n");
}

/* ---- attention ---- */

typedef struct layer {
    qkv_params *params;
    qkv_tape *tape;
    qkv_embedding words;
    qkv_mha attention;
    float *outputs, *weights; /* (n, LENGTH, DIM), (n, LENGTH, LENGTH) */
} layer;

static qkv_status make_layer(const tokens *x, layer *l)
{
    *l = (layer){ .params = qkv_params_new(1), .tape = qkv_tape_new(&(qkv_tape_opts){ .inference = 1, .keep_attention = 1 }) };
    if (!l->params || !l->tape) return library_failed();
    l->words = qkv_embedding_new(l->params, "words", qkv_tokenizer_vocab_size(x->tokenizer), DIM);
    l->attention = qkv_mha_new(l->params, "attention", &(qkv_mha_opts){ .dim = DIM, .heads = 1 });
    if (qkv_params_status(l->params)) return library_failed();
    l->outputs = malloc(sizeof(float[LENGTH * DIM]) * (size_t)x->n);
    l->weights = malloc(sizeof(float[LENGTH * LENGTH]) * (size_t)x->n);
    return l->outputs && l->weights ? QKV_OK : fail(QKV_MEMORY, "out of memory");
}

static void free_layer(layer *l)
{
    free(l->weights);
    free(l->outputs);
    qkv_tape_free(l->tape);
    qkv_params_free(l->params);
}

static void keep_rows(float *all, int first, const qkv_tensor *part)
{
    int64_t row = qkv_tensor_count(part) / qkv_tensor_dim(part, 0);
    memcpy(all + first * row, qkv_tensor_data(part), sizeof(float) * (size_t)qkv_tensor_count(part));
}

static qkv_status attend_batch(const layer *l, const tokens *x, int first, int n)
{
    qkv_tape_reset(l->tape);
    qkv_tensor *h = qkv_embedding_forward(&l->words, l->tape, x->ids + first * LENGTH, n, LENGTH);
    h = qkv_add(qkv_scale(h, sqrtf(DIM)), qkv_sinusoid(l->tape, 0, LENGTH, DIM, QKV_POSITION_SINUSOID));
    qkv_tensor *y = qkv_mha_forward(&l->attention, h, h, &(qkv_mask){ .key_lengths = x->lengths + first });
    if (qkv_tape_status(l->tape)) return library_failed();
    keep_rows(l->outputs, first, y);
    keep_rows(l->weights, first, qkv_tape_attention(l->tape, 0));
    return QKV_OK;
}

static qkv_status attend_all(const layer *l, const tokens *x)
{
    qkv_status status = QKV_OK;
    for (int i = 0; i < x->n && !status; i += BATCH) status = attend_batch(l, x, i, x->n - i < BATCH ? x->n - i : BATCH);
    return status;
}

/* ---- what came out ---- */

/* How far a row's sum is from 1 at most, and the largest weight of a word that is not there. */
static void check_weights(const layer *l, const tokens *x, double *off, double *hidden)
{
    *off = *hidden = 0;
    for (int i = 0; i < x->n * LENGTH; i++) {
        double sum = 0;
        for (int j = 0; j < LENGTH; j++) {
            double w = (double)l->weights[i * LENGTH + j];
            sum += w;
            if (j >= x->lengths[i / LENGTH]) *hidden = fmax(*hidden, w);
        }
        *off = fmax(*off, fabs(sum - 1));
    }
}

static void tell_result(const layer *l, const tokens *x)
{
    double off, hidden;
    check_weights(l, x, &off, &hidden);
    say(_("Each word becomes a vector of %d numbers, its position is added, and one head of self-attention reads the "
          "reviews in batches of %d (batches: %d)."),
        DIM, BATCH, (x->n + BATCH - 1) / BATCH);
    printf(_("    output shape: (%d,%d,%d)\n"), x->n, LENGTH, DIM);
    printf(_("    weights shape: (%d,%d,%d)\n\n"), x->n, LENGTH, LENGTH);
    say(_("Every row of weights sums to 1 (largest difference %.6f), and the largest weight on padding is %g."), off, hidden);
}

/* The weights among the words of the first review, without its padding; `all` is (LENGTH, LENGTH). */
static qkv_status show_review(const tokens *x, const float *all, const char *picture)
{
    const char *names[LENGTH];
    float weights[LENGTH * LENGTH];
    int n = x->lengths[0];
    for (int i = 0; i < n; i++) names[i] = qkv_tokenizer_token(x->tokenizer, x->ids[i]);
    for (int i = 0; i < n * n; i++) weights[i] = all[i / n * LENGTH + i % n];
    const char *path = picture_path(picture);
    token_side side = { x->tokenizer, x->ids, n };
    if (!path) {
        qkv_status status = print_token_map(side, side, weights);
        putchar('\n');
        return status;
    }
    const qkv_heatmap_opts opts = { .rows = n,
                                    .columns = n,
                                    .row_names = names,
                                    .column_names = names,
                                    .row_axis = _("query (attending)"),
                                    .column_axis = _("key (attended)") };
    if (qkv_picture_heatmaps(path, &(qkv_heatmap){ weights, _("attention of the first review") }, 1, &opts))
        return library_failed();
    tell_picture(path);
    return QKV_OK;
}

static qkv_status show_first(const layer *l, const tokens *x)
{
    say(_("The first review: rows are queries, columns are keys. The layer is untrained, so its weights are random."));
    return show_review(x, l->weights, "imdb");
}

/* The same words as queries, keys and values at once: x . x is about DIM, the product with another word spreads by
 * sqrt(DIM) around 0, so after the scaling the diagonal leads by sqrt(DIM). */
static qkv_status show_simple(const layer *l, const tokens *x)
{
    qkv_tensor *weights = NULL;
    double own = 0;
    int n = x->lengths[0];
    qkv_tape_reset(l->tape);
    qkv_tensor *h = qkv_scale(qkv_embedding_forward(&l->words, l->tape, x->ids, 1, LENGTH), sqrtf(DIM));
    qkv_attention(h, h, h, NULL, &(qkv_attention_opts){ .weights = &weights });
    if (qkv_tape_status(l->tape)) return library_failed();
    for (int i = 0; i < n; i++) own += (double)qkv_tensor_data(weights)[i * LENGTH + i] / n;
    say_heading(_("Without projections, positions and mask"));
    say(_("A well-known exercise leaves out W_Q, W_K, W_V, the positions and the mask: softmax(X X^T / sqrt(d)) X. Its "
          "heatmap is almost the identity: a word has a mean weight of %.2f on itself. The cause is x . x, about d = %d, "
          "while the product of two different embeddings is near 0. The projections W_Q and W_K are what lets a word look "
          "for other words. A word that occurs twice shares its weight with its copy."),
        own, DIM);
    return show_review(x, qkv_tensor_data(weights), "imdb_simple");
}

/* ---- the lesson ---- */

static qkv_status read_all_reviews(reviews *r)
{
    if (lesson_data) {
        qkv_status status = read_reviews(r);
        if (!status && r->n < MOST) say(_("%s has only %d reviews, fewer than %d: they will do."), lesson_data, r->n, MOST);
        if (!status && r->n == MOST) say(_("The first %d reviews of %s."), MOST, lesson_data);
        return status;
    }
    say(_("No --data was given, so here are %d reviews made up by a small grammar. Real ones are read from a folder "
          "(aclImdb/train), a .csv, a .jsonl or a file of lines \"label TAB text\"."),
        MOST);
    return make_reviews(r);
}

static qkv_status run_layer(const tokens *x)
{
    layer l;
    qkv_status status = make_layer(x, &l);
    if (!status) status = attend_all(&l, x);
    if (!status) tell_result(&l, x), status = show_first(&l, x);
    if (!status) status = show_simple(&l, x);
    free_layer(&l);
    return status;
}

static qkv_status run_imdb_lesson(void)
{
    static reviews r;
    static tokens x;
    qkv_status status = read_all_reviews(&r);
    if (!status) status = learn_words(&r, &x);
    if (!status) status = encode_reviews(&r, &x);
    if (!status) tell_data(&r, &x), status = run_layer(&x);
    qkv_tokenizer_free(x.tokenizer);
    free_reviews(&r);
    return status;
}

const lesson lesson_imdb = {
    .name = "imdb",
    .title = N_("A thousand film reviews"),
    .run = run_imdb_lesson,
    .question = N_("A review of 5 words is filled up to 20. What would go wrong if the padding were not masked?"),
    .answer = N_("The softmax would share its 1 among 20 keys, and in a fresh layer about 15 of 20 parts would go to tokens "
                 "that mean nothing. The output would depend on how far the review happened to be filled up, and so on the "
                 "other reviews of its batch. Masked, the scores of padding are -inf and its weights exactly 0: the five "
                 "words get the result they would get alone."),
};
