-- calls.lua: makes lines (generate.lua), runs them and looks at what became of them.
--
--     tide calls.lua rounds SEED FIRST LAST UNTIL [FILE]    rounds of lines, each with a seed of its own, up to
--                                                           this time; every line goes into the file first
--     tide calls.lua replay FILE                            the lines of such a file
--
-- A finding is printed as `finding: WHAT` and `line: LINE`, a round that is over as numbers: its own, lines, those
-- refused, bytes of tensors that were still there at its end, functions that there are.
local here = arg[0]:match("^(.*)/") or "."
H = dofile(here .. "/hostile.lua")
local G = dofile(here .. "/generate.lua")
V = {}
local LINES = 400
local MOST_HELD = 1 << 20 -- bytes: what hostile.lua keeps, and no more

local shown = print
print = function() end -- the face's own output is nobody's here

-- ---- one line ----

-- A line by itself: V may be missing.
local function text_of(line)
    local text = ("(function(...) %s end)(%s)"):format(line.body, line.args)
    return line.keep > 0 and ("V[%d] = %s"):format(line.keep, text) or "local _ = " .. text
end

-- What a refused call must leave alone: the tensors among the arguments, as text.
local look
function look(x)
    if not tide.is_tensor(x) or not pcall(x.numel, x) or x:numel() > 100 then
        return ""
    end
    local parts = { tostring(x.shape), tostring(x.dtype), tostring(x.requires_grad) }
    if x.is_sparse then
        return table.concat(parts, " ") .. look(x:detach():_indices()) .. look(x:detach():_values())
    end
    local flat = x:detach():contiguous():view(-1):tolist()
    for k, v in ipairs(flat) do
        parts[k + 3] = tostring(v)
    end
    return table.concat(parts, " ")
end

local function look_at(args)
    local looks = {}
    for k = 1, args.n do
        looks[k] = look(args[k])
    end
    return looks
end

-- What is wrong with an error, if anything.
local function complaint(err, line)
    if type(err) ~= "string" then
        return err == nil and not line.body:find("error") and "an error without a message" or nil
    elseif err:find("[\1-\31\127]") then
        return "a message of several lines or with control characters: " .. err:sub(1, 300)
    elseif #err > 1300 then
        return "a message of " .. #err .. " characters"
    elseif err:find("(null)", 1, true) or err:find("Tide's own", 1, true) or err:find("internal error", 1, true) then
        return "a message that explains nothing: " .. err
    elseif line.declared and err:find("^tide%.[%w_]+:%d+:") and not err:find("stack overflow", 1, true)
        and not err:find("dead coroutine", 1, true) and not err:find("to 'fn'", 1, true) then -- a callback's own
        return "an error of Tide's own Lua, not of the caller: " .. err
    end
end

local NOTHING = { body = "", args = "", keep = 0 }
local calls, refused, found = 0, 0, 0

local function report(what, line)
    found = found + 1
    if found <= 20 then
        shown("finding: " .. what)
        shown("line: " .. text_of(line):gsub("\n", " "))
    end
end

local function run_line(line, careful)
    local make = load("return table.pack(" .. line.args .. ")", "=arguments")
    local chunk, message = load(line.body, "=line")
    if not make or not chunk then
        report("the generator made no Lua: " .. tostring(message), line)
        return
    end
    local made, args = pcall(make)
    if not made then
        return
    end
    local before = careful and look_at(args)
    local results = table.pack(pcall(chunk, table.unpack(args, 1, args.n)))
    calls = calls + 1
    if results[1] then
        if line.keep > 0 then
            V[line.keep] = results[2]
        end
        return
    end
    refused = refused + 1
    local what = complaint(results[2], line)
    if what then
        report(what, line)
    elseif careful and type(results[2]) == "string" and line.declared and not line.body:find("H.mined", 1, true) then
        for k, was in ipairs(before) do
            if was ~= look(args[k]) then
                report(("refused (%s), but argument %d was changed"):format(results[2], k), line)
            end
        end
    end
end

-- ---- rounds ----

local function collect_as(round)
    if round % 3 == 0 then
        collectgarbage("generational")
    elseif round % 3 == 1 then
        collectgarbage("incremental", 10, 4000, 4) -- a step at nearly every allocation
    else
        collectgarbage("incremental", 200, 100, 13)
    end
end

local function empty()
    for k = 1, 8 do
        V[k] = nil
    end
    collectgarbage("incremental", 200, 100, 13)
    collectgarbage()
    collectgarbage()
    return tide.memory_allocated()
end

local function run_round(seed, round, callees, trace)
    G.seed(seed * 1000003 + round)
    tide.manual_seed(round)
    collect_as(round)
    for k = 1, LINES do
        local line = G.line(callees)
        if trace then
            trace:write(text_of(line):gsub("\n", " "), "\n")
            trace:flush()
        end
        run_line(line, k % 4 == 0)
    end
    local held = empty()
    if not tide.is_grad_enabled() then
        report("a mode was left behind by round " .. round, NOTHING)
    end
    return held
end

local function run_rounds(seed, first, last, ends, trace)
    local callees = G.callees()
    for round = first, last do
        local held = run_round(seed, round, callees, trace)
        if held > MOST_HELD then
            report(("%d bytes of tensors are left at the end of round %d"):format(held, round), NOTHING)
        end
        shown(("round %d %d %d %d %d"):format(round, calls, refused, held, #callees))
        io.stdout:flush()
        if os.time() >= ends then
            break
        end
    end
    return found
end

local function replay(path)
    for text in io.lines(path) do
        local chunk = load(text, "=line")
        if chunk then
            pcall(chunk)
        end
    end
    empty()
    return 0
end

if arg[1] == "replay" then
    os.exit(replay(arg[2]), true)
end
local seed, first, last, ends = tonumber(arg[2]), tonumber(arg[3]), tonumber(arg[4]), tonumber(arg[5])
local trace = arg[6] and assert(io.open(arg[6], "w"))
os.exit(run_rounds(seed, first, last, ends, trace) > 0 and 3 or 0, true)
