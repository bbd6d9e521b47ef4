-- nn/reparam.lua: nn.utils.weight_norm and spectral_norm: a parameter that is worked out from others before each
-- forward. The others are the module's parameters, what is worked out is a plain field. nn/prune.lua shares the way.
local tide = ...
local fail, declare = tide._fail, tide._function
local matrix = tide._require "nn.matrix"
local norms, as_matrix, unit = matrix.norms, matrix.rows_of, matrix.unit

local function check(base, fname, module, name)
    base.refresh(module)
    return module._kinds[name] == "parameter" and rawget(module, name)
        or fail("%s: %s has no parameter '%s'", fname, getmetatable(module).__name, name)
end

-- The parameter of a name, taken out of the module, and the dim that is meant (nil: none).
local function take(base, fname, module, name, dim)
    local weight = check(base, fname, module, name)
    if dim and (dim == 0 or math.abs(dim) > weight:dim()) then
        fail("%s: dim %d is out of range for shape %s", fname, dim, tostring(weight.shape))
    end
    base.forget(module, name)
    rawset(module, name, nil)
    return weight, dim and (dim < 0 and dim + weight:dim() + 1 or dim)
end

local function key_of(fname, name) return fname .. " of " .. name end

local function install(fname, module, name, compute)
    local hook = module:register_forward_pre_hook(function(m) rawset(m, name, compute(m)) end)
    hook.key, hook.compute = key_of(fname, name), compute
    rawset(module, name, compute(module, true))
    return module
end

-- Ends it; returns the parameter's value by now.
local function remove(base, fname, module, name)
    local compute = base.remove_hook(module, key_of(fname, name))
    if not compute then
        fail("remove_%s: '%s' of %s has no %s", fname, name, getmetatable(module).__name, fname)
    end
    local value
    do
        local _ <close> = tide.no_grad()
        value = compute(module, true)
    end
    return value
end

local function drop(base, module, ...)
    for _, name in ipairs { ... } do
        base.forget(module, name)
        rawset(module, name, nil)
    end
end

local function restore(module, name, value)
    rawset(module, name, nil)
    module[name] = tide.nn.Parameter(value)
    return module
end

-- ---- weight norm ----

local function weight_norm(base, module, name, dim)
    local weight
    weight, dim = take(base, "weight_norm", module, name, dim)
    local g, v = name .. "_g", name .. "_v"
    module:register_parameter(g, tide.nn.Parameter(norms(weight:detach(), dim)))
    module:register_parameter(v, weight)
    return install("weight_norm", module, name,
        function(m) return m[v] * (m[g] / norms(m[v], dim)) end)
end

-- ---- spectral norm ----

local function iterate(matrix, u, v, count, eps)
    local _ <close> = tide.no_grad()
    for _ = 1, count do
        v:copy_(unit(matrix:t():mv(u), eps))
        u:copy_(unit(matrix:mv(v), eps))
    end
end

local function spectral_norm(base, module, name, count, eps, dim)
    local weight
    weight, dim = take(base, "spectral_norm", module, name,
        dim or matrix.output_dim(module))
    local original, left, right = name .. "_orig", name .. "_u", name .. "_v"
    local rows = as_matrix(weight:detach(), dim)
    local options = { dtype = weight.dtype, device = weight.device }
    module:register_parameter(original, weight)
    module:register_buffer(left, unit(tide.randn(rows.shape[1], options), eps))
    module:register_buffer(right, unit(tide.randn(rows.shape[2], options), eps))
    return install("spectral_norm", module, name, function(m, as_it_is)
        local own = as_matrix(m[original], dim)
        if m.training and not as_it_is then
            iterate(own, m[left], m[right], count, eps)
        end
        return m[original] / tide.dot(m[left]:clone(), own:mv(m[right]:clone()))
    end)
end

return function(nn, base)
    local utils = nn.utils
    utils.weight_norm = declare('weight_norm(Module module, str name="weight", int(0..) dim=1) -> Module',
        "Let length (name_g) and direction (name_v) of a parameter be parameters instead of it: one length for each "
        .. "place along dim, one for all at dim 0.",
        function(module, name, dim) return weight_norm(base, module, name, dim ~= 0 and dim or nil) end)
    utils.remove_weight_norm = declare('remove_weight_norm(Module module, str name="weight") -> Module',
        "End weight_norm: the parameter stays with the value that it has.", function(module, name)
            local value = remove(base, "weight_norm", module, name)
            drop(base, module, name .. "_g", name .. "_v")
            return restore(module, name, value)
        end)
    utils.spectral_norm = declare('spectral_norm(Module module, str name="weight", int(0..) n_power_iterations=1, '
        .. "number eps=1e-12, int? dim=nil) -> Module",
        "Divide a parameter (then name_orig) by its largest singular value, found step by step in training.",
        function(module, name, count, eps, dim) return spectral_norm(base, module, name, count, eps, dim) end)
    utils.remove_spectral_norm = declare('remove_spectral_norm(Module module, str name="weight") -> Module',
        "End spectral_norm: the parameter stays with the value that it has.", function(module, name)
            local value = remove(base, "spectral_norm", module, name)
            drop(base, module, name .. "_orig", name .. "_u", name .. "_v")
            return restore(module, name, value)
        end)
    return { check = check, take = take, install = install, remove = remove, drop = drop, key_of = key_of }
end
