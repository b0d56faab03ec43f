/* export.c: config.json as a published family has it. */
#include "export.h"

#include "../base/file.h"
#include "../base/json.h"
#include "../token/pipeline.h"
#include "export_folder.h"
#include "model_info.h"
#include "model.h"

#include <stdio.h>
#include <stdlib.h>

/* What zero stands for, said as other programs need it. */
static qkv_config settled(const qkv_config *given)
{
    qkv_config o = *given;
    if (!o.kv_heads) o.kv_heads = o.heads;
    if (!o.d_k) o.d_k = o.dim / o.heads;
    if (o.norm_eps == 0) o.norm_eps = 1e-5f;
    if (o.rope_base == 0) o.rope_base = 10000;
    return o;
}

static const char *architecture(const qkv__family *f, const qkv_config *o)
{
    static const int classifiers[] = { QKV__PART_CLASSIFIER, QKV__PART_TOKENS, QKV__PART_SPANS };
    int parts = o->classes ? classifiers[o->classes_of] : o->head || o->decoder_layers ? QKV__PART_HEAD : 0;
    const qkv__architecture *a = f->architectures;
    while (a->name && a->parts != parts) a++;
    return a->name ? a->name : f->architectures[0].name;
}

static void put_fixed(const qkv__fixed *f, qkv__json_writer *w)
{
    for (; f->key; f++)
        if (f->word) qkv__json_put_text(w, f->key, f->word);
        else qkv__json_put_bool(w, f->key, f->flag);
}

/* Of classes of one name the last is that of the name. */
static void put_ids(const qkv__labels *labels, qkv__json_writer *w)
{
    qkv__added all;
    qkv_status status = qkv__added_begin(&all, (size_t)labels->n);
    for (int64_t i = 0; i < labels->n && !status; i++) status = qkv__added_set(&all, (size_t)i, labels->names[i], -1);
    if (!status) status = qkv__added_end(&all);
    for (int64_t i = 0; i < labels->n && !status; i++) all.ids[qkv_tokenizer_id(all.spellings, labels->names[i])] = (int32_t)i;
    qkv__json_open_object(w, "label2id");
    for (int64_t i = 0; i < labels->n && !status; i++) {
        int32_t *id = &all.ids[qkv_tokenizer_id(all.spellings, labels->names[i])];
        if (*id >= 0) qkv__json_put_int(w, labels->names[i], *id);
        *id = -1;
    }
    qkv__json_close(w);
    qkv__added_free(&all);
    if (status && !w->status) w->status = status;
}

static void put_labels(const qkv__labels *labels, qkv__json_writer *w)
{
    if (!labels->n) return;
    qkv__json_open_object(w, "id2label");
    for (int64_t i = 0; i < labels->n; i++) {
        char key[32];
        snprintf(key, sizeof key, "%lld", (long long)i);
        qkv__json_put_text(w, key, labels->names[i]);
    }
    qkv__json_close(w);
    put_ids(labels, w);
}

/* The tokens of a text that a decoder was trained on: --context of its training, as its record has it. */
static qkv_status trained_context(const qkv_model *m, int64_t *n)
{
    enum { RECORD_BYTES = 16 << 20, UNKNOWN = 2048 }; /* which other programs take where nothing says it */
    char path[4096];
    qkv__json_doc record = { 0 };
    const char *origin = qkv__model_folder(m);
    qkv_status status = QKV_OK;
    snprintf(path, sizeof path, "%.4000s/training.json", origin ? origin : "");
    if (origin && qkv__file_exists(path)) status = qkv__json_load(path, RECORD_BYTES, &record);
    const char *said = qkv__json_get_text(qkv__json_get(record.top, "options"), "context");
    *n = said ? strtol(said, NULL, 10) : 0;
    if (*n <= 0 || *n > INT32_MAX) *n = UNKNOWN;
    qkv__json_free(&record);
    return status == QKV_MEMORY ? status : QKV_OK; /* an unreadable record has no context */
}

/* Other programs look for "max_position_embeddings", also where positions are rotary and no weight tells how many there are. */
static void put_context(const qkv_model *m, const qkv_config *o, qkv__json_writer *w)
{
    static const char key[] = "max_position_embeddings";
    if (o->positions != QKV_POSITION_ROPE || !o->decoder_layers || qkv__json_has(w, key)) return;
    int64_t n;
    qkv_status status = trained_context(m, &n);
    if (status && !w->status) w->status = status;
    qkv__json_put_int(w, key, n);
}

qkv_status qkv__export_config(const char *path, const qkv__family *f, const qkv_model *m, const qkv__labels *labels)
{
    int32_t end;
    const qkv_config o = settled(qkv__model_config(m));
    const qkv__model_info info = qkv__exported_info(m, &end);
    qkv__json_writer w = { .style = QKV__JSON_LINES, .replaces = true };
    qkv__json_open_object(&w, NULL);
    qkv__json_put_text(&w, "model_type", f->type);
    qkv__json_open_array(&w, "architectures");
    qkv__json_put_text(&w, NULL, architecture(f, &o));
    qkv__json_close(&w);
    qkv__json_put_text(&w, "torch_dtype", "float32");
    qkv__keys_write(f->keys, &o, &w);
    put_fixed(f->fixed, &w);
    qkv__model_info_write(&info, &w);
    f->write(&o, &w);
    put_labels(labels, &w);
    put_context(m, &o, &w);
    qkv__write_divisors(qkv__model_transformer(m), &w);
    qkv__quantization_write(qkv__params_bits(qkv__model_params(m)), &w);
    if (o.classes && !labels->n) qkv__json_put_int(&w, "num_labels", o.classes);
    qkv__json_close(&w);
    return qkv__json_save(&w, path);
}
