/* plan.h: the plans that operators hand to a backend (core/backend.h): shapes, strides and numbers,
 * no device and no elements.
 *
 * A plan begins with its stream, which TD_RUN fills in; then come its tensors, those written first,
 * then what the function needs to know. Tensors are borrowed for the call; an optional one may be
 * NULL.
 */
#ifndef TD_OPS_PLAN_PLAN_H
#define TD_OPS_PLAN_PLAN_H

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
 * operands[i * noperands] and its noutputs results from outs[i * noutputs]. The last `nshared`
 * operands may be numbers that are the same for all lists: they stand once in `shared`, and a list
 * has noperands - nshared of its own.
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
    const td_operand *shared;
    int nshared; /* 0 with `out` */
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
    TD_FINISH_ANY,    /* not 0 */
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

/* Reductions of many tensors, each over all its dims to one element and none CENTERED, with the
 * bits that each would have by itself. No result shares memory with anything else. */
typedef struct td_reduce_lists_plan {
    td_stream stream;
    int n;
    const td_reduce_plan *plans; /* their streams are not read */
} td_reduce_lists_plan;

/* int64 `index` (and `values` of x's dtype, unless NULL) of the first largest or smallest element
 * along the masked dims: one dim, or all, counted in row-major order. NaN is the most extreme.
 * index and values have one layout. */
typedef struct td_find_plan {
    TD_PLAN_HEAD(3, *index, *values, *x);
    uint32_t mask;
    bool least;
} td_find_plan;

typedef enum td_scan_kind {
    TD_SCAN_SUM,
    TD_SCAN_PROD,
    TD_SCAN_MAX, /* and `index`: where it stands, the last of equals; NaN stays, as in the next */
    TD_SCAN_MIN,
    TD_SCAN_LOG_SUM_EXP, /* floats only, as the next */
    TD_SCAN_LINEAR       /* out_k = x_k + a_(k-1) * out_(k-1) */
} td_scan_kind;

/* out = x, converted to out's dtype, gathered up along dim (of a 0-dim x: x). index (int64) is
 * written by MAX and MIN, `a` (x's shape, out's dtype) read by LINEAR; else NULL. */
typedef struct td_scan_plan {
    TD_PLAN_HEAD(4, *out, *index, *x, *a);
    int dim;
    td_scan_kind kind;
} td_scan_plan;

/* ---- order ---- */

/* The elements of each line of x along dim (a 0-dim x is one line) in order: from the least to the
 * greatest, then NaN, or `descending` the other way round; equal ones, to which -0 and 0 belong, as
 * they stand. values (x's dtype) and index (int64: where they stood), either of which may be NULL,
 * have x's shape, or along dim fewer elements: then the first of that order. */
typedef struct td_sort_plan {
    TD_PLAN_HEAD(3, *values, *index, *x);
    int dim;
    bool descending;
} td_sort_plan;

typedef enum td_selection {
    TD_SELECT_RANK,      /* the one that `rank` others go before */
    TD_SELECT_MEDIAN,    /* the lower of two; the first NaN where there is one */
    TD_SELECT_NANMEDIAN, /* of what is not NaN */
    TD_SELECT_MODE,      /* the most frequent, the least of several; where it stands last */
} td_selection;

/* values and index (or NULL): of each line of x along dim, which has elements, one of the ascending
 * order of td_sort_plan and where it stood. They have one element along dim, and one layout. */
typedef struct td_select_plan {
    TD_PLAN_HEAD(3, *values, *index, *x);
    int dim;
    td_selection selection;
    int64_t rank;
} td_select_plan;

/* index (n int64, row-major) = the order of the rows of x (n, m), which is row-major, by their
 * first elements, then their second ones, and so on; equal rows as they stand. */
typedef struct td_order_rows_plan {
    TD_PLAN_HEAD(2, *index, *x);
} td_order_rows_plan;

/* out (int64 or int32, values' shape) = how many elements of a sequence are less than each value,
 * or no greater where `right`. Ascending sequences: one for all (1 dim), or a line for each of the
 * lines of values, whose dims but the last are then the same; x[sorter] where a sorter is given
 * (int64, sequence's shape). NaN is greater than all. EINDEX for a sorter that leads out of its
 * line. Of one dtype, row-major. */
typedef struct td_search_plan {
    TD_PLAN_HEAD(4, *out, *sequence, *values, *sorter);
    bool right;
} td_search_plan;

/* ---- softmax and losses ---- */

/* Without g: out = softmax(x), or its logarithm, along dim. With g: out = the gradient by the
 * input from g, where x is the result y of the forward direction. */
typedef struct td_softmax_plan {
    TD_PLAN_HEAD(3, *out, *x, *g);
    int dim;
    bool log;
} td_softmax_plan;

/* For each target its weight (1 where `weight` is NULL, 0 where it is `ignored`) and its class as
 * int64 (0 where ignored or refused). EINDEX for a target beyond [0, nclasses). All row-major. */
typedef struct td_class_weights_plan {
    TD_PLAN_HEAD(4, *weights, *classes, *target, *weight);
    int64_t nclasses, ignored; /* which counts from 0 */
    bool from_one;             /* on the CPU: the target counts from 1 */
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

/* The same of x that are logarithms of probabilities already. */
typedef struct td_nll_plan {
    TD_PLAN_HEAD(5, *loss, *total, *x, *classes, *weights);
    int dim;
    td_loss_reduction reduction;
} td_nll_plan;

/* out (row-major) = -onehot(classes) * weights * g, over `total` for the mean. */
typedef struct td_nll_backward_plan {
    TD_PLAN_HEAD(5, *out, *g, *classes, *weights, *total);
    int dim;
    td_loss_reduction reduction;
} td_nll_backward_plan;

/* ---- normalisations ---- */

/* x seen as batch x groups rows of per x inner elements, row-major: out = (x - mean) * rstd *
 * weight + bias with the row's own mean (0 unless `centered`) and rstd = 1 / sqrt(mean square of
 * what is left + eps). weight and bias (NULL: 1 and 0) have groups x per elements. mean and rstd, a
 * number for each row, have the wide dtype of x's. */
typedef struct td_norm_shape {
    int64_t batch, groups, per, inner;
    double eps;
    bool centered;
} td_norm_shape;

typedef struct td_norm_plan {
    TD_PLAN_HEAD(6, *out, *mean, *rstd, *x, *weight, *bias);
    td_norm_shape shape;
} td_norm_plan;

/* The gradients of norm from that of its result, g. dweight and dbias (wide, NULL: not wanted) have
 * groups x per elements. */
typedef struct td_norm_backward_plan {
    TD_PLAN_HEAD(8, *dx, *dweight, *dbias, *g, *x, *weight, *mean, *rstd);
    td_norm_shape shape;
} td_norm_backward_plan;

/* Of x (N, C, ...) the mean, the mean squared deviation from it and 1 / sqrt(that + eps) of each
 * channel; with g the sums of g and of g (x - mean) rstd, and no third. All but g and x have C
 * elements of the wide dtype. `last`: the channels lie closest together in x's memory. The root is
 * right where squares leave the dtype, except on the CPU, which has norm for such channels. */
typedef struct td_channel_sums_plan {
    TD_PLAN_HEAD(7, *first, *second, *third, *x, *g, *mean, *rstd);
    double eps;
    bool last;
} td_channel_sums_plan;

/* out = g k0 + (x - k1) k2 k4 + k3 with numbers for each channel: those of g only, or those of x
 * only, where x or g is NULL; k1 and k3 may be NULL (0), k4 too (1). k2 brings x to the size of g,
 * where the product of both may leave the dtype. All k have C elements of the wide dtype. */
typedef struct td_channel_map_plan {
    TD_PLAN_HEAD(8, *out, *g, *x, *k[5]);
    bool last;
} td_channel_map_plan;

/* ---- connectionist temporal classification ---- */

/* loss (N) = minus the log probability of each sequence of classes, given log_probs (T, N, C), over
 * all ways to spread it over time with repetitions and blanks between; alpha (N, T, 2 width + 1),
 * float64, the log probabilities of its beginnings. targets: (N, width), of which a row's first
 * target_lengths count, or `joined`: one sequence behind the other. All row-major, integers int64.
 * EINDEX for a target that is no class or the blank's, EVALUE for a length out of range. */
typedef struct td_ctc_plan {
    TD_PLAN_HEAD(6, *loss, *alpha, *log_probs, *targets, *input_lengths, *target_lengths);
    int64_t blank, width;
    bool joined;
} td_ctc_plan;

/* The gradient by the scores of which log_probs are the log_softmax, from g (N), as is everywhere
 * done. `finite`: zero for sequences whose loss is infinite. */
typedef struct td_ctc_backward_plan {
    TD_PLAN_HEAD(8, *dx, *g, *log_probs, *targets, *input_lengths, *target_lengths, *loss, *alpha);
    int64_t blank, width;
    bool joined, finite;
} td_ctc_backward_plan;

/* ---- products and convolution ---- */

enum { TD_SPATIAL = 3 }; /* spatial dims that there are at most */

/* How a tensor is seen as a batch of matrices; strides in elements, from its first element. */
typedef struct td_matrices {
    int64_t batch_stride, row_stride, column_stride;
} td_matrices;

/* out (batch x m x n) = a (batch x m x k) times b (batch x k x n), plus bias (n elements, NULL:
 * none) in every row. All of one dtype but bool; or a and b int8, and out int32, without a bias.
 * Sums of integers wrap around. */
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

/* x (n, c, spatial dims), weight (o, c / groups, kernel), y (n, o, spatial dims) with one to three
 * spatial dims, x and y perhaps without n. Of dims that are not there, which come first, all sizes
 * are 1 and the padding is 0. The padding behind the input follows from the other numbers. */
typedef struct td_conv_geometry {
    int64_t n, c, o, groups;
    int spatial;        /* how many dims are there */
    int ndim;           /* of x and y */
    bool channels_last; /* x and y lie as (n, spatial dims, channels), else row-major */
    bool weight_last;   /* the weight lies as (o, kernel, c / groups), else row-major */
    int64_t in[TD_SPATIAL], kernel[TD_SPATIAL], out[TD_SPATIAL];
    int64_t stride[TD_SPATIAL], padding[TD_SPATIAL], dilation[TD_SPATIAL];
} td_conv_geometry;

typedef enum td_conv_direction {
    TD_CONV_FORWARD, /* out = y, a = x, b = weight; bias may be NULL */
    TD_CONV_INPUT,   /* out = x's gradient, a = y's, b = weight */
    TD_CONV_WEIGHT   /* out = weight's gradient, a = x, b = y's gradient */
} td_conv_direction;

/* What becomes of each element v of a result, last of all. */
typedef enum td_curve {
    TD_CURVE_NONE,
    TD_CURVE_LIMITED,  /* minimum(maximum(v, least), most) */
    TD_CURVE_HARDSWISH /* v * minimum(maximum(v + 3, 0), 6) / 6 */
} td_curve;
typedef struct td_epilogue {
    td_curve curve;
    float least, most;
} td_epilogue;

/* All tensors without gaps, as the geometry says, and of one floating dtype; forward of integers
 * too, which wrap around. Of float32, forward, on the CPU alone: `added` (NULL: nothing), which has
 * out's shape and strides, is added to the result, and then comes the epilogue. */
typedef struct td_convolution_plan {
    TD_PLAN_HEAD(5, *out, *a, *b, *bias, *added);
    td_conv_geometry geometry;
    td_conv_direction direction;
    td_epilogue epilogue;
} td_convolution_plan;

/* ---- recurrent layers ---- */

typedef enum td_cell_kind { TD_CELL_ELMAN, TD_CELL_GRU, TD_CELL_LSTM } td_cell_kind;

/* All times of a layer of N rows and H hidden units, which has G gates: 1, 3 (reset, update, new)
 * or 4 (input, forget, new, output). x (T, N, G * H) is what the input gives; w is (G * H, H), bias
 * (NULL: none) a GRU's. The state is h (N, H) at first. At each time
 *
 *   sums = state * w^T + bias, in w's dtype;
 *
 *   Elman: state = tanh(x + sums), or relu where `rectified`;
 *
 *   GRU: r, z = sigmoid(x + sums), q = r * sums, n = tanh(x + q), state = n + z * (state - n);
 *
 *   LSTM: i, f, o = sigmoid(x + sums), u = tanh(x + sums), cell = f * cell + i * u,
 *
 *   state = o * tanh(cell), where `cell` is what it begins with.
 *
 * Written are states (T, N, H), of an LSTM cells (H), and of all but Elman gates (4 * H: r, z, n, q
 * or i, f, u, o), these of all times or of one, which then is the last that comes. Results are
 * row-major and of one dtype; x, w and bias are of one dtype, which states are rounded to before a
 * product. *done, false at first, becomes true where the device did it. */
typedef struct td_recurrent_plan {
    TD_PLAN_HEAD(8, *states, *cells, *gates, *x, *h, *w, *bias, *cell);
    td_cell_kind kind;
    bool backwards; /* the last time comes first */
    bool rectified;
    bool *done;
} td_recurrent_plan;

/* From the last time that came to the first: of_x and, of a GRU, of_h (T, N, G * H, w's dtype) =
 * the gradients of x and of the sums; before (N, H, w's dtype; NULL: not wanted) = that of h by way
 * of the sums; beside (N, H, the results' dtype; NULL of Elman) = that of h (GRU) past the sums or
 * of `cell` (LSTM). g and `given`, the gradients of states and cells, may be NULL; cells and gates
 * are of all times. */
typedef struct td_recurrent_backward_plan {
    TD_PLAN_HEAD(12, *of_x, *of_h, *before, *beside, *g, *given, *h, *w, *cell, *states, *cells,
                 *gates);
    td_cell_kind kind;
    bool backwards, rectified;
    bool *done;
} td_recurrent_backward_plan;

/* ---- windows over one to three spatial dims ---- */

/* How place k of a result sees the places of the input along one dim. */
typedef enum td_axis_kind {
    TD_AXIS_SLIDE,         /* `kernel` of them, `dilation` apart, from k * stride - padding on */
    TD_AXIS_DIVIDE,        /* [k * in / out, (k + 1) * in / out), rounded outwards */
    TD_AXIS_NEAREST,       /* the one at floor(k * scale) */
    TD_AXIS_NEAREST_EXACT, /* the one at floor((k + 1/2) * scale) */
    TD_AXIS_LINEAR,        /* the two around (k + 1/2) * scale - 1/2, or `aligned` k * scale */
    TD_AXIS_CUBIC,         /* the four around it */
    TD_AXIS_LINEAR_WIDE,   /* all that a triangle, or ... */
    TD_AXIS_CUBIC_WIDE,    /* ... a cubic kernel, as wide as a step of the result, covers */
    TD_AXIS_REFLECT,       /* k - padding, reflected at the ends, or ... */
    TD_AXIS_REPLICATE,     /* ... held at them, or ... */
    TD_AXIS_CIRCULAR       /* ... counted around */
} td_axis_kind;

/* One dim; of a dim that is not there all sizes are 1. */
typedef struct td_axis {
    td_axis_kind kind;
    int64_t in, out; /* places of the input and of the result */
    int64_t kernel, stride, padding, dilation;
    double scale;
    bool aligned;       /* to the centres of the corner elements */
    bool pixels;        /* weights are rounded to what 16 bits hold */
    bool mean;          /* SLIDE, DIVIDE: sums are divided by the number of places */
    bool count_padding; /* ... of which the padding's are some */
} td_axis;

/* out = sums of x's elements, weighted as each axis says; `transposed`: x and out change roles, and
 * out (zero at first) += what x's elements give to each place. x and out lie as (outer, spatial
 * dims, inner), row-major: images by channel have an inner of 1, channels last of C. Floats;
 * forward int64 and uint8 (rounded) too, and all dtypes where axes choose one place. */
typedef struct td_resample_plan {
    TD_PLAN_HEAD(2, *out, *x);
    bool transposed;
    int64_t outer, inner;
    int64_t divisor; /* of all sums, instead of the numbers of places; 0: none */
    td_axis axis[TD_SPATIAL];
} td_resample_plan;

typedef enum td_max_pool_kind {
    TD_MAX_POOL,    /* out = maxima of x, places (may be NULL) = where */
    TD_MAX_SCATTER, /* out (large, zero at first) += x (small) at places; floats */
    TD_MAX_GATHER   /* out (small) = x (large) at places */
} td_max_pool_kind;

/* Layout as above, of places (int64, counted through the spatial dims row-major) too. A NaN is the
 * largest element, the last of several. */
typedef struct td_max_pool_plan {
    TD_PLAN_HEAD(3, *out, *places, *x);
    td_max_pool_kind kind;
    bool in_windows; /* SCATTER: the places are of the axes' sliding windows, each in its own */
    int64_t outer, inner;
    td_axis axis[TD_SPATIAL];
} td_max_pool_plan;

/* ---- images read at the places of a grid ---- */

typedef enum td_grid_kind {
    TD_GRID_READ, /* out = x at the grid's places */
    TD_GRID_GIVE, /* out (like x, zero at first) += gradient at the grid's places */
    TD_GRID_SLOPE /* out (like grid) = sums over channels of gradient times READ's derivative */
} td_grid_kind;

typedef enum td_grid_mode {
    TD_GRID_NEAREST,
    TD_GRID_LINEAR,
    TD_GRID_CUBIC /* two dims only */
} td_grid_mode;

/* What lies beyond the edges. */
typedef enum td_grid_edge { TD_GRID_ZEROS, TD_GRID_BORDER, TD_GRID_REFLECTION } td_grid_edge;

/* x is (batch, channels, in...), grid (batch, places, n), whose last dim counts the dims from the
 * last; gradient and READ's result are (batch, channels, places); all row-major, of one dtype,
 * float32 or float64. GIVE has no x, READ no gradient. In the place of what is read stands its
 * derivative, order[d] times by the coordinate along dim d: so all kinds are one another's
 * gradients. NaN is the first place, but for ZEROS and CUBIC, where what is read is NaN. */
typedef struct td_grid_plan {
    TD_PLAN_HEAD(4, *out, *grid, *x, *gradient);
    td_grid_kind kind;
    td_grid_mode mode;
    td_grid_edge edge;
    bool aligned; /* -1 and 1 are the centres of the corner elements, not their outer edges */
    int n;        /* spatial dims: 2 or 3 */
    int64_t batch, channels, places;
    int64_t in[TD_SPATIAL], order[TD_SPATIAL];
} td_grid_plan;

/* ---- indices ---- */

/* Geometry of x[..., i, :, j, ...] with index tensors of one shape: x's elements that a place b of
 * the index tensors selects lie at before[] + picked(b) + after[]. Index tensors are row-major
 * int64 and count from 0 or 1, negative from the end. Reading: out (row-major) = x[index]. Writing:
 * out is the tensor written, x the values, row-major and of out's dtype. EINDEX for a place that is
 * not there. */
typedef struct td_index_plan {
    TD_PLAN_HEAD(18, *out, *x, *index[TD_MAX_DIMS]); /* `index`: one for each indexed dim */
    int nindexed;
    uint16_t from_one;                /* on the CPU: bit k: index[k] counts from 1 */
    bool accumulate;                  /* writing: += */
    bool one_row;                     /* writing on the CPU: x is of after_sizes, for all places */
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

/* What becomes of an element that is written and of the one that lies there. */
typedef enum td_combine {
    TD_COMBINE_PUT, /* the new one */
    TD_COMBINE_ADD,
    TD_COMBINE_MUL,
    TD_COMBINE_MAX, /* NaN wins, as in the next */
    TD_COMBINE_MIN,
    TD_COMBINES
} td_combine;

/* gather: out[..., k, ...] = x[..., index[..., k, ...], ...] along dim. scatter: out[...,
 * index[..., k, ...], ...] is combined with x[..., k, ...], x of out's dtype. int64 indices from 0,
 * or on the CPU from 1. EINDEX. */
typedef struct td_gather_plan {
    TD_PLAN_HEAD(3, *out, *x, *index);
    int dim;
    bool from_one;
    td_combine how; /* scatter */
} td_gather_plan;

/* out a 0-dim int64: number of x's elements that are not 0; else (n, x->ndim) int64, column by
 * column in memory, as many rows as were counted: their places in row-major order. */
typedef struct td_nonzero_plan {
    TD_PLAN_HEAD(2, *out, *x);
    bool places;
} td_nonzero_plan;

/* ---- making ---- */

typedef enum td_distribution {
    TD_UNIFORM,     /* a: low, b: high (floats) */
    TD_NORMAL,      /* a: mean, b: standard deviation (floats) */
    TD_BERNOULLI,   /* a: probability of b, else 0 */
    TD_RANDINT,     /* low, and how many numbers from there on */
    TD_EXPONENTIAL, /* a: rate (floats) */
    TD_CAUCHY,      /* a: median, b: half the width at half the height (floats) */
    TD_LOG_NORMAL,  /* a, b: of the logarithm (floats) */
    TD_GEOMETRIC    /* a: probability of success; trials up to the first */
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
    /* The numbers of out's dtype in which a range that is drawn from, uniform or of integers,
     * begins and ends: what rounding brings beyond them is brought back. */
    double least, most;
} td_draw_plan;

/* out = Poisson numbers with the means that x, of out's dtype, holds. Element i in row-major order
 * depends on seed, offset + i * TD_POISSON_BLOCKS and its mean alone. Row-major floats. */
enum { TD_POISSON_BLOCKS = 32 };
typedef struct td_poisson_plan {
    TD_PLAN_HEAD(2, *out, *x);
    uint64_t seed, offset;
} td_poisson_plan;

/* In each row of out (int64, rows x draws) places in the row of x (floats, rows x n) drawn with
 * probabilities in proportion to x: independently, or no place twice. The draws of row r take the
 * numbers from offset + r * td_multinomial_blocks on. EVALUE for a row that holds what is no
 * weight, or fewer weights above 0 than it needs. All row-major; x float64, but of any floats where
 * the CPU draws with replacement. */
typedef struct td_multinomial_plan {
    TD_PLAN_HEAD(2, *out, *x);
    bool replacement;
    uint64_t seed, offset;
} td_multinomial_plan;

/* Counters that a row takes: a number of two words for each draw, or for each place. */
static inline uint64_t td_multinomial_blocks(const td_multinomial_plan *p) {
    return ((uint64_t)(p->replacement ? p->out : p->x)->sizes[1] + 1) / 2;
}

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

/* ---- quantized tensors (ops/quantized/README.md) ---- */

/* out = clamp(zero point + rint(x * (1 / scale)), low, high) in float32, rint going to even from
 * half; NaN gives low. x is float32, out uint8, int8 or int32; both are row-major and seen as
 * (outer, channels, inner). Each channel has its scale (float32) and its zero point (int32). */
typedef struct td_quantize_plan {
    TD_PLAN_HEAD(4, *out, *x, *scales, *zero_points);
    int64_t outer, channels, inner;
    int32_t low, high;
} td_quantize_plan;

/* out (uint8, `packs` times as many as td_qpack_bytes says) = weight (int8, rows by depth,
 * row-major) in the order of ops/plan/quantized_pack.h, with the scale (float32) and the zero point
 * (int32) of each of its rows. Each pack has as many rows, of `joined` groups, which is 1 where all
 * rows read the same bytes. An out of 3 dims is for lines, and has
 * all of their memory: (packs, lines of a group, bytes of a step). */
typedef struct td_quantized_pack_plan {
    TD_PLAN_HEAD(4, *out, *weight, *scales, *zero_points);
    int64_t rows, depth, packs, joined;
    bool depthwise;
} td_quantized_pack_plan;

/* What becomes of the sums of a product of bytes. */
typedef struct td_requantization {
    float x_scale, out_scale; /* out_scale: of integers alone */
    int32_t x_zero_point, out_zero_point;
    int32_t low, high; /* what an integer may be; low is the zero point under `relu` */
    bool relu;
    float residual_scale; /* of what is added to the result before it is rounded, of integers */
    int32_t residual_zero_point;
} td_requantization;

/* out (rows by columns) = x (uint8, rows by depth) times packed weights, or lines, plus bias
 * (float32, by column; NULL: none): sums exact in 32 bits, then in float32 and in this order
 *   out float32:   sum * (x_scale * scale[column]) + bias
 *   out uint8, int8:  clamp(rint((sum + bias / (x_scale * scale)) * m) + zero point, low, high),
 *                     m = x_scale * scale[column] / out_scale
 * All are row-major. */
typedef struct td_quantized_linear_plan {
    TD_PLAN_HEAD(4, *out, *x, *packed, *bias);
    int64_t rows, columns, depth;
    td_requantization to;
} td_quantized_linear_plan;

/* out (float32, rows by columns) = x (float32, rows by depth) times weights of `bits` bits, plus
 * bias (float32, by column; NULL: none). Weights stand in groups of `group` along the depth, and
 * stand for scale[g] * (u - offset) - min[g]; offset is 2^(bits - 1) where there are no mins
 * (NULL), 0 where there are. Each row of x is rounded in blocks of 32 to int8:
 *   scale of x = the block's largest magnitude / 127;  q = rint(x * (1 / scale of x))
 * A block whose scale of x is not a normal number is 0, and one that holds NaN or an infinity makes
 * the row's results NaN. With sums of integers exact, all else is float32 in the order of the
 * depth, from 0, without fused steps: s[g] = the sum over steps in g of scale of x * sum(q * (u -
 * offset)) t[g] = the sum over steps in g of scale of x * sum(q) out  = (the sum over g of scale[g]
 * * s[g], then - min[g] * t[g]) + bias A step is 32 elements, 16 of 6 bits.
 *
 * Weights (uint8) lie in panels of 16 columns, which are rows of 64 bytes; the depth is filled up
 * to `groups` whole groups. Four neighbours along the depth of 16 columns, column by column, are a
 * quad. Of 8 bits, a row is a quad. Of 4, a row is two: the first in the low halves of its bytes.
 * Of 6, three rows are four quads: the low four bits as if there were four, and in the third row
 * two bits of each, the first's lowest. Scales and mins (float32) are (panels, groups, 16). */
typedef struct td_grouped_linear_plan {
    TD_PLAN_HEAD(6, *out, *x, *weight, *scales, *mins, *bias);
    int64_t rows, columns, depth, groups, group;
    int bits;
} td_grouped_linear_plan;

/* Each row of x (float32, row-major, finite) as bytes of out (uint8), the rows of which are
 * PyTorch's (embedding_bag_byte_prepack, embedding_bag_4bit_prepack): integers u from 0 on, of 4
 * bits two to a byte, the first in its low half, then a scale and an offset, of 8 bits in float32
 * and of 4 in float16. They stand for scale * u + offset. */
typedef struct td_pack_rows_plan {
    TD_PLAN_HEAD(2, *out, *x);
    int bits; /* 4 or 8 */
} td_pack_rows_plan;

/* out[b] (float32) = the sum, in order, over places k from starts[b] (int64) to starts[b + 1], the
 * last to the end of index, of row index[k] (int64) of such a table: u * (scale * w[k]) + offset *
 * w[k], w (float32) being 1 where there is none (NULL). Indices that are `padding` are left out;
 * `mean` divides by how many there are. starts NULL: bags of `length` places each. EINDEX for a
 * row that is not there, EVALUE for starts that fall or leave the index. */
typedef struct td_add_rows_plan {
    TD_PLAN_HEAD(5, *out, *table, *index, *starts, *weights);
    int64_t padding, length; /* padding: -1 for none */
    int bits;
    bool mean;
} td_add_rows_plan;

/* out (uint8) = convolution of x (uint8) with packed weights, or lines, plus bias (float32, by
 * output channel; NULL: none), rounded as a linear product is, and plus residual (uint8, of out's
 * shape; NULL: none) before the rounding:
 *   clamp(rint((sum + bias / (x_scale * scale)) * m +
 *              (residual - its zero point) * (residual_scale / out_scale)) + zero point, low, high)
 * x, out and residual lie channels last; places around x are its zero point. Place i of the
 * geometry's result is place first + i * every of out, which has `whole` places along each dim. */
typedef struct td_quantized_conv_plan {
    TD_PLAN_HEAD(5, *out, *x, *packed, *bias, *residual);
    td_conv_geometry geometry;
    int64_t first[TD_SPATIAL], every[TD_SPATIAL], whole[TD_SPATIAL];
    td_requantization to;
} td_quantized_conv_plan;

/* out = a + b or (`multiply`) a * b of the floats that uint8 or int8 of scales and zero points
 * stand for, as integers of out's: clamp(rint(value * (1 / out_scale)) + zero point, low, high),
 * all of it in float32. All are of one shape and lie the same way without gaps. */
typedef struct td_quantized_binary_plan {
    TD_PLAN_HEAD(3, *out, *a, *b);
    float a_scale, b_scale, out_scale;
    int32_t a_zero_point, b_zero_point, out_zero_point, low, high;
    bool multiply;
} td_quantized_binary_plan;

/* out = what the table (256 of out's dtype) has for each of x's bytes (uint8 or int8), in the order
 * of the integers from the lowest on. x and out are of one shape and lie the same way without gaps.
 */
typedef struct td_quantized_lookup_plan {
    TD_PLAN_HEAD(3, *out, *x, *table);
} td_quantized_lookup_plan;

#endif
