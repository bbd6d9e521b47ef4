-- advice/view.lua: what recognisers look at: the calls of a recording as columns (calls.h), by site, in loops, and
-- where each argument in a loop comes from. Knows no kind of advice.
local tide = ...

local View = {}
View.__index = View

-- ---- operators ----

-- The name without what stands for its form: "aten::add_" -> "add", true.
local function plain(name)
    name = string.gsub(name, "^aten::", "")
    local base = string.match(name, "^(%w.*[%w])_$")
    return base or name, base ~= nil
end

-- What scripts write for an operator of the engine's own (lerp_near: lerp), where its name tells.
local function public(base)
    local doc = tide._doc(base)
    local short = doc and doc.internal and string.match(base, "^(.+)_%a+$")
    local known = short and tide._doc(short)
    return known and not known.internal and short or base
end

local kinds = {} -- by name: what it is
local viewing = {}
for name in string.gmatch("t narrow movedim view_as unbind chunk split split_with_sizes tensor_split hsplit vsplit dsplit expand_as broadcast_to "
    .. "detach slice select view transpose permute unsqueeze squeeze expand as_strided diagonal unfold T mT H mH", "%S+") do
    viewing[name] = true
end

local function kind_of(name)
    local known = kinds[name]
    if not known then
        local base, inplace = plain(name)
        base = public(base)
        local doc = tide._doc(base) or {}
        known = { base = base, inplace = inplace, doc = doc, view = doc.view or viewing[base] or false,
            pointwise = rawget(tide.foreach, base) ~= nil and base ~= "copy" and base ~= "zero" and base ~= "norm",
            random = doc.random or doc.family == "random" or string.find(base, "dropout", 1, true) ~= nil,
            creates = doc.creates or doc.family == "create" or doc.family == "make_like" }
        kinds[name] = known
    end
    return known
end
View.kind_of = kind_of

-- ---- sites ----

-- "file.lua:12" as file and number. Lua cuts long paths short in front; the script's own is known.
function View.place(line)
    local file, number = string.match(line or "", "^(.*):(%d+)$")
    local tail = file and string.match(file, "^%.%.%.(.*)$")
    local arguments = tail and rawget(_G, "arg")
    local script = type(arguments) == "table" and arguments[0]
    if script and #tail > 0 and string.sub(script, -#tail) == tail then
        file = script
    end
    return file, math.tointeger(tonumber(number))
end

local function read_sites(self)
    for _, site in ipairs(self.sites) do
        site.file, site.number = View.place(site.line)
        site.kind = kind_of(site.name)
        site.calls, site.count, site.cost, site.kernel = {}, 0, 0, 0
    end
    local site_of, cost, kernel = self.site, self.cost, self.kernel
    for i = 1, self.n do
        local site = self.sites[site_of[i]]
        site.count = site.count + 1
        site.calls[site.count] = i
        site.cost, site.kernel = site.cost + cost[i], site.kernel + kernel[i]
    end
end

-- ---- tensors ----

-- The index of a call's k-th input or result in the columns of tensors.
function View:input(i, k) return self.first[i] + k end
function View:result(i, k) return self.first[i] + self.nin[i] + (k or 1) end
function View:layout(t) return self.layouts[self.lay[t]] end
function View:has_results(i) return self.nout[i] > 0 end

local item_sizes = { float64 = 8, int64 = 8, float32 = 4, int32 = 4, float16 = 2, bfloat16 = 2, int16 = 2 }
function View.bytes(layout) return layout.numel * (item_sizes[layout.dtype] or 1) end

-- How far a tensor reaches in its storage: from and to, in elements.
function View:extent(t)
    local layout = self.layouts[self.lay[t]]
    local size = layout.size
    if not size then
        size = layout.numel
        if layout.strides and size > 0 then
            size = 1
            for d, stride in ipairs(layout.strides) do
                size = size + (layout.shape[d] - 1) * math.abs(stride)
            end
        end
        layout.size = size
    end
    return self.off[t], self.off[t] + size
end

-- Does the result of this call lie in one of its arguments, unwritten?
function View:is_view(i)
    local kind = self.sites[self.site[i]].kind
    if kind.inplace or self.nin[i] == 0 or self.nout[i] == 0 then
        return false
    end
    if not self.known then
        return kind.view
    end
    return self.obj[self.first[i] + 1] == self.obj[self:result(i)] and self.ver[self.first[i] + 1] == self.ver[self:result(i)]
end

-- Storages of tensors that require grad and that no recorded call made: what is trained.
function View:leaves()
    if not self.leaf_set then
        local leaf, made = {}, {}
        for i = 1, self.n do
            local first, nin = self.first[i], self.nin[i]
            for t = first + 1, first + nin do
                if self.grad[t] == 1 then
                    leaf[self.obj[t]] = true
                end
            end
            if self.recorded[i] == 1 and not self.sites[self.site[i]].kind.inplace and not self:is_view(i) then
                for t = first + nin + 1, first + nin + self.nout[i] do
                    made[self.obj[t]] = true
                end
            end
        end
        for obj in pairs(made) do
            leaf[obj] = nil
        end
        self.leaf_set = leaf
    end
    return self.leaf_set
end

-- By storage: the call that made it (0: it was there before), the calls that read it, and the last one of them.
function View:lives()
    if self.born then
        return self.born, self.last_use, self.uses
    end
    local born, last, uses = {}, {}, {}
    for i = 1, self.n do
        local first, nin = self.first[i], self.nin[i]
        for t = first + 1, first + nin do
            local obj = self.obj[t]
            born[obj] = born[obj] or 0
            last[obj] = i
            uses[obj] = (uses[obj] or 0) + 1
        end
        for t = first + nin + 1, first + nin + self.nout[i] do
            local obj = self.obj[t]
            born[obj] = born[obj] or i
        end
    end
    self.born, self.last_use, self.uses = born, last, uses
    return born, last, uses
end

-- Is what this call made read by just one call, which is returned, apart from looks into it?
function View:only_reader(i)
    local readers = self:readers()
    local list = readers[self.obj[self:result(i)]]
    return list and #list == 1 and list[1] or nil
end

-- By storage: the calls that read it, those apart that only look into it.
function View:readers()
    if not self.reader_lists then
        local lists = {}
        for i = 1, self.n do
            if not self:is_view(i) then
                local first, seen = self.first[i], nil
                for t = first + 1, first + self.nin[i] do
                    local obj = self.obj[t]
                    if obj ~= seen then
                        local list = lists[obj]
                        if not list then
                            list = {}
                            lists[obj] = list
                        end
                        if list[#list] ~= i then
                            list[#list + 1] = i
                        end
                        seen = obj
                    end
                end
            end
        end
        self.reader_lists = lists
    end
    return self.reader_lists
end

-- What elements that go to Lua take behind each call.
function View:copies()
    if not self.copy_cost then
        local cost = {}
        for _, span in ipairs(self.spans) do
            if span.kind == "copy" then
                cost[span.before] = (cost[span.before] or 0) + span.stop - span.start
            end
        end
        self.copy_cost = cost
    end
    return self.copy_cost
end

-- ---- loops ----

local MOST_PERIOD, CANDIDATES, LEAST_REPS, LONG = 600, 8, 3, 16

local function next_of_site(self, steps)
    local nxt, last = {}, {}
    for i = self.n, 1, -1 do
        local s = steps[i]
        nxt[i] = last[s] or 0
        last[s] = i
    end
    return nxt
end

-- How far sites repeat with this period from i on: the first call that differs. It is the same for all within reach of
-- the last answer for the period, which is kept in `runs`.
local function stretch(site, n, i, period, runs)
    local run, e = runs[period], i + period
    if run and run.from <= i and e <= run.stop then
        return run.stop
    end
    while e <= n and site[e] == site[e - period] do
        e = e + 1
    end
    if run then
        run.from, run.stop = i, e
    else
        runs[period] = { from = i, stop = e }
    end
    return e
end

-- The best period at i: the shortest that comes often, or else the one that reaches farthest.
local function period_at(site, nxt, n, i, runs)
    local best, best_end, j = nil, 0, nxt[i]
    for _ = 1, CANDIDATES do
        if j == 0 or j - i > MOST_PERIOD then
            break
        end
        local period = j - i
        local e = stretch(site, n, i, period, runs)
        local reps = (e - i) // period
        if reps >= LEAST_REPS and (e > best_end) then
            best, best_end = period, e
            if reps >= 8 and period > 1 then
                break
            end
        end
        j = nxt[j]
    end
    return best, best_end
end

-- Is most of what stands at i..i+period-1 a shorter loop?
local function holds_loop(site, nxt, n, i, period, runs)
    local k, inside = i, 0
    while k < i + period do
        local p, e = period_at(site, nxt, n, k, runs)
        if p and p <= period // 8 and (e - k) // p >= 8 then
            inside, k = inside + e - k, e
        else
            k = k + 1
        end
    end
    return inside * 2 > period
end

-- The body from its smallest site on: the same for a loop that was cut into at another place.
local function canonical(site, from, period)
    local best = from
    for k = from + 1, from + period - 1 do
        if site[k] < site[best] then
            best = k
        end
    end
    local key = {}
    for k = 0, period - 1 do
        key[k + 1] = site[from + (best - from + k) % period]
    end
    return best - from, key
end

local function add_segment(self, loops, steps, from, period, stop)
    local shift, body = canonical(steps, from, period)
    for k, step in ipairs(body) do
        body[k] = (step - 1) % #self.sites + 1
    end
    from = from + shift
    local reps = (stop - from) // period
    local key = table.concat(body, ",")
    local loop = loops[key]
    if not loop then
        loop = { body = body, period = period, segments = {}, reps = 0, cost = 0, kernel = 0 }
        loops[key] = loop
        loops[#loops + 1] = loop
    end
    loop.segments[#loop.segments + 1] = { from = from, reps = reps }
    loop.reps = loop.reps + reps
    local copies = self:copies()
    for i = from, from + reps * period - 1 do
        loop.cost = loop.cost + (copies[i] or 0)
        loop.cost, loop.kernel = loop.cost + self.cost[i], loop.kernel + self.kernel[i]
    end
end

-- Does this call look into what the call before it, at the same place, looked up (a[i][j], a[{i, j}])?
function View:goes_on(i)
    return i > 1 and self.site[i] == self.site[i - 1] and self.nin[i] > 0 and self:is_view(i) and self:is_view(i - 1)
        and self.obj[self:input(i, 1)] == self.obj[self:result(i - 1)] and self.off[self:input(i, 1)] == self.off[self:result(i - 1)]
        and self.lay[self:input(i, 1)] == self.lay[self:result(i - 1)]
end

-- The sites, those of a chain of looks told apart by their place in it: a loop holds the whole chain.
local function steps_of(self)
    local steps, many = {}, #self.sites
    for i = 1, self.n do
        local on = self.known and self:goes_on(i)
        steps[i] = on and steps[i - 1] <= 4 * many and steps[i - 1] + many or self.site[i]
    end
    return steps
end

-- Innermost loops: {body = sites, period, segments = {{from, reps}}, reps, cost, kernel}.
function View:loops()
    if self.loop_list then
        return self.loop_list
    end
    local site = steps_of(self)
    local loops, n, nxt, i = {}, self.n, next_of_site(self, site), 1
    local refused, runs = {}, {} -- period by site where a longer loop holds a shorter one
    while i <= n do
        local period, stop = period_at(site, nxt, n, i, runs)
        if period and period >= LONG and (refused[site[i]] == period or holds_loop(site, nxt, n, i, period, runs)) then
            refused[site[i]], period = period, nil
        end
        if period then
            add_segment(self, loops, site, i, period, stop)
            i = stop
        else
            i = i + 1
        end
    end
    self.loop_list = loops
    return loops
end

-- ---- where arguments come from ----

local SAMPLE_SEGMENTS, SAMPLE_REPS = 4, 48

-- The last write of what tensor t reaches over, of those in `writes`.
local function writer(self, writes, t)
    local list = writes[self.obj[t]]
    if not list then
        return nil
    end
    local low, high = self:extent(t)
    for k = #list, math.max(1, #list - 8), -1 do
        local w = list[k]
        if w.low < high and low < w.high then
            return w
        end
    end
end

local function note_writes(self, writes, i, rep, position)
    if self:is_view(i) then
        return
    end
    for k = 1, self.nout[i] do
        local t = self:result(i, k)
        local list = writes[self.obj[t]]
        if not list then
            list = {}
            writes[self.obj[t]] = list
        end
        local low, high = self:extent(t)
        list[#list + 1] = { low = low, high = high, rep = rep, position = position, result = k }
    end
end

-- One tensor in one repetition: its class, and the write that it is from. A list that the loop goes through again and
-- again stays one where its entries are written in place.
local function class_of(self, writes, before, t, rep)
    local w = writer(self, writes, t)
    if w and before and w.rep < rep - 1 and self.obj[before] ~= self.obj[t] then
        return "list"
    elseif w then
        return w.rep == rep and "body" or "carry", w
    elseif not before then
        return nil
    elseif self.obj[before] ~= self.obj[t] then
        return "list"
    end
    return self.off[before] == self.off[t] and "const" or "rows"
end

local function study_segment(self, loop, segment, tally)
    local writes, period = {}, loop.period
    for rep = 1, math.min(segment.reps, SAMPLE_REPS) do
        for position = 1, period do
            local i = segment.from + (rep - 1) * period + position - 1
            for k = 1, self.nin[i] do
                local t = self:input(i, k)
                local before = rep > 1 and k <= self.nin[i - period] and self:input(i - period, k) or nil
                local class, w = class_of(self, writes, before, t, rep)
                local slot = tally[position][k]
                if not slot then
                    slot = { count = 0 }
                    tally[position][k] = slot
                end
                if class then
                    slot[class], slot.count = (slot[class] or 0) + 1, slot.count + 1
                    if class == "body" then
                        slot.from, slot.result = w.position, w.result
                    end
                end
            end
            note_writes(self, writes, i, rep, position)
        end
    end
end

-- For each call of a loop's body and each of its tensors {class =, from =, example =}: class "const" (the same in
-- every repetition), "list" (another tensor in each), "rows" (another part of one tensor), "body" (made by the call
-- `from` of the same repetition), "carry" (made or written in an earlier one), "mixed".
function View:sources(loop)
    if loop.sources then
        return loop.sources
    end
    local tally = {}
    for position = 1, loop.period do
        tally[position] = {}
    end
    for k = 1, math.min(#loop.segments, SAMPLE_SEGMENTS) do
        study_segment(self, loop, loop.segments[k], tally)
    end
    for position, slots in ipairs(tally) do
        for k, slot in ipairs(slots) do
            slot.class = "mixed"
            for _, class in ipairs { "const", "list", "rows", "body", "carry" } do
                if (slot[class] or 0) >= 0.9 * slot.count and slot.count > 0 then
                    slot.class = class
                end
            end
            slot.example = self:input(loop.segments[1].from + position - 1, k)
        end
    end
    loop.sources = tally
    return tally
end

-- Is the result at this position of the body another part of a tensor in each repetition?
function View:varies(loop, position)
    local changes, seen = 0, 0
    for k = 1, math.min(#loop.segments, SAMPLE_SEGMENTS) do
        local segment = loop.segments[k]
        for rep = 2, math.min(segment.reps, SAMPLE_REPS) do
            local i = segment.from + (rep - 1) * loop.period + position - 1
            if not self:is_view(i) or not self:is_view(i - loop.period) then
                return false
            end
            local a, b = self:result(i), self:result(i - loop.period)
            seen = seen + 1
            changes = changes + (self.obj[a] == self.obj[b] and self.off[a] ~= self.off[b] and 1 or 0)
        end
    end
    return seen > 0 and changes >= 0.6 * seen
end

-- After how many repetitions the k-th tensor at this position comes again: how long the list is.
function View:list_length(loop, position, k)
    local longest = 0
    for s = 1, math.min(#loop.segments, SAMPLE_SEGMENTS) do
        local segment, first = loop.segments[s], nil
        for rep = 1, segment.reps do
            local t = self:input(segment.from + (rep - 1) * loop.period + position - 1, k)
            if self.obj[t] == first and self.off[t] == self.off[self:input(segment.from + position - 1, k)] then
                return rep - 1
            end
            first = first or self.obj[t]
        end
        longest = math.max(longest, segment.reps)
    end
    return longest
end

-- The call at this position of the first repetition.
function View:example(loop, position) return loop.segments[1].from + position - 1 end

-- What the calls at this position cost, and their kernels.
function View:position_cost(loop, position)
    local cost, kernel = 0, 0
    local copies = self:copies()
    for _, segment in ipairs(loop.segments) do
        for i = segment.from + position - 1, segment.from + segment.reps * loop.period - 1, loop.period do
            cost, kernel = cost + self.cost[i] + (copies[i] or 0), kernel + self.kernel[i]
        end
    end
    return cost, kernel
end

-- Does a call of the body record a graph?
function View:records(loop)
    local from = loop.segments[1].from
    for i = from, from + loop.period - 1 do
        if self.recorded[i] == 1 then
            return true
        end
    end
    return false
end

-- The span of this kind around a call; nil: none.
function View:within(i, kind)
    local k = self.outer[i]
    while k > 0 do
        local span = self.spans[k]
        if span.kind == kind then
            return span
        end
        k = span.outer
    end
end

-- Spans of this kind and name as {line =, name =, count =, cost =, list =}, by line.
function View:spans_by_line(kind)
    local groups, list = {}, {}
    for _, span in ipairs(self.spans) do
        local outer = self.spans[span.outer]
        if span.kind == kind and not (outer and outer.kind == kind) then
            local key = (span.line or "") .. "\0" .. span.name
            local group = groups[key]
            if not group then
                group = { line = span.line, name = span.name, count = 0, cost = 0, list = {} }
                groups[key], list[#list + 1] = group, group
            end
            group.count, group.cost = group.count + 1, group.cost + span.stop - span.start
            group.list[group.count] = span
        end
    end
    return list
end

-- ---- texts ----

function View.count_text(n)
    local text = string.format("%d", n)
    return (string.gsub(string.reverse((string.gsub(string.reverse(text), "(%d%d%d)", "%1,"))), "^,", ""))
end

function View.shape_text(layout)
    local parts = {}
    for d, size in ipairs(layout.shape) do
        parts[d] = View.count_text(size)
    end
    return #parts == 0 and "1" or table.concat(parts, " × ")
end

-- "(2, 3)", as code and messages write shapes.
function View.tuple_text(layout)
    local parts = {}
    for d, size in ipairs(layout.shape) do
        parts[d] = string.format("%d", size)
    end
    return "(" .. table.concat(parts, ", ") .. ")"
end

-- ---- what recording takes ----

local PROBES, ROUNDS = 200, 3
local each -- ns that recording adds to a call, outside of what the call is said to take; found once

-- The shortest of some rounds of calls that are nearly all recording, with it and without.
local function recording_cost()
    if not each then
        local x = tide.ones(2)
        local function probes()
            for _ = 1, PROBES do
                x:t()
            end
        end
        local with, without = math.huge, math.huge
        for _ = 1, ROUNDS do
            local start = tide.time()
            probes()
            without = math.min(without, tide.time() - start)
            start = tide.time()
            local profile <close> = tide.profiler.profile { with_stack = true, max_events = 2 * PROBES }
            local began = tide.time()
            probes()
            with = math.min(with, tide.time() - began)
            profile:stop()
        end
        each = math.max(with - without, 0) * 1e9 / PROBES
    end
    return each
end

return function(profile)
    local self = setmetatable(profile:_calls(), View)
    read_sites(self)
    local cost = 0
    for i = 1, self.n do
        cost = cost + self.cost[i]
    end
    -- what it takes unrecorded: shares are of that
    self.wall = math.max(self.wall - recording_cost() * (self.n + #self.spans), math.min(cost, self.wall), 1)
    return self
end
