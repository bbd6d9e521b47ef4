-- test_npz.lua: NumPy's archives of arrays, byte by byte as NumPy writes them (tests/golden/npz_files.py), and as Tide does.
local t = require "harness"
local here = arg[0]:match("^(.*)/") or "."
local golden = dofile(here .. "/../../golden/data/npz.lua")

local path = os.tmpname() .. ".npz"

local function put(bytes)
    local f <close> = assert(io.open(path, "wb"))
    f:write(bytes)
end

local function get()
    local f <close> = assert(io.open(path, "rb"))
    return f:read("a")
end

local function names_of(arrays)
    local names = {}
    for name in pairs(arrays) do
        names[#names + 1] = name
    end
    table.sort(names)
    return names
end

-- Is it what NumPy saved? zeros are in the deflated archive alone.
local function check(arrays, packed)
    local wanted = {}
    for name, row in pairs(golden.arrays) do
        if packed or name ~= "zeros" then
            wanted[name] = row
        end
    end
    t.eq(names_of(arrays), names_of(wanted))
    for name, row in pairs(wanted) do
        local x = arrays[name]
        t.eq(x.dtype, tide[row.dtype], name)
        t.eq({ table.unpack(x.shape) }, row.shape, name)
        if name == "zeros" then
            t.eq(x:ne(0):any():item(), false)
        else
            local values = row.dtype == "int64" and x or x:to(row.dtype:find("int") and tide.int64 or tide.float64)
            t.eq(values:flatten():tolist(), row.values, name)
        end
    end
end

t.test("what_numpy_saved_is_read_whichever_way_it_lies_in_the_archive", function()
    for _, packed in ipairs { false, true } do
        put(packed and golden.deflated or golden.stored)
        for _, load_it in ipairs { tide.load, tide.io.load_npz } do
            check(load_it(path), packed)
            check(load_it(path, { device = "cpu" }), packed)
        end
    end
    put(golden.nothing)
    t.eq({ tide.load(path), tide.io.load_npz(path) }, { {}, {}, {} })
end)

t.test("arrays_of_other_dtypes_are_left_out_and_do_not_keep_the_rest_from_loading", function()
    put(golden.foreign)
    local arrays, left = tide.io.load_npz(path)
    t.eq(names_of(arrays), { "plain" })
    t.eq(names_of(left), names_of((function()
        local names = {}
        for _, name in ipairs(golden.foreign_names) do
            names[name] = true
        end
        return names
    end)()))
    t.is_true(left.text:find("'<U2'", 1, true) and left.object:find("'|O'", 1, true) and left.record:find("records", 1, true))
    t.eq({ names_of(tide.load(path)), names_of((select(2, tide.load(path)))) }, { { "plain" }, names_of(left) })
end)

-- An archive of stored entries, {name, bytes}; fields that are given stand in its directory instead of the true ones.
local function archive(entries, fields)
    fields = fields or {}
    local parts, directory, at = {}, {}, 0
    for _, entry in ipairs(entries) do
        local name, bytes = entry[1], entry[2]
        local sum = fields.sum or entry[3] or 0
        local method, flags = fields.method or 0, fields.flags or 0
        local packed, size = fields.packed or #bytes, fields.size or #bytes
        parts[#parts + 1] = string.pack("<c4I2I2I2I2I2I4I4I4I2I2", "PK\3\4", 20, flags, method, 0, 33, sum, #bytes, #bytes, #name, 0) .. name .. bytes
        directory[#directory + 1] = string.pack("<c4I2I2I2I2I2I2I4I4I4I2I2I2I2I2I4I4", "PK\1\2", 20, 20, flags, method, 0, 33, sum,
            packed, size, #name, 0, 0, 0, 0, 0, fields.place or at) .. name
        at = at + #parts[#parts]
    end
    local list = table.concat(directory)
    return table.concat(parts) .. list .. string.pack("<c4I2I2I2I2I4I4I2", "PK\5\6", 0, 0, fields.count or #entries, fields.count or #entries,
        fields.length or #list, fields.at or at, 0)
end

-- An array of one float64, 1.5, and the sum of its bytes.
local header = "{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }"
header = header .. (" "):rep(-(11 + #header) % 64) .. "\n"
local one = "\x93NUMPY\1\0" .. string.pack("<I2", #header) .. header .. string.pack("<d", 1.5)

local function crc(bytes)
    local sum = 0xFFFFFFFF
    for k = 1, #bytes do
        sum = sum ~ bytes:byte(k)
        for _ = 1, 8 do
            sum = sum >> 1 ~ (sum & 1) * 0xEDB88320
        end
    end
    return sum ~ 0xFFFFFFFF
end

t.test("archives_that_are_damaged_or_lie_are_refused_in_a_line", function()
    local sum = crc(one)
    put(archive({ { "x.npy", one, sum } }))
    t.eq(tide.load(path).x:tolist(), { 1.5 })
    put(archive({ { "x.npy", one, sum }, { "x.npy", one, sum } }))
    t.eq(tide.load(path).x:tolist(), { 1.5 })
    for part, bytes in pairs {
        ["damaged"] = archive({ { "x.npy", one, sum ~ 1 } }), ["more than one array"] = archive({ { "x.npy", one .. one, crc(one .. one) } }),
        ["no NumPy file"] = archive({ { "x.npy", "abc", crc "abc" } }),
        ["takes 8 bytes, the file has 7"] = archive({ { "x.npy", one:sub(1, -2), crc(one:sub(1, -2)) } }),
        ["no array"] = archive({ { "README", one, sum } }), ["encrypted"] = archive({ { "x.npy", one, sum } }, { flags = 1 }),
        ["packed by method 12"] = archive({ { "x.npy", one, sum } }, { method = 12 }),
        ["what is packed is not"] = archive({ { "x.npy", one, sum } }, { method = 8 }),
        ["not what its directory says"] = archive({ { "x.npy", one, sum } }, { method = 8, size = 0xFFFFFFFE }),
        ["damaged: "] = archive({ { "x.npy", one, sum } }, { size = 1 << 20 }),
        ["ends beyond the file"] = archive({ { "x.npy", one, sum } }, { packed = 1 << 20 }),
        ["no entry stands where"] = archive({ { "x.npy", one, sum } }, { place = 7 }),
        ["no entry stands"] = archive({ { "x.npy", one, sum } }, { place = 0xFFFFFFF0 }),
        ["names 3 entries and holds 1"] = archive({ { "x.npy", one, sum } }, { count = 3 }),
        ["lies beyond its end"] = archive({ { "x.npy", one, sum } }, { at = 1 << 30 }),
        ["directory at its end is missing"] = "PK\3\4",
    } do
        put(bytes)
        for name, load_it in pairs { load = tide.load, load_npz = tide.io.load_npz } do
            local message = t.error_has(function() load_it(path) end, name .. ": '" .. path .. "': ")
            t.is_true(message:find(part, 1, true) and not message:find("\n"), message)
        end
    end
end)

t.test("an_archive_cut_anywhere_is_refused_and_one_with_a_byte_turned_is_never_read_as_another", function()
    local whole = archive({ { "x.npy", one, crc(one) } })
    for n = 0, #whole - 1 do
        put(whole:sub(1, n))
        t.is_true(not pcall(tide.load, path), n)
    end
    for n = 1, #whole do
        put(whole:sub(1, n - 1) .. string.char(whole:byte(n) ~ 0x11) .. whole:sub(n + 1))
        local ok, arrays = pcall(tide.load, path)
        for _, x in pairs(ok and arrays or {}) do
            t.eq({ x.dtype, x:tolist() }, { tide.float64, { 1.5 } }, n)
        end
        t.is_true(ok or not arrays:find("\n"), arrays)
    end
end)

t.test("what_tide_writes_is_an_archive_of_arrays_as_numpy_writes_them", function()
    put(golden.deflated)
    local arrays = tide.load(path)
    for _, save_it in ipairs { tide.save, tide.io.save_npz } do
        save_it(arrays, path)
        check(tide.load(path), true)
        save_it({}, path)
        t.eq(get(), golden.nothing)
        local x = tide.tensor({ 1.5 }, { dtype = tide.float64 })
        save_it({ ["\u{fc}"] = x, y = x }, path)
        local bytes = get()
        t.eq(select(2, bytes:gsub(one:gsub("%p", "%%%0"), "")), 2) -- the arrays lie there as they are in files of their own
        t.eq(string.unpack("<I4", bytes, 15), crc(one))
        t.eq((string.unpack("<I2", bytes, 7)), 0)
        t.is_true(bytes:find("PK\3\4\x2d\0\0\8", 1, true)) -- the name beyond ASCII is UTF-8
    end
    tide.save({ b = tide.ones(2), a = tide.ones(2) }, path)
    local first = get()
    tide.save({ a = tide.ones(2), b = tide.ones(2) }, path)
    t.eq(get(), first)
end)

t.test("what_an_archive_can_not_hold_is_said_and_leaves_the_file", function()
    put("kept")
    for part, object in pairs {
        ["tensors by name, got a tensor"] = tide.ones(2), ["names are strings, got number 1"] = { tide.ones(1) },
        ["'a': a tensor expected, got table"] = { a = { tide.ones(1) } }, ["'a': a tensor expected, got number"] = { a = 3 },
        ["'h': NumPy has no bfloat16"] = { h = tide.ones(1, { dtype = tide.bfloat16 }) },
        ["'s' is sparse"] = { s = tide.eye(2):to_sparse() }, ["is too long"] = { [("x"):rep(70000)] = tide.ones(1) },
    } do
        t.error_has(function() tide.save(object, path) end, part)
    end
    t.eq(get(), "kept")
    t.error_has(function() tide.io.save_npz({ a = tide.ones(1) }, "/nonexistent/x.npz") end, "save_npz: cannot write '/nonexistent/x.npz': No such file")
    t.error_has(function() tide.load("/nonexistent/x.npz") end, "load: cannot read '/nonexistent/x.npz': No such file")
    t.error_has(function() tide.io.load_npz("/") end, "load_npz: cannot read '/': Is a directory")
end)

t.test("what_was_loaded_can_be_trained_and_saved_over_the_file_it_came_from", function()
    tide.save({ w = tide.ones(3):requires_grad_(), t = tide.eye(2):t() }, path)
    local w = tide.load(path).w:requires_grad_()
    w:mul(2):sum():backward()
    t.eq(w.grad:tolist(), { 2, 2, 2 })
    tide.save(tide.load(path), path)
    t.eq(tide.load(path).w:tolist(), { 1, 1, 1 })
end)

t.test("load_knows_each_kind_of_file_in_a_program_that_touched_nothing_else", function()
    local tide_program = os.getenv("TIDE") or arg[-1]
    for suffix, code in pairs {
        npy = "tide.save(tide.ones(2), p) print(tide.load(p):sum():item())", npz = "tide.save({x = tide.ones(2)}, p) print(tide.load(p).x:sum():item())",
        safetensors = "tide.save({x = tide.ones(2)}, p) print(tide.load(p).x:sum():item())",
    } do
        local p = os.tmpname() .. "." .. suffix
        for _, part in ipairs { code, (code:gsub("^.-%) print", "print")) } do
            local pipe <close> = io.popen(("'%s' -e 'p = \"%s\" %s' 2>&1"):format(tide_program, p, part))
            t.eq(pipe:read("a"), "2.0\n", suffix)
        end
        os.remove(p)
    end
end)

os.remove(path)
