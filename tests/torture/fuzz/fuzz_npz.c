/* fuzz_npz.c: tide.io.load_npz of any file. Refusals are one line that names the file; what is
 * taken can be written and read again, name by name. */
#include "tests/torture/fuzz/bytes.h"

static const char code[] =
    "local copy = os.tmpname()\n"
    "return function(path)\n"
    "    local ok, got = pcall(tide.io.load_npz, path)\n"
    "    if not ok then\n"
    "        assert(got:find('load_npz: ', 1, true) and not got:find('\\n'), got)\n"
    "        return\n"
    "    end\n"
    "    tide.io.save_npz(got, copy)\n"
    "    local again = tide.io.load_npz(copy)\n"
    "    for name, x in pairs(got) do\n"
    "        assert(again[name].dtype == x.dtype and again[name].ndim == x.ndim)\n"
    "        assert(again[name]:to(tide.float64):nan_to_num(7):equal(x:to(tide.float64)"
    ":nan_to_num(7)))\n"
    "    end\n"
    "end\n";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *path = bytes_file(data, size);
    size_t len = 0;
    while (path[len])
        len++;
    bytes_call_lua(code, (const uint8_t *)path, len, 0);
    return 0;
}
