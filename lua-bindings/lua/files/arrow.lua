-- files/arrow.lua: columns that a host program hands over, and tables that it is handed, by Arrow's C data interface.
local tide = ...
local arrow = {}

--- read(schema, array): a tensor, a column of texts, or a table where they are a struct.
function arrow.read(schema, array)
    local columns, is_table, n = tide._arrow_read(schema, array)
    local texts, names, values, seen = tide._require("data.texts"), {}, {}, {}
    for k, column in ipairs(columns) do
        local name = column[1]
        while name == "" or seen[name] do
            name = name == "" and "c" .. k or name .. ".1"
        end
        names[k], seen[name] = name, true
        values[k] = type(column[2]) == "table" and texts.of("from_arrow", column[2], n) or column[2]
    end
    local _ = tide.data -- has the tables
    return is_table and tide.data._new_table(names, values) or values[1]
end

local function column_of(name, c)
    if tide.is_tensor(c) then
        return { name, c:detach():cpu():contiguous() }
    end
    return { name, c.codes:cpu():contiguous(), c.bytes, c.offsets }
end

--- write(x): {schema, array} of a tensor of one dim, a column of texts or a table.
function arrow.write(x)
    local texts = tide._require "data.texts"
    if tide.is_tensor(x) or texts.is(x) then
        return tide._arrow_write { column_of("", x) }
    elseif getmetatable(x) ~= tide.data._classes.Table then
        tide._fail("to_arrow: a tensor of one dim or a table expected, got %s", tide._describe(x))
    end
    local columns = {}
    for k, name in ipairs(x:names()) do
        if string.find(name, "\0", 1, true) then
            tide._fail("to_arrow: the name of column %d holds a NUL byte", k)
        end
        columns[k] = column_of(name, x:column(name))
    end
    return tide._arrow_write(columns, #x)
end

return arrow
