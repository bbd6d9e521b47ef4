-- nn/containers.lua: the containers of tide.nn: modules and parameters in lists, which count from 1, and under
-- names.
local tide = ...
local fail, declare = tide._fail, tide._function

return function(nn, base)
    local children, refresh, is_module = base.children, base.refresh, nn.is_module

    local function document(name, c, read)
        nn[name] = c
        tide._document(c, read)
    end

    -- The parts of a container, by place, in the place of those that it had.
    local function replace(self, parts)
        for _, name in ipairs(self._names) do
            rawset(self, name, nil)
            self._kinds[name] = nil
        end
        rawset(self, "_names", {})
        for k, part in ipairs(parts) do
            self[k] = part
        end
    end

    -- A place in a list of n parts, `more` beyond it; -1 is the last.
    local function place(fname, index, n, more)
        local k = index < 0 and index + n + 1 or index
        if k < 1 or k > n + more then
            fail("%s: index %d is out of range for %d parts", fname, index, n)
        end
        return k
    end

    -- The parts that a container has, as {name, part}, in order.
    local function entries(self)
        local list = {}
        refresh(self)
        for _, name in ipairs(self._names) do
            if rawget(self, name) ~= nil then
                list[#list + 1] = { name, rawget(self, name) }
            end
        end
        return list
    end

    local function parts_of(self)
        local list = {}
        for k, entry in ipairs(entries(self)) do
            list[k] = entry[2]
        end
        return list
    end

    -- ---- parts by place ----

    -- The part at a place that is no name: counted from the end, or of parts that have names.
    local function part_at(self, k)
        local list = entries(self)
        local entry = list[k < 0 and #list + k + 1 or k]
        if not entry and k < 1 then
            fail("%s: there is no part %d: parts count from 1, here to %d, and -1 is the last", getmetatable(self).__name, k, #list)
        end
        return entry and (k < 0 or type(entry[1]) == "string") and entry[2] or nil
    end

    -- The parts of a text such as "2:4", ":-2" or "3:": both ends belong to it.
    local function part_range(self, text)
        local first, last = string.match(text, "^%s*(%-?%d*)%s*:%s*(%-?%d*)%s*$")
        if not first then
            fail('%s: "%s" is no range of parts: expected first:last, such as "2:4", ":-2" or "3:"', getmetatable(self).__name, text)
        end
        local list, picked = entries(self), {}
        local function bound(digits, default)
            local k = tonumber(digits) or default
            return k < 0 and #list + k + 1 or k
        end
        for k = math.max(1, bound(first, 1)), math.min(#list, bound(last, #list)) do
            picked[#picked + 1] = list[k]
        end
        return picked
    end

    -- A part in another's place, or behind the last.
    local function put(self, k, value)
        local list = entries(self)
        local entry = not self._kinds[k] and list[k < 0 and #list + k + 1 or k]
        if entry and (k < 0 or type(entry[1]) == "string") then
            rawset(self, entry[1], value)
        elseif self._kinds[k] or k == #list + 1 then
            base.assign(self, k, value)
        else
            fail("%s: there is no part %d to be replaced: parts count from 1, here to %d, and %d would be one more",
                getmetatable(self).__name, k, #list, #list + 1)
        end
    end

    -- A class, and those made from it, whose parts are counted: part[-1], #part, and with `pick`, which makes a container of the
    -- parts of a range, part["2:4"].
    local function count_parts(class, pick)
        function class.__index(self, key)
            if math.type(key) == "integer" then
                return part_at(self, key)
            end
            local value = class[key]
            if value == nil and pick and type(key) == "string" and string.find(key, ":", 1, true) then
                return pick(part_range(self, key))
            end
            return value
        end
        function class.__newindex(self, key, value)
            if pick and type(key) == "string" and string.find(key, ":", 1, true) then
                fail("%s: a range of parts can't be written at once: write them one by one", getmetatable(self).__name)
            end
            local write = math.type(key) == "integer" and rawget(self, "_names") and put or base.assign
            write(self, key, value)
        end
        class.__len = function(self) return #entries(self) end
        rawset(class, "count_parts", function(made) count_parts(made, pick) end)
    end

    -- ---- modules in a list ----

    local function grown(self, modules)
        for _, module in ipairs(modules) do
            self:add_module(#self._names + 1, module)
        end
        return self
    end

    -- The list {{name, module}, ...}, if that is the only argument.
    local function named_parts(list, ...)
        local plain = select("#", ...) == 0 and type(list) == "table" and getmetatable(list) == nil and #list > 0
        for _, pair in ipairs(plain and list or {}) do
            plain = plain and type(pair) == "table" and getmetatable(pair) == nil and type(pair[1]) == "string" and is_module(pair[2])
        end
        return plain and list or nil
    end

    -- A class of modules that are its arguments, or a list of them, or of {name, module}.
    local function list_class(name, doc)
        local read, c = declare(name .. "(Module[] modules)", doc), nn.class(name)
        function c:init(...)
            local pairs_of = named_parts(...)
            for k, module in ipairs(select("#", ...) > 0 and not pairs_of and read(...).modules or {}) do
                self:add_module(k, module)
            end
            for _, pair in ipairs(pairs_of or {}) do
                self:add_module(pair[1], pair[2])
            end
        end
        c.append = declare("append(Module self, Module module) -> Module", "Add a module behind the others.",
            function(self, module) return grown(self, { module }) end)
        c.extend = declare("extend(Module self, Module[] modules) -> Module", "Add modules behind the others.", grown)
        c.insert = declare("insert(Module self, int index, Module module) -> Module",
            "Put a module before the one at a place; those behind move on.", function(self, index, module)
                local list = parts_of(self)
                table.insert(list, place("insert", index, #list, 1), module)
                replace(self, list)
                return self
            end)
        c.pop = declare("pop(Module self, int index=-1) -> Module", "Take out a module; those behind move up.",
            function(self, index)
                local list = parts_of(self)
                local module = table.remove(list, place("pop", index, #list, 0))
                replace(self, list)
                return module
            end)
        count_parts(c, function(picked)
            local made = c()
            for k, entry in ipairs(picked) do
                made:add_module(type(entry[1]) == "string" and entry[1] or k, entry[2])
            end
            return made
        end)
        document(name, c, read)
        return c
    end

    local Sequential = list_class("Sequential", "Calls its modules one after the other; they count from 1, "
        .. "-1 is the last, or have names in Sequential{{\"stem\", conv}, {\"head\", fc}}. model[\"2:4\"] is one of some of them, both ends "
        .. "among them.")

    function Sequential:forward(x)
        for _, name in ipairs(self._names) do
            local module = rawget(self, name)
            if is_module(module) then -- else it was taken out
                x = module(x)
            end
        end
        return x
    end

    local ModuleList = list_class("ModuleList", "Modules in a list, for a forward that you write: list[1], list[-1], list[\"2:4\"].")

    -- Equal neighbours are one line: "(1-4): 4 x Linear(...)".
    function ModuleList:describe()
        local runs = {}
        for _, child in ipairs(children(base.check_tree(self))) do
            local text, last = child[2]:describe(), runs[#runs]
            if last and last.text == text then
                last.final, last.count = child[1], last.count + 1
            else
                runs[#runs + 1] = { text = text, first = child[1], final = child[1], count = 1 }
            end
        end
        local lines = {}
        for k, run in ipairs(runs) do
            lines[k] = run.count == 1 and { run.first, run.text }
                or { string.format("%s-%s", run.first, run.final), string.format("%d x %s", run.count, run.text) }
        end
        return base.tree_text(self, lines)
    end

    -- ---- parts under names ----

    -- A name that is no field or method of the class's.
    local function check_name(self, name)
        if type(name) ~= "string" and math.type(name) ~= "integer" then
            fail("%s: a name expected, got %s", getmetatable(self).__name, tide._describe(name))
        elseif not self._kinds[name] and self[name] ~= nil then
            fail("%s: '%s' is a field or method of the class: take another name", getmetatable(self).__name, name)
        end
    end

    -- {name = part, ...} by name, or {{name, part}, ...} in this order, one after the other.
    local function pairs_in_order(given)
        local list = {}
        for _, pair in ipairs(given) do
            if type(pair) ~= "table" or is_module(pair) or #pair ~= 2 then
                fail("update: names with their parts expected, or pairs {name, part}, got %s in the list",
                    tide._describe(pair))
            end
            list[#list + 1] = pair
        end
        local names = {}
        for name in pairs(given) do
            if math.type(name) ~= "integer" then
                names[#names + 1] = name
            end
        end
        table.sort(names, function(a, b) return tide._before(tostring(a), tostring(b)) end)
        for _, name in ipairs(names) do
            list[#list + 1] = { name, given[name] }
        end
        return list
    end

    -- A class of named parts; take(self, name, value) puts one in.
    local function dict_class(name, what, doc, take)
        local read, c = declare(string.format("%s(table? %s=nil)", name, what), doc), nn.class(name)
        local function update(self, given)
            for _, pair in ipairs(pairs_in_order(given)) do
                check_name(self, pair[1])
                take(self, pair[1], pair[2])
            end
            return self
        end
        local function list_of(self, entry)
            local list = {}
            refresh(self)
            for _, key in ipairs(self._names) do
                if rawget(self, key) ~= nil then
                    list[#list + 1] = entry(key)
                end
            end
            return list
        end
        function c:init(given)
            if given ~= nil then
                if type(given) ~= "table" or is_module(given) then
                    fail("%s: names with their parts expected, got %s", name, tide._describe(given))
                end
                update(self, given)
            end
        end
        c.update = declare("update(Module self, table parts) -> Module",
            "Put in parts by name: {name = part}, or {{name, part}, ...} in this order.", update)
        c.keys = declare("keys(Module self) -> list", "The names, in the order in which they came.",
            function(self) return list_of(self, function(key) return key end) end)
        c.values = declare("values(Module self) -> list", "The parts, in the order in which they came.",
            function(self) return list_of(self, function(key) return rawget(self, key) end) end)
        c.items = declare("items(Module self) -> function", "Names with their parts, for a loop.", function(self)
            return base.each(list_of(self, function(key) return { key, rawget(self, key) } end))
        end)
        c.pop = declare("pop(Module self, any name) -> any", "Take out the part of a name.", function(self, key)
            local part = self._kinds[key] and rawget(self, key)
            if not part then
                fail("pop: no part is called %s", tide._describe(key))
            end
            rawset(self, key, nil)
            base.forget(self, key)
            return part
        end)
        c.clear = declare("clear(Module self) -> nothing", "Take out all parts.",
            function(self) replace(self, {}) end)
        c.__len = function(self) return #self:keys() end
        document(name, c, read)
    end

    dict_class("ModuleDict", "modules", "Modules under names, for a forward that you write.",
        function(self, name, module)
            if not is_module(module) then
                fail("ModuleDict: %s: expected a module, got %s", tostring(name), tide._describe(module, "Module"))
            end
            self:add_module(name, module)
        end)

    -- ---- parameters ----

    local function parameter(name, x)
        if not tide.is_tensor(x) then
            fail("%s: expected a tensor, got %s", name, tide._describe(x))
        end
        return base.kind_of(x) == "parameter" and x or nn.Parameter(x)
    end

    local function describe_parameters(self)
        local lines = {}
        refresh(self)
        for _, name in ipairs(self._names) do
            local x = rawget(self, name)
            if tide.is_tensor(x) then
                local sizes = table.concat({ table.unpack(x.shape) }, "x")
                lines[#lines + 1] = { name, string.format("Parameter containing: [%s of size %s]", tostring(x.dtype), sizes) }
            end
        end
        return base.tree_text(self, lines)
    end

    dict_class("ParameterDict", "parameters", "Parameters under names.", function(self, name, x)
        self:register_parameter(name, parameter("ParameterDict", x))
    end)
    nn.ParameterDict.describe = describe_parameters

    local read, List = declare("ParameterList(Tensor[] parameters)", "Parameters in a list; they count from 1."),
        nn.class("ParameterList")
    local function add(self, tensors)
        for _, x in ipairs(tensors) do
            self:register_parameter(#self + 1, parameter("ParameterList", x))
        end
        return self
    end
    function List:init(...)
        add(self, select("#", ...) > 0 and read(...).parameters or {})
    end
    List.append = declare("append(Module self, Tensor x) -> Module", "Add a parameter behind the others.",
        function(self, x) return add(self, { x }) end)
    List.extend = declare("extend(Module self, Tensor[] parameters) -> Module", "Add parameters behind the others.", add)
    count_parts(List)
    List.describe = describe_parameters
    document("ParameterList", List, read)
end
