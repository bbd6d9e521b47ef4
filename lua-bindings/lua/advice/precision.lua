-- advice/precision.lua: float32 products and convolutions that bfloat16 autocast would cut on this machine.
local tide = ...
local LEAST, LEAST_WORK, LEAST_SHARE = 4, 2e8, 0.25

local heavy = { mm = true, matmul = true, bmm = true, linear = true, addmm = true, baddbmm = true, conv1d = true, conv2d = true,
    conv3d = true, scaled_dot_product_attention = true }

-- Multiplications and additions of a call, about.
local function work_of(view, i)
    local base = view.sites[view.site[i]].kind.base
    local out = view.nout[i] > 0 and view:layout(view:result(i)).numel or 0
    local second = view.nin[i] > 1 and view:layout(view:input(i, string.find(base, "^b?addb?mm$") and 3 or 2))
    if not second then
        return 0
    end
    local inner = 1
    if string.find(base, "^conv") then
        for d = 2, #second.shape do
            inner = inner * second.shape[d]
        end
    else
        inner = base == "linear" and second.shape[#second.shape] or second.shape[#second.shape - 1] or 1
    end
    return 2 * out * inner
end

local function study(view)
    local cost, count, best, most, by_site = 0, 0, nil, 0, {}
    for i = 1, view.n do
        local site = view.sites[view.site[i]]
        if heavy[site.kind.base] and view.nin[i] > 1 and view:layout(view:input(i, 1)).dtype == "float32"
            and view.nout[i] > 0 and view:layout(view:result(i)).dtype == "float32" and work_of(view, i) >= LEAST_WORK then
            local c = view.cost[i] + view.back[i]
            cost, count = cost + c, count + 1
            by_site[site] = (by_site[site] or 0) + c
            if by_site[site] > most then
                best, most = i, by_site[site]
            end
        end
    end
    return count, cost, best
end

local function build(view, i, replay)
    local values, texts = {}, {}
    for k = 1, view.nin[i] do
        texts[k] = "x" .. k
        values[texts[k]] = replay.fresh(view:layout(view:input(i, k)))
    end
    local text = replay.call_text(view.sites[view.site[i]].kind, view.arguments[view.args[i]], texts)
    return text and replay.compile("local r <close> = " .. text, values),
        text and replay.compile("local _ <close> = tide.autocast{dtype = tide.bfloat16}\nlocal r <close> = " .. text, values)
end

return function(view, add, replay)
    if not view.known then
        return
    end
    local count, cost, i = study(view)
    if count < LEAST or cost < LEAST_SHARE * view.wall then
        return
    end
    local gain = replay.gain(function() return build(view, i, replay) end)
    if gain then
        local site = view.sites[view.site[i]]
        add { kind = "precision", site = site, count = count, cost = cost,
            text = string.format("%s × products of float32, as %s of %s", view.count_text(count), site.name,
                view.tuple_text(view:layout(view:input(i, 1)))),
            fix = "local _ <close> = tide.autocast{dtype = tide.bfloat16} around it, where 8 bits of precision do", gain = gain,
            measured = true, least = 1.4 }
    end
end
