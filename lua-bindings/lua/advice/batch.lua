-- advice/batch.lua: the same operators over the rows of a tensor, a row at a time (the pairwise loop): all rows at once
-- are one call of each.
local tide = ...
local program, names = tide._require "advice.program", tide._require "advice.names"

local LEAST_REPS = 16
local products = { mm = 2, mv = 2, matmul = 2, linear = 2, addmm = 3, addmv = 3 }
local sums = { add = "sum", maximum = "amax", minimum = "amin" }

-- Is what this call looks into one row: a dim less, or a slice of one?
local function is_row(view, i)
    local from, to = view:layout(view:input(i, 1)), view:layout(view:result(i))
    if to.numel < 2 or to.numel >= from.numel then
        return false
    elseif #to.shape < #from.shape then
        return true
    end
    for d, size in ipairs(to.shape) do
        if size == 1 and from.shape[d] > 1 then
            return true
        end
    end
    return false
end

local function has_rows(view, loop)
    for position = 1, loop.period do
        local i = view:example(loop, position)
        if view:varies(loop, position) and is_row(view, i) then
            return true
        end
    end
    return false
end

-- Is it a sum that goes on: one operand its own result of before, the other of this repetition?
local function accumulates(kind, slots)
    return sums[kind.base] and #slots == 2 and (slots[1].class == "carry") ~= (slots[2].class == "carry")
end

-- The calls of the body that do something; nil where one depends on another repetition, or is the work of another kind.
local function study(view, loop)
    local calls, rows, cost, kernel, bad = {}, 0, 0, 0, false
    program.each(view, loop, function(position, i, kind, slots)
        local running = accumulates(kind, slots)
        bad = bad or kind.random or #slots == 0 or (products[kind.base] and (slots[1].class == "const"
            or slots[2] and slots[2].class == "const"))
        for _, slot in ipairs(slots) do
            rows = rows + (slot.class == "rows" and 1 or 0)
            bad = bad or not (slot.class == "rows" or slot.class == "const" or slot.class == "body"
                or slot.class == "carry" and running)
        end
        calls[#calls + 1] = { position = position, i = i, kind = kind, slots = slots, running = running }
        kernel = kernel + select(2, view:position_cost(loop, position))
    end)
    return not bad and rows > 0 and #calls > 0 and calls, kernel
end

-- How many rows there are.
local function rows_of(view, loop, calls)
    for _, call in ipairs(calls) do
        for k, slot in ipairs(call.slots) do
            if slot.class == "rows" then
                return math.max(view:list_length(loop, call.position, k), 2)
            end
        end
    end
    return loop.reps // #loop.segments
end

-- ---- all rows at once ----

-- How a call reads with a dim of rows in front of each of its tensors; nil: that is not known.
local function batched(view, call, texts, replay)
    local layout = view:layout(view:input(call.i, 1))
    local arguments, kind = view.arguments[view.args[call.i]], call.kind
    if call.running then
        local other = call.slots[1].class == "carry" and 2 or 1
        return string.format("%s:%s(1)", texts[other], sums[kind.base])
    elseif kind.base == "dot" then
        return string.format("(%s * %s):sum(2)", texts[1], texts[2])
    elseif kind.base == "mm" then
        return string.format("tide.bmm(%s, %s)", texts[1], texts[2])
    elseif kind.pointwise or kind.base == "copy" then
        local ndim
        for _, slot in ipairs(call.slots) do
            local d = #view:layout(slot.example).shape
            if slot.class ~= "const" then
                if ndim and d ~= ndim then
                    return nil
                end
                ndim = d
            end
        end
        return replay.call_text(kind, arguments, texts)
    end
    local dims = {}
    for d = 1, #layout.shape do
        dims[d] = string.format("%d", d + 1)
    end
    local moved = false
    local text = replay.call_text(kind, arguments, texts, function(name, text)
        if name ~= "dim" then
            return text
        end
        moved = true
        if text == "nil" then
            return "{" .. table.concat(dims, ", ") .. "}"
        end
        return (string.gsub(text, "%-?%d+", function(n) return tonumber(n) > 0 and string.format("%d", n + 1) or n end))
    end)
    return moved and text or nil
end

local function build(view, loop, calls, replay)
    local n = program.reps(view, loop, rows_of(view, loop, calls))
    local values, one, all = { n = n }, {}, {}
    for _, call in ipairs(calls) do
        local function name(slot, at, k)
            local text = string.format("a%d_%d", at, k)
            local layout = view:layout(slot.example)
            values[text] = replay.fresh({ shape = layout.shape, numel = layout.numel, dtype = layout.dtype },
                slot.class == "rows" and n or nil)
            return text
        end
        local texts, entries = program.texts(call.slots, call.position, name), {}
        for k, slot in ipairs(call.slots) do
            entries[k] = slot.class == "rows" and texts[k] .. "[k]" or texts[k]
        end
        local single = replay.call_text(call.kind, view.arguments[view.args[call.i]], entries)
        local whole = batched(view, call, texts, replay)
        if not single or not whole then
            return nil
        end
        one[#one + 1] = string.format("local r%d = %s", call.position, single)
        all[#all + 1] = string.format("local r%d = %s", call.position, whole)
    end
    return replay.compile("for k = 1, n do\n" .. table.concat(one, "\n") .. "\nend", values),
        replay.compile(table.concat(all, "\n"), values)
end

-- ---- for people ----

local function sites_of(view, loop)
    local sites = {}
    for position = 1, loop.period do
        sites[position] = view.sites[loop.body[position]]
    end
    return sites
end

-- Does the body take a difference and reduce it to a distance?
local function is_distance(calls)
    local found, squared, root = {}, false, false
    for _, call in ipairs(calls) do
        found[call.kind.base] = true
    end
    if found.norm or found.linalg_vector_norm or found.dist then
        return found.sub or found.dist
    end
    squared = found.pow or found.square or found.mul
    root = found.sqrt
    return found.sub and found.sum and squared, root
end

local function fix_of(view, loop, calls, replay)
    local known = names.rows(sites_of(view, loop))
    local x, y = known[1] or "x", known[2] or known[1] or "y"
    local distance, root = is_distance(calls)
    local consts = 0
    for _, slot in ipairs(calls[1].slots) do
        consts = consts + (slot.class == "const" and 1 or 0)
    end
    if distance and #calls <= 5 then
        if consts > 0 or #known < 3 then
            return string.format("tide.cdist(%s, %s)%s", x, y, distance and not root and calls[#calls].kind.base == "sum" and ":square()" or "")
        end
    end
    local expressions, last, give = {}, nil, names.giver(view, known, { "x", "y", "z" })
    for _, call in ipairs(calls) do
        local texts = {}
        for k, slot in ipairs(call.slots) do
            if slot.class == "rows" then
                local target = k == 1 and call.kind.base == "copy" and names.target(view.sites[loop.body[call.position]])
                texts[k] = target or give(slot.example)
            else
                texts[k] = slot.class == "body" and expressions[slot.from] or "c"
            end
        end
        last = batched(view, call, texts, replay)
        if not last then
            return string.format("the same operators over all rows of %s at once", x)
        end
        expressions[call.position] = last
    end
    return last
end

return function(view, add, replay)
    if view.known then
        tide._require("advice.stack")(view, add, replay)
    end
    for _, loop in ipairs(view.known and view:loops() or {}) do
        local big = loop.reps >= LEAST_REPS and loop.reps >= 4 * #loop.segments and loop.cost > 0.05 * view.wall
        local calls, kernel
        if big and not loop.elements and has_rows(view, loop) then
            calls, kernel = study(view, loop)
        end
        if calls and kernel < 0.6 * loop.cost then
            local gain = replay.gain(function() return build(view, loop, calls, replay) end)
            local base = view:layout(view:input(calls[1].i, 1))
            local parts = {}
            for k, call in ipairs(calls) do
                parts[k] = call.kind.base
            end
            add { kind = "batch", site = view.sites[loop.body[calls[1].position]], count = loop.reps, cost = loop.cost,
                text = string.format("%s × (%s) of one row, %s %s, %.0f %% of it dispatch", view.count_text(loop.reps),
                    table.concat(parts, ", "), view.shape_text(base), base.dtype, 100 * (1 - kernel / loop.cost)),
                fix = fix_of(view, loop, calls, replay),
                gain = gain or math.min(loop.cost / (kernel + loop.cost / rows_of(view, loop, calls)), 50),
                measured = gain ~= nil }
        end
    end
end
