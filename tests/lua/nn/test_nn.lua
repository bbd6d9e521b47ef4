-- test_nn.lua: modules: parts, names, modes, printing, layers against the operators they stand for.
local t = require "harness"
local nn = tide.nn

local function names(iterator)
    local list = {}
    for name in iterator do
        list[#list + 1] = name
    end
    return list
end

t.test("sequential_counts_from_1_and_prints_as_a_tree", function()
    local model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Sequential(nn.Linear(3, 1, { bias = false })))
    t.eq(tostring(model), table.concat({
        "Sequential(",
        "  (1): Linear(in_features=2, out_features=3, bias=true)",
        "  (2): ReLU()",
        "  (3): Sequential(",
        "    (1): Linear(in_features=3, out_features=1, bias=false)",
        "  )",
        ")" }, "\n"))
    t.eq(names(model:named_parameters()), { "1.weight", "1.bias", "3.1.weight" })
    t.eq(#model:parameters(), 3)
    t.eq(#model, 3)
    t.eq(#model:modules(), 5)
    t.eq(tostring(model(tide.ones(4, 2)).shape), "(4, 1)")
end)

t.test("a_sequential_runs_what_is_in_it_now", function()
    local model = nn.Sequential(nn.ReLU(), nn.Tanh(), nn.Identity())
    model[2] = nil
    t.eq(model(tide.tensor { -1.0, 2.0 }):tolist(), { 0, 2 })
    t.eq(#model, 2)
    model.last = nn.Softmax(1)
    t.close(model(tide.tensor { 1.0, 1.0 }):tolist(), { 0.5, 0.5 })
    model:append(nn.Flatten(1))
    t.eq(tostring(model), "Sequential(\n  (1): ReLU()\n  (3): Identity()\n  (last): Softmax(dim=1)\n"
        .. "  (5): Flatten(start_dim=1, end_dim=-1)\n)")
    t.eq(nn.Sequential()(5), 5)
end)

t.test("empty_options_are_no_options", function()
    t.eq(tostring(nn.Linear(2, 3, {})), "Linear(in_features=2, out_features=3, bias=true)")
    t.eq(tostring(nn.ReLU({})), "ReLU()")
    t.eq(nn.Conv2d(1, 2, 3, {}).stride, { 1, 1 })
    t.eq(nn.MSELoss({})(tide.ones(2), tide.zeros(2)):item(), 1)
    t.error_has(function() nn.Linear({}) end, "(in_features): expected")
end)

t.test("classes_of_one_s_own", function()
    local Net = nn.class "Net"
    function Net:init(width)
        self.first = nn.Linear(2, width)
        self.scale = nn.Parameter(tide.ones(1))
        self:register_buffer("count", tide.zeros(1))
        self.note = "plain"
    end
    function Net:forward(x)
        return self.first(x):relu():sum(2) * self.scale
    end
    local Wide = nn.class("Wide", Net)
    function Wide:init()
        Net.init(self, 8)
    end
    local net = Wide()
    t.eq(names(net:named_parameters()), { "scale", "first.weight", "first.bias" })
    t.eq(names(net:named_buffers()), { "count" })
    t.eq(tostring(net(tide.ones(3, 2)).shape), "(3)")
    t.eq(tostring(net), "Wide(\n  (first): Linear(in_features=2, out_features=8, bias=true)\n)")
    t.error_has(function() nn.class("Empty")()(1) end, "has no forward")
    t.error_has(function() nn.class() end, "argument 1 (name): expected a string")
end)

t.test("a_part_used_twice_counts_once", function()
    local shared = nn.Linear(2, 2)
    t.eq(#nn.Sequential(shared, shared):parameters(), 2)
end)

t.test("modes_reach_all_children", function()
    local model = nn.Sequential(nn.Dropout(0.9), nn.Sequential(nn.Dropout(0.9)))
    local x = tide.ones(100)
    t.eq(model:eval()(x) == x, true)
    t.eq(model:train()(x) == x, false)
    t.eq(model[2].training, true)
end)

t.test("weights_start_as_in_pytorch", function()
    tide.manual_seed(0)
    local layer = nn.Linear(400, 300)
    local bound = 1 / math.sqrt(400)
    t.is_true(layer.weight:abs():max():item() <= bound)
    t.close(layer.weight:std():item(), bound / math.sqrt(3), bound * 0.02)
    t.is_true(layer.bias:abs():max():item() <= bound)
    local conv = nn.Conv2d(6, 16, 5)
    t.is_true(conv.weight:abs():max():item() <= 1 / math.sqrt(6 * 25))
    t.close(nn.init.xavier_uniform_(tide.empty(300, 400)):std():item(), math.sqrt(2 / 700), 1e-3)
    t.close(nn.init.kaiming_normal_(tide.empty(300, 400), { nonlinearity = "relu" }):std():item(), math.sqrt(2 / 400),
        1e-3)
end)

t.test("layers_are_their_operators", function()
    tide.manual_seed(1)
    local x = tide.randn(2, 4, 8, 8)
    local conv = nn.Conv2d(4, 6, 3, { stride = 2, padding = 1, groups = 2 })
    t.eq(conv(x) == tide.conv2d(x, conv.weight, conv.bias, 2, 1, 1, 2), true)
    t.eq(tostring(conv), "Conv2d(4, 6, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1), groups=2)")
    t.eq(nn.Conv2d { 4, 6, { 3, 1 }, bias = false }(x):size(3), 6)
    t.eq(nn.MaxPool2d(2)(x) == tide.max_pool2d(x, 2), true)
    t.eq(nn.AvgPool2d(2, { padding = 1 })(x) == tide.avg_pool2d(x, 2, 2, 1), true)
    t.eq(tostring(nn.AdaptiveAvgPool2d(1)(x).shape), "(2, 4, 1, 1)")
    t.eq(tostring(nn.Flatten()(x).shape), "(2, 256)")
    t.eq(tostring(nn.Flatten(1)(x).shape), "(512)")
    t.eq(nn.GELU()(x) == tide.gelu(x), true)
    t.is_true(tide.equal(nn.GELU("tanh")(x), tide.gelu(x, { approximate = "tanh" })))
    t.is_true(tide.equal(nn.Softmax2d()(tide.ones(2, 4, 1, 1)), tide.full({ 2, 4, 1, 1 }, 0.25)))
    t.error_has(function() nn.Softmax2d()(tide.ones(2)) end, "Softmax2d: input must have shape (N, C, H, W) or (C, H, W), got (2)")
    t.eq(nn.Softmax(2)(x) == tide.softmax(x, 2), true)
    t.eq(tostring(nn.Embedding(10, 3)(tide.tensor { 1, 10 }).shape), "(2, 3)")
end)

t.test("losses_count_classes_from_1", function()
    local scores = tide.tensor { { 2.0, 0.5, -1.0 }, { 0.0, 1.0, 3.0 } }
    local target = tide.tensor { 1, 3 }
    local want = -(scores:log_softmax(2)[1][1] + scores:log_softmax(2)[2][3]):item() / 2
    t.close(nn.CrossEntropyLoss()(scores, target):item(), want, 1e-6)
    t.close(nn.NLLLoss()(scores:log_softmax(2), target):item(), want, 1e-6)
    t.close(nn.CrossEntropyLoss { reduction = "sum" }(scores, target):item(), want * 2, 1e-6)
    t.close(nn.CrossEntropyLoss { weight = tide.tensor { 1.0, 1.0, 0.0 } }(scores, target):item(),
        -scores:log_softmax(2)[1][1]:item(), 1e-6)
    t.eq(nn.MSELoss()(tide.ones(2), tide.zeros(2)):item(), 1)
    t.error_has(function() nn.MSELoss { reduction = "max" } end, "reduction")
end)

t.test("fields_become_parts_whenever_they_are_assigned", function()
    local Net = nn.class "Net"
    function Net:init()
        self.pool, self.w = false, tide.ones(2)
        self.head = nn.Linear(2, 1)
        self.w = nn.Parameter(tide.ones(2))
        self.pool = nn.Linear(2, 2, { bias = false })
    end
    local net = Net()
    t.eq(names(net:named_parameters()), { "w", "head.weight", "head.bias", "pool.weight" })
    net.head, net.pool = nil, nil
    t.eq(names(net:named_parameters()), { "w" })
    t.eq(#net:children(), 0)
    net.w:requires_grad_(false)
    t.eq(names(net:named_parameters()), { "w" }, "a frozen parameter stays one")
    local layer = nn.Linear(2, 2)
    layer.weight = layer.weight * 2
    t.error_has(function() layer:parameters() end, "Linear: weight is a parameter")
end)

t.test("plain_values_take_no_part_s_place", function()
    local x = tide.ones(1, 2)
    local function made()
        local Net = nn.class "Net"
        function Net:init() self.fc, self.norm = nn.Linear(2, 2), nn.BatchNorm1d(2) end
        function Net:forward(y) return self.fc(y) end
        return Net()
    end
    local uses = { function(m) m(x) end, function(m) m:parameters() end, function(m) m:state_dict() end, function(m) m:zero_grad() end,
        function(m) return tostring(m) end, function(m) m:to(tide.float64) end, function(m) m:clone() end }
    for _, value in ipairs { 5, "x", true, {}, tide.zeros(2, 2), tide.relu } do
        for k, use in ipairs(uses) do
            local layer = nn.Linear(2, 2)
            layer.weight = value
            t.error_has(function() use(layer) end, "weight is a parameter, and", "use " .. k)
            local frozen = nn.Linear(2, 2):requires_grad_(false):clone()
            use(frozen)
            frozen.weight = value
            t.error_has(function() use(frozen) end, "write model.weight = nn.Parameter(x)")
            local net = made()
            net.fc = value
            t.error_has(function() use(net) end, "fc is a module, and")
        end
    end
    for _, value in ipairs { 5, "x", true, {}, tide.relu } do
        local norm = nn.BatchNorm1d(2)
        norm.running_mean = value
        t.error_has(function() norm:state_dict() end, "running_mean is a buffer, and")
    end
    local list = nn.Sequential(nn.Linear(2, 2))
    list[1] = tide.relu
    t.error_has(function() list(x) end, "write model[1] = module")
end)

t.test("tensors_and_modules_take_their_like_s_place", function()
    local layer, norm = nn.Linear(2, 2), nn.BatchNorm1d(2)
    layer.weight = nn.Parameter(tide.ones(2, 2))
    layer.bias.data:copy_(tide.ones(2))
    t.eq(layer(tide.ones(1, 2)):tolist(), { { 3, 3 } })
    layer.bias = nil
    t.eq(#layer:parameters(), 1)
    norm.running_mean = tide.ones(2)
    t.eq(norm:state_dict().running_mean:tolist(), { 1, 1 })
    local tied = nn.Linear(2, 2):requires_grad_(false)
    layer.weight = tied.weight
    t.eq(#layer:parameters(), 1, "another module's frozen parameter")
    local list = nn.Sequential(nn.Linear(2, 2), nn.ReLU()):double()
    list[2] = nn.Tanh()
    list[1] = list[1]:clone():requires_grad_(false)
    list[1]:float()
    t.eq(#list:clone():parameters(), 2)
    t.eq(list(tide.ones(1, 2)).dtype, tide.float32)
end)

t.test("names_and_values_are_counted_and_stand_for_lists_of_tensors", function()
    local net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    t.eq(#net:named_parameters(), 4)
    t.eq(#net:named_buffers(), 3)
    t.eq(#net:named_modules(), 3)
    local seen = {}
    for k, pair in ipairs(net:named_parameters()) do
        seen[k] = pair[1]
        t.eq(pair[2], net:get_parameter(pair[1]))
    end
    t.eq(seen, { "1.weight", "1.bias", "2.weight", "2.bias" })
    t.eq(net:named_parameters()[5], nil)
    local opt = tide.optim.SGD(net:named_parameters(), { lr = 0.1 })
    t.eq(#opt.param_groups[1].params, 4)
    t.eq(#tide.optim.Adam({ { params = net:named_parameters() } }).param_groups[1].params, 4)
    net(tide.randn(4, 2)):sum():backward()
    t.eq(nn.utils.clip_grad_norm_(net:named_parameters(), 1):dim(), 0)
    t.eq(nn.utils.parameters_to_vector(net:named_parameters()):numel(), 15)
    t.error_has(function() nn.utils.clip_grad_norm_(net, 1) end, "got Sequential: model:parameters() is one")
    t.error_has(function() tide.optim.SGD(net, { lr = 1 }) end, "pass model:parameters()")
    t.error_has(function() tide.optim.Adam({}) end, "nn.ModuleList")
    t.error_has(function() tide.optim.Adam(nn.Module():parameters()) end, "nn.ModuleList")
end)

t.test("arguments_that_a_class_would_not_read_are_refused", function()
    t.error_has(function() nn.Module("Net") end, 'nn.class("Net")')
    local Net = nn.class("Net")
    t.error_has(function() Net(3) end, "Net takes no arguments: function Net:init(...)")
    function Net:init(n) nn.Module.init(self) self.n = n end
    t.eq(Net(3).n, 3)
end)

t.test("what_a_container_of_modules_refuses_says_what_to_write", function()
    local list, dict = nn.Sequential(), nn.ModuleDict()
    for _, take in ipairs { nn.Sequential, nn.ModuleList, function(m) nn.Sequential(nn.ReLU(), m) end, function(m) nn.Sequential { m } end,
        function(m) list:append(m) end, function(m) list:insert(1, m) end, function(m) list:extend { m } end, function(m) dict:update { a = m } end,
        function(m) list:add_module("a", m) end, function(m) nn.ModuleDict { a = m } end } do
        t.error_has(function() take(tide.relu) end, "got function: take its module, such as nn.ReLU()")
        t.error_has(function() take(nn.ReLU) end, "got class ReLU: call the class, which makes a module")
    end
    t.error_has(function() nn.Sequential(5) end, "got number 5")
end)

t.test("first_states_say_how_they_are_written", function()
    local x, h = tide.randn(3, 1, 2), tide.zeros(1, 1, 4)
    for _, name in ipairs { "LSTM", "LSTMCell" } do
        local layer, of = nn[name](2, 4), name == "LSTM" and x or x[1]
        t.error_has(function() layer(of, h, h) end, name .. ": argument 2 (hx): expected {hidden state, cell state}, got two arguments: write lstm(x, {h0, c0})")
        t.error_has(function() layer(of, h) end, "got a tensor: write lstm(x, {h0, c0})")
    end
    for _, name in ipairs { "GRU", "RNN", "GRUCell", "RNNCell" } do
        local layer, of = nn[name](2, 4), string.find(name, "Cell") and x[1] or x
        t.error_has(function() layer(of, { h, h }) end, "expected one hidden state, got table: write " .. string.lower(name) .. "(x, h0)")
        t.error_has(function() layer(of, h, h) end, "got two arguments")
    end
end)

t.test("load_state_dict_says_what_it_wants", function()
    local net = nn.Linear(2, 2)
    local opt = tide.optim.SGD(net:parameters(), { lr = 1 })
    local objects = { net, opt, tide.optim.lr_scheduler.StepLR(opt, 1), tide.amp.GradScaler() }
    for _, object in ipairs(objects) do
        t.error_has(function() object:load_state_dict "net.tide" end, "load_state_dict(tide.load(path))")
        t.error_has(function() object:load_state_dict(object) end, "load_state_dict(other:state_dict())")
        t.error_has(function() object:load_state_dict(5) end, "expected a table, got number 5")
        object:load_state_dict(object:state_dict())
    end
    t.error_has(function() net:load_state_dict { model = net:state_dict(), epoch = 3 } end, "load_state_dict(t.model)")
end)

t.test("shared_parts_stay_shared", function()
    local Tied = nn.class "Tied"
    function Tied:init()
        self.a, self.b = nn.Linear(2, 2), nn.Linear(2, 2)
        self.b.weight = self.a.weight
    end
    local net = Tied()
    t.eq(#net:parameters(), 3)
    t.is_true(net:state_dict()["b.weight"], "the second name is there too")
    net:double()
    t.eq(rawequal(net.a.weight, net.b.weight), true)
    t.eq(net.b.weight.dtype, tide.float64)
    local relu = nn.ReLU()
    t.eq(#nn.Sequential(relu, relu):modules(), 2)
end)

t.test("conversions_keep_what_need_not_change", function()
    local layer = nn.Linear(2, 2)
    local weight = layer.weight
    local loss = layer(tide.ones(1, 2)):sum()
    loss:backward()
    layer:float()
    t.eq(rawequal(layer.weight, weight), true, "an optimizer still holds it")
    layer.bias:requires_grad_(false)
    layer:double()
    t.eq(layer.weight.grad.dtype, tide.float64)
    t.eq(layer.bias.requires_grad, false)
    t.error_has(function() layer:to(tide.int64) end, "floating dtype")
    t.error_has(function() layer:apply(3) end, "expected a function")
end)

t.test("functional_has_the_operators", function()
    local x = tide.tensor { -1.0, 2.0 }
    t.eq(nn.functional.relu(x) == tide.relu(x), true)
    t.eq(nn.functional.mse_loss(x, x):item(), 0)
end)

t.test("state_dict_goes_there_and_back", function()
    local a, b = nn.Sequential(nn.Linear(2, 2)), nn.Sequential(nn.Linear(2, 2))
    b:load_state_dict(a:state_dict())
    t.eq(a[1].weight:detach() == b[1].weight:detach(), true)
    t.error_has(function() b:load_state_dict({}) end, "missing 1.bias, 1.weight")
    t.error_has(function() b:load_state_dict({ ["1.weight"] = tide.ones(3), ["1.bias"] = tide.ones(2) }) end, "(3)")
    t.eq(a:double()[1].weight.dtype, tide.float64)
    t.eq(a[1].weight.requires_grad, true)
end)

t.test("wrong_arguments_name_the_layer", function()
    t.error_has(function() nn.Linear(2) end, "Linear: argument 2 (out_features): expected")
    t.error_has(function() nn.Linear(2, 3, { baas = true }) end, "did you mean 'bias'?")
    t.error_has(function() nn.Linear(2, 3, true, 4) end, "at most 3 arguments")
    t.error_has(function() nn.Conv2d(3, 4, { 1, 2, 3 }) end, "kernel_size")
    t.error_has(function() nn.Conv2d(3, 4, 3, { groups = 2 }) end, "groups")
    t.error_has(function() nn.Dropout(2) end, "a number from 0 to 1")
    t.error_has(function() nn.Sequential(nn.ReLU(), 3) end, "element 2: expected a Module")
    t.error_has(function() nn.Linear(2, 3)(tide.ones(2, 5)) end, "linear: input of shape (2, 5) has 5 features")
    t.error_has(function() nn.Linear.weight.x = 1 end, "nil")
end)

t.test("a_module_that_is_a_part_of_itself_is_refused", function()
    local inner = nn.Sequential(nn.Linear(1, 1))
    local outer = nn.Sequential(inner, inner)
    t.eq(#outer:parameters(), 2) -- one that occurs twice is none
    t.is_true(tostring(outer):find("Linear", 1, true))
    inner.back = outer
    local calls = {
        parameters = function(m) return m:parameters() end, state_dict = function(m) return m:state_dict() end,
        buffers = function(m) return m:named_buffers() end, tostring = tostring,
        apply = function(m) return m:apply(function() end) end, double = function(m) return m:double() end,
    }
    for name, call in pairs(calls) do
        t.error_has(function() call(outer) end, "Sequential is a part of itself, as 'back': take it out", name)
        t.error_has(function() call(inner) end, "Sequential is a part of itself, as ", name)
    end
    inner.back = nil
    t.eq(#outer:parameters(), 2)
end)

t.test("what_has_a_locked_metatable_is_no_module", function()
    local shape = tide.ones(2, 3).shape
    t.is_false(nn.is_module(shape))
    t.is_false(nn.is_module(setmetatable({}, { __metatable = print })))
    t.error_has(function() tide.optim.SGD(shape, { lr = 1 }) end, "SGD: parameter 1: expected a tensor, got number 2")
end)

t.test("modules_are_asked_for_their_class", function()
    local Net = nn.class("Net")
    local Deep = nn.class("Deep", Net)
    local rows = { -- value, class, is it one
        { nn.Linear(1, 1), nn.Linear, true }, { nn.Linear(1, 1), nn.Module, true }, { nn.Linear(1, 1), nn.ReLU, false }, { Deep(), Net, true },
        { Deep(), Deep, true }, { Net(), Deep, false }, { nn.Sequential(), nn.Module, true }, { 3, nn.Module, false }, { {}, nn.Module, false },
        { tide.ones(1), nn.Linear, false }, { nn.Linear, nn.Module, false } }
    for k, row in ipairs(rows) do
        t.eq(nn.is(row[1], row[2]), row[3], k)
    end
    t.is_true(nn.is(nn.ReLU(), { nn.Linear, nn.ReLU }))
    t.is_false(nn.is(nn.Tanh(), { nn.Linear, nn.ReLU }))
    t.is_false(nn.is(3, { nn.Linear }))
    for _, class in ipairs { "ReLU", {}, { nn.Linear, "ReLU" }, nn.ReLU(), { [2] = nn.ReLU } } do
        t.error_has(function() nn.is(nn.ReLU(), class) end, "expected a class")
    end
    t.error_has(function() nn.is(nn.ReLU(), nil) end, "argument 2 (class)")
end)

t.test("names_and_values_are_walked_with_and_without_pairs", function()
    local model = nn.Sequential(nn.Linear(1, 1), nn.BatchNorm1d(1))
    for _, name in ipairs { "named_parameters", "named_buffers", "named_children", "named_modules" } do
        local plain, paired, again = {}, {}, {}
        local named = model[name](model)
        for key, value in pairs(named) do
            paired[#paired + 1] = tostring(key) .. type(value)
        end
        for key, value in pairs(named) do
            again[#again + 1] = tostring(key) .. type(value)
        end
        for key, value in named do
            plain[#plain + 1] = tostring(key) .. type(value)
        end
        t.is_true(#plain > 0)
        t.eq(plain, paired, name)
        t.eq(again, paired, name)
    end
end)

t.test("parts_have_names_in_a_sequential_of_pairs", function()
    local model = nn.Sequential { { "stem", nn.Linear(2, 3) }, { "act", nn.ReLU() }, { "head", nn.Linear(3, 1) } }
    local names = {}
    for name in model:named_parameters() do
        names[#names + 1] = name
    end
    t.eq(names, { "stem.weight", "stem.bias", "head.weight", "head.bias" })
    t.eq(model(tide.ones(4, 2)).shape, { 4, 1 })
    t.error_has(function() nn.Sequential { { "stem", 3 } } end, "expected a Module")
    for _, key in ipairs { 0, -1 } do
        t.error_has(function() return model.head[key] end, "parts count from 1")
    end
    t.error_has(function() return model[{ 1, 2 }] end, 'model["2:4"]')
    t.eq(nn.Linear(1, 1, { bias = false }).bias, nil)
end)

t.test("embeddings_of_given_tables_share_them_and_learn_when_asked", function()
    local rows, index = tide.randn(4, 3), tide.tensor { { 1, 4 } }
    local before = tide.get_rng_state()
    local frozen = nn.Embedding.from_pretrained(rows)
    t.is_true(tide.equal(before, tide.get_rng_state()), "nothing is drawn")
    t.eq({ #frozen:parameters(), frozen.weight.requires_grad, frozen.num_embeddings, frozen.embedding_dim }, { 1, false, 4, 3 })
    t.is_true(tide.equal(frozen(index), tide.embedding(rows, index)))
    t.is_true(tide.equal(frozen:state_dict().weight, rows))
    rows[4] = 7
    t.eq(frozen(tide.tensor { 4 }):tolist(), { { 7, 7, 7 } })
    local learning = nn.Embedding.from_pretrained(rows, { freeze = false, padding_idx = 4 })
    learning(index):sum():backward()
    t.eq(learning.weight.grad:sum { dim = 2 }:tolist(), { 3, 0, 0, 0 })
    t.eq(learning.weight.data[4]:tolist(), { 7, 7, 7 }, "the row of padding stays as it is given")
    local bags = nn.EmbeddingBag.from_pretrained(rows, { mode = "sum" })
    t.is_true(tide.allclose(bags(index), (rows[1] + rows[4]):unsqueeze(1)))
    t.eq(tostring(bags), "EmbeddingBag(4, 3, mode=sum)")
    t.error_has(function() nn.Embedding.from_pretrained(tide.ones(3)) end, "expected a table (num_embeddings, embedding_dim), got shape (3)")
end)

t.test("a_table_with_a_class_as_its_metatable_can_be_printed", function()
    for _, class in ipairs { nn.Module, nn.Linear } do
        t.is_true(tostring(setmetatable({}, class)):find("not made", 1, true))
    end
end)
