-- advice/allocate.lua: the same big temporary made anew in every iteration, where the operator could write into memory
-- that is there: in place or with out=.
local tide = ...
local names = tide._require "advice.names"
local LEAST, BIG, NEAR = 8, 1 << 22, 64

-- Is what this call makes big, read soon, and never again? Then: may it write over its first argument?
local function is_temporary(view, i)
    local born, last = view:lives()
    local t = view:result(i)
    if view.recorded[i] == 1 or view.nout[i] ~= 1 or view.nin[i] == 0 or view:is_view(i) or born[view.obj[t]] ~= i
        or view.bytes(view:layout(t)) < BIG then
        return false
    end
    local stop = last[view.obj[t]]
    if not stop or stop - i > NEAR then
        return false
    end
    for k = 1, view.nin[i] do
        if view.grad[view:input(i, k)] == 1 then
            return false
        end
    end
    local first = view:input(i, 1)
    local mine = born[view.obj[first]] or 0
    local over = mine > 0 and last[view.obj[first]] == i and view.lay[first] == view.lay[t]
    return true, over
end

local function study(view, site)
    local count, cost, over, example = 0, 0, 0, nil
    for _, i in ipairs(site.calls) do
        local temporary, may = is_temporary(view, i)
        if temporary then
            count, cost, over, example = count + 1, cost + view.cost[i], over + (may and 1 or 0), i
        end
    end
    return count, cost, over * 10 >= count * 9, example
end

local function build(view, i, over, replay)
    local kind = view.sites[view.site[i]].kind
    local values, texts = { out = replay.fresh(view:layout(view:result(i))) }, {}
    for k = 1, view.nin[i] do
        texts[k] = "x" .. k
        values[texts[k]] = replay.fresh(view:layout(view:input(i, k)))
    end
    local arguments = view.arguments[view.args[i]]
    local fresh = replay.call_text(kind, arguments, texts)
    if not fresh then
        return nil
    end
    local there = over and replay.call_text({ base = kind.base, inplace = true }, arguments, texts)
    if not there then
        there = string.find(fresh, "}%)$") and string.gsub(fresh, "}%)$", ", out = out})") or string.gsub(fresh, "%)$", ", {out = out})")
    end
    return replay.compile("for k = 1, 4 do local r = " .. fresh .. " end", values),
        replay.compile("for k = 1, 4 do local r = " .. there .. " end", values)
end

return function(view, add, replay)
    for _, site in ipairs(view.known and view.sites or {}) do
        local doc = site.kind.doc
        if doc and doc.out and not site.kind.inplace and site.count >= LEAST and site.cost > 0.05 * view.wall then
            local count, cost, over, example = study(view, site)
            over = over and doc.inplace
            local gain = count >= LEAST and replay.gain(function() return build(view, example, over, replay) end)
            if gain then
                local layout = view:layout(view:result(example))
                add { kind = "allocate", site = site, count = count, cost = cost,
                    text = string.format("%s × a new %s %s (%.0f MiB) from %s", view.count_text(count), view.shape_text(layout),
                        layout.dtype, view.bytes(layout) / 2 ^ 20, site.name),
                    fix = over and string.format("x:%s_(…) writes over what nobody reads any more", site.kind.base)
                        or string.format("local out = tide.empty(…) in front of the loop, tide.%s(…, {out = out}) in it", site.kind.base),
                    gain = gain, measured = true, least = 1.3 }
            end
        end
    end
end
