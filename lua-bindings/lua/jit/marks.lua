-- jit/marks.lua: what a script has said of its functions: those that tide.jit.script leaves to Lua.
local marks = { ignored = setmetatable({}, { __mode = "k" }) }
return marks
