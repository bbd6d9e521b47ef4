/* grid_loops.h: what the places of a grid see of an image or a volume, worked out once for all
 * channels and a block of places at a time. Included by grid_kernels.c with these defined;
 * undefines them:
 *   T, I, P    an element, an integer of its size, a place of a channel
 *   NAME       a name of this type's own
 *   FLOOR, RINT, ABS, FMOD   of T
 *   ALL_WHOLE  from here on every T is a whole number
 *   V, LANES, GATHER   a vector of T, how many it takes, and how; LANES of 0: one by one
 *   PAIRS, ALL_INSIDE  elements and those behind them, and whether all of two vectors' lanes are
 *              inside
 */

/* Along each dim. */
typedef struct NAME(axis) {
    T weight[ALONG][BLOCK], steeper[ALONG][BLOCK]; /* steeper: by one derivative more */
    P place[ALONG][BLOCK];                         /* times the dim's stride; outside: 0 */
    I inside[ALONG][BLOCK];                        /* -1 or 0 */
} NAME(axis);

/* Along all: every tap of every place. */
typedef struct NAME(block) {
    int taps;
    T share[SHARES][BLOCK];
    P at[TAPS][BLOCK];
    I inside[TAPS][BLOCK];
} NAME(block);

/* ---- along a dim ---- */

/* From [-1, 1] to places: the corners are the centres of corner elements, or their outer edges. */
static inline T NAME(scale)(const td_grid_plan *p, int d) {
    double size = (double)p->in[d];
    return (T)((p->aligned ? size - 1 : size) / 2);
}

static void NAME(unnormalise)(const td_grid_plan *p, int d, const T *restrict grid, int64_t n,
                              T *restrict at) {
    T scale = NAME(scale)(p, d), shift = (T)(p->aligned ? 0 : 0.5);
    grid += p->n - 1 - d;
    if (p->n == 2)
        for (int64_t k = 0; k < n; k++)
            at[k] = (grid[k * 2] + 1) * scale - shift;
    else
        for (int64_t k = 0; k < n; k++)
            at[k] = (grid[k * 3] + 1) * scale - shift;
}

/* Places so far out that there are no fractions any more, some reflections nearer. */
static void NAME(come_nearer)(T low, T span, int64_t n, T *at) {
    I any = 0;
    for (int64_t k = 0; k < n; k++)
        any |= ABS(at[k]) >= ALL_WHOLE ? 1 : 0;
    for (int64_t k = 0; any && k < n; k++)
        if (ABS(at[k]) >= ALL_WHOLE && ABS(at[k]) < (T)INFINITY)
            at[k] = FMOD(at[k] - low, 2 * span) + low;
}

/* Reflected at the edges until they lie between them; turn is multiplied by the sign of what that
 * does to a step. */
static void NAME(reflect)(const td_grid_plan *p, int d, int64_t n, T *restrict at,
                          T *restrict turn) {
    T low = (T)(p->aligned ? 0 : -0.5), span = (T)(p->in[d] - (p->aligned ? 1 : 0));
    if (span == 0) {
        for (int64_t k = 0; k < n; k++)
            at[k] = turn[k] = 0 * at[k];
        return;
    }
    NAME(come_nearer)(low, span, n, at);
    for (int64_t k = 0; k < n; k++) {
        T x = at[k] - low, far = ABS(x), times = FLOOR(far / span);
        times = far - times * span < 0 ? times - 1 : times; /* the quotient was rounded up */
        T rest = far - times * span, half = times / 2;
        bool odd = half != FLOOR(half);
        T side = x < 0 ? -turn[k] : turn[k];
        turn[k] = odd ? -side : side;
        at[k] = (odd ? span - rest : rest) + low;
    }
}

/* Held between the first and the last place: no step beyond, nor at them; NaN is the first. */
static void NAME(hold)(const td_grid_plan *p, int d, int64_t n, T *restrict at, T *restrict turn) {
    T last = (T)(p->in[d] - 1);
    for (int64_t k = 0; k < n; k++) {
        T x = at[k] > 0 ? at[k] : 0;
        turn[k] = x > 0 && x < last ? turn[k] : 0;
        at[k] = x < last ? x : last;
    }
}

static void NAME(bring_inside)(const td_grid_plan *p, int d, int64_t n, T *at, T *turn) {
    if (p->edge == TD_GRID_REFLECTION)
        NAME(reflect)(p, d, n, at, turn);
    if (p->edge != TD_GRID_ZEROS)
        NAME(hold)(p, d, n, at, turn);
}

/* The tap of whole places `from` + step along a dim. */
static void NAME(put_places)(const td_grid_plan *p, int d, int64_t n, const T *restrict from,
                             T step, P *restrict place, I *restrict inside) {
    P stride = (P)stride_of(p, d), most = (P)(p->in[d] - 1);
    T last = (T)(p->in[d] - 1);
    for (int64_t k = 0; k < n; k++) {
        T x = from[k] + step;
        bool in = x >= 0 && x <= last;
        P whole = (P)(in ? x : 0);
        place[k] = (whole < most ? whole : most) * stride;
        inside[k] = in ? -1 : 0;
    }
}

static void NAME(fill)(T *restrict to, int64_t n, T value) {
    for (int64_t k = 0; k < n; k++)
        to[k] = value;
}

static void NAME(see_nearest)(const td_grid_plan *p, int d, int64_t n, T *restrict at,
                              NAME(axis) * a) {
    for (int64_t k = 0; k < n; k++)
        at[k] = RINT(at[k]);
    NAME(put_places)(p, d, n, at, 0, a->place[0], a->inside[0]);
    NAME(fill)(a->weight[0], n, (T)(p->order[d] == 0));
    NAME(fill)(a->steeper[0], n, 0);
}

/* Weights of two places after so many derivatives. */
static void NAME(linear)(int64_t order, T scale, int64_t n, const T *restrict fraction,
                         const T *restrict turn, T *restrict first, T *restrict second) {
    for (int64_t k = 0; k < n; k++) {
        T step = turn[k] * scale;
        first[k] = order == 0 ? -fraction[k] + 1 : order == 1 ? -step : 0;
        second[k] = order == 0 ? fraction[k] : order == 1 ? step : 0;
    }
}

/* Places in a whole part and what is above it. */
static void NAME(part)(int64_t n, const T *restrict at, T *restrict low, T *restrict fraction) {
    for (int64_t k = 0; k < n; k++) {
        low[k] = FLOOR(at[k]);
        fraction[k] = at[k] - low[k];
    }
}

static void NAME(see_linear)(const td_grid_plan *p, int d, int64_t n, const T *at, const T *turn,
                             NAME(axis) * a) {
    T low[BLOCK], fraction[BLOCK], scale = NAME(scale)(p, d);
    NAME(part)(n, at, low, fraction);
    for (int t = 0; t < 2; t++)
        NAME(put_places)(p, d, n, low, (T)t, a->place[t], a->inside[t]);
    NAME(linear)(p->order[d], scale, n, fraction, turn, a->weight[0], a->weight[1]);
    if (p->kind == TD_GRID_SLOPE)
        NAME(linear)
    (p->order[d] + 1, scale, n, fraction, turn, a->steeper[0], a->steeper[1]);
}

/* A tap's polynomial after so many derivatives. */
static void NAME(cubic)(int64_t order, const double *weights, T scale, int64_t n,
                        const T *restrict fraction, T *restrict out) {
    double c[4] = {weights[0], weights[1], weights[2], weights[3]};
    T s = 1;
    for (int64_t k = 0; k < order && k < 4; k++) {
        c[3] = c[2];
        c[2] = 2 * c[1];
        c[1] = 3 * c[0];
        c[0] = 0;
        s *= scale;
    }
    const T c0 = (T)c[0], c1 = (T)c[1], c2 = (T)c[2], c3 = (T)c[3];
    for (int64_t k = 0; k < n; k++) {
        T x = fraction[k];
        out[k] = (((x * c0 + c1) * x + c2) * x + c3) * s;
    }
}

static void NAME(see_cubic)(const td_grid_plan *p, int d, int64_t n, const T *at, T *turn,
                            NAME(axis) * a) {
    T low[BLOCK], fraction[BLOCK], place[BLOCK], scale = NAME(scale)(p, d);
    NAME(part)(n, at, low, fraction);
    for (int t = 0; t < ALONG; t++) {
        for (int64_t k = 0; k < n; k++)
            place[k] = low[k] + (T)(t - 1);
        NAME(bring_inside)(p, d, n, place, turn);
        NAME(put_places)(p, d, n, place, 0, a->place[t], a->inside[t]);
        NAME(cubic)(p->order[d], cubic_weights[t], scale, n, fraction, a->weight[t]);
        if (p->kind == TD_GRID_SLOPE)
            NAME(cubic)(p->order[d] + 1, cubic_weights[t], scale, n, fraction, a->steeper[t]);
    }
}

static void NAME(see)(const td_grid_plan *p, int d, const T *grid, int64_t n, NAME(axis) * a) {
    T at[BLOCK], turn[BLOCK];
    NAME(unnormalise)(p, d, grid, n, at);
    NAME(fill)(turn, n, 1);
    if (p->mode != TD_GRID_CUBIC) /* whose taps are brought inside one by one */
        NAME(bring_inside)(p, d, n, at, turn);
    switch (p->mode) {
    case TD_GRID_NEAREST:
        NAME(see_nearest)(p, d, n, at, a);
        break;
    case TD_GRID_LINEAR:
        NAME(see_linear)(p, d, n, at, turn, a);
        break;
    case TD_GRID_CUBIC:
        NAME(see_cubic)(p, d, n, at, turn, a);
        break;
    }
}

/* ---- along all ---- */

static void NAME(join)(const NAME(axis) * a, int i, const NAME(axis) * b, int j, int64_t n,
                       P *restrict at, I *restrict inside) {
    const P *restrict first = a->place[i], *restrict second = b->place[j];
    const I *restrict in = a->inside[i], *restrict in_second = b->inside[j];
    for (int64_t k = 0; k < n; k++) {
        at[k] = first[k] + second[k];
        inside[k] = in[k] & in_second[k];
    }
}

static void NAME(join_third)(const NAME(axis) * a, int i, int64_t n, P *restrict at,
                             I *restrict inside) {
    const P *restrict place = a->place[i];
    const I *restrict in = a->inside[i];
    for (int64_t k = 0; k < n; k++) {
        at[k] += place[k];
        inside[k] &= in[k];
    }
}

/* The weight of tap `tap` of all dims, or of its slope by dim `steeper`; -1: of none. */
static void NAME(weigh)(const NAME(axis) * axis, int dims, const int *tap, int steeper, int64_t n,
                        T *restrict share) {
    const T *restrict weight[TD_SPATIAL] = {NULL};
    for (int d = 0; d < dims; d++)
        weight[d] = d == steeper ? axis[d].steeper[tap[d]] : axis[d].weight[tap[d]];
    const T *restrict first = weight[0], *restrict second = weight[1];
    for (int64_t k = 0; k < n; k++)
        share[k] = first[k] * second[k];
    for (int64_t k = 0; dims == 3 && k < n; k++)
        share[k] *= weight[2][k];
}

/* All taps of n places of an image's grid from `begin` on, with their weights, or for SLOPE with
 * the slopes of these by each dim. */
static void NAME(make_block)(const td_grid_plan *p, int64_t image, int64_t begin, int64_t n,
                             NAME(block) * b) {
    NAME(axis) axis[TD_SPATIAL];
    const T *grid = (const T *)p->grid->data + (image * p->places + begin) * p->n;
    int along = taps_along(p);
    bool slopes = p->kind == TD_GRID_SLOPE;
    b->taps = count_taps(p);
    for (int d = 0; d < p->n; d++)
        NAME(see)(p, d, grid, n, &axis[d]);
    for (int t = 0; t < b->taps; t++) {
        int tap[TD_SPATIAL] = {t % along, t / along % along, t / along / along};
        NAME(join)(&axis[0], tap[0], &axis[1], tap[1], n, b->at[t], b->inside[t]);
        if (p->n == 3)
            NAME(join_third)(&axis[2], tap[2], n, b->at[t], b->inside[t]);
        for (int d = 0; d < (slopes ? p->n : 1); d++)
            NAME(weigh)(axis, p->n, tap, slopes ? d : -1, n, b->share[d * b->taps + t]);
    }
}

/* An element, or 0 where the place lies outside. */
static inline T NAME(element)(const T *x, const P *at, const I *inside, int64_t k) {
    union {
        T v;
        I bits;
    } u = {.v = x[at[k]]};
    u.bits &= inside[k];
    return u.v;
}

static inline V NAME(load)(const T *p) {
    V v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* All taps of LANES places from k on, of which the second half may lie behind the first: such
 * neighbours come together, where both are inside. */
static inline __attribute__((always_inline)) void
NAME(see_taps)(const NAME(block) * b, const T *x, int64_t k, int taps, bool pairs, V *value) {
    int alone = pairs ? 0 : taps, half = pairs ? taps / 2 : 0;
    for (int t = 0; t < alone; t++)
        value[t] = GATHER(x, b->at[t] + k, b->inside[t] + k);
    for (int t = 0; t < half; t++) {
        const I *inside = b->inside[t] + k, *behind = b->inside[t + half] + k;
        if (ALL_INSIDE(inside, behind)) {
            value[t] = PAIRS(x, b->at[t] + k, &value[t + half]);
        } else {
            value[t] = GATHER(x, b->at[t] + k, inside);
            value[t + half] = GATHER(x, b->at[t + half] + k, behind);
        }
    }
}

/* The sums of all taps of LANES places at a time: how many places. */
static inline __attribute__((always_inline)) int64_t NAME(read_vectors)(const NAME(block) * b,
                                                                        const T *restrict x,
                                                                        int64_t n, int taps,
                                                                        bool pairs, T *restrict y) {
    int64_t from = 0;
    for (; LANES && from + LANES <= n; from += LANES) {
        V value[TAPS];
        NAME(see_taps)(b, x, from, taps, pairs, value);
        V sum = value[0] * NAME(load)(b->share[0] + from);
        for (int t = 1; t < taps; t++)
            sum += value[t] * NAME(load)(b->share[t] + from);
        memcpy(y + from, &sum, sizeof sum);
    }
    return from;
}

/* y = the sum of all taps, vector by vector, then tap by tap. */
static void NAME(read_taps)(const NAME(block) * b, const T *restrict x, int64_t n, T *restrict y) {
    int64_t from = b->taps == 4   ? NAME(read_vectors)(b, x, n, 4, true, y)
                   : b->taps == 8 ? NAME(read_vectors)(b, x, n, 8, true, y)
                   : b->taps == 1 ? NAME(read_vectors)(b, x, n, 1, false, y)
                                  : NAME(read_vectors)(b, x, n, TAPS, false, y);
    for (int t = 0; t < b->taps && from < n; t++) {
        const T *restrict share = b->share[t];
        if (t == 0)
            for (int64_t k = from; k < n; k++)
                y[k] = NAME(element)(x, b->at[0], b->inside[0], k) * share[k];
        else
            for (int64_t k = from; k < n; k++)
                y[k] += NAME(element)(x, b->at[t], b->inside[t], k) * share[k];
    }
}

static void NAME(read)(const td_grid_plan *p, int64_t image, int64_t begin, int64_t end) {
    NAME(block) b;
    int64_t plane = count_inputs(p);
    for (int64_t from = begin; from < end; from += BLOCK) {
        int64_t n = end - from < BLOCK ? end - from : BLOCK;
        NAME(make_block)(p, image, from, n, &b);
        for (int64_t c = 0; c < p->channels; c++) {
            int64_t channel = image * p->channels + c;
            const T *x = (const T *)p->x->data + channel * plane;
            T *y = (T *)p->out->data + channel * p->places + from;
            NAME(read_taps)(&b, x, n, y);
        }
    }
}

static void NAME(give)(const td_grid_plan *p, int64_t image, int64_t begin, int64_t end) {
    NAME(block) b;
    int64_t plane = count_inputs(p);
    for (int64_t from = 0; from < p->places; from += BLOCK) {
        int64_t n = p->places - from < BLOCK ? p->places - from : BLOCK;
        NAME(make_block)(p, image, from, n, &b);
        for (int64_t c = begin; c < end; c++) {
            int64_t channel = image * p->channels + c;
            T *x = (T *)p->out->data + channel * plane;
            const T *y = (const T *)p->gradient->data + channel * p->places + from;
            for (int64_t k = 0; k < n; k++)
                for (int t = 0; t < b.taps; t++)
                    if (b.inside[t][k])
                        x[b.at[t][k]] += y[k] * b.share[t][k];
        }
    }
}

/* sums += what a channel's steps along each dim are worth. */
static void NAME(add_slopes)(const NAME(block) * b, int dims, const T *restrict x,
                             const T *restrict y, int64_t n, double (*restrict sums)[BLOCK]) {
    T value[TAPS][BLOCK];
    int64_t from = 0;
    for (; LANES && from + LANES <= n; from += LANES) {
        V v[TAPS];
        NAME(see_taps)(b, x, from, b->taps, b->taps == 4 || b->taps == 8, v);
        for (int t = 0; t < b->taps; t++)
            memcpy(value[t] + from, &v[t], sizeof v[t]);
    }
    for (int t = 0; t < b->taps; t++)
        for (int64_t k = from; k < n; k++)
            value[t][k] = NAME(element)(x, b->at[t], b->inside[t], k);
    for (int d = 0; d < dims; d++) {
        const T(*restrict share)[BLOCK] = b->share + d * b->taps;
        T slope[BLOCK];
        for (int64_t k = 0; k < n; k++)
            slope[k] = value[0][k] * share[0][k];
        for (int t = 1; t < b->taps; t++)
            for (int64_t k = 0; k < n; k++)
                slope[k] += value[t][k] * share[t][k];
        for (int64_t k = 0; k < n; k++)
            sums[d][k] += (double)y[k] * (double)slope[k];
    }
}

static void NAME(slope)(const td_grid_plan *p, int64_t image, int64_t begin, int64_t end) {
    NAME(block) b;
    double sums[TD_SPATIAL][BLOCK];
    int64_t plane = count_inputs(p);
    for (int64_t from = begin; from < end; from += BLOCK) {
        int64_t n = end - from < BLOCK ? end - from : BLOCK;
        T *out = (T *)p->out->data + (image * p->places + from) * p->n;
        memset(sums, 0, sizeof sums);
        NAME(make_block)(p, image, from, n, &b);
        for (int64_t c = 0; c < p->channels; c++) {
            int64_t channel = image * p->channels + c;
            NAME(add_slopes)
            (&b, p->n, (const T *)p->x->data + channel * plane,
             (const T *)p->gradient->data + channel * p->places + from, n, sums);
        }
        for (int d = 0; d < p->n; d++)
            for (int64_t k = 0; k < n; k++)
                out[k * p->n + p->n - 1 - d] = (T)sums[d][k];
    }
}

static const td_grid_functions NAME(functions) = {
    .read = NAME(read), .give = NAME(give), .slope = NAME(slope)};

#undef T
#undef I
#undef P
#undef NAME
#undef FLOOR
#undef RINT
#undef ABS
#undef FMOD
#undef ALL_WHOLE
#undef V
#undef LANES
#undef GATHER
#undef PAIRS
#undef ALL_INSIDE
