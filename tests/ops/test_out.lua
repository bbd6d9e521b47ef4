-- test_out.lua: what `out=` means, asked of every operator that takes it, with the golden cases' arguments.
local t = require "harness"
local golden = require "golden"

local cases = golden.cases()

-- A case with out= among its options: a tensor, or of several results a list.
local function with_out(case, outs)
    local args = golden.arguments(case)
    local options, out = args[args.n], #outs == 1 and outs[1] or outs
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

local function same_all(outs, wants, what)
    for k, want in ipairs(wants) do
        same(outs[k], want, #wants == 1 and what or what .. " " .. k)
    end
end

-- Tensors to write results into, made one by one.
local function made(wants, make)
    local outs = {}
    for k, want in ipairs(wants) do
        outs[k] = make(want, k)
    end
    return outs
end

local function of_shapes(wants)
    return made(wants, function(want) return tide.empty(want.shape, { dtype = want.dtype }) end)
end

-- The cases to ask: small ones whose results are tensors.
local function is_small(case)
    for _, r in ipairs(case.r) do
        if type(r) ~= "table" or not r.t or r.nnz or #r.v > 24 or r.v.every then
            return false
        end
    end
    return #case.r > 0
end

local function chosen(op)
    local list = {}
    for _, case in ipairs(cases[op.name] or {}) do
        if #list < 6 and is_small(case) then
            list[#list + 1] = case
        end
    end
    return list
end

local checks = {}

function checks.writes_the_tensor_and_returns_it(op, case, wants)
    local outs, places = of_shapes(wants), {}
    for k, out in ipairs(outs) do
        places[k] = out:data_ptr()
    end
    local got = golden.call(op, with_out(case, outs))
    t.eq(#got, #outs, "as many as without out=")
    same_all(outs, wants, "out")
    for k, out in ipairs(outs) do
        t.is_true(rawequal(got[k], out), "what comes back is out itself")
        t.eq(out:data_ptr(), places[k], "its memory is the one it had")
    end
end

function checks.resizes_a_tensor_of_another_shape(op, case, wants)
    local outs = made(wants, function(want) return tide.empty(7, 2, { dtype = want.dtype }) end)
    golden.call(op, with_out(case, outs))
    same_all(outs, wants, "out")
end

function checks.writes_through_strides(op, case, wants)
    local bases = {}
    local outs = made(wants, function(want, k)
        local sizes = { table.unpack(want.shape) }
        if #sizes > 1 then
            sizes[1], sizes[#sizes] = sizes[#sizes], sizes[1]
        end
        bases[k] = tide.zeros(sizes, { dtype = want.dtype })
        return #sizes > 1 and bases[k]:transpose(1, -1) or bases[k]
    end)
    golden.call(op, with_out(case, outs))
    same_all(outs, wants, "out")
    for k, want in ipairs(wants) do
        same(bases[k], want:dim() > 1 and want:transpose(1, -1) or want, "the tensor under it")
    end
end

function checks.converts_within_a_category(op, case, wants)
    local want = #wants == 1 and wants[1]
    if want and want.dtype == tide.float64 and not op.out_exact and not op.creates then
        local out = tide.empty(want.shape, { dtype = tide.float32 })
        golden.call(op, with_out(case, { out }))
        same(out, want:to(tide.float32), "out of float32")
    end
end

local function short(dtype)
    return (tostring(dtype):gsub("^tide%.", ""))
end

-- A refusal of the tensor for the last result; those before it keep their shapes and elements.
local function refused_last(op, case, wants, dtype, text)
    local outs = made(wants, function(want, k)
        return tide.ones(3, { dtype = k == #wants and dtype or want.dtype })
    end)
    t.error_has(function() golden.call(op, with_out(case, outs)) end, text)
    for k, out in ipairs(outs) do
        t.eq({ golden.shape_text(out.shape), out:ne(1):sum():item() }, { "(3)", 0 }, "out " .. k)
    end
end

function checks.takes_the_dtype_of_the_result_alone_where_it_says_so(op, case, wants)
    local last = wants[#wants].dtype
    for _, dtype in ipairs { tide.float32, tide.float64, tide.int32, tide.bool } do
        if op.out_exact and dtype ~= last then
            refused_last(op, case, wants, dtype,
                ("%s: the result is %s, out is %s"):format(op.name, short(last), short(dtype)))
        end
    end
end

function checks.gives_what_is_created_its_dtype(op, case, wants)
    if op.creates and not (case.o and case.o.dtype) and wants[1].dtype.is_floating_point then
        for _, dtype in ipairs { tide.float16, tide.float64 } do
            local out = tide.empty(0, { dtype = dtype })
            golden.call(op, with_out(case, { out }))
            t.eq(out.dtype, dtype)
            t.eq(golden.shape_text(out.shape), golden.shape_text(wants[1].shape))
        end
    end
end

function checks.refuses_a_dtype_of_a_lower_category(op, case, wants)
    local floats = wants[#wants].dtype.is_floating_point
    if floats and (not op.creates or case.o and case.o.dtype) then
        refused_last(op, case, wants, tide.int64, op.name .. ": ")
    end
end

function checks.refuses_an_expanded_tensor(op, case, wants)
    local want = wants[#wants]
    if want:numel() > 1 then
        local outs = of_shapes(wants)
        outs[#outs] = tide.empty(1, { dtype = want.dtype }):expand(want.shape)
        t.error_has(function() golden.call(op, with_out(case, outs)) end,
            op.name .. ": several elements of the tensor written share one place in memory")
    end
end

function checks.refuses_a_tensor_that_requires_grad(op, case, wants)
    local outs = of_shapes(wants)
    if wants[1].dtype.is_floating_point then
        outs[1]:requires_grad_(true)
        t.error_has(function() golden.call(op, with_out(case, outs)) end, op.name .. ": ")
    end
end

function checks.refuses_operands_that_require_grad(op, case, wants)
    local inputs, outs = {}, of_shapes(wants)
    golden.arguments(case, inputs)
    if #inputs == 0 or not op.differentiable or not wants[1].dtype.is_floating_point then
        return
    end
    local args, plain = golden.arguments(case, {}), with_out(case, outs)
    local options = args[args.n]
    if case.o then
        options.out = plain[plain.n].out
    else
        args.n = args.n + 1
        args[args.n] = plain[plain.n]
    end
    t.error_has(function() golden.call(op, args) end, op.name .. ": out= can't take part in autograd")
    tide.no_grad(function() golden.call(op, args) end)
    same_all(outs, wants, "out under no_grad")
end

function checks.refuses_another_number_of_tensors(op, case, wants)
    local outs = of_shapes(wants)
    outs[#outs + 1] = tide.empty(0)
    t.error_has(function() golden.call(op, with_out(case, outs)) end, op.name .. ": ")
    if #wants > 1 then
        t.error_has(function() golden.call(op, with_out(case, { outs[1] })) end,
            ("%s: %d results: out= must be a list of %d tensors"):format(op.name, #wants, #wants))
        outs[2], outs[#outs] = 7, nil
        t.error_has(function() golden.call(op, with_out(case, outs)) end, op.name .. ": option out: expected a list")
    end
end

function checks.refuses_a_tensor_twice_and_memory_that_is_shared(op, case, wants)
    if #wants == 1 or wants[1].dtype ~= wants[2].dtype then
        return
    end
    local outs = of_shapes(wants)
    outs[2] = outs[1]
    t.error_has(function() golden.call(op, with_out(case, outs)) end, op.name .. ": tensors 1 and 2 of out= are the same")
    if wants[1]:numel() > 0 and wants[2]:numel() > 0 then
        local row = tide.empty(500, { dtype = wants[1].dtype })
        outs[1], outs[2] = row:narrow(1, 2, 1), row:narrow(1, 2, 2)
        t.error_has(function() golden.call(op, with_out(case, outs)) end,
            op.name .. ": tensors 1 and 2 of out= share memory")
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
    mm int_mm bmm mv dot matmul addmm addmv baddbmm linear outer cat stack gather scatter scatter_add
    index_select index_add index_copy take masked_select nonzero tril triu any all argmax argmin
    clamp zeros ones full arange linspace eye empty rand randn randint
    sort topk kthvalue median nanmedian mode cummax cummin max min aminmax nanmean tensordot nextafter avg_pool2d
    linalg_inv_ex linalg_cholesky_ex linalg_det linalg_slogdet linalg_solve linalg_solve_triangular linalg_qr linalg_svd
    linalg_svdvals linalg_eigh linalg_eigvalsh linalg_pinv linalg_matrix_rank linalg_matrix_power inverse
    multinomial bernoulli randperm]]):gmatch("%S+") do
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
                t.is_true(#list > 0, "golden cases of small results")
                for k, case in ipairs(list) do
                    local ok, message = pcall(check, op, case, golden.call(op, golden.arguments(case)))
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

-- ---- what refuses elements ----

-- Calls that are refused for what their elements are: nothing is written or resized.
local inf, nan = math.huge, 0 / 0
local refusing = {
    gather = function(out) return tide.gather(tide.ones(2, 2), 1, tide.tensor { { 1, 3 } }, { out = out }) end,
    scatter = function(out) return tide.scatter(tide.ones(2, 2), 1, tide.tensor { { 1, 3 } }, 5, { out = out }) end,
    scatter_add = function(out)
        return tide.scatter_add(tide.ones(2, 2), 1, tide.tensor { { 1, 3 } }, tide.ones(1, 2), { out = out })
    end,
    index_select = function(out) return tide.index_select(tide.ones(2, 2), 1, tide.tensor { 1, 3 }, { out = out }) end,
    take = function(out) return tide.take(tide.ones(2, 2), tide.tensor { 1, 7 }, { out = out }) end,
    linalg_inv = function(out) return tide.linalg.inv(tide.tensor { { { 2.0, 0 }, { 0, 4 } }, { { 1, 1 }, { 1, 1 } } }, { out = out }) end,
    linalg_cholesky = function(out) return tide.linalg.cholesky(tide.tensor { { 1, 2.0 }, { 2, 1 } }, { out = out }) end,
    linalg_solve = function(out) return tide.linalg.solve(tide.zeros(2, 2), tide.ones(2, 2), { out = out }) end,
    multinomial = function(out) return tide.multinomial(tide.tensor { { 1.0, 2, 3 }, { 0, 0, 0 } }, 2, { out = out }) end,
    bernoulli = function(out) return tide.bernoulli(tide.tensor { 0.5, 1.5 }, { out = out }) end,
}
for name, call in pairs(refusing) do
    t.test(name .. "_writes_nothing_where_it_refuses_elements", function()
        local dtype = name == "multinomial" and tide.int64 or tide.float32
        for _, sizes in ipairs { { 2, 2 }, { 1, 2 }, { 5 }, { 0 } } do
            local out = tide.full(sizes, 9, { dtype = dtype })
            local shape = golden.shape_text(out.shape)
            t.error_has(function() call(out) end, name .. ": ")
            t.eq({ golden.shape_text(out.shape), out:ne(9):sum():item() }, { shape, 0 }, name)
        end
    end)
end

for name, matrix in pairs { svd = { { 1, nan }, { 0, 1 } }, eigh = { { inf, 0 }, { 0, 1 } } } do
    t.test("linalg_" .. name .. "_writes_nothing_where_it_refuses_elements", function()
        local outs = {}
        for k = 1, name == "svd" and 3 or 2 do
            outs[k] = tide.full(3, 9)
        end
        t.error_has(function() tide.linalg[name](tide.tensor(matrix), { out = outs }) end, "inf or NaN")
        for _, out in ipairs(outs) do
            t.eq(out:tolist(), { 9, 9, 9 })
        end
    end)
end

-- ---- memory that is shared with arguments ----

t.test("out_of_what_picks_elements_shares_no_memory_with_what_is_read", function()
    local x, row = tide.rand(4, 4), tide.tensor { 1, 2, 3, 1 }
    local grid, rest = tide.ones(4, 4, { dtype = tide.int64 }), tide.rand(3, 5):narrow(2, 1, 2)
    for what, call in pairs {
        gather = function() tide.gather(x, 1, grid, { out = x }) end,
        ["gather: its index"] = function() tide.gather(row:clone(), 1, row:narrow(1, 2, 3), { out = row:narrow(1, 1, 1) }) end,
        take = function() tide.take(x, grid, { out = x }) end,
        ["take: its index"] = function() tide.take(grid:clone(), grid, { out = grid }) end,
        index_select = function() tide.index_select(x, 1, row, { out = x }) end,
        masked_select = function() tide.masked_select(x, x:gt(0), { out = x }) end,
        cat = function() tide.cat({ x, x }, { out = x }) end,
        ["cat: one with gaps"] = function() tide.cat({ rest, rest }, { dim = 2, out = rest }) end,
        stack = function() tide.stack({ x[1], x[2] }, { out = x }) end,
        ["scatter: its source"] = function() tide.scatter(tide.ones(4, 4), 1, grid, x, { out = x }) end,
        kthvalue = function() tide.kthvalue(x, 2, 1, true, { out = { x:narrow(1, 1, 1), tide.empty(0, { dtype = tide.int64 }) } }) end,
        topk = function() tide.topk(x, 1, 1, { out = { x:narrow(1, 1, 1), tide.empty(0, { dtype = tide.int64 }) } }) end,
        max = function() tide.max(x, 1, { keepdim = true, out = { x:narrow(1, 1, 1), tide.empty(0, { dtype = tide.int64 }) } }) end,
    } do
        local before = x:clone()
        t.error_has(call, what:match("^[%w_]+") .. ": out= shares memory with an argument", what)
        t.is_true(tide.equal(x, before), what)
    end
end)

t.test("out_of_sort_and_of_running_extremes_may_be_the_operand", function()
    for _, name in ipairs { "sort", "cummax", "cummin" } do
        local x = tide.tensor { { 3.0, 1, 2 }, { 5, 9, 7 } }
        local values, places = tide[name](x, 2)
        local into = tide.empty(0, { dtype = tide.int64 })
        tide[name](x, 2, { out = { x, into } })
        t.is_true(tide.equal(x, values) and tide.equal(into, places), name)
    end
end)

-- ---- one result or two ----

t.test("max_min_and_median_take_one_tensor_without_a_dim_and_two_with_one", function()
    local x = tide.tensor { { 3.0, 1, 2 }, { 5, 9, 7 } }
    for _, name in ipairs { "max", "min", "median", "nanmedian" } do
        local out, places = tide.empty(4), tide.empty(0, { dtype = tide.int64 })
        local got = table.pack(tide[name](x, { out = out }))
        t.is_true(got.n == 1 and rawequal(got[1], out), name)
        t.eq(out:item(), tide[name](x):item(), name)
        t.error_has(function() tide[name](x, { out = { out, places } }) end, name .. ": one result: out= must be one tensor")
        t.error_has(function() tide[name](x, 2, { out = out }) end,
            name .. ": 2 results: out= must be a list of 2 tensors (values, indices), got 1")
        got = table.pack(tide[name](x, 2, { out = { out, places } }))
        t.is_true(got.n == 2 and rawequal(got[1], out) and rawequal(got[2], places), name)
        local values, where = tide[name](x, 2)
        t.is_true(tide.equal(out, values) and tide.equal(places, where), name)
    end
    t.error_has(function() tide.max(x, 2, { out = { tide.empty(0, { dtype = tide.float64 }), tide.empty(0, { dtype = tide.int64 }) } }) end,
        "max: the result is float32, out is float64")
    local wide = tide.max(x, { out = tide.empty(0, { dtype = tide.float64 }) })
    t.eq({ wide.dtype, wide:item() }, { tide.float64, 9 })
end)

t.test("what_an_operator_returned_serves_as_out_again", function()
    local x = tide.rand(3, 5)
    local results = { tide.topk(x, 2) }
    local y = tide.rand(3, 5)
    tide.topk(y, 2, { out = results })
    local values, places = y:topk(2)
    t.is_true(tide.equal(results[1], values) and tide.equal(results[2], places))
    values, places = y:sort { descending = true, out = { tide.empty(0), tide.empty(0, { dtype = tide.int64 }) } }
    t.is_true(tide.equal(values:narrow(2, 1, 2), results[1]) and tide.equal(places:narrow(2, 1, 2), results[2]))
end)

t.test("lists_of_out_may_be_columns_of_one_tensor", function()
    local both, x = tide.zeros(3, 2), tide.rand(3, 4)
    tide.aminmax(x, { dim = 2, out = { both:select(2, 1), both:select(2, 2) } })
    t.is_true(tide.equal(both, tide.stack({ x:amin(2), x:amax(2) }, 2)))
end)

-- ---- draws ----

t.test("draws_into_out", function()
    local out = tide.empty(0, { dtype = tide.int64 })
    t.is_true(rawequal(tide.multinomial(tide.tensor { 0.0, 1, 0 }, 1, { out = out }), out))
    t.eq(out:tolist(), { 2 })
    for _, dtype in ipairs { tide.float32, tide.float64, tide.int64, tide.uint8, tide.bool } do
        local ones = tide.bernoulli(tide.ones(3), { out = tide.empty(0, { dtype = dtype }) })
        t.eq({ ones.dtype, ones:sum():item() }, { dtype, 3 })
    end
    local order = tide.randperm(5, { out = tide.empty(0, { dtype = tide.float32 }) })
    t.eq({ order.dtype, order:sort():tolist() }, { tide.float32, { 1, 2, 3, 4, 5 } })
    t.error_has(function() tide.multinomial(tide.ones(3), 1, { out = tide.empty(0) }) end,
        "multinomial: the result is int64, out is float32")
end)

-- ---- functions of tide.linalg that are no operators ----

t.test("norms_condition_numbers_and_least_squares_take_out", function()
    local A, B = tide.tensor { { 2.0, 1 }, { 1, 3 }, { 0, 1 } }, tide.tensor { { 1.0 }, { 2 }, { 3 } }
    local square = A:narrow(1, 1, 2)
    for what, call in pairs {
        norm = function(o) return tide.linalg.norm(A, o) end,
        ["norm of an ord"] = function(o) return tide.linalg.norm(A, "nuc", o) end,
        vector_norm = function(o) return tide.linalg.vector_norm(A, 3, o) end,
        matrix_norm = function(o) return tide.linalg.matrix_norm(A, o) end,
        cond = function(o) return tide.linalg.cond(square, o) end,
    } do
        local name, out = what:match("^%w+_?%w*"), tide.empty(4)
        t.is_true(rawequal(call { out = out }, out), what)
        same(out, call(nil), what)
        t.error_has(function() call { out = tide.empty(0, { dtype = tide.int64 }) } end, name .. ": ", what)
        t.error_has(function() call { out = { out } } end, name .. ": ", what)
        A:requires_grad_(true)
        square = A:narrow(1, 1, 2)
        t.error_has(function() call { out = out } end, name .. ": out= can't take part in autograd", what)
        A:requires_grad_(false)
        square = A:narrow(1, 1, 2)
    end
    local outs = { tide.empty(0), tide.empty(0), tide.empty(0, { dtype = tide.int64 }), tide.empty(0) }
    local got, wants = { tide.linalg.lstsq(A, B, { driver = "gelsd", out = outs }) }, { tide.linalg.lstsq(A, B, { driver = "gelsd" }) }
    for k, want in ipairs(wants) do
        t.is_true(rawequal(got[k], outs[k]))
        same(outs[k], want, "lstsq " .. k)
    end
    t.error_has(function() tide.linalg.lstsq(A, B, { out = { tide.empty(0) } }) end, "lstsq: 4 results")
end)

t.test("a_form_in_place_takes_no_out", function()
    local x, out = tide.ones(2), tide.zeros(2)
    t.error_has(function() x:add_(1, { out = out }) end, "add_: no option 'out'")
    t.eq({ x:tolist(), out:tolist() }, { { 1, 1 }, { 0, 0 } })
end)
