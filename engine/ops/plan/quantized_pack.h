/* quantized_pack.h: weights of a product of bytes in the order in which it reads them: packs, which
 * the CPU reads, and lines, for devices whose memory the host does not see.
 *
 * A linear layer has one pack. A convolution has one for each of its groups, all of the same size;
 * its depth is the kernel's elements, row-major, and in each of them the channels of a group.
 * Neighbouring groups of few columns share a pack: they are one group, in which channels of the
 * others meet weights that are their zero point; or, if they have 4 columns and channels, or 8 of
 * both, and all zero points are 0, a pack has the columns of `joined` groups, 16 of them, and each
 * column reads bytes of its own group ("lanes"). Where a group has one channel (depthwise), one
 * pack of another order of weights holds all groups.
 *
 * A block of memory that begins with the header, then by column (a row of the weight), of which
 * there are `columns` rounded up to a multiple of 16: scales (float32), zero points (int32), and
 * the sums of its weights less depth times its zero point (int32); then, for each panel of 16
 * columns, how many of its groups are safe (int32), and the order of its groups (uint16); then the
 * weights: panel by panel, group by group, column by column, the four weights of a group.
 *
 * A group is four neighbours along the depth, which is filled up with zeros. It is safe where all
 * its pairs are in all columns of the panel: `vpmaddubsw` adds b0 and b1, each times a byte up to
 * 255, in 16 bits, and that cannot saturate if and only if
 *      255 * (max(b0, 0) + max(b1, 0)) <= 32767  and  255 * (min(b0, 0) + min(b1, 0)) >= -32768.
 * A panel may have its groups in any order, which `order` says: sets that need safe groups have
 * these first. Others read them as they come.
 *
 * Of lanes, whose groups have 4 * e channels, e being 1 or 2, an element of the kernel meets 16
 * neighbouring bytes of x, four times four of them. Its e groups of weights are in the order of 16
 * places, of which place 4 * l + k meets the k-th four bytes: group v has there the weights of
 * column 4 * v + l of the k / e-th of the joined groups for the k % e-th four of its channels, and
 * the sums of e neighbouring places make that of a column. All groups of a pack count as safe, or
 * none.
 *
 * Depthwise weights are int16, less their zero points, which are packed as 0: panel by panel, pairs
 * of neighbours along the depth, column by column, the two weights of a pair. There are no groups.
 * Behind them, as int8, and only where all zero points are 0 (`fours`): panel by panel, fours of
 * neighbours along the depth, column by column.
 */
#ifndef TD_OPS_PLAN_QUANTIZED_PACK_H
#define TD_OPS_PLAN_QUANTIZED_PACK_H

#include "engine/core/tensor.h"

enum { TD_QPACK_COLUMNS = 16, TD_QPACK_FOUR = 4 };

/* Up to this depth a sum of products of differences of bytes, (a - za) * (b - zb), fits 32 bits. */
#define TD_QPACK_DEPTH 33024

typedef struct td_qpack {
    uint64_t magic;
    int64_t columns, depth, panels, groups; /* of the weight, and of what is packed */
    int64_t pairs;                          /* whose sums were looked at: those of real columns */
    int64_t unsafe_pairs;                   /* of these may saturate */
    int64_t moved_groups; /* stand behind the safe ones of their panel, and are multiplied in 16
                             bits */
    int64_t ordered;      /* the safe groups come first */
    int64_t centred;      /* all zero points are 0 */
    int64_t depthwise;
    int64_t saturates; /* pairs are to be summed as vpmaddubsw sums them, to compare with fbgemm */
    int64_t bytes;     /* of all */
    int64_t joined;    /* groups whose bytes the columns read; 1: all read the same */
    int64_t fours;     /* depthwise weights are there in bytes as well */
} td_qpack;

#define TD_QPACK_MAGIC 0x74647171706b3031u

/* Where the parts of a pack begin, of which one may be all that is asked for. */
typedef struct td_qpack_parts {
    td_qpack *head;
    float *scales;
    int32_t *zero_points, *sums, *safe;
    uint16_t *order;
    int8_t *weights;
    int16_t *pairs; /* depthwise weights, in the place of the others */
    int8_t *fours;  /* behind them */
} td_qpack_parts;

/* The shape of what is packed. */
typedef struct td_qpack_shape {
    int64_t columns, depth; /* depth: at most TD_QPACK_DEPTH */
    bool depthwise;
} td_qpack_shape;

/* Bytes of a pack: a multiple of 64. */
int64_t td_qpack_bytes(td_qpack_shape shape);
/* The parts of the memory of a pack, which is aligned to 64. */
td_qpack_parts td_qpack_open(void *memory, td_qpack_shape shape);
/* The first header of a tensor of packs, a dim of bytes, or of groups and bytes, all of one shape.
 * ETYPE for any other. */
td_status td_qpack_check(const td_tensor *packed, const td_qpack **head) TD_MUST_CHECK;

/* How many packs there are in a tensor of them. */
static inline int64_t td_qpack_count(const td_tensor *packed) {
    return packed->ndim == 2 ? packed->sizes[0] : 1;
}
static inline td_qpack_shape td_qpack_shape_of(const td_qpack *head) {
    return (td_qpack_shape){head->columns, head->depth, head->depthwise != 0};
}

/* ---- lines ----
 *
 * A tensor of uint8 whose shape says all that the host must know: (groups, columns of a group,
 * TD_QLINE_HEAD + depth). A line has the head of a column, then its weights. Lines follow one
 * another a multiple of 16 bytes apart, and what fills them up is 0 and belongs to the memory:
 * kernels read 16 weights at a time. Depthwise weights are groups of one channel, as any. */

enum { TD_QLINE_HEAD = 16, TD_QLINE_STEP = 16 };

typedef struct td_qline_head {
    float scale;
    int32_t zero_point;
    int32_t sum; /* of the weights, less depth times the zero point */
    int32_t unused;
} td_qline_head;

typedef struct td_qlines {
    int64_t groups, columns, depth;
    int64_t step; /* bytes from a line to the next */
} td_qlines;

static inline td_qlines td_qlines_for(int64_t groups, int64_t columns, int64_t depth) {
    return (td_qlines){groups, columns, depth,
                       (TD_QLINE_HEAD + depth + TD_QLINE_STEP - 1) / TD_QLINE_STEP * TD_QLINE_STEP};
}
/* Are these packed weights lines? And their numbers. */
static inline bool td_qpack_is_lines(const td_tensor *packed) {
    return packed->ndim == 3;
}
static inline td_qlines td_qlines_of(const td_tensor *lines) {
    return td_qlines_for(lines->sizes[0], lines->sizes[1], lines->sizes[2] - TD_QLINE_HEAD);
}

/* What operators know of packed weights, packs or lines. */
typedef struct td_qweight {
    int64_t columns, depth, groups; /* columns: of a group */
    bool depthwise;                 /* a pack of all groups, which have one channel each */
} td_qweight;

/* Of a tensor of packs (td_qpack_check), or, where it is not on the CPU, of lines. ETYPE for any
 * other. */
td_status td_qweight_read(const td_tensor *packed, td_qweight *out) TD_MUST_CHECK;

#endif
