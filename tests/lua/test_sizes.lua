-- test_sizes.lua: sizes, strides and offsets at the ends of what int64 counts. No view leaves its storage,
-- no product wraps, and what can't be is refused in one line.
local t = require "harness"

local max, min = math.maxinteger, math.mininteger

local function shows(x, want)
    t.eq(tostring(x), want)
end

-- A tensor of so many elements that share one place in memory.
local function endless(dtype, ...)
    return tide.zeros(1, { dtype = dtype }):expand(...)
end

-- ---- strides ----

t.test("a_dim_without_steps_keeps_its_stride_if_that_lies_in_the_storage", function()
    local x = tide.zeros(100)
    t.eq(x:as_strided({ 1 }, { 7 }):stride(1), 7)
    t.eq(x:as_strided({ 1 }, { (1 << 62) - 4 }):stride(1), 1)
    t.eq(x:as_strided({ 1, 3 }, { max, 2 }):stride(1), 3)
    t.eq(x:as_strided({ 0 }, { max }, max):stride(1), 1)
    shows(tide.zeros(4, 6)["1:1,1:3"]:stride(), "(6, 1)")
    shows(tide.zeros(0, 3):stride(), "(3, 1)")
    shows(tide.zeros(0):expand(9, 0):stride(), "(0, 1)")
end)

t.test("a_result_written_behind_a_huge_stride_stays_within_the_storage", function()
    local x = tide.zeros(100)
    local z = x:as_strided({ 1 }, { (1 << 62) - 4 })["2:"]
    t.eq(tide.add(tide.ones(4), 1, { out = z }):sum():item(), 8)
    t.eq(x["2:5"]:sum():item(), 8)
    t.eq(x:sum():item(), 8)
end)

t.test("an_empty_view_does_not_point_behind_the_storage", function()
    local x = tide.zeros(10)
    local z = x:as_strided({ 1 }, { 39 })["2:"]
    t.eq(tide.add(tide.ones(3), 1, { out = z }):sum():item(), 6)
    t.eq(z:as_strided({ 3 }, { 1 }):sum():item(), 6)
end)

t.test("as_strided_names_the_elements_that_lie_outside", function()
    local x, half = tide.zeros(100), tide.zeros(100)["51:"]
    t.eq(half:as_strided({ 100 }, { 1 }, 0):sum():item(), 0)
    t.error_has(function() return half:as_strided({ 2 }, { 1 }, 99) end,
        "as_strided: elements 100 to 101 lie outside the storage of 100 elements")
    t.error_has(function() return half:as_strided({ 51 }, { 1 }) end, "elements 51 to 101 lie outside")
    t.error_has(function()
        return tide.zeros(3, { dtype = tide.int8 }):as_strided({ 1 }, { 1 }, math.maxinteger)
    end, "elements 9223372036854775807 to 9223372036854775807 lie outside")
    t.error_has(function() return half:as_strided({ 1 }, { 1 }, -1) end,
        "as_strided: storage_offset must not be negative, got -1")
    for _, given in ipairs {
        { { 1 }, { 1 }, max }, { { 2 }, { max } }, { { 3 }, { max } }, { { max }, { max } },
        { { 2, 2 }, { max, max } }, { { max }, { 1 } }, { { 2 }, { 1 << 62 } }, { { 4 }, { 1 << 61 } },
        { { 2 }, { 1 }, max - 1 }, { { 5 }, { (1 << 61) + 1 } },
    } do
        t.error_matches(function() return x:as_strided(table.unpack(given)) end,
            "as_strided: [^\n]*lie outside the storage")
    end
end)

-- ---- elements and bytes ----

t.test("a_shape_that_int64_cannot_count_is_refused_with_and_without_elements", function()
    for _, sizes in ipairs { { 0, 1 << 40, 1 << 40 }, { 1 << 40, 1 << 40, 0 }, { 1 << 62, 2, 0 }, { max, 0, max } } do
        t.error_has(function() return tide.zeros(sizes) end, "has too many elements")
        t.error_has(function() return tide.zeros(0):view(sizes) end, "view: 0 elements don't fit into shape")
    end
    t.error_has(function() return tide.zeros(1):expand(1 << 62, 2) end, "has too many elements")
    t.error_has(function() return tide.zeros(0):view(0, 1 << 62) end, "has too many elements")
    t.eq(tide.zeros(0, 1 << 40):numel(), 0)
    t.eq(#tide.zeros(0, 1 << 40):tolist(), 0)
end)

t.test("what_would_spread_an_expanded_tensor_says_how_much_memory_it_would_take", function()
    local x = endless(tide.float64, 1 << 62)
    for name, fn in pairs {
        add = function() return x + 1 end,
        mul = function() return x * x end,
        exp = function() return x:exp() end,
        clone = function() return x:clone() end,
        contiguous = function() return x:contiguous() end,
        empty_like = function() return tide.empty_like(x) end,
        to = function() return x:to(tide.float16) end,
        roll = function() return x:roll(-5) end,
        flip = function() return x:flip(1) end,
        cumsum = function() return x:cumsum(1) end,
        softmax = function() return x:softmax(1) end,
    } do
        t.error_matches(fn, name .. ": [^\n]*out of memory: tried to allocate [%d.]+ EiB on cpu")
    end
    t.error_has(function() return tide.eye(max) end, "e+20 EiB")
end)

t.test("sizes_that_are_added_or_multiplied_do_not_wrap", function()
    local x = endless(tide.int8, max)
    t.error_has(function() return tide.cat { x, x } end, "cat: the result would have more than 2^63 - 1 places")
    local parts = x:split((1 << 62) + 1)
    t.eq(#parts, 2)
    t.eq(parts[2]:numel(), max - (1 << 62) - 1)
    t.error_has(function() return x:split { 1 << 62, 1 << 62, 1 << 62, 1 << 62, max } end, "and more")
    t.error_has(function() return tide.ones(2):tile(1 << 62) end, "can't repeat")
    shows(tide.arange(5):roll(min), "[3, 4, 0, 1, 2]\nint64 (5) cpu")
    shows(tide.arange(5):roll(max), "[3, 4, 0, 1, 2]\nint64 (5) cpu")
    t.error_has(function() return tide.one_hot(tide.tensor { max }) end, "out of memory")
end)

t.test("blocks_side_by_side_that_are_too_wide_are_refused", function()
    local wide = tide.ones(1, 1):expand(1, max)
    t.error_has(function() tide.block_diag { tide.ones(2, 3), wide } end, "block_diag: out of memory: more than 2^63 - 1 columns")
end)

t.test("layers_without_number_are_refused", function()
    t.error_has(function() return tide.nn.RNN(1, 2, 1 << 62) end, "RNN: argument 3 (num_layers): expected an integer from 1 to 1048576")
    t.error_has(function() return tide.nn.Transformer(8, 2, 1 << 62) end, "Transformer: argument 3 (num_encoder_layers): expected an integer")
end)

t.test("calls_in_place_that_run_out_of_memory_are_refused", function()
    local wide = tide.ones(3, 1):expand(3, 1 << 40)
    t.error_has(function() tide.ones(4):addmm_(tide.ones(2, 3), wide) end, "addmm_: out of memory")
    t.error_has(function() tide.ones(4):mvlgamma_((1 << 61) + 1) end, "mvlgamma_: ")
end)

t.test("planes_and_kernels_too_large_for_int64_are_refused", function()
    local tall, one = endless(tide.float32, 1, 1, max, 1), tide.ones(1, 1, 1, 1)
    t.error_has(function() return tall:conv2d(one) end, "conv2d: planes of 9223372036854775807 x 1 are too large")
    t.error_has(function() return one:conv2d(endless(tide.float32, 1, 1, 1 << 62, 1)) end, "conv2d: a kernel of")
    t.error_has(function() return one:conv2d(endless(tide.float32, 1, max, 1, 1), { groups = 2147483647 }) end,
        "channels")
    t.error_has(function() return tall:avg_pool2d(1) end, "avg_pool2d: an input of (9223372036854775807, 1) is too large")
    t.error_has(function() return tall:interpolate { scale_factor = 1e5 } end, "interpolate: an input of (9223372036854775807, 1) is too large")
    t.error_has(function() return tide.interpolate(one, { scale_factor = 1e300 }) end, "below 1e6, got 1e+300")
end)

-- ---- integers ----

t.test("random_integers_reach_both_ends_and_their_dtype_holds_them", function()
    local x = tide.randint(min, max, { 1000 })
    t.is_true(x:lt(0):any():item() and x:gt(0):any():item())
    t.eq(tide.randint(max - 1, max, { 1 }):item(), max - 1)
    t.eq(tide.randint(min, min + 1, { 1 }):item(), min)
    t.eq(tide.randint(255, 256, { 1 }, { dtype = tide.uint8 }):item(), 255)
    t.error_has(function() return tide.randint(0, 300, { 3 }, { dtype = tide.uint8 }) end,
        "randint: uint8 doesn't hold the integers from 0 to 299")
    t.error_has(function() return tide.randint(-1, 3, { 3 }, { dtype = tide.uint8 }) end, "doesn't hold")
    t.error_has(function() return tide.randint(0, 3, { 3 }, { dtype = tide.bool }) end, "doesn't hold")
end)

t.test("progressions_reach_both_ends", function()
    shows(tide.arange(max - 2, max), "[9223372036854775805, 9223372036854775806]\nint64 (2) cpu")
    t.eq(tide.arange(min, max, 1 << 62):numel(), 4)
    t.eq(tide.arange(5, -5, min):tolist()[1], 5)
    t.error_has(function() return tide.arange(min, max) end, "arange: out of memory")
    t.error_has(function() return tide.arange(0, 1e300) end, "arange: out of memory")
    shows(tide.linspace(-1e308, 1e308, 3, { dtype = tide.float64 }):tolist()[2], "0.0")
end)

t.test("indices_at_the_ends_of_int64_are_refused_or_cut", function()
    local x = tide.arange(3)
    for _, i in ipairs { min, max, -4, 4 } do
        t.error_has(function() return x:select(1, i) end, ("index %d is out of range"):format(i))
        t.error_has(function() return x:narrow(1, 1, i) end, "narrow")
        t.error_has(function() return x:permute(i) end, "permute")
        t.error_has(function() return x:unsqueeze(i) end, "unsqueeze")
    end
    t.eq(x:slice(1, min, max, max):numel(), 1)
    t.eq(x["-9223372036854775808:9223372036854775807:9223372036854775807"]:numel(), 1)
end)

-- ---- numbers that are no sizes ----

t.test("sizes_and_counts_that_are_no_integers_are_refused", function()
    for _, n in ipairs { 1e30, -1e30, math.huge, -math.huge, 0 / 0, 0.5 } do
        for name, fn in pairs {
            zeros = function() return tide.zeros(n) end,
            randperm = function() return tide.randperm(n) end,
            eye = function() return tide.eye(n) end,
            sum = function() return tide.ones(2):sum(n) end,
            narrow = function() return tide.ones(2):narrow(1, 1, n) end,
            view = function() return tide.ones(2):view(n) end,
            set_num_threads = function() return tide.set_num_threads(n) end,
        } do
            t.error_matches(fn, name .. ": [^\n]* has no integer representation")
        end
    end
    t.error_has(function() return tide.set_num_threads((1 << 32) + 1) end, "from 1 to 1024")
end)

t.test("shapes_are_so_many_values", function()
    local rows, columns = tide.zeros(2, 3).shape:unpack()
    t.eq({ rows, columns }, { 2, 3 })
    t.eq(select("#", tide.zeros({}).shape:unpack()), 0)
    t.eq({ tide.zeros(2, 3):stride():unpack() }, { 3, 1 })
    t.error_has(function() return tide.zeros(2).shape.pack end, "an integer from 1 to 1 expected")
end)
