/* training_cost.c: what a training costs, once it runs. */
#include "training_cost.h"

#include "../term/language.h"
#include "../term/print.h"
#include "../term/progress.h"

#include <sys/resource.h>

/* Under the rows of qkv_training_summary(). */
static void name_row(FILE *to, const char *name) { fprintf(to, "%s%*s", _(name), 12 - display_width(_(name)), ""); }

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
