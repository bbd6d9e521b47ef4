-- _check.lua: arguments of functions written in Lua: positional or by name, checked, with errors that
-- point at the caller's line as those of operators do. Knows nothing of layers and optimizers.
local tide = ...
local check = {}

-- Raise a message at the line outside Tide's own Lua files that led here.
function check.fail(message, ...)
    if select("#", ...) > 0 then
        message = message:format(...)
    end
    local level = 2
    while true do
        local info = debug.getinfo(level, "S")
        if not info then
            error(message, 0)
        elseif info.what ~= "C" and info.source:sub(1, 6) ~= "=tide." then
            error(message, level)
        end
        level = level + 1
    end
end

-- "a tensor of shape (2, 3)", "the string \"relu\"", "nothing": what was given, for messages.
function check.describe(value)
    if value == nil then
        return "nothing"
    elseif tide.is_tensor(value) then
        return ("a %s tensor of shape %s"):format(tostring(value.dtype):gsub("^tide%.", ""), tostring(value.shape))
    elseif type(value) == "string" then
        return ("the string %q"):format(value)
    elseif type(value) == "number" or type(value) == "boolean" then
        return tostring(value)
    end
    local name = type(value) == "table" and rawget(getmetatable(value) or {}, "__name")
    return "a " .. (type(name) == "string" and name or type(value))
end

-- A pair of integers from one or a list of two; nil when it is neither.
local function pair_of(value, least)
    if type(value) ~= "table" then
        value = { value, value }
    end
    local a, b = math.tointeger(value[1]), math.tointeger(value[2])
    return #value == 2 and a and b and a >= least and b >= least and { a, b } or nil
end

local function integer_from(least, what)
    return { what, function(v)
        v = type(v) == "number" and math.tointeger(v)
        return v and v >= least and v or nil
    end }
end

-- Kinds of arguments: what is expected, and what becomes of the value (nil: refused).
local kinds = {
    size = integer_from(1, "a positive integer"),
    count = integer_from(0, "an integer from 0 on"),
    integer = integer_from(math.mininteger, "an integer"),
    number = { "a number", function(v) return type(v) == "number" and v or nil end },
    unsigned = { "a number from 0 on", function(v) return type(v) == "number" and v >= 0 and v or nil end },
    probability = { "a number from 0 to 1", function(v)
        return type(v) == "number" and v >= 0 and v <= 1 and v or nil
    end },
    boolean = { "true or false", function(v)
        if type(v) == "boolean" then
            return v
        end
    end },
    string = { "a string", function(v) return type(v) == "string" and v or nil end },
    tensor = { "a tensor", function(v) return tide.is_tensor(v) and v or nil end },
    sizes = { "one or two positive integers", function(v) return pair_of(v, 1) end },
    counts = { "one or two integers from 0 on", function(v) return pair_of(v, 0) end },
    list = { "a list", function(v) return type(v) == "table" and v or nil end },
    any = { "a value", function(v) return v end },
}

local function read_value(fname, spec, value)
    local kind = kinds[spec.kind]
    local read = kind[2](value)
    if read == nil then
        check.fail("%s: argument %s: expected %s, got %s", fname, spec[1], kind[1], check.describe(value))
    end
    return read
end

-- Is it a table of options? An empty one is, where no list is expected.
local function is_options(value, spec)
    return type(value) == "table" and not getmetatable(value) and #value == 0
        and (next(value) ~= nil or not spec or spec.kind ~= "list" and spec.kind ~= "any")
end

-- Options by name into `values`.
local function read_options(fname, specs, options, values)
    for name, value in pairs(options) do
        if type(name) ~= "number" then
            local spec
            for _, s in ipairs(specs) do
                spec = s[1] == name and s or spec
            end
            if not spec then
                local names = {}
                for k, s in ipairs(specs) do
                    names[k] = s[1]
                end
                local near = tide._nearest(tostring(name), names)
                check.fail(near and "%s: no option '%s': did you mean '%s'?" or "%s: no option '%s'",
                    fname, tostring(name), near)
            elseif values[name] ~= nil then
                check.fail("%s: '%s' is given by position and by name", fname, name)
            end
            values[name] = read_value(fname, spec, value)
        end
    end
end

-- Read the arguments of `fname`: specs = { { "name", kind = "size", default = 1 }, ... }. Positional
-- ones may be followed by a table of options; one table may hold both. Returns { name = value }.
-- Without a default an argument must be given, unless `optional`.
function check.arguments(fname, specs, ...)
    local given, n = { ... }, select("#", ...)
    local values = {}
    if n == 1 and type(given[1]) == "table" and not getmetatable(given[1]) and #given[1] > 0
        and specs[1].kind ~= "list" and not (specs[1].kind == "sizes" and #given[1] == 2 and next(given[1], 2) == nil) then
        local all = given[1]
        given, n = { table.unpack(all) }, #all
        given[n + 1] = {}
        for name, value in pairs(all) do
            if type(name) ~= "number" then
                given[n + 1][name] = value
            end
        end
        n = next(given[n + 1]) ~= nil and n + 1 or n
    end
    local options = n > 0 and is_options(given[n], specs[n]) and given[n] or nil
    if options then
        n = n - 1
    end
    if n > #specs then
        check.fail("%s: at most %d arguments, got %d", fname, #specs, n)
    end
    for k = 1, n do
        if given[k] ~= nil then
            values[specs[k][1]] = read_value(fname, specs[k], given[k])
        end
    end
    read_options(fname, specs, options or {}, values)
    for _, spec in ipairs(specs) do
        if values[spec[1]] == nil then
            if spec.default == nil and not spec.optional then
                check.fail("%s: argument %s: expected %s, got nothing", fname, spec[1], kinds[spec.kind][1])
            end
            values[spec[1]] = spec.default
        end
    end
    return values
end

return check
