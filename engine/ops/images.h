/* images.h: what operators on images (N, C, H, W) or (C, H, W) check alike. */
#ifndef TD_OPS_IMAGES_H
#define TD_OPS_IMAGES_H

#include "engine/ops/op.h"

/* ESHAPE unless 3 or 4 dims are given. */
td_status td_check_images(int ndim, const int64_t *sizes) TD_MUST_CHECK;

/* An int[2] argument, (height, width): EVALUE unless both lie between `least` and 2^31 - 1, which
 * keeps sums of products of them in 64 bits. */
td_status td_read_pair(const char *name, td_value v, int64_t least, int64_t *pair) TD_MUST_CHECK;

#endif
