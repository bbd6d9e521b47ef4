-- help/reference.lua: what `tide --reference` prints: a page of HTML about all that is public, from the descriptions that
-- help shows: operators by family, then the rooms of tide with their classes and functions.
local tide = ...
local sections, examples = tide._require "help.sections", tide._require "help.examples"
local escape = tide._require("notebook.html").escape

local HEAD = [[<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Tide: reference</title><style>
body { font: 15px/1.45 sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em; }
pre, code { font: 13px/1.4 monospace; white-space: pre-wrap; } th { padding-right: 1em; font-weight: normal; color: #666; }
h3 { margin: 1.6em 0 0.2em; } nav a { margin-right: 0.6em; display: inline-block; }
</style></head><body>]]

-- Names in order.
local function sorted(t, is_wanted)
    local list = {}
    for name, value in pairs(t) do
        if type(name) == "string" and not string.find(name, "^_") and is_wanted(value) then
            list[#list + 1] = name
        end
    end
    table.sort(list)
    return list
end

local function always() return true end

-- One entry: its heading, which links lead to, and what help says.
local function add_entry(page, name, value, doc)
    local function add(label, text)
        if text and text ~= "" then
            page.body[#page.body + 1] = sections.row(label, text)
        end
    end
    page.links[#page.links + 1] = string.format("<a href=\"#%s\">%s</a>", escape(name), escape(name))
    page.body[#page.body + 1] = string.format("<h3 id=\"%s\">%s</h3><table>", escape(name), escape(name))
    add("Signature", doc.signature)
    add("Doc", doc.doc)
    for _, section in ipairs(sections.of(doc)) do
        add(section[1], section[2])
    end
    add("Example", doc.example or examples.of(value, doc))
    page.body[#page.body + 1] = "</table>"
end

-- A part of the page: a heading, links to its entries, and these.
local function add_part(lines, title, fill)
    local page = { links = {}, body = {} }
    fill(page)
    if #page.links > 0 then
        lines[#lines + 1] = string.format("<h2 id=\"room.%s\">%s</h2><nav>%s</nav>", escape(title), escape(title),
            table.concat(page.links, "\n"))
        lines[#lines + 1] = table.concat(page.body, "\n")
    end
    return #page.links > 0
end

-- Operators by family; those that exist as methods alone are x:name.
local function families()
    local found = {}
    for _, op in ipairs(tide._ops()) do
        if not op.internal then
            found[op.family] = found[op.family] or {}
            found[op.family][(op.method_only or op.inplace_only) and "x:" .. op.name or op.name] = op
        end
    end
    return found
end

-- What is no operator and has a description of its own, of a room and the rooms in it, each once.
local function add_room(lines, titles, path, room, seen)
    if seen[room] then
        return
    end
    seen[room] = true
    local function is_table(value) return type(value) == "table" end
    local is_made = add_part(lines, path, function(page)
        for _, name in ipairs(sorted(room, always)) do
            local value = room[name]
            local is_class = is_table(value) and rawget(value, "__index") ~= nil
            local doc = (is_class or type(value) == "function") and tide._doc(value)
            if doc and not doc.family then
                add_entry(page, path .. "." .. name, value, doc)
            end
        end
    end)
    titles[#titles + 1] = is_made and path or nil
    for _, name in ipairs(sorted(room, is_table)) do
        local inner = room[name]
        if path ~= "tide" and rawget(inner, "__index") == nil and tide._doc(inner) then
            add_room(lines, titles, path .. "." .. name, inner, seen)
        end
    end
end

return function()
    local lines, titles, found, seen = {}, {}, families(), {}
    for _, family in ipairs(sorted(found, always)) do
        titles[#titles + 1] = family
        add_part(lines, family, function(page)
            for _, name in ipairs(sorted(found[family], always)) do
                add_entry(page, name, nil, found[family][name])
            end
        end)
    end
    add_room(lines, titles, "tide", tide, seen)
    for _, name in ipairs(tide._lazy) do
        local room = tide[name]
        if type(room) == "table" and rawget(room, "__index") == nil then
            add_room(lines, titles, "tide." .. name, room, seen)
        end
    end
    for k, title in ipairs(titles) do
        titles[k] = string.format("<a href=\"#room.%s\">%s</a>", escape(title), escape(title))
    end
    return { HEAD, string.format("<h1>Tide %s</h1><p>Operators by family, then rooms. As methods: x:name(...) is "
        .. "tide.name(x, ...).</p><nav>%s</nav>", escape(tostring(tide.version)), table.concat(titles, "\n")),
        string.format("<h2>How to read shapes</h2><pre>%s</pre>", escape(tide._require("help.pages").shapes)),
        table.concat(lines, "\n"), "</body></html>" }
end
