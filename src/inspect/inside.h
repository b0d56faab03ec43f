/* inside.h: what lens, why and walk share: a model, and the tokens of a capture as it reads them. */
#ifndef QKV_SRC_INSIDE_H
#define QKV_SRC_INSIDE_H

#include <qkv/unstable/inspect.h>

#include "../base/arena.h"
#include "../base/result.h"
#include "../nn/layer.h"
#include "attend.h"

/* The tokens, and one forward of the model over them. Zero is ready. */
typedef struct qkv__inside {
    const qkv__transformer *x;
    const qkv_tokenizer *tokenizer; /* of what the model says */
    const int32_t *source, *read;   /* n_source of the encoder, n_read of the decoder; 0: the model has none */
    int64_t n_source, n_read, n_next;
    const int32_t *next; /* what the model is to say at each of the first n_next places of its last stack */
    int stack;           /* the last one: QKV__DECODER where there is one */
    qkv_tape *tape;
    qkv_tensor *memory, *last; /* what the encoder gave, NULL: there is none; what the last stack gave */
} qkv__inside;

/* Finds the tokens; `call` names who asks. USAGE for a capture that holds nothing, or of a model of another kind. */
qkv_status qkv__inside_read(const char *call, const qkv_model *m, const qkv_attention_capture *a, qkv__inside *in);

/* Runs the model over the source and the first n_read tokens read, on a new tape with these options. NUMERIC; MEMORY; USAGE for
 * ids that it does not have. */
qkv_status qkv__inside_run(qkv__inside *in, const qkv_tape_opts *opts);
void qkv__inside_free(qkv__inside *in);

/* What goes into layer i of a stack, on a tape that keeps hidden states; of i = layers what comes out of the stack. */
qkv_tensor *qkv__inside_hidden(const qkv__inside *in, int stack, int i);

/* Whether the last stack's states say tokens: a decoder's, or those of an encoder that fills words in. */
bool qkv__inside_speaks(const qkv_model *m, const qkv__inside *in);

#endif
