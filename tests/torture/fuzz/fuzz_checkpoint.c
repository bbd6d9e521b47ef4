/* fuzz_checkpoint.c: tide.load of any file, mapped and read. Refusals are one line that names the
 * file; what is taken can be used and saved again. */
#include "tests/torture/fuzz/bytes.h"

static const char code[] =
    "local draft = os.tmpname()\n"
    "local function use(x, seen)\n"
    "    if type(x) == 'table' and not seen[x] then\n"
    "        seen[x] = true\n"
    "        for key, value in pairs(x) do use(key, seen) use(value, seen) end\n"
    "    elseif tide.is_tensor(x) then\n"
    "        x:sum()\n"
    "    end\n"
    "end\n"
    "return function(path, choice)\n"
    "    local ok, got = pcall(tide.load, path, {map = choice % 2 == 0})\n"
    "    if ok then\n"
    "        use(got, {})\n"
    "        if choice > 250 then pcall(tide.save, got, draft) end\n"
    "    else\n"
    "        assert(got:find('load: ', 1, true) and not got:find('\\n'), got)\n"
    "    end\n"
    "    os.remove(draft)\n"
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
