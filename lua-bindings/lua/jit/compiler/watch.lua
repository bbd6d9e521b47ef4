-- jit/compiler/watch.lua: what of modules was read while a function was compiled, and is fixed in its graph: fields by their
-- owners. Calls compare it (lua-bindings/script/script_source.c), so that a module that changed is told.
local tide = ...
local Compiler = tide._require "jit.compiler.core"
local watch = {}

--- watch(owner, key): the compiler reads this field of a table of the script.
function Compiler:watch(owner, key)
    local seen = self.watched[owner]
    if key == nil or seen and seen[key] or not tide.nn.is_module(owner) then
        return
    end
    local value = rawget(owner, key)
    if value == nil and owner[key] ~= nil then -- of its class: a method
        return
    end
    if not seen then
        seen = { list = {} }
        self.watched[owner] = seen
        table.insert(self.watched.owners, owner)
    end
    seen[key] = true
    table.insert(seen.list, key)
    table.insert(seen.list, value or false)
end

local function words(value)
    if value == nil or value == false then
        return tostring(value)
    elseif type(value) == "string" then
        return string.format("%q", value)
    end
    return tostring(value)
end

-- Raises what differs.
local function changed(owner, key, was, is)
    local name = string.format("the field '%s' of %s", tostring(key), getmetatable(owner).__name)
    local plain = type(was) ~= "userdata" and type(was) ~= "table" and type(is) ~= "userdata" and type(is) ~= "table"
    if plain then
        tide._fail("%s was %s when the function was scripted, and is %s: script it again, or set it back", name, words(was), words(is))
    end
    tide._fail("%s is another one than when the function was scripted: script it again", name)
end

--- set(f, watched): let calls of a ScriptFunction compare what a compiler has read.
function watch.set(f, watched)
    local list = { changed = changed }
    for _, owner in ipairs(watched.owners) do
        local fields = watched[owner].list
        list[#list + 1] = owner
        list[#list + 1] = #fields // 2
        for k = 1, #fields, 2 do
            list[#list + 1] = fields[k]
            list[#list + 1] = fields[k + 1]
            list[#list + 1] = false
        end
    end
    if #list > 0 then
        tide._script.watch(f, list)
    end
end

return watch
