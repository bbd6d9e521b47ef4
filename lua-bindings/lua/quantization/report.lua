-- quantization/report.lua: what quantizing did to each layer of a model: how far what it gives is from floats, what was cut off,
-- its bytes and its time. Knows no workflow: it compares two models whose layers have the same names.
local tide = ...
local fail = tide._fail
local tree = tide._require "quantization.folding"

-- ---- models watched ----

-- The sizes of tensors with dims in a module's state: numbers that belong to it are not counted.
local function bytes_of(module)
    local bytes = 0
    for _, x in pairs(module:state_dict()) do
        bytes = bytes + (tide.is_tensor(x) and x:dim() > 0 and x.nbytes or 0)
    end
    return bytes
end

local function median(list)
    table.sort(list)
    return (list[(#list + 1) // 2] + list[#list // 2 + 1]) / 2
end

local LEAST_RUNS <const>, MOST_RUNS <const>, LONG_ENOUGH <const> = 5, 51, 0.3 -- seconds of each model

-- In the first call weights are packed: it is no measure of those that follow.
local function warm_up(models, x)
    for _, model in ipairs(models) do
        model(x)
    end
end

-- Calls the models with x in turns: what disturbs the machine disturbs all of them. take(k, seconds) is told every call of the k-th.
-- runs: so many rounds; nil: as many as make sure.
local function run_in_turns(models, x, runs, timer, take)
    local begun, done = timer(), 0
    while done < (runs or LEAST_RUNS) or not runs and done < MOST_RUNS and timer() - begun < LONG_ENOUGH * #models do
        for k, model in ipairs(models) do
            local start = timer()
            model(x)
            take(k, timer() - start)
        end
        done = done + 1
    end
end

-- The seconds that each of the models takes: medians of calls in turns.
local function time(models, x, runs, timer)
    local seconds = {}
    for k in ipairs(models) do
        seconds[k] = {}
    end
    warm_up(models, x)
    run_in_turns(models, x, runs, timer, function(k, taken) table.insert(seconds[k], taken) end)
    for k, list in ipairs(seconds) do
        seconds[k] = median(list)
    end
    return seconds
end

-- Hooks on all modules of a model, which write down what each gave and, of every call of the model, the seconds that it took, by name;
-- a module that is called several times in one takes the sum.
local function hook_all(model, timer, seen, hooks)
    local begun, sums = {}, {}
    for name, module in model:named_modules() do
        hooks[#hooks + 1] = module:register_forward_pre_hook(function() begun[name] = timer() end)
        hooks[#hooks + 1] = module:register_forward_hook(function(_, _, y)
            sums[name] = (sums[name] or 0) + timer() - begun[name]
            if tide.is_tensor(y) then
                seen.outputs[name] = y
            end
            if module == model then
                for part, sum in pairs(sums) do
                    seen.seconds[part] = seen.seconds[part] or {}
                    table.insert(seen.seconds[part], sum)
                end
                sums = {}
            end
        end)
    end
end

-- Runs the models in turns: of each a table `outputs`, what each module gave, as floats, and one `seconds`, the median of what it took,
-- by name; of the model itself, "".
local function watch(models, x, runs, timer)
    local list, hooks = {}, {}
    warm_up(models, x)
    for k, model in ipairs(models) do
        list[k] = { outputs = {}, seconds = {} }
        hook_all(model, timer, list[k], hooks)
    end
    local ok, why = pcall(run_in_turns, models, x, runs, timer, function() end)
    for _, hook in ipairs(hooks) do
        hook:remove()
    end
    if not ok then
        error(why, 0)
    end
    for _, seen in ipairs(list) do
        for name, y in pairs(seen.outputs) do
            seen.outputs[name] = y.is_quantized and y:dequantize() or y:detach()
        end
        for name, taken in pairs(seen.seconds) do
            seen.seconds[name] = median(taken)
        end
    end
    return list
end

-- Energy of a signal over that of its noise, in decibels.
local function snr_of(want, got)
    local noise = (want - got):double():square():sum():item()
    local signal = want:double():square():sum():item()
    return noise > 0 and 10 * math.log(signal / noise, 10) or math.huge
end

-- The share of a result that the layer's integers can't hold: farther out than half a step.
local function clipped_of(layer, want)
    if not tide.is_tensor(layer.scale) or want:numel() == 0 then
        return 0.0
    end
    local scale, point = layer.scale:item(), layer.zero_point:item()
    local low, high = (0 - point - 0.5) * scale, (255 - point + 0.5) * scale
    return want:lt(low):logical_or(want:gt(high)):double():mean():item()
end

-- The names of the ReLUs that a model's layers have behind them, by the layers' names.
local function relus_of(model)
    local names, relus = {}, {}
    for name, module in model:named_modules() do
        names[module] = name
    end
    tree.each(model, tree.LAYERS, function(parent, children, k)
        if tree.has_relu(parent, children, k) then
            relus[names[parent[children[k]]]] = names[parent[children[tree.next_of(parent, children, k)]]]
        end
    end)
    return relus
end

-- ---- how it looks ----

local Report = { __name = "report" }
Report.__index = Report

local function text_of(row)
    return { row.name, string.format("%d", row.bytes), string.format("%d", row.float_bytes), string.format("%.3g to %.3g", row.low, row.high),
        string.format("%.2f", 100 * row.clipped), string.format("%.2f", row.snr), string.format("%.1f", 1e6 * row.seconds),
        string.format("%.1f", 1e6 * row.float_seconds) }
end

local HEADS <const> = { "layer", "bytes", "float bytes", "range", "clipped %", "SNR (dB)", "us", "float us" }

function Report:__tostring()
    local form = "%-24s %10s %11s %20s %9s %9s %9s %9s"
    local lines = { string.format(form, table.unpack(HEADS)) }
    for _, row in ipairs(self) do
        lines[#lines + 1] = string.format(form, table.unpack(text_of(row)))
    end
    return table.concat(lines, "\n")
end

-- Signal to noise by layer, and times.
function Report:plot()
    local names, snr, times, floats = {}, {}, {}, {}
    for k, row in ipairs(self) do
        names[k], snr[k] = row.name, math.min(row.snr, 120.0)
        times[k], floats[k] = 1e6 * row.seconds, 1e6 * row.float_seconds
    end
    if #names == 0 then
        fail("plot: the report has no layers")
    end
    return tide.plot.grid { tide.plot.bar(snr, { names = names, title = "SNR (dB)" }),
        tide.plot.bar({ times, floats }, { names = names, labels = { "quantized", "float" }, title = "microseconds" }), columns = 1 }
end

-- A table of HTML: what stands above its columns, and its rows of texts.
local function table_of(heads, rows)
    local escape = tide._require("notebook.html").escape
    local lines = { "<table><tr><th>" .. table.concat(heads, "</th><th>") .. "</th></tr>" }
    for _, row in ipairs(rows) do
        local cells = {}
        for k, text in ipairs(row) do
            cells[k] = "<td>" .. escape(text) .. "</td>"
        end
        lines[#lines + 1] = "<tr>" .. table.concat(cells) .. "</tr>"
    end
    lines[#lines + 1] = "</table>"
    return table.concat(lines, "\n")
end

function Report:__display()
    local rows = {}
    for k, row in ipairs(self) do
        rows[k] = text_of(row)
    end
    return { ["text/plain"] = tostring(self), ["text/html"] = table_of(HEADS, rows) .. (#self > 0 and self:plot():svg() or "") }
end

local report = { table_of = table_of, watch = watch, time = time, bytes_of = bytes_of, snr_of = snr_of, relus_of = relus_of }

function report.open(quantization)
    quantization.report = tide._function(
        "report(Module model, Module quantized, Tensor x, *, int(1..)? runs=nil, function? timer=nil) -> list",
        "How far the layers of a quantized model are from those of the model that it was made of, on a batch: a list of {name, "
        .. "bytes, float_bytes, low, high, clipped, snr, largest, seconds, float_seconds} that prints as a table, and in a notebook as a "
        .. "picture, plot(), too. low, high: the ends of what the layer gives in floats; clipped: the share of it that its integers can't hold; snr: signal to "
        .. "noise of what it gives, in decibels; largest: the largest of that; seconds: medians of some runs of both models in turns, by timer (tide.time).",
        function(model, small, x, runs, timer)
            local _ <close> = tide.no_grad()
            local fused = tree.folded(model)
            timer = timer or tide.time
            local floats, bytes = table.unpack(watch({ fused, small }, x, runs, timer))
            local want, want_seconds, got, seconds = floats.outputs, floats.seconds, bytes.outputs, bytes.seconds
            local relus, layers, rows = relus_of(fused), {}, setmetatable({}, Report)
            for name, module in fused:named_modules() do
                layers[name] = tree.is_one_of(module, tree.LAYERS) and module or nil
            end
            for name, module in small:named_modules() do
                local reference = layers[name] and want[name]
                if reference and got[name] then
                    reference = module.relu and reference:relu() or reference
                    local low, high = tide.aminmax(reference)
                    local float_seconds = want_seconds[name] + (module.relu and want_seconds[relus[name]] or 0)
                    rows[#rows + 1] = { name = name, bytes = bytes_of(module), float_bytes = bytes_of(layers[name]), low = low:item(),
                        high = high:item(), clipped = clipped_of(module, reference), snr = snr_of(reference, got[name]),
                        largest = got[name]:abs():amax():item(), seconds = seconds[name], float_seconds = float_seconds }
                end
            end
            return rows
        end)
end

return report
