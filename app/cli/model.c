/* model.c: the model that a command runs. */
#include "../term/read_text.h"

#include <qkv/unstable/util.h>

#include "../report/attention.h"
#include "model.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

model_values weights;

qkv_status chosen_weights(qkv_dtype *out)
{
    *out = weights.int8 ? QKV_DTYPE_INT8 : weights.int4 ? QKV_DTYPE_INT4 : weights.bf16 ? QKV_DTYPE_BF16 : QKV_DTYPE_STORED;
    return weights.int8 + weights.int4 + weights.bf16 > 1 ? fail(QKV_USAGE, "--int8, --int4 and --bf16: choose one") : QKV_OK;
}

qkv_status load_model(const char *folder, qkv_model **out)
{
    qkv_load_opts o = QKV_OPTS(qkv_load_opts);
    *out = NULL;
    qkv_status status = chosen_weights(&o.dtype);
    if (status) return status;
    *out = qkv_model_load(folder, &o);
    return *out ? QKV_OK : library_failed();
}

qkv_status load_model_for(const char *folder, int ability, qkv_model **out)
{
    qkv_status status = load_model(folder, out);
    if (status || !(status = qkv_model_check_ability(*out, ability))) return status;
    fail(status, "%s: %s", folder, library_error());
    qkv_model_free(*out);
    *out = NULL;
    return status;
}

const char *changes[QKV_EDIT_KINDS];

qkv_status load_touched_model(const char *folder, int ability, qkv_model **out)
{
    static qkv_model *below;
    qkv_touches list = { 0 };
    qkv_status status = load_model_for(folder, ability, out);
    for (int i = 0; i < QKV_EDIT_KINDS && !status; i++)
        if (changes[i] && qkv_touches_add(&list, *out, (qkv_edit_kind)i, changes[i])) status = library_failed();
    if (!status && list.n) {
        below = *out;
        if (!(*out = qkv_model_edit(below, list.touches, list.n))) status = library_failed();
    }
    qkv_touches_free(&list);
    return status;
}

qkv_status capture_text(const qkv_model *m, const captured_text *from, qkv_attention_capture **out)
{
    if (from->text && from->input) return fail(QKV_USAGE, "a text and --input: choose one");
    qkv_buffer read = { 0 };
    if (!from->text && qkv_text_read(from->input ? from->input : "-", 0, &read)) return library_failed();
    const qkv_str text = from->text ? qkv_cstr(from->text) : (qkv_str){ read.data ? read.data : "", read.length };
    const qkv_attend_opts opts = { .target = qkv_cstr(from->target), .split_characters = 1 };
    qkv_status status = qkv_attend(m, text, &opts, out);
    qkv_buffer_free(&read);
    return status ? library_failed() : QKV_OK;
}

void note_ngrams(const qkv_model *m)
{
    qkv_config o = { .size = sizeof o };
    qkv_model_config(m, &o);
    if (!o.ngrams) return;
    fputs(_("qkv: this classifier also counts words and pairs of words (--ngrams): attention and attributions leave that part "
            "out\n"),
          stderr);
}

qkv_status check_new_folder(const char *folder)
{
    char config[4096];
    snprintf(config, sizeof config, "%s/config.json", folder);
    return access(config, F_OK) ? QKV_OK : fail(QKV_USAGE, "%s holds a model already: give another folder", folder);
}
