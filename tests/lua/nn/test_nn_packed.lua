-- test_nn_packed.lua: sequences of different lengths packed without padding, and recurrent layers over them: each
-- sequence has what it would have by itself, and PyTorch's numbers.
local t = require "harness"
local nn, rnn = tide.nn, tide.nn.utils.rnn
local f64 = { dtype = tide.float64 }

local function wave(n, offset) return (tide.arange(0, n * 3, f64) * 0.61 + offset):cos():reshape(n, 3) end

local function layer(class, ...)
    local module, _ <close> = nn[class](3, 4, ...):double(), tide.no_grad()
    for k, p in ipairs(module:parameters()) do
        p:copy_(((tide.arange(0, p:numel(), f64) * 0.37 + k):sin() * 0.5):reshape(p.shape))
    end
    return module
end

local function sequences() return { wave(2, 0), wave(4, 1), wave(1, 2), wave(4, 3) } end

t.test("packing_and_padding_are_inverse", function()
    for _, batch_first in ipairs { false, true } do
        local list = sequences()
        local padded = rnn.pad_sequence(list, { batch_first = batch_first })
        local packed = rnn.pack_padded_sequence(padded, { 2, 4, 1, 4 }, { batch_first = batch_first, enforce_sorted = false })
        t.eq(packed.batch_sizes:tolist(), { 4, 3, 2, 2 })
        t.eq(packed.sorted_indices:tolist(), { 2, 4, 1, 3 })
        t.eq(packed.unsorted_indices:tolist(), { 3, 1, 4, 2 })
        t.eq(packed.data[{ {}, 1 }]:tolist(),
            tide.stack({ list[2][1], list[4][1], list[1][1], list[3][1], list[2][2], list[4][2], list[1][2], list[2][3],
                list[4][3], list[2][4], list[4][4] })[{ {}, 1 }]:tolist())
        local back, lengths = rnn.pad_packed_sequence(packed, { batch_first = batch_first })
        t.is_true(tide.equal(back, padded))
        t.eq(lengths:tolist(), { 2, 4, 1, 4 })
        for k, x in ipairs(rnn.unpack_sequence(packed)) do
            t.is_true(tide.equal(x, list[k]))
        end
    end
end)

t.test("padding_has_a_value_and_a_length_of_its_own", function()
    local packed = rnn.pack_sequence { tide.ones(3), tide.ones(1) * 2 }
    t.eq(packed.sorted_indices, nil)
    local padded, lengths = rnn.pad_packed_sequence(packed, { padding_value = -1, total_length = 4 })
    t.eq(padded:tolist(), { { 1, 2 }, { 1, -1 }, { 1, -1 }, { -1, -1 } })
    t.eq(lengths:tolist(), { 3, 1 })
    t.eq(tostring(packed), "PackedSequence(data = (4), batch_sizes = {2, 1, 1})")
end)

-- Sums of outputs and states, weighted by their places: PyTorch's.
local PYTORCH = {
    RNN = { -17.191304587898973, -769.4977515605357, -202.18357316891967 },
    LSTM = { 6.342946899769958, 302.1914817642478, 55.12245445264947, 91.63591223387331 },
    GRU = { 5.174208899065144, 277.07814461687497, 21.33068808175146 },
}

t.test("packed_sequences_through_layers_compute_as_pytorch", function()
    local function weighted(x) return (x * tide.arange(0, x:numel()):reshape(x.shape)):sum():item() end
    for class, want in pairs(PYTORCH) do
        local y, h = layer(class, 2, { bidirectional = true })(rnn.pack_sequence(sequences(), { enforce_sorted = false }))
        local got = { y.data:sum():item(), weighted(y.data) }
        for _, state in ipairs(tide.is_tensor(h) and { h } or h) do
            got[#got + 1] = weighted(state)
        end
        t.close(got, want, 1e-9, class)
    end
end)

t.test("an_embedding_of_what_is_packed_is_packed_alike", function()
    local rnn, words = tide.nn.utils.rnn, tide.tensor { { 1, 2, 3, 4 }, { 4, 3, 2, 1 }, { 2, 2, 1, 3 } }
    local p = rnn.pack_padded_sequence(words, { 2, 4, 3 }, { batch_first = true, enforce_sorted = false })
    local embed, gru = tide.nn.Embedding(4, 6), tide.nn.GRU(6, 2)
    local q = rnn.PackedSequence(embed(p.data), p.batch_sizes, p.sorted_indices, p.unsorted_indices)
    local want = rnn.pack_padded_sequence(embed(words), { 2, 4, 3 }, { batch_first = true, enforce_sorted = false })
    t.is_true(tide.equal(q.data, want.data) and tide.equal(q.unsorted_indices, want.unsorted_indices))
    t.is_true(tide.equal(gru(q).data, gru(want).data))
    t.error_has(function() rnn.PackedSequence(tide.rand(5, 2), tide.tensor { 2, 3 }) end, "numbers that do not grow, got 3 as number 2")
    t.error_has(function() rnn.PackedSequence(tide.rand(3, 2), tide.tensor { 2, 2 }) end, "data of shape (3, 2) for 4 elements")
    t.error_has(function() rnn.PackedSequence(tide.rand(4, 2), tide.tensor { 2, 2 }, tide.tensor { 1 }) end, "each of 2 sequences")
end)

t.test("each_packed_sequence_has_what_it_has_by_itself", function()
    local cases = { { "RNN", "relu" }, { "LSTM" }, { "GRU" }, { "LSTM", proj = 2 } }
    for _, case in ipairs(cases) do
        local class = case[1]
        local options = { num_layers = 2, bidirectional = true, proj_size = case.proj, nonlinearity = case[2] }
        local module = layer(class, options)
        local function given(k) -- first states, other ones for each sequence
            local function state(size) return (tide.arange(0, 4 * size, f64) + k):sin():reshape(4, 1, size) end
            return class == "LSTM" and { state(case.proj or 4), state(4) } or state(4)
        end
        local function together(pick)
            local list = {}
            for k = 1, 4 do
                list[k] = pick(given(k))
            end
            return tide.cat(list, 2)
        end
        local list, hx = sequences(), nil
        if class == "LSTM" then
            hx = { together(function(s) return s[1] end), together(function(s) return s[2] end) }
        else
            hx = together(function(s) return s end)
        end
        local y, h = module(rnn.pack_sequence(list, { enforce_sorted = false }), hx)
        local outputs = rnn.unpack_sequence(y)
        for k, x in ipairs(list) do
            local own, last = module(x:unsqueeze(2), given(k))
            t.is_true(tide.allclose(outputs[k], own:squeeze(2), { atol = 1e-12 }), class)
            for s, state in ipairs(class == "LSTM" and last or { last }) do
                local all = class == "LSTM" and h[s] or h
                t.is_true(tide.allclose(all:narrow(2, k, 1), state, { atol = 1e-12 }), class)
            end
        end
    end
end)

t.test("gradients_flow_through_packed_sequences", function()
    local module = layer("GRU", { bidirectional = true })
    local function loss(a, b, c)
        local y, h = module(rnn.pack_sequence({ a, b, c }, { enforce_sorted = false }))
        return rnn.pad_packed_sequence(y):square():sum() + h:sum()
    end
    local inputs = {}
    for k, x in ipairs { wave(2, 0), wave(3, 1), wave(1, 2) } do
        inputs[k] = x:requires_grad_()
    end
    t.is_true(tide.autograd.gradcheck(loss, inputs))
end)

t.test("dropout_between_packed_layers_acts_in_training_alone", function()
    local module = layer("LSTM", 2, { dropout = 0.5 })
    local packed = rnn.pack_sequence { wave(4, 0), wave(2, 1) }
    t.is_false(tide.equal(module(packed).data, module(packed).data))
    module:eval()
    t.is_true(tide.equal(module(packed).data, module(packed).data))
end)

t.test("wrong_packings_say_what_is_wrong", function()
    local x = tide.ones(3, 2, 5)
    local function refuses(text, ...)
        local args = table.pack(...)
        t.error_has(function() rnn.pack_padded_sequence(table.unpack(args, 1, args.n)) end, text)
    end
    refuses("sequence 2 (length 3) is longer than the one before it (2)", x, { 2, 3 })
    refuses("expected a length for each of 2 sequences", x, { 3 })
    refuses("length 2 must be from 1 to 3, got 4", x, { 3, 4 })
    refuses("length 1 must be from 1 to 3, got 0", x, { 0, 1 })
    refuses("argument 2 (lengths): expected a list of integers or a tensor, got number 3", x, 3)
    refuses("two dims at least", tide.ones(3), { 3 })
    refuses("there are no sequences", tide.ones(3, 0, 5), {})
    t.error_has(function() rnn.pack_sequence {} end, "pack_sequence: there are no sequences")
    t.error_has(function() rnn.pack_sequence { tide.tensor(1.0) } end, "at least one dim")
    local packed = rnn.pack_sequence { tide.ones(3, 5), tide.ones(1, 5) }
    t.error_has(function() rnn.pad_packed_sequence(packed, { total_length = 2 }) end,
        "total_length must be at least that of the longest sequence, 3, got 2")
    t.error_has(function() rnn.pad_packed_sequence(tide.ones(2)) end, "PackedSequence")
    t.error_has(function() nn.GRU(4, 2)(packed) end, "GRU: packed elements must be of input_size 4, got shape (4, 5)")
    t.error_has(function() nn.GRU(5, 2)(packed, tide.zeros(1, 3, 2)) end,
        "GRU: a first state of shape (1, 2, 2) expected, got (1, 3, 2)")
    t.error_has(function() nn.LSTM(5, 2)(packed, tide.zeros(1, 2, 2)) end, "expected {hidden state, cell state}")
end)
