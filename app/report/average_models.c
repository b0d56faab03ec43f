/* average_models.c: one model out of several of one training, each in its folder. */
#include "average.h"
#include "../../src/base/file.h"
#include "../../src/base/json.h"
#include "../../src/model/model_info.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* ---- models of one kind ---- */

static qkv_status in_folder(char path[PATH_MAX], const char *folder, const char *name)
{
    if (snprintf(path, PATH_MAX, "%s/%s", folder, name) < PATH_MAX) return QKV_OK;
    return qkv__fail(QKV_LIMIT, "%.60s...: the path is longer than %d bytes", folder, PATH_MAX);
}

/* A file that neither folder has is the same in both. */
static qkv_status compare_files(const char *first, const char *other)
{
    bool has_first = qkv__file_exists(first), has_other = qkv__file_exists(other);
    if (!has_first && !has_other) return QKV_OK;
    if (has_first != has_other)
        return qkv__fail(QKV_IO, "cannot read %s, but %s can be read", has_first ? other : first, has_first ? first : other);
    qkv__bytes a, b = { 0 };
    qkv_status status = qkv__file_map(first, &a);
    if (status) return status;
    if (!(status = qkv__file_map(other, &b)) && (a.size != b.size || (a.size && memcmp(a.data, b.data, a.size))))
        status = qkv__fail(QKV_FORMAT, "%s is not the same as %s: these are models of two kinds", other, first);
    qkv__bytes_free(&a);
    qkv__bytes_free(&b);
    return status;
}

static bool is_ours(const char *family) { return family && !strcmp(family, "qkv"); }

/* Keys in which models of ours of one kind may differ. */
static bool may_differ(const char *key)
{
    static const char *const keys[] = { "length_penalty", QKV__SENTENCES, "source_language", "target_language" };
    for (int i = 0; i < 4; i++)
        if (!strcmp(key, keys[i])) return true;
    return false;
}

/* Whether all members of a are in b. */
static bool has_members(const qkv__json_value *a, const qkv__json_value *b, bool is_own)
{
    const char *key;
    for (size_t i = 0; (key = qkv__json_key(a, i)); i++)
        if (!(is_own && may_differ(key)) && !qkv__json_equal(qkv__json_at(a, i), qkv__json_get(b, key))) return false;
    return true;
}

/* Not alike: also files that are not JSON. MEMORY. */
static qkv_status compare_kinds(const char *first, const char *other, bool *alike)
{
    enum { LIMIT = 64 << 20 };
    qkv__json_doc a, b = { 0 };
    qkv_status status = qkv__json_load(first, LIMIT, &a);
    if (!status) status = qkv__json_load(other, LIMIT, &b);
    bool is_own = is_ours(qkv__json_get_text(a.top, "model_type"));
    *alike = !status && qkv__json_type_of(a.top) == qkv__json_type_of(b.top);
    if (*alike && qkv__json_is_object(a.top)) *alike = has_members(a.top, b.top, is_own) && has_members(b.top, a.top, is_own);
    else *alike = *alike && qkv__json_equal(a.top, b.top);
    qkv__json_free(&a);
    qkv__json_free(&b);
    return status == QKV_MEMORY ? status : QKV_OK;
}

/* Weights of equal shapes may still mean something else: the words of another vocabulary, or other heads. */
static qkv_status check_kind(const char *first, const char *other)
{
    static const char *const names[] = { "config.json", "tokenizer.json", "target_tokenizer.json", "source.spm",
                                         "target.spm",  "vocab.json",     "tokenizer.model",       NULL };
    char a[PATH_MAX], b[PATH_MAX];
    qkv_status status = QKV_OK;
    for (int i = 0; names[i] && !status; i++) {
        status = in_folder(a, first, names[i]);
        if (!status) status = in_folder(b, other, names[i]);
        bool alike = false;
        if (!status && i == 0) status = compare_kinds(a, b, &alike);
        if (!status && !alike) status = compare_files(a, b);
    }
    return status;
}

/* ---- their mean ---- */

/* The mean has what all of them have. */
static void keep_common_info(qkv_model *mean, const qkv_model *m)
{
    const qkv__model_info *a = qkv__model_get_info(mean), *b = qkv__model_get_info(m);
    if (is_ours(a->family) && a->length_penalty != b->length_penalty) qkv_model_set_length_penalty(mean, 0);
    if (a->sentences != b->sentences) qkv__model_set_sentences(mean, 0);
    const bool are_same = !strcmp(a->source_language, b->source_language) && !strcmp(a->target_language, b->target_language);
    if (!are_same) qkv__model_set_languages(mean, "", "");
}

static qkv_model *load_floats(const char *folder)
{
    return qkv_model_load(folder, &QKV_OPTS(qkv_load_opts, .dtype = QKV_DTYPE_F32));
}

static bool have_same_shapes(const qkv_params *p, const qkv_params *q)
{
    bool are_same = qkv_params_size(p) == qkv_params_size(q);
    for (int i = 0; are_same && i < qkv_params_size(p); i++)
        are_same = qkv_tensor_count(qkv_params_at(p, i)) == qkv_tensor_count(qkv_params_at(q, i));
    return are_same;
}

/* Adds the weights of one model to the sums. 0 + -0 would be 0, and the mean of one model another model. */
static qkv_status add_weights(const char *const *folders, int at, qkv_model *mean, double *sums)
{
    qkv_model *m = load_floats(folders[at]);
    if (!m) return qkv_error_status();
    const qkv_params *p = qkv_model_params(m);
    qkv_status status = QKV_OK;
    if (!have_same_shapes(p, qkv_model_params(mean)))
        status = qkv__fail(QKV_FORMAT, "%s has other weights than %s", folders[at], folders[0]);
    for (int k = 0; !status && k < qkv_params_size(p); k++) {
        const qkv_tensor *w = qkv_params_at(p, k);
        const float *values = qkv_tensor_data(w);
        for (int64_t i = 0; i < qkv_tensor_count(w); i++, sums++) *sums = at ? *sums + (double)values[i] : (double)values[i];
    }
    if (!status) keep_common_info(mean, m);
    qkv_model_free(m);
    return status;
}

static qkv_status average_into(qkv_model *mean, const char *const *folders, int n)
{
    const qkv_params *p = qkv_model_params(mean);
    size_t bytes = (size_t)qkv_params_count(p) * sizeof(double);
    double *sums = qkv__alloc(bytes), *sum = sums;
    qkv_status status = sums ? QKV_OK : qkv_error_status();
    for (int i = 0; i < n && !status; i++) {
        status = check_kind(folders[0], folders[i]);
        if (!status) status = add_weights(folders, i, mean, sums);
    }
    for (int k = 0; !status && k < qkv_params_size(p); k++) {
        float *values = qkv_tensor_data_mut(qkv_params_at(p, k));
        for (int64_t i = 0; i < qkv_tensor_count(qkv_params_at(p, k)); i++) values[i] = (float)(*sum++ / n);
    }
    qkv__release(sums, bytes);
    return status;
}

qkv_model *qkv_model_average(const char *const *folders, int n)
{
    bool are_there = folders && n > 0;
    for (int i = 0; are_there && i < n; i++) are_there = folders[i] != NULL;
    if (!are_there) return qkv__fail(QKV_USAGE, "average: at least one folder is needed"), NULL;
    qkv_model *mean = load_floats(folders[0]);
    if (!mean || !average_into(mean, folders, n)) return mean;
    qkv_model_free(mean);
    return NULL;
}
