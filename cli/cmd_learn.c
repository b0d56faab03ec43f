/* cmd_learn.c: qkv learn: lessons about attention. */
#include "../learn/lesson.h"
#include "options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BY_LOCALE, ENGLISH, CHINESE };
static const char *const languages[] = { "locale", "en", "zh", NULL };

static struct {
    const char *lesson, *out;
    bool answer;
    int language;
} given;

static const option options[] = {
    { "lesson", .value = "LESSON", .help = "a number, or imdb; without one, the list of lessons", .plain = true,
      .text = &given.lesson },
    { "answer", .help = "print the answer to the lesson's question too", .flag = &given.answer },
    { "out", 'o', .value = "DIR", .help = "write pictures to this folder, made if it is not there", .text = &given.out },
    { "lang", .value = "LANGUAGE", .help = "en, zh, or locale: as LC_ALL, LC_MESSAGES or LANG say", .choice = &given.language,
      .names = languages },
    { "data", .value = "PATH", .help = "reviews for the lesson imdb: a .tsv or .csv file or a folder of classes",
      .text = &lesson_data },
    { 0 },
};

static const lesson *const lessons[] = {
    &lesson_by_hand, &lesson_scaling,    &lesson_masks,    &lesson_heads, &lesson_cross, &lesson_positions,
    &lesson_parts,   &lesson_optimizers, &lesson_additive, &lesson_costs, &lesson_imdb,  NULL,
};

static bool locale_is_chinese(void)
{
    static const char *const variables[] = { "LC_ALL", "LC_MESSAGES", "LANG" };
    for (int i = 0; i < 3; i++) {
        const char *value = getenv(variables[i]);
        if (value && *value) return !strncmp(value, "zh", 2);
    }
    return false;
}

static void list_lessons(void)
{
    for (int i = 0; lessons[i]; i++) printf("  %4s  %s\n", lessons[i]->name, _(lessons[i]->title));
    printf("\n%s\n", _("\"qkv learn 1\" runs the first one; --answer adds the answer to its question, -o DIR the pictures."));
}

static const lesson *find_lesson(const char *name)
{
    char names[128] = "";
    for (int i = 0; lessons[i]; i++) {
        size_t used = strlen(names);
        if (!strcmp(lessons[i]->name, name)) return lessons[i];
        snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", lessons[i]->name);
    }
    fail(QKV_USAGE, "there is no lesson \"%s\", but these: %s; \"qkv learn\" tells what they are about", name, names);
    return NULL;
}

static qkv_status teach(const lesson *l)
{
    say_heading(_(l->title));
    qkv_status status = l->run();
    if (status) return status;
    say(_("Question: %s"), _(l->question));
    if (given.answer) say(_("Answer: %s"), _(l->answer));
    else say(_("(\"qkv learn %s --answer\" gives the answer.)"), l->name);
    return QKV_OK;
}

static qkv_status run_learn(void)
{
    const lesson *l = given.lesson ? find_lesson(given.lesson) : NULL;
    if (given.lesson && !l) return QKV_USAGE;
    if (lesson_data && (!l || strcmp(l->name, "imdb"))) return fail(QKV_USAGE, "--data is for the lesson imdb");
    if (given.language == CHINESE || (given.language == BY_LOCALE && locale_is_chinese())) speak_chinese();
    if (!l) return list_lessons(), QKV_OK;
    qkv_status status = given.out ? set_picture_folder(given.out) : QKV_OK;
    return status ? status : teach(l);
}

const command learn_command = {
    .name = "learn",
    .summary = "lessons about attention, with numbers computed as they run",
    .about = "Without a lesson, lists them. A lesson takes seconds: it explains one idea, computes\n"
             "or trains what it talks about, prints the numbers, and ends with a question.\n"
             "Every lesson is there in English and in Chinese.",
    .example = "  qkv learn\n"
               "  qkv learn 4 -o pictures\n"
               "  qkv learn 4 --answer --lang zh\n"
               "  qkv learn imdb --data aclImdb/train",
    .options = options,
    .run = run_learn,
};
