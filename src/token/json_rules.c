/* json_rules.c: what the keys of a tokenizer.json's objects may be. */
#include "json_rules.h"

#include <string.h>

bool qkv__is_null(const qkv__json_value *v) { return !v || qkv__json_is_null(v); }
bool qkv__is_bool(const qkv__json_value *v) { return qkv__json_is_bool(v); }
bool qkv__is_anything(const qkv__json_value *v) { return v != NULL; }
bool qkv__is_string(const qkv__json_value *v) { return qkv__json_is_string(v); }
bool qkv__is_string_or_null(const qkv__json_value *v) { return qkv__json_is_null(v) || qkv__json_is_string(v); }
bool qkv__is_count(const qkv__json_value *v) { return qkv__json_is_int(v) && qkv__json_int(v) >= 0; }
bool qkv__is_text(const qkv__json_value *v, const char *text)
{
    return qkv__json_is_string(v) && !strcmp(qkv__json_text(v), text);
}
bool qkv__has_type(const qkv__json_value *v, const char *type) { return qkv__is_text(qkv__json_get(v, "type"), type); }

bool qkv__is_nothing(const qkv__json_value *v)
{
    return qkv__json_is_null(v) || (qkv__json_is_string(v) && !qkv__json_length(v)) ||
           (qkv__json_is_number(v) && qkv__json_number(v) == 0);
}

bool qkv__flag(const qkv__json_value *object, const char *key, bool otherwise)
{
    const qkv__json_value *v = qkv__json_get(object, key);
    return qkv__json_is_bool(v) ? qkv__json_is_true(v) : otherwise;
}

static const qkv__rule *rule_of(const qkv__rule *rules, const char *key)
{
    while (rules->key && strcmp(rules->key, key)) rules++;
    return rules->key ? rules : NULL;
}

qkv_status qkv__check_keys(const char *path, const char *where, const qkv__json_value *object, const qkv__rule *rules)
{
    for (size_t i = 0; qkv__json_key(object, i); i++) {
        const qkv__rule *r = rule_of(rules, qkv__json_key(object, i));
        if (r && !r->fits(qkv__json_at(object, i)))
            return qkv__fail(QKV_UNSUPPORTED, "%s: %s%s: only %s is supported", path, where, r->key, r->wants);
    }
    return QKV_OK;
}

qkv_status qkv__check_all_keys(const char *path, const qkv__json_value *object, const qkv__rule *rules)
{
    const char *key;
    for (size_t i = 0; (key = qkv__json_key(object, i)); i++)
        if (!rule_of(rules, key)) return qkv__fail(QKV_UNSUPPORTED, "%s: %.100s: this key is not known", path, key);
    return qkv__check_keys(path, "", object, rules);
}

qkv_status qkv__malformed(const char *path, const char *key, const char *what)
{
    return qkv__fail(QKV_FORMAT, "%s: %s: %s", path, key, what);
}
