-- data/table.lua: tide.data.table: columns of one length by name: tensors of numbers, and texts (data/texts.lua).
--
-- What is no method of a table is one of its columns: t.area, t["area"]; t:column("head") is one that has a method's name.
local tide = ...
local fail, declare, describe = tide._fail, tide._function, tide._describe
local texts, show = tide._require "data.texts", tide._require "data.table_show"
local protocol = tide._require "data.protocol"
local tables = {}

local Table = { __name = "Table" }
local methods = {}
tide._class("Table", Table)

local HEAD <const> = 5

local function new(names, columns)
    return setmetatable({ __names = names, __columns = columns }, Table)
end

local function copy(list) return table.move(list, 1, #list, 1, {}) end

-- The place of a column by its name.
local function place_of(self, name)
    for k, known in ipairs(self.__names) do
        if known == name then
            return k
        end
    end
end

local function column(self, name, fname)
    local k = place_of(self, name)
    if not k then
        fail("%s: no column %s; there are %s", fname, type(name) == "string" and "'" .. name .. "'" or describe(name),
            table.concat(self.__names, ", ", 1, math.min(#self.__names, 12)) .. (#self.__names > 12 and ", ..." or ""))
    end
    return self.__columns[k]
end

local function length(self)
    return self.__columns[1] and #self.__columns[1] or 0
end

local function numeric(c) return tide.is_tensor(c) and c.dtype ~= tide.bool end

-- What a column may be made of: texts, a tensor, a list of numbers, booleans or texts.
local function as_column(fname, name, value, n)
    local c = value
    if type(value) == "table" and getmetatable(value) == nil then
        local first = value[1] or value[2]
        c = type(first) == "string" and texts.of(string.format("%s: column '%s'", fname, name), value) or nil
        if not c then
            local ok, made = pcall(tide.tensor, value, math.type(first) == "float" and { dtype = tide.float64 } or {})
            c = ok and (made.dtype == tide.float32 and tide.tensor(value, { dtype = tide.float64 }) or made) or nil
        end
    elseif tide.is_tensor(value) then
        c = value:detach()
    end
    if tide.is_tensor(c) and c.is_quantized then
        fail("%s: column '%s' is %s: give its dequantize() instead", fname, name, string.match(tostring(c.dtype), "%w+$"))
    elseif not texts.is(c) and not (tide.is_tensor(c) and c:dim() == 1) then
        fail("%s: column '%s': a tensor of one dim or a list of numbers, booleans or texts expected, got %s", fname, name,
            tide.is_tensor(c) and "shape " .. tostring(c.shape) or describe(value))
    elseif n and #c ~= n then
        fail("%s: column '%s' has %d rows, the first %d", fname, name, #c, n)
    end
    return c
end

-- ---- rows ----

-- The table of the rows that an index tensor or a mask chooses.
local function take(self, key)
    local columns = {}
    for k, c in ipairs(self.__columns) do
        columns[k] = c[key]
    end
    return new(self.__names, columns)
end

local function narrow(self, first, last)
    local columns, n = {}, math.max(0, last - first + 1)
    for k, c in ipairs(self.__columns) do
        columns[k] = texts.is(c) and texts.narrow(c, first, n) or c:narrow(1, first, n)
    end
    return new(self.__names, columns)
end

-- Rows first to last, which count from the end where they are negative; what lies beyond the ends is left out.
local function range(self, first, last)
    local n = length(self)
    first, last = first < 0 and n + 1 + first or first, last < 0 and n + 1 + last or last
    first, last = math.max(first, 1), math.min(last, n)
    return narrow(self, first > last and 1 or first, first > last and 0 or last)
end

local function row(self, i)
    local values = {}
    for k, c in ipairs(self.__columns) do
        if tide.is_tensor(c) then
            values[self.__names[k]] = c[i]:item()
        else
            values[self.__names[k]] = c[i]
        end
    end
    return values
end

function Table.__index(self, key)
    if math.type(key) == "integer" then
        local n = length(self)
        if key >= 1 and key <= n or key <= -1 and key >= -n then
            return row(self, key)
        end
        return nil
    elseif tide.is_tensor(key) then
        if key:dim() ~= 1 or key:is_floating_point() or key.dtype == tide.bool and #key ~= length(self) then
            fail("table: a mask of %d rows, or row numbers in one dim, expected; got %s of shape %s", length(self), tostring(key.dtype),
                tostring(key.shape))
        end
        return take(self, key)
    elseif type(key) == "table" and math.type(key[1]) == "integer" and math.type(key[2] or key[1]) == "integer" then
        return range(self, key[1], key[2] or key[1])
    elseif methods[key] ~= nil then
        return methods[key]
    end
    local k = place_of(self, key)
    return k and self.__columns[k] or nil
end

function Table.__newindex(self, name, value)
    if type(name) ~= "string" or name == "" then
        fail("table: a column's name is a text, got %s", describe(name))
    elseif methods[name] then
        fail("table: a table's method is called '%s': t:with{%s = ...} adds a column of that name", name, name)
    end
    local k = place_of(self, name)
    local c = value ~= nil and as_column("table", name, value, #self.__names > (k and 1 or 0) and length(self) or nil) or nil
    self.__names, self.__columns = copy(self.__names), copy(self.__columns) -- other tables may have the same lists
    if c then
        k = k or #self.__names + 1
        self.__names[k], self.__columns[k] = name, c
    elseif k then
        table.remove(self.__names, k)
        table.remove(self.__columns, k)
    end
end

Table.__len = length

-- ---- methods ----

local function method(schema, doc, fn)
    local name = string.match(schema, "^([%w_]+)%(")
    methods[name] = declare(schema, doc, fn)
    return methods[name]
end

method("names(Table self) -> list", "The names of the columns, in their order.", function(self)
    return copy(self.__names)
end)

method("column(Table self, any name) -> any", "A column by its name: a tensor, or texts.", function(self, name)
    return column(self, name, "column")
end)

method("len(Table self) -> int", "How many rows there are: #t.", length)

method("get(Table self, int i) -> table", "Row i for a DataLoader: tensors without dims by name, and texts (\"\" where there is none).",
    function(self, i)
        local sample = {}
        i = protocol.place("table", i, length(self))
        for k, c in ipairs(self.__columns) do
            sample[self.__names[k]] = texts.is(c) and (c[i] or "") or c[i]
        end
        return sample
    end)

-- A batch of a DataLoader, in one step: what the samples of these rows are collated to.
function methods.get_batch(self, indices)
    local batch, rows = {}, tide.tensor(indices, { dtype = tide.int64 })
    for _, i in ipairs(indices) do
        protocol.place("table", i, length(self))
    end
    for k, c in ipairs(self.__columns) do
        local part = c[rows]
        if texts.is(part) then
            part = part:tolist()
            for at, text in ipairs(part) do
                part[at] = text or ""
            end
        end
        batch[self.__names[k]] = part
    end
    return batch
end

method("select(Table self, list names) -> Table", "These columns, in this order: t:select{\"area\", \"price\"}.", function(self, names)
    local columns = {}
    for k, name in ipairs(names) do
        columns[k] = column(self, name, "select")
    end
    return new(copy(names), columns)
end)

method("with(Table self, table columns) -> Table", "A table with these columns besides, {name = tensor or list}, in the order of their names; "
    .. "one that is there is replaced.", function(self, columns)
        local own = new(copy(self.__names), copy(self.__columns))
        local names = {}
        for name in pairs(columns) do
            if type(name) ~= "string" then
                fail("with: names of columns expected, got %s", describe(name))
            end
            names[#names + 1] = name
        end
        table.sort(names, tide._before)
        for _, name in ipairs(names) do
            local k = place_of(own, name) or #own.__names + 1
            own.__columns[k] = as_column("with", name, columns[name], #self.__names > 0 and length(self) or nil)
            own.__names[k] = name
        end
        return own
    end)

method("rows(Table self, int first, int last) -> Table", "Rows first to last, both among them; -1 is the last: t[{first, last}].", range)

method("head(Table self, int(0..) n=5) -> Table", "The first n rows.", function(self, n) return narrow(self, 1, math.min(n, length(self))) end)

method("tail(Table self, int(0..) n=5) -> Table", "The last n rows.", function(self, n)
    local all = length(self)
    n = math.min(n, all)
    return n == 0 and narrow(self, 1, 0) or narrow(self, all - n + 1, all)
end)

-- The rows in the order of a key; what is missing comes last, and equal rows stay in their order.
local function order_of(key, missing, descending)
    local known = missing and missing:logical_not():nonzero():squeeze(2)
    local order = (known and key[known] or key):argsort(1, descending, { stable = true })
    return known and tide.cat { known[order], missing:nonzero():squeeze(2) } or order
end

-- A column as numbers in its order, and which rows have no value (nil: none is without).
local function key_of(c)
    local missing
    if texts.is(c) then
        local ranks = texts.ranks(c)
        c, missing = ranks, ranks:eq(0)
    elseif c:is_floating_point() then
        missing = c:isnan()
    end
    return c, missing and missing:any():item() and missing or nil
end

method("sort(Table self, any column, *, bool descending=false) -> Table",
    "The rows in the order of a column, texts by their bytes; what is missing comes last, and equal rows stay in their order.",
    function(self, name, descending)
        local key, missing = key_of(column(self, name, "sort"))
        return #key == 0 and self or take(self, order_of(key, missing, descending))
    end)

-- ---- numbers ----

local STATISTICS <const> = { "count", "mean", "std", "min", "25%", "50%", "75%", "max", "missing" }

-- A quantile of sorted numbers, as NumPy works it out.
local function quantile(sorted, q)
    local at = (#sorted - 1) * q
    local low = math.floor(at)
    local a, b, share = sorted[low + 1]:item(), sorted[math.min(low + 2, #sorted)]:item(), at - low
    return share >= 0.5 and b - (b - a) * (1 - share) or a + (b - a) * share
end

local function statistics(c)
    local x = c:to(tide.float64)
    local known = x[x:isnan():logical_not()]
    local n, nan = #known, 0 / 0
    if n == 0 then
        return { 0, nan, nan, nan, nan, nan, nan, nan, #x }
    end
    local sorted = known:sort()
    return { n, known:mean():item(), n > 1 and known:std():item() or nan, sorted[1]:item(), quantile(sorted, 0.25),
        quantile(sorted, 0.5), quantile(sorted, 0.75), sorted[n]:item(), #x - n }
end

method("describe(Table self) -> Table", "count, mean, std, min, quartiles, max and the number of missing values of each column of numbers, as "
    .. "pandas has them.", function(self)
        local names, columns = { "statistic" }, { texts.of("describe", STATISTICS) }
        for k, c in ipairs(self.__columns) do
            if numeric(c) then
                names[#names + 1] = self.__names[k]
                columns[#columns + 1] = tide.tensor(statistics(c), { dtype = tide.float64 })
            end
        end
        return new(names, columns)
    end)

method("to_tensor(Table self, list? columns=nil, *, dtype? dtype=nil) -> Tensor",
    "Columns as those of a matrix, all of numbers and booleans if none are named; of texts the numbers of their categories. The default dtype "
    .. "if none is given.", function(self, names, dtype)
        local columns = {}
        for _, name in ipairs(names or self.__names) do
            local c = column(self, name, "to_tensor")
            if names or tide.is_tensor(c) then
                columns[#columns + 1] = texts.is(c) and c.codes or c
            end
        end
        if #columns == 0 then
            fail("to_tensor: there are no columns of numbers")
        end
        for k, c in ipairs(columns) do
            columns[k] = c:to(dtype or tide.default_dtype)
        end
        return tide.stack(columns, 2)
    end)

method("write_csv(Table self, str path, *, str delimiter=\",\", bool header=true)",
    "Write the table so that tide.data.table(path) reads it again; a missing value is an empty cell. The file appears whole or not at all.",
    function(self, path, delimiter, header)
        tide._require("files.csv").write(self.__names, self.__columns, path, delimiter, header)
    end)

-- ---- groups ----

local Groups = { __name = "Groups" }
Groups.__index = Groups
tide._class("Groups", Groups)

method("groupby(Table self, any column) -> Groups", "The rows by the values of a column: t:groupby(\"kind\"):mean(); count, sum, mean, std, min, "
    .. "max of the other columns of numbers, one row for each value in its order. Rows without a value are left out.", function(self, name)
        local key, missing = key_of(column(self, name, "groupby"))
        local kept = missing and take(self, missing:logical_not()) or self
        key = missing and key[missing:logical_not()] or key
        local values, inverse = tide.unique(key, { return_inverse = true })
        local c = column(kept, name, "groupby")
        local label = texts.is(c) and select(2, texts.ranks(c))(values) or values
        return setmetatable({ table = kept, name = name, label = label, inverse = inverse }, Groups)
    end)

-- Each column of numbers by group: fn(sum of what is there, how many, the values, 0 where there is none).
local function aggregate(self, fn)
    local names, columns, n = { self.name }, { self.label }, #self.label
    for k, c in ipairs(self.table.__columns) do
        if numeric(c) and self.table.__names[k] ~= self.name then
            local there = c:is_floating_point() and c:isnan():logical_not() or tide.ones(#c, { dtype = tide.bool })
            names[#names + 1], columns[#columns + 1] = self.table.__names[k], fn(self, c, there, n)
        end
    end
    return new(names, columns)
end

local function sum_of(self, values, n)
    return tide.zeros(n, { dtype = values.dtype }):index_add(1, self.inverse, values)
end

local function mean_of(self, c, there, n)
    local x = tide.where(there, c:to(tide.float64), 0)
    return sum_of(self, x, n) / sum_of(self, there:to(tide.int64), n)
end

local AGGREGATES <const> = {
    count = function(self, _, there, n) return sum_of(self, there:to(tide.int64), n) end,
    sum = function(self, c, there, n)
        return sum_of(self, c:is_floating_point() and tide.where(there, c, tide.zeros_like(c)) or c:to(tide.int64), n)
    end,
    mean = mean_of,
    std = function(self, c, there, n)
        local away = tide.where(there, c:to(tide.float64) - mean_of(self, c, there, n)[self.inverse], 0)
        local count = sum_of(self, there:to(tide.int64), n)
        return tide.where(count:gt(1), (sum_of(self, away * away, n) / (count - 1)):sqrt(), 0 / 0)
    end,
}
for name, reduce in pairs { min = "amin", max = "amax" } do
    AGGREGATES[name] = function(self, c, there, n)
        local empty = tide.zeros(n, { dtype = c.dtype })
        local found = empty:scatter_reduce(1, self.inverse[there], c[there], reduce, { include_self = false })
        return c:is_floating_point() and tide.where(sum_of(self, there:to(tide.int64), n):gt(0), found, 0 / 0) or found
    end
end
for name, fn in pairs(AGGREGATES) do
    Groups[name] = declare(name .. "(Groups self) -> Table", string.format("The %s of each column of numbers by group; missing values are left "
        .. "out.", name), function(self) return aggregate(self, fn) end)
end
Groups.size = declare("size(Groups self) -> Table", "How many rows each group has.", function(self)
    local count = tide.zeros(#self.label, { dtype = tide.int64 }):index_add(1, self.inverse, tide.ones(#self.inverse, { dtype = tide.int64 }))
    return new({ self.name, "size" }, { self.label, count })
end)
function Groups.__tostring(self) return string.format("Groups(%d by %s)", #self.label, self.name) end

-- ---- shown ----

function Table.__tostring(self) return show.text(self.__names, self.__columns) end

function Table.__display(self)
    return { ["text/plain"] = show.text(self.__names, self.__columns, tide._terminal_width()), ["text/html"] = show.html(self.__names, self.__columns) }
end

-- {name = column} in the order of the names, or {{name, column}, ...} in their own.
local function from_columns(given)
    local own = new({}, {})
    if #given > 0 then
        for k, pair in ipairs(given) do
            if type(pair) ~= "table" or type(pair[1]) ~= "string" or pair[2] == nil then
                fail("table: columns[%d]: {name, column} expected, got %s", k, describe(pair))
            end
            own = own:with { [pair[1]] = pair[2] }
        end
        return own
    end
    return own:with(given)
end

function tables.open(data)
    data._classes.Table, data._classes.Groups = Table, Groups
    data._new_table, data._texts = new, texts.new
    data.table = declare('table(any source, *, bool? header=nil, str? delimiter=nil, str? decimal=nil, str? thousands=nil, any columns=nil, '
        .. 'any types=nil, any missing=nil, str? comment=nil, int(0..) skip=0, int(0..)? rows=nil) -> Table',
        "A table of a CSV or TSV file, as tide.io.read_table reads it, or of columns: {name = tensor or list}, or {{name, column}, ...} where "
        .. "their order counts. t.name is a column, #t the number of rows, t[i] a row, t[{first, last}], t[mask] and t[indices] are tables.",
        function(source, header, delimiter, decimal, thousands, columns, types, missing, comment, skip, rows)
            if type(source) == "string" then
                return tide._require("files.csv").table("table", source, { header = header, delimiter = delimiter, decimal = decimal,
                    thousands = thousands, columns = columns, types = types, missing = missing, comment = comment, skip = skip, rows = rows })
            elseif type(source) ~= "table" or getmetatable(source) ~= nil then
                fail("table: a path or columns by name expected, got %s", describe(source))
            end
            return from_columns(source)
        end)
    tide._document(Table, "Table", "Table", "Columns of one length by name: t.area, #t, t[3], t[t.area:gt(50)], t[{1, 10}]; select, sort, head, "
        .. "describe, groupby, to_tensor, write_csv. t.new = tensor adds a column, t.old = nil takes one away. A DataLoader takes a table.")
end

return tables
