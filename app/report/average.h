/* average.h: one model out of several of one training. */
#ifndef QKV_APP_REPORT_AVERAGE_H
#define QKV_APP_REPORT_AVERAGE_H

#include <qkv/qkv.h>

/* The mean of n models of one training, each in its folder: every weight summed in double in the order given, one model at a
 * time, and divided. They must have the same config.json and the same tokenizers; a length penalty that was fitted to some of
 * them alone is left out. NULL on error: the errors of qkv_model_load(), FORMAT for models of two kinds, USAGE for NULL and no
 * folder. You own it. */
QKV_API qkv_model *qkv_model_average(const char *const *folders, int n);

#endif
