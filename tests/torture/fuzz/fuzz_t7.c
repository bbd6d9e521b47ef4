/* fuzz_t7.c: tide.load of what Torch7 saved, in both forms, mapped and read; what it begins with is
 * the file. */
#include "tests/torture/fuzz/bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    bytes_load(data, size, 0);
    bytes_load(data, size, 1);
    return 0;
}
