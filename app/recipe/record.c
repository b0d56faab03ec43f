/* record.c: what a training was asked for, written down; and taken up again when it goes on. */
#include "job.h"

#include <qkv/unstable/util.h>
#include "training.h"

#include "../../src/base/file.h"
#include "../../src/base/memory.h"
#include "../../src/base/json.h"

#include <stdio.h>
#include <string.h>

enum { RECORD_BYTES = 16 << 20 };

/* Options that may change from one run of a training to the next. */
static bool may_change(qkv__option i)
{
    static const qkv__option options[] = { QKV__SET_patience,   QKV__SET_epochs,   QKV__SET_steps, QKV__SET_minutes,
                                           QKV__SET_save_every, QKV__SET_keep,     QKV__SET_out,   QKV__SET_resume,
                                           QKV__SET_dry_run,    QKV__SET_log_every };
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
    qkv_buffer text = { 0 };
    qkv_status status = qkv__grow((void **)&out->all, &out->bytes, QKV__SET_OPTIONS * sizeof *out->all);
    for (int k = 0; k < QKV__SET_OPTIONS && !status; k++) {
        qkv__option i = (qkv__option)k;
        if (!qkv__options_has(&t->o, i) || may_change(i) || (status = qkv__options_text(&t->o, i, &text))) continue;
        char *value = qkv__copy_text(text.data);
        if (!value) status = qkv_error_status();
        else
            out->all[out->n++] = (qkv_train_setting){ .name = qkv__options_name(i),
                                                      .value = value,
                                                      .is_default = t->o.origin[i] != QKV__SET,
                                                      .may_differ = is_path(qkv__options_name(i)) };
    }
    qkv_buffer_free(&text);
    return status;
}

/* ---- more of the record ---- */

/* Of one run alone. */
static bool is_of_one_run(qkv__option i) { return i == QKV__SET_out || i == QKV__SET_resume || i == QKV__SET_dry_run; }

/* The options that the caller set, or that rules chose: a run that goes on takes them from here. Several files are an array. */
static qkv_status put_options(const qkv_training *t, qkv__origin origin, const char *key, qkv__json_writer *w)
{
    qkv_buffer text = { 0 };
    qkv_status status = QKV_OK;
    qkv__json_open_object(w, key);
    for (int k = 0; k < QKV__SET_OPTIONS && !status; k++) {
        qkv__option i = (qkv__option)k;
        if (t->o.origin[k] != origin || is_of_one_run(i)) continue;
        const qkv__paths *files = qkv__options_paths(&t->o, i);
        if (files) {
            qkv__json_open_array(w, qkv__options_name(i));
            for (int f = 0; f < files->n; f++) qkv__json_put_text(w, NULL, files->at[f]);
            qkv__json_close(w);
        } else if (!(status = qkv__options_text(&t->o, i, &text))) qkv__json_put_text(w, qkv__options_name(i), text.data);
    }
    qkv__json_close(w);
    qkv_buffer_free(&text);
    return status;
}

qkv_status qkv__training_about(const qkv_training *t, qkv__json_writer *w)
{
    const qkv_training_text *x = &t->text;
    *w = (qkv__json_writer){ .style = QKV__JSON_SPACED };
    qkv__json_open_object(w, NULL);
    qkv__json_open_object(w, "left_out");
    qkv__json_put_int(w, "empty", (int64_t)x->empty);
    qkv__json_put_int(w, "too_long", (int64_t)x->too_long);
    if (x->unlabelled) qkv__json_put_int(w, "unlabelled", (int64_t)x->unlabelled);
    qkv__json_close(w);
    if (t->labels.n) {
        qkv__json_open_object(w, "classes");
        for (int i = 0; i < t->labels.n; i++) qkv__json_put_int(w, t->labels.names[i], (int64_t)t->labels.counts[i]);
        qkv__json_close(w);
    }
    qkv__json_put_int(w, "vocabulary", qkv_tokenizer_vocab_size(qkv_model_tokenizer(t->model, QKV_SIDE_SOURCE)));
    qkv__json_put_int(w, "parameters", (int64_t)qkv_model_get_info(t->model)->parameters);
    qkv_status status = put_options(t, QKV__SET, "given", w);
    if (!status) status = put_options(t, QKV__CHOSEN, "chosen", w);
    if (t->planned_steps) qkv__json_put_int(w, "planned_steps", (int64_t)t->planned_steps);
    qkv__json_close(w);
    return status ? status : w->status;
}

/* ---- going on ---- */

/* Rules choose no files, and nothing of what a single run does. */
static bool may_be_chosen(const qkv_training *t, qkv__option i)
{
    return i != QKV__SET_OPTIONS && !qkv__options_is_path(i) && i != QKV__SET_paper && i != QKV__SET_resume &&
           i != QKV__SET_dry_run && qkv__options_has(&t->o, i);
}

static qkv_status recall_choices(qkv_training *t, const char *path, const qkv__json_value *chosen)
{
    for (size_t i = 0; i < qkv__json_size(chosen); i++) {
        const char *name = qkv__json_key(chosen, i), *text = qkv__json_text(qkv__json_at(chosen, i));
        bool is_known = text && may_be_chosen(t, qkv__options_find(&t->o, name));
        if (is_known && !qkv__options_set(&t->o, name, text, QKV__CHOSEN)) continue;
        return qkv__fail(QKV_FORMAT, "%s: what \"chosen\" has for \"%.60s\" is nothing that a rule chooses", path, name);
    }
    /* Epochs are chosen where no limit is given. */
    if (t->o.v.steps > 0 && t->o.origin[QKV__SET_epochs] == QKV__CHOSEN) qkv__options_unset(&t->o, QKV__SET_epochs);
    return QKV_OK;
}

static bool is_limit(qkv__option i) { return i == QKV__SET_steps || i == QKV__SET_epochs || i == QKV__SET_minutes; }

static bool has_limit(const qkv_training *t)
{
    return QKV__IS_SET(&t->o, steps) || QKV__IS_SET(&t->o, epochs) || QKV__IS_SET(&t->o, minutes);
}

static qkv_status recall_option(qkv_training *t, const char *name, const qkv__json_value *value)
{
    size_t n = qkv__json_is_array(value) ? qkv__json_size(value) : 1;
    qkv_status status = n ? QKV_OK : QKV_FORMAT;
    for (size_t k = 0; k < n && !status; k++) {
        const char *text = qkv__json_text(qkv__json_is_array(value) ? qkv__json_at(value, k) : value);
        status = text ? qkv__options_set(&t->o, name, text, QKV__SET) : QKV_FORMAT;
    }
    return status;
}

/* What the caller set when the training was started, and did not set now. A limit stands for all limits. */
static qkv_status recall_given(qkv_training *t, const char *path, const qkv__json_value *given)
{
    bool is_limited = has_limit(t);
    for (size_t k = 0; k < qkv__json_size(given); k++) {
        const char *name = qkv__json_key(given, k);
        qkv__option i = qkv__options_find(&t->o, name);
        bool is_known = i != QKV__SET_OPTIONS && !is_of_one_run(i);
        if (is_known && (t->o.origin[i] == QKV__SET || (is_limited && is_limit(i)))) continue;
        qkv_status status = is_known ? recall_option(t, name, qkv__json_at(given, k)) : QKV_FORMAT;
        if (status == QKV_MEMORY) return status;
        if (status) return qkv__fail(QKV_FORMAT, "%s: \"given\" has no valid value for \"%.60s\"", path, name);
    }
    return QKV_OK;
}

qkv_status qkv__training_find_files(const qkv_training *t)
{
    for (int k = 0; k < QKV__SET_OPTIONS; k++) {
        qkv__option i = (qkv__option)k;
        const qkv__paths *files = qkv__options_paths(&t->o, i), from = { .at = (char **)(uintptr_t)&t->o.v.from, .n = 1 };
        if (i == QKV__SET_from && t->o.v.from) files = &from;
        for (int f = 0; files && qkv__options_has(&t->o, i) && f < files->n; f++)
            if (!qkv__file_exists(files->at[f]))
                return qkv__fail(QKV_IO, "cannot resume %s: %s is not there: give its new place with --%s", t->o.v.out,
                                 files->at[f], qkv__options_name(i));
    }
    return QKV_OK;
}

static qkv_status recall_plan(qkv_training *t, const char *path, const qkv__json_value *steps)
{
    t->planned_steps = (int64_t)qkv__json_int(steps);
    if (!steps || t->planned_steps > 0) return QKV_OK;
    return qkv__fail(QKV_FORMAT, "%s: \"planned_steps\" is not a whole number from 1", path);
}

static qkv_status check_job(const qkv_training *t, const qkv__json_value *job)
{
    const char *was = qkv__json_text(job);
    if (!was || !strcmp(was, t->job->command)) return QKV_OK;
    return qkv__fail(QKV_USAGE, "cannot resume %s: it is a training of \"%.60s\", and this is \"%s\"", t->o.v.out, was,
                     t->job->command);
}

qkv_status qkv__training_recall(qkv_training *t)
{
    char path[4200];
    qkv__json_doc record;
    snprintf(path, sizeof path, "%.4000s/training.json", t->o.v.out);
    qkv_status status = qkv__json_load(path, RECORD_BYTES, &record);
    if (status) return status;
    const qkv__json_value *chosen = qkv__json_get(record.top, "chosen");
    status = check_job(t, qkv__json_get(record.top, "job"));
    if (!status && !qkv__json_is_object(chosen)) status = qkv__fail(QKV_FORMAT, "%s: \"chosen\" is not an object", path);
    if (!status) status = recall_given(t, path, qkv__json_get(record.top, "given"));
    if (!status) status = recall_choices(t, path, chosen);
    if (!status) status = recall_plan(t, path, qkv__json_get(record.top, "planned_steps"));
    qkv__json_free(&record);
    return status;
}
