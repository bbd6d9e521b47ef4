-- help/examples.lua: what help shows of how a function is used. The examples are texts, a file for each room (examples/ROOM.txt):
--     ## NAME        what tide has under that name (nn.Linear, linalg.norm), an operator, a method (Tensor.item)
--     > an input     as one types it at the prompt
--     what it shows
-- A test runs them all and compares; it also knows of each public function that has none.
local tide = ...

local ROOMS = { "pointwise", "shapes", "create", "reduce", "index", "linalg", "neural", "sparse", "quantized", "base", "tensor", "nn", "optim",
    "objects", "foreach", "cuda", "data", "images", "distributed", "jit" }

local examples = {}
local texts -- by name, read when somebody asks

local function read_room(room)
    local name, lines
    for line in string.gmatch(tide._require("examples/" .. room .. ".txt"), "([^\n]*)\n") do
        local heading = string.match(line, "^## (%S+)$")
        if heading then
            name, lines = heading, {}
            texts[name] = lines
        else
            lines[#lines + 1] = line
        end
    end
end

--- all(): the texts by name.
function examples.all()
    if not texts then
        texts = {}
        for _, room in ipairs(ROOMS) do
            read_room(room)
        end
        for name, lines in pairs(texts) do
            texts[name] = string.gsub(table.concat(lines, "\n"), "\n+$", "")
        end
    end
    return texts
end

local function optimizer()
    return tide.optim.SGD { tide.zeros(1, { requires_grad = true }) }
end

-- Something that has the methods of a kind, made once.
local makers = {
    Tensor = function() return tide.empty(0) end,
    Module = function() return tide.nn.Identity() end,
    Optimizer = optimizer,
    Scheduler = function() return tide.optim.lr_scheduler.ConstantLR(optimizer()) end,
    GradScaler = function() return tide.amp.GradScaler() end,
    Generator = function() return tide.Generator() end,
    Group = function() return tide.distributed._classes.Group end,
    DistributedDataParallel = function() return tide._require "distributed.data_parallel" end,
    PipelineSchedule = function() return tide.distributed._classes.PipelineSchedule end,
    ZeroRedundancyOptimizer = function() return tide._require "distributed.zero_redundancy".methods end,
    Work = function() return tide.distributed._classes.Work end,
    CompiledFunction = function() return tide.compile(function(x) return x + 1 end) end,
    ScriptFunction = function() return tide.jit.trace(function(x) return x + 1 end, tide.ones(1), { check = false }) end,
}
local made = {}

-- What stands under a heading's name, or nil.
local function find(path)
    local kind, method = string.match(path, "^(%u%a+)%.([%w_]+)$")
    if makers[kind] then
        made[kind] = made[kind] or makers[kind]()
        return made[kind][method]
    end
    local value = tide
    for part in string.gmatch(path, "[^.]+") do
        local lazy = rawequal(value, tide) and rawget(tide, part) == nil
        if lazy and not pcall(function() return tide[part] end) then
            return nil
        end
        value = type(value) == "table" and rawget(value, part) or nil
    end
    return value
end

local function strip(name)
    return (string.gsub(name, "_$", ""))
end

-- An operator's is under its own name; in place and under other names it is the same.
local function of_operator(doc)
    local all, name = examples.all(), doc.name
    return all[name] or all[doc.alias_of or name] or all[strip(name)] or all[strip(doc.alias_of or name)]
end

-- Operators over lists have names of operators and descriptions of them.
local function of_list(value, doc)
    local lists = rawget(tide, "foreach")
    for name, member in next, lists or {} do
        if rawequal(member, value) then
            local all = examples.all()
            return all["foreach." .. name] or all["foreach." .. strip(name)] or all["foreach." .. strip(doc.name)]
        end
    end
end

--- find(name): what an example is of, or nil.
examples.find = find

--- of(value, doc): the example of a function or class that tide._doc describes, or nil.
function examples.of(value, doc)
    local found = doc and of_list(value, doc)
    if found or not doc then
        return found
    elseif doc.family then
        return of_operator(doc)
    end
    local tail = "%f[%w_]" .. string.gsub(strip(doc.name), "%p", "%%%0") .. "_?$"
    for name, text in pairs(examples.all()) do
        if string.find(name, tail) then
            local there = find(name)
            if there ~= nil and rawequal(there, value) then
                return text
            end
        end
    end
end

return examples
