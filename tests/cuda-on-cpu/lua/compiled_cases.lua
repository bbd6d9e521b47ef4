-- compiled_cases.lua: work whose programs may get kernels of their own at run time; the same numbers
-- whoever computes them. run(from, to) answers a list of {name, tensor on the CPU}.
local c = require "compare"
local cases, results = {}, {}

local function keep(name, ...)
    for k, x in ipairs { ... } do
        results[#results + 1] = { name .. " " .. k, x:cpu() }
    end
end

local function case(name, fn) cases[#cases + 1] = { name, fn } end

local function there(n, dtype, special) return c.numbers({ n }, dtype, special):to("cuda") end

-- Numbers that begin behind `offset` others.
local function behind(offset, n, dtype)
    return there(n + offset, dtype, true):narrow(1, offset + 1, n)
end

local SIZES = { 0, 1, 255, 1023, 1024, 1025, 70000 }

case("a formula of every float", function(name)
    for _, dtype in ipairs(c.floats) do
        for _, n in ipairs(SIZES) do
            local x, y = there(n, dtype, true), there(n, dtype, true):flip(1)
            keep(name .. tostring(dtype) .. n, tide.addcmul(x, y, x, { value = 0.3 }))
        end
    end
end)

case("a formula of every integer", function(name)
    for _, dtype in ipairs(c.integers) do
        local x, y = there(3000, dtype), there(3000, dtype):flip(1)
        keep(name .. tostring(dtype), tide.addcmul(x, y, x, { value = 3 }))
    end
end)

case("formulas of functions", function(name)
    local x, y = there(2500, tide.float32, true), there(2500, tide.float32):flip(1)
    keep(name, tide.mish(x), tide.logaddexp(x, y), tide.xlogy(x, y))
    keep(name .. "float64", tide.mish(x:double()))
end)

case("dtypes that are mixed", function(name)
    local x = there(2000, tide.float32, true)
    keep(name, x + there(2000, tide.int32), x * there(2000, tide.bfloat16), there(2000, tide.int64) / 3)
    keep(name .. "bool", x * there(2000, tide.bool), there(2000, tide.uint8) + there(2000, tide.bool))
end)

case("groups of a scripted function", function(name)
    local chain = tide.jit.script(function(x, y, z) return ((x * y + x) * z):to(tide.float16) * x + z end)
    for _, dtype in ipairs { tide.float16, tide.bfloat16, tide.int64, tide.int8 } do
        local x, y, z = there(2000, dtype), there(2000, dtype):flip(1), there(2000, tide.float32)
        keep(name .. tostring(dtype), chain(x, y, z), chain(x, y, x))
    end
end)

case("elements that are not aligned", function(name)
    for offset = 0, 3 do
        for _, dtype in ipairs { tide.float32, tide.float16, tide.float64 } do
            local x, y = behind(offset, 5000, dtype), behind(1, 5000, dtype)
            keep(name .. tostring(dtype) .. offset, tide.addcmul(x, y, y, { value = 0.3 }))
            x:lerp_(y, 0.25) -- in place
            keep(name .. tostring(dtype) .. offset .. " in place", x)
        end
    end
end)

case("elements that lie apart", function(name)
    local x = c.numbers({ 24, 40 }, tide.float32, true):to("cuda")
    local row, column = there(40, tide.float32), there(24, tide.float32):unsqueeze(2)
    keep(name .. "rows", tide.addcmul(x, x, row, { value = 0.3 }), x + row)
    keep(name .. "columns", x + column, x * column)
    keep(name .. "turned", x:t() + x:reshape(40, 24), x:t():contiguous())
    keep(name .. "odd", x:narrow(2, 2, 37) + row:narrow(1, 3, 37), x:narrow(2, 2, 36) * 2 + 1)
    local cube = c.numbers({ 5, 6, 7, 8 }, tide.float32):to("cuda")
    keep(name .. "cube", cube:transpose(2, 3) + there(8, tide.float32), cube:permute(4, 1, 3, 2) * 2)
    keep(name .. "halves", (x:half():t() + row:half():unsqueeze(2)))
    local one = tide.tensor(2.5, { device = "cuda" })
    keep(name .. "one", tide.addcmul(x:t(), one, x:t()), x:t() * one)
end)

case("gradients", function(name)
    local x = there(3000, tide.float32):requires_grad_(true)
    local y = there(3000, tide.float32):flip(1):requires_grad_(true)
    local z = (tide.logaddexp(x, y) * tide.tanh(x)):sum()
    z:backward()
    keep(name, z:detach(), x.grad, y.grad)
end)

case("sums", function(name)
    local x, y = there(70000, tide.float32), there(70000, tide.float32):flip(1)
    keep(name, tide.mse_loss(x, y), tide.smooth_l1_loss(x, y))
    x:requires_grad_(true) -- where not all is finite is a sum
    local scaler = tide.amp.GradScaler { init_scale = 1024 }
    scaler:scale(tide.softplus(x):sum()):backward()
    scaler:unscale_(tide.optim.SGD({ x }, { lr = 0.1 }))
    keep(name .. "gradient", x.grad)
end)

local function step_of(name, make, dtype)
    local params = {}
    for k = 1, 40 do
        params[k] = c.numbers({ k == 7 and 1 or k == 9 and 5000 or 3 + 37 * (k % 9) }, dtype):to("cuda")
        params[k]:requires_grad_(true)
        params[k].grad = (params[k]:detach() * 0.37 + 0.5)
    end
    local optimizer = make(params)
    for _ = 1, 3 do
        optimizer:step()
    end
    for _, k in ipairs { 1, 7, 9, 40 } do
        keep(name .. k, params[k]:detach())
    end
end

case("optimizers", function(name)
    step_of(name .. "Adam", function(p) return tide.optim.Adam(p, { lr = 0.1 }) end, tide.float32)
    step_of(name .. "AdamW", function(p) return tide.optim.AdamW(p, { lr = 0.1, amsgrad = true }) end, tide.float64)
    step_of(name .. "SGD", function(p) return tide.optim.SGD(p, { lr = 0.1, momentum = 0.9 }) end, tide.bfloat16)
end)

case("lists", function(name)
    local xs, ys = {}, {}
    for k = 1, 30 do
        xs[k], ys[k] = there(k * k, tide.float32, true), there(k * k, tide.float32)
    end
    for k, x in ipairs(tide.foreach.add(xs, ys)) do
        keep(name .. "add " .. k, x)
    end
    for k, x in ipairs(tide.foreach.addcmul(xs, ys, ys)) do
        keep(name .. "addcmul " .. k, x)
    end
end)

local names = {}
for k, one in ipairs(cases) do
    names[k] = one[1]
end

return {
    names = names,
    run = function(from, to)
        results = {}
        for k = from or 1, to or #cases do
            cases[k][2](cases[k][1] .. " ")
        end
        return results
    end,
}
