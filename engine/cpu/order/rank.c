/* rank.c: selection among unsorted keys. One or two keys of a sample divide them, the part that
 * holds the wanted rank is kept, and so on until few are left, which are sorted. Each step reads
 * all keys that are left, in vectors. */
#include "engine/cpu/order/rank.h"

#include "engine/cpu/isa/isa.h"
#include "engine/cpu/limits.h"
#include "engine/cpu/order/keyed_places.h"

#include <string.h>

enum {
    SAMPLE = 32, /* keys that the bounds are found among */
};

#define SEED 0x9E3779B97F4A7C15u

typedef struct bounds {
    uint64_t low, high;
} bounds;

/* A key from a place that no input can foresee to be a bad one. */
static uint64_t pick(const uint64_t *keys, int64_t n, uint64_t *draw) {
    *draw = *draw * 6364136223846793005u + 1442695040888963407u;
    return keys[(int64_t)(((unsigned __int128)*draw * (uint64_t)n) >> 64)];
}

/* The middle one of three keys. */
static bounds middle(const uint64_t *keys, int64_t n, uint64_t *draw) {
    uint64_t a = pick(keys, n, draw), b = pick(keys, n, draw), c = pick(keys, n, draw);
    uint64_t least = a < b ? a : b, most = a < b ? b : a, key = c > most ? most : c;
    key = key < least ? least : key;
    return (bounds){key, key};
}

/* Two of many keys that the one of a rank hardly ever lies beyond. */
static bounds bracket(const uint64_t *keys, int64_t n, int64_t rank, uint64_t *draw) {
    uint64_t sample[SAMPLE];
    for (int j = 0; j < SAMPLE; j++)
        sample[j] = pick(keys, n, draw);
    td_sort_keys(sample, SAMPLE);
    int at = (int)((double)rank / (double)n * SAMPLE), beside = SAMPLE / 8;
    return (bounds){at < beside ? 0 : sample[at - beside],
                    at + beside >= SAMPLE ? UINT64_MAX : sample[at + beside]};
}

static uint64_t rank_few(uint64_t *keys, int64_t n, int64_t rank) {
    td_sort_keys(keys, n);
    return keys[rank];
}

/* Those less than `key` to the front: how many. No branch waits for a key: those are random. */
static int64_t divide(uint64_t *keys, int64_t n, uint64_t key) {
    int64_t to = 0;
    for (int64_t k = 0; k < n; k++) {
        uint64_t moved = keys[k];
        keys[k] = keys[to];
        keys[to] = moved;
        to += moved < key;
    }
    return to;
}

static uint64_t rank_one_by_one(uint64_t *keys, int64_t n, int64_t rank) {
    uint64_t draw = SEED;
    while (n > TD_LIMIT(RANK_SORTED)) {
        uint64_t key = middle(keys, n, &draw).low;
        int64_t less = divide(keys, n, key);
        if (rank < less) {
            n = less;
            continue;
        }
        if (less == 0) { /* it is the least of those left: how often is it there? */
            less = key < UINT64_MAX ? divide(keys, n, key + 1) : n;
            if (rank < less)
                return key;
        }
        keys += less;
        n -= less;
        rank -= less;
    }
    return rank_few(keys, n, rank);
}

uint64_t td_key_of_rank(const uint64_t *keys, int64_t n, int64_t rank, uint64_t *room) {
    const td_keys_kernels *fns = td_cpu->keys;
    uint64_t draw = SEED;
    bool apart = true;
    if (!fns->keep)
        return rank_one_by_one(memcpy(room, keys, (size_t)n * sizeof *keys), n, rank);
    while (n > TD_LIMIT(RANK_SORTED)) {
        bounds b = apart && n >= TD_LIMIT(RANK_SAMPLED) ? bracket(keys, n, rank, &draw)
                                                        : middle(keys, n, &draw);
        int64_t less, upto, before = n;
        fns->count(keys, n, b.low, b.high, &less, &upto);
        if (rank < less) {
            n = fns->keep(keys, n, 0, b.low - 1, room);
        } else if (rank >= upto) {
            n = fns->keep(keys, n, b.high + 1, UINT64_MAX, room);
            rank -= upto;
        } else if (b.low == b.high) {
            return b.low;
        } else {
            n = fns->keep(keys, n, b.low, b.high, room);
            rank -= less;
        }
        keys = room;
        apart =
            n <= before / 2; /* otherwise one key may be most of them: a single bound finds it */
    }
    if (keys != room)
        memcpy(room, keys, (size_t)n * sizeof *keys);
    return rank_few(room, n, rank);
}

int64_t td_count_key(const uint64_t *keys, int64_t n, uint64_t key) {
    int64_t less, upto;
    td_cpu->keys->count(keys, n, key, key, &less, &upto);
    return upto - less;
}

int64_t td_place_of_key(const uint64_t *keys, int64_t n, uint64_t key, int64_t nth) {
    enum { PART = 256 };
    int64_t k = 0;
    for (int64_t here; n - k > PART; k += PART, nth -= here) {
        here = td_count_key(keys + k, PART, key);
        if (nth < here)
            break;
    }
    while (k < n && (keys[k] != key || nth-- > 0))
        k++;
    return k;
}
