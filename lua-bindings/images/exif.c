/* exif.c: the orientation in a block of EXIF's; see images.h. The block is a TIFF file: an order of
 * bytes, the place of the first directory, and entries of 12 bytes. */
#include "lua-bindings/images/images.h"

#include <string.h>

typedef struct block {
    const unsigned char *bytes;
    size_t size;
    bool little;
} block;

/* `n` bytes at a place, as a number; 0 beyond the end. */
static uint32_t number_at(const block *b, size_t at, size_t n) {
    uint32_t value = 0;
    if (at > b->size || n > b->size - at)
        return 0;
    for (size_t k = 0; k < n; k++)
        value |= (uint32_t)b->bytes[at + k] << 8 * (b->little ? k : n - 1 - k);
    return value;
}

int tide_exif_orientation(const unsigned char *bytes, size_t size) {
    enum { MAGIC = 42, ENTRY = 12, ORIENTATION = 0x0112, SHORT = 3 };
    block b = {bytes, size, size > 2 && !memcmp(bytes, "II", 2)};
    size_t directory = number_at(&b, 4, 4), n = number_at(&b, directory, 2);
    if (size < 8 || (!b.little && memcmp(bytes, "MM", 2) != 0) || number_at(&b, 2, 2) != MAGIC)
        return 1;
    for (size_t k = 0, at = directory + 2; k < n && at < size; k++, at += ENTRY) {
        uint32_t value = number_at(&b, at + 8, 2);
        if (number_at(&b, at, 2) == ORIENTATION && number_at(&b, at + 2, 2) == SHORT)
            return value >= 1 && value <= 8 ? (int)value : 1;
    }
    return 1;
}
