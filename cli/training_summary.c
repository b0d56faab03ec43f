/* training_summary.c: what a training is about to do: its data, its model, its length; and once it runs, what it costs. */
#include "training_summary.h"

#include "term/language.h"
#include "term/print.h"
#include "term/progress.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

enum { NAME = 12, COLUMNS = 80, MOST_SHOWN = 40, LABEL_COLUMNS = 24 };

static void name_row(FILE *to, const char *name) { fprintf(to, "%s%*s", _(name), NAME - display_width(_(name)), ""); }

/* ---- the data ---- */

static void print_texts(FILE *to, const qkv_training_text *x)
{
    name_row(to, x->noun);
    fprintf(to, "%lld", (long long)x->texts);
    if (x->parts) fprintf(to, _(", as %lld %s"), (long long)x->n_parts, _(x->parts));
    if (x->empty || x->too_long) fprintf(to, _(" of %lld; left out:"), (long long)(x->texts + x->empty + x->too_long));
    if (x->empty) fprintf(to, _(" %lld empty"), (long long)x->empty);
    if (x->too_long) fprintf(to, _("%s %lld longer than --max-length"), x->empty ? _(",") : "", (long long)x->too_long);
    fputc('\n', to);
    if (!x->valid) return;
    name_row(to, N_("validation"));
    fprintf(to, "%lld\n", (long long)x->valid);
}

/* "NAME (COUNT)", cut where a name is too long to be one. */
static void format_class(const qkv_training_text *x, int64_t i, char *text, size_t room)
{
    size_t length = fitting_bytes(x->labels[i], LABEL_COLUMNS);
    if (length > 4 * LABEL_COLUMNS) length = qkv_utf8_check(x->labels[i], 4 * LABEL_COLUMNS); /* some have no width */
    snprintf(text, room, "%.*s%s (%lld)", (int)length, x->labels[i], x->labels[i][length] ? "..." : "",
             (long long)x->label_counts[i]);
}

/* As many lines as it takes, each within the columns. */
static void print_classes(FILE *to, const qkv_training_text *x)
{
    char text[256];
    int64_t shown = x->n_labels > MOST_SHOWN ? MOST_SHOWN : x->n_labels;
    int used = NAME;
    name_row(to, N_("classes"));
    used += fprintf(to, "%lld:", (long long)x->n_labels);
    for (int64_t i = 0; i < shown; i++) {
        format_class(x, i, text, sizeof text - 8);
        if (i + 1 < x->n_labels) strcat(text, ",");
        if (used + 1 + display_width(text) > COLUMNS) fprintf(to, "\n%*s", NAME - 1, ""), used = NAME - 1;
        used += 1 + display_width(text);
        fprintf(to, " %s", text);
    }
    if (shown < x->n_labels) fprintf(to, _("\n%*sand %lld more"), NAME, "", (long long)(x->n_labels - shown));
    fputc('\n', to);
}

/* ---- the model and the way ---- */

static void print_vocabulary(FILE *to, const qkv_model *m)
{
    static const char *const kinds[] = { N_("byte pairs"), N_("words"), N_("characters"),
                                         N_("tokens") }; /* in the order of qkv_token_kind */
    const qkv_tokenizer *source = qkv_model_source_tokenizer(m), *target = qkv_model_target_tokenizer(m);
    name_row(to, N_("vocabulary"));
    fprintf(to, _("%d %s"), qkv_tokenizer_size(source), _(kinds[qkv_tokenizer_kind(source)]));
    if (target != source) fprintf(to, _(", and %d of the target"), qkv_tokenizer_size(target));
    fputc('\n', to);
}

static void print_updates(FILE *to, int64_t epoch_steps, int64_t last_step)
{
    name_row(to, N_("updates"));
    if (last_step)
        fprintf(to, last_step == epoch_steps ? _("%lld, %lld an epoch: %.4g epoch\n") : _("%lld, %lld an epoch: %.4g epochs\n"),
                (long long)last_step, (long long)epoch_steps, (double)last_step / (double)epoch_steps);
    else fprintf(to, _("%lld an epoch, as many as --minutes allows\n"), (long long)epoch_steps);
}

/* As if they had been typed. */
static void print_chosen(FILE *to, qkv_training *t)
{
    char text[256];
    int used = NAME;
    const char *name;
    if (!qkv_training_chosen(t, 0)) return;
    name_row(to, N_("chosen"));
    for (int i = 0; (name = qkv_training_chosen(t, i)); i++) {
        const char *value = qkv_training_get(t, name);
        bool is_flag = value && !strcmp(value, "yes");
        snprintf(text, sizeof text, "--%s%s%s", name, is_flag ? "" : " ", !value || is_flag ? "" : value);
        if (i && used + 1 + display_width(text) > COLUMNS) fprintf(to, "\n%*s", NAME, ""), used = NAME;
        else if (i) fputc(' ', to), used++;
        used += fprintf(to, "%s", text);
    }
    fputc('\n', to);
}

void print_plan(FILE *to, qkv_training *t, int64_t epoch_steps, int64_t last_step)
{
    const qkv_training_text *x = qkv_training_text_of(t);
    const qkv_model *m = qkv_training_model(t);
    print_texts(to, x);
    if (x->n_labels) print_classes(to, x);
    print_vocabulary(to, m);
    name_row(to, N_("parameters"));
    fprintf(to, "%lld\n", (long long)qkv_params_count(qkv_model_params(m)));
    print_chosen(to, t);
    print_updates(to, epoch_steps, last_step);
}

/* ---- what it costs ---- */

void print_cost(FILE *to, const training_cost *c)
{
    struct rusage usage;
    char time[32];
    double each = c->seconds / (double)c->updates;
    getrusage(RUSAGE_SELF, &usage);
    name_row(to, N_("memory"));
    fprintf(to, _("%.0f MB, measured over %lld updates\n"), (double)usage.ru_maxrss / 1024, (long long)c->updates);
    name_row(to, N_("speed"));
    fprintf(to, _("%.0f %s/s, %.3f s an update\n"), (double)c->tokens / c->seconds, _(c->unit), each);
    name_row(to, N_("time"));
    if (!c->updates_left) {
        fputs(_("as --minutes says\n"), to);
        return;
    }
    format_duration(time, each * (double)c->updates_left);
    fprintf(to, _("%s for %lld updates, without validation\n"), time, (long long)c->updates_left);
}
