-- test_dtype.lua: the 16-bit floats and the small integers as a person meets them: creation, printing,
-- conversion, arithmetic with numbers, gradients, and what finfo and iinfo say.
local t = require "harness"
local tide = require "tide"
local nn, F = tide.nn, tide.nn.functional

local function to_list(x)
    return x:to(tide.float64):tolist()
end

t.test("the_default_dtype_is_that_of_all_that_is_made_without_one", function()
    local _ <close> = setmetatable({}, { __close = function() tide.set_default_dtype(tide.float32) end })
    for _, dtype in ipairs { tide.float64, tide.float16, tide.bfloat16, tide.float32 } do
        tide.set_default_dtype(dtype)
        t.eq(tide.get_default_dtype(), dtype)
        t.eq(tide.default_dtype, dtype)
        for name, x in pairs { tensor = tide.tensor { 0.5 }, zeros = tide.zeros(1), rand = tide.rand(1), randn = tide.randn(1), eye = tide.eye(1),
            linspace = tide.linspace(0, 1, 2), arange = tide.arange(0.5, 2), quotient = tide.tensor { 1 } / 2, root = tide.tensor { 4 }:sqrt(),
            weight = tide.nn.Linear(1, 1).weight, full = tide.full({ 1 }, 0.5), window = tide.hann_window(3) } do
            t.eq(x.dtype, dtype, name)
        end
        t.eq(tide.tensor { 1 }.dtype, tide.int64)
        t.eq(tide.tensor { 0.5 }:float().dtype, tide.float32)
    end
    t.error_has(function() tide.set_default_dtype(tide.int64) end, "the default dtype is a floating one, got int64")
    t.error_has(function() tide.default_dtype = tide.float64 end, "tide.set_default_dtype(dtype) sets it")
end)

t.test("values_round_to_the_nearest_of_the_dtype", function()
    t.eq(tide.tensor({ 1.1, 300, 65519 }, { dtype = tide.float16 }):tolist(), { 1.099609375, 300.0, 65504.0 })
    t.eq(tide.tensor({ 1.1, 301 }, { dtype = tide.bfloat16 }):tolist(), { 1.1015625, 300.0 })
    t.eq(tide.tensor({ 300, -129 }):to(tide.int8):tolist(), { 44, 127 })
    t.eq(tide.tensor({ 70000 }):to(tide.int16):tolist(), { 4464 })
end)

t.test("methods_and_names_convert", function()
    local x = tide.tensor { 1.5, -2 }
    for method, dtype in pairs { half = "float16", bfloat16 = "bfloat16", short = "int16", char = "int8" } do
        t.eq(x[method](x).dtype, tide[dtype], method)
        t.eq(x:to(dtype).dtype, tide[dtype], dtype)
    end
    t.eq(tide.half, tide.float16)
    t.eq(tide.short, tide.int16)
    t.eq(tide.char, tide.int8)
    local h = x:half()
    t.eq(h:half():data_ptr(), h:data_ptr(), "nothing to convert")
end)

t.test("they_print_like_other_dtypes", function()
    t.eq(tostring(tide.tensor({ 1.5, 2 }, { dtype = tide.bfloat16 })), "[1.5000, 2.0000]\nbfloat16 (2) cpu")
    t.eq(tostring(tide.tensor({ -1, 100 }, { dtype = tide.int8 })), "[ -1, 100]\nint8 (2) cpu")
    t.eq(tostring(tide.tensor(1.1, { dtype = tide.bfloat16 })), "1.1016  bfloat16 () cpu")
    t.eq(tostring(tide.tensor(1.1, { dtype = tide.float16 })), "1.0996  float16 () cpu")
end)

t.test("numbers_do_not_widen_and_writes_in_place_keep_the_dtype", function()
    for _, name in ipairs { "float16", "bfloat16" } do
        local x = tide.zeros(2, { dtype = tide[name] })
        t.eq((x + 1).dtype, tide[name])
        t.eq((x + 0.5).dtype, tide[name])
        t.eq(to_list(x + 1), { 1.0, 1.0 })
        x:add_(tide.tensor { 0.25, 3 })
        t.eq(x.dtype, tide[name])
        t.eq(to_list(x), { 0.25, 3.0 })
    end
    t.eq((tide.ones(1, { dtype = tide.int8 }) + 1).dtype, tide.int8)
    t.eq((tide.ones(1, { dtype = tide.int8 }) + 0.5).dtype, tide.float32)
end)

t.test("a_number_is_compared_as_the_dtype_holds_it", function()
    local x = tide.tensor({ 1.1 }, { dtype = tide.bfloat16 })
    t.eq((x):eq(1.1):tolist(), { true })
    t.eq((x):gt(1.1):tolist(), { false })
end)

t.test("small_integers_wrap_around", function()
    local x = tide.tensor({ 127, -128, 100 }, { dtype = tide.int8 })
    t.eq((x + 1):tolist(), { -128, -127, 101 })
    t.eq((x * x):tolist(), { 1, 0, 16 })
    t.eq((-x):tolist(), { -127, -128, -100 })
    t.eq(x:sum():item(), 99, "in int64")
    local y = tide.tensor({ 32767, 200 }, { dtype = tide.int16 })
    t.eq((y + 1):tolist(), { -32768, 201 })
    t.eq((y * y):tolist(), { 1, -25536 })
    t.eq(tide.full({ 2, 3 }, 100, { dtype = tide.int8 }):matmul(tide.ones(3, 1, { dtype = tide.int8 })):tolist(),
        { { 44 }, { 44 } })
end)

-- 1000 times 1 would stay at 256 in bfloat16.
t.test("sums_products_and_softmax_are_taken_in_float32_and_rounded_once", function()
    for _, name in ipairs { "float16", "bfloat16" } do
        local dtype = tide[name]
        t.eq(tide.ones(1000, { dtype = dtype }):sum():item(), 1000.0)
        t.eq(tide.ones(1000, 3, { dtype = dtype }):sum(1):tolist(), { 1000.0, 1000.0, 1000.0 })
        t.eq(tide.ones(1000, { dtype = dtype }):mean():item(), 1.0)
        for _, n in ipairs { 2, 40, 200 } do -- plain, in float32, by the library's own
            local x = tide.randint(1, 4, { n, n }):to(dtype)
            local y = tide.randint(1, 4, { n, n }):to(dtype)
            local exact = x:double():matmul(y:double()):to(dtype)
            t.eq(x:matmul(y):tolist(), exact:tolist(), name .. " matmul of " .. n)
            local biased = (x:double():matmul(y:double():t()) + x[1]:double()):to(dtype)
            t.eq(F.linear(x, y, x[1]):tolist(), biased:tolist(), name .. " linear of " .. n)
        end
        local x = tide.randn(3, 50):to(dtype)
        t.eq(x:softmax(2):tolist(), x:float():softmax(2):to(dtype):tolist(), name)
        t.eq(x:var(2):tolist(), x:double():var(2):to(dtype):tolist(), name)
    end
end)

t.test("random_numbers_below_1_stay_below_1", function()
    for _, name in ipairs { "float16", "bfloat16" } do
        local x = tide.rand(20000, { dtype = tide[name] })
        t.eq(x.dtype, tide[name])
        t.is_true(x:max():item() < 1)
        t.is_true(math.abs(x:float():mean():item() - 0.5) < 0.02)
        t.is_true(math.abs(tide.randn(20000, { dtype = tide[name] }):float():std():item() - 1) < 0.05)
    end
    local rare = tide.full({ 20000 }, 0.0005, { dtype = tide.bfloat16 }):bernoulli():float():sum():item()
    t.is_true(rare > 0 and rare < 40, "rare events stay rare: " .. rare)
    t.eq(tide.randint(1, 3, { 4 }, { dtype = tide.int8 }).dtype, tide.int8)
end)

t.test("gradients_have_the_dtype_of_their_leaves", function()
    local x = tide.tensor({ 1.5, 2 }, { dtype = tide.bfloat16, requires_grad = true })
    local y = tide.tensor({ 3.0, 4.5 }, { requires_grad = true });
    (x * y):sum():backward()
    t.eq(x.grad.dtype, tide.bfloat16)
    t.eq(y.grad.dtype, tide.float32)
    t.eq(x.grad:tolist(), { 3.0, 4.5 })
    t.eq(y.grad:tolist(), { 1.5, 2.0 })
end)

t.test("a_step_of_training_comes_close_to_that_in_float32", function()
    local losses, weights = {}, {}
    for _, dtype in ipairs { tide.float32, tide.bfloat16, tide.float16 } do
        tide.manual_seed(1)
        local model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))
        local x, y = tide.randn(32, 4):to(dtype), tide.randint(1, 3, { 32 })
        model:to(dtype)
        local optimizer = tide.optim.SGD(model:parameters(), { lr = 0.1 })
        for _ = 1, 10 do
            optimizer:zero_grad()
            local loss = F.cross_entropy(model(x), y)
            loss:backward()
            optimizer:step()
            losses[dtype] = loss
        end
        weights[dtype] = model:parameters()[1]
        t.eq(losses[dtype].dtype, dtype)
        t.eq(weights[dtype].dtype, dtype)
        t.eq(weights[dtype].grad.dtype, dtype)
        local off = (weights[dtype]:float() - weights[tide.float32]):abs():max():item()
        t.is_true(off < 0.02, tostring(dtype) .. " " .. off)
        t.is_true(math.abs(losses[dtype]:item() - losses[tide.float32]:item()) < 0.02)
    end
end)

t.test("finfo_says_what_a_floating_dtype_holds", function()
    local f = tide.finfo(tide.float16)
    t.eq(f.bits, 16)
    t.eq(f.max, 65504.0)
    t.eq(f.min, -65504.0)
    t.eq(f.eps, 2.0 ^ -10)
    t.eq(f.tiny, 2.0 ^ -14)
    t.eq(f.smallest_normal, f.tiny)
    t.eq(tide.finfo("bfloat16").eps, 2.0 ^ -7)
    t.eq(tide.finfo().dtype, "float32")
    t.eq(tide.finfo(tide.float64).eps, 2.0 ^ -52)
    for _, name in ipairs { "float16", "bfloat16", "float32", "float64" } do
        local max = tide.tensor(tide.finfo(name).max, { dtype = tide[name] })
        t.eq(max:item(), tide.finfo(name).max, name)
        t.is_true((max * (1 + tide.finfo(name).eps)):item() == math.huge, name)
    end
    t.error_has(function() tide.finfo(tide.int8) end, "finfo: a floating dtype expected, got int8: ask iinfo")
end)

t.test("iinfo_says_what_an_integer_dtype_holds", function()
    t.eq({ tide.iinfo("uint8").min, tide.iinfo("uint8").max }, { 0, 255 })
    t.eq({ tide.iinfo("int8").min, tide.iinfo("int8").max }, { -128, 127 })
    t.eq({ tide.iinfo(tide.int16).min, tide.iinfo(tide.int16).max }, { -32768, 32767 })
    t.eq({ tide.iinfo("int64").min, tide.iinfo("int64").max }, { math.mininteger, math.maxinteger })
    t.eq(tide.iinfo("int32").bits, 32)
    t.error_has(function() tide.iinfo(tide.float16) end, "iinfo: an integer dtype expected, got float16: ask finfo")
    t.error_has(function() tide.iinfo(tide.bool) end, "iinfo: an integer dtype expected, got bool")
end)
