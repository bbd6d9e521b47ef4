-- test_defaults.lua: arguments that are left out are what PyTorch's signatures say (tests/golden/ends/defaults.py), as far
-- as both have them by one name; dims and indices count from 1.
local t = require "harness"
local json = require "json"

-- "FUNCTION ARGUMENT": why Tide's is another.
local otherwise = {}

local function put(reason, ...)
    for _, name in ipairs { ... } do
        otherwise[name] = reason
    end
end

put("a number of the operator's own there", "* reduction", "* dtype", "* memory_format")
put("lists where they can be", "* foreach")
put("as nn.functional's", "embedding_bag mode", "bernoulli p")
put("none there is this one", "std correction", "var correction", "std_mean correction", "var_mean correction",
    "nan_to_num nan", "cdist compute_mode", "embedding padding_idx")
put("the older name of correction", "std unbiased", "var unbiased", "std_mean unbiased", "var_mean unbiased")
put("the last two dims", "linalg.matrix_norm dim")
put("false where a list can't hold nil", "optim.Adafactor eps")
put("counts from 1", "nn.CTCLoss blank", "nn.utils.weight_norm dim")
put("a number, or one for each group", "optim.lr_scheduler.ReduceLROnPlateau min_lr",
    "optim.lr_scheduler.OneCycleLR base_momentum", "optim.lr_scheduler.OneCycleLR max_momentum",
    "optim.lr_scheduler.CyclicLR base_momentum", "optim.lr_scheduler.CyclicLR max_momentum")

local root = debug.getinfo(1, "S").source:match("^@(.*)lua/") or "./"
local theirs = {}
for line in io.lines(root .. "golden/ends/defaults.jsonl") do
    local entry = json.read(line)
    theirs[entry.name] = entry.defaults
end

-- The arguments of a signature, "TYPE NAME=DEFAULT", with the brackets around options left out.
local function arguments(signature)
    local list, depth, from = {}, 0, 1
    local inner = signature:match("%((.*)%)%s*%->") or signature:match("%((.*)%)") or ""
    local before, options = inner:match("^(.-),? ?{([%a\"].*)}$") -- a list of defaults has no letters
    inner = options and (before == "" and options or before .. ", " .. options) or inner
    for at = 1, #inner + 1 do
        local c = inner:sub(at, at)
        depth = depth + ((c == "{" or c == "(") and 1 or (c == "}" or c == ")") and -1 or 0)
        if (c == "," and depth == 0) or at > #inner then
            local kind, name, value = inner:sub(from, at - 1):match("^%s*(.-)%s+([%w_]+)=(.*)$")
            if name then
                list[#list + 1] = { kind = kind, name = name, value = value }
            end
            from = at + 1
        end
    end
    return list
end

local function in_words(value, counts)
    if value == json.null then
        return "nil"
    elseif type(value) == "table" then
        local parts = {}
        for k, v in ipairs(value) do
            parts[k] = in_words(v, counts)
        end
        return "{" .. table.concat(parts, ", ") .. "}"
    elseif math.type(value) == "integer" and counts and value >= 0 then
        return tostring(value + 1)
    end
    return value == "inf" and "inf" or type(value) == "string" and ("%q"):format(value) or tostring(value)
end

-- Numbers are shown with six digits; one number stands for as many as there are dims; nothing for no dims.
local function same(ours, wanted)
    ours = ours:gsub("math%.huge", "inf")
    local a, b = tonumber(ours), tonumber(wanted)
    if a and b then
        return math.abs(a - b) <= 1e-5 * math.abs(b)
    elseif ours:find("^{") and (b or wanted:find("^{.")) then
        local each, list = true, wanted:gmatch("[^{}, ]+")
        for v in ours:gmatch("[^{}, ]+") do
            each = each and tonumber(v) == (b or tonumber(list()))
        end
        return each and (b or not list())
    end
    return ours == wanted or ours == "nil" and wanted == "{}"
end

local compared = 0

-- What an optimizer makes of a list that its signature leaves open.
local function made(name, value, argument)
    if not name:find("^optim%.%u") then
        return nil
    end
    local parameters = { tide.zeros(1, { requires_grad = true }) }
    local list = value(parameters).defaults[argument]
    return type(list) == "table" and ("{%s}"):format(table.concat(list, ", ")) or nil
end

local function compare(name, value)
    local wanted, doc = theirs[name], tide._doc(value)
    for _, a in ipairs(wanted and doc and doc.signature and arguments(doc.signature) or {}) do
        local there = wanted[a.name]
        if there and not otherwise[name .. " " .. a.name] and not otherwise["* " .. a.name] then
            compared = compared + 1
            local counts = a.kind:find("^dim") or a.kind:find("^index")
            local text = in_words(there.v, counts)
            if not same(a.value == "nil" and made(name, value, a.name) or a.value, text) then
                error(("%s: %s is %s by default, PyTorch's is %s"):format(name, a.name, a.value, text), 0)
            end
        end
    end
end

local function walk(prefix, holder)
    for name, value in pairs(holder) do
        if type(name) == "string" and not name:find("^_") and (type(value) == "function" or type(value) == "table") then
            t.test(prefix .. name, function() compare(prefix .. name, value) end)
        end
    end
end

for _, name in ipairs(tide._lazy) do
    assert(tide[name])
end
walk("", tide)
for _, name in ipairs { "nn", "linalg", "special", "optim", "autograd" } do
    walk(name .. ".", tide[name])
end
walk("nn.functional.", tide.nn.functional)
walk("nn.init.", tide.nn.init)
walk("nn.utils.", tide.nn.utils)
walk("optim.lr_scheduler.", tide.optim.lr_scheduler)

t.test("many_were_compared", function() t.is_true(compared > 900, compared) end)
