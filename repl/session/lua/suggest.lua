-- suggest: "did you mean 'randn'?" for a name that turned out to be nil.

local names = import "names"

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
            local same = a:byte(i) == b:byte(j)
            local cost = math.min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (same and 0 or 1))
            if i > 1 and j > 1 and a:byte(i) == b:byte(j - 1) and a:byte(i - 1) == b:byte(j) then
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
    return (name:lower():gsub("_", ""))
end

-- The candidate nearest to a name, or nil: one slip away, in a long name two. Case and underscores
-- count for little.
function suggest.nearest(name, layers)
    local limit = #name <= 2 and 0 or #name <= 7 and 1 or 2
    local wanted = plain(name)
    local best, best_distance
    for _, layer in ipairs(layers) do
        for key, value in next, layer do
            if type(key) == "string" and key ~= name and value ~= nil then
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

-- The tables that hold the fields of what stands before `.name` or `:name` on the line.
local function owner_layers(name, chunkname, line, visible)
    local text = source(chunkname)
    if not text then
        return nil
    end
    local n = 0
    for source_line in (text .. "\n"):gmatch("(.-)\n") do
        n = n + 1
        if n == line then
            local tokens = names.tokens(source_line)
            for i = 3, #tokens do
                local separator = tokens[i - 1].text
                if tokens[i].text == name and (separator == "." or separator == ":") then
                    local owner = names.value_at(tokens, i - 2, visible)
                    if owner ~= nil then
                        return names.layers(owner)
                    end
                end
            end
        end
    end
end

-- hint(message, chunk name, line, visible): what to append to an "attempt to … a nil value" error,
-- or nil. `visible` are the locals where it arose.
function suggest.hint(message, chunkname, line, visible)
    local kind, name = message:match("a nil value %(([a-z]+) '([A-Za-z_][A-Za-z0-9_]*)'%)")
    local layers
    if kind == "global" then
        layers = {visible, (locals()), table.unpack(names.layers(user))}
    elseif kind == "field" or kind == "method" then
        layers = owner_layers(name, chunkname, line, visible)
    end
    local found = layers and suggest.nearest(name, layers)
    return found and ": did you mean '" .. found .. "'?" or nil
end

-- undefined(name): the complaint about a name by itself that nothing has, or nil.
function suggest.undefined(name)
    local visible, declared = locals()
    if declared[name] or names.field(user, name) ~= nil then
        return nil
    end
    local found = suggest.nearest(name, {visible, table.unpack(names.layers(user))})
    return "'" .. name .. "' is not defined" .. (found and ": did you mean '" .. found .. "'?" or "")
end

return suggest
