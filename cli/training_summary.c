/* training_summary.c: what a training is about to do: its data, its model, its length; and once it runs, what it costs. */
#include "training.h"

#include "labelled.h"
#include "term/print.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

enum { NAME = 12, COLUMNS = 80, MOST_SHOWN = 40, LABEL_COLUMNS = 24 };

static void name_row(FILE *to, const char *name) { fprintf(to, "%-*s", NAME, name); }

/* ---- the data ---- */

static void print_texts(FILE *to, const training_job *j)
{
    const training_data *d = &j->read;
    long long used = qkv_pairs_count(j->pairs), empty = d->empty, too_long = d->too_long;
    name_row(to, d->noun);
    if (d->parts) fprintf(to, "%lld, as %lld %s", (long long)d->used, used, d->parts);
    else fprintf(to, "%lld", used);
    if (empty || too_long) fprintf(to, " of %lld; left out:", (d->parts ? d->used : used) + empty + too_long);
    if (empty) fprintf(to, " %lld empty", empty);
    if (too_long) fprintf(to, "%s %lld longer than --max-length", empty ? "," : "", too_long);
    fputc('\n', to);
    if (!d->valid) return;
    name_row(to, "validation");
    fprintf(to, "%lld\n", (long long)d->valid);
}

/* "NAME (COUNT)", cut where a name is too long to be one. */
static void format_class(const label_set *l, int i, char *text, size_t room)
{
    char name[4 * LABEL_COLUMNS + 1];
    size_t length = 0, bytes;
    int width = 0;
    for (const char *c = l->names[i]; *c && length + 4 < sizeof name; c += bytes, length += bytes) {
        char one[5] = "";
        if (qkv_utf8_decode(c, strlen(c), &bytes) < 0) break;
        memcpy(one, c, bytes);
        if ((width += display_width(one)) > LABEL_COLUMNS) break;
        memcpy(name + length, c, bytes);
    }
    name[length] = '\0';
    snprintf(text, room, "%s%s (%lld)", name, l->names[i][length] ? "..." : "", (long long)l->counts[i]);
}

/* As many lines as it takes, each within the columns. */
static void print_classes(FILE *to, const label_set *l)
{
    char text[256];
    int shown = l->n > MOST_SHOWN ? MOST_SHOWN : l->n, used = NAME;
    name_row(to, "classes");
    used += fprintf(to, "%d:", l->n);
    for (int i = 0; i < shown; i++) {
        format_class(l, i, text, sizeof text - 8);
        if (i + 1 < l->n) strcat(text, ",");
        if (used + 1 + display_width(text) > COLUMNS) fprintf(to, "\n%*s", NAME - 1, ""), used = NAME - 1;
        used += 1 + display_width(text);
        fprintf(to, " %s", text);
    }
    if (shown < l->n) fprintf(to, "\n%*sand %d more", NAME, "", l->n - shown);
    fputc('\n', to);
}

/* ---- the model and the way ---- */

static void print_vocabulary(FILE *to, const qkv_model *m)
{
    static const char *const kinds[] = { "byte pairs", "words", "characters", "tokens" }; /* in the order of qkv_token_kind */
    const qkv_tokenizer *source = qkv_model_source_tokenizer(m), *target = qkv_model_target_tokenizer(m);
    name_row(to, "vocabulary");
    fprintf(to, "%d %s", qkv_tokenizer_size(source), kinds[qkv_tokenizer_kind(source)]);
    if (target != source) fprintf(to, ", and %d of the target", qkv_tokenizer_size(target));
    fputc('\n', to);
}

static void print_updates(FILE *to, int64_t epoch_steps, int64_t last_step)
{
    name_row(to, "updates");
    if (last_step)
        fprintf(to, "%lld, %lld an epoch: %.4g epoch%s\n", (long long)last_step, (long long)epoch_steps,
                (double)last_step / (double)epoch_steps, last_step == epoch_steps ? "" : "s");
    else fprintf(to, "%lld an epoch, as many as --minutes allows\n", (long long)epoch_steps);
}

void print_plan(FILE *to, const training_job *j, int64_t epoch_steps, int64_t last_step)
{
    print_texts(to, j);
    if (j->read.labels) print_classes(to, j->read.labels);
    print_vocabulary(to, j->model);
    name_row(to, "parameters");
    fprintf(to, "%lld\n", (long long)qkv_params_count(qkv_model_params(j->model)));
    print_updates(to, epoch_steps, last_step);
}

/* ---- what it costs ---- */

void print_cost(FILE *to, const training_cost *c)
{
    struct rusage usage;
    char time[32];
    double each = c->seconds / (double)c->updates;
    getrusage(RUSAGE_SELF, &usage);
    name_row(to, "memory");
    fprintf(to, "%.0f MB, measured over %lld updates\n", (double)usage.ru_maxrss / 1024, (long long)c->updates);
    name_row(to, "speed");
    fprintf(to, "%.0f %s/s, %.3f s an update\n", (double)c->tokens / c->seconds, c->unit ? c->unit : "target tokens", each);
    name_row(to, "time");
    format_duration(time, c->updates_left ? each * (double)c->updates_left : 60 * (double)training.minutes);
    if (c->updates_left) fprintf(to, "%s for %lld updates, without validation\n", time, (long long)c->updates_left);
    else fprintf(to, "%s, as --minutes says\n", time);
}
