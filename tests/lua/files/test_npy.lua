-- NumPy's files: tide.io.load_npy and save_npy, and tide.load and tide.save by the file's name. The bytes stand here
-- as numpy.save writes them.
local t = require "harness"

local path = os.tmpname() .. ".npy"

local function put(bytes)
    local f = assert(io.open(path, "wb"))
    f:write(bytes)
    f:close()
end

local function get()
    local f = assert(io.open(path, "rb"))
    local bytes = f:read("a")
    f:close()
    return bytes
end

-- A file of version 1 to 3 with a header, padded as NumPy pads it.
local function npy(header, data, version)
    local wide = (version or 1) == 1 and 2 or 4
    local first = 8 + wide
    header = header .. (" "):rep(-(first + #header + 1) % 64) .. "\n"
    return "\x93NUMPY" .. string.char(version or 1, 0) .. string.pack("<I" .. wide, #header) .. header .. (data or "")
end

local function of(descr, fortran, shape)
    return ("{'descr': '%s', 'fortran_order': %s, 'shape': %s, }"):format(descr, fortran, shape)
end

local function load(bytes)
    put(bytes)
    return tide.io.load_npy(path)
end

local letters = {
    { "?", "|b1", "B", tide.bool }, { "|u1", "|u1", "B", tide.uint8 }, { "|i1", "|i1", "b", tide.int8 },
    { "<i2", "<i2", "i2", tide.int16 }, { "<i4", "<i4", "i4", tide.int32 }, { "<i8", "<i8", "i8", tide.int64 },
    { "<f4", "<f4", "f", tide.float32 }, { "<f8", "<f8", "d", tide.float64 },
}

t.test("every_dtype_comes_and_goes_as_numpy_writes_it", function()
    for _, row in ipairs(letters) do
        local bytes = npy(of(row[2], "False", "(2, 2)"), string.pack("<" .. row[3]:rep(4), 0, 1, 1, 0))
        local x = load(bytes)
        t.eq(x.dtype, row[4])
        t.eq(x:to(tide.int64):tolist(), { { 0, 1 }, { 1, 0 } })
        tide.io.save_npy(x, path)
        t.eq(get(), bytes)
    end
    local half = load(npy(of("<f2", "False", "(2,)"), "\x00\x3C\x00\xC0"))
    t.eq({ half.dtype, half:tolist() }, { tide.float16, { 1, -2 } })
end)

t.test("shapes_of_no_dims_and_no_elements_hold", function()
    local x = load(npy(of("<f8", "False", "()"), string.pack("<d", 2.5)))
    t.eq({ x.ndim, x:item() }, { 0, 2.5 })
    t.eq({ table.unpack(load(npy(of("<f4", "True", "(2, 0, 3)"))).shape) }, { 2, 0, 3 })
    for _, y in ipairs { tide.tensor(3.5), tide.zeros(0), tide.zeros(2, 0, 3), tide.ones(1, 1, 1, 1, 1, 1, 1, 1) } do
        tide.save(y, path)
        local back = tide.load(path)
        t.eq({ table.unpack(back.shape) }, { table.unpack(y.shape) })
        t.eq(back:tolist(), y:tolist())
    end
end)

t.test("columns_in_fortrans_order_stay_where_they_are", function()
    local x = load(npy(of("<i4", "True", "(2, 3)"), string.pack("<i4i4i4i4i4i4", 1, 2, 3, 4, 5, 6)))
    t.eq(x:tolist(), { { 1, 3, 5 }, { 2, 4, 6 } })
    t.eq({ x:stride(1), x:stride(2) }, { 1, 2 })
    tide.io.save_npy(x, path)
    t.eq(tide.io.load_npy(path):tolist(), { { 1, 3, 5 }, { 2, 4, 6 } })
    t.is_true(tide.io.load_npy(path):is_contiguous())
end)

t.test("the_other_order_of_bytes_is_turned", function()
    t.eq(load(npy(of(">i8", "False", "(2,)"), string.pack(">i8i8", math.maxinteger, -2))):tolist(), { math.maxinteger, -2 })
    t.eq(load(npy(of(">f4", "False", "(2,)"), string.pack(">ff", 0.5, -8))):tolist(), { 0.5, -8 })
    t.eq(load(npy(of(">f8", "True", "(1, 2)"), string.pack(">dd", 0.1, 1e300))):tolist(), { { 0.1, 1e300 } })
end)

t.test("all_versions_and_any_spelling_of_the_header_are_read", function()
    local data = string.pack("<ff", 1, 2)
    for version = 1, 3 do
        t.eq(load(npy(of("<f4", "False", "(2,)"), data, version)):tolist(), { 1, 2 })
    end
    t.eq(load(npy('{"shape":(2L,),"fortran_order":False,"descr":"<f4"}', data)):tolist(), { 1, 2 })
    local header = of("<f4", "False", "(2,)") -- no padding: elements lie at any address
    put("\x93NUMPY\1\0" .. string.pack("<I2", #header) .. header .. data)
    t.eq(tide.load(path):tolist(), { 1, 2 })
end)

t.test("several_arrays_in_a_file_are_several_results", function()
    local first, second = npy(of("<f4", "False", "(2,)"), string.pack("<ff", 1, 2)), npy(of(">i2", "True", "(1, 2)"), "\0\3\0\4")
    put(first .. second .. npy(of("|b1", "False", "(3,)"), "\1\0\1") .. first)
    for _, load_it in ipairs { tide.io.load_npy, tide.load } do
        local all = table.pack(load_it(path))
        t.eq(all.n, 4)
        t.eq({ all[1]:tolist(), all[2]:tolist(), all[3]:tolist(), all[4]:tolist() },
            { { 1, 2 }, { { 3, 4 } }, { true, false, true }, { 1, 2 } })
        all[1]:mul_(2) -- the bytes they share are parted
        t.eq({ all[1]:tolist(), all[4]:tolist() }, { { 2, 4 }, { 1, 2 } })
        t.eq(select("#", load_it(path, { device = "cpu" })), 4)
    end
    put(npy(of("<f4", "False", "(0,)")):rep(300))
    t.eq(select("#", tide.io.load_npy(path)), 300)
    for _, rest in ipairs { "\x93NUMP", "\x93NUMPY", second:sub(1, -2), second .. "x", ("\0"):rep(6) } do
        put(first .. rest)
        t.is_true(not pcall(tide.io.load_npy, path), rest)
    end
end)

t.test("dtypes_may_be_spelt_in_any_way_that_numpy_takes", function()
    for dtype, row in pairs {
        [tide.bool] = { "?", "bool", "b1", "bool_", pack = "B" }, [tide.uint8] = { "B", "uint8", "u1", "ubyte", pack = "B" },
        [tide.int8] = { "b", "int8", "i1", "byte", pack = "b" }, [tide.int16] = { "h", "int16", "i2", "short", pack = "i2" },
        [tide.int32] = { "i", "int32", "i4", "intc", pack = "i4" },
        [tide.int64] = { "q", "l", "int64", "i8", "int", "longlong", pack = "i8" },
        [tide.float32] = { "f", "float32", "f4", "single", pack = "f" }, [tide.float64] = { "d", "float64", "f8", "double", "float", pack = "d" },
    } do
        for _, word in ipairs(row) do
            for _, mark in ipairs { "", "<", "=", "|", ">" } do
                local x = load(npy(of(mark .. word, "False", "(2,)"), string.pack((mark == ">" and ">" or "<") .. row.pack:rep(2), 1, 0)))
                t.eq({ x.dtype, x:to(tide.int64):tolist() }, { dtype, { 1, 0 } }, mark .. word)
            end
        end
    end
    t.eq(load(npy(of("e", "False", "(1,)"), "\0\x3c")):tolist(), { 1 })
    t.eq(load(npy(of("half", "False", "(1,)"), "\0\x3c")).dtype, tide.float16)
    for _, word in ipairs { "", "<", "f3", "float3", "float", "oat32", "f4 ", " f4", "f4 i4", "O", "u2", "uint16", "c8", "V2", "S4", "<<f4", "F" } do
        put(npy(of(word, "False", "(1,)"), "\0\0\0\0"))
        t.is_true(not pcall(tide.io.load_npy, path), word)
    end
end)

t.test("a_file_that_is_wrong_is_refused_in_a_line", function()
    local eight = string.pack("<d", 1)
    for bytes, part in pairs {
        [""] = "no NumPy file", ["\x93NUMPY"] = "no NumPy file", ["\x93NUMPY\1\0\255\255{}"] = "cut off: a header of 65535 bytes in a file of 12",
        ["\x93NUMPY\4\0\0\0\0\0\0\0"] = "version 4 of the format is not known", ["\x93NUMPY\2\0\0\0"] = "cut off in its header",
        ["\x93NUMPY\3\0\255\255\255\255"] = "a header of 4294967295 bytes",
        [npy("")] = "not the dictionary", [npy("{}")] = "not the dictionary", [npy("{'descr': '<f8'}")] = "not the dictionary",
        [npy(of("<f8", "Maybe", "(1,)"), eight)] = "not the dictionary", [npy(of("<f8", "False", "(-1,)"), eight)] = "not the dictionary",
        [npy(of("<f8", "False", "(1 1)"), eight)] = "not the dictionary", [npy(of("<f8", "False", "(,)"), eight)] = "not the dictionary",
        [npy(of("<f8", "False", "(1,)") .. "x", eight)] = "not the dictionary",
        [npy("{'descr': '<f8', 'descr': '<f8', 'fortran_order': False, 'shape': (1,), }", eight)] = "not the dictionary",
        [npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1,), 'more': 1}", eight)] = "not the dictionary",
        [npy(of("<c8", "False", "(1,)"), eight)] = "dtype '<c8' is not one that Tide has",
        [npy(of("<u4", "False", "(2,)"), eight)] = "dtype '<u4'", [npy(of("|O", "False", "(1,)"), eight)] = "dtype '|O'",
        [npy(of("<U\n", "False", "(1,)"), eight)] = "dtype '<U?'",
        [npy("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,), }", eight)] = "records with fields",
        [npy(of("<f8", "False", "(2,)"), eight)] = "(2) of float64 takes 16 bytes, the file has 8",
        [npy(of("<f8", "False", "()"), eight .. "x")] = "() of float64 takes 8 bytes, the file has 9",
        [npy(of("<f8", "False", "(4611686018427387904, 4)"))] = "more elements than can be counted",
        [npy(of("<f8", "False", "(0, 99999999999999999999, 9)"))] = "more elements than can be counted",
        [npy(of("<f8", "False", "(" .. ("1, "):rep(17) .. ")"), eight)] = "more than 16 dims",
        [npy(of("|b1", "False", "(2,)"), "\1\2")] = "a bool that is neither 0 nor 1",
    } do
        put(bytes)
        for name, load_it in pairs { load_npy = tide.io.load_npy, load = tide.load } do
            local ok, message = pcall(load_it, path)
            t.is_true(not ok and message:find(name .. ": '" .. path .. "': ", 1, true), message)
            t.is_true(message:find(part, 1, true) and not message:find("\n"), message)
        end
    end
end)

t.test("load_npy_refuses_what_is_no_array", function()
    for bytes, part in pairs { ["PK\3\4"] = "no NumPy file", ["PK\3\4" .. ("x"):rep(30)] = ".npz", ["text"] = "no NumPy file" } do
        t.error_has(function() load(bytes) end, part)
    end
end)

t.test("a_file_cut_anywhere_is_refused", function()
    local whole = npy(of("<f8", "False", "(2,)"), string.pack("<dd", 1, 2))
    for n = 0, #whole - 1 do
        put(whole:sub(1, n))
        t.is_true(not pcall(tide.io.load_npy, path), n)
    end
end)

t.test("what_numpy_can_not_hold_is_said_and_leaves_the_file", function()
    put("kept")
    t.error_has(function() tide.save(tide.ones(2, { dtype = tide.bfloat16 }), path) end, "NumPy has no bfloat16: convert it to float32")
    t.error_has(function() tide.save({ a = tide.ones(2) }, path) end, "save: '" .. path .. "': a file for NumPy holds one tensor, got table")
    t.error_has(function() tide.io.save_npy(tide.ones(2, 2):to_sparse(), path) end, "save_npy: x is sparse")
    t.error_has(function() tide.io.save_npy(3, path) end, "save_npy")
    t.eq(get(), "kept")
    t.error_has(function() tide.io.save_npy(tide.ones(2), "/nonexistent/x.npy") end, "save_npy: cannot write '/nonexistent/x.npy': No such file")
    t.error_has(function() tide.io.load_npy("/nonexistent.npy") end, "load_npy: cannot read '/nonexistent.npy': No such file")
    t.error_has(function() tide.io.load_npy("/") end, "Is a directory")
end)

t.test("what_was_loaded_can_be_trained", function()
    tide.save(tide.ones(3), path)
    local w = tide.load(path):requires_grad_()
    w:mul(2):sum():backward()
    t.eq(w.grad:tolist(), { 2, 2, 2 })
    tide.save(w, path) -- over the file it came from
    t.eq(tide.load(path):tolist(), { 1, 1, 1 })
end)

os.remove(path)
