/* plan.h: the plans that operators hand to a backend (core/backend.h): shapes, strides and numbers,
 * no device and no elements.
 *
 * A plan begins with its stream, which TD_RUN fills in; then come its tensors, those written first,
 * then what the function needs to know. Tensors are borrowed for the call; an optional one may be
 * NULL.
 */
#ifndef TD_OPS_PLAN_H
#define TD_OPS_PLAN_H

#include "engine/core/backend.h"
#include "engine/core/tensor.h"

#define TD_PLAN_HEAD(n, ...)                                                                       \
    td_stream stream;                                                                              \
    union {                                                                                        \
        td_tensor *tensors[n];                                                                     \
        struct {                                                                                   \
            td_tensor __VA_ARGS__;                                                                 \
        };                                                                                         \
    }

/* ---- pointwise ---- */

struct td_program;

/* A tensor or a number. */
typedef struct td_operand {
    const td_tensor *tensor; /* NULL: the number */
    bool is_int;
    double f;
    int64_t i;
} td_operand;

/* outs = program(operands), operands broadcast to the outputs' shape; TD_DTYPE_CALL is `compute`,
 * and an output of another dtype than its register's is converted. The same program runs over
 * `nlists` lists of tensors of any shapes: list i has the program's noperands operands from
 * operands[i * noperands] and its noutputs results from outs[i * noutputs].
 *
 * Results that are elements have one shape in a list. Sums and means have one element and are taken
 * over the broadcast shape of the results that are elements, or of all operands where there are
 * none; floats are summed as accurately as td_reduce_plan does it, the same for any number of
 * threads. A result may be one of the operands of its list, element for element; other overlaps
 * within a list are handled. Lists share no memory that is written. */
typedef struct td_pointwise_plan {
    td_stream stream;
    const struct td_program *program;
    const td_operand *operands;
    td_dtype compute;
    td_tensor *out; /* one list, one output: instead of outs */
    int nlists;     /* 0 with `out` */
    td_tensor *const *outs;
} td_pointwise_plan;

/* Fails where program(operands), a program of one output, is different from 0 somewhere in the
 * operands' common shape. */
typedef struct td_check_plan {
    td_stream stream;
    const struct td_program *program;
    const td_operand *operands;
    td_dtype compute;
    td_status code;
    const char *message; /* static */
} td_check_plan;

/* ---- reductions ---- */

typedef enum td_reducer {
    TD_REDUCE_SUM,
    TD_REDUCE_NANSUM,  /* sum of what is not NaN */
    TD_REDUCE_ABS_SUM, /* floats only, as the next two */
    TD_REDUCE_SQUARE_SUM,
    TD_REDUCE_CENTERED, /* sum of (x - mean)^2 */
    TD_REDUCE_NONZERO,  /* count of x != 0 */
    TD_REDUCE_PROD,
    TD_REDUCE_MAX, /* NaN wins, as in the next three */
    TD_REDUCE_MIN,
    TD_REDUCE_ABS_MAX, /* floats only, as the next */
    TD_REDUCE_ABS_MIN,
    TD_REDUCE_POWER_SUM, /* sum of |x|^power, floats only */
    TD_REDUCERS
} td_reducer;

/* What becomes of an accumulator. */
typedef enum td_finish {
    TD_FINISH_PLAIN,
    TD_FINISH_DIVIDE, /* by param */
    TD_FINISH_POWER,  /* to the power param */
    TD_FINISH_ALL,    /* equal to the count */
    TD_FINISH_STD     /* square root of value / param */
} td_finish;

/* Reduce x over the dims whose bit is set in `mask`. Elements are converted to `compute` as they
 * are read, accumulators to out's dtype as they are written (bool: by != 0). Accumulators: double
 * precision of floats, int64 of integers and bool. `power` is POWER_SUM's.
 */
typedef struct td_reduce_plan {
    TD_PLAN_HEAD(2, *out, *x);
    uint32_t mask;
    td_dtype compute;
    td_reducer reducer;
    td_finish finish;
    double param, power;
} td_reduce_plan;

/* int64 `index` (and `values` of x's dtype, unless NULL) of the first largest or smallest element
 * along the masked dims: one dim, or all, counted in row-major order. NaN is the most extreme.
 * index and values have one layout. */
typedef struct td_find_plan {
    TD_PLAN_HEAD(3, *index, *values, *x);
    uint32_t mask;
    bool least;
} td_find_plan;

/* out = running sums of x, converted to out's dtype, along dim (of a 0-dim x: x). */
typedef struct td_scan_plan {
    TD_PLAN_HEAD(2, *out, *x);
    int dim;
} td_scan_plan;

/* ---- softmax and losses ---- */

/* Without g: out = softmax(x), or its logarithm, along dim. With g: out = the gradient by the
 * input from g, where x is the result y of the forward direction. */
typedef struct td_softmax_plan {
    TD_PLAN_HEAD(3, *out, *x, *g);
    int dim;
    bool log;
} td_softmax_plan;

/* For each target its weight (1 where `weight` is NULL, 0 where it is `ignored`) and its class as
 * int64 (0 where ignored). EINDEX for a target beyond [0, nclasses). All row-major. */
typedef struct td_class_weights_plan {
    TD_PLAN_HEAD(4, *weights, *classes, *target, *weight);
    int64_t nclasses, ignored;
    bool ignores;
} td_class_weights_plan;

typedef enum td_loss_reduction {
    TD_LOSS_NONE,
    TD_LOSS_SUM,
    TD_LOSS_MEAN /* weighted: over the sum of the weights */
} td_loss_reduction;

/* loss (x's dtype), log-sum-exp of each line and sum of the weights, of scores x with the classes
 * at dim. lse, total and weights have the wide dtype (td_dtype_wide) of x's; row-major results. */
typedef struct td_cross_entropy_plan {
    TD_PLAN_HEAD(6, *loss, *lse, *total, *x, *classes, *weights);
    int dim;
    td_loss_reduction reduction;
} td_cross_entropy_plan;

/* out (row-major) = (softmax(x) - onehot(classes)) * weights * g, over `total` for the mean. */
typedef struct td_cross_entropy_backward_plan {
    TD_PLAN_HEAD(7, *out, *g, *x, *classes, *weights, *lse, *total);
    int dim;
    td_loss_reduction reduction;
} td_cross_entropy_backward_plan;

/* ---- products and convolution ---- */

/* How a tensor is seen as a batch of matrices; strides in elements, from its first element. */
typedef struct td_matrices {
    int64_t batch_stride, row_stride, column_stride;
} td_matrices;

/* out (batch x m x n) = a (batch x m x k) times b (batch x k x n), plus bias (n elements, NULL:
 * none) in every row. All of one dtype but bool. */
typedef struct td_product_plan {
    TD_PLAN_HEAD(4, *out, *a, *b, *bias);
    int64_t batch, m, n, k;
    td_matrices as_out, as_a, as_b;
} td_product_plan;

typedef enum td_factoring {
    TD_FACTOR_DET,      /* determinant, its sign, log of its absolute value */
    TD_FACTOR_COFACTOR, /* determinant times the transposed inverse, of singular matrices too */
    TD_FACTOR_SOLVE,    /* x: a x = b; b NULL: the unit matrix */
    TD_FACTOR_TRIANGLE, /* x: a x = b, of a the triangle alone */
    TD_FACTOR_CHOLESKY, /* l, or its transpose where `upper` */
    TD_FACTOR_QR,       /* q (NULL: not wanted), r */
    TD_FACTOR_SVD,      /* u, s, vh; u and vh NULL: not wanted */
    TD_FACTOR_EIGH,     /* values, vectors (NULL: not wanted) */
    TD_FACTORINGS
} td_factoring;

/* Of every matrix of a (the last two dims), float32 or float64. `info` (int32, one for each matrix;
 * NULL: what can't be done is EVALUE) takes LAPACK's answer: 0, or the place where it failed. */
typedef struct td_factor_plan {
    TD_PLAN_HEAD(6, *out[3], *info, *a, *b);
    td_factoring kind;
    bool upper; /* triangles: the upper one counts; else the lower */
    bool unit;  /* triangles: the diagonal counts as ones */
    bool full;  /* QR, SVD: square q, u, vh */
} td_factor_plan;

/* x (n, c, h, w) or (c, h, w), weight (o, c / groups, kh, kw), y (n, o, oh, ow) or (o, oh, ow).
 * Pairs are (height, width). */
typedef struct td_conv_geometry {
    int64_t n, c, h, w, o, kh, kw, oh, ow, groups;
    int64_t stride[2], padding[2], dilation[2];
    int ndim; /* of x and y: 3 or 4 */
} td_conv_geometry;

typedef enum td_conv_direction {
    TD_CONV_FORWARD, /* out = y, a = x, b = weight; bias may be NULL */
    TD_CONV_INPUT,   /* out = x's gradient, a = y's, b = weight */
    TD_CONV_WEIGHT   /* out = weight's gradient, a = x, b = y's gradient */
} td_conv_direction;

/* All tensors row-major and of one floating dtype. */
typedef struct td_convolution_plan {
    TD_PLAN_HEAD(4, *out, *a, *b, *bias);
    td_conv_geometry geometry;
    td_conv_direction direction;
} td_convolution_plan;

/* ---- windows over planes ---- */

typedef enum td_pool_kind {
    TD_POOL_MAX,              /* out = maxima of x, places (int32, in the plane) = where */
    TD_POOL_SCATTER,          /* out (large, zero at first) += x (small) at places */
    TD_POOL_GATHER,           /* out (small) = x (large) at places */
    TD_POOL_MEAN,             /* out = means of x's windows */
    TD_POOL_MEAN_BACKWARD,    /* out (large, zero at first) += x (small) shared out */
    TD_POOL_NEAREST,          /* out = x's element that lies at the same part of the plane */
    TD_POOL_NEAREST_BACKWARD, /* out (small, zero at first) += x (large) */
} td_pool_kind;

/* Windows along one dim of the larger planes: sliding ones of `kernel` elements, or `adaptive`
 * (window k covers [k * in / out, (k + 1) * in / out), rounded outwards). */
typedef struct td_pool_window {
    int64_t in, out; /* elements of the larger and the smaller planes */
    int64_t kernel, stride, padding, dilation;
    double scale; /* nearest: place k comes from floor(k * scale) */
} td_pool_window;

/* Row-major, of one floating dtype, planes last. `places` is written by TD_POOL_MAX, read by
 * SCATTER and GATHER, else NULL. */
typedef struct td_pool_plan {
    TD_PLAN_HEAD(3, *out, *places, *x);
    td_pool_kind kind;
    int64_t planes;
    td_pool_window window[2]; /* rows, columns */
    bool adaptive;
    bool count_padding; /* means: the padding counts as elements */
    int64_t divisor;    /* means: what sums are divided by instead, or 0 */
} td_pool_plan;

/* ---- indices ---- */

/* Geometry of x[..., i, :, j, ...] with index tensors of one shape: x's elements that a place b of
 * the index tensors selects lie at before[] + picked(b) + after[]. Index tensors are row-major
 * int64 and count from 0, negative from the end. Reading: out (row-major) = x[index]. Writing: out
 * is the tensor written, x the values, row-major and of out's dtype. EINDEX for a place that is not
 * there. */
typedef struct td_index_plan {
    TD_PLAN_HEAD(18, *out, *x, *index[TD_MAX_DIMS]); /* `index`: one for each indexed dim */
    int nindexed;
    bool accumulate;                  /* writing: += */
    int64_t index_sizes[TD_MAX_DIMS]; /* of the dims that they index */
    int64_t index_strides[TD_MAX_DIMS];
    int index_dims[TD_MAX_DIMS];
    int nbefore, nafter; /* the other dims, before and after the indexed */
    int64_t before_sizes[TD_MAX_DIMS], before_strides[TD_MAX_DIMS];
    int64_t after_sizes[TD_MAX_DIMS], after_strides[TD_MAX_DIMS];
    int64_t before, places, after; /* elements of the result: their product */
    int ndim;                      /* shape of the result: before, index, after */
    int64_t sizes[TD_MAX_DIMS];
} td_index_plan;

/* gather: out[..., k, ...] = x[..., index[..., k, ...], ...] along dim. scatter: out[...,
 * index[..., k, ...], ...] = (or +=) x[..., k, ...], x of out's dtype. int64 indices from 0.
 * EINDEX. */
typedef struct td_gather_plan {
    TD_PLAN_HEAD(3, *out, *x, *index);
    int dim;
    bool accumulate;
} td_gather_plan;

/* out a 0-dim int64: number of x's elements that are not 0; else (n, x->ndim) int64 row-major, as
 * many rows as were counted: their places in row-major order. */
typedef struct td_nonzero_plan {
    TD_PLAN_HEAD(2, *out, *x);
    bool places;
} td_nonzero_plan;

/* ---- making ---- */

typedef enum td_distribution {
    TD_UNIFORM,   /* a: low, b: high (floats) */
    TD_NORMAL,    /* a: mean, b: standard deviation (floats) */
    TD_BERNOULLI, /* a: probability of b, else 0 */
    TD_RANDINT    /* low, and how many numbers from there on */
} td_distribution;

/* Independent draws; element i in row-major order depends on seed, offset and i alone
 * (core/random.h says how words become numbers). */
typedef struct td_draw_plan {
    TD_PLAN_HEAD(1, *out);
    td_distribution distribution;
    double a, b;
    int64_t low;
    uint64_t count;
    uint64_t seed, offset;
} td_draw_plan;

/* The order of 0 .. n-1 by keys of 64 random bits, equal keys by number: word pairs of the
 * generator's counters, so that every device gives the same. out: row-major int64. */
typedef struct td_permutation_plan {
    TD_PLAN_HEAD(1, *out);
    uint64_t seed, offset;
} td_permutation_plan;

/* Element k is first + k * step, and from the middle on last - (n - 1 - k) * step where
 * `anchored`; integers (ifirst, istep) where `integer`. out row-major. */
typedef struct td_progression_plan {
    TD_PLAN_HEAD(1, *out);
    bool integer, anchored;
    int64_t ifirst, istep;
    double first, step, last;
} td_progression_plan;

/* out (any strides) = x where column - row lies in [first, last], else 0. out may be x. */
typedef struct td_band_plan {
    TD_PLAN_HEAD(2, *out, *x);
    int64_t first, last;
} td_band_plan;

/* out's memory at offset + sum of i_d * strides[d] += x's element at (i_0, i_1, ...), in elements.
 * out row-major, floats. */
typedef struct td_add_strided_plan {
    TD_PLAN_HEAD(2, *out, *x);
    int64_t strides[TD_MAX_DIMS], offset;
} td_add_strided_plan;

#endif
