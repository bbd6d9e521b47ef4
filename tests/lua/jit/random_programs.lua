-- random_programs.lua: small programs in Lua made at random: ints, floats, lists, records, dicts, modes, closures, tensors, branches, loops
-- and jumps. program(plain) gives the next one of a fixed series, a text that returns a function(int, int, float), without dicts and
-- modes where `plain` is true; inputs are lists of its arguments.
local seed = 12345
local plain = false -- without dicts and modes
local function draw(n)
    seed = (seed * 1103515245 + 12345) % 2147483648
    return seed // 65536 % n + 1
end
local function pick(list) return list[draw(#list)] end

local expression, condition

local function integer(depth)
    if depth <= 0 or draw(4) == 1 then
        return pick { "a", "b", "i1", "i2", "i3", "0", "1", "2", "-3", "7", "100", "point.n", "(maybe or 9)", "#u",
            plain and "i3" or "(dict.a or 4)" }
    end
    local x, y = integer(depth - 1), integer(depth - 1)
    return pick {
        function() return string.format("(%s + %s)", x, y) end,
        function() return string.format("(%s - %s)", x, y) end,
        function() return string.format("(%s * %s)", x, y) end,
        function() return string.format("(%s // (%s %% 5 + 1))", x, y) end,
        function() return string.format("(%s %% (%s %% 7 + 2))", x, y) end,
        function() return string.format("(- %s)", x) end,
        function() return string.format("(%s and %s or %s)", condition(depth - 1), x, y) end,
        function() return string.format("math.max(%s, %s)", x, y) end,
        function() return string.format("math.abs(%s)", x) end,
        function() return string.format("(%s ~ %s)", x, y) end,
        function() return "#list" end,
        function() return string.format("list[%s %% #list + 1]", x) end,
        function() return string.format("twist(%s, %s)", x, y) end,
        function() return string.format(plain and "(%s + %s)" or "(dict[%s %% 3 == 0 and 'a' or 'b'] or %s)", x, y) end,
    }()
end

local function float(depth)
    if depth <= 0 or draw(4) == 1 then
        return pick { "x", "f1", "f2", "0.5", "-1.25", "3.0", "point.v", "row[2]" }
    end
    local v, w = float(depth - 1), float(depth - 1)
    return pick {
        function() return string.format("(%s + %s)", v, w) end,
        function() return string.format("(%s - %s)", v, w) end,
        function() return string.format("(%s * %s)", v, w) end,
        function() return string.format("(%s / %s)", v, w) end,
        function() return string.format("(%s %% %s)", v, w) end,
        function() return string.format("(%s + %s)", v, integer(depth - 1)) end,
        function() return string.format("(%s / %s)", integer(depth - 1), integer(depth - 1)) end,
        function() return string.format("(%s and %s or %s)", condition(depth - 1), v, w) end,
        function() return string.format("math.abs(%s)", v) end,
        function() return string.format("math.min(%s, %s)", v, w) end,
    }()
end

function condition(depth)
    local kind = draw(depth > 0 and 7 or 3)
    if kind <= 2 then
        return string.format("%s %s %s", integer(depth - 1), pick { "<", "<=", ">", ">=", "==", "~=" }, integer(depth - 1))
    elseif kind == 3 then
        return "p"
    elseif kind == 4 then
        return string.format("%s %s %s", float(depth - 1), pick { "<", "<=", ">", ">=" }, float(depth - 1))
    elseif kind == 5 then
        return string.format("not (%s)", condition(depth - 1))
    end
    return string.format("(%s %s %s)", condition(depth - 1), pick { "and", "or" }, condition(depth - 1))
end

local names = 0
local block

-- A line about a record, a list of two, a variable that may be nil, or a tensor.
local function on_tables_and_tensors(add)
    local kind = draw(plain and 4 or 5)
    if kind == 5 then
        add("dict[%s %% 2 == 0 and 'a' or %s] = %s", integer(1), pick { "'b'", "'c' .. i1 % 3" }, pick { integer(1), "nil" })
    elseif kind == 1 then
        add(pick { "point.n = %s", "bump(%s)", "maybe = %s", "row[1] = row[1] + %s" }, integer(2))
    elseif kind == 2 then
        add(pick { "point.v = %s", "row[2] = %s" }, float(2))
    elseif kind == 3 then
        add("%s", pick { "maybe = nil", "if maybe then i1 = i1 + maybe end", "if maybe == nil then maybe = i2 end",
            "if maybe ~= nil and maybe > 3 then i2 = i2 - maybe end" })
    else
        add("%s", pick { "u = (u * 0.5 + 1):tanh()", "u[i1 % 3 + 1] = 0.25", "u = u + u[i2 % 3 + 1]", "v = u:sum()",
            "u[{ { 1, 2 } }] = v", "u = tide.cat({ u[{ { 2, 3 } }], u[{ { 1, 1 } }] })" })
    end
end

-- A branch, which leaves the loop or the function at its end now and then.
local function branch(out, pad, depth, in_loop)
    block(out, pad, depth, in_loop)
    if draw(4) == 1 then
        out[#out + 1] = pad .. (in_loop and draw(2) == 1 and "break"
            or string.format("return %s, %s, p, u, v, %d", integer(1), float(1), draw(9)))
    end
end

local function statement(out, pad, depth, in_loop)
    local function add(format, ...) out[#out + 1] = pad .. string.format(format, ...) end
    if depth > 0 and draw(12) == 1 then
        names = names + 1
        local label = "l" .. names
        add(pick { "do", plain and "do" or "do local _ <close> = tide.no_grad()" })
        block(out, pad .. "  ", depth - 1, in_loop)
        add("  if %s then goto %s end", condition(1), label)
        block(out, pad .. "  ", depth - 1, in_loop)
        add("  ::%s::", label)
        return add "end"
    end
    local kind = draw(depth > 0 and 18 or 11)
    if kind >= 8 and kind <= 11 then
        return on_tables_and_tensors(add)
    end
    kind = kind > 11 and kind - 4 or kind
    if kind <= 2 then
        add("%s = %s", pick { "i1", "i2", "i3" }, integer(3))
    elseif kind == 3 then
        add("%s = %s", pick { "f1", "f2" }, float(3))
    elseif kind == 4 then
        add("p = %s", condition(2))
    elseif kind == 5 then
        add("i1, i2 = i2, %s", integer(2))
    elseif kind == 6 then
        add("list[#list + 1] = %s", integer(2))
    elseif kind == 7 then
        if in_loop and draw(2) == 1 then
            add("if %s then break end", condition(1))
        elseif draw(3) == 1 then
            add("if %s then return %s, %s, p, u, v, 0 end", condition(1), integer(1), float(1))
        else
            add("list[%s %% #list + 1] = %s", integer(1), integer(1))
        end
    elseif kind <= 10 then
        add("if %s then", condition(2))
        branch(out, pad .. "  ", depth - 1, in_loop)
        if draw(2) == 1 then
            add("elseif %s then", condition(1))
            branch(out, pad .. "  ", depth - 1, in_loop)
        end
        if draw(2) == 1 then
            add "else"
            branch(out, pad .. "  ", depth - 1, in_loop)
        end
        add "end"
    elseif kind <= 12 then
        names = names + 1
        local name = "k" .. names
        add("for %s = %s, %s%s do", name, pick { "1", "-2", "a % 3", "5" }, pick { "3", "b % 4", "0", "i1 % 5" }, pick { "", ", 2", ", -1" })
        add("  i3 = i3 + %s", name)
        block(out, pad .. "  ", depth - 1, true)
        add "end"
    elseif kind == 13 then
        names = names + 1
        add("local n%d = 0", names)
        local name = "n" .. names
        add("while %s < 4 and %s do", name, condition(1))
        add("  %s = %s + 1", name, name)
        block(out, pad .. "  ", depth - 1, true)
        add "end"
    else
        names = names + 1
        local name = "r" .. names
        add("local %s = 0", name)
        add "repeat"
        add("  %s = %s + 1", name, name)
        add("  local far = %s > %s %% 4", name, integer(1))
        block(out, pad .. "  ", depth - 1, true)
        add "until far"
    end
end

function block(out, pad, depth, in_loop)
    for _ = 1, draw(3) do
        statement(out, pad, depth, in_loop)
    end
end

local function program(without)
    plain = without or false
    local out = { "return function(a, b, x) --: int, int, float",
        "  local u, v = tide.ones(3), tide.zeros({})", "  local point, row, maybe = { n = 3, v = 1.5 }, { 0, 2.5 }, nil", "  local i1, i2, i3, f1, f2, p = a, b, 1, x, 0.0, false",
        "  local list = { 4, a }", "  local function twist(m, n)", "    if m > n then return m - n end", "    return n * 3 + m", "  end",
        "  local function bump(k) i3 = i3 + k; if i3 > 1000 then i3 = i3 % 1000 end; return i3 end" }
    out[#out + 1] = not plain and "  local dict = { a = 1 }" or nil
    for _ = 1, 2 + draw(4) do
        statement(out, "  ", 2, false)
    end
    if not plain then
        table.move({ "  local sum = 0", "  for name, value in pairs(dict) do sum = sum + value * #name end",
            "  i1 = i1 + sum + (dict.b or 0) * 7 + (dict.c1 or 0) * 5" }, 1, 3, #out + 1, out)
    end
    out[#out + 1] = "  return i1 + i3 * 31 + i2 * 17 + list[#list] + point.n + row[1], f1 + f2 + point.v + row[2], p, u, v, maybe or -1"
    out[#out + 1] = "end"
    return table.concat(out, "\n")
end

return { program = program, inputs = { { 3, 5, 0.5 }, { -7, 2, -3.25 }, { 0, 0, 0.0 }, { 12, -1, 1e10 } } }
