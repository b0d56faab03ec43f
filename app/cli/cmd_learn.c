/* cmd_learn.c: qkv learn: lessons about attention. */
#include "../learn/lesson.h"
#include "options.h"

#include <string.h>

static struct {
    const char *lesson, *out;
    bool answer;
} given;

static const option options[] = {
    { "lesson", .value = "LESSON", .help = "number, imdb, summary or all (default: list the lessons)", .plain = true,
      .text = &given.lesson },
    { "answer", .help = "also print the answer to the lesson's question", .flag = &given.answer },
    { "out", 'o', .value = "DIR", .help = "write pictures to this folder", .text = &given.out },
    { "data", .value = "PATH", .help = "reviews for the lesson imdb: a .tsv or .csv file or a folder of classes",
      .text = &lesson_data },
    { 0 },
};

static qkv_status run_learn(void)
{
    bool is_all = given.lesson && !strcmp(given.lesson, "all");
    const lesson *l = given.lesson && !is_all ? find_lesson(given.lesson) : NULL;
    if (given.lesson && !is_all && !l) return QKV_USAGE;
    if (lesson_data && (!l || strcmp(l->name, "imdb"))) return fail(QKV_USAGE, "--data is for the lesson imdb");
    if (!given.lesson) return list_lessons(), QKV_OK;
    qkv_status status = given.out ? set_picture_folder(given.out) : QKV_OK;
    if (status) return status;
    return l ? teach(l, given.answer) : teach_all(given.answer);
}

const command learn_command = {
    .name = "learn",
    .summary = "lessons about attention, with computed numbers",
    .about = "Without a lesson, lists them. A lesson takes seconds: it explains one idea, computes\n"
             "or trains what it talks about, prints the numbers, and ends with a question.\n"
             "Every lesson is there in English and in Chinese.",
    .example = "  qkv learn\n"
               "  qkv learn 4 -o pictures\n"
               "  qkv learn 4 --answer --lang zh\n"
               "  qkv learn summary\n"
               "  qkv learn imdb --data aclImdb/train",
    .options = options,
    .run = run_learn,
};
