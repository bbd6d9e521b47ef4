-- suggest: "did you mean 'randn'?" for a name that turned out to be nil.

local names = import "names"
local habits = import "habits"

local suggest = {}

-- Edits (insert, delete, replace, swap of neighbours) that lead from a to b, at most `limit` + 1.
local function distance(a, b, limit)
    if math.abs(#a - #b) > limit then
        return limit + 1
    end
    local before, row = {}, {}
    for j = 0, #b do
        row[j] = j
    end
    for i = 1, #a do
        local two = before
        before, row = row, {[0] = i}
        local least = i
        for j = 1, #b do
            local same = string.byte(a, i) == string.byte(b, j)
            local cost = math.min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (same and 0 or 1))
            if i > 1 and j > 1 and string.byte(a, i) == string.byte(b, j - 1) and string.byte(a, i - 1) == string.byte(b, j) then
                cost = math.min(cost, two[j - 2] + 1)
            end
            row[j] = cost
            least = math.min(least, cost)
        end
        if least > limit then
            return limit + 1
        end
    end
    return row[#b]
end

local function plain(name)
    return (string.gsub(string.lower(name), "_", ""))
end

-- The candidate nearest to a name, or nil: one slip away, in a long name two. Case and underscores
-- count for little; names that begin with two of them are nobody's to type.
function suggest.nearest(name, layers)
    local limit = #name <= 3 and 0 or #name <= 7 and 1 or 2
    local wanted = plain(name)
    local best, best_distance
    for _, layer in ipairs(layers) do
        for key, value in next, layer do
            if type(key) == "string" and key ~= name and value ~= nil and string.sub(key, 1, 2) ~= "__" then
                local d = distance(wanted, plain(key), limit)
                if d <= limit and (not best or d < best_distance
                    or (d == best_distance and key < best)) then
                    best, best_distance = key, d
                end
            end
        end
    end
    return best
end

-- The text of a line of a chunk, or nil.
local function source_line(chunkname, line)
    local text, n = source(chunkname), 0
    for found in string.gmatch((text or "") .. "\n", "(.-)\n") do
        n = n + 1
        if n == line then
            return found
        end
    end
end

-- The tables that hold the fields of what stands before `.name` or `:name` on the line.
local function owner_layers(name, line, visible)
    local tokens = names.tokens(line or "")
    for i = 3, #tokens do
        local separator = tokens[i - 1].text
        if tokens[i].text == name and (separator == "." or separator == ":") then
            local owner = names.value_at(tokens, i - 2, visible)
            if owner ~= nil then
                return names.layers(owner), owner
            end
        end
    end
end

-- What classes of objects are called in PyTorch.
local CLASSES = {["tide.Profile"] = "profiler.profile", GradScaler = "amp.GradScaler", Timer = "utils.benchmark.Timer"}

-- What is said of a name of PyTorch's that `owner` (a value, or nil for none) has not, or nil.
local function in_pytorch(name, owner)
    local tide = names.tide()
    local mt = names.meta(owner)
    local class = mt and rawget(mt, "__name")
    local room = CLASSES[class] or tide and type(owner) == "table" and tide.nn.is_module(owner) and "nn.Module"
        or class and mt == debug.getregistry()["tide.class.Optimizer"] and "optim.Optimizer"
    local ok, text = pcall(function() return tide._require("help.pytorch").text(room and room .. "." .. name or name) end)
    return ok and text or nil
end

-- The full name under which tide has a global that is not there ("tide.nn.Linear"), or nil.
local function in_tide(name)
    local tide = names.tide()
    if not tide or type(name) ~= "string" or #name < 3 or string.sub(name, 1, 1) == "_" then
        return nil
    elseif rawget(tide, name) ~= nil then
        return "tide." .. name
    end
    for _, room in ipairs {"nn", "optim", "benchmark", "profiler", "plot", "distributions", "linalg", "autograd", "widgets", "data"} do
        local module = names.field(tide, room)
        if type(module) == "table" and rawget(module, name) ~= nil then
            return "tide." .. room .. "." .. name
        end
    end
end

-- What a name that is not there was meant to be; `found`: one that is near.
local function means(name, found)
    local lua, full = name and habits.name(name), name and in_tide(name)
    if lua then
        return ": Lua writes " .. lua
    end
    found = full or found
    return found and ": did you mean '" .. found .. "'?" or nil
end

-- What a module has, for a name that it has not; or nil.
local function parts_of(name, owner)
    local tide = names.tide()
    if not tide or not names.field(names.field(tide, "nn"), "is_module")(owner) then
        return nil
    end
    local list = {}
    for k, part in ipairs(rawget(owner, "_names") or {}) do
        list[k] = k <= 8 and tostring(part) or k == 9 and "..." or nil
    end
    return string.format(": %s has no '%s'; its parts: %s", names.meta(owner).__name, name, #list > 0 and table.concat(list, ", ") or "none")
end

-- What a visible name holds, or nil.
local function value_of(name, visible)
    local value = rawget(visible, name)
    if value == nil then
        value = rawget((locals()), name)
    end
    if value == nil then
        value = names.field(user, name)
    end
    return value
end

local function is_list_of_tensors(value)
    return type(value) == "table" and names.meta(value) == nil and names.is_tensor(rawget(value, 1))
end

-- What is said of a name that an assignment in the code left nil, since one before it took a whole list of tensors; or nil.
local function left_nil(name, code, visible)
    for left, call, behind in string.gmatch(code, "([%a_][%w_%s,]*[%w_])%s*=%s*([%w_.:]+%b())()") do
        local taker, at
        call = call .. (string.match(code, "^[%w_.:]+%b()", behind) or "")
        for k, other in string.gmatch(string.gsub(left, "^local%s+", ""), "()([%a_][%w_]*)") do
            if other == name and taker then
                local list, first = value_of(taker, visible), at == 1
                return string.format(": %s is a list of %d tensors: local %s = table.unpack(%s)", taker, #list,
                    first and string.gsub(left, "^local%s+", "") or taker .. ", " .. name, first and call or taker)
            elseif not taker and is_list_of_tensors(value_of(other, visible)) then
                taker, at = other, k
            end
        end
    end
end

-- What is said of a list of tensors that stands where one of them is meant, and of a name that `local a, b = x:chunk(2)`
-- left nil, or nil.
local function unpacked(message, chunkname, line, visible)
    local kind, name = string.match(message, "a (%l+) value %(%l+ '([%a_][%w_]*)'%)")
    local value = name and value_of(name, visible)
    if kind == "table" and is_list_of_tensors(value) then
        return string.format(": %s is a list of %d tensors: local a, b = table.unpack(%s)", name, #value, name)
    elseif kind == "table" or kind and kind ~= "nil" or not kind and not string.find(message, "got n[io][lt]") then
        return nil
    end
    local code, inputs = source(chunkname) or "", names.field(user, "In")
    if type(inputs) == "table" and #inputs > 0 then -- the last ones of the prompt
        code = table.concat(inputs, "\n", math.max(1, #inputs - 99)) .. "\n" .. code
    end
    for token in string.gmatch(kind and name or source_line(chunkname, line) or "", "[%a_][%w_]*") do
        local said = value_of(token, visible) == nil and left_nil(token, code, visible)
        if said then
            return said
        end
    end
end

-- hint(message, chunk name, line, visible): what to append to the message of an error, or nil.
-- `visible` are the locals where it arose.
function suggest.hint(message, chunkname, line, visible)
    local text = source_line(chunkname, line)
    local found = habits.call(message, text, visible)
    if found then
        return found
    end
    local list = unpacked(message, chunkname, line, visible)
    if list then
        return list
    end
    local kind, name = string.match(message, "a nil value %(([a-z]+) '([A-Za-z_][A-Za-z0-9_]*)'%)")
    local layers, owner
    if kind == "global" then
        layers = {visible, (locals()), table.unpack(names.layers(user))}
    elseif kind == "field" or kind == "method" then
        layers, owner = owner_layers(name, text, visible)
    end
    if kind == "method" and type(owner) == "table" and names.meta(owner) == nil and names.is_tensor(rawget(owner, 1)) then
        return string.format(": this is a list of %d tensors: list[1]:%s(...), or local a, b = table.unpack(list)", #owner, name)
    end
    if kind == "field" and type(owner) == "table" and names.global_name(owner) == "math" and habits.math(name) then
        return ": Lua writes " .. habits.math(name)
    elseif kind == "method" and habits.method(name) and not names.is_tensor(owner) then
        return ": Lua writes " .. habits.method(name)
    end
    local told = layers and means(kind == "global" and name, suggest.nearest(name, layers))
    local plain = type(owner) == "table" and names.meta(owner) == nil
    if not told and kind == "field" and plain and habits.method(name) and string.find(message, "call a nil", 1, true) then
        return ": Lua writes " .. habits.method(name)
    end
    if not told and owner ~= nil then
        local found = in_pytorch(name, owner)
        told = found and ": " .. found or parts_of(name, owner)
    end
    return told
end

-- undefined(name): the complaint about a name by itself that nothing has, or nil.
function suggest.undefined(name)
    local visible, declared = locals()
    if declared[name] or names.field(user, name) ~= nil then
        return nil
    end
    local found = suggest.nearest(name, {visible, table.unpack(names.layers(user))})
    return "'" .. name .. "' is not defined" .. (means(name, found) or "")
end

-- unknown(path): what to say of a name such as "tide.nn.Linaer" of which nothing is known; whether it is a search, which
-- that answers.
function suggest.unknown(path)
    if string.find(path, "[*/]") then
        return "nothing matches '" .. path .. "'", true
    end
    local tokens = names.tokens(path)
    local last = tokens[#tokens]
    if #tokens == 1 then
        local _, declared = locals()
        if declared[path] or path == "nil" or path == "true" or path == "false" then
            return "'" .. path .. "' is " .. (path == "nil" and "Lua's word for nothing" or declared[path] and "nil"
                or "a boolean")
        end
        local found = suggest.nearest(path, {(locals()), table.unpack(names.layers(user))})
        local pytorch = not habits.name(path) and not in_tide(path) and in_pytorch(path)
        if pytorch then
            return string.find(pytorch, "^PyTorch") and pytorch or path .. ": " .. pytorch
        end
        return "nothing is known of '" .. path .. "'" .. (means(path, found) or "")
    end
    local owner
    local head = tokens[1] and tokens[1].text
    local known = select(2, locals())[head] or names.field(user, head) ~= nil
    if not known and names.tide() and head ~= "tide" and names.field(names.tide(), head) ~= nil then
        return (string.gsub(suggest.unknown("tide." .. path), "'tide." .. string.gsub(path, "%p", "%%%0") .. "'", "'" .. path .. "'"))
    end
    if last and last.kind == "name" and #tokens > 2 then
        owner = names.value_at(tokens, #tokens - 2)
    end
    local tide = names.tide()
    local field = string.match(path, "^torch%.Tensor%.([%a_][%w_]*)$")
    local room, name = string.match(path, "^(%l[%w_]*)%.([%a_][%w_]*)$")
    local module = tide and room and names.field(tide, room)
    if tide and field and pcall(function() return tide.empty(1)[field] end) then
        return path .. ": PyTorch's x." .. field .. " is Tide's x." .. field
    elseif type(module) == "table" and rawget(module, name) ~= nil then
        return "nothing is known of '" .. path .. "': did you mean 'tide." .. path .. "'?"
    end
    local pytorch = in_pytorch(string.gsub(string.gsub(string.gsub(path, "^tide%.", ""), "^x[.:]", "Tensor."), ":", "."))
    if pytorch then
        return string.find(pytorch, "^PyTorch") and pytorch or path .. ": " .. pytorch
    end
    local found = owner ~= nil and suggest.nearest(last.text, names.layers(owner))
    return "nothing is known of '" .. path .. "'" .. (found and ": did you mean '" .. found .. "'?" or "")
end

-- Words beside a name that show that it is known to be nil.
local TESTS = {["or"] = true, ["and"] = true, ["=="] = true, ["~="] = true, ["not"] = true, ["if"] = true,
               ["then"] = true, ["elseif"] = true, ["while"] = true, ["="] = true}
local USES = {["("] = true, ["."] = true, [":"] = true, ["["] = true, ["{"] = true}

-- missing(name, chunk name, line): a warning about a global that is read and not there, where
-- another one is near and nothing tells that it is meant so; or nil. What calls or indexes it ends in
-- an error of its own.
function suggest.missing(name, chunkname, line)
    local tokens = names.tokens(source_line(chunkname, line) or "")
    for i, token in ipairs(tokens) do
        local before, after = tokens[i - 1], tokens[i + 1]
        local assigned = after and after.text == "="
        if token.kind == "name" and token.text == name and (assigned
            or before and TESTS[before.text] and before.text ~= "="
            or after and (TESTS[after.text] or USES[after.text] or after.kind == "string")) then
            return nil
        end
    end
    local found = means(name, suggest.nearest(name, {(locals()), table.unpack(names.layers(user))}))
    return found and #tokens > 1 and "'" .. name .. "' is not defined, so it is nil" .. found or nil
end

return suggest
