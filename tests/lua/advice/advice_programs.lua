-- advice_programs.lua: the slow programs of notebooks/advice draw their kind at the line that it is about, the mended ones
-- draw nothing: from the first to the last of these kinds.
local t = require "harness"
local advised = require "advised"
local counted = require "counted"
local profiler = tide.profiler

local folder = os.getenv("TIDE_SOURCE") .. "/notebooks/advice/"

-- A part of the line that each slow program's advice is about.
local LINES = {
    foreach = "params[k]:add_", batch = "points[j]", elementwise_loop = "k", sync = "x[mask]", layout = "contiguous()",
    cast = "pixels:to(", fuse = "(goal - x)", script = "(x - k)", no_grad = "model(x)", hoist = "tide.cdist", grow = "tide.cat", allocate = "x * 0.99",
    small_batch = "weight:mv", chain_order = "a:mm(b)", precision = "x:mm(weight)", threads = "tide.sin", data = "read_csv",
    gc = "collectgarbage()", scalar = "rate", optimizer = "p:sub_",
}

local function read(path)
    local file = assert(io.open(path))
    local text = file:read("a")
    file:close()
    return text
end

local function line_text(path, number)
    local k = 0
    for line in read(path):gmatch("([^\n]*)\n") do
        k = k + 1
        if k == number then
            return line
        end
    end
    return ""
end

-- What is about time that no call and no number of elements tells: waits, memory, precision, files. Others are found by
-- counted costs, whatever else the machine does.
local BY_CLOCK = { sync = true, allocate = true, precision = true, threads = true, data = true, gc = true, no_grad = true }

-- The advice that a program draws; what it prints is kept to itself.
local function advice_of(name, kind)
    local script, print_as_it_was, threads = arg[0], print, tide.get_num_threads()
    local path = folder .. name .. ".lua"
    arg[0], print = path, function() end
    local ok, advice = pcall(function()
        local function run() dofile(path) end
        return BY_CLOCK[kind] and profiler.profile({ run, with_stack = true }):advice() or counted.advice_of(run)
    end)
    arg[0], print = script, print_as_it_was
    tide.set_num_threads(threads)
    return assert(ok and advice, advice), path
end

-- What depends on how fast this machine is in two ways of doing one thing.
local MACHINE = { precision = true, threads = true }

-- Under a sanitizer times say nothing: programs are run and advised on, and what is found stands at its line.
local SANITIZED = os.getenv "TIDE_SANITIZED" ~= nil

local function check(kind)
    t.test(kind .. "_is_found_at_its_line_and_not_in_the_mended_program", function()
        advised.try(function(last)
            local advice, path = advice_of(kind, kind)
            local item = advised.of_kind(advice, kind)
            if not item then
                t.is_true(not last or MACHINE[kind], kind .. ": " .. tostring(advice))
                return MACHINE[kind] or SANITIZED
            end
            t.eq(item.file, path)
            t.is_true(line_text(path, item.line):find(LINES[kind], 1, true), item.line .. ": " .. line_text(path, item.line))
            t.is_true(item.share >= 0.05 and item.share <= 1 and item.gain > 1 and item.count > 1 and #item.fix > 0)
            return true
        end)
        advised.try(function(last)
            local mended = advice_of(kind .. "_mended", kind)
            t.is_true(not last or #mended == 0, tostring(mended))
            return #mended == 0 or SANITIZED
        end)
    end)
end

return function(first, last)
    for k = first, math.min(last, #tide._require("advice.collect").kinds) do
        check(tide._require("advice.collect").kinds[k])
    end
end
