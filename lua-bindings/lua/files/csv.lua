-- files/csv.lua: tables in text (CSV, TSV) as tide.data.table: which columns are wanted, of which types, and what stands for a
-- value that is missing. What a cell is, csv_columns.c knows.
local tide = ...
local fail, describe = tide._fail, tide._describe
local csv = { name = "CSV" }

-- What stands for a missing value, as in pandas.
local MISSING <const> = { "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A",
    "NA", "NULL", "NaN", "None", "n/a", "nan", "null" }
local TYPES <const> = { int = true, float = true, bool = true, text = true }
local ALL <const> = math.maxinteger

--- find_column(fname, option, key, names, count): the number of a column that an option names.
function csv.find_column(fname, option, key, names, count)
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

--- check_letter(fname, option, letter): one character, which ends no line.
function csv.check_letter(fname, option, letter)
    if letter and (#letter ~= 1 or string.find(letter, "[\n\r]")) then
        fail('%s: option %s: one character expected, got "%s"', fname, option, letter)
    end
end

--- check_written_delimiter(delimiter): one that no number holds.
function csv.check_written_delimiter(delimiter)
    if #delimiter ~= 1 or string.find(delimiter, '[\n\r%w.+"_-]') then
        fail('write_csv: option delimiter: one character expected that no number holds, got "%s"', delimiter)
    end
end

--- check_decimal(fname, decimal, delimiter).
function csv.check_decimal(fname, decimal, delimiter)
    if decimal and decimal ~= "." and decimal ~= "," then
        fail('%s: option decimal: "." or "," expected, got "%s"', fname, decimal)
    elseif decimal and decimal == delimiter then
        fail('%s: option decimal: "%s" parts the columns already: {delimiter = ";"} says what else does', fname, decimal)
    end
end

-- ---- options ----

-- Names that are different: what has none is called by its number, and what another has goes on with .1, .2, as in pandas.
local function distinct(names, count)
    local own, taken = {}, {}
    for k = 1, count do
        local name = names and names[k] or ""
        name = name == "" and "c" .. k or name
        local plain, n = name, 0
        while taken[name] do
            n = n + 1
            name = plain .. "." .. n
        end
        own[k], taken[name] = name, true
    end
    return own
end

-- The numbers of the columns that are wanted, in their order.
local function chosen_columns(fname, chosen, names, count)
    local list, seen = {}, {}
    if chosen == nil then
        for k = 1, count do
            list[k] = k
        end
        return list
    end
    for _, key in ipairs(type(chosen) == "table" and chosen or { chosen }) do
        local k = csv.find_column(fname, "columns", key, names, count)
        if seen[k] then
            fail("%s: option columns: column %d is named twice", fname, k)
        end
        list[#list + 1], seen[k] = k, true
    end
    if #list == 0 then
        fail("%s: option columns: names or numbers of columns expected, got %s", fname, describe(chosen))
    end
    return list
end

local function check_type(fname, value)
    if not TYPES[value] then
        fail('%s: option types: "int", "float", "bool" or "text" expected, got %s', fname, describe(value))
    end
    return value
end

local function types_of(fname, given, wanted, names, count)
    local types = {}
    for k = 1, count do
        types[k] = "skip"
    end
    for _, k in ipairs(wanted) do
        types[k] = type(given) == "string" and check_type(fname, given) or "unknown"
    end
    for key, value in pairs(type(given) == "table" and given or {}) do
        local k = csv.find_column(fname, "types", key, names, count)
        types[k] = types[k] ~= "skip" and check_type(fname, value) or "skip"
    end
    return types
end

-- The words for a missing value: pandas' and those that are given; false: nothing but an empty cell.
local function words_of(fname, given)
    local words = given == false and {} or table.move(MISSING, 1, #MISSING, 1, {})
    for _, word in ipairs(type(given) == "table" and given or { given or nil }) do
        if type(word) ~= "string" then
            fail("%s: option missing: texts expected, got %s", fname, describe(word))
        end
        words[#words + 1] = word
    end
    return words
end

-- ---- reading ----

local function make(fname, columns, wanted, names)
    local list, values = {}, {}
    for place, k in ipairs(wanted) do
        local c = columns[k]
        list[place] = names[k]
        values[place] = c.type == "text" and tide.data._texts(c.values, c.bytes, c.offsets) or c.values
    end
    return tide.data._new_table(list, values)
end

local function begin(fname, path, o)
    for _, option in ipairs { "delimiter", "comment", "thousands" } do
        csv.check_letter(fname, option, o[option])
    end
    csv.check_decimal(fname, o.decimal, o.delimiter)
    if o.comment and o.comment == o.delimiter then
        fail('%s: option comment: "%s" parts the columns already', fname, o.comment)
    end
    local file, count, names, _, decimal = tide._csv_open(path, o, fname)
    if o.thousands and (o.thousands == decimal or string.find(o.thousands, "[%w+-]")) then
        fail('%s: option thousands: "%s" stands in numbers already', fname, o.thousands)
    end
    local named = distinct(names, count)
    local wanted = chosen_columns(fname, o.columns, named, count)
    local rules = { thousands = o.thousands, missing = words_of(fname, o.missing) }
    return file, types_of(fname, o.types, wanted, named, count), rules, wanted, named
end

--- table(fname, path, options): the whole file, or its first `rows` rows, as a table.
function csv.table(fname, path, o)
    local _range <close> = tide._stage_enter("read", path, fname)
    local file, types, rules, wanted, names = begin(fname, path, o)
    return make(fname, tide._csv_columns(file, types, rules, o.rows or ALL), wanted, names)
end

--- chunks(fname, path, options): a function that gives tables of `chunk` rows, of the types that the whole file has.
function csv.chunks(fname, path, o)
    local file, types, rules, wanted, names = begin(fname, path, o)
    local seen = tide._csv_columns(file, types, rules, 0)
    for k, c in ipairs(seen) do
        types[k] = c and (c.type == "unknown" and "float" or c.type) or "skip"
    end
    local left = o.rows or ALL
    return function()
        local _range <close> = tide._stage_enter("read", path, fname)
        local columns, n = nil, 0
        if left > 0 then
            columns, n = tide._csv_columns(file, types, rules, math.min(o.chunk, left))
        end
        left = left - n
        for k, c in ipairs(columns or {}) do
            if c and c.type == "bool" and seen[k].gaps then -- elsewhere one is missing: numbers, as in the whole
                c.values = c.values:to(tide.float64)
            end
        end
        return n > 0 and make(fname, columns, wanted, names) or nil
    end
end

--- write(names, columns, path, delimiter, header): a table's columns, so that they are read again as they are.
function csv.write(names, columns, path, delimiter, header)
    csv.check_written_delimiter(delimiter)
    local tensors, lists = {}, {}
    for k, c in ipairs(columns) do
        tensors[k] = (tide.is_tensor(c) and c or c.codes):detach():cpu():contiguous()
        lists[k] = not tide.is_tensor(c) and { c.bytes, c.offsets } or nil
    end
    if #tensors == 0 then
        fail("write_csv: the table has no columns")
    end
    tide._csv_write_columns(path, tensors, delimiter, header and names or nil, lists, MISSING)
end

--- match(head, path): CSV has no signature; its name ends so.
function csv.match(_, path)
    local name = string.gsub(string.lower(path), "%.gz$", "")
    return string.find(name, "%.csv$") ~= nil or string.find(name, "%.tsv$") ~= nil or string.find(name, "%.tab$") ~= nil
end

--- load(path): what tide.load gives.
function csv.load(path)
    return csv.table("load", path, {})
end

return csv
