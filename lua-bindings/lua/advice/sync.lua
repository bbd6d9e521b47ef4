-- advice/sync.lua: what makes the script wait for elements in a loop: item, printing, lists; and masks, whose results
-- have sizes that only the elements tell.
local tide = ...
local names = tide._require "advice.names"
local LEAST = 16

-- ---- elements to Lua ----

-- Copies that belong to a loop over elements are told there.
local function of_elements(view)
    local set = {}
    for _, loop in ipairs(view.known and view:loops() or {}) do
        if loop.elements then
            for _, segment in ipairs(loop.segments) do
                for i = segment.from, segment.from + segment.reps * loop.period - 1 do
                    set[i] = true
                end
            end
        end
    end
    return set
end

local words = { item = "item()", tolist = "tolist()", tostring = "a tensor printed" }

local MOST_CHAIN = 4

-- Does a call of another place than these read it?
local function is_read_elsewhere(view, list, chain)
    for _, j in ipairs(list) do
        if not chain[view.site[j]] then
            return true
        end
    end
    return false
end

-- What was computed for an item alone, from a tensor that the loop goes on with: the test of a loop that converges.
local function test_cost(view, i)
    if i < 1 or view.nout[i] == 0 or view.recorded[i] == 1 or view:layout(view:result(i)).numel ~= 1 then
        return 0
    end
    local born, readers, cost, chain = view:lives(), view:readers(), 0, {}
    for _ = 1, MOST_CHAIN do
        if view.nin[i] == 0 or view:is_view(i) or view.recorded[i] == 1 then
            return 0
        end
        cost, chain[view.site[i]] = cost + view.cost[i], true
        local obj = view.obj[view:input(i, 1)]
        local made, list = born[obj], readers[obj] or {}
        if not made or made == 0 then
            return 0
        elseif is_read_elsewhere(view, list, chain) then
            return view.recorded[made] == 0 and cost or 0
        end
        i = made
    end
    return 0
end

-- What one look costs on the CPU, where nothing is waited for, without what recording it adds: ns. nil: a device may be
-- waited for, or it can't be told.
local function look_cost(view, span, replay)
    local source = span.name == "item" and view.known and span.before > 0 and view.nout[span.before] > 0
        and view:layout(view:result(span.before))
    if not source or source.numel ~= 1 or tide.cuda.is_available() then
        return nil
    end
    local seconds = replay.seconds(function()
        local x = replay.fresh(source)
        return replay.compile("for k = 1, 1000 do local a = x:item() end", { x = x })
    end)
    return seconds and seconds * 1e6
end

local function copies(view, add, replay)
    local told, groups, list = of_elements(view), {}, {}
    for _, span in ipairs(view.spans) do
        if span.kind == "copy" and not told[span.before] then
            local key = (span.line or "") .. span.name
            local group = groups[key]
            if not group then
                group = { line = span.line, name = span.name, count = 0, cost = 0, test = 0, work = 0, last = -1, first = span }
                groups[key], list[#list + 1] = group, group
            end
            local test = span.name == "item" and view.known and test_cost(view, span.before) or 0
            group.count, group.cost, group.test = group.count + 1, group.cost + span.stop - span.start, group.test + test
            group.work = group.work + (span.before > group.last and 1 or 0)
            group.last = span.before
        end
    end
    for _, group in ipairs(list) do
        if group.work >= LEAST and group.cost + group.test > 0.05 * view.wall then
            local look = look_cost(view, group.first, replay)
            local cost = math.min(group.cost, look and look * group.count or math.huge) + group.test
            add { kind = "sync", line = group.line, count = group.count, cost = cost,
                text = string.format("%s × %s in the loop, %.1f µs each%s", view.count_text(group.count), words[group.name] or group.name,
                    cost / group.count / 1e3, look and group.test > 0 and ", with what is computed for it alone"
                        or look and "" or ": the script waits for the elements"),
                fix = "keep tensors in the loop, and look at them behind it or every 100th time", gain = 20, measured = look ~= nil }
        end
    end
end

-- ---- masks ----

local masked = { advanced_index = true, masked_select = true, nonzero = true, index = true }
local reducing = { sum = "0", mean = nil, amax = "-math.huge", amin = "math.huge", max = "-math.huge", min = "math.huge" }

-- The operand and the mask of a call that takes elements by a mask.
local function mask_of(view, i)
    if not masked[view.sites[view.site[i]].kind.base] or view.nin[i] < 2 then
        return nil
    end
    local x, mask = view:input(i, 1), view:input(i, 2)
    local a, b = view:layout(x), view:layout(mask)
    return b.dtype == "bool" and table.concat(a.shape, ",") == table.concat(b.shape, ",") and x or nil
end

local function build(view, i, reader, replay)
    local layout = view:layout(mask_of(view, i))
    local base = view.sites[view.site[reader]].kind.base
    local x = replay.fresh(layout)
    local values = { x = x, mask = x:gt(1) }
    return replay.compile("local r = x[mask]:" .. base .. "()", values),
        replay.compile(string.format("local r = tide.where(mask, x, %s):%s()", reducing[base], base), values)
end

local function masks(view, add, replay)
    for _, site in ipairs(view.sites) do
        if masked[site.kind.base] and site.count >= LEAST and site.cost > 0.05 * view.wall and mask_of(view, site.calls[1]) then
            local count, cost, example, reader = 0, 0, nil, nil
            for _, i in ipairs(site.calls) do
                local list = view.nout[i] > 0 and view:readers()[view.obj[view:result(i)]]
                local j = list and #list == 1 and list[1]
                if j and reducing[view.sites[view.site[j]].kind.base] and view:layout(view:result(j)).numel == 1 then
                    count, cost, example, reader = count + 1, cost + view.cost[i] + view.cost[j], i, j
                end
            end
            if count >= LEAST then
                local base = view.sites[view.site[reader]].kind.base
                local gain = replay.gain(function() return build(view, example, reader, replay) end)
                add { kind = "sync", site = site, count = count, cost = cost,
                    text = string.format("%s × elements by a mask, whose number is known only when they are counted", view.count_text(count)),
                    fix = string.format("tide.where(mask, x, %s):%s()", reducing[base], base), gain = gain or 2, measured = gain ~= nil }
            end
        end
    end
end

return function(view, add, replay)
    copies(view, add, replay)
    if view.known then
        masks(view, add, replay)
    end
end
