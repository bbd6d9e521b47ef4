-- test_nn_adaptive.lua: nn.AdaptiveLogSoftmaxWithLoss and pairwise distances against numbers that PyTorch computed.
local t = require "harness"
local nn, F = tide.nn, tide.nn.functional
local f64 = tide.float64


-- The module with weights that follow from their numbers alone.
local function numbered()
    local model = nn.AdaptiveLogSoftmaxWithLoss(8, 10, { 3, 6 }, 2, true):double()
    local _ <close> = tide.no_grad()
    for k, p in ipairs(model:parameters()) do
        p:copy_(((tide.arange(0, p:numel(), { dtype = f64 }) * (k + 2)):remainder(7) - 3):reshape(p.shape) / 5)
    end
    return model
end

local function lines()
    return ((((tide.arange(0, 40, { dtype = f64 }) * 5):remainder(9) - 4):reshape(5, 8)) / 3):requires_grad_()
end

local function near(got, want)
    want = tide.tensor(want, { dtype = f64 })
    t.is_true(tide.allclose(got:detach(), want, 1e-12, 1e-12), tostring(got) .. " is not " .. tostring(want))
end

t.test("targets_have_pytorch_s_log_probabilities_and_gradients", function()
    local model, x = numbered(), lines()
    local output, loss = model(x, tide.tensor { 1, 5, 10, 3, 6 })
    near(output, { -4.289101115764997, -2.7338451474497183, -2.8983844368060048, -2.0808011913184785,
        -5.0748000099516535 })
    t.close(loss:item(), 3.415386380258171, 1e-12)
    loss:backward()
    near(x.grad[3], { -0.03518022585498383, 0.15875764589170288, -0.03444484141579118, 0.15875764589170288,
        -0.03444484141579118, -0.05721535876425132, 0.025452859959150545, -0.03518022585498383 })
    t.close(model.tail[2][1].weight.grad[1][1]:item(), -0.17051591158449758, 1e-12)
    t.close(model(x[1], tide.tensor(1)):item(), -4.289101115764997, 1e-12)
end)

t.test("all_log_probabilities_and_the_likeliest_class", function()
    local model, x = numbered(), lines()
    near(model:log_prob(x)[2], { -1.1252996157820554, -3.9252996157820554, -1.1252996157820556,
        -3.6671784807830514, -2.7338451474497183, -3.2938451474497183, -3.757432014708254, -3.1174320147082537,
        -2.4774320147082536, -2.957432014708254 })
    local likely = model:predict(x):tolist()
    t.eq({ likely[1], likely[3], likely[4], likely[5] }, { 2, 2, 1, 2 }) -- of line 2 two are equally likely
    near(model:log_prob(x):exp():sum(2), { 1, 1, 1, 1, 1 })
    local head = model.head.bias
    local _ <close> = tide.no_grad()
    head[5] = 100 -- the last cluster is likeliest everywhere
    t.eq(model:predict(x):tolist(), model:log_prob(x):argmax(2):tolist())
    t.is_true(model:predict(x):min():item() > 6)
end)

t.test("what_does_not_fit_is_named", function()
    local function make(...) return pcall(nn.AdaptiveLogSoftmaxWithLoss, ...) end
    for _, cutoffs in ipairs { {}, { 0 }, { 3, 3 }, { 5, 2 }, { 10 }, { 1.5 }, { "a" } } do
        t.is_false(make(8, 10, cutoffs))
    end
    t.error_has(function() nn.AdaptiveLogSoftmaxWithLoss(8, 10, { 3, 6 }, 8) end, "cluster 2 would have no features left")
    local model = numbered()
    t.error_has(function() model(lines(), tide.tensor { 1, 2, 3, 4, 11 }) end, "classes from 1 to 10 expected, got 11")
    t.error_has(function() model(lines(), tide.tensor { 1, 2 }) end, "a target for each line of the input expected")
    t.error_has(function() model(tide.ones(5, 7), tide.tensor { 1, 2 }) end, "an input of shape (N, 8) or (8) expected")
end)

t.test("distances_of_all_pairs", function()
    local x = lines():detach()
    t.close(F.pdist(x)[1]:item(), 4.268749491621899, 1e-12)
    t.close(F.pdist(x)[8]:item(), 4.268749491621899, 1e-12)
    t.close(F.pdist(x, math.huge)[2]:item(), 2.6666666666666665, 1e-12)
    t.eq(F.pdist(x, 0):tolist(), tide.full({ 10 }, 8, { dtype = f64 }):tolist())
    t.eq(F.pdist(tide.ones(1, 4)):numel(), 0)
    t.is_true(tide.autograd.gradcheck(F.pdist, { lines() }))
    t.error_has(function() F.pdist(tide.ones(3)) end, "pdist: a matrix expected, got shape (3)")
end)
