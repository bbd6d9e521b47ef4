-- quantization/qconfig.lua: which observers a layer gets when a model is quantized: by the layer's name, by a pattern of
-- names, by its class, or as all others. Knows no layer of bytes: the workflow asks it for each layer.
local tide = ...
local fail = tide._fail
local nn = tide.nn
local tree = tide._require "quantization.folding"
local configs = {}

-- ---- one layer's ----

local QConfig = { __name = "QConfig" }
QConfig.__index = QConfig

function QConfig:__tostring()
    return string.format("QConfig(%s)", self.replace and "replace" or self.weight and "activation, weight" or "activation")
end

local function is_config(value) return getmetatable(value) == QConfig end

-- Is a QConfig for layers of a class, where those of some classes can't be observed? `classes`: those that its `replace` knows, nil for all.
local function serves(config, class, unobserved)
    if config.replace then
        return not config.classes or tree.has(config.classes, class)
    end
    return not tree.has(unobserved, class)
end

-- ---- a model's ----

local QConfigMapping = { __name = "QConfigMapping" }
QConfigMapping.__index = QConfigMapping

-- default_dynamic_qconfig and its kin are functions here, and values in PyTorch.
local function describe(value) return tide._describe(value) .. (type(value) == "function" and ": call it for the QConfig that it makes" or "") end

local function check_config(name, config)
    if config ~= nil and config ~= false and not is_config(config) then
        fail("%s: a QConfig expected, or nil or false for a layer that stays in floats, got %s", name, describe(config))
    end
    return config or false
end

local function check_text(name, text)
    if type(text) ~= "string" then
        fail("%s: the name of a module expected, such as 'layer1.0', got %s", name, tide._describe(text))
    end
    return text
end

function QConfigMapping:set_global(config)
    self.default = check_config("set_global", config)
    return self
end

function QConfigMapping:set_object_type(class, config)
    if type(class) ~= "table" or not class.__name then
        fail("set_object_type: a class such as tide.nn.Linear expected, got %s", tide._describe(class))
    end
    self.types[class] = check_config("set_object_type", config)
    return self
end

function QConfigMapping:set_module_name(name, config)
    self.names[check_text("set_module_name", name)] = check_config("set_module_name", config)
    return self
end

function QConfigMapping:set_module_name_regex(pattern, config)
    table.insert(self.patterns, { check_text("set_module_name_regex", pattern), check_config("set_module_name_regex", config) })
    return self
end

local function new_mapping() return setmetatable({ types = {}, names = {}, patterns = {}, default = false }, QConfigMapping) end

-- What is short for a mapping: a table {default = , [class] = , ["layer1.0"] = , patterns = {{pattern, }}}, or one QConfig.
local function mapping_of(fname, value)
    if getmetatable(value) == QConfigMapping then
        return value
    elseif is_config(value) then
        return new_mapping():set_global(value)
    elseif type(value) ~= "table" or getmetatable(value) then
        fail("%s: qconfig: a QConfig, a QConfigMapping or a table of them expected, got %s", fname, describe(value))
    end
    local mapping = new_mapping()
    for key, config in pairs(value) do
        if key == "default" then
            mapping:set_global(config)
        elseif key == "patterns" then
            for _, entry in ipairs(config) do
                mapping:set_module_name_regex(entry[1], entry[2])
            end
        elseif type(key) == "string" then
            mapping:set_module_name(key, config)
        else
            mapping:set_object_type(key, config)
        end
    end
    return mapping
end

-- ---- names that no module has ----

-- How many letters are to be changed, put in or left out to make b of a.
local function distance(a, b)
    local row = {}
    for j = 0, #b do
        row[j] = j
    end
    for i = 1, #a do
        local corner = row[0]
        row[0] = i
        for j = 1, #b do
            local above = row[j]
            local changed = corner + (string.byte(a, i) == string.byte(b, j) and 0 or 1)
            row[j] = math.min(changed, above + 1, row[j - 1] + 1)
            corner = above
        end
    end
    return row[#b]
end

local MOST_NEAR <const> = 3

local function near_names(name, names)
    local ranked = {}
    for _, known in ipairs(names) do
        if known ~= "" then
            ranked[#ranked + 1] = { distance(name, known), known }
        end
    end
    table.sort(ranked, function(a, b) return a[1] < b[1] or a[1] == b[1] and a[2] < b[2] end)
    local texts = {}
    for k = 1, math.min(MOST_NEAR, #ranked) do
        texts[k] = "'" .. ranked[k][2] .. "'"
    end
    return table.concat(texts, ", ")
end

-- Every name and pattern says something about the model.
local function check_names(fname, mapping, names)
    local known = {}
    for _, name in ipairs(names) do
        known[name] = true
    end
    for name in pairs(mapping.names) do
        if not known[name] then
            fail("%s: qconfig: the model has no module '%s'; near it: %s", fname, name, near_names(name, names))
        end
    end
    for _, entry in ipairs(mapping.patterns) do
        local found = false
        for _, name in ipairs(names) do
            found = found or string.find(name, "^" .. entry[1] .. "$") ~= nil
        end
        if not found then
            fail("%s: qconfig: no module's name is matched by '%s'; names are such as %s", fname, entry[1], near_names(entry[1], names))
        end
    end
end

-- A QConfig that is given to a layer by its name or its class, and not for it as one of many, is one that is for it.
local function check_serves(fname, mapping, name, class, unobserved)
    local config = mapping.names[name] or mapping.types[class]
    if not config or serves(config, class, unobserved) or not (tree.has(tree.LAYERS, class) or tree.has(tree.REPLACED, class)) then
        return
    elseif config.replace then
        fail("%s: qconfig: '%s' is of the class %s, which this QConfig does not replace", fname, name, class.__name)
    end
    fail("%s: qconfig: '%s' is of the class %s, which is not observed: a QConfig with replace expected, such as %s()", fname, name, class.__name,
        tree.has(tree.TABLES, class) and "float_qparams_weight_only_qconfig" or "default_dynamic_qconfig")
end

-- By the name of the module or of what it lies in, the nearest first; then by pattern; by class; else as all.
local function find(mapping, name, class)
    local path = name
    while path do
        if mapping.names[path] ~= nil then
            return mapping.names[path]
        end
        path = path ~= "" and (string.match(path, "^(.*)%.[^.]*$") or "") or nil
    end
    for _, entry in ipairs(mapping.patterns) do
        if string.find(name, "^" .. entry[1] .. "$") then
            return entry[2]
        end
    end
    local config = mapping.types[class]
    if config == nil then
        return mapping.default
    end
    return config
end

--- lookup(fname, value, model, unobserved): for a mapping, or what is short for one, a table from each of the model's modules to its
--- QConfig or false. unobserved: the classes of layers that a QConfig with `replace` alone is for. An error: a name of the mapping that
--- is none of the model's; a QConfig by the name or class of a layer that it is not for.
function configs.lookup(fname, value, model, unobserved)
    local mapping, names, found = mapping_of(fname, value), {}, {}
    for name, module in model:named_modules() do
        local class = getmetatable(module)
        names[#names + 1] = name
        check_serves(fname, mapping, name, class, unobserved)
        local config = find(mapping, name, class)
        found[module] = config and serves(config, class, unobserved) and config
    end
    check_names(fname, mapping, names)
    return found
end

function configs.open(quantization)
    local declare = tide._function
    local function weight_by_channel()
        return quantization.PerChannelMinMaxObserver { dtype = "qint8", qscheme = "per_channel_symmetric" }
    end
    local function weight_by_tensor() return quantization.MinMaxObserver { dtype = "qint8", qscheme = "per_tensor_symmetric" } end
    local function histogram(reduce)
        return function() return quantization.HistogramObserver { reduce_range = reduce } end
    end

    quantization.QConfig = declare("QConfig(*, function? activation=nil, function? weight=nil, function? replace=nil) -> table",
        "What quantizing does with a layer. activation makes an observer of what it gives (and takes), weight one of its weight (qint8, by "
        .. "channel and symmetric as if nothing is said); or replace(layer) gives a module of floats to put in its place, which nothing "
        .. "observes: from_float of a tide.nn.quantized.dynamic layer. Embeddings, bags and recurrent layers are replaced, not observed.",
        function(activation, weight, replace)
            if replace and (activation or weight) then
                fail("QConfig: replace makes the whole layer: activation and weight are not asked")
            end
            return setmetatable({ activation = activation or histogram(false), weight = weight, replace = replace }, QConfig)
        end)
    quantization.QConfigMapping = declare("QConfigMapping() -> table",
        "Which QConfig a module of a model gets: set_global(c), set_object_type(class, c), set_module_name_regex(pattern, c), a pattern of "
        .. "Lua for the whole name, set_module_name(name, c), for what lies in it too; later ones of these come first, nil keeps floats. A table {default = c, "
        .. "[tide.nn.Linear] = c, [\"layer1.0\"] = c, patterns = {{pattern, c}}} is short for one; there false keeps floats.", new_mapping)
    local BACKEND = '"x86"|"fbgemm"|"onednn"|"qnnpack" backend="onednn"'
    quantization.get_default_qconfig = declare("get_default_qconfig(" .. BACKEND .. ") -> table",
        "The observers that PyTorch has for an engine of its: histograms; weights by channel. x86 and fbgemm leave a bit of the activations "
        .. "unused, which Tide's exact sums don't need; qnnpack has one scale for a weight.", function(backend)
            local reduce = backend == "x86" or backend == "fbgemm"
            return quantization.QConfig { activation = histogram(reduce), weight = backend == "qnnpack" and weight_by_tensor or weight_by_channel }
        end)
    quantization.get_default_qconfig_mapping = declare("get_default_qconfig_mapping(" .. BACKEND .. ") -> table",
        "A mapping that gives every layer get_default_qconfig's.",
        function(backend) return new_mapping():set_global(quantization.get_default_qconfig(backend)) end)
    -- A QConfig that replaces layers of some classes by those of the same names in another room.
    local function replacing(room, classes, options)
        local config = quantization.QConfig { replace = function(layer) return room[getmetatable(layer).__name].from_float(layer, options) end }
        config.classes = classes
        return config
    end
    quantization.default_dynamic_qconfig = declare("default_dynamic_qconfig() -> table",
        "For linear layers, LSTM, GRU and RNN: int8 weights, and what they are given is quantized in each call by its own range.",
        function() return replacing(nn.quantized.dynamic, { nn.Linear, nn.LSTM, nn.GRU, nn.RNN }) end)
    local ROWS <const> = "For Embedding and EmbeddingBag: rows of %s with a scale and an offset of float%s each (tide.nn.quantized.Embedding)."
    quantization.float_qparams_weight_only_qconfig = declare("float_qparams_weight_only_qconfig() -> table", string.format(ROWS, "bytes", "32"),
        function() return replacing(nn.quantized, tree.TABLES, { dtype = "quint8" }) end)
    quantization.float_qparams_weight_only_qconfig_4bit = declare("float_qparams_weight_only_qconfig_4bit() -> table",
        string.format(ROWS, "4 bits an element", "16"), function() return replacing(nn.quantized, tree.TABLES, { dtype = "quint4x2" }) end)
end

return configs
