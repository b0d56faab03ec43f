/* 08_published.c DIR TEXT: a model as its authors publish it (Marian, BERT, GPT-2, Llama and their kin), and what it makes of a
 * text: a translation, a continuation, the word behind [MASK], a class or a vector, whichever it can. */
#include <qkv/qkv.h>

#include <stdio.h>
#include <string.h>

static qkv_status translate(const qkv_model *m, const char *text)
{
    qkv_translations *found = NULL;
    qkv_status status = qkv_translate(m, &(qkv_str){ text, strlen(text) }, 1, NULL, &found);
    if (!status && !(status = found->status[0])) printf("%s\n", found->best[0].text.data);
    qkv_free(found);
    return status;
}

static qkv_status generate(const qkv_model *m, const char *text)
{
    qkv_generated *made = NULL;
    qkv_status status = qkv_generate(m, qkv_cstr(text), NULL, &made);
    if (!status) printf("%s%s\n", text, made->text.data);
    qkv_free(made);
    return status;
}

static qkv_status fill(const qkv_model *m, const char *text)
{
    qkv_filled *found = NULL;
    qkv_status status = qkv_fill_mask(m, qkv_cstr(text), &(qkv_fill_opts){ .n_best = 3 }, &found);
    for (int i = 0; !status && i < found->n_best; i++) printf("%.4f  %s\n", found->best[i].p, found->best[i].text.data);
    qkv_free(found);
    return status;
}

static qkv_status look(const qkv_model *m, const char *text, unsigned can) /* a row of numbers: classes, or an embedding */
{
    qkv_matrix *row = NULL;
    const qkv_str string = qkv_cstr(text);
    int names = can & QKV_CAN_CLASSIFY;
    qkv_status status = names ? qkv_classify(m, &string, 1, NULL, &row) : qkv_embed(m, &string, 1, NULL, &row);
    for (int64_t i = 0; !status && i < row->width; i++)
        printf("%s%s%.4f%s", names ? qkv_model_label(m, i) : "", names ? "  " : "", (double)row->data[i], names ? "\n" : " ");
    qkv_free(row);
    return status;
}

int main(int argc, char **argv)
{
    if (argc != 3) return fprintf(stderr, "usage: 08_published DIR TEXT\n"), 2;
    qkv_model *m = qkv_model_load(argv[1], NULL);
    const unsigned can = m ? qkv_model_get_info(m)->can : 0;
    qkv_status status = !m                        ? qkv_error_status()
                        : can & QKV_CAN_TRANSLATE ? translate(m, argv[2])
                        : can & QKV_CAN_GENERATE  ? generate(m, argv[2])
                        : can & QKV_CAN_FILL      ? fill(m, argv[2])
                                                  : look(m, argv[2], can);
    if (status) fprintf(stderr, "%s\n", qkv_error());
    return qkv_model_free(m), (int)status;
}
