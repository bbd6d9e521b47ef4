-- save.lua: tide.save.
local tide = ...

return tide._function("save(any object, str path)",
    "Write a nested table of tensors, numbers, strings and booleans (state_dict()s, step counts, Generators) to a "
    .. "safetensors file, whole or not at all; for NumPy one tensor where the name ends in .npy, and a table of tensors "
    .. "by name where it ends in .npz.", function(object, path)
        if object == nil then
            tide._fail("save: object: a table or a tensor expected, got nil")
        end
        if string.find(path, "%.npy$") then
            if not tide.is_tensor(object) then
                tide._fail("save: '%s': a file for NumPy holds one tensor, got %s", path, tide._describe(object))
            end
            return tide.io.save_npy(object, path)
        elseif string.find(path, "%.npz$") then
            if type(object) ~= "table" then
                tide._fail("save: '%s': an archive for NumPy holds tensors by name, got %s", path, tide._describe(object))
            end
            return tide._require("files.numpy").save_archive(object, path, "save")
        end
        tide._archive_write(path, tide._require("files.checkpoint").flatten(object))
    end)
