-- quantization/workflow.lua: models of floats as models of bytes: quantize_dynamic in one step; prepare, calibrate
-- with data, convert; prepare_qat, train, convert.
local tide = ...
local fail = tide._fail
local tree, qat = tide._require "quantization.folding", tide._require "nn.qat"
local configs = tide._require "quantization.qconfig"
local is_a, each, has_relu, take_next = tree.is_a, tree.each, tree.has_relu, tree.take_next

return function(quantization)
    local nn, declare = tide.nn, tide._function

    -- What quantize_dynamic makes of a layer of each class.
    local DYNAMIC = {
        [nn.Linear] = nn.quantized.dynamic.Linear.from_float,
        [nn.Embedding] = function(table) return nn.quantized.Embedding.from_float(table) end,
        [nn.EmbeddingBag] = function(table) return nn.quantized.EmbeddingBag.from_float(table) end,
    }
    for _, name in ipairs { "LSTM", "GRU", "RNN" } do
        DYNAMIC[nn[name]] = function(layer) return nn.quantized.dynamic[name].from_float(layer) end
    end
    local USUAL <const> = { nn.Linear, nn.LSTM, nn.GRU, nn.RNN }
    local function joined(a, b) return table.move(b, 1, #b, #a + 1, table.move(a, 1, #a, 1, {})) end
    local ALL <const> = joined(USUAL, tree.TABLES)

    quantization.quantize_dynamic = declare("quantize_dynamic(Module model, list? types=nil, any? dtype=nil, *, any? qconfig=nil) -> Module",
        "A copy of the model whose linear layers have int8 weights and quantize what they are given by its own range; a ReLU "
        .. "behind one in a Sequential becomes part of it. types: the classes to replace, of tide.nn.Linear, LSTM, GRU and RNN (all four as if "
        .. "nothing is said), Embedding and EmbeddingBag, whose rows become bytes. qconfig: a QConfigMapping or what is short for one "
        .. "(?tide.quantization.QConfigMapping), by which layers stay in floats or are replaced in another way; a float_qparams_weight_only_qconfig "
        .. "there replaces tables that types don't name. dtype: tide.qint8, which is what there is.",
        function(model, types, dtype, qconfig)
            if dtype ~= nil and dtype ~= tide.qint8 then
                fail("quantize_dynamic: dtype: weights become qint8, got %s", tostring(dtype))
            end
            local unobserved = types and {} or tree.TABLES
            types = types or qconfig and ALL or USUAL
            for _, class in ipairs(types) do
                if not DYNAMIC[class] then
                    fail("quantize_dynamic: types: of tide.nn Linear, LSTM, GRU, RNN, Embedding and EmbeddingBag are replaced, got %s",
                        tide._describe(class))
                end
            end
            local copy = model:clone()
            local found = qconfig and configs.lookup("quantize_dynamic", qconfig, copy, unobserved)
            local root = tree.is_one_of(copy, types) and nn.Sequential(copy) or copy
            each(root, types, function(parent, names, k)
                local layer = parent[names[k]]
                local config = found and found[layer]
                if found and not (config and not config.replace) then
                    parent[names[k]] = config and config.replace(layer) or layer
                    return
                end
                local relu = is_a(layer, nn.Linear) and has_relu(parent, names, k)
                parent[names[k]] = DYNAMIC[getmetatable(layer)](layer, relu)
                if relu then
                    take_next(parent, names, k)
                end
            end)
            return root == copy and copy or root[1]
        end)

    local LAYERS <const> = tree.LAYERS

    -- A layer, perhaps with its ReLU, between observers of what goes in (unless a QuantStub says that) and comes out.
    local Observed = nn.class("Observed")

    function Observed:init(layer, relu, inner, outer, weight)
        self.input = inner
        self.layer = layer
        self.output = outer
        rawset(self, "relu", relu)
        rawset(self, "weight_observer", weight)
    end

    function Observed:forward(x)
        local y = self.layer(self.input and self.input(x) or x)
        return self.output(self.relu and y:relu() or y)
    end

    -- A module of floats among those of bytes, and an observer of what comes out.
    local ObservedFloat = nn.class("ObservedFloat")

    function ObservedFloat:init(module, outer)
        self.module = module
        self.output = outer
    end

    function ObservedFloat:forward(x) return self.output(self.module(x)) end

    -- A layer that convert replaces, and which stays as it is until then: it may be trained.
    local Waiting = nn.class("Waiting")

    function Waiting:init(layer, replace)
        self.layer = layer
        rawset(self, "replace", replace)
    end

    function Waiting:forward(...) return self.layer(...) end

    local function replaced(module)
        if not is_a(module, Waiting) then
            return module
        end
        local made = module.replace(module.layer)
        if not nn.is(made or false, nn.Module) then
            fail("replace of the QConfig: a module expected, got %s", tide._describe(made))
        end
        return made
    end

    local function stub(name, doc)
        local class = nn.class(name)
        function class:forward(x) return self.output and self.output(x) or x end
        quantization[name] = class
        tide._document(class, declare(name .. "()", doc, nil, "x (...) -> (...)"))
        return class
    end
    local QuantStub = stub("QuantStub", "Where a model's floats become bytes: what follows it hands on bytes up to a DeQuantStub. Does nothing before.")
    local DeQuantStub = stub("DeQuantStub", "Where a model's bytes become floats again. Does nothing before.")

    -- Sums and products that a model observes and converts as it does layers.
    local FloatFunctional = nn.class("FloatFunctional")
    for name, combine in pairs {
        add = function(a, b) return a + b end,
        mul = function(a, b) return a * b end,
        add_relu = function(a, b) return (a + b):relu() end,
        mul_relu = function(a, b) return (a * b):relu() end,
        cat = tide.cat,
    } do
        FloatFunctional[name] = function(self, a, b)
            local y = combine(a, b)
            return self.output and self.output(y) or y
        end
    end
    -- With a number the result's parameters follow from x's: nothing is observed.
    function FloatFunctional:add_scalar(x, number) return x + number end
    function FloatFunctional:add_scalar_relu(x, number) return (x + number):relu() end
    function FloatFunctional:mul_scalar(x, number) return x * number end
    function FloatFunctional:mul_scalar_relu(x, number) return (x * number):relu() end
    function FloatFunctional:forward() fail "FloatFunctional: call its add, add_relu, mul, mul_relu, cat, add_scalar or mul_scalar" end
    nn.quantized.FloatFunctional = FloatFunctional
    tide._document(FloatFunctional, declare("FloatFunctional()", "Operators as a part of a model, f:add(a, b), add_relu, mul, mul_relu and "
        .. "f:cat(list, dim), whose results are observed and quantized as those of layers are; add_scalar, mul_scalar and these with _relu.", nil))

    local function has_stub(model)
        for _, module in model:named_modules() do
            if is_a(module, QuantStub) then
                return true
            end
        end
        return false
    end

    -- What has no kernel for bytes, but may stand among layers that hand them on.
    local ROUNDED <const> = { nn.Hardswish, nn.SiLU, nn.ELU, nn.CELU, nn.SELU, nn.Mish, nn.Softplus, nn.Softmax, nn.PReLU, nn.LayerNorm,
        nn.GroupNorm, nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d }
    local CHANGED <const> = joined(LAYERS, tree.REPLACED)
    local WATCHED <const> = joined(CHANGED, ROUNDED)

    -- What a QConfig's activation makes, or else what `usual` does.
    local function observer_of(fname, config, usual)
        local made = (config and config.activation or usual)()
        if not nn.is(made or false, nn.Module) or not made.calculate_qparams then
            fail("%s: activation of the QConfig: a function that makes an observer expected, got one that makes %s", fname, tide._describe(made))
        end
        return made
    end

    -- Observers into a model, around what `change` makes of each layer. found: the QConfig of each module, or false. observer(config)
    -- makes what observes; of layers that stay in floats among those of bytes too.
    local function observe(model, found, observer, change)
        local stubbed, stubs = has_stub(model), {}
        for _, module in model:named_modules() do
            if stubbed and (is_a(module, QuantStub) or is_a(module, FloatFunctional)) then
                stubs[#stubs + 1] = module
            end
        end
        each(model, stubbed and WATCHED or CHANGED, function(parent, names, k)
            local layer, relu = parent[names[k]], has_relu(parent, names, k)
            local config = found[layer]
            local is_layer = tree.is_one_of(layer, LAYERS)
            if config and not config.replace and is_layer then
                local input = not stubbed and observer(config) or nil
                parent[names[k]] = Observed(change(layer, config), relu, input, observer(config), config.weight)
                if relu then
                    take_next(parent, names, k)
                end
                return
            end
            local is_replaced = config and config.replace and tree.is_one_of(layer, CHANGED)
            local kept = is_replaced and Waiting(layer, config.replace) or layer
            parent[names[k]] = stubbed and not tree.is_one_of(layer, tree.REPLACED) and ObservedFloat(kept, observer(config)) or kept
        end)
        for _, module in ipairs(stubs) do
            module.output = observer(found[module])
        end
        return model
    end

    -- The QConfig of each module of a copy: as the caller has it, or one for all.
    local function lookup(fname, copy, qconfig, observer)
        if qconfig and observer then
            fail("%s: observer is what qconfig has as activation: give one of them", fname)
        end
        return configs.lookup(fname, qconfig or quantization.QConfig { activation = observer }, copy, tree.REPLACED)
    end
    local QCONFIG <const> = " qconfig: a QConfigMapping or what is short for one (?tide.quantization.QConfigMapping), in place of an observer; "
        .. "layers without a QConfig stay in floats."

    local function in_sequence(model)
        for _, class in ipairs(CHANGED) do
            if nn.is(model, class) then
                return nn.Sequential(model)
            end
        end
        return model
    end

    quantization.prepare = declare("prepare(Module model, *, function? observer=nil, any? qconfig=nil) -> Module",
        "A copy of the model, in evaluation, that observes what its linear layers and convolutions take and give: call it with "
        .. "data, then convert it. A batch norm and a ReLU behind one in a Sequential become part of it (others: fuse_modules). "
        .. "observer: makes an observer, HistogramObserver as if nothing is said." .. QCONFIG, function(model, observer, qconfig)
            local copy = in_sequence(model:clone()):eval()
            tree.fold(copy)
            return observe(copy, lookup("prepare", copy, qconfig, observer), function(config)
                return observer_of("prepare", config, quantization.HistogramObserver)
            end, function(layer) return layer end)
        end)

    quantization.prepare_qat = declare("prepare_qat(Module model, *, function? observer=nil, any? qconfig=nil) -> Module",
        "A copy of the model to train, whose layers round weights and results as bytes do (tide.nn.qat), and which convert "
        .. "makes one of bytes. A batch norm behind a convolution in a Sequential is folded into its weights. observer: makes an "
        .. "observer for FakeQuantize, MovingAverageMinMaxObserver as if nothing is said." .. QCONFIG, function(model, observer, qconfig)
            local function moving() return quantization.MovingAverageMinMaxObserver() end
            local copy = in_sequence(model:clone()):train()
            local found, norms = lookup("prepare_qat", copy, qconfig, observer or not qconfig and moving or nil), {}
            each(copy, LAYERS, function(parent, names, k)
                local layer = parent[names[k]]
                local is_small = found[layer] and not found[layer].replace
                if is_small and not is_a(layer, nn.Linear) and not tree.is_one_of(layer, tree.TRANSPOSED) and tree.has_norm(parent, names, k) then
                    norms[layer] = take_next(parent, names, k)
                end
            end)
            return observe(copy, found, function(config)
                return quantization.FakeQuantize(observer_of("prepare_qat", config, moving))
            end, function(layer, config)
                local trained = norms[layer] and qat.join(layer, norms[layer]) or qat.of(layer)
                rawset(trained, "weight_observer", config.weight)
                return trained
            end)
        end)

    -- Does what comes next in a Sequential, behind what hands bytes on, belong to a class?
    local function meets(parent, names, k, class)
        for j = k + 1, is_a(parent, nn.Sequential) and #names or k do
            if is_a(parent[names[j]], class) then
                return true
            elseif not tree.is_one_of(parent[names[j]], tree.HANDED) then
                return false
            end
        end
        return false
    end

    local function parameters_of(observer)
        local scale, point = observer:calculate_qparams()
        return scale:item(), point:item()
    end

    -- The same result; an error says of which layer it is.
    local function of_layer(name, fn, ...)
        local results = table.pack(pcall(fn, ...))
        if not results[1] then
            local why = string.gsub(tostring(results[2]), "^[^:]*:%d+: ", "")
            fail("convert: layer '%s': %s", name, string.gsub(why, "^calculate_qparams: ", ""))
        end
        return table.unpack(results, 2, results.n)
    end

    -- The layer of bytes of one of floats or of quantization-aware training.
    local function small_of(layer, options)
        layer = qat.float_of(layer)
        for _, class in ipairs(LAYERS) do
            local name = class.__name
            if is_a(layer, class) then
                return nn.quantized[name].from_float(layer, options)
            end
        end
    end

    -- Bytes of a model's parameters, of which what is made of it has had a copy.
    local function bytes_of(model)
        local bytes = 0
        for _, x in ipairs(model:parameters()) do
            bytes = bytes + x:numel() * x:element_size()
        end
        return bytes
    end

    local function converted(model)
        local copy, stubbed, made, full_names = model:clone():eval(), has_stub(model), {}, {}
        for full, module in copy:named_modules() do
            full_names[module] = full
        end
        local function put(parent, name, module) made[#made + 1] = { parent, name, module } end
        each(copy, { Observed, ObservedFloat, Waiting, QuantStub, DeQuantStub, FloatFunctional }, function(parent, names, k)
            local name, part = names[k], parent[names[k]]
            local full = full_names[part]
            if is_a(part, DeQuantStub) then
                return put(parent, name, nn.quantized.DeQuantize())
            elseif is_a(part, Waiting) then
                return put(parent, name, of_layer(full, replaced, part))
            elseif not part.output then
                return
            end
            local scale, point = of_layer(full, parameters_of, part.output)
            if is_a(part, QuantStub) then
                put(parent, name, nn.quantized.Quantize(scale, point))
            elseif is_a(part, FloatFunctional) then
                put(parent, name, nn.quantized.QFunctional(scale, point))
            elseif is_a(part, ObservedFloat) then
                put(parent, name, nn.quantized.Float(of_layer(full, replaced, part.module), scale, point, meets(parent, names, k, DeQuantStub)))
            else
                local options = { scale = scale, zero_point = point, relu = part.relu, weight = part.weight_observer }
                if not stubbed then
                    options.in_scale, options.in_zero_point = of_layer(full, parameters_of, part.input)
                    options.floats = not meets(parent, names, k, Observed)
                end
                put(parent, name, of_layer(full, small_of, part.layer, options))
            end
        end)
        for _, entry in ipairs(made) do
            entry[1][entry[2]] = entry[3]
        end
        if #made == 0 then
            fail("convert: the model has no observed layer: prepare it first")
        end
        return copy
    end

    quantization.convert = declare("convert(Module model) -> Module",
        "A prepared model that has seen data, with layers of tide.nn.quantized. Between a QuantStub and a DeQuantStub all of them hand "
        .. "on bytes; in a model without stubs those do that follow one another in a Sequential, others take and give floats.",
        function(model)
            local small = converted(model)
            tide._collect_replaced(bytes_of(model))
            return small
        end)
end
