-- jit/compiler/forms.lua: operators that are called in more ways than their schemas say, as lua-bindings/call/call_forms.c
-- has them: each brings the arguments into the schema's form.
local tide = ...
local Compiler = tide._require "jit.compiler.core"
local types = tide._require "jit.compiler.types"

local NIL = Compiler.NIL
local forms = {}
Compiler.forms = forms

local function is_text(v) return v and v.kind == "const" and type(v.v) == "string" end

local DTYPES = {}
for name in string.gmatch("float32 float64 float16 bfloat16 int64 int32 int16 int8 uint8 bool complex64 complex128 float double half "
    .. "long int short char byte", "%S+") do
    DTYPES[name] = true
end
local FORMATS = { channels_last = true, channels_last_3d = true, contiguous = true, preserve = true }

-- x:to("cuda"), x:to("channels_last") and x:to(other): a device, a memory format or a tensor may stand where the dtype does.
function forms.to(self, arguments)
    local second = arguments[2] and self:resolve(arguments[2])
    if not second then
        return arguments
    elseif self:type_of(second) == "Tensor" then
        local other = self:value(second)
        return table.move(arguments, 3, #arguments, 4, { arguments[1], (self.g:node("aten::dtype", { other }, { "dtype" })),
            (self.g:node("aten::device", { other }, { "Device" })) })
    elseif is_text(second) and FORMATS[second.v] then
        local options = self:new_table {}
        self:set_index(options, self.const "memory_format", second)
        return { arguments[1], options }
    elseif is_text(second) and not DTYPES[second.v] or self:type_of(second) == "Device" then
        return table.move(arguments, 2, #arguments, 3, { arguments[1], NIL })
    end
    return arguments
end

-- max(a, b) and min(a, b) of two tensors are other operators.
local function extreme(other)
    return function(self, arguments)
        local second = arguments[2] and self:resolve(arguments[2])
        return arguments, second and self:type_of(second) == "Tensor" and other or nil
    end
end
forms.max, forms.min = extreme "maximum", extreme "minimum"

-- polygamma(n, x) as PyTorch has it, x:polygamma(n) as a method.
function forms.polygamma(self, arguments)
    local n, x = self:resolve(arguments[1]), arguments[2] and self:resolve(arguments[2])
    if x and types.is_number(self:type_of(n) or "") and self:type_of(x) == "Tensor" then
        return { x, n, table.unpack(arguments, 3) }
    end
    return arguments
end

-- randint(high, size): from 0 on.
function forms.randint(self, arguments)
    if arguments[2] and self:is_list(arguments[2]) then
        return table.move(arguments, 1, #arguments, 2, { self.const(0) })
    end
    return arguments
end

-- tensordot(a, b, {{1, 2}, {2, 1}}): the dims of both.
function forms.tensordot(self, arguments)
    local dims = arguments[3] and self:resolve(arguments[3])
    if dims and dims.kind == "table" and dims.data.n == 2 and self:resolve(dims.data[1]).kind == "table" then
        return { arguments[1], arguments[2], dims.data[1], dims.data[2], table.unpack(arguments, 4) }
    end
    return arguments
end

-- where(condition) gives as many tensors as there are dims, which nobody knows before.
function forms.where(self, arguments)
    if #arguments == 1 then
        self:fail "where(condition): how many tensors it gives is known only when the graph runs: write x:nonzero()"
    end
    return arguments
end

function forms.nonzero(self, arguments)
    local options = arguments[2] and self:resolve(arguments[2])
    if options and options.kind == "table" and options.data[".as_tuple"] then
        self:fail "nonzero: how many tensors as_tuple gives is known only when the graph runs"
    end
    return arguments
end

-- atleast_1d(a, b) and atleast_1d({a, b}): a list.
for _, name in ipairs { "atleast_1d", "atleast_2d", "atleast_3d" } do
    forms[name] = function(self, arguments)
        local first = self:resolve(arguments[1] or NIL)
        local list = first.kind == "table" and first.data or arguments
        if first.kind ~= "table" and #arguments < 2 then
            return arguments
        end
        local results = {}
        for k = 1, list.n or #list do
            results[k] = self:operator(name, { list[k] })[1]
        end
        return nil, nil, { self:new_table(results) }
    end
end

for _, name in ipairs { "tensor_split", "sparse_coo_tensor" } do
    forms[name] = function(self, arguments)
        local which = self:resolve(arguments[name == "tensor_split" and 2 or 1] or NIL)
        if name == "tensor_split" and self:type_of(which) == "Tensor" or name == "sparse_coo_tensor" and which.kind == "table" then
            self:fail("%s: %s", name, name == "tensor_split" and "places in a tensor are known only when the graph runs"
                or "tensors are expected: tide.tensor makes them")
        end
        return arguments
    end
end

return Compiler
