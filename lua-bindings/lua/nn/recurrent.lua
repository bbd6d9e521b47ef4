-- nn/recurrent.lua: recurrent layers and cells of tide.nn. Weights bear PyTorch's names (weight_ih_l0,
-- weight_hh_l0_reverse, ...), gates stand in its order.
local tide = ...
local fail, layers, init = tide._fail, tide._require "nn.layer", tide._require "nn.init"
local layer, packed, recurrent = layers.layer, tide._require "nn.packed", {}

local gates = { rnn_tanh = 1, rnn_relu = 1, lstm = 4, gru = 3 }

-- U(-1/sqrt(hidden), 1/sqrt(hidden)) for everything that learns.
local function start(self, name, ...)
    local bound = 1 / math.sqrt(self.hidden_size)
    self[name] = init.uniform_(tide.empty(...), -bound, bound):requires_grad_(true)
end

local function operator_of(kind, nonlinearity)
    return kind == "rnn" and "rnn_" .. nonlinearity or kind
end

-- ---- sequences ----

-- Suffixes of the weights' names, layer by layer.
local function places(self)
    local list = {}
    for k = 0, self.num_layers - 1 do
        list[#list + 1] = "_l" .. k
        if self.bidirectional then
            list[#list + 1] = "_l" .. k .. "_reverse"
        end
    end
    return list
end

-- The size of what a layer gives: projected where that is asked for.
local function output_size(self)
    local projected = rawget(self, "proj_size") or 0
    return projected > 0 and projected or self.hidden_size
end

-- give(self, name, ...) makes the parameter of a name and a shape.
local function give_layers(self, operator, give)
    local outputs = output_size(self)
    if (rawget(self, "proj_size") or 0) >= self.hidden_size then
        fail("%s: proj_size must be less than hidden_size %d, got %d", getmetatable(self).__name, self.hidden_size,
            self.proj_size)
    end
    local rows, directions = gates[operator] * self.hidden_size, self.bidirectional and 2 or 1
    local has_bias = layers.take_bias(self)
    rawset(self, "operator", operator)
    for k, place in ipairs(places(self)) do
        local inputs = k <= directions and self.input_size or outputs * directions
        give(self, "weight_ih" .. place, rows, inputs)
        give(self, "weight_hh" .. place, rows, outputs)
        if has_bias then
            give(self, "bias_ih" .. place, rows)
            give(self, "bias_hh" .. place, rows)
        end
        if outputs ~= self.hidden_size then
            give(self, "weight_hr" .. place, outputs, self.hidden_size)
        end
    end
end

-- All weights, or those of one layer and direction.
local function weights(self, only)
    local list, all = {}, places(self)
    for _, place in ipairs(only and { all[only] } or all) do
        list[#list + 1] = self["weight_ih" .. place]
        list[#list + 1] = self["weight_hh" .. place]
        if self.has_bias then
            list[#list + 1] = self["bias_ih" .. place]
            list[#list + 1] = self["bias_hh" .. place]
        end
        if output_size(self) ~= self.hidden_size then
            list[#list + 1] = self["weight_hr" .. place]
        end
    end
    return list
end

local function check_input(self, x)
    local name = getmetatable(self).__name
    if not tide.is_tensor(x) then
        fail("%s: argument 1 (input): expected a tensor, got %s", name, tide._describe(x))
    elseif x:dim() ~= 2 and x:dim() ~= 3 then
        fail("%s: input must be a sequence of 3 dims, or of 2 without batch, got shape %s", name, tostring(x.shape))
    elseif x.shape[-1] ~= self.input_size then
        fail("%s: the last dim of input must be input_size %d, got shape %s", name, self.input_size, tostring(x.shape))
    end
end

-- A state given without batch gets one; none becomes zeros.
local function first_state(self, x, given, size)
    if given then
        return x:dim() == 2 and given:unsqueeze(2) or given
    end
    local batch = x:dim() == 2 and 1 or x.shape[self.batch_first and 1 or 2]
    return tide.zeros(self.num_layers * (self.bidirectional and 2 or 1), batch, size,
        { dtype = x.dtype, device = x.device })
end

-- Refuses a first state that is not as the layer has it, and what is more than that.
local function check_state(self, hx, more)
    local name, pair = getmetatable(self).__name, self.operator == "lstm"
    if pair and (more ~= nil or hx ~= nil and not (type(hx) == "table" and tide.is_tensor(hx[1]) and tide.is_tensor(hx[2]))) then
        fail("%s: argument 2 (hx): expected {hidden state, cell state}, got %s: write lstm(x, {h0, c0})", name,
            more ~= nil and "two arguments" or tide._describe(hx))
    elseif not pair and (more ~= nil or hx ~= nil and not tide.is_tensor(hx)) then
        fail("%s: argument 2 (hx): expected one hidden state, got %s: write %s(x, h0)", name,
            more ~= nil and "two arguments" or tide._describe(hx), string.lower(name))
    end
end

local function run_packed(self, sequence, hx)
    local x, pair = sequence.data, self.operator == "lstm"
    if x:dim() ~= 2 or x.shape[2] ~= self.input_size then
        fail("%s: packed elements must be of input_size %d, got shape %s", getmetatable(self).__name, self.input_size,
            tostring(x.shape))
    end
    local count, batch = #places(self), sequence.batch_sizes[1]:item()
    local function state(given, size)
        local zeros = tide.zeros(count, batch, size, { dtype = x.dtype, device = x.device })
        if given and given.shape ~= zeros.shape then
            fail("%s: a first state of shape %s expected, got %s", getmetatable(self).__name, tostring(zeros.shape),
                tostring(given.shape))
        end
        return given or zeros
    end
    local states = pair and { state(hx and hx[1], output_size(self)), state(hx and hx[2], self.hidden_size) }
        or { state(hx, self.hidden_size) }
    local y, last = packed.run(self, sequence, states, function(place) return weights(self, place) end)
    return y, pair and last or last[1]
end

local function run(self, x, hx, more)
    check_state(self, hx, more)
    if packed.is_packed(x) then
        return run_packed(self, x, hx)
    end
    check_input(self, x)
    local single, pair = x:dim() == 2, self.operator == "lstm"
    if pair then
        hx = { first_state(self, x, hx and hx[1], output_size(self)), first_state(self, x, hx and hx[2], self.hidden_size) }
    else
        hx = first_state(self, x, hx, self.hidden_size)
    end
    local batch_dim = self.batch_first and 1 or 2
    local y, h, c = tide[self.operator](single and x:unsqueeze(batch_dim) or x, hx, weights(self), self.has_bias,
        self.num_layers, self.dropout, self.training, self.bidirectional, self.batch_first)
    if single then
        y, h, c = y:squeeze(batch_dim), h:squeeze(2), c and c:squeeze(2)
    end
    return y, pair and { h, c } or h
end

local function describe(self)
    local text = string.format("%d, %d", self.input_size, self.hidden_size)
    if output_size(self) ~= self.hidden_size then
        text = text .. ", proj_size=" .. self.proj_size
    end
    for _, pair in ipairs { { "num_layers", 1 }, { "has_bias", true, "bias" }, { "batch_first", false },
        { "dropout", 0 }, { "bidirectional", false } } do
        if self[pair[1]] ~= pair[2] then
            local value = self[pair[1]]
            text = string.format("%s, %s=%s", text, pair[3] or pair[1],
                math.type(value) == "float" and tide._number(value, 6) or tostring(value))
        end
    end
    return text
end

local options = "bool bias=true, bool batch_first=false, number(0..1) dropout=0, bool bidirectional=false"

-- Shapes of layers whose states are `states`, "(S)" each, which they also give: `given`.
local function sequence_shapes(states, given, definitions)
    return string.format("input (T, N?, input_size), hx %s -> (T, N?, out*directions), %s if not batch_first "
        .. "| input (N?, T, input_size), hx %s -> (N?, T, out*directions), %s; layers = num_layers*directions; "
        .. "directions = 2 if bidirectional else 1; %s", states, given, states, given, definitions)
end

local ONE_STATE = sequence_shapes("(layers, N?, out)", "(layers, N?, out)", "out = hidden_size")
local TWO_STATES = sequence_shapes("{(layers, N?, width)}", "(layers, N?, out), (layers, N?, hidden_size)",
    "out = proj_size if proj_size > 0 else hidden_size; width: out of the states, hidden_size of the cell states")

local NONLINEARITY = '"tanh"|"relu" nonlinearity="tanh"'

local flatten_parameters = tide._function("flatten_parameters(Module self)",
    "Changes nothing: the engine packs weights itself. PyTorch's layers are called so on a GPU.", function() end)

--- sequences(room, make, forward, note): RNN, LSTM and GRU of a room; make(layer, operator) gives a layer its weights, forward runs
--- it, note ends what help says of it.
function recurrent.sequences(room, make, forward, note)
    local function sequence(name, first, last, doc, shapes)
        local head = "(int(1..) input_size, int(1..) hidden_size, int(1..1048576) num_layers=1, "
        layer(room, name .. head .. first .. options .. last .. ")", doc .. note, shapes, {
            make = function(self) make(self, operator_of(string.lower(name), self.nonlinearity)) end,
            forward = forward,
            flatten_parameters = flatten_parameters,
            extra_repr = describe,
        })
    end
    sequence("RNN", NONLINEARITY .. ", ", "", "Layers of Elman's cells over sequences; gives outputs and last states.", ONE_STATE)
    sequence("LSTM", "", ", int(0..) proj_size=0", "Layers of LSTM cells over sequences; gives outputs and {last states, last cell states}.", TWO_STATES)
    sequence("GRU", "", "", "Layers of GRU cells over sequences; gives outputs and last states.", ONE_STATE)
end

recurrent.places, recurrent.output_size, recurrent.give_layers = places, output_size, give_layers
recurrent.check_input, recurrent.check_state, recurrent.first_state = check_input, check_state, first_state

-- ---- cells ----

local function run_cell(self, x, hx, more)
    check_state(self, hx, more)
    check_input(self, x:dim() == 1 and x:unsqueeze(1) or x)
    local single, pair = x:dim() == 1, self.operator == "lstm"
    local function state(given)
        if given then
            return single and given:unsqueeze(1) or given
        end
        return tide.zeros(single and 1 or x.shape[1], self.hidden_size, { dtype = x.dtype, device = x.device })
    end
    if pair then
        hx = { state(hx and hx[1]), state(hx and hx[2]) }
    else
        hx = state(hx)
    end
    local h, c = tide[self.operator .. "_cell"](single and x:unsqueeze(1) or x, hx, self.weight_ih, self.weight_hh,
        self.bias_ih, self.bias_hh)
    if single then
        h, c = h:squeeze(1), c and c:squeeze(1)
    end
    return h, c
end

-- Shapes of a cell with so many gates.
local function cell_shapes(count, states, given)
    local rows = count == 1 and "hidden_size" or count .. "*hidden_size"
    return string.format("x (N?, input_size), hx %s, weight_ih (%s, input_size), weight_hh (%s, hidden_size), "
        .. "bias_ih (%s), bias_hh (%s) -> %s", states, rows, rows, rows, rows, given)
end

local function cell(nn, name, last, doc, shapes)
    layer(nn, name .. "(int(1..) input_size, int(1..) hidden_size, bool bias=true" .. last .. ")", doc, shapes, {
        make = function(self)
            local operator = operator_of(string.gsub(string.lower(name), "cell$", ""), self.nonlinearity)
            local rows = gates[operator] * self.hidden_size
            rawset(self, "operator", operator)
            local has_bias = layers.take_bias(self)
            start(self, "weight_ih", rows, self.input_size)
            start(self, "weight_hh", rows, self.hidden_size)
            if has_bias then
                start(self, "bias_ih", rows)
                start(self, "bias_hh", rows)
            end
        end,
        forward = run_cell,
        extra_repr = function(self)
            return string.format("%d, %d%s%s", self.input_size, self.hidden_size, self.has_bias and "" or ", bias=false",
                self.nonlinearity == "relu" and ", nonlinearity=relu" or "")
        end,
    })
end

--- open(nn): the layers and cells of tide.nn.
function recurrent.open(nn)
    recurrent.sequences(nn, function(self, operator) give_layers(self, operator, start) end, run, "")
    cell(nn, "RNNCell", ", " .. NONLINEARITY, "One step of Elman's cell.", cell_shapes(1, "(N?, hidden_size)", "(N?, hidden_size)"))
    cell(nn, "LSTMCell", "", "One step of an LSTM cell; gives the state and the cell state.",
        cell_shapes(4, "{(N?, hidden_size)}", "(N?, hidden_size), (N?, hidden_size)"))
    cell(nn, "GRUCell", "", "One step of a GRU cell.", cell_shapes(3, "(N?, hidden_size)", "(N?, hidden_size)"))
end

return recurrent
