/* cmd_exercise.c: qkv exercise: C files with a hole, checked. */
#include "../learn/exercise.h"
#include "../learn/lesson.h"
#include "options.h"

static exercise_opts given;
static bool is_list;

static const option options[] = {
    { "number", .value = "N", .help = "number of the exercise (default: list them)", .plain = true, .count = &given.number },
    { "list", .help = "list the exercises", .flag = &is_list },
    { "out", 'o', .value = "DIR", .help = "write the exercise, its checker and a Makefile to this folder",
      .text = &given.folder },
    { "check", .value = "FILE", .help = "compile FILE with the checker and run it for at most 10 seconds",
      .text = &given.check },
    { "hint", .help = "print a hint", .flag = &given.with_hint },
    { "solution", .help = "print the solution", .flag = &given.with_solution },
    { 0 },
};

static qkv_status run_exercise_command(void)
{
    if (is_list && given.number) return fail(QKV_USAGE, "a number and --list do not go together");
    if (given.check && given.folder) return fail(QKV_USAGE, "--check and --out do not go together");
    return run_exercise(&given);
}

const command exercise_command = {
    .name = "exercise",
    .summary = "C programming exercises with a checker",
    .about = "Each exercise is a C file with a hole. --check compiles it with the machine's compiler\n"
             "($CC, else cc) and a checker that says what passes; it needs nothing but libm.",
    .example = "  qkv exercise\n  qkv exercise 3 -o work\n  qkv exercise 3 --check work/self_attention.c\n"
               "  qkv exercise 3 --hint --lang zh",
    .options = options,
    .run = run_exercise_command,
};
