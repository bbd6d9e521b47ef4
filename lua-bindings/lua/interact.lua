-- interact.lua: tide.interact: a control for each parameter of a function, and what the function shows below them.
local tide = ...
local fail = tide._fail

local function is_number(v) return math.type(v) ~= nil and v == v and math.abs(v) < math.huge end

-- {low, high}, {low, high, step}, with log = true over powers of ten.
local function slider(name, range)
    local w = tide.widgets
    local low, high, step = range[1], range[2], range[3]
    if not (low < high) then
        fail("interact: %s: expected {low, high} with low < high, got {%s, %s}", name, tide._number(low), tide._number(high))
    elseif step and step <= 0 then
        fail("interact: %s: expected a step above 0, got %s", name, tide._number(step))
    elseif range.log then
        if low <= 0 then
            fail("interact: %s: a logarithmic slider begins above 0, got %s", name, tide._number(low))
        end
        local from, to = math.log(low, 10), math.log(high, 10)
        return w.FloatLogSlider(range.value or 10 ^ ((from + to) / 2), { min = from, max = to, step = (to - from) / 100, description = name })
    elseif math.type(low) == "integer" and math.type(high) == "integer" and (not step or math.type(step) == "integer") then
        return w.IntSlider(range.value or low + (high - low) // 2, { min = low, max = high, step = step or 1, description = name })
    end
    return w.FloatSlider(range.value or (low + high) / 2, { min = low, max = high, step = step or (high - low) / 100, description = name })
end

-- The control that a value stands for.
local function control(name, v)
    local w = tide.widgets
    if w._is_widget(v) then
        return v
    elseif type(v) == "boolean" then
        return w.Checkbox(v, { description = name })
    elseif type(v) == "string" then
        return w.Text(v, { description = name })
    elseif is_number(v) then
        local most = v == 0 and 1 or math.abs(v)
        return slider(name, { math.min(-most, 3 * v), math.max(most, 3 * v), value = v })
    elseif type(v) == "table" and getmetatable(v) == nil and #v > 0 then
        local numbers = (#v == 2 or #v == 3)
        for _, item in ipairs(v) do
            numbers = numbers and is_number(item)
        end
        return numbers and slider(name, v) or w.Dropdown(v, { description = name })
    end
    fail("interact: %s: expected {low, high}, {low, high, step}, a list, a number, a boolean, a text or a widget, got %s", name,
        tide._describe(v))
end

-- The names of a function's parameters in their order; nil where it has none of its own (C, ...).
local function parameters_of(fn)
    local info = debug.getinfo(fn, "u")
    local names = {}
    for k = 1, info.nparams do
        names[k] = debug.getlocal(fn, k)
    end
    return #names > 0 and names or nil
end

local function sorted_names(controls)
    local names = {}
    for name in pairs(controls) do
        if type(name) ~= "string" then
            fail("interact: argument 2 (controls): expected names of parameters, got the key %s", tide._describe(name))
        end
        names[#names + 1] = name
    end
    table.sort(names, tide._before)
    return names
end

-- The names of what has a control, in the order of the parameters.
local function order(fn, controls)
    local parameters, names = parameters_of(fn), sorted_names(controls)
    if not parameters then
        return names, nil
    end
    local known, ordered = {}, {}
    for _, name in ipairs(parameters) do
        known[name] = true
        ordered[#ordered + 1] = controls[name] ~= nil and name or nil
    end
    for _, name in ipairs(names) do
        if not known[name] then
            fail("interact: the function has no parameter '%s': it has %s", name, table.concat(parameters, ", "))
        end
    end
    return ordered, parameters
end

local function value_text(v) return type(v) == "number" and tide._number(v) or type(v) == "string" and string.format("%q", v) or tostring(v) end

return tide._function("interact(function fn, table controls, *, bool manual=false)",
    "A control for each parameter of fn by its name, and below them what fn prints, displays and returns, anew when one "
    .. "moves: {low, high} or {low, high, step} is a slider ({1e-5, 1, log = true} over powers), a list a choice, a boolean a box, "
    .. "a text a line; with manual a button runs it. Example: tide.interact(function(lr) return lr * 2 end, {lr = {0.01, 1}})",
    function(fn, controls, manual)
        if type(fn) ~= "function" then -- what can be called has no parameters to look at
            local callable = fn
            fn = function(...) return callable(...) end
        end
        local names, parameters = order(fn, controls)
        local made, children = {}, {}
        for k, name in ipairs(names) do
            made[name] = control(name, controls[name])
            children[k] = made[name]
        end
        local function call()
            local values = {}
            for _, name in ipairs(names) do
                values[name] = made[name].value
            end
            local result
            if parameters then
                local arguments = {}
                for k, name in ipairs(parameters) do
                    arguments[k] = values[name]
                end
                result = fn(table.unpack(arguments, 1, #parameters))
            else
                result = fn(values)
            end
            if result ~= nil then
                tide.display(result)
            end
        end
        if not tide.comm.available() then
            local texts = {}
            for k, name in ipairs(names) do
                texts[k] = name .. " = " .. value_text(made[name].value)
            end
            print(string.format("interact: controls need a notebook; called once with %s", table.concat(texts, ", ")))
            return call()
        end
        local output = tide.widgets.Output()
        local function run()
            output:capture(function()
                tide.clear_output(true)
                call()
            end)
        end
        if manual then
            local button = tide.widgets.Button("Run", { button_style = "primary" })
            button:on_click(run)
            children[#children + 1] = button
        else
            for _, name in ipairs(names) do
                made[name]:observe(run)
            end
        end
        children[#children + 1] = output
        tide.display(tide.widgets.VBox(children))
        if not manual then
            run()
        end
    end)
