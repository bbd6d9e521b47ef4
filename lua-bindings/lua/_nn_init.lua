-- _nn_init.lua: tide.nn.init: values that parameters start with. Each writes a tensor in place, without
-- recording, and returns it.
local tide = ...
local check = tide._check
local init = {}

local function define(name, fill)
    init[name] = function(x, ...)
        if not tide.is_tensor(x) then
            check.fail("init.%s: argument 1: expected a tensor, got %s", name, check.describe(x))
        end
        local _ <close> = tide.no_grad()
        fill(x, ...)
        return x
    end
end

define("uniform_", function(x, a, b) x:uniform_(a or 0, b or 1) end)
define("normal_", function(x, mean, std) x:normal_(mean or 0, std or 1) end)
define("constant_", function(x, value) x:fill_(value) end)
define("zeros_", function(x) x:zero_() end)
define("ones_", function(x) x:fill_(1) end)

-- Inputs and outputs of a unit: sizes of dims 2 and 1, times the elements of a kernel.
local function fans(name, x)
    local sizes = { table.unpack(x.shape) }
    if #sizes < 2 then
        check.fail("init.%s: needs a tensor of at least 2 dims, got shape %s", name, tostring(x.shape))
    end
    local field = 1
    for d = 3, #sizes do
        field = field * sizes[d]
    end
    return sizes[2] * field, sizes[1] * field
end

-- The factor by which a nonlinearity shrinks the variance.
function init.calculate_gain(nonlinearity, param)
    if nonlinearity == "relu" then
        return math.sqrt(2)
    elseif nonlinearity == "leaky_relu" then
        return math.sqrt(2 / (1 + (param or 0.01) ^ 2))
    elseif nonlinearity == "tanh" then
        return 5 / 3
    elseif nonlinearity == "linear" or nonlinearity == "sigmoid" or nonlinearity == "conv2d" then
        return 1
    end
    check.fail("init.calculate_gain: unknown nonlinearity %s", check.describe(nonlinearity))
end

local kaiming_options = {
    { "a", kind = "number", default = 0 }, { "mode", kind = "string", default = "fan_in" },
    { "nonlinearity", kind = "string", default = "leaky_relu" },
}

local function kaiming(name, x, ...)
    local o = check.arguments("init." .. name, kaiming_options, ...)
    if o.mode ~= "fan_in" and o.mode ~= "fan_out" then
        check.fail("init.%s: mode must be \"fan_in\" or \"fan_out\", got %s", name, check.describe(o.mode))
    end
    local fan_in, fan_out = fans(name, x)
    local fan = o.mode == "fan_out" and fan_out or fan_in
    return init.calculate_gain(o.nonlinearity, o.a) / math.sqrt(fan)
end

-- Options: a (slope of leaky_relu), mode "fan_in" or "fan_out", nonlinearity.
define("kaiming_uniform_", function(x, ...)
    local bound = math.sqrt(3) * kaiming("kaiming_uniform_", x, ...)
    x:uniform_(-bound, bound)
end)
define("kaiming_normal_", function(x, ...) x:normal_(0, kaiming("kaiming_normal_", x, ...)) end)

local function xavier(name, x, gain)
    local fan_in, fan_out = fans(name, x)
    return (gain or 1) * math.sqrt(2 / (fan_in + fan_out))
end

define("xavier_uniform_", function(x, gain)
    local bound = math.sqrt(3) * xavier("xavier_uniform_", x, gain)
    x:uniform_(-bound, bound)
end)
define("xavier_normal_", function(x, gain) x:normal_(0, xavier("xavier_normal_", x, gain)) end)

return init
