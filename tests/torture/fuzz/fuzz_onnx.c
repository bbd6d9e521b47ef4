/* fuzz_onnx.c: tide.onnx.load of any bytes, and a call of what was read: it answers or says in a
 * line why not. */
#include "tests/torture/fuzz/bytes.h"

#include <string.h>

static const char code[] = "return function(path)\n"
                           "    local ok, model = pcall(tide.onnx.load, path)\n"
                           "    if ok and #model.inputs <= 8 then\n"
                           "        local inputs = {}\n"
                           "        for k = 1, #model.inputs do inputs[k] = tide.ones(2, 3) end\n"
                           "        ok, model = pcall(model, table.unpack(inputs))\n"
                           "    end\n"
                           "    assert(ok or not model:find('attempt to', 1, true), model)\n"
                           "end\n";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *path = bytes_file(data, size);
    bytes_call_lua(code, (const uint8_t *)path, strlen(path), 0);
    return 0;
}
