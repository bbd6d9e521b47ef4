/* scan.c: running sums and products on the CPU: floats in double, integers in int64, whatever the
 * dtypes of input and result, which are converted block by block. Lines that lie side by side are
 * walked together. Other scans are scan_lines.c's. */
#include "engine/cpu/scan.h"
#include "engine/core/interrupt.h"
#include "engine/core/threads.h"
#include "engine/cpu/block.h"
#include "engine/cpu/cpu.h"
#include "engine/ops/copy.h"
#include "engine/ops/reduction.h"

#include <string.h>

enum { WIDTH = 256, FOUR = 4, DEPTH = 256 };

typedef struct scan {
    td_reduction plan; /* kept dims: the lines */
    const char *x;
    char *out;
    td_dtype from, to;
    int64_t n, stride, out_stride;
    int64_t step; /* lines that an item stands for */
} scan;

#define DEFINE_SCAN(NAME, type, dtype, FIRST, OP)                                                  \
    /* Up to FOUR lines, whose sums do not wait for one another. */                                \
    static void few_##NAME(const scan *s, const char *const *x, char *const *out, int64_t lines) { \
        type block[FOUR][DEPTH], total[FOUR] = {FIRST, FIRST, FIRST, FIRST};                       \
        int64_t size = (int64_t)td_dtype_size(s->from), out_size = (int64_t)td_dtype_size(s->to);  \
        for (int64_t at = 0; at < s->n && !td_interrupt_requested(); at += DEPTH) {                \
            int64_t len = s->n - at < DEPTH ? s->n - at : DEPTH;                                   \
            for (int64_t c = 0; c < lines; c++)                                                    \
                td_block_read(dtype, block[c], s->from, x[c] + at * s->stride * size, s->stride,   \
                              len);                                                                \
            for (int64_t c = lines; c < FOUR; c++)                                                 \
                memset(block[c], 0, (size_t)len * sizeof(type));                                   \
            for (int64_t k = 0; k < len; k++)                                                      \
                for (int c = 0; c < FOUR; c++)                                                     \
                    block[c][k] = total[c] OP block[c][k];                                         \
            for (int64_t c = 0; c < lines; c++)                                                    \
                td_block_write(s->to, out[c] + at * s->out_stride * out_size, s->out_stride,       \
                               dtype, block[c], len);                                              \
        }                                                                                          \
    }                                                                                              \
    /* `lines` lines whose inputs lie side by side, results `apart`. */                            \
    static void lines_##NAME(const scan *s, const char *x, char *out, int64_t lines,               \
                             int64_t apart) {                                                      \
        type row[WIDTH], total[WIDTH];                                                             \
        int64_t size = (int64_t)td_dtype_size(s->from), out_size = (int64_t)td_dtype_size(s->to);  \
        for (int64_t c = 0; c < lines; c++)                                                        \
            total[c] = FIRST;                                                                      \
        for (int64_t k = 0; k < s->n && !td_interrupt_requested(); k++) {                          \
            td_block_read(dtype, row, s->from, x + k * s->stride * size, 1, lines);                \
            for (int64_t c = 0; c < lines; c++)                                                    \
                total[c] OP row[c];                                                                \
            td_block_write(s->to, out + k * s->out_stride * out_size, apart, dtype, total, lines); \
        }                                                                                          \
    }                                                                                              \
    static void scan_##NAME(void *ctx, int64_t begin, int64_t end, int worker) {                   \
        const scan *s = ctx;                                                                       \
        const td_reduction *p = &s->plan;                                                          \
        int64_t stride = p->kept_strides[p->nkept - 1], apart = p->out_strides[p->nkept - 1];      \
        int64_t size = (int64_t)td_dtype_size(s->from), out_size = (int64_t)td_dtype_size(s->to);  \
        int64_t last = end * s->step < p->outputs ? end * s->step : p->outputs;                    \
        (void)worker;                                                                              \
        for (int64_t at = begin * s->step; at < last;) {                                           \
            td_segment lines = td_reduction_kept(p, at, last - at < WIDTH ? last : at + WIDTH);    \
            const char *x = s->x + lines.offset * size;                                            \
            char *out = s->out + lines.out_offset * out_size;                                      \
            if (s->step == WIDTH)                                                                  \
                lines_##NAME(s, x, out, lines.len, apart);                                         \
            for (int64_t k = 0; s->step == FOUR && k < lines.len; k += FOUR) {                     \
                const char *xs[FOUR];                                                              \
                char *outs[FOUR];                                                                  \
                int64_t few = lines.len - k < FOUR ? lines.len - k : FOUR;                         \
                for (int64_t c = 0; c < few; c++) {                                                \
                    xs[c] = x + (k + c) * stride * size;                                           \
                    outs[c] = out + (k + c) * apart * out_size;                                    \
                }                                                                                  \
                few_##NAME(s, xs, outs, few);                                                      \
            }                                                                                      \
            at += lines.len;                                                                       \
        }                                                                                          \
    }
DEFINE_SCAN(sum_floats, double, TD_F64, 0, +=)
DEFINE_SCAN(sum_integers, int64_t, TD_I64, 0, +=)
DEFINE_SCAN(product_floats, double, TD_F64, 1, *=)
DEFINE_SCAN(product_integers, int64_t, TD_I64, 1, *=)

static td_range_fn scanner(td_scan_kind kind, td_dtype to) {
    if (kind == TD_SCAN_PROD)
        return td_dtype_is_float(to) ? scan_product_floats : scan_product_integers;
    return td_dtype_is_float(to) ? scan_sum_floats : scan_sum_integers;
}

/* An input that runs along the dim while the result does not is turned first, in a way that
 * caches like, unless that was done (`again`). */
static td_status scan_along(const td_scan_plan *plan, const td_tensor *x, bool again) {
    const td_tensor *out = plan->out;
    int dim = plan->dim;
    scan s = {.x = x->data,
              .out = out->data,
              .from = (td_dtype)x->dtype,
              .to = (td_dtype)out->dtype,
              .n = 1,
              .step = FOUR};
    uint32_t mask = x->ndim ? 1u << dim : 0;
    if (mask) {
        s.n = x->sizes[dim];
        s.stride = x->strides[dim];
        s.out_stride = out->strides[dim];
    }
    td_reduction_plan(x, mask, out, &s.plan);
    int last = s.plan.nkept - 1;
    if (!again && s.stride == 1 && s.out_stride != 1 && s.plan.outputs > 1) {
        td_tensor *turned;
        td_status status = td_contiguous((td_tensor *)x, &turned);
        if (status == TD_OK)
            status = scan_along(plan, turned, true);
        td_release(turned);
        return status;
    }
    if (s.plan.kept_strides[last] == 1 && s.stride != 1)
        s.step = WIDTH;
    int64_t items = (s.plan.outputs + s.step - 1) / s.step, work = s.n * s.step;
    return td_parallel_for(items, 4 * work, scanner(plan->kind, s.to), &s);
}

td_status td_cpu_scan(const td_scan_plan *plan) {
    if (plan->out->numel == 0)
        return TD_OK;
    if (plan->kind == TD_SCAN_SUM || plan->kind == TD_SCAN_PROD)
        return scan_along(plan, plan->x, false);
    return td_scan_lines(plan);
}
