/* most_frequent.c: the most frequent element of each line on the CPU. Those of short lines are
 * counted in a table by their keys; long lines are sorted, so that equal ones lie side by side. */
#include "engine/cpu/order/most_frequent.h"

#include "engine/cpu/cpu.h"
#include "engine/cpu/limits.h"
#include "engine/cpu/order/keys.h"

#include <string.h>

enum {
    COST = 6 /* of an element */
};

/* A key and how often it was met: 0 times where the entry is free. */
typedef struct counted {
    uint64_t key, count;
} counted;

typedef struct mode_job {
    td_picked_lines lines;
    int bits;   /* a table has 1 << bits entries */
    char *room; /* of each worker, a table and keys: */
    int64_t room_bytes;
    const char *sorted; /* lines in order, and where their elements stood */
    const int64_t *stood;
} mode_job;

/* The most frequent key of those that were met so far, the least of several. */
typedef struct best_key {
    uint64_t key, count;
    int64_t place;
} best_key;

static inline void meet(best_key *best, uint64_t key, uint64_t count, int64_t place) {
    if (count > best->count || (count == best->count && key < best->key))
        *best = (best_key){key, count, place};
}

static bool is_nan(const mode_job *j, uint64_t key) {
    return key == td_key_nan(j->lines.dtype) && td_dtype_is_float(j->lines.dtype);
}

/* ---- by counting ---- */

/* Where a key is in the table, or is to be: the entries behind its own are looked at in turn. */
static inline counted *entry_of(const mode_job *j, counted *table, uint64_t key) {
    const uint64_t spread = 0x9E3779B97F4A7C15, mask = (1u << j->bits) - 1;
    uint64_t at = (key * spread) >> (64 - j->bits);
    while (table[at].count && table[at].key != key)
        at = (at + 1) & mask;
    return &table[at];
}

static int64_t count_line(const mode_job *j, const uint64_t *keys, counted *table) {
    best_key best = {0};
    memset(table, 0, sizeof *table << j->bits);
    for (int64_t k = 0; k < j->lines.n; k++) {
        counted *c = entry_of(j, table, keys[k]);
        if (c->count && is_nan(j, keys[k]))
            continue;
        c->key = keys[k];
        meet(&best, keys[k], ++c->count, k);
    }
    return best.place;
}

/* Keys of as many lines as fit are made by one call. */
static void count_lines(void *ctx, int64_t begin, int64_t end, int worker) {
    const mode_job *j = ctx;
    const td_picked_lines *l = &j->lines;
    char *room = j->room + (size_t)(worker * j->room_bytes);
    counted *table = (counted *)(void *)room;
    uint64_t *keys = (uint64_t *)(void *)(room + (sizeof *table << j->bits));
    int64_t lines = l->n < TD_KEYS ? TD_KEYS / l->n : 1;
    for (int64_t line = begin; line < end; line += lines) {
        int64_t some = end - line < lines ? end - line : lines;
        td_keys_read(l->dtype, l->x + (size_t)(line * l->n) * l->size, some * l->n, false, keys);
        for (int64_t k = 0; k < some; k++)
            td_pick(l, line + k, count_line(j, keys + k * l->n, table));
    }
}

static td_status by_counting(mode_job *j, int64_t lines) {
    int64_t n = j->lines.n, keys = n < TD_KEYS ? TD_KEYS : n;
    for (j->bits = 1; 2 << j->bits < 3 * n;)
        j->bits++;
    j->room_bytes = (int64_t)(sizeof(counted) << j->bits) + keys * (int64_t)sizeof(uint64_t);
    return td_for_lines(lines, COST * n, j->room_bytes, &j->room, count_lines, j);
}

/* ---- by sorting ---- */

static int64_t longest_run(const mode_job *j, int64_t line) {
    const td_picked_lines *l = &j->lines;
    uint64_t keys[TD_KEYS], last = 0, count = 0;
    best_key best = {0};
    for (int64_t k = 0; k < l->n; k += TD_KEYS) {
        int64_t part = l->n - k < TD_KEYS ? l->n - k : TD_KEYS;
        td_keys_read(l->dtype, j->sorted + (size_t)(line * l->n + k) * l->size, part, false, keys);
        for (int64_t i = 0; i < part; i++) {
            if (keys[i] != last)
                count = 0;
            last = keys[i];
            if (count == 0 || !is_nan(j, last))
                meet(&best, last, ++count, k + i);
        }
    }
    return j->stood[line * l->n + best.place];
}

static void take_runs(void *ctx, int64_t begin, int64_t end, int worker) {
    const mode_job *j = ctx;
    (void)worker;
    for (int64_t line = begin; line < end; line++)
        td_pick(&j->lines, line, longest_run(j, line));
}

static td_status by_sorting(mode_job *j, td_tensor *x, int64_t lines) {
    td_tensor *values = NULL, *index = NULL;
    td_status status = TD_OK;
    TD_TRY(td_tensor_empty(j->lines.dtype, TD_DEVICE_CPU, x->ndim, x->sizes, &values));
    TD_TRY(td_tensor_empty(TD_I64, TD_DEVICE_CPU, x->ndim, x->sizes, &index));
    td_sort_plan sort = {.values = values, .index = index, .x = x, .dim = x->ndim - 1};
    TD_TRY(td_cpu_sort(&sort));
    j->sorted = values->data;
    j->stood = index->data;
    status = td_parallel_for(lines, j->lines.n, take_runs, j);
done:
    td_release(values);
    td_release(index);
    return status;
}

td_status td_most_frequent(td_tensor *x, const td_picked_lines *lines) {
    mode_job j = {.lines = *lines};
    int64_t count = x->numel / j.lines.n;
    return j.lines.n <= TD_LIMIT(MODE_COUNTED) ? by_counting(&j, count) : by_sorting(&j, x, count);
}
