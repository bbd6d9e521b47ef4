-- counted.lua: advice by costs that are counted instead of measured, so that what it finds does not depend on how busy the
-- machine is: a call costs its dispatch, its elements, its multiplications and the graph that it records.
local counted = {}

local DISPATCH, GRAPH, LOOK, ELEMENT, DRAWN, MULTIPLICATION = 1000, 700, 300, 0.1, 1, 0.05 -- ns
local products = { mm = true, mv = true, matmul = true, linear = true, bmm = true, addmm = true, addmv = true }

local function cost_of(view, i)
    local kind, elements = view.sites[view.site[i]].kind, 0
    for t = view.first[i] + 1, view.first[i] + view.nin[i] + view.nout[i] do
        elements = elements + view:layout(t).numel
    end
    if view:is_view(i) then
        return DISPATCH
    end
    local cost = elements * (kind.random and DRAWN or ELEMENT)
    local first = view.nin[i] > 0 and view:layout(view:input(i, 1)).shape or {}
    if products[kind.base] and view.nout[i] > 0 then
        cost = cost + view:layout(view:result(i)).numel * (first[#first] or 1) * MULTIPLICATION
    elseif kind.base:find("^linalg_") or kind.base == "inv" or kind.base == "inverse" then
        cost = cost + elements * (first[#first] or 1)
    end
    return DISPATCH + cost, cost
end

-- Puts counted costs in the place of the view's columns of time.
local function count(view)
    local costs, kernels, backs, all = {}, {}, {}, 0
    for i = 1, view.n do
        local cost, kernel = cost_of(view, i)
        costs[i], kernels[i] = cost + (view.recorded[i] == 1 and GRAPH or 0), kernel or 0
        backs[i] = view.used[i] == 1 and 2 * cost or 0
        all = all + costs[i] + backs[i]
    end
    for _, span in ipairs(view.spans) do
        span.stop = span.start + (span.kind == "copy" and LOOK or 0)
        all = all + span.stop - span.start
    end
    view.cost, view.kernel, view.back, view.wall, view.copy_cost = costs, kernels, backs, math.max(all, 1), nil
    for _, site in ipairs(view.sites) do
        site.cost, site.kernel = 0, 0
        for _, i in ipairs(site.calls) do
            site.cost, site.kernel = site.cost + costs[i], site.kernel + kernels[i]
        end
    end
    return view
end

local view_of, replay = tide._require "advice.view", tide._require "advice.replay"

local function record(fn) return tide.profiler.profile { fn, with_stack = true } end

--- cost(fn): what fn() costs when it runs again, in seconds.
function counted.cost(fn)
    fn()
    return count(view_of(record(fn))).wall * 1e-9
end

--- advice_of(fn): the advice that fn() draws by counted costs.
function counted.advice_of(fn)
    local begin, race, best_of = replay.begin, replay.race, replay.best_of
    tide._loaded["advice.view"] = function(profile) return count(view_of(profile)) end
    begin(1e9) -- what is counted takes as long as it takes
    replay.begin = function() end
    replay.race = function(slow, fast) return counted.cost(slow), counted.cost(fast) end
    replay.best_of = counted.cost
    local ok, advice = pcall(function() return record(fn):advice() end)
    tide._loaded["advice.view"] = view_of
    replay.begin, replay.race, replay.best_of = begin, race, best_of
    return assert(ok and advice, advice)
end

return counted
