/* colour.c: numbers as colours. */
#include "view.h"

#include <math.h>

enum { NOTHING = 0xb0b0b0 };

/* Colours at equal distances; those between are on the straight line: viridis of van der Walt and Smith, and Brewer's red-blue
 * of 11 colours. */
static const uint32_t viridis[] = { 0x440154, 0x481567, 0x482677, 0x453781, 0x404788, 0x39568c, 0x33638d,
                                    0x2d708e, 0x287d8e, 0x238a8d, 0x1f968b, 0x20a387, 0x29af7f, 0x3cbb75,
                                    0x55c667, 0x73d055, 0x95d840, 0xb8de29, 0xdce319, 0xfde725 };
static const uint32_t red_blue[] = { 0x053061, 0x2166ac, 0x4393c3, 0x92c5de, 0xd1e5f0, 0xf7f7f7,
                                     0xfddbc7, 0xf4a582, 0xd6604d, 0xb2182b, 0x67001f };

static uint32_t mix(uint32_t a, uint32_t b, double share)
{
    uint32_t colour = 0;
    for (int shift = 0; shift <= 16; shift += 8) {
        double from = a >> shift & 255, to = b >> shift & 255;
        colour |= (uint32_t)lround(from + share * (to - from)) << shift;
    }
    return colour;
}

uint32_t qkv_colour(qkv_colours colours, double x)
{
    const uint32_t *table = colours == QKV_COLOURS_RED_BLUE ? red_blue : viridis;
    size_t steps = (colours == QKV_COLOURS_RED_BLUE ? sizeof red_blue : sizeof viridis) / sizeof *table - 1;
    if (isnan(x)) return NOTHING;
    double place = fmin(fmax(x, 0), 1) * (double)steps;
    size_t i = place < (double)steps ? (size_t)place : steps - 1;
    return mix(table[i], table[i + 1], place - (double)i);
}

uint32_t qkv_colour_of(qkv_colours colours, float low, float high, float value)
{
    if (!(high > low)) return qkv_colour(colours, isnan(value) ? NAN : value > high);
    return qkv_colour(colours, ((double)value - (double)low) / ((double)high - (double)low));
}
