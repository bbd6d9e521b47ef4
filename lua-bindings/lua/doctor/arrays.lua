-- doctor/arrays.lua: files of named arrays for `tide --doctor FILE`: NumPy's, safetensors, GGUF. Headers alone are
-- read, by pieces whose length the file's own length bounds.
local tide = ...
local arrays = {}

local MAX_HEADER, SHOWN, MAX_ENTRIES = 16 << 20, 12, 100000

-- ---- what several formats tell ----

local function shape_text(sizes)
    return "(" .. table.concat(sizes, ", ") .. ")"
end
arrays.shape_text = shape_text

--- new_list(): entries as they are found; the first ones are shown, all are counted by dtype.
function arrays.new_list()
    return { n = 0, shown = {}, dtypes = {}, order = {} }
end

--- add(list, name, dtype, sizes)
function arrays.add(list, name, dtype, sizes)
    list.n = list.n + 1
    if list.n <= SHOWN then
        list.shown[list.n] = string.format("'%s' %s %s", name, dtype, shape_text(sizes))
    end
    if not list.dtypes[dtype] then
        list.order[#list.order + 1] = dtype
    end
    list.dtypes[dtype] = (list.dtypes[dtype] or 0) + 1
end

--- tell(list, out, what): how many there are, and the first ones by name.
function arrays.tell(list, out, what)
    local parts = {}
    for k = 1, math.min(#list.order, 8) do
        parts[k] = string.format("%d of %s", list.dtypes[list.order[k]], list.order[k])
    end
    out.ok(what, "%d%s", list.n, list.n > 0 and ": " .. table.concat(parts, ", ") or "")
    for _, line in ipairs(list.shown) do
        out.ok("", "%s", line)
    end
    if list.n > #list.shown then
        out.ok("", "and %d more", list.n - #list.shown)
    end
end

-- ---- NumPy ----

local numpy_names = { b1 = "bool", u1 = "uint8", i1 = "int8", i2 = "int16", i4 = "int32", i8 = "int64", f2 = "float16",
    f4 = "float32", f8 = "float64" }
local foreign = { c = "complex numbers", U = "text", S = "bytes of text", a = "bytes of text", M = "dates", m = "durations",
    V = "raw bytes", u = "unsigned integers", f = "long floats", O = "Python objects, which are pickled and never loaded" }

-- {dtype, size, sizes, what = wrong} of a header's dictionary.
local function read_dictionary(text)
    local shape = string.match(text, "['\"]shape['\"]%s*:%s*(%b())")
    local descr = string.match(text, "['\"]descr['\"]%s*:%s*['\"]([^'\"]*)['\"]")
    local records = string.find(text, "['\"]descr['\"]%s*:%s*%[")
    if not shape or not (descr or records) or not string.find(text, "['\"]fortran_order['\"]%s*:%s*%a") then
        return nil, "its header is not the dictionary of a plain array"
    end
    local found = { sizes = {}, order = string.find(text, "fortran_order['\"]%s*:%s*True") and "column by column" or "row by row" }
    for size in string.gmatch(shape, "%d+") do
        found.sizes[#found.sizes + 1] = math.tointeger(tonumber(size)) or math.maxinteger
    end
    if records then
        found.dtype, found.wrong = "records", "it holds records with fields, which Tide has not"
        return found
    end
    local mark, code = string.match(descr, "^([<>=|]?)(.*)$")
    found.dtype, found.turned = numpy_names[code] or descr, mark == ">" and numpy_names[code] ~= nil
    found.bytes = math.tointeger(tonumber(string.match(code, "^%a(%d+)$") or (code == "?" and 1)))
    if string.sub(code, 1, 1) == "U" then
        found.bytes = found.bytes and 4 * found.bytes
    elseif code == "O" then
        found.bytes = nil
    end
    if not numpy_names[code] then
        found.wrong = string.format("dtype '%s' (%s) is none of Tide's", descr, foreign[string.sub(code, 1, 1)] or "unknown")
    end
    return found
end

local function product(sizes)
    local n = 1.0
    for _, size in ipairs(sizes) do
        n = n * size
    end
    return n
end

--- npy_header(bytes): what an array's first bytes say: {dtype, sizes, wrong, turned, order, length}, length that of the
--- header and of what stands before it; nil and what is wrong.
function arrays.npy_header(bytes)
    local version = string.byte(bytes, 7)
    if string.sub(bytes, 1, 6) ~= "\x93NUMPY" then
        return nil, "no array of NumPy"
    elseif not version or version < 1 or version > 3 then
        return nil, string.format("version %s of the format is not known", version or "?")
    end
    local wide = version == 1 and 2 or 4
    if #bytes < 8 + wide then
        return nil, "cut off in its header"
    end
    local length = string.unpack(wide == 2 and "<I2" or "<I4", bytes, 9)
    if #bytes < 8 + wide + length then
        return nil, string.format("a header of %d bytes ends beyond what is there", length), 8 + wide + length
    end
    local found, wrong = read_dictionary(string.sub(bytes, 9 + wide, 8 + wide + length))
    if found then
        found.length = 8 + wide + length
    end
    return found, wrong
end

local function tell_array(found, have, out, more)
    out.ok("array", "%s %s, %s%s", found.dtype, shape_text(found.sizes), found.order,
        found.turned and ", bytes in the other order (turned when it is read)" or "")
    if found.wrong then
        out.problem("dtype", found.wrong, found.dtype ~= "records" and not string.find(found.wrong, "Python objects")
            and "in Python: numpy.save(path, x.astype('float32')) or another dtype that Tide has" or nil)
    end
    local wanted = found.bytes and found.bytes * product(found.sizes)
    if wanted and have < wanted then
        out.problem("length", string.format("cut off: %s of %s takes %.0f bytes, the file has %d", shape_text(found.sizes), found.dtype, wanted, have),
            "fetch or write the file again")
    elseif wanted and have > wanted and not more then
        out.problem("length", string.format("%.0f bytes behind the array belong to nothing", have - wanted))
    end
    return wanted
end

--- npy(file, out): arrays one behind the other.
function arrays.npy(file, out)
    out.kind("an array of NumPy (.npy)")
    local at = 0
    for n = 1, 1000 do
        local bytes = file.read(at, 4096)
        local found, wrong, longer = arrays.npy_header(bytes)
        if not found and longer and longer <= MAX_HEADER and at + longer <= file.size then
            found, wrong = arrays.npy_header(file.read(at, longer))
        end
        if not found then
            return out.problem("header", wrong .. string.format(" (the file has %d bytes)", file.size), "fetch or write the file again")
        end
        local have = file.size - at - found.length
        local wanted = found.bytes and found.bytes * product(found.sizes)
        local more = wanted and wanted < have and file.read(math.tointeger(at + found.length + wanted), 6) == "\x93NUMPY"
        tell_array(found, have, out, more)
        if not more then
            return
        end
        at = math.tointeger(at + found.length + wanted)
        if n == 1000 then
            out.note("arrays", "more than 1000 behind one another: no more were looked at")
        end
    end
end

--- npz(zip, out): an archive of arrays.
function arrays.npz(zip, out)
    out.kind("an archive of NumPy's arrays (.npz)")
    local list, wrongs = arrays.new_list(), {}
    for k, entry in ipairs(zip.entries) do
        if k > 1000 then
            out.note("arrays", "1000 of %d were looked at", #zip.entries)
            break
        end
        local bytes, why = zip.first_bytes(entry, 16384)
        local found, wrong
        if bytes then
            found, wrong = arrays.npy_header(bytes)
        end
        if found then
            arrays.add(list, (string.gsub(entry.name, "%.npy$", "")), found.dtype, found.sizes)
            local wanted = found.bytes and found.bytes * product(found.sizes) + found.length
            wrong = found.wrong or wanted and wanted ~= entry.size
                and string.format("%s takes %.0f bytes, its entry has %d", shape_text(found.sizes), wanted, entry.size)
        end
        if why or wrong then
            wrongs[#wrongs + 1] = string.format("'%s': %s", entry.name, why or wrong)
        end
    end
    arrays.tell(list, out, "arrays")
    for k = 1, math.min(#wrongs, SHOWN) do
        out.problem("array", wrongs[k])
    end
    out.note("reading", "tide.io.load_npz and tide.load read it as a table of tensors by name")
end

-- ---- safetensors ----

local safe_names = { BOOL = "bool", U8 = "uint8", I8 = "int8", I16 = "int16", I32 = "int32", I64 = "int64", F16 = "float16",
    BF16 = "bfloat16", F32 = "float32", F64 = "float64" }

-- Entries of a header, gathered while it is scanned.
local function header_survey()
    local survey = { list = arrays.new_list(), notes = 0, foreign = {}, last = 0, nothing = true }
    local name, entry
    local function finish()
        if entry and entry.dtype then
            arrays.add(survey.list, name, safe_names[entry.dtype] or entry.dtype, entry.sizes)
            if not safe_names[entry.dtype] and #survey.foreign < SHOWN then
                survey.foreign[#survey.foreign + 1] = string.format("'%s' is %s", name, entry.dtype)
            end
        end
        entry = nil
    end
    function survey.visit(s, kind, text)
        local keys, depth = s.keys, s.depth
        if depth == 0 then
            survey.nothing = kind ~= "object"
        elseif depth == 1 then
            finish()
            name = keys[1]
            entry = name ~= "__metadata__" and { sizes = {} } or nil
        elseif keys[1] == "__metadata__" then
            survey.notes = survey.notes + 1
        elseif entry and depth == 2 and keys[2] == "dtype" and kind == "string" then
            entry.dtype = text
        elseif entry and depth == 3 and keys[2] == "shape" and #entry.sizes < 64 then
            entry.sizes[#entry.sizes + 1] = text or "?"
        elseif entry and depth == 3 and keys[2] == "data_offsets" and keys[3] == 2 then
            survey.last = math.max(survey.last, tonumber(text) or 0)
        end
    end
    survey.finish = finish
    return survey
end

--- safetensors(file, out)
function arrays.safetensors(file, out)
    out.kind("a file of tensors (safetensors)")
    local length = string.unpack("<I8", file.read(0, 8))
    if length < 0 or length > file.size - 8 then
        return out.problem("header", string.format(("a header of %s bytes ends beyond the file's %d: cut off, or not such a file")
            , length < 0 and "more than 2^63" or length, file.size), "fetch the file again")
    end
    local survey = header_survey()
    local broken = tide._require("doctor.json").scan(file.pieces(8, 8 + length), survey.visit)
    survey.finish()
    arrays.tell(survey.list, out, "tensors")
    if survey.notes > 0 then
        out.ok("metadata", "%d entries", survey.notes)
    end
    if broken then
        return out.problem("header", "its JSON is broken: " .. broken)
    end
    for _, which in ipairs(survey.foreign) do
        out.problem("dtype", which .. ", which Tide has not: tide.load leaves it out")
    end
    if survey.last > file.size - 8 - length then
        out.problem("length", string.format("cut off: its tensors take %.0f bytes, the file has %d", survey.last, file.size - 8 - length),
            "fetch the file again")
    elseif length <= MAX_HEADER then -- the reader's own eyes: places that overlap, gaps, names that stand twice
        local ok, why = pcall(tide._archive_read, file.path, true)
        if not ok and not string.find(tostring(why), "memory") then
            out.problem("header", (string.gsub(tostring(why), "^.-load: '.-': ", "")))
        end
    end
end

-- ---- GGUF ----

local gguf_sizes = { [0] = 1, 1, 2, 2, 4, 4, 4, 1, [10] = 8, [11] = 8, [12] = 8 }
local gguf_dtypes = { [0] = "float32", [1] = "float16", [24] = "int8", [25] = "int16", [26] = "int32", [27] = "int64",
    [28] = "float64", [30] = "bfloat16", [2] = "Q4_0", [3] = "Q4_1", [6] = "Q5_0", [7] = "Q5_1", [8] = "Q8_0",
    [10] = "Q2_K", [11] = "Q3_K", [12] = "Q4_K", [13] = "Q5_K", [14] = "Q6_K", [15] = "Q8_K" }

local Cut = setmetatable({}, { __name = "cut" }) -- raised where a file ends too early

local function cursor(file, at)
    local c = { at = at }
    local function take(n)
        local bytes = n >= 0 and n <= MAX_HEADER and c.at + n <= file.size and file.read(c.at, n)
        if not bytes or #bytes < n then
            error(Cut, 0)
        end
        c.at = c.at + n
        return bytes
    end
    function c.number(format) return (string.unpack(format, take(string.packsize(format)))) end
    function c.text(most)
        local n = c.number("<i8")
        local shown = n >= 0 and take(math.min(n, most)) or error(Cut, 0)
        c.skip(n - #shown)
        return shown
    end
    function c.skip(n)
        if n < 0 or n > file.size - c.at then
            error(Cut, 0)
        end
        c.at = c.at + n
    end
    return c
end

local function skip_value(c, kind, steps, depth)
    if depth > 8 then
        error(Cut, 0)
    elseif gguf_sizes[kind] then
        c.skip(gguf_sizes[kind])
    elseif kind == 8 then
        c.skip(c.number("<i8"))
    elseif kind == 9 then
        local inner, n = c.number("<I4"), c.number("<i8")
        if gguf_sizes[inner] and n >= 0 and n <= MAX_HEADER then
            c.skip(n * gguf_sizes[inner])
        elseif n < 0 or n > MAX_HEADER then
            error(Cut, 0)
        else
            for _ = 1, n do
                steps(1)
                skip_value(c, inner, steps, depth + 1)
            end
        end
    else
        error(Cut, 0)
    end
end

--- gguf(file, out)
function arrays.gguf(file, out)
    out.kind("a GGUF file of (quantized) weights")
    local list, architecture, left = arrays.new_list(), nil, 20 * MAX_ENTRIES
    local function steps(n)
        left = left - n
        if left < 0 then
            error(Cut, 0)
        end
    end
    local ok, problem = pcall(function()
        local c = cursor(file, 4)
        local version, ntensors, nvalues = c.number("<I4"), c.number("<i8"), c.number("<i8")
        out.ok("format", "version %d, %d tensors, %d values of metadata", version, ntensors, nvalues)
        for _ = 1, nvalues do
            steps(1)
            local key, kind = c.text(200), c.number("<I4")
            if key == "general.architecture" and kind == 8 then
                architecture = c.text(200)
            else
                skip_value(c, kind, steps, 0)
            end
        end
        for _ = 1, ntensors do
            steps(1)
            local name, ndim, sizes = c.text(200), c.number("<I4"), {}
            if ndim > 8 then
                error(Cut, 0)
            end
            for k = ndim, 1, -1 do
                sizes[k] = c.number("<i8")
            end
            local dtype = c.number("<I4")
            c.skip(8)
            arrays.add(list, name, gguf_dtypes[dtype] or "type " .. dtype, sizes)
        end
    end)
    if architecture then
        out.ok("model", "%s", architecture)
    end
    arrays.tell(list, out, "tensors")
    if not ok and problem ~= Cut then
        error(problem, 0)
    elseif not ok then
        out.problem("header", "cut off, or damaged: its header ends beyond the file", "fetch the file again")
    end
    out.note("reading", "Tide has no reader of GGUF: in Python, gguf.GGUFReader and safetensors.numpy.save_file")
end

return arrays
