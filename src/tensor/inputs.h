/* inputs.h: gradients of what goes into a model, while its weights stay as they are. */
#ifndef QKV_SRC_INPUTS_H
#define QKV_SRC_INPUTS_H

#include <qkv/tensor.h>

/* As qkv_backward(), but nothing is added to the gradients of weights: any number of threads may do so on one model. */
qkv_status qkv__backward_inputs(qkv_tensor *loss);

#endif
