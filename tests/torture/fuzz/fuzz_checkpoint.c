/* fuzz_checkpoint.c: tide.load of any file, mapped and read. Refusals are one line that names the
 * call; what is taken can be used and saved again. */
#include "tests/torture/fuzz/bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    int choice = bytes_choice(&data, &size);
    bytes_load(data, size, choice);
    return 0;
}
