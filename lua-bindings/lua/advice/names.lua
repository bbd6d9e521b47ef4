-- advice/names.lua: what a script calls the tensors that advice is about, read off its own lines, where these can be
-- read; otherwise names that say what they stand for.
local tide = ...
local names = {}

local files = {} -- by path, for one look

local function lines_of(path)
    local lines = files[path]
    if not lines then
        lines = {}
        local file = io.open(path)
        if file then
            local text = file:read(1 << 20) or ""
            file:close()
            for line in string.gmatch(text .. "\n", "(.-)\r?\n") do
                lines[#lines + 1] = line
            end
        end
        files[path] = lines
    end
    return lines
end

function names.forget() files = {} end

function names.line(site)
    return site.file and lines_of(site.file)[site.number] or ""
end

-- What `for _, NAME in ipairs(LIST)` above this line goes through.
local function list_behind(site, name)
    local lines = site.file and lines_of(site.file) or {}
    for k = site.number or 0, math.max((site.number or 0) - 30, 1), -1 do
        local list = string.match(lines[k] or "", "for%s+[%w_]+%s*,%s*" .. name .. "%s+in%s+ipairs%s*(%b())")
        if list then
            return string.sub(list, 2, -2)
        end
    end
end

-- What stands behind the = where an entry is set, and what is set an entry of.
local function right_side(line)
    local target, rest = string.match(line, "^%s*([%a_][%w_%.]*)%b[][%[%]%w_]*%s*=([^=].*)$")
    return rest or line, target
end

function names.target(site)
    local _, target = right_side(names.line(site))
    return target
end

-- The lists that the line takes entries of, in their order: NAME[k], or the list behind a loop's variable.
function names.lists(site)
    local found, seen = {}, {}
    local line = right_side(names.line(site))
    local function take(name)
        if name and not seen[name] then
            seen[name] = true
            found[#found + 1] = name
        end
    end
    for name in string.gmatch(line, "([%a_][%w_%.]*)%[[%a_][%w_]*%]") do
        take(name)
    end
    if #found == 0 then
        for name in string.gmatch(line, "[%a_][%w_]*") do
            take(list_behind(site, name))
        end
    end
    return found
end

-- The tensors that the lines of these sites take rows of.
function names.rows(sites)
    local found, seen = {}, {}
    for _, site in ipairs(sites) do
        for name in string.gmatch(right_side(names.line(site)), "([%a_][%w_%.]*)%[[^%]]*[%a_][^%]]*%]") do
            if not seen[name] and name ~= "tide" then
                seen[name] = true
                found[#found + 1] = name
            end
        end
    end
    return found
end

-- A giver of names: the next of a list for each tensor that it has not seen.
function names.giver(view, known, default)
    local given, nth = {}, 0
    return function(t)
        local obj = view.obj[t]
        if not given[obj] then
            nth = nth + 1
            given[obj] = known[nth] or default[nth] or default[#default]
        end
        return given[obj]
    end
end

-- NAME of "NAME = " or "local NAME = " in the site's line.
function names.assigned(site)
    return string.match(names.line(site), "^%s*local%s+([%a_][%w_]*)%s*=") or string.match(names.line(site), "^%s*([%a_][%w_%.]*)%s*=[^=]")
end

return names
