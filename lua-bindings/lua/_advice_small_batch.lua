-- _advice_small_batch.lua: products with the same matrix, one row at a time: all rows at once read it once.
local tide = ...
local names = tide._advice_names
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

-- Calls of the site with one matrix one after the other whose rows don't come from one another: how many, cost, one.
local function study(view, site)
    local tainted, count, cost, example, last_matrix = {}, 0, 0, nil, nil
    local calls, at = {}, 1
    for _, i in ipairs(site.calls) do
        calls[i] = true
    end
    for i = site.calls[1], site.calls[#site.calls] do
        local dirty = false
        for k = 1, view.nin[i] do
            dirty = dirty or tainted[view.obj[view:input(i, k)]]
        end
        if calls[i] then
            local row, matrix = parts_of(view, i)
            local key = row and view.obj[matrix] .. ":" .. view.ver[matrix]
            if row and key == last_matrix and not tainted[view.obj[row]] then
                count, cost, example = count + 1, cost + view.cost[i] + view.back[i], i
            end
            last_matrix, dirty = key, true
        end
        for k = 1, dirty and view.nout[i] or 0 do
            tainted[view.obj[view:result(i, k)]] = true
        end
        at = at + 1
    end
    return count, cost, example
end

local function distinct_rows(view, site)
    local seen, n = {}, 0
    for k = 1, math.min(#site.calls, 64) do
        local row = parts_of(view, site.calls[k])
        if row then
            local key = view.obj[row] .. ":" .. view.off[row] .. ":" .. view.ver[row]
            n = n + (seen[key] and 0 or 1)
            seen[key] = true
        end
    end
    return n
end

local function build(view, i, count, replay)
    local row, matrix = parts_of(view, i)
    local width = view:layout(row).numel
    local each = math.max(view.cost[i], 500)
    local n = math.max(4, math.min(count, 512, 30e6 // each) // 1)
    local values = { n = n, w = replay.fresh(view:layout(matrix)), x = replay.fresh { shape = { n, width }, numel = n * width,
        dtype = view:layout(row).dtype } }
    local m = view:layout(matrix).shape
    local base = view.sites[view.site[i]].kind.base
    local turned = base == "mv" or base == "addmv" or base == "linear" or m[1] ~= width
    local one = turned and "w:mv(x[k])" or "x[{{k, k}}]:mm(w)"
    return replay.compile("for k = 1, n do local r = " .. one .. " end", values),
        replay.compile("local r = x:mm(" .. (turned and "w:t()" or "w") .. ")", values)
end

return function(view, add, replay)
    for _, site in ipairs(view.known and view.sites or {}) do
        if places[site.kind.base] and site.count >= LEAST and site.cost > 0.05 * view.wall and parts_of(view, site.calls[1]) then
            local count, cost, example = study(view, site)
            if count >= LEAST and distinct_rows(view, site) >= LEAST / 2 then
                local gain = replay.gain(function() return build(view, example, count, replay) end)
                local _, matrix = parts_of(view, example)
                local known = names.rows({ site })
                add { kind = "small_batch", site = site, count = count, cost = cost,
                    text = ("%s × %s of one row with the same %s matrix"):format(view.count_text(count), site.name,
                        view.shape_text(view:layout(matrix))),
                    fix = ("all rows at once: %s"):format(site.kind.base == "linear" and "linear(rows, w), rows of shape (n, k)"
                        or (known[1] or "rows") .. (site.kind.base == "mm" and ":mm(w)" or ":matmul(w:t())")),
                    gain = gain or 4, measured = gain ~= nil }
            end
        end
    end
end
