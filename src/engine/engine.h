/* engine.h: a model that answers questions about itself: JSON in, JSON out. docs/engine.md has the requests. The live page asks
 * it, as WebAssembly in a worker or behind HTTP. */
#ifndef QKV_SRC_ENGINE_H
#define QKV_SRC_ENGINE_H

#include <qkv/model.h>

typedef struct qkv__engine qkv__engine;

/* The model must outlive it and is shared; name is copied. NULL on error: MEMORY. For one thread at a time. */
qkv__engine *qkv__engine_new(const qkv_model *m, const char *name);
void qkv__engine_free(qkv__engine *e);

/* Answers one request, a JSON object of `length` bytes. *answer is a JSON object in any case that there is memory for: of an
 * error {"error": {"message": .., "status": ..}}, and the status is given back too. It replaces what was in *answer, which is
 * yours. */
qkv_status qkv__engine_request(qkv__engine *e, const char *request, size_t length, qkv_text *answer);

#endif
