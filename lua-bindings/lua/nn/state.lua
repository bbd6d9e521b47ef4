-- nn/state.lua: a module's tensors taken elsewhere: into another dtype or place, into a copy of the module, into
-- a table of names and back.
local tide = ...
local fail, check_made = tide._fail, tide._require("nn.lazy").check_made

-- ---- dtypes and places ----

local FORMATS = { channels_last = true, channels_last_3d = true }

-- The arguments with a memory format that stands by itself among the options that come last.
local function format_as_option(arguments)
    for k = 1, arguments.n do
        local format, last = arguments[k], arguments[arguments.n]
        if type(format) == "string" and FORMATS[format] then
            local options = { memory_format = format }
            for name, value in pairs(type(last) == "table" and last or {}) do
                options[name] = value
            end
            local rest = table.pack(table.unpack(arguments, 1, k - 1))
            rest.n = k
            rest[k] = options
            return rest
        end
    end
    return arguments
end

-- The arguments of x:to without a memory format, and how many dims a tensor has that it is meant for.
local function without_format(arguments)
    local options, rest = arguments[arguments.n], table.pack(table.unpack(arguments, 1, arguments.n))
    if type(options) ~= "table" or not options.memory_format then
        return arguments, 0
    end
    rest[rest.n] = {}
    for name, value in pairs(options) do
        if name ~= "memory_format" then
            rest[rest.n][name] = value
        end
    end
    return rest, options.memory_format == tide.channels_last and 4
        or options.memory_format == tide.channels_last_3d and 5 or 0
end

local MANY <const> = 32 << 20 -- bytes

--- tide._collect_replaced(bytes): parameters of so many bytes have given way to others. They have grown old, so that Lua would find
-- them dead only when as much again has been made, and blocks as large as theirs are seldom asked for: where they are many, they go
-- now, and their memory back to the system.
function tide._collect_replaced(bytes)
    if bytes >= MANY and collectgarbage "isrunning" then
        collectgarbage()
        tide.empty_cache()
    end
end

-- Each tensor gives way to make(tensor, full name, the module that has it), shared where the old one was; nil: it stays.
local function replace_each(base, self, make)
    local made = {}
    for _, kind in ipairs { "parameter", "buffer" } do
        base.walk(self, kind, "", nil, function(name, x, owner, field)
            made[x] = made[x] or make(x, name, owner) or x
            base.accept(made[x])
            rawset(owner, field, made[x])
        end)
    end
    return self
end

-- Tensors that change are new ones, shared where the old ones were: the bytes that changed. A memory format is for those that
-- have its dims.
local function move_tensors(base, self, ...)
    local given, bytes = format_as_option(table.pack(...)), 0
    local plain, dims = without_format(given)
    local function move(x)
        local arguments = (dims == 0 or x:dim() == dims) and given or plain
        local y = x:detach():to(table.unpack(arguments, 1, arguments.n))
        if not y:is_floating_point() then
            fail("to: expected a floating dtype, got %s", tostring(y.dtype))
        elseif y.dtype == x.dtype and tostring(y.device) == tostring(x.device) and y:data_ptr() == x:data_ptr() then
            return x
        end
        y:requires_grad_(x.requires_grad)
        if x.grad then
            y.grad = x.grad:detach():to(table.unpack(arguments, 1, arguments.n))
        end
        return y
    end
    -- Integers, quantized tensors and the numbers that stand beside these in a layer of bytes keep their dtype and go where a float from
    -- there would go.
    local function move_as_it_is(x)
        local device = tide.zeros(0, { device = x.device }):to(table.unpack(plain, 1, plain.n)).device
        return tostring(device) == tostring(x.device) and x or x:detach():to(device)
    end
    replace_each(base, self, function(x, _, owner)
        local y = (x:is_floating_point() and not owner.keeps_dtypes and move or move_as_it_is)(x)
        bytes = bytes + (rawequal(y, x) and 0 or x:numel() * x:element_size())
        return y
    end)
    return bytes
end

local function move_to(base, self, ...)
    tide._collect_replaced(move_tensors(base, self, ...))
    return self
end

-- ---- copies ----

local copy

local function copy_tensor(x)
    local y = x:detach():clone()
    if x.requires_grad and x.is_leaf then
        y:requires_grad_(true)
        y.grad = x.grad and x.grad:detach():clone()
    end
    return y
end

local function copy_fields(value, result, seen)
    seen[value] = result
    for k, v in next, value do
        rawset(result, copy(k, seen), copy(v, seen))
    end
    return result
end

-- Tensors, modules and plain tables are copied; objects of other classes, functions and hooks are shared.
function copy(value, seen)
    if seen[value] ~= nil then
        return seen[value]
    elseif tide.is_tensor(value) then
        seen[value] = copy_tensor(value)
        return seen[value]
    elseif tide.nn.is_module(value) then
        return setmetatable(copy_fields(value, {}, seen), getmetatable(value))
    elseif type(value) == "table" and getmetatable(value) == nil then
        return copy_fields(value, {}, seen)
    end
    return value
end

-- ---- a table of names ----

local function state_of(walk, self, prefix, keep_vars)
    local dict = {}
    for _, kind in ipairs { "parameter", "buffer" } do
        walk(self, kind, prefix, nil, function(name, x, owner, field)
            check_made(owner)
            local passing = rawget(owner, "_passing")
            if not (passing and passing[field]) then
                dict[name] = keep_vars and x or x:detach()
            end
        end)
    end
    return dict
end

local function sorted(names)
    table.sort(names, tide._before)
    return names
end

-- Names that only one side has, and a text for each tensor of another shape.
local function compare(own, dict)
    local missing, unexpected, other = {}, {}, {}
    for name, x in pairs(own) do
        if not tide.is_tensor(dict[name]) then
            missing[#missing + 1] = name
        elseif dict[name].shape ~= x.shape then
            other[#other + 1] = string.format("%s has shape %s, expected %s", name, tostring(dict[name].shape),
                tostring(x.shape))
        end
    end
    for name in pairs(dict) do
        if own[name] == nil then
            unexpected[#unexpected + 1] = tostring(name)
        end
    end
    return sorted(missing), sorted(unexpected), sorted(other)
end

-- Nothing is changed when names or shapes don't agree.
-- What load_state_dict gives: names that were missing, and those that nothing is called.
local Loaded = { __name = "loaded" }

function Loaded:__tostring()
    local texts = {}
    for _, name in ipairs { "missing_keys", "unexpected_keys" } do
        texts[#texts + 1] = #self[name] > 0 and string.format("%s: %s", name, table.concat(self[name], ", ")) or nil
    end
    return #texts > 0 and table.concat(texts, "; ") or "all keys matched"
end

-- The tensors by the module's names where the dict has the same ones with every number one less: PyTorch counts
-- the parts of a Sequential from 0. nil where it hasn't.
local function from_zero(own, dict)
    local renamed, count = {}, 0
    for name in pairs(own) do
        local theirs = string.sub(string.gsub("." .. name, "%.(%d+)%f[%.%z]", function(digits)
            return string.format(".%d", tonumber(digits) - 1)
        end), 2)
        if not tide.is_tensor(dict[theirs]) then
            return nil
        end
        renamed[name], count = dict[theirs], count + 1
    end
    for _ in pairs(dict) do
        count = count - 1
    end
    return count == 0 and renamed or nil
end

-- The module's own place for a tensor of a dict: a parameter where x is one, of the same memory.
local function adopted(x, given)
    local same = given.is_leaf and given.requires_grad == x.requires_grad
    return same and given or given:detach():requires_grad_(x.requires_grad)
end

local function load(base, self, dict, strict, assign)
    tide._require "files.state"(dict)
    local walk = base.walk
    local own = state_of(walk, self, "")
    local missing, unexpected, other = compare(own, dict)
    local renamed = #missing > 0 and from_zero(own, dict)
    if renamed then
        dict = renamed
        missing, unexpected, other = compare(own, dict)
    end
    for _, name in ipairs(#missing > 0 and unexpected or {}) do -- a checkpoint: {model = state_dict, ...}
        if type(dict[name]) == "table" and tide.is_tensor(dict[name][missing[1]]) then
            fail("load_state_dict: the state_dict is in the table's field '%s': load_state_dict(t.%s)", name, name)
        end
    end
    local texts = {}
    if strict and #missing > 0 then
        texts[1] = "missing " .. table.concat(missing, ", ")
    end
    if strict and #unexpected > 0 then
        texts[#texts + 1] = "unexpected " .. table.concat(unexpected, ", ")
    end
    if #other > 0 then
        texts[#texts + 1] = table.concat(other, ", ")
    end
    if #texts > 0 then
        fail("load_state_dict: %s", table.concat(texts, "; "))
    end
    if assign then
        replace_each(base, self, function(x, name) return tide.is_tensor(dict[name]) and adopted(x, dict[name]) end)
    end
    local _ <close> = tide.no_grad()
    for name, x in pairs(assign and {} or own) do
        if tide.is_tensor(dict[name]) then
            x:copy_(dict[name])
        end
    end
    return setmetatable({ missing_keys = missing, unexpected_keys = unexpected }, Loaded)
end

return function(_, base)
    local method = base.method
    method("to", ", ...) -> Module", "Parameters and buffers on another device, floating ones in another dtype or "
        .. "memory format, as x:to(...): make the optimizer afterwards.",
        function(self, ...) return move_to(base, self, ...) end)
    for name, dtype in pairs { float = "float32", double = "float64", half = "float16", bfloat16 = "bfloat16" } do
        method(name, ") -> Module", string.format("Floating parameters and buffers in %s, but those of layers of tide.nn.quantized.", dtype),
            function(self) return move_to(base, self, tide[dtype]) end)
    end
    method("cpu", ") -> Module", "Parameters and buffers on the CPU.",
        function(self) return move_to(base, self, "cpu") end)
    method("cuda", ", int(0..)? device=nil) -> Module", "Parameters and buffers on a GPU.",
        function(self, k) return move_to(base, self, k and "cuda:" .. k or "cuda") end)
    method("clone", ") -> Module", "A module of its own with the same parts and values: parameters, buffers and "
        .. "children are copies, shared where they were.", function(self)
            return copy(base.check_tree(self), {})
        end)
    method("to_empty", ", *, any device) -> Module", "Parameters and buffers on a device, of any values: for a module that "
        .. "was made on \"meta\" and is to be filled.", function(self, device)
            return replace_each(base, self, function(x)
                return tide.empty_like(x, { device = device }):requires_grad_(x.requires_grad)
            end)
        end)
    method("state_dict", ", *, str prefix=\"\", bool keep_vars=false) -> table",
        "Parameters and buffers by full name, under each of their names; they share memory with the module, and with keep_vars are the "
        .. "module's own tensors.", function(self, prefix, keep_vars) return state_of(base.walk, self, prefix, keep_vars) end)
    method("load_state_dict", ", any dict, bool strict=true, bool assign=false) -> table", "Copy a state_dict's values in. Names must "
        .. "agree, unless strict is false, and shapes; numbers in them may count from 0, as PyTorch's do. With assign the dict's tensors "
        .. "themselves, of their dtypes and devices, become the module's: make the optimizer afterwards. Gives "
        .. "{missing_keys = ..., unexpected_keys = ...}.",
        function(self, dict, strict, assign) return load(base, self, dict, strict, assign) end)
end
