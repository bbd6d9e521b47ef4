-- Modules of tide.nn and of one's own as graphs, against themselves.
local t = require "harness"
local nn = tide.nn

local function values(list)
    for k = 1, list.n do
        list[k] = tide.is_tensor(list[k]) and { tostring(list[k].shape), list[k]:detach():tolist() } or list[k]
    end
    return list
end

-- The script of a module gives what the module gives; random draws begin at the same seed.
local function same(module, ...)
    local scripted = tide.jit.script(module)
    tide.manual_seed(7)
    local want = values(table.pack(module(...)))
    tide.manual_seed(7)
    local got = values(table.pack(scripted(...)))
    t.eq(got, want, tostring(module))
end

t.test("layers_without_state", function()
    local x = tide.randn(2, 3)
    for _, name in ipairs { "ReLU", "GELU", "SiLU", "Tanh", "Sigmoid", "ReLU6", "SELU", "Mish", "Hardswish", "Hardsigmoid", "LeakyReLU",
        "ELU", "CELU", "Softplus", "Hardtanh", "Softsign", "Tanhshrink", "LogSigmoid", "Identity", "Flatten", "Dropout", "GLU" } do
        same(nn[name](), name == "GLU" and tide.randn(2, 4) or x)
    end
    same(nn.Softmax(-1), x)
    same(nn.LogSoftmax(2), x)
    same(nn.GELU { approximate = "tanh" }, x)
    same(nn.Dropout(0.5):eval(), x)
    same(nn.ReLU { inplace = true }, x:clone())
end)

t.test("layers_with_parameters", function()
    same(nn.Linear(3, 4), tide.randn(2, 3))
    same(nn.Linear(3, 4, false), tide.randn(2, 3))
    same(nn.Conv1d(2, 3, 2), tide.randn(1, 2, 5))
    same(nn.Conv2d(2, 3, 3, { padding = 1, stride = 2 }), tide.randn(1, 2, 6, 6))
    same(nn.Conv2d(2, 2, 3, { padding = "same", padding_mode = "reflect" }), tide.randn(1, 2, 6, 6))
    same(nn.Embedding(5, 3), tide.tensor { { 1, 5 }, { 2, 3 } })
    same(nn.PReLU(), tide.randn(3))
    same(nn.Bilinear(2, 3, 4), tide.randn(5, 2), tide.randn(5, 3))
end)

t.test("normalisations", function()
    same(nn.LayerNorm(3), tide.randn(2, 3))
    same(nn.RMSNorm(3), tide.randn(2, 3))
    same(nn.GroupNorm(2, 4), tide.randn(2, 4, 3))
    same(nn.BatchNorm1d(3):eval(), tide.randn(4, 3))
    same(nn.BatchNorm2d(3):eval(), tide.randn(2, 3, 4, 4))
    same(nn.InstanceNorm2d(3), tide.randn(2, 3, 4, 4))
end)

t.test("batch_norm_in_training_moves_its_statistics", function()
    local a = nn.BatchNorm2d(3)
    local b = a:clone()
    local x = tide.randn(2, 3, 4, 4)
    local scripted = tide.jit.script(b)
    for _ = 1, 2 do
        t.eq(scripted(x):tolist(), a(x):tolist())
    end
    t.eq(b.running_mean:tolist(), a.running_mean:tolist())
    t.eq(b.running_var:tolist(), a.running_var:tolist())
    t.eq(b.num_batches_tracked:item(), 2)
end)

t.test("batch_norm_refuses_other_dims_when_it_runs", function()
    local scripted = tide.jit.script(nn.BatchNorm2d(3))
    t.error_has(function() scripted(tide.randn(2, 3)) end, "expected 4 dims, got shape (2, 3)")
end)

t.test("pools_and_resampling", function()
    local x = tide.randn(1, 2, 6, 6)
    same(nn.MaxPool2d(2), x)
    same(nn.MaxPool2d(2, { return_indices = true }), x)
    same(nn.AvgPool2d(3, 1), x)
    same(nn.AdaptiveAvgPool2d(2), x)
    same(nn.Upsample { scale_factor = 2 }, x)
    same(nn.ZeroPad2d(1), x)
end)

t.test("losses", function()
    local function loss(module, a, b)
        local scripted = tide.jit.script(function(x, y) return module(x, y) end)
        t.eq(scripted(a, b):tolist(), module(a, b):tolist())
    end
    loss(nn.MSELoss(), tide.randn(3), tide.randn(3))
    loss(nn.CrossEntropyLoss(), tide.randn(3, 4), tide.tensor { 1, 4, 2 })
    loss(nn.CrossEntropyLoss(), tide.randn(3, 4), tide.rand(3, 4):softmax(2))
    loss(nn.NLLLoss(), tide.randn(3, 4), tide.tensor { 1, 4, 2 })
    loss(nn.BCEWithLogitsLoss(), tide.randn(3), tide.rand(3))
end)

t.test("an_lstm_cell_in_a_loop", function()
    local cell = nn.LSTMCell(2, 3)
    local function run(xs, h, c)
        for k = 1, xs:size(1) do
            h, c = cell(xs[k], { h, c })
        end
        return h, c
    end
    local scripted = tide.jit.script(run)
    local xs, h, c = tide.randn(4, 1, 2), tide.zeros(1, 3), tide.zeros(1, 3)
    t.eq(values(table.pack(scripted(xs, h, c))), values(table.pack(run(xs, h, c))))
end)

t.test("inputs_that_are_never_given", function()
    local up, x = nn.ConvTranspose2d(2, 3, 3), tide.randn(1, 2, 4, 4)
    t.eq(tide.jit.script(up, { types = "Tensor, nil" })(x):tolist(), up(x):tolist())
    local cell = nn.LSTMCell(2, 3)
    local scripted, y = tide.jit.script(cell, { types = "Tensor, nil, nil" }), tide.randn(4, 2)
    t.eq(values(table.pack(scripted(y))), values(table.pack(cell(y))))
end)

t.test("recurrent_layers_and_attention", function()
    local function compare(module, fn, ...)
        t.eq(values(table.pack(tide.jit.script(fn)(...))), values(table.pack(fn(...))), tostring(module))
    end
    local x = tide.randn(5, 2, 4)
    local lstm, gru = nn.LSTM(4, 3, 2), nn.GRU(4, 3, { bidirectional = true })
    compare(lstm, function(y)
        local out, state = lstm(y)
        return out, state[1], state[2]
    end, x)
    compare(gru, function(y, h)
        local out, last = gru(y, h)
        return out, last
    end, x, tide.randn(2, 2, 3))
    local attention, layer = nn.MultiheadAttention(4, 2), nn.TransformerEncoderLayer(4, 2, 8):eval()
    compare(attention, function(a, b)
        local y, weights = attention(a, b, b)
        return y, weights
    end, x, x * 2)
    compare(layer, function(y) return layer(y) end, x)
end)

t.test("a_multilayer_perceptron", function()
    same(nn.Sequential(nn.Linear(3, 8), nn.GELU(), nn.LayerNorm(8), nn.Dropout(0.3), nn.Linear(8, 2)), tide.randn(5, 3))
    same(nn.Sequential { { "first", nn.Linear(3, 4) }, { "last", nn.ReLU() } }, tide.randn(5, 3))
end)

local Block = nn.class "Block"
function Block:init(channels)
    self.conv1 = nn.Conv2d(channels, channels, 3, { padding = 1, bias = false })
    self.bn1 = nn.BatchNorm2d(channels)
    self.conv2 = nn.Conv2d(channels, channels, 3, { padding = 1, bias = false })
    self.bn2 = nn.BatchNorm2d(channels)
    self.layers = nn.ModuleList(nn.ReLU(), nn.Identity())
    self.scale = 0.5
end
function Block:residual(x)
    return self.bn2(self.conv2(self.bn1(self.conv1(x)):relu()))
end
function Block:forward(x)
    local y = self:residual(x) * self.scale + x
    for k = 1, #self.layers do
        y = self.layers[k](y)
    end
    if self.training then
        y = y * 2
    end
    return y
end

t.test("a_residual_block_of_ones_own", function()
    same(Block(2):eval(), tide.randn(1, 2, 4, 4))
    local block = Block(2)
    same(block, tide.randn(1, 2, 4, 4))
end)

t.test("modules_in_modules_of_their_kind", function()
    same(nn.Sequential(nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.ReLU(), nn.Linear(3, 2))), nn.Linear(2, 2)), tide.randn(4, 2))
    local encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16), 2):eval()
    local x = tide.randn(3, 2, 8)
    t.eq(tide.jit.script(function(y) return encoder(y) end)(x):tolist(), encoder(x):tolist())
end)

t.test("networks_of_the_notebooks", function()
    local folder = debug.getinfo(1, "S").source:match "^@(.*)tests/lua/jit/[^/]*$" .. "notebooks/networks/"
    local function network(name) return dofile(folder .. name .. ".lua") end
    local function alike(net, types, ...)
        local f = tide.jit.script(net, { types = types })
        t.eq(values(table.pack(f(...))), values(table.pack(net(...))), tostring(net))
    end
    alike(network("gpt").new({ tokens = 20, context = 16, width = 16, heads = 2, layers = 2 }):eval(), "Tensor, nil", tide.randint(1, 20, { 1, 8 }))
    tide.manual_seed(3)
    alike(network("diffusion").new(1, 8):eval(), nil, tide.randn(2, 1, 8, 8), tide.tensor { 1, 3 })
    alike(network("rnn").letters(10, 8, 1):eval(), "Tensor, nil", tide.randint(1, 10, { 2, 5 }))
end)

t.test("gradients_reach_parameters", function()
    local layer = nn.Linear(3, 2)
    local scripted, x = tide.jit.script(layer), tide.randn(4, 3)
    layer(x):sum():backward()
    local want = layer.weight.grad:tolist()
    layer:zero_grad()
    scripted(x):sum():backward()
    t.eq(layer.weight.grad:tolist(), want)
end)

t.test("modules_with_hooks_are_refused", function()
    local layer = nn.Linear(3, 2)
    layer:register_forward_hook(function() end)
    t.error_has(function() tide.jit.script(layer) end, "hooks")
    t.error_has(function() tide.jit.script(nn.Sequential(layer)) end, "hooks")
end)
