#include "check.h"

void feed_forward(const float *x, const float *w_1, const float *b_1, const float *w_2, const float *b_2, int d, int d_ff,
                  float *y);

int main(void)
{
    static const float w_1[] = { 1, 1, -2, 1, -1, 1 }, b_1[] = { 0, 0, 1 }, w_2[] = { 1, 0, 0, 1, 2, -1 }, b_2[] = { 0.5f, 0 };
    static const float x[] = { 1, 2, -1, 1, 0, -1, 2, 0 }, wanted[] = { 5.5f, -1, 8.5f, -4, 0.5f, 1, 2.5f, 2 };
    for (int token = 0; token < 4; token++) {
        float y[2] = { 0 };
        char name[64];
        feed_forward(x + 2 * token, w_1, b_1, w_2, b_2, 2, 3, y);
        snprintf(name, sizeof name, CHECK_TEXT("token %d of lesson 13"), token);
        check_close(name, y, wanted + 2 * token, 2);
    }
    return check_result();
}
