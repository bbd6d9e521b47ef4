-- test_cuts.lua: loops that are cut, whatever their parts are: what comes of a long tensor is what comes of its pieces,
-- which are shorter than any part. Lengths are no multiple of anything; elements are whole numbers, so that sums are exact.
local t = require "harness"

local F = tide.nn.functional
local N, PIECE = 264001, 997 -- beyond four times 65,536

local function long(n) return (tide.arange(n or N, { dtype = tide.float64 }) * 7919) % 1009 - 500 end

-- The pieces of a row, from the first to the last.
local function pieces(x)
    local list = {}
    for from = 1, x:size(1), PIECE do
        list[#list + 1] = x:narrow(1, from, math.min(PIECE, x:size(1) - from + 1))
    end
    return list
end

-- Three ways in which a row may lie: side by side, apart, and as one of several columns.
local layouts = {
    row = function(x) return x, function(y) return y end end,
    apart = function(x) return tide.stack({ x, -x }, 2):select(2, 1), function(y) return y end end,
    columns = function(x) return tide.stack({ x, x + 1, x * 2 }, 2), function(y) return y:select(2, 1) end end,
    lines = function(x) return tide.stack({ x, x + 1, x * 2 }, 2):t():contiguous():t(), function(y) return y:select(2, 1) end end,
}

local function each_layout(name, f)
    for layout, lay in pairs(layouts) do
        t.test(name .. "_in_" .. layout, function() f(lay) end)
    end
end

local function same(got, want, what)
    t.eq(got:size(1), want:size(1), what)
    if not tide.equal(got:double(), want:double()) then
        local at = got:double():ne(want:double()):nonzero()[1][1]:item()
        error(("%s: element %d is %s, expected %s"):format(what, at, got[at]:item(), want[at]:item()), 0)
    end
end

-- ---- scans: each piece goes on from what has come before ----

local scans = {
    cumsum = { long, function(x) return x:cumsum(1) end, function(a, y) return y + a end },
    cumprod = { function() return tide.where(long():gt(400), -1.0, 1.0) end, function(x) return x:cumprod(1) end,
        function(a, y) return y * a end },
    cummax = { function() return long() + tide.arange(N) // 5000 end, function(x) return (x:cummax(1)) end,
        function(a, y) return tide.maximum(y, a) end },
    cummin = { function() return long() - tide.arange(N) // 5000 end, function(x) return (x:cummin(1)) end,
        function(a, y) return tide.minimum(y, a) end },
}
for name, scan in pairs(scans) do
    each_layout(name, function(lay)
        for _, dtype in ipairs { tide.float64, tide.int64 } do
            local x = scan[1]():to(dtype)
            local parts, carry = {}, nil
            for k, piece in ipairs(pieces(x)) do
                parts[k] = scan[2](piece)
                parts[k] = carry and scan[3](carry, parts[k]) or parts[k]
                carry = parts[k][-1]
            end
            local laid, row = lay(x)
            same(row(scan[2](laid)), tide.cat(parts), name)
        end
    end)
end
t.test("logcumsumexp", function()
    local x = long() / 100
    t.is_true((x:logcumsumexp(1) - (x - x:max()):exp():cumsum(1):log() - x:max()):narrow(1, 2000, N - 2000):abs():max():item() < 1e-9)
end)
each_layout("gradient_of_cumsum", function(lay)
    local laid, row = lay(long())
    local x, w = laid:clone():requires_grad_(), long():flip { 1 }
    ;(row(x:cumsum(1)) * w):sum():backward()
    same(row(x.grad), w:flip { 1 }:cumsum(1):flip { 1 }, "the gradient")
end)

-- ---- windows and strides: the gradient is what each window gives back ----

for _, c in ipairs { { 3, 1 }, { 4, 2 }, { 2, 5 }, { 70000, 60000 } } do
    local size, step = table.unpack(c)
    t.test(("gradient_of_unfold_%d_by_%d"):format(size, step), function()
        for _, dtype in ipairs { tide.float64, tide.float32 } do
            local x = long():to(dtype):requires_grad_()
            local windows = x:unfold(1, size, step)
            local w = (tide.arange(windows:numel()) % 13):to(dtype):reshape(windows.shape)
            ;(windows * w):sum():backward()
            local want = tide.zeros(N, { dtype = dtype })
            local count = windows:size(1)
            if size < 100 then
                for k = 1, size do
                    want[("%d:%d:%d"):format(k, k + (count - 1) * step, step)]:add_(w:select(2, k))
                end
            else
                for k = 1, count do
                    want:narrow(1, (k - 1) * step + 1, size):add_(w[k])
                end
            end
            same(x.grad, want, "the gradient")
        end
    end)
end
t.test("gradient_of_as_strided", function()
    local x = long():requires_grad_()
    local y = x:as_strided({ 2, 100000 }, { 50000, 1 })
    local w = tide.arange(200000, { dtype = tide.float64 }):reshape(2, 100000) % 17
    ;(y * w):sum():backward()
    local want = tide.zeros(N, { dtype = tide.float64 })
    want:narrow(1, 1, 100000):add_(w[1])
    want:narrow(1, 50001, 100000):add_(w[2])
    same(x.grad, want, "the gradient")
end)

-- ---- places ----

local function reversed() return tide.arange(N, 0, -1) end

local moves = {
    gather = function(x) return x:gather(1, reversed()) end,
    index_select = function(x) return x:index_select(1, reversed()) end,
    take = function(x) return x:take(reversed()) end,
    indexing = function(x) return x[reversed()] end,
    scatter = function(x) return tide.zeros(N, { dtype = x.dtype }):scatter(1, reversed(), x) end,
    scatter_add = function(x) return tide.zeros(N, { dtype = x.dtype }):scatter_add(1, reversed(), x) end,
    index_copy = function(x) return tide.zeros(N, { dtype = x.dtype }):index_copy(1, reversed(), x) end,
    index_add = function(x) return tide.zeros(N, { dtype = x.dtype }):index_add(1, reversed(), x) end,
    index_put = function(x) return tide.zeros(N, { dtype = x.dtype }):index_put({ reversed() }, x) end,
    put = function(x) return tide.zeros(N, { dtype = x.dtype }):put(reversed(), x) end,
    flip = function(x) return x:flip { 1 } end,
}
for name, move in pairs(moves) do
    t.test(name, function()
        for _, dtype in ipairs { tide.float64, tide.float32, tide.int64, tide.int8, tide.float16 } do
            local x = (long() % 100):to(dtype)
            local parts, list = {}, pieces(x)
            for k = #list, 1, -1 do
                parts[#parts + 1] = list[k]:flip { 1 }
            end
            same(move(x), tide.cat(parts), name)
            if name ~= "index_add" and name ~= "put" then
                same(move(tide.stack({ x, x }, 2):select(2, 2)), tide.cat(parts), name .. " apart")
            end
        end
    end)
end
t.test("masks", function()
    local x = long()
    local mask, parts, places = x:gt(100), {}, {}
    local from = 0
    for k, piece in ipairs(pieces(x)) do
        parts[k], places[k] = piece[piece:gt(100)], piece:gt(100):nonzero():select(2, 1) + from
        from = from + piece:size(1)
    end
    same(x[mask], tide.cat(parts), "x[mask]")
    same(x:masked_select(mask), tide.cat(parts), "masked_select")
    same(mask:nonzero():select(2, 1), tide.cat(places), "nonzero")
    local y = x:clone()
    y[mask] = tide.cat(parts) * 2
    same(y, tide.where(mask, x * 2, x), "y[mask] = values")
    same(x:masked_scatter(mask, tide.cat(parts) * 2), y, "masked_scatter")
    same(x:masked_fill(mask, 5), tide.where(mask, 5.0, x), "masked_fill")
end)

-- ---- orders and counts ----

t.test("orders", function()
    local x = long()
    local sorted, index = x:sort()
    same(x[index], sorted, "sort")
    t.is_true(sorted:narrow(1, 2, N - 1):ge(sorted:narrow(1, 1, N - 1)):all():item())
    same(index:sort(), tide.arange(1, N + 1), "places, each once")
    same((x:topk(N - 3)), sorted:flip { 1 }:narrow(1, 1, N - 3), "topk")
    t.eq(x:kthvalue(N // 3):item(), sorted[N // 3]:item())
    local values, counts = tide.unique(x, { return_counts = true })
    t.eq({ values:size(1), counts:sum():item() }, { 1009, N })
    same(tide.bincount((x + 501):long()), counts, "bincount")
    local s = tide.searchsorted(values, x)
    same(values[s], x, "searchsorted")
    same(tide.randperm(N):sort(), tide.arange(1, N + 1), "randperm")
end)

-- ---- reductions and rows ----

each_layout("sums_and_extremes", function(lay)
    local x = long()
    local laid, row = lay(x)
    local sum, most, at, seen = 0, -math.huge, nil, 0
    for _, piece in ipairs(pieces(x)) do
        sum = sum + piece:sum():item()
        local m, k = piece:max(1)
        if m:item() > most then
            most, at = m:item(), seen + k:item()
        end
        seen = seen + piece:size(1)
    end
    local function first(y) return y.ndim == 0 and y or y[1] end
    t.eq(first(laid:sum(1)):item(), sum)
    t.eq(first(laid:float():sum(1)):item(), sum)
    t.eq(first((laid:max(1))):item(), most)
    t.eq(first(laid:argmax(1)):item(), at)
    t.eq(first(laid:ne(7):sum(1)):item(), x:size(1) - row(laid):eq(7):sum():item())
    local mean = sum / N
    local squares = 0
    for _, piece in ipairs(pieces(x)) do
        squares = squares + ((piece - mean) ^ 2):sum():item()
    end
    t.close(first(laid:var(1)):item(), squares / (N - 1), 1e-6)
    t.close(first(laid:norm(2, 1)):item(), math.sqrt((x * x):sum():item()), 1e-6)
end)
t.test("rows_that_are_normalised", function()
    local x = long():reshape(1, N)
    local mean, var = x:mean():item(), x:var { correction = 0 }:item()
    local want = (x - mean) / math.sqrt(var + 1e-5)
    t.is_true((F.layer_norm(x, { N }) - want):abs():max():item() < 1e-9, "layer_norm")
    t.is_true((F.batch_norm(x:t(), nil, nil, nil, nil, true) - want:t()):abs():max():item() < 1e-9, "batch_norm")
    local e = ((x - x:max()) / 100):exp()
    t.is_true(((x / 100):softmax(2) - e / e:sum()):abs():max():item() < 1e-12, "softmax")
    t.close(F.cross_entropy(x / 100, tide.tensor { 70001 }):item(), (e:sum():log() + x:max() / 100 - x[1][70001] / 100):item(), 1e-9)
end)
t.test("draws_of_what_lies_apart", function()
    for _, draw in ipairs { function(x) x:uniform_(0, 1) end, function(x) x:normal_() end, function(x) x:bernoulli_(0.5) end } do
        tide.manual_seed(3)
        local a = tide.empty(3, N)
        draw(a)
        tide.manual_seed(3)
        local b = tide.empty(N, 3):t()
        draw(b)
        t.is_true(tide.equal(a, b))
    end
end)

-- Columns are folded in pieces of rows where there are fewer than some number of them, which is above what is taken at once.
t.test("columns_of_any_number_are_as_their_rows", function()
    for _, columns in ipairs { 511, 512, 513, 700, 1023, 1024, 1025 } do
        local x = long(200 * columns):view(200, columns)
        x[{ {}, columns }] = x[{ {}, columns }] * 1e-200 -- of sums of squares that are worked out of scaled elements
        x[{ {}, columns - 1 }] = x[{ {}, columns - 1 }] * 1e200
        local rows = x:t():contiguous()
        for name, f in pairs { norm = function(y, dim) return y:norm(2, dim) end, cubes = function(y, dim) return y:norm(3, dim) end,
            var = function(y, dim) return y:var(dim) end, std = function(y, dim) return y:std(dim) end,
            moments = function(y, dim) return (y:var_mean(dim)) end, mean = function(y, dim) return y:mean(dim) end } do
            t.is_true(tide.allclose(f(x, 1), f(rows, 2), { rtol = 1e-12, atol = 0 }), name .. " of " .. columns .. " columns")
        end
    end
end)
