-- test_show_examples.lua: what shows things (tide.display, plot, comm, widgets, interact) has an example in its help, and
-- the example runs.
local t = require "harness"

local function run_example(name, value)
    local doc = tide._doc(value)
    t.is_true(doc, name .. " has help")
    local example = doc.doc:match("Example: (.+)$")
    t.is_true(example, name .. " has an example")
    local chunk, problem = load("return " .. example, "=" .. name)
    chunk = chunk or assert(load(example, "=" .. name), problem)
    local out, print_before = {}, print
    print = function(...) out[#out + 1] = table.concat({ tostring((...)) }) end
    local display = tide._show_value
    tide._show_value = function(_, value_shown) out[#out + 1] = tostring(value_shown) end
    local ok, result = pcall(chunk)
    print, tide._show_value = print_before, display
    t.is_true(ok, name .. ": " .. tostring(result))
    if result ~= nil then
        t.is_true(#tostring(result) > 0)
    end
end

for _, room in ipairs { "display", "plot", "comm", "widgets" } do
    t.test("examples_of_" .. room .. "_run", function()
        local n = 0
        for name, value in pairs(tide[room]) do
            if not name:find("^_") and type(value) == "function" then
                run_example(room .. "." .. name, value)
                n = n + 1
            end
        end
        t.is_true(n >= 3, n)
    end)
end

t.test("examples_of_the_rest_run", function()
    run_example("interact", tide.interact)
    run_example("display", tide.display)
    for _, name in ipairs { "show", "svg", "vega", "save" } do
        run_example("Plot." .. name, getmetatable(tide.plot.line({ 1 }))[name])
    end
    local slider = tide.widgets.IntSlider(1)
    for _, name in ipairs { "observe", "unobserve", "close" } do
        run_example("Widget." .. name, slider[name])
    end
    run_example("Output.capture", tide.widgets.Output().capture)
    run_example("Output.clear", tide.widgets.Output().clear)
end)
