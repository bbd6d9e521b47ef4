-- advice/optimizer.lua: parameters that are updated one at a time, by hand or by an optimizer told not to use lists:
-- tide.optim makes a step over all of them in one program.
local tide = ...
local LEAST_STEPS, LEAST_PARAMS = 4, 2

-- ---- by hand ----

local MOST_CALLS = 32 -- of an update

-- Do the tensors of a call have the parameter's elements, or one?
local function is_of(view, i, numel)
    for t = view.first[i] + 1, view.first[i] + view.nin[i] + view.nout[i] do
        local n = view:layout(t).numel
        if n ~= numel and n ~= 1 then
            return false
        end
    end
    return view.nin[i] > 0
end

-- The calls in front of an update in place that are for it: the first of them.
local function begin_of(view, i, previous)
    local numel, from = view:layout(view:input(i, 1)).numel, i
    for j = i - 1, math.max(previous + 1, i - MOST_CALLS), -1 do
        if view.recorded[j] == 1 or view.back[j] > 0 or view:within(j, "optimizer") or not is_of(view, j, numel) then
            break
        end
        from = j
    end
    return from
end

local function by_hand(view)
    local leaves, params, found = view:leaves(), {}, { count = 0, cost = 0, calls = 0, params = {}, made = {} }
    local costs, previous = {}, 0
    for i = 1, view.n do
        local site = view.sites[view.site[i]]
        local inplace = site.kind.inplace and (site.kind.pointwise or site.kind.base == "copy")
        local t = inplace and view:input(i, 1)
        if t and leaves[view.obj[t]] and view.recorded[i] == 0 and view.nin[i] > 1 and not view:within(i, "optimizer") then
            local key, from = view.obj[t], begin_of(view, i, previous)
            local param = params[key]
            if not param then
                param = { layout = view:layout(t) }
                params[key] = param
                found.params[#found.params + 1] = param
            end
            param.from, param.to = from, i
            found.count, found.calls, previous = found.count + 1, found.calls + i - from + 1, i
            for j = from, i do
                found.cost = found.cost + view.cost[j]
                if view.nout[j] > 0 and not view.sites[view.site[j]].kind.inplace and not view:is_view(j) then
                    found.made[view.obj[view:result(j)]] = j
                end
            end
            costs[site] = (costs[site] or 0) + view.cost[i]
            if not found.site or costs[site] > costs[found.site] then
                found.site = site
            end
        end
    end
    return found
end

-- ---- which optimizer it is ----

local ROOTS = { sqrt = true, rsqrt = true }

-- Is a number among a call's arguments?
local function has_number(arguments, number)
    for _, argument in ipairs(arguments or {}) do
        if argument[2] == number then
            return true
        end
    end
    return false
end

-- What an update does: how many tensors of the parameter's size it keeps from step to step (written in place, or made by
-- an earlier update), whether these fade, how many roots it takes, what else tells optimizers apart.
local function traits_of(view, found, param)
    local own = view.obj[view:input(param.to, 1)]
    local traits = { states = 0, roots = 0 }
    local kept, made = {}, {}
    local function keep(obj)
        if obj ~= own and not made[obj] and not kept[obj] then
            kept[obj] = true
            traits.states = traits.states + 1
        end
    end
    for i = param.from, param.to do
        local kind = view.sites[view.site[i]].kind
        local base, arguments = kind.base, view.arguments[view.args[i]]
        for k = 1, view.nin[i] do
            local obj = view.obj[view:input(i, k)]
            if found.made[obj] and found.made[obj] < param.from or k == 1 and kind.inplace then
                keep(obj)
            end
            traits.fades = traits.fades or kept[obj] and (base == "mul" or base == "lerp" or base == "div")
            traits.ends_in_state = i == param.to and k > 1 and kept[obj]
        end
        if view.nout[i] > 0 and not kind.inplace then
            made[view.obj[view:result(i)]] = true
        end
        if ROOTS[base] or base == "pow" and (has_number(arguments, 0.5) or has_number(arguments, -0.5)) then
            traits.roots = traits.roots + 1
        end
        traits.maximum = traits.maximum or base == "maximum" or base == "fmax"
        traits.sign = traits.sign or base == "sign"
        traits.decays = traits.decays or i < param.to and kind.inplace and base == "mul" and view.obj[view:input(i, 1)] == own
    end
    return traits
end

-- Its name in tide.optim and the options that make it that; nil where none does the same.
local function name_of(traits)
    local states, roots = traits.states, traits.roots
    if traits.sign then
        return nil
    elseif roots == 0 and states == 0 then
        return "SGD"
    elseif roots == 0 and states == 1 then
        return "SGD", "momentum", 0.9
    elseif roots == 0 then
        return states == 2 and traits.maximum and "Adamax" or nil
    elseif states == 0 then
        return nil
    elseif states == 1 then
        return traits.fades and "RMSprop" or "Adagrad"
    elseif roots > 1 and not traits.maximum then
        return "Adadelta"
    elseif traits.ends_in_state then
        return "RMSprop", "momentum", 0.9
    elseif states > 2 and traits.maximum then
        return traits.decays and "AdamW" or "Adam", "amsgrad", true
    end
    return traits.decays and "AdamW" or "Adam"
end

local function fix_of(name, option)
    if not name then
        return "tide.foreach over the list of parameters and that of gradients: a call is for all of them"
    end
    return string.format("local optimizer = tide.optim.%s(params, {lr = …%s}), and optimizer:step()", name,
        option and string.format(", %s = %s", option, option == "amsgrad" and "true" or "…") or "")
end

local function fresh_params(view, layouts, replay)
    local params = {}
    for k, layout in ipairs(layouts) do
        params[k] = replay.fresh({ shape = layout.shape, numel = layout.numel, dtype = layout.dtype }):requires_grad_(true)
        params[k].grad = replay.fresh({ shape = layout.shape, numel = layout.numel, dtype = layout.dtype })
    end
    return params
end

-- The update of a parameter as it was recorded, over tensors kept in the list `v`; nil: it can't be written.
local function update_text(view, param, v, replay)
    local lines, made, entries, nth = {}, {}, {}, 0
    for i = param.from, param.to do
        local texts = {}
        for k = 1, view.nin[i] do
            local t = view:input(i, k)
            local obj = view.obj[t]
            if not made[obj] and not entries[obj] then
                v[#v + 1] = replay.fresh { shape = view:layout(t).shape, numel = view:layout(t).numel, dtype = view:layout(t).dtype }
                entries[obj] = string.format("v[%d]", #v)
            end
            texts[k] = made[obj] or entries[obj]
        end
        local text = replay.call_text(view.sites[view.site[i]].kind, view.arguments[view.args[i]], texts)
        if not text then
            return nil
        end
        nth = nth + 1
        lines[nth] = string.format("local r%d = %s", nth, text)
        if view.nout[i] > 0 and not entries[view.obj[view:result(i)]] then
            made[view.obj[view:result(i)]] = "r" .. nth
        end
    end
    return "do\n" .. table.concat(lines, "\n") .. "\nend"
end

-- A step as it was recorded, against one of the optimizer that it is, or of one that takes about so many calls.
local function build_hand(view, found, replay, name, option, value)
    local layouts, updates, v = {}, {}, {}
    for k, param in ipairs(found.params) do
        layouts[k] = param.layout
        updates[k] = update_text(view, param, v, replay)
        if not updates[k] then
            return nil
        end
    end
    local params = fresh_params(view, layouts, replay)
    local each = math.max(1, found.calls // found.count)
    name = name or each <= 4 and "SGD" or "Adam"
    local options = { lr = 1e-4 }
    if option then
        options[option] = value
    end
    local optimizer = tide.optim[name](params, options)
    return replay.compile(table.concat(updates, "\n"), { v = v }), replay.compile("optimizer:step()", { optimizer = optimizer })
end

local function hand_written(view, add, replay)
    local found = by_hand(view)
    local n = #found.params
    if n < LEAST_PARAMS or found.count < LEAST_STEPS * n or found.cost < 0.05 * view.wall then
        return
    end
    local name, option, value = name_of(traits_of(view, found, found.params[1]))
    local gain = replay.gain(function() return build_hand(view, found, replay, name, option, value) end)
    add { kind = "optimizer", site = found.site, count = found.count, cost = found.cost,
        text = string.format("%s × %s on %d parameters one at a time: an optimizer by hand", view.count_text(found.count),
            found.site.name, n), fix = fix_of(name, option),
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
    local name = string.match(group.name, "^(%w+)") or "SGD"
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
                    text = string.format("%s × %s of %.0f calls, a parameter at a time", view.count_text(group.steps), group.name, each),
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
