-- pretrained.lua: networks with published weights (tide.hub; those that are not there are left out), one thread, without gradients, as
-- functions and as scripted ones. With TIDE_BENCH_MODELS, a folder, they are written there as models of ONNX with their inputs, which
-- pretrained.py runs in onnxruntime.
local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local bench = dofile(here .. "bench.lua")
local root = here .. "../../notebooks/"
local folder = os.getenv "TIDE_BENCH_MODELS"
local one = { threads = 1, tolerance = 1e-3 }

local function sentences(n, words)
    return function()
        local net = dofile(root .. "models/minilm.lua").load()
        local ids, lengths = bench.ints({ n, words }, 1000, 20000), tide.full({ n }, words, { dtype = tide.int64 })
        return function(x) return (net:forward(x, lengths)) end, ids
    end
end

local function photograph()
    local net = dofile(root .. "models/efficientnet.lua").load()
    return function(x) return net:forward(x) end, bench.uniform { 1, 3, 224, 224 }
end

local function gpt(length)
    return function()
        tide.manual_seed(0)
        local net = dofile(root .. "networks/gpt.lua").new { tokens = 5000, width = 384, heads = 6, layers = 6, context = 128 }
        return function(x) return net:forward(x) end, bench.ints({ 1, length }, 0, 5000) + 1
    end
end

for _, row in ipairs { { "minilm_1", sentences(1, 16) }, { "minilm_32", sentences(32, 16) }, { "efficientnet_1", photograph }, { "gpt_1", gpt(64) } } do
    local name, make = table.unpack(row)
    local function inference(scripted)
        return function()
            local fn, x = make()
            fn = scripted and tide.jit.trace(fn, { x }, { check = false }) or fn
            return function()
                local _ <close> = tide.no_grad()
                return fn(x)
            end
        end
    end
    local there, fn, x = pcall(function()
        bench.seed(0)
        return make()
    end)
    if not there then
        io.stderr:write(name, ": ", (tostring(fn):gsub("\n.*", "")), "\n")
    else
        if folder then
            tide.onnx.export(fn, { x }, ("%s/%s.onnx"):format(folder, name), { input_names = { "x" } })
            tide.save({ x = x }, ("%s/%s.safetensors"):format(folder, name))
        end
        bench.made(name, inference(false), one)
        bench.made(name .. "_scripted", inference(true), one)
    end
end
