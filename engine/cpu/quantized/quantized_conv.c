/* quantized_conv.c: convolutions of bytes. What the kernel meets at a block of places of the result
 * becomes rows of bytes, which are multiplied while they lie in the cache; where a kernel has one
 * element, the input is these rows. Depthwise convolutions read the input where it lies. */
#include "engine/core/memory.h"
#include "engine/core/threads.h"
#include "engine/cpu/isa/isa.h"
#include "engine/cpu/quantized/quantized_tiles.h"
#include "engine/cpu/spatial/conv_lines.h"

#include <string.h>

/* A block of rows stays in the cache; it has a multiple of a tile's rows. */
enum { BLOCK_BYTES = 64 * 1024, MOST_ROWS = 32 * TD_TILE_ROWS, PARTS_BY_THREAD = 4 };

static int64_t at_most(int64_t n, int64_t most) {
    return n < most ? n : most;
}
static int64_t parts_of(int64_t n, int64_t size) {
    return (n + size - 1) / size;
}

typedef struct conv_job {
    const td_quantized_conv_plan *plan;
    const td_conv_geometry *g;
    const uint8_t *end; /* of the input */
    td_byte_product product;
    int64_t channels, rows; /* of a group; places of the result in all images */
    int64_t step, block;    /* bytes and number of the rows of a block */
    int64_t strips, panels; /* parts of a pack's panels, and panels of each */
    bool direct;            /* rows of the input are rows of the product */
    int64_t room;           /* bytes for each worker */
    char *scratch;
} conv_job;

/* A place of the result: its image, its indices, and where the kernel's first element meets the
 * input. */
typedef struct place {
    int64_t image, index[TD_SPATIAL], at[TD_SPATIAL];
} place;

static place find_place(const td_conv_geometry *g, int64_t row) {
    place p;
    for (int d = TD_SPATIAL - 1; d >= 0; d--) {
        p.index[d] = row % g->out[d];
        p.at[d] = p.index[d] * g->stride[d] - g->padding[d];
        row /= g->out[d];
    }
    p.image = row;
    return p;
}

/* The next place, row-major. */
static void advance(const td_conv_geometry *g, place *p) {
    for (int d = TD_SPATIAL - 1; d >= 0; d--) {
        p->at[d] += g->stride[d];
        if (++p->index[d] < g->out[d])
            return;
        p->index[d] = 0;
        p->at[d] = -g->padding[d];
    }
    p->image++;
}

/* The line of the input, the first channel of its first place, that elements (a, b, 0) of the
 * kernel meet; NULL outside. */
static const uint8_t *find_line(const conv_job *j, const place *p, int64_t a, int64_t b) {
    const td_conv_geometry *g = j->g;
    int64_t z = p->at[0] + a * g->dilation[0], y = p->at[1] + b * g->dilation[1];
    if (z < 0 || z >= g->in[0] || y < 0 || y >= g->in[1])
        return NULL;
    return (const uint8_t *)j->plan->x->data +
           ((p->image * g->in[0] + z) * g->in[1] + y) * g->in[2] * g->c;
}

/* ---- products ---- */

enum { CHUNK = 32 }; /* bytes that are copied at once: a row has as many behind it */

/* n bytes, and perhaps as many more as fill a chunk. */
static inline void copy_chunks(uint8_t *to, const uint8_t *from, int64_t n) {
    for (int64_t k = 0; k < n; k += CHUNK)
        memcpy(to + k, from + k, CHUNK);
}

/* What a line of the kernel meets, `channels` from each place: bytes from a line of the input;
 * `together` where neighbours of the kernel meet neighbours that lie together. */
static void gather_line(const conv_job *j, const uint8_t *line, int64_t at, bool together,
                        uint8_t *to) {
    const td_conv_geometry *g = j->g;
    const int zero = j->plan->to.x_zero_point;
    int64_t width = j->channels, n = g->kernel[2];
    if (together) {
        int64_t first = at < 0 ? at_most(-at, n) : 0, last = at_most(g->in[2] - at, n);
        last = last > first ? last : first;
        memset(to, zero, (size_t)(first * width));
        memcpy(to + first * width, line + (at + first) * g->c, (size_t)((last - first) * width));
        memset(to + last * width, zero, (size_t)((n - last) * width));
        return;
    }
    for (int64_t k = 0; k < n; k++, at += g->dilation[2], to += width)
        if (at < 0 || at >= g->in[2])
            memset(to, zero, (size_t)width);
        else
            memcpy(to, line + at * g->c, (size_t)width);
}

/* The same for `count` places of a line of the result, the first of which meets place `at`. Where
 * the kernel meets neighbours that lie together, it is as many copies as there are places. */
static void gather_places(const conv_job *j, const uint8_t *line, int64_t at, int64_t count,
                          uint8_t *to) {
    const td_conv_geometry *g = j->g;
    const int64_t n = g->kernel[2] * j->channels, stride = g->stride[2];
    const int64_t reach = (g->kernel[2] - 1) * g->dilation[2];
    const bool together = (g->dilation[2] == 1 && j->channels == g->c) || g->kernel[2] == 1;
    int64_t k = 0;
    if (!line) {
        for (; k < count; k++, to += j->step)
            memset(to, j->plan->to.x_zero_point, (size_t)n);
        return;
    }
    for (; k < count && (at < 0 || !together); k++, at += stride, to += j->step)
        gather_line(j, line, at, together, to);
    const uint8_t *from = line + at * g->c;
    for (; k < count && at + reach < g->in[2] && j->end - from >= n + CHUNK;
         k++, at += stride, from += stride * g->c, to += j->step)
        copy_chunks(to, from, n);
    for (; k < count; k++, at += stride, to += j->step)
        gather_line(j, line, at, together, to);
}

/* The rows of a block, of one group's channels from `channel` on: those of a line of the result at
 * a time. What chunks have written behind a part, the next part overwrites. */
static void gather_rows(const conv_job *j, int64_t row, int64_t count, int64_t channel,
                        uint8_t *to) {
    const td_conv_geometry *g = j->g;
    int64_t across = g->kernel[2] * j->channels, depth = td_conv_places(g->kernel) * j->channels;
    for (int64_t end = row + count, n; row < end; row += n, to += n * j->step) {
        const place p = find_place(g, row);
        uint8_t *part = to;
        n = at_most(end - row, g->out[2] - p.index[2]);
        for (int64_t a = 0; a < g->kernel[0]; a++)
            for (int64_t b = 0; b < g->kernel[1]; b++, part += across) {
                const uint8_t *line = find_line(j, &p, a, b);
                gather_places(j, line ? line + channel : NULL, p.at[2], n, part);
            }
        for (int64_t k = 0; k < n; k++)
            memset(to + k * j->step + depth, 0, TD_QPACK_FOUR);
    }
}

/* Items are strips of panels of blocks of groups. */
static void run_blocks(void *ctx, int64_t begin, int64_t end, int worker) {
    const conv_job *j = ctx;
    const td_quantized_conv_plan *p = j->plan;
    const int64_t packs = td_qpack_count(p->packed);
    uint8_t *scratch = (uint8_t *)j->scratch + worker * j->room;
    for (int64_t item = begin; item < end; item++) {
        int64_t strip = item % j->strips, group = item / j->strips % packs;
        int64_t row = item / j->strips / packs * j->block, count = at_most(j->rows - row, j->block);
        td_qpack_parts packed = td_byte_pack(p->packed, group);
        int64_t first = group * packed.head->columns, at = row * j->g->o + first;
        const uint8_t *x = scratch;
        if (j->direct)
            x = (const uint8_t *)p->x->data + row * j->step;
        else
            gather_rows(j, row, count, group * j->channels, scratch);
        td_byte_rows rows = {.x = x,
                             .step = j->step,
                             .count = count,
                             .out = (char *)p->out->data + at,
                             .out_step = j->g->o,
                             .residual =
                                 p->residual ? (const uint8_t *)p->residual->data + at : NULL};
        td_byte_rows_multiply(&j->product, &packed, &rows, first, strip * j->panels, j->panels);
    }
}

/* Is each row of the product a place of the input as it lies? */
static bool is_direct(const td_conv_geometry *g) {
    bool plain = g->groups == 1 && g->c % TD_QPACK_FOUR == 0;
    for (int d = 0; d < TD_SPATIAL; d++)
        plain = plain && g->kernel[d] == 1 && g->stride[d] == 1 && g->padding[d] == 0;
    return plain;
}

static td_status run_products(conv_job *j, int threads) {
    const td_qpack *head = j->plan->packed->data;
    const int64_t packs = td_qpack_count(j->plan->packed);
    j->direct = is_direct(j->g);
    j->step = head->groups * TD_QPACK_FOUR + (j->direct ? 0 : CHUNK);
    int64_t high = j->product.tile_rows;
    int64_t tiles = at_most(BLOCK_BYTES, MOST_ROWS * j->step) / (j->step * high);
    j->block = (tiles > 1 ? tiles : 1) * high;
    j->room = j->direct ? 0 : j->block * j->step;
    int64_t blocks = parts_of(j->rows, j->block) * packs;
    int64_t most = parts_of(head->panels, TD_TILE_PANELS);
    int64_t wanted = threads > 1 ? parts_of((int64_t)threads * PARTS_BY_THREAD, blocks) : 1;
    j->panels = parts_of(most, at_most(wanted, most)) * TD_TILE_PANELS;
    j->strips = parts_of(head->panels, j->panels);
    j->scratch = td_malloc((size_t)(threads * j->room + 1));
    if (!j->scratch)
        return td_fail(TD_ENOMEM, "out of memory for a block of a convolution");
    int64_t cost = j->block * (at_most(j->panels, head->panels) * head->groups + 256);
    return td_parallel_for_among(threads, blocks * j->strips, cost, run_blocks, j);
}

/* ---- depthwise ---- */

/* What a worker has for as many places as a tile has rows: what the kernel's elements meet there
 * (`step` of them apart), how far from there it lies at a next place that meets no edge, a row for
 * outside, and for one place rows in which each channel stands as often as it has results. */
typedef struct bench {
    const uint8_t **taps;
    int64_t step, *moves;
    uint8_t *outside, *wide;
} bench;

static int64_t aligned(int64_t bytes) {
    return (bytes + 63) / 64 * 64;
}

static int64_t bench_bytes(const conv_job *j, int64_t depth) {
    int64_t o = j->g->o, wide = o == j->g->c ? 0 : depth * o * TD_TILE_ROWS;
    return aligned(TD_TILE_ROWS * (depth + 1) * (int64_t)sizeof(uint8_t *)) +
           aligned((depth + 1) * (int64_t)sizeof(int64_t)) + aligned(o) + aligned(wide);
}

static bench open_bench(const conv_job *j, int64_t depth, char *memory) {
    bench b = {.taps = (const uint8_t **)(void *)memory, .step = depth + 1};
    memory += aligned(TD_TILE_ROWS * b.step * (int64_t)sizeof(uint8_t *));
    b.moves = (int64_t *)(void *)memory;
    b.outside = (uint8_t *)memory + aligned(b.step * (int64_t)sizeof(int64_t));
    b.wide = b.outside + aligned(j->g->o);
    memset(b.outside, j->plan->to.x_zero_point, (size_t)j->g->o);
    return b;
}

/* Each of `channels` bytes `times` times. */
static const uint8_t *repeat_bytes(const uint8_t *x, int64_t channels, int64_t times, uint8_t *to) {
    for (int64_t c = 0; c < channels; c++)
        memset(to + c * times, x[c], (size_t)times);
    return to;
}

/* What each element of the kernel meets at a place, `slot` of the bench. */
static void find_taps(const conv_job *j, const bench *b, const place *p, int slot) {
    const td_conv_geometry *g = j->g;
    const uint8_t **taps = b->taps + slot * b->step;
    uint8_t *wide = b->wide + slot * (b->step - 1) * g->o;
    int64_t k = 0, times = g->o / g->c;
    for (int64_t z = 0; z < g->kernel[0]; z++)
        for (int64_t y = 0; y < g->kernel[1]; y++) {
            const uint8_t *line = find_line(j, p, z, y);
            for (int64_t x = 0; x < g->kernel[2]; x++, k++) {
                int64_t at = p->at[2] + x * g->dilation[2];
                if (!line || at < 0 || at >= g->in[2])
                    taps[k] = b->outside;
                else if (times == 1)
                    taps[k] = line + at * g->c;
                else
                    taps[k] = repeat_bytes(line + at * g->c, g->c, times, wide + k * g->o);
            }
        }
    taps[k] = b->outside; /* meets a weight of 0 where the depth is odd */
}

/* Do places p and the one before it meet no edge of the input along the last dim? Then the taps of
 * one are those of the other, moved on. */
static bool follows(const td_conv_geometry *g, const place *p) {
    int64_t reach = (g->kernel[2] - 1) * g->dilation[2];
    return p->index[2] > 0 && p->at[2] >= g->stride[2] && p->at[2] + reach < g->in[2] &&
           g->o == g->c;
}

static void move_taps(const bench *b, int64_t by, int from, int slot) {
    const uint8_t *const *restrict taps = b->taps + from * b->step, *const outside = b->outside;
    const uint8_t **restrict to = b->taps + slot * b->step;
    const int64_t n = b->step;
    for (int64_t k = 0; k < n; k++)
        to[k] = taps[k] + (taps[k] == outside ? 0 : by);
}

/* A tile of places, the first of them `row`: each has its taps on the bench, `apart` from the one
 * before, or, apart being 0, all lie in the line of the bench's first place, `first` places on. */
static void run_tile(const conv_job *j, const td_qpack_parts *packed, const bench *b, int64_t row,
                     int count, int64_t apart, int64_t first) {
    enum { WIDTH = TD_TILE_PANELS * TD_QPACK_COLUMNS };
    const td_quantized_conv_plan *p = j->plan;
    const int64_t o = j->g->o;
    const td_byte_rows rows = {
        .out = p->out->data, .out_step = o, .residual = p->residual ? p->residual->data : NULL};
    int32_t sums[TD_TILE_ROWS * WIDTH];
    for (int64_t c = 0; c < o; c += WIDTH) {
        td_cpu->quantized->depthwise(&(td_depthwise_tile){.taps = b->taps,
                                                          .steps = b->moves,
                                                          .apart = apart,
                                                          .first = first,
                                                          .pairs = parts_of(packed->head->depth, 2),
                                                          .from = c,
                                                          .n = at_most(o - c, WIDTH),
                                                          .width = WIDTH,
                                                          .rows = count,
                                                          .weights = packed->pairs,
                                                          .sums = sums});
        td_byte_sums_deliver(&j->product, packed, &rows, 0, row, count, c, at_most(o - c, WIDTH),
                             sums, WIDTH, NULL);
    }
}

enum { LONG = 8 * TD_TILE_ROWS }; /* places that are worth tiles of their own */

/* How many places from p on, `most` at most, meet no edge of the input along the last dim; 0 where
 * these are less than LONG. */
static int64_t count_inner(const td_conv_geometry *g, const place *p, int64_t most) {
    most = at_most(most, g->out[2] - p->index[2]);
    if (most < LONG || p->at[2] < 0 || g->o != g->c)
        return 0;
    int64_t room = g->in[2] - 1 - (g->kernel[2] - 1) * g->dilation[2] - p->at[2];
    int64_t n = room < 0 ? 0 : at_most(most, room / g->stride[2] + 1);
    return n < LONG ? 0 : n;
}

/* n places of a line, a tile's rows or more, from p (`row`) on, that meet no edge: their taps are
 * found once. The last tile begins early enough to be whole, and gives some results again. */
static void run_inner(const conv_job *j, const td_qpack_parts *packed, const bench *b,
                      const place *p, int64_t row, int64_t n) {
    find_taps(j, b, p, 0);
    for (int64_t k = 0; k < b->step; k++)
        b->moves[k] = b->taps[k] == b->outside ? 0 : j->g->stride[2] * j->g->c;
    for (int64_t k = 0; k < n; k += TD_TILE_ROWS) {
        k = at_most(k, n - TD_TILE_ROWS);
        run_tile(j, packed, b, row + k, TD_TILE_ROWS, 0, k);
    }
}

/* Items are places of the result. Where a line is long, its places that meet no edge are run by
 * themselves; all others, in tiles that go on from line to line. */
static void run_places(void *ctx, int64_t begin, int64_t end, int worker) {
    const conv_job *j = ctx;
    const td_conv_geometry *g = j->g;
    const td_qpack_parts packed = td_byte_pack(j->plan->packed, 0);
    const bench b = open_bench(j, packed.head->depth, j->scratch + worker * j->room);
    place p = find_place(g, begin);
    int slots = 0; /* that hold the places before `row` */
    for (int64_t row = begin, n; row < end; row += n, advance(g, &p)) {
        n = count_inner(g, &p, end - row);
        if (n) {
            if (slots)
                run_tile(j, &packed, &b, row - slots, slots, b.step, 0);
            slots = 0;
            run_inner(j, &packed, &b, &p, row, n);
            p.index[2] += n - 1;
            p.at[2] += (n - 1) * g->stride[2];
            continue;
        }
        n = 1;
        if (slots && follows(g, &p))
            move_taps(&b, g->stride[2] * g->c, slots - 1, slots);
        else
            find_taps(j, &b, &p, slots);
        if (++slots == TD_TILE_ROWS || row + 1 == end) {
            run_tile(j, &packed, &b, row + 1 - slots, slots, b.step, 0);
            slots = 0;
        }
    }
}

static td_status run_depthwise(conv_job *j, int threads) {
    int64_t depth = td_conv_places(j->g->kernel);
    j->room = bench_bytes(j, depth);
    j->scratch = td_malloc((size_t)(threads * j->room));
    if (!j->scratch)
        return td_fail(TD_ENOMEM, "out of memory for rows of a convolution");
    return td_parallel_for_among(threads, j->rows, j->g->o * depth / 4 + 64, run_places, j);
}

td_status td_byte_packs_conv(const td_quantized_conv_plan *plan) {
    const td_conv_geometry *g = &plan->geometry;
    const td_qpack *head = plan->packed->data;
    conv_job j = {.plan = plan,
                  .g = g,
                  .end = (const uint8_t *)plan->x->data + plan->x->numel,
                  .channels = g->c / g->groups,
                  .rows = g->n * td_conv_places(g->out)};
    int threads = td_threads_at_most();
    td_status status =
        td_byte_product_open(&j.product, &plan->to, TD_U8, plan->packed, plan->bias, j.rows);
    if (status == TD_OK)
        status = head->depthwise ? run_depthwise(&j, threads) : run_products(&j, threads);
    td_free(j.scratch);
    td_release(j.product.numbers);
    return status;
}
