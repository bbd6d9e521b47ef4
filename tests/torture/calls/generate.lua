-- generate.lua: from a seed to lines of Lua that call everything the Lua face has, mostly nearly right: each
-- argument is what the signature asks for, or something else. A line is a chunk that uses tide, H (hostile.lua)
-- and V, a list of values that earlier lines left. Only the seed and the face decide what comes.
local G = {}

-- ---- chance ----

local state = 1
function G.seed(n) state = (n * 0x9E3779B97F4A7C15) | 1 end
local function random(n)
    state = state ~ (state << 13)
    state = state ~ (state >> 7)
    state = state ~ (state << 17)
    return (state >> 11) % n + 1
end
local function one(list) return list[random(#list)] end
local function chance(percent) return random(100) <= percent end

-- ---- what there is to call ----

-- These end the program's patience, change what every later line means, or print.
local left_out = { sleep = true, _class = true, set_num_threads = true, _terminal_width = true, _frontend = true,
    _document = true, _magic = true, _require = true, _loaded = true, reset_peak_memory_stats = true, set_default_dtype = true, display = true, clear_output = true, _ops = true,
    _reference = true, set_grad_enabled = true, ["repeat"] = true }

-- "name(Tensor x, int[2] k={1, 1}, {number alpha=1})" as {type, name, option} by place.
local function parameters(signature)
    local list, option = {}, false
    local text = signature and signature:match("^[^(]*%((.*)%)") or ""
    text = text:gsub("=%b{}", "=nil"):gsub("%(%d*%.%.%d*%)", ""):gsub('"[^"]*"', function(word)
        return (word:gsub("[,{} ]", "_"))
    end)
    for part in text:gmatch("[^,]+") do
        local type, name = part:match("^%s*{?%s*(.-)%s+([%w_]+)[^%w_]*")
        option = option or part:find("^%s*{") ~= nil
        if type then
            list[#list + 1] = { type = type, name = name:match("^[%w_]+"), option = option }
        elseif part:find("%.%.%.") then
            list[#list + 1] = { type = "any", name = "rest" }
        end
    end
    return list
end

local function add(list, text, fn, method)
    local about = type(fn) == "function" and tide._doc(fn)
    local signature = about and about.signature
    list[#list + 1] = { text = text, params = parameters(signature), declared = signature ~= nil, method = method }
end

local function walk(list, seen, where, value, depth)
    if seen[value] or depth > 4 then
        return
    end
    seen[value] = true
    local keys = {}
    for key in next, value do
        if type(key) == "string" and key:find("^[%a_][%w_]*$") and not left_out[key] then
            keys[#keys + 1] = key
        end
    end
    table.sort(keys)
    for _, key in ipairs(keys) do
        local v, text = rawget(value, key), where .. "." .. key
        if type(v) == "function" then
            add(list, text, v, where == "tide._methods" and key)
        elseif type(v) == "table" then
            if getmetatable(v) and getmetatable(v).__call then
                add(list, text, nil)
                local made = tide._doc(v)
                list[#list].params = parameters(made and made.signature)
                list[#list].declared = made ~= nil
            end
            walk(list, seen, text, v, depth + 1)
        end
    end
end

function G.callees()
    local list = {}
    for _, name in ipairs(tide._lazy) do
        local _ = tide[name]
    end
    walk(list, {}, "tide", tide, 0)
    return list
end

-- ---- values ----

local dtypes = { "float32", "float32", "float32", "float64", "float16", "bfloat16", "int8", "uint8", "int16", "int32",
    "int64", "bool" }
local shapes = { "{}", "{1}", "{3}", "{4}", "{2, 3}", "{3, 4}", "{4, 4}", "{0}", "{2, 0, 3}", "{2, 3, 4}", "{1, 2, 5, 5}",
    "{2, 3, 4, 4}", "{1, 1, 1, 1, 1, 2}", "{17}", "{70}" }
local layouts = {}
-- What is large is too large for any memory: what just fits would only take long.
local integers = { "0", "1", "2", "3", "-1", "-2", "4", "7", "64", "65", "1000", "1 << 42", "(1 << 46) + 1", "1 << 62",
    "(1 << 61) + 1", "math.maxinteger", "math.mininteger", "-(1 << 40)", "-1000" }
local numbers = { "0.5", "-0.0", "1e-45", "1e38", "1e300", "-1e300", "0/0", "1/0", "-1/0", "2.0", "1 + 2^-40", "5e-324" }
local texts = { '""', '"mean"', '"float32"', '"cpu"', '"cuda:99"', '"1:3"', '"..., 1"', '"nil, :, -1"', '"2:"', '"a\\nb\\0c"',
    '"%s%n%d"', '("A"):rep(100000)', '("1,"):rep(2000)', '"9223372036854775807:"', '"::0"', '"\\xff\\xfe"', '"self"' }
local objects = { "H.cyclic()", "H.deep(100)", "H.holes()", "H.proxy()", "H.raiser()", 'H.raiser("__index")',
    'H.raiser("__len")', 'H.raiser("__tostring")', 'H.raiser("__name")', 'H.raiser("__call")', 'H.raiser("__eq")',
    'H.imposter("Linear")', 'H.imposter("SGD")', "H.many(1000)", "{}", "{1, 2}", "{{1}, {2}}", "{x = 1}",
    "tide", "_G", "V", "H.t({3}).shape", "tide.float16", "tide.newaxis", "io.stdout", "tide.Generator(3)", "H.net()",
    "H.sgd()", "H.profile()", "tide.no_grad()", 'tide.profiler.record("r")', "H.dead_coroutine()", "coroutine.running()",
    "H.own_module()", "H.module_in_itself()", "H.progress()", "tide.nn.Linear", "tide.nn.ReLU()", "getmetatable('')",
    "setmetatable({}, {__mode = 'kv'})", "string", "H.OWN" }
local functions = { "H.raise", "H.yields", "H.squares", "H.garbage", "H.later(1)", "H.later(5)", "tide.add", "print",
    "tide.backward", "coroutine.wrap(H.yields)", "function(...) return ... end", "type", "H.raiser('__call')",
    "function(x) return tide.sin(x) end", "tide.nn.Linear" }

local function tensor()
    if #layouts == 0 then
        for name in pairs(H.layouts) do
            layouts[#layouts + 1] = name
        end
        table.sort(layouts)
    end
    if chance(25) then
        return ("V[%d]"):format(random(8))
    elseif chance(30) then
        return one { "H.t({2, 3})", "H.t({3, 4})", "H.t({4})", "H.t({2, 3, 4, 4})" }
    end
    return ('H.t(%s, "%s", "%s")'):format(one(shapes), one(dtypes), one(layouts))
end

local any -- any value at all

local function list_of(make, most)
    local parts = {}
    for k = 1, random(most) - 1 do
        parts[k] = make()
    end
    return "{" .. table.concat(parts, ", ") .. "}"
end

local function small() return one { "1", "1", "2", "2", "3", "-1", "4", "0" } end
local function integer() return chance(80) and small() or one(integers) end
local function number() return chance(40) and small() or chance(60) and one(numbers) or one(integers) end

-- Something that may be right for a type of the schema language.
local function fitting(type)
    if type:sub(-1) == "?" and chance(20) then
        return "nil"
    end
    type = type:gsub("%?$", "")
    if type:find("index Tensor") or type:find("class Tensor") then
        return ("H.index(%s, %s)"):format(one { "1", "2", "3", "9" }, one(shapes))
    elseif type:find("Tensor%??%[%]") then
        return list_of(tensor, 4)
    elseif type:find("Tensor") and not (type:find("number") and chance(30)) then
        return tensor()
    elseif type:find("^%a+%[") then
        return chance(75) and list_of(small, 5) or chance(50) and ("{%s, 2}"):format(integer()) or integer()
    elseif type == "int" or type == "dim" or type == "index" then
        return integer()
    elseif type:find("number") or type == "float" then
        return number()
    elseif type == "bool" then
        return one { "true", "false" }
    elseif type == "dtype" then
        return chance(50) and ('"%s"'):format(one(dtypes)) or "tide." .. one(dtypes)
    elseif type == "device" then
        return one { '"cpu"', '"cuda"', '"cpu:1"' }
    elseif type:find('"') then
        local words = {}
        for word in type:gmatch('"[^"]*"') do
            words[#words + 1] = word
        end
        return one(words)
    elseif type == "str" then
        return one(texts)
    elseif type == "function" then
        return one(functions)
    elseif type == "generator" then
        return "tide.Generator(1)"
    elseif type == "Module" or type == "Module[]" then
        return one { "H.net()", "tide.nn.ReLU()", "H.module_in_itself()", "H.own_module()", "tide.nn.Conv2d(3, 2, 2)" }
    elseif type == "Optimizer" then
        return "H.sgd()"
    elseif type == "Profile" then
        return "H.profile()"
    elseif type == "Progress" then
        return "H.progress()"
    elseif type == "data" then
        return chance(50) and tensor() or list_of(number, 4)
    elseif type == "list" or type == "table" then
        return chance(50) and list_of(tensor, 3) or one(objects)
    end
    return any()
end

function any()
    local kind = random(10)
    if chance(1) then
        return one { "H.deep(100000)", "H.many(100000)", '("A"):rep(1 << 20)' } -- which take long to make
    end
    return kind <= 3 and tensor() or kind == 4 and integer() or kind == 5 and number() or kind == 6 and one(texts)
        or kind == 7 and one(functions) or kind == 8 and one { "nil", "true", "false" } or one(objects)
end

local function argument(param) return chance(85) and fitting(param.type) or any() end

-- ---- lines ----

local function arguments(callee)
    local positional, options = {}, {}
    for _, param in ipairs(callee.params) do
        if not param.option then
            positional[#positional + 1] = argument(param)
        elseif chance(40) then
            options[#options + 1] = param.name .. " = " .. argument(param)
        end
    end
    if chance(5) then
        options[#options + 1] = one { "out = " .. tensor(), "oops = 1", "[1] = " .. any(), "requires_grad = true" }
    end
    if chance(6) then
        table.remove(positional)
    elseif chance(6) then
        positional[#positional + 1] = any()
    end
    if chance(4) and #positional > 0 then
        positional[random(#positional)] = any()
    end
    if #callee.params == 0 and not callee.declared then
        for k = 1, random(3) - 1 do
            positional[k] = any()
        end
    end
    if #options > 0 then
        positional[#positional + 1] = "{" .. table.concat(options, ", ") .. "}"
    end
    return positional
end

local operators = { "+", "-", "*", "/", "//", "%", "^", "&", "|", "~", "<", "<=", "==", ">", "..", "~=", "<<" }
local function key()
    return chance(40) and integer() or chance(30) and one(texts) or chance(30) and list_of(any, 4) or any()
end

-- Fields, metamethods and what Lua itself does to values: bodies of chunks with arguments a, b, c.
local function metamethod()
    local kind = random(12)
    if kind <= 4 then
        return { ("return a %s b"):format(one(operators)), tensor(), any() }
    elseif kind == 5 then
        return { ("return b %s a"):format(one(operators)), tensor(), any() }
    elseif kind == 6 then
        return { "return a[b]", tensor(), key() }
    elseif kind == 7 then
        return { "a[b] = c", tensor(), key(), any() }
    elseif kind == 8 then
        return { one { "return #a", "return -a", "return ~a", "return tostring(a)", "return a()", "for _ in a do break end",
            "for _ in ipairs(a) do end", "for _ in pairs(a) do break end", "local x <close> = a" }, any() }
    elseif kind == 9 then
        return { ("return a.%s"):format(one { "shape", "dtype", "grad", "device", "requires_grad", "is_leaf", "grad_fn",
            "ndim", "T", "_version", "nothing" }), tensor() }
    elseif kind == 10 then
        return { ("a.%s = b"):format(one { "grad", "requires_grad", "shape", "x" }), tensor(), any() }
    elseif kind == 11 then
        return { "return a.shape[b], a.shape == b, tostring(a.shape)", tensor(), any() }
    end
    return { "return a(b)", one { "H.net()", "tide.nn.Conv2d(3, 2, 2)", "H.own_module()", "tide.nn.MSELoss()",
        "tide.nn.Embedding(3, 2)", "tide.nn.CrossEntropyLoss()" }, tensor() }
end

-- Several calls that belong together: gradients, training, profiles.
local programs = {
    function() return { "local y = (a * 1):sum() y:backward(b, {create_graph = c})", tensor(), any(), "false" } end,
    function() return { "local y = a * 1 y:" .. one { "sin_", "exp_", "sqrt_", "zero_" } .. "() y:sum():backward()", tensor() } end,
    function() return { "local y = a * 1 y[b] = c y:sum():backward()", tensor(), key(), any() } end,
    function() return { "return tide.autograd.grad(a, b, {allow_unused = true})", tensor(), list_of(tensor, 3) } end,
    function() return { "return tide.autograd.gradcheck(a, {b:double():detach():requires_grad_(true)})", one(functions), tensor() } end,
    function() return { "for _ = 1, 2 do a:step(b) a:zero_grad() end return a:state_dict(), tostring(a)", "H.sgd()", one(functions) } end,
    function() return { "a:load_state_dict(b) return a", one { "H.net()", "H.sgd()" }, any() } end,
    function() return { "a.x, a[2] = b, c return a:parameters(), a:state_dict(), tostring(a), a(b)", "H.net()", any(), any() } end,
    function() return { "local x = tide.zeros(3) return tide.add(a, b, {out = x}), x", tensor(), any() } end,
    function() return { "return tide.add(a, b, {out = a})", tensor(), tensor() } end,
    function() return { "local x <close> = a local y <close> = b return tide.ones(2) * 2", any(), any() } end,
    function() return { "return a:as_strided(b, c, " .. integer() .. ")", tensor(), list_of(small, 4), list_of(integer, 4) } end,
    function() return { "return tide._function(a, b, c)(tide.ones(2))", one { '"f(Tensor x)"', '"f(int[2] x={1,2})"', '"f(x"',
        '"f(\\"a\\"|\\"b\\" x)"', '"f(Nothing x)"', '("f("):rep(1000)', '"f(index i) -> int"' }, '"It does."', one(functions) } end,
    function() return { "local p = tide.profiler.profile(a, b) return p:table(), p:events(), tostring(p), #p", one(functions), any() } end,
    function() return { "local co = coroutine.wrap(a) co(b) co(c)", one(functions), any(), any() } end,
    function() return { "local t = {} for k = 1, 40 do t[k] = tide.no_grad() end for k = 1, 40 do local x <close> = t[(k * 7) % 41] end return a", any() } end,
    function() return { "collectgarbage(a)", one { "'generational'", "'incremental'", "'step'", "'count'" } } end,
}

local wrappers = { "H.co", "H.under_no_grad", "H.profiled" }

--- One more line: its text, the chunk's body, the arguments' text, and whether Tide must explain its errors.
function G.line(callees)
    local body, args, declared
    local kind = random(100)
    if kind <= 70 then
        local callee = one(callees)
        args, declared = arguments(callee), callee.declared
        local method = callee.method and chance(50)
        body = method and ("local self = ... return self:%s(select(2, ...))"):format(callee.method)
            or ("return %s(...)"):format(callee.text)
    else
        local part = kind <= 90 and metamethod() or one(programs)()
        body = "local a, b, c = ... " .. table.remove(part, 1)
        args = part
    end
    if chance(6) then
        body = ("local p = table.pack(...) return %s(function() return (function(...) %s end)(table.unpack(p, 1, p.n)) end)")
            :format(one(wrappers), body)
    elseif chance(10) then
        body = ("return H.mined(function(...) %s end, ...)"):format(body)
    end
    local keep = chance(35) and random(8) or 0
    return { body = body, args = table.concat(args, ", "), declared = declared, keep = keep }
end

return G
