/* op.h: what every operation includes. */
#ifndef QKV_SRC_OP_H
#define QKV_SRC_OP_H

#include <qkv/tensor.h>

#include "../base/pool.h"
#include "../base/size.h"
#include "../kern/kern.h"
#include "tape.h"

#include <string.h>

/* Values are read through qkv_tensor_data(), and written through qkv__tensor_data(): a weight's memory may move between the forward and the backward. */

/* Elements a task should have at least, so that sharing it pays. */
enum { QKV_TASK_ELEMENTS = 16 << 10 };

#endif
