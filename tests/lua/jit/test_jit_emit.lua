-- test_jit_emit.lua: C that is made of graphs, compiled by the system's compiler and run: it gives what the functions give.
local t = require "harness"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local jit, parse = tide.jit, tide._script.parse

local build, source, compiler = os.getenv "TIDE_BUILD", os.getenv "TIDE_SOURCE", os.getenv "TIDE_CC"
local can_compile = compiler and os.execute("command -v " .. string.match(compiler, "^%S+") .. " >/dev/null 2>&1")

-- ---- what the C prints of a value ----

local NAN = { float16 = { "<I2", 0x7c00 }, bfloat16 = { "<I2", 0x7f80 }, float32 = { "<I4", 0x7f800000 }, float64 = { "<i8", 0x7ff0000000000000 } }

local function digest(x)
    local near = x:detach():contiguous()
    local size, dtype = near:element_size(), string.match(tostring(x.dtype), "%w+$")
    local bytes, hash, nan = tide._string(near, 0, near:numel() * size), 0xcbf29ce484222325, NAN[dtype]
    for at = 1, #bytes, size do
        local element = string.sub(bytes, at, at + size - 1)
        local bits = nan and string.unpack(nan[1], element)
        if nan and (bits & (nan[2] | nan[2] - 1)) > nan[2] then
            element = string.pack(nan[1], nan[2] + 1)
        end
        for k = 1, size do
            hash = (hash ~ string.byte(element, k)) * 0x100000001b3
        end
    end
    local shape = {}
    for d = 1, x:dim() do
        shape[d] = tostring(x:size(d))
    end
    return string.format("%s (%s) %016x", dtype, table.concat(shape, ", "), hash)
end

local function text_of(value)
    if tide.is_tensor(value) then
        return digest(value)
    elseif type(value) == "table" then
        local parts = {}
        for k, entry in ipairs(value) do
            parts[k] = text_of(entry)
        end
        return "{" .. table.concat(parts, ", ") .. "}"
    elseif math.type(value) == "float" then
        return value ~= value and "nan" or string.format("%a", value)
    elseif type(value) == "string" then
        return '"' .. value .. '"'
    end
    return tostring(value)
end

-- ---- compiling ----

local function run(command)
    local pipe = assert(io.popen(command .. " 2>&1"))
    local out = pipe:read "a"
    local ok, _, code = pipe:close()
    return out, ok and 0 or code
end

-- A name for files that nobody else has.
local function new_path()
    local path = os.tmpname()
    os.remove(path)
    return path
end

local function remove(path)
    for _, ending in ipairs { "", ".c", ".safetensors" } do
        os.remove(path .. ending)
    end
end

local function compile(path)
    local out, code = run(string.format(
        "%s -std=gnu17 -O0 -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Werror -I'%s' '%s.c' -o '%s' -L'%s' -ltide "
        .. "-Wl,-rpath,'%s'", compiler, source, path, path, build, build))
    t.eq(code, 0, out)
end

local function lines_of(text)
    local lines = {}
    for line in string.gmatch(text, "[^\n]+") do
        lines[#lines + 1] = line
    end
    return lines
end

local function copies(inputs)
    local list = { n = inputs.n or #inputs }
    for k = 1, list.n do
        list[k] = tide.is_tensor(inputs[k]) and inputs[k]:clone() or inputs[k]
    end
    return list
end

-- The lines that the C prints of a function: its results, or its error.
local function expected(f, name, inputs, lines)
    local given = copies(inputs)
    local results = table.pack(pcall(f, table.unpack(given, 1, given.n)))
    if not results[1] then
        lines[#lines + 1] = { name .. " failed: ", tostring(results[2]) }
        return
    end
    for k = 2, results.n do
        lines[#lines + 1] = string.format("%s %d: %s", name, k - 1, text_of(results[k]))
    end
end

-- Functions, each with its inputs and its name in C, as one file of C: what it prints is what they give.
local function same_in_c(functions, inputs, names)
    local path, lines = new_path(), {}
    jit.emit_c(functions, path .. ".c", { main = inputs })
    for k, f in ipairs(functions) do
        expected(f, names[k], inputs[k], lines)
    end
    compile(path)
    local printed = lines_of((run(string.format("'%s'", path))))
    remove(path)
    for k, line in ipairs(lines) do
        if type(line) == "table" then
            local said = string.match(tostring(printed[k]), "^.- failed: (.*)$")
            t.is_true(said and string.find(line[2], said, 1, true), string.format("%s, and in C %s", line[2], printed[k]))
        else
            t.eq(printed[k], line)
        end
    end
    t.eq(#printed, #lines, table.concat(printed, "\n", math.min(#lines + 1, #printed)))
end

local function test(name, fn)
    if can_compile then
        t.test(name, fn)
    else
        t.skip(name, "no C compiler")
    end
end

-- ---- what it gives ----

test("random_programs_give_what_they_give_as_graphs", function()
    local random = dofile(here .. "/random_programs.lua")
    local functions, inputs, names = {}, {}, {}
    for k = 1, 40 do
        functions[k] = jit.script(assert(load(random.program(true)))(), { name = "program" .. k })
        inputs[k] = random.inputs[k % #random.inputs + 1]
        names[k] = "program" .. k
    end
    same_in_c(functions, inputs, names)
end)

local DTYPES = { Float = tide.float32, Double = tide.float64, Half = tide.float16, BFloat16 = tide.bfloat16, Int = tide.int32,
    Long = tide.int64, Short = tide.int16, Char = tide.int8, Byte = tide.uint8, Bool = tide.bool }

-- An input of a type: nil where none is known that is sure to fit.
local function input_of(input, k)
    local dtype, sizes = string.match(input.type, "^(%a+%d*)%(([%d, ]*)")
    if input.kind == "Tensor" then
        local shape, n = {}, 1
        for size in string.gmatch(sizes or "2, 3", "%d+") do
            shape[#shape + 1] = math.tointeger(tonumber(size))
            n = n * shape[#shape]
        end
        local values = {}
        for j = 1, n do
            values[j] = (j * 7 + k * 3) % 11 / 4
        end
        local x = n > 0 and tide.tensor(values):reshape(shape) or tide.zeros(shape)
        return x:to(DTYPES[dtype] or tide.float32)
    end
    return ({ int = k + 1, float = k + 0.5, bool = k % 2 == 0, str = "text", Scalar = 3 })[input.kind]
end

test("the_graphs_of_the_passes_tests_give_the_same", function()
    local functions, inputs, names, refused = {}, {}, {}, 0
    for name in string.gmatch((run(string.format("ls '%s/tests/script/cases'", source))), "[^\n]+") do
        local file <close> = assert(io.open(source .. "/tests/script/cases/" .. name))
        local text, lets = file:read "a", {}
        for key, value in string.gmatch(text, "\nlet (%w+) = ([^\n]*)") do
            lets[key] = value
        end
        lets[string.match(text, "^let (%w+)") or ""] = string.match(text, "^let %w+ = ([^\n]*)")
        for graph in string.gmatch(text, "\npasses: [^\n]*\n(.-)\n%-%-%-%-\n") do
            local whole = string.gsub(graph, "%$(%w+)", lets)
            local ok, f = pcall(parse, whole .. "\n", {}, "graph" .. #functions)
            local given = { n = 0 }
            for k, input in ipairs(ok and tide._script.describe(f).inputs or {}) do
                given[k], given.n = input_of(input, k), k
                ok = ok and given[k] ~= nil
            end
            if ok and not string.find(whole, "rand") and not string.find(whole, "dropout") and not string.find(whole, "empty") then
                if pcall(jit.emit_c, f) then
                    functions[#functions + 1], inputs[#inputs + 1], names[#names + 1] = f, given, f.name
                else
                    refused = refused + 1
                end
            end
        end
    end
    t.is_true(#functions > 80, #functions .. " graphs")
    t.is_true(refused < 10, refused .. " refused")
    same_in_c(functions, inputs, names)
end)

test("modules_keep_their_parameters_in_the_text_or_beside_it", function()
    tide.manual_seed(3)
    local net = tide.nn.Sequential(tide.nn.Linear(3, 4), tide.nn.GELU(), tide.nn.BatchNorm1d(4), tide.nn.Linear(4, 400))
    net:eval()
    local f, x = jit.script(net), tide.randn(5, 3)
    local path = new_path()
    f:emit_c(path .. ".c", { name = "net", main = { x } })
    local file <close> = assert(io.open(path .. ".c"))
    local text = file:read "a"
    t.is_true(string.find(text, "NULL},", 1, true), "a constant in the file beside")
    t.is_true(not string.find(text, "elements_%d+%[%] = { /%* float32 %(400, 4%)"), "large ones are not in the text")
    compile(path)
    t.eq((run(string.format("'%s'", path))), "net 1: " .. text_of(f(x)) .. "\n")
    os.remove(path .. ".safetensors")
    t.is_true(string.find((run(string.format("'%s'", path))), path .. ".safetensors", 1, true), "the file is missed by its name")
    remove(path)
    t.is_true(string.find(f:emit_c(), "/* float32 (400, 4) */", 1, true), "without a path all are in the text")
end)

test("a_tensor_that_calls_write_is_one_tensor", function()
    local seen = tide.zeros(2)
    local f = jit.script(function(x)
        seen:add_(x)
        return seen * 1, (seen + x):sum()
    end, { name = "seen" })
    local x = tide.tensor { 1.5, 2 }
    same_in_c({ f }, { { x } }, { "seen" })
end)

test("values_of_every_kind_go_in_and_out_of_c", function()
    local f = parse([==[
graph(%i : int,
      %f : float,
      %b : bool,
      %s : str,
      %l : Tensor[],
      %n : int[],
      %o : float?,
      %x : Tensor):
  %t : (int, Tensor[], str) = prim::TupleConstruct(%i, %l, %s)
  %v : float[] = prim::Constant[value=[1., -inf]]()
  %d : dtype = prim::Constant[value="float64"]()
  %none : NoneType = prim::Constant()
  %p : str = prim::Constant[value="preserve"]()
  %no : bool = prim::Constant[value=0]()
  %y : Tensor = aten::to(%x, %d, %none, %no, %p, %no)
  %z : str = prim::Constant[value="a \"b\"?\t."]()
  %q : str = aten::add(%z, %s)
  %m : int = prim::Constant[value=-9223372036854775808]()
  return (%i, %f, %b, %s, %l, %n, %o, %t, %v, %y, %q, %m)
]==], {}, "kinds")
    local x = tide.ones(2)
    same_in_c({ f, f }, { { 7, 2, true, "text", { x, x * 2 }, { 1, 2 }, 0.5, x, n = 8 }, { 7, 2.5, false, "", {}, {}, nil, x, n = 8 } },
        { "kinds", "kinds_2" })
end)

test("errors_have_their_place_and_deep_calls_end", function()
    local outer = jit.script(function(x, y) --: Tensor, int
        local function check(n)
            if n > 2 then
                error("too many")
            end
            return n
        end
        return x * check(y)
    end, { name = "outer" })
    local shapes = jit.script(function(x) return x:matmul(x) end, { name = "shapes" })
    local zero = jit.script(function(a, b) --: int, int
        return a // b
    end, { name = "zero" })
    local again = parse([[
graph(%n : int):
  %m : int = prim::CallFunction_0(%n)
  return (%m)
with prim::CallFunction_0 = graph(%n : int):
  %k : int = prim::Constant[value=150]()
  %one : int = prim::Constant[value=1]()
  %more : bool = aten::lt(%n, %k)
  %r : int = prim::If(%more)
    block0():
      %next : int = aten::add(%n, %one)
      %m : int = prim::CallFunction_0(%next)
      -> (%m)
    block1():
      -> (%n)
  return (%r)
]], {}, "again")
    local x = tide.ones(2, 3)
    same_in_c({ outer, outer, shapes, zero, zero, again, again }, { { x, 1 }, { x, 3 }, { x }, { 7, 2 }, { 7, 0 }, { 3 }, { -100 } },
        { "outer", "outer_2", "shapes", "zero", "zero_2", "again", "again_2" })
end)

-- Calls a function with ever more allocations that succeed, until all do: prints how often it failed, or what was left over.
local FAULTS = [[
#include <stdlib.h>

int main(void) {
    td_value inputs[3], outputs[3];
    td_tensor *x = NULL;
    static const int64_t sizes[] = {3, 3};
    if (td_init() || td_tensor_empty(TD_F32, TD_DEVICE_CPU, 2, sizes, &x))
        return 1;
    memset(x->data, 0, 36);
    inputs[0] = TD_T(x);
    inputs[1] = TD_I(7);
    int64_t failed = 0, before = 0;
    for (int turn = 0; turn < 2; turn++, failed = 0) { /* what is made once is there in the second */
        before = td_memory_allocated(TD_DEVICE_CPU);
        for (;; failed++) {
            int refs = atomic_load(&x->refs);
            td_memory_fail_after(failed + 1);
            td_status status = faulty(inputs, outputs);
            td_memory_fail_after(0);
            for (int k = 0; k < 3; k++)
                if (status && outputs[k].kind != TD_KIND_NIL)
                    return puts("an output is left"), 1;
                else if (!status)
                    td_value_drop(&outputs[k]);
            if (atomic_load(&x->refs) != refs)
                return puts("an input was kept or let go"), 1;
            if (turn && td_memory_allocated(TD_DEVICE_CPU) != before)
                return printf("%d: memory is left\n", (int)failed), 1;
            if (!status)
                break;
            if (status != TD_ENOMEM)
                return printf("%s\n", td_error_message()), 1;
        }
        if (turn)
            printf("failed %d times\n", (int)failed);
    }
    td_release(x);
    return 0;
}
]]

test("a_call_that_runs_out_of_memory_anywhere_leaves_nothing", function()
    local w = tide.ones(3, 3)
    local f = jit.script(function(x, n) --: Tensor, int
        local list, y, text = {}, x, "rows"
        local function more(u, k)
            return u + k, { k, k }
        end
        for k = 1, n do
            list[#list + 1] = x * k
            local z, pair = more(list[#list], k)
            y = k % 3 == 0 and y:matmul(w) or y + z
            text = text .. pair[2]
        end
        return y, list, text
    end, { name = "faulty" })
    local path = new_path()
    local file = assert(io.open(path .. ".c", "w"))
    file:write(f:emit_c(), FAULTS)
    file:close()
    compile(path)
    local out, code = run(string.format("'%s'", path))
    remove(path)
    t.eq(code, 0, out)
    t.is_true(tonumber(string.match(out, "^failed (%d+) times\n$") or 0) > 30, out)
end)

test("a_main_makes_up_inputs_whose_shapes_are_known", function()
    local f = jit.trace(function(x, y) return x:to(tide.float64) + y:sum(), x * 2 end, { tide.ones(2, 3), tide.ones(4, { dtype = tide.int64 }) },
        { name = "made_up", check = false })
    local path = new_path()
    f:emit_c(path .. ".c", { main = true })
    compile(path)
    local printed = lines_of((run(string.format("'%s'", path))))
    remove(path)
    local x = (tide.arange(6) * 7 + 3):remainder(11):div(4):reshape(2, 3)
    local y = (tide.arange(4) * 7 + 6):remainder(11):div(4):to(tide.int64)
    local a, b = f(x, y)
    t.eq(printed, { "made_up 1: " .. text_of(a), "made_up 2: " .. text_of(b) })
end)

test("what_is_printed_is_printed", function()
    local f = jit.script(function(a, b) --: int, float
        print("a is", a, b, nil, a > 3)
        return a
    end, { name = "printing" })
    local path = new_path()
    f:emit_c(path .. ".c", { main = { 5, 0.5 } })
    compile(path)
    t.eq((run(string.format("'%s'", path))), "a is\t5\t0.5\tnil\ttrue\nprinting 1: 5\n")
    remove(path)
end)

-- ---- what is refused, and names ----

t.test("what_has_no_form_in_c_is_named_with_its_place", function()
    local double = jit.ignore(function(x) return x * 2 end)
    t.error_has(function() jit.script(function(x) return double(x) end):emit_c() end, "emit_c: ")
    t.error_has(function() jit.script(function(x) return double(x) end):emit_c() end, ": prim::HostCall has no form in C")
    local g = jit.script(function(x) return x * 2 end)
    t.error_has(function() jit.script(function(x) return jit.wait(jit.fork(g, x)) end):emit_c() end, ": prim::fork has no form in C")
    t.error_has(function() jit.script(function(x) print(x); return x end):emit_c() end, ": prim::Print of a tensor, list or tuple has no form")
    local sparse = tide.eye(3):to_sparse()
    t.error_has(function() jit.trace(function(x) return sparse:matmul(x) end, tide.ones(3, 2), { check = false }):emit_c() end,
        "prim::Constant of a sparse_coo tensor has no form in C")
end)

t.test("names_are_names_of_c", function()
    local f = jit.trace(function(x) return x + 1 end, tide.ones(2), { name = "net.forward" })
    for _, wrong in ipairs { "double", "a b", "", "1x", "exp", "td_f", "_f", "main" } do
        t.error_has(function() f:emit_c(nil, { name = wrong }) end, "emit_c: name: ")
    end
    t.is_true(string.find(f:emit_c(), "\ntd_status net_forward(const td_value", 1, true))
    for name, as in pairs { exp = "exp_", ["for"] = "for_", ["3d"] = "v3d", td_x = "vtd_x", main = "main_" } do
        local named = jit.trace(function(x) return x + 1 end, tide.ones(2), { name = name })
        t.is_true(string.find(named:emit_c(), "\ntd_status " .. as .. "(const td_value", 1, true), name)
    end
    local odd = parse("graph(%linux : int, %double.1 : int, %r : int, %NULL : int):\n  %INT64_MAX : int = aten::add(%linux, %double.1)\n"
        .. "  %td_fail : int = aten::add(%r, %NULL)\n  %k : int = aten::mul(%INT64_MAX, %td_fail)\n  return (%k)\n", {}, "odd")
    local outer = parse([[
graph(%outer.1 : int, %outer_body : int, %outer_body_1 : int, %type.1 : int, %type.2 : int):
  %names : int, %rows : int = prim::CallFunction_0(%outer.1, %type.2)
  %constants : int = aten::floordiv(%names, %rows)
  %start : int[] = prim::ListConstruct(%constants, %outer_body, %outer_body_1, %type.1)
  return (%start)
with prim::CallFunction_0 = graph(%depth : int, %k : int):
  return (%depth, %k)
]], {}, "outer")
    local outer_body = parse("graph(%x : int):\n  return (%x)\n", {}, "outer_body")
    if can_compile then
        same_in_c({ odd, outer, outer_body }, { { 1, 2, 3, 4 }, { 5, 6, 7, 8, 2 }, { 1 } }, { "odd", "outer", "outer_body_2" })
    end
end)

t.test("wrong_calls_are_one_line_and_write_nothing", function()
    local f = jit.trace(function(x) return x + 1 end, tide.ones(2))
    t.error_has(function() jit.emit_c(print) end, "emit_c: argument 1 (f): a ScriptFunction, or a list of them, expected, got function")
    t.error_has(function() jit.emit_c {} end, "emit_c: argument 1 (f): ")
    t.error_has(function() jit.emit_c({ f, f }, nil, { name = "x" }) end, "emit_c: name: several functions")
    t.error_has(function() f:emit_c(nil, { main = { "x" } }) end, "emit_c: main: input 1 of traced (x)")
    t.error_has(function() f:emit_c(nil, { main = {} }) end, "emit_c: main: input 1 of traced (x)")
    t.error_has(function() f:emit_c(nil, { main = 3 }) end, "emit_c: main: expected true or a list of inputs, got number 3")
    local scripted = jit.script(function(x) return x + 1 end)
    t.error_has(function() scripted:emit_c(nil, { main = true }) end, "emit_c: main: the graph does not know the shape of input 1 of ")
    t.error_has(function() f:emit_c "/nowhere/f.c" end, "emit_c: cannot write '/nowhere/f.c'")
    t.error_has(function() f:emit_c "f.safetensors" end, "emit_c: 'f.safetensors' is the name of a file of tensors")
    local folder = new_path()
    t.is_true(os.execute("mkdir " .. folder))
    t.error_has(function() f:emit_c(folder) end, "emit_c: cannot write '" .. folder)
    t.error_has(function() f:save(folder) end, "save: ")
    local large = jit.trace(tide.nn.Linear(100, 100), tide.ones(1, 100))
    t.error_has(function() large:emit_c "/nowhere/f.c" end, "emit_c: cannot write '/nowhere/f.safetensors'")
    t.error_has(function() large:emit_c(folder) end, "emit_c: cannot write '" .. folder .. "'")
    t.eq(io.open(folder .. ".safetensors"), nil)
    t.is_true(os.remove(folder))
end)
