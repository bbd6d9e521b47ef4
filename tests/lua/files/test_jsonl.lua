-- tide.io.read_lines and read_jsonl: lines and values in a row, tables of objects, and lines that are broken named by their number.
local t = require "harness"

local path = os.tmpname()

local function put(text, name)
    local f <close> = assert(io.open(name or path, "wb"))
    f:write(text)
end

local function collect(step)
    local list = {}
    for value, number in step do
        list[#list + 1] = { number, value }
    end
    return list
end

local function columns(text)
    put(text)
    local tbl, all = tide.io.read_jsonl(path, { table = true }), {}
    for k, name in ipairs(tbl:names()) do
        local c = tbl:column(name)
        local values = c:tolist()
        for at, v in ipairs(values) do
            values[at] = v ~= v and "nan" or v
        end
        all[k] = { name, tide.is_tensor(c) and tostring(c.dtype):match("%w+$") or "text", values }
    end
    return all
end

t.test("lines_end_as_any_system_but_old_macs_ends_them", function()
    for text, want in pairs { [""] = {}, ["a"] = { "a" }, ["a\n"] = { "a" }, ["\n"] = { "" }, ["a\r\n\nb\rc\n\0d"] = { "a", "", "b\rc", "\0d" },
        [("x"):rep(200000) .. "\n" .. ("y"):rep(65536) .. "\r\n\r\n"] = { ("x"):rep(200000), ("y"):rep(65536), "" } } do
        put(text)
        local got = {}
        for line, number in tide.io.read_lines(path) do
            got[number] = line
        end
        t.eq(got, want)
        assert(os.execute(("gzip -c %s > %s.gz"):format(path, path)))
        t.eq(collect(tide.io.read_lines(path .. ".gz")), collect(tide.io.read_lines(path)))
    end
    os.remove(path .. ".gz")
    local step = tide.io.read_lines(path)
    for _ in step do end
    t.eq(step(), nil) -- and no more
    t.error_has(function() tide.io.read_lines "/nonexistent" end, "read_lines: cannot read '/nonexistent': No such file")
    t.error_has(function() tide.io.read_lines "/" end, "read_lines: cannot read '/': Is a directory")
end)

t.test("values_come_with_the_numbers_of_their_lines", function()
    put('\xEF\xBB\xBF{"a": 1, "b": [1.5, "x"]}\r\n\n  \t\n"text"\n-3\nnull\n[true]')
    t.eq(collect(tide.io.read_jsonl(path)), { { 1, { a = 1, b = { 1.5, "x" } } }, { 4, "text" }, { 5, -3 }, { 6, tide.io.null }, { 7, { true } } })
    for text, what in pairs { ['{"a": 1}\n{"a": }\n'] = "line 2: ", ['1\n\n2 3\n'] = "line 3: ", ['{"a": 1'] = "line 1: ", ["nan"] = "line 1: ",
        ['{"a": 1, "a": 2}'] = "line 1: " } do
        put(text)
        t.error_has(function() collect(tide.io.read_jsonl(path)) end, "read_jsonl: '" .. path .. "', " .. what)
    end
    put '{"a": 1}\n{"a": }\n'
    t.error_has(function() tide.io.read_jsonl(path, { table = true }) end, "read_jsonl: '" .. path .. "', line 2: ")
end)

t.test("objects_become_rows_of_a_table", function()
    t.eq(columns '{"s": "x", "i": 1, "f": 1, "b": true}\n{"b": false, "f": 0.5, "i": -2, "s": ""}\n', { { "b", "bool", { true, false } },
        { "f", "float64", { 1, 0.5 } }, { "i", "int64", { 1, -2 } }, { "s", "text", { "x", "" } } })
    t.eq(columns '{"i": 1, "b": true, "n": null}\n{"s": "x", "b": null, "n": null}\n', { { "b", "float64", { 1, "nan" } }, { "i", "float64", { 1, "nan" } },
        { "n", "float64", { "nan", "nan" } }, { "s", "text", { false, "x" } } })
    t.eq(columns '{"m": 1}\n{"m": "a"}\n{"m": {"k": [1]}}\n{"m": true}\n', { { "m", "text", { "1", "a", '{"k":[1]}', "true" } } })
    t.eq(columns '{"m": 1}\n{"m": true}\n', { { "m", "text", { "1", "true" } } })
    for text, what in pairs { ["[1]"] = "line 1: an object expected, got an array", ['{"a": 1}\nnull'] = "line 2: an object expected, got null",
        ["5"] = "an object expected, got number 5", [""] = "holds no rows" } do
        put(text)
        t.error_has(function() tide.io.read_jsonl(path, { table = true }) end, what)
    end
end)

t.test("a_file_cut_or_changed_anywhere_is_read_or_refused_in_one_line", function()
    local text = '\xEF\xBB\xBF{"a": 1, "b": "x\\u00e9"}\r\n\n{"a": null, "b": [1, {"c": 2.5e3}]}\n'
    local function try(bytes, what)
        put(bytes)
        for _, read in ipairs { function() return collect(tide.io.read_jsonl(path)) end, function() return tide.io.read_jsonl(path, { table = true }) end } do
            local ok, got = pcall(read)
            t.is_true(ok or got:find("read_jsonl: '" .. path .. "'", 1, true) and not got:find "\n", what .. ": " .. tostring(got))
        end
    end
    for n = 0, #text do
        try(text:sub(1, n), "cut at " .. n)
        for _, byte in ipairs { 0, 10, 34, 123, 255 } do
            try(text:sub(1, n) .. string.char(byte) .. text:sub(n + 2), "changed at " .. n)
        end
    end
end)

t.test("load_takes_tables_lines_and_archives", function()
    local function at(name, text)
        put(text, path .. name)
        local value = tide.load(path .. name)
        os.remove(path .. name)
        return value
    end
    t.eq({ at(".csv", "a,b\n1,2\n").b:tolist(), at(".tsv", "a\tb\n1\t2\n").b:tolist(), at(".jsonl", '{"a": 3}').a:tolist() }, { { 2 }, { 2 }, { 3 } })
    put("a;b\n1;2\n", path .. ".csv")
    assert(os.execute(("gzip -f %s.csv"):format(path)))
    t.eq(tide.load(path .. ".csv.gz").a:tolist(), { 1 })
    os.remove(path .. ".csv.gz")
    tide.data.write_tar({ { __key__ = "k", txt = "x" } }, path)
    t.eq(tide.load(path), { ["k.txt"] = "x" })
    t.error_has(function() at(".csv", "a,b\n1\n") end, "line 2: 1 columns, the first row has 2")
end)

os.remove(path)
