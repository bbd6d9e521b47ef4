-- advice/data.lua: steps that wait for data: files read, tables parsed, batches made between one step's work and the
-- next one's.
local tide = ...
local LEAST = 4

-- Is call i made within span k, or within one that is within it?
local function is_within(view, i, k)
    local at = view.outer[i]
    while at ~= 0 and at ~= k do
        at = view.spans[at].outer
    end
    return at == k
end

-- Spans that read, by line: the outermost of each, and such ranges of the user as say so.
local function reads(view)
    local groups, list = {}, {}
    for k, span in ipairs(view.spans) do
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
            while last < view.n and is_within(view, last + 1, k) do -- what it does itself is no step
                last = last + 1
            end
            group.last = last
        end
    end
    return list
end

local READ_ONCE = "read it once in front of the loop and take rows of it: x[{{first, last}}]"
local MORE_WORKERS = "more of the loader's num_workers, as far as loader:explain() expects something of them; it names the stage that takes longest"

return function(view, add)
    for _, group in ipairs(reads(view)) do
        if group.kept >= LEAST then
            add { kind = "data", line = group.line, count = group.count, cost = group.cost,
                text = string.format("%s × %s between steps, %.1f ms each: the work waits for it", view.count_text(group.count),
                    group.name, group.cost / group.count / 1e6),
                fix = group.name == "DataLoader: wait" and MORE_WORKERS or READ_ONCE, gain = group.kept, measured = false }
        end
    end
end
