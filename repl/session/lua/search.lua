-- search: names by a pattern (tide.*conv*, *int*), and whatever has all of some words in its name or doc
-- (/moving average).

local names = import "names"
local help = import "help"

local search = {}

local MOST = 60 -- lines of an answer

local function first_sentence(doc)
    local line = string.match(doc or "", "^[^\n]*")
    return string.match(line, "^(.-%.)%s") or line
end

local function cut(text, width)
    if (utf8.len(text) or #text) <= width then
        return text
    end
    return string.sub(text, 1, (utf8.offset(text, width) or width + 1) - 1) .. "…"
end

-- Calls visit(path, value) for the names of a module and of the modules and classes in it.
local function walk(path, module, visit, seen)
    if seen[module] then
        return
    end
    seen[module] = true
    local tide = names.tide()
    for _, name in ipairs(tide and rawequal(module, tide) and rawget(tide, "_lazy") or {}) do
        names.field(tide, name) -- loads it
    end
    for name, value in next, module do
        if type(name) == "string" and string.sub(name, 1, 1) ~= "_" then
            visit(path .. "." .. name, name, value)
            local room = type(value) == "table" and rawget(value, "__index") == nil
            if room and (names.doc(value) or names.meta(value) == nil) then
                walk(path .. "." .. name, value, visit, seen)
            end
        end
    end
end

-- All that there is: of tide, methods of tensors that tide has no function for, pages and magics.
local function everything(visit)
    local tide = names.tide()
    if tide then
        walk("tide", tide, visit, {})
        for name, value in next, names.tide_methods() or {} do
            if rawget(tide, name) == nil and string.sub(name, 1, 1) ~= "_" then
                visit("x:" .. name, name, value)
            end
        end
        for name, text in next, names.part "help.pages" or {} do
            visit("?" .. name, name, nil, text)
        end
    end
    for i, name in ipairs(magics) do
        visit("%" .. name, name, nil, magic_docs[i])
    end
    for _, name in ipairs(import("magics").list()) do
        visit("%" .. name, name, nil, import("magics").doc(name))
    end
end

-- Of one value under several paths the shortest is shown.
local function shortest(rows)
    local best, list = {}, {}
    for _, row in ipairs(rows) do
        local key = row.value == nil and row.path or row.value
        local known = best[key]
        if not known or #row.path < #known.path or #row.path == #known.path and before(row.path, known.path) then
            best[key] = row
        end
    end
    for _, row in next, best do
        list[#list + 1] = row
    end
    return list
end

local function show(rows, width)
    table.sort(rows, function(a, b)
        if a.rank ~= b.rank then
            return a.rank < b.rank
        end
        return before(a.path, b.path)
    end)
    local wide, out = 0, {}
    for i = 1, math.min(#rows, MOST) do
        wide = math.max(wide, #rows[i].path)
    end
    wide = math.min(wide, width // 2)
    for i = 1, math.min(#rows, MOST) do
        local row = rows[i]
        local line = row.path .. string.rep(" ", wide - #row.path) .. "  " .. first_sentence(row.doc)
        out[i] = cut((string.gsub(line, "%s+$", "")), width)
    end
    if #rows > MOST then
        out[#out + 1] = string.format("… %d more", #rows - MOST)
    end
    return #out > 0 and table.concat(out, "\n") or nil
end

local function doc_of(value)
    local doc = names.doc(value)
    return doc and doc.doc or help.dtype(value)
end

-- "*int*" as a pattern of Lua's, letters of either case.
local function pattern_of(glob)
    return "^" .. string.gsub(string.gsub(string.lower(glob), "[%p]", "%%%0"), "%%%*", ".*") .. "$"
end

-- The table of names that stands before the last dot or colon, with its path; nil: it is nothing.
local function owner_of(path)
    local tokens = names.tokens(path)
    local value = names.value_at(tokens, #tokens)
    if value == nil and string.find(path, "^torch") then
        return owner_of((string.gsub(path, "^torch", "tide")))
    elseif value == nil and path == "x" then -- as help writes tensors
        return names.tensor_like
    end
    return value
end

-- by_pattern(text, width): the names that match, below what stands before the last dot; or nil. Names that begin with
-- an underscore are found by patterns that do.
function search.by_pattern(text, width)
    local path, separator, glob = string.match(text, "^(.-)([.:]?)([^.:]*)$")
    local pattern, rows = pattern_of(glob), {}
    local hidden = string.sub(glob, 1, 1) == "_"
    local function visit(full, name, value, doc)
        if string.find(string.lower(name), pattern) then
            rows[#rows + 1] = {path = full, value = value, doc = doc or doc_of(value), rank = select(2, string.gsub(full, "[.:]", ""))}
        end
    end
    if path == "" then
        local seen = {}
        local layers = names.layers(user)
        layers[#layers + 1] = (locals()) -- nil: there are none
        for _, layer in ipairs(layers) do
            for name, value in next, layer do
                if type(name) == "string" and (hidden or string.sub(name, 1, 1) ~= "_") and not seen[name] then
                    seen[name] = true
                    visit(name, name, value)
                end
            end
        end
        everything(visit)
        return show(shortest(rows), width)
    end
    local owner = owner_of(path)
    if owner == nil then
        return nil
    elseif type(owner) == "table" and separator == "." then
        walk(path, owner, visit, {})
    end
    for _, layer in ipairs(rawequal(owner, names.tensor_like) and {names.tide_methods()} or names.layers(owner)) do
        for name, value in next, layer do
            if type(name) == "string" and (hidden or string.sub(name, 1, 1) ~= "_") then
                visit(path .. separator .. name, name, value)
            end
        end
    end
    return show(shortest(rows), width)
end

-- by_words(text, width): what has all the words in its name or its doc, names first; or nil.
function search.by_words(text, width)
    local words, rows = {}, {}
    for word in string.gmatch(string.lower(text), "%S+") do
        words[#words + 1] = word
    end
    if #words == 0 then
        return nil
    end
    everything(function(path, name, value, doc)
        local known = not doc and names.doc(value) -- whose parameters are words of it too
        doc = doc or doc_of(value) or ""
        local lower, rank = string.lower(doc .. (known and " " .. (known.signature or "") or "")), 0
        name = string.lower(name)
        for _, word in ipairs(words) do
            local named = string.find(name, word, 1, true)
            if not named and not string.find(lower, word, 1, true) then
                return
            end
            rank = rank + (name == word and 0 or named and 1 or 2)
        end
        rows[#rows + 1] = {path = path, value = value, doc = doc, rank = rank}
    end)
    return show(shortest(rows), width)
end

return search
