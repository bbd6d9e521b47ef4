/* spatial_channel_loops.h: windows over places that hold several elements each, for one element
 * type. Included by spatial_kernels.c with what spatial_loops.h needs. As many elements of a place
 * as a vector of the set has sums, or four times as many, stay in registers while their window is
 * walked; the last of them begin so that they end with the place. (Vectors that the set has not the
 * compiler takes to pieces.) In every instruction set an element is summed tap by tap. */

/* A block's number of vectors must be known where it is walked. */
#define ALWAYS inline __attribute__((always_inline))

enum {
    NAME(side) = TD_VBYTES / sizeof(A), /* sums */
    NAME(sides) = 4,
    NAME(most) = TD_VBYTES / sizeof(C) < 8 ? TD_VBYTES / sizeof(C) : 8 /* maxima */
};

typedef C NAME(addends) __attribute__((vector_size(NAME(side) * sizeof(C))));
typedef A NAME(totals) __attribute__((vector_size(NAME(side) * sizeof(A))));
typedef C NAME(some) __attribute__((vector_size(NAME(most) * sizeof(C))));
typedef __typeof__((NAME(some)){0} < (NAME(some)){0}) NAME(choice);
/* Places, as wide as what is compared. */
typedef __typeof__(__builtin_choose_expr(sizeof(C) == 8, (int64_t)0, (int32_t)0)) NAME(index);
typedef NAME(index) NAME(indices) __attribute__((vector_size(NAME(most) * sizeof(C))));

#ifdef PLAIN
#define LOAD_ELEMENTS(n, type)                                                                     \
    typedef T elements __attribute__((vector_size(n * sizeof(T))));                                \
    elements e;                                                                                    \
    memcpy(&e, from, sizeof e);                                                                    \
    *v = __builtin_convertvector(e, type);
#elif defined WORDS
#define LOAD_ELEMENTS(n, type)                                                                     \
    typedef uint16_t elements __attribute__((vector_size(n * sizeof(uint16_t))));                  \
    typedef uint32_t words __attribute__((vector_size(n * sizeof(uint32_t))));                     \
    elements e;                                                                                    \
    memcpy(&e, from, sizeof e);                                                                    \
    *v = (type)(__builtin_convertvector(e, words) << 16);
#else
#define LOAD_ELEMENTS(n, type)                                                                     \
    type each = {0};                                                                               \
    for (int c = 0; c < n; c++)                                                                    \
        each[c] = GET(from[c]);                                                                    \
    *v = each;
#endif

static inline void NAME(load_addends)(NAME(addends) * v, const T *from) {
    LOAD_ELEMENTS(NAME(side), NAME(addends))
}
static inline void NAME(load_some)(NAME(some) * v, const T *from) {
    LOAD_ELEMENTS(NAME(most), NAME(some))
}
#undef LOAD_ELEMENTS

/* (The compiler widens floats by halves of a vector.) */
#ifdef SINGLE
#define WIDENED(v)     (NAME(totals)) vd_of_floats((vf_half)(v))
#define NARROWED(v, t) (t) vd_to_floats((vd)(v))
#else
#define WIDENED(v)     __builtin_convertvector(v, NAME(totals))
#define NARROWED(v, t) __builtin_convertvector(v, t)
#endif

/* sums += weight times elements. */
static inline void NAME(add_some)(NAME(totals) * sums, A weight, const T *from) {
    NAME(addends) v;
    NAME(load_addends)(&v, from);
    *sums += weight * WIDENED(v);
}

/* What sums are divided by. Where it is a power of two its inverse gives the same, much sooner. */
typedef struct NAME(share_of) {
    A by, inverse; /* inverse: 0 where they are divided */
} NAME(share_of);

static inline void NAME(set_share)(NAME(share_of) * s, A by) {
    if (s->by == by)
        return;
    s->by = by;
    s->inverse = 0;
#if FLOATS
    int exponent;
    if (frexp(by, &exponent) == 0.5)
        s->inverse = 1 / by;
#endif
}

static inline void NAME(store_totals)(T *to, const NAME(totals) * from,
                                      const NAME(share_of) * share) {
    NAME(totals) sums = *from;
    if (share->inverse != 0)
        sums *= share->inverse;
    else if (share->by != 1)
        sums /= share->by;
#ifdef PLAIN
    typedef T elements __attribute__((vector_size(NAME(side) * sizeof(T))));
    elements e = NARROWED(sums, elements);
    memcpy(to, &e, sizeof e);
#else
    for (int c = 0; c < NAME(side); c++)
        to[c] = ROUND(sums[c]);
#endif
}

static inline void NAME(store_some)(T *to, const NAME(some) * v) {
#ifdef PLAIN
    typedef T elements __attribute__((vector_size(NAME(most) * sizeof(T))));
    elements e = __builtin_convertvector(*v, elements);
    memcpy(to, &e, sizeof e);
#elif defined WORDS
    typedef uint16_t elements __attribute__((vector_size(NAME(most) * sizeof(uint16_t))));
    typedef uint32_t words __attribute__((vector_size(NAME(most) * sizeof(uint32_t))));
    elements e = __builtin_convertvector((words)*v >> 16, elements);
    memcpy(to, &e, sizeof e);
#else
    for (int c = 0; c < NAME(most); c++)
        to[c] = PUT((*v)[c]);
#endif
}

/* Where the block behind `at` begins, and of how many vectors of `side` it is; there are elements
 * for one. */
static inline int64_t NAME(next_block)(int64_t at, int64_t inner, int64_t side, int *sides) {
    int64_t left = inner - at;
    *sides = left >= side * NAME(sides) ? NAME(sides) : left >= 2 * side ? 2 : 1;
    return inner - at < side ? inner - side : at;
}

/* ---- sums ---- */

/* A block of one place of y, from sums of every place of the line. */
static ALWAYS void NAME(sum_totals)(T *y, const A *line, const td_taps *last, int64_t inner,
                                    int64_t k, const NAME(share_of) * share, const int sides) {
    NAME(totals) sums[NAME(sides)] = {{0}}, v;
    for (int64_t t = last->begin[k]; t < last->end[k]; t += last->step) {
        A weight = (A)td_tap_weight(last, k, t - last->begin[k]);
        for (int s = 0; s < sides; s++) {
            memcpy(&v, line + t * inner + s * NAME(side), sizeof v);
            sums[s] += weight * v;
        }
    }
    for (int s = 0; s < sides; s++)
        NAME(store_totals)(y + s * NAME(side), &sums[s], share);
}

/* The same where a place sees two at most; behind the line lies a place of zeros. */
static ALWAYS void NAME(sum_two)(T *y, const A *line, const td_taps *last, int64_t inner, int64_t k,
                                 const NAME(share_of) * share, const int sides) {
    const A *first = line + last->near[k] * inner;
    const A *second = line + last->near[last->out + k] * inner;
    A left = (A)last->share[k], right = (A)last->share[last->out + k];
    for (int s = 0; s < sides; s++) {
        NAME(totals) sums, v;
        memcpy(&sums, first + s * NAME(side), sizeof v);
        memcpy(&v, second + s * NAME(side), sizeof v);
        sums = sums * left + v * right;
        NAME(store_totals)(y + s * NAME(side), &sums, share);
    }
}

/* The same of elements of one line without weights. */
static ALWAYS void NAME(sum_run_beside)(T *y, const T *from, int64_t apart, int64_t taps,
                                        const NAME(share_of) * share, const int sides) {
    NAME(totals) sums[NAME(sides)] = {{0}};
    NAME(addends) v;
    for (; taps > 0; taps--, from += apart)
        for (int s = 0; s < sides; s++) {
            NAME(load_addends)(&v, from + s * NAME(side));
            sums[s] += WIDENED(v);
        }
    for (int s = 0; s < sides; s++)
        NAME(store_totals)(y + s * NAME(side), &sums[s], share);
}

/* The same of a window without weights. */
static ALWAYS void NAME(sum_plain)(T *y, const T *x, const td_taps *axis, int64_t inner,
                                   const int64_t place[TD_SPATIAL], const NAME(share_of) * share,
                                   const int sides) {
    const td_taps *up = &axis[0], *mid = &axis[1], *last = &axis[2];
    int64_t i = place[0], j = place[1], k = place[2], line = last->in * inner;
    int64_t down = mid->step * line, back = up->step * mid->in * line;
    int64_t rows = (mid->end[j] - mid->begin[j] + mid->step - 1) / mid->step;
    NAME(totals) sums[NAME(sides)] = {{0}};
    NAME(addends) e;
    x += (up->begin[i] * mid->in + mid->begin[j]) * line;
    for (int64_t t = last->begin[k]; t < last->end[k]; t += last->step) {
        NAME(totals) v[NAME(sides)] = {{0}};
        const T *plane = x + t * inner;
        for (int64_t a = up->begin[i]; a < up->end[i]; a += up->step, plane += back) {
            const T *from = plane;
            for (int64_t b = 0; b < rows; b++, from += down)
                for (int s = 0; s < sides; s++) {
                    NAME(load_addends)(&e, from + s * NAME(side));
                    v[s] += WIDENED(e);
                }
        }
        for (int s = 0; s < sides; s++)
            sums[s] += v[s];
    }
    for (int s = 0; s < sides; s++)
        NAME(store_totals)(y + s * NAME(side), &sums[s], share);
}

/* The same from the elements themselves. */
static ALWAYS void NAME(sum_window)(T *y, const T *x, const td_taps *axis, int64_t inner,
                                    const int64_t place[TD_SPATIAL], const NAME(share_of) * share,
                                    const int sides) {
    const td_taps *up = &axis[0], *mid = &axis[1], *last = &axis[2];
    int64_t i = place[0], j = place[1], k = place[2];
    if (up->single_place && mid->single_place && !last->weight) {
        int64_t line = up->begin[i] * mid->in + mid->begin[j], begin = last->begin[k];
        NAME(sum_run_beside)
        (y, x + (line * last->in + begin) * inner, last->step * inner,
         (last->end[k] - begin + last->step - 1) / last->step, share, sides);
        return;
    }
    if (!up->weight && !mid->weight && !last->weight) {
        NAME(sum_plain)(y, x, axis, inner, place, share, sides);
        return;
    }
    NAME(totals) sums[NAME(sides)] = {{0}};
    for (int64_t t = last->begin[k]; t < last->end[k]; t += last->step) {
        NAME(totals) v[NAME(sides)] = {{0}};
        for (int64_t a = up->begin[i]; a < up->end[i]; a += up->step)
            for (int64_t b = mid->begin[j]; b < mid->end[j]; b += mid->step) {
                const T *from = x + ((a * mid->in + b) * last->in + t) * inner;
                A weight = (A)(td_tap_weight(up, i, a - up->begin[i]) *
                               td_tap_weight(mid, j, b - mid->begin[j]));
                for (int s = 0; s < sides; s++)
                    NAME(add_some)(&v[s], weight, from + s * NAME(side));
            }
        A weight = (A)td_tap_weight(last, k, t - last->begin[k]);
        for (int s = 0; s < sides; s++)
            sums[s] += weight * v[s];
    }
    for (int s = 0; s < sides; s++)
        NAME(store_totals)(y + s * NAME(side), &sums[s], share);
}

/* Is an element of a line seen so seldom that windows are summed one by one? */
static inline bool NAME(sums_windows)(const td_taps *last, int64_t inner) {
    int64_t taps = 0;
    for (int64_t k = 0; k < last->out && inner >= NAME(side); k++)
        taps += (last->end[k] - last->begin[k] + last->step - 1) / last->step;
    return inner >= NAME(side) && taps <= 2 * last->in;
}

/* A row of y, with few elements at every place. */
static void NAME(sum_narrow)(T *y, const A *line, A *sums, const td_taps *last, int64_t inner,
                             double outer, double divisor) {
    for (int64_t k = 0; k < last->out; k++, y += inner) {
        A by = (A)(divisor != 0 ? divisor : outer * td_tap_divisor(last, k));
        for (int64_t c = 0; c < inner; c++)
            sums[c] = 0;
        for (int64_t t = last->begin[k]; t < last->end[k]; t += last->step) {
            A weight = (A)td_tap_weight(last, k, t - last->begin[k]);
            const A *restrict at = line + t * inner;
            for (int64_t c = 0; c < inner; c++)
                sums[c] += weight * at[c];
        }
        for (int64_t c = 0; c < inner; c++)
            y[c] = ROUND(sums[c] / by);
    }
}

/* A block of a row: from the line, or from x where there is none. */
static ALWAYS void NAME(sum_block)(T *y, const A *line, const T *x, const td_taps *axis,
                                   int64_t inner, const int64_t place[TD_SPATIAL],
                                   const NAME(share_of) * share, const int sides) {
    if (!line)
        NAME(sum_window)(y, x, axis, inner, place, share, sides);
    else
        NAME(sum_totals)(y, line, &axis[2], inner, place[2], share, sides);
}

/* A row of y from a line of which every place sees two at most. */
static void NAME(sum_pairs_wide)(T *y, const A *line, const td_taps *last, int64_t inner, A by) {
    NAME(share_of) share = {0, 0};
    NAME(set_share)(&share, by);
    for (int64_t k = 0; k < last->out; k++, y += inner)
        for (int64_t next = 0; next < inner; next += NAME(side)) {
            int64_t at = next + NAME(side) > inner ? inner - NAME(side) : next;
            NAME(sum_two)(y + at, line + at, last, inner, k, &share, 1);
        }
}

/* A row of y with so many elements or more at every place. */
static void NAME(sum_wide)(T *y, A *line, const T *x, const td_taps *axis, int64_t inner, int64_t i,
                           int64_t j, double outer, double divisor) {
    const td_taps *last = &axis[2];
    NAME(share_of) share = {0, 0};
    for (int64_t c = 0; c < inner && line; c++)
        line[last->in * inner + c] = 0;
    if (line && last->few == 2 && !last->divisor) {
        NAME(sum_pairs_wide)(y, line, last, inner, (A)(divisor != 0 ? divisor : outer));
        return;
    }
    for (int64_t k = 0; k < last->out; k++, y += inner) {
        const int64_t place[TD_SPATIAL] = {i, j, k};
        int sides;
        NAME(set_share)(&share, (A)(divisor != 0 ? divisor : outer * td_tap_divisor(last, k)));
        for (int64_t next = 0; next < inner; next += sides * NAME(side)) {
            int64_t at = NAME(next_block)(next, inner, NAME(side), &sides);
            const A *beside = line ? line + at : NULL;
            if (sides == 1)
                NAME(sum_block)(y + at, beside, x + at, axis, inner, place, &share, 1);
            else if (sides == 2)
                NAME(sum_block)(y + at, beside, x + at, axis, inner, place, &share, 2);
            else
                NAME(sum_block)(y + at, beside, x + at, axis, inner, place, &share, NAME(sides));
        }
    }
}

/* ---- maxima ---- */

static inline bool NAME(above)(C v, C best) {
#if FLOATS
    return v > best || v != v;
#else
    return v > best;
#endif
}

/* Which of several are larger, or no number. */
static inline NAME(choice) NAME(which_above)(const NAME(some) * v, const NAME(some) * best) {
    NAME(choice) more = *v > *best;
#if FLOATS
    more |= *v != *v;
#endif
    return more;
}

/* The same of several: the larger, or the one that is no number. */
static inline void NAME(keep_larger)(NAME(some) * best, const NAME(some) * v) {
    NAME(choice) more = NAME(which_above)(v, best);
    *best = (NAME(some))((more & (NAME(choice)) * v) | (~more & (NAME(choice)) * best));
}

/* A block of the largest of one window, and where they are unless `places` is NULL; of a place with
 * fewer elements than a vector has, `n`, the rest is what lies behind it. */
static ALWAYS void NAME(max_window)(T *y, int64_t *places, const T *x, const td_taps *axis,
                                    int64_t inner, const int64_t place[TD_SPATIAL], const int sides,
                                    const int n) {
    const td_taps *up = &axis[0], *mid = &axis[1], *last = &axis[2];
    int64_t i = place[0], j = place[1], k = place[2];
    int64_t first = (up->begin[i] * mid->in + mid->begin[j]) * last->in + last->begin[k];
    NAME(some) best[NAME(sides)], v;
    NAME(indices) where[NAME(sides)], none = {0};
    for (int s = 0; s < sides; s++) {
        NAME(load_some)(&best[s], x + first * inner + s * NAME(most));
        where[s] = none + (NAME(index))first;
    }
    for (int64_t a = up->begin[i]; a < up->end[i]; a += up->step)
        for (int64_t b = mid->begin[j]; b < mid->end[j]; b += mid->step)
            for (int64_t t = last->begin[k]; t < last->end[k]; t += last->step) {
                int64_t at = (a * mid->in + b) * last->in + t;
                const T *from = x + at * inner;
                for (int s = 0; s < sides; s++) {
                    NAME(load_some)(&v, from + s * NAME(most));
                    if (places) {
                        NAME(indices) more = (NAME(indices))NAME(which_above)(&v, &best[s]);
                        where[s] = (more & (none + (NAME(index))at)) | (~more & where[s]);
                    }
                    NAME(keep_larger)(&best[s], &v);
                }
            }
    T few[NAME(most)], *to = n < NAME(most) ? few : y;
    for (int s = 0; s < sides; s++)
        NAME(store_some)(to + s * NAME(most), &best[s]);
    for (int c = 0; to != y && c < n; c++)
        y[c] = few[c];
    for (int s = 0; s < sides && places; s++) {
        NAME(index) in_order[NAME(most)];
        memcpy(in_order, &where[s], sizeof in_order);
        for (int c = 0; c < n; c++)
            places[s * NAME(most) + c] = in_order[c];
    }
}

/* Do places and what lies behind them for a vector fit into the volume, and places into where they
 * are kept? */
static inline bool NAME(fits_vectors)(const td_taps *axis, int64_t inner, int64_t i, int64_t j,
                                      int64_t k) {
    int64_t last =
        ((axis[0].end[i] - 1) * axis[1].in + axis[1].end[j] - 1) * axis[2].in + axis[2].end[k] - 1;
    int64_t all = axis[0].in * axis[1].in * axis[2].in;
    return all <= INT32_MAX && (inner >= NAME(most) || last * inner + NAME(most) <= all * inner);
}

/* The largest of a window with several elements at every place, and where they are unless `places`
 * is NULL. There is room for `room` elements, of which windows to come write those behind. */
static void NAME(max_wide)(T *y, int64_t *places, const T *x, const td_taps *axis, int64_t inner,
                           int64_t i, int64_t j, int64_t k, int64_t room) {
    const int64_t place[TD_SPATIAL] = {i, j, k};
    int sides;
    if (inner < NAME(most) && room < NAME(most)) {
        NAME(max_window)(y, places, x, axis, inner, place, 1, (int)inner);
        return;
    }
    if (inner < NAME(most)) {
        NAME(max_window)(y, places, x, axis, inner, place, 1, NAME(most));
        return;
    }
    for (int64_t next = 0; next < inner; next += sides * NAME(most)) {
        int64_t at = NAME(next_block)(next, inner, NAME(most), &sides);
        int64_t *there = places ? places + at : NULL;
        if (sides == 1)
            NAME(max_window)(y + at, there, x + at, axis, inner, place, 1, NAME(most));
        else if (sides == 2)
            NAME(max_window)(y + at, there, x + at, axis, inner, place, 2, NAME(most));
        else
            NAME(max_window)(y + at, there, x + at, axis, inner, place, NAME(sides), NAME(most));
    }
}

/* The largest of a window of so many or more along the last dim, one element at every place. */
static C NAME(max_along)(const T *x, const td_taps *axis, int64_t i, int64_t j, int64_t k) {
    const td_taps *up = &axis[0], *mid = &axis[1], *last = &axis[2];
    int64_t n = last->end[k] - last->begin[k];
    const T *line = x + (up->begin[i] * mid->in + mid->begin[j]) * last->in + last->begin[k];
    NAME(some) best[NAME(sides)], v;
    for (int s = 0; s < NAME(sides); s++)
        NAME(load_some)(&best[s], line);
    for (int64_t a = up->begin[i]; a < up->end[i]; a += up->step)
        for (int64_t b = mid->begin[j]; b < mid->end[j]; b += mid->step) {
            line = x + (a * mid->in + b) * last->in + last->begin[k];
            for (int64_t t = 0; t < n; t += NAME(most) * NAME(sides))
                for (int s = 0; s < NAME(sides); s++) {
                    int64_t at = t + s * NAME(most);
                    NAME(load_some)(&v, line + (at > n - NAME(most) ? n - NAME(most) : at));
                    NAME(keep_larger)(&best[s], &v);
                }
        }
    for (int s = 1; s < NAME(sides); s++)
        NAME(keep_larger)(&best[0], &best[s]);
    C most = best[0][0];
    for (int c = 1; c < NAME(most); c++)
        most = NAME(above)(best[0][c], most) ? best[0][c] : most;
    return most;
}
#undef ALWAYS
