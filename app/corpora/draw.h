/* draw.h: examples of a language that a grammar makes, no two alike where that can be. */
#ifndef QKV_EXAMPLES_DRAW_H
#define QKV_EXAMPLES_DRAW_H

#include "grammar.h"
#include "report.h"
#include "sentiment.h"
#include "toy_language.h"

#include <stddef.h>

enum { LINE_ROOM = 2 * SENTENCE_ROOM };
_Static_assert((int)LINE_ROOM >= (int)TOY_ROOM && (int)REVIEW_ROOM <= (int)SENTENCE_ROOM &&
                   (int)REPORT_ROOM + (int)SUMMARY_ROOM <= (int)LINE_ROOM,
               "every line has room");

typedef struct example {
    char line[LINE_ROOM];
    int key, key_length; /* the part of the line that no other line has */
    double nats;         /* its surprise, where that is known */
} example;

/* What is different from one kind of data to the other. */
typedef struct example_job {
    const char *things; /* as the option that counts them is called */
    const char *ending; /* of the files' names */
    void (*draw)(uint64_t *state, example *out);
    const char *const (*named)[2]; /* pairs that come first, NULL: none. They are never trained on */
    double (*entropy)(void);       /* of a language whose lines are drawn as they come, so that some may come again; or NULL */
} example_job;

extern const example_job translation_examples, labelled_examples, toy_language_examples, summary_examples;

/* n of them, the same for the same seed: first the named ones, then the others in any order. To be freed; NULL when memory is
 * out. */
example *draw_examples(const example_job *what, int n, uint64_t seed);

/* Their lines, a newline behind each, as one text of *length bytes. To be freed; NULL when memory is out. */
char *join_examples(const example *examples, int n, size_t *length);

#endif
