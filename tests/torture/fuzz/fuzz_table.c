/* fuzz_table.c: tide.io.read_table of any file, whole and in pieces, with its options. Refusals are
 * one line that names the file; pieces are the whole, and what was taken is written and read again.
 */
#include "tests/torture/fuzz/bytes.h"

static const char code[] =
    "local copy = os.tmpname()\n"
    "local function same(a, b)\n"
    "    if tide.is_tensor(a) then\n"
    "        return a.dtype == b.dtype and (a.dtype == tide.bool and a:equal(b) or a.dtype ~= "
    "tide.bool\n"
    "            and a:to(tide.float64):nan_to_num(7):equal(b:to(tide.float64):nan_to_num(7)))\n"
    "    end\n"
    "    return table.concat(a:tolist(), '|') == table.concat(b:tolist(), '|')\n"
    "end\n"
    "local function texts(c)\n"
    "    local list = c:tolist()\n"
    "    for k, v in ipairs(list) do list[k] = tostring(v) end\n"
    "    return table.concat(list, '|')\n"
    "end\n"
    "return function(path, choice)\n"
    "    local options = {}\n"
    "    if choice % 2 == 1 then options.header = choice % 4 == 1 end\n"
    "    if choice // 4 % 2 == 1 then options.comment = '#' end\n"
    "    if choice // 8 % 2 == 1 then options.thousands = \"'\" end\n"
    "    options.skip = choice // 16 % 4\n"
    "    local ok, got = pcall(tide.io.read_table, path, options)\n"
    "    if not ok then\n"
    "        assert(got:find('read_table', 1, true) and not got:find('\\n'), got)\n"
    "        return\n"
    "    end\n"
    "    tostring(got)\n"
    "    got:describe()\n"
    "    options.chunk = 1 + choice // 64\n"
    "    local at = 0\n"
    "    for part in tide.io.read_table(path, options) do\n"
    "        for _, name in ipairs(got:names()) do\n"
    "            local a, b = got:rows(at + 1, at + #part):column(name), part:column(name)\n"
    "            assert(tide.is_tensor(a) and same(a, b) or not tide.is_tensor(a) and texts(a) == "
    "texts(b), name)\n"
    "        end\n"
    "        at = at + #part\n"
    "    end\n"
    "    assert(at == #got)\n"
    "    if at == 0 then return end\n"
    "    got:write_csv(copy)\n"
    "    local types = {}\n"
    "    for k, name in ipairs(got:names()) do\n"
    "        local c = got:column(name)\n"
    "        types[k] = not tide.is_tensor(c) and 'text' or c.dtype == tide.int64 and 'int' or "
    "c.dtype == tide.bool and 'bool' or 'float'\n"
    "    end\n"
    "    local again = tide.io.read_table(copy, {header = true, delimiter = ',', decimal = '.', "
    "types = types})\n"
    "    for _, name in ipairs(got:names()) do\n"
    "        local a, b = got:column(name), again:column(name)\n"
    "        assert(tide.is_tensor(a) and same(a, b) or not tide.is_tensor(a) and texts(a) == "
    "texts(b), name)\n"
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
