-- advice/scalar.lua: chains of operators on tensors of one element that are plain numbers.
local tide = ...
local LEAST = 64

local lua_forms = { add = "a + b", sub = "a - b", mul = "a * b", div = "a / b", pow = "a ^ b", exp = "math.exp(a)", log = "math.log(a)",
    sqrt = "math.sqrt(a)", abs = "math.abs(a)", sin = "math.sin(a)", cos = "math.cos(a)", neg = "-a", square = "a * a" }

-- Storages that are anywhere more than one element.
local function larger(view)
    local set = {}
    for i = 1, view.n do
        for t = view.first[i] + 1, view.first[i] + view.nin[i] + view.nout[i] do
            if view.layouts[view.lay[t]].numel ~= 1 then
                set[view.obj[t]] = true
            end
        end
    end
    return set
end

local function is_scalar_call(view, i, big)
    local kind = view.sites[view.site[i]].kind
    if not kind.pointwise or view.nin[i] == 0 or view.recorded[i] == 1 or view:within(i, "optimizer") then
        return false
    end
    for t = view.first[i] + 1, view.first[i] + view.nin[i] + view.nout[i] do
        if big[view.obj[t]] or view.layouts[view.lay[t]].numel ~= 1 then
            return false
        end
    end
    return true
end

-- Calls that go on with what such a call made; by site. A site that works on larger tensors too is a loop over tensors of
-- which some happen to be small.
local function study(view)
    local big, scalar, found, order, singles = larger(view), {}, {}, {}, {}
    local count, cost = 0, 0
    for i = 1, view.n do
        if is_scalar_call(view, i, big) then
            singles[view.site[i]] = (singles[view.site[i]] or 0) + 1
        end
    end
    for i = 1, view.n do
        local single = (singles[view.site[i]] or 0) >= 0.9 * view.sites[view.site[i]].count
        if single and is_scalar_call(view, i, big) then
            local chained = false
            for k = 1, view.nin[i] do
                chained = chained or scalar[view.obj[view:input(i, k)]]
            end
            scalar[view.obj[view:result(i)]] = true
            if chained then
                local site = view.sites[view.site[i]]
                if not found[site] then
                    found[site] = { site = site, count = 0, cost = 0 }
                    order[#order + 1] = found[site]
                end
                local f = found[site]
                f.count, f.cost = f.count + 1, f.cost + view.cost[i]
                count, cost = count + 1, cost + view.cost[i]
            end
        end
    end
    table.sort(order, function(a, b) return a.cost > b.cost end)
    return order, count, cost
end

local function build(replay, base)
    local values = { x = replay.fresh { shape = {}, numel = 1, dtype = "float32" }, y = replay.fresh { shape = {}, numel = 1,
        dtype = "float32" } }
    local two = lua_forms[base] and string.find(lua_forms[base], "b", 1, true)
    local tensor = string.format("tide.%s(%s)", lua_forms[base] and base or "add", (two or not lua_forms[base]) and "x, y" or "x")
    return replay.compile("for k = 1, 500 do local r = " .. tensor .. " end", values),
        replay.compile("local a, b = 1.5, 0.75\nfor k = 1, 500 do local r = " .. (lua_forms[base] or "a + b") .. " end", values)
end

return function(view, add, replay)
    if not view.known then
        return
    end
    local order, count, cost = study(view)
    if count >= LEAST and cost > 0.05 * view.wall then
        local site = order[1].site
        local gain = replay.gain(function() return build(replay, site.kind.base) end)
        local parts = {}
        for k = 1, math.min(#order, 4) do
            parts[k] = order[k].site.name
        end
        add { kind = "scalar", site = site, count = count, cost = cost,
            text = string.format("%s × (%s%s) of one element, a number each", view.count_text(count), table.concat(parts, ", "),
                #order > 4 and ", …" or ""),
            fix = "numbers of Lua: local a = x:item() once, then a + b, a * b, math.exp(a)", gain = gain or 20, measured = gain ~= nil }
    end
end
