-- test_finalizers.lua: whatever Lua allocates within a call may run a finalizer, and that may close the
-- call's own arguments: the call then goes on with what it has, or says that a tensor was closed. A use of
-- freed memory shows under the address sanitizer, or as wrong numbers here.
local t = require "harness"
local grad = tide.autograd.grad

local N, VALUE = 512, 3

local closed = 0

-- Garbage whose finalizer closes the tensors and fills what they leave with other numbers; the last of them
-- lays the next, so that there is always one that waits.
local function lay_mine(victims, again)
    for _ = 1, again and 1 or 4 do
        setmetatable({}, { __gc = function()
            for _, x in ipairs(victims) do
                x:free()
                closed = closed + 1
            end
            for _ = 1, 4 do
                tide.full({ N }, -77.0)
            end
            if #victims > 0 then
                lay_mine(victims, true)
            end
        end })
    end
end

-- A step of the collector at nearly every allocation. The full collection ends what the mode before allowed to be allocated first.
local function collect_always()
    collectgarbage("incremental", 10, 4000, 4)
    collectgarbage()
end

local function leaf() return tide.full({ N }, VALUE + 0.0, { requires_grad = true }) end

-- Calls with two tensors of 512 threes (the second one for those that need it), and what they give.
local calls = {
    unary = { function(a) return a:exp():log()[1]:item() end, VALUE },
    unary_long = { function(a) return tide.neg(a, { out = tide.empty(N) })[1]:item() end, -VALUE },
    binary = { function(a, b) return (a + b)[N]:item() end, 2 * VALUE },
    binary_long = { function(a, b) return a:add(b, { alpha = 2 })[N]:item() end, 3 * VALUE },
    minus = { function(a) return (-a)[1]:item() end, -VALUE },
    in_place = { function(a, b) a:add_(b); return a[1]:item() end, 2 * VALUE },
    out = { function(a, b) return tide.add(a, b, { out = a })[1]:item() end, 2 * VALUE },
    list = { function(a, b) return tide.cat({ a, b })[2 * N]:item() end, VALUE },
    list_of_victims = { function(a, b, list) return tide.stack(list, 2):sum():item() end, 2 * N * VALUE },
    number_index = { function(a) return a[5]:item() end, VALUE },
    range_index = { function(a) return a[{ { 2, 7 } }]:sum():item() end, 6 * VALUE },
    text_index = { function(a) return a["3:5, nil"]:sum():item() end, 3 * VALUE },
    mask_index = { function(a, b) return a[b:gt(0)]:sum():item() end, N * VALUE },
    tensor_index = { function(a, b) return a[b:long()]:sum():item() end, N * VALUE },
    index_argument = { function(a, b) return a:gather(1, b:long())[1]:item() end, VALUE },
    write = { function(a, b) a[{ { 1, 4 } }] = b[{ { 1, 4 } }]; return a[1]:item() end, VALUE },
    write_masked = { function(a, b) a[b:gt(0)] = 5; return a[1]:item() end, 5 },
    tolist = { function(a) return a:tolist()[N] end, VALUE },
    text = { function(a) return tostring(a):match("%d") or error("closed") end, tostring(VALUE) },
    copy = { function(a) return tide.tensor(a)[N]:item() end, VALUE },
    conversion = { function(a) return a:double()[N]:item() end, VALUE },
    transposed = { function(a) return a:view(2, N / 2).T[1][1]:item() end, VALUE },
    several_results = { function(a) local x = a:max(1); return x:item() end, VALUE },
    split = { function(a) return a:split(N / 2)[2][1]:item() end, VALUE },
    gradient = { function(a, b) return grad((a * b):sum(), { a, b })[1][N]:item() end, VALUE, leaf },
    gradient_option = { function(a, b) return grad(a * 1, a, { grad_outputs = { b:detach() } })[1][1]:item() end, VALUE, leaf },
    backward = { function(a, b) (a * 2):backward(b:detach()); return a.grad[1]:item() end, 2 * VALUE, leaf },
    grad_field = { function(a) a:sum():backward(); return a.grad[N]:item() end, 1, leaf },
    shape = { function(a) return a.shape[1] end, N },
    optimizer = { function(a)
        local sgd = tide.optim.SGD({ a }, { lr = 1, momentum = 0.9 })
        a:sum():backward()
        sgd:step()
        sgd:step()
        return a[N]:item()
    end, VALUE - 2.9, leaf, 1e-5 },
    lists = { function(a, b)
        tide._sgd_step("param grad rate: param = param + rate * grad", { a }, { b }, { numbers = { -1 } })
        return a[N]:item()
    end, 0 },
    module = { function(a, b)
        local layer = tide.nn.Linear(N, 1, { bias = false })
        layer.weight = a:detach():view(1, N):requires_grad_(true)
        return layer(b):item()
    end, N * VALUE * VALUE },
    hooks_of_a_second_gradient = { function(a)
        local first = grad((a * a):sum(), a, { create_graph = true })[1]
        return grad(first:sum(), a)[1][N]:item()
    end, 2, leaf },
    iterator = { function(a)
        local sum = 0
        for _, x in ipairs(a:view(8, -1)) do
            sum = sum + x:sum():item()
        end
        return sum
    end, N * VALUE },
    item = { function(a) return a:view(2, -1)[1][3]:item() end, VALUE },
}

local function run(name, call)
    local answered = 0
    for round = 1, 60 do
        local make = call[3] or function() return tide.full({ N }, VALUE + 0.0) end
        local a, b = make(), make()
        local list, victims = { a, b }, round > 3 and { a, b } or {}
        lay_mine(victims)
        local ok, got = pcall(call[1], a, b, list)
        victims[1], victims[2] = nil, nil -- nothing is laid any more
        if ok then
            answered = answered + 1
            (call[4] and t.close or t.eq)(got, call[2], call[4] or name, name)
        else
            t.is_true(tostring(got):find("closed", 1, true), name .. ": " .. tostring(got))
        end
    end
    t.is_true(answered >= 3, name .. " answers where nothing is closed")
end

for name, call in pairs(calls) do
    t.test("arguments_may_be_closed_within_" .. name, function()
        collect_always()
        local ok, message = pcall(run, name, call)
        collectgarbage("incremental", 200, 100, 13)
        t.is_true(ok, message)
    end)
end

-- A finalizer may also give an argument other memory: as out= of another shape.
local given = 0
local texts = {
    tolist = function(x) return #x:tolist() end,
    tostring = function(x) return #tostring(x) end,
    text_of_many = function(x) return #tostring(x:view(-1)) end,
}
for name, call in pairs(texts) do
    t.test("arguments_may_get_other_memory_within_" .. name, function()
        local x, want
        local function arm()
            setmetatable({}, { __gc = function()
                if x then
                    given = given + 1
                    tide.add(tide.ones(3), 1, { out = x })
                    tide.full({ 2000 }, -77.0)
                    arm()
                end
            end })
        end
        want = call(tide.ones(40, 20))
        collect_always()
        for _ = 1, 100 do
            x = tide.ones(40, 20)
            local size = call(x, arm())
            t.is_true(size == want or x:dim() == 1, size)
        end
        x = nil
        collectgarbage("incremental", 200, 100, 13)
        collectgarbage("generational")
    end)
end

t.test("the_finalizers_ran", function() t.is_true(closed > 100 and given > 100, closed .. " " .. given) end)
