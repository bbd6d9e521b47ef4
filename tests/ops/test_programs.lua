-- test_programs.lua: small programs of views and writes in place, made at random (tests/golden/programs.py):
-- Tide refuses what PyTorch refuses, at the same step or in backward, and gives its gradients otherwise.
local t = require "harness"
local golden = require "golden"

local tolerance = { relative = 1e-10, absolute = 1e-12 }

-- Programs that Tide may refuse and PyTorch doesn't: a derivative needs what a write in place took away,
-- of which PyTorch keeps a copy (x:sin_(), x:square_(), x:mul_(y)); 538 writes through a view of a tensor
-- that isn't row-major. Where they aren't refused, the gradients are compared as everywhere.
local may_be_refused = {}
for _, seed in ipairs { 43, 49, 64, 83, 177, 232, 233, 300, 320, 331, 537, 538, 586, 655 } do
    may_be_refused[seed] = true
end

local function run_step(step, registers)
    local x, args = {}, {}
    for k, r in ipairs(step.x) do
        x[k] = registers[r + 1]
    end
    for k = 2, #x do
        args[#args + 1] = x[k]
    end
    for _, p in ipairs(step.p) do
        args[#args + 1] = p
    end
    local function apply() return x[1][step.f](x[1], table.unpack(args)) end
    local result
    if step.no_grad then
        result = tide.no_grad(apply)
    else
        result = apply()
    end
    if step.f:sub(-1) ~= "_" then
        registers[#registers + 1] = result
    end
end

local function weights_like(x, number)
    local list = {}
    for k = 0, x:numel() - 1 do
        list[k + 1] = (((k * 7 + 3 + 5 * number) % 11) - 5.5) / 8
    end
    return tide.tensor(list, { dtype = x.dtype }):reshape(x.shape)
end

local function describe(program)
    local lines = {}
    for k, s in ipairs(program.steps) do
        local args = {}
        for j = 2, #s.x do
            args[#args + 1] = "r" .. s.x[j] + 1
        end
        for _, p in ipairs(s.p) do
            args[#args + 1] = type(p) == "table" and "{" .. table.concat(p, ", ") .. "}" or tostring(p)
        end
        lines[k] = ("    %d: r%d:%s(%s)%s"):format(k, s.x[1] + 1, s.f, table.concat(args, ", "),
            s.no_grad and " without recording" or "")
    end
    local sum = {}
    for k, r in ipairs(program.sum) do
        sum[k] = "r" .. r + 1
    end
    return table.concat(lines, "\n") .. "\n    sum of " .. table.concat(sum, ", ")
end

local function check(program)
    local registers, leaves = {}, {}
    for k, entry in ipairs(program.leaves) do
        registers[k] = golden.tensor(entry, true)
        leaves[k] = registers[k]
    end
    for k, step in ipairs(program.steps) do
        local ok, message = pcall(run_step, step, registers)
        if not ok and may_be_refused[program.seed] then
            return
        elseif not ok then
            return t.eq(program.fails, k - 1, "step " .. k .. " is refused: " .. message)
        end
        t.ne(program.fails, k - 1, "step " .. k .. " isn't refused")
    end
    local total
    for _, r in ipairs(program.sum) do
        local part = (registers[r + 1] * weights_like(registers[r + 1], r)):sum()
        total = total and total + part or part
    end
    local ok, grads = pcall(tide.autograd.grad, total, leaves, { allow_unused = true })
    if not ok and may_be_refused[program.seed] then
        return
    elseif not ok then
        return t.eq(program.fails, "backward", "backward is refused: " .. tostring(grads))
    end
    t.ne(program.fails, "backward", "backward isn't refused")
    t.eq(golden.compare(total, { program.loss }, tolerance), nil, "the sum")
    for k, x in ipairs(leaves) do
        t.eq(golden.compare(grads[k] or tide.zeros_like(x), program.g[k], tolerance), nil, "gradient " .. k)
    end
end

for _, program in ipairs(golden.lines("programs")) do
    t.test("program_" .. program.seed, function()
        local ok, message = pcall(check, program)
        if not ok then
            error(tostring(message) .. "\n" .. describe(program), 0)
        end
    end)
end
