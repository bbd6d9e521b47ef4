-- test_large.lua: tensors that several threads share, and whose size is no multiple of anything: every
-- pointwise operator gives what it gives for a few elements, to the last one.
local t = require "harness"
local golden = require "golden"

local SMALL, LARGE = 97, 300007

-- The golden cases of long operands hold their first 97 values: the calls of a few and of many.
local function arguments(case, n)
    local args = golden.arguments(case)
    for k = 1, args.n do
        if tide.is_tensor(args[k]) then
            local entry = case.a[k]
            args[k] = golden.tensor { t = entry.t, s = { n }, v = entry.v }
        end
    end
    return args
end

local function is_long(case)
    for _, a in ipairs(case.a) do
        if type(a) == "table" and a.sparse then
            return false
        elseif type(a) == "table" and a.s and (#a.s ~= 1 or a.s[1] < 10000 or #a.v ~= SMALL) then
            return false
        end
    end
    return true
end

local function repeated(x, n)
    return x:tile((n + SMALL - 1) // SMALL):narrow(1, 1, n)
end

local function nan_as_7(x)
    return x.dtype.is_floating_point and tide.where(x:isnan(), 7, x) or x
end

local cases, tried = golden.cases(), 0
for _, op in ipairs(tide._ops()) do
    for _, case in ipairs(op.family == "pointwise" and cases[op.name] or {}) do
        if is_long(case) then
            tried = tried + 1
            t.test(op.name .. "_of_many_is_that_of_a_few", function()
                local few = golden.call(op, arguments(case, SMALL))[1]
                local many = golden.call(op, arguments(case, LARGE))[1]
                t.eq(many:numel(), LARGE)
                t.is_true(tide.equal(nan_as_7(many), nan_as_7(repeated(few, LARGE))))
            end)
        end
    end
end

t.test("pointwise_operators_were_tried", function() t.is_true(tried > 40, tried) end)

-- ---- the rest: sums that are known ----

t.test("reductions_of_many", function()
    local x = tide.arange(LARGE, { dtype = tide.float64 })
    local total = LARGE * (LARGE - 1) / 2
    t.eq(x:sum():item(), total)
    t.eq(x:long():sum():item(), LARGE * (LARGE - 1) // 2)
    t.close(x:mean():item(), (LARGE - 1) / 2, 1e-6)
    t.eq({ x:amax():item(), x:amin():item(), x:argmax():item(), x:argmin():item() }, { LARGE - 1, 0, LARGE, 1 })
    t.eq(x:gt(5):count_nonzero():item(), LARGE - 6)
    local rows = tide.arange(3 * 100003, { dtype = tide.float64 }):reshape(3, 100003)
    t.eq(rows:sum(1):sum():item(), rows:sum():item())
    t.eq(rows:amax(1)[-1]:item(), 3 * 100003 - 1)
    t.eq(rows:argmax(2):tolist(), { 100003, 100003, 100003 })
    t.eq(rows:t():contiguous():sum(1):tolist(), rows:sum(2):tolist())
    t.eq(rows:t():sum(1):tolist(), rows:sum(2):tolist())
    t.eq(tide.ones(LARGE):cumsum(1)[-1]:item(), LARGE)
end)

t.test("copies_of_many", function()
    local x = tide.arange(LARGE)
    t.is_true(tide.equal(x:clone(), x))
    t.is_true(tide.equal(x:double():long(), x))
    t.is_true(tide.equal(x:flip(1):flip(1), x))
    local square = tide.arange(601 * 601):reshape(601, 601)
    t.is_true(tide.equal(square:t():contiguous():t():contiguous(), square))
    t.eq(square:t():contiguous()[-1][1]:item(), 600)
    t.is_true(tide.equal(tide.cat { x, x }:narrow(1, LARGE + 1, LARGE), x))
    t.is_true(tide.equal(x[x:ge(0)], x))
    t.is_true(tide.equal(x[tide.arange(1, LARGE + 1)], x))
    t.is_true(tide.equal(x:index_select(1, x:flip(1) + 1), x:flip(1)))
    local y = tide.zeros_like(x)
    y["2::2"] = x["2::2"]
    t.eq(y:sum():item(), (x * (x % 2)):sum():item())
end)

t.test("gradients_of_many", function()
    local x = tide.arange(LARGE, { dtype = tide.float64 }):requires_grad_(true)
    local loss = (x * x):sum() + x:relu():sum()
    loss:backward()
    local want = 2 * x:detach() + x:detach():gt(0)
    t.is_true(tide.equal(x.grad, want))
end)
