/* fuzz_idx.c: IDX files of any bytes, packed by gzip or not. Refusals are one line that names the
 * file; what is taken has the elements that the file has bytes for. */
#include "tests/torture/fuzz/bytes.h"

#include <string.h>

static const char code[] =
    "return function(path)\n"
    "    local ok, x = pcall(tide._require('files.idx').read, 'load', path)\n"
    "    if not ok then\n"
    "        assert(x:find('load: ', 1, true) and not x:find('\\n'), x)\n"
    "        return\n"
    "    end\n"
    "    local file = io.open(path, 'rb')\n"
    "    local bytes = file:read('a')\n"
    "    file:close()\n"
    "    assert(bytes:sub(1, 2) == '\\x1F\\x8B' or x.nbytes + 4 + 4 * x.ndim == #bytes)\n"
    "    x:to(tide.float64):sum():item()\n"
    "end\n";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *path = bytes_file(data, size);
    bytes_call_lua(code, (const uint8_t *)path, strlen(path), 0);
    return 0;
}
