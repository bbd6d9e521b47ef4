-- display.lua: tide.display: values, and texts, pictures and data of a kind that front ends know, shown where an
-- input's value is shown. A terminal shows the text that goes along with each.
local tide = ...
local fail, declare = tide._fail, tide._function
local mime, html, pixels = tide._require "notebook.mime", tide._require "notebook.html", tide._require "plot.pixels"
local wav = tide._require "files.wav"

-- What is shown: its representations by type.
local Rich = { __name = "tide.display" }
Rich.__index = Rich
function Rich:__display() return self.bundle end
function Rich:__tostring() return self.bundle["text/plain"] end

-- Without a session there is only the text.
local function show_plain(value)
    print(tostring(value))
end

local function show(bundle, options)
    local value = setmetatable({ bundle = bundle }, Rich)
    if options.update and not options.id then
        fail("%s: update needs the id of a display", options.name)
    elseif not tide._show_value then
        return show_plain(value)
    end
    tide._show_value(nil, value, { id = options.id, update = options.update })
end

local display = setmetatable({}, { __name = "tide.display", __call = tide._show_value or function(_, value) show_plain(value) end })

-- A function of tide.display: `parameters` and the options that all of them have.
local function method(name, parameters, doc, fn)
    local schema = string.format("%s(%s, str? id=nil, bool update=false, table? metadata=nil)", name, parameters)
    local names
    display[name] = declare(schema, doc, function(...)
        local options = { name = name }
        for k, parameter in ipairs(names) do
            options[parameter] = (select(k, ...))
        end
        local bundle = fn(options)
        bundle.metadata = bundle.metadata or options.metadata
        show(bundle, options)
    end)
    names = tide._doc(display[name]).params
end

-- What of a type is shown; data that is wrong is refused.
local function checked(options, type_name, data)
    local value, problem = mime.data(type_name, data)
    if not value then
        fail("%s: %s %s", options.name, type_name, problem)
    end
    return value
end

-- ---- texts ----

local named = { lt = "<", gt = ">", amp = "&", quot = '"', nbsp = " " }

-- What is left of HTML in a terminal.
local function without_tags(text)
    text = string.gsub(string.gsub(text, "<!%-%-.-%-%->", ""), "<(s%l+).->.-</%1>", function(tag)
        return (tag == "style" or tag == "script") and "" or nil
    end)
    text = string.gsub(string.gsub(string.gsub(string.gsub(text, "</t[dh]>", "  "), "</tr>", "\n"), "<br%s*/?>", "\n"), "</[pd][^>]*>", "\n")
    text = string.gsub(string.gsub(string.gsub(text, "<[/%a][^>]*>", ""), "&(%a+);", named), "&#(%d+);", function(n)
        n = tonumber(n)
        return n and n < 0x110000 and utf8.char(n) or nil
    end)
    return (string.gsub(string.gsub(string.gsub(string.gsub(text, "[ \t]+\n", "\n"), "\n\n+", "\n"), "^%s+", ""), "%s+$", ""))
end

method("html", "str html, *", "HTML; a terminal shows its text. Example: tide.display.html('<b>done</b>')",
    function(o)
        local data = checked(o, "text/html", o.html)
        return { ["text/html"] = data, ["text/plain"] = without_tags(data) }
    end)

method("markdown", "str text, *", "Markdown; a terminal shows it as it is. Example: tide.display.markdown('# Results')",
    function(o)
        local data = checked(o, "text/markdown", o.text)
        return { ["text/markdown"] = data, ["text/plain"] = data }
    end)

method("latex", "str text, *",
    "A formula in LaTeX; dollars around it may be left out. Example: tide.display.latex([[\\frac{1}{n} \\sum_i x_i^2]])",
    function(o)
        local data = checked(o, "text/latex", o.text)
        local formula = (string.find(data, "$", 1, true) or string.find(data, "\\begin", 1, true)) and data or "$$" .. data .. "$$"
        return { ["text/latex"] = formula, ["text/plain"] = data }
    end)

-- ---- pictures ----

method("svg", "str svg, *",
    "A drawing in SVG. Example: tide.display.svg('<svg width=\"9\" height=\"9\"><circle cx=\"4\" cy=\"4\" r=\"4\"/></svg>')",
    function(o)
        local data = checked(o, "image/svg+xml", o.svg)
        return { ["image/svg+xml"] = data, ["text/plain"] = string.format("<SVG image, %d bytes>", #data) }
    end)

local function read_file(name, path)
    local file, problem = io.open(path, "rb")
    local bytes = file and file:read("a")
    if file then
        file:close()
    end
    return bytes or fail("%s: %s", name, problem or "'" .. path .. "' can't be read")
end

local function given(o)
    if (o.data ~= nil) == (o.path ~= nil) then
        fail("%s: expected data or a path, got %s", o.name, o.data ~= nil and "both" or "neither")
    end
    return o.path and read_file(o.name, o.path) or o.data
end

local function sized(o, type_name)
    if not (o.width or o.height) then
        return o.metadata
    end
    local all = {}
    for key, value in pairs(o.metadata or {}) do
        all[key] = value
    end
    all[type_name] = { width = o.width, height = o.height }
    return all
end

method("png", "any data=nil, *, str? path=nil, int(1..1000)? scale=nil, int(1..)? width=nil, int(1..)? height=nil",
    "An image: the bytes of a PNG file, a path to one, or a tensor (height, width), (channels, height, width) or a batch "
    .. "of them, of bytes or of floats from 0 to 1; scale makes each pixel of a tensor so large, without smoothing, width and height "
    .. "are pixels on the screen. Example: tide.display.png(tide.rand(3, 8, 8), {scale = 10})",
    function(o)
        local data, text = given(o)
        if tide.is_tensor(data) then
            local picture = pixels.enlarge(pixels.of(data, "png"), o.scale or 1)
            data, text = tide._png(picture), pixels.text(picture)
        elseif o.scale then
            fail("png: option scale is for tensors: width and height say how large a file is shown")
        elseif type(data) ~= "string" then
            fail("png: argument 1 (data): expected the bytes of a PNG file or a tensor, got %s", tide._describe(data))
        end
        local encoded = checked(o, "image/png", data)
        if not text then
            local whole = string.sub(data, 1, 1) == "\137" and #data >= 24
            text = whole and string.format("<PNG image %d x %d>", string.unpack(">I4I4", data, 17)) or "<PNG image>"
        end
        return { ["image/png"] = encoded, ["text/plain"] = text, metadata = sized(o, "image/png") }
    end)

method("jpeg", "any data=nil, *, str? path=nil, int(1..)? width=nil, int(1..)? height=nil",
    "A photograph: the bytes of a JPEG file, or a path to one. Example: pcall(tide.display.jpeg, {path = 'cat.jpg'})",
    function(o)
        local data = given(o)
        local encoded = checked(o, "image/jpeg", data)
        return { ["image/jpeg"] = encoded, ["text/plain"] = string.format("<JPEG image, %d bytes>", #data),
            metadata = sized(o, "image/jpeg") }
    end)

method("tensor", "Tensor x, *, bool stats=false, bool heatmap=false",
    "A tensor as a table, with statistics of all elements and with cells coloured by their values on demand. "
    .. "Example: tide.display.tensor(tide.randn(3, 4), {stats = true, heatmap = true})",
    function(o)
        local text = tostring(o.x)
        if o.stats then
            text = text .. "\n" .. html.statistics(o.x)
        end
        if o.heatmap and o.x:dim() == 2 and o.x:numel() > 0 then
            text = text .. "\n" .. tide.plot._heatmap_text(o.x)
        end
        return { ["text/html"] = html.tensor(o.x, o), ["text/plain"] = text }
    end)

-- ---- sound ----

method("audio", "any data=nil, int(1..)? rate=nil, *, str? path=nil, bool normalize=true, bool autoplay=false",
    "Sound to play: a tensor (frames) or (channels, frames) and how many frames a second has, the bytes of a WAV file, or a path to one. A "
    .. "tensor is made as loud as it can be, or (normalize = false) is from -1 to 1. autoplay: it begins by itself. "
    .. "Example: tide.display.audio((tide.arange(8000) * 0.3):sin(), 8000)",
    function(o)
        local data, text = given(o), "<sound>"
        if tide.is_tensor(data) then
            if not o.rate then
                fail("audio: argument 2 (rate): how many frames a second has")
            end
            if o.normalize and data:is_floating_point() and data:numel() > 0 then
                local loudest = data:detach():abs():max():item()
                data = loudest > 0 and loudest < math.huge and data:detach() / loudest or data
            end
            text = string.format("<sound, %.2f s>", data:dim() > 0 and data:size(-1) / o.rate or 0)
            data = wav.bytes("audio", data, o.rate)
        elseif type(data) ~= "string" then
            fail("audio: argument 1 (data): expected a tensor or the bytes of a WAV file, got %s", tide._describe(data))
        elseif not wav.match(data) then
            fail("audio: %s is no WAV file", o.path and "'" .. o.path .. "'" or "argument 1 (data)")
        end
        return { ["text/plain"] = text, ["text/html"] = string.format('<audio controls%s src="data:audio/wav;base64,%s"></audio>',
            o.autoplay and " autoplay" or "", tide._base64(data)) }
    end)

-- ---- data ----

-- Functions whose first argument may be any table: it is never taken for options.
local function data_method(name, what, options, doc, fn)
    local all = string.format("*, %sstr? id=nil, bool update=false, table? metadata=nil", options)
    local read = declare(string.format("%s(%s)", name, all), doc)
    display[name] = function(value, settings, ...)
        if value == nil then
            fail("%s: argument 1 (%s): expected a value, got nothing", name, what)
        elseif settings ~= nil and type(settings) ~= "table" or select("#", ...) > 0 then
            fail("%s: options go in a table: {id = 'name'}", name)
        end
        local o = read(settings)
        o.name = name
        local bundle = fn(value, o)
        bundle.metadata = bundle.metadata or o.metadata
        show(bundle, o)
    end
    tide._document(display[name], name, string.format("%s(any %s, {%s})", name, what, string.sub(all, 4)), doc)
end

data_method("json", "value", "bool expanded=false, ",
    "A value, or the text of one, as JSON that folds. Example: tide.display.json({lr = 0.1, steps = {1, 2}})",
    function(value, o)
        local data = checked(o, "application/json", value)
        return { ["application/json"] = data, ["text/plain"] = data,
            metadata = o.metadata or { ["application/json"] = { expanded = o.expanded } } }
    end)

local VEGA = { ["vega-lite"] = "application/vnd.vegalite.v%s+json", vega = "application/vnd.vega.v%s+json" }

-- The type that a specification's "$schema" names.
local function vega_type(value, name)
    local schema = type(value) == "table" and value["$schema"]
        or type(value) == "string" and string.match(value, '"$schema"%s*:%s*"([^"]*)"')
    local kind, version = string.match(tostring(schema or "vega-lite/v5"), "([%w-]+)/v(%d+)")
    if not VEGA[kind] then
        fail("%s: $schema %s is neither Vega-Lite's nor Vega's", name, tostring(schema))
    end
    return string.format(VEGA[kind], version)
end

data_method("vega", "spec", "",
    "A Vega-Lite or Vega specification, as a table or as JSON. "
    .. "Example: tide.display.vega({data = {values = {{x = 1, y = 2}}}, mark = 'point', encoding = {x = {field = 'x'}}})",
    function(spec, o)
        if type(spec) ~= "table" and type(spec) ~= "string" then
            fail("vega: argument 1 (spec): expected a table or JSON, got %s", tide._describe(spec))
        end
        local type_name = vega_type(spec, "vega")
        local data = checked(o, type_name, spec)
        if string.find(data, "^%s*{") == nil then
            fail("vega: argument 1 (spec): a specification is an object")
        end
        return { [type_name] = data, ["text/plain"] = string.format("<%s specification, %d bytes>",
            string.find(type_name, "vegalite", 1, true) and "Vega-Lite" or "Vega", #data) }
    end)

data_method("bundle", "bundle", "",
    "Representations of one thing by their MIME type; the front end takes the richest that it knows. "
    .. "Example: tide.display.bundle({['text/plain'] = 'one', ['text/html'] = '<b>one</b>'})",
    function(bundle, o)
        if type(bundle) ~= "table" then
            fail("bundle: argument 1 (bundle): expected a table of MIME types, got %s", tide._describe(bundle))
        end
        local copy, n = {}, 0
        for key, value in pairs(bundle) do
            if type(key) ~= "string" or not string.find(key, "^[%w!#$&^_.+-]+/[%w!#$&^_.+-]+$") then
                fail("bundle: %s is no MIME type such as 'text/html'", tide._describe(key))
            end
            copy[key], n = checked(o, key, value), n + 1
        end
        if n == 0 then
            fail("bundle: there is nothing in it")
        end
        copy["text/plain"] = copy["text/plain"] or "<" .. next(copy) .. ">"
        return copy
    end)

tide._document(display, "display", "display(any value, {str id, bool update})",
    "Show a value as that of an input is shown; with an id it can be replaced later. display.html, svg, png, jpeg, audio, markdown, "
    .. "latex, json, vega, tensor and bundle show what they are named after. Example: tide.display({1, 2})")

return display
