/* search.c: places of values in ascending sequences, and rows in order, on the CPU. */
#include "engine/core/interrupt.h"
#include "engine/core/threads.h"
#include "engine/cpu/cpu.h"
#include "engine/cpu/order/keys.h"
#include "engine/cpu/reduce/dim_lines.h"

#include <string.h>

/* ---- places in sequences ---- */

typedef struct search_job {
    const td_search_plan *plan;
    int64_t n;    /* elements of a sequence */
    int64_t line; /* values that share one; 0: all of them */
} search_job;

enum {
    SIDE = 8,  /* values that are searched for side by side: none waits for another */
    PART = 256 /* elements of a sequence that are compared before one looks */
};

/* The answers for n values from one on. */
static void put_places(td_tensor *out, int64_t k, const int64_t *at, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (out->dtype == TD_I32)
            ((int32_t *)out->data)[k + i] = (int32_t)at[i];
        else
            ((int64_t *)out->data)[k + i] = at[i];
}

#define SAME(x) (x)
/* In the order of `sort`, where NaN comes last. */
#define BELOW(a, b) ((a) < (b) || ((b) != (b) && (a) == (a)))
/* Halving leaves `at` at the last place that is known to go before. In a sequence that ascends,
 * with no NaN, the halves may be the same for all values: no branch and no length waits for an
 * element. In others the answer depends on which elements are looked at. */
#define DEFINE_SEARCH(NAME, type, GET)                                                             \
    static int64_t search_##NAME(const type *s, const int64_t *sorter, int64_t n, type given,      \
                                 bool right) {                                                     \
        int64_t at = 0;                                                                            \
        for (int64_t len = n; len > 0;) {                                                          \
            int64_t half = len / 2, k = at + half;                                                 \
            type e = s[sorter ? sorter[k] : k];                                                    \
            bool before = right ? !BELOW(GET(given), GET(e)) : BELOW(GET(e), GET(given));          \
            at = before ? k + 1 : at;                                                              \
            len = before ? len - half - 1 : half;                                                  \
        }                                                                                          \
        return at;                                                                                 \
    }                                                                                              \
    static inline void halve_##NAME(const type *s, int64_t n, const type *given, bool right,       \
                                    int64_t *to) {                                                 \
        const type *at[SIDE] = {s, s, s, s, s, s, s, s};                                           \
        for (uint64_t left = (uint64_t)n, half; left > 0; left -= half) {                          \
            half = (left + 1) / 2;                                                                 \
            _Pragma("GCC unroll 8") for (int k = 0; k < SIDE; k++) {                               \
                bool behind = right ? GET(at[k][half - 1]) > GET(given[k])                         \
                                    : GET(at[k][half - 1]) >= GET(given[k]);                       \
                at[k] += half & ((uint64_t)behind - 1);                                            \
            }                                                                                      \
        }                                                                                          \
        for (int k = 0; k < SIDE; k++)                                                             \
            to[k] = at[k] - s;                                                                     \
    }                                                                                              \
    static bool ascends_##NAME(const type *s, int64_t n) {                                         \
        bool fine = n > 0 && GET(s[0]) == GET(s[0]);                                               \
        for (int64_t k = 1, to; fine && k < n; k = to) {                                           \
            to = n - k < PART ? n : k + PART;                                                      \
            for (int64_t i = k; i < to; i++)                                                       \
                fine &= GET(s[i - 1]) <= GET(s[i]);                                                \
        }                                                                                          \
        return fine;                                                                               \
    }                                                                                              \
    /* The values from `begin` on. */                                                              \
    static void search_all_##NAME(void *ctx, int64_t begin, int64_t end, int worker) {             \
        const search_job *j = ctx;                                                                 \
        const td_search_plan *p = j->plan;                                                         \
        const type *values = p->values->data;                                                      \
        bool plain = !p->sorter && j->line == 0 && j->n <= end - begin &&                          \
                     ascends_##NAME(p->sequence->data, j->n);                                      \
        (void)worker;                                                                              \
        for (int64_t k = begin, n; k < end; k += n) {                                              \
            int64_t from = j->line ? k / j->line * j->n : 0, at[SIDE];                             \
            const int64_t *sorter = p->sorter ? (const int64_t *)p->sorter->data + from : NULL;    \
            const type *s = (const type *)p->sequence->data + from;                                \
            type given[SIDE];                                                                      \
            n = !plain ? 1 : end - k < SIDE ? end - k : SIDE;                                      \
            for (int64_t i = 0; plain && i < SIDE; i++)                                            \
                given[i] = values[i < n ? k + i : k];                                              \
            if (!plain)                                                                            \
                at[0] = search_##NAME(s, sorter, j->n, values[k], p->right);                       \
            else if (p->right)                                                                     \
                halve_##NAME(s, j->n, given, true, at);                                            \
            else                                                                                   \
                halve_##NAME(s, j->n, given, false, at);                                           \
            put_places(p->out, k, at, n);                                                          \
        }                                                                                          \
    }

#define SEARCHES(X)                                                                                \
    X(BOOL, uint8_t, SAME)                                                                         \
    X(U8, uint8_t, SAME)                                                                           \
    X(I8, int8_t, SAME)                                                                            \
    X(I16, int16_t, SAME)                                                                          \
    X(I32, int32_t, SAME)                                                                          \
    X(I64, int64_t, SAME)                                                                          \
    X(F16, td_half, td_half_to_float)                                                              \
    X(BF16, td_bfloat, td_bfloat_to_float)                                                         \
    X(F32, float, SAME)                                                                            \
    X(F64, double, SAME)
SEARCHES(DEFINE_SEARCH)
#define ROW(NAME, type, GET) [TD_##NAME] = search_all_##NAME,
static const td_range_fn searches[TD_DTYPE_COUNT] = {SEARCHES(ROW)};
#undef ROW

static td_status check_sorter(const td_tensor *sorter, int64_t n) {
    const int64_t *s = sorter->data;
    for (int64_t k = 0; k < sorter->numel; k++)
        if (s[k] < 0 || s[k] >= n)
            return td_fail(TD_EINDEX, "sorter: index %lld is out of range for a line of %lld",
                           (long long)s[k] + (s[k] >= 0), (long long)n);
    return TD_OK;
}

td_status td_cpu_search(const td_search_plan *p) {
    const td_tensor *s = p->sequence;
    search_job j = {.plan = p, .n = s->sizes[s->ndim - 1]};
    if (s->ndim > 1)
        j.line = p->values->sizes[p->values->ndim - 1];
    td_status status = p->sorter ? check_sorter(p->sorter, j.n) : TD_OK;
    int steps = j.n ? 64 - __builtin_clzll((uint64_t)j.n) : 1;
    return status ? status
                  : td_parallel_for(p->values->numel, 4 * steps, searches[p->values->dtype], &j);
}

/* ---- rows in order ---- */

enum { STRETCH = 1024 }; /* rows merged without a look at the interrupt flag */

typedef struct row_order {
    const uint64_t *keys;
    int64_t columns;
} row_order;

/* Does row b, which stands behind row a, go before it? */
static bool goes_before(const row_order *o, int64_t b, int64_t a) {
    const uint64_t *x = o->keys + a * o->columns, *y = o->keys + b * o->columns;
    for (int64_t k = 0; k < o->columns; k++)
        if (x[k] != y[k])
            return y[k] < x[k];
    return false;
}

/* Runs of `length` become runs of twice that. */
static void merge_runs(const row_order *o, const int64_t *from, int64_t *to, int64_t n,
                       int64_t length) {
    for (int64_t at = 0; at < n; at += 2 * length) {
        int64_t a = at, a_end = at + length < n ? at + length : n, b = a_end;
        int64_t b_end = a_end + length < n ? a_end + length : n;
        for (int64_t k = at; k < b_end; k++) {
            if (k % STRETCH == 0 && td_interrupt_requested())
                return;
            bool take_b = b < b_end && (a >= a_end || goes_before(o, from[b], from[a]));
            to[k] = take_b ? from[b++] : from[a++];
        }
    }
}

typedef struct key_job {
    const td_tensor *x;
    uint64_t *keys;
} key_job;

static void make_keys(void *ctx, int64_t begin, int64_t end, int worker) {
    const key_job *j = ctx;
    (void)worker;
    td_keys_read((td_dtype)j->x->dtype,
                 (const char *)j->x->data + (size_t)begin * td_tensor_itemsize(j->x), end - begin,
                 false, j->keys + begin);
}

td_status td_cpu_order_rows(const td_order_rows_plan *p) {
    int64_t n = p->index->numel, *order = p->index->data;
    td_tensor *keys = NULL, *room = NULL;
    td_status status = TD_OK;
    TD_TRY(td_room(p->x->numel, sizeof(uint64_t), &keys));
    TD_TRY(td_room(n, sizeof *order, &room));
    key_job job = {p->x, keys->data};
    TD_TRY(td_parallel_for(p->x->numel, 2, make_keys, &job));
    row_order o = {keys->data, n ? p->x->numel / n : 0};
    int64_t *from = order, *to = room->data;
    for (int64_t k = 0; k < n; k++)
        from[k] = k;
    for (int64_t length = 1; length < n && !td_interrupt_requested(); length *= 2) {
        merge_runs(&o, from, to, n, length);
        int64_t *other = from;
        from = to;
        to = other;
    }
    if (from != order)
        memcpy(order, from, (size_t)n * sizeof *order);
    status = td_interrupt_check();
done:
    td_release(keys);
    td_release(room);
    return status;
}
