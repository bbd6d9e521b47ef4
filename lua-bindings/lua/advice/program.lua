-- advice/program.lua: the body of a loop as a program of Lua: once as a loop over fresh tensors, once over all of them
-- at once, for replays; and as an expression, for people.
local tide = ...
local program = {}

-- Calls `see(position, call, kind, slots)` for each call of the body that is no look into a tensor.
function program.each(view, loop, see)
    local sources = view:sources(loop)
    for position = 1, loop.period do
        local i = view:example(loop, position)
        if not view:is_view(i) then
            see(position, i, view.sites[loop.body[position]].kind, sources[position])
        end
    end
end

-- The texts of a call's tensors: name(slot, position, k).
function program.texts(slots, position, name)
    local texts = {}
    for k, slot in ipairs(slots) do
        texts[k] = slot.class == "body" and "r" .. slot.from or name(slot, position, k)
    end
    return texts
end

-- How many repetitions a replay takes, of so many.
function program.reps(view, loop, mean)
    local each = loop.cost / loop.reps
    return math.max(4, math.min(mean, 2000, 20e6 // math.max(each, 1)) // 1)
end

return program
