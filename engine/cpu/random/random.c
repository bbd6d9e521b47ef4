/* random.c: draws on the CPU: words from the generator's counters, turned into numbers chunk by
 * chunk, the same for any number of threads. */
#include "engine/ops/make/random.h"

#include "engine/core/draw_math.h"
#include "engine/core/random.h"
#include "engine/core/threads.h"
#include "engine/cpu/cpu.h"
#include "engine/cpu/isa/isa.h"
#include "engine/cpu/pointwise/strided_convert.h"
#include "engine/ops/make/copy.h"

#include <string.h>

typedef struct draw_job {
    const td_draw_plan *plan;
    td_dtype dtype;
    char *out;
    int64_t n;
    int64_t first; /* chunk, whose numbers begin at out */
    int words;     /* that one number takes */
} draw_job;

/* n numbers from words, in the dtype's own or (td_dtype_compute) in float32. */
typedef void (*number_fn)(const td_draw_plan *d, char *out, const uint32_t *words, int n);

/* As many bits as the 16-bit dtype holds below 1, so that no number of [0, 1) is rounded up to 1.
 */
static void uniform_narrow(const td_draw_plan *d, char *out, const uint32_t *words, int n) {
    static const uint32_t masks[TD_DTYPE_COUNT] = {[TD_F16] = 0xFFE00000, [TD_BF16] = 0xFF000000};
    uint32_t kept[TD_RANDOM_WORDS], mask = masks[d->out->dtype];
    for (int k = 0; k < n; k++)
        kept[k] = words[k] & mask;
    td_cpu->random->uniform_f32((float *)out, kept, n, (float)d->a, (float)(d->b - d->a));
}
static void uniform_f32(const td_draw_plan *d, char *out, const uint32_t *words, int n) {
    td_cpu->random->uniform_f32((float *)out, words, n, (float)d->a, (float)(d->b - d->a));
}
static void uniform_f64(const td_draw_plan *d, char *out, const uint32_t *words, int n) {
    td_cpu->random->uniform_f64((double *)out, words, n, d->a, d->b - d->a);
}

/* Numbers of [0, 1) never reach 1 before they are moved and stretched. */
static bool is_unit(const td_draw_plan *d) {
    return d->a == 0 && d->b == 1;
}
#define DEFINE_KEEP(name, type)                                                                    \
    static void name(const td_draw_plan *d, type *out, int n) {                                    \
        const type least = (type)d->least, most = (type)d->most;                                   \
        for (int k = 0; k < n; k++) {                                                              \
            type v = out[k] < most ? out[k] : most;                                                \
            out[k] = v > least ? v : least;                                                        \
        }                                                                                          \
    }
DEFINE_KEEP(keep_f32, float)
DEFINE_KEEP(keep_f64, double)
DEFINE_KEEP(keep_integers, int64_t)
#undef DEFINE_KEEP
static void normal_f32(const td_draw_plan *d, char *out, const uint32_t *words, int n) {
    td_cpu->random->normal_f32((float *)out, words, n, (float)d->a, (float)d->b);
}
static void normal_f64(const td_draw_plan *d, char *out, const uint32_t *words, int n) {
    td_cpu->random->normal_f64((double *)out, words, n, d->a, d->b);
}

static const number_fn uniform_functions[TD_DTYPE_COUNT] = {
    [TD_F16] = uniform_narrow,
    [TD_BF16] = uniform_narrow,
    [TD_F32] = uniform_f32,
    [TD_F64] = uniform_f64,
};
static const number_fn normal_functions[TD_DTYPE_COUNT] = {
    [TD_F16] = normal_f32,
    [TD_BF16] = normal_f32,
    [TD_F32] = normal_f32,
    [TD_F64] = normal_f64,
};

/* A word below 2^32 a is a yes; without any such word, b counts as 0. */
static void draw_bernoulli(const draw_job *j, char *out, const uint32_t *words, int n) {
    const td_draw_plan *d = j->plan;
    uint64_t limit = (uint64_t)(d->a * 0x1p32);
    uint32_t last = (uint32_t)(limit - 1);
    double b = limit ? d->b : 0;
    float drawn[TD_RANDOM_WORDS], yes = (float)b;
    if (td_dtype_size(j->dtype) < sizeof(double) || b == (double)yes) {
        for (int k = 0; k < n; k++)
            drawn[k] = words[k] <= last ? yes : 0;
        td_cpu->convert->convert[j->dtype][TD_F32](n, out, drawn);
        return;
    }
    for (int k = 0; k < n; k++)
        td_store_double(j->dtype, out + (size_t)k * td_dtype_size(j->dtype),
                        words[k] <= last ? b : 0);
}

static void log_normal_f32(const td_draw_plan *d, char *out, const uint32_t *words, int n) {
    double numbers[TD_RANDOM_WORDS];
    normal_f32(d, out, words, n);
    td_cpu->convert->convert[TD_F64][TD_F32](n, numbers, out);
    td_cpu->random->exponentials(numbers, n);
    td_cpu->convert->convert[TD_F32][TD_F64](n, out, numbers);
}
static void log_normal_f64(const td_draw_plan *d, char *out, const uint32_t *words, int n) {
    normal_f64(d, out, words, n);
    td_cpu->random->exponentials((double *)(void *)out, n);
}
static const number_fn log_normal_functions[TD_DTYPE_COUNT] = {
    [TD_F16] = log_normal_f32,
    [TD_BF16] = log_normal_f32,
    [TD_F32] = log_normal_f32,
    [TD_F64] = log_normal_f64,
};

/* From numbers in (0, 1): waiting times, what the tangent of an angle is, trials. */
static void draw_shaped(const draw_job *j, char *out, const uint32_t *words, int n) {
    const td_draw_plan *d = j->plan;
    double numbers[TD_RANDOM_WORDS / 2];
    if (d->distribution == TD_EXPONENTIAL)
        td_cpu->random->exponential(numbers, words, n, d->a, 0);
    else if (d->distribution == TD_GEOMETRIC)
        td_cpu->random->geometric(numbers, words, n, td_draw_log_rest(d->a), 0);
    else
        td_cpu->random->cauchy(numbers, words, n, d->a, d->b);
    td_cpu->convert->convert[j->dtype][TD_F64](n, out, numbers);
}

static void draw_integers(const draw_job *j, char *out, const uint32_t *words, int n) {
    const td_draw_plan *d = j->plan;
    int64_t room[TD_RANDOM_WORDS], *numbers = j->dtype == TD_I64 ? (int64_t *)(void *)out : room;
    if (j->words == 1)
        td_cpu->random->integers(numbers, words, n, d->low, d->count);
    else
        td_cpu->random->wide_integers(numbers, words, n, d->low, d->count);
    if (td_dtype_is_float(j->dtype))
        keep_integers(d, numbers, n);
    if (numbers == room)
        td_cpu->convert->convert[j->dtype][TD_I64](n, out, numbers);
}

/* The 16-bit floats are drawn in float32 and rounded. */
static void draw_floats(const draw_job *j, number_fn fn, char *out, const uint32_t *words, int n) {
    float wide[TD_RANDOM_WORDS];
    const bool own = td_dtype_compute(j->dtype) == j->dtype;
    const bool keep = j->plan->distribution == TD_UNIFORM && !is_unit(j->plan);
    char *to = own ? out : (char *)wide;
    fn(j->plan, to, words, n);
    if (keep && j->dtype == TD_F64)
        keep_f64(j->plan, (double *)(void *)to, n);
    else if (keep)
        keep_f32(j->plan, (float *)(void *)to, n);
    if (own)
        return;
    td_cpu->convert->convert[j->dtype][TD_F32](n, out, wide);
}

static void draw_numbers(const draw_job *j, char *out, const uint32_t *words, int n) {
    const td_draw_plan *d = j->plan;
    switch (d->distribution) {
    case TD_UNIFORM:
        draw_floats(j, uniform_functions[j->dtype], out, words, n);
        return;
    case TD_NORMAL:
        draw_floats(j, normal_functions[j->dtype], out, words, n);
        return;
    case TD_LOG_NORMAL:
        draw_floats(j, log_normal_functions[j->dtype], out, words, n);
        return;
    case TD_EXPONENTIAL:
    case TD_CAUCHY:
    case TD_GEOMETRIC:
        draw_shaped(j, out, words, n);
        return;
    case TD_BERNOULLI:
        draw_bernoulli(j, out, words, n);
        return;
    case TD_RANDINT:
        draw_integers(j, out, words, n);
        return;
    }
}

/* One item is a chunk of TD_RANDOM_BLOCKS counters, numbered from the first. */
static void draw_chunks(void *ctx, int64_t begin, int64_t end, int worker) {
    const draw_job *j = ctx;
    uint32_t words[TD_RANDOM_WORDS];
    double spare[TD_RANDOM_WORDS]; /* an odd end: normal numbers come in pairs */
    int per_chunk = TD_RANDOM_WORDS / j->words;
    size_t size = td_dtype_size(j->dtype);
    (void)worker;
    for (int64_t item = begin; item < end; item++) {
        int64_t chunk = j->first + item, at = chunk * per_chunk;
        int n = (int)(j->n - at < per_chunk ? j->n - at : per_chunk);
        int blocks = (n * j->words + 3) / 4;
        char *out = j->out + (size_t)(item * per_chunk) * size;
        td_cpu->random->words(words, j->plan->seed,
                              j->plan->offset + (uint64_t)chunk * TD_RANDOM_BLOCKS, blocks);
        if (n & 1) {
            draw_numbers(j, (char *)spare, words, n + 1 <= per_chunk ? n + 1 : n);
            memcpy(out, spare, (size_t)n * size);
        } else {
            draw_numbers(j, out, words, n);
        }
    }
}

static td_status check_dtype(const td_draw_plan *p, td_dtype dtype) {
    bool drawn = p->distribution == TD_UNIFORM ? uniform_functions[dtype] != NULL
                 : p->distribution == TD_NORMAL || p->distribution == TD_LOG_NORMAL
                     ? normal_functions[dtype] != NULL
                     : true;
    return drawn ? TD_OK : td_cpu_lacks(dtype);
}

static td_status draw_range(draw_job *j, char *out, int64_t begin, int64_t end) {
    j->out = out;
    j->first = begin;
    return td_parallel_for(end - begin, TD_GRAIN / 16, draw_chunks, j);
}

/* What does not lie in order is drawn some rows at a time, which are put in place while they are
 * near: chunks that two parts share are drawn for both. */
enum { PART = 128 * 1024 };

static td_status draw_parts(draw_job *j, td_tensor *x) {
    td_tensor *room = NULL, *from = NULL, *to = NULL;
    int64_t per_chunk = TD_RANDOM_WORDS / j->words, sizes[TD_MAX_DIMS], strides[TD_MAX_DIMS];
    int64_t row = x->numel / x->sizes[0], rows = row < PART ? PART / row : 1;
    int64_t most = (rows < x->sizes[0] ? rows : x->sizes[0]) * row + 2 * per_chunk;
    td_status status = TD_OK;
    TD_TRY(td_tensor_empty(j->dtype, TD_DEVICE_CPU, 1, &most, &room));
    memcpy(sizes, x->sizes, sizeof *sizes * (size_t)x->ndim);
    strides[x->ndim - 1] = 1;
    for (int d = x->ndim - 1; d > 0; d--)
        strides[d - 1] = strides[d] * sizes[d];
    for (int64_t at = 0; at < x->sizes[0]; at += rows) {
        sizes[0] = x->sizes[0] - at < rows ? x->sizes[0] - at : rows;
        int64_t begin = at * row / per_chunk, end = (at + sizes[0]) * row;
        TD_TRY(draw_range(j, room->data, begin, (end + per_chunk - 1) / per_chunk));
        TD_TRY(td_tensor_view(room, x->ndim, sizes, strides, at * row - begin * per_chunk, &from));
        TD_TRY(td_tensor_view(x, x->ndim, sizes, x->strides, at * x->strides[0], &to));
        TD_TRY(td_copy_into(to, from));
        td_release(from);
        td_release(to);
        from = to = NULL;
    }
done:
    td_release(room);
    td_release(from);
    td_release(to);
    return status;
}

td_status td_cpu_draw(const td_draw_plan *p) {
    td_tensor *x = p->out;
    draw_job j = {.plan = p, .dtype = (td_dtype)x->dtype, .n = x->numel, .words = td_draw_words(p)};
    td_status status = check_dtype(p, j.dtype);
    int64_t per_chunk = TD_RANDOM_WORDS / j.words;
    if (status || x->numel == 0)
        return status;
    if (x->contiguous)
        return draw_range(&j, x->data, 0, (j.n + per_chunk - 1) / per_chunk);
    return draw_parts(&j, x);
}
