/* family_positions.c: how the queries and keys of published decoders turn, and how far their layers see. */
#include "family.h"

#include "../base/memory.h"
#include "../nn/layer.h"

#include <math.h>
#include <string.h>

/* ---- rotary positions ---- */

static const qkv__config_key theta_key[] = { QKV__KEY("rope_theta", rotary_base, OPTIONAL), { NULL, 0, 0, NULL, false } };
static const qkv__config_key linear_keys[] = { QKV__KEY("factor", rotary_factor, NEEDED), { NULL, 0, 0, NULL, false } };
static const qkv__config_key llama3_keys[] = {
    QKV__KEY("factor", rotary_factor, NEEDED),
    QKV__KEY("low_freq_factor", rotary_low, NEEDED),
    QKV__KEY("high_freq_factor", rotary_high, NEEDED),
    QKV__KEY("original_max_position_embeddings", rotary_length, NEEDED),
    { NULL, 0, 0, NULL, false },
};
static const qkv__config_key yarn_keys[] = {
    QKV__KEY("factor", rotary_factor, NEEDED),
    QKV__KEY("beta_slow", rotary_low, OPTIONAL),
    QKV__KEY("beta_fast", rotary_high, OPTIONAL),
    QKV__KEY("original_max_position_embeddings", rotary_length, OPTIONAL),
    QKV__KEY("attention_factor", rotary_scale, OPTIONAL),
    { NULL, 0, 0, NULL, false },
};

/* YaRN's factor of queries and keys, 0.1 m ln s + 1. */
static double yarn_factor(double s, double m) { return s <= 1 ? 1 : 0.1 * m * log(s) + 1; }

static qkv_status read_yarn(const qkv__published *p, const json_t *scaling, qkv_transformer_opts *o)
{
    const json_t *one = json_object_get(scaling, "mscale"), *all = json_object_get(scaling, "mscale_all_dim");
    const json_t *longest = qkv__get(p, "max_position_embeddings");
    o->rotary_scaling = QKV_ROTARY_YARN;
    o->rotary_low = 1;
    o->rotary_high = 32;
    if (json_is_integer(longest)) o->rotary_length = json_integer_value(longest);
    qkv_status status = qkv__keys_read(p->path, yarn_keys, scaling, o);
    if (status || o->rotary_scale != 0) return status;
    if (json_is_false(json_object_get(scaling, "truncate"))) return qkv__unsupported(p, "truncate", "true");
    double factor = (double)o->rotary_factor, scale = yarn_factor(factor, 1);
    if (json_is_number(one) && json_is_number(all))
        scale = yarn_factor(factor, json_number_value(one)) / yarn_factor(factor, json_number_value(all));
    if (scale != 1) o->rotary_scale = (float)scale;
    return QKV_OK;
}

/* ---- LongRoPE ---- */

static bool is_longrope(const char *kind) { return kind && (!strcmp(kind, "longrope") || !strcmp(kind, "su")); }

/* What depends on the length that the model was first trained on, which Phi-3 has outside. */
static qkv_status read_long(const qkv__published *p, const json_t *scaling, qkv_transformer_opts *o)
{
    const json_t *first = qkv__get(p, "original_max_position_embeddings"), *longest = qkv__get(p, "max_position_embeddings");
    const json_t *given = json_object_get(scaling, "attention_factor");
    if (!first) first = json_object_get(scaling, "original_max_position_embeddings");
    if (!json_is_integer(first) || json_integer_value(first) < 2)
        return qkv__fail(QKV_FORMAT, "%s: key \"original_max_position_embeddings\": expected a whole number, at least 2",
                         p->path);
    o->rotary_scaling = QKV_ROTARY_LONG;
    o->rotary_length = json_integer_value(first);
    double length = (double)o->rotary_length, factor = json_number_value(longest) / length;
    double scale = json_is_number(given) ? json_number_value(given) : factor <= 1 ? 1 : sqrt(1 + log(factor) / log(length));
    if (scale != 1) o->rotary_scale = (float)scale;
    return QKV_OK;
}

static bool read_list(const json_t *list, int64_t n, float *to)
{
    bool ok = json_is_array(list) && json_array_size(list) == (size_t)n;
    for (int64_t i = 0; ok && i < n; i++) {
        double value = json_number_value(json_array_get(list, (size_t)i));
        ok = value > 0 && value < (double)INFINITY;
        to[i] = (float)value;
    }
    return ok;
}

qkv_status qkv__read_divisors(const qkv__published *p, qkv_params *params, qkv_transformer *m)
{
    if (m->o.rotary_scaling != QKV_ROTARY_LONG) return QKV_OK;
    const json_t *newer = qkv__get(p, "rope_parameters"), *scaling = newer ? newer : qkv__get(p, "rope_scaling");
    int64_t n = qkv__rotary_pairs(&m->o);
    float *both = qkv__alloc(2 * sizeof *both * (size_t)n);
    if (!both) return QKV_MEMORY;
    qkv_status status = QKV_OK;
    if (!read_list(json_object_get(scaling, "short_factor"), n, both) ||
        !read_list(json_object_get(scaling, "long_factor"), n, both + n))
        status = qkv__fail(QKV_FORMAT, "%s: keys \"short_factor\" and \"long_factor\": expected %lld numbers above 0 in each",
                           p->path, (long long)n);
    if (!status && !qkv__set_divisors(params, m, both)) status = qkv_params_status(params);
    qkv__release(both, 2 * sizeof *both * (size_t)n);
    return status;
}

static json_t *list_of(const float *values, int64_t n)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < n; i++) json_array_append_new(list, json_real((double)values[i]));
    return list;
}

bool qkv__write_divisors(const qkv_transformer *m, json_t *config)
{
    if (!m->divisors) return true;
    int64_t n = qkv__rotary_pairs(&m->o);
    double scale = m->o.rotary_scale == 0 ? 1 : (double)m->o.rotary_scale;
    json_t *scaling = json_pack("{s:s, s:o, s:o, s:f}", "type", "longrope", "short_factor", list_of(m->divisors, n),
                                "long_factor", list_of(m->divisors + n, n), "attention_factor", scale);
    return scaling && !json_object_set_new(config, "rope_scaling", scaling) &&
           !json_object_set_new(config, "original_max_position_embeddings", json_integer(m->o.rotary_length));
}

/* ---- all kinds ---- */

static qkv_status read_kind(const qkv__published *p, const char *key, const char *kind, const json_t *scaling,
                            qkv_transformer_opts *o)
{
    qkv_status status = QKV_OK;
    if (is_longrope(kind)) return read_long(p, scaling, o);
    if (!strcmp(kind, "yarn")) status = read_yarn(p, scaling, o);
    else if (!strcmp(kind, "llama3")) status = qkv__keys_read(p->path, llama3_keys, scaling, o);
    else if (!strcmp(kind, "linear")) {
        o->rotary_scaling = QKV_ROTARY_LINEAR;
        status = qkv__keys_read(p->path, linear_keys, scaling, o);
    } else return qkv__unsupported(p, key, "one of the types default, linear, dynamic, yarn, longrope and llama3");
    if (!status && !(o->rotary_factor >= 1))
        status = qkv__fail(QKV_FORMAT, "%s: key \"%s\": expected a factor of at least 1", p->path, key);
    return status;
}

qkv_status qkv__read_rotary(const qkv__published *p, const char *layers, qkv_transformer_opts *o)
{
    const json_t *newer = qkv__get(p, "rope_parameters"), *scaling = newer ? newer : qkv__get(p, "rope_scaling");
    const char *key = newer ? "rope_parameters" : "rope_scaling";
    if (!scaling) return QKV_OK;
    if (layers && json_is_object(json_object_get(scaling, layers))) scaling = json_object_get(scaling, layers);
    if (!json_is_object(scaling)) return qkv__fail(QKV_FORMAT, "%s: key \"%s\": expected an object", p->path, key);
    const json_t *kind = json_object_get(scaling, "rope_type");
    const char *word = json_string_value(kind ? kind : json_object_get(scaling, "type"));
    qkv_status status = newer ? qkv__keys_read(p->path, theta_key, scaling, o) : QKV_OK;
    if (status || (newer && !word)) return status;
    /* Dynamic scaling begins behind max_position_embeddings, where a text has been refused. */
    if (word && (!strcmp(word, "default") || !strcmp(word, "dynamic"))) return QKV_OK;
    return read_kind(p, key, word ? word : "", scaling, o);
}

bool qkv__write_rotary(const qkv_transformer_opts *o, json_t *config)
{
    static const struct {
        const char *word;
        const qkv__config_key *keys;
    } kinds[] = { [QKV_ROTARY_LLAMA3] = { "llama3", llama3_keys },
                  [QKV_ROTARY_LINEAR] = { "linear", linear_keys },
                  [QKV_ROTARY_YARN] = { "yarn", yarn_keys } };
    if (o->rotary_factor == 0) return true;
    qkv_transformer_opts own = *o;
    if (own.rotary_scale == 0) own.rotary_scale = 1; /* said, because what is missing is computed */
    json_t *scaling = json_pack("{s:s}", "rope_type", kinds[o->rotary_scaling].word);
    bool ok = scaling && qkv__keys_write(kinds[o->rotary_scaling].keys, &own, scaling) &&
              !json_object_set(config, "rope_scaling", scaling);
    json_decref(scaling);
    return ok;
}

qkv_status qkv__read_rotary_part(const qkv__published *p, const char *key, qkv_transformer_opts *o)
{
    const json_t *part = qkv__get(p, key);
    if (!part) part = json_object_get(qkv__get(p, "rope_parameters"), key);
    int64_t width = o->d_k ? o->d_k : o->heads > 0 ? o->dim / o->heads : 0;
    if (!part || width < 1) return QKV_OK;
    double share = json_number_value(part);
    if (!(share > 0 && share <= 1))
        return qkv__fail(QKV_FORMAT, "%s: key \"%s\": expected a number above 0, at most 1", p->path, key);
    int64_t turned = (int64_t)((double)width * share);
    if (turned < 2 || turned % 2) return qkv__unsupported(p, key, "a part of an even number of a head's dimensions");
    o->rotary_width = turned == width ? 0 : turned;
    return QKV_OK;
}

/* ---- windows ---- */

static const qkv__config_key window_key[] = { QKV__KEY("sliding_window", window, OPTIONAL), { NULL, 0, 0, NULL, false } };

static int window_layers(const qkv_transformer_opts *o) { return o->decoder_layers ? o->decoder_layers : o->encoder_layers; }

static bool is_full(const json_t *types, int i)
{
    return !strcmp(json_string_value(json_array_get(types, (size_t)i)), "full_attention");
}

static bool has_words(const json_t *types, int layers)
{
    bool ok = json_is_array(types) && json_array_size(types) == (size_t)layers;
    for (int i = 0; ok && i < layers; i++) {
        const char *word = json_string_value(json_array_get(types, (size_t)i));
        ok = word && (!strcmp(word, "full_attention") || !strcmp(word, "sliding_attention"));
    }
    return ok;
}

/* The first layer from `i` on that sees everything, or does not; `layers` when there is none. */
static int next_layer(const json_t *types, int i, int layers, bool full)
{
    while (i < layers && is_full(types, i) != full) i++;
    return i;
}

static bool is_said_already(const json_t *types, int layers, const qkv_transformer_opts *o)
{
    for (int i = 0; i < layers; i++)
        if (is_full(types, i) == qkv__has_window(o, i)) return false;
    return true;
}

/* "layer_types" says it layer by layer: all see a window but the first ones, or but one in every so many. */
qkv_status qkv__read_layer_types(const qkv__published *p, qkv_transformer_opts *o)
{
    const json_t *types = qkv__get(p, "layer_types");
    int layers = window_layers(o);
    if (!o->window || !types || layers < 1) return QKV_OK;
    if (!has_words(types, layers))
        return qkv__fail(QKV_FORMAT, "%s: key \"layer_types\": expected %d words, full_attention or sliding_attention", p->path,
                         layers);
    if (is_said_already(types, layers, o)) return QKV_OK;
    int first = next_layer(types, 0, layers, true), second = next_layer(types, first + 1, layers, true);
    int local = next_layer(types, 0, layers, false);
    o->window_from = o->full_every = o->full_at = 0;
    if (local == layers) o->window = 0;
    if (next_layer(types, local, layers, true) == layers) return o->window_from = local % layers, QKV_OK;
    o->full_every = second < layers ? second - first : layers;
    o->full_at = first;
    for (int i = 0; i < layers; i++)
        if (is_full(types, i) != (i % o->full_every == first))
            return qkv__unsupported(p, "layer_types", "full attention in the first layers, or in one of every so many");
    return QKV_OK;
}

qkv_status qkv__read_window(const qkv__published *p, qkv_transformer_opts *o)
{
    qkv_status status = qkv__read_keys(p, window_key, o);
    if (json_is_null(qkv__value(p, "sliding_window"))) o->window = 0;
    return status ? status : qkv__read_layer_types(p, o);
}

bool qkv__write_layer_types(const qkv_transformer_opts *o, json_t *config)
{
    json_t *types = json_array();
    bool ok = types != NULL;
    for (int i = 0; ok && i < window_layers(o); i++)
        ok = !json_array_append_new(types, json_string(qkv__has_window(o, i) ? "sliding_attention" : "full_attention"));
    ok = ok && !json_object_set(config, "layer_types", types);
    json_decref(types);
    return ok;
}

bool qkv__write_window(const qkv_transformer_opts *o, json_t *config)
{
    return qkv__write_layer_types(o, config) &&
           !json_object_set_new(config, "sliding_window", o->window ? json_integer(o->window) : json_null());
}
