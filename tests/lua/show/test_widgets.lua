-- test_widgets.lua: widgets and tide.interact where no page is: values that keep their rules. What goes to a page is
-- tests/kernel/test_comm.py's.
local t = require "harness"
local w = tide.widgets

t.test("sliders_stay_within_their_limits", function()
    local s, heard = w.IntSlider(3, { min = 1, max = 10 }), {}
    s:observe(function(change) heard[#heard + 1] = { change.name, change.old, change.new } end)
    s.value = 20
    t.eq(s.value, 10)
    s.max = 5
    t.eq({ s.value, s.max }, { 5, 5 })
    s.value = 5
    t.eq(heard, { { "value", 3, 10 }, { "value", 10, 5 } })
    t.eq(w.IntSlider(99).value, 99)
    t.eq(w.IntSlider(999).value, 100)
    t.eq(w.FloatLogSlider(1e-9, { min = -5, max = 0 }).value, 1e-5)
    s:unobserve()
    s.value = 2
    t.eq(#heard, 2)
    t.eq(tostring(s), 'IntSlider(value=2, min=1, max=5)')
end)

t.test("choices_are_values_with_labels", function()
    local d, heard = w.Dropdown { "a", "b", { "C", 3 } }, {}
    d:observe(function(change) heard[#heard + 1] = change.new end)
    t.eq({ d.value, d.index, d.options }, { "a", 1, { "a", "b", 3 } })
    d.value = 3
    d.index = 2
    d.options = { "x" }
    t.eq({ d.value, d.index, heard }, { "x", 1, { 3, "b", "x" } })
    t.eq({ w.Dropdown({ 1, 2 }, 2).index, w.Dropdown({ 1, 2 }, { index = 2 }).value }, { 2, 2 })
    t.eq(w.Dropdown({}).value, nil)
    local no = w.Dropdown({ true, false }, { value = false })
    t.eq({ no.index, no.value }, { 2, false })
    t.eq({ w.Checkbox(false).value, w.Checkbox().value, w.Checkbox(true).value }, { false, false, true })
end)

t.test("a_closed_widget_is_still_a_value", function()
    local s = w.Text("a")
    s:close()
    s:close()
    s.value = "b"
    t.eq(s.value, "b")
end)

t.test("wrong_values_are_refused_in_a_line", function()
    local s, box = w.IntSlider(3), w.VBox({})
    for _, case in ipairs {
        { function() s.valu = 3 end, "IntSlider has no field 'valu'" },
        { function() return s.valu end, "IntSlider has no field 'valu'" },
        { function() s.value = "x" end, "IntSlider: value: expected an integer, got string" },
        { function() s.value = 1.5 end, "expected an integer" },
        { function() s.disabled = 1 end, "IntSlider: disabled: expected true or false" },
        { function() w.IntSlider { val = 3 } end, "no option 'val'" },
        { function() w.IntSlider(1, { min = 5, max = 2 }) end, "expected min <= max, got 5 and 2" },
        { function() w.FloatSlider(0 / 0) end, "FloatSlider: value: expected a finite number" },
        { function() w.Text("\xff") end, "Text: value: expected a text" },
        { function() w.HBox { 1 } end, "of which number 1 is number 1" },
        { function() box.children = { w.HBox { box } } end, "a widget can't be within itself" },
        { function() w.Dropdown() end, "Dropdown: argument 1 (options)" },
        { function() w.Dropdown({ "a" }, "b") end, 'value: string "b" is none of the options' },
        { function() w.Dropdown({ "a" }, { index = 2 }) end, "index: 2 is not among 1 options" },
        { function() w.Dropdown({ "a" }).index = 2 end, "expected an integer from 1 to 1" },
        { function() w.Button("x"):on_click(3) end, "on_click: expected a function, got number 3" },
        { function() s:observe(print, "zz") end, "observe: IntSlider has no field 'zz'" },
        { function() tide.comm.open("x") end, "open: this front end has no comms: they need a notebook" },
    } do
        t.error_has(case[1], case[2])
    end
end)

-- What tide.interact prints, and the arguments that fn got.
local function interact(fn, controls)
    local lines, got, print_before, show_before = {}, nil, print, tide._show_value
    print = function(text) lines[#lines + 1] = text end
    tide._show_value = nil
    local ok, problem = pcall(tide.interact, fn or function(...) got = table.pack(...) end, controls)
    print, tide._show_value = print_before, show_before
    if not ok then
        error(problem, 0)
    end
    return lines, got
end

t.test("interact_calls_once_where_no_page_is_and_says_so", function()
    local got
    local lines = interact(function(lr, rest, n) got = { lr, rest == nil, n } end, { n = { 1, 10 }, lr = { 0.01, 1 } })
    t.eq(lines, { "interact: controls need a notebook; called once with lr = 0.505, n = 5" })
    t.eq(got, { 0.505, true, 5 })
    local _, values = interact(nil, { a = true, b = "x", c = { "p", "q", "r" }, d = 4, e = { 0, 1, 0.25 }, f = w.Text("own") })
    t.eq(values[1], { a = true, b = "x", c = "p", d = 4, e = 0.5, f = "own" })
    interact(function(x) got = x end, { x = { 1e-4, 1, log = true } })
    t.close(got, 0.01, 1e-12)
end)

t.test("interact_refuses_what_is_no_control", function()
    local function one() end
    local function two(_, a) return a end
    for _, case in ipairs {
        { one, { b = { 1, 2 } }, nil },
        { two, { b = { 1, 2 } }, "interact: the function has no parameter 'b': it has _, a" },
        { two, { a = { 2, 1 } }, "expected {low, high} with low < high, got {2, 1}" },
        { two, { a = { 0, 1, -0.1 } }, "expected a step above 0" },
        { two, { a = { -1, 1, log = true } }, "begins above 0" },
        { two, { a = print }, "or a widget, got function" },
        { two, { a = tide.ones(2) }, "or a widget, got" },
        { two, { [3] = 1 }, "expected names of parameters, got the key number 3" },
    } do
        if case[3] then
            t.error_has(function() interact(case[1], case[2]) end, case[3])
        else
            interact(case[1], case[2])
        end
    end
    t.error_has(function() tide.interact(3, {}) end, "expected a function, got number 3")
    t.error_has(function() interact(function() error("inner") end, {}) end, "inner")
end)
