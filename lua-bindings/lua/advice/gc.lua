-- advice/gc.lua: the share that collecting garbage takes.
local tide = ...
local LEAST = 4

local function asked(view, add)
    for _, group in ipairs(view:spans_by_line("collector")) do
        if group.name == "collectgarbage" and group.count >= LEAST then
            add { kind = "gc", line = group.line, count = group.count, cost = group.cost,
                text = string.format("%s × collectgarbage(), %.1f ms each", view.count_text(group.count), group.cost / group.count / 1e6),
                fix = "leave it out: Tide collects when tensors need the memory; `local t <close> = …` lets go of one at once",
                gain = group.count, measured = false }
        end
    end
end

-- The site that makes most memory: what a collection is for.
local function dearest(view)
    local best, most = nil, 0
    for _, site in ipairs(view.sites) do
        local bytes = 0
        for _, i in ipairs(site.calls) do
            if view.nout[i] > 0 and not view:is_view(i) and not site.kind.inplace then
                bytes = bytes + view.bytes(view:layout(view:result(i)))
            end
        end
        if bytes > most then
            best, most = site, bytes
        end
    end
    return best, most
end

return function(view, add)
    asked(view, add)
    local count, cost, longest = 0, 0, 0
    for _, span in ipairs(view.spans) do
        local outer = view.spans[span.outer]
        if span.kind == "collector" and span.name ~= "collectgarbage" and not (outer and outer.kind == "collector") then
            local spent = span.stop - span.start
            count, cost, longest = count + 1, cost + spent, math.max(longest, spent)
        end
    end
    cost = cost - longest -- one collection may sweep what earlier work left; nobody pays that again
    if count >= 2 * LEAST and cost > 0.15 * view.wall then
        local site, bytes = dearest(view)
        add { kind = "gc", site = site, line = nil, count = count, cost = cost,
            text = string.format("%s collections, most for what is made here (%.0f MiB in all)", view.count_text(count), bytes / 2 ^ 20),
            fix = "let go at once: `local t <close> = …`, or write in place or with out=; keep fewer Lua tables alive",
            gain = 4, measured = false }
    end
end
