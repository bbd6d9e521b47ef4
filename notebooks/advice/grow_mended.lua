-- grow_mended.lua: pieces are kept in a table and joined once.
local tide = require "tide"

tide.manual_seed(0)
local pieces = {}
for k = 1, 400 do
    pieces[k] = tide.rand(4, 256)
end
print(#tide.cat(pieces))
