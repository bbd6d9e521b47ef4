-- advice/no_grad.lua: graphs that are recorded and that no backward goes through; losses summed with all their history.
local tide = ...
local names = tide._require "advice.names"
local LEAST = 16

-- ---- a sum that keeps every step's graph ----

-- Calls of a site that add to what it made the time before, while a graph is recorded and not used.
local function histories(view, site)
    local count, previous, first = 0, nil, nil
    for _, i in ipairs(site.calls) do
        if previous and view.recorded[i] == 1 and view.used[i] == 0 then
            for k = 1, view.nin[i] do
                if view.obj[view:input(i, k)] == previous then
                    count, first = count + 1, first or i
                    break
                end
            end
        end
        previous = view.nout[i] > 0 and view.obj[view:result(i)] or nil
    end
    return count, first
end

-- Was what is added made by a call that backward went through?
local function adds_used(view, i)
    local born = view:lives()
    for k = 1, view.nin[i] do
        local made = born[view.obj[view:input(i, k)]]
        if made and made > 0 and view.used[made] == 1 then
            return true
        end
    end
    return false
end

local function summed(view, add)
    local found = {}
    for _, site in ipairs(view.sites) do
        if (site.kind.base == "add" or site.kind.base == "sub") and site.count >= 8 then
            local count, first = histories(view, site)
            if count >= 8 and adds_used(view, first) then
                found[site] = true
                local cost = 0
                for i = 1, view.n do
                    cost = cost + (view.recorded[i] == 1 and view.cost[i] + view.back[i] or 0)
                end
                local line = names.line(site)
                local loss = string.match(line, "%+%s*([%a_][%w_]*)") or "loss"
                add { kind = "no_grad", site = site, count = count, cost = cost,
                    text = string.format("%s losses summed with their history: every step's graph stays, and memory grows",
                        view.count_text(count)), fix = string.format("%s:item() or %s:detach() in the sum", loss, loss), gain = 1.2,
                    measured = false }
            end
        end
    end
    return found
end

-- ---- a graph for nothing ----

-- Lines whose graphs backward goes through at other times: a network that is trained and evaluated.
local function trained_lines(view)
    local set = {}
    for i = 1, view.n do
        if view.recorded[i] == 1 and view.used[i] == 1 then
            set[view.sites[view.site[i]].line or ""] = true
        end
    end
    return set
end

-- The line that goes on with what such lines made where nothing is trained: there the mode is to stand.
local function reader_of(view, trained)
    local counts, best, born, seen = {}, nil, view:lives(), {}
    local function count(line, obj)
        local made = obj and born[obj]
        if line and not trained[line] and made and made > 0 and view.recorded[made] == 1 and view.used[made] == 0 and not seen[made] then
            seen[made] = true
            counts[line] = (counts[line] or 0) + 1
            best = best and counts[best] >= counts[line] and best or line
        end
    end
    for i = 1, view.n do
        for k = 1, view.recorded[i] == 0 and view.nin[i] or 0 do
            count(view.sites[view.site[i]].line, view.obj[view:input(i, k)])
        end
    end
    for _, span in ipairs(view.spans) do
        local i = span.kind == "copy" and span.before or 0
        count(i > 0 and span.line or nil, i > 0 and view.nout[i] > 0 and view.obj[view:result(i)])
    end
    return best
end

-- How many, their cost, the site that costs most, and the line that the mode belongs to. Lines of which nothing is ever
-- trained come first.
local function unused(view, except)
    local cost, count, by_site, trained = 0, 0, {}, trained_lines(view)
    local best, most, apart, apart_most = nil, 0, nil, 0
    for i = 1, view.n do
        local site = view.sites[view.site[i]]
        if view.recorded[i] == 1 and view.used[i] == 0 and not except[site] then
            cost, count = cost + view.cost[i], count + 1
            by_site[site] = (by_site[site] or 0) + view.cost[i]
            if by_site[site] > most then
                best, most = site, by_site[site]
            end
            if not trained[site.line or ""] and by_site[site] > apart_most then
                apart, apart_most = site, by_site[site]
            end
        end
    end
    local line = apart and apart.line or reader_of(view, trained) or best and best.line
    return count, cost, best, line
end

local function build(view, site, replay)
    local i = site.calls[1]
    local values, texts, plain = {}, {}, {}
    for k = 1, view.nin[i] do
        local t = view:input(i, k)
        texts[k] = "x" .. k
        values[texts[k]] = replay.fresh(view:layout(t))
        plain[texts[k]] = values[texts[k]]
        if view.grad[t] == 1 then
            values[texts[k]] = values[texts[k]]:clone():requires_grad_(true)
        end
    end
    local text = replay.call_text(site.kind, view.arguments[view.args[i]], texts)
    local n = math.max(1, math.min(500, 20e6 // (site.cost / site.count)) // 1)
    text = text and string.format("for k = 1, %d do local r = %s end", n, text)
    return text and replay.compile("local _ <close> = tide.enable_grad()\n" .. text, values), text and replay.compile(text, plain)
end

return function(view, add, replay)
    local except = view.known and summed(view, add) or {}
    local count, cost, site, line = unused(view, except)
    if count >= LEAST and cost > 0.05 * view.wall and site.name then
        local gain = view.known and replay.gain(function() return build(view, site, replay) end)
        add { kind = "no_grad", line = line, count = count, cost = cost,
            text = string.format("%s calls record a graph that no backward goes through", view.count_text(count)),
            fix = "local _ <close> = tide.no_grad() in front of them, or tide.no_grad(function() … end)",
            gain = math.max(gain or 1.3, 1.01), measured = gain and true or false, least = 1.0 }
    end
end
