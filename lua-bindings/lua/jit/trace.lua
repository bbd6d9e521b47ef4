-- jit/trace.lua: tracing a function and checking what was traced. The recording itself is C (lua-bindings/script/script_trace.c);
-- here are the names of inputs, the warnings, and the comparison with the function on other numbers.
local tide = ...
local fail, script = tide._fail, tide._script
local trace = {}

-- ---- names ----

local function function_of(fn)
    local depth = 0
    while type(fn) ~= "function" and depth < 8 do
        local forward = type(fn) == "table" and fn.forward
        fn = forward or (debug.getmetatable(fn) or {}).__call
        depth = depth + 1
    end
    return fn
end

local function is_module(fn) return type(fn) == "table" and type(fn.forward) == "function" end

local function input_names(fn, n)
    local names, first = {}, type(fn) == "function" and 0 or 1
    local body = function_of(fn)
    for k = 1, n do
        names[k] = type(body) == "function" and debug.getlocal(body, k + first) or "input" .. k
    end
    return names
end

local function name_of(fn)
    local name = is_module(fn) and rawget(getmetatable(fn) or {}, "__name")
    return type(name) == "string" and name or "traced"
end

-- ---- warnings ----

local REASONS = {
    item = "item() reads a number of a traced tensor: it is fixed in the graph",
    tolist = "tolist() reads the elements of a traced tensor: they are fixed in the graph",
    equal = "a comparison of traced tensors: what it decides is fixed in the graph",
    shape = "the shape of a traced tensor is read: it is fixed in the graph",
    size = "the size of a traced tensor is read: it is fixed in the graph",
    numel = "the number of elements of a traced tensor is read: it is fixed in the graph",
    ["#"] = "the length of a traced tensor is read: it is fixed in the graph",
    modes = "the function changes the grad mode or autocast in which trace was called, which the graph doesn't hold: call trace "
        .. "outside of them",
}
for _, name in ipairs { "lt", "le", "gt", "ge" } do
    REASONS[name] = "a comparison of a traced tensor: what it decides is fixed in the graph"
end

--- reason(note): what a note of a trace means, in words.
function trace.reason(note)
    return REASONS[note.what] or string.format("%s() answers with a value of Lua's: it is fixed in the graph", note.what)
end

local warned = {} -- place and what -> true

local function warn_of(notes)
    for _, note in ipairs(notes) do
        local key = note.place .. note.what
        if not warned[key] then
            warned[key] = true
            warn(string.format("tide: trace: %s: %s", note.place, trace.reason(note)))
        end
    end
end

-- ---- inputs ----

-- A tensor of its own: constants are told from inputs, and what the function writes does not reach the caller's.
local function copy(x)
    local y = x:detach():clone()
    return x.requires_grad and y:requires_grad_() or y
end

local function copies(inputs)
    local list = {}
    for k, x in ipairs(inputs) do
        list[k] = copy(x)
    end
    return list
end

local TRIALS = 3

-- Other numbers: in the range of these, so that what takes them takes the others, mirrored or drawn; and with other signs.
local function other_floats(x, how, generator)
    local low, high = x:min():item(), x:max():item()
    if not (low - high == 0 or low < high) then -- NaN or infinities
        return x:clone()
    end
    if how == TRIALS then
        return -x
    elseif how == 1 then
        return low == high and (low == 0 and x + 0.5 or -x) or low + high - x
    elseif low == high then
        low, high = low / 2, low == 0 and 1 or low
    end
    return tide.rand(x.shape, { generator = generator, dtype = x.dtype, device = x.device }) * (high - low) + low
end

local function others(inputs, how, generator)
    local list = {}
    for k, input in ipairs(inputs) do
        local x = input:detach()
        if x:numel() == 0 then
            x = x:clone()
        elseif x.dtype == tide.bool then
            x = how == 1 and ~x or x:clone()
        elseif x.is_quantized then
            x = x:dim() > 0 and x:qscheme() == "per_tensor_affine" and x:flip(how % x:dim() + 1) or x:clone()
        elseif not x:is_floating_point() then
            x = x:flatten():flip(1):reshape(x.shape) -- values that are indices stay so
        else
            x = other_floats(x, how, generator):to(x.dtype)
        end
        list[k] = input.requires_grad and x:requires_grad_() or x
    end
    return list
end

-- ---- the check ----

local function flatten(results)
    local list = {}
    for k = 1, results.n do
        if tide.is_tensor(results[k]) then
            list[#list + 1] = results[k]
        else
            for _, x in ipairs(results[k]) do
                list[#list + 1] = x
            end
        end
    end
    return list
end

local function shape_text(x) return tostring(x.shape) end

local function numbers_of(x) return (x.is_quantized and x:dequantize() or x:detach()):double() end

-- What two lists of results differ in; nil: nothing.
local function difference(want, got)
    if #want ~= #got then
        return string.format("gives %d results where its graph gives %d", #want, #got)
    end
    for k, a in ipairs(want) do
        local b = got[k]
        if tostring(a.dtype) ~= tostring(b.dtype) or shape_text(a) ~= shape_text(b) then
            return string.format("result %d is %s %s where its graph gives %s %s", k, a.dtype, shape_text(a), b.dtype, shape_text(b))
        elseif not tide.allclose(numbers_of(a), numbers_of(b), { rtol = 1e-5, atol = 1e-8, equal_nan = true }) then
            local most = (numbers_of(a) - numbers_of(b)):abs():nan_to_num():max():item()
            return string.format("result %d differs from its graph's by up to %s", k, tide._number(most, 4))
        end
    end
end

local function places(notes)
    local list = {}
    for _, note in ipairs(notes) do
        if note.what ~= "modes" then
            list[#list + 1] = string.format("%s (%s)", note.place, note.what)
        end
    end
    return #list == 0 and "" or "; fixed in the graph: " .. table.concat(list, ", ")
end

-- What calls find: the state of the generator, and the values of the tensors that the graph holds and writes (statistics of
-- a normalization). A function that puts both back.
local function keep_state(f)
    local state, written, values = tide.get_rng_state(), script.written(f), {}
    for k, x in ipairs(written) do
        values[k] = x:detach():clone()
    end
    return function()
        tide.set_rng_state(state)
        tide.no_grad(function()
            for k, x in ipairs(written) do
                x:copy_(values[k])
            end
        end)
    end
end

-- The function and its graph on the same numbers, from the same state; how many comparisons were made.
local function compare(fn, f, inputs, notes, name, restore)
    local generator, compared = tide.Generator():manual_seed(7), 0
    for how = 1, TRIALS do
        local given = others(inputs, how, generator)
        restore()
        local want = table.pack(pcall(fn, table.unpack(copies(given))))
        if want[1] then -- a function may refuse numbers, which says nothing of its graph
            want = flatten(table.pack(table.unpack(want, 2, want.n)))
            restore()
            local got = table.pack(pcall(f, table.unpack(copies(given))))
            local problem = got[1] and difference(want, flatten(table.pack(table.unpack(got, 2, got.n))))
                or not got[1] and "runs where its graph fails: " .. tostring(got[2])
            if problem then
                fail("trace: check: with other numbers of the same shapes %s %s%s ({check = false} leaves the check out)", name, problem,
                    places(notes))
            end
            compared = compared + 1
        end
    end
    return compared
end

local function check(fn, f, inputs, notes, name)
    local restore = keep_state(f)
    local ok, compared = pcall(compare, fn, f, inputs, notes, name, restore)
    restore()
    return ok and compared or error(compared, 0)
end

--- run(fn, inputs, options): the ScriptFunction of what fn does with a list of tensors. Options: check, name, eager.
function trace.run(fn, inputs, options)
    local name, notes = options.name or name_of(fn), {}
    if #inputs == 0 then
        fail("trace: inputs: a list of tensors expected, got an empty one: a graph without inputs is one constant")
    end
    local f = script.trace(fn, copies(inputs), input_names(fn, #inputs), notes, name)
    local info = script.info(f)
    info.made, info.notes = "traced", notes
    warn_of(notes)
    if options.check then
        info.compared = check(fn, f, inputs, notes, name)
    end
    script.set_source(f, fn, options.eager)
    return f
end

return trace
