/* exercise.h: C files with a hole, their checkers, hints and solutions. exercises.def lists them, exercises/ has the files. */
#ifndef QKV_LEARN_EXERCISE_H
#define QKV_LEARN_EXERCISE_H

#include <qkv/base.h>

#include <stdbool.h>
#include <stddef.h>

/* The files of exercises/, in this program: names without a folder, and texts; NULL after the last. */
extern const char *const exercise_file_names[], *const exercise_file_texts[];

/* What is wanted of exercise `number`, from 1; 0: the list. */
typedef struct exercise_opts {
    int number;
    const char *folder; /* write the file with the hole, its checker and a Makefile there; NULL: no */
    const char *check;  /* compile this file with the checker and run it; NULL: no */
    bool with_hint, with_solution;
} exercise_opts;

/* Prints, writes or checks. USAGE for a number that there is not; IO for a file that cannot be written, or is there already;
 * UNSUPPORTED without a compiler ($CC, else cc); FAILURE for a file that does not compile or does not pass; reported. */
qkv_status run_exercise(const exercise_opts *o);

#endif
