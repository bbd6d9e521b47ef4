-- _nn_losses.lua: the losses of tide.nn, each a module around the function of the same meaning. Class
-- labels count from 1.
local tide = ...

-- A loss loss(input, target) of a function with options by name: PARAMETERS and the reduction.
local function loss(nn, name, fn, parameters, doc)
    local read = tide._function(
        ('%s(%s"mean"|"sum"|"none" reduction="mean")'):format(name, parameters ~= "" and parameters .. ", " or ""), doc)
    local c = nn.class(name)
    function c:init(...)
        local options = read(...)
        rawset(self, "options", options)
        for _, field in ipairs { "weight", "pos_weight" } do
            if options[field] then
                self:register_buffer(field, options[field])
            end
        end
    end
    function c:forward(input, target)
        self.options.weight = rawget(self, "weight") -- they may have moved with the module
        self.options.pos_weight = rawget(self, "pos_weight")
        return tide[fn](input, target, self.options)
    end
    nn[name] = c
    tide._document(c, read)
end

return function(nn)
    loss(nn, "CrossEntropyLoss", "cross_entropy",
        "Tensor? weight=nil, int ignore_index=-100, number(0..1) label_smoothing=0",
        "Cross entropy of scores (N, C, ...) with classes that count from 1, or probabilities.")
    loss(nn, "NLLLoss", "nll_loss", "Tensor? weight=nil, int ignore_index=-100", "Negative log likelihood of classes.")
    loss(nn, "MSELoss", "mse_loss", "", "Squared error.")
    loss(nn, "L1Loss", "l1_loss", "", "Absolute error.")
    loss(nn, "SmoothL1Loss", "smooth_l1_loss", "number(0..) beta=1", "Absolute error, squared where it is small.")
    loss(nn, "BCELoss", "binary_cross_entropy", "Tensor? weight=nil", "Cross entropy of probabilities.")
    loss(nn, "BCEWithLogitsLoss", "binary_cross_entropy_with_logits", "Tensor? weight=nil, Tensor? pos_weight=nil",
        "Cross entropy of sigmoid(x).")
end
