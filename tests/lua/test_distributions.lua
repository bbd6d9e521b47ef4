-- test_distributions.lua: values are PyTorch's, gradients of draws mpmath's (tests/golden/distribution_values.py).
local t = require "harness"
local here = arg[0]:match("^(.*)/") or "."
local golden = dofile(here .. "/../golden/data/distributions.lua")
local D = tide.distributions
local wide = { dtype = tide.float64 }

local function tensor(value) return tide.tensor(value, wide) end

local function build(name, arguments, change)
    local list = {}
    for key, value in pairs(arguments) do
        list[key] = change and change(tensor(value)) or tensor(value)
    end
    return D[name](list)
end

local function near(got, want, what, tolerance)
    want = tensor(want)
    t.eq(tostring(got.shape), tostring(want.shape), what .. ": shape")
    t.is_true(tide.allclose(got:double(), want, { rtol = tolerance or 1e-10, atol = 1e-12, equal_nan = true }),
        what .. ": got " .. tostring(got) .. ", expected " .. tostring(want))
end

t.test("densities_entropies_moments_and_quantiles_are_pytorch_s", function()
    for _, row in ipairs(golden.rows) do
        local d = build(row.name, row.arguments)
        near(d:log_prob(row.name == "Categorical" and tide.tensor(row.values) or tensor(row.values)), row.log_prob, row.name .. ".log_prob")
        for _, key in ipairs { "mean", "variance" } do
            if row[key] then near(d[key], row[key], row.name .. "." .. key) end
        end
        if row.entropy then near(d:entropy(), row.entropy, row.name .. ".entropy") end
        if row.cdf then near(d:cdf(tensor(row.values)), row.cdf, row.name .. ".cdf", 1e-9) end
        if row.icdf then near(d:icdf(tensor { 0.3 }), row.icdf, row.name .. ".icdf", 1e-9) end
    end
end)

t.test("divergences_are_pytorch_s", function()
    for _, row in ipairs(golden.pairs) do
        near(D.kl_divergence(build(row.name, row.p), build(row.name, row.q)), row.kl, row.name)
    end
    t.error_has(function() D.kl_divergence(D.Normal(0, 1), D.Gamma(1, 1)) end, "kl_divergence: no formula for Normal and Gamma")
end)

t.test("gradients_of_draws_are_those_of_the_distribution_functions", function()
    for _, row in ipairs(golden.gamma) do
        local got = tide._require("distributions.gradients").gamma_gradient(tensor(row[1]), tensor(row[2])):item()
        t.is_true(math.abs(got / row[3] - 1) < 1e-5, ("gamma %g at %g: %g, not %g"):format(row[1], row[2], got, row[3]))
    end
    for _, row in ipairs(golden.beta) do
        local got = tide._require("distributions.gradients").beta_gradient(tensor(row[3]), tensor(row[1]), tensor(row[2])):item()
        t.is_true(math.abs(got / row[4] - 1) < 1e-6, ("beta %g, %g at %g: %g, not %g"):format(row[1], row[2], row[3], got, row[4]))
    end
end)

-- Draws of many: {name, arguments}; those with rsample must carry the gradients of their means.
local drawn = {
    { "Normal", { loc = 0.5, scale = 2.0 } }, { "LogNormal", { loc = 0.2, scale = 0.3 } }, { "Uniform", { low = -1.0, high = 3.0 } },
    { "Beta", { concentration1 = 0.7, concentration0 = 2.0 } }, { "Gamma", { concentration = 0.4, rate = 2.0 } },
    { "Gamma", { concentration = 5.0, rate = 2.0 } }, { "Exponential", { rate = 3.0 } }, { "Laplace", { loc = 1.0, scale = 0.5 } },
    { "Dirichlet", { concentration = { 0.5, 2.0, 1.0 } } }, { "Bernoulli", { probs = 0.3 } }, { "Poisson", { rate = 4.0 } },
    { "MultivariateNormal", { loc = { 1.0, -1.0 }, scale_tril = { { 2.0, 0.0 }, { 0.5, 1.0 } } } },
}

t.test("draws_have_the_mean_and_the_variance_and_carry_gradients_of_the_mean", function()
    tide.manual_seed(7)
    local n = 40000
    for _, row in ipairs(drawn) do
        local leaves = {}
        local d = build(row[1], row[2], function(x)
            leaves[#leaves + 1] = x:requires_grad_()
            return x
        end)
        local x = d.has_rsample and d:rsample(n) or d:sample(n)
        local bound = 6 * (d.variance / n):sqrt():detach()
        t.is_true((x:mean(1) - d.mean):abs():le(bound):all():item(), row[1] .. ": mean")
        t.is_true(tide.allclose(x:var(1), d.variance, { rtol = 0.1 }), row[1] .. ": variance")
        if d.has_rsample then
            local weights = tide.arange(1, d.mean:numel() + 1, wide):reshape(d.mean.shape)
            local got = tide.autograd.grad((x:mean(1) * weights):sum(), leaves)
            local want = tide.autograd.grad((d.mean * weights):sum(), leaves, { allow_unused = true })
            for k in ipairs(leaves) do
                local expected = want[k] or tide.zeros_like(leaves[k])
                t.is_true(tide.allclose(got[k], expected, { rtol = 0.05, atol = 0.06 }),
                    row[1] .. ": gradient " .. tostring(got[k]) .. ", expected " .. tostring(expected))
            end
        else
            t.error_has(function() d:rsample() end, "rsample: draws of " .. row[1] .. " have no gradients")
        end
        t.is_true(not d:sample(2).requires_grad)
    end
end)

t.test("log_prob_and_kl_have_gradients", function()
    for _, row in ipairs(golden.pairs) do
        local leaves = {}
        local function leaf(x)
            leaves[#leaves + 1] = x:requires_grad_()
            return x
        end
        local p, q = build(row.name, row.p, leaf), build(row.name, row.q, leaf)
        local value = p:log_prob(p:sample(3)):sum() + D.kl_divergence(p, q):sum()
        for _, g in ipairs(tide.autograd.grad(value, leaves, { allow_unused = true })) do
            t.is_true(g:isnan():any():item() == false, row.name)
        end
    end
end)

t.test("shapes_are_sample_batch_event", function()
    local d = D.MultivariateNormal(tide.zeros(4, 3), tide.eye(3))
    t.eq({ table.unpack(d:sample(2, 5).shape) }, { 2, 5, 4, 3 })
    t.eq({ table.unpack(d:rsample({ 2 }).shape) }, { 2, 4, 3 })
    t.eq({ table.unpack(d:sample().shape) }, { 4, 3 })
    t.eq({ table.unpack(d:log_prob(tide.zeros(3)).shape) }, { 4 })
    t.eq(D.Normal(0, { 1, 2 }).batch_shape, { 2 })
    local joint = D.Independent(D.Normal(tide.zeros(4, 3), 1), 1)
    t.eq(joint.batch_shape, { 4 })
    t.eq(joint.event_shape, { 3 })
    t.eq({ table.unpack(joint:log_prob(tide.zeros(4, 3)).shape) }, { 4 })
    t.eq({ table.unpack(joint:rsample(2).shape) }, { 2, 4, 3 })
    t.eq({ table.unpack(D.Categorical { logits = tide.zeros(2, 5) }:sample(3).shape) }, { 3, 2 })
end)

t.test("classes_count_from_1", function()
    local d = D.Categorical { 0, 1, 0 }
    t.eq(d:sample(4):tolist(), { 2, 2, 2, 2 })
    t.is_true(math.abs(d:log_prob(2):item()) < 1e-6)
    t.eq(d:enumerate_support():tolist(), { 1, 2, 3 })
    t.eq(d.mode:item(), 2)
    t.eq(D.Bernoulli(0.5):enumerate_support():tolist(), { 0, 1 })
end)

t.test("outside_of_the_support_the_density_is_0", function()
    for _, row in ipairs { { D.Uniform(0, 1), -0.5 }, { D.Uniform(0, 1), 1.0 }, { D.Gamma(2, 1), -1.0 }, { D.Beta(2, 2), 1.5 },
        { D.Exponential(1), -0.1 }, { D.LogNormal(0, 1), -1.0 }, { D.Bernoulli(0.5), 0.5 } } do
        t.eq(row[1]:log_prob(row[2]):item(), -math.huge, tostring(row[1]))
    end
end)

t.test("wrong_parameters_are_a_line", function()
    for _, row in ipairs { { function() D.Normal(0, -1) end, "Normal: scale: positive numbers expected" },
        { function() D.Uniform(1, 0) end, "Uniform: high: numbers above low expected" },
        { function() D.Categorical() end, "either probs or logits expected, got neither" },
        { function() D.Bernoulli(0.5, 1) end, "either probs or logits expected, got both" },
        { function() D.Bernoulli(1.5) end, "Bernoulli: probs: numbers from 0 to 1 expected" },
        { function() D.MultivariateNormal({ 0, 0 }) end, "one of covariance_matrix, precision_matrix and scale_tril" },
        { function() D.MultivariateNormal({ 0, 0 }, { { 1 } }) end, "a matrix of 2 x 2 expected" },
        { function() D.Normal("a", 1) end, "Normal: loc: a tensor, a number or a list of numbers expected" },
        { function() D.Beta(1, 1):cdf(0.5) end, "cdf: Beta has no formula for it" }, { function() D.Independent(D.Normal(0, 1), 1) end, "0 batch dims" } } do
        t.error_has(row[1], row[2])
    end
end)
