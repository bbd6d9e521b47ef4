-- test_golden.lua: every operator gives the values and the gradients that PyTorch gives: see tests/golden.
-- What an operator does in every dtype is test_dtypes.lua's.
local t = require "harness"
local golden = require "golden"

-- Operators whose values are nobody's to foretell.
local without = {
    empty = "its elements are whatever lay in memory",
    empty_like = "the same",
    rand = "random: test_random.lua",
    randn = "random: test_random.lua",
    rand_like = "random: test_random.lua",
    randn_like = "random: test_random.lua",
    randint = "random: test_random.lua",
    randperm = "random: test_random.lua",
    log_normal_ = "random: test_random.lua",
    exponential_ = "random: test_random.lua",
    cauchy_ = "random: test_random.lua",
    geometric_ = "random: test_random.lua",
    new_empty = "its elements are whatever lay in memory",
    empty_strided = "the same",
    new_empty_strided = "the same",
    quantize_per_tensor = "quantized: tests/lua/quantization",
    quantize_per_channel = "quantized: tests/lua/quantization",
    dequantize = "quantized: tests/lua/quantization",
    int_repr = "quantized: tests/lua/quantization",
}

local double = { relative = 1e-12, absolute = 1e-14, zeros = true }
local single = { relative = 1e-6, absolute = 1e-37, zeros = true }
local double_gradient = { relative = 1e-11, absolute = 1e-13, zeros = false }
local single_gradient = { relative = 1e-6, absolute = 1e-7, zeros = false }

-- Operators whose zero may have either sign: IEEE leaves it open, and PyTorch's depends on the path.
local unsigned_zero = { maximum = true, minimum = true, relu = true, elu = true, floor_divide = true, linalg_qr = true }
-- Vectors that stay what they are with the other sign, which is a library's choice: on a device it is another library.
local signless = golden.on_device and { linalg_eigh = true, linalg_svd = true } or {}
-- Operators whose gradients are compared less strictly.
local gradient_tolerances = {
    -- PyTorch's bound of the denominator is 1e-12 as a float32
    binary_cross_entropy = { relative = 1e-8, absolute = 1e-13, zeros = false },
    -- PyTorch's trigamma is right to some nine digits
    digamma = { relative = 1e-8, absolute = 1e-13, zeros = false },
    polygamma = { relative = 1e-8, absolute = 1e-13, zeros = false },
}

-- Cases whose values PyTorch has wrong, by name and number.
local wrong_there = {
    searchsorted_12 = "in a sequence that NaN ends PyTorch searches as if it were in disorder: test_sorting.lua",
}

local cases = golden.cases()

local function tolerance_of(op, dtype)
    local tolerance = dtype == "float32" and single or double
    if unsigned_zero[op.name] or signless[op.name] then
        return { relative = tolerance.relative, absolute = tolerance.absolute, zeros = false, signless = signless[op.name] }
    end
    return tolerance
end

local function gradient_tolerance(op, results)
    for _, r in ipairs(results) do
        if tide.is_tensor(r) and r.dtype == tide.float32 then
            return single_gradient
        end
    end
    return golden.gradient_tolerance(op, gradient_tolerances[op.name] or double_gradient)
end

local function check_result(op, got, want, what)
    if type(want) ~= "table" then
        return t.eq(got, want, what)
    end
    t.is_true(tide.is_tensor(got), what .. ": a tensor")
    t.eq(golden.shape_text(got.shape), golden.shape_text(want.s), what .. ": shape")
    t.eq(got.dtype, tide[want.t], what .. ": dtype")
    t.eq(got.is_sparse, want.nnz ~= nil, what .. ": sparse")
    if want.nnz then
        t.eq(got:coalesce():_nnz(), want.nnz, what .. ": places")
        got = got:detach():to_dense()
    end
    local wrong = golden.compare(got, want.v, tolerance_of(op, want.t))
    if wrong then
        error(what .. ": " .. wrong, 0)
    end
end

local function check_gradients(op, results, inputs, want)
    local total
    for k, r in ipairs(results) do
        if tide.is_tensor(r) and r.requires_grad then
            r = r:to_dense()
            local part = (r * golden.weights_like(r, k - 1)):sum()
            total = total and total + part or part
        end
    end
    t.is_true(total, "a result that requires grad")
    local grads = tide.autograd.grad(total, inputs, { allow_unused = true })
    for k, x in ipairs(inputs) do
        local g = grads[k] and grads[k]:to_dense() or tide.zeros_like(x)
        t.eq(golden.shape_text(g.shape), golden.shape_text(x.shape), "gradient " .. k .. ": shape")
        local wrong = golden.compare(g, want[k], gradient_tolerance(op, results))
        if wrong then
            error("gradient " .. k .. ": " .. wrong, 0)
        end
    end
end

local function run(op, case)
    local inputs = {}
    local args = golden.arguments(case, inputs)
    if op.inplace_only and args[1].requires_grad then
        args[1] = args[1] * 1 -- a leaf can't be written
    end
    local results = golden.call(op, args)
    t.eq(#results, #case.r, "number of results")
    for k, want in ipairs(case.r) do
        check_result(op, results[k], want, "result " .. k)
    end
    if case.g and not signless[op.name] then
        check_gradients(op, results, inputs, case.g)
    end
end

for _, op in ipairs(golden.operators()) do
    local list = cases[op.name] or {}
    if not op.alias and not op.internal and not without[op.name] then
        t.test(op.name .. "_has_golden_values", function()
            t.is_true(#list >= 4, ("%d golden cases of %s, expected 4 or more in tests/golden/cases")
                :format(#list, op.name))
        end)
    end
    for number, case in ipairs(list) do
        local name = ("%s_%d"):format(op.name, number)
        if not wrong_there[name] then
            t.test(name, function() run(op, case) end)
        end
    end
    cases[op.name] = nil
end

t.test("every_golden_case_is_of_an_operator", function()
    t.eq(golden.sorted_keys(cases), {})
end)
