-- distributions.lua: tide.distributions: distributions whose parameters are tensors, after PyTorch's
-- torch.distributions: log_prob, entropy, sample, rsample (through which gradients flow), kl_divergence.
local tide = ...
local fail, declare = tide._fail, tide._function
local gradients = tide._require "distributions.gradients"
local distributions = {}

local Distribution = { __name = "Distribution" }
Distribution.__index = Distribution
tide._class("Distribution", Distribution)

local LOG_TWO_PI = math.log(2 * math.pi)

local function method(name, parameters, doc, fn)
    Distribution[name] = declare(string.format("%s(Distribution self%s", name, parameters), doc, fn)
end

-- ---- parameters ----

local function as_tensor(name, parameter, value)
    if tide.is_tensor(value) then
        return value:is_floating_point() and value or value:to(tide.get_default_dtype())
    elseif type(value) ~= "number" and type(value) ~= "table" then
        fail("%s: %s: a tensor, a number or a list of numbers expected, got %s", name, parameter, tide._describe(value))
    end
    return tide.tensor(value, { dtype = tide.get_default_dtype() })
end

local function check(name, parameter, holds, wanted)
    if not holds:all():item() then
        fail("%s: %s: %s expected", name, parameter, wanted)
    end
end

-- Tensors of one shape, and of one dtype.
local function together(name, parameters, ...)
    local list = { ... }
    for k, parameter in ipairs(parameters) do
        list[k] = as_tensor(name, parameter, list[k])
    end
    local dtype = list[1].dtype
    for k = 2, #list do
        dtype = tide.promote_types(dtype, list[k].dtype)
    end
    for k = 1, #list do
        list[k] = list[k]:to(dtype)
    end
    return table.unpack(tide.broadcast_tensors(table.unpack(list)))
end

local function sizes_of(x, first, last)
    local sizes = {}
    for dim = first or 1, last or x:dim() do
        sizes[#sizes + 1] = x:size(dim)
    end
    return sizes
end

-- The sample shape that is asked for, before those of batch and event.
local function extended(self, shape)
    local sizes = {}
    for _, list in ipairs { shape, self.batch_shape, self.event_shape } do
        for _, size in ipairs(list) do
            sizes[#sizes + 1] = size
        end
    end
    return sizes
end

-- A new distribution: fields by name, among them `batch`, a tensor whose shape is that of the batch.
local function make(class, fields, batch_shape, event_shape)
    fields.batch_shape, fields.event_shape = batch_shape, event_shape or {}
    if fields.variance and not fields.stddev then
        fields.stddev = fields.variance:sqrt()
    end
    return setmetatable(fields, class)
end

local function class(name)
    local methods = { __name = name }
    methods.__index = methods
    methods.__tostring = function(self)
        local parts = {}
        for _, parameter in ipairs(self.parameters) do
            local x = self[parameter]
            parts[#parts + 1] = string.format("%s: %s", parameter, x:dim() == 0 and tide._number(x:item(), 6) or tostring(x.shape))
        end
        return string.format("%s(%s)", name, table.concat(parts, ", "))
    end
    return setmetatable(methods, { __index = Distribution })
end

local function define(schema, doc, class_of, fn)
    local name = string.match(schema, "^[%w_]+")
    distributions[name] = declare(schema .. " -> Distribution", doc, fn)
    tide._document(class_of, name, schema, doc)
end

-- ---- what all have ----

method("sample", ", int[] shape={}) -> Tensor", "Draws without a gradient, of shape `shape` before those of batch and event.",
    function(self, shape)
        return tide.no_grad(function() return self.draw(self, extended(self, shape), shape):detach() end)
    end)
method("rsample", ", int[] shape={}) -> Tensor", "Draws whose gradients by the parameters flow through them.", function(self, shape)
    if not self.has_rsample then
        fail("rsample: draws of %s have no gradients: use sample and log_prob", getmetatable(self).__name)
    end
    return self.draw(self, extended(self, shape), shape)
end)
method("log_prob", ", any value) -> Tensor", "The logarithm of the density, or of the probability, at a value.", function(self, value)
    local name = getmetatable(self).__name
    if not tide.is_tensor(value) then
        value = self.counts and tide.tensor(value) or as_tensor(name .. ":log_prob", "value", value)
    end
    return self.log_density(self, value)
end)
method("entropy", ") -> Tensor", "The entropy, in nats.", function(self) return self.entropy_of(self) end)
method("perplexity", ") -> Tensor", "exp of the entropy.", function(self) return self.entropy_of(self):exp() end)
method("cdf", ", any value) -> Tensor", "The probability of at most a value, where there is a formula.", function(self, value)
    if not self.cdf_of then
        fail("cdf: %s has no formula for it", getmetatable(self).__name)
    end
    return self.cdf_of(self, as_tensor("cdf", "value", value))
end)
method("icdf", ", any value) -> Tensor", "The value below which a draw lies with that probability, where there is a formula.",
    function(self, value)
        if not self.icdf_of then
            fail("icdf: %s has no formula for it", getmetatable(self).__name)
        end
        return self.icdf_of(self, as_tensor("icdf", "value", value))
    end)
method("enumerate_support", ") -> Tensor", "All values of a discrete distribution, along a first dim.", function(self)
    if not self.support_of then
        fail("enumerate_support: %s has no finite support", getmetatable(self).__name)
    end
    return self.support_of(self)
end)

-- Minus infinity outside the support.
local function within(holds, density)
    return tide.where(holds, density, -math.huge)
end

-- ---- normal and what is made of it ----

local Normal = class("Normal")
Normal.parameters, Normal.has_rsample = { "loc", "scale" }, true
function Normal:draw(sizes)
    return self.loc + self.scale * tide.randn(sizes, { dtype = self.loc.dtype, device = self.loc.device })
end
function Normal:log_density(x)
    return -((x - self.loc) / self.scale):square() / 2 - self.scale:log() - LOG_TWO_PI / 2
end
function Normal:entropy_of() return 0.5 + LOG_TWO_PI / 2 + self.scale:log() end
function Normal:cdf_of(x) return 0.5 * (1 + ((x - self.loc) / (self.scale * math.sqrt(2))):erf()) end
function Normal:icdf_of(p) return self.loc + self.scale * math.sqrt(2) * (2 * p - 1):erfinv() end
define("Normal(any loc, any scale)", "The normal distribution of a mean and a standard deviation.", Normal, function(loc, scale)
    loc, scale = together("Normal", { "loc", "scale" }, loc, scale)
    check("Normal", "scale", scale:gt(0), "positive numbers")
    return make(Normal, { loc = loc, scale = scale, mean = loc, mode = loc, stddev = scale, variance = scale:square() }, sizes_of(loc))
end)

local LogNormal = class("LogNormal")
LogNormal.parameters, LogNormal.has_rsample = { "loc", "scale" }, true
function LogNormal:draw(sizes) return Normal.draw(self, sizes):exp() end
function LogNormal:log_density(x) return within(x:gt(0), Normal.log_density(self, x:log()) - x:log()) end
function LogNormal:entropy_of() return Normal.entropy_of(self) + self.loc end
function LogNormal:cdf_of(x) return Normal.cdf_of(self, x:log()) end
function LogNormal:icdf_of(p) return Normal.icdf_of(self, p):exp() end
define("LogNormal(any loc, any scale)", "exp of a normal distribution.", LogNormal, function(loc, scale)
    loc, scale = together("LogNormal", { "loc", "scale" }, loc, scale)
    check("LogNormal", "scale", scale:gt(0), "positive numbers")
    local square = scale:square()
    return make(LogNormal, { loc = loc, scale = scale, mean = (loc + square / 2):exp(), mode = (loc - square):exp(),
        variance = square:expm1() * (2 * loc + square):exp() }, sizes_of(loc))
end)

local MultivariateNormal = class("MultivariateNormal")
MultivariateNormal.parameters, MultivariateNormal.has_rsample = { "loc", "scale_tril" }, true
local function half_log_det(factor) return factor:diagonal({ dim1 = -2, dim2 = -1 }):log():sum(-1) end
-- |L^-1 d|^2 for the last dim of d.
local function mahalanobis(factor, d)
    local sizes = sizes_of(d)
    sizes[#sizes + 1] = d:size(-1)
    local solved = tide.linalg.solve_triangular(factor:expand(sizes), d:unsqueeze(-1), { upper = false })
    return solved:squeeze(-1):square():sum(-1)
end
function MultivariateNormal:draw(sizes)
    local noise = tide.randn(sizes, { dtype = self.loc.dtype, device = self.loc.device })
    return self.loc + self.scale_tril:matmul(noise:unsqueeze(-1)):squeeze(-1)
end
function MultivariateNormal:log_density(x)
    local d = x - self.loc
    return -(mahalanobis(self.scale_tril, d) + d:size(-1) * LOG_TWO_PI) / 2 - half_log_det(self.scale_tril)
end
function MultivariateNormal:entropy_of()
    return self.loc:size(-1) / 2 * (1 + LOG_TWO_PI) + half_log_det(self.scale_tril)
end
define("MultivariateNormal(any loc, any covariance_matrix=nil, *, any precision_matrix=nil, any scale_tril=nil)",
    "The normal distribution of vectors: a mean, and a covariance, its inverse or its Cholesky factor.", MultivariateNormal,
    function(loc, covariance, precision, factor)
        local given = (covariance ~= nil and 1 or 0) + (precision ~= nil and 1 or 0) + (factor ~= nil and 1 or 0)
        if given ~= 1 then
            fail("MultivariateNormal: one of covariance_matrix, precision_matrix and scale_tril expected, got %d", given)
        end
        loc = as_tensor("MultivariateNormal", "loc", loc)
        if loc:dim() < 1 then
            fail("MultivariateNormal: loc: a vector expected, got a number")
        end
        if factor ~= nil then
            factor = as_tensor("MultivariateNormal", "scale_tril", factor)
        elseif covariance ~= nil then
            factor = tide.linalg.cholesky(as_tensor("MultivariateNormal", "covariance_matrix", covariance))
        else
            factor = tide.linalg.cholesky(tide.linalg.inv(as_tensor("MultivariateNormal", "precision_matrix", precision)))
        end
        local n = loc:size(-1)
        if factor:dim() < 2 or factor:size(-1) ~= n or factor:size(-2) ~= n then
            fail("MultivariateNormal: a matrix of %d x %d expected for a mean of shape %s, got shape %s", n, n, tostring(loc.shape),
                tostring(factor.shape))
        end
        local batch = sizes_of(tide.broadcast_tensors(loc:select(-1, 1), factor:select(-1, 1):select(-1, 1))[1])
        local mean, matrix = { table.unpack(batch) }, { table.unpack(batch) }
        mean[#mean + 1], matrix[#matrix + 1], matrix[#matrix + 2] = n, n, n
        loc, factor = loc:expand(mean), factor:expand(matrix)
        return make(MultivariateNormal, { loc = loc, scale_tril = factor, mean = loc, mode = loc,
            covariance_matrix = factor:matmul(factor:transpose(-2, -1)), variance = factor:square():sum(-1) }, batch, { n })
    end)

-- ---- on intervals ----

local Uniform = class("Uniform")
Uniform.parameters, Uniform.has_rsample = { "low", "high" }, true
function Uniform:draw(sizes)
    return self.low + (self.high - self.low) * tide.rand(sizes, { dtype = self.low.dtype, device = self.low.device })
end
function Uniform:log_density(x)
    return within(x:ge(self.low) & x:lt(self.high), -(self.high - self.low):log() + 0 * x)
end
function Uniform:entropy_of() return (self.high - self.low):log() end
function Uniform:cdf_of(x) return ((x - self.low) / (self.high - self.low)):clamp(0, 1) end
function Uniform:icdf_of(p) return self.low + p * (self.high - self.low) end
define("Uniform(any low, any high)", "Equally likely from low on, below high.", Uniform, function(low, high)
    low, high = together("Uniform", { "low", "high" }, low, high)
    check("Uniform", "high", high:gt(low), "numbers above low")
    return make(Uniform, { low = low, high = high, mean = (low + high) / 2, variance = (high - low):square() / 12 }, sizes_of(low))
end)

local function log_beta(a, b) return a:lgamma() + b:lgamma() - (a + b):lgamma() end

local Beta = class("Beta")
Beta.parameters, Beta.has_rsample = { "concentration1", "concentration0" }, true
function Beta:draw(sizes)
    local pair = tide.stack({ self.concentration1:expand(sizes), self.concentration0:expand(sizes) }, -1)
    return gradients.dirichlet(pair):select(-1, 1)
end
function Beta:log_density(x)
    local a, b = self.concentration1, self.concentration0
    return within(x:ge(0) & x:le(1), (a - 1):xlogy(x) + (b - 1):xlogy(1 - x) - log_beta(a, b))
end
function Beta:entropy_of()
    local a, b = self.concentration1, self.concentration0
    return log_beta(a, b) - (a - 1) * a:digamma() - (b - 1) * b:digamma() + (a + b - 2) * (a + b):digamma()
end
define("Beta(any concentration1, any concentration0)", "The beta distribution between 0 and 1.", Beta, function(a, b)
    a, b = together("Beta", { "concentration1", "concentration0" }, a, b)
    check("Beta", "concentration1", a:gt(0), "positive numbers")
    check("Beta", "concentration0", b:gt(0), "positive numbers")
    local total = a + b
    return make(Beta, { concentration1 = a, concentration0 = b, mean = a / total, mode = (a - 1) / (total - 2),
        variance = a * b / (total:square() * (total + 1)) }, sizes_of(a))
end)

-- ---- on positive numbers ----

local Gamma = class("Gamma")
Gamma.parameters, Gamma.has_rsample = { "concentration", "rate" }, true
function Gamma:draw(sizes)
    return gradients.gamma(self.concentration:expand(sizes)) / self.rate
end
function Gamma:log_density(x)
    local a, rate = self.concentration, self.rate
    return within(x:ge(0), a:xlogy(rate) + (a - 1):xlogy(x) - rate * x - a:lgamma())
end
function Gamma:entropy_of()
    local a = self.concentration
    return a - self.rate:log() + a:lgamma() + (1 - a) * a:digamma()
end
function Gamma:cdf_of(x) return tide.igamma(self.concentration, self.rate * x) end
define("Gamma(any concentration, any rate)", "The gamma distribution of a shape and a rate.", Gamma, function(a, rate)
    a, rate = together("Gamma", { "concentration", "rate" }, a, rate)
    check("Gamma", "concentration", a:gt(0), "positive numbers")
    check("Gamma", "rate", rate:gt(0), "positive numbers")
    return make(Gamma, { concentration = a, rate = rate, mean = a / rate, mode = ((a - 1) / rate):clamp_min(0), variance = a / rate:square() },
        sizes_of(a))
end)

local Exponential = class("Exponential")
Exponential.parameters, Exponential.has_rsample = { "rate" }, true
function Exponential:draw(sizes)
    return tide.empty(sizes, { dtype = self.rate.dtype, device = self.rate.device }):exponential_() / self.rate
end
function Exponential:log_density(x) return within(x:ge(0), self.rate:log() - self.rate * x) end
function Exponential:entropy_of() return 1 - self.rate:log() end
function Exponential:cdf_of(x) return -(-self.rate * x):expm1() end
function Exponential:icdf_of(p) return -(-p):log1p() / self.rate end
define("Exponential(any rate)", "The exponential distribution of a rate.", Exponential, function(rate)
    rate = as_tensor("Exponential", "rate", rate)
    check("Exponential", "rate", rate:gt(0), "positive numbers")
    return make(Exponential, { rate = rate, mean = 1 / rate, mode = tide.zeros_like(rate), variance = 1 / rate:square() }, sizes_of(rate))
end)

local Laplace = class("Laplace")
Laplace.parameters, Laplace.has_rsample = { "loc", "scale" }, true
function Laplace:draw(sizes)
    local u = tide.rand(sizes, { dtype = self.loc.dtype, device = self.loc.device }) - 0.5
    return self.loc - self.scale * u:sign() * (-2 * u:abs()):clamp_min(-1 + 2 ^ -24):log1p()
end
function Laplace:log_density(x) return -(2 * self.scale):log() - (x - self.loc):abs() / self.scale end
function Laplace:entropy_of() return 1 + (2 * self.scale):log() end
function Laplace:cdf_of(x)
    local d = x - self.loc
    return 0.5 - 0.5 * d:sign() * (-d:abs() / self.scale):expm1()
end
function Laplace:icdf_of(p)
    local d = p - 0.5
    return self.loc - self.scale * d:sign() * (-2 * d:abs()):log1p()
end
define("Laplace(any loc, any scale)", "Laplace's distribution of a place and a scale.", Laplace, function(loc, scale)
    loc, scale = together("Laplace", { "loc", "scale" }, loc, scale)
    check("Laplace", "scale", scale:gt(0), "positive numbers")
    return make(Laplace, { loc = loc, scale = scale, mean = loc, mode = loc, stddev = scale * math.sqrt(2), variance = 2 * scale:square() },
        sizes_of(loc))
end)

-- ---- on simplices ----

local Dirichlet = class("Dirichlet")
Dirichlet.parameters, Dirichlet.has_rsample = { "concentration" }, true
function Dirichlet:draw(sizes) return gradients.dirichlet(self.concentration:expand(sizes)) end
function Dirichlet:log_density(x)
    local a = self.concentration
    return (a - 1):xlogy(x):sum(-1) + a:sum(-1):lgamma() - a:lgamma():sum(-1)
end
function Dirichlet:entropy_of()
    local a = self.concentration
    local total, n = a:sum(-1), a:size(-1)
    return a:lgamma():sum(-1) - total:lgamma() - (n - total) * total:digamma() - ((a - 1) * a:digamma()):sum(-1)
end
define("Dirichlet(any concentration)", "Dirichlet's distribution of vectors that sum to 1.", Dirichlet, function(a)
    a = as_tensor("Dirichlet", "concentration", a)
    if a:dim() < 1 then
        fail("Dirichlet: concentration: a vector expected, got a number")
    end
    check("Dirichlet", "concentration", a:gt(0), "positive numbers")
    local total = a:sum(-1, { keepdim = true })
    local mode = (a - 1):clamp_min(0)
    return make(Dirichlet, { concentration = a, mean = a / total, mode = mode / mode:sum(-1, { keepdim = true }),
        variance = a * (total - a) / (total:square() * (total + 1)) }, sizes_of(a, 1, a:dim() - 1), { a:size(-1) })
end)

-- ---- discrete ones ----

-- Probabilities and their logarithms from whichever are given.
local function one_of(name, probs, logits)
    if (probs == nil) == (logits == nil) then
        fail("%s: either probs or logits expected, got %s", name, probs == nil and "neither" or "both")
    end
    return as_tensor(name, probs ~= nil and "probs" or "logits", probs ~= nil and probs or logits)
end

local function inner(x)
    local eps = tide.finfo(x.dtype).eps
    return x:clamp(eps, 1 - eps)
end

local Bernoulli = class("Bernoulli")
Bernoulli.parameters = { "probs" }
function Bernoulli:draw(sizes) return tide.bernoulli(self.probs:expand(sizes)) end
function Bernoulli:log_density(x)
    x = x:to(self.logits.dtype)
    return within(x:eq(0) | x:eq(1), x * self.logits - tide.nn.functional.softplus(self.logits))
end
function Bernoulli:entropy_of()
    return tide.nn.functional.softplus(self.logits) - self.probs * self.logits
end
function Bernoulli:support_of()
    local sizes, ones = { 2 }, { 2 }
    for k, size in ipairs(self.batch_shape) do
        sizes[k + 1], ones[k + 1] = size, 1
    end
    return tide.arange(0, 2, { dtype = self.probs.dtype, device = self.probs.device }):reshape(ones):expand(sizes)
end
define("Bernoulli(any probs=nil, any logits=nil)", "0 and 1: 1 with a probability, or logits = log(p / (1 - p)).", Bernoulli,
    function(probs, logits)
        local given = one_of("Bernoulli", probs, logits)
        if probs ~= nil then
            check("Bernoulli", "probs", given:ge(0) & given:le(1), "numbers from 0 to 1")
            probs, logits = given, inner(given):logit()
        else
            probs, logits = given:sigmoid(), given
        end
        return make(Bernoulli, { probs = probs, logits = logits, mean = probs, mode = probs:gt(0.5):to(probs.dtype),
            variance = probs * (1 - probs) }, sizes_of(probs))
    end)

local Categorical = class("Categorical")
Categorical.parameters, Categorical.counts = { "probs" }, true
function Categorical:draw(sizes, shape)
    local n = 1
    for _, size in ipairs(shape) do
        n = n * size
    end
    local rows = self.probs:reshape(-1, self.probs:size(-1))
    if n == 0 or rows:size(1) == 0 then
        return tide.empty(sizes, { dtype = tide.int64, device = self.probs.device })
    end
    return tide.multinomial(rows, n, true):t():reshape(sizes)
end
function Categorical:log_density(x)
    local sizes = sizes_of(tide.broadcast_tensors(x, self.logits:select(-1, 1))[1])
    local all = { table.unpack(sizes) }
    all[#all + 1] = self.logits:size(-1)
    return self.logits:expand(all):gather(-1, x:long():expand(sizes):unsqueeze(-1)):squeeze(-1)
end
function Categorical:entropy_of()
    return -(self.probs * self.logits:clamp_min(tide.finfo(self.logits.dtype).min)):sum(-1)
end
function Categorical:support_of()
    local n = self.probs:size(-1)
    local sizes, ones = { n }, { n }
    for k, size in ipairs(self.batch_shape) do
        sizes[k + 1], ones[k + 1] = size, 1
    end
    return tide.arange(1, n + 1, { device = self.probs.device }):reshape(ones):expand(sizes)
end
define("Categorical(any probs=nil, any logits=nil)",
    "Classes from 1 to K by probabilities along the last dim (which are divided by their sum), or by logits.", Categorical,
    function(probs, logits)
        local given = one_of("Categorical", probs, logits)
        if given:dim() < 1 then
            fail("Categorical: probabilities of classes along the last dim expected, got a number")
        end
        if probs ~= nil then
            check("Categorical", "probs", given:ge(0), "numbers from 0 on")
            probs = given / given:sum(-1, { keepdim = true })
            logits = inner(probs):log()
        else
            logits = given - given:logsumexp(-1, { keepdim = true })
            probs = logits:exp()
        end
        local none = tide.full(sizes_of(probs, 1, probs:dim() - 1), 0 / 0, { dtype = probs.dtype, device = probs.device })
        return make(Categorical, { probs = probs, logits = logits, mean = none, variance = none, mode = probs:argmax(-1) },
            sizes_of(probs, 1, probs:dim() - 1))
    end)

local Poisson = class("Poisson")
Poisson.parameters = { "rate" }
function Poisson:draw(sizes) return tide.poisson(self.rate:expand(sizes):contiguous()) end
function Poisson:log_density(x) return x:to(self.rate.dtype):xlogy(self.rate) - self.rate - (x + 1.0):lgamma() end
function Poisson:entropy_of() fail("entropy: Poisson has no formula for it") end
define("Poisson(any rate)", "Counts of a rate.", Poisson, function(rate)
    rate = as_tensor("Poisson", "rate", rate)
    check("Poisson", "rate", rate:ge(0), "numbers from 0 on")
    return make(Poisson, { rate = rate, mean = rate, mode = rate:floor(), variance = rate }, sizes_of(rate))
end)

-- ---- dims of the batch as parts of the event ----

local Independent = class("Independent")
Independent.parameters = {}
Independent.__tostring = function(self) return string.format("Independent(%s, %d)", tostring(self.base), self.reinterpreted_batch_ndims) end
local function sum_last(x, n)
    for _ = 1, n do
        x = x:sum(-1)
    end
    return x
end
function Independent:draw(_, shape) return self.base.draw(self.base, extended(self.base, shape), shape) end
function Independent:log_density(x) return sum_last(self.base:log_prob(x), self.reinterpreted_batch_ndims) end
function Independent:entropy_of() return sum_last(self.base:entropy(), self.reinterpreted_batch_ndims) end
define("Independent(Distribution base, int(0..) reinterpreted_batch_ndims)",
    "A distribution whose last batch dims belong to the event: log_prob is summed over them.", Independent, function(base, n)
        local batch, event, dims = {}, {}, #base.batch_shape
        if n > dims then
            fail("Independent: %d batch dims are there, got %d", dims, n)
        end
        for k, size in ipairs(base.batch_shape) do
            local list = k <= dims - n and batch or event
            list[#list + 1] = size
        end
        for _, size in ipairs(base.event_shape) do
            event[#event + 1] = size
        end
        return make(Independent, { base = base, reinterpreted_batch_ndims = n, has_rsample = base.has_rsample or false, counts = base.counts,
            mean = base.mean, mode = base.mode, variance = base.variance, stddev = base.stddev }, batch, event)
    end)

-- ---- divergences ----

local divergences = {} -- by the two classes

local function divergence(p, q, fn)
    divergences[p] = divergences[p] or {}
    divergences[p][q] = fn
end

divergence(Normal, Normal, function(p, q)
    local ratio = (p.scale / q.scale):square()
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale):square() - 1 - ratio:log())
end)
divergence(LogNormal, LogNormal, divergences[Normal][Normal])
divergence(MultivariateNormal, MultivariateNormal, function(p, q)
    local solved = tide.linalg.solve_triangular(q.scale_tril, p.scale_tril, { upper = false })
    local trace = solved:square():sum({ -2, -1 })
    return half_log_det(q.scale_tril) - half_log_det(p.scale_tril)
        + 0.5 * (trace + mahalanobis(q.scale_tril, q.loc - p.loc) - p.loc:size(-1))
end)
divergence(Uniform, Uniform, function(p, q)
    return tide.where(q.low:gt(p.low) | q.high:lt(p.high), math.huge, ((q.high - q.low) / (p.high - p.low)):log())
end)
divergence(Exponential, Exponential, function(p, q)
    local ratio = q.rate / p.rate
    return ratio - 1 - ratio:log()
end)
divergence(Laplace, Laplace, function(p, q)
    local ratio, d = p.scale / q.scale, (p.loc - q.loc):abs()
    return -ratio:log() + d / q.scale + ratio * (-d / p.scale):exp() - 1
end)
divergence(Gamma, Gamma, function(p, q)
    local a, b = p.concentration, q.concentration
    return b * (p.rate / q.rate):log() + b:lgamma() - a:lgamma() + (a - b) * a:digamma() + (q.rate - p.rate) * (a / p.rate)
end)
divergence(Beta, Beta, function(p, q)
    local a, b, c, d = p.concentration1, p.concentration0, q.concentration1, q.concentration0
    return log_beta(c, d) - log_beta(a, b) + (a - c) * a:digamma() + (b - d) * b:digamma() + (c + d - a - b) * (a + b):digamma()
end)
divergence(Dirichlet, Dirichlet, function(p, q)
    local a, b = p.concentration, q.concentration
    local total = a:sum(-1)
    return total:lgamma() - b:sum(-1):lgamma() - (a:lgamma() - b:lgamma()):sum(-1)
        + ((a - b) * (a:digamma() - total:digamma():unsqueeze(-1))):sum(-1)
end)
divergence(Bernoulli, Bernoulli, function(p, q)
    local function part(a, b) -- 0 log 0 is 0, its gradient too
        local none, never = a:eq(0), b:eq(0)
        local ratio = tide.where(none, 1, a) / tide.where(never, 1, b)
        return tide.where(none, 0, tide.where(never, math.huge, a * ratio:log()))
    end
    return part(p.probs, q.probs) + part(1 - p.probs, 1 - q.probs)
end)
divergence(Categorical, Categorical, function(p, q)
    local terms = p.probs * (p.logits - q.logits)
    terms = tide.where(q.probs:eq(0), math.huge, terms)
    return tide.where(p.probs:eq(0), 0, terms):sum(-1)
end)
divergence(Poisson, Poisson, function(p, q) return p.rate * (p.rate:log() - q.rate:log()) - (p.rate - q.rate) end)
divergence(Independent, Independent, function(p, q)
    if p.reinterpreted_batch_ndims ~= q.reinterpreted_batch_ndims then
        fail("kl_divergence: %s and %s differ in their events", tostring(p), tostring(q))
    end
    return sum_last(distributions.kl_divergence(p.base, q.base), p.reinterpreted_batch_ndims)
end)

distributions.kl_divergence = declare("kl_divergence(Distribution p, Distribution q) -> Tensor",
    "Kullback and Leibler's divergence of q from p, of two distributions of one kind.", function(p, q)
        local of_p = divergences[getmetatable(p)]
        local fn = of_p and of_p[getmetatable(q)]
        if not fn then
            fail("kl_divergence: no formula for %s and %s", getmetatable(p).__name, getmetatable(q).__name)
        end
        return fn(p, q)
    end)

tide._document(distributions, "distributions", "tide.distributions", "Distributions of tensors: Normal(0, 1):log_prob(x), sample, "
    .. "rsample, entropy, cdf; kl_divergence(p, q).")

return distributions
