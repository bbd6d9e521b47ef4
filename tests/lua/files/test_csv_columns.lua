-- tide.io.read_csv with names, texts and gaps, and tide.io.write_csv: what is written is what is read.
local t = require "harness"

local path = os.tmpname()

local function put(text)
    local f = assert(io.open(path, "wb"))
    f:write(text)
    f:close()
end

local function read(text, options)
    put(text)
    return tide.io.read_csv(path, options)
end

local function refuses(text, options, part)
    t.error_has(function() read(text, options) end, part)
end

local houses = "area, rooms,kind,price\n50.5,2,flat,100\nNA,3,\"house, big\",200\r\n\n70,4,flat,?\n"

t.test("a_header_names_the_columns", function()
    local x, info = read("a,b\n1,2\n3,4\n", { header = true })
    t.eq(info.names, { "a", "b" })
    t.eq(info.columns.b:tolist(), { 2, 4 })
    info.columns.b:zero_()
    t.eq(x:tolist(), { { 1, 0 }, { 3, 0 } }) -- it looks into the matrix
    t.eq(select("#", read("1,2\n")), 1)
end)

t.test("columns_are_chosen_by_name_or_number_in_that_order", function()
    t.eq(read(houses, { header = true, columns = { "price", "rooms" }, missing = -1, dtype = tide.int64 }):tolist(),
        { { 100, 2 }, { 200, 3 }, { -1, 4 } })
    t.eq(read("1,2,x\n3,4,y\n", { columns = { 2 } }):tolist(), { { 2 }, { 4 } })
    local x, info = read(houses, { header = true, columns = "rooms", classes = "kind" })
    t.eq(x:tolist(), { { 2 }, { 3 }, { 4 } })
    t.eq(info.columns.kind:tolist(), { 1, 2, 1 })
    t.eq(info.names, { "rooms" })
end)

t.test("texts_become_classes_in_the_order_of_their_bytes", function()
    local x, info = read("y,v\nb,1\na,2\nb,3\nB,4\n", { header = true, classes = { "y" } })
    t.eq(info.classes.y, { "B", "a", "b" })
    t.eq(info.columns.y:tolist(), { 3, 2, 3, 1 })
    t.eq(info.columns.y.dtype, tide.int64)
    t.eq(x:tolist(), { { 3, 1 }, { 2, 2 }, { 3, 3 }, { 1, 4 } })
    local _, second = read("y,v\na,1\n", { header = true, classes = info.classes })
    t.eq(second.columns.y:tolist(), { 2 })
    t.eq(second.classes.y, { "B", "a", "b" })
    local _, plain = read("a\nb\na\n", { classes = { 1 } })
    t.eq(plain.columns[1]:tolist(), { 1, 2, 1 })
end)

t.test("classes_that_are_wrong_are_refused", function()
    refuses("y\nc\n", { header = true, classes = { y = { "a", "b" } } }, "line 2, column 1: 'c' is none of the classes that were given")
    refuses("y,z\n,1\n", { header = true, classes = "y" }, "line 2, column 1: '' is empty and names no class")
    refuses("y\na\n", { header = true, classes = { y = { "a", "a" } } }, "'a' stands there twice")
    refuses("y\na\n", { header = true, classes = { y = {} } }, "got an empty one")
    refuses("y\na\n", { header = true, classes = { y = { 1 } } }, "a list of texts expected, got number 1")
    refuses("y\na\n", { header = true, classes = { "y", y = { "a" } } }, "column 1 is named twice")
    refuses("y\na\n", { header = true, classes = true }, "names or numbers of columns expected, got true")
    local rows = {}
    for k = 1, 200 do
        rows[k] = "c" .. k
    end
    refuses(table.concat(rows, "\n"), { classes = 1, dtype = tide.int8 }, "200 classes are more than tide.int8 counts")
end)

t.test("missing_values_are_what_is_asked_for", function()
    local words = { "", "NA", "N/A", "n/a", "null", "NULL", "None", "?", "#N/A", "#NA", "<NA>", "-", "--", ".", "nan", "NaN", "-nan", "1.#IND",
        "-1.#QNAN", "#N/A N/A", " - ", '"<NA>"', "na" }
    local x = read("1," .. table.concat(words, ",") .. "\n", { missing = 0 / 0 })
    t.eq(x:isnan():sum():item(), #words)
    t.eq(read("1," .. table.concat(words, ",") .. "\n", { missing = -1, dtype = tide.int32 }):sum():item(), 1 - #words)
    for _, word in ipairs { "#", "<>", "N", "---", "..", "nana", "NULLs", "<NA", "inf" } do
        t.is_true(not pcall(read, "1," .. word .. "\n", { missing = 0, dtype = tide.int64 }), word)
    end
    t.eq(read("1,\n", { missing = 7, dtype = tide.int8 }):tolist(), { { 1, 7 } })
    refuses("1,2\n3,\n", {}, "line 2, column 2: '' is not a number; {missing = 0/0} reads such cells")
    refuses("1,2\n3,NA\n", { dtype = tide.int32 }, "'NA' is not a number; {missing = 0} reads such cells")
    refuses("1,x\n", { missing = 0 }, "'x' is not a number")
    refuses("1,\n", { missing = 0 / 0, dtype = tide.int64 }, "option missing: tide.int64 does not hold nan")
    refuses("1,\n", { missing = 300, dtype = tide.uint8 }, "does not hold 300")
end)

t.test("what_is_no_number_says_what_would_read_it", function()
    refuses("a,b\n1,2\n", {}, "line 1, column 1: 'a' is not a number; {header = true} takes the first line as names")
    refuses("a,b\n1,x\n", { header = true }, 'line 2, column 2: \'x\' is not a number; {classes = {"b"}} reads texts as classes')
    refuses("1,2\n1,x\n", {}, "{classes = {2}} reads texts as classes")
end)

t.test("columns_that_are_not_there_are_named", function()
    refuses(houses, { header = true, columns = { "prise" } }, "option columns: no column 'prise'; there are area, rooms, kind, price")
    refuses(houses, { header = true, columns = { 5 } }, "option columns: column 5 of 4")
    refuses(houses, { header = true, columns = { 0 } }, "column 0 of 4")
    refuses(houses, { header = true, columns = {} }, "got table")
    refuses(houses, { header = true, columns = { "area", "area" } }, "column 1 is named twice")
    refuses(houses, { header = true, columns = { 1.5 } }, "got number 1.5")
    refuses("1,2\n", { columns = "area" }, "'area' is a name, and names come from a header")
    refuses("a,a\n1,2\n", { header = true, columns = "a" }, "'a' is the name of columns 1 and 2: give the number")
    local _, info = read("a,b,a\n1,2,3\n", { header = true })
    t.eq({ info.columns[1]:item(), info.columns.b:item(), info.columns[3]:item() }, { 1, 2, 3 })
    t.eq(rawget(info.columns, "a"), nil)
    refuses("a,b\n1\n", { header = true }, "line 2: 1 columns, the header has 2")
end)

t.test("cells_may_stand_in_quotes", function()
    local x, info = read('"a ""b""", "c,d" ,e\n"1", "2",3\n', { header = true })
    t.eq(info.names, { 'a "b"', "c,d", "e" })
    t.eq(x:tolist(), { { 1, 2, 3 } })
    t.eq(read('1,"2"\n"",4\n', { missing = 0 }):tolist(), { { 1, 2 }, { 0, 4 } })
    t.eq(read('1\t"2"\n', { delimiter = "\t" }):tolist(), { { 1, 2 } })
    t.eq(read('1"2\n', { delimiter = '"' }):tolist(), { { 1, 2 } })
    for _, cell in ipairs { '"1', '"1"2', '"', '"""', '"1" 2' } do
        refuses("1,2\n3," .. cell .. "\n", {}, "line 2, column 2: a quoted cell ends at a quote, with nothing behind it")
    end
    refuses('1,2\n1,"2",\n', {}, "line 2: 3 columns, the first row has 2")
end)

t.test("quoted_cells_hold_ends_of_lines", function()
    local text = 'id,note,y\n1,"two\nlines",5\n2,"a ""b"", and\r\n\r\nmore\r",6\n3,plain,x\n'
    refuses(text, { header = true, columns = { "id", "y" } }, "line 8, column 3: 'x' is not a number")
    local x, info = read(text:gsub("x\n", "7\n"), { header = true, columns = { "id", "y" }, classes = "note" })
    t.eq(x:tolist(), { { 1, 5 }, { 2, 6 }, { 3, 7 } })
    t.eq(info.classes.note, { 'a "b", and\r\n\r\nmore\r', "plain", "two\nlines" })
    x, info = read('"a\nb","c"\n"1",2', { header = true })
    t.eq({ info.names, x:tolist() }, { { "a\nb", "c" }, { { 1, 2 } } })
    refuses('a,"b\n1,2\n', { header = true }, "line 1, column 2: a quoted cell ends")
    refuses('1,2\n3,"4\n5,6\n', {}, "line 2, column 2: a quoted cell ends")
    refuses('1,2\n"3\n4"5,6\n', {}, "line 2, column 1: a quoted cell ends")
    refuses('1,"2\n3"\n', {}, "'2\\x0A3' is not a number")
    tide.io.write_csv(tide.tensor { { 1, 2 }, { 2, 1 } }, path, { header = { "p\nq", "r\r" }, classes = { [2] = { "u\nv", "w\r\n" } } })
    x, info = tide.io.read_csv(path, { header = true, classes = 2 })
    t.eq({ info.names, info.classes["r\r"], x:tolist() }, { { "p\nq", "r\r" }, { "u\nv", "w\r\n" }, { { 1, 2 }, { 2, 1 } } })
end)

t.test("texts_that_are_not_utf8_are_windows_1252", function()
    local x, info = read("caf\xe9,pre\xdfel,\x80,ok\xc3\xa9\n1,2,3,na\xefve\n", { header = true, classes = 4 })
    t.eq(info.names, { "café", "preßel", "€", "oké" })
    t.eq({ info.columns["café"]:item(), info.columns["€"]:item(), info.classes["oké"] }, { 1, 3, { "naïve" } })
    x = read("a\n\xe9\n\xe8\n", { header = true, classes = { a = { "è", "é" } } })
    t.eq(x:tolist(), { { 2 }, { 1 } })
    refuses("caf\xe9\n1\n", { header = true, columns = "cafe" }, "there are café")
    refuses("1\ncaf\xe9\n", {}, "'caf\\xE9' is not a number")
end)

-- ---- writing ----

local function same_bits(a, b)
    t.eq(a.dtype, b.dtype)
    t.eq({ table.unpack(a.shape) }, { table.unpack(b.shape) })
    local both = a:eq(b):logical_or(a:isnan():logical_and(b:isnan()))
    t.is_true(both:all():item())
    if a.dtype.is_floating_point then
        t.is_true(a:signbit():logical_or(a:isnan()):eq(b:signbit():logical_or(b:isnan())):all():item())
    end
end

t.test("what_is_written_reads_back_to_the_bit", function()
    for _, dtype in ipairs { tide.float64, tide.float32, tide.float16, tide.bfloat16 } do
        tide.manual_seed(1)
        local x = (tide.randn(60, 5) * tide.randn(60, 5):mul(8):exp()):to(dtype)
        x = x:clamp(-tide.finfo(dtype).max, tide.finfo(dtype).max)
        x[1] = tide.tensor({ 0 / 0, math.huge, -math.huge, -0.0, tide.finfo(dtype).max }, { dtype = dtype })
        x[2] = tide.tensor({ 1 / 3, 2 / 3, 0.1, 1e-5, tide.finfo(dtype).smallest_normal / 8 }, { dtype = dtype })
        tide.io.write_csv(x, path)
        same_bits(tide.io.read_csv(path, { dtype = dtype }), x)
    end
    for _, dtype in ipairs { tide.int64, tide.int32, tide.int16, tide.int8, tide.uint8 } do
        local x = tide.tensor({ { tide.iinfo(dtype).min, tide.iinfo(dtype).max, 0, 1, 100 } }, { dtype = dtype })
        tide.io.write_csv(x, path)
        same_bits(tide.io.read_csv(path, { dtype = dtype }), x)
    end
    tide.io.write_csv(tide.tensor { true, false }, path)
    t.eq(tide.io.read_csv(path, { dtype = tide.bool }):tolist(), { { true }, { false } })
end)

t.test("numbers_are_written_in_few_digits", function()
    tide.io.write_csv(tide.tensor { { 0.1, 1 / 3, 100, -0.0, 1e30 } }, path)
    t.eq(io.open(path):read("a"), "0.1,0.33333334,100,-0,1e+30\n")
    tide.io.write_csv(tide.tensor({ 0.1, 2.5 }, { dtype = tide.float16 }), path, { delimiter = ";" })
    t.eq(io.open(path):read("a"), "0.1\n2.5\n")
end)

t.test("names_and_classes_come_back", function()
    local options = { header = true, missing = 0 / 0, classes = "kind" }
    local x, info = read(houses, options)
    tide.io.write_csv(x, path, { header = info.names, classes = info.classes })
    t.eq(io.open(path):read("a"), 'area,rooms,kind,price\n50.5,2,flat,100\nnan,3,"house, big",200\n70,4,flat,nan\n')
    local y, second = tide.io.read_csv(path, options)
    same_bits(x, y)
    t.eq(second.classes, info.classes)
    t.eq(second.names, info.names)
    local odd = { ' a', 'b"c', "d\re", "", "f,g", "'", "\0", "h" }
    for _, mark in ipairs { "\xEF\xBB\xBFa", "ÿþ" } do
        tide.io.write_csv(tide.ones(1), path, { header = { mark } })
        t.eq(select(2, tide.io.read_csv(path, { header = true })).names, { mark })
    end
    tide.io.write_csv(tide.arange(1, 9):reshape(1, 8), path, { header = odd })
    t.eq(select(2, tide.io.read_csv(path, { header = true })).names, odd)
end)

t.test("any_layout_is_written", function()
    local x = tide.arange(6):reshape(2, 3)
    tide.io.write_csv(x:t(), path)
    t.eq(io.open(path):read("a"), "0,3\n1,4\n2,5\n")
    tide.io.write_csv((x * 1.0):requires_grad_():mul(2), path)
    t.eq(io.open(path):read("a"), "0,2,4\n6,8,10\n")
end)

t.test("what_can_not_be_written_is_said_and_leaves_the_file", function()
    local x = tide.ones(2, 2)
    put("kept")
    local function fails(part, ...)
        local arguments = table.pack(...)
        t.error_has(function() tide.io.write_csv(table.unpack(arguments, 1, arguments.n)) end, part)
        t.eq(io.open(path):read("a"), "kept")
    end
    fails("got shape (2, 2, 2)", tide.ones(2, 2, 2), path)
    fails("got shape ()", tide.tensor(1), path)
    fails("shape (2, 0) has no columns", tide.ones(2, 0), path)
    fails("1 names for 2 columns", x, path, { header = { "a" } })
    fails("texts expected, got number 2", x, path, { header = { "a", 2 } })
    fails("row 1, column 2: 1 is no number of its 0 classes", x, path, { classes = { [2] = {} } })
    fails("row 1, column 1: 1.5 is no number of its 2 classes", x * 1.5, path, { classes = { { "a", "b" } } })
    fails("a list of texts expected, got string", x, path, { classes = { "a" } })
    fails("'y' is a name, and names come from a header", x, path, { classes = { y = { "a" } } })
    fails("one character expected that no number holds", x, path, { delimiter = "." })
    fails("one character expected", x, path, { delimiter = ", " })
    fails("no option 'heder': did you mean 'header'?", x, path, { heder = { "a", "b" } })
    t.error_has(function() tide.io.write_csv(x, "/nonexistent/x.csv") end, "write_csv: cannot write '/nonexistent/x.csv': No such file")
    t.error_has(function() tide.io.write_csv(x:to_sparse(), path) end, "sparse")
    t.error_has(function() tide.io.write_csv(x, "/dev/full") end, "cannot write '/dev/full': not a regular file")
    t.error_has(function() tide.io.write_csv(tide.tensor { 1, 0 / 0 }, path, { classes = { { "a" } } }) end, "row 2, column 1: nan is no")
end)

t.test("the_parts_in_c_believe_nobody", function()
    local function open()
        put("1,2\n3,4\n")
        return (tide._csv_open(path, { delimiter = ",", header = false, decimal = "." }, "read_csv"))
    end
    for _, places in ipairs { { 7, 9 }, { 2 }, { -1, 1 }, { 0 }, { 1 << 62 } } do
        t.is_true(not pcall(tide._csv_convert, open(), tide.float32, places, {}, {}))
    end
    t.is_true(not pcall(tide._csv_convert, open(), "none", { 1 }, {}, {}))
    t.is_true(not pcall(tide._csv_convert, open(), tide.float32))
    local file = open()
    tide._csv_convert(file, tide.float32, { 1, 2 }, {}, {})
    t.error_has(function() tide._csv_convert(file, tide.float32, { 1, 2 }, {}, {}) end, "converted already")
    for _, x in ipairs { tide.ones(2), tide.ones(2, 3):t(), tide.ones(2, 2):to_sparse(), 5 } do
        t.is_true(not pcall(tide._csv_write, path, x, ",", nil, {}))
    end
    t.is_true(not pcall(tide._csv_write, path, tide.ones(2, 2), ",", { "a" }, {}))
end)

os.remove(path)
