-- debugger: a look into functions: those that are running, at tide.breakpoint(), and those that were when an input
-- failed, by %debug: frames, locals, upvalues, expressions in a frame. Values are those of that moment.

local names = import "names"
local display = import "display"

local debugger = {}

local DEEPEST = 100 -- frames

local HELP = [[
c  goes on             q  %s     bt  all frames
u, d  a frame up, down (to what called it, back)
l  locals and upvalues     anything else: an expression, or statements, in the frame]]

local failed -- {message, frames} of the last input that did

local function say(text)
    write(text .. "\n")
end

local function title_of(info)
    if info.name then
        return info.namewhat .. " '" .. info.name .. "'"
    end
    return (info.what == "main" or is_input(info.func)) and "main chunk" or "function <" .. info.short_src .. ":" .. info.linedefined .. ">"
end

-- Names in order and values of a frame's variables, inner ones last; upvalues may be set.
local function variables_of(level, f)
    local list, values, setters = {}, {}, {}
    local function add(name, value, set)
        if string.find(name, "^[A-Za-z_][A-Za-z0-9_]*$") and name ~= "_ENV" and string.sub(name, 1, 2) ~= "__" then
            if not setters[name] then
                list[#list + 1] = name
            end
            values[name] = value
            setters[name] = set
        end
    end
    for i = 1, 255 do
        local name, value = debug.getupvalue(f, i)
        if not name then
            break
        end
        add(name, value, function(new) debug.setupvalue(f, i, new) end)
    end
    for i = 1, 250 do
        local name, value = debug.getlocal(level + 1, i)
        if not name then
            break
        end
        add(name, value, function() error("'" .. name .. "' is a local of a function that waits or has ended: it can't be set", 0) end)
    end
    return list, values, setters
end

-- The frames of Lua code from a level on, the innermost first; tide's own are left out.
local function frames_from(level)
    local frames = {}
    while #frames < DEEPEST do
        local info = debug.getinfo(level, "Slnf")
        if not info then
            return frames
        end
        if info.what ~= "C" and string.sub(info.source, 1, 6) ~= "=tide." then
            local list, values, setters = variables_of(level, info.func)
            frames[#frames + 1] = {title = title_of(info), place = info.short_src .. ":" .. info.currentline,
                source = info.source, line = info.currentline, list = list, values = values, setters = setters}
        end
        level = level + 1
    end
    return frames
end

local function line_of(frame)
    local n = 0
    for line in string.gmatch((source(frame.source) or "") .. "\n", "(.-)\n") do
        n = n + 1
        if n == frame.line then
            return string.match(line, "^%s*(.-)%s*$")
        end
    end
end

local function show_frame(frames, at)
    local frame = frames[at]
    say(frame.place .. ": in " .. frame.title)
    local line = line_of(frame)
    if line then
        say("    " .. line)
    end
end

local function show_variables(frame)
    for _, name in ipairs(frame.list) do
        local text = string.gsub(display.describe(frame.values[name], 60, true), "%s*\n%s*", " ")
        if names.is_tensor(frame.values[name]) then
            text = plain(frame.values[name])
        end
        say("  " .. name .. " = " .. string.gsub(text, "\n", "\n    "))
    end
    if #frame.list == 0 then
        say("  no locals")
    end
end

-- Where an expression finds its names: the frame's variables, then locals of inputs, then globals.
local function environment_of(frame)
    local visible, declared = locals()
    return setmetatable({}, {
        __index = function(_, name)
            if frame.setters[name] then
                return frame.values[name]
            elseif declared[name] then
                return visible[name]
            end
            return user[name]
        end,
        __newindex = function(_, name, value)
            if frame.setters[name] then
                frame.setters[name](value)
                frame.values[name] = value
            else
                user[name] = value
            end
        end,
    })
end

local function evaluate(frame, code)
    local environment = environment_of(frame)
    local chunk = load("return " .. code, "=(breakpoint)", "t", environment)
    local message
    if not chunk then
        chunk, message = load(code, "=(breakpoint)", "t", environment)
    end
    if not chunk then
        say(message)
        return
    end
    local results = table.pack(pcall(chunk))
    if not results[1] then
        say(type(results[2]) == "string" and results[2] or plain(results[2]))
        return
    end
    for i = 2, results.n do
        say(plain(results[i]))
    end
end

local commands = {}

function commands.u(frames, at)
    if at == #frames then
        say("this is the outermost frame")
        return at
    end
    show_frame(frames, at + 1)
    return at + 1
end

function commands.d(frames, at)
    if at == 1 then
        say("this is the innermost frame")
        return at
    end
    show_frame(frames, at - 1)
    return at - 1
end

function commands.l(frames, at)
    show_variables(frames[at])
    return at
end

function commands.bt(frames, at)
    for i, frame in ipairs(frames) do
        say((i == at and "> " or "  ") .. frame.place .. ": in " .. frame.title)
    end
    return at
end

function commands.h(frames, at)
    say(string.format(HELP, frames.ended and "leaves, too " or "ends the input"))
    return at
end

local ALIASES = {continue = "c", quit = "q", exit = "q", up = "u", down = "d", locals = "l", where = "bt", w = "bt",
                 help = "h", ["?"] = "h"}

-- Asks for lines until one goes on or quits (true); the end of the input goes on too.
local function converse(frames)
    local at = 1
    show_frame(frames, at)
    while true do
        write("debug> ")
        streams.flush(io.stdout)
        local line = io.read("l")
        line = line and string.match(line, "^%s*(.-)%s*$")
        local command = line and (ALIASES[line] or line)
        if not line or command == "c" then
            return false
        elseif command == "q" then
            return true
        elseif commands[command] then
            at = commands[command](frames, at)
        elseif line ~= "" then
            evaluate(frames[at], line)
        end
    end
end

-- tide.breakpoint()
function debugger.breakpoint()
    local frames = frames_from(3)
    if #frames == 0 then
        return
    end
    say("breakpoint (h: help)")
    if converse(frames) then
        error("ended at a breakpoint", 0)
    end
end

-- keep(message): the frames that stand at an error, for %debug. Called by the handler of errors.
function debugger.keep(message)
    local frames = frames_from(3)
    frames.ended = true
    if #frames > 0 then -- a wrong use of a magic has none
        failed = {message = message, frames = frames}
    end
end

-- forget(): what is kept is let go.
function debugger.forget()
    failed = nil
end

-- post_mortem(): what %debug does; false where nothing has failed.
function debugger.post_mortem()
    if not failed then
        return false
    end
    local message = type(failed.message) == "string" and failed.message or plain(failed.message)
    say(message .. "\npost mortem (h: help)")
    converse(failed.frames)
    return true
end

local automatic, seen -- %pdb; the failure that was looked at last

function debugger.is_automatic()
    return automatic or false
end

-- set_automatic(on): failures from now on are looked into at once, by who shows them.
function debugger.set_automatic(on)
    automatic, seen = on, failed
end

-- look_at_once(): what %debug does, of a failure that was not looked at yet, where that is wanted.
function debugger.look_at_once()
    if automatic and failed and failed ~= seen then
        seen = failed
        debugger.post_mortem()
    end
end

return debugger
