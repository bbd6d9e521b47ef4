-- test_profiler_exact.lua: every figure of a table and of a trace, from a recording whose times are known to the nanosecond.
local t = require "harness"
local json = require "json"
local profiler = tide.profiler

local path = os.tmpname()

local function load_text(text)
    local file = assert(io.open(path, "wb"))
    file:write("[" .. text .. "]")
    file:close()
    return profiler.load(path)
end

local function slice(cat, name, from, to, args, tid)
    return ('{"ph":"X","cat":"%s","name":"%s","pid":1,"tid":%d,"ts":%s,"dur":%s,"args":{%s}}'):format(cat, name, tid or 1,
        tostring(from), tostring(to - from), args or "")
end

local function memory(at, bytes, total)
    return ('{"ph":"i","s":"t","cat":"cpu_instant_event","name":"[memory]","pid":1,"tid":1,"ts":%s,"args":{"Bytes":%d,"Total Allocated":%d}}')
        :format(tostring(at), bytes, total)
end

-- µs. The operator a lies within itself, directly and by way of b; a range bears its name too.
local recording = table.concat({
    slice("cpu_op", "a", 0, 100), slice("cpu_op", "b", 10, 60, '"External id":5'), slice("cpu_op", "a", 20, 50, '"External id":6'),
    slice("cpu_op", "a", 25.125, 30.25), slice("user_annotation", "a", 70, 80), slice("cpu_op", "a", 200, 210.004),
    slice("cpu_op", "c", 300, 400), slice("loading", "library", 310, 350), slice("loading", "inner", 320, 330),
    memory(22, 256, 1280), memory(40, -64, 1216), memory(205, 1024, 2240),
    slice("kernel", "k", 50, 80, '"External id":5,"device":0,"stream":9', 7),
    slice("kernel", "k2", 84, 94, '"External id":6,"device":0,"stream":9', 7), slice("gpu_memcpy", "copy", 100, 110, '"bytes":4096', 7),
}, ",")

-- By kind and name: calls, self and total in ns.
local want = {
    ["operator a"] = { 4, 40000 + (30000 - 5125) + 5125 + 10004, 100000 + 10004 }, ["operator b"] = { 1, 20000, 50000 },
    ["range a"] = { 1, 10000, 10000 }, ["operator c"] = { 1, 60000, 60000 }, ["loading library"] = { 1, 30000, 40000 },
    ["loading inner"] = { 1, 10000, 10000 }, ["device k"] = { 1, 30000, 30000 }, ["device k2"] = { 1, 10000, 10000 },
    ["transfer copy"] = { 1, 10000, 10000 },
    ["memory [memory]"] = { 3, 0, 0 },
}

t.test("rows_are_exact", function()
    local found = {}
    for _, row in ipairs(load_text(recording):_rows(100)) do
        found[row.kind .. " " .. row.name] = { row.calls, row.self_ns, row.total_ns }
    end
    t.eq(found, want)
end)

t.test("what_an_export_holds_gives_the_same_rows", function()
    load_text(recording):export_chrome_trace(path)
    local found = {}
    for _, row in ipairs(profiler.load(path):_rows(100)) do
        found[row.kind .. " " .. row.name] = { row.calls, row.self_ns, row.total_ns }
    end
    t.eq(found, want)
end)

-- The cells of a row by its heading; columns are parted by two blanks at least.
local function cells(text, name, kind)
    local heading = text:match("^[^\n]+")
    for line in text:gmatch("[^\n]+") do
        if line:find("^" .. name .. " +" .. kind .. " ") then
            local list, names = {}, {}
            for cell in (line .. "  "):gmatch("(%S.-)%s%s+") do
                list[#list + 1] = cell
            end
            for cell in (heading .. "  "):gmatch("(%S.-)%s%s+") do
                names[#names + 1] = cell
            end
            local row = {}
            for k, key in ipairs(names) do
                row[key] = list[k]
            end
            return row
        end
    end
end

t.test("cells_of_the_table_are_exact", function()
    local text = load_text(recording):table()
    -- shares: of 170.004 µs that the host worked, without loading; devices' of 50
    local a = cells(text, "a", "operator")
    t.eq({ a.self, a.share, a.total, a.calls, a.mean, a.device, a["dev.total"], a.memory },
        { "80 µs", "47.1 %", "110 µs", "4", "27.5 µs", "10 µs", "40 µs", "1.19 KiB" })
    local b = cells(text, "b", "operator")
    t.eq({ b.self, b.share, b.total, b.mean, b.device, b["dev.total"] }, { "20 µs", "11.8 %", "50 µs", "50 µs", "30 µs", "40 µs" })
    local r = cells(text, "a", "range")
    t.eq({ r.self, r.share, r.total, r.calls }, { "10 µs", "5.9 %", "10 µs", "1" })
    local c = cells(text, "c", "operator")
    t.eq({ c.self, c.share, c.total, c.mean }, { "60 µs", "35.3 %", "60 µs", "60 µs" })
    local k = cells(text, "k", "device")
    t.eq({ k.self, k.share }, { "30 µs", "60.0 %" })
    t.eq(cells(text, "copy", "transfer").share, "20.0 %")
    local l = cells(text, "library", "loading")
    t.eq({ l.self, l.share, l.total }, { "30 µs", "-", "40 µs" })
    t.is_true(text:find("15 events, 160 µs of 400 µs in operators; loading and first touches of memory took 40 µs more", 1, true), text)
    t.is_true(text:find("devices busy for 50 µs of it (12.5 %)", 1, true), text)
end)

t.test("counters_and_times_of_a_trace_are_exact", function()
    load_text(recording):export_chrome_trace(path)
    local file = assert(io.open(path))
    local text = file:read("a")
    file:close()
    local counters, instants, slices, kernel = {}, {}, {}, nil
    for _, e in ipairs(json.read(text).traceEvents) do
        if e.ph == "C" then
            counters[#counters + 1] = { e.ts, e.args.bytes }
        elseif e.ph == "i" then
            instants[#instants + 1] = { e.ts, e.args.Bytes, e.args["Total Allocated"] }
        elseif e.ph == "X" then
            slices[#slices + 1] = ("%s %s+%s self %s"):format(e.name, e.ts, e.dur, e.args["Self us"])
            kernel = e.name == "k" and e or kernel
        end
    end
    t.eq(counters, { { 22, 1280 }, { 40, 1216 }, { 205, 2240 } })
    t.eq(instants, { { 22, 256, 1280 }, { 40, -64, 1216 }, { 205, 1024, 2240 } })
    table.sort(slices)
    local wanted = {}
    for _, s in ipairs { { "a", 0, 100, 40 }, { "a", 20, 30, 24.875 }, { "a", 25.125, 5.125, 5.125 }, { "a", 70, 10, 10 },
        { "a", 200, 10.004, 10.004 }, { "b", 10, 50, 20 }, { "c", 300, 100, 60 }, { "copy", 100, 10, 10 }, { "inner", 320, 10, 10 },
        { "k", 50, 30, 30 }, { "k2", 84, 10, 10 }, { "library", 310, 40, 30 } } do
        local function number(x) return json.read(("%.3f"):format(x)) end
        wanted[#wanted + 1] = ("%s %s+%s self %s"):format(s[1], number(s[2]), number(s[3]), number(s[4]))
    end
    table.sort(wanted)
    t.eq(slices, wanted)
    t.is_true(text:find('"ts":25.125,"dur":5.125', 1, true) and text:find('"dur":10.004', 1, true), text)
    t.eq({ kernel.args.device, kernel.args.stream }, { 0, 9 })
end)

t.test("arrows_lead_from_who_asked_to_what_a_device_did", function()
    load_text(recording):export_chrome_trace(path)
    local file = assert(io.open(path))
    local ends, joined = {}, {}
    for _, e in ipairs(json.read(file:read("a")).traceEvents) do
        if e.ph == "s" or e.ph == "f" then
            ends[#ends + 1] = { e.ph, e.cat, e.ts, e.id }
        elseif e.ph == "X" and e.args.correlation then
            joined[#joined + 1] = { e.name, e.args.correlation, e.args["External id"] }
        end
    end
    file:close()
    t.eq(#ends, 4)
    t.eq({ ends[1][1], ends[1][2], ends[1][3] }, { "s", "ac2g", 10 })
    t.eq({ ends[2][1], ends[2][2], ends[2][3] }, { "f", "ac2g", 50 })
    t.eq(ends[1][4], ends[2][4])
    table.sort(joined, function(a, b) return a[1] < b[1] end)
    t.eq({ #joined, joined[1][1], joined[2][1], joined[3][1], joined[4][1] }, { 4, "a", "b", "k", "k2" })
    t.eq({ joined[1][2], joined[1][3] }, { joined[4][2], joined[4][3] })
    t.eq({ joined[2][2], joined[2][3] }, { joined[3][2], joined[3][3] })
    t.ne(joined[1][2], joined[2][2])
end)

os.remove(path)
