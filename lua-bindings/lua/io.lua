-- io.lua: tide.io: tables in text (.csv) and NumPy's arrays (.npy, .npz), both ways. What a cell is (csv.c) and how an
-- array lies in its file (engine/io/npy.c) is not known here; columns, their names and their classes are.
local tide = ...
local fail, declare, describe = tide._fail, tide._function, tide._describe
local io = {}

-- ---- columns by name or number ----

-- The number of a column that an option names.
local function find_column(fname, option, key, names, count)
    if math.type(key) == "integer" then
        if key < 1 or key > count then
            fail("%s: option %s: column %d of %d", fname, option, key, count)
        end
        return key
    elseif type(key) ~= "string" then
        fail("%s: option %s: names or numbers of columns expected, got %s", fname, option, describe(key))
    elseif not names then
        fail("%s: option %s: '%s' is a name, and names come from a header: {header = ...}", fname, option, key)
    end
    local found
    for k, name in ipairs(names) do
        if name == key and found then
            fail("%s: option %s: '%s' is the name of columns %d and %d: give the number", fname, option, key, found, k)
        end
        found = name == key and k or found
    end
    if not found then
        local known = table.concat(names, ", ", 1, math.min(#names, 12)) .. (#names > 12 and ", ..." or "")
        fail("%s: option %s: no column '%s'; there are %s", fname, option, key, known)
    end
    return found
end

-- A list of names or numbers, or one of them.
local function as_list(value)
    return type(value) == "table" and value or { value }
end

-- Place in a row by column: all of them, or those that were chosen, in that order.
local function places_of(chosen, names, count)
    local places, n = {}, 0
    if chosen == nil then
        for k = 1, count do
            places[k] = k
        end
        return places
    end
    for _, key in ipairs(as_list(chosen)) do
        local k = find_column("read_csv", "columns", key, names, count)
        if places[k] then
            fail("read_csv: option columns: column %d is named twice", k)
        end
        n = n + 1
        places[k] = n
    end
    if n == 0 then
        fail("read_csv: option columns: names or numbers of columns expected, got %s", describe(chosen))
    end
    return places
end

-- ---- classes ----

local function check_classes(fname, key, list)
    local seen = {}
    for k, text in ipairs(list) do
        if type(text) ~= "string" then
            fail("%s: option classes: '%s': a list of texts expected, got %s", fname, tostring(key), describe(text))
        elseif seen[text] then
            fail("%s: option classes: '%s': '%s' stands there twice", fname, tostring(key), text)
        end
        seen[text] = k
    end
    if #list == 0 then
        fail("%s: option classes: '%s': a list of texts expected, got an empty one", fname, tostring(key))
    end
    return seen
end

-- Columns that hold classes: the numbers of those that are known, and the lists of those that the file is to name.
local function classes_of(given, names, count)
    local known, open = {}, {}
    for key, value in pairs(given == nil and {} or as_list(given)) do
        local closed = type(value) == "table"
        local k = find_column("read_csv", "classes", closed and key or value, names, count)
        if known[k] then
            fail("read_csv: option classes: column %d is named twice", k)
        end
        known[k] = closed and check_classes("read_csv", key, value) or {}
        open[k] = not closed and {} or nil
    end
    return known, open
end

-- The classes that a file named, in the order of their bytes, and its numbers as numbers of that order.
local function order_classes(list, codes)
    local sorted, rank = table.move(list, 1, #list, 1, {}), {}
    table.sort(sorted, tide._before)
    for k, text in ipairs(sorted) do
        rank[text] = k
    end
    local ranks = {}
    for k, text in ipairs(list) do
        ranks[k] = rank[text]
    end
    return sorted, tide.tensor(ranks, { dtype = tide.int64 })[codes]
end

-- A list of the classes that were given, by their numbers.
local function listed(numbers)
    local list = {}
    for text, k in pairs(numbers) do
        list[k] = text
    end
    return list
end

-- Put numbers of classes where the matrix has their column.
local function place_codes(matrix, place, codes)
    local column = matrix:select(2, place)
    column:copy_(codes)
    if not column:to(tide.int64):equal(codes) then
        fail("read_csv: option classes: %d classes are more than %s counts", codes:max():item(), tostring(matrix.dtype))
    end
end

-- ---- read_csv ----

-- How a column is called: by its name where no other has it.
local function keys_of(names, count)
    local keys, seen = {}, {}
    for k = 1, count do
        local name = names and names[k] or k
        keys[k] = seen[name] and k or name
        if seen[name] then
            keys[seen[name]] = seen[name]
        end
        seen[name] = seen[name] or k
    end
    return keys
end

local function gather(matrix, codes, places, known, open, names, count)
    local keys, info = keys_of(names, count), { columns = {}, classes = {}, names = names and {} }
    for k = 1, count do
        local key, place = keys[k], places[k]
        if known[k] then
            local list = open[k] or listed(known[k])
            if open[k] then
                list, codes[k] = order_classes(list, codes[k])
            end
            info.classes[key], info.columns[key] = list, codes[k]
        end
        if place then
            if known[k] then
                place_codes(matrix, place, codes[k])
            else
                info.columns[key] = matrix:select(2, place)
            end
            if names then
                info.names[place] = names[k]
            end
        end
    end
    return info
end

local function check_delimiter(fname, delimiter, refused)
    if #delimiter ~= 1 or string.find(delimiter, "[\n\r]") or refused and string.find(delimiter, refused) then
        fail('%s: option delimiter: one character expected%s, got "%s"', fname,
            refused and " that no number holds" or "", delimiter)
    end
end

io.read_csv = declare(
    'read_csv(str path, *, bool header=false, str delimiter=",", str decimal=".", any columns=nil, any classes=nil, '
    .. "number? missing=nil, dtype? dtype=nil) -> Tensor, table",
    "A file of numbers as a matrix. With a header or classes a table too: columns by name (numbers, or the numbers of "
    .. "classes from 1 on as int64), names, and classes by column. columns chooses some, by name or number; classes "
    .. "names columns of texts, or gives {name = list of its classes}, as the table has them; missing is put where a "
    .. "cell is empty, NA, null, ?, - or the like. A delimiter of a blank is any run of blanks and tabs; decimal is what "
    .. "stands in front of fractions. Files may be packed by gzip; names and classes that are not UTF-8 are read as "
    .. "Windows-1252.",
    function(path, header, delimiter, decimal, columns, classes, missing, dtype)
        dtype = dtype or tide.default_dtype
        check_delimiter("read_csv", delimiter)
        if decimal ~= "." and decimal ~= "," then
            fail('read_csv: option decimal: "." or "," expected, got "%s"', decimal)
        elseif decimal == delimiter then
            fail('read_csv: option decimal: "%s" parts the columns already: {delimiter = ";"} says what else does', decimal)
        end
        local _range <close> = tide._stage_enter("read", path, "read_csv")
        if missing and not tide._dtype_holds(dtype, missing) then
            fail("read_csv: option missing: %s does not hold %s", tostring(dtype), tide._number(missing))
        end
        local file, count, names = tide._csv_open(path, delimiter, header, decimal)
        local places = places_of(columns, names, count)
        local known, open = classes_of(classes, names, count)
        local matrix, codes = tide._csv_convert(file, dtype, places, known, open, missing)
        if not header and classes == nil then
            return matrix
        end
        return matrix, gather(matrix, codes, places, known, open, names, count)
    end)

-- ---- write_csv ----

local function check_text(option, text)
    if type(text) ~= "string" then
        fail("write_csv: option %s: texts expected, got %s", option, describe(text))
    end
end

-- Dense, row by row, on the CPU, and without a history.
local function plain(fname, x)
    if x.is_sparse then
        fail("%s: x is sparse: x:to_dense() is what a file holds", fname)
    end
    return x:detach():cpu():contiguous()
end

local function written_classes(given, header, count)
    local classes = {}
    for key, list in pairs(given or {}) do
        local k = find_column("write_csv", "classes", key, header, count)
        if type(list) ~= "table" then
            fail("write_csv: option classes: '%s': a list of texts expected, got %s", tostring(key), describe(list))
        end
        for _, text in ipairs(list) do
            check_text("classes", text)
        end
        classes[k] = list
    end
    return classes
end

io.write_csv = declare(
    'write_csv(Tensor x, str path, *, list? header=nil, str delimiter=",", table? classes=nil)',
    "Write a matrix (or a vector, as one column) so that read_csv reads the same bits: header has the columns' names, "
    .. "classes the texts for columns of class numbers, {name = list}, as read_csv returns them. The file appears whole "
    .. "or not at all.",
    function(x, path, header, delimiter, classes)
        if x.ndim ~= 1 and x.ndim ~= 2 then
            fail("write_csv: x: a matrix or a vector expected, got shape %s", tostring(x.shape))
        end
        check_delimiter("write_csv", delimiter, '[%w.+"_-]')
        x = plain("write_csv", x.ndim == 1 and x:unsqueeze(2) or x)
        local count = x.shape[2]
        if count == 0 then
            fail("write_csv: x: shape %s has no columns", tostring(x.shape))
        elseif header and #header ~= count then
            fail("write_csv: option header: %d names for %d columns", #header, count)
        end
        for _, name in ipairs(header or {}) do
            check_text("header", name)
        end
        tide._csv_write(path, x, delimiter, header, written_classes(classes, header, count))
    end)

-- ---- NumPy's arrays ----

io.load_npy = declare("load_npy(str path, *, device? device=nil) -> Tensor",
    "A file that numpy.save wrote; where it wrote several arrays to one file, each is a result. tide.load reads files "
    .. "that end in .npy so.", function(path, device)
        return tide._require("files.numpy").load(path, device, "load_npy")
    end)

io.save_npy = declare("save_npy(Tensor x, str path)",
    "Write a tensor for numpy.load, whole or not at all; tide.save writes files that end in .npy so.",
    function(x, path)
        tide._npy_write(path, plain("save_npy", x), "save_npy")
    end)

io.load_npz = declare("load_npz(str path, *, device? device=nil) -> table, table",
    "The arrays of a file that numpy.savez or savez_compressed wrote, by name; and of what else lies in it why it was "
    .. "left out, by name: arrays of dtypes that Tide has not (texts, complex numbers, objects), and files that are no "
    .. "arrays. tide.load reads files that end in .npz so.", function(path, device)
        return tide._require("files.numpy").load_archive(path, device, "load_npz")
    end)

io.save_npz = declare("save_npz(table arrays, str path)",
    "Write tensors by name for numpy.load, whole or not at all; tide.save writes files that end in .npz so.",
    function(arrays, path)
        tide._require("files.numpy").save_archive(arrays, path, "save_npz")
    end)

tide._document(io, "io", "tide.io", "Files of numbers: read_csv, write_csv, load_npy, save_npy, load_npz, save_npz.")

return io
