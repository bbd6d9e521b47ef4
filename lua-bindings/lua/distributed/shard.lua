-- distributed/shard.lua: a tensor that is a part of a larger one, with its place in it: what a rank holds of a parameter or
-- a state that several ranks share. Files (files/checkpoint.lua) keep it as such.
local tide = ...
local fail = tide._fail

local Shard = { __name = "Shard" }
Shard.__index = Shard
tide._class("Shard", Shard)

--- fits(x, shape, start): does x lie in a tensor of these sizes where it begins at `start` (from 1) in each dim?
function Shard.fits(x, shape, start)
    local ndim = x:dim()
    if type(shape) ~= "table" or type(start) ~= "table" or #shape ~= ndim or #start ~= ndim then
        return false
    end
    for d = 1, ndim do
        local size, first = math.tointeger(shape[d]), math.tointeger(start[d])
        if not size or not first or first < 1 or first - 1 + x:size(d) > size then
            return false
        end
    end
    return true
end

--- new(x, shape, start, name): one whose parts fit; the name is that of its tensor in a file, if it comes from one.
function Shard.new(x, shape, start, name)
    return setmetatable({ tensor = x, shape = shape, start = start, name = name }, Shard)
end

function Shard:__tostring()
    return string.format("Shard(%s of (%s) from (%s))", tostring(self.tensor.shape), table.concat(self.shape, ", "), table.concat(self.start, ", "))
end

--- overlap(shape, start, other_shape, other_start): where two parts of one whole meet: its first element and its sizes; nil
--- where they don't.
function Shard.overlap(shape, start, other_shape, other_start)
    local from, size = {}, {}
    for d = 1, #shape do
        from[d] = math.max(start[d], other_start[d])
        size[d] = math.min(start[d] + shape[d], other_start[d] + other_shape[d]) - from[d]
        if size[d] <= 0 then
            return nil
        end
    end
    return from, size
end

--- part(x, start, from, size): the elements of x, which begins at `start`, that lie in a box of the whole; a view.
function Shard.part(x, start, from, size)
    for d = 1, #size do
        x = x:narrow(d, from[d] - start[d] + 1, size[d])
    end
    return x
end

--- checked(fname, x, shape, start): one, or an error.
function Shard.checked(fname, x, shape, start)
    if x.layout ~= "strided" then
        fail("%s: a strided tensor expected", fname)
    end
    start = start or {}
    for d = 1, x:dim() do
        start[d] = start[d] or 1
    end
    if not Shard.fits(x, shape, start) then
        fail("%s: a tensor of shape %s does not lie in one of shape (%s) from (%s)", fname, tostring(x.shape), table.concat(shape, ", "),
            table.concat(start, ", "))
    end
    return Shard.new(x, table.move(shape, 1, #shape, 1, {}), table.move(start, 1, #start, 1, {}))
end

return Shard
