/* fuzz_csv.c: tide.io.read_csv of any file, into every dtype, with a header, classes and gaps.
 * Refusals are one line that names the file; what was taken is written and read again, to the same
 * elements. */
#include "tests/torture/fuzz/bytes.h"

static const char code[] =
    "local dtypes = {tide.float32, tide.int64, tide.uint8, tide.float64, tide.bool, tide.float16,\n"
    "                tide.int8, tide.int32}\n"
    "local delimiters = {',', ';', ' ', '\\t', 'e', '.', '-', '\\0'}\n"
    "local copy = os.tmpname()\n"
    "return function(path, choice)\n"
    "    local options = {dtype = dtypes[choice % 8 + 1], delimiter = delimiters[choice // 8 % 8 + "
    "1],\n"
    "                     header = choice > 127}\n"
    "    if choice // 64 % 2 == 1 then options.classes, options.missing = {1}, 0 end\n"
    "    local ok, got, info = pcall(tide.io.read_csv, path, options)\n"
    "    if not ok then\n"
    "        assert(got:find('read_csv', 1, true) and not got:find('\\n'), got)\n"
    "        return\n"
    "    end\n"
    "    assert(got.ndim == 2 and got:numel() > 0 and got.dtype == options.dtype)\n"
    "    local names, classes = info and info.names, info and info.classes[1]\n"
    "    tide.io.write_csv(got, copy, {header = names, classes = classes and {classes}})\n"
    "    options.delimiter, options.classes = ',', classes and {classes}\n"
    "    local again, second = tide.io.read_csv(copy, options)\n"
    "    assert(again:nan_to_num(7):equal(got:nan_to_num(7)))\n"
    "    for k, name in ipairs(names or {}) do assert(second.names[k] == name) end\n"
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
