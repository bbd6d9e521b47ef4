-- test_quotients.lua: quotients that are rounded and remainders at zeros and infinities, as NumPy has them
-- (tests/golden/ends/generate.py), in all float dtypes, for tensors and numbers.
local t = require "harness"
local json = require "json"

local words = { nan = 0 / 0, inf = math.huge, ["-inf"] = -math.huge }

local function numbers(list)
    for k, v in ipairs(list) do
        list[k] = words[v] or v * 1.0
    end
    return list
end

-- Signs of zeros are compared in quotients; remainders of 0 have the dividend's, as in PyTorch.
local function same(a, b, signs) return a ~= a and b ~= b or a == b and (a ~= 0 or not signs or 1 / a == 1 / b) end

local ways = {
    floor_divide = { function(a, b) return a // b end, function(a, b) return tide.floor_divide(a, b) end,
        function(a, b) return tide.div(a, b, { rounding_mode = "floor" }) end },
    remainder = { function(a, b) return a % b end, function(a, b) return tide.remainder(a, b) end },
    fmod = { function(a, b) return tide.fmod(a, b) end },
    trunc_divide = { function(a, b) return tide.div(a, b, { rounding_mode = "trunc" }) end },
}

local root = debug.getinfo(1, "S").source:match("^@(.*)ops/") or "./"
for line in io.lines(root .. "golden/ends/quotients.jsonl") do
    local entry = json.read(line)
    local a, b, want = numbers(entry.a), numbers(entry.b), numbers(entry.r)
    for _, name in ipairs { "float64", "float32", "float16", "bfloat16" } do
        t.test(("%s_in_%s"):format(entry.op, name), function()
            local dtype = { dtype = tide[name] }
            local x, y = tide.tensor(a, dtype), tide.tensor(b, dtype)
            for w, way in ipairs(ways[entry.op]) do
                local got = way(x, y):double():tolist()
                local by_number = {}
                for k in ipairs(a) do
                    by_number[k] = way(tide.tensor({ a[k] }, dtype), b[k]):double():item()
                end
                for _, list in ipairs { got, by_number } do
                    for k, r in ipairs(want) do
                        if not same(list[k], r, entry.op:find("divide")) then
                            error(("way %d of %s and %s: got %s, expected %s"):format(w, a[k], b[k], list[k], r), 0)
                        end
                    end
                end
            end
        end)
    end
end
