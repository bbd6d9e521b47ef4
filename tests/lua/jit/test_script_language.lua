-- Functions of Lua as graphs: each construct against Lua itself.
local t = require "harness"
package.path = arg and arg[0] and package.path or package.path
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local h = dofile(here .. "/script_harness.lua")
local same = h.same

local ints = { { 0 }, { 1 }, { 2 }, { 7 }, { -3 } }
local pairs_of_ints = { { 7, 2 }, { -7, 2 }, { 7, -2 }, { 0, 5 }, { math.maxinteger, 3 }, { math.mininteger, -1 } }

t.test("arithmetic_of_integers_is_luas", function()
    same(function(a, b) --: int, int
        return a + b, a - b, a * b, a / b, a // b, a % b, a ^ 2, -a
    end, table.unpack(pairs_of_ints))
end)

t.test("integer_division_by_zero_is_an_error", function()
    same(function(a, b) --: int, int
        return a // b
    end, { 3, 0 }, { 3, 1 })
end)

t.test("arithmetic_of_floats_is_luas", function()
    same(function(a, b) --: float, float
        return a + b, a - b, a * b, a / b, a // b, a % b, a ^ b, -a
    end, { 7.5, 2.0 }, { -7.5, 2.0 }, { 1.0, 0.0 }, { 0.0, 0.0 }, { 1e308, 1e308 }, { 5.3, -0.7 })
end)

t.test("integers_and_floats_mix_as_in_lua", function()
    same(function(a, b) --: int, float
        return a + b, a * b, a // b, a % b, a < b, a == b, a >= b
    end, { 3, 2.0 }, { 2, 2.0 }, { -3, 0.5 }, { math.maxinteger, 9.2233720368547758e18 })
end)

t.test("bits_of_integers", function()
    same(function(a, b) --: int, int
        return a & b, a | b, a ~ b, a << 3, a >> b, ~a
    end, { 12, 10 }, { -1, 2 }, { 5, 70 })
end)

t.test("comparisons", function()
    same(function(a, b) --: int, int
        return a < b, a <= b, a > b, a >= b, a == b, a ~= b
    end, { 1, 2 }, { 2, 2 }, { 3, 2 })
end)

t.test("and_or_not_of_booleans", function()
    local function f(a, b) --: bool, bool
        return a and b, a or b, not a, not (a and not b), a == b
    end
    same(f, { true, true }, { true, false }, { false, true }, { false, false })
end)

t.test("and_or_give_lua_values", function()
    same(function(n) --: int
        local sign = n > 0 and 1 or n < 0 and -1 or 0
        local name = n > 2 and "large" or "small"
        return sign, name, n and 5, nil or n
    end, table.unpack(ints))
end)

t.test("what_and_does_not_reach_is_not_run", function()
    same(function(n) --: int
        return n ~= 0 and 10 // n > 2, n == 0 or 10 % n == 0
    end, table.unpack(ints))
end)

t.test("if_elseif_else", function()
    same(function(n) --: int
        local s
        if n > 5 then
            s = "large"
        elseif n > 0 then
            s = "some"
        elseif n == 0 then
            s = "none"
        else
            s = "less"
        end
        return s, n
    end, table.unpack(ints))
end)

t.test("a_variable_that_one_branch_sets_may_be_nil", function()
    same(function(n) --: int
        local y
        if n > 0 then
            y = n * 2
        end
        if y then
            return y + 1
        end
        return -1
    end, table.unpack(ints))
end)

t.test("early_return", function()
    same(function(n) --: int
        if n < 0 then
            return -1
        end
        if n == 1 then
            if n * 2 == 2 then
                return 100
            end
            n = 5
        end
        return n * 2
    end, table.unpack(ints))
end)

t.test("early_return_from_one_of_several_branches", function()
    h.same(function(s, n) --: str, int
        if s == "a" then
            return 1
        elseif s == "b" then
            return 2
        elseif n > 5 then
            n = n - 5
        end
        if n == 1 then
            n = 10
        elseif n == 2 then
            return -2
        else
            if s == "c" then return -3 end
        end
        return n
    end, { "a", 1 }, { "b", 1 }, { "c", 1 }, { "c", 2 }, { "c", 3 }, { "d", 4 }, { "d", 7 })
end)

t.test("return_of_fewer_values_gives_nil", function()
    same(function(n) --: int
        if n > 1 then
            return n, n + 1
        end
        return n, nil
    end, { 0 }, { 5 })
end)

t.test("numeric_for", function()
    same(function(n) --: int
        local s, last = 0, -1
        for i = 1, n do
            s = s + i * i
            last = i
        end
        return s, last
    end, table.unpack(ints))
end)

t.test("numeric_for_with_steps", function()
    same(function(a, b) --: int, int
        local s, k = 0, 0
        for i = a, b, 3 do s = s * 7 + i; k = k + 1 end
        for i = b, a, -2 do s = s * 5 - i; k = k + 1 end
        for i = 10, 1, -4 do s = s + i end
        return s, k
    end, { 0, 0 }, { 1, 10 }, { 10, 1 }, { -5, 5 }, { 3, 2 })
end)

t.test("loops_at_the_ends_of_integers_stop", function()
    same(function(a) --: int
        local k = 0
        for i = a, math.maxinteger do k = k + 1 end
        for i = math.mininteger, -a do
            k = k + 1
            if k > 20 then break end
        end
        for i = a, math.mininteger, -math.maxinteger do k = k + 100 end
        return k
    end, { math.maxinteger - 3 }, { math.maxinteger })
end)

t.test("loops_over_floats_add_their_step", function()
    same(function(x) --: float
        local s, k = 0.0, 0
        for v = x, 1, 0.1 do s = s + v; k = k + 1 end
        for v = 1, x, -0.25 do s = s - v; k = k + 1 end
        return s, k
    end, { 0.0 }, { 0.95 }, { 2.0 }, { -0.3 })
end)

t.test("while_and_break", function()
    same(function(n) --: int
        local steps = 0
        while n ~= 1 do
            if n < 1 then break end
            if n % 2 == 0 then n = n // 2 else n = 3 * n + 1 end
            steps = steps + 1
        end
        return steps, n
    end, table.unpack(ints))
end)

t.test("repeat_sees_the_locals_of_its_body", function()
    same(function(n) --: int
        local k = 0
        repeat
            local twice = k * 2
            k = k + 1
        until twice >= n
        return k
    end, table.unpack(ints))
end)

t.test("return_and_break_out_of_nested_loops", function()
    same(function(n) --: int
        local count = 0
        for i = 1, n do
            for j = 1, i do
                count = count + 1
                if i * j > 20 then return "found", i, j end
                if j == 3 then break end
            end
        end
        return "none", count, 0
    end, table.unpack(ints))
end)

t.test("multiple_assignment_is_evaluated_before_it_is_made", function()
    same(function(a, b) --: int, int
        a, b = b, a + b
        local x, y, z = a, b
        local list = { 1, 2, 3 }
        local i = 1
        i, list[i] = i + 1, 20
        return a, b, x, y, z == nil, i, list[1], list[2]
    end, { 1, 2 }, { 5, -4 })
end)

t.test("several_results_and_parentheses", function()
    same(function(n) --: int
        local function two(k) return k, k + 1 end
        local a, b, c = two(n), two(n * 10)
        local d = (two(5))
        return a, b, c, d, select("#", two(1)), two(7)
    end, { 3 })
end)

t.test("varargs_of_inner_functions", function()
    same(function(n) --: int
        local function sum(...)
            local s = 0
            for _, v in ipairs { ... } do s = s + v end
            return s, select("#", ...)
        end
        return sum(n, 2, 3), sum()
    end, { 3 }, { -1 })
end)

t.test("closures_share_their_variables", function()
    same(function(n) --: int
        local total = 0
        local function add(k) total = total + k; return total end
        for i = 1, n do add(i) end
        if n > 2 then add(100) end
        return total
    end, table.unpack(ints))
end)

t.test("loop_variables_are_fresh", function()
    same(function(n) --: int
        local s = 0
        for i = 1, n do
            local k = i
            i = i * 10
            s = s + k + i
        end
        return s
    end, table.unpack(ints))
end)

t.test("lists_grow_and_are_read", function()
    same(function(n) --: int
        local list = { 5 }
        for i = 1, n do list[#list + 1] = i * i end
        table.insert(list, 99)
        local best, at = list[1], 1
        for i, v in ipairs(list) do
            if v > best then best, at = v, i end
        end
        list[1] = -1
        return best, at, #list, list[1], list[#list], list
    end, table.unpack(ints))
end)

t.test("lists_are_read_where_lua_finds_nothing_with_an_error", function()
    t.error_has(function()
        tide.jit.script(function(n) --: int
            local list = { 1, 2, 3 }
            return list[n]
        end)(4)
    end, "4")
end)

t.test("records_are_known_by_name", function()
    same(function(n) --: int
        local point = { x = n, y = 2.5, name = "p" }
        point.x = point.x + 1
        if n > 1 then point.y = point.y * 2 end
        for _ = 1, 3 do point.x = point.x * 2 end
        local s = 0.0
        for key, v in pairs { a = 1, b = 2 } do s = s + v + #key end
        return point.x, point.y, point.name, s
    end, table.unpack(ints))
end)

t.test("tables_in_tables", function()
    same(function(n) --: int
        local m = { { 1, 2 }, { 3, n } }
        m[2][1] = m[2][2] + 1
        local a, b = table.unpack(m[2])
        return a, b, #m, m[1][2]
    end, { 3 })
end)

t.test("strings", function()
    same(function(n) --: int
        local s = "n = " .. n
        return s, #s, string.format("%d|%5.2f|%s", n, 0.5, "x"), tostring(n), ("ab"):rep(2), s == "n = 3", s < "n = 4"
    end, { 3 }, { -12 })
end)

t.test("mathematics", function()
    same(function(x, n) --: float, int
        return math.floor(x), math.ceil(x), math.abs(n), math.max(n, 3), math.min(x, 0.5), math.sqrt(x * x), math.exp(x),
            math.log(x * x + 1), math.sin(x), math.type(n), math.type(x), math.pi, math.fmod(n, 3), math.tointeger(3.0)
    end, { 0.3, 5 }, { -1.5, -7 })
end)

t.test("errors_and_assertions", function()
    local f = tide.jit.script(function(n) --: int
        assert(n > 0, "n must be positive")
        if n > 10 then error("too large: " .. n) end
        return n
    end)
    t.eq(f(3), 3)
    t.error_has(function() f(-1) end, "n must be positive")
    t.error_has(function() f(12) end, "too large: 12")
end)

local scale, weight = 3, tide.tensor { 1., 2., 3. }
local settings = { bias = 0.5, deep = { list = { 1, 2 } } }
local function helper(x, k) return x * k + settings.bias end

t.test("variables_of_the_script_are_read", function()
    same(function(x) return helper(x, scale) * weight + settings.deep.list[2] end, { tide.randn(3) })
end)

t.test("a_constant_tensor_is_there_by_reference", function()
    local w = tide.tensor { 1., 2. }
    local f = tide.jit.script(function(x) return x * w end)
    t.eq(f(tide.ones(2)):tolist(), { 1, 2 })
    w:fill_(5)
    t.eq(f(tide.ones(2)):tolist(), { 5, 5 })
end)

t.test("operators_on_tensors", function()
    same(function(x, y) return x + y, x - 2, 3 * x, x / y, -x, x ^ 2, x // 2, x % 2, x == y, #x end,
        { tide.randn(2, 3), tide.rand(2, 3) + 1 })
end)

t.test("methods_functions_and_options", function()
    local relu, nn = tide.relu, tide.nn.functional
    same(function(x)
        local y = x:sum(1, { keepdim = true })
        local values, places = x:max(2)
        local best = x:argmax(1)
        return relu(x), nn.gelu(x), y, values, places, best, tide.cat({ x, y }, 1), x:view(3, 2), x:permute(2, 1), x:t(),
            tide.zeros(2, x:size(2)), x:softmax(-1), x:clamp { min = 0 }
    end, { tide.randn(2, 3) })
end)

t.test("fields_of_tensors", function()
    same(function(x)
        local n, m = x.shape[1], x.shape[-1]
        return n * 10 + m, x.ndim, x:dim(), x:numel(), x:size(2), #x.shape, x.T, x:long(), x:to(tide.float64), x:double():sum():item(),
            tide.ones(x.shape), x.dtype == tide.float32
    end, { tide.randn(2, 3) }, { tide.randn(4, 1) })
end)

t.test("indexing_of_tensors", function()
    same(function(x, k) --: Tensor, int
        return x[1], x[-1], x[k], x[{ 1, 2 }], x[{ {}, 2 }], x[{ { 2, 3 }, { 1, -1, 2 } }], x["1:2, :"], x[":, nil, 1"], x["..., -1"],
            x[x:gt(0)], x[tide.tensor { 2, 1 }]
    end, { tide.randn(3, 4), 2 }, { tide.randn(3, 4), -3 })
end)

t.test("dims_behind_three_dots_count_from_the_end", function()
    same(function(x)
        return x[{ "...", -3, -2 }], x["..., 1, 2"], x["1, ..., 2, 1:3"], x[{ "...", { 1, 3 }, 2 }], x["..., nil"], x["..., 2, nil"],
            x[{ 1, "...", tide.newaxis, 2 }], x["..., 2, nil, 1:3:2"], x["..., 1, ..., 2"], x[{ tide.tensor { 2, 1 }, "...", -1 }]
    end, { tide.randn(2, 4, 4) }, { tide.randn(2, 3, 4, 5) })
    same(function(x)
        x[{ "...", -3, -2 }] = 1
        x["..., 1, nil"] = 2
        x[{ tide.tensor { 2, 1 }, "...", 3 }] = 3
        return x
    end, { tide.randn(2, 4, 4) }, { tide.randn(2, 3, 4, 5) })
    t.error_has(function() tide.jit.script(function(x, i) return x[{ "...", i }] end)(tide.ones(2, 2), tide.tensor { 1 }) end,
        "index tensor behind '...'")
end)

t.test("assignment_to_elements", function()
    same(function(x, k) --: Tensor, int
        x[1] = 0
        x[{ k, { 2, 3 } }] = x[{ 3, { 1, 2 } }] * 2
        x[x:lt(0)] = -1
        x["2, 1"] = 7.5
        x:add_(1)
        return x
    end, { tide.randn(3, 4), 2 }, { tide.randn(3, 4), -1 })
end)

t.test("what_is_assigned_becomes_of_the_tensor_s_dtype", function()
    local function assign(x, i, v)
        x[i] = v
        x["3:4"] = v
        return x
    end
    local scripted = tide.jit.script(assign)
    for _, dtype in ipairs { tide.float32, tide.float16, tide.int64, tide.bool } do
        for _, given in ipairs { tide.float64, tide.float32, tide.int32, tide.bool } do
            local v, i = tide.tensor { 2.0, 0 }:to(given), tide.tensor { 2, 1 }
            local want, got = assign(tide.zeros(4, { dtype = dtype }), i, v), scripted(tide.zeros(4, { dtype = dtype }), i, v)
            t.eq({ got.dtype, got:tolist() }, { dtype, want:tolist() })
        end
    end
end)

t.test("loops_over_rows", function()
    same(function(x)
        local s = tide.zeros(3)
        for i = 1, x:size(1) do s = s * 0.5 + x[i] end
        for _, row in ipairs(x) do s = s - row end
        return s
    end, { tide.randn(4, 3) }, { tide.randn(1, 3) })
end)

t.test("optional_tensors", function()
    local function f(x, bias) --: Tensor, Tensor?
        if bias then x = x + bias end
        local scale_by = bias or x
        return x * scale_by
    end
    local scripted = tide.jit.script(f)
    local x, b = tide.randn(3), tide.randn(3)
    t.eq(scripted(x, b):tolist(), f(x, b):tolist())
    t.eq(scripted(x, nil):tolist(), f(x, nil):tolist())
end)

t.test("lists_of_tensors_and_numbers_as_inputs", function()
    same(function(xs, ws) --: Tensor[], float[]
        local s = xs[1] * ws[1]
        for i = 2, #xs do s = s + xs[i] * ws[i] end
        return s, #ws
    end, { { tide.ones(2), tide.ones(2) * 3 }, { 0.5, 2.0 } })
end)

t.test("a_few_trips_are_unrolled_where_types_change", function()
    same(function(x)
        local s = 0
        for i = 1, 3 do s = s + x[i] end
        return s
    end, { tide.randn(3) })
end)

t.test("lists_of_tensors_are_stacked", function()
    same(function(x)
        local list, total = {}, x[1]
        for k = 1, x:size(1) do
            total = total * 0.5 + x[k]
            list[#list + 1] = total
        end
        local rows, columns = table.unpack(x.shape)
        return tide.stack(list), tide.cat(list), x:view(columns, rows), #list
    end, { tide.randn(4, 3) }, { tide.randn(1, 2) })
end)

t.test("elements_as_numbers", function()
    same(function(x)
        local best, at = -math.huge, 0
        for k = 1, #x do
            local v = x[k]:item()
            if v > best then best, at = v, k end
        end
        local any = x:gt(0):any():item()
        if any then at = at + 100 end
        x[1] = math.max(best, 0.5)
        return best, at, any, x
    end, { tide.tensor { 1.5, -2, 7.25 } }, { tide.tensor { -3., -1. } })
end)

t.test("boxes_that_overlap_by_hand", function()
    same(function(boxes)
        local n = boxes:size(1)
        local iou = tide.zeros(n, n)
        for i = 1, n do
            for j = 1, n do
                local a, b = boxes[i], boxes[j]
                local w = math.min(a[3]:item(), b[3]:item()) - math.max(a[1]:item(), b[1]:item())
                local h = math.min(a[4]:item(), b[4]:item()) - math.max(a[2]:item(), b[2]:item())
                if w > 0 and h > 0 then
                    local area = (a[3] - a[1]) * (a[4] - a[2]) + (b[3] - b[1]) * (b[4] - b[2])
                    iou[{ i, j }] = w * h / (area:item() - w * h)
                end
            end
        end
        return iou
    end, { tide.tensor { { 0., 0, 2, 2 }, { 1, 1, 3, 3 }, { 5, 5, 6, 6 } } })
end)

t.test("scripts_call_scripts", function()
    local double = tide.jit.script(function(x) return x * 2 end)
    same(function(x) return double(x) + double(x + 1) end, { tide.randn(3) })
end)

t.test("types_may_be_given_beside_the_function", function()
    local f = tide.jit.script(function(x, n) return x * n, n // 2 end, { types = "Tensor, int" })
    local y, half = f(tide.ones(2), 7)
    t.eq(y:tolist(), { 7, 7 })
    t.eq(half, 3)
end)

t.test("tuples_options_and_texts_as_inputs", function()
    local f = tide.jit.script(function(state, k) --: (Tensor, int), int
        local x, n = table.unpack(state)
        return x * n + state[2] * k
    end)
    t.eq(f({ tide.ones(2), 3 }, 2):tolist(), { 9, 9 })
    local g = tide.jit.script(function(x, s, mode) --: Tensor, float?, str
        s = s or 2.0
        if mode == "sum" then
            return (x * s):sum()
        end
        return x:mean() * s
    end)
    t.eq({ g(tide.ones(3), nil, "sum"):item(), g(tide.ones(3), 1.5, "mean"):item() }, { 6, 1.5 })
end)

t.test("the_source_of_every_function_of_nn_is_found", function()
    local source, seen, count = tide._require "jit.compiler.source", {}, 0
    local function look(value, path)
        if type(value) == "function" and debug.getinfo(value, "S").what ~= "C" then
            local where, why = source.of(value)
            t.is_true(where, path .. ": " .. tostring(why))
            count = count + 1
        elseif type(value) == "table" and not seen[value] then
            seen[value] = true
            for key, inner in pairs(value) do
                look(inner, path .. "." .. tostring(key))
            end
        end
    end
    look(tide.nn, "nn")
    t.is_true(count > 500, "functions: " .. count)
end)
