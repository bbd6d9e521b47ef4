/* scan.c: running sums on the CPU: floats are summed in double, integers in int64, whatever the
 * dtypes of input and result, which are converted block by block. Lines that lie side by side are
 * walked together. */
#include "engine/core/threads.h"
#include "engine/cpu/block.h"
#include "engine/cpu/cpu.h"
#include "engine/ops/reduction.h"

enum { GRAIN = 16 * 1024, WIDTH = 256 };

typedef struct scan {
    td_reduction plan; /* kept dims: the lines */
    const char *x;
    char *out;
    td_dtype from, to;
    int64_t n, stride, out_stride;
    int64_t step; /* lines that an item stands for */
} scan;

#define DEFINE_SCAN(type, dtype)                                                                   \
    static void line_##type(const scan *s, const char *x, char *out) {                             \
        type block[TD_BLOCK], total = 0;                                                           \
        int64_t size = (int64_t)td_dtype_size(s->from), out_size = (int64_t)td_dtype_size(s->to);  \
        for (int64_t at = 0; at < s->n; at += TD_BLOCK) {                                          \
            int64_t len = s->n - at < TD_BLOCK ? s->n - at : TD_BLOCK;                             \
            td_block_read(dtype, block, s->from, x + at * s->stride * size, s->stride, len);       \
            for (int64_t k = 0; k < len; k++)                                                      \
                block[k] = total += block[k];                                                      \
            td_block_write(s->to, out + at * s->out_stride * out_size, s->out_stride, dtype,       \
                           block, len);                                                            \
        }                                                                                          \
    }                                                                                              \
    /* `lines` lines whose inputs lie side by side, results `apart`. */                            \
    static void lines_##type(const scan *s, const char *x, char *out, int64_t lines,               \
                             int64_t apart) {                                                      \
        type row[WIDTH], total[WIDTH] = {0};                                                       \
        int64_t size = (int64_t)td_dtype_size(s->from), out_size = (int64_t)td_dtype_size(s->to);  \
        for (int64_t k = 0; k < s->n; k++) {                                                       \
            td_block_read(dtype, row, s->from, x + k * s->stride * size, 1, lines);                \
            for (int64_t c = 0; c < lines; c++)                                                    \
                total[c] += row[c];                                                                \
            td_block_write(s->to, out + k * s->out_stride * out_size, apart, dtype, total, lines); \
        }                                                                                          \
    }                                                                                              \
    static void scan_##type(void *ctx, int64_t begin, int64_t end, int worker) {                   \
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
            if (s->step > 1)                                                                       \
                lines_##type(s, x, out, lines.len, apart);                                         \
            for (int64_t k = 0; s->step == 1 && k < lines.len; k++)                                \
                line_##type(s, x + k * stride * size, out + k * apart * out_size);                 \
            at += lines.len;                                                                       \
        }                                                                                          \
    }
DEFINE_SCAN(double, TD_F64)
DEFINE_SCAN(int64_t, TD_I64)

td_status td_cpu_scan(const td_scan_plan *plan) {
    const td_tensor *x = plan->x, *out = plan->out;
    scan s = {.x = x->data,
              .out = out->data,
              .from = (td_dtype)x->dtype,
              .to = (td_dtype)out->dtype,
              .n = 1,
              .step = 1};
    uint32_t mask = x->ndim ? 1u << plan->dim : 0;
    if (mask) {
        s.n = x->sizes[plan->dim];
        s.stride = x->strides[plan->dim];
        s.out_stride = out->strides[plan->dim];
    }
    if (out->numel == 0)
        return TD_OK;
    td_reduction_plan(x, mask, out, &s.plan);
    if (s.plan.kept_strides[s.plan.nkept - 1] == 1 && s.stride != 1)
        s.step = WIDTH;
    int64_t items = (s.plan.outputs + s.step - 1) / s.step, work = s.n * s.step;
    return td_parallel_for(items, work < GRAIN ? GRAIN / work : 1,
                           td_dtype_is_float(s.to) ? scan_double : scan_int64_t, &s);
}
