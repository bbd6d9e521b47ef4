-- ipython: magics that people know from IPython: inputs edited, run or put up again, a look where an input fails, and
-- those that need nothing here, which say so. magics.lua calls it with what it has.

local debugger = import "debugger"

local ipython = {}

-- ---- inputs ----

-- Runs a text as an input would run; its values are those of the magic.
local function run_text(text, tools)
    return tools.compile("\n" .. text, "=(magic)")()
end

local function joined(items)
    local texts = {}
    for i, item in ipairs(items) do
        texts[i] = item[2]
    end
    return table.concat(texts, "\n")
end

-- Inputs by number, or the last one before this.
local function chosen_or_last(line, name, tools)
    local inputs = tools.remembered()
    local last = #inputs - 1
    local items = line ~= "" and tools.chosen(tools.words(line), name) or {line == "" and inputs[last] and {last, inputs[last]}}
    if #items == 0 then
        tools.usage("%s: there is no such input", name)
    end
    return items
end

local function offer(text, tools)
    local ok = pcall(tide.set_next_input, text)
    if not ok then -- a front end whose next input can't be set
        tools.say(text)
    end
end

-- The source of a Lua function, or nil.
local function source_of(value)
    local info = type(value) == "function" and debug.getinfo(value, "S")
    local text = info and info.what ~= "C" and source(info.source)
    local lines, n = {}, 0
    for line in string.gmatch((text or "") .. "\n", "(.-)\n") do
        n = n + 1
        if n >= (info and info.linedefined or 1) and n <= (info and info.lastlinedefined or 0) then
            lines[#lines + 1] = line
        end
    end
    return #lines > 0 and table.concat(lines, "\n") or nil
end

local function quoted(path)
    return "'" .. string.gsub(path, "'", "'\\''") .. "'"
end

local function edit_file(path, tools)
    local editor = os.getenv("VISUAL") or os.getenv("EDITOR") or "vi"
    local ok, _, code = os.execute(editor .. " " .. quoted(path))
    if not ok then
        tools.usage("%%edit: %s ended with %s", editor, tostring(code))
    end
    return tools.read_file(path, "%edit")
end

-- What a line of %edit asks for: a text to begin with, and the file where it stays, if it is one's own.
local function edited_text(line, tools)
    local value = string.find(line, "^[%a_][%w_]*$") and (rawget((locals()), line) or rawget(user, line))
    if line == "" then
        return ""
    elseif string.find(line, "^%d") then
        return joined(tools.chosen(tools.words(line), "%edit"))
    elseif value ~= nil then
        return source_of(value) or tools.usage("%%edit: there is no source of %s", line)
    end
    return nil, line
end

-- ---- the table of them ----

function ipython.install(define, tools)
    define("rerun", "%rerun [2-5 7]: runs inputs again, the last one without a number", function(line)
        local text = joined(chosen_or_last(line, "%rerun", tools))
        tools.say(text)
        return run_text(text, tools)
    end)
    define("recall", "%recall [3]: puts an input up again, to be changed; the last one without a number", function(line)
        offer(joined(chosen_or_last(line, "%recall", tools)), tools)
    end)
    define("rep", "%rep [3]: as %recall", function(line)
        offer(joined(chosen_or_last(line, "%rep", tools)), tools)
    end)
    define("hist", "%hist [2-5 7]: as %history", function(line) tools.run("history", line) end)

    define("edit", "%edit [3, a function or file.lua]: opens $EDITOR, and runs what it leaves; -x: without running it", function(line)
        local keep, rest = string.match(line, "^(%-x)%s*(.*)$")
        line = rest or line
        if tide._frontend().notebook then
            tools.usage("%%edit needs a terminal: %%recall puts an input into the next cell")
        end
        local text, path = edited_text(line, tools)
        local temporary = not path
        if temporary then
            path = os.tmpname()
            os.rename(path, path .. ".lua")
            path = path .. ".lua"
            tools.write_file(path, text, "%edit")
        end
        local _ <close> = tools.at_end(function()
            if temporary then
                os.remove(path)
            end
        end)
        local left = edit_file(path, tools)
        if not keep then
            return run_text(left, tools)
        end
    end)

    define("paste", "%paste: runs what the clipboard holds", function(line)
        if line ~= "" then
            tools.usage("%%paste takes no arguments")
        end
        for _, command in ipairs {"wl-paste -n", "xclip -selection clipboard -o", "xsel -b", "pbpaste"} do
            local pipe = io.popen(command .. " 2>/dev/null")
            local text = pipe and streams.read(pipe, "a") or ""
            if pipe and streams.close(pipe) and text ~= "" then
                tools.say(text)
                return run_text(text, tools)
            end
        end
        tools.usage("%%paste: no clipboard can be read (wl-paste, xclip, xsel and pbpaste are asked); pasting by the terminal's own "
            .. "key works with lines of any number")
    end)

    -- ---- where an input fails ----

    define("pdb", "%pdb [on|off]: whether an input that fails is looked into at once, as by %debug, in a terminal", function(line)
        if line == "failed" then -- asked by the terminal behind an input that failed
            debugger.look_at_once()
        elseif line == "on" or line == "1" then
            debugger.set_automatic(true)
        elseif line == "off" or line == "0" then
            debugger.set_automatic(false)
        elseif line == "" then
            debugger.set_automatic(not debugger.is_automatic())
        else
            tools.usage("%%pdb: on or off expected, got %s", line)
        end
        if line ~= "failed" then
            tools.say("automatic %debug is " .. (debugger.is_automatic() and "on" or "off"))
        end
    end)

    -- ---- not needed ----

    for name, why in pairs {
        matplotlib = "not needed: tide.plot draws in terminals and notebooks (?tide.plot)",
        pylab = "not needed: everything is in tide, and tide.plot draws",
        load_ext = "not needed: require loads modules, tide.magic.register adds magics; %time, %prof, %mem are there",
        reload_ext = "not needed: package.loaded[name] = nil lets require read a module anew",
        autoreload = "not there: package.loaded[name] = nil lets require read a module anew",
        tensorboard = "not here: tensorboard --logdir runs, in a shell, shows what tide.utils.tensorboard.SummaryWriter wrote",
        config = "not there: options are tide.set_printoptions, %precision, and what init.lua in ~/.config/tide sets",
        colors = "not there: NO_COLOR=1 in the environment switches colours off",
    } do
        define(name, "%" .. name .. ": " .. why, function() tools.say("%" .. name .. " is " .. why) end)
    end
end

-- Magics of IPython's that are not there, and what is written instead.
local INSTEAD = {
    prun = "%prof statement", lprun = "%prof statement, tide --bottleneck file.lua for its lines",
    memit = "%mem, tide.profiler.profile{fn, profile_memory = true}", mprun = "tide.profiler.profile{fn, profile_memory = true}",
    sx = "!command", system = "!command", sh = "%bash command", script = "%%bash", python = "!python3 file.py", python3 = "!python3 file.py",
    pip = "!pip install name, !luarocks install name", conda = "!conda install name", who_ls = "%who", xdel = "name = nil",
    reset_selective = "name = nil", pdoc = "?name", pdef = "?name", psource = "??name", pfile = "??name", psearch = "?tide.*conv*",
    loadpy = "%load file.lua", pycat = "%load file.lua", page = "print(value)", quickref = "help", magic = "%lsmagic",
    set_env = "%env NAME=value", cpaste = "%paste", store = "tide.save(value, path), tide.load(path)", macro = "%rerun 2-5, or a function",
    alias = "!command, or a function", tb = "%debug", xmode = "%debug", pushd = "%cd folder", popd = "%cd -", dhist = "%cd -",
    notebook = "%save file.lua 1-5", logstart = "%save file.lua", autocall = "f(x)",
}

-- instead(name): what to write for a magic of IPython's that is not there, or nil.
function ipython.instead(name)
    return INSTEAD[name]
end

return ipython
