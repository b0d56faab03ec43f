/* export.c: config.json as a published family has it. */
#include "export.h"

#include "../base/file.h"
#include "../io/json.h"
#include "export_folder.h"
#include "model_info.h"

#include <stdio.h>
#include <stdlib.h>

/* What zero stands for, said as other programs need it. */
static qkv_transformer_opts settled(const qkv_transformer_opts *given)
{
    qkv_transformer_opts o = *given;
    if (!o.kv_heads) o.kv_heads = o.heads;
    if (!o.d_k) o.d_k = o.dim / o.heads;
    if (o.norm_eps == 0) o.norm_eps = 1e-5f;
    if (o.rotary_base == 0) o.rotary_base = 10000;
    return o;
}

static const char *architecture(const qkv__family *f, const qkv_transformer_opts *o)
{
    static const int classifiers[] = { QKV__PART_CLASSIFIER, QKV__PART_TOKENS, QKV__PART_SPANS };
    int parts = o->classes ? classifiers[o->classes_of] : o->head || o->decoder_layers ? QKV__PART_HEAD : 0;
    const qkv__architecture *a = f->architectures;
    while (a->name && a->parts != parts) a++;
    return a->name ? a->name : f->architectures[0].name;
}

static bool put_fixed(const qkv__fixed *f, json_t *config)
{
    for (; f->key; f++)
        if (json_object_set_new(config, f->key, f->word ? json_string(f->word) : json_boolean(f->flag))) return false;
    return true;
}

static bool put_labels(const qkv__labels *labels, json_t *config)
{
    json_t *names = json_object(), *ids = json_object();
    bool ok = names && ids;
    for (int64_t i = 0; ok && i < labels->n; i++) {
        char key[32];
        snprintf(key, sizeof key, "%lld", (long long)i);
        ok = !json_object_set_new(names, key, json_string(labels->names[i])) &&
             !json_object_set_new(ids, labels->names[i], json_integer(i));
    }
    if (ok && labels->n) ok = !json_object_set(config, "id2label", names) && !json_object_set(config, "label2id", ids);
    json_decref(names);
    json_decref(ids);
    return ok;
}

/* The tokens of a text that a decoder was trained on: --context of its training, as its record has it. */
static json_int_t trained_context(const qkv_model *m)
{
    enum { RECORD_BYTES = 16 << 20, UNKNOWN = 2048 }; /* which other programs take where nothing says it */
    char path[4096];
    json_t *record = NULL;
    const char *origin = qkv__model_folder(m);
    snprintf(path, sizeof path, "%.4000s/training.json", origin ? origin : "");
    if (origin && qkv__file_exists(path)) qkv__json_read(path, RECORD_BYTES, &record);
    const char *said = json_string_value(json_object_get(json_object_get(record, "options"), "context"));
    json_int_t n = said ? strtol(said, NULL, 10) : 0;
    json_decref(record);
    return n > 0 && n <= INT32_MAX ? n : UNKNOWN;
}

/* Other programs look for "max_position_embeddings", also where positions are rotary and no weight tells how many there are. */
static bool put_context(const qkv_model *m, const qkv_transformer_opts *o, json_t *config)
{
    if (o->positions != QKV_POSITION_ROTARY || !o->decoder_layers || json_object_get(config, "max_position_embeddings"))
        return true;
    return !json_object_set_new(config, "max_position_embeddings", json_integer(trained_context(m)));
}

qkv_status qkv__export_config(const char *path, const qkv__family *f, const qkv_model *m, const qkv__labels *labels)
{
    int32_t end;
    const qkv_transformer_opts o = settled(qkv_transformer_options(qkv_model_transformer(m)));
    const qkv_model_info info = qkv__exported_info(m, &end);
    json_t *config = json_pack("{s:s, s:[s], s:s}", "model_type", f->type, "architectures", architecture(f, &o), "torch_dtype",
                               "float32");
    bool ok = config && qkv__keys_write(f->keys, &o, config) && put_fixed(f->fixed, config);
    ok = ok && qkv__model_info_write(&info, config) && f->write(&o, config) && put_labels(labels, config);
    ok = ok && put_context(m, &o, config) && qkv__write_divisors(qkv_model_transformer(m), config);
    ok = ok && qkv__quantization_write(qkv__params_bits(qkv_model_params(m)), config);
    if (ok && o.classes && !labels->n) ok = !json_object_set_new(config, "num_labels", json_integer(o.classes));
    qkv_status status = qkv__json_write(path, ok ? config : NULL);
    json_decref(config);
    return status;
}
