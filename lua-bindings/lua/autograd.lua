-- autograd.lua: tide.autograd: gradients as values, functions with a gradient of one's own, checks of
-- gradients against differences, and what is derived from gradients.
local tide = ...
local raw, fail = tide._autograd, tide._fail
local autograd = {
    grad = raw.grad,
    backward = raw.backward,
    set_detect_anomaly = raw.set_detect_anomaly,
    detect_anomaly = raw.detect_anomaly,
    is_anomaly_enabled = raw.is_anomaly_enabled,
    graph = { saved_tensors_hooks = raw.saved_tensors_hooks },
}

for name, value in pairs(tide._require "autograd.function") do
    autograd[name] = value
end
for name, value in pairs(tide._require "autograd.check") do
    autograd[name] = value
end
autograd.functional = tide._require "autograd.functional"

tide._document(autograd.graph, "graph", "tide.autograd.graph", "saved_tensors_hooks.")
tide._document(autograd, "autograd", "tide.autograd",
    "grad, backward, Function, once_differentiable, gradcheck, gradgradcheck, functional, graph, "
        .. "detect_anomaly, set_detect_anomaly.")

return autograd
