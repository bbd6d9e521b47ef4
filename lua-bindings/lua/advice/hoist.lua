-- advice/hoist.lua: the same operator on the same unchanged tensors in every iteration: once in front of the loop will
-- do. Calls are numbered by what they compute: operator, arguments, and the numbers of what they read.
local tide = ...
local names = tide._require "advice.names"

local LEAST = 4
local MOST_INPUTS = 16 -- so many are kept of a call: whether more were the same is not known
-- Casts and copies of layout are other kinds' matter.
local left_out = { to = true, float = true, double = true, half = true, bfloat16 = true, long = true, int = true, contiguous = true,
    clone = true, empty = true, empty_like = true, detach = true, new_empty = true, to_copy = true }

-- One number out of two, of 64 bits: so many that no two pairs meet in a recording.
local function mix(a, b)
    local h = (a * 0x9E3779B97F4A7C15 + b) * 0x2545F4914F6CDD1D
    return h ~ (h >> 32)
end

-- By tensor: which it is, in which version, and which part of it.
local function keys_of(view)
    local keys, obj, ver, off, lay = {}, view.obj, view.ver, view.off, view.lay
    for t = 1, #obj do
        keys[t] = mix(mix(mix(obj[t], ver[t]), off[t]), lay[t])
    end
    return keys
end

-- Storages that a call writes in place.
local function written(view)
    local set = {}
    for i = 1, view.n do
        if view.sites[view.site[i]].kind.inplace and view.nout[i] > 0 then
            set[view.obj[view:result(i)]] = true
        end
    end
    return set
end

-- By call: the number of what it computes, where that can come again; and how often each number comes.
local function number_calls(view, keys)
    local values, numbers, counts = {}, {}, {}
    for i = 1, view.n do
        local site = view.sites[view.site[i]]
        if not site.kind.inplace and not site.kind.random and view.nout[i] > 0 and view.args[i] > 0 and view.nin[i] < MOST_INPUTS then
            local number = mix(view.site[i], view.args[i])
            for k = 1, view.nin[i] do
                local key = keys[view.first[i] + k]
                number = mix(number, values[key] or key)
            end
            numbers[i] = number
            counts[number] = (counts[number] or 0) + 1
            for k = 1, view.nout[i] do
                values[keys[view:result(i, k)]] = mix(number, k)
            end
        end
    end
    return numbers, counts
end

-- Numbers whose tensors go into something that is new each time, if by way of others that come again. Backwards, so that
-- readers come before what they read.
local function reaches_new(view, keys, numbers, counts)
    local useful, wanted, copies = {}, {}, view:copies()
    for i = view.n, 1, -1 do
        local number = numbers[i]
        local again = number and counts[number] >= LEAST
        if again then
            for k = 1, view.nout[i] do
                useful[number] = useful[number] or wanted[keys[view:result(i, k)]]
            end
            local next_number = numbers[i + 1]
            if copies[i] and i < view.n and not view:is_view(i + 1) and not (next_number and counts[next_number] >= LEAST) then
                useful[number] = true -- a number that goes on in Lua, and new work behind it
            end
        end
        if not again or useful[number] then
            for k = 1, view.nin[i] do
                wanted[keys[view.first[i] + k]] = true
            end
        end
    end
    return useful
end

-- By call: the next one of the same number.
local function next_of(view, numbers)
    local nxt, seen = {}, {}
    for i = view.n, 1, -1 do
        local number = numbers[i]
        if number then
            nxt[i], seen[number] = seen[number], i
        end
    end
    return nxt
end

-- Of what is made from nothing each one may be wanted: does it end before the next one comes?
local function is_short_lived(view, i, nxt, last)
    local stop = last[view.obj[view:result(i)]]
    return stop ~= nil and (nxt[i] == nil or nxt[i] > stop)
end

-- Looks in front of a call that come again with it: they are as needless.
local function look_cost(view, i, numbers, useful)
    local cost, j = 0, i - 1
    while j > 0 and numbers[j] and useful[numbers[j]] and view:is_view(j) do
        cost, j = cost + view.cost[j], j - 1
    end
    return cost
end

local function study(view)
    local keys = keys_of(view)
    local numbers, counts = number_calls(view, keys)
    local _, last = view:lives()
    local nxt = next_of(view, numbers)
    local useful, wrote, found, order = reaches_new(view, keys, numbers, counts), written(view), {}, {}
    for i = 1, view.n do
        local number, site = numbers[i], view.sites[view.site[i]]
        if number and useful[number] and view.recorded[i] == 0 and not left_out[site.kind.base] and not view:is_view(i)
            and not wrote[view.obj[view:result(i)]]
            and (view.nin[i] > 0 or is_short_lived(view, i, nxt, last)) then
            local f = found[site]
            if not f then
                f = { site = site, count = 0, cost = 0, values = 0, seen = {}, example = i }
                found[site], order[#order + 1] = f, f
            end
            f.count, f.cost = f.count + 1, f.cost + view.cost[i] + look_cost(view, i, numbers, useful)
            f.values = f.values + (f.seen[number] and 0 or 1)
            f.seen[number] = true
        end
    end
    return order
end

local function build(view, i, n, replay)
    local values, texts = { n = n }, {}
    for k = 1, view.nin[i] do
        texts[k] = "x" .. k
        values[texts[k]] = replay.fresh(view:layout(view:input(i, k)))
    end
    local text = replay.call_text(view.sites[view.site[i]].kind, view.arguments[view.args[i]], texts)
    return text and replay.compile("for k = 1, n do local r <close> = " .. text .. " end", values),
        text and replay.compile("local r <close> = " .. text, values)
end

return function(view, add, replay)
    for _, f in ipairs(view.known and study(view) or {}) do
        if f.cost > 0.05 * view.wall and f.count >= LEAST * f.values then
            local times = f.count // f.values
            local n = math.max(2, math.min(times, 100, 30e6 // (f.cost / f.count)) // 1)
            local gain = replay.gain(function() return build(view, f.example, n, replay) end)
            local layout = view.nin[f.example] > 0 and view:layout(view:input(f.example, 1)) or view:layout(view:result(f.example))
            local reader = (view:readers()[view.obj[view:result(f.example)]] or {})[1]
            local last = not reader or view.sites[view.site[reader]].line ~= f.site.line
            local target = last and names.assigned(f.site)
            add { kind = "hoist", site = f.site, count = f.count, cost = f.cost,
                text = string.format("%s × %s of the same %s %s, unchanged", view.count_text(f.count), f.site.name,
                    view.shape_text(layout), layout.dtype),
                fix = target and string.format("local %s = … once, in front of the loop", string.match(target, "[%w_]+$"))
                    or string.format("take %s out of the loop: local y = … in front of it", f.site.kind.base),
                gain = gain and gain * times / n or times, measured = gain ~= nil }
        end
    end
end
