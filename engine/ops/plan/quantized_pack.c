/* quantized_pack.c: the parts of packed weights. */
#include "engine/ops/plan/quantized_pack.h"

enum { ALIGNMENT = 64 };

static int64_t aligned(int64_t bytes) {
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static int64_t parts_of(int64_t n, int64_t size) {
    return (n + size - 1) / size;
}

/* The parts by their distance from the header, the end of all as the last. */
enum { SCALES, ZERO_POINTS, SUMS, SAFE, ORDER, WEIGHTS, END, PARTS };

static void place(int64_t columns, int64_t depth, int64_t *at) {
    int64_t panels = parts_of(columns, TD_QPACK_COLUMNS), groups = parts_of(depth, TD_QPACK_FOUR);
    int64_t by_column = panels * TD_QPACK_COLUMNS * (int64_t)sizeof(int32_t);
    at[SCALES] = aligned(sizeof(td_qpack));
    at[ZERO_POINTS] = at[SCALES] + aligned(by_column);
    at[SUMS] = at[ZERO_POINTS] + aligned(by_column);
    at[SAFE] = at[SUMS] + aligned(by_column);
    at[ORDER] = at[SAFE] + aligned(panels * (int64_t)sizeof(int32_t));
    at[WEIGHTS] = at[ORDER] + aligned(panels * groups * (int64_t)sizeof(uint16_t));
    at[END] = at[WEIGHTS] + panels * groups * TD_QPACK_COLUMNS * TD_QPACK_FOUR;
}

int64_t td_qpack_bytes(int64_t columns, int64_t depth) {
    int64_t at[PARTS];
    place(columns, depth, at);
    return at[END];
}

td_qpack_parts td_qpack_open(void *memory, int64_t columns, int64_t depth) {
    int64_t at[PARTS];
    char *from = memory;
    place(columns, depth, at);
    return (td_qpack_parts){.head = memory,
                            .scales = (void *)(from + at[SCALES]),
                            .zero_points = (void *)(from + at[ZERO_POINTS]),
                            .sums = (void *)(from + at[SUMS]),
                            .safe = (void *)(from + at[SAFE]),
                            .order = (void *)(from + at[ORDER]),
                            .weights = (void *)(from + at[WEIGHTS])};
}

td_status td_qpack_check(const td_tensor *packed, const td_qpack **head) {
    const td_qpack *h = packed->data;
    bool whole = packed->dtype == TD_U8 && packed->layout == TD_STRIDED && packed->contiguous &&
                 packed->numel >= (int64_t)sizeof *h && (uintptr_t)packed->data % ALIGNMENT == 0;
    if (!whole || h->magic != TD_QPACK_MAGIC || h->columns < 1 || h->depth < 1 ||
        h->depth > TD_QPACK_DEPTH || h->bytes != packed->numel || h->columns > packed->numel ||
        td_qpack_bytes(h->columns, h->depth) != packed->numel)
        return td_fail(TD_ETYPE, "packed weights expected, as pack_linear makes them");
    *head = h;
    return TD_OK;
}
