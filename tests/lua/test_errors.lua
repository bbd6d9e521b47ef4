-- test_errors.lua: wrong calls end in one line that says what is wrong; the state lives on.
local t = require "harness"

local big = 1 << 62
local cases = {
    -- types, counts, names
    { function() tide.sin() end, "sin: argument 1 (x): expected a tensor, got nothing" },
    { function() tide.sin("x") end, "got string \"x\"" },
    { function() tide.ones(2):sin(1) end, "at most 0 arguments, got 1" },
    { function() tide.zeros(2, { dtpye = tide.float32 }) end, "did you mean 'dtype'?" },
    { function() tide.zeros(2, { dtype = "float33" }) end, "dtype" },
    { function() tide.zeros({ 2, "a" }) end, "size" },
    { function() tide.zeros({ 2 }, 3) end, "a list" },
    { function() tide.zeros(2.5) end, "no integer representation" },
    { function() tide.ones(2):sum(1, 2, { keepdim = 1 }) end, "keepdim" },
    { function() tide.ones(2):sum({ dim = 1, 2 }) end, "sum" },
    { function() tide.maximum(1, 2) end, "one argument at least must be a tensor" },
    { function() return tide.ones(2) + "a" end, "add" },
    { function() return tide.ones(2) .. "a" end, "concatenate" },
    { function() return tide.ones(2) < tide.ones(2) end, "x:lt(y)" },
    -- x > 1 is 1 < x in Lua: the method is that of what was written
    { function() return tide.ones(2) > 1 end, "x:gt(1)" },
    { function() return 0.5 < tide.ones(2) end, "x:gt(0.5)" },
    { function() return tide.ones(2) < 1 end, "x:lt(1)" },
    { function() return 1 > tide.ones(2) end, "x:lt(1)" },
    { function() return tide.ones(2) >= 1 end, "x:ge(1)" },
    { function() return 1 <= tide.ones(2) end, "x:ge(1)" },
    { function() return tide.ones(2) <= 1 end, "x:le(1)" },
    { function() return tide.ones(2) >= tide.ones(2) end, "x:ge(y)" },
    { function() return tide.ones(2):foo() end, "no field or method 'foo'" },
    { function() return tide.ones(2):summ() end, "did you mean 'sum'?" },
    -- shapes
    { function() return tide.ones(2, 3) + tide.ones(4, 5) end, "shapes (2, 3) and (4, 5) don't broadcast: 3 ≠ 5" },
    { function() return tide.ones(2, 3):matmul(tide.ones(4, 5)) end, "matmul: shapes (2, 3) and (4, 5) don't fit: 3 ≠ 4" },
    { function() return tide.tensor(1):matmul(tide.ones(2)) end, "0-dim" },
    { function() return tide.ones(3):view(2, 2) end, "3 elements don't fit into shape (2, 2)" },
    { function() return tide.ones(2, 3):t():view(6) end, "use reshape" },
    { function() return tide.ones(3):view(-1, -1) end, "only one size can be -1" },
    { function() return tide.ones(2, 3):expand(4, 3) end, "can't be expanded" },
    { function() return tide.cat {} end, "at least one tensor" },
    { function() return tide.cat { tide.ones(2), tide.ones(2, 2) } end, "tensor 2 of shape (2, 2)" },
    { function() return tide.cat { tide.ones(2), 3 } end, "element 2: expected a tensor, got number 3" },
    { function() return tide.stack { tide.ones(2), tide.ones(3) } end, "tensor 2 has shape (3)" },
    { function() return tide.conv2d(tide.ones(1, 1, 4, 4), tide.ones(1, 2, 3, 3)) end, "takes 2 channels, input has 1" },
    { function() return tide.conv2d(tide.ones(1, 1, 2, 2), tide.ones(1, 1, 3, 3)) end, "doesn't fit" },
    { function() return tide.conv2d(tide.ones(4, 4), tide.ones(1, 1, 3, 3)) end, "(N, C, H, W)" },
    { function() return tide.max_pool2d(tide.ones(1, 1, 2, 2), 3) end, "doesn't fit" },
    { function() return tide.max_pool2d(tide.ones(1, 1, 4, 4), 2, 2, 2) end, "at most half" },
    { function() return tide.interpolate(tide.ones(1, 1, 2, 2)) end, "size or scale_factor" },
    { function() return tide.interpolate(tide.ones(1, 1, 2, 2), { size = 3, mode = "cubic" }) end, "nearest" },
    { function() return tide.ones(3):max() + tide.zeros(0):max() end, "empty" },
    { function() return tide.ones(2, 3):permute(1, 1) end, "given twice" },
    { function() return tide.ones(2, 3):split({ 2, 1 }) end, "parts sum to 3" },
    -- values far out of reason
    { function() return tide.max_pool2d(tide.ones(1, 1, 4, 4), big) end, "kernel_size" },
    { function() return tide.conv2d(tide.ones(1, 1, 4, 4), tide.ones(1, 1, 1, 1), nil, big) end, "stride" },
    { function() return tide.conv2d(tide.ones(1, 1, 4, 4), tide.ones(1, 1, 1, 1), nil, 1, big) end, "padding" },
    { function() return tide.conv2d(tide.ones(1, 1, 4, 4), tide.ones(1, 1, 1, 1), nil, 1, 0, 1, 0) end, "groups" },
    { function() return tide.arange(0, 1e300, 1e-300) end, "arange" },
    { function() return tide.arange(1, 10, 0) end, "step must not be 0" },
    { function() return tide.arange(1, 10, -1) end, "never leads" },
    { function() return tide.arange(0 / 0) end, "finite" },
    { function() return tide.linspace(0, 1, -1) end, "negative" },
    { function() return tide.empty(1e15) end, "out of memory" },
    { function() return tide.ones(2):tile(1 << 40) end, "out of memory" },
    { function() return tide.ones(2):tile(big, 4) end, "too many elements" },
    { function() return tide.ones(2):tile(-1) end, "can't repeat -1 times" },
    { function() return tide.ones(1):expand(1 << 40, 1 << 40) end, "too many elements" },
    { function() return tide.ones(1):as_strided({ 1 << 40, 1 << 40 }, { 0, 0 }) end, "too many elements" },
    { function() return tide.ones(1):expand(1 << 50) + 1 end, "out of memory" },
    { function() return tide.ones(4):split({ big, big, big }) end, "part 1 has size" },
    { function() return tide.conv2d(tide.ones(1, 4, 4, 4), tide.ones(1, 4, 1, 1), nil, 1, 0, 1, big) end, "groups" },
    { function() return tide.interpolate(tide.ones(1, 1, 2, 2), { big, 1 }) end, "size must be from 1" },
    { function() return tide.interpolate(tide.ones(1, 1, 2, 2), { scale_factor = 1e300 }) end, "scale_factor" },
    { function() return tide.adaptive_avg_pool2d(tide.ones(1, 1, 2, 2), { 1 << 30, 1 << 30 }) end, "too large" },
    { function() return tide.ones(3):narrow(1, math.mininteger, 1) end, "don't lie in dim 1" },
    { function() return tide.ones(3):select(1, math.mininteger) end, "out of range" },
    { function() return tide.ones(3):sum(math.mininteger) end, "out of range" },
    { function() return tide.ones(3):gather(1, tide.tensor { math.mininteger }) end, "out of range" },
    { function() return tide.ones(3)[tide.tensor { math.maxinteger }] end, "out of range" },
    { function() return tide.eye(1 << 33) end, "out of memory" },
    { function() return tide.hamming_window(math.maxinteger) end, "out of memory" },
    { function() return tide.randperm(-1) end, "negative" },
    { function() return tide.randint(5, 5, { 2 }) end, "low must be less than high" },
    { function() return tide.ones(2):as_strided({ 3 }, { big }) end, "elements lie outside the storage of 2 elements" },
    { function() return tide.ones(2):as_strided({ 3 }, { 1 }) end, "outside the storage" },
    { function() return tide.ones(2):chunk(0) end, "at least 1" },
    { function() return tide.ones(2, 2):slice(1, 1, 2, 0) end, "step" },
    { function() tide.set_num_threads(0) end, "1 to 1024" },
    -- dims and indices
    { function() return tide.ones(2, 3):sum(3) end, "dim 3 is out of range for a tensor of 2 dims" },
    { function() return tide.ones(2, 3):sum(0) end, "dims count from 1 (PyTorch's dim=0 is 1)" },
    { function() return tide.ones(2, 3):sum(-3) end, "dim -3" },
    { function() return tide.ones(2, 3):sum({ 1, 1 }) end, "twice" },
    { function() return tide.ones(2, 3):select(1, 0) end, "count from 1" },
    { function() return tide.ones(2, 3):gather(1, tide.tensor { { 3 } }) end, "index 3 is out of range for dim 1 of size 2" },
    { function() return tide.ones(2, 3):gather(1, tide.ones(1, 1)) end, "integers" },
    { function() return tide.ones(2, 3):index_select(1, tide.tensor { 0 }) end, "count from 1" },
    { function() return tide.where(tide.ones(2), 1, 2) end, "where: the condition must be bool, got float32" },
    { function() return tide.one_hot(tide.tensor { 5 }, 3) end, "one_hot" },
    { function() return tide.cross_entropy(tide.ones(2, 3), tide.tensor { 0, 1 }) end, "class 0: classes count from 1 (PyTorch's 0 is 1): target + 1" },
    { function() return tide.nll_loss(tide.ones(2, 3), tide.tensor { 1, 0 }) end, "nll_loss: class 0: classes count from 1" },
    { function() return tide.multi_margin_loss(tide.ones(2, 3), tide.tensor { 0, 1 }) end, "multi_margin_loss: index 0: indices count from 1" },
    { function() return tide.one_hot(tide.tensor { 0, 1 }) end, "one_hot: class 0: classes count from 1" },
    { function() return tide.cross_entropy(tide.ones(2, 3), tide.ones(2)) end, "classes are integers (target:long())" },
    { function() return tide.cross_entropy(tide.ones(2, 3, 4), tide.ones(2, 4)) end, "of x's shape (2, 3, 4), got shape (2, 4): classes are integers" },
    { function() return tide.nll_loss(tide.ones(2, 3), tide.ones(2)) end, "must be integers, got float32 (target:long() converts)" },
    { function() return tide.multi_margin_loss(tide.ones(2, 3), tide.ones(2)) end, "(target:long() converts)" },
    { function() return tide.cross_entropy(tide.ones(2, 3), tide.one_hot(tide.tensor { 1, 2 }, 3)) end, "expected (2), a class each: one-hot targets are target:float()" },
    { function() return tide.nll_loss(tide.ones(2, 3), tide.one_hot(tide.tensor { 1, 2 }, 3)) end, "target:argmax(dim)" },
    { function() return tide.cross_entropy(tide.ones(2, 3), tide.tensor { { 1 }, { 2 } }) end, "expected (2): target:squeeze()" },
    { function() return tide.cross_entropy(tide.ones(2, 3), tide.tensor { 1, 2, 3 }) end, "expected (2)" },
    { function() return tide.ones(2, 3):gather(2, tide.tensor { 1, 2 }) end, "gather: index of shape (2) doesn't fit x of shape (2, 3): it needs 2 dims" },
    { function() return tide.ones(2, 3):scatter(2, tide.tensor { 1, 2 }, 1) end, "index:unsqueeze(-1)" },
    { function() return tide.ones(2, 3):scatter_(1, tide.tensor { 1, 2 }, tide.ones(2)) end, "scatter_: index of shape (2)" },
    { function() return tide.ones(2, 3):scatter_add_(1, tide.tensor { { { 1 } } }, tide.ones(1, 1, 1)) end, "it needs 2 dims" },
    { function() return tide.ones(3):gather(1, tide.tensor { { 1, 2 } }) end, "it needs 1 dim" },
    { function() return tide.ones(2, 3):gather(2, tide.ones(3, 1):long()) end, "outside dim 2" },
    { function() return tide.ones(2).values end, "a dense tensor has no 'values': several results come one behind the other" },
    { function() return tide.ones(2).indices end, "(x:indices() is for sparse tensors)" },
    { function() tide.ones(2).data = tide.ones(2) end, "x.data:copy_(y) writes its values" },
    { function() return tide.cat(tide.ones(2), tide.ones(2)) end, "expected a list of tensors, got a tensor: put it in a table, {a, b}" },
    { function() return tide.hstack(tide.ones(2), tide.ones(2)) end, "hstack({a, b})" },
    { function() return tide.add(tide.ones(2), tide.ones(4):chunk(2)) end, "got a list of 2 tensors: local a, b = table.unpack(list)" },
    { function() return tide.relu(tide.ones(4):split(1)) end, "got a list of 4 tensors" },
    { function() return tide.nn.functional.smooth_l1 end, "did you mean 'smooth_l1_loss'?" },
    { function() return tide.nn.functional.mse end, "did you mean 'mse_loss'?" },
    { function() return tide.nn.functional.huber end, "did you mean 'huber_loss'?" },
    { function() return tide.nn.functional.l1 end, "did you mean 'l1_loss'?" },
    { function() return tide.nn.functional.kl end, "did you mean 'kl_div'?" },
    { function() return tide.nn.SmoothL1 end, "did you mean 'SmoothL1Loss'?" },
    { function() return tide.nn.CrossEntropy end, "did you mean 'CrossEntropyLoss'?" },
    { function() return tide.nn.MSE end, "did you mean 'MSELoss'?" },
    { function() return tide.nn.BCE end, "tide.nn.BCELoss()" },
    { function() return tide.nn.functional.bce end, "binary_cross_entropy" },
    { function() return tide.cross_entropy(tide.ones(2, 3), tide.tensor { 4, 1 }) end, "cross_entropy: target 4" },
    -- dtypes and devices
    { function() return tide.ones(2, 2):mm(tide.ones(2, 2):double()) end, "dtypes float32 and float64 differ" },
    { function() return tide.ones(2):long():mean() end, "floating dtype" },
    { function() return tide.ones(2):bool() - tide.ones(2):bool() end, "bool" },
    { function() return tide.ones(2) & tide.ones(2) end, "integers or bool" },
    { function() return tide.ones(2):long() % 0 end, "zero" },
    { function() return tide.ones(2, { device = "cuda:99" }) end, "cuda" },
    { function() return tide.ones(2, { device = "tpu" }) end, "'tpu' is no device" },
    { function() return tide.ones(2, { dtype = tide.int32, requires_grad = true }) end, "floating" },
    { function() return tide.ones(2):dropout(1.5) end, "between 0 and 1" },
    { function() return tide.full({ 2 }, 3.0):bernoulli() end, "between 0 and 1" },
    { function() return tide.ones(2):normal_(0, -1) end, "negative" },
    -- tables
    { function() return tide.tensor({ 1, { 2 } }) end, "element (2) is a table" },
    { function() return tide.tensor({ { 1, 2 }, { 3 } }) end, "element (2) has 1 elements" },
    { function() return tide.tensor({ 1, "a" }) end, "is string \"a\", not a number" },
    { function() return tide.tensor() end, "tensor" },
    { function() return tide.tensor(1, 2, 3) end, "put the values in a table" },
    { function() return tide.progress("x") end, "progress: argument 1 (n): expected an integer from 0 on" },
    { function() return tide.io.read_csv(3, 4) end, "read_csv" },
}

for k, case in ipairs(cases) do
    t.test(("case_%d_%s"):format(k, case[2]:gsub("%W+", "_")), function()
        t.error_has(case[1], case[2])
        local ok, message = pcall(case[1])
        t.is_true(not ok and not message:find("\n"), "one line")
        t.is_true(message:find("test_errors.lua:%d+: "), "the user's line: " .. message)
    end)
end

t.test("names_of_any_bytes_are_shown_on_one_line", function()
    local x = tide.ones(2)
    for _, call in ipairs {
        function() return x["a\nb"] end, function() return tide.zeros(2, { dtype = "a\nb" }) end,
        function() return tide.zeros(2, { device = "a\nb" }) end, function() return x["1\n:x"] end,
        function() return tide.zeros("a\nb") end, function() return tide._function("f(\n", "") end,
        function() return tide.sum(x, { ["a\nb"] = 1 }) end, function() return tide.io.read_csv("a\nb") end,
        function() tide._fail("a\n%s", "b") end,
    } do
        local ok, message = pcall(call)
        t.is_true(not ok and not message:find("[\0-\31]"), message)
    end
end)

t.test("a_NUL_ends_no_name_in_silence", function()
    local x = tide.ones(4)
    t.error_has(function() return tide.zeros(2, { dtype = "float32\0x" }) end, 'got string "float32\\x00x"')
    t.error_has(function() return tide.zeros(2, { device = "cpu\0x" }) end, '"cpu\\x00x" holds a NUL byte')
    t.error_has(function() return tide.mse_loss(x, x, { reduction = "sum\0" }) end, '"sum\\x00" holds a NUL byte')
    t.error_has(function() return x["1:2\0"] end, "expected at position 4")
    t.error_has(function() return x[{ "1\0,2" }] end, "expected at position 2")
end)

t.test("extremes_that_are_no_errors", function()
    t.eq(tide.ones(3):roll(math.mininteger):sum():item(), 3)
    t.eq(tide.arange(3):roll(math.maxinteger, 1):sum():item(), 3)
    t.eq(#tide.ones(4):split(big), 1)
    t.eq(#tide.ones(4):chunk(big), 4)
    t.eq(tide.ones(4)["-9223372036854775807:"]:numel(), 4)
    t.eq(tide.ones(4):slice(1, 2, math.maxinteger):numel(), 3)
    t.eq(tide.ones(4):slice(1, 1, 4, big):numel(), 1)
    t.eq(tide.ones(4, 4):tril(math.mininteger):sum():item(), 0)
    t.eq(tide.ones(4, 4):triu(math.maxinteger):sum():item(), 0)
    t.eq(tide.ones(2, 2):tile(2, 3) == tide.ones(4, 6), true)
    t.eq(tide.arange(2):tile(2) == tide.tensor { 0, 1, 0, 1 }, true)
end)

t.test("a_method_that_a_dot_called_says_so", function()
    local layer = tide.nn.Linear(2, 2)
    t.error_has(function() layer.forward(tide.ones(2)) end, "forward got it as self: a method is called with a colon, x:forward()")
    t.error_has(function() return tide.ones(2).weight end, "a tensor has no field or method 'weight'")
    local function self(x) return x.weight end
    t.error_has(function() return self(tide.ones(2)) end, "a tensor has no field or method 'weight'")
end)

t.test("the_state_lives_on", function()
    t.eq((tide.ones(2, 3) * 2):sum():item(), 12)
end)
t.test("a_number_has_no_classes_to_weigh", function()
    for _ = 1, 3 do
        t.error_has(function() tide.cross_entropy(tide.tensor(1.0), tide.tensor(0.5), tide.tensor { 1.0 }) end, "each of 0 classes")
    end
end)
