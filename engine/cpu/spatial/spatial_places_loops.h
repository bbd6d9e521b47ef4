/* spatial_places_loops.h: a tile of a convolution, kept in registers: a few places that meet the
 * same taps, and vectors of channels of the result. An element of x goes to all vectors of its
 * place, a vector of the weight to all places. Included by spatial_kernels.c with the vectors of
 * its set. */

#if defined(TD_ISA_avx512)
enum { PLACE_VECTORS = 4 };
#else
enum { PLACE_VECTORS = 2 };
#endif
enum { TILE_PLACES = 6 };

/* For each place; for each vector of one: so that no sum is ever told by an index, which would put
 * all of them in memory. */
#define EACH_PLACE(of) of(0) of(1) of(2) of(3) of(4) of(5)
#define EACH_VECTOR(of, j)                                                                         \
    {of(j, 0)} {of(j, 1)} {of(j, 2)} { of(j, 3) }
#define LANES_OF(v) (t->columns - (v)*VF_N < VF_N ? t->columns - (v)*VF_N : VF_N)
#define BEGIN_SUM(j, v)                                                                            \
    if (places > (j) && vectors > (v) && t->base)                                                  \
        s##j##v = LANES_OF(v) == VF_N                                                              \
                      ? vf_load(t->base + (j)*t->base_step + (v)*VF_N)                             \
                      : vf_load_part(t->base + (j)*t->base_step + (v)*VF_N, LANES_OF(v));
#define BEGIN_PLACE(j)                                                                             \
    const float *x##j = t->x + t->from + (places > (j) ? (j)*t->x_step : 0);                       \
    vf s##j##0 = zero, s##j##1 = zero, s##j##2 = zero, s##j##3 = zero;                             \
    EACH_VECTOR(BEGIN_SUM, j)
#define LOAD_WEIGHT(j, v)                                                                          \
    if (vectors > (v)) {                                                                           \
        by##v = vf_load(weight + (v)*VF_N);                                                        \
        __builtin_prefetch(weight + ahead + (v)*VF_N);                                             \
    }
#define ADD_TERM(j, v)                                                                             \
    if (vectors > (v))                                                                             \
        s##j##v = vf_fma(element, by##v, s##j##v);
#define ADD_PLACE(j)                                                                               \
    if (places > (j)) {                                                                            \
        const vf element = vf_set(x##j[at]);                                                       \
        EACH_VECTOR(ADD_TERM, j)                                                                   \
    }
#define PUT_SUM(j, v)                                                                              \
    if (places > (j) && vectors > (v)) {                                                           \
        const int64_t to = (j)*t->y_step + (v)*VF_N, n = LANES_OF(v);                              \
        if (n == VF_N) {                                                                           \
            const vf sum = added ? s##j##v + vf_load(added + to) : s##j##v;                        \
            vf_store(y + to, vf_epilogue(&epilogue, sum));                                         \
        } else {                                                                                   \
            const vf sum = added ? s##j##v + vf_load_part(added + to, n) : s##j##v;                \
            vf_store_part(y + to, vf_epilogue(&epilogue, sum), n);                                 \
        }                                                                                          \
    }
#define PUT_PLACE(j) EACH_VECTOR(PUT_SUM, j)

static inline __attribute__((always_inline)) void tile_of(const td_places_tile *t, const int places,
                                                          const int vectors) {
    enum { AHEAD = 8 }; /* channels of a tap before whose turn its weight is asked for */
    const vf zero = vf_set(0);
    const int64_t channel = t->channel, ahead = AHEAD * channel;
    vf by0 = zero, by1 = zero, by2 = zero, by3 = zero;
    EACH_PLACE(BEGIN_PLACE)
    for (int64_t k = 0; k < t->taps; k++) {
        const float *weight = t->weight + t->tap_weight[k];
        int64_t at = t->tap_x[k];
        for (int64_t c = 0; c < t->channels; c++, weight += channel, at++) {
            EACH_VECTOR(LOAD_WEIGHT, 0)
            EACH_PLACE(ADD_PLACE)
        }
    }
    const td_epilogue epilogue = t->epilogue ? *t->epilogue : (td_epilogue){.curve = TD_CURVE_NONE};
    const float *added = t->added;
    float *y = t->y;
    EACH_PLACE(PUT_PLACE)
}

#define DEFINE_TILE(places, vectors)                                                               \
    static void tile_##places##_##vectors(const td_places_tile *t) {                               \
        tile_of(t, places, vectors);                                                               \
    }
#define DEFINE_TILES(vectors)                                                                      \
    DEFINE_TILE(1, vectors)                                                                        \
    DEFINE_TILE(2, vectors)                                                                        \
    DEFINE_TILE(3, vectors)                                                                        \
    DEFINE_TILE(4, vectors)                                                                        \
    DEFINE_TILE(5, vectors)                                                                        \
    DEFINE_TILE(6, vectors)
#define TILES(vectors)                                                                             \
    {                                                                                              \
        tile_1_##vectors, tile_2_##vectors, tile_3_##vectors, tile_4_##vectors, tile_5_##vectors,  \
            tile_6_##vectors                                                                       \
    }
DEFINE_TILES(1)
DEFINE_TILES(2)
#if defined(TD_ISA_avx512)
DEFINE_TILES(3)
DEFINE_TILES(4)
#endif

static void places_tile(const td_places_tile *t) {
    static void (*const of[PLACE_VECTORS][TILE_PLACES])(const td_places_tile *) = {
        TILES(1),
        TILES(2),
#if defined(TD_ISA_avx512)
        TILES(3),
        TILES(4),
#endif
    };
    of[(t->columns - 1) / VF_N][t->places - 1](t);
}

#undef EACH_PLACE
#undef EACH_VECTOR
#undef LANES_OF
#undef BEGIN_SUM
#undef BEGIN_PLACE
#undef LOAD_WEIGHT
#undef ADD_TERM
#undef ADD_PLACE
#undef PUT_SUM
#undef PUT_PLACE
#undef DEFINE_TILE
#undef DEFINE_TILES
#undef TILES
