/* plan.h: how many updates and validations fit into the time there is. */
#ifndef QKV_SRC_PLAN_H
#define QKV_SRC_PLAN_H

#include <qkv/train.h>

/* As often as there are epochs, within bounds: a text that is seen many times is not measured too often, and one that is not
 * seen once is measured all the same. */
int64_t qkv__validations(int64_t steps, int64_t epoch_steps);

/* Of --minutes: what updates and validations share, the rest being for checkpoints and a machine that slows down; and what
 * validations, and what follows the last step, may have of the whole. With the measuring updates have at least 0.85. */
#define QKV__PLANNED_SHARE 0.96
#define QKV__MEASURED_SHARE 0.06
#define QKV__TRIAL_SHARE 0.03

/* How long one of n things took while the machine was least disturbed: of four equal parts of them in a row, the mean of the two
 * fastest. Of fewer than 4, the mean of all. */
double qkv__steady_seconds(const double *seconds, int64_t n);

typedef struct qkv__plan {
    int64_t steps, validations; /* at least 1 each */
} qkv__plan;

/* What fits into `seconds`, an update and a validation taking so long: qkv__validations(), or fewer where they would take more than
 * `measuring` seconds; or one every valid_every steps, if it is not 0. */
qkv__plan qkv__plan_steps(double seconds, double measuring, double update, double validation, int64_t epoch_steps,
                          int64_t valid_every);

#endif
