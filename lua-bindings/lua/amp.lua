-- amp.lua: what training in low precision needs besides autocast (modes.c): GradScaler, which keeps small
-- gradients from vanishing in float16, and what functions with a gradient of their own say about autocast.
local tide = ...
local fail, declare = tide._fail, tide._function
local amp = { autocast = tide.autocast }

-- ---- GradScaler ----

local GradScaler = { __name = "GradScaler" }
GradScaler.__index = GradScaler
tide._class("GradScaler", GradScaler)

local function method(name, parameters, doc, fn)
    GradScaler[name] = declare(string.format("%s(GradScaler self%s", name, parameters), doc, fn)
end

local READY, UNSCALED, STEPPED = "ready", "unscaled", "stepped"

-- What was done with an optimizer since the last update; found: a number per kind of gradients, 0 where all
-- were finite.
local function record_of(self, optimizer)
    local record = self.optimizers[optimizer]
    if not record then
        record = { stage = READY, found = {} }
        self.optimizers[optimizer] = record
    end
    return record
end

local function check_optimizer(fname, optimizer)
    if type(optimizer) ~= "table" or type(optimizer.param_groups) ~= "table" then
        fail("%s: an optimizer expected, got %s", fname, tide._describe(optimizer))
    end
end

local function scale_all(value, scale)
    if tide.is_tensor(value) then
        return value * scale
    elseif type(value) ~= "table" then
        fail("scale: a tensor or a list of tensors expected, got %s", tide._describe(value))
    end
    local scaled = {}
    for k, entry in ipairs(value) do
        scaled[k] = scale_all(entry, scale)
    end
    return scaled
end

method("scale", ", any outputs) -> any", "A loss, or a list of them, times the scale.", function(self, outputs)
    if not self.enabled then
        return outputs
    end
    self.used = true
    return scale_all(outputs, self._scale)
end)

-- The dense gradients by dtype and device. A sparse one is summed up place by place first, for sums may
-- overflow where their parts don't.
local function sort_gradients(optimizer, allow_half)
    local kinds, order = {}, {}
    for _, group in ipairs(optimizer.param_groups) do
        for _, p in ipairs(group.params) do
            local grad = p.grad
            if grad and grad.dtype == tide.float16 and not allow_half then
                fail("unscale_: a gradient is float16: parameters stay float32 under autocast, so don't call "
                    .. "model:half()")
            elseif grad and grad.is_sparse then
                grad = grad:coalesce()
                p.grad = grad
                grad = grad:_values()
            end
            if grad then
                local key = string.format("%s %s", tostring(grad.dtype), grad.device)
                if not kinds[key] then
                    kinds[key] = {}
                    order[#order + 1] = kinds[key]
                end
                kinds[key][#kinds[key] + 1] = grad:detach()
            end
        end
    end
    return order
end

local function unscale(self, optimizer, record)
    local inverse = tide.tensor(1 / self._scale, { dtype = tide.float32 }):item()
    for k, gradients in ipairs(sort_gradients(optimizer)) do
        record.found[k] = tide._unscale_gradients(gradients, inverse)
    end
end

method("unscale_", ", any optimizer)", "Divide the gradients of an optimizer's parameters by the scale, before they are "
    .. "clipped or looked at; step() knows that it is done.", function(self, optimizer)
    check_optimizer("unscale_", optimizer)
    if not self.enabled then
        return
    end
    local record = record_of(self, optimizer)
    if record.stage == UNSCALED then
        fail("unscale_: called twice for this optimizer since the last update()")
    elseif record.stage == STEPPED then
        fail("unscale_: called after step()")
    elseif not self.used then
        fail("unscale_: no loss was scaled yet: call scale(loss):backward() first")
    end
    unscale(self, optimizer, record)
    record.stage = UNSCALED
end)

-- The one look at what the device has found; an optimizer without gradients has nothing to be stepped for.
local function is_finite(record)
    if record.finite == nil then
        record.finite = true
        for _, found in ipairs(record.found) do
            record.finite = record.finite and found:item() == 0
        end
    end
    return record.finite
end

method("step", ", any optimizer, ...) -> any", "The optimizer's step, unless a gradient is inf or NaN: then it is "
    .. "skipped, and update() lowers the scale.", function(self, optimizer, ...)
    check_optimizer("step", optimizer)
    if not self.enabled then
        return optimizer:step(...)
    elseif select("#", ...) > 0 and (...) ~= nil then
        fail("step: closures are not for a GradScaler: compute the loss outside of it")
    end
    local record = record_of(self, optimizer)
    if record.stage == STEPPED then
        fail("step: called twice for this optimizer since the last update()")
    elseif not self.used then
        fail("step: no loss was scaled yet: call scale(loss):backward() first")
    end
    if record.stage == READY then
        unscale(self, optimizer, record)
    end
    if #record.found == 0 then
        fail("step: the optimizer's parameters have no gradients: call scale(loss):backward() first")
    end
    record.stage = STEPPED
    if is_finite(record) then
        return optimizer:step()
    end
    optimizer.stepped = true -- skipped on purpose: schedulers need not speak up
end)

local function grow_or_back_off(self)
    local checked, finite = false, true
    for _, record in pairs(self.optimizers) do
        checked = checked or #record.found > 0
        finite = is_finite(record) and finite
    end
    if not checked then
        fail("update: no gradients were looked at since the last update(): call step() or unscale_() first")
    elseif not finite then
        self._scale, self._growth_tracker = self._scale * self.backoff_factor, 0
        return
    end
    self._growth_tracker = self._growth_tracker + 1
    if self._growth_tracker == self.growth_interval then
        local grown = self._scale * self.growth_factor
        self._scale, self._growth_tracker = grown < 2 ^ 128 and grown or self._scale, 0
    end
end

method("update", ", Tensor|number? new_scale=nil)", "At the end of an iteration: the scale grows after growth_interval "
    .. "steps without inf and NaN and falls after one with them; or it is set.", function(self, new_scale)
    if not self.enabled then
        return
    elseif not self.used then
        fail("update: no loss was scaled yet: call scale(loss):backward() first")
    end
    if tide.is_tensor(new_scale) then
        if new_scale:numel() ~= 1 or new_scale.requires_grad then
            fail("update: new_scale: one element that does not require grad expected")
        end
        new_scale = new_scale:item()
    end
    if new_scale then
        self._scale = new_scale + 0.0
    else
        grow_or_back_off(self)
    end
    self.optimizers = setmetatable({}, { __mode = "k" })
end)

method("get_scale", ") -> float", "The factor of losses; 1 where the scaler is off.", function(self)
    return self.enabled and self._scale or 1.0
end)
method("is_enabled", ") -> bool", "Does it do anything?", function(self) return self.enabled end)

local SETTINGS = { "growth_factor", "backoff_factor", "growth_interval" }
for _, name in ipairs(SETTINGS) do
    method("get_" .. name, ") -> number", string.format("Its %s.", (string.gsub(name, "_", " "))), function(self) return self[name] end)
end

local function check_settings(fname, o)
    if not (o.growth_factor > 1) then
        fail("%s: growth_factor must be above 1, got %s", fname, tide._number(o.growth_factor))
    elseif not (o.backoff_factor < 1) then
        fail("%s: backoff_factor must be below 1, got %s", fname, tide._number(o.backoff_factor))
    end
end

local function define_setter(name, kind)
    method("set_" .. name, string.format(", %s value)", kind), string.format("Change its %s.", (string.gsub(name, "_", " "))),
        function(self, value)
            local settings = { growth_factor = self.growth_factor, backoff_factor = self.backoff_factor }
            settings[name] = value
            check_settings("set_" .. name, settings)
            self[name] = value
        end)
end
define_setter("growth_factor", "number")
define_setter("backoff_factor", "number")
define_setter("growth_interval", "int(1..)")

method("state_dict", ") -> table", "Scale, settings and steps since it last changed; empty where the scaler is off.",
    function(self)
        return self.enabled and { scale = self:get_scale(), growth_factor = self.growth_factor,
            backoff_factor = self.backoff_factor, growth_interval = self.growth_interval,
            _growth_tracker = self._growth_tracker } or {}
    end)

method("load_state_dict", ", any state)", "What state_dict gave.", function(self, state)
    tide._require "files.state"(state)
    if not self.enabled then
        return
    elseif next(state) == nil then
        fail("load_state_dict: the state is empty: it is of a scaler that was off")
    end
    for _, name in ipairs { "scale", "growth_factor", "backoff_factor", "growth_interval", "_growth_tracker" } do
        if type(state[name]) ~= "number" then
            fail("load_state_dict: %s: a number expected, got %s", name, tide._describe(state[name]))
        end
    end
    check_settings("load_state_dict", state)
    self._scale, self._growth_tracker = state.scale + 0.0, state._growth_tracker
    for _, name in ipairs(SETTINGS) do
        self[name] = state[name]
    end
end)

amp.GradScaler = declare("GradScaler(str? device=nil, *, number init_scale=65536, number growth_factor=2, number backoff_factor=0.5, "
    .. "int(1..) growth_interval=2000, bool enabled=true) -> GradScaler",
    "Scales losses so that gradients don't vanish in float16: scaler:scale(loss):backward(); scaler:step(optimizer); "
    .. "scaler:update(). Gradients may be on any device, whichever is named.",
    function(_, init_scale, growth_factor, backoff_factor, growth_interval, enabled)
        local self = setmetatable({ enabled = enabled, _scale = init_scale + 0.0, _growth_tracker = 0, used = false,
            growth_factor = growth_factor, backoff_factor = backoff_factor, growth_interval = growth_interval,
            optimizers = setmetatable({}, { __mode = "k" }) }, GradScaler)
        if enabled then
            check_settings("GradScaler", self)
        end
        return self
    end)

function GradScaler:__tostring()
    return string.format("GradScaler(scale = %s, growth_tracker = %d)", tide._number(self:get_scale()), self._growth_tracker)
end

-- ---- functions with a gradient of their own ----

-- Tensors within are cast as autocast casts arguments.
local function cast(value, device, dtype)
    if tide.is_tensor(value) then
        local eligible = tide.is_floating_point(value) and value.dtype ~= tide.float64
            and string.match(value.device, "^%a+") == device
        return eligible and value:to(dtype) or value
    elseif type(value) ~= "table" or getmetatable(value) then
        return value
    end
    local copy = {}
    for key, entry in pairs(value) do
        copy[key] = cast(entry, device, dtype)
    end
    return copy
end

amp.custom_fwd = declare("custom_fwd(function forward, *, str device=\"cpu\", dtype? cast_inputs=nil) -> function",
    "The forward of a tide.autograd.Function: with cast_inputs it gets its inputs in that dtype where autocast holds, and "
    .. "runs without it.", function(forward, device, cast_inputs)
        return function(ctx, ...)
            local enabled = tide.is_autocast_enabled(device)
            ctx._autocast_dtype = tide.get_autocast_dtype(device)
            ctx._autocast_enabled = enabled and not cast_inputs
            if not (enabled and cast_inputs) then
                return forward(ctx, ...)
            end
            local inputs = table.pack(...)
            for k = 1, inputs.n do
                inputs[k] = cast(inputs[k], device, cast_inputs)
            end
            local _ <close> = tide.autocast { device = device, enabled = false }
            return forward(ctx, table.unpack(inputs, 1, inputs.n))
        end
    end)

amp.custom_bwd = declare("custom_bwd(function backward, *, str device=\"cpu\") -> function",
    "The backward of a tide.autograd.Function whose forward is a custom_fwd: it runs as that did, with autocast or "
    .. "without.", function(backward, device)
        return function(ctx, ...)
            if ctx._autocast_enabled == nil then
                fail("custom_bwd: its forward is no custom_fwd")
            end
            local _ <close> = tide.autocast { device = device, enabled = ctx._autocast_enabled,
                dtype = ctx._autocast_dtype }
            return backward(ctx, ...)
        end
    end)

tide._document(amp, "amp", "tide.amp", "Training in low precision: autocast, GradScaler, custom_fwd and custom_bwd.")

return amp
