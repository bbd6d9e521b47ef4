-- test_swa.lua: tide.optim.swa_utils: averages of models, PyTorch's rates.
local t = require "harness"
local swa = tide.optim.swa_utils
local wide = { dtype = tide.float64 }

-- A model whose weight goes through the values, and the average of it.
local function averaged(values, options)
    local model = tide.nn.Linear(1, 2):double()
    options[1] = model
    local average = swa.AveragedModel(options)
    for _, v in ipairs(values) do
        model.weight.data:fill_(v)
        average:update_parameters(model)
    end
    return average.module.weight[{ 1, 1 }]:item(), average, model
end

t.test("averages_are_equal_or_fade", function()
    local values, fading = { 1, 4, 10, -3 }, 1
    for k = 2, #values do
        fading = 0.8 * fading + 0.2 * values[k]
    end
    local function near(got, want) t.is_true(math.abs(got - want) < 1e-12, got .. ", expected " .. want) end
    near((averaged(values, {})), 3)
    near((averaged(values, { avg_fn = swa.get_swa_avg_fn() })), 3)
    near((averaged(values, { multi_avg_fn = swa.get_swa_multi_avg_fn() })), 3)
    near((averaged(values, { avg_fn = swa.get_ema_avg_fn(0.8) })), fading)
    near((averaged(values, { multi_avg_fn = swa.get_ema_multi_avg_fn(0.8) })), fading)
    near((averaged(values, { avg_fn = function(average, parameter, n) return average + parameter * n end })), 1 + 4 + 20 - 9)
end)

t.test("the_average_is_a_module_of_its_own", function()
    local _, average, model = averaged({ 1, 3 }, {})
    t.eq(average.n_averaged:item(), 2)
    t.eq(model.weight[{ 1, 1 }]:item(), 3.0)
    t.eq(average(tide.ones(1, 1, wide)).shape, tide.ones(1, 2).shape)
    local copy = swa.AveragedModel(model)
    copy:load_state_dict(average:state_dict())
    t.eq(copy.n_averaged:item(), 2)
    t.is_true(copy.module.weight:equal(average.module.weight))
    t.error_has(function() average:update_parameters(tide.nn.Identity()) end, "the model has 0 parameters, the average 2")
    t.error_has(function() swa.AveragedModel { model, avg_fn = print, multi_avg_fn = print } end, "got both")
end)

t.test("buffers_are_copied_or_averaged_too", function()
    for _, use in ipairs { false, true } do
        local model = tide.nn.BatchNorm1d(1)
        local average = swa.AveragedModel { model, use_buffers = use }
        for _, v in ipairs { 2, 4 } do
            model.running_mean:fill_(v)
            average:update_parameters(model)
        end
        t.eq(average.module.running_mean:item(), use and 3.0 or 4.0)
    end
end)

t.test("update_bn_takes_the_mean_over_all_batches", function()
    local model = tide.nn.Sequential(tide.nn.BatchNorm1d(1), tide.nn.Dropout(0.5))
    model[1].running_mean:fill_(100)
    local batches = { tide.full({ 4, 1 }, 1.0), { tide.full({ 4, 1 }, 2.0), "label" }, tide.full({ 4, 1 }, 6.0) }
    model:eval()
    swa.update_bn(batches, model)
    t.eq(model[1].running_mean:item(), 3.0)
    t.eq(model[1].num_batches_tracked:item(), 3)
    t.is_true(not model.training)
    t.is_true(math.abs(model[1].momentum - 0.1) < 1e-12)
    local at = 0
    swa.update_bn(function()
        at = at + 1
        return batches[at]
    end, model)
    t.eq(model[1].running_mean:item(), 3.0)
    t.error_has(function() swa.update_bn(5, model) end, "update_bn: loader: a list of batches or a function expected, got number 5")
    swa.update_bn(5, tide.nn.Linear(1, 1)) -- has no norms
end)

t.test("rates_go_to_their_goals_as_pytorch_s_do", function()
    local rows = { -- strategy, epochs, what torch.optim.swa_utils.SWALR's get_last_lr says
        { "cos", 4, { { 1.0, 0.2 }, { 0.86087572106361, 0.22928932188134524 }, { 0.525, 0.3 }, { 0.18912427893638994, 0.37071067811865477 },
            { 0.05, 0.4 }, { 0.05, 0.4 } } },
        { "linear", 3, { { 1.0, 0.2 }, { 0.6833333333333335, 0.2666666666666667 }, { 0.3666666666666667, 0.33333333333333337 },
            { 0.05, 0.4 }, { 0.05, 0.4 } } },
        { "cos", 0, { { 0.05, 0.4 }, { 0.05, 0.4 } } },
    }
    for _, row in ipairs(rows) do
        local opt = tide.optim.SGD({ { params = { tide.ones(1, { requires_grad = true }) } },
            { params = { tide.ones(1, { requires_grad = true }) }, lr = 0.2 } }, { lr = 1 })
        local rates = swa.SWALR(opt, { 0.05, 0.4 }, { anneal_epochs = row[2], anneal_strategy = row[1] })
        for _, want in ipairs(row[3]) do
            for k, rate in ipairs(rates:get_last_lr()) do
                t.is_true(math.abs(rate - want[k]) < 1e-12, row[1])
            end
            opt:step()
            rates:step()
        end
    end
end)
