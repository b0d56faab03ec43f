/* 06_classify.c TRAIN.tsv TEST.tsv [STEPS]: praise or blame? A classifier from lines of "pos TAB text" and "neg TAB text", such
 * as those of "qkv example classify --out reviews". */
#include <qkv/qkv.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct work {
    qkv_dataset *pairs;
    qkv_model *model;
    int right, texts;
} work;

static qkv_status add_text(void *data, const qkv_labelled *x)
{
    const work *w = data;
    return qkv_dataset_add(
        w->pairs, w->model,
        &(qkv_example){ .kind = QKV_EXAMPLE_CLASS, .text = x->text, .class_id = !strcmp(x->label.data, "pos") });
}

static qkv_status test_text(void *data, const qkv_labelled *x)
{
    work *w = data;
    qkv_matrix *p = NULL; /* the probabilities of both classes */
    qkv_status status = qkv_classify(w->model, &x->text, 1, NULL, &p);
    if (!status) w->right += (p->data[1] > p->data[0]) == !strcmp(x->label.data, "pos");
    w->texts++;
    qkv_free(p);
    return status;
}

int main(int argc, char **argv)
{
    if (argc < 3) return fprintf(stderr, "usage: 06_classify TRAIN.tsv TEST.tsv [STEPS]\n"), 2;
    long steps = argc > 3 ? atol(argv[3]) : 600;
    const qkv_tokenizer_opts words = { .kind = QKV_TOKEN_WORDS };
    qkv_tokenizer *t = qkv_tokenizer_train_files((const char *const *)argv + 1, 1, &words);
    const qkv_config small = { .vocab_size = qkv_tokenizer_vocab_size(t),
                               .encoder_layers = 2,
                               .dim = 64,
                               .heads = 4,
                               .d_ff = 128,
                               .dropout = 0.1f,
                               .classes = 2 };
    work w = { .pairs = qkv_dataset_new(), .model = t ? qkv_model_new(&small, 1) : NULL };
    int ok = w.model && !qkv_model_set_tokenizers(w.model, t, NULL) && !qkv_read_labelled(argv[1], NULL, add_text, &w, NULL);
    const qkv_loss loss = qkv_loss_classification(NULL, 2);
    const qkv_trainer_opts how = {
        .loss = &loss,
        .optimizer = &(qkv_optimizer_opts){ .rule = QKV_OPTIMIZER_ADAM, .beta2 = 0.98f },
        .clip_norm = 1,
        .schedule = &(qkv_schedule){ .kind = QKV_SCHEDULE_LINEAR, .lr = 2e-3, .warmup = steps / 10, .steps = steps },
        .batches = &(qkv_batch_opts){ .max_tokens = 1024, .start = 1, .end = 2 }
    }; /* the ids of <s> and </s> */
    qkv_trainer *trainer = ok ? qkv_trainer_new(w.model, w.pairs, &how) : NULL;
    for (qkv_train_state now = { 0 }; (ok = ok && trainer) && now.step < steps && (ok = !qkv_trainer_step(trainer, &now));)
        if (now.step % 50 == 0) printf("step %4lld   loss %.3f\n", (long long)now.step, now.loss);
    ok = ok && !qkv_read_labelled(argv[2], NULL, test_text, &w, NULL);
    if (ok) printf("%d of %d right: accuracy %.3f\n", w.right, w.texts, (double)w.right / w.texts);
    else fprintf(stderr, "%s\n", qkv_error());
    qkv_trainer_free(trainer);
    qkv_model_free(w.model); /* and its tokenizer */
    qkv_dataset_free(w.pairs);
    return !ok;
}
