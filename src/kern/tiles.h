/* tiles.h: the eight tile registers of AMX, each 16 rows of 64 bytes. 0 to 3 hold sums, 4 and 5 rows of a left factor, 6 and 7
 * what a right one has for them. Where the compiler has no such instructions plain C does the same, for tests. t is a constant.
 *   tile_zero(t)   tile_load(t, from, stride)   tile_store(t, to, stride)   strides are of bytes
 *   add_tile_bytes(c, a, b)     c[i][j] += sum of a[i][p] b[p/4][4j + p%4], whole numbers
 *   add_tile_bfloats(c, a, b)   c[i][j] += sum of a[i][p] b[p/2][2j + p%2], as multiply_bfloat says
 * What the compiler wrote before is seen by tile_load() after memory_is_written(). */
#ifndef QKV_SRC_TILES_H
#define QKV_SRC_TILES_H

#include <stdint.h>
#include <string.h>

enum { TILE_ROWS = 16, TILE_BYTES = 64 };

#define memory_is_written() __asm__ volatile("" ::: "memory")

#if defined(__AMX_TILE__) || defined(__AMXTILE__) /* clang's name for it before version 16 */
#define HAS_TILES 1
#include <immintrin.h>

typedef struct tile_shapes {
    uint8_t palette, start, unused[14];
    uint16_t bytes[16]; /* of a row */
    uint8_t rows[16];
} tile_shapes;

/* Left factors of so many bytes a row, until end_tiles(). Tiles that are in use would be saved at every change of threads. */
static inline void begin_tiles(int bytes)
{
    tile_shapes s = { .palette = 1 };
    for (int t = 0; t < 8; t++) {
        s.bytes[t] = (uint16_t)(t == 4 || t == 5 ? bytes : TILE_BYTES);
        s.rows[t] = (uint8_t)(t > 5 ? bytes / 4 : TILE_ROWS);
    }
    memory_is_written(); /* gcc 12 knows nothing of what the next reads */
    _tile_loadconfig(&s);
}

#define end_tiles() _tile_release()
#define tile_zero(t) _tile_zero(t)
#define tile_load(t, from, stride) _tile_loadd(t, from, (int)(stride))
#define tile_store(t, to, stride) _tile_stored(t, to, (int)(stride))
#define add_tile_bytes(c, a, b) _tile_dpbssd(c, a, b)
#define add_tile_bfloats(c, a, b) _tile_dpbf16ps(c, a, b)

#else
#include "flushed.h"

static _Thread_local uint32_t plain_tiles[8][TILE_ROWS][TILE_BYTES / 4];
static _Thread_local int left_bytes;

static inline void begin_tiles(int bytes) { left_bytes = bytes; }
static inline void end_tiles(void) { memset(plain_tiles, 0, sizeof plain_tiles); }
static inline void tile_zero(int t) { memset(plain_tiles[t], 0, sizeof plain_tiles[t]); }

static inline void tile_load(int t, const void *from, int64_t stride)
{
    int rows = t > 5 ? left_bytes / 4 : TILE_ROWS;
    for (int r = 0; r < rows; r++)
        memcpy(plain_tiles[t][r], (const char *)from + r * stride, (size_t)(t == 4 || t == 5 ? left_bytes : TILE_BYTES));
}

static inline void tile_store(int t, void *to, int64_t stride)
{
    for (int r = 0; r < TILE_ROWS; r++) memcpy((char *)to + r * stride, plain_tiles[t][r], TILE_BYTES);
}

static inline void add_tile_bytes(int c, int a, int b)
{
    for (int i = 0; i < TILE_ROWS; i++)
        for (int j = 0; j < TILE_ROWS; j++)
            for (int p = 0; p < left_bytes; p++)
                plain_tiles[c][i][j] += (uint32_t)((int8_t)(plain_tiles[a][i][p / 4] >> p % 4 * 8) *
                                                   (int8_t)(plain_tiles[b][p / 4][j] >> p % 4 * 8));
}

/* A half of a pair as a float: the first is the lower one. */
static inline float bfloat_half(uint32_t pair, int half)
{
    float x;
    pair = half ? pair & 0xffff0000 : pair << 16;
    memcpy(&x, &pair, sizeof x);
    return qkv__flushed(x);
}

static inline void add_tile_bfloats(int c, int a, int b)
{
    for (int i = 0; i < TILE_ROWS; i++)
        for (int j = 0; j < TILE_ROWS; j++) {
            float chain[2] = { 0 }, sum;
            for (int p = 0; p < left_bytes / 4; p++)
                for (int h = 0; h < 2; h++)
                    chain[h] = qkv__add_flushed(chain[h], bfloat_half(plain_tiles[a][i][p], h),
                                                bfloat_half(plain_tiles[b][p][j], h));
            memcpy(&sum, &plain_tiles[c][i][j], sizeof sum);
            sum = qkv__flushed(sum + qkv__flushed(chain[0] + chain[1]));
            memcpy(&plain_tiles[c][i][j], &sum, sizeof sum);
        }
}
#endif

#endif
