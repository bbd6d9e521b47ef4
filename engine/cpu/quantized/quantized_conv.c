/* quantized_conv.c: convolutions of bytes. Products read the input where it lies, through pointers
 * to what each element of the kernel meets at each place of the result; where that would part four
 * bytes of a product, or the loop wants a row in one piece, rows are gathered for a block of places
 * that stays in the cache. Depthwise convolutions read through the same pointers. */
#include "engine/core/memory.h"
#include "engine/core/threads.h"
#include "engine/cpu/isa/isa.h"
#include "engine/cpu/quantized/quantized_tiles.h"
#include "engine/cpu/spatial/conv_lines.h"

#include <string.h>

/* The rows of a block that are gathered stay in the cache; it has a multiple of a tile's rows. */
enum { BLOCK_BYTES = 64 * 1024, MOST_ROWS = 32 * TD_TILE_ROWS, PARTS_BY_THREAD = 4 };

static int64_t at_most(int64_t n, int64_t most) {
    return n < most ? n : most;
}
static int64_t parts_of(int64_t n, int64_t size) {
    return (n + size - 1) / size;
}

/* How many steps from 0 on, of so much each, don't lead past `room`. */
static int64_t count_steps(int64_t room, int64_t step) {
    return room < 0 ? 0 : room / step + 1;
}

/* Places of the result in all images, at which the same elements of the kernel, `taps` of them,
 * meet the input, or (not `inside`) are taken all the same. Inside, they lie behind what the first
 * does. */
typedef struct box {
    int64_t from[TD_SPATIAL], size[TD_SPATIAL];
    int64_t rows; /* places */
    int64_t end;  /* past the last of its blocks, which are counted through all boxes */
    const td_byte_part *which;
    int64_t taps, first[TD_SPATIAL];
    bool inside;
} box;

typedef struct conv_job {
    const td_quantized_conv_plan *plan;
    const td_conv_geometry *g;
    const uint8_t *end; /* of the input */
    td_byte_product product;
    int64_t channels;       /* of a group */
    int64_t times;          /* each channel stands so often in what a tap meets */
    int64_t slots;          /* places whose taps a worker has */
    int64_t step;           /* bytes of a gathered row; 0: none are gathered */
    int64_t strips, panels; /* parts of a pack's panels, and panels of each */
    box all, *boxes;        /* boxes: what products are made of; all: as one box */
    int64_t box_count;
    int64_t room; /* bytes for each worker */
    char *scratch;
} conv_job;

/* A place of the result: its image, its indices, and where the kernel's first element meets the
 * input. */
typedef struct place {
    int64_t image, index[TD_SPATIAL], at[TD_SPATIAL];
} place;

static place find_place(const td_conv_geometry *g, const box *b, int64_t row) {
    place p;
    for (int d = TD_SPATIAL - 1; d >= 0; d--) {
        p.index[d] = b->from[d] + row % b->size[d];
        p.at[d] = p.index[d] * g->stride[d] - g->padding[d];
        row /= b->size[d];
    }
    p.image = row;
    return p;
}

/* The next place of a box, row-major. */
static void advance(const td_conv_geometry *g, const box *b, place *p) {
    for (int d = TD_SPATIAL - 1; d >= 0; d--) {
        p->at[d] += g->stride[d];
        if (++p->index[d] < b->from[d] + b->size[d])
            return;
        p->index[d] = b->from[d];
        p->at[d] = b->from[d] * g->stride[d] - g->padding[d];
    }
    p->image++;
}

/* The place n places on, of which all but the last are in p's line. */
static void advance_by(const td_conv_geometry *g, const box *b, place *p, int64_t n) {
    p->index[2] += n - 1;
    p->at[2] += (n - 1) * g->stride[2];
    advance(g, b, p);
}

/* Where the channels of a place lie in the result, in bytes. */
static int64_t find_result(const conv_job *j, const place *p) {
    const td_quantized_conv_plan *plan = j->plan;
    int64_t at = p->image;
    for (int d = 0; d < TD_SPATIAL; d++)
        at = at * plan->whole[d] + plan->first[d] + p->index[d] * plan->every[d];
    return at * j->g->o;
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

/* ---- taps ---- */

/* What a worker has: for each of `slots` places and one more what the kernel's elements meet there
 * (`step` of them apart but for products), and for these and a tile more where a result goes; how
 * far from there taps lie at a next place that meets no edge; a row for outside; and rows in which
 * each channel stands as often as it has results, or gathered rows. */
typedef struct bench {
    const uint8_t **taps;
    int64_t depth, step, *at, *moves;
    uint8_t *outside, *wide;
} bench;

static int64_t aligned(int64_t bytes) {
    return (bytes + 63) / 64 * 64;
}

static int64_t bench_bytes(const conv_job *j, int64_t depth) {
    int64_t across = j->g->c * j->times;
    int64_t wide = j->times == 1 ? j->slots * j->step : depth * across * j->slots;
    return aligned((j->slots + 1) * (depth + 1) * (int64_t)sizeof(uint8_t *)) +
           aligned((j->slots + TD_DEPTHWISE_ROWS + depth + 1) * (int64_t)sizeof(int64_t)) +
           aligned(across) + aligned(wide);
}

static bench open_bench(const conv_job *j, int64_t depth, char *memory) {
    bench b = {.taps = (const uint8_t **)(void *)memory, .depth = depth, .step = depth + 1};
    int64_t across = j->g->c * j->times;
    memory += aligned((j->slots + 1) * b.step * (int64_t)sizeof(uint8_t *));
    b.at = (int64_t *)(void *)memory;
    b.moves = b.at + j->slots + TD_DEPTHWISE_ROWS;
    b.outside = (uint8_t *)memory +
                aligned((j->slots + TD_DEPTHWISE_ROWS + b.step) * (int64_t)sizeof(int64_t));
    b.wide = b.outside + aligned(across);
    memset(b.outside, j->plan->to.x_zero_point, (size_t)across);
    return b;
}

/* Each of `channels` bytes `times` times. */
static const uint8_t *repeat_bytes(const uint8_t *x, int64_t channels, int64_t times, uint8_t *to) {
    for (int64_t c = 0; c < channels; c++)
        memset(to + c * times, x[c], (size_t)times);
    return to;
}

/* What each element of the kernel meets at a place, `slot` of the bench. */
static void find_taps(const conv_job *j, const bench *b, const place *p, int64_t slot) {
    const td_conv_geometry *g = j->g;
    const uint8_t **taps = b->taps + slot * b->step;
    const int64_t times = j->times, across = g->c * times;
    uint8_t *wide = b->wide + slot * b->depth * across;
    int64_t k = 0;
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
                    taps[k] = repeat_bytes(line + at * g->c, g->c, times, wide + k * across);
            }
        }
    taps[k] = b->outside; /* meets a weight of 0 where the depth is odd */
}

/* Do places p and the one before it meet no edge of the input along the last dim? Then the taps of
 * one are those of the other, moved on. */
static bool follows(const conv_job *j, const place *p) {
    const td_conv_geometry *g = j->g;
    int64_t reach = (g->kernel[2] - 1) * g->dilation[2];
    return p->index[2] > 0 && p->at[2] >= g->stride[2] && p->at[2] + reach < g->in[2] &&
           j->times == 1;
}

static void move_taps(const bench *b, int64_t by, int64_t slot) {
    const uint8_t *const *restrict taps = b->taps + (slot - 1) * b->step, *const outside =
                                                                              b->outside;
    const uint8_t **restrict to = b->taps + slot * b->step;
    const int64_t n = b->step;
    for (int64_t k = 0; k < n; k++)
        to[k] = taps[k] + (taps[k] == outside ? 0 : by);
}

/* How many places from p on, `most` at most, meet no edge of the input along the last dim. */
static int64_t count_inner(const td_conv_geometry *g, const place *p, int64_t most) {
    int64_t room = g->in[2] - 1 - (g->kernel[2] - 1) * g->dilation[2] - p->at[2];
    return p->at[2] < 0 ? 0 : at_most(most, count_steps(room, g->stride[2]));
}

/* Where the results of n neighbours go, the first of them at `at`. */
static void place_results(int64_t *restrict to, int64_t n, int64_t at, int64_t apart) {
    for (int64_t r = 0; r < n; r++)
        to[r] = at + r * apart;
}

/* What n neighbours meet, the first of them `tap`. */
static void place_taps(const uint8_t **restrict to, int64_t n, const uint8_t *tap, int64_t apart) {
    for (int64_t r = 0; r < n; r++)
        to[r] = tap + r * apart;
}

/* The taps of n neighbours along the last dim from p on, and where their results go, into slots
 * from `slot` on: the taps of all slots for an element of the kernel, then those for the next.
 * Where there are several neighbours, none meets an edge. */
static void find_line_taps(const conv_job *j, const bench *b, const place *p, int64_t slot,
                           int64_t n) {
    const int64_t by = j->g->stride[2] * j->g->c, apart = j->plan->every[2] * j->g->o;
    const uint8_t **taps = b->taps + j->slots * b->step;
    place_results(b->at + slot, n, find_result(j, p), apart);
    find_taps(j, b, p, j->slots);
    for (int64_t k = 0; k < b->depth; k++)
        place_taps(b->taps + k * j->slots + slot, n, taps[k], taps[k] == b->outside ? 0 : by);
}

/* ---- boxes ---- */

/* Neighbours along a dim at which the kernel's elements from `low` to `high` meet the input. */
typedef struct span {
    int64_t from, size, low, high;
} span;

enum { MOST_SPANS = 5, SPANNED = 5 }; /* along a dim, and elements of a kernel that is divided */

/* The spans of a dim; one with all elements where they would be many. */
static int find_spans(const td_conv_geometry *g, int d, span *spans) {
    const span whole = {0, g->out[d], 0, g->kernel[d]};
    int n = 0;
    for (int64_t i = 0; i < g->out[d] && g->kernel[d] <= SPANNED; i++) {
        int64_t at = i * g->stride[d] - g->padding[d], low = 0, high = g->kernel[d];
        while (low < high && at + low * g->dilation[d] < 0)
            low++;
        while (high > low && at + (high - 1) * g->dilation[d] >= g->in[d])
            high--;
        if (n && spans[n - 1].low == low && spans[n - 1].high == high) {
            spans[n - 1].size++;
            continue;
        }
        if (n == MOST_SPANS) {
            n = 0;
            break;
        }
        spans[n++] = (span){i, 1, low, high};
    }
    if (n == 0)
        spans[n++] = whole;
    return n;
}

/* Does every element of the kernel from `low` to `high` meet the input at every place of a span? */
static bool is_inside(const td_conv_geometry *g, int d, const span *s) {
    int64_t from = s->from * g->stride[d] - g->padding[d];
    int64_t to = from + (s->size - 1) * g->stride[d];
    return from + s->low * g->dilation[d] >= 0 && to + (s->high - 1) * g->dilation[d] < g->in[d];
}

/* A box of one span of each dim, whose taps go to `which`. One without taps has an entry all the
 * same: a loop for which the depth is one part multiplies zeros by it. */
static box make_box(const td_conv_geometry *g, int64_t slots, const span *const *at,
                    td_byte_part *which) {
    box b = {.rows = g->n, .which = which, .inside = true};
    which[0] = td_byte_whole;
    for (int d = 0; d < TD_SPATIAL; d++) {
        b.from[d] = at[d]->from;
        b.size[d] = at[d]->size;
        b.rows *= at[d]->size;
        b.first[d] = at[d]->low;
        b.inside = b.inside && is_inside(g, d, at[d]);
    }
    for (int64_t z = at[0]->low; z < at[0]->high; z++)
        for (int64_t y = at[1]->low; y < at[1]->high; y++)
            for (int64_t x = at[2]->low; x < at[2]->high; x++) {
                const int64_t k = (z * g->kernel[1] + y) * g->kernel[2] + x;
                int64_t behind = (z - b.first[0]) * g->dilation[0];
                behind = behind * g->in[1] + (y - b.first[1]) * g->dilation[1];
                behind = behind * g->in[2] + (x - b.first[2]) * g->dilation[2];
                which[b.taps++] = b.inside ? (td_byte_part){k, 0, behind * g->c}
                                           : (td_byte_part){k, k * slots, 0};
            }
    return b;
}

/* What a box costs: its tiles, of rows as equal as can be, read the weights, for which one of few
 * rows has to wait. */
static int64_t box_cost(const box *b) {
    enum { ROW = 4, LEAST = 14 };
    int64_t rows = b->rows * ROW, tiles = parts_of(b->rows, TD_TILE_ROWS) * LEAST;
    return b->taps * (rows > tiles ? rows : tiles);
}

/* Divides the result into boxes where that costs less: elements of the kernel that are outside
 * multiply zeros where the zero point of x is 0, and are left out. */
static td_status open_boxes(conv_job *j) {
    span spans[TD_SPATIAL][MOST_SPANS];
    const td_conv_geometry *g = j->g;
    const span all[TD_SPATIAL] = {{0, g->out[0], 0, g->kernel[0]},
                                  {0, g->out[1], 0, g->kernel[1]},
                                  {0, g->out[2], 0, g->kernel[2]}};
    const bool divides = j->step == 0 && j->plan->to.x_zero_point == 0;
    int64_t places = td_conv_places(g->kernel), most = 1, cost = 0;
    int counts[TD_SPATIAL] = {0};
    for (int d = 0; d < TD_SPATIAL && divides; d++)
        most *= counts[d] = find_spans(g, d, spans[d]);
    j->boxes =
        td_malloc((size_t)(most + 1) * (sizeof(box) + (size_t)places * sizeof(td_byte_part)));
    if (!j->boxes)
        return td_fail(TD_ENOMEM, "out of memory for parts of a convolution");
    td_byte_part *which = (td_byte_part *)(void *)(j->boxes + most + 1);
    j->all = make_box(g, j->slots, (const span *[]){&all[0], &all[1], &all[2]}, which);
    for (int z = 0; z < counts[0]; z++)
        for (int y = 0; y < counts[1]; y++)
            for (int x = 0; x < counts[2]; x++) {
                const span *at[] = {&spans[0][z], &spans[1][y], &spans[2][x]};
                box *b = &j->boxes[j->box_count++];
                *b = make_box(g, j->slots, at, which + places * j->box_count);
                cost += box_cost(b);
            }
    if (j->box_count == 0 || cost >= box_cost(&j->all)) {
        j->boxes[0] = j->all;
        j->box_count = 1;
    }
    for (int64_t k = 0, end = 0; k < j->box_count; k++)
        j->boxes[k].end = end += parts_of(j->boxes[k].rows, j->slots);
    return TD_OK;
}

/* ---- products ---- */

enum { CHUNK = 32 }; /* bytes that are copied at once: a row has as many behind it */

/* n bytes, and perhaps as many more as fill a chunk, `count` times: `by` and `step` bytes on. */
static void copy_places(uint8_t *restrict to, int64_t step, const uint8_t *restrict from,
                        int64_t by, int64_t n, int64_t count) {
    if (n <= CHUNK) {
        for (int64_t k = 0; k < count; k++)
            memcpy(to + k * step, from + k * by, CHUNK);
        return;
    }
    for (; count > 0; count--, to += step, from += by)
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
    const int64_t inner = at_most(count_steps(g->in[2] - 1 - reach - at, stride),
                                  count_steps(j->end - from - n - CHUNK, stride * g->c));
    const int64_t copied = at_most(inner, count - k);
    copy_places(to, j->step, from, stride * g->c, n, copied);
    k += copied;
    at += copied * stride;
    to += copied * j->step;
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
        const place p = find_place(g, &j->all, row);
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

/* The same where a row has one pointer: to a gathered row, or to what the first element of a box
 * meets. */
static void find_line_rows(const conv_job *j, const box *part, const bench *b, const place *p,
                           int64_t slot, int64_t n) {
    const td_conv_geometry *g = j->g;
    const int64_t at = find_result(j, p), apart = j->plan->every[2] * g->o;
    int64_t by = g->stride[2] * g->c;
    const uint8_t *x = b->outside;
    if (j->step) {
        x = b->wide + slot * j->step;
        by = j->step;
    } else if (part->taps) {
        x = find_line(j, p, part->first[0], part->first[1]) +
            (p->at[2] + part->first[2] * g->dilation[2]) * g->c;
    } else {
        by = 0;
    }
    place_results(b->at + slot, n, at, apart);
    place_taps(b->taps + slot, n, x, by);
}

/* The rows of a block, from `row` of a box on, for one group: gathered, or as x lies, which is the
 * same for all groups. */
static td_byte_rows open_rows(const conv_job *j, const box *part, const bench *b, int64_t row,
                              int64_t count, int64_t group) {
    place p = find_place(j->g, part, row);
    td_byte_rows rows = {.taps = b->taps,
                         .which = part->which,
                         .apart = 1,
                         .parts = b->depth,
                         .count_parts = part->taps,
                         .count = count,
                         .at = b->at};
    if (j->step) {
        gather_rows(j, row, count, group * j->channels, b->wide);
        rows.which = &td_byte_whole;
        rows.parts = rows.count_parts = 1;
    }
    for (int64_t k = 0, n; k < count; k += n, advance_by(j->g, part, &p, n)) {
        n = at_most(count - k, part->from[2] + part->size[2] - p.index[2]);
        if (j->step || part->inside) {
            find_line_rows(j, part, b, &p, k, n);
        } else {
            int64_t inner = count_inner(j->g, &p, n);
            n = inner ? inner : 1;
            find_line_taps(j, b, &p, k, n);
        }
    }
    return rows;
}

/* Items are strips of panels of groups of blocks. */
static void run_blocks(void *ctx, int64_t begin, int64_t end, int worker) {
    const conv_job *j = ctx;
    const td_quantized_conv_plan *p = j->plan;
    const int64_t packs = td_qpack_count(p->packed);
    const bench b = open_bench(j, td_conv_places(j->g->kernel), j->scratch + worker * j->room);
    td_byte_rows rows = {0};
    for (int64_t item = begin; item < end; item++) {
        int64_t strip = item % j->strips, group = item / j->strips % packs;
        int64_t block = item / j->strips / packs;
        td_qpack_parts packed = td_byte_pack(p->packed, group);
        int64_t first = group * packed.head->columns;
        if (item == begin || (strip == 0 && (group == 0 || j->step))) {
            const box *part = j->boxes;
            while (block >= part->end)
                part++;
            int64_t row = (block - part->end + parts_of(part->rows, j->slots)) * j->slots;
            rows = open_rows(j, part, &b, row, at_most(part->rows - row, j->slots), group);
        }
        rows.from = j->step ? 0 : group * j->channels * packed.head->joined;
        rows.out = (char *)p->out->data + first;
        rows.residual = p->residual ? (const uint8_t *)p->residual->data + first : NULL;
        td_byte_rows_multiply(&j->product, &packed, &rows, first, strip * j->panels, j->panels);
    }
}

/* Are a place's bytes copied, so that the depth is one part, or is it a part for each element of
 * the kernel, as x lies? */
static bool gathers(const conv_job *j) {
    return j->channels % TD_QPACK_FOUR ||
           (td_conv_places(j->g->kernel) > 1 && td_byte_pack_is_whole(j->plan->packed->data));
}

/* How many places a block has: as many as the cache takes of their rows or taps, and for several
 * threads no more than leaves each of them some blocks. */
static int64_t block_places(const conv_job *j, int threads) {
    int64_t taps = (td_conv_places(j->g->kernel) + 1) * (int64_t)sizeof(uint8_t *);
    int64_t most = at_most(BLOCK_BYTES / (j->step ? j->step : taps), MOST_ROWS);
    if (threads > 1)
        most = at_most(most, parts_of(j->all.rows, (int64_t)threads * PARTS_BY_THREAD));
    int64_t high = j->product.tile_rows, tiles = parts_of(most, high);
    return (tiles > 1 ? tiles : 1) * high;
}

static td_status run_products(conv_job *j, int threads) {
    const td_qpack *head = j->plan->packed->data;
    const int64_t packs = td_qpack_count(j->plan->packed), places = td_conv_places(j->g->kernel);
    j->times = 1;
    j->step = gathers(j) ? head->groups * TD_QPACK_FOUR + CHUNK : 0;
    j->slots = block_places(j, threads);
    j->room = bench_bytes(j, places);
    td_status status = open_boxes(j);
    if (status)
        return status;
    int64_t blocks = j->boxes[j->box_count - 1].end * packs;
    int64_t most = parts_of(head->panels, TD_TILE_PANELS);
    int64_t wanted = threads > 1 ? parts_of((int64_t)threads * PARTS_BY_THREAD, blocks) : 1;
    j->panels = parts_of(most, at_most(wanted, most)) * TD_TILE_PANELS;
    j->strips = parts_of(head->panels, j->panels);
    j->scratch = td_malloc((size_t)(threads * j->room));
    if (!j->scratch)
        return td_fail(TD_ENOMEM, "out of memory for a block of a convolution");
    int64_t cost = j->slots * (at_most(j->panels, head->panels) * head->groups + 256);
    return td_parallel_for_among(threads, blocks * j->strips, cost, run_blocks, j);
}

/* ---- depthwise ---- */

/* Are depthwise weights multiplied in fours of bytes? */
static bool takes_fours(const td_qpack *head) {
    return head->fours && td_cpu->quantized->tile_vnni && td_cpu_has_vnni();
}

/* A tile of places, whose results go where the bench says: each has its taps there; or, being
 * `inner`, all lie in the line of the bench's extra slot, `first` places on. */
static void run_tile(const conv_job *j, const td_qpack_parts *packed, const bench *b, int count,
                     bool inner, int64_t first) {
    enum { WIDTH = TD_TILE_PANELS * TD_QPACK_COLUMNS };
    const td_quantized_conv_plan *p = j->plan;
    const int64_t o = j->g->o, extra = inner ? j->slots : 0;
    const td_byte_rows rows = {.out = p->out->data,
                               .at = b->at + extra,
                               .residual = p->residual ? p->residual->data : NULL};
    const int8_t *fours = takes_fours(packed->head) ? packed->fours : NULL;
    int32_t sums[TD_DEPTHWISE_ROWS * WIDTH];
    for (int64_t c = 0; c < o; c += WIDTH) {
        td_cpu->quantized->depthwise(&(td_depthwise_tile){.taps = b->taps + extra * b->step,
                                                          .steps = b->moves,
                                                          .apart = inner ? 0 : b->step,
                                                          .first = first,
                                                          .pairs = parts_of(packed->head->depth, 2),
                                                          .from = c,
                                                          .n = at_most(o - c, WIDTH),
                                                          .width = WIDTH,
                                                          .rows = count,
                                                          .weights = packed->pairs,
                                                          .fours = fours,
                                                          .sums = sums});
        td_byte_sums_deliver(&j->product, packed, &rows, 0, 0, count, c, at_most(o - c, WIDTH),
                             sums, WIDTH, NULL);
    }
}

enum { LONG = 2 * TD_DEPTHWISE_ROWS }; /* places that are worth tiles of their own */

/* How many places from p on, `most` at most, are in one line and meet no edge of the input along
 * the last dim; 0 where these are less than LONG. */
static int64_t count_long(const conv_job *j, const place *p, int64_t most) {
    int64_t n = j->times == 1 ? count_inner(j->g, p, at_most(most, j->g->out[2] - p->index[2])) : 0;
    return n < LONG ? 0 : n;
}

/* n places of a line, a tile's rows or more, from p on, that meet no edge: their taps are found
 * once. The last tile begins early enough for rows that fill its loops, and gives some results
 * again. */
static void run_inner(const conv_job *j, const td_qpack_parts *packed, const bench *b,
                      const place *p, int64_t n) {
    const int64_t apart = j->plan->every[2] * j->g->o, at = find_result(j, p);
    const uint8_t **taps = b->taps + j->slots * b->step;
    find_taps(j, b, p, j->slots);
    for (int64_t k = 0; k < b->step; k++)
        b->moves[k] = taps[k] == b->outside ? 0 : j->g->stride[2] * j->g->c;
    for (int64_t k = 0, count; k < n; k += count) {
        count = at_most(parts_of(n - k, TD_TILE_ROWS) * TD_TILE_ROWS, TD_DEPTHWISE_ROWS);
        k = at_most(k, n - count);
        place_results(b->at + j->slots, count, at + k * apart, apart);
        run_tile(j, packed, b, (int)count, true, k);
    }
}

/* Items are places of the result. Where a line is long, its places that meet no edge are run by
 * themselves; all others, in tiles that go on from line to line. */
static void run_places(void *ctx, int64_t begin, int64_t end, int worker) {
    const conv_job *j = ctx;
    const td_conv_geometry *g = j->g;
    const td_qpack_parts packed = td_byte_pack(j->plan->packed, 0);
    const bench b = open_bench(j, packed.head->depth, j->scratch + worker * j->room);
    place p = find_place(g, &j->all, begin);
    int slots = 0; /* that hold the places before `row` */
    for (int64_t row = begin, n; row < end; row += n, advance_by(g, &j->all, &p, n)) {
        n = count_long(j, &p, end - row);
        if (n) {
            run_inner(j, &packed, &b, &p, n);
            continue;
        }
        n = 1;
        b.at[slots] = find_result(j, &p);
        if (slots && follows(j, &p))
            move_taps(&b, g->stride[2] * g->c, slots);
        else
            find_taps(j, &b, &p, slots);
        if (++slots == j->slots) {
            run_tile(j, &packed, &b, slots, false, 0);
            slots = 0;
        }
    }
    if (slots)
        run_tile(j, &packed, &b, slots, false, 0);
}

static td_status run_depthwise(conv_job *j, int threads) {
    int64_t depth = td_conv_places(j->g->kernel);
    j->times = j->g->o / j->g->c;
    j->slots = takes_fours(j->plan->packed->data) ? TD_DEPTHWISE_ROWS : TD_TILE_ROWS;
    j->room = bench_bytes(j, depth);
    j->scratch = td_malloc((size_t)(threads * j->room));
    if (!j->scratch)
        return td_fail(TD_ENOMEM, "out of memory for rows of a convolution");
    return td_parallel_for_among(threads, j->all.rows, j->g->o * depth / 4 + 64, run_places, j);
}

td_status td_byte_packs_conv(const td_quantized_conv_plan *plan) {
    const td_conv_geometry *g = &plan->geometry;
    const td_qpack *head = plan->packed->data;
    conv_job j = {.plan = plan,
                  .g = g,
                  .end = (const uint8_t *)plan->x->data + plan->x->numel,
                  .channels = g->c / g->groups,
                  .all = {.rows = g->n * td_conv_places(g->out)}};
    int threads = td_threads_at_most();
    memcpy(j.all.size, g->out, sizeof g->out);
    int64_t parts = gathers(&j) ? 1 : td_conv_places(g->kernel);
    td_status status = td_byte_product_open(&j.product, &plan->to, TD_U8, plan->packed, plan->bias,
                                            j.all.rows, parts);
    if (status == TD_OK)
        status = head->depthwise ? run_depthwise(&j, threads) : run_products(&j, threads);
    td_free(j.scratch);
    td_free(j.boxes);
    td_release(j.product.numbers);
    return status;
}
