-- test_advice_twins.lua: slow programs of advice_twins.lua draw what stands beside them, and mended ones don't; what is
-- promised is what the whole program gains. Costs are counted: what is found does not depend on what else the machine does.
local t = require "harness"
local advised = require "advised"
local counted = require "counted"

-- The first of the kinds that the advice lacks, or holds.
local function first(advice, kinds, held)
    for _, kind in ipairs(kinds) do
        if (advised.of_kind(advice, kind) ~= nil) == held then
            return kind
        end
    end
end

-- How much quicker the program is to be when all of these kinds are mended; of several at one line the best.
local function promise(advice, kinds)
    local by_line, saved = {}, 0
    for _, item in ipairs(advice) do
        if first({ item }, kinds, true) then
            local line = by_line[item.line] or {}
            by_line[item.line] = line
            line[item.kind] = (line[item.kind] or 0) + item.share * (1 - 1 / item.gain)
        end
    end
    for _, line in pairs(by_line) do
        local best = 0
        for _, saving in pairs(line) do best = math.max(best, saving) end
        saved = saved + best
    end
    return 1 / math.max(1 - saved, 1e-3)
end

local MUCH = 20 -- beyond, what is left of a program is too little to be told

for name, twin in pairs(require "advice_twins") do
    local kinds, slow, mended, forbidden = table.unpack(twin)
    t.test("twins_" .. name, function()
        local advice, right = counted.advice_of(slow), counted.advice_of(mended)
        local missed, wrong = first(advice, kinds, false), forbidden and first(advice, { forbidden }, true)
        t.is_true(not missed and not wrong, ("%s: %s"):format(missed or wrong, advice))
        local alarm = first(right, kinds, true) or forbidden and first(right, { forbidden }, true)
        t.is_true(not alarm, ("mended: %s: %s"):format(alarm, right))
    end)
    if #kinds > 0 then
        t.test("promised_of_" .. name, function()
            local promised = promise(counted.advice_of(slow), kinds)
            local gained = counted.cost(slow) / counted.cost(mended)
            local ratio = math.min(promised, MUCH) / math.min(gained, MUCH)
            t.is_true(ratio > 0.5 and ratio < 2, ("promised %.1f, gained %.1f"):format(promised, gained))
        end)
    end
end

-- ---- where no_grad belongs ----

local w, u = tide.randn(16, 16):requires_grad_(), tide.randn(16, 4):requires_grad_()
local function forward(x)
    return x:matmul(w):tanh():matmul(u)
end

-- The line that this is called on.
local function here() return debug.getinfo(2, "l").currentline end

t.test("a_network_that_is_trained_is_not_the_line_without_gradients", function()
    local optimizer, x, at = tide.optim.SGD({ w, u }, { lr = 0.01 }), tide.rand(8, 16), nil
    local advice = counted.advice_of(function()
        for _ = 1, 20 do
            optimizer:zero_grad()
            forward(x):square():sum():backward()
            optimizer:step()
            for _ = 1, 20 do
                at = here() local _ = forward(x):argmax(2)
            end
        end
    end)
    local item = advised.of_kind(advice, "no_grad")
    t.eq(item and item.line, at, tostring(advice))
end)
