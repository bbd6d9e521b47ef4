-- test_help.lua: what help says of operators is there and is true: the shapes of every sample's results follow from the
-- text of shapes, what dtypes are taken and given is what the text of dtypes says.
local t = require "harness"
local golden = require "golden"
local here = debug.getinfo(1, "S").source:match("^@(.*)/") or "."
local walk = dofile(here .. "/walk.lua")
local texts = dofile(here .. "/shape_texts.lua")
local calls = assert(loadfile(here .. "/shape_calls.lua"))(texts)
local words = dofile(here .. "/shape_words.lua")

local public = {}
for _, op in ipairs(walk.ops) do
    if not op.internal then
        public[#public + 1] = op
    end
end

-- ---- shapes ----

-- What has another shape than the result of the same number: a size more in one dim, or a dim more.
local function changed(results)
    local variants = {}
    for k = 1, results.n do
        local list = type(results[k]) == "table" and not tide.is_tensor(results[k]) and results[k]
        local x = list and list[1] or results[k]
        for d = 0, tide.is_tensor(x) and x.ndim or -1 do
            local sizes = { table.unpack(x.shape) }
            if d == 0 then
                table.insert(sizes, 1, 2)
            else
                sizes[d] = sizes[d] + 1
            end
            local other = tide.empty(sizes, { device = "meta" })
            local all = { n = results.n, table.unpack(results, 1, results.n) }
            all[k] = list and { other, table.unpack(list, 2) } or other
            variants[#variants + 1] = all
        end
    end
    return variants
end

for _, op in ipairs(public) do
    t.test(op.name .. "_says_its_shapes", function()
        t.is_true(op.shapes, "no text of shapes")
        local known, n = texts.parse(op.shapes), 0
        local meanings = words[op.name] or {}
        calls.check_names(op, known)
        for _, sample in ipairs(walk.samples[op.name] or {}) do
            local args = walk.arguments(sample, tide.float32)
            local ok, results = pcall(walk.call, op, args)
            if ok then
                n = n + 1
                calls.check(op, known, args, results, meanings)
                for _, other in ipairs(changed(results)) do
                    t.is_false(pcall(calls.check, op, known, args, other, meanings), "holds for any shape: " .. op.shapes)
                end
            end
        end
        t.is_true(n > 0, "no sample")
    end)
end

-- ---- functions that are written in Lua ----

local function x(...) return tide.rand(...) end
local linalg, F = tide.linalg, tide.nn.functional
local functions = {
    { linalg.matrix_norm, { x(2, 3, 4) }, { x(2, 3, 4), 2, { 1, 3 }, true } },
    { linalg.vector_norm, { x(2, 3) }, { x(2, 3), 2, 1 } },
    { linalg.norm, { x(2, 3), "fro" }, { x(2, 3, 4), { dim = 2, keepdim = true } } },
    { linalg.cond, { x(2, 3, 3) }, { x(3, 2) } },
    { linalg.lstsq, { x(4, 2), x(4, 3) }, { x(2, 4, 2), x(2, 4, 3), { driver = "gelsd" } }, { x(2, 4, 2), x(2, 4), { driver = "gels" } } },
    { linalg.tensorinv, { tide.eye(6):reshape(2, 3, 6), 2 } },
    { linalg.tensorsolve, { tide.eye(6):reshape(2, 3, 6), x(2, 3) } },
    { F.embedding, { tide.tensor { { 1, 2 } }, x(3, 4) } },
    { F.embedding_bag, { tide.tensor { { 1, 2 } }, x(3, 4) }, { tide.tensor { 1, 2, 3 }, x(3, 4), tide.tensor { 1, 3 } } },
    { F.ctc_loss, { x(5, 2, 4):log_softmax(3), tide.ones(2, 3):long(), { 5, 5 }, { 1, 1 } } },
    { F.softmin, { x(2, 3), 1 } },
    { F.gumbel_softmax, { x(2, 3) } },
    { F.triplet_margin_with_distance_loss, { x(2, 3), x(2, 3), x(2, 3), { reduction = "none" } } },
    { F.pdist, { x(5, 3) } },
    { F.alpha_dropout, { x(2, 3) } },
    { F.feature_alpha_dropout, { x(2, 3, 4) } },
    { F.dropout1d, { x(2, 3, 4) } },
    { F.dropout2d, { x(2, 3, 4, 5) } },
    { F.dropout3d, { x(2, 3, 4, 5, 6) } },
    { F.fractional_max_pool2d, { x(2, 4, 9, 8), 2, { output_size = 3 } }, { x(4, 9, 8), 2, { output_ratio = 0.5 } } },
    { F.fractional_max_pool3d, { x(2, 4, 9, 8, 7), 2, { output_ratio = { 0.5, 0.4, 0.6 } } } },
}

local shown = {}
for _, row in ipairs(functions) do
    local doc = tide._doc(row[1])
    shown[row[1]] = true
    t.test(doc.name .. "_in_Lua_says_its_shapes", function()
        local known = texts.parse(doc.shapes)
        for k = 2, #row do
            calls.check(doc, known, row[k], table.pack(row[1](table.unpack(row[k]))), {})
        end
    end)
end

t.test("functions_of_tensors_in_lua_say_their_shapes", function()
    for _, room in ipairs { linalg, F } do
        for name, fn in pairs(room) do
            local doc = type(fn) == "function" and tide._doc(fn)
            if doc and not doc.family and doc.signature:find "Tensor" then
                t.is_true(shown[fn], name .. " has no text of shapes, or no sample")
            end
        end
    end
end)

-- ---- dtypes ----

local DTYPES = { "float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool" }
local SETS = {
    any = DTYPES, floating = { table.unpack(DTYPES, 1, 4) }, integers = { table.unpack(DTYPES, 5, 9) },
}

for _, dtype in ipairs(DTYPES) do
    SETS[dtype] = { dtype }
end

-- "floating, int64 and bool" as a set; nil of other words.
local function read_set(text)
    local set = {}
    for word in text:gsub(" and ", ", "):gmatch "[^,]+" do
        word = word:match "^%s*(.-)%s*$"
        if not SETS[word] then
            return nil
        end
        for _, dtype in ipairs(SETS[word]) do
            set[dtype] = true
        end
    end
    return set
end

-- {takes = set, mixing = "promoted"|"one dtype"|nil, counts = {dtype = result's}, result = dtype}.
local function read_dtypes(text)
    local said = { counts = {} }
    for clause in (text .. "; "):gmatch "(.-); " do
        local head, mixing = clause:match "^(.*), (promoted)%f[%A]"
        if not head then
            head, mixing = clause:match "^(.*), (one dtype)"
        end
        local set, counted = clause:gsub("gives?", "counts as"):match "^(.*) counts? as (%w+)$"
        if set then
            for dtype in pairs(read_set(set)) do
                said.counts[dtype] = counted
            end
        elseif clause:find "^the result is %w+$" then
            said.result = clause:match "%w+$"
        elseif not said.takes then
            said.takes, said.mixing = read_set(head or clause), mixing
        end
    end
    return said
end

-- The tensors among the arguments that are neither indices nor classes, each with its place.
local function operands_of(op, args)
    local list = {}
    for k = 1, args.n or #args do
        local name, a = op.params[k] or "", args[k]
        local in_list = type(a) == "table" and not tide.is_tensor(a) and a
        for key, x in walk.in_order(in_list or { a }) do
            name = type(key) == "string" and key or name
            local is_index = op.signature:find("[xs]s? Tensor[^ ]* " .. name .. "%f[^%w_]")
            if tide.is_tensor(x) and not is_index then
                list[#list + 1] = { x = x, at = in_list or args, key = in_list and key or k }
            end
        end
    end
    return list
end

-- The arguments of a sample whose operands can all be made of a dtype, and which no number or option gives another.
local function plain_arguments(op, sample, dtype)
    local made, args = pcall(walk.arguments, sample, tide[dtype])
    local function is_other(a)
        return math.type(a) == "float" and op.dtypes:find "promoted" or tostring(a):find "^tide%."
    end
    for k = 1, made and args.n or made and #args or 0 do
        local a = args[k]
        for _, x in walk.in_order(type(a) == "table" and not tide.is_tensor(a) and a or { a }) do
            if is_other(x) then
                return nil
            end
        end
    end
    local operands = made and operands_of(op, args) or {}
    for _, operand in ipairs(operands) do
        if operand.x.dtype ~= tide[dtype] then
            return nil
        end
    end
    return #operands > 0 and args or nil, operands
end

-- Is a call of PyTorch's golden cases taken, by dtype, or all samples; and the results of one.
local cases = golden.cases ".dtypes"
local function taken(op)
    local is_taken, results = {}, {}
    for _, entry in ipairs(cases[op.name] or {}) do
        if tide[entry.dtype] then
            local ok = pcall(function() return golden.call(op, golden.arguments(entry)) end)
            is_taken[entry.dtype] = is_taken[entry.dtype] or ok
        end
    end
    local all_taken = {}
    for _, dtype in ipairs(DTYPES) do
        for _, sample in ipairs(walk.samples[op.name] or {}) do
            local args = plain_arguments(op, sample, dtype)
            if args then
                local ok, got = pcall(walk.call, op, args)
                results[dtype] = ok and (results[dtype] or got) or results[dtype]
                all_taken[dtype] = ok and all_taken[dtype] ~= false
            end
        end
    end
    for dtype, ok in pairs(all_taken) do
        is_taken[dtype] = is_taken[dtype] or ok
    end
    return is_taken, results
end

-- Is the first result, if no index, of the dtype that the text says?
local function check_result_dtype(op, said, dtype, results)
    local x = results[1]
    x = type(x) == "table" and not tide.is_tensor(x) and x[1] or x
    if not tide.is_tensor(x) or x.is_quantized or op.signature:find "%-> index" then
        return
    end
    t.eq(x.dtype, tide[said.counts[dtype] or said.result or dtype], "of " .. dtype .. " comes, by '" .. op.dtypes .. "'")
end

-- Operands of two floating dtypes: promoted, or refused, as the text says.
local function check_mixing(op, said)
    for _, sample in ipairs(walk.samples[op.name] or {}) do
        local args, operands = plain_arguments(op, sample, "float32")
        for k = 2, args and #operands or 0 do
            local operand = operands[k]
            operand.at[operand.key] = operand.x:double()
            local ok, results = pcall(walk.call, op, args)
            operand.at[operand.key] = operand.x
            if said.mixing == "promoted" then
                t.is_true(ok, tostring(results[1] or results))
            elseif not ok then
                t.eq(said.mixing, "one dtype", "refuses float64 beside float32")
            end
        end
    end
end

for _, op in ipairs(public) do
    local has_tensors = op.signature:match("^[%w_]+(%b())"):gsub("Tensor%[?%]?%? out", ""):find "Tensor"
    if has_tensors then
        t.test(op.name .. "_says_its_dtypes", function()
            t.is_true(op.dtypes, "no text of dtypes")
            local said = read_dtypes(op.dtypes)
            local is_taken, results = taken(op)
            for _, dtype in ipairs(said.takes and DTYPES or {}) do
                if is_taken[dtype] ~= nil then
                    t.eq(is_taken[dtype], said.takes[dtype] or false, dtype .. " is taken, by '" .. op.dtypes .. "'")
                end
                if results[dtype] and said.takes[dtype] then
                    check_result_dtype(op, said, dtype, results[dtype])
                end
            end
            check_mixing(op, said)
        end)
    end
end

t.finish()
