-- tide.io.read_table: every column of the type that its cells have, whatever the file looks like.
local t = require "harness"

local path = os.tmpname()

local function put(text)
    local f = assert(io.open(path, "wb"))
    f:write(text)
    f:close()
end

local function read(text, options)
    put(text)
    return tide.io.read_table(path, options)
end

local function dtype(x) return tide.is_tensor(x) and tostring(x.dtype):match("[%w]+$") or "text" end

-- {type, values} of each column; false where a value is missing.
local function columns(tbl)
    local all = {}
    for k, name in ipairs(tbl:names()) do
        local c = tbl:column(name)
        local values = c:tolist()
        for at, v in ipairs(values) do
            values[at] = v == v and v or false
        end
        all[k] = { name, dtype(c), values }
    end
    return all
end

t.test("columns_have_the_narrowest_type_that_all_of_their_cells_are_of", function()
    t.eq(columns(read("i,f,b,s,m\n1,1.5,true,x,1\n-2,3,FALSE,y y,\n+3,-1e3,True,,2.5\n")), {
        { "i", "int64", { 1, -2, 3 } }, { "f", "float64", { 1.5, 3, -1000 } }, { "b", "bool", { true, false, true } },
        { "s", "text", { "x", "y y", false } }, { "m", "float64", { 1, false, 2.5 } } })
    t.eq(columns(read("a,b,c,d\n1,,true,\n2,5,,x\nz,6,false,\n")), { { "a", "text", { "1", "2", "z" } }, { "b", "float64", { false, 5, 6 } },
        { "c", "float64", { 1, false, 0 } }, { "d", "text", { false, "x", false } } })
    t.eq(columns(read("a,b\n,1\nNA,2\n")), { { "a", "float64", { false, false } }, { "b", "int64", { 1, 2 } } })
    t.eq(columns(read("a,b\ntrue,2020-01-31\n1,2020-02-01\n")), { { "a", "text", { "true", "1" } }, { "b", "text", { "2020-01-31", "2020-02-01" } } })
end)

t.test("a_type_that_widens_late_changes_no_cell_before", function()
    for n = 1, 9001, 4500 do -- within a block and across several
        local ints, floats, truths = {}, {}, {}
        for k = 1, n do
            ints[k], floats[k], truths[k] = k, k + 0.5, k % 2 == 0
        end
        local function lines(list, last)
            local text = { "v" }
            for k, v in ipairs(list) do
                text[k + 1] = tostring(v)
            end
            text[#text + 1] = last
            return table.concat(text, "\n") .. "\n"
        end
        for _, case in ipairs { { ints, "0.25", "float64", 0.25 }, { ints, "x", "text", "x" }, { floats, "x", "text", "x" }, { truths, "x", "text", "x" },
            { ints, "NA", "float64", false }, { truths, "7", "text", "7" }, { ints, "true", "text", "true" } } do
            local c = columns(read(lines(case[1], case[2]), { header = true }))[1]
            local want = {}
            for k, v in ipairs(case[1]) do
                want[k] = case[3] == "text" and tostring(v) or v
            end
            want[n + 1] = case[4]
            t.eq(c, { "v", case[3], want }, case[2])
        end
    end
    local x = read("v\n-0\n0\n1.5\n").v
    t.eq({ 1 / x[1]:item(), 1 / x[2]:item() }, { -math.huge, math.huge })
    t.eq(columns(read("v\n-0\n1\n"))[1], { "v", "int64", { 0, 1 } })
end)

t.test("integers_keep_their_digits", function()
    t.eq(columns(read("a\n9223372036854775807\n-9223372036854775808\n")), { { "a", "int64", { math.maxinteger, math.mininteger } } })
    t.eq(columns(read("a\n1\n9223372036854775808\n")), { { "a", "text", { "1", "9223372036854775808" } } })
    t.eq(columns(read("a\n0.5\n9223372036854775808\n")), { { "a", "float64", { 0.5, 2 ^ 63 } } })
    t.eq(columns(read("a\n0012\n00000000000000000000000000000007\n")), { { "a", "int64", { 12, 7 } } })
end)

-- Texts whose nearest double is hard to tell: halfway cases, cut digits, subnormals, ends of the range.
local HARD = { "0", "-0.0", "9007199254740993", "9007199254740992.99999999999", "9007199254740993.00000000000000000000001", "1e22", "1e23", "8.5e22",
    "4503599627370496.5", "4503599627370497.5", "0.500000000000000166533453693773481063544750213623046875", "1.7976931348623157e308",
    "1.7976931348623159e308", "2.2250738585072014e-308", "2.2250738585072011e-308", "4.9e-324", "2.4703282292062327e-324",
    "2.4703282292062328e-324", "7.2057594037927933e16", "3.518437208883201171875e13", "62.5364939768271845828", "8.10109172351e-10",
    "1.50000000000000011102230246251565", "9007199254740991.4999999999999999999999999999999995", "6.631236846766476e-316", "123456789012345678e-30",
    "179769313486231580793728971405301e276", "1e-54", "9.999999999999999e54", "12345678901234567890123456789012345678901234567890", ".5", "5.", "1E5",
    "1e+5", "1e400", "-1e400", "1e-400", "inf", "-Infinity", "0.1", "0.2", "0.30000000000000004", "1844674407370955161.7", "5e-45",
    "99999999999999999999", "0.00000000000000000000000000000000000000000000000000000000000001", "100000000000000016777215", "100000000000000016777216" }

t.test("numbers_are_the_nearest_doubles", function()
    local lines = { "v", "0.5" }
    local state = 88172645463325252
    local function draw(n)
        state = state ~ (state << 13)
        state = state ~ (state >> 7)
        state = state ~ (state << 17)
        return (state >> 1) % n
    end
    for _, text in ipairs(HARD) do
        lines[#lines + 1] = text
    end
    for _ = 1, 20000 do
        local digits = {}
        for k = 1, 1 + draw(22) do
            digits[k] = draw(10)
        end
        local text = table.concat(digits)
        local at = draw(#text + 1)
        text = (draw(2) == 0 and "-" or "") .. text:sub(1, at) .. "." .. text:sub(at + 1)
        lines[#lines + 1] = draw(2) == 0 and text or text .. "e" .. (draw(160) - 80)
    end
    for _ = 1, 5000 do -- every double, in the digits that tell it from all others
        local x = string.unpack("d", string.pack("i8", state))
        draw(2)
        lines[#lines + 1] = x == x and math.abs(x) < math.huge and ("%.17g"):format(x) or "1"
    end
    local got = read(table.concat(lines, "\n")).v:tolist()
    t.eq(#got, #lines - 1)
    for k, x in ipairs(got) do
        local text = lines[k + 1]
        local want = tonumber(text) or (text:find "^%-" and -math.huge or math.huge)
        if math.type(want) == "integer" then
            want = tonumber(text .. ".0")
        end
        t.eq(string.pack("d", x), string.pack("d", want), text)
    end
end)

t.test("quotes_hold_delimiters_ends_of_lines_and_quotes", function()
    t.eq(columns(read('id,"a ""name"""\r\n1,"x,""y"""\r\n2,"two\r\nlines"\r\n3,""\r\n')), { { "id", "int64", { 1, 2, 3 } },
        { 'a "name"', "text", { 'x,"y"', "two\r\nlines", "" } } })
    t.eq(columns(read('n,s\n"1","NA"\n"2",NA\n')), { { "n", "int64", { 1, 2 } }, { "s", "text", { "NA", false } } })
    t.eq(columns(read('s\n""\nx\n')), { { "s", "text", { "", "x" } } })
    t.error_has(function() read('a,b\n1,"2\n') end, "line 2, column 2: a quoted cell ends at a quote")
    t.error_has(function() read('a,b\n"1"x,2\n') end, "line 2, column 1: a quoted cell ends at a quote")
end)

t.test("header_delimiter_and_decimal_mark_are_found", function()
    for text, want in pairs {
        ["a;b\n1,5;2\n2,5;3\n"] = { { "a", "float64", { 1.5, 2.5 } }, { "b", "int64", { 2, 3 } } },
        ["1,5;2,5\n2,5;3,5\n"] = { { "c1", "float64", { 1.5, 2.5 } }, { "c2", "float64", { 2.5, 3.5 } } },
        ["a\tb\nx, y\t1\nz\t2\n"] = { { "a", "text", { "x, y", "z" } }, { "b", "int64", { 1, 2 } } },
        ["a|b\n1|2\n"] = { { "a", "int64", { 1 } }, { "b", "int64", { 2 } } },
        ["1 2.5\n3 4.5\n"] = { { "c1", "int64", { 1, 3 } }, { "c2", "float64", { 2.5, 4.5 } } },
        ["name\nJane Roe\nJohn Doe\n"] = { { "name", "text", { "Jane Roe", "John Doe" } } },
        ["1,2\n3,4\n"] = { { "c1", "int64", { 1, 3 } }, { "c2", "int64", { 2, 4 } } },
        ["a,a,,b\n1,2,3,4\n"] = { { "a", "int64", { 1 } }, { "a.1", "int64", { 2 } }, { "c3", "int64", { 3 } }, { "b", "int64", { 4 } } },
    } do
        t.eq(columns(read(text)), want, text)
    end
    t.eq(columns(read("x,y\n1,2\n", { header = false })), { { "c1", "text", { "x", "1" } }, { "c2", "text", { "y", "2" } } })
    t.eq(columns(read("1990,1991\n1,2\n", { header = true })), { { "1990", "int64", { 1 } }, { "1991", "int64", { 2 } } })
end)

t.test("thousands_comments_skipped_lines_and_marks", function()
    t.eq(columns(read('a;b\n1.234;1.000.000,5\n-56;2\n', { thousands = ".", decimal = ",", delimiter = ";" })),
        { { "a", "int64", { 1234, -56 } }, { "b", "float64", { 1000000.5, 2 } } })
    t.eq(columns(read('a\n"1,234"\n",1"\n', { thousands = "," }))[1], { "a", "text", { "1,234", ",1" } })
    t.eq(columns(read("# made by hand\n\na,b # names\n1,2\n# nothing\n3,4#5\n", { comment = "#" })),
        { { "a", "int64", { 1, 3 } }, { "b", "int64", { 2, 4 } } })
    t.eq(columns(read("made by hand, on Monday\nand, more, of it\na,b\n1,2\n", { skip = 2 })), { { "a", "int64", { 1 } }, { "b", "int64", { 2 } } })
    t.eq(columns(read("\xEF\xBB\xBFa,b\r1,caf\xe9\r2,\x80\r")), { { "a", "int64", { 1, 2 } }, { "b", "text", { "café", "€" } } })
    t.error_has(function() read("a\n1\n", { comment = ",", delimiter = "," }) end, 'option comment: "," parts the columns')
    t.error_has(function() read("a\n1\n", { thousands = "." }) end, 'option thousands: "." stands in numbers already')
    t.error_has(function() read("a;b\n1,2;3\n", { thousands = "," , decimal = "," }) end, 'option thousands')
end)

t.test("missing_values_are_configurable", function()
    local words = { "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA", "NULL", "NaN", "None",
        "n/a", "nan", "null" }
    local text = "v,w\n1,x\n"
    for _, word in ipairs(words) do
        text = text .. word .. "," .. word .. "\n"
    end
    local tbl = read(text)
    t.eq({ tbl.v:isnan():sum():item(), tbl.w:isnan():sum():item() }, { #words, #words })
    t.eq(columns(read("a,b\n1,-\n-999,x\n", { missing = { "-999", "-" } })), { { "a", "float64", { 1, false } }, { "b", "text", { false, "x" } } })
    t.eq(columns(read("a,b\n1,NA\n2,\n", { missing = false })), { { "a", "int64", { 1, 2 } }, { "b", "text", { "NA", false } } })
    t.error_has(function() read("a\n1\n", { missing = { 5 } }) end, "option missing: texts expected, got number 5")
end)

t.test("columns_types_and_rows_are_chosen", function()
    local text = "a,b,c\n1,2,x\n3,4,y\n5,6,z\n"
    t.eq(columns(read(text, { columns = { "c", "a" } })), { { "c", "text", { "x", "y", "z" } }, { "a", "int64", { 1, 3, 5 } } })
    t.eq(columns(read(text, { columns = 2, types = "float" })), { { "b", "float64", { 2, 4, 6 } } })
    t.eq(columns(read(text, { rows = 2, types = { a = "text", [2] = "float" } })), { { "a", "text", { "1", "3" } }, { "b", "float64", { 2, 4 } },
        { "c", "text", { "x", "y" } } })
    t.eq(columns(read("a\n1\n0\n\n", { types = { a = "bool" } })), { { "a", "bool", { true, false } } })
    t.eq(#read(text, { rows = 0 }), 0)
    t.error_has(function() read(text, { types = { c = "int" } }) end, "line 2, column 3: 'x' is no integer of int64, which option types says")
    t.error_has(function() read("a\n\"\"\n1\n", { types = "int" }) end, "line 2, column 1: '' is no integer")
    t.error_has(function() read(text, { types = { c = "date" } }) end, 'option types: "int", "float", "bool" or "text" expected, got string "date"')
    t.error_has(function() read(text, { columns = "d" }) end, "option columns: no column 'd'; there are a, b, c")
    t.error_has(function() read(text, { types = { d = "int" } }) end, "option types: no column 'd'")
    t.error_has(function() read("a,b\n1,2\n3\n") end, "line 3: 1 columns, the first row has 2")
    t.error_has(function() read("a,b\n") end, "holds no rows")
end)

t.test("chunks_have_the_types_of_the_whole_file", function()
    local lines = { "a,b,c,d" }
    for k = 1, 10 do
        lines[k + 1] = ("%d,%s,%s,%s"):format(k, k == 10 and "0.5" or k, k == 9 and "x" or k, k == 7 and "" or "true")
    end
    put(table.concat(lines, "\n"))
    local whole, at = tide.io.read_table(path), 0
    for chunk in tide.io.read_csv(path, { chunk = 4 }) do
        for _, name in ipairs(whole:names()) do
            t.eq(dtype(chunk:column(name)), dtype(whole:column(name)), name)
        end
        for k = 1, #chunk do
            at = at + 1
            local got, want = chunk[k], whole[at]
            got.d, want.d = got.d == got.d and got.d, want.d == want.d and want.d
            t.eq(got, want)
        end
    end
    t.eq(at, 10)
    local sizes = {}
    for chunk in tide.io.read_table(path, { chunk = 4, rows = 9, columns = { "c" } }) do
        sizes[#sizes + 1] = #chunk
    end
    t.eq(sizes, { 4, 4, 1 })
    for option, value in pairs { classes = "c", missing = 0, dtype = tide.int64 } do
        t.error_has(function() tide.io.read_csv(path, { chunk = 4, [option] = value }) end, "option " .. option .. " is for a matrix")
    end
end)

t.test("large_files_are_mapped_and_packed_ones_unpacked", function()
    local lines = { "k,s" }
    for k = 1, 30000 do
        lines[k + 1] = k .. ",text " .. k % 100
    end
    put(table.concat(lines, "\n"))
    local tbl = tide.io.read_table(path)
    t.eq({ #tbl, tbl.k:sum():item(), tbl[30000].s, #tbl.s.categories }, { 30000, 450015000, "text 0", 100 })
    assert(os.execute(("gzip -c %s > %s.gz"):format(path, path)))
    local packed = tide.io.read_table(path .. ".gz")
    t.is_true(packed.k:equal(tbl.k) and packed.s.codes:equal(tbl.s.codes))
    os.remove(path .. ".gz")
end)

t.test("zeros_of_integers_have_no_sign_and_those_of_floats_do", function()
    local x = read("i,f\n0,0\n-0,-0\n00,-0.0\n1,1.5\n")
    t.eq({ x.i:tolist(), tide.is_tensor(x.i) and x.i.dtype }, { { 0, 0, 0, 1 }, tide.int64 })
    t.eq({ 1 / x.f[1]:item(), 1 / x.f[2]:item(), 1 / x.f[3]:item() }, { math.huge, -math.huge, -math.huge })
end)

t.test("a_file_cut_anywhere_is_read_or_refused_in_one_line", function()
    local text = 'a,"b ""c""",d\r\n1,"x\ny",true\r\n-2.5e3,"",NA\r\n'
    for n = 0, #text do
        put(text:sub(1, n))
        local ok, got = pcall(tide.io.read_table, path)
        t.is_true(ok and #got >= 0 or not ok and got:find("read_table", 1, true) and not got:find "\n", n .. ": " .. tostring(got))
    end
    for n = 1, #text do
        for _, byte in ipairs { 0, 10, 34, 44, 255 } do
            put(text:sub(1, n - 1) .. string.char(byte) .. text:sub(n + 1))
            local ok, got = pcall(tide.io.read_table, path)
            t.is_true(ok or got:find("read_table", 1, true) and not got:find "\n", n .. ": " .. tostring(got))
        end
    end
end)

os.remove(path)
