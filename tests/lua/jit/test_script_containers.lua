-- Tables whose names are known only as the graph runs, lists that change, strings, and goto: as graphs they give what Lua
-- gives.
local t = require "harness"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local h = dofile(here .. "/script_harness.lua")
local same = h.same

-- ---- tables by names ----

t.test("words_are_counted", function()
    same(function(words, of) --: str[], str
        local counts = {}
        for _, word in ipairs(words) do
            counts[word] = (counts[word] or 0) + 1
        end
        return counts[of], counts["a"], counts.none
    end, { { "a", "b", "a" }, "b" }, { { "c" }, "c" }, { {}, "a" })
end)

t.test("entries_are_set_taken_out_and_looped_over", function()
    same(function(names, x) --: str[], Tensor
        local sums = { first = x }
        for k, name in ipairs(names) do
            sums[name] = x * k
        end
        sums["gone"] = nil
        local total, n, long = x * 0, 0, 0
        for name, value in pairs(sums) do
            total = total + value
            n = n + 1
            long = long + #name
            if name == "b" then sums.c = nil end
        end
        return total, n, long > 10, sums.first
    end, { { "a", "gone" }, tide.ones(2) }, { { "b", "bb", "first" }, tide.ones(2) }, { {}, tide.ones(2) })
end)

t.test("a_name_that_one_branch_makes", function()
    same(function(n) --: int
        local options = {}
        if n > 2 then options.high = n end
        if n > 4 then options.low = -n end
        for k = 1, n do
            if options.high and k > 3 then options.high = options.high + k end
        end
        return options.high, options.low
    end, { 1 }, { 3 }, { 6 })
end)

t.test("values_that_are_lists_and_booleans", function()
    same(function(names) --: str[]
        local groups = {} --: Dict(str, int[])
        local seen = { x = true }
        for k, name in ipairs(names) do
            if groups[name] == nil then groups[name] = {} --: int[]
            end
            local group = groups[name]
            group[#group + 1] = k
            seen[name] = k > 1
        end
        local n = 0
        if groups.a then n = #groups.a * 10 + groups.a[1] end
        return n, seen.x, seen.a == nil
    end, { { "a", "b", "a" } }, { { "b" } })
end)

t.test("given_and_returned", function()
    local f = tide.jit.script(function(weights, key) --: Dict(str, Tensor), str
        local scaled = {} --: Dict(str, Tensor)
        for name, w in pairs(weights) do
            scaled[name .. "!"] = w * 2
        end
        return scaled, weights[key], { loss = 0.5, ok = true, x = weights.a, none = weights.none }
    end)
    local a, b = tide.ones(2), tide.zeros(1)
    local scaled, found, record = f({ b = b, a = a }, "b")
    t.eq({ scaled["a!"]:tolist(), scaled["b!"]:tolist(), found:tolist() }, { { 2, 2 }, { 0 }, { 0 } })
    t.eq({ record.loss, record.ok, record.x:tolist(), record.none }, { 0.5, true, { 1, 1 } })
    t.error_has(function() f({ a }, "b") end, "Dict(str, Tensor) expected")
    t.error_has(function() f({ a = 1 }, "b") end, "Tensor expected, got number 1")
    t.is_true(f.graph:find("prim::DictConstruct", 1, true))
    local path = os.tmpname()
    f:save(path)
    local g = tide.jit.load(path)
    os.remove(path)
    t.eq({ g.graph, g.code }, { f.graph, f.code })
    t.eq(select(2, g({ a = a, b = b }, "a")):tolist(), { 1, 1 })
end)

t.test("gradients_go_through_tables", function()
    local function fn(x, names) --: Tensor, str[]
        local parts = { a = x }
        for k, name in ipairs(names) do
            parts[name] = (parts[name] or x) * k
        end
        local y = x
        for _, part in pairs(parts) do
            y = y * part
        end
        return y:sum()
    end
    local a, b, f = tide.tensor({ 2.0, 3.0 }):requires_grad_(), tide.tensor({ 2.0, 3.0 }):requires_grad_(), tide.jit.script(fn)
    fn(a, { "a", "b", "b" }):backward()
    f(b, { "a", "b", "b" }):backward()
    t.eq(b.grad:tolist(), a.grad:tolist())
end)

t.test("what_was_given_is_not_written", function()
    local list, dict, lists = { tide.ones(1) }, { a = tide.ones(1) }, { { 1 } }
    local function append(xs, x) --: Tensor[], Tensor
        xs[#xs + 1] = x
        return #xs
    end
    local function set(d, x) --: Dict(str, Tensor), Tensor
        d.b = x
        return d.b
    end
    local function inner(ls) --: int[][]
        ls[1][1] = 5
        return ls[1][1]
    end
    t.error_has(function() tide.jit.script(append)(list, tide.ones(1)) end, "not written: copy it first")
    t.error_has(function() tide.jit.script(set)(dict, tide.ones(1)) end, "is not written")
    t.error_has(function() tide.jit.script(inner)(lists) end, "not written: copy it first")
    t.eq({ #list, dict.b, lists[1][1] }, { 1, nil, 1 })
end)

-- ---- lists ----

t.test("a_table_in_another_is_the_same_table", function()
    same(function(n) --: int
        local row = { n, 2 }
        local rows = {}
        for _ = 1, n do
            rows[#rows + 1] = row
            row[1] = row[1] + 7
        end
        return rows[1][1], row[1], #rows
    end, { 1 }, { 4 })
    same(function(p) --: bool
        local a, b = { 1, 2 }, { 3 }
        local c = p and a or b
        a[1] = 9
        b[1] = 8
        return c[1], #c
    end, { true }, { false })
end)

t.test("a_branch_gives_a_table_that_it_wrote", function()
    same(function(p) --: bool
        local a
        if p then
            local made = { 1, 2.5 }
            made[1] = 5
            a = made
        else
            a = { 7, 1.5 }
        end
        return a[1], a[2]
    end, { true }, { false })
end)

t.test("lists_that_change_within", function()
    same(function(n) --: int
        local queue, order = { 0 }, 0
        for k = 1, n do
            table.insert(queue, 1, k)
            table.insert(queue, #queue + 1, -k)
        end
        local first = table.remove(queue, 1)
        while #queue > 2 do
            order = order * 3 + table.remove(queue, 2)
        end
        return first, order, #queue, table.remove(queue), table.concat(queue, ",")
    end, { 2 }, { 5 })
end)

t.test("lists_are_sorted", function()
    same(function(a, names) --: float[], str[]
        local numbers, words = { 0.5 }, { "m" }
        for _, v in ipairs(a) do numbers[#numbers + 1] = v end
        for _, v in ipairs(names) do words[#words + 1] = v end
        table.sort(numbers)
        table.sort(words, function(x, y) return x > y end)
        return numbers, words, table.concat(words, "/"), table.concat(numbers, " ")
    end, { { 3.0, -1.0, 2.0 }, { "b", "z", "a" } }, { {}, {} })
end)

t.test("a_list_that_begins_anew", function()
    same(function(n) --: int
        local batch, sums, groups = { 0 }, {}, {}
        for k = 1, n do
            batch[#batch + 1] = k
            if #batch == 3 then
                sums[#sums + 1] = batch[1] + batch[3]
                groups[#groups + 1] = batch
                batch = {}
            end
        end
        if n > 4 then groups = {} end
        return #batch, #sums, table.concat(sums, " "), #groups
    end, { 1 }, { 4 }, { 9 })
end)

t.test("tensors_of_lists", function()
    same(function(n, x) --: int, Tensor
        local numbers, flags, halves = {}, {}, { 0.5 }
        for k = 1, n do
            numbers[#numbers + 1] = k
            flags[#flags + 1] = k > 2
            halves[#halves + 1] = k / 2
        end
        local a, b = x.shape:unpack()
        return tide.tensor(numbers), tide.tensor(flags), tide.tensor(halves), tide.tensor(numbers, { dtype = tide.float64 }), a * 10 + b
    end, { 1, tide.ones(2, 3) }, { 4, tide.ones(1, 1) })
end)

t.test("an_empty_table_of_a_type_that_a_comment_says", function()
    same(function(n, x) --: int, Tensor
        local list = {} --: Tensor[]
        for k = 1, n do
            if k > 2 then list[#list + 1] = x * k end
        end
        return #list, list
    end, { 1, tide.ones(2) }, { 4, tide.ones(2) })
end)

-- ---- lists of tables with names ----

t.test("a_list_of_tables_with_names_grows", function()
    same(function(n) --: int
    local q = {}
    for i = 1, n do q[#q + 1] = { id = i, w = i * 0.5 } end
    local s = 0.0
    for _, p in ipairs(q) do s = s + p.id * p.w end
    return s, q[1].id, #q, q[n].w end, { 3 }, { 5 })
end)

t.test("the_best_of_them_is_kept_in_a_variable", function()
    same(function(xs) --: float[]
    local best = { at = 0, score = -1e9 }
    local all = {}
    for k, v in ipairs(xs) do
        local c = { at = k, score = v }
        all[#all + 1] = c
        if v > best.score then best = c end
    end
    local last = all[#all]
    for _, c in ipairs(all) do if c.score < last.score then last = c end end
    return best.at, best.score, last.at, best, last end, { { 1.0, 3.0, 2.0 } }, { { 5.0 } })
end)

t.test("tables_with_names_in_such", function()
    same(function(n) --: int
    local q = { { pos = { x = 1, y = 0.5 }, tags = { 1 }, name = "a" } }
    for i = 1, n do q[#q + 1] = { pos = { x = i, y = 0.25 * i }, tags = { i, i }, name = "b" .. i } end
    local s = 0
    for _, p in ipairs(q) do s = s + p.pos.x * p.pos.y + #p.tags * #p.name end
    return s end, { 3 }, { 12 })
end)

t.test("what_such_a_list_holds_is_read", function()
    h.refused(function(n) --: int
        local list = {}
        for k = 1, n do list[#list + 1] = { id = k, w = k * 0.5 } end
        list[1].id = 5
        return #list
    end, "put another one in its place")
    h.refused(function(n) --: int
        local list = {}
        for k = 1, n do list[#list + 1] = { id = k, w = k * 0.5 } end
        return list
    end, "is no result")
    h.refused(function(n) --: {a: int}
        return n.a
    end, "its type is Dict(str, T)")
end)

-- ---- tables that may be nil ----

t.test("a_table_with_names_or_nil", function()
    same(function(n) --: int
    local best
    for i = 1, n do
        if i % 3 == 0 then best = { i = i, v = i * 0.5 } end
        if best and best.i > 5 then break end
    end
    local other
    if n > 1 then other = { a = n, b = n + 1 } end
    if other then n = n + other.a * other.b end
    if best then return best.i, best.v, n end
    return -1, 0.0, n end, { 0 }, { 2 }, { 7 })
end)

t.test("a_table_that_a_loop_takes_away", function()
    same(function(n) --: int
    local open = { from = 0, to = 0.5 }
    local count = 0
    for i = 1, n do
        if open == nil then
            open = { from = i, to = i + 0.5 }
        elseif i % 2 == 0 then
            count = count + open.from
            open = nil
        end
    end
    return count, open ~= nil end, { 0 }, { 1 }, { 2 }, { 5 })
end)

t.test("a_list_or_nil", function()
    same(function(n) --: int
    local group
    local total = 0
    for i = 1, n do
        if group == nil then group = { i } else group[#group + 1] = i end
        if #group == 3 then
            total = total * 10 + group[1] + group[3]
            group = nil
        end
    end
    return total, group and #group or 0 end, { 0 }, { 2 }, { 7 })
end)

t.test("a_boolean_or_nil", function()
    same(function(n) --: int
        local flag
        if n > 1 then flag = n > 2 end
        local either = flag or n > 10
        if flag then return 1, either end
        if flag == nil then return 2, either end
        return 0, flag and n > 1
    end, { 1 }, { 2 }, { 3 }, { 11 })
end)

-- ---- tables that are the same one ----

t.test("a_list_in_a_field", function()
    same(function(n) --: int
    local r = { list = { 1 }, n = 0 }
    local l = r.list
    for i = 1, n do l[#l + 1] = i r.n = r.n + 1 end
    r.list[1] = 9
    return #r.list, l[1], r.n end, { 4 })
end)

t.test("a_field_that_a_branch_sets_anew", function()
    same(function(n) --: int
    local r = { list = { 1 } }
    local old = r.list
    if n > 2 then r.list = { 5, 6 } end
    r.list[1] = 7
    return #r.list, r.list[1], old[1] end, { 1 }, { 3 })
end)

t.test("tables_that_change_places", function()
    same(function(n) --: int
    local a, b = { 1 }, { 2 }
    for i = 1, n do
        a, b = b, a
        a[1] = a[1] + 10
    end
    return a[1], b[1] end, { 1 }, { 2 }, { 3 })
end)

t.test("a_table_by_names_under_two_names", function()
    same(function(k, n) --: str, int
    local d = { a = 1 }
    local e = d
    d[k] = n
    e.z = 5
    return d.z, e[k], d.a, e == d end, { "a", 3 }, { "q", 4 })
end)

t.test("tables_by_names_in_lists_by_names", function()
    same(function(ks) --: str[]
    local top = {} --: Dict(str, Dict(str, int)[])
    for i, k in ipairs(ks) do
        if not top[k] then top[k] = {} --: Dict(str, int)[]
        end
        local l = top[k]
        l[#l + 1] = { at = i, size = #k }
    end
    local s = 0
    for k, l in pairs(top) do for _, d in ipairs(l) do s = s + d.at * d.size end end
    return s end, { { "a", "bb", "a" } })
end)

t.test("a_list_made_in_a_mode", function()
    same(function(x, n) --: Tensor, int
    local l
    do local _ <close> = tide.no_grad() l = { x } end
    for i = 1, n do l[#l + 1] = x * i end
    return tide.stack(l) end, { tide.ones(2), 3 })
end)

-- ---- strings ----

t.test("methods_of_strings", function()
    same(function(s, n) --: str, int
        return s:upper(), s:lower(), s:reverse(), s:rep(n), #s, s:len(), s:sub(2), s:sub(n, -2), s:sub(-n, n), s:byte(n), s:byte(), s .. n
    end, { "abCd", 3 }, { "", 1 }, { "Hello", 0 }, { "x", -1 })
    same(function(s, part, n) --: str, str, int
        local first, last = s:find(part, n, true)
        return first, last, (s:find("b")), s == part, s < part
    end, { "abcabc", "c", 1 }, { "abcabc", "c", 4 }, { "abc", "z", 1 }, { "abc", "", 2 }, { "a.c", ".", -2 })
end)

t.test("patterns_are_known_or_refused", function()
    same(function(x) return x * #("a1b2"):gsub("%d", "") end, { tide.ones(1) })
    h.refused(function(s) --: str
        return s:match("%d+")
    end, "a graph knows no patterns")
    h.refused(function(s) --: str
        return s:find("%d")
    end, "a graph knows no patterns")
end)

t.test("a_device_is_its_name", function()
    same(function(x)
        if x.device == "cpu" then
            return x + 1, "on " .. x.device
        end
        return x, "at " .. x.device
    end, { tide.ones(1) })
end)

-- ---- goto ----

t.test("continue", function()
    same(function(n) --: int
        local sum = 0
        for k = 1, n do
            if k % 2 == 0 then goto continue end
            if k == 7 then break end
            sum = sum + k
            ::continue::
        end
        return sum
    end, { 3 }, { 6 }, { 20 })
end)

t.test("out_of_nested_loops_and_over_statements", function()
    same(function(n, m) --: int, int
        local found = 0
        for a = 1, n do
            for b = 1, n do
                if a * b == m then
                    found = a * 100 + b
                    goto done
                end
            end
        end
        found = -1
        ::done::
        do
            if found < 0 then goto skip end
            found = found + 1000
            if found > 1300 then return found, m end
            ::skip::
        end
        return found, n
    end, { 4, 6 }, { 4, 7 }, { 9, 63 }, { 0, 1 })
end)

-- ---- lists of tensors ----

t.test("lists_of_tensors_are_taken_apart", function()
    local function step(ps, gs, rate) --: Tensor[], Tensor[], float
        local new = {}
        for k = 1, #ps do
            table.insert(new, ps[k] - rate * gs[k] * gs[k])
        end
        return new, #ps
    end
    local f = tide.jit.script(step)
    local function list(shapes, dtypes)
        local made = {}
        for k, shape in ipairs(shapes) do
            made[k] = tide.randn(shape):to(dtypes[k] or tide.float32)
        end
        return made
    end
    local cases = {
        { { { 3 }, { 2, 2 }, {} } }, { { { 3 }, { 2, 2 }, {} } }, { { { 4 }, { 1, 2 }, {} } }, { { { 7 }, { 2, 5 }, {} } },
        { { { 3 }, { 2, 2 }, {} }, { tide.float64, tide.float16 } }, { { { 3 } } }, { {} },
    }
    for _, case in ipairs(cases) do
        local ps, gs = list(case[1], case[2] or {}), list(case[1], {})
        local want, got, n = step(ps, gs, 0.5), f(ps, gs, 0.5)
        t.eq(n, #ps)
        t.eq(#got, #want)
        for k = 1, #want do
            t.eq(tostring(got[k].dtype), tostring(want[k].dtype))
            t.is_true(tide.equal(got[k], want[k]), "entry " .. k)
        end
    end
    local ps, gs = list({ { 3 }, { 2, 2 } }, {}), list({ { 3 }, { 2, 2 } }, {})
    local _, groups = tostring(f:graph_for(ps, gs, 0.5)):gsub("= prim::FusionGroup_%d+%(", "")
    t.eq(groups, 2) -- a kernel for each entry
    t.is_true(tostring(f:why()):find("a list of 3 tensors", 1, true), tostring(f:why()))
    t.eq(pcall(f, ps, { gs[1] }, 0.5), false) -- shorter
    t.is_true(tide.equal(f({ ps[1] }, gs, 0.5)[1], step({ ps[1] }, gs, 0.5)[1])) -- longer
end)

t.test("long_lists_and_lists_that_are_handed_on_stay_whole", function()
    same(function(xs) --: Tensor[]
        local total = tide.zeros(2)
        for k = 1, #xs do
            total = total + xs[k] * k
        end
        return total, tide.cat(xs, 1):sum(), xs[1]
    end, { { tide.ones(2), tide.ones(2) * 3 } }, { { tide.ones(2) } })
    local long = {}
    for k = 1, 70 do
        long[k] = tide.full({ 2 }, k)
    end
    same(function(xs) --: Tensor[]
        local total = tide.zeros(2)
        for _, x in ipairs(xs) do
            total = total + x * x
        end
        return total
    end, { long }, { { tide.ones(2) } })
end)
