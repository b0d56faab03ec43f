/* model.c: a Transformer, its weights, and the folder they live in. */
#include <qkv/model.h>
#include <qkv/unstable/util.h>

#include "../base/arena.h"
#include "../base/options.h"
#include "../base/json.h"
#include "../base/number.h"
#include "../nn/layer.h"
#include "../tensor/types.h"
#include "../token/pipeline.h"
#include "../token/tokenizer.h"
#include "bind.h"
#include "copy_tokenizer_files.h"
#include "export.h"
#include "export_folder.h"
#include "fold.h"
#include "model.h"
#include "model_info.h"
#include "no_folder.h"
#include "open_head.h"
#include "special_tokens.h"
#include "touched.h"

#include <stdio.h>
#include <string.h>

enum { SOME = 1024 }; /* numbers at a time */

struct qkv_model {
    qkv_params *params;
    qkv__transformer *transformer;   /* the params own it */
    qkv_tokenizer *tokenizer;        /* NULL: the model knows ids only */
    qkv_tokenizer *target_tokenizer; /* NULL: the same one */
    qkv__labels labels;
    const qkv__family *family; /* NULL: ours */
    qkv__model_info info;
    qkv_model_info shown; /* what programs read of it */
    qkv__sentence sentence;
    char *origin;               /* the folder it was loaded from; NULL: none */
    struct touched *is_touched; /* the model is another with changes, and owns these alone; NULL: it is not */
};

/* What a model with changes has of its own. */
struct touched {
    qkv__transformer transformer;
    qkv__arena arena; /* of the changes */
};

/* After each change. */
static void show_info(qkv_model *m)
{
    const qkv__model_info *x = &m->info;
    m->shown = (qkv_model_info){ .family = x->family,
                                 .can = (unsigned)x->can,
                                 .max_positions = x->context,
                                 .parameters = x->parameters,
                                 .bytes = x->bytes,
                                 .n_files = x->files,
                                 .dtype = x->bits == 8   ? QKV_DTYPE_INT8
                                          : x->bits == 4 ? QKV_DTYPE_INT4
                                                         : QKV_DTYPE_STORED,
                                 .n_labels = m->labels.n,
                                 .problem = x->problem,
                                 .sentences = x->sentences };
    strcpy(m->shown.label_separator, x->label_separator);
    strcpy(m->shown.source_language, x->source_language);
    strcpy(m->shown.target_language, x->target_language);
}

qkv_model *qkv_model_new(const qkv_config *opts, uint64_t seed)
{
    qkv_model *m = qkv__alloc_zero(sizeof *m);
    if (!m) return NULL;
    m->params = qkv_params_new(seed);
    m->transformer = m->params ? qkv__transformer_new(m->params, opts) : NULL;
    if (!m->transformer) return qkv_model_free(m), NULL;
    m->info = qkv__model_info_of(&m->transformer->o);
    m->info.parameters = qkv_params_count(m->params);
    show_info(m);
    return m;
}

/* Every weight that both have in the same shape. */
static void copy_weights(const qkv_params *from, const qkv_params *to)
{
    for (int i = 0; i < qkv_params_size(to); i++) {
        qkv_tensor *w = qkv_params_at(to, i), *old = qkv_params_find(from, qkv_params_name(to, i));
        bool is_same = old && qkv_tensor_ndim(old) == qkv_tensor_ndim(w);
        for (int d = 0; is_same && d < qkv_tensor_ndim(w); d++) is_same = qkv_tensor_dim(old, d) == qkv_tensor_dim(w, d);
        if (is_same) qkv__widen(old, 0, qkv_tensor_count(w), qkv__tensor_data(w));
    }
}

/* A model that is made of another has no files, and can do what its options let it do. */
static qkv_status copy_model_info(const qkv_model *from, qkv_model *to)
{
    const qkv__model_info own = to->info;
    qkv_status status = qkv__model_info_copy(&from->info, &to->info);
    to->info.can = own.can;
    to->info.parameters = own.parameters;
    to->info.files = 0;
    to->info.bytes = 0;
    if (from->family && !from->family->missing(&to->transformer->o)) to->family = from->family;
    else to->info.family = own.family;
    bool same_scores = to->family == from->family && own.can & QKV_CAN_TRANSLATE; /* else another formula, or no search */
    if (!same_scores) to->info.length_penalty = 0, to->info.sentences = 0;
    if (!same_scores) *to->info.source_language = *to->info.target_language = '\0';
    if (!status) status = qkv__sentence_copy(&from->sentence, &to->sentence);
    if (!status && from->origin && !(to->origin = qkv__copy_text(from->origin))) status = QKV_MEMORY;
    show_info(to);
    return status;
}

/* Where both turn as many pairs. */
static bool copy_divisors(const qkv_model *from, qkv_model *to)
{
    const qkv__transformer *x = from->transformer;
    if (!x->divisors || qkv__rotary_pairs(&x->o) != qkv__rotary_pairs(&to->transformer->o)) return true;
    return qkv__set_divisors(to->params, to->transformer, x->divisors);
}

qkv_model *qkv_model_adapt(const qkv_model *m, const qkv_config *opts, uint64_t seed)
{
    if (!m || !opts) return qkv__fail(QKV_USAGE, "model: another model and options are needed"), NULL;
    qkv_model *made = qkv__params_check_floats(m->params) ? NULL : qkv_model_new(opts, seed);
    if (!made) return NULL;
    copy_weights(m->params, made->params);
    if (!m->transformer->o.head) qkv__open_head(made->transformer);
    if (copy_divisors(m, made) && !copy_model_info(m, made)) return made;
    qkv_model_free(made);
    return NULL;
}

/* The changes of m, then these, with copies of their rows. */
static bool copy_touches(const qkv__touches *old, const qkv_edit *more, int64_t n, struct touched *to)
{
    qkv_edit *all = qkv__arena_take(&to->arena, sizeof *all * (size_t)(old->n + n));
    for (int64_t i = 0; all && i < old->n + n; i++) {
        all[i] = i < old->n ? old->list[i] : more[i - old->n];
        if (all[i].what != QKV_EDIT_ROW) continue;
        size_t bytes = sizeof(float) * (size_t)all[i].n_row;
        float *row = qkv__arena_take(&to->arena, bytes + sizeof(float));
        if (!row) return false;
        if (bytes) memcpy(row, all[i].row, bytes);
        all[i].row = row;
    }
    to->transformer.touches = (qkv__touches){ all, old->n + n };
    return all;
}

static void free_touched(qkv_model *m)
{
    if (m->is_touched) qkv__arena_free(&m->is_touched->arena);
    qkv__release(m->is_touched, sizeof *m->is_touched);
    qkv__release(m, sizeof *m);
}

qkv_model *qkv_model_edit(const qkv_model *m, const qkv_edit *touches, int64_t n)
{
    if (!m || n < 0 || (n && !touches)) return qkv__fail(QKV_USAGE, "touch: a model and changes are needed"), NULL;
    for (int64_t i = 0; i < n; i++)
        if (qkv__check_touch(&m->transformer->o, &touches[i])) return NULL;
    qkv_model *made = qkv__alloc(sizeof *made);
    if (!made) return NULL;
    *made = *m;
    if ((made->is_touched = qkv__alloc_zero(sizeof *made->is_touched))) {
        made->is_touched->transformer = *m->transformer;
        made->transformer = &made->is_touched->transformer;
        if (copy_touches(&m->transformer->touches, touches, n, made->is_touched)) return made;
    }
    free_touched(made);
    return NULL;
}

void qkv_model_free(qkv_model *m)
{
    if (!m) return;
    if (m->is_touched) return free_touched(m);
    qkv_params_free(m->params);
    qkv_tokenizer_free(m->tokenizer);
    qkv_tokenizer_free(m->target_tokenizer);
    qkv__labels_free(&m->labels);
    qkv__model_info_free(&m->info);
    qkv__sentence_free(&m->sentence);
    qkv__release_text(m->origin);
    qkv__release(m, sizeof *m);
}

qkv_params *qkv_model_params(qkv_model *m) { return m ? m->params : NULL; }

qkv_params *qkv__model_params(const qkv_model *m) { return m ? m->params : NULL; }

qkv_status qkv_model_config(const qkv_model *m, qkv_config *out)
{
    if (!m || !out) return qkv__fail(QKV_USAGE, "config: a model and a place for its configuration are needed");
    return QKV__WRITE_OPTIONS(out, ngrams, &m->transformer->o, "config");
}

const qkv_config *qkv__model_config(const qkv_model *m) { return m ? &m->transformer->o : NULL; }

const qkv__transformer *qkv__model_transformer(const qkv_model *m) { return m ? m->transformer : NULL; }

const char *qkv__model_folder(const qkv_model *m) { return m->origin; }

const qkv__sentence *qkv__model_sentence(const qkv_model *m) { return &m->sentence; }

const qkv__model_info *qkv__model_get_info(const qkv_model *m) { return m ? &m->info : NULL; }

const qkv_model_info *qkv_model_get_info(const qkv_model *m) { return m ? &m->shown : NULL; }

qkv_status qkv_model_set_length_penalty(qkv_model *m, float alpha)
{
    if (!m || !(m->info.can & QKV_CAN_TRANSLATE))
        return qkv__fail(QKV_USAGE, "length penalty: a model with an encoder and a decoder is needed");
    if (!(alpha >= 0 && alpha < QKV__LENGTH_PENALTY_END))
        return qkv__fail(QKV_USAGE, "length penalty: %g: expected a number of at least 0 and below %d", (double)alpha,
                         QKV__LENGTH_PENALTY_END);
    m->info.length_penalty = 0;
    if (alpha != qkv__length_penalty_of(&m->info)) m->info.length_penalty = alpha;
    return QKV_OK;
}

void qkv__model_set_sentences(qkv_model *m, int64_t n)
{
    if (!qkv__info_is_published(&m->info)) m->info.sentences = n;
    show_info(m);
}

bool qkv__is_language_code(const char *code)
{
    const size_t language = strspn(code, "abcdefghijklmnopqrstuvwxyz");
    const char *rest = code + language;
    if (language < 2 || language > 3) return false;
    if (!*rest) return true;
    if (*rest != '-' && *rest != '_') return false;
    size_t n = strspn(++rest, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789");
    return n >= 2 && n <= 8 && !rest[n];
}

void qkv__model_set_languages(qkv_model *m, const char *source, const char *target)
{
    if (qkv__info_is_published(&m->info)) return;
    snprintf(m->info.source_language, sizeof m->info.source_language, "%s", source);
    snprintf(m->info.target_language, sizeof m->info.target_language, "%s", target);
    show_info(m);
}

/* ---- tokenizers ---- */

static qkv_status check_vocabulary_size(const char *which, const qkv_tokenizer *t, int64_t vocabulary)
{
    if (qkv_tokenizer_vocab_size(t) <= vocabulary) return QKV_OK;
    return qkv__fail(QKV_USAGE, "the %s has %d tokens, but the model's vocabulary %lld", which, qkv_tokenizer_vocab_size(t),
                     (long long)vocabulary);
}

qkv_status qkv_model_set_tokenizers(qkv_model *m, qkv_tokenizer *source, qkv_tokenizer *target)
{
    const qkv_config *o = m ? &m->transformer->o : NULL;
    if (!o || !source || m->is_touched)
        return qkv__fail(QKV_USAGE, "a model, which is not another with changes, and a tokenizer are needed");
    if (!target && o->target_vocab_size)
        return qkv__fail(QKV_USAGE, "a model with two vocabularies needs a tokenizer for each");
    qkv_status status = check_vocabulary_size("tokenizer", source, o->vocab_size);
    if (!status && target)
        status = check_vocabulary_size("target's tokenizer", target,
                                       o->target_vocab_size ? o->target_vocab_size : o->vocab_size);
    if (status) return status;
    qkv_tokenizer_free(m->tokenizer);
    qkv_tokenizer_free(m->target_tokenizer);
    m->tokenizer = source;
    m->target_tokenizer = target;
    return QKV_OK;
}

const qkv_tokenizer *qkv_model_tokenizer(const qkv_model *m, qkv_side side)
{
    if (!m || (unsigned)side > QKV_SIDE_TARGET) return NULL;
    return side == QKV_SIDE_TARGET && m->target_tokenizer ? m->target_tokenizer : m->tokenizer;
}

/* ---- labels ---- */

qkv_status qkv_model_set_labels(qkv_model *m, const char *const *names, int64_t n, qkv_problem problem, const char *separator)
{
    int64_t classes = m ? m->transformer->o.classes : 0;
    if (!m || n < 0 || (n && !names) || m->is_touched)
        return qkv__fail(QKV_USAGE, "a model, which is not another with changes, and names are needed");
    if (!classes || (n && n != classes))
        return qkv__fail(QKV_USAGE, "%lld labels for a model of %lld classes", (long long)n, (long long)classes);
    if ((unsigned)problem > QKV_PROBLEM_REGRESSION || (problem == QKV_PROBLEM_REGRESSION && classes > 1))
        return qkv__fail(QKV_USAGE, "a classifier is needed, and for numbers one with a single output");
    if (separator && strlen(separator) >= sizeof m->info.label_separator)
        return qkv__fail(QKV_USAGE, "a label's separator has at most %zu bytes", sizeof m->info.label_separator - 1);
    for (int64_t i = 0; i < n; i++)
        if (!names[i] || !*names[i] || strpbrk(names[i], "\t\r\n") ||
            qkv_utf8_valid(names[i], strlen(names[i])) < strlen(names[i]))
            return qkv__fail(QKV_USAGE, "label %lld is empty, not UTF-8, or has a TAB or newline", (long long)i);
    qkv_status status = qkv__labels_copy(&m->labels, names, n);
    if (status) return status;
    m->info.problem = problem;
    strcpy(m->info.label_separator, separator ? separator : "");
    show_info(m);
    return QKV_OK;
}

const char *qkv_model_label(const qkv_model *m, int64_t i)
{
    return m && i >= 0 && i < m->labels.n ? m->labels.names[i] : NULL;
}

/* ---- the folder ---- */

typedef struct folder {
    char config[4096], weights[4096], tokenizer[4096], target_tokenizer[4096];
} folder;

static qkv_status model_file(const char *path, const char *name, char out[4096])
{
    int n = snprintf(out, 4096, "%s/%s", path, name);
    return n < 4096 ? QKV_OK : qkv__fail(QKV_LIMIT, "%.60s...: the path is longer than 4096 bytes", path);
}

static qkv_status name_files(const char *path, folder *out)
{
    if (!path || !*path) return qkv__fail(QKV_USAGE, "model: a folder is needed");
    qkv_status status = model_file(path, "config.json", out->config);
    if (!status) status = model_file(path, "model.safetensors", out->weights);
    if (!status) status = model_file(path, "tokenizer.json", out->tokenizer);
    return status ? status : model_file(path, "target_tokenizer.json", out->target_tokenizer);
}

/* What does not fit a file is the file's fault here. */
static qkv_status blame(const char *file)
{
    char reason[512];
    if (qkv_error_status() != QKV_USAGE) return qkv_error_status();
    snprintf(reason, sizeof reason, "%s", qkv_error());
    return qkv__fail(QKV_FORMAT, "%s: %s", file, reason);
}

/* OPUS-MT's SentencePiece files, a pair, have the ids of their vocab.json. */
static bool is_misnumbered(const qkv_model *m, const qkv_tokenizer *source, const qkv_tokenizer *target)
{
    return m->family && m->family->renumbers_pieces && !target && source->pipeline && source->pipeline->is_spm;
}

/* A model of ours with one vocabulary has one tokenizer, whatever an older model has left in the folder. */
static qkv_status load_tokenizers(qkv_model *m, const char *path)
{
    qkv_tokenizer *source, *target;
    qkv_status status = qkv_tokenizers_load(path, &source, &target);
    if (status || !source) return status;
    if (is_misnumbered(m, source, target)) {
        qkv_tokenizer_free(source);
        return qkv__fail(QKV_UNSUPPORTED, "%s: a %s model does not have the ids of its SentencePiece file: add tokenizer.json",
                         path, m->family->type);
    }
    if (!m->family && !m->transformer->o.target_vocab_size) {
        qkv_tokenizer_free(target);
        target = NULL;
    }
    if (!qkv_model_set_tokenizers(m, source, target)) return QKV_OK;
    status = blame(path);
    qkv_tokenizer_free(source);
    qkv_tokenizer_free(target);
    return status;
}

/* What a folder has been found to hold, on the way to a model. */
typedef struct loading {
    folder f;
    qkv__json_doc config;
    qkv__published published;
    qkv__weights weights;
    const qkv__family *family; /* NULL: ours */
    qkv_config opts;
    qkv__labels labels;
    qkv__model_info info;
    qkv__sentence sentence;
    qkv__config_extras extras; /* of our config.json */
    int bits, wanted;          /* of matrices in 8 or 4 bits: as they are stored, and as they are to be, 16 too; 0: not */
    bool in_memory;            /* files are read, not mapped */
} loading;

static void free_loading(loading *l)
{
    qkv__weights_close(&l->weights);
    qkv__labels_free(&l->labels);
    qkv__model_info_free(&l->info);
    qkv__sentence_free(&l->sentence);
    qkv__release(l->published.is_read, qkv__json_size(l->config.top));
    qkv__json_free(&l->config);
}

static qkv_status find_family(loading *l)
{
    const char *path = l->f.config;
    if (!qkv__json_is_object(l->published.config)) return qkv__fail(QKV_FORMAT, "%s: expected a JSON object", path);
    const char *type = qkv__model_type(l->published.config);
    if (!type) return qkv__fail(QKV_FORMAT, "%s: key \"model_type\" is missing or not text", path);
    l->family = qkv__family_find(type);
    if (l->family && l->family->variant) l->family = l->family->variant(&l->published, NULL);
    if (l->family || !strcmp(type, QKV__OWN_TYPE)) return QKV_OK;
    return qkv__fail(QKV_UNSUPPORTED, "%s: unsupported architecture \"%.60s\": supported are %s", path, type,
                     qkv__family_names());
}

static qkv_status read_options(loading *l)
{
    if (!l->family) return qkv__config_read(l->f.config, l->published.config, &l->opts, &l->labels, &l->extras);
    if (!(l->published.is_read = qkv__alloc_zero(qkv__json_size(l->config.top)))) return QKV_MEMORY;
    qkv_status status = qkv__family_read(l->family, &l->published, &l->opts);
    return status ? status : qkv__labels_read(&l->published, &l->opts, &l->labels);
}

/* What has lost its digits once is not brought into other bits. */
static qkv_status read_bits(loading *l)
{
    qkv__value(&l->published, "quantization_config");
    qkv_status status = qkv__quantization_read(l->f.config, l->published.config, &l->bits);
    if (status || !l->bits || !l->wanted || l->wanted == l->bits) return status;
    return qkv__fail(QKV_UNSUPPORTED, "%s: the weights are kept in %d bits already: take the model that they were made of",
                     l->f.config, l->bits);
}

/* Each layer is a tensor at least: no more are made than the files can fill. */
static qkv_status check_layers(const loading *l)
{
    int layers = l->opts.encoder_layers + l->opts.decoder_layers;
    if (layers <= l->weights.n) return QKV_OK;
    return qkv__fail(QKV_FORMAT, "%s: %d layers, but %s has only %d tensors", l->f.config, layers, l->weights.path,
                     l->weights.n);
}

static qkv_status read_folder(const char *path, loading *l)
{
    qkv_status status = name_files(path, &l->f);
    if (!status && qkv__json_load(l->f.config, QKV__CONFIG_MAX, &l->config))
        status = qkv_error_status() == QKV_IO ? qkv__explain_no_folder(path) : qkv_error_status();
    l->published.config = l->config.top;
    if (!status) status = find_family(l);
    if (!status) status = qkv__weights_open(path, l->in_memory, &l->weights);
    l->published.path = l->f.config;
    l->published.weights = &l->weights;
    if (!status) status = read_options(l);
    if (!status) status = read_bits(l);
    if (!status) status = check_layers(l);
    if (status) return status;
    l->info = qkv__model_info_of(&l->opts);
    l->info.files = l->weights.n_files;
    l->info.bytes = (int64_t)l->weights.bytes;
    l->info.length_penalty = l->extras.length_penalty;
    l->info.sentences = l->extras.sentences;
    strcpy(l->info.source_language, l->extras.source_language);
    strcpy(l->info.target_language, l->extras.target_language);
    l->info.bits = l->wanted && l->wanted < 16 ? l->wanted : l->bits;
    if (l->opts.classes && l->opts.classes_of == QKV_CLASSES_OF_TEXTS)
        status = qkv__problem_read(&l->published, l->opts.classes, &l->info);
    if (status) return status;
    if (!l->family) return QKV_OK;
    status = qkv__model_info_read(l->family, &l->published, path, &l->opts, &l->info, &l->sentence);
    return status ? status : qkv__family_check_keys(l->family, &l->published);
}

static int64_t head_width(const qkv_model *m)
{
    const qkv_config *o = &m->transformer->o;
    return o->d_k ? o->d_k : o->dim / o->heads;
}

/* The weights have no memory until the files are found to fit. */
static qkv_status make_of(qkv_model *m, loading *l, const char *path)
{
    if (!(m->origin = qkv__copy_text(path)) || !(m->params = qkv__params_plan())) return qkv_error_status();
    m->transformer = qkv__transformer_new(m->params, &l->opts);
    if (!m->transformer) return blame(l->f.config);
    qkv_status status = l->family ? qkv__read_divisors(&l->published, m->params, m->transformer) : QKV_OK;
    if (!status) status = qkv__bind(m->params, l->family, &l->weights, head_width(m), l->bits, l->wanted);
    if (status) return status;
    m->family = l->family;
    m->labels = l->labels;
    m->info = l->info;
    m->info.parameters = qkv_params_count(m->params);
    show_info(m);
    m->sentence = l->sentence;
    l->labels = (qkv__labels){ 0 };
    l->info = (qkv__model_info){ 0 };
    l->sentence = (qkv__sentence){ 0 };
    return load_tokenizers(m, path);
}

qkv_model *qkv_model_load(const char *path, const qkv_load_opts *given)
{
    qkv_load_opts own, *o = &own;
    if (QKV__READ_OPTIONS(o, in_memory, given, "model")) return NULL;
    if ((unsigned)o->dtype > QKV_DTYPE_F32) return qkv__fail(QKV_USAGE, "model: there are no such weights"), NULL;
    static const int bits[] = { [QKV_DTYPE_INT8] = 8, [QKV_DTYPE_INT4] = 4, [QKV_DTYPE_BF16] = 16, [QKV_DTYPE_F32] = 0 };
    loading l = { .wanted = bits[o->dtype], .in_memory = o->in_memory };
    qkv_model *m = read_folder(path, &l) ? NULL : qkv__alloc_zero(sizeof *m);
    if (m && (make_of(m, &l, path) || (o->dtype == QKV_DTYPE_F32 && qkv__params_materialize(m->params)))) {
        qkv_model_free(m);
        m = NULL;
    }
    free_loading(&l);
    return m;
}

qkv_status qkv_model_check_files(const qkv_model *m)
{
    return m ? qkv__bind_check(m->params, false) : qkv__fail(QKV_USAGE, "model: there is none to check");
}

/* ---- saving ---- */

/* What the folder that m came from says of its tokenizers, unless it is the one to save to. Tokenizers that cannot be written
 * anew are the files that they were. */
static qkv_status read_tokenizer_files(const qkv_model *m, const char *path, bool as_files, qkv__tokenizer_files *out)
{
    if (!m->tokenizer || !m->origin || !strcmp(m->origin, path)) return QKV_OK;
    return qkv__tokenizer_files_read(m->origin, as_files, out);
}

static bool is_json(const qkv_tokenizer *t) { return !t || qkv__tokenizer_is_json(t); }

static qkv_status save_tokenizers(const qkv_model *m, const folder *f)
{
    qkv_status status = m->tokenizer ? qkv_tokenizer_save(m->tokenizer, f->tokenizer) : QKV_OK;
    return status || !m->target_tokenizer ? status : qkv_tokenizer_save(m->target_tokenizer, f->target_tokenizer);
}

static bool is_finite(const qkv_tensor *w)
{
    float some[SOME];
    for (int64_t i = 0; i < w->count; i += SOME) {
        int64_t n = qkv__min(SOME, w->count - i);
        qkv__widen(w, i, n, some);
        if (!qkv__all_finite(n, some)) return false;
    }
    return true;
}

/* A model that lost its numbers must not take the place of one that has them. */
static qkv_status check_weights(const qkv_model *m, const char *path)
{
    qkv_status status = QKV_OK;
    for (int i = 0; i < qkv_params_size(m->params) && !status; i++) {
        if (!is_finite(qkv_params_at(m->params, i)))
            status = qkv__fail(QKV_NUMERIC, "%s: the model is not saved: a value of \"%s\" is not finite", path,
                               qkv_params_name(m->params, i));
    }
    return status;
}

/* Of an export (is_whole) all that other programs look for. */
static qkv_status save_as(const qkv_model *m, const char *path, const qkv__family *family, bool is_whole)
{
    folder f;
    const qkv_config *o = &m->transformer->o;
    qkv__tokenizer_files more = { 0 };
    bool as_files = !is_json(m->tokenizer) || !is_json(m->target_tokenizer);
    qkv_status status = name_files(path, &f);
    if (!status && m->transformer->divisors && !family)
        status = qkv__fail(QKV_UNSUPPORTED, "%s: a model with longrope is written as its own family alone", path);
    if (!status && qkv__sentence_is_more(&m->sentence) && !family)
        status = qkv__fail(QKV_UNSUPPORTED, "%s: a model of sentence-transformers is written as its own family alone", path);
    if (!status) status = check_weights(m, path);
    if (!status) status = read_tokenizer_files(m, path, as_files, &more);
    if (!status) status = qkv__folder_make(path);
    if (!status && !(as_files && m->origin)) status = save_tokenizers(m, &f);
    if (!status) status = qkv__tokenizer_files_write(&more, path);
    qkv__tokenizer_files_free(&more);
    if (!status) status = qkv__bind_save(m->params, family, head_width(m), f.weights);
    if (status) return status;
    if (family && o->encoder_layers && !o->decoder_layers) status = qkv__sentence_write(path, o->dim, &m->info, &m->sentence);
    if (!status && family && is_whole) status = qkv__export_folder(m, path);
    if (status) return status;
    if (family) return qkv__export_config(f.config, family, m, &m->labels);
    return qkv__config_write(f.config, o, &m->labels, &m->info, qkv__params_bits(m->params));
}

/* The model with a head that lets everything through, for words that were learned without one; NULL: as it is. */
static qkv_model *with_head(const qkv_model *m, const qkv__family *family)
{
    qkv_config o = m->transformer->o;
    bool has_words = !m->family && !o.decoder_layers && m->info.can & QKV_CAN_FILL;
    if (!has_words || o.head || !family || !family->head) return NULL;
    o.size = sizeof o;
    o.head = 1;
    qkv_model *made = family->missing(&o) ? NULL : qkv_model_adapt(m, &o, 0);
    if (made && qkv__open_head(made->transformer)) return made;
    qkv_model_free(made);
    return NULL;
}

/* A model of another shape that is there for the time of writing it: tokenizers and labels stay m's. */
static qkv_status save_made(const qkv_model *m, qkv_model *made, const char *path, const qkv__family *family)
{
    made->tokenizer = m->tokenizer;
    made->target_tokenizer = m->target_tokenizer;
    made->labels = m->labels;
    qkv_status status = save_as(made, path, family, true);
    made->tokenizer = made->target_tokenizer = NULL;
    made->labels = (qkv__labels){ 0 };
    qkv_model_free(made);
    return status;
}

/* Other programs look for words behind the head of their family. */
static qkv_status save_with_head(const qkv_model *m, const char *path, const qkv__family *family)
{
    qkv_model *made = with_head(m, family);
    return made ? save_made(m, made, path, family) : save_as(m, path, family, true);
}

static qkv_status save_folded(const qkv_model *m, const char *path, const qkv__family *family, const qkv_config *folded)
{
    qkv_model *made = qkv_model_adapt(m, folded, 0);
    qkv_status status = made ? QKV_OK : qkv_error_status();
    if (!status) status = qkv__fold_weights(&m->transformer->o, m->params, folded, made->params);
    if (!status) return save_made(m, made, path, family);
    qkv_model_free(made);
    return status;
}

/* Translations of ours begin with <s>, and config.json has no other word for it. */
static qkv_status check_start(const qkv_model *m)
{
    qkv__special_tokens f;
    const qkv_config *o = &m->transformer->o;
    if (m->family && o->classes && o->decoder_layers)
        return qkv__fail(QKV_UNSUPPORTED,
                         "the model cannot be saved as " QKV__OWN_TYPE ", whose classifiers read an encoder: save it as %s",
                         m->family->type);
    if (!m->family || !m->tokenizer || !(m->info.can & QKV_CAN_TRANSLATE)) return QKV_OK;
    qkv_status status = qkv__special_tokens_of(m, &f);
    if (status || (f.ids.start >= 0 && f.ids.start == qkv_tokenizer_id(f.target, QKV_SPECIAL_START))) return status;
    return qkv__fail(QKV_UNSUPPORTED,
                     "the model cannot be saved as " QKV__OWN_TYPE ", whose translations begin with " QKV_SPECIAL_START
                     ": save it as %s",
                     m->family->type);
}

qkv_status qkv_model_save(const qkv_model *m, const char *path, const char *type)
{
    if (!m) return qkv__fail(QKV_USAGE, "model: there is none to save");
    if (!type) return save_as(m, path, m->family, false);
    const qkv__family *family = qkv__family_find(type);
    if (!family && strcmp(type, QKV__OWN_TYPE))
        return qkv__fail(QKV_UNSUPPORTED, "there is no family \"%.60s\": there are %s", type, qkv__family_names());
    if (!family && check_start(m)) return qkv_error_status();
    if (family && family->variant) family = family->variant(NULL, &m->transformer->o);
    qkv_config folded;
    const qkv_config *o = &m->transformer->o;
    const char *problem = family ? family->missing(o) : NULL;
    if (problem && qkv__fold_options(family, o, &folded)) return save_folded(m, path, family, &folded);
    return problem ? qkv__refuse_export(m, type, problem) : save_with_head(m, path, family);
}
