-- test_nn_parametrize.lua: tensors of modules that are worked out from others: what they are, how they are set, end
-- and are saved; weights of a given length, orthogonal ones, ones of spectral norm 1.
local t = require "harness"
local nn = tide.nn
local parametrize, parametrizations = nn.utils.parametrize, nn.utils.parametrizations

local Symmetric = nn.class "Symmetric"
function Symmetric:forward(x) return x:triu() + x:triu(1):t() end
function Symmetric:right_inverse(x) return x:triu() end

local Double = nn.class "Double"
function Double:forward(x) return x * 2 end

local function is_symmetric(x) return tide.equal(x, x:t()) end

t.test("a_parametrized_weight_is_worked_out_when_it_is_asked_for", function()
    local layer = nn.Linear(3, 3)
    local weight, before = layer.weight, layer.weight:detach():clone()
    t.eq(parametrize.register_parametrization(layer, "weight", Symmetric()), layer)
    t.is_true(is_symmetric(layer.weight))
    t.eq(layer.parametrizations.weight.original, weight) -- an optimizer goes on with it
    t.is_true(tide.equal(weight, before:triu()))
    local x = tide.randn(2, 3)
    t.is_true(tide.equal(layer(x), tide.linear(x, layer.weight, layer.bias)))
    local names = {}
    for name in layer:named_parameters() do
        names[#names + 1] = name
    end
    t.eq(names, { "bias", "parametrizations.weight.original" })
    local loss = layer(x):sum()
    loss:backward()
    t.is_true(weight.grad ~= nil)
    t.is_true(tostring(layer):find("ParametrizedLinear(", 1, true))
    t.is_true(parametrize.is_parametrized(layer))
    t.is_true(parametrize.is_parametrized(layer, "weight"))
    t.is_false(parametrize.is_parametrized(layer, "bias"))
    t.eq(parametrize.type_before_parametrizations(layer), nn.Linear)
end)

t.test("setting_goes_through_right_inverse_and_may_be_impossible", function()
    local layer = nn.Linear(2, 2)
    parametrize.register_parametrization(layer, "weight", Symmetric())
    layer.weight = tide.tensor { { 1.0, 2.0 }, { 2.0, 5.0 } }
    t.eq(layer.weight:tolist(), { { 1, 2 }, { 2, 5 } })
    t.error_has(function() layer.weight = tide.ones(3, 3) end, "(3, 3)")
    t.error_has(function() layer.weight = 3 end, "weight: a tensor expected, got number 3")
    parametrize.register_parametrization(layer, "bias", Double())
    t.error_has(function() layer.bias = tide.ones(2) end, "Double has no right_inverse, so its value can't be set")
end)

t.test("several_are_one_behind_the_other", function()
    local layer = nn.Linear(3, 3)
    parametrize.register_parametrization(layer, "weight", Symmetric())
    local once = layer.weight:detach():clone()
    parametrize.register_parametrization(layer, "weight", Double())
    t.is_true(tide.equal(layer.weight, once * 2))
    t.eq(#layer.parametrizations.weight:children(), 2)
end)

t.test("removing_leaves_the_value_or_the_original", function()
    for _, stays in ipairs { true, false } do
        local layer = nn.Linear(3, 3)
        local weight = layer.weight
        parametrize.register_parametrization(layer, "weight", Double())
        local original, value = weight:detach():clone(), layer.weight:detach():clone()
        t.eq(parametrize.remove_parametrizations(layer, "weight", stays), layer)
        t.eq(getmetatable(layer), nn.Linear)
        t.eq(layer.weight, weight)
        t.is_true(tide.equal(layer.weight, stays and value or original))
        t.is_false(parametrize.is_parametrized(layer))
        t.eq(#layer:parameters(), 2)
    end
    local layer = parametrizations.weight_norm(nn.Linear(3, 2))
    t.error_has(function() parametrize.remove_parametrizations(layer, "weight", false) end, "made of 2 tensors")
    local value = layer.weight:detach():clone()
    parametrize.remove_parametrizations(layer, "weight")
    t.is_true(tide.equal(layer.weight, value) and layer.weight.is_leaf and layer.weight.requires_grad)
end)

t.test("values_are_kept_while_cached_holds", function()
    local calls, Counted = 0, nn.class "Counted"
    function Counted:forward(x)
        calls = calls + 1
        return x + 1
    end
    local layer = nn.Linear(2, 2)
    parametrize.register_parametrization(layer, "weight", Counted())
    calls = 0
    do
        local _ <close> = parametrize.cached()
        do
            local _ <close> = parametrize.cached()
            layer(tide.ones(1, 2))
        end
        layer(tide.ones(1, 2))
        t.eq(calls, 1)
    end
    layer(tide.ones(1, 2))
    layer(tide.ones(1, 2))
    t.eq(calls, 3)
    local function twice(x) return layer(x), layer(x) end
    local y, z = parametrize.cached(twice, tide.ones(1, 2))
    t.eq(calls, 4)
    t.is_true(tide.equal(y, z))
    t.error_has(function() parametrize.cached(error, "stop") end, "stop")
    twice(tide.ones(1, 2))
    t.eq(calls, 6)
end)

t.test("states_and_copies_keep_parametrizations", function()
    local function new()
        local layer = parametrizations.spectral_norm(nn.Linear(4, 3))
        return parametrize.register_parametrization(layer, "bias", Double())
    end
    local a, b = new():eval(), new():eval()
    local loaded = b:load_state_dict(a:state_dict())
    t.eq({ loaded.missing_keys, loaded.unexpected_keys, tostring(loaded) }, { {}, {}, "all keys matched" })
    t.is_true(tide.equal(a.weight, b.weight) and tide.equal(a.bias, b.bias))
    local copy = a:clone()
    copy.parametrizations.weight.original:detach():zero_()
    t.is_true(a.weight:abs():sum():item() > 0 and copy.weight:nan_to_num(0):abs():sum():item() == 0)
    t.eq(a:double().weight.dtype, tide.float64)
end)

t.test("what_does_not_fit_is_refused_and_changes_nothing", function()
    local Cut, Number = nn.class "Cut", nn.class "Number"
    function Cut:forward(x) return x[1] end
    function Number:forward() return 3 end
    local layer = nn.Linear(3, 2)
    local before = layer.weight:detach():clone()
    local function refuses(text, ...)
        local args = table.pack(...)
        t.error_has(function() parametrize.register_parametrization(layer, table.unpack(args, 1, args.n)) end, text)
        t.eq(getmetatable(layer), nn.Linear)
        t.is_true(tide.equal(layer.weight, before))
    end
    refuses("the value of weight is tide.float32 (3), it was tide.float32 (2, 3)", "weight", Cut())
    refuses("the value: a tensor expected, got number 3", "weight", Number())
    refuses("Linear has no parameter or buffer 'width'", "width", Double())
    refuses("Linear has no parameter or buffer 'in_features'", "in_features", Double())
    refuses("argument 3 (parametrization)", "weight", function(x) return x end)
    parametrize.register_parametrization(layer, "weight", Cut(), { unsafe = true })
    t.eq(layer.weight.shape[1], 3)
    t.error_has(function() parametrize.remove_parametrizations(layer, "bias") end, "no parametrization of 'bias'")
end)

t.test("orthogonal_weights_are_and_stay_orthonormal", function()
    tide.manual_seed(3)
    for _, map in ipairs { "matrix_exp", "cayley", "householder" } do
        for _, sizes in ipairs { { 3, 3 }, { 5, 3 }, { 3, 5 } } do
            for _, from_base in ipairs { true, false } do
                local layer = nn.Linear(table.unpack(sizes)):double()
                parametrizations.orthogonal(layer, "weight", map, { use_trivialization = from_base })
                local optimizer = tide.optim.SGD(layer:parameters(), { lr = 0.1 })
                for _ = 1, 3 do
                    optimizer:zero_grad()
                    local loss = layer(tide.randn(4, sizes[1], { dtype = tide.float64 })):square():sum()
                    loss:backward()
                    optimizer:step()
                end
                local w = layer.weight:detach()
                local small = w.shape[1] < w.shape[2] and w:mm(w:t()) or w:t():mm(w)
                t.is_true(tide.allclose(small, tide.eye(3, { dtype = tide.float64 }), { atol = 1e-10 }), map)
            end
        end
    end
    local layer = parametrizations.orthogonal(nn.Linear(3, 3):double())
    local Q = tide.linalg.qr(tide.randn(3, 3, { dtype = tide.float64 }))
    layer.weight = Q
    t.is_true(tide.allclose(layer.weight, Q, { atol = 1e-12 }))
    local reflected = parametrizations.orthogonal(nn.Linear(3, 5):double(), "weight", "householder", { use_trivialization = false })
    Q = tide.linalg.qr(tide.randn(5, 3, { dtype = tide.float64 }))
    reflected.weight = Q
    t.is_true(tide.allclose(reflected.weight, Q, { atol = 1e-12 }))
    local fixed = parametrizations.orthogonal(nn.Linear(3, 3), "weight", "cayley", { use_trivialization = false })
    t.error_has(function() fixed.weight = tide.eye(3) end, "_Orthogonal has no right_inverse")
    t.error_has(function() parametrizations.orthogonal(nn.Linear(3, 3), "bias") end, "orthogonal: a matrix or a batch")
    t.error_has(function() parametrizations.orthogonal(nn.Linear(3, 3), "weight", "qr") end, "orthogonal_map")
end)

t.test("spectral_norms_come_near_one_in_training_and_stay_in_evaluation", function()
    tide.manual_seed(4)
    for _, layer in ipairs { nn.Linear(6, 4), nn.ConvTranspose2d(3, 4, 2) } do
        parametrizations.spectral_norm(layer, "weight", 3)
        for _ = 1, 50 do
            local _ = layer.weight
        end
        layer:eval()
        local weight = layer.weight
        local rows = weight:movedim(#weight.shape == 4 and 2 or 1, 1):flatten(2)
        t.close(tide.linalg.svdvals(rows)[1]:item(), 1, 1e-3)
        t.is_true(tide.equal(weight, layer.weight))
    end
    local bias = parametrizations.spectral_norm(nn.Linear(2, 5), "bias")
    t.close(bias.bias:norm():item(), 1, 1e-6)
    t.error_has(function() parametrizations.spectral_norm(nn.Linear(2, 2), { dim = 3 }) end, "dim 3 is out of range")
    t.error_has(function() parametrizations.weight_norm(nn.ReLU()) end, "ReLU has no parameter or buffer 'weight'")
end)
