-- test_dtypes.lua: every operator in every dtype: computed with PyTorch's values and result dtype, or refused
-- in one line that names operator and dtype. Where the two differ in what they take, the lists below say
-- so. A dtype that doesn't exist yet is passed over.
local t = require "harness"
local golden = require "golden"
local json = require "json"

local function sets(lists)
    local found = {}
    for dtypes, names in pairs(lists) do
        for name in names:gmatch("%S+") do
            found[name] = found[name] or {}
            for dtype in dtypes:gmatch("%S+") do
                found[name][dtype] = true
            end
        end
    end
    return found
end

-- PyTorch computes it, Tide refuses.
local refused = sets {
    ["int64"] = "local_response_norm",
    ["bool"] = "col2im",
}

-- PyTorch refuses, Tide computes.
local computed = sets {
    ["int8 int16 int32 int64 uint8"] = "max_pool1d adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d im2col",
    ["bool uint8 int8 int16 int32 int64"] = "max_unpool1d max_unpool2d max_unpool3d",
    ["float16"] = "add sub", -- of sparse tensors
    ["float16 bfloat16"] = "cdist avg_pool3d lp_pool3d multi_margin_loss multilabel_margin_loss linalg_vander log_ndtr ndtri erfcx zeta",
    ["uint8 int8 int16 int32 int64"] = "nanmean",
    ["bool"] = "argmax argmin nanmean mvlgamma poisson_nll_loss pad linalg_vander add square", -- the last two of sparse tensors
}

-- Tide gives another dtype or other values, on purpose.
local different = sets {
    ["uint8"] = "any all", -- bool for every dtype
}

local relative = { float16 = 2e-3, bfloat16 = 1.6e-2, float32 = 2e-6, float64 = 1e-12 }

local function tolerance_of(dtype)
    local r = relative[dtype] or 0
    return { relative = r, absolute = r, zeros = false }
end

local function listed(list, entry)
    return list[entry.op] and list[entry.op][entry.dtype] or false
end

-- Whether all dtypes that the entry speaks of exist.
local function is_there(entry)
    if not tide[entry.dtype] then
        return false
    end
    for _, r in ipairs(entry.r ~= json.null and entry.r or {}) do
        if type(r) == "table" and not tide[r.t] then
            return false
        end
    end
    return true
end

local function check_refusal(entry, message)
    t.is_false(message:find("\n", 1, true), "one line: " .. message)
    t.is_true(message:find(entry.op:gsub("_$", ""), 1, true), "names the operator: " .. message)
    t.is_true(message:find(entry.dtype, 1, true), "names the dtype: " .. message)
end

local function check_results(results, entry)
    t.eq(#results, #entry.r, "number of results")
    for k, want in ipairs(entry.r) do
        local got = results[k]
        if type(want) ~= "table" then
            t.eq(got, want)
        else
            t.eq(got.dtype, tide[want.t], "result dtype")
            t.eq(golden.shape_text(got.shape), golden.shape_text(want.s), "shape")
            t.eq(golden.compare(got, want.v, tolerance_of(want.t)), nil, "values")
        end
    end
end

local function check(op, entry)
    local args = golden.arguments(entry)
    local ok, results = pcall(golden.call, op, args)
    if entry.r == json.null then
        t.eq(ok, listed(computed, entry), "PyTorch refuses it; here it's computed")
    else
        local why = ok and "" or ": " .. tostring(results)
        t.eq(not ok, listed(refused, entry), "refused here, computed by PyTorch" .. why)
    end
    if not ok then
        check_refusal(entry, results)
    elseif entry.r ~= json.null and not listed(different, entry) then
        check_results(results, entry)
    end
end

local cases = golden.cases(".dtypes")
local known = {}
for _, op in ipairs(golden.operators()) do
    known[op.name] = true
    for _, entry in ipairs(cases[op.name] or {}) do
        if is_there(entry) then
            t.test(op.name .. "_of_" .. entry.dtype, function() check(op, entry) end)
        end
    end
end

-- ---- promotion ----

for _, entry in ipairs(golden.lines("promotion")) do
    local a, b = tide[entry.a], type(entry.b) == "string" and tide[entry.b]
    if a and (b and tide[entry.r] and tide[entry.dimless] or math.type(entry.b)) then
        t.test(("%s_plus_%s_is_%s"):format(entry.a, tostring(entry.b), entry.r), function()
            local x = tide.ones(2, { dtype = a })
            if not b then
                t.eq((x + entry.b).dtype, tide[entry.r])
                t.eq((entry.b + x).dtype, tide[entry.r])
                return
            end
            local y = tide.ones({}, { dtype = b })
            t.eq((x + y:expand(2)).dtype, tide[entry.r], "of two tensors")
            t.eq((x + y).dtype, tide[entry.dimless], "of one and one without dims")
            t.eq((y + x).dtype, tide[entry.dimless], "of one without dims and one")
        end)
    end
end

t.test("the_lists_name_operators_and_dtypes_of_the_grid", function()
    for _, list in ipairs { refused, computed, different } do
        for name, dtypes in pairs(list) do
            t.is_true(known[name], name)
            for dtype in pairs(dtypes) do
                local found = false
                for _, entry in ipairs(cases[name] or {}) do
                    found = found or entry.dtype == dtype
                end
                t.is_true(found, name .. " of " .. dtype)
            end
        end
    end
end)
