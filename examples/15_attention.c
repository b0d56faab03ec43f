/* 15_attention.c MODEL TEXT: for each token of the translation the source token that it attends to most, mean over layers and
 * heads. */
#define QKV_UNSTABLE 1
#include <qkv/unstable/inspect.h>

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    if (argc < 3) return fprintf(stderr, "usage: 15_attention MODEL TEXT\n"), QKV_USAGE;
    qkv_model *m = qkv_model_load(argv[1], NULL);
    qkv_attention_capture *a = NULL;
    qkv_status status = m ? qkv_attend(m, qkv_cstr(argv[2]), NULL, &a) : qkv_error_status();
    const qkv_axis *rows = status ? NULL : qkv_attention_rows(a, QKV_ATTENTION_CROSS);
    const qkv_axis *columns = status ? NULL : qkv_attention_columns(a, QKV_ATTENTION_CROSS);
    float *w = rows ? malloc(sizeof *w * (size_t)(rows->n * columns->n)) : NULL;
    if (w) status = qkv_attention_weights(a, QKV_ATTENTION_CROSS, -1, -1, w); /* -1: mean over layers, over heads */
    for (int64_t i = 0; w && !status && i < rows->n; i++) {
        const float *row = w + i * columns->n;
        int64_t best = 0;
        for (int64_t j = 1; j < columns->n; j++)
            if (row[j] > row[best]) best = j;
        printf("%-16s %-16s %.3f\n", rows->names[i], columns->names[best], (double)row[best]);
    }
    if (status) fprintf(stderr, "%s\n", qkv_error());
    free(w);
    qkv_free(a);
    qkv_model_free(m);
    return (int)status;
}
