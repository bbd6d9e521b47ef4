-- load_library.lua: tide.load_library.
local tide = ...

return tide._function("load_library(str path) -> list",
    "Loads a shared library of operators written in C, as PyTorch's torch.ops.load_library does, and returns their names: "
    .. "from then on they are functions and methods like all others. It stays loaded.",
    function(path)
        if not string.find(path, "/", 1, true) then
            path = "./" .. path -- a name alone would be looked for where the system keeps its libraries
        end
        return tide._load_operators(tide, path)
    end)
