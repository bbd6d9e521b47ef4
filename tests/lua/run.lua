-- run.lua: `tide tests/lua/run.lua FILE args...` runs a test file with the harness within reach of
-- `require`, and closes with its count, so that a file without t.finish() at its end can't pass unseen.
local here = arg[0]:match("^(.*)/") or "."
package.path = here .. "/?.lua;" .. package.path

local harness = require "harness"
local file = table.remove(arg, 1)
if not file then
    io.stderr:write("usage: run.lua FILE [args...]\n")
    os.exit(2)
end
arg[0] = file
package.path = (file:match("^(.*)/") or ".") .. "/?.lua;" .. package.path

-- With TIDE_INFERRED_CALLS (tests/seam) every call of an operator is compared with what td_op_infer says of it.
local compared = os.getenv "TIDE_INFERRED_CALLS"
if compared then
    assert(package.loadlib(compared, "compare_inferred_calls"))()
end

local chunk, message = loadfile(file)
if not chunk then
    io.stderr:write(message, "\n")
    os.exit(1)
end
local ok, trace = xpcall(chunk, function(err) return debug.traceback(tostring(err), 2) end, table.unpack(arg))
if not ok then
    io.stderr:write(trace, "\n")
    harness.test("runs to its end", function() error("the file stopped with an error") end)
end
if compared then
    local count, differences = assert(package.loadlib(compared, "inferred_calls_report"))()
    harness.test("calls are what was inferred of them", function()
        harness.eq(differences, "")
        harness.is_true(count > 0, "calls")
    end)
end
harness.finish()
