-- complete: what may stand at the cursor: names, fields, methods, keywords, magics, files.
--
-- No user code runs: everything is looked up raw (see names).

local names = import "names"

local complete = {}

local MOST = 5000

local function type_of(value)
    if type(value) == "function" then
        return "function"
    elseif type(value) == "table" then
        return rawequal(package.loaded[names.global_name(value) or ""], value) and "module" or "field"
    end
    return "field"
end

-- Can the value be called with a colon?
local function is_callable(value)
    if type(value) == "function" then
        return true
    end
    local mt = names.meta(value)
    return mt ~= nil and rawget(mt, "__call") ~= nil
end

local reserved = {}
for _, word in ipairs(keywords) do
    reserved[word] = true
end

-- A collector: add(name, type, value) keeps the names that begin with the partial one, each once, and
-- answers whether there is room for more; a type that is a function is asked about the value.
-- Names that begin with an underscore show only when asked for.
local function collector(partial)
    local types = {}
    local private = string.sub(partial, 1, 1) == "_"
    local count = 0
    return types, function(name, kind, value)
        if type(name) == "string" and count < MOST and types[name] == nil
            and string.sub(name, 1, #partial) == partial
            and (private or string.sub(name, 1, 1) ~= "_")
            and string.find(name, "^[A-Za-z_][A-Za-z0-9_]*$")
            and (kind == "keyword" or not reserved[name]) then -- x.repeat is no Lua
            types[name] = type(kind) == "function" and kind(value) or kind
            count = count + 1
        end
        return count < MOST
    end
end

local function finish(start, types)
    local matches, kinds = {}, {}
    for name in next, types do
        matches[#matches + 1] = name
    end
    table.sort(matches, before)
    for i, name in ipairs(matches) do
        kinds[i] = types[name]
    end
    return start, matches, kinds
end

-- Fields of the value before a dot, methods before a colon.
local function members(owner, separator, partial, start)
    local types, add = collector(partial)
    local layers = names.layers(owner)
    if rawequal(owner, names.tensor_like) then
        layers = {names.tide_methods()}
    end
    for _, layer in ipairs(layers) do
        for name, value in next, layer do
            if separator == "." then
                if not add(name, names.is_tensor(owner) and "method" or type_of, value) then
                    break
                end
            elseif is_callable(value) or names.is_tensor(owner) or rawequal(owner, names.tensor_like) then
                add(name, "method")
            end
        end
    end
    if names.is_tensor(owner) and separator == "." then
        for _, name in ipairs(names.tensor_fields) do
            add(name, "field")
        end
    end
    return finish(start, types)
end

-- Index of the bracket that is open behind token `last`; nil when none is.
local function open_bracket(tokens, last)
    local depth = 0
    for i = last, 1, -1 do
        local text = tokens[i].kind == "op" and tokens[i].text or ""
        if string.find(text, "^[)}%]]$") then
            depth = depth + 1
        elseif string.find(text, "^[({[]$") then
            if depth == 0 then
                return i
            end
            depth = depth - 1
        end
    end
end

-- The names of the options of a call in whose table the name behind token `last` begins; nil: there is none.
local function options_at(tokens, last)
    local before = tokens[last]
    local table_at = before and (before.text == "{" or before.text == ",") and open_bracket(tokens, last)
    if not table_at or tokens[table_at].text ~= "{" then
        return nil
    end
    local callee = table_at - 1
    if callee >= 1 and tokens[callee].kind ~= "name" then -- f(..., {
        local call = open_bracket(tokens, callee)
        callee = call and tokens[call].text == "(" and call - 1 or 0
    end
    local value = callee >= 1 and tokens[callee].kind == "name" and names.value_at(tokens, callee)
    local doc = value and names.doc(value)
    return doc and doc.params
end

-- Globals, keywords, and names that the code itself uses; `options` come first of those of one name.
local function plain_names(code, partial, start, tokens, options)
    local types, add = collector(partial)
    for _, name in ipairs(options or {}) do
        add(name, "option")
    end
    for name, value in next, (locals()) do
        add(name, type(value) == "function" and "function" or "local")
    end
    for _, layer in ipairs(names.layers(user)) do
        for name, value in next, layer do
            add(name, type(value) == "function" and "function"
                or type_of(value) == "module" and "module" or "global")
        end
    end
    for _, word in ipairs(keywords) do
        add(word, "keyword")
    end
    for i, token in ipairs(tokens) do
        local before = tokens[i - 1]
        local dotted = before and (before.text == "." or before.text == ":")
        if token.kind == "name" and token.first ~= start and not dotted then
            add(token.text, "local")
        end
    end
    return finish(start, types)
end

-- Files whose name goes on from what stands between the quote and the cursor.
local function paths(text, start)
    local folder, partial = string.match(text, "^(.*/)([^/]*)$")
    folder, partial = folder or "", partial or text
    local place = folder
    if string.sub(place, 1, 2) == "~/" then
        place = (os.getenv("HOME") or "~") .. string.sub(place, 2)
    end
    local matches, kinds = {}, {}
    for _, name in ipairs(files(place == "" and "." or place)) do
        if string.sub(name, 1, #partial) == partial and (partial ~= "" or string.sub(name, 1, 1) ~= ".") then
            matches[#matches + 1] = folder .. name
        end
    end
    table.sort(matches, before)
    for i in ipairs(matches) do
        kinds[i] = "path"
    end
    return start, matches, kinds
end

local function magic_names(head, start)
    local percent, partial = string.match(head, "^(%%%%?)(.*)$")
    local matches, kinds = {}, {}
    local known = table.move(import("magics").list(), 1, 1000, #magics + 1, {table.unpack(magics)})
    table.sort(known, before)
    for _, name in ipairs(known) do
        if string.sub(name, 1, #partial) == partial then
            matches[#matches + 1] = percent .. name
            kinds[#kinds + 1] = "magic"
        end
    end
    return start, matches, kinds
end

-- complete(code, cursor): cursor counts the bytes before it. Returns the first byte (from 1) of what
-- the matches replace (up to the cursor), the matches in order and their types.
function complete.complete(code, cursor)
    local head = string.sub(code, 1, cursor)
    local line = names.last_line(head)
    local magic = string.match(line, "^%s*(%%%%?[A-Za-z0-9_]*)$")
    if magic then
        return magic_names(magic, cursor - #magic + 1)
    end
    local percent = string.match(line, "^%s*%%%%?[A-Za-z0-9_]+%s")
    local offset = percent and cursor - #line + #percent or 0
    local flat = lex(string.sub(head, offset + 1))
    if flat[#flat - 2] == "comment" and flat[#flat] == #head - offset then
        return cursor + 1, {}, {}
    end
    local tokens = names.tokens(string.sub(head, offset + 1))
    local last = tokens[#tokens]
    if last and last.kind == "open" then
        local text = string.gsub(string.gsub(last.text, "^%[=*%[", ""), "^[\"']", "")
        return paths(text, cursor - #text + 1)
    end
    local partial, start, count = "", cursor + 1, #tokens
    if last and (last.kind == "name" or last.kind == "keyword") and last.last == #head - offset then
        partial, start, count = last.text, last.first + offset, count - 1
    elseif last and last.kind == "number" and last.last == #head - offset then
        return cursor + 1, {}, {}
    end
    local separator = tokens[count]
    if separator and separator.kind == "op" and (separator.text == "." or separator.text == ":") then
        local owner = names.value_at(tokens, count - 1)
        if owner == nil then
            return cursor + 1, {}, {}
        end
        return members(owner, separator.text, partial, start)
    end
    return plain_names(code, partial, start, names.tokens(code), options_at(tokens, count))
end

return complete
