-- test_layouts.lua: memory formats: which strides results have, also of the shapes that several formats fit,
-- and that values do not depend on them. Strides are those that PyTorch gives.
local t = require "harness"

local last, last_3d = tide.channels_last, tide.channels_last_3d

local function strides(x)
    return tostring(x:stride())
end

local function to_last(x)
    return x:to { memory_format = last }
end

t.test("to_and_contiguous_lay_a_tensor_out", function()
    local x = tide.arange(2 * 3 * 4 * 5):reshape(2, 3, 4, 5)
    local y = to_last(x)
    t.eq(strides(y), "(60, 1, 15, 3)")
    t.is_true(tide.equal(x, y))
    t.is_true(y:is_contiguous { memory_format = last } and not y:is_contiguous())
    t.is_true(x:is_contiguous() and not x:is_contiguous { memory_format = last })
    t.eq(to_last(y):data_ptr(), y:data_ptr(), "it lies so already")
    t.eq(y:contiguous { memory_format = last }:data_ptr(), y:data_ptr())
    t.eq(strides(y:contiguous()), "(60, 20, 5, 1)")
    t.eq(strides(y:to { memory_format = tide.contiguous_format }), "(60, 20, 5, 1)")
    t.eq(strides(x:to(tide.float64, { memory_format = last })), "(60, 1, 15, 3)")
    t.eq(strides(x:clone { memory_format = last }), "(60, 1, 15, 3)")
    t.eq(strides(y:clone()), "(60, 1, 15, 3)")
    t.eq(strides(y:double()), "(60, 1, 15, 3)")
    t.eq(strides(tide.empty(2, 3, 4, 5, { memory_format = last })), "(60, 1, 15, 3)")
    t.eq(strides(tide.zeros_like(x, { memory_format = last })), "(60, 1, 15, 3)")
    t.eq(strides(tide.rand_like(x:float(), { memory_format = last })), "(60, 1, 15, 3)")
    local volume = tide.ones(2, 3, 4, 5, 6):to { memory_format = last_3d }
    t.eq(strides(volume), "(360, 1, 90, 18, 3)")
    t.is_true(volume:is_contiguous { memory_format = last_3d } and not volume:is_contiguous())
    local g = tide.ones(2, 3, 4, 5, { requires_grad = true })
    to_last(g * 2):sum():backward()
    t.eq(g.grad:sum():item(), 240)
end)

t.test("formats_are_refused_where_there_are_none", function()
    t.error_has(function() tide.ones(2, 3):to { memory_format = last } end, "to: channels_last is for tensors of 4 dims, got 2")
    t.error_has(function() tide.empty(2, 3, { memory_format = last_3d }) end, "empty: channels_last_3d is for tensors of 5 dims, got 2")
    t.error_has(function() tide.ones(1):clone { memory_format = "odd" } end, 'clone: there is no memory_format "odd" here')
    t.error_has(function() tide.empty(2, { memory_format = "preserve" }) end, 'empty: there is no memory_format "preserve" here')
    t.error_has(function() tide.ones(1):is_contiguous { memory_format = "odd" } end, "is_contiguous: ")
end)

-- shape; is it contiguous in channels_last; strides of to, of contiguous and of clone in that format
local ambiguous = {
    { { 2, 1, 4, 5 }, true, "(20, 1, 5, 1)", "(20, 20, 5, 1)", "(20, 1, 5, 1)" },
    { { 2, 3, 1, 1 }, true, "(3, 1, 3, 3)", "(3, 1, 1, 1)", "(3, 1, 3, 3)" },
    { { 1, 1, 1, 5 }, true, "(5, 1, 5, 1)", "(5, 5, 5, 1)", "(5, 1, 5, 1)" },
    { { 1, 3, 1, 5 }, false, "(15, 1, 15, 3)", "(15, 1, 15, 3)", "(15, 1, 15, 3)" },
    { { 2, 1, 1, 1 }, true, "(1, 1, 1, 1)", "(1, 1, 1, 1)", "(1, 1, 1, 1)" },
}

for _, case in ipairs(ambiguous) do
    local shape = tostring(tide.ones(case[1]).shape)
    t.test("one_channel_or_one_pixel_" .. shape, function()
        local x = tide.ones(case[1])
        t.eq(x:is_contiguous { memory_format = last }, case[2])
        t.eq(strides(to_last(x)), case[3])
        t.eq(strides(x:contiguous { memory_format = last }), case[4])
        t.eq(strides(x:clone { memory_format = last }), case[5])
        t.eq(to_last(x):is_contiguous(), case[2], "row-major at once")
    end)
end

t.test("what_is_like_a_tensor_keeps_the_order_of_its_dims", function()
    local x = tide.ones(4, 6, 8)
    for _, case in ipairs {
        { x, "(48, 8, 1)" }, { x:transpose(1, 3), "(1, 8, 48)" }, { x[":, ::2"], "(24, 8, 1)" },
        { x:transpose(1, 3)["::2"], "(1, 4, 24)" }, { x["1:1"]:expand(4, 6, 8), "(48, 8, 1)" },
        { x:permute(3, 1, 2)[":, ::2"], "(1, 48, 8)" }, { x[":, 2:2"], "(8, 8, 1)" },
        { x:transpose(1, 2)["1:1"], "(8, 8, 1)" },
        { to_last(tide.ones(2, 3, 4, 5))[":, 1:2"], "(40, 1, 10, 2)" },
        { to_last(tide.ones(2, 3, 4, 5))[":, :, ::2"], "(30, 1, 15, 3)" },
        { to_last(tide.ones(2, 1, 4, 5)), "(20, 1, 5, 1)" },
    } do
        local y, want = case[1], case[2]
        t.eq(strides(tide.empty_like(y)), want, "empty_like")
        t.eq(strides(tide.full_like(y, 3)), want, "full_like")
        t.eq(strides(y:clone()), want, "clone")
        t.eq(strides(y:to(tide.float64)), want, "to")
        t.eq(strides(y:flip(1)), want, "flip")
        t.is_true(tide.equal(y:flip(1):flip(1), y))
        t.eq(strides(tide.zeros_like(y, { memory_format = tide.contiguous_format })), strides(tide.empty(y.shape)))
    end
end)

t.test("cat_keeps_channels_last_where_all_have_it", function()
    local x = to_last(tide.arange(2 * 3 * 4 * 6):reshape(2, 3, 4, 6))
    t.eq(strides(tide.cat({ x, x }, 2)), "(144, 1, 36, 6)")
    t.eq(strides(tide.cat({ x, x:contiguous() }, 2)), "(144, 24, 6, 1)")
    t.is_true(tide.equal(tide.cat({ x, x }, 2), tide.cat({ x:contiguous(), x:contiguous() }, 2)))
end)

t.test("the_gradient_of_a_leaf_lies_as_the_leaf_does", function()
    local x = to_last(tide.randn(2, 3, 4, 5)):requires_grad_()
    for _ = 1, 2 do
        (x * tide.ones(2, 3, 4, 5)):contiguous():sum():backward()
        t.eq(strides(x.grad), "(60, 1, 15, 3)")
    end
    t.eq(x.grad:sum():item(), 240)
    local y = tide.randn(4, 5):t():requires_grad_()
    y:contiguous():sum():backward()
    t.eq(strides(y.grad), "(1, 5)")
    local z = tide.randn(8, 5)["::2"]:requires_grad_()
    z:sum():backward()
    t.eq(strides(z.grad), "(5, 1)", "one with gaps: row-major")
    local w = tide.randn(4, 5):t():requires_grad_()
    local total = (w * w):contiguous():sum()
    total:backward { create_graph = true }
    t.eq(strides(w.grad), "(1, 5)")
    t.is_true(w.grad.requires_grad)
end)

t.test("a_module_goes_to_channels_last", function()
    local nn = tide.nn
    local net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 2, 3), nn.Flatten(), nn.Linear(2, 5))
    local x = tide.randn(2, 3, 5, 5)
    local want = net(x)
    t.is_true(rawequal(net:to { memory_format = last }, net))
    t.eq(strides(net:parameters()[1]), "(27, 1, 9, 3)")
    t.eq(strides(net:parameters()[5]), "(2, 1)", "a matrix has no such format")
    local got = net(to_last(x))
    t.is_true((got - want):abs():amax():item() < 1e-5)
    got:sum():backward()
    t.eq(strides(net:parameters()[1].grad), "(27, 1, 9, 3)")
    t.eq(net:to(tide.float64, { memory_format = last }):parameters()[5].dtype, tide.float64)
end)

-- ---- convolution ----

local cases = { -- n, c, h, w, o, kh, kw, groups, stride, padding, dilation
    { 2, 3, 9, 8, 4, 3, 3, 1, 1, 1, 1 }, { 2, 32, 14, 14, 64, 3, 3, 1, 1, 1, 1 }, { 1, 16, 7, 7, 16, 3, 3, 16, 2, 1, 1 },
    { 3, 8, 6, 6, 8, 1, 1, 2, 1, 0, 1 }, { 2, 1, 5, 5, 3, 3, 3, 1, 1, 1, 1 }, { 2, 64, 8, 8, 64, 3, 3, 1, 1, 2, 2 },
}

local function convolve(case, dtype, lay_x, lay_weight)
    local n, c, h, w, o, kh, kw, groups, stride, padding, dilation = table.unpack(case)
    tide.manual_seed(1)
    local x = lay_x(tide.randn(n, c, h, w):to(dtype)):detach():requires_grad_()
    local weight = lay_weight((tide.randn(o, c // groups, kh, kw) * 0.1):to(dtype)):detach():requires_grad_()
    local bias = tide.randn(o):to(dtype):requires_grad_()
    local y = tide.conv2d(x, weight, bias, stride, padding, dilation, groups)
    y:backward(tide.arange(y:numel()):float():reshape(y.shape):sin():to(dtype))
    return { y, x.grad, weight.grad, bias.grad }
end

for _, dtype in ipairs { tide.float32, tide.float64, tide.bfloat16, tide.float16 } do
    t.test("convolution_takes_channels_last_in_" .. tostring(dtype), function()
        local function same(x) return x end
        local tolerance = dtype == tide.float64 and 1e-12 or dtype == tide.float32 and 1e-4 or 0.04
        for _, case in ipairs(cases) do
            local want = convolve(case, dtype, same, same)
            for _, lays in ipairs { { to_last, same }, { same, to_last }, { to_last, to_last } } do
                local got = convolve(case, dtype, lays[1], lays[2])
                for k = 1, 4 do
                    local away = (got[k] - want[k]):abs():double():amax():item()
                    t.is_true(away <= tolerance, ("result %d of %s: %g away"):format(k, table.concat(case, ","), away))
                end
                t.is_true(got[1]:is_contiguous { memory_format = last }, "the result has it")
            end
        end
    end)
end

t.test("convolution_hands_channels_last_on", function()
    local x, weight = tide.randn(2, 4, 5, 5), tide.randn(6, 4, 3, 3)
    t.eq(strides(tide.conv2d(to_last(x), weight)), "(54, 1, 18, 6)")
    t.eq(strides(tide.conv2d(x, to_last(weight))), "(54, 1, 18, 6)")
    t.eq(strides(tide.conv2d(x, weight)), "(54, 9, 3, 1)")
    t.eq(strides(tide.conv2d(tide.randn(2, 1, 4, 5), tide.ones(2, 1, 1, 1))), "(40, 20, 5, 1)", "one channel says nothing")
    t.eq(strides(tide.conv2d(to_last(tide.randn(2, 1, 4, 5)), tide.ones(2, 1, 1, 1))), "(40, 1, 10, 2)")
    t.eq(strides(tide.conv2d(tide.randn(2, 4, 3, 3), tide.randn(4, 4, 3, 3))), "(4, 1, 1, 1)")
    t.eq(strides(tide.conv2d(x[1], to_last(weight))), "(9, 3, 1)", "a single image")
    local sliced = to_last(tide.randn(2, 8, 5, 5))[":, ::2"]
    local y = tide.conv2d(sliced, weight)
    t.is_true((y - tide.conv2d(sliced:contiguous(), weight)):abs():amax():item() < 1e-4)
    t.eq(strides(y), "(54, 1, 18, 6)")
end)

t.test("convolution_in_channels_last_has_second_derivatives", function()
    local x = to_last(tide.randn(1, 2, 4, 4, { dtype = tide.float64 })):requires_grad_()
    local weight = to_last(tide.randn(2, 2, 3, 3, { dtype = tide.float64 })):requires_grad_()
    local function fn(a, b) return tide.conv2d(a, b, nil, 1, 1) end
    t.is_true(tide.autograd.gradcheck(fn, { x, weight }))
    t.is_true(tide.autograd.gradgradcheck(fn, { x, weight }))
end)

t.test("integers_are_convolved", function()
    local x = tide.arange(2 * 4 * 4 * 5):reshape(2, 4, 4, 5)
    for _, case in ipairs { { 4, 1, 1, 0, 1 }, { 4, 1, 2, 1, 1 }, { 2, 2, 1, 2, 2 }, { 1, 4, { 2, 1 }, { 0, 3 }, 1 } } do
        local channels, groups, stride, padding, dilation = table.unpack(case)
        local weight = tide.arange(4 * channels * 2 * 3):reshape(4, channels, 2, 3) - 20
        local bias = tide.tensor { 1, -2, 3, -4 }
        local got = tide.conv2d(x, weight, bias, stride, padding, dilation, groups)
        local want = tide.conv2d(x:double(), weight:double(), bias:double(), stride, padding, dilation, groups)
        t.eq(got.dtype, tide.int64)
        t.is_true(tide.equal(got:double(), want))
        t.is_true(tide.equal(tide.conv2d(to_last(x), weight, bias, stride, padding, dilation, groups), got))
        for _, dtype in ipairs { tide.int32, tide.int16, tide.int8, tide.uint8 } do
            local narrow = tide.conv2d(x:to(dtype), weight:to(dtype), bias:to(dtype), stride, padding, dilation, groups)
            t.is_true(tide.equal(narrow, got:to(dtype)), "sums wrap around")
        end
    end
    t.error_has(function() tide.conv2d(x:bool(), x["1:1, :, 1:1, 1:1"]:bool()) end, "conv2d: not for bool")
end)

-- ---- short rows ----

local short = {
    { sizes = { 48, 48, 2 }, strides = { 0, 2, 1 } },
    { sizes = { 48, 48, 2 }, strides = { 2, 0, 1 } },
    { sizes = { 48, 48, 2 }, strides = { 2, 96, 1 } },
    { sizes = { 30, 7, 11, 3 }, strides = { 0, 3, 0, 1 } },
    { sizes = { 30, 7, 11, 3 }, strides = { 3, 0, 90, 1 } },
    { sizes = { 13, 100, 5 }, strides = { 0, 0, 3 } },
    { sizes = { 13, 100, 5 }, strides = { 1, 13, 1300 } },
    { sizes = { 13, 5, 40 }, strides = { 0, 0, 1 } },
    { sizes = { 900, 3 }, strides = { 4, 1 } },
    { sizes = { 900, 9 }, strides = { 10, 1 } },
}

local function places(view)
    local list = {}
    local function walk(d, at)
        if d > #view.sizes then
            list[#list + 1] = at
            return
        end
        for k = 0, view.sizes[d] - 1 do
            walk(d + 1, at + k * view.strides[d])
        end
    end
    walk(1, 0)
    return list
end

t.test("elements_of_short_rows_are_found_where_they_lie", function()
    for _, dtype in ipairs { tide.uint8, tide.int16, tide.float32, tide.float64 } do
        for n, view in ipairs(short) do
            local at = places(view)
            local last = at[#at] + 1
            local memory = tide.remainder(tide.arange(last), 101):to(dtype)
            local x = memory:as_strided(view.sizes, view.strides)
            local ones = tide.ones(table.unpack(view.sizes)):to(dtype)
            local sums = (x + ones):reshape(-1):tolist()
            for k, place in ipairs(at) do
                if sums[k] ~= place % 101 + 1 then
                    t.eq(sums[k], place % 101 + 1, ("view %d, element %d"):format(n, k))
                end
            end
            local overlap = false
            for _, stride in ipairs(view.strides) do
                overlap = overlap or stride == 0
            end
            if not overlap then
                local count = tide.arange(#at):remainder(101):to(dtype):reshape(table.unpack(view.sizes))
                local to = tide.zeros(last):to(dtype)
                to:as_strided(view.sizes, view.strides):add_(count)
                local got = to:tolist()
                for k, place in ipairs(at) do
                    if got[place + 1] ~= (k - 1) % 101 then
                        t.eq(got[place + 1], (k - 1) % 101, ("result %d, element %d"):format(n, k))
                    end
                end
            end
        end
    end
end)

-- An element of y stands where it did in x, whose dims were put in this order.
local function check_turned(x, order, name)
    local n, given = #order, x:flatten():tolist()
    local shape, strides_of, stride = {}, {}, 1
    for d = n, 1, -1 do
        strides_of[d], stride = stride, stride * x.shape[d]
    end
    for d = 1, n do
        shape[d] = x.shape[order[d]]
    end
    local want, at = {}, {}
    for d = 1, n do
        at[d] = 0
    end
    for k = 1, #given do
        local from, d = 1, n
        for e = 1, n do
            from = from + at[e] * strides_of[order[e]]
        end
        want[k] = given[from]
        while d > 0 do
            at[d] = at[d] + 1
            if at[d] < shape[d] then
                break
            end
            at[d], d = 0, d - 1
        end
    end
    local turned = x:permute(order):contiguous()
    t.eq(turned:flatten():tolist(), want, name)
    local back = tide.zeros_like(x)
    back:permute(order):copy_(turned)
    t.eq(back:flatten():tolist(), given, name .. ", back")
end

t.test("elements_of_every_size_are_turned_to_their_places", function()
    for _, dtype in ipairs { "uint8", "int16", "float32", "int64" } do
        for _, case in ipairs {
            { { 70, 67 }, { 2, 1 } }, { { 1500, 3 }, { 2, 1 } }, { { 3, 1500 }, { 2, 1 } }, { { 5, 34, 33 }, { 1, 3, 2 } },
            { { 2, 9, 15, 17 }, { 1, 4, 2, 3 } }, { { 2, 5, 40, 11 }, { 1, 3, 4, 2 } }, { { 2, 9, 33, 8 }, { 4, 1, 3, 2 } },
            { { 1, 50, 45, 2 }, { 1, 2, 4, 3 } }, { { 3, 40, 40 }, { 3, 1, 2 } }, { { 2200, 2 }, { 2, 1 } },
            { { 1100, 4 }, { 2, 1 } }, { { 3, 400, 5 }, { 1, 3, 2 } }, { { 4, 3, 90, 2, 3 }, { 1, 2, 5, 4, 3 } },
            { { 2, 11, 2, 20, 2, 8 }, { 1, 2, 4, 6, 3, 5 } }, { { 9, 2, 50, 3, 5 }, { 1, 3, 5, 2, 4 } },
            { { 3, 3, 3, 3, 3, 3, 2 }, { 7, 2, 4, 1, 6, 3, 5 } }, { { 2, 2, 700, 2 }, { 3, 1, 4, 2 } },
        } do
            local n = 1
            for _, size in ipairs(case[1]) do
                n = n * size
            end
            check_turned((tide.arange(n) % 251):to(tide[dtype]):reshape(case[1]), case[2], dtype .. " " .. table.concat(case[1], " "))
        end
    end
end)

-- As PyTorch's: a dim along which an operand repeats says nothing of the order; the next operand does.
t.test("an_expanded_operand_leaves_the_layout_to_the_next", function()
    local x, g = tide.randn(4, 5):t(), tide.randn(5):unsqueeze(-1):expand(5, 4)
    t.eq(strides(g * x), "(1, 5)")
    t.eq(strides(x * g), "(1, 5)")
    local a, b = tide.randn(3, 1, 5):expand(3, 4, 5), tide.randn(4, 3, 5):transpose(1, 2)
    t.eq(strides(a + b), "(5, 15, 1)")
    t.eq(strides(tide.where(b:gt(0), a, b)), "(5, 15, 1)")
    local c, d = tide.randn(1, 4, 1):expand(3, 4, 5), tide.randn(5, 4, 3):permute(3, 2, 1)
    t.eq(strides(c - d), "(1, 3, 12)")
    t.eq(strides(tide.randn(3, 4, 5) - d), "(20, 5, 1)")
    t.eq(strides(c * c), "(20, 5, 1)")
    -- gradients of a sum, which is expanded, lie as the operands do
    local p, q = tide.randn(4, 5):t():requires_grad_(), tide.randn(4, 5):t():requires_grad_()
    local grads = tide.autograd.grad((p * q):sum(2), { p, q }, { grad_outputs = tide.ones(5) })
    t.eq(strides(grads[1]), "(1, 5)")
    t.eq(strides(grads[2]), "(1, 5)")
end)

t.test("rows_that_are_turned_round_are_what_an_index_picks", function()
    tide.manual_seed(4)
    for _, n in ipairs { 2, 15, 16, 17, 37, 100, 1000 } do
        local back = tide.arange(n, 0, -1)
        for _, dtype in ipairs { "uint8", "bfloat16", "float32", "float64" } do
            for _, x in ipairs { tide.rand(7, n), tide.rand(3, 90, n), tide.rand(3, 5, n):transpose(1, 2) } do
                x = (x * 200):to(dtype)
                local last = x:dim()
                t.is_true(tide.equal(x:flip(last), x:index_select(last, back)), dtype .. " of " .. n)
                local both = x:index_select(last, back):index_select(1, tide.arange(x:size(1), 0, -1))
                t.is_true(tide.equal(x:flip(last, 1), both), "both ways, " .. dtype .. " of " .. n)
            end
        end
    end
end)

t.test("memory_formats_may_stand_by_themselves_in_to", function()
    local x = tide.randn(2, 3, 4, 5)
    local want = x:to({ memory_format = "channels_last" }):stride()
    for _, y in ipairs { x:to("channels_last"), x:to(tide.channels_last), x:to(tide.float64, "channels_last"), x:to("cpu", "channels_last"),
        x:to("channels_last", { copy = true }) } do
        t.eq(tostring(y:stride()), tostring(want))
        t.is_true(tide.allclose(y:double(), x:double(), { rtol = 2e-3 }))
    end
    local options = { copy = true }
    t.is_true(x:to("contiguous", options):data_ptr() ~= x:data_ptr())
    t.eq(options, { copy = true }, "the caller's table stays as it is")
    t.eq(tide.randn(1, 2, 3, 4, 5):to("channels_last_3d"):is_contiguous { memory_format = "channels_last_3d" }, true)
    local net = tide.nn.Sequential(tide.nn.Conv2d(3, 4, 3), tide.nn.BatchNorm2d(4)):to("channels_last")
    t.eq(net[1].weight:is_contiguous { memory_format = "channels_last" }, true)
    t.eq(net:to(tide.float64, tide.channels_last)[2].weight.dtype, tide.float64)
    for _, odd in ipairs { "channel_last", "channels-last", "chanels_last", "channels_lst" } do
        t.error_has(function() x:to(odd) end, 'is no memory format: did you mean "channels_last"?')
        t.error_has(function() tide.nn.Conv2d(1, 1, 1):to(odd) end, 'did you mean "channels_last"?')
    end
    t.error_has(function() x:to("cua") end, "is no device")
    t.error_has(function() x:to("float33") end, "is no device")
    t.error_has(function() x:contiguous("channels_last") end, '{memory_format = "channels_last"}')
    t.error_has(function() x:clone { memory_format = "channel_last" } end, '"channels_last" and "channels_last_3d" are')
end)
