/* 10_attention.cpp: libqkv from C++17: scaled dot-product attention of two tokens, causal. */
#include <qkv/qkv.h>

#include <cstdio>

int main()
{
    const float q[] = { 1, 0, 0, 1 }, k[] = { 1, 0, 0, 1 }, v[] = { 5, 0, 0, 10 };
    qkv_tape *t = qkv_tape_new(nullptr);
    qkv_tensor *y = qkv_attention(qkv_constant(t, QKV_SHAPE(2, 2), q), qkv_constant(t, QKV_SHAPE(2, 2), k),
                                  qkv_constant(t, QKV_SHAPE(2, 2), v), QKV_CAUSAL, nullptr);
    if (y) std::printf("%.4f %.4f\n%.4f %.4f\n", qkv_tensor_data(y)[0], qkv_tensor_data(y)[1], qkv_tensor_data(y)[2], qkv_tensor_data(y)[3]);
    else std::fprintf(stderr, "%s\n", qkv_error());
    qkv_tape_free(t);
    return y == nullptr;
}
