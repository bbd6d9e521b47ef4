/* played_amx.h: the instructions of engine/cpu/vectors/amx.h in plain C, by Intel's manual (SDM
 * vol. 2, TILELOADD, TDPBUSD and their like), for a thread each. Where a processor would raise an
 * exception, a check fails. Included before the loops that use them. */
#ifndef TIDE_TESTS_PLAYED_AMX_H
#define TIDE_TESTS_PLAYED_AMX_H

#define TD_AMX_PLAYED
#include "engine/cpu/vectors/amx.h"

#include "tests/check.h"

#define TD_AMX_TARGET
#define TD_AMX_WRITTEN(memory)        ((void)(memory))
#define TD_AMX_CONFIGURE(config)      played_configure(config)
#define TD_AMX_RELEASE()              played_release()
#define TD_AMX_ZERO(tile)             played_zero(tile)
#define TD_AMX_LOAD(tile, from, step) played_load(tile, from, step)
#define TD_AMX_STORE(tile, to, step)  played_store(tile, to, step)
#define TD_AMX_ADD_FOURS(sums, a, b)  played_add_fours(sums, a, b)
#define PLAYED_REQUIRE(condition)     played_require(__LINE__, #condition, condition)

static atomic_llong played_products; /* of tiles, by all threads */
static atomic_int played_threads;    /* that have tiles now */

static _Thread_local struct {
    bool configured;
    int rows[TD_AMX_TILES], bytes[TD_AMX_TILES];
    uint8_t data[TD_AMX_TILES][TD_AMX_ROWS][TD_AMX_ROW_BYTES];
} played;

static void played_require(int line, const char *condition, bool holds) {
    if (!holds)
        check_fail(__FILE__, line, "the processor raises an exception: not %s", condition);
}

static void played_configure(const td_amx_config *c) {
    PLAYED_REQUIRE(c->palette == 1 && c->start_row == 0);
    for (int k = 0; k < 14; k++)
        PLAYED_REQUIRE(c->reserved[k] == 0);
    for (int k = TD_AMX_TILES; k < 16; k++)
        PLAYED_REQUIRE(c->rows[k] == 0 && c->row_bytes[k] == 0);
    for (int k = 0; k < TD_AMX_TILES; k++) {
        PLAYED_REQUIRE(c->rows[k] <= TD_AMX_ROWS && c->row_bytes[k] <= TD_AMX_ROW_BYTES);
        PLAYED_REQUIRE((c->rows[k] == 0) == (c->row_bytes[k] == 0));
        played.rows[k] = c->rows[k];
        played.bytes[k] = c->row_bytes[k];
    }
    memset(played.data, 0, sizeof played.data);
    if (!played.configured)
        atomic_fetch_add(&played_threads, 1);
    played.configured = true;
}

static void played_release(void) {
    if (played.configured)
        atomic_fetch_sub(&played_threads, 1);
    memset(&played, 0, sizeof played);
}

/* Rows beyond the configured ones do not exist: what is read there is a sign of a fault. */
static bool played_is_there(int tile) {
    return played.configured && tile >= 0 && tile < TD_AMX_TILES && played.rows[tile] > 0;
}

static void played_zero(int tile) {
    PLAYED_REQUIRE(played_is_there(tile));
    memset(played.data[tile], 0, sizeof played.data[tile]);
}

static void played_load(int tile, const void *from, int64_t step) {
    PLAYED_REQUIRE(played_is_there(tile));
    memset(played.data[tile], 0, sizeof played.data[tile]);
    for (int r = 0; r < played.rows[tile]; r++)
        memcpy(played.data[tile][r], (const char *)from + r * step, (size_t)played.bytes[tile]);
}

static void played_store(int tile, void *to, int64_t step) {
    PLAYED_REQUIRE(played_is_there(tile));
    for (int r = 0; r < played.rows[tile]; r++)
        memcpy((char *)to + r * step, played.data[tile][r], (size_t)played.bytes[tile]);
}

/* a: rows of uint8; b: fours of int8 for each column, a row for each four of a. */
static void played_add_fours(int sums, int a, int b) {
    PLAYED_REQUIRE(played_is_there(sums) && played_is_there(a) && played_is_there(b));
    PLAYED_REQUIRE(sums != a && sums != b && a != b);
    PLAYED_REQUIRE(played.rows[sums] == played.rows[a]);
    PLAYED_REQUIRE(played.bytes[sums] == played.bytes[b] && played.bytes[sums] % 4 == 0);
    PLAYED_REQUIRE(played.bytes[a] == 4 * played.rows[b]);
    for (int r = 0; r < played.rows[sums]; r++)
        for (int c = 0; c < played.bytes[sums] / 4; c++) {
            uint32_t sum;
            memcpy(&sum, played.data[sums][r] + 4 * c, sizeof sum);
            for (int k = 0; k < played.bytes[a]; k++)
                sum +=
                    (uint32_t)(played.data[a][r][k] * (int8_t)played.data[b][k / 4][4 * c + k % 4]);
            memcpy(played.data[sums][r] + 4 * c, &sum, sizeof sum);
        }
    atomic_fetch_add(&played_products, 1);
}

#endif
