/* loaded_libraries/onednn.h: the calls into oneDNN that onednn.c makes, as a table. oneDNN 2 and
 * oneDNN 3 make memory descriptors and primitives differently: what differs is a call of ours,
 * which loaded_libraries/onednn_2.cpp or loaded_libraries/onednn_3.cpp fills in for the version
 * that Tide is built with. Behind each call is a wall: what the library throws comes back as a
 * status, dnnl_out_of_memory for std::bad_alloc, as zero from calls that return none.
 */
#ifndef TD_CPU_LOADED_LIBRARIES_ONEDNN_H
#define TD_CPU_LOADED_LIBRARIES_ONEDNN_H

#include <oneapi/dnnl/dnnl.h>

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A memory descriptor: sizes, dtype and how the elements lie. Calls that hand one out make a new
 * one, which the caller destroys. */
typedef struct td_dnn_layout td_dnn_layout;

/* How a layout's elements lie: strides count elements, of whole blocks where there are blocks.
 * `plain` is false where there is more to it (compensation behind the elements, an offset). */
typedef struct td_dnn_blocks {
    dnnl_data_type_t type;
    int ndims, nblocks;
    bool plain;
    dnnl_dims_t dims, strides, blocks, block_dims;
} td_dnn_blocks;

/* A convolution: its layouts, those of gradients in the place of what they are gradients of; bias
 * is NULL where there is none. Dilation counts the elements that are left out. */
typedef struct td_dnn_conv_plan {
    const td_dnn_layout *x, *w, *bias, *y;
    dnnl_dims_t stride, dilation, padding, padding_end;
} td_dnn_conv_plan;

/* What each version does in its own way; the table has these without their prefix. */

/* Row-major sizes, with a stride for each. */
dnnl_status_t td_dnn_layout_create(td_dnn_layout **out, int ndims, const dnnl_dims_t dims,
                                   dnnl_data_type_t type, const dnnl_dims_t strides);
/* Of the same sizes and dtype, laid out as the primitive that gets it likes it best. */
dnnl_status_t td_dnn_layout_any(td_dnn_layout **out, const td_dnn_layout *like);
/* The layout that a planned primitive wants for an argument. */
dnnl_status_t td_dnn_layout_wanted(td_dnn_layout **out, const_dnnl_primitive_desc_t pd,
                                   dnnl_query_t what, int which);
void td_dnn_layout_destroy(td_dnn_layout *layout); /* or NULL */
bool td_dnn_layout_equal(const td_dnn_layout *a, const td_dnn_layout *b);
size_t td_dnn_layout_bytes(const td_dnn_layout *layout);
/* False where the elements don't lie in strides and blocks. */
bool td_dnn_layout_blocks(const td_dnn_layout *layout, td_dnn_blocks *out);

dnnl_status_t td_dnn_memory_create(dnnl_memory_t *out, const td_dnn_layout *layout,
                                   dnnl_engine_t engine, void *data);

/* Plans, which the caller destroys. The gradients of a convolution need its forward plan. */
dnnl_status_t td_dnn_plan_reorder(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                                  const td_dnn_layout *from, const td_dnn_layout *to);
dnnl_status_t td_dnn_plan_matmul(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                                 const_dnnl_primitive_attr_t attr, const td_dnn_layout *a,
                                 const td_dnn_layout *b, const td_dnn_layout *bias,
                                 const td_dnn_layout *c);
dnnl_status_t td_dnn_plan_conv(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                               const_dnnl_primitive_attr_t attr, const td_dnn_conv_plan *conv);
dnnl_status_t td_dnn_plan_conv_input(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                                     const_dnnl_primitive_attr_t attr, const td_dnn_conv_plan *conv,
                                     const_dnnl_primitive_desc_t forward);
dnnl_status_t td_dnn_plan_conv_weight(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                                      const_dnnl_primitive_attr_t attr,
                                      const td_dnn_conv_plan *conv,
                                      const_dnnl_primitive_desc_t forward);

/* clang-format off */
#define TD_DNN_OWN(CALL)                                                                           \
    CALL(layout_create) CALL(layout_any) CALL(layout_wanted) CALL(layout_destroy)                  \
    CALL(layout_equal) CALL(layout_bytes) CALL(layout_blocks) CALL(memory_create)                  \
    CALL(plan_reorder) CALL(plan_matmul) CALL(plan_conv) CALL(plan_conv_input)                     \
    CALL(plan_conv_weight)

/* What both versions have under one name. */
#define TD_DNN_SAME(CALL)                                                                          \
    CALL(engine_create) CALL(stream_create) CALL(stream_destroy) CALL(stream_wait)                 \
    CALL(set_primitive_cache_capacity) CALL(version) CALL(get_effective_cpu_isa)                   \
    CALL(primitive_attr_create) CALL(primitive_attr_destroy)                                       \
    CALL(primitive_attr_set_scratchpad_mode) CALL(primitive_desc_destroy)                          \
    CALL(primitive_desc_query) CALL(primitive_create) CALL(primitive_destroy)                      \
    CALL(primitive_execute) CALL(memory_destroy) CALL(sgemm)
/* clang-format on */

typedef struct td_late_onednn {
#define TD_DNN_FIELD(name) __typeof__(dnnl_##name) *name;
    TD_DNN_SAME(TD_DNN_FIELD)
#undef TD_DNN_FIELD
#define TD_DNN_FIELD(name) __typeof__(td_dnn_##name) *name;
    TD_DNN_OWN(TD_DNN_FIELD)
#undef TD_DNN_FIELD
} td_late_onednn;

#ifdef __cplusplus
}
#endif

#endif
