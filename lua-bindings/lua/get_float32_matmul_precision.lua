-- get_float32_matmul_precision.lua: tide.get_float32_matmul_precision, PyTorch's word for a switch of tide.backends.
local tide = ...

return tide._function("get_float32_matmul_precision() -> str",
    "\"highest\" where products of float32 are computed in float32 on CUDA too, \"high\" where they may be in TF32.",
    function() return tide.backends.cuda.matmul.allow_tf32 and "high" or "highest" end)
