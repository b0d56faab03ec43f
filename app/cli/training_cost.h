/* training_cost.h: what a training costs, once it runs. */
#ifndef QKV_CLI_TRAINING_COST_H
#define QKV_CLI_TRAINING_COST_H

#include <stdint.h>
#include <stdio.h>

typedef struct training_cost {
    int64_t updates, tokens; /* that were measured */
    double seconds;
    int64_t updates_left; /* of the whole training; 0: as many as --minutes allows */
    const char *unit;
} training_cost;
void print_cost(FILE *to, const training_cost *c); /* and the memory so far */

#endif
