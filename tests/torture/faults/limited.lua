-- limited.lua: work for a process that may have only so many addresses. Prints a line for each piece:
-- its name, and its value or the error.
local steps = {
    {"add", function(tide)
        return tide.ones(300, 300):add(1):sum():item()
    end},
    {"product", function(tide)
        return tide.ones(200, 200):matmul(tide.ones(200, 200)):sum():item()
    end},
    {"double", function(tide)
        return tide.ones(90, 90, {dtype = "float64"}):matmul(tide.ones(90, 90, {dtype = "float64"})):sum():item()
    end},
    {"large", function(tide)
        return tide.ones(4000, 4000):sum():item()
    end},
    {"list", function(tide)
        return #tide.ones(100000):tolist()
    end},
    {"handles", function(tide)
        local kept = {}
        for k = 1, 50000 do
            kept[k] = tide.ones(1)
        end
        return #kept
    end},
}
for k = 1, 12 do
    steps[#steps + 1] = {"conv" .. k, function(tide)
        local x, w = tide.ones(2, k, 20 + k, 20), tide.ones(4, k, 3, 3, {requires_grad = true})
        local y = tide.conv2d(x, w):sum()
        y:backward()
        return y:item() + w.grad:sum():item()
    end}
end

local good, tide = pcall(require, "tide")
if not good then
    print("require", tide)
    return
end
for _, step in ipairs(steps) do
    print(step[1], select(2, pcall(step[2], tide)))
end
