/* model_info.c: what is known of a model in a folder. */
#include "model_info.h"

#include "options.h"
#include "streams.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- tokenizers ---- */

/* The files that the folder's tokenizer is read from, in the order that the library looks for them. */
static const char *tokenizer_files(const char *folder)
{
    static const char *const files[][2] = {
        { "tokenizer.json", "tokenizer.json" },        { "source.spm", "source.spm, target.spm and vocab.json" },
        { "vocab.json", "vocab.json and merges.txt" }, { "vocab.txt", "vocab.txt" },
        { "tokenizer.model", "tokenizer.model" },      { "spiece.model", "spiece.model" }
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder, files[i][0]);
        if (!access(path, F_OK)) return files[i][1];
    }
    return "*.model";
}

static const char *tokenizer_kind(const qkv_tokenizer *t)
{
    static const char *const kinds[] = { "byte pairs", "words", "characters",
                                         "published" }; /* in the order of qkv_token_kind */
    return kinds[qkv_tokenizer_kind(t)];
}

/* ---- what it can do ---- */

static const struct {
    int ability;
    const char *command;
} abilities[] = { { QKV_ABILITY_TRANSLATE, "translate" },
                  { QKV_ABILITY_GENERATE, "generate" },
                  { QKV_ABILITY_FILL, "fill" },
                  { QKV_ABILITY_CLASSIFY, "classify" },
                  { QKV_ABILITY_EMBED, "embed" } };
enum { ABILITIES = sizeof abilities / sizeof *abilities };

/* ---- as lines ---- */

static void print_whole(const char *name, int64_t n)
{
    if (n) printf("%-15s %lld\n", name, (long long)n);
}

static void print_layers(const qkv_transformer_opts *o)
{
    printf("%-15s ", "layers");
    if (o->encoder_layers) printf("%d of the encoder%s", o->encoder_layers, o->decoder_layers ? ", " : "\n");
    if (o->decoder_layers) printf("%d of the decoder\n", o->decoder_layers);
}

static void print_heads(const qkv_transformer_opts *o)
{
    printf("%-15s %lld", "heads", (long long)o->heads);
    if (o->kv_heads && o->kv_heads != o->heads) printf(", %lld of keys and values", (long long)o->kv_heads);
    putchar('\n');
}

static void print_tokenizer(const char *folder, const qkv_model *m)
{
    const qkv_tokenizer *source = qkv_model_source_tokenizer(m), *target = qkv_model_target_tokenizer(m);
    printf("%-15s ", "tokenizer");
    if (!source) {
        puts("none");
        return;
    }
    printf("%s, %d tokens", tokenizer_kind(source), qkv_tokenizer_size(source));
    if (target != source) printf(", and %d of the target", qkv_tokenizer_size(target));
    printf(", from %s\n", tokenizer_files(folder));
}

static void print_abilities(const qkv_model_info *f)
{
    bool is_first = true;
    printf("%-15s ", "can");
    for (int i = 0; i < ABILITIES; i++) {
        if (!(f->can & abilities[i].ability)) continue;
        printf("%s%s", is_first ? "" : ", ", abilities[i].command);
        is_first = false;
    }
    putchar('\n');
}

/* A model of ours says of this no more than its length penalty. */
static bool says_how_to_use(const qkv_model_info *f) { return strcmp(f->family, "qkv") != 0 || f->length_penalty != 0; }

/* How a model is to be used, as its files say. */
static void print_search(const qkv_model_info *f)
{
    printf("%-15s beam %d", "search", f->beam ? f->beam : 4);
    if (f->length_penalty != 0) printf(", length penalty %g", (double)f->length_penalty);
    if (f->max_length > 1) printf(", at most %lld tokens", (long long)f->max_length - 1);
}

static void print_sampling(const qkv_model *m)
{
    qkv_generate_opts o = QKV_OPTS(qkv_generate_opts);
    qkv_generate_defaults(m, &o);
    if (o.temperature > 0) printf("%-15s draws, temperature %g", "generation", (double)o.temperature);
    else printf("%-15s the likeliest token", "generation");
    if (o.temperature > 0 && o.top_k) printf(", top-k %d", o.top_k);
    if (o.temperature > 0 && o.top_p > 0) printf(", top-p %g", (double)o.top_p);
    if (o.temperature > 0 && o.min_p > 0) printf(", min-p %g", (double)o.min_p);
    if (o.repetition_penalty > 0) printf(", repetition penalty %g", (double)o.repetition_penalty);
    if (o.max_tokens) printf(", at most %lld new tokens", (long long)o.max_tokens);
}

static void print_generation_settings(const qkv_model *m)
{
    const qkv_model_info *f = qkv_model_info_of(m);
    if (!says_how_to_use(f) || !(f->can & (QKV_ABILITY_TRANSLATE | QKV_ABILITY_GENERATE))) return;
    if (f->can & QKV_ABILITY_TRANSLATE) print_search(f);
    else print_sampling(m);
    if (f->no_repeat) printf(", no run of %d tokens twice", f->no_repeat);
    putchar('\n');
}

static void print_labels(const qkv_model *m)
{
    if (!qkv_model_label(m, 0)) return;
    printf("%-15s ", "labels");
    for (int64_t i = 0; qkv_model_label(m, i); i++) printf("%s%s", i ? ", " : "", qkv_model_label(m, i));
    putchar('\n');
}

static void print_lines(const char *folder, const qkv_model *m)
{
    const qkv_model_info *f = qkv_model_info_of(m);
    const qkv_transformer_opts *o = qkv_transformer_options(qkv_model_transformer(m));
    printf("%-15s %s\n", "architecture", f->family);
    print_whole("parameters", qkv_params_count(qkv_model_params(m)));
    printf("%-15s %lld in %d file%s\n", "bytes", (long long)f->bytes, f->files, f->files == 1 ? "" : "s");
    print_layers(o);
    print_whole("dim", o->dim);
    print_heads(o);
    print_whole("vocabulary", o->vocabulary);
    print_whole("of the target", o->target_vocabulary);
    print_whole("context", f->context);
    print_tokenizer(folder, m);
    print_abilities(f);
    print_generation_settings(m);
    print_whole("classes", o->classes);
    print_labels(m);
}

/* ---- as JSON ---- */

static json_t *tokenizer_json(const char *folder, const qkv_model *m)
{
    const qkv_tokenizer *source = qkv_model_source_tokenizer(m), *target = qkv_model_target_tokenizer(m);
    if (!source) return json_null();
    return json_pack("{s:s, s:i, s:i, s:s}", "kind", tokenizer_kind(source), "tokens", qkv_tokenizer_size(source),
                     "target_tokens", qkv_tokenizer_size(target), "files", tokenizer_files(folder));
}

static json_t *abilities_json(const qkv_model_info *f)
{
    json_t *list = json_array();
    for (int i = 0; i < ABILITIES; i++)
        if (f->can & abilities[i].ability) json_array_append_new(list, json_string(abilities[i].command));
    return list;
}

/* What the files of a model say, and null for what they do not. */
static void put_info_number(json_t *to, const char *key, double value)
{
    json_object_set_new(to, key, value != 0 ? json_real(value) : json_null());
}

static void put_count(json_t *to, const char *key, int64_t value)
{
    json_object_set_new(to, key, value ? json_integer(value) : json_null());
}

static json_t *generation_json(const qkv_model *m)
{
    const qkv_model_info *f = qkv_model_info_of(m);
    json_t *to = json_object();
    if (!says_how_to_use(f)) return json_decref(to), json_null();
    json_object_set_new(to, "do_sample", json_boolean(f->sample));
    put_info_number(to, "temperature", (double)f->temperature);
    put_count(to, "top_k", f->top_k);
    put_info_number(to, "top_p", (double)f->top_p);
    put_info_number(to, "min_p", (double)f->min_p);
    put_info_number(to, "repetition_penalty", (double)f->repetition_penalty);
    put_count(to, "no_repeat_ngram_size", f->no_repeat);
    put_count(to, "num_beams", f->beam);
    put_info_number(to, "length_penalty", (double)f->length_penalty);
    put_count(to, "max_length", f->max_length);
    put_count(to, "max_new_tokens", f->max_new);
    return to;
}

static json_t *labels_json(const qkv_model *m)
{
    json_t *list = json_array();
    for (int64_t i = 0; qkv_model_label(m, i); i++) json_array_append_new(list, json_string(qkv_model_label(m, i)));
    return list;
}

static qkv_status print_info_json(const char *folder, const qkv_model *m)
{
    const qkv_model_info *f = qkv_model_info_of(m);
    const qkv_transformer_opts *o = qkv_transformer_options(qkv_model_transformer(m));
    json_t *all = json_pack("{s:s, s:I, s:I, s:i, s:i, s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:I, s:o}",
                            "architecture", f->family, "parameters", (json_int_t)qkv_params_count(qkv_model_params(m)), "bytes",
                            (json_int_t)f->bytes, "files", f->files, "encoder_layers", o->encoder_layers, "decoder_layers",
                            o->decoder_layers, "dim", (json_int_t)o->dim, "heads", (json_int_t)o->heads, "kv_heads",
                            (json_int_t)(o->kv_heads ? o->kv_heads : o->heads), "vocabulary", (json_int_t)o->vocabulary,
                            "target_vocabulary", (json_int_t)(o->target_vocabulary ? o->target_vocabulary : o->vocabulary),
                            "context", (json_int_t)f->context, "tokenizer", tokenizer_json(folder, m), "can", abilities_json(f),
                            "generation", generation_json(m), "classes", (json_int_t)o->classes, "labels", labels_json(m));
    if (!all) return fail(QKV_MEMORY, "out of memory");
    json_dumpf(all, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(7));
    putchar('\n');
    json_decref(all);
    return QKV_OK;
}

qkv_status print_model_info(const char *folder, bool json)
{
    qkv_model *m = qkv_model_load(folder);
    if (!m) return library_failed();
    qkv_status status = open_results(NULL);
    if (!status && json) status = print_info_json(folder, m);
    else if (!status) print_lines(folder, m);
    qkv_model_free(m);
    return status;
}
