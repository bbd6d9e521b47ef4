-- script.lua: programs one WAY: eager (as they are written), scripted (tide.jit.script) or compiled (tide.compile), forward and
-- forward with backward. One thread; NAME_threads are two. script.py has the same in PyTorch, and script_table.py runs all
-- ways side by side: `tests/bench/compare script`. The script's arguments: WAY, then cases.
local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local way = arg and table.remove(arg, 1) or "eager"
local bench = dofile(here .. "bench.lua")

-- ---- programs ----

local programs = dofile(here .. "script_programs.lua")

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
    { "tenfold", programs.tenfold, function(n) return { { n }, { n } } end, 2, { 5, 1000, 100000, 10000000 } },
    { "gelu_mlp", programs.gelu_mlp, function(n) return { { n, 64 }, { 64, 256 }, { 256 }, { 256, 64 }, { 64 } } end, 5 },
    { "norm_residual", programs.norm_residual, function(n) return { { n, 64 }, { n, 64 }, { 64 }, { 64 } } end, 4, { 4, 64, 1024, 16384 } },
    { "norm_dropout", programs.norm_dropout, function(n) return { { n, 64 }, { n, 64 }, { 64 }, { 64 } } end, 4, { 4, 64, 1024 } },
    { "cross_entropy", programs.cross_entropy_by_hand, function(n) return { { n, 64 }, { n, 64 } } end, 1 },
    { "lstm_cell", programs.lstm_cell, function(n) return { { n, 64 }, { n, 64 }, { n, 64 }, { 64, 256 }, { 64, 256 }, { 256 } } end, 6 },
    { "adam", programs.adam_by_hand, function(n) return { { n }, { n }, { n }, { n } } end, 0, { 100, 10000, 1000000 } },
    { "adam20", programs.adam_lists, function(n) return { { n }, { n }, { n }, { n } } end, 0, { 100, 10000 }, lists = 20 },
    { "box_iou", programs.box_iou, function(n) return { { n }, { n }, { n }, { n } } end, 0, { 100, 1000 } },
    { "resnet_block", programs.resnet_block, function(n) return block(n, { { 16 }, { 16 } }) end, 0, { 1, 16 } },
    { "resnet_training", programs.resnet_training, function(n) return block(n, {}) end, 7, { 1, 16 } },
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
