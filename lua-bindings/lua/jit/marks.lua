-- jit/marks.lua: what a script has said of its functions: those that tide.jit.script leaves to Lua; and what a
-- ScriptFunction was compiled of, which scripts that call it compile again.
local marks = { ignored = setmetatable({}, { __mode = "k" }), scripted = setmetatable({}, { __mode = "k" }) }
return marks
