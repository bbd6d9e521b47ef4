-- test_jit_show.lua: what a ScriptFunction shows: Lua that does the same, pictures, reports.
local t = require "harness"
local jit = tide.jit

-- The function of f.code.
local function compile(f)
    local chunk = assert(load("local constants = ...\n" .. f.code .. "\nreturn " .. f.name))
    return chunk(f.constants)
end

local function check(fn, inputs)
    local f = jit.trace(fn, inputs, { name = "fn" })
    local want, got = table.pack(f(table.unpack(inputs))), table.pack(compile(f)(table.unpack(inputs)))
    t.eq(want.n, got.n)
    for k = 1, want.n do
        t.is_true(tide.equal(want[k], got[k]), k .. " of " .. f.code)
    end
    return f.code
end

t.test("code_is_lua_that_gives_the_same", function()
    tide.manual_seed(5)
    local w = tide.randn(3, 3)
    local code = check(function(x, y)
        local z = x:matmul(w):tanh() + y
        local best, at = z:max(2)
        return z:sum(2, { keepdim = true }), best, at, z:gather(2, at:unsqueeze(2)), z:softmax(-1), 2 - z, z:to(tide.float64), z:chunk(3, 2)[2],
            z["1, :"], tide.cat({ z, z }, 2), z:add(y, { alpha = 2 }), -z, z:clamp(-0.5, 0.5), z:transpose(1, 2)
    end, { tide.randn(2, 3), tide.randn(3) })
    for _, text in ipairs { "x:matmul(constants[1])", ":max(2)", ":sum({2}, {keepdim = true})", "2 - ", "tide.float64", "tide.cat({",
        "{alpha = 2}", ":transpose(1, 2)", "test_jit_show.lua:" } do
        t.is_true(code:find(text, 1, true), text .. " in " .. code)
    end
end)

t.test("a_list_that_is_written_has_a_name_in_code", function()
    local function collect(x, n) --: Tensor, int
        local seen = {}
        for k = 1, n do
            seen[#seen + 1] = x * k
        end
        return tide.cat(seen), #seen
    end
    local f = tide.jit.script(collect)
    local code = f.code
    local list = code:match "local ([%w_]+) = {}"
    t.is_true(list and code:find("table.insert(" .. list .. ", ", 1, true) and not code:find "insert%({}" and not code:find "#{}", code)
    local chunk = assert(load("local constants = ...\n" .. code .. "\nreturn " .. f.name))
    local x = tide.rand(3)
    local want, count = f(x, 4)
    local got, again = chunk(f.constants)(x, 4)
    t.is_true(tide.equal(want, got) and count == again, code)
end)

t.test("memory_is_told_before_and_behind_rewriting", function()
    local f = tide.jit.script(function(x) return ((x * 2):exp() + 1):sum() end)
    local before, after, made, left = f:memory(tide.zeros(1000))
    t.is_true(before == 8000 and after <= before, ("%s %s"):format(before, after))
    t.is_true(made == 4 and left <= 2, ("%s %s"):format(made, left))
    local some = tide.jit.script(function(x) return x[x:gt(0)] * 2 end)
    t.eq({ some:memory(tide.ones(3)) }, {}) -- elements decide
    t.error_has(function() f:memory(3) end, "input 1")
end)

t.test("no_pass_changes_a_bit", function()
    local f = tide.jit.script(function(x, y, n) --: Tensor, Tensor, int
        for _ = 1, n do
            x = (x * y + 0.1):sigmoid() - x:transpose(1, 2):transpose(1, 2) * 1
        end
        return x, x:sum(1)
    end)
    t.eq(f:bisect(tide.rand(3, 4), tide.rand(3, 4), 3), nil)
end)

t.test("code_of_writes_in_place", function()
    local f = jit.trace(function(x)
        x:mul_(2)
        x["1"] = 7
        return x + 1
    end, { tide.ones(3) }, { name = "fn" })
    local x = tide.tensor { 1.0, 2, 3 }
    t.eq(compile(f)(x):tolist(), { 8.0, 5.0, 7.0 })
    t.eq(x:tolist(), { 7.0, 4.0, 6.0 })
end)

t.test("numbers_keep_all_their_digits", function()
    local code = tide._require "jit.code"
    for _, value in ipairs { 0.1, 1 / 3, 1e300, -2.5, 5e-324, 7, -7, 1.0, math.huge, -math.huge, math.mininteger + 1 } do
        local read = assert(load("return " .. code.number(value)))()
        t.eq({ read, math.type(read) }, { value, math.type(value) })
    end
end)

t.test("pictures_have_every_operator_once_and_balanced_svg", function()
    local f = jit.trace(function(x, h)
        local z = x:matmul(h):tanh() + h
        return z * x:sigmoid(), z
    end, { tide.ones(2, 2), tide.ones(2, 2) })
    local picture = f:draw()
    for _, word in ipairs { "matmul", "tanh", "add", "sigmoid", "mul", "return", "x", "h" } do
        local n = 0
        for line in tostring(picture):gmatch "[^\n]+" do
            n = n + select(2, (" " .. line .. " "):gsub("│ " .. word .. " ", ""))
        end
        t.eq(n, 1, word)
    end
    -- as many boxes begin as end
    local text = tostring(picture)
    t.eq(select(2, text:gsub("┌─", "")) > 0, true)
    local bundle = getmetatable(picture).__display(picture)
    t.eq(bundle["text/plain"], text)
    local svg = bundle["image/svg+xml"]
    t.eq(select(2, svg:gsub("<rect", "")), 8)
    t.eq(select(2, svg:gsub("<g>", "")), select(2, svg:gsub("</g>", "")))
    t.eq(select(2, svg:gsub("<path d=\"M%d", "")) >= 9, true)
    t.is_true(svg:find("^<svg xmlns") and svg:find("</svg>$"))
end)

t.test("why_names_the_way_and_what_is_fixed", function()
    local f = jit.trace(function(x) return x + 1 end, { tide.ones(2) }, { check = false })
    t.eq({ f:why().lines[1], f:why().lines[2] }, { "traced: traced, 1 node", "  check: left out" })
    f(tide.ones(2))
    t.is_true(tostring(f:why()):find("1: (Float(2)): 1 calls", 1, true), tostring(f:why()))
end)

t.test("help_knows_a_function", function()
    local f = jit.trace(function(x) return x + 1 end, { tide.ones(2) }, { name = "plus" })
    t.eq(tide._doc(f).signature, "plus(Tensor x)")
end)
