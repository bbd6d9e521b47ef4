-- advice/data.lua: steps that wait for data: files read, tables parsed, batches made between one step's work and the
-- next one's.
local tide = ...
local LEAST = 4

-- Spans that read, by line: the outermost of each, and such ranges of the user as say so.
local function reads(view)
    local groups, list = {}, {}
    for _, span in ipairs(view.spans) do
        local name = string.lower(span.name)
        local named = span.kind == "range" and (string.find(name, "data") or string.find(name, "load") or string.find(name, "batch") or string.find(name, "read"))
        local outer = view.spans[span.outer]
        if (span.kind == "data" or named) and not (outer and (outer.kind == "data" or outer.reads)) then
            span.reads = true
            local key = span.line or span.name
            local group = groups[key]
            if not group then
                group = { line = span.line, name = span.name, count = 0, cost = 0, kept = 0, last = -1 }
                groups[key], list[#list + 1] = group, group
            end
            group.cost = group.cost + span.stop - span.start
            group.count = group.count + 1
            if span.before > group.last then -- work was done since the last one
                group.kept = group.kept + 1
            end
            local last = span.before
            while last < view.n and view.start[last + 1] < span.stop do -- what it does itself is no step
                last = last + 1
            end
            group.last = last
        end
    end
    return list
end

return function(view, add)
    for _, group in ipairs(reads(view)) do
        if group.kept >= LEAST then
            add { kind = "data", line = group.line, count = group.count, cost = group.cost,
                text = string.format("%s × %s between steps, %.1f ms each: the work waits for it", view.count_text(group.count),
                    group.name, group.cost / group.count / 1e6),
                fix = "read it once in front of the loop and take rows of it: x[{{first, last}}]", gain = group.kept,
                measured = false }
        end
    end
end
