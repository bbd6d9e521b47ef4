-- advice/layout.lua: copies that change nothing but the layout: those that what follows does not need, and those that
-- give back a layout which was just given up.
local tide = ...
local LEAST = 4

local copying = { contiguous = true, clone = true, to = true, to_copy = true }
-- What takes any strides without a copy of its own.
local takes_strides = { mm = true, mv = true, matmul = true, bmm = true, addmm = true, linear = true, sum = true, mean = true,
    amax = true, amin = true, max = true, min = true }

-- Does this call copy a tensor into another layout and do nothing else?
local function is_copy(view, i)
    if not copying[view.sites[view.site[i]].kind.base] or view.nin[i] == 0 or view.nout[i] == 0 then
        return false
    end
    local from, to = view:layout(view:input(i, 1)), view:layout(view:result(i))
    return from.dtype == to.dtype and view.obj[view:input(i, 1)] ~= view.obj[view:result(i)]
        and (from.dense ~= to.dense or from.strides and to.strides and table.concat(from.strides, ",") ~= table.concat(to.strides, ","))
        and from.numel > 1
end

-- The call that reads a copy, where all that do take it as it was.
local function reader_of(view, i)
    local list = view:readers()[view.obj[view:result(i)]]
    for _, j in ipairs(list or {}) do
        local kind = view.sites[view.site[j]].kind
        if not (kind.pointwise and not kind.inplace or takes_strides[kind.base]) then
            return nil
        end
    end
    return list and list[1]
end

-- The copy and what reads it, against that on the tensor as it lies.
local function build(view, i, j, replay)
    local from, to = view:layout(view:input(i, 1)), view:layout(view:result(i))
    local values, before, behind = { x0 = replay.fresh(from) }, {}, {}
    for k = 1, view.nin[j] do
        local t = view:input(j, k)
        local is_it = view.obj[t] == view.obj[view:result(i)] and table.concat(view:layout(t).shape) == table.concat(to.shape)
        before[k], behind[k] = is_it and "y" or "z" .. k, is_it and "x0" or "z" .. k
        if not is_it then
            values["z" .. k] = replay.fresh(view:layout(t))
        end
    end
    local kind, arguments = view.sites[view.site[j]].kind, view.arguments[view.args[j]]
    local a, b = replay.call_text(kind, arguments, before), replay.call_text(kind, arguments, behind)
    return a and replay.compile("local y <close> = x0:contiguous()\nlocal r <close> = " .. a, values),
        b and replay.compile("local r <close> = " .. b, values)
end

local function needless(view, add, replay)
    for _, site in ipairs(view.sites) do
        if copying[site.kind.base] and site.count >= LEAST and site.cost > 0.03 * view.wall then
            local cost, count, example, reader = 0, 0, nil, nil
            for _, i in ipairs(site.calls) do
                local j = is_copy(view, i) and view:layout(view:result(i)).dense and reader_of(view, i)
                if j then
                    cost, count, example, reader = cost + view.cost[i] + view.cost[j], count + 1, i, j
                end
            end
            if count >= LEAST then
                local gain = replay.gain(function() return build(view, example, reader, replay) end)
                local layout = view:layout(view:result(example))
                if gain then
                    add { kind = "layout", site = site, count = count, cost = cost,
                        text = string.format("%s × a copy of %s %s for its layout alone, which %s does not need", view.count_text(count),
                            view.shape_text(layout), layout.dtype, view.sites[view.site[reader]].name),
                        fix = string.format("leave out %s(): operators take any strides", site.name), gain = gain, measured = true }
                end
            end
        end
    end
end

-- Copies of the same shape in both directions: what was channels_last is made so again.
local function back_and_forth(view, add)
    local given = {}
    for i = 1, view.n do
        if is_copy(view, i) then
            local from, to = view:layout(view:input(i, 1)), view:layout(view:result(i))
            if #to.shape >= 4 then
                local key = table.concat(to.shape, ",")
                local way = to.dense and "lost" or "regained"
                local f = given[key] or { lost = 0, regained = 0 }
                given[key] = f
                f[way] = f[way] + 1
                f.cost, f.count = (f.cost or 0) + view.cost[i], (f.count or 0) + 1
                f.site = f.site or view.sites[view.site[i]]
            end
        end
    end
    for shape, f in pairs(given) do
        if f.lost >= LEAST and f.regained >= LEAST then
            add { kind = "layout", site = f.site, count = f.count, cost = f.cost,
                text = string.format("%s × (%s) copied to channels_last and back", view.count_text(f.count), (string.gsub(shape, ",", ", "))),
                fix = "convert once in front, and leave it so to the end", gain = f.count / 2, measured = false }
        end
    end
end

return function(view, add, replay)
    if view.known then
        needless(view, add, replay)
        back_and_forth(view, add)
    end
end
