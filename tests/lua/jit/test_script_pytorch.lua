-- Programs as people write them who come from PyTorch: as graphs they give what Lua gives, values and gradients.
local t = require "harness"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local h = dofile(here .. "/script_harness.lua")
local nn, same = tide.nn, h.same

t.test("greedy_decoding_that_ends_early", function()
    local emb, out = nn.Embedding(10, 8), nn.Linear(8, 10)
    local function greedy(start, max_len, eos) --: Tensor, int, int
        local tokens = { start }
        local cur = start
        local n = 0
        while n < max_len do
            local logits = out(emb(cur))
            local nxt = logits:argmax(-1)
            tokens[#tokens + 1] = nxt
            cur = nxt
            n = n + 1
            if nxt:item() == eos then
                return tide.stack(tokens), n
            end
        end
        return tide.stack(tokens), n
    end
    same(greedy, { tide.tensor({ 3 }), 6, 2 }, { tide.tensor({ 1 }), 20, 5 })
end)

t.test("beam_search", function()
    local emb, out = nn.Embedding(12, 8), nn.Linear(8, 12)
    local function beam(start, width, steps) --: Tensor, int, int
        local scores = tide.zeros(1)
        local seqs = start:view(1, 1)
        for step = 1, steps do
            local last = seqs[{ {}, -1 }]
            local logp = out(emb(last)):log_softmax(-1)
            local total = (scores:unsqueeze(2) + logp):flatten()
            local k = math.min(width, total:numel())
            local best, index = total:topk(k)
            local vocab = logp:size(2)
            local from = (index - 1):div(vocab, { rounding_mode = "floor" }) + 1
            local token = (index - 1) % vocab + 1
            seqs = tide.cat({ seqs:index_select(1, from), token:unsqueeze(2) }, 2)
            scores = best
        end
        return seqs, scores
    end
    same(beam, { tide.tensor(3), 3, 4 }, { tide.tensor(1), 2, 2 })
end)

t.test("beam_search_over_tables_with_names", function()
    local emb, out = tide.nn.Embedding(8, 6), tide.nn.Linear(6, 8)
    same(function(start, width, steps, x) --: int, int, int, Tensor
        local beams = { { tokens = tide.full({ 1 }, start, { dtype = tide.int64 }), score = 0.0, done = false } }
        for step = 1, steps do
            local candidates = {}
            for _, beam in ipairs(beams) do
                local last = beam.tokens[{ { -1, -1 } }]
                local logp = out(emb(last)):log_softmax(-1)[1]
                local values, index = logp:topk(width)
                for k = 1, width do
                    candidates[#candidates + 1] = { tokens = tide.cat({ beam.tokens, index[{ { k, k } }] }),
                        score = beam.score + values[k]:item(), done = beam.done }
                end
            end
            local kept = {}
            while #kept < width and #candidates > 0 do
                local best = 1
                for k = 2, #candidates do
                    if candidates[k].score > candidates[best].score then best = k end
                end
                kept[#kept + 1] = table.remove(candidates, best)
            end
            beams = kept
        end
        return beams[1].tokens, beams[1].score, #beams, beams[1]
    end, { 3, 2, 4, tide.ones(1) }, { 1, 3, 3, tide.ones(1) })
end)

t.test("non_maximum_suppression", function()
    local function nms(boxes, scores, threshold) --: Tensor, Tensor, float
        local area = (boxes[{ {}, 3 }] - boxes[{ {}, 1 }]) * (boxes[{ {}, 4 }] - boxes[{ {}, 2 }])
        local order = scores:argsort(1, { descending = true })
        local keep = {}
        while order:numel() > 0 do
            local i = order[1]
            keep[#keep + 1] = i
            if order:numel() == 1 then break end
            local rest = order[{ { 2, -1 } }]
            local b, o = boxes[i], boxes[rest]
            local w = (tide.minimum(b[3], o[{ {}, 3 }]) - tide.maximum(b[1], o[{ {}, 1 }])):clamp({ min = 0 })
            local hh = (tide.minimum(b[4], o[{ {}, 4 }]) - tide.maximum(b[2], o[{ {}, 2 }])):clamp({ min = 0 })
            local inter = w * hh
            local iou = inter / (area[i] + area[rest] - inter)
            order = rest[iou:le(threshold)]
        end
        return tide.stack(keep)
    end
    local b = tide.rand(20, 2) * 10
    local boxes = tide.cat({ b, b + tide.rand(20, 2) * 5 + 0.1 }, 2)
    same(nms, { boxes, tide.rand(20), 0.3 }, { boxes, tide.rand(20), 0.1 })
end)

t.test("an_lstm_over_steps_into_a_list", function()
    local cell = nn.LSTMCell(3, 4)
    local function run(x)
        local h, c = tide.zeros(x:size(2), 4), tide.zeros(x:size(2), 4)
        local out = {}
        for step = 1, x:size(1) do
            h, c = cell(x[step], { h, c })
            table.insert(out, h)
        end
        return tide.stack(out), { h, c }
    end
    same(run, { tide.randn(5, 2, 3) }, { tide.randn(2, 1, 3) })
end)

t.test("residual_blocks_in_training", function()
    local Block = nn.class "ResBlock"
    function Block:init(cin, cout, stride)
        self.conv1 = nn.Conv2d(cin, cout, 3, { stride = stride, padding = 1, bias = false })
        self.bn1 = nn.BatchNorm2d(cout)
        self.conv2 = nn.Conv2d(cout, cout, 3, { padding = 1, bias = false })
        self.bn2 = nn.BatchNorm2d(cout)
        if stride ~= 1 or cin ~= cout then
            self.downsample = nn.Sequential(nn.Conv2d(cin, cout, 1, { stride = stride, bias = false }), nn.BatchNorm2d(cout))
        end
    end
    function Block:forward(x)
        local identity = x
        local out = self.bn1(self.conv1(x)):relu()
        out = self.bn2(self.conv2(out))
        if self.downsample then identity = self.downsample(x) end
        out:add_(identity)
        return out:relu_()
    end
    for _, b in ipairs { Block(4, 4, 1), Block(4, 8, 2) } do
        local a = b:clone()
        local f = tide.jit.script(b)
        local x = tide.randn(2, 4, 8, 8)
        local x1, x2 = x:clone():requires_grad_(), x:clone():requires_grad_()
        local y1, y2 = f(x1), a(x2)
        t.eq(y1:tolist(), y2:tolist())
        y1:sum():backward(); y2:sum():backward()
        t.eq(x1.grad:tolist(), x2.grad:tolist())
        t.eq(b.bn1.running_mean:tolist(), a.bn1.running_mean:tolist())
    end
end)

t.test("label_smoothing", function()
    same(function(logits, target, eps) --: Tensor, Tensor, float
        local n = logits:size(-1)
        local logp = logits:log_softmax(-1)
        local nll = -logp:gather(-1, target:unsqueeze(-1)):squeeze(-1)
        local smooth = -logp:mean(-1)
        return ((1.0 - eps) * nll + eps * smooth):mean(), n
    end, { tide.randn(4, 5), tide.tensor({ 1, 5, 2, 3 }), 0.1 })
end)

t.test("rotary_embedding", function()
    local function rotate_half(x)
        local d = x:size(-1) // 2
        local a, b = x:narrow(-1, 1, d), x:narrow(-1, d + 1, d)
        return tide.cat({ -b, a }, -1)
    end
    same(function(q, k)
        local seq, dim = q:size(-2), q:size(-1)
        local inv = 1.0 / (10000.0 ^ (tide.arange(0, dim - 1, 2):float() / dim))
        local pos = tide.arange(0, seq - 1):float()
        local freqs = tide.outer(pos, inv)
        local e = tide.cat({ freqs, freqs }, -1)
        local cos, sin = e:cos(), e:sin()
        return q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin
    end, { tide.randn(2, 3, 5, 8), tide.randn(2, 3, 5, 8) })
end)

t.test("attention_with_a_mask_that_may_be_left_out", function()
    same(function(q, k, v, mask, scale) --: Tensor, Tensor, Tensor, Tensor?, float?
        local s = scale or 1.0 / math.sqrt(q:size(-1))
        local att = q:matmul(k:transpose(-2, -1)) * s
        if mask ~= nil then
            att = att:masked_fill(mask:logical_not(), -math.huge)
        end
        return att:softmax(-1):matmul(v)
    end, { tide.randn(2, 3, 4), tide.randn(2, 3, 4), tide.randn(2, 3, 4) },
       { tide.randn(2, 3, 4), tide.randn(2, 3, 4), tide.randn(2, 3, 4), tide.ones(3, 3, { dtype = tide.bool }):tril() },
       { tide.randn(2, 3, 4), tide.randn(2, 3, 4), tide.randn(2, 3, 4), nil, 0.5 , n = 5})
end)

t.test("sampling_from_the_default_generator", function()
    local function sample(logits) return logits:softmax(-1):multinomial(2) end
    local f = tide.jit.script(sample)
    local x = tide.randn(2, 10)
    tide.manual_seed(3); local a = f(x)
    tide.manual_seed(3); local b = sample(x)
    t.eq(a:tolist(), b:tolist())
end)

t.test("a_cache_of_keys_and_values_in_a_table", function()
    local wk, wv, wq = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4)
    same(function(xs)
        local cache = { k = tide.zeros(0, 4), v = tide.zeros(0, 4), len = 0 }
        local outs = {}
        for i = 1, xs:size(1) do
            local x = xs[{ { i, i } }]
            cache.k = tide.cat({ cache.k, wk(x) }, 1)
            cache.v = tide.cat({ cache.v, wv(x) }, 1)
            cache.len = cache.len + 1
            local a = (wq(x):matmul(cache.k:t()) / 2.0):softmax(-1)
            outs[#outs + 1] = a:matmul(cache.v)
        end
        return tide.cat(outs, 1), cache.len
    end, { tide.randn(5, 4) }, { tide.randn(1, 4) })
end)

t.test("caches_of_several_layers", function()
    same(function(x)
        local caches = {}
        for l = 1, 3 do caches[l] = { k = x * l, v = x + l } end
        for step = 1, 2 do
            for l = 1, 3 do
                local c = caches[l]
                c.k = tide.cat({ c.k, x }, 1)
                c.v = c.v + c.k:sum()
            end
        end
        return caches[1].k, caches[3].v
    end, { tide.randn(2, 2) })
end)

t.test("overlaps_of_boxes_one_by_one", function()
    local function iou(boxes, n) --: Tensor, int
        local out = tide.zeros(n)
        for i = 1, n do
            local a, b = boxes[i], boxes[n + 1 - i]
            local w = (tide.min(a[3], b[3]) - tide.max(a[1], b[1])):clamp({ min = 0 })
            local hh = (tide.min(a[4], b[4]) - tide.max(a[2], b[2])):clamp({ min = 0 })
            out[i] = w * hh
        end
        return out
    end
    same(iou, { tide.rand(50, 4), 50 })
end)

t.test("lists_of_modules", function()
    local layers = nn.ModuleList(nn.Linear(2, 2), nn.Linear(2, 2))
    same(function(x) for i, l in ipairs(layers) do x = l(x) end return x end, { tide.randn(1, 2) })
end)

t.test("a_step_of_adam", function()
    same(function(p, g, m, v, t) --: Tensor, Tensor, Tensor, Tensor, int
        m = m * 0.9 + g * 0.1
        v = v * 0.999 + g * g * 0.001
        local mh, vh = m / (1 - 0.9 ^ t), v / (1 - 0.999 ^ t)
        return p - 1e-3 * mh / (vh:sqrt() + 1e-8), m, v
    end, { tide.randn(3), tide.randn(3), tide.zeros(3), tide.zeros(3), 1 })
end)

t.test("top_k_sampling_with_a_generator", function()
    local function sample(logits, k, temperature, generator) --: Tensor, int, float, Generator
        local values, index = (logits / temperature):topk(k)
        local pick = values:softmax(-1):multinomial(1, { generator = generator })
        return index:gather(-1, pick)
    end
    local f, x, generator = tide.jit.script(sample), tide.randn(2, 10), tide.Generator()
    generator:manual_seed(3)
    local want = sample(x, 3, 0.7, generator)
    generator:manual_seed(3)
    t.eq(f(x, 3, 0.7, generator):tolist(), want:tolist())
    t.error_has(function() f(x, 3, 0.7, 5) end, "Generator expected, got number 5")
    t.error_has(function() tide.jit.fork(f, x, 3, 0.7, generator) end, "a fork takes none")
end)

t.test("gradients_of_these", function()
    local cell, head = nn.LSTMCell(3, 4), nn.Linear(4, 5)
    local function loss(x, target, smoothing) --: Tensor, Tensor, float
        local h, c = tide.zeros(x:size(2), 4), tide.zeros(x:size(2), 4)
        local logs = {}
        for step = 1, x:size(1) do
            h, c = cell(x[step], { h, c })
            logs[#logs + 1] = head(h):log_softmax(-1)
        end
        local all = tide.stack(logs)
        local right = -all:gather(-1, target:unsqueeze(-1)):squeeze(-1)
        return ((1 - smoothing) * right - smoothing * all:mean(-1)):mean()
    end
    local x, target = tide.randn(6, 2, 3), tide.randint(1, 6, { 6, 2 })
    loss(x, target, 0.1):backward()
    local want = {}
    for k, p in ipairs { cell.weight_ih, cell.bias_hh, head.weight } do
        want[k] = p.grad:clone()
        p.grad = nil
    end
    for _, p in ipairs { cell.weight_hh, cell.bias_ih, head.bias } do
        p.grad = nil
    end
    tide.jit.script(loss)(x, target, 0.1):backward()
    for k, p in ipairs { cell.weight_ih, cell.bias_hh, head.weight } do
        t.is_true(tide.allclose(p.grad, want[k], { rtol = 1e-6, atol = 1e-7 }), "parameter " .. k)
    end
end)
