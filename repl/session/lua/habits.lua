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

-- Tokens of the line of code in which byte `at` stands, and the index of the one there.
local function tokens_at(code, at)
    local first = 1
    for newline in string.gmatch(code, "()\n") do
        if newline >= at then
            break
        end
        first = newline + 1
    end
    local last = string.find(code, "\n", at, true) or #code + 1
    local tokens, here = names.tokens(string.sub(code, first, last - 1))
    for i, token in ipairs(tokens) do
        if token.first + first - 1 <= at then
            here = i
        end
    end
    return tokens, here
end

local function operator_hint(tokens, i)
    for k = math.max(1, i - 1), i do
        local token, next_one = tokens[k], tokens[k + 1]
        local known = token and token.kind == "op" and OPERATORS[token.text]
        local found = known and (joined(token, next_one) and known[next_one.text] or known[1])
        if found then
            return found
        end
    end
    local before, token, after = tokens[i - 1], tokens[i], tokens[i + 1]
    local arithmetic = before and string.find(before.text, "^[-+*/%%^]/?$")
    local opens = string.find(token.text, "^[-+*/%%^]/?$") and after and after.text == "=" and joined(token, after)
    if opens or arithmetic and token.text == "=" and joined(before, token) then
        local name = tokens[i - (opens and 1 or 2)]
        name, before = name and name.kind == "name" and name.text or "x", opens and token or before
        return string.format("to change a variable: %s = %s %s 1 (a tensor in place: %s:add_(1))", name, name,
            before.text, name)
    elseif token.text == "+" and joined(before, token) and before.text == "+"
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

local function bracket_hint(tokens, i)
    local token = tokens[i]
    local open, owner = open_bracket(tokens, i)
    if token.text == "(" and tokens[i - 1] and tokens[i - 1].text == "," and (tokens[1].text == "local" or tokens[1].text == "for") then
        return "several values: local a, b, c = f(); the parts of a table are t[1], t[2]"
    elseif open == "(" and token.text == "=" and is_value(owner) then
        local name = tokens[i - 1].text
        return string.format("options go into a table: f(x, {%s = ...})%s", name,
            (name == "dim" or name == "axis") and "; dims count from 1, -1 is the last" or "")
    elseif open == "[" and token.text == ":" then
        return 'ranges: x["1:2"] or x[{{1, 2}}], both ends counted from 1'
    elseif open == "[" and token.text == "," and is_value(owner) then
        return 'several indices: x[{1, 2}] or x["1, 2"], counted from 1'
    elseif open == "(" and token.text == "," and not is_value(owner) then
        return "lists and tuples are tables: {1, 2}"
    elseif token.text == "[" or open == "[" and not is_value(owner) then
        return "lists: {1, 2}"
    end
end

-- Does the line read as the head of a block in Python?
local function is_head(tokens)
    local first, last = tokens[1], tokens[#tokens]
    return first and last and last.text == ":" and STARTS[first.text] ~= nil
end

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
    local tokens, i = tokens_at(code, math.min(at, #code))
    if not i then
        return nil
    end
    if is_lambda(tokens) then
        return WORDS.lambda
    elseif is_head(tokens) then
        return STARTS[tokens[1].text]
    end
    if tokens[1].text == "#" then
        return COMMENT
    end
    local found = operator_hint(tokens, i) or bracket_hint(tokens, i)
    if found then
        return found
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
    isinstance = "type(x), tide.is_tensor(x)", exit = "os.exit()",
}

function habits.name(name)
    return NAMES[name]
end

-- What to append to the message of an error that arose on a line of code, where `visible` are locals, or nil.
function habits.call(message, line, visible)
    if string.find(message, "got tide.Tensor", 1, true) then
        return ": x:item() is the number of a tensor that has one element"
    elseif string.find(message, "length of a nil", 1, true) and line and string.find(line, "^%s*#%s") then
        return ": " .. COMMENT
    elseif string.find(message, "global 'f'", 1, true) and line and string.find(line, "f[\"']") then
        return ": texts with values in them: (\"loss %.4f\"):format(loss:item())"
    end
    local called, field = string.match(message, "attempt to call a (%S+) value %(method '([%w_]+)'%)")
    if called and called ~= "nil" then
        return string.format(": %s is a field: x.%s", field, field)
    end
    if string.find(message, "global 'help'", 1, true) then
        return ": help is the prompt's: tide -e 'help(name)', or ?name there"
    elseif string.find(message, "call a table value (for iterator", 1, true) then
        return ": for k, value in ipairs(list) do, or in pairs(t)"
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

local TENSOR_CONDITION = "a tensor is true in Lua whatever it holds: write x:item(), x:any():item() or x:all():item()"
local TENSOR_EQUALS = "a tensor never equals a number in Lua: write x:eq(%s) for its elements, x:item() == %s for one number"

local function gives_tensor(tokens, last)
    local value = names.value_at(tokens, last)
    if names.is_tensor(value) then
        return true
    elseif not rawequal(value, names.tensor_like) then
        return false
    end
    local open = names.opening(tokens, last)
    local doc = open and names.doc(tokens[open - 1].text)
    return doc ~= nil and doc.signature ~= nil and string.find(doc.signature, "-> Tensor", 1, true) ~= nil
end

-- Is it one operand, a name with what follows it, from token `first` to `last`?
local function is_operand(tokens, first, last)
    local depth = 0
    for i = first, last do
        local token = tokens[i]
        local text = token.kind == "op" and token.text
        if text == "(" or text == "[" or text == "{" then
            depth = depth + 1
        elseif text == ")" or text == "]" or text == "}" then
            depth = depth - 1
        elseif depth == 0 and token.kind ~= "name" and text ~= "." and text ~= ":" then
            return false
        end
    end
    return tokens[first].kind == "name"
end

local function condition_warning(tokens, i)
    local stop = tokens[i].text == "while" and "do" or "then"
    local j = i + 1
    while tokens[j] and tokens[j].text ~= stop do
        j = j + 1
    end
    local last = j - 1
    if tokens[j] and last > i and is_operand(tokens, i + 1, last)
        and (tokens[last].text == ")" or last == i + 1) and gives_tensor(tokens, last) then
        return TENSOR_CONDITION
    end
end

-- The index of the token at which the operand begins that ends with token `last`.
local function operand_start(tokens, last)
    local at = last
    while at do
        local text = tokens[at].kind == "op" and tokens[at].text
        if text == ")" or text == "]" then
            at = names.opening(tokens, at)
            local owner = at and tokens[at - 1]
            if not (owner and (owner.kind == "name" or owner.text == ")" or owner.text == "]")) then
                return at
            end
            at = at - 1
        elseif tokens[at - 1] and string.find(tokens[at - 1].text, "^[.:]$") then
            at = at - 2
        else
            return at
        end
    end
end

local ARITHMETIC = {}
for text in string.gmatch("+ - * / // % ^ .. #", "%S+") do
    ARITHMETIC[text] = true
end

-- Is the number at token i a whole operand of a comparison?
local function is_alone(tokens, i)
    local before, after = tokens[i - 1], tokens[i + 1]
    return not (before and ARITHMETIC[before.text] or after and ARITHMETIC[after.text])
end

local function is_length(tokens, last)
    local start = operand_start(tokens, last)
    return start and tokens[start - 1] and tokens[start - 1].text == "#"
end

local function comparison_warning(tokens, i)
    local before, after = tokens[i - 1], tokens[i + 1]
    if after and after.kind == "number" and is_alone(tokens, i + 1) and before
        and not is_length(tokens, i - 1) and gives_tensor(tokens, i - 1) then
        return string.format(TENSOR_EQUALS, after.text, after.text)
    elseif before and before.kind == "number" and is_alone(tokens, i - 1) and after and after.kind == "name"
        and not (tokens[i + 2] and string.find(tokens[i + 2].text, "^[.:%[(]$"))
        and gives_tensor(tokens, i + 1) then
        return string.format(TENSOR_EQUALS, before.text, before.text)
    end
end

-- Warnings about code that is about to run, each kind once in a session.
local warned = {}

function habits.warnings(code)
    local tokens, list = names.tokens(code), {}
    local functions = 0 -- whose parameters may have the same names
    for i, token in ipairs(tokens) do
        local text, found = token.text, nil
        functions = functions + (token.kind == "keyword" and text == "function" and 1 or 0)
        if functions > 0 then
            break
        elseif token.kind == "keyword" and (text == "if" or text == "while" or text == "elseif") then
            found = not warned.condition and condition_warning(tokens, i)
            warned.condition = warned.condition or found and true
        elseif token.kind == "op" and (text == "==" or text == "~=") then
            found = not warned.equals and comparison_warning(tokens, i)
            warned.equals = warned.equals or found and true
        end
        if found then
            list[#list + 1] = found
        end
    end
    return #list > 0 and table.concat(list, "\n") or nil
end

return habits
