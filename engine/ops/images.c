/* images.c: checks of images and of the pairs that steer windows over them. */
#include "engine/ops/images.h"

td_status td_check_images(int ndim, const int64_t *sizes) {
    char text[TD_SHAPE_TEXT];
    return ndim == 3 || ndim == 4
               ? TD_OK
               : td_fail(TD_ESHAPE, "input must have shape (N, C, H, W) or (C, H, W), got %s",
                         td_shape_text(ndim, sizes, text, sizeof text));
}

td_status td_read_pair(const char *name, td_value v, int64_t least, int64_t *pair) {
    for (int k = 0; k < 2; k++) {
        pair[k] = v.ints[k];
        if (pair[k] < least || pair[k] > INT32_MAX)
            return td_fail(TD_EVALUE, "%s must be from %lld to 2^31 - 1, got %lld and %lld", name,
                           (long long)least, (long long)v.ints[0], (long long)v.ints[1]);
    }
    return TD_OK;
}
