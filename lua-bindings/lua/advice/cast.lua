-- advice/cast.lua: one tensor cast again and again, and a float64 that crept into float32.
local tide = ...
local names = tide._require "advice.names"

local casts = { to = true, float = true, double = true, half = true, bfloat16 = true, long = true, int = true, type = true,
    type_as = true, to_copy = true }
local LEAST = 4

local function is_cast(view, i)
    local kind = view.sites[view.site[i]].kind
    return casts[kind.base] and view.nin[i] > 0 and view.nout[i] == 1
        and view:layout(view:input(i, 1)).dtype ~= view:layout(view:result(i)).dtype
end

-- ---- the same tensor again ----

local function key_of(view, i)
    local t = view:input(i, 1)
    return table.concat({ view.obj[t], view.ver[t], view.off[t], view.lay[t], view.lay[view:result(i)] }, ":")
end

-- What casts of a site repeat: how many, what they cost, one of them.
local function repeats(view, site)
    local seen, count, cost, example = {}, 0, 0, nil
    for _, i in ipairs(site.calls) do
        if is_cast(view, i) then
            local key = key_of(view, i)
            if seen[key] then
                count, cost, example = count + 1, cost + view.cost[i], i
            end
            seen[key] = true
        end
    end
    return count, cost, example
end

local function build_again(view, i, count, replay)
    local to = view:layout(view:result(i)).dtype
    local values = { x = replay.fresh(view:layout(view:input(i, 1))), n = math.min(count, 50) }
    return replay.compile(string.format("for k = 1, n do local y = x:to(tide.%s) end", to), values),
        replay.compile(string.format("local y = x:to(tide.%s)", to), values)
end

local function again(view, add, replay)
    for _, site in ipairs(view.sites) do
        if casts[site.kind.base] and site.count > LEAST and site.cost > 0.05 * view.wall then
            local count, cost, example = repeats(view, site)
            if count >= LEAST then
                local from, to = view:layout(view:input(example, 1)), view:layout(view:result(example))
                local gain = replay.gain(function() return build_again(view, example, count, replay) end)
                add { kind = "cast", site = site, count = count, cost = cost,
                    text = string.format("%s × the same %s of %s cast to %s", view.count_text(count), view.shape_text(from), from.dtype,
                        to.dtype),
                    fix = string.format("local y = x:to(tide.%s) once, in front of the loop", to.dtype),
                    gain = gain and gain * count / math.min(count, 50) or count + 1, measured = gain ~= nil }
            end
        end
    end
end

-- ---- float64 that crept in ----

-- Is this the call where a float32 with dims meets a float64 with dims, or a float64 is made beside float32?
local function mixes(view, i)
    local single, double = false, false
    for k = 1, view.nin[i] do
        local layout = view:layout(view:input(i, k))
        single = single or (layout.dtype == "float32" and #layout.shape > 0)
        double = double or (layout.dtype == "float64" and #layout.shape > 0)
    end
    return single and double and view.nout[i] > 0 and view:layout(view:result(i)).dtype == "float64"
end

-- From the calls that mix on, what is float64 only for that; nil: nothing is.
local function tainted(view)
    local taint, cost, count, origin, dear, most = {}, 0, 0, nil, nil, 0
    for i = 1, view.n do
        local mixed = view.nin[i] > 1 and mixes(view, i)
        local wide = mixed
        for k = 1, view.nin[i] do
            wide = wide or taint[view.obj[view:input(i, k)]]
        end
        if wide and view.nout[i] > 0 and view:layout(view:result(i)).dtype == "float64" then
            origin = origin or i
            taint[view.obj[view:result(i)]] = true
            count, cost = count + 1, cost + view.cost[i] + view.back[i]
            if view.cost[i] > most then
                dear, most = i, view.cost[i]
            end
        end
    end
    return origin, cost, count, dear
end

local function build(view, i, replay)
    local kind, arguments = view.sites[view.site[i]].kind, view.arguments[view.args[i]]
    local wide, narrow, texts = {}, {}, {}
    for k = 1, view.nin[i] do
        local layout = view:layout(view:input(i, k))
        local float = replay.is_float(layout)
        texts[k] = "x" .. k
        wide[texts[k]] = replay.fresh({ shape = layout.shape, numel = layout.numel, dtype = layout.dtype })
        narrow[texts[k]] = float and wide[texts[k]]:float() or wide[texts[k]]
    end
    local text = replay.call_text(kind, arguments, texts)
    return text and replay.compile("return " .. text, wide), text and replay.compile("return " .. text, narrow)
end

local function crept(view, add, replay)
    local origin, cost, count, dear = tainted(view)
    if not origin or count < LEAST or cost < 0.05 * view.wall then
        return
    end
    local gain = replay.gain(function() return build(view, dear, replay) end)
    add { kind = "cast", site = view.sites[view.site[origin]], count = count, cost = cost,
        text = string.format("a float64 meets float32 here, and %s calls behind it are float64", view.count_text(count)),
        fix = "make it float32: {dtype = tide.float32} where it is made, or x:float()", gain = gain or 2, measured = gain ~= nil }
end

return function(view, add, replay)
    if view.known then
        again(view, add, replay)
        crept(view, add, replay)
    end
end
