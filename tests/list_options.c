/* list_options.c: the options of "qkv train" that qkv/transformer.def says, a line each: job, name, a value that is not the one
 * without it ("-" for a flag), key in config.json, and that value there. */
#include <qkv/model.h>

#include <stdio.h>
#include <string.h>

static const struct {
    const char *member, *key;
} keys[] = {
#define QKV_OPTION(member, kind, key, ...) { #member, key },
#include <qkv/transformer.def>
};

static const struct {
    const char *member;
    int value;
    const char *word, *name;
} words[] = {
#define QKV_OPTION_VALUE(member, value, word, name, ...) { #member, value, word, name },
#include <qkv/transformer.def>
};

static const char *key_of(const char *member)
{
    size_t i = 0;
    while (strcmp(keys[i].member, member)) i++;
    return keys[i].key;
}

static void list(const char *member, const char *kind, const char *name, const char *job)
{
    const char *value = "2", *stored = "2";
    char word[64] = "";
    if (!strcmp(kind, "NUMBER")) value = stored = "0.25";
    if (!strcmp(kind, "FLAG")) value = "-", stored = strcmp(key_of(member), "source_eos") ? "true" : "false";
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(words[i].member, member) || words[i].value != 1) continue;
        value = words[i].name;
        snprintf(word, sizeof word, "\"%s\"", words[i].word);
        stored = word;
    }
    printf("%s %s %s %s %s\n", job, name, value, key_of(member), stored);
}

int main(void)
{
#define QKV_TRAIN_OPTION(member, kind, name, value, job, ...) list(#member, #kind, name, #job);
#include <qkv/transformer.def>
    return 0;
}
