-- test_torch.lua: what torch.save wrote (tests/golden/torch_files.py), in both its forms; and files that lie.
local t = require "harness"
local here = arg[0]:match("^(.*)/") or "."
local folder = here .. "/../../golden/data/torch/"
local golden = dofile(folder .. "values.lua")

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

-- Is it what the script saved? Tensors by dtype, shape, strides and elements.
local function check(got, want, place)
    if type(want) == "table" and want.tensor then
        t.is_true(tide.is_tensor(got), place)
        t.eq({ tostring(got.dtype), { table.unpack(got.shape) }, got.requires_grad },
            { "tide." .. want.tensor, want.shape, want.grad }, place)
        local dense = got.layout == "strided" and got or got:to_dense()
        if got.layout == "strided" and got:numel() > 0 then
            t.eq({ table.unpack(got:stride()) }, want.strides, place)
        end
        local values = dense:detach():flatten()
        values = values:is_floating_point() and values:to(tide.float64) or want.tensor == "bool" and values or values:to(tide.int64)
        t.eq(values:tolist(), want.values, place)
    elseif type(want) == "table" then
        for key, value in pairs(want) do
            check(got[key], value, place .. "." .. tostring(key))
        end
        for key in pairs(got) do
            t.is_true(want[key] ~= nil, place .. "." .. tostring(key))
        end
    else
        t.eq({ got, math.type(got) }, { want, math.type(want) }, place)
    end
end

t.test("what_torch_saved_is_read_in_each_form_and_by_each_protocol", function()
    for _, name in ipairs { "archive.pt", "archive_5.pt", "stream.pt", "stream_4.pt" } do
        for _, options in ipairs { {}, { map = false }, { device = "cpu" }, { map_location = "cpu" } } do
            check(tide.load(folder .. name, options), golden.contents, name)
        end
        t.eq(select("#", tide.load(folder .. name)), 1, "nothing is said besides")
    end
end)

t.test("archives_of_the_other_order_of_bytes_are_turned", function()
    for _, name in ipairs { "small.pt", "small_stream.pt", "small_big.pt" } do
        t.eq(tide.load(folder .. name).w:tolist(), { { 1, 3 }, { 2, 4 } }, name)
    end
end)

t.test("tensors_of_one_storage_stay_views_of_it", function()
    for _, name in ipairs { "archive.pt", "stream.pt" } do
        for _, map in ipairs { true, false } do
            local views = tide.load(folder .. name, { map = map }).views
            views.grid:fill_(-1)
            t.eq({ views.row:tolist(), views.steps:tolist(), views.last:item(), views.turned:sum():item() },
                { { -1, -1, -1, -1 }, { { -1, -1 }, { -1, -1 }, { -1, -1 } }, -1, -12 }, name)
            t.eq(tide.load(folder .. name).views.row:tolist(), { 4, 5, 6, 7 }, "the file stays")
        end
    end
end)

t.test("an_ordered_dict_keeps_its_order_and_can_be_saved", function()
    local model = tide.load(folder .. "archive.pt").model
    local names = {}
    for name in pairs(model) do
        names[#names + 1] = name
    end
    t.eq(names, golden.order)
    model["z.weight"], model.new = nil, tide.ones(1)
    names = {}
    for name in pairs(model) do
        names[#names + 1] = name
    end
    t.eq(names, { "a.bias", "m", "new" })
    tide.save({ model = model }, path)
    t.eq(tide.load(path).model.m:item(), 3)
end)

t.test("a_state_dict_of_pytorch_loads_though_its_numbers_count_from_0", function()
    local nn = tide.nn
    local net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Sequential(nn.Linear(3, 1)))
    net:load_state_dict(tide.load(folder .. "net.pt"))
    local x = tide.tensor(golden.net.x.values):reshape(2, 2)
    t.close(net(x):flatten():tolist(), golden.net.y.values, 1e-6)
    local state = tide.load(folder .. "net.pt")
    state["3.0.bias"] = tide.ones(1)
    t.error_has(function() net:load_state_dict(state) end, "missing 1.bias")
end)

t.test("what_is_no_value_is_left_out_by_its_place_and_its_name", function()
    for _, name in ipairs { "foreign.pt", "foreign_stream.pt" } do
        local _, got, notes, left = quiet(tide.load, folder .. name)
        t.eq({ got.kept:tolist(), got.deep.list[1]:tolist(), got.deep.list[2], got.deep.list.n, notes }, { { 1, 1 }, { 1 }, nil, 2, {} })
        for place, what in pairs(golden.left) do
            t.is_true(left[place] and left[place]:find(what, 1, true), place .. ": " .. tostring(left[place]))
        end
        for place in pairs(left) do
            t.is_true(golden.left[place], place)
        end
    end
    t.error_has(function() tide.load(folder .. "module.pt") end, "it holds class torch.nn.modules.linear.Linear, and no tables or tensors")
end)

-- ---- files that lie ----

-- A file of the older form around an object's pickle, with the storages' keys and bytes.
local function stream(object, keys, elements)
    return "\x80\2\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\2M\xe9\3.\x80\2}." .. "\x80\2" .. object .. "." .. (keys or "\x80\2].") .. (elements or "")
end

local function text(s) return "X" .. string.pack("<s4", s) end
local function int(n) return "\x8a\8" .. string.pack("<i8", n) end
local function ints(list)
    local parts = {}
    for k, n in ipairs(list) do
        parts[k] = int(n)
    end
    return "(" .. table.concat(parts) .. "t"
end

-- A tensor of float32 in storage 'k', which has `numel` elements by its own word.
local function tensor(numel, offset, sizes, strides, key, class)
    return "ctorch._utils\n_rebuild_tensor_v2\n((" .. text "storage" .. "ctorch\n" .. (class or "FloatStorage") .. "\n" .. (key or text "k") .. text "cpu"
        .. int(numel) .. "NtQ" .. int(offset) .. ints(sizes) .. ints(strides) .. "\x89}tR"
end

local key_list = "\x80\2](" .. text "k" .. "e."
local two = string.pack("<i8ff", 2, 1.5, -2)

t.test("places_and_sizes_of_tensors_are_checked_against_their_storage", function()
    put(stream(tensor(2, 0, { 2 }, { 1 }), key_list, two))
    t.eq(tide.load(path):tolist(), { 1.5, -2 })
    put(stream(tensor(2, 1, { 3, 1 }, { 0, 1 }), key_list, two))
    t.eq(tide.load(path):tolist(), { { -2 }, { -2 }, { -2 } })
    for _, case in ipairs {
        { "reaches to element 3 of a storage of 2", stream(tensor(2, 1, { 2 }, { 1 }), key_list, two) },
        { "reaches to element 9223372036854775808", stream(tensor(2, math.maxinteger, { 1 }, { 1 }), key_list, two) },
        { "reaches to element 9223372036854775808", stream(tensor(2, 2, { 2 }, { math.maxinteger }), key_list, two) },
        { "reaches to element 4611686018427387904", stream(tensor(2, 0, { 1 << 62 }, { 1 }), key_list, two) },
        { "more elements than can be counted", stream(tensor(2, 0, { 1 << 40, 1 << 40 }, { 0, 0 }), key_list, two) },
        { "its offset, sizes or strides are none", stream(tensor(2, -1, { 1 }, { 1 }), key_list, two) },
        { "its offset, sizes or strides are none", stream(tensor(2, 0, { -1 }, { 1 }), key_list, two) },
        { "its offset, sizes or strides are none", stream(tensor(2, 0, { 2 }, { -1 }), key_list, two) },
        { "its offset, sizes or strides are none", stream(tensor(2, 0, { 1 }, { 1, 1 }), key_list, two) },
        { "has no number of elements", stream(tensor(-2, 0, { 1 }, { 1 }), key_list, two) },
        { "has no number of elements", stream(tensor(math.maxinteger, 0, { 1 }, { 1 }), key_list, two) },
        { "takes 20 bytes, the file has 8", stream(tensor(5, 0, { 1 }, { 1 }), key_list, two) },
        { "storage 'k' ends beyond the file", stream(tensor(2, 0, { 1 }, { 1 }), key_list, two:sub(1, -2)) },
        { "storage 'k' ends beyond the file", stream(tensor(2, 0, { 1 }, { 1 }), key_list, string.pack("<i8", -1)) },
        { "storage 'k' ends beyond the file", stream(tensor(2, 0, { 1 }, { 1 }), key_list, string.pack("<i8", math.maxinteger)) },
        { "storage 'k' is missing", stream(tensor(2, 0, { 1 }, { 1 }), nil, two) },
        { "of no dtype that is known", stream(tensor(2, 0, { 1 }, { 1 }, nil, "StrangeStorage"), key_list, two) },
        { "neither 0 nor 1", stream(tensor(2, 0, { 2 }, { 1 }, nil, "BoolStorage"), key_list, string.pack("<i8", 2) .. "\1\2") },
        { "version 1002 of the form", (stream "N"):gsub("M\xe9\3", "M\xea\3") },
    } do
        put(case[2])
        local message = t.error_has(function() tide.load(path) end, "load: '" .. path .. "': ")
        t.is_true(message:find(case[1], 1, true) and not message:find("\n"), message)
    end
end)

t.test("the_oldest_form_is_refused_by_its_name", function()
    for _, name in ipairs { "sys_info", "./pickle", "storages" } do
        put(name .. ("\0"):rep(257 - #name) .. "ustar\0" .. ("\0"):rep(800))
        t.error_has(function() tide.load(path) end, "the oldest form of torch.save, an archive of tar, is not read")
    end
end)

t.test("pickles_that_are_broken_are_refused_in_a_line", function()
    for part, object in pairs {
        ["takes from an empty stack"] = "0", ["a mark is missing"] = "t", ["reads what it never kept"] = "h\5", ["an instruction that pickle has not"] = "\xff",
        ["cut off"] = "X\xff\xff\xff\x7fabc", ["appends to what is no list"] = "K\1K\2a", ["sets an item of what has none"] = "K\1K\2K\3s",
        ["a key without a value"] = "}(K\1u", ["nested more than 500 deep"] = ("]"):rep(600) .. ("a"):rep(599), ["a number that is none"] = "Fx\n",
        ["it holds class main.Net"] = "(" .. text "module" .. "cmain\nNet\n" .. text "net.py" .. text "class Net" .. "tQ)\x81}b",
        ["it holds class os.system"] = "cos\nsystem\n(" .. text "echo run" .. "tR", ["it holds class or function os.system"] = "cos\nsystem\n",
        ["it holds a reference to something else"] = "K\1Q", ["it holds a tensor without a storage"] = "ctorch._utils\n_rebuild_tensor_v2\n(tR",
        ["it holds class builtins.eval"] = "cbuiltins\neval\n(" .. text "1" .. "tR",
    } do
        put(stream(object))
        local message = t.error_has(function() tide.load(path) end, "load: '" .. path .. "': ")
        t.is_true(message:find(part, 1, true) and not message:find("\n"), message)
    end
end)

t.test("what_a_pickle_keeps_once_is_one_table_however_often_it_is_named", function()
    local bomb = "]q\0"
    for k = 1, 200 do -- each list holds the one before it twice: 2^200 leaves
        bomb = bomb .. "](h" .. string.char(k - 1) .. "h" .. string.char(k - 1) .. "eq" .. string.char(k)
    end
    put(stream(bomb))
    local list = tide.load(path)
    t.is_true(list[1] == list[2] and list[1][1] == list[1][2])
    put(stream("]q\0h\0a")) -- a list within itself
    list = tide.load(path)
    t.is_true(list[1] == list)
    -- what is left out is looked at once as well
    local left = "cargparse\nNamespace\n)\x81q\0"
    for k = 1, 60 do
        local both = "h" .. string.char(k - 1)
        left = left .. "ctorch._utils\n_rebuild_sparse_tensor\n(" .. both .. "(" .. both .. both .. both .. "ttRq" .. string.char(k)
    end
    put(stream("](" .. left .. "e"))
    quiet(tide.load, path)
end)

t.test("protocols_without_bytes_are_read_too", function()
    put(stream("(dp0\nS'a'\np1\nI7\nsS'b\\n\\'\\x41\\\\'\nL123456789012L\nsVgr\\u00f6\xdfe\nF0.5\nsS'yes'\nI01\nsS'l'\n(lp2\nI1\naNas"))
    t.eq(tide.load(path), { a = 7, ["b\n'A\\"] = 123456789012, ["größe"] = 0.5, yes = true, l = { 1, n = 2 } })
end)

-- ---- every byte ----

-- Every value that is read can be used; what is refused is refused in a line.
local function use(value, seen)
    if tide.is_tensor(value) then
        return value:numel() < 1000 and value:detach():to_dense():sum()
    elseif type(value) == "table" and not seen[value] then
        seen[value] = true
        for key, inner in pairs(value) do
            use(inner, seen)
        end
    end
end

t.test("a_file_cut_anywhere_or_with_any_byte_turned_is_refused_in_a_line_or_read", function()
    for _, name in ipairs { "small.pt", "small_stream.pt" } do
        local whole = get(name)
        for n = 0, #whole - 1 do
            put(whole:sub(1, n))
            local ok, message = quiet(tide.load, path)
            t.is_true(not ok and not message:find("\n") and message:find("load: '", 1, true), message)
        end
        for n = 1, #whole do
            for _, bits in ipairs { 0x01, 0xff } do
                put(whole:sub(1, n - 1) .. string.char(whole:byte(n) ~ bits) .. whole:sub(n + 1))
                local ok, value = quiet(tide.load, path)
                t.is_true(ok or not value:find("\n") and value:find("load: '", 1, true), value)
                use(ok and value, {})
            end
        end
    end
    os.remove(path)
end)
