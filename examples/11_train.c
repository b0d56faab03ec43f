/* 11_train.c FOLDER TRAIN.tsv VALID.tsv [OPTION VALUE...]: what "qkv train translate" does. The folder has the best model so far;
 * ended at any moment and called again, it goes on as if it had never stopped. */
#include <qkv/qkv.h>

#include <stdio.h>

static void tell(void *data, const qkv_run_event *e)
{
    (void)data;
    if (e->kind == QKV_RUN_EVENT_RESUME) printf("going on after step %lld\n", (long long)e->at.step);
    if (e->kind == QKV_RUN_EVENT_VALIDATION) printf("step %lld: %s\n", (long long)e->at.step, e->score->words);
    if (e->kind == QKV_RUN_EVENT_END) printf("%s after step %lld\n", e->reason, (long long)e->at.step);
}

int main(int argc, char **argv)
{
    if (argc < 4) return fprintf(stderr, "usage: 11_train FOLDER TRAIN.tsv VALID.tsv [OPTION VALUE...]\n"), 2;
    qkv_training *t = qkv_training_new("translate");
    qkv_training_set(t, "out", argv[1]);
    qkv_training_set(t, "train", argv[2]);
    qkv_training_set(t, "valid", argv[3]);
    for (int i = 4; i + 1 < argc; i += 2) qkv_training_set(t, argv[i], argv[i + 1]);
    if (qkv_run_check(&(qkv_run_opts){ .folder = argv[1] })) qkv_training_set(t, "resume", "yes"); /* it holds a training */
    qkv_status status = qkv_training_run(t, &(qkv_training_watch){ .each = tell }, NULL);
    if (status) fprintf(stderr, "%s\n", qkv_error());
    qkv_training_free(t);
    return status;
}
