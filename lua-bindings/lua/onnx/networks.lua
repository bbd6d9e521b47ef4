-- onnx/networks.lua: ONNX's norms, dropout, recurrent layers and transforms of signals.
local tide = ...
local common, tensors = tide._require "onnx.common", tide._require "onnx.tensors"
local wrong, by_channel = tensors.wrong, common.by_channel
local F = tide.nn.functional
local operators = {}

function operators.BatchNormalization(call, x, scale, bias, mean, var)
    local a = call.attributes
    local eps, momentum = a.epsilon or 1e-5, a.momentum or 0.9
    local training = a.training_mode == 1 or call.opset < 14 and call.outputs > 1
    if training then
        local dims = {}
        for k = 1, x:dim() do
            dims[#dims + 1] = k ~= 2 and k or nil
        end
        local now = common.wide(x):mean(dims)
        local spread = (common.wide(x) - by_channel(now, x)):pow(2):mean(dims)
        local y = (x - by_channel(now, x)) / (by_channel(spread, x) + eps):sqrt() * by_channel(scale, x) + by_channel(bias, x)
        return y:to(x.dtype), mean * momentum + now * (1 - momentum), var * momentum + spread * (1 - momentum)
    end
    local factor = scale / (var + eps):sqrt()
    return (x * by_channel(factor, x) + by_channel(bias - mean * factor, x)):to(x.dtype)
end

function operators.InstanceNormalization(call, x, scale, bias)
    return F.instance_norm(x, { weight = scale, bias = bias, eps = call.attributes.epsilon or 1e-5 })
end

function operators.LayerNormalization(call, x, scale, bias)
    local a = call.attributes
    local first, dims = common.dim(a.axis or -1, x), {}
    for k = first, x:dim() do
        dims[#dims + 1] = k
    end
    local wide = common.wide(x)
    local mean = wide:mean(dims, { keepdim = true })
    local inverse = 1 / ((wide - mean):pow(2):mean(dims, { keepdim = true }) + (a.epsilon or 1e-5)):sqrt()
    local y = ((wide - mean) * inverse):to(x.dtype) * scale
    return bias and y + bias or y, mean, inverse
end

function operators.GroupNormalization(call, x, scale, bias)
    local groups = call.attributes.num_groups
    if call.opset < 21 then -- a number for each group
        local each = x:size(2) // groups
        scale, bias = scale:repeat_interleave(each), bias:repeat_interleave(each)
    end
    return F.group_norm(x, groups, scale, bias, call.attributes.epsilon or 1e-5)
end

function operators.MeanVarianceNormalization(call, x)
    local dims = common.axes(call.attributes.axes or { 0, 2, 3 }, x)
    local mean = x:mean(dims, { keepdim = true })
    local deviation = ((x * x):mean(dims, { keepdim = true }) - mean * mean):sqrt()
    return (x - mean) / (deviation + 1e-9)
end

function operators.LpNormalization(call, x)
    local a = call.attributes
    return F.normalize(x, a.p or 2, common.dim(a.axis or -1, x))
end

function operators.Dropout(call, x, ratio, training)
    local keep = tide.ones(common.sizes(x), { dtype = tide.bool })
    local share = ratio and common.number(ratio) or call.attributes.ratio or 0.5
    if not (training and common.number(training)) or share == 0 then
        return x, keep
    end
    local seed = call.attributes.seed
    local draw = { generator = seed and tide.Generator():manual_seed(math.floor(seed)) or nil }
    keep = tide.rand(common.sizes(x), draw):ge(share)
    return x * keep:to(x.dtype) / (1 - share), keep
end

-- ---- recurrent layers ----

local ACTIVATIONS <const> = {
    sigmoid = function(x) return x:sigmoid() end, tanh = function(x) return x:tanh() end, relu = function(x) return x:relu() end,
    affine = function(x, alpha, beta) return x * (alpha or 1) + (beta or 0) end,
    leakyrelu = function(x, alpha) return F.leaky_relu(x, alpha or 0.01) end,
    thresholdedrelu = function(x, alpha) return x * x:gt(alpha or 1):to(x.dtype) end,
    scaledtanh = function(x, alpha, beta) return (x * (beta or 1)):tanh() * (alpha or 1) end,
    hardsigmoid = function(x, alpha, beta) return (x * (alpha or 0.2) + (beta or 0.5)):clamp(0, 1) end,
    elu = function(x, alpha) return F.elu(x, alpha or 1) end,
    softsign = function(x) return x / (1 + x:abs()) end, softplus = function(x) return F.softplus(x) end,
}

-- The activations of one direction, of so many.
local function activations(call, direction, count, usual)
    local a, found = call.attributes, {}
    for k = 1, count do
        local at = (direction - 1) * count + k
        local name = string.lower(a.activations and a.activations[at] or usual[k])
        local fn = ACTIVATIONS[name] or wrong("the activation '%s'", tensors.shown(name))
        local alpha, beta = a.activation_alpha and a.activation_alpha[at], a.activation_beta and a.activation_beta[at]
        local clip = a.clip
        found[k] = function(x) return fn(clip and x:clamp(-clip, clip) or x, alpha, beta) end
    end
    return found
end

-- Runs step(x, h, c, weights) over the steps of a sequence in one direction; what is beyond a length is kept as it was.
local function run_direction(x, lengths, reverse, h, c, step)
    local steps, outputs = x:size(1), {}
    for k = 1, steps do
        local t = reverse and steps - k + 1 or k
        local h2, c2 = step(x[t], h, c)
        if lengths then
            local inside = lengths:gt(t - 1):unsqueeze(2)
            h2, c2 = tide.where(inside, h2, h), c2 and tide.where(inside, c2, c)
            outputs[t] = tide.where(inside, h2, tide.zeros_like(h2))
        else
            outputs[t] = h2
        end
        h, c = h2, c2
    end
    return tide.stack(outputs), h, c
end

-- A layer of cells with so many gates: cell(call, direction, hidden) gives how to step, of weights of one direction.
local function recurrent(gates, cell)
    return function(call, x, w, r, b, lengths, first_h, first_c, peepholes)
        local a = call.attributes
        if a.layout == 1 then
            x = x:transpose(1, 2)
            first_h, first_c = first_h and first_h:transpose(1, 2), first_c and first_c:transpose(1, 2)
        end
        local directions, hidden, n = w:size(1), r:size(3), x:size(2)
        local outputs, hs, cs = {}, {}, {}
        for d = 1, directions do
            local bias = b and b[d] or tide.zeros(2 * gates * hidden, { dtype = x.dtype })
            local step = cell(call, d, hidden, { w = w[d], r = r[d], wb = bias[{ { 1, gates * hidden } }], rb = bias[{ { gates * hidden + 1, -1 } }],
                p = peepholes and peepholes[d] })
            local zero = tide.zeros(n, hidden, { dtype = x.dtype })
            local reverse = a.direction == "reverse" or d == 2
            outputs[d], hs[d], cs[d] = run_direction(x, lengths, reverse, first_h and first_h[d] or zero, first_c and first_c[d] or zero, step)
        end
        local y, h, c = tide.stack(outputs, 2), tide.stack(hs), cs[1] and tide.stack(cs)
        if a.layout == 1 then
            y, h, c = y:permute(3, 1, 2, 4), h:transpose(1, 2), c and c:transpose(1, 2)
        end
        return y, h, c
    end
end

operators.RNN = recurrent(1, function(call, d, _, k)
    local f = activations(call, d, 1, { "tanh" })[1]
    return function(x, h) return f(F.linear(x, k.w, k.wb) + F.linear(h, k.r, k.rb)) end
end)

operators.GRU = recurrent(3, function(call, d, hidden, k)
    local f, g = table.unpack(activations(call, d, 2, { "sigmoid", "tanh" }))
    local linear = call.attributes.linear_before_reset or 0
    local function part(y, j) return y:narrow(-1, (j - 1) * hidden + 1, hidden) end
    return function(x, h)
        local ahead, back = F.linear(x, k.w, k.wb), F.linear(h, k.r, k.rb)
        local z, r = f(part(ahead, 1) + part(back, 1)), f(part(ahead, 2) + part(back, 2))
        local new
        if linear ~= 0 then
            new = g(part(ahead, 3) + r * part(back, 3))
        else
            local rest = k.r[{ { 2 * hidden + 1, -1 } }]
            new = g(part(ahead, 3) + F.linear(r * h, rest, k.rb[{ { 2 * hidden + 1, -1 } }]))
        end
        return (1 - z) * new + z * h
    end
end)

operators.LSTM = recurrent(4, function(call, d, hidden, k)
    local f, g, last = table.unpack(activations(call, d, 3, { "sigmoid", "tanh", "tanh" }))
    local coupled = call.attributes.input_forget == 1
    local function part(y, j) return y:narrow(-1, (j - 1) * hidden + 1, hidden) end
    return function(x, h, c)
        local all = F.linear(x, k.w, k.wb) + F.linear(h, k.r, k.rb)
        local p = k.p
        local i = f(part(all, 1) + (p and part(p, 1) * c or 0))
        local forget = coupled and 1 - i or f(part(all, 3) + (p and part(p, 3) * c or 0))
        local new = forget * c + i * g(part(all, 4))
        local o = f(part(all, 2) + (p and part(p, 2) * new or 0))
        return o * last(new), new
    end
end)

-- ---- signals: complex numbers are pairs in the last dim ----

-- The matrix of a discrete Fourier transform: cosines and sines of n rows and size columns.
local function fourier(n, size, inverse)
    local angle = (tide.arange(n, { dtype = tide.float64 }):unsqueeze(2) * tide.arange(size, { dtype = tide.float64 }):unsqueeze(1))
        :remainder(n) * (2 * math.pi / n)
    return angle:cos(), angle:sin() * (inverse and 1 or -1)
end

-- Of x (..., size, parts) along its last dim but one, of length n, the first `kept` numbers.
local function transform(x, n, inverse, kept)
    local size = math.min(n, x:size(-2))
    x = x:narrow(-2, 1, size):double()
    local cosine, sine = fourier(n, size, inverse)
    cosine, sine = cosine[{ { 1, kept } }], sine[{ { 1, kept } }]
    local real = x:select(-1, 1)
    local re, im = real:matmul(cosine:transpose(1, 2)), real:matmul(sine:transpose(1, 2))
    if x:size(-1) == 2 then
        local other = x:select(-1, 2)
        re, im = re - other:matmul(sine:transpose(1, 2)), im + other:matmul(cosine:transpose(1, 2))
    end
    local y = tide.stack({ re, im }, -1)
    return inverse and y / n or y
end

function operators.DFT(call, x, length, axis)
    local a = call.attributes
    local dim = common.dim(axis and common.number(axis) or a.axis or (call.opset >= 20 and -2 or 1), x)
    local n = length and common.number(length) or x:size(dim)
    local moved = x:movedim(dim, -2)
    local y = transform(moved, n, a.inverse == 1, a.onesided == 1 and n // 2 + 1 or n)
    return y:movedim(-2, dim):to(x.dtype)
end

function operators.STFT(call, x, step, window, length)
    local hop = common.number(step)
    local n = length and common.number(length) or window:numel()
    if x:dim() == 2 then
        x = x:unsqueeze(-1)
    end
    local frames = x:unfold(2, n, hop):transpose(3, 4) -- (batch, frames, n, parts)
    if window then
        frames = frames * window:view(1, 1, n, 1)
    end
    return transform(frames, n, false, call.attributes.onesided ~= 0 and n // 2 + 1 or n):to(x.dtype)
end

function operators.MelWeightMatrix(call, bands, length, rate, low, high)
    local n, size, samples = common.number(bands), common.number(length), common.number(rate)
    local function mel(hertz) return 2595 * math.log(1 + hertz / 700, 10) end
    local from, to = mel(common.number(low)), mel(common.number(high))
    local bins, rows = {}, size // 2 + 1
    for k = 0, n + 1 do
        local hertz = 700 * (10 ^ ((from + k * (to - from) / (n + 2)) / 2595) - 1)
        bins[k] = math.floor((size + 1) * hertz / samples)
    end
    local out = {}
    for j = 1, rows do
        out[j] = {}
        for k = 1, n do
            out[j][k] = 0.0
        end
    end
    for k = 1, n do
        local first, middle, last = bins[k - 1], bins[k], bins[k + 1]
        if middle == first and out[middle + 1] then
            out[middle + 1][k] = 1.0
        end
        for j = first, middle > first and middle or first - 1 do
            out[j + 1][k] = (j - first) / (middle - first)
        end
        for j = middle, last - 1 do
            if out[j + 1] then
                out[j + 1][k] = (last - j) / (last - middle)
            end
        end
    end
    return tide.tensor(out):to((tensors.dtype(call.attributes.output_datatype or 1, "what it makes")))
end

return operators
