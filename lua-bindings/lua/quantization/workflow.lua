-- quantization/workflow.lua: models of floats as models of bytes: quantize_dynamic in one step; prepare, calibrate
-- with data, convert; prepare_qat, train, convert; and a report of what that does to each layer.
local tide = ...
local fail = tide._fail
local tree, qat = tide._require "quantization.folding", tide._require "nn.qat"
local is_a, each, has_relu, take_next = tree.is_a, tree.each, tree.has_relu, tree.take_next

return function(quantization)
    local nn, declare = tide.nn, tide._function

    -- What quantize_dynamic makes of a layer of each class.
    local DYNAMIC = {
        [nn.Linear] = nn.quantized.dynamic.Linear.from_float,
        [nn.Embedding] = function(table) return nn.quantized.Embedding.from_float(table) end,
        [nn.EmbeddingBag] = function(table) return nn.quantized.EmbeddingBag.from_float(table) end,
    }

    quantization.quantize_dynamic = declare("quantize_dynamic(Module model, list? types=nil) -> Module",
        "A copy of the model whose linear layers have int8 weights and quantize what they are given by its own range; a ReLU "
        .. "behind one in a Sequential becomes part of it. types: the classes to replace, of tide.nn.Linear (as if nothing is said), "
        .. "tide.nn.Embedding and tide.nn.EmbeddingBag, whose rows become bytes.",
        function(model, types)
            types = types or { nn.Linear }
            for _, class in ipairs(types) do
                if not DYNAMIC[class] then
                    fail("quantize_dynamic: types: tide.nn.Linear, Embedding and EmbeddingBag are replaced, got %s", tide._describe(class))
                elseif is_a(model, class) then
                    return DYNAMIC[class](model)
                end
            end
            local copy = model:clone()
            each(copy, types, function(parent, names, k)
                local layer = parent[names[k]]
                local relu = is_a(layer, nn.Linear) and has_relu(parent, names, k)
                parent[names[k]] = DYNAMIC[getmetatable(layer)](layer, relu)
                if relu then
                    take_next(parent, names, k)
                end
            end)
            return copy
        end)

    local LAYERS = { nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d }

    -- A layer, perhaps with its ReLU, between observers of what goes in (unless a QuantStub says that) and comes out.
    local Observed = nn.class("Observed")

    function Observed:init(layer, relu, inner, outer)
        self.input = inner
        self.layer = layer
        self.output = outer
        rawset(self, "relu", relu)
    end

    function Observed:forward(x)
        local y = self.layer(self.input and self.input(x) or x)
        return self.output(self.relu and y:relu() or y)
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
    function FloatFunctional:forward() fail "FloatFunctional: call its add, add_relu, mul, mul_relu or cat" end
    nn.quantized.FloatFunctional = FloatFunctional
    tide._document(FloatFunctional, declare("FloatFunctional()", "Operators as a part of a model, f:add(a, b), add_relu, mul, mul_relu and "
        .. "f:cat(list, dim), whose results are observed and quantized as those of layers are.", nil))

    local function has_stub(model)
        for _, module in model:named_modules() do
            if is_a(module, QuantStub) then
                return true
            end
        end
        return false
    end

    -- Observers into a model, around what `change` makes of each layer.
    local function observe(model, make, change)
        local stubbed, stubs = has_stub(model), {}
        for _, module in model:named_modules() do
            if stubbed and (is_a(module, QuantStub) or is_a(module, FloatFunctional)) then
                stubs[#stubs + 1] = module
            end
        end
        each(model, LAYERS, function(parent, names, k)
            local relu = has_relu(parent, names, k)
            parent[names[k]] = Observed(change(parent[names[k]]), relu, not stubbed and make() or nil, make())
            if relu then
                take_next(parent, names, k)
            end
        end)
        for _, module in ipairs(stubs) do
            module.output = make()
        end
        return model
    end

    local function in_sequence(model)
        for _, class in ipairs(LAYERS) do
            if nn.is(model, class) then
                return nn.Sequential(model)
            end
        end
        return model
    end

    quantization.prepare = declare("prepare(Module model, *, function? observer=nil) -> Module",
        "A copy of the model, in evaluation, that observes what its linear layers and convolutions take and give: call it with "
        .. "data, then convert it. A batch norm and a ReLU behind one in a Sequential become part of it (others: fuse_modules). "
        .. "observer: makes an observer, HistogramObserver as if nothing is said.", function(model, observer)
            local make = observer or function() return quantization.HistogramObserver() end
            local copy = in_sequence(model:clone()):eval()
            tree.fold(copy)
            return observe(copy, make, function(layer) return layer end)
        end)

    quantization.prepare_qat = declare("prepare_qat(Module model, *, function? observer=nil) -> Module",
        "A copy of the model to train, whose layers round weights and results as bytes do (tide.nn.qat), and which convert "
        .. "makes one of bytes. A batch norm behind a convolution in a Sequential is folded into its weights. observer: makes an "
        .. "observer for FakeQuantize, MovingAverageMinMaxObserver as if nothing is said.", function(model, observer)
            local function make() return quantization.FakeQuantize(observer and observer() or nil) end
            local copy = in_sequence(model:clone()):train()
            local norms = {}
            each(copy, LAYERS, function(parent, names, k)
                local layer = parent[names[k]]
                if not is_a(layer, nn.Linear) and tree.has_norm(parent, names, k) then
                    norms[layer] = take_next(parent, names, k)
                end
            end)
            return observe(copy, make, function(layer)
                return norms[layer] and qat.join(layer, norms[layer]) or qat.of(layer)
            end)
        end)

    -- Does what comes next in a Sequential take bytes? Some modules hand them on.
    local HANDED <const> = { nn.Identity, nn.Flatten, nn.ReLU, nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d, nn.AvgPool1d, nn.AvgPool2d,
        nn.AvgPool3d, nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d }

    local function meets_another(parent, names, k)
        for j = k + 1, is_a(parent, nn.Sequential) and #names or k do
            local module, handed = parent[names[j]], false
            if is_a(module, Observed) then
                return true
            end
            for _, class in ipairs(HANDED) do
                handed = handed or is_a(module, class)
            end
            if not handed then
                return false
            end
        end
        return false
    end

    local function parameters_of(observer, name)
        local ok, scale, point = pcall(observer.calculate_qparams, observer)
        if not ok then
            fail("convert: layer '%s': %s", name, string.gsub(scale, "^calculate_qparams: ", ""))
        end
        return scale:item(), point:item()
    end

    -- The layer of bytes of one of floats or of quantization-aware training.
    local function small_of(layer, options)
        layer = qat.float_of(layer)
        for name in pairs { Linear = 1, Conv1d = 1, Conv2d = 1, Conv3d = 1 } do
            if is_a(layer, nn[name]) then
                return nn.quantized[name].from_float(layer, options)
            end
        end
    end

    quantization.convert = declare("convert(Module model) -> Module",
        "A prepared model that has seen data, with layers of tide.nn.quantized. Between a QuantStub and a DeQuantStub all of them hand "
        .. "on bytes; in a model without stubs those do that follow one another in a Sequential, others take and give floats.",
        function(model)
            local copy, stubbed, made = model:clone():eval(), has_stub(model), {}
            local function put(parent, name, module) made[#made + 1] = { parent, name, module } end
            each(copy, { Observed, QuantStub, DeQuantStub, FloatFunctional }, function(parent, names, k)
                local name, part = names[k], parent[names[k]]
                if is_a(part, DeQuantStub) then
                    return put(parent, name, nn.quantized.DeQuantize())
                elseif not part.output then
                    return
                end
                local scale, point = parameters_of(part.output, name)
                if is_a(part, QuantStub) then
                    put(parent, name, nn.quantized.Quantize(scale, point))
                elseif is_a(part, FloatFunctional) then
                    put(parent, name, nn.quantized.QFunctional(scale, point))
                else
                    local options = { scale = scale, zero_point = point, relu = part.relu }
                    if not stubbed then
                        options.in_scale, options.in_zero_point = parameters_of(part.input, name)
                        options.floats = not meets_another(parent, names, k)
                    end
                    put(parent, name, small_of(part.layer, options))
                end
            end)
            for _, entry in ipairs(made) do
                entry[1][entry[2]] = entry[3]
            end
            if #made == 0 then
                fail("convert: the model has no observed layer: prepare it first")
            end
            return copy
        end)

    -- What a layer gives, as floats, by its name.
    local function outputs_of(model, x)
        local outputs, hooks = {}, {}
        for name, module in model:named_modules() do
            hooks[#hooks + 1] = module:register_forward_hook(function(_, _, y)
                if tide.is_tensor(y) then
                    outputs[name] = y.is_quantized and y:dequantize() or y:detach()
                end
            end)
        end
        local ok, why = pcall(model, x)
        for _, hook in ipairs(hooks) do
            hook:remove()
        end
        if not ok then
            error(why, 0)
        end
        return outputs
    end

    local function bytes_of(module)
        local bytes = 0
        for _, field in ipairs { "weight", "bias" } do
            bytes = bytes + (tide.is_tensor(module[field]) and module[field].nbytes or 0)
        end
        return bytes
    end

    local Report = { __name = "report" }

    function Report:__tostring()
        local lines = { string.format("%-24s %12s %12s %10s %10s", "layer", "bytes", "float bytes", "SNR (dB)", "largest") }
        for _, row in ipairs(self) do
            lines[#lines + 1] = string.format("%-24s %12d %12d %10.2f %10.4g", row.name, row.bytes, row.float_bytes, row.snr, row.largest)
        end
        return table.concat(lines, "\n")
    end

    quantization.report = declare("report(Module model, Module quantized, Tensor x) -> list",
        "How far the layers of a quantized model are from those of the model that it was made of, on a batch: a list of {name, "
        .. "bytes, float_bytes, snr, largest} that prints as a table. snr: signal to noise of what the layer gives, in decibels; "
        .. "largest: the largest of that, which is a sign of clipping.", function(model, small, x)
            local _ <close> = tide.no_grad()
            local fused = model:clone():eval()
            tree.fold(fused)
            local want, got, layers_of = outputs_of(fused, x), outputs_of(small, x), {}
            for name, module in model:named_modules() do
                layers_of[name] = module
            end
            local rows = setmetatable({}, Report)
            for name, module in small:named_modules() do
                local is_small = module.weight and module.weight.is_quantized
                local reference = want[name]
                if is_small and reference and got[name] then
                    reference = module.relu and reference:relu() or reference
                    local noise = (reference - got[name]):double():square():sum():item()
                    local signal = reference:double():square():sum():item()
                    rows[#rows + 1] = { name = name, bytes = bytes_of(module), float_bytes = bytes_of(layers_of[name]),
                        snr = noise > 0 and 10 * math.log(signal / noise, 10) or math.huge, largest = got[name]:abs():amax():item() }
                end
            end
            return rows
        end)
end
