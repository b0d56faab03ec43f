/* fuzz.c: readers of files that nobody vouches for, for libFuzzer. QKV_FUZZ names one of them; QKV_FUZZ_SEEDS=FOLDER writes what
 * it begins with into a folder, of the golden files, and ends. tools/soak builds and runs it. */
#include <qkv/qkv.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "folder.h"
#include "json_values.h"
#include "io/pickle.h"
#include "io/pytorch.h"
#include "jinja/template.h"
#include "model/family.h"
#include "model/model_info.h"
#include "nn/transformer.h"

static const char *put_input(const char *name, const uint8_t *data, size_t size)
{
    const char *path = in_folder(name);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, size, f) != size || fclose(f)) abort();
    return path;
}

/* ---- config.json, of every family and ours ---- */

/* What other programs would read of it again. */
static void write_options(const qkv__family *f, const qkv_config *o)
{
    qkv__json_writer w = { .style = QKV__JSON_LINES, .replaces = true };
    qkv__json_open_object(&w, NULL);
    if (!f->missing(o)) qkv__keys_write(f->keys, o, &w), f->write(o, &w);
    qkv__json_close(&w);
    qkv__json_writer_free(&w);
}

static void make_model(const qkv__family *f, const qkv__published *p, const qkv_config *o)
{
    enum { MOST_LAYERS = 64 };
    if (o->encoder_layers > MOST_LAYERS || o->decoder_layers > MOST_LAYERS) return;
    qkv_params *params = qkv__params_plan();
    qkv__transformer *m = qkv__transformer_new(params, o);
    if (m && o->dim < 100000 && !qkv__read_divisors(p, params, m)) write_options(f, o);
    qkv_params_free(params);
}

static void read_config(const uint8_t *data, size_t size)
{
    const qkv__weights nothing = { 0 };
    qkv__json_doc doc;
    if (qkv__json_parse(&(qkv__json_source){ .name = "config.json", .text = (const char *)data, .length = size }, &doc)) return;
    const qkv__json_value *config = doc.top;
    const char *type = qkv__model_type(config);
    const qkv__published p = { .path = "config.json", .config = config, .weights = &nothing };
    const qkv__family *f = type ? qkv__family_find(type) : NULL;
    qkv_config o;
    qkv__labels labels = { 0 };
    qkv__config_extras extras;
    if (f && f->variant) f = f->variant(&p, NULL);
    if (qkv__json_is_object(config) && !f) qkv__config_read("config.json", config, &o, &labels, &extras);
    else if (f && !qkv__family_read(f, &p, &o)) {
        qkv__model_info info = qkv__model_info_of(&o);
        qkv__sentence sentence = { 0 };
        if (o.classes < 100000) qkv__labels_read(&p, &o, &labels);
        if (!qkv__model_info_read(f, &p, folder, &o, &info, &sentence)) qkv__model_info_free(&info);
        qkv__sentence_free(&sentence);
        make_model(f, &p, &o);
    }
    qkv__labels_free(&labels);
    qkv__json_free(&doc);
}

/* ---- tokenizers ---- */

static void use_tokenizer(qkv_tokenizer *t)
{
    static const char text[] = " The <s>cat e\xCC\x81 \xE6\x88\x91 [MASK] \xF0\x9F\x98\x80 12\t\n";
    const qkv_encode_opts opts = { .parse_special = 1, .add_special = 1 };
    qkv_encoding *ids = NULL;
    qkv_text *back = NULL;
    if (t && !qkv_tokenizer_encode(t, qkv_cstr(text), &opts, &ids)) qkv_tokenizer_decode(t, ids->ids, ids->n, 0, &back);
    qkv_free(ids);
    qkv_free(back);
    qkv_tokenizer_free(t);
}

static void read_tokenizer(const uint8_t *data, size_t size)
{
    use_tokenizer(qkv_tokenizer_load(put_input("tokenizer.json", data, size)));
}
static void read_spm(const uint8_t *data, size_t size)
{
    use_tokenizer(qkv_tokenizer_load(put_input("tokenizer.model", data, size)));
}
static void read_vocabulary(const uint8_t *data, size_t size)
{
    use_tokenizer(qkv_tokenizer_load(put_input("vocab.txt", data, size)));
}

/* ---- weights ---- */

static void use_tensors(qkv_status status, qkv__safetensors *s)
{
    for (int i = 0; !status && i < s->n; i++) {
        float number;
        if (s->tensors[i].count && qkv__safetensors_decodes(&s->tensors[i])) /* the last lies farthest */
            qkv__safetensors_decode_some(&s->tensors[i], s->tensors[i].count - 1, 1, &number);
    }
    if (!status) qkv__safetensors_free(s);
}

static void read_bin(const uint8_t *data, size_t size)
{
    qkv__safetensors s;
    use_tensors(qkv__pytorch_read(put_input("pytorch_model.bin", data, size), &s), &s);
}
static void read_safetensors(const uint8_t *data, size_t size)
{
    qkv__safetensors s;
    use_tensors(qkv__safetensors_read(put_input("model.safetensors", data, size), &s), &s);
}
static void read_pickle(const uint8_t *data, size_t size)
{
    qkv__pickled p;
    if (!qkv__pickle_read("data.pkl", 0, data, size, &p)) qkv__pickled_free(&p);
}

/* ---- JSON itself ---- */

static void pull_all(qkv__json_pull *p, unsigned steps)
{
    int depth = 0;
    for (qkv__json_type type; (type = qkv__json_next(p)) || (depth > 0 && !p->status);) {
        depth -= !type;
        if (type < QKV__JSON_ARRAY || (steps = steps * 1103515245 + 12345) >> 28 == 0) continue; /* a few are passed over */
        qkv__json_enter(p);
        depth++;
    }
}

/* The tree and the pull reader must agree, and writing must round-trip. The first byte holds flags. */
static void read_json(const uint8_t *data, size_t size)
{
    static const char *const tables[] = { "vocab", NULL };
    if (!size) return;
    const char *const *left = *data & 4 ? tables : NULL;
    const qkv__json_source source = {
        .name = "file", .text = (const char *)data + 1, .length = size - 1, .flags = *data & 3, .tables = left
    };
    qkv__json_doc doc, again;
    qkv__json_pull p;
    qkv_status status = qkv__json_parse(&source, &doc);
    qkv__json_pull_begin(&p, &source);
    pull_all(&p, *data);
    qkv_status pulled = qkv__json_pull_end(&p);
    bool may_differ = status && !(source.flags & QKV__JSON_REPEATED); /* a key is there twice */
    if (pulled != status && !may_differ) abort();
    qkv__json_writer w = { .style = (qkv__json_style)(*data >> 3 & 3), .long_escapes = *data >> 5 & 1 };
    if (!status) qkv__json_put_value(&w, NULL, doc.top);
    const qkv__json_source copy = { .name = "copy", .text = w.text, .length = w.length, .flags = source.flags, .tables = left };
    if (!status) {
        if (w.status || qkv__json_parse(&copy, &again) || !qkv__json_equal(doc.top, again.top)) abort();
        qkv__json_free(&again);
    }
    qkv__json_pull_table(&p, &source, qkv__json_get(doc.top, "vocab"));
    pull_all(&p, *data);
    if (qkv__json_pull_end(&p)) abort();
    qkv__json_writer_free(&w);
    qkv__json_free(&doc);
}

/* ---- chat templates ---- */

static void read_template(const uint8_t *data, size_t size)
{
    static const char talk[] = "{\"messages\": [{\"role\": \"system\", \"content\": \"Be short.\"}, {\"role\": \"user\", "
                               "\"content\": \"Hi\"}, {\"role\": \"assistant\", \"content\": \"Hello\", \"tool_calls\": []}], "
                               "\"tools\": [{\"type\": \"function\", \"function\": {\"name\": \"f\", \"parameters\": {}}}], "
                               "\"add_generation_prompt\": true, \"bos_token\": \"<s>\", \"eos_token\": \"</s>\"}";
    const qkv__chat_render_opts opts = { .size = sizeof opts, .now = 1700000000, .most_steps = 20000 };
    qkv_buffer out = { 0 };
    qkv__chat_template *t = qkv__chat_template_new((const char *)data, size);
    if (t) qkv__chat_template_render_json(t, talk, strlen(talk), &opts, &out);
    qkv__chat_template_free(t);
    qkv_buffer_free(&out);
}

static const struct {
    const char *name;
    void (*read)(const uint8_t *data, size_t size);
} readers[] = { { "config", read_config },  { "tokenizer", read_tokenizer },
                { "spm", read_spm },        { "vocab", read_vocabulary },
                { "bin", read_bin },        { "pickle", read_pickle },
                { "jinja", read_template }, { "safetensors", read_safetensors },
                { "json", read_json } };
enum { READERS = sizeof readers / sizeof *readers };
static int chosen = -1;

/* ---- what it begins with, of files that hold many ---- */

static void put_seed(const char *to, int number, const char *text)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/golden-%d", to, number);
    FILE *f = text ? fopen(path, "wb") : NULL;
    if (!f || fputs(text, f) < 0 || fclose(f)) abort();
}

static void put_templates(const char *to)
{
    int number = 0;
    const qkv__json_value *all = json_read(QKV_GOLDEN "/templates.json"), *templates = qkv__json_get(all, "templates");
    for (size_t i = 0; i < qkv__json_size(templates); i++) put_seed(to, number++, qkv__json_text(qkv__json_at(templates, i)));
    json_free(all);
}

/* Vocabularies and merges that several share stand beside them. */
static void put_tokenizers(const char *to)
{
    static const char *const paths[] = { "model/vocab", "model/merges" };
    const qkv__json_value *all = json_read(QKV_GOLDEN "/pipeline.json"), *cases = qkv__json_get(all, "cases");
    for (size_t i = 0; i < qkv__json_size(cases); i++) {
        char *text = json_text(qkv__json_get(qkv__json_at(cases, i), "tokenizer"), QKV__JSON_COMPACT);
        const qkv__json_value *one = json_parse_text(text);
        free(text);
        for (int k = 0; k < 2; k++) {
            const char *shared = qkv__json_get_text(qkv__json_get(one, "model"), paths[k] + strlen("model/"));
            const qkv__json_value *value = shared ? qkv__json_get(qkv__json_get(all, "shared"), shared) : NULL;
            if (!value) continue;
            text = json_text(value, QKV__JSON_COMPACT);
            json_edit(&one, paths[k], text);
            free(text);
        }
        text = json_text(one, QKV__JSON_COMPACT);
        put_seed(to, (int)i, text);
        free(text);
        json_free(one);
    }
    json_free(all);
}

/* ---- libFuzzer's ---- */

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void leave_folder(void) { remove_folder(NULL); }

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    const char *name = getenv("QKV_FUZZ"), *to = getenv("QKV_FUZZ_SEEDS");
    for (int i = 0; name && i < READERS; i++)
        if (!strcmp(readers[i].name, name)) chosen = i;
    if (chosen < 0) {
        fprintf(stderr, "fuzz: QKV_FUZZ is the name of no reader\n");
        exit(2);
    }
    if (to && readers[chosen].read == read_template) put_templates(to);
    if (to && readers[chosen].read == read_tokenizer) put_tokenizers(to);
    if (to) exit(0);
    atexit(leave_folder);
    return make_folder(NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    readers[chosen].read(data, size);
    return 0;
}
