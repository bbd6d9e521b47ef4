-- script.lua: programs as they are written, as scripted and as compiled functions: forward, and forward with backward. One thread; script.py
-- has the same in PyTorch, as it is written and by torch.jit.script.
local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local bench = dofile(here .. "bench.lua")
local F = tide.nn.functional
local one = { threads = 1 }

-- ---- programs ----

local function tenfold(x, y)
    for _ = 1, 10 do
        x = x * y
    end
    return x
end

local function gelu_mlp(x, w1, b1, w2, b2)
    local h = x:matmul(w1) + b1
    h = h * 0.5 * (1 + (0.7978845608 * (h + 0.044715 * h * h * h)):tanh())
    return h:matmul(w2) + b2
end

local function norm_residual(x, y, weight, bias)
    local mean = x:mean(2, { keepdim = true })
    local off = x - mean
    local spread = (off * off):mean(2, { keepdim = true })
    return off / (spread + 1e-5):sqrt() * weight + bias + y
end

local function cross_entropy_by_hand(x, hot)
    local top = x:amax(2, { keepdim = true })
    local logs = x - top - (x - top):exp():sum(2, { keepdim = true }):log()
    return -(logs * hot):sum() / #x
end

local function lstm_cell(x, h, c, w, u, b)
    local all = x:matmul(w) + h:matmul(u) + b
    local i, f, g, o = table.unpack(all:chunk(4, 2))
    local new = f:sigmoid() * c + i:sigmoid() * g:tanh()
    return o:sigmoid() * new:tanh(), new
end

local function adam_by_hand(p, g, m, v)
    local avg = m * 0.9 + g * 0.1
    local square = v * 0.999 + g * g * 0.001
    return p - 0.001 * avg / (square:sqrt() + 1e-8), avg, square
end

-- Name, function, shapes of the inputs for a size, which of them train (0: none).
local PROGRAMS = {
    { "tenfold", tenfold, function(n) return { { n }, { n } } end, 2 },
    { "gelu_mlp", gelu_mlp, function(n) return { { n, 64 }, { 64, 256 }, { 256 }, { 256, 64 }, { 64 } } end, 5 },
    { "norm_residual", norm_residual, function(n) return { { n, 64 }, { n, 64 }, { 64 }, { 64 } } end, 4 },
    { "cross_entropy", cross_entropy_by_hand, function(n) return { { n, 64 }, { n, 64 } } end, 1 },
    { "lstm_cell", lstm_cell, function(n) return { { n, 64 }, { n, 64 }, { n, 64 }, { 64, 256 }, { 64, 256 }, { 256 } } end, 6 },
    { "adam", adam_by_hand, function(n) return { { n }, { n }, { n }, { n } } end, 0 },
}
local SIZES = { tenfold = { 5, 1000, 100000, 10000000 }, adam = { 100, 10000, 1000000 } }

-- Inputs of these shapes, all above 0 so that nothing is NaN or denormal.
local function inputs_of(shapes)
    local list = {}
    for k, shape in ipairs(shapes) do
        list[k] = bench.uniform(shape, 0.9, 1.1)
    end
    return list
end

local WAYS = { eager = function(fn) return fn end, scripted = tide.jit.script, compiled = tide.compile }

for _, program in ipairs(PROGRAMS) do
    local name, fn, shapes, trained = table.unpack(program)
    for _, size in ipairs(SIZES[name] or { 4, 64, 1024 }) do
        local n = bench.size(size)
        for _, way in ipairs { "eager", "scripted", "compiled" } do
            bench.made(("%s_%d_%s"):format(name, size, way), function()
                local inputs, f = inputs_of(shapes(n)), WAYS[way](fn)
                for _ = 1, bench.tiny and 2 or 100 do
                    f(table.unpack(inputs))
                end
                return function() return (f(table.unpack(inputs))) end
            end, one)
            if trained > 0 and size < 10000000 then
                bench.made(("%s_%d_backward_%s"):format(name, size, way), function()
                    local inputs, f = inputs_of(shapes(n)), WAYS[way](fn)
                    for k = 1, trained do
                        inputs[k].requires_grad = true
                    end
                    local leaves = table.move(inputs, 1, trained, 1, {})
                    local function step()
                        local y = (f(table.unpack(inputs)))
                        return tide.autograd.grad((y * y):sum(), leaves)[1]
                    end
                    for _ = 1, bench.tiny and 2 or 100 do
                        step()
                    end
                    return step
                end, one)
            end
        end
    end
end
