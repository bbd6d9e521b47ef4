-- help: what a question mark shows of what is more than a name with a signature: the session itself,
-- tide and its modules, objects of classes, dtypes.

local names = import "names"

local help = {}

function help.introduction()
    return [[
Tide: tensors, gradients and networks, in Lua 5.4. Everything counts from 1.

  x = tide.randn(2, 3, {requires_grad = true})     a tensor; options go into the last table
  y = (x * x):sum(); y:backward(); x.grad          gradients
  x[1], x["1:2, :"], x[x:gt(0)]                    a row, ranges, a mask
  model = tide.nn.Sequential(tide.nn.Linear(3, 4), tide.nn.ReLU(), tide.nn.Linear(4, 1))
  opt = tide.optim.Adam(model:parameters(), {lr = 0.01})
  loss = model(x):pow(2):mean()                    a step of training:
  opt:zero_grad(); loss:backward(); opt:step()
  loss:item()                                      the number in a tensor

?name     what a name is: ?tide, ?tide.conv2d, ?x; ??name shows its source too
?page     ?nn.Module (a layer of one's own), ?indexing, ?newaxis, ?options, ?dtype, ?shapes, ?loops (batches), ?tables, ?files, ?pytorch
/ words   /conv stride: what has these words in its name or doc; ?tide.*conv*, *int*? names by a pattern
Tab       what may stand here        %lsmagic  commands of the session (%who, %timeit, ...)
_, __     the last two values        Out[n], In[n]  the value and the text of an input
Locals at the top of an input stay in sight of the next ones; a ; at its end shows nothing.
exit or Ctrl-D leaves.]]
end

local function sorted_names(t)
    local list = {}
    for name in next, t do
        if type(name) == "string" and string.sub(name, 1, 1) ~= "_" then
            list[#list + 1] = name
        end
    end
    table.sort(list, before)
    return list
end

-- Names in lines of so many columns.
local function fill(list, width)
    local lines, line = {}, ""
    for _, name in ipairs(list) do
        if line ~= "" and #line + 1 + #name > width then
            lines[#lines + 1] = line
            line = ""
        end
        line = line == "" and "  " .. name or line .. " " .. name
    end
    lines[#lines + 1] = line
    return table.concat(lines, "\n")
end

-- What tide is made of.
function help.tide(tide, width)
    local rooms, functions = {}, {}
    for _, name in ipairs(rawget(tide, "_lazy") or {}) do
        names.field(tide, name) -- loads it
    end
    for _, name in ipairs(sorted_names(tide)) do
        local value = rawget(tide, name)
        if type(value) == "table" and rawget(value, "__index") == nil then
            rooms[#rooms + 1] = name
        elseif type(value) == "function" then
            functions[#functions + 1] = name
        end
    end
    local out = {"tide: tensors and what works on them. Its rooms (?tide.nn tells more of one):"}
    for _, name in ipairs(rooms) do
        local doc = names.doc(rawget(tide, name))
        local text = doc and doc.doc or ""
        if utf8.len(text) and utf8.len(text) > width - 16 then
            text = string.sub(text, 1, utf8.offset(text, width - 18) - 1) .. " …"
        end
        out[#out + 1] = string.format("  %-12s %s", name, text)
    end
    out[#out + 1] = string.format("%d functions, most of them methods of tensors too (?tide.sum, x:sum()); to begin with:",
        #functions)
    out[#out + 1] = fill({"tensor", "zeros", "ones", "full", "arange", "linspace", "eye", "randn", "rand", "randint",
        "cat", "stack", "where", "matmul", "einsum", "manual_seed", "no_grad", "save", "load"}, width)
    out[#out + 1] = "Dtypes:"
    out[#out + 1] = fill({"float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "bool"},
        width)
    out[#out + 1] = "Tab behind `tide.` or `x:` shows all; %lsmagic the session's commands; ? how to begin."
    return table.concat(out, "\n")
end

-- The names that a module has; nil for what is none.
function help.members(value, width)
    local modules, classes, functions = {}, {}, {}
    for _, name in ipairs(sorted_names(value)) do
        local member = rawget(value, name)
        if type(member) == "function" then
            functions[#functions + 1] = name
        elseif type(member) == "table" then
            local list = rawget(member, "__index") ~= nil and classes or modules
            list[#list + 1] = name
        end
    end
    local out = {}
    for _, group in ipairs {{"Modules", modules}, {"Classes", classes}, {"Functions", functions}} do
        if #group[2] > 0 then
            out[#out + 1] = group[1] .. ":\n" .. fill(group[2], width)
        end
    end
    return #out > 0 and table.concat(out, "\n") or nil
end

-- Is it one of tide's modules: a table without a class, reached as a part of tide?
function help.is_module(value)
    local mt = type(value) == "table" and names.meta(value)
    if type(value) ~= "table" or rawget(value, "__index") ~= nil then
        return false
    end
    for name, loaded in next, package.loaded do
        if rawequal(loaded, value) and type(name) == "string" then
            return true
        end
    end
    return names.doc(value) ~= nil and (mt == nil or type(rawget(mt, "__index")) == "function")
end

-- The class of an object of tide's classes, or of one made by nn.class; or nil.
function help.class_of(value)
    local mt = type(value) == "table" and names.meta(value)
    return mt and (names.doc(mt) or rawget(mt, "is_module_class")) and mt or nil
end

-- What a dtype holds.
function help.dtype(value)
    local tide = names.tide()
    if type(value) ~= "userdata" or names.meta(value) ~= nil and rawget(names.meta(value), "__name") ~= "tide.dtype"
        or not tide then
        return nil
    end
    local ok, info = pcall(tide.finfo, value)
    if ok then
        return string.format("%s: %d bits, %s to %s, eps %s", tostring(value), info.bits, number(info.min),
            number(info.max), number(info.eps))
    end
    ok, info = pcall(tide.iinfo, value)
    if ok then
        return string.format("%s: %d bits, %d to %d", tostring(value), info.bits, info.min, info.max)
    end
    return tostring(value)
end

return help
