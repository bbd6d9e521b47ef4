-- test_schema.lua: the texts that declare functions: what is wrong in one is said when it is declared, not
-- found by a call.
local t = require "harness"

local function declare(parameters)
    return tide._function("f(" .. parameters .. ") -> any", "", function(...) return ... end)
end

t.test("a_default_of_another_kind_is_refused", function()
    for _, parameter in ipairs {
        "str x=5", "str x=true", "int x=1.5", "int x=\"1\"", "int[] x=3", "dim x={1}", "bool x=1", "bool x=\"\"",
        "number x=true", "number x={1}", "Tensor x=1", "dtype x=\"int64\"", "table x={}", "function x=1", "float x={}",
        "generator x=1", "Tensor[] x={1}", "\"a\"|\"b\" x=1", "device x=0", "list x={1}",
    } do
        t.error_has(function() declare(parameter) end, "the default is not of the type")
    end
end)

t.test("defaults_are_exact", function()
    t.eq({ declare("int x=9007199254740993, int y=-9223372036854775808, float z=3, number w=1e3")() },
        { 9007199254740993, math.mininteger, 3.0, 1000.0 })
    t.eq(declare("int[] x={1, -2, 3, 9007199254740993}")(), { 1, -2, 3, 9007199254740993 })
    t.error_has(function() declare("int x=100000000000000000000") end, "does not fit into 64 bits")
    t.error_has(function() declare("int[] x={1,2,3,4,5}") end, "too many integers")
    t.error_has(function() declare("int[] x={1 2}") end, "',' or '}' expected")
    t.error_has(function() declare("int[] x={a}") end, "an integer expected")
    t.error_has(function() declare("int[300] x={1}") end, "a length from 1 to 255")
end)

t.test("a_list_may_be_one_of_some_strings_instead", function()
    local f = declare('int(0..)[2]|"same"|"valid" x={1, 2}')
    t.eq({ f(3) }, { { 3, 3 } })
    t.eq({ f("same") }, { "same" })
    t.eq({ f() }, { { 1, 2 } })
    t.error_has(function() f("full") end, 'f: argument 1 (x): expected one or two integers from 0 on, or "same" or "valid"')
    t.eq(tide._doc(f).signature, 'f(int(0..)[2]|"same"|"valid" x={1, 2}) -> any')
end)

t.test("entries_of_a_list_may_be_left_out", function()
    local f = declare("int?[2] x")
    t.eq({ f({ false, 3 }) }, { { false, 3 } })
    t.error_has(function() f({ true, 3 }) end, "expected one or two integers")
    t.eq(tide._doc(f).signature, "f(int?[2] x) -> any")
end)

t.test("a_list_of_numbers_takes_one_number_too", function()
    local f = declare("number[]? x=nil")
    t.eq({ f({ 1.5, 2 }) }, { { 1.5, 2 } })
    t.eq({ f(2.5) }, { 2.5 })
    t.error_has(function() f({ 1, "a" }) end, "f: argument 1 (x): expected a number or a list of numbers")
    t.error_has(function() f({ 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17 }) end, "at most 16 numbers")
    t.eq(tide._doc(f).signature, "f(number[]? x=nil) -> any")
end)

t.test("long_defaults_are_shown_whole", function()
    local f = declare("int[] x={-9223372036854775808,-9223372036854775808,-9223372036854775808,-9223372036854775808}")
    t.eq(select(2, tide._doc(f).signature:gsub("-9223372036854775808", "")), 4)
    local long = ("x"):rep(100)
    t.eq(tide._doc(declare('str s="' .. long .. '"')).signature, 'f(str s="' .. long .. '") -> any')
end)
