-- shape_calls.lua: holds what shape_texts.lua has read against the arguments and results of a call of an operator or a
-- module. A call that the text doesn't tell the truth of is an error that says why.
local texts = ...
local parameters_of, by_name, is_options = texts.parameters_of, texts.by_name, texts.is_options
local calls = {}

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

-- Is the text true of a call with these arguments by name? `wanted` are the results of the case that the call has.
local function hold(text, name, known, named, results, meanings, wanted_of)
    local case, at = find_case(known, named, meanings)
    if not case then
        error(("a call of %s fits no case of '%s'"):format(name, text), 0)
    end
    local wanted = wanted_of(case.results)
    local list = wanted[1]
    if list and list.list then
        local all = type(results[1]) == "table" and not tide.is_tensor(results[1]) and results[1] or results
        if not match_each(list.shape, all, at, true) then
            error(("%s gives {%s}, not '%s'"):format(name, show(all, #all), text), 0)
        end
        return
    end
    if results.n > #wanted then
        error(("%s gives %d results, not '%s'"):format(name, results.n, text), 0)
    end
    for k = 1, results.n do
        if results[k] ~= nil and not check_result(wanted[k], results[k], at) then
            error(("%s gives %s, not '%s'"):format(name, show(results, results.n), text), 0)
        end
    end
end

--- check(op, known, args, results, meanings): is the text true of this call? `results` are packed; `meanings` has
-- functions of the arguments by name for what the text explains in words.
function calls.check(op, known, args, results, meanings)
    local named = by_name(parameters_of(op.signature), args)
    hold(op.shapes, op.name, known, named, results, meanings, function(all) return asked_for(op, named, all) end)
end

--- check_module(doc, known, module, made_of, args, results, meanings): the same for a module that was made of these
-- arguments. Operands are what it is called with, in order or by name, and parameters and buffers of their names.
function calls.check_module(doc, known, module, made_of, args, results, meanings)
    local parameters = parameters_of(doc.signature)
    local named, k = by_name(parameters, made_of), 0
    for _, p in ipairs(parameters) do
        local field = rawget(module, p.name)
        if field ~= nil then
            named[p.name] = texts.normal(p, field)
        end
    end
    for name in pairs(known.operands) do
        if tide.is_tensor(module[name]) then
            named[name] = module[name]
        end
    end
    local given, most = is_options(args[#args]) and args[#args] or {}, known.cases[1]
    for _, case in ipairs(known.cases) do
        most = #case.operands > #most.operands and case or most
    end
    for name, value in pairs(given) do
        named[name] = value
    end
    for _, operand in ipairs(most.operands) do
        if not tide.is_tensor(named[operand.name]) then
            k = k + 1
            named[operand.name] = args[k] ~= given and args[k] or nil
        end
    end
    hold(doc.shapes, doc.name, known, named, results, meanings, function(all) return all end)
end

--- check_names(op, known): operands are parameters, and every tensor among these is an operand.
function calls.check_names(op, known)
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

return calls
