/* export_folder.c: what makes an exported folder whole for other programs: what stands around a text, how the special tokens are
 * called, how to search, and the card. */
#include "export_folder.h"

#include "../base/json.h"
#include "../token/tokenizer.h"
#include "model_info.h"
#include "special_tokens.h"

#include <stdio.h>
#include <string.h>

static qkv_status name_export(const char *folder, const char *name, char path[4096])
{
    if (snprintf(path, 4096, "%s/%s", folder, name) < 4096) return QKV_OK;
    return qkv__fail(QKV_LIMIT, "%.60s...: the path is longer than 4096 bytes", folder);
}

static qkv_status save_in(const char *folder, const char *name, qkv__json_writer *w)
{
    char path[4096];
    qkv_status status = name_export(folder, name, path);
    if (!status) return qkv__json_save(w, path);
    qkv__json_writer_free(w);
    return status;
}

/* ---- what stands around a text ---- */

static void put_item(qkv__json_writer *w, const char *kind, const char *name, int32_t type)
{
    qkv__json_open_object(w, NULL);
    qkv__json_open_object(w, kind);
    qkv__json_put_text(w, "id", name);
    qkv__json_put_int(w, "type_id", type);
    qkv__json_close(w);
    qkv__json_close(w);
}

static void put_run(qkv__json_writer *w, const qkv_tokenizer *t, const qkv__id_run *run, int32_t type)
{
    for (int i = 0; i < run->n; i++) put_item(w, "SpecialToken", qkv_tokenizer_token(t, run->ids[i]), type);
}

static void put_template(qkv__json_writer *w, const char *key, const qkv_tokenizer *t, const qkv__wrap *around, bool is_pair)
{
    qkv__json_open_array(w, key);
    put_run(w, t, &around->before, around->first_type);
    put_item(w, "Sequence", "A", around->first_type);
    if (is_pair) {
        put_run(w, t, &around->between, around->first_type);
        put_item(w, "Sequence", "B", around->second_type);
    }
    put_run(w, t, &around->after, around->after_type);
    qkv__json_close(w);
}

/* Each token of the templates once. */
static void put_specials(qkv__json_writer *w, const qkv_tokenizer *t, const qkv__special_tokens *f)
{
    const qkv__id_run *const runs[] = { &f->single.before, &f->single.after, &f->pair.before, &f->pair.between,
                                        &f->pair.after };
    int32_t seen[5 * QKV__ID_RUN];
    int n = 0;
    for (int k = 0; k < 5; k++)
        for (int i = 0; i < runs[k]->n; i++) {
            int32_t id = runs[k]->ids[i];
            int at = 0;
            while (at < n && seen[at] != id) at++;
            if (at < n) continue;
            seen[n++] = id;
            const char *spelling = qkv_tokenizer_token(t, id);
            qkv__json_open_object(w, spelling);
            qkv__json_put_text(w, "id", spelling);
            qkv__json_open_array(w, "ids");
            qkv__json_put_int(w, NULL, id);
            qkv__json_close(w);
            qkv__json_open_array(w, "tokens");
            qkv__json_put_text(w, NULL, spelling);
            qkv__json_close(w);
            qkv__json_close(w);
        }
}

static qkv_status save_framed(const qkv__special_tokens *f, const qkv_tokenizer *t, const char *folder, const char *name)
{
    char path[4096];
    qkv__json_writer w = { .style = QKV__JSON_SPACED };
    qkv_status status = name_export(folder, name, path);
    if (status) return status;
    qkv__json_open_object(&w, NULL);
    qkv__json_put_text(&w, "type", "TemplateProcessing");
    put_template(&w, "single", t, &f->single, false);
    put_template(&w, "pair", t, &f->pair, true);
    qkv__json_open_object(&w, "special_tokens");
    put_specials(&w, t, f);
    qkv__json_close(&w);
    qkv__json_close(&w);
    status = w.status ? w.status : qkv__tokenizer_save_framed(t, path, w.text);
    qkv__json_writer_free(&w);
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

static void put_names(qkv__json_writer *w, const qkv__special_tokens *f)
{
    bool is_encoder = !f->t->decoder_layers;
    for (size_t i = 0; i < sizeof token_names / sizeof *token_names; i++)
        if ((is_encoder || !token_names[i].of_encoder) && qkv_tokenizer_id(f->source, token_names[i].spelling) >= 0)
            qkv__json_put_text(w, token_names[i].key, token_names[i].spelling);
}

static qkv_status save_description(const qkv__special_tokens *f, const char *folder)
{
    qkv__json_writer w = { .style = QKV__JSON_LINES };
    qkv__json_open_object(&w, NULL);
    qkv__json_put_text(&w, "tokenizer_class", "PreTrainedTokenizerFast");
    qkv__json_put_bool(&w, "clean_up_tokenization_spaces", false);
    qkv__json_open_array(&w, "model_input_names");
    qkv__json_put_text(&w, NULL, "input_ids");
    qkv__json_put_text(&w, NULL, "attention_mask");
    if (f->t->token_types) qkv__json_put_text(&w, NULL, "token_type_ids");
    qkv__json_close(&w);
    put_names(&w, f);
    if (f->max_tokens) qkv__json_put_int(&w, "model_max_length", f->max_tokens);
    qkv__json_close(&w);
    return save_in(folder, "tokenizer_config.json", &w);
}

static bool is_trained_here(const qkv_tokenizer *t) { return t && !t->pipeline; }

static qkv_status export_tokenizers(const qkv_model *m, const char *folder)
{
    qkv__special_tokens f;
    qkv_status status = qkv__special_tokens_of(m, &f);
    if (!status) status = save_framed(&f, f.source, folder, "tokenizer.json");
    if (!status && f.target != f.source) status = save_framed(&f, f.target, folder, "target_tokenizer.json");
    if (status) return status;
    status = save_description(&f, folder);
    if (status) return status;
    qkv__json_writer w = { .style = QKV__JSON_LINES };
    qkv__json_open_object(&w, NULL);
    put_names(&w, &f);
    qkv__json_close(&w);
    return save_in(folder, "special_tokens_map.json", &w);
}

/* ---- other shapes ---- */

/* What "qkv train --like" can make of the same kind. */
static const char *const *likes_of(const qkv__model_info *info)
{
    static const char *const translators[] = { "pegasus", "marian" }, *const generators[] = { "llama", "gpt2" },
                             *const encoders[] = { "modernbert", "bert" };
    if (info->can & QKV_CAN_TRANSLATE) return translators;
    return info->can & QKV_CAN_GENERATE ? generators : encoders;
}

qkv_status qkv__refuse_export(const qkv_model *m, const char *type, const char *problem)
{
    char why[512];
    const qkv__model_info *info = qkv__model_get_info(m);
    const char *const *likes = likes_of(info);
    snprintf(why, sizeof why, "the model cannot be saved as %s, which differs from it: %s", type, problem);
    if (qkv__info_is_published(info)) return qkv__fail(QKV_UNSUPPORTED, "%s", why);
    if (!strcmp(likes[0], type) || !strcmp(likes[1], type))
        return qkv__fail(QKV_UNSUPPORTED, "%s; a model that is trained in the shape of %s can", why, type);
    return qkv__fail(QKV_UNSUPPORTED, "%s; a model that is trained in the shape of %s or %s can be saved as that", why,
                     likes[0], likes[1]);
}

/* ---- how to search ---- */

/* The ids of a model that was trained here are those of its tokens' names. Its length penalty is of another formula than that
 * of published models: no number there gives the same scores. */
qkv__model_info qkv__exported_info(const qkv_model *m, int32_t *end)
{
    qkv__model_info info = *qkv__model_get_info(m);
    if (!qkv__info_is_published(&info)) info.length_penalty = 0;
    const qkv_tokenizer *t = qkv_model_tokenizer(m, QKV_SIDE_TARGET);
    *end = qkv_tokenizer_id(t, QKV_SPECIAL_END);
    if (info.begin < 0) info.begin = qkv_tokenizer_id(t, QKV_SPECIAL_START);
    if (info.pad < 0) info.pad = qkv_tokenizer_id(t, QKV_SPECIAL_PAD);
    if (info.start < 0 && info.can & QKV_CAN_TRANSLATE) info.start = info.begin;
    if (!info.n_ends && *end >= 0) info.ends = end, info.n_ends = 1;
    return info;
}

/* Other libraries stop after 20 tokens where nothing says how many. */
static qkv_status export_generation(const qkv_model *m, const char *folder)
{
    enum { MOST_TRANSLATED = 512, MOST_GENERATED = 128 };
    int32_t end;
    qkv__model_info info = qkv__exported_info(m, &end);
    if (!info.max_new && !info.max_length) info.max_new = info.can & QKV_CAN_TRANSLATE ? MOST_TRANSLATED : MOST_GENERATED;
    info.context = 0;
    info.summary = (qkv__summary_params){ 0 };
    qkv__json_writer w = { .style = QKV__JSON_LINES, .replaces = true };
    qkv__json_open_object(&w, NULL);
    qkv__model_info_write(&info, &w);
    qkv__json_close(&w);
    return save_in(folder, "generation_config.json", &w);
}

qkv_status qkv__export_folder(const qkv_model *m, const char *folder)
{
    qkv_status status = QKV_OK;
    const qkv_tokenizer *source = qkv_model_tokenizer(m, QKV_SIDE_SOURCE), *target = qkv_model_tokenizer(m, QKV_SIDE_TARGET);
    int decodes = qkv__model_get_info(m)->can & (QKV_CAN_TRANSLATE | QKV_CAN_GENERATE);
    if (is_trained_here(source) && is_trained_here(target)) status = export_tokenizers(m, folder);
    if (!status && decodes) status = export_generation(m, folder);
    return status;
}
