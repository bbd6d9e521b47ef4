-- advice/elementwise_loop.lua: elements of a tensor that are read or written one by one from Lua.
local tide = ...
local program, names = tide._require "advice.program", tide._require "advice.names"

local LEAST_REPS = 64

local function tensors_are_single(view, i)
    for k = 1, view.nin[i] + view.nout[i] do
        if view:layout(view.first[i] + k).numel ~= 1 then
            return false
        end
    end
    return true
end

-- Where a chain of looks begins.
local function first_look(view, i)
    while view:goes_on(i) do
        i = i - 1
    end
    return i
end

-- What looking at elements costs, whether some are written, and the site that costs most; nil: no elements are taken.
local function study(view, loop)
    local taken, cost, writes, reads, best, most, base = false, 0, false, false, nil, -1, nil
    for position = 1, loop.period do
        local i = view:example(loop, position)
        local single = view:is_view(i) and view.nout[i] == 1 and view:layout(view:result(i)).numel == 1
        local kind = view.sites[loop.body[position]].kind
        local varies = view:is_view(i) and view:varies(loop, position)
        local element = single and varies
        if varies and not single and not view:goes_on(i + 1) then
            return nil -- rows: another kind's matter
        end
        if element and view:layout(view:input(i, 1)).numel < 2 then
            element = false
        end
        if element then
            taken, base = true, base or view:layout(view:input(first_look(view, i), 1))
        end
        if view:is_view(i) or tensors_are_single(view, i) then
            local c = view:position_cost(loop, position)
            cost = cost + c
            if c > most then
                best, most = view.sites[loop.body[position]], c
            end
            writes = writes or kind.inplace
            reads = reads or element and not kind.inplace
        end
    end
    return taken and { cost = cost, writes = writes, reads = reads, site = best, base = base }
end

local function has_copies(view, loop)
    local copies, segment = view:copies(), loop.segments[1]
    for i = segment.from, segment.from + loop.period - 1 do
        if copies[i] then
            return true
        end
    end
    return false
end

-- With the little that a script does with each element.
local function build_read(n, replay, dtype)
    local x = replay.fresh { shape = { n }, numel = n, dtype = dtype, dense = true }
    local use = " if v > 1 then s = s + v elseif v < s then m = m + 1 end end"
    return replay.compile("local s, m = 0, 0\nfor k = 1, n do local v = x[k]:item()" .. use, { n = n, x = x }),
        replay.compile("local s, m = 0, 0\nfor _, v in ipairs(x:tolist()) do" .. use, { n = n, x = x })
end

local function build_write(n, replay, dtype)
    local x = replay.fresh { shape = { n }, numel = n, dtype = dtype, dense = true }
    return replay.compile("for k = 1, n do x[k] = k % 7 end", { n = n, x = x }),
        replay.compile("local list = {}\nfor k = 1, n do list[k] = k % 7 end\nreturn tide.tensor(list, {dtype = x.dtype})",
            { n = n, x = x })
end

local function fix_of(view, loop, found, copies)
    local sites = {}
    for position = 1, loop.period do
        sites[position] = view.sites[loop.body[position]]
    end
    local known, target = names.rows(sites), names.target(found.site)
    local x = found.writes and target or known[1] or "x"
    if found.writes and not copies and target and known[1] and known[1] ~= target then
        return string.format("one operator over all of it: %s = f(%s)", target, known[1])
    elseif found.writes then
        return string.format("fill a table in Lua, then %s = tide.tensor(table); or one operator over all of it", x)
    elseif copies then
        return string.format("local list = %s:tolist(), and list%s in the loop; or one operator over all of it", x,
            #found.base.shape == 1 and "[k]" or string.sub("[i][j][k][l]", 1, 3 * #found.base.shape))
    end
    return string.format("one operator over all of %s instead of one for each element", x)
end

return function(view, add, replay)
    for _, loop in ipairs(view.known and view:loops() or {}) do
        local found = loop.reps >= LEAST_REPS and loop.cost > 0.05 * view.wall and study(view, loop)
        loop.elements = found and true or nil
        if found then
            local n = math.min(loop.reps, 2000)
            local dtype = found.base and found.base.dtype or "float32"
            local make = found.writes and build_write or build_read
            local gain = replay.gain(function() return make(n, replay, dtype) end)
            local copies = has_copies(view, loop)
            add { kind = "elementwise_loop", site = found.site, count = loop.reps, cost = found.cost,
                text = string.format("%s × one element of %s %s %s", view.count_text(loop.reps), view.shape_text(found.base),
                    found.base.dtype, found.writes and "written" or copies and "read" or "worked on"),
                fix = fix_of(view, loop, found, copies), gain = gain or 10, measured = gain ~= nil }
        end
    end
end
