/* select.c: kthvalue and medians of lines on the CPU. Very short lines are sorted side by side; a
 * short line's key of the wanted rank is found by rank.h, a long one's digit by digit from the
 * highest, by counting with all threads. Its place is found last: equal keys rank by where they
 * stand. */
#include "engine/core/interrupt.h"
#include "engine/core/threads.h"
#include "engine/cpu/cpu.h"
#include "engine/cpu/limits.h"
#include "engine/cpu/order/keyed_places.h"
#include "engine/cpu/order/keys.h"
#include "engine/cpu/order/most_frequent.h"
#include "engine/cpu/order/rank.h"
#include "engine/cpu/order/sort_short.h"
#include "engine/cpu/reduce/dim_lines.h"

#include <math.h>
#include <string.h>

enum {
    BLOCK = 64 * 1024, /* and of what one of them takes at a time */
    TURN = 4096,       /* lines that are sorted before what is wanted of them is taken */
    COST = 8           /* of an element */
};

typedef struct select_job {
    const td_select_plan *plan;
    td_picked_lines lines;
    char *room; /* of each worker: a line's keys, and those that are left */
} select_job;

/* Which element of the order, of n with so many NaN; -1: the first NaN. */
static int64_t wanted_rank(const td_select_plan *p, int64_t n, int64_t nans) {
    switch (p->selection) {
    case TD_SELECT_RANK:
        return p->rank;
    case TD_SELECT_MEDIAN:
        return nans ? -1 : (n - 1) / 2;
    case TD_SELECT_NANMEDIAN:
    case TD_SELECT_MODE: /* which has no rank */
        break;
    }
    return nans < n ? (n - nans - 1) / 2 : 0;
}

/* ---- short lines ---- */

static int64_t place_in_line(const select_job *j, const char *line, uint64_t *keys) {
    int64_t n = j->lines.n, nans = 0, less, upto;
    td_keys_read(j->lines.dtype, line, n, false, keys);
    if (td_dtype_is_float(j->lines.dtype) && j->plan->selection != TD_SELECT_RANK)
        nans = td_count_key(keys, n, td_key_nan(j->lines.dtype));
    int64_t rank = wanted_rank(j->plan, n, nans);
    if (rank < 0)
        return td_place_of_key(keys, n, td_key_nan(j->lines.dtype), 0);
    if (td_key_bits(j->lines.dtype) <= 32) { /* entries: what is found says where it stands */
        td_cpu->keys->enter(keys, n, 0, 0, keys);
        return (int64_t)(td_key_of_rank(keys, n, rank, keys + n) & UINT32_MAX);
    }
    uint64_t key = td_key_of_rank(keys, n, rank, keys + n);
    td_cpu->keys->count(keys, n, key, key, &less, &upto);
    return td_place_of_key(keys, n, key, rank - less);
}

static void select_lines(void *ctx, int64_t begin, int64_t end, int worker) {
    const select_job *j = ctx;
    uint64_t *keys = (uint64_t *)(void *)j->room + 2 * worker * j->lines.n;
    for (int64_t line = begin; line < end; line++)
        td_pick(&j->lines, line,
                place_in_line(j, j->lines.x + (size_t)(line * j->lines.n) * j->lines.size, keys));
}

static td_status select_side_by_side(select_job *j, int64_t lines) {
    int64_t n = j->lines.n;
    return td_for_lines(lines, COST * n, 2 * n * (int64_t)sizeof(uint64_t), &j->room, select_lines,
                        j);
}

/* ---- a long line ---- */

typedef struct long_line {
    const select_job *job;
    const char *x;
    int threads;
    int64_t blocks, *counts; /* by worker and digit, or by block */
    uint64_t *extremes;      /* of each worker's keys: least and greatest */
    uint64_t least;          /* what the keys below are less by */
    uint64_t key, mask;      /* what is known of the key */
    int shift;
    char *found; /* entries of the elements that have it, by worker */
    int64_t most;
} long_line;

/* The keys of elements k, k + 1, ...: how many. */
static int64_t read_keys(const long_line *l, int64_t k, uint64_t *keys) {
    const select_job *j = l->job;
    int64_t n = j->lines.n - k < TD_KEYS ? j->lines.n - k : TD_KEYS;
    td_keys_read(j->lines.dtype, l->x + (size_t)k * j->lines.size, n, false, keys);
    for (int64_t i = 0; l->least && i < n; i++)
        keys[i] -= l->least;
    return n;
}

static int64_t end_of(const long_line *l, int64_t blocks) {
    return blocks * BLOCK < l->job->lines.n ? blocks * BLOCK : l->job->lines.n;
}

static void survey_blocks(void *ctx, int64_t begin, int64_t end, int worker) {
    const long_line *l = ctx;
    uint64_t keys[TD_KEYS], least = l->extremes[2 * worker], most = l->extremes[2 * worker + 1];
    int64_t n;
    for (int64_t k = begin * BLOCK; k < end_of(l, end); k += n) {
        n = read_keys(l, k, keys);
        for (int64_t i = 0; i < n; i++) {
            least = keys[i] < least ? keys[i] : least;
            most = keys[i] > most ? keys[i] : most;
        }
    }
    l->extremes[2 * worker] = least;
    l->extremes[2 * worker + 1] = most;
}

/* Of the elements that have what is known of the key, how many have each next digit. */
static void count_digits(void *ctx, int64_t begin, int64_t end, int worker) {
    const long_line *l = ctx;
    uint64_t keys[TD_KEYS];
    int64_t n, *counts = l->counts + worker * TD_DIGITS;
    for (int64_t k = begin * BLOCK; k < end_of(l, end); k += n) {
        n = read_keys(l, k, keys);
        for (int64_t i = 0; i < n; i++)
            if ((keys[i] & l->mask) == l->key)
                counts[keys[i] >> l->shift & (TD_DIGITS - 1)]++;
    }
}

/* The entries of the elements that have what is known of the key. */
static void collect(void *ctx, int64_t begin, int64_t end, int worker) {
    const long_line *l = ctx;
    const td_entries *kind = &td_wide_entries;
    uint64_t keys[TD_KEYS];
    int64_t n, *count = &l->counts[worker];
    char *to = l->found + (size_t)(worker * l->most) * kind->size;
    for (int64_t k = begin * BLOCK; k < end_of(l, end); k += n) {
        n = read_keys(l, k, keys);
        for (int64_t i = 0; i < n; i++)
            if ((keys[i] & l->mask) == l->key)
                kind->load(to + (size_t)(*count)++ * kind->size, &keys[i], k + i, 1);
    }
}

/* How many elements of each block have the key. */
static void count_equal(void *ctx, int64_t begin, int64_t end, int worker) {
    const long_line *l = ctx;
    uint64_t keys[TD_KEYS];
    int64_t n;
    (void)worker;
    for (int64_t b = begin; b < end; b++) {
        l->counts[b] = 0;
        for (int64_t k = b * BLOCK; k < end_of(l, b + 1); k += n) {
            n = read_keys(l, k, keys);
            l->counts[b] += td_count_key(keys, n, l->key);
        }
    }
}

/* The keys become what they are more than the least of them: how many bits that takes. */
static td_status survey(long_line *l, int *bits) {
    td_tensor *room = NULL;
    uint64_t least = UINT64_MAX, most = 0;
    td_status status = td_room(2 * l->threads, sizeof *l->extremes, &room);
    if (status)
        return status;
    l->extremes = room->data;
    for (int w = 0; w < l->threads; w++) {
        l->extremes[2 * w] = least;
        l->extremes[2 * w + 1] = most;
    }
    status = td_parallel_for_among(l->threads, l->blocks, 2 * BLOCK, survey_blocks, l);
    for (int w = 0; w < l->threads && status == TD_OK; w++) {
        least = l->extremes[2 * w] < least ? l->extremes[2 * w] : least;
        most = l->extremes[2 * w + 1] > most ? l->extremes[2 * w + 1] : most;
    }
    td_release(room);
    *bits = most > least ? 64 - __builtin_clzll(most - least) : 0;
    l->least = least;
    l->key = l->mask = 0;
    return status;
}

/* One digit more of the key of the element that *rank others, of those that have what is known of
 * it, go before; *same: how many have that digit too. */
static td_status find_digit(long_line *l, int high, int64_t *rank, int64_t *same) {
    int bits = high < TD_DIGIT ? high : TD_DIGIT;
    uint64_t digits = (uint64_t)1 << bits;
    l->shift = high - bits;
    memset(l->counts, 0, (size_t)l->threads * TD_DIGITS * sizeof *l->counts);
    td_status status = td_parallel_for_among(l->threads, l->blocks, 2 * BLOCK, count_digits, l);
    for (uint64_t d = 0; d < digits && status == TD_OK; d++) {
        *same = 0;
        for (int w = 0; w < l->threads; w++) /* higher bits, which are known, are counted along */
            for (uint64_t all = d; all < TD_DIGITS; all += digits)
                *same += l->counts[w * TD_DIGITS + (int64_t)all];
        if (*rank < *same) {
            l->key |= d << l->shift;
            break;
        }
        *rank -= *same;
    }
    l->mask |= (digits - 1) << l->shift;
    return status;
}

/* Where the key stands for the nth time, from 0; the total in *total if n is -1. */
static td_status find_place(long_line *l, int64_t n, int64_t *place, int64_t *total) {
    uint64_t key;
    td_status status = td_parallel_for(l->blocks, BLOCK, count_equal, l);
    *total = 0;
    for (int64_t b = 0; b < l->blocks && status == TD_OK; b++) {
        int64_t before = *total;
        *total += l->counts[b];
        for (int64_t k = b * BLOCK; n >= before && n < *total; k++) {
            td_keys_read(l->job->lines.dtype, l->x + (size_t)k * l->job->lines.size, 1, false,
                         &key);
            if (key - l->least == l->key && before++ == n) {
                *place = k;
                return TD_OK;
            }
        }
    }
    return status;
}

/* Where the element is that `rank` of the few others that have what is known of the key go before.
 */
static td_status find_among_few(long_line *l, int64_t few, int64_t rank, int64_t *place) {
    const td_entries *kind = &td_wide_entries;
    td_tensor *room = NULL;
    uint64_t key;
    int64_t total = 0;
    td_status status = td_room(l->threads * few, kind->size, &room);
    if (status)
        return status;
    l->found = room->data;
    l->most = few;
    memset(l->counts, 0, (size_t)l->threads * sizeof *l->counts);
    status = td_parallel_for_among(l->threads, l->blocks, 2 * BLOCK, collect, l);
    for (int w = 0; w < l->threads && status == TD_OK; w++) {
        memmove(l->found + (size_t)total * kind->size, l->found + (size_t)(w * few) * kind->size,
                (size_t)l->counts[w] * kind->size);
        total += l->counts[w];
    }
    if (status == TD_OK) {
        kind->part(l->found, total, rank);
        kind->unload(l->found + (size_t)rank * kind->size, 1, &key, place);
    }
    td_release(room);
    return status;
}

static td_status find_rank(long_line *l, int64_t rank, int64_t *place) {
    int64_t same = l->job->lines.n;
    int high = 0;
    td_status status = survey(l, &high);
    while (high > 0 && same > l->job->lines.n / 64 && status == TD_OK) {
        status = find_digit(l, high, &rank, &same);
        high -= high < TD_DIGIT ? high : TD_DIGIT;
    }
    if (status)
        return status;
    return high > 0 && same <= l->job->lines.n / 64 ? find_among_few(l, same, rank, place)
                                                    : find_place(l, rank, place, &same);
}

static td_status place_in_long(long_line *l, int64_t *place) {
    const select_job *j = l->job;
    int64_t nans = 0;
    td_status status = TD_OK;
    if (j->plan->selection != TD_SELECT_RANK && td_dtype_is_float(j->lines.dtype)) {
        l->key = td_key_nan(j->lines.dtype);
        status = find_place(l, j->plan->selection == TD_SELECT_MEDIAN ? 0 : -1, place, &nans);
    }
    int64_t rank = wanted_rank(j->plan, j->lines.n, nans);
    return status || rank < 0 ? status : find_rank(l, rank, place);
}

static td_status select_each(select_job *j, int64_t lines) {
    int threads = td_get_num_threads();
    int64_t blocks = (j->lines.n + BLOCK - 1) / BLOCK, most = threads * (int64_t)TD_DIGITS,
            place = 0;
    td_tensor *counts = NULL;
    td_status status = td_room(blocks > most ? blocks : most, sizeof(int64_t), &counts);
    for (int64_t line = 0; line < lines && status == TD_OK; line++) {
        long_line l = {.job = j,
                       .x = j->lines.x + (size_t)(line * j->lines.n) * j->lines.size,
                       .threads = threads,
                       .blocks = blocks,
                       .counts = counts->data};
        status = place_in_long(&l, &place);
        if (status == TD_OK)
            td_pick(&j->lines, line, place);
    }
    td_release(counts);
    return status;
}

/* ---- very short lines, all sorted ---- */

/* Where in a sorted line the wanted element is: NaN are at its end. */
static int64_t sorted_place(const select_job *j, int64_t line, const int64_t *order) {
    const char *x = j->lines.x + (size_t)(line * j->lines.n) * j->lines.size;
    int64_t nans = 0;
    if (td_dtype_is_float(j->lines.dtype) && j->plan->selection != TD_SELECT_RANK)
        while (nans < j->lines.n &&
               isnan(td_load_double(j->lines.dtype,
                                    x + (size_t)order[j->lines.n - 1 - nans] * j->lines.size)))
            nans++;
    int64_t rank = wanted_rank(j->plan, j->lines.n, nans);
    return order[rank < 0 ? j->lines.n - nans : rank];
}

static td_status select_sorted(select_job *j, td_short_lines *s, int64_t lines) {
    td_tensor *room = NULL;
    td_status status = td_room((lines < TURN ? lines : TURN) * j->lines.n, sizeof *s->index, &room);
    for (int64_t line = 0; line < lines && status == TD_OK; line += TURN) {
        s->x = j->lines.x + (size_t)(line * j->lines.n) * j->lines.size;
        s->index = room->data;
        s->lines = lines - line < TURN ? lines - line : TURN;
        status = td_sort_short(s);
        for (int64_t k = 0; k < s->lines && status == TD_OK; k++)
            td_pick(&j->lines, line + k, sorted_place(j, line + k, s->index + k * j->lines.n));
    }
    td_release(room);
    return status;
}

static td_status select_all(select_job *j, int64_t lines) {
    td_short_lines all = {
        .dtype = j->lines.dtype, .lines = lines, .n = j->lines.n, .first = j->lines.n};
    if (j->lines.n <= TD_LIMIT(SELECT_SORTED) && td_are_short_lines(&all))
        return select_sorted(j, &all, lines);
    return j->lines.n >= TD_LIMIT(SELECT_LONG) ? select_each(j, lines)
                                               : select_side_by_side(j, lines);
}

td_status td_cpu_select(const td_select_plan *p) {
    td_tensor *x = NULL, *values = NULL, *index = NULL;
    td_status status = TD_OK;
    TD_TRY(td_lines_of(p->x, p->dim, &x));
    TD_TRY(td_lines_for(p->values, p->dim, &values));
    TD_TRY(td_lines_for(p->index, p->dim, &index));
    select_job j = {.plan = p,
                    .lines = {.x = x->data,
                              .values = values->data,
                              .index = index ? index->data : NULL,
                              .dtype = (td_dtype)x->dtype,
                              .size = td_tensor_itemsize(x),
                              .n = x->sizes[x->ndim - 1]}};
    int64_t lines = values->numel;
    if (lines)
        TD_TRY(p->selection == TD_SELECT_MODE ? td_most_frequent(x, &j.lines)
                                              : select_all(&j, lines));
    TD_TRY(td_lines_put(p->values, p->dim, values));
    TD_TRY(td_lines_put(p->index, p->dim, index));
done:
    td_release(x);
    td_release(values);
    td_release(index);
    return status;
}
