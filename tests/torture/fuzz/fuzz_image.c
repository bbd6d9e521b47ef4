/* fuzz_image.c: tide.io.decode_image of any bytes, in any mode and scale; the checksums of a PNG
 * file are made right first, or nothing behind them would ever be read. Refusals are one line; what
 * is taken has as many channels as were wanted, and can be written and read again. */
#include "tests/torture/fuzz/bytes.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static const char code[] =
    "local modes = {'unchanged', 'grey', 'grey_alpha', 'rgb', 'rgba'}\n"
    "return function(bytes, choice)\n"
    "    local mode = choice % 5\n"
    "    local ok, x = pcall(tide.io.decode_image, bytes, {mode = modes[mode + 1], scale = 1 << "
    "choice // 5 % 4,\n"
    "        apply_exif_orientation = choice >= 128, max_pixels = 1 << 20})\n"
    "    if not ok then\n"
    "        assert(x:find('decode_image: ', 1, true) and not x:find('\\n'), x)\n"
    "        return\n"
    "    end\n"
    "    assert(x.dtype == tide.uint8 and (mode == 0 or x.shape[1] == mode))\n"
    "    assert(tide.io.decode_image(tide.io.encode_png(x)):equal(x))\n"
    "end\n";

static void put_big(unsigned char *at, unsigned long value) {
    for (int k = 0; k < 4; k++)
        at[k] = (unsigned char)(value >> (24 - 8 * k));
}

static void mend_checksums(unsigned char *bytes, size_t size) {
    enum { SIGNATURE = 8, AROUND = 12 };
    if (size < SIGNATURE || memcmp(bytes, "\x89PNG", 4) != 0)
        return;
    for (size_t at = SIGNATURE; size - at >= AROUND;) {
        const unsigned char *p = bytes + at;
        size_t n = (size_t)p[0] << 24 | (size_t)p[1] << 16 | (size_t)p[2] << 8 | p[3];
        if (n > size - at - AROUND)
            return;
        put_big(bytes + at + 8 + n, crc32(crc32(0, NULL, 0), bytes + at + 4, (uInt)n + 4));
        at += AROUND + n;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint8_t choice = bytes_choice(&data, &size);
    unsigned char *copy = malloc(size + 1);
    if (!copy)
        return 0;
    if (size)
        memcpy(copy, data, size);
    mend_checksums(copy, size);
    bytes_call_lua(code, copy, size, choice);
    free(copy);
    return 0;
}
