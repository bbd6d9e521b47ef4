/* quantized_lines.c: the work functions of packed weights, which are packs, or, where the CPU
 * stands in for another device, lines: it writes these, and makes packs of them for products. */
#include "engine/cpu/quantized/quantized_tiles.h"

#include <string.h>

static td_status write_lines(const td_quantized_pack_plan *plan) {
    const td_qlines l = td_qlines_for(plan->packs, plan->rows / plan->packs, plan->depth);
    const float *scales = plan->scales->data;
    const int32_t *zero_points = plan->zero_points->data;
    char *memory = plan->out->data;
    memset(memory, 0, (size_t)(plan->rows * l.step));
    for (int64_t row = 0; row < plan->rows; row++) {
        char *line = memory + row * l.step;
        const int8_t *weights = (const int8_t *)plan->weight->data + row * l.depth;
        int32_t sum = 0;
        for (int64_t k = 0; k < l.depth; k++)
            sum += weights[k];
        td_qline_head head = {.scale = scales[row],
                              .zero_point = zero_points[row],
                              .sum = sum - (int32_t)l.depth * zero_points[row]};
        memcpy(line, &head, sizeof head);
        memcpy(line + TD_QLINE_HEAD, weights, (size_t)l.depth);
    }
    return TD_OK;
}

/* The weight and its rows' parameters that lines were made of, new. */
static td_status unpack_lines(const td_tensor *lines, td_tensor **weight, td_tensor **scales,
                              td_tensor **zero_points) {
    const td_qlines l = td_qlines_of(lines);
    const int64_t rows = l.groups * l.columns;
    td_status status = TD_OK;
    TD_TRY(td_tensor_empty(TD_I8, TD_DEVICE_CPU, 2, (const int64_t[]){rows, l.depth}, weight));
    TD_TRY(td_tensor_empty(TD_F32, TD_DEVICE_CPU, 1, &rows, scales));
    TD_TRY(td_tensor_empty(TD_I32, TD_DEVICE_CPU, 1, &rows, zero_points));
    for (int64_t row = 0; row < rows; row++) {
        const char *line = (const char *)lines->data + row * l.step;
        td_qline_head head;
        memcpy(&head, line, sizeof head);
        ((float *)(*scales)->data)[row] = head.scale;
        ((int32_t *)(*zero_points)->data)[row] = head.zero_point;
        memcpy((int8_t *)(*weight)->data + row * l.depth, line + TD_QLINE_HEAD, (size_t)l.depth);
    }
done:
    return status;
}

/* The packs (new) that lines stand for. */
static td_status make_packs(const td_tensor *lines, td_tensor **packs) {
    const td_qlines l = td_qlines_of(lines);
    const int64_t sizes[2] = {l.groups,
                              td_qpack_bytes((td_qpack_shape){l.columns, l.depth, false})};
    td_quantized_pack_plan plan = {
        .rows = l.groups * l.columns, .depth = l.depth, .packs = l.groups, .joined = 1};
    td_status status = unpack_lines(lines, &plan.weight, &plan.scales, &plan.zero_points);
    if (status == TD_OK)
        status = td_tensor_empty(TD_U8, TD_DEVICE_CPU, l.groups > 1 ? 2 : 1,
                                 l.groups > 1 ? sizes : sizes + 1, packs);
    if (status == TD_OK) {
        plan.out = *packs;
        status = td_byte_packs_make(&plan);
    }
    td_release(plan.weight);
    td_release(plan.scales);
    td_release(plan.zero_points);
    return status;
}

/* ---- the work functions ---- */

td_status td_cpu_quantized_pack(const td_quantized_pack_plan *plan) {
    return plan->out->ndim == 3 ? write_lines(plan) : td_byte_packs_make(plan);
}

/* The work function of a plan whose weights may be lines, by the one for packs. */
#define DEFINE_BY_PACKS(NAME, RUN)                                                                 \
    td_status td_cpu_##NAME(const td_##NAME##_plan *plan) {                                        \
        td_##NAME##_plan packed = *plan;                                                           \
        td_tensor *made = NULL;                                                                    \
        td_status status = TD_OK;                                                                  \
        if (td_qpack_is_lines(plan->packed)) {                                                     \
            status = make_packs(plan->packed, &made);                                              \
            packed.packed = made;                                                                  \
        }                                                                                          \
        if (status == TD_OK)                                                                       \
            status = RUN(&packed);                                                                 \
        td_release(made);                                                                          \
        return status;                                                                             \
    }
DEFINE_BY_PACKS(quantized_linear, td_byte_packs_linear)
DEFINE_BY_PACKS(quantized_conv, td_byte_packs_conv)
