/* attention_capture.h: what was attended to, as the JSON that the explorer page reads. docs/serve.md shows it. */
#ifndef QKV_SRC_ATTENTION_CAPTURE_H
#define QKV_SRC_ATTENTION_CAPTURE_H

#include <qkv/unstable/inspect.h>

#include "json.h"

/* A layer of -1 is the mean, and QKV__ROLLOUT all of them multiplied; a head of -1 is the mean. */
enum { QKV__MEAN = -1, QKV__ROLLOUT = -2 };

/* "sides": .., "kinds": .. with the kind `only`; -1: with all of them. */
void qkv__put_sides(qkv__json *j, const qkv_attention_capture *a, int only);

/* How the numbers of a map are written: qkv__put_float_base64(), or what a page has room for. */
typedef void qkv__put_numbers(qkv__json *j, const float *x, size_t n);

/* One head; every head small, at most `cells` a side; what the heads do, layer and head -1: of all. Each gives the errors of
 * qkv_attention_weights(), or MEMORY; those of writing stay in j. */
qkv_status qkv__put_head(qkv__json *j, const qkv_attention_capture *a, qkv_attention_kind kind, int layer, int head,
                         qkv__put_numbers *put_weights);
qkv_status qkv__put_thumbnails(qkv__json *j, const qkv_attention_capture *a, qkv_attention_kind kind, int64_t cells);
qkv_status qkv__put_ranks(qkv__json *j, const qkv_attention_capture *a, qkv_attention_kind kind, int layer, int head);

/* {"text": .., "score": .., "ids": ..}; a score of NULL is null. */
void qkv__put_translation(qkv__json *j, const char *text, size_t length, const double *score, const int32_t *ids, int64_t n);

/* "classes": [..], most probable first; of several labels a text "labels" before them, of a number "number" alone */
void qkv__put_classes(qkv__json *j, const qkv_model *m, const float *probabilities, int64_t n);

#endif
