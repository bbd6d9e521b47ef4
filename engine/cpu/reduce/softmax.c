/* softmax.c: softmax and its logarithm along a dim on the CPU, and their gradients.
 *
 * Inputs are seen as outer x n x inner, row-major: by rows when inner is 1, else by strips of
 * neighbouring columns. Many short rows are turned into columns, few long columns into rows. Knows
 * nothing of losses.
 */
#include "engine/cpu/reduce/softmax.h"

#include "engine/core/threads.h"
#include "engine/cpu/cpu.h"
#include "engine/cpu/isa/isa.h"
#include "engine/cpu/limits.h"
#include "engine/cpu/pointwise/strided_convert.h"
#include "engine/cpu/pointwise/transpose.h"
#include "engine/cpu/reduce/dim_lines.h"
#include "engine/ops/make/copy.h"
#include "engine/ops/plan/row_blocks.h"

td_status td_softmax_functions_of(td_dtype dtype, const td_softmax_functions **fns) {
    *fns = td_cpu->softmax->of[dtype];
    return *fns ? TD_OK : td_cpu_lacks(dtype);
}

td_class_layout td_class_layout_of(const td_tensor *x, int dim) {
    td_class_layout l = {.outer = 1, .n = 1, .inner = 1};
    for (int d = 0; d < x->ndim; d++)
        *(d < dim ? &l.outer : d == dim ? &l.n : &l.inner) *= x->sizes[d];
    l.strips = (l.inner + TD_SOFTMAX_WIDTH - 1) / TD_SOFTMAX_WIDTH;
    return l;
}

#if !defined(TD_LIMITS_VARIABLE)
_Static_assert(TD_CLASS_SHORT <= (int)TD_ROW_BLOCK_SHORT &&
                   TD_LIMIT(SOFTMAX_LINES) <= (int)TD_ROW_BLOCK_SHORT,
               "blocks of short rows");
#endif
bool td_class_is_short(const td_class_layout *l) {
    return l->inner == 1 && l->n <= TD_CLASS_SHORT && l->outer >= TD_LIMIT(SOFTMAX_LINES);
}

int64_t td_class_items(const td_class_layout *l) {
    if (td_class_is_short(l))
        return (l->outer + TD_SOFTMAX_WIDTH - 1) / TD_SOFTMAX_WIDTH;
    return l->inner == 1 ? l->outer : l->outer * l->strips;
}

int64_t td_class_cost(const td_class_layout *l) {
    bool wide = td_class_is_short(l) || l->inner >= TD_SOFTMAX_WIDTH;
    return 16 * l->n * (wide ? TD_SOFTMAX_WIDTH : l->inner);
}

int64_t td_class_rows(const td_class_layout *l, int64_t item) {
    int64_t left = l->outer - item * TD_SOFTMAX_WIDTH;
    return left < TD_SOFTMAX_WIDTH ? left : TD_SOFTMAX_WIDTH;
}

void td_class_turn(const td_class_layout *l, int64_t item, void *tile, const void *x, size_t size) {
    const char *from = (const char *)x + item * TD_SOFTMAX_WIDTH * l->n * (int64_t)size;
    td_cpu_turn(tile, TD_SOFTMAX_WIDTH, from, l->n, l->n, td_class_rows(l, item), size);
}

void td_class_turn_back(const td_class_layout *l, int64_t item, void *out, const void *tile,
                        size_t size) {
    char *to = (char *)out + item * TD_SOFTMAX_WIDTH * l->n * (int64_t)size;
    td_cpu_turn(to, l->n, tile, TD_SOFTMAX_WIDTH, td_class_rows(l, item), l->n, size);
}

td_strip td_class_strip(const td_class_layout *l, int64_t item) {
    int64_t outer = item / l->strips, column = item % l->strips * TD_SOFTMAX_WIDTH;
    int64_t left = l->inner - column;
    return (td_strip){.offset = outer * l->n * l->inner + column,
                      .line = outer * l->inner + column,
                      .width = left < TD_SOFTMAX_WIDTH ? left : TD_SOFTMAX_WIDTH};
}

typedef struct job {
    td_class_layout layout;
    const td_softmax_functions *fns;
    const char *x, *g; /* g: NULL in the forward direction, where x is the input; else x is y */
    char *out;
    int64_t itemsize;
    bool log;
} job;

static void run_short(const job *j, int64_t item) {
    _Alignas(64) char x[TD_CLASS_TILE], g[TD_CLASS_TILE];
    const td_class_layout *l = &j->layout;
    const size_t size = (size_t)j->itemsize;
    int64_t rows = td_class_rows(l, item);
    td_class_turn(l, item, x, j->x, size);
    if (j->g) {
        td_class_turn(l, item, g, j->g, size);
        j->fns->backward_columns(x, g, x, l->n, TD_SOFTMAX_WIDTH, rows, j->log);
    } else {
        j->fns->columns(x, x, l->n, TD_SOFTMAX_WIDTH, rows, j->log);
    }
    td_class_turn_back(l, item, j->out, x, size);
}

static void run_items(void *ctx, int64_t begin, int64_t end, int worker) {
    const job *j = ctx;
    const td_class_layout *l = &j->layout;
    (void)worker;
    if (td_class_is_short(l)) {
        for (int64_t item = begin; item < end; item++)
            run_short(j, item);
        return;
    }
    if (l->inner == 1) {
        int64_t at = begin * l->n * j->itemsize;
        if (j->g)
            j->fns->backward_rows(j->out + at, j->g + at, j->x + at, end - begin, l->n, j->log);
        else
            j->fns->rows(j->out + at, j->x + at, end - begin, l->n, j->log);
        return;
    }
    for (int64_t item = begin; item < end; item++) {
        td_strip s = td_class_strip(l, item);
        int64_t at = s.offset * j->itemsize;
        if (j->g)
            j->fns->backward_columns(j->out + at, j->g + at, j->x + at, l->n, l->inner, s.width,
                                     j->log);
        else
            j->fns->columns(j->out + at, j->x + at, l->n, l->inner, s.width, j->log);
    }
}

/* Few columns side by side that are long: as rows. */
static bool is_long(const td_class_layout *l) {
    return l->inner > 1 && l->inner < TD_LIMIT(SOFTMAX_COLUMNS) && l->n >= TD_LIMIT(SOFTMAX_TURNED);
}

static td_status lines_of(td_tensor **x, int dim) {
    td_tensor *lines = NULL;
    td_status status = td_lines_of(*x, dim, &lines);
    td_release(*x);
    *x = lines;
    return status;
}

td_status td_cpu_softmax(const td_softmax_plan *plan) {
    td_tensor *out = plan->out, *x = NULL, *g = NULL, *result = NULL;
    td_dtype dtype = (td_dtype)out->dtype;
    job j = {.itemsize = (int64_t)td_dtype_size(dtype), .log = plan->log};
    td_status status = TD_OK;
    TD_TRY(td_softmax_functions_of(dtype, &j.fns));
    TD_TRY(td_contiguous_as(plan->x, dtype, &x));
    if (plan->g)
        TD_TRY(td_contiguous_as(plan->g, dtype, &g));
    j.layout = td_class_layout_of(out, plan->dim);
    bool turned = is_long(&j.layout);
    if (turned) {
        TD_TRY(lines_of(&x, plan->dim));
        if (g)
            TD_TRY(lines_of(&g, plan->dim));
        TD_TRY(td_lines_for(out, plan->dim, &result));
        j.layout = td_class_layout_of(x, x->ndim - 1);
    } else if (out->contiguous) {
        result = td_retain(out);
    } else {
        TD_TRY(td_tensor_empty(dtype, TD_DEVICE_CPU, out->ndim, out->sizes, &result));
    }
    j.x = x->data;
    j.g = g ? g->data : NULL;
    j.out = result->data;
    if (out->numel > 0)
        TD_TRY(td_parallel_for(td_class_items(&j.layout), td_class_cost(&j.layout), run_items, &j));
    if (turned)
        TD_TRY(td_lines_put(out, plan->dim, result));
    else if (result != out)
        TD_TRY(td_copy_into(out, result));
done:
    td_release(x);
    td_release(g);
    td_release(result);
    return status;
}
