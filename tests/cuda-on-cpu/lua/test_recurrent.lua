-- test_recurrent.lua: layers of recurrent cells on the device against the CPU, their gradients, and how many launches they take.
local t = require "harness"
local both = require "both"

if not both.there then
    t.skip("recurrent layers", "no CUDA device")
    return
end

tide.manual_seed(11)

local GATES = { lstm = 4, gru = 3, rnn_tanh = 1, rnn_relu = 1 }
local NEAR = { float64 = 1e-13, float32 = 3e-6, float16 = 4e-3, bfloat16 = 3e-2 }

-- The arguments of a layer of T times, N rows and H units in both directions: input, state, cell, weights.
local function arguments(gates, T, N, H, dtype)
    local function numbers(...) return (tide.randn(...) * 0.4):to(dtype) end
    local list = { numbers(T, N, 3), numbers(2, N, H), numbers(2, N, H) }
    for _ = 1, 2 do
        list[#list + 1] = numbers(gates * H, 3)
        list[#list + 1] = numbers(gates * H, H)
        list[#list + 1] = numbers(gates * H)
        list[#list + 1] = numbers(gates * H)
    end
    return list
end

-- What a layer makes, and the gradients of all that it was given. options: those of the operator, and `cast`, autocast's
-- dtype; `alone`: without gradients.
local function layer(name, options, cast)
    return function(x, h, c, ...)
        local inputs = { x, h, c, ... }
        for k, input in ipairs(inputs) do
            inputs[k] = input:detach():clone():requires_grad_(not options.alone)
        end
        local params = table.move(inputs, 4, #inputs, 1, {})
        local state = name == "lstm" and { inputs[2], inputs[3] } or inputs[2]
        local made
        local function run()
            made = { tide[name](inputs[1], state, params, true, 1, 0, not options.alone, true, false) }
        end
        if cast then
            tide.autocast(inputs[1].device:match("^%a+"), { dtype = cast }, run)
        else
            run()
        end
        if options.alone then
            return table.unpack(made)
        end
        local loss = 0
        for k, y in ipairs(made) do
            if not options.last or k > 1 then
                loss = loss + (y:float() * tide.linspace(-1, 1, y:numel(), { device = y.device }):view(y.shape)):sum()
            end
        end
        loss:backward()
        for _, input in ipairs(inputs) do
            made[#made + 1] = input.grad
        end
        return table.unpack(made)
    end
end

local function each_kind(run)
    for _, name in ipairs { "lstm", "gru", "rnn_tanh", "rnn_relu" } do
        run(name, GATES[name])
    end
end

-- How many launches of the kernels there were: forwards, and back.
local function launches()
    local back = both.launches("td_recurrent_back_kernel")
    return both.launches("td_recurrent_kernel"), back
end

t.test("values_and_gradients_of_all_kinds_and_sizes", function()
    for _, size in ipairs { { 1, 1, 1 }, { 3, 17, 9 }, { 2, 2, 33 }, { 2, 3, 131 } } do
        local T, N, H = table.unpack(size)
        each_kind(function(name, gates)
            for _, dtype in ipairs { "float32", "float64" } do
                local list = arguments(gates, T, N, H, dtype)
                both.reset()
                both.close(NEAR[dtype], layer(name, {}), table.unpack(list))
                if both.counts then
                    local forward, back = launches()
                    t.eq(forward, 2 * T, name .. ": a launch for each time and direction")
                    t.eq(back, 2 * (T + 1), name .. ": the same back, and one for the first state")
                end
            end
        end)
    end
end)

t.test("without_gradients_and_of_the_last_states_alone", function()
    each_kind(function(name, gates)
        both.close(NEAR.float64, layer(name, { alone = true }), table.unpack(arguments(gates, 4, 3, 10, "float64")))
        both.close(NEAR.float32, layer(name, { last = true }), table.unpack(arguments(gates, 4, 3, 10, "float32")))
    end)
end)

t.test("low_dtypes", function()
    each_kind(function(name, gates)
        for _, dtype in ipairs { "float16", "bfloat16" } do
            local list = arguments(gates, 3, 5, 12, dtype)
            both.reset()
            both.close(NEAR[dtype], layer(name, {}), table.unpack(list))
            if both.counts then
                local forward, back = launches()
                t.eq({ forward, back }, { 6, 8 }, name .. " of " .. dtype)
            end
        end
    end)
end)

t.test("autocast", function()
    each_kind(function(name, gates)
        for _, dtype in ipairs { "float16", "bfloat16" } do
            local list = arguments(gates, 3, 5, 12, "float32")
            both.reset()
            both.close(NEAR[dtype], layer(name, {}, dtype), table.unpack(list))
            if both.counts then
                local forward, back = launches()
                t.eq({ forward, back }, { 6, 8 }, name .. " cast to " .. dtype)
            end
        end
    end)
end)

t.test("large_layers_are_left_to_products", function()
    both.reset()
    both.close(NEAR.float32, layer("lstm", {}), table.unpack(arguments(4, 2, 129, 1, "float32")))
    both.close(1e-4, layer("rnn_tanh", { alone = true }), table.unpack(arguments(1, 1, 1, 1025, "float32")))
    if both.counts then
        t.eq({ launches() }, { 0, 0 })
    end
end)

t.test("gradients_of_gradients", function()
    each_kind(function(name, gates)
        local list = arguments(gates, 2, 2, 3, "float64")
        for k, x in ipairs(list) do
            list[k] = x:to("cuda"):requires_grad_()
        end
        local params = table.move(list, 4, #list, 1, {})
        local state = name == "lstm" and { list[2], list[3] } or list[2]
        local function run(x, w)
            params[2] = w
            return (tide[name](x, state, params, true, 1, 0, true, true, false))
        end
        t.is_true(tide.autograd.gradcheck(run, { list[1], list[5] }, { fast_mode = true }))
        t.is_true(tide.autograd.gradgradcheck(run, { list[1], list[5] }, { fast_mode = true }))
    end)
end)


t.test("tensors_of_other_devices_are_refused", function()
    local list = arguments(4, 2, 2, 3, "float32")
    for k, x in ipairs(list) do
        list[k] = x:to("cuda"):requires_grad_()
    end
    local params = table.move(list, 4, #list, 1, {})
    local function run(h, c) return (tide.lstm(list[1], { h, c }, params, true, 1, 0, true, true, false)) end
    t.refused("don't mix", run, list[2]:cpu(), list[3])
    t.refused("don't mix", run, list[2], list[3]:cpu())
    local y = tide.nn.LSTM(3, 3):to("cuda")(list[1])
    t.refused("gradient on cpu for an output on cuda:0", y.backward, y, tide.ones(y.shape))
end)
