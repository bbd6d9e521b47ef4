/* backend.h: what a device is: one struct of functions, filled by engine/cpu, engine/cuda and the
 * tests' own device.
 *
 * Operators know no device: they make a plan (ops/plan/plan.h) and hand it to the backend of the
 * device that their tensors lie on. A function that a device lacks is NULL, and TD_RUN says so by
 * name. Memory functions take the stream in whose order they happen; a storage remembers its
 * stream.
 *
 * Work may be done later, in the stream's order. What a function can tell at once it returns; what
 * only the elements show (an index out of range, a division by zero) it returns at once or from the
 * next download or synchronize of the stream. Nothing of a plan but programs and tensors may be
 * kept: a device that works later copies the plan and retains the tensors.
 */
#ifndef TD_CORE_BACKEND_H
#define TD_CORE_BACKEND_H

#include "engine/core/device.h"

/* The work functions, one row each: name, plan, tensors in the plan, how many of them (the first)
 * are written. Results have the shape that the plan implies and, unless said otherwise, any
 * strides; inputs may have any strides and lie on the same device. Results share no memory with
 * inputs except where said.
 *   pointwise       programs over operands that broadcast; a result may be one of its operands
 *   check           fails with the plan's message where a program's value is true somewhere
 *   reduce          sums, products, extremes, norms, moments over dims
 *   find            places (and values) of extremes along a dim
 *   scan            running sums, products, extremes along a dim
 *   sort, select    elements along a dim in order, or one of that order
 *   order_rows      rows of a matrix in order
 *   search          places of values in sequences
 *   softmax         softmax, its logarithm, and the gradients of both along a dim
 *   class_weights   checks labels; the weight of each
 *   cross_entropy, cross_entropy_backward   of scores with labels, and the gradient
 *   nll, nll_backward           of logarithms of probabilities, likewise
 *   norm, norm_backward         of rows to mean 0 and variance 1, and the gradients
 *   channel_sums, channel_map   moments and sums by channel, and an affine map for each
 *   product         batches of matrix products, plus a row of biases
 *   factor          decompositions of batches of matrices, and what they solve
 *   convolution     of images, its gradient by the images, by the weights
 *   resample        sums over windows of one to three dims, weighted, and back
 *   max_pool        maxima over such windows, and by their places
 *   grid            images read at the places of a grid, and the gradients of that
 *   index_read, index_write   x[indices], x[indices] = or += values
 *   gather, scatter           by an index along one dim
 *   nonzero         number of the elements different from zero, or their places
 *   draw            random numbers
 *   poisson         random counts with given means
 *   multinomial     random places with given weights
 *   permutation     a random order of 0 .. n-1
 *   progression     first, first + step, ...
 *   band            a matrix's part between two diagonals
 *   add_strided     adds to elements that a strided view names, overlapping or not
 *   quantize        floats as integers of a scale and a zero point
 *   quantized_pack, quantized_linear   weights of bytes in the order that their product reads them,
 *                   and that product with rows of bytes, rescaled
 *   grouped_linear  rows of floats, rounded in blocks, times weights of a few bits in groups
 *   pack_rows, add_rows   tables whose rows are bytes or halves of bytes, and sums of their rows
 *   quantized_conv  convolutions of bytes with such weights
 *   quantized_binary   sums and products of bytes, element by element
 *   quantized_lookup   bytes by a table of all of them */
#define TD_BACKEND_WORK(X)                                                                         \
    X(pointwise, td_pointwise_plan, 0, 0) /* lists of its own */                                   \
    X(check, td_check_plan, 0, 0)         /* likewise */                                           \
    X(reduce, td_reduce_plan, 2, 1)                                                                \
    X(find, td_find_plan, 3, 2)                                                                    \
    X(scan, td_scan_plan, 4, 2)                                                                    \
    X(sort, td_sort_plan, 3, 2)                                                                    \
    X(select, td_select_plan, 3, 2)                                                                \
    X(order_rows, td_order_rows_plan, 2, 1)                                                        \
    X(search, td_search_plan, 4, 1)                                                                \
    X(softmax, td_softmax_plan, 3, 1)                                                              \
    X(class_weights, td_class_weights_plan, 4, 2)                                                  \
    X(cross_entropy, td_cross_entropy_plan, 6, 3)                                                  \
    X(cross_entropy_backward, td_cross_entropy_backward_plan, 7, 1)                                \
    X(nll, td_nll_plan, 5, 2)                                                                      \
    X(nll_backward, td_nll_backward_plan, 5, 1)                                                    \
    X(norm, td_norm_plan, 6, 3)                                                                    \
    X(norm_backward, td_norm_backward_plan, 8, 3)                                                  \
    X(channel_sums, td_channel_sums_plan, 7, 3)                                                    \
    X(channel_map, td_channel_map_plan, 8, 1)                                                      \
    X(ctc, td_ctc_plan, 6, 2)                                                                      \
    X(ctc_backward, td_ctc_backward_plan, 8, 1)                                                    \
    X(product, td_product_plan, 4, 1)                                                              \
    X(factor, td_factor_plan, 6, 4)                                                                \
    X(convolution, td_convolution_plan, 5, 1)                                                      \
    X(resample, td_resample_plan, 2, 1)                                                            \
    X(max_pool, td_max_pool_plan, 3, 2)                                                            \
    X(grid, td_grid_plan, 4, 1)                                                                    \
    X(index_read, td_index_plan, 18, 1)                                                            \
    X(index_write, td_index_plan, 18, 1)                                                           \
    X(gather, td_gather_plan, 3, 1)                                                                \
    X(scatter, td_gather_plan, 3, 1)                                                               \
    X(nonzero, td_nonzero_plan, 2, 1)                                                              \
    X(draw, td_draw_plan, 1, 1)                                                                    \
    X(poisson, td_poisson_plan, 2, 1)                                                              \
    X(multinomial, td_multinomial_plan, 2, 1)                                                      \
    X(permutation, td_permutation_plan, 1, 1)                                                      \
    X(progression, td_progression_plan, 1, 1)                                                      \
    X(band, td_band_plan, 2, 1)                                                                    \
    X(add_strided, td_add_strided_plan, 2, 1)                                                      \
    X(quantize, td_quantize_plan, 4, 1)                                                            \
    X(quantized_pack, td_quantized_pack_plan, 4, 1)                                                \
    X(quantized_linear, td_quantized_linear_plan, 4, 1)                                            \
    X(grouped_linear, td_grouped_linear_plan, 6, 1)                                                \
    X(pack_rows, td_pack_rows_plan, 2, 1)                                                          \
    X(add_rows, td_add_rows_plan, 5, 1)                                                            \
    X(quantized_conv, td_quantized_conv_plan, 5, 1)                                                \
    X(quantized_binary, td_quantized_binary_plan, 3, 1)                                            \
    X(quantized_lookup, td_quantized_lookup_plan, 3, 1)

#define TD_BACKEND_DECLARE(function, plan, ntensors, nwritten) struct plan;
TD_BACKEND_WORK(TD_BACKEND_DECLARE)
#undef TD_BACKEND_DECLARE
struct td_reduce_lists_plan;
struct td_recurrent_plan;
struct td_recurrent_backward_plan;

/* A device in words, for people; valid for ever. */
typedef struct td_backend_facts {
    const char *kernels; /* which of its kernels run: "avx2" */
    char libraries[160]; /* names and versions of what it stands on, with commas between them */
    uint16_t quick;      /* bits of the low dtypes whose products are quicker than float32's */
} td_backend_facts;

typedef struct td_backend {
    const char *name; /* "cpu", "cuda": what device strings begin with */

    /* Called once, by td_backend_register, whose result a failure is. NULL: nothing to do. */
    td_status (*start)(void);
    /* What a device of this kind is. NULL: there is nothing to say. */
    td_backend_facts (*describe)(int index);
    /* How many devices of this kind are there? */
    int (*count)(void);
    /* A block of at least `bytes`, aligned to 64, usable in the order of the stream; *granted is
     * what release must be given. NULL: out of memory. */
    void *(*allocate)(td_stream stream, size_t bytes, size_t *granted);
    /* Give back a block when the stream's work so far is done. */
    void (*release)(td_stream stream, void *block, size_t granted);
    /* End what is done in threads of the backend's own. NULL: it has none. */
    void (*stop)(void);
    /* Return cached blocks to the system. */
    void (*empty_cache)(int index);
    /* Bytes that the cache holds, and requests that it could not serve. */
    void (*cache_counts)(int index, int64_t *cached, int64_t *system_allocations);
    /* Bytes from one block of the device to another, from the host, to the host. upload has read
     * the host's memory and download has written it when they return. */
    td_status (*copy)(td_stream stream, void *dst, const void *src, size_t bytes);
    td_status (*upload)(td_stream stream, void *dst, const void *host, size_t bytes);
    td_status (*download)(td_stream stream, void *host, const void *src, size_t bytes);
    /* Wait for the stream's work; the first error that it met. */
    td_status (*synchronize)(td_stream stream);
    /* Streams and events for the user, pinned memory, what the device is; NULL: there are none. */
    const struct td_queues *queues;

#define TD_BACKEND_FUNCTION(function, plan, ntensors, nwritten)                                    \
    td_status (*function)(const struct plan *plan);
    TD_BACKEND_WORK(TD_BACKEND_FUNCTION)
#undef TD_BACKEND_FUNCTION
    /* Many reductions in one parallel loop. NULL: callers run one after the other. */
    td_status (*reduce_lists)(const struct td_reduce_lists_plan *plan);
    /* All times of a recurrent layer, and the way back through them. NULL, or the plan's *done
     * still false: callers go from time to time by the functions above. */
    td_status (*recurrent)(const struct td_recurrent_plan *plan);
    td_status (*recurrent_backward)(const struct td_recurrent_backward_plan *plan);
} td_backend;

/* Start and add a kind of device; `backend` stays valid for ever. The type is that of the name
 * where one is known, else the next free one. EVALUE for a name that is taken, or no free type. */
td_status td_backend_register(const td_backend *backend) TD_MUST_CHECK;

extern const td_backend *td_backends[TD_DEVICE_TYPES]; /* by type; NULL: not registered */
static inline const td_backend *td_backend_of(td_device device) {
    return td_backends[device.type];
}

/* EDEVICE: the device lacks a function. */
td_status td_backend_lacks(td_device device, const char *function);

/* Hand a plan (a pointer to a struct that begins with its stream) to a device's function:
 *   TD_RUN(device, reduce, &plan) */
#define TD_RUN(where, function, given)                                                             \
    (__extension__({                                                                               \
        td_device device_ = (where);                                                               \
        const td_backend *backend_ = td_backend_of(device_);                                       \
        (given)->stream = td_stream_current(device_);                                              \
        TD_LIKELY(backend_->function != NULL) ? backend_->function(given)                          \
                                              : td_backend_lacks(device_, #function);              \
    }))

#endif
