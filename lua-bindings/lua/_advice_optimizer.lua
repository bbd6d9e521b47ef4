-- _advice_optimizer.lua: parameters that are updated one at a time, by hand or by an optimizer told not to use lists:
-- tide.optim makes a step over all of them in one program.
local tide = ...
local LEAST_STEPS, LEAST_PARAMS = 4, 2

-- ---- by hand ----

-- What an update in place reads that was made for it alone: calls, innermost last.
local function makers(view, i, list)
    local born, readers = view:lives(), view:readers()
    list[#list + 1] = i
    for k = #list == 1 and 2 or 1, view.nin[i] do -- the first of the update is the parameter
        local obj = view.obj[view:input(i, k)]
        local made = born[obj]
        if made and made > 0 and i - made < 16 and view.recorded[made] == 0 and #(readers[obj] or {}) == 1 and #list < 12 then
            makers(view, made, list)
        end
    end
    return list
end

local function by_hand(view)
    local leaves, params, found = view:leaves(), {}, { count = 0, cost = 0, calls = 0, params = {} }
    local costs = {}
    for i = 1, view.n do
        local site = view.sites[view.site[i]]
        local inplace = site.kind.inplace and (site.kind.pointwise or site.kind.base == "copy")
        local t = inplace and view:input(i, 1)
        if t and leaves[view.obj[t]] and view.recorded[i] == 0 and view.nin[i] > 1 and not view:within(i, "optimizer") then
            local key = view.obj[t]
            if not params[key] then
                params[key] = 0
                found.params[#found.params + 1] = view:layout(t)
            end
            params[key] = params[key] + 1
            found.count = found.count + 1
            for _, j in ipairs(makers(view, i, {})) do
                found.cost, found.calls = found.cost + view.cost[j], found.calls + 1
            end
            costs[site] = (costs[site] or 0) + view.cost[i]
            if not found.site or costs[site] > costs[found.site] then
                found.site = site
            end
        end
    end
    return found
end

local function fresh_params(view, layouts, replay)
    local params = {}
    for k, layout in ipairs(layouts) do
        params[k] = replay.fresh({ shape = layout.shape, numel = layout.numel, dtype = layout.dtype }):requires_grad_(true)
        params[k].grad = replay.fresh({ shape = layout.shape, numel = layout.numel, dtype = layout.dtype })
    end
    return params
end

-- As many calls for a parameter as there were, against a step of the optimizer that takes about so many.
local function build_hand(view, found, replay)
    local params = fresh_params(view, found.params, replay)
    local each = math.max(1, found.calls // found.count)
    local body = {}
    for k = 1, each - 1 do
        body[k] = "t = tide.mul(t, 0.01)"
    end
    local slow = "for k = 1, #params do\nlocal p = params[k]\nlocal t = p.grad\n" .. table.concat(body, "\n")
        .. "\np:sub_(t" .. (each == 1 and ", {alpha = 0.01}" or "") .. ")\nend"
    local optimizer = each <= 2 and tide.optim.SGD(params, { lr = 1e-4 })
        or each <= 4 and tide.optim.SGD(params, { lr = 1e-4, momentum = 0.9 }) or tide.optim.Adam(params, { lr = 1e-4 })
    return replay.compile(slow, { params = params }), replay.compile("optimizer:step()", { optimizer = optimizer })
end

local function hand_written(view, add, replay)
    local found = by_hand(view)
    local n = #found.params
    if n < LEAST_PARAMS or found.count < LEAST_STEPS * n or found.cost < 0.05 * view.wall then
        return
    end
    local gain = replay.gain(function() return build_hand(view, found, replay) end)
    add { kind = "optimizer", site = found.site, count = found.count, cost = found.cost,
        text = ("%s × %s on %d parameters one at a time: an optimizer by hand"):format(view.count_text(found.count),
            found.site.name, n), fix = "local optimizer = tide.optim.SGD(params, {lr = …}), and optimizer:step()",
        gain = gain or 2, measured = gain ~= nil, least = 1.05 }
end

-- ---- an optimizer that goes one at a time ----

local function steps_one_at_a_time(view)
    local groups, list = {}, {}
    for i = 1, view.n do
        local span = view.outer[i] > 0 and view:within(i, "optimizer")
        if span then
            local key = span.name .. "\0" .. (span.line or "")
            local group = groups[key]
            if not group then
                group = { name = span.name, line = span.line, calls = 0, cost = 0, steps = 0, spans = {}, params = {}, seen = {} }
                groups[key], list[#list + 1] = group, group
            end
            if not group.spans[span] then
                group.spans[span] = true
                group.steps = group.steps + 1
            end
            group.calls, group.cost = group.calls + 1, group.cost + view.cost[i]
            local t = view.nin[i] > 0 and view:input(i, 1)
            if t and not group.seen[view.obj[t]] then
                group.seen[view.obj[t]] = true
                group.params[#group.params + 1] = view:layout(t)
            end
        end
    end
    return list
end

local function build_loop(view, group, replay)
    local name = group.name:match("^(%w+)") or "SGD"
    local make = tide.optim[name]
    local one, all = fresh_params(view, group.params, replay), fresh_params(view, group.params, replay)
    local slow, fast = make(one, { lr = 1e-4, foreach = false }), make(all, { lr = 1e-4 })
    return function() slow:step() end, function() fast:step() end
end

local function looped(view, add, replay)
    for _, group in ipairs(steps_one_at_a_time(view)) do
        local each = group.calls / group.steps
        if group.steps >= LEAST_STEPS and each >= 4 and #group.params >= 4 and group.cost > 0.05 * view.wall then
            local gain = replay.gain(function() return build_loop(view, group, replay) end)
            if gain then
                add { kind = "optimizer", line = group.line, count = group.calls, cost = group.cost,
                    text = ("%s × %s of %.0f calls, a parameter at a time"):format(view.count_text(group.steps), group.name, each),
                    fix = "leave out foreach = false: a step is one program over all parameters", gain = gain, measured = true,
                    least = 1.1 }
            end
        end
    end
end

return function(view, add, replay)
    if view.known then
        hand_written(view, add, replay)
        looped(view, add, replay)
    end
end
