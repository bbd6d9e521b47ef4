-- test_training.lua: optimizers and schedulers go the ways that PyTorch went (tests/golden/training), over lists
-- and one parameter at a time.
local t = require "harness"
local json = require "json"

local optim, lr_scheduler = tide.optim, tide.optim.lr_scheduler

local function cases(name)
    local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
    local list = {}
    for line in io.lines(here .. "../../golden/training/" .. name .. ".jsonl") do
        list[#list + 1] = json.read(line)
    end
    return table.move(list, 2, #list, 1, {})
end

local SHAPES, STEPS = { { 2, 3 }, { 4 }, {} }, 14
local SHOWN = { 1, 2, 3, 5, 9, 14 }

local function parameters(dtype)
    local list = {}
    for k, shape in ipairs(SHAPES) do
        local values, n = {}, 1
        for _, size in ipairs(shape) do
            n = n * size
        end
        for j = 1, n do
            values[j] = ((7 * (j - 1) + 3 * (k - 1)) % 11 - 5) / 4 + 0.1
        end
        list[k] = tide.tensor(values, { dtype = dtype or tide.float64 }):reshape(shape):requires_grad_()
    end
    return list
end

local function loss_of(params)
    local loss = 0
    for k, p in ipairs(params) do
        loss = (p * p * ((k - 0.5) / 2) + (p * 3):sin()):sum() + loss
    end
    return loss
end

local function text_of(options)
    local parts = {}
    for name, value in pairs(options) do
        parts[#parts + 1] = name .. "=" .. (type(value) == "table" and table.concat(value, ",") or tostring(value))
    end
    table.sort(parts)
    return table.concat(parts, " ")
end

-- The parameters after the steps that are shown.
local function walk(name, options, dtype)
    local params, shown = parameters(dtype), {}
    local optimizer = optim[name](params, options)
    local function compute()
        optimizer:zero_grad()
        local loss = loss_of(params)
        loss:backward()
        return loss
    end
    local next_shown = 1
    for step = 1, STEPS do
        if name == "LBFGS" then
            optimizer:step(compute)
        else
            compute()
            if step == 4 then
                params[2].grad = nil
            end
            optimizer:step()
        end
        if step == SHOWN[next_shown] then
            local list = {}
            for k, p in ipairs(params) do
                list[k] = p:detach():clone()
            end
            shown[next_shown], next_shown = list, next_shown + 1
        end
    end
    return shown, optimizer
end

local function copy(options)
    local list = {}
    for k, v in pairs(options) do
        list[k] = v
    end
    return list
end

local function check_walk(case, shown)
    for s, params in ipairs(case.shown) do
        for k, want in ipairs(params) do
            local have = shown[s][k]:reshape(-1)
            for j, value in ipairs(want) do
                local got = have[j]:item()
                if not (math.abs(got - value) <= 1e-12 * math.max(1, math.abs(value))) then
                    error(("%s %s: step %d, parameter %d, element %d: %.17g instead of %.17g"):format(case.name,
                        text_of(case.options), SHOWN[s], k, j, got, value))
                end
            end
        end
    end
end

t.test("optimizers_go_the_way_that_pytorch_goes", function()
    local list = cases("optimizers")
    t.is_true(#list > 200)
    for _, case in ipairs(list) do
        check_walk(case, (walk(case.name, copy(case.options))))
    end
end)

t.test("foreach_has_the_bits_of_one_parameter_at_a_time", function()
    local seen = {}
    for _, case in ipairs(cases("optimizers")) do
        local key = case.name .. text_of(case.options)
        if case.name ~= "LBFGS" and not seen[key] then
            seen[key] = true
            for _, dtype in ipairs { tide.float32, tide.bfloat16 } do
                local options, one = copy(case.options), copy(case.options)
                options.foreach, one.foreach = true, false
                local a, b = walk(case.name, options, dtype), walk(case.name, one, dtype)
                for s, list in ipairs(a) do
                    for k, x in ipairs(list) do
                        t.is_true(tide.equal(x, b[s][k]), case.name .. " " .. text_of(case.options))
                    end
                end
            end
        end
    end
end)

t.test("a_state_in_the_middle_goes_on_to_the_same_end", function()
    for _, case in ipairs(cases("optimizers")) do
        local params, others = parameters(), parameters()
        local optimizer = optim[case.name](params, copy(case.options))
        local function run(list, o, steps)
            for _ = 1, steps do
                local function compute()
                    o:zero_grad()
                    local loss = loss_of(list)
                    loss:backward()
                    return loss
                end
                if case.name ~= "LBFGS" then
                    compute()
                end
                o:step(case.name == "LBFGS" and compute or nil)
            end
        end
        run(params, optimizer, 3)
        local second = optim[case.name](others, { lr = 1 })
        second:load_state_dict(optimizer:state_dict())
        tide.no_grad(function()
            for k, p in ipairs(others) do
                p:copy_(params[k])
            end
        end)
        run(params, optimizer, 3)
        run(others, second, 3)
        for k, p in ipairs(params) do
            t.is_true(tide.equal(p:detach(), others[k]:detach()), case.name .. " " .. text_of(case.options))
        end
    end
end)

-- ---- schedulers ----

local function make_scheduler(optimizer, name, options)
    options = copy(options)
    if name == "LambdaLR" or name == "MultiplicativeLR" then
        options.lr_lambda = function(n) return 0.95 ^ n end
    end
    return lr_scheduler[name](optimizer, options)
end

local function make_nested(optimizer, case)
    if not case.parts then
        return make_scheduler(optimizer, case.name, case.options)
    end
    local parts = {}
    for k, part in ipairs(case.parts) do
        parts[k] = make_scheduler(optimizer, part[1], part[2])
    end
    return case.name == "ChainedScheduler" and lr_scheduler.ChainedScheduler(parts)
        or lr_scheduler.SequentialLR(optimizer, parts, case.milestones)
end

local function make_optimizer(case)
    local p = parameters()
    return optim[case.optimizer]({ { params = { p[1], p[2] } }, { params = { p[3] }, lr = 0.2 } },
        { lr = 0.1, momentum = case.optimizer == "SGD" and 0.9 or nil })
end

local function advance(case, optimizer, scheduler, step)
    optimizer:step()
    if case.name == "ReduceLROnPlateau" then
        scheduler:step(math.abs(step * 5 % 9 - 4) / 2)
    else
        scheduler:step()
    end
end

local function check_rates(case, optimizer, step)
    for g, group in ipairs(optimizer.param_groups) do
        local what = ("%s %s, step %d, group %d"):format(case.name, text_of(case.options or {}), step - 1, g)
        local momentum = group.momentum or group.betas[1]
        if not (math.abs(group.lr - case.rates[step][g]) <= 1e-14 * math.max(1, case.rates[step][g])) then
            error(("%s: rate %.17g instead of %.17g"):format(what, group.lr, case.rates[step][g]))
        elseif not (math.abs(momentum - case.momenta[step][g]) <= 1e-14) then
            error(("%s: momentum %.17g instead of %.17g"):format(what, momentum, case.momenta[step][g]))
        end
    end
end

t.test("schedulers_set_the_rates_that_pytorch_sets", function()
    for _, case in ipairs(cases("schedulers")) do
        local optimizer = make_optimizer(case)
        local scheduler = make_nested(optimizer, case)
        for step = 1, #case.rates do
            check_rates(case, optimizer, step)
            t.eq(scheduler:get_last_lr()[1], optimizer.param_groups[1].lr)
            if step < #case.rates then
                advance(case, optimizer, scheduler, step - 1)
            end
        end
    end
end)

t.test("a_schedule_goes_on_from_its_state", function()
    for _, case in ipairs(cases("schedulers")) do
        local optimizer, other = make_optimizer(case), make_optimizer(case)
        local scheduler, second = make_nested(optimizer, case), make_nested(other, case)
        for step = 1, 7 do
            advance(case, optimizer, scheduler, step - 1)
        end
        other:load_state_dict(optimizer:state_dict())
        second:load_state_dict(scheduler:state_dict())
        for step = 8, #case.rates do
            check_rates(case, other, step)
            if step < #case.rates then
                advance(case, other, second, step - 1)
            end
        end
    end
end)
