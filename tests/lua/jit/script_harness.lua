-- script_harness.lua: a function run by Lua itself and as a graph, on the same inputs.
local t = require "harness"
local h = {}

-- A value for comparison: numbers with their kind, tensors with dtype, shape and elements.
local function plain(v)
    if tide.is_tensor(v) then
        return { "tensor", tostring(v.dtype), tostring(v.shape), v:detach():tolist() }
    elseif type(v) == "number" then
        return { math.type(v), v ~= v and "nan" or v }
    elseif type(v) == "table" then
        local copy = {}
        for key, value in pairs(v) do
            copy[key] = plain(value)
        end
        return copy
    end
    return v
end

local function copies(inputs)
    local list = {}
    for k = 1, inputs.n or #inputs do
        list[k] = tide.is_tensor(inputs[k]) and inputs[k]:clone() or inputs[k]
    end
    return list
end

local function results_of(fn, inputs)
    local results = table.pack(pcall(fn, table.unpack(copies(inputs), 1, inputs.n or #inputs)))
    for k = 2, results.n do
        results[k] = plain(results[k])
    end
    return results
end

--- same(fn, inputs...): the script of fn gives what fn gives, for each list of inputs; where fn raises an error, so does
--- the script.
function h.same(fn, ...)
    local scripted = tide.jit.script(fn)
    for k, inputs in ipairs { ... } do
        local want, got = results_of(fn, inputs), results_of(scripted, inputs)
        t.eq(got[1], want[1], string.format("inputs %d: %s", k, tostring(got[1] and want[2] or got[2])))
        if want[1] then
            want.n, got.n = nil, nil
            t.eq(got, want, string.format("inputs %d", k))
        end
    end
    return scripted
end

--- refused(fn, message): the script of fn is refused with this in the message, which names the place and shows the line.
function h.refused(fn, message)
    local text = t.error_has(function() tide.jit.script(fn) end, message)
    t.is_true(string.find(text, ":%d+:%d+: "), "a place in " .. text)
    t.is_true(string.find(text, "\n%s+%^"), "a caret in " .. text)
end

return h
