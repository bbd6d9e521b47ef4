/* fuzz_tar.c: tide.data.tar and tide.io.open_tar of any file. Refusals are one line that names the
 * file; both find the same files, and samples are written and read again. */
#include "tests/torture/fuzz/bytes.h"

static const char code[] =
    "local copy = os.tmpname()\n"
    "local function refusal(text) assert(text:find('tar: ', 1, true) and not text:find('\\n'), "
    "text) end\n"
    "return function(path)\n"
    "    local ok, archive = pcall(tide.io.open_tar, path)\n"
    "    if ok then\n"
    "        for _, name in ipairs(archive:names()) do archive:read(name) end\n"
    "    else\n"
    "        refusal(archive)\n"
    "    end\n"
    "    local samples = {}\n"
    "    local fine, why = pcall(function()\n"
    "        for sample in tide.data.tar(path, {decode = false}):iter() do samples[#samples + 1] = "
    "sample end\n"
    "    end)\n"
    "    if not fine then return refusal(why) end\n"
    "    local written, what = pcall(tide.data.write_tar, samples, copy)\n"
    "    if not written then return refusal(what) end\n"
    "    local k = 0\n"
    "    for sample in tide.data.tar(copy, {decode = false}):iter() do\n"
    "        k = k + 1\n"
    "        if samples[k].__key__ == (samples[k + 1] or {}).__key__ then return end\n"
    "        for field, bytes in pairs(samples[k]) do assert(sample[field] == bytes, field) end\n"
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
