-- notebook/choice.lua: tide.widgets.Dropdown: one of several values with labels. The page knows labels and a place
-- counted from 0; here it is counted from 1, and value is what stands there.
local tide = ...
local fail = tide._fail
local null, list = tide._require("files.json").null, tide._require("files.json").list

local function option_value(values)
    local option = values.options[values.index]
    return option and option[2] -- false may be chosen
end

local function place_of(values, value)
    for k, option in ipairs(values.options) do
        if rawequal(option[2], value) or option[2] == value then
            return k
        end
    end
end

-- What classes of widgets are made of (widgets.lua).
return function(base)
    local define, push, notify, check = base.define, base.push, base.notify, base.check

    define("Dropdown", { style = "DescriptionStyle", fixed = { description_allow_html = false }, positional = 2,
        traits = { { "options", "list", false, "options" }, { "value", "any", "nil", "any" }, base.description, base.disabled,
            { "index", "int", "0", "int" } },
        doc = "One of several: texts, numbers or {label, value} pairs; value is what is chosen, index its place from 1. "
            .. "Example: tide.widgets.Dropdown({'SGD', 'Adam'}, {description = 'optimizer'})",
        init = function(_, values)
            if values.value ~= nil then
                values.index = place_of(values, values.value) or fail("Dropdown: value: %s is none of the options", tide._describe(values.value))
            elseif values.index == 0 and #values.options > 0 then
                values.index = 1
            end
            if values.index < 0 or values.index > #values.options then
                fail("Dropdown: index: %d is not among %d options", values.index, #values.options)
            end
            values.value = option_value(values)
        end,
        to_wire = function(self, name)
            local values = rawget(self, "_values")
            if name == "options" then
                local labels = list {}
                for k, option in ipairs(values.options) do
                    labels[k] = option[1]
                end
                return "_options_labels", labels
            elseif name == "value" or name == "index" then
                return "index", values.index > 0 and values.index - 1 or null
            end
            return name, values[name]
        end,
        from_wire = function(self, wire, value)
            local values = rawget(self, "_values")
            if wire == "index" then
                local index = rawequal(value, null) and 0 or math.tointeger(value) and value + 1
                if not index or index < 0 or index > #values.options then
                    fail("Dropdown: the page chose %s of %d options", tide._describe(value), #values.options)
                end
                values.index = index
                return "value", option_value(values)
            elseif wire == "disabled" or wire == "description" then
                return wire, check(self, wire, value)
            end
        end,
        get = { options = function(self)
            local options = {}
            for k, option in ipairs(rawget(self, "_values").options) do
                options[k] = option[2]
            end
            return options
        end },
        set = {
            value = function(self, value)
                local values = rawget(self, "_values")
                local index = place_of(values, value) or fail("Dropdown: value: %s is none of the options", tide._describe(value))
                local old = values.value
                values.index, values.value = index, value
                push(self, { "index" })
                notify(self, "value", old)
            end,
            index = function(self, index)
                local options = rawget(self, "_values").options
                if not math.tointeger(index) or index < 1 or index > #options then
                    fail("Dropdown: index: expected an integer from 1 to %d, got %s", #options, tide._describe(index))
                end
                self.value = options[index][2]
            end,
            options = function(self, options)
                local values = rawget(self, "_values")
                local old = values.value
                values.options = check(self, "options", options)
                values.index = #values.options > 0 and 1 or 0
                values.value = option_value(values)
                push(self, { "options", "index" })
                notify(self, "value", old)
            end,
        } })
end
