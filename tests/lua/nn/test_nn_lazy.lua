-- test_nn_lazy.lua: layers that take their number of inputs from the first one become the layers that they are named after.
local t = require "harness"
local nn = tide.nn

local function same_state(a, b)
    local ours, theirs = a:state_dict(), b:state_dict()
    for name, x in pairs(theirs) do
        t.is_true(tide.equal(x, ours[name]), name)
        ours[name] = nil
    end
    t.eq(next(ours), nil)
end

t.test("each_lazy_layer_becomes_the_layer_that_is_made_with_the_size", function()
    for _, case in ipairs {
        { "Linear", { 5 }, { 4, 3, 7 } }, { "Linear", { 5, { bias = false } }, { 7 } },
        { "Conv1d", { 4, 3 }, { 2, 6, 9 } }, { "Conv2d", { 4, 3, { padding = "same", groups = 2 } }, { 2, 6, 5, 5 } },
        { "Conv3d", { 4, 2, { bias = false } }, { 6, 3, 3, 3 } }, { "ConvTranspose1d", { 4, 3 }, { 6, 5 } },
        { "ConvTranspose2d", { 4, 3, { stride = 2 } }, { 2, 6, 5, 5 } }, { "ConvTranspose3d", { 4, 2 }, { 2, 6, 3, 3, 3 } },
        { "BatchNorm1d", {}, { 4, 6 } }, { "BatchNorm1d", {}, { 4, 6, 3 } }, { "BatchNorm2d", { { eps = 0.1, affine = false } }, { 4, 6, 3, 3 } },
        { "BatchNorm3d", { { momentum = false } }, { 4, 6, 3, 3, 3 } }, { "InstanceNorm1d", { { affine = true, track_running_stats = false } }, { 6, 3 } },
        { "InstanceNorm2d", { { track_running_stats = true, affine = false } }, { 4, 6, 3, 3 } },
        { "InstanceNorm3d", { { affine = false, track_running_stats = false } }, { 4, 6, 3, 3, 3 } },
    } do
        local name, arguments, sizes = table.unpack(case)
        local x = tide.randn(sizes)
        local channels = name == "Linear" and x:size(-1) or (name == "InstanceNorm1d" or #sizes == tonumber(string.match(name, "%d")) + 1)
            and name ~= "BatchNorm1d" and x:size(1) or x:size(2)
        local layer = nn["Lazy" .. name](table.unpack(arguments))
        t.is_true(nn.is(layer, nn[name]) and string.find(tostring(layer), "^Lazy" .. name) ~= nil, name)
        tide.manual_seed(3)
        local y = layer(x)
        tide.manual_seed(3)
        local direct = nn[name](channels, table.unpack(arguments))
        t.is_true(tide.equal(y, direct(x)), name)
        t.eq(tostring(layer), tostring(direct))
        t.eq(layer.__name, name)
        same_state(layer, direct)
    end
end)

t.test("lazy_instance_norms_learn_and_keep_statistics_where_nothing_is_said", function()
    local norm = nn.LazyInstanceNorm2d()
    norm(tide.randn(2, 3, 4, 4))
    t.eq({ norm.affine, norm.track_running_stats, #norm:parameters(), #norm:buffers() }, { true, true, 2, 3 })
end)

t.test("before_the_first_call_there_are_no_parameters_and_that_is_said", function()
    local model = nn.Sequential(nn.Linear(2, 3), nn.LazyLinear(4))
    for _, ask in ipairs { model.parameters, model.state_dict, model.zero_grad, function() model:load_state_dict({}) end,
        function() tide.jit.script(model) end, function() tide.jit.trace(model, tide.ones(1, 2)) end } do
        t.error_has(function() ask(model) end, "LazyLinear has no parameters before its first call")
    end
    tide.no_grad(model, tide.ones(1, 2))
    t.eq(#model:parameters(), 4)
    t.is_true(tide.equal(tide.jit.script(model)(tide.ones(1, 2)), model(tide.ones(1, 2))))
    t.is_true(model[2].weight.requires_grad and model[2].weight.is_leaf)
    local optimizer = tide.optim.SGD(model:parameters(), { lr = 0.1 })
    local before = model[2].weight:detach():clone()
    model(tide.ones(1, 2)):sum():backward()
    optimizer:step()
    t.is_false(tide.equal(before, model[2].weight))
end)

t.test("what_was_said_before_the_first_call_holds_after_it", function()
    local model = nn.Sequential(nn.LazyLinear(4), nn.LazyBatchNorm1d()):eval():double()
    local calls = 0
    model[1]:register_forward_hook(function() calls = calls + 1 end)
    local copy = model:clone()
    local y = model(tide.ones(2, 3, { dtype = tide.float64 }))
    t.eq(y.dtype, tide.float64)
    t.eq(calls, 1)
    t.is_false(model[2].training)
    t.eq(model[2].num_batches_tracked:item(), 0)
    t.eq(copy[1].__name, "LazyLinear")
    t.eq(copy(tide.ones(2, 7, { dtype = tide.float64 })).shape, { 2, 4 })
    t.eq(nn.LazyLinear(2, { dtype = tide.bfloat16 })(tide.ones(1, 3, { dtype = tide.bfloat16 })).dtype, tide.bfloat16)
    t.eq(tostring(nn.LazyLinear(2):to("meta")(tide.ones(1, 3, { device = "meta" })).device), "meta")
end)

t.test("a_layer_that_can_not_be_made_waits_on", function()
    local layer = nn.LazyConv1d { out_channels = 4, kernel_size = 3, groups = 2 }
    t.error_has(function() layer(tide.ones(1, 3, 8)) end, "3 and 4 channels can't be divided into 2 groups")
    t.error_has(function() layer(tide.ones(8)) end, "LazyConv1d: expected 2 or 3 dims, got shape (8)")
    t.error_has(function() layer(3) end, "LazyConv1d: expected 2 or 3 dims")
    t.eq(layer(tide.ones(1, 6, 8)).shape, { 1, 4, 6 })
end)
