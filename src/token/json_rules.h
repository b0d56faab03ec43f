/* json_rules.h: what the keys of a tokenizer.json's objects may be. */
#ifndef QKV_SRC_JSON_RULES_H
#define QKV_SRC_JSON_RULES_H

#include "../base/json.h"

typedef struct qkv__rule {
    const char *key; /* NULL after the last */
    bool (*fits)(const qkv__json_value *value);
    const char *wants;
} qkv__rule;

/* UNSUPPORTED, the key named, for one that does not fit its rule. where is "" or ends with a dot. Keys without a rule are left
 * over from other versions: Hugging Face's reader ignores them too, but for those of the whole file. */
qkv_status qkv__check_keys(const char *path, const char *where, const qkv__json_value *object, const qkv__rule *rules);
qkv_status qkv__check_all_keys(const char *path, const qkv__json_value *object, const qkv__rule *rules); /* or has no rule */

/* FORMAT: "path: key: what". */
qkv_status qkv__malformed(const char *path, const char *key, const char *what);

bool qkv__is_null(const qkv__json_value *v); /* or not there */
bool qkv__is_bool(const qkv__json_value *v);
bool qkv__is_anything(const qkv__json_value *v);
bool qkv__is_nothing(const qkv__json_value *v); /* null, "" or 0 */
bool qkv__is_string(const qkv__json_value *v);
bool qkv__is_string_or_null(const qkv__json_value *v);
bool qkv__is_count(const qkv__json_value *v); /* a whole number, 0 or more */
bool qkv__is_text(const qkv__json_value *v, const char *text);
bool qkv__has_type(const qkv__json_value *v, const char *type);

/* True or false as a key says, or as given where it is not there. */
bool qkv__flag(const qkv__json_value *object, const char *key, bool otherwise);

#endif
