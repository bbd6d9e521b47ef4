/* fuzz_wav.c: tide.io.read_audio of any file, whole and in part. Refusals are one line that names
 * the file; what is taken has the frames of its part at the same place, and can be written again.
 */
#include "tests/torture/fuzz/bytes.h"

#include <string.h>

static const char code[] =
    "local copy = os.tmpname()\n"
    "return function(path)\n"
    "    local ok, x, rate = pcall(tide.io.read_audio, path)\n"
    "    if not ok then\n"
    "        assert(x:find('read_audio: ', 1, true) and not x:find('\\n'), x)\n"
    "        return\n"
    "    end\n"
    "    assert(x.dtype == tide.float32 and x.ndim == 2 and x.shape[1] > 0 and rate > 0)\n"
    "    local n = x.shape[2]\n"
    "    local part = tide.io.read_audio(path, {offset = n // 2, frames = 3})\n"
    "    assert(part:nan_to_num(7):equal(x:narrow(2, n // 2 + 1, math.min(3, n - n // "
    "2)):nan_to_num(7)))\n"
    "    if x.shape[1] < 100 and rate < 1000000 then\n"
    "        tide.io.write_wav(x, copy, rate, {bits = 64, float = true})\n"
    "        assert(tide.io.read_audio(copy):nan_to_num(7):equal(x:nan_to_num(7)))\n"
    "    end\n"
    "end\n";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *path = bytes_file(data, size);
    bytes_call_lua(code, (const uint8_t *)path, strlen(path), 0);
    return 0;
}
