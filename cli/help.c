/* help.c: the help texts and the manual page, from the tables of options. */
#include "options.h"

#include <stdio.h>
#include <string.h>

static const char about[] = "The Transformer of \"Attention Is All You Need\": train it on your text, use it to translate, "
                            "classify, generate and embed, and see what it attends to.";

static const char *const group_headings[] = { [NO_GROUP] = "other options",
#define OPTION_GROUP_HEADING(name, heading) [name] = heading,
                                              OPTION_GROUPS(OPTION_GROUP_HEADING)
#undef OPTION_GROUP_HEADING
};
enum { GROUPS = sizeof group_headings / sizeof *group_headings };

/* ---- help ---- */

enum { LINE_WIDTH = 80, HELP_COLUMN = 25 };

/* The words of a text, which starts at a column, in lines no wider than a terminal; all but the first are indented. */
static void print_words(const char *text, size_t length, int column, int indent)
{
    const char *end = text + length;
    for (bool is_first = true; text < end; is_first = false) {
        int word = (int)strcspn(text, " \n");
        if (!is_first && column + 1 + word > LINE_WIDTH) {
            printf("\n%*s", indent, "");
            column = indent;
        } else if (!is_first) {
            putchar(' ');
            column++;
        }
        printf("%.*s", word, text);
        column += word;
        text += word;
        text += strspn(text, " \n");
    }
    putchar('\n');
}

static size_t paragraph_length(const char *text)
{
    const char *gap = strstr(text, "\n\n");
    return gap ? (size_t)(gap - text) : strlen(text);
}

static void print_paragraphs(const char *text)
{
    for (size_t length; (length = paragraph_length(text)); text += length + strspn(text + length, "\n")) {
        print_words(text, length, 0, 0);
        putchar('\n');
    }
}

/* "layer or rms; ...": the names of a choice before what its help says besides; else the help as it is. */
static const char *option_help(const option *o, char *text, size_t room)
{
    size_t n = 0;
    if (!o->names || (*o->help && *o->help != ';')) return o->help;
    for (int i = 0; o->names[i] && n < room; i++)
        n += (size_t)snprintf(text + n, room - n, "%s%s", !i ? "" : o->names[i + 1] ? ", " : " or ", o->names[i]);
    if (n < room) snprintf(text + n, room - n, "%s", o->help);
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
    print_words(help, strlen(help), HELP_COLUMN, HELP_COLUMN);
}

static bool has_group(const command *c, int group)
{
    for (const option *o = c->options; o->name; o++)
        if ((int)o->group == group) return true;
    return false;
}

static void each_of_group(const command *c, int group, void (*put)(const option *o))
{
    for (const option *o = c->options; o->name; o++)
        if ((int)o->group == group) put(o);
}

static void print_usage(const command *c)
{
    char line[512];
    size_t n = (size_t)snprintf(line, sizeof line, "usage: qkv %s", c->name);
    for (const option *o = c->options; o->name && n < sizeof line; o++) {
        if (o->plain) n += (size_t)snprintf(line + n, sizeof line - n, o->required ? " %s" : " [%s]", o->value);
        else if (o->required) n += (size_t)snprintf(line + n, sizeof line - n, " --%s %s", o->name, o->value);
    }
    if (n < sizeof line) snprintf(line + n, sizeof line - n, " [options]");
    print_words(line, strlen(line), 0, (int)strlen("usage: "));
    putchar('\n');
}

void print_command_help(const command *c)
{
    const char *rest = "options";
    print_usage(c);
    print_paragraphs(c->about);
    for (int group = NO_GROUP + 1; group < GROUPS; group++) {
        if (!has_group(c, group)) continue;
        printf("%s:\n", group_headings[group]);
        each_of_group(c, group, print_option);
        putchar('\n');
        rest = group_headings[NO_GROUP];
    }
    printf("%s:\n", rest);
    each_of_group(c, NO_GROUP, print_option);
    for (const option *o = common_options; o->name; o++) print_option(o);
    printf("\nexample:\n%s\n", c->example);
}

void print_help(void)
{
    const command_heading *heading = command_headings;
    puts("usage: qkv COMMAND [options]\n");
    print_words(about, strlen(about), 0, 0);
    for (int i = 0; commands[i]; i++) {
        if (heading->first == commands[i]) printf("\n%s:\n", heading++->text);
        int column = printf("  %-18s", commands[i]->name);
        print_words(commands[i]->summary, strlen(commands[i]->summary), column, column);
    }
    puts("\n\"qkv COMMAND --help\" tells more; \"qkv --version\" prints the version.\n"
         "Results go to standard output, everything else to standard error. --out may be\n"
         "spelled --output; what follows -- is text, even where it starts with a dash.");
}

/* ---- the manual page ---- */

/* Text as roff: a dash stays a dash, and no line starts with a control character. */
static void put_roff(const char *text, size_t length)
{
    const char *end = text + length;
    for (bool start = true; text < end; start = *text++ == '\n') {
        if (start && (*text == '.' || *text == '\'')) fputs("\\&", stdout);
        if (*text == '-') fputs("\\-", stdout);
        else if (*text == '\\') fputs("\\e", stdout);
        else putchar(*text);
    }
}

static void put_paragraphs(const char *text)
{
    const char *between = "";
    for (size_t length; (length = paragraph_length(text)); text += length + strspn(text + length, "\n")) {
        fputs(between, stdout);
        put_roff(text, length);
        putchar('\n');
        between = ".PP\n";
    }
}

/* Its lines start with two spaces, where the manual has its own margin. */
static void put_example(const char *lines)
{
    puts(".PP\nExample:\n.PP\n.nf");
    for (size_t length; *lines; lines += length + (lines[length] == '\n')) {
        size_t margin = strspn(lines, " ") < 2 ? 0 : 2;
        length = strcspn(lines, "\n");
        put_roff(lines + margin, length - margin);
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
    put_roff(o->name, strlen(o->name));
    printf("\\fR%s%s%s\n", o->value ? " \\fI" : "", o->value ? o->value : "", o->value ? "\\fR" : "");
    put_roff(help, strlen(help));
    putchar('\n');
}

static void put_command(const command *c)
{
    bool is_grouped = false;
    printf(".SS qkv %s\n", c->name);
    put_paragraphs(c->about);
    for (int i = 1; i <= GROUPS; i++) { /* those of no group come last */
        int group = i % GROUPS;
        if (!has_group(c, group)) continue;
        is_grouped = is_grouped || group;
        if (is_grouped) printf(".PP\n.I %s\n", group_headings[group]);
        each_of_group(c, group, put_option);
    }
    put_example(c->example);
}

static void put_exit_codes(void)
{
    puts(".SH EXIT STATUS");
#define CODE(name, number, words) printf(".TP\n.B %d\n%s\n", number, words);
    QKV_STATUS_LIST(CODE)
#undef CODE
}

void print_manual(void)
{
    printf(".TH QKV 1 \"\" \"qkv %s\" \"User Commands\"\n.SH NAME\nqkv \\- the Transformer on the command line\n",
           QKV_VERSION_STRING);
    puts(".SH SYNOPSIS\n.B qkv\n.I COMMAND\n.RI [ options ]\n.br\n.B qkv \\-\\-help\n.br\n.B qkv \\-\\-version\n.SH "
         "DESCRIPTION");
    put_roff(about, strlen(about));
    puts("\nResults go to standard output, everything else to standard error.\n.SH COMMANDS");
    for (int i = 0; commands[i]; i++) put_command(commands[i]);
    puts(".SH OPTIONS\nEvery command has these:");
    for (const option *o = common_options; o->name; o++) put_option(o);
    puts(".PP\nThe option \\-\\-out may be spelled \\-\\-output. What follows \\-\\- is text, even where it starts with a "
         "dash.");
    put_exit_codes();
    puts(".SH ENVIRONMENT\n.TP\n.BR QKV_THREADS \", \" OMP_NUM_THREADS\nhow many threads to use; else one for each physical "
         "core\n"
         ".TP\n.B QKV_ISA\nthe instruction set to use, one of those that\n.B qkv info\nlists; else the best\n"
         ".TP\n.B QKV_PACKED\nbytes, or with K, M or G behind, that weights may take a second time, in the order that large "
         "products read them: faster, and the same bits; 0: none; else 1G");
}
