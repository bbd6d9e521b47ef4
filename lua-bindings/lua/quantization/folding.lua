-- quantization/folding.lua: layers that are one when they are quantized: a batch norm folded into the weights before it, a
-- ReLU done by the layer before it; and the walk through a model that finds them.
local tide = ...
local fail = tide._fail
local nn = tide.nn
local tree = {}

--- What has weights to quantize.
tree.LAYERS = { nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d }
--- Those whose weight has its output channels as its second dim.
tree.TRANSPOSED = { nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d }
--- What takes means of bytes, and what hands bytes on with their parameters.
tree.MEANS = { nn.AvgPool1d, nn.AvgPool2d, nn.AvgPool3d, nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d }
tree.HANDED = table.move(tree.MEANS, 1, #tree.MEANS, 7, { nn.Identity, nn.Flatten, nn.ReLU, nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d })

function tree.is_a(module, class) return getmetatable(module) == class end

function tree.is_one_of(module, classes)
    for _, class in ipairs(classes) do
        if tree.is_a(module, class) then
            return true
        end
    end
    return false
end

-- The names of a module's children, in order.
local function names_of(module)
    local names = {}
    for name in module:named_children() do
        names[#names + 1] = name
    end
    return names
end

--- each(module, classes, change): change(parent, names, k) for every child of the classes, down the tree; each module once.
function tree.each(module, classes, change, seen)
    seen = seen or {}
    if seen[module] then
        return
    end
    seen[module] = true
    local names = names_of(module)
    for k, name in ipairs(names) do
        if tree.is_one_of(module[name], classes) then
            change(module, names, k)
        else
            tree.each(module[name], classes, change, seen)
        end
    end
end

--- next_of(parent, names, k): the place of what follows a part of a Sequential and does anything.
function tree.next_of(parent, names, k)
    for j = k + 1, tree.is_a(parent, nn.Sequential) and #names or k do
        if not tree.is_a(parent[names[j]], nn.Identity) then
            return j
        end
    end
    return nil
end

local NORMS = { Conv1d = "BatchNorm1d", Conv2d = "BatchNorm2d", Conv3d = "BatchNorm3d", Linear = "BatchNorm1d",
    ConvTranspose1d = "BatchNorm1d", ConvTranspose2d = "BatchNorm2d", ConvTranspose3d = "BatchNorm3d" }

-- The batch norm that may be folded into a layer. The weight of a transposed convolution of several groups has no dim of all channels.
local function norm_of(module)
    if tree.is_one_of(module, tree.TRANSPOSED) and module.groups > 1 then
        return nil
    end
    for layer, norm in pairs(NORMS) do
        if tree.is_a(module, nn[layer]) then
            return nn[norm]
        end
    end
    return nil
end

--- Is what follows a ReLU, or the batch norm of a layer?
function tree.has_relu(parent, names, k)
    local j = tree.next_of(parent, names, k)
    return j ~= nil and tree.is_a(parent[names[j]], nn.ReLU)
end
function tree.has_norm(parent, names, k)
    local j, norm = tree.next_of(parent, names, k), norm_of(parent[names[k]])
    return j ~= nil and norm ~= nil and tree.is_a(parent[names[j]], norm)
end

--- What follows, with nothing left in its place.
function tree.take_next(parent, names, k)
    local j = tree.next_of(parent, names, k)
    local module = parent[names[j]]
    parent[names[j]] = nn.Identity()
    return module
end

local function fold_norm(layer, norm)
    if tree.is_a(layer, nn.Linear) then
        return nn.utils.fuse_linear_bn_eval(layer, norm)
    end
    return nn.utils.fuse_conv_bn_eval(layer, norm, tree.is_one_of(layer, tree.TRANSPOSED))
end

--- fold(model): every batch norm behind its layer in a Sequential becomes part of the layer's weights, in place. In evaluation.
function tree.fold(model)
    tree.each(model, tree.LAYERS, function(parent, names, k)
        if tree.has_norm(parent, names, k) then
            parent[names[k]] = fold_norm(parent[names[k]], tree.take_next(parent, names, k))
        end
    end)
end

-- The parent of a part with a name such as "layer1.1.conv1", and its own name in there.
local function find_part(model, path)
    local parent, name = string.match(path, "^(.*)%.([^.]+)$")
    local ok, module = pcall(model.get_submodule, model, parent or "")
    if not ok or not nn.is(module[name or path] or false, nn.Module) then
        fail("fuse_modules: the model has no part '%s'", path)
    end
    return module, name or path
end

-- Modules in order as one: in evaluation a norm is folded, in training all stay, one behind the other.
local function join(modules, names, training)
    local list = table.move(modules, 1, #modules, 1, {})
    local norm = norm_of(list[1])
    local relu = #list > 1 and tree.is_a(list[#list], nn.ReLU) and table.remove(list) or nil
    if not norm or #list > 2 or (#list == 1 and not relu) or (list[2] and not tree.is_a(list[2], norm)) then
        fail("fuse_modules: a convolution or linear layer, then its batch norm, a ReLU or both expected, got %s", table.concat(names, ", "))
    end
    local layer = list[2] and not training and fold_norm(list[1], list[2]) or list[1]
    local parts = { layer, list[2] and training and list[2] or relu, list[2] and training and relu or nil }
    return #parts == 1 and layer or nn.Sequential(table.unpack(parts))
end

local function fuse(model, lists, training, inplace)
    local target = inplace and model or model:clone()
    for _, names in ipairs(type(lists[1]) == "table" and lists or { lists }) do
        local modules = {}
        for k, path in ipairs(names) do
            local parent, name = find_part(target, path)
            modules[k] = parent[name]
        end
        local joined = join(modules, names, training)
        for k, path in ipairs(names) do
            local parent, name = find_part(target, path)
            parent[name] = k == 1 and joined or nn.Identity()
        end
    end
    return target
end

function tree.open(quantization)
    local declare = tide._function
    quantization.fuse_modules = declare("fuse_modules(Module model, list modules_to_fuse, bool inplace=false) -> Module",
        "A model in evaluation whose named modules (a list of names, or of such lists: {{\"conv1\", \"bn1\", \"relu\"}}) are one: batch "
        .. "norms are folded into weights, the first name stands for all, the others do nothing.", function(model, lists, inplace)
            return fuse(model, lists, false, inplace)
        end)
    quantization.fuse_modules_qat = declare("fuse_modules_qat(Module model, list modules_to_fuse, bool inplace=false) -> Module",
        "The same for training: the first name stands for a Sequential of them, which prepare_qat makes one layer of.",
        function(model, lists, inplace) return fuse(model, lists, true, inplace) end)
end

return tree
