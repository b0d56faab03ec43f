/* errors.c: errors as sentences on standard error. */
#include "errors.h"

#include "language.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *command_name;
static bool is_holding;
static char held[2048];

void hold_errors(bool hold) { is_holding = hold; }
const char *held_error(void) { return held; }

void name_errors(const char *command) { command_name = command; }

static void print_error(const char *sentence)
{
    if (is_holding) {
        if (!*held) snprintf(held, sizeof held, "%s", sentence);
        return;
    }
    fputs("qkv: ", stderr);
    size_t length = command_name ? strlen(command_name) : 0;
    /* The library names its call, which may be the command's name already. */
    bool named = command_name && !strncmp(sentence, command_name, length) && sentence[length] == ':';
    if (command_name && !named) fprintf(stderr, "%s: ", command_name);
    fprintf(stderr, "%s\n", sentence);
}

qkv_status fail(qkv_status status, const char *format, ...)
{
    char *sentence = NULL;
    va_list args;
    va_start(args, format);
    bool has_memory = vasprintf(&sentence, translated(format), args) >= 0;
    va_end(args);
    print_error(has_memory ? sentence : translated("out of memory"));
    if (has_memory) free(sentence);
    return status;
}

qkv_status library_failed(void)
{
    print_error(library_error());
    return qkv_error_status();
}
