/* fuzz_index.c: index strings such as x["2:3, nil, ..."], read and written, alone and in tables.
 * What is read is a view of what is there, and a refusal is one line. */
#include "tests/torture/fuzz/bytes.h"

static const char code[] =
    "local x = tide.arange(24):reshape(2, 3, 4)\n"
    "local shapes = {x, tide.tensor(1), x:transpose(1, 3), x[1][1], tide.zeros(0, 2)}\n"
    "local function try(f, ...)\n"
    "    local ok, got = pcall(f, ...)\n"
    "    assert(ok or (type(got) == 'string' and not got:find('\\n')), got)\n"
    "    return ok and got\n"
    "end\n"
    "return function(text, choice)\n"
    "    local y = shapes[choice % #shapes + 1]\n"
    "    local part = try(function() return y[text] end)\n"
    "    if part and type(part) ~= 'function' and tide.is_tensor(part) then\n"
    "        assert(part:numel() <= y:numel())\n"
    "        assert(part:numel() == 0 or part:max():item() <= 24)\n"
    "    end\n"
    "    try(function() return y[{text}] end)\n"
    "    try(function() return y[{1, text}] end)\n"
    "    try(function() return y[{text, tide.tensor{1}:long()}] end)\n"
    "    try(function() return y[{text, tide.ones(2):bool()}] end)\n"
    "    local z = y:clone()\n"
    "    try(function() z[text] = 7 end)\n"
    "    try(function() z[{text, text}] = tide.ones(2) end)\n"
    "end\n";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    int choice = bytes_choice(&data, &size);
    bytes_call_lua(code, data, size, choice);
    return 0;
}
