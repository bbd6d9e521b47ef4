-- names: what a written name such as `tide.nn.Linear` or `x[1].y` means, without running user code.
--
-- All access is raw. Beyond raw fields only chains of `__index` tables are followed, and what tide
-- publishes about itself: `tide._methods` (methods of tensors) and `tide._doc`.

local names = {}

local getmetatable = debug.getmetatable

-- The tide module, or nil.
function names.tide()
    return tide
end

-- A part of tide's own modules (tide._require), or nil.
function names.part(path)
    local ok, part = pcall(function() return tide._require(path) end)
    return ok and part or nil
end

-- The metatable of a value; only true tables count.
local function meta(value)
    local mt = getmetatable(value)
    return type(mt) == "table" and mt or nil
end
names.meta = meta

-- Is the value a tensor of tide's?
function names.is_tensor(value)
    local mt = type(value) == "userdata" and meta(value)
    return mt and rawget(mt, "__name") == "tide.Tensor" or false
end

local function tide_methods()
    local tide = names.tide()
    local methods = tide and rawget(tide, "_methods")
    return type(methods) == "table" and methods or nil
end
names.tide_methods = tide_methods

-- The names of tide's parts, which are loaded when they are used; nil for anything else.
function names.parts(value)
    local tide = names.tide()
    local list = tide and rawequal(value, tide) and rawget(tide, "_lazy")
    if type(list) ~= "table" then
        return nil
    end
    local parts = {}
    for _, name in ipairs(list) do
        parts[name] = rawget(tide, name) or {}
    end
    return parts
end

-- The tables in which fields of the value are found, nearest first.
function names.layers(value)
    local list, seen = {}, {}
    while value ~= nil and #list < 32 do
        if type(value) == "table" then
            if seen[value] then
                break
            end
            seen[value] = true
            list[#list + 1] = value
            list[#list + 1] = names.parts(value)
        end
        if names.is_tensor(value) then
            list[#list + 1] = tide_methods()
            break
        end
        local mt = meta(value)
        local index = mt and rawget(mt, "__index")
        if type(index) == "function" and rawget(mt, "is_module_class") then
            index = mt -- a container, which looks its class up itself
        end
        value = type(index) == "table" and index or nil
    end
    return list
end

-- Fields of a tensor that are no methods; reading them runs tide's code alone.
names.tensor_fields = {"T", "device", "dtype", "grad", "grad_fn", "is_leaf", "ndim",
                       "requires_grad", "shape"}
local is_tensor_field = {}
for _, name in ipairs(names.tensor_fields) do
    is_tensor_field[name] = true
end

local function index(value, key)
    return value[key]
end

-- A field of a value. Only tensors and tide itself (which may load a part of its own) are indexed;
-- elsewhere __index functions aren't called.
function names.field(value, key)
    local tide = names.tide()
    local parts = names.parts(value)
    for _, layer in ipairs(parts and {value} or names.layers(value)) do
        local found = rawget(layer, key)
        if found ~= nil then
            return found
        end
    end
    if (is_tensor_field[key] and names.is_tensor(value))
        or (tide and rawequal(value, tide) and type(key) == "string") then
        local ok, found = pcall(index, value, key)
        if ok then
            return found
        end
    end
end

-- The last line of a text, in one step over it: "[^\n]*$" would be tried from every place.
function names.last_line(text)
    return string.match(text, "^.*\n(.*)$") or text
end

-- Tokens of code as a list of {kind, text, first, last}, comments left out.
function names.tokens(code)
    local flat, list = lex(code), {}
    for i = 1, #flat, 3 do
        if flat[i] ~= "comment" then
            local before = list[#list]
            local member = before and string.find(before.text, "^[.:]$") and flat[i] == "keyword"
            list[#list + 1] = {kind = member and "name" or flat[i], -- asked about, as in tide.repeat
                               text = string.sub(code, flat[i + 1], flat[i + 2]),
                               first = flat[i + 1], last = flat[i + 2]}
        end
    end
    return list
end

-- The text of a literal key such as "k" or 12, as a value; nil for anything else.
local function literal(token)
    if token.kind == "number" then
        return tonumber(token.text)
    elseif token.kind == "string" then
        return string.match(token.text, "^[\"']([^\\\"']*)[\"']$")
    end
end

-- Index of the token that opens the bracket which token `last` closes; nil when none does.
local function opening(tokens, last)
    local depth = 0
    for i = last, 1, -1 do
        local text = tokens[i].kind == "op" and tokens[i].text
        if text == ")" or text == "]" or text == "}" then
            depth = depth + 1
        elseif text == "(" or text == "[" or text == "{" then
            depth = depth - 1
            if depth == 0 then
                return i
            end
        end
    end
end
names.opening = opening

-- The value of the expression that ends with token `last`: a name, fields, literal indices, a
-- string; `visible` are locals, without it those of
-- earlier inputs. A call is not made: only the results of tide's
-- operators are known to be tensors, for which `names.tensor_like` stands.
names.tensor_like = {}

function names.value_at(tokens, last, visible)
    local token = tokens[last]
    if not token then
        return nil
    end
    local before = tokens[last - 1]
    local dotted = before and before.kind == "op" and (before.text == "." or before.text == ":")
    if token.kind == "name" then
        if dotted then
            local owner = names.value_at(tokens, last - 2, visible)
            if owner ~= nil then
                return names.field(owner, token.text)
            end
            return nil
        end
        local value = rawget(visible or (locals()), token.text)
        if value == nil then
            value = names.field(user, token.text)
        end
        return value
    elseif token.kind == "string" then
        return ""
    elseif token.text == "]" then
        local open = opening(tokens, last)
        local key = open == last - 2 and literal(tokens[last - 1])
        local owner
        if open and key then
            owner = names.value_at(tokens, open - 1, visible)
        end
        if owner ~= nil then
            return names.field(owner, key)
        end
    elseif token.text == ")" then
        local open = opening(tokens, last)
        local callee = open and tokens[open - 1]
        if open and not (callee and (callee.kind == "name" or callee.kind == "string"
            or callee.text == ")" or callee.text == "]")) then
            return names.value_at(tokens, last - 1, visible) -- (x), not f(x)
        end
        local separator = open and tokens[open - 2]
        if separator and (separator.text == "." or separator.text == ":") then
            local owner = names.value_at(tokens, open - 3, visible)
            local tide = names.tide()
            if owner ~= nil and ((tide and rawequal(owner, tide)) or names.is_tensor(owner)
                or rawequal(owner, names.tensor_like)) then
                return names.tensor_like
            end
        end
    end
end

-- What tide knows of one of its functions (or a name): {name, signature, doc, …}, or nil.
function names.doc(value)
    local tide = names.tide()
    local doc = tide and rawget(tide, "_doc")
    if type(doc) ~= "function" or value == nil then
        return nil
    end
    local ok, found = pcall(doc, value)
    return ok and type(found) == "table" and found or nil
end

-- The name under which a loaded library has the value ("math.sin"), or nil.
function names.global_name(value)
    local best
    for name, library in next, package.loaded do
        if type(name) == "string" and type(library) == "table" then
            if rawequal(value, library) then
                return name
            end
            for key, item in next, library do
                if rawequal(item, value) and type(key) == "string" and key ~= "_" then
                    local full = name == "_G" and key or name .. "." .. key
                    if not best or #full < #best or (#full == #best and full < best) then
                        best = full
                    end
                end
            end
        end
    end
    return best
end

-- "(a, b, ...)": the parameters of a Lua function.
function names.parameters(f)
    local info = debug.getinfo(f, "u")
    local list = {}
    for i = 1, info.nparams do
        list[i] = debug.getlocal(f, i) or "?"
    end
    if info.isvararg then
        list[#list + 1] = "..."
    end
    return "(" .. table.concat(list, ", ") .. ")"
end

return names
