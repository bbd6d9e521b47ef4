-- test_out.lua: what `out=` means, asked of every operator that takes it, with the golden cases' arguments.
local t = require "harness"
local golden = require "golden"

local cases = golden.cases()

-- A case with out= among its options.
local function with_out(case, out)
    local args = golden.arguments(case)
    local options = args[args.n]
    if case.o then
        options.out = out
    else
        args.n = args.n + 1
        args[args.n] = { out = out }
    end
    return args
end

local function same(got, want, what)
    t.eq(golden.shape_text(got.shape), golden.shape_text(want.shape), what .. ": shape")
    t.eq(got.dtype, want.dtype, what .. ": dtype")
    local close = got:to(tide.float64):eq(want:to(tide.float64)) | (got:isnan() & want:isnan())
    t.is_true(close:all():item(), what .. ": values")
end

-- The cases to ask: small ones whose result is one tensor.
local function chosen(op)
    local list = {}
    for _, case in ipairs(cases[op.name] or {}) do
        local r = #case.r == 1 and case.r[1]
        if type(r) == "table" and r.t and not r.nnz and #r.v <= 24 and not r.v.every and #list < 6 then
            list[#list + 1] = case
        end
    end
    return list
end

local checks = {}

function checks.writes_the_tensor_and_returns_it(op, case, want)
    local out = tide.empty(want.shape, { dtype = want.dtype })
    local place = out:data_ptr()
    local got = golden.call(op, with_out(case, out))[1]
    t.is_true(rawequal(got, out), "what comes back is out itself")
    same(out, want, "out")
    t.eq(out:data_ptr(), place, "its memory is the one it had")
end

function checks.resizes_a_tensor_of_another_shape(op, case, want)
    local out = tide.empty(7, 2, { dtype = want.dtype })
    golden.call(op, with_out(case, out))
    same(out, want, "out")
end

function checks.writes_through_strides(op, case, want)
    if want:dim() ~= 2 then
        return
    end
    local base = tide.zeros(want.shape[2], want.shape[1], { dtype = want.dtype })
    local out = base:t()
    golden.call(op, with_out(case, out))
    same(out, want, "out")
    same(base, want:t(), "the tensor under it")
end

function checks.converts_within_a_category(op, case, want)
    if want.dtype == tide.float64 and not op.out_exact and not op.creates then
        local out = tide.empty(want.shape, { dtype = tide.float32 })
        golden.call(op, with_out(case, out))
        same(out, want:to(tide.float32), "out of float32")
    end
end

local function short(dtype)
    return (tostring(dtype):gsub("^tide%.", ""))
end

function checks.takes_the_dtype_of_the_result_alone_where_it_says_so(op, case, want)
    for _, dtype in ipairs { tide.float32, tide.float64, tide.int32, tide.bool } do
        if op.out_exact and dtype ~= want.dtype then
            local out = tide.empty(want.shape, { dtype = dtype })
            t.error_has(function() golden.call(op, with_out(case, out)) end,
                ("%s: the result is %s, out is %s"):format(op.name, short(want.dtype), short(dtype)))
        end
    end
end

function checks.gives_what_is_created_its_dtype(op, case, want)
    if op.creates and not (case.o and case.o.dtype) then
        for _, dtype in ipairs { tide.float16, tide.float64 } do
            local out = tide.empty(0, { dtype = dtype })
            golden.call(op, with_out(case, out))
            t.eq(out.dtype, dtype)
            t.eq(golden.shape_text(out.shape), golden.shape_text(want.shape))
        end
    end
end

function checks.refuses_a_dtype_of_a_lower_category(op, case, want)
    if want.dtype.is_floating_point and (not op.creates or case.o and case.o.dtype) then
        local out = tide.empty(want.shape, { dtype = tide.int64 })
        t.error_has(function() golden.call(op, with_out(case, out)) end, op.name .. ": ")
    end
end

function checks.refuses_an_expanded_tensor(op, case, want)
    if want:numel() > 1 then
        local out = tide.empty(1, { dtype = want.dtype }):expand(want.shape)
        t.error_has(function() golden.call(op, with_out(case, out)) end,
            op.name .. ": several elements of the tensor written share one place in memory")
    end
end

function checks.refuses_to_be_differentiated(op, case, want)
    if want.dtype.is_floating_point then
        local out = tide.empty(want.shape, { dtype = want.dtype, requires_grad = true })
        t.error_has(function() golden.call(op, with_out(case, out)) end, op.name .. ": ")
    end
end

-- out= operators are named here: one that no longer takes it is noticed.
local takes_out = {}
for name in ([[
    add sub mul div floor_divide trunc_divide remainder fmod pow maximum minimum atan2 lerp addcmul addcdiv
    neg abs sign square reciprocal sqrt rsqrt exp exp2 expm1 log log2 log10 log1p
    sin cos tan asin acos atan sinh cosh tanh floor ceil round trunc frac
    relu sigmoid erf erfc silu gelu softplus leaky_relu elu clamp_min clamp_max where
    eq ne lt le gt ge logical_and logical_or logical_xor logical_not
    bitwise_and bitwise_or bitwise_xor bitwise_not
    sum nansum mean prod var std amax amin norm logsumexp cumsum softmax log_softmax
    mm bmm mv dot matmul addmm addmv baddbmm linear outer cat stack gather scatter scatter_add
    index_select index_add index_copy take masked_select nonzero tril triu any all argmax argmin
    clamp zeros ones full arange linspace eye empty rand randn randint]]):gmatch("%S+") do
    takes_out[name] = true
end

for _, op in ipairs(tide._ops()) do
    if takes_out[op.name] then
        t.test(op.name .. "_takes_out", function() t.is_true(op.out) end)
    end
    if op.out and not op.internal and not op.random and op.name ~= "empty" then
        for what, check in pairs(checks) do
            t.test(("%s_out_%s"):format(op.name, what), function()
                local list = chosen(op)
                t.is_true(#list > 0, "golden cases of one small result")
                for k, case in ipairs(list) do
                    local ok, message = pcall(check, op, case, golden.call(op, golden.arguments(case))[1])
                    t.is_true(ok, "case " .. k .. ": " .. tostring(message))
                end
            end)
        end
    end
end

t.test("out_of_what_has_no_values_to_foretell", function()
    for name, args in pairs { empty = { 2, 3 }, rand = { 2, 3 }, randn = { 2, 3 }, randint = { 1, 4, { 2, 3 } } } do
        local out = tide.zeros(0, { dtype = tide.float64 })
        args[#args + 1] = { out = out }
        t.is_true(rawequal(tide[name](table.unpack(args)), out), name)
        t.eq({ tostring(out.shape), out.dtype }, { "(2, 3)", tide.float64 }, name)
        t.is_true(name == "empty" or out:abs():sum():item() > 0, name)
    end
    t.error_has(function() tide.zeros(2, { out = tide.empty(0), dtype = tide.int64 }) end,
        "zeros: dtype is int64, that of out float32")
end)

t.test("out_is_refused_where_an_operand_requires_grad", function()
    local x, out = tide.ones(2, { requires_grad = true }), tide.zeros(2)
    t.error_has(function() tide.add(x, 1, { out = out }) end, "out= can't take part in autograd")
    t.error_has(function() tide.sum(x * 2, 1, { out = out }) end, "out= can't take part in autograd")
    t.eq(out:tolist(), { 0, 0 })
    tide.no_grad(function() tide.add(x, 1, { out = out }) end)
    t.eq(out:tolist(), { 2, 2 })
end)

t.test("out_may_be_the_operand_itself", function()
    local x = tide.tensor { 1.5, -2.5, 3.5 }
    tide.mul(x, 2, { out = x })
    t.eq(x:tolist(), { 3, -5, 7 })
    tide.sub(1, x, { out = x })
    t.eq(x:tolist(), { -2, 6, -6 })
end)

t.test("out_that_overlaps_an_operand_gives_the_values_or_is_refused", function()
    local base = tide.arange(10, { dtype = tide.float64 })
    local x, out = base:narrow(1, 1, 8), base:narrow(1, 3, 8)
    local want = (x * 2 + 1):tolist()
    local ok, message = pcall(tide.add, 1, x, { alpha = 2, out = out })
    if ok then
        t.eq(out:tolist(), want)
    else
        t.is_true(message:find("add: ", 1, true), message)
    end
end)

t.test("out_that_overlaps_a_row_that_is_summed_gives_the_values_or_is_refused", function()
    local base = tide.arange(12, { dtype = tide.float64 }):reshape(3, 4)
    local want = base:sum(1):tolist()
    local ok, message = pcall(tide.sum, base, 1, { out = base[1] })
    if ok then
        t.eq(base[1]:tolist(), want)
    else
        t.is_true(message:find("sum: ", 1, true), message)
    end
end)

t.test("out_of_matmul_that_is_an_operand_gives_the_values_or_is_refused", function()
    local x = tide.tensor({ { 1, 2 }, { 3, 4 } }, { dtype = tide.float64 })
    local ok, message = pcall(tide.mm, x, x, { out = x })
    if ok then
        t.eq(x:tolist(), { { 7, 10 }, { 15, 22 } })
    else
        t.is_true(message:find("mm: ", 1, true), message)
    end
end)

-- What backward has saved is written or resized by out=: refused, or the gradient of what was saved.
local function check_saved(sizes, what)
    local x = tide.tensor({ 3, 4 }, { dtype = tide.float64, requires_grad = true })
    local a = x * 1
    local b = (a * a):sum()
    tide.no_grad(function() tide.add(tide.ones(sizes, { dtype = tide.float64 }), 1, { out = a }) end)
    local ok, grads = pcall(tide.autograd.grad, b, { x })
    if ok then
        t.eq(grads[1]:tolist(), { 6, 8 }, what)
    else
        t.is_true(tostring(grads):find("changed in place", 1, true), what .. ": " .. tostring(grads))
    end
end

t.test("out_counts_as_a_write", function()
    check_saved({ 2 }, "the same shape")
    check_saved({ 1 }, "a smaller one")
    check_saved({ 2, 1 }, "another one of the same size")
    check_saved({ 50 }, "one that needs other memory")
    local x = tide.ones(2)
    local version = x._version
    tide.add(x, 1, { out = x })
    t.is_true(x._version > version)
    version = x._version
    tide.add(tide.ones(50), 1, { out = x })
    t.is_true(x._version > version, "resized")
end)

t.test("a_call_that_is_refused_leaves_the_tensor_given_as_it_was", function()
    for _, name in ipairs { "remainder", "fmod", "floor_divide", "trunc_divide" } do
        local out = tide.tensor { 7, 8, 9 }
        t.error_has(function() tide[name](tide.ones(2, 2):long(), 0, { out = out }) end, "division by zero")
        t.eq(golden.shape_text(out.shape), "(3)", name)
        t.eq(out:tolist(), { 7, 8, 9 }, name)
    end
end)
