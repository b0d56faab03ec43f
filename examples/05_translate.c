/* 05_translate.c MODEL TEXT..: the best translation of each text. MODEL: a folder of "qkv train translate", of 11_train.c, or a
 * published translator. */
#include <qkv/qkv.h>

#include <stdio.h>

int main(int argc, char **argv)
{
    if (argc < 3) return fprintf(stderr, "usage: 05_translate MODEL TEXT..\n"), QKV_USAGE;
    qkv_str texts[64];
    int n = 0;
    while (n < argc - 2 && n < 64) texts[n] = qkv_cstr(argv[n + 2]), n++;
    qkv_model *m = qkv_model_load(argv[1], NULL);
    const qkv_translate_opts how = QKV_OPTS(qkv_translate_opts, .beam_size = 4);
    qkv_translations *found = NULL;
    qkv_status status = m ? qkv_translate(m, texts, n, &how, &found) : qkv_error_status();
    for (int i = 0; !status && i < n; i++) puts(found->status[i] ? "(too long)" : found->best[i * found->n_best].text.data);
    if (status) fprintf(stderr, "%s\n", qkv_error());
    qkv_free(found);
    qkv_model_free(m);
    return (int)status;
}
