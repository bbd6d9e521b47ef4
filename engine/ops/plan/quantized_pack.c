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
enum { SCALES, ZERO_POINTS, SUMS, SAFE, ORDER, WEIGHTS, FOURS, END, PARTS };

static void place(td_qpack_shape s, int64_t *at) {
    int64_t panels = parts_of(s.columns, TD_QPACK_COLUMNS), across = panels * TD_QPACK_COLUMNS;
    int64_t groups = s.depthwise ? 0 : parts_of(s.depth, TD_QPACK_FOUR);
    int64_t by_column = across * (int64_t)sizeof(int32_t);
    int64_t pairs = parts_of(s.depth, 2) * 2 * across * (int64_t)sizeof(int16_t);
    at[SCALES] = aligned(sizeof(td_qpack));
    at[ZERO_POINTS] = at[SCALES] + aligned(by_column);
    at[SUMS] = at[ZERO_POINTS] + aligned(by_column);
    at[SAFE] = at[SUMS] + aligned(by_column);
    at[ORDER] = at[SAFE] + aligned(panels * (int64_t)sizeof(int32_t));
    at[WEIGHTS] = at[ORDER] + aligned(panels * groups * (int64_t)sizeof(uint16_t));
    int64_t fours = s.depthwise ? parts_of(s.depth, TD_QPACK_FOUR) : 0;
    at[FOURS] = at[WEIGHTS] + (s.depthwise ? pairs : groups * across * TD_QPACK_FOUR);
    at[END] = at[FOURS] + fours * across * TD_QPACK_FOUR;
}

int64_t td_qpack_bytes(td_qpack_shape shape) {
    int64_t at[PARTS];
    place(shape, at);
    return at[END];
}

td_qpack_parts td_qpack_open(void *memory, td_qpack_shape shape) {
    int64_t at[PARTS];
    char *from = memory;
    place(shape, at);
    return (td_qpack_parts){.head = memory,
                            .scales = (void *)(from + at[SCALES]),
                            .zero_points = (void *)(from + at[ZERO_POINTS]),
                            .sums = (void *)(from + at[SUMS]),
                            .safe = (void *)(from + at[SAFE]),
                            .order = (void *)(from + at[ORDER]),
                            .weights = (void *)(from + at[WEIGHTS]),
                            .pairs = (void *)(from + at[WEIGHTS]),
                            .fours = (void *)(from + at[FOURS])};
}

/* Are the columns those of one group, or of as many as there are lanes for? */
static bool joins_groups(const td_qpack *h) {
    return h->joined == 1 ||
           ((h->joined == 2 || h->joined == 4) && h->columns == TD_QPACK_COLUMNS &&
            h->depth * h->joined % TD_QPACK_COLUMNS == 0 && h->centred && !h->depthwise);
}

/* Is this the header of a pack of so many bytes? */
static bool is_pack(const td_qpack *h, int64_t bytes) {
    return h->magic == TD_QPACK_MAGIC && h->columns >= 1 && h->depth >= 1 &&
           h->depth <= TD_QPACK_DEPTH && h->bytes == bytes && h->columns <= bytes &&
           joins_groups(h) && td_qpack_bytes(td_qpack_shape_of(h)) == bytes;
}

td_status td_qpack_check(const td_tensor *packed, const td_qpack **head) {
    const td_qpack *first = packed->data;
    bool whole = packed->dtype == TD_U8 && packed->layout == TD_STRIDED && packed->contiguous &&
                 (packed->ndim == 1 || packed->ndim == 2) && packed->numel > 0 &&
                 (uintptr_t)packed->data % ALIGNMENT == 0;
    int64_t bytes = whole ? packed->sizes[packed->ndim - 1] : 0;
    whole = bytes >= (int64_t)sizeof *first && bytes % ALIGNMENT == 0;
    for (int64_t k = 0; whole && k < td_qpack_count(packed); k++) {
        const td_qpack *h = (const void *)((const char *)packed->data + k * bytes);
        whole = is_pack(h, bytes) && h->columns == first->columns && h->depth == first->depth &&
                h->depthwise == first->depthwise && h->joined == first->joined;
    }
    if (!whole)
        return td_fail(TD_ETYPE, "packed weights expected, as quantized_pack makes them");
    *head = first;
    return TD_OK;
}

/* Do lines lie as td_qlines says? A dim of one place may have any stride. */
static bool are_lines(const td_tensor *x) {
    if (x->dtype != TD_U8 || x->layout != TD_STRIDED || !td_qpack_is_lines(x) || x->numel == 0 ||
        x->sizes[2] <= TD_QLINE_HEAD || x->sizes[2] > TD_QLINE_HEAD + TD_QPACK_DEPTH)
        return false;
    td_qlines l = td_qlines_of(x);
    const char *base = x->storage->data;
    bool whole = (uint64_t)((char *)x->data - base) + (uint64_t)(l.groups * l.columns * l.step) <=
                 (uint64_t)x->storage->bytes;
    return whole && ((char *)x->data - base) % ALIGNMENT == 0 && x->strides[2] == 1 &&
           (l.columns == 1 || x->strides[1] == l.step) &&
           (l.groups == 1 || x->strides[0] == l.columns * l.step);
}

td_status td_qweight_read(const td_tensor *packed, td_qweight *out) {
    const td_qpack *head;
    if (td_tensor_device(packed).type == TD_CPU) {
        td_status status = td_qpack_check(packed, &head);
        if (status == TD_OK)
            *out = (td_qweight){head->columns / head->joined, head->depth,
                                td_qpack_count(packed) * head->joined, head->depthwise != 0};
        return status;
    }
    if (!are_lines(packed))
        return td_fail(TD_ETYPE, "packed weights expected, as quantized_pack makes them");
    td_qlines l = td_qlines_of(packed);
    *out = (td_qweight){l.columns, l.depth, l.groups, false};
    return TD_OK;
}
