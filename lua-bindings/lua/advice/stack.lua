-- advice/stack.lua: a batch that is stacked, in each step, of many small tensors made for it: rows that were looked up one
-- by one, or lists of Lua that became a tensor each. Told as a kind of batch.
local tide = ...
local names = tide._require "advice.names"

local LEAST, PIECES, SMALL = 16, 8, 4096 -- steps, tensors in each, and elements of one

-- How many tensors a call joins: more than are kept of it.
local function pieces_of(view, i)
    for _, argument in ipairs(view.arguments[view.args[i]] or {}) do
        if argument[1] == "tensors" then
            return argument[2]
        end
    end
    return 0
end

-- "rows": other places of one tensor; "lists": no recorded call made them, and no call before took them; nil: neither.
-- What calls over lists make (foreach.norm) is not seen here: tensors of no dims may be theirs.
local function source_of(view, i, before)
    local born, same, fresh, taken = view:lives(), true, #view:layout(view:input(i, 1)).shape > 0, {}
    for k = 1, view.nin[before] do
        taken[view.obj[view:input(before, k)]] = true
    end
    local first = view:input(i, 1)
    for k = 1, view.nin[i] do
        local t = view:input(i, k)
        same = same and view.obj[t] == view.obj[first]
        fresh = fresh and born[view.obj[t]] == 0 and not taken[view.obj[t]]
    end
    local parted = view.nin[i] > 1 and view.off[first] ~= view.off[view:input(i, 2)]
    return same and parted and "rows" or fresh and "lists" or nil
end

-- What stacks of a site cost with the looks in front of them, a look for each piece.
local function cost_of(view, site, n)
    local cost = site.cost
    for _, i in ipairs(site.calls) do
        local obj = view.obj[view:input(i, 1)]
        for j = i - 1, math.max(i - n, 1), -1 do
            if not view:is_view(j) or view.obj[view:result(j)] ~= obj then
                break
            end
            cost = cost + view.cost[j]
        end
    end
    return cost
end

local function build(source, layout, n, replay)
    local values, one, all = { n = n }, nil, nil
    if source == "rows" then
        values.x, values.places = replay.fresh(layout, 1000), {}
        for k = 1, n do
            values.places[k] = k * 37 % 1000 + 1
        end
        one = "local r = {}\nfor k = 1, n do r[k] = x[places[k]] end\nlocal y <close> = tide.stack(r)"
        all = "local y <close> = x:index_select(1, tide.tensor(places))"
    else
        values.data = {}
        for k = 1, n do
            values.data[k] = replay.fresh(layout):tolist()
        end
        one = "local r = {}\nfor k = 1, n do r[k] = tide.tensor(data[k]) end\nlocal y <close> = tide.stack(r)"
        all = "local y <close> = tide.tensor(data)"
    end
    return replay.compile(one, values), replay.compile(all, values)
end

return function(view, add, replay)
    for _, site in ipairs(view.sites) do
        local i = site.kind.base == "stack" and site.count >= LEAST and site.calls[site.count // 2 + 1]
        local n, layout = i and pieces_of(view, i) or 0, i and view.nin[i] > 0 and view:layout(view:input(i, 1))
        local source = n >= PIECES and layout and layout.numel <= SMALL and source_of(view, i, site.calls[site.count // 2])
        local seconds = source and replay.seconds(function() return (build(source, layout, n, replay)) end)
        if seconds then
            local gain = replay.gain(function() return build(source, layout, n, replay) end)
            local target = names.assigned(site) or "batch"
            add { kind = "batch", site = site, count = site.count, cost = math.max(seconds * 1e9 * site.count, cost_of(view, site, n)),
                text = string.format("%s × stack of %s %s of %s", view.count_text(site.count), view.count_text(n),
                    source == "rows" and "rows looked up one by one," or "tensors made of a list each,", layout.dtype),
                fix = source == "rows" and string.format("%s = x:index_select(1, tide.tensor(places)), all rows at once", target)
                    or string.format("%s = tide.tensor(rows), of the lists themselves", target),
                gain = gain or 2, measured = gain ~= nil }
        end
    end
end
