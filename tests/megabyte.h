/* megabyte.h: a long text without a gap must not make a tokenizer slow. */
#ifndef QKV_TESTS_MEGABYTE_H
#define QKV_TESTS_MEGABYTE_H

#include <qkv/qkv.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Encodes one MiB of a part of at most 4 bytes. It takes less than a second; the bound is for machines that are busy. */
static void encode_megabyte(const char *name, const qkv_tokenizer *t, const char *part)
{
    enum { BYTES = 1 << 20 };
    char *text = malloc(BYTES + 5);
    size_t n = 0;
    qkv_encoding *ids = NULL;
    while (n < BYTES) n += (size_t)sprintf(text + n, "%s", part);
    clock_t start = clock();
    assert_int_equal(qkv_tokenizer_encode(t, (qkv_str){ text, n }, NULL, &ids), QKV_OK);
    double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    if (!(seconds < 10)) fail_msg("%s: \"%s\" takes %.1f seconds", name, part, seconds);
    qkv_free(ids);
    free(text);
}

#endif
