/* spatial_loops.h: windows over one to three dims, for one element type. Included by
 * spatial_kernels.c with these defined; undefines them:
 *   T, C, A   the type in memory; in which it is compared; in which it is summed
 *   GET, PUT  an element as a C, and back from a C
 *   ROUND     an element of an A
 *   FLOATS    whether gradients are taken (1 or 0)
 *   WORDS     1 where an element is the upper half of its C
 *   PLAIN     1 where the language's own conversions are the right ones
 */
#define CAT2(a, b) a##_##b
#define CAT1(a, b) CAT2(a, b)
#define NAME(name) CAT1(T, name)

#include "engine/cpu/spatial/spatial_channel_loops.h"

/* ---- sums ---- */

/* line = or += weight times a line of x. */
static inline void NAME(add_line)(A *restrict line, const T *restrict from, A weight, bool first,
                                  int64_t n) {
    if (first && weight == 1)
        for (int64_t c = 0; c < n; c++)
            line[c] = (A)GET(from[c]);
    else if (first)
        for (int64_t c = 0; c < n; c++)
            line[c] = weight * (A)GET(from[c]);
    else if (weight == 1)
        for (int64_t c = 0; c < n; c++)
            line[c] += (A)GET(from[c]);
    else
        for (int64_t c = 0; c < n; c++)
            line[c] += weight * (A)GET(from[c]);
}

/* line = the weighted sum of the lines that a row's taps of the first two dims meet. */
static void NAME(add_lines)(A *restrict line, const T *x, const td_taps *axis, int64_t inner,
                            int64_t i, int64_t j) {
    int64_t n = axis[2].in * inner;
    bool first = true;
    for (int64_t a = axis[0].begin[i]; a < axis[0].end[i]; a += axis[0].step)
        for (int64_t b = axis[1].begin[j]; b < axis[1].end[j]; b += axis[1].step) {
            A weight = (A)(td_tap_weight(&axis[0], i, a - axis[0].begin[i]) *
                           td_tap_weight(&axis[1], j, b - axis[1].begin[j]));
            NAME(add_line)(line, x + (a * axis[1].in + b) * n, weight, first, n);
            first = false;
        }
    for (int64_t c = 0; c < n && first; c++)
        line[c] = 0;
}

/* The sum of many, by eight sums side by side in every instruction set, in vectors that AVX2 has
 * as well: the compiler takes larger ones apart. */
static inline A NAME(sum_run)(const A *x, int64_t n) {
    typedef A lanes __attribute__((vector_size(4 * sizeof(A))));
    lanes low = {0}, high = {0}, some, more;
    A sums[8];
    int64_t k = 0;
    for (; k + 8 <= n; k += 8) {
        memcpy(&some, x + k, sizeof some);
        memcpy(&more, x + k + 4, sizeof more);
        low += some;
        high += more;
    }
    memcpy(sums, &low, sizeof low);
    memcpy(sums + 4, &high, sizeof high);
    for (; k < n; k++)
        sums[k % 8] += x[k];
    return ((sums[0] + sums[4]) + (sums[2] + sums[6])) +
           ((sums[1] + sums[5]) + (sums[3] + sums[7]));
}

/* A place of the result from the line with an element at every place. */
static inline A NAME(sum_place)(const A *line, const td_taps *last, int64_t k) {
    enum { LONG = 16 };
    int64_t begin = last->begin[k], end = last->end[k];
    A sum = 0;
    if (!last->weight && last->step == 1 && end - begin >= LONG)
        return NAME(sum_run)(line + begin, end - begin);
    for (int64_t t = begin; t < end; t += last->step)
        sum += line[t] * (A)td_tap_weight(last, k, t - begin);
    return sum;
}

/* All places that see few of a line, whose end holds a zero for taps that are missing. */
static void NAME(sum_few)(T *restrict y, A *restrict line, const td_taps *last, A by) {
    int64_t n = last->out;
    const int32_t *restrict at = last->near;
    const double *restrict share = last->share;
    line[last->in] = 0;
    if (last->few == 2)
        for (int64_t k = 0; k < n; k++) {
            A sum = line[at[k]] * (A)share[k];
            y[k] = ROUND((sum + line[at[n + k]] * (A)share[n + k]) / by);
        }
    else
        for (int64_t k = 0; k < n; k++) {
            A sum = line[at[k]] * (A)share[k];
            sum += line[at[n + k]] * (A)share[n + k];
            sum += line[at[2 * n + k]] * (A)share[2 * n + k];
            y[k] = ROUND((sum + line[at[3 * n + k]] * (A)share[3 * n + k]) / by);
        }
}

/* Sums of 2 x 2 side by side, or of 2 of a line alone. */
static void NAME(sum_pairs)(T *restrict y, const T *restrict upper, bool alone, int64_t wide, A by,
                            int64_t n) {
    const T *restrict lower = upper + wide;
    if (alone)
        for (int64_t k = 0; k < n; k++)
            y[k] = ROUND(((A)GET(upper[2 * k]) + (A)GET(upper[2 * k + 1])) / by);
    else
        for (int64_t k = 0; k < n; k++) {
            A left = (A)GET(upper[2 * k]) + (A)GET(lower[2 * k]);
            A right = (A)GET(upper[2 * k + 1]) + (A)GET(lower[2 * k + 1]);
            y[k] = ROUND((left + right) / by);
        }
}

static void NAME(sum)(void *to, const void *from, const td_taps *axis, int64_t inner,
                      double divisor, void *room, int64_t begin, int64_t end) {
    const td_taps *last = &axis[2];
    A *line = room;
    bool alone = axis[1].single_place;
    bool paired = inner == 1 && axis[0].single_place && (alone || axis[1].pairs) && last->pairs;
    bool windows = NAME(sums_windows)(last, inner);
    for (int64_t row = begin; row < end; row++) {
        int64_t i = row / axis[1].out, j = row % axis[1].out;
        double outer =
            divisor != 0 ? divisor : td_tap_divisor(&axis[0], i) * td_tap_divisor(&axis[1], j);
        T *y = (T *)to + row * last->out * inner;
        if (paired) {
            int64_t first = axis[0].begin[i] * axis[1].in + axis[1].begin[j];
            double by = divisor != 0 ? divisor : outer * td_tap_divisor(last, 0);
            NAME(sum_pairs)
            (y, (const T *)from + first * last->in, alone, last->in, (A)by, last->out);
            continue;
        }
        if (!windows)
            NAME(add_lines)(line, from, axis, inner, i, j);
        if (inner >= NAME(side))
            NAME(sum_wide)(y, windows ? NULL : line, from, axis, inner, i, j, outer, divisor);
        else if (inner > 1)
            NAME(sum_narrow)(y, line, line + last->in * inner, last, inner, outer, divisor);
        else if (last->few)
            NAME(sum_few)(y, line, last, (A)outer);
        else
            for (int64_t k = 0; k < last->out; k++) {
                A by = (A)(divisor != 0 ? divisor : outer * td_tap_divisor(last, k));
                y[k] = ROUND(NAME(sum_place)(line, last, k) / by);
            }
    }
}

#if FLOATS
/* How places that see one of a line follow one another. */
typedef struct NAME(steps) {
    int64_t each;     /* so many see the first, as many the second, and so on to the last; 0: no */
    int64_t from, to; /* the longest run of places that see one after the other */
} NAME(steps);

static NAME(steps) NAME(steps_of)(const td_taps *last) {
    NAME(steps) s = {.each = last->in ? last->out / last->in : 0};
    const int32_t *at = last->begin;
    if (!last->single_place)
        return s;
    for (int64_t k = 0; k < last->out && s.each; k++)
        if (last->out % last->in || at[k] != k / s.each)
            s.each = 0;
    for (int64_t begin = 0, end; begin < last->out; begin = end) {
        for (end = begin + 1; end < last->out && at[end] == at[end - 1] + 1;)
            end++;
        if (end - begin > s.to - s.from) {
            s.from = begin;
            s.to = end;
        }
    }
    return s;
}

/* What elements of y side by side give to the places that each sees one of, undivided or divided
 * alike. */
static void NAME(give_single)(A *restrict line, const T *restrict y, const td_taps *last,
                              const NAME(steps) * s, A weight) {
    const int32_t *at = last->begin;
    int64_t each = s->each;
    A *restrict run = line + at[s->from];
    if (each == 2) {
        for (int64_t t = 0; t < last->in; t++)
            line[t] = weight * (A)GET(y[2 * t]) + weight * (A)GET(y[2 * t + 1]);
        return;
    }
    for (int64_t t = 0; t < last->in && each > 0; t++, y += each) {
        A sum = 0;
        for (int64_t k = 0; k < each; k++)
            sum += weight * (A)GET(y[k]);
        line[t] = sum;
    }
    if (each > 0)
        return;
    for (int64_t k = 0; k < s->from; k++)
        line[at[k]] += weight * (A)GET(y[k]);
    for (int64_t k = s->from; k < s->to; k++)
        run[k - s->from] += weight * (A)GET(y[k]);
    for (int64_t k = s->to; k < last->out; k++)
        line[at[k]] += weight * (A)GET(y[k]);
}

/* To the few that they see, weighted; the line has a place more for those that are missing. */
static void NAME(give_few)(A *line, const T *y, const td_taps *last, A by) {
    int64_t n = last->out;
    line[last->in] = 0;
    for (int64_t k = 0; k < n; k++) {
        A v = (A)GET(y[k]);
        for (int64_t f = 0; f < last->few; f++)
            line[last->near[f * n + k]] += (A)last->share[f * n + k] / by * v;
    }
}

/* line = what a row of y gives to the places of the last dim. */
static void NAME(give_line)(A *line, const T *y, const td_taps *last, const NAME(steps) * steps,
                            int64_t inner, double outer, double divisor) {
    bool alike = inner == 1 && !last->weight && last->step == 1;
    for (int64_t c = 0; c < last->in * inner; c++)
        line[c] = 0;
    if (alike && last->single_place && last->out > 0 && (!last->divisor || divisor != 0)) {
        NAME(give_single)(line, y, last, steps, 1 / (A)(divisor != 0 ? divisor : outer));
        return;
    }
    if (inner == 1 && last->few && !last->divisor) {
        NAME(give_few)(line, y, last, (A)(divisor != 0 ? divisor : outer));
        return;
    }
    for (int64_t k = 0; k < last->out; k++, y += inner) {
        A by = (A)(divisor != 0 ? divisor : outer * td_tap_divisor(last, k));
        if (alike) {
            A v = 1 / by * (A)GET(*y);
            for (int64_t t = last->begin[k]; t < last->end[k]; t++)
                line[t] += v;
            continue;
        }
        for (int64_t t = last->begin[k]; t < last->end[k]; t += last->step) {
            A weight = (A)td_tap_weight(last, k, t - last->begin[k]) / by;
            for (int64_t c = 0; c < inner; c++)
                line[t * inner + c] += weight * (A)GET(y[c]);
        }
    }
}

static void NAME(spread)(void *to, const void *from, const td_taps *axis, int64_t inner,
                         double divisor, void *room) {
    int64_t n = axis[2].in * inner;
    const NAME(steps) steps = NAME(steps_of)(&axis[2]);
    A *line = room;
    for (int64_t row = 0; row < axis[0].out * axis[1].out; row++) {
        int64_t i = row / axis[1].out, j = row % axis[1].out;
        NAME(give_line)
        (line, (const T *)from + row * axis[2].out * inner, &axis[2], &steps, inner,
         td_tap_divisor(&axis[0], i) * td_tap_divisor(&axis[1], j), divisor);
        for (int64_t a = axis[0].begin[i]; a < axis[0].end[i]; a += axis[0].step)
            for (int64_t b = axis[1].begin[j]; b < axis[1].end[j]; b += axis[1].step) {
                T *restrict x = (T *)to + (a * axis[1].in + b) * n;
                A weight = (A)(td_tap_weight(&axis[0], i, a - axis[0].begin[i]) *
                               td_tap_weight(&axis[1], j, b - axis[1].begin[j]));
                for (int64_t c = 0; c < n; c++)
                    x[c] = ROUND((A)GET(x[c]) + weight * line[c]);
            }
    }
}

static void NAME(scatter)(void *to, const int64_t *places, const void *from, int64_t inner,
                          int64_t n) {
    const T *y = from;
    for (int64_t k = 0; k < n; k++)
        for (int64_t c = 0; c < inner; c++) {
            T *x = (T *)to + places[k * inner + c] * inner + c;
            *x = PUT(GET(*x) + GET(y[k * inner + c]));
        }
}
#endif

/* ---- maxima ---- */

/* The largest of one window with an element at every place. */
static void NAME(max_place)(T *y, int64_t *places, const T *x, const td_taps *axis, int64_t i,
                            int64_t j, int64_t k) {
    int64_t place =
        (axis[0].begin[i] * axis[1].in + axis[1].begin[j]) * axis[2].in + axis[2].begin[k];
    C best = GET(x[place]);
    for (int64_t a = axis[0].begin[i]; a < axis[0].end[i]; a += axis[0].step)
        for (int64_t b = axis[1].begin[j]; b < axis[1].end[j]; b += axis[1].step) {
            int64_t line = (a * axis[1].in + b) * axis[2].in;
            for (int64_t t = axis[2].begin[k]; t < axis[2].end[k]; t += axis[2].step) {
                C v = GET(x[line + t]);
                if (NAME(above)(v, best)) {
                    best = v;
                    place = line + t;
                }
            }
        }
    *y = x[place];
    if (places)
        *places = place;
}

/* y = the larger of y and x's elements `stride` apart, n of them; the first is at `place`, the next
 * `next` further. */
static inline void NAME(max_step)(T *restrict y, int64_t *restrict places, const T *restrict x,
                                  int64_t place, int64_t stride, int64_t next, int64_t n) {
    if (!places) {
        for (int64_t k = 0; k < n; k++)
            y[k] = NAME(above)(GET(x[k * stride]), GET(y[k])) ? x[k * stride] : y[k];
        return;
    }
    for (int64_t k = 0; k < n; k++) {
        bool more = NAME(above)(GET(x[k * stride]), GET(y[k]));
        y[k] = more ? x[k * stride] : y[k];
        places[k] = more ? place + k * next : places[k];
    }
}

/* The same, element by element at every place. */
static void NAME(max_places)(T *restrict y, int64_t *restrict places, const T *x,
                             const td_taps *axis, int64_t inner, int64_t i, int64_t j, int64_t k) {
    int64_t first =
        (axis[0].begin[i] * axis[1].in + axis[1].begin[j]) * axis[2].in + axis[2].begin[k];
    for (int64_t c = 0; c < inner; c++)
        y[c] = x[first * inner + c];
    for (int64_t c = 0; c < inner && places; c++)
        places[c] = first;
    for (int64_t a = axis[0].begin[i]; a < axis[0].end[i]; a += axis[0].step)
        for (int64_t b = axis[1].begin[j]; b < axis[1].end[j]; b += axis[1].step)
            for (int64_t t = axis[2].begin[k]; t < axis[2].end[k]; t += axis[2].step) {
                int64_t place = (a * axis[1].in + b) * axis[2].in + t;
                NAME(max_step)(y, places, x + place * inner, place, 1, 0, inner);
            }
}

/* The same into values as they are compared. */
static inline void NAME(max_values)(C *restrict most, int64_t *restrict places, const T *restrict x,
                                    int64_t place, int64_t stride, int64_t next, int64_t n) {
    if (!places) {
        for (int64_t k = 0; k < n; k++) {
            C v = GET(x[k * stride]);
            most[k] = NAME(above)(v, most[k]) ? v : most[k];
        }
        return;
    }
    for (int64_t k = 0; k < n; k++) {
        C v = GET(x[k * stride]);
        bool more = NAME(above)(v, most[k]);
        most[k] = more ? v : most[k];
        places[k] = more ? place + k * next : places[k];
    }
}

/* What a line gives to windows [begin, end) that slide: tap by tap, for the places that have it. */
static void NAME(max_line)(C *most, int64_t *places, const T *x, int64_t line, const td_taps *last,
                           int64_t begin, int64_t end) {
    int64_t s = last->stride;
    for (int64_t tap = 0; tap < last->kernel; tap++) {
        int64_t from = tap * last->step - last->padding, room = last->in - 1 - from;
        int64_t first = from < 0 ? (-from + s - 1) / s : 0;
        int64_t stop = room < 0 ? 0 : room / s + 1 < end ? room / s + 1 : end;
        first = first < begin ? begin : first;
        int64_t place = line + from + first * s, *there = places_from(places, first - begin);
        if (s == 1)
            NAME(max_values)(most + first - begin, there, x + place, place, 1, 1, stop - first);
        else if (s == 2)
            NAME(max_values)(most + first - begin, there, x + place, place, 2, 2, stop - first);
        else
            NAME(max_values)(most + first - begin, there, x + place, place, s, s, stop - first);
    }
}

/* A row of windows that slide with an element at every place. */
static void NAME(max_row)(T *y, int64_t *places, const T *x, const td_taps *axis, int64_t i,
                          int64_t j) {
    enum { BESIDE = 256 };
    C most[BESIDE];
    const td_taps *last = &axis[2];
    int64_t line = (axis[0].begin[i] * axis[1].in + axis[1].begin[j]) * last->in;
    for (int64_t from = 0; from < last->out; from += BESIDE) {
        int64_t to = last->out - from < BESIDE ? last->out : from + BESIDE;
        int64_t *there = places_from(places, from);
        for (int64_t k = from; k < to; k++)
            most[k - from] = GET(x[line + last->begin[k]]);
        for (int64_t k = from; k < to && places; k++)
            places[k] = line + last->begin[k];
        for (int64_t a = axis[0].begin[i]; a < axis[0].end[i]; a += axis[0].step)
            for (int64_t b = axis[1].begin[j]; b < axis[1].end[j]; b += axis[1].step)
                NAME(max_line)(most, there, x, (a * axis[1].in + b) * last->in, last, from, to);
        for (int64_t k = from; k < to; k++)
            y[k] = PUT(most[k - from]);
    }
}

/* Does v at `place` stand for a window that has best at `other`? The first of equals does, and the
 * last of those that are no number, as where a window is walked line by line. */
static inline bool NAME(stands)(C v, C best, int64_t place, int64_t other) {
#if FLOATS
    if (v != v || best != best)
        return v != v && (best == best || place > other);
#endif
    return v > best || (v == best && place < other);
}

/* A row of windows, an element at every place, that are several lines high: the lines' maxima side
 * by side, then those that each window is wide. */
static void NAME(max_folded)(T *y, int64_t *places, const T *x, const td_taps *axis, int64_t i,
                             int64_t j) {
    enum { FOLDED = 256 }; /* columns at a time */
    C most[FOLDED];
    int64_t where[FOLDED];
    const td_taps *last = &axis[2];
    for (int64_t k = 0, next; k < last->out; k = next) {
        int64_t from = last->begin[k], n = last->end[k] - from;
        for (next = k + 1; next < last->out && last->end[next] - from <= FOLDED; next++)
            n = last->end[next] - from;
        int64_t line = (axis[0].begin[i] * axis[1].in + axis[1].begin[j]) * last->in + from;
        for (int64_t c = 0; c < n; c++)
            most[c] = GET(x[line + c]);
        for (int64_t c = 0; c < n && places; c++)
            where[c] = line + c;
        for (int64_t a = axis[0].begin[i]; a < axis[0].end[i]; a++)
            for (int64_t b = axis[1].begin[j]; b < axis[1].end[j]; b++) {
                line = (a * axis[1].in + b) * last->in + from;
                NAME(max_values)(most, places ? where : NULL, x + line, line, 1, 1, n);
            }
        for (; k < next; k++) {
            int64_t best = last->begin[k] - from;
            for (int64_t c = best + 1; c < last->end[k] - from; c++) {
                C v = most[c], w = most[best];
                if (places ? NAME(stands)(v, w, where[c], where[best]) : NAME(above)(v, w))
                    best = c;
            }
            y[k] = PUT(most[best]);
            if (places)
                places[k] = where[best];
        }
    }
}

/* The largest of those of `most` that window k sees, from place `from` on, into y, which has room
 * for `room` elements. */
static inline void NAME(max_narrow)(T *y, const C *most, const td_taps *last, int64_t inner,
                                    int64_t from, int64_t k, int64_t room) {
    T few[NAME(most)];
    NAME(some) best, v;
    for (int64_t next = 0; next < inner; next += NAME(most)) {
        int64_t at = inner < NAME(most) ? 0 : next + NAME(most) > inner ? inner - NAME(most) : next;
        bool fits = room - at >= NAME(most);
        memcpy(&best, most + (last->begin[k] - from) * inner + at, sizeof best);
        for (int64_t t = last->begin[k] + last->step; t < last->end[k]; t += last->step) {
            memcpy(&v, most + (t - from) * inner + at, sizeof v);
            NAME(keep_larger)(&best, &v);
        }
        NAME(store_some)(fits ? y + at : few, &best);
        for (int64_t c = at; !fits && c < inner; c++)
            y[c] = few[c - at];
    }
}

/* A row of windows with few elements at every place, and no places wanted: the lines' maxima side
 * by side, then those that each window is wide. `room` as for max_wide. */
static void NAME(max_narrow_row)(T *y, const T *x, const td_taps *axis, int64_t inner, int64_t i,
                                 int64_t j, int64_t room) {
    C most[NARROW_ROW + NAME(most)];
    const td_taps *last = &axis[2];
    for (int64_t k = 0, next; k < last->out; k = next) {
        int64_t from = last->begin[k], n = last->end[k] - from;
        for (next = k + 1; next < last->out && (last->end[next] - from) * inner <= NARROW_ROW;
             next++)
            n = last->end[next] - from;
        for (int64_t c = 0; c < NAME(most); c++) /* what is read behind them */
            most[n * inner + c] = 0;
        int64_t line = (axis[0].begin[i] * axis[1].in + axis[1].begin[j]) * last->in + from;
        for (int64_t c = 0; c < n * inner; c++)
            most[c] = GET(x[line * inner + c]);
        for (int64_t a = axis[0].begin[i]; a < axis[0].end[i]; a += axis[0].step)
            for (int64_t b = axis[1].begin[j]; b < axis[1].end[j]; b += axis[1].step) {
                line = (a * axis[1].in + b) * last->in + from;
                NAME(max_values)(most, NULL, x + line * inner, 0, 1, 1, n * inner);
            }
        for (; k < next; k++)
            NAME(max_narrow)(y + k * inner, most, last, inner, from, k, room - k * inner);
    }
}

/* Does that pay? Whether it does must not depend on the instruction set: of zeros of both signs
 * another one is kept. */
static inline bool NAME(narrows)(const td_taps *last, int64_t inner) {
    bool fits = inner > 1 && inner < 8;
    for (int64_t k = 0; fits && k < last->out; k++)
        fits =
            (last->end[k] - last->begin[k]) * inner <= NARROW_ROW &&
            (k == 0 || (last->begin[k] >= last->begin[k - 1] && last->end[k] >= last->end[k - 1]));
    return fits;
}

/* Are a row's windows several lines high, each without gaps, and not too wide to be folded? */
static bool NAME(folds)(const td_taps *axis, int64_t i, int64_t j) {
    int64_t lines = (axis[0].end[i] - axis[0].begin[i]) * (axis[1].end[j] - axis[1].begin[j]);
    bool whole = axis[0].step == 1 && axis[1].step == 1 && axis[2].step == 1;
    for (int64_t k = 0; k < axis[2].out; k++)
        if (axis[2].end[k] - axis[2].begin[k] > 64)
            return false;
    return whole && lines > 1;
}

/* The largest of 2 x 2 side by side, `n` times: four loads and three comparisons, no branches. */
static void NAME(max_block)(T *restrict y, int64_t *restrict places, const T *restrict upper,
                            int64_t corner, int64_t wide, int64_t n) {
    const T *restrict lower = upper + wide;
    for (int64_t k = 0; k < n; k++) {
        T a = upper[2 * k], b = upper[2 * k + 1], c = lower[2 * k], d = lower[2 * k + 1];
        bool take_b = NAME(above)(GET(b), GET(a)), take_d = NAME(above)(GET(d), GET(c));
        T first = take_b ? b : a, second = take_d ? d : c;
        bool below = NAME(above)(GET(second), GET(first));
        y[k] = below ? second : first;
        if (places)
            places[k] = corner + 2 * k + (below ? wide + take_d : take_b);
    }
}

#if FLOATS
/* The elements at even and at odd places of 2 * n, as the block's values, and values that are
 * elements back. */
#ifdef WORDS /* an element is the upper half of its C, so that two are a word */
#define LOAD_PAIRS(n, p, even, odd)                                                                \
    do {                                                                                           \
        words w;                                                                                   \
        memcpy(&w, p, sizeof w);                                                                   \
        even = (values)(w << 16);                                                                  \
        odd = (values)(w >> 16 << 16);                                                             \
    } while (0)
#define STORE_VALUES(n, p, v)                                                                      \
    do {                                                                                           \
        halves h = __builtin_convertvector((words)(v) >> 16, halves);                              \
        memcpy(p, &h, sizeof h);                                                                   \
    } while (0)
#else
#define LOAD_PAIRS(n, p, even, odd)                                                                \
    for (int k = 0; k < n; k++) {                                                                  \
        even[k] = GET((p)[2 * k]);                                                                 \
        odd[k] = GET((p)[2 * k + 1]);                                                              \
    }
#define STORE_VALUES(n, p, v)                                                                      \
    for (int k = 0; k < n; k++)                                                                    \
        (p)[k] = PUT((v)[k]);
#endif

/* The same `n` times at once, which the compiler would do with branches. */
#define MAX_BLOCK(n)                                                                               \
    static inline void NAME(max_block##n)(T * y, int64_t * places, const T *upper, int64_t corner, \
                                          int64_t wide) {                                          \
        typedef C values __attribute__((vector_size(n * sizeof(C))));                              \
        typedef __typeof__((values){0} < (values){0}) mask;                                        \
        typedef int64_t whole __attribute__((vector_size(n * sizeof(int64_t))));                   \
        typedef uint32_t words __attribute__((vector_size(n * sizeof(uint32_t)), unused));         \
        typedef uint16_t halves __attribute__((vector_size(n * sizeof(uint16_t)), unused));        \
        values a, b, c, d;                                                                         \
        LOAD_PAIRS(n, upper, a, b);                                                                \
        LOAD_PAIRS(n, upper + wide, c, d);                                                         \
        mask take_b = (b > a) | (b != b), take_d = (d > c) | (d != d);                             \
        values first = (values)((take_b & (mask)b) | (~take_b & (mask)a));                         \
        values second = (values)((take_d & (mask)d) | (~take_d & (mask)c));                        \
        mask below = (second > first) | (second != second);                                        \
        values best = (values)((below & (mask)second) | (~below & (mask)first));                   \
        if (places) {                                                                              \
            whole place, right;                                                                    \
            for (int k = 0; k < n; k++)                                                            \
                place[k] = corner + 2 * k;                                                         \
            right = __builtin_convertvector((below & take_d) | (~below & take_b), whole);          \
            place += (__builtin_convertvector(below, whole) & wide) - right;                       \
            memcpy(places, &place, sizeof place);                                                  \
        }                                                                                          \
        STORE_VALUES(n, y, best);                                                                  \
    }
MAX_BLOCK(4)
MAX_BLOCK(8)
#undef MAX_BLOCK
#undef LOAD_PAIRS
#undef STORE_VALUES

/* A row in such blocks; the last begins so that it ends with the row, since rows are short and what
 * is left over would take longer than all before. */
static void NAME(max_pairs)(T *y, int64_t *places, const T *upper, int64_t corner, int64_t wide,
                            int64_t n) {
    /* Of eight that the set has vectors for: the compiler takes larger ones to pieces. */
    bool eight = n >= 8 && 8 * (places ? sizeof *places : sizeof(C)) <= TD_VBYTES;
    if (n < 4) {
        NAME(max_block)(y, places, upper, corner, wide, n);
        return;
    }
    for (int64_t k = 0; eight && k < n; k += 8) {
        int64_t at = k + 8 > n ? n - 8 : k;
        NAME(max_block8)(y + at, places_from(places, at), upper + 2 * at, corner + 2 * at, wide);
    }
    for (int64_t k = 0; !eight && k < n; k += 4) {
        int64_t at = k + 4 > n ? n - 4 : k;
        NAME(max_block4)(y + at, places_from(places, at), upper + 2 * at, corner + 2 * at, wide);
    }
}
#else
static void NAME(max_pairs)(T *y, int64_t *places, const T *upper, int64_t corner, int64_t wide,
                            int64_t n) {
    NAME(max_block)(y, places, upper, corner, wide, n);
}
#endif

static void NAME(max)(void *to, int64_t *places, const void *from, const td_taps *axis,
                      int64_t inner, int64_t begin, int64_t end) {
    bool lines = axis[1].pairs, alone = axis[1].single;
    bool paired = inner == 1 && axis[0].single && (lines || alone) && axis[2].pairs;
    bool along = !places && axis[2].step == 1, narrow = !places && NAME(narrows)(&axis[2], inner);
    int64_t wide = lines ? axis[2].in : 0; /* a line alone is above and below */
    for (int64_t row = begin; row < end; row++) {
        int64_t i = row / axis[1].out, j = row % axis[1].out;
        if (paired) {
            int64_t corner = (axis[0].begin[i] * axis[1].in + axis[1].begin[j]) * axis[2].in;
            int64_t at = row * axis[2].out;
            NAME(max_pairs)
            ((T *)to + at, places_from(places, at), (const T *)from + corner, corner, wide,
             axis[2].out);
            continue;
        }
        if (inner == 1 && axis[2].stride) {
            int64_t at = row * axis[2].out;
            NAME(max_row)((T *)to + at, places_from(places, at), from, axis, i, j);
            continue;
        }
        if (inner == 1 && NAME(folds)(axis, i, j)) {
            int64_t at = row * axis[2].out;
            NAME(max_folded)((T *)to + at, places_from(places, at), from, axis, i, j);
            continue;
        }
        if (narrow) {
            int64_t at = row * axis[2].out * inner;
            NAME(max_narrow_row)
            ((T *)to + at, from, axis, inner, i, j, end * axis[2].out * inner - at);
            continue;
        }
        for (int64_t k = 0; k < axis[2].out; k++) {
            int64_t at = (row * axis[2].out + k) * inner;
            if (inner == 1 && along && axis[2].end[k] - axis[2].begin[k] >= NAME(most))
                ((T *)to)[at] = PUT(NAME(max_along)(from, axis, i, j, k));
            else if (inner == 1)
                NAME(max_place)((T *)to + at, places_from(places, at), from, axis, i, j, k);
            else if (NAME(fits_vectors)(axis, inner, i, j, k))
                NAME(max_wide)
            ((T *)to + at, places_from(places, at), from, axis, inner, i, j, k,
             end * axis[2].out * inner - at);
            else NAME(max_places)((T *)to + at, places_from(places, at), from, axis, inner, i, j,
                                  k);
        }
    }
}

static const td_spatial_functions NAME(spatial) = {
    .max = NAME(max),
    .sum = NAME(sum),
#if FLOATS
    .spread = NAME(spread),
    .scatter = NAME(scatter),
#endif
};

#undef NAME
#undef CAT1
#undef CAT2
#undef T
#undef C
#undef A
#undef GET
#undef PUT
#undef ROUND
#undef FLOATS
#undef WORDS
#undef PLAIN
#undef SINGLE
#undef WIDENED
#undef NARROWED
