-- quantization/plan.lua: which layers of a model are worth quantizing: by what they lose, measured, and by what they gain,
-- measured too. A plan is a mapping from names to kinds; quantizing itself is the workflow's.
local tide = ...
local fail = tide._fail
local tree, report = tide._require "quantization.folding", tide._require "quantization.report"
local nn = tide.nn

-- What a plan speaks of.
local LAYERS <const> = table.move({ nn.LSTM, nn.GRU, nn.RNN }, 1, 3, #tree.LAYERS + 1, table.move(tree.LAYERS, 1, #tree.LAYERS, 1, {}))

-- ---- kinds ----

-- What a layer may become, by the name that plans know it by: the classes that it is for, and the QConfig that makes it.
local KINDS = {}

local function add_kinds(quantization)
    KINDS.int8 = { classes = tree.LAYERS, config = quantization.QConfig() }
    KINDS.dynamic = { classes = { nn.Linear, nn.LSTM, nn.GRU, nn.RNN }, config = quantization.default_dynamic_qconfig() }
    KINDS.int4 = { classes = { nn.Linear }, config = quantization.QConfig {
        replace = function(layer) return nn.quantized.WeightOnlyLinear.from_float(layer, { dtype = "int4" }) end,
    } }
end

local function check_kinds(kinds)
    for _, name in ipairs(kinds) do
        if not KINDS[name] then
            local known = {}
            for kind in pairs(KINDS) do
                known[#known + 1] = kind
            end
            table.sort(known)
            fail("plan: kinds: %s expected, got %s", table.concat(known, ", "), tide._describe(name))
        end
    end
    return kinds
end

-- ---- accuracy, and how sure it is ----

-- What is given as data or calibration, as a list of {x, y}.
local function batches_of(what, data)
    local list = {}
    if type(data) == "table" and getmetatable(data) == nil then
        list = data
    elseif tide.is_tensor(data) or type(data) ~= "function" and not (getmetatable(data) or {}).__call then
        fail("%s: a list of batches {x, y} or a loader expected, got %s", what, tide._describe(data))
    else
        for x, y in data do
            list[#list + 1] = { x, y }
        end
    end
    if #list == 0 then
        fail("%s: there is no batch in it", what)
    end
    for k, batch in ipairs(list) do
        if type(batch) ~= "table" or batch[1] == nil then
            fail("%s: batch %d: {x, y} expected, got %s", what, k, tide._describe(batch))
        end
    end
    return list
end

local function is_right(y, target)
    local classes = y:argmax(2)
    if not tide.is_tensor(target) or tostring(target.shape) ~= tostring(classes.shape) then
        fail("plan: data: y: a class for each row of what the model gives, shape %s, expected, got %s", tostring(classes.shape),
            tide.is_tensor(target) and tostring(target.shape) or tide._describe(target))
    end
    return classes:eq(target)
end

-- Each sample's score, one behind the other.
local function scores_of(model, batches, score)
    local parts = {}
    for k, batch in ipairs(batches) do
        local of_batch = score(model(batch[1]), batch[2])
        if not tide.is_tensor(of_batch) then
            fail("plan: score: a tensor of a number for each sample expected, got %s", tide._describe(of_batch))
        end
        parts[k] = of_batch:double():reshape(-1)
    end
    return tide.cat(parts)
end

-- How many standard deviations lie on both sides of a mean with this probability.
local function width_of(confidence) return math.sqrt(2) * tide.erfinv(tide.tensor(confidence, { dtype = tide.float64 })):item() end

-- The loss in points (hundredths of the score) of the same samples by two models, and how far it may be off. One sample more that differs
-- is counted, so that few samples that all agree prove little.
local function loss_of(before, after, width)
    local off = before - after
    local n = off:numel()
    local mean = off:mean():item()
    local variance = math.max((off:square():sum():item() + 1) / n - mean * mean, 0)
    return 100 * mean, 100 * width * math.sqrt(variance / n)
end

-- So many more samples for a margin, which falls with the root of their number.
local function samples_for(n, margin, wanted) return math.max(math.ceil(n * (margin / wanted) ^ 2) - n, 0) end

-- ---- plans ----

local Plan = { __name = "plan" }
Plan.__index = Plan

local function config_of(kind) return kind ~= "f32" and KINDS[kind].config or false end

-- The mapping of layers' kinds, with other kinds of those in `instead`.
local function mapping_of(layers, instead)
    local mapping = tide.quantization.QConfigMapping()
    for _, layer in ipairs(layers) do
        mapping:set_module_name(layer.name, config_of(instead and instead[layer] or layer.kind))
    end
    return mapping
end

function Plan:mapping() return mapping_of(self.layers) end

local function quantize(model, mapping, calibration)
    local prepared = tide.quantization.prepare(model, { qconfig = mapping })
    local observed = false
    for _, module in prepared:named_modules() do
        observed = observed or module.output ~= nil
    end
    for _, batch in ipairs(observed and calibration or {}) do
        prepared(batch[1])
    end
    return tide.quantization.convert(prepared)
end

function Plan:apply(model, calibration)
    local batches = calibration and batches_of("plan:apply: calibration", calibration) or rawget(self, "calibration")
    if not batches then
        fail("plan:apply: calibration: batches to observe expected: a plan that was loaded keeps none")
    end
    for _, layer in ipairs(self.layers) do
        if layer.kind ~= "f32" then
            return tide.no_grad(function() return quantize(model, self:mapping(), batches) end)
        end
    end
    return tree.folded(model)
end

local KEPT <const> = { "loss", "margin", "wanted", "confidence", "samples", "sure", "seconds", "float_seconds" }
local ROW_NUMBERS <const> = { "quantized", "loss", "margin", "seconds", "bytes" }

local function has_numbers(x, names)
    for _, name in ipairs(names) do
        if type(x[name]) ~= "number" then
            return false
        end
    end
    return true
end

function Plan:save(path)
    local state = { layers = {}, rows = {} }
    for _, name in ipairs(KEPT) do
        state[name] = self[name]
    end
    for k, layer in ipairs(self.layers) do
        state.layers[k] = { name = layer.name, kind = layer.kind, why = layer.why }
    end
    for k, row in ipairs(self.rows) do
        state.rows[k] = { quantized = row.quantized, loss = row.loss, margin = row.margin, seconds = row.seconds, bytes = row.bytes,
            best = row.best, chosen = row.chosen or false }
    end
    tide.save(state, path)
end

local LAYER_HEADS <const>, ROW_HEADS <const> = { "layer", "kind", "why" }, { "", "quantized", "loss (pts)", "+/-", "us", "bytes" }

local function layer_cells(layer) return { layer.name, layer.kind, layer.why } end

local function row_cells(row)
    return { row.chosen and "*" or row.best and "+" or " ", string.format("%d", row.quantized), string.format("%.2f", row.loss),
        string.format("%.2f", row.margin), string.format("%.1f", 1e6 * row.seconds), string.format("%d", row.bytes) }
end

-- What the tables don't say: how sure the loss is, and the time.
local function summary(self)
    local sure = string.format("loss %.2f +/- %.2f points at %g %%, of %d samples", self.loss, self.margin, 100 * self.confidence, self.samples)
    local more = self.wanted > 0 and samples_for(self.samples, self.sure, self.wanted) or 0
    return { sure .. (more > 0 and string.format("; %d more samples for +/- %g", more, self.wanted) or ""),
        string.format("%.1f us in place of %.1f; * is the plan, + are those that none beats in both loss and time", 1e6 * self.seconds,
            1e6 * self.float_seconds) }
end

local LAYER_FORM <const>, ROW_FORM <const> = "%-24s %-8s %s", "%1s %9s %10s %8s %12s %12s"

function Plan:__tostring()
    local lines = { string.format(LAYER_FORM, table.unpack(LAYER_HEADS)) }
    for _, layer in ipairs(self.layers) do
        lines[#lines + 1] = string.format(LAYER_FORM, table.unpack(layer_cells(layer)))
    end
    lines[#lines + 1] = "\n" .. string.format(ROW_FORM, table.unpack(ROW_HEADS))
    for _, row in ipairs(self.rows) do
        lines[#lines + 1] = string.format(ROW_FORM, table.unpack(row_cells(row)))
    end
    lines[#lines + 1] = "\n" .. table.concat(summary(self), "\n")
    return table.concat(lines, "\n")
end

-- What the plot calls a row.
local GROUPS <const> = { "the plan", "none beats it", "beaten in loss and time" }

local function group_of(row) return row.chosen and GROUPS[1] or row.best and GROUPS[2] or GROUPS[3] end

-- Time and loss, with what it may be off, of the plans that were tried, and the loss that was asked for.
function Plan:plot()
    local longest = 0
    local picture
    for _, group in ipairs(GROUPS) do
        local time, loss, margin = {}, {}, {}
        for _, row in ipairs(self.rows) do
            longest = math.max(longest, 1e6 * row.seconds)
            if group_of(row) == group then
                table.insert(time, 1e6 * row.seconds)
                table.insert(loss, row.loss)
                table.insert(margin, row.margin)
            end
        end
        if #time > 0 then
            local points = tide.plot.points(time, loss, { label = group, yerr = margin, markersize = 5, xlabel = "microseconds",
                ylabel = "loss (points)", title = "plans tried" })
            picture = picture and picture + points or points
        end
    end
    return picture + tide.plot.line({ 0, 1.1 * longest }, { self.wanted, self.wanted }, { label = "loss asked for", linestyle = "--" })
end

function Plan:__display()
    local layers, rows = {}, {}
    for k, layer in ipairs(self.layers) do
        layers[k] = layer_cells(layer)
    end
    for k, row in ipairs(self.rows) do
        rows[k] = row_cells(row)
    end
    return { ["text/plain"] = tostring(self), ["text/html"] = report.table_of(LAYER_HEADS, layers) .. report.table_of(ROW_HEADS, rows) .. "<p>"
        .. table.concat(summary(self), "<br>") .. "</p>" .. self:plot():svg() }
end

-- ---- the choice ----

-- What is asked of a plan, and the model's layers.
local function start(model, batches, options)
    model = tree.is_one_of(model, LAYERS) and nn.Sequential(model) or model -- as prepare takes a layer alone
    local fused = tree.folded(model)
    local self = { model = model, fused = fused, batches = batches, probe = batches[1][1] }
    for key, value in pairs(options) do
        self[key] = value
    end
    local names = {}
    for name, module in fused:named_modules() do
        names[module] = name
    end
    self.layers = {}
    tree.each(fused, LAYERS, function(parent, children, k)
        local layer = parent[children[k]]
        self.layers[#self.layers + 1] = { name = names[layer], layer = layer, kind = "f32", why = "no kind is for it" }
    end)
    if #self.layers == 0 then
        fail("plan: the model has no linear layer, no convolution and no recurrent layer")
    end
    self.relus = report.relus_of(fused)
    self.scores = scores_of(fused, batches, self.score)
    return self
end

-- The noise in what the model gives, as a share of it, where one layer alone is of a kind.
local function noise_of(self, name, kind)
    local small = quantize(self.model, tide.quantization.QConfigMapping():set_module_name(name, KINDS[kind].config), { self.batches[1] })
    local noise = (small(self.probe) - self.output):double():square():sum():item()
    return noise / math.max(self.output:double():square():sum():item(), 1e-300)
end

local function time_text(a, b) return string.format("%.1f us, in floats %.1f", 1e6 * a, 1e6 * b) end

-- A model all of whose layers are of a kind, where it is for them; nil where it is for none.
local function whole_of(self, kind)
    local mapping, found = tide.quantization.QConfigMapping(), false
    for _, class in ipairs(KINDS[kind].classes) do
        mapping:set_object_type(class, KINDS[kind].config)
    end
    for _, entry in ipairs(self.layers) do
        found = found or tree.is_one_of(entry.layer, KINDS[kind].classes)
    end
    return found and quantize(self.model, mapping, { self.batches[1] }) or nil
end

-- Takes a kind for each layer that is quicker so than in floats and by the kinds before. seconds: what the modules of `small`, all of
-- the kind, take by name, and float_seconds those of floats; a ReLU that a layer does itself is its work there too.
local function compare(self, kind, small, seconds, float_seconds)
    local modules = {}
    for name, module in small:named_modules() do
        modules[name] = module
    end
    for _, entry in ipairs(self.layers) do
        local here = tree.is_one_of(entry.layer, KINDS[kind].classes) and seconds[entry.name]
        if here then
            local relu = modules[entry.name].relu and self.relus[entry.name]
            local floats = float_seconds[entry.name] + (relu and float_seconds[relu] or 0)
            local gain = floats - here
            if gain > (entry.gain or 0) then
                entry.kind, entry.gain, entry.why = kind, gain, time_text(here, floats)
            elseif entry.kind == "f32" and gain > (entry.nearest or -math.huge) then
                entry.nearest, entry.why = gain, string.format("%s is slower: %s", kind, time_text(here, floats))
            end
        end
    end
end

-- For each layer the kind that is quickest, where one is quicker than floats, measured in models whose layers are all of that kind, in
-- turns with the model of floats.
local function choose_kinds(self)
    local kinds, models = {}, { self.fused }
    for _, kind in ipairs(self.kinds) do
        local small = whole_of(self, kind)
        if small then
            kinds[#kinds + 1], models[#models + 1] = kind, small
        end
    end
    local seen = report.watch(models, self.probe, self.runs, self.timer)
    self.output = seen[1].outputs[""]
    for k, kind in ipairs(kinds) do
        compare(self, kind, models[k + 1], seen[k + 1].seconds, seen[1].seconds)
    end
end

-- Layers that are slower in bytes than in floats, but stand among layers of bytes, join them where the model is quicker so: floats there
-- cost a conversion before and one behind.
local function join_neighbours(self)
    local joining, list, has_bytes = {}, {}, false
    for _, entry in ipairs(self.layers) do
        has_bytes = has_bytes or entry.kind == "int8"
        if entry.kind == "f32" and tree.is_one_of(entry.layer, KINDS.int8.classes) then
            joining[entry] = "int8"
            list[#list + 1] = entry
        end
    end
    if not has_bytes or #list == 0 then
        return
    end
    local models = { quantize(self.model, mapping_of(self.layers), { self.batches[1] }),
        quantize(self.model, mapping_of(self.layers, joining), { self.batches[1] }) }
    local apart, together = table.unpack(report.time(models, self.probe, self.runs, self.timer))
    for _, entry in ipairs(together < apart and list or {}) do
        entry.kind, entry.gain = "int8", (apart - together) / #list
        entry.why = string.format("slower by itself, but the model takes %.1f us, with floats here %.1f", 1e6 * together, 1e6 * apart)
    end
end

-- A row of the table of plans, with so many of the candidates back in floats; its time is measured with all others'.
local function try(self, candidates, dropped)
    local mapping = tide.quantization.QConfigMapping()
    for k = dropped + 1, #candidates do
        mapping:set_module_name(candidates[k].name, KINDS[candidates[k].kind].config)
    end
    local small = dropped < #candidates and quantize(self.model, mapping, self.calibration) or self.fused
    local row = { quantized = #candidates - dropped, dropped = dropped, bytes = report.bytes_of(small), loss = 0.0, margin = 0.0 }
    if dropped < #candidates then
        row.loss, row.margin = loss_of(self.scores, scores_of(small, self.batches, self.score), self.width)
    end
    row.kept = row.loss + row.margin <= self.wanted
    self.rows[#self.rows + 1], self.models[#self.models + 1] = row, small
    return row.kept
end

-- Rows of plans, from all candidates to none, which is all floats and keeps every promise; between them by halving: what loses most for
-- the time that it gains goes into floats first.
local function try_all(self, candidates)
    for _, entry in ipairs(candidates) do
        entry.noise = noise_of(self, entry.name, entry.kind)
    end
    table.sort(candidates, function(a, b)
        local x, y = a.noise / a.gain, b.noise / b.gain
        return x > y or x == y and a.name < b.name
    end)
    local low, high = 0, #candidates -- low breaks the promise, high keeps it
    local good = try(self, candidates, low)
    if high > low then
        try(self, candidates, high)
    end
    while not good and high - low > 1 do
        local middle = (low + high) // 2
        if try(self, candidates, middle) then
            high = middle
        else
            low = middle
        end
    end
end

-- The quickest of the plans that keep the promise, all measured in turns: layers back in floats among those of bytes may cost more
-- than they gained there.
local function search(self)
    local candidates = {}
    for _, entry in ipairs(self.layers) do
        candidates[#candidates + 1] = entry.kind ~= "f32" and entry or nil
    end
    try_all(self, candidates)
    local chosen
    for k, seconds in ipairs(report.time(self.models, self.probe, self.runs, self.timer)) do
        local row = self.rows[k]
        row.seconds = seconds
        self.float_seconds = row.quantized == 0 and seconds or self.float_seconds
        if row.kept and (not chosen or seconds < chosen.seconds) then
            chosen = row
        end
    end
    for k = 1, chosen.dropped do
        candidates[k].kind = "f32"
        candidates[k].why = string.format("would lose more: %.3g of the result's energy", candidates[k].noise)
    end
    return chosen
end

local function mark_best(rows)
    for _, row in ipairs(rows) do
        row.best = true
        for _, other in ipairs(rows) do
            if other.loss <= row.loss and other.seconds <= row.seconds and (other.loss < row.loss or other.seconds < row.seconds) then
                row.best = false
            end
        end
    end
end

local function finish(self, chosen)
    mark_best(self.rows)
    local plan = setmetatable({ layers = self.layers, rows = self.rows, loss = chosen.loss, margin = chosen.margin, wanted = self.wanted,
        confidence = self.confidence, samples = self.scores:numel(), seconds = chosen.seconds, float_seconds = self.float_seconds,
        sure = self.rows[1].margin, calibration = self.calibration }, Plan)
    chosen.chosen = true
    for _, entry in ipairs(self.layers) do
        entry.layer, entry.nearest = nil, nil
    end
    return plan
end

return function(quantization)
    add_kinds(quantization)
    quantization.plan = tide._function("plan(Module model, any data, *, number(0..) loss=0.2, number(0..1) confidence=0.95, any? calibration=nil, "
        .. 'list? kinds=nil, function? score=nil, int(1..)? runs=nil, function? timer=nil) -> table',
        "Which layers to quantize: those that are quicker so, as measured on the first batch within the model, less those that lose most, until the "
        .. "loss in points on all data, with what it may be off at the confidence, is no more than `loss`; of the plans tried that keep this the quickest. data: a list of {x, y} or a loader. calibration: the batches that are "
        .. "observed, the first 8 as if nothing is said. kinds: of \"int8\" (weights and activations), \"int4\" (weights alone) and \"dynamic\" (recurrent layers too); all as if nothing is said. score(output, y): each sample's, 1 for all that is wanted; whether the "
        .. "largest of a row is that of the class y as if nothing is said. The plan prints with all that were tried; plan:apply(model, calibration) quantizes, "
        .. "plan:mapping() is its QConfigMapping, plan:save(path) writes it, load_plan reads it.",
        function(model, data, loss, confidence, calibration, kinds, score, runs, timer)
            local _ <close> = tide.no_grad()
            local batches = batches_of("plan: data", data)
            if confidence <= 0 or confidence >= 1 then
                fail("plan: option confidence: between 0 and 1 expected, got %s", tide._number(confidence))
            end
            local self = start(model, batches, { wanted = loss, confidence = confidence, width = width_of(confidence), rows = {}, models = {},
                runs = runs, kinds = check_kinds(kinds or { "int8", "int4", "dynamic" }), score = score or is_right, timer = timer or tide.time,
                calibration = calibration and batches_of("plan: calibration", calibration) or table.move(batches, 1, math.min(#batches, 8), 1, {}) })
            choose_kinds(self)
            join_neighbours(self)
            return finish(self, search(self))
        end)
    quantization.load_plan = tide._function("load_plan(str path) -> table", "A plan that plan:save(path) wrote; plan:apply wants batches to observe.",
        function(path)
            local state = tide.load(path)
            local whole = type(state) == "table" and has_numbers(state, KEPT) and type(state.layers) == "table" and type(state.rows) == "table"
            for _, row in ipairs(whole and state.rows or {}) do
                whole = whole and type(row) == "table" and has_numbers(row, ROW_NUMBERS)
            end
            for _, layer in ipairs(whole and state.layers or {}) do
                whole = whole and type(layer) == "table" and type(layer.name) == "string" and type(layer.why) == "string"
                if whole and layer.kind ~= "f32" and not KINDS[layer.kind] then
                    fail("load_plan: '%s': layer '%s' is of the kind '%s', which is not known", path, layer.name, tostring(layer.kind))
                end
            end
            if not whole then
                fail("load_plan: '%s' holds no plan", path)
            end
            return setmetatable(state, Plan)
        end)
end
