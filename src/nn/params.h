/* params.h: what layers need to know about params. */
#ifndef QKV_SRC_PARAMS_H
#define QKV_SRC_PARAMS_H

#include <qkv/nn.h>
#include <qkv/model.h>

#include "../base/status.h"
#include "../tensor/tape.h"

#include <stdbool.h>

/* Of a weight's whole name, the final zero included. */
#define QKV_NAME_MAX 256

/* Leaves an error in the params (the first one stays) and gives false. p may be NULL. */
bool qkv__params_fail(qkv_params *p, qkv_status status, const char *format, ...) QKV_PRINTF(3, 4);

/* The same with the error that is in qkv_error() now. */
bool qkv__params_error_below(qkv_params *p);

/* A layer's name in a sentence: as much of it as fits, "" for NULL. */
#define QKV_SHOWN(name) ((name) ? (name) : "")

/* "layer.part" into joined; false, with the error in p, when it is too long or there is no name. */
bool qkv__join_name(qkv_params *p, char joined[QKV_NAME_MAX], const char *layer, const char *part);

/* qkv_params_add() under the name "layer.part". */
qkv_tensor *qkv__add_part(qkv_params *p, const char *layer, const char *part, int ndim, const int64_t *shape, qkv_init init,
                          float scale);

/* A linear layer named "layer.part". */
qkv_linear qkv__linear_part(qkv_params *p, const char *layer, const char *part, int64_t in, int64_t out, bool no_bias);

/* y[i] = qkv_linear_forward(l[i], x), n <= 4 of them, by one parallel call. False with the error on the tape. */
bool qkv__linear_together(const qkv_linear *const *l, int n, qkv_tensor *x, qkv_tensor **y);

bool qkv__is_gated(qkv_activation f);

/* Whether self-attention of layer i has a window. */
bool qkv__has_window(const qkv_config *o, int i);

/* f(x) for any activation, of a gated one what it does to its gate; x, which a linear layer made, is not read again. */
qkv_tensor *qkv__activate(qkv_activation f, qkv_tensor *x);

/* Whether positions are added to embeddings; rows first .. first+length-1 of learned ones, USAGE when that is past the table. */
bool qkv__adds_positions(const qkv_config *o);
qkv_tensor *qkv__positions_forward(const qkv_embedding *pos, qkv_tape *t, int64_t first, int64_t length);

/* Params whose weights have names and shapes, but no values until each is placed somewhere. NULL as qkv_params_new(). */
qkv_params *qkv__params_plan(void);

/* The values of weight i, which must stay there until p is freed or owns its weights. */
void qkv__params_place(qkv_params *p, int i, float *values);

/* The same for values of another type than float32, with scales where it has them; only for weights that affine and gather
 * alone read. */
void qkv__params_place_typed(qkv_params *p, int i, const void *values, const void *scales, const qkv__type *type);

/* The two blocks: all weights in the order added, each starting at a multiple of 16 floats, with zeros between them; and
 * their gradients at the same places. One loop over a block meets every weight. Adding a weight may move both. NULL without
 * weights, and when qkv__params_materialize() fails. */
float *qkv__params_data(qkv_params *p);
float *qkv__params_grad(qkv_params *p);
int64_t qkv__params_block(const qkv_params *p); /* floats in a block, the zeros included */

/* Copies weights whose values lie elsewhere into blocks of their own, with gradients; others stay as they are. MEMORY;
 * UNSUPPORTED for weights in 8 or 4 bits. Not while another thread uses them. */
qkv_status qkv__params_materialize(qkv_params *p);

/* Bits of the numbers where weights have scales, the fewest; 0 where none has. Such weights cannot be changed, and what they
 * were made of is not there: UNSUPPORTED. */
int qkv__params_bits(const qkv_params *p);
qkv_status qkv__params_check_floats(const qkv_params *p);

/* Keeps what the values lie in: release(what) is called when p needs it no more. One at most. */
void qkv__params_retain(qkv_params *p, void *what, void (*release)(void *));
const void *qkv__params_held(const qkv_params *p); /* NULL: nothing, or not any more */

/* Memory that lives as long as p, cleared; NULL with the error in p. */
void *qkv__params_keep(qkv_params *p, size_t bytes);

/* The error of a forward whose layer could not be made, left on t (which may be NULL). */
qkv_tensor *qkv__no_weights(qkv_tape *t, const char *layer);

#endif
