-- _nn_losses.lua: the losses of tide.nn, each a module around the function of the same meaning. Class
-- labels count from 1.
local tide = ...
local check = tide._check

local reductions = { mean = true, sum = true, none = true }

-- A loss loss(input, target) of a function with options by name.
local function loss(nn, name, fn, specs)
    specs[#specs + 1] = { "reduction", kind = "string", default = "mean" }
    local c = nn.class(name)
    function c:init(...)
        local options = check.arguments(name, specs, ...)
        if not reductions[options.reduction] then
            check.fail("%s: reduction must be \"mean\", \"sum\" or \"none\", got %s", name,
                check.describe(options.reduction))
        end
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
end

return function(nn)
    loss(nn, "CrossEntropyLoss", "cross_entropy", {
        { "weight", kind = "tensor", optional = true },
        { "ignore_index", kind = "integer", optional = true },
        { "label_smoothing", kind = "probability", default = 0 },
    })
    loss(nn, "NLLLoss", "nll_loss", {
        { "weight", kind = "tensor", optional = true }, { "ignore_index", kind = "integer", optional = true },
    })
    loss(nn, "MSELoss", "mse_loss", {})
    loss(nn, "L1Loss", "l1_loss", {})
    loss(nn, "SmoothL1Loss", "smooth_l1_loss", { { "beta", kind = "unsigned", default = 1 } })
    loss(nn, "BCELoss", "binary_cross_entropy", { { "weight", kind = "tensor", optional = true } })
    loss(nn, "BCEWithLogitsLoss", "binary_cross_entropy_with_logits", {
        { "weight", kind = "tensor", optional = true }, { "pos_weight", kind = "tensor", optional = true },
    })
end
