/* blocks.c: see blocks.h. Loops over a block's bytes have constant lengths, so that the compiler
 * makes vectors of them. */
#include "engine/io/blocks.h"

#include "engine/core/half.h"
#include "engine/core/threads.h"

#include <math.h>
#include <string.h>

enum { SMALL = 32, LARGE = 256 };

static float load_half(const uint8_t *at) {
    return td_half_to_float((td_half){(uint16_t)(at[0] | at[1] << 8)});
}

static void store_half(uint8_t *at, float value) {
    td_half h = td_float_to_half(value);
    at[0] = (uint8_t)h.bits;
    at[1] = (uint8_t)(h.bits >> 8);
}

/* ---- blocks of 32: scale [, least value] [, fifth bits], four bits each ---- */

static void unpack_q8_0(const uint8_t *from, float *to) {
    float d = load_half(from);
    for (int k = 0; k < SMALL; k++)
        to[k] = (float)(int8_t)from[2 + k] * d;
}

/* Lower four bits are the first half's. */
static void unpack_q4_0(const uint8_t *from, float *to) {
    float d = load_half(from);
    for (int k = 0; k < SMALL / 2; k++) {
        to[k] = d * (float)((from[2 + k] & 15) - 8);
        to[k + SMALL / 2] = d * (float)((from[2 + k] >> 4) - 8);
    }
}

static void unpack_q4_1(const uint8_t *from, float *to) {
    float d = load_half(from), m = load_half(from + 2);
    for (int k = 0; k < SMALL / 2; k++) {
        to[k] = d * (float)(from[4 + k] & 15) + m;
        to[k + SMALL / 2] = d * (float)(from[4 + k] >> 4) + m;
    }
}

static uint32_t load_word(const uint8_t *at) {
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static void unpack_q5_0(const uint8_t *from, float *to) {
    float d = load_half(from);
    uint32_t high = load_word(from + 2);
    for (int k = 0; k < SMALL / 2; k++) {
        int first = (from[6 + k] & 15) | (int)(high >> k & 1) << 4;
        int second = from[6 + k] >> 4 | (int)(high >> (k + SMALL / 2) & 1) << 4;
        to[k] = d * (float)(first - 16);
        to[k + SMALL / 2] = d * (float)(second - 16);
    }
}

static void unpack_q5_1(const uint8_t *from, float *to) {
    float d = load_half(from), m = load_half(from + 2);
    uint32_t high = load_word(from + 4);
    for (int k = 0; k < SMALL / 2; k++) {
        int first = (from[8 + k] & 15) | (int)(high >> k & 1) << 4;
        int second = from[8 + k] >> 4 | (int)(high >> (k + SMALL / 2) & 1) << 4;
        to[k] = d * (float)first + m;
        to[k + SMALL / 2] = d * (float)second + m;
    }
}

/* ---- blocks of 256, whose parts have scales of their own ---- */

/* 16 parts of 16 with 4 bits of scale and 4 of the least value; 2 bits each, a byte has those of
 * four places that lie 32 apart. */
static void unpack_q2_k(const uint8_t *from, float *to) {
    const uint8_t *scales = from, *quants = from + 16;
    float d = load_half(from + 80), least = load_half(from + 82);
    for (int part = 0; part < 16; part++) {
        float dl = d * (float)(scales[part] & 15), ml = least * (float)(scales[part] >> 4);
        const uint8_t *q = quants + part / 8 * 32 + part % 2 * 16;
        int shift = part % 8 / 2 * 2;
        for (int k = 0; k < 16; k++)
            to[16 * part + k] = dl * (float)(q[k] >> shift & 3) - ml;
    }
}

/* 16 parts of 16 with 6 bits of scale; 2 bits each, and a third that is 4 less where it is not set.
 */
static void unpack_q3_k(const uint8_t *from, float *to) {
    const uint8_t *high = from, *quants = from + 32, *scales = from + 96;
    float d = load_half(from + 108);
    for (int part = 0; part < 16; part++) {
        int low = scales[part % 8] >> part / 8 * 4 & 15;
        int scale = (low | (scales[8 + part % 4] >> part / 4 * 2 & 3) << 4) - 32;
        float dl = d * (float)scale;
        const uint8_t *q = quants + part / 8 * 32 + part % 2 * 16, *h = high + part % 2 * 16;
        int shift = part % 8 / 2 * 2, bit = part / 2;
        for (int k = 0; k < 16; k++)
            to[16 * part + k] = dl * (float)((q[k] >> shift & 3) - ((h[k] >> bit & 1) ? 0 : 4));
    }
}

/* Scale and least value of one of 8 parts, 6 bits each in 12 bytes. */
static void load_scale(const uint8_t *scales, int part, float *scale, float *least) {
    int k = part % 4;
    int s = part < 4 ? scales[k] & 63 : (scales[8 + k] & 15) | (scales[k] >> 6) << 4;
    int m = part < 4 ? scales[4 + k] & 63 : scales[8 + k] >> 4 | (scales[4 + k] >> 6) << 4;
    *scale = (float)s;
    *least = (float)m;
}

static void unpack_q4_k(const uint8_t *from, float *to) {
    float d = load_half(from), dmin = load_half(from + 2), scale, least;
    for (int part = 0; part < 8; part++) {
        load_scale(from + 4, part, &scale, &least);
        float dl = d * scale, ml = dmin * least;
        const uint8_t *q = from + 16 + part / 2 * 32;
        int shift = part % 2 * 4;
        for (int k = 0; k < 32; k++)
            to[32 * part + k] = dl * (float)(q[k] >> shift & 15) - ml;
    }
}

static void unpack_q5_k(const uint8_t *from, float *to) {
    float d = load_half(from), dmin = load_half(from + 2), scale, least;
    const uint8_t *high = from + 16;
    for (int part = 0; part < 8; part++) {
        load_scale(from + 4, part, &scale, &least);
        float dl = d * scale, ml = dmin * least;
        const uint8_t *q = from + 48 + part / 2 * 32;
        int shift = part % 2 * 4;
        for (int k = 0; k < 32; k++)
            to[32 * part + k] =
                dl * (float)((q[k] >> shift & 15) | (high[k] >> part & 1) << 4) - ml;
    }
}

/* 16 parts of 16 with 8 bits of scale; 4 bits each, and 2 more. */
static void unpack_q6_k(const uint8_t *from, float *to) {
    const uint8_t *high = from + 128, *scales = from + 192;
    float d = load_half(from + 208);
    for (int part = 0; part < 16; part++) {
        float dl = d * (float)(int8_t)scales[part];
        int half = part / 8, place = part % 8; /* a half has 8 parts of 16 */
        const uint8_t *q = from + 64 * half + place % 4 * 16,
                      *h = high + 32 * half + place % 2 * 16;
        int shift = place / 4 * 4, more = place / 2 * 2;
        for (int k = 0; k < 16; k++)
            to[16 * part + k] = dl * (float)(((q[k] >> shift & 15) | (h[k] >> more & 3) << 4) - 32);
    }
}

/* ---- packing ---- */

/* The lowest byte of what a processor makes of a float as an integer: 0 of what is none. */
static uint8_t low_byte(float value) {
    return value > -0x1p31f && value < 0x1p31f ? (uint8_t)(int32_t)value : 0;
}

static float inverse(float d) {
    return d == 0 ? 0 : 1 / d;
}

/* The largest magnitude; NaN where one is. */
static float largest(const float *from) {
    float most = 0;
    for (int k = 0; k < SMALL; k++)
        most = most != most || fabsf(from[k]) <= most ? most : fabsf(from[k]);
    return most;
}

/* Halves are rounded away from zero. */
static float round_away(float value) {
    float a = fabsf(value), whole = floorf(a);
    return copysignf(whole + floorf(2 * (a - whole)), value);
}

static void pack_q8_0(const float *from, uint8_t *to) {
    float d = largest(from) / 127, by = inverse(d);
    store_half(to, d);
    for (int k = 0; k < SMALL; k++)
        to[2 + k] = low_byte(round_away(from[k] * by));
}

static int quarter_byte(float value) {
    int q = low_byte(truncf(value + 8.5f));
    return q < 15 ? q : 15;
}

/* The element of the largest magnitude, the first of several, becomes -8. */
static void pack_q4_0(const float *from, uint8_t *to) {
    float most = from[0];
    for (int k = 1; k < SMALL; k++)
        if (!(fabsf(from[k]) <= fabsf(most)) && most == most)
            most = from[k];
    float d = most / -8, by = inverse(d);
    store_half(to, d);
    for (int k = 0; k < SMALL / 2; k++)
        to[2 + k] =
            (uint8_t)(quarter_byte(from[k] * by) | quarter_byte(from[k + SMALL / 2] * by) << 4);
}

/* ---- types ---- */

static const td_block_type types[] = {
    {"Q4_0", 2, SMALL, 18, unpack_q4_0, pack_q4_0}, {"Q4_1", 3, SMALL, 20, unpack_q4_1, NULL},
    {"Q5_0", 6, SMALL, 22, unpack_q5_0, NULL},      {"Q5_1", 7, SMALL, 24, unpack_q5_1, NULL},
    {"Q8_0", 8, SMALL, 34, unpack_q8_0, pack_q8_0}, {"Q2_K", 10, LARGE, 84, unpack_q2_k, NULL},
    {"Q3_K", 11, LARGE, 110, unpack_q3_k, NULL},    {"Q4_K", 12, LARGE, 144, unpack_q4_k, NULL},
    {"Q5_K", 13, LARGE, 176, unpack_q5_k, NULL},    {"Q6_K", 14, LARGE, 210, unpack_q6_k, NULL},
};
enum { NTYPES = sizeof types / sizeof *types };

const td_block_type *td_block_type_find(int64_t number) {
    for (int k = 0; k < NTYPES; k++)
        if (types[k].number == number)
            return &types[k];
    return NULL;
}

const td_block_type *td_block_type_named(const char *name) {
    for (int k = 0; k < NTYPES; k++)
        if (!strcmp(types[k].name, name))
            return &types[k];
    return NULL;
}

typedef struct job {
    const td_block_type *type;
    const uint8_t *packed;
    const float *from;
    uint8_t *to;
    float *plain;
} job;

static void unpack_range(void *ctx, int64_t begin, int64_t end, int worker) {
    const job *j = ctx;
    (void)worker;
    for (int64_t k = begin; k < end; k++)
        j->type->unpack(j->packed + k * j->type->bytes, j->plain + k * j->type->elements);
}

static void pack_range(void *ctx, int64_t begin, int64_t end, int worker) {
    const job *j = ctx;
    (void)worker;
    for (int64_t k = begin; k < end; k++)
        j->type->pack(j->from + k * j->type->elements, j->to + k * j->type->bytes);
}

td_status td_blocks_unpack(const td_block_type *type, const void *from, float *to, int64_t n) {
    job j = {.type = type, .packed = from, .plain = to};
    return td_parallel_for(n, 2 * type->elements, unpack_range, &j);
}

td_status td_blocks_pack(const td_block_type *type, const float *from, void *to, int64_t n) {
    job j = {.type = type, .from = from, .to = to};
    return td_parallel_for(n, 4 * type->elements, pack_range, &j);
}
