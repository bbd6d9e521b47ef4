-- files/idx.lua: IDX files, the arrays of MNIST and its kin: two zeros, a letter for the dtype, the number of dims, the sizes,
-- the elements, highest byte first. gzip may have packed them. Nothing of a file is believed before it is checked against its
-- length.
local tide = ...
local idx = { name = "IDX" }

local KINDS <const> = { [8] = "uint8", [9] = "int8", [11] = "int16", [12] = "int32", [13] = "float32", [14] = "float64" }
local MOST_DIMS <const>, HEAD <const> = 16, 4

local function refuse(fname, path, ...)
    tide._fail("%s: '%s': %s", fname, path, string.format(...))
end

-- What a file's first bytes say: dtype, sizes, place of the elements (from 0), bytes that they take; nil and why.
local function read_head(head)
    if #head < HEAD then
        return nil, "cut off in its header"
    end
    local zeros, kind, ndim = string.unpack(">I2BB", head)
    local name = KINDS[kind]
    if zeros ~= 0 or not name or ndim > MOST_DIMS then
        return nil, "no IDX file"
    end
    local first = HEAD + 4 * ndim
    if #head < first then
        return nil, "cut off in its header"
    end
    local sizes, n = {}, tide[name].itemsize
    for d = 1, ndim do
        sizes[d] = string.unpack(">I4", head, HEAD + 4 * d - 3)
        n = n > (1 << 62) // math.max(sizes[d], 1) and 1 << 62 or n * sizes[d]
    end
    return { dtype = tide[name], sizes = sizes, first = first, bytes = n }
end

--- match(head, path): a plain file says so by its header and its length, a packed one by its name.
function idx.match(head, path)
    if string.sub(head, 1, 2) == "\x1F\x8B" or head == "" then
        return string.find(path, "idx%d%-%w+%.gz$") ~= nil or string.find(path, "%.idx%.gz$") ~= nil
    end
    local what = read_head(head)
    if string.find(path, "%.idx$") or string.find(path, "idx%d%-%w+$") then
        return true
    end
    local facts = what and #what.sizes > 0 and tide._system_calls().stat(path)
    return facts and facts.size == what.first + what.bytes or false
end

--- read(fname, path): the array.
function idx.read(fname, path)
    local bytes = tide._bytes(path, fname)
    local n = bytes:numel()
    local what, why = read_head(tide._string(bytes, 0, math.min(n, HEAD + 4 * MOST_DIMS)))
    if not what then
        refuse(fname, path, "%s", why)
    elseif what.first + what.bytes ~= n then
        refuse(fname, path, "(%s) of %s takes %d bytes behind its header of %d, the file has %d", table.concat(what.sizes, ", "),
            tostring(what.dtype), what.bytes, what.first, n)
    end
    return tide._elements(bytes, what.first, what.dtype, what.sizes)
end

function idx.load(path, options)
    local x = idx.read("load", path)
    return options.device and x:to(options.device) or x
end

return idx
