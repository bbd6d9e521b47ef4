-- jit/compiler/schema.lua: an operator's parameters and results, read off its signature (tide._doc), and which argument of
-- a call goes to which parameter, as lua-bindings/call/args.c does it.
local tide = ...
local schema = {}

-- Names that NumPy or PyTorch gives a parameter.
local OTHERS = { axis = "dim", keepdims = "keepdim", axis0 = "dim0", axis1 = "dim1" }

-- ---- reading ----

-- The parts of a text between commas, but for those in brackets and strings.
local function split(text)
    local parts, depth, quoted, from = {}, 0, false, 1
    for at = 1, #text do
        local c = string.sub(text, at, at)
        if c == '"' then
            quoted = not quoted
        elseif quoted then -- goes on
        elseif string.find(c, "[%(%[{]") then
            depth = depth + 1
        elseif string.find(c, "[%)%]}]") then
            depth = depth - 1
        elseif c == "," and depth == 0 then
            parts[#parts + 1] = string.sub(text, from, at - 1)
            from = at + 1
        end
    end
    parts[#parts + 1] = string.sub(text, from)
    return parts
end

local function literal(text)
    if text == "nil" then
        return nil
    elseif text == "true" or text == "false" then
        return text == "true"
    elseif string.find(text, "^{") then
        local list = {}
        for number in string.gmatch(text, "[^{},%s]+") do
            list[#list + 1] = tonumber(number)
        end
        return list
    end
    return string.match(text, '^"(.*)"$') or tonumber(text)
end

-- What a type's text says: kind is "Tensor", "Tensors", "TensorOrNumber", "number", "numbers", "int", "ints", "dim",
-- "dims", "index", "bool", "str", "dtype", "device", "generator" or "other".
local function read_type(text, p)
    local words = {}
    text = string.gsub(text, '|?"([^"]*)"', function(word)
        words[word] = true
        return ""
    end)
    p.words = next(words) and words or nil
    local base, rest = string.match(text, "^(%a+) (Tensor.*)$")
    p.base = (base == "index" or base == "class") and base or nil
    text = rest or text
    p.optional = string.find(text, "%?$") ~= nil
    text = string.gsub(text, "%?$", "")
    p.holes = string.find(text, "%?%[") ~= nil
    text = string.gsub(text, "%?%[", "[")
    local low, high = string.match(text, "%((%-?%d*)%.%.(%-?%d*)%)")
    p.low, p.high = tonumber(low), tonumber(high)
    text = string.gsub(text, "%(%-?%d*%.%.%-?%d*%)", "")
    p.length = tonumber(string.match(text, "%[(%d+)%]"))
    text = string.gsub(text, "%[%d+%]", "[]")
    p.rest = string.find(text, "%.%.%.$") ~= nil
    p.alone = string.find(text, "^int|") ~= nil or text == "Tensor|Tensor[]"
    p.truth = string.find(text, "|bool") ~= nil
    local kinds = { Tensor = "Tensor", ["Tensor[]"] = "Tensors", ["Tensor..."] = "Tensors", ["Tensor|number"] = "TensorOrNumber",
        ["Tensor|Tensor[]"] = "Tensors", number = "number", ["number|bool"] = "number", ["number[]"] = "numbers", int = "int",
        ["int[]"] = "ints", ["int|int[]"] = "ints", dim = "dim", ["dim[]"] = "dims", ["int|dim[]"] = "dims", index = "index",
        float = "float", bool = "bool", str = "str", dtype = "dtype", device = "device", generator = "generator", [""] = "str" }
    p.kind = kinds[text] or "other"
end

local function read_params(list, option, params)
    for _, part in ipairs(list) do
        local head, default = string.match(part, "^%s*(.-)=(.*)$")
        head = head or string.match(part, "^%s*(.-)%s*$")
        local t, name = string.match(head, "^(.*) ([%w_]+)$")
        if part == "..." or string.match(head, "^%s*%.%.%.$") then
            params.variadic = true
        elseif name and name ~= "out" then
            local p = { name = name, option = option, has_default = default ~= nil, default = default and literal(default) }
            read_type(t, p)
            params[#params + 1] = p
        end
    end
end

--- read(signature): {params, positional = how many of them may be given by place, results = {{base = counts from 1}},
--- result = "Tensor", "Tensor[]", "number", "bool" or "nothing"}.
function schema.read(signature)
    local inner = string.match(signature, "^[%w_]+%((.*)%)%s*%->") or string.match(signature, "^[%w_]+%((.*)%)$") or ""
    local params = {}
    local head, options = string.match(inner, "^(.-),?%s*{([^{}]-%f[%w].*)}$")
    if options and not string.find(options, "^[%a\"][^=]* [%w_]+=") then
        head, options = nil, nil
    end
    read_params(split(head or inner), false, params)
    local positional = #params
    if options then
        read_params(split(options), true, params)
    end
    local results, tail = {}, string.match(signature, "%)%s*%->%s*(.*)$") or "nothing"
    for part in string.gmatch(tail, "[^,]+") do
        results[#results + 1] = { base = string.find(part, "index Tensor") ~= nil }
    end
    local word = string.match(tail, "^[%a]+%[?%]?")
    return { params = params, positional = positional, results = results,
        result = string.find(tail, "^Tensor%[%]") and "Tensor[]" or string.find(tail, "Tensor") and "Tensor" or word }
end

-- ---- operators ----

local read = {}

local function known_only(s, names)
    local known = {}
    for _, name in ipairs(names) do
        known[name] = true
    end
    for k = #s.params, 1, -1 do
        if not known[s.params[k].name] then
            table.remove(s.params, k)
        end
    end
    return s
end

--- operator(name): the same of an operator or of one of its aliases, with `name` and the flags of tide._doc; nil: there is
--- none.
function schema.operator(name)
    if read[name] == nil then
        local doc = tide._doc(name)
        if doc and doc.family then -- what the face adds (requires_grad) is no parameter of the operator
            local s = known_only(schema.read(doc.signature), doc.params)
            s.name, s.doc = doc.alias_of or doc.name, doc
            read[name] = s
        else
            read[name] = false
        end
    end
    return read[name] or nil
end

-- ---- which argument goes where ----

local LISTS = { Tensors = true, ints = true, dims = true, numbers = true }

local function param_named(s, name)
    for k, p in ipairs(s.params) do
        if p.name == name or p.name == OTHERS[name] then
            return k
        end
    end
end

local function takes_rest(s, k)
    local p = s.params[k]
    return k == s.positional and not p.length and (p.kind == "ints" or p.kind == "dims" or p.rest)
end

-- The last argument as {list, named}: a table of the source whose list part is data and whose fields are options.
local function read_last(s, arguments, api)
    local n = #arguments
    local last = arguments[n]
    local items, fields = api.table(last)
    if not items then
        return n, {}
    end
    local named = next(fields) ~= nil
    local p = n <= s.positional and s.params[n] or nil
    local list = p and LISTS[p.kind]
    if #items == 0 and (named or not list or p.length) then
        return n - 1, fields
    elseif named and not list then
        if n == 1 and p and p.kind ~= "Tensor" then
            return 0, fields, items
        end
        api.fail("the last table holds options by name, got a list in it")
    elseif n == 1 and list and p.length and (named or #items ~= p.length) and p.kind ~= "Tensors" then
        return 0, fields, items
    end
    return n, fields
end

--- arrange(s, arguments, api): for each parameter what it is given: {value} or {values = the rest of the arguments},
--- nothing where its default stands; and the common options (requires_grad). `api`: table(value) is the items and fields
--- of a table of the source, fail(format, ...) refuses.
function schema.arrange(s, arguments, api)
    local given, common = {}, {}
    local n, fields, whole = read_last(s, arguments, api)
    local positional = {}
    for k = 1, n do
        positional[k] = arguments[k]
    end
    for k, value in ipairs(whole or {}) do
        positional[k] = value
    end
    n = #positional
    for k = 1, n do
        if k > s.positional then
            if s.positional > 0 and takes_rest(s, s.positional) then
                table.insert(given[s.positional].values, positional[k])
            elseif not api.is_nil(positional[k]) then
                local option = s.params[s.positional + 1]
                api.fail("argument %d: only %d are taken%s", k, s.positional,
                    option and string.format(" (options go in a table: {%s = value})", option.name) or "")
            end
        elseif takes_rest(s, k) then
            given[k] = { values = { positional[k] } }
        else
            given[k] = { value = positional[k] }
        end
    end
    for name, value in pairs(fields) do
        local k = param_named(s, name)
        if not k and (name == "requires_grad" or name == "inplace" or name == "out") then
            common[name] = value
        elseif not k then
            api.fail("no option '%s'", name)
        elseif given[k] then
            api.fail("'%s' is given twice", name)
        else
            given[k] = { value = value }
        end
    end
    return given, common
end

return schema
