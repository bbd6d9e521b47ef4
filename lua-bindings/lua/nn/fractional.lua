-- nn/fractional.lua: fractional max pooling (B. Graham, 2014): windows at places drawn at random, so many that the
-- result has a given size, or part of the input's.
local tide = ...
local fail, declare, layers = tide._fail, tide._function, tide._require "nn.layer"

-- Where the windows of one dim begin, from 0: (N, C, outputs), for samples (N, C).
local function starts(samples, inputs, outputs, window)
    local last = tide.full_like(samples, inputs - window):unsqueeze(-1)
    if outputs == 1 then
        return last:long()
    end
    local alpha, u = (inputs - window) / (outputs - 1), samples:unsqueeze(-1)
    local steps = tide.arange(outputs - 1, { dtype = samples.dtype, device = samples.device })
    local drawn = ((steps + u) * alpha):trunc() - (u * alpha):trunc()
    return tide.cat({ drawn, last }, -1):long()
end

-- Places of all elements of all windows in the flat spatial dims, from 0: (N, C, outputs, elements of a window).
local function places(samples, sizes, outputs, window)
    local n, at = #sizes, nil
    for d = 1, n do
        -- PyTorch's samples for images stand in the order of their width and height
        local of_dim = samples:select(-1, n == 2 and 3 - d or d)
        local first = starts(of_dim, sizes[d], outputs[d], window[d])
        local within = tide.arange(window[d], { dtype = tide.int64, device = samples.device })
        local shape = { first.shape[1], first.shape[2] }
        for e = 1, 2 * n do
            shape[2 + e] = e == d and outputs[d] or e == n + d and window[d] or 1
        end
        local own = (first:unsqueeze(-1) + within):reshape(shape)
        at = at and at * sizes[d] + own or own
    end
    return at:flatten(3, 2 + n):flatten(4)
end

local function output_sizes(fname, sizes, window, given, ratio)
    local outputs = {}
    if (given == nil) == (ratio == nil) then
        fail("%s: give either output_size or output_ratio", fname)
    end
    for d, size in ipairs(sizes) do
        outputs[d] = given and given[d] or math.floor(size * ratio[d])
        if outputs[d] < 1 or outputs[d] + window[d] - 1 > size then
            fail("%s: dim %d: an output of %d by windows of %d doesn't fit into %d", fname, d, outputs[d], window[d], size)
        end
    end
    return outputs
end

local function check_samples(fname, samples, x, n)
    if samples.shape[1] ~= x.shape[1] or samples:dim() ~= 3 or samples.shape[2] ~= x.shape[2] or samples.shape[3] ~= n then
        fail("%s: _random_samples must have shape (%d, %d, %d), got %s", fname, x.shape[1], x.shape[2], n,
            tostring(samples.shape))
    end
end

local function pool(fname, n, x, window, given, ratio, with_places, samples)
    if x:dim() ~= n + 1 and x:dim() ~= n + 2 then
        fail("%s: input must have %d dims, or %d without batch, got shape %s", fname, n + 2, n + 1, tostring(x.shape))
    elseif not x:is_floating_point() then
        fail("%s: floats expected, got %s", fname, tostring(x.dtype))
    end
    local single, batched = x:dim() == n + 1, x
    if single then
        batched = x:unsqueeze(1)
    end
    local sizes = { table.unpack(batched.shape, 3) }
    local outputs = output_sizes(fname, sizes, window, given, ratio)
    samples = samples or tide.rand(batched.shape[1], batched.shape[2], n, { dtype = x.dtype, device = x.device })
    check_samples(fname, samples, batched, n)
    local at = places(samples, sizes, outputs, window)
    local elements = batched:flatten(3):gather(3, at:flatten(3) + 1):reshape(at.shape)
    local best, which = elements:max(4)
    local shape = { batched.shape[1], batched.shape[2], table.unpack(outputs) }
    local function deliver(y)
        y = y:reshape(shape)
        return single and y:squeeze(1) or y
    end
    if with_places then
        return deliver(best), deliver(at:gather(4, which:unsqueeze(4)) + 1)
    end
    return deliver(best)
end

local LENGTH = "; l(n, d) = output_size[d] if output_size else floor(n*(output_ratio[d] or output_ratio[1]))"
local SHAPES = {
    [2] = "input (N?, C, H, W) -> (N?, C, l(H, 1), l(W, 2)), (N?, C, l(H, 1), l(W, 2))" .. LENGTH,
    [3] = "input (N?, C, D, H, W) -> (N?, C, l(D, 1), l(H, 2), l(W, 3)), (N?, C, l(D, 1), l(H, 2), l(W, 3))" .. LENGTH,
}

local function define(nn, n)
    local fname, class = string.format("fractional_max_pool%dd", n), string.format("FractionalMaxPool%dd", n)
    local arguments = string.format("int(1..)[%d] kernel_size, int(1..)[%d]? output_size=nil, number[]? output_ratio=nil, "
        .. "bool return_indices=false, Tensor? _random_samples=nil", n, n)
    -- One ratio is that of each dim.
    local function ratios_of(name, ratio)
        if math.type(ratio) then
            ratio = { ratio, ratio, n == 3 and ratio or nil }
        end
        if ratio and #ratio ~= n then
            fail("%s: option output_ratio: one number or %d expected, got %d", name, n, #ratio)
        end
        for _, part in ipairs(ratio or {}) do
            if part <= 0 or part >= 1 then
                fail("%s: option output_ratio: numbers between 0 and 1 expected, got %s", name, tide._number(part))
            end
        end
        return ratio
    end
    local function run(name, x, window, size, ratio, with_places, samples)
        return pool(name, n, x, window, size, ratios_of(name, ratio), with_places, samples)
    end
    nn.functional[fname] = declare(string.format("%s(Tensor input, %s) -> Tensor", fname, arguments),
        "Largest element of each of so many windows at random places that the result has output_size, or output_ratio "
        .. "of the input's; with return_indices also where they stand.",
        function(...) return run(fname, ...) end, SHAPES[n])
    layers.layer(nn, string.format("%s(%s)", class, arguments),
        "Largest elements of windows at places drawn at random; output_size or output_ratio says how many there are.",
        SHAPES[n], {
        derive = function(self)
            if (self.output_size == nil) == (self.output_ratio == nil) then
                fail("%s: give either output_size or output_ratio", class)
            end
            ratios_of(class, self.output_ratio)
        end,
        forward = function(self, x)
            return run(class, x, self.kernel_size, self.output_size, self.output_ratio, self.return_indices,
                self._random_samples)
        end,
        extra_repr = function() return "" end,
    })
end

return function(nn)
    define(nn, 2)
    define(nn, 3)
end
