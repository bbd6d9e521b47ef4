/* fuzz_jsonl.c: tide.io.read_lines and read_jsonl of any file, in a row and as a table. Refusals
 * are one line that names the file. */
#include "tests/torture/fuzz/bytes.h"

static const char code[] =
    "return function(path)\n"
    "    local function try(fn)\n"
    "        local ok, got = pcall(fn)\n"
    "        assert(ok or got:find('read_', 1, true) and not got:find('\\n'), got)\n"
    "        return ok and got\n"
    "    end\n"
    "    local lines = try(function()\n"
    "        local n = 0\n"
    "        for line, number in tide.io.read_lines(path) do\n"
    "            n = n + 1\n"
    "            assert(number == n and not line:find('\\n', 1, true))\n"
    "        end\n"
    "        return n\n"
    "    end)\n"
    "    local values = try(function()\n"
    "        local n = 0\n"
    "        for value, number in tide.io.read_jsonl(path) do n = n + 1 assert(value ~= nil and "
    "number >= n) end\n"
    "        return n\n"
    "    end)\n"
    "    assert(not values or values <= lines)\n"
    "    local rows = try(function() return tide.io.read_jsonl(path, {table = true}) end)\n"
    "    assert(not rows or values and (#rows == values or #rows:names() == 0))\n"
    "    if rows then tostring(rows) end\n"
    "end\n";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *path = bytes_file(data, size);
    size_t len = 0;
    while (path[len])
        len++;
    bytes_call_lua(code, (const uint8_t *)path, len, 0);
    return 0;
}
