-- test_t7.lua: Torch7's files, binary and ASCII (tests/golden/t7_files.py); and files that lie.
local t = require "harness"
local here = arg[0]:match("^(.*)/") or "."
local folder = here .. "/../../golden/data/t7/"

local path = os.tmpname()

local function put(bytes)
    local f <close> = assert(io.open(path, "wb"))
    f:write(bytes)
end

local function get(name)
    local f <close> = assert(io.open(folder .. name, "rb"))
    return f:read("a")
end

-- What is left out is said by warnings, which are no matter here.
local function quiet(fn, ...)
    warn("@off")
    local results = table.pack(pcall(fn, ...))
    warn("@on")
    return table.unpack(results, 1, results.n)
end

t.test("tables_and_plain_values_are_as_they_were", function()
    for _, name in ipairs { "table.t7", "table_ascii.t7" } do
        local _, x, _, left = quiet(tide.load, folder .. name)
        t.eq({ x.number, math.type(x.number), x.half, x.big, x.text, x.empty, x.yes, x.no, x[-2.5], x[0], x[true] },
            { 7, "integer", 0.5, 1e300, "größe\nline", "", true, false, "key", "zero", "truth" }, name)
        t.eq(x.list, { 1, "two", { 3.25 }, {} })
        t.is_true(x.first == x.again)
        t.eq({ x.layer.torch_typename, x.layer.train, x.layer.weight:tolist() }, { "nn.Linear", false, { { 0, 1 }, { 2, 3 } } })
        t.eq({ x.fn, left }, { nil, { fn = "a function" } })
    end
end)

t.test("tensors_have_their_dtype_and_share_their_storages", function()
    local dtypes = { Byte = "uint8", Char = "int8", Short = "int16", Int = "int32", Long = "int64", Half = "float16", Float = "float32", Double = "float64" }
    for _, name in ipairs { "table.t7", "table_ascii.t7" } do
        for _, options in ipairs { {}, { map = false }, { device = "cpu" } } do
            local _, x = quiet(tide.load, folder .. name, options)
            for class, dtype in pairs(dtypes) do
                t.eq({ x.tensors[class].dtype, x.tensors[class]:to(tide.float64):tolist() }, { tide[dtype], { { 1, 2, 3 }, { 100, 5, 6 } } }, class)
            end
            t.eq({ x.turned:tolist()[2], x.row:tolist(), x.nothing:numel(), x.cuda.dtype, x.storage:numel() }, { { 1, 5, 9 }, { 4, 5, 6, 7 }, 0, tide.float32, 12 })
            x.grid:fill_(-1)
            t.eq({ x.row:tolist(), x.turned:sum():item(), x.layer.weight:sum():item() }, { { -1, -1, -1, -1 }, -12, -4 })
        end
    end
    t.eq(tide.load(folder .. "tensor.t7"):tolist()[4], { 3, 7, 11 })
end)

-- ---- files that lie ----

local function int(n) return string.pack("<i4", n) end
local function long(n) return string.pack("<i8", n) end
local function text(s) return int(#s) .. s end
local function number(x) return int(1) .. string.pack("<d", x) end
local function object(index, class, rest) return int(4) .. int(index) .. text "V 1" .. text(class) .. (rest or "") end
local function storage(index, elements) return object(index, "torch.FloatStorage", long(#elements) .. string.pack("<" .. ("f"):rep(#elements), table.unpack(elements))) end

local function tensor(shape, strides, offset, rest, class)
    local parts = { int(#shape) }
    for _, list in ipairs { shape, strides } do
        for _, n in ipairs(list) do
            parts[#parts + 1] = long(n)
        end
    end
    return object(1, class or "torch.FloatTensor", table.concat(parts) .. long(offset) .. rest)
end

local two = storage(2, { 1.5, -2 })

t.test("what_lies_about_places_lengths_or_kinds_is_refused_in_a_line", function()
    put(tensor({ 2 }, { 1 }, 1, two))
    t.eq(tide.load(path):tolist(), { 1.5, -2 })
    for _, case in ipairs {
        { "reaches to element 3 of a storage of 2", tensor({ 3 }, { 1 }, 1, two) }, { "reaches to element 3 of a storage of 2", tensor({ 2 }, { 1 }, 2, two) },
        { "its offset, sizes or strides are none", tensor({ 1 }, { 1 }, 0, two) }, { "its offset, sizes or strides are none", tensor({ 1 }, { 1 }, math.mininteger, two) },
        { "its offset, sizes or strides are none", tensor({ -1 }, { 1 }, 1, two) }, { "its offset, sizes or strides are none", tensor({ 2 }, { -1 }, 2, two) },
        { "reaches to element", tensor({ math.maxinteger }, { math.maxinteger }, 1, two) }, { "more elements than can be counted", tensor({ 1 << 40, 1 << 40 }, { 0, 0 }, 1, two) },
        { "a tensor of float32 without such a storage", tensor({ 1 }, { 1 }, 1, number(1)) },
        { "a tensor of float64 without such a storage", tensor({ 1 }, { 1 }, 1, two, "torch.DoubleTensor") },
        { "a tensor of 17 dims", tensor({ 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 }, {}, 1, two) }, { "a tensor of -1 dims", object(1, "torch.FloatTensor", int(-1)) },
        { "5 elements in 4 bytes", object(1, "torch.FloatStorage", long(5) .. "abcd") }, { "a negative number of elements", object(1, "torch.FloatStorage", long(-1)) },
        { "9223372036854775807 elements in 0 bytes", object(1, "torch.FloatStorage", long(math.maxinteger)) },
        { "class tds.Strange writes no table", object(1, "tds.Strange", int(9)) }, { "a table of -1 pairs", int(3) .. int(1) .. int(1) .. number(1) .. int(3) .. int(2) .. int(-1) },
        { "a key that can't be one", int(3) .. int(1) .. int(1) .. int(0) .. number(1) }, { "a key that can't be one", int(3) .. int(1) .. int(1) .. number(0 / 0) .. number(1) },
        { "a value of the unknown kind 9", int(3) .. int(1) .. int(1) .. number(1) .. int(9) }, { "it holds a function", int(8) .. int(1) .. text "code" .. int(0) },
        { "a function of -1 bytes", int(8) .. int(1) .. int(-1) },
        { "cut off", int(3) .. int(1) .. int(1 << 30) .. number(1) }, { "nested more than 500 deep", (int(3) .. int(1) .. int(1) .. number(1)) .. ((function()
            local parts = {}
            for k = 2, 600 do
                parts[#parts + 1] = int(3) .. int(k) .. int(1) .. number(1)
            end
            return table.concat(parts)
        end)()) },
        { "a number that is none", "3\n1\n1\n1\nx\n" }, { "cut off", "3\n1\n1\n2\n900\nabc\n" }, { "10 elements in", "4\n1\n3\nV 1\n18\ntorch.FloatStorage\n10\n1 2\n" },
    } do
        local name = path .. ".t7"
        local f = assert(io.open(name, "wb"))
        f:write(case[2])
        f:close()
        local message = t.error_has(function() tide.load(name) end, case[1], case[1])
        t.is_true(message:find("load: '" .. name .. "': ", 1, true) and not message:find("\n"), message)
        os.remove(name)
    end
end)

t.test("a_table_that_names_another_twice_is_no_bomb", function()
    local parts = {}
    for k = 1, 300 do
        parts[k] = int(3) .. int(k) .. int(2) .. number(1)
    end
    local ends = {}
    for k = 300, 2, -1 do
        ends[#ends + 1] = number(2) .. int(3) .. int(k)
    end
    put(table.concat(parts) .. number(7) .. number(2) .. number(8) .. table.concat(ends))
    local x = tide.load(path)
    t.is_true(x[1] == x[2] and x[1][1] == x[1][2])
end)

t.test("a_file_cut_anywhere_or_with_any_byte_turned_is_refused_in_a_line_or_read", function()
    for _, name in ipairs { "table.t7", "table_ascii.t7", "tensor.t7" } do
        local whole = get(name)
        for n = 0, #whole - 1 do
            put(whole:sub(1, n))
            local ok, message = quiet(tide.load, path)
            t.is_true(not ok and not message:find("\n") and message:find("load: '", 1, true), message)
        end
        for n = 1, #whole, name == "tensor.t7" and 1 or 3 do
            put(whole:sub(1, n - 1) .. string.char(whole:byte(n) ~ 0x11) .. whole:sub(n + 1))
            local ok, got = quiet(tide.load, path)
            t.is_true(ok or not got:find("\n") and got:find("load: '", 1, true), got)
        end
    end
    os.remove(path)
end)
