-- foreach.lua: tide.foreach: operators over lists of tensors. foreach.add(list, ...) is add for each entry;
-- what is alike in a list runs at once. All pointwise operators are here by themselves (foreach.c).
local tide = ...
local foreach = tide._foreach()

foreach.norm = tide._function("norm(Tensor[] x, number ord=2) -> Tensor[]",
    "The vector norm of each tensor of a list.", function(list, ord)
        local norms = {}
        for k, x in ipairs(list) do
            if not tide.is_floating_point(x) then
                tide._fail("foreach.norm: entry %d: floats expected, got %s", k, tostring(x.dtype))
            end
            norms[k] = tide.linalg.vector_norm(x, ord)
        end
        return norms
    end)

-- Between two bounds, of which one may be missing, as clamp does it.
local function define_clamp(name, suffix)
    foreach[name] = tide._function(name .. "(Tensor[] x, any min=nil, any max=nil) -> Tensor[]",
        "Each tensor of a list kept from min to max: numbers, tensors or lists of them.", function(list, min, max)
            if min == nil and max == nil then
                tide._fail("%s: min, max or both expected", name)
            end
            list = min ~= nil and foreach["clamp_min" .. suffix](list, min) or list
            return max ~= nil and foreach["clamp_max" .. suffix](list, max) or list
        end)
end
define_clamp("clamp", "")
define_clamp("clamp_", "_")

foreach.zero = tide._function("zero(Tensor[] x) -> Tensor[]", "Zeros like each tensor of a list.", function(list)
    local zeros = {}
    for k, x in ipairs(list) do
        zeros[k] = tide.zeros_like(x)
    end
    return zeros
end)

foreach.copy = tide._function("copy(Tensor[] x, Tensor[] src) -> Tensor[]",
    "Each tensor of src with the shape and dtype of that of x.", function(list, src)
        if #list ~= #src then
            tide._fail("foreach.copy: list x has %d entries, list src has %d", #list, #src)
        end
        local copies = {}
        for k, x in ipairs(list) do
            copies[k] = tide.empty_like(x):copy_(src[k])
        end
        return copies
    end)

tide._document(foreach, "foreach", "tide.foreach",
    "Operators over lists of tensors: foreach.add(list, other), foreach.add_(list, other) and so on; every argument may "
    .. "be a list with an entry for each.")

return foreach
