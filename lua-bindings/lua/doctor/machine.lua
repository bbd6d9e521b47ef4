-- doctor/machine.lua: `tide --doctor`: what is missing or slow on this machine, and the command that mends it. It
-- reads what the system says and writes nothing.
local tide = ...
local calls = tide._doctor_calls
local environment = tide._require "utils.environment"
local variable, folder_of = environment.variable, environment.folder

-- The beginning of a small file; nil.
local function read(path, most)
    local facts = calls.stat(path)
    local file = facts and facts.kind == "file" and io.open(path, "rb")
    local text = file and file:read(most or 65536)
    return file and (file:close() and text)
end

local function parent(path) return string.match(path, "^(.*)/[^/]*$") or "." end

-- ---- libraries ----

local debian = { oneDNN = "libdnnl-dev", OpenBLAS = "libopenblas-dev", libpng = "libpng16-16", ZeroMQ = "libzmq5", libsodium = "libsodium23" }

local function tell_library(out, name, files, how, optional)
    local why
    for _, file in ipairs(files) do
        local version, problem = calls.version(file, how[1], how[2])
        if version then
            if how[2] == "number" and math.type(version) == "integer" then
                version = string.format("%d.%d.%d", version // 10000, version // 100 % 100, version % 100)
            end
            return out.ok("libraries", "%s %s", name, version == true and "is there" or tostring(version))
        end
        why = why or problem
    end
    out[optional and "mended" or "problem"]("libraries", string.format("%s: %s", name, why), "sudo apt-get install " .. debian[name])
end

local function tell_libraries(out, machine)
    local parts = 0
    for _, line in ipairs(tide._info()) do
        for part in string.gmatch(string.match(line, "^cpu: %w+ kernels, (.*)$") or "", "[^,]+") do
            part, parts = string.match(part, "^%s*(.-)%s*$"), parts + 1
            local name = string.match(part, "^%a+") or part
            if string.find(part, "%d") then
                out.ok("libraries", "%s", part)
            else
                out.problem("libraries", part, debian[name] and "sudo apt-get install " .. debian[name])
            end
        end
    end
    if parts == 0 then
        out.problem("libraries", "the CPU's are not told")
    end
    out.ok("libraries", "zlib %s", machine.zlib)
    tell_library(out, "libpng", { "libpng16.so.16" }, { "png_access_version_number", "number" }, true)
    tell_library(out, "ZeroMQ", { "libzmq.so.5" }, { "zmq_version", "pointers" })
    tell_library(out, "libsodium", { "libsodium.so.23", "libsodium.so.26" }, { "sodium_version_string", "text" })
end

-- ---- processors ----

local needs = { avx2 = { "avx2", "fma", "f16c", "bmi2" }, avx512 = { "avx512f", "avx512bw", "avx512vl", "avx512dq" } }
local worth = { baseline = 1, avx2 = 2, avx512 = 3 }

-- What the system calls the processor's instructions: " fpu vme ... ".
local function cpu_flags() return (string.match(read("/proc/cpuinfo", 1 << 20) or "", "\nflags[^\n:]*:([^\n]*)") or "") .. " " end

local function best_set()
    local flags, best = cpu_flags(), "baseline"
    for _, set in ipairs { "avx2", "avx512" } do
        local has = worth[best] == worth[set] - 1
        for _, flag in ipairs(needs[set]) do
            has = has and string.find(flags, " " .. flag .. " ", 1, true)
        end
        best = has and set or best
    end
    return best
end

-- What the processor has besides for products of bytes, which kernels of AVX-512 use.
local function byte_products(runs)
    local flags, names = cpu_flags(), {}
    for _, pair in ipairs { { "avx512_vnni", "VNNI" }, { "amx_int8", "AMX" } } do
        if runs == "avx512" and string.find(flags, " " .. pair[1] .. " ", 1, true) then
            names[#names + 1] = pair[2]
        end
    end
    return #names > 0 and ", with " .. table.concat(names, " and ") .. " for products of bytes" or ""
end

local function running_set()
    for _, line in ipairs(tide._info()) do
        local set = string.match(line, "^cpu: (%w+) kernels")
        if set then
            return set
        end
    end
    return "baseline"
end

local function tell_instructions(out, cpu)
    local best, runs, wanted = best_set(), running_set(), variable("TIDE_CPU")
    if cpu then
        out.problem("instructions", string.format("TIDE_CPU=%s: not among what this machine has and this build holds", cpu), "unset TIDE_CPU")
    elseif wanted and worth[runs] < worth[best] then
        out.mended("instructions", string.format("TIDE_CPU=%s is asked for, the machine has %s, which is quicker", wanted, best), "unset TIDE_CPU")
    elseif worth[runs] < worth[best] then
        out.mended("instructions", string.format("the machine has %s, this build's best is %s", best, runs),
            "cmake --preset release -DTIDE_ISA=native && cmake --build --preset release")
    else
        out.ok("instructions", "%s kernels run, the best that this machine has%s", runs, byte_products(runs))
    end
end

-- Processors' worth that the control group may use; nil: no limit.
local function quota()
    local group = string.match(read("/proc/self/cgroup") or "", "0::([^\n]*)") or ""
    for _, folder in ipairs { "/sys/fs/cgroup" .. group, "/sys/fs/cgroup" } do
        local used, period = string.match(read(folder .. "/cpu.max") or "", "^(%d+) (%d+)")
        if used and tonumber(period) > 0 then
            return tonumber(used) / tonumber(period)
        end
    end
    local used = tonumber(read("/sys/fs/cgroup/cpu/cpu.cfs_quota_us") or "")
    local period = tonumber(read("/sys/fs/cgroup/cpu/cpu.cfs_period_us") or "")
    return used and period and used > 0 and period > 0 and used / period or nil
end

local function tell_processors(out, machine)
    local share, threads = quota(), tide.get_num_threads()
    local allowed = machine.allowed or machine.online
    out.ok("processors", "%d online, %d allowed, %d threads", machine.online, allowed, threads)
    if allowed < machine.online then
        out.mended("processors", string.format("this process may use %d of %d", allowed, machine.online),
            string.format("taskset -pc 0-%d $$", machine.online - 1))
    end
    if share and share < threads then
        out.mended("processors", string.format("the control group's quota is %.2g processors, Tide has %d threads", share, threads),
            string.format("export OMP_NUM_THREADS=%d", math.max(1, math.floor(share))))
    end
end

local function tell_openmp(out, machine)
    local found = false
    local function note(name, text, command)
        found = true
        out.mended("OpenMP", string.format("%s=%s %s", name, variable(name), text), command or "unset " .. name)
    end
    local allowed = machine.allowed or machine.online
    for _, name in ipairs { "OMP_NUM_THREADS", "OMP_THREAD_LIMIT" } do
        local value = variable(name)
        local n = value and math.tointeger(tonumber(string.match(value, "^%s*(%d+)")))
        if value and (not n or n < 1) then
            found = true
            out.problem("OpenMP", string.format("%s=%s is no number of threads", name, value), "unset " .. name)
        elseif n and n > allowed and name == "OMP_NUM_THREADS" then
            note(name, string.format("is more threads than the %d processors", allowed), string.format("export %s=%d", name, allowed))
        elseif n and n < allowed then
            note(name, string.format("leaves processors idle: there are %d", allowed))
        end
    end
    if string.lower(variable("OMP_WAIT_POLICY") or "") == "active" then
        note("OMP_WAIT_POLICY", "lets idle threads spin, which takes the processors from those that work")
    end
    local spin = string.lower(variable("GOMP_SPINCOUNT") or "0")
    if string.find(spin, "^inf") or (tonumber(spin) or 0) > 100000 then -- Tide sets it to a few hundred itself
        note("GOMP_SPINCOUNT", "lets idle threads spin")
    end
    local bind = string.lower(variable("OMP_PROC_BIND") or "false")
    if bind ~= "false" then
        note("OMP_PROC_BIND", "ties threads to places, where those of several processes meet")
    end
    if not found then
        out.ok("OpenMP", "nothing in the environment slows its threads")
    end
end

-- ---- limits ----

local function megabytes(n) return string.format("%.0f MB", n / (1 << 20)) end

local function tell_limits(out, machine)
    local free = tonumber(string.match(read("/proc/meminfo") or "", "MemAvailable:%s*(%d+)"))
    if free then
        out[free < 512 << 10 and "note" or "ok"]("memory", "%s are free", megabytes(free << 10))
    end
    if machine.virtual then
        out[machine.virtual < 1 << 30 and "problem" or "mended"]("limits",
            string.format("ulimit -v: addresses for %s, which libraries and threads share", megabytes(machine.virtual)), "ulimit -v unlimited")
    end
    if machine.processes and machine.processes < 64 then
        out.mended("limits", string.format("ulimit -u: %d processes and threads", machine.processes), "ulimit -u 4096")
    end
    if machine.files and machine.files < 256 then
        out.mended("limits", string.format("ulimit -n: %d open files", machine.files), "ulimit -n 1024")
    end
    if not machine.shared then
        out.mended("/dev/shm", "is not there, and some libraries share memory through it", "sudo mkdir -p /dev/shm && sudo mount -t tmpfs shm /dev/shm")
    elseif machine.shared < 64 << 20 then
        out.mended("/dev/shm", string.format("has %s left", megabytes(machine.shared)), "sudo mount -o remount,size=1G /dev/shm")
    else
        out.ok("/dev/shm", "%s are free", megabytes(machine.shared))
    end
end

-- ---- the terminal ----

local function tell_terminal(out, machine)
    local locale = variable("LC_ALL") or variable("LC_CTYPE") or variable("LANG") or "C"
    local code = string.gsub(string.upper(machine.codeset or ""), "[^%w]", "")
    if not machine.codeset then
        out.problem("locale", string.format("%s is not installed: texts are taken for ASCII", locale), "export LC_ALL=C.UTF-8")
    elseif code ~= "UTF8" then
        out.mended("locale", string.format("%s has no UTF-8 (%s)", locale, machine.codeset), "export LC_ALL=C.UTF-8")
    else
        out.ok("locale", "%s, %s", locale, machine.codeset)
    end
    local term = variable("TERM")
    if not machine.terminal_out then
        out.ok("terminal", "none: standard output is a file or a pipe, nothing is coloured")
    elseif not term or term == "dumb" then
        out.mended("terminal", string.format("TERM=%s: no editing of lines in place, no colours", term or ""), "export TERM=xterm-256color")
    else
        local known = (machine.columns or 0) > 0 and string.format(" of %d columns, %d rows", machine.columns, machine.rows) or ""
        out.ok("terminal", "%s%s", term, known)
    end
    if machine.terminal_out and (machine.columns or 80) > 0 and (machine.columns or 80) < 40 then
        out.mended("terminal", string.format("%d columns: tensors and tables are wider", machine.columns), "stty columns 80")
    end
    if machine.terminal_out and variable("NO_COLOR") then
        out.mended("terminal", "NO_COLOR is set: nothing is coloured", "unset NO_COLOR")
    end
end

-- ---- folders ----

-- A file or folder that Tide would read and write, or the nearest folder above, where it would be made.
local function tell_place(out, topic, path)
    local facts, why = calls.stat(path)
    local wants = facts and (facts.readable and facts.writable and (facts.kind ~= "folder" or facts.executable))
    if facts then
        if wants then
            out.ok("folders", "%s: %s", topic, path)
        else
            out.problem("folders", string.format("%s: %s can't be %s", topic, path, facts.readable and "written" or "read"),
                "chmod u+rw" .. (facts.kind == "folder" and "x " or " ") .. out.quote(path))
        end
        return facts
    end
    local above = path
    repeat
        above = parent(above)
        facts = calls.stat(above)
    until facts or above == "" or above == "."
    if facts and facts.kind ~= "folder" then
        out.problem("folders", string.format("%s: %s is no folder, so %s can't be made", topic, above, path), "mv " .. out.quote(above) .. " " .. out.quote(above .. ".old"))
    elseif not string.find(why, "No such") then
        out.problem("folders", string.format("%s: %s: %s", topic, path, why), "chmod u+rwx " .. out.quote(above))
    elseif facts and not facts.writable then
        out.problem("folders", string.format("%s: %s can't be made: %s can't be written", topic, path, above), "chmod u+wx " .. out.quote(above))
    else
        out.ok("folders", "%s: %s is made when it is needed", topic, path)
    end
    return nil
end

local function tell_init(out, path)
    local facts = calls.stat(path)
    local text = facts and facts.readable and facts.kind == "file" and facts.size < 8 << 20 and read(path, 8 << 20)
    if not facts then
        return
    elseif not text then
        return out.problem("folders", string.format("%s can't be read", path), "chmod u+r " .. out.quote(path))
    end
    local chunk, why = load((string.gsub(text, "^#[^\n]*", "")), "=init.lua", "t", {})
    if chunk then
        out.ok("folders", "init.lua: %s runs before the prompt", path)
    else
        out.problem("folders", "init.lua: " .. tostring(why), "tide --no-init; then mend " .. out.quote(path))
    end
end

local function tell_history(out, path)
    local facts = calls.stat(path)
    if not facts then
        return
    elseif facts.kind ~= "file" then
        out.problem("history", string.format("%s is a %s", path, facts.kind), "mv " .. out.quote(path) .. " " .. out.quote(path .. ".old"))
    elseif facts.size > 8 << 20 then
        out.mended("history", string.format("%s has %s, of which the last 8 MB are read", path, megabytes(facts.size)), "rm " .. out.quote(path))
    else
        local file = io.open(path, "rb")
        local last = file and facts.size > 0 and file:seek("end", -1) and file:read(1)
        if last and last ~= "\n" then
            out.note("history", "%s ends within a line: a session died while it wrote; that line is skipped", path)
        end
        if file then
            file:close()
        end
    end
end

-- What a process that was killed left in a folder, by the names that Tide gives what it writes.
local function tell_leftovers(out, folder, patterns)
    local n = 0
    for _, name in ipairs(calls.names(folder) or {}) do
        for _, pattern in ipairs(patterns) do
            local path = folder .. "/" .. name
            local facts = string.find(name, pattern) and calls.stat(path)
            if facts and facts.kind == "file" and n < 20 then
                n = n + 1
                if calls.locked(path) then
                    out.note("leftovers", "%s is being written by another process", path)
                else
                    out.mended("leftovers", string.format("%s was left by a process that was stopped", path), "rm " .. out.quote(path))
                end
                break
            end
        end
    end
    return n
end

local function tell_folders(out)
    local home = variable("HOME")
    local facts = home and calls.stat(home)
    if not facts or facts.kind ~= "folder" then
        out.problem("folders", home and string.format("HOME=%s is no folder", home) or "HOME is not set: no history, no init.lua",
            "export HOME=$(getent passwd $(id -u) | cut -d: -f6)")
    end
    local config, state = folder_of("XDG_CONFIG_HOME", "/.config"), folder_of("XDG_STATE_HOME", "/.local/state")
    local cache, left = environment.cache(), 0
    if config and tell_place(out, "config", config .. "/tide") then
        tell_init(out, config .. "/tide/init.lua")
    end
    if state then
        tell_place(out, "history", state .. "/tide/history")
        tell_history(out, state .. "/tide/history")
        left = left + tell_leftovers(out, state .. "/tide", { "%.draft$", "%.part$", "%.lock$", "%.new$" })
    end
    if cache then
        tell_place(out, "peaks", cache .. "/tide-peak")
        left = left + tell_leftovers(out, cache, { "^tide%-peak%.part$" })
    end
    left = left + tell_leftovers(out, ".", { "^%..+%.draft$" }) + tell_leftovers(out, "/tmp", { "^tide%-bottleneck%." })
    if left == 0 then
        out.ok("leftovers", "no drafts or temporary files of Tide's")
    end
end

-- ---- Jupyter ----

local function jupyter_folders(program)
    local home = variable("HOME")
    local folders = {}
    for folder in string.gmatch(variable("JUPYTER_PATH") or "", "[^:]+") do
        folders[#folders + 1] = folder
    end
    folders[#folders + 1] = variable("JUPYTER_DATA_DIR")
        or variable("XDG_DATA_HOME") and variable("XDG_DATA_HOME") .. "/jupyter" or home and home .. "/.local/share/jupyter"
    for _, name in ipairs { "VIRTUAL_ENV", "CONDA_PREFIX" } do
        folders[#folders + 1] = variable(name) and variable(name) .. "/share/jupyter"
    end
    folders[#folders + 1] = program and parent(parent(program)) .. "/share/jupyter"
    folders[#folders + 1] = "/usr/local/share/jupyter"
    folders[#folders + 1] = "/usr/share/jupyter"
    return folders
end

-- The kernel's program that a kernelspec names; nil and what is wrong.
local function named_kernel(path)
    local text = read(path, 1 << 20)
    if not text then
        return nil, "can't be read"
    end
    local spec, why = tide._require("files.json").decode(text)
    local first = type(spec) == "table" and type(spec.argv) == "table" and spec.argv[1]
    return type(first) == "string" and first or nil, why or "has no argv"
end

local function tell_spec(out, path, kernel, install)
    local named, wrong = named_kernel(path)
    local facts = named and calls.stat(named)
    if not named then
        out.problem("Jupyter", string.format("%s %s", path, wrong), install)
    elseif string.sub(named, 1, 1) ~= "/" then
        out.note("Jupyter", "%s names '%s', which is looked for on PATH", path, named)
    elseif not facts or facts.kind ~= "file" then
        out.problem("Jupyter", string.format("%s names %s, which does not exist", path, named), install)
    elseif not facts.executable then
        out.problem("Jupyter", string.format("%s names %s, which can't be run", path, named), "chmod +x " .. out.quote(named))
    elseif kernel and calls.real(named) ~= calls.real(kernel) then
        out.mended("Jupyter", string.format("%s names another build's kernel, %s", path, named), install)
    else
        out.ok("Jupyter", "%s names %s", path, named)
    end
end

-- The kernel runs: all its libraries are there.
local function tell_kernel(out, kernel)
    local pipe = io.popen(out.quote(kernel) .. " --version 2>&1 </dev/null")
    local text = pipe and pipe:read(4096) or ""
    if pipe and pipe:close() then
        out.ok("kernel", "%s", kernel)
    else
        local lacks = string.match(text, "(lib[%w%.+-]+%.so[%w%.]*): cannot open")
        out.problem("kernel", string.format("%s does not run: %s", kernel, (string.match(text, "[^\n]+") or "no reason given")),
            lacks and "sudo apt-get install " .. (string.find(lacks, "zmq") and "libzmq5" or string.find(lacks, "sodium") and "libsodium23"
                or string.find(lacks, "jansson") and "libjansson4" or string.match(lacks, "^[^.]+")) or nil)
    end
end

local function tell_jupyter(out, machine)
    local kernel = machine.program and parent(machine.program) .. "/tide-kernel"
    local facts, n, seen = kernel and calls.stat(kernel), 0, {}
    if facts and facts.kind == "file" then
        tell_kernel(out, kernel)
    else
        out.mended("kernel", string.format("no tide-kernel beside %s", machine.program or "tide"), "cmake --build build/release --target tide-kernel")
        kernel = nil
    end
    local install = out.quote(kernel or "tide-kernel") .. " --install --user"
    for _, folder in ipairs(jupyter_folders(machine.program)) do
        local path = folder .. "/kernels/tide/kernel.json"
        local real = calls.real(path)
        if real and not seen[real] then
            seen[real], n = true, n + 1
            tell_spec(out, path, kernel, install)
        end
        tell_leftovers(out, folder .. "/kernels/tide", { "%.new$" })
    end
    if n == 0 then
        out.mended("Jupyter", "no kernelspec of Tide's is installed", install)
    end
end

-- ---- CUDA ----

local function release(version)
    return math.type(version) == "integer" and version > 0 and string.format("%d.%d", version // 1000, version % 1000 // 10) or nil
end

local function tell_cuda(out)
    local reason, device
    for _, line in ipairs(tide._info()) do
        reason = reason or string.match(line, "^cuda: no device %((.*)%)$")
        device = device or not reason and string.match(line, "^cuda: (.*)$")
    end
    local driver, toolkit = release(calls.version("libcuda.so.1", "cuDriverGetVersion", "pointer")), nil
    for _, major in ipairs { "13", "12", "11.0" } do
        toolkit = toolkit or release(calls.version("libcudart.so." .. major, "cudaRuntimeGetVersion", "pointer"))
    end
    local card = calls.stat("/dev/nvidia0") or calls.stat("/proc/driver/nvidia/version")
    local versions = string.format("driver for CUDA %s, toolkit %s", driver or "none", toolkit or "none")
    if device then
        return out.ok("CUDA", "%s; %s", device, versions)
    elseif not card then
        return out.ok("CUDA", "no card is seen; %s (%s)", versions, reason or "?")
    end
    local old = driver and toolkit and tonumber(string.match(driver, "^%d+")) < tonumber(string.match(toolkit, "^%d+"))
    out.problem("CUDA", string.format("a card is there, and can't be used: %s (%s)", reason or "?", versions),
        (old or not driver) and "install an NVIDIA driver for CUDA " .. (toolkit or "12") .. " or newer: sudo apt-get install nvidia-driver"
        or "cmake --build build/release --target tide_cuda")
end

--- machine(out, cpu): all of it; cpu is what TIDE_CPU named in vain.
return function(out, cpu)
    local machine = calls.machine()
    out.ok("tide", "%s, %s", tide.version, machine.program or "?")
    tell_libraries(out, machine)
    tell_instructions(out, cpu)
    tell_processors(out, machine)
    tell_openmp(out, machine)
    tell_limits(out, machine)
    tell_terminal(out, machine)
    tell_folders(out)
    tell_jupyter(out, machine)
    tell_cuda(out)
end
