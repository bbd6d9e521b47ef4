/* isa.h: the CPU kernels that are compiled once per instruction set.
 *
 * Files *_kernels.c of cpu/ are built as baseline, AVX2 and AVX-512 (TD_ISA names the one being
 * built); each defines one table of functions, and isa_table.c gathers them. td_cpu points at the
 * set chosen when the engine starts. Nothing else in those files has external linkage.
 */
#ifndef TD_CPU_ISA_H
#define TD_CPU_ISA_H

#include "engine/cpu/factor/factor_kernels.h"
#include "engine/cpu/index/combine_kernels.h"
#include "engine/cpu/index/places_kernels.h"
#include "engine/cpu/isa/isa_symbol.h"
#include "engine/cpu/order/keys_kernels.h"
#include "engine/cpu/pointwise/convert_kernels.h"
#include "engine/cpu/pointwise/fused_kernels.h"
#include "engine/cpu/pointwise/pointwise_kernels.h"
#include "engine/cpu/pointwise/turn_kernels.h"
#include "engine/cpu/product/product_kernels.h"
#include "engine/cpu/quantized/grouped_kernels.h"
#include "engine/cpu/quantized/quantized_kernels.h"
#include "engine/cpu/random/random_kernels.h"
#include "engine/cpu/reduce/norm_kernels.h"
#include "engine/cpu/reduce/reduce_kernels.h"
#include "engine/cpu/reduce/scan_kernels.h"
#include "engine/cpu/reduce/softmax_kernels.h"
#include "engine/cpu/spatial/grid_kernels.h"
#include "engine/cpu/spatial/spatial_kernels.h"

typedef struct td_isa {
    const char *name;
    const td_convert_kernels *convert;
    const td_combine_kernels *combine;
    const td_places_kernels *places;
    const td_pointwise_kernels *pointwise;
    const td_fused_kernels *fused;
    const td_reduce_kernels *reduce;
    const td_scan_kernels *scan;
    const td_keys_kernels *keys;
    const td_softmax_kernels *softmax;
    const td_norm_kernels *norm;
    const td_spatial_kernels *spatial;
    const td_grid_kernels *grid;
    const td_random_kernels *random;
    const td_product_kernels *product;
    const td_factor_kernels *factor;
    const td_turn_kernels *turn;
    const td_quantized_kernels *quantized;
    const td_grouped_kernels *grouped;
} td_isa;

/* The chosen set; valid when the backend has started. */
extern const td_isa *td_cpu;

/* Choose by TIDE_CPU or by what the machine has. EVALUE names what the machine lacks. */
td_status td_cpu_choose(void) TD_MUST_CHECK;
/* Is there a set of this name ("avx512"), and does the machine have the instructions it takes? */
bool td_cpu_has_set(const char *name);
/* Bits of the low dtypes whose products are quicker than float32's. */
uint16_t td_cpu_quick(void);
/* Does the machine multiply pairs of bfloat16 (AVX512_BF16) at least as quickly as it would as
 * many of float32? Measured at the first call, some 10 us: it has the instruction on Zen 4 at twice
 * the rate, on Sapphire Rapids, which means AMX to be used, at half of it. */
bool td_cpu_pairs_bfloats(void);
/* Does the machine multiply bytes by fours (AVX512_VNNI)? */
bool td_cpu_has_vnni(void);
/* May this process multiply bytes by tiles (AMX-INT8)? The first call asks the system, which from
 * then on gives all threads more room for signals' frames. */
bool td_cpu_has_amx_bytes(void);

#endif
