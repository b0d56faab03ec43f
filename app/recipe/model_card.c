/* model_card.c: README.md of an exported folder, from the record of its training. */
#include "model_card.h"

#include <qkv/unstable/util.h>

#include "../../src/base/size.h"
#include "../../src/base/json.h"
#include "../report/out.h"
#include "../../src/token/tokenizer.h"
#include "../../src/model/model_info.h"
#include "../../src/model/special_tokens.h"

#include <stdio.h>
#include <string.h>

enum { RECORD_BYTES = 16 << 20 };

typedef struct card {
    const qkv_model *m;
    const char *family;
    const qkv__json_value *record; /* training.json */
    qkv_buffer log, *text;         /* log.jsonl, which may be missing; the card */
    qkv__out out;
} card;

static const char *word_of(const qkv__json_value *object, const char *key, const char *missing)
{
    const char *word = qkv__json_get_text(object, key);
    return word ? word : missing;
}

/* Text of others in a cell: what Markdown and HTML would take for their own stands for itself, and a line end for a space. */
static void put_cell(card *c, const char *text)
{
    for (const char *at = text; *at; at++) {
        unsigned char byte = (unsigned char)*at;
        if (byte < ' ') qkv__out_printf(&c->out, " ");
        else if (strchr("<>&", byte)) qkv__out_printf(&c->out, "&#%d;", byte);
        else qkv__out_printf(&c->out, strchr("|\\`*_[]", byte) ? "\\%c" : "%c", byte);
    }
}

static void put_option(card *c, const char *name, const char *value)
{
    qkv__out_printf(&c->out, "| `--%s` | ", name);
    put_cell(c, value);
    qkv__out_printf(&c->out, " |\n");
}

static void put_class(card *c, const char *name, long long texts)
{
    qkv__out_printf(&c->out, "| texts of class ");
    put_cell(c, name);
    qkv__out_printf(&c->out, " | %lld |\n", texts);
}

/* ---- the parts ---- */

static const char *task_of(const qkv_model_info *info)
{
    if (info->can & QKV_CAN_TRANSLATE) return "translation";
    if (info->can & QKV_CAN_GENERATE) return "text-generation";
    if (info->can & QKV_CAN_CLASSIFY) return "text-classification";
    return info->can & QKV_CAN_FILL ? "fill-mask" : "feature-extraction";
}

static void put_head(card *c)
{
    qkv_config o = { .size = sizeof o };
    qkv_model_config(c->m, &o);
    const char *task = task_of(qkv_model_get_info(c->m));
    qkv__out_printf(&c->out, "---\npipeline_tag: %s\ntags:\n- qkv\n- %s\n---\n# %s\n\n", task, c->family, c->family);
    qkv__out_printf(&c->out, "A Transformer for %s, made by `qkv %s` (version %s) and written in the layout of `%s`.\n\n", task,
                    word_of(c->record, "job", "train"), word_of(c->record, "qkv", "unknown"), c->family);
    qkv__out_printf(&c->out, "| | |\n| --- | --- |\n| parameters | %lld |\n| layers | %d encoder, %d decoder |\n",
                    (long long)qkv_model_get_info(c->m)->parameters, o.encoder_layers, o.decoder_layers);
    qkv__out_printf(&c->out, "| width, heads, inner width | %lld, %lld, %lld |\n| vocabulary | %lld |\n", (long long)o.dim,
                    (long long)o.heads, (long long)o.d_ff, (long long)o.vocab_size);
}

static void put_run_of(card *c, const qkv_tokenizer *t, const qkv__id_run *run)
{
    for (int i = 0; i < run->n; i++) qkv__out_printf(&c->out, " `%s`", qkv_tokenizer_token(t, run->ids[i]));
}

/* What the model reads of a text. */
static void put_frame(card *c)
{
    qkv__special_tokens f;
    if (qkv__special_tokens_of(c->m, &f)) return;
    qkv__out_printf(&c->out, "\nA text is read as");
    put_run_of(c, f.source, &f.single.before);
    qkv__out_printf(&c->out, " *text*");
    put_run_of(c, f.source, &f.single.after);
    qkv__out_printf(&c->out, ", as `tokenizer.json` says.\n");
}

/* The texts by their names in the options, and how many there were. */
static void put_data(card *c)
{
    static const char *const files[] = { "train", "valid", "from" };
    const qkv__json_value *options = qkv__json_get(c->record, "options"), *left = qkv__json_get(c->record, "left_out");
    qkv__out_printf(&c->out, "\n## Data\n\n| | |\n| --- | --- |\n");
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (*word_of(options, files[i], "")) put_option(c, files[i], word_of(options, files[i], ""));
    qkv__out_printf(&c->out, "| trained on | %lld |\n", (long long)qkv__json_int(qkv__json_get(c->record, "pairs")));
    qkv__out_printf(&c->out, "| left out, empty or too long | %lld |\n",
                    (long long)(qkv__json_int(qkv__json_get(left, "empty")) + qkv__json_int(qkv__json_get(left, "too_long"))));
    const qkv__json_value *classes = qkv__json_get(c->record, "classes");
    for (size_t i = 0; qkv__json_key(classes, i); i++)
        put_class(c, qkv__json_key(classes, i), (long long)qkv__json_int(qkv__json_at(classes, i)));
}

/* Those that say something: neither off nor the size's own. */
static void put_options(card *c)
{
    const qkv__json_value *options = qkv__json_get(c->record, "options");
    qkv__out_printf(&c->out, "\n## Options\n\n| | |\n| --- | --- |\n");
    for (size_t i = 0; qkv__json_key(options, i); i++) {
        const char *text = qkv__json_text(qkv__json_at(options, i));
        if (text && *text && strcmp(text, "0")) put_option(c, qkv__json_key(options, i), text);
    }
}

/* The last line of the log with the validation of a step; empty without one. Lines that are not JSON are skipped. MEMORY. */
static qkv_status find_validation(const card *c, int64_t step, qkv__json_doc *found)
{
    *found = (qkv__json_doc){ 0 };
    for (const char *line = c->log.data, *end; line && *line; line = end + 1) {
        qkv__json_doc entry;
        if (!(end = strchr(line, '\n'))) break;
        const qkv__json_source source = {
            .name = "log.jsonl", .text = line, .length = (size_t)(end - line), .flags = QKV__JSON_REPEATED
        };
        qkv_status status = qkv__json_parse(&source, &entry);
        if (status == QKV_MEMORY) return status;
        bool fits = qkv__json_get(entry.top, "valid_loss") && qkv__json_int(qkv__json_get(entry.top, "step")) == step;
        qkv__json_free(fits ? found : &entry);
        if (fits) *found = entry;
    }
    return QKV_OK;
}

static void put_scores(card *c)
{
    static const char *const scores[] = {
        "valid_loss", "accuracy", "bleu", "micro_f1", "macro_f1", "exact", "rmse", "pearson"
    };
    int64_t best = qkv__json_int(qkv__json_get(c->record, "best_step"));
    qkv__json_doc line;
    qkv_status status = find_validation(c, best, &line);
    if (status && !c->out.status) c->out.status = status;
    qkv__out_printf(&c->out, "\n## Scores\n\n| | |\n| --- | --- |\n| steps | %lld |\n| step of this model | %lld |\n",
                    (long long)qkv__json_int(qkv__json_get(c->record, "steps")), (long long)best);
    for (size_t i = 0; i < sizeof scores / sizeof *scores; i++) {
        const qkv__json_value *score = qkv__json_get(line.top, scores[i]);
        if (qkv__json_is_number(score)) qkv__out_printf(&c->out, "| %s | %.4f |\n", scores[i], qkv__json_number(score));
    }
    if (!line.top) qkv__out_printf(&c->out, "\nThere was no validation text.\n");
    qkv__json_free(&line);
}

/* ---- all of it ---- */

static qkv_status read_log(card *c, const char *origin)
{
    char path[4096];
    qkv__bytes file;
    snprintf(path, sizeof path, "%.4000s/log.jsonl", origin);
    if (!qkv__file_exists(path)) return QKV_OK;
    qkv_status status = qkv__file_read(path, RECORD_BYTES, &file);
    if (status) return status;
    status = qkv__buffer_put(&c->log, (const char *)file.data, file.size);
    qkv__bytes_free(&file);
    return status;
}

static qkv_status write_card(card *c, const char *folder)
{
    char path[4096];
    c->out = qkv__out_begin(c->text);
    put_head(c);
    put_frame(c);
    put_data(c);
    put_options(c);
    put_scores(c);
    qkv_status status = qkv__out_end(&c->out);
    if (!status && snprintf(path, sizeof path, "%s/README.md", folder) >= (int)sizeof path)
        status = qkv__fail(QKV_LIMIT, "%.60s...: the path is longer than 4096 bytes", folder);
    return status ? status : qkv_file_write(path, c->text->data, c->text->length);
}

qkv_status qkv__write_card(const qkv_model *m, const char *folder, const char *family)
{
    char path[4096];
    const char *origin = qkv__model_folder(m);
    qkv_buffer text = { 0 };
    card c = { .m = m, .family = family, .text = &text };
    snprintf(path, sizeof path, "%.4000s/training.json", origin ? origin : "");
    if (!origin || !qkv__file_exists(path)) return QKV_OK;
    qkv__json_doc record;
    qkv_status status = qkv__json_load(path, RECORD_BYTES, &record);
    c.record = record.top;
    if (!status && !qkv__json_is_object(c.record)) status = qkv__fail(QKV_FORMAT, "%s: expected a JSON object", path);
    if (!status) status = read_log(&c, origin);
    if (!status) status = write_card(&c, folder);
    qkv__json_free(&record);
    qkv_buffer_free(&c.log);
    qkv_buffer_free(&text);
    return status;
}
