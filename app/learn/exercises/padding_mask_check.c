#include "check.h"

#include <stdint.h>

void padding_mask(const int32_t *ids, int batch, int length, int32_t pad, float *keep);

int main(void)
{
    float keep[10];
    for (int i = 0; i < 10; i++) keep[i] = 9;
    padding_mask((int32_t[]){ 1, 2, 3, 0, 0, 4, 5, 0, 0, 0 }, 2, 5, 0, keep);
    check_close("[[1,2,3,0,0],[4,5,0,0,0]]", keep, (float[]){ 1, 1, 1, 0, 0, 1, 1, 0, 0, 0 }, 10);
    padding_mask((int32_t[]){ 0, 7 }, 1, 2, 7, keep);
    check_close("another padding id", keep, (float[]){ 1, 0 }, 2);
    return check_result();
}
