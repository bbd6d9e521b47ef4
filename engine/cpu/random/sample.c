/* sample.c: Poisson numbers and weighted choices on the CPU. How many words one takes depends on
 * the elements; its first counter does not, so results do not depend on the threads. */
#include "engine/core/draw_math.h"
#include "engine/core/interrupt.h"
#include "engine/core/threads.h"
#include "engine/cpu/cpu.h"
#include "engine/cpu/isa/isa.h"
#include "engine/cpu/reduce/dim_lines.h"
#include "engine/ops/make/copy.h"

enum { SIDE = 4 }; /* rows whose weights are added up side by side */

/* ---- Poisson numbers ---- */

static void draw_counts(void *ctx, int64_t begin, int64_t end, int worker) {
    const td_poisson_plan *p = ctx;
    (void)worker;
    td_cpu->random->poisson((double *)p->out->data + begin, (const double *)p->x->data + begin,
                            end - begin, p->seed, p->offset + (uint64_t)begin * TD_POISSON_BLOCKS,
                            TD_POISSON_BLOCKS);
}

td_status td_cpu_poisson(const td_poisson_plan *p) {
    return td_parallel_for(p->out->numel, 64, draw_counts, (void *)p);
}

/* ---- choices with weights ---- */

typedef struct choice_job {
    const td_multinomial_plan *plan;
    int64_t first;      /* the row that those below begin with */
    double *sums;       /* of each row's weights up to each place; or keys */
    const td_tensor *x; /* weights, row-major */
    int64_t x_first;    /* the row that it begins with */
    double *weights;    /* of each row; NULL: they lie in x as float64 */
    int64_t *order;     /* places by keys, a row for each worker */
    int64_t n, draws;
    atomic_int wrong;   /* td_wrong of a row */
    td_tensor *room[3]; /* what sums, weights and order lie in; owned */
} choice_job;

enum { RIGHT, NO_WEIGHT, NO_SUM };

/* The first counter of a row. */
static uint64_t counter_of(const choice_job *j, int64_t row) {
    return j->plan->offset + (uint64_t)row * td_multinomial_blocks(j->plan);
}

static bool all_weights(const double *weights, int64_t n) {
    for (int64_t k = 0; k < n; k++)
        if (!(weights[k] >= 0 && weights[k] < (double)INFINITY))
            return false;
    return true;
}

/* SIDE rows or fewer: their sums do not wait for one another. Are all of them weights? What is
 * negative shows in the least of a row, what is no number or infinite in its sum. */
static bool add_side_by_side(const double *weights, double *sums, int64_t n, int64_t rows) {
    double sum[SIDE] = {0}, least[SIDE] = {0};
    bool fine = true;
    for (int64_t k = 0; rows == SIDE && k < n; k++)
        for (int r = 0; r < SIDE; r++) {
            double weight = weights[r * n + k];
            least[r] = weight < least[r] ? weight : least[r];
            sums[r * n + k] = sum[r] += weight;
        }
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t k = 0; rows < SIDE && k < n; k++) {
            least[r] = weights[r * n + k] < least[r] ? weights[r * n + k] : least[r];
            sums[r * n + k] = sum[r] += weights[r * n + k];
        }
        if (!(least[r] >= 0 && sum[r] < (double)INFINITY))
            fine &= all_weights(weights + r * n, n);
    }
    return fine;
}

/* The weights of rows from one of j's on, as float64. */
static const double *weights_of(const choice_job *j, int64_t row, int64_t rows) {
    const td_tensor *x = j->x;
    const int64_t at = (j->first - j->x_first + row) * j->n;
    const char *from = (const char *)x->data + (size_t)at * td_tensor_itemsize(x);
    if (!j->weights)
        return (const double *)(const void *)from;
    double *weights = j->weights + row * j->n;
    td_cpu->convert->convert[TD_F64][x->dtype](rows * j->n, weights, from);
    return weights;
}

static void add_up(void *ctx, int64_t begin, int64_t end, int worker) {
    choice_job *j = ctx;
    (void)worker;
    for (int64_t row = begin; row < end; row += SIDE) {
        int64_t rows = end - row < SIDE ? end - row : SIDE;
        double *sums = j->sums + row * j->n;
        if (!add_side_by_side(weights_of(j, row, rows), sums, j->n, rows))
            atomic_store_explicit(&j->wrong, NO_WEIGHT, memory_order_relaxed);
        for (int64_t r = 1; r <= rows; r++) {
            int fine = RIGHT;
            if (!(sums[r * j->n - 1] > 0))
                atomic_compare_exchange_strong(&j->wrong, &fine, NO_SUM);
        }
    }
}

/* The first place of a row whose sum lies above the number; weights of 0 at the end have none. */
static int64_t place_of(const double *sums, int64_t n, double number) {
    int64_t low = 0, left = n - 1;
    while (left > 0 && sums[left - 1] == sums[left])
        left--;
    while (left > 0) { /* of so many places behind `low`: no branch that can't be foreseen */
        int64_t half = (left + 1) / 2;
        low += half & -(int64_t)(sums[low + half - 1] <= number);
        left -= half;
    }
    return low;
}

static void choose(void *ctx, int64_t begin, int64_t end, int worker) {
    const choice_job *j = ctx;
    int64_t *out = (int64_t *)j->plan->out->data + j->first * j->draws;
    uint32_t words[4];
    (void)worker;
    for (int64_t k = begin; k < end; k++) {
        int64_t row = k / j->draws, draw = k % j->draws;
        const double *sums = j->sums + row * j->n;
        if (k == begin || draw % 2 == 0)
            td_philox(j->plan->seed, counter_of(j, j->first + row) + (uint64_t)draw / 2, words);
        out[k] = place_of(sums, j->n, td_draw_open(words + 2 * (draw % 2)) * sums[j->n - 1]);
    }
}

/* ---- without a place twice ----
 *
 * Place k waits an exponential time of rate weight[k]; those that come first are drawn, in their
 * order (Efraimidis and Spirakis 2006). */

static bool earlier(const double *keys, int64_t a, int64_t b) {
    return keys[a] < keys[b] || (keys[a] == keys[b] && a < b);
}

/* Let the place at `at` sink in the heap of n, whose first is the earliest. */
static void sink(const double *keys, int64_t *heap, int64_t at, int64_t n) {
    int64_t place = heap[at];
    for (;;) {
        int64_t child = 2 * at + 1;
        if (child + 1 < n && earlier(keys, heap[child + 1], heap[child]))
            child++;
        if (child >= n || earlier(keys, place, heap[child]))
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = place;
}

static void wait_for(const choice_job *j, int64_t row, double *keys) {
    enum { PART = TD_RANDOM_WORDS / 2 };
    const double *weights = (const double *)j->plan->x->data + row * j->n;
    uint32_t words[TD_RANDOM_WORDS];
    for (int64_t at = 0; at < j->n && !td_interrupt_requested(); at += PART) {
        int n = (int)(j->n - at < PART ? j->n - at : PART);
        td_cpu->random->words(words, j->plan->seed, counter_of(j, row) + (uint64_t)at / 2,
                              (n + 1) / 2);
        td_cpu->random->exponential(keys + at, words, n, 1, 0);
        for (int k = 0; k < n; k++)
            keys[at + k] = weights[at + k] > 0 ? keys[at + k] / weights[at + k] : (double)INFINITY;
    }
}

static void choose_apart(void *ctx, int64_t begin, int64_t end, int worker) {
    const choice_job *j = ctx;
    int64_t *heap = j->order + worker * j->n;
    for (int64_t row = begin; row < end; row++) {
        double *keys = j->sums + row * j->n;
        int64_t *out = (int64_t *)j->plan->out->data + row * j->draws;
        wait_for(j, row, keys);
        for (int64_t k = 0; k < j->n; k++)
            heap[k] = k;
        for (int64_t k = j->n / 2; k >= 0 && !td_interrupt_requested(); k--)
            sink(keys, heap, k, j->n);
        for (int64_t k = 0; k < j->draws && !td_interrupt_requested(); k++) {
            out[k] = heap[0];
            heap[0] = heap[j->n - 1 - k];
            sink(keys, heap, 0, j->n - 1 - k);
        }
    }
}

static td_status check_rows(const choice_job *j) {
    switch (atomic_load(&j->wrong)) {
    case NO_WEIGHT:
        return td_fail(TD_EVALUE, "weights must be finite and not negative");
    case NO_SUM:
        return td_fail(TD_EVALUE, "the weights of a row must have a sum above 0");
    }
    return TD_OK;
}

/* Rows from j's first on. */
static td_status choose_part(choice_job *j, int64_t rows) {
    const td_tensor *x = j->plan->x;
    td_tensor *part = NULL, *dense = NULL;
    td_status status = TD_OK;
    TD_TRY(td_tensor_view((td_tensor *)x, 2, (int64_t[]){rows, j->n}, x->strides,
                          j->first * x->strides[0], &part));
    TD_TRY(td_contiguous(part, &dense));
    j->x = dense;
    j->x_first = j->first;
    TD_TRY(td_parallel_for(rows, j->n, add_up, j));
    TD_TRY(check_rows(j));
    status = td_parallel_for(rows * j->draws, 32, choose, j);
done:
    td_release(part);
    td_release(dense);
    return status;
}

/* So many rows at a time that their sums are in the cache when places are drawn by them. */
static td_status choose_anew(choice_job *j, int threads) {
    enum { CACHE = 64 * 1024 }; /* weights */
    const td_tensor *x = j->plan->x;
    int64_t rows = x->sizes[0],
            most = CACHE / j->n < SIDE * threads ? SIDE * threads : CACHE / j->n;
    td_status status = TD_OK;
    most = rows < most ? rows : most;
    TD_TRY(td_room(most * j->n, sizeof(double), &j->room[0]));
    j->sums = j->room[0]->data;
    if (x->dtype != TD_F64) {
        TD_TRY(td_room(most * j->n, sizeof(double), &j->room[1]));
        j->weights = j->room[1]->data;
    }
    for (; j->first < rows && status == TD_OK; j->first += most)
        status = choose_part(j, rows - j->first < most ? rows - j->first : most);
done:
    return status;
}

static td_status choose_all_apart(choice_job *j, int threads) {
    const td_tensor *x = j->plan->x;
    int64_t rows = x->sizes[0];
    td_status status = TD_OK;
    TD_TRY(td_room(x->numel, sizeof(double), &j->room[0]));
    TD_TRY(td_room(j->n * threads, sizeof(int64_t), &j->room[2]));
    j->sums = j->room[0]->data;
    j->order = j->room[2]->data;
    TD_TRY(td_parallel_for(rows, j->n, add_up, j));
    TD_TRY(check_rows(j));
    status = td_parallel_for_among(threads, rows, 64 * j->n, choose_apart, j);
done:
    return status;
}

td_status td_cpu_multinomial(const td_multinomial_plan *p) {
    int threads = td_threads_at_most();
    choice_job j = {.plan = p, .x = p->x, .n = p->x->sizes[1], .draws = p->out->sizes[1]};
    td_status status = p->replacement ? choose_anew(&j, threads) : choose_all_apart(&j, threads);
    for (int k = 0; k < 3; k++)
        td_release(j.room[k]);
    return status;
}
