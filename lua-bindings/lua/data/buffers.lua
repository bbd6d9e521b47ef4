-- data/buffers.lua: memory for batches that is used again when nobody holds what was made in it.
local tide = ...
local buffers = {}

local Buffers = { __name = "buffers" }
Buffers.__index = Buffers

local MOST = 16 -- that are kept: batches ahead, in use, and dropped since the script's last collection

--- new(pin, travels): pin: they lie in pinned memory; travels: batches go to another
--- state, and nobody holds them here when they have gone.
function buffers.new(pin, travels)
    return setmetatable({ pin = pin, travels = travels, kept = {} }, Buffers)
end

--- take(shape, dtype): a tensor, elements not written, in memory that no other tensor looks into.
function Buffers:take(shape, dtype)
    local kept = self.kept
    for k = 1, #kept do
        local buffer = kept[k]
        if buffer.dtype == dtype and buffer.shape == shape and tide._is_sole(buffer) then
            return self.travels and buffer or buffer:detach()
        end
    end
    local buffer = tide.empty(shape, { dtype = dtype })
    if self.pin then
        buffer = tide._cuda().pin_memory(buffer, "cuda")
    end
    kept[#kept + 1] = buffer
    if #kept > MOST then -- what is in use for long lives on without being kept
        table.remove(kept, 1)
    end
    return self.travels and buffer or buffer:detach()
end

--- pinned(value): the same with all its tensors in pinned memory; tables are changed in place.
function Buffers:pinned(value)
    if tide.is_tensor(value) then
        if tostring(value.device) ~= "cpu" or value:numel() == 0 or tide.cuda.is_pinned(value) then
            return value
        end
        return self:take(value.shape, value.dtype):copy_(value)
    elseif type(value) == "table" and getmetatable(value) == nil then
        for key, v in next, value do
            value[key] = self:pinned(v)
        end
    end
    return value
end

return buffers
