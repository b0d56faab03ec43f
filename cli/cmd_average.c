/* cmd_average.c: qkv average: one model out of several of one training. */
#include "options.h"

#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    value_list models;
    const char *out;
    bool quiet;
} given;

static const option options[] = {
    { "models", 'm', .value = "DIR..", .help = "folders of models", .required = true, .list = &given.models },
    { "out", 'o', .value = "DIR", .help = "the folder to write", .required = true, .text = &given.out },
    { "quiet", .help = "tell nothing but errors", .flag = &given.quiet },
    { 0 },
};

/* ---- models of one kind ---- */

static qkv_status in_folder(char path[PATH_MAX], const char *folder, const char *name)
{
    if (snprintf(path, PATH_MAX, "%s/%s", folder, name) < PATH_MAX) return QKV_OK;
    return fail(QKV_LIMIT, "%.60s...: the path is longer than %d bytes", folder, PATH_MAX);
}

/* A file that neither folder has is the same in both. */
static qkv_status compare_files(const char *first, const char *other)
{
    FILE *a = fopen(first, "rb"), *b = fopen(other, "rb");
    qkv_status status = QKV_OK;
    if (!a != !b) status = fail(QKV_IO, "cannot read %s, but %s can be read", a ? other : first, a ? first : other);
    for (int x = 0; a && b && !status && x != EOF;) {
        x = getc(a);
        if (x != getc(b)) status = fail(QKV_FORMAT, "%s is not the same as %s: these are models of two kinds", other, first);
    }
    if (a) fclose(a);
    if (b) fclose(b);
    return status;
}

static bool is_ours(const char *family) { return family && !strcmp(family, "qkv"); }

/* A length penalty is fitted to the weights of one model of ours: others of its kind have another, or none. */
static json_t *read_kind(const char *path)
{
    json_t *config = json_load_file(path, 0, NULL);
    if (is_ours(json_string_value(json_object_get(config, "model_type")))) json_object_del(config, "length_penalty");
    return config;
}

static bool are_of_one_kind(const char *first, const char *other)
{
    json_t *a = read_kind(first), *b = read_kind(other);
    bool alike = a && b && json_equal(a, b);
    json_decref(a);
    json_decref(b);
    return alike;
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
        if (!status && !(i == 0 && are_of_one_kind(a, b))) status = compare_files(a, b);
    }
    return status;
}

/* ---- their mean ---- */

/* The mean has what all of them have. */
static void keep_common_penalty(qkv_model *mean, const qkv_model *m)
{
    const qkv_model_info *a = qkv_model_info_of(mean), *b = qkv_model_info_of(m);
    if (is_ours(a->family) && a->length_penalty != b->length_penalty) qkv_model_set_length_penalty(mean, 0);
}

/* Adds the weights of one model to the sums. 0 + -0 would be 0, and the mean of one model another model. */
static qkv_status add_weights(const char *folder, bool is_first, qkv_model *mean, double *sums)
{
    int64_t n = qkv_params_block(qkv_model_params(mean));
    qkv_model *m = qkv_model_load(folder);
    if (!m) return library_failed();
    qkv_status status = QKV_OK;
    const float *weights = qkv_params_data(qkv_model_params(m));
    if (!weights) status = library_failed();
    else if (qkv_params_block(qkv_model_params(m)) != n)
        status = fail(QKV_FORMAT, "%s has other weights than %s", folder, given.models.at[0]);
    for (int64_t i = 0; !status && i < n; i++) sums[i] = is_first ? (double)weights[i] : sums[i] + (double)weights[i];
    keep_common_penalty(mean, m);
    qkv_model_free(m);
    return status;
}

static qkv_status average(qkv_model *m)
{
    float *weights = qkv_params_data(qkv_model_params(m));
    int64_t n = qkv_params_block(qkv_model_params(m));
    double *sums = weights ? calloc((size_t)n, sizeof *sums) : NULL;
    qkv_status status = sums ? QKV_OK : weights ? fail(QKV_MEMORY, "out of memory") : library_failed();
    for (int i = 0; i < given.models.n && !status; i++) {
        status = check_kind(given.models.at[0], given.models.at[i]);
        if (!status) status = add_weights(given.models.at[i], i == 0, m, sums);
    }
    for (int64_t i = 0; !status && i < n; i++) weights[i] = (float)(sums[i] / given.models.n);
    free(sums);
    return status;
}

static qkv_status run_average(void)
{
    qkv_model *m = qkv_model_load(given.models.at[0]);
    if (!m) return library_failed();
    qkv_status status = average(m);
    if (!status && qkv_model_save(m, given.out)) status = library_failed();
    if (!status && !given.quiet) fprintf(stderr, "qkv: wrote %s\n", given.out);
    qkv_model_free(m);
    return status;
}

const command average_command = {
    .name = "average",
    .summary = "make one model out of several of one training",
    .about = "Sets each weight to its mean over the models, and writes a model like them. The\n"
             "last few that a training saved are, averaged, mostly better than each of them.\n"
             "They must have the same config.json and the same tokenizers; a length penalty that\n"
             "was fitted to some of them alone is left out. The folder to write may be one of\n"
             "those that are read.",
    .example = "  qkv average --models run/step-8000 run/step-9000 run/step-10000 \\\n"
               "    --out averaged",
    .options = options,
    .run = run_average,
};
