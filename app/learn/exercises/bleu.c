#include <math.h>

/* BLEU, 0 to 100, from matches and totals of n-grams of 1 to 4 words, and the lengths of translation and reference. An order
 * without a match: 0. */
double bleu(const int matches[4], const int totals[4], int length, int reference)
{
#ifdef SOLUTION
    double product = 1, penalty = length < reference ? exp(1 - (double)reference / length) : 1;
    for (int i = 0; i < 4; i++) product *= (double)matches[i] / totals[i];
    return 100 * penalty * pow(product, 0.25);
#else
    /* TODO */
    (void)matches, (void)totals, (void)length, (void)reference;
    return 0;
#endif
}
