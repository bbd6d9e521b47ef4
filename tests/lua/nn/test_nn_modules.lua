-- test_nn_modules.lua: what modules do besides their forward: transformers and weight norms against PyTorch's numbers
-- (tests/golden/modules), containers, hooks, copies, state, starting values, summaries.
local t = require "harness"
local json = require "json"
local nn = tide.nn

-- ---- PyTorch's numbers ----

local function wave(sizes, offset)
    local n = 1
    for _, size in ipairs(sizes) do
        n = n * size
    end
    return (tide.arange(0, n, { dtype = tide.float64 }) * 0.61 + offset):cos():reshape(sizes)
end

local function filled(module)
    local _ <close> = tide.no_grad()
    for k, p in ipairs(module:double():parameters()) do
        p:copy_(((tide.arange(0, p:numel(), { dtype = tide.float64 }) * 0.37 + k):sin() * 0.5):reshape(p.shape))
    end
    return module
end

local function spectral(layer)
    local module = nn.utils.spectral_norm(layer, { n_power_iterations = 2 }):double()
    for _, b in ipairs(module:buffers()) do
        b:copy_(wave(b.shape, 0.3))
    end
    return module
end

local function run_case(case)
    local env = setmetatable({ nn = nn, tide = tide, spectral = spectral }, { __index = _G })
    local module = filled(load("return " .. case.lua, "=case", "t", env)()):train(case.training)
    local args = {}
    for k, input in ipairs(case.inputs) do
        args[k] = wave(input.sizes, input.offset)
    end
    args[#args + 1] = load("return {" .. case.call .. "}", "=call", "t", env)()
    if case.call == "" then
        args[#args] = nil
    end
    local y = module(table.unpack(args))
    t.eq({ table.unpack(y.shape) }, case.sizes, case.lua)
    t.close(y:reshape(-1):tolist(), case.result, 1e-9, case.lua)
    if y.requires_grad then
        local loss = (y * wave(case.sizes, 1)):sum()
        loss:backward()
    end
    local k = 0
    for name, p in module:named_parameters() do
        k = k + 1
        local want = case.parameters[k]
        t.eq(name, want and want.name, case.lua)
        t.eq({ table.unpack(p.shape) }, want.sizes, case.lua)
        t.close(p.grad:sum():item(), want.gradient, 1e-8, case.lua .. " " .. name)
    end
    t.eq(k, #case.parameters)
end

t.test("modules_compute_as_pytorch", function()
    local here, count = debug.getinfo(1, "S").source:match("^@(.*/)") or "./", 0
    for line in io.lines(here .. "../../golden/modules/modules.jsonl") do
        run_case(json.read(line))
        count = count + 1
    end
    t.eq(count, 39)
end)

t.test("causal_masks_are_found_and_hints_taken", function()
    local encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8), 2):eval()
    local x, mask = tide.randn(5, 2, 4), nn.Transformer.generate_square_subsequent_mask(5)
    t.is_true(tide.equal(nn.Transformer(4, 1, 1, 1, 4):generate_square_subsequent_mask(5), mask))
    t.eq(mask[{ 1, 2 }]:item(), -math.huge)
    t.eq(mask[{ 2, 1 }]:item(), 0)
    local y = encoder(x, mask)
    t.close(y:tolist(), encoder(x, { mask = mask, is_causal = false }):tolist(), 1e-5)
    t.close(y:tolist(), encoder(x, { mask = mask:lt(0) }):tolist(), 1e-5)
    local changed = x:clone()
    changed:select(1, 5):fill_(3)
    t.close(encoder(changed, mask):narrow(1, 1, 4):tolist(), y:narrow(1, 1, 4):tolist(), 1e-5)
end)

t.test("layers_of_a_transformer_are_copies", function()
    local layer = nn.TransformerEncoderLayer(4, 2, 8)
    local encoder = nn.TransformerEncoder(layer, 3)
    t.eq(#encoder.layers, 3)
    t.eq(#encoder:parameters(), 3 * #layer:parameters())
    t.eq(encoder.layers[2].linear1.weight:tolist(), layer.linear1.weight:tolist())
    local own = nn.class "Own"
    function own:forward(x) return x * 2 end
    local model = nn.Transformer(4, 2, { num_decoder_layers = 1, dim_feedforward = 3, custom_encoder = own() })
    t.eq(model(tide.ones(3, 1, 4), tide.ones(2, 1, 4)).shape, { 2, 1, 4 })
end)

t.test("transformers_refuse_what_does_not_fit", function()
    t.error_has(function() nn.Transformer(10, 3) end, "embed_dim 10 can't be divided into 3 heads")
    t.error_has(function() nn.TransformerEncoderLayer(8, 2, { activation = "tanh" }) end, 'a function or a module, got "tanh"')
    t.error_has(function() nn.TransformerEncoderLayer(8, 2, { activation = 3 }) end, "got number 3")
    local m = nn.Transformer(8, 2, 1, 1, 16)
    local src, tgt = tide.ones(3, 2, 8), tide.ones(4, 2, 8)
    t.error_has(function() m(src, tide.ones(4, 1, 8)) end, "batches of one size, got shapes (3, 2, 8) and (4, 1, 8)")
    t.error_has(function() m(tide.ones(3, 2, 7), tgt) end, "must be d_model = 8, got shapes (3, 2, 7)")
    t.error_has(function() m(src, tgt, { tgt_mask = tide.ones(3, 3) }) end, "attn_mask must have shape (4, 4) or (4, 4, 4), got (3, 3)")
    t.error_has(function() m(src, tgt, { tgt_mask = tide.ones(4, 4):long() }) end, "bool or a floating dtype, got tide.int64")
    t.error_has(function() m(src, tgt, { src_key_padding_mask = tide.ones(3, 2):bool() }) end,
        "key_padding_mask must have shape (2, 3), got (3, 2)")
end)

-- ---- containers ----

t.test("module_lists_grow_shrink_and_fold", function()
    local list = nn.ModuleList { nn.Linear(2, 2), nn.Linear(2, 2), nn.ReLU() }
    t.eq(tostring(list), "ModuleList(\n  (1-2): 2 x Linear(in_features=2, out_features=2, bias=true)\n  (3): ReLU()\n)")
    list:insert(1, nn.Tanh()):extend { nn.ELU(), nn.GELU() }
    t.eq(#list, 6)
    t.eq(tostring(list[1]), "Tanh()")
    t.eq(tostring(list:pop(1)), "Tanh()")
    t.eq(tostring(list:pop()), "GELU(approximate=none)")
    t.eq(#list, 4)
    t.eq(#list:parameters(), 4)
    t.error_has(function() list:pop(5) end, "pop: index 5 is out of range for 4 parts")
    t.error_has(function() list:insert(6, nn.ReLU()) end, "insert: index 6 is out of range")
    local names = {}
    for name in list:named_parameters() do
        names[#names + 1] = name
    end
    t.eq(table.concat(names, " "), "1.weight 1.bias 2.weight 2.bias")
end)

t.test("module_dicts_keep_their_order", function()
    local dict = nn.ModuleDict { { "z", nn.Linear(1, 2) }, { "a", nn.ReLU() } }
    t.eq(dict:keys(), { "z", "a" })
    t.eq(nn.ModuleDict({ z = nn.ReLU(), a = nn.Tanh() }):keys(), { "a", "z" })
    t.eq(tostring(dict.a), "ReLU()")
    dict.last = nn.Tanh()
    local seen = {}
    for name, module in dict:items() do
        seen[#seen + 1] = name .. "=" .. tostring(module)
    end
    t.eq(seen[3], "last=Tanh()")
    t.eq(tostring(dict:pop "a"), "ReLU()")
    t.eq(#dict, 2)
    t.error_has(function() dict:pop "a" end, "no part is called")
    t.error_has(function() dict:update { train = nn.ReLU() } end, "'train' is a field or method of the class")
    t.error_has(function() dict:update { b = 3 } end, "b: expected a module, got number 3")
    t.error_has(function() nn.ModuleDict { nn.ReLU() } end, "pairs {name, part}")
    t.error_has(function() dict:update { ["a.b"] = nn.ReLU() } end, "'a.b' is no name of a part")
    t.error_has(function() dict:register_buffer("", tide.ones(1)) end, "must not be empty")
    dict:clear()
    t.eq(#dict, 0)
    t.eq(#dict:children(), 0)
end)

t.test("parameters_in_lists_and_under_names_are_parameters", function()
    local list = nn.ParameterList { tide.ones(2, 3), tide.zeros(1) }
    list:append(tide.ones(4))
    t.eq(#list, 3)
    t.eq(tostring(list), "ParameterList(\n  (1): Parameter containing: [tide.float32 of size 2x3]\n"
        .. "  (2): Parameter containing: [tide.float32 of size 1]\n  (3): Parameter containing: [tide.float32 of size 4]\n)")
    t.is_true(list[3].requires_grad)
    t.eq(list:state_dict()["1"].shape, { 2, 3 })
    local dict = nn.ParameterDict { w = tide.ones(2), b = tide.ones(1) }
    t.eq(dict:keys(), { "b", "w" })
    t.is_true(dict.w.requires_grad)
    t.eq(#dict:parameters(), 2)
    t.error_has(function() nn.ParameterDict { w = 3 } end, "ParameterDict: expected a tensor, got number 3")
end)

-- ---- names, copies, state ----

t.test("parts_are_found_by_their_full_names", function()
    local model = nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.BatchNorm1d(3)))
    local names = {}
    for name, module in model:named_modules() do
        names[#names + 1] = name .. ":" .. getmetatable(module).__name
    end
    t.eq(table.concat(names, " "), ":Sequential 1:Linear 2:Sequential 2.1:BatchNorm1d")
    t.is_true(rawequal(model:get_submodule "2.1", model[2][1]))
    t.is_true(rawequal(model:get_submodule "", model))
    t.is_true(rawequal(model:get_parameter "1.bias", model[1].bias))
    t.is_true(rawequal(model:get_buffer "2.1.running_mean", model[2][1].running_mean))
    t.error_has(function() model:get_submodule "2.4" end, "get_submodule: '2' has no module '4'")
    t.error_has(function() model:get_parameter "1.running_mean" end, "there is no parameter '1.running_mean'")
    t.error_has(function() model:get_buffer "1.bias" end, "there is no buffer '1.bias'")
    t.eq(#model:parameters(false), 0)
    t.eq(#model:get_submodule("1"):parameters(false), 2)
    t.eq(model[1]:named_parameters("net")(), "net.weight")
end)

t.test("clones_share_nothing_but_what_was_shared", function()
    local shared = nn.Linear(2, 2)
    local model = nn.Sequential(shared, nn.ReLU(), shared)
    model(tide.ones(1, 2)):sum():backward()
    local other = model:clone()
    t.eq(other[1].weight:tolist(), model[1].weight:tolist())
    t.eq(other[1].weight.grad:tolist(), model[1].weight.grad:tolist())
    t.is_true(rawequal(other[1], other[3]))
    t.is_false(rawequal(other[1], model[1]))
    other[1].weight:detach():fill_(7)
    t.is_true(model[1].weight:ne(7):all():item())
    t.is_true(other[1].weight.requires_grad)
    local loss = nn.CrossEntropyLoss({ weight = tide.ones(3) }):clone()
    t.close(loss(tide.zeros(2, 3), tide.tensor { 1, 3 }):item(), math.log(3), 1e-6)
end)

t.test("models_go_to_other_dtypes", function()
    local model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    for method, dtype in pairs { half = "float16", bfloat16 = "bfloat16", double = "float64", float = "float32" } do
        model[method](model)
        t.eq(model[1].weight.dtype, tide[dtype])
        t.eq(model[2].running_mean.dtype, tide[dtype])
        t.eq(model[2].num_batches_tracked.dtype, tide.int64)
    end
    t.is_true(rawequal(model:cpu(), model))
end)

t.test("loading_names_all_that_is_wrong_at_once", function()
    local model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    local before = model[2].bias:tolist()
    local dict = { ["1.weight"] = tide.ones(2, 2), ["2.bias"] = tide.ones(1), ["2.weight"] = tide.ones(4), extra = tide.ones(1) }
    t.error_has(function() model:load_state_dict(dict) end, "load_state_dict: missing 1.bias; unexpected extra; "
        .. "1.weight has shape (2, 2), expected (3, 2), 2.weight has shape (4), expected (1, 3)")
    t.error_has(function() model:load_state_dict(dict, { strict = false }) end, "load_state_dict: 1.weight has shape")
    t.eq(model[2].bias:tolist(), before)
    dict["1.weight"], dict["2.weight"] = nil, nil
    local found = model:load_state_dict(dict, { strict = false })
    t.eq(found.missing_keys, { "1.bias", "1.weight", "2.weight" })
    t.eq(found.unexpected_keys, { "extra" })
    t.eq(model[2].bias:tolist(), { 1 })
end)

t.test("buffers_that_do_not_persist_are_in_no_state", function()
    local model = nn.class("Buffered")()
    model:register_buffer("kept", tide.ones(1))
    model:register_buffer("passing", tide.ones(1), { persistent = false })
    t.eq(#model:buffers(), 2)
    t.is_true(model:state_dict().kept)
    t.is_true(not model:state_dict().passing)
    t.is_true(model:state_dict({ prefix = "a." })["a.kept"])
    model:load_state_dict { kept = tide.zeros(1) }
    t.eq(model.kept:item(), 0)
end)

t.test("gradients_are_forgotten_or_made_zeros", function()
    local model = nn.Linear(2, 1)
    model(tide.ones(1, 2)):sum():backward()
    model:zero_grad(false)
    t.eq(model.weight.grad:tolist(), { { 0, 0 } })
    model:zero_grad()
    t.is_true(model.weight.grad == nil)
    model:zero_grad(false)
    t.is_true(model.weight.grad == nil)
end)

-- ---- hooks ----

t.test("forward_hooks_see_and_change_what_passes", function()
    local m, seen = nn.Linear(2, 3), {}
    local first = m:register_forward_pre_hook(function(module, args)
        seen[#seen + 1] = rawequal(module, m) and args.n
        return args[1] * 2
    end)
    local second = m:register_forward_hook(function(_, args, y)
        seen[#seen + 1] = args[1][1]:item()
        return y + 1
    end)
    local third = m:register_forward_hook(function() seen[#seen + 1] = "before" end, { prepend = true })
    local x = tide.ones(2)
    t.close(m(x):tolist(), (tide.linear(x * 2, m.weight, m.bias) + 1):tolist(), 1e-6)
    t.eq(seen, { 1, "before", 2 })
    third:remove()
    third:remove()
    first:remove()
    second:remove()
    t.close(m(x):tolist(), tide.linear(x, m.weight, m.bias):tolist(), 1e-6)
    t.eq(#seen, 3)
    do
        local _ <close> = m:register_forward_hook(function() seen[#seen + 1] = "never" end)
    end
    m(x)
    t.eq(#seen, 3)
    t.error_has(function() m:register_forward_hook(3) end, "register_forward_hook: argument 2 (hook): expected a function")
end)

t.test("a_hook_may_take_itself_out", function()
    local m, calls, hook = nn.ReLU(), 0
    hook = m:register_forward_hook(function() calls = calls + 1 hook:remove() end)
    m:register_forward_hook(function() calls = calls + 10 end)
    m(tide.ones(1))
    m(tide.ones(1))
    t.eq(calls, 21)
end)

t.test("backward_hooks_see_and_change_gradients", function()
    local m, seen = nn.Linear(2, 2), {}
    m:register_full_backward_pre_hook(function(_, grads) return { grads[1] * 3 } end)
    m:register_full_backward_hook(function(_, inputs, outputs)
        seen = { inputs.n, outputs[1]:tolist(), inputs[1]:tolist() }
        return inputs[1] * 2
    end)
    local x = tide.ones(1, 2, { requires_grad = true })
    m(x):sum():backward()
    local plain = (tide.ones(1, 2):matmul(m.weight) * 3):tolist()
    t.eq(seen[1], 1)
    t.eq(seen[2], { { 3, 3 } })
    t.close(seen[3], plain, 1e-6)
    t.close(x.grad:tolist(), { { 2 * plain[1][1], 2 * plain[1][2] } }, 1e-6)
    t.eq(m.bias.grad:tolist(), { 3, 3 })
end)

t.test("backward_hooks_of_inputs_without_gradient_get_none", function()
    local m, got = nn.Linear(2, 2)
    m:register_full_backward_hook(function(_, inputs, outputs) got = { inputs[1] == nil, outputs[1]:tolist() } end)
    m(tide.ones(1, 2)):sum():backward()
    t.eq(got, { true, { { 1, 1 } } })
    m:register_full_backward_hook(function() return 3 end)
    t.error_has(function() m(tide.ones(1, 2)):sum():backward() end, "expected a tensor, a list of gradients or nothing")
    local lstm, states = nn.LSTM(2, 3)
    lstm:register_full_backward_hook(function(_, inputs, outputs) states = { inputs[1].shape, outputs.n } end)
    lstm(tide.ones(4, 1, 2, { requires_grad = true })):sum():backward()
    t.eq(states, { { 4, 1, 2 }, 2 })
end)

-- ---- starting values ----

t.test("init_makes_matrices", function()
    local init = nn.init
    t.eq(init.eye_(tide.empty(2, 3)):tolist(), { { 1, 0, 0 }, { 0, 1, 0 } })
    local x = tide.randn(1, 4, 5, 5)
    t.close(tide.conv2d(x, init.dirac_(tide.empty(4, 4, 3, 3)), { padding = 1 }):tolist(), x:tolist(), 1e-6)
    local groups = init.dirac_(tide.empty(4, 2, 3, 3), 2)
    t.close(tide.conv2d(x, groups, { padding = 1, groups = 2 }):tolist(), x:tolist(), 1e-6)
    for _, sizes in ipairs { { 3, 5 }, { 5, 3 }, { 4, 2, 2 } } do
        local w = init.orthogonal_(tide.empty(sizes, { dtype = tide.float64 }), 2):reshape(sizes[1], -1)
        local small = w.shape[1] <= w.shape[2] and w:matmul(w:t()) or w:t():matmul(w)
        t.close(small:tolist(), (tide.eye(small.shape[1]) * 4):tolist(), 1e-9)
    end
    t.eq(init.sparse_(tide.empty(10, 4), 0.25):eq(0):sum(1):tolist(), { 3, 3, 3, 3 })
    t.error_has(function() init.eye_(tide.empty(2)) end, "eye_: needs a tensor of 2 dims, got shape (2)")
    t.error_has(function() init.orthogonal_(tide.empty(2)) end, "needs a tensor of at least 2 dims, got shape (2)")
    t.error_has(function() init.dirac_(tide.empty(3, 2, 1), 2) end, "3 channels can't be divided into 2 groups")
    t.error_has(function() init.trunc_normal_(tide.empty(2), { a = 3, b = 1 }) end, "a <= b")
end)

t.test("truncated_draws_lie_within_and_repeat_with_a_generator", function()
    local init = nn.init
    local x = init.trunc_normal_(tide.empty(20000, { dtype = tide.float64 }), 1, 2, 0, 2)
    t.is_true(x:min():item() >= 0 and x:max():item() <= 2)
    t.close(x:mean():item(), 1, 0.02)
    t.close(x:var():item(), 0.3204, 0.02) -- of a normal distribution cut at half its deviation on both sides
    local far = init.trunc_normal_(tide.empty(1000), 0, 1, 5, 6)
    t.is_true(far:min():item() >= 5 and far:max():item() <= 6)
    local function draw(fn)
        local g = tide.Generator()
        g:manual_seed(7)
        return init[fn](tide.empty(4, 4), { generator = g }):tolist()
    end
    for _, fn in ipairs { "uniform_", "normal_", "trunc_normal_", "xavier_uniform_", "kaiming_normal_", "orthogonal_" } do
        t.eq(draw(fn), draw(fn), fn)
    end
    t.eq(init.calculate_gain("selu"), 0.75)
    t.eq(init.calculate_gain("conv_transpose3d"), 1)
end)

-- ---- utils ----

t.test("weight_norms_end_with_the_value_that_was", function()
    for _, name in ipairs { "weight_norm", "spectral_norm" } do
        local m, x = nn.Linear(3, 2), tide.ones(1, 3)
        nn.utils[name](m)
        local y = m:eval()(x)
        t.close(m:clone()(x):tolist(), y:tolist(), 1e-6)
        nn.utils["remove_" .. name](m)
        t.close(m(x):tolist(), y:tolist(), 1e-6)
        t.eq(#m:parameters(), 2)
        t.eq(#m:buffers(), 0)
        t.is_true(m.weight.requires_grad and m.weight.is_leaf)
        t.error_has(function() nn.utils["remove_" .. name](m) end, "'weight' of Linear has no " .. name)
        t.error_has(function() nn.utils[name](m, "gain") end, name .. ": Linear has no parameter 'gain'")
        t.error_has(function() nn.utils[name](m, { dim = 3 }) end, "dim 3 is out of range for shape (2, 3)")
        t.eq(#m:parameters(), 2)
    end
end)

t.test("parameters_as_a_vector_and_back", function()
    local m = nn.Linear(3, 2)
    local v = nn.utils.parameters_to_vector(m:parameters())
    t.eq(v.shape, { 8 })
    nn.utils.vector_to_parameters(tide.arange(8):float(), m:parameters())
    t.eq(m.weight:tolist(), { { 0, 1, 2 }, { 3, 4, 5 } })
    t.eq(m.bias:tolist(), { 6, 7 })
    t.error_has(function() nn.utils.vector_to_parameters(tide.ones(7), m:parameters()) end,
        "expected a vector of 8 elements for these parameters, got shape (7)")
end)

t.test("sequences_are_padded_and_cut_again", function()
    local rnn, list = nn.utils.rnn, { tide.tensor { 1, 2 }, tide.tensor { 3 } }
    t.eq(rnn.pad_sequence(list):tolist(), { { 1, 3 }, { 2, 0 } })
    local left = rnn.pad_sequence(list, { batch_first = true, padding_value = 9, padding_side = "left" })
    t.eq(left:tolist(), { { 1, 2 }, { 9, 3 } })
    local again = rnn.unpad_sequence(rnn.pad_sequence(list), { 2, 1 })
    t.eq(again[1]:tolist(), { 1, 2 })
    t.eq(again[2]:tolist(), { 3 })
    t.error_has(function() rnn.unpad_sequence(left, { 2, 1, 1 }, { batch_first = true }) end, "a length for each of 2 sequences")
end)

t.test("fused_layers_do_what_both_did", function()
    local function settled(bn)
        bn.running_mean:uniform_()
        bn.running_var:uniform_(0.5, 1)
        bn.weight:detach():uniform_()
        return bn:eval()
    end
    local x = tide.randn(2, 4, 5, 5)
    local bn = settled(nn.BatchNorm2d(3))
    local conv = nn.Conv2d(4, 3, 3, { bias = false }):eval()
    t.close(nn.utils.fuse_conv_bn_eval(conv, bn)(x):tolist(), bn(conv(x)):tolist(), 1e-5)
    local up = nn.ConvTranspose2d(4, 3, 3):eval()
    t.close(nn.utils.fuse_conv_bn_eval(up, bn, true)(x):tolist(), bn(up(x)):tolist(), 1e-5)
    local linear, bn1 = nn.Linear(5, 3):eval(), settled(nn.BatchNorm1d(3))
    t.close(nn.utils.fuse_linear_bn_eval(linear, bn1)(x[1][1]):tolist(), bn1(linear(x[1][1])):tolist(), 1e-5)
    t.error_has(function() nn.utils.fuse_conv_bn_eval(conv:train(), bn) end, "must be in evaluation")
    t.error_has(function() nn.utils.fuse_conv_bn_eval(nn.ReLU():eval(), bn) end, "ReLU has no weight of 3 channels")
    t.error_has(function() nn.utils.fuse_conv_bn_eval(nn.Conv2d(1, 2, 1):eval(), bn) end, "no weight of 3 channels")
end)

t.test("activations_work_in_place_where_they_are_told_to", function()
    for _, name in ipairs { "ReLU", "ReLU6", "SELU", "SiLU", "Mish", "Hardsigmoid", "Hardswish", "RReLU", "ELU", "CELU",
        "LeakyReLU", "Hardtanh", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout" } do
        local x = tide.randn(2, 3, 4)
        local want = nn[name]():eval()(x:clone()):tolist()
        local y = nn[name] { inplace = true }:eval()(x)
        t.eq(x:tolist(), want, name)
        t.eq(y:data_ptr(), x:data_ptr(), name)
    end
    t.eq(tostring(nn.ReLU { inplace = true }), "ReLU(inplace=true)")
    t.eq(tostring(nn.LeakyReLU(0.2, true)), "LeakyReLU(negative_slope=0.2, inplace=true)")
    t.eq(nn.functional.relu_(tide.tensor { -1, 2 }):tolist(), { 0, 2 })
end)

-- ---- summary ----

t.test("a_summary_shows_shapes_parameters_and_memory", function()
    local shared = nn.Linear(3, 3)
    local model = nn.Sequential(shared, nn.BatchNorm1d(3), nn.Dropout(), shared)
    model[2].weight:requires_grad_(false)
    t.eq(model:summary(tide.ones(2, 3)), table.concat({
        "Module              Output shape  Parameters  Output memory",
        "-----------------------------------------------------------",
        "Sequential          (2, 3)                 -              -",
        "  (1): Linear       (2, 3)                12           24 B",
        "  (2): BatchNorm1d  (2, 3)                 6           24 B",
        "  (3): Dropout      (2, 3)                 -           24 B",
        "  (4): Linear       (2, 3)                 -           24 B",
        "-----------------------------------------------------------",
        "Parameters: 18 (15 to learn), 72 B; buffers: 32 B",
        "Outputs of all layers: 96 B" }, "\n"))
    t.is_true(model.training and model[2].training)
    t.eq(model[2].num_batches_tracked:item(), 0)
    t.error_has(function() model:summary(tide.ones(2, 4)) end, "linear")
    t.is_true(model.training)
    t.is_true(rawget(shared, "_hooks") == nil)
    t.is_true(nn.Linear(1000, 1200):summary(tide.ones(1, 1000)):find("1,201,200 to learn), 4.6 MiB", 1, true))
    t.is_true(nn.LSTM(2, 3):summary(tide.ones(4, 1, 2)):find("(4, 1, 3), (1, 1, 3), (1, 1, 3)", 1, true))
end)

t.test("methods_that_nothing_calls_are_refused_by_a_class", function()
    for _, case in ipairs { { "__init", "init" }, { "__init__", "init" }, { "_init", "init" }, { "initialize", "init" }, { "new", "init" },
        { "__call__", "forward" }, { "call", "forward" }, { "__repr__", "describe" } } do
        local Net = tide.nn.class("Net")
        t.error_has(function() Net[case[1]] = function() end end,
            ("class Net: %s would never be called: write function Net:%s(...)"):format(case[1], case[2]))
        Net.new_head, Net.called, Net.initial = function() end, 1, {}
        Net[case[2]] = function() return "x" end
    end
end)

t.test("a_state_dict_may_be_taken_in_as_it_is", function()
    local Tied = tide.nn.class "Tied"
    function Tied:init()
        self.a, self.norm = tide.nn.Linear(3, 3, { bias = false }), tide.nn.BatchNorm1d(3)
        self.b = tide.nn.Linear(3, 3)
        self.b.weight = self.a.weight
        self.norm:requires_grad_(false)
    end
    local net = Tied()
    local kept = net:state_dict { keep_vars = true }
    t.is_true(rawequal(kept["a.weight"], net.a.weight) and kept["b.bias"].requires_grad)
    t.is_false(net:state_dict()["a.weight"].requires_grad)
    local given = {}
    for name, x in pairs(net:state_dict()) do
        given[name] = x:is_floating_point() and x:double() + 1 or x:clone()
    end
    given["b.weight"] = given["a.weight"]
    local loaded = net:load_state_dict(given, { assign = true })
    t.eq(tostring(loaded), "all keys matched")
    t.eq(net.a.weight.dtype, tide.float64)
    t.is_true(net.a.weight:data_ptr() == given["a.weight"]:data_ptr() and rawequal(net.a.weight, net.b.weight))
    t.eq({ net.a.weight.requires_grad, net.norm.weight.requires_grad, net.norm.running_mean.requires_grad }, { true, false, false })
    t.eq(#net:parameters(), 4)
    t.error_has(function() net:load_state_dict({ ["a.weight"] = tide.ones(2) }, { strict = false, assign = true }) end, "shape")
end)

t.test("a_module_without_elements_is_filled", function()
    local net = tide.set_default_device("meta", function() return tide.nn.Sequential(tide.nn.Linear(2, 3), tide.nn.BatchNorm1d(3)) end)
    local source = tide.nn.Sequential(tide.nn.Linear(2, 3), tide.nn.BatchNorm1d(3)):eval()
    local other = net:clone()
    t.is_true(rawequal(net:to_empty { device = "cpu" }, net))
    net:load_state_dict(source:state_dict())
    other:load_state_dict(source:state_dict(), { assign = true })
    local x = tide.randn(4, 2)
    t.is_true(tide.equal(net:eval()(x), source(x)) and tide.equal(other:eval()(x), source(x)))
    t.is_true(net[1].weight.requires_grad and net[1].weight.is_leaf)
end)
