-- test_places.lua: places of nonzero elements, picks and puts by labels, running extremes and ranks against loops over
-- the elements, for shapes whose lines are short, long, and cut into parts.
local t = require "harness"
local F = tide.nn.functional

local dtypes = { tide.bool, tide.uint8, tide.int16, tide.float32, tide.bfloat16, tide.int64, tide.float64 }

-- Row by row, the places of a table of tables that are not 0.
local function places_of(values, at, found)
    if type(values) ~= "table" then
        if values ~= 0 and values ~= false then
            found[#found + 1] = at
        end
        return found
    end
    for k, v in ipairs(values) do
        local here = table.move(at, 1, #at, 1, {})
        here[#here + 1] = k
        places_of(v, here, found)
    end
    return found
end

t.test("nonzero_finds_what_a_loop_finds", function()
    tide.manual_seed(91)
    local shapes = {
        { 1 }, { 7 }, { 1024 }, { 1025 }, { 3000 }, { 40, 1 }, { 1, 40 }, { 3, 1500 }, { 5, 4, 3 }, { 2, 3, 2, 5 },
    }
    for _, shape in ipairs(shapes) do
        for _, dtype in ipairs(dtypes) do
            for _, share in ipairs { 0, 0.1, 0.5, 1 } do
                local x = tide.rand(shape):lt(share):to(dtype)
                local want = places_of(x:tolist(), {}, {})
                t.eq(x:nonzero():tolist(), want, tostring(dtype) .. " " .. table.concat(shape, "x") .. " " .. share)
                t.eq(x:count_nonzero():item(), #want)
            end
        end
    end
    t.eq(tide.tensor({ -0.0, 0 / 0, 5e-324, 0 }, { dtype = tide.float64 }):nonzero():tolist(), { { 2 }, { 3 } })
    t.eq(tide.zeros(3, 0):nonzero().shape, { 0, 2 })
    t.eq(tide.tensor(3.5):nonzero().shape, { 1, 0 })
    t.eq(tide.rand(4, 5):t():gt(2):nonzero().shape, { 0, 2 })
end)

t.test("masks_and_runs_go_by_those_places", function()
    tide.manual_seed(92)
    local x, mask = tide.rand(3000), tide.rand(3000):lt(0.4)
    local source = tide.arange(3000):float()
    local got, n = tide.masked_scatter(x, mask, source):tolist(), 0
    local xs, masks = x:tolist(), mask:tolist()
    for k = 1, 3000 do
        n = n + (masks[k] and 1 or 0)
        xs[k] = masks[k] and source[n]:item() or xs[k]
    end
    t.eq(got, xs)
    local whole = tide.randint(1, 4, { 3000 })
    local runs, lengths = {}, {}
    for _, v in ipairs(whole:tolist()) do
        if v ~= runs[#runs] then
            runs[#runs + 1], lengths[#lengths + 1] = v, 0
        end
        lengths[#lengths] = lengths[#lengths] + 1
    end
    local values, inverse, counts = tide.unique_consecutive(whole, { return_inverse = true, return_counts = true })
    t.eq(values:tolist(), runs)
    t.eq(counts:tolist(), lengths)
    t.is_true(tide.equal(values[inverse], whole))
end)

t.test("one_label_for_each_row", function()
    tide.manual_seed(93)
    for _, shape in ipairs { { 1, 6 }, { 50, 6 }, { 4, 5, 6 } } do
        local x = tide.rand(shape)
        local rows = x:numel() // 6
        local labels = tide.randint(1, 7, { rows })
        local flat, want = x:reshape(rows, 6):tolist(), {}
        local index = labels:reshape(table.unpack(shape, 1, #shape - 1)):unsqueeze(-1)
        for k, label in ipairs(labels:tolist()) do
            want[k] = flat[k][label]
        end
        t.eq(x:gather(-1, index):flatten():tolist(), want)
        local put = tide.zeros(shape):scatter(-1, index, 1)
        t.is_true(tide.equal(put:sum(-1), tide.ones(shape):sum(-1) / 6))
        t.is_true(tide.equal(put:argmax(-1):flatten(), labels))
        t.eq(tide.zeros(shape):scatter_add(-1, index, tide.full(index.shape, 2.5)):sum():item(), 2.5 * rows)
        t.is_true(tide.equal(tide.nn.functional.one_hot(labels, 6):float(), put:reshape(rows, 6)))
    end
    local x = tide.rand(5, 3)
    t.error_has(function() return x:gather(2, tide.tensor { { 1 }, { 2 }, { 4 }, { 1 }, { 1 } }) end,
        "index 4 is out of range for dim 2 of size 3")
    t.error_has(function() return x:scatter(2, tide.tensor { { 1 }, { 2 }, { 3 }, { -4 }, { 1 } }, 1) end,
        "index -4 is out of range for dim 2 of size 3")
    t.eq(x:gather(2, tide.tensor { { -1 }, { -3 }, { 1 }, { 2 }, { -2 } }):flatten():tolist(),
        { x[1][3]:item(), x[2][1]:item(), x[3][1]:item(), x[4][2]:item(), x[5][2]:item() })
    local classes = tide.tensor { 1, 3, 3, 1, 1 }
    t.eq(tide.bincount(classes):tolist(), tide.bincount(classes, tide.ones(5)):tolist())
    local many = tide.randint(1, 38, { 5000 })
    local counts, want = tide.bincount(many, nil, 40):tolist(), {}
    for k = 1, 40 do
        want[k] = many:eq(k):sum():item()
    end
    t.eq(counts, want)
    t.eq(tide.bincount(many:to(tide.uint8)):numel(), many:max():item())
    t.eq(tide.zeros(3):scatter_add(1, many % 3 + 1, tide.ones(1):expand(5000)):sum():item(), 5000)
end)

-- Running extremes of a line by a loop: the last of equals, and NaN from the first on, each where it stands.
local function running(line, better)
    local values, places = {}, {}
    local best, place
    for k, v in ipairs(line) do
        if not best or v ~= v or (best == best and (better(v, best) or v == best)) then
            best, place = v, k
        end
        values[k], places[k] = best, place
    end
    return values, places
end

t.test("running_extremes_along_any_dim", function()
    tide.manual_seed(94)
    local function greater(a, b) return a > b end
    local function less(a, b) return a < b end
    for _, dtype in ipairs { tide.float32, tide.float64, tide.float16, tide.bfloat16, tide.int16, tide.int32, tide.int64, tide.uint8 } do
        for _, shape in ipairs { { 9, 8 }, { 70, 70 }, { 5, 300 }, { 2, 1100 }, { 2, 6, 10 }, { 3, 7, 1, 4, 3 }, { 1, 20 } } do
            local x = tide.randint(0, 9, shape):to(dtype)
            if dtype == tide.float32 or dtype == tide.bfloat16 then
                x:masked_fill_(tide.rand(shape):lt(0.03), 0 / 0)
            end
            local turned = x:transpose(1, -1):contiguous():transpose(1, -1)
            for dim = 1, #shape do
                for name, better in pairs { cummax = greater, cummin = less } do
                    local values, places = tide[name](x, dim)
                    local same, same_places = tide[name](turned, dim)
                    t.is_true(tide.equal(same:nan_to_num(-77), values:nan_to_num(-77)) and tide.equal(same_places, places))
                    local n = shape[dim]
                    local lines = x:movedim(dim, -1):reshape(-1, n):tolist()
                    local got = values:movedim(dim, -1):reshape(-1, n):nan_to_num(-77):tolist()
                    local at = places:movedim(dim, -1):reshape(-1, n):tolist()
                    for k, line in ipairs(lines) do
                        local want, stands = running(line, better)
                        for i, v in ipairs(want) do
                            want[i] = v == v and v or -77
                        end
                        t.eq(got[k], want, name)
                        t.eq(at[k], stands, name)
                    end
                end
            end
        end
    end
end)

t.test("every_rank_of_lines_with_many_equals", function()
    tide.manual_seed(95)
    for _, n in ipairs { 1, 2, 12, 13, 14, 40, 333 } do
        for _, most in ipairs { 2, 5, 1000000 } do
            local x = tide.randint(0, most, { 6, n }):float()
            local sorted = x:sort(2)
            for _, rank in ipairs { 1, (n + 1) // 2, n, 1 + n // 3 } do
                t.is_true(tide.equal(x:kthvalue(rank, 2), sorted[{ {}, rank }]), n .. ", " .. rank)
                t.is_true(tide.equal(x:topk(rank, 2, false), sorted[{ {}, { 1, rank } }]), n .. ", " .. rank)
            end
            t.is_true(tide.equal(x:median(2), sorted[{ {}, (n + 1) // 2 }]))
        end
    end
end)

t.test("places_in_sequences_of_any_length", function()
    tide.manual_seed(96)
    for _, n in ipairs { 1, 2, 3, 7, 8, 33, 100 } do
        local sequence = tide.randint(0, 50, { n }):sort(1)
        local values = tide.randint(-5, 60, { 83 })
        local left = tide.searchsorted(sequence, values):tolist()
        local right = tide.searchsorted(sequence, values, { right = true }):tolist()
        local all = sequence:tolist()
        for k, v in ipairs(values:tolist()) do
            local less, atmost = 0, 0
            for _, s in ipairs(all) do
                less = less + (s < v and 1 or 0)
                atmost = atmost + (s <= v and 1 or 0)
            end
            t.eq({ left[k], right[k] }, { less + 1, atmost + 1 })
        end
        for _, dtype in ipairs { tide.float32, tide.float64, tide.bfloat16, tide.float16, tide.int32 } do
            local s, v = sequence:to(dtype), values:to(dtype)
            t.eq(tide.searchsorted(s, v, { out_int32 = true }):tolist(), left, tostring(dtype))
            t.eq(tide.searchsorted(s, v, { right = true }):tolist(), right, tostring(dtype))
        end
    end
end)

-- Windows that overlap put many ones at one place: 256 is where a sum of ones in bfloat16 stops, 2048 that of float16.
t.test("overlapping_windows_are_added_up_wider_than_16_bits", function()
    for _, case in ipairs { { tide.bfloat16, 600, 30 }, { tide.float16, 4096, 64 } } do
        local dtype, n, side = table.unpack(case)
        local function most(shape, f)
            local x = tide.ones(shape, { dtype = dtype }):requires_grad_()
            f(x):sum():backward()
            return x.grad:double():amax():item()
        end
        t.eq(most({ 2 * n }, function(x) return x:unfold(1, n, 1) end), n + 0.0)
        t.eq(most({ 2, 2 * n }, function(x) return x:t():unfold(1, n, 1) end), n + 0.0)
        t.eq(most({ 1, 1, 2 * side, 2 * side }, function(x) return F.unfold(x, side) end), side * side + 0.0)
        t.eq(most({ 2 }, function(x) return x:as_strided({ n }, { 0 }) end), n + 0.0)
        local columns = tide.ones(1, side * side, (side + 1) ^ 2 // 1 | 0, { dtype = dtype })
        t.eq(F.fold(columns, 2 * side, side):double():amax():item(), side * side + 0.0)
    end
end)
