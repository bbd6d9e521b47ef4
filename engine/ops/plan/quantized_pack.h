/* quantized_pack.h: weights of a product of bytes in the order in which it reads them.
 *
 * A linear layer has one pack. A convolution has one for each of its groups, all of the same size;
 * its depth is the kernel's elements, row-major, and in each of them the channels of a group.
 * Neighbouring groups of few columns are one group, in which channels of the others meet weights
 * that are their zero point. Where a group has one channel (depthwise), one pack of another order
 * of weights holds all groups.
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
 * Depthwise weights are int16, less their zero points, which are packed as 0: panel by panel, pairs
 * of neighbours along the depth, column by column, the two weights of a pair. There are no groups.
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

#endif
