-- jit/compiler/contexts.lua: modes that hold for a part of a function: `local _ <close> = tide.no_grad()` and
-- `tide.no_grad(function() ... end)`. What runs in one is a block of the graph (prim::With), from which comes all that is
-- still to be reached behind it.
local tide = ...
local Compiler = tide._require "jit.compiler.core"
local graph = tide._require "jit.compiler.graph"

local library = Compiler.library

-- ---- what a block leaves behind ----

local Leaver = {}
Leaver.__index = Leaver

-- The value that stands behind the node for one that was made in its block.
function Leaver:outside(v)
    if v.kind ~= "value" or not self.inner[v] then
        return v
    elseif not self.outputs[v] then
        local output = graph.value(v.type, v.hint)
        output.positive, output.from_item, output.several = v.positive, v.from_item, v.several
        output.shape = v.shape and self:outside(v.shape)
        self.outputs[v] = output
        table.insert(self.node.outputs, output)
        table.insert(self.node.blocks[1].outputs, v)
    end
    return self.outputs[v]
end

function Leaver:scope(scope)
    while scope and not self.seen[scope] do
        self.seen[scope] = true
        local names = {}
        for name in pairs(scope.cells) do
            names[#names + 1] = name
        end
        table.sort(names)
        for _, name in ipairs(names) do
            self:place(scope.cells[name], "v")
        end
        scope = scope.parent
    end
end

-- The same of a value that may hold others.
function Leaver:value(v)
    if v.kind == "table" and not self.seen[v.data] then
        local data = v.data
        self.seen[data] = true
        for k = 1, data.n do
            self:place(data, k)
        end
        for _, name in ipairs(data.order) do
            self:place(data, "." .. name)
        end
        self:place(data, "list")
    elseif v.kind == "closure" then
        self:scope(v.scope)
    elseif v.kind == "iterator" then
        return { kind = "iterator", over = self:value(v.over), all = v.all }
    end
    return self:outside(v)
end

-- What stands in a variable or a table.
function Leaver:place(object, key)
    local v = object[key]
    local other = type(v) == "table" and v.kind and self:value(v) or v
    if other ~= v then
        self.compiler:put(object, key, other)
    end
end

local function only_constants(block)
    for _, n in ipairs(block.nodes) do
        if n.op ~= "prim::Constant" then
            return false
        end
    end
    return true
end

--- with(attribute, body [, scope]): run body() in a mode; a list of what it gives. The variables of `scope` are read
--- behind it.
function Compiler:with(attribute, body, scope)
    local mark, serial = #self.trail, self.serial
    local block, outer = self:open_block()
    local results = body() or {}
    self.g.block = outer
    if only_constants(block) then
        table.move(block.nodes, 1, #block.nodes, #outer.nodes + 1, outer.nodes)
        return results
    end
    local node = { op = "prim::With", attribute = attribute, inputs = {}, outputs = {}, blocks = { block }, place = self.g.place }
    local leaver = setmetatable({ compiler = self, node = node, outputs = {}, inner = {}, seen = {} }, Leaver)
    for _, n in ipairs(block.nodes) do
        for _, v in ipairs(n.outputs) do
            leaver.inner[v] = true
        end
    end
    for k = mark + 1, #self.trail do
        local object, key = self.trail[k][1], self.trail[k][2]
        if self.born[object] <= serial then
            leaver:place(object, key)
        end
    end
    for k, v in ipairs(results) do
        results[k] = leaver:value(v)
    end
    leaver:scope(scope)
    table.insert(outer.nodes, node)
    return results
end

-- ---- the functions ----

local function is_function(v) return v.kind == "closure" or v.kind == "op" or v.kind == "host" and type(v.v) == "function" end

local function flag(value) return value and 1 or 0 end

local OPTIONS = { autocast = { device = true, dtype = true, enabled = true, cache = true }, ["profiler.record"] = { kind = true } }

-- What is given to one of them: values that are known, options, and a function with its arguments.
local function read(self, name, arguments)
    local list = table.move(arguments, 1, #arguments, 1, {})
    local options = {}
    local last = #list > 0 and self:resolve(list[#list])
    if last and last.kind == "table" and #last.data.order > 0 and last.data.n == 0 then
        list[#list] = nil
        for _, key in ipairs(last.data.order) do
            if not OPTIONS[name] or not OPTIONS[name][key] then
                self:fail("%s: there is no option '%s'", name, key)
            end
            options[key] = self:resolve(last.data["." .. key])
        end
    end
    local known = {}
    while list[1] and not is_function(self:resolve(list[1])) do
        known[#known + 1] = self:resolve(table.remove(list, 1))
    end
    for _, given in ipairs { known, options } do
        for key, v in pairs(given) do
            if v.kind ~= "const" and not (v.kind == "host" and self.is_dtype(v.v)) then
                self:fail("%s: %s must be known when the script is compiled", name, math.type(key) and "argument " .. key or key)
            end
            given[key] = v.v
        end
    end
    return known, options, list
end

-- The attribute of the node, of what is known.
local MODES = {
    no_grad = function() return 'mode="no_grad"' end,
    enable_grad = function() return 'mode="enable_grad"' end,
    set_grad_enabled = function(known) return known[1] and 'mode="enable_grad"' or 'mode="no_grad"' end,
    inference_mode = function(known)
        local enabled = known[1]
        if enabled == nil then
            enabled = true
        end
        return string.format('mode="inference_mode", enabled=%d', flag(enabled))
    end,
    autocast = function(known, options, self)
        local device = known[1] or options.device or "cpu"
        local dtype = options.dtype or string.find(device, "^cuda") and "float16" or "bfloat16"
        if type(dtype) ~= "string" and not dtype.is_floating_point then
            self:fail("autocast: option dtype: expected a dtype of floats such as tide.bfloat16, got %s", tostring(dtype))
        end
        return string.format('mode="autocast", device=%q, dtype="%s", cached=%d, enabled=%d', device,
            type(dtype) == "string" and dtype or Compiler.dtype_name(dtype), flag(options.cache ~= false), flag(options.enabled ~= false))
    end,
}

local function context(name, attribute_of)
    return function(self, arguments, node)
        local known, options, list = read(self, name, arguments)
        local attribute = attribute_of and attribute_of(known, options, self)
        if not list[1] then
            if not self.closing then
                self:fail("%s opens a mode: write local _ <close> = tide.%s(), or give it a function", name, name)
            end
            return { { kind = "guard", attribute = attribute } }
        end
        local function run() return self:call(list[1], table.move(list, 2, #list, 1, {}), node) end
        return attribute and self:with(attribute, run) or run()
    end
end

for name, attribute_of in pairs(MODES) do
    library[tide[name]] = context(name, attribute_of)
end
library[tide.profiler.record] = context("profiler.record") -- events within name their lines anyway

--- open_guard(e): the guard of `local name <close> = e`; nil: there is none to close.
function Compiler:open_guard(e)
    local outer = self.closing
    self.closing = true
    local v = self:expression(e)
    self.closing = outer
    if v.kind == "const" and not v.v then
        return nil
    elseif v.kind ~= "guard" then
        self:fail("<close> of %s: scripts have the modes no_grad, enable_grad, inference_mode and autocast", self:describe(v))
    end
    return v
end

return Compiler
