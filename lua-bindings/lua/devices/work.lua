-- devices/work.lua: what `tide --ops --device NAME` prints: for each operator whether the device does all its work, or which
-- functions of a device (engine/core/backend.h) the CPU does instead.
local tide = ...
local fail, has_kernel = tide._fail, tide._cuda().has_kernel

local function lent_functions(device, functions)
    local lent = {}
    for name in string.gmatch(functions, "%S+") do
        local _, own = has_kernel(device, name)
        if not own then
            lent[#lent + 1] = name
        end
    end
    return lent
end

-- Lines for people: family, operator, where it runs; and a sum.
return function(device)
    local name = has_kernel(device, "")
    local kind, lists = string.match(name, "^%a+"), tide._require "devices.work_lists"
    local lines, own, ops = {}, 0, tide._ops()
    table.sort(ops, function(a, b)
        if a.family ~= b.family then
            return tide._before(a.family, b.family)
        end
        return tide._before(a.name, b.name)
    end)
    for _, op in ipairs(ops) do
        if not op.internal then
            local lent = lent_functions(device, lists[op.name] or fail("operator '%s' is not listed", op.name))
            own = own + (#lent == 0 and 1 or 0)
            lines[#lines + 1] = string.format("%s  %s  %s", op.family, op.name,
                #lent == 0 and kind or "cpu for " .. table.concat(lent, ", "))
        end
    end
    lines[#lines + 1] = string.format("%d of %d operators do all their work on %s", own, #lines, name)
    return lines
end
