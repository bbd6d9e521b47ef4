-- magics: the commands of the session that are written in Lua, and those that users register.
--
-- A magic is a function (arguments, body, place) that gets the rest of its line, under %% the lines
-- below it (else nil), and where it stands: {chunk = "=In[3]", line = 1}. What it returns is the value
-- of the input. What it says is wrong in its use is raised by `usage`, which shows no traceback.

local names = import "names"
local display = import "display"
local debugger = import "debugger"
local help = import "help"
local inspect = import "inspect"
local suggest = import "suggest"

local written_in_c = magics -- their names
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
        at = string.find(line, "%S", at)
        if not at then
            return list
        end
        local quote = string.match(line, "^[\"']", at)
        local stop = quote and string.find(line, quote, at + 1, true)
        if quote and not stop then
            usage("a quote is not closed: %s", string.sub(line, at))
        end
        stop = stop or (string.find(line, "%s", at) or #line + 1) - 1
        list[#list + 1] = quote and string.sub(line, at + 1, stop - 1) or string.sub(line, at, stop)
        at = stop + 1
    end
end

-- A variable to be closed: runs f whatever happens.
local function at_end(f)
    return setmetatable({}, {__close = f})
end

-- The function that a magic's code is; its errors show the lines of the input.
local function compiled(code, body, place)
    return compile(string.rep("\n", place.line - (body and 0 or 1)) .. (body or code), place.chunk)
end

local function one_word(line, name, what)
    local list = words(line)
    if #list ~= 1 then
        usage("%s: one %s expected, got %d", name, what, #list)
    end
    return list[1]
end

-- A path as a person types it: ~ and ~/x lie in the home folder.
local function at_home(path)
    local home = os.getenv("HOME")
    return home and (path == "~" or string.sub(path, 1, 2) == "~/") and home .. string.sub(path, 2) or path
end

local function read_file(path, name)
    local file, message = io.open(at_home(path), "rb")
    local text = file and streams.read(file, "a")
    if file then
        streams.close(file)
    end
    return text or usage("%s: cannot read %s", name, message or path)
end

local function write_file(path, text, name, mode)
    local file, message = io.open(at_home(path), mode or "wb")
    local ok = file and streams.write(file, text)
    local closed = file and streams.close(file)
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
        if type(name) == "string" and not own[name] and string.sub(name, 1, 1) ~= "_" then
            found[name] = {value = value, kind = "global"}
        end
    end
    for name, value in next, (locals()) do
        if string.sub(name, 1, 1) ~= "_" then
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

-- The first line of what a module or another object of tide's classes prints: "Net(…)"; nil for anything else.
local function object_line(value, mt)
    local ours = type(value) == "table" and mt and rawget(mt, "__tostring")
        and (names.doc(mt) or rawget(mt, "is_module_class") or rawget(value, "is_module_class"))
    local ok, text = pcall(tostring, ours and value or nil)
    local line = ours and ok and string.match(text, "^[^\n]*")
    return line and (string.find(line, "[({]$") and line .. "…" .. (string.sub(line, -1) == "(" and ")" or "}") or line) or nil
end

local function row_of(name, item)
    local value = item.value
    if names.is_tensor(value) then
        local sizes = {}
        for i, size in ipairs(value.shape) do
            sizes[i] = string.format("%d", size)
        end
        return {name, "tensor", (string.gsub(tostring(value.dtype), "^tide%.", "")) .. " (" .. table.concat(sizes, ", ") .. ") "
            .. tostring(value.device), bytes_text(value.nbytes)}
    end
    local mt = names.meta(value)
    local class = mt and rawget(mt, "__name")
    local text = object_line(value, mt) or string.gsub(display.describe(value, 60, true), "%s*\n%s*", " ")
    if utf8.len(text) and utf8.len(text) > 50 then
        text = string.sub(text, 1, utf8.offset(text, 50) - 1) .. "…"
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
            line[i] = text .. string.rep(" ", widths[i] - (utf8.len(text) or #text))
        end
        say((string.gsub(table.concat(line, "  "), "%s+$", "")))
    end
end)

define("reset", "%reset: forgets all variables, values and inputs' locals", function()
    for _, name in ipairs((user_names())) do
        rawset(user, name, nil)
    end
    local _, values = remembered()
    for number in next, values do
        values[number] = nil
    end
    rawset(user, "_", nil)
    rawset(user, "__", nil)
    forget_locals()
    debugger.forget()
    collectgarbage()
end)

-- ---- inputs ----

-- "3", "2-5": inputs by number; nothing: all.
local function chosen(ranges, name)
    local inputs, list = remembered(), {}
    for _, range in ipairs(#ranges > 0 and ranges or {"1-" .. #inputs}) do
        local first, last = string.match(range, "^(%d+)%-?(%d*)$")
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
    for _, item in ipairs(chosen(words(line), "%history")) do
        say(string.format("%4d: %s", item[1], (string.gsub(item[2], "\n", "\n      "))))
    end
end)

define("save", "%save file.lua [2-5 7]: writes inputs to a file, magics left out", function(line)
    local ranges, texts = words(line), {}
    local path = table.remove(ranges, 1) or usage("%%save: a file expected")
    for _, item in ipairs(chosen(ranges, "%save")) do
        texts[#texts + 1] = without_magics(item[2])
    end
    write_file(path, table.concat(texts, "\n") .. "\n", "%save")
    say(string.format("%d inputs in %s", #texts, path))
end)

define("load", "%load file.lua: shows a file's text", function(line)
    say((string.gsub(read_file(one_word(line, "%load", "file"), "%load"), "\n$", "")))
end)

-- Modules are looked for in a folder first, until what is returned is closed. In a path of Lua's a ; or ? means
-- something else, so no such folder can stand there.
local function looking_in(folder)
    local outer = rawget(loader, "path")
    if not folder or string.find(folder, "[;?]") or type(outer) ~= "string" then
        return nil
    end
    local first = folder .. "/?.lua;" .. folder .. "/?/init.lua;"
    rawset(loader, "path", first .. outer)
    return at_end(function()
        local now = rawget(loader, "path")
        if type(now) == "string" and string.sub(now, 1, #first) == first then
            rawset(loader, "path", string.sub(now, #first + 1))
        end
    end)
end

define("run", "%run file.lua arguments: runs a file as a script; its globals stay", function(line)
    local list = words(line)
    local path = at_home(list[1] or usage("%%run: a file expected"))
    read_file(path, "%run")
    local chunk, message = loadfile(path, "t")
    if not chunk then
        error(message, 0)
    end
    local outer = rawget(user, "arg")
    local _ <close> = at_end(function() rawset(user, "arg", outer) end)
    local _ <close> = looking_in(string.match(path, "^(.*)/[^/]*$"))
    rawset(user, "arg", {[0] = path, table.unpack(list, 2)})
    local code = apart(chunk, table.unpack(list, 2))
    if code and code ~= 0 then
        usage("%s: exit status %d", list[1], code)
    end
end)

-- ---- questions ----

local function define_question(name, detail, doc)
    define(name, doc, function(line)
        local found = line == "" and help.introduction() or inspect.inspect(line, #line, detail)
        local said, searched = suggest.unknown(line)
        say(found or searched and said or usage("%s", said))
    end)
end
define_question("pinfo", 0, "%pinfo name: what a name is, as ?name; with * all names that fit")
define_question("pinfo2", 1, "%pinfo2 name: its source too, as ??name")

-- ---- the system ----

-- Runs a command, what it writes to both streams among what we write, or else in lines that are returned; and how
-- it failed, or nil.
local function shell(command, keeps)
    local pipe, message = io.popen("exec 2>&1\n" .. command, "r")
    if not pipe then
        usage("cannot run: %s", message)
    end
    local lines = {}
    for line in streams.lines(pipe) do
        if keeps then
            lines[#lines + 1] = line
        else
            say(line)
        end
    end
    local ok, how, code = streams.close(pipe)
    return lines, not ok and string.format(how == "signal" and "ended by signal %d" or "exit status %d", code) or nil
end

local function run_command(command)
    local _, failure = shell(command)
    if failure then
        say("(" .. failure .. ")")
    end
end

local function folder_now(name)
    local path, message = working_directory()
    return path or usage("%s: %s", name, message)
end

define("ls", "%ls [what]: lists files", function(line) run_command("ls -C " .. line) end)
define("pwd", "%pwd: the working directory", function() return folder_now("%pwd") end)

local folder_before -- of %cd -

define("cd", "%cd [folder]: changes the working directory; %cd - goes back", function(line)
    local quote, quoted = string.match(line, "^([\"'])(.*)%1$")
    local path = line == "" and "~" or quote and quoted or line
    if path == "-" then
        path = folder_before or usage("%%cd -: there is no folder before this one")
    end
    local here = working_directory()
    local message = change_directory(at_home(path))
    if message then
        usage("%%cd: %s", message)
    end
    folder_before = here
    return folder_now("%cd")
end)

define("env", "%env [NAME]: variables of the environment; %env NAME=value sets one", function(line)
    local name, value = string.match(line, "^([^=%s]+)%s*=%s*(.*)$")
    if not name then
        name, value = string.match(line, "^([^=%s]+)%s+(.*)$")
    end
    if line == "" then
        run_command("env | sort")
    elseif name then
        local message = set_environment(name, value)
        if message then
            usage("%%env: %s: %s", name, message)
        end
        say("env: " .. name .. "=" .. value)
    else
        return os.getenv(line) or usage("%%env: there is no variable %s", line)
    end
end)
define("lines_of", "files = !command: the lines that a command writes, as a table", function(line)
    return (shell(line, true))
end)
define("bash", "%%bash above lines of a shell: runs them, and fails as they do (not with --no-raise-error); %bash command",
    function(line, body)
        if not body then
            run_command(line)
            return
        end
        local options, tolerant = string.gsub(" " .. line .. " ", " %-%-no%-raise%-error ", " ")
        local path = os.tmpname()
        local _ <close> = at_end(function() os.remove(path) end)
        write_file(path, body, "%%bash")
        local _, failure = shell("bash " .. options .. " " .. path)
        if failure and tolerant == 0 then
            usage("%%%%bash: %s", failure)
        end
    end)

local function define_file(name, doc)
    local shown = "%%" .. name
    define(name, doc, function(line, body)
        if not body then
            usage("%s stands above the lines that it writes", shown)
        end
        local list = words(line)
        local more = list[1] == "-a" or list[1] == "--append"
        local path = #list == (more and 2 or 1) and list[#list] or usage("%s: one file expected, got %s", shown, line)
        local text = (body == "" or string.sub(body, -1) == "\n") and body or body .. "\n"
        write_file(path, text, shown, more and "ab")
        say(string.format("%d bytes in %s", #text, path))
    end)
end
define_file("file", "%%file [-a] name above lines: writes them to a file, with -a at its end")
define_file("writefile", "%%writefile [-a] name: the same")

-- ---- displays ----

for name, mime in next, {html = "text/html", javascript = "application/javascript", js = "application/javascript",
                         markdown = "text/markdown", latex = "text/latex", svg = "image/svg+xml"} do
    define(name, "%%" .. name .. " above lines: displays them as " .. mime, function(_, body)
        if not body then
            usage("%%%%%s stands above the lines that it displays", name)
        end
        show_text(mime, body)
    end)
end

-- ---- tide ----

define("mem", "%mem: memory of tensors and of Lua", function()
    collectgarbage()
    say("tensors: " .. bytes_text(held_tide.memory_allocated()))
    say("Lua:     " .. bytes_text(math.floor(collectgarbage("count") * 1024)))
end)

define("threads", "%threads [n]: how many threads kernels use", function(line)
    if line ~= "" then
        local n = math.tointeger(tonumber(line))
        if not n or n < 1 then
            usage("%%threads: a number from 1 on expected, got %s", line)
        end
        held_tide.set_num_threads(n)
    end
    return held_tide.get_num_threads()
end)

define("precision", "%precision [n]: digits of printed tensors after the point; without n as at the start", function(line)
    local n = math.tointeger(tonumber(line))
    if line ~= "" and not (n and n >= 0 and n <= 17) then
        usage("%%precision: a number from 0 to 17 expected, got %s", line)
    end
    held_tide.set_printoptions({precision = n or 4})
end)

-- What %%capture keeps: it reads as the text that was printed, and show(), or a call, shows all of it again.
local captured = {__name = "captured"}

function captured:__index(name)
    local method = string[name]
    return captured[name] or method and function(_, ...)
        return method(self.stdout, ...)
    end
end

function captured:__tostring()
    return self.stdout
end

function captured:__display()
    return {["text/plain"] = display.quote(self.stdout)}
end

function captured:__len()
    return #self.stdout
end

function captured.__concat(a, b)
    return tostring(a) .. tostring(b)
end

function captured:show()
    write(self.stdout)
    streams.write(io.stderr, self.stderr)
    for _, output in ipairs(self.outputs) do
        show(output)
    end
end
captured.__call = captured.show

local shown_again = {}

function shown_again:__display()
    local bundle = {}
    for name, data in next, self do
        bundle[name] = data
    end
    bundle.metadata = self.metadata and held_tide._require("files.json").decode(self.metadata)
    return bundle
end

define("capture", "%%capture [--no-stdout] [--no-stderr] [--no-display] name above lines: what they print and display goes "
    .. "into name (.stdout, .stderr, .outputs, :show())", function(line, body, place)
        if not body then
            usage("%%%%capture stands above the lines whose output it keeps")
        end
        local list, keeps = words(line), {stdout = true, stderr = true, display = true}
        while list[1] and string.sub(list[1], 1, 2) == "--" do
            local option = table.remove(list, 1)
            local what = string.match(option, "^%-%-no%-(.*)$")
            if not keeps[what or ""] then
                usage("%%%%capture: unknown option %s (known: --no-stdout, --no-stderr, --no-display)", option)
            end
            keeps[what] = false
        end
        local name = list[1] or "_captured"
        if #list > 1 or not string.find(name, "^[A-Za-z_][A-Za-z0-9_]*$") then
            usage("%%%%capture: a name expected, got %s", line)
        end
        local run = compiled(nil, body, place)
        local kept = setmetatable({}, captured)
        local _ <close> = at_end(function()
            for _, output in ipairs(kept.outputs) do
                setmetatable(output, shown_again)
            end
            rawset(user, name, kept)
        end)
        local _ <close> = begin_capture(kept, keeps.stdout, keeps.stderr, keeps.display)
        local values = table.pack(run())
        for i = 1, string.find(body, ";%s*$") and 0 or values.n do
            if values[i] ~= nil and not io.type(values[i]) then
                show(values[i])
            end
        end
    end)

define("prof", "%prof statement, or %%prof above a cell: where the time goes", function(line, body, place)
    say(tostring(held_tide.profiler.profile(compiled(line, body, place))))
end)

define("trace", "%trace file.json statement: records it as a Chrome trace", function(line, body, place)
    local path, code = string.match(line, "^(%S+)%s*(.*)$")
    if not path or (code == "" and not body) then
        usage("%%trace: a file and a statement expected")
    end
    held_tide.profiler.profile(compiled(code, body, place)):export_chrome_trace(at_home(path))
    say("written to " .. path)
end)

define("debug", "%debug: a look into the functions that were running when the last input failed", function(line)
    if line ~= "" then
        usage("%%debug takes no arguments")
    elseif not debugger.post_mortem() then
        usage("%%debug: no input has failed yet")
    end
end)

-- ---- those that people know from IPython ----

local ipython = import "ipython"

ipython.install(define, {chosen = chosen, words = words, remembered = remembered, usage = usage, say = say, read_file = read_file, write_file = write_file, at_end = at_end,
    compile = compile, run = function(name, line) return registered[name].run(line) end})

-- ---- the table of them ----

-- run(name, arguments, body, chunk, line): runs a magic; false: there is none of that name.
function magics.run(name, arguments, body, chunk, line)
    local found = registered[name]
    if not found then
        return false
    end
    return true, found.run(arguments, body, {chunk = chunk, line = line})
end

function magics.known(name)
    return registered[name] ~= nil
end

-- missing(name): the name of a magic that is not there, with what to write instead.
function magics.missing(name)
    local others = {}
    for _, other in ipairs(written_in_c) do
        others[other] = true
    end
    local instead, near = ipython.instead(name), suggest.nearest(name, {registered, others})
    return name .. (instead and ": write " .. instead or near and ": did you mean '%" .. near .. "'?" or " (%lsmagic lists them)")
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
    if type(name) ~= "string" or not string.find(name, "^[A-Za-z_][A-Za-z0-9_]*$") then
        error("tide.magic.register: the name of a magic is letters, digits and _, got " ..
            held_tide._describe(name), 0)
    elseif type(run) ~= "function" then
        error("tide.magic.register: a function (arguments, body) expected, got " .. type(run), 0)
    elseif doc ~= nil and type(doc) ~= "string" then
        error("tide.magic.register: the doc must be a string, got " .. type(doc), 0)
    end
    define(name, doc or "%" .. name, function(arguments, body)
        return run(arguments, body)
    end)
end

return magics
