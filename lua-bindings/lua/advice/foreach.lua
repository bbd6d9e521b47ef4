-- advice/foreach.lua: one operator over a list of tensors, a call each: tide.foreach does it in one.
local tide = ...
local program, names = tide._require "advice.program", tide._require "advice.names"

local LEAST_REPS = 16
local MOST_KERNEL = 0.9 -- of the time: dispatch that is less is worth nothing

-- The positions whose calls work on an entry of a list each, and what it is that they cost; nil: the loop is no such.
local function pick(view, loop)
    local leaves, picked, cost, kernel, entries = view:leaves(), {}, 0, 0, 0
    program.each(view, loop, function(position, i, kind, slots)
        local good, lists = kind.pointwise and not kind.random and #slots > 0, 0
        for k, slot in ipairs(slots) do
            local listed = slot.class == "list"
            lists = lists + (listed and 1 or 0)
            good = good and (listed or slot.class == "const" or slot.class == "body" and picked[slot.from] ~= nil)
            good = good and not (kind.inplace and k == 1 and leaves[view.obj[view:input(i, 1)]])
        end
        if good and (lists > 0 or slots[1].class == "body") then
            picked[position] = { i = i, kind = kind, slots = slots }
            local c, k = view:position_cost(loop, position)
            cost, kernel, entries = cost + c, kernel + k, entries + lists
        end
    end)
    if entries == 0 or cost < 0.6 * loop.cost or kernel > MOST_KERNEL * cost then
        return nil
    end
    return picked, cost, kernel
end

local function each_picked(loop, picked)
    local position = 0
    return function()
        repeat
            position = position + 1
        until position > loop.period or picked[position]
        return picked[position] and position, picked[position]
    end
end

-- How long the lists are.
local function length_of(view, loop, picked)
    for position, call in each_picked(loop, picked) do
        for k, slot in ipairs(call.slots) do
            if slot.class == "list" then
                return view:list_length(loop, position, k)
            end
        end
    end
    return loop.reps // #loop.segments
end

-- A loop's text and that over lists, and what they work on.
local function build(view, loop, picked, replay)
    local n = program.reps(view, loop, length_of(view, loop, picked))
    local values, one, all = { n = n }, {}, {}
    for position, call in each_picked(loop, picked) do
        local function name(slot, at, k)
            local text = string.format("a%d_%d", at, k)
            local layout = view:layout(slot.example)
            values[text] = slot.class == "list" and replay.fresh_list(layout, n) or replay.fresh(layout)
            return text
        end
        local texts = program.texts(call.slots, position, name)
        local entries = {}
        for k, slot in ipairs(call.slots) do
            entries[k] = slot.class == "list" and texts[k] .. "[k]" or texts[k]
        end
        local arguments = view.arguments[view.args[call.i]]
        local single = replay.call_text(call.kind, arguments, entries)
        local listed = replay.call_text(call.kind, arguments, texts, nil, "foreach")
        if not single or not listed then
            return nil
        end
        one[#one + 1] = string.format("local r%d = %s", position, single)
        all[#all + 1] = string.format("local r%d = %s", position, listed)
    end
    return replay.compile("for k = 1, n do\n" .. table.concat(one, "\n") .. "\nend", values),
        replay.compile(table.concat(all, "\n"), values)
end

local DEFAULT = { "tensors", "others", "more" }

local function fix_of(view, loop, picked, replay)
    local parts, expressions, givers = {}, {}, {}
    for position, call in each_picked(loop, picked) do
        local site, texts = view.sites[loop.body[position]], {}
        givers[site.line or ""] = givers[site.line or ""] or names.giver(view, names.lists(site), DEFAULT)
        for k, slot in ipairs(call.slots) do
            if slot.class == "list" then
                texts[k] = givers[site.line or ""](slot.example)
            else
                texts[k] = slot.class == "body" and expressions[slot.from] or "x"
            end
        end
        local arguments = view.arguments[view.args[call.i]]
        local text = replay.call_text(call.kind, arguments, texts, nil, "foreach") or "tide.foreach." .. call.kind.base .. "(…)"
        expressions[position] = text
        parts[#parts + 1] = text
    end
    -- what stands within another is told there
    local last = table.concat(parts, "; ")
    local kept = {}
    for k, text in ipairs(parts) do
        local inside = false
        for j = k + 1, #parts do
            inside = inside or string.find(parts[j], text, 1, true) ~= nil
        end
        kept[#kept + 1] = not inside and text or nil
    end
    return #kept > 0 and table.concat(kept, "; ") or last
end

local function text_of(view, loop, picked, cost, kernel)
    local list, layout = {}, nil
    for position, call in each_picked(loop, picked) do
        list[#list + 1] = view.sites[loop.body[position]].name
        layout = layout or view:layout(view:input(call.i, 1))
    end
    local what = #list == 1 and list[1] or "(" .. table.concat(list, ", ") .. ")"
    return string.format("%s × %s of %s %s, back to back, %.0f %% of it dispatch", view.count_text(loop.reps), what,
        view.shape_text(layout), layout.dtype, 100 * (1 - kernel / cost))
end

local function dearest(view, loop, picked)
    local best, most = nil, -1
    for position in each_picked(loop, picked) do
        local cost = view:position_cost(loop, position)
        if cost > most then
            best, most = view.sites[loop.body[position]], cost
        end
    end
    return best
end

return function(view, add, replay)
    for _, loop in ipairs(view.known and view:loops() or {}) do
        local big = loop.reps >= LEAST_REPS and loop.reps >= 4 * #loop.segments and loop.cost > 0.05 * view.wall
        if big and not view:records(loop) and not view:within(loop.segments[1].from, "optimizer") then
            local picked, cost, kernel = pick(view, loop)
            if picked then
                local gain = replay.gain(function() return build(view, loop, picked, replay) end)
                add { kind = "foreach", site = dearest(view, loop, picked), count = loop.reps, cost = cost,
                    text = text_of(view, loop, picked, cost, kernel), fix = fix_of(view, loop, picked, replay),
                    gain = gain or cost / (kernel + cost / length_of(view, loop, picked)), measured = gain ~= nil, least = 1.05 }
            end
        end
    end
end
