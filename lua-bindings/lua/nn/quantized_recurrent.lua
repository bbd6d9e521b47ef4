-- nn/quantized_recurrent.lua: recurrent layers of tide.nn.quantized.dynamic: weights of bytes, states and gates of floats. What is
-- multiplied is quantized by its own range: the sequence as a whole, and the state in each step.
local tide = ...
local fail, layers, recurrent = tide._fail, tide._require "nn.layer", tide._require "nn.recurrent"

-- What a step makes of the products with its input and with the state before it: the state, and the cell state.
local STEPS = {
    rnn_tanh = function(ahead, behind) return (ahead + behind):tanh() end,
    rnn_relu = function(ahead, behind) return (ahead + behind):relu() end,
    lstm = function(ahead, behind, _, c)
        local i, f, g, o = table.unpack((ahead + behind):chunk(4, 2))
        c = f:sigmoid() * c + i:sigmoid() * g:tanh()
        return o:sigmoid() * c:tanh(), c
    end,
    gru = function(ahead, behind, h)
        local r, z, n = table.unpack(ahead:chunk(3, 2))
        local hr, hz, hn = table.unpack(behind:chunk(3, 2))
        n = (n + (r + hr):sigmoid() * hn):tanh()
        return n + (z + hz):sigmoid() * (h - n)
    end,
}

-- One direction of one layer over x (T, N, features): outputs (T, N, width), and the last state and cell state.
local function run_direction(self, place, x, h, c)
    local ahead, with_state, with_output = self["ih" .. place](x), self["hh" .. place], self["hr" .. place]
    local step, outputs, length = STEPS[self.operator], {}, x:size(1)
    local backward = string.find(place, "reverse", 1, true)
    for k = 1, length do
        local t = backward and length + 1 - k or k
        h, c = step(ahead[t], with_state(h), h, c)
        h = with_output and with_output(h) or h
        outputs[t] = h
    end
    return tide.stack(outputs, 1), h, c
end

local function forward(self, x, hx, more)
    recurrent.check_state(self, hx, more)
    if tide._require("nn.packed").is_packed(x) then
        fail("%s: a tensor expected, got a PackedSequence: pad_packed_sequence makes one of it", getmetatable(self).__name)
    end
    recurrent.check_input(self, x)
    local single, pair = x:dim() == 2, self.operator == "lstm"
    local h = recurrent.first_state(self, x, pair and hx and hx[1] or not pair and hx or nil, recurrent.output_size(self))
    local c = pair and recurrent.first_state(self, x, hx and hx[2], self.hidden_size)
    x = single and x:unsqueeze(2) or self.batch_first and x:transpose(1, 2) or x
    if h:dim() ~= 3 or h:size(1) ~= #self.places or h:size(2) ~= x:size(2) then
        fail("%s: states of shape (%d, %d, ...) expected, got %s", getmetatable(self).__name, #self.places, x:size(2), tostring(h.shape))
    end
    local states, cells, directions = {}, {}, self.bidirectional and 2 or 1
    for at = 1, #self.places, directions do
        local outputs = {}
        for k = at, at + directions - 1 do
            outputs[#outputs + 1], states[k], cells[k] = run_direction(self, self.places[k], x, h[k], c and c[k])
        end
        x = directions == 2 and tide.cat(outputs, 3) or outputs[1]
        if self.training and self.dropout > 0 and at + directions <= #self.places then
            x = tide.dropout(x, self.dropout, true)
        end
    end
    h, c = tide.stack(states, 1), c and tide.stack(cells, 1)
    if single then
        x, h, c = x:squeeze(2), h:squeeze(2), c and c:squeeze(2)
    elseif self.batch_first then
        x = x:transpose(1, 2)
    end
    return x, pair and { h, c } or h
end

local NOTE = " Weights are int8, by rows; the sequence as a whole and the state in each step are quantized by their own range, gates and states "
    .. "are float32. PackedSequence is refused."

--- open(dynamic, set_weight): LSTM, GRU and RNN of the room whose Linear is there; set_weight(linear, {weight, bias}) quantizes.
return function(dynamic, set_weight)
    local function make(self, operator)
        recurrent.give_layers(self, operator, function(_, name, rows, inputs)
            local of, place = string.match(name, "^weight_(%a+)(.*)$")
            if of then
                self[of .. place] = dynamic.Linear(inputs, rows, self.has_bias and of ~= "hr")
            end
        end)
        rawset(self, "places", recurrent.places(self))
    end
    recurrent.sequences(dynamic, make, forward, NOTE)
    for _, name in ipairs { "LSTM", "GRU", "RNN" } do
        dynamic[name].from_float = tide._function("from_float(Module layer) -> Module", "The layer of the weights of a tide.nn." .. name .. ".",
            function(layer)
                local made = dynamic[name](layer.input_size, layer.hidden_size, { num_layers = layer.num_layers, bias = layer.has_bias,
                    batch_first = layer.batch_first, dropout = layer.dropout, bidirectional = layer.bidirectional,
                    proj_size = rawget(layer, "proj_size"), nonlinearity = rawget(layer, "nonlinearity") })
                for _, place in ipairs(made.places) do
                    for _, of in ipairs { "ih", "hh", "hr" } do
                        local weight = layer["weight_" .. of .. place]
                        if weight then
                            set_weight(made[of .. place], { weight = weight, bias = layer["bias_" .. of .. place] })
                        end
                    end
                end
                return made:train(layer.training)
            end)
    end
end
