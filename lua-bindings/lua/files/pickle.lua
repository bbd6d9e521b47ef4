-- files/pickle.lua: what a pickle of Python describes. Pickles are programs; here each instruction builds a description
-- and none calls anything:
--   numbers, strings, true, false   themselves; bytes are strings too
--   pickle.None
--   {list = {...}}                  a list, a tuple, a set
--   {pairs = {{key, value}, ...}}   a dict
--   {global = "module.name"}        a class or a function, by its name
--   {call = name, args = value}     what would be called; with state (what it would be given then), pairs, list
--   {stored = value}                a reference to what lies outside the pickle
--   {long = bytes}                  an integer beyond 64 bits
-- What one instruction keeps and others read is one and the same table, so that descriptions may hold themselves. What
-- they take is bounded by a multiple of the bytes that were read.
local tide = ...
local pickle = {}

local MAX_STEPS <const>, FIRST_WINDOW <const>, MAX_WINDOW <const> = 4000000, 1 << 16, 1 << 28
local Mark, None = {}, setmetatable({}, { __name = "None" })
pickle.None = None

-- Where a pickle is broken is raised as a table, so that faults of ours stay errors.
local function broken(what) error({ pickle = what }, 0) end

-- ---- the bytes ----

local function take(vm, n)
    if n < 0 or n > #vm.bytes - vm.at + 1 then
        error(vm.more, 0)
    end
    vm.at = vm.at + n
    return string.sub(vm.bytes, vm.at - n, vm.at - 1)
end

local function number(vm, format) return (string.unpack(format, take(vm, string.packsize(format)))) end

local function line(vm)
    local stop = string.find(vm.bytes, "\n", vm.at, true) or error(vm.more, 0)
    local text = string.sub(vm.bytes, vm.at, stop - 1)
    vm.at = stop + 1
    return text
end

-- ---- the stack ----

local function push(vm, value)
    vm.n = vm.n + 1
    vm.stack[vm.n] = value
end

local function pop(vm)
    if vm.n == 0 or vm.stack[vm.n] == Mark then
        broken("takes from an empty stack")
    end
    local value = vm.stack[vm.n]
    vm.stack[vm.n], vm.n = nil, vm.n - 1
    return value
end

-- What lies above the last mark, which goes too.
local function pop_marked(vm)
    local first = vm.n
    while first > 0 and vm.stack[first] ~= Mark do
        first = first - 1
    end
    if first == 0 then
        broken("a mark is missing")
    end
    local items = table.move(vm.stack, first + 1, vm.n, 1, {})
    for k = first, vm.n do
        vm.stack[k] = nil
    end
    vm.n = first - 1
    return items
end

local function top(vm)
    if vm.n == 0 or vm.stack[vm.n] == Mark then
        broken("takes from an empty stack")
    end
    return vm.stack[vm.n]
end

-- ---- numbers and texts ----

-- The text of an integer, as protocol 0 has it; 00 and 01 are truths.
local function read_integer(text)
    if text == "00" or text == "01" then
        return text == "01"
    end
    local digits = string.match(text, "^%s*([+-]?%d+)L?%s*$") or broken("an integer that is none")
    return math.tointeger(tonumber(digits)) or { long = digits }
end

local special = { nan = 0 / 0, inf = math.huge, ["-inf"] = -math.huge }

local function read_float(text)
    local value = special[text] or tonumber(text)
    return value and value + 0.0 or broken("a number that is none")
end

local function long(vm, n)
    local bytes = take(vm, n)
    push(vm, n == 0 and 0 or n > 0 and n <= 8 and string.unpack("<i" .. n, bytes) or { long = bytes })
end

local escapes = { n = "\n", r = "\r", t = "\t", a = "\a", b = "\b", f = "\f", v = "\v", ["\n"] = "" }

-- A string as Python's repr writes it.
local function unquote(text)
    local inner = string.match(text, "^'(.*)'%s*$") or string.match(text, '^"(.*)"%s*$') or broken("a string without quotes")
    return (string.gsub(string.gsub(inner, "\\x(%x%x)", function(digits)
        return digits == "5c" and "\\\\" or string.char(tonumber(digits, 16)) -- the second round reads it as one
    end), "\\(.)", function(c) return escapes[c] or c end))
end

-- \uXXXX and \UXXXXXXXX of a text that is Latin-1 besides.
local function raw_unicode(text)
    text = string.gsub(text, "[\x80-\xff]", function(c) return utf8.char(string.byte(c)) end)
    return (string.gsub(string.gsub(text, "\\u(%x%x%x%x)", function(digits)
        return utf8.char(tonumber(digits, 16))
    end), "\\U(%x%x%x%x%x%x%x%x)", function(digits)
        local code = tonumber(digits, 16)
        return code <= 0x10FFFF and utf8.char(code) or broken("a character that is none")
    end))
end

-- ---- the instructions ----

local function name_global(vm, module, name)
    local text = tostring(module) .. "." .. tostring(name)
    vm.globals[text] = true
    push(vm, { global = text })
end

local function refer(vm, id)
    local value = { stored = id }
    table.insert(vm.stored, value)
    push(vm, value)
end

-- A class's name, also where it is referred to as {"module", class, ...}.
local function name_of(fn)
    local stored = type(fn) == "table" and type(fn.stored) == "table" and fn.stored.list
    fn = stored and stored[2] or fn
    return type(fn) == "table" and fn.global or "?"
end

local function call(vm)
    local args, fn = pop(vm), pop(vm)
    push(vm, { call = name_of(fn), args = type(args) == "table" and args or { list = {} } })
end

-- Pairs go into a dict, or into an object that may be one.
local function add_pairs(target, items)
    if type(target) ~= "table" or not (target.pairs or target.call) then
        broken("sets an item of what has none")
    elseif #items % 2 == 1 then
        broken("a key without a value")
    end
    target.pairs = target.pairs or {}
    for k = 1, #items, 2 do
        table.insert(target.pairs, { items[k], items[k + 1] })
    end
end

local function append(target, items)
    if type(target) ~= "table" or not (target.list or target.call) then
        broken("appends to what is no list")
    end
    target.list = target.list or {}
    table.move(items, 1, #items, #target.list + 1, target.list)
end

local function tuple(n)
    return function(vm)
        local items = {}
        for k = n, 1, -1 do
            items[k] = pop(vm)
        end
        push(vm, { list = items })
    end
end

local function get(vm, key)
    local value = vm.memo[key]
    if value == nil then
        broken("reads what it never kept")
    end
    push(vm, value)
end

local function constant(value) return function(vm) push(vm, value) end end
local function read_number(format) return function(vm) push(vm, number(vm, format)) end end
local function read_text(format) return function(vm) push(vm, take(vm, number(vm, format))) end end
local function empty_list(vm) push(vm, { list = {} }) end
local function marked_list(vm) push(vm, { list = pop_marked(vm) }) end
local function nothing() end

local function append_marked(vm)
    local items = pop_marked(vm)
    append(top(vm), items)
end

local steps = {
    ["("] = function(vm) push(vm, Mark) end,
    ["0"] = function(vm) pop(vm) end,
    ["1"] = function(vm) pop_marked(vm) end,
    ["2"] = function(vm) push(vm, top(vm)) end,
    ["N"] = constant(None), ["\x88"] = constant(true), ["\x89"] = constant(false),
    ["K"] = read_number("<I1"), ["M"] = read_number("<I2"), ["J"] = read_number("<i4"), ["G"] = read_number(">d"),
    ["I"] = function(vm) push(vm, read_integer(line(vm))) end,
    ["L"] = function(vm) push(vm, read_integer(line(vm))) end,
    ["F"] = function(vm) push(vm, read_float(line(vm))) end,
    ["\x8a"] = function(vm) long(vm, number(vm, "<I1")) end,
    ["\x8b"] = function(vm) long(vm, number(vm, "<i4")) end,
    ["U"] = read_text("<I1"), ["T"] = read_text("<i4"), ["X"] = read_text("<I4"), ["\x8c"] = read_text("<I1"),
    ["\x8d"] = read_text("<i8"), ["B"] = read_text("<I4"), ["C"] = read_text("<I1"), ["\x8e"] = read_text("<i8"),
    ["\x96"] = read_text("<i8"),
    ["S"] = function(vm) push(vm, unquote(line(vm))) end,
    ["V"] = function(vm) push(vm, raw_unicode(line(vm))) end,
    ["}"] = function(vm) push(vm, { pairs = {} }) end,
    ["]"] = empty_list, [")"] = empty_list, ["\x8f"] = empty_list,
    ["t"] = marked_list, ["l"] = marked_list, ["\x91"] = marked_list,
    ["d"] = function(vm)
        local made = { pairs = {} }
        add_pairs(made, pop_marked(vm))
        push(vm, made)
    end,
    ["\x85"] = tuple(1), ["\x86"] = tuple(2), ["\x87"] = tuple(3),
    ["a"] = function(vm)
        local item = pop(vm)
        append(top(vm), { item })
    end,
    ["e"] = append_marked, ["\x90"] = append_marked,
    ["s"] = function(vm)
        local value, key = pop(vm), pop(vm)
        add_pairs(top(vm), { key, value })
    end,
    ["u"] = function(vm)
        local items = pop_marked(vm)
        add_pairs(top(vm), items)
    end,
    ["c"] = function(vm)
        local module = line(vm)
        name_global(vm, module, line(vm))
    end,
    ["\x93"] = function(vm)
        local name, module = pop(vm), pop(vm)
        name_global(vm, module, name)
    end,
    ["R"] = call, ["\x81"] = call,
    ["\x92"] = function(vm)
        pop(vm)
        call(vm)
    end,
    ["i"] = function(vm)
        local module = line(vm)
        name_global(vm, module, line(vm))
        local fn, items = pop(vm), pop_marked(vm)
        push(vm, { call = fn.global, args = { list = items } })
    end,
    ["o"] = function(vm)
        local items = pop_marked(vm)
        push(vm, { call = name_of(table.remove(items, 1)), args = { list = items } })
    end,
    ["b"] = function(vm)
        local state, target = pop(vm), top(vm)
        if type(target) == "table" and target.call then
            target.state = state
        end
    end,
    ["Q"] = function(vm) refer(vm, pop(vm)) end,
    ["P"] = function(vm) refer(vm, line(vm)) end,
    ["q"] = function(vm) vm.memo[number(vm, "<I1")] = top(vm) end,
    ["r"] = function(vm) vm.memo[number(vm, "<I4")] = top(vm) end,
    ["p"] = function(vm) vm.memo[tonumber(line(vm)) or -1] = top(vm) end,
    ["\x94"] = function(vm)
        vm.memo[vm.kept] = top(vm)
        vm.kept = vm.kept + 1
    end,
    ["h"] = function(vm) get(vm, number(vm, "<I1")) end, ["j"] = function(vm) get(vm, number(vm, "<I4")) end,
    ["g"] = function(vm) get(vm, tonumber(line(vm)) or -1) end,
    ["\x80"] = function(vm) take(vm, 1) end, ["\x95"] = function(vm) take(vm, 8) end,
    ["\x97"] = nothing, ["\x98"] = nothing,
}

-- ---- a pickle ----

local More = {} -- raised where the bytes end

-- The machine when it has ended, and the description.
local function run(bytes)
    local vm = { bytes = bytes, at = 1, stack = {}, n = 0, memo = {}, kept = 0, globals = {}, stored = {}, more = More }
    for _ = 1, MAX_STEPS do
        local code = take(vm, 1)
        if code == "." then
            return vm, pop(vm)
        end
        local step = steps[code] or broken(string.format("an instruction that pickle has not (byte %d)", string.byte(code)))
        step(vm)
    end
    broken(string.format("longer than %d instructions", MAX_STEPS))
end

--- describe(read, at): of the pickle that begins at place `at` of what read(at, n) reads {value = description, stop = where
--- it ends, globals = {name = true}, stored = list of all references}; nil and what is wrong. It is looked for in ever
--- longer pieces, since what lies behind it may be long.
function pickle.describe(read, at)
    local window = FIRST_WINDOW
    while true do
        local bytes = read(at, window)
        local ok, vm, value = pcall(run, bytes)
        if ok then
            return { value = value, stop = at + vm.at - 1, globals = vm.globals, stored = vm.stored }
        elseif vm == More and (#bytes < window or window >= MAX_WINDOW) then
            return nil, #bytes < window and "cut off" or string.format("longer than %d MB", MAX_WINDOW >> 20)
        elseif vm ~= More then
            return nil, type(vm) == "table" and vm.pickle or error(vm, 0)
        end
        window = window * 16
    end
end

--- list_of(value): the items of a list or a tuple; an empty one of anything else.
function pickle.list_of(value) return type(value) == "table" and value.list or {} end

return pickle
