/* sort.c: lines in order on the CPU, all of a line or its first elements. Elements become keys,
 * keys with their places become entries (keyed_places.h); many short lines are sort_short.c's;
 * others are sorted side by side, each by one thread, by the 32 highest bits that its keys differ
 * in and then, where these are equal, by the rest; a long one by all threads: dealt out by digits,
 * the lowest first. Of the first few elements no more than these are ever kept. */
#include "engine/core/interrupt.h"
#include "engine/core/threads.h"
#include "engine/cpu/cpu.h"
#include "engine/cpu/limits.h"
#include "engine/cpu/order/keyed_places.h"
#include "engine/cpu/order/keys.h"
#include "engine/cpu/order/rank.h"
#include "engine/cpu/order/sort_short.h"
#include "engine/cpu/reduce/dim_lines.h"

#include <string.h>

enum {
    BLOCK = 64 * 1024, /* and of what one of them takes at a time */
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
    int64_t room_bytes;
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

/* Those of n <= TD_KEYS elements from `at` on that go before the entry `limit`, as entries: how
 * many. What stands behind that one goes by its key alone. */
static int64_t load_before(const sort_job *j, const char *line, int64_t at, int64_t n,
                           const char *limit, char *e) {
    uint64_t keys[TD_KEYS], key;
    int64_t places[TD_KEYS], place;
    td_keys_read(j->dtype, line + (size_t)at * j->size, n, j->descending, keys);
    j->kind->unload(limit, 1, &key, &place);
    int64_t count = td_cpu->keys->below(keys, n, key, at, keys, places);
    j->kind->join(e, keys, places, count);
    return count;
}

/* The least `few` of n entries' worth of a line from `at` on to the front of e, in no order: what
 * is less than the greatest of those that were the least so far is put behind them, and now and
 * then they are parted again. How many there are. */
static int64_t keep_few(const sort_job *j, const char *line, int64_t at, int64_t n, int64_t few,
                        char *e) {
    _Alignas(16) char limit[16];
    size_t size = j->kind->size;
    int64_t kept = 0, most = few_entries(few) - TD_KEYS - 1, part;
    bool full = false;
    for (int64_t k = 0; k < n && !td_interrupt_requested(); k += part) {
        part = full || few > SEED ? TD_KEYS : SEED + few;
        part = n - k < part ? n - k : part;
        if (full) {
            kept += load_before(j, line, at + k, part, limit, e + (size_t)kept * size);
        } else {
            load(j, line, at + k, part, e + (size_t)kept * size);
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

/* ---- keys of a line ---- */

/* Keys, and their order. */
typedef struct ordering {
    const uint64_t *keys;
    uint64_t least;    /* of them, where they were looked at */
    const uint64_t *e; /* narrow entries in order, */
    bool whole;        /* whose keys are these, less by `least`; else their places mean something */
} ordering;

/* Entries whose keys are alike but for the lowest bits, which they lack, by these. */
static void sort_alike(const ordering *o, uint64_t *e, uint64_t *room, int64_t n, int bits) {
    const uint64_t mask = ~(uint64_t)0 >> (64 - bits);
    for (int64_t k = 0; k < n; k++) {
        uint64_t place = e[k] & UINT32_MAX;
        e[k] = ((o->keys[place] - o->least) & mask) << 32 | place;
    }
    uint64_t *sorted = td_narrow_entries.sort(e, room, n, bits, true);
    if (sorted != e)
        memcpy(e, sorted, (size_t)n * sizeof *e);
}

/* Entries by the highest 32 of their keys' bits become those that go by the lower ones as well. */
static void sort_rest(const ordering *o, uint64_t *e, uint64_t *room, int64_t n, int bits) {
    for (int64_t k = 0, end; k < n; k = end) {
        for (end = k + 1; end < n && e[end] >> 32 == e[k] >> 32;)
            end++;
        if (end - k > 1)
            sort_alike(o, e + k, room, end - k, bits);
    }
}

/* n < 2^32 keys of so many bits, with room for as many entries in e and in `room`. Of more than 32
 * bits no more are sorted by than they differ in. */
static ordering sort_keys(const uint64_t *keys, int64_t n, int bits, uint64_t *e, uint64_t *room) {
    ordering o = {.keys = keys, .whole = true};
    uint64_t most;
    int low = 0;
    if (bits > 32) {
        td_cpu->keys->extremes(keys, n, &o.least, &most);
        bits = most > o.least ? 64 - __builtin_clzll(most - o.least) : 0;
        low = bits > 32 ? bits - 32 : 0;
    }
    td_cpu->keys->enter(keys, n, o.least, low, e);
    uint64_t *sorted = td_narrow_entries.sort(e, room, n, bits - low, true);
    if (low)
        sort_rest(&o, sorted, sorted == e ? room : e, n, low);
    o.whole = low == 0;
    o.e = sorted;
    return o;
}

/* The results of line x: n keys in order. Their elements stand at these places; NULL: 0, 1, 2, ...
 */
static void store_keys(const sort_job *j, const char *x, const ordering *o, const int64_t *stand,
                       char *values, int64_t *index) {
    uint64_t own[TD_KEYS];
    int64_t places[TD_KEYS];
    for (int64_t k = 0; k < j->first; k += TD_KEYS) {
        int64_t part = j->first - k < TD_KEYS ? j->first - k : TD_KEYS;
        int64_t *to = index ? index + k : places;
        for (int64_t i = 0; i < part; i++) {
            uint64_t place = o->e[k + i] & UINT32_MAX;
            own[i] = o->whole ? (o->e[k + i] >> 32) + o->least : o->keys[place];
            to[i] = stand ? stand[place] : (int64_t)place;
        }
        if (values)
            td_keys_write(j->dtype, own, to, part, j->descending, x, values + (size_t)k * j->size);
    }
}

static void sort_line(const sort_job *j, const char *x, uint64_t *room, char *values,
                      int64_t *index) {
    int64_t n = j->n;
    td_keys_read(j->dtype, x, n, j->descending, room);
    ordering o = sort_keys(room, n, j->bits, room + n, room + 2 * n);
    store_keys(j, x, &o, NULL, values, index);
}

/* The first few of a line: those whose keys are less than the last one's, then as many as are left
 * of those that have it. */
static void sort_by_rank(const sort_job *j, const char *x, uint64_t *room, char *values,
                         int64_t *index) {
    int64_t n = j->n, few = j->first, *places = (int64_t *)(void *)(room + 2 * n);
    uint64_t *keys = room, *kept = room + n, *entries = room + 3 * n;
    td_keys_read(j->dtype, x, n, j->descending, keys);
    uint64_t last = td_key_of_rank(keys, n, few - 1, kept);
    int64_t count = td_cpu->keys->below(keys, n, last, 0, kept, places);
    for (int64_t k = 0; count < few; k++) {
        kept[count] = keys[k];
        places[count] = k;
        count += keys[k] == last;
    }
    ordering o = sort_keys(kept, few, j->bits, entries, entries + few);
    store_keys(j, x, &o, places, values, index);
}

/* ---- lines side by side ---- */

/* Only the first elements are wanted, which are few. */
static bool are_few(const sort_job *j) {
    return j->first <= j->n / 4;
}

/* Wide entries take long to part. */
static bool go_by_rank(const sort_job *j) {
    return j->bits > 32 && j->n <= TD_LIMIT(SORT_TWICE);
}

static void sort_lines(void *ctx, int64_t begin, int64_t end, int worker) {
    const sort_job *j = ctx;
    char *room = j->room + (size_t)(worker * j->room_bytes);
    for (int64_t line = begin; line < end; line++) {
        const char *x = j->x + (size_t)(line * j->n) * j->size;
        char *values = j->values ? j->values + (size_t)(line * j->first) * j->size : NULL;
        int64_t *index = j->index ? j->index + line * j->first : NULL;
        if (!are_few(j))
            sort_line(j, x, (uint64_t *)(void *)room, values, index);
        else if (go_by_rank(j))
            sort_by_rank(j, x, (uint64_t *)(void *)room, values, index);
        else
            sort_few(j, x, room, values, index);
    }
}

static td_status sort_side_by_side(sort_job *j, int64_t lines) {
    j->room_bytes = are_few(j) && !go_by_rank(j) ? few_entries(j->first) * (int64_t)j->kind->size
                                                 : 4 * j->n * (int64_t)sizeof(uint64_t);
    return td_for_lines(lines, COST * j->n, j->room_bytes, &j->room, sort_lines, j);
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
    bool few = j->first <= TD_LIMIT(SORT_FIRST) && j->first <= j->n / 4;
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
    td_short_lines all = {j->x,          j->values, j->index, j->dtype,
                          j->descending, lines,     j->n,     j->first};
    td_status status = td_are_short_lines(&all)      ? td_sort_short(&all)
                       : j->n >= TD_LIMIT(SORT_LONG) ? sort_each(j, lines)
                                                     : sort_side_by_side(j, lines);
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
