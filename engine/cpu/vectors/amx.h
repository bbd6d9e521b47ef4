/* amx.h: the instructions of Intel's AMX that kernels use, for palette 1: eight tiles of up to 16
 * rows of up to 64 bytes, which belong to a thread.
 *
 * A tile's number is a literal. Functions that use these bear TD_AMX_TARGET; others may not call
 * them where they would be inlined. Only where td_cpu_has_amx_bytes (isa/isa.h) says so may they
 * run. Without TD_AMX_PLAYED this is the processor's; with it, whoever includes this has defined
 * the instructions before (tests/unit/cpu/played_amx.h), for the same loops. */
#ifndef TD_CPU_VECTORS_AMX_H
#define TD_CPU_VECTORS_AMX_H

#include <stdint.h>

enum { TD_AMX_TILES = 8, TD_AMX_ROWS = 16, TD_AMX_ROW_BYTES = 64 };

/* What LDTILECFG reads: a tile without rows has no bytes either, and is not used. */
typedef struct td_amx_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} td_amx_config;

_Static_assert(sizeof(td_amx_config) == 64, "the size that LDTILECFG reads");

#if !defined(TD_AMX_PLAYED) && defined(__x86_64__)
#include <immintrin.h>

#define TD_AMX_TARGET __attribute__((target("amx-tile,amx-int8")))

/* What was written to memory is there for tiles to be loaded: gcc's intrinsics don't tell it that
 * they read. */
#define TD_AMX_WRITTEN(memory) __asm__ volatile("" : : "r"(memory) : "memory")

#define TD_AMX_CONFIGURE(config)      _tile_loadconfig(config) /* all tiles become 0 */
#define TD_AMX_RELEASE()              _tile_release()          /* there are no tiles any more */
#define TD_AMX_ZERO(tile)             _tile_zero(tile)
#define TD_AMX_LOAD(tile, from, step) _tile_loadd(tile, from, step)
#define TD_AMX_STORE(tile, to, step)  _tile_stored(tile, to, step)
/* sums[r][c] += a[r][4k + i] * b[k][4c + i] for all k and i: uint8 times int8 to int32, which wraps
 * around. */
#define TD_AMX_ADD_FOURS(sums, a, b) _tile_dpbusd(sums, a, b)
#endif

#endif
