-- backends.lua: tide.backends: switches of what devices compute with. They are tables that take the flags they
-- know, and nothing else.
local tide = ...
local fail = tide._fail

local function flags(name, values, doc)
    local object = setmetatable({}, {
        __index = function(_, key)
            if values[key] == nil then
                fail("%s: no flag '%s'", name, tostring(key))
            end
            return values[key]
        end,
        __newindex = function(_, key, value)
            if values[key] == nil then
                fail("%s: no flag '%s'", name, tostring(key))
            elseif type(value) ~= type(values[key]) then
                fail("%s.%s: %s expected, got %s", name, key, type(values[key]), tide._describe(value))
            end
            values[key] = value
        end,
        __pairs = function() return next, values end,
    })
    tide._document(object, name, "tide.backends." .. name, doc)
    return object
end

local backends = {
    cuda = { matmul = flags("cuda.matmul", { allow_tf32 = false },
        "allow_tf32: may products of float32 on CUDA be computed in TF32 (10 bits of mantissa, up to 8 times as fast)?") },
    cudnn = flags("cudnn", { allow_tf32 = true },
        "allow_tf32: may convolutions of float32 on CUDA be computed in TF32?"),
}

tide._document(backends, "backends", "tide.backends", "Switches of devices: cuda.matmul.allow_tf32, cudnn.allow_tf32.")

return backends
