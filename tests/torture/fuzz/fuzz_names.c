/* fuzz_names.c: names in calls: devices, dtypes, choices, options, fields, help. A refusal is one
 * line. */
#include "tests/torture/fuzz/bytes.h"

static const char code[] =
    "local x = tide.ones(2, 2)\n"
    "local tries = {\n"
    "    function(s) return tide.zeros(1, {device = s}) end,\n"
    "    function(s) return tide.zeros(1, {dtype = s}) end,\n"
    "    function(s) return x:to(s) end,\n"
    "    function(s) return tide.mse_loss(x, x, {reduction = s}) end,\n"
    "    function(s) return tide.sum(x, {[s] = 1}) end,\n"
    "    function(s) return tide[s] end,\n"
    "    function(s) return x[s] end,\n"
    "    function(s) x[s] = 1 end,\n"
    "    function(s) return tide.nn[s] end,\n"
    "    function(s) return tide._doc(s) end,\n"
    "    function(s) return tide.finfo(s) end,\n"
    "    function(s) return tide.nn.class(s)() end,\n"
    "    function(s) return tide.nn.class('M')()[s] end,\n"
    "    function(s) return tide._function('f(' .. s .. ') -> any', '', print) end,\n"
    "    function(s) return tide._doc(tide._function('f(' .. s .. ') -> any', '', print)) end,\n"
    "    function(s) return tide._function('f(' .. s .. ') -> any', '', function() end)() end,\n"
    "}\n"
    "return function(text, choice)\n"
    "    local ok, got = pcall(tries[choice % #tries + 1], text)\n"
    "    assert(ok or (type(got) == 'string' and not got:find('\\n')), got)\n"
    "end\n";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    int choice = bytes_choice(&data, &size);
    bytes_call_lua(code, data, size, choice);
    return 0;
}
