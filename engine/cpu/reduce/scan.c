/* scan.c: running sums and products on the CPU: floats in double, integers in int64. Lines of the
 * common dtypes are read and written as they are, four at a time; of others they are converted
 * block by block, short ones several together. Lines that lie side by side are walked together.
 * Other scans are scan_lines.c's. */
#include "engine/cpu/reduce/scan.h"
#include "engine/core/interrupt.h"
#include "engine/core/threads.h"
#include "engine/cpu/cpu.h"
#include "engine/cpu/isa/isa.h"
#include "engine/cpu/limits.h"
#include "engine/cpu/pointwise/strided_convert.h"
#include "engine/ops/make/copy.h"
#include "engine/ops/plan/reduction.h"

#include <string.h>

enum { WIDTH = 256, FOUR = 4, DEPTH = 256 };
enum {
    BESIDE = 16, /* of these, lines that one thread takes: others write into the same cache lines */
    STRETCH = 4096 /* elements between looks at the interrupt flag */
};

/* Scan `lines` lines, that begin `stride` elements apart in x and `apart` in the result. */
typedef struct scan scan;
typedef void (*direct_scan)(const scan *s, const char *x, char *out, int64_t lines, int64_t stride,
                            int64_t apart);

struct scan {
    td_reduction plan; /* kept dims: the lines */
    const char *x;
    char *out;
    td_dtype from, to;
    int64_t n, stride, out_stride;
    int64_t step;       /* lines that an item stands for */
    bool by_rows;       /* one element of each of many lines after the other */
    bool joined;        /* short lines, one behind the other, which are converted together */
    direct_scan direct; /* or NULL: dtypes that are converted */
};

/* Four sums do not wait for one another; of short lines the next four begin while these end. */
#define DEFINE_DIRECT(NAME, T, R, type, FIRST, OP)                                                 \
    static void NAME(const scan *s, const char *from, char *to, int64_t lines, int64_t stride,     \
                     int64_t apart) {                                                              \
        const T *x = (const T *)(const void *)from;                                                \
        R *out = (R *)(void *)to;                                                                  \
        const int64_t step = s->stride, out_step = s->out_stride, n = s->n;                        \
        for (; lines >= FOUR; lines -= FOUR, x += FOUR * stride, out += FOUR * apart) {            \
            type a = FIRST, b = FIRST, c = FIRST, d = FIRST;                                       \
            for (int64_t k = 0, end; k < n && !td_interrupt_requested(); k = end) {                \
                end = n - k < STRETCH ? n : k + STRETCH;                                           \
                for (int64_t i = k; i < end; i++) {                                                \
                    const T *at = x + i * step;                                                    \
                    R *put = out + i * out_step;                                                   \
                    put[0] = (R)(a OP(type) at[0]);                                                \
                    put[apart] = (R)(b OP(type) at[stride]);                                       \
                    put[2 * apart] = (R)(c OP(type) at[2 * stride]);                               \
                    put[3 * apart] = (R)(d OP(type) at[3 * stride]);                               \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
        for (; lines > 0; lines--, x += stride, out += apart) {                                    \
            type a = FIRST;                                                                        \
            for (int64_t k = 0, end; k < n && !td_interrupt_requested(); k = end) {                \
                end = n - k < STRETCH ? n : k + STRETCH;                                           \
                for (int64_t i = k; i < end; i++)                                                  \
                    out[i * out_step] = (R)(a OP(type) x[i * step]);                               \
            }                                                                                      \
        }                                                                                          \
    }
#define DEFINE_DIRECTS(NAME, T, R, type)                                                           \
    DEFINE_DIRECT(NAME##_sums, T, R, type, 0, +=)                                                  \
    DEFINE_DIRECT(NAME##_products, T, R, type, 1, *=)
DEFINE_DIRECTS(float, float, float, double)
DEFINE_DIRECTS(double, double, double, double)
DEFINE_DIRECTS(int64, int64_t, int64_t, int64_t)
DEFINE_DIRECTS(int32, int32_t, int64_t, int64_t)
DEFINE_DIRECTS(byte, uint8_t, int64_t, int64_t)

/* Of integers in whatever order they are added: vectors at a time, where they lie side by side. */
static void int64_running(const scan *s, const char *from, char *to, int64_t lines, int64_t stride,
                          int64_t apart) {
    if (s->stride != 1 || s->out_stride != 1) {
        int64_sums(s, from, to, lines, stride, apart);
        return;
    }
    const int64_t *x = (const int64_t *)(const void *)from;
    int64_t *out = (int64_t *)(void *)to;
    for (; lines > 0; lines--, x += stride, out += apart) {
        int64_t sum = 0;
        for (int64_t k = 0; k < s->n && !td_interrupt_requested(); k += STRETCH)
            sum = td_cpu->scan->sums(out + k, x + k, s->n - k < STRETCH ? s->n - k : STRETCH, sum);
    }
}

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
    static void joined_##NAME(const scan *s, const char *x, char *out, int64_t lines) {            \
        type block[FOUR * DEPTH];                                                                  \
        const int64_t size = (int64_t)td_dtype_size(s->from), n = s->n, most = FOUR * DEPTH / n;   \
        const int64_t out_size = (int64_t)td_dtype_size(s->to);                                    \
        for (int64_t from = 0, m; from < lines; from += m) {                                       \
            m = lines - from < most ? lines - from : most;                                         \
            td_block_read(dtype, block, s->from, x + from * n * size, 1, m * n);                   \
            for (int64_t c = 0; c < m; c++) {                                                      \
                type total = FIRST;                                                                \
                for (int64_t k = 0; k < n; k++)                                                    \
                    block[c * n + k] = total OP block[c * n + k];                                  \
            }                                                                                      \
            td_block_write(s->to, out + from * n * out_size, 1, dtype, block, m * n);              \
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
            if (s->by_rows)                                                                        \
                lines_##NAME(s, x, out, lines.len, apart);                                         \
            else if (s->direct)                                                                    \
                s->direct(s, x, out, lines.len, stride, apart);                                    \
            else if (s->joined)                                                                    \
                joined_##NAME(s, x, out, lines.len);                                               \
            for (int64_t k = 0; !s->by_rows && !s->direct && !s->joined && k < lines.len;          \
                 k += FOUR) {                                                                      \
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

/* The loop for these dtypes, or NULL. */
static direct_scan direct_for(td_scan_kind kind, td_dtype from, td_dtype to) {
    static const struct {
        td_dtype from, to;
        direct_scan sums, products;
    } all[] = {{TD_F32, TD_F32, float_sums, float_products},
               {TD_F64, TD_F64, double_sums, double_products},
               {TD_I64, TD_I64, int64_running, int64_products},
               {TD_I32, TD_I64, int32_sums, int32_products},
               {TD_U8, TD_I64, byte_sums, byte_products},
               {TD_BOOL, TD_I64, byte_sums, byte_products}};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        if (all[k].from == from && all[k].to == to)
            return kind == TD_SCAN_PROD ? all[k].products : all[k].sums;
    return NULL;
}

/* Lines that one thread takes of so many, where their elements lie side by side. */
static int64_t width_for(int64_t lines) {
    int64_t threads = (int64_t)td_get_num_threads() * BESIDE;
    int64_t each = (lines + threads - 1) / threads * BESIDE;
    return each < WIDTH ? each : WIDTH;
}

/* An input that runs along the dim while the result does not, or the other way round, is turned
 * first, in a way that caches like, unless that was done (`again`). */
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
    s.direct = direct_for(plan->kind, s.from, s.to);
    const bool across = s.plan.kept_strides[last] == 1 && s.plan.kept_sizes[last] >= BESIDE;
    if (!again && s.plan.outputs > 1 &&
        ((s.stride == 1 && s.out_stride != 1) || (across && s.stride != 1 && s.out_stride == 1))) {
        td_tensor *turned;
        td_status status = td_contiguous((td_tensor *)x, &turned);
        if (status == TD_OK)
            status = scan_along(plan, turned, true);
        td_release(turned);
        return status;
    }
    if (s.plan.kept_strides[last] == 1 && s.stride != 1) {
        s.by_rows = s.plan.kept_sizes[last] >=
                    (s.direct ? TD_LIMIT(SCAN_ROWS) : TD_LIMIT(SCAN_ROWS_CONVERTED));
        s.step = s.by_rows ? width_for(s.plan.outputs) : BESIDE;
    }
    s.joined = !s.by_rows && !s.direct && s.n > 0 && s.n <= DEPTH && s.stride == 1 &&
               s.out_stride == 1 && s.plan.kept_strides[last] == s.n &&
               s.plan.out_strides[last] == s.n;
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
