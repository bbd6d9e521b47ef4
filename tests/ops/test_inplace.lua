-- test_inplace.lua: the in-place form of every operator: the values of the golden cases, and their
-- gradients, also where these read what was overwritten. Programs of several writes are test_programs.lua's.
local t = require "harness"
local golden = require "golden"

local cases = golden.cases()
local values = { relative = 1e-12, absolute = 1e-14, zeros = false }
local singles = { relative = 1e-6, absolute = 1e-37, zeros = false }
local gradients = { relative = 1e-8, absolute = 1e-12, zeros = false }

-- Without chance they leave their operand alone.
local may_do_nothing = { dropout = true, feature_dropout = true, alpha_dropout = true, feature_alpha_dropout = true }

-- Cases whose first operand is a float64 tensor that the result fits into; truths are written as 0 and 1.
local function fits(case)
    local x, r = case.a[1], case.r[1]
    return type(x) == "table" and type(r) == "table"
        and (r.t == x.t or r.t == "bool" and x.t == "float64")
        and golden.shape_text(x.s) == golden.shape_text(r.s)
end

local function write(op, args)
    local target = args[1]
    local got = target[op.name .. "_"](table.unpack(args, 1, args.n))
    t.is_true(rawequal(got, target), "the tensor itself comes back")
    return target
end

local function check_values(op, case)
    local args = golden.arguments(case)
    args[1] = args[1]:clone()
    local version = args[1]._version
    local y = write(op, args)
    if case.r[1].t == "bool" and y.dtype ~= tide.bool then
        t.is_true((y:eq(0) | y:eq(1)):all():item(), "0 and 1")
        y = y:ne(0)
    end
    t.eq(golden.compare(y, case.r[1].v, case.r[1].t == "float32" and singles or values), nil)
    y = args[1]
    t.is_true(y._version > version or may_do_nothing[op.name], "the write is counted")
end

local function check_gradients(op, case)
    local inputs = {}
    local args = golden.arguments(case, inputs)
    args[1] = args[1] * 1
    local y = write(op, args)
    local total = (y * golden.weights_like(y, 0)):sum()
    if not total.requires_grad then
        return
    end
    local grads = tide.autograd.grad(total, inputs, { allow_unused = true })
    for k, x in ipairs(inputs) do
        t.eq(golden.compare(grads[k] or tide.zeros_like(x), case.g[k], golden.gradient_tolerance(op, gradients)), nil,
            "gradient " .. k)
    end
end

for _, op in ipairs(tide._ops()) do
    if op.inplace and not op.inplace_only and not op.internal then
        local list = {}
        for _, case in ipairs(cases[op.name] or {}) do
            list[#list + 1] = (op.turns or fits(case)) and case or nil -- views may have any shape
        end
        t.test(op.name .. "_in_place_has_golden_cases", function() t.is_true(#list > 1) end)
        for number, case in ipairs(list) do
            t.test(("%s_in_place_%d"):format(op.name, number), function() check_values(op, case) end)
            if case.g and case.a[1].g then
                t.test(("%s_in_place_gradient_%d"):format(op.name, number), function()
                    check_gradients(op, case)
                end)
            end
        end
        if op.differentiable and not may_do_nothing[op.name] then
            t.test(op.name .. "_in_place_refuses_a_leaf_and_a_view_of_one", function()
                for _, case in ipairs(list) do
                    if case.a[1].g then
                        local inputs = {}
                        local args = golden.arguments(case, inputs)
                        t.error_has(function() write(op, args) end, "leaf")
                        args[1] = args[1]:view_as(args[1])
                        t.error_has(function() write(op, args) end, "leaf")
                        local before = inputs[1]:detach():clone()
                        t.is_true(inputs[1]:numel() == 0 or tide.equal(before:isnan(), inputs[1]:isnan()))
                        local _ <close> = tide.no_grad()
                        args[1] = inputs[1]
                        write(op, args)
                        return
                    end
                end
            end)
        end
    end
end
