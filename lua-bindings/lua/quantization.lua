-- quantization.lua: tide.quantization: ranges of floats observed, floats rounded for training, and models whose
-- layers multiply bytes. What a quantized tensor is, the engine knows (engine/ops/quantized/README.md).
local tide = ...
local quantization = {}

tide._require("quantization.observers")(quantization)
tide._require("quantization.fake")(quantization)
tide._require("quantization.qconfig").open(quantization)
tide._require("quantization.workflow")(quantization)
tide._require("quantization.report").open(quantization)
tide._require("quantization.plan")(quantization)
tide._require("quantization.weights")(quantization)
for _, part in ipairs { "gptq", "smoothing", "equalization", "bias_correction" } do
    tide._require("quantization." .. part)(quantization)
end
tide._require("quantization.folding").open(quantization)

tide._document(quantization, "quantization", "tide.quantization",
    "Observers, fake quantization, and models in int8: quantize_dynamic; fuse_modules, prepare, prepare_qat, convert; report; and in fewer bits: "
    .. "quantize_weights, gptq, smooth, equalize, correct_bias.")

return quantization
