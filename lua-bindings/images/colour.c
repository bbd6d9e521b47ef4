/* colour.c: colours of uint8 images, by the arithmetic of torchvision: float32, cut off at the
 * ends, the fraction dropped; see pixels.h. */
#include "lua-bindings/images/pixels.h"

#include <math.h>

static inline unsigned char to_byte(float x) {
    return (unsigned char)(x < 0 ? 0 : x > 255 ? 255 : x);
}

static inline float grey_of(float r, float g, float b) {
    return floorf(r * 0.2989f + g * 0.587f + b * 0.114f);
}

static inline float grey_at(tide_pixels x, int64_t k) {
    return x.channels == 1 ? x.at[k] : grey_of(x.at[k], x.at[k + x.n], x.at[k + 2 * x.n]);
}

/* factor * pixel + shift for every pixel: there are 256 of them. */
static void map(tide_pixels x, float factor, float shift) {
    unsigned char table[256];
    for (int v = 0; v < 256; v++)
        table[v] = to_byte((float)v * factor + shift);
    for (int64_t k = 0; k < x.n * x.channels; k++)
        x.at[k] = table[x.at[k]];
}

static float mean_grey(tide_pixels x) {
    double sum = 0;
    for (int64_t k = 0; k < x.n; k++)
        sum += grey_at(x, k);
    return (float)(sum / (double)x.n);
}

static void saturate(tide_pixels x, float factor) {
    for (int64_t k = 0; k < x.n; k++) {
        float grey = grey_at(x, k) * (1 - factor);
        for (int c = 0; c < x.channels; c++)
            x.at[k + c * x.n] = to_byte((float)x.at[k + c * x.n] * factor + grey);
    }
}

/* A colour of 0 to 1 whose hue is turned: from RGB to hue, saturation and value, and back. */
static void turn_hue(float c[3], float by) {
    float high = fmaxf(fmaxf(c[0], c[1]), c[2]), low = fminf(fminf(c[0], c[1]), c[2]);
    float range = high - low;
    if (range == 0)
        return;
    float s = range / high, h;
    if (high == c[0])
        h = (c[1] - c[2]) / range;
    else if (high == c[1])
        h = 2 + (c[2] - c[0]) / range;
    else
        h = 4 + (c[0] - c[1]) / range;
    h = h / 6 + by;
    h = (h - floorf(h)) * 6;
    float whole = floorf(h), f = h - whole;
    float p = high * (1 - s), q = high * (1 - s * f), t = high * (1 - s * (1 - f));
    const float all[6][3] = {{high, t, p}, {q, high, p}, {p, high, t},
                             {p, q, high}, {t, p, high}, {high, p, q}};
    for (int k = 0; k < 3; k++)
        c[k] = fminf(fmaxf(all[(int)whole % 6][k], 0), 1);
}

static void turn_hues(tide_pixels x, float by) {
    for (int64_t k = 0; k < x.n; k++) {
        unsigned char *at = x.at + k;
        float c[3] = {(float)at[0] / 255, (float)at[x.n] / 255, (float)at[2 * x.n] / 255};
        turn_hue(c, by);
        for (int channel = 0; channel < 3; channel++)
            at[channel * x.n] = (unsigned char)(c[channel] * 255.999f);
    }
}

void tide_adjust(tide_pixels x, tide_adjustment what, float factor) {
    switch (what) {
    case TIDE_BRIGHTNESS:
        map(x, factor, 0);
        break;
    case TIDE_CONTRAST:
        map(x, factor, mean_grey(x) * (1 - factor));
        break;
    case TIDE_SATURATION:
        if (x.channels == 3)
            saturate(x, factor);
        break;
    case TIDE_HUE:
        if (x.channels == 3)
            turn_hues(x, factor);
        break;
    }
}

void tide_normalize(const unsigned char *at, int64_t n, float scale, float shift, float *to) {
    for (int64_t k = 0; k < n; k++)
        to[k] = (float)at[k] * scale + shift;
}
