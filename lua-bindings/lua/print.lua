-- print.lua: tide.print: print as the prompt's, wherever a program runs.
local tide = ...

return tide._function("print(...)",
    "Print values as print does, but tables by what they hold, as at the prompt; Lua's own print shows a table's address in scripts.",
    function(...)
        (tide._print or print)(...) -- a plain Lua has no session that shows tables
    end)
