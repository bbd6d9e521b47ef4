-- jit/emit.lua: f:emit_c: a file of C that does what functions' graphs do, without Lua and without reading a graph. A graph
-- becomes a function (jit/emit_body.lua); this file gathers what they need besides and writes the contract at the head.
local tide = ...
local script, fail = tide._script, tide._fail
local words, body, main = tide._require "jit.emit_words", tide._require "jit.emit_body", tide._require "jit.emit_main"
local emit = {}

local EMBEDDED = 4096 -- bytes of a constant that the C has itself where a file for larger ones may be beside it

local File = {}
File.__index = File

-- ---- what functions ask for ----

local TYPES = { Tensor = "TENSOR", int = "INT", float = "FLOAT", bool = "BOOL", Scalar = "NUMBER", str = "STRING", NoneType = "NONE",
    dtype = "DTYPE", Device = "DEVICE", Generator = "GENERATOR", Any = "ANY", ["[]"] = "LIST", ["?"] = "OPTIONAL", Future = "FUTURE",
    ["()"] = "TUPLE" }

--- type(value): the name of a constant that says its type; of a tensor nothing but that it is one.
function File:type(value)
    local parts = {}
    for k, part in ipairs(value.parts) do
        parts[k] = "&" .. self:type(part)
    end
    local key = value.kind .. " " .. table.concat(parts, " ")
    if not self.types[key] then
        self.ntypes = self.ntypes + 1
        local name, n = "TYPE_" .. self.ntypes, value.kind == "Tensor" and "TD_IR_UNKNOWN" or tostring(#parts)
        self.types[key] = name
        self:add("static const td_ir_type %s = {.kind = TD_IR_%s, .dtype = TD_DTYPE_NONE, .requires_grad = TD_IR_UNKNOWN, .n = %s%s};",
            name, TYPES[value.kind], n, #parts > 0 and string.format(",\n    .parts = (const td_ir_type *const[]){%s}",
                table.concat(parts, ", ")) or "")
    end
    return self.types[key]
end

--- array(what, list): a list of ints or floats as a td_value.
function File:array(what, list)
    local int, parts = what == "ints", {}
    for k, value in ipairs(list) do
        parts[k] = (int and words.int or words.float)(value)
    end
    local text = #parts == 0 and "0" or table.concat(parts, ", ")
    local name = self.arrays[what .. text .. #parts]
    if not name then
        self.narrays = self.narrays + 1
        name = (int and "INTS_" or "FLOATS_") .. self.narrays
        self.arrays[what .. text .. #parts] = name
        self.array_texts[#self.array_texts + 1] = { name = name,
            text = string.format("static const %s %s[] = {%s};", int and "int64_t" or "double", name, text) }
    end
    return string.format("%s(%d, %s)", int and "TD_INTS" or "TD_FLOATS", #parts, name)
end

--- row(name, parameters): the number, as C names it, of an operator on what is no tensor.
function File:row(name, parameters)
    local id = "ROW_" .. string.gsub(name, "[^%w]", "_") .. "_" .. string.gsub(parameters, "[^%w]", "x")
    if not self.row_ids[id] then
        self.row_ids[id] = true
        table.insert(self.rows, { id = id, name = name, parameters = parameters })
    end
    return id
end

--- tensor(node, x, address): the number, from 0, of a constant tensor; the same one for the same address.
function File:tensor(node, x, address)
    local key = address or x
    if not self.tensor_numbers[key] then
        local ok, near = pcall(function() return x:detach():cpu():contiguous() end)
        if not ok or x.layout ~= "strided" then
            error({ refused = string.format("%s%s of a %s tensor has no form in C", node.place and node.place .. ": " or "", node.kind,
                x.layout) }, 0)
        end
        table.insert(self.tensors, { near = near, requires_grad = x.requires_grad })
        self.tensor_numbers[key] = #self.tensors
    end
    return self.tensor_numbers[key] - 1
end

function File:group_name(k) return string.format("%s_body_%d", self.name, k) end

-- Arrays that the text names: of a constant that nothing reads there is none.
local function add_arrays(file, text)
    local named = {}
    for name in string.gmatch(text, "%a+_%d+") do
        named[name] = true
    end
    for _, array in ipairs(file.array_texts) do
        if named[array.name] then
            file:add("%s", array.text)
        end
    end
end

-- A line before all functions.
function File:add(format, ...) self.before[#self.before + 1] = select("#", ...) == 0 and format or string.format(format, ...) end

-- ---- constants ----

local UNITS = { "uint8_t", "uint16_t", nil, "uint32_t", nil, nil, nil, "uint64_t" }

-- The elements' bits as an array of unsigned ints.
local function bits_text(x, size)
    local n = x:numel()
    local bytes, parts = tide._string(x, 0, n * size), {}
    for k = 0, n - 1 do
        parts[k + 1] = string.format(size == 8 and "UINT64_C(0x%x)" or "0x%x", (string.unpack("=I" .. size, bytes, k * size + 1)))
    end
    for k = 8, #parts, 8 do
        parts[k] = parts[k] .. (k < #parts and ",\n   " or "")
    end
    return #parts == 0 and "0" or (string.gsub(table.concat(parts, ", "), ",\n   , ", ",\n    "))
end

local function sizes_text(x)
    local sizes = {}
    for d = 1, x:dim() do
        sizes[d] = words.int(x:size(d))
    end
    return #sizes == 0 and "{0}" or "{" .. table.concat(sizes, ", ") .. "}", "(" .. table.concat(sizes, ", ") .. ")"
end

-- Those that are large go into a file beside the C where that has a path: names and tensors of it.
local function add_tensors(file)
    local names, beside, list = {}, {}, {}
    for k, constant in ipairs(file.tensors) do
        local x, size = constant.near, constant.near:element_size()
        local sizes, shape = sizes_text(x)
        local large = file.path and x:numel() * size > EMBEDDED
        if large then
            names[#names + 1], beside[#beside + 1] = tostring(k - 1), x
        else
            file:add("static const %s elements_%d[] = { /* %s %s */\n    %s};", UNITS[size], k - 1, string.match(tostring(x.dtype), "%w+$"), shape,
                bits_text(x, size))
        end
        file:add("static const int64_t sizes_%d[] = %s;", k - 1, sizes)
        list[k] = string.format("    {%s, %d, %s, sizes_%d, %s},", words.dtype(tostring(x.dtype)), x:dim(),
            words.bool(constant.requires_grad), k - 1, large and "NULL" or "elements_" .. k - 1)
    end
    if #list > 0 then
        file:add([[
static const struct constant {
    td_dtype dtype;
    int ndim;
    bool requires_grad;
    const int64_t *sizes;
    const void *elements;%s
} descriptions[] = {
%s
};]], #names > 0 and " /* NULL: in the file */" or "", table.concat(list, "\n"))
        file:add("static td_tensor *constants[%d]; /* made once, by the first call */", #list)
    end
    return names, beside
end

-- ---- texts that every file has ----

local FROM_FILE = [[
/* The file beside this one, as the program finds it. */
#ifndef %s_TENSORS
#define %s_TENSORS %s
#endif

static td_status open_archive(td_safetensors **archive) {
    char message[400];
    td_status status = td_safetensors_open(%s_TENSORS, false, archive);
    if (status == TD_OK)
        return TD_OK;
    snprintf(message, sizeof message, "%%s", td_error_message());
    return td_fail(status, "'%%s': %%s", %s_TENSORS, message);
}

static td_status read_constant(td_safetensors *archive, int k) {
    const struct constant *c = &descriptions[k];
    char name[24];
    snprintf(name, sizeof name, "%%d", k);
    for (int64_t j = 0; j < archive->nentries; j++) {
        const td_entry *e = &archive->entries[j];
        if (e->name.len != strlen(name) || memcmp(e->name.at, name, e->name.len))
            continue;
        if (e->dtype != c->dtype || e->ndim != c->ndim ||
            memcmp(e->sizes, c->sizes, sizeof *e->sizes * (size_t)e->ndim))
            break;
        return td_safetensors_get(archive, j, &constants[k]);
    }
    return td_fail(TD_EVALUE, "'%%s': tensor %%d is not there, or another one", %s_TENSORS, k);
}
]]

local MAKE = [[
static td_status make_constant(%sint k) {
    const struct constant *c = &descriptions[k];
    td_status status = TD_OK;
    if (constants[k])
        return TD_OK;
%s    TD_TRY(td_tensor_empty(c->dtype, TD_DEVICE_CPU, c->ndim, c->sizes, &constants[k]));
    memcpy(constants[k]->data, c->elements, (size_t)constants[k]->numel * td_dtype_size(c->dtype));
%s    if (c->requires_grad)
        TD_TRY(td_set_requires_grad(constants[k], true));
done:
    if (status) {
        td_release(constants[k]);
        constants[k] = NULL;
    }
    return status;
}
]]

local FAIL_AT = [[
/* The innermost place is told; an interrupt has none. */
static td_status fail_at(const char *place, td_status status, bool *placed) {
    char message[600];
    if (*placed || !place || status == TD_EINTR)
        return status;
    *placed = true;
    snprintf(message, sizeof message, "%s", td_error_message());
    return td_fail(status, "%s: %s", place, message);
}
]]

local PRINT = [[
/* As Lua's print. */
static td_status print(int n, const td_value *values) {
    td_value text = TD_NIL;
    td_status status = TD_OK;
    for (int k = 0; k < n; k++) {
        int64_t length;
        TD_TRY(td_scalar_call(rows[ROW_str_a], 1, &values[k], &text));
        const char *bytes = td_value_text(text, &length);
        fputs(k ? "\t" : "", stdout);
        fwrite(bytes, 1, (size_t)length, stdout);
        td_value_drop(&text);
    }
    puts("");
done:
    td_value_drop(&text);
    return status;
}
]]

-- ---- starting ----

local function start_text(file, nbeside)
    local lines = {}
    local function add(format, ...) lines[#lines + 1] = string.format(format, ...) end
    if #file.rows + #file.tensors == 0 then
        return nil
    end
    add "/* What all calls need is made by the first one; one that failed may be made again. */"
    add "static td_status start(void) {"
    add "    static atomic_bool ready;"
    add "    static pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER;"
    add "    td_status status = TD_OK;"
    if nbeside > 0 then
        add "    td_safetensors *archive = NULL;"
    end
    add "    if (atomic_load_explicit(&ready, memory_order_acquire))"
    add "        return TD_OK;"
    add "    pthread_mutex_lock(&starting);"
    if #file.rows > 0 then
        add "    for (int k = 0; k < ROWS; k++) {"
        add "        rows[k] = td_scalar_get_row(names[k][0], names[k][1]);"
        add "        if (!rows[k])"
        add "            TD_TRY(td_fail(TD_EVALUE, \"this version has no %%s of %%s\", names[k][0], names[k][1]));"
        add "    }"
    end
    if nbeside > 0 then
        add "    TD_TRY(open_archive(&archive));"
    end
    if #file.tensors > 0 then
        add("    for (int k = 0; k < %d; k++)", #file.tensors)
        add("        TD_TRY(make_constant(%sk));", nbeside > 0 and "archive, " or "")
    end
    add "    atomic_store_explicit(&ready, true, memory_order_release);"
    add "done:"
    if nbeside > 0 then
        add "    td_safetensors_close(archive);"
    end
    add "    pthread_mutex_unlock(&starting);"
    add "    return status;"
    add "}\n"
    return table.concat(lines, "\n")
end

local function rows_text(rows)
    local ids, names = {}, {}
    for k, row in ipairs(rows) do
        ids[k] = row.id
        names[k] = string.format('    {"%s", "%s"},', row.name, row.parameters)
    end
    return string.format("/* Operators on what is no tensor: their names, and the letters of what they take. */\nenum { %s, ROWS };\n"
        .. "static const char *const names[ROWS][2] = {\n%s\n};\nstatic const td_scalar *rows[ROWS];\n", table.concat(ids, ", "),
        table.concat(names, "\n"))
end

-- ---- functions ----

-- Does a function of the description call itself, at whatever distance?
local function recurses(description)
    local calls = {}
    local function find(block, found)
        for _, node in ipairs(block.nodes) do
            if node.group then
                found[node.group] = true
            end
            for _, inner in ipairs(node.blocks) do
                find(inner, found)
            end
        end
        return found
    end
    for k, group in ipairs(description.groups) do
        calls[k] = find(group, {})
        if calls[k][k] then
            return true
        end
    end
    return false
end

local function list_of(names) return #names == 0 and "nothing" or table.concat(names, ", ") end

-- The contract of one function.
local function contract(name, description)
    local inputs, outputs = {}, {}
    local types = {}
    local function find(block)
        for _, input in ipairs(block.inputs) do
            types[input.name] = input.type
        end
        for _, node in ipairs(block.nodes) do
            for _, output in ipairs(node.outputs) do
                types[output.name] = output.type
            end
        end
    end
    find(description)
    for k, input in ipairs(description.inputs) do
        inputs[k] = string.format("%s %s", input.type, input.name)
    end
    for k, output in ipairs(description.outputs) do
        outputs[k] = types[output]
    end
    return string.format("   %s: inputs %s; outputs %s", name, list_of(inputs), list_of(outputs))
end

local function write_function(file, name, description, out)
    file.name = name
    local nests = recurses(description)
    file.nests = file.nests or nests
    local prototypes, bodies = {}, {}
    for k, group in ipairs(description.groups) do
        local lines = body.write(file, file:group_name(k), group, nests)
        prototypes[k] = string.format("static td_status %s(const td_value *inputs, td_value *outputs, bool *placed);", file:group_name(k))
        bodies[k] = table.concat(lines, "\n") .. "\n"
    end
    local root = name .. "_body"
    bodies[#bodies + 1] = table.concat(body.write(file, root, description, nests), "\n") .. "\n"
    if #prototypes > 0 then
        out[#out + 1] = table.concat(prototypes, "\n") .. "\n"
    end
    out[#out + 1] = table.concat(bodies, "\n")
    return root
end

local function public_text(name, root, noutputs, starts)
    local lines = { string.format("td_status %s(const td_value *inputs, td_value *outputs) {", name), "    bool placed = false;" }
    if starts then
        table.move({ "    td_status status = start();", string.format("    for (int k = 0; status && k < %d; k++)", noutputs),
            "        outputs[k] = TD_NIL;", string.format("    return status ? status : %s(inputs, outputs, &placed);", root) }, 1,
            noutputs > 0 and 4 or 1, #lines + 1, lines)
        if noutputs == 0 then
            lines[#lines + 1] = string.format("    return status ? status : %s(inputs, outputs, &placed);", root)
        end
    else
        lines[#lines + 1] = string.format("    return %s(inputs, outputs, &placed);", root)
    end
    lines[#lines + 1] = "}\n"
    return table.concat(lines, "\n")
end

-- ---- the whole ----

local function comment_safe(text) return (string.gsub(string.gsub(text, "%*/", "* /"), "[\n\r]", " ")) end

local function head(file, functions, beside)
    local lines = { string.format("/* %s: made by Tide %s from graphs (tide.jit.emit_c).", comment_safe(file.title), tide.version), "",
        string.format("       cc -O2 -c %s $(pkg-config --cflags libtide)", file.path and comment_safe(file.title) or "FILE.c"), "",
        "   To be called behind td_init, by any number of threads:", "" }
    for _, fn in ipairs(functions) do
        lines[#lines + 1] = string.format("       td_status %s(const td_value *inputs, td_value *outputs);", fn.name)
    end
    lines[#lines + 1] = ""
    for _, fn in ipairs(functions) do
        lines[#lines + 1] = comment_safe(contract(fn.name, fn.description))
    end
    table.move({ "", "   Inputs are borrowed; an int is taken for a float. Outputs are the caller's to drop (td_value_drop).",
        "   On failure they are nil, and td_error_message says why, with the place in the source that it is",
        "   from. Operators are recorded for backward, cast and observed as the thread's modes say." }, 1, 4, #lines + 1, lines)
    if #beside > 0 then
        table.move({ "", string.format("   Constants of more than %d bytes are in %s, which the first call reads:", EMBEDDED,
            comment_safe(file.beside_path)), string.format("   -D%s_TENSORS='\"PATH\"' says where else that is.", file.name) }, 1, 3,
            #lines + 1, lines)
    end
    lines[#lines] = lines[#lines] .. " */"
    return table.concat(lines, "\n") .. "\n"
end

local INCLUDES = [[
#ifdef __FAST_MATH__
#error "-ffast-math would change results"
#endif
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off")
#endif
#include <engine/td.h>

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
]]

-- The names in C that belong to a function: its own, that of what it does, those of graphs that it calls.
local function names_with(name, ngroups)
    local list = { name, name .. "_body" }
    for k = 1, ngroups do
        list[#list + 1] = string.format("%s_body_%d", name, k)
    end
    return list
end

local function any_taken(taken, names)
    for _, name in ipairs(names) do
        if taken[name] then
            return true
        end
    end
    return false
end

-- Functions with names in C that differ in all that belongs to them; and the set of these.
local function names_of(functions, name)
    local taken, list = {}, {}
    for k, f in ipairs(functions) do
        local description = script.describe(f)
        local base, ngroups = name or words.function_name(script.name(f)), #description.groups
        local unique, n = base, 1
        while any_taken(taken, names_with(unique, ngroups)) do
            n = n + 1
            unique = base .. "_" .. n
        end
        for _, one in ipairs(names_with(unique, ngroups)) do
            taken[one] = true
        end
        list[k] = { name = unique, description = description }
    end
    return list, taken
end

local function check_options(functions, path, options)
    if #functions == 0 then
        fail("emit_c: argument 1 (f): a ScriptFunction, or a list of them, expected")
    elseif options.name and (#functions > 1 or not words.is_identifier(options.name)) then
        fail("emit_c: name: %s", #functions > 1 and "several functions have their own names" or tide._describe(options.name)
            .. " is no name for a function of C, or one of the C library's")
    elseif options.main and options.main ~= true and type(options.main) ~= "table" then
        fail("emit_c: main: expected true or a list of inputs, got %s", tide._describe(options.main))
    elseif path and string.find(path, "%.safetensors$") then
        fail("emit_c: '%s' is the name of a file of tensors, not of C", path)
    end
end

--- text(functions, path, options): the C, and names and tensors of the file beside it.
local function text(functions, path, options)
    local list, taken = names_of(functions, options.name)
    local file = setmetatable({ path = path, title = path and string.match(path, "[^/]*$") or list[1].name, types = {}, ntypes = 0, arrays = {},
        array_texts = {}, narrays = 0, rows = {}, row_ids = {}, tensors = {}, tensor_numbers = {}, before = {}, taken = taken }, File)
    file.beside_path = path and string.gsub(path, "%.c$", "") .. ".safetensors"
    local functions_text, public = {}, {}
    for _, fn in ipairs(list) do
        fn.root = write_function(file, fn.name, fn.description, functions_text)
        public[#public + 1] = string.format("td_status %s(const td_value *inputs, td_value *outputs);", fn.name)
    end
    file.name = list[1].name
    local given = options.main
    if type(given) == "table" and not options.several then
        given = { given }
    end
    local ending = given and main.text(file, list, given)
    add_arrays(file, table.concat(functions_text) .. (ending or ""))
    local names, beside = add_tensors(file)
    local start = start_text(file, #names)
    local parts = { head(file, list, beside), INCLUDES, table.concat(public, "\n") .. "\n" }
    local function add(part) parts[#parts + 1] = part or nil end
    add(#file.rows > 0 and rows_text(file.rows))
    add(#file.before > 0 and table.concat(file.before, "\n") .. "\n")
    add(#names > 0 and string.format(FROM_FILE, file.name, file.name, words.string(file.beside_path), file.name, file.name, file.name))
    add(#file.tensors > 0 and (#names > 0 and string.format(MAKE, "td_safetensors *archive, ",
        "    if (!c->elements)\n        TD_TRY(read_constant(archive, k));\n    else {\n    ", "    }\n") or string.format(MAKE, "", "", "")))
    add(start)
    add(file.places and FAIL_AT)
    add(file.nests and "static _Thread_local int depth;\n")
    add(file.prints and PRINT)
    table.move(functions_text, 1, #functions_text, #parts + 1, parts)
    for _, fn in ipairs(list) do
        add(public_text(fn.name, fn.root, #fn.description.outputs, start))
    end
    add(given and main.printing)
    add(ending)
    return table.concat(parts, "\n"), names, beside, file.beside_path
end

local function is_there(path)
    local file <close> = io.open(path)
    return file ~= nil
end

-- Where the C can't be written, no new file of tensors is left.
local function write_files(path, source, names, beside, beside_path)
    local new = #names > 0 and not is_there(beside_path)
    if #names > 0 then
        local ok, why = pcall(tide._archive_write, beside_path, names, beside, "")
        if not ok then
            error(string.gsub(tostring(why), "save: ", "emit_c: ", 1), 0)
        end
    end
    local ok, why = pcall(tide._write, path, "emit_c", source)
    if not ok then
        if new then
            os.remove(beside_path)
        end
        error(why, 0)
    end
end

--- write(functions, path, options): the C; with a path it is written there instead, and constants that are large beside it.
function emit.write(functions, path, options)
    check_options(functions, path, options)
    local ok, source, names, beside, beside_path = pcall(text, functions, path, options)
    if not ok then
        if type(source) == "table" and source.refused then
            fail("emit_c: %s", source.refused)
        end
        error(source, 0)
    end
    if not path then
        return source
    end
    write_files(path, source, names, beside, beside_path)
end

return emit
