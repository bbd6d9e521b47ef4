-- test_onnx_export.lua: functions written as models of ONNX. Each model is read again by tide.onnx.load, whose operators are held against
-- ONNX's own data (tests/onnx), and its results are compared with the function's.
local t = require "harness"
local nn, F = tide.nn, tide.nn.functional

local path = os.tmpname()

-- Writes and reads a function; the model's own description of itself.
local function written(fn, inputs, options)
    tide.onnx.export(fn, inputs, path, options)
    return tide.onnx.load(path)
end

local x, y, square = tide.randn(3, 4), tide.randn(3, 4), tide.randn(4, 4)
local positive, image, ints = x:abs() + 0.1, tide.randn(2, 4, 6, 6), tide.tensor { { 3, -4, 5, -6 }, { 7, 8, -9, 2 }, { -1, 2, 3, -5 } }
local two = tide.tensor { { 2, 3, -2, 4 }, { -3, 5, 2, -2 }, { 4, -4, 2, 3 } }

t.test("operators_of_one_tensor", function()
    for _, name in ipairs { "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "erf", "erfc", "exp", "exp2", "expm1", "floor", "frac",
        "log", "log1p", "log2", "log10", "logit", "neg", "reciprocal", "relu", "round", "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt", "square",
        "tan", "tanh", "trunc", "isnan", "isinf", "isfinite", "deg2rad", "rad2deg" } do
        local given = (name == "acosh") and positive + 1 or (name == "acos" or name == "asin" or name == "atanh" or name == "logit") and x:sigmoid() * 0.8 + 0.1
            or string.find("log log1p log2 log10 sqrt rsqrt", name) and positive or x
        written(function(a) return a[name](a) end, { given })
    end
    for _, name in ipairs { "celu", "elu", "gelu", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu", "logsigmoid", "mish", "relu6", "selu", "silu",
        "softplus", "softsign", "tanhshrink" } do
        written(function(a) return F[name](a * 3) end, { x })
    end
    written(function(a) return F.gelu(a, { approximate = "tanh" }), F.threshold(a, 0.1, 7), F.prelu(a, tide.tensor { 0.25 }), F.elu(a, 0.5) end, { x })
end)

t.test("operators_of_two_and_three", function()
    written(function(a, b) return a + b, a - b, a * b, a / b, a % b, a // b, 2 - a, 3 / b, a + 1, a * 2.5 end, { x, y })
    written(function(a, b) return a + b, a - b, a * b, a / b, a % b, a // b, a + 1, a * 2, a / 2, a + 0.5 end, { ints, two })
    written(function(a, b) return a:add(b, { alpha = 2 }), a:sub(b, { alpha = 0.5 }), a:div(b, { rounding_mode = "floor" }), a:div(b, { rounding_mode = "trunc" }) end, { x, y })
    written(function(a, b) return a:eq(b), a:ne(b), a:lt(b), a:le(0.5), a:gt(0), a:ge(b), a:maximum(b), a:minimum(b), a:fmod(b) end, { x, y })
    written(function(a, b) return a:lt(b):logical_and(a:gt(0)), a:lt(0) | b:gt(0), ~a:lt(0), a:lt(0) ~ b:lt(0) end, { x, y })
    written(function(a, b) return tide.where(a:gt(b), a, b), tide.where(a:gt(0), a, 0), a:masked_fill(b:gt(0), -1), a:clamp(-0.5, 0.5), a:clamp(nil, b) end, { x, y })
    written(function(a, b) return a:lerp(b, 0.3), a:addcmul(b, b, { value = 2 }), a:addcdiv(b, b + 9) end, { x, y })
    written(function(a) return a:to(tide.float64), a:to(tide.int64), a:gt(0):to(tide.float32), (a * 2):to(tide.int32) + 1 end, { x })
    written(function(a, n) return a + n, a * n, a:pow(2), a:abs() ^ n, n / a end, { positive, ints })
end)

t.test("products", function()
    written(function(a, b) return a:matmul(b), a:mm(b), tide.einsum("ij,jk->ik", a, b) end, { x, square })
    written(function(a, w, b) return F.linear(a, w, b), F.linear(a, w), F.linear(a:unsqueeze(1), w, b) end, { x, tide.randn(5, 4), tide.randn(5) })
    written(function(a, b, c) return tide.addmm(c, a, b, { beta = 0.5, alpha = 2 }) end, { x, square, tide.randn(4) })
    written(function(a) return a:bmm(a:transpose(2, 3)), tide.outer(a[1][1], a[1][2]), a[1][1]:dot(a[1][2]) end, { tide.randn(2, 3, 4) })
    written(function(q, k, v) return F.scaled_dot_product_attention(q, k, v), F.scaled_dot_product_attention(q, k, v, { is_causal = true }),
        F.scaled_dot_product_attention(q, k, v, tide.ones(5, 5):tril():gt(0)) end, { tide.randn(2, 5, 8), tide.randn(2, 5, 8), tide.randn(2, 5, 8) })
end)

t.test("reductions", function()
    written(function(a) return a:sum(), a:sum(2), a:mean(1), a:mean({ 1, 2 }), a:amax(2, { keepdim = true }), a:amin(1), a:prod(2), a:logsumexp(2) end, { x })
    written(function(a) return a:var(2), a:std(1), a:var(2, { correction = 0 }), a:norm(), a:norm(1, 2), F.normalize(a), a:cumsum(2) end, { x })
    written(function(a) return a:argmax(2), a:argmin(1), a:max(), a:min(), a:topk(2), a:sort(2), a:argsort(1) end, { x })
    written(function(a) return (a:max(2)), (a:min(1)), a:gt(0):any(2), a:gt(0):all(1) end, { x })
    written(function(a) return a:softmax(2), a:log_softmax(1), F.softmin(a, 2), F.glu(a, 2) end, { x })
end)

t.test("shapes", function()
    written(function(a) return a:view(4, 3), a:reshape(-1), a:t(), a:transpose(1, 2), a:unsqueeze(2), a:unsqueeze(-1), a:permute(2, 1), a:flatten() end, { x })
    written(function(a) return a:flatten(2), a:flatten(2, 3), a:permute(4, 1, 3, 2), a:movedim(2, -1), a:unflatten(2, { 2, 2 }), a:sum(2, { keepdim = true }):squeeze(2) end, { image })
    written(function(a) return a[1], a[-1], a[":, 2"], a["2:3, 1:2"], a[":, 1:4:2"], a:narrow(2, 2, 3), a:select(2, 3) end, { x })
    written(function(a) local p, q = table.unpack(a:chunk(2, 2)) return p * q, tide.cat({ a, a * 2 }, 1), tide.stack({ p, q }, 1), table.unpack(a:split(2, 2)) end, { x })
    written(function(a) return tide.stack(a:unbind(2), 1), a:expand(2, 3, 4), a:unsqueeze(1):expand(2, -1, -1), a["repeat"](a, 2, 1, 3), a:tile(2, 2) end, { x })
    written(function(a) return a:flip(1), a:flip({ 1, 2 }), a:roll(1, 2), a:roll({ 1, -2 }, { 1, 2 }), a:tril(), a:triu(1) end, { x })
    written(function(a, i) return a:index_select(2, i), a:gather(2, tide.tensor { { 1, 2 }, { 3, 4 }, { 1, 1 } }), F.embedding(i, a), a[i], a[{ {}, tide.tensor { 2, 4 } }] end, { tide.randn(5, 4), tide.tensor { 1, 3, 2 } })
    written(function(a) return a + tide.arange(1, 5), a * tide.zeros(4), tide.zeros_like(a), tide.ones_like(a) + a, tide.full_like(a, 3) end, { x })
    written(function(a) return F.one_hot(a, 5) end, { tide.tensor { 1, 5, 3 } })
end)

t.test("windows_and_norms", function()
    local w = tide.randn(6, 2, 3, 3)
    local same = tide.randn(3, 4, 3, 3)
    written(function(a) return F.conv2d(a, w, nil, 2, 1, 1, 2), F.conv2d(a, same, tide.ones(3), { padding = "same" }) end, { image })
    local b, k = tide.randn(6), tide.randn(3, 4, 2, 2)
    written(function(a) return F.conv2d(a, w, b, 2, 1, 1, 2), F.conv2d(a, k, nil, { dilation = 2 }), F.conv_transpose2d(a, k:transpose(1, 2), nil, 2) end, { image })
    local v = tide.randn(5, 4, 3)
    written(function(a) return F.conv1d(a, v), F.conv1d(a[1], v, { padding = 1 }), F.max_pool1d(a, 2), F.avg_pool1d(a, 3, 1, 1) end, { tide.randn(2, 4, 9) })
    written(function(a) return (F.max_pool2d(a, 3, 2, 1)), (F.max_pool2d(a, 4, 3, { ceil_mode = true })), F.avg_pool2d(a, 2), F.avg_pool2d(a, 3, 2, 1, { count_include_pad = false }),
        F.adaptive_avg_pool2d(a, 1), F.adaptive_avg_pool2d(a, { 3, 2 }), (F.adaptive_max_pool2d(a, 1)) end, { image })
    written(function(a) return F.pad(a, { 1, 2 }), F.pad(a, { 1, 1, 2, 0 }, "constant", 3), F.pad(a, { 1, 2, 2, 1 }, "reflect"), F.pad(a, { 1, 2, 2, 1 }, "replicate") end, { image })
    written(function(a) return F.interpolate(a, { scale_factor = 2 }), F.interpolate(a, { size = { 9, 4 }, mode = "bilinear" }), F.interpolate(a, { scale_factor = 2, mode = "bilinear", align_corners = true }),
        F.interpolate(a, { scale_factor = 2, mode = "bicubic" }), F.pixel_shuffle(a, 2) end, { image })
    local g, h = tide.randn(4), tide.randn(4)
    written(function(a) return F.layer_norm(a, { 6, 6 }), F.group_norm(a, 2, g, h), F.instance_norm(a, nil, nil, g, h), F.rms_norm(a, { 6 }), F.local_response_norm(a, 3) end, { image })
    written(function(a) return F.layer_norm(a, { 4 }, g, h), F.layer_norm(a, { 4 }, g), F.rms_norm(a, { 4 }, g), F.batch_norm(a, g, h:abs(), h, g), F.batch_norm(a, g, h:abs()) end, { x })
end)

t.test("modules", function()
    tide.manual_seed(3)
    written(nn.Sequential(nn.Conv2d(4, 8, 3, { padding = 1 }), nn.BatchNorm2d(8), nn.ReLU(), nn.Dropout(0.5), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(72, 10)):eval(),
        { image }, { input_names = { "image" }, output_names = { "scores" }, dynamic = { image = { "batch" } } })
    written(nn.TransformerEncoderLayer(8, 2, { dim_feedforward = 16, batch_first = true }):eval(), { tide.randn(2, 5, 8) })
    written(nn.MultiheadAttention(8, 2, { batch_first = true }):eval(), { tide.randn(2, 5, 8), tide.randn(2, 5, 8), tide.randn(2, 5, 8) })
    for _, options in ipairs { {}, { num_layers = 2 }, { bidirectional = true, batch_first = true }, { bias = false } } do
        for _, kind in ipairs { "LSTM", "GRU", "RNN" } do
            local layer = nn[kind](4, 5, options):eval()
            written(function(a) return (layer(a)) end, { tide.randn(3, 2, 4) })
        end
    end
end)

t.test("what_is_worked_out_from_sizes_branches_and_loops", function()
    local f = tide.jit.script(function(a, b)
        local n = a:size(1)
        local flat = a:view(n, -1)
        return flat:sum(1) / n, tide.cat({ flat, b:expand(n, -1) }, 2), tide.zeros(n, 2) + n
    end)
    written(f, { tide.randn(3, 2, 2), tide.randn(1, 3) }, { dynamic = { a = { 1 } } })
    written(tide.jit.script(function(a)
        local list = {}
        assert(a:sum():item() > -1e9, "never")
        for k = 1, 3 do
            list[k] = a * k
        end
        print("never written")
        return tide.stack(list, 1)
    end), { x })
    written(tide.jit.script(function(a)
        local _ <close> = tide.no_grad()
        return a * 2
    end), { x })
    local branch = tide.jit.script(function(a)
        local r = a
        if a:sum():item() > 0 then
            r = a * 2
        else
            r = a - 1
        end
        return r
    end)
    local model = written(branch, { x })
    t.eq(model(-x:abs()):sub(branch(-x:abs())):abs():max():item(), 0)
    t.eq(model(x:abs()):sub(branch(x:abs())):abs():max():item(), 0)
    local loop = tide.jit.script(function(a)
        local k = 0
        while a:sum():item() < 100 and k < 50 do
            a = a * 2 + 1
            k = k + 1
        end
        return a
    end)
    local again = written(loop, { x:abs() })
    local other = x:abs() * 0.01
    t.is_true(tide.allclose(again(other), loop(other)))
end)

t.test("a_model_that_was_read_is_a_graph_and_can_be_written_again", function()
    tide.manual_seed(4)
    local net = nn.Sequential(nn.Conv2d(4, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(8, 3)):eval()
    local model = written(net, { image })
    local f = tide.jit.trace(model, { image }, { check = false })
    t.is_true(tide.allclose(f(image), net(image), { atol = 1e-6 }))
    t.is_true(tide.allclose(written(f, { image })(image), net(image), { atol = 1e-6 }))
end)

t.test("what_is_refused", function()
    local function refused(fn, inputs, pattern, options) t.error_matches(function() tide.onnx.export(fn, inputs, path, options) end, pattern) end
    refused(function(a) return tide.linalg.svd(a) end, { x }, "test_onnx_export.lua:%d+: .*no form in ONNX")
    refused(function(a) return F.dropout(a, 0.5, true) end, { x }, "training mode")
    refused(nn.Sequential(nn.BatchNorm1d(4)), { x }, "call eval%(%) before")
    refused(function(a) return a * 2 end, { x }, "dynamic: no input 'y'", { dynamic = { y = { 1 } } })
    refused(function(a) return a * 2 end, { x }, "dims of 'a' are 1 to 2, got number 3", { dynamic = { a = { 3 } } })
    refused(function(a) return a * 2 end, { x }, "2 names for 1 inputs", { input_names = { "p", "q" } })
    refused(function(a) return a * 2 end, { x }, "2 names for 1 outputs", { output_names = { "p", "q" } })
    refused(function(a) return a * 2 end, { x }, "output_names: name 1: a text expected", { output_names = { "" } })
    refused(function(a, b) return a * b end, { x, y }, "two inputs of the name 'p'", { input_names = { "p", "p" } })
    refused(function(a) a:add_(1) return a end, { x }, "add_ writes in place into an input")
    refused(function(a) local b = a * 2 local c = b:view(-1) b:add_(1) return c end, { x }, "what others see")
    refused(tide.jit.script(function(a)
        local list, k = {}, 1
        while k < a:sum():item() do
            list[k] = a * k
            k = k + 1
        end
        return tide.stack(list, 1)
    end), { x:abs() * 9 }, "a list that grows in a branch or a loop")
    refused(function(a) return a * 2 end, { x }, "two values of the name 'a'", { output_names = { "a" } })
    refused(function(a) return a:reshape(3, 4) * 2 end, { x }, "for one size", { dynamic = { a = { 1 } } })
    t.error_matches(function() tide.onnx.export(function(a) return a * 2 end, { x }, "/nowhere/m.onnx") end, "/nowhere")
    t.error_matches(function() tide.onnx.export(3, { x }, path) end, "function or a module")
    t.error_matches(function() tide.onnx.export(function(a) return a end, { 3 }, path) end, "expected a tensor, got number 3")
end)

os.remove(path)
t.finish()
