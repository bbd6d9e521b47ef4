-- test_nn_shapes.lua: the shapes that help says of the modules of tide.nn are those of calls.
local t = require "harness"
local ops = debug.getinfo(1, "S").source:match("^@(.*)/lua/nn/") .. "/ops"
local texts = dofile(ops .. "/shape_texts.lua")
local calls = assert(loadfile(ops .. "/shape_calls.lua"))(texts)
local words = dofile(ops .. "/shape_words.lua")
local nn = tide.nn

-- ---- samples: {made of}, then what is called: a list of sizes is a tensor, a table of names options ----

local S = {}

local function all(names, ...)
    for name in names:gmatch("%S+") do
        S[name] = { ... }
    end
end

all("AlphaDropout CELU Dropout ELU GELU Hardsigmoid Hardswish Hardtanh Hardshrink Identity LeakyReLU LogSigmoid Mish PReLU "
    .. "RReLU ReLU ReLU6 SELU SiLU Sigmoid Softplus Softshrink Softsign Tanh Tanhshrink", { {}, { 2, 3 } }, { {}, {} })
all("Dropout1d Dropout2d Dropout3d FeatureAlphaDropout", { {}, { 2, 3, 4, 5 } })
all("Softmax LogSoftmax Softmin", { { 2 }, { 2, 3 } })
S.Threshold = { { { 0.1, 7 }, { 2, 3 } } }
S.GLU = { { {}, { 2, 4 } }, { { 1 }, { 4, 3 } } }
S.Softmax2d = { { {}, { 2, 3, 4, 5 } }, { {}, { 3, 4, 5 } } }
S.Linear = { { { 5, 3 }, { 2, 4, 5 } }, { { 5, 3, false }, { 5 } } }
S.Flatten = { { {}, { 2, 3, 4 } }, { { 1, 2 }, { 2, 3, 4 } } }
S.Unflatten = { { { 2, { 3, -1 } }, { 2, 6 } } }
S.Bilinear = { { { 3, 4, 5 }, { 2, 3 }, { 2, 4 } } }
S.Embedding = { { { 10, 3 }, { 2, 4, of = tide.int64 } } }
S.EmbeddingBag = { { { 10, 3 }, { 2, 4, of = tide.int64 } }, { { 10, 3 }, tide.tensor { 1, 2, 3 }, tide.tensor { 1, 3 } },
    { { 10, 3, { include_last_offset = true } }, tide.tensor { 1, 2, 3 }, tide.tensor { 1, 3, 4 } } }
S.CosineSimilarity = { { {}, { 2, 3 }, { 2, 3 } }, { { 1 }, { 3, 1 }, { 3, 4 } } }
S.PairwiseDistance = { { {}, { 2, 3 }, { 2, 3 } }, { { { keepdim = true } }, { 2, 3 }, { 3 } } }

-- convolution and windows
local lengths = { { 9 }, { 9, 8 }, { 9, 8, 7 } }

-- Of a lazy layer: the same calls, made without the first argument.
local function add_lazy(name)
    S["Lazy" .. name] = {}
    for k, sample in ipairs(S[name]) do
        S["Lazy" .. name][k] = { { table.unpack(sample[1], 2) }, table.unpack(sample, 2) }
    end
end
add_lazy "Linear"
for n = 1, 3 do
    local batch, one = { 2, 4, table.unpack(lengths[n]) }, { 4, table.unpack(lengths[n]) }
    local function of(name, ...) S[name .. n .. "d"] = { ... } end
    of("Conv", { { 4, 6, 3 }, batch }, { { 4, 6, 3, { padding = "same", groups = 2 } }, batch },
        { { 4, 6, 2, { stride = 2, padding = 1, dilation = 2, bias = false } }, one },
        { { 4, 6, 3, { padding = 1, padding_mode = "circular" } }, batch })
    of("ConvTranspose", { { 4, 6, 3 }, batch }, { { 4, 6, 3, { stride = 3, output_padding = 1, groups = 2, padding = 1 } }, one })
    of("MaxPool", { { 2 }, batch }, { { 3, { stride = 2, padding = 1, ceil_mode = true, return_indices = true } }, one })
    of("AvgPool", { { 2 }, batch }, { { 3, { stride = 2, padding = 1, ceil_mode = true } }, one })
    of("LPPool", { { 2, 3 }, batch }, { { 2, 2, { ceil_mode = true } }, batch })
    of("MaxUnpool", { { 2 }, batch, { sizes = batch, of = tide.int64 } })
    of("AdaptiveAvgPool", { { 3 }, batch }, { { 2 }, one })
    of("AdaptiveMaxPool", { { 3, { return_indices = true } }, batch })
    of("ZeroPad", { { 1 }, batch })
    of("ConstantPad", { { 1, 0.5 }, one })
    of("BatchNorm", { { 4 }, batch })
    of("InstanceNorm", { { 4, { affine = true, track_running_stats = true } }, batch }, { { 4 }, one })
    for name in ("Conv ConvTranspose BatchNorm InstanceNorm"):gmatch "%S+" do
        add_lazy(name .. n .. "d")
    end
    local pads = {}
    for k = 1, 2 * n do
        pads[k] = k
    end
    for name in ("ReflectionPad ReplicationPad CircularPad"):gmatch "%S+" do
        of(name, { { pads }, batch })
    end
end
S.BatchNorm1d[2] = { { 4 }, { 2, 4 } }
all("FractionalMaxPool2d", { { 2, { output_size = 3 } }, { 2, 4, 9, 8 } }, { { 2, { output_ratio = 0.5, return_indices = true } }, { 4, 9, 8 } })
all("FractionalMaxPool3d", { { 2, { output_ratio = { 0.5, 0.4, 0.6 } } }, { 2, 4, 9, 8, 7 } })
all("Upsample", { { { scale_factor = 2.5 } }, { 2, 3, 4, 5 } }, { { { 7 } }, { 2, 3, 4 } })
all("UpsamplingNearest2d UpsamplingBilinear2d", { { { 7, 9 } }, { 2, 3, 4, 5 } })
S.Unfold = { { { 2, { padding = 1, stride = 2 } }, { 2, 3, 6, 5 } }, { { 2 }, { 3, 6, 5 } } }
S.Fold = { { { { 4, 5 }, { 2, 3 } }, { 2, 18, 9 } } }
S.PixelShuffle, S.PixelUnshuffle = { { { 2 }, { 3, 8, 2, 3 } } }, { { { 2 }, { 3, 2, 4, 6 } } }
S.ChannelShuffle = { { { 2 }, { 2, 4, 3 } } }

-- norms
S.LayerNorm = { { { { 3, 4 } }, { 2, 3, 4 } }, { { 4, { elementwise_affine = false } }, { 4 } } }
S.RMSNorm = { { { { 3, 4 } }, { 2, 3, 4 } } }
S.GroupNorm = { { { 2, 4 }, { 2, 4, 5 } } }
S.LocalResponseNorm, S.CrossMapLRN2d = { { { 2 }, { 2, 4, 5 } } }, { { { 2 }, { 2, 4, 5, 6 } } }

-- recurrent layers and attention
for name in ("RNN GRU LSTM"):gmatch "%S+" do
    S[name] = { { { 3, 5 }, { 7, 2, 3 } }, { { 3, 5, 2, { bidirectional = true, batch_first = true } }, { 2, 7, 3 } },
        { { 3, 5 }, { 7, 3 } } }
    S[name .. "Cell"] = { { { 3, 5 }, { 2, 3 } }, { { 3, 5 }, { 3 } } }
end
table.insert(S.RNN, { { 3, 5 }, { 7, 2, 3 }, { 1, 2, 5 } })
table.insert(S.GRUCell, { { 3, 5 }, { 2, 3 }, { 2, 5 } })
table.insert(S.LSTM, { { 3, 5, { proj_size = 2 } }, { 7, 2, 3 } })
table.insert(S.LSTM, { { 3, 5 }, { 7, 2, 3 }, { list = { { 1, 2, 5 }, { 1, 2, 5 } } } })
S.MultiheadAttention = { { { 8, 2 }, { 5, 3, 8 }, { 6, 3, 8 }, { 6, 3, 8 } },
    { { 8, 2, { batch_first = true, kdim = 3, vdim = 4 } }, { 3, 5, 8 }, { 3, 6, 3 }, { 3, 6, 4 } },
    { { 8, 2 }, { 5, 8 }, { 6, 8 }, { 6, 8 } },
    { { 8, 2 }, { 5, 3, 8 }, { 6, 3, 8 }, { 6, 3, 8 }, { average_attn_weights = false, attn_mask = tide.zeros(5, 6),
        key_padding_mask = tide.zeros(3, 6) } } }
S.TransformerEncoderLayer = { { { 8, 2 }, { 5, 3, 8 } }, { { 8, 2, { batch_first = true } }, { 3, 5, 8 }, { src_mask = tide.zeros(5, 5) } },
    { { 8, 2 }, { 5, 8 } } }
S.TransformerDecoderLayer = { { { 8, 2 }, { 5, 3, 8 }, { 6, 3, 8 }, { memory_mask = tide.zeros(5, 6) } },
    { { 8, 2, { batch_first = true } }, { 3, 5, 8 }, { 3, 6, 8 } } }
S.TransformerEncoder = { { { nn.TransformerEncoderLayer(8, 2), 2 }, { 5, 3, 8 } } }
S.TransformerDecoder = { { { nn.TransformerDecoderLayer(8, 2), 2 }, { 5, 3, 8 }, { 6, 3, 8 } } }
S.Transformer = { { { 8, 2, 1, 1 }, { 6, 3, 8 }, { 5, 3, 8 } }, { { 8, 2, 1, 1, { batch_first = true } }, { 3, 6, 8 }, { 3, 5, 8 } } }

-- losses
local none = { reduction = "none" }
all("MSELoss L1Loss SmoothL1Loss HuberLoss BCEWithLogitsLoss KLDivLoss PoissonNLLLoss SoftMarginLoss HingeEmbeddingLoss",
    { {}, { 2, 3 }, { 2, 3 } }, { { none }, { 2, 3 }, { 2, 3 } })
S.BCELoss = { { {}, tide.rand(2, 3), tide.rand(2, 3) }, { { none }, tide.rand(2, 3), tide.rand(2, 3) } }
S.GaussianNLLLoss = { { { none }, { 2, 3 }, { 2, 3 }, tide.rand(2, 1) } }
S.CrossEntropyLoss = { { {}, { 2, 3 }, { 2, of = tide.int64 } }, { { none }, { 2, 3, 4 }, { 2, 4, of = tide.int64 } }, { {}, { 3 }, { 3 } },
    { { tide.ones(3), none }, { 2, 3 }, { 2, 3 } } }
S.NLLLoss = { { {}, { 2, 3 }, { 2, of = tide.int64 } }, { { none }, { 2, 3, 4 }, { 2, 4, of = tide.int64 } } }
S.CTCLoss = { { {}, { 5, 2, 4 }, { 2, 3, of = tide.int64 }, tide.tensor { 5, 5 }, tide.tensor { 2, 1 } },
    { { none }, { 5, 2, 4 }, { 2, 3, of = tide.int64 }, tide.tensor { 5, 5 }, tide.tensor { 2, 1 } } }
S.MarginRankingLoss = { { {}, { 2, 3 }, { 2, 3 }, { 2, 3 } }, { { none }, { 2, 3 }, { 2, 3 }, { 2, 3 } } }
S.CosineEmbeddingLoss = { { {}, { 2, 3 }, { 2, 3 }, { 2 } }, { { none }, { 2, 3 }, { 2, 3 }, { 2 } } }
all("TripletMarginLoss TripletMarginWithDistanceLoss", { {}, { 2, 3 }, { 2, 3 }, { 2, 3 } }, { { none }, { 2, 3 }, { 2, 3 }, { 2, 3 } })
S.MultiMarginLoss = { { { none }, { 2, 3 }, { 2, of = tide.int64 } }, { {}, { 3 }, { of = tide.int64 } } }
S.MultiLabelMarginLoss = { { { none }, { 2, 3 }, { 2, 3, of = tide.int64 } }, { {}, { 3 }, { 3, of = tide.int64 } } }
S.MultiLabelSoftMarginLoss = { { { none }, { 2, 3 }, { 2, 3 } }, { {}, { 3 }, { 3 } } }
S.AdaptiveLogSoftmaxWithLoss = { { { 32, 10, { 3, 6 } }, { 4, 32 }, { 4, of = tide.int64 } } }

-- What their texts explain in words.
local W = {
    Flatten = words.flatten, Unflatten = words.unflatten, Upsample = words.interpolate,
    UpsamplingNearest2d = words.interpolate, UpsamplingBilinear2d = words.interpolate,
    MultiheadAttention = { weights = function(a)
        local single, first = a.query.ndim == 2, a.batch_first and 2 or 1
        local sizes = { a.query.shape[single and 1 or first], a.key.shape[single and 1 or first] }
        if not a.average_attn_weights and a.average_attn_weights ~= nil then
            table.insert(sizes, 1, a.num_heads)
        end
        if not single then
            table.insert(sizes, 1, a.query.shape[a.batch_first and 1 or 2])
        end
        return sizes
    end },
}

-- ---- calls ----

local by_elements = { EmbeddingBag = true, AdaptiveLogSoftmaxWithLoss = true, FractionalMaxPool2d = true, FractionalMaxPool3d = true,
    CTCLoss = true, BCELoss = true }
local containers = { DataParallel = true, Sequential = true, ModuleList = true, ModuleDict = true, ParameterList = true, ParameterDict = true }

local function tensor_of(sample)
    if tide.is_tensor(sample) then
        return sample
    elseif sample.list then
        return { tensor_of(sample.list[1]), tensor_of(sample.list[2]) }
    elseif type(next(sample)) == "string" and not sample.of then
        return sample -- options
    end
    return tide.ones(sample.sizes or { table.unpack(sample) }, { dtype = sample.of or tide.float32 })
end

-- Are there tensors in it, or modules, that lie in the CPU's memory?
local function has_tensors(sample)
    for _, part in pairs(sample) do
        local inside = type(part) == "table" and not nn.is_module(part) and has_tensors(part)
        if inside or tide.is_tensor(part) or nn.is_module(part) then
            return true
        end
    end
    return false
end

-- Results as one list: a state may be a pair.
local function flattened(...)
    local list = {}
    for k = 1, select("#", ...) do
        local x = select(k, ...)
        for _, y in ipairs(type(x) == "table" and not tide.is_tensor(x) and x or { x }) do
            list[#list + 1] = y
        end
    end
    list.n = #list
    return list
end

-- A result of another shape.
local function changed(results, k, d)
    local sizes = { table.unpack(results[k].shape) }
    if d == 0 then
        table.insert(sizes, 1, 2)
    else
        sizes[d] = sizes[d] + 1
    end
    local other = { table.unpack(results) }
    other.n, other[k] = results.n, tide.empty(sizes, { device = "meta" })
    return other
end

local function check(name, doc, sample)
    local known, meanings = texts.parse(doc.shapes), W[name] or {}
    local module = nn[name](table.unpack(sample[1]))
    local args = {}
    for k = 2, #sample do
        args[k - 1] = tensor_of(sample[k])
    end
    local results = flattened(module(table.unpack(args)))
    calls.check_module(doc, known, module, sample[1], args, results, meanings)
    for k = 1, results.n do
        for d = 0, results[k].ndim do
            t.is_false(pcall(calls.check_module, doc, known, module, sample[1], args, changed(results, k, d), meanings),
                "holds for any shape: " .. doc.shapes)
        end
    end
end

for name, class in pairs(nn) do
    if type(class) == "table" and name:find "^%u" and class ~= nn.Module and not containers[name] then
        t.test(name .. "_says_its_shapes", function()
            local doc = tide._doc(class)
            t.is_true(doc.shapes, "no text of shapes")
            t.is_true(S[name], "no sample")
            for _, sample in ipairs(S[name]) do
                local _ <close> = tide.set_default_device((by_elements[name] or has_tensors(sample)) and "cpu" or "meta")
                check(name, doc, sample)
            end
        end)
    end
end

t.finish()
