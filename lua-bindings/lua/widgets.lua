-- widgets.lua: tide.widgets: controls in a notebook's page. Each is a model of ipywidgets, in version 2 of its protocol:
-- its state lives here and there, and either side tells the other what changes. In a terminal a widget is a value that
-- nobody moves.
local tide = ...
local fail, declare = tide._fail, tide._function
local json, comm = tide._require "files.json", tide.comm
local null, list = json.null, json.list
local widgets = {}

local PROTOCOL = "2.1.0"
local CONTROLS, BASE, OUTPUT = "@jupyter-widgets/controls", "@jupyter-widgets/base", "@jupyter-widgets/output"

local models = {} -- those in the page, by id

-- ---- bytes in a state travel beside it ----

local Bytes = { __name = "bytes" }

local function bytes(text) return setmetatable({ text = text }, Bytes) end

-- The state without its bytes, where they belong, and they.
local function split(state)
    local plain, paths, buffers = {}, list {}, {}
    for name, value in pairs(state) do
        if getmetatable(value) == Bytes then
            paths[#paths + 1] = list { name }
            buffers[#buffers + 1] = value.text
        else
            plain[name] = value
        end
    end
    return plain, paths, buffers
end

-- ---- models ----

local function open_model(state)
    local plain, paths, buffers = split(state)
    local link = comm.open("jupyter.widget", { state = plain, buffer_paths = paths },
        { metadata = { version = PROTOCOL }, buffers = buffers })
    models[link.id] = { comm = link, state = state }
    return link
end

-- A model that only says how another looks.
local function open_part(module, version, name, view, fields)
    local state = { _model_module = module, _model_module_version = version, _model_name = name .. "Model", _view_module = BASE,
        _view_module_version = "2.0.0", _view_name = view, _view_count = null }
    for key, value in pairs(fields or {}) do
        state[key] = value
    end
    return "IPY_MODEL_" .. open_model(state).id
end

local Widget = { __name = "Widget" }
tide._class("Widget", Widget)

local function class_of(self) return rawget(self, "_class") end

-- The trait of a class by its name.
local function trait_of(self, name) return class_of(self).traits[name] end

-- Tells the page of these fields.
local function push(self, fields)
    local link = rawget(self, "_comm")
    if not link or link.closed then
        return
    end
    local state = {}
    for _, name in ipairs(fields) do
        local wire, value = class_of(self).to_wire(self, name)
        state[wire] = value
        models[link.id].state[wire] = value
    end
    local plain, paths, buffers = split(state)
    link:send({ method = "update", state = plain, buffer_paths = paths }, { buffers = buffers })
end

local function notify(self, name, old)
    local new = rawget(self, "_values")[name]
    if rawequal(old, new) or type(old) ~= "userdata" and old == new then
        return
    end
    -- a copy: observers may be added and the widget closed meanwhile
    for _, observer in ipairs({ table.unpack(rawget(self, "_observers")) }) do
        if observer.name == name then
            observer.fn({ name = name, old = old, new = new, owner = self })
        end
    end
end

-- ---- values of traits ----

local checks = {}

function checks.int(v) return math.tointeger(v), "an integer" end

function checks.float(v)
    return type(v) == "number" and v == v and math.abs(v) < math.huge and v + 0.0 or nil, "a finite number"
end

function checks.str(v) return type(v) == "string" and utf8.len(v) and v or nil, "a text" end

function checks.bytes(v)
    if tide.is_tensor(v) then
        v = tide._png(tide._require("plot.pixels").of(v, "Image"))
    end
    return type(v) == "string" and v or nil, "bytes or a tensor"
end

function checks.children(v)
    local copy = {}
    for k, child in ipairs(type(v) == "table" and getmetatable(v) == nil and v or {}) do
        if getmetatable(child) ~= Widget then
            return nil, string.format("widgets, of which number %d is %s", k, tide._describe(child))
        end
        copy[k] = child
    end
    return type(v) == "table" and getmetatable(v) == nil and copy or nil, "a list of widgets"
end

-- {label, value} of each option: texts, numbers and booleans are their own labels.
function checks.options(v)
    local options = {}
    if type(v) ~= "table" or getmetatable(v) ~= nil then
        return nil, "a list"
    end
    for k, option in ipairs(v) do
        local pair = type(option) == "table" and getmetatable(option) == nil and #option == 2
        local label = pair and option[1] or tostring(option)
        if type(label) ~= "string" or not utf8.len(label) then
            return nil, string.format("options that are texts, of which number %d is %s", k, tide._describe(label))
        end
        options[k] = { label, pair and option[2] or option }
        if pair and option[2] == nil then
            options[k][2] = label
        end
    end
    return options
end

-- Is a widget among these, or within them?
local function holds(children, self)
    for _, child in ipairs(children) do
        if rawequal(child, self) or holds(rawget(child, "_values").children or {}, self) then
            return true
        end
    end
    return false
end

local function check(self, name, value)
    local trait = trait_of(self, name)
    if trait.kind == "bool" then
        if type(value) ~= "boolean" then
            fail("%s: %s: expected true or false, got %s", class_of(self).name, name, tide._describe(value))
        end
        return value
    elseif trait.kind == "any" then
        return value
    end
    local checked, expected = checks[trait.kind](value)
    if checked == nil then
        fail("%s: %s: expected %s, got %s", class_of(self).name, name, expected, tide._describe(value))
    elseif trait.kind == "children" and holds(checked, self) then
        fail("%s: children: a widget can't be within itself", class_of(self).name)
    end
    return checked
end

-- Within its limits, where a class has them.
local function coerce(self, values)
    if class_of(self).limited then
        if values.min > values.max then
            fail("%s: expected min <= max, got %s and %s", class_of(self).name, tide._number(values.min), tide._number(values.max))
        end
        local low, high = values.min, values.max
        if class_of(self).exponents then
            low, high = values.base ^ low, values.base ^ high
        end
        values.value = math.max(low, math.min(high, values.value))
    end
end

-- ---- widgets as values ----

function Widget:__index(name)
    local values = rawget(self, "_values")
    if Widget[name] ~= nil and type(name) == "string" and string.sub(name, 1, 1) ~= "_" then
        return Widget[name]
    elseif class_of(self).methods[name] then
        return class_of(self).methods[name]
    elseif class_of(self).get and class_of(self).get[name] then
        return class_of(self).get[name](self)
    elseif class_of(self).traits[name] then
        return values[name]
    end
    fail("%s has no field '%s'", class_of(self).name, tostring(name))
end

local function assign(self, name, value)
    local values = rawget(self, "_values")
    local before, after = values[name], {}
    for key, v in pairs(values) do
        after[key] = v
    end
    after[name] = check(self, name, value)
    coerce(self, after)
    local old_value = values.value
    rawset(self, "_values", after)
    push(self, name ~= "value" and class_of(self).limited and after.value ~= old_value and { name, "value" } or { name })
    notify(self, name, before)
    if name ~= "value" then
        notify(self, "value", old_value)
    end
end

function Widget:__newindex(name, value)
    if class_of(self).set and class_of(self).set[name] then
        return class_of(self).set[name](self, value)
    elseif not class_of(self).traits[name] then
        fail("%s has no field '%s'", class_of(self).name, tostring(name))
    end
    assign(self, name, value)
end

function Widget:__tostring()
    local parts = {}
    for _, name in ipairs { "description", "value", "min", "max", "index" } do
        local value = rawget(self, "_values")[name]
        if type(value) == "string" and value ~= "" and #value < 60 then
            parts[#parts + 1] = string.format("%s=%q", name, value)
        elseif type(value) == "number" or type(value) == "boolean" then
            parts[#parts + 1] = name .. "=" .. (type(value) == "number" and tide._number(value) or tostring(value))
        end
    end
    if trait_of(self, "children") then
        for _, child in ipairs(self.children) do
            parts[#parts + 1] = tostring(child)
        end
    end
    return string.format("%s(%s)", class_of(self).name, table.concat(parts, ", "))
end

function Widget:__display()
    local link, bundle = rawget(self, "_comm"), { ["text/plain"] = tostring(self) }
    if link and not link.closed then
        bundle["application/vnd.jupyter.widget-view+json"] = { version_major = 2, version_minor = 0, model_id = link.id }
    end
    return bundle
end

local function method(name, parameters, doc, fn) Widget[name] = declare(string.format("%s(Widget self%s", name, parameters), doc, fn) end

method("observe", ', function fn, str name="value")',
    "fn{name, old, new, owner} is called when a field has changed, by the page or by an assignment. "
    .. "Example: tide.widgets.IntSlider(3):observe(function(change) print(change.new) end)",
    function(self, fn, name)
        if not trait_of(self, name) then
            fail("observe: %s has no field '%s'", class_of(self).name, name)
        end
        table.insert(rawget(self, "_observers"), { fn = fn, name = name })
    end)

method("unobserve", ", function? fn=nil)", "fn, or nobody, is called any more. Example: tide.widgets.IntSlider(3):unobserve()",
    function(self, fn)
        local kept = {}
        for _, observer in ipairs(rawget(self, "_observers")) do
            kept[#kept + 1] = fn and observer.fn ~= fn and observer or nil
        end
        rawset(self, "_observers", kept)
    end)

method("close", ")", "Take it off the page; it stays a value. Example: tide.widgets.Text('x'):close()",
    function(self)
        local link = rawget(self, "_comm")
        if link and not link.closed then
            models[link.id] = nil
            link:close()
        end
    end)

-- ---- what the page says ----

local function bytes_at(state, paths, buffers)
    for k, path in ipairs(paths or {}) do
        if #path == 1 then
            state[path[1]] = buffers[k]
        end
    end
end

local function receive_update(self, data, buffers)
    local state = type(data.state) == "table" and data.state or {}
    bytes_at(state, data.buffer_paths, buffers)
    local values, old, names = rawget(self, "_values"), {}, {}
    for wire, value in pairs(state) do
        local name, checked = class_of(self).from_wire(self, wire, value)
        if name and not rawequal(checked, nil) then
            names[#names + 1], old[name] = name, values[name]
            values[name] = checked
            models[rawget(self, "_comm").id].state[wire] = value
        end
    end
    if type(state.outputs) == "table" and models[rawget(self, "_comm").id].state.outputs then -- what an Output shows
        models[rawget(self, "_comm").id].state.outputs = state.outputs
    end
    table.sort(names)
    for _, name in ipairs(names) do
        notify(self, name, old[name])
    end
end

local function receive(self, data, buffers)
    if type(data) ~= "table" then
        return
    elseif data.method == "update" then
        receive_update(self, data, buffers)
    elseif data.method == "request_state" then
        local link = rawget(self, "_comm")
        local plain, paths, bytes_of = split(models[link.id].state)
        link:send({ method = "update", state = plain, buffer_paths = paths }, { buffers = bytes_of })
    elseif data.method == "custom" and type(data.content) == "table" then
        for _, fn in ipairs({ table.unpack(rawget(self, "_handlers")[data.content.event] or {}) }) do
            fn(self)
        end
    end
end

-- ---- classes ----

local function wire_value(self, name)
    local value = rawget(self, "_values")[name]
    local kind = trait_of(self, name).kind
    if kind == "children" then
        local references = list {}
        for k, child in ipairs(value) do
            references[k] = "IPY_MODEL_" .. rawget(child, "_comm").id
        end
        return name, references
    elseif kind == "bytes" then
        return name, bytes(value)
    end
    return name, value == nil and null or value
end

local function from_wire(self, wire, value)
    local trait = class_of(self).traits[wire]
    if trait and trait.kind ~= "children" then
        return wire, check(self, wire, value)
    end
end

local function open_widget(self, layout)
    local class = class_of(self)
    local state = { _dom_classes = list {}, _model_module = class.module, _model_module_version = class.version,
        _model_name = class.name .. "Model", _view_module = class.module, _view_module_version = class.version,
        _view_name = class.name .. "View", _view_count = null, tabbable = null, tooltip = null }
    state.layout = open_part(BASE, "2.0.0", "Layout", "LayoutView", layout)
    if class.style then
        state.style = open_part(CONTROLS, "2.0.0", class.style, "StyleView")
    end
    for name, value in pairs(class.fixed or {}) do
        state[name] = value
    end
    for name in pairs(class.traits) do
        local wire, value = class.to_wire(self, name)
        state[wire] = value
    end
    local link = open_model(state)
    rawset(self, "_comm", link)
    link:on_message(function(data, buffers) receive(self, data, buffers) end)
    link:on_close(function() models[link.id] = nil end)
end

-- A class of widgets. traits: {name, type of the schema, default, kind}, in the order of the arguments.
local function define(name, spec)
    local parameters, traits, names = {}, {}, {}
    for k, trait in ipairs(spec.traits) do
        if k == (spec.positional or 1) + 1 then
            parameters[k] = "*, "
        end
        parameters[k] = (parameters[k] or "") .. trait[2] .. " " .. trait[1] .. (trait[3] and "=" .. trait[3] or "")
        traits[trait[1]], names[k] = { kind = trait[4] }, trait[1]
    end
    local class = { name = name, traits = traits, module = spec.module or CONTROLS, version = spec.version or "2.0.0",
        style = spec.style, fixed = spec.fixed, methods = spec.methods or {}, limited = spec.limited, exponents = spec.exponents,
        to_wire = spec.to_wire or wire_value, from_wire = spec.from_wire or from_wire, get = spec.get, set = spec.set }
    local schema = string.format("%s(%s, table? layout=nil) -> Widget", name, table.concat(parameters, ", "))
    widgets[name] = declare(schema, spec.doc, function(...)
        local self = setmetatable({ _class = class, _values = {}, _observers = {}, _handlers = {} }, Widget)
        local values, given = rawget(self, "_values"), table.pack(...)
        for k, trait in ipairs(names) do
            local value = given[k]
            if value == nil and spec.defaults then
                value = spec.defaults[trait]
            end
            if value ~= nil then
                values[trait] = check(self, trait, value)
            end
        end
        if spec.init then
            spec.init(self, values)
        end
        coerce(self, values)
        if comm.available() then
            open_widget(self, given[#names + 1])
        end
        return self
    end)
end

local DESCRIPTION = { "description", "str", '""', "str" }
local DISABLED = { "disabled", "bool", "false", "bool" }
local CONTINUOUS = { "continuous_update", "bool", "true", "bool" }
local SLIDER = { orientation = "horizontal", readout = true, behavior = "drag-tap", description_allow_html = false }

local function slider_of(format)
    local fixed = { readout_format = format }
    for name, value in pairs(SLIDER) do
        fixed[name] = value
    end
    return fixed
end

define("IntSlider", { style = "SliderStyle", fixed = slider_of "d", limited = true,
    traits = { { "value", "int", "0", "int" }, { "min", "int", "0", "int" }, { "max", "int", "100", "int" },
        { "step", "int(1..)", "1", "int" }, DESCRIPTION, DISABLED, CONTINUOUS },
    doc = "A slider over integers. Example: tide.widgets.IntSlider(3, {min = 1, max = 10, description = 'layers'})" })

define("FloatSlider", { style = "SliderStyle", fixed = slider_of ".3g", limited = true,
    traits = { { "value", "float", "0", "float" }, { "min", "float", "0", "float" }, { "max", "float", "10", "float" },
        { "step", "float", "0.1", "float" }, DESCRIPTION, DISABLED, CONTINUOUS },
    doc = "A slider over numbers. Example: tide.widgets.FloatSlider(0.5, {max = 1, step = 0.01, description = 'p'})" })

define("FloatLogSlider", { style = "SliderStyle", fixed = slider_of ".3g", limited = true, exponents = true,
    traits = { { "value", "float", "1", "float" }, { "min", "float", "0", "float" }, { "max", "float", "4", "float" },
        { "step", "float", "0.1", "float" }, { "base", "float", "10", "float" }, DESCRIPTION, DISABLED, CONTINUOUS },
    doc = "A slider over powers: min, max and step are exponents of base. "
        .. "Example: tide.widgets.FloatLogSlider(0.01, {min = -5, max = 0, description = 'lr'})" })

define("Checkbox", { style = "CheckboxStyle", fixed = { indent = true, description_allow_html = false },
    traits = { { "value", "bool", "false", "bool" }, DESCRIPTION, DISABLED },
    doc = "A box to tick. Example: tide.widgets.Checkbox(true, {description = 'bias'})" })

-- Adds a function to those that are called at an event of the page.
local function on(event)
    return function(self, fn)
        if type(fn) ~= "function" then
            fail("on_%s: expected a function, got %s", event, tide._describe(fn))
        end
        local handlers = rawget(self, "_handlers")
        handlers[event] = handlers[event] or {}
        table.insert(handlers[event], fn)
    end
end

define("Text", { style = "TextStyle", fixed = { description_allow_html = false },
    traits = { { "value", "str", '""', "str" }, { "placeholder", "str", '""', "str" }, DESCRIPTION, DISABLED, CONTINUOUS },
    methods = { on_submit = on "submit" },
    doc = "A line of text; w:on_submit(fn) hears of Enter. Example: tide.widgets.Text('hello', {description = 'name'})" })

define("Button", { style = "ButtonStyle", fixed = { icon = "" },
    traits = { DESCRIPTION, { "button_style", '""|"primary"|"success"|"info"|"warning"|"danger"', '""', "str" }, DISABLED },
    methods = { on_click = on "click" },
    doc = "A button; w:on_click(fn) hears of it. Example: tide.widgets.Button('train'):on_click(function() print('go') end)" })

define("Label", { style = "LabelStyle", fixed = { description = "", description_allow_html = false, placeholder = "\u{200b}" },
    traits = { { "value", "str", '""', "str" } },
    doc = "A text. Example: tide.widgets.Label('ready')" })

define("Image", { fixed = { format = "png", width = "", height = "" },
    traits = { { "value", "any", "nil", "bytes" } }, defaults = { value = "" },
    doc = "A picture that can be replaced: a tensor, or the bytes of a PNG file. Example: tide.widgets.Image(tide.rand(8, 8))" })

for _, name in ipairs { "HBox", "VBox" } do
    define(name, { fixed = { box_style = "" }, traits = { { "children", "list", "nil", "children" } }, defaults = { children = {} },
        doc = string.format(("Widgets %s. Example: tide.widgets.%s({tide.widgets.Label('a'), tide.widgets.Label('b')})")
            , name == "HBox" and "side by side" or "below one another", name) })
end

tide._require("notebook.choice") { define = define, push = push, notify = notify, check = check, description = DESCRIPTION, disabled = DISABLED }

-- ---- output ----

-- What an error says, and where it was raised.
local function trace(problem)
    local text = type(problem) == "string" and problem or tostring(problem)
    return (string.gsub(string.gsub(debug.traceback(text, 2), "\n%s*%[C%]: in [^\n]*", ""), "\n%s*tide%.%w+:[^\n]*", ""))
end

-- While a cell runs its output is gathered and is the widget's state.
local function gather(self)
    local link = rawget(self, "_comm")
    tide._output_gather(link.id, json.encode(models[link.id] and models[link.id].state.outputs or list {}, "capture"))
    return function()
        local outputs = tide._output_gather()
        if outputs and models[link.id] then
            models[link.id].state.outputs = json.decode(outputs)
        end
    end
end

-- In a callback the page takes what belongs to its own message.
local function take_message(self, own, before)
    self.msg_id = json.decode(own).msg_id or ""
    return function()
        self.msg_id = ""
        tide._output_parent(before or false)
    end
end

-- fn runs while what is printed and displayed goes into the widget, an error too.
local function capture(self, fn, ...)
    if not rawget(self, "_comm") then
        return fn(...)
    end
    local before = tide._output_parent()
    tide._output_parent(false)
    local own = tide._output_parent()
    local restore = own and own ~= before and take_message(self, own, before) or gather(self)
    local guard <close> = setmetatable({}, { __close = restore })
    local results = table.pack(xpcall(fn, trace, ...))
    if not results[1] then
        io.stderr:write(tostring(results[2]), "\n")
        return nil
    end
    return table.unpack(results, 2, results.n)
end

define("Output", { module = OUTPUT, version = "1.0.0", fixed = { outputs = list {} },
    traits = { { "msg_id", "str", '""', "str" } },
    methods = {
        capture = declare("capture(Widget self, function fn, ...) -> any",
            "fn(...), whose output and errors go into the widget. Example: tide.widgets.Output():capture(print, 'here')",
            function(self, fn, ...) return capture(self, fn, ...) end),
        clear = declare("clear(Widget self)", "Empty it. Example: tide.widgets.Output():clear()",
            function(self) capture(self, function() tide.clear_output() end) end),
    },
    doc = "A place for output: w:capture(fn, ...) runs fn and shows there what it prints, displays and raises. "
        .. "Example: tide.widgets.Output():capture(print, 'here')" })

-- ---- pages that come later ask for all there is ----

comm.register_target("jupyter.widget.control", function(control)
    control:on_message(function(data)
        if type(data) ~= "table" or data.method ~= "request_states" then
            return
        end
        local states, paths, buffers = {}, list {}, {}
        for id, model in pairs(models) do
            local plain, places, given = split(model.state)
            states[id] = { model_name = plain._model_name, model_module = plain._model_module,
                model_module_version = plain._model_module_version, state = plain }
            for k, place in ipairs(places) do
                paths[#paths + 1] = list { id, "state", place[1] }
                buffers[#buffers + 1] = given[k]
            end
        end
        control:send({ method = "update_states", states = states, buffer_paths = paths }, { buffers = buffers })
    end)
end)

function widgets._is_widget(value) return type(value) == "table" and getmetatable(value) == Widget end

tide._document(widgets, "widgets", "tide.widgets", "Controls in a notebook: IntSlider, FloatSlider, FloatLogSlider, Dropdown, "
    .. "Checkbox, Button, Text, Label, Image, Output, HBox, VBox.")

return widgets
