-- advice/grow.lua: cat or stack in a loop, which copies what was there every time.
local tide = ...
local names = tide._require "advice.names"

local joins = { cat = true, stack = true, hstack = true, vstack = true, dstack = true, row_stack = true, column_stack = true,
    concat = true, concatenate = true }
local LEAST = 8

-- How many calls of the site took what it gave the time before, and the last of them; what came to it each time.
local function study(view, site)
    local grown, cost, last, added, previous = 0, 0, nil, nil, nil
    for _, i in ipairs(site.calls) do
        local made = view:result(i)
        for k = 1, view.nin[i] do
            local t = view:input(i, k)
            if previous and view.obj[t] == view.obj[previous] and view:layout(made).numel > view:layout(t).numel then
                grown, cost, last = grown + 1, cost + view.cost[i], i
                added = k > 1 and view:input(i, 1) or view.nin[i] > 1 and view:input(i, 2) or added
            end
        end
        previous = made
    end
    return grown, cost, last, added
end

local function build(view, last, added, grown, replay)
    local piece, result = view:layout(added), view:layout(view:result(last))
    local n = math.max(2, math.min(grown, 1000, (64 << 20) // math.max(view.bytes(result), 1)))
    local flat = { shape = { math.max(piece.numel, 1) }, numel = math.max(piece.numel, 1), dtype = piece.dtype }
    local values = { n = n, x = replay.fresh(flat) }
    return replay.compile("local all = x\nfor k = 2, n do all = tide.cat({all, x}) end", values),
        replay.compile("local list = {}\nfor k = 1, n do list[k] = x end\nreturn tide.cat(list)", values)
end

return function(view, add, replay)
    for _, site in ipairs(view.known and view.sites or {}) do
        if joins[site.kind.base] and site.count >= LEAST and site.cost > 0.05 * view.wall then
            local grown, cost, last, added = study(view, site)
            if grown >= LEAST and added then
                local gain = replay.gain(function() return build(view, last, added, grown, replay) end)
                local result = view:layout(view:result(last))
                add { kind = "grow", site = site, count = grown, cost = cost,
                    text = string.format("%s × %s onto what it made before, at last %s %s", view.count_text(grown), site.name,
                        view.shape_text(result), result.dtype),
                    fix = string.format("list[#list + 1] = piece in the loop, %s = tide.%s(list) behind it",
                        names.assigned(site) or "all", site.kind.base), gain = gain or grown / 2, measured = gain ~= nil }
            end
        end
    end
end
