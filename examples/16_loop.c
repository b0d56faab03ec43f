/* 16_loop.c CHECKPOINT: a training loop of one's own: it goes back to a checkpoint, and ends with a translation and its chrF. */
#include <qkv/qkv.h>

#include <stdio.h>

enum { PAIRS = 4, STEPS = 80 };
static const char *const sources[PAIRS] = { "one two", "two three", "three one", "two one" };
static const char *const targets[PAIRS] = { "eins zwei", "zwei drei", "drei eins", "zwei eins" };

static qkv_model *make_model(void)
{
    qkv_word_counts *w = qkv_word_counts_new(QKV_TOKEN_WORDS);
    for (int i = 0; i < PAIRS; i++) qkv_word_counts_add(w, qkv_cstr(sources[i])), qkv_word_counts_add(w, qkv_cstr(targets[i]));
    qkv_tokenizer *t = qkv_tokenizer_train(w, &(qkv_tokenizer_opts){ .min_count = 1 });
    qkv_config shape = { .encoder_layers = 1, .decoder_layers = 1, .dim = 32, .heads = 4, .d_ff = 64 };
    shape.vocab_size = qkv_tokenizer_vocab_size(t);
    qkv_model *m = t ? qkv_model_new(&shape, 1) : NULL;
    if (m) qkv_model_set_tokenizers(m, t, NULL);
    qkv_word_counts_free(w);
    return m;
}

int main(int argc, char **argv)
{
    if (argc < 2) return fprintf(stderr, "usage: 16_loop CHECKPOINT\n"), QKV_USAGE;
    qkv_model *m = make_model();
    qkv_dataset *d = qkv_dataset_new();
    qkv_example x = { .kind = QKV_EXAMPLE_TRANSLATION };
    for (int i = 0; i < PAIRS; i++) x.text = qkv_cstr(sources[i]), x.target = qkv_cstr(targets[i]), qkv_dataset_add(d, m, &x);
    const qkv_loss loss = qkv_loss_seq2seq();
    const qkv_trainer_opts how = { .loss = &loss, .batches = &(qkv_batch_opts){ .start = 1, .end = 2 } };
    qkv_trainer *t = qkv_trainer_new(m, d, &how);
    qkv_status status = t ? QKV_OK : qkv_error_status();
    qkv_train_state now = QKV_OPTS(qkv_train_state);
    while (!status && now.step < STEPS / 2) status = qkv_trainer_step(t, &now);
    if (!status) status = qkv_trainer_save(t, argv[1]);
    for (int i = 0; i < 5 && !status; i++) status = qkv_trainer_step(t, &now);
    if (!status && !(status = qkv_trainer_load(t, argv[1], &now))) printf("back at step %lld\n", (long long)now.step);
    while (!status && now.step < STEPS) status = qkv_trainer_step(t, &now);
    const qkv_str source = qkv_cstr(sources[0]), reference = qkv_cstr(targets[0]), *references = &reference;
    qkv_translations *found = NULL;
    qkv_chrf_score *score = NULL;
    if (!status) status = qkv_translate(m, &source, 1, NULL, &found);
    if (!status) status = qkv_chrf(&found->best->text, &references, 1, 1, NULL, &score);
    if (!status) printf("loss %.3f, \"%s\", chrF %.1f\n", now.loss, found->best->text.data, score->score);
    else fprintf(stderr, "%s: %s\n", qkv_status_string(status), qkv_error());
    qkv_free(score), qkv_free(found), qkv_trainer_free(t), qkv_dataset_free(d), qkv_model_free(m);
    return (int)status;
}
