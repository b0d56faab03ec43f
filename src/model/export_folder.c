/* export_folder.c: what makes an exported folder whole for other programs: what stands around a text, how the special tokens are
 * called, how to search, and the card. */
#include "export_folder.h"

#include "../io/json.h"
#include "../token/tokenizer.h"
#include "model_card.h"
#include "model_info.h"
#include "special_tokens.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static qkv_status name_export(const char *folder, const char *name, char path[4096])
{
    if (snprintf(path, 4096, "%s/%s", folder, name) < 4096) return QKV_OK;
    return qkv__fail(QKV_LIMIT, "%.60s...: the path is longer than 4096 bytes", folder);
}

static qkv_status put_json(const char *folder, const char *name, json_t *value)
{
    char path[4096];
    qkv_status status = name_export(folder, name, path);
    if (!status) status = qkv__json_write(path, value);
    json_decref(value);
    return status;
}

/* ---- what stands around a text ---- */

typedef struct processor {
    const qkv_tokenizer *t;
    json_t *specials;
    bool ok;
} processor;

static void put_text(processor *p, json_t *items, const char *which, int32_t type)
{
    json_t *item = json_pack("{s:{s:s, s:i}}", "Sequence", "id", which, "type_id", (int)type);
    p->ok = p->ok && !json_array_append_new(items, item);
}

static void put_run(processor *p, json_t *items, const qkv__id_run *run, int32_t type)
{
    for (int i = 0; i < run->n && p->ok; i++) {
        const char *spelling = qkv_tokenizer_token(p->t, run->ids[i]);
        json_t *item = json_pack("{s:{s:s, s:i}}", "SpecialToken", "id", spelling, "type_id", (int)type);
        json_t *special = json_pack("{s:s, s:[i], s:[s]}", "id", spelling, "ids", (int)run->ids[i], "tokens", spelling);
        p->ok = !json_array_append_new(items, item) && !json_object_set_new(p->specials, spelling, special);
    }
}

static json_t *template_items(processor *p, const qkv__wrap *w, bool is_pair)
{
    json_t *items = json_array();
    p->ok = p->ok && items;
    put_run(p, items, &w->before, w->first_type);
    put_text(p, items, "A", w->first_type);
    if (is_pair) {
        put_run(p, items, &w->between, w->first_type);
        put_text(p, items, "B", w->second_type);
    }
    put_run(p, items, &w->after, w->after_type);
    return items;
}

/* As text, which is yours to free(); NULL without memory. */
static char *post_processor(const qkv__special_tokens *f, const qkv_tokenizer *t)
{
    processor p = { .t = t, .specials = json_object(), .ok = true };
    p.ok = p.specials != NULL;
    json_t *single = template_items(&p, &f->single, false), *pair = template_items(&p, &f->pair, true);
    json_t *all = json_pack("{s:s, s:o, s:o, s:o}", "type", "TemplateProcessing", "single", single, "pair", pair,
                            "special_tokens", p.specials);
    char *text = all && p.ok ? json_dumps(all, 0) : NULL;
    json_decref(all);
    return text;
}

static qkv_status save_framed(const qkv__special_tokens *f, const qkv_tokenizer *t, const char *folder, const char *name)
{
    char path[4096];
    qkv_status status = name_export(folder, name, path);
    if (status) return status;
    char *around = post_processor(f, t);
    if (!around) return qkv__fail(QKV_MEMORY, "%s: out of memory while writing it", path);
    status = qkv__tokenizer_save_framed(t, path, around);
    free(around);
    return status;
}

/* ---- what the special tokens are called ---- */

static const struct {
    const char *key, *spelling;
    bool of_encoder;
} token_names[] = { { "bos_token", QKV_SPECIAL_START, false },   { "eos_token", QKV_SPECIAL_END, false },
                    { "unk_token", QKV_SPECIAL_UNKNOWN, false }, { "pad_token", QKV_SPECIAL_PAD, false },
                    { "mask_token", QKV_SPECIAL_MASK, false },   { "cls_token", QKV_SPECIAL_START, true },
                    { "sep_token", QKV_SPECIAL_END, true } };

static json_t *name_tokens(const qkv__special_tokens *f)
{
    json_t *names = json_object();
    bool is_encoder = !f->t->decoder_layers, ok = names != NULL;
    for (size_t i = 0; i < sizeof token_names / sizeof *token_names && ok; i++)
        if ((is_encoder || !token_names[i].of_encoder) && qkv_tokenizer_find(f->source, token_names[i].spelling) >= 0)
            ok = !json_object_set_new(names, token_names[i].key, json_string(token_names[i].spelling));
    if (ok) return names;
    json_decref(names);
    return NULL;
}

static json_t *describe_tokenizer(const qkv__special_tokens *f, const json_t *names)
{
    json_t *all = json_pack("{s:s, s:b, s:[s, s]}", "tokenizer_class", "PreTrainedTokenizerFast",
                            "clean_up_tokenization_spaces", 0, "model_input_names", "input_ids", "attention_mask");
    bool ok = all && !json_object_update(all, (json_t *)(uintptr_t)names);
    if (ok && f->max_tokens) ok = !json_object_set_new(all, "model_max_length", json_integer(f->max_tokens));
    if (ok && f->t->token_types)
        ok = !json_array_append_new(json_object_get(all, "model_input_names"), json_string("token_type_ids"));
    if (ok) return all;
    json_decref(all);
    return NULL;
}

static bool is_trained_here(const qkv_tokenizer *t) { return t && !t->pipeline; }

static qkv_status export_tokenizers(const qkv_model *m, const char *folder)
{
    qkv__special_tokens f;
    qkv_status status = qkv__special_tokens_of(m, &f);
    if (!status) status = save_framed(&f, f.source, folder, "tokenizer.json");
    if (!status && f.target != f.source) status = save_framed(&f, f.target, folder, "target_tokenizer.json");
    if (status) return status;
    json_t *names = name_tokens(&f), *config = names ? describe_tokenizer(&f, names) : NULL;
    status = put_json(folder, "tokenizer_config.json", config);
    if (!status) return put_json(folder, "special_tokens_map.json", names);
    json_decref(names);
    return status;
}

/* ---- other shapes ---- */

/* What "qkv train --like" can make of the same kind. */
static const char *const *likes_of(const qkv_model_info *info)
{
    static const char *const translators[] = { "pegasus", "marian" }, *const generators[] = { "llama", "gpt2" },
                             *const encoders[] = { "modernbert", "bert" };
    if (info->can & QKV_ABILITY_TRANSLATE) return translators;
    return info->can & QKV_ABILITY_GENERATE ? generators : encoders;
}

qkv_status qkv__refuse_export(const qkv_model *m, const char *type, const char *problem)
{
    char why[512];
    const qkv_model_info *info = qkv_model_info_of(m);
    const char *const *likes = likes_of(info);
    snprintf(why, sizeof why, "the model cannot be saved as %s, which differs from it: %s", type, problem);
    if (qkv__info_is_published(info)) return qkv__fail(QKV_UNSUPPORTED, "%s", why);
    if (!strcmp(likes[0], type) || !strcmp(likes[1], type))
        return qkv__fail(QKV_UNSUPPORTED, "%s; a training with --like %s makes one that can", why, type);
    return qkv__fail(QKV_UNSUPPORTED, "%s; a training with --like %s or --like %s makes one that can be saved as that", why,
                     likes[0], likes[1]);
}

/* ---- how to search ---- */

/* The ids of a model that was trained here are those of its tokens' names. Its length penalty is of another formula than that
 * of published models: no number there gives the same scores. */
qkv_model_info qkv__exported_info(const qkv_model *m, int32_t *end)
{
    qkv_model_info info = *qkv_model_info_of(m);
    if (!qkv__info_is_published(&info)) info.length_penalty = 0;
    const qkv_tokenizer *t = qkv_model_target_tokenizer(m);
    *end = qkv_tokenizer_find(t, QKV_SPECIAL_END);
    if (info.begin < 0) info.begin = qkv_tokenizer_find(t, QKV_SPECIAL_START);
    if (info.pad < 0) info.pad = qkv_tokenizer_find(t, QKV_SPECIAL_PAD);
    if (info.start < 0 && info.can & QKV_ABILITY_TRANSLATE) info.start = info.begin;
    if (!info.n_ends && *end >= 0) info.ends = end, info.n_ends = 1;
    return info;
}

/* Other libraries stop after 20 tokens where nothing says how many. */
static qkv_status export_generation(const qkv_model *m, const char *folder)
{
    enum { MOST_TRANSLATED = 512, MOST_GENERATED = 128 };
    int32_t end;
    qkv_model_info info = qkv__exported_info(m, &end);
    if (!info.max_new && !info.max_length) info.max_new = info.can & QKV_ABILITY_TRANSLATE ? MOST_TRANSLATED : MOST_GENERATED;
    info.context = 0;
    info.summary = (qkv_summary_params){ 0 };
    json_t *config = json_object();
    if (config && qkv__model_info_write(&info, config)) return put_json(folder, "generation_config.json", config);
    json_decref(config);
    return qkv__fail(QKV_MEMORY, "%s: out of memory while writing it", folder);
}

qkv_status qkv__export_folder(const qkv_model *m, const char *folder, const char *family)
{
    qkv_status status = QKV_OK;
    const qkv_tokenizer *source = qkv_model_source_tokenizer(m), *target = qkv_model_target_tokenizer(m);
    int decodes = qkv_model_info_of(m)->can & (QKV_ABILITY_TRANSLATE | QKV_ABILITY_GENERATE);
    if (is_trained_here(source) && is_trained_here(target)) status = export_tokenizers(m, folder);
    if (!status && decodes) status = export_generation(m, folder);
    return status ? status : qkv__write_card(m, folder, family);
}
