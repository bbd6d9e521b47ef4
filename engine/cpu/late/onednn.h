/* late/onednn.h: the calls into oneDNN that onednn.c makes, as a table. Behind each is a wall: what
 * the library throws comes back as a status, dnnl_out_of_memory for std::bad_alloc, as zero from
 * calls that return none.
 */
#ifndef TD_CPU_LATE_ONEDNN_H
#define TD_CPU_LATE_ONEDNN_H

#include <oneapi/dnnl/dnnl.h>

/* clang-format off */
#define TD_DNN_CALLS(CALL)                                                                         \
    CALL(engine_create) CALL(stream_create) CALL(stream_destroy) CALL(stream_wait)                 \
    CALL(set_primitive_cache_capacity) CALL(version) CALL(get_effective_cpu_isa)                   \
    CALL(primitive_attr_create) CALL(primitive_attr_destroy)                                       \
    CALL(primitive_attr_set_scratchpad_mode)                                                       \
    CALL(primitive_desc_create) CALL(primitive_desc_destroy) CALL(primitive_desc_query_md)         \
    CALL(primitive_desc_query)                                                                     \
    CALL(reorder_primitive_desc_create)                                                            \
    CALL(primitive_create) CALL(primitive_destroy) CALL(primitive_execute)                         \
    CALL(memory_create) CALL(memory_destroy) CALL(memory_desc_equal)                               \
    CALL(memory_desc_get_size) CALL(memory_desc_init_by_strides) CALL(memory_desc_init_by_tag)     \
    CALL(matmul_desc_init) CALL(sgemm) CALL(dilated_convolution_forward_desc_init)                             \
    CALL(dilated_convolution_backward_data_desc_init)                                              \
    CALL(dilated_convolution_backward_weights_desc_init)
/* clang-format on */

typedef struct td_late_onednn {
#define TD_DNN_FIELD(name) __typeof__(dnnl_##name) *name;
    TD_DNN_CALLS(TD_DNN_FIELD)
#undef TD_DNN_FIELD
} td_late_onednn;

#endif
