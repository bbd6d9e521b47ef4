-- advice/fuse.lua: pointwise chains over memory larger than the cache, each call a pass over all of it, where one operator
-- makes one pass; and, where none does, forms in place.
local tide = ...

local BIG, LEAST = 1 << 20, 4

-- ---- chains ----

-- The tensor arguments of a call: texts by place, with x1, x2, ... for what comes from without.
local function namer(view)
    local known, list = {}, {}
    return function(t)
        local key = view.obj[t] .. ":" .. view.off[t] .. ":" .. view.lay[t]
        if not known[key] then
            list[#list + 1] = t
            known[key] = "x" .. #list
        end
        return known[key]
    end, list
end

local function base_of(view, i) return view.sites[view.site[i]].kind.base end
local function is_inplace(view, i) return view.sites[view.site[i]].kind.inplace end

-- The k-th argument as {kind, value} of a call.
local function argument(view, i, k)
    local list = view.arguments[view.args[i]]
    return list and list[k] or {}
end

local function number(view, i, k)
    local a = argument(view, i, k)
    return (a[1] == "int" or a[1] == "float") and a[2] or nil
end

-- The call that made a tensor and has just these readers; nil: something else.
local function made_by(view, t, base, readers)
    local born = view:lives()
    local i = born[view.obj[t]]
    if i and i > 0 and base_of(view, i) == base and not is_inplace(view, i) and view.obj[view:result(i)] == view.obj[t]
        and #(view:readers()[view.obj[t]] or {}) == (readers or 1) then
        return i
    end
end

-- The first input of the call that such a call made, its maker, and the place of the other input.
local function maker_among(view, i, base, readers)
    for k = 1, view.nin[i] do
        local m = made_by(view, view:input(i, k), base, readers)
        if m then
            return m, k, view.nin[i] == 2 and 3 - k or nil
        end
    end
end

local function same(view, a, b) return view.obj[a] == view.obj[b] and view.off[a] == view.off[b] and view.lay[a] == view.lay[b] end

-- ---- patterns: (view, i, name) with the chain's last call -> the calls of the chain, the text of one operator ----

local function multiply_add(view, i, name)
    local sign = base_of(view, i) == "sub" and "-" or ""
    local m, k, other = maker_among(view, i, "mul")
    local alpha = number(view, i, 3)
    if not m or not other or sign == "-" and k == 1 or alpha and alpha ~= 1 then
        return nil
    end
    local c = name(view:input(i, other))
    if view.nin[m] == 2 then
        local value = sign == "-" and ", {value = -1}" or ""
        return { m, i }, string.format("tide.addcmul(%s, %s, %s%s)", c, name(view:input(m, 1)), name(view:input(m, 2)), value)
    end
    local factor = number(view, m, 1) or number(view, m, 2)
    return factor and { m, i }, factor and string.format("tide.%s(%s, %s, {alpha = %s})", base_of(view, i), c, name(view:input(m, 1)),
        tide._require("advice.replay").number_text(factor))
end

local function divide_add(view, i, name)
    local m, _, other = maker_among(view, i, "div")
    if m and other and view.nin[m] == 2 then
        return { m, i }, string.format("tide.addcdiv(%s, %s, %s)", name(view:input(i, other)), name(view:input(m, 1)), name(view:input(m, 2)))
    end
end

local function silu(view, i, name)
    local m, _, other = maker_among(view, i, "sigmoid")
    if m and other and same(view, view:input(m, 1), view:input(i, other)) then
        return { m, i }, string.format("tide.silu(%s)", name(view:input(m, 1)))
    end
end

local function last_dim(view, i, layout)
    local dims = argument(view, i, 2)
    local d = type(dims[2]) == "table" and #dims[2] == 1 and dims[2][1] or dims[2]
    if math.type(d) ~= "integer" then
        return nil
    end
    return d < 0 and d + #layout.shape + 1 or d + 1
end

-- exp(x) / exp(x):sum(dim), with or without a maximum that was taken away before.
local function softmax(view, i, name)
    local e = view.nin[i] == 2 and made_by(view, view:input(i, 1), "exp", 2)
    local s = e and made_by(view, view:input(i, 2), "sum")
    if not s or not same(view, view:input(s, 1), view:result(e)) then
        return nil
    end
    local calls, x = { e, s, i }, view:input(e, 1)
    local dim = last_dim(view, s, view:layout(x))
    local shift = made_by(view, x, "sub")
    local top = shift and view.nin[shift] == 2 and (made_by(view, view:input(shift, 2), "amax")
        or made_by(view, view:input(shift, 2), "max"))
    if top and same(view, view:input(top, 1), view:input(shift, 1)) then
        calls, x = { top, shift, e, s, i }, view:input(shift, 1)
    end
    return dim and calls, dim and string.format("tide.softmax(%s, %d)", name(x), dim)
end

local function log_softmax(view, i, name)
    local m = made_by(view, view:input(i, 1), "softmax")
    local dim = m and last_dim(view, m, view:layout(view:input(m, 1)))
    return dim and { m, i }, dim and string.format("tide.log_softmax(%s, %d)", name(view:input(m, 1)), dim)
end

local function log_of_sum(view, i, name)
    local s = made_by(view, view:input(i, 1), "sum")
    local e = s and made_by(view, view:input(s, 1), "exp")
    local dim = e and last_dim(view, s, view:layout(view:input(e, 1)))
    if dim then
        return { e, s, i }, string.format("tide.logsumexp(%s, %d)", name(view:input(e, 1)), dim)
    end
    local a = made_by(view, view:input(i, 1), "add")
    local one = a and (number(view, a, 2) == 1 or number(view, a, 1) == 1)
    local x = one and made_by(view, view:input(a, 1), "exp")
    return x and { x, a, i }, x and string.format("tide.nn.functional.softplus(%s)", name(view:input(x, 1)))
end

-- (a - b)^2 or |a - b|, then mean or sum.
local function loss(view, i, name)
    local square = made_by(view, view:input(i, 1), "pow") or made_by(view, view:input(i, 1), "square")
        or made_by(view, view:input(i, 1), "mul") or made_by(view, view:input(i, 1), "abs")
    if not square or argument(view, i, 2)[1] ~= "nil" then
        return nil
    end
    local base = base_of(view, square)
    local good = base == "square" or base == "abs" or base == "pow" and number(view, square, 2) == 2
        or base == "mul" and view.nin[square] == 2 and same(view, view:input(square, 1), view:input(square, 2))
    local d = good and made_by(view, view:input(square, 1), "sub")
    if d and view.nin[d] == 2 and view.lay[view:input(d, 1)] == view.lay[view:input(d, 2)] then
        return { d, square, i }, string.format('tide.nn.functional.%s(%s, %s, {reduction = "%s"})', base == "abs" and "l1_loss" or "mse_loss",
            name(view:input(d, 1)), name(view:input(d, 2)), base_of(view, i))
    end
end

local function norm(view, i, name)
    local s = made_by(view, view:input(i, 1), "sum")
    local q = s and argument(view, s, 2)[1] == "nil" and (made_by(view, view:input(s, 1), "square") or made_by(view, view:input(s, 1), "pow")
        or made_by(view, view:input(s, 1), "mul"))
    if q and (base_of(view, q) == "square" or number(view, q, 2) == 2
        or view.nin[q] == 2 and same(view, view:input(q, 1), view:input(q, 2))) then
        return { q, s, i }, string.format("tide.linalg.vector_norm(%s)", name(view:input(q, 1)))
    end
end

-- (x - mean) / std over the last dim.
local function layer_norm(view, i, name)
    local d = view.nin[i] == 2 and made_by(view, view:input(i, 1), "sub")
    local m = d and view.nin[d] == 2 and (made_by(view, view:input(d, 2), "mean"))
    local born = view:lives()
    local s = m and born[view.obj[view:input(i, 2)]]
    if not s or s == 0 then
        return nil
    end
    local x = view:input(m, 1)
    local shape = view:layout(x).shape
    local calls, at = { m, d, i }, s
    for _ = 1, 3 do -- std, or sqrt(var + eps)
        calls[#calls + 1] = at
        local base = base_of(view, at)
        if base == "std" or base == "var" then
            if same(view, view:input(at, 1), x) and last_dim(view, m, view:layout(x)) == #shape then
                table.sort(calls)
                return calls, string.format("tide.nn.functional.layer_norm(%s, {%d})", name(x), shape[#shape])
            end
            return nil
        end
        at = view.nin[at] > 0 and born[view.obj[view:input(at, 1)]] or 0
        if at == 0 or base ~= "sqrt" and base ~= "add" then
            return nil
        end
    end
end

local function clamp(view, i, name)
    local other = base_of(view, i) == "clamp_min" and "clamp_max" or "clamp_min"
    local m = made_by(view, view:input(i, 1), other)
    local a, b = m and number(view, m, 2), m and number(view, i, 2)
    if a and b then
        local low, high = other == "clamp_min" and a or b, other == "clamp_min" and b or a
        local text = tide._require("advice.replay").number_text
        return { m, i }, string.format("tide.clamp(%s, %s, %s)", name(view:input(m, 1)), text(low), text(high))
    end
end

-- a + (b - a) * w
local function lerp(view, i, name)
    local m, _, other = maker_among(view, i, "mul")
    local d = m and other and maker_among(view, m, "sub")
    local w = d and number(view, m, 2)
    if w and view.nin[d] == 2 and same(view, view:input(d, 2), view:input(i, other)) then
        return { d, m, i }, string.format("tide.lerp(%s, %s, %s)", name(view:input(d, 2)), name(view:input(d, 1)),
            tide._require("advice.replay").number_text(w))
    end
end

local patterns = { add = { lerp, multiply_add, divide_add }, sub = { multiply_add }, mul = { silu }, div = { softmax, layer_norm },
    log = { log_softmax, log_of_sum }, mean = { loss }, sum = { loss }, sqrt = { norm }, clamp_min = { clamp }, clamp_max = { clamp } }

-- ---- in place ----

-- Three or more pointwise calls, each read by the next alone: from the second on they may write over what they read.
local function in_place(view, i, name, replay)
    local calls, at = { i }, i
    while #calls < 12 do
        local first = view.nin[at] > 0 and view:input(at, 1)
        local born = first and view:lives()[view.obj[first]]
        local good = born and born > 0 and view.sites[view.site[born]].kind.pointwise and not is_inplace(view, born)
            and #(view:readers()[view.obj[first]] or {}) == 1 and view.lay[first] == view.lay[view:result(at)]
            and view.sites[view.site[at]].kind.doc.inplace and argument(view, at, 1)[1] == "tensor"
        if not good then
            break
        end
        table.insert(calls, 1, born)
        at = born
    end
    if #calls < 3 then
        return nil
    end
    local text
    for k, j in ipairs(calls) do
        local texts = {}
        for m = 1, view.nin[j] do
            texts[m] = (m == 1 and text) or name(view:input(j, m))
        end
        local kind = view.sites[view.site[j]].kind
        text = replay.call_text(k > 1 and { base = kind.base, inplace = true } or kind, view.arguments[view.args[j]], texts)
        if not text then
            return nil
        end
    end
    return calls, text
end

-- ---- all ----

local function is_big(view, calls)
    for _, i in ipairs(calls) do
        for k = 1, view.nin[i] do
            if view.bytes(view:layout(view:input(i, k))) >= BIG then
                return true
            end
        end
    end
    return false
end

local function find(view, i, replay)
    local kind = view.sites[view.site[i]].kind
    if view.nin[i] == 0 or view.nout[i] ~= 1 or kind.inplace or view:is_view(i) then
        return nil
    end
    if kind.base ~= "sqrt" and kind.base ~= "log" and not is_big(view, { i }) then
        return nil
    end
    for _, pattern in ipairs(patterns[kind.base] or {}) do
        local name, list = namer(view)
        local calls, text = pattern(view, i, name)
        if calls and is_big(view, calls) then
            return { calls = calls, text = text, list = list, whole = true }
        end
    end
    if not kind.pointwise or view.recorded[i] == 1 or (view:readers()[view.obj[view:result(i)]] or {})[2] == nil and
        #(view:readers()[view.obj[view:result(i)]] or {}) == 1
        and view.sites[view.site[view:readers()[view.obj[view:result(i)]][1]]].kind.pointwise
        and not is_inplace(view, view:readers()[view.obj[view:result(i)]][1]) then
        return nil -- the chain goes on
    end
    local name, list = namer(view)
    local calls, text = in_place(view, i, name, replay)
    if calls and is_big(view, calls) then
        return { calls = calls, text = text, list = list }
    end
end

-- The chain as it was, call by call.
local function written(view, chain, replay)
    local lines, made, outer = {}, {}, {}
    for k, t in ipairs(chain.list) do
        outer[view.obj[t] .. ":" .. view.off[t] .. ":" .. view.lay[t]] = "x" .. k
    end
    for _, i in ipairs(chain.calls) do
        local texts = {}
        for k = 1, view.nin[i] do
            local t = view:input(i, k)
            texts[k] = made[view.obj[t]] or outer[view.obj[t] .. ":" .. view.off[t] .. ":" .. view.lay[t]]
            if not texts[k] then
                return nil
            end
        end
        local text = replay.call_text(view.sites[view.site[i]].kind, view.arguments[view.args[i]], texts)
        if not text then
            return nil
        end
        made[view.obj[view:result(i)]] = "r" .. i
        lines[#lines + 1] = string.format("local r%d <close> = %s", i, text)
    end
    return table.concat(lines, "\n")
end

local function build(view, chain, replay)
    local values = {}
    for k, t in ipairs(chain.list) do
        values["x" .. k] = replay.fresh(view:layout(t))
    end
    local text = written(view, chain, replay)
    return text and replay.compile(text, values), text and replay.compile("local r <close> = " .. chain.text, values)
end

local function text_for_people(chain)
    local letters = { "x", "y", "z", "w", "u", "v" }
    return (string.gsub(chain.text, "x(%d+)", function(k) return letters[tonumber(k)] end))
end

return function(view, add, replay)
    local found, order, covered = {}, {}, {}
    for i = view.known and view.n or 0, 1, -1 do
        local site = view.sites[view.site[i]]
        local worth = not covered[i] and (found[site] or site.cost > 0.01 * view.wall) and site.count >= LEAST
        local chain = worth and find(view, i, replay)
        if chain then
            local f = found[site]
            if not f then
                f = { site = site, chain = chain, count = 0, cost = 0 }
                found[site], order[#order + 1] = f, f
            end
            f.count = f.count + 1
            for _, j in ipairs(chain.calls) do
                covered[j] = true
                f.cost = f.cost + view.cost[j]
            end
        end
    end
    for _, f in ipairs(order) do
        if f.count >= LEAST and f.cost > 0.05 * view.wall then
            local gain = replay.gain(function() return build(view, f.chain, replay) end)
            local parts = {}
            for k, i in ipairs(f.chain.calls) do
                parts[k] = base_of(view, i)
            end
            local layout = view:layout(f.chain.list[1])
            if gain then
                add { kind = "fuse", site = f.site, count = f.count, cost = f.cost,
                    text = string.format("%s × (%s) over %s %s, a pass over memory each", view.count_text(f.count), table.concat(parts, ", "),
                        view.shape_text(layout), layout.dtype),
                    fix = text_for_people(f.chain), gain = gain, measured = true }
            end
        end
    end
end
