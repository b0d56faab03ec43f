/* steps_json.h: what a tokenizer.json says text goes through. */
#ifndef QKV_SRC_STEPS_JSON_H
#define QKV_SRC_STEPS_JSON_H

#include "json_rules.h"
#include "pipeline.h"

/* Normalizers, pre-tokenizers and decoders, in order. FORMAT, UNSUPPORTED with the key named; MEMORY. */
qkv_status qkv__read_steps(const char *path, const qkv__json_value *top, qkv__pipeline *p);

/* The post-processor; its tokens have ids below n. The same errors. */
qkv_status qkv__read_templates(const char *path, const qkv__json_value *top, size_t n, qkv__pipeline *p);

#endif
