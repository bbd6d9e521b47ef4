-- jit/compiler/parser.lua: tokens as a tree. A node is a table with `tag`, `line` and `column`; what a tag's fields are
-- stands beside its maker. The parser takes all of Lua 5.4: what scripts can't have is refused where it is compiled, with
-- its reason, so that a file may hold other functions too.
local tide = ...
local lexer = tide._require "jit.compiler.lexer"
local parser = {}

-- Left and right binding powers, as in lparser.c.
local POWERS = { ["or"] = { 1, 1 }, ["and"] = { 2, 2 }, ["<"] = { 3, 3 }, [">"] = { 3, 3 }, ["<="] = { 3, 3 },
    [">="] = { 3, 3 }, ["~="] = { 3, 3 }, ["=="] = { 3, 3 }, ["|"] = { 4, 4 }, ["~"] = { 5, 5 }, ["&"] = { 6, 6 },
    ["<<"] = { 7, 7 }, [">>"] = { 7, 7 }, [".."] = { 9, 8 }, ["+"] = { 10, 10 }, ["-"] = { 10, 10 }, ["*"] = { 11, 11 },
    ["/"] = { 11, 11 }, ["//"] = { 11, 11 }, ["%"] = { 11, 11 }, ["^"] = { 14, 13 } }
local UNARY_POWER = 12
local UNARY = { ["not"] = true, ["-"] = true, ["#"] = true, ["~"] = true }

local Parser = {}
Parser.__index = Parser

local function node(token, tag, fields)
    fields.tag, fields.line, fields.column = tag, token.line, token.column
    return fields
end

function Parser:fail(what)
    error({ syntax = true, line = self.token.line, column = self.token.column, what = what }, 0)
end

function Parser:advance()
    local token = self.token
    self.at = self.at + 1
    self.token = self.tokens[self.at]
    return token
end

function Parser:accept(kind)
    return self.token.kind == kind and self:advance() or nil
end

function Parser:expect(kind)
    return self:accept(kind) or self:fail(string.format("'%s' expected", kind))
end

-- ---- expressions ----

-- {tag = "Function", params = {names}, vararg, body, last = line of its end, method = true where it has a self of its own}
function Parser:body(token, method)
    local params, vararg = {}, false
    local open = self:expect "("
    while self.token.kind ~= ")" do
        if self:accept "..." then
            vararg = true
            break
        end
        params[#params + 1] = self:expect("name").value
        if not self:accept "," then
            break
        end
    end
    local close = self:expect ")"
    if method then
        table.insert(params, 1, "self")
    end
    local fn = node(token, "Function", { params = params, vararg = vararg, method = method, header = close.line })
    fn.body = self:block()
    local last = self:expect "end"
    fn.last, fn.from, fn.to = last.line, open.at, last.at + 2 -- of the text, from "(" to "end"
    self.functions[#self.functions + 1] = fn
    return fn
end

-- {tag = "Table", items = {expressions}, fields = {{key, value}}}: in the order written; a last item may be several.
function Parser:constructor()
    local t = node(self:expect "{", "Table", { entries = {} })
    while self.token.kind ~= "}" do
        local entry = {}
        if self:accept "[" then
            entry.key = self:expression()
            self:expect "]"
            self:expect "="
            entry.value = self:expression()
        elseif self.token.kind == "name" and self.tokens[self.at + 1].kind == "=" then
            local name = self:advance()
            self:advance()
            entry.key = node(name, "Constant", { value = name.value })
            entry.value = self:expression()
        else
            entry.value = self:expression()
        end
        t.entries[#t.entries + 1] = entry
        if not (self:accept "," or self:accept ";") then
            break
        end
    end
    self:expect "}"
    return t
end

function Parser:arguments()
    local token = self.token
    if token.kind == "string" then
        self:advance()
        return { node(token, "Constant", { value = token.value }) }
    elseif token.kind == "{" then
        return { self:constructor() }
    end
    self:expect "("
    local list = self.token.kind == ")" and {} or self:expressions()
    self:expect ")"
    return list
end

function Parser:primary()
    local token = self.token
    if token.kind == "name" then
        self:advance()
        return node(token, "Name", { name = token.value })
    elseif self:accept "(" then
        local inner = self:expression()
        self:expect ")"
        return node(token, "Parens", { inner = inner })
    end
    return self:fail "an expression expected"
end

-- Index {object, key}, Call {callee, arguments}, Invoke {object, name, arguments}. A call's place is its name's.
function Parser:suffixed()
    local e = self:primary()
    while true do
        local token = self.token
        if self:accept "." then
            local name = self:expect "name"
            e = node(name, "Index", { object = e, key = node(name, "Constant", { value = name.value }) })
        elseif self:accept "[" then
            e = node(token, "Index", { object = e, key = self:expression() })
            self:expect "]"
        elseif self:accept ":" then
            local name = self:expect "name"
            e = node(name, "Invoke", { object = e, name = name.value, arguments = self:arguments() })
        elseif token.kind == "(" or token.kind == "string" or token.kind == "{" then
            e = node(e, "Call", { callee = e, arguments = self:arguments() })
        else
            return e
        end
    end
end

function Parser:simple()
    local token = self.token
    local kind = token.kind
    if kind == "number" or kind == "string" then
        self:advance()
        return node(token, "Constant", { value = token.value })
    elseif kind == "nil" or kind == "true" or kind == "false" then
        self:advance()
        local value
        if kind ~= "nil" then
            value = kind == "true"
        end
        return node(token, "Constant", { value = value })
    elseif kind == "..." then
        return node(self:advance(), "Vararg", {})
    elseif kind == "{" then
        return self:constructor()
    elseif kind == "function" then
        return self:body(self:advance())
    end
    return self:suffixed()
end

-- Unary {op, operand}, Binary {op, left, right}, And and Or {left, right}.
function Parser:expression(limit)
    limit = limit or 0
    local token, e = self.token, nil
    if UNARY[token.kind] then
        self:advance()
        e = node(token, "Unary", { op = token.kind, operand = self:expression(UNARY_POWER) })
    else
        e = self:simple()
    end
    while true do
        local op = self.token
        local power = POWERS[op.kind]
        if not power or power[1] <= limit then
            return e
        end
        self:advance()
        local right = self:expression(power[2])
        local tag = op.kind == "and" and "And" or op.kind == "or" and "Or" or "Binary"
        e = node(op, tag, { op = op.kind, left = e, right = right })
    end
end

function Parser:expressions()
    local list = { self:expression() }
    while self:accept "," do
        list[#list + 1] = self:expression()
    end
    return list
end

-- ---- statements ----

local FINAL = { ["end"] = true, ["else"] = true, ["elseif"] = true, ["until"] = true, ["end of text"] = true }

-- A list of statements, with the place of what stands behind it.
function Parser:block()
    local list = { tag = "Block" }
    while not FINAL[self.token.kind] do
        local statement = self:statement()
        if statement then
            list[#list + 1] = statement
            if statement.tag == "Return" then
                break
            end
        end
    end
    list.line, list.column = self.token.line, self.token.column
    return list
end

-- If {condition, body, otherwise}: an elseif is an If of its own in the block `otherwise`.
function Parser:if_statement()
    local token = self:advance()
    local condition = self:expression()
    self:expect "then"
    local body, otherwise = self:block(), nil
    if self.token.kind == "elseif" then
        local inner = self:if_statement()
        otherwise = { tag = "Block", line = inner.line, column = inner.column, inner }
    else
        if self:accept "else" then
            otherwise = self:block()
        end
        self:expect "end"
    end
    return node(token, "If", { condition = condition, body = body, otherwise = otherwise })
end

-- For {name, start, stop, step, body}; ForIn {names, values, body}.
function Parser:for_statement()
    local token, first = self:advance(), self:expect "name"
    local fields, tag
    if self:accept "=" then
        local start = self:expression()
        self:expect ","
        local stop = self:expression()
        fields, tag = { name = first.value, start = start, stop = stop, step = self:accept "," and self:expression() }, "For"
    else
        local names = { first.value }
        while self:accept "," do
            names[#names + 1] = self:expect("name").value
        end
        self:expect "in"
        fields, tag = { names = names, values = self:expressions() }, "ForIn"
    end
    self:expect "do"
    fields.body = self:block()
    self:expect "end"
    return node(token, tag, fields)
end

-- Assign {targets, values}.
function Parser:function_statement()
    local token = self:advance()
    local first = self:expect "name"
    local target, method = node(first, "Name", { name = first.value }), false
    while self.token.kind == "." or self.token.kind == ":" do
        method = self:advance().kind == ":"
        local name = self:expect "name"
        target = node(name, "Index", { object = target, key = node(name, "Constant", { value = name.value }) })
    end
    local fn = self:body(token, method)
    fn.name = target.name or target.key.value
    return node(token, "Assign", { targets = { target }, values = { fn } })
end

-- Local {names, values, closes = one of them is <close>}; LocalFunction {name, fn}.
function Parser:local_statement()
    local token = self:advance()
    if self:accept "function" then
        local name = self:expect("name").value
        local fn = self:body(token)
        fn.name = name
        return node(token, "LocalFunction", { name = name, fn = fn })
    end
    local names, closes = {}, false
    repeat
        names[#names + 1] = self:expect("name").value
        if self:accept "<" then
            closes = self:expect("name").value == "close" or closes
            self:expect ">"
        end
    until not self:accept ","
    return node(token, "Local", { names = names, closes = closes, values = self:accept "=" and self:expressions() or {} })
end

function Parser:expression_statement()
    local token = self.token
    local e = self:suffixed()
    if self.token.kind == "=" or self.token.kind == "," then
        local targets = { e }
        while self:accept "," do
            targets[#targets + 1] = self:suffixed()
        end
        self:expect "="
        return node(token, "Assign", { targets = targets, values = self:expressions() })
    elseif e.tag ~= "Call" and e.tag ~= "Invoke" then
        self:fail "a statement expected"
    end
    return node(token, "CallStatement", { call = e })
end

function Parser:while_statement()
    local token = self:advance()
    local condition = self:expression()
    self:expect "do"
    local body = self:block()
    self:expect "end"
    return node(token, "While", { condition = condition, body = body })
end

function Parser:repeat_statement()
    local token = self:advance()
    local body = self:block()
    self:expect "until"
    return node(token, "Repeat", { body = body, condition = self:expression() })
end

function Parser:statement()
    local token = self.token
    local kind = token.kind
    if kind == "if" then
        return self:if_statement()
    elseif kind == "while" then
        return self:while_statement()
    elseif kind == "repeat" then
        return self:repeat_statement()
    elseif kind == "for" then
        return self:for_statement()
    elseif kind == "function" then
        return self:function_statement()
    elseif kind == "local" then
        return self:local_statement()
    elseif self:accept ";" then
        return nil
    elseif self:accept "::" then
        local name = self:expect("name").value
        self:expect "::"
        return node(token, "Label", { name = name })
    elseif self:accept "do" then
        local body = self:block()
        self:expect "end"
        return node(token, "Do", { body = body })
    elseif self:accept "break" then
        return node(token, "Break", {})
    elseif self:accept "goto" then
        return node(token, "Goto", { name = self:expect("name").value })
    elseif self:accept "return" then
        local values = {}
        if not FINAL[self.token.kind] and self.token.kind ~= ";" then
            values = self:expressions()
        end
        self:accept ";"
        return node(token, "Return", { values = values })
    end
    return self:expression_statement()
end

--- parse(text): the chunk as {tag = "Block"}, all functions in it, those within first, and the comments that hold types.
--- nil and {line, column, what} for what is no Lua.
function parser.parse(text)
    local tokens, notes = lexer.tokens(text)
    if not tokens then
        return nil, { line = 1, column = 1, what = "this can't be read as Lua" }
    end
    local p = setmetatable({ tokens = tokens, at = 1, token = tokens[1], functions = {} }, Parser)
    local ok, chunk = pcall(p.block, p)
    if ok and p.token.kind ~= "end of text" then
        ok, chunk = false, { syntax = true, line = p.token.line, column = p.token.column, what = "the end expected" }
    end
    if not ok then
        if type(chunk) ~= "table" then
            error(chunk, 0)
        end
        return nil, chunk
    end
    return chunk, p.functions, notes
end

return parser
