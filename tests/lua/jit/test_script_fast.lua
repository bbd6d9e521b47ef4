-- test_script_fast.lua: {fast = true} of trace, script and load: near what the function gives, measured by f:why(); and groups of
-- 16-bit floats and of several dtypes under autocast.
local t = require "harness"
local F = tide.nn.functional

local function chain(x, y) return ((x * y + x) * y + 1) * y end

local function check_near(what, f, dtype)
    local x, y = tide.rand(300):to(dtype), tide.rand(300):to(dtype)
    f(x, y)
    t.eq(tostring(f(x, y).dtype), tostring(dtype), what)
    t.is_true(tide.allclose(f(x, y):double(), chain(x:double(), y:double()), { rtol = 4 * tide.finfo(dtype).eps, atol = 0 }), what)
    t.is_true(tostring(f:why()):find("fast: at most [%d.e+]+ ulp from its operators") ~= nil, what)
end

t.test("fast functions are near and say how near", function()
    local traced = tide.jit.trace(chain, { tide.rand(300), tide.rand(300) }, { fast = true })
    check_near("traced", traced, tide.float32)
    for _, dtype in ipairs { tide.bfloat16, tide.float16, tide.float64 } do
        check_near("scripted", tide.jit.script(chain, { fast = true }), dtype)
    end
    local path = os.tmpname()
    tide.jit.script(chain, { fast = true }):save(path)
    check_near("loaded", tide.jit.load(path, { fast = true }), tide.float32)
    local plain, x = tide.jit.load(path), tide.rand(300)
    os.remove(path)
    t.is_true(tide.equal(plain(x, x), chain(x, x)), "a file does not say that it was fast")
    t.eq(tostring(plain:why()):find("fast", 1, true), nil)
end)

t.test("a layer's pointwise part under autocast is one group, with the bits of eager", function()
    local function block(x, w, b, r) return (F.gelu(F.linear(x, w, b)) * 0.5 + r):float() + x end
    local x, w, b, r = tide.randn(4, 8), tide.randn(8, 8), tide.randn(8), tide.randn(4, 8):bfloat16()
    for _, make in ipairs { tide.jit.script, function(fn) return tide.jit.trace(fn, { x, w, b, r }, { check = false }) end } do
        local _ <close> = tide.autocast("cpu", { dtype = tide.bfloat16 })
        local f = make(block)
        f(x, w, b, r)
        t.is_true(tide.equal(f(x, w, b, r), block(x, w, b, r)))
        local text = f:graph_for(x, w, b, r)
        t.is_true(text:find("FusionGroup_0 = graph%(.*BFloat16") ~= nil)
        t.is_true(not text:find("FusionGroup_1", 1, true), "one group")
        local fused = 0
        for _, event in ipairs(tide.profiler.profile(f, x, w, b, r):events()) do
            fused = fused + (event.name:find("^fused ") and 1 or 0)
        end
        t.is_true(fused >= 1, "it ran as one")
    end
end)

t.finish()
