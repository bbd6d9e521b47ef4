-- tide.data.table: columns by name, rows chosen and sorted, statistics as pandas works them out, and what is written is read again.
local t = require "harness"
local data = tide.data

local path = os.tmpname()

local function houses()
    return data.table { { "area", { 50.5, 0 / 0, 70.25, 81, 12.125 } }, { "rooms", { 2, 3, 4, 5, 1 } },
        { "kind", data.table { k = { "flat", "house", "flat", "x", "flat" } }.k }, { "price", { 100.0, 200, 0 / 0, 400, 350 } } }
end

local function plain(tbl)
    local rows = {}
    for k = 1, #tbl do
        rows[k] = tbl[k]
        for name, v in pairs(rows[k]) do
            rows[k][name] = v == v and v or "nan"
        end
    end
    return rows
end

t.test("columns_are_tensors_and_texts_by_name", function()
    local tbl = data.table { b = tide.arange(3), a = { "x", "y", "x" }, c = { true, false, true } }
    t.eq({ #tbl, tbl:names(), tbl.b:tolist(), tbl["a"]:tolist(), tbl.c.dtype }, { 3, { "a", "b", "c" }, { 0, 1, 2 }, { "x", "y", "x" }, tide.bool })
    t.eq({ tbl.a[1], tbl.a[-2], tbl.a[4], #tbl.a, tbl.a.categories, tbl.a.codes:tolist() }, { "x", "y", nil, 3, { "x", "y" }, { 1, 2, 1 } })
    t.eq({ tbl.nothing, tbl[4], tbl[-1] }, { nil, nil, { a = "x", b = 2, c = true } })
    t.error_has(function() tbl:column("d") end, "column: no column 'd'; there are a, b, c")
    local odd = data.table { { "head", { 1, 2 } }, { "a b", { 1.5, 2 } } }
    t.eq({ odd:column("head"):tolist(), odd["a b"]:tolist(), #odd:head(1) }, { { 1, 2 }, { 1.5, 2 }, 1 })
    t.eq({ #data.table {}, tostring(data.table {}) }, { 0, "0 rows, 0 columns" })
end)

t.test("columns_are_added_replaced_and_taken_away_without_a_word_to_other_tables", function()
    local tbl = houses()
    local part = tbl:head(5)
    tbl.twice = tbl.rooms * 2
    tbl.area = { 1, 2, 3, 4, 5 }
    tbl.kind = nil
    t.eq({ tbl:names(), part:names() }, { { "area", "rooms", "price", "twice" }, { "area", "rooms", "kind", "price" } })
    t.eq({ tbl.twice:tolist(), tbl.area:tolist(), part.area[1]:item() }, { { 4, 6, 8, 10, 2 }, { 1, 2, 3, 4, 5 }, 50.5 })
    t.eq(tbl:with { head = tbl.rooms }:names(), { "area", "rooms", "price", "twice", "head" })
    t.error_has(function() tbl.short = { 1, 2 } end, "column 'short' has 2 rows, the first 5")
    t.error_has(function() tbl.matrix = tide.ones(5, 2) end, "column 'matrix': a tensor of one dim or a list of numbers, booleans or texts expected, got shape (5, 2)")
    t.error_has(function() tbl.head = tbl.rooms end, "a table's method is called 'head'")
    t.error_has(function() tbl.mixed = { 1, "a", 2, 3, 4 } end, "column 'mixed'")
    t.error_has(function() data.table(5) end, "table: a path or columns by name expected, got number 5")
    t.error_has(function() data.table { { "a" } } end, "columns[1]: {name, column} expected")
end)

t.test("names_and_texts_are_any_bytes", function()
    local tbl = data.table { ["a\0b"] = { "x\0y", "x" }, n = { 2, 1 } }
    t.eq({ tbl["a\0b"][1], tbl:column("a\0b"):eq("x\0y"):tolist(), tbl:sort("a\0b").n:tolist() }, { "x\0y", { true, false }, { 1, 2 } })
    t.error_has(function() tbl:column(5) end, "column: no column number 5; there are")
    t.error_has(function() tbl["a\0b"]:eq(5) end, "eq: a text expected, got number 5")
    t.error_has(function() tbl["a\0b"]:isin { 5 } end, "isin: a text expected, got number 5")
end)

t.test("rows_are_chosen_by_range_mask_and_numbers", function()
    local tbl = houses()
    local function rooms(part) return part.rooms:tolist() end
    t.eq({ rooms(tbl[{ 2, 3 }]), rooms(tbl[{ -2, -1 }]), rooms(tbl:rows(4, 99)), rooms(tbl:rows(3, 2)), rooms(tbl:head(2)), rooms(tbl:tail(2)),
        rooms(tbl:head(0)), rooms(tbl:tail(0)) }, { { 3, 4 }, { 5, 1 }, { 5, 1 }, {}, { 2, 3 }, { 5, 1 }, {}, {} })
    t.eq({ rooms(tbl[tbl.rooms:gt(2)]), rooms(tbl[tbl.kind:eq "flat"]), rooms(tbl[tbl.kind:isin { "x", "house", "none" }]), rooms(tbl[tide.tensor { 5, 1, 1 }]) },
        { { 3, 4, 5 }, { 2, 4, 1 }, { 3, 5 }, { 1, 2, 2 } })
    t.eq(tbl[tbl.kind:eq "flat"].kind:tolist(), { "flat", "flat", "flat" })
    t.eq(tbl:select { "price", "rooms" }:names(), { "price", "rooms" })
    t.error_has(function() tbl:select { "prize" } end, "select: no column 'prize'; there are area, rooms, kind, price")
    t.error_has(function() return tbl[tide.tensor { true, false }] end, "a mask of 5 rows")
    t.error_has(function() return tbl[tide.tensor { 1.5 }] end, "a mask of 5 rows, or row numbers")
    t.error_has(function() return tbl[tide.tensor { 6 }] end, "6")
end)

t.test("sorting_is_stable_and_puts_what_is_missing_last", function()
    local tbl = houses() -- pandas: sort_values(kind = "stable")
    t.eq(tbl:sort("area").rooms:tolist(), { 1, 2, 4, 5, 3 })
    t.eq(tbl:sort("area", { descending = true }).rooms:tolist(), { 5, 4, 2, 1, 3 })
    t.eq(tbl:sort("kind").rooms:tolist(), { 2, 4, 1, 3, 5 })
    t.eq(tbl:sort("kind", { descending = true }).rooms:tolist(), { 5, 3, 2, 4, 1 })
    t.eq(data.table { w = { "b", "B", "ä", "", "ab" } }:sort("w").w:tolist(), { "", "B", "ab", "b", "ä" })
    t.eq(#data.table { a = tide.zeros(0) }:sort("a"), 0)
end)

t.test("statistics_are_those_of_pandas", function()
    local d = houses():describe()
    t.eq({ d:names(), d.statistic:tolist() }, { { "statistic", "area", "rooms", "price" },
        { "count", "mean", "std", "min", "25%", "50%", "75%", "max", "missing" } })
    for name, want in pairs {
        area = { 4, 53.46875, 30.318856721793892, 12.125, 40.90625, 60.375, 72.9375, 81, 1 },
        rooms = { 5, 3, 1.5811388300841898, 1, 2, 3, 4, 5, 0 },
        price = { 4, 262.5, 137.68926368215256, 100, 175, 275, 362.5, 400, 1 },
    } do
        for k, x in ipairs(want) do
            t.close(d:column(name)[k]:item(), x, 1e-13 * math.abs(x), name .. k)
        end
    end
    local none = data.table { a = { 0 / 0, 0 / 0 }, b = { 5.0, 0 / 0 } }:describe()
    t.eq({ none.a[1]:item(), none.a[9]:item(), none.b[2]:item(), none.b[6]:item() }, { 0, 2, 5, 5 })
    t.is_true(none.a:isnan():sum():item() == 7 and none.b[3]:isnan():item())
end)

t.test("groups_are_aggregated_as_pandas_does", function()
    local groups = houses()[{ 1, 3 }]
    groups = houses()[houses().kind:isin { "flat", "house" }]:groupby("kind")
    local mean, std, sum, count, min, max = groups:mean(), groups:std(), groups:sum(), groups:count(), groups:min(), groups:max()
    t.eq({ mean:names(), mean.kind:tolist(), groups:size().size:tolist() }, { { "kind", "area", "rooms", "price" }, { "flat", "house" }, { 3, 1 } })
    t.eq(plain(mean)[1], { kind = "flat", area = 44.291666666666664, rooms = 2.3333333333333335, price = 225 })
    t.eq(plain(mean)[2], { kind = "house", area = "nan", rooms = 3, price = 200 })
    t.close(std.area[1]:item(), 29.5556501930398, 1e-12)
    t.eq(plain(std)[2], { kind = "house", area = "nan", rooms = "nan", price = "nan" })
    t.eq(plain(sum), { { kind = "flat", area = 132.875, rooms = 7, price = 450 }, { kind = "house", area = 0, rooms = 3, price = 200 } })
    t.eq(plain(count), { { kind = "flat", area = 3, rooms = 3, price = 2 }, { kind = "house", area = 0, rooms = 1, price = 1 } })
    t.eq(plain(min), { { kind = "flat", area = 12.125, rooms = 1, price = 100 }, { kind = "house", area = "nan", rooms = 3, price = 200 } })
    t.eq(plain(max), { { kind = "flat", area = 70.25, rooms = 4, price = 350 }, { kind = "house", area = "nan", rooms = 3, price = 200 } })
    t.eq(data.table { k = { 2, 1, 2 }, v = { 1, 2, 4 } }:groupby("k"):sum().v:tolist(), { 2, 5 })
end)

t.test("a_matrix_of_columns", function()
    local tbl = houses()
    local x = tbl:to_tensor { "rooms", "kind" }
    t.eq({ x.dtype, x:tolist() }, { tide.default_dtype, { { 2, 1 }, { 3, 2 }, { 4, 1 }, { 5, 3 }, { 1, 1 } } })
    t.eq({ tbl:to_tensor().shape[2], tbl:to_tensor({ "rooms" }, { dtype = tide.int32 }).dtype }, { 3, tide.int32 })
    t.error_has(function() tbl:select { "kind" }:to_tensor() end, "there are no columns of numbers")
end)

t.test("a_loader_gives_batches_of_columns_with_and_without_workers", function()
    local tbl = houses():select { "rooms", "area", "kind" }
    for workers = 0, 2 do
        local seen = {}
        for batch in data.DataLoader { tbl, batch_size = 2, num_workers = workers } do
            t.eq({ batch.rooms.dtype, batch.area.dtype }, { tide.int64, tide.float64 })
            for k, kind in ipairs(batch.kind) do
                seen[#seen + 1] = { batch.rooms[k]:item(), kind }
            end
        end
        t.eq(seen, { { 2, "flat" }, { 3, "house" }, { 4, "flat" }, { 5, "x" }, { 1, "flat" } })
    end
    local whole = data.DataLoader { tbl, batch_size = 5 }:iter()()
    local single = data.default_collate { tbl:get(1), tbl:get(2), tbl:get(3), tbl:get(4), tbl:get(5) }
    t.is_true(whole.rooms:equal(single.rooms) and single.rooms.dtype == tide.int64)
    t.eq(whole.kind, single.kind)
    t.error_has(function() tbl:get(6) end, "index 6: there are 5 samples")
end)

t.test("what_is_written_is_read_again", function()
    local tbl = houses():with { flag = { true, false, true, false, true }, f32 = tide.tensor { 0.1, 1 / 3, 2, 1e30, -0.0 } }
    tbl:write_csv(path)
    t.eq(io.open(path):read("l"), "area,rooms,kind,price,f32,flag")
    local again = tide.io.read_table(path)
    t.eq(plain(again:select { "area", "rooms", "kind", "price", "flag" }), plain(tbl:select { "area", "rooms", "kind", "price", "flag" }))
    t.is_true(again.f32:float():equal(tbl.f32))
    local words = { "NA", "", "null", " a", 'b"c', "d,e", "f\ng", "h;i", "é", "7" }
    for _, delimiter in ipairs { ",", ";", "\t" } do
        data.table { { "w", words }, { "n", tide.arange(10) } }:write_csv(path, { delimiter = delimiter })
        t.eq(tide.io.read_table(path, { delimiter = delimiter }).w:tolist(), words)
    end
    data.table { w = { "", "NA", "x" } }:write_csv(path)
    t.eq(tide.io.read_table(path).w:tolist(), { "", "NA", "x" })
    data.table { v = { 1.5, 0 / 0, 2 } }:write_csv(path)
    t.eq(io.open(path):read("a"), "v\n1.5\nNA\n2\n")
    data.table { v = { 1, 2 } }:write_csv(path, { header = false })
    t.eq(io.open(path):read("a"), "1\n2\n")
    t.error_has(function() tbl:write_csv("/nonexistent/x.csv") end, "write_csv: cannot write")
    t.error_has(function() tbl:write_csv(path, { delimiter = "." }) end, "one character expected that no number holds")
end)

t.test("a_table_is_shown_in_as_many_columns_and_rows_as_there_is_room_for", function()
    local tbl = data.table { { "n", { 1, 20 } }, { "x", { 0.5, 0 / 0 } }, { "s", { "a\nb", "é" } } }
    t.eq(tostring(tbl), table.concat({ "       n        x  s", "   int64  float64  text", "1      1      0.5  a\\nb", "2     20        -  é", "2 rows, 3 columns" }, "\n"))
    local long = tostring(data.table { k = tide.arange(1000), word = tide.io and data.table { w = { "x" } }.w[tide.ones(1000, { dtype = tide.int64 })] })
    t.eq(select(2, long:gsub("\n", "\n")), 23) -- 20 rows, a gap, two lines in front, one behind
    t.is_true(long:find("\n1000  ", 1, true) and long:find("\n ...  ", 1, true) and long:find("1000 rows, 2 columns", 1, true))
    local wide = {}
    for k = 1, 100 do
        wide[k] = { "column" .. k, { k, k } }
    end
    local shown = getmetatable(data.table(wide)).__display(data.table(wide))
    for line in shown["text/plain"]:gmatch "[^\n]+" do
        t.is_true(utf8.len(line) <= 100, line)
    end
    t.is_true(shown["text/plain"]:find("2 rows, 100 columns", 1, true) and shown["text/html"]:find("<b>column1</b>", 1, true))
    t.is_true(not data.table { ["<b>"] = { "<i>" } }.__display)
    local html = getmetatable(tbl).__display(data.table { ["<b>"] = { "<i>" } })["text/html"]
    t.is_true(html:find("&lt;b&gt;", 1, true) and html:find("&lt;i&gt;", 1, true) and not html:find("<i>", 1, true))
end)

t.test("the_parts_in_c_believe_nobody", function()
    local bytes, offsets = tide._texts_pack { "ab", "" }
    t.eq({ tide._texts_at(bytes, offsets, 1), tide._texts_at(bytes, offsets, 2) }, { "ab", "" })
    for _, k in ipairs { 0, 3, -1, math.maxinteger, math.mininteger } do
        t.is_true(not pcall(tide._texts_at, bytes, offsets, k))
    end
    for _, wrong in ipairs { { 0, 3, 2 }, { -1, 1, 2 }, { 0, 1, 9 }, {} } do
        local o = tide.tensor(wrong, { dtype = tide.int64 })
        t.is_true(not pcall(tide._texts_order, bytes, o) and not pcall(tide._texts_find, bytes, o, "ab"))
    end
    t.is_true(not pcall(tide._texts_order, offsets, bytes))
    t.is_true(not pcall(tide._csv_write_columns, path, { tide.ones(2), tide.ones(3) }, ",", nil, {}, {}))
    t.is_true(not pcall(tide._csv_write_columns, path, { tide.ones(2, 2) }, ",", nil, {}, {}))
end)

os.remove(path)
