-- test_quantized_recurrent.lua: recurrent layers of bytes beside those of floats that have the weights which the bytes stand for.
local t = require "harness"
local nn = tide.nn
local dynamic = nn.quantized.dynamic

local KINDS = {
    { "LSTM", { num_layers = 2, bidirectional = true, batch_first = true } }, { "LSTM", { proj_size = 5 } }, { "GRU", { num_layers = 2 } },
    { "GRU", { bidirectional = true, bias = false } }, { "RNN", { nonlinearity = "relu" } }, { "RNN", { num_layers = 3, batch_first = true } },
}

-- A layer of floats and its like in bytes, the floats' weights being what the bytes stand for.
local function both(name, options)
    local floats = nn[name](12, 16, options)
    local bytes = dynamic[name].from_float(floats)
    local _ <close> = tide.no_grad()
    for _, place in ipairs(bytes.places) do
        for _, of in ipairs { "ih", "hh", "hr" } do
            if bytes[of .. place] then
                floats["weight_" .. of .. place]:copy_(bytes[of .. place].weight:dequantize())
            end
        end
    end
    return floats, bytes
end

local function states(last) return tide.is_tensor(last) and { last } or last end

local function compare(floats, bytes, x, first)
    local y, last = floats(x, first)
    local z, got = bytes(x, first)
    t.eq(z.shape, y.shape)
    t.is_true((z - y):abs():max():item() < 0.03 * y:abs():max():item(), tostring(floats))
    last, got = states(last), states(got)
    for k = 1, #last do
        t.eq(got[k].shape, last[k].shape)
        t.is_true((got[k] - last[k]):abs():max():item() < 0.03 * last[k]:abs():max():item(), tostring(floats))
    end
end

t.test("they_are_near_the_floats_with_and_without_states_and_batch", function()
    tide.manual_seed(0)
    for _, kind in ipairs(KINDS) do
        local floats, bytes = both(table.unpack(kind))
        local x = tide.randn(7, 3, 12)
        compare(floats, bytes, x)
        compare(floats, bytes, x[1])
        local _, last = floats(x)
        compare(floats, bytes, x, last)
    end
end)

t.test("products_are_exact_so_two_threads_and_a_loaded_layer_give_the_same_bits", function()
    tide.manual_seed(0)
    for _, kind in ipairs(KINDS) do
        local _, bytes = both(table.unpack(kind))
        local x = tide.randn(7, 3, 12)
        local y = bytes(x)
        local other = dynamic[kind[1]](12, 16, kind[2])
        other:load_state_dict(bytes:state_dict())
        t.is_true(other(x):equal(y))
        local before = tide.get_num_threads()
        tide.set_num_threads(2)
        t.is_true(bytes(x):equal(y))
        tide.set_num_threads(before)
    end
end)

t.test("what_does_not_fit_is_said", function()
    local bytes = dynamic.LSTM.from_float(nn.LSTM(4, 8))
    t.error_has(function() bytes(tide.randn(5, 2, 3)) end, "LSTM: the last dim of input must be input_size 4, got shape (5, 2, 3)")
    t.error_has(function() bytes(3) end, "LSTM: argument 1 (input): expected a tensor, got")
    t.error_has(function() bytes(tide.randn(5, 2, 4), tide.zeros(1, 2, 8)) end, "expected {hidden state, cell state}")
    t.error_has(function() bytes(tide.randn(5, 2, 4), { tide.zeros(2, 2, 8), tide.zeros(2, 2, 8) }) end, "states of shape (1, 2, ...) expected, got (2, 2, 8)")
    local packed = nn.utils.rnn.pack_sequence { tide.randn(3, 4), tide.randn(2, 4) }
    t.error_has(function() bytes(packed) end, "LSTM: a tensor expected, got a PackedSequence: pad_packed_sequence")
end)

t.test("quantize_dynamic_takes_them", function()
    tide.manual_seed(0)
    local Net = nn.class "Net"
    function Net:init()
        self.lstm, self.out = nn.LSTM(12, 16, { batch_first = true }), nn.Linear(16, 5)
    end
    function Net:forward(x) return self.out((self.lstm(x))) end
    local net, x = Net(), tide.randn(4, 9, 12)
    local small = tide.quantization.quantize_dynamic(net)
    t.is_true(nn.is(small.lstm, dynamic.LSTM) and nn.is(small.out, dynamic.Linear) and nn.is(net.lstm, nn.LSTM))
    t.is_true((small(x) - net(x)):abs():max():item() < 0.03 * net(x):abs():max():item())
    local half = tide.quantization.quantize_dynamic(net, { nn.Linear })
    t.is_true(nn.is(half.lstm, nn.LSTM) and nn.is(half.out, dynamic.Linear))
    t.is_true(nn.is(tide.quantization.quantize_dynamic(nn.GRU(3, 4)), dynamic.GRU))
    t.error_has(function() tide.quantization.quantize_dynamic(net, { nn.Conv2d }) end, "quantize_dynamic: types: of tide.nn Linear, LSTM")
end)
