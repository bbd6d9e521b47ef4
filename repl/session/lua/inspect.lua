-- inspect: what is known about the name at the cursor: signature, doc, type, value, place, source.
--
-- No user code runs (values with metamethods of their own are named, not printed).

local names = import "names"
local display = import "display"
local help = import "help"
local search = import "search"

local inspect = {}

local CUT = 2000 -- bytes of a value's text

-- Index of the name token that the cursor (bytes before it) is in or just behind.
local function name_at(tokens, cursor)
    for i, token in ipairs(tokens) do
        if token.first - 1 <= cursor and cursor <= token.last and token.kind == "name" then
            return i
        end
    end
end

-- Index of the name that is called by the innermost parenthesis open at the cursor.
local function callee_at(tokens, cursor)
    local depth = 0
    for i = #tokens, 2, -1 do
        local token = tokens[i]
        if token.last <= cursor and token.kind == "op" then
            if token.text == ")" then
                depth = depth + 1
            elseif token.text == "(" and depth > 0 then
                depth = depth - 1
            elseif token.text == "(" and tokens[i - 1].kind == "name" then
                return i - 1
            end
        end
    end
end

local function lines_of(text)
    local lines = {}
    for line in string.gmatch(text .. "\n", "(.-)\r?\n") do
        lines[#lines + 1] = line
    end
    return lines
end

-- The comment lines just above line n, without their dashes; nil when there are none.
local function comment_above(lines, n)
    local first = n
    while first > 1 and string.find(lines[first - 1], "^%s*%-%-") do
        first = first - 1
    end
    local doc = {}
    for i = first, n - 1 do
        doc[#doc + 1] = string.gsub(lines[i], "^%s*%-%-+ ?", "")
    end
    return #doc > 0 and table.concat(doc, "\n") or nil
end

-- Place, doc comment and source of a Lua function, as far as they are known.
local function origin(f)
    local info = debug.getinfo(f, "S")
    if info.what == "C" then
        return nil
    end
    local place = info.short_src .. ":" .. info.linedefined .. "-" .. info.lastlinedefined
    local text = source(info.source)
    if not text or info.linedefined < 1 then
        return place
    end
    local lines = lines_of(text)
    if #lines < info.lastlinedefined then
        return place -- the file has changed
    end
    return place, comment_above(lines, info.linedefined),
        table.concat(lines, "\n", info.linedefined, info.lastlinedefined)
end

local function indented(text)
    return "  " .. string.gsub(text, "\n", "\n  ")
end

local function add(out, label, text)
    if text and text ~= "" then
        if string.find(text, "\n", 1, true) then
            out[#out + 1] = label .. ":\n" .. indented(text)
        else
            out[#out + 1] = string.format("%-10s %s", label .. ":", text)
        end
    end
end

local function type_text(value)
    local mt = names.meta(value)
    local name = mt and rawget(mt, "__name")
    if math.type(value) then
        return "number (" .. math.type(value) .. ")"
    end
    return type(name) == "string" and type(value) .. " (" .. name .. ")" or type(value)
end

-- Methods of an object that has nothing else to show, with the first line of what each does.
local function methods_of(value)
    local mt = names.meta(value)
    local index = mt and rawget(mt, "__index")
    local lines = {}
    for name, method in next, type(index) == "table" and index or {} do
        local doc = type(name) == "string" and string.sub(name, 1, 1) ~= "_" and names.doc(method)
        if doc then
            lines[#lines + 1] = string.format("%-28s %s", ":" .. name, string.match(doc.doc or "", "^[^\n.:;]*"))
        end
    end
    table.sort(lines, before)
    return #lines > 0 and table.concat(lines, "\n") or nil
end

local function value_text(value)
    if names.is_tensor(value) then
        return plain(value)
    end
    local ok, text = pcall(display.describe, value, 76, true)
    if not ok then
        return nil
    end
    return #text > CUT and string.sub(text, 1, (utf8.offset(text, 0, CUT) or CUT) - 1) .. "…" or text
end

-- The Lua function behind one that tide declared by a schema.
local function lua_function(f)
    for i = 1, 8 do
        local _, upvalue = debug.getupvalue(f, i)
        if type(upvalue) == "function" and debug.getinfo(f, "S").what == "C"
            and debug.getinfo(upvalue, "S").what ~= "C" then
            return upvalue
        end
    end
    return f
end

-- The sources of a class's own functions, in their order.
local function class_source(class)
    local parts, seen = {}, {}
    for name, member in next, class do
        local f = type(member) == "function" and type(name) == "string" and lua_function(member)
        local info = f and debug.getinfo(f, "S")
        if info and info.what ~= "C" and string.sub(name, 1, 2) ~= "__" and not seen[f] then
            seen[f] = true
            local _, _, text = origin(f)
            if text then
                parts[#parts + 1] = {line = info.linedefined, text = text, from = info.source}
            end
        end
    end
    table.sort(parts, function(a, b)
        if a.from ~= b.from then
            return before(a.from, b.from)
        end
        return a.line < b.line
    end)
    local texts = {}
    for i, part in ipairs(parts) do
        texts[i] = part.text
    end
    return table.concat(texts, "\n")
end

-- Shapes, dtypes and notes, as far as a description has them.
local function add_sections(out, doc)
    local sections = doc and names.part "help.sections"
    for _, section in ipairs(sections and sections.of(doc) or {}) do
        add(out, section[1], section[2])
    end
end

-- An object of one of tide's classes: what it prints, and its class.
local function object_text(value, class, detail)
    local out, doc, init = {}, names.doc(class), rawget(class, "init")
    local own = tostring(rawget(class, "__name") or "a class")
        .. (type(init) == "function" and string.gsub(names.parameters(init), "^%(self,? ?", "(") or "")
    add(out, "Object of", doc and doc.signature or own)
    add(out, "Doc", doc and doc.doc)
    add_sections(out, doc)
    add(out, "Value", plain(value))
    if detail > 0 then
        add(out, "Source", class_source(class))
    end
    return table.concat(out, "\n")
end

-- How a function or class of tide's is used, or nil.
local function example_of(value, doc)
    local examples = names.part "help.examples"
    local ok, found = pcall(function() return examples.of(value, doc) end)
    return ok and found or nil
end

-- What is more than a name with a signature, or nil.
local function special_text(value, detail)
    local tide, class = names.tide(), help.class_of(value)
    if tide and rawequal(value, tide) then
        return help.tide(tide, 78)
    elseif help.is_module(value) then
        local out, doc = {}, names.doc(value)
        if doc then
            add(out, "Module", doc.signature)
            add(out, "Doc", doc.doc)
        end
        out[#out + 1] = help.members(value, 78)
        return table.concat(out, "\n")
    elseif class then
        return object_text(value, class, detail)
    end
    return help.dtype(value)
end

local function describe(name, value, detail)
    local special = special_text(value, detail)
    if special then
        return special
    end
    local out = {}
    local doc = names.doc(value)
    if doc then
        add(out, "Signature", doc.signature)
        add(out, "Doc", doc.doc)
        add_sections(out, doc)
        add(out, "Example", doc.example or example_of(value, doc))
    end
    if type(value) == "function" then
        local place, comment, text = origin(lua_function(value))
        if not (doc and doc.signature) then
            add(out, "Signature", place and name .. names.parameters(value)
                or (names.global_name(value) or name) .. "(...)")
        end
        if not (doc and doc.doc) then
            add(out, "Doc", comment)
        end
        add(out, "Type", place and "function" or "function (built in)")
        add(out, "Defined", place)
        if detail > 0 then
            add(out, "Source", text or (doc and doc.source))
        end
    else
        add(out, "Type", type_text(value))
        if doc and type(value) == "table" then -- a class: what it is, not what it holds
            if detail > 0 then
                add(out, "Source", class_source(value))
            end
            return table.concat(out, "\n")
        end
        local methods = type(value) == "userdata" and not names.is_tensor(value) and methods_of(value)
        if methods then
            add(out, "Methods", methods)
            return table.concat(out, "\n")
        end
        add(out, "Value", value_text(value))
        if type(value) == "table" or type(value) == "string" then
            add(out, "Length", string.format("%d", rawlen(value)))
        end
    end
    return table.concat(out, "\n")
end

local function magic_text(code)
    local name = string.match(code, "^%s*%%+([A-Za-z0-9_]+)")
    for i, known in ipairs(magics) do
        if known == name then
            return magic_docs[i]
        end
    end
    return import("magics").doc(name or "")
end

-- Other words for pages.
local PAGES = {shape = "shapes", slicing = "indexing", slice = "indexing", slices = "indexing", ranges = "indexing", masks = "indexing", broadcast = "broadcasting",
    memory_format = "channels_last", contiguous_format = "channels_last", batches = "loops", training = "loops",
    dtypes = "dtype", keepdim = "options", pyplot = "matplotlib", plotting = "matplotlib", torch = "pytorch"}

-- Rooms in which a name by itself is looked for.
local ROOMS = {"tide.", "tide.nn.", "tide.nn.functional.", "tide.optim.", "tide.optim.lr_scheduler.", "tide.utils.", "tide.linalg.", "tide.data.", "tide.distributions.",
    "tide.nn.utils.", "tide.nn.init.", "tide.profiler.", "tide.benchmark.", "tide.autograd.", "tide.plot.", "tide.special.", "tide.io."}

-- The full name of what tide has under a name that stands for nothing here, as nn.Linear, F.relu or checkpoint; or nil.
local function full_name(name)
    local tide = names.tide()
    local head = string.match(name, "^[%a_][%w_]*")
    local _, declared = locals()
    if not tide or not head or head == "tide" or declared[head] or names.field(user, head) ~= nil then
        return nil
    end
    name = string.gsub(string.gsub(name, "^F%.", "nn.functional."), "^plt%.", "plot.")
    local field = string.match(name, "^Tensor[.:]([%w_]+)$") or string.match(name, "^x[.:]([%w_]+)$")
    if field then
        return rawget(names.tide_methods(), field) ~= nil and "tide._methods." .. field or nil
    end
    for _, room in ipairs(string.find(name, "[.:]") and {"tide."} or ROOMS) do
        local tokens = names.tokens(room .. name)
        local ok, value = pcall(names.value_at, tokens, #tokens)
        if ok and value ~= nil then
            return room .. name
        end
    end
    return names.tide_methods()[name] ~= nil and "tide._methods." .. name or nil
end

-- The page of help under a name, or about a value that is none of its own (tide.newaxis, the class of modules, print); or nil.
local function page_of(name, value)
    local tide = names.tide()
    local pages = names.part "help.pages"
    if type(pages) ~= "table" then
        return nil
    elseif value == nil then
        return pages[name] or pages[PAGES[name]]
    end
    local nn = rawget(tide, "nn")
    return rawequal(value, tide.newaxis) and pages.newaxis
        or name == "print" and type(value) == "function" and pages.print
        or type(value) == "string" and string.find(name, "^tide%.") and (pages[value] or pages[PAGES[value]])
        or type(nn) == "table" and rawequal(value, nn.Module) and pages["nn.Module"] or nil
end

-- Is it names by a pattern, or things by words, that are asked for; and what is found, or nil.
local function search_for(code)
    local words = string.match(code, "^%s*/%s*(.-)%s*$")
    if words then
        return true, search.by_words(words, 78)
    elseif string.find(code, "*", 1, true) and string.find(code, "^%s*[%w_.:*]+%s*$") then
        return true, search.by_pattern(string.match(code, "%S+"), 78)
    end
end

-- inspect(code, cursor, detail): text, or nil when nothing is known.
function inspect.inspect(code, cursor, detail)
    local searched, found = search_for(code)
    if searched then
        return found
    end
    local line_head = names.last_line(string.sub(code, 1, cursor))
    if string.find(line_head, "^%s*%%+[A-Za-z0-9_]*$") then
        local line_first = cursor - #line_head + 1
        return magic_text(string.sub(code, line_first))
    end
    local tokens = names.tokens(code)
    local at = name_at(tokens, cursor) or callee_at(tokens, cursor)
    if not at then
        return nil
    end
    local value = names.value_at(tokens, at)
    local name = tokens[at].text
    local first = at
    while first > 2 and string.find(tokens[first - 1].text, "^[.:]$") and tokens[first - 2].kind == "name" do
        first = first - 2
        name = tokens[first].text .. tokens[first + 1].text .. name
    end
    if value == nil and string.find(name, "^torch%.") and names.field(user, "torch") == nil then -- as PyTorch's users write it
        return inspect.inspect((string.gsub(name, "^torch", "tide")), #name - 1, detail)
    end
    local page = page_of(name, value)
    if page then
        return page
    elseif value == nil then
        local full = full_name(name)
        local magic = first == at and not full and magic_text("%" .. name)
        if full or magic then
            local shown = string.gsub(full or "", "^tide%._methods%.", "x:")
            return magic or "Name:      " .. shown .. "\n" .. inspect.inspect(full, #full, detail)
        end
    end
    if value == nil and string.find(name, "^advice%.") and names.tide() then -- its pages, without the room in front
        value = rawget(names.tide().advice, tokens[at].text)
    end
    if value == nil then
        local doc = first == at and names.doc(name)
        if not doc then
            return nil
        end
        local out = {}
        add(out, "Signature", doc.signature)
        add(out, "Doc", doc.doc)
        return table.concat(out, "\n")
    end
    return describe(name, value, detail)
end

-- html(text): what inspect gives as HTML, for notebooks; nil where it is no list of labelled parts.
function inspect.html(text)
    local sections = names.part "help.sections"
    return sections and sections.html(text) or nil
end

-- Signature and doc of a function or class, each nil where it is not known.
local function brief(name, value)
    local doc = names.doc(value) or {}
    if type(value) ~= "function" then
        return doc.signature, doc.doc
    end
    local place, comment = origin(value)
    return doc.signature or (place and name .. names.parameters(value)), doc.doc or comment
end

-- note(code, cursor): a line about the name that ends at the cursor: the first sentence of its doc, or its
-- signature, or its value; or nil.
function inspect.note(code, cursor)
    local tokens = names.tokens(string.sub(code, 1, cursor))
    local last = tokens[#tokens]
    if not last then
        return magic_text(code)
    end
    if last.kind ~= "name" or tokens[#tokens - 1] and tokens[#tokens - 1].text == "%" then
        return magic_text(names.last_line(string.sub(code, 1, cursor)))
    end
    local value = names.value_at(tokens, #tokens)
    if value == nil then
        local doc = #tokens == 1 and names.doc(last.text)
        return doc and doc.doc or nil
    end
    local signature, doc = brief(last.text, value)
    doc = doc and string.match(doc, "^[^\n]*")
    return doc and (string.match(doc, "^(.-%.)%s") or doc) or signature
        or type(value) ~= "function" and value_text(value) or nil
end

-- Which argument of a call the last token is in, counted from 1, and the option whose name stands there; the call's
-- parenthesis is token `first`.
local function argument_at(tokens, first)
    local depth, at, option = 0, 1, nil
    for i = first + 1, #tokens do
        local text = tokens[i].kind == "op" and tokens[i].text or ""
        if string.find(text, "^[({[]$") then
            depth = depth + 1
        elseif string.find(text, "^[)}%]]$") then
            depth = depth - 1
            option = depth > 0 and option or nil
        elseif text == "," and depth == 0 then
            at = at + 1
        end
        if depth == 1 and (text == "{" or text == ",") then
            local key, sign = tokens[i + 1], tokens[i + 2]
            option = key and key.kind == "name" and (not sign or sign.text == "=") and key.text or nil
        end
    end
    return at, depth == 1 and option or nil
end

-- First and last bytes of the parameters in a signature, with the table of options as one.
local function parameters_of(signature)
    local list, depth, quoted, first = {}, 0, false, nil
    for i = 1, #signature do
        local c = string.sub(signature, i, i)
        quoted = quoted ~= (c == '"')
        if not quoted and string.find(c, "[({[]") then
            depth = depth + 1
            first = first or (depth == 1 and i + 1)
        elseif not quoted and string.find(c, "[)}%]]") then
            depth = depth - 1
        end
        if first and (depth == 0 or depth == 1 and c == "," and not quoted) then
            list[#list + 1] = {first, i - 1}
            first = string.find(signature, "[^ ]", i + 1)
            if depth == 0 then
                return list
            end
        end
    end
    return list
end

-- The signature with marks (STX, ETX) around the parameter that is being written.
local function marked(signature, at, option)
    local list = parameters_of(signature)
    local last = list[#list]
    local place = list[at] or (last and string.find(string.sub(signature, last[1], last[2]), "...", 1, true) and last)
    if place and option then
        local first, stop = string.find(signature, "%f[%w_]" .. option .. "%f[=,}]", place[1])
        place = first and {first, stop}
    end
    if not place or place[2] < place[1] then
        return signature
    end
    return string.sub(signature, 1, place[1] - 1) .. "\2" .. string.sub(signature, place[1], place[2]) .. "\3" .. string.sub(signature, place[2] + 1)
end

-- signature(code, cursor): that of the innermost call which is open at the cursor, with marks around the parameter that
-- is being written, or nil.
function inspect.signature(code, cursor)
    local tokens = names.tokens(string.sub(code, 1, cursor))
    local at = callee_at(tokens, cursor)
    local value = at and names.value_at(tokens, at)
    local signature = value ~= nil and (brief(tokens[at].text, value)) or nil
    if not signature then
        return nil
    end
    local argument, option = argument_at(tokens, at + 1)
    local method = at > 1 and tokens[at - 1].text == ":"
    return marked(signature, method and argument + 1 or argument, option)
end

return inspect
