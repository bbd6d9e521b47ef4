-- advice/small_batch.lua: products with the same matrix, one row at a time: all rows at once read it once.
local tide = ...
local names = tide._require "advice.names"
local LEAST = 16

-- Which argument is the matrix and which the row.
local places = { mm = { 2, 1 }, matmul = { 2, 1 }, linear = { 2, 1 }, mv = { 1, 2 }, addmv = { 2, 3 }, addmm = { 3, 2 } }

-- The row and the matrix of a call with one row; nil: it has more.
local function parts_of(view, i)
    local base = view.sites[view.site[i]].kind.base
    local place = places[base]
    if not place or view.nin[i] < math.max(place[1], place[2]) then
        return nil
    end
    local matrix, row = view:input(i, place[1]), view:input(i, place[2])
    if base == "matmul" and #view:layout(row).shape == 2 and #view:layout(matrix).shape == 1 then
        matrix, row = row, matrix
    end
    local m, r = view:layout(matrix), view:layout(row)
    local columns = r.shape[#r.shape] or 1
    if #m.shape == 2 and m.numel >= 64 and #r.shape <= 2 and (r.numel == columns or r.numel == r.shape[1]) and columns > 0 then
        return row, matrix
    end
end

-- ---- what could be done for all rows at once ----

local MOST_MATRICES = 8

-- The calls of a site by matrix (those of one line may be layers of a network), in order of their first call.
local function by_matrix(view, site)
    local groups, list = {}, {}
    for _, i in ipairs(site.calls) do
        local row, matrix = parts_of(view, i)
        local key = row and view.obj[matrix] .. ":" .. view.ver[matrix]
        if key and not groups[key] and #list < MOST_MATRICES then
            groups[key] = { calls = {} }
            list[#list + 1] = groups[key]
        end
        local calls = key and groups[key] and groups[key].calls
        if calls then
            calls[#calls + 1] = i
        end
    end
    return list
end

-- Looks in front of a product that are for its row alone.
local function row_cost(view, i, after)
    local obj, cost = view.obj[parts_of(view, i)], 0
    for j = i - 1, math.max(after + 1, i - 4), -1 do
        if view.nout[j] == 0 or view.obj[view:result(j)] ~= obj or not view:is_view(j) then
            break
        end
        cost = cost + view.cost[j]
    end
    return cost
end

-- Is this call's result in something else than these products made (`from`)?
local function writes_others(view, i, from)
    return view.sites[view.site[i]].kind.inplace and (view.nout[i] == 0 or not from[view.obj[view:result(i)]])
end

-- Products of these calls whose rows don't come from one another: how many, one of them, what they cost with the calls
-- that go on with one row's results alone, which are noted in `claimed`, and how many of those there are.
local function study(view, calls, claimed)
    local copies, from = view:copies(), {} -- by storage: of which product it is, 0 where of several
    local count, cost, example, nth, more, apart = 0, 0, nil, 0, 0, calls[2] and calls[2] - calls[1] or 1
    local last = math.min(view.n, calls[#calls] + apart - 1)
    for i = calls[1], last do
        local is_product, origin = i == calls[nth + 1], nil
        for k = 1, view.nin[i] do
            local of = from[view.obj[view:input(i, k)]]
            origin = of and (origin and origin ~= of and 0 or of) or origin
        end
        if is_product then
            nth = nth + 1
            local row = parts_of(view, i)
            if not from[view.obj[row]] and not claimed[i] then
                count, example = count + 1, i
                cost = cost + view.cost[i] + view.back[i] + (copies[i] or 0) + row_cost(view, i, nth > 1 and calls[nth - 1] or 0)
            end
            origin = origin and 0 or nth
        elseif origin == nth and not writes_others(view, i, from) then
            cost = cost + view.cost[i] + view.back[i] + (copies[i] or 0)
            claimed[i], more = true, more + 1
        elseif origin then
            origin = 0
        end
        for k = 1, origin and view.nout[i] or 0 do
            from[view.obj[view:result(i, k)]] = origin
        end
    end
    return count, cost, example, more
end

local function distinct_rows(view, calls)
    local seen, n = {}, 0
    for k = 1, math.min(#calls, 64) do
        local row = parts_of(view, calls[k])
        local key = view.obj[row] .. ":" .. view.off[row] .. ":" .. view.ver[row]
        n = n + (seen[key] and 0 or 1)
        seen[key] = true
    end
    return n
end

-- A product of each row, and so many calls that go on with it, against all rows at once.
local function build(view, i, count, more, apart, replay)
    local row, matrix = parts_of(view, i)
    local width = view:layout(row).numel
    local each = math.max(view.cost[i], 500)
    local n = math.max(4, math.min(count, 512, 30e6 // each) // 1)
    local values = { n = n, w = replay.fresh(view:layout(matrix)), x = replay.fresh { shape = { n, width }, numel = n * width,
        dtype = view:layout(row).dtype } }
    local m = view:layout(matrix).shape
    local base = view.sites[view.site[i]].kind.base
    local piece, pieces = "list[k]", "tide.stack(list)"
    if apart then -- tensors of their own are put together first; no call made those of lists of Lua
        values.list = replay.fresh_list(view:layout(row), n)
        if view:lives()[view.obj[row]] == 0 then
            for k, x in ipairs(values.list) do
                values.list[k] = x:tolist()
            end
            piece, pieces = "tide.tensor(list[k])", "tide.tensor(list)"
        end
    end
    local turned = base == "mv" or base == "addmv" or base == "linear" or m[1] ~= width
    local one = turned and string.format("w:mv(%s)", apart and piece .. ":view{-1}" or "x[k]")
        or string.format("%s:mm(w)", apart and piece .. ":view{1, -1}" or "x[{{k, k}}]")
    local all = apart and pieces .. ":view{n, -1}" or "x"
    local on = string.rep(" r = r:relu()", math.min(more // count, 16))
    return replay.compile("for k = 1, n do local r = " .. one .. on .. " end", values),
        replay.compile("local r = " .. all .. ":mm(" .. (turned and "w:t()" or "w") .. ")" .. on, values)
end

local function groups_of(view)
    local list = {}
    for _, site in ipairs(view.known and view.sites or {}) do
        if places[site.kind.base] and site.count >= LEAST then
            for _, group in ipairs(by_matrix(view, site)) do
                if #group.calls >= LEAST then
                    group.site = site
                    list[#list + 1] = group
                end
            end
        end
    end
    table.sort(list, function(a, b) return a.calls[1] < b.calls[1] end)
    return list
end

return function(view, add, replay)
    local claimed = {}
    for _, group in ipairs(groups_of(view)) do
        local site = group.site
        local count, cost, example, more = 0, 0, nil, 0
        if not claimed[group.calls[1]] or not claimed[group.calls[#group.calls]] then
            count, cost, example, more = study(view, group.calls, claimed)
        end
        if count >= LEAST and cost > 0.05 * view.wall and distinct_rows(view, group.calls) >= LEAST / 2 then
            local row, other = parts_of(view, group.calls[1]), parts_of(view, group.calls[2])
            local apart = view.obj[row] ~= view.obj[other]
            local gain = replay.gain(function() return build(view, example, count, more, apart, replay) end)
            local _, matrix = parts_of(view, example)
            local known = names.rows({ site })
            add { kind = "small_batch", site = site, count = count, cost = cost,
                text = string.format("%s × %s of one row with the same %s matrix", view.count_text(count), site.name,
                    view.shape_text(view:layout(matrix))),
                fix = string.format("all rows at once: %s", site.kind.base == "linear" and "linear(rows, w), rows of shape (n, k)"
                    or (known[1] or "rows") .. (site.kind.base == "mm" and ":mm(w)" or ":matmul(w:t())")),
                gain = gain or 4, measured = gain ~= nil }
        end
    end
end
