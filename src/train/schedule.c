/* schedule.c: the learning rate of each step. */
#include "trainer.h"

#include "../base/status.h"

#include <math.h>

qkv_status qkv__schedule_check(const qkv_schedule *s)
{
    if (!s) return qkv__fail(QKV_USAGE, "schedule: there is none");
    if ((unsigned)s->kind > QKV_SCHEDULE_COSINE) return qkv__fail(QKV_USAGE, "schedule: there is no kind %d", (int)s->kind);
    if (!(s->lr >= 0 && s->lr < INFINITY))
        return qkv__fail(QKV_USAGE, "schedule: lr is %g, expected a finite number, at least 0", s->lr);
    if (s->warmup < 0) return qkv__fail(QKV_USAGE, "schedule: warmup is %lld steps", (long long)s->warmup);
    if (s->kind == QKV_SCHEDULE_INVERSE_SQRT && (s->warmup < 1 || s->dim < 1))
        return qkv__fail(QKV_USAGE, "schedule: the paper's needs a warmup and a dim of at least 1, not %lld and %lld",
                         (long long)s->warmup, (long long)s->dim);
    if (s->kind != QKV_SCHEDULE_LINEAR && s->kind != QKV_SCHEDULE_COSINE) return QKV_OK;
    if (s->steps <= s->warmup)
        return qkv__fail(QKV_USAGE, "schedule: %lld steps with a warmup of %lld: the first must be more", (long long)s->steps,
                         (long long)s->warmup);
    if (!(s->final_lr >= 0 && s->final_lr <= s->lr))
        return qkv__fail(QKV_USAGE, "schedule: it ends at %g, expected 0 to %g", s->final_lr, s->lr);
    return QKV_OK;
}

double qkv_schedule_lr(const qkv_schedule *s, int64_t step)
{
    if (qkv__schedule_check(s)) return (double)NAN;
    double t = step < 1 ? 1 : (double)step, warmup = (double)s->warmup;
    if (s->kind == QKV_SCHEDULE_INVERSE_SQRT)
        return s->lr * pow((double)s->dim, -0.5) * fmin(pow(t, -0.5), t * pow(warmup, -1.5));
    if (t < warmup) return s->lr * t / warmup;
    if (s->kind == QKV_SCHEDULE_CONSTANT) return s->lr;
    double done = fmin(1, (t - warmup) / ((double)s->steps - warmup)); /* of the way from warmup to the last step */
    double left = s->kind == QKV_SCHEDULE_LINEAR ? 1 - done : 0.5 * (1 + cos(3.14159265358979323846 * done));
    return s->final_lr + (s->lr - s->final_lr) * left;
}
