/* architecture.h: the parts of a Transformer as boxes, for its picture, its text and their test. */
#ifndef QKV_SRC_ARCHITECTURE_H
#define QKV_SRC_ARCHITECTURE_H

#include "view.h"

#include <stdbool.h>

enum { QKV__BLOCK_TEXT = 160, QKV__BLOCKS = 24, QKV__NOTES = 8 };

typedef struct qkv__block {
    char name[QKV__BLOCK_TEXT], more[QKV__BLOCK_TEXT]; /* what it is; its shape and weights, "" where it has none */
    uint32_t colour;
    int residual;      /* what passes it by leaves below this block and is added here; -1: nothing */
    bool takes_memory; /* keys and values come from the encoder */
    int64_t weights;   /* in all layers together */
} qkv__block;

/* An encoder or a decoder, from what it reads to what it gives. */
typedef struct qkv__stack_drawing {
    qkv__block blocks[QKV__BLOCKS];
    int n, first, last; /* blocks first .. last are one layer */
    int layers;
    bool is_decoder;
    char input[QKV__BLOCK_TEXT], shape[QKV__BLOCK_TEXT]; /* what goes in; what goes from block to block */
} qkv__stack_drawing;

typedef struct qkv__architecture {
    qkv__stack_drawing stacks[2];
    int n;
    char title[QKV__BLOCK_TEXT], notes[QKV__NOTES][QKV__BLOCK_TEXT];
    int n_notes;
    int64_t weights;
} qkv__architecture;

/* USAGE for options that make no model. */
qkv_status qkv__architecture_make(const qkv_config *model, const qkv_model_drawing_opts *opts, qkv__architecture *out);

/* Draws one, `what`. */
struct qkv__picture;
void qkv__draw_architecture(struct qkv__picture *p, const void *what);

#endif
