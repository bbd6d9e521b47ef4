/* sort.c: lines in order on the CPU, all of a line or its first elements. Elements become keys,
 * keys with their places become entries (entries.h); many lines are sorted side by side, each by
 * one thread, a long one by all threads: dealt out by digits, the lowest first. Of the first few
 * elements no more than these are ever kept. */
#include "engine/core/interrupt.h"
#include "engine/core/threads.h"
#include "engine/cpu/cpu.h"
#include "engine/cpu/entries.h"
#include "engine/cpu/keys.h"
#include "engine/cpu/lines.h"

#include <string.h>

enum {
    LONG = 128 * 1024, /* elements of a line that all threads sort together */
    BLOCK = 64 * 1024, /* and of what one of them takes at a time */
    FEW = 1024 * 1024, /* first elements that one thread sorts */
    SEED = 64,         /* elements that the first limit is found among, at least */
    COST = 16          /* of an element sorted */
};

/* The lines of a plan. */
typedef struct sort_job {
    const char *x;
    char *values;   /* or NULL, */
    int64_t *index; /* as this may be */
    td_dtype dtype;
    size_t size;
    bool descending;
    int64_t n, first; /* elements of a line; how many of its order are wanted */
    int bits;
    const td_entries *kind;
    char *room; /* of each worker */
    int64_t room_entries;
} sort_job;

/* ---- elements and entries ---- */

/* n elements of a line from `at` on as entries with the places that they have in it. */
static void load(const sort_job *j, const char *line, int64_t at, int64_t n, char *e) {
    uint64_t keys[TD_KEYS];
    for (int64_t k = 0; k < n; k += TD_KEYS) {
        int64_t part = n - k < TD_KEYS ? n - k : TD_KEYS;
        td_keys_read(j->dtype, line + (size_t)(at + k) * j->size, part, j->descending, keys);
        j->kind->load(e + (size_t)k * j->kind->size, keys, at + k, part);
    }
}

/* n sorted entries become results; their keys are less by `least` than those of the elements. */
static void store(const sort_job *j, const char *line, const char *e, int64_t n, uint64_t least,
                  char *values, int64_t *index) {
    uint64_t keys[TD_KEYS];
    int64_t places[TD_KEYS];
    for (int64_t k = 0; k < n; k += TD_KEYS) {
        int64_t part = n - k < TD_KEYS ? n - k : TD_KEYS;
        int64_t *to = index ? index + k : places;
        j->kind->unload(e + (size_t)k * j->kind->size, part, keys, to);
        for (int64_t i = 0; least && i < part; i++)
            keys[i] += least;
        if (values)
            td_keys_write(j->dtype, keys, to, part, j->descending, line,
                          values + (size_t)k * j->size);
    }
}

/* ---- the first few of a line ---- */

/* Room for the first few and what may become one of them, and as much to sort them in. */
static int64_t few_entries(int64_t few) {
    return 2 * few + 2 * TD_KEYS;
}

/* The least `few` of n entries' worth of a line from `at` on to the front of e, in no order: what
 * is less than the greatest of those that were the least so far is put behind them, and now and
 * then they are parted again. How many there are. */
static int64_t keep_few(const sort_job *j, const char *line, int64_t at, int64_t n, int64_t few,
                        char *e) {
    _Alignas(16) char block[TD_KEYS * 16], limit[16];
    size_t size = j->kind->size;
    int64_t kept = 0, most = few_entries(few) - TD_KEYS - 1, part;
    bool full = false;
    for (int64_t k = 0; k < n && !td_interrupt_requested(); k += part) {
        part = full || few > SEED ? TD_KEYS : SEED + few;
        part = n - k < part ? n - k : part;
        load(j, line, at + k, part, block);
        if (full) {
            kept += j->kind->pick(e + (size_t)kept * size, block, part, limit);
        } else {
            memcpy(e + (size_t)kept * size, block, (size_t)part * size);
            kept += part;
        }
        if (kept > few && (kept > most || !full || k + part >= n)) {
            j->kind->part(e, kept, few);
            memcpy(limit, e + (size_t)few * size, size);
            kept = few;
            full = true;
        }
    }
    return kept;
}

static void sort_few(const sort_job *j, const char *line, char *e, char *values, int64_t *index) {
    char *room = e + (size_t)j->first * j->kind->size;
    int64_t few = keep_few(j, line, 0, j->n, j->first, e);
    if (few == j->first) /* not when it left early */
        store(j, line, j->kind->sort(e, room, few, j->bits, false), few, 0, values, index);
}

/* ---- many lines ---- */

static void sort_lines(void *ctx, int64_t begin, int64_t end, int worker) {
    const sort_job *j = ctx;
    char *e = j->room + (size_t)(worker * j->room_entries) * j->kind->size;
    char *room = e + (size_t)j->n * j->kind->size;
    for (int64_t line = begin; line < end; line++) {
        const char *x = j->x + (size_t)(line * j->n) * j->size;
        char *values = j->values ? j->values + (size_t)(line * j->first) * j->size : NULL;
        int64_t *index = j->index ? j->index + line * j->first : NULL;
        if (j->first <= j->n / 4) {
            sort_few(j, x, e, values, index);
            continue;
        }
        load(j, x, 0, j->n, e);
        store(j, x, j->kind->sort(e, room, j->n, j->bits, true), j->first, 0, values, index);
    }
}

static td_status sort_side_by_side(sort_job *j, int64_t lines) {
    int threads = td_get_num_threads();
    td_tensor *room = NULL;
    j->room_entries = j->first <= j->n / 4 ? few_entries(j->first) : 2 * j->n;
    td_status status = td_room(threads * j->room_entries, j->kind->size, &room);
    if (status == TD_OK) {
        j->room = room->data;
        status = td_parallel_for_among(threads, lines, COST * j->n, sort_lines, j);
    }
    td_release(room);
    return status;
}

/* ---- a long line ---- */

typedef struct long_line {
    sort_job *job;
    const char *x;
    char *values;
    int64_t *index;
    uint64_t *extremes;     /* of each block's keys: least and greatest */
    uint64_t least;         /* of all: what keys are less by */
    char *from, *to;        /* entries */
    int64_t *counts;        /* of each block, by digit; then where they go */
    int64_t wanted, blocks; /* entries that are results */
    int64_t block;          /* elements of one */
    int shift;
} long_line;

static int64_t block_length(const long_line *l, int64_t block) {
    int64_t left = l->job->n - block * l->block;
    return left < l->block ? left : l->block;
}

static void survey_blocks(void *ctx, int64_t begin, int64_t end, int worker) {
    const long_line *l = ctx;
    uint64_t keys[TD_KEYS];
    (void)worker;
    for (int64_t b = begin; b < end; b++) {
        uint64_t least = UINT64_MAX, most = 0;
        int64_t n = block_length(l, b), at = b * l->block;
        for (int64_t k = 0; k < n; k += TD_KEYS) {
            int64_t part = n - k < TD_KEYS ? n - k : TD_KEYS;
            td_keys_read(l->job->dtype, l->x + (size_t)(at + k) * l->job->size, part,
                         l->job->descending, keys);
            for (int64_t i = 0; i < part; i++) {
                least = keys[i] < least ? keys[i] : least;
                most = keys[i] > most ? keys[i] : most;
            }
        }
        l->extremes[2 * b] = least;
        l->extremes[2 * b + 1] = most;
    }
}

static void load_blocks(void *ctx, int64_t begin, int64_t end, int worker) {
    const long_line *l = ctx;
    const sort_job *j = l->job;
    uint64_t keys[TD_KEYS];
    (void)worker;
    for (int64_t k = begin * l->block; k < end * l->block && k < j->n; k += TD_KEYS) {
        int64_t part = j->n - k < TD_KEYS ? j->n - k : TD_KEYS;
        td_keys_read(j->dtype, l->x + (size_t)k * j->size, part, j->descending, keys);
        for (int64_t i = 0; i < part; i++)
            keys[i] -= l->least;
        j->kind->load(l->from + (size_t)k * j->kind->size, keys, k, part);
    }
}

static void count_blocks(void *ctx, int64_t begin, int64_t end, int worker) {
    const long_line *l = ctx;
    size_t size = l->job->kind->size;
    (void)worker;
    for (int64_t b = begin; b < end; b++) {
        int64_t *counts = l->counts + b * TD_DIGITS;
        memset(counts, 0, TD_DIGITS * sizeof *counts);
        l->job->kind->count(l->from + (size_t)(b * l->block) * size, block_length(l, b), l->shift,
                            counts);
    }
}

static void deal_blocks(void *ctx, int64_t begin, int64_t end, int worker) {
    const long_line *l = ctx;
    size_t size = l->job->kind->size;
    (void)worker;
    for (int64_t b = begin; b < end; b++)
        l->job->kind->deal(l->from + (size_t)(b * l->block) * size, block_length(l, b), l->shift,
                           l->counts + b * TD_DIGITS, l->to);
}

static void store_blocks(void *ctx, int64_t begin, int64_t end, int worker) {
    const long_line *l = ctx;
    const sort_job *j = l->job;
    int64_t at = begin * l->block, to = end * l->block < l->wanted ? end * l->block : l->wanted;
    (void)worker;
    store(j, l->x, l->from + (size_t)at * j->kind->size, to - at, l->least,
          l->values ? l->values + (size_t)at * j->size : NULL, l->index ? l->index + at : NULL);
}

/* Counts become the places where each block's entries of a digit begin. True where all share one
 * digit. */
static bool place_blocks(const long_line *l) {
    int64_t sum = 0, before;
    for (int d = 0; d < TD_DIGITS; d++) {
        before = sum;
        for (int64_t b = 0; b < l->blocks; b++) {
            int64_t *at = &l->counts[b * TD_DIGITS + d], count = *at;
            *at = sum;
            sum += count;
        }
        if (sum - before == l->job->n)
            return true;
    }
    return false;
}

static td_status deal_by_digits(long_line *l, int bits) {
    td_status status = TD_OK;
    for (l->shift = 0; l->shift < bits && status == TD_OK; l->shift += TD_DIGIT) {
        status = td_parallel_for(l->blocks, l->block, count_blocks, l);
        if (status || place_blocks(l))
            continue;
        status = td_parallel_for(l->blocks, 4 * l->block, deal_blocks, l);
        char *other = l->from;
        l->from = l->to;
        l->to = other;
    }
    return status;
}

/* The range of the keys decides how many digits there are and what they fit into. */
static td_status survey(long_line *l, int *bits) {
    td_tensor *room = NULL;
    uint64_t most = 0;
    td_status status = td_room(2 * l->blocks, sizeof *l->extremes, &room);
    if (status)
        return status;
    l->extremes = room->data;
    status = td_parallel_for(l->blocks, 2 * l->block, survey_blocks, l);
    l->least = UINT64_MAX;
    for (int64_t b = 0; b < l->blocks && status == TD_OK; b++) {
        l->least = l->extremes[2 * b] < l->least ? l->extremes[2 * b] : l->least;
        most = l->extremes[2 * b + 1] > most ? l->extremes[2 * b + 1] : most;
    }
    td_release(room);
    *bits = most > l->least ? 64 - __builtin_clzll(most - l->least) : 0;
    return status;
}

static td_status sort_long(long_line *l) {
    sort_job *j = l->job;
    td_tensor *from = NULL, *to = NULL, *counts = NULL;
    td_status status = TD_OK;
    int bits;
    TD_TRY(survey(l, &bits));
    j->kind = td_entries_for(bits, j->n);
    TD_TRY(td_room(j->n, j->kind->size, &from));
    TD_TRY(td_room(j->n, j->kind->size, &to));
    TD_TRY(td_room(l->blocks * TD_DIGITS, sizeof *l->counts, &counts));
    l->from = from->data;
    l->to = to->data;
    l->counts = counts->data;
    TD_TRY(td_parallel_for(l->blocks, 2 * l->block, load_blocks, l));
    TD_TRY(deal_by_digits(l, bits));
    status = td_parallel_for((l->wanted + l->block - 1) / l->block, 4 * l->block, store_blocks, l);
done:
    td_release(from);
    td_release(to);
    td_release(counts);
    return status;
}

/* ---- the first few of a long line ---- */

static void keep_blocks(void *ctx, int64_t begin, int64_t end, int worker) {
    const long_line *l = ctx;
    const sort_job *j = l->job;
    size_t size = j->kind->size;
    char *e = l->from + (size_t)(worker * few_entries(l->wanted)) * size;
    for (int64_t b = begin; b < end; b++) {
        int64_t n = block_length(l, b), few = l->wanted < n ? l->wanted : n;
        int64_t kept = keep_few(j, l->x, b * l->block, n, few, e);
        l->counts[b] = kept;
        memcpy(l->to + (size_t)(b * l->wanted) * size, e, (size_t)kept * size);
    }
}

/* The first few of each block, then of these. */
static td_status sort_few_of_long(long_line *l) {
    sort_job *j = l->job;
    int threads = td_get_num_threads();
    td_tensor *from = NULL, *to = NULL, *counts = NULL;
    td_status status = TD_OK;
    int64_t few = l->wanted, total = 0;
    size_t size = j->kind->size;
    l->block = (j->n + threads - 1) / threads;
    if (l->block > 16 * few)
        l->block = 16 * few > BLOCK ? 16 * few : BLOCK;
    l->blocks = (j->n + l->block - 1) / l->block;
    TD_TRY(td_room(threads * few_entries(few), size, &from));
    TD_TRY(td_room((l->blocks + 1) * few, size, &to));
    TD_TRY(td_room(l->blocks, sizeof *l->counts, &counts));
    l->from = from->data;
    l->to = to->data;
    l->counts = counts->data;
    TD_TRY(td_parallel_for_among(threads, l->blocks, 4 * l->block, keep_blocks, l));
    for (int64_t b = 0; b < l->blocks; b++) {
        memmove(l->to + (size_t)total * size, l->to + (size_t)(b * few) * size,
                (size_t)l->counts[b] * size);
        total += l->counts[b];
    }
    if (total > few)
        j->kind->part(l->to, total, few);
    store(j, l->x, j->kind->sort(l->to, l->from, few, j->bits, false), few, 0, l->values, l->index);
done:
    td_release(from);
    td_release(to);
    td_release(counts);
    return status;
}

static td_status sort_each(sort_job *j, int64_t lines) {
    td_status status = TD_OK;
    bool few = j->first <= FEW && j->first <= j->n / 4;
    for (int64_t line = 0; line < lines && status == TD_OK; line++) {
        long_line l = {.job = j,
                       .x = j->x + (size_t)(line * j->n) * j->size,
                       .values = j->values ? j->values + (size_t)(line * j->first) * j->size : NULL,
                       .index = j->index ? j->index + line * j->first : NULL,
                       .wanted = j->first,
                       .blocks = (j->n + BLOCK - 1) / BLOCK,
                       .block = BLOCK};
        j->kind = td_entries_for(j->bits, j->n);
        status = few ? sort_few_of_long(&l) : sort_long(&l);
    }
    return status;
}

/* ---- the plan ---- */

static td_status sort_all(sort_job *j, const td_tensor *x) {
    int64_t lines = j->n ? x->numel / j->n : 0;
    if (lines == 0 || j->first == 0)
        return TD_OK;
    td_status status = j->n >= LONG ? sort_each(j, lines) : sort_side_by_side(j, lines);
    return status ? status : td_interrupt_check(); /* a single line may have been left early */
}

td_status td_cpu_sort(const td_sort_plan *p) {
    const td_tensor *result = p->values ? p->values : p->index;
    td_tensor *x = NULL, *values = NULL, *index = NULL;
    td_status status = TD_OK;
    TD_TRY(td_lines_of(p->x, p->dim, &x));
    TD_TRY(td_lines_for(p->values, p->dim, &values));
    TD_TRY(td_lines_for(p->index, p->dim, &index));
    sort_job j = {.x = x->data,
                  .values = values ? values->data : NULL,
                  .index = index ? index->data : NULL,
                  .dtype = (td_dtype)x->dtype,
                  .size = td_tensor_itemsize(x),
                  .descending = p->descending,
                  .n = x->sizes[x->ndim - 1],
                  .first = result->ndim ? result->sizes[p->dim] : 1,
                  .bits = td_key_bits((td_dtype)x->dtype)};
    j.kind = td_entries_for(j.bits, j.n);
    TD_TRY(sort_all(&j, x));
    TD_TRY(td_lines_put(p->values, p->dim, values));
    TD_TRY(td_lines_put(p->index, p->dim, index));
done:
    td_release(x);
    td_release(values);
    td_release(index);
    return status;
}
