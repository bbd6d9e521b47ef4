-- test_profiler_timeline.lua: the picture of a recording: rows, shares and names in the terminal, data and page for
-- a notebook.
local t = require "harness"
local json = require "json"
local profiler = tide.profiler

local function load_text(text)
    local path = os.tmpname()
    local file = assert(io.open(path, "w"))
    file:write(text)
    file:close()
    local profile = profiler.load(path)
    os.remove(path)
    return profile
end

-- 100 µs: 20 of Lua, an operator of 40 with its kernel of 20 at the end, 40 of Lua; a stream at work for 50.
local function picture()
    return load_text([==[[{"ph":"M","name":"thread_name","pid":1,"tid":1,"args":{"name":"main"}},
        {"ph":"M","name":"thread_name","pid":0,"tid":7,"args":{"name":"stream 7"}},
        {"ph":"X","cat":"user_annotation","name":"all </script>","pid":1,"tid":1,"ts":0,"dur":100},
        {"ph":"X","cat":"cpu_op","name":"add","pid":1,"tid":1,"ts":20,"dur":40,"args":{"line":"x.lua:3","Input Dims":[[2,3],[]],"Input type":["float","double"]}},
        {"ph":"X","cat":"cpu_kernel","name":"add","pid":1,"tid":1,"ts":40,"dur":20},
        {"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":50,"dur":50}]]==])
end

local function rows(text)
    local found = {}
    for label, cells, share in text:gmatch("([^\n]-) *▕(.-)▏ *([%d.]+) %%") do
        found[label] = { cells = cells, share = tonumber(share) }
    end
    return found
end

t.test("rows_say_what_each_moment_went_to", function()
    local found = rows(tostring(picture():timeline { width = 10 }))
    t.eq(found["main Lua"], { cells = "██    ████", share = 60 })
    t.eq(found["main dispatch"], { cells = "  ██      ", share = 20 })
    t.eq(found["main kernels"], { cells = "    ██    ", share = 20 })
    t.eq(found["stream 7 device"], { cells = "     █████", share = 50 })
end)

t.test("a_window_is_drawn_by_itself_and_cells_are_as_high_as_they_are_busy", function()
    local text = tostring(picture():timeline { from = 30, to = 50, width = 10 })
    local found = rows(text)
    t.eq(found["main dispatch"], { cells = "█████     ", share = 50 })
    t.is_true(text:find("30 µs to 50 µs (20 µs, 2 µs a cell)", 1, true), text)
    found = rows(tostring(picture():timeline { from = 0, to = 400, width = 10 }))
    t.eq(found["main dispatch"].cells, "▄         ")
    t.is_true(text:find("█ add"), text)
end)

t.test("colours_stand_for_names", function()
    local text = picture():_timeline_text(nil, nil, { width = 10, color = true })
    local code = text:match("\27%[38;5;(%d+)m█\27%[0m add")
    t.is_true(code and text:find(("dispatch *▕[^\n]*\27%%[38;5;%sm██"):format(code)), text)
    t.is_true(not tostring(picture():timeline()):find("\27"))
end)

t.test("data_has_slices_names_lines_and_shapes", function()
    local data = json.read(picture():_timeline_data())
    t.eq(#data.slices, 4 * 8)
    t.eq(data.left_out, 0)
    t.eq({ data.rows[1].name, data.rows[1].depth, data.rows[2].name }, { "main", 3, "stream 7" })
    local s = {}
    for k = 1, 8 do
        s[k] = data.slices[8 + k]
    end
    t.eq({ s[1], s[2], s[3], s[4] }, { 0, 1, 20000, 40000 })
    t.eq(data.names[s[5] + 1], "add")
    t.eq(data.lines[s[6] + 1], "x.lua:3")
    t.eq(data.shapes[s[7] + 1], "(2, 3) float32, () float64")
    t.eq(data.kinds[s[8] + 1], "operator")
    local longest = json.read(picture():_timeline_data(nil, nil, { most = 2 }))
    t.eq(#longest.slices, 2 * 8)
    t.eq(longest.left_out, 2)
    local part = json.read(picture():_timeline_data(10, 30))
    t.eq(part.slices[3] + part.slices[4], 20000)
end)

t.test("a_notebook_gets_a_page_that_needs_nothing_else", function()
    local timeline = picture():timeline()
    local html = getmetatable(timeline).__display(timeline)["text/html"]
    t.is_true(not html:find("https?://"), "no network")
    t.eq(select(2, html:gsub("</script>", "")), 1, "names end no script")
    t.is_true(html:find("all <\\/script>", 1, true))
    t.is_true(not html:find("DATA_OF_THE_PROFILE"))
end)

t.test("what_cannot_be_drawn_is_refused_in_one_line", function()
    local profile = picture()
    for _, case in ipairs { { { width = -3 }, "option width: expected an integer from 10 to 1000" },
        { { width = 5000 }, "option width" }, { { from = 5, to = 3 }, "from comes before to" }, { { from = -1 }, "from 0 on" },
        { { from = 0 / 0 }, "from comes before to" }, { { to = 0 }, "from comes before to" }, { { to = math.huge }, "from comes" },
        { { from = "x" }, "from" }, { { form = 1 }, "did you mean 'from'" } } do
        local message = t.error_has(function() profile:timeline(case[1]) end, case[2])
        t.is_true(not message:find("\n"), message)
    end
    t.eq(tostring(load_text("[]"):timeline()), "nothing was recorded")
    t.eq(tostring(profiler.profile(function() end):timeline()), "nothing was recorded")
end)

-- One after the other: operators, kernels within, backward, a collection and a library's loading.
local function families()
    local parts, at = {}, 0
    local function add(kind, name, length, from)
        parts[#parts + 1] = ('{"ph":"X","cat":"%s","name":"%s","pid":1,"tid":1,"ts":%d,"dur":%d}'):format(kind, name, from or at, length)
        at = from and at or at + length
        return at - length
    end
    local start = add("cpu_op", "log_softmax", 40)
    add("cpu_kernel", "log_softmax", 30, start + 5)
    start = add("cpu_op", "add_", 10)
    add("cpu_kernel", "add", 6, start + 2)
    start = add("autograd", "LogSoftmaxBackward", 20)
    add("cpu_kernel", "LogSoftmaxBackward", 10, start + 4)
    add("loading", "a library", 1000)
    for k = 1, 12 do
        add("user_annotation", "range <" .. k .. ">", k)
    end
    return load_text("[" .. table.concat(parts, ",") .. "]")
end

t.test("a_notebook_gets_rows_that_unfold", function()
    local profile = families()
    local html = debug.getmetatable(profile).__display(profile)["text/html"]
    local rows = {}
    for name, share, own in html:gmatch("<code>([^<]*)</code>.-text%-align:right\">([%d.]+) %%</span><span [^>]*>([%d.]+ µs)</span>") do
        rows[name] = rows[name] or { tonumber(share), own }
    end
    local all = 40 + 10 + 20 + 78
    t.close(rows.log_softmax[1], 100 * 60 / all, 0.06) -- with its backward and both kernels
    t.eq(rows.log_softmax[2], "60 µs")
    t.eq(rows.add_[2], "10 µs")
    t.is_true(html:find("kernel <code>add</code>", 1, true) and html:find("backward <code>LogSoftmaxBackward</code>", 1, true))
    t.is_true(html:find("range &lt;12&gt;", 1, true))
    t.is_true(html:find("in no share: a library 1 ms", 1, true))
    t.is_true(html:find("4 more", 1, true), "ten are shown at once") -- of two families and twelve ranges
    t.is_false(html:find("<script", 1, true) ~= nil)
    t.is_true(debug.getmetatable(profile).__display(load_text("[]"))["text/html"]:find("nothing was recorded", 1, true))
end)
