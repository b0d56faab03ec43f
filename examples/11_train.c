/* 11_train.c FOLDER TRAIN.tsv VALID.tsv STEPS: a translator from lines "source TAB target". The folder holds the best model by
 * validation loss. Stopped at any moment and called again, the training resumes bit for bit. */
#include <qkv/qkv.h>

#include <stdio.h>
#include <stdlib.h>

static const qkv_batch_opts batches = { .max_tokens = 1024, .start = 1, .end = 2, .pad = 0 }; /* <s>, </s>, <pad> */

static qkv_status validate(void *valid, const qkv_model *m, qkv_train_score *out)
{
    qkv_status status = qkv_evaluate(m, valid, &(qkv_evaluate_opts){ .batches = &batches }, &out->loss);
    out->score = -out->loss; /* higher is better */
    return status;
}

static void report(void *data, const qkv_train_event *e)
{
    (void)data;
    if (e->kind == QKV_EVENT_RESUME) printf("resumed after step %lld\n", (long long)e->state->step);
    if (e->kind == QKV_EVENT_VALIDATION) printf("step %lld: valid loss %.3f\n", (long long)e->state->step, e->score->loss);
}

int main(int argc, char **argv)
{
    if (argc < 5) return fprintf(stderr, "usage: 11_train FOLDER TRAIN.tsv VALID.tsv STEPS\n"), QKV_USAGE;
    qkv_tokenizer *t = qkv_tokenizer_train_files((const char **)argv + 2, 1, &(qkv_tokenizer_opts){ .vocab_size = 1100 });
    qkv_config config = QKV_OPTS(qkv_config);
    qkv_status status = t ? qkv_config_preset("tiny", qkv_tokenizer_vocab_size(t), &config) : qkv_error_status();
    qkv_model *m = status ? NULL : qkv_model_new(&config, 1);
    qkv_dataset *train = qkv_dataset_new(), *valid = qkv_dataset_new();
    const qkv_schedule schedule = { .kind = QKV_SCHEDULE_INVERSE_SQRT, .lr = 1, .warmup = 200, .dim = config.dim };
    const qkv_trainer_opts how = { .batches = &batches, .schedule = &schedule, .label_smoothing = 0.1f, .clip_norm = 1 };
    qkv_train_opts run = { .folder = argv[1], .resume = QKV_RESUME_IF_ANY, .trainer = &how, .steps = atol(argv[4]) };
    run.validate = validate, run.on_event = report, run.data = valid;
    if (!status && !(m && !qkv_model_set_tokenizers(m, t, NULL))) status = qkv_error_status(); /* the model owns t now */
    if (!status) status = qkv_dataset_add_files(train, m, argv[2], NULL, NULL, NULL);
    if (!status) status = qkv_dataset_add_files(valid, m, argv[3], NULL, NULL, NULL);
    if (!status) status = qkv_train(m, train, &run, NULL);
    if (status) fprintf(stderr, "%s\n", qkv_error());
    qkv_dataset_free(train), qkv_dataset_free(valid), qkv_model_free(m);
    return (int)status;
}
