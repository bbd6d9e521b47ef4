/* keyed_places_loops.h: the functions of td_entries for a type of entries. Included once for each
 * by keyed_places.c with E (the type), HALF (its upper bits, which are the key) and SUFFIX (a name)
 * defined; undefines them. */
#define CAT2(a, b) a##_##b
#define CAT1(a, b) CAT2(a, b)
#define NAME(a)    CAT1(a, SUFFIX)

static void NAME(load)(void *to, const uint64_t *keys, int64_t first, int64_t n) {
    E *e = to;
    for (int64_t k = 0; k < n; k++)
        e[k] = (E)keys[k] << HALF | (E)(first + k);
}

static void NAME(join)(void *to, const uint64_t *keys, const int64_t *places, int64_t n) {
    E *e = to;
    for (int64_t k = 0; k < n; k++)
        e[k] = (E)keys[k] << HALF | (E)places[k];
}

static void NAME(unload)(const void *from, int64_t n, uint64_t *keys, int64_t *places) {
    const E *e = from;
    for (int64_t k = 0; k < n; k++) {
        keys[k] = (uint64_t)(e[k] >> HALF);
        places[k] = (int64_t)(e[k] & (E)(~(uint64_t)0 >> (64 - HALF)));
    }
}

static void NAME(insertion_sort)(E *e, int64_t n) {
    for (int64_t k = 1; k < n; k++) {
        E moved = e[k];
        int64_t to = k;
        for (; to > 0 && e[to - 1] > moved; to--)
            e[to] = e[to - 1];
        e[to] = moved;
    }
}

/* sort for fewer than 256, whose counts are bytes. */
static void *NAME(sort_few)(void *entries, void *room, int64_t n, int first, int last) {
    uint8_t counts[2 * HALF / 8][256];
    E *from = entries, *to = room;
    memset(counts[first], 0, sizeof counts[0] * (size_t)(last - first));
    for (int64_t k = 0; k < n; k++)
        for (int b = first; b < last; b++)
            counts[b][(uint8_t)(from[k] >> (8 * b))]++;
    for (int b = first; b < last; b++) {
        uint8_t *at = counts[b];
        if (at[(uint8_t)(from[0] >> (8 * b))] == n)
            continue;
        td_begin_bytes(at, 256);
        for (int64_t k = 0; k < n; k++)
            to[at[(uint8_t)(from[k] >> (8 * b))]++] = from[k];
        E *other = from;
        from = to;
        to = other;
    }
    return from;
}

/* By bytes, the lowest first; a byte that all share is left out, as is the place where entries
 * stand in its order. */
static void *NAME(sort)(void *entries, void *room, int64_t n, int bits, bool placed) {
    uint32_t counts[2 * HALF / 8][256];
    E *from = entries, *to = room;
    int first = placed ? HALF / 8 : 0, last = (HALF + bits + 7) / 8;
    if (n <= 16 + bits / 2) {
        NAME(insertion_sort)(from, n);
        return from;
    }
    if (n < 256)
        return NAME(sort_few)(entries, room, n, first, last);
    memset(counts[first], 0, sizeof counts[0] * (size_t)(last - first));
    for (int64_t k = 0; k < n; k++)
        for (int b = first; b < last; b++)
            counts[b][(uint8_t)(from[k] >> (8 * b))]++;
    for (int b = first; b < last; b++) {
        uint32_t *at = counts[b], sum = 0;
        if (at[(uint8_t)(from[0] >> (8 * b))] == n)
            continue;
        for (int d = 0; d < 256; d++) {
            uint32_t count = at[d];
            at[d] = sum;
            sum += count;
        }
        for (int64_t k = 0; k < n; k++)
            to[at[(uint8_t)(from[k] >> (8 * b))]++] = from[k];
        E *other = from;
        from = to;
        to = other;
    }
    return from;
}

/* Which of three places holds the middle one of their entries. */
static int64_t NAME(middle)(const E *e, int64_t a, int64_t b, int64_t c) {
    if (e[a] > e[b]) {
        int64_t other = a;
        a = b;
        b = other;
    }
    return e[c] < e[a] ? a : e[c] > e[b] ? b : c;
}

/* Entries [low, high] to both sides of the one at `pivot`, whose place then is the result. No
 * branch waits for an entry: those are as random as the entries. */
static int64_t NAME(divide)(E *e, int64_t low, int64_t high, int64_t pivot) {
    E middle = e[pivot];
    int64_t to = low;
    e[pivot] = e[high];
    for (int64_t k = low; k < high; k++) {
        E moved = e[k];
        e[k] = e[to];
        e[to] = moved;
        to += moved < middle;
    }
    e[high] = e[to];
    e[to] = middle;
    return to;
}

/* Pivots from places that no input can foresee to be bad ones. */
static void NAME(part)(void *entries, int64_t n, int64_t k) {
    E *e = entries;
    int64_t low = 0, high = n - 1;
    uint64_t draw = 0x9E3779B97F4A7C15u;
    while (high - low > 12) {
        uint64_t span = (uint64_t)(high - low + 1);
        int64_t picked[3];
        for (int j = 0; j < 3; j++) {
            draw = draw * 6364136223846793005u + 1442695040888963407u;
            picked[j] = low + (int64_t)(((unsigned __int128)draw * span) >> 64);
        }
        int64_t at = NAME(divide)(e, low, high, NAME(middle)(e, picked[0], picked[1], picked[2]));
        if (k < at)
            high = at - 1;
        else if (k > at)
            low = at + 1;
        else
            return;
    }
    NAME(insertion_sort)(e + low, high - low + 1);
}

static void NAME(count)(const void *from, int64_t n, int shift, int64_t *counts) {
    const E *e = from;
    for (int64_t k = 0; k < n; k++)
        counts[(uint64_t)(e[k] >> (HALF + shift)) & (TD_DIGITS - 1)]++;
}

static void NAME(deal)(const void *from, int64_t n, int shift, int64_t *at, void *room) {
    const E *e = from;
    E *to = room;
    for (int64_t k = 0; k < n; k++)
        to[at[(uint64_t)(e[k] >> (HALF + shift)) & (TD_DIGITS - 1)]++] = e[k];
}

const td_entries NAME(td) = {
    .size = sizeof(E),
    .load = NAME(load),
    .join = NAME(join),
    .unload = NAME(unload),
    .sort = NAME(sort),
    .part = NAME(part),
    .count = NAME(count),
    .deal = NAME(deal),
};

#undef NAME
#undef CAT1
#undef CAT2
#undef E
#undef HALF
#undef SUFFIX
