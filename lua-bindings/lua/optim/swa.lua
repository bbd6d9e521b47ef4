-- optim/swa.lua: tide.optim.swa_utils: averages of models over training.
local tide = ...
local fail, declare = tide._fail, tide._function
local swa = {}

-- ---- what an average becomes ----

swa.get_swa_avg_fn = declare("get_swa_avg_fn() -> function", "The equal average: f(average, parameter, n) -> average, of n models so far.",
    function()
        return function(average, parameter, n) return average + (parameter - average) / (n + 1) end
    end)
swa.get_ema_avg_fn = declare("get_ema_avg_fn(number(0..1) decay=0.999) -> function",
    "The average in which older models fade: f(average, parameter) -> average.", function(decay)
        return function(average, parameter) return decay * average + (1 - decay) * parameter end
    end)
-- The same over lists, in one pass over all parameters.
swa.get_swa_multi_avg_fn = declare("get_swa_multi_avg_fn() -> function",
    "The equal average of lists of tensors in place: f(averages, parameters, n).", function()
        return function(averages, parameters, n) tide.foreach.lerp_(averages, parameters, 1 / (n + 1)) end
    end)
swa.get_ema_multi_avg_fn = declare("get_ema_multi_avg_fn(number(0..1) decay=0.999) -> function",
    "The average of lists of tensors in place in which older models fade: f(averages, parameters).", function(decay)
        return function(averages, parameters) tide.foreach.lerp_(averages, parameters, 1 - decay) end
    end)

-- ---- AveragedModel ----

local AveragedModel = tide.nn.class("AveragedModel")
swa.AveragedModel = AveragedModel
local read = declare("AveragedModel(Module model, *, str? device=nil, function? avg_fn=nil, function? multi_avg_fn=nil, bool use_buffers=false)",
    "A copy of a model that averages its parameters: averaged:update_parameters(model) after each step or epoch; averaged(x) computes "
    .. "with the average. avg_fn(average, parameter, n) or multi_avg_fn(averages, parameters, n) says how; buffers are copied, or averaged "
    .. "too with use_buffers.")

function AveragedModel:init(...)
    local o = read(...)
    if o.avg_fn and o.multi_avg_fn then
        fail("AveragedModel: avg_fn or multi_avg_fn expected, got both")
    end
    self.module = o.model:clone()
    if o.device then
        self.module:to(o.device)
    end
    self:register_buffer("n_averaged", tide.tensor(0))
    rawset(self, "_average", o)
end

function AveragedModel:forward(...)
    return self.module(...)
end

-- Those that are averaged, and those that are copied.
local function parts_of(module, use_buffers)
    local averaged, copied = {}, {}
    for _, x in ipairs(module:parameters()) do
        averaged[#averaged + 1] = x
    end
    for _, x in ipairs(module:buffers()) do
        local list = use_buffers and x:is_floating_point() and averaged or copied
        list[#list + 1] = x
    end
    return averaged, copied
end

AveragedModel.update_parameters = declare("update_parameters(Module self, Module model)", "Take a model's parameters into the average.",
    function(self, model)
        local o, count = rawget(self, "_average"), self.n_averaged
        if type(o) ~= "table" or not tide.is_tensor(count) then
            fail("update_parameters: an AveragedModel expected, got %s", getmetatable(self).__name)
        end
        local n = count:item()
        local ours, our_buffers = parts_of(self.module, o.use_buffers)
        local theirs, their_buffers = parts_of(model, o.use_buffers)
        if #ours ~= #theirs then
            fail("update_parameters: the model has %d parameters, the average %d", #theirs, #ours)
        end
        tide.no_grad(function()
            for k, x in ipairs(theirs) do
                theirs[k] = x:detach():to(ours[k].device)
            end
            if n == 0 then
                for k, x in ipairs(theirs) do
                    ours[k]:copy_(x)
                end
            elseif o.avg_fn then
                for k, x in ipairs(theirs) do
                    ours[k]:copy_(o.avg_fn(ours[k]:detach(), x, n))
                end
            else
                local list = {}
                for k, x in ipairs(ours) do
                    list[k] = x:detach()
                end
                local average = o.multi_avg_fn or swa.get_swa_multi_avg_fn()
                average(list, theirs, n)
            end
            for k, x in ipairs(their_buffers) do
                our_buffers[k]:copy_(x)
            end
            count:add_(1)
        end)
    end)

tide._document(AveragedModel, "AveragedModel", tide._doc(read).signature, tide._doc(read).doc)
tide._document(swa, "swa_utils", "tide.optim.swa_utils", "Averages of models: AveragedModel, SWALR, update_bn.")

-- ---- the statistics of norms ----

local function norms_of(module, found)
    if rawget(module, "_kinds") and module._kinds.running_mean and module.running_mean then
        found[#found + 1] = module
    end
    for _, child in module:named_children() do
        norms_of(child, found)
    end
    return found
end

swa.update_bn = declare("update_bn(any loader, Module model, *, str? device=nil)",
    "Work out anew the running statistics of a model's norms: loader is a list of batches, or a function that gives one after the other; "
    .. "of a batch that is a list the first tensor is taken.", function(loader, model, device)
        local norms = norms_of(model, {})
        if #norms == 0 then
            return
        end
        if type(loader) ~= "table" and type(loader) ~= "function" then
            fail("update_bn: loader: a list of batches or a function expected, got %s", tide._describe(loader))
        end
        local training, momenta, at = model.training, {}, 0
        for k, norm in ipairs(norms) do
            momenta[k] = norm.momentum
            norm.running_mean:zero_()
            norm.running_var:fill_(1)
            norm.num_batches_tracked:zero_()
            norm.momentum = false -- the mean of all batches
        end
        local function restore()
            for k, norm in ipairs(norms) do
                norm.momentum = momenta[k]
            end
            model:train(training)
        end
        local _ <close> = setmetatable({}, { __close = restore })
        model:train()
        tide.no_grad(function()
            while true do
                at = at + 1
                local batch
                if type(loader) == "table" then batch = loader[at] else batch = loader() end
                if batch == nil then
                    return
                end
                local x = type(batch) == "table" and batch[1] or batch
                model(device and x:to(device) or x)
            end
        end)
    end)

return swa
