-- test_bases.lua: counting from 1, asked of every operator. Whatever the schema marks as a dim, an index or
-- a class refuses 0 and what lies beyond the end, and takes negative numbers from the end; results that
-- are indices count from 1 too. Arguments are those of the golden cases.
local t = require "harness"
local golden = require "golden"

local cases = golden.cases()

-- What the schema marks: { name = "dim" | "index" | "tensor" }. Results stand after the arrow.
local function marks(op)
    local found = {}
    local parameters = op.signature:gsub("%->.*", "")
    for kind, name in parameters:gmatch("([%a%[%]%?| ]+) ([%w_]+)") do
        kind = kind:gsub("^ +", "")
        if kind == "index Tensor" or kind == "class Tensor" then
            found[name] = "tensor"
        elseif kind:match("^dim%[?%]?%??$") then
            found[name] = "dim"
        elseif kind:match("^index%??$") then
            found[name] = "index"
        end
    end
    return found
end

-- Kept by hand, so that a mark that is lost is noticed: operators by what they count from 1.
local counted = {
    dim = [[sum nansum mean prod var std amax amin max min argmax argmin any all count_nonzero norm logsumexp
        cumsum softmax log_softmax flatten unflatten permute transpose movedim squeeze unsqueeze select slice
        narrow unbind chunk split cat stack flip roll index_select index_add index_copy index_fill gather
        scatter scatter_add sort argsort topk kthvalue median nanmedian mode cumprod cummax cummin logcumsumexp
        unique unique_consecutive quantile nanquantile aminmax var_mean std_mean renorm diff trapezoid
        cumulative_trapezoid normalize cosine_similarity
        diagonal diag_embed unfold rot90 repeat_interleave tensor_split cross scatter_reduce
        index_reduce take_along_dim select_scatter slice_scatter tensordot linalg_cross linalg_vecdot]],
    index = [[select slice narrow cross_entropy nll_loss embedding embedding_bag ctc_loss select_scatter
        slice_scatter]],
    tensor = [[index_select index_add index_copy index_fill take embedding gather scatter scatter_add
        cross_entropy nll_loss one_hot bincount embedding_bag ctc_loss multi_margin_loss
        multilabel_margin_loss scatter_reduce index_reduce put take_along_dim]],
}

-- The place of a parameter in a case: its number among the positional arguments, or its name.
local function value_at(case, op, name)
    for k, param in ipairs(op.params) do
        if param == name and case.a[k] ~= nil then
            return case.a[k], k
        end
    end
    return case.o and case.o[name], nil
end

local function call_with(op, case, name, position, value)
    local args = golden.arguments(case)
    if position then
        args[position] = value
    else
        args[args.n][name] = value
    end
    if op.inplace_only then
        args[1] = args[1]:clone()
    end
    return golden.call(op, args)
end

local function refused(op, case, name, position, value, text)
    t.error_has(function() call_with(op, case, name, position, value) end, text)
end

-- nan is no reason to differ here.
local function plain(x)
    return x.dtype.is_floating_point and tide.where(x:isnan(), 0, x) or x
end

local function same(got, want)
    t.eq(#got, #want, "results")
    for k, x in ipairs(want) do
        t.is_true(tide.equal(plain(got[k]), plain(x)), "result " .. k)
    end
end

-- Their results have a dim more than what they are given.
local one_more = { unsqueeze = true, stack = true, diag_embed = true }

-- How many a dim or an index may count to.
local function extent(op, case, kind)
    local x = case.a[op.name == "tensordot" and 2 or 1]
    x = x.t and x or x[1] -- cat and stack take a list
    local dims = #x.s
    if kind == "dim" then
        return one_more[op.name] and dims + 1 or math.max(dims, 1)
    end
    local dim = math.tointeger((value_at(case, op, "dim"))) or 1
    return x.s[dim < 0 and dims + dim + 1 or dim]
end

local function each_case(op, name, visit)
    local seen = 0
    for _, case in ipairs(cases[op.name] or {}) do
        local value, position = value_at(case, op, name)
        if value ~= nil and value ~= require "json".null then
            seen = seen + 1
            visit(case, value, position)
        end
    end
    if op.family ~= "quantized" then -- whose golden values are tests/golden/quantization
        t.is_true(seen > 0, "a golden case that gives " .. name)
    end
end

local function check_number(op, name, kind)
    each_case(op, name, function(case, value, position)
        if math.type(value) ~= "integer" then
            return
        end
        refused(op, case, name, position, 0, "count from 1")
        if name == "ignore_index" then
            return -- any other number is one
        end
        local n = extent(op, case, kind)
        if name ~= "start" or not op.name:find("^slice") and case.a[4] ~= 0 then -- an empty part may start at the end
            refused(op, case, name, position, n + 1, op.name .. ": ")
            refused(op, case, name, position, -n - 1, op.name .. ": ")
        end
        same(call_with(op, case, name, position, value > 0 and value - n - 1 or value + n + 1),
            golden.call(op, golden.arguments(case)))
    end)
end

local function check_list(op, name)
    each_case(op, name, function(case, value, position)
        if type(value) ~= "table" or #value == 0 then
            return
        end
        local n = extent(op, case, "dim")
        for k, dim in ipairs(value) do
            local list = { table.unpack(value) }
            list[k] = 0
            refused(op, case, name, position, list, "count from 1")
            list[k] = n + 1
            refused(op, case, name, position, list, op.name .. ": ")
            list[k] = dim > 0 and dim - n - 1 or dim + n + 1
            same(call_with(op, case, name, position, list), golden.call(op, golden.arguments(case)))
        end
    end)
end

local function check_tensor(op, name)
    each_case(op, name, function(case, value, position)
        local index = golden.tensor(value)
        if index:numel() == 0 then
            return
        end
        for _, wrong in ipairs { 0, 1000, -1000 } do
            local changed = index:clone()
            changed:view(-1)[-1] = wrong
            local any = op.name == "bincount" or op.name == "sparse_coo_tensor" and type(case.a[3]) ~= "table" or op.name == "one_hot" and #case.a == 1
            if not (any and wrong == 1000) then
                refused(op, case, name, position, changed, op.name .. ": ")
            end
        end
    end)
end

for _, op in ipairs(tide._ops()) do
    if not op.internal then
        for name, kind in pairs(marks(op)) do
            t.test(("%s_%s_counts_from_1"):format(op.name, name), function()
                if kind == "tensor" then
                    check_tensor(op, name)
                else
                    check_number(op, name, kind)
                    check_list(op, name)
                end
            end)
        end
    end
end

for kind, names in pairs(counted) do
    t.test("operators_whose_" .. kind .. "_counts_from_1_say_so", function()
        local found = {}
        for _, op in ipairs(tide._ops()) do
            for _, mark in pairs(op.internal and {} or marks(op)) do
                found[op.name] = found[op.name] or mark == kind
            end
        end
        for name in names:gmatch("%S+") do
            t.is_true(found[name], name)
        end
    end)
end

-- ---- results ----

t.test("indices_that_come_back_count_from_1", function()
    local x = tide.tensor { { 3, 1, 2 }, { 9, 8, 7 } }
    local _, at = x:max(2)
    t.eq(at:tolist(), { 1, 1 })
    _, at = x:max(1)
    t.eq(at:tolist(), { 2, 2, 2 })
    _, at = x:min(2)
    t.eq(at:tolist(), { 2, 3 })
    t.eq(x:argmax():item(), 4)
    t.eq(x:argmin():item(), 2)
    t.eq(x:argmax(1):tolist(), { 2, 2, 2 })
    t.eq(x:argmin(2, { keepdim = true }):tolist(), { { 2 }, { 3 } })
    t.eq(x:gt(2):nonzero():tolist(), { { 1, 1 }, { 2, 1 }, { 2, 2 }, { 2, 3 } })
    t.eq(tide.randperm(1):tolist(), { 1 })
    local sorted = {}
    for _, v in ipairs(tide.randperm(50):tolist()) do
        sorted[v] = true
    end
    t.eq(#sorted, 50, "randperm(50) has each of 1 to 50")
end)

t.test("what_comes_back_is_taken_again", function()
    local x = tide.tensor { { 3, 1, 2 }, { 9, 8, 7 } }
    local values, at = x:max(2, { keepdim = true })
    t.is_true(x:gather(2, at) == values)
    t.is_true(x:take(x:argmin()):item() == 1)
    t.is_true(x[x:argmax(1)[1]] == x[2])
end)
