/* fuzz_csv.c: tide.io.read_csv of any file, into every dtype. Refusals are one line that names the
 * file. */
#include "tests/torture/fuzz/bytes.h"

static const char code[] =
    "local dtypes = {tide.float32, tide.int64, tide.uint8, tide.float64, tide.bool, tide.float16,\n"
    "                tide.int8, tide.int32}\n"
    "local delimiters = {',', ';', ' ', '\\t', 'e', '.', '-', '\\0'}\n"
    "return function(path, choice)\n"
    "    local options = {dtype = dtypes[choice % 8 + 1], delimiter = delimiters[choice // 8 % 8 + "
    "1],\n"
    "                     header = choice > 127}\n"
    "    local ok, got = pcall(tide.io.read_csv, path, options)\n"
    "    if ok then\n"
    "        assert(got.ndim == 2 and got:numel() > 0 and got.dtype == options.dtype)\n"
    "    else\n"
    "        assert(got:find('read_csv', 1, true) and not got:find('\\n'), got)\n"
    "    end\n"
    "end\n";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    int choice = bytes_choice(&data, &size);
    const char *path = bytes_file(data, size);
    size_t len = 0;
    while (path[len])
        len++;
    bytes_call_lua(code, (const uint8_t *)path, len, choice);
    return 0;
}
