-- onnx/operators.lua: what operators of ONNX compute, by name: operator(call, inputs...) gives outputs. call has attributes, opset (the
-- version of the operators' set), outputs (how many are wanted), inputs (how many are given), and block(graph, inputs), which runs a
-- graph of an attribute. Families stand in files of their own.
local tide = ...
local operators = {}

for _, family in ipairs { "elementwise", "reductions", "shapes", "places", "windows", "networks", "quantized", "sequences", "training" } do
    for name, operator in pairs(tide._require("onnx." .. family)) do
        operators[name] = operator
    end
end
return operators
