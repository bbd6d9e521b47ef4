-- test_readme.lua: what README.md shows is what happens: its session at the prompt line by line, the code
-- within its text, and the commands that it names.
local t = require "harness"

local root = os.getenv("TIDE_SOURCE")
local file = assert(io.open(root .. "/README.md"))
local readme = file:read("a")
file:close()

-- The inputs at the prompt in the first block, each with what stands below it.
local function transcript()
    local block = readme:match("```\n(%$ repl/run\n.-)```")
    local steps = {}
    for line in block:gmatch("[^\n]*") do
        local input = line:match("^tide> (.*)")
        if input then
            steps[#steps + 1] = { input = input, output = {} }
        elseif #steps > 0 and line ~= "" then
            table.insert(steps[#steps].output, line)
        end
    end
    return steps
end

-- Numbers drawn at random differ from run to run: digits are compared as such.
local function pattern_of(text)
    return (text:gsub("%s+", " "):gsub("-?%d+%.%d+", "N"):gsub(" +N", " N"):gsub("%[ N", "[N"))
end

-- What the prompt shows for a line, as far as this needs no terminal.
local function evaluate(input, env)
    local chunk = load("return " .. input, "=In", "t", env) or assert(load(input, "=In", "t", env))
    local ok, result = pcall(chunk)
    if ok then
        return result ~= nil and tostring(result) or ""
    end
    return (tostring(result):gsub("^In:1: ", ""))
end

t.test("the_session_at_the_prompt_shows_what_it_shows", function()
    local steps = transcript()
    t.is_true(#steps >= 8)
    local env = setmetatable({}, { __index = _G })
    for _, step in ipairs(steps) do
        local got, shown = evaluate(step.input, env), table.concat(step.output, "\n")
        local message = shown:match("^In%[%d+%]:1: ([^\n]*)")
        if message then
            t.is_true(message:sub(1, #got) == got, step.input .. "\n" .. got .. "\n" .. message)
            t.is_true(#got > 10, got)
        elseif step.input:find("gt(0)", 1, true) then -- how many there are is a matter of chance
            t.is_true(got:find("float32 %(%d%) cpu grad_fn=<IndexBackward>$"), got)
        else
            t.eq(pattern_of(got), pattern_of(shown), step.input)
        end
    end
end)

-- `code` in running text and tables that is Lua: an expression or a statement over tensors.
local function snippets()
    local list = {}
    local text = readme:gsub("```.-```", "")
    for code in text:gmatch("`([^`\n]+)`") do
        if code:find("tide%.[%w_.]+%(") or code:find("^x[%[:]") then
            list[#list + 1] = code
        end
    end
    return list
end

t.test("code_in_the_text_runs", function()
    local path, count = os.tmpname(), 0
    local env = setmetatable({ x = tide.randn(2, 3), fn = function() return tide.ones(2):sum() end,
        print = tostring }, { __index = _G })
    for _, code in ipairs(snippets()) do
        code = code:gsub("^tide %-e '(.*)'$", "%1"):gsub('"trace.json"', ("%q"):format(path)):gsub("^local ", "")
        local command = code:find("lua5.4", 1, true)
        if not command then
            local chunk = load("return " .. code, "=readme", "t", env) or assert(load(code, "=readme", "t", env))
            t.is_true(pcall(chunk), code)
            count = count + 1
        end
    end
    os.remove(path)
    t.is_true(count >= 6, "found " .. count)
end)

t.test("indices_of_the_text_are_tensors", function()
    local x = tide.randn(2, 3)
    t.eq(x[{ { 1, 2 }, {} }] == x["1:2, :"], true)
    t.eq({ table.unpack(x[{ { 1, 2 }, {} }].shape) }, { 2, 3 })
end)

t.test("files_of_the_text_are_there", function()
    local count = 0
    for path in readme:gmatch("[%w_%-/]+/[%w_%-]+%.%w+") do
        local folder = path:match("^([%w_%-]+)/")
        if folder == "notebooks" or folder == "tests" or folder == "repl" then
            local found = io.open(root .. "/" .. path)
            t.is_true(found, path)
            found:close()
            count = count + 1
        end
    end
    t.is_true(count >= 3, "found " .. count)
end)
