-- tide.io.read_csv: what a cell says is what the tensor holds, or one line that names file and line.
local t = require "harness"

local path = os.tmpname()

local function read(text, options)
    local f = assert(io.open(path, "wb"))
    f:write(text)
    f:close()
    return tide.io.read_csv(path, options or {})
end

local function refuses(text, dtype, ...)
    for _, part in ipairs { ... } do
        t.error_has(function() read(text, { dtype = dtype }) end, part)
    end
end

t.test("integers_are_exact_to_the_last_digit", function()
    local lines = "9007199254740993,-9007199254740993\n9223372036854775807,-9223372036854775808\n"
    t.eq(read(lines, { dtype = tide.int64 }):tolist(),
        { { 9007199254740993, -9007199254740993 }, { math.maxinteger, math.mininteger } })
end)

t.test("whole_numbers_may_be_written_in_any_way", function()
    t.eq(read("1.50e1,+1e3,12300e-2,0.0,-0,000,1e18,0x1f,-0X10", { dtype = tide.int64 }):tolist(),
        { { 15, 1000, 123, 0, 0, 0, 1000000000000000000, 31, -16 } })
    t.eq(read("9007199254740993.000,90071992547409.93e2", { dtype = tide.int64 }):tolist(),
        { { 9007199254740993, 9007199254740993 } })
end)

t.test("what_an_integer_dtype_can_not_hold_is_refused", function()
    refuses("1\n2,\n", tide.int64, "line 2: 2 columns, the first row has 1")
    refuses("1\n1.5\n", tide.int64, "line 2", "column 1", "'1.5' is not an integer, as int64 needs")
    refuses("nan\n", tide.int64, "'nan' is not an integer")
    refuses("1e-3\n", tide.int32, "'1e-3' is not an integer")
    refuses("x\n", tide.int64, "'x' is not a number")
    for dtype, beyond in pairs {
        [tide.uint8] = "256 -1 1e3", [tide.int8] = "128 -129", [tide.int16] = "32768 -32769",
        [tide.int32] = "2147483648 -2147483649 0x80000000",
        [tide.int64] = "9223372036854775808 -9223372036854775809 1e19 1e99999999999999999999 0xfffffffffffffffff",
    } do
        for cell in beyond:gmatch("%S+") do
            refuses(cell, dtype, "'" .. cell .. "' is beyond the range of " .. tostring(dtype):sub(6))
        end
    end
end)

t.test("edges_of_integer_dtypes_are_held", function()
    t.eq(read("255,0,-0", { dtype = tide.uint8 }):tolist(), { { 255, 0, 0 } })
    t.eq(read("127,-128", { dtype = tide.int8 }):tolist(), { { 127, -128 } })
    t.eq(read("2147483647,-2147483648", { dtype = tide.int32 }):tolist(), { { 2147483647, -2147483648 } })
end)

t.test("a_negative_zero_keeps_its_sign", function()
    t.eq(1 / read("-0"):item(), -math.huge)
    t.eq(1 / read("-0.0", { dtype = tide.float64 }):item(), -math.huge)
end)

t.test("floats_round_once_and_never_to_infinity", function()
    t.eq(read("1.00000005960464478"):item(), 1 + 2 ^ -23) -- through a double it would be 1
    t.eq(read("inf,-inf,Infinity"):tolist(), { { math.huge, -math.huge, math.huge } })
    t.eq(read("nan"):isnan():item(), true)
    t.eq(read("1e-400", { dtype = tide.float64 }):item(), 0)
    refuses("1e400", tide.float64, "'1e400' is beyond the range of float64")
    refuses("1e39", tide.float32, "'1e39' is beyond the range of float32")
    refuses("70000", tide.float16, "'70000' is beyond the range of float16")
end)

t.test("a_byte_order_mark_is_no_number", function()
    t.eq(read("\xEF\xBB\xBF1,2\n3,4\n"):tolist(), { { 1, 2 }, { 3, 4 } })
    refuses("\xFF\xFE1\0,\0002\0", tide.float32, "UTF-16")
end)

t.test("what_is_no_number_is_shown_on_one_line", function()
    for cell, shown in pairs {
        ["1_000"] = "1_000", ["1\0002"] = "1\\x002", ["nan(1)"] = "nan(1)", ["--1"] = "--1",
        ["0x"] = "0x", ["."] = ".", ["e5"] = "e5", ["1\xFF2"] = "1\\xFF2", ["1\xC3\xA92"] = "1é2", [("7"):rep(50) .. "x"] = ("7"):rep(40) .. "...",
    } do
        refuses("1\n" .. cell .. "\n", nil, "line 2, column 1: '" .. shown .. "' is not a number")
        refuses("1\n" .. cell .. "\n", tide.int64, "line 2, column 1: '" .. shown .. "' is not a number")
    end
    refuses("1,,2", nil, "column 2: '' is not a number")
end)

t.test("blanks_and_line_ends_of_all_systems_are_passed_over", function()
    t.eq(read(" 1 ,\t2 \r\n\r\n  \n3,4"):tolist(), { { 1, 2 }, { 3, 4 } })
    t.eq(read("x,y\r\n1,2", { header = true }):tolist(), { { 1, 2 } })
    refuses("x\n", nil, "line 1")
    t.error_has(function() read("x,y", { header = true }) end, "no rows")
    t.error_has(function() read("\xEF\xBB\xBF\n") end, "no rows")
end)

t.test("a_carriage_return_alone_ends_a_line", function()
    t.eq(read("1,2\r3,4\r5,6"):tolist(), { { 1, 2 }, { 3, 4 }, { 5, 6 } })
    t.eq(read("1,2\n3,4\r5,6\r\n\r7,8\r\r\n"):tolist(), { { 1, 2 }, { 3, 4 }, { 5, 6 }, { 7, 8 } })
    local x, info = read("a,b\r1,2\r", { header = true })
    t.eq({ info.names, x:tolist() }, { { "a", "b" }, { { 1, 2 } } })
    refuses("1\r2\r\nx\r", nil, "line 3, column 1")
    refuses("\r\n\n\rx", nil, "line 4, column 1")
end)

t.test("runs_of_blanks_part_columns_where_a_blank_does", function()
    for _, text in ipairs { "1 2 3\n4 5 6\n", "  1   2\t3  \n\t4 5\t \t6\t\n   \n", "1  2 3\r4 5  6", ' "1" "2"  3\n4 "5" 6 ' } do
        t.eq(read(text, { delimiter = " " }):tolist(), { { 1, 2, 3 }, { 4, 5, 6 } }, text)
    end
    local x, info = read('mpg "car name"\tyear\n18.0 "chevrolet  malibu" 70\n', { delimiter = " ", header = true, classes = 2 })
    t.eq({ info.names, info.classes["car name"], x:tolist() }, { { "mpg", "car name", "year" }, { "chevrolet  malibu" }, { { 18, 1, 70 } } })
    t.eq(read("1\t\t3\n", { delimiter = "\t", missing = 2 }):tolist(), { { 1, 2, 3 } }) -- a tab alone parts cells
    t.error_has(function() read("1 2\n3 4 5\n", { delimiter = " " }) end, "line 2: 3 columns, the first row has 2")
    t.error_has(function() read('1 "2"3\n', { delimiter = " " }) end, "line 1, column 2: a quoted cell ends")
    tide.io.write_csv(tide.tensor { { 1, 2 } }, path, { delimiter = " ", header = { "a b", "c\td" }, classes = { [2] = { "x", "" } } })
    x, info = tide.io.read_csv(path, { delimiter = " ", header = true, classes = { ["c\td"] = { "x", "" } } })
    t.eq({ info.names, x:tolist() }, { { "a b", "c\td" }, { { 1, 2 } } })
end)

t.test("fractions_may_stand_behind_a_comma", function()
    local text = "1,5;-2,25;3\n+,5;1,e3;\"7,0\"\n"
    for _, dtype in ipairs { tide.float64, tide.float32, tide.float16 } do
        t.eq(read(text, { delimiter = ";", decimal = ",", dtype = dtype }):tolist(), { { 1.5, -2.25, 3 }, { 0.5, 1000, 7 } })
    end
    t.eq(read("1,0;2", { delimiter = ";", decimal = ",", dtype = tide.int64 }):tolist(), { { 1, 2 } })
    t.eq(read("0,1;-;1e400", { delimiter = ";", decimal = ",", missing = -1, columns = { 1, 2 }, dtype = tide.float64 }):tolist(), { { 0.1, -1 } })
    for cell, why in pairs { ["1.5"] = "not a number", ["1,5,0"] = "not a number", ["1.000,5"] = "not a number", [","] = "not a number",
        ["1,5x"] = "not a number", ["1,0e99"] = "beyond the range" } do
        t.error_has(function() read("1\n" .. cell .. "\n", { delimiter = ";", decimal = "," }) end, "'" .. cell .. "' is " .. why)
    end
    t.error_has(function() read("1,5;2\n", { delimiter = ";" }) end, "'1,5' is not a number; {decimal = \",\"} reads such numbers")
    t.error_has(function() read("1,5", { decimal = "," }) end, 'option decimal: "," parts the columns already')
    t.error_has(function() read("1", { decimal = "'" }) end, 'option decimal: "." or "," expected')
end)

t.test("what_gzip_packed_is_unpacked", function()
    local function put(bytes)
        local file = assert(io.open(path, "wb"))
        file:write(bytes)
        file:close()
    end
    local function pack(text)
        put(text)
        assert(os.execute(("gzip -c %s > %s"):format(path, path .. ".gz")))
        return path .. ".gz"
    end
    local packed = pack("a,b\n1,2\n3,4\n")
    t.eq(tide.io.read_csv(packed, { header = true }):tolist(), { { 1, 2 }, { 3, 4 } })
    os.rename(packed, path) -- whatever it is called
    t.eq(tide.io.read_csv(path, { header = true }):tolist(), { { 1, 2 }, { 3, 4 } })
    local rows = {}
    for k = 1, 300000 do
        rows[k] = k .. "," .. k * k
    end
    local x = tide.io.read_csv(pack(table.concat(rows, "\n")), { dtype = tide.int64 })
    t.eq({ x.shape[1], x[{ 300000, 2 }]:item() }, { 300000, 90000000000 })
    pack("1,2\n")
    assert(os.execute(("gzip -c %s >> %s"):format(path, path .. ".gz"))) -- two members
    t.eq(tide.io.read_csv(path .. ".gz"):tolist(), { { 1, 2 }, { 1, 2 } })
    local file = io.open(pack(("1\n"):rep(1000)), "rb")
    local bytes = file:read("a")
    file:close()
    for _, n in ipairs { 3, 9, 12, #bytes - 9, #bytes - 1 } do
        put(bytes:sub(1, n))
        t.error_has(function() tide.io.read_csv(path) end, "the packed file is cut short or damaged")
    end
    put(bytes:sub(1, -9) .. "xxxxxxxx")
    t.error_has(function() tide.io.read_csv(path) end, "cut short or damaged")
    os.remove(path .. ".gz")
    for bytes, what in pairs { ["PK\3\4"] = "zip archive or a spreadsheet", BZh9 = "bzip2", ["\xFD7zXZ\0"] = "xz", PAR1 = "Parquet",
        ["\x28\xB5\x2F\xFD"] = "zstd" } do
        t.error_has(function() read(bytes .. "\0\0\1") end, what)
    end
end)

t.test("a_cell_ends_where_the_delimiter_stands", function()
    t.eq(read("1e5", { delimiter = "e" }):tolist(), { { 1, 5 } })
    t.eq(read("1 2", { delimiter = " " }):tolist(), { { 1, 2 } })
    t.error_has(function() read("1", { delimiter = "\n" }) end, "delimiter: one character expected")
end)

t.test("thousands_of_columns_are_read", function()
    local row = {}
    for k = 1, 5000 do
        row[k] = k
    end
    local x = read(table.concat(row, ","), { dtype = tide.int64 })
    t.eq({ x.shape[2], x[{ 1, 5000 }]:item() }, { 5000, 5000 })
end)

t.test("what_can_not_be_read_is_said", function()
    t.error_has(function() tide.io.read_csv("/") end, "read_csv: cannot read '/': Is a directory")
    t.error_has(function() tide.io.read_csv("/nonexistent") end, "No such file")
    t.error_has(function() tide.io.read_csv(path .. "\0more") end, "holds a NUL byte")
    t.eq(tide.io.read_csv("/proc/sys/kernel/pid_max").ndim, 2) -- says that it has no bytes
end)

os.remove(path)
