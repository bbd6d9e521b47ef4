/* onednn_3.cpp: what oneDNN 3 does in its own way (loaded_libraries/onednn.h). A memory descriptor
 * is an object of the library's, which a td_dnn_layout pointer names; a primitive is planned in one
 * call.
 */
#include "engine/cpu/loaded_libraries/onednn.h"

#include <cstring>

namespace {

const_dnnl_memory_desc_t md(const td_dnn_layout *layout) {
    return reinterpret_cast<const_dnnl_memory_desc_t>(layout);
}

dnnl_memory_desc_t *place(td_dnn_layout **out) {
    return reinterpret_cast<dnnl_memory_desc_t *>(out);
}

} // namespace

dnnl_status_t td_dnn_layout_create(td_dnn_layout **out, int ndims, const dnnl_dims_t dims,
                                   dnnl_data_type_t type, const dnnl_dims_t strides) {
    return dnnl_memory_desc_create_with_strides(place(out), ndims, dims, type, strides);
}

dnnl_status_t td_dnn_layout_any(td_dnn_layout **out, const td_dnn_layout *like) {
    dnnl_data_type_t type;
    dnnl_dims_t *dims;
    int ndims;
    dnnl_status_t code = dnnl_memory_desc_query(md(like), dnnl_query_data_type, &type);
    if (code == dnnl_success)
        code = dnnl_memory_desc_query(md(like), dnnl_query_ndims_s32, &ndims);
    if (code == dnnl_success)
        code = dnnl_memory_desc_query(md(like), dnnl_query_dims, &dims);
    return code == dnnl_success ? dnnl_memory_desc_create_with_tag(place(out), ndims, *dims, type,
                                                                   dnnl_format_tag_any)
                                : code;
}

void td_dnn_layout_destroy(td_dnn_layout *layout) {
    if (layout)
        dnnl_memory_desc_destroy(reinterpret_cast<dnnl_memory_desc_t>(layout));
}

bool td_dnn_layout_equal(const td_dnn_layout *a, const td_dnn_layout *b) {
    return dnnl_memory_desc_equal(md(a), md(b));
}

size_t td_dnn_layout_bytes(const td_dnn_layout *layout) {
    return dnnl_memory_desc_get_size(md(layout));
}

bool td_dnn_layout_blocks(const td_dnn_layout *layout, td_dnn_blocks *out) {
    dnnl_format_kind_t kind;
    dnnl_dim_t offset, elements = 1;
    dnnl_dims_t *dims, *padded, *strides, *blocks, *block_dims;
    const struct {
        dnnl_query_t what;
        void *where;
    } queries[] = {
        {dnnl_query_format_kind, &kind},
        {dnnl_query_data_type, &out->type},
        {dnnl_query_ndims_s32, &out->ndims},
        {dnnl_query_submemory_offset_s64, &offset},
        {dnnl_query_dims, &dims},
        {dnnl_query_padded_dims, &padded},
        {dnnl_query_strides, &strides},
        {dnnl_query_inner_nblks_s32, &out->nblocks},
        {dnnl_query_inner_blks, &blocks},
        {dnnl_query_inner_idxs, &block_dims},
    };
    for (const auto &query : queries) {
        if (dnnl_memory_desc_query(md(layout), query.what, query.where) != dnnl_success)
            return false;
        if (query.where == &kind && kind != dnnl_blocked)
            return false;
    }
    std::memcpy(out->dims, *dims, sizeof(dnnl_dim_t) * (size_t)out->ndims);
    std::memcpy(out->strides, *strides, sizeof(dnnl_dim_t) * (size_t)out->ndims);
    std::memcpy(out->blocks, *blocks, sizeof(dnnl_dim_t) * (size_t)out->nblocks);
    std::memcpy(out->block_dims, *block_dims, sizeof(dnnl_dim_t) * (size_t)out->nblocks);
    for (int d = 0; d < out->ndims; d++)
        elements *= (*padded)[d];
    /* what is kept behind the elements has no query: it is told by the bytes */
    out->plain = offset == 0 &&
                 td_dnn_layout_bytes(layout) == (size_t)elements * dnnl_data_type_size(out->type);
    return true;
}

dnnl_status_t td_dnn_layout_wanted(td_dnn_layout **out, const_dnnl_primitive_desc_t pd,
                                   dnnl_query_t what, int which) {
    const_dnnl_memory_desc_t wanted = dnnl_primitive_desc_query_md(pd, what, which);
    return wanted ? dnnl_memory_desc_clone(place(out), wanted) : dnnl_invalid_arguments;
}

dnnl_status_t td_dnn_memory_create(dnnl_memory_t *out, const td_dnn_layout *layout,
                                   dnnl_engine_t engine, void *data) {
    return dnnl_memory_create(out, md(layout), engine, data);
}

dnnl_status_t td_dnn_plan_reorder(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                                  const td_dnn_layout *from, const td_dnn_layout *to) {
    return dnnl_reorder_primitive_desc_create(out, md(from), engine, md(to), engine, nullptr);
}

dnnl_status_t td_dnn_plan_matmul(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                                 const_dnnl_primitive_attr_t attr, const td_dnn_layout *a,
                                 const td_dnn_layout *b, const td_dnn_layout *bias,
                                 const td_dnn_layout *c) {
    return dnnl_matmul_primitive_desc_create(out, engine, md(a), md(b), md(bias), md(c), attr);
}

dnnl_status_t td_dnn_plan_conv(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                               const_dnnl_primitive_attr_t attr, const td_dnn_conv_plan *c) {
    return dnnl_convolution_forward_primitive_desc_create(
        out, engine, dnnl_forward_training, dnnl_convolution_direct, md(c->x), md(c->w),
        md(c->bias), md(c->y), c->stride, c->dilation, c->padding, c->padding_end, attr);
}

dnnl_status_t td_dnn_plan_conv_input(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                                     const_dnnl_primitive_attr_t attr, const td_dnn_conv_plan *c,
                                     const_dnnl_primitive_desc_t forward) {
    return dnnl_convolution_backward_data_primitive_desc_create(
        out, engine, dnnl_convolution_direct, md(c->x), md(c->w), md(c->y), c->stride, c->dilation,
        c->padding, c->padding_end, forward, attr);
}

dnnl_status_t td_dnn_plan_conv_weight(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                                      const_dnnl_primitive_attr_t attr, const td_dnn_conv_plan *c,
                                      const_dnnl_primitive_desc_t forward) {
    return dnnl_convolution_backward_weights_primitive_desc_create(
        out, engine, dnnl_convolution_direct, md(c->x), md(c->w), md(c->bias), md(c->y), c->stride,
        c->dilation, c->padding, c->padding_end, forward, attr);
}
