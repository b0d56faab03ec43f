#include "check.h"

void rotary(float *x, int d, int pos);

static float score(int query_place, int key_place)
{
    float q[] = { 1, 0.5f, -1, 2, 0.5f, 1, 0, -0.5f }, k[] = { 0.5f, 1, -0.5f, 1, 1, 0, 0.5f, -1 }, sum = 0;
    rotary(q, 8, query_place), rotary(k, 8, key_place);
    for (int i = 0; i < 8; i++) sum += q[i] * k[i];
    return sum;
}

int main(void)
{
    float x[] = { 1, 0 };
    rotary(x, 2, 1);
    check_close("[1, 0] at place 1", x, (float[]){ 0.540302f, 0.841471f }, 2);
    float scores[] = { score(0, 0), score(1, 0), score(6, 5), score(52, 50) };
    check_close("scores depend on the distance (lesson 18)", scores, (float[]){ 4.5f, 4.562530f, 4.562530f, 3.544097f }, 4);
    return check_result();
}
