-- test_quantized_digests.lua: a ResNet-18 of bytes gives one and the same bits by whatever instructions, and on any number of threads.
-- Its weights and scales are made once, since floats that calibrate it may differ in their last bits.
local t = require "harness"

local BUILD <const> = [[
local resnet = dofile(os.getenv "TIDE_SOURCE" .. "/notebooks/networks/resnet.lua")
tide.manual_seed(0)
local net = resnet.new(18, { classes = 10, channels = 3, width = 16, small = true }):eval()
local prepared = tide.quantization.prepare(resnet.fused(net))
local x = (tide.arange(2 * 3 * 16 * 16) * 7919 % 509):float():view(2, 3, 16, 16) / 256 - 1
tide.no_grad(function() prepared(x) end)
local bytes = tide.quantization.convert(prepared)
]]
local SAVE <const> = BUILD .. "tide.save(bytes:state_dict(), arg[1])"
local RUN <const> = BUILD .. [[
bytes:load_state_dict(tide.load(arg[1]))
local bits = {}
for k, y in ipairs(tide.no_grad(function() return bytes(x) end):flatten():tolist()) do
    bits[k] = ("%a"):format(y)
end
print(table.concat(bits, " "))
]]

-- What a program prints, in an environment; nil where the processor or the build has no such instructions.
local function run(source, settings, argument)
    local path = os.tmpname()
    local file = assert(io.open(path, "w"))
    file:write(source)
    file:close()
    local pipe = io.popen(("%s '%s' %s %s 2>&1"):format(settings, os.getenv "TIDE", path, argument))
    local text = pipe:read "a"
    local done = pipe:close()
    os.remove(path)
    if not done and text:find "TIDE_CPU=%w+: " then
        return nil
    end
    t.is_true(done, text)
    return text
end

t.test("a_resnet_of_bytes_has_one_digest", function()
    local weights = os.tmpname() .. ".safetensors"
    run(SAVE, "TIDE_CPU=baseline", weights)
    local first = run(RUN, "TIDE_CPU=baseline TIDE_NUM_THREADS=1", weights)
    t.is_true(select(2, first:gsub("0x", "")) == 20, first)
    for _, isa in ipairs { "baseline", "avx2", "avx512" } do
        for _, threads in ipairs { 1, 2, 3 } do
            local again = run(RUN, ("TIDE_CPU=%s TIDE_NUM_THREADS=%d"):format(isa, threads), weights)
            t.eq(again or first, first, isa)
        end
    end
    os.remove(weights)
end)
