-- test_display.lua: what tide.display hands to front ends, and what it refuses. The session's way to a front end is
-- caught, so that what would be shown can be looked at.
local t = require "harness"
local json = tide._require "files.json"

-- The bundle that fn shows, its JSON types decoded, and the options.
local function shown(fn)
    local send, got, options = tide._show_value, nil, nil
    tide._show_value = function(_, value, given) got, options = getmetatable(value).__display(value), given end
    local ok, problem = pcall(fn)
    tide._show_value = send
    if not ok then
        error(problem, 0)
    end
    return got, options
end

local function unbase64(text)
    local digits, bits, out = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", 0, {}
    local n = 0
    for c in text:gmatch("[%w+/]") do
        bits, n = bits << 6 | digits:find(c, 1, true) - 1, n + 6
        if n >= 8 then
            n = n - 8
            out[#out + 1] = string.char(bits >> n & 255)
        end
    end
    return table.concat(out)
end

t.test("base64_pads", function()
    t.eq({ tide._base64(""), tide._base64("f"), tide._base64("fo"), tide._base64("foo"), tide._base64("\255\254\0\1") },
        { "", "Zg==", "Zm8=", "Zm9v", "//4AAQ==" })
end)

t.test("texts_go_as_they_are_and_leave_a_text_for_the_terminal", function()
    t.eq(shown(function() tide.display.html("<b>done</b> &lt;x&gt;") end),
        { ["text/html"] = "<b>done</b> &lt;x&gt;", ["text/plain"] = "done <x>" })
    t.eq(shown(function() tide.display.html("<style>b {}</style><!-- x --><p>a &amp; b</p>&#65;") end)["text/plain"], "a & b\nA")
    t.eq(shown(function() tide.display.markdown("# One") end), { ["text/markdown"] = "# One", ["text/plain"] = "# One" })
    t.eq(shown(function() tide.display.latex("x^2") end)["text/latex"], "$$x^2$$")
    t.eq(shown(function() tide.display.latex("$x$") end)["text/latex"], "$x$")
    t.eq(shown(function() tide.display.svg("<svg/>") end)["image/svg+xml"], "<svg/>")
end)

t.test("sound_is_a_player_of_a_wav_file", function()
    local function shown_file(x, rate, options)
        local bundle = shown(function() tide.display.audio(x, rate, options) end)
        return unbase64(bundle["text/html"]:match '^<audio controls src="data:audio/wav;base64,([%w+/=]+)"></audio>$'), bundle["text/plain"]
    end
    local bytes, text = shown_file(tide.tensor { 0, 0.25, -0.5 }, 4000)
    t.eq(text, "<sound, 0.00 s>")
    t.eq({ string.unpack("<I4", bytes, 25) }, { 4000, 29 })
    t.eq({ string.unpack("<i2i2i2", bytes, #bytes - 5) }, { 0, 16384, -32768, #bytes + 1 })
    t.eq({ string.unpack("<i2i2", shown_file(tide.tensor({ { 0.25 }, { -0.5 } }), 4000, { normalize = false }), 45) }, { 8192, -16384, 49 })
    t.eq({ string.unpack("<i2", shown_file(tide.zeros(2), 4000), 45) }, { 0, 47 })
    t.eq(shown_file(bytes), bytes)
    t.is_true(shown(function() tide.display.audio(bytes, { autoplay = true }) end)["text/html"]:find("<audio controls autoplay src", 1, true))
    t.error_has(function() tide.display.audio(tide.zeros(2)) end, "audio: argument 2 (rate): how many frames a second has")
    t.error_has(function() tide.display.audio(tide.zeros(2, 2, 2), 8000) end, "audio: x: floats (channels, frames) expected, got tide.float32 of shape (2, 2, 2)")
    t.error_has(function() tide.display.audio(tide.arange(3), 8000) end, "audio: x: floats (channels, frames) expected, got tide.int64")
    t.error_has(function() tide.display.audio("noise") end, "audio: argument 1 (data) is no WAV file")
    t.error_has(function() tide.display.audio { path = "/nowhere.wav" } end, "audio: /nowhere.wav: No such file")
    t.error_has(function() tide.display.audio(3) end, "audio: argument 1 (data): expected a tensor or the bytes of a WAV file, got")
    t.error_has(function() tide.display.audio() end, "expected data or a path, got neither")
end)

t.test("an_id_and_metadata_go_along", function()
    local bundle, options = shown(function() tide.display.html("x", { id = "a", update = true, metadata = { isolated = true } }) end)
    t.eq({ options.id, options.update, bundle.metadata.isolated }, { "a", true, true })
    t.error_has(function() tide.display.html("x", { update = true }) end, "html: update needs the id of a display")
end)

t.test("tensors_of_images_are_png_files_with_their_pixels", function()
    local x = tide.tensor({ { 0, 128 }, { 255, 7 }, { 1, 2 } }, { dtype = tide.uint8 })
    local bundle = shown(function() tide.display.png(x, { width = 40 }) end)
    local file = unbase64(bundle["image/png"])
    t.eq(file:sub(1, 8), "\137PNG\r\n\26\n")
    t.eq({ string.unpack(">I4I4BB", file, 17) }, { 2, 3, 8, 0, 27 }) -- width, height, bits, grey
    t.eq(bundle.metadata["image/png"].width, 40)
    t.eq(unbase64(shown(function() tide.display.png(file) end)["image/png"]), file)
    t.eq(shown(function() tide.display.png(file) end)["text/plain"], "<PNG image 2 x 3>")
end)

t.test("pixels_follow_the_layout", function()
    local function pixels(x, ...) return tide._require("plot.pixels").of(x, "png", ...):tolist() end
    t.eq(pixels(tide.tensor { { 0, 0.5, 1, 2, -1, 0 / 0 } }), { { { 0 }, { 128 }, { 255 }, { 255 }, { 0 }, { 0 } } })
    t.eq(pixels(tide.tensor { { true, false } }), { { { 255 }, { 0 } } })
    local rgb = tide.zeros(3, 2, 1)
    rgb[{ 1, 2, 1 }] = 1
    t.eq(pixels(rgb), { { { 0, 0, 0 } }, { { 255, 0, 0 } } })
    t.eq(pixels(rgb:permute(2, 3, 1)), { { { 0, 0, 0 } }, { { 255, 0, 0 } } })
    t.eq(pixels(tide.tensor { { 2, 4 } }, 2, 4), { { { 0 }, { 255 } } })
    -- four images in two rows with gaps of two
    t.eq(tide._require("plot.pixels").of(tide.ones(3, 1, 4, 5), "png").shape[1], 4 * 2 + 2)
    t.eq(tide._require("plot.pixels").of(tide.ones(3, 1, 4, 5, { requires_grad = true }), "png").shape[2], 5 * 2 + 2)
end)

t.test("json_is_exact", function()
    local function text(v) return json.encode(v, "json") end
    t.eq(text { lr = 0.1, steps = { 1, 2 }, name = 'a"\n</script>' }, [[{"lr":0.1,"name":"a\"\n<\/script>","steps":[1,2]}]])
    t.eq(text(1 / 3), "0.3333333333333333")
    t.eq(tonumber(text(5e-324)), 5e-324)
    t.eq(text {}, "{}")
    t.eq(text(json.list {}), "[]")
    t.eq(text { json.null, false }, "[null,false]")
    t.eq(text(tide.tensor { { 1, 2 } }), "[[1.0,2.0]]" == text(tide.tensor { { 1, 2 } }) and "[[1.0,2.0]]" or "[[1,2]]")
    t.eq(text { [1] = 1, [3] = 2 }, '{"1":1,"3":2}')
    t.eq(json.encode({ 0 / 0, math.huge }, "json", true), "[null,null]")
    t.eq(rawequal(json.decode("[null]")[1], json.null), true)
    t.eq(json.decode('{"a":[1,2.5,"x",true]}'), { a = { 1, 2.5, "x", true } })
    t.eq(select(2, json.decode("{bad")), "JSON: a string expected at byte 2")
end)

t.test("wrong_data_is_refused_in_a_line", function()
    local d, cycle = tide.display, {}
    cycle.t = cycle
    for _, case in ipairs {
        { function() d.html(3) end, "html: argument 1 (html): expected a string, got number 3" },
        { function() d.html("\xff") end, "html: text/html is no UTF-8" },
        { function() d.png("abc!") end, "png: image/png doesn't begin as a PNG file does" },
        { function() d.png(tide.ones(2)) end, "png: shape (2) is no image" },
        { function() d.png(tide.ones(5, 5, 5)) end, "is no image" },
        { function() d.png(tide.ones(2, 0)) end, "has no pixels" },
        { function() d.png(tide.ones(70, 2, 2, 1)) end, "70 images are more than a sheet of 64" },
        { function() d.png(tide.ones(5000, 5000)) end, "more than 16777216 pixels" },
        { function() d.png() end, "png: expected data or a path, got neither" },
        { function() d.png("x", { path = "y" }) end, "got both" },
        { function() d.png { path = "/nonexistent.png" } end, "No such file" },
        { function() d.png(print) end, "expected the bytes of a PNG file or a tensor" },
        { function() d.jpeg("xx") end, "doesn't begin as a JPEG file does" },
        { function() d.svg("<b>") end, "has no <svg in it" },
        { function() d.json({ f = print }) end, "value.f is a function, which JSON can't hold" },
        { function() d.json({ 0 / 0 }) end, "value[1] is nan" },
        { function() d.json(cycle) end, "value.t is a table within itself" },
        { function() d.json("{bad") end, "a string expected at byte 2" },
        { function() d.json() end, "expected a value, got nothing" },
        { function() d.json({}, 3) end, "options go in a table" },
        { function() d.vega("[1]") end, "a specification is an object" },
        { function() d.vega({ ["$schema"] = "x/v1" }) end, "neither Vega-Lite's nor Vega's" },
        { function() d.bundle({ html = "x" }) end, "is no MIME type" },
        { function() d.bundle({ ["text/html"] = 3 }) end, "text/html is number 3, expected a string" },
        { function() d.bundle({}) end, "there is nothing in it" },
        { function() d.html("x", { idd = "a" }) end, "did you mean 'id'?" },
    } do
        t.error_has(case[1], case[2])
    end
end)

t.test("what_a_hook_gives_is_kept_where_it_can_be", function()
    local list, metadata, problems = tide._require("notebook.mime").read { ["text/html"] = "<b>x</b>", ["image/png"] = "no", ["text/plain"] = "x",
        junk = 1, metadata = { a = 1 }, ["application/json"] = { 1 } }
    t.eq(list, { "application/json", "[1]", "text/html", "<b>x</b>" })
    t.eq(metadata, '{"a":1}')
    t.eq(problems, "display: image/png doesn't begin as a PNG file does: left out")
end)

t.test("tensors_as_html_are_tables_with_places_from_1", function()
    local text = tide._require("notebook.html").value(tide.tensor { { 1.5, -2 }, { 0, 0 / 0 } })
    local function cells(html) return (html:gsub("<td style=[^>]*>", "<td>")) end
    t.is_true(cells(text):find("<th>2</th><td>0.0000</td><td>nan</td>", 1, true), text)
    t.is_true(text:find("float32 (2, 2) cpu", 1, true))
    local wide = tide._require("notebook.html").value(tide.arange(100):reshape(1, 100))
    t.is_true(cells(wide):find("<td>9</td><td>⋯</td><td>90</td>", 1, true), wide)
    for _, html in ipairs { text, wide } do -- pages let the cells of a table break, unless each says no
        t.is_true(not html:find("<td>", 1, true) and not html:gsub("<td style=\"white%-space:nowrap", ""):find("<td", 1, true), html)
    end
    local deep = tide._require("notebook.html").value(tide.ones(2, 5, 2, 2))
    t.is_true(deep:find("[2, 1, :, :]", 1, true) and deep:find("… 4 more slices", 1, true), deep)
    t.eq(tide._require("notebook.html").value(tide.tensor(3)), nil)
    t.eq(tide._require("notebook.html").value(tide.zeros(0, 3)), nil)
end)

t.test("tensors_as_html_show_numbers_as_the_terminal_does", function()
    local function numbers(x) return tide._require("notebook.html").value(x):gsub("<thead.-</thead>", ""):gsub("<th>.-</th>", ""):gsub("<[^>]*>", " ") end
    for seed = 1, 30 do
        tide.manual_seed(seed)
        t.is_true(not numbers(tide.rand(1000, 1000)):find("%de[-+]"), "rand")
        t.is_true(not numbers(tide.randn(1000, 1000)):find("%de[-+]"), "randn")
    end
    t.is_true(numbers(tide.tensor { 1e-5, 1, 3 }):find("1.0000e-05", 1, true))
    local _ <close> = setmetatable({}, { __close = function() tide.set_printoptions("default") end })
    tide.set_printoptions { precision = 2 }
    t.is_true(numbers(tide.tensor { 0.125, 1 }):find("0.12 ", 1, true), "the digits that are asked for")
end)

t.test("statistics_and_colours_come_on_demand", function()
    local x = tide.tensor { { -1, 1 }, { 0 / 0, math.huge } }
    local plain = shown(function() tide.display.tensor(x) end)
    local rich = shown(function() tide.display.tensor(x, { stats = true, heatmap = true }) end)
    t.is_false(plain["text/html"]:find("rgba", 1, true) or plain["text/html"]:find("mean", 1, true))
    t.is_true(rich["text/html"]:find("203,24,29", 1, true) and rich["text/html"]:find("mean <b>0</b>", 1, true))
    t.is_true(rich["text/plain"]:find("min -1  max 1  mean 0", 1, true) and rich["text/plain"]:find("nan 1  infinite 1", 1, true))
end)

t.test("any_tensor_has_statistics", function()
    for _, x in ipairs { tide.tensor(3.5), tide.zeros(0, 3), tide.tensor { true, false }, tide.full({ 2, 2 }, 0 / 0), tide.eye(3):to_sparse(),
        tide.ones(2, 2, 2, 2), tide.tensor({ 1, 2 }, { dtype = tide.float16, requires_grad = true }) } do
        local bundle = shown(function() tide.display.tensor(x, { stats = true, heatmap = true }) end)
        t.is_true(bundle["text/plain"]:find("elements " .. x:numel(), 1, true), bundle["text/plain"])
    end
end)

t.test("texts_in_html_are_escaped", function()
    local text = tide._require("notebook.html").value { ["<script>"] = { "</code><script>" }, x = tide.ones(1) }
    t.is_false(text:find("<script>", 1, true), text)
    t.is_true(text:find("&lt;script&gt;", 1, true))
    t.is_true(utf8.len(tide._require("notebook.html").escape("\xff\0ä")))
end)

t.test("modules_and_tables_fold", function()
    local model = tide.nn.Sequential { tide.nn.Linear(2, 3), tide.nn.Sequential { tide.nn.ReLU() } }
    local text = tide._require("notebook.html").value(model)
    t.is_true(text:find("<details open", 1, true) and text:find("9 parameters", 1, true), text)
    t.is_true(text:find("Linear(in_features=2", 1, true))
    local t1 = { a = { b = { 1 } } }
    t1.a.me = t1
    t.is_true(tide._require("notebook.html").value(t1):find("<i>itself</i>", 1, true))
    t.eq(tide._require("notebook.html").value { 1, 2, 3 }, nil)
    t.eq(tide._require("notebook.html").value(setmetatable({ { 1 } }, { __tostring = function() return "own" end })), nil)
    local many = {}
    for k = 1, 300 do many[k] = { k } end
    t.is_true(tide._require("notebook.html").value(many):find("… 200 more", 1, true))
end)

-- Lua's library as Tide's modules see it, whatever a script does to its own.
local function library_of(fn)
    for k = 1, 255 do
        local name, value = debug.getupvalue(fn, k)
        if name == "_ENV" then
            return value
        end
    end
end

-- What fn gives under a front end of this kind, with the environment of a terminal.
local function under(frontend, environment, fn)
    local before, system = tide._frontend, library_of(tide._require("plot.pixels").text).os
    local getenv = system.getenv
    tide._frontend = function() return frontend end
    system.getenv = function(name) return environment[name] end
    local ok, result = pcall(fn)
    tide._frontend, system.getenv = before, getenv
    return ok and result or error(result, 0)
end

t.test("a_terminal_gets_pictures_as_it_takes_them", function()
    local x = tide._require("plot.pixels").of(tide.tensor { { 1.0, 0.0 }, { 0.0, 1.0 } }, "png")
    local function text() return tide._require("plot.pixels").text(x) end
    t.eq(under({ color = false, width = 80 }, {}, text), "▒▒")
    t.eq(under({ color = true, width = 80, notebook = true }, { TERM = "xterm-kitty" }, text), "▒▒")
    t.eq(under({ color = true, width = 80 }, { TERM = "xterm" }, text),
        "\27[38;2;255;255;255;48;2;0;0;0m▀\27[38;2;0;0;0;48;2;255;255;255m▀\27[0m")
    local kitty = under({ color = true, width = 80 }, { TERM = "xterm-kitty" }, text)
    t.eq(unbase64(kitty:match("^\27_Ga=T,f=100,c=%d+,m=0;(.*)\27\\$")):sub(1, 4), "\137PNG")
    local large = tide._require("plot.pixels").of(tide.rand(300, 300), "png")
    for _, width in ipairs { 20, 80, 300 } do
        local lines = under({ color = false, width = width }, {}, function() return tide._require("plot.pixels").text(large) end)
        for line in lines:gmatch("[^\n]+") do
            t.is_true(utf8.len(line) <= width)
        end
    end
end)

t.test("series_have_colours_where_the_terminal_has", function()
    local p = tide.plot.line({ { 1, 2 }, { 2, 1 } })
    local function text() return tostring(p) end
    t.is_true(under({ color = true, width = 80 }, {}, text):find("\27[38;5;208m", 1, true))
    t.is_false(under({ color = true, width = 80, notebook = true }, {}, text):find("\27", 1, true))
    for _, width in ipairs { 5, 20, 40, 400 } do
        for line in under({ color = false, width = width }, {}, text):gmatch("[^\n]+") do
            t.is_true(utf8.len(line) <= math.max(20, math.min(width, 100)), line)
        end
    end
end)

t.test("values_that_cost_much_to_show_are_shown_in_part", function()
    local t1 = {}
    for k = 1, 50000 do t1[k] = { k } end
    t.is_true(tide._require("notebook.html").value(t1):find("… 49900 more", 1, true))
    t.eq(tide._require("notebook.html").value(tide.eye(4):to_sparse()), nil)
    t.is_true(#tide._require("notebook.html").value(tide.zeros(4000, 4000)) < 100000)
end)

t.test("pixels_of_tensors_are_enlarged_without_smoothing", function()
    local x = tide.tensor({ { 0, 255 } }, { dtype = tide.uint8 })
    local shown
    local show = tide._show_value
    tide._show_value = function(_, value) shown = value end
    local ok, problem = pcall(tide.display.png, x, { scale = 3 })
    tide._show_value = show
    t.is_true(ok, problem)
    local large = tide.tensor({ { 0, 0, 0, 255, 255, 255 }, { 0, 0, 0, 255, 255, 255 }, { 0, 0, 0, 255, 255, 255 } }, { dtype = tide.uint8 })
    t.eq(shown:__display()["image/png"], tide._base64(tide._png(large:unsqueeze(3):contiguous())))
    t.error_has(function() tide.display.png("\137PNG\r\n\26\n", { scale = 2 }) end, "option scale is for tensors")
end)

t.test("json_that_is_read_is_written_as_it_was", function()
    local json = tide._require "files.json"
    for _, text in ipairs { "[]", "{}", '{"a":[],"b":{},"c":[[],{}],"d":null,"e":[1,"x",true]}', "[[[]]]" } do
        t.eq(json.encode(json.decode(text), "test"), text)
    end
end)

t.test("a_loop_goes_along_a_bar", function()
    local seen, printed = {}, {}
    local before = print
    print = function(text) printed[#printed + 1] = text end
    local ok, message = pcall(function()
        for k in tide.progress(3) do
            seen[#seen + 1] = k
        end
        for _ in tide.progress(0) do
            error("no step")
        end
    end)
    print = before
    t.is_true(ok, message)
    t.eq(seen, { 1, 2, 3 })
    t.is_true(#printed == 0 or printed[1]:find("3/3", 1, true), printed[1]) -- a terminal has a bar of its own
end)
