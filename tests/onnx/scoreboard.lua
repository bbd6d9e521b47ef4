-- scoreboard.lua: runs the models of ONNX's own test data and compares what they give with what stands beside them.
--
--     tide tests/onnx/scoreboard.lua [FOLDER] [PATTERN] [--list]     FOLDER: /usr/share/libonnx-testdata/data
--
-- Each model is passed, refused (it names what Tide has not) or wrong (another answer, or an error of ours). Prints the counts, what is
-- refused by reason, and with --list every model that has not passed. Numbers agree within 1e-3 of each and 1e-7, which is ONNX's
-- own rule; random ones by dtype and shape.
local tide = require "tide"

local folder, pattern, list = "/usr/share/libonnx-testdata/data", "", false
do
    local given = {}
    for _, word in ipairs(arg or {}) do
        if word == "--list" then
            list = true
        else
            given[#given + 1] = word
        end
    end
    folder, pattern = given[1] or folder, given[2] or pattern
end

local RANDOM <const> = { "^test_bernoulli", "^test_training_dropout_default", "^test_training_dropout$", "^test_training_dropout_mask$" }

local function is_random(name)
    for _, one in ipairs(RANDOM) do
        if name:find(one) then
            return true
        end
    end
    return false
end

local function paths_of(command)
    local pipe = assert(io.popen(command))
    local paths = {}
    for line in pipe:lines() do
        paths[#paths + 1] = line
    end
    pipe:close()
    return paths
end

local function exists(path)
    local file = io.open(path)
    return file and file:close()
end

local function describe(x)
    if type(x) ~= "userdata" then
        return type(x)
    end
    return tostring(x.dtype) .. " " .. tostring(x.shape)
end

-- Why two values differ, or nil.
local function difference(got, want, random)
    if type(want) == "table" then
        if type(got) ~= "table" or #got ~= #want then
            return "a sequence of another length"
        end
        for k, x in ipairs(want) do
            local why = difference(got[k], x, random)
            if why then
                return why
            end
        end
        return nil
    elseif type(got) ~= "userdata" or got.dtype ~= want.dtype or tostring(got.shape) ~= tostring(want.shape) then
        return ("%s instead of %s"):format(describe(got), describe(want))
    elseif random or want:numel() == 0 then
        return nil
    end
    got, want = got:double(), want:double()
    local same = got:eq(want) | got:isnan() & want:isnan() | (got - want):abs():le(want:abs() * 1e-3 + 1e-7)
    if not same:all():item() then
        return ("%d of %d numbers differ"):format(same:logical_not():sum():item(), same:numel())
    end
end

local function read_all(set, what, ports)
    local values, n = {}, 0
    for k, port in ipairs(ports) do
        local path = ("%s/%s_%d.pb"):format(set, what, k - 1)
        if exists(path) then
            local kind = port.type:match "^sequence" and "sequence" or port.type == "value" and "optional" or "tensor"
            values[k], n = tide.onnx._read_value(path, kind), k
        end
    end
    return values, n
end

-- Data that contradict their model: its answers were made with an epsilon of 0.01 that the model does not have.
local CONTRADICTING <const> = { test_adam_multiple = true }

-- "passed", "refused" or "wrong", and why.
local function try(path)
    local model = tide.onnx.load(path)
    local name = path:match "([^/]+)/[^/]+$"
    for _, set in ipairs(paths_of("ls -d '" .. path:match "^(.*)/" .. "'/test_data_set_* 2>/dev/null")) do
        local inputs, n = read_all(set, "input", model.inputs)
        local outputs = table.pack(model(table.unpack(inputs, 1, n)))
        local wanted, count = read_all(set, "output", model.outputs)
        for k = 1, count do
            local why = difference(outputs[k], wanted[k], is_random(name))
            if why then
                return CONTRADICTING[name] and "contradicting" or "wrong", why
            end
        end
    end
    return "passed"
end

if not exists(folder) then
    print(("skipped: no '%s' (apt install libonnx-testdata)"):format(folder))
    os.exit(77)
end

local REFUSALS <const> = { "a dtype that Tide has not", "operators that are not there" }
local counts, reasons, told = { passed = 0, refused = 0, wrong = 0, contradicting = 0 }, {}, {}
for _, path in ipairs(paths_of("find '" .. folder .. "' -name model.onnx | sort")) do
    if path:find(pattern, 1, true) then
        local ok, verdict, why = pcall(try, path)
        if not ok then
            verdict, why = "wrong", tostring(verdict)
            for _, text in ipairs(REFUSALS) do
                verdict = why:find(text, 1, true) and "refused" or verdict
            end
        end
        counts[verdict] = counts[verdict] + 1
        if why then
            told[#told + 1] = ("%s %s: %s"):format(verdict, path:match "([^/]+)/[^/]+$", (why:gsub("\n.*", ""):gsub("^.-onnx[^']*'[^']*': ", "")))
            local reason = verdict == "refused" and (why:match "is (%w+), a dtype" or why:match "not there: (.*)")
            if reason then
                reasons[reason] = (reasons[reason] or 0) + 1
            end
        end
    end
end
if list then
    print(table.concat(told, "\n"))
end
local named = {}
for reason, count in pairs(reasons) do
    named[#named + 1] = ("%s %d"):format(reason, count)
end
table.sort(named)
local total = counts.passed + counts.refused + counts.wrong + counts.contradicting
print(("%d models: %d passed, %d refused (%s), %d whose data contradict them, %d wrong"):format(total, counts.passed, counts.refused,
    table.concat(named, ", "), counts.contradicting, counts.wrong))
os.exit(counts.wrong == 0 and counts.passed > 0)
