-- advice/threads.lua: work that is shared among threads and would be done sooner by fewer.
local tide = ...
local LEAST, SHORT, LEAST_SHARE = 16, 400e3, 0.2

-- The site that most time goes to of those with kernels that are short, and what all of these take.
local function study(view)
    local best, cost, count = nil, 0, 0
    for _, site in ipairs(view.sites) do
        local mean = site.cost / math.max(site.count, 1)
        if site.count >= LEAST and mean < SHORT and site.kernel > 0.5 * site.cost and not site.kind.random and not site.kind.inplace
            and view.nin[site.calls[1]] > 0 and view.nout[site.calls[1]] > 0 then
            cost, count = cost + site.cost, count + site.count
            best = (not best or site.cost > best.cost) and site or best
        end
    end
    return best, cost, count
end

local function build(view, site, fewer, replay)
    local i, values, texts = site.calls[#site.calls], {}, {}
    for k = 1, view.nin[i] do
        texts[k] = "x" .. k
        values[texts[k]] = replay.fresh(view:layout(view:input(i, k)))
    end
    local text = replay.call_text(site.kind, view.arguments[view.args[i]], texts)
    if not text then
        return nil
    end
    local calls = "for k = 1, 20 do local r <close> = " .. text .. " end"
    local slow, fast = replay.compile(calls, values), replay.compile(calls, values)
    return slow, function()
        if tide.get_num_threads() ~= fewer then
            tide.set_num_threads(fewer)
        end
        fast()
    end
end

return function(view, add, replay)
    local threads = tide.get_num_threads()
    local site, cost, count = nil, 0, 0
    if threads > 1 and view.known then
        site, cost, count = study(view)
    end
    if not site or cost < LEAST_SHARE * view.wall then
        return
    end
    local processors, busy = tide._processors()
    if threads <= processors and busy then
        return -- others have the processors: what is measured now says nothing
    end
    local fewer = threads > processors and processors or 1
    local gain = replay.gain(function() return build(view, site, fewer, replay) end, true)
    tide.set_num_threads(threads)
    if gain then
        add { kind = "threads", site = site, count = count, cost = cost,
            text = string.format("%s × short work shared among %d threads, as %s of %s", view.count_text(count), threads, site.name,
                view.shape_text(view:layout(view:input(site.calls[1], 1)))),
            fix = string.format("tide.set_num_threads(%d)", fewer), gain = gain, measured = true,
            least = threads > processors and 1.2 or 2 }
    end
end
