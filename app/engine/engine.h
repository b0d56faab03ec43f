/* engine.h: a model that answers questions about itself: JSON in, JSON out. docs/engine.md has the requests. The live page asks
 * it, as WebAssembly in a worker or behind HTTP. */
#ifndef QKV_SRC_ENGINE_H
#define QKV_SRC_ENGINE_H

#include <qkv/session.h>

#include "json.h"

typedef struct qkv__engine qkv__engine;

/* The model must outlive it and is shared; name is copied. NULL on error: MEMORY. For one thread at a time. */
qkv__engine *qkv__engine_new(const qkv_model *m, const char *name);
void qkv__engine_free(qkv__engine *e);

/* Models that a training kept: [{"step": 100, "folder": "step-100", and what is known of it}, ..], folders in `folder`. The one
 * without a folder is e's own model. Called once at most. Errors: FORMAT, MEMORY. */
qkv_status qkv__engine_set_checkpoints(qkv__engine *e, const char *folder, const char *list, size_t length);

/* Answers a request with one JSON object, of an error {"error": {"message": .., "status": ..}}; errors of writing stay in j. Long
 * work asks hooks, which may be NULL, whether to go on. */
void qkv__engine_answer(qkv__engine *e, const qkv__json_value *request, const qkv_hooks *hooks, qkv__json *j);

/* The same for a request as text; the answer replaces what was in *answer, which is yours. MEMORY. */
qkv_status qkv__engine_request(qkv__engine *e, const char *request, size_t length, qkv_buffer *answer);

#endif
