/* flow.h: attention as boxes and arrows, for its picture and its text. */
#ifndef QKV_SRC_FLOW_H
#define QKV_SRC_FLOW_H

#include "view.h"

enum { QKV__FLOW_LABEL = 160, QKV__MOST_FLOWS = 4 };

typedef struct drawing {
    const qkv_flow *f;
    const qkv_flow_opts *o;
    double x;             /* where it begins */
    int64_t keys;         /* tokens that are attended to */
    int64_t all_k, all_v; /* of all heads together */
} qkv__flow_drawing;

/* Flows side by side. */
typedef struct qkv__flow_drawings {
    qkv__flow_drawing at[QKV__MOST_FLOWS];
    int64_t n;
    qkv_flow_opts o;
} qkv__flow_drawings;

/* USAGE for flows that cannot be. */
qkv_status qkv__flows_take(const qkv_flow *flows, int64_t n, const qkv_flow_opts *opts, qkv__flow_drawings *all);

#endif
