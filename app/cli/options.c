/* options.c: reads the arguments of a command by its table. */
#include "options.h"
#include "suggestions.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

common_values common;
const option common_options[] = {
    { "threads", 't', .value = "N", .help = "number of threads (default: physical cores)", .count = &common.threads },
    { "lang", .value = "LANGUAGE", .help = "en, zh or locale (default: locale)", .choice = &common.language,
      .names = language_names },
    { "help", 'h', .help = "print help; --help --all lists all options", .flag = &common.help },
    { 0 },
};

/* ---- values ---- */

static qkv_status read_count(const option *o, const char *text)
{
    char *end;
    errno = 0;
    long n = strtol(text, &end, 10);
    if (!isdigit((unsigned char)*text) || *end || errno || n < 1 || n > INT_MAX)
        return fail(QKV_USAGE, "--%s: \"%s\" is not a whole number from 1", o->name, text);
    *o->count = (int)n;
    return QKV_OK;
}

static qkv_status read_whole_option(const option *o, const char *text)
{
    char *end;
    errno = 0;
    long long n = strtoll(text, &end, 10);
    if (!isdigit((unsigned char)*text) || *end || errno)
        return fail(QKV_USAGE, "--%s: \"%s\" is not a whole number from 0", o->name, text);
    *o->whole = n;
    return QKV_OK;
}

static qkv_status read_number_option(const option *o, const char *text)
{
    char *end;
    float x = strtof(text, &end);
    if (end == text || *end || !isfinite(x)) return fail(QKV_USAGE, "--%s: \"%s\" is not a finite number", o->name, text);
    *o->number = x;
    return QKV_OK;
}

static qkv_status read_choice(const option *o, const char *text)
{
    char list[256] = "";
    for (int i = 0; o->names[i]; i++) {
        if (!strcmp(text, o->names[i])) return *o->choice = i, QKV_OK;
        size_t length = strlen(list);
        snprintf(list + length, sizeof list - length, "%s%s", i ? ", " : "", o->names[i]);
    }
    return fail(QKV_USAGE, "--%s: \"%s\" is not one of %s", o->name, text, list);
}

static bool is_name_of(const option *o, const char *text)
{
    for (int i = 0; text && o->names[i]; i++)
        if (!strcmp(text, o->names[i])) return true;
    return false;
}

static qkv_status read_value(const option *o, const char *text)
{
    if (o->count) return read_count(o, text);
    if (o->whole) return read_whole_option(o, text);
    if (o->number) return read_number_option(o, text);
    if (o->choice) return read_choice(o, text);
    if (!*text && !o->may_be_empty) return fail(QKV_USAGE, "--%s: its value is empty", o->name);
    *o->text = text;
    return QKV_OK;
}

void option_text(const option *o, char *text, size_t room)
{
    size_t used = 0;
    *text = '\0';
    if (o->flag) snprintf(text, room, "%s", *o->flag ? "yes" : "");
    else if (o->count) snprintf(text, room, "%d", *o->count);
    else if (o->whole) snprintf(text, room, "%lld", (long long)*o->whole);
    else if (o->number) snprintf(text, room, "%.7g", (double)*o->number);
    else if (o->choice) snprintf(text, room, "%s", o->names[*o->choice]);
    else if (o->text) snprintf(text, room, "%s", *o->text ? *o->text : "");
    for (int i = 0; o->list && i < o->list->n && used < room; i++)
        used += (size_t)snprintf(text + used, room - used, "%s%s", i ? " " : "", o->list->at[i]);
}

/* ---- arguments ---- */

static const char *seen[128];
static int n_seen;

static void remember(const option *o)
{
    if (n_seen < (int)(sizeof seen / sizeof *seen)) seen[n_seen++] = o->name;
}

bool was_given(const char *name)
{
    for (int i = 0; i < n_seen; i++)
        if (!strcmp(seen[i], name)) return true;
    return false;
}

/* "--name" or "--name=..."; *value is what follows, or NULL. */
static bool is_named(const char *argument, const char *name, const char **value)
{
    size_t length = strlen(name);
    if (strncmp(argument + 2, name, length)) return false;
    *value = argument[2 + length] == '=' ? argument + 3 + length : NULL;
    return *value || !argument[2 + length];
}

/* The same or "-n", "-n...". Many programs spell --out as --output. */
static bool matches(const option *o, const char *argument, const char **value)
{
    if (argument[1] == '-')
        return is_named(argument, o->name, value) || (!strcmp(o->name, "out") && is_named(argument, "output", value));
    *value = argument[1] && argument[2] ? argument + 2 : NULL;
    return o->letter && argument[1] == o->letter;
}

static const option *find_option(const option *table, const char *argument, const char **value)
{
    for (const option *o = table; o->name; o++)
        if (matches(o, argument, value)) return o;
    return NULL;
}

/* How many arguments --lang takes at this place, 0 where it is something else; its value, "" where it has none. */
static int language_at(char **arguments, const char **value)
{
    if (!*arguments || strncmp(*arguments, "--", 2) || !is_named(*arguments, "lang", value)) return 0;
    if (*value) return 1;
    *value = arguments[1] ? arguments[1] : "";
    return arguments[1] ? 2 : 1;
}

char **choose_language(char **arguments)
{
    const char *value;
    language wish = LANGUAGE_OF_LOCALE;
    for (char **a = arguments; *a && strcmp(*a, "--"); a++)
        for (int i = 0; language_at(a, &value) && language_names[i]; i++)
            if (!strcmp(value, language_names[i])) wish = (language)i;
    if (!speak(wish) && wish == CHINESE)
        fputs("qkv: the Chinese texts are not where the command was installed, so this is in English\n", stderr);
    int taken = language_at(arguments, &value);
    if (taken && read_value(find_option(common_options, "--lang", &(const char *){ NULL }), value)) return NULL;
    return arguments + taken;
}

/* The flag that "--no-NAME" turns off, of "no-NAME" "--NAME"; NULL: none. */
static const option *find_flag_off(const option *table, const char *argument)
{
    for (const option *o = table; o->name; o++) {
        bool is_no = !strncmp(o->name, "no-", 3);
        const char *off = is_no ? o->name + 3 : o->name, *said = is_no ? argument + 2 : argument + 5;
        if (o->can_be_off && (is_no || !strncmp(argument, "--no-", 5)) && !strcmp(said, off)) return o;
    }
    return NULL;
}

/* A list is one run of arguments, up to the next option; value is the first when it came after "=". A first text may start
 * with a dash. Gives the last argument it took, NULL on error. */
static char **read_list_option(const option *o, char **arguments, const char *value)
{
    value_list *l = o->list;
    if (l->n) return fail(QKV_USAGE, "--%s is given twice: put all values after the first", o->name), NULL;
    if (value) *arguments-- = (char *)value;
    bool may_start = value || o->may_be_empty;
    for (l->at = arguments + 1; *++arguments && ((may_start && !l->n) || **arguments != '-'); l->n++)
        if (!**arguments && !o->may_be_empty) return fail(QKV_USAGE, "--%s: its value is empty", o->name), NULL;
    if (!l->n) return fail(QKV_USAGE, "--%s needs a value: %s", o->name, o->value), NULL;
    return arguments - 1;
}

static bool is_missing(const option *o)
{
    bool is_required = o->required && !(o->optional_with && *o->optional_with);
    return is_required && (o->list ? !o->list->n : !*o->text);
}

/* Values without a name, wherever they stand, side by side; there is room for all arguments. */
static char **operands;

static bool make_room_for_operands(char **arguments)
{
    size_t n = 1;
    while (*arguments++) n++;
    return (operands = calloc(n, sizeof *operands));
}

/* A folder among the values without a name is probably the model, for which -m was forgotten. */
static qkv_status check_required(const command *c)
{
    const option *o = c->options;
    while (o->name && !is_missing(o)) o++;
    if (!o->name) return QKV_OK;
    for (const option *p = c->options; o->letter == 'm' && p->name; p++) {
        const char *first = p->plain && p->list && p->list->n ? p->list->at[0] : p->plain && p->text ? *p->text : NULL;
        struct stat about;
        if (first && !stat(first, &about) && S_ISDIR(about.st_mode))
            return fail(QKV_USAGE, "--%s is missing: did you mean \"-m %s\"?", o->name, first);
    }
    return fail(QKV_USAGE, "--%s is missing: see \"qkv %s --help\"", o->name, c->name);
}

static qkv_status add_operand(const option *o, char *argument)
{
    if (!*argument && !o->may_be_empty) return fail(QKV_USAGE, "--%s: its value is empty", o->name);
    o->list->at = operands;
    operands[o->list->n++] = argument;
    return QKV_OK;
}

/* Values without a name belong to the first option that takes such and has none; all of them to a list. */
static qkv_status read_plain(const command *c, char *argument)
{
    bool is_text = false;
    for (const option *o = c->options; o->name; o++) {
        if (!o->plain) continue;
        is_text = is_text || o->may_be_empty;
        if (was_given(o->name) && !(o->list && o->list->at == operands)) continue;
        if (!was_given(o->name)) remember(o);
        return o->list ? add_operand(o, argument) : read_value(o, argument);
    }
    if (is_text) return fail(QKV_USAGE, "unexpected argument \"%s\": put quotes around a text of several words", argument);
    for (const option *o = c->options; o->name; o++)
        if (is_missing(o))
            return fail(QKV_USAGE, "unexpected argument \"%s\": did you mean \"--%s %s\"?", argument, o->name, argument);
    return fail(QKV_USAGE, "unexpected argument \"%s\": see \"qkv %s --help\"", argument, c->name);
}

/* A number begins no option: "-1 0 1" is an array. */
static bool is_option(const char *argument)
{
    return argument[0] == '-' && argument[1] && !isdigit((unsigned char)argument[1]) && argument[1] != '.';
}

qkv_status parse_options(const command *c, char **arguments)
{
    if (!make_room_for_operands(arguments)) return fail(QKV_MEMORY, "out of memory");
    for (bool only_operands = false; *arguments; arguments++) {
        const char *argument = *arguments, *value;
        if (!only_operands && (only_operands = !strcmp(argument, "--"))) continue;
        if (only_operands || !is_option(argument)) {
            qkv_status status = read_plain(c, *arguments);
            if (status) return status;
            continue;
        }
        const option *o = find_option(c->options, argument, &value);
        if (!o) o = find_option(common_options, argument, &value);
        const option *off = o ? NULL : find_flag_off(c->options, argument);
        if (off) {
            remember(off);
            *off->flag = false;
            continue;
        }
        if (!o) return unknown_option(c, argument);
        if (o->letter == 'm' && o->text && was_given(o->name))
            return fail(QKV_USAGE, "--%s is given twice: this command takes one", o->name);
        remember(o);
        if (o->flag) {
            if (value) return fail(QKV_USAGE, "--%s takes no value", o->name);
            *o->flag = true;
            if (common.help) return common.all = arguments[1] && !strcmp(arguments[1], "--all"), QKV_OK;
            continue;
        }
        if (o->list) {
            if (!(arguments = read_list_option(o, arguments, value))) return QKV_USAGE;
            continue;
        }
        if (o->without_value && !value && !is_name_of(o, arguments[1])) {
            *o->choice = o->without_value;
            continue;
        }
        if (!value && !(value = *++arguments)) return fail(QKV_USAGE, "--%s needs a value: %s", o->name, o->value);
        qkv_status status = read_value(o, value);
        if (status) return status;
    }
    return check_required(c);
}
