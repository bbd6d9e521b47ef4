-- test_advice_twins.lua: slow programs of advice_twins.lua draw what stands beside them, and mended ones don't.
local t = require "harness"
local advised = require "advised"

local function advice_of(fn) return tide.profiler.profile({ fn, with_stack = true }):advice() end

-- The first of the kinds that the advice lacks, or holds.
local function first(advice, kinds, held)
    for _, kind in ipairs(kinds) do
        if (advised.of_kind(advice, kind) ~= nil) == held then
            return kind
        end
    end
end

for name, twin in pairs(require "advice_twins") do
    local kinds, slow, mended, forbidden = table.unpack(twin)
    t.test("twins_" .. name, function()
        advised.try(function(last)
            local advice = advice_of(slow)
            local missed, wrong = first(advice, kinds, false), forbidden and first(advice, { forbidden }, true)
            t.is_true(not last or not missed and not wrong, ("%s: %s"):format(missed or wrong, advice))
            return not missed and not wrong
        end)
        advised.try(function(last)
            local advice = advice_of(mended)
            local alarm = first(advice, kinds, true) or forbidden and first(advice, { forbidden }, true)
            t.is_true(not last or not alarm, ("mended: %s: %s"):format(alarm, advice))
            return not alarm
        end)
    end)
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
    local item = advised.found(function()
        return tide.profiler.profile { function()
            for _ = 1, 20 do
                optimizer:zero_grad()
                forward(x):square():sum():backward()
                optimizer:step()
                for _ = 1, 20 do
                    at = here() local _ = forward(x):argmax(2)
                end
            end
        end, with_stack = true }
    end, "no_grad")
    t.eq(item.line, at, tostring(item))
end)
