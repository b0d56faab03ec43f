/* 05_translate.c PAIRS.tsv [STEPS [SENTENCE ..]]: a translator from lines of "source TAB target", such as those of
 * "qkv example translate --out pairs". 1200 steps are enough for those. */
#include <qkv/qkv.h>

#include <stdio.h>
#include <stdlib.h>

enum { PAD, START, END }; /* the ids of <pad>, <s> and </s>, with which a tokenizer begins */

/* One vocabulary for both languages; small, so that a token is hardly ever more than a word. */
static qkv_tokenizer *learn_tokens(const char *file)
{
    qkv_word_counts *words = qkv_word_counts_new();
    qkv_tokenizer *tokenizer = NULL;
    if (words && !qkv_word_counts_add_corpus(words, words, file, NULL, NULL, NULL))
        tokenizer = qkv_tokenizer_train(words, &(qkv_tokenizer_opts){ .vocabulary = 1100 });
    qkv_word_counts_free(words);
    return tokenizer;
}

static qkv_status train(qkv_model *model, const qkv_dataset *pairs, long steps)
{
    qkv_trainer_opts how = { .optimizer = &(qkv_optimizer_opts){ .rule = QKV_OPTIMIZER_ADAM, .beta2 = 0.98f, .eps = 1e-9f },
                             .schedule = &(
                                 qkv_schedule){ .kind = QKV_SCHEDULE_LINEAR, .lr = 2e-3, .warmup = steps / 8, .steps = steps },
                             .batches = &(qkv_batch_opts){ .max_tokens = 1024, .start = START, .end = END, .pad = PAD },
                             .label_smoothing = 0.1f,
                             .clip_norm = 1 };
    qkv_trainer *trainer = qkv_trainer_new(model, pairs, &how);
    qkv_status status = trainer ? QKV_OK : qkv_error_status();
    for (qkv_train_state now = { 0 }; !status && now.step < steps;) {
        status = qkv_trainer_step(trainer, &now);
        if (now.step % 50 == 0 && !status) printf("step %4lld   loss %.3f\n", (long long)now.step, now.loss);
    }
    qkv_trainer_free(trainer);
    return status;
}

int main(int argc, char **argv)
{
    enum { MOST = 100 };
    qkv_str sentences[MOST] = { qkv_cstr("I love you"), qkv_cstr("The cat sat on the mat"),
                                qkv_cstr("Did she buy two books yesterday?") };
    int64_t n = argc > 3 ? argc - 3 : 3;
    for (int i = 3; i < argc && i < MOST; i++) sentences[i - 3] = qkv_cstr(argv[i]);
    if (argc < 2 || n > MOST) return fprintf(stderr, "usage: 05_translate PAIRS.tsv [STEPS [SENTENCE ..]]\n"), 2;
    qkv_tokenizer *tokenizer = learn_tokens(argv[1]);
    qkv_dataset *pairs = qkv_dataset_new();
    qkv_config tiny = QKV_OPTS(qkv_config);
    qkv_model *model = NULL;
    qkv_translations *found = NULL;
    int ok = tokenizer && pairs && !qkv_dataset_add_files(pairs, tokenizer, tokenizer, argv[1], NULL, NULL, NULL) &&
             !qkv_config_preset("tiny", qkv_tokenizer_vocab_size(tokenizer), &tiny) && (model = qkv_model_new(&tiny, 1));
    if (ok && (ok = !qkv_model_set_tokenizers(model, tokenizer, NULL))) tokenizer = NULL; /* it is the model's now */
    ok = ok && !train(model, pairs, argc > 2 ? atol(argv[2]) : 1200) && !qkv_translate(model, sentences, n, NULL, &found);
    for (int64_t i = 0; ok && i < n; i++) printf("%s\n    %s\n", sentences[i].data, found->best[i].text.data);
    if (!ok) fprintf(stderr, "%s\n", qkv_error());
    qkv_free(found);
    qkv_model_free(model);
    qkv_dataset_free(pairs);
    qkv_tokenizer_free(tokenizer);
    return !ok;
}
