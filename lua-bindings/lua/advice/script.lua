-- advice/script.lua: pointwise operators that follow one another, the same lines again and again: as a function of
-- tide.jit.script they are one kernel. The gain is that of a graph of these very calls.
local tide = ...
local program = tide._require "advice.program"

local LEAST_CALLS, LEAST_TIMES, MOST_CALLS = 4, 16, 48

-- A call that a kernel may be made of: of one shape, into a new tensor, not recorded for backward.
local function is_part(view, i)
    local kind = view.sites[view.site[i]].kind
    if not kind.pointwise or kind.inplace or kind.random or view.nin[i] == 0 or view.nout[i] ~= 1 or view.recorded[i] == 1 then
        return false
    end
    local made = view:layout(view:result(i))
    return made.dtype == "float32" or made.dtype == "float64" or made.dtype == "bool"
end

-- How many calls from i on are a chain: each of the first one's shape, and reading what the chain made.
local function length_at(view, i)
    local shape, made, n = view.tuple_text(view:layout(view:result(i))), {}, 0
    while i + n <= view.n and n < MOST_CALLS and is_part(view, i + n) do
        local j = i + n
        local linked = n == 0
        for k = 1, view.nin[j] do
            linked = linked or made[view.obj[view:input(j, k)]]
        end
        if not linked or view.tuple_text(view:layout(view:result(j))) ~= shape then
            break
        end
        made[view.obj[view:result(j)]] = true
        n = n + 1
    end
    return n
end

-- After how many of these n calls the sites come again; n where they don't.
local function period_of(view, i, n)
    for period = 1, n - 1 do
        local k = 0
        while k + period < n and view.site[i + k] == view.site[i + k + period] do
            k = k + 1
        end
        if k + period == n then
            return period
        end
    end
    return n
end

-- How many calls from i on are a chain worth a kernel: a loop whose trips read each other's results is one chain a trip.
local function chain_at(view, i)
    local n = is_part(view, i) and length_at(view, i) or 0
    if n < MOST_CALLS then
        return n, n
    end
    local period = period_of(view, i, n)
    return period < LEAST_CALLS and 0 or period, period < LEAST_CALLS and n or period
end

-- Chains by the sites of their calls, in the order of first sight: {from, n, count, cost}.
local function find_chains(view)
    local known, order, i = {}, {}, 1
    while i <= view.n do
        local n, step = chain_at(view, i)
        if n >= LEAST_CALLS then
            local sites, cost = {}, 0
            for k = 0, n - 1 do
                sites[k + 1] = view.site[i + k]
                cost = cost + view.cost[i + k]
            end
            local key = table.concat(sites, ",")
            local chain = known[key]
            if not chain then
                chain = { from = i, n = n, count = 0, cost = 0 }
                known[key], order[#order + 1] = chain, chain
            end
            chain.count, chain.cost = chain.count + 1, chain.cost + cost
        end
        i = i + math.max(step, 1)
    end
    return order
end

-- The calls as the body of a function of x1, x2, ...: its text, the layouts of its parameters; nil: they can't be written.
local function body_of(view, chain, replay)
    local made, outer, layouts, lines, results = {}, {}, {}, {}, {}
    local last = chain.from + chain.n - 1
    for i = chain.from, last do
        local texts = {}
        for k = 1, view.nin[i] do
            local t = view:input(i, k)
            local key = view.obj[t] .. ":" .. view.off[t] .. ":" .. view.lay[t]
            if not made[view.obj[t]] and not outer[key] then
                layouts[#layouts + 1] = view:layout(t)
                outer[key] = "x" .. #layouts
            end
            texts[k] = made[view.obj[t]] or outer[key]
        end
        local text = replay.call_text(view.sites[view.site[i]].kind, view.arguments[view.args[i]], texts)
        if not text then
            return nil
        end
        local name = "r" .. i
        made[view.obj[view:result(i)]] = name
        lines[#lines + 1] = string.format("local %s = %s", name, text)
        local kept = i == last
        for _, reader in ipairs(view:readers()[view.obj[view:result(i)]] or {}) do
            kept = kept or reader > last
        end
        results[#results + 1] = kept and name or nil
    end
    lines[#lines + 1] = "return " .. table.concat(results, ", ")
    return table.concat(lines, "\n"), layouts
end

-- The calls and the graph of them, a few times each.
local function build(view, chain, replay)
    local body, layouts = body_of(view, chain, replay)
    if not body then
        return nil
    end
    local inputs, names = {}, {}
    for k, layout in ipairs(layouts) do
        inputs[k], names[k] = replay.fresh(layout), "x" .. k
    end
    local eager = replay.compile(string.format("return function(%s)\n%s\nend", table.concat(names, ", "), body), {})()
    local scripted = tide.jit.trace(eager, inputs, { check = false })
    local times = program.reps(view, { cost = chain.cost, reps = chain.count }, 64)
    local function repeated(f)
        return function()
            for _ = 1, times do
                f(table.unpack(inputs))
            end
        end
    end
    local slow, fast = repeated(eager), repeated(scripted)
    for _ = 1, 3 do -- until it is compiled: what is raced is what stays
        fast()
    end
    return slow, fast
end

local function lines_text(view, chain)
    local first, last = math.huge, 0
    for i = chain.from, chain.from + chain.n - 1 do
        local number = view.sites[view.site[i]].number
        if not number then
            return ""
        end
        first, last = math.min(first, number), math.max(last, number)
    end
    return first == last and string.format(" on line %d", first) or string.format(" on lines %d to %d", first, last)
end

-- "(mul, add, tanh)", of long chains the first ones.
local function names_text(view, chain)
    local parts = {}
    for i = chain.from, chain.from + math.min(chain.n, 6) - 1 do
        parts[#parts + 1] = view.sites[view.site[i]].kind.base
    end
    parts[#parts + 1] = chain.n > 6 and string.format("… %d in all", chain.n) or nil
    return table.concat(parts, ", ")
end

-- Bytes that the calls read and write.
local function bytes_of(view, chain)
    local bytes = 0
    for i = chain.from, chain.from + chain.n - 1 do
        for t = view.first[i] + 1, view.first[i] + view.nin[i] + view.nout[i] do
            bytes = bytes + view.bytes(view:layout(t))
        end
    end
    return bytes
end

local function size_text(bytes)
    return bytes >= 1e6 and string.format("%.1f MB", bytes / 1e6) or bytes >= 1e3 and string.format("%.1f kB", bytes / 1e3)
        or string.format("%d bytes", bytes)
end

return function(view, add, replay)
    for _, chain in ipairs(view.known and find_chains(view) or {}) do
        if chain.count >= LEAST_TIMES and chain.cost > 0.05 * view.wall then
            local gain = replay.gain(function() return build(view, chain, replay) end)
            if gain then
                local layout = view:layout(view:result(chain.from))
                add { kind = "script", site = view.sites[view.site[chain.from]], count = chain.count, cost = chain.cost,
                    text = string.format("%s × (%s)%s over %s %s, %s read and written each time", view.count_text(chain.count),
                        names_text(view, chain), lines_text(view, chain), view.shape_text(layout), layout.dtype,
                        size_text(bytes_of(view, chain))),
                    fix = "one kernel of them: local f = tide.jit.script(function(…) … end) once, f(…) here", gain = gain, measured = true }
            end
        end
    end
end
