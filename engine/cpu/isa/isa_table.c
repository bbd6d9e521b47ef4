/* isa_table.c: all kernels of this instruction set in one table. */
#include "engine/cpu/isa/isa.h"

extern const td_convert_kernels TD_ISA_SYMBOL(td_convert_kernels);
extern const td_combine_kernels TD_ISA_SYMBOL(td_combine_kernels);
extern const td_places_kernels TD_ISA_SYMBOL(td_places_kernels);
extern const td_pointwise_kernels TD_ISA_SYMBOL(td_pointwise_kernels);
extern const td_fused_kernels TD_ISA_SYMBOL(td_fused_kernels);
extern const td_reduce_kernels TD_ISA_SYMBOL(td_reduce_kernels);
extern const td_scan_kernels TD_ISA_SYMBOL(td_scan_kernels);
extern const td_keys_kernels TD_ISA_SYMBOL(td_keys_kernels);
extern const td_softmax_kernels TD_ISA_SYMBOL(td_softmax_kernels);
extern const td_norm_kernels TD_ISA_SYMBOL(td_norm_kernels);
extern const td_spatial_kernels TD_ISA_SYMBOL(td_spatial_kernels);
extern const td_grid_kernels TD_ISA_SYMBOL(td_grid_kernels);
extern const td_random_kernels TD_ISA_SYMBOL(td_random_kernels);
extern const td_product_kernels TD_ISA_SYMBOL(td_product_kernels);
extern const td_factor_kernels TD_ISA_SYMBOL(td_factor_kernels);
extern const td_turn_kernels TD_ISA_SYMBOL(td_turn_kernels);
extern const td_quantized_kernels TD_ISA_SYMBOL(td_quantized_kernels);
extern const td_grouped_kernels TD_ISA_SYMBOL(td_grouped_kernels);

#define TEXT2(x) #x
#define TEXT(x)  TEXT2(x)

extern const td_isa TD_ISA_SYMBOL(td_isa);
const td_isa TD_ISA_SYMBOL(td_isa) = {
    .name = TEXT(TD_ISA),
    .convert = &TD_ISA_SYMBOL(td_convert_kernels),
    .combine = &TD_ISA_SYMBOL(td_combine_kernels),
    .places = &TD_ISA_SYMBOL(td_places_kernels),
    .pointwise = &TD_ISA_SYMBOL(td_pointwise_kernels),
    .fused = &TD_ISA_SYMBOL(td_fused_kernels),
    .reduce = &TD_ISA_SYMBOL(td_reduce_kernels),
    .scan = &TD_ISA_SYMBOL(td_scan_kernels),
    .keys = &TD_ISA_SYMBOL(td_keys_kernels),
    .softmax = &TD_ISA_SYMBOL(td_softmax_kernels),
    .norm = &TD_ISA_SYMBOL(td_norm_kernels),
    .spatial = &TD_ISA_SYMBOL(td_spatial_kernels),
    .grid = &TD_ISA_SYMBOL(td_grid_kernels),
    .random = &TD_ISA_SYMBOL(td_random_kernels),
    .product = &TD_ISA_SYMBOL(td_product_kernels),
    .factor = &TD_ISA_SYMBOL(td_factor_kernels),
    .turn = &TD_ISA_SYMBOL(td_turn_kernels),
    .quantized = &TD_ISA_SYMBOL(td_quantized_kernels),
    .grouped = &TD_ISA_SYMBOL(td_grouped_kernels),
};
