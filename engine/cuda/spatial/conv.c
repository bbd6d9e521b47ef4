/* conv.c: convolution and its gradients by cuDNN (dnn.c), or else by kernels of our own (conv.cu):
 * a product for each group of channels. */
#include "engine/cuda/product/product.h"
#include "engine/cuda/spatial/dnn.h"

#include <string.h>

static td_cu_images images_of(const td_conv_geometry *g, int64_t channels, const int64_t *sizes) {
    int64_t places = sizes[0] * sizes[1] * sizes[2];
    return g->channels_last ? (td_cu_images){channels * places, channels, 1}
                            : (td_cu_images){channels * places, 1, places};
}

static td_cu_images weight_of(const td_conv_geometry *g) {
    int64_t taps = g->kernel[0] * g->kernel[1] * g->kernel[2], c = g->c / g->groups;
    return g->weight_last ? (td_cu_images){c * taps, c, 1} : (td_cu_images){c * taps, 1, taps};
}

static void set_size(td_cu_convolution *c, const td_conv_geometry *g, td_conv_direction direction) {
    int64_t in = g->n * g->in[0] * g->in[1] * g->in[2];
    int64_t places = g->n * g->out[0] * g->out[1] * g->out[2];
    int64_t taps = g->kernel[0] * g->kernel[1] * g->kernel[2];
    td_cu_product_size *s = &c->size;
    s->batch = g->groups;
    switch (direction) {
    case TD_CONV_FORWARD:
        s->m = places;
        s->n = c->o;
        s->k = taps * c->c;
        break;
    case TD_CONV_INPUT:
        s->m = in;
        s->n = c->c;
        s->k = taps * c->o;
        break;
    case TD_CONV_WEIGHT:
        s->m = c->o;
        s->n = taps * c->c;
        s->k = places;
        break;
    }
}

static void set_geometry(td_cu_convolution *c, const td_conv_geometry *g,
                         td_conv_direction direction) {
    c->c = g->c / g->groups;
    c->o = g->o / g->groups;
    memcpy(c->in, g->in, sizeof c->in);
    memcpy(c->kernel, g->kernel, sizeof c->kernel);
    memcpy(c->places, g->out, sizeof c->places);
    memcpy(c->stride, g->stride, sizeof c->stride);
    memcpy(c->padding, g->padding, sizeof c->padding);
    memcpy(c->dilation, g->dilation, sizeof c->dilation);
    c->as_x = images_of(g, g->c, g->in);
    c->as_y = images_of(g, g->o, g->out);
    c->as_w = weight_of(g);
    set_size(c, g, direction);
}

static void set_tensors(td_cu_convolution *c, const td_convolution_plan *p) {
    const void *a = p->a->data, *b = p->b->data;
    switch (p->direction) {
    case TD_CONV_FORWARD:
        c->direction = TD_CU_CONV_FORWARD;
        c->x = a;
        c->w = b;
        c->bias = p->bias ? p->bias->data : NULL;
        break;
    case TD_CONV_INPUT:
        c->direction = TD_CU_CONV_INPUT;
        c->y = a;
        c->w = b;
        break;
    case TD_CONV_WEIGHT:
        c->direction = TD_CU_CONV_WEIGHT;
        c->x = a;
        c->y = b;
        break;
    }
}

static td_status run_on_cpu(const void *plan) {
    return td_backends[TD_CPU]->convolution(plan);
}

td_status td_cuda_convolution(const td_convolution_plan *p) {
    td_cu_convolution c = {.out = p->out->data, .dtype = p->out->dtype};
    td_cuda_scratch room = {.data = NULL};
    bool by_library = false;
    cudaStream_t s;
    td_status status;
    TD_TRY(td_cuda_begin(p->stream, 5, p->tensors, &s));
    if (p->out->numel > 0)
        TD_TRY(td_cuda_dnn_convolution(p, s, &by_library));
    if (p->out->numel == 0 || by_library)
        goto done;
    set_tensors(&c, p);
    set_geometry(&c, &p->geometry, p->direction);
    if (!td_cuda_product_fits(&c.size))
        return td_cuda_fall_back("convolution", p, sizeof *p, run_on_cpu, 5, 1);
    TD_TRY(td_cuda_product_parts(&c.size, (td_dtype)c.dtype, p->stream, &room));
    status = td_cuda_status(td_cu_convolution_run(&c, s), "convolving");
done:
    td_cuda_scratch_drop(&room);
    return status;
}
