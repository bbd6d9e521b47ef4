-- test_quantized_everywhere.lua: quantized tensors where other tensors go: what takes them gives what PyTorch gives, and what does not says
-- so in a line that names them by their dtype.
local t = require "harness"
local nn, F = tide.nn, tide.nn.functional

tide.manual_seed(6)
local floats = tide.tensor { { -1.0, 0.25, 0.7 }, { 2.0, 0.5, -0.3 } }
local q = tide.quantize_per_tensor(floats, 0.1, 10, tide.quint8)
local by_channel = tide.quantize_per_channel(floats, tide.tensor { 0.1, 0.2 }, tide.tensor { 0, 1 }, 1, tide.qint8)
local mask = floats:gt(0)
local folder = os.tmpname()
os.remove(folder)

local function same(got, want) t.is_true(got.is_quantized and tide.equal(got, want), tostring(got)) end

-- ---- what is done ----

t.test("numbers_and_lists_that_are_assigned_are_rounded", function()
    local a, want = q:clone(), q:dequantize()
    a[1], want[1] = 0.53, 0.5
    a[{ 2, 3 }], want[{ 2, 3 }] = -1, -1
    a[{ 2, { 1, 2 } }], want[{ 2, { 1, 2 } }] = { 0.11, 100 }, tide.tensor { 0.1, 24.5 }
    t.is_true(tide.allclose(a:dequantize(), want))
    local b = by_channel:clone()
    b[2] = 0.5 -- by the second row's scale: half to even
    t.eq(b:dequantize()[2]:tolist(), tide.quantize_per_tensor(tide.full({ 3 }, 0.5), 0.2, 1, tide.qint8):dequantize():tolist())
    t.refused("index: a tensor, a number or a list of numbers can be assigned", function() a[1] = "x" end)
end)

t.test("tensors_are_stacked_as_joined", function()
    local other = tide.quantize_per_tensor(floats, 0.2, 3, tide.quint8)
    local y = tide.stack({ q, q }, 2)
    t.eq(y.shape, { 2, 2, 3 })
    same(y[":, 2"], q)
    same(tide.stack({ q, other }, 1)[2], tide.cat({ q, other }, 1)["3:"])
    same(tide.stack({ by_channel, by_channel }, 3)[":, :, 1"], by_channel)
    t.refused("stack: not for quantized tensors", tide.stack, { q, floats })
    t.refused("stack: tensor 2 has shape (3), the first (2, 3)", tide.stack, { q, q[1] })
end)

t.test("loaders_and_datasets_give_them", function()
    local labels = tide.tensor { 1, 2 }
    for _, workers in ipairs { 0, 1 } do
        local seen = {}
        for x, y in tide.data.DataLoader(tide.data.TensorDataset(q, labels), { batch_size = 2, num_workers = workers }) do
            same(x, q)
            t.eq(y:tolist(), { 1, 2 })
            seen[#seen + 1] = x
        end
        t.eq(#seen, 1)
    end
    for x in tide.data.DataLoader({ q[1], q[2] }, { batch_size = 2 }) do
        same(x, q)
    end
end)

t.test("plots_show_what_they_stand_for", function()
    t.eq(tostring(tide.plot.line(q[1])), tostring(tide.plot.line(q:dequantize()[1])))
    t.eq(tostring(tide.plot.hist(q)), tostring(tide.plot.hist(q:dequantize())))
    t.eq(tostring(tide.plot.image(q)), tostring(tide.plot.image(q:dequantize())))
end)

t.test("files_of_tide_keep_them", function()
    for _, ending in ipairs { ".pt", ".safetensors" } do
        tide.save({ a = q, b = by_channel }, folder .. ending)
        local back = tide.load(folder .. ending)
        os.remove(folder .. ending)
        same(back.a, q)
        same(back.b, by_channel)
    end
end)

-- ---- what is refused ----

local NOT = ": not for quantized tensors"

-- What is called, and what it says.
local REFUSED = {
    { "to: argument 2 (dtype): expected a dtype such as tide.float32, got tide.quint8", function() return floats:to(q) end },
    { "type_as: other is quantized", function() return floats:type_as(q) end },
    { "new_zeros" .. NOT, function() return q:new_zeros(2) end },
    { "new_ones" .. NOT, function() return q:new_ones(2) end },
    { "new_full" .. NOT, function() return q:new_full({ 2 }, 1) end },
    { "new_empty" .. NOT, function() return q:new_empty(2) end },
    { "new_tensor: x is quantized: give a dtype", function() return q:new_tensor { 1, 2 } end },
    { "ones_like" .. NOT, function() return tide.ones_like(q) end },
    { "this one is quint8", function() return q:clone():requires_grad_() end },
    { "this one is quint8", function() return tide.tensor(q, { requires_grad = true }) end },
    { "this one is quint8", function() return nn.Parameter(q) end },
    { "a quint8 gradient can't be that of a float32 tensor", function() floats:clone():requires_grad_().grad = q end },
    { "a quint8 gradient can't be that of a uint8 tensor", function() q:int_repr().grad = q end },
    { "to: x is quint8", function() (floats:clone():requires_grad_() * 1):backward(q) end },
    { "grad: input 1 does not require grad", function() return tide.autograd.grad(floats:clone():requires_grad_():sum(), { q }) end },
    { "gradcheck: no input requires grad", function() return tide.autograd.gradcheck(function(x) return x end, { q }) end },
    { "floats expected, got quint8", function() return tide.foreach.norm { q } end },
    { "foreach.add: entry 1: not for quantized tensors", function() return tide.foreach.add({ q, floats }, 1) end },
    { "save_npy: x is quint8: x:dequantize() or x:int_repr()", function() tide.save(q, folder .. ".npy") end },
    { "'x' is qint8: dequantize() or int_repr() is what NumPy's files hold", function() tide.save({ x = by_channel }, folder .. ".npz") end },
    { "write_csv: x is quint8", function() tide.io.write_csv(q, folder .. ".csv") end },
    { "to_arrow: not for quantized tensors", function() return tide.io.to_arrow(q) end },
    { "column 'a' is quint8: give its dequantize() instead", function() return tide.data.table { a = q[1] } end },
    { "onnx.export: '" .. folder .. "': input 1 is quint8: models take floats", function() tide.onnx.export(function(x) return x:relu() end, { q }, folder) end },
    { "expected a dtype such as tide.float32, got tide.quint8", function() return nn.LSTM(3, 2)(q:unsqueeze(1)) end },
    { "linear" .. NOT, function() return nn.Linear(3, 2)(q) end },
    { "batch_norm" .. NOT, function() return nn.BatchNorm1d(3)(q) end },
    { "equal" .. NOT, function() return q == floats end },
    { "eq" .. NOT, function() return q:eq(0.5) end },
    { "floor_divide" .. NOT, function() return q // 2 end },
    { "add_" .. NOT, function() return q:clone():add_(1) end },
    { "add_" .. NOT, function() return floats:clone():add_(q) end },
    { "copy_" .. NOT, function() return floats:clone():copy_(q) end },
    { "fill_" .. NOT, function() return q:clone():fill_(0.5) end },
    { "where" .. NOT, function() return tide.where(mask, q, q) end },
    { "where" .. NOT, function() return tide.where(q, floats, floats) end },
    { "scatter" .. NOT, function() return floats:scatter(1, tide.ones(1, 3):long(), q) end },
    { "gather" .. NOT, function() return q:gather(1, tide.ones(1, 3):long()) end },
    { "pad" .. NOT, function() return F.pad(q, { 1, 1 }) end },
    { "sort" .. NOT, function() return q:sort() end },
    { "unique" .. NOT, function() return q:unique() end },
    { "not for quantized tensors (x is qint8)", function() return floats[by_channel] end },
    { "not for quantized tensors", function() q:clone()[mask] = 0 end },
    { "not for quantized tensors", function() floats:clone()[1] = q[1] end },
    { "can't be read one by one", function() return tide.zeros(q[1][1]) end },
    { "tolist: not for quantized tensors", function() return q:tolist() end },
    { "normal_" .. NOT, function() return nn.init.normal_(q:clone()) end },
    { "relu: out= is a quantized tensor", function() return tide.relu(floats, { out = q:clone() }) end },
    { "relu: a quantized result can't go into out=", function() return tide.relu(q, { out = floats:clone() }) end },
    { "copy_" .. NOT, function() nn.Linear(3, 2):load_state_dict { weight = q, bias = tide.zeros(2) } end },
    { "the list of parameters is empty", function() return tide.optim.SGD(nn.quantized.Linear(3, 2):parameters(), { lr = 0.1 }) end },
    { "can't be read one by one", function() return tide.optim.SGD({ floats:clone():requires_grad_() }, { lr = q[1][1] }) end },
    { "to: x is quint8", function() return tide.distributions.Normal(q, 1) end },
    { "to: x is quint8", function() return tide.quantization.MinMaxObserver()(q) end },
    { "quantize_per_tensor" .. NOT, function() return tide.quantize_per_tensor(q, 0.1, 0, tide.quint8) end },
    { "quantize_per_channel" .. NOT, function() return tide.quantize_per_channel(floats, q[":, 1"], tide.zeros(2):long(), 1, tide.quint8) end },
}

t.test("what_does_not_take_them_says_so_in_a_line", function()
    for k, case in ipairs(REFUSED) do
        local ok, problem = pcall(case[2])
        t.is_true(not ok, "case " .. k .. ": " .. case[1])
        problem = tostring(problem)
        t.is_true(problem:find(case[1], 1, true) ~= nil, "case " .. k .. ": " .. problem)
        t.is_true(not problem:find "\n", problem)
    end
    t.is_true(tide.equal(q, tide.quantize_per_tensor(floats, 0.1, 10, tide.quint8)), "and nothing of it has changed")
end)

t.finish()
