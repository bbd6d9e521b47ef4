-- harness_check.lua: the harness must fail what is wrong. Runs in any Lua 5.4; uses no harness of its own.
package.path = (arg[0]:match("^(.*)/") or ".") .. "/?.lua;" .. package.path
local t = require "harness"

local wrong = 0
local function expect(name, ok, fn)
    if pcall(fn) ~= ok then
        wrong = wrong + 1
        io.stderr:write("harness: ", name, ok and " should pass\n" or " should fail\n")
    end
end

expect("eq of equal numbers", true, function() t.eq(1, 1.0) end)
expect("eq of different numbers", false, function() t.eq(1, 2) end)
expect("eq of number and string", false, function() t.eq(1, "1") end)
expect("eq of equal tables", true, function() t.eq({1, {2, a = "x"}}, {1, {2, a = "x"}}) end)
expect("eq of a table with more", false, function() t.eq({1, 2}, {1}) end)
expect("eq of a table with less", false, function() t.eq({1}, {1, 2}) end)
expect("eq of nil and false", false, function() t.eq(nil, false) end)
expect("ne of different", true, function() t.ne(1, 2) end)
expect("ne of equal", false, function() t.ne({1}, {1}) end)
expect("close within tolerance", true, function() t.close(1, 1 + 1e-9) end)
expect("close beyond tolerance", false, function() t.close(1, 1.1, 0.01) end)
expect("close of nested tables", true, function() t.close({{1, 2}}, {{1, 2.005}}, 0.01) end)
expect("close of nested tables beyond", false, function() t.close({{1, 2}}, {{1, 2.05}}, 0.01) end)
expect("close of tables unlike in length", false, function() t.close({1}, {1, 2}) end)
expect("close of nan and nan", true, function() t.close(0 / 0, 0 / 0) end)
expect("close of nan and a number", false, function() t.close(0 / 0, 1, math.huge) end)
expect("close of infinities unlike in sign", false, function() t.close(math.huge, -math.huge, 1) end)
expect("close of a number and nil", false, function() t.close(nil, 1) end)
expect("is_true of 0", true, function() t.is_true(0) end)
expect("is_true of nil", false, function() t.is_true(nil) end)
expect("is_false of false", true, function() t.is_false(false) end)
expect("is_false of 0", false, function() t.is_false(0) end)
expect("error_matches of a match", true, function() t.error_matches(function() error("a1b") end, "a%db") end)
expect("error_matches of no match", false, function() t.error_matches(function() error("ab") end, "a%db") end)
expect("error_matches without an error", false, function() t.error_matches(function() end, "") end)
expect("error_has of plain text", true, function() t.error_has(function() error("(a)") end, "(a)") end)
expect("error_has without an error", false, function() t.error_has(function() end, "") end)

-- A test that raises is counted as failed, and the ones after it still run.
local stderr = io.stderr
io.stderr = {write = function() end} -- the report of the failure that is meant
t.test("raises", function() error({}) end)
t.test("passes", function() t.eq(1, 1) end)
io.stderr = stderr
local passed, failed = t.counts()
if passed ~= 1 or failed ~= 1 then
    wrong = wrong + 1
    io.stderr:write("harness: counted ", passed, " passed and ", failed, " failed instead of 1 and 1\n")
end
print(wrong .. " wrong")
os.exit(wrong == 0)
