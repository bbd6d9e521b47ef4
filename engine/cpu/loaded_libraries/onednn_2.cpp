/* onednn_2.cpp: what oneDNN 2 does in its own way (loaded_libraries/onednn.h). A memory descriptor
 * is a struct of its header, kept on the heap here; a primitive is planned from a descriptor of the
 * operation.
 */
#include "engine/cpu/loaded_libraries/onednn.h"

#include <cstring>

struct td_dnn_layout {
    dnnl_memory_desc_t md;
};

namespace {

const dnnl_memory_desc_t *md(const td_dnn_layout *layout) {
    return layout ? &layout->md : nullptr;
}

dnnl_status_t keep(td_dnn_layout **out, const dnnl_memory_desc_t &md) {
    *out = new td_dnn_layout{md};
    return dnnl_success;
}

} // namespace

dnnl_status_t td_dnn_layout_create(td_dnn_layout **out, int ndims, const dnnl_dims_t dims,
                                   dnnl_data_type_t type, const dnnl_dims_t strides) {
    dnnl_memory_desc_t md;
    dnnl_status_t code = dnnl_memory_desc_init_by_strides(&md, ndims, dims, type, strides);
    return code == dnnl_success ? keep(out, md) : code;
}

dnnl_status_t td_dnn_layout_any(td_dnn_layout **out, const td_dnn_layout *like) {
    dnnl_memory_desc_t md;
    dnnl_status_t code = dnnl_memory_desc_init_by_tag(&md, like->md.ndims, like->md.dims,
                                                      like->md.data_type, dnnl_format_tag_any);
    return code == dnnl_success ? keep(out, md) : code;
}

void td_dnn_layout_destroy(td_dnn_layout *layout) {
    delete layout;
}

bool td_dnn_layout_equal(const td_dnn_layout *a, const td_dnn_layout *b) {
    return dnnl_memory_desc_equal(&a->md, &b->md);
}

size_t td_dnn_layout_bytes(const td_dnn_layout *layout) {
    return dnnl_memory_desc_get_size(&layout->md);
}

bool td_dnn_layout_blocks(const td_dnn_layout *layout, td_dnn_blocks *out) {
    const dnnl_memory_desc_t *md = &layout->md;
    const dnnl_blocking_desc_t *b = &md->format_desc.blocking;
    if (md->format_kind != dnnl_blocked)
        return false;
    out->type = md->data_type;
    out->ndims = md->ndims;
    out->nblocks = b->inner_nblks;
    out->plain = !md->extra.flags && !md->offset0;
    std::memcpy(out->dims, md->dims, sizeof out->dims);
    std::memcpy(out->strides, b->strides, sizeof out->strides);
    std::memcpy(out->blocks, b->inner_blks, sizeof out->blocks);
    std::memcpy(out->block_dims, b->inner_idxs, sizeof out->block_dims);
    return true;
}

dnnl_status_t td_dnn_layout_wanted(td_dnn_layout **out, const_dnnl_primitive_desc_t pd,
                                   dnnl_query_t what, int which) {
    const dnnl_memory_desc_t *wanted = dnnl_primitive_desc_query_md(pd, what, which);
    return wanted ? keep(out, *wanted) : dnnl_invalid_arguments;
}

dnnl_status_t td_dnn_memory_create(dnnl_memory_t *out, const td_dnn_layout *layout,
                                   dnnl_engine_t engine, void *data) {
    return dnnl_memory_create(out, &layout->md, engine, data);
}

dnnl_status_t td_dnn_plan_reorder(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                                  const td_dnn_layout *from, const td_dnn_layout *to) {
    return dnnl_reorder_primitive_desc_create(out, &from->md, engine, &to->md, engine, nullptr);
}

dnnl_status_t td_dnn_plan_matmul(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                                 const_dnnl_primitive_attr_t attr, const td_dnn_layout *a,
                                 const td_dnn_layout *b, const td_dnn_layout *bias,
                                 const td_dnn_layout *c) {
    dnnl_matmul_desc_t d;
    dnnl_status_t code = dnnl_matmul_desc_init(&d, md(a), md(b), md(bias), md(c));
    return code == dnnl_success ? dnnl_primitive_desc_create(out, &d, attr, engine, nullptr) : code;
}

dnnl_status_t td_dnn_plan_conv(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                               const_dnnl_primitive_attr_t attr, const td_dnn_conv_plan *c) {
    dnnl_convolution_desc_t d;
    dnnl_status_t code = dnnl_dilated_convolution_forward_desc_init(
        &d, dnnl_forward_training, dnnl_convolution_direct, md(c->x), md(c->w), md(c->bias),
        md(c->y), c->stride, c->dilation, c->padding, c->padding_end);
    return code == dnnl_success ? dnnl_primitive_desc_create(out, &d, attr, engine, nullptr) : code;
}

dnnl_status_t td_dnn_plan_conv_input(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                                     const_dnnl_primitive_attr_t attr, const td_dnn_conv_plan *c,
                                     const_dnnl_primitive_desc_t forward) {
    dnnl_convolution_desc_t d;
    dnnl_status_t code = dnnl_dilated_convolution_backward_data_desc_init(
        &d, dnnl_convolution_direct, md(c->x), md(c->w), md(c->y), c->stride, c->dilation,
        c->padding, c->padding_end);
    return code == dnnl_success ? dnnl_primitive_desc_create(out, &d, attr, engine, forward) : code;
}

dnnl_status_t td_dnn_plan_conv_weight(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                                      const_dnnl_primitive_attr_t attr, const td_dnn_conv_plan *c,
                                      const_dnnl_primitive_desc_t forward) {
    dnnl_convolution_desc_t d;
    dnnl_status_t code = dnnl_dilated_convolution_backward_weights_desc_init(
        &d, dnnl_convolution_direct, md(c->x), md(c->w), md(c->bias), md(c->y), c->stride,
        c->dilation, c->padding, c->padding_end);
    return code == dnnl_success ? dnnl_primitive_desc_create(out, &d, attr, engine, forward) : code;
}
