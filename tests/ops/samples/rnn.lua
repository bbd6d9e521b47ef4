-- Samples of recurrent cells and sequences (see test_walk.lua for what `mk` makes).
local function cell(gates, pair)
    local function state(mk, ...) return pair and { mk(...), mk(...) } or mk(...) end
    return {
        function(mk)
            return { mk(2, 3), state(mk, 2, 2), mk(2 * gates, 3), mk(2 * gates, 2), mk(2 * gates), mk(2 * gates) }
        end,
        function(mk) return { mk(2, 1), state(mk, 2, 2), mk(2 * gates, 1), mk(2 * gates, 2) } end,
        function(mk) return { mk(1), state(mk, 2), mk(2 * gates, 1), mk(2 * gates, 2) } end,
    }
end
local function sequence(gates, pair)
    local function state(mk, ...) return pair and { mk(...), mk(...) } or mk(...) end
    local function layer(mk, inputs)
        return mk(2 * gates, inputs), mk(2 * gates, 2), mk(2 * gates), mk(2 * gates)
    end
    return {
        function(mk) return { mk(3, 2, 1), state(mk, 1, 2, 2), { layer(mk, 1) } } end,
        function(mk)
            local params = { layer(mk, 1) }
            table.move({ layer(mk, 2) }, 1, 4, 5, params)
            return { mk(2, 3, 1), state(mk, 2, 2, 2), params, { num_layers = 2, batch_first = true } }
        end,
        function(mk)
            return { mk(2, 1, 2), state(mk, 2, 1, 2),
                { mk(2 * gates, 2), mk(2 * gates, 2), mk(2 * gates, 2), mk(2 * gates, 2) },
                { has_biases = false, bidirectional = true } }
        end,
    }
end

return {
    rnn_tanh_cell = cell(1),
    rnn_relu_cell = cell(1),
    lstm_cell = cell(4, true),
    gru_cell = cell(3),
    rnn_tanh = sequence(1),
    rnn_relu = sequence(1),
    lstm = sequence(4, true),
    gru = sequence(3),
}
