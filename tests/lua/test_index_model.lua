-- test_index_model.lua: indices drawn at random, reading and writing, against a model in plain Lua that
-- works element by element.
local t = require "harness"

local ROUNDS = 2000

-- ---- the model ----
--
-- An array is { shape = {...}, at = function(place) -> number of the element }. The parts of an index are
-- descriptions: {kind = "number", i}, {kind = "range", first, last, step}, {kind = "new"}, {kind = "dots"},
-- {kind = "index", shape, values}, {kind = "mask", shape, values}.

local function count(shape)
    local n = 1
    for _, size in ipairs(shape) do
        n = n * size
    end
    return n
end

-- Calls visit(place) for every place of a shape, in row-major order; places count from 1.
local function each_place(shape, visit)
    local place = {}
    local function walk(d)
        if d > #shape then
            visit(place)
            return
        end
        for i = 1, shape[d] do
            place[d] = i
            walk(d + 1)
        end
    end
    walk(1)
end

local function flat(shape, place)
    local k = 0
    for d, size in ipairs(shape) do
        k = k * size + place[d] - 1
    end
    return k + 1
end

-- Indices of a range into a dim of a size, as a list.
local function range_list(part, size)
    local function wrap(i) return i > 0 and i or i + size + 1 end
    local first, last = wrap(part.first or 1), wrap(part.last or size)
    local list = {}
    for i = math.max(first, 1), math.min(last, size), part.step or 1 do
        list[#list + 1] = i
    end
    return list
end

-- Index tensors that the parts come down to: { shape, values } per dim they take; a mask takes several.
local function index_arrays(part, shape, d)
    if part.kind == "index" then
        local values = {}
        for k, i in ipairs(part.values) do
            values[k] = i > 0 and i or i + shape[d] + 1
        end
        return { { shape = part.shape, values = values } }
    end
    local arrays = {}
    for k = 1, #part.shape do
        arrays[k] = { shape = {}, values = {} }
    end
    each_place(part.shape, function(place)
        if part.values[flat(part.shape, place)] then
            for k = 1, #part.shape do
                table.insert(arrays[k].values, place[k])
            end
        end
    end)
    for _, a in ipairs(arrays) do
        a.shape = { #a.values }
    end
    return arrays
end

-- Common shape of index arrays, aligned at their last dims.
local function broadcast(arrays)
    local shape = {}
    local ndim = 0
    for _, a in ipairs(arrays) do
        ndim = math.max(ndim, #a.shape)
    end
    for d = 1, ndim do
        shape[d] = 1
        for _, a in ipairs(arrays) do
            local size = a.shape[#a.shape - ndim + d]
            if size and size ~= 1 then
                shape[d] = size
            end
        end
    end
    return shape
end

local function broadcast_value(a, place)
    local own, skip = {}, #place - #a.shape
    for d, size in ipairs(a.shape) do
        own[d] = size == 1 and 1 or place[skip + d]
    end
    return a.values[flat(a.shape, own)]
end

-- What an index selects of a shape: the result's shape, and for each of its places the place selected.
local function select_places(shape, parts)
    local taken = 0
    for _, part in ipairs(parts) do
        taken = taken + (part.kind == "mask" and #part.shape or (part.kind == "new" or part.kind == "dots") and 0 or 1)
    end
    local axes, arrays, d = {}, {}, 1 -- axes of the views: {list, dim}; index arrays with their dim
    local function axis(list, dim) axes[#axes + 1] = { list = list, dim = dim } end
    local function whole(dim) axis(range_list({}, shape[dim]), dim) end
    local fixed = {}
    for _, part in ipairs(parts) do
        if part.kind == "number" then
            fixed[d] = part.i > 0 and part.i or part.i + shape[d] + 1
            d = d + 1
        elseif part.kind == "range" then
            axis(range_list(part, shape[d]), d)
            d = d + 1
        elseif part.kind == "new" then
            axis({ 1 })
        elseif part.kind == "dots" then
            for _ = 1, #shape - taken do
                whole(d)
                d = d + 1
            end
        else
            for _, a in ipairs(index_arrays(part, shape, d)) do
                a.dim = d
                axis(nil, d)
                axes[#axes].array = a
                arrays[#arrays + 1] = a
                d = d + 1
            end
        end
    end
    while d <= #shape do
        whole(d)
        d = d + 1
    end
    -- Indexed axes that follow one another are replaced where they are, others come first.
    local common, first, last = broadcast(arrays), nil, nil
    for k, a in ipairs(axes) do
        if a.array then
            first, last = first or k, k
        end
    end
    local adjacent = first and last - first + 1 == #arrays
    local order = {}
    local function put_common()
        for k, size in ipairs(common) do
            order[#order + 1] = { size = size, common = k }
        end
    end
    if first and not adjacent then
        put_common()
    end
    for k, a in ipairs(axes) do
        if k == first and adjacent then
            put_common()
        end
        if not a.array then
            order[#order + 1] = { size = #a.list, axis = a }
        end
    end
    local result, places = {}, {}
    for k, o in ipairs(order) do
        result[k] = o.size
    end
    each_place(result, function(place)
        local at, inner = { table.unpack(fixed, 1, #shape) }, {}
        for k, o in ipairs(order) do
            if o.common then
                inner[o.common] = place[k]
            elseif o.axis.dim then
                at[o.axis.dim] = o.axis.list[place[k]]
            end
        end
        for _, a in ipairs(arrays) do
            at[a.dim] = broadcast_value(a, inner)
        end
        places[#places + 1] = flat(shape, at)
    end)
    return result, places
end

-- ---- drawing an index ----

local random = math.random

local function nested(shape, values)
    return tide.tensor(values):reshape(shape)
end

local function draw_position(size)
    return random(2) == 1 and random(size) or -random(size)
end

local function draw_range(size)
    local part = { kind = "range" }
    local form = random(5)
    if form > 1 then
        part.first = draw_position(size)
        part.last = form > 2 and draw_position(size) or part.first
        part.step = form == 5 and random(3) or nil
    end
    return part
end

local function draw_mask(shape, d, n)
    local part = { kind = "mask", shape = { table.unpack(shape, d, d + n - 1) }, values = {} }
    for k = 1, count(part.shape) do
        part.values[k] = random(2) == 1
    end
    return part
end

-- Index arrays of one call broadcast together: their shapes come from one list.
local array_shapes = { { 3 }, { 1 }, { 2, 3 }, { 2, 1 } }

local function draw_index(shape, d)
    local part = { kind = "index", shape = array_shapes[random(#array_shapes)], values = {} }
    for k = 1, count(part.shape) do
        part.values[k] = draw_position(shape[d])
    end
    return part
end

local function draw_parts(shape)
    local parts, d, dots, mask, index = {}, 1, false, false, false
    local with_tensors = random(3) == 1
    while #parts < 6 and random(6) > 1 do
        local form = random(with_tensors and 8 or 6)
        if form <= 2 and d <= #shape then
            parts[#parts + 1] = { kind = "number", i = draw_position(shape[d]) }
            d = d + 1
        elseif form <= 4 and d <= #shape then
            parts[#parts + 1] = draw_range(shape[d])
            d = d + 1
        elseif form == 5 then
            parts[#parts + 1] = { kind = "new" }
        elseif form == 6 and not dots then
            parts[#parts + 1] = { kind = "dots" }
            dots = true
            d = d + random(0, #shape - d + 1) -- those that it stands for
        elseif form == 7 and d <= #shape and not mask then
            parts[#parts + 1] = draw_index(shape, d)
            d, index = d + 1, true
        elseif form == 8 and d <= #shape and not mask and not index then
            local n = random(1, #shape - d + 1)
            parts[#parts + 1] = draw_mask(shape, d, n)
            d, mask = d + n, true
        end
    end
    -- Dots stand for the dims that nobody names: those behind the last part are named.
    for _ = d, dots and #shape or 0 do
        parts[#parts + 1] = { kind = "range" }
    end
    return parts
end

local function part_text(part)
    if part.kind == "number" then
        return tostring(part.i)
    elseif part.kind == "new" then
        return "nil"
    elseif part.kind == "dots" then
        return "..."
    elseif part.kind == "range" then
        return ("%s:%s%s"):format(part.first or "", part.last or "", part.step and ":" .. part.step or "")
    end
end

local function part_value(part)
    if part.kind == "number" then
        return part.i
    elseif part.kind == "new" then
        return random(2) == 1 and tide.newaxis or "nil"
    elseif part.kind == "dots" then
        return "..."
    elseif part.kind == "range" then
        return random(4) == 1 and part_text(part) or { part.first, part.last, part.step }
    end
    return nested(part.shape, part.values)
end

-- A key for the parts: a list, or one string where all parts can be written in one.
local function key_of(parts)
    local texts, values = {}, {}
    for k, part in ipairs(parts) do
        texts[#texts + 1] = part_text(part)
        values[k] = part_value(part)
    end
    if #parts > 0 and #texts == #parts and random(3) == 1 then
        return table.concat(texts, ", "), table.concat(texts, ", ")
    elseif #parts == 1 and random(2) == 1 and parts[1].kind ~= "range" then
        return values[1], tostring(values[1])
    end
    local shown = {}
    for k, part in ipairs(parts) do
        shown[k] = part_text(part) or part.kind .. " (" .. table.concat(part.shape, ", ") .. ")"
    end
    return values, "{" .. table.concat(shown, " | ") .. "}"
end

-- ---- the property ----

local shapes = { { 4 }, { 3, 4 }, { 2, 3, 4 }, { 2, 1, 3 }, { 2, 3, 2, 2 } }

local function elements(x)
    local list = x:reshape(-1):tolist()
    return type(list) == "table" and list or { list }
end

local function draw()
    local shape = shapes[random(#shapes)]
    local parts = draw_parts(shape)
    local key, text = key_of(parts)
    local wanted, places = select_places(shape, parts)
    return shape, key, ("shape (%s), index %s"):format(table.concat(shape, ", "), text), wanted, places
end

t.test("reading_agrees_with_the_model", function()
    math.randomseed(2024)
    for _ = 1, ROUNDS do
        local shape, key, what, wanted, places = draw()
        local x = (tide.arange(count(shape)) + 1):view(shape)
        local ok, y = pcall(function() return x[key] end)
        t.is_true(ok, what .. ": " .. tostring(y))
        t.is_true(tide.is_tensor(y), what .. ": a " .. type(y))
        t.eq({ table.unpack(y.shape) }, wanted, what)
        t.eq(elements(y), places, what)
    end
end)

t.test("writing_agrees_with_the_model", function()
    math.randomseed(7)
    for _ = 1, ROUNDS do
        local shape, key, what, wanted, places = draw()
        local x, model = tide.zeros(shape, { dtype = tide.int64 }), {}
        for k = 1, count(shape) do
            model[k] = 0
        end
        local seen, twice = {}, false
        for _, place in ipairs(places) do
            twice = twice or seen[place]
            seen[place] = true
        end
        local one = twice or random(2) == 1 -- which of two writes to one place is last is nobody's business
        local value = one and 5 or (tide.arange(#places) + 1):view(wanted)
        local ok, message = pcall(function() x[key] = value end)
        t.is_true(ok, what .. ": " .. tostring(message))
        for k, place in ipairs(places) do
            model[place] = one and 5 or k
        end
        t.eq(elements(x), model, what)
    end
end)

t.test("what_is_neither_element_nor_option_is_refused", function()
    local x = tide.zeros(2, 3)
    t.error_has(function() return x[{ 1, dim = 2 }] end, "no options")
    t.error_has(function() return x[{ { 1, 2, step = 2 } }] end, "no options")
    t.error_has(function() return x[{ 1, [4] = 1 }] end, "hole")
    t.error_has(function() return x[{ [1.5] = 1 }] end, "key number 1.5")
    t.error_has(function() x[{ 1, dim = 2 }] = 1 end, "no options")
end)
