-- doubts: warnings about an input or a script that is about to run and hardly means what it says: conditions that are tensors,
-- guards that nothing holds, and what PyTorch's code reads of several results and of devices.

local names = import "names"

local doubts = {}

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

-- ---- PyTorch's code ----

-- What is said where x:max(2)[1] begins with token i: one of two results is asked for by its place, as of PyTorch's pair.
local function place_of_result(tokens, i, code)
    local before, at, depth = tokens[i - 1].text, i + 1, 0
    local dim = before == ":" and i + 2 or nil
    if not dim and not (before == "." and tokens[i - 2] and tokens[i - 2].text == "tide") then
        return nil
    end
    repeat
        local text = tokens[at] and (tokens[at].kind == "op" and tokens[at].text or "")
        depth = depth + (text == "(" and 1 or text == ")" and -1 or 0)
        dim = dim or depth == 1 and text == "," and at + 1 or nil
        at = at + 1
    until not text or depth == 0
    local by_dim = dim and tokens[dim] and (tokens[dim].kind == "number" or tokens[dim].text == "-")
    local open, index, close = tokens[at], tokens[at + 1], tokens[at + 2]
    if by_dim and open and open.text == "[" and index and string.find(index.text, "^[012]$") and close and close.text == "]" then
        local call = (before == ":" and "x:" or "tide.") .. string.sub(code, tokens[i].first, tokens[at - 1].last)
        return string.format("%s gives values and indices one behind the other, so [%s] takes a row of the values: "
            .. "local values, indices = %s", call, index.text, call)
    end
end

-- What is said where .device.type begins with token i.
local function part_of_device(tokens, i)
    local dot, part = tokens[i + 1], tokens[i + 2]
    if tokens[i - 1].text == "." and dot and dot.text == "." and part and (part.text == "type" or part.text == "index") then
        return string.format("a device is a string, of which .%s is nil: write x.device == \"cpu\", or x.device:find(\"cuda\")", part.text)
    end
end

-- ---- texts ----

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
    return string.find(line, "%)%s*%[") or string.find(line, "device%s*%.")
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
    return string.find(code, "m[ai][nx]%s*%b()%s*%[") or string.find(code, "device%s*%.")
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
        local word = i > 1 and token.kind == "name" and token.text
        local taken = (word == "max" or word == "min") and place_of_result(tokens, i, code) or word == "device" and part_of_device(tokens, i)
        if taken then
            say(taken, word == "device" and "device" or "place", token)
        end
        local last = word and tokens[i - 1].text ~= "." and tokens[i - 1].text ~= ":" and operand_end(tokens, i)
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

function doubts.warnings(code)
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
function doubts.script_warnings(code, name)
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

return doubts
