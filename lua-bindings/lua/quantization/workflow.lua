-- quantization/workflow.lua: models of floats as models of bytes: quantize_dynamic in one step; prepare, calibrate
-- with data, convert; and a report of what that does to each layer.
local tide = ...
local fail = tide._fail

local function is_a(module, class) return getmetatable(module) == class end

-- The names of a module's children, in order, and a copy of the model to change.
local function names_of(module)
    local names = {}
    for name in module:named_children() do
        names[#names + 1] = name
    end
    return names
end

-- In a Sequential a ReLU behind a linear layer is done by that.
local function has_relu(module, names, k)
    return is_a(module, tide.nn.Sequential) and names[k + 1] ~= nil and is_a(module[names[k + 1]], tide.nn.ReLU)
end

-- change(parent, names, k) for every child of a class, down the tree; each module once.
local function each(module, class, change, seen)
    seen = seen or {}
    if seen[module] then
        return
    end
    seen[module] = true
    local names = names_of(module)
    for k, name in ipairs(names) do
        if is_a(module[name], class) then
            change(module, names, k)
        else
            each(module[name], class, change, seen)
        end
    end
end

return function(quantization)
    local nn, declare = tide.nn, tide._function

    quantization.quantize_dynamic = declare("quantize_dynamic(Module model, list? types=nil) -> Module",
        "A copy of the model whose linear layers have int8 weights and quantize what they are given by its own range; a ReLU "
        .. "behind one in a Sequential becomes part of it. types: the classes to replace, {tide.nn.Linear} as if nothing is said.",
        function(model, types)
            for _, class in ipairs(types or {}) do
                if class ~= nn.Linear then
                    fail("quantize_dynamic: types: tide.nn.Linear alone is replaced, got %s", tide._describe(class))
                end
            end
            if is_a(model, nn.Linear) then
                return nn.quantized.dynamic.Linear.from_float(model)
            end
            local copy = model:clone()
            for _ = 1, types and #types == 0 and 0 or 1 do
                each(copy, nn.Linear, function(parent, names, k)
                    local relu = has_relu(parent, names, k)
                    parent[names[k]] = nn.quantized.dynamic.Linear.from_float(parent[names[k]], relu)
                    if relu then
                        parent[names[k + 1]] = nn.Identity()
                    end
                end)
            end
            return copy
        end)

    -- A linear layer, perhaps with its ReLU, between observers of what goes in and comes out.
    local Observed = nn.class("ObservedLinear")

    function Observed:init(linear, relu, inner, outer)
        self.linear, self.input, self.output = linear, inner, outer
        rawset(self, "relu", relu)
    end

    function Observed:forward(x)
        local y = self.linear(self.input(x))
        return self.output(self.relu and y:relu() or y)
    end

    quantization.prepare = declare("prepare(Module model, *, function? observer=nil) -> Module",
        "A copy of the model that observes what its linear layers take and give: call it with data, then convert it. observer: "
        .. "makes an observer, HistogramObserver as if nothing is said.", function(model, observer)
            local make = observer or function() return quantization.HistogramObserver() end
            local copy = model:clone()
            if is_a(copy, nn.Linear) then
                copy = nn.Sequential(copy)
            end
            each(copy, nn.Linear, function(parent, names, k)
                local relu = has_relu(parent, names, k)
                parent[names[k]] = Observed(parent[names[k]], relu, make(), make())
                if relu then
                    parent[names[k + 1]] = nn.Identity()
                end
            end)
            return copy
        end)

    -- Does the next part of a Sequential that does anything take quantized tensors?
    local function meets_another(parent, names, k)
        for j = k + 1, is_a(parent, nn.Sequential) and #names or k do
            if not is_a(parent[names[j]], nn.Identity) then
                return is_a(parent[names[j]], Observed)
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

    quantization.convert = declare("convert(Module model) -> Module",
        "A prepared model that has seen data, with layers of tide.nn.quantized: linear layers that follow one another in a "
        .. "Sequential hand on bytes, others take and give floats.", function(model)
            local copy, count = model:clone(), 0
            local function change(parent, names, k)
                local observed = parent[names[k]]
                local in_scale, in_point = parameters_of(observed.input, names[k])
                local scale, point = parameters_of(observed.output, names[k])
                count = count + 1
                return { scale = scale, zero_point = point, relu = observed.relu, in_scale = in_scale, in_zero_point = in_point,
                    floats = not meets_another(parent, names, k) }
            end
            local made = {}
            each(copy, Observed, function(parent, names, k)
                made[#made + 1] = { parent, names[k], parent[names[k]].linear, change(parent, names, k) }
            end)
            for _, entry in ipairs(made) do
                local parent, name, linear, options = table.unpack(entry)
                parent[name] = nn.quantized.Linear.from_float(linear, options)
            end
            if count == 0 then
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
            local want, got, layers_of = outputs_of(model, x), outputs_of(small, x), {}
            for name, module in model:named_modules() do
                layers_of[name] = module
            end
            local rows = setmetatable({}, Report)
            for name, module in small:named_modules() do
                local is_small = is_a(module, nn.quantized.Linear) or is_a(module, nn.quantized.dynamic.Linear)
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
