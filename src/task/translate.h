/* translate.h: what is said of a source that is too long, how many translations are followed, and how good they are. */
#ifndef QKV_SRC_TRANSLATE_H
#define QKV_SRC_TRANSLATE_H

#include <qkv/task.h>

#include "../model/model.h"

/* qkv_translate() of passages (translate_split.c) to an empty result. */
qkv_status qkv__translate_split(const qkv_model *m, const qkv_str *texts, int64_t n, const qkv_translate_opts *o,
                                qkv_translations *out);

/* LIMIT: what ("the text", say), which is source i of the results, has more tokens than may be, and who says so. */
qkv_status qkv__refuse_source(const qkv_translations *t, int64_t i, const char *what);

/* The beam of a translation whose options give none: what a published model's files say, else 4. */
int qkv__usual_beam(const qkv__model_info *info);

/* How many lines a length penalty is fitted on where no option says it. */
#define QKV__FITTED_LINES 1000

#endif
