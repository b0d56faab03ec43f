/* help.c: the help texts and the manual page, from the tables of options. */
#include "options.h"

#include <stdio.h>
#include <string.h>

static const char about[] = "The Transformer of \"Attention Is All You Need\": compute attention, and see how it is computed.";

/* ---- help ---- */

static void print_option(const option *o)
{
    char left[48];
    snprintf(left, sizeof left, "--%s%s%s", o->name, o->value ? " " : "", o->value ? o->value : "");
    if (o->letter) printf("  -%c, %-18s %s\n", o->letter, left, o->help);
    else printf("      %-18s %s\n", left, o->help);
}

static void print_usage(const command *c)
{
    printf("usage: qkv %s", c->name);
    for (const option *o = c->options; o->name; o++) {
        if (o->plain) printf(o->required ? " %s" : " [%s]", o->value);
        else if (o->required) printf(" --%s %s", o->name, o->value);
    }
    puts(" [options]\n");
}

void print_command_help(const command *c)
{
    print_usage(c);
    printf("%s\n\noptions:\n", c->about);
    for (const option *o = c->options; o->name; o++) print_option(o);
    for (const option *o = common_options; o->name; o++) print_option(o);
    printf("\nexample:\n%s\n", c->example);
}

void print_help(void)
{
    printf("usage: qkv COMMAND [options]\n\n%s\n\ncommands:\n", about);
    for (int i = 0; commands[i]; i++) printf("  %-17s %s\n", commands[i]->name, commands[i]->summary);
    puts("\n\"qkv COMMAND --help\" tells more; \"qkv --version\" prints the version.\n"
         "Results go to standard output, everything else to standard error.");
}

/* ---- the manual page ---- */

/* Text as roff: a dash stays a dash, and no line starts with a control character. */
static void put_text(const char *text)
{
    for (bool start = true; *text; start = *text++ == '\n') {
        if (start && (*text == '.' || *text == '\'')) fputs("\\&", stdout);
        if (*text == '-') fputs("\\-", stdout);
        else if (*text == '\\') fputs("\\e", stdout);
        else putchar(*text);
    }
}

static void put_paragraphs(const char *text)
{
    const char *gap;
    while ((gap = strstr(text, "\n\n"))) {
        char paragraph[1024];
        snprintf(paragraph, sizeof paragraph, "%.*s", (int)(gap - text), text);
        put_text(paragraph);
        puts("\n.PP");
        text = gap + 2;
    }
    put_text(text);
    putchar('\n');
}

static void put_option(const option *o)
{
    puts(".TP");
    if (o->letter) printf("\\fB\\-%c\\fR, ", o->letter);
    fputs("\\fB\\-\\-", stdout);
    put_text(o->name);
    printf("\\fR%s%s%s\n", o->value ? " \\fI" : "", o->value ? o->value : "", o->value ? "\\fR" : "");
    put_text(o->help);
    putchar('\n');
}

static void put_command(const command *c)
{
    printf(".SS qkv %s\n", c->name);
    put_paragraphs(c->about);
    for (const option *o = c->options; o->name; o++) put_option(o);
    puts(".PP\nExample:\n.PP\n.nf");
    put_text(c->example);
    puts("\n.fi");
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
    printf(".TH QKV 1 \"\" \"qkv %s\" \"User Commands\"\n.SH NAME\nqkv \\- the Transformer on the command line\n", QKV_VERSION);
    puts(".SH SYNOPSIS\n.B qkv\n.I COMMAND\n.RI [ options ]\n.br\n.B qkv \\-\\-help\n.br\n.B qkv \\-\\-version\n.SH "
         "DESCRIPTION");
    put_text(about);
    puts("\nResults go to standard output, everything else to standard error.\n.SH COMMANDS");
    for (int i = 0; commands[i]; i++) put_command(commands[i]);
    puts(".SH OPTIONS\nEvery command has these:");
    for (const option *o = common_options; o->name; o++) put_option(o);
    put_exit_codes();
    puts(".SH ENVIRONMENT\n.TP\n.BR QKV_THREADS \", \" OMP_NUM_THREADS\nhow many threads to use; else one for each physical "
         "core\n"
         ".TP\n.B QKV_ISA\nthe instruction set to use, one of those that\n.B qkv info\nlists; else the best");
}
