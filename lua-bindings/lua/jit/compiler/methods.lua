-- jit/compiler/methods.lua: methods of tensors that are no operators (size, item, float), and tide.tensor.
local tide = ...
local Compiler = tide._require "jit.compiler.core"
local types = tide._require "jit.compiler.types"

local NIL, FALSE = Compiler.NIL, Compiler.FALSE
local library, methods = Compiler.library, {}
Compiler.methods = methods

-- A tensor of a list of the graph, element by element: compiled as any function is.
local function from_list(list, options)
    local x = tide.zeros(#list, options)
    for k = 1, #list do
        x[k] = list[k]
    end
    return x
end

local ELEMENTS = { int = tide.int64, bool = tide.bool, float = false, Scalar = false } -- false: the default dtype

local function tensor_of_list(self, list, options)
    local all, dtype = self:new_table {}, ELEMENTS[types.element(list.type)]
    if dtype then
        self:set_index(all, self.const "dtype", self:wrap(dtype))
    end
    for _, name in ipairs(options and options.data.order or {}) do
        self:set_index(all, self.const(name), options.data["." .. name])
    end
    return self:call(self:wrap(from_list), { list, all }, self.node)
end

-- tide.tensor(numbers, options): what is known is made once, and copied by the graph; a list of numbers that are not is
-- stacked.
library[tide.tensor] = function(self, arguments)
    local function plain_value(v)
        v = self:resolve(v)
        if v.kind == "const" or v.kind == "host" then
            return v.v
        elseif v.kind ~= "table" then
            error(self.tensor, 0)
        end
        local list = {}
        for k = 1, v.data.n do
            list[k] = plain_value(v.data[k])
        end
        for _, name in ipairs(v.data.order) do
            list[name] = plain_value(v.data["." .. name])
        end
        return list
    end
    local values = {}
    local known = pcall(function()
        for k, v in ipairs(arguments) do
            values[k] = plain_value(v)
        end
    end)
    if known then
        local ok, made = pcall(tide.tensor, table.unpack(values))
        if not ok then
            self:fail("%s", tostring(made))
        end
        return { self:engine("clone", { self:wrap(made) }) }
    end
    local v = self:resolve(arguments[1])
    local t = self:type_of(v)
    local options = arguments[2]
    if not options and (t == "int" or v.kind == "table" and t == "int[]" or t == "bool") then -- as tide.tensor has it, unlike scalar_tensor
        options = self:new_table {}
        self:set_index(options, self.const "dtype", self:wrap(t == "bool" and tide.bool or tide.int64))
    end
    if t and (types.is_number(t) or t == "bool") then
        return self:operator("scalar_tensor", { v, options })
    elseif v.kind == "value" and ELEMENTS[types.element(t or "")] ~= nil then
        return tensor_of_list(self, v, options)
    elseif v.kind ~= "table" or not types.is_number(types.element(t or "") or "") or #v.data.order > 0 then
        self:fail "tensor: numbers that are known, or a list of numbers, are expected: tide.stack joins tensors"
    end
    local parts = {}
    for k = 1, v.data.n do
        parts[k] = self:operator("scalar_tensor", { v.data[k], options })[1]
    end
    return self:operator("stack", { self:new_table(parts) })
end

-- A name of graphs that takes a tensor and gives this.
local function asks(op, t)
    return function(self, arguments) return { (self.g:node("aten::" .. op, { self:value(arguments[1]) }, { t })) } end
end
methods.dim, methods.ndimension = asks("dim", "int"), asks("dim", "int")
methods.numel, methods.nelement = asks("numel", "int"), asks("numel", "int")
methods.is_floating_point, methods.is_contiguous = asks("is_floating_point", "bool"), asks("is_contiguous", "bool")
methods.q_scale, methods.q_zero_point, methods.qscheme = asks("q_scale", "float"), asks("q_zero_point", "int"), asks("qscheme", "str")
library[tide.is_floating_point] = methods.is_floating_point

function methods.item(self, arguments)
    if self:is_mask(self:resolve(arguments[1])) then
        return { (self.g:node("aten::Bool", { self:value(arguments[1]) }, { "bool" })) }
    end
    local value = self.g:node("aten::item", { self:value(arguments[1]) }, { "Scalar" })
    value.from_item = true
    return { value }
end

function methods.size(self, arguments)
    local x, dim = self:value(arguments[1]), self:resolve(arguments[2] or NIL)
    if self.is_nil(dim) then
        return { self:tensor_entry(x, self.const "shape") }
    elseif dim.kind == "const" and dim.v == 0 then
        self:fail "size: dim 0: dims count from 1 (PyTorch's dim=0 is 1)"
    end
    return { (self.g:node("aten::size", { x, self:value(self:from_zero(dim)) }, { "int" })) }
end

function methods.stride(self, arguments)
    local x, dim = self:value(arguments[1]), self:resolve(arguments[2] or NIL)
    if self.is_nil(dim) then
        self:fail "stride: a dim is expected: x:stride(dim)"
    end
    return { (self.g:node("aten::stride", { x, self:value(self:from_zero(dim)) }, { "int" })) }
end

-- x:float() and the like
local function converts(dtype)
    return function(self, arguments)
        return { self:engine("to", { arguments[1], self.g:constant("dtype", dtype), NIL, FALSE, self.const "preserve", FALSE }) }
    end
end
for name, dtype in pairs { bool = "bool", byte = "uint8", char = "int8", short = "int16", int = "int32", long = "int64",
    half = "float16", bfloat16 = "bfloat16", float = "float32", double = "float64" } do
    methods[name] = converts(dtype)
end

function methods.type_as(self, arguments)
    local other = self:value(arguments[2])
    return { self:engine("to", { arguments[1], self.g:node("aten::dtype", { other }, { "dtype" }),
        self.g:node("aten::device", { other }, { "Device" }), FALSE, self.const "preserve", FALSE }) }
end

function methods.cpu(self, arguments)
    return { self:engine("to", { arguments[1], NIL, self.g:constant("Device", "cpu"), FALSE, self.const "preserve", FALSE }) }
end

function methods.where(self, arguments) return self:operator("where", { arguments[2], arguments[1], arguments[3] }) end

for name, why in pairs { tolist = "a table of numbers", backward = "a backward pass", requires_grad_ = "a change of a leaf",
    retain_grad = "a change of a leaf", detach_ = "a change of a leaf", free = "a change of memory", data_ptr = "an address" } do
    methods[name] = function(self) self:fail("x:%s() is %s, which has no place in a graph: do it outside of the script", name, why) end
end

return Compiler
