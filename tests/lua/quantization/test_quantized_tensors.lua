-- test_quantized_tensors.lua: quantized tensors: what they are made of, what moves them, what is refused, how they print
-- and are saved.
local t = require "harness"

local x = tide.tensor { { -1.0, 0.25, 1, 2 }, { 3, -0.05, 0.05, 0.15 } }
local function whole() return tide.quantize_per_tensor(x, 0.1, 10, tide.quint8) end
local function by_row() return tide.quantize_per_channel(x, tide.tensor { 0.1, 0.25 }, tide.tensor { 0, 5 }, 1, tide.qint8) end
local function refused(text, fn, ...)
    t.is_true(not string.find(t.refused(text, fn, ...), "\n", 1, true), "one line")
end

-- ---- what they are ----

t.test("integers_are_rounded_half_to_even_and_clamped", function()
    local values = tide.tensor { -30, 0.5, 1.5, 2.5, -0.5, -1.5, 0 / 0, 1 / 0, -1 / 0, 200, 254.5, 255.5 }
    t.eq(tide.quantize_per_tensor(values, 1, 0, tide.quint8):int_repr():tolist(), { 0, 0, 2, 2, 0, 0, 0, 255, 0, 200, 254, 255 })
    t.eq(tide.quantize_per_tensor(values, 1, 3, tide.qint8):int_repr():tolist(), { -27, 3, 5, 5, 3, 1, -128, 127, -128, 127, 127, 127 })
    t.eq(tide.quantize_per_tensor(tide.tensor { 3e9, -3e9, 2.5 }, 1, 7, tide.qint32):int_repr():tolist(), { 2147483647, -2147483648, 9 })
    for _, dtype in ipairs { tide.quint8, tide.qint8, tide.qint32 } do -- vectors of them, and what is left over
        local some = dtype == tide.qint32 and tide.tensor { 3e9, -3e9, 2.5, 3.5, -0.5 } or values
        local alone = tide.quantize_per_tensor(some, 1, 3, dtype)
        for _, times in ipairs { 16, 23 } do
            local many = tide.quantize_per_tensor(some:tile { times }, 1, 3, dtype)
            t.is_true(tide.equal(many:int_repr(), alone:int_repr():tile { times }))
            t.is_true(tide.equal(many:dequantize(), alone:dequantize():tile { times }))
        end
    end
end)

t.test("every_byte_stands_for_its_difference_times_the_scale", function()
    for _, dtype in ipairs { tide.uint8, tide.int8 } do
        local low = dtype == tide.int8 and -128 or 0
        local bytes = tide.arange(low, low + 256):to(dtype)
        for _, point in ipairs { low, low + 77, low + 255 } do
            local want = (bytes:int() - point):float() * tide.tensor(0.1)
            t.is_true(tide.equal(tide._make_per_tensor_quantized_tensor(bytes, 0.1, point):dequantize(), want))
            local columns = tide._make_per_channel_quantized_tensor(bytes:view(128, 2), tide.tensor { 0.1, 0.1 }, tide.tensor { point, point }, 2)
            t.is_true(tide.equal(columns:dequantize():view(256), want))
        end
    end
end)

t.test("fbgemms_own_cases_of_rounding", function()
    local tiny = tide.full({ 33 }, -2.9483526e-05)
    local q = tide.quantize_per_tensor(tiny, 2.3124334356729307e-07, 128, tide.quint8):int_repr()
    t.eq(q:eq(q[1]):all():item(), true)
    local far = tide.tensor { 3.40282e38, -2.16845e38 }
    t.eq(tide.quantize_per_tensor(far, 1.19209e-07, 0, tide.qint8):int_repr():tolist(), { 127, -128 })
    t.eq(tide.quantize_per_tensor(far, 1.19209e-07, 0, tide.quint8):int_repr():tolist(), { 255, 0 })
end)

t.test("a_quantized_tensor_says_what_it_is", function()
    local q, c = whole(), by_row()
    t.is_true(q.is_quantized)
    t.is_true(not x.is_quantized)
    t.eq(q.dtype, tide.quint8)
    t.eq(c.dtype, tide.qint8)
    t.eq(tostring(q.dtype), "tide.quint8")
    t.eq(tide.quint8.itemsize, 1)
    t.eq(tide.qint32.itemsize, 4)
    t.is_true(not q:is_floating_point())
    t.eq(q:qscheme(), "per_tensor_affine")
    t.eq(q:q_scale(), 0.1)
    t.eq(q:q_zero_point(), 10)
    t.eq(q.nbytes, 8)
    t.eq(c:qscheme(), "per_channel_affine")
    t.eq(c:q_per_channel_axis(), 1)
    t.eq(c:q_per_channel_zero_points():tolist(), { 0, 5 })
    t.eq(c:q_per_channel_scales().dtype, tide.float64)
    t.eq(q:int_repr():tolist(), { { 0, 12, 20, 30 }, { 40, 10, 10, 12 } })
    t.eq(c:int_repr():tolist(), { { -10, 2, 10, 20 }, { 17, 5, 5, 6 } })
    t.eq(c:dequantize():tolist()[2], { 3, 0, 0, 0.25 })
end)

t.test("they_print_what_they_stand_for", function()
    t.eq(tostring(whole()), "[[-1.0000,  0.2000,  1.0000,  2.0000],\n [ 3.0000,  0.0000,  0.0000,  0.2000]]\n"
        .. "quint8 (2, 4) cpu quantized per_tensor_affine scale=0.1 zero_point=10")
    t.is_true(string.find(tostring(by_row()), "qint8 (2, 4) cpu quantized per_channel_affine axis=1", 1, true))
end)

-- ---- what moves them ----

t.test("views_share_integers_and_keep_parameters", function()
    local q = whole()
    t.eq(q[2]:int_repr():tolist(), { 40, 10, 10, 12 })
    t.eq(q[{ {}, 2 }]:q_scale(), 0.1)
    t.eq(q:t():int_repr():tolist(), { { 0, 40 }, { 12, 10 }, { 20, 10 }, { 30, 12 } })
    t.eq(q:reshape(8):size(1), 8)
    t.eq(q:flatten():int_repr():tolist(), { 0, 12, 20, 30, 40, 10, 10, 12 })
    q[1] = tide.zeros(4)
    t.eq(q:int_repr():tolist()[1], { 10, 10, 10, 10 })
    local first, second = table.unpack(q:chunk(2, 1))
    second:copy_(tide.ones(1, 4))
    t.eq(q:int_repr():tolist()[2], { 20, 20, 20, 20 })
    t.eq(first:int_repr():tolist(), { { 10, 10, 10, 10 } })
end)

t.test("where_elements_lie_is_said_as_of_integers_viewed_so", function()
    local y = tide.arange(96.0):reshape(2, 3, 4, 4)
    local whole_of = tide.quantize_per_tensor(y, 1, 0, tide.quint8)
    local by_channel = tide.quantize_per_channel(y, tide.ones(3), tide.zeros(3):long(), 2, tide.quint8)
    local function last(z) return z:contiguous { memory_format = "channels_last" } end
    for _, view in ipairs { function(z) return z end, last, function(z) return z:permute(2, 1, 4, 3) end, function(z) return z[2] end,
        function(z) return z[":, :, ::2"] end, function(z) return last(z)[":, 2:3"] end, function(z) return z:unsqueeze(1):expand(3, -1, -1, -1, -1) end,
        function(z) return z:unsqueeze(3):contiguous { memory_format = "channels_last_3d" } end, function(z) return last(z):clone() end } do
        local want = view(y:byte())
        for _, z in ipairs { view(whole_of), view(by_channel) } do
            for _, format in ipairs { "contiguous", "channels_last", "channels_last_3d" } do
                t.eq(z:is_contiguous { memory_format = format }, want:is_contiguous { memory_format = format })
            end
            t.eq({ table.unpack(z:stride()) }, { table.unpack(want:stride()) })
            t.eq({ z:storage_offset(), z.nbytes, z:element_size() }, { want:storage_offset(), want.nbytes, 1 })
            t.eq({ z:is_pinned(), z:is_inference(), z.is_leaf, z.is_sparse, z.is_quantized }, { false, false, true, false, true })
        end
    end
    t.is_true(last(whole_of):relu():is_contiguous { memory_format = "channels_last" } and not last(whole_of):is_contiguous())
    t.eq({ whole_of:view(2, 3, 16):data_ptr(), whole_of[2]:data_ptr() - whole_of:data_ptr() }, { whole_of:data_ptr(), 48 })
    local script = tide.jit.script(function(z) return z:is_contiguous(), z:stride(2) end)
    t.eq({ script(whole_of) }, { true, 16 })
    t.eq({ script(last(whole_of)) }, { false, 1 })
    t.eq({ script(by_channel:permute(2, 1, 3, 4)) }, { false, 48 })
    refused("not for sparse tensors", script, tide.eye(2):to_sparse())
    t.is_true(not tide.eye(2):to_sparse():is_contiguous())
    refused("not for sparse tensors", function() tide.eye(2):to_sparse():stride() end)
    refused("other is quantized", function() return x:type_as(whole()) end)
end)

t.test("the_axis_follows_permutes_selects_and_slices", function()
    local y = tide.arange(24.0):reshape(2, 3, 4)
    local q = tide.quantize_per_channel(y, tide.tensor { 0.5, 1.0, 2.0 }, tide.tensor { 0, 1, 2 }, 2, tide.quint8)
    t.eq(q:permute(3, 1, 2):q_per_channel_axis(), 3)
    t.eq(q[1]:q_per_channel_axis(), 1)
    t.eq(q:unsqueeze(1):q_per_channel_axis(), 3)
    t.eq(q[{ {}, { 2, 3 } }]:q_per_channel_scales():tolist(), { 1, 2 })
    t.eq(q[{ {}, { 1, 3, 2 } }]:q_per_channel_zero_points():tolist(), { 0, 2 })
    local one = q[{ {}, 3 }]
    t.eq(one:qscheme(), "per_tensor_affine")
    t.eq({ one:q_scale(), one:q_zero_point() }, { 2, 2 })
    for _, view in ipairs { function(z) return z:permute(3, 1, 2) end, function(z) return z[{ {}, { 2, 3 } }] end,
        function(z) return z[2]:t() end, function(z) return z[{ {}, 3 }] end } do
        t.is_true(tide.equal(view(q):dequantize(), view(q:dequantize())))
    end
    refused("can't follow", function() return q:reshape(24) end)
    refused("can't follow", function() return q:flip(2) end)
end)

t.test("copies_have_integers_of_their_own", function()
    for _, q in ipairs { whole(), by_row(), whole():t(), by_row():t() } do
        local c = q:clone()
        t.is_true(tide.equal(c, q))
        t.is_true(tide.equal(q:contiguous(), q))
        c:copy_(tide.zeros(c.shape))
        t.is_true(not tide.equal(c, q))
        t.is_true(tide.equal(q:to("cpu"), q))
    end
    t.is_true(not tide.equal(whole(), by_row()))
    t.is_true(not tide.equal(whole(), tide.quantize_per_tensor(x, 0.2, 10, tide.quint8)))
end)

t.test("copy_takes_parameters_over_where_nobody_else_reads_the_integers", function()
    local q, other = whole(), tide.quantize_per_tensor(x, 0.3, 1, tide.quint8)
    local rows = tide.quantize_per_channel(x, tide.tensor { 0.1, 0.25 }, tide.tensor { 0, 5 }, 1, tide.quint8)
    q:copy_(other)
    t.is_true(tide.equal(q, other))
    q:copy_(rows)
    t.is_true(tide.equal(q, rows))
    local view = q[1]
    refused("views", function() q:copy_(other) end)
    t.is_true(tide.equal(q, rows))
    t.eq(view:q_scale(), tide.tensor(0.1):double():item())
end)

t.test("cat_rounds_what_has_other_parameters", function()
    local a, b = whole(), tide.quantize_per_tensor(x, 0.5, 0, tide.quint8)
    local both = tide.cat({ a, b }, 1)
    t.eq(both:q_scale(), 0.1)
    t.is_true(tide.equal(both[{ { 1, 2 } }]:int_repr(), a:int_repr()))
    t.is_true(tide.equal(both[{ { 3, 4 } }], tide.quantize_per_tensor(b:dequantize(), 0.1, 10, tide.quint8)))
    refused("dequantize", tide.cat, { a, by_row() })
    refused("dequantize", tide.cat, { a, x })
end)

t.test("they_are_saved_and_loaded", function()
    local path = os.tmpname()
    tide.save({ whole = whole(), rows = by_row():t(), dtype = tide.qint32 }, path)
    local y = tide.load(path)
    os.remove(path)
    t.is_true(tide.equal(y.whole, whole()))
    t.is_true(tide.equal(y.rows, by_row():t()))
    t.eq(y.rows:q_per_channel_axis(), 2)
    t.eq(y.dtype, tide.qint32)
end)

t.test("a_file_with_lying_parameters_is_refused", function()
    local path = os.tmpname()
    tide.save({ q = whole() }, path)
    local file = assert(io.open(path, "rb"))
    local bytes = file:read("a")
    file:close()
    local zeros = function(digits) return string.gsub(digits, "%d", "0") end
    for pattern, replacement in pairs { [",10%]"] = ",-1]", ["0%.1%d+"] = zeros, ['"U8"'] = '"I8"' } do
        local changed, n = string.gsub(bytes, pattern, replacement)
        t.eq({ n, #changed }, { 1, #bytes })
        file = assert(io.open(path, "wb"))
        file:write(changed)
        file:close()
        if replacement == '"I8"' then -- other integers are another tensor, and a sound one
            t.eq(tide.load(path).q.dtype, tide.qint8)
        else
            refused("structure is wrong", tide.load, path)
        end
    end
    os.remove(path)
end)

t.test("meta_has_shape_and_parameters", function()
    local q = tide.quantize_per_tensor(tide.empty(2, 3, { device = "meta" }), 0.5, 1, tide.qint8)
    t.eq(q.device, "meta")
    t.eq(q:t().shape[1], 3)
    t.eq(q:dequantize().dtype, tide.float32)
    t.eq(whole():to("meta"):q_scale(), 0.1)
    t.eq(by_row():to("meta"):q_per_channel_axis(), 1)
end)

t.test("no_gradient_and_no_autocast_reach_them", function()
    local y = tide.randn(3, { requires_grad = true })
    local q = tide.quantize_per_tensor(y, 0.1, 0, tide.qint8)
    t.is_true(not q.requires_grad)
    t.is_true(not q:dequantize().requires_grad)
    refused("float", function() q:requires_grad_(true) end)
    local _ <close> = tide.autocast("cpu")
    t.eq(tide.quantize_per_tensor(y, 0.1, 0, tide.qint8):dequantize().dtype, tide.float32)
end)

t.test("functions_of_elements_are_of_one_scale_and_not_written_where_it_changes", function()
    local q = whole()
    local scale = q:q_scale()
    t.eq(q:clamp(-1, 1):q_scale(), scale)
    t.eq(q:sigmoid():q_scale(), 1 / 256)
    t.eq(q:tanh():q_zero_point(), 128)
    local y = q:clone()
    t.is_true(y:hardtanh_(-0.5, 0.5) == y and tide.equal(y, q:clamp(-0.5, 0.5)))
    for _, bounds in ipairs { { -1.04, 1.06 }, { -math.huge, 0.25 }, { 0.25, math.huge }, { 1e30, 2 }, { nil, -1e30 }, { 0 / 0, 1 } } do
        local want = tide.quantize_per_tensor(q:dequantize():clamp(bounds[1], bounds[2]), scale, q:q_zero_point(), tide.quint8)
        t.is_true(tide.equal(q:clamp(bounds[1], bounds[2]), want), tostring(bounds[1]) .. " to " .. tostring(bounds[2]))
    end
    refused("can't be written in place", function() q:clone():sigmoid_() end)
    refused("can't go into out=", function() tide.clamp(q, -1, 1, { out = tide.zeros(2, 4) }) end)
    local rows = tide.quantize_per_channel(x, tide.tensor { 0.1, 0.2 }, tide.tensor { 0, 0 }, 1, tide.quint8)
    refused("quantized by channel", function() rows:tanh() end)
    refused("qint32: quint8 or qint8 expected", function() tide.quantize_per_tensor(x, 0.1, 0, tide.qint32):sigmoid() end)
    refused("dequantize", function() x:clamp(q, 2) end)
end)

t.test("large_tensors_look_up_what_small_ones_compute", function()
    for _, dtype in ipairs { tide.uint8, tide.int8 } do
        local all = (tide.arange(0, 256) + (dtype == tide.int8 and -128 or 0)):to(dtype)
        local small = tide._make_per_tensor_quantized_tensor(all, 0.05, 7)
        local ints = all:repeat_interleave(24):view(2, 3, 32, 32):contiguous { memory_format = "channels_last" }
        local large = tide._make_per_tensor_quantized_tensor(ints, 0.05, 7)
        for _, name in ipairs { "sigmoid", "tanh", "hardtanh", "relu6", "clamp", "gelu", "leaky_relu" } do
            local fn = tide[name] or tide.nn.functional[name]
            local function apply(q) return name == "clamp" and fn(q, -1, 2) or fn(q) end
            local got, want = apply(large), apply(small)
            t.is_true(tide.equal(got:int_repr():reshape(256, 24)[":, 5"], want:int_repr()), name)
            t.is_true(got:q_scale() == want:q_scale() and got:int_repr():is_contiguous { memory_format = "channels_last" })
        end
        local F = tide.nn.quantized.functional
        for _, name in ipairs { "hardswish", "elu", "celu" } do
            t.is_true(tide.equal(F[name](large, 0.03, 10):int_repr():reshape(256, 24)[":, 1"], F[name](small, 0.03, 10):int_repr()), name)
        end
        refused("a table of 256", function() tide._lookup_bytes(ints, ints) end)
        refused("lies with gaps", function() tide._lookup_bytes(ints[":, 1"], all) end)
        local bounds = tide.linspace(0, 2, 6144):view(2, 3, 32, 32) -- another function for each element
        t.is_true(tide.allclose(large:clamp(nil, bounds):dequantize(), large:dequantize():clamp(nil, bounds), { atol = 0.0251 }))
    end
end)

-- ---- what is refused ----

t.test("float_operators_name_both_dtypes_and_dequantize", function()
    local q = whole()
    for _, call in ipairs { function() return q + x end, function() return x * q end, function() return q:matmul(x:t()) end } do
        local ok, why = pcall(call)
        t.is_true(not ok and why:find("quint8", 1, true) and why:find("float32", 1, true) and why:find("dequantize", 1, true), why)
    end
    for _, name in ipairs { "silu", "sum", "softmax", "exp", "sort", "zero_", "var", "tolist" } do
        local ok, why = pcall(function() return q[name](q, name == "softmax" and 1 or nil) end)
        t.is_true(not ok and why:find("dequantize", 1, true), name .. ": " .. tostring(why))
    end
    refused("dequantize", function() return q:to(tide.float32) end)
    refused("dequantize", function() tide.zeros(2, 4):copy_(q) end)
    refused("dequantize", function() q[1]:copy_(tide.quantize_per_tensor(x[1], 0.3, 0, tide.quint8)) end)
    refused("dequantize", function() q:copy_(tide.quantize_per_tensor(x, 0.3, 0, tide.qint8)) end)
end)

t.test("scales_and_zero_points_that_can_not_be_are_refused", function()
    for _, scale in ipairs { 0, -0.1, 1e-40, 0 / 0, 1 / 0, 1e39 } do
        refused("a scale is above 0", tide.quantize_per_tensor, x, scale, 0, tide.quint8)
        refused("a scale is above 0", tide.quantize_per_channel, x, tide.tensor({ 1, scale }, { dtype = tide.float64 }),
            tide.tensor { 0, 0 }, 1, tide.quint8)
    end
    refused("from 0 to 255", tide.quantize_per_tensor, x, 1, 256, tide.quint8)
    refused("from -128 to 127", tide.quantize_per_tensor, x, 1, -129, tide.qint8)
    refused("from -128 to 127", tide.quantize_per_channel, x, tide.ones(2), tide.tensor { 0, 128 }, 1, tide.qint8)
    refused("dtype", tide.quantize_per_tensor, x, 1, 0, tide.float32)
    refused("dtype", tide.zeros, 2, { dtype = tide.quint8 })
    refused("float", tide.quantize_per_tensor, x:long(), 1, 0, tide.quint8)
    refused("along dim 1", tide.quantize_per_channel, x, tide.ones(4), tide.zeros(4):long(), 1, tide.qint8)
    refused("dim", tide.quantize_per_channel, x, tide.ones(4), tide.zeros(4):long(), 3, tide.qint8)
    refused("axis", tide.quantize_per_channel, tide.tensor(1.0), tide.ones(1), tide.zeros(1):long(), 1, tide.qint8)
    refused("a quantized tensor expected", function() return x:q_scale() end)
    refused("a quantized tensor expected", function() return x:int_repr() end)
    refused("per_channel_affine", function() return by_row():q_scale() end)
    refused("per_tensor_affine", function() return whole():q_per_channel_axis() end)
end)
