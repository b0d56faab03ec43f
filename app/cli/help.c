/* help.c: the help texts and the manual page, from the tables of options. */
#include "options.h"
#include "../term/print.h"

#include <stdio.h>
#include <string.h>

static const char about[] = N_("Train, run and inspect Transformers on a CPU.");

static const char *const group_headings[] = { [NO_GROUP] = N_("other options"),
#define OPTION_GROUP_HEADING(name, heading) [name] = heading,
                                              OPTION_GROUPS(OPTION_GROUP_HEADING)
#undef OPTION_GROUP_HEADING
};
enum { GROUPS = sizeof group_headings / sizeof *group_headings };

/* ---- help ---- */

enum { LINE_WIDTH = 80, HELP_COLUMN = 25, PARAGRAPH_BYTES = 2048, MAX_PLAIN_OPTIONS = 14 };

static void print_words(const char *text, int column, int indent)
{
    print_wrapped(text, column, indent, LINE_WIDTH);
    putchar('\n');
}

/* The paragraph that *text starts with, its lines joined, as the catalogue of translations has it, and *text is past it; NULL
 * after the last. */
static const char *next_paragraph(const char **text, char joined[PARAGRAPH_BYTES])
{
    const char *gap = strstr(*text, "\n\n");
    size_t length = gap ? (size_t)(gap - *text) : strlen(*text);
    if (!length) return NULL;
    snprintf(joined, PARAGRAPH_BYTES, "%.*s", (int)length, *text);
    for (char *at = joined; (at = strchr(at, '\n'));) *at = ' ';
    *text += length + strspn(*text + length, "\n");
    return joined;
}

/* A choice lists its names first: "layer or rms (default: layer)". */
static const char *option_help(const option *o, char *text, size_t room)
{
    size_t n = 0;
    if (!o->names || (*o->help && *o->help != ' ')) return _(o->help);
    for (int i = 0; o->names[i] && n < room; i++)
        n += (size_t)snprintf(text + n, room - n, "%s%s", !i ? "" : o->names[i + 1] ? _(", ") : _(" or "), o->names[i]);
    if (n < room) snprintf(text + n, room - n, "%s", _(o->help));
    return text;
}

/* A long name has its help on the next line. */
static void print_option(const option *o)
{
    char letter[] = "    ", left[64], text[512];
    const char *help = option_help(o, text, sizeof text);
    if (o->letter) snprintf(letter, sizeof letter, "-%c, ", o->letter);
    int n = snprintf(left, sizeof left, "  %s--%s%s%s", letter, o->name, o->value ? " " : "", o->value ? o->value : "");
    if (n < HELP_COLUMN) printf("%-*s", HELP_COLUMN, left);
    else printf("%s\n%*s", left, HELP_COLUMN, "");
    print_words(help, HELP_COLUMN, HELP_COLUMN);
}

static bool is_shown(const option *o, int group, bool all) { return (int)o->group == group && (all || !o->is_rare); }

/* Gives how many there are, and puts them unless put is NULL. */
static int each_of_group(const command *c, int group, bool all, void (*put)(const option *o))
{
    int n = 0;
    for (const option *o = c->options; o->name; o++) {
        if (!is_shown(o, group, all)) continue;
        if (put) put(o);
        n++;
    }
    return n;
}

static int count_options(const command *c, bool all)
{
    int n = 0;
    for (int group = 0; group < GROUPS; group++) n += each_of_group(c, group, all, NULL);
    return n;
}

static void print_usage(const command *c)
{
    char line[512];
    size_t n = (size_t)snprintf(line, sizeof line, "%sqkv %s", _("usage: "), c->name);
    for (const option *o = c->options; o->name && n < sizeof line; o++) {
        if (o->plain) n += (size_t)snprintf(line + n, sizeof line - n, o->required ? " %s" : " [%s]", o->value);
        else if (o->required) n += (size_t)snprintf(line + n, sizeof line - n, " --%s %s", o->name, o->value);
    }
    if (n < sizeof line) snprintf(line + n, sizeof line - n, " %s", _("[options]"));
    print_words(line, 0, display_width(_("usage: ")));
    putchar('\n');
}

/* The short form has the first paragraph and the common options, under headings if there are more than MAX_PLAIN_OPTIONS. */
void print_command_help(const command *c, bool all)
{
    int n_options = count_options(c, true), n_shown = count_options(c, all);
    bool is_short = n_shown < n_options, has_headings = !is_short || n_shown > MAX_PLAIN_OPTIONS;
    char joined[PARAGRAPH_BYTES];
    const char *rest = N_("options"), *about_command = c->about;
    print_usage(c);
    for (const char *paragraph; (paragraph = next_paragraph(&about_command, joined)); putchar('\n')) {
        print_words(_(paragraph), 0, 0);
        if (is_short) about_command = "";
    }
    for (int group = NO_GROUP + 1; has_headings && group < GROUPS; group++) {
        if (!each_of_group(c, group, all, NULL)) continue;
        printf(_("%s:\n"), _(group_headings[group]));
        each_of_group(c, group, all, print_option);
        putchar('\n');
        rest = group_headings[NO_GROUP];
    }
    printf(_("%s:\n"), _(rest));
    for (int group = NO_GROUP + 1; !has_headings && group < GROUPS; group++) each_of_group(c, group, all, print_option);
    each_of_group(c, NO_GROUP, all, print_option);
    for (const option *o = common_options; o->name; o++) print_option(o);
    if (is_short) printf(_("\n\"qkv %s --help --all\" lists all %d options.\n"), c->name, n_options);
    printf("\n%s\n%s\n", _("example:"), c->example);
}

static bool is_common(const command *c)
{
    for (int i = 0; common_commands[i]; i++)
        if (c == common_commands[i]) return true;
    return false;
}

static void print_summary(const command *c)
{
    int column = printf("  %-18s", c->name);
    print_words(_(c->summary), column, column);
}

void print_help(bool all)
{
    const command_heading *heading = command_headings;
    int n = 0;
    printf("%sqkv COMMAND %s\n\n", _("usage: "), _("[options]"));
    print_words(_(about), 0, 0);
    putchar('\n');
    for (const char *text = NULL; commands[n]; n++) {
        if (heading->first == commands[n]) text = heading++->text;
        if (!all && !is_common(commands[n])) continue;
        if (text) printf(all && n ? "\n" : ""), printf(_("%s:\n"), _(text));
        text = NULL;
        print_summary(commands[n]);
    }
    putchar('\n');
    if (all)
        print_words(_("Results go to standard output, everything else to standard error. --out may be spelled --output; what "
                      "follows -- is text, even where it starts with a dash."),
                    0, 0);
    else printf(_("\"qkv help COMMAND\" shows its options; \"qkv help all\" lists all %d commands.\n"), n);
}

void print_jobs_help(const char *name)
{
    size_t length = strlen(name);
    printf("%sqkv %s %s %s\n\n", _("usage: "), name, _("JOB"), _("[options]"));
    for (int i = 0; commands[i]; i++)
        if (!strncmp(commands[i]->name, name, length) && commands[i]->name[length] == ' ') print_summary(commands[i]);
    printf(_("\n\"qkv help %s JOB\" shows the options of one.\n"), name);
}

/* ---- the manual page ---- */

/* Text as roff: a dash stays a dash, and no line starts with a control character. */
static void put_bytes(const char *text, size_t length)
{
    const char *end = text + length;
    if (*text == '.' || *text == '\'') fputs("\\&", stdout);
    for (; text < end; text++)
        if (*text == '-') fputs("\\-", stdout);
        else if (*text == '\\') fputs("\\e", stdout);
        else putchar(*text);
}

/* Chinese has no spaces: roff is told where a line may end. */
static void put_roff(const char *text)
{
    for (size_t bytes; *text; text += bytes) {
        bytes = piece_bytes(text);
        put_bytes(text, bytes);
        if (text[bytes] && text[bytes] != ' ' && *text != ' ') fputs("\\:", stdout);
    }
    putchar('\n');
}

static void put_paragraphs(const char *text)
{
    char joined[PARAGRAPH_BYTES];
    const char *between = "";
    for (const char *paragraph; (paragraph = next_paragraph(&text, joined)); between = ".PP\n") {
        fputs(between, stdout);
        put_roff(_(paragraph));
    }
}

/* Its lines start with two spaces, where the manual has its own margin. */
static void put_example(const char *lines)
{
    printf(".PP\n%s\n.PP\n.nf\n", _("Example:"));
    for (size_t length; *lines; lines += length + (lines[length] == '\n')) {
        size_t margin = strspn(lines, " ") < 2 ? 0 : 2;
        length = strcspn(lines, "\n");
        put_bytes(lines + margin, length - margin);
        putchar('\n');
    }
    puts(".fi");
}

static void put_option(const option *o)
{
    char text[512];
    const char *help = option_help(o, text, sizeof text);
    puts(".TP");
    if (o->letter) printf("\\fB\\-%c\\fR, ", o->letter);
    fputs("\\fB\\-\\-", stdout);
    put_bytes(o->name, strlen(o->name));
    printf("\\fR%s%s%s\n", o->value ? " \\fI" : "", o->value ? o->value : "", o->value ? "\\fR" : "");
    put_roff(help);
}

static void put_command(const command *c)
{
    bool is_grouped = false;
    printf(".SS qkv %s\n", c->name);
    put_paragraphs(c->about);
    for (int i = 1; i <= GROUPS; i++) { /* those of no group come last */
        int group = i % GROUPS;
        if (!each_of_group(c, group, true, NULL)) continue;
        is_grouped = is_grouped || group;
        if (is_grouped) printf(".PP\n.I %s\n", _(group_headings[group]));
        each_of_group(c, group, true, put_option);
    }
    put_example(c->example);
}

static void put_exit_codes(void)
{
    printf(".SH %s\n", _("EXIT STATUS"));
#define CODE(name, number, words) printf(".TP\n.B %d\n%s\n", number, _(words));
    QKV_STATUS_LIST(CODE)
#undef CODE
}

static void put_variables(void)
{
    printf(".SH %s\n.TP\n.BR QKV_THREADS \", \" OMP_NUM_THREADS\n", _("ENVIRONMENT"));
    put_roff(_("number of threads (default: physical cores)"));
    puts(".TP\n.B QKV_ISA");
    put_roff(_("instruction set, one of those that \"qkv info\" lists (default: the best)"));
    puts(".TP\n.B QKV_PACKED");
    put_roff(
        _("memory for packed copies of weights, in bytes or with K, M or G (default: 1G); 0 = none. Packed weights are faster "
          "and give the same results."));
    puts(".TP\n.B QKV_MPI");
    put_roff(_("plugin for several ranks: openmpi, mpich or none (default: the launcher's)"));
    puts(".TP\n.B QKV_MPI_SILENCE");
    put_roff(_("seconds, 2 to 3600, after which a silent rank is reported (default: 20)"));
    puts(".TP\n.BR LC_ALL \", \" LC_MESSAGES \", \" LANG");
    put_roff(_("The first that is set chooses the language of messages, unless --lang does: Chinese if it starts with zh, else "
               "English. Results, JSON and CSV are the same in both."));
}

void print_manual(void)
{
    printf(".TH QKV 1 \"\" \"qkv %s\" \"%s\"\n.ad l\n.SH %s\n", QKV_VERSION_STRING, _("User Commands"), _("NAME"));
    printf("qkv \\- %s\n.SH %s\n", _("the Transformer on the command line"), _("SYNOPSIS"));
    printf(".B qkv\n.I COMMAND\n%s\n.br\n.B qkv \\-\\-help\n.br\n.B qkv \\-\\-version\n", _("[options]"));
    printf(".SH %s\n", _("DESCRIPTION"));
    put_roff(_(about));
    put_roff(_("Results go to standard output, everything else to standard error."));
    printf(".SH %s\n", _("COMMANDS"));
    for (int i = 0; commands[i]; i++) put_command(commands[i]);
    printf(".SH %s\n%s\n", _("OPTIONS"), _("Every command has these:"));
    for (const option *o = common_options; o->name; o++) put_option(o);
    puts(".PP");
    put_roff(_("The option --out may be spelled --output. What follows -- is text, even where it starts with a dash."));
    put_exit_codes();
    put_variables();
}

/* ---- for translators ---- */

static void list_text(const char *text)
{
    fputs("N_(\"", stdout);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') putchar('\\');
        putchar(*text);
    }
    puts("\")");
}

static void list_options(const option *o)
{
    for (; o->name; o++)
        if (*o->help) list_text(o->help);
}

void list_texts(void)
{
    char joined[PARAGRAPH_BYTES];
    for (int i = 0; commands[i]; i++) {
        const char *rest = commands[i]->about;
        list_text(commands[i]->summary);
        for (const char *paragraph; (paragraph = next_paragraph(&rest, joined));) list_text(paragraph);
        list_options(commands[i]->options);
    }
    list_options(common_options);
    for (int i = 0; i < GROUPS; i++) list_text(group_headings[i]);
#define WORDS(name, number, words) list_text(words);
    QKV_STATUS_LIST(WORDS)
#undef WORDS
}
