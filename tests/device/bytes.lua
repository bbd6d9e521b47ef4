-- bytes.lua: `tide tests/device/bytes.lua`: products of bytes and of weights of few bits beside float32 and float16 on a device.
-- Lines of JSON: microseconds of a call, the least of four rounds, and whether the bits are the CPU's. TIDE_BENCH_TINY: small,
-- for a device that is played.
local tiny = os.getenv "TIDE_BENCH_TINY"
local nn = tide.nn
local _ <close> = tide.no_grad()

-- Microseconds of a call of fn.
local function measure(fn)
    local best, calls = math.huge, tiny and 1 or 30
    for round = 0, 4 do
        tide.cuda.synchronize()
        local start = tide.time()
        for _ = 1, calls do
            fn()
        end
        tide.cuda.synchronize()
        best = round > 0 and math.min(best, (tide.time() - start) / calls * 1e6) or best
    end
    return best
end

-- Forms of a layer of floats by name: how it is made, and what x is given to it.
local function tell(case, forms, x)
    local parts, same = {}, true
    for _, form in ipairs(forms) do
        local name, layer, given = form[1], form[2], form[3] or x
        local here = name:find "float" == nil and not tiny and layer(given)
        layer = layer:cuda()
        local moved = given:cuda()
        same = same and (not here or tide.equal(layer(moved):cpu(), here))
        parts[#parts + 1] = ('"%s_us": %.1f'):format(name, measure(function() return layer(moved) end))
    end
    print(('{"by": "tide", "case": "%s", %s, "same_bits": %s}'):format(case, table.concat(parts, ", "), same))
end

local function quantized(x) return tide.quantize_per_tensor(x, 0.05, 100, tide.quint8) end

local HOW <const> = { scale = 0.05, zero_point = 100 }
for _, shape in ipairs(tiny and { { 4, 32, 32 } } or { { 1, 1024, 1024 }, { 16, 1024, 1024 }, { 256, 1024, 1024 }, { 1, 4096, 4096 }, { 4096, 4096, 4096 } }) do
    local rows, from, to = table.unpack(shape)
    local layer, x = nn.Linear(from, to), tide.randn(rows, from)
    tell(("linear %d x %d to %d"):format(rows, from, to), {
        { "float32", layer:clone() },
        { "float16", layer:clone():half(), x:half() },
        { "int8_static", nn.quantized.Linear.from_float(layer, HOW), quantized(x) },
        { "int8_dynamic", nn.quantized.dynamic.Linear.from_float(layer) },
        { "int8_weights", nn.quantized.WeightOnlyLinear.from_float(layer) },
        { "int4_weights", nn.quantized.WeightOnlyLinear.from_float(layer, { dtype = "int4" }) },
    }, x)
end
for _, shape in ipairs(tiny and { { 1, 8, 8, 6, 3, 1 } } or { { 32, 64, 64, 56, 3, 1 }, { 32, 256, 512, 14, 1, 1 }, { 32, 512, 512, 7, 3, 1 }, { 32, 144, 144, 56, 3, 144 } }) do
    local batch, from, to, side, kernel, groups = table.unpack(shape)
    local layer = nn.Conv2d(from, to, kernel, { padding = kernel // 2, groups = groups })
    local x = tide.randn(batch, from, side, side):to { memory_format = tide.channels_last }
    tell(("conv %d x %d to %d, %d x %d, kernel %d, %d groups"):format(batch, from, to, side, side, kernel, groups), {
        { "float32", layer:clone() },
        { "float16", layer:clone():half(), x:half() },
        { "int8_static", nn.quantized.Conv2d.from_float(layer, HOW), quantized(x) },
    }, x)
end
