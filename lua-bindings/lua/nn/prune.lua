-- nn/prune.lua: nn.utils.prune: parameters of which a part is held at zero. The parameter goes on as name_orig, the buffer
-- name_mask says by 0 and 1 what stays, and the tensor of the name is their product before each forward.
local tide = ...
local fail, declare = tide._fail, tide._function

-- ---- how much ----

-- Half goes to the even number, as Python's round does.
local function round(x)
    local low = math.floor(x)
    local rest = x - low
    return (rest > 0.5 or rest == 0.5 and low % 2 == 1) and low + 1 or low
end

local function check_amount(what, amount)
    if type(amount) ~= "number" or amount < 0 or not math.type(amount) or math.type(amount) == "float" and not (amount <= 1) then
        fail("%s: amount: expected a share from 0.0 to 1.0 or a number of elements from 0 on, got %s", what, tide._describe(amount))
    end
    return amount
end

-- How many of `size` an amount is.
local function count_of(what, amount, size)
    local count = math.type(amount) == "integer" and amount or round(amount * size)
    if count > size then
        fail("%s: amount %d of %d that there are", what, count, size)
    end
    return count
end

-- ---- methods ----

-- The mask without the `count` places where scores are least.
local function without_least(scores, mask, count)
    local left = mask:contiguous():clone()
    if count > 0 then
        local _, places = scores:reshape(-1):topk(count, { largest = false })
        left:view(-1):index_fill_(1, places, 0)
    end
    return left
end

-- The mask of the `count` slices along dim where scores are least, times what was masked already.
local function without_slices(scores, mask, dim, count)
    local slices = without_least(scores, tide.ones(scores.shape, { dtype = mask.dtype, device = mask.device }), count)
    local sizes = {}
    for k = 1, mask:dim() do
        sizes[k] = k == dim and mask.shape[dim] or 1
    end
    return mask * slices:view(sizes)
end

-- The other dims than one, and the one counted from the front.
local function other_dims(what, x, dim)
    local place = dim < 0 and dim + x:dim() + 1 or dim
    if x:dim() < 2 then
        fail("%s: expected a tensor of two dims or more, got shape %s", what, tostring(x.shape))
    elseif place < 1 or place > x:dim() then
        fail("%s: dim %d is out of range for shape %s", what, dim, tostring(x.shape))
    end
    local others = {}
    for k = 1, x:dim() do
        others[#others + 1] = k ~= place and k or nil
    end
    return others, place
end

local function slice_norms(x, n, others)
    if (n == "fro" or n == "nuc") and #others == 2 then
        return tide.linalg.matrix_norm(x, { ord = n, dim = others })
    elseif n == "nuc" then
        fail('LnStructured: n "nuc" is the norm of matrices: slices have %d dims', #others)
    end
    return tide.linalg.vector_norm(x, { ord = n == "fro" and 2 or n, dim = others })
end

-- A class of methods: Class(...) makes one by init(self, ...), Class.apply(module, name, ...) makes and applies it.
local function make_class(name, definition, apply)
    local class = { __name = name, is_pruning_method = true, PRUNING_TYPE = definition.PRUNING_TYPE, compute_mask = definition.compute_mask,
        init = definition.init or function() end }
    class.__index = class
    class.__tostring = function() return "pruning method " .. name end
    local function new(_, ...)
        local method = setmetatable({}, class)
        method:init(...)
        return method
    end
    function class.apply(module, tensor_name, ...) return apply(module, tensor_name, new(class, ...)) end
    return setmetatable(class, { __call = new, __name = "class", __tostring = function() return "class " .. name end })
end

local DEFINITIONS = {
    Identity = { PRUNING_TYPE = "unstructured", compute_mask = function(_, _, mask) return mask:clone() end },
    CustomFromMask = { PRUNING_TYPE = "global", init = function(self, mask) self.mask = mask end,
        compute_mask = function(self, _, mask) return mask * self.mask:to(mask.dtype) end },
    RandomUnstructured = { PRUNING_TYPE = "unstructured",
        init = function(self, amount) self.amount = check_amount("RandomUnstructured", amount) end,
        compute_mask = function(self, t, mask)
            return without_least(tide.rand(t.shape, { device = t.device }), mask, count_of("RandomUnstructured", self.amount, t:numel()))
        end },
    L1Unstructured = { PRUNING_TYPE = "unstructured",
        init = function(self, amount) self.amount = check_amount("L1Unstructured", amount) end,
        compute_mask = function(self, t, mask) return without_least(t:abs(), mask, count_of("L1Unstructured", self.amount, t:numel())) end },
    RandomStructured = { PRUNING_TYPE = "structured",
        init = function(self, amount, dim) self.amount, self.dim = check_amount("RandomStructured", amount), dim or -1 end,
        compute_mask = function(self, t, mask)
            local _, dim = other_dims("RandomStructured", t, self.dim)
            return without_slices(tide.rand(t.shape[dim], { device = t.device }), mask, dim,
                count_of("RandomStructured", self.amount, t.shape[dim]))
        end },
    LnStructured = { PRUNING_TYPE = "structured",
        init = function(self, amount, n, dim) self.amount, self.n, self.dim = check_amount("LnStructured", amount), n, dim or -1 end,
        compute_mask = function(self, t, mask)
            local others, dim = other_dims("LnStructured", t, self.dim)
            return without_slices(slice_norms(t, self.n, others), mask, dim, count_of("LnStructured", self.amount, t.shape[dim]))
        end },
}

-- The mask of a method for what an earlier mask has left.
local function combine(method, scores, mask)
    if method.PRUNING_TYPE == "unstructured" then
        local left, combined = mask:eq(1), mask:clone()
        combined[left] = method:compute_mask(scores[left], mask[left]):to(mask.dtype)
        return combined
    elseif method.PRUNING_TYPE == "structured" then
        local others, dim = other_dims(tostring(method), mask, method.dim)
        local kept = mask:sum(others):ne(0):nonzero():reshape(-1)
        local part = method:compute_mask(scores:index_select(dim, kept), mask:index_select(dim, kept))
        return mask:index_copy(dim, kept, part:to(mask.dtype))
    end
    return method:compute_mask(scores, mask):to(mask.dtype)
end

local function check_method(what, method)
    if type(method) ~= "table" or not method.is_pruning_method then
        fail("%s: expected a pruning method such as prune.L1Unstructured, got %s", what, tide._describe(method))
    end
end

return function(nn, base, worked_out)
    local prune = {}

    -- Where the parts of a pruned tensor are.
    local function parts(name) return name .. "_orig", name .. "_mask" end

    -- The hook that works a pruned tensor out; nil: it is not pruned.
    local function hook_of(module, name)
        local key = worked_out.key_of("prune", name)
        return base.find_hook(module, function(hook) return hook.key == key end)
    end

    local function hold(module, name, mask)
        local original, kept = parts(name)
        module:register_buffer(kept, mask)
        local hook = hook_of(module, name)
        if hook then
            rawset(module, name, hook.compute(module))
            return module
        end
        local weight = worked_out.take(base, "prune", module, name)
        module:register_parameter(original, weight)
        return worked_out.install("prune", module, name, function(m) return m[kept]:to(m[original].dtype) * m[original] end)
    end

    -- The tensor of a name as it is by now, and its mask.
    local function state_of(module, name)
        local original, kept = parts(name)
        if hook_of(module, name) then
            return (module[original] * module[kept]):detach(), module[kept]
        end
        local weight = worked_out.check(base, "prune", module, name)
        return weight:detach(), tide.ones_like(weight)
    end

    local function apply(module, name, method, scores)
        local _ <close> = tide.no_grad()
        local value, mask = state_of(module, name)
        if scores and scores.shape ~= value.shape then
            fail("prune: importance_scores: expected the shape %s of %s, got %s", tostring(value.shape), name, tostring(scores.shape))
        end
        mask = combine(method, scores or value, mask:detach())
        tide.enable_grad(function() hold(module, name, mask) end)
        return module
    end

    prune.BasePruningMethod = declare("BasePruningMethod(str name, table definition) -> class",
        'A class of pruning methods of one\'s own: {PRUNING_TYPE = "unstructured"|"structured"|"global", compute_mask = function(self, t, '
        .. "default_mask) ... end, init = function(self, ...) ... end}. compute_mask gives ones and zeros of t's shape; unstructured it is asked "
        .. "for the elements that are left as a vector, structured for the slices of self.dim that are left. Class.apply(module, name, ...) "
        .. "prunes with Class(...).", function(name, definition)
            local kind = definition.PRUNING_TYPE
            if type(definition.compute_mask) ~= "function" then
                fail("BasePruningMethod: expected a function compute_mask(self, t, default_mask), got %s", tide._describe(definition.compute_mask))
            elseif kind ~= "unstructured" and kind ~= "structured" and kind ~= "global" then
                fail('BasePruningMethod: PRUNING_TYPE: expected "unstructured", "structured" or "global", got %s', tide._describe(kind))
            end
            return make_class(name, definition, apply)
        end)
    for name, definition in pairs(DEFINITIONS) do
        prune[name] = make_class(name, definition, apply)
    end
    local DOCS = { Identity = "Nothing is pruned.", CustomFromMask = "A mask of one's own: CustomFromMask(mask).",
        RandomUnstructured = "So many elements by chance: RandomUnstructured(amount).",
        L1Unstructured = "The elements nearest to zero: L1Unstructured(amount).",
        RandomStructured = "So many slices of a dim by chance: RandomStructured(amount, dim).",
        LnStructured = "The slices of a dim whose n-norms are least: LnStructured(amount, n, dim)." }
    for name, text in pairs(DOCS) do
        tide._document(prune[name], name, "tide.nn.utils.prune." .. name, text)
    end

    prune.identity = declare("identity(Module module, str name) -> Module", "Make the parameter one that is pruned, of nothing so far.",
        function(module, name) return apply(module, name, prune.Identity()) end)
    prune.random_unstructured = declare("random_unstructured(Module module, str name, number amount) -> Module",
        "Hold so many elements of a parameter at zero, by chance: amount is a share (a float from 0.0 to 1.0) or a number (an integer) of what "
        .. "is left. The parameter becomes name_orig, the buffer name_mask has ones where it stays.",
        function(module, name, amount) return apply(module, name, prune.RandomUnstructured(amount)) end)
    prune.l1_unstructured = declare("l1_unstructured(Module module, str name, number amount, *, Tensor? importance_scores=nil) -> Module",
        "Hold the elements of a parameter that are nearest to zero (or whose scores are least) at zero: a share (a float) or a number (an "
        .. "integer) of those left.", function(module, name, amount, scores) return apply(module, name, prune.L1Unstructured(amount), scores) end)
    prune.random_structured = declare("random_structured(Module module, str name, number amount, int dim) -> Module",
        "Hold so many slices of a dim at zero, by chance: a share (a float) or a number (an integer) of those left.",
        function(module, name, amount, dim) return apply(module, name, prune.RandomStructured(amount, dim)) end)
    prune.ln_structured = declare('ln_structured(Module module, str name, number amount, number|"fro"|"nuc" n, int dim, *, '
        .. "Tensor? importance_scores=nil) -> Module",
        "Hold the slices of a dim whose n-norms are least at zero: a share (a float) or a number (an integer) of those left.",
        function(module, name, amount, n, dim, scores) return apply(module, name, prune.LnStructured(amount, n, dim), scores) end)
    prune.custom_from_mask = declare("custom_from_mask(Module module, str name, Tensor mask) -> Module",
        "Hold at zero what a mask of zeros and ones, or of booleans, says.", function(module, name, mask)
            local value = state_of(module, name)
            if mask.shape ~= value.shape then
                fail("custom_from_mask: mask: expected the shape %s of %s, got %s", tostring(value.shape), name, tostring(mask.shape))
            end
            return apply(module, name, prune.CustomFromMask(mask))
        end)

    prune.global_unstructured = declare("global_unstructured(table parameters, any pruning_method, *, number amount, "
        .. "Tensor[]? importance_scores=nil) -> nothing",
        "Prune several parameters, a list of {module, name}, as if they were one vector: global_unstructured(list, prune.L1Unstructured, {amount = "
        .. "0.2}). importance_scores[k] belongs to parameters[k].", function(parameters, class, amount, scores)
            check_method("global_unstructured: pruning_method", class)
            if class.PRUNING_TYPE ~= "unstructured" then
                fail("global_unstructured: pruning_method: expected an unstructured one, got %s", tostring(class))
            end
            local values, masks, first = {}, {}, 1
            for k, entry in ipairs(parameters) do
                values[k], masks[k] = state_of(entry[1], entry[2])
                values[k], masks[k] = (scores and scores[k] or values[k]):reshape(-1), masks[k]:reshape(-1)
            end
            local mask = combine(class(amount), tide.cat(values), tide.cat(masks))
            for k, entry in ipairs(parameters) do
                local value, n = state_of(entry[1], entry[2]), masks[k]:numel()
                prune.custom_from_mask(entry[1], entry[2], mask:narrow(1, first, n):reshape(value.shape))
                first = first + n
            end
        end)

    prune.remove = declare("remove(Module module, str name) -> Module",
        "End the pruning of a parameter: it is the same tensor again, with zeros where it was pruned.", function(module, name)
            if not hook_of(module, name) then
                fail("remove: '%s' of %s is not pruned", name, getmetatable(module).__name)
            end
            local value = worked_out.remove(base, "prune", module, name)
            local original, kept = parts(name)
            local weight = module[original]
            worked_out.drop(base, module, original, kept)
            do
                local _ <close> = tide.no_grad()
                weight:copy_(value)
            end
            rawset(module, name, nil)
            module[name] = weight
            return module
        end)
    prune.is_pruned = declare("is_pruned(Module module) -> bool", "Is a parameter of the module, or of one in it, pruned?", function(module)
        for _, part in ipairs(module:modules()) do
            if base.find_hook(part, function(hook) return hook.key and string.find(hook.key, "^prune of ") end) then
                return true
            end
        end
        return false
    end)

    tide._document(prune, "prune", "tide.nn.utils.prune", "Parameters of which a part is held at zero: by size, by chance, by slices or by a mask.")
    nn.utils.prune = prune
end
