-- save.lua: tide.save.
local tide = ...

return tide._function("save(any object, str path)",
    "Write a nested table of tensors, numbers, strings and booleans (state_dict()s, step counts, Generators) to a "
    .. "safetensors file, whole or not at all; one tensor for NumPy where the name ends in .npy.", function(object, path)
        if object == nil then
            tide._fail("save: object: a table or a tensor expected, got nil")
        end
        if path:find("%.npy$") then
            if not tide.is_tensor(object) then
                tide._fail("save: '%s': a file for NumPy holds one tensor, got %s", path, tide._describe(object))
            end
            return tide.io.save_npy(object, path)
        end
        tide._archive_write(path, tide._checkpoint.flatten(object))
    end)
