/* changes.h: weights as what changed. Who has the old ones, bit for bit, needs only the differences, which take two or three bytes
 * each where a weight takes four: nothing is rounded, and any bits may become any others.
 *
 * A change is the difference of two floats' bits, as whole numbers. Packed they are cut into units of QKV__UNIT, the last one
 * perhaps shorter, and a unit of n changes is
 *
 *     16 bits              8 times the number of exceptions, and how many bytes of each change follow
 *     n bytes, as often    the lowest byte of every change, then the next one of every change, and so on
 *     48 bits, as often    an exception: 16 bits say which change it is, 32 what it is
 *
 * with the sign in the lowest bit. Exceptions are weights near 0, whose bits change much. The order of bytes is the machine's. */
#ifndef QKV_SRC_DIST_CHANGES_H
#define QKV_SRC_DIST_CHANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* changes[i] = to[i] - from[i], where the floats of `changes` hold the bits of a whole number, and 0 is no change. */
void qkv__find_changes(int64_t n, const float *from, const float *to, float *changes);

/* Bytes that n changes take at most when they are packed. */
size_t qkv__packed_most(int64_t n);

/* Packs n changes; how many bytes they take. */
size_t qkv__pack_changes(int64_t n, const float *changes, unsigned char *packed);

/* weights[i] += changes[i]. false where the bytes are not n changes: some of the weights may have changed then. */
bool qkv__apply_changes(int64_t n, float *weights, const unsigned char *packed, size_t bytes);

#endif
