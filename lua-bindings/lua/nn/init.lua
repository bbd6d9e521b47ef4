-- nn/init.lua: tide.nn.init: values that parameters start with. Each writes a tensor in place, without
-- recording, and returns it.
local tide = ...
local fail = tide._fail
local init = {}

-- A function (Tensor x, PARAMETERS) that fills x; what draws takes a generator last.
local function define(name, parameters, doc, fill)
    init[name] = tide._function(string.format("%s(Tensor x%s) -> Tensor", name, parameters), doc, function(x, ...)
        local _ <close> = tide.no_grad()
        fill(x, ...)
        return x
    end)
end

local DRAWS = ", *, generator? generator=nil"

define("uniform_", ", number a=0, number b=1" .. DRAWS, "Draws from a uniform distribution.",
    function(x, a, b, generator) x:uniform_(a, b, { generator = generator }) end)
define("normal_", ", number mean=0, number std=1" .. DRAWS, "Draws from a normal distribution.",
    function(x, mean, std, generator) x:normal_(mean, std, { generator = generator }) end)
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
    selu = function() return 3 / 4 end,
}
for n = 1, 3 do
    gains[string.format("conv%dd", n)], gains[string.format("conv_transpose%dd", n)] = gains.linear, gains.linear
end
local nonlinearity = '"relu"|"leaky_relu"|"tanh"|"linear"|"sigmoid"|"selu"|"conv1d"|"conv2d"|"conv3d"|'
    .. '"conv_transpose1d"|"conv_transpose2d"|"conv_transpose3d" nonlinearity'

init.calculate_gain = tide._function("calculate_gain(" .. nonlinearity .. ", number? param=nil) -> number",
    "The factor by which a nonlinearity shrinks the standard deviation.",
    function(name, param) return gains[name](param) end)

local kaiming_parameters = ', number a=0, "fan_in"|"fan_out" mode="fan_in", ' .. nonlinearity .. '="leaky_relu"' .. DRAWS

local function kaiming(name, x, a, mode, activation)
    local fan_in, fan_out = fans(name, x)
    return gains[activation](a) / math.sqrt(mode == "fan_out" and fan_out or fan_in)
end

define("kaiming_uniform_", kaiming_parameters, "He's uniform distribution; a is the slope of leaky_relu.",
    function(x, a, mode, activation, generator)
        local bound = math.sqrt(3) * kaiming("kaiming_uniform_", x, a, mode, activation)
        x:uniform_(-bound, bound, { generator = generator })
    end)
define("kaiming_normal_", kaiming_parameters, "He's normal distribution; a is the slope of leaky_relu.",
    function(x, a, mode, activation, generator)
        x:normal_(0, kaiming("kaiming_normal_", x, a, mode, activation), { generator = generator })
    end)

local function xavier(name, x, gain)
    local fan_in, fan_out = fans(name, x)
    return gain * math.sqrt(2 / (fan_in + fan_out))
end

define("xavier_uniform_", ", number gain=1" .. DRAWS, "Glorot's uniform distribution.", function(x, gain, generator)
    local bound = math.sqrt(3) * xavier("xavier_uniform_", x, gain)
    x:uniform_(-bound, bound, { generator = generator })
end)
define("xavier_normal_", ", number gain=1" .. DRAWS, "Glorot's normal distribution.",
    function(x, gain, generator) x:normal_(0, xavier("xavier_normal_", x, gain), { generator = generator }) end)

-- What lies outside is drawn again: through the inverse of the distribution function, which no bounds make slow.
define("trunc_normal_", ", number mean=0, number std=1, number a=-2, number b=2" .. DRAWS,
    "Draws from a normal distribution that lie between a and b.", function(x, mean, std, a, b, generator)
        if std <= 0 or a > b then
            fail("trunc_normal_: expected std > 0 and a <= b, got std %s, a %s and b %s", tide._number(std, 6),
                tide._number(a, 6), tide._number(b, 6))
        end
        local ends = tide.special.ndtr(tide.tensor({ (a - mean) / std, (b - mean) / std }, { dtype = tide.float64 }))
        local draws = tide.empty(x.shape, { dtype = tide.float64, device = x.device })
        draws:uniform_(ends[1]:item(), ends[2]:item(), { generator = generator })
        x:copy_((tide.special.ndtri(draws) * std + mean):clamp(a, b))
    end)

-- ---- matrices ----

local function check_dims(name, x, least, most)
    if x:dim() < least or x:dim() > most then
        fail("%s: needs a tensor of %s dims, got shape %s", name,
            least == most and tostring(least) or most == math.huge and "at least " .. least
                or string.format("%d to %d", least, most), tostring(x.shape))
    end
end

define("eye_", "", "Ones where the places along both dims are the same.", function(x)
    check_dims("eye_", x, 2, 2)
    x:copy_(tide.eye(x.shape[1], x.shape[2], { dtype = x.dtype, device = x.device }))
end)

define("dirac_", ", int(1..) groups=1", "Kernels of a convolution that hands its channels on, as far as they go.",
    function(x, groups)
        check_dims("dirac_", x, 3, 5)
        local sizes = { table.unpack(x.shape) }
        if sizes[1] % groups ~= 0 then
            fail("dirac_: %d channels can't be divided into %d groups", sizes[1], groups)
        end
        local rows = sizes[1] // groups
        x:zero_()
        if x:numel() == 0 then
            return
        end
        local middle = x
        for d = 3, #sizes do
            middle = middle:select(3, sizes[d] // 2 + 1)
        end
        middle:copy_(tide.eye(rows, sizes[2], { dtype = x.dtype, device = x.device }):tile(groups, 1))
    end)

define("orthogonal_", ", number gain=1" .. DRAWS, "A matrix whose rows or columns are orthogonal, over dim 1 and the others.",
    function(x, gain, generator)
        check_dims("orthogonal_", x, 2, math.huge)
        if x:numel() == 0 then
            return
        end
        local rows = x.shape[1]
        local columns = x:numel() // rows
        local draws = tide.empty(rows, columns, { dtype = x.dtype, device = x.device })
        draws:normal_(0, 1, { generator = generator })
        local q, r = tide.linalg.qr(rows < columns and draws:t() or draws)
        q = q * r:diagonal():sign() -- so that all directions are alike
        x:copy_((rows < columns and q:t() or q):reshape(x.shape) * gain)
    end)

define("sparse_", ", number(0..1) sparsity, number std=0.01" .. DRAWS,
    "Draws from a normal distribution, with that share of each column zeros.", function(x, sparsity, std, generator)
        check_dims("sparse_", x, 2, 2)
        x:normal_(0, std, { generator = generator })
        local rows, columns = x.shape[1], x.shape[2]
        local order = tide.empty(rows, columns, { dtype = tide.float64, device = x.device })
        order:uniform_(0, 1, { generator = generator })
        local zeros = order:argsort(1):narrow(1, 1, math.ceil(sparsity * rows))
        x:scatter_(1, zeros, 0)
    end)

return init
