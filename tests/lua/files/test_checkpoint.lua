-- test_checkpoint.lua: tide.save and tide.load: everything comes back as it was, files of others are read, wrong ones
-- refused, and training goes on as if it had never stopped.
local t = require "harness"
local tide = require "tide"
local nn = tide.nn

local path = os.tmpname()

local function write_file(bytes)
    local file = assert(io.open(path, "wb"))
    file:write(bytes)
    file:close()
end

local function read_file()
    local file = assert(io.open(path, "rb"))
    local bytes = file:read("a")
    file:close()
    return bytes
end

-- A file as any writer of the format makes it.
local function write_raw(header, data)
    write_file(string.pack("<I8", #header) .. header .. (data or ""))
end

local function round(object, options)
    tide.save(object, path)
    return (tide.load(path, options))
end

-- ---- what comes back ----

t.test("plain_values_come_back_exactly", function()
    local integers = { 0, -1, math.maxinteger, math.mininteger, 1 << 53, (1 << 53) + 1 }
    for _, x in ipairs(integers) do
        local y = round(x)
        t.eq(y, x)
        t.eq(math.type(y), "integer")
    end
    for _, x in ipairs { 0.0, 1.0, 0.1, -1e308, 5e-324, 2 ^ 53, 2 ^ 63, 1e15, 1e16, 1e17, math.pi, math.huge, -math.huge } do
        local y = round(x)
        t.eq(y, x)
        t.eq(math.type(y), "float")
    end
    t.eq(1 / round(-0.0), -math.huge)
    t.eq(round(true), true)
    t.eq(round(false), false)
end)

t.test("every_bit_of_a_nan_comes_back", function()
    for _, bits in ipairs { 0x7ff8000000000000, -1, 0x7ff8000000001234 } do
        local x = string.unpack("<d", string.pack("<i8", bits))
        t.eq(string.unpack("<i8", string.pack("<d", round(x))), bits)
    end
end)

t.test("strings_of_any_bytes_come_back", function()
    local all = {}
    for c = 0, 255 do
        all[c + 1] = string.char(c)
    end
    local text = table.concat(all)
    for _, s in ipairs { "", "a", "\0", "q\"\\/\n\r\t\127", "grüße 😀", text, "\xff", "\xed\xa0\x80", "\xc0\x80", "\u{10ffff}" } do
        t.eq(round(s), s)
        t.eq(round { [s] = s }, { [s] = s })
        t.eq(round { [s] = tide.ones(2) }[s]:tolist(), { 1, 1 })
    end
end)

t.test("keys_keep_their_kind", function()
    local object = { [1] = "a", [2] = "b", [4] = "d", ["1"] = "text", [0.5] = 1, [true] = 2, [false] = 3, [-7] = 4,
        [math.mininteger] = 5, [2 ^ 70] = 6, [math.huge] = 7 }
    local back = round(object)
    t.eq(back, object)
    t.eq(round { [true] = tide.ones(1), [0.5] = tide.ones(2) }[true]:item(), 1)
    t.eq(back["1"], "text")
    t.eq(back[1], "a")
end)

t.test("empty_and_nested_tables_come_back", function()
    t.eq(round {}, {})
    t.eq(round { {}, { {} }, a = {} }, { {}, { {} }, a = {} })
    local deep = {}
    local inner = deep
    for _ = 1, 99 do
        inner.x = {}
        inner = inner.x
    end
    t.eq(round(deep), deep)
    inner.x = {}
    t.error_has(function() tide.save(deep, path) end, "nested more than 100 tables deep")
end)

t.test("a_table_that_is_there_twice_stays_one", function()
    local shared = { 1 }
    local object = { a = shared, b = shared, c = { shared } }
    object.itself = object
    local back = round(object)
    t.is_true(rawequal(back.a, back.b) and rawequal(back.c[1], back.a))
    t.is_true(rawequal(back.itself, back))
end)

t.test("tensors_of_every_dtype_come_back", function()
    for _, name in ipairs { "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64" } do
        for _, x in ipairs { tide.tensor({ { 0, 1, 2 }, { 3, 100, 5 } }, { dtype = tide[name] }), tide.ones(0, 3, { dtype = tide[name] }),
            tide.tensor(1, { dtype = tide[name] }) } do
            for _, map in ipairs { true, false } do
                local y = round({ x }, { map = map })[1]
                t.eq(y.dtype, x.dtype)
                t.eq(tostring(y.shape), tostring(x.shape))
                t.is_true(tide.equal(x, y), name)
            end
        end
    end
end)

t.test("bits_of_elements_come_back", function()
    local bits = string.pack("<I4I4I4I4I4", 0x7fc01234, 0xffc00001, 0x80000000, 0xff800000, 1)
    write_raw('{"a":{"dtype":"F32","shape":[5],"data_offsets":[0,20]}}', bits)
    tide.save(tide.load(path), path)
    t.eq(read_file():sub(-20), bits)
end)

t.test("views_come_back_by_their_elements", function()
    local x = tide.arange(24):reshape(2, 3, 4)
    t.eq(round(x:transpose(1, 3)):tolist(), x:transpose(1, 3):tolist())
    t.eq(round(x[{ {}, 2 }]):tolist(), x[{ {}, 2 }]:tolist())
    t.eq(round(tide.ones(1):expand(3, 4)):tolist(), tide.ones(3, 4):tolist())
end)

t.test("tied_weights_are_written_once_and_stay_tied", function()
    local x = tide.randn(100, 100)
    local back = round { a = x, b = x:detach(), c = x:view(100, 100), other = x:t() }
    t.is_true(#read_file() < 2 * 40000 + 2000)
    back.a:fill_(7)
    t.eq(back.b:sum():item(), 70000)
    t.eq(back.c:sum():item(), 70000)
    t.ne(back.other:sum():item(), 70000)
end)

t.test("tensors_without_elements_stay_apart", function()
    local back = round { tide.ones(0), tide.ones(0) }
    t.is_false(rawequal(back[1], back[2]))
end)

t.test("requires_grad_comes_back", function()
    local w = tide.ones(2, { requires_grad = true })
    local back = round { w = w, plain = tide.ones(2), loss = (w * 2):sum(), again = w }
    t.is_true(back.w.requires_grad and back.w.is_leaf)
    t.is_false(back.plain.requires_grad)
    t.is_true(back.loss.is_leaf)
    t.is_true(rawequal(back.w, back.again))
    back.w:sum():backward()
    t.eq(back.w.grad:tolist(), { 1, 1 })
end)

t.test("generators_dtypes_and_rng_states_come_back", function()
    local g = tide.Generator(7)
    tide.rand(5, { generator = g })
    tide.manual_seed(3)
    tide.rand(9)
    local back = round { g = g, dtype = tide.bfloat16, rng = tide.get_rng_state(), shape = tide.ones(2, 3).shape }
    t.eq(tide.rand(4, { generator = back.g }):tolist(), tide.rand(4, { generator = g }):tolist())
    t.eq(back.dtype, tide.bfloat16)
    t.eq(back.shape, { 2, 3 })
    local next_numbers = tide.rand(4):tolist()
    tide.set_rng_state(back.rng)
    t.eq(tide.rand(4):tolist(), next_numbers)
end)

t.test("names_that_meet_stay_apart", function()
    local object = { ["a.b"] = tide.tensor(1), a = { b = tide.tensor(2), ["b#2"] = tide.tensor(3) }, __metadata__ = tide.tensor(4),
        ["\xff"] = tide.tensor(5), ["\xfe"] = tide.tensor(6), [""] = tide.tensor(7) }
    local back = round(object)
    t.eq(back["a.b"]:item(), 1)
    t.eq(back.a.b:item(), 2)
    t.eq(back.a["b#2"]:item(), 3)
    t.eq(back.__metadata__:item(), 4)
    t.eq(back["\xff"]:item(), 5)
    t.eq(back["\xfe"]:item(), 6)
    t.eq(back[""]:item(), 7)
end)

t.test("the_same_object_gives_the_same_file", function()
    local function file_of(order)
        local object = {}
        for _, key in ipairs(order) do
            object[key] = { tide.full({ 3 }, key), key }
        end
        tide.save(object, path)
        return read_file()
    end
    t.eq(file_of { 1, 20, 3, 400, -5 }, file_of { -5, 400, 3, 20, 1 })
end)

t.test("a_loaded_tensor_may_be_written_and_the_file_stays", function()
    tide.save({ x = tide.zeros(5000) }, path)
    local before = read_file()
    local x = tide.load(path).x
    x:add_(1)
    t.eq(x:sum():item(), 5000)
    t.eq(read_file(), before)
    tide.save({ x = x }, path) -- over the file that it is mapped from
    t.eq(tide.load(path).x:sum():item(), 5000)
    t.eq(x:sum():item(), 5000)
end)

t.test("a_mapped_tensor_outlives_its_file", function()
    tide.save({ tide.arange(10000), tide.ones(3) }, path)
    local x = tide.load(path)[1]
    local row = x:narrow(1, 5001, 10)
    x = nil
    os.remove(path)
    collectgarbage()
    collectgarbage()
    t.eq(row:sum():item(), 50045)
end)

-- ---- files of others ----

t.test("a_flat_table_is_read_by_others_under_its_names", function()
    tide.save({ ["layer.weight"] = tide.tensor { { 1.0, 2 }, { 3, 4 } }, ["layer.bias"] = tide.tensor({ 5 }, { dtype = tide.int64 }) }, path)
    local bytes = read_file()
    local length = string.unpack("<I8", bytes)
    t.eq((8 + length) % 64, 0)
    local header = bytes:sub(9, 8 + length)
    t.is_true(header:find('"layer.bias":{"dtype":"I64","shape":[1],"data_offsets":[0,8]}', 1, true), header)
    t.is_true(header:find('"layer.weight":{"dtype":"F32","shape":[2,2],"data_offsets":[8,24]}', 1, true), header)
    t.eq(bytes:sub(9 + length), string.pack("<i8ffff", 5, 1, 2, 3, 4))
end)

t.test("files_of_others_are_tables_of_tensors_by_name", function()
    write_raw('{"__metadata__":{"format":"pt"},"a.b":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},'
        .. '"c":{"dtype":"BF16","shape":[],"data_offsets":[16,18]},"\\u00e9\\ud83d\\ude00":{"shape":[0,3],"data_offsets":[18,18],"dtype":"I64"}}    ',
        string.pack("<ffff", 1, 2, 3, 4) .. "\x80\x3f")
    local tensors, notes = tide.load(path)
    t.eq(tensors["a.b"]:tolist(), { { 1, 2 }, { 3, 4 } })
    t.eq(tensors.c:item(), 1)
    t.eq(tostring(tensors["é😀"].shape), "(0, 3)")
    t.eq(notes, { format = "pt" })
end)

t.test("tensors_that_lie_askew_are_copied", function()
    write_raw('{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"F64","shape":[1],"data_offsets":[1,9]}}',
        "\7" .. string.pack("<d", 2.5))
    t.eq(tide.load(path).b:item(), 2.5)
end)

t.test("a_file_without_tensors_is_an_empty_table", function()
    write_raw("{}")
    t.eq(tide.load(path), {})
end)

-- ---- hostile files ----

local function entry(dtype, shape, offsets)
    return ('"a":{"dtype":"%s","shape":[%s],"data_offsets":[%s]}'):format(dtype, shape, offsets)
end

local four = string.rep("\0", 4)
local HOSTILE = {
    { '{' .. entry("F32", "1", "0,8") .. '}', four, "data_offsets [0, 8] in a file with 4 bytes" },
    { '{' .. entry("F32", "1", "4,0") .. '}', four, "data_offsets [4, 0]" },
    { '{' .. entry("F32", "2", "0,4") .. '}', four, "its shape takes 8 bytes, data_offsets [0, 4] are 4" },
    { '{' .. entry("F32", "1", "0,4") .. '}', four .. "x", "1 bytes at the end belong to no tensor" },
    { '{' .. entry("U8", "2", "2,4") .. '}', four, "bytes before it belong to no tensor" },
    { '{' .. entry("U8", "4", "0,4") .. ',"b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}}', four, "overlap" },
    { '{' .. entry("U8", "4", "0,4") .. ',' .. entry("U8", "0", "4,4") .. '}', four, "'a' stands there twice" },
    { '{' .. entry("U8", "4", "0,4") .. ',"\\u0061":{"dtype":"U8","shape":[0],"data_offsets":[4,4]}}', four, "'a' stands there twice" },
    { '{' .. entry("F32", "9223372036854775807,9223372036854775807", "0,4") .. '}', four, "more elements than can be counted" },
    { '{' .. entry("F32", "4611686018427387905", "0,4") .. '}', four, "more elements than can be counted" },
    { '{' .. entry("F32", "0,9223372036854775807,4", "0,0") .. '}', "", "more elements than can be counted" },
    { '{' .. entry("F32", "9223372036854775808", "0,4") .. '}', four, "beyond 64 bits" },
    { '{' .. entry("F32", "-1", "0,4") .. '}', four, "no size" },
    { '{' .. entry("F32", "1.0", "0,4") .. '}', four, "no size" },
    { '{' .. entry("F32", "1", "-4,0") .. '}', four, "no size" },
    { '{' .. entry("F32", "1", "0,1e1") .. '}', four, "no size" },
    { '{' .. entry("F32", "1", "0,4,4") .. '}', four, "more than 2" },
    { '{' .. entry("F32", "1", "0") .. '}', four, "not two numbers" },
    { '{' .. entry("F32", "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1", "0,4") .. '}', four, "more than 16" },
    { '{' .. entry("F8_E4M3", "4", "0,5") .. '}', four, "data_offsets [0, 5] in a file with 4 bytes" },
    { '{' .. entry("F8_E4M3", "4", "0,3") .. '}', four, "1 bytes at the end belong to no tensor" },
    { '{' .. entry("F8_E4M3", "9223372036854775807,3", "0,4") .. '}', four, "more elements than can be counted" },
    { '{' .. entry("BOOL", "4", "0,4") .. '}', "\0\1\2\0", "neither 0 nor 1" },
    { '{"a":{"dtype":"F32","shape":[1]}}', four, "missing" },
    { '{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":[1,}}', four, "a value expected" },
    { '{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":{"y":tru}}}', four, "a value expected" },
    { '{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":' .. ("["):rep(300) .. '}}', four, "nested too deeply" },
    { '{"__metadata__":nul}', "", "a value expected" },
    { '{"__metadata__":true}', "", "'{' expected" },
    { '{"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}}', four, "a field stands there twice" },
    { '{"a":{"dtype":4,"shape":[1],"data_offsets":[0,4]}}', four, "a string expected" },
    { '{"a":{"dtype":"F32","shape":1,"data_offsets":[0,4]}}', four, "'[' expected" },
    { '{"a":[]}', "", "an object of dtype" },
    { '{"a":null}', "", "an object of dtype" },
    { '[]', "", "'{' expected" },
    { '{"a"}', "", "':' expected" },
    { '{,}', "", "a string expected" },
    { '{"a":{}', "", "missing" },
    { '{' .. entry("F32", "1", "0,4"), four, "',' or '}' expected" },
    { '{' .. entry("F32", "1", "0,4") .. ',}', four, "a string expected" },
    { '{' .. entry("F32", "01", "0,4") .. '}', four, "a wrong number" },
    { '{' .. entry("F32", "1", "0,4") .. '}x', four, "something behind the end" },
    { '{' .. entry("F32", "1", "0,4") .. '}\0', four, "something behind the end" },
    { '{"\xff":{}}', "", "invalid UTF-8" },
    { '{"\\ud800":{}}', "", "a wrong \\u escape" },
    { '{"\\x":{}}', "", "a wrong escape" },
    { '{"a\nb":{}}', "", "a control character" },
    { '{"a', "", "a string without end" },
    { ("["):rep(100000), "", "'{' expected" },
    { '{"__metadata__":{"a":1}}', "", "a string expected" },
    { '{"__metadata__":{"a":"1","a":"2"}}', "", "metadata 'a' stands there twice" },
    { '{"__metadata__":{},"__metadata__":{}}', "", "two '__metadata__'" },
    { '{"__metadata__":[]}', "", "'{' expected" },
    { "  ", "", "'{' expected" },
}

t.test("tensors_of_other_dtypes_are_left_out_and_named", function()
    local others = { "F8_E4M3", "F8_E5M2", "F8_E8M0", "F4", "U16", "U32", "U64", "C64", "f32", "" }
    local header, at = {}, 0
    for k, dtype in ipairs(others) do
        header[k] = ('"x%d":{"dtype":"%s","shape":[%d],"data_offsets":[%d,%d]}'):format(k, dtype, k, at, at + k)
        at = at + k
    end
    header[#header + 1] = ('"w":{"dtype":"F32","shape":[2],"data_offsets":[%d,%d]}'):format(at, at + 8)
    write_raw("{" .. table.concat(header, ",") .. "}", ("\1"):rep(at) .. string.pack("<ff", 1.5, -2))
    for _, map in ipairs { true, false } do
        local tensors, notes, left = tide.load(path, { map = map })
        t.eq(tensors.w:tolist(), { 1.5, -2 })
        t.eq({ next(tensors, "w"), next(notes) }, {})
        for k, dtype in ipairs(others) do
            t.eq({ tensors["x" .. k], left["x" .. k] }, { nil, dtype })
        end
    end
    write_raw("{" .. entry("F32", "1", "0,4") .. "}", four)
    t.eq(select("#", tide.load(path)), 1, "nothing is said besides")
end)

t.test("metadata_of_null_and_fields_of_later_versions_are_passed_over", function()
    for _, more in ipairs { '"x":1', '"x":null', '"x":{"y":[1,{"z":"\\u00e9"},true,-1e3],"w":{}}', '"stride":[1,[]],"quant":"none"' } do
        write_raw('{"__metadata__":null,"a":{' .. more .. ',"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', string.pack("<f", 3))
        local tensors, notes = tide.load(path)
        t.eq({ tensors.a:tolist(), notes }, { { 3 } })
        write_raw('{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],' .. more .. '}}', string.pack("<f", 4))
        t.eq(tide.load(path).a:tolist(), { 4 })
    end
end)

t.test("files_of_no_format_are_called_by_their_names", function()
    local function zip(name)
        return "PK\3\4\20\0\0\0\0\0" .. ("\0"):rep(16) .. string.pack("<I2I2", #name, 0) .. name .. ("x"):rep(40)
    end
    for _, case in ipairs {
        { zip "README", "a zip archive" }, { "\x80\4\x95\nl\xfc\x9cF\xf9 j", "a pickle of Python" },
        { "\x89HDF\r\n\x1a\n" .. ("\0"):rep(40), "an HDF5 file" }, { "GIF89a\1\0", "it begins with 47 49 46 38 39 61 01 00 ('GIF89a..')" },
        { "\x1f\x8b\8\0\0\0\0\0\0\3", "compressed by gzip" }, { '{\n  "metadata": {}\n}', "a text of JSON" },
        { "version https://git-lfs.github.com/spec/v1\n", "git lfs pull" }, { "<!doctype html><html></html>", "a page of HTML" },
        { "", "it is empty" },
    } do
        write_file(case[1])
        local message = t.error_has(function() tide.load(path) end, "load: '" .. path .. "': of no format that is read: ")
        t.is_true(message:find(case[2], 1, true) and message:find("read are .npy, ", 1, true) and not message:find("\n"), message)
    end
    write_file("{\0\0\0\0\0\0\0{}") -- 123 bytes of header are wanted
    t.error_has(function() tide.load(path) end, "or cut off: a header of 123 bytes in a file of 10")
end)

t.test("wrong_files_are_refused_in_one_line", function()
    for _, case in ipairs(HOSTILE) do
        write_raw(case[1], case[2])
        for _, map in ipairs { true, false } do
            local message = t.error_has(function() tide.load(path, { map = map }) end, case[3], case[1]:sub(1, 100))
            t.is_true(message:find("load: '" .. path .. "': ", 1, true), message)
            t.is_false(message:find("\n"), message)
            t.is_true(#message < 400, message)
        end
    end
end)

t.test("lengths_that_lie_are_refused_before_memory_is_taken", function()
    for _, bytes in ipairs { "", "\1", "\2\0\0\0\0\0\0\0", "\3\0\0\0\0\0\0\0{}", ("\xff"):rep(8) .. "{}", "\0\0\0\0\0\0\0\x80{}",
        "\0\0\0\0\0\1\0\0{}", "\xf8\xff\xff\xff\xff\xff\xff\x7f{}" } do
        write_file(bytes)
        t.error_has(function() tide.load(path) end, "load: '" .. path .. "': ")
    end
end)

t.test("every_cut_of_a_file_is_refused", function()
    tide.save({ a = tide.ones(3), b = { 1, "x" }, c = tide.zeros(2, { dtype = tide.bool }) }, path)
    local whole = read_file()
    for n = 0, #whole - 1 do
        write_file(whole:sub(1, n))
        t.error_has(function() tide.load(path) end, "load: '")
    end
end)

t.test("wrong_structures_are_refused", function()
    local deep = ('{"list":['):rep(200) .. "1" .. ("]}"):rep(200)
    for _, case in ipairs {
        { "", "a value expected" }, { "nul", "a value expected" }, { "null", "null" }, { "1 2", "behind the end" },
        { "{}", "means nothing" }, { "[]", "means nothing" }, { "[1]", "means nothing" }, { '{"list":[],"table":[]}', "means nothing" },
        { '{"tensor":"no"}', "names a tensor that is not there" }, { '{"tensor":[]}', "names a tensor" },
        { '{"leaf":"i"}', "requires grad" }, { '{"list":{"a":1}}', "an array expected" }, { '{"list":1}', "an array expected" },
        { '{"table":[1]}', "a key without a value" }, { '{"table":[1,2,1,3]}', "twice" },
        { '{"table":[{"list":[]},2]}', "can't be one" }, { '{"table":[{"bits":"7ff8000000000000"},2]}', "can't be one" },
        { '{"same":1}', "names a table" }, { '{"same":"x"}', "names a table" }, { '{"hex":"f"}', "digits" }, { '{"hex":"fg"}', "digits" },
        { '{"bits":"00"}', "digits" }, { '{"generator":"00"}', "digits" }, { '{"dtype":"save"}', "dtype" }, { '{"dtype":1}', "dtype" },
        { '{"function":"x"}', "means nothing" }, { '{"list":[],"list":[]}', "a key stands there twice" }, { "1e999", "beyond the range" },
        { deep, "nested too deeply" }, { "0x10", "behind the end" }, { "-", "a wrong number" },
    } do
        write_raw(('{"__metadata__":{"tide":"%s"},"i":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}'):format((case[1]:gsub('"', '\\"'))), "\0")
        t.error_has(function() tide.load(path) end, case[2], case[1]:sub(1, 80))
    end
end)

-- ---- what can't be saved, and where ----

t.test("what_can_not_be_saved_is_named_by_its_place", function()
    for _, case in ipairs {
        { { model = { { forward = print } } }, "save: object.model[1].forward is function" },
        { { model = nn.Linear(2, 2) }, "save: object.model is an object" },
        { { ["a b"] = io.stdout }, 'save: object["a b"] is ' },
        { { [print] = 1 }, "save: object has a key that is a function" },
        { { s = tide.eye(2):to_sparse() }, "save: object.s is a sparse tensor" },
        { { c = coroutine.create(print) }, "save: object.c is thread" },
    } do
        t.error_has(function() tide.save(case[1], path) end, case[2])
    end
    t.error_has(function() tide.save({ model = nn.Linear(2, 2) }, path) end, "state_dict()")
    local long = t.error_has(function() tide.save({ [("k\n"):rep(10000)] = { [true] = print } }, path) end, "is function")
    t.is_true(#long < 600 and not long:find("\n"), long)
    t.error_has(function() tide.save(nil, path) end, "save")
    t.error_has(function() tide.save({}) end, "path")
    t.error_has(function() tide.load(path, { maped = true }) end, "did you mean 'map'?")
end)

local function folder_of()
    local folder = os.tmpname()
    os.remove(folder)
    assert(os.execute("mkdir " .. folder))
    return folder
end

local function files_in(folder)
    local pipe = io.popen("ls -A " .. folder)
    local text = pipe:read("a")
    pipe:close()
    return text
end

t.test("a_failed_save_leaves_the_old_file_and_nothing_else", function()
    local folder = folder_of()
    local file = folder .. "/x"
    tide.save({ 1 }, file)
    t.error_has(function() tide.save({ print }, file) end, "object[1]")
    t.eq(tide.load(file), { 1 })
    t.error_has(function() tide.save({ 1 }, folder) end, "save: cannot write '" .. folder .. "': Is a directory")
    t.error_has(function() tide.save({ 1 }, folder .. "/none/x") end, "No such file or directory")
    t.error_has(function() tide.save({ 1 }, file .. "/x") end, "Not a directory")
    t.error_has(function() tide.save({ 1 }, "") end, "No such file or directory")
    t.error_has(function() tide.save({ 1 }, folder .. "/" .. ("n"):rep(300)) end, "File name too long")
    t.error_has(function() tide.save({ 1 }, "/dev/null") end, "not a regular file")
    t.error_has(function() tide.load(folder) end, "Is a directory")
    t.error_has(function() tide.load(folder .. "/none") end, "No such file or directory")
    t.error_has(function() tide.load("/dev/zero") end, "not a regular file")
    t.eq(files_in(folder), "x\n")
    os.execute("rm -r " .. folder)
end)

t.test("a_draft_left_by_a_kill_is_taken_over", function()
    local folder = folder_of()
    local draft = assert(io.open(folder .. "/.x.draft", "wb"))
    draft:write(("z"):rep(100000))
    draft:close()
    tide.save({ 5 }, folder .. "/x")
    t.eq(tide.load(folder .. "/x"), { 5 })
    t.eq(files_in(folder), "x\n")
    os.execute("rm -r " .. folder)
end)

t.test("a_link_stays_and_leads_to_the_new_file", function()
    local folder = folder_of()
    tide.save({ 1 }, folder .. "/real")
    os.execute(("ln -s real %s/link && chmod 640 %s/real"):format(folder, folder))
    tide.save({ 2 }, folder .. "/link")
    t.eq(tide.load(folder .. "/real"), { 2 })
    local pipe = io.popen(("ls -l %s | cut -c1-10"):format(folder))
    local modes = pipe:read("a")
    pipe:close()
    t.is_true(modes:find("lrwx", 1, true) and modes:find("-rw-r-----", 1, true), modes)
    os.execute("rm -r " .. folder)
end)

t.test("saves_and_loads_run_in_coroutines", function()
    local co = coroutine.wrap(function()
        for k = 1, 3 do
            tide.save({ k }, path)
            coroutine.yield(tide.load(path)[1])
        end
    end)
    t.eq({ co(), co(), co() }, { 1, 2, 3 })
end)

-- ---- training ----

-- A run that can be stopped: everything it depends on is in its state.
local function new_run(make_optimizer)
    local run = { model = nn.Sequential { nn.Linear(4, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 2) } }
    run.optimizer = make_optimizer(run.model:parameters())
    run.scheduler = tide.optim.lr_scheduler.StepLR(run.optimizer, { step_size = 2, gamma = 0.5 })
    run.g, run.step = tide.Generator(11), 0
    return run
end

local function train(run, steps)
    for _ = 1, steps do
        local x = tide.randn(8, 4, { generator = run.g })
        run.optimizer:zero_grad()
        local loss = (run.model(x) - 1):pow(2):mean()
        loss:backward()
        run.optimizer:step()
        run.scheduler:step()
        run.step = run.step + 1
    end
end

local function state_of(run)
    return { model = run.model:state_dict(), optimizer = run.optimizer:state_dict(), scheduler = run.scheduler:state_dict(), g = run.g,
        rng = tide.get_rng_state(), step = run.step }
end

local function restore(run, state)
    run.model:load_state_dict(state.model)
    run.optimizer:load_state_dict(state.optimizer)
    run.scheduler:load_state_dict(state.scheduler)
    run.g, run.step = state.g, state.step
    tide.set_rng_state(state.rng)
end

t.test("resumed_training_is_uninterrupted_training_to_the_bit", function()
    for name, make in pairs {
        sgd = function(p) return tide.optim.SGD(p, { lr = 0.1, momentum = 0.9, nesterov = true, weight_decay = 1e-3 }) end,
        adam = function(p) return tide.optim.Adam(p, { lr = 0.01, amsgrad = true }) end,
        adamw = function(p) return tide.optim.AdamW(p, { lr = 0.01, foreach = false }) end,
        rmsprop = function(p) return tide.optim.RMSprop(p, { lr = 0.01, momentum = 0.5, centered = true }) end,
    } do
        tide.manual_seed(1)
        local whole = new_run(make)
        train(whole, 5)
        tide.save(state_of(whole), path)
        train(whole, 7)
        tide.manual_seed(99)
        local resumed = new_run(make)
        train(resumed, 1) -- it has a history of its own, which must go
        restore(resumed, tide.load(path))
        train(resumed, 7)
        t.eq(resumed.step, 12, name)
        local a, b = whole.model:state_dict(), resumed.model:state_dict()
        for key, x in pairs(a) do
            t.is_true(tide.equal(x, b[key]), name .. " " .. key)
        end
    end
end)

os.remove(path)
