/* random.c: draws on the CPU: words from the generator's counters, turned into numbers chunk by
 * chunk, the same for any number of threads. */
#include "engine/ops/random.h"

#include "engine/core/threads.h"
#include "engine/cpu/isa/isa.h"
#include "engine/ops/copy.h"

#include <string.h>

typedef struct draw_job {
    const td_draw *draw;
    td_dtype dtype;
    char *out;
    int64_t n;
    int words; /* that one number takes */
    uint64_t seed, offset;
} draw_job;

static int64_t scale_word(const td_draw *d, const uint32_t *w, int words) {
    if (words == 1)
        return d->low + (int64_t)((d->count * w[0]) >> 32);
    uint64_t r = ((uint64_t)w[0] << 32) | w[1];
    return (int64_t)((uint64_t)d->low + (uint64_t)(((unsigned __int128)r * d->count) >> 64));
}

static void draw_numbers(const draw_job *j, char *out, const uint32_t *words, int n) {
    const td_draw *d = j->draw;
    int size = (int)td_dtype_size(j->dtype);
    bool single = j->dtype == TD_F32;
    switch (d->distribution) {
    case TD_UNIFORM:
        if (single)
            td_cpu->random->uniform_f32((float *)out, words, n, (float)d->a, (float)(d->b - d->a));
        else
            td_cpu->random->uniform_f64((double *)out, words, n, d->a, d->b - d->a);
        return;
    case TD_NORMAL:
        if (single)
            td_cpu->random->normal_f32((float *)out, words, n, (float)d->a, (float)d->b);
        else
            td_cpu->random->normal_f64((double *)out, words, n, d->a, d->b);
        return;
    case TD_BERNOULLI: {
        uint64_t limit = (uint64_t)(d->a * 0x1p32); /* a word below it: yes; a = 1 is always */
        if (single) {
            float *f = (float *)out, yes = (float)d->b;
            for (int k = 0; k < n; k++)
                f[k] = words[k] < limit ? yes : 0;
            return;
        }
        for (int k = 0; k < n; k++)
            td_store_double(j->dtype, out + k * size, words[k] < limit ? d->b : 0);
        return;
    }
    case TD_RANDINT:
        for (int k = 0; k < n; k++)
            td_store_int(j->dtype, out + k * size, scale_word(d, words + k * j->words, j->words));
        return;
    }
}

/* One item is a chunk of TD_RANDOM_BLOCKS counters. */
static void draw_chunks(void *ctx, int64_t begin, int64_t end, int worker) {
    const draw_job *j = ctx;
    uint32_t words[TD_RANDOM_WORDS];
    double spare[TD_RANDOM_WORDS]; /* an odd end: normal numbers come in pairs */
    int per_chunk = TD_RANDOM_WORDS / j->words;
    size_t size = td_dtype_size(j->dtype);
    (void)worker;
    for (int64_t chunk = begin; chunk < end; chunk++) {
        int64_t at = chunk * per_chunk;
        int n = (int)(j->n - at < per_chunk ? j->n - at : per_chunk);
        int blocks = (n * j->words + 3) / 4;
        char *out = j->out + (size_t)at * size;
        td_cpu->random->words(words, j->seed, j->offset + (uint64_t)chunk * TD_RANDOM_BLOCKS,
                              blocks);
        if (n & 1) {
            draw_numbers(j, (char *)spare, words, n + 1 <= per_chunk ? n + 1 : n);
            memcpy(out, spare, (size_t)n * size);
        } else {
            draw_numbers(j, out, words, n);
        }
    }
}

static td_status check_dtype(const td_draw *draw, td_dtype dtype) {
    bool continuous = draw->distribution == TD_UNIFORM || draw->distribution == TD_NORMAL;
    if (continuous && !td_dtype_is_float(dtype))
        return td_fail(TD_EDTYPE, "needs a floating dtype, got %s", td_dtype_name(dtype));
    return TD_OK;
}

td_status td_cpu_draw(td_tensor *x, const td_draw *draw) {
    td_tensor *packed = NULL;
    td_status status = check_dtype(draw, (td_dtype)x->dtype);
    if (status || x->numel == 0)
        return status;
    draw_job j = {.draw = draw, .dtype = (td_dtype)x->dtype, .n = x->numel, .words = 1};
    if ((draw->distribution == TD_UNIFORM || draw->distribution == TD_NORMAL) && j.dtype == TD_F64)
        j.words = 2;
    if (draw->distribution == TD_RANDINT && draw->count > 1u << 24)
        j.words = 2; /* so that no number is visibly likelier than another */
    if (x->contiguous)
        packed = td_retain(x);
    else
        TD_TRY(td_tensor_empty_like(x, (td_dtype)x->dtype, &packed));
    j.out = packed->data;
    td_generator_reserve(draw->generator, ((uint64_t)j.n * (uint64_t)j.words + 3) / 4, &j.seed,
                         &j.offset);
    int64_t per_chunk = TD_RANDOM_WORDS / j.words;
    TD_TRY(td_parallel_for((j.n + per_chunk - 1) / per_chunk, 16, draw_chunks, &j));
    if (packed != x)
        TD_TRY(td_copy_into(x, packed));
done:
    td_release(packed);
    return status;
}

/* Fisher and Yates: place k swaps with one of those from k on. */
td_status td_cpu_randperm(td_tensor *x, td_generator *generator) {
    int64_t n = x->numel, *p = x->data;
    uint64_t seed, offset;
    uint32_t w[4] = {0};
    td_generator_reserve(generator, ((uint64_t)n + 1) / 2, &seed, &offset);
    for (int64_t k = 0; k < n; k++)
        p[k] = k;
    for (int64_t k = 0; k < n; k++) {
        if (k % 2 == 0)
            td_philox(seed, offset + (uint64_t)k / 2, w);
        uint64_t r = ((uint64_t)w[k % 2 * 2] << 32) | w[k % 2 * 2 + 1];
        int64_t other = k + (int64_t)(((unsigned __int128)r * (uint64_t)(n - k)) >> 64);
        int64_t swap = p[k];
        p[k] = p[other];
        p[other] = swap;
    }
    return TD_OK;
}
