-- gpt.lua: a GPT with GPT-2's layout of parameters, a cache of keys and values, and sampling.
--
--     tide notebooks/networks/gpt.lua FILE [steps]      learns a text letter by letter, and goes on writing it
--     gpt = dofile "notebooks/networks/gpt.lua"
--     net = gpt.new(gpt.SMALL); net:load_state_dict(tide.load("model.safetensors"))     GPT-2's weights as they are published
--
-- Tokens count from 1: the tokens of GPT-2's tokenizer and 1.
local tide = require "tide"
local nn, F = tide.nn, tide.nn.functional

-- A linear layer whose weight lies as GPT-2's files have it: (from, to).
local Projection = nn.class "Projection"

function Projection:init(from, to, deviation)
    self.weight = nn.Parameter(tide.randn(from, to) * deviation)
    self.bias = nn.Parameter(tide.zeros(to))
end

function Projection:forward(x)
    return x:matmul(self.weight) + self.bias
end

-- ---- a layer ----

local Attention = nn.class "Attention"

function Attention:init(width, heads, layers)
    self.heads = heads
    self.c_attn = Projection(width, 3 * width, 0.02)
    self.c_proj = Projection(width, width, 0.02 / math.sqrt(2 * layers))
end

-- `cache`, a table, holds the keys and values of what came before, and gets those of x (n, length, width).
function Attention:forward(x, cache)
    local n, length, width = x.shape:unpack()
    local function by_head(y) return y:view(n, length, self.heads, width // self.heads):transpose(2, 3) end
    local q, k, v = table.unpack(self.c_attn(x):chunk(3, 3))
    q, k, v = by_head(q), by_head(k), by_head(v)
    local before = 0
    if cache then
        if cache.keys then
            before = cache.keys:size(3)
            k, v = tide.cat({ cache.keys, k }, 3), tide.cat({ cache.values, v }, 3)
        end
        cache.keys, cache.values = k, v
    end
    local mask
    if before > 0 and length > 1 then
        mask = tide.ones(length, before + length, { dtype = tide.bool, device = x.device }):tril(before)
    end
    local y = F.scaled_dot_product_attention(q, k, v, mask, { is_causal = before == 0 })
    return self.c_proj(y:transpose(2, 3):reshape(n, length, width))
end

local Mlp = nn.class "Mlp"

function Mlp:init(width, layers)
    self.c_fc = Projection(width, 4 * width, 0.02)
    self.c_proj = Projection(4 * width, width, 0.02 / math.sqrt(2 * layers))
end

function Mlp:forward(x)
    return self.c_proj(F.gelu(self.c_fc(x), { approximate = "tanh" }))
end

local Block = nn.class "Block"

function Block:init(width, heads, layers)
    self.ln_1 = nn.LayerNorm(width)
    self.attn = Attention(width, heads, layers)
    self.ln_2 = nn.LayerNorm(width)
    self.mlp = Mlp(width, layers)
end

function Block:forward(x, cache)
    x = x + self.attn(self.ln_1(x), cache)
    return x + self.mlp(self.ln_2(x))
end

-- ---- the network ----

local Gpt = nn.class "Gpt"

function Gpt:init(size)
    self.context = size.context
    self.wte = nn.Embedding(size.tokens, size.width)
    self.wpe = nn.Embedding(size.context, size.width)
    nn.init.normal_(self.wte.weight, { std = 0.02 })
    nn.init.normal_(self.wpe.weight, { std = 0.01 })
    local blocks = {}
    for k = 1, size.layers do
        blocks[k] = Block(size.width, size.heads, size.layers)
    end
    self.h = nn.ModuleList(blocks)
    self.ln_f = nn.LayerNorm(size.width)
end

--- forward(tokens, caches): scores (n, length, tokens) of what comes next, of int64 (n, length); caches is a table that holds
--- what the layers know of the tokens before, empty at first.
function Gpt:forward(tokens, caches)
    local length, before = tokens:size(2), caches and caches.length or 0
    if before + length > self.context then
        error(("%d tokens are more than the %d that the network looks at"):format(before + length, self.context), 2)
    end
    local x = self.wte(tokens) + self.wpe(tide.arange(before + 1, before + length + 1, { device = tokens.device }))
    for k, block in ipairs(self.h) do
        if caches then
            caches[k] = caches[k] or {}
        end
        x = block(x, caches and caches[k])
    end
    if caches then
        caches.length = before + length
    end
    return F.linear(self.ln_f(x), self.wte.weight)
end

--- generate(tokens, n, {temperature = 1, top_k, generator}): a list of n further tokens after a list; a temperature of 0 takes
--- the likeliest.
function Gpt:generate(tokens, n, options)
    local _ <close> = tide.no_grad()
    options = options or {}
    local caches, made, new = {}, {}, tokens
    for k = 1, n do
        if (caches.length or 0) + #new > self.context then -- begin anew with the last half
            local all = table.move(made, 1, #made, #tokens + 1, table.move(tokens, 1, #tokens, 1, {}))
            caches, new = {}, table.move(all, #all - self.context // 2 + 1, #all, 1, {})
        end
        local scores = self:forward(tide.tensor({ new }), caches)[{ 1, -1 }]
        made[k] = self.choose(scores, options)
        new = { made[k] }
    end
    return made
end

--- choose(scores, options): a token, drawn as generate says.
function Gpt.choose(scores, options)
    local temperature = options.temperature or 1
    if temperature == 0 then
        return scores:argmax():item()
    end
    scores = scores / temperature
    if options.top_k then
        local least = (scores:topk(math.min(options.top_k, #scores)))[-1]
        scores = scores:masked_fill(scores:lt(least), -math.huge)
    end
    return scores:softmax(1):multinomial(1, { generator = options.generator }):item()
end

local gpt = {
    SMALL = { tokens = 50257, context = 1024, width = 768, heads = 12, layers = 12 }, -- GPT-2's smallest
}

--- new{tokens, context, width, heads, layers}: a network with random weights.
function gpt.new(size)
    return Gpt(size)
end

--- train(net, tokens, {steps, batch, length, rate, seed}): the losses of AdamW on random stretches of a text.
function gpt.train(net, tokens, options)
    local order = tide.Generator():manual_seed(options.seed or 0)
    local optimizer = tide.optim.AdamW(net:parameters(), { lr = options.rate or 1e-3 })
    local batch, length, losses = options.batch or 16, options.length or 32, {}
    for step = 1, options.steps do
        local first = tide.randint(1, #tokens - length, { batch, 1 }, { generator = order })
        local rows = tokens[first + tide.arange(length + 1)]
        local scores = net(rows[":, :-2"])
        local loss = F.cross_entropy(scores:flatten(1, 2), rows[":, 2:"]:flatten())
        optimizer:zero_grad()
        loss:backward()
        nn.utils.clip_grad_norm_(net:parameters(), 1)
        optimizer:step()
        losses[step] = loss:item()
    end
    return losses
end

if arg and arg[0] and arg[0]:find "gpt%.lua$" then
    dofile((arg[0]:gsub("gpt%.lua$", "text.lua"))).learn_and_write(arg,
        function(letters) return gpt.new { tokens = letters, context = 128, width = 128, heads = 4, layers = 4 } end,
        function(net, tokens, steps) return gpt.train(net, tokens, { steps = steps, length = 96 }) end)
end

return gpt
