-- shape_texts.lua: the language that operators' texts of shapes are written in (engine/ops/help.h): reads a text, and
-- holds it against the arguments and results of a call. A text that is none, or a call that it doesn't tell the truth
-- of, is an error that says why.
local texts = {}

-- ---- reading ----

-- The parts of a text between separators that stand outside parentheses, braces and quotes.
local function split(text, separator)
    local parts, depth, quoted, first, at = {}, 0, false, 1, 1
    while at <= #text do
        local c = text:sub(at, at)
        if c == "'" and (quoted or not text:sub(at - 1, at - 1):find "%w") then
            quoted = not quoted
        elseif not quoted and c:find "[({[]" then
            depth = depth + 1
        elseif not quoted and c:find "[)}%]]" then
            depth = depth - 1
        end
        if depth == 0 and not quoted and text:sub(at, at + #separator - 1) == separator then
            parts[#parts + 1] = text:sub(first, at - 1)
            at = at + #separator
            first = at
        else
            at = at + 1
        end
    end
    if depth ~= 0 then
        error("parentheses do not match in '" .. text .. "'", 0)
    end
    parts[#parts + 1] = text:sub(first)
    for k, part in ipairs(parts) do
        parts[k] = part:match "^%s*(.-)%s*$"
    end
    return parts
end

-- A formula of the texts as one of Lua: "A if B else C" becomes a choice.
local function to_lua(formula)
    local yes, rest = formula:match "^(.-) if (.+)$"
    if not yes then
        return formula
    end
    local condition, no = rest:match "^(.-) else (.+)$"
    if not condition then
        error("'if' without 'else' in '" .. formula .. "'", 0)
    end
    return ("choose((%s), function() return %s end, function() return %s end)"):format(condition, yes, to_lua(no))
end

local function compile(formula, parameters)
    local source = to_lua(formula)
    if parameters then
        source = ("function(%s) return %s end"):format(parameters, source)
    end
    return function(env)
        local made, problem = load("return " .. source, formula, "t", env)
        return made and made or error(("'%s' is no formula: %s"):format(formula, problem), 0)
    end
end

local function read_dim(text)
    if text == "*" then
        return { kind = "star" }
    elseif text == "..." then
        return { kind = "dots", name = "..." }
    elseif text == "" then
        error("a size is missing", 0)
    end
    local list = text:match "^(.+)%.%.%.$"
    local name = (list or text):match "^[%a_][%w_]*$"
    return { kind = list and "dots" or "size", name = name, formula = not name and compile(list or text) or nil,
        text = text }
end

-- "(dims)" and what may follow.
local function read_shape(text)
    local inside, rest = text:match "^(%b())(.*)$"
    if not inside then
        error("'" .. text .. "' is no shape", 0)
    end
    local shape = { text = text }
    inside = inside:sub(2, -2)
    for _, dim in ipairs(inside == "" and {} or split(inside, ",")) do
        shape[#shape + 1] = read_dim(dim)
    end
    if rest == "" then
        return shape
    end
    local dim = rest:match "^ without (%S+)$"
    if dim then
        shape.without = compile(dim)
        return shape
    end
    local size, inserted = rest:match "^ with (.+) inserted at (%S+)$"
    if size then
        shape.with, shape.inserted = read_dim(size), compile(inserted)
        return shape
    end
    size, dim = rest:match "^ with (.+) at (%S+)$"
    if not size then
        error("'" .. rest .. "' is not understood behind a shape", 0)
    end
    shape.with, shape.at = read_dim(size), compile(dim)
    return shape
end

-- A shape, or {shape} for each of a list.
local function read_shapes(text)
    local each = text:match "^{(.*)}$"
    return { list = each ~= nil, shape = read_shape(each or text) }
end

local function read_operand(text)
    local name, rest = text:match "^([%a_][%w_]*) (.+)$"
    if not name then
        error("'" .. text .. "' is no operand: a name and a shape expected", 0)
    end
    local target = rest:match "^to (.+)$"
    local operand = read_shapes(target or rest)
    operand.name, operand.to = name, target ~= nil
    return operand
end

local words = { number = true, bool = true, nothing = true }

local function read_case(text, before)
    local head, tail = text:match "^(.-)%-> (.+)$"
    if not head then
        error("'" .. text .. "' has no ' -> '", 0)
    end
    local case = { operands = before and before.operands or {}, results = {} }
    head = head:match "^%s*(.-)%s*$"
    if head ~= "" then
        case.operands = {}
        for _, operand in ipairs(split(head, ",")) do
            case.operands[#case.operands + 1] = read_operand(operand)
        end
    end
    local results, condition = tail:match "^(.-%f[%s]) if ([^)}]+)$"
    if not results then
        results, condition = tail:match "^(.+[)}]) if (.+)$"
        if condition and condition:find "^[^(]*%)" then -- an 'if' inside a shape
            results, condition = nil, nil
        end
    end
    case.condition = condition and compile(condition)
    for _, result in ipairs(split(results or tail, ",")) do
        case.results[#case.results + 1] = words[result] and { word = result } or read_shapes(result)
    end
    return case
end

-- With N? a text speaks of two kinds of calls: with that size and without it.
local function variants(text)
    if not text:find "%f[%w]%u%?" then
        return { text }
    end
    local with = text:gsub("(%u)%?", "%1")
    local without = text:gsub("%u%?, ", ""):gsub("%(%u%?%)", "()")
    return { with, without }
end

--- parse(text): its cases and definitions; an error says what is wrong with it.
function texts.parse(text)
    local parts = split(text, "; ")
    local known = { cases = {}, formulas = {}, words = {}, operands = {} }
    for k = 2, #parts do
        local name, parameters, formula = parts[k]:match "^([%a_][%w_]*)%(?([%w_, ]*)%)? = (.+)$"
        local free = parts[k]:match "^([%a_][%w_]*): .+$"
        if name then
            known.formulas[name] = compile(formula, parameters ~= "" and parameters or nil)
        elseif free then
            known.words[free] = true
        else
            error("'" .. parts[k] .. "' defines nothing", 0)
        end
    end
    for _, variant in ipairs(variants(parts[1])) do
        local before
        for _, case in ipairs(split(variant, "|")) do
            before = read_case(case, before)
            known.cases[#known.cases + 1] = before
            for _, operand in ipairs(before.operands) do
                known.operands[operand.name] = true
            end
        end
    end
    return known
end

-- ---- arguments ----

-- The parameters of a signature: {type, name, preset, option}.
local function parameters_of(signature)
    local list = {}
    local function add(text, option)
        for _, part in ipairs(text == "" and {} or split(text, ",")) do
            local kind, name, preset = part:match "^(.-) ([%a_][%w_]*)=(.*)$"
            if not name then
                kind, name = part:match "^(.-) ([%a_][%w_]*)$"
            end
            if name then
                list[#list + 1] = { type = kind, name = name, option = option,
                    preset = preset and load("return " .. preset)() }
            end
        end
    end
    local inside = signature:match "^[%w_]+(%b())":sub(2, -2)
    for _, part in ipairs(inside == "" and {} or split(inside, ",")) do
        if part:sub(1, 1) == "{" then
            add(part:sub(2, -2), true)
        else
            add(part, false)
        end
    end
    return list
end

local function is_options(value)
    return type(value) == "table" and not tide.is_tensor(value) and not getmetatable(value) and type(next(value)) == "string"
end

-- int[2] as two ints, "valid" as no padding.
local function normal(parameter, value)
    local n = tonumber(parameter.type:match "int%??%(?[%d.]*%)?%[(%d+)%]")
    if n and value == "valid" then
        value = 0
    end
    if n and type(value) == "number" then
        local all = {}
        for k = 1, n do
            all[k] = value
        end
        return all
    elseif parameter.type:find "%[%]" and not parameter.type:find "^int|" and type(value) == "number" then
        return { value }
    end
    return value
end

-- The arguments of a call by the names of the parameters.
local function by_name(parameters, args)
    local named, n = {}, args.n or #args
    local last
    for _, p in ipairs(parameters) do
        named[p.name] = p.preset
        last = not p.option and p or last
    end
    if n > 0 and is_options(args[n]) then
        for name, value in pairs(args[n]) do
            named[name] = value
        end
        n = n - 1
    end
    for k, p in ipairs(parameters) do
        if not p.option and k <= n then
            local value = args[k]
            if p == last and p.type:find "[%]%.]" and (n > k or tide.is_tensor(value)) and type(value) ~= "table" then
                value = { table.unpack(args, k, n) } -- the rest
            end
            named[p.name] = value
        end
    end
    for _, p in ipairs(parameters) do
        named[p.name] = normal(p, named[p.name])
    end
    return named
end

-- ---- formulas ----

local shape_of = {}
shape_of.__index = function(sizes, key)
    if type(key) == "table" then -- x[dims]
        local picked = {}
        for k, dim in ipairs(key) do
            picked[k] = sizes[dim]
        end
        return picked
    end
    return type(key) == "number" and key < 0 and rawget(sizes, #sizes + 1 + key) or nil
end

local function sizes_of(x)
    return setmetatable({ table.unpack(x.shape) }, shape_of)
end

local function plain_sizes(x)
    return { table.unpack(x.shape) }
end

local function copy(list)
    return { table.unpack(list) }
end

local function place(dim, n)
    return dim < 0 and n + 1 + dim or dim
end

local function remove(sizes, dims, keep)
    local drop, rest = {}, {}
    for _, dim in ipairs(type(dims) == "table" and dims or { dims }) do
        drop[place(dim, #sizes)] = true
    end
    for d, size in ipairs(sizes) do
        if keep and (drop[d] or dims == nil) then
            rest[#rest + 1] = 1
        elseif not drop[d] and dims ~= nil then
            rest[#rest + 1] = size
        end
    end
    return rest
end

-- What formulas may call, of shapes as lists.
local functions = {
    abs = math.abs, min = math.min, max = math.max, floor = math.floor, ceil = math.ceil,
    choose = function(condition, yes, no) return condition and yes() or not condition and no() or false end,
    numel = function(x)
        local n = 1
        for _, size in ipairs(x) do
            n = n * size
        end
        return n
    end,
    sum = function(list, dim)
        local n = 0
        for _, x in ipairs(list) do
            n = n + (x[dim] or 0)
        end
        return n
    end,
    prod = function(list, dim)
        local n = 1
        for _, x in ipairs(list) do
            n = n * x[dim]
        end
        return n
    end,
    others = function(x, ...) return remove(x, { ... }) end,
    with = function(x, dim, size)
        local sizes = copy(x)
        if #sizes > 0 then
            sizes[place(dim, #sizes)] = size
        end
        return sizes
    end,
    swap = function(x, a, b)
        local sizes = copy(x)
        if #sizes > 0 then
            a, b = place(a, #sizes), place(b, #sizes)
            sizes[a], sizes[b] = sizes[b], sizes[a]
        end
        return sizes
    end,
    times = function(x, y) -- the shorter is filled up with 1 in front
        local sizes, n = {}, math.max(#x, #y)
        for d = 1, n do
            sizes[d] = (rawget(x, d - n + #x) or 1) * (rawget(y, d - n + #y) or 1)
        end
        return sizes
    end,
    padded = function(x, pad)
        local sizes = copy(x)
        for k = 1, #pad, 2 do
            local d = #sizes - (k - 1) // 2
            sizes[d] = sizes[d] + pad[k] + pad[k + 1]
        end
        return sizes
    end,
}

-- ---- holding against ----

local function text_of(sizes)
    return "(" .. table.concat(sizes, ", ") .. ")"
end

-- What names mean in a call: what was found before, definitions, arguments (tensors as their shapes), functions.
local function environment(known, named, meanings)
    local found, env = {}, nil
    local function argument(value)
        if tide.is_tensor(value) then
            return sizes_of(value)
        elseif type(value) == "table" and tide.is_tensor(value[1]) then
            local list = setmetatable({}, shape_of)
            for k, x in ipairs(value) do
                list[k] = sizes_of(x)
            end
            return list
        end
        return value
    end
    env = setmetatable({}, { __index = function(_, name)
        if found[name] ~= nil then
            return found[name]
        elseif meanings[name] then
            return meanings[name](named)
        elseif known.words[name] then
            return nil
        elseif known.formulas[name] then
            return known.formulas[name](env)()
        elseif named[name] ~= nil then
            return argument(named[name])
        end
        return functions[name]
    end })
    return { found = found, env = env, known = known, stars = {} }
end

local function value_of(formula, at)
    return formula(at.env)()
end

-- Broadcast of shapes; nil where they are not for one another.
local function broadcast(shapes)
    local all = {}
    for _, sizes in ipairs(shapes) do
        local n = math.max(#all, #sizes)
        local joined = {}
        for d = 1, n do
            local a, b = all[d - n + #all] or 1, sizes[d - n + #sizes] or 1
            if a ~= b and a ~= 1 and b ~= 1 then
                return nil
            end
            joined[d] = a == 1 and b or a
        end
        all = joined
    end
    return all
end

-- The list that a dim stands for, or nil where nothing is known of it yet.
local function list_of(dim, at, is_result)
    if dim.kind == "star" then
        return is_result and broadcast(at.stars) or nil
    elseif dim.formula then
        return value_of(dim.formula, at)
    end
    local value = at.found[dim.name .. "..."] or at.known.formulas[dim.name] and at.env[dim.name]
    if value == nil and dim.name ~= "..." then
        value = at.env[dim.name]
    end
    return type(value) == "table" and value or nil
end

-- Is `size` what the dim says? What has not been met before is now known.
local function is_size(dim, size, at)
    if dim.formula then
        return value_of(dim.formula, at) == size
    elseif dim.name == nil then
        return tonumber(dim.text) == size
    end
    local value = at.env[dim.name]
    value = type(value) == "table" and at.part and value[at.part] or value -- a size for each part
    if type(value) ~= "number" and not (value == false) then
        at.found[dim.name], value = size, size
    end
    return value == size
end

-- Sizes against dims, of which one list may be unknown.
local function match_dims(shape, sizes, at, is_result)
    local fixed, open, lists = 0, nil, {}
    for k, dim in ipairs(shape) do
        lists[k] = dim.kind ~= "size" and list_of(dim, at, is_result) or nil
        if dim.kind == "size" then
            fixed = fixed + 1
        elseif lists[k] then
            fixed = fixed + #lists[k]
        elseif open then
            error("two lists of dims are unknown in " .. shape.text, 0)
        else
            open = k
        end
    end
    local rest = #sizes - fixed
    if rest < 0 or (rest > 0 and not open) then
        return false
    end
    local d = 0
    for k, dim in ipairs(shape) do
        if dim.kind == "size" then
            d = d + 1
            if not is_size(dim, sizes[d], at) then
                return false
            end
        elseif lists[k] then
            for _, size in ipairs(lists[k]) do
                d = d + 1
                if size ~= sizes[d] then
                    return false
                end
            end
        else
            local part = { table.unpack(sizes, d + 1, d + rest) }
            d = d + rest
            if dim.kind == "star" then
                at.stars[#at.stars + 1] = part
                if not broadcast(at.stars) then
                    return false
                end
            else
                at.found[dim.name .. "..."] = part
            end
        end
    end
    return true
end

-- The sizes that dims which are known stand for.
local function expand(shape, at)
    local sizes = {}
    for _, dim in ipairs(shape) do
        if dim.kind == "size" then
            sizes[#sizes + 1] = dim.formula and value_of(dim.formula, at) or at.env[dim.name]
        else
            for _, size in ipairs(list_of(dim, at, true) or {}) do
                sizes[#sizes + 1] = size
            end
        end
    end
    return sizes
end

local function same(a, b, but)
    if #a ~= #b then
        return false
    end
    for d = 1, #a do
        if d ~= but and a[d] ~= b[d] then
            return false
        end
    end
    return true
end

local function match(shape, sizes, at, is_result)
    if shape.without then
        return same(remove(expand(shape, at), value_of(shape.without, at), at.env.keepdim), sizes)
    elseif shape.inserted then
        local whole = expand(shape, at)
        local d = place(value_of(shape.inserted, at), #whole + 1)
        table.insert(whole, d, sizes[d] or -1)
        return same(whole, sizes) and is_size(shape.with, sizes[d], at)
    elseif shape.with then
        if #sizes == 0 then
            return match_dims(shape, sizes, at, is_result)
        end
        local d = place(value_of(shape.at, at), #sizes)
        local is_known = not (#shape == 1 and shape[1].kind == "dots" and not list_of(shape[1], at, is_result))
        local others = is_known and same(expand(shape, at), sizes, d)
            or not is_known and match_dims(shape, sizes, at, is_result)
        return others and sizes[d] ~= nil and is_size(shape.with, sizes[d], at)
    end
    return match_dims(shape, sizes, at, is_result)
end

-- For each in a list what stands in words is its own.
local function match_each(shape, list, at, is_result)
    for k, x in ipairs(list) do
        at.part = is_result and k
        for name in pairs(at.known.words) do
            at.found[name], at.found[name .. "..."] = nil, nil
        end
        if tide.is_tensor(x) and not match(shape, plain_sizes(x), at, is_result) then
            return false
        end
    end
    for name in pairs(at.known.words) do
        at.found[name], at.found[name .. "..."] = nil, nil
    end
    return true
end

local function fits(operand, value, at)
    if operand.list then
        return match_each(operand.shape, type(value) == "table" and not tide.is_tensor(value) and value or { value }, at)
    elseif operand.to then
        local target = expand(operand.shape, at)
        local both = broadcast { target, plain_sizes(value) }
        return both and same(both, target)
    end
    return match(operand.shape, plain_sizes(value), at)
end

-- The case of a call, and what it has found; or nil.
local function find_case(known, named, meanings)
    for _, case in ipairs(known.cases) do
        local at = environment(known, named, meanings)
        local good = true
        for _, late in ipairs { false, true } do -- what is broadcast to a shape after what gives it
            for _, operand in ipairs(case.operands) do
                local value = named[operand.name]
                local is_given = tide.is_tensor(value) or (operand.list and type(value) == "table")
                if good and operand.to == late and is_given then
                    good = fits(operand, value, at)
                elseif good and not late and not operand.to and type(value) == "number" and #operand.shape == 1 and operand.shape[1].name == "..." then
                    good = match(operand.shape, {}, at) -- as a tensor without dims
                end
            end
        end
        if good and (not case.condition or value_of(case.condition, at)) then
            return case, at
        end
    end
end

local function check_result(result, value, at)
    if result.word then
        local kind = result.word == "bool" and "boolean" or result.word
        return kind == "nothing" or type(value) == kind
    end
    return match(result.shape, plain_sizes(value), at, true)
end

local function show(values, n)
    local parts = {}
    for k = 1, n do
        local x = values[k]
        parts[k] = tide.is_tensor(x) and text_of { table.unpack(x.shape) } or type(x)
    end
    return table.concat(parts, ", ")
end

-- Results that are asked for by an option return_NAME are left out where it is false.
local function asked_for(op, named, results)
    local parts, k = {}, 0
    for name in op.signature:match("%->(.*)$"):gmatch "Tensor ([%w_]+)" do
        local option = named["return_" .. name]
        if option == nil then
            option = named["return_" .. name:match "^[^_]*"]
        end
        k = k + 1
        if option ~= false then
            parts[#parts + 1] = results[k]
        end
    end
    return #parts > 0 and parts or results
end

--- check(op, known, args, results, meanings): is the text true of this call? `results` are packed; `meanings` has
-- functions of the arguments by name for what the text explains in words.
function texts.check(op, known, args, results, meanings)
    local named = by_name(parameters_of(op.signature), args)
    local case, at = find_case(known, named, meanings)
    if not case then
        error(("%s of %s fits no case of '%s'"):format(op.name, show(args, args.n or #args), op.shapes), 0)
    end
    local wanted = asked_for(op, named, case.results)
    local list = wanted[1]
    if list and list.list then
        local all = type(results[1]) == "table" and not tide.is_tensor(results[1]) and results[1] or results
        if not match_each(list.shape, all, at, true) then
            error(("%s gives {%s}, not '%s'"):format(op.name, show(all, #all), op.shapes), 0)
        end
        return
    end
    if results.n > #wanted then
        error(("%s gives %d results, not '%s'"):format(op.name, results.n, op.shapes), 0)
    end
    for k = 1, results.n do
        if results[k] ~= nil and not check_result(wanted[k], results[k], at) then
            error(("%s of %s gives %s, not '%s'"):format(op.name, show(args, args.n or #args), show(results, results.n),
                op.shapes), 0)
        end
    end
end

--- check_names(op, known): operands are parameters, and every tensor among these is an operand.
function texts.check_names(op, known)
    local is_parameter = {}
    for _, p in ipairs(parameters_of(op.signature)) do
        is_parameter[p.name] = true
        if p.type:find "Tensor" and p.name ~= "out" and not known.operands[p.name] then
            error(("'%s' says nothing of %s"):format(op.shapes, p.name), 0)
        end
    end
    for name in pairs(known.operands) do
        if not is_parameter[name] then
            error(("'%s' speaks of %s, which is no parameter"):format(op.shapes, name), 0)
        end
    end
end

return texts
