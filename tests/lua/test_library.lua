-- test_library.lua: tide.load_library: operators of a shared library are operators like all others, in states that were there
-- before too; a library that is wrong leaves nothing behind.
local t = require "harness"
local tide = require "tide"

local build = os.getenv "TIDE_BUILD"
local good, misfit = build .. "/tests/lua/tide_test_operators.so", build .. "/tests/lua/tide_test_misfit.so"

t.test("operators_of_a_library_are_functions_and_methods", function()
    t.eq(tide._doc("late_square"), nil)
    local names = tide.load_library(good)
    table.sort(names)
    t.eq(table.concat(names, " "), "late_square late_square_plus")
    local x = tide.tensor({ 1.0, 2, 3 }, { requires_grad = true })
    t.eq(tide.late_square(x):tolist(), { 1, 4, 9 })
    t.eq(x:late_square_plus(2):tolist(), { 3, 6, 11 })
    t.eq(x:late_square_plus { b = 2 }:tolist(), { 3, 6, 11 })
    x:late_square_plus():sum():backward()
    t.eq(x.grad:tolist(), { 2, 4, 6 })
    t.is_true(tide.autograd.gradcheck(tide.late_square, { tide.randn(3, { dtype = tide.float64, requires_grad = true }) }))
    t.is_true(tostring(tide._doc("late_square") and tide._doc("late_square").doc):find("squared", 1, true))
    local ok, why = pcall(tide.late_square)
    t.is_true(not ok and why:find("late_square", 1, true), why)
end)

t.test("loading_it_again_changes_nothing", function()
    local before = #tide._ops()
    t.eq(#tide.load_library(good), 2)
    t.eq(#tide._ops(), before)
end)

t.test("other_states_load_it_as_well", function()
    local pool <close> = tide.workers { n = 2 }
    local sums = pool:map(function(path)
        tide.load_library(path)
        return tide.late_square(tide.tensor { 3 }):item()
    end, { good, good, good, good })
    t.eq(sums, { 9, 9, 9, 9 })
end)

t.test("a_library_that_is_wrong_leaves_nothing_behind", function()
    local before = #tide._ops()
    local ok, why = pcall(tide.load_library, misfit)
    t.is_true(not ok and why:find("no_such_operator", 1, true), why)
    t.eq(#tide._ops(), before)
    t.eq(tide._doc("late_fine"), nil)
    ok = pcall(function() return tide.late_fine end)
    t.is_true(not ok)
end)

t.test("what_is_no_such_library_is_refused_in_one_line", function()
    for path, text in pairs {
        ["/nowhere/none.so"] = "No such file",
        [os.getenv "TIDE_SOURCE" .. "/README.md"] = "README.md",
        [os.getenv "TIDE_LATE_DEVICE"] = "TD_OPERATOR_LIBRARY",
    } do
        local ok, why = pcall(tide.load_library, path)
        t.is_true(not ok and why:find(text, 1, true) and not why:find("\n"), why)
    end
end)
