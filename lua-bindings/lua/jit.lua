local tide = ...
local jit = {}
jit._parse = tide._script.parse
return jit
