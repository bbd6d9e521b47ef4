-- test_sparse_steps.lua: what optimizers do where a gradient is sparse, against PyTorch's numbers (three steps of
-- (embedding(index, w)^2 * weights).sum(), float64), and that only the rows used are touched.
local t = require "harness"
local F, sparse = tide.nn.functional, tide._require "optim.sparse"
local f64 = { dtype = tide.float64 }
local SparseAdam = sparse.define(function(c) return c end, function(_, lr) return lr end)

local rows = { tide.tensor { 2, 4, 2 }, tide.tensor { 1, 2, 3 }, tide.tensor { 4, 4, 4 } }

local function gradient(w, index)
    w.grad = nil
    local weights = tide.arange(1, 10, 1, f64):reshape(3, 3) / 10;
    (F.embedding(index, w, { sparse = true }):square() * weights):sum():backward()
end

local function run(name, group)
    local w = tide.arange(0, 12, 1, f64):reshape(4, 3):requires_grad_(true)
    local self = { __name = name, state = {} }
    group.params = { w }
    group.eps = group.eps or (name == "Adagrad" and 1e-10 or 1e-8)
    group.betas = group.betas or { 0.9, 0.999 }
    for key, value in pairs { momentum = 0, dampening = 0, weight_decay = 0, lr_decay = 0 } do
        group[key] = group[key] or value
    end
    for _, index in ipairs(rows) do
        gradient(w, index)
        local _ <close> = tide.no_grad()
        if name == "SparseAdam" then
            SparseAdam.step_group(self, group)
        else
            sparse.step(self, group, group.lr, w, w.grad)
        end
    end
    return w:detach(), self.state[w]
end

local function check(name, group, want)
    local got = run(name, group)
    local off = (got:reshape(12) - tide.tensor(want, f64)):abs():max():item()
    t.is_true(off < 1e-11, ("%s is off by %g"):format(name, off))
end

t.test("sgd_takes_sparse_gradients", function()
    check("SGD", { lr = 0.1 }, { 0.0, 0.96, 1.88, 2.3184, 2.88, 3.344, 5.16, 5.88, 6.56, 6.2928, 6.3, 6.1952 })
    check("SGD", { lr = 0.1, momentum = 0.9 },
        { 0.0, 0.924, 1.772, 1.31616, 1.224, 0.8816, 4.404, 4.872, 5.264, 5.21712, 4.86, 4.36568 })
    check("SGD", { lr = 0.1, momentum = 0.9, nesterov = true }, { 0.0, 0.8916, 1.6748, 0.8966016, 0.57672, -0.011344,
        3.7236, 3.9648, 4.0976, 3.3096672, 2.4057, 1.3833248 })
    check("SGD", { lr = 0.1, momentum = 0.5, dampening = 0.2, maximize = true },
        { 0.0, 1.048, 2.144, 4.17408, 5.976, 7.9928, 7.008, 8.344, 9.728, 12.19536, 14.51, 17.04824 })
    t.error_has(function() run("SGD", { lr = 0.1, weight_decay = 0.1 }) end, "weight_decay is not for sparse gradients")
end)

t.test("adagrad_takes_sparse_gradients", function()
    check("Adagrad", { lr = 0.1 }, { 0.0, 0.900000000025, 1.900000000008, 2.856483133949, 3.856179775283,
        4.855998475224, 5.900000000001, 6.900000000001, 7.900000000001, 8.805238681331, 9.80522783435, 10.805218983916 })
    check("Adagrad", { lr = 0.1, lr_decay = 0.1, initial_accumulator_value = 0.5, eps = 1e-3 }, { 0.0, 0.955294486509,
        1.921733483871, 2.861866086163, 3.860690469197, 4.860237752831, 5.909422050926, 6.909279633613, 7.90920661176,
        8.82156665777, 9.821304614972, 10.82117985932 })
    check("Adagrad", { lr = 0.1, maximize = true }, { 0.0, 1.099999999975, 2.099999999992, 3.145902005185,
        4.145609079089, 5.145432608278, 6.099999999999, 7.099999999999, 8.099999999999, 9.194972178177, 10.194961932196,
        11.194953526411 })
    t.error_has(function() run("Adagrad", { lr = 0.1, weight_decay = 0.1 }) end,
        "weight_decay is not for sparse gradients")
end)

t.test("sparse_adam_moves_the_rows_used_alone", function()
    check("SparseAdam", { lr = 0.1 }, { 0.0, 0.925586376472, 1.925586337253, 2.807281468937, 3.807154415276,
        4.807078888666, 5.925586320445, 6.925586319744, 7.925586319277, 8.821096665443, 9.821108254752, 10.821117726596 })
    check("SparseAdam", { lr = 0.05, betas = { 0.8, 0.9 }, eps = 1e-3 }, { 0.0, 0.962011302711, 1.96181161093,
        2.90377617935, 3.903718628421, 4.903686635619, 5.961725384613, 6.961721783398, 7.961719382212, 8.909259603376,
        9.909254575005, 10.909251969694 })
    check("SparseAdam", { lr = 0.1, maximize = true }, { 0.0, 1.074413623528, 2.074413662747, 3.193694282919,
        4.193577340273, 5.193506494166, 6.074413679555, 7.074413680256, 8.074413680723, 9.178674216062, 10.178685539303,
        11.178694813925 })
    local _, state = run("SparseAdam", { lr = 0.1 })
    t.eq(state.step, 3)
    t.is_false(state.exp_avg.is_sparse or state.exp_avg.requires_grad)
end)

t.test("sparse_adam_refuses_dense_gradients_and_wrong_betas", function()
    local w = tide.ones(2):requires_grad_(true)
    w:sum():backward()
    t.error_has(function() SparseAdam.step_group({ state = {} }, { params = { w }, lr = 1 }) end,
        "SparseAdam: a dense gradient of shape (2): use Adam")
    t.eq(w:sum():item(), 2.0)
    t.error_has(function() SparseAdam.check { betas = { 0.9, 1 } } end, "SparseAdam: option betas")
    t.error_has(function() SparseAdam.check { betas = { 0.9 } } end, "SparseAdam: option betas")
end)

t.test("a_gradient_without_places_changes_nothing", function()
    for _, name in ipairs { "SGD", "Adagrad", "SparseAdam" } do
        local w = tide.ones(3, 2):requires_grad_(true)
        F.embedding(tide.zeros(0, { dtype = tide.int64 }), w, { sparse = true }):sum():backward()
        local group = { lr = 1, eps = 1e-8, betas = { 0.9, 0.999 }, weight_decay = 0, momentum = 0, lr_decay = 0 }
        tide.no_grad(sparse.step, { __name = name, state = {} }, group, 1, w, w.grad)
        t.eq(w:sum():item(), 6.0, name)
    end
end)

t.test("optimizers_that_take_no_sparse_gradient_say_what_does", function()
    local w = tide.ones(3, 2):requires_grad_(true)
    gradient(tide.ones(4, 3, f64):requires_grad_(true), rows[1])
    F.embedding(rows[2], w, { sparse = true }):sum():backward()
    for name, text in pairs { Adam = "use SparseAdam", AdamW = "use SparseAdam", RMSprop = "use SGD, Adagrad or SparseAdam" } do
        t.error_has(function() sparse.step({ __name = name, state = {} }, {}, 0.1, w, w.grad) end,
            name .. ": sparse gradients are not supported: " .. text)
    end
    t.eq(w:sum():item(), 6.0)
end)

t.test("steps_of_a_large_table_allocate_by_the_rows_used", function()
    local w = tide.zeros(200000, 32):requires_grad_(true)
    local index = tide.arange(1, 33):to(tide.int64) * 6000
    local group = { lr = 0.1, eps = 1e-10, weight_decay = 0, lr_decay = 0, initial_accumulator_value = 0.1 }
    local self = { __name = "Adagrad", state = {} }
    local function step()
        w.grad = nil
        F.embedding(index, w, { sparse = true }):sum():backward()
        tide.no_grad(sparse.step, self, group, 0.1, w, w.grad)
    end
    step()
    collectgarbage()
    tide.reset_peak_memory_stats()
    local before = tide.memory_allocated()
    step()
    t.is_true(tide.memory_stats().peak - before < 1 << 20)
end)
