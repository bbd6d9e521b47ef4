-- jit/cache.lua: tide.jit.cache(): kernels that were compiled, and the files that keep them.
local tide = ...
local cache = {}

local Cache = { __name = "tide.jit.Cache" }
tide._class("tide.jit.Cache", Cache)

local function size_text(bytes)
    return bytes >= 1e6 and string.format("%.1f MB", bytes / 1e6) or string.format("%.1f kB", bytes / 1e3)
end

function Cache:__tostring()
    local kept = self.path == "" and "no folder that can be written: nothing is kept"
        or string.format("%s: %d kernel%s, %s of at most %s", self.path, self.entries, self.entries == 1 and "" or "s", size_text(self.bytes), size_text(self.bound))
    return string.format("%s%s\nthis process: %d compiled and %d read from there in %.1f ms on a thread of its own, %d refused, %d runs",
        kept, self.removed > 0 and string.format("; %d removed", self.removed) or "", self.compiled, self.loaded, self.ms, self.refused,
        self.runs)
end

--- look(clear): what there is now; `clear` removes the files first.
function cache.look(clear) return setmetatable(tide._script.code_cache(clear), Cache) end

return cache
