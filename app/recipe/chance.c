/* chance.c: whether a training learned more than guesses without a look at the text know. */
#include "job.h"
#include "training.h"

#include "../../src/base/memory.h"
#include "../../src/dist/dist.h"
#include "../../src/data/pairs.h"

#include <math.h>

void qkv__training_measured(qkv_training *t, double loss, double accuracy)
{
    if (t->is_trial) return;
    if (!t->n_measured || loss < t->best_loss) t->best_loss = loss;
    if (accuracy > t->best_accuracy) t->best_accuracy = accuracy;
    t->n_measured++;
}

enum { FEW_LINES = 20 }; /* BLEU of fewer says little */
enum { NO_BLEU = 2 };    /* the most frequent words for every source have more than 1 */

/* The loss of knowing how often each token occurs, and an end a text, in nats a token. 0: there is nothing to count. */
static qkv_status unigram_loss(const qkv_training *t, double *loss)
{
    int64_t vocabulary = qkv_tokenizer_vocab_size(qkv_model_tokenizer(t->model, QKV_SIDE_TARGET)),
            pairs = qkv_dataset_size(t->pairs);
    size_t bytes = sizeof(int64_t) * (size_t)vocabulary;
    int64_t *counts = qkv__alloc_zero(bytes), all = pairs;
    if (!counts) return QKV_MEMORY;
    for (int64_t i = 0, n; i < pairs; i++) {
        const int32_t *ids = qkv__dataset_side(t->pairs, i, 1, &n);
        all += n;
        for (int64_t k = 0; k < n; k++)
            if (ids[k] >= 0 && ids[k] < vocabulary) counts[ids[k]]++;
    }
    *loss = 0;
    for (int64_t i = -1; i < vocabulary; i++) {
        double p = (double)(i < 0 ? pairs : counts[i]) / (double)(all ? all : 1);
        if (p > 0) *loss -= p * log(p);
    }
    qkv__release(counts, bytes);
    return QKV_OK;
}

/* A classifier of one label a text: how many texts of 1 have the commonest label. */
static double majority_share(const qkv_training *t, int *label)
{
    int64_t all = 0, most = 0;
    for (int i = 0; i < t->labels.n; i++) {
        all += t->valid_counts[i];
        if (t->valid_counts[i] > most) most = t->valid_counts[i], *label = i;
    }
    return all ? (double)most / (double)all : 0;
}

qkv_status qkv__training_warn_of_chance(const qkv_training *t)
{
    double unigrams = 0;
    int label = 0;
    if (!t->n_measured || qkv_dist_rank()) return QKV_OK;
    if (t->job->bit == QKV__CLASSIFY) {
        double majority = majority_share(t, &label);
        if (t->best_accuracy >= 0 && t->best_accuracy <= majority)
            qkv__training_note(t,
                               "the model has learned almost nothing: its accuracy is %.2f%%, and always \"%.60s\" has %.2f%%: "
                               "give more --minutes or --epochs, or more text",
                               100 * t->best_accuracy, t->labels.names[label], 100 * majority);
        return QKV_OK;
    }
    qkv_status status = unigram_loss(t, &unigrams);
    if (status) return status;
    if (t->best_loss > 0.95 * unigrams)
        qkv__training_note(t,
                           "the model has learned almost nothing: validation loss %.4f, and the frequencies of the tokens "
                           "alone give %.4f: give more --minutes or --epochs, or more text",
                           t->best_loss, unigrams);
    /* Lines of less than four words have no BLEU, however good they are: then the loss is low. */
    else if (t->best_loss > 0.6 * unigrams && t->best_bleu >= 0 && t->best_bleu < NO_BLEU && t->lines.n >= FEW_LINES)
        qkv__training_note(t,
                           "the model has learned almost nothing: BLEU %.2f on the validation lines: give more --minutes or "
                           "--epochs, or more text",
                           t->best_bleu);
    return QKV_OK;
}
