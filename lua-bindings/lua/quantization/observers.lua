-- quantization/observers.lua: modules that give back what they are given and remember its range, from which
-- scale and zero point follow. Rules, defaults and bits are those of torch.ao.quantization.observer (2.x): all
-- arithmetic is float32's.
local tide = ...
local fail, layers = tide._fail, tide._require "nn.layer"

local RANGES = { quint8 = { 0, 255, 0, 127 }, qint8 = { -128, 127, -64, 63 }, qint32 = { -2147483648, 2147483647 } }
local OPTIONS = '"quint8"|"qint8"|"qint32" dtype="quint8", '
    .. '"per_tensor_affine"|"per_tensor_symmetric" qscheme="per_tensor_affine", '
    .. "bool reduce_range=false, int? quant_min=nil, int? quant_max=nil, number eps=1.1920928955078125e-07"

local function scalar(x) return tide.tensor(x, { dtype = tide.float32 }) end

-- The integers that there are: those of the dtype, half of them, or those that were given.
local function start_range(self)
    local range, name = RANGES[self.dtype], getmetatable(self).__name
    local low, high = self.quant_min, self.quant_max
    if (low == nil) ~= (high == nil) then
        fail("%s: quant_min and quant_max are given both or not at all", name)
    elseif self.reduce_range and not range[3] then
        fail("%s: reduce_range is not for %s", name, self.dtype)
    elseif self.reduce_range and self.dtype == "quint8" and string.find(self.qscheme, "symmetric", 1, true) then
        fail("%s: reduce_range is not for quint8 that is symmetric: its zero point, 128, lies outside", name)
    elseif low and (low >= high or low < range[1] or high > range[2]) then
        fail("%s: quant_min and quant_max: two integers of %s in order expected, got %d and %d", name, self.dtype, low, high)
    end
    rawset(self, "customized", low ~= nil)
    rawset(self, "quant_min", low or range[self.reduce_range and 3 or 1])
    rawset(self, "quant_max", high or range[self.reduce_range and 4 or 2])
    self:register_buffer("min_val", scalar(math.huge))
    self:register_buffer("max_val", scalar(-math.huge))
end

-- Ends of what was seen in float32; an observer that sees NaN or infinity has no range to tell.
local function ends_of(self, x, ...)
    local low, high = tide.aminmax(x:detach():float(), ...)
    if not tide.logical_and(low:isfinite(), high:isfinite()):all():item() then
        fail("%s: x has NaN or infinity in it: there is no range of it", getmetatable(self).__name)
    end
    return low, high
end

-- Scale (float32) and zero point (int64), one element for each range.
local function parameters_of(self, low, high)
    local zero = tide.zeros_like(low)
    local below, above = tide.minimum(low, zero), tide.maximum(high, zero)
    local least, most = self.quant_min, self.quant_max
    local eps = tide.full_like(low, self.eps)
    if string.find(self.qscheme, "symmetric", 1, true) then
        above = tide.maximum(-below, above)
        local scale = tide.maximum(above / ((most - least) / 2), eps)
        local point = self.dtype ~= "quint8" and 0 or self.customized and (least + most) // 2 or 128
        return scale:reshape(-1), tide.full({ scale:numel() }, point, { dtype = tide.int64, device = scale.device })
    end
    local scale = tide.maximum((above - below) / (most - least), eps)
    local point = (least - (below / scale):round():long()):clamp(least, most)
    return scale:reshape(-1), point:reshape(-1)
end

local function check_seen(self)
    if self.min_val:numel() == 0 or self.min_val:reshape(-1)[1]:item() == math.huge then
        fail("calculate_qparams: the %s has seen no data: call it with some first", getmetatable(self).__name)
    end
end

local function repr(self)
    return string.format("dtype=%s, qscheme=%s, quant_min=%d, quant_max=%d", self.dtype, self.qscheme, self.quant_min,
        self.quant_max)
end

-- A class whose `see(self, x)` takes a batch that is not empty in.
local function define(quantization, schema, doc, class)
    class.derive, class.extra_repr = start_range, repr
    class.calculate_qparams = class.calculate_qparams or function(self)
        check_seen(self)
        return parameters_of(self, self.min_val, self.max_val)
    end
    local see = class.see
    class.forward = function(self, x)
        if x:numel() > 0 then
            local _ <close> = tide.no_grad()
            see(self, x)
        end
        return x
    end
    layers.layer(quantization, schema, doc, "x (...) -> (...)", class)
end

-- ---- histograms ----
--
-- Elements are counted where they lie, all else is done on the CPU: few numbers that Lua asks for.

local BINS, UPSAMPLE, STEP = 2048, 16, 1e-5

local function round32(x) return (string.unpack("f", string.pack("f", x))) end

-- A histogram between ends, spread over wider ones: each bin as UPSAMPLE narrow ones, put where their middles are.
local function spread(histogram, low, high, new_low, new_high)
    local fine = BINS * UPSAMPLE
    local weights = histogram:repeat_interleave(UPSAMPLE) / UPSAMPLE
    local middles = tide.linspace(low:item(), high:item(), fine + 1)[{ { 1, fine } }] + (high - low) / fine * 0.5
    local borders = tide.linspace(new_low:item(), new_high:item(), BINS + 1)
    local places = tide.bucketize(middles, borders, { right = true }) - 1
    return tide.bincount(places:clamp(1, BINS), weights, { minlength = BINS })
end

-- The squared error of rounding what the bins hold to so many values between two bins, the values of a bin being
-- anywhere in it.
local function error_of(self, histogram, first, last)
    local width = (self.max_val:item() - self.min_val:item()) / BINS
    local count = 2 ^ (self.dtype == "qint32" and 32 or 8)
    local step = width * (last - first + 1) / count
    if step == 0 then
        return 0
    end
    local begin = (tide.arange(0, BINS) - first):float() * width
    local stop = begin + width
    local function place(x) return tide.div(x, step, { rounding_mode = "floor" }):clamp(0, count - 1) end
    local from, to = place(begin), place(stop)
    local density = histogram / width
    local function part(a, b) return density * ((b * b * b - a * a * a) / 3) end
    local half = scalar(step / 2)
    local norm = tide.zeros(BINS) + part(begin - (from + 0.5) * step, tide.ones(BINS) * (step / 2))
    norm = norm + (to - from - 1) * part(-half, half)
    return (norm + part(-half, stop - (to * step + step / 2))):sum():item()
end

-- The next bins from either end that leave a STEP more of all outside, the farther of both ends moving.
local function search(self)
    local histogram = self.histogram:cpu()
    local sums, total = histogram:cumsum(1):tolist(), histogram:sum():item()
    local alpha, beta, first, last, best = 0.0, 1.0, 0, BINS - 1, math.huge
    while alpha < beta do
        local next_alpha, next_beta = alpha + STEP, beta - STEP
        local left, right = first, last
        local below, above = round32(next_alpha * total), round32(next_beta * total)
        while left < last and sums[left + 1] < below do
            left = left + 1
        end
        while right > first and sums[right + 1] > above do
            right = right - 1
        end
        local next_first, next_last = first, last
        if left - first > last - right then
            next_first, alpha = left, next_alpha
        else
            next_last, beta = right, next_beta
        end
        if next_first ~= first or next_last ~= last then
            local norm = error_of(self, histogram, next_first, next_last)
            if norm > best then
                break
            end
            best, first, last = norm, next_first, next_last
        end
    end
    local width = (self.max_val - self.min_val) / BINS
    return self.min_val + width * first, self.min_val + width * (last + 1)
end

local function see_histogram(self, x)
    local low, high = ends_of(self, x)
    low, high = low:cpu(), high:cpu()
    local old_low, old_high, histogram = self.min_val:cpu(), self.max_val:cpu(), self.histogram and self.histogram:cpu()
    local empty = old_low:item() == math.huge
    local new_low = empty and low or tide.minimum(old_low, low)
    local new_high = empty and high or tide.maximum(old_high, high)
    local seen = tide.histc(x:detach():float(), BINS, new_low:item(), new_high:item()):cpu()
    if not empty then
        local wider = new_low:item() ~= old_low:item() or new_high:item() ~= old_high:item()
        if not wider then
            seen = histogram + seen
        elseif old_low:item() == old_high:item() then
            seen = tide.histc(old_low:reshape(1), BINS, new_low:item(), new_high:item()) * histogram:sum() + seen
        else
            seen = seen + spread(histogram, old_low, old_high, new_low, new_high)
        end
    end
    self.histogram = seen
    self.min_val, self.max_val = new_low:clone():to(self.min_val.device), new_high:clone():to(self.max_val.device)
end

return function(quantization)
    local function declare(schema, doc, class)
        define(quantization, schema, doc, class)
    end
    quantization.class = tide.nn.class -- by which layers.layer makes the classes of a room
    declare("MinMaxObserver(" .. OPTIONS .. ")", "Remembers the smallest and the largest element.", {
        see = function(self, x)
            local low, high = ends_of(self, x)
            self.min_val, self.max_val = tide.minimum(low, self.min_val), tide.maximum(high, self.max_val)
        end,
    })
    declare("MovingAverageMinMaxObserver(number averaging_constant=0.01, " .. OPTIONS .. ")",
        "Remembers running averages of the ends of each batch.", {
        see = function(self, x)
            local low, high = ends_of(self, x)
            if self.min_val:item() ~= math.huge then
                low = self.min_val + (low - self.min_val) * self.averaging_constant
                high = self.max_val + (high - self.max_val) * self.averaging_constant
            end
            self.min_val, self.max_val = low:clone(), high:clone()
        end,
    })
    declare("PerChannelMinMaxObserver(dim ch_axis=0, "
        .. (string.gsub(OPTIONS, "per_tensor", "per_channel")) .. ")",
        "Remembers the ends of every place along an axis, which counts from 1.", {
        see = function(self, x)
            local axis = self.ch_axis < 0 and self.ch_axis + x:dim() + 1 or self.ch_axis
            if axis < 1 or axis > x:dim() then
                fail("PerChannelMinMaxObserver: ch_axis %d is none of the %d dims of x", self.ch_axis, x:dim())
            end
            local low, high = ends_of(self, x:transpose(1, axis):flatten(2), { dim = 2 })
            if self.min_val:dim() == 1 then
                if self.min_val:numel() ~= low:numel() then
                    fail("PerChannelMinMaxObserver: x has %d places along dim %d, before there were %d", low:numel(), axis,
                        self.min_val:numel())
                end
                low, high = tide.minimum(low, self.min_val), tide.maximum(high, self.max_val)
            end
            self.min_val, self.max_val = low:clone(), high:clone()
        end,
    })
    declare("HistogramObserver(" .. OPTIONS .. ")",
        "Counts elements in 2,048 bins, and gives the range that rounds them with the least squared error.", {
        see = see_histogram,
        calculate_qparams = function(self)
            check_seen(self)
            return parameters_of(self, search(self))
        end,
    })
    quantization.class = nil
end
