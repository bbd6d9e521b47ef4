-- shape_texts.lua: reads the language that texts of shapes are written in (engine/ops/help.h), and signatures. A text that
-- is none is an error that says why. shape_calls.lua holds what is read against calls.
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

--- parameters_of(signature): {type, name, preset, option} of each parameter.
function texts.parameters_of(signature)
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

function texts.is_options(value)
    return type(value) == "table" and not tide.is_tensor(value) and not getmetatable(value) and type(next(value)) == "string"
end

--- normal(parameter, value): int[2] as two ints, number[] as a list, "valid" as no padding.
function texts.normal(parameter, value)
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

--- by_name(parameters, args): the arguments of a call by the names of the parameters.
function texts.by_name(parameters, args)
    local named, n = {}, args.n or #args
    local last
    for _, p in ipairs(parameters) do
        named[p.name] = p.preset
        last = not p.option and p or last
    end
    if n > 0 and texts.is_options(args[n]) then
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
        named[p.name] = texts.normal(p, named[p.name])
    end
    return named
end

return texts
