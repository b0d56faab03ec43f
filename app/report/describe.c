/* describe.c: what is known of a model, as lines for people and as JSON. */
#include "results.h"
#include "../../src/base/file.h"
#include "../../src/base/json.h"
#include "../../src/io/weights.h"
#include "../../src/model/ability.h"
#include "out.h"
#include "../term/translator.h"

#include <qkv/task.h>
#include <qkv/unstable/util.h>

#include <stdio.h>
#include <string.h>

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
        if (qkv__file_exists(path)) return files[i][1];
    }
    return "*.model";
}

static const char *tokenizer_kind(const qkv_tokenizer *t)
{
    static const char *const kinds[] = { QKV__N("byte pairs"), QKV__N("words"), QKV__N("characters"),
                                         QKV__N("words and punctuation"),
                                         QKV__N("published") }; /* in the order of qkv_token_kind */
    return kinds[qkv_tokenizer_kind(t)];
}

/* ---- what it can do ---- */

static int bits_of(const qkv_model_info *f) { return f->dtype == QKV_DTYPE_INT8 ? 8 : f->dtype == QKV_DTYPE_INT4 ? 4 : 0; }

static void put_ability_names(qkv__out *out, int can)
{
    bool is_first = true;
    for (int i = 0; i < QKV__ABILITIES; i++) {
        if (!(can & qkv__abilities[i].ability)) continue;
        qkv__out_printf(out, "%s%s", is_first ? "" : ", ", qkv__abilities[i].command);
        is_first = false;
    }
}

/* ---- as lines ---- */

static void put_name(qkv__out *out, const char *name) { qkv__out_name(out, qkv__translated(name), 16, false); }

static void put_whole(qkv__out *out, const char *name, int64_t n)
{
    if (!n) return;
    put_name(out, name);
    qkv__out_printf(out, "%lld\n", (long long)n);
}

static void put_layers(qkv__out *out, const qkv_config *o)
{
    put_name(out, QKV__N("layers"));
    if (o->encoder_layers) qkv__out_printf(out, qkv__translated("%d of the encoder"), o->encoder_layers);
    if (o->encoder_layers) qkv__out_printf(out, "%s", o->decoder_layers ? qkv__translated(", ") : "\n");
    if (o->decoder_layers) qkv__out_printf(out, qkv__translated("%d of the decoder\n"), o->decoder_layers);
}

static void put_heads(qkv__out *out, const qkv_config *o)
{
    put_name(out, QKV__N("heads"));
    qkv__out_printf(out, "%lld", (long long)o->heads);
    if (o->kv_heads && o->kv_heads != o->heads)
        qkv__out_printf(out, qkv__translated(", %lld of keys and values"), (long long)o->kv_heads);
    qkv__out_printf(out, "\n");
}

static void put_tokenizer(qkv__out *out, const char *folder, const qkv_model *m)
{
    const qkv_tokenizer *source = qkv_model_tokenizer(m, QKV_SIDE_SOURCE), *target = qkv_model_tokenizer(m, QKV_SIDE_TARGET);
    put_name(out, QKV__N("tokenizer"));
    if (!source) {
        qkv__out_printf(out, "%s", qkv__translated("none\n"));
        return;
    }
    qkv__out_printf(out, qkv__translated("%s, %d tokens"), qkv__translated(tokenizer_kind(source)),
                    qkv_tokenizer_vocab_size(source));
    if (target != source) qkv__out_printf(out, qkv__translated(", and %d of the target"), qkv_tokenizer_vocab_size(target));
    if (folder) qkv__out_printf(out, qkv__translated(", from %s"), tokenizer_files(folder));
    qkv__out_printf(out, "\n");
}

/* Without a tokenizer only ids go in. */
static void put_abilities(qkv__out *out, const qkv_model *m)
{
    put_name(out, QKV__N("can"));
    if (qkv_model_tokenizer(m, QKV_SIDE_SOURCE)) put_ability_names(out, (int)qkv_model_get_info(m)->can);
    else
        qkv__out_printf(out, "%s",
                        qkv__translated("read ids; text needs tokenizer.json, vocab.txt, tokenizer.model, or vocab.json with "
                                        "merges.txt"));
    qkv__out_printf(out, "\n");
}

/* A model of ours says of this no more than its length penalty and the sentences of a line. */
static bool says_how_to_use(const qkv_model_info *f, const qkv_generation *g)
{
    return strcmp(f->family, "qkv") != 0 || g->length_penalty != 0 || f->sentences > 1;
}

/* How a model is to be used, as its files say. */
static void put_search(qkv__out *out, const qkv_model_info *f, const qkv_generation *g)
{
    put_name(out, QKV__N("search"));
    qkv__out_printf(out, qkv__translated("beam %d"), g->beam_size ? g->beam_size : 4);
    if (g->length_penalty != 0) qkv__out_printf(out, qkv__translated(", length penalty %g"), (double)g->length_penalty);
    if (f->sentences > 1)
        qkv__out_printf(out, qkv__translated(", splits lines of more than %lld sentences"), (long long)f->sentences);
    if (g->max_length > 1) qkv__out_printf(out, qkv__translated(", at most %lld tokens"), (long long)g->max_length - 1);
}

static void put_sampling(qkv__out *out, const qkv_model *m)
{
    qkv_generate_opts o = QKV_OPTS(qkv_generate_opts);
    qkv_sampling_defaults(m, &o);
    put_name(out, QKV__N("generation"));
    if (o.temperature > 0) qkv__out_printf(out, qkv__translated("draws, temperature %g"), (double)o.temperature);
    else qkv__out_printf(out, "%s", qkv__translated("the likeliest token"));
    if (o.temperature > 0 && o.top_k) qkv__out_printf(out, qkv__translated(", top-k %d"), o.top_k);
    if (o.temperature > 0 && o.top_p > 0) qkv__out_printf(out, qkv__translated(", top-p %g"), (double)o.top_p);
    if (o.temperature > 0 && o.min_p > 0) qkv__out_printf(out, qkv__translated(", min-p %g"), (double)o.min_p);
    if (o.repetition_penalty > 0)
        qkv__out_printf(out, qkv__translated(", repetition penalty %g"), (double)o.repetition_penalty);
    if (o.max_tokens) qkv__out_printf(out, qkv__translated(", at most %lld new tokens"), (long long)o.max_tokens);
}

static void put_generation_settings(qkv__out *out, const qkv_model *m)
{
    const qkv_model_info *f = qkv_model_get_info(m);
    qkv_generation *g = NULL;
    qkv_status status = qkv_model_generation(m, &g);
    if (status) out->status = status;
    if (!status && says_how_to_use(f, g) && f->can & (QKV_CAN_TRANSLATE | QKV_CAN_GENERATE)) {
        if (f->can & QKV_CAN_TRANSLATE) put_search(out, f, g);
        else put_sampling(out, m);
        if (g->no_repeat_ngram) qkv__out_printf(out, qkv__translated(", no run of %d tokens twice"), g->no_repeat_ngram);
        qkv__out_printf(out, "\n");
    }
    qkv_free(g);
}

static void put_labels(qkv__out *out, const qkv_model *m)
{
    if (!qkv_model_label(m, 0)) return;
    put_name(out, QKV__N("labels"));
    for (int64_t i = 0; qkv_model_label(m, i); i++) qkv__out_printf(out, "%s%s", i ? ", " : "", qkv_model_label(m, i));
    qkv__out_printf(out, "\n");
}

static void put_lines(qkv__out *out, const char *folder, const qkv_model *m)
{
    const qkv_model_info *f = qkv_model_get_info(m);
    qkv_config o = { .size = sizeof o };
    qkv_model_config(m, &o);
    put_name(out, QKV__N("architecture"));
    qkv__out_printf(out, "%s\n", f->family);
    put_whole(out, QKV__N("parameters"), qkv_model_get_info(m)->parameters);
    put_name(out, QKV__N("bytes"));
    qkv__out_printf(out, qkv__translated(f->n_files == 1 ? QKV__N("%lld in %d file") : QKV__N("%lld in %d files")),
                    (long long)f->bytes, f->n_files);
    if (folder) qkv__out_printf(out, qkv__translated(", from %s"), qkv__weights_name(folder));
    qkv__out_printf(out, "\n");
    if (bits_of(f)) {
        put_name(out, QKV__N("weights"));
        qkv__out_printf(out, "int%d%s\n", bits_of(f),
                        bits_of(f) == 4 ? qkv__translated(QKV__N(", tables and the output int8")) : "");
    }
    put_layers(out, &o);
    put_whole(out, QKV__N("dim"), o.dim);
    put_heads(out, &o);
    put_whole(out, QKV__N("vocabulary"), o.vocab_size);
    put_whole(out, QKV__N("of the target"), o.target_vocab_size);
    put_whole(out, QKV__N("context"), f->max_positions);
    put_tokenizer(out, folder, m);
    put_abilities(out, m);
    put_generation_settings(out, m);
    if (*f->source_language) {
        put_name(out, QKV__N("languages"));
        qkv__out_printf(out, "%s -> %s\n", f->source_language, f->target_language);
    }
    put_whole(out, QKV__N("classes"), o.classes);
    put_labels(out, m);
}

/* ---- as JSON ---- */

enum { INFO_DIGITS = 7 };

static void put_text_or_null(qkv__json_writer *w, const char *key, const char *text)
{
    if (text) qkv__json_put_text(w, key, text);
    else qkv__json_put_null(w, key);
}

static void put_tokenizer_json(qkv__json_writer *w, const char *folder, const qkv_model *m)
{
    const qkv_tokenizer *source = qkv_model_tokenizer(m, QKV_SIDE_SOURCE), *target = qkv_model_tokenizer(m, QKV_SIDE_TARGET);
    if (!source) {
        qkv__json_put_null(w, "tokenizer");
        return;
    }
    qkv__json_open_object(w, "tokenizer");
    qkv__json_put_text(w, "kind", tokenizer_kind(source));
    qkv__json_put_int(w, "tokens", qkv_tokenizer_vocab_size(source));
    qkv__json_put_int(w, "target_tokens", qkv_tokenizer_vocab_size(target));
    put_text_or_null(w, "files", folder ? tokenizer_files(folder) : NULL);
    qkv__json_close(w);
}

/* null for 0, which the model's files do not have. */
static void put_info_number(qkv__json_writer *w, const char *key, double value)
{
    if (value != 0) qkv__json_put_real(w, key, value, INFO_DIGITS);
    else qkv__json_put_null(w, key);
}

static void put_count(qkv__json_writer *w, const char *key, int64_t value)
{
    if (value) qkv__json_put_int(w, key, value);
    else qkv__json_put_null(w, key);
}

static void put_generation_json(qkv__json_writer *w, const qkv_model_info *f, const qkv_generation *g)
{
    if (!says_how_to_use(f, g)) {
        qkv__json_put_null(w, "generation");
        return;
    }
    qkv__json_open_object(w, "generation");
    qkv__json_put_bool(w, "do_sample", g->do_sample);
    put_info_number(w, "temperature", (double)g->temperature);
    put_count(w, "top_k", g->top_k);
    put_info_number(w, "top_p", (double)g->top_p);
    put_info_number(w, "min_p", (double)g->min_p);
    put_info_number(w, "repetition_penalty", (double)g->repetition_penalty);
    put_count(w, "no_repeat_ngram_size", g->no_repeat_ngram);
    put_count(w, "num_beams", g->beam_size);
    put_info_number(w, "length_penalty", (double)g->length_penalty);
    if (f->sentences) put_count(w, "sentences", f->sentences);
    put_count(w, "max_length", g->max_length);
    put_count(w, "max_new_tokens", g->max_new);
    qkv__json_close(w);
}

static void put_info_json(qkv__out *out, const char *folder, const qkv_model *m)
{
    const qkv_model_info *f = qkv_model_get_info(m);
    qkv_config o = { .size = sizeof o };
    qkv_model_config(m, &o);
    int can = qkv_model_tokenizer(m, QKV_SIDE_SOURCE) ? (int)f->can : 0;
    qkv_generation *said = NULL;
    qkv__json_writer w = { .style = QKV__JSON_LINES };
    qkv__json_open_object(&w, NULL);
    qkv__json_put_text(&w, "architecture", f->family);
    qkv__json_put_int(&w, "parameters", qkv_model_get_info(m)->parameters);
    qkv__json_put_int(&w, "bytes", f->bytes);
    qkv__json_put_int(&w, "files", f->n_files);
    put_text_or_null(&w, "weights", folder ? qkv__weights_name(folder) : NULL);
    qkv__json_put_int(&w, "encoder_layers", o.encoder_layers);
    qkv__json_put_int(&w, "decoder_layers", o.decoder_layers);
    qkv__json_put_int(&w, "dim", o.dim);
    qkv__json_put_int(&w, "heads", o.heads);
    qkv__json_put_int(&w, "kv_heads", o.kv_heads ? o.kv_heads : o.heads);
    qkv__json_put_int(&w, "vocabulary", o.vocab_size);
    qkv__json_put_int(&w, "target_vocabulary", o.target_vocab_size ? o.target_vocab_size : o.vocab_size);
    qkv__json_put_int(&w, "context", f->max_positions);
    put_tokenizer_json(&w, folder, m);
    qkv__json_open_array(&w, "can");
    for (int i = 0; i < QKV__ABILITIES; i++)
        if (can & qkv__abilities[i].ability) qkv__json_put_text(&w, NULL, qkv__abilities[i].command);
    qkv__json_close(&w);
    if (qkv_model_generation(m, &said)) out->status = qkv_error_status();
    else put_generation_json(&w, f, said);
    qkv_free(said);
    put_count(&w, "bits", bits_of(f));
    qkv__json_put_int(&w, "classes", o.classes);
    qkv__json_open_array(&w, "labels");
    for (int64_t i = 0; qkv_model_label(m, i); i++) qkv__json_put_text(&w, NULL, qkv_model_label(m, i));
    qkv__json_close(&w);
    if (*f->source_language) {
        qkv__json_open_array(&w, "languages");
        qkv__json_put_text(&w, NULL, f->source_language);
        qkv__json_put_text(&w, NULL, f->target_language);
        qkv__json_close(&w);
    }
    qkv__json_close(&w);
    if (w.status && !out->status) out->status = w.status;
    qkv__out_bytes(out, w.text, w.length);
    qkv__out_bytes(out, "\n", 1);
    qkv__json_writer_free(&w);
}

qkv_status qkv_model_describe(const qkv_model *m, const char *folder, int json, qkv_buffer *out)
{
    if (!m || !out) return qkv__fail(QKV_USAGE, "describe: a model and a place for the text are needed");
    qkv__out text = qkv__out_begin(out);
    if (json) put_info_json(&text, folder, m);
    else put_lines(&text, folder, m);
    return qkv__out_end(&text);
}
