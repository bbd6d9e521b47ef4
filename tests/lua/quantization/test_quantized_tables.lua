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

local function refused(text, fn, ...)
    local ok, why = pcall(fn, ...)
    t.is_true(not ok and string.find(why, text, 1, true), text .. ": " .. tostring(why))
end

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
