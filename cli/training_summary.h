/* training_summary.h: what a training is about to do, in lines of at most 80 columns: its data, its model, what the rules chose,
 * its length; and once it runs, what it costs. */
#ifndef QKV_CLI_TRAINING_SUMMARY_H
#define QKV_CLI_TRAINING_SUMMARY_H

#include <qkv/qkv.h>

#include <stdio.h>

/* last_step 0: no limit. */
void print_plan(FILE *to, qkv_training *t, int64_t epoch_steps, int64_t last_step);

typedef struct training_cost {
    int64_t updates, tokens; /* that were measured */
    double seconds;
    int64_t updates_left; /* of the whole training; 0: as many as --minutes allows */
    const char *unit;
} training_cost;
void print_cost(FILE *to, const training_cost *c); /* and the memory so far */

#endif
