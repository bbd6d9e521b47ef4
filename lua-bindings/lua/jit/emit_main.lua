-- jit/emit_main.lua: a main for C that is made of graphs: it calls each function and prints a digest of what that gives.
local tide = ...
local words = tide._require "jit.emit_words"
local main = {}

-- ---- what is printed ----

--- printing: functions of C that print a value.
main.printing = [[
/* Any NaN is the same one. */
static uint64_t same_nan(uint64_t bits, uint64_t infinity) {
    return (bits & (infinity | (infinity - 1))) > infinity ? infinity + 1 : bits;
}

static uint64_t element(const td_tensor *x, int64_t k) {
    uint64_t bits = 0;
    size_t size = td_dtype_size((td_dtype)x->dtype);
    for (size_t j = size; j-- > 0;)
        bits = bits << 8 | ((const unsigned char *)x->data)[(size_t)k * size + j];
    return x->dtype == TD_F16    ? same_nan(bits, 0x7c00)
           : x->dtype == TD_BF16 ? same_nan(bits, 0x7f80)
           : x->dtype == TD_F32  ? same_nan(bits, 0x7f800000)
           : x->dtype == TD_F64  ? same_nan(bits, UINT64_C(0x7ff0000000000000))
                                 : bits;
}

/* dtype, shape, and FNV-1a of the elements' bytes, row by row, the lowest byte first. */
static td_status put_tensor(td_tensor *x) {
    char shape[TD_SHAPE_TEXT];
    td_tensor *row = NULL, *near = NULL;
    td_status status = TD_OK;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    TD_TRY(TD_APPLY(&row, detach, TD_T(x)));
    TD_TRY(TD_APPLY(&near, contiguous, TD_T(row)));
    for (int64_t k = 0; k < near->numel; k++) {
        uint64_t bits = element(near, k);
        for (size_t j = 0; j < td_dtype_size((td_dtype)near->dtype); j++, bits >>= 8)
            hash = (hash ^ (bits & 255)) * UINT64_C(0x100000001b3);
    }
    printf("%s %s %016llx", td_dtype_name((td_dtype)x->dtype), td_tensor_shape_text(x, shape), (unsigned long long)hash);
done:
    td_release(row);
    td_release(near);
    return status;
}

static td_status put(td_value v) {
    td_status status = TD_OK;
    const char *text = td_value_text(v, NULL);
    const td_box_list *list = td_value_list(v);
    const td_box_tuple *tuple = td_value_tuple(v);
    if (text)
        printf("\"%s\"", text);
    else if (list || tuple) {
        printf("{");
        for (int k = 0; k < (list ? list->n : tuple->n); k++) {
            fputs(k ? ", " : "", stdout);
            TD_TRY(put(list ? td_list_entry(list, k) : tuple->parts[k]));
        }
        printf("}");
    } else if (v.kind == TD_KIND_TENSOR)
        TD_TRY(put_tensor(v.tensor));
    else if (v.kind == TD_KIND_INT)
        printf("%lld", (long long)v.i);
    else if (v.kind == TD_KIND_FLOAT && v.f != v.f)
        printf("nan");
    else if (v.kind == TD_KIND_FLOAT)
        printf("%a", v.f);
    else if (v.kind == TD_KIND_BOOL)
        fputs(v.b ? "true" : "false", stdout);
    else if (v.kind == TD_KIND_NIL)
        printf("nil");
    else
        printf("a value of kind %d", v.kind);
done:
    return status;
}
]]

local MAIN = [[
/* Calls a function and prints a line for each of its results, or why there are none. */
static int show(const char *name, td_status (*function)(const td_value *, td_value *),
                const td_value *given, int n, td_value *results) {
    td_status status = function(given, results);
    for (int k = 0; k < n && status == TD_OK; k++) {
        printf("%s %d: ", name, k + 1);
        TD_TRY(put(results[k]));
        puts("");
    }
done:
    for (int k = 0; k < n; k++)
        td_value_drop(&results[k]);
    if (status)
        printf("%s failed: %s\n", name, td_error_message());
    return status != TD_OK;
}
]]

-- ---- inputs ----

-- A tensor that main gives a function: its number among the constants.
local function given_tensor(file, x) return string.format("constants[%d]", file:tensor({ kind = "main" }, x:detach():clone())) end

-- By the kind of an input: a value as C that makes a td_value of it; nil: it is of another kind.
local INPUTS = {
    Tensor = function(file, value) return tide.is_tensor(value) and string.format("TD_T(%s)", given_tensor(file, value)) end,
    int = function(_, value) return math.type(value) == "integer" and string.format("TD_I(%s)", words.int(value)) end,
    float = function(_, value) return math.type(value) and string.format("TD_F(%s)", words.float(value + 0.0)) end,
    bool = function(_, value) return type(value) == "boolean" and string.format("TD_B(%s)", words.bool(value)) end,
    str = function(_, value) return type(value) == "string" and string.format("TD_STRING(%s)", words.string(value)) end,
}
function INPUTS.Scalar(file, value) return INPUTS.int(file, value) or INPUTS.float(file, value) or INPUTS.bool(file, value) end
INPUTS["?"] = function(file, value, input)
    return value == nil and "TD_NIL" or INPUTS[input.parts[1].kind] and INPUTS[input.parts[1].kind](file, value, input.parts[1])
end
INPUTS["[]"] = function(file, value, input)
    local kind = input.parts[1].kind
    if type(value) ~= "table" or tide.is_tensor(value) then
        return nil
    end
    for _, entry in ipairs(value) do
        if kind == "Tensor" and not tide.is_tensor(entry) or kind ~= "Tensor" and not math.type(entry)
            or kind == "int" and math.type(entry) ~= "integer" then
            return nil
        end
    end
    if kind == "int" or kind == "float" then
        return file:array(kind .. "s", value)
    elseif kind == "Tensor" then
        local parts = {}
        for k, x in ipairs(value) do
            parts[k] = given_tensor(file, x)
        end
        return string.format("TD_TENSORS(%d, ((td_tensor *[]){%s}))", #parts, #parts > 0 and table.concat(parts, ", ") or "NULL")
    end
end

local function input_text(file, value, input, name, k)
    local write = INPUTS[input.kind]
    local text = write and write(file, value, input)
    if not text then
        tide._fail("emit_c: main: input %d of %s (%s): %s%s expected, got %s", k, name, (string.gsub(input.name, "%.%d+$", "")),
            write and "" or "none that C can be given, but ", input.kind == "Tensor" and "Tensor" or input.type, tide._describe(value))
    end
    return text
end

-- For `main = true`: an input of the sizes and dtype that the graph knows (* is 2), whose elements are small numbers.
local DTYPES = { Bool = "bool", Byte = "uint8", Char = "int8", Short = "int16", Int = "int32", Long = "int64", Half = "float16",
    BFloat16 = "bfloat16", Float = "float32", Double = "float64" }

local function some_input(input, name, k)
    local dtype, sizes = string.match(input.type, "^(%a+%d*)%(([%d*, ]*)")
    if input.kind ~= "Tensor" then
        return ({ int = k, float = k + 0.5, bool = true, str = "text", Scalar = k })[input.kind]
    elseif not DTYPES[dtype] then
        tide._fail("emit_c: main: the graph does not know the shape of input %d of %s (%s): give the inputs, main = {...}", k, name,
            (string.gsub(input.name, "%.%d+$", "")))
    end
    local shape = {}
    for size in string.gmatch(sizes, "[%d*]+") do
        shape[#shape + 1] = size == "*" and 2 or math.tointeger(tonumber(size))
    end
    local n = 1
    for _, size in ipairs(shape) do
        n = n * size
    end
    return (tide.arange(n) * 7 + 3 * k):remainder(11):div(4):reshape(shape):to(tide[DTYPES[dtype]])
end

local function some_inputs(fn)
    local list = {}
    for k, input in ipairs(fn.description.inputs) do
        list[k] = some_input(input, fn.name, k)
    end
    return list
end

--- text(file, functions, given): the main of functions, each with its list of inputs; true: some.
function main.text(file, functions, given)
    local lines = { MAIN, "int main(void) {", "    int failed = 0;", "    if (td_init()) {", '        printf("%s\\n", td_error_message());',
        "        return 1;", "    }" }
    local function add(format, ...) lines[#lines + 1] = string.format(format, ...) end
    local calls = {}
    for k, fn in ipairs(functions) do
        local values, texts, inputs = given == true and some_inputs(fn) or given[k] or {}, {}, fn.description.inputs
        for j, input in ipairs(inputs) do
            texts[j] = input_text(file, values[j], input, fn.name, j)
        end
        calls[#calls + 1] = string.format("    {\n        td_value results[%d];\n        failed |= show(\"%s\", %s, %s, %d, results);\n    }",
            math.max(#fn.description.outputs, 1), fn.name, fn.name,
            #texts == 0 and "NULL" or "(td_value[]){" .. table.concat(texts, ", ") .. "}", #fn.description.outputs)
    end
    if #file.tensors > 0 then
        add "    if (start()) {"
        lines[#lines + 1] = '        printf("%s\\n", td_error_message());'
        add "        return 1;"
        add "    }"
    end
    table.move(calls, 1, #calls, #lines + 1, lines)
    add "    return failed;"
    add "}"
    return table.concat(lines, "\n") .. "\n"
end

return main
