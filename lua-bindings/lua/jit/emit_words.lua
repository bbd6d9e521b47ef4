-- jit/emit_words.lua: names and constants as C writes them, and operators on numbers that are expressions of C.
local tide = ...
local code = tide._require "jit.code"
local words = {}

-- ---- names ----

local TAKEN = {}
for word in string.gmatch([[
auto break case char const continue default do double else enum extern float for goto if inline int long register restrict
return short signed sizeof static struct switch typedef union unsigned void volatile while asm typeof bool true false
alignas alignof constexpr nullptr static_assert thread_local noreturn complex linux unix i386 errno stdin stdout stderr
inputs outputs status place placed done given r k constants rows names descriptions start starting ready depth fail_at print put
put_tensor element same_nan show main read_constant open_archive make_constant
]], "%S+") do
    TAKEN[word] = true
end

-- What the C library calls something else, and compilers know.
local LIBRARY = {}
for word in string.gmatch([[
abort abs acos acosh asin asinh atan atan2 atanh atof atoi atol bcmp bcopy bzero calloc cbrt ceil clock connect copysign cos
cosh div erf erfc exit exp exp2 expm1 fabs fclose fdim ffs floor fma fmax fmin fmod fopen fork fprintf fputs free frexp fscanf
fwrite gamma getc getenv hypot ilogb index isalpha isdigit isinf isnan j0 j1 jn labs ldexp lgamma link listen log log10 log1p
log2 logb lrint lround malloc memchr memcmp memcpy memmove memset modf nan nearbyint open pipe pow printf putc putchar puts
qsort raise rand random read realloc remainder remove remquo rename rindex rint round scalb scalbn scanf select send signal
significand sin sincos sinh sleep snprintf socket sprintf sqrt srand sscanf strcat strchr strcmp strcpy strlen strncmp strncpy
strstr strtod strtol system tan tanh tgamma time trunc wait write y0 y1 yn
]], "%S+") do
    LIBRARY[word] = true
end

--- is_identifier(text): may C call a function of ours so?
function words.is_identifier(text)
    return string.find(text, "^[%a_][%w_]*$") and not string.find(text, "^td_") and not string.find(text, "^TD_")
        and not string.find(text, "^_") and not TAKEN[text] and not LIBRARY[text]
end

-- A name of a graph or of Lua as C may have it: x.1 is x, 5 is v5.
local function plain(text)
    local name = string.gsub(string.gsub(text, "%.%d+$", ""), "[^%w_]", "_")
    if string.find(name, "^[%d_]") or string.find(name, "^td_") or string.find(name, "^%u%u") or string.find(name, "^%u[%u%d_]*_") then
        name = "v" .. name
    end
    return TAKEN[name] and name .. "_" or name
end

--- function_name(text)
function words.function_name(text)
    local name = plain(text)
    return words.is_identifier(name) and name or name .. "_"
end

--- new_name(taken, text): one that is not in the set yet, where it is put.
function words.new_name(taken, text)
    local base = plain(text)
    local name, n = base, 1
    while taken[name] do
        n = n + 1
        name = base .. "_" .. n
    end
    taken[name] = true
    return name
end

-- ---- constants ----

function words.int(value)
    if value == math.mininteger then
        return "INT64_MIN"
    elseif value == math.maxinteger then
        return "INT64_MAX"
    end
    local text = math.abs(value) > 0x7fffffff and string.format("INT64_C(%d)", value) or string.format("%d", value)
    return value < 0 and "(" .. text .. ")" or text
end

function words.float(value)
    if value ~= value then
        return string.find(string.format("%f", value), "^-") and "(-(double)NAN)" or "(double)NAN"
    elseif value == math.huge or value == -math.huge then
        return value > 0 and "(double)INFINITY" or "(-(double)INFINITY)"
    end
    local text = code.number(value)
    return string.find(text, "^-") and "(" .. text .. ")" or text
end

function words.bool(value) return value and "true" or "false" end

--- string(text): between quotes.
function words.string(text)
    return '"' .. string.gsub(text, '[%z\1-\31"\\%?\127-\255]', function(c) return string.format("\\%03o", string.byte(c)) end) .. '"'
end

local DTYPES = { bool = "BOOL", uint8 = "U8", int8 = "I8", int16 = "I16", int32 = "I32", int64 = "I64", float16 = "F16",
    bfloat16 = "BF16", float32 = "F32", float64 = "F64" }

--- dtype(name): nil: that of quantized tensors, which operators don't take.
function words.dtype(name)
    local dtype = DTYPES[string.match(name, "%w+$")]
    return dtype and "TD_" .. dtype
end

--- device(name): nil: one that C written here does not know.
function words.device(name)
    local kind, index = string.match(name, "^(%a+):?(%d*)$")
    local types = { cpu = "TD_CPU", cuda = "TD_CUDA", meta = "TD_META" }
    return types[kind] and string.format("((td_device){%s, %d})", types[kind], tonumber(index) or 0)
end

-- ---- operators ----

-- By name and the kinds of the operands: a format of these. All have Lua's meaning: ints wrap, `/` gives floats. What is no
-- single expression (// and %, which may fail; comparisons of an int with a float, which are exact) is the engine's.
local expressions = {}

for name, sign in pairs { add = "+", sub = "-", mul = "*" } do
    expressions[name .. " int int"] = "(int64_t)((uint64_t)%s " .. sign .. " (uint64_t)%s)"
    expressions[name .. " float float"] = "%s " .. sign .. " %s"
    expressions[name .. " int float"] = "(double)%s " .. sign .. " %s"
    expressions[name .. " float int"] = "%s " .. sign .. " (double)%s"
end
for a, left in pairs { int = "(double)%s", float = "%s" } do
    for b, right in pairs { int = "(double)%s", float = "%s" } do
        expressions[string.format("div %s %s", a, b)] = left .. " / " .. right
    end
end
for name, sign in pairs { eq = "==", ne = "!=", lt = "<", le = "<=", gt = ">", ge = ">=" } do
    expressions[name .. " int int"] = "%s " .. sign .. " %s"
    expressions[name .. " float float"] = "%s " .. sign .. " %s"
end
for name, sign in pairs { eq = "==", ne = "!=", __and__ = "&&", __or__ = "||", __xor__ = "!=" } do
    expressions[name .. " bool bool"] = "%s " .. sign .. " %s"
end
for name, sign in pairs { __and__ = "&", __or__ = "|", __xor__ = "^" } do
    expressions[name .. " int int"] = "%s " .. sign .. " %s"
end
expressions["neg int"] = "(int64_t)(0 - (uint64_t)%s)"
expressions["neg float"] = "-%s"
expressions["bitwise_not int"] = "~%s"
expressions["__not__ bool"] = "!%s"
expressions["Float int"] = "(double)%s"
expressions["Float float"] = "%s"
expressions["Int int"] = "%s"
expressions["Bool bool"] = "%s"
expressions["Bool int"] = "%s != 0"
expressions["Bool float"] = "%s != 0.0"

--- expression(name, kinds): a format with a place for each operand; nil: there is none.
function words.expression(name, kinds) return expressions[name .. " " .. table.concat(kinds, " ")] end

return words
