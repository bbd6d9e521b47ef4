-- foreach.lua: tide.foreach: operators over lists of tensors. foreach.add(list, ...) is add for each entry;
-- what is alike in a list runs at once. All pointwise operators are here by themselves (foreach.c).
local tide = ...
local foreach = tide._foreach()

foreach.norm = tide._function("norm(Tensor[] x, number ord=2) -> Tensor[]",
    "The vector norm of each tensor of a list.", tide._foreach_norm)

-- Is a bound, or each of a list of them, a number (true) or a tensor (false)? nil where a list has both.
local function is_number(bound)
    if type(bound) ~= "table" then
        return not tide.is_tensor(bound)
    end
    local first = not tide.is_tensor(bound[1])
    for _, value in ipairs(bound) do
        if tide.is_tensor(value) == first then
            return nil
        end
    end
    return first
end

-- Between two bounds, of which one may be missing, as clamp does it.
local function define_clamp(name, suffix)
    local inplace = suffix ~= ""
    local numbers, tensors = tide._foreach_clamp(true, inplace), tide._foreach_clamp(false, inplace)
    local above, below = foreach["clamp_min" .. suffix], foreach["clamp_max" .. suffix]
    foreach[name] = tide._function(name .. "(Tensor[] x, any min=nil, any max=nil) -> Tensor[]",
        "Each tensor of a list kept from min to max: numbers, tensors or lists of them.", function(list, min, max)
            if min == nil and max == nil then
                tide._fail("%s: min, max or both expected", name)
            elseif min == nil or max == nil then
                return min == nil and below(list, max) or above(list, min)
            end
            local low, high = is_number(min), is_number(max)
            if low and high then
                return numbers(list, min, max)
            elseif low == false or high == false then
                return tensors(list, min, max)
            end
            return below(above(list, min), max)
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
