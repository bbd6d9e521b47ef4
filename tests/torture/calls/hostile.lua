-- hostile.lua: values that a program may hand to any function, each by a short name, so that a call that shows
-- a bug is one line of text. Knows nothing of which function gets them.
local H = {}

-- What callbacks and metamethods raise: no text, so that it is told from Tide's own messages.
H.OWN = setmetatable({}, { __tostring = function() return "raised by the caller's own code" end })

local function raise() error(H.OWN, 0) end
H.raise = raise

-- ---- tables and objects ----

local events = { "__index", "__newindex", "__len", "__tostring", "__call", "__close", "__eq", "__lt", "__le", "__add",
    "__concat", "__unm", "__pairs", "__name", "__gc", "__metatable", "__mode" }

--- An object that raises whatever is done with it; with an event, in that one alone.
function H.raiser(event)
    local meta = {}
    for _, name in ipairs(event and { event } or events) do
        meta[name] = raise
    end
    meta.__gc = nil
    return setmetatable({ 1, 2, x = 3 }, meta)
end

function H.cyclic()
    local t = { 1 }
    t[1], t[2], t.self = t, t, t
    return setmetatable(t, t)
end

-- Made while the collector rests, which may have been told to look at every step.
local function in_peace(make)
    return function(n)
        local running = collectgarbage("isrunning")
        collectgarbage("stop")
        local t = make(n)
        if running then
            collectgarbage("restart")
        end
        return t
    end
end

H.deep = in_peace(function(n)
    local t = {}
    for _ = 1, n do
        t = { t }
    end
    return t
end)

function H.holes() return { 1, nil, 3, [10] = 4, [0] = 5, [-1] = 6, [2.5] = 7, [true] = 8 } end

--- A proxy of a list, whose length and elements come from metamethods.
function H.proxy()
    return setmetatable({}, { __index = function(_, k) return type(k) == "number" and k <= 3 and k or nil end,
        __len = function() return 3 end })
end

--- A table that pretends to be one of Tide's types.
function H.imposter(name)
    return setmetatable({ is_module_class = true, _names = 5, _kinds = {}, param_groups = 3 },
        { __name = name, is_module_class = true, __index = tide.nn[name] or tide.optim[name] })
end

H.many = in_peace(function(n)
    local t = {}
    for k = 1, n do
        t[k] = k
    end
    return t
end)

-- ---- tensors ----

local filled = {}

-- Numbers around 0, a tensor of one's own.
local function fill(shape, dtype)
    local name = table.concat(shape, ",") .. dtype
    if not filled[name] then
        local x = tide.arange(tide.zeros(shape):numel(), { dtype = "float64" }) * 0.37 - 1
        filled[name] = x:reshape(shape):to(dtype)
    end
    return filled[name]:clone()
end

local layouts = {
    plain = function(x) return x end,
    transposed = function(x) return x.T end,
    expanded = function(x) return x:unsqueeze(1):expand(3, table.unpack(x.shape)) end,
    overlapping = function(x) return x:reshape(-1):as_strided({ 3, 3 }, { 1, 1 }, 0) end,
    sliced = function(x) return tide.cat({ x, x }, 1)[{ { 1, -1, 2 } }] end,
    offset = function(x) return tide.cat({ x, x }, 1)[{ { 2, -1 } }] end,
    leaf = function(x) return x:is_floating_point() and x:detach():requires_grad_(true) or x end,
    result = function(x) return x:is_floating_point() and x:detach():requires_grad_(true) * 1 or x end,
    view = function(x) return x:is_floating_point() and (x:detach():requires_grad_(true) * 1):view(-1) or x end,
    closed = function(x) x = x:clone(); x:free(); return x end,
    nan = function(x) return x:is_floating_point() and x * (0 / 0) or x end,
    huge = function(x) return x:is_floating_point() and x * 1e38 or x * (1 << 62) end,
}
H.layouts = layouts

--- A tensor: shape, dtype (float32), how it lies in memory (plain).
function H.t(shape, dtype, layout)
    local x = fill(shape, dtype or "float32")
    local ok, y = pcall(layouts[layout or "plain"], x)
    return ok and y or x
end

--- Numbers from 1 to n as indices.
function H.index(n, shape) return (tide.arange(tide.zeros(shape):numel()) % n):reshape(shape):long() + 1 end
function H.mask(shape) return fill(shape, "float32"):gt(0) end

-- ---- modules and other objects ----

function H.net() return tide.nn.Sequential(tide.nn.Linear(4, 3), tide.nn.ReLU(), tide.nn.Linear(3, 2)) end
function H.sgd()
    local p = tide.ones(2, 3, { requires_grad = true })
    p.grad = tide.ones(2, 3)
    return tide.optim.SGD({ p }, { lr = 0.1, momentum = 0.5 })
end
function H.own_module()
    local c = tide.nn.class("Own")
    c.forward = raise
    return c()
end
--- A module that is a part of itself.
function H.module_in_itself()
    local m = tide.nn.Sequential(tide.nn.ReLU())
    m.part = m
    return m
end
function H.profile() return (tide.profiler.profile(function() return tide.ones(2) + 1 end)) end
function H.dead_coroutine()
    local co = coroutine.create(raise)
    coroutine.resume(co)
    return co
end
function H.progress() return tide.progress(3, "bar") end

-- ---- callbacks ----

H.yields = function(...) coroutine.yield(...) return ... end
H.squares = function(x) return (x * x):sum() end
H.garbage = function() return H.OWN end
--- A callback that works n times and then raises.
function H.later(n)
    return function(x)
        n = n - 1
        if n < 0 then
            raise()
        end
        return x * x
    end
end

-- ---- what goes on around a call ----

--- In a coroutine, resumed while it yields (a few times), then abandoned or closed.
function H.co(fn)
    local co = coroutine.create(fn)
    for k = 1, 4 do
        local results = table.pack(coroutine.resume(co, k))
        if not results[1] then
            coroutine.close(co)
            error(results[2], 0)
        elseif coroutine.status(co) == "dead" then
            return table.unpack(results, 2, results.n)
        end
    end
    coroutine.close(co)
end

function H.under_no_grad(fn)
    local _ <close> = tide.no_grad()
    return fn()
end

function H.profiled(fn) return select(2, tide.profiler.profile(fn)) end

--- While the call runs, garbage frees the tensors among its arguments, and gives them other memory.
function H.mined(fn, ...)
    local victims, live = { ... }, true
    local function arm()
        setmetatable({}, { __gc = function()
            if not live then
                return
            end
            for _, x in ipairs(victims) do
                if tide.is_tensor(x) then
                    pcall(tide.add, tide.ones(3), 1, { out = x })
                    pcall(x.free, x)
                end
            end
            tide.full({ 64 }, -77.0)
            arm()
        end })
    end
    arm()
    local results = table.pack(pcall(fn, ...))
    live = false
    if not results[1] then
        error(results[2], 0)
    end
    return table.unpack(results, 2, results.n)
end

return H
