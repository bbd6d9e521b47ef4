-- testing.lua: tide.testing: values that tests expect to be near enough, by PyTorch's tolerances.
local tide = ...
local fail, declare = tide._fail, tide._function
local testing = {}

-- Of a dtype: how far from the expected value, as a share of it and in all; dtypes that are not here are exact.
local RELATIVE = { float16 = 1e-3, bfloat16 = 1.6e-2, float32 = 1.3e-6, float64 = 1e-7 }
local ABSOLUTE = { float16 = 1e-5, bfloat16 = 1e-5, float32 = 1e-5, float64 = 1e-7 }

local function name_of(dtype) return string.match(tostring(dtype), "[^.]+$") end

local function tolerances(a, b, options)
    if options.rtol then
        return options.rtol, options.atol
    end
    local relative, absolute = 0, 0
    for _, dtype in ipairs { a, b } do
        relative, absolute = math.max(relative, RELATIVE[dtype] or 0), math.max(absolute, ABSOLUTE[dtype] or 0)
    end
    return relative, absolute
end

-- "[2, 1]": the place of the k-th element (from 1) of a tensor.
local function place_of(x, k)
    local places, rest = {}, k - 1
    for d = x:dim(), 1, -1 do
        places[d], rest = rest % x.shape[d] + 1, rest // x.shape[d]
    end
    return "[" .. table.concat(places, ", ") .. "]"
end

local function largest(x, differences, allowed)
    local flat = differences:nan_to_num(math.huge, math.huge, math.huge):reshape(-1)
    local k = flat:argmax():item()
    return string.format("%.6g at %s (%g allowed)", flat[k]:item(), place_of(x, k), allowed)
end

local function check(condition, path, options, text, ...)
    if not condition then
        local message = path .. string.format(text, ...)
        fail("assert_close: %s", options.msg and options.msg .. ": " .. message or message)
    end
end

local function compare_tensors(actual, expected, path, options)
    check(actual.shape == expected.shape, path, options, "the shapes are %s and %s", tostring(actual.shape), tostring(expected.shape))
    check(not options.check_dtype or actual.dtype == expected.dtype, path, options, "the dtypes are %s and %s", tostring(actual.dtype),
        tostring(expected.dtype))
    check(not options.check_device or tostring(actual.device) == tostring(expected.device), path, options, "the devices are %s and %s",
        tostring(actual.device), tostring(expected.device))
    check(not options.check_stride or tide.tensor(actual:stride()):equal(tide.tensor(expected:stride())), path, options, "the strides differ")
    local relative, absolute = tolerances(name_of(actual.dtype), name_of(expected.dtype), options)
    local function comparable(x)
        x = x:detach():cpu()
        x = x.is_sparse and x:to_dense() or x
        return x:is_floating_point() and x:double() or x.dtype == tide.bool and x:long() or x
    end
    local x, y = comparable(actual), comparable(expected)
    local exact = relative == 0 and absolute == 0
    local same = x:eq(y)
    if not exact then
        same = tide.isclose(x:double(), y:double(), { rtol = relative, atol = absolute, equal_nan = options.equal_nan })
    elseif options.equal_nan and x:is_floating_point() then
        same = same:logical_or(x:isnan():logical_and(y:isnan()))
    end
    local wrong = x:numel() - same:sum():item()
    if wrong > 0 then
        local off = (x:double() - y:double()):abs():masked_fill(same, 0)
        check(false, path, options, "%d of %d elements differ (%.1f %%); the largest difference is %s, the largest share of what is expected %s",
            wrong, x:numel(), 100 * wrong / x:numel(), largest(x, off, absolute), largest(x, (off / y:double():abs()):masked_fill(same, 0), relative))
    end
end

local compare

local function compare_tables(actual, expected, path, options)
    for key, value in pairs(expected) do
        local inner = string.format("%s[%s]", string.gsub(path, ": $", ""), type(key) == "string" and string.format("%q", key) or tostring(key))
        check(actual[key] ~= nil, inner .. ": ", options, "it is missing")
        compare(actual[key], value, inner .. ": ", options)
    end
    for key in pairs(actual) do
        check(expected[key] ~= nil, path, options, "%s is not expected", tostring(key))
    end
end

function compare(actual, expected, path, options)
    if tide.is_tensor(actual) and tide.is_tensor(expected) then
        return compare_tensors(actual, expected, path, options)
    elseif math.type(actual) and math.type(expected) then
        local exact = math.type(actual) == "integer" and math.type(expected) == "integer"
        local relative, absolute = tolerances(exact and "int64" or "float64", "int64", options)
        local close = actual == expected or math.abs(actual - expected) <= absolute + relative * math.abs(expected)
            or options.equal_nan and actual ~= actual and expected ~= expected
        return check(close, path, options, "%s is not near %s (%s allowed, or %s of it)", tide._number(actual), tide._number(expected),
            tide._number(absolute), tide._number(relative))
    elseif type(actual) == "table" and type(expected) == "table" then
        return compare_tables(actual, expected, path, options)
    end
    check(actual == expected, path, options, "%s is not %s", tide._describe(actual), tide._describe(expected))
end

testing.assert_close = declare("assert_close(any actual, any expected, *, number(0..)? rtol=nil, number(0..)? atol=nil, bool equal_nan=false, "
    .. "bool check_device=true, bool check_dtype=true, bool check_stride=false, str? msg=nil)",
    "Fail unless tensors, numbers, or tables of such are near each other: |actual - expected| <= atol + rtol * |expected|. Both are given or "
    .. "neither: then they are the dtype's, 1.3e-6 and 1e-5 of float32, 1e-7 of float64, 1e-3 and 1e-5 of float16, 0.016 and 1e-5 of "
    .. "bfloat16, 0 of others.", function(actual, expected, rtol, atol, equal_nan, check_device, check_dtype, check_stride, msg)
        if (rtol == nil) ~= (atol == nil) then
            fail("assert_close: rtol and atol are given both, or neither")
        end
        compare(actual, expected, "", { rtol = rtol, atol = atol, equal_nan = equal_nan, check_device = check_device, check_dtype = check_dtype,
            check_stride = check_stride, msg = msg })
    end)

tide._document(testing, "testing", "tide.testing", "assert_close: values that are near enough, in tests.")

return testing
