/* 11_train.c FOLDER TRAIN.tsv VALID.tsv STEPS: a translator from lines "source TAB target". The folder holds the best model by
 * validation loss. Stopped at any moment and called again, the training resumes bit for bit. */
#include <qkv/qkv.h>
#include <qkv/unstable/runs.h>

#include <stdio.h>
#include <stdlib.h>

enum { PAD, START, END }; /* ids of <pad>, <s> and </s> in every tokenizer that is trained here */
static const qkv_batch_opts batches = { .max_tokens = 1024, .start = START, .end = END, .pad = PAD };

static qkv_status validate(void *valid, const qkv_model *m, qkv_train_score *out)
{
    qkv_status status = qkv_evaluate(m, valid, &(qkv_evaluate_opts){ .batches = &batches }, &out->loss);
    out->score = -out->loss; /* higher is better */
    snprintf(out->summary, sizeof out->summary, "valid loss %.3f", out->loss);
    return status;
}

static void report(void *data, const qkv_train_event *e)
{
    (void)data;
    if (e->kind == QKV_EVENT_RESUME) printf("resumed after step %lld\n", (long long)e->state->step);
    if (e->kind == QKV_EVENT_VALIDATION) printf("step %lld: %s\n", (long long)e->state->step, e->score->summary);
    if (e->kind == QKV_EVENT_END) printf("ended after step %lld\n", (long long)e->state->step);
}

int main(int argc, char **argv)
{
    if (argc < 5) return fprintf(stderr, "usage: 11_train FOLDER TRAIN.tsv VALID.tsv STEPS\n"), QKV_USAGE;
    qkv_word_counts *words = qkv_word_counts_new();
    qkv_status status = qkv_word_counts_add_corpus(words, words, argv[2], NULL, NULL, NULL);
    qkv_tokenizer *t = status ? NULL : qkv_tokenizer_train(words, &(qkv_tokenizer_opts){ .vocabulary = 1100 });
    qkv_config tiny = QKV_OPTS(qkv_config);
    if (t) status = qkv_config_preset("tiny", qkv_tokenizer_vocab_size(t), &tiny);
    qkv_model *m = t && !status ? qkv_model_new(&tiny, 1) : NULL;
    qkv_dataset *train = qkv_dataset_new(), *valid = qkv_dataset_new();
    if (!m) status = qkv_error_status();
    if (!status) status = qkv_dataset_add_files(train, t, t, argv[2], NULL, NULL, NULL);
    if (!status) status = qkv_dataset_add_files(valid, t, t, argv[3], NULL, NULL, NULL);
    if (!status && !(status = qkv_model_set_tokenizers(m, t, NULL))) t = NULL; /* the model owns it */
    const qkv_trainer_opts how = {
        .optimizer = &(qkv_optimizer_opts){ .rule = QKV_OPTIMIZER_ADAM, .beta2 = 0.98f, .eps = 1e-9f },
        .schedule = &(qkv_schedule){ .kind = QKV_SCHEDULE_INVERSE_SQRT, .lr = 1, .warmup = 200, .dim = tiny.dim },
        .batches = &batches,
        .label_smoothing = 0.1f,
        .clip_norm = 1
    };
    qkv_train_opts run = {
        .folder = argv[1], .trainer = &how, .steps = atol(argv[4]), .validate = validate, .on_event = report, .data = valid
    };
    run.resume = qkv_train_check(&run) != QKV_OK; /* the folder holds a training */
    if (!status) status = qkv_train(m, train, &run, NULL);
    if (status) fprintf(stderr, "%s\n", qkv_error());
    qkv_dataset_free(train);
    qkv_dataset_free(valid);
    qkv_model_free(m);
    qkv_tokenizer_free(t);
    qkv_word_counts_free(words);
    return (int)status;
}
