-- Tensor programs made at random, from a fixed seed: compiled they give what they give as they stand, values, gradients, shapes,
-- numbers drawn and errors.
local t = require "harness"

local PROGRAMS, CALLS = 250, 6

local seed = 4711
local function draw(n)
    seed = (seed * 1103515245 + 12345) % 2147483648
    return seed // 65536 % n + 1
end
local function pick(list) return list[draw(#list)] end

-- A program keeps its tensors in v; statements make a new one of those before, or do something to one.
local function operand(n) return "v[" .. draw(n) .. "]" end
local function statement(n)
    local a, b = operand(n), operand(n)
    return pick {
        function() return ("v[#v + 1] = %s * %s + %d"):format(a, b, draw(3)), true end,
        function() return ("v[#v + 1] = (%s - %s):tanh()"):format(a, b), true end,
        function() return ("v[#v + 1] = %s:sigmoid() / (%s:abs() + 1)"):format(a, b), true end,
        function() return ("v[#v + 1] = %s:matmul(%s.T)"):format(a, b), true end,
        function() return ("v[#v + 1] = %s:sum(%d, { keepdim = true }) + %s"):format(a, draw(2), b), true end,
        function() return ("v[#v + 1] = tide.cat({ %s, %s }, 1):chunk(2, 1)[%d]"):format(a, b, draw(2)), true end,
        function() return ("v[#v + 1] = %s:t():contiguous()"):format(a), true end,
        function() return ("v[#v + 1] = %s:view(-1)[%s]:expand(3, 3)"):format(a, draw(9)), true end,
        function() return ("v[#v + 1] = %s:index_select(1, order)"):format(a), true end,
        function() return ("v[#v + 1] = tide.where(%s:gt(%s), %s, %s * 0.5)"):format(a, b, a, b), true end,
        function() return ("v[#v + 1] = tide.nn.functional.dropout(%s, 0.3)"):format(a), true end,
        function() return ("v[#v + 1] = tide.rand(3, 3):to(%s.dtype) + %s"):format(a, a), true end,
        function() return ("v[#v + 1] = %s:double():float()"):format(a), true end,
        function() return ("v[#v + 1] = tide.no_grad(function() return %s:exp():clamp(0, 2) end)"):format(a), true end,
        function() return ("v[#v + 1] = %s:sum():item() > 0 and %s + 1 or %s - 1"):format(a, b, b), true end,
        function() return ("v[#v + 1] = %s[%d] + %s"):format(a, draw(3), b), true end,
        function() return ("v[#v + 1] = %s:softmax(%d)"):format(a, draw(2)), true end,
        function() return ("v[#v + 1] = %s:detach() * %s"):format(a, b), true end,
        function() return ("do local w = %s + 0; w:mul_(%s):add_(1); v[#v + 1] = w end"):format(a, b), true end,
        function() return ("do local w = %s:clone(); w[%d] = 2; v[#v + 1] = w * w end"):format(a, draw(3)), true end,
        function() return ("v[%d]:add_(%d)"):format(draw(n), draw(3)) end, -- may be refused
        function() return ("n = n + %s:size(1) + #%s"):format(a, b) end,
        function() return ("v[%d] = v[%d]"):format(draw(n), draw(n)) end,
        function() return ("keep = %s"):format(a) end,
    }()
end

local function program()
    local lines, n = { "local tide, order = ...", "local keep", "return function(x, y)", "local v, n = { x, y }, 0" }, 2
    for _ = 1, 3 + draw(12) do
        local line, makes = statement(n)
        lines[#lines + 1] = line
        n = n + (makes and 1 or 0)
    end
    lines[#lines + 1] = "local loss = v[#v]:mean() + v[" .. draw(n) .. "]:sum() * 0.1"
    if draw(2) == 1 then
        lines[#lines + 1] = "if loss.requires_grad then loss:backward() end"
    end
    lines[#lines + 1] = ("return loss, n, v[#v], v[%d], v[%d], keep or false"):format(draw(n), draw(n))
    lines[#lines + 1] = "end"
    return table.concat(lines, "\n")
end

local order = tide.tensor { 2, 1, 3 }

-- All that a call of fn comes to: its results, gradients, the next number that is drawn; or its error.
local function outcome(fn, n, tracked)
    tide.manual_seed(n)
    local x = tide.randn(3, 3):requires_grad_(tracked)
    local y = n % 3 == 0 and tide.randn(3, 3).T or tide.randn(3, 3)
    local got = table.pack(pcall(fn, x, y))
    if got[1] and got[2].requires_grad and not x.grad then
        local ok, message = pcall(function() (got[2] + got[4]:sum() + got[5]:exp():sum()):backward() end)
        got[#got + 1] = ok or message
    end
    got[#got + 1], got[#got + 2] = x.grad or false, tide.rand(1)
    got[#got + 1] = x
    return got
end

local function differs(a, b)
    if #a ~= #b then
        return ("%d values and %d: %s"):format(#a, #b, a[2])
    end
    for k = 1, #a do
        if tide.is_tensor(a[k]) and tide.is_tensor(b[k]) then
            local p, q = a[k], b[k]
            if tostring(p.shape) ~= tostring(q.shape) or p.requires_grad ~= q.requires_grad or p.dtype ~= q.dtype
                or tostring(p:stride()) ~= tostring(q:stride()) then
                return ("value %d: %s and %s"):format(k, p, q)
            end
            -- Gradients that meet from several graphs may be added in another order.
            local same = k < #a - 2 and tide.equal(p:detach():nan_to_num(9), q:detach():nan_to_num(9))
                or k >= #a - 2 and tide.allclose(p:detach():nan_to_num(9), q:detach():nan_to_num(9), 1e-4, 1e-5)
            if not same then
                return ("value %d: %s and %s"):format(k, p, q)
            end
        elseif not tide.is_tensor(a[k]) and a[k] ~= b[k] and not (type(a[k]) == "string" and type(b[k]) == "string") then
            return ("value %d: %s and %s"):format(k, a[k], b[k])
        end
    end
end

t.test("programs_made_at_random_are_the_same_compiled", function()
    local graphs, gathered = 0, 0
    for number = 1, PROGRAMS do
        local text = program()
        local fn = assert(load(text))(tide, order)
        local f = tide.compile(assert(load(text, "=program"))(tide, order), { measure = false })
        local tracked = number % 2 == 0
        for n = 1, CALLS do
            local want = outcome(fn, n, tracked)
            local what = differs(outcome(f, n, tracked), want)
            t.is_true(not what, ("program %d, call %d: %s\n%s"):format(number, n, what, text))
        end
        local why = f:why()
        graphs, gathered = graphs + why.graphs, gathered + why.deferred
    end
    t.is_true(graphs > PROGRAMS, "graphs were made")
    t.is_true(gathered > 10 * PROGRAMS, "calls gathered")
end)
