/* svg.h: what cairo's SVG lacks: text that can be found and copied, and the same bytes every time. */
#ifndef QKV_SRC_SVG_H
#define QKV_SRC_SVG_H

#include "picture.h"

typedef struct qkv__svg_place {
    double x, y, start, baseline, width; /* the anchor; the first letter seen from there; how long the text is */
} qkv__svg_place;

/* Adds a label to the text that can be selected: nothing is seen of it, since cairo has drawn its outlines. */
void qkv__svg_text(qkv__picture *p, const qkv__label *l, const qkv__svg_place *at);

/* Makes p->file the whole file. */
void qkv__svg_finish(qkv__picture *p);

#endif
