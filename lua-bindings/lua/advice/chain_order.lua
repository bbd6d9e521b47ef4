-- advice/chain_order.lua: products of several matrices in an order that takes more multiplications than another.
local tide = ...
local products = { mm = true, mv = true, matmul = true }
local LEAST_RATIO, MOST = 1.5, 12

-- Of a tensor as a factor: rows and columns; a vector is a column on the right and a row on the left.
local function dims_of(layout, right)
    local s = layout.shape
    if #s == 2 then
        return s[1], s[2]
    elseif #s == 1 then
        return right and s[1] or 1, right and 1 or s[1]
    end
end

local function is_product(view, i)
    if not products[view.sites[view.site[i]].kind.base] or view.nin[i] ~= 2 or view.nout[i] ~= 1 then
        return false
    end
    for k = 1, 2 do
        local ndim = #view:layout(view:input(i, k)).shape
        if ndim < 1 or ndim > 2 then
            return false
        end
    end
    return true
end

-- The product that made a tensor and that nobody else reads; nil: another made it, or it is wanted elsewhere.
local function maker_of(view, t)
    local born = view:lives()
    local i = born[view.obj[t]]
    if i and i > 0 and is_product(view, i) and view.obj[view:result(i)] == view.obj[t] and view.lay[view:result(i)] == view.lay[t] then
        local readers = view:readers()[view.obj[t]]
        return readers and #readers == 1 and i or nil
    end
end

-- The factors of a product in their order, how it was written, its multiplications and calls.
local function expand(view, i, tree)
    local parts, shapes = {}, {}
    for k = 1, 2 do
        local t = view:input(i, k)
        local inner = #tree.leaves < MOST and maker_of(view, t)
        if inner then
            parts[k], shapes[k] = expand(view, inner, tree)
        else
            local layout = view:layout(t)
            tree.leaves[#tree.leaves + 1] = layout
            parts[k], shapes[k] = "x" .. #tree.leaves, { dims_of(layout, k == 2) }
        end
    end
    tree.work = tree.work + shapes[1][1] * shapes[1][2] * shapes[2][2]
    tree.cost = tree.cost + view.cost[i] + view.back[i]
    tree.calls[#tree.calls + 1] = i
    return string.format("tide.matmul(%s, %s)", parts[1], parts[2]), { shapes[1][1], shapes[2][2] }
end

-- The order with fewest multiplications, as dynamic programming finds it: these, code, and text for people.
local function best_order(leaves)
    local n, dims = #leaves, {}
    for k, layout in ipairs(leaves) do
        local rows, columns = dims_of(layout, k > 1)
        dims[k], dims[k + 1] = rows, columns
    end
    local best = {}
    for a = 1, n do
        best[a] = { [a] = { work = 0, text = "x" .. a, short = string.char(64 + a) } }
    end
    for length = 2, n do
        for a = 1, n - length + 1 do
            local b = a + length - 1
            for cut = a, b - 1 do
                local left, right = best[a][cut], best[cut + 1][b]
                local work = left.work + right.work + dims[a] * dims[cut + 1] * dims[b + 1]
                if not best[a][b] or work < best[a][b].work then
                    best[a][b] = { work = work, text = string.format("tide.matmul(%s, %s)", left.text, right.text),
                        short = string.format("%s:matmul(%s)", left.short, right.short) }
                end
            end
        end
    end
    return best[1][n]
end

local function study(view)
    local found, order, born = {}, {}, view:lives()
    for i = 1, view.n do
        if is_product(view, i) then
            local readers = view:readers()[view.obj[view:result(i)]]
            local outer = readers and #readers == 1 and is_product(view, readers[1])
            if not outer then
                local tree = { leaves = {}, work = 0, cost = 0, calls = {} }
                tree.text = expand(view, i, tree)
                local site = view.sites[view.site[i]]
                if #tree.leaves > 2 then
                    local f = found[site]
                    if not f then
                        f = { site = site, count = 0, cost = 0, tree = tree, best = best_order(tree.leaves) }
                        found[site], order[#order + 1] = f, f
                    end
                    f.count, f.cost = f.count + 1, f.cost + tree.cost
                end
            end
        end
    end
    return order
end

local function build(f, replay)
    local values = {}
    for k, layout in ipairs(f.tree.leaves) do
        values["x" .. k] = replay.fresh(layout)
    end
    return replay.compile("local r = " .. f.tree.text, values), replay.compile("local r = " .. f.best.text, values)
end

return function(view, add, replay)
    for _, f in ipairs(view.known and study(view) or {}) do
        if f.cost > 0.05 * view.wall and f.tree.work > LEAST_RATIO * f.best.work then
            local gain = replay.gain(function() return build(f, replay) end)
            local shapes = {}
            for k, layout in ipairs(f.tree.leaves) do
                shapes[k] = view.tuple_text(layout)
            end
            add { kind = "chain_order", site = f.site, count = f.count, cost = f.cost,
                text = string.format("%s × a product of %s in an order with %.1f× the multiplications", view.count_text(f.count),
                    table.concat(shapes, ", "), f.tree.work / f.best.work),
                fix = f.best.short, gain = gain or f.tree.work / f.best.work, measured = gain ~= nil }
        end
    end
end
