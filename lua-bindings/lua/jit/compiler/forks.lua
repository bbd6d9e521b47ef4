-- jit/compiler/forks.lua: tide.jit.fork and wait in a script: a call as a graph of its own, which runs beside what follows.
local tide = ...
local Compiler = tide._require "jit.compiler.core"
local types = tide._require "jit.compiler.types"

local NIL, library = Compiler.NIL, Compiler.library

local WRITES = {}
for name in string.gmatch("append insert set_entry _set_item remove pop sort Delete", "%S+") do
    WRITES["aten::" .. name] = true
end

-- The nodes of a block read values from outside of it: they become its inputs. Lists and dicts are copied on the way in.
local function close_over(self, block)
    local made, inputs, given, within = {}, {}, {}, {}
    local function define(list)
        for _, value in ipairs(list) do
            made[value] = true
        end
    end
    local function replace(list)
        for k, value in ipairs(list) do
            if not made[value] then
                if not within[value] then
                    within[value] = Compiler.graph_value(value.type, value.hint)
                    inputs[#inputs + 1], given[#given + 1] = within[value], value
                end
                list[k] = within[value]
            end
        end
    end
    local function walk(b)
        define(b.inputs)
        for _, n in ipairs(b.nodes) do
            if WRITES[n.op] and not made[n.inputs[1]] then
                self:fail "a forked function writes a list or a table by names of what is around it, of which it has a copy: give what it works out as a result"
            end
            replace(n.inputs)
            for _, inner in ipairs(n.blocks) do
                walk(inner)
            end
            define(n.outputs)
        end
        replace(b.outputs)
    end
    walk(block)
    block.inputs = inputs
    return given
end

-- tide.jit.fork(fn, ...): the call as a graph of its own, which runs beside what follows.
local function fork(self, arguments, node)
    local callee = arguments[1]
    if not callee then
        self:fail "fork: a function is expected"
    end
    return { self:region(function(serial)
        local block, outer = self.g:open()
        local mark = #self.trail
        block.parent = nil -- constants are its own
        local results = self:call(callee, table.move(arguments, 2, #arguments, 1, {}), node)
        local set
        for _, change in ipairs(self:changes(mark, serial)) do
            set = set or change.key ~= "frozen" and change
        end
        if set then
            self:fail("a forked function sets '%s', which is a variable outside of it: give what it works out as a result",
                set.object.name or "an entry of a table")
        end
        if #results == 0 then
            self:fail "fork: the function gives nothing"
        end
        for k, v in ipairs(results) do
            block.outputs[k] = self:value(v)
        end
        self.g.block = outer
        local parts = {}
        for k, value in ipairs(block.outputs) do
            parts[k] = value.type
        end
        local t = #parts == 1 and parts[1] or "(" .. table.concat(parts, ", ") .. ")"
        local future = self.g:node("prim::fork", close_over(self, block), { "Future(" .. t .. ")" })
        future.made.subgraph = block
        future.several = #parts > 1
        return future
    end) }
end

local function wait(self, arguments)
    local future = self:resolve(arguments[1] or NIL)
    local t = string.match(self:type_of(future) or "", "^Future%((.*)%)$")
    if not t then
        self:fail("wait: what tide.jit.fork gave is expected, got %s", self:describe(future))
    end
    local value = self.g:node("aten::wait", { future }, { t })
    if not future.several then
        return { value }
    end
    return table.pack(self.g:node("prim::TupleUnpack", { value }, types.parts(t)))
end

--- open_jit(): tide.jit's own functions, when there are any.
function Compiler.open_jit()
    local jit = rawget(tide, "jit") or {}
    for name, handler in pairs { fork = fork, wait = wait } do
        local fn = rawget(jit, name)
        if fn then
            library[fn] = handler
        end
    end
end

return Compiler
