-- nn/layer.lua: how the layers of tide.nn are declared: from a schema to a class, starting weights, and the
-- texts that print(model) shows.
local tide = ...
local init = tide._require "nn.init"
local layers = {}

layers.schemas = {} -- of layers, by their names

local factory = "dtype? dtype=nil, device? device=nil"

-- "Name(PARAMETERS)" with the options that say what a layer's parameters are.
function layers.with_factory(schema)
    local head, parameters = string.match(schema, "^(%w+)%((.*)%)$")
    local separator = parameters == "" and "*, " or string.find(parameters, "*", 1, true) and ", " or ", *, "
    return string.format("%s(%s%s%s)", head, parameters, separator, factory)
end

-- Run make(self) so that what it makes is of a dtype and on a device, where they are given.
function layers.made_as(self, make, dtype, device)
    if device then
        tide.set_default_device(device, make, self)
    else
        make(self)
    end
    if dtype then
        self:to(dtype)
    end
end

-- Parameters and running statistics as those of a layer that is made now, of the same fields.
local reset_parameters = tide._function("reset_parameters(Module self)", "Start anew: parameters get values as a layer that is just made, and "
    .. "running statistics their first ones.", function(self)
        if self.keeps_dtypes then
            tide._fail("reset_parameters: %s has the bytes of another layer's parameters, and no values to start with", getmetatable(self).__name)
        end
        local class, first = self.layer_class, self:parameters()[1]
        local arguments = { dtype = first and first.dtype, device = first and first.device }
        for _, name in ipairs(tide._doc(class).params) do
            if name == "bias" then
                arguments.bias = self.has_bias
            elseif arguments[name] == nil then
                arguments[name] = rawget(self, name)
            end
        end
        local made = class(arguments):state_dict()
        local _ <close> = tide.no_grad()
        for name, x in pairs(self:state_dict { keep_vars = true }) do
            if made[name] then
                x:copy_(made[name])
            end
        end
    end)

-- A class whose arguments, read by the schema "Name(PARAMETERS)", become fields of the same names. `class` has
-- forward, extra_repr and, where there is more to do, derive(self), which works out other fields, and make(self),
-- which makes parameters and buffers; layers that have these take the options dtype and device. `shapes` says what a
-- call takes and gives (engine/ops/help.h), by the fields' names.
function layers.layer(nn, schema, doc, shapes, class)
    schema = class.make and layers.with_factory(schema) or schema
    local name, read = string.match(schema, "^%w+"), tide._function(schema, doc, nil, shapes)
    local c = nn.class(name)
    layers.schemas[name] = schema
    for key, value in pairs(class) do
        c[key] = value
    end
    function c:init(...)
        local arguments = read(...)
        local dtype, device = arguments.dtype, arguments.device
        if class.make then
            arguments.dtype, arguments.device = nil, nil
        end
        for field, value in pairs(arguments) do
            rawset(self, field, value)
        end
        if class.derive then
            class.derive(self)
        end
        if class.make then
            layers.made_as(self, class.make, dtype, device)
        end
    end
    if class.make then
        c.layer_class, c.reset_parameters = c, class.reset_parameters or reset_parameters
    end
    nn[name] = c
    tide._document(c, read)
end

--- shapes_of(fn): the text of an operator's shapes, for a layer that is the operator.
function layers.shapes_of(fn) return tide._doc(fn).shapes end

-- The argument `bias` makes room for the parameter of that name.
function layers.take_bias(self)
    local has_bias = self.bias
    rawset(self, "has_bias", has_bias)
    rawset(self, "bias", nil)
    return has_bias
end

-- Weights in U(-1/sqrt(fan_in), 1/sqrt(fan_in)), which is what PyTorch's kaiming_uniform(a = sqrt 5) gives.
function layers.start_weights(self, shape, outputs, fan_in)
    local bound = fan_in > 0 and 1 / math.sqrt(fan_in) or 0
    local has_bias = layers.take_bias(self)
    self.weight = init.uniform_(tide.empty(shape), -bound, bound):requires_grad_(true)
    if has_bias then
        self.bias = init.uniform_(tide.empty(outputs), -bound, bound):requires_grad_(true)
    end
end

-- "(3, 3)", "(3,)" of a list; what is no list as it is.
function layers.list_text(list)
    if type(list) ~= "table" then
        return tostring(list)
    end
    local texts = {}
    for k, value in ipairs(list) do
        texts[k] = value == false and "nil" or tostring(value)
    end
    return #texts == 1 and string.format("(%s,)", texts[1]) or string.format("(%s)", table.concat(texts, ", "))
end

-- The number alone where all of a list are equal.
function layers.short_text(list)
    return type(list) == "table" and layers.all_are(list, list[1]) and tostring(list[1] or "nil")
        or layers.list_text(list)
end

function layers.all_are(list, value)
    for _, v in ipairs(list) do
        if v ~= value then
            return false
        end
    end
    return true
end

return layers
