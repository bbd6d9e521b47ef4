-- test_ctc.lua: the loss over alignments on the device against the CPU, and its gradient.
local t = require "harness"
local both = require "both"

if not both.there then
    t.skip("ctc", "no CUDA device")
    return
end

tide.manual_seed(7)
local ctc = tide.ctc_loss or tide.nn.functional.ctc_loss

-- Loss and gradient of scores of T steps, N sequences and C classes.
local function loss(options)
    return function(x, targets, inputs, lengths)
        local leaf = x:detach():clone():requires_grad_()
        local y = ctc(leaf:log_softmax(-1), targets, inputs, lengths, options)
        y:sum():backward()
        return y:detach(), leaf.grad
    end
end

-- Logarithms of T products of C numbers each are about T log C, and rounded as such.
local function near(dtype, T, C)
    return (dtype == "float64" and 1e-15 or 3e-7) * math.max(10, T * math.log(C))
end

t.test("padded_and_joined_targets", function()
    both.reset()
    for _, dtype in ipairs { "float32", "float64" } do
        for _, size in ipairs { { 5, 1, 3, 2 }, { 12, 4, 5, 3 }, { 40, 3, 300, 15 } } do
            local T, N, C, S = table.unpack(size)
            local x = tide.randn(T, N, C, { dtype = dtype })
            local targets = tide.randint(2, C + 1, { N, S })
            local lengths, inputs = tide.randint(0, S + 1, { N }), tide.randint(T - 2, T + 1, { N })
            lengths[1] = S
            for _, reduction in ipairs { "none", "sum", "mean" } do
                both.close(near(dtype, T, C), loss { reduction = reduction }, x, targets, inputs, lengths)
            end
            both.close(near(dtype, T, C), loss { zero_infinity = true, blank = C }, x, targets - 1, inputs, lengths)
            local joined = tide.randint(2, C + 1, { lengths:sum():item() })
            both.close(near(dtype, T, C), loss { reduction = "none" }, x, joined, inputs, lengths)
            both.close(near(dtype, T, C), loss {}, x:transpose(1, 2):contiguous():transpose(1, 2), targets:t():contiguous():t(),
                inputs:to("int32"), lengths)
        end
    end
    if both.launches("") then
        t.is_true(both.launches("td_ctc_forward") > 0 and both.launches("td_ctc_backward") > 0, "its kernels ran")
    end
end)

t.test("repetitions_and_what_does_not_fit", function()
    local x = tide.randn(9, 4, 4, { dtype = "float64" })
    local targets = tide.tensor({ { 2, 2, 2, 3 }, { 3, 2, 3, 2 }, { 4, 4, 4, 4 }, { 2, 3, 4, 2 } }, { dtype = "int64" })
    local inputs, lengths = tide.tensor({ 9, 9, 3, 0 }, { dtype = "int64" }), tide.tensor({ 4, 4, 4, 0 }, { dtype = "int64" })
    for _, infinite in ipairs { true, false } do
        both.close(1e-12, loss { reduction = "none", zero_infinity = infinite }, x, targets, inputs, lengths)
    end
    both.close(1e-12, loss { reduction = "none" }, x, targets, inputs, lengths * 0)
    both.close(1e-12, loss {}, x:select(2, 1), targets:select(1, 1), tide.tensor(9), tide.tensor(4))
    both.close(1e-12, loss { reduction = "none" }, tide.randn(600, 1, 7, { dtype = "float64" }), tide.randint(2, 8, { 1, 270 }),
        tide.tensor { 600 }:to("int64"), tide.tensor { 270 }:to("int64"))
end)

t.test("wrong_lengths_and_targets_are_refused", function()
    local function refusal(device, targets, inputs, lengths)
        local fine, what = pcall(function()
            local x = tide.randn(5, 2, 3, { device = device }):log_softmax(-1)
            local y = ctc(x, tide.tensor(targets, { dtype = "int64", device = device }),
                tide.tensor(inputs, { dtype = "int64", device = device }),
                tide.tensor(lengths, { dtype = "int64", device = device }), { reduction = "none" })
            return y:cpu()
        end)
        t.eq(fine, false)
        return tostring(what)
    end
    for _, case in ipairs {
        { { { 2, 3 }, { 2, 2 } }, { 5, 6 }, { 2, 2 }, "input_lengths: 6 at position 2" },
        { { { 2, 3 }, { 2, 2 } }, { -1, 5 }, { 2, 2 }, "input_lengths: %-1 at position 1" },
        { { { 2, 3 }, { 2, 2 } }, { 5, 5 }, { 1, -1 }, "target_lengths: %-1 at position 2" },
        { { { 2, 3 }, { 2, 4 } }, { 5, 5 }, { 2, 2 }, "target 4 of sequence 2 is not a class" },
        { { { 2, -3 }, { 2, 9 } }, { 5, 5 }, { 2, 2 }, "target .* of sequence 1 is not a class" },
        { { 2, 3, 2 }, { 5, 5 }, { 2, 2 }, "target_lengths add up to 4, but there are 3 targets" },
    } do
        for _, device in ipairs { "cpu", "cuda" } do
            local what = refusal(device, case[1], case[2], case[3])
            t.is_true(what:find(case[4]) ~= nil, device .. ": " .. what)
        end
    end
end)
