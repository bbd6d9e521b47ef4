/* combine.c: sorts rows by their keys, so that combine.cu can combine those of one place in order.
 */
#include "engine/cuda/index/combine.h"

bool td_cuda_can_order(int64_t n, int64_t limit) {
    return n <= INT32_MAX && limit >= 0 && limit < UINT32_MAX;
}

static int bits_of(uint64_t number) {
    return number ? 64 - __builtin_clzll(number) : 0;
}

td_status td_cuda_ordered_take(td_cuda_ordered *o, td_stream stream, int64_t n, int64_t limit) {
    size_t rows = ((size_t)n + 63) / 64 * 64;
    size_t tiles = ((size_t)n + TD_CU_ORDER_TILE - 1) / TD_CU_ORDER_TILE;
    size_t words = 4 * rows + TD_CU_DIGITS * (tiles + 1);
    td_status status = td_cuda_scratch_take(&o->scratch, stream, words * sizeof(uint32_t));
    if (status != TD_OK)
        return status;
    uint32_t *room = o->scratch.data;
    o->ordering = (td_cu_ordering){.n = (uint32_t)n,
                                   .bits = bits_of((uint64_t)limit),
                                   .keys = {room, room + rows},
                                   .ranks = {room + 2 * rows, room + 3 * rows},
                                   .counts = room + 4 * rows};
    return TD_OK;
}

td_status td_cuda_ordered_combine(td_cuda_ordered *o, td_cu_combination *c, cudaStream_t s) {
    int at = 0;
    td_status status = td_cuda_status(td_cu_order(&o->ordering, &at, s), "putting places in order");
    if (status != TD_OK)
        return status;
    c->n = o->ordering.n;
    c->keys = o->ordering.keys[at];
    c->ranks = o->ordering.ranks[at];
    return td_cuda_status(td_cu_combine_ordered(c, s), "writing to places");
}

void td_cuda_ordered_drop(td_cuda_ordered *o) {
    td_cuda_scratch_drop(&o->scratch);
}

#define FORMAT(d) "index %lld is out of range for dim " #d " of size %lld"
#define FORMATS(end)                                                                               \
    {                                                                                              \
        FORMAT(1)                                                                                  \
        end, FORMAT(2) end, FORMAT(3) end, FORMAT(4) end, FORMAT(5) end, FORMAT(6) end,            \
            FORMAT(7) end, FORMAT(8) end, FORMAT(9) end, FORMAT(10) end, FORMAT(11) end,           \
            FORMAT(12) end, FORMAT(13) end, FORMAT(14) end, FORMAT(15) end, FORMAT(16) end         \
    }

const char *td_cuda_out_of_range(int dim, bool writes) {
    static const char *const reading[TD_MAX_DIMS] = FORMATS("");
    static const char *const writing[TD_MAX_DIMS] =
        FORMATS("; what other indices name has been written");
    return writes ? writing[dim] : reading[dim];
}
