/* permutation.c: a random order on the CPU: numbers sorted by 64-bit keys, equal keys by number.
 * Keys being random, distributing them by their highest bits leaves next to nothing to sort. What
 * is moved is one word: the highest bits of a key above the number, which hardly ever leaves two
 * keys alike; where it does, they are made once more. */
#include "engine/core/interrupt.h"
#include "engine/core/random.h"
#include "engine/core/threads.h"
#include "engine/cpu/cpu.h"
#include "engine/cpu/isa/isa.h"
#include "engine/cpu/order/keyed_places.h"
#include "engine/cpu/reduce/dim_lines.h"

#include <string.h>

/* RUN_BITS: of the elements of a run, which lie in the nearest cache with their digits' counts;
 * runs are few then, which many would take a page each to write to. STRETCH: elements between looks
 * at the interrupt. Each of them may be the first that is written in its page, and of 64 K such
 * pages the system takes a second to give. */
enum { FEW = 2048, RUN_BITS = 11, MAX_BITS = 12, STRETCH = 16 };

typedef struct order {
    const td_permutation_plan *plan;
    int64_t n;
    int low;                 /* bits of a number */
    uint64_t *made;          /* entries as they are made */
    uint64_t *entries;       /* in runs of those that agree in their highest bits */
    int top;                 /* bits that the runs go by */
    int64_t *start, longest; /* of each run, and n; elements of the longest run */
    uint64_t *room;          /* for the longest run, one per thread */
} order;

/* Chunks of the generator's counters, two keys each. */
static void make_entries(void *ctx, int64_t begin, int64_t end, int worker) {
    const order *o = ctx;
    uint32_t words[TD_RANDOM_WORDS];
    int64_t per_chunk = 2 * TD_RANDOM_BLOCKS;
    uint64_t high = ~(uint64_t)0 << o->low;
    (void)worker;
    for (int64_t chunk = begin; chunk < end; chunk++) {
        int64_t at = chunk * per_chunk, n = o->n - at < per_chunk ? o->n - at : per_chunk;
        td_cpu->random->words(words, o->plan->seed,
                              o->plan->offset + (uint64_t)chunk * TD_RANDOM_BLOCKS,
                              (int)(n + 1) / 2);
        for (int64_t k = 0; k < n; k++) {
            uint64_t key = (uint64_t)words[2 * k] << 32 | words[2 * k + 1];
            o->made[at + k] = (key & high) | (uint64_t)(at + k);
        }
    }
}

/* The whole key of an entry. */
static uint64_t key_of(const order *o, uint64_t entry) {
    uint64_t number = entry & ~(~(uint64_t)0 << o->low);
    uint32_t words[4], *own = words + number % 2 * 2;
    td_philox(o->plan->seed, o->plan->offset + number / 2, words);
    return (uint64_t)own[0] << 32 | own[1];
}

/* Bits that tell n things apart. */
static int bits_for(int64_t n) {
    int bits = 1;
    while (bits < 62 && (int64_t)1 << bits < n)
        bits++;
    return bits;
}

/* Sort entries, which agree from bit `high` on, into `to`: by digits of which there are about as
 * many as entries, so that few share one; what does lies side by side and is sorted then, by
 * exchanging neighbours so often that it hardly ever is too seldom, or one by one, which likes more
 * digits. */
static void sort_run(const uint64_t *from, uint64_t *to, int64_t n, int high) {
    enum { ROUNDS = 8 };
    uint16_t start[1 << MAX_BITS];
    const int wanted = bits_for(n) + (td_cpu->keys->settle ? 0 : 1);
    const int bits = wanted < 2 ? 2 : wanted < MAX_BITS ? wanted : MAX_BITS, shift = high - bits;
    const uint64_t mask = ((uint64_t)1 << bits) - 1;
    memset(start, 0, (size_t)(mask + 1) * sizeof *start);
    for (int64_t k = 0; k < n; k++)
        start[from[k] >> shift & mask]++;
    td_begin_shorts(start, (int64_t)mask + 1);
    for (int64_t k = 0; k < n; k++)
        to[start[from[k] >> shift & mask]++] = from[k];
    if (td_cpu->keys->settle)
        td_cpu->keys->settle(to, n, ROUNDS);
    else
        td_sort_keys(to, n);
}

/* Sorted entries that are alike but for their numbers go by what is left of their keys. */
static void sort_alike(const order *o, uint64_t *e, int64_t n) {
    for (int64_t k = 1; k < n; k++) {
        uint64_t moved = e[k];
        int64_t to = k;
        for (; to > 0 && (e[to - 1] ^ moved) >> o->low == 0; to--) {
            if (key_of(o, e[to - 1]) <= key_of(o, moved))
                break;
            e[to] = e[to - 1];
        }
        e[to] = moved;
    }
}

/* The numbers of entries that are sorted, but for few of them. */
static void put_numbers(const order *o, uint64_t *e, int64_t n, int64_t *out) {
    if (td_cpu->keys->split(e, n, o->low, out))
        return;
    td_sort_keys(e, n);
    sort_alike(o, e, n);
    (void)td_cpu->keys->split(e, n, o->low, out);
}

static void sort_runs(void *ctx, int64_t begin, int64_t end, int worker) {
    const order *o = ctx;
    int64_t *out = o->plan->out->data;
    uint64_t *room = o->room + worker * (o->longest + TD_SETTLE_MORE);
    for (int64_t d = begin; d < end; d++) {
        int64_t first = o->start[d], n = o->start[d + 1] - first;
        sort_run(o->entries + first, room, n, 64 - o->top);
        put_numbers(o, room, n, out + first);
    }
}

/* Entries into runs by their highest bits. */
static void distribute(order *o) {
    int64_t runs = (int64_t)1 << o->top, *start = o->start;
    int shift = 64 - o->top;
    memset(start, 0, (size_t)(runs + 1) * sizeof *start);
    for (int64_t k = 0; k < o->n && !td_interrupt_requested();)
        for (int64_t end = o->n - k < STRETCH ? o->n : k + STRETCH; k < end; k++)
            start[(o->made[k] >> shift) + 1]++;
    for (int64_t d = 0; d < runs; d++) {
        o->longest = start[d + 1] > o->longest ? start[d + 1] : o->longest;
        start[d + 1] += start[d];
    }
    for (int64_t k = 0; k < o->n && !td_interrupt_requested();)
        for (int64_t end = o->n - k < STRETCH ? o->n : k + STRETCH; k < end; k++)
            o->entries[start[o->made[k] >> shift]++] = o->made[k];
    memmove(start + 1, start, (size_t)runs * sizeof *start); /* ends are the next ones' starts */
    start[0] = 0;
}

static td_status permute(order *o) {
    int64_t per_chunk = 2 * TD_RANDOM_BLOCKS, runs = (int64_t)1 << o->top;
    int threads = td_get_num_threads();
    td_tensor *room = NULL;
    td_status status = TD_OK;
    TD_TRY(td_parallel_for((o->n + per_chunk - 1) / per_chunk, TD_GRAIN / 16, make_entries, o));
    distribute(o);
    TD_TRY(td_interrupt_check()); /* for one it leaves early */
    TD_TRY(td_room((o->longest + TD_SETTLE_MORE) * threads, sizeof *o->room, &room));
    o->room = room->data;
    status = td_parallel_for_among(threads, runs, 4 * o->n / runs, sort_runs, o);
done:
    td_release(room);
    return status;
}

static void permute_few(order *o) {
    uint64_t entries[FEW], sorted[FEW + TD_SETTLE_MORE];
    o->made = entries;
    make_entries(o, 0, (o->n + 2 * TD_RANDOM_BLOCKS - 1) / (2 * TD_RANDOM_BLOCKS), 0);
    sort_run(entries, sorted, o->n, 64);
    put_numbers(o, sorted, o->n, o->plan->out->data);
}

td_status td_cpu_permutation(const td_permutation_plan *p) {
    order o = {.plan = p, .n = p->out->numel, .low = bits_for(p->out->numel)};
    td_tensor *made = NULL, *entries = NULL, *start = NULL;
    td_status status = TD_OK;
    if (o.n <= FEW) {
        permute_few(&o);
        return TD_OK;
    }
    int inner = o.low > RUN_BITS ? RUN_BITS : o.low - 1;
    o.top = o.low - inner;
    TD_TRY(td_room(o.n, sizeof *o.made, &made));
    TD_TRY(td_room(o.n, sizeof *o.entries, &entries));
    TD_TRY(td_room(((int64_t)1 << o.top) + 1, sizeof *o.start, &start));
    o.made = made->data;
    o.entries = entries->data;
    o.start = start->data;
    status = permute(&o);
done:
    td_release(made);
    td_release(entries);
    td_release(start);
    return status;
}
