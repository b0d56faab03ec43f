/* summary.c: what a training is about to do, for people: its text, its model, what the rules chose, its length. */
#include "job.h"

#include <qkv/unstable/util.h>
#include "training.h"

#include "../report/out.h"

#include <stdio.h>
#include <string.h>

enum { NAME = 12, COLUMNS = 80, MOST_SHOWN = 40, LABEL_COLUMNS = 24 };

static void put_row_name(qkv__out *out, const char *name) { qkv__out_name(out, qkv__translated(name), NAME, false); }

/* ---- the text ---- */

/* held_back: validation texts that are of the training files. */
static void put_texts(qkv__out *out, const qkv_training_text *x, int64_t held_back)
{
    put_row_name(out, x->noun);
    qkv__out_printf(out, "%lld", (long long)x->texts);
    int64_t left_out = x->empty + x->unlabelled + x->too_long;
    if (left_out || held_back) qkv__out_printf(out, qkv__translated(" of %lld"), (long long)(x->texts + held_back + left_out));
    if (x->parts) qkv__out_printf(out, qkv__translated(", cut into %lld %s"), (long long)x->n_parts, qkv__translated(x->parts));
    if (left_out) qkv__out_printf(out, qkv__translated("; left out:"));
    if (x->empty) qkv__out_printf(out, qkv__translated(" %lld empty"), (long long)x->empty);
    if (x->unlabelled)
        qkv__out_printf(out, qkv__translated("%s %lld without a label"), x->empty ? qkv__translated(",") : "",
                        (long long)x->unlabelled);
    if (x->too_long)
        qkv__out_printf(out, qkv__translated("%s %lld longer than --max-length"),
                        x->empty || x->unlabelled ? qkv__translated(",") : "", (long long)x->too_long);
    qkv__out_printf(out, "\n");
    if (x->separator) {
        put_row_name(out, QKV__N("columns"));
        qkv__out_printf(out, qkv__translated("separated by \"%s\"\n"), *x->separator == '\t' ? "TAB" : x->separator);
    }
    if (x->repeated) {
        put_row_name(out, QKV__N("duplicates"));
        qkv__out_printf(out, qkv__translated("%lld of the training %s\n"), (long long)x->repeated, qkv__translated(x->noun));
    }
    if (!x->valid) return;
    put_row_name(out, QKV__N("validation"));
    qkv__out_printf(out, held_back ? qkv__translated("%lld held back") : "%lld", (long long)x->valid);
    if (x->overlap)
        qkv__out_printf(out, qkv__translated("; %lld of them occur in the training text too"), (long long)x->overlap);
    qkv__out_printf(out, "\n");
}

/* How many bytes of a label are shown: whole characters, and not many that have no width. */
static size_t label_bytes(const char *label)
{
    size_t used = 0;
    int64_t columns = 0;
    for (size_t left = strlen(label), bytes; left; used += bytes, left -= bytes) {
        qkv_utf8_next(label + used, left, &bytes);
        columns += qkv_utf8_width(label + used, bytes);
        if (columns > LABEL_COLUMNS || used + bytes > 4 * LABEL_COLUMNS) break;
    }
    return used;
}

/* "NAME (COUNT)" of each, as many lines as it takes, each within the columns. */
static void put_labels(qkv__out *out, const qkv_training_text *x)
{
    char text[256];
    int64_t shown = x->n_labels > MOST_SHOWN ? MOST_SHOWN : x->n_labels;
    int used = NAME + snprintf(text, sizeof text, "%lld:", (long long)x->n_labels);
    put_row_name(out, QKV__N("classes"));
    qkv__out_printf(out, "%s", text);
    for (int64_t i = 0; i < shown; i++) {
        size_t length = label_bytes(x->labels[i]);
        snprintf(text, sizeof text, "%.*s%s (%lld)%s", (int)length, x->labels[i], x->labels[i][length] ? "..." : "",
                 (long long)x->label_counts[i], i + 1 < x->n_labels ? "," : "");
        if (used + 1 + qkv__width(text) > COLUMNS) qkv__out_printf(out, "\n%*s", NAME - 1, ""), used = NAME - 1;
        used += 1 + qkv__width(text);
        qkv__out_printf(out, " %s", text);
    }
    if (shown < x->n_labels)
        qkv__out_printf(out, qkv__translated("\n%*sand %lld more"), NAME, "", (long long)(x->n_labels - shown));
    qkv__out_printf(out, "\n");
}

/* ---- the model and the way ---- */

static void put_vocabulary(qkv__out *out, const qkv_model *m)
{
    static const char *const kinds[] = { QKV__N("byte pairs"), QKV__N("words"), QKV__N("characters"), QKV__N("words"),
                                         QKV__N("tokens") }; /* in the order of qkv_token_kind */
    const qkv_tokenizer *source = qkv_model_tokenizer(m, QKV_SIDE_SOURCE), *target = qkv_model_tokenizer(m, QKV_SIDE_TARGET);
    put_row_name(out, QKV__N("vocabulary"));
    qkv__out_printf(out, qkv__translated("%d %s"), qkv_tokenizer_vocab_size(source),
                    qkv__translated(kinds[qkv_tokenizer_kind(source)]));
    if (target != source) qkv__out_printf(out, qkv__translated(", and %d of the target"), qkv_tokenizer_vocab_size(target));
    qkv__out_printf(out, "\n");
}

/* As if they had been typed. */
static void put_chosen(qkv__out *out, qkv_training *t)
{
    char text[256];
    int used = NAME;
    const char *name;
    if (!qkv_training_chosen(t, 0)) return;
    put_row_name(out, QKV__N("chosen"));
    for (int i = 0; (name = qkv_training_chosen(t, i)); i++) {
        const char *value = qkv_training_get(t, name);
        bool is_flag = value && !strcmp(value, "yes");
        snprintf(text, sizeof text, "--%s%s%s", name, is_flag ? "" : " ", !value || is_flag ? "" : value);
        int taken = qkv__width(text);
        bool fits = used + 1 + taken <= COLUMNS;
        if (i && fits) qkv__out_printf(out, " ");
        else if (i) qkv__out_printf(out, "\n%*s", NAME, "");
        qkv__out_printf(out, "%s", text);
        used = (i && !fits ? NAME : used + (i > 0)) + taken;
    }
    qkv__out_printf(out, "\n");
}

static void put_updates(qkv__out *out, int64_t epoch_steps, int64_t last_step)
{
    put_row_name(out, QKV__N("updates"));
    if (!last_step) {
        qkv__out_printf(out, qkv__translated("%lld an epoch, as many as --minutes allows\n"), (long long)epoch_steps);
        return;
    }
    qkv__out_printf(out,
                    last_step == epoch_steps ? qkv__translated("%lld, %lld an epoch: %.4g epoch\n")
                                             : qkv__translated("%lld, %lld an epoch: %.4g epochs\n"),
                    (long long)last_step, (long long)epoch_steps, (double)last_step / (double)epoch_steps);
}

qkv_status qkv_training_summary(qkv_training *t, int64_t epoch_steps, int64_t last_step, qkv_buffer *out)
{
    if (!t || !out || epoch_steps < 1 || last_step < 0)
        return qkv__fail(QKV_USAGE, "summary: a training, its steps and a place for the text are needed");
    const qkv_training_text *x = qkv_training_text_of(t);
    const qkv_model *m = qkv_training_model(t);
    if (!x || !m) return qkv__fail(QKV_USAGE, "summary: the training has not begun: its text is not read yet");
    qkv__out text = qkv__out_begin(out);
    bool is_split = QKV__IS_SET(&t->o, split) && t->o.v.split > 0 && !x->parts;
    put_texts(&text, x, is_split ? x->valid : 0);
    if (x->n_labels) put_labels(&text, x);
    put_vocabulary(&text, m);
    put_row_name(&text, QKV__N("parameters"));
    qkv__out_printf(&text, "%lld\n", (long long)qkv_model_get_info(m)->parameters);
    put_chosen(&text, t);
    put_updates(&text, epoch_steps, last_step);
    return qkv__out_end(&text);
}
