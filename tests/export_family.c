/* export_family.c: writes a small random model under the names of a family, and golden.safetensors: a batch and the logits it
 * gets here, for golden/families.py to compare with its own.
 * usage: export_family marian|pegasus|modernbert DIR
 */
#include <qkv/qkv.h>

#include "io/safetensors.h"
#include "model/model.h"

#include <stdio.h>
#include <string.h>

enum { ROWS = 2, SOURCE = 5, TARGET = 4, SIZE = 19 };

static const float ids[ROWS * SOURCE] = { 3, 17, 4, 4, 0, 11, 9, 0, 0, 0 }, lengths[ROWS] = { 5, 3 };
static const float target[ROWS * TARGET] = { 18, 5, 2, 7, 18, 1, 6, 0 }, target_lengths[ROWS] = { 4, 3 };

static void whole(const float *from, int n, int32_t *to)
{
    for (int i = 0; i < n; i++) to[i] = (int32_t)from[i];
}

static qkv_tensor *run(const qkv__transformer *m, qkv_tape *t)
{
    int32_t source[ROWS * SOURCE], aim[ROWS * TARGET], n[ROWS], aim_n[ROWS];
    whole(ids, ROWS * SOURCE, source);
    whole(target, ROWS * TARGET, aim);
    whole(lengths, ROWS, n);
    whole(target_lengths, ROWS, aim_n);
    qkv_tensor *memory = qkv__transformer_encode(m, t,
                                                 &(qkv_tokens){ .ids = source, .rows = ROWS, .length = SOURCE, .lengths = n });
    if (!qkv__transformer_config(m)->decoder_layers) return qkv__transformer_logits(m, memory);
    return qkv__transformer_logits(
        m, qkv__transformer_decode(m, t, &(qkv_tokens){ .ids = aim, .rows = ROWS, .length = TARGET, .lengths = aim_n }, memory,
                                   n));
}

static qkv_status write_golden(const char *folder, const qkv_tensor *logits)
{
    char path[4096];
    qkv__to_store all[] = {
        { "ids", 2, (int64_t[]){ ROWS, SOURCE }, ROWS * SOURCE, ids, NULL, NULL, NULL },
        { "lengths", 1, (int64_t[]){ ROWS }, ROWS, lengths, NULL, NULL, NULL },
        { "target", 2, (int64_t[]){ ROWS, TARGET }, ROWS * TARGET, target, NULL, NULL, NULL },
        { "target_lengths", 1, (int64_t[]){ ROWS }, ROWS, target_lengths, NULL, NULL, NULL },
        { "logits", 3, (int64_t[]){ ROWS, qkv_tensor_dim(logits, 1), SIZE }, qkv_tensor_count(logits), qkv_tensor_data(logits),
          NULL, NULL, NULL },
    };
    snprintf(path, sizeof path, "%s/golden.safetensors", folder);
    return qkv__safetensors_write(path, 5, all, 0, NULL);
}

static const struct shape {
    const char *family;
    qkv_config o;
} shapes[] = {
#define SHAPE .vocab_size = SIZE, .encoder_layers = 2, .dim = 24, .heads = 4, .d_ff = 40
#define TRANSLATOR .decoder_layers = 3, .positions = QKV_POSITION_SINUSOID_HALVES, .activation = QKV_ACTIVATION_SILU
    { "marian", { SHAPE, TRANSLATOR } },
    { "pegasus", { SHAPE, TRANSLATOR, .pre_norm = 1 } },
    { "modernbert",
      { SHAPE, .positions = QKV_POSITION_ROPE, .pre_norm = 1, .no_first_norm = 1, .activation = QKV_ACTIVATION_GEGLU,
        .embed_norm = 1, .unscaled = 1, .no_bias = 1, .no_norm_bias = 1, .head = 1, .no_head_bias = 1, .output_bias = 1 } },
};

static qkv_model *model_of(const char *family)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        if (!strcmp(shapes[i].family, family)) return qkv_model_new(&shapes[i].o, 5);
    return NULL;
}

int main(int argc, char **argv)
{
    qkv_model *m = argc == 3 ? model_of(argv[1]) : NULL;
    qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .inference = 1 });
    qkv_status status = m ? qkv_model_save(m, argv[2], argv[1]) : QKV_USAGE;
    if (!status) {
        qkv_tensor *logits = run(qkv__model_transformer(m), t);
        status = logits ? write_golden(argv[2], logits) : qkv_tape_status(t);
    }
    if (status) fprintf(stderr, "export_family: %s\n", qkv_error());
    qkv_tape_free(t);
    qkv_model_free(m);
    qkv_shutdown();
    return (int)status;
}
