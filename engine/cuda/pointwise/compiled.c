/* compiled.c: says in which form a program's own kernel is wanted, and launches it with the words
 * that the form asks for. Which kernels there are is kernels.c's. */
#include "engine/cuda/pointwise/compiled.h"

#include "engine/ops/language/program.h"

#include <string.h>

enum { VALUES = 1 + TD_CU_SIDES + TD_CU_DIMS + TD_CU_SIDES * TD_CU_DIMS + TD_CU_CONSTANTS };

/* As source.c lays it out. */
typedef struct lists {
    int32_t n, stride;
    uint32_t tiles[TD_CU_LISTS + 1];
    int64_t words[TD_CU_WORDS];
} lists;

static cudaError_t launch(const void *kernel, const td_cuda_form *form, unsigned int tiles,
                          void **args, cudaStream_t stream) {
    return cudaLaunchKernel(kernel, (dim3){tiles, 1, 1},
                            (dim3){(unsigned int)td_cuda_threads(form), 1, 1}, args, 0, stream);
}

static int put_constants(const td_cu_code *code, int64_t *values) {
    memcpy(values, code->constants, sizeof *values * code->nconstants);
    return code->nconstants;
}

/* ---- dense lists ---- */

static int kind_of(uint64_t kinds, int load) {
    return (int)(kinds >> (2 * load) & 3);
}

/* Is a list one that a kernel for `kinds` takes? A tensor of the one element that a list has is as
 * dense as any. */
static bool has_kinds(const td_cu_code *code, const uint64_t *words, uint64_t kinds) {
    for (int k = 0; k < code->nloads && words[0] == 1; k++)
        if ((kind_of(words[1], k) == TD_CU_NUMBER) != (kind_of(kinds, k) == TD_CU_NUMBER))
            return false;
    return words[0] == 1 || words[1] == kinds;
}

/* Where lists differ in their kinds, no kernel is for all of them. */
static bool find_kinds(const td_cu_code *code, const td_cu_flat *flat, uint64_t *kinds) {
    int first = 0;
    while (first + 1 < flat->nlists && flat->words[first * flat->stride] == 1)
        first++;
    *kinds = flat->words[first * flat->stride + 1];
    for (int k = 0; k < code->nloads && flat->words[first * flat->stride] == 1; k++)
        if (kind_of(*kinds, k) == TD_CU_SINGLE)
            *kinds &= ~((uint64_t)3 << (2 * k)); /* dense */
    for (int list = 0; list < flat->nlists; list++)
        if (!has_kinds(code, flat->words + list * flat->stride, *kinds))
            return false;
    return true;
}

static int64_t count_elements(const td_cu_flat *flat) {
    return (int64_t)flat->tiles[flat->nlists] * TD_CU_TILE;
}

static cudaError_t run_one(const void *kernel, const td_cuda_form *form, const td_cu_code *code,
                           const td_cu_flat *flat, cudaStream_t stream) {
    int64_t values[VALUES];
    int sides = code->nloads + code->nouts;
    values[0] = (int64_t)flat->words[0];
    memcpy(values + 1, flat->words + 2, sizeof *values * (size_t)sides);
    put_constants(code, values + 1 + sides);
    return launch(kernel, form, flat->tiles[1], (void *[]){values}, stream);
}

static cudaError_t run_many(const void *kernel, const td_cuda_form *form, const td_cu_code *code,
                            const td_cu_flat *flat, cudaStream_t stream) {
    lists all;
    int64_t constants[TD_CU_CONSTANTS + 1];
    all.n = flat->nlists;
    all.stride = flat->stride;
    memcpy(all.tiles, flat->tiles, sizeof *all.tiles * (size_t)(flat->nlists + 1));
    memcpy(all.words, flat->words, sizeof *all.words * (size_t)(flat->nlists * flat->stride));
    put_constants(code, constants);
    return launch(kernel, form, flat->tiles[flat->nlists], (void *[]){&all, constants}, stream);
}

cudaError_t td_cuda_compiled_flat(int device, const td_cu_code *code, const td_cu_flat *flat,
                                  cudaStream_t stream) {
    td_cuda_form form = {.way = flat->nlists == 1 ? TD_CUDA_ONE : TD_CUDA_MANY,
                         .vector = (uint8_t)td_cuda_vector(code)};
    if (code->sums || !find_kinds(code, flat, &form.kinds))
        return cudaErrorNotSupported;
    const void *kernel = td_cuda_kernel(device, code, &form, count_elements(flat));
    if (!kernel)
        return cudaErrorNotSupported;
    return form.way == TD_CUDA_ONE ? run_one(kernel, &form, code, flat, stream)
                                   : run_many(kernel, &form, code, flat, stream);
}

/* ---- walks ---- */

static int size_of_side(const td_cu_code *code, int side) {
    int dtype = side < code->nloads ? code->load_from[side] : code->out_to[side - code->nloads];
    return (int)td_dtype_size((td_dtype)dtype);
}

static bool is_placed(const td_cu_code *code, const td_cu_walk *walk, int side) {
    return side >= code->nloads || kind_of(walk->kinds, side) == TD_CU_DENSE;
}

/* Can side k be taken by vectors along the last dim: dense there and aligned wherever it begins, or
 * a load that stays where it is? */
static bool takes_vectors(const td_cu_code *code, const td_cu_walk *walk, int k, int vector,
                          bool *repeated) {
    const int64_t *strides = &walk->strides[k * walk->ndim];
    int size = size_of_side(code, k), align = size * vector < 16 ? size * vector : 16;
    *repeated = k < code->nloads && strides[walk->ndim - 1] == 0;
    if (*repeated)
        return true;
    if (strides[walk->ndim - 1] != size || walk->words[k] % (uint64_t)align != 0)
        return false;
    for (int d = 0; d + 1 < walk->ndim; d++)
        if (strides[d] % align != 0)
            return false;
    return true;
}

static bool find_vectors(const td_cu_code *code, const td_cu_walk *walk, td_cuda_form *form) {
    int vector = td_cuda_vector(code);
    form->repeated = 0;
    if (walk->sizes[walk->ndim - 1] % vector != 0)
        return false;
    for (int k = 0; k < code->nloads + code->nouts; k++) {
        bool repeated = false;
        if (is_placed(code, walk, k) && !takes_vectors(code, walk, k, vector, &repeated))
            return false;
        form->repeated |= (uint64_t)repeated << k;
    }
    return true;
}

/* Are elements, or bytes of a side, counted beyond what 32 bits hold? */
static bool is_wide(const td_cu_code *code, const td_cu_walk *walk) {
    bool wide = walk->numel > INT32_MAX - 2 * TD_CU_TILE;
    for (int k = 0; k < code->nloads + code->nouts; k++) {
        int64_t reach = 0;
        for (int d = 0; d < walk->ndim; d++)
            reach += (walk->sizes[d] - 1) * walk->strides[k * walk->ndim + d];
        wide = wide || reach > INT32_MAX;
    }
    return wide;
}

cudaError_t td_cuda_compiled_walk(int device, const td_cu_code *code, const td_cu_walk *walk,
                                  cudaStream_t stream) {
    td_cuda_form form = {.kinds = walk->kinds, .way = TD_CUDA_WALK, .ndim = (uint8_t)walk->ndim};
    int64_t values[VALUES], *to = values;
    size_t sides = (size_t)(code->nloads + code->nouts), ndim = (size_t)walk->ndim;
    if (code->sums || walk->numel > (int64_t)INT32_MAX * TD_CU_TILE)
        return cudaErrorNotSupported;
    form.wide = is_wide(code, walk);
    bool vectors = find_vectors(code, walk, &form);
    form.vector = vectors ? (uint8_t)td_cuda_vector(code) : 1;
    form.repeated = vectors ? form.repeated : 0;
    const void *kernel = td_cuda_kernel(device, code, &form, walk->numel);
    if (!kernel)
        return cudaErrorNotSupported;
    *to++ = walk->numel;
    to = (int64_t *)memcpy(to, walk->words, sizeof *to * sides) + sides;
    to = (int64_t *)memcpy(to, walk->sizes, sizeof *to * ndim) + ndim;
    to = (int64_t *)memcpy(to, walk->strides, sizeof *to * sides * ndim) + sides * ndim;
    put_constants(code, to);
    return launch(kernel, &form, (unsigned int)((walk->numel + TD_CU_TILE - 1) / TD_CU_TILE),
                  (void *[]){values}, stream);
}
