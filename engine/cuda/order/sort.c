/* sort.c: orders: of the elements of lines, of rows, of random numbers. What one block can hold is
 * put in order by one; else keys with ranks are made and go to radix_sort.cu, as many lines at once
 * as ranks of 31 bits can count. Of a few of a long line's elements no more than these are ordered.
 */
#include "engine/cuda/order/sort.h"

#include "engine/cuda/limits.h"
#include "engine/cuda/reduce/dim_lines.h"
#include "engine/ops/make/copy.h"

enum { ALIGNED = 256 };

static const int64_t part_most = INT64_C(1) << 30; /* elements that are sorted together */

bool td_cuda_can_sort(int64_t n) {
    return n <= part_most;
}

td_cu_keys td_cuda_keys_of(td_dtype dtype, bool descending) {
    static const uint64_t infinities[TD_DTYPE_COUNT] = {[TD_F16] = 0x7C00,
                                                        [TD_BF16] = 0x7F80,
                                                        [TD_F32] = 0x7F800000,
                                                        [TD_F64] = 0x7FF0000000000000};
    int size = (int)td_dtype_size(dtype);
    uint64_t all = ~(uint64_t)0 >> (64 - 8 * size);
    return (td_cu_keys){.size = size,
                        .sign = dtype == TD_BOOL || dtype == TD_U8 ? 0 : all ^ all >> 1,
                        .all = all,
                        .infinity = infinities[dtype],
                        .flip = descending ? all : 0};
}

static int bits_for(uint64_t n) {
    return n > 1 ? 64 - __builtin_clzll(n - 1) : 0;
}

/* ---- keys with ranks ---- */

typedef struct pairs {
    td_cuda_scratch room;
    int64_t n;
    bool wide; /* the widest keys that go in */
    void *keys[2], *own;
    uint32_t *ranks[2];
    size_t own_bytes;
    int at; /* which of the two are filled in */
} pairs;

static size_t aligned(size_t bytes) {
    return (bytes + ALIGNED - 1) / ALIGNED * ALIGNED;
}

static td_status take_pairs(pairs *p, td_stream stream, int64_t n, bool wide, cudaStream_t s) {
    size_t keys = aligned((size_t)n * (wide ? sizeof(uint64_t) : sizeof(uint32_t)));
    size_t ranks = aligned((size_t)n * sizeof(uint32_t)), narrow = 0;
    td_status status = TD_OK;
    *p = (pairs){.n = n, .wide = wide};
    TD_TRY(td_cuda_status(td_cu_sort_pairs(NULL, &p->own_bytes, wide, p->keys, p->ranks, &p->at, n,
                                           wide ? 64 : 32, s),
                          "sorting"));
    if (wide) /* lines' numbers may be sorted as well */
        TD_TRY(td_cuda_status(
            td_cu_sort_pairs(NULL, &narrow, false, p->keys, p->ranks, &p->at, n, 32, s),
            "sorting"));
    p->own_bytes = narrow > p->own_bytes ? narrow : p->own_bytes;
    TD_TRY(td_cuda_scratch_take(&p->room, stream, 2 * (keys + ranks) + p->own_bytes));
    char *at = p->room.data;
    for (int k = 0; k < 2; k++, at += keys + ranks) {
        p->keys[k] = at;
        p->ranks[k] = (uint32_t *)(void *)(at + keys);
    }
    p->own = at;
done:
    return status;
}

static td_status sort_pairs(pairs *p, bool wide, int bits, cudaStream_t s) {
    size_t bytes = p->own_bytes;
    if (bits == 0)
        return TD_OK;
    return td_cuda_status(
        td_cu_sort_pairs(p->own, &bytes, wide, p->keys, p->ranks, &p->at, p->n, bits, s),
        "sorting");
}

/* ---- lines ---- */

/* Lines' numbers stand above their keys, or, where there is no room, are sorted by themselves. */
static td_status sort_part(const td_cu_sort *sort, td_cu_part *part, pairs *p, cudaStream_t s) {
    int key_bits = 8 * sort->keys.size, line_bits = bits_for((uint64_t)part->lines);
    bool apart = line_bits > 0 && key_bits + line_bits > 64;
    part->line_shift = line_bits > 0 && !apart ? key_bits : 0;
    part->wide = p->wide;
    p->at = 0;
    td_status status =
        td_cuda_status(td_cu_sort_load(sort, part, p->keys[0], p->ranks[0], s), "making keys");
    if (status == TD_OK)
        status = sort_pairs(p, p->wide, apart ? key_bits : key_bits + line_bits, s);
    if (status == TD_OK && apart) {
        status = td_cuda_status(td_cu_sort_lines(sort, part, p->ranks[p->at], p->keys[p->at], s),
                                "making keys");
        if (status == TD_OK)
            status = sort_pairs(p, false, line_bits, s);
    }
    if (status != TD_OK)
        return status;
    return td_cuda_status(
        td_cu_sort_store(sort, part, apart ? NULL : p->keys[p->at], p->ranks[p->at], s),
        "writing what was sorted");
}

static td_status sort_long(const td_cu_sort *sort, td_stream stream, cudaStream_t s) {
    int64_t lines = sort->lines.outer * sort->lines.inner, n = sort->lines.n;
    int64_t most = part_most / n < lines ? part_most / n : lines;
    pairs p;
    int key_bits = 8 * sort->keys.size;
    td_status status =
        take_pairs(&p, stream, n * most, key_bits + bits_for((uint64_t)most) > 32, s);
    for (int64_t line = 0; line < lines && status == TD_OK; line += most) {
        td_cu_part part = {.line = line, .lines = lines - line < most ? lines - line : most};
        p.n = n * part.lines;
        status = sort_part(sort, &part, &p, s);
    }
    td_cuda_scratch_drop(&p.room);
    return status;
}

/* A few of many: those are found first, in no order, which only they are then put in. */
static td_status sort_few(const td_cu_sort *sort, td_stream stream, cudaStream_t s) {
    size_t few = (size_t)(sort->lines.outer * sort->lines.inner * sort->first);
    size_t orders = aligned(few * sizeof(int64_t)), places = aligned(few * sizeof(uint32_t));
    td_cu_select select = {.of = *sort, .rank = sort->first - 1};
    td_cuda_scratch room = {.data = NULL}, kept = {.data = NULL};
    td_status status;
    TD_TRY(td_cuda_select_room(&select, stream, &room));
    TD_TRY(td_cuda_scratch_take(&kept, stream, orders + places + few * (size_t)sort->keys.size));
    int64_t *order = kept.data;
    uint32_t *stood = (uint32_t *)(void *)((char *)kept.data + orders);
    char *elements = (char *)kept.data + orders + places;
    TD_TRY(td_cuda_status(td_cu_select_first(&select, elements, stood, s), "selecting"));
    td_cu_sort own = {.lines = {sort->lines.outer * sort->lines.inner, sort->first, 1},
                      .first = sort->first,
                      .keys = sort->keys,
                      .x = elements,
                      .index = order};
    TD_TRY(sort->first <= TD_CU_SORT_SHORT ? td_cuda_status(td_cu_sort_short(&own, s), "sorting")
                                           : sort_long(&own, stream, s));
    status = td_cuda_status(td_cu_sort_store_first(sort, stood, order, s), "sorting");
done:
    td_cuda_scratch_drop(&room);
    td_cuda_scratch_drop(&kept);
    return status;
}

td_status td_cuda_sort_lines(const td_cu_sort *sort, td_stream stream, cudaStream_t s) {
    if (sort->lines.n <= TD_CU_SORT_SHORT)
        return td_cuda_status(td_cu_sort_short(sort, s), "sorting");
    bool few = sort->first <= sort->lines.n / TD_LIMIT(SORT_FIRST) &&
               sort->lines.outer * sort->lines.inner <= TD_CUDA_SELECT_LINES;
    return few ? sort_few(sort, stream, s) : sort_long(sort, stream, s);
}

static td_status sort_on_cpu(const void *plan) {
    return td_backends[TD_CPU]->sort(plan);
}

td_status td_cuda_sort(const td_sort_plan *p) {
    const td_tensor *result = p->values ? p->values : p->index;
    td_cu_lines lines = td_cuda_lines_of(p->x, p->dim);
    td_tensor *x = NULL, *values = NULL, *index = NULL;
    cudaStream_t s;
    td_status status;
    if (!td_cuda_can_sort(lines.n))
        return td_cuda_fall_back("sort", p, sizeof *p, sort_on_cpu, 3, 2);
    if (result->numel == 0)
        return TD_OK;
    TD_TRY(td_cuda_begin(p->stream, 3, p->tensors, &s));
    TD_TRY(td_contiguous(p->x, &x));
    TD_TRY(td_cuda_room_for(p->values, &values));
    TD_TRY(td_cuda_room_for(p->index, &index));
    td_cu_sort sort = {.lines = lines,
                       .first = td_cuda_lines_of(result, p->dim).n,
                       .keys = td_cuda_keys_of((td_dtype)x->dtype, p->descending),
                       .x = x->data,
                       .values = values ? values->data : NULL,
                       .index = index ? index->data : NULL};
    TD_TRY(td_cuda_sort_lines(&sort, p->stream, s));
    TD_TRY(td_cuda_hand_over(p->values, values));
    TD_TRY(td_cuda_hand_over(p->index, index));
done:
    td_release(x);
    td_release(values);
    td_release(index);
    return status;
}

/* ---- random orders ---- */

static td_status permutation_on_cpu(const void *plan) {
    return td_backends[TD_CPU]->permutation(plan);
}

td_status td_cuda_permutation(const td_permutation_plan *p) {
    int64_t n = p->out->numel, *out = p->out->data;
    pairs k = {.room = {.data = NULL}};
    cudaStream_t s;
    td_status status;
    if (!td_cuda_can_sort(n))
        return td_cuda_fall_back("permutation", p, sizeof *p, permutation_on_cpu, 1, 1);
    TD_TRY(td_cuda_begin(p->stream, 1, p->tensors, &s));
    if (n == 0)
        goto done;
    if (n <= TD_CU_SORT_SHORT) {
        status = td_cuda_status(td_cu_permute_short(out, n, p->seed, p->offset, s), "drawing");
        goto done;
    }
    TD_TRY(take_pairs(&k, p->stream, n, true, s));
    TD_TRY(td_cuda_status(td_cu_permutation_keys(k.keys[0], k.ranks[0], n, p->seed, p->offset, s),
                          "drawing"));
    TD_TRY(sort_pairs(&k, true, 64, s));
    status = td_cuda_status(td_cu_widen_ranks(k.ranks[k.at], n, out, s), "drawing");
done:
    td_cuda_scratch_drop(&k.room);
    return status;
}

/* ---- rows ---- */

static td_status order_rows_on_cpu(const void *plan) {
    return td_backends[TD_CPU]->order_rows(plan);
}

/* By the last columns first, as many at once as 64 bits hold: what was in order stays so. */
static td_status order_columns(const td_cu_rows *r, pairs *p, cudaStream_t s) {
    int64_t most = 8 / r->keys.size;
    td_status status = TD_OK;
    for (int64_t end = r->columns; end > 0 && status == TD_OK; end -= most) {
        int count = (int)(end < most ? end : most);
        status = td_cuda_status(td_cu_row_keys(r, end - count, count, end == r->columns,
                                               p->keys[p->at], p->ranks[p->at], s),
                                "making keys");
        if (status == TD_OK)
            status = sort_pairs(p, true, 8 * r->keys.size * count, s);
    }
    return status;
}

td_status td_cuda_order_rows(const td_order_rows_plan *p) {
    int64_t n = p->index->numel;
    td_cu_rows r = {.x = p->x->data,
                    .n = n,
                    .columns = n ? p->x->numel / n : 0,
                    .keys = td_cuda_keys_of((td_dtype)p->x->dtype, false),
                    .index = p->index->data};
    pairs k = {.room = {.data = NULL}};
    cudaStream_t s;
    td_status status;
    if (!td_cuda_can_sort(n))
        return td_cuda_fall_back("order_rows", p, sizeof *p, order_rows_on_cpu, 2, 1);
    TD_TRY(td_cuda_begin(p->stream, 2, p->tensors, &s));
    if (n == 0)
        goto done;
    if (n <= TD_CU_SORT_SHORT) {
        status = td_cuda_status(td_cu_order_rows_short(&r, s), "putting rows in order");
        goto done;
    }
    TD_TRY(take_pairs(&k, p->stream, n, true, s));
    if (r.columns == 0) /* all rows are one: keys of no columns, which set the ranks */
        TD_TRY(td_cuda_status(td_cu_row_keys(&r, 0, 0, true, k.keys[0], k.ranks[0], s),
                              "making keys"));
    TD_TRY(order_columns(&r, &k, s));
    status = td_cuda_status(td_cu_widen_ranks(k.ranks[k.at], n, r.index, s), "writing ranks");
done:
    td_cuda_scratch_drop(&k.room);
    return status;
}
