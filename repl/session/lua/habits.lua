-- habits: what Lua writes where Python would write something else: one line for a complaint of the
-- compiler, for an error of a call, and for conditions that are tensors.

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

-- ---- conditions ----

local SAID = {
    condition = "a tensor is true in Lua whatever it holds: write x:item(), x:any():item() or x:all():item()",
    choice = "a tensor is true in Lua whatever it holds, so `and` and `or` don't ask it: write x:item(), or for each element "
        .. "tide.where(mask, a, b)",
    negation = "`not` of a tensor is false in Lua whatever it holds: write not x:item(), or for its elements x:logical_not()",
    equals = "a tensor never equals a number in Lua: write x:eq(%s) for its elements, x:item() == %s for one number",
    truth = "a tensor never equals %s in Lua: write x:item() == %s",
}

-- Methods whose tensors are answers, so that they stand in conditions.
local ANSWERS = {}
for name in string.gmatch("eq ne gt ge lt le any all isnan isinf isfinite isclose isin isposinf isneginf signbit greater "
    .. "greater_equal less less_equal not_equal logical_and logical_or logical_not logical_xor", "%S+") do
    ANSWERS[name] = true
end

-- The index of the token with which the operand ends that begins at token `first`: a name with fields, indices
-- and calls behind it; nil: none begins there.
local function operand_end(tokens, first)
    local at = first
    if not tokens[at] or tokens[at].kind ~= "name" then
        return nil
    end
    while true do
        local token, after = tokens[at + 1], tokens[at + 2]
        local text = token and token.text
        if token and token.kind == "op" and (text == "." or text == ":") and after and after.kind == "name" then
            at = at + 2
        elseif token and token.kind == "string" then
            at = at + 1
        elseif token and token.kind == "op" and (text == "(" or text == "[" or text == "{") then
            local depth = 0
            repeat
                at = at + 1
                text = tokens[at] and (tokens[at].kind == "op" and tokens[at].text or "")
                depth = depth + (text and string.find(text, "^[%(%[{]$") and 1 or text and string.find(text, "^[%)%]}]$") and -1 or 0)
            until not text or depth == 0
            if not text then
                return nil
            end
        else
            return at
        end
    end
end

-- "answer": a tensor of truths, "tensor": another one; nil: something else, or nobody knows.
local function tensor_kind(tokens, first, last, known)
    local value = first == last and tokens[first].kind == "name" and (known.tensors[tokens[first].text] or nil)
    if value or known.tensors[tokens[first].text] == false and first == last then
        return value -- false: the text gives it other values
    elseif tokens[last].text == ")" then
        local open = names.opening(tokens, last)
        local name = open and open > first and tokens[open - 1]
        if name and tokens[open - 2] and tokens[open - 2].text == ":" and ANSWERS[name.text] then
            return "answer"
        end
        local gives = name and rawequal(names.value_at(tokens, last, known.visible), names.tensor_like)
        local doc = gives and names.doc(name.text)
        return doc and doc.signature and string.find(doc.signature, "-> Tensor", 1, true) and "tensor" or nil
    end
    local found = known.by_value and names.value_at(tokens, last, known.visible)
    return found ~= nil and names.is_tensor(found) and (found.dtype == names.tide().bool and "answer" or "tensor") or nil
end

local AFTER = {["and"] = "choice", ["or"] = "choice"}
local HEADS = {["if"] = "then", ["elseif"] = "then", ["while"] = "do"}

-- What of SAID the operand from `first` to `last` is in, behind token `first` - 1, if it is a tensor.
local function place_of(tokens, first, last)
    local before, after = tokens[first - 1].text, tokens[last + 1] and tokens[last + 1].text
    local outer = tokens[first - 2]
    if before == "(" and outer and outer.kind == "name" and outer.text == "assert" and (after == ")" or after == ",") then
        return "condition"
    elseif before == "(" and after == ")" and outer and HEADS[outer.text] and tokens[last + 2]
        and tokens[last + 2].text == HEADS[outer.text] then
        return "condition"
    elseif before == "not" then
        return "negation"
    elseif after == "then" or after == "do" and before ~= "in" and before ~= "," then
        return (HEADS[before] or AFTER[before]) and "condition" or nil
    elseif before == "until" then
        return not (after and string.find(after, "^[-+*/%%^<>=~.]+$")) and "condition" or nil
    elseif after == "or" and before == "and" then
        return nil -- the value of a choice
    end
    local begins = HEADS[before] or AFTER[before] or string.find(before, "^[=(,{;]$") or before == "return"
    return begins and AFTER[after] or nil
end

local ARITHMETIC = {}
for text in string.gmatch("+ - * / // % ^ .. #", "%S+") do
    ARITHMETIC[text] = true
end

-- What is said of the comparison at token i, whose one side is a number or a truth.
local function comparison(tokens, i, first, last, known)
    local function literal(token)
        return token and (token.kind == "number" or token.text == "true" or token.text == "false") and token
    end
    local before, after = tokens[i - 1], tokens[i + 1]
    local number = literal(after) and not (tokens[i + 2] and ARITHMETIC[tokens[i + 2].text]) and after
    local start, stop = first, last
    if not number and literal(before) and not (tokens[i - 2] and ARITHMETIC[tokens[i - 2].text]) then
        number, start, stop = before, i + 1, operand_end(tokens, i + 1)
        if not stop or tokens[stop + 1] and ARITHMETIC[tokens[stop + 1].text] then
            return nil
        end
    end
    local sign = start and tokens[start - 1]
    if number and start and not (start == first and sign and ARITHMETIC[sign.text]) and tensor_kind(tokens, start, stop, known) then
        return string.format(number.kind == "number" and SAID.equals or SAID.truth, number.text, number.text),
            number.kind == "number" and "equals" or "truth"
    end
end

-- Names as far as a text is read: `known.tensors` are those that hold tensors wherever it assigns to them.
local function learn(tokens, i, known)
    local token, after = tokens[i], tokens[i + 1]
    local before = tokens[i - 1] and tokens[i - 1].text
    local single = after and after.text == "=" and before ~= "." and before ~= ":" and before ~= ","
    if not single then
        return
    end
    local last = operand_end(tokens, i + 2)
    local stops = last and (not tokens[last + 1] or tokens[last + 1].kind == "name" or tokens[last + 1].kind == "keyword"
        and not AFTER[tokens[last + 1].text] or tokens[last + 1].text == ";")
    local kind = stops and last > i + 2 and tensor_kind(tokens, i + 2, last, known)
    local was = known.tensors[token.text]
    known.tensors[token.text] = kind and was ~= false and kind or false
    known.visible[token.text] = known.tensors[token.text] and names.tensor_like or nil
end

-- Names that parameters and loops declare are anything.
local function forget(tokens, i, known)
    local loop = tokens[i].text == "for"
    for k = i + 1, math.min(#tokens, i + 40) do
        local text = tokens[k].text
        if loop and (text == "=" or text == "in") or not loop and text == ")" then
            return
        elseif tokens[k].kind == "name" then
            known.tensors[text], known.visible[text] = false, nil
        end
    end
end

local GUARDS = {no_grad = true, enable_grad = true, inference_mode = true, autocast = true, detect_anomaly = true, saved_tensors_hooks = true}
local GOES_ON = {["return"] = true, ["and"] = true, ["or"] = true, ["not"] = true, ["in"] = true}

-- What is said of a statement that begins with token i, where it makes a guard of a mode and lets go of it.
local function loose_guard(tokens, i)
    local before, at = tokens[i - 1], i
    if tokens[i].text ~= "tide" or before and (before.kind == "op" and not string.find(before.text, "^[%)%]};]$")
        or GOES_ON[before.text]) then
        return nil
    end
    while tokens[at + 1] and tokens[at + 1].text == "." do
        at = at + 2
    end
    local last = tokens[at] and GUARDS[tokens[at].text] and operand_end(tokens, i)
    local after = last and tokens[last + 1]
    if not last or last == at or after and after.kind == "op" and after.text ~= ";" then
        return nil
    end
    for k = at + 1, last do
        local text = tokens[k].text
        local option = tokens[k + 1] and tokens[k + 1].text == "=" or tokens[k - 1].text == "." or text == "tide"
        if text == "function" or tokens[k].kind == "name" and not option then
            return nil -- it runs under the mode
        end
    end
    local full = ""
    for k = i, at do
        full = full .. tokens[k].text
    end
    return string.format("nothing holds what %s gives, so it ends by itself: write local _ <close> = %s(...), or "
        .. "%s(function() ... end)", full, full, full)
end

-- Words of lines that may be warned of, a call of a method or a guard's name beside them.
local TRIGGERS = {"if ", "if(", "while", "until", "and ", "or ", "not ", "assert", "==", "~="}

local function may_be_wrong(line)
    if string.find(line, "tide.", 1, true) then
        for name in string.gmatch(line, "tide%.([%w_]+)") do
            if GUARDS[name] or name == "autograd" then
                return true
            end
        end
    end
    for _, word in ipairs(TRIGGERS) do
        if string.find(line, word, 1, true) then
            return true
        end
    end
    return false
end

-- Lines of a text that are worth a look, as a list of their first and last bytes.
local function doubtful_lines(code)
    local list = {}
    for first, line in string.gmatch(code, "()([^\n]+)") do
        if may_be_wrong(line) then
            list[#list + 1] = {first, first + #line - 1}
        end
    end
    return list
end

-- Does a text have methods that answer, or guards? Most have none, which is found out soon.
local function has_doubts(code)
    for name in string.gmatch(code, ":%s*([%l_]+)%s*%(") do
        if ANSWERS[name] then
            return true
        end
    end
    for name in string.gmatch(code, "tide%.([%l_]+)") do
        if GUARDS[name] or name == "autograd" then
            return true
        end
    end
    return false
end

-- Calls say(text, kind, token) for each warning about a text. `by_value`: names outside of functions stand for what
-- they hold now; else for what the text assigns to them.
local function walk(code, by_value, say)
    local tokens = names.tokens(code)
    local known = {tensors = {}, visible = {}, by_value = by_value}
    for name, value in next, by_value and (locals()) or {} do
        known.visible[name] = value
    end
    local lines, at = doubtful_lines(code), 1
    local function check(token, i)
        local loose = token.kind == "name" and loose_guard(tokens, i)
        if loose then
            say(loose, "guard", token)
        end
        local last = i > 1 and token.kind == "name" and tokens[i - 1].text ~= "." and tokens[i - 1].text ~= ":" and operand_end(tokens, i)
        local place = last and place_of(tokens, i, last)
        local kind = place and tensor_kind(tokens, i, last, known)
        local named = place and last == i -- may be asked whether it is there
        if kind and (kind == "answer" or not named or place == "condition" and known.by_value) then
            say(SAID[place], place, token)
        end
        local sign = last and tokens[last + 1]
        if sign and (sign.text == "==" or sign.text == "~=") then
            local text, what = comparison(tokens, last + 1, i, last, known)
            if text then
                say(text, what, token)
            end
        elseif (token.text == "==" or token.text == "~=") and tokens[i - 1]
            and (tokens[i - 1].kind == "number" or tokens[i - 1].kind == "keyword") then
            local text, what = comparison(tokens, i, nil, nil, known)
            if text then
                say(text, what, token)
            end
        end
    end
    for i, token in ipairs(tokens) do
        if token.kind == "keyword" and (token.text == "function" or token.text == "for") then
            forget(tokens, i, known)
            known.by_value = known.by_value and token.text == "for"
        elseif token.kind == "name" and tokens[i + 1] and tokens[i + 1].text == "=" then
            learn(tokens, i, known)
        end
        while lines[at] and lines[at][2] < token.first do
            at = at + 1
        end
        if lines[at] and lines[at][1] <= token.first then
            check(token, i)
        end
    end
end

-- Warnings about an input that is about to run, each kind once in a session.
local warned = {}

function habits.warnings(code)
    local list = {}
    walk(code, true, function(text, kind)
        if not warned[kind] then
            warned[kind] = true
            list[#list + 1] = text
        end
    end)
    return #list > 0 and table.concat(list, "\n") or nil
end

-- script_warnings(code, name): those about a script that is about to run, one for a line.
function habits.script_warnings(code, name)
    local list, at, line, last = {}, 1, 1, 0
    if not has_doubts(code) then
        return nil
    end
    walk(code, false, function(text, _, token)
        local _, newlines = string.gsub(string.sub(code, at, token.first - 1), "\n", "")
        at, line = token.first, line + newlines
        if line > last then
            last = line
            list[#list + 1] = string.format("%s:%d: %s", name, line, text)
        end
    end)
    return #list > 0 and table.concat(list, "\n") or nil
end

return habits
