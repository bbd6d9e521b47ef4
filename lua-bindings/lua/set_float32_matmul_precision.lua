-- set_float32_matmul_precision.lua: tide.set_float32_matmul_precision, PyTorch's word for a switch of tide.backends.
local tide = ...

return tide._function("set_float32_matmul_precision(\"highest\"|\"high\"|\"medium\" precision)",
    "How products of float32 are computed on CUDA: \"highest\" in float32, the others in TF32, as "
    .. "tide.backends.cuda.matmul.allow_tf32 = true has it. The CPU computes in float32 always; tide.autocast takes bfloat16.",
    function(precision) tide.backends.cuda.matmul.allow_tf32 = precision ~= "highest" end)
