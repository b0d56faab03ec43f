/* 07_generate.c TRAIN.txt TEST.txt [STEPS]: a language model from lines of text, such as those of "qkv example generate --out
 * lines"; then how surprising the lines of TEST.txt are to it, and some lines of its own. */
#include <qkv/qkv.h>

#include <stdio.h>
#include <stdlib.h>

typedef struct work {
    qkv_dataset *pairs;
    qkv_model *model;
    qkv_nll sum; /* over the lines */
    int64_t lines;
} work;

static qkv_status add_line(void *data, qkv_str text)
{
    const work *w = data;
    return qkv_dataset_add(w->pairs, w->model, &(qkv_example){ .kind = QKV_EXAMPLE_DOCUMENT, .text = text, .max_length = 128 });
}

static qkv_status measure_line(void *data, qkv_str text)
{
    work *w = data;
    w->lines++;
    return qkv_log_likelihood(w->model, text, &(qkv_likelihood_opts){ .context = 128 }, &w->sum);
}

int main(int argc, char **argv)
{
    if (argc < 3) return fprintf(stderr, "usage: 07_generate TRAIN.txt TEST.txt [STEPS]\n"), 2;
    long steps = argc > 3 ? atol(argv[3]) : 400;
    const qkv_tokenizer_opts words = { .kind = QKV_TOKEN_WORDS };
    qkv_tokenizer *t = qkv_tokenizer_train_files((const char *const *)argv + 1, 1, &words);
    const qkv_config small = { .vocab_size = qkv_tokenizer_vocab_size(t),
                               .decoder_layers = 2,
                               .dim = 64,
                               .heads = 4,
                               .d_ff = 128,
                               .pre_norm = 1,
                               .positions = QKV_POSITION_ROPE };
    work w = { .pairs = qkv_dataset_new(), .model = t ? qkv_model_new(&small, 1) : NULL };
    int ok = w.model && !qkv_model_set_tokenizers(w.model, t, NULL) &&
             !qkv_read_documents(argv[1], QKV_DOCUMENT_LINES, 0, add_line, &w, NULL);
    const qkv_loss loss = qkv_loss_language_model();
    const qkv_trainer_opts how = {
        .loss = &loss,
        .optimizer = &(qkv_optimizer_opts){ .rule = QKV_OPTIMIZER_ADAM, .beta2 = 0.98f },
        .clip_norm = 1,
        .schedule = &(qkv_schedule){ .kind = QKV_SCHEDULE_LINEAR, .lr = 3e-3, .warmup = steps / 10, .steps = steps },
        .batches = &(qkv_batch_opts){ .max_tokens = 1024, .target_has_both = 1 }
    };
    qkv_trainer *trainer = ok ? qkv_trainer_new(w.model, w.pairs, &how) : NULL;
    for (qkv_train_state now = { 0 }; (ok = ok && trainer) && now.step < steps && (ok = !qkv_trainer_step(trainer, &now));)
        if (now.step % 50 == 0) printf("step %4lld   loss %.3f\n", (long long)now.step, now.loss);
    ok = ok && !qkv_read_documents(argv[2], QKV_DOCUMENT_LINES, 0, measure_line, &w, NULL);
    if (ok) printf("%.3f nats a line\n", w.sum.nats / (double)w.lines);
    qkv_generated *line = NULL;
    for (qkv_generate_opts o = { .temperature = 1, .seed = 1 }; ok && o.sample < 5; o.sample++)
        if ((ok = !qkv_generate(w.model, qkv_cstr(""), &o, &line))) printf("    %s\n", line->text.data);
    if (!ok) fprintf(stderr, "%s\n", qkv_error());
    qkv_free(line);
    qkv_trainer_free(trainer);
    qkv_model_free(w.model); /* and its tokenizer */
    qkv_dataset_free(w.pairs);
    return !ok;
}
