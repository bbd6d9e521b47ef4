-- tacotron2.lua: Tacotron 2, which makes a spectrogram of a text, frame by frame: an encoder of letters, attention that knows
-- where it was, a decoder of two LSTM cells, and a net of convolutions that mends what comes out.
--
-- Names of parameters are torchaudio's, so that its weights can be loaded. Letters count from 1. Without a mask of 1 the
-- texts of a batch must be sorted by length, the longest first. «Natural TTS Synthesis by Conditioning WaveNet on Mel
-- Spectrogram Predictions», Shen and others, 2017.
local tide = require "tide"
local nn, F = tide.nn, tide.nn.functional

local function conv_and_norm(from, to, size)
    return nn.Sequential(nn.Conv1d(from, to, size, { padding = size // 2 }), nn.BatchNorm1d(to))
end

-- True where a row of a batch has nothing any more: (n, longest), of lengths (n).
local function beyond(lengths, longest)
    return tide.arange(1, longest + 1, { device = lengths.device }):unsqueeze(1):gt(lengths:unsqueeze(2))
end

-- ---- encoder ----

local Encoder = nn.class "Encoder"

function Encoder:init(width, layers, size)
    local convolutions = {}
    for k = 1, layers do
        convolutions[k] = conv_and_norm(width, width, size)
    end
    self.convolutions = nn.ModuleList(convolutions)
    self.lstm = nn.LSTM(width, width // 2, { batch_first = true, bidirectional = true })
end

function Encoder:forward(x, lengths)
    for _, layer in ipairs(self.convolutions) do
        x = F.dropout(F.relu(layer(x)), 0.5, self.training)
    end
    local packed = nn.utils.rnn.pack_padded_sequence(x:transpose(2, 3), lengths, { batch_first = true, enforce_sorted = false })
    return (nn.utils.rnn.pad_packed_sequence(self.lstm(packed), { batch_first = true }))
end

-- ---- attention ----

local Location = nn.class "LocationLayer"

function Location:init(filters, size, width)
    self.location_conv = nn.Conv1d(2, filters, size, { padding = size // 2, bias = false })
    self.location_dense = nn.Linear(filters, width, { bias = false })
end

function Location:forward(weights)
    return self.location_dense(self.location_conv(weights):transpose(2, 3))
end

local Attention = nn.class "LocationSensitiveAttention"

function Attention:init(query, memory, o)
    self.query_layer = nn.Linear(query, o.attention_hidden, { bias = false })
    self.memory_layer = nn.Linear(memory, o.attention_hidden, { bias = false })
    self.v = nn.Linear(o.attention_hidden, 1, { bias = false })
    self.location_layer = Location(o.location_filters, o.location_size, o.attention_hidden)
end

--- forward(query, memory, keys, weights, mask): what is looked at, and the weights (n, letters), of a query (n, width), the
--- encoder's memory and keys made of it, and the last weights beside the sum of all (n, 2, letters).
function Attention:forward(query, memory, keys, weights, mask)
    local energy = self.v((self.query_layer(query:unsqueeze(2)) + self.location_layer(weights) + keys):tanh()):squeeze(3)
    local share = energy:masked_fill(mask, -math.huge):softmax(2)
    return share:unsqueeze(2):bmm(memory):squeeze(2), share
end

-- ---- decoder ----

local Prenet = nn.class "Prenet"

function Prenet:init(from, width, dropout)
    self.dropout = dropout
    self.layers = nn.ModuleList { nn.Linear(from, width, { bias = false }), nn.Linear(width, width, { bias = false }) }
end

-- It drops in evaluation too: that is what keeps the decoder from repeating itself.
function Prenet:forward(x)
    for _, layer in ipairs(self.layers) do
        x = F.relu(layer(x))
        x = self.dropout > 0 and F.dropout(x, self.dropout, true) or x
    end
    return x
end

local Decoder = nn.class "Decoder"

function Decoder:init(o)
    self.bands, self.rates = o.bands, { attention = o.attention_dropout, decoder = o.decoder_dropout }
    self.prenet = Prenet(o.bands, o.prenet, o.prenet_dropout)
    self.attention_rnn = nn.LSTMCell(o.prenet + o.encoder, o.attention_rnn)
    self.attention_layer = Attention(o.attention_rnn, o.encoder, o)
    self.decoder_rnn = nn.LSTMCell(o.attention_rnn + o.encoder, o.decoder_rnn)
    self.linear_projection = nn.Linear(o.decoder_rnn + o.encoder, o.bands)
    self.gate_layer = nn.Linear(o.decoder_rnn + o.encoder, 1)
end

-- What a step needs and leaves, at the beginning.
function Decoder:begin(memory, mask)
    local n, letters, width = memory.shape:unpack()
    local function zeros(size) return tide.zeros(n, size, { device = memory.device }) end
    return { memory = memory, mask = mask, keys = self.attention_layer.memory_layer(memory), weights = zeros(letters), sum = zeros(letters),
        context = zeros(width) }
end

-- The frame (n, bands) after one that went through the prenet, a score of its being the last, and the state changed.
function Decoder:step(frame, s)
    s.attention = { self.attention_rnn(tide.cat({ frame, s.context }, 2), s.attention) }
    s.attention[1] = F.dropout(s.attention[1], self.rates.attention, self.training)
    s.context, s.weights = self.attention_layer(s.attention[1], s.memory, s.keys, tide.stack({ s.weights, s.sum }, 2), s.mask)
    s.sum = s.sum + s.weights
    s.decoder = { self.decoder_rnn(tide.cat({ s.attention[1], s.context }, 2), s.decoder) }
    s.decoder[1] = F.dropout(s.decoder[1], self.rates.decoder, self.training)
    local all = tide.cat({ s.decoder[1], s.context }, 2)
    return self.linear_projection(all), self.gate_layer(all):squeeze(2)
end

--- forward(memory, mask, truth): frames (n, bands, length), scores of their being the last (n, length) and weights (n, length,
--- letters), each made after the true frame before it.
function Decoder:forward(memory, mask, truth)
    local n, bands, length = truth.shape:unpack()
    local before = self.prenet(tide.cat({ truth:new_zeros(n, 1, bands), truth:transpose(2, 3) }, 2))
    local state, frames, gates, weights = self:begin(memory, mask), {}, {}, {}
    for t = 1, length do
        frames[t], gates[t] = self:step(before[{ {}, t }], state)
        weights[t] = state.weights
    end
    return tide.stack(frames, 3), tide.stack(gates, 2), tide.stack(weights, 2)
end

-- ---- the whole ----

local Postnet = nn.class "Postnet"

function Postnet:init(bands, width, size, layers)
    local convolutions = {}
    for k = 1, layers do
        convolutions[k] = conv_and_norm(k == 1 and bands or width, k == layers and bands or width, size)
    end
    self.convolutions = nn.ModuleList(convolutions)
end

function Postnet:forward(x)
    for k, layer in ipairs(self.convolutions) do
        x = layer(x)
        x = F.dropout(k < #self.convolutions and x:tanh() or x, 0.5, self.training)
    end
    return x
end

local Tacotron = nn.class "Tacotron2"

function Tacotron:init(o)
    self.embedding = nn.Embedding(o.letters, o.encoder)
    self.encoder = Encoder(o.encoder, o.encoder_layers, o.encoder_size)
    self.decoder = Decoder(o)
    self.postnet = Postnet(o.bands, o.postnet, o.postnet_size, o.postnet_layers)
end

--- forward(letters, lengths, truth, frames): of texts int64 (n, letters) with lengths and spectrograms (n, bands, frames) with
--- lengths: the frames before and after the postnet, scores of the last frame, weights; 0 (the scores 1000) beyond the lengths.
function Tacotron:forward(letters, lengths, truth, frames)
    local memory = self.encoder(self.embedding(letters):transpose(2, 3), lengths)
    local made, gates, weights = self.decoder(memory, beyond(lengths, letters:size(2)), truth)
    local better = made + self.postnet(made)
    local over = beyond(frames, truth:size(3))
    return made:masked_fill(over:unsqueeze(2), 0), better:masked_fill(over:unsqueeze(2), 0), gates:masked_fill(over, 1000), weights
end

--- speak(letters, most): the spectrogram (bands, frames) of one text, int64 (letters), and the weights, until a frame says that
--- it is the last, or `most` are made.
function Tacotron:speak(letters, most)
    local _ <close> = tide.no_grad()
    local memory = self.encoder(self.embedding(letters:unsqueeze(1)):transpose(2, 3), tide.tensor({ #letters }, { device = letters.device }))
    local state = self.decoder:begin(memory, tide.zeros(1, #letters, { dtype = tide.bool, device = letters.device }))
    local frame, last, frames, weights = memory:new_zeros(1, self.decoder.bands), nil, {}, {}
    for t = 1, most do
        frame, last = self.decoder:step(self.decoder.prenet(frame), state)
        frames[t], weights[t] = frame, state.weights[1]
        if last:item() > 0 then
            break
        end
    end
    local made = tide.stack(frames, 3)
    return (made + self.postnet(made))[1], tide.stack(weights, 1)
end

local tacotron2 = {}

local DEFAULTS <const> = {
    letters = 148, bands = 80, encoder = 512, encoder_layers = 3, encoder_size = 5, attention_rnn = 1024, decoder_rnn = 1024,
    attention_hidden = 128, location_filters = 32, location_size = 31, prenet = 256, prenet_dropout = 0.5,
    attention_dropout = 0.1, decoder_dropout = 0.1, postnet = 512, postnet_size = 5, postnet_layers = 5,
}

--- new{letters = 148, bands = 80, encoder = 512, ...}: a network with random weights; what is not said is the paper's.
function tacotron2.new(options)
    local all = setmetatable({}, { __index = DEFAULTS })
    for name, value in pairs(options or {}) do
        if DEFAULTS[name] == nil then
            error(("tacotron2.new has no option '%s'"):format(name), 2)
        end
        all[name] = value
    end
    return Tacotron(all)
end

--- loss(truth, frames, made, better, gates): squared errors of both spectrograms, and what the scores of the last frame cost.
function tacotron2.loss(truth, frames, made, better, gates)
    local last = tide.arange(1, truth:size(3) + 1, { device = frames.device }):unsqueeze(1):ge(frames:unsqueeze(2)):float()
    return F.mse_loss(made, truth) + F.mse_loss(better, truth) + F.binary_cross_entropy_with_logits(gates, last)
end

return tacotron2
