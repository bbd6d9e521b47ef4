-- rnn.lua: the talks' RNN with tanh, written out, and a language model of letters on LSTM or GRU layers.
--
--     tide notebooks/networks/rnn.lua FILE [steps]      learns a text letter by letter, and goes on writing it
local tide = require "tide"
local nn, F = tide.nn, tide.nn.functional

-- ---- the RNN of the talks: h = tanh(W x + U h + b), step by step ----

local Tanh = nn.class "TanhRNN"

function Tanh:init(inputs, width, outputs)
    self.from_input = nn.Linear(inputs, width)
    self.from_state = nn.Linear(width, width, { bias = false })
    self.to_output = nn.Linear(width, outputs)
end

--- forward(x, h): outputs (n, length, outputs) and the last state, of x (n, length, inputs) and a state (n, width), or nil.
function Tanh:forward(x, h)
    local n, length = x.shape:unpack()
    h = h or tide.zeros(n, self.from_state.weight:size(1), { device = x.device })
    local ahead, outputs = self.from_input(x), {} -- of all steps at once, since it needs no state
    for t = 1, length do
        h = (ahead[{ {}, t }] + self.from_state(h)):tanh()
        outputs[t] = h
    end
    return self.to_output(tide.stack(outputs, 2)), h
end

-- ---- a language model ----

local Letters = nn.class "RecurrentLetters"

function Letters:init(tokens, width, layers, kind)
    self.embed = nn.Embedding(tokens, width)
    self.lstm = nn[kind](width, width, { num_layers = layers, batch_first = true })
    self.out = nn.Linear(width, tokens)
end

--- forward(tokens, state): scores (n, length, tokens) of what comes next, and the state behind it.
function Letters:forward(tokens, state)
    local y, after = self.lstm(self.embed(tokens), state)
    return self.out(y), after
end

--- generate(tokens, n, {temperature = 1, generator}): a list of n further tokens after a list of them.
function Letters:generate(tokens, n, options)
    local _ <close> = tide.no_grad()
    local made, state, scores = {}, nil, nil
    for k = 1, n do
        scores, state = self:forward(tide.tensor { k == 1 and tokens or { made[k - 1] } }, state)
        local share = (scores[{ 1, -1 }] / (options.temperature or 1)):softmax(1)
        made[k] = share:multinomial(1, { generator = options.generator }):item()
    end
    return made
end

local rnn = {}

--- tanh(inputs, width, outputs): the talks' network.
function rnn.tanh(inputs, width, outputs)
    return Tanh(inputs, width, outputs)
end

--- letters(tokens, width, layers, kind): the language model, on layers of the kind "LSTM", as if not said otherwise, or "GRU".
function rnn.letters(tokens, width, layers, kind)
    return Letters(tokens, width, layers, kind or "LSTM")
end

--- train_letters(net, tokens, {steps, batch, length, rate}): the losses of Adam on a text in `batch` columns; each goes on from
--- the state that the stretch before it left, whose history is cut.
function rnn.train_letters(net, tokens, options)
    local batch, length = options.batch or 16, options.length or 32
    local each = #tokens // batch
    local columns = tokens[{ { 1, each * batch } }]:view(batch, each)
    local optimizer = tide.optim.Adam(net:parameters(), { lr = options.rate or 3e-3 })
    local losses, at, state = {}, 1, nil
    for step = 1, options.steps do
        if at + length > each then
            at, state = 1, nil
        end
        local scores
        scores, state = net(columns[{ {}, { at, at + length - 1 } }], state)
        state = tide.is_tensor(state) and state:detach() or { state[1]:detach(), state[2]:detach() }
        local loss = F.cross_entropy(scores:flatten(1, 2), columns[{ {}, { at + 1, at + length } }]:flatten())
        optimizer:zero_grad()
        loss:backward()
        nn.utils.clip_grad_norm_(net:parameters(), 1)
        optimizer:step()
        losses[step], at = loss:item(), at + length
    end
    return losses
end

if arg and arg[0] and arg[0]:find "rnn%.lua$" then
    dofile((arg[0]:gsub("rnn%.lua$", "text.lua"))).learn_and_write(arg, function(letters) return rnn.letters(letters, 128, 2) end,
        function(net, tokens, steps) return rnn.train_letters(net, tokens, { steps = steps, length = 64 }) end)
end

return rnn
