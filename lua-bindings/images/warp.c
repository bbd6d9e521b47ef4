/* warp.c: images that are turned, moved, scaled and sheared; see pixels.h. */
#include "lua-bindings/images/pixels.h"

#include <math.h>

static int at_or(tide_plane from, int64_t x, int64_t y, int fill) {
    bool inside = x >= 0 && x < from.width && y >= 0 && y < from.height;
    return inside ? from.at[y * from.y + x * from.x] : fill;
}

/* Between the four pixels around a place. */
static unsigned char between(tide_plane from, double x, double y, int fill) {
    double left = floor(x), top = floor(y), fx = x - left, fy = y - top;
    int64_t cx = (int64_t)left, cy = (int64_t)top;
    double upper = at_or(from, cx, cy, fill) * (1 - fx) + at_or(from, cx + 1, cy, fill) * fx;
    double lower =
        at_or(from, cx, cy + 1, fill) * (1 - fx) + at_or(from, cx + 1, cy + 1, fill) * fx;
    return (unsigned char)lrint(upper * (1 - fy) + lower * fy);
}

void tide_warp_plane(tide_plane from, tide_plane to, const double m[6], bool smooth, int fill) {
    double cx = (double)(to.width - 1) / 2, cy = (double)(to.height - 1) / 2;
    double mx = (double)(from.width - 1) / 2, my = (double)(from.height - 1) / 2;
    for (int64_t y = 0; y < to.height; y++)
        for (int64_t x = 0; x < to.width; x++) {
            double u = (double)x - cx, v = (double)y - cy;
            double px = m[0] * u + m[1] * v + m[2] + mx, py = m[3] * u + m[4] * v + m[5] + my;
            bool near =
                px > -2 && py > -2 && px < (double)from.width + 1 && py < (double)from.height + 1;
            unsigned char *at = to.at + y * to.y + x * to.x;
            if (!near)
                *at = (unsigned char)fill;
            else if (smooth)
                *at = between(from, px, py, fill);
            else
                *at = (unsigned char)at_or(from, lrint(px), lrint(py), fill);
        }
}
