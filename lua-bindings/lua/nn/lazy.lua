-- nn/lazy.lua: layers whose number of inputs is that of the first input that they see. Until then they have no parameters; from then
-- on they are the layers that they are named after.
local tide = ...
local fail, layers = tide._fail, tide._require "nn.layer"
local lazy = {}

--- check_made(module): fails where a module waits for its first call.
function lazy.check_made(module)
    if rawget(module, "_waiting") then
        fail("%s has no parameters before its first call: call the model once, tide.no_grad(model, x), and ask for them then",
            getmetatable(module).__name)
    end
end

-- The layer's fields and parameters, for an input whose dim is so large. A field that was waiting, and the device and the dtype to
-- which its stand-in was moved, decide; where the layer can't be made nothing is changed.
local function make(self, base, missing, size)
    local waiting, stand_in = rawget(self, "_waiting"), rawget(self, "weight")
    local arguments = { [missing] = size, dtype = stand_in.dtype, device = stand_in.device }
    for name, value in pairs(waiting) do
        arguments[name] = value
    end
    local made = base(arguments)
    rawset(self, "_waiting", nil)
    self:register_parameter("weight", nil)
    for name, value in next, made do
        if name ~= "training" then
            rawset(self, name, value)
        end
    end
    setmetatable(self, base)
end

-- "Lazy" before a layer's name, with affine and running statistics where nothing is said, as PyTorch's, without the field that its first input says: the size of dim `dim` of inputs of `least` to `most` dims.
local function define(nn, name, missing, dim, least, most)
    local base, class = nn[name], nn.class("Lazy" .. name, nn[name])
    local doc = tide._doc(base)
    local schema = string.gsub(layers.schemas[name], "^" .. name .. "%(int%(%d%.%.%) " .. missing .. ",? ?", class.__name .. "(")
    schema = string.gsub(schema, "([%w_]+)=false", { affine = "affine=true", track_running_stats = "track_running_stats=true" })
    local read = tide._function(schema, string.format("%s whose %s is that of its first input: call the model once before its "
        .. "parameters are asked for, as an optimizer does.", name, missing), nil, doc.shapes)

    function class:init(...)
        local arguments = read(...)
        for field, value in pairs(arguments) do
            rawset(self, field, value)
        end
        rawset(self, missing, 0)
        layers.take_bias(self)
        self:register_parameter("weight", tide.empty(0, { dtype = arguments.dtype, device = arguments.device }))
        arguments.dtype, arguments.device = nil, nil
        rawset(self, "_waiting", arguments)
    end

    function class:forward(x, ...)
        if not tide.is_tensor(x) or x:dim() < least or x:dim() > most then
            fail("%s: expected %s dims, got %s", class.__name, least == most and tostring(least) or least .. " or " .. most,
                tide.is_tensor(x) and "shape " .. tostring(x.shape) or tide._describe(x))
        end
        make(self, base, missing, x:size(dim))
        return self:forward(x, ...)
    end

    nn[class.__name] = class
    tide._document(class, read)
end

function lazy.open(nn)
    define(nn, "Linear", "in_features", -1, 1, math.maxinteger)
    for n = 1, 3 do
        define(nn, string.format("Conv%dd", n), "in_channels", -n - 1, n + 1, n + 2)
        define(nn, string.format("ConvTranspose%dd", n), "in_channels", -n - 1, n + 1, n + 2)
        define(nn, string.format("BatchNorm%dd", n), "num_features", 2, n == 1 and 2 or n + 2, n + 2)
        define(nn, string.format("InstanceNorm%dd", n), "num_features", -n - 1, n + 1, n + 2)
    end
end

return lazy
