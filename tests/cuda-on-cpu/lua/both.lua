-- both.lua: the same call on the CPU and on the device, results compared.
--
--     local both = require "both"
--     both.same(function(x, i) return x:gather(1, i) end, x, i)          bit by bit
--     both.close(1e-6, function(a, b) return a:matmul(b) end, a, b)      relative to the largest element
local c = require "compare"
local both = {}

both.there = c.there()

local function names(dtypes)
    local list = {}
    for k, dtype in ipairs(dtypes) do
        list[k] = tostring(dtype):match("%w+$")
    end
    return list
end
both.FLOATS, both.INTEGERS, both.ALL = names(c.floats), names(c.integers), names(c.all)

-- Elements of a dtype that are small whole numbers, or, of floats, halves of such.
function both.elements(dtype, ...)
    local x = tide.randint(-9, 10, { ... })
    if dtype == "bool" then
        return x:gt(0)
    elseif dtype == "uint8" then
        return x:abs():to(dtype)
    elseif dtype:find("float", 1, true) then
        return (x:to("float32") / 2):to(dtype)
    end
    return x:to(dtype)
end

-- The forms that a tensor may come in: as it is, turned round in memory, part of a larger one.
function both.forms(x)
    if x:dim() < 2 then
        local wide = tide.zeros(2 * x:numel() + 3):to(x.dtype)
        local part = wide:narrow(1, 3, 2 * x:numel()):reshape(-1, 2):select(2, 1):reshape(x.shape)
        part:copy_(x)
        return { x, part }
    end
    local turned = x:transpose(1, x:dim()):contiguous():transpose(1, x:dim())
    local wide = tide.cat({ x, x, x }, 1)
    return { x, turned, wide:narrow(1, x:size(1) + 1, x:size(1)) }
end

-- On the device with the strides that it has here; what has no gaps lies at a block's beginning.
local function send(x)
    return tide.is_tensor(x) and x:is_contiguous() and x:to("cuda") or c.lay_as(x)
end

local function check(tolerance_of, fn, ...)
    local want, got = c.run(send, fn, ...)
    for k = 1, want.n do
        c.agree(want[k], got[k], "result " .. k, tolerance_of(want[k]))
    end
end

function both.same(fn, ...)
    check(function() return 0, 0 end, fn, ...)
end

function both.close(tol, fn, ...)
    check(function(want) return tol, tol * c.largest(want) end, fn, ...)
end

-- How often kernels whose names hold a text were launched since the last both.reset(), where the
-- device is the one that the CPU plays; else nil.
local module = os.getenv("TIDE_CUDA_MODULE")
local open = module and package.loadlib(module, "luaopen_played")
local played = open and open()
both.counts = played and played.counts -- nil elsewhere
both.fail_next = played and played.fail_next

function both.reset()
    if played then
        played.reset()
    end
end

function both.launches(text)
    if not played then
        return nil
    end
    local n = 0
    for name, count in pairs(played.counts().kernels) do
        n = n + (name:find(text, 1, true) and count or 0)
    end
    return n
end

return both
