/* quantized_lines.h: packed weights as lines (ops/plan/quantized_pack.h), which the CPU meets where
 * it stands in for another device. */
#ifndef TD_CPU_QUANTIZED_QUANTIZED_LINES_H
#define TD_CPU_QUANTIZED_QUANTIZED_LINES_H

#include "engine/cpu/cpu.h"

/* A plan of quantized_pack whose out is the memory of lines. */
td_status td_cpu_pack_lines(const td_quantized_pack_plan *plan) TD_MUST_CHECK;
/* Plans whose packed weights are lines: these become packs first. ENOMEM. */
td_status td_cpu_linear_of_lines(const td_quantized_linear_plan *plan) TD_MUST_CHECK;
td_status td_cpu_conv_of_lines(const td_quantized_conv_plan *plan) TD_MUST_CHECK;

#endif
