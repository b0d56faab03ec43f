/* translate.h: what is said of a source that is too long, how many translations are followed, and how one is printed. */
#ifndef QKV_SRC_TRANSLATE_H
#define QKV_SRC_TRANSLATE_H

#include <qkv/task.h>

/* LIMIT: what ("the text", say), which is source i of the results, has more tokens than may be, and who says so. */
qkv_status qkv__refuse_source(const qkv_translations *t, int64_t i, const char *what);

/* A translation as "qkv translate" prints it, so that BLEU is what "qkv score" says of its lines: one line stays one. */
static inline void qkv__to_one_line(char *text)
{
    for (; *text; text++)
        if (*text == '\n' || *text == '\r') *text = ' ';
}

/* The beam of a translation whose options give none: what a published model's files say, else 4. */
int qkv__usual_beam(const qkv_model_info *info);

#endif
