/* family_positions.c: how the queries and keys of published decoders turn, and how far their layers see. */
#include "family.h"

#include "../base/memory.h"
#include "../nn/layer.h"

#include <math.h>
#include <string.h>

/* ---- rotary positions ---- */

static const qkv__config_key theta_key[] = { QKV__KEY("rope_theta", rope_base, OPTIONAL), { NULL, 0, 0, NULL, false } };
static const qkv__config_key linear_keys[] = { QKV__KEY("factor", rope_factor, NEEDED), { NULL, 0, 0, NULL, false } };
static const qkv__config_key llama3_keys[] = {
    QKV__KEY("factor", rope_factor, NEEDED),
    QKV__KEY("low_freq_factor", rope_low, NEEDED),
    QKV__KEY("high_freq_factor", rope_high, NEEDED),
    QKV__KEY("original_max_position_embeddings", rope_length, NEEDED),
    { NULL, 0, 0, NULL, false },
};
static const qkv__config_key yarn_keys[] = {
    QKV__KEY("factor", rope_factor, NEEDED),
    QKV__KEY("beta_slow", rope_low, OPTIONAL),
    QKV__KEY("beta_fast", rope_high, OPTIONAL),
    QKV__KEY("original_max_position_embeddings", rope_length, OPTIONAL),
    QKV__KEY("attention_factor", rope_scale, OPTIONAL),
    { NULL, 0, 0, NULL, false },
};

/* YaRN's factor of queries and keys, 0.1 m ln s + 1. */
static double yarn_factor(double s, double m) { return s <= 1 ? 1 : 0.1 * m * log(s) + 1; }

static qkv_status read_yarn(const qkv__published *p, const qkv__json_value *scaling, qkv_config *o)
{
    const qkv__json_value *one = qkv__json_get(scaling, "mscale"), *all = qkv__json_get(scaling, "mscale_all_dim");
    const qkv__json_value *longest = qkv__get(p, "max_position_embeddings");
    o->rope_scaling = QKV_ROPE_YARN;
    o->rope_low = 1;
    o->rope_high = 32;
    if (qkv__json_is_int(longest)) o->rope_length = qkv__json_int(longest);
    qkv_status status = qkv__keys_read(p->path, yarn_keys, scaling, o);
    if (status || o->rope_scale != 0) return status;
    if (qkv__json_type_of(qkv__json_get(scaling, "truncate")) == QKV__JSON_FALSE)
        return qkv__unsupported(p, "truncate", "true");
    double factor = (double)o->rope_factor, scale = yarn_factor(factor, 1);
    if (qkv__json_is_number(one) && qkv__json_is_number(all))
        scale = yarn_factor(factor, qkv__json_number(one)) / yarn_factor(factor, qkv__json_number(all));
    if (scale != 1) o->rope_scale = (float)scale;
    return QKV_OK;
}

/* ---- LongRoPE ---- */

static bool is_longrope(const char *kind) { return kind && (!strcmp(kind, "longrope") || !strcmp(kind, "su")); }

/* What depends on the length that the model was first trained on, which Phi-3 has outside. */
static qkv_status read_long(const qkv__published *p, const qkv__json_value *scaling, qkv_config *o)
{
    const qkv__json_value *first = qkv__get(p, "original_max_position_embeddings"),
                          *longest = qkv__get(p, "max_position_embeddings");
    const qkv__json_value *given = qkv__json_get(scaling, "attention_factor");
    if (!first) first = qkv__json_get(scaling, "original_max_position_embeddings");
    if (!qkv__json_is_int(first) || qkv__json_int(first) < 2)
        return qkv__fail(QKV_FORMAT, "%s: key \"original_max_position_embeddings\": expected a whole number, at least 2",
                         p->path);
    o->rope_scaling = QKV_ROPE_LONG;
    o->rope_length = qkv__json_int(first);
    double length = (double)o->rope_length, factor = qkv__json_number(longest) / length;
    double scale = qkv__json_is_number(given) ? qkv__json_number(given) : factor <= 1 ? 1 : sqrt(1 + log(factor) / log(length));
    if (scale != 1) o->rope_scale = (float)scale;
    return QKV_OK;
}

static bool read_list(const qkv__json_value *list, int64_t n, float *to)
{
    bool ok = qkv__json_is_array(list) && qkv__json_size(list) == (size_t)n;
    for (int64_t i = 0; ok && i < n; i++) {
        double value = qkv__json_number(qkv__json_at(list, (size_t)i));
        ok = value > 0 && value < (double)INFINITY;
        to[i] = (float)value;
    }
    return ok;
}

qkv_status qkv__read_divisors(const qkv__published *p, qkv_params *params, qkv__transformer *m)
{
    if (m->o.rope_scaling != QKV_ROPE_LONG) return QKV_OK;
    const qkv__json_value *newer = qkv__get(p, "rope_parameters"), *scaling = newer ? newer : qkv__get(p, "rope_scaling");
    int64_t n = qkv__rotary_pairs(&m->o);
    float *both = qkv__alloc(2 * sizeof *both * (size_t)n);
    if (!both) return QKV_MEMORY;
    qkv_status status = QKV_OK;
    if (!read_list(qkv__json_get(scaling, "short_factor"), n, both) ||
        !read_list(qkv__json_get(scaling, "long_factor"), n, both + n))
        status = qkv__fail(QKV_FORMAT, "%s: keys \"short_factor\" and \"long_factor\": expected %lld numbers above 0 in each",
                           p->path, (long long)n);
    if (!status && !qkv__set_divisors(params, m, both)) status = qkv_params_status(params);
    qkv__release(both, 2 * sizeof *both * (size_t)n);
    return status;
}

static void put_list(qkv__json_writer *w, const char *key, const float *values, int64_t n)
{
    qkv__json_open_array(w, key);
    for (int64_t i = 0; i < n; i++) qkv__json_put_real(w, NULL, (double)values[i], QKV__JSON_FLOAT);
    qkv__json_close(w);
}

void qkv__write_divisors(const qkv__transformer *m, qkv__json_writer *w)
{
    if (!m->divisors) return;
    int64_t n = qkv__rotary_pairs(&m->o);
    float scale = m->o.rope_scale == 0 ? 1 : m->o.rope_scale;
    qkv__json_open_object(w, "rope_scaling");
    qkv__json_put_text(w, "type", "longrope");
    put_list(w, "short_factor", m->divisors, n);
    put_list(w, "long_factor", m->divisors + n, n);
    qkv__json_put_real(w, "attention_factor", (double)scale, QKV__JSON_FLOAT);
    qkv__json_close(w);
    qkv__json_put_int(w, "original_max_position_embeddings", m->o.rope_length);
}

/* ---- all kinds ---- */

static qkv_status read_kind(const qkv__published *p, const char *key, const char *kind, const qkv__json_value *scaling,
                            qkv_config *o)
{
    qkv_status status = QKV_OK;
    if (is_longrope(kind)) return read_long(p, scaling, o);
    if (!strcmp(kind, "yarn")) status = read_yarn(p, scaling, o);
    else if (!strcmp(kind, "llama3")) status = qkv__keys_read(p->path, llama3_keys, scaling, o);
    else if (!strcmp(kind, "linear")) {
        o->rope_scaling = QKV_ROPE_LINEAR;
        status = qkv__keys_read(p->path, linear_keys, scaling, o);
    } else return qkv__unsupported(p, key, "one of the types default, linear, dynamic, yarn, longrope and llama3");
    if (!status && !(o->rope_factor >= 1))
        status = qkv__fail(QKV_FORMAT, "%s: key \"%s\": expected a factor of at least 1", p->path, key);
    return status;
}

qkv_status qkv__read_rotary(const qkv__published *p, const char *layers, qkv_config *o)
{
    const qkv__json_value *newer = qkv__get(p, "rope_parameters"), *scaling = newer ? newer : qkv__get(p, "rope_scaling");
    const char *key = newer ? "rope_parameters" : "rope_scaling";
    if (!scaling) return QKV_OK;
    if (layers && qkv__json_is_object(qkv__json_get(scaling, layers))) scaling = qkv__json_get(scaling, layers);
    if (!qkv__json_is_object(scaling)) return qkv__fail(QKV_FORMAT, "%s: key \"%s\": expected an object", p->path, key);
    const qkv__json_value *kind = qkv__json_get(scaling, "rope_type");
    const char *word = qkv__json_text(kind ? kind : qkv__json_get(scaling, "type"));
    qkv_status status = newer ? qkv__keys_read(p->path, theta_key, scaling, o) : QKV_OK;
    if (status || (newer && !word)) return status;
    /* Dynamic scaling begins behind max_position_embeddings, where a text has been refused. */
    if (word && (!strcmp(word, "default") || !strcmp(word, "dynamic"))) return QKV_OK;
    return read_kind(p, key, word ? word : "", scaling, o);
}

void qkv__write_rotary(const qkv_config *o, qkv__json_writer *w)
{
    static const struct {
        const char *word;
        const qkv__config_key *keys;
    } kinds[] = { [QKV_ROPE_LLAMA3] = { "llama3", llama3_keys },
                  [QKV_ROPE_LINEAR] = { "linear", linear_keys },
                  [QKV_ROPE_YARN] = { "yarn", yarn_keys } };
    if (o->rope_factor == 0) return;
    qkv_config own = *o;
    if (own.rope_scale == 0) own.rope_scale = 1; /* said, because what is missing is computed */
    qkv__json_open_object(w, "rope_scaling");
    qkv__json_put_text(w, "rope_type", kinds[o->rope_scaling].word);
    qkv__keys_write(kinds[o->rope_scaling].keys, &own, w);
    qkv__json_close(w);
}

qkv_status qkv__read_rotary_part(const qkv__published *p, const char *key, qkv_config *o)
{
    const qkv__json_value *part = qkv__get(p, key);
    if (!part) part = qkv__json_get(qkv__get(p, "rope_parameters"), key);
    int64_t width = o->d_k ? o->d_k : o->heads > 0 ? o->dim / o->heads : 0;
    if (!part || width < 1) return QKV_OK;
    double share = qkv__json_number(part);
    if (!(share > 0 && share <= 1))
        return qkv__fail(QKV_FORMAT, "%s: key \"%s\": expected a number above 0, at most 1", p->path, key);
    int64_t turned = (int64_t)((double)width * share);
    if (turned < 2 || turned % 2) return qkv__unsupported(p, key, "a part of an even number of a head's dimensions");
    o->rope_width = turned == width ? 0 : turned;
    return QKV_OK;
}

/* ---- windows ---- */

static const qkv__config_key window_key[] = { QKV__KEY("sliding_window", window_size, OPTIONAL), { NULL, 0, 0, NULL, false } };

static int window_layers(const qkv_config *o) { return o->decoder_layers ? o->decoder_layers : o->encoder_layers; }

static bool is_full(const qkv__json_value *types, int i)
{
    return !strcmp(qkv__json_text(qkv__json_at(types, (size_t)i)), "full_attention");
}

static bool has_words(const qkv__json_value *types, int layers)
{
    bool ok = qkv__json_is_array(types) && qkv__json_size(types) == (size_t)layers;
    for (int i = 0; ok && i < layers; i++) {
        const char *word = qkv__json_text(qkv__json_at(types, (size_t)i));
        ok = word && (!strcmp(word, "full_attention") || !strcmp(word, "sliding_attention"));
    }
    return ok;
}

/* The first layer from `i` on that sees everything, or does not; `layers` when there is none. */
static int next_layer(const qkv__json_value *types, int i, int layers, bool full)
{
    while (i < layers && is_full(types, i) != full) i++;
    return i;
}

static bool is_said_already(const qkv__json_value *types, int layers, const qkv_config *o)
{
    for (int i = 0; i < layers; i++)
        if (is_full(types, i) == qkv__has_window(o, i)) return false;
    return true;
}

/* "layer_types" says it layer by layer: all see a window but the first ones, or but one in every so many. */
qkv_status qkv__read_layer_types(const qkv__published *p, qkv_config *o)
{
    const qkv__json_value *types = qkv__get(p, "layer_types");
    int layers = window_layers(o);
    if (!o->window_size || !types || layers < 1) return QKV_OK;
    if (!has_words(types, layers))
        return qkv__fail(QKV_FORMAT, "%s: key \"layer_types\": expected %d words, full_attention or sliding_attention", p->path,
                         layers);
    if (is_said_already(types, layers, o)) return QKV_OK;
    int first = next_layer(types, 0, layers, true), second = next_layer(types, first + 1, layers, true);
    int local = next_layer(types, 0, layers, false);
    o->window_from_layer = o->global_every = o->global_at = 0;
    if (local == layers) o->window_size = 0;
    if (next_layer(types, local, layers, true) == layers) return o->window_from_layer = local % layers, QKV_OK;
    o->global_every = second < layers ? second - first : layers;
    o->global_at = first;
    for (int i = 0; i < layers; i++)
        if (is_full(types, i) != (i % o->global_every == first))
            return qkv__unsupported(p, "layer_types", "full attention in the first layers, or in one of every so many");
    return QKV_OK;
}

qkv_status qkv__read_window(const qkv__published *p, qkv_config *o)
{
    qkv_status status = qkv__read_keys(p, window_key, o);
    if (qkv__json_is_null(qkv__value(p, "sliding_window"))) o->window_size = 0;
    return status ? status : qkv__read_layer_types(p, o);
}

void qkv__write_layer_types(const qkv_config *o, qkv__json_writer *w)
{
    qkv__json_open_array(w, "layer_types");
    for (int i = 0; i < window_layers(o); i++)
        qkv__json_put_text(w, NULL, qkv__has_window(o, i) ? "sliding_attention" : "full_attention");
    qkv__json_close(w);
}

void qkv__put_window(const qkv_config *o, qkv__json_writer *w)
{
    if (o->window_size) qkv__json_put_int(w, "sliding_window", o->window_size);
    else qkv__json_put_null(w, "sliding_window");
}

void qkv__write_window(const qkv_config *o, qkv__json_writer *w)
{
    qkv__write_layer_types(o, w);
    qkv__put_window(o, w);
}
