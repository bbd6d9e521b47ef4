/* fuzz_npy.c: tide.io.load_npy of any file. Refusals are one line that names the file; what is
 * taken can be used, written and read again. */
#include "tests/torture/fuzz/bytes.h"

static const char code[] =
    "local copy = os.tmpname()\n"
    "return function(path)\n"
    "    local all = table.pack(pcall(tide.io.load_npy, path))\n"
    "    if not all[1] then\n"
    "        assert(all[2]:find('load_npy: ', 1, true) and not all[2]:find('\\n'), all[2])\n"
    "        return\n"
    "    end\n"
    "    for k = 2, all.n do\n"
    "        local got = all[k]\n"
    "        tide.io.save_npy(got, copy)\n"
    "        local again = tide.io.load_npy(copy)\n"
    "        assert(again.dtype == got.dtype and again.ndim == got.ndim)\n"
    "        "
    "assert(again:to(tide.float64):nan_to_num(7):equal(got:to(tide.float64):nan_to_num(7)))\n"
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
