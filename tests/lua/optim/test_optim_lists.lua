-- test_optim_lists.lua: a step over lists is the loop's to the bit, whatever the script did to parameters,
-- gradients and states since the step before.
local t = require "harness"
local optim = tide.optim

local SHAPES = { { 40, 30 }, { 300 }, { 7 }, {}, { 0 }, { 33, 9 } }

local function parameters()
    local list = {}
    tide.manual_seed(1)
    for k, shape in ipairs(SHAPES) do
        list[k] = tide.randn(shape, { dtype = k == 3 and tide.float64 or tide.float32 }):requires_grad_()
    end
    return list
end

local function set_gradients(params, step)
    tide.manual_seed(100 + step)
    for _, p in ipairs(params) do
        p.grad = tide.randn(p.shape, { dtype = p.dtype })
    end
end

-- What the script does before a step; each is done to both optimizers.
local CHANGES = {
    [2] = function(params) params[2].grad = nil end,
    [3] = function(params, optimizer)
        for name, value in pairs(optimizer.state[params[1]] or {}) do
            if tide.is_tensor(value) then
                optimizer.state[params[1]][name] = value:clone():mul_(0.5)
            end
        end
    end,
    [4] = function(params) params[1].grad = tide.ones(30, 40):t() end,
    [5] = function(params, optimizer) optimizer.state[params[6]] = nil end,
    [6] = function(_, optimizer) optimizer:load_state_dict(optimizer:state_dict()) end,
    [7] = function(params, optimizer)
        params[7] = tide.ones(5):requires_grad_()
        params[7].grad = tide.full({ 5 }, 0.3)
        optimizer:add_param_group { params = { params[7] } }
    end,
}

local function walk(name, options, foreach)
    local params = parameters()
    local given = { foreach = foreach }
    for key, value in pairs(options) do
        given[key] = value
    end
    local optimizer = optim[name](table.move(params, 1, #params, 1, {}), given)
    for step = 1, 8 do
        set_gradients(params, step)
        if CHANGES[step] then
            CHANGES[step](params, optimizer)
        end
        optimizer:step()
    end
    return params, optimizer
end

local CASES = {
    { "SGD", { lr = 0.1 } }, { "SGD", { lr = 0.1, momentum = 0.9, nesterov = true, weight_decay = 0.1 } },
    { "Adam", { lr = 0.01, amsgrad = true } }, { "AdamW", { lr = 0.01, maximize = true } },
    { "NAdam", {} }, { "RAdam", {} }, { "Adamax", {} }, { "RMSprop", { momentum = 0.5, centered = true } },
    { "Adagrad", { lr_decay = 0.1 } }, { "Adadelta", {} }, { "Rprop", {} },
}

for _, case in ipairs(CASES) do
    local name, options = case[1], case[2]
    t.test("lists_equal_the_loop_whatever_the_script_changes: " .. name, function()
        local ours, lists = walk(name, options, true)
        local theirs, loop = walk(name, options, false)
        for k, p in ipairs(ours) do
            t.is_true(tide.equal(p, theirs[k]), ("%s: parameter %d differs"):format(name, k))
            for field, value in pairs(lists.state[p] or {}) do
                local other = loop.state[theirs[k]][field]
                t.is_true(tide.is_tensor(value) and tide.equal(value, other) or value == other,
                    ("%s: %s of parameter %d differs"):format(name, field, k))
            end
        end
    end)
end

t.test("a_step_over_lists_allocates_no_tensors", function()
    local params = parameters()
    local adam = optim.Adam(params, { lr = 0.01 })
    set_gradients(params, 1)
    adam:step()
    local made = 0
    local profile = tide.profiler.profile(function() adam:step() end)
    for _, event in ipairs(profile:events()) do
        made = made + (event.kind == "op" and event.name ~= "adam_step" and 1 or 0)
    end
    t.eq(made, 0)
end)

t.test("a_refused_step_changes_nothing", function()
    local p, q = tide.ones(3):requires_grad_(), tide.ones(4):requires_grad_()
    local adam = optim.Adam({ p, q }, { lr = 0.1 })
    p.grad, q.grad = tide.ones(3), tide.ones(4)
    adam:step()
    local before = p:detach():clone()
    adam.state[q].exp_avg = tide.ones(5)
    t.error_has(function() adam:step() end, "adam_step: exp_avg 2 has shape (5), its parameter (4)")
    t.is_true(tide.equal(p, before))
    t.eq(adam.state[p].step, 1)
end)

t.test("pytorch_s_other_switches_are_taken_or_refused_in_a_line", function()
    local p = tide.ones(3):requires_grad_()
    for _, name in ipairs { "Adam", "AdamW", "SGD", "Adagrad" } do
        local optimizer = optim[name]({ p }, { fused = true, foreach = false, capturable = false, differentiable = false })
        t.is_true(optimizer.param_groups[1].foreach)
        t.eq(optimizer.param_groups[1].fused, nil)
    end
    t.error_has(function() optim.RAdam({ p }, { capturable = true }) end, "RAdam: option capturable: there are no graphs")
    t.error_has(function() optim.SGD({ p }, { differentiable = true }) end, "SGD: option differentiable: a step is not recorded")
    t.error_has(function() optim.Rprop({ p }, { fused = true }) end, "Rprop: no option 'fused'")
end)

t.test("a_step_is_refused_where_it_is_called_with_what_is_none", function()
    local p = tide.ones(3):requires_grad_()
    p.grad = tide.ones(3)
    t.is_false(pcall(tide._optim_step, tide.add, "p g: p = p + g", {}, { p }, {}, {}))
    t.is_false(pcall(tide._optim_step, 1, "p g: p = p + g", {}, { p }, {}, {}))
    local adam = optim.Adam { p }
    adam:step()
    adam.param_groups[1].params[2] = 7
    t.error_has(function() adam:step() end, "Adam: parameter 2: expected a tensor, got number 7")
    adam.param_groups[1].params = nil
    t.error_has(function() adam:step() end, "Adam: a group's params must be a list of tensors, got nil")
    adam.param_groups[1].params = { p }
    adam.state[p].step = "x"
    t.error_has(function() adam:step() end, "Adam: the state of parameter 1: step must be a number, got")
    adam.state[p].step, adam.state[p].exp_avg = 1, 3
    t.error_has(function() adam:step() end, "adam_step: argument 4 (first): element 1: expected a tensor, got number 3")
end)
