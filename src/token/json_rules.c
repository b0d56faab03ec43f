/* json_rules.c: what the keys of a tokenizer.json's objects may be. */
#include "json_rules.h"

#include <string.h>

bool qkv__is_null(const json_t *v) { return !v || json_is_null(v); }
bool qkv__is_bool(const json_t *v) { return json_is_boolean(v); }
bool qkv__is_anything(const json_t *v) { return v != NULL; }
bool qkv__is_string(const json_t *v) { return json_is_string(v); }
bool qkv__is_string_or_null(const json_t *v) { return json_is_null(v) || json_is_string(v); }
bool qkv__is_count(const json_t *v) { return json_is_integer(v) && json_integer_value(v) >= 0; }
bool qkv__is_text(const json_t *v, const char *text) { return json_is_string(v) && !strcmp(json_string_value(v), text); }
bool qkv__has_type(const json_t *v, const char *type) { return qkv__is_text(json_object_get(v, "type"), type); }

bool qkv__is_nothing(const json_t *v)
{
    return json_is_null(v) || (json_is_string(v) && !json_string_length(v)) || (json_is_number(v) && json_number_value(v) == 0);
}

bool qkv__flag(const json_t *object, const char *key, bool otherwise)
{
    const json_t *v = json_object_get(object, key);
    return json_is_boolean(v) ? json_is_true(v) : otherwise;
}

static const qkv__rule *rule_of(const qkv__rule *rules, const char *key)
{
    while (rules->key && strcmp(rules->key, key)) rules++;
    return rules->key ? rules : NULL;
}

qkv_status qkv__check_keys(const char *path, const char *where, const json_t *object, const qkv__rule *rules)
{
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *)object, key, value) {
        const qkv__rule *r = rule_of(rules, key);
        if (r && !r->fits(value))
            return qkv__fail(QKV_UNSUPPORTED, "%s: %s%s: only %s is supported", path, where, key, r->wants);
    }
    return QKV_OK;
}

qkv_status qkv__check_all_keys(const char *path, const json_t *object, const qkv__rule *rules)
{
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *)object, key, value)
        if (!rule_of(rules, key)) return qkv__fail(QKV_UNSUPPORTED, "%s: %.100s: this key is not known", path, key);
    return qkv__check_keys(path, "", object, rules);
}

qkv_status qkv__malformed(const char *path, const char *key, const char *what)
{
    return qkv__fail(QKV_FORMAT, "%s: %s: %s", path, key, what);
}
