-- Small programs made at random, from a fixed seed: as graphs they give what Lua gives, to the bit.
local t = require "harness"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local h = dofile(here .. "/script_harness.lua")

local PROGRAMS = 150

local random = dofile(here .. "/random_programs.lua")

t.test("random_programs_give_what_lua_gives", function()
    for k = 1, PROGRAMS do
        local text = random.program()
        local chunk, why = load(text)
        local fn = (chunk or error(string.format("%s\n%s", why, text)))()
        local ok, problem = pcall(h.same, fn, table.unpack(random.inputs))
        if not ok then
            error(string.format("program %d\n%s\n%s", k, problem, text))
        end
    end
end)
