-- distributions/gradients.lua: draws of gamma and Dirichlet distributions whose gradients are implicit: with F the
-- distribution function and p its density, a draw z moves by dz/da = -(dF/da) / p (Figurnov, Mohamed, Mnih 2018;
-- Jankowiak, Obermeyer 2018). dF/da comes from differences of igamma, or an integral, in float64.
local tide = ...
local gradients = {}

-- Marsaglia and Tsang's method (2000); below 1 a draw of a + 1 is shrunk.
local function draw_gamma(a)
    local small = a:lt(1)
    local boosted = a:where(small:logical_not(), a + 1)
    local d = boosted - 1 / 3
    local c = 1 / (9 * d):sqrt()
    local result, open = tide.zeros_like(a), tide.ones(a.shape, { dtype = tide.bool, device = a.device })
    repeat
        local x, u = tide.randn_like(a), tide.rand_like(a)
        local v = (1 + c * x):pow(3)
        local positive = v:gt(0)
        local safe = v:where(positive, 1)
        local accepted = u:log():lt(0.5 * x * x + d - d * safe + d * safe:log()) & positive & open
        result = tide.where(accepted, d * safe, result)
        open = open & accepted:logical_not()
    until not open:any():item()
    local shrink = tide.rand_like(a):log() / a
    return tide.where(small, result * shrink:exp(), result)
end

-- d/da of igamma(a, z), by a difference of fourth order; of what is left above z, where that is less.
local function igamma_slope(a, z)
    local h, upper = a * 1e-3, z:gt(a)
    local function at(k)
        return tide.where(upper, -tide.igammac(a + k * h, z), tide.igamma(a + k * h, z))
    end
    return (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * h)
end

--- gamma_gradient(a, z): dz/da of draws z of Gamma(a, 1), in float64.
function gradients.gamma_gradient(a, z)
    local density = ((a - 1) * z:log() - z - a:lgamma()):exp()
    local exact = -igamma_slope(a, z) / density
    local tiny = z / a * (-(z:log()) + a:digamma() + 1 / a) -- of z^a / Gamma(a + 1), where the rest of the series is nothing
    return tide.where(z:lt(1e-8 * a:clamp_max(1)) | exact:isfinite():logical_not(), tiny, exact)
end

local Gamma = tide.autograd.Function("StandardGamma", {
    forward = function(ctx, a)
        local wide = a:detach():double()
        local z = draw_gamma(wide):clamp_min(a.dtype == tide.float64 and 1e-300 or 1e-37)
        ctx:save_for_backward(wide, z)
        return z:to(a.dtype)
    end,
    backward = function(ctx, g)
        local a, z = table.unpack(ctx.saved_tensors)
        return g * gradients.gamma_gradient(a, z):to(g.dtype)
    end,
})

--- gamma(a): draws of Gamma(a, 1).
function gradients.gamma(a)
    return Gamma(a)
end

-- Nodes and weights of the integral from 0 to infinity, by the double exponential rule.
local nodes, weights

local function rule()
    if not nodes then
        local steps, last = 240, 4.2
        local t = tide.linspace(-last, last, steps + 1, { dtype = tide.float64 })
        nodes = (math.pi / 2 * t:sinh()):exp()
        weights = nodes * t:cosh() * (math.pi / 2 * 2 * last / steps)
    end
    return nodes, weights
end

-- The integral behind dF/da of Beta(a, b) below x, over the density at x, where x is no larger than the mean: with
-- t = x e^-s its integrand is smooth and falls.
local function below(x, a, b, of_log)
    local s, w = rule()
    x, a, b = x:unsqueeze(-1), a:unsqueeze(-1), b:unsqueeze(-1)
    local curve = (b - 1):abs() * x / (1 - x):square()
    local scale = 1 / (a - (b - 1) * x / (1 - x)):abs():maximum(curve:sqrt()):clamp_min(1e-30)
    s, w = s * scale, w * scale
    local t = x * (-s):exp()
    local density = (-s * a + (b - 1) * ((-t):log1p() - (-x):log1p())):exp()
    return (w * density * of_log(t, s)):sum(-1) * x:squeeze(-1)
end

--- beta_gradient(x, a, b): dx/da of draws x of Beta(a, b), in float64.
function gradients.beta_gradient(x, a, b)
    local lower = x:le(a / (a + b))
    local c = (a:digamma() - (a + b):digamma()):unsqueeze(-1)
    local near = tide.where(lower, x, 0.5)
    local log_near = near:log():unsqueeze(-1)
    local down = -below(near, a, b, function(_, s) return log_near - s - c end)
    local far = tide.where(lower, 0.5, 1 - x)
    local up = below(far, b, a, function(t) return (-t):log1p() - c end)
    return tide.where(lower, down, up)
end

local Dirichlet = tide.autograd.Function("DrawDirichlet", {
    forward = function(ctx, concentration)
        local wide = concentration:detach():double()
        local z = draw_gamma(wide):clamp_min(1e-300)
        local x = (z / z:sum(-1, { keepdim = true })):clamp(1e-300, 1 - 2 ^ -53)
        ctx:save_for_backward(wide, x)
        return x:to(concentration.dtype)
    end,
    backward = function(ctx, g)
        local a, x = table.unpack(ctx.saved_tensors)
        local wide = g:double()
        local slope = gradients.beta_gradient(x, a, a:sum(-1, { keepdim = true }) - a) / (1 - x)
        return (slope * (wide - (x * wide):sum(-1, { keepdim = true }))):to(g.dtype)
    end,
})

--- dirichlet(concentration): draws, which sum to 1 along the last dim.
function gradients.dirichlet(concentration)
    return Dirichlet(concentration)
end

return gradients
