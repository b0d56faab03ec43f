/* make_model.c: writes the folder of a small model with random weights for the shell tests.
 * usage: make_model DIR KIND TEXT     KIND: pair, encoder, decoder, learned, ids; learned-decoder, ids-decoder; scoring-encoder
 *                                     TEXT: what its tokenizer learns from; "ids" has no tokenizer
 */
#include <qkv/qkv.h>

#include <stdio.h>
#include <string.h>

static qkv_tokenizer *learn(const char *path)
{
    return qkv_tokenizer_train_files(&path, 1, &(qkv_tokenizer_opts){ .vocab_size = 330 });
}

/* Larger weights than usual, so that the model has opinions. */
static qkv_model *make(const char *kind, int64_t vocabulary)
{
    qkv_config o = { .vocab_size = vocabulary, .encoder_layers = 1, .decoder_layers = 2, .dim = 16, .heads = 2, .d_ff = 32 };
    if (strstr(kind, "encoder")) o.decoder_layers = 0;
    if (strstr(kind, "decoder")) o.encoder_layers = 0;
    if (strstr(kind, "learned")) o.positions = QKV_POSITION_LEARNED, o.max_positions = 12;
    if (strstr(kind, "scoring")) o.classes = 1;
    qkv_model *m = qkv_model_new(&o, 11);
    qkv_params *p = qkv_model_params(m);
    for (int k = 0; k < qkv_params_size(p); k++)
        for (int64_t i = 0; i < qkv_tensor_count(qkv_params_at(p, k)); i++) qkv_tensor_data_mut(qkv_params_at(p, k))[i] *= 1.7f;
    return m;
}

int main(int argc, char **argv)
{
    if (argc != 4) return 2;
    qkv_tokenizer *t = learn(argv[3]);
    qkv_model *m = t ? make(argv[2], qkv_tokenizer_vocab_size(t)) : NULL;
    qkv_status status = m ? QKV_OK : qkv_error_status();
    if (!status && !strstr(argv[2], "ids")) {
        status = qkv_model_set_tokenizers(m, t, NULL);
        if (!status) t = NULL; /* the model's now */
    }
    if (!status && strstr(argv[2], "scoring"))
        status = qkv_model_set_labels(m, (const char *const[]){ "relevance" }, 1, QKV_PROBLEM_CLASSIFICATION, NULL);
    if (!status) status = qkv_model_save(m, argv[1], NULL);
    if (status) fprintf(stderr, "make_model: %s\n", qkv_error());
    qkv_model_free(m);
    qkv_tokenizer_free(t);
    qkv_shutdown();
    return (int)status;
}
