-- files/jsonl.lua: JSON lines, a value a line, as Lua's values in a row or as a tide.data.table; and the lines of texts.
local tide = ...
local fail, describe = tide._fail, tide._describe
local json = tide._require "files.json"
local jsonl = { name = "JSON lines" }

--- lines(fname, path): a function that gives the next line and its number, nil at the end.
function jsonl.lines(fname, path)
    local stream = tide._stream_open(path, fname)
    return function()
        if stream then
            local line, number = stream:line()
            if line then
                return line, number
            end
            stream:close()
            stream = nil
        end
    end
end

--- values(fname, path): a function that gives the next value and the number of its line; lines of blanks are passed over.
function jsonl.values(fname, path)
    local step = jsonl.lines(fname, path)
    return function()
        for line, number in step do
            if number == 1 then
                line = string.gsub(line, "^\xEF\xBB\xBF", "")
            end
            if string.find(line, "[^ \t]") then
                local value, problem = json.decode(line)
                if value == nil then
                    fail("%s: '%s', line %d: %s", fname, path, number, problem)
                end
                return value, number
            end
        end
    end
end

-- ---- columns ----

local function kind_of(value)
    return type(value) == "number" and math.type(value) or type(value)
end

-- What a column of so many rows is of: cells by row, and the kinds that were seen. Without a value: NaN, or no text.
local function make_column(cells, kinds, n)
    local gaps = kinds.gap
    local numbers, texts, values = kinds.integer or kinds.float, kinds.string or kinds.table, {}
    if not texts and not (numbers and kinds.boolean) then
        for k = 1, n do
            local cell = cells[k]
            if cell == nil then
                cell = 0 / 0
            elseif gaps and type(cell) == "boolean" then
                cell = cell and 1 or 0
            end
            values[k] = cell
        end
        local whole = not gaps and not kinds.float and (kinds.integer and tide.int64 or kinds.boolean and tide.bool)
        return tide.tensor(values, { dtype = whole or tide.float64 })
    end
    for k = 1, n do -- what is no text in a column of texts is shown as JSON has it
        local cell = cells[k]
        if cell ~= nil then
            values[k] = type(cell) == "string" and cell or json.encode(cell, "read_jsonl")
        end
    end
    return tide._require("data.texts").of("read_jsonl", values, n)
end

--- table(fname, path): objects as rows, their fields as columns in the order of their names.
function jsonl.table(fname, path)
    local names, columns, kinds, n = {}, {}, {}, 0
    for value, number in jsonl.values(fname, path) do
        if type(value) ~= "table" or value == json.null or json.is_list(value) then
            fail("%s: '%s', line %d: an object expected, got %s", fname, path, number, value == json.null and "null" or
                type(value) == "table" and "an array" or describe(value))
        end
        n = n + 1
        for name, cell in pairs(value) do
            if not columns[name] then
                names[#names + 1], columns[name], kinds[name] = name, {}, { count = 0 }
            end
            if cell ~= json.null then
                columns[name][n] = cell
                kinds[name][kind_of(cell)] = true
                kinds[name].count = kinds[name].count + 1
            end
        end
    end
    if n == 0 then
        fail("%s: '%s' holds no rows", fname, path)
    end
    table.sort(names, tide._before)
    local made = {}
    for k, name in ipairs(names) do
        kinds[name].gap = kinds[name].count < n
        made[k] = make_column(columns[name], kinds[name], n)
    end
    local _ = tide.data -- has the tables
    return tide.data._new_table(names, made)
end

--- match(head, path): it has no signature; its name ends so.
function jsonl.match(_, path)
    local name = string.gsub(string.lower(path), "%.gz$", "")
    return string.find(name, "%.jsonl$") ~= nil or string.find(name, "%.ndjson$") ~= nil
end

function jsonl.load(path)
    return jsonl.table("load", path)
end

return jsonl
