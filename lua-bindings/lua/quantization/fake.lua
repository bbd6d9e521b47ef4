-- quantization/fake.lua: floats rounded as quantizing and back rounds them, with gradients that go straight through
-- (engine/ops/quantized/fake_quantize.c), and the modules that do so in training.
local tide = ...
local fail, layers = tide._fail, tide._require "nn.layer"

local MOST = { quint8 = { 0, 255 }, qint8 = { -128, 127 } }

local function check_bounds(name, low, high)
    if low >= high then
        fail("%s: quant_min is below quant_max, got %d and %d", name, low, high)
    end
end

-- A parameter as a tensor of x's dtype, one element for each of `n` channels that stands at the axis.
local function broadcast(value, x, axis)
    local y = (tide.is_tensor(value) and value or tide.tensor(value, { dtype = tide.float32 })):to(x.dtype)
    if not axis then
        return y:reshape({})
    end
    local shape = {}
    for d = 1, x:dim() do
        shape[d] = d == axis and x:size(d) or 1
    end
    return y:reshape(shape)
end

local function check_parameters(name, scale, point, low, high)
    local good = scale:gt(0):logical_and(scale:isfinite()):all():item()
    if not good then
        fail("%s: a scale is above 0 and finite", name)
    elseif point:lt(low):logical_or(point:gt(high)):any():item() then
        fail("%s: a zero point is from quant_min %d to quant_max %d", name, low, high)
    end
end

return function(quantization)
    quantization.fake_quantize_per_tensor_affine = tide._function(
        "fake_quantize_per_tensor_affine(Tensor x, Tensor|number scale, Tensor|number zero_point, int quant_min, "
        .. "int quant_max) -> Tensor",
        "x rounded to (q - zero_point) * scale for the nearest integer q from quant_min to quant_max; the gradient is 1 "
        .. "where q lies in between and 0 elsewhere.", function(x, scale, point, low, high)
            local name = "fake_quantize_per_tensor_affine"
            check_bounds(name, low, high)
            if not x:is_floating_point() then
                fail("%s: x is %s: a floating tensor expected", name, tide._describe(x))
            end
            scale, point = broadcast(scale, x), broadcast(point, x)
            check_parameters(name, scale, point, low, high)
            return tide._fake_quantize(x, scale, point, low, high)
        end, "x (...) -> (...)")

    quantization.fake_quantize_per_channel_affine = tide._function(
        "fake_quantize_per_channel_affine(Tensor x, Tensor scale, Tensor zero_point, dim axis, int quant_min, "
        .. "int quant_max) -> Tensor",
        "The same with a scale and a zero point for each place along an axis.", function(x, scale, point, axis, low, high)
            local name = "fake_quantize_per_channel_affine"
            check_bounds(name, low, high)
            axis = axis < 0 and axis + x:dim() + 1 or axis
            if axis < 1 or axis > x:dim() then
                fail("%s: axis %d is none of the %d dims of x", name, axis, x:dim())
            elseif scale:numel() ~= x:size(axis) or point:numel() ~= x:size(axis) then
                fail("%s: scale and zero_point have an element for each of the %d places along dim %d, got %d and %d", name,
                    x:size(axis), axis, scale:numel(), point:numel())
            end
            scale, point = broadcast(scale, x, axis), broadcast(point, x, axis)
            check_parameters(name, scale, point, low, high)
            return tide._fake_quantize(x, scale, point, low, high)
        end, "x (...), scale (c), zero_point (c) -> (...)")

    quantization.class = tide.nn.class
    layers.layer(quantization, "FakeQuantize(Module? observer=nil)",
        "Shows what it is given to an observer (by default MovingAverageMinMaxObserver) and gives it back rounded as the "
        .. "observer's parameters say. Fields: observer_enabled, fake_quant_enabled.", "x (...) -> (...)", {
        derive = function(self)
            rawset(self, "observer_enabled", true)
            rawset(self, "fake_quant_enabled", true)
            local observer = self.observer or quantization.MovingAverageMinMaxObserver()
            rawset(self, "observer", nil)
            self.observer = observer
        end,
        calculate_qparams = function(self) return self.observer:calculate_qparams() end,
        forward = function(self, x)
            local observer = self.observer
            if self.observer_enabled then
                observer(x)
            end
            if not self.fake_quant_enabled then
                return x
            end
            local scale, point = observer:calculate_qparams()
            if observer.ch_axis then
                return quantization.fake_quantize_per_channel_affine(x, scale, point, observer.ch_axis, observer.quant_min,
                    observer.quant_max)
            end
            return quantization.fake_quantize_per_tensor_affine(x, scale, point, observer.quant_min, observer.quant_max)
        end,
    })

    layers.layer(quantization, 'LearnableFakeQuantize(number scale=1, number zero_point=0, "quint8"|"qint8" dtype="qint8", '
        .. "bool symmetric=true, bool use_grad_scaling=true)",
        "Rounds what it is given by a scale and, unless symmetric, a zero point that are trained with the model (learned "
        .. "step size quantization).", "x (...) -> (...)", {
        derive = function(self)
            local scale, point = self.scale, self.zero_point
            if not (scale > 0 and scale < math.huge) then
                fail("LearnableFakeQuantize: a scale is above 0 and finite, got %s", tide._number(scale))
            end
            rawset(self, "scale", nil)
            rawset(self, "zero_point", nil)
            self.scale = tide.tensor({ scale }, { dtype = tide.float32, requires_grad = true })
            self.zero_point = tide.tensor({ point }, { dtype = tide.float32, requires_grad = not self.symmetric })
        end,
        forward = function(self, x)
            local range = MOST[self.dtype]
            local factor = self.use_grad_scaling and 1 / math.sqrt(math.max(x:numel(), 1) * range[2]) or 1
            tide.no_grad(function() self.scale:clamp_min_(1.1920928955078125e-07) end)
            return tide._fake_quantize_learnable(x, self.scale, self.zero_point, range[1], range[2], factor)
        end,
    })
    quantization.class = nil
end
