-- test_quantized_tables.lua: tables of 8 and 4 bits beside PyTorch's (tests/golden/quantization/tables.py): bytes bit for bit, floats
-- and sums of rows to the last bits, where PyTorch uses fused steps.
local t = require "harness"
local json = require "json"
local nn = tide.nn
local DTYPES <const> = { [8] = "quint8", [4] = "quint4x2" }

local function floats(list)
    local out = {}
    for k, text in ipairs(list) do
        out[k] = string.unpack("<f", string.pack("<I4", tonumber(text, 16)))
    end
    return tide.tensor(out)
end

local refused = t.refused

local function near(got, want, share) return (got - want):abs():amax():item() <= (share or 4e-6) * want:abs():amax():item() end

local INDEX, OFFSETS, SAMPLES = tide.tensor { 1, 2, 4, 4, 3, 7, 6 }, tide.tensor { 1, 4, 4 }, tide.tensor { 1, 0.5, -1, 2, 0.25, 1, 3.0 }

local function table_of(weight, class, options)
    local from = nn[class](weight.shape[1], weight.shape[2], { mode = class == "EmbeddingBag" and "sum" or nil })
    from:load_state_dict { weight = weight }
    return nn.quantized[class].from_float(from, options)
end

local cases = 0
for line in io.lines(os.getenv "TIDE_SOURCE" .. "/tests/golden/quantization/tables.jsonl") do
    local case = json.read(line)
    cases = cases + 1
    t.test(("%d_bits_of_%d_elements_are_pytorchs"):format(case.bits, case.width), function()
        local weight = floats(case.weight):view(7, case.width)
        local bag, rows = table_of(weight, "EmbeddingBag", { dtype = DTYPES[case.bits] }), table_of(weight, "Embedding", { dtype = DTYPES[case.bits] })
        t.eq(table.concat(bag.weight:reshape(-1):tolist(), " "), table.concat(case.packed, " "))
        t.is_true(near(rows:dequantize():view(-1), floats(case.floats), case.bits == 8 and 1.2e-7 or 0), "floats")
        t.is_true(tide.equal(rows(tide.tensor { { 4, 1 }, { 7, 7 } }), rows:dequantize()[tide.tensor { { 4, 1 }, { 7, 7 } }]), "rows")
        t.is_true(near(bag(INDEX, OFFSETS):view(-1), floats(case.sums)), "sums")
        t.is_true(near(bag(INDEX, OFFSETS, SAMPLES):view(-1), floats(case.weighted)), "weighted sums")
    end)
end

t.test("the_golden_file_has_cases", function() t.eq(cases, 12) end)

-- What the layer of floats makes of the floats that its rows stand for.
t.test("bags_are_those_of_the_layer_of_floats", function()
    tide.manual_seed(1)
    for _, bits in ipairs { 8, 4 } do
        for _, mode in ipairs { "sum", "mean" } do
            for _, options in ipairs { {}, { padding_idx = 3 }, { padding_idx = -1 }, { include_last_offset = true } } do
                options.mode = mode
                local from = nn.EmbeddingBag(40, 70, options)
                local small = nn.quantized.EmbeddingBag.from_float(from, { dtype = DTYPES[bits] })
                local floats_of = nn.EmbeddingBag(40, 70, options)
                floats_of:load_state_dict { weight = small:dequantize() }
                local index, offsets = tide.randint(1, 41, { 100 }), tide.tensor { 1, 5, 5, 80, 101 }
                index[{ { 1, 9 } }] = tide.tensor { 3, 40, 3, 3, 40, 1, 2, 3, 40 }
                local got, want = small(index, offsets), floats_of(index, offsets):detach()
                t.eq(tostring(got.shape), tostring(want.shape))
                t.is_true(near(got, want), mode)
                if not options.include_last_offset then
                    index = index:view(20, 5)
                    t.is_true(near(small(index), floats_of(index):detach()), mode)
                end
            end
        end
    end
end)

t.test("any_number_of_threads_gives_the_same_bits", function()
    tide.manual_seed(2)
    local bag = nn.quantized.EmbeddingBag.from_float(nn.EmbeddingBag(300, 66, { mode = "sum" }))
    local index, before = tide.randint(1, 301, { 200, 70 }), tide.get_num_threads()
    local want = bag(index)
    for _, n in ipairs { 1, 2, 3 } do
        tide.set_num_threads(n)
        t.is_true(tide.equal(bag(index), want))
    end
    tide.set_num_threads(before)
end)

t.test("tables_are_saved_and_loaded_in_place_of_others", function()
    local path = os.tmpname() .. ".safetensors"
    local bag, other = nn.quantized.EmbeddingBag.from_float(nn.EmbeddingBag(9, 6)), nn.quantized.EmbeddingBag(9, 6, { mode = "mean" })
    tide.save(bag:state_dict(), path)
    other:load_state_dict(tide.load(path))
    os.remove(path)
    t.is_true(tide.equal(other(INDEX, OFFSETS), bag(INDEX, OFFSETS)))
    local model = nn.Sequential(nn.Embedding(9, 6), nn.Linear(6, 2))
    local small = tide.quantization.quantize_dynamic(model, { nn.Embedding, nn.Linear })
    t.is_true(nn.is(small[1], nn.quantized.Embedding) and nn.is(small[2], nn.quantized.dynamic.Linear))
    t.is_true(nn.is(tide.quantization.quantize_dynamic(model)[1], nn.Embedding), "embeddings are replaced where they are asked for")
    t.is_true(nn.is(tide.quantization.quantize_dynamic(model, { nn.Embedding })[2], nn.Linear))
end)

-- Words of a sentence, each by its row, with what a recurrent layer makes of them, and a bag of them.
local function reader()
    local Reader = nn.class "Reader"
    function Reader:init()
        self.words, self.bag = nn.Embedding(30, 8, { padding_idx = 2 }), nn.EmbeddingBag(30, 8, { mode = "sum" })
        self.order, self.out = nn.LSTM(8, 8, { batch_first = true }), nn.Linear(16, 4)
    end
    function Reader:forward(index)
        local y = self.order(self.words(index))
        return self.out(tide.cat({ y[":, -1"], self.bag(index) }, 2))
    end
    return Reader()
end

t.test("tables_are_prepared_and_converted_by_class_and_by_name", function()
    tide.manual_seed(1)
    local Q, net, index = tide.quantization, reader(), tide.randint(1, 31, { 16, 5 })
    local rows, halves = Q.float_qparams_weight_only_qconfig(), Q.float_qparams_weight_only_qconfig_4bit()
    local function converted(qconfig)
        local prepared = Q.prepare(net, { qconfig = qconfig })
        t.is_true(tide.equal(prepared(index), net(index)), "until convert tables are floats")
        return Q.convert(prepared)
    end
    local function class_of(module) return getmetatable(module) end
    local small = converted { [nn.Embedding] = rows, bag = halves }
    t.is_true(class_of(small.words) == nn.quantized.Embedding and small.words.dtype == "quint8" and small.words.padding_idx == 2)
    t.is_true(class_of(small.bag) == nn.quantized.EmbeddingBag and small.bag.dtype == "quint4x2" and small.bag.mode == "sum")
    t.is_true(class_of(small.out) == nn.Linear and class_of(small.order) == nn.LSTM)
    t.is_true(tide.equal(small.words.weight, nn.quantized.Embedding.from_float(net.words).weight), "as from_float makes them")
    local away = (small(index) - net(index)):abs():max():item()
    t.is_true(away > 0 and away < 0.2, away)
    -- As all others: what a QConfig isn't for stays.
    local all = converted { default = rows }
    t.is_true(class_of(all.words) == nn.quantized.Embedding and class_of(all.bag) == nn.quantized.EmbeddingBag and class_of(all.out) == nn.Linear)
    local dynamic = converted { default = Q.default_dynamic_qconfig(), words = rows }
    t.is_true(class_of(dynamic.order) == nn.quantized.dynamic.LSTM and class_of(dynamic.out) == nn.quantized.dynamic.Linear)
    t.is_true(class_of(dynamic.words) == nn.quantized.Embedding and class_of(dynamic.bag) == nn.EmbeddingBag)
    local observed = Q.prepare(net)
    observed(index)
    local static = Q.convert(observed)
    t.is_true(class_of(static.words) == nn.Embedding and class_of(static.out) == nn.quantized.Linear and class_of(static.order) == nn.LSTM)
    -- One alone, and in one step.
    t.is_true(class_of(Q.convert(Q.prepare(net.words, { qconfig = rows }))[1]) == nn.quantized.Embedding)
    local quick = Q.quantize_dynamic(net, { qconfig = { [nn.Embedding] = rows, default = Q.QConfig() } })
    t.is_true(class_of(quick.words) == nn.quantized.Embedding and class_of(quick.bag) == nn.EmbeddingBag)
    t.is_true(class_of(quick.order) == nn.quantized.dynamic.LSTM and class_of(quick.out) == nn.quantized.dynamic.Linear)
    t.is_true(class_of(Q.quantize_dynamic(net).words) == nn.Embedding)
end)

t.test("tables_are_trained_until_they_are_converted", function()
    local Q, net, index = tide.quantization, reader(), tide.randint(1, 31, { 16, 5 })
    local trained = Q.prepare_qat(net, { qconfig = { default = Q.QConfig { activation = Q.MinMaxObserver }, bag = Q.float_qparams_weight_only_qconfig() } })
    local optimizer = tide.optim.SGD(trained:parameters(), { lr = 0.5 })
    trained(index):square():sum():backward()
    optimizer:step()
    local small = Q.convert(trained)
    t.is_true(getmetatable(small.bag) == nn.quantized.EmbeddingBag and getmetatable(small.out) == nn.quantized.Linear)
    local want = trained.bag.layer.weight
    t.is_true(not tide.equal(want, net.bag.weight) and (small.bag:dequantize() - want):abs():max():item() < 0.05)
end)

t.test("a_qconfig_by_name_is_one_for_the_layer", function()
    local Q, net = tide.quantization, reader()
    refused("'words' is of the class Embedding, which is not observed: a QConfig with replace expected, such as float_qparams_weight_only_qconfig()",
        Q.prepare, net, { qconfig = { words = Q.QConfig() } })
    refused("'order' is of the class LSTM, which is not observed: a QConfig with replace expected, such as default_dynamic_qconfig()",
        Q.prepare_qat, net, { qconfig = { [nn.LSTM] = Q.QConfig() } })
    refused("'out' is of the class Linear, which this QConfig does not replace", Q.prepare, net,
        { qconfig = { out = Q.float_qparams_weight_only_qconfig() } })
    refused("'words' is of the class Embedding", Q.quantize_dynamic, net, { qconfig = { words = Q.default_dynamic_qconfig() } })
    refused("option max_norm", function()
        Q.convert(Q.prepare(nn.Sequential(nn.Embedding(4, 4, { max_norm = 1 })), { qconfig = Q.float_qparams_weight_only_qconfig() }))
    end)
end)

t.test("what_does_not_fit_is_refused", function()
    local bag = nn.quantized.EmbeddingBag(7, 6)
    refused("index 8 is not a row from 1 to 7", bag, tide.tensor { { 1, 8 } })
    refused("indices count from 1", bag, tide.tensor { { 0, 1 } })
    refused("bag 1 begins at 5 and ends before 3 of 3", bag, tide.tensor { 1, 2, 3 }, tide.tensor { 5, 3 })
    refused("index has 2 dims", bag, tide.tensor { 1 })
    refused("per_sample_weights", bag, tide.tensor { 1, 2 }, tide.tensor { 1 }, tide.ones(3))
    refused("mode 'sum'", nn.quantized.EmbeddingBag(7, 6, { mode = "mean" }), tide.tensor { 1 }, tide.tensor { 1 }, tide.ones(1))
    refused('expected "sum" or "mean", got string "max"', nn.quantized.EmbeddingBag.from_float, nn.EmbeddingBag(7, 6, { mode = "max" }))
    refused("even number", nn.quantized.Embedding, 3, 5, { dtype = "quint4x2" })
    refused("padding_idx is not a row", nn.quantized.EmbeddingBag(7, 6, { padding_idx = 9 }), tide.tensor { { 1 } })
    refused("rows of 6 elements of 8 bits have 14 bytes, not 13", function()
        bag.weight = tide.zeros(7, 13, { dtype = tide.uint8 })
        bag(tide.tensor { { 1 } })
    end)
    refused("NaN or infinity", table_of, tide.full({ 2, 4 }, math.huge), "Embedding")
    refused("65504", table_of, tide.full({ 2, 4 }, 1e5), "Embedding", { dtype = "quint4x2" })
end)

t.finish()
