/* changes.c: weights as what changed. Loops over one unit, which lies in the first cache, each so plain that a compiler makes vectors
 * of it. */
#include "changes.h"

#include "slices.h"

#include "../base/size.h"

#include <string.h>

enum { WIDEST = 4, HEAD = sizeof(uint16_t), EXCEPTION = sizeof(uint16_t) + sizeof(uint32_t) };

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

void qkv__find_changes(int64_t n, const float *from, const float *to, float *changes)
{
    for (int64_t i = 0; i < n; i++) {
        uint32_t change = bits_of(to[i]) - bits_of(from[i]);
        memcpy(&changes[i], &change, sizeof change);
    }
}

size_t qkv__packed_most(int64_t n) { return HEAD * (size_t)qkv__ceil_div(n, QKV__UNIT) + WIDEST * (size_t)n; }

/* ---- packing ---- */

/* The sign in the lowest bit, so that small changes have few bits: 0, -1, 1, -2 become 0, 1, 2, 3. */
static uint32_t fold(uint32_t change) { return change << 1 ^ (0 - (change >> 31)); }
static uint32_t unfold(uint32_t folded) { return folded >> 1 ^ (0 - (folded & 1)); }

/* How many bytes of each change make the unit smallest, and how many changes have more than these. */
static int choose_width(size_t n, const uint32_t *folded, uint32_t *exceptions)
{
    uint32_t over[WIDEST + 1] = { 0 }, one = 0, two = 0, three = 0;
    for (size_t i = 0; i < n; i++) {
        over[0] += folded[i] != 0;
        one += folded[i] >> 8 != 0;
        two += folded[i] >> 16 != 0;
        three += folded[i] >> 24 != 0;
    }
    over[1] = one, over[2] = two, over[3] = three;
    int best = WIDEST;
    for (int width = WIDEST - 1; width >= 0; width--)
        if ((size_t)width * n + EXCEPTION * over[width] < (size_t)best * n + EXCEPTION * over[best]) best = width;
    *exceptions = over[best];
    return best;
}

/* Those that have more than `width` bytes. They are few, and where they are cannot be guessed: of eight at a time the bytes of a
 * word say which of them do, so that a processor looks at no others. */
static unsigned char *put_exceptions(const uint32_t folded[QKV__UNIT], int width, unsigned char *to)
{
    unsigned char is_more[QKV__UNIT];
    for (size_t i = 0; i < QKV__UNIT; i++) is_more[i] = folded[i] >> 8 * width != 0;
    for (size_t at = 0; at < QKV__UNIT; at += sizeof(uint64_t)) {
        uint64_t which;
        memcpy(&which, is_more + at, sizeof which);
        for (; which; which &= which - 1) {
            uint16_t i = (uint16_t)(at + (size_t)__builtin_ctzll(which) / 8);
            memcpy(to, &i, sizeof i);
            memcpy(to + sizeof i, &folded[i], sizeof *folded);
            to += EXCEPTION;
        }
    }
    return to;
}

static unsigned char *pack_unit(size_t n, const float *changes, unsigned char *to)
{
    uint32_t folded[QKV__UNIT], exceptions;
    for (size_t i = 0; i < n; i++) folded[i] = fold(bits_of(changes[i]));
    memset(folded + n, 0, sizeof *folded * (QKV__UNIT - n));
    int width = choose_width(n, folded, &exceptions);
    uint16_t head = (uint16_t)(8 * exceptions + (uint32_t)width);
    memcpy(to, &head, HEAD);
    to += HEAD;
    for (int byte = 0; byte < width; byte++, to += n)
        for (size_t i = 0; i < n; i++) to[i] = (unsigned char)(folded[i] >> 8 * byte);
    return exceptions ? put_exceptions(folded, width, to) : to;
}

size_t qkv__pack_changes(int64_t n, const float *changes, unsigned char *packed)
{
    unsigned char *to = packed;
    for (int64_t at = 0; at < n; at += QKV__UNIT) to = pack_unit((size_t)qkv__min(QKV__UNIT, n - at), changes + at, to);
    return (size_t)(to - packed);
}

/* ---- applying ---- */

static bool take_exceptions(size_t n, uint32_t *folded, uint32_t exceptions, const unsigned char *from)
{
    for (; exceptions; exceptions--, from += EXCEPTION) {
        uint16_t which;
        memcpy(&which, from, sizeof which);
        if (which >= n) return false;
        memcpy(&folded[which], from + sizeof which, sizeof *folded);
    }
    return true;
}

/* The end of the unit; NULL where the bytes are none. */
static const unsigned char *apply_unit(size_t n, float *weights, const unsigned char *from, const unsigned char *end)
{
    uint32_t folded[QKV__UNIT] = { 0 };
    uint16_t head;
    if ((size_t)(end - from) < HEAD) return NULL;
    memcpy(&head, from, HEAD);
    from += HEAD;
    uint32_t exceptions = head / 8, width = head % 8;
    if (width > WIDEST || (size_t)(end - from) < width * n + EXCEPTION * exceptions) return NULL;
    for (uint32_t byte = 0; byte < width; byte++, from += n)
        for (size_t i = 0; i < n; i++) folded[i] |= (uint32_t)from[i] << 8 * byte;
    if (!take_exceptions(n, folded, exceptions, from)) return NULL;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = bits_of(weights[i]) + unfold(folded[i]);
        memcpy(&weights[i], &bits, sizeof bits);
    }
    return from + EXCEPTION * exceptions;
}

bool qkv__apply_changes(int64_t n, float *weights, const unsigned char *packed, size_t bytes)
{
    const unsigned char *end = packed + bytes;
    for (int64_t at = 0; at < n && packed; at += QKV__UNIT)
        packed = apply_unit((size_t)qkv__min(QKV__UNIT, n - at), weights + at, packed, end);
    return packed == end;
}
