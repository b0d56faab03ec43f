/* 11_train.c FOLDER TRAIN.tsv VALID.tsv [STEPS]: what "qkv train translate" does: the folder has the best model so far, a
 * record, a log and a checkpoint. Ended at any moment and called again, it goes on as if it had never stopped. */
#include <qkv/qkv.h>

#include <stdio.h>
#include <stdlib.h>

enum { PAD, START, END }; /* the ids of <pad>, <s> and </s>, with which a tokenizer begins */

static const qkv_batch_opts batches = { .max_tokens = 1024, .start = START, .end = END, .pad = PAD };

static qkv_tokenizer *learn_tokens(const char *file)
{
    qkv_word_counts *words = qkv_word_counts_new();
    qkv_tokenizer *t = NULL;
    if (words && !qkv_word_counts_add_corpus(words, words, file, NULL, NULL, NULL))
        t = qkv_tokenizer_train(words, &(qkv_bpe_opts){ .vocabulary = 1100 });
    qkv_word_counts_free(words);
    return t;
}

static qkv_status measure(void *valid, const qkv_model *m, qkv_run_score *out)
{
    double loss;
    if (qkv_evaluate(m, valid, NULL, &batches, &loss)) return qkv_error_status();
    out->score = -loss;
    snprintf(out->words, sizeof out->words, "valid loss %.4f", loss);
    snprintf(out->json, sizeof out->json, "\"valid_loss\": %.6f", loss);
    return QKV_OK;
}

static void tell(void *data, const qkv_run_event *e)
{
    (void)data;
    if (e->kind == QKV_RUN_EVENT_RESUME) printf("going on after step %lld\n", (long long)e->at.step);
    if (e->kind == QKV_RUN_EVENT_VALIDATION) printf("step %lld: %s\n", (long long)e->at.step, e->score->words);
    if (e->kind == QKV_RUN_EVENT_END) printf("%s after step %lld\n", e->reason, (long long)e->at.step);
}

int main(int argc, char **argv)
{
    if (argc < 4) return fprintf(stderr, "usage: 11_train FOLDER TRAIN.tsv VALID.tsv [STEPS]\n"), 2;
    long steps = argc > 4 ? atol(argv[4]) : 1200;
    qkv_tokenizer *t = learn_tokens(argv[2]);
    qkv_pairs *pairs = qkv_pairs_new(), *valid = qkv_pairs_new();
    qkv_transformer_opts tiny = QKV_OPTS(qkv_transformer_opts);
    qkv_model *m = NULL;
    const qkv_trainer_opts how = { .optimizer = &(
                                       qkv_optimizer_opts){ .rule = QKV_OPTIMIZER_ADAM, .beta2 = 0.98f, .eps = 1e-9f },
                                   .schedule = { .kind = QKV_SCHEDULE_LINEAR, .lr = 2e-3, .warmup = steps / 8, .steps = steps },
                                   .batches = &batches,
                                   .smoothing = 0.1f,
                                   .clip = 1 };
    qkv_run_opts run = {
        .folder = argv[1], .steps = steps, .trainer = &how, .valid_every = 100, .validate = measure, .each = tell, .data = valid
    };
    run.resume = qkv_run_check(&run) != QKV_OK; /* it holds a training: go on with it */
    int ok = t && pairs && valid && !qkv_pairs_add_corpus(pairs, t, t, argv[2], NULL, NULL, NULL) &&
             !qkv_pairs_add_corpus(valid, t, t, argv[3], NULL, NULL, NULL) &&
             !qkv_transformer_preset("tiny", qkv_tokenizer_size(t), &tiny) && (m = qkv_model_new(&tiny, 1));
    if (ok && (ok = !qkv_model_set_tokenizers(m, t, NULL))) t = NULL; /* it is the model's now */
    ok = ok && !qkv_run(m, pairs, &run, NULL);
    if (!ok) fprintf(stderr, "%s\n", qkv_error());
    qkv_model_free(m);
    qkv_pairs_free(pairs);
    qkv_pairs_free(valid);
    qkv_tokenizer_free(t);
    return !ok;
}
