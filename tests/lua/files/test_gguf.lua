-- test_gguf.lua: GGUF files, as the package gguf writes them (tests/golden/gguf_files.py) and as Tide does; and files that
-- lie.
local t = require "harness"
local here = arg[0]:match("^(.*)/") or "."
local folder = here .. "/../../golden/data/gguf/"

local path = os.tmpname()

local function put(bytes)
    local f <close> = assert(io.open(path, "wb"))
    f:write(bytes)
end

local function get(name)
    local f <close> = assert(io.open(name, "rb"))
    return f:read("a")
end

t.test("each_type_is_unpacked_bit_for_bit", function()
    local want, n = tide.load(folder .. "floats.gguf"), 0
    for _, options in ipairs { {}, { map = false }, { device = "cpu" } } do
        local got = tide.load(folder .. "types.gguf", options)
        for name, x in pairs(want) do
            n = n + 1
            t.is_true(got[name].shape == x.shape and got[name]:to(tide.float32):equal(x), name)
        end
    end
    t.eq(n, 3 * 19)
    local got = tide.load(folder .. "types.gguf")
    for name, dtype in pairs { F16 = "float16", BF16 = "bfloat16", F64 = "float64", I8 = "int8", I64 = "int64", Q6_K = "float32" } do
        t.eq(got[name].dtype, tide[dtype], name)
    end
    t.eq({ table.unpack(got.cube.shape) }, { 2, 3, 4 })
    t.eq(got.cube[{ 1, 2, 4 }]:item(), 7)
end)

t.test("what_is_packed_becomes_the_dtype_that_is_asked_for", function()
    local got = tide.load(folder .. "types.gguf", { dtype = tide.bfloat16 })
    local want = tide.load(folder .. "floats.gguf")
    t.eq({ got.Q4_K.dtype, got.F64.dtype }, { tide.bfloat16, tide.float64 })
    t.is_true(got.Q4_K:equal(want.Q4_K:to(tide.bfloat16)))
    tide.save({ 1 }, path)
    t.error_has(function() tide.load(path, { dtype = tide.float16 }) end, "option dtype: safetensors has none")
end)

t.test("metadata_keeps_numbers_texts_truths_and_lists", function()
    local _, meta = tide.load(folder .. "types.gguf")
    local want = {
        ["kind.uint8"] = 200, ["kind.int8"] = -3, ["kind.uint16"] = 60000, ["kind.int16"] = -300, ["kind.uint32"] = 4000000000, ["kind.int32"] = -70000,
        ["kind.float32"] = 0.5, ["kind.uint64"] = 2.0 ^ 64 - 2 ^ 11, ["kind.int64"] = -(1 << 60), ["kind.float64"] = 0.1, ["kind.bool"] = true,
        ["kind.string"] = "größe", ["list.strings"] = { "a", "", "c d" }, ["list.ints"] = { 1, -2, 3 }, ["list.floats"] = { 0.5, 2.0 },
        ["list.bools"] = { true, false }, ["list.long"] = { 7, 7, 7 }, ["general.architecture"] = "tide",
    }
    t.eq(meta, want)
    t.eq({ math.type(meta["kind.int8"]), math.type(meta["kind.float32"]), math.type(meta["kind.uint64"]) }, { "integer", "float", "float" })
end)

t.test("files_are_written_byte_for_byte_as_the_package_writes_them", function()
    local tensors = tide.load(folder .. "plain.gguf")
    tide.io.write_gguf(path, tensors, {
        metadata = { ["general.architecture"] = "tide", name = "größe", number = 7, ratio = 0.5, truth = true },
        types = { BF16 = "BF16", F16 = "F16", F32 = "F32", Q4_0 = "Q4_0", Q8_0 = "Q8_0" },
    })
    t.is_true(get(path) == get(folder .. "packed.gguf"))
end)

t.test("what_is_written_comes_back", function()
    local tensors = { a = tide.randn(2, 3), b = tide.arange(5), c = tide.randn(4, { dtype = tide.bfloat16 }), e = tide.zeros(0, 3), s = tide.tensor(2.5),
        turned = tide.randn(3, 2):t(), leaf = tide.randn(2, { requires_grad = true }) }
    local meta = { big = 1 << 40, minus = -5, least = math.mininteger, tenth = 0.1, list = { 1, -1 }, mixed = { 1, 1 << 40 }, texts = { "x" }, nested = { { 1 }, { 2, 3 } },
        empty = {}, inf = math.huge, ["general.alignment"] = 64 }
    tide.io.write_gguf(path, tensors, { metadata = meta })
    local got, notes = tide.load(path)
    for name, x in pairs(tensors) do
        t.is_true(got[name].dtype == x.dtype and got[name].shape == x.shape and got[name]:equal(x:detach()), name)
    end
    t.eq(notes, meta)
    tide.io.write_gguf(path, {})
    t.eq({ tide.load(path) }, { {} })
    tide.io.write_gguf(path, { m = tide.randn(2, 64), v = tide.randn(64), odd = tide.randn(2, 5), i = tide.ones(2, 32, { dtype = tide.int32 }) }, { types = "Q8_0" })
    got = tide.load(path)
    t.eq({ got.m.dtype, got.v.dtype, got.i.dtype, got.odd.dtype }, { tide.float32, tide.float32, tide.int32, tide.float32 })
    t.is_true(#get(path) < 2 * 68 + 256 + 256 + 40 + 512)
end)

t.test("what_can_not_be_written_is_said_and_leaves_the_file", function()
    put("kept")
    for part, call in pairs {
        ["'x': rows of Q8_0 are multiples of 32 elements, got shape (2, 3)"] = { { x = tide.ones(2, 3) }, { types = { x = "Q8_0" } } },
        ["'x': rows of Q4_0 are multiples of 32 elements, got shape ()"] = { { x = tide.tensor(1.0) }, { types = { x = "Q4_0" } } },
        ["or Q4_0 expected, got 'Q6_K'"] = { { x = tide.ones(256) }, { types = { x = "Q6_K" } } }, ["or Q4_0 expected, got 'q'"] = { { x = tide.ones(2) }, { types = { x = "q" } } },
        ["GGUF has no bool"] = { { x = tide.ones(2):gt(0) } }, ["a dense tensor expected"] = { { x = tide.eye(2):to_sparse() } },
        ["a dense tensor expected, got number 1"] = { { x = 1 } }, ["names are strings"] = { { tide.ones(1) } }, ["no more than 4 dims"] = { { x = tide.ones(1, 1, 1, 1, 1) } },
        ["there is no tensor 'y'"] = { {}, { types = { y = "F32" } } }, ["option types: a type or a table"] = { {}, { types = 7 } },
        ["'k': numbers, booleans, strings"] = { {}, { metadata = { k = print } } }, ["'k': a list has values of one kind"] = { {}, { metadata = { k = { 1, "x" } } } },
        ["'k': a list expected, got a table with keys"] = { {}, { metadata = { k = { a = 1 } } } },
        ["'general.alignment': a power of two"] = { {}, { metadata = { ["general.alignment"] = 24 } } },
        ["nested more than 8 deep"] = { {}, { metadata = { k = { { { { { { { { { { 1 } } } } } } } } } } } } },
    } do
        local message = t.error_has(function() tide.io.write_gguf(path, call[1], call[2]) end, part, part)
        t.is_true(message:find("write_gguf: ", 1, true) and not message:find("\n"), message)
        t.eq(get(path), "kept")
    end
    t.error_has(function() tide.io.write_gguf("/none/x", {}) end, "write_gguf: ")
end)

-- ---- files that lie ----

local function text(s) return string.pack("<s8", s) end

-- A tensor's entry; sizes as in the file.
local function entry(name, sizes, number, at)
    local parts = { text(name), string.pack("<I4", #sizes) }
    for _, size in ipairs(sizes) do
        parts[#parts + 1] = string.pack("<i8", size)
    end
    return table.concat(parts) .. string.pack("<I4i8", number, at)
end

local function file(values, entries, data, fields)
    fields = fields or {}
    local bytes = "GGUF" .. string.pack("<I4i8i8", fields.version or 3, fields.ntensors or #entries, fields.nvalues or #values)
        .. table.concat(values) .. table.concat(entries)
    return bytes .. ("\0"):rep(-#bytes % 32) .. data
end

local two = string.pack("<ff", 1.5, -2) .. ("\0"):rep(24)

t.test("headers_that_lie_are_refused_in_a_line", function()
    put(file({}, { entry("x", { 2 }, 0, 0) }, two, { version = 2 }))
    t.eq(tide.load(path).x:tolist(), { 1.5, -2 })
    put(file({}, { entry("x", { 0, 3 }, 0, 0), entry("y", { 0 }, 12, 0) }, ""))
    t.eq({ table.unpack(tide.load(path).x.shape) }, { 3, 0 })
    local alignment = text "general.alignment"
    local nested = text "k" .. string.pack("<I4", 9) .. string.pack("<I4i8", 9, 1):rep(20)
    for _, case in ipairs {
        { "'x' takes 12 bytes from 0 on, the file has 8", file({}, { entry("x", { 3 }, 0, 0) }, two:sub(1, 8)) },
        { "cut off: 'x' takes", file({}, { entry("x", { math.maxinteger, math.maxinteger, 4 }, 0, 0) }, two) },
        { "cut off: 'x' takes", file({}, { entry("x", { 1 << 62, 4 }, 8, 0) }, two) },
        { "more elements than can be counted", file({}, { entry("x", { 0, math.maxinteger, math.maxinteger }, 0, 0) }, two) },
        { "more elements than can be counted", file({}, { entry("x", { 0, math.maxinteger, math.maxinteger }, 8, 0) }, two) },
        { "rows of Q8_0 are multiples of 32 elements", file({}, { entry("x", { 16 }, 8, 0) }, two) },
        { "rows of Q8_0 are multiples of 32 elements", file({}, { entry("x", {}, 8, 0) }, two) },
        { "begins at byte 8, no multiple of 32", file({}, { entry("x", { 1 }, 0, 8) }, two) },
        { "begins at byte -32", file({}, { entry("x", { 1 }, 0, -32) }, two) },
        { "begins at byte", file({}, { entry("x", { 1 }, 0, math.mininteger) }, two) },
        { "'x' takes 4 bytes from 9223372036854775776 on", file({}, { entry("x", { 1 }, 0, math.maxinteger - 31) }, two) },
        { "overlap another tensor's", file({}, { entry("x", { 2 }, 0, 0), entry("y", { 1 }, 0, 0) }, two) },
        { "tensor 'x' stands there twice", file({}, { entry("x", { 1 }, 0, 0), entry("x", { 1 }, 0, 32) }, two .. two) },
        { "'x' has 17 dims", file({}, { entry("x", { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 }, 0, 0) }, two) },
        { "'x' has a size of more than 2^63", file({}, { entry("x", { -1 }, 0, 0) }, two) },
        { "more than 2^63 tensors", file({}, {}, "", { ntensors = -1 }) }, { "9223372036854775807 values of metadata", file({}, {}, "", { nvalues = math.maxinteger }) },
        { "3 tensors in a file of", file({}, {}, "", { ntensors = 3 }) },
        { "version 1 of the format", file({}, {}, "", { version = 1 }) }, { "version 4 of the format", file({}, {}, "", { version = 4 }) },
        { "the other order", file({}, {}, "", { version = 3 << 24 }) },
        { "9223372036854775807 values of an array", file({ text "k" .. string.pack("<I4I4i8", 9, 4, math.maxinteger) }, {}, "") },
        { "more than 2^63 values of an array", file({ text "k" .. string.pack("<I4I4i8", 9, 4, -1) }, {}, "") },
        { "the unknown kind 13", file({ text "k" .. string.pack("<I4i8", 13, 0) }, {}, two) }, { "the unknown kind 77", file({ text "k" .. string.pack("<I4I4i8", 9, 77, 1) }, {}, two) },
        { "nested more than 8 deep", file({ nested }, {}, two) }, { "header ends beyond the file", file({ string.pack("<i8", 1 << 20) }, {}, two) },
        { "a text of 9223372036854775807 bytes", file({ string.pack("<i8", math.maxinteger) }, {}, two) }, { "header ends beyond", file({ string.pack("<i8", -5) }, {}, two) },
        { "'k' stands twice in its metadata", file({ text "k" .. "\7\0\0\0\1", text "k" .. "\7\0\0\0\1" }, {}, "") },
        { "its alignment is no power of two", file({ alignment .. string.pack("<I4I4", 4, 0) }, {}, "") },
        { "its alignment is no power of two", file({ alignment .. string.pack("<I4I4", 4, 48) }, {}, "") },
        { "its alignment is no power of two", file({ alignment .. string.pack("<I4i8", 10, 32) }, {}, "") },
        { "its alignment is no power of two", file({ alignment .. string.pack("<I4s8", 8, "32") }, {}, "") },
        { "its header ends beyond the file", "GGUF" }, { "its header ends beyond the file", "GGUF\3\0\0\0" },
    } do
        put(case[2])
        local message = t.error_has(function() tide.load(path) end, case[1], case[1])
        t.is_true(message:find("load: '" .. path .. "': ", 1, true) and not message:find("\n"), message)
    end
end)

t.test("types_that_are_not_known_are_left_out_and_named", function()
    warn("@off")
    put(file({}, { entry("x", { 2 }, 0, 0), entry("y", { 256 }, 16, 32), entry("z", { 4 }, 4, 32) }, two .. two))
    local tensors, _, left = tide.load(path)
    warn("@on")
    t.eq({ tensors.x:tolist(), left }, { { 1.5, -2 }, { y = "type 16", z = "type 4" } })
end)

t.test("a_file_cut_anywhere_or_with_any_byte_of_its_header_turned_is_refused_in_a_line_or_read", function()
    local whole = get(folder .. "types.gguf")
    local first = 1100 -- metadata, and some of the tensors' entries
    local head = whole:sub(1, first)
    warn("@off")
    for n = 0, first do
        put(head:sub(1, n))
        local ok, message = pcall(tide.load, path)
        t.is_true(not ok and not message:find("\n") and message:find("load: '", 1, true), message)
    end
    for n = 1, first do
        for _, bits in ipairs { 0x01, 0xff } do
            put(whole:sub(1, n - 1) .. string.char(whole:byte(n) ~ bits) .. whole:sub(n + 1))
            local ok, got = pcall(tide.load, path)
            t.is_true(ok or not got:find("\n") and got:find("load: '", 1, true), got)
            for _, x in pairs(ok and got or {}) do
                x:to(tide.float64):sum()
            end
        end
    end
    warn("@on")
    os.remove(path)
end)
