-- shape_words.lua: what the names mean that texts of shapes explain in words, where results have them: a function of
-- the call's arguments by name, whose tensors are tensors, for each: a size, or a list of sizes.
local W = {}

local function each(names, meanings)
    for name in names:gmatch("%S+") do
        W[name] = meanings
    end
end

local function sizes_of(x) return { table.unpack(x.shape) } end

local function place(dim, n) return dim < 0 and dim + n + 1 or dim end

local function sum(list)
    local n = 0
    for _, x in ipairs(list) do
        n = n + x
    end
    return n
end

local function joined(...)
    local all = {}
    for _, list in ipairs { ... } do
        table.move(list, 1, #list, #all + 1, all)
    end
    return all
end

local function without(x, dims)
    local gone, rest = {}, {}
    for _, d in ipairs(type(dims) == "table" and dims or { dims }) do
        gone[place(d, x.ndim)] = true
    end
    for d, size in ipairs(x.shape) do
        if not gone[d] then
            rest[#rest + 1] = size
        end
    end
    return rest
end

-- ---- what elements say ----

local function nonzeros(a) return tide.count_nonzero(a.x):item() end
each("nonzero argwhere", { n = nonzeros })
W.masked_select = { n = function(a) return (a.mask & tide.ones_like(a.x, { dtype = tide.bool })):sum():item() end }
W.one_hot = { n = function(a) return a.x:max():item() end }
W.bincount = { m = function(a) return math.max(a.x:numel() > 0 and a.x:max():item() or 0, a.minlength) end }
-- How many rows along dim (or elements) differ, of all or each from the one before.
local function differing(from_last)
    return { n = function(a)
        local x = a.x
        local rows = a.dim and x:transpose(1, a.dim):reshape(x.shape[place(a.dim, x.ndim)], -1) or x:reshape(-1, 1)
        local seen, n, last = {}, 0, nil
        for _, row in ipairs(rows:tolist()) do
            for k, x in ipairs(row) do
                row[k] = tostring(x)
            end
            local text = table.concat(row, " ")
            n = n + ((from_last and text == last or not from_last and seen[text]) and 0 or 1)
            seen[text], last = true, text
        end
        return n
    end }
end
W.unique, W.unique_consecutive = differing(false), differing(true)
W.repeat_interleave = { n = function(a)
    local n = a.dim and a.x.shape[a.dim] or a.x:numel()
    local counts = type(a.repeats) == "number" and a.repeats * n or a.repeats:sum():item()
    return tide.is_tensor(a.repeats) and a.repeats:numel() == 1 and n > 1 and counts * n or counts
end }
each("indices _indices", { d = function(a) return a.x:sparse_dim() end, n = function(a) return a.x:_nnz() end })
each("values _values", { n = function(a) return a.x:_nnz() end,
    dense = function(a) return { table.unpack(sizes_of(a.x), a.x:sparse_dim() + 1) } end })
W.sparse_coo_tensor = { sizes = function(a) return a.indices:max(2):tolist() end }

-- ---- parts ----

local function splits(a)
    local n, parts = a.x.shape[a.dim], {}
    local size = a.split_size or a.split_sizes or math.max(1, (n + a.chunks - 1) // a.chunks)
    if type(size) == "table" then
        return size
    end
    for first = 0, n - 1, size do
        parts[#parts + 1] = math.min(size, n - first)
    end
    return #parts > 0 and parts or { 0 }
end
each("split split_with_sizes chunk", { n = splits })

local function tensor_splits(dim_of)
    return { n = function(a)
        local n, parts, last = a.x.shape[dim_of(a)], {}, 0
        local at = a.indices_or_sections
        at = tide.is_tensor(at) and (at.ndim > 0 and at:tolist() or at:item()) or at
        if type(at) == "number" then
            for k = 1, at do
                parts[k] = n // at + (k <= n % at and 1 or 0)
            end
            return parts
        end
        for k = 1, #at + 1 do
            local to = k <= #at and (at[k] < 0 and math.max(at[k] + n, 0) or math.min(at[k], n)) or n
            parts[k], last = math.max(to - last, 0), to
        end
        return parts
    end }
end
W.tensor_split = tensor_splits(function(a) return a.dim end)
W.dsplit = tensor_splits(function() return 3 end)
W.vsplit = tensor_splits(function() return 1 end)
W.hsplit = tensor_splits(function(a) return a.x.ndim > 1 and 2 or 1 end)

local function steps(a)
    local n = a.x.shape[place(a.dim, a.x.ndim)]
    local start, stop = a.start or 1, math.min(a.stop or n, n)
    start, stop = start < 0 and math.max(start + n + 1, 1) or start, stop < 0 and stop + n + 1 or stop
    return math.max((stop - start) // a.step + 1, 0)
end
each("slice slice_scatter", { n = steps })

-- ---- sizes moved about ----

W.squeeze = { rest = function(a)
    local dims, rest = {}, {}
    for d in ipairs(a.x.shape) do
        dims[d] = a.dim == nil
    end
    for _, d in ipairs(type(a.dim) == "table" and a.dim or { a.dim }) do
        dims[place(d, a.x.ndim)] = true
    end
    for d, size in ipairs(a.x.shape) do
        if not (dims[d] and size == 1) then
            rest[#rest + 1] = size
        end
    end
    return rest
end }
W.flatten = { sizes = function(a)
    local x, n = sizes_of(a.x), 1
    if #x == 0 then
        return { 1 }
    end
    local first, last = place(a.start_dim, #x), place(a.end_dim, #x)
    for d = first, last do
        n = n * x[d]
    end
    return joined({ table.unpack(x, 1, first - 1) }, { n }, { table.unpack(x, last + 1) })
end }
W.unflatten = { result = function(a)
    local x, known, open = sizes_of(a.x), 1, nil
    local d, sizes = place(a.dim, #sizes_of(a.x)), { table.unpack(a.sizes) }
    for k, size in ipairs(sizes) do
        if size < 0 then
            open = k
        else
            known = known * size
        end
    end
    if open then
        sizes[open] = x[d] // known
    end
    return joined({ table.unpack(x, 1, d - 1) }, sizes, { table.unpack(x, d + 1) })
end }
W.movedim = { sizes = function(a)
    local source = type(a.source) == "table" and a.source or { a.source }
    local destination = type(a.destination) == "table" and a.destination or { a.destination }
    local at, rest = {}, without(a.x, source)
    for k, d in ipairs(source) do
        at[place(destination[k], a.x.ndim)] = a.x.shape[place(d, a.x.ndim)]
    end
    local sizes, next_rest = {}, 0
    for d = 1, a.x.ndim do
        if not at[d] then
            next_rest = next_rest + 1
        end
        sizes[d] = at[d] or rest[next_rest]
    end
    return sizes
end }
W.diag_embed = { sizes = function(a)
    local x = sizes_of(a.x)
    local n = table.remove(x) + math.abs(a.offset)
    local d1, d2 = place(a.dim1, #x + 2), place(a.dim2, #x + 2)
    table.insert(x, math.min(d1, d2), n)
    table.insert(x, math.max(d1, d2), n)
    return x
end }
each("quantile nanquantile", { rest = function(a)
    local rest = a.dim and without(a.x, a.dim) or {}
    if not a.keepdim then
        return rest
    end
    local kept = sizes_of(a.x)
    for d in ipairs(kept) do
        kept[d] = (not a.dim or place(a.dim, #kept) == d) and 1 or kept[d]
    end
    return kept
end })
W.diff = { m = function(a)
    local n = a.x.shape[place(a.dim, a.x.ndim)]
    for _, other in ipairs { a.prepend or false, a.append or false } do
        n = n + (other and other.shape[place(a.dim, a.x.ndim)] or 0)
    end
    return math.max(n - a.n, 0)
end }
W.take_along_dim = { sizes = function(a)
    local x, index = sizes_of(a.x), sizes_of(a.indices)
    local sizes, dim = {}, place(a.dim, #x)
    for d in ipairs(x) do
        sizes[d] = (d == dim or x[d] == 1) and index[d] or x[d]
    end
    return sizes
end }
W.interpolate = { result = function(a)
    local sizes = {}
    for d = 1, a.input.ndim - 2 do
        local function of(list) return list and (list[d] or list[1]) end
        sizes[d] = of(a.size) or math.floor(a.input.shape[d + 2] * of(a.scale_factor))
    end
    return sizes
end }

-- A size of -1 is what is left.
each("reshape view", { size = function(a)
    local sizes, known, open = { table.unpack(a.size) }, 1, nil
    for d, size in ipairs(sizes) do
        if size < 0 then
            open = d
        else
            known = known * size
        end
    end
    if open then
        sizes[open] = a.x:numel() // known
    end
    return sizes
end })
each("expand broadcast_to", { size = function(a)
    local sizes = { table.unpack(a.size) }
    for d, size in ipairs(sizes) do
        sizes[d] = size < 0 and a.x.shape[d - #sizes + a.x.ndim] or size
    end
    return sizes
end })

-- ---- of lists ----

W.linalg_multi_dot = { ends = function(a)
    local first, last = a.tensors[1], a.tensors[#a.tensors]
    return joined(first.ndim > 1 and { first.shape[1] } or {}, last.ndim > 1 and { last.shape[2] } or {})
end }
W.hstack = { n = function(a)
    local n = 0
    for _, x in ipairs(a.tensors) do
        n = n + x:numel()
    end
    return n
end }
local function matrix(x) return x.ndim < 2 and { 1, x:numel() } or sizes_of(x) end
W.block_diag = {}
for name, d in pairs { n = 1, m = 2 } do
    W.block_diag[name] = function(a)
        local n = 0
        for _, x in ipairs(a.tensors) do
            n = n + matrix(x)[d]
        end
        return n
    end
end
W.column_stack = {
    n = function(a) return a.tensors[1].ndim > 0 and a.tensors[1].shape[1] or 1 end,
    m = function(a)
        local n = 0
        for _, x in ipairs(a.tensors) do
            n = n + (x.ndim > 1 and x.shape[2] or 1)
        end
        return n
    end,
    others = function(a) return { table.unpack(sizes_of(a.tensors[1]), 3) } end,
}
W.meshgrid = { sizes = function(a)
    local sizes = {}
    for k, x in ipairs(a.tensors) do
        sizes[k] = x:numel()
    end
    if a.indexing == "xy" and #sizes > 1 then
        sizes[1], sizes[2] = sizes[2], sizes[1]
    end
    return sizes
end }
-- The labels of a term, one for each dim: letters, and for the dims of "..." their numbers from the last.
local function labels_of(term, dots)
    local labels = {}
    for part in term:gsub("%.%.%.", "."):gmatch "." do
        for k = part == "." and dots or 1, 1, -1 do
            labels[#labels + 1] = part == "." and k or part
        end
    end
    return labels
end
W.einsum = { result = function(a)
    local size, times, most, k = {}, {}, 0, 0
    local inputs, output = a.equation:gsub("%s", ""):match "^([^%-]*)%->?(.*)$"
    inputs = inputs or a.equation:gsub("%s", "")
    for term in (inputs .. ","):gmatch "(.-)," do
        k = k + 1
        local x = a.operands[k]
        local dots = x.ndim - #term:gsub("%.", "")
        most = math.max(most, dots)
        for d, label in ipairs(labels_of(term, dots)) do
            times[label] = (times[label] or 0) + 1
            size[label] = math.max(size[label] or 1, x.shape[d])
        end
    end
    if not output then
        local once = {}
        for label, n in pairs(times) do
            once[#once + 1] = n == 1 and type(label) == "string" and label or nil
        end
        table.sort(once)
        output = "..." .. table.concat(once)
    end
    local sizes = {}
    for d, label in ipairs(labels_of(output, most)) do
        sizes[d] = size[label]
    end
    return sizes
end }
W.tensordot = { sizes = function(a)
    local left, right = a.dims, a.dims_b
    if type(left) == "number" then
        left, right = {}, {}
        for k = 1, a.dims do
            left[k], right[k] = -k, k
        end
    elseif not right then
        left, right = left[1], left[2]
    end
    return joined(without(a.a, left), without(a.b, right))
end }

-- ---- numbers ----

W.arange = { n = function(a)
    local first, last = a.start, a["end"]
    if not last then
        first, last = 0, first
    end
    return math.max(math.ceil((last - (first or 0)) / (a.step or 1)), 0)
end }
W.combinations = { count = function(a)
    local n, r, count = a.x:numel(), a.r, 1
    n = a.with_replacement and n + r - 1 or n
    for k = 1, r do
        count = count * (n - r + k) // k
    end
    return count
end }
local function triangle(lower)
    return { n = function(a)
        local n = 0
        for i = 1, a.row do
            for j = 1, a.col do
                if lower and j - i <= a.offset or not lower and j - i >= a.offset then
                    n = n + 1
                end
            end
        end
        return n
    end }
end
W.tril_indices, W.triu_indices = triangle(true), triangle(false)

return W
