-- script.lua: programs one WAY: eager (as they are written), scripted (tide.jit.script) or compiled (tide.compile), forward and
-- forward with backward. One thread; NAME_threads are two. script.py has the same in PyTorch, and script_table.py runs all
-- ways side by side: `tests/bench/compare script`. The script's arguments: WAY, then cases.
local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local way = arg and table.remove(arg, 1) or "eager"
local bench = dofile(here .. "bench.lua")
local F = tide.nn.functional

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

local function norm_dropout(x, y, weight, bias)
    local h = F.layer_norm(x, { 64 }, weight, bias)
    return F.dropout(h, 0.1, true) + y
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

-- Lists of parameters, gradients, means and squares: what they become.
local function adam_lists(ps, gs, ms, vs) --: Tensor[], Tensor[], Tensor[], Tensor[]
    local new, avgs, squares = {}, {}, {}
    for k = 1, #ps do
        local avg = ms[k] * 0.9 + gs[k] * 0.1
        local square = vs[k] * 0.999 + gs[k] * gs[k] * 0.001
        table.insert(new, ps[k] - 0.001 * avg / (square:sqrt() + 1e-8))
        table.insert(avgs, avg)
        table.insert(squares, square)
    end
    return new, avgs, squares
end

-- How many boxes each box covers by more than half; boxes are columns x1, y1, x2, y2.
local function box_iou(x1, y1, x2, y2)
    local area, total = (x2 - x1) * (y2 - y1), (x1 * 0):sum()
    for k = 1, #x1 do
        local w = (x2:minimum(x2[k]) - x1:maximum(x1[k])):clamp(0)
        local h = (y2:minimum(y2[k]) - y1:maximum(y1[k])):clamp(0)
        local both = w * h
        total = total + (both / (area + area[k] - both)):gt(0.5):sum()
    end
    return total
end

local function resnet_block(x, w1, g1, b1, w2, g2, b2, mean, var)
    local h = F.relu(F.batch_norm(F.conv2d(x, w1, nil, 1, 1), mean, var, g1, b1))
    h = F.batch_norm(F.conv2d(h, w2, nil, 1, 1), mean, var, g2, b2)
    return F.relu(h + x)
end

local function resnet_training(x, w1, g1, b1, w2, g2, b2)
    local h = F.relu(F.batch_norm(F.conv2d(x, w1, nil, 1, 1), nil, nil, g1, b1, true))
    h = F.batch_norm(F.conv2d(h, w2, nil, 1, 1), nil, nil, g2, b2, true)
    return F.relu(h + x)
end

local function single_add(x, y) return x + y end
local function copied(x) return x:clone() end

-- ---- cases ----

local function block(n, extra)
    local shapes = { { n, 16, 14, 14 }, { 16, 16, 3, 3 }, { 16 }, { 16 }, { 16, 16, 3, 3 }, { 16 }, { 16 } }
    return table.move(extra, 1, #extra, #shapes + 1, shapes)
end

-- Name, function, shapes of the inputs for a size, which of them train (0: none), sizes; `only`: the one way that has it,
-- `lists`: tensors of each input, which is a list then.
local PROGRAMS = {
    { "add", single_add, function(n) return { { n }, { n } } end, 0, { 5, 1000, 100000 }, only = "eager" },
    { "copy", copied, function(n) return { { n } } end, 0, { 10000000 }, only = "eager" },
    { "tenfold", tenfold, function(n) return { { n }, { n } } end, 2, { 5, 1000, 100000, 10000000 } },
    { "gelu_mlp", gelu_mlp, function(n) return { { n, 64 }, { 64, 256 }, { 256 }, { 256, 64 }, { 64 } } end, 5 },
    { "norm_residual", norm_residual, function(n) return { { n, 64 }, { n, 64 }, { 64 }, { 64 } } end, 4, { 4, 64, 1024, 16384 } },
    { "norm_dropout", norm_dropout, function(n) return { { n, 64 }, { n, 64 }, { 64 }, { 64 } } end, 4, { 4, 64, 1024 } },
    { "cross_entropy", cross_entropy_by_hand, function(n) return { { n, 64 }, { n, 64 } } end, 1 },
    { "lstm_cell", lstm_cell, function(n) return { { n, 64 }, { n, 64 }, { n, 64 }, { 64, 256 }, { 64, 256 }, { 256 } } end, 6 },
    { "adam", adam_by_hand, function(n) return { { n }, { n }, { n }, { n } } end, 0, { 100, 10000, 1000000 } },
    { "adam20", adam_lists, function(n) return { { n }, { n }, { n }, { n } } end, 0, { 100, 10000 }, lists = 20 },
    { "box_iou", box_iou, function(n) return { { n }, { n }, { n }, { n } } end, 0, { 100, 1000 } },
    { "resnet_block", resnet_block, function(n) return block(n, { { 16 }, { 16 } }) end, 0, { 1, 16 } },
    { "resnet_training", resnet_training, function(n) return block(n, {}) end, 7, { 1, 16 } },
}

-- Inputs of these shapes, all above 0 so that nothing is NaN or denormal.
local function inputs_of(shapes, lists)
    local list = {}
    for k, shape in ipairs(shapes) do
        if lists then
            list[k] = {}
            for j = 1, lists do
                list[k][j] = bench.uniform(shape, 0.9, 1.1)
            end
        else
            list[k] = bench.uniform(shape, 0.9, 1.1)
        end
    end
    return list
end

local known, compile = pcall(function() return tide.compile end)
local WAYS = {
    eager = function(fn) return fn end,
    scripted = function(fn) return tide.jit.script(fn) end,
    compiled = known and compile or nil,
}
if not WAYS[way] then
    os.exit() -- has no cases
end

-- Calls until what is made while the program runs has been made.
local function warm(step)
    local stop, calls = tide.time() + (bench.tiny and 0 or 0.3), 0
    repeat
        step()
        calls = calls + 1
    until calls >= 2 and tide.time() > stop
end

-- Bytes of tensors that a call needs at one time, above what was there.
local function peak_of(step)
    collectgarbage()
    local before = tide.memory_stats().allocated
    tide.reset_peak_memory_stats()
    step()
    return tide.memory_stats().peak - before
end

local function forward(f, inputs)
    return function() return (f(table.unpack(inputs))) end
end

local function backward(f, inputs, trained)
    for k = 1, trained do
        inputs[k].requires_grad = true
    end
    local leaves = table.move(inputs, 1, trained, 1, {})
    return function()
        local y = (f(table.unpack(inputs)))
        return tide.autograd.grad((y * y):sum(), leaves)[1]
    end
end

local function case(name, program, size, train, threads)
    local _, fn, shapes, trained = table.unpack(program)
    bench.made(name, function(facts)
        local inputs = inputs_of(shapes(bench.size(size)), program.lists)
        local f = WAYS[way](fn)
        local step = train and backward(f, inputs, trained) or forward(f, inputs)
        warm(step)
        facts.peak_bytes = peak_of(step)
        return step
    end, { threads = threads })
end

for _, program in ipairs(PROGRAMS) do
    local name, trained = program[1], program[4]
    local sizes = program.only and program.only ~= way and {} or program[5] or { 4, 64, 1024 }
    for _, size in ipairs(sizes) do
        case(("%s_%d"):format(name, size), program, size, false, 1)
        if size == sizes[#sizes] and not program.only then
            case(("%s_%d_threads"):format(name, size), program, size, false, 2)
        end
        if trained > 0 and size < 10000000 then
            case(("%s_%d_backward"):format(name, size), program, size, true, 1)
        end
    end
end
