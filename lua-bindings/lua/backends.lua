-- backends.lua: tide.backends: switches of what devices compute with. They are tables that take the flags they
-- know, and nothing else.
local tide = ...
local fail, raw = tide._fail, tide._cuda()

-- A table of flags: `switches` names what the engine calls each.
local function flags(name, switches, doc)
    local names = {}
    for flag in pairs(switches) do
        names[#names + 1] = flag
    end
    table.sort(names)
    local function switch_of(key)
        local switch = switches[key]
        if not switch then
            fail("%s: no flag '%s': it has %s", name, tostring(key), table.concat(names, ", "))
        end
        return switch
    end
    local object = setmetatable({}, {
        __index = function(_, key) return raw.switch(switch_of(key)) end,
        __newindex = function(_, key, value)
            local switch = switch_of(key)
            if type(value) ~= "boolean" then
                fail("%s.%s: boolean expected, got %s", name, key, tide._describe(value))
            end
            raw.switch(switch, value)
        end,
        __pairs = function()
            local values = {}
            for flag, switch in pairs(switches) do
                values[flag] = raw.switch(switch)
            end
            return next, values
        end,
    })
    tide._document(object, name, "tide.backends." .. name, doc)
    return object
end

local backends = {
    cuda = { matmul = flags("cuda.matmul", { allow_tf32 = "tf32_products" },
        "allow_tf32: may products of float32 on CUDA be computed in TF32 (10 bits of mantissa, up to 8 times as fast)?") },
    cudnn = flags("cudnn", {
        allow_tf32 = "tf32_convolutions",
        benchmark = "cudnn_measures",
        deterministic = "cudnn_fixed",
        enabled = "cudnn",
    }, "allow_tf32: may convolutions of float32 on CUDA be computed in TF32? "
        .. "benchmark: does cuDNN time its algorithms at the first convolution of a shape, and keep the quickest? "
        .. "deterministic: only algorithms whose sums have one order. enabled: cuDNN, where it is installed."),
}

tide._document(backends, "backends", "tide.backends",
    "Switches of devices: cuda.matmul.allow_tf32; cudnn.allow_tf32, benchmark, deterministic, enabled.")

return backends
