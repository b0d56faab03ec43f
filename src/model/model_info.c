/* model_info.c: what a folder's files say of a model besides its options. */
#include "model_info.h"

#include <qkv/unstable/util.h>

#include "../base/result.h"

#include "../base/file.h"
#include "../nn/transformer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PATH_BYTES = 4096 };

bool qkv__info_is_published(const qkv__model_info *info) { return info && strcmp(info->family, QKV__OWN_TYPE) != 0; }

float qkv__length_penalty_of(const qkv__model_info *info)
{
    if (info->length_penalty != 0) return info->length_penalty;
    return qkv__info_is_published(info) ? QKV__PUBLISHED_LENGTH_PENALTY : QKV__LENGTH_PENALTY;
}

int64_t qkv__max_sentences(const qkv__model_info *info)
{
    if (info->sentences) return info->sentences;
    return qkv__info_is_published(info) ? INT64_MAX : 1;
}

/* ---- ours ---- */

static int abilities(const qkv_config *o)
{
    static const int of[] = { QKV_CAN_CLASSIFY, QKV_CAN_TAG, QKV_CAN_ANSWER };
    int can = !o->classes ? 0 : of[o->classes_of] | (o->classes == 1 && !o->classes_of ? QKV_CAN_RANK : 0);
    if (o->encoder_layers && o->decoder_layers) return can | QKV_CAN_TRANSLATE;
    if (o->decoder_layers) return can | QKV_CAN_GENERATE;
    bool has_no_words = o->classes && (!o->head || o->pooler == QKV_POOLER_HEAD); /* that head is the classifier's */
    return can | QKV_CAN_EMBED | (has_no_words ? 0 : QKV_CAN_FILL);
}

qkv__model_info qkv__model_info_of(const qkv_config *o)
{
    return (qkv__model_info){ .family = QKV__OWN_TYPE,
                              .can = abilities(o),
                              .context = qkv__max_positions(o),
                              .start = -1,
                              .begin = -1,
                              .pad = -1,
                              .forced_first = -1,
                              .pooling = o->pooling };
}

void qkv__model_info_free(qkv__model_info *info)
{
    qkv__release((int32_t *)info->ends, sizeof(int32_t) * (size_t)info->n_ends);
    qkv__release((int32_t *)info->banned, sizeof(int32_t) * (size_t)info->n_banned);
    info->ends = info->banned = NULL;
    info->n_ends = info->n_banned = 0;
}

static qkv_status copy_ids(const int32_t *from, int n, const int32_t **to)
{
    int32_t *ids = n ? qkv__alloc(sizeof *ids * (size_t)n) : NULL;
    *to = ids;
    if (!n) return QKV_OK;
    if (!ids) return QKV_MEMORY;
    memcpy(ids, from, sizeof *ids * (size_t)n);
    return QKV_OK;
}

qkv_status qkv__model_info_copy(const qkv__model_info *from, qkv__model_info *to)
{
    *to = *from;
    to->ends = to->banned = NULL;
    qkv_status status = copy_ids(from->ends, from->n_ends, &to->ends);
    if (!status) status = copy_ids(from->banned, from->n_banned, &to->banned);
    if (!status) return QKV_OK;
    if (!to->banned) to->n_banned = 0;
    if (!to->ends) to->n_ends = 0;
    qkv__model_info_free(to);
    return status;
}

static const int32_t *keep_ids(qkv_generation *g, const int32_t *from, int n)
{
    int32_t *ids = qkv__result_alloc(g, sizeof *ids * (size_t)n + 1);
    if (ids && n) memcpy(ids, from, sizeof *ids * (size_t)n);
    return ids;
}

qkv_status qkv_model_generation(const qkv_model *m, qkv_generation **out)
{
    static const qkv__result_kind kind = { .size = sizeof(qkv_generation) };
    if (!m || !out) return qkv__fail(QKV_USAGE, "generation: a model and a place for what its files say are needed");
    const qkv__model_info *x = qkv__model_get_info(m);
    qkv_generation *g = qkv__result_begin(*out, &kind);
    if (!g) return qkv_error_status();
    *out = g;
    const int32_t *ends = keep_ids(g, x->ends, x->n_ends), *banned = keep_ids(g, x->banned, x->n_banned);
    if (!ends || !banned) return QKV_MEMORY;
    *g = (qkv_generation){ .beam_size = x->beam,
                           .length_penalty = x->length_penalty,
                           .max_length = x->max_length,
                           .min_length = x->min_length,
                           .max_new = x->max_new,
                           .do_sample = x->sample,
                           .top_k = x->top_k,
                           .no_repeat_ngram = x->no_repeat,
                           .temperature = x->temperature,
                           .top_p = x->top_p,
                           .min_p = x->min_p,
                           .repetition_penalty = x->repetition_penalty,
                           .ends = ends,
                           .banned = banned,
                           .n_ends = x->n_ends,
                           .n_banned = x->n_banned };
    return QKV_OK;
}

/* ---- config.json and generation_config.json ---- */

/* The two files; the second may be missing. */
typedef struct files {
    const qkv__published *published; /* whose keys count as read; NULL: none do */
    const char *paths[2];
    const qkv__json_value *values[2];
    int64_t vocabulary;
} files;

static const qkv__json_value *get(const files *f, const char *key, const char **path)
{
    if (f->published) qkv__value(f->published, key);
    for (int i = 1; i >= 0; i--) {
        const qkv__json_value *value = qkv__json_get(f->values[i], key);
        *path = f->paths[i];
        if (value && !qkv__json_is_null(value)) return value;
    }
    return NULL;
}

static qkv_status wrong(const char *path, const char *key, const char *expected)
{
    return qkv__fail(QKV_FORMAT, "%s: key \"%s\": expected %s", path, key, expected);
}

static bool is_id(const files *f, const qkv__json_value *value)
{
    return qkv__json_int(value) >= 0 && qkv__json_int(value) < f->vocabulary && qkv__json_int(value) <= INT32_MAX;
}

/* bos, eos and pad outside the vocabulary stand for none: a small model's file may have the defaults of a large one. What a
 * translation starts with is needed. */
static qkv_status read_id(const files *f, const char *key, bool is_needed, int32_t *to)
{
    const char *path;
    const qkv__json_value *value = get(f, key, &path);
    if (!value) return QKV_OK;
    if (!qkv__json_is_int(value) || (is_needed && !is_id(f, value))) return wrong(path, key, "an id of the vocabulary");
    if (is_id(f, value)) *to = (int32_t)qkv__json_int(value);
    return QKV_OK;
}

static qkv_status read_info_whole(const files *f, const char *key, int64_t most, int64_t *to)
{
    const char *path;
    const qkv__json_value *value = get(f, key, &path);
    if (!value) return QKV_OK;
    if (!qkv__json_is_int(value) || qkv__json_int(value) < 0 || qkv__json_int(value) > most)
        return wrong(path, key, "a whole number, at least 0");
    *to = qkv__json_int(value);
    return QKV_OK;
}

static qkv_status read_info_number(const files *f, const char *key, float *to)
{
    const char *path;
    const qkv__json_value *value = get(f, key, &path);
    if (!value) return QKV_OK;
    if (!qkv__json_is_number(value) || !isfinite((float)qkv__json_number(value))) return wrong(path, key, "a finite number");
    *to = (float)qkv__json_number(value);
    return QKV_OK;
}

/* A word that is never to come, as its ids: [7] alone, which is a list of one, or of several that must not follow each
 * other. */
static const qkv__json_value *one_of(const qkv__json_value *item)
{
    return qkv__json_is_array(item) && qkv__json_size(item) == 1 ? qkv__json_at(item, 0) : item;
}

/* One id, or a list of them, without those outside the vocabulary. */
static qkv_status read_info_ids(const files *f, const char *key, const int32_t **to, int *n)
{
    const char *path;
    const qkv__json_value *value = get(f, key, &path);
    size_t count = qkv__json_is_array(value) ? qkv__json_size(value) : value ? 1 : 0, known = 0;
    for (size_t i = 0; i < count; i++) {
        const qkv__json_value *id = qkv__json_is_array(value) ? one_of(qkv__json_at(value, i)) : value;
        if (qkv__json_is_array(id) && qkv__json_size(id) > 1)
            return qkv__fail(QKV_UNSUPPORTED, "%s: key \"%s\": only single tokens can be banned", path, key);
        if (!qkv__json_is_int(id)) return wrong(path, key, "ids of the vocabulary");
        known += is_id(f, id);
    }
    int32_t *ids = known ? qkv__alloc(sizeof *ids * known) : NULL;
    if (known && !ids) return QKV_MEMORY;
    *to = ids;
    *n = (int)known;
    for (size_t i = 0; i < count; i++) {
        const qkv__json_value *id = qkv__json_is_array(value) ? one_of(qkv__json_at(value, i)) : value;
        if (is_id(f, id)) *ids++ = (int32_t)qkv__json_int(id);
    }
    return QKV_OK;
}

/* The first BARTs say with a flag that a text begins with bos_token_id. */
static qkv_status read_ids_of(const files *f, qkv__model_info *info)
{
    const char *path;
    qkv_status status = read_id(f, "bos_token_id", false, &info->begin);
    if (!status) status = read_id(f, "pad_token_id", false, &info->pad);
    if (!status) status = read_id(f, "decoder_start_token_id", true, &info->start);
    if (!status) status = read_id(f, "forced_bos_token_id", true, &info->forced_first);
    if (info->forced_first < 0 && qkv__json_is_true(get(f, "force_bos_token_to_be_generated", &path)))
        info->forced_first = info->begin;
    if (!status) status = read_info_ids(f, "eos_token_id", &info->ends, &info->n_ends);
    return status ? status : read_info_ids(f, "bad_words_ids", &info->banned, &info->n_banned);
}

static qkv_status read_search(const files *f, qkv__model_info *info)
{
    const char *path;
    int64_t beam = 0, top_k = 0, no_repeat = 0;
    qkv_status status = read_info_whole(f, "num_beams", 10000, &beam);
    if (!status) status = read_info_whole(f, "max_length", INT32_MAX, &info->max_length);
    if (!status) status = read_info_whole(f, "min_length", INT32_MAX, &info->min_length);
    if (!status) status = read_info_whole(f, "max_new_tokens", INT32_MAX, &info->max_new);
    if (!status) status = read_info_whole(f, "top_k", INT32_MAX, &top_k);
    if (!status) status = read_info_whole(f, "no_repeat_ngram_size", INT32_MAX, &no_repeat);
    if (!status) status = read_info_number(f, "length_penalty", &info->length_penalty);
    if (!status) status = read_info_number(f, "temperature", &info->temperature);
    if (!status) status = read_info_number(f, "top_p", &info->top_p);
    if (!status) status = read_info_number(f, "min_p", &info->min_p);
    if (!status) status = read_info_number(f, "repetition_penalty", &info->repetition_penalty);
    info->beam = (int)beam;
    info->top_k = (int)top_k;
    info->no_repeat = (int)no_repeat;
    info->sample = qkv__json_is_true(get(f, "do_sample", &path));
    return status;
}

/* The longest sequence. */
static qkv_status read_context(const files *f, qkv__model_info *info)
{
    int64_t longest = 0;
    qkv_status status = read_info_whole(f, "max_position_embeddings", INT64_MAX, &longest);
    if (!info->context) info->context = longest;
    return status;
}

/* "task_specific_params": what a summary is searched with. */
static qkv_status read_summary(const files *f, qkv__summary_params *to)
{
    const char *path;
    const qkv__json_value *tasks = get(f, "task_specific_params", &path);
    const qkv__json_value *own = qkv__json_get(tasks, "summarization");
    const char *prefix = qkv__json_get_text(own, "prefix");
    const files said = { NULL, { path, path }, { own, NULL }, f->vocabulary };
    int64_t beam = 0, no_repeat = 0;
    qkv_status status = read_info_whole(&said, "num_beams", 1000, &beam);
    if (!status) status = read_info_whole(&said, "no_repeat_ngram_size", INT32_MAX, &no_repeat);
    if (!status) status = read_info_whole(&said, "max_length", INT32_MAX, &to->max_length);
    if (!status) status = read_info_whole(&said, "min_length", INT32_MAX, &to->min_length);
    if (!status) status = read_info_number(&said, "length_penalty", &to->length_penalty);
    to->beam = (int)beam;
    to->no_repeat = (int)no_repeat;
    if (prefix && snprintf(to->prefix, sizeof to->prefix, "%s", prefix) >= (int)sizeof to->prefix)
        return wrong(path, "prefix", "less than 64 bytes");
    return status;
}

static qkv_status read_files(const files *f, qkv__model_info *info)
{
    qkv_status status = read_ids_of(f, info);
    if (!status) status = read_search(f, info);
    if (!status) status = read_summary(f, &info->summary);
    return status ? status : read_context(f, info);
}

static qkv_status join(const char *folder, const char *name, char out[PATH_BYTES])
{
    int n = snprintf(out, PATH_BYTES, "%s/%s", folder, name);
    return n < PATH_BYTES ? QKV_OK : qkv__fail(QKV_LIMIT, "%.60s...: the path is longer than 4096 bytes", folder);
}

/* A JSON file that may be missing: then *out is empty. */
static qkv_status read_optional(const char *path, qkv__json_doc *out)
{
    *out = (qkv__json_doc){ 0 };
    return qkv__file_exists(path) ? qkv__json_load(path, QKV__CONFIG_MAX, out) : QKV_OK;
}

static qkv_status read_generation(const qkv__published *p, const char *folder, const qkv_config *o, qkv__model_info *info)
{
    char path[PATH_BYTES];
    qkv__json_doc generation = { 0 };
    files f = { p, { p->path, path }, { p->config, NULL }, o->target_vocab_size ? o->target_vocab_size : o->vocab_size };
    qkv_status status = join(folder, "generation_config.json", path);
    if (!status) status = read_optional(path, &generation);
    f.values[1] = generation.top;
    if (!status && f.values[1] && !qkv__json_is_object(f.values[1]))
        status = qkv__fail(QKV_FORMAT, "%s: expected a JSON object", path);
    if (!status) status = read_files(&f, info);
    qkv__json_free(&generation);
    return status;
}

/* What becomes of a cross-encoder's logit, by its newer key or its older one. */
static qkv_status read_score(const qkv__published *p, const qkv_config *o, qkv__model_info *info)
{
    static const char *const keys[] = { "sentence_transformers", "sbert_ce_default_activation_function" };
    const char *name = qkv__json_get_text(qkv__get(p, keys[0]), "activation_fn");
    const char *key = keys[!name];
    if (!name) name = qkv__json_text(qkv__get(p, keys[1]));
    if (!name || o->classes != 1) return QKV_OK;
    const char *dot = strrchr(name, '.'), *kind = dot ? dot + 1 : name;
    info->scores_logits = !strcmp(kind, "Identity");
    return info->scores_logits || !strcmp(kind, "Sigmoid") ? QKV_OK : qkv__unsupported(p, key, "Identity or Sigmoid");
}

/* ---- all of it ---- */

qkv_status qkv__model_info_read(const qkv__family *f, const qkv__published *p, const char *folder, const qkv_config *o,
                                qkv__model_info *info, qkv__sentence *sentence)
{
    *sentence = (qkv__sentence){ 0 };
    info->family = f->type;
    info->pooling = QKV_POOLING_MEAN;
    info->files = p->weights->n_files;
    info->bytes = (int64_t)p->weights->bytes;
    if (!o->decoder_layers && !o->head) info->can &= ~QKV_CAN_FILL;
    if (o->classes) info->can &= ~QKV_CAN_TRANSLATE; /* its decoder reads for the classes */
    qkv_status status = read_generation(p, folder, o, info);
    if (!status && !o->decoder_layers) status = qkv__sentence_read(folder, o->dim, info, sentence);
    if (!status) status = read_score(p, o, info);
    /* Longer texts would turn by other frequencies, those that come before too. */
    if (o->rope_scaling == QKV_ROPE_LONG && info->context > o->rope_length) info->context = o->rope_length;
    if (status) qkv__model_info_free(info);
    return status;
}

qkv_status qkv__labels_read(const qkv__published *p, const qkv_config *o, qkv__labels *out)
{
    int64_t classes = o->classes_of == QKV_CLASSES_OF_SPANS ? 0 : o->classes;
    const qkv__json_value *given = qkv__get(p, "id2label");
    size_t n = (size_t)classes, bytes = (sizeof(char *) + 32) * n;
    if (!n) return QKV_OK;
    const char **names = qkv__alloc(bytes);
    if (!names) return QKV_MEMORY;
    char(*standing_in)[32] = (char(*)[32])(names + n);
    qkv_status status = QKV_OK;
    for (size_t i = 0; i < n && !status; i++) {
        char key[32];
        snprintf(key, sizeof key, "%zu", i);
        snprintf(standing_in[i], sizeof standing_in[i], "LABEL_%zu", i);
        names[i] = given ? qkv__json_get_text(given, key) : standing_in[i];
        if (!names[i] || !*names[i]) status = qkv__fail(QKV_FORMAT, "%s: key \"id2label\": class %zu has no name", p->path, i);
        else if (strpbrk(names[i], "\t\r\n"))
            status = qkv__fail(QKV_FORMAT, "%s: key \"id2label\": the name of class %zu has a TAB or newline", p->path, i);
    }
    if (!status) status = qkv__labels_copy(out, names, classes);
    qkv__release(names, bytes);
    return status;
}

/* ---- what the numbers of a classifier stand for ---- */

static const char *const problems[] = { "single_label_classification", "multi_label_classification", "regression" };

/* One class without a word is a logit, whatever it is for. */
qkv_status qkv__problem_read(const qkv__published *p, int64_t classes, qkv__model_info *info)
{
    const qkv__json_value *separator = qkv__get(p, QKV__SEPARATOR);
    const char *word = qkv__json_text(qkv__get(p, QKV__PROBLEM));
    int i = 0;
    while (word && i <= QKV_PROBLEM_REGRESSION && strcmp(word, problems[i])) i++;
    if (i > QKV_PROBLEM_REGRESSION) return qkv__unsupported(p, QKV__PROBLEM, "multi_label_classification or regression");
    if (i == QKV_PROBLEM_REGRESSION && classes > 1)
        return qkv__fail(QKV_UNSUPPORTED, "%s: key \"%s\": a regression of %lld numbers; expected one", p->path, QKV__PROBLEM,
                         (long long)classes);
    info->problem = (qkv_problem)i;
    if (!separator || i != QKV_PROBLEM_MULTILABEL) return QKV_OK;
    size_t length = qkv__json_length(separator);
    if (!length || length >= sizeof info->label_separator)
        return qkv__fail(QKV_FORMAT, "%s: key \"%s\": expected a text of 1 to %zu bytes", p->path, QKV__SEPARATOR,
                         sizeof info->label_separator - 1);
    strcpy(info->label_separator, qkv__json_text(separator));
    return QKV_OK;
}

void qkv__problem_write(const qkv__model_info *info, qkv__json_writer *w)
{
    if (info->problem == QKV_PROBLEM_MULTILABEL && *info->label_separator)
        qkv__json_put_text(w, QKV__SEPARATOR, info->label_separator);
    if (info->problem) qkv__json_put_text(w, QKV__PROBLEM, problems[info->problem]);
}

/* ---- writing ---- */

static void put_whole(qkv__json_writer *w, const char *key, bool said, int64_t x)
{
    if (said) qkv__json_put_int(w, key, x);
}

static void put_number(qkv__json_writer *w, const char *key, float x)
{
    if (x != 0) qkv__json_put_real(w, key, (double)x, QKV__JSON_FLOAT);
}

static void put_ids(qkv__json_writer *w, const char *key, const int32_t *ids, int n, bool each_in_a_list)
{
    qkv__json_open_array(w, key);
    for (int i = 0; i < n; i++) {
        if (each_in_a_list) qkv__json_open_array(w, NULL);
        qkv__json_put_int(w, NULL, ids[i]);
        if (each_in_a_list) qkv__json_close(w);
    }
    qkv__json_close(w);
}

static void put_summary(const qkv__summary_params *s, qkv__json_writer *w)
{
    bool is_said = *s->prefix || s->beam > 0 || s->no_repeat > 0 || s->max_length > 0 || s->min_length > 0;
    if (!is_said && s->length_penalty == 0) return;
    qkv__json_open_object(w, "task_specific_params");
    qkv__json_open_object(w, "summarization");
    if (*s->prefix) qkv__json_put_text(w, "prefix", s->prefix);
    put_whole(w, "num_beams", s->beam > 0, s->beam);
    put_whole(w, "no_repeat_ngram_size", s->no_repeat > 0, s->no_repeat);
    put_whole(w, "max_length", s->max_length > 0, s->max_length);
    put_whole(w, "min_length", s->min_length > 0, s->min_length);
    put_number(w, "length_penalty", s->length_penalty);
    qkv__json_close(w);
    qkv__json_close(w);
}

void qkv__model_info_write(const qkv__model_info *f, qkv__json_writer *w)
{
    put_whole(w, "bos_token_id", f->begin >= 0, f->begin);
    put_whole(w, "pad_token_id", f->pad >= 0, f->pad);
    put_whole(w, "decoder_start_token_id", f->start >= 0, f->start);
    put_whole(w, "forced_bos_token_id", f->forced_first >= 0, f->forced_first);
    put_whole(w, "min_length", f->min_length > 0, f->min_length);
    put_summary(&f->summary, w);
    qkv__problem_write(f, w);
    if (f->n_ends == 1) qkv__json_put_int(w, "eos_token_id", f->ends[0]);
    if (f->n_ends > 1) put_ids(w, "eos_token_id", f->ends, f->n_ends, false);
    if (f->n_banned > 0) put_ids(w, "bad_words_ids", f->banned, f->n_banned, true);
    if (f->scores_logits) qkv__json_put_text(w, "sbert_ce_default_activation_function", "torch.nn.modules.linear.Identity");
    put_whole(w, "num_beams", f->beam > 0, f->beam);
    put_whole(w, "max_length", f->max_length > 0, f->max_length);
    put_whole(w, "max_new_tokens", f->max_new > 0, f->max_new);
    put_number(w, "length_penalty", f->length_penalty);
    put_whole(w, "max_position_embeddings", f->context > 0 && !qkv__json_has(w, "max_position_embeddings"), f->context);
    if (f->sample) qkv__json_put_bool(w, "do_sample", true);
    put_whole(w, "top_k", f->top_k > 0, f->top_k);
    put_number(w, "temperature", f->temperature);
    put_number(w, "top_p", f->top_p);
    put_number(w, "repetition_penalty", f->repetition_penalty);
}
