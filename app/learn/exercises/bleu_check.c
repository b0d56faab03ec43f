#include "check.h"

double bleu(const int matches[4], const int totals[4], int length, int reference);

int main(void)
{
    float score = (float)bleu((int[]){ 8, 6, 5, 4 }, (int[]){ 8, 7, 6, 5 }, 8, 9);
    check_close("the fox of lesson 17", &score, (float[]){ 76.728005f }, 1);
    score = (float)bleu((int[]){ 5, 4, 3, 2 }, (int[]){ 5, 4, 3, 2 }, 5, 4);
    check_close("too long is no shorter", &score, (float[]){ 100 }, 1);
    score = (float)bleu((int[]){ 2, 0, 0, 0 }, (int[]){ 7, 6, 5, 4 }, 7, 6);
    check_close("no pair matches", &score, (float[]){ 0 }, 1);
    return check_result();
}
