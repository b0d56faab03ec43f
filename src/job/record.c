/* record.c: what a training was asked for, written down; and taken up again when it goes on. */
#include "training.h"

#include "../base/memory.h"
#include "../io/json.h"

#include <stdio.h>
#include <string.h>

enum { RECORD_BYTES = 16 << 20 };

/* Options that may change from one run of a training to the next. */
static bool may_change(qkv__option i)
{
    static const qkv__option options[] = { QKV__SET_patience,   QKV__SET_epochs,    QKV__SET_steps, QKV__SET_minutes,
                                           QKV__SET_save_every, QKV__SET_keep,      QKV__SET_out,   QKV__SET_resume,
                                           QKV__SET_dry_run,    QKV__SET_log_every, QKV__SET_shard };
    for (size_t k = 0; k < sizeof options / sizeof *options; k++)
        if (options[k] == i) return true;
    return false;
}

/* Whose contents count, not their names: the checkpoint knows the text and the weights it was started with. */
static bool is_path(const char *name)
{
    return !strcmp(name, "train") || !strcmp(name, "valid") || !strcmp(name, "tokenizer") || !strcmp(name, "from");
}

void qkv__settings_free(qkv__settings *s)
{
    for (int64_t i = 0; i < s->n; i++) qkv__release_text((char *)(uintptr_t)s->all[i].value);
    qkv__release(s->all, s->bytes);
    *s = (qkv__settings){ 0 };
}

qkv_status qkv__settings_of(const qkv_training *t, qkv__settings *out)
{
    qkv_text text = { 0 };
    qkv_status status = qkv__grow((void **)&out->all, &out->bytes, QKV__SET_OPTIONS * sizeof *out->all);
    for (int k = 0; k < QKV__SET_OPTIONS && !status; k++) {
        qkv__option i = (qkv__option)k;
        if (!qkv__options_has(&t->o, i) || may_change(i) || (status = qkv__options_text(&t->o, i, &text))) continue;
        char *value = qkv__copy_text(text.data);
        if (!value) status = qkv_error_status();
        else
            out->all[out->n++] = (qkv_run_setting){ .name = qkv__options_name(i),
                                                    .value = value,
                                                    .is_default = t->o.origin[i] != QKV__SET,
                                                    .may_differ = is_path(qkv__options_name(i)) };
    }
    qkv_text_free(&text);
    return status;
}

/* ---- more of the record ---- */

static json_t *labels_json(const qkv_training *t)
{
    json_t *counts = json_object();
    for (int i = 0; i < t->labels.n; i++)
        json_object_set_new(counts, t->labels.names[i], json_integer((json_int_t)t->labels.counts[i]));
    return counts;
}

/* The options that rules chose: a run that goes on takes them from here. */
static json_t *chosen_json(const qkv_training *t)
{
    json_t *chosen = json_object();
    qkv_text text = { 0 };
    for (int k = 0; k < QKV__SET_OPTIONS && chosen; k++) {
        if (t->o.origin[k] != QKV__CHOSEN) continue;
        if (qkv__options_text(&t->o, (qkv__option)k, &text) ||
            json_object_set_new(chosen, qkv__options_name((qkv__option)k), json_string(text.data)))
            json_decref(chosen), chosen = NULL;
    }
    qkv_text_free(&text);
    return chosen;
}

char *qkv__training_about(const qkv_training *t)
{
    const qkv_training_text *x = &t->text;
    json_t *all = json_object();
    json_object_set_new(all, "left_out",
                        json_pack("{s:I, s:I}", "empty", (json_int_t)x->empty, "too_long", (json_int_t)x->too_long));
    if (t->labels.n) json_object_set_new(all, "classes", labels_json(t));
    json_object_set_new(all, "vocabulary", json_integer(qkv_tokenizer_size(qkv_model_source_tokenizer(t->model))));
    json_object_set_new(all, "parameters", json_integer((json_int_t)qkv_params_count(qkv_model_params(t->model))));
    /* Without these it would go on as another training. */
    bool ok = t->is_old || !json_object_set_new(all, "chosen", chosen_json(t));
    if (ok && t->planned_steps) ok = !json_object_set_new(all, "planned_steps", json_integer((json_int_t)t->planned_steps));
    char *text = ok ? json_dumps(all, 0) : NULL;
    json_decref(all);
    if (!text) qkv__fail(QKV_MEMORY, "training: out of memory");
    return text;
}

/* ---- going on ---- */

/* Rules choose no files, and nothing of what a single run does. */
static bool may_be_chosen(const qkv_training *t, qkv__option i)
{
    return i != QKV__SET_OPTIONS && !qkv__options_is_path(i) && i != QKV__SET_paper && i != QKV__SET_resume &&
           i != QKV__SET_dry_run && qkv__options_has(&t->o, i);
}

static qkv_status recall_choices(qkv_training *t, const char *path, json_t *chosen)
{
    const char *name;
    json_t *value;
    json_object_foreach (chosen, name, value) {
        const char *text = json_string_value(value);
        bool is_known = text && may_be_chosen(t, qkv__options_find(&t->o, name));
        if (is_known && !qkv__options_set(&t->o, name, text, QKV__CHOSEN)) continue;
        return qkv__fail(QKV_FORMAT, "%s: what \"chosen\" has for \"%.60s\" is nothing that a rule chooses", path, name);
    }
    /* Epochs are chosen where no limit is given. */
    if (t->o.v.steps > 0 && t->o.origin[QKV__SET_epochs] == QKV__CHOSEN) qkv__options_unset(&t->o, QKV__SET_epochs);
    return QKV_OK;
}

static qkv_status recall_plan(qkv_training *t, const char *path, const json_t *steps)
{
    t->planned_steps = (int64_t)json_integer_value(steps);
    if (!steps || t->planned_steps > 0) return QKV_OK;
    return qkv__fail(QKV_FORMAT, "%s: \"planned_steps\" is not a whole number from 1", path);
}

static qkv_status check_job(const qkv_training *t, const json_t *job)
{
    const char *was = json_string_value(job);
    if (!was || !strcmp(was, t->job->command)) return QKV_OK;
    return qkv__fail(QKV_USAGE, "cannot resume %s: it is a training of \"%.60s\", and this is \"%s\"", t->o.v.out, was,
                     t->job->command);
}

qkv_status qkv__training_recall(qkv_training *t)
{
    char path[4200];
    json_t *record = NULL;
    snprintf(path, sizeof path, "%.4000s/training.json", t->o.v.out);
    qkv_status status = qkv__json_read(path, RECORD_BYTES, &record);
    if (status) return status;
    json_t *chosen = json_object_get(record, "chosen");
    t->is_old = !chosen;
    status = check_job(t, json_object_get(record, "job"));
    if (!status && chosen && !json_is_object(chosen)) status = qkv__fail(QKV_FORMAT, "%s: \"chosen\" is not an object", path);
    if (!status) status = recall_choices(t, path, chosen);
    if (!status) status = recall_plan(t, path, json_object_get(record, "planned_steps"));
    json_decref(record);
    return status;
}
