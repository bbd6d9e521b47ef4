-- magics: the commands of the session that are written in Lua, and those that users register.
--
-- A magic is a function (arguments, body) that gets the rest of its line and, under %%, the lines
-- below it (else nil); what it returns is the value of the input. What it says is wrong in its use
-- is raised by `usage`, which shows no traceback.

local names = import "names"
local display = import "display"
local debugger = import "debugger"

local magics = {}

local registered = {} -- name -> {run, doc}

-- An error of the person who typed the line, not of code.
local function usage(format, ...)
    error(string.format(format, ...), 0)
end

local function say(text)
    write(text .. "\n")
end

local function define(name, doc, run)
    registered[name] = {run = run, doc = doc}
end

-- Words of a line; "quoted ones" may hold spaces.
local function words(line)
    local list, at = {}, 1
    while true do
        at = line:find("%S", at)
        if not at then
            return list
        end
        local quote = line:match("^[\"']", at)
        local stop = quote and line:find(quote, at + 1, true)
        if quote and not stop then
            usage("a quote is not closed: %s", line:sub(at))
        end
        stop = stop or (line:find("%s", at) or #line + 1) - 1
        list[#list + 1] = quote and line:sub(at + 1, stop - 1) or line:sub(at, stop)
        at = stop + 1
    end
end

-- A variable to be closed: runs f whatever happens.
local function at_end(f)
    return setmetatable({}, {__close = f})
end

local function one_word(line, name, what)
    local list = words(line)
    if #list ~= 1 then
        usage("%s: one %s expected, got %d", name, what, #list)
    end
    return list[1]
end

local function at_home(path)
    return (path:gsub("^~", os.getenv("HOME") or "~", 1))
end

local function read_file(path, name)
    local file, message = io.open(at_home(path), "rb")
    local text = file and file:read("a")
    if file then
        file:close()
    end
    return text or usage("%s: cannot read %s", name, message or path)
end

local function write_file(path, text, name)
    local file, message = io.open(at_home(path), "wb")
    local ok = file and file:write(text)
    local closed = file and file:close()
    if not (ok and closed) then
        usage("%s: cannot write %s", name, message or path)
    end
end

-- ---- names ----

-- What a session starts with is no user's name.
local own = {In = true, Out = true, arg = true, tide = true}
for name in next, standard do
    own[name] = true
end

local function user_names()
    local found = {}
    for name, value in next, user do
        if type(name) == "string" and not own[name] and name:sub(1, 1) ~= "_" then
            found[name] = {value = value, kind = "global"}
        end
    end
    for name, value in next, (locals()) do
        if name:sub(1, 1) ~= "_" then
            found[name] = {value = value, kind = "local"}
        end
    end
    local list = {}
    for name in next, found do
        list[#list + 1] = name
    end
    table.sort(list, before)
    return list, found
end

define("who", "%who: the names of this session's variables", function()
    local list = user_names()
    say(#list > 0 and table.concat(list, "  ") or "no variables")
end)

local function bytes_text(n)
    for _, unit in ipairs {"B", "KiB", "MiB", "GiB"} do
        if n < 1024 or unit == "GiB" then
            return string.format(unit == "B" and "%d %s" or "%.1f %s", n, unit)
        end
        n = n / 1024
    end
end

local function row_of(name, item)
    local value = item.value
    if names.is_tensor(value) then
        local sizes = {}
        for i, size in ipairs(value.shape) do
            sizes[i] = string.format("%d", size)
        end
        return {name, "tensor", (tostring(value.dtype):gsub("^tide%.", "")) .. " (" .. table.concat(sizes, ", ") .. ") "
            .. tostring(value.device), bytes_text(value.nbytes)}
    end
    local mt = names.meta(value)
    local class = mt and rawget(mt, "__name")
    local text = display.describe(value, 60, true):gsub("%s*\n%s*", " ")
    if utf8.len(text) and utf8.len(text) > 50 then
        text = text:sub(1, utf8.offset(text, 50) - 1) .. "…"
    end
    return {name, type(class) == "string" and class or math.type(value) or type(value), text, ""}
end

define("whos", "%whos: the variables with what they hold: shape, dtype, device, bytes", function()
    local list, found = user_names()
    local rows, widths = {{"name", "type", "value", "bytes"}}, {4, 4, 5, 5}
    for _, name in ipairs(list) do
        rows[#rows + 1] = row_of(name, found[name])
    end
    for _, row in ipairs(rows) do
        for i, text in ipairs(row) do
            widths[i] = math.max(widths[i], utf8.len(text) or #text)
        end
    end
    for _, row in ipairs(rows) do
        local line = {}
        for i, text in ipairs(row) do
            line[i] = text .. (" "):rep(widths[i] - (utf8.len(text) or #text))
        end
        say((table.concat(line, "  "):gsub("%s+$", "")))
    end
end)

define("reset", "%reset: forgets all variables, values and inputs' locals", function()
    for _, name in ipairs((user_names())) do
        rawset(user, name, nil)
    end
    for name in next, rawget(user, "Out") or {} do
        user.Out[name] = nil
    end
    rawset(user, "_", nil)
    rawset(user, "__", nil)
    forget_locals()
    debugger.forget()
    collectgarbage()
end)

-- ---- inputs ----

-- "3", "2-5": inputs by number; nothing: all.
local function chosen(line, name)
    local inputs, list = rawget(user, "In"), {}
    if type(inputs) ~= "table" then
        usage("%s: In is not the session's table any more", name)
    end
    local ranges = words(line)
    for _, range in ipairs(#ranges > 0 and ranges or {"1-" .. #inputs}) do
        local first, last = range:match("^(%d+)%-?(%d*)$")
        if not first then
            usage("%s: a number or a range such as 2-5 expected, got %s", name, range)
        end
        for i = tonumber(first), tonumber(last) or tonumber(first) do
            if inputs[i] then
                list[#list + 1] = {i, inputs[i]}
            end
        end
    end
    return list
end

define("history", "%history [2-5 7]: the inputs of this session", function(line)
    for _, item in ipairs(chosen(line, "%history")) do
        say(string.format("%4d: %s", item[1], (item[2]:gsub("\n", "\n      "))))
    end
end)

define("save", "%save file.lua [2-5 7]: writes inputs to a file, magics left out", function(line)
    local path, rest = line:match("^(%S+)%s*(.*)$")
    if not path then
        usage("%%save: a file expected")
    end
    local texts = {}
    for _, item in ipairs(chosen(rest, "%save")) do
        if not item[2]:find("^%s*[%%?!]") and not item[2]:find("?%s*$") then
            texts[#texts + 1] = item[2]
        end
    end
    write_file(path, table.concat(texts, "\n") .. "\n", "%save")
    say(string.format("%d inputs in %s", #texts, path))
end)

define("load", "%load file.lua: shows a file's text", function(line)
    say((read_file(one_word(line, "%load", "file"), "%load"):gsub("\n$", "")))
end)

define("run", "%run file.lua arguments: runs a file as a script; its globals stay", function(line)
    local list = words(line)
    local path = list[1] or usage("%%run: a file expected")
    read_file(path, "%run")
    local chunk, message = loadfile(at_home(path), "t")
    if not chunk then
        error(message, 0)
    end
    local outer = rawget(user, "arg")
    local _ <close> = at_end(function() rawset(user, "arg", outer) end)
    rawset(user, "arg", {[0] = path, table.unpack(list, 2)})
    chunk(table.unpack(list, 2))
end)

-- ---- the system ----

-- Runs a command, what it writes among what we write; its lines too when `keeps`.
local function shell(command, keeps)
    local pipe, message = io.popen(command .. " 2>&1", "r")
    if not pipe then
        usage("cannot run: %s", message)
    end
    local lines = {}
    for line in pipe:lines() do
        if keeps then
            lines[#lines + 1] = line
        else
            say(line)
        end
    end
    local ok, how, code = pipe:close()
    if not ok and not keeps then
        say(string.format("(%s %d)", how == "signal" and "ended by signal" or "exit status", code))
    end
    return lines
end
magics.shell = shell

define("ls", "%ls [what]: lists files", function(line) shell("ls -C " .. line) end)
define("pwd", "%pwd: the working directory", function() return working_directory() end)
define("cd", "%cd [folder]: changes the working directory", function(line)
    local path = line == "" and "~" or one_word(line, "%cd", "folder")
    local message = change_directory(at_home(path))
    if message then
        usage("%%cd: %s", message)
    end
    return working_directory()
end)
define("env", "%env [NAME]: variables of the environment", function(line)
    if line == "" then
        shell("env | sort")
        return
    end
    return os.getenv(one_word(line, "%env", "name"))
end)
define("lines_of", "files = !command: the lines that a command writes, as a table", function(line)
    return shell(line, true)
end)
define("bash", "%%bash above lines of a shell, or %bash command: runs them", function(line, body)
    if not body then
        shell(line)
        return
    end
    local path = os.tmpname()
    write_file(path, body, "%%bash")
    local _ <close> = at_end(function() os.remove(path) end)
    shell("bash " .. line .. " " .. path)
end)
define("file", "%%file name above lines: writes them to a file", function(line, body)
    if not body then
        usage("%%%%file stands above the lines that it writes")
    end
    local path = one_word(line, "%%file", "file")
    write_file(path, body, "%%file")
    say(string.format("%d bytes in %s", #body, path))
end)

-- ---- tide ----

define("mem", "%mem: memory of tensors and of Lua", function()
    local tide = names.tide()
    collectgarbage()
    say("tensors: " .. bytes_text(tide.memory_allocated()))
    say("Lua:     " .. bytes_text(math.floor(collectgarbage("count") * 1024)))
end)

define("threads", "%threads [n]: how many threads kernels use", function(line)
    local tide = names.tide()
    if line ~= "" then
        local n = math.tointeger(tonumber(line))
        if not n or n < 1 then
            usage("%%threads: a number from 1 on expected, got %s", line)
        end
        tide.set_num_threads(n)
    end
    return tide.get_num_threads()
end)

define("precision", "%precision [n]: digits of printed tensors after the point; without n as at the start", function(line)
    local n = math.tointeger(tonumber(line))
    if line ~= "" and not (n and n >= 0 and n <= 17) then
        usage("%%precision: a number from 0 to 17 expected, got %s", line)
    end
    names.tide().set_printoptions({precision = n or 4})
end)

define("capture", "%%capture name above lines: what they print becomes a text of that name", function(line, body)
    if not body then
        usage("%%%%capture stands above the lines whose output it keeps")
    end
    local name = line == "" and "_captured" or one_word(line, "%%capture", "name")
    if not name:find("^[A-Za-z_][A-Za-z0-9_]*$") then
        usage("%%%%capture: a name expected, got %s", name)
    end
    local run = compile("\n" .. body)
    local file, print_before, output_before = io.tmpfile(), rawget(user, "print"), io.output()
    local _ <close> = at_end(function()
        rawset(user, "print", print_before)
        io.output(output_before)
        file:seek("set")
        rawset(user, name, file:read("a"))
        file:close()
    end)
    io.output(file)
    rawset(user, "print", function(...)
        local texts = table.pack(...)
        for i = 1, texts.n do
            texts[i] = tostring(texts[i])
        end
        file:write(table.concat(texts, "\t"), "\n")
    end)
    run()
end)

define("prof", "%prof statement, or %%prof above a cell: where the time goes", function(line, body)
    local tide = names.tide()
    say(tostring(tide.profiler.profile(compile("\n" .. (body or line)))))
end)

define("trace", "%trace file.json statement: records it as a Chrome trace", function(line, body)
    local path, code = line:match("^(%S+)%s*(.*)$")
    if not path or (code == "" and not body) then
        usage("%%trace: a file and a statement expected")
    end
    local run = compile("\n" .. (body or code))
    names.tide().profiler.profile(run):export_chrome_trace(at_home(path))
    say("written to " .. path)
end)

define("debug", "%debug: a look into the functions that were running when the last input failed", function(line)
    if line ~= "" then
        usage("%%debug takes no arguments")
    elseif not debugger.post_mortem() then
        usage("%%debug: no input has failed yet")
    end
end)

-- ---- the table of them ----

-- run(name, arguments, body): runs a magic; false: there is none of that name.
function magics.run(name, arguments, body)
    local found = registered[name]
    if not found then
        return false
    end
    return true, found.run(arguments, body)
end

function magics.known(name)
    return registered[name] ~= nil
end

function magics.doc(name)
    return registered[name] and registered[name].doc
end

function magics.list()
    local list = {}
    for name in next, registered do
        if name ~= "lines_of" then -- written with an exclamation mark
            list[#list + 1] = name
        end
    end
    table.sort(list, before)
    return list
end

-- lines(): a line of help for each.
function magics.lines()
    local out = {}
    for i, name in ipairs(magics.list()) do
        out[i] = registered[name].doc
    end
    return table.concat(out, "\n")
end

-- register(name, fn [, doc]): what tide.magic.register does.
function magics.register(name, run, doc)
    if type(name) ~= "string" or not name:find("^[A-Za-z_][A-Za-z0-9_]*$") then
        error("tide.magic.register: the name of a magic is letters, digits and _, got " ..
            package.loaded.tide._describe(name), 0)
    elseif type(run) ~= "function" then
        error("tide.magic.register: a function (arguments, body) expected, got " .. type(run), 0)
    elseif doc ~= nil and type(doc) ~= "string" then
        error("tide.magic.register: the doc must be a string, got " .. type(doc), 0)
    end
    define(name, doc or "%" .. name, run)
end

return magics
