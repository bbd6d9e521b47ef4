-- save.lua: tide.save.
local tide = ...

return tide._function("save(any object, str path)",
    "Write a nested table of tensors, numbers, strings and booleans (state_dict()s, step counts, Generators) to a "
    .. "safetensors file, whole or not at all.", function(object, path)
        if object == nil then
            tide._fail("save: object: a table or a tensor expected, got nil")
        end
        tide._archive_write(path, tide._checkpoint.flatten(object))
    end)
