-- harness.lua: the tests of Lua files. Knows nothing of tide: it compares what it is given by `==`,
-- by value for plain tables, and through tostring in messages.
--
--     local t = require "harness"
--     t.test("sum_of_empty_is_zero", function() t.eq(tide.zeros(0):sum():item(), 0) end)
--
-- `tide tests/lua/run.lua FILE` runs such a file and closes with its count. A failed check ends its test
-- with an error; the next test runs.
local t = {}

local passed, failed, skipped = 0, 0, 0

local function show(value, depth)
    depth = depth or 0
    if type(value) == "string" then
        return string.format("%q", value)
    elseif type(value) ~= "table" or depth > 4 or getmetatable(value) then
        return tostring(value)
    end
    local parts, keys = {}, {}
    for i = 1, #value do
        parts[i] = show(value[i], depth + 1)
    end
    for key in pairs(value) do
        if not (math.type(key) == "integer" and key >= 1 and key <= #value) then
            keys[#keys + 1] = key
        end
    end
    table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
    for _, key in ipairs(keys) do
        parts[#parts + 1] = tostring(key) .. " = " .. show(value[key], depth + 1)
    end
    return "{" .. table.concat(parts, ", ") .. "}"
end

local function same(a, b)
    if a == b then
        return true
    elseif type(a) ~= "table" or type(b) ~= "table" or getmetatable(a) or getmetatable(b) then
        return false
    end
    for key, value in pairs(a) do
        if not same(value, b[key]) then
            return false
        end
    end
    for key in pairs(b) do
        if a[key] == nil then
            return false
        end
    end
    return true
end

local function fail(message, what)
    error((what and what .. ": " or "") .. message, 3)
end

-- Whether two numbers lie within tol of each other; nan is close to nan, an infinity to itself.
local function near(a, b, tol)
    return a == b or (a ~= a and b ~= b) or math.abs(a - b) <= tol
end

--- test(name, fn): run fn; an error in it is a failed test, printed with its traceback.
function t.test(name, fn)
    local ok, trace = xpcall(fn, function(err)
        return debug.traceback(tostring(err), 2)
    end)
    if ok then
        passed = passed + 1
    else
        failed = failed + 1
        io.stderr:write("FAILED ", name, "\n    ", (trace:gsub("\n", "\n    ")), "\n")
    end
end

--- eq(got, want [, what]): equal by ==, or plain tables with equal contents.
function t.eq(got, want, what)
    if not same(got, want) then
        fail("got " .. show(got) .. ", expected " .. show(want), what)
    end
end

--- ne(got, unwanted [, what]): the opposite of eq.
function t.ne(got, unwanted, what)
    if same(got, unwanted) then
        fail("got " .. show(got) .. ", which was not to be", what)
    end
end

--- close(got, want [, tol = 1e-6 [, what]]): numbers, or tables of numbers nested alike, within tol.
function t.close(got, want, tol, what)
    tol = tol or 1e-6
    local function compare(a, b, path)
        if type(a) == "number" and type(b) == "number" then
            return not near(a, b, tol) and string.format("%sgot %.17g, expected %.17g within %g", path, a, b, tol)
        elseif type(a) ~= "table" or type(b) ~= "table" or #a ~= #b then
            return path .. "got " .. show(a) .. ", expected " .. show(b)
        end
        for i = 1, #b do
            local wrong = compare(a[i], b[i], path .. "[" .. i .. "] ")
            if wrong then
                return wrong
            end
        end
        return false
    end
    local wrong = compare(got, want, "")
    if wrong then
        fail(wrong, what)
    end
end

--- is_true(value [, what]): not nil and not false.
function t.is_true(value, what)
    if not value then
        fail("got " .. show(value) .. ", expected a true value", what)
    end
end

--- is_false(value [, what]): nil or false.
function t.is_false(value, what)
    if value then
        fail("got " .. show(value) .. ", expected false or nil", what)
    end
end

--- error_matches(fn, pattern [, what]): fn raises an error whose text has the Lua pattern; returns the text.
function t.error_matches(fn, pattern, what)
    local ok, err = pcall(fn)
    if ok then
        fail("no error, expected one matching " .. show(pattern), what)
    end
    err = tostring(err)
    if not err:find(pattern) then
        fail("error " .. show(err) .. " doesn't match " .. show(pattern), what)
    end
    return err
end

--- error_has(fn, text [, what]): the same with plain text in place of a pattern.
function t.error_has(fn, text, what)
    local ok, err = pcall(fn)
    if ok then
        fail("no error, expected one with " .. show(text), what)
    end
    err = tostring(err)
    if not err:find(text, 1, true) then
        fail("error " .. show(err) .. " lacks " .. show(text), what)
    end
    return err
end

--- refused(text, fn, ...): the same of a call with these arguments.
function t.refused(text, fn, ...)
    local arguments = table.pack(...)
    return t.error_has(function() fn(table.unpack(arguments, 1, arguments.n)) end, text)
end

--- skip(name, why): say that a test could not run here.
function t.skip(name, why)
    skipped = skipped + 1
    print("skipped " .. name .. ": " .. why)
end

--- counts(): passed, failed so far.
function t.counts()
    return passed, failed
end

--- finish(): print "N passed, N failed" and leave: 1 when a test failed or none ran, 77 when all that
-- there was had to be skipped.
function t.finish()
    print(string.format("%d passed, %d failed", passed, failed))
    if failed == 0 and passed == 0 and skipped > 0 then
        os.exit(77, true)
    end
    os.exit(failed == 0 and passed > 0, true)
end

return t
