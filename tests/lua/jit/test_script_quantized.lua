-- test_script_quantized.lua: scripts and traces that are given quantized tensors: what they say of these is what the tensors say.
local t = require "harness"

local bytes = tide.quantize_per_tensor(tide.tensor { { -1.0, 0.25, 0.7 }, { 2.0, 0.5, -0.3 } }, 0.1, 10, tide.quint8)
local by_channel = tide.quantize_per_channel(tide.randn(2, 3), tide.tensor { 0.1, 0.2 }, tide.tensor { 0, 1 }, 1, tide.qint8)
local floats = tide.randn(2, 3)
local script = tide.jit.script

-- fn in a script and without give the same of each tensor, an error too.
local function same(fn, ...)
    local scripted = script(fn)
    for _, x in ipairs { ... } do
        local want, got = table.pack(pcall(fn, x)), table.pack(pcall(scripted, x))
        t.eq(got.n, want.n)
        for k = 1, want[1] and want.n or 1 do
            t.eq(got[k], want[k])
        end
    end
end

t.test("a_script_tells_the_dtype_of_a_quantized_tensor", function()
    same(function(x) return x.dtype end, bytes, by_channel, floats, bytes:int_repr())
    same(function(x) return tostring(x.dtype) end, bytes, by_channel, floats, tide.ones(2):bool())
    same(function(x) return x.dtype == tide.quint8, x.dtype == tide.uint8, x.dtype ~= tide.qint8 end, bytes, by_channel, bytes:int_repr(), by_channel:int_repr())
    local given = script(function(x, d) return x.dtype == d, d end, { types = "Tensor, dtype" })
    t.eq({ given(bytes, tide.quint8) }, { true, tide.quint8 })
    t.eq({ given(bytes, tide.uint8) }, { false, tide.uint8 })
end)

t.test("a_script_tells_how_a_tensor_is_quantized", function()
    same(function(x) return x.is_quantized, x.device, x:is_contiguous(), x:is_floating_point() end, bytes, by_channel, bytes:t(), floats)
    same(function(x) return x:q_scale(), x:q_zero_point() end, bytes, by_channel, floats)
    same(function(x) return x:qscheme() .. "!" end, bytes, by_channel, floats)
    t.refused("q_scale: x is per_channel_affine, whose parameters stand by channel", script(function(x) return x:q_scale() end), by_channel)
    t.refused("q_zero_point: x is float32: a quantized tensor expected", script(function(x) return x:q_zero_point() end), floats)
end)

-- What a tensor's parameters are is asked for where it is written: a copy may change them.
t.test("parameters_are_read_behind_what_changes_them", function()
    local function fn(x, y)
        local before = x:q_scale()
        x:copy_(y)
        return before, x:q_scale()
    end
    local function given() return tide.quantize_per_tensor(floats, 0.5, 3, tide.quint8), bytes end
    t.eq({ script(fn)(given()) }, { fn(given()) })
    t.eq({ fn(given()) }, { 0.5, 0.1 })
end)

t.test("a_dtype_of_quantized_tensors_is_taken_where_it_fits", function()
    local y = script(function(x) return tide.quantize_per_tensor(x, 0.1, 10, tide.quint8) end)(floats)
    t.is_true(tide.equal(y, tide.quantize_per_tensor(floats, 0.1, 10, tide.quint8)))
    local code = script(function(x) return x.dtype == tide.qint32 end)
    t.is_true(code.code:find("tide.qint32", 1, true) ~= nil)
    local path = os.tmpname()
    code:save(path)
    t.eq(tide.jit.load(path)(bytes), false)
    os.remove(path)
    t.refused("prim::Constant of dtype qint32 has no form in C", tide.jit.emit_c, code)
    t.refused("zeros: dtype can't be a dtype of quantized tensors", script(function(x) return tide.zeros(3, { dtype = x.dtype }) end), bytes)
    t.refused("to: dtype can't be a dtype of quantized tensors", script(function(x, y) return x:to(y.dtype) end), floats, bytes)
    t.refused("expected a dtype of floats such as tide.bfloat16, got tide.qint8",
        script, function(x) return tide.autocast("cpu", function() return x:matmul(x) end, { dtype = tide.qint8 }) end)
    t.refused("to: argument 2 (dtype): expected a dtype such as tide.float32, got tide.qint8", floats.to, floats, tide.qint8)
end)

t.test("graphs_with_quantized_tensors_run_as_the_calls_do", function()
    local function fn(x) return tide.cat { x, bytes }:relu() end
    local traced = tide.jit.trace(fn, { bytes })
    t.is_true(tide.equal(traced(bytes), fn(bytes)))
    t.is_true(tide.equal(script(fn)(bytes), fn(bytes)))
    local rows = tide.jit.trace(function(x) return x[":, :2"], x:dequantize() end, { by_channel })
    t.is_true(tide.equal(rows(by_channel), by_channel[":, :2"]))
    local calls = 0
    local function counting(x)
        calls = calls + 1
        return tide.cat { x, tide.quantize_per_tensor(tide.full({ 1, 3 }, calls * 1.0), 0.1, 10, tide.quint8) }
    end
    t.refused("result 1 differs from its graph's by up to 1", tide.jit.trace, counting, { bytes })
    t.eq(tostring(traced.graph):find("Byte", 1, true), nil, "their integers' dtype is not theirs")
    for _, made in ipairs { traced, script(fn) } do
        t.refused("a constant is a quantized tensor, which no file holds", made.save, made, os.tmpname())
    end
    local compiled = tide.compile(function(x) return x.dtype, x:relu(), x:q_scale() end)
    for _ = 1, 3 do
        local dtype, y, scale = compiled(bytes)
        t.eq({ dtype, scale }, { tide.quint8, 0.1 })
        t.is_true(tide.equal(y, bytes:relu()))
    end
end)

t.finish()
