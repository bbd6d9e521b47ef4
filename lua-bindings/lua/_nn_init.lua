-- _nn_init.lua: tide.nn.init: values that parameters start with. Each writes a tensor in place, without
-- recording, and returns it.
local tide = ...
local fail = tide._fail
local init = {}

-- A function (Tensor x, PARAMETERS) that fills x.
local function define(name, parameters, doc, fill)
    init[name] = tide._function(("%s(Tensor x%s) -> Tensor"):format(name, parameters), doc, function(x, ...)
        local _ <close> = tide.no_grad()
        fill(x, ...)
        return x
    end)
end

define("uniform_", ", number a=0, number b=1", "Draws from a uniform distribution.",
    function(x, a, b) x:uniform_(a, b) end)
define("normal_", ", number mean=0, number std=1", "Draws from a normal distribution.",
    function(x, mean, std) x:normal_(mean, std) end)
define("constant_", ", number value", "One value everywhere.", function(x, value) x:fill_(value) end)
define("zeros_", "", "Zeros.", function(x) x:zero_() end)
define("ones_", "", "Ones.", function(x) x:fill_(1) end)

-- Inputs and outputs of a unit: sizes of dims 2 and 1, times the elements of a kernel.
local function fans(name, x)
    local sizes = x.shape
    if #sizes < 2 then
        fail("%s: needs a tensor of at least 2 dims, got shape %s", name, tostring(sizes))
    end
    local field = 1
    for d = 3, #sizes do
        field = field * sizes[d]
    end
    return sizes[2] * field, sizes[1] * field
end

local function leaky_gain(slope) return math.sqrt(2 / (1 + slope ^ 2)) end

local gains = {
    relu = function() return math.sqrt(2) end,
    leaky_relu = function(param) return leaky_gain(param or 0.01) end,
    tanh = function() return 5 / 3 end,
    linear = function() return 1 end,
    sigmoid = function() return 1 end,
    conv2d = function() return 1 end,
}
local nonlinearity = '"relu"|"leaky_relu"|"tanh"|"linear"|"sigmoid"|"conv2d" nonlinearity'

init.calculate_gain = tide._function("calculate_gain(" .. nonlinearity .. ", number? param=nil) -> number",
    "The factor by which a nonlinearity shrinks the standard deviation.",
    function(name, param) return gains[name](param) end)

local kaiming_parameters = ', number a=0, "fan_in"|"fan_out" mode="fan_in", ' .. nonlinearity .. '="leaky_relu"'

local function kaiming(name, x, a, mode, activation)
    local fan_in, fan_out = fans(name, x)
    return gains[activation](a) / math.sqrt(mode == "fan_out" and fan_out or fan_in)
end

define("kaiming_uniform_", kaiming_parameters, "He's uniform distribution; a is the slope of leaky_relu.",
    function(x, ...)
        local bound = math.sqrt(3) * kaiming("kaiming_uniform_", x, ...)
        x:uniform_(-bound, bound)
    end)
define("kaiming_normal_", kaiming_parameters, "He's normal distribution; a is the slope of leaky_relu.",
    function(x, ...) x:normal_(0, kaiming("kaiming_normal_", x, ...)) end)

local function xavier(name, x, gain)
    local fan_in, fan_out = fans(name, x)
    return gain * math.sqrt(2 / (fan_in + fan_out))
end

define("xavier_uniform_", ", number gain=1", "Glorot's uniform distribution.", function(x, gain)
    local bound = math.sqrt(3) * xavier("xavier_uniform_", x, gain)
    x:uniform_(-bound, bound)
end)
define("xavier_normal_", ", number gain=1", "Glorot's normal distribution.",
    function(x, gain) x:normal_(0, xavier("xavier_normal_", x, gain)) end)

return init
