/* templates_json.c: the post-processor of a tokenizer.json: the tokens around one text, or two. */
#include "steps_json.h"

#include <stdio.h>
#include <string.h>

typedef struct place {
    const char *path, *where;
    const qkv__json_value *object;
    size_t n; /* tokens there are */
    qkv__pipeline *pipeline;
} place;

static qkv_status malformed_template(const place *p, const char *key, const char *what)
{
    return qkv__fail(QKV_FORMAT, "%s: %s.%s: %s", p->path, p->where, key, what);
}

static bool is_id(const place *p, const qkv__json_value *v)
{
    return qkv__json_is_int(v) && qkv__json_int(v) >= 0 && (uint64_t)qkv__json_int(v) < p->n;
}

/* ---- templates ---- */

/* The ids of a special token of a template. */
static qkv_status put_special(const place *p, qkv__template *f, const char *name, int32_t type)
{
    const qkv__json_value *special = qkv__json_get(qkv__json_get(p->object, "special_tokens"), name);
    const qkv__json_value *ids = qkv__json_get(special, "ids");
    qkv_status status = qkv__json_is_array(ids)
                            ? QKV_OK
                            : malformed_template(p, "special_tokens", "a token of the template is not there");
    for (size_t i = 0; i < qkv__json_size(ids) && !status; i++) {
        const qkv__json_value *id = qkv__json_at(ids, i);
        status = is_id(p, id) ? qkv__template_put(f, (int32_t)qkv__json_int(id), type)
                              : malformed_template(p, "special_tokens", "an id is none of the tokens'");
    }
    return status;
}

static qkv_status put_item(const place *p, qkv__template *f, const char *key, const qkv__json_value *item)
{
    const qkv__json_value *special = qkv__json_get(item, "SpecialToken"), *text = qkv__json_get(item, "Sequence");
    const qkv__json_value *either = special ? special : text, *type = qkv__json_get(either, "type_id");
    const char *id = qkv__json_get_text(either, "id");
    if (qkv__json_size(item) != 1 || !id || !qkv__is_count(type) || qkv__json_int(type) > INT32_MAX)
        return malformed_template(p, key, "SpecialToken or Sequence, with id and type_id, is expected");
    int32_t number = (int32_t)qkv__json_int(type);
    if (special) return put_special(p, f, id, number);
    bool first = !strcmp(id, "A");
    if (!first && strcmp(id, "B")) return malformed_template(p, key, "A or B is expected");
    return qkv__template_put(f, first ? QKV__FIRST_TEXT : QKV__SECOND_TEXT, number);
}

/* Each text once, the first before the second. */
static bool has_texts(const qkv__template *f, int wanted)
{
    int texts = 0;
    for (size_t i = 0; i < f->n; i++)
        if (f->at[i].id < 0 && f->at[i].id != -++texts) return false;
    return texts == wanted;
}

static qkv_status read_template(const place *p, const char *key, qkv__template *f, int texts)
{
    const qkv__json_value *items = qkv__json_get(p->object, key);
    qkv_status status = qkv__json_is_array(items) ? QKV_OK : malformed_template(p, key, "an array is expected");
    for (size_t i = 0; i < qkv__json_size(items) && !status; i++) status = put_item(p, f, key, qkv__json_at(items, i));
    if (status || has_texts(f, texts)) return status;
    return qkv__fail(QKV_UNSUPPORTED, "%s: %s.%s: only A%s, each once, is supported", p->path, p->where, key,
                     texts > 1 ? " before B" : "");
}

static qkv_status read_templates(const place *p)
{
    qkv_status status = read_template(p, "single", &p->pipeline->single, 1);
    return status ? status : read_template(p, "pair", &p->pipeline->pair, 2);
}

/* ---- those of BERT and RoBERTa ---- */

static qkv_status get_pair(const place *p, const char *key, int32_t *id)
{
    const qkv__json_value *pair = qkv__json_get(p->object, key), *value = qkv__json_at(pair, 1);
    if (qkv__json_size(pair) != 2 || !is_id(p, value)) return malformed_template(p, key, "a token and its id are expected");
    *id = (int32_t)qkv__json_int(value);
    return QKV_OK;
}

static qkv_status put_all(qkv__template *f, const int32_t *ids, const int32_t *types, size_t n)
{
    qkv_status status = QKV_OK;
    for (size_t i = 0; i < n && !status; i++) status = qkv__template_put(f, ids[i], types[i]);
    return status;
}

/* CLS text SEP; CLS text SEP text SEP for BERT, whose second text is of type 1; RoBERTa has SEP twice between them. */
static qkv_status read_classic(const place *p, bool is_roberta)
{
    int32_t cls, sep;
    qkv_status status = get_pair(p, "cls", &cls);
    if (!status) status = get_pair(p, "sep", &sep);
    if (status) return status;
    const int32_t ids[] = { cls, QKV__FIRST_TEXT, sep, sep, QKV__SECOND_TEXT, sep };
    const int32_t zeros[6] = { 0 }, bert[] = { cls, QKV__FIRST_TEXT, sep, QKV__SECOND_TEXT, sep };
    status = put_all(&p->pipeline->single, ids, zeros, 3);
    if (status) return status;
    return is_roberta ? put_all(&p->pipeline->pair, ids, zeros, 6)
                      : put_all(&p->pipeline->pair, bert, (const int32_t[]){ 0, 0, 0, 1, 1 }, 5);
}

static qkv_status read_bert(const place *p) { return read_classic(p, false); }
static qkv_status read_roberta(const place *p) { return read_classic(p, true); }

/* It says where tokens' spaces count as theirs; here they always do. */
static qkv_status read_byte_level(const place *p)
{
    (void)p;
    return QKV_OK;
}

#define ANY(key)                    \
    {                               \
        key, qkv__is_anything, NULL \
    }
#define BOOL(key)                          \
    {                                      \
        key, qkv__is_bool, "true or false" \
    }

static const struct frame_type {
    const char *type;
    qkv_status (*read)(const place *p);
    qkv__rule rules[6];
} frame_types[] = {
    { "TemplateProcessing", read_templates, { ANY("type"), ANY("single"), ANY("pair"), ANY("special_tokens") } },
    { "BertProcessing", read_bert, { ANY("type"), ANY("sep"), ANY("cls") } },
    { "RobertaProcessing",
      read_roberta,
      { ANY("type"), ANY("sep"), ANY("cls"), BOOL("trim_offsets"), BOOL("add_prefix_space") } },
    { "ByteLevel", read_byte_level, { ANY("type"), BOOL("add_prefix_space"), BOOL("trim_offsets"), BOOL("use_regex") } },
    { 0 },
};

static qkv_status read_processor(const place *p);

static qkv_status read_template_list(const place *p)
{
    const qkv__json_value *all = qkv__json_get(p->object, "processors");
    qkv_status status = qkv__json_is_array(all) ? QKV_OK : malformed_template(p, "processors", "an array is expected");
    for (size_t i = 0; i < qkv__json_size(all) && !status; i++) {
        char where[256];
        snprintf(where, sizeof where, "%.200s.processors[%zu]", p->where, i);
        status = read_processor(&(place){ p->path, where, qkv__json_at(all, i), p->n, p->pipeline });
    }
    return status;
}

static qkv_status read_processor(const place *p)
{
    char where[256];
    const struct frame_type *types = frame_types;
    const qkv__json_value *type = qkv__json_get(p->object, "type");
    if (qkv__is_text(type, "Sequence")) return read_template_list(p);
    while (types->type && !qkv__is_text(type, types->type)) types++;
    if (!types->type)
        return qkv__fail(QKV_UNSUPPORTED, "%s: %s.type: \"%.100s\" is not supported", p->path, p->where,
                         qkv__json_is_string(type) ? qkv__json_text(type) : "a value that is no text");
    snprintf(where, sizeof where, "%s.", p->where);
    qkv_status status = qkv__check_keys(p->path, where, p->object, types->rules);
    if (!status && p->pipeline->single.n && types->read != read_byte_level)
        return qkv__fail(QKV_UNSUPPORTED, "%s: %s: only one that adds tokens is supported", p->path, p->where);
    return status ? status : types->read(p);
}

qkv_status qkv__read_templates(const char *path, const qkv__json_value *top, size_t n, qkv__pipeline *p)
{
    const qkv__json_value *value = qkv__json_get(top, "post_processor");
    return qkv__is_null(value) ? QKV_OK : read_processor(&(place){ path, "post_processor", value, n, p });
}
