-- habits: what Lua writes where Python would write something else: one line for a complaint of the
-- compiler and for an error of a call.

local names = import "names"

local habits = {}

-- The lines' first words, with what Lua writes.
local STARTS = {
    import = 'modules: local name = require "name"; tide is there already',
    from = 'modules: local name = require "name"; tide is there already',
    def = "functions: function f(x) ... end",
    class = "classes: for a module, see ?tide.nn.Module; otherwise tables with metatables",
    with = "contexts: local _ <close> = tide.no_grad(), or tide.no_grad(function() ... end)",
    try = "errors are caught by: local ok, err = pcall(function() ... end)",
    except = "errors are caught by: local ok, err = pcall(function() ... end)",
    raise = 'errors: error("message")',
    let = "variables: local x = 5",
    var = "variables: local x = 5",
    const = "constants: local x <const> = 5",
    elif = "the word is elseif: if a then ... elseif b then ... end",
    del = "to forget a variable: x = nil",
    super = "a class's own init is Net:init(...); nn.class(name, Parent), and Parent.init(self, ...) calls the parent's (?nn.Module)",
    assert = 'a call: assert(condition, "message")',
    ["for"] = "loops: for i = 1, 3 do ... end, or for i, x in ipairs(list) do ... end",
    ["while"] = "loops: while condition do ... end",
    ["if"] = "conditions: if condition then ... end",
    ["else"] = "conditions: if condition then ... else ... end",
}

local OPERATORS = {
    ["!"] = {["="] = "not equal is ~=: a ~= b (for the elements of tensors a:ne(b))", "not: not x"},
    ["@"] = {"the product of matrices is x:matmul(y)"},
    ["?"] = {"a choice: condition and a or b"},
    ["&"] = {["&"] = "and: a and b"},
    ["|"] = {["|"] = "or: a or b"},
    ["*"] = {["*"] = "powers: x ^ 2"},
    ["\\"] = {"a statement goes on over lines by itself; functions: function(x) ... end"},
}

local WORDS = {
    lambda = "functions without a name: function(x) return x * 2 end",
    is = "to compare: x == nil, x ~= nil",
    ["in"] = "to look something up: t[key] ~= nil",
}

local COMMENT = "comments begin with --"

local function joined(a, b)
    return a and b and a.last + 1 == b.first
end

-- Tokens of the line of code in which byte `at` stands, the index of the one there, and the line.
local function tokens_at(code, at)
    local first = 1
    for newline in string.gmatch(code, "()\n") do
        if newline >= at then
            break
        end
        first = newline + 1
    end
    local last = string.find(code, "\n", at, true) or #code + 1
    local line = string.sub(code, first, last - 1)
    local tokens, here = names.tokens(line)
    for i, token in ipairs(tokens) do
        if token.first + first - 1 <= at then
            here = i
        end
    end
    return tokens, here, line
end

-- The text from token `first` to token `last`.
local function text_of(tokens, first, last, line)
    return tokens[first] and tokens[last] and string.sub(line, tokens[first].first, tokens[last].last) or ""
end

-- Operators that Python writes before =: Lua's, and the method that writes a tensor in place.
local IN_PLACE = {
    ["+"] = {"+", "add_"}, ["-"] = {"-", "sub_"}, ["*"] = {"*", "mul_"}, ["/"] = {"/", "div_"}, ["//"] = {"//", "floor_divide_"},
    ["%"] = {"%", "remainder_"}, ["**"] = {"^", "pow_"}, ["^"] = {"~", "bitwise_xor_"}, ["|"] = {"|", "bitwise_or_"},
    ["&"] = {"&", "bitwise_and_"}, ["<<"] = {"<<"}, [">>"] = {">>"}, ["@"] = {},
}

local PARTS = {["and"] = true, ["or"] = true, ["not"] = true, ["true"] = true, ["false"] = true, ["nil"] = true} -- words of values

-- What is said of "x *= 2" about whose tokens around i the compiler complains, or nil.
local function augmented(tokens, i, line)
    for stop = i, math.min(i + 2, #tokens) do
        local from, sign = stop, ""
        while tokens[stop].text == "=" and joined(tokens[from - 1], tokens[from]) and string.find(tokens[from - 1].text, "^[-+*/%%^|&@<>]+$") do
            from = from - 1
            sign = tokens[from].text .. sign
        end
        local known = IN_PLACE[sign]
        local first = from - 1
        while known and first > 0 do -- back to where the variable begins: a.b[1]
            local opened = tokens[first].text == "]" and names.opening(tokens, first)
            if opened then
                first = opened - 1
            elseif tokens[first].kind == "name" and tokens[first - 1] and tokens[first - 1].text == "." then
                first = first - 2
            else
                break
            end
        end
        if known and tokens[first] and tokens[first].kind == "name" then
            local last = stop -- of the value: up to a word that begins something else
            while tokens[last + 1] and tokens[last + 1].text ~= ";" and (tokens[last + 1].kind ~= "keyword" or PARTS[tokens[last + 1].text]) do
                last = last + 1
            end
            local name, value = text_of(tokens, first, from - 1, line), text_of(tokens, stop + 1, last, line)
            value = value ~= "" and value or "1"
            local whole = last - stop > 1 and sign ~= "+" and "(" .. value .. ")" or value
            if sign == "@" then
                return string.format("to change a variable: %s = %s:matmul(%s)", name, name, value)
            end
            return string.format("to change a variable: %s = %s %s %s%s", name, name, known[1], whole,
                known[2] and string.format(" (a tensor in place: %s:%s(%s))", name, known[2], value) or "")
        end
    end
end

local MODES = {no_grad = true, enable_grad = true, inference_mode = true, autocast = true}

local function operator_hint(tokens, i, line)
    local changed = augmented(tokens, i, line)
    if changed then
        return changed
    elseif tokens[1].text == "@" then
        for _, token in ipairs(tokens) do
            if MODES[token.text] then
                return string.format("no decorators: in the function's first line, local _ <close> = tide.%s()", token.text)
            end
        end
        return "no decorators: behind the function, f = decorate(f)"
    end
    for k = math.max(1, i - 1), i do
        local token, next_one = tokens[k], tokens[k + 1]
        local known = token and token.kind == "op" and OPERATORS[token.text]
        local found = known and (joined(token, next_one) and known[next_one.text] or known[1])
        if found then
            return found
        end
    end
    local before, token, after = tokens[i - 1], tokens[i], tokens[i + 1]
    if token.text == "+" and joined(before, token) and before.text == "+"
        or after and token.text == "+" and after.text == "+" and joined(token, after) then
        return "to count: i = i + 1"
    end
end

-- The bracket that is open before token i, and the token before it.
local function open_bracket(tokens, i)
    local depth = 0
    for k = i - 1, 1, -1 do
        local text = tokens[k].kind == "op" and tokens[k].text
        if text == ")" or text == "]" or text == "}" then
            depth = depth + 1
        elseif text == "(" or text == "[" or text == "{" then
            if depth == 0 then
                return text, tokens[k - 1]
            end
            depth = depth - 1
        end
    end
end

local function is_value(token)
    return token and (token.kind == "name" or token.kind == "string"
        or token.text == ")" or token.text == "]")
end

-- Python's index between the brackets that open at token `open`, as Tide writes it: "1:3, :-1" is "2:3, :-2"; or nil.
local function index_text(tokens, open)
    local parts, part, at = {}, {sign = "", colons = 0}, open + 1
    while tokens[at] and tokens[at].text ~= "]" do
        local text, kind = tokens[at].text, tokens[at].kind
        if text == ":" or text == "::" then
            part.colons = part.colons + #text
        elseif text == "-" then
            part.sign = "-"
        elseif kind == "number" and math.tointeger(tonumber(text)) and not part[part.colons] then
            part[part.colons], part.sign = math.tointeger(tonumber(part.sign .. text)), ""
        elseif text == "..." or text == "None" or text == "nil" then
            part.word = text == "..." and text or "nil"
        elseif text == "," then
            parts[#parts + 1], part = part, {sign = "", colons = 0}
        else
            return nil
        end
        at = at + 1
    end
    parts[#parts + 1] = part
    for k, one in ipairs(parts) do
        local first, stop, step = one[0], one[1], one[2]
        first = first and first >= 0 and first + 1 or first
        stop = stop and stop <= 0 and stop - 1 or stop
        if step and step < 0 or stop == -1 and one[1] == 0 or one.colons > 2 then
            return nil
        end
        parts[k] = one.word or one.colons == 0 and tostring(first or "")
            or (first or "") .. ":" .. (stop or "") .. (step and ":" .. step or "")
    end
    return tokens[at] and table.concat(parts, ", ") or nil
end

local RANGES = 'ranges: x["1:2"] or x[{{1, 2}}], both ends counted from 1'
local PAIR = "several values: local a, b = f(); a pair among them is one table: local out, state = lstm(x), then h, c = state[1], state[2]"

local function bracket_hint(tokens, i)
    local token = tokens[i]
    local open, owner = open_bracket(tokens, i)
    local later = false -- is there an assignment behind it?
    for k = i + 1, #tokens do
        later = later or tokens[k].text == "="
    end
    if token.text == "(" and tokens[i - 1] and tokens[i - 1].text == "," and (tokens[1].text == "local" or tokens[1].text == "for")
        or open == "(" and token.text == "," and later and (not owner or owner.text == ",") then
        return tokens[1].text == "for" and "a pair is one table: for i, pair in ipairs(list) do local x, y = pair[1], pair[2] ... end" or PAIR
    elseif open == "(" and token.text == "=" and is_value(owner) then
        local name = tokens[i - 1].text
        return string.format("options go into a table: f(x, {%s = ...})%s", name,
            (name == "dim" or name == "axis") and "; dims count from 1, -1 is the last" or "")
    elseif open == "[" and is_value(owner) and token.text == "]" and i > 2 and tokens[i - 2].text == ":" then -- x[a:b], a call as it seems
        return RANGES
    elseif open == "[" and is_value(owner) and (token.text == ":" or token.text == "::" or token.text == ",") then
        local first = i
        while tokens[first - 1] ~= owner do
            first = first - 1
        end
        local text, ranges = index_text(tokens, first), false
        for k = first, #tokens do
            ranges = ranges or tokens[k].text == ":" or tokens[k].text == "::"
        end
        if text and ranges then
            return string.format('ranges are texts, counted from 1, and have both ends: %s["%s"] (?indexing)',
                owner.kind == "name" and owner.text or "x", text)
        elseif ranges then
            return RANGES
        end
        return 'several indices: x[{1, 2}] or x["1, 2"], counted from 1'
    elseif open == "(" and token.text == "," and not is_value(owner) then
        return "lists and tuples are tables: {1, 2}"
    elseif open == "{" then
        for k = i, 2, -1 do
            if tokens[k].text == "{" then
                break
            elseif tokens[k].text == ":" and not joined(tokens[k], tokens[k + 1]) then
                return "names and values are a table: {a = 1, b = 2}, {[key] = value}"
            end
        end
    elseif token.text == "[" or open == "[" and not is_value(owner) then
        return "lists: {1, 2}"
    end
end

local FORMAT = "texts with values in them: (\"loss %.4f\"):format(loss:item())"

-- What is said of a method of a text in quotes, which Lua calls where the text stands in parentheses.
local function text_method(tokens, i)
    for k = i, math.max(1, i - 1), -1 do
        local before, after = tokens[k - 1], tokens[k + 1]
        if before and before.kind == "string" and string.find(tokens[k].text, "^[.:]$") and after and after.kind == "name" then
            return after.text == "format" and FORMAT or after.text == "join" and "a list as a text: table.concat(list, \", \")"
                or string.format("a text's methods: (\"text\"):%s()", rawget(string, after.text) and after.text or "upper")
        end
    end
end

-- The module of PyTorch that a line of Python imports, and the name it shall have: "nn.functional", "F".
local function imported(tokens)
    local path, at = "", 2
    while tokens[at] and (tokens[at].kind == "name" or tokens[at].text == ".") do
        if tokens[at].kind == "name" and tokens[at - 1].kind == "name" and at > 2 then
            break -- the word behind the path
        end
        path, at = path .. tokens[at].text, at + 1
    end
    local word, name = tokens[at] and tokens[at].text, tokens[at + 1] and tokens[at + 1].text
    if tokens[1].text == "from" then
        path = word == "import" and name and string.find(name, "^%a") and path .. "." .. name or path
        name = tokens[at + 2] and tokens[at + 2].text == "as" and tokens[at + 3] and tokens[at + 3].text or nil
    elseif word ~= "as" then
        name = nil
    end
    return path, name or string.match(path, "[%w_]*$")
end

-- What is said of a name of Python's modules that shall be loaded, or nil.
function habits.module(path, name)
    local root, rest = string.match(path, "^([%w_]+)%.?(.*)$")
    if root ~= "torch" and root ~= "tide" then
        local known = habits.name(path) or habits.name(root)
        return root and known and string.format("for %s Lua writes %s", root, known) or nil
    elseif rest == "" then
        return (root == "torch" and "torch is tide, which" or "tide") .. " is there already: tide.randn(2, 3)"
    end
    local value = names.tide()
    for part in string.gmatch(rest, "[%w_]+") do
        value = type(value) == "table" and names.field(value, part) or nil
    end
    return value ~= nil and string.format("local %s = tide.%s", name or string.match(rest, "[%w_]+$"), rest) or nil
end

-- The head of Lua's loop for Python's "for VARIABLES in ITERABLE", given the two as text.
local function loop_head(variables, iterable)
    local single = string.find(variables, "^[%a_][%w_]*$")
    local range = single and string.match(iterable, "^range%((.*)%)$")
    local items, counted = string.match(iterable, "^(.-)[.:]items%(%)$"), string.match(iterable, "^enumerate%((.*)%)$")
    if range then
        local list = {}
        for part in string.gmatch(range, "[^,]+") do
            list[#list + 1] = string.match(part, "^%s*(.-)%s*$")
        end
        local stop = list[2] and (math.tointeger(tonumber(list[2])) and string.format("%d", tonumber(list[2]) - 1) or list[2] .. " - 1")
        return string.format("for %s = %s, %s%s do", variables, stop and list[1] or "1", stop or list[1] or "n", list[3] and ", " .. list[3] or "")
    elseif items then
        return string.format("for %s in pairs(%s) do", variables, items)
    elseif single or counted then
        return string.format("for %s in ipairs(%s) do", single and "_, " .. variables or variables, counted or iterable)
    end
end

local MADE = "lists are made by loops: local list = {} for i = 1, 3 do list[i] = i * i end"

-- What is said of "[f(x) for x in xs if x > 0]" on the line, of any kind of brackets, or nil.
local function comprehension(tokens, line)
    local at, close, open_at
    for k, token in ipairs(tokens) do
        if token.text == "for" and token.kind == "keyword" and k > 1 then
            local depth = 0
            for b = k - 1, 1, -1 do
                local text = tokens[b].text
                depth = depth + (string.find(text, "^[%)%]}]$") and 1 or string.find(text, "^[%(%[{]$") and -1 or 0)
                if text == "function" or text == ";" then
                    return nil
                elseif depth < 0 then
                    at, open_at = k, b
                    break
                end
            end
            break
        end
    end
    if not at or open_at == at - 1 then
        return nil
    end
    local inside, condition, depth, loops = nil, nil, 0, 0
    for k = at, #tokens do
        local text = tokens[k].text
        depth = depth + (string.find(text, "^[%(%[{]$") and 1 or string.find(text, "^[%)%]}]$") and -1 or 0)
        if depth < 0 then
            close = k
            break
        end
        inside = inside or text == "in" and k or nil
        condition = condition or depth == 0 and text == "if" and k or nil
        loops = loops + (text == "for" and 1 or 0)
    end
    if not inside or not close then
        return inside and MADE or nil
    end
    local colon
    for k = open_at + 1, at - 1 do
        local spaced = tokens[k].text == ":" and not joined(tokens[k], tokens[k + 1])
        colon = colon or tokens[open_at].text == "{" and spaced and k or nil
    end
    local iterable = text_of(tokens, inside + 1, (condition or close) - 1, line)
    local head = loops == 1 and loop_head(text_of(tokens, at + 1, inside - 1, line), iterable)
    if not head then
        return MADE
    end
    local value = text_of(tokens, (colon or open_at) + 1, at - 1, line)
    local key = colon and text_of(tokens, open_at + 1, colon - 1, line)
    local step = key and string.format("list[%s] = %s", key, value) or string.format("list[#list + 1] = %s", value)
    if condition then
        step = string.format("if %s then %s end", text_of(tokens, condition + 1, close - 1, line), step)
    end
    return string.format("lists are made by loops: local list = {} %s %s end", head, step)
end

-- Does the line read as the head of a block in Python, alone or with a statement behind it?
local function is_head(tokens)
    local first, last = tokens[1], tokens[#tokens]
    if not first or not STARTS[first.text] then
        return false
    elseif last.text == ":" then
        return true
    end
    for i = 2, #tokens - 1 do
        local text = tokens[i].text
        if text == "do" or text == "then" or text == "=" and first.text ~= "while" then
            return false
        elseif text == ":" and joined(tokens[i - 1], tokens[i]) and not joined(tokens[i], tokens[i + 1]) then
            return true
        end
    end
    return false
end

-- "for i in range(2, n)" as Lua's loop, or nil.
local function counted_loop(tokens)
    if #tokens < 6 or tokens[1].text ~= "for" or tokens[2].kind ~= "name" or tokens[3].text ~= "in" or tokens[4].text ~= "range"
        or tokens[5].text ~= "(" then
        return nil
    end
    local arguments, depth, text = {}, 0, ""
    for i = 5, #tokens do
        local one = tokens[i].text
        depth = depth + (string.find(one, "^[%(%[{]$") and 1 or string.find(one, "^[%)%]}]$") and -1 or 0)
        if depth == 0 or depth == 1 and one == "," then
            arguments[#arguments + 1], text = text, ""
            if depth == 0 then
                break
            end
        elseif i > 5 then
            text = text .. one
        end
    end
    local first, stop = arguments[1], arguments[2]
    if not stop then
        first, stop = "1", first
    else
        stop = math.tointeger(tonumber(stop)) and tostring(math.tointeger(tonumber(stop)) - 1) or stop .. " - 1"
    end
    return string.format("loops: for %s = %s, %s%s do ... end", tokens[2].text, first, stop, arguments[3] and ", " .. arguments[3] or "")
end

-- Words of Lua's that are methods in PyTorch.
local MEMBERS = {["repeat"] = "x:rep(2, 1)", ["and"] = "x:logical_and(y)", ["or"] = "x:logical_or(y)", ["not"] = "x:logical_not()",
    ["end"] = 'x["end"]', ["in"] = "x:isin(y)"}

local function is_lambda(tokens)
    for i, token in ipairs(tokens) do
        local after = tokens[i + 1]
        if token.text == "lambda" and after and (after.kind == "name" or after.text == ":") then
            return true
        end
    end
    return false
end

-- Does code that the compiler finds unfinished go on for no longer than a person would type Python?
function habits.is_python(code)
    local line = names.last_line(string.match(code, "^.*%S") or "")
    local tokens = names.tokens(line)
    return is_head(tokens) or (is_lambda(tokens) and string.find(code, ":") ~= nil)
end

-- The line for a complaint of the compiler about byte `at` (from 1), or nil.
function habits.syntax(code, at)
    local tokens, i, line = tokens_at(code, math.min(at, #code))
    if not i then
        return nil
    end
    local made = comprehension(tokens, line)
    if made then
        return made
    elseif is_lambda(tokens) then
        return WORDS.lambda
    elseif (tokens[1].text == "import" or tokens[1].text == "from") and #tokens > 1 and tokens[2].kind == "name" then
        local path, name = imported(tokens)
        local said = habits.module(path, name)
        return said and "modules: " .. said or STARTS.import
    elseif is_head(tokens) then
        return counted_loop(tokens) or STARTS[tokens[1].text]
    end
    if tokens[1].text == "#" then
        return COMMENT
    elseif tokens[1].text == "%" then
        return "magics (%timeit, %run, ...) are for the prompt and notebooks; in a script tide.benchmark.Timer measures"
    elseif i > 1 and MEMBERS[tokens[i].text] and string.find(tokens[i - 1].text, "^[.:]$") then
        return tokens[i].text .. " is a word of Lua's: " .. MEMBERS[tokens[i].text]
    end
    local found = text_method(tokens, i) or operator_hint(tokens, i, line) or bracket_hint(tokens, i)
    if found then
        return found
    end
    if i > 1 and (tokens[i].text == "if" or tokens[i - 1].text == "if") and tokens[1].text ~= "if" then
        return "a choice: condition and a or b"
    end
    if tokens[i].text == "else" and tokens[i - 1] and tokens[i - 1].text ~= ";" and i > 1 then
        return "a choice: condition and a or b"
    end
    for k = i, math.max(1, i - 1), -1 do
        if WORDS[tokens[k].text] then
            return WORDS[tokens[k].text]
        end
    end
    local first = tokens[1]
    return first.kind == "name" and STARTS[first.text] or nil
end

-- Names that are nil in Lua, and what it writes instead.
local NAMES = {
    True = "true", False = "false", None = "nil", null = "nil", NULL = "nil", undefined = "nil",
    len = "#x", range = "for i = 1, n do", str = "tostring(x)", int = "x // 1", dict = "{}", list = "{}",
    torch = "tide", np = "tide", dir = "?name", enumerate = "ipairs(list)", elif = "elseif",
    max = "math.max(a, b), of tensors x:max()", min = "math.min(a, b), of tensors x:min()", abs = "math.abs(a), of tensors x:abs()",
    zip = "for i = 1, #a do ... a[i], b[i]", deepcopy = "x:clone(), of modules net:clone()",
    isinstance = "type(x), tide.is_tensor(x), of layers tide.nn.is(m, tide.nn.Linear)", exit = "os.exit()",
    nn = "local nn = tide.nn", F = "local F = tide.nn.functional", optim = "local optim = tide.optim", plt = "tide.plot (?matplotlib)",
    matplotlib = "tide.plot (?matplotlib)", copy = "x:clone(), of modules net:clone()", collections = "tables: {}, {a = 1}",
    random = "math.random(), math.random(1, 6); of tensors tide.rand, tide.randint", super = "Parent.init(self, ...) (?nn.Module)",
    torchvision = "tide.plot.image(batch) for pictures; data sets are files that tide.load reads", numpy = "tide",
    itertools = "loops: for i = 1, #list do ... end", functools = "functions: function(x) return f(a, x) end", time = "os.clock(), os.time()",
    sys = "arg, os.exit, io.stderr", json = "tide.save and tide.load", re = "string.match, string.gsub, string.gmatch",
    pd = "tide.io.read_csv", pandas = "tide.io.read_csv", sum = "a loop, of tensors x:sum()", sorted = "table.sort(list), of tensors x:sort()",
    map = "a loop: for i, x in ipairs(list) do list[i] = f(x) end", filter = "a loop, of tensors x[mask]", reversed = "for i = #list, 1, -1 do",
    float = "tonumber(x), of tensors x:float()", bool = "x ~= 0", tuple = "{}", set = "{[x] = true}", round = "math.floor(x + 0.5), of tensors x:round()",
    open = "io.open(path)", input = "io.read()", repr = "tostring(x)", hasattr = "x.name ~= nil", getattr = "x[name]", setattr = "x[name] = value",
    callable = 'type(f) == "function"', self = "function Net:forward(x), with a colon, has self", any = "a loop, of tensors x:any():item()",
    all = "a loop, of tensors x:all():item()", device = '"cpu" or "cuda"', inf = "math.huge", nan = "0/0", tqdm = "tide.progress", trange = "tide.progress",
}

-- Methods that are nil in Lua, of tables, strings and Tide's objects, and what it writes instead.
local METHODS = {
    keys = "for name, value in pairs(t) do", items = "for name, value in pairs(t) do", values = "for name, value in pairs(t) do",
    append = "t[#t + 1] = value", update = "for name, value in pairs(other) do t[name] = value end", get = "t[name] or default",
    get_lr = "scheduler:get_last_lr()", isinstance = "tide.nn.is(m, tide.nn.Linear)", extend = 'nn.class("Net"), of a list table.move',
    expand = "parameters of that shape: Normal(tide.zeros(2), 1)", split = 'for word in s:gmatch("%S+") do', join = "table.concat(list, s)",
    strip = 's:match("^%s*(.-)%s*$")', startswith = "s:sub(1, #start) == start", endswith = "s:sub(-#stop) == stop",
    replace = "s:gsub(old, new)", sort = "table.sort(t)", index = "a loop over ipairs(t)", pop = "table.remove(t)", insert = "table.insert(t, at, value)",
    remove = "table.remove(t, at)", copy = "model:clone(), of lists table.move(t, 1, #t, 1, {})", numpy = "tide.save(x, path), x:tolist()",
}

-- Functions of Python's math that Lua's has not.
local MATH = {
    pow = "x ^ y", inf = "math.huge", nan = "0/0", e = "math.exp(1)", tau = "2 * math.pi", log2 = "math.log(x, 2)", log10 = "math.log(x, 10)",
    log1p = "math.log(1 + x)", isnan = "x ~= x", isinf = "math.abs(x) == math.huge", isfinite = "math.abs(x) < math.huge", hypot = "(x * x + y * y) ^ 0.5",
    trunc = "math.tointeger(x // 1)", atan2 = "math.atan(y, x)", degrees = "math.deg(x)", radians = "math.rad(x)", prod = "a loop",
    fsum = "a loop", factorial = "a loop", comb = "a loop", gcd = "a loop", copysign = "x < 0 and -math.abs(y) or math.abs(y)",
    sinh = "tide.sinh(x)", cosh = "tide.cosh(x)", tanh = "tide.tanh(x)", erf = "tide.erf(x)", round = "math.floor(x + 0.5)",
    isclose = "math.abs(x - y) < 1e-9", dist = "(x - y):norm()",
}

function habits.name(name)
    return NAMES[name]
end

function habits.method(name)
    return METHODS[name]
end

function habits.math(name)
    return MATH[name]
end

-- The names of an operator's results where there are several tensors: "U, S, Vh"; or nil.
local function result_names(doc)
    local results = doc and doc.signature and string.match(doc.signature, "%-> (.*)$")
    local list = {}
    for part in string.gmatch(results or "", "[^,]+") do
        list[#list + 1] = string.match(part, "Tensor ([%w_]+)%s*$")
    end
    return #list > 1 and table.concat(list, ", ") or nil
end

-- What is said of `name` asked of the first of several results, in the call's own words: "local U, S, Vh = tide.linalg.svd(x)";
-- or nil.
local function one_of_several(name, line)
    local tokens = names.tokens(line or "")
    for i = 4, #tokens do
        if tokens[i].text == name and tokens[i - 1].text == "." and tokens[i - 2].text == ")" then
            local open = names.opening(tokens, i - 2)
            local callee = open and open > 1 and tokens[open - 1]
            local path, first = "", open and open - 1
            while first and tokens[first] and tokens[first].kind == "name" do
                path = tokens[first].text .. (path ~= "" and "." or "") .. path
                local dotted = tokens[first - 1] and tokens[first - 1].text
                if dotted ~= "." and dotted ~= ":" then
                    break
                elseif tokens[first - 2] and tokens[first - 2].text == ")" then
                    first = names.opening(tokens, first - 2)
                    first = tokens[first - 1] and tokens[first - 1].kind == "name" and first - 1 or first
                else
                    first = first - 2
                end
            end
            local several = callee and result_names(names.doc(string.match(path, "linalg%.[%w_]+$") or callee.text))
            if several and first and tokens[first] then
                return string.format("local %s = %s", several, text_of(tokens, first, i - 2, line))
            end
        end
    end
end

-- What is said of a call of a value that is none, or of a loop over one.
local function uncallable(message, line)
    local kind, what, name = string.match(message, "attempt to call a (%S+) value %((%l[%l ]*) '([^']+)'%)")
    if not kind or kind == "nil" then
        return nil
    elseif name == "for iterator" then
        local class = names.field(names.field(names.field(names.tide(), "data"), "_classes"), kind)
        if class and rawget(class, "iter") then
            return ": for value in object:iter() do"
        elseif class and rawget(class, "get") then
            return ": for i = 1, #dataset do, with dataset:get(i); a DataLoader is looped over as it is"
        end
        return kind == "tide.Tensor" and ": for i, row in ipairs(x) do" or ": for k, value in ipairs(list) do, or in pairs(t)"
    elseif what == "method" or kind == "tide.Tensor" and what == "field" then
        return string.format(": %s is a field: x.%s", name, name)
    elseif name == "plot" then
        return ": tide.plot.line(y), tide.plot.points(x, y), tide.plot.hist(x) draw (?tide.plot)"
    end
end

-- Errors about an uncalled function, a loop over an iterator, an index that counts from 0.
local function misused(message, line)
    local got = string.match(message, "a function value %(([%a%s]+'[%w_]+')%)") or string.find(message, "got function", 1, true)
    if string.find(message, "got n[io][lt]") and line and string.find(line, "[%w_%]%)]%[%s*0%s*%]") then
        return ": lists count from 1: t[1] is the first, t[#t] the last"
    elseif string.find(message, "bad argument #1 to 'i?pairs'") or string.find(message, "bad argument #1 to 'for iterator'") then
        if string.find(message, "got function", 1, true) or string.find(message, "got table", 1, true) then
            return ": an iterator is called by the loop itself: for name, value in f do"
        end
        return string.find(message, "got nil", 1, true) and "" or nil
    elseif string.find(message, "'integer index'", 1, true) and line and string.find(line, "%[%s*0%s*%]") then
        return ": lists count from 1: t[1] is the first, t[#t] the last"
    elseif string.find(message, "nil value (field 'integer index')", 1, true) then
        return ": nothing stands at that place: t[#t] is the last"
    elseif string.find(message, "nil value (field 'grad')", 1, true) then
        return ": x.grad is nil until backward() fills it, and again after zero_grad()"
    elseif got and type(got) == "string" then
        return ": a method is called with a colon and parentheses, x:" .. string.match(got, "'([%w_]+)'") .. "()"
    elseif got and line and string.find(line, "[%w_%]%)]%.[%a_][%w_]*%f[^%w_(]") then
        return ": a method is called with a colon and parentheses, x:name()"
    end
end

-- What to append to the message of an error that arose on a line of code, where `visible` are locals, or nil.
function habits.call(message, line, visible)
    local function_of_math = string.match(message, "bad argument #%d to '(%l+)' %(number expected, got tide.Tensor%)")
    local methods = names.tide_methods()
    if function_of_math and methods and rawget(methods, function_of_math) and rawget(math, function_of_math) then
        return string.format(": x:%s() for the elements of a tensor, x:item() is the number of one that has one", function_of_math)
    elseif string.find(message, "got tide.Tensor", 1, true) then
        return ": x:item() is the number of a tensor that has one element"
    elseif string.find(message, "length of a nil", 1, true) and line and string.find(line, "^%s*#%s") then
        return ": " .. COMMENT
    elseif string.find(message, "global 'f'", 1, true) and line and string.find(line, "f[\"']") then
        return ": " .. FORMAT
    elseif line and string.find(line, "[\"']%s*%%") and (string.find(message, "attempt to mod a 'string'", 1, true)
        or string.find(message, "arithmetic on a string value", 1, true)) then
        return ": " .. FORMAT
    end
    local module = string.match(message, "module '([%w_.]+)' not found:")
    local part = string.match(message, "a tensor has no field or method '([%w_]+)'") or string.match(message, "a dense tensor has no '([%w_]+)'")
    local several = part and one_of_several(part, line)
    if several and not string.find(message, several, 1, true) then
        return "; here: " .. several
    end
    local said_of_module = module and habits.module(module)
    if said_of_module then
        return "\nmodules: " .. said_of_module
    elseif string.find(message, "%f[%a]seed: at most 0 arguments") then
        return ": tide.manual_seed(n) sets the seed"
    end
    if string.find(message, "global 'help'", 1, true) then
        return ": help is the prompt's: tide -e 'help(name)', or ?name there"
    end
    local class = string.match(message, "(%u%w*): argument %d+ .*got a tensor") or string.match(message, "(%u%w*): at most 0 arguments, got")
        or string.match(message, "(%u%w*Loss): at most")
    local made = class and names.tide() and names.field(names.field(names.tide(), "nn"), class)
    if type(made) == "table" and rawget(made, "is_module_class") then
        return string.format(": a module is made first and then called: m = tide.nn.%s(...); m(x)", class)
    end
    local said = uncallable(message, line) or misused(message, line)
    if said then
        return said ~= "" and said or nil
    end
    local method = string.match(message, "([%w_]+): argument %d+ %([%w_]+%): expected an? ")
    if method and line then
        local tokens = names.tokens(line)
        for i = 3, #tokens do
            local called = tokens[i + 1] and tokens[i + 1].text == "("
            if called and tokens[i].text == method and tokens[i - 1].text == "." then
                local owner = names.value_at(tokens, i - 2, visible)
                local library = owner == nil and tokens[i - 2].text ~= ")"
                    or type(owner) == "table" and rawget(owner, method) ~= nil
                if not library then
                    return ": a method is called with a colon, x:" .. method .. "()"
                end
            end
        end
    end
end

return habits
