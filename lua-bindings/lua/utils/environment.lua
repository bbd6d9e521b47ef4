-- utils/environment.lua: what the process's surroundings say: variables, the folders they name, the machine's name.
local tide = ...
local environment = {}

--- variable(name): of the environment; nil where it is not set, or empty.
function environment.variable(name)
    local value = os.getenv(name)
    return value ~= "" and value or nil
end

--- folder(name, below): the folder that a variable names by its whole path, else the one `below` home; nil: there is none.
function environment.folder(name, below)
    local base, home = environment.variable(name), environment.variable("HOME")
    return base and string.sub(base, 1, 1) == "/" and base or home and home .. below
end

--- cache(): the folder of what can be made again; nil: there is none.
function environment.cache() return environment.folder("XDG_CACHE_HOME", "/.cache") end

--- host_name(): what this machine is called; "localhost" where the system does not say it.
function environment.host_name()
    local file <close> = io.open("/proc/sys/kernel/hostname") or io.open("/etc/hostname")
    return string.match(file and file:read("l") or "", "^[%w.-]+") or "localhost"
end

--- make_folder(what, path): the folder and those above it, where they are not there yet; the error begins with `what`.
function environment.make_folder(what, path)
    local ok = os.execute(string.format("mkdir -p -- '%s' 2>/dev/null", (string.gsub(path, "'", "'\\''"))))
    if not ok then
        tide._fail("%s: the folder '%s' can't be made", what, path)
    end
end

return environment
