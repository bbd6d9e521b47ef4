-- test_amp.lua: autocast, its classes and dtypes as PyTorch has them (tests/golden/autocast), and GradScaler.
local t = require "harness"
local json = require "json"
local nn, amp = tide.nn, tide.amp
local bf16, f16, f32 = tide.bfloat16, tide.float16, tide.float32

local function golden(name)
    local found = {}
    for line in io.lines(os.getenv("TIDE_SOURCE") .. "/tests/golden/autocast/" .. name .. ".jsonl") do
        local entry = json.read(line)
        if entry.op then
            found[#found + 1] = entry
        end
    end
    return found
end

local function dtype(y) return tostring(y.dtype):gsub("^tide%.", "") .. "" end

local a = tide.randn(4, 4)

-- ---- modes ----

t.test("autocast_is_a_block_and_a_function_and_nests", function()
    do
        local _ <close> = tide.autocast { device = "cpu" }
        t.eq({ a:mm(a).dtype, (a + a).dtype, tide.is_autocast_enabled("cpu") }, { bf16, f32, true })
        do
            local _ <close> = tide.autocast { enabled = false }
            t.eq({ a:mm(a).dtype, tide.is_autocast_enabled() }, { f32, false })
            t.eq(tide.autocast({ dtype = f16 }, function() return a:mm(a).dtype end), f16)
        end
        t.eq(a:mm(a).dtype, bf16)
        t.eq(tide.autocast("cuda", function() return tide.is_autocast_enabled("cuda"), a:mm(a).dtype end), true)
        t.eq(tide.is_autocast_enabled("cuda"), false)
    end
    t.eq({ a:mm(a).dtype, tide.is_autocast_enabled() }, { f32, false })
    t.eq(tide.autocast({ dtype = bf16 }, function(x, y) return x:mm(y).dtype end, a, a), bf16)
    t.eq({ tide.get_autocast_dtype("cpu"), tide.get_autocast_dtype("cuda") }, { bf16, f16 })
end)

t.test("errors_and_coroutines_leave_the_caller_s_autocast", function()
    t.error_has(function() tide.autocast(function() error("inside") end) end, "inside")
    t.eq(tide.is_autocast_enabled(), false)
    local co = coroutine.wrap(function()
        local _ <close> = tide.autocast()
        coroutine.yield(a:mm(a).dtype)
        return a:mm(a).dtype
    end)
    t.eq({ co(), a:mm(a).dtype, co(), a:mm(a).dtype }, { bf16, f32, bf16, f32 })
end)

t.test("wrong_arguments_are_named", function()
    t.error_has(function() tide.autocast("gpu") end, 'autocast: device: "cpu" or "cuda" expected, got "gpu"')
    t.error_has(function() tide.autocast { dtype = f32 } end, "autocast: dtype: tide.bfloat16 or tide.float16 expected")
    t.error_has(function() tide.autocast { dtypes = bf16 } end, "did you mean 'dtype'")
    t.eq(tide.is_autocast_enabled(), false)
end)

-- ---- classes ----

t.test("classes_are_pytorch_s", function()
    local checked = 0
    for _, entry in ipairs(golden "classes") do
        local known, doc = pcall(tide._doc, entry.op)
        if known and doc and doc.autocast then
            checked = checked + 1
            t.eq(doc.autocast[entry.device], entry.class, entry.device .. " " .. entry.op)
        end
    end
    t.is_true(checked > 130, checked)
end)

local function r(...) return tide.rand(...) * 0.5 + 0.25 end
local labels, signs = tide.tensor { 1, 3, 2 }:long(), tide.tensor { 1, -1, 1 }:long()
local calls = {
    mm = { { 2, 3 }, { 3, 2 } }, bmm = { { 2, 2, 3 }, { 2, 3, 2 } }, matmul = { { 2, 3 }, { 3, 2 } },
    addmm = { { 2, 2 }, { 2, 3 }, { 3, 2 } }, addbmm = { { 2, 2 }, { 2, 2, 3 }, { 2, 3, 2 } },
    baddbmm = { { 2, 2, 2 }, { 2, 2, 3 }, { 2, 3, 2 } }, linear = { { 2, 3 }, { 4, 3 }, { 4 } }, prelu = { { 2, 3 }, { 1 } },
    conv1d = { { 1, 2, 5 }, { 3, 2, 2 } }, conv2d = { { 1, 2, 5, 5 }, { 3, 2, 2, 2 } },
    conv3d = { { 1, 2, 3, 3, 3 }, { 3, 2, 2, 2, 2 } }, conv_transpose1d = { { 1, 2, 5 }, { 2, 3, 2 } },
    conv_transpose2d = { { 1, 2, 5, 5 }, { 2, 3, 2, 2 } }, conv_transpose3d = { { 1, 2, 3, 3, 3 }, { 2, 3, 2, 2, 2 } },
    scaled_dot_product_attention = { { 1, 1, 3, 4 }, { 1, 1, 3, 4 }, { 1, 1, 3, 4 } },
    einsum = { { 2, 3 }, { 3, 2 }, call = function(x, y) return tide.einsum("ij,jk->ik", x, y) end },
    mv = { { 2, 3 }, { 3 } }, dot = { { 3 }, { 3 } }, add = { { 2, 3 }, { 2, 3 } }, mul = { { 2, 3 }, { 2, 3 } },
    exp = { { 2, 3 } }, sum = { { 2, 3 } }, prod = { { 2, 3 } }, relu = { { 2, 3 } }, gelu = { { 2, 3 } },
    sigmoid = { { 2, 3 } }, mean = { { 2, 3 } }, trace = { { 3, 3 } }, mse_loss = { { 2, 3 }, { 2, 3 } },
    l1_loss = { { 2, 3 }, { 2, 3 } }, smooth_l1_loss = { { 2, 3 }, { 2, 3 } }, huber_loss = { { 2, 3 }, { 2, 3 } },
    kl_div = { { 2, 3 }, { 2, 3 } }, poisson_nll_loss = { { 2, 3 }, { 2, 3 } }, soft_margin_loss = { { 3 }, { 3 } },
    binary_cross_entropy = { { 2, 3 }, { 2, 3 } }, binary_cross_entropy_with_logits = { { 2, 3 }, { 2, 3 } },
    triplet_margin_loss = { { 2, 3 }, { 2, 3 }, { 2, 3 } }, cdist = { { 2, 3 }, { 2, 3 } },
    softmax = { { 2, 3 }, call = function(x) return tide.softmax(x, 2) end },
    log_softmax = { { 2, 3 }, call = function(x) return tide.log_softmax(x, 2) end },
    cumsum = { { 2, 3 }, call = function(x) return tide.cumsum(x, 2) end },
    pow = { { 2, 3 }, call = function(x) return x ^ 2 end },
    layer_norm = { { 2, 3 }, call = function(x) return tide.layer_norm(x, { 3 }) end },
    cat = { { 2, 3 }, { 2, 3 }, call = function(x, y) return tide.cat { x, y } end },
    stack = { { 2, 3 }, { 2, 3 }, call = function(x, y) return tide.stack { x, y } end },
    index_copy = { { 3, 2 }, { 3, 2 }, call = function(x, y) return x:index_copy(1, tide.tensor { 1, 2, 3 }:long(), y) end },
    quantile = { { 4 }, call = function(x) return x:quantile(0.5) end },
    nanquantile = { { 4 }, call = function(x) return x:nanquantile(0.5) end },
    nll_loss = { { 3, 4 }, call = function(x) return tide.nll_loss(x, labels) end },
    cross_entropy = { { 3, 4 }, call = function(x) return tide.cross_entropy(x, labels) end },
    multi_margin_loss = { { 3, 4 }, call = function(x) return tide.multi_margin_loss(x, labels) end },
    margin_ranking_loss = { { 3 }, { 3 }, call = function(x, y) return tide.margin_ranking_loss(x, y, signs) end },
    hinge_embedding_loss = { { 3 }, call = function(x) return tide.hinge_embedding_loss(x, signs) end },
    cosine_embedding_loss = { { 3, 2 }, { 3, 2 }, call = function(x, y) return tide.cosine_embedding_loss(x, y, signs) end },
    max_pool3d = { { 1, 2, 4, 4, 4 }, call = function(x) return tide.max_pool3d(x, 2) end },
    avg_pool3d = { { 1, 2, 4, 4, 4 }, call = function(x) return tide.avg_pool3d(x, 2) end },
    adaptive_avg_pool3d = { { 1, 2, 4, 4, 4 }, call = function(x) return tide.adaptive_avg_pool3d(x, 2) end },
    max_pool2d = { { 1, 2, 4, 4 }, call = function(x) return tide.max_pool2d(x, 2) end },
    avg_pool2d = { { 1, 2, 4, 4 }, call = function(x) return tide.avg_pool2d(x, 2) end },
    inverse = { { 3, 3 }, call = function(x) return tide.linalg.inv(x) end },
    linalg_solve = { { 3, 3 }, { 3, 2 }, call = function(x, y) return tide.linalg.solve(x, y) end },
    linalg_svdvals = { { 3, 3 }, call = function(x) return tide.linalg.svdvals(x) end },
}

t.test("dtypes_of_results_on_the_cpu_are_pytorch_s", function()
    local kinds = { wide = { f32 }, low = { bf16 }, mixed = { f32, bf16 }, swapped = { bf16, f32 } }
    local checked = 0
    for _, entry in ipairs(golden "dtypes") do
        local call = calls[entry.op]
        for label, expected in pairs(call and entry.r or {}) do
            if expected ~= json.null then
                local args = {}
                for k, sizes in ipairs(call) do
                    args[k] = r(sizes):to(kinds[label][(k - 1) % #kinds[label] + 1])
                end
                local y = tide.autocast(function() return (call.call or tide[entry.op])(table.unpack(args)) end)
                t.eq(dtype(y), expected, entry.op .. " " .. label)
                checked = checked + 1
            end
        end
    end
    t.is_true(checked > 150, checked)
end)

t.test("what_is_written_keeps_its_dtype_and_float64_and_integers_too", function()
    local _ <close> = tide.autocast()
    local out = tide.empty(4, 4)
    tide.mm(a, a, { out = out })
    t.eq({ out.dtype, out:clone():addmm_(a, a).dtype }, { f32, f32 })
    t.is_true(tide.allclose(out, tide.autocast({ enabled = false }, function() return a:mm(a) end)))
    t.eq({ a:double():mm(a:double()).dtype, tide.foreach.pow({ a }, 2)[1].dtype }, { tide.float64, f32 })
end)

-- ---- gradients ----

t.test("gradients_come_back_in_the_leaf_s_dtype_and_backward_runs_as_its_forward_did", function()
    local w = tide.randn(4, 4, { requires_grad = true })
    local seen
    local y = tide.autocast(function() return a:mm(w) end)
    y:register_hook(function(g) seen = g.dtype end)
    y:sum():backward()
    t.eq({ y.dtype, seen, w.grad.dtype }, { bf16, bf16, f32 })
    local inside = tide.randn(4, 4, { requires_grad = true })
    tide.autocast(function()
        local z = tide.autocast({ enabled = false }, function() return a:mm(inside) end)
        z:register_hook(function() seen = a:mm(a).dtype end)
        z:sum():backward()
    end)
    t.eq(seen, f32)
    t.is_true(tide.allclose(inside.grad, a:sum(1):reshape(4, 1):expand(4, 4)))
end)

t.test("a_weight_is_cast_once_in_a_region_and_anew_when_it_was_written", function()
    local w = tide.randn(64, 64, { requires_grad = true })
    local x = tide.randn(2, 64)
    local function casts(cache)
        local profile, n = tide.profiler.profile(function()
            local _ <close> = tide.autocast { cache = cache }
            return x:mm(w), x:mm(w)
        end), 0
        for _, event in ipairs(profile:events()) do
            n = n + (event.name == "to" and 1 or 0)
        end
        return n
    end
    t.eq({ casts(true), casts(true), casts(false) }, { 3, 3, 4 })
    local _ <close> = tide.autocast()
    local before = tide.no_grad(function() return x:mm(w) end)
    t.eq(before.requires_grad, false)
    local y = x:mm(w)
    t.eq({ y.requires_grad, y }, { true, before })
    tide.no_grad(function() w:mul_(2) end)
    t.eq(x:mm(w), before * 2)
end)

t.test("losses_of_one_region_go_back_one_after_the_other", function()
    local w = tide.randn(4, 4, { requires_grad = true })
    local _ <close> = tide.autocast()
    local one, two = a:mm(w):sum(), (2 * a):mm(w):sum()
    one:backward()
    local first = w.grad:clone()
    two:backward()
    t.is_true(tide.allclose(w.grad, first * 3, { rtol = 0.02 }))
    local x = tide.ones(2, { requires_grad = true })
    local y = x:to(bf16)
    local s = (y * y):sum()
    s:backward()
    t.error_has(function() s:backward() end, "backward a second time")
end)

t.test("custom_functions_run_as_they_ask", function()
    local seen = {}
    local F = tide.autograd.Function { name = "Product",
        forward = amp.custom_fwd(function(ctx, x, w)
            ctx:save_for_backward(x, w)
            seen.forward = { x.dtype, tide.is_autocast_enabled() }
            return x:mm(w)
        end, { cast_inputs = f32 }),
        backward = amp.custom_bwd(function(ctx, g)
            local x, w = ctx.saved_tensors[1], ctx.saved_tensors[2]
            if not x then
                x, w = ctx.saved_tensors
            end
            seen.backward = { g.dtype, tide.is_autocast_enabled() }
            return g:mm(w:t()), x:t():mm(g)
        end) }
    local w = tide.randn(4, 4, { requires_grad = true })
    tide.autocast(function()
        local y = F(a:to(bf16), w)
        t.eq(y.dtype, f32)
        y:sum():backward()
    end)
    t.eq(seen, { forward = { f32, false }, backward = { f32, false } })
    t.eq(w.grad.dtype, f32)
    local plain = tide.autograd.Function { name = "Plain",
        forward = amp.custom_fwd(function(_, x) return x:mm(x) end),
        backward = amp.custom_bwd(function(_, g)
            seen.plain = tide.is_autocast_enabled()
            return g
        end) }
    local y = tide.autocast(function() return plain(w) end)
    t.eq(y.dtype, bf16)
    y:sum():backward()
    t.eq(seen.plain, true)
end)

t.test("models_train_under_autocast_as_without", function()
    local function train(enabled)
        tide.manual_seed(1)
        local model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 8), nn.ReLU(), nn.Linear(8, 3))
        local x, y = tide.randn(12, 1, 8, 8), tide.randint(1, 4, { 12 })
        local opt, losses = tide.optim.SGD(model:parameters(), { lr = 0.05 }), {}
        for k = 1, 5 do
            opt:zero_grad()
            local loss = tide.autocast({ enabled = enabled }, function() return nn.CrossEntropyLoss()(model(x), y) end)
            t.eq(loss.dtype, f32)
            loss:backward()
            for _, p in ipairs(model:parameters()) do
                t.eq(p.grad.dtype, f32)
            end
            opt:step()
            losses[k] = loss:item()
        end
        return losses
    end
    local low, wide = train(true), train(false)
    for k = 1, 5 do
        t.is_true(math.abs(low[k] - wide[k]) < 0.03 * wide[k], low[k] .. " " .. wide[k])
    end
    t.is_true(low[5] ~= wide[5])
end)

-- ---- GradScaler ----

local function problem(scaler)
    local p = tide.tensor({ 1.0, 2.0 }, { requires_grad = true })
    local opt = tide.optim.SGD({ p }, { lr = 0.1 })
    return p, opt, scaler or amp.GradScaler { init_scale = 8, growth_interval = 2 }
end

t.test("a_scaler_s_step_is_that_of_unscaled_gradients_and_it_grows", function()
    local p, opt, scaler = problem()
    for k = 1, 2 do
        opt:zero_grad()
        local loss = scaler:scale((p * p):sum())
        loss:backward()
        if k == 2 then
            scaler:unscale_(opt)
            t.eq(p.grad, p:detach() * 2)
            nn.utils.clip_grad_norm_({ p }, 1e9)
        end
        scaler:step(opt)
        scaler:update()
    end
    t.is_true(tide.allclose(p, tide.tensor { 0.64, 1.28 }))
    t.eq({ scaler:get_scale(), scaler:state_dict()._growth_tracker }, { 16, 0 })
end)

t.test("inf_and_nan_skip_the_step_and_lower_the_scale", function()
    for _, bad in ipairs { 1 / 0, -1 / 0, 0 / 0 } do
        local p, opt, scaler = problem()
        local q = tide.zeros(3, { requires_grad = true })
        opt:add_param_group { params = { q } }
        p.grad, q.grad = tide.ones(2), tide.tensor { 1, bad, 1 }
        scaler:scale(p)
        scaler:step(opt)
        scaler:update()
        t.eq({ p:tolist(), q:tolist(), scaler:get_scale() }, { { 1, 2 }, { 0, 0, 0 }, 4 })
    end
end)

t.test("each_optimizer_has_its_check_and_all_count_for_the_scale", function()
    local p, one, scaler = problem()
    local q, two = problem()
    local sum = scaler:scale((p * p + q * q):sum())
    sum:backward()
    q.grad[1] = 1 / 0
    scaler:step(one)
    scaler:step(two)
    scaler:update()
    t.is_true(tide.allclose(p, tide.tensor { 0.8, 1.6 }))
    t.eq({ q:tolist(), scaler:get_scale() }, { { 1, 2 }, 4 })
end)

t.test("the_wrong_order_is_an_error", function()
    local p, opt, scaler = problem()
    t.error_has(function() scaler:step(opt) end, "step: no loss was scaled yet")
    t.error_has(function() scaler:update() end, "update: no loss was scaled yet")
    scaler:scale((p * p):sum()):backward()
    t.error_has(function() scaler:update() end, "no gradients were looked at")
    t.error_has(function() scaler:step(opt, function() end) end, "closures are not for a GradScaler")
    scaler:unscale_(opt)
    t.error_has(function() scaler:unscale_(opt) end, "unscale_: called twice")
    scaler:step(opt)
    t.error_has(function() scaler:step(opt) end, "step: called twice")
    t.error_has(function() scaler:unscale_(opt) end, "unscale_: called after step()")
    scaler:update()
    opt:zero_grad()
    t.error_has(function() scaler:step(opt) end, "have no gradients")
    p.grad = nil
    local h = tide.ones(2, { dtype = f16, requires_grad = true })
    h.grad = tide.ones(2, { dtype = f16 })
    t.error_has(function() scaler:step(tide.optim.SGD { h }) end, "a gradient is float16")
    t.error_has(function() amp.GradScaler { growth_factor = 1 } end, "growth_factor must be above 1")
    t.error_has(function() scaler:step(3) end, "step: an optimizer expected")
end)

t.test("a_scaler_s_state_and_one_that_is_off", function()
    local _, opt, scaler = problem()
    local other = amp.GradScaler()
    other:load_state_dict(scaler:state_dict())
    t.eq({ other:get_scale(), other.growth_interval }, { 8, 2 })
    t.error_has(function() other:load_state_dict {} end, "the state is empty")
    local off = amp.GradScaler { enabled = false }
    t.eq({ off:get_scale(), off:is_enabled(), off:state_dict(), off:scale(a) == a }, { 1, false, {}, true })
    off:step(opt)
    off:update()
end)

t.test("penalties_sparse_gradients_and_accumulation", function()
    local p, opt, scaler = problem()
    local loss = (p * p * p):sum()
    local scaled = tide.autograd.grad(scaler:scale(loss), { p }, { create_graph = true })[1]
    local g = scaled / scaler:get_scale()
    scaler:scale(loss + g:norm()):backward()
    scaler:unscale_(opt)
    local q = tide.tensor({ 1.0, 2.0 }, { requires_grad = true })
    local plain = (q * q * q):sum()
    local h = tide.autograd.grad(plain, { q }, { create_graph = true })[1];
    (plain + h:norm()):backward()
    t.is_true(tide.allclose(p.grad, q.grad))
    local table_ = nn.Embedding(5, 2, { sparse = true })
    local sgd, s = tide.optim.SGD(table_:parameters(), { lr = 1 }), amp.GradScaler { init_scale = 4 }
    local before = table_.weight:detach():clone()
    for _ = 1, 2 do
        s:scale(table_(tide.tensor { 2, 2 }:long()):sum()):backward()
    end
    s:step(sgd)
    t.is_true(tide.allclose(before[2] - table_.weight[2], tide.tensor { 4.0, 4.0 }))
    t.eq(table_.weight[1]:tolist(), before[1]:tolist())
end)

t.test("flags_of_devices_take_booleans", function()
    local b = tide.backends
    t.eq({ b.cuda.matmul.allow_tf32, b.cudnn.allow_tf32 }, { false, true })
    b.cuda.matmul.allow_tf32 = true
    t.eq(b.cuda.matmul.allow_tf32, true)
    b.cuda.matmul.allow_tf32 = false
    t.error_has(function() b.cudnn.allow_tf32 = 1 end, "cudnn.allow_tf32: boolean expected")
    t.error_has(function() b.cudnn.allow_tf23 = true end, "cudnn: no flag 'allow_tf23': it has allow_tf32, benchmark,")
    t.eq({ b.cudnn.benchmark, b.cudnn.deterministic, b.cudnn.enabled }, { false, false, true })
    b.cudnn.benchmark = true
    local seen = {}
    for flag, on in pairs(b.cudnn) do
        seen[flag] = on
    end
    t.eq(seen, { allow_tf32 = true, benchmark = true, deterministic = false, enabled = true })
    b.cudnn.benchmark = false
end)

t.test("autocast_says_once_where_nothing_is_gained", function()
    local path = os.tmpname()
    local file = io.open(path, "w")
    file:write('for _ = 1, 2 do tide.autocast(function() end) end\n')
    file:close()
    local pipe = io.popen(("TIDE_CPU=baseline '%s' %s 2>&1"):format(os.getenv("TIDE"), path))
    local text = pipe:read("a")
    pipe:close()
    os.remove(path)
    t.eq(select(2, text:gsub("autocast gains nothing here", "")), 1, text)
end)
