-- io.lua: tide.io: matrices and tables in text (.csv) and NumPy's arrays (.npy, .npz), both ways; what other files hold is
-- files/NAME.lua's. What a cell is (csv.c, files/csv.lua) and how an array lies in its file (engine/io/npy.c) is not known
-- here; columns, their names and their classes are.
local tide = ...
local fail, declare, describe = tide._fail, tide._function, tide._describe
local csv = tide._require "files.csv"
local find_column = csv.find_column
local io = {}

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

io.read_csv = declare(
    'read_csv(str path, *, bool? header=nil, str? delimiter=nil, str? decimal=nil, any columns=nil, any classes=nil, '
    .. "number? missing=nil, dtype? dtype=nil, int(1..)? chunk=nil) -> any, table",
    "A file of numbers as a matrix. With a header or classes a table too: columns by name (numbers, or the numbers of "
    .. "classes from 1 on as int64), names, and classes by column. columns chooses some, by name or number; classes "
    .. "names columns of texts, or gives {name = list of its classes}, as the table has them; missing is put where a "
    .. "cell is empty, NA, null, ?, - or the like. A delimiter of a blank is any run of blanks and tabs; decimal is what "
    .. "stands in front of fractions. Files may be packed by gzip; names and classes that are not UTF-8 are read as "
    .. "Windows-1252. Without options: no header, commas, points. With chunk = n it is read_table's iterator over tables of n rows.",
    function(path, header, delimiter, decimal, columns, classes, missing, dtype, chunk)
        if chunk then
            for _, option in ipairs { "classes", "missing", "dtype" } do
                if ({ classes = classes, missing = missing, dtype = dtype })[option] ~= nil then
                    fail("read_csv: option %s is for a matrix, and chunk gives tables: read_table has options for these", option)
                end
            end
            return csv.chunks("read_csv", path, { header = header, delimiter = delimiter, decimal = decimal, columns = columns, chunk = chunk })
        end
        header, delimiter, decimal, dtype = header or false, delimiter or ",", decimal or ".", dtype or tide.default_dtype
        csv.check_letter("read_csv", "delimiter", delimiter)
        csv.check_decimal("read_csv", decimal, delimiter)
        local _range <close> = tide._stage_enter("read", path, "read_csv")
        if missing and not tide._dtype_holds(dtype, missing) then
            fail("read_csv: option missing: %s does not hold %s", tostring(dtype), tide._number(missing))
        end
        local file, count, names = tide._csv_open(path, { delimiter = delimiter, header = header, decimal = decimal }, "read_csv")
        local places = places_of(columns, names, count)
        local known, open = classes_of(classes, names, count)
        local matrix, codes = tide._csv_convert(file, dtype, places, known, open, missing)
        if not header and classes == nil then
            return matrix
        end
        return matrix, gather(matrix, codes, places, known, open, names, count)
    end)

io.read_table = declare(
    "read_table(str path, *, bool? header=nil, str? delimiter=nil, str? decimal=nil, str? thousands=nil, any columns=nil, any types=nil, "
    .. "any missing=nil, str? comment=nil, int(0..) skip=0, int(0..)? rows=nil, int(1..)? chunk=nil) -> any",
    "A file of columns (CSV, TSV) as a tide.data.table: each column of integers (int64), numbers (float64), true and false (bool) or texts. "
    .. "Header, delimiter and decimal mark are found where they are not given. types says \"int\", \"float\", \"bool\" or \"text\" of all "
    .. "columns, or {name = type}; missing words that stand for no value besides those that pandas knows, false that there are none but an "
    .. "empty cell; comment the letter behind which a line means nothing; skip how many lines come first; rows how many are read. With "
    .. "chunk = n, for t in read_table(path, {chunk = n}) gives tables of n rows, of the types that the whole file has. Files may be packed by "
    .. "gzip; texts that are not UTF-8 are read as Windows-1252.",
    function(path, header, delimiter, decimal, thousands, columns, types, missing, comment, skip, rows, chunk)
        return csv[chunk and "chunks" or "table"]("read_table", path, { header = header, delimiter = delimiter, decimal = decimal,
            thousands = thousands, columns = columns, types = types, missing = missing, comment = comment, skip = skip, rows = rows, chunk = chunk })
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
    elseif x.is_quantized then
        fail("%s: x is %s: x:dequantize() or x:int_repr() is what such a file holds, tide.save keeps x as it is", fname, string.match(tostring(x.dtype), "%w+$"))
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
        csv.check_written_delimiter(delimiter)
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
    "A file that numpy.save wrote; where it wrote several arrays to one file, each is a result, as of tide.load.", function(path, device)
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
    .. "arrays. tide.load reads them too.", function(path, device)
        return tide._require("files.numpy").load_archive(path, device, "load_npz")
    end)

io.save_npz = declare("save_npz(table arrays, str path)",
    "Write tensors by name for numpy.load, whole or not at all; tide.save writes files that end in .npz so.",
    function(arrays, path)
        tide._require("files.numpy").save_archive(arrays, path, "save_npz")
    end)

io.write_gguf = declare("write_gguf(str path, table tensors, *, table? metadata=nil, any types=nil)",
    "Write tensors by name as a GGUF file, whole or not at all. types names how: F32, F16, BF16, F64, I8 to I64, or packed as "
    .. "Q8_0 or Q4_0 (rows of multiples of 32); by tensor, {name = type}, or one for all floating tensors, of which the packed "
    .. "ones are meant for matrices alone; nothing: as each one's dtype says. metadata has strings, booleans, numbers (the "
    .. "smallest kind that holds one) and lists of these. tide.load reads such files.", function(path, tensors, metadata, types)
        if types ~= nil and type(types) ~= "string" and type(types) ~= "table" then
            fail("write_gguf: option types: a type or a table of types by name expected, got %s", describe(types))
        end
        tide._require("files.gguf").save(path, tensors, metadata or {}, types)
    end)

tide._require("files.images").open(io)
tide._require("files.wav").open(io)

-- ---- lines ----

io.null = tide._require("files.json").null
tide._document(io.null, "null", "tide.io.null", "What null in JSON lines is. Example: tide.io.null")

io.read_lines = declare("read_lines(str path) -> function", "The lines of a text without their ends, and their numbers: for line, number in "
    .. "tide.io.read_lines(path) do. The file may be larger than memory, and packed by gzip.", function(path)
        return tide._require("files.jsonl").lines("read_lines", path)
    end)

io.read_jsonl = declare("read_jsonl(str path, *, bool table=false) -> any", "JSON lines: for value, number in tide.io.read_jsonl(path) do gives "
    .. "the value of each line and the line's number, with tide.io.null for null. With table = true objects become a tide.data.table, their "
    .. "fields its columns in the order of their names; what is nested is text of JSON there. The file may be packed by gzip.",
    function(path, as_table)
        return tide._require("files.jsonl")[as_table and "table" or "values"]("read_jsonl", path)
    end)

-- ---- archives ----

io.open_tar = declare("open_tar(str path) -> Archive", "An archive of tar whose files are read one by one: #a, a:names(), a:read(name). "
    .. "tide.data.tar reads samples in a row.", function(path)
        return tide._require("files.tar").archive(path, "open_tar")
    end)

-- ---- Arrow's C data interface ----

io.from_arrow = declare("from_arrow(any schema, any array) -> any", "A tensor, or a tide.data.table, of the columns that a host program in C hands "
    .. "over by the addresses of its struct ArrowSchema and struct ArrowArray, as light userdata. Both are taken, and released when nothing of "
    .. "them is in use; numbers are not copied. Values that are missing are NaN, or no text.", function(schema, array)
        return tide._require("files.arrow").read(schema, array)
    end)

io.to_arrow = declare("to_arrow(any x) -> any", "The structs of Arrow's C data interface of a tensor of one dim or a tide.data.table: s.schema and "
    .. "s.array are their addresses, as light userdata, for a host program in C, or from_arrow, to take. s releases what nobody took. Numbers "
    .. "are not copied.", function(x)
        return tide._require("files.arrow").write(x)
    end)

tide._document(io, "io", "tide.io", "Files of numbers: read_csv, read_table, write_csv, read_lines, read_jsonl, open_tar, from_arrow, to_arrow, load_npy, "
    .. "save_npy, load_npz, save_npz, write_gguf; images: read_image, decode_image, write_png, write_jpeg; sound: read_audio, write_wav.")

return io
