-- backends.lua: tide.backends: switches of what devices compute with. They are tables that take the flags they
-- know, and nothing else.
local tide = ...
local fail, raw = tide._fail, tide._cuda()

-- `flag` is set for what the engine calls `use`.
local function flags(name, flag, use, doc)
    local function check(key)
        if key ~= flag then
            fail("%s: no flag '%s'", name, tostring(key))
        end
    end
    local object = setmetatable({}, {
        __index = function(_, key)
            check(key)
            return raw.allow_tf32(use)
        end,
        __newindex = function(_, key, value)
            check(key)
            if type(value) ~= "boolean" then
                fail("%s.%s: boolean expected, got %s", name, key, tide._describe(value))
            end
            raw.allow_tf32(use, value)
        end,
        __pairs = function() return next, { [flag] = raw.allow_tf32(use) } end,
    })
    tide._document(object, name, "tide.backends." .. name, doc)
    return object
end

local backends = {
    cuda = { matmul = flags("cuda.matmul", "allow_tf32", "matmul",
        "allow_tf32: may products of float32 on CUDA be computed in TF32 (10 bits of mantissa, up to 8 times as fast)?") },
    cudnn = flags("cudnn", "allow_tf32", "conv",
        "allow_tf32: may convolutions of float32 on CUDA be computed in TF32?"),
}

tide._document(backends, "backends", "tide.backends", "Switches of devices: cuda.matmul.allow_tf32, cudnn.allow_tf32.")

return backends
