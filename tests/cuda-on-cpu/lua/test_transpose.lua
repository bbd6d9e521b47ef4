-- test_transpose.lua: copies that turn dims round: values for all dtypes and edges of tiles, and by which kernel.
local t = require "harness"
local both = require "both"

if not both.there then
    t.skip("CUDA", tide.cuda.unavailable_reason())
    t.finish()
end

-- How many launches of the kernel a copy takes, whose elements are the CPU's.
local function launches(x, copy, what)
    local there = x:to("cuda")
    both.reset()
    local y = copy(there)
    local n = both.launches("td_transpose_kernel")
    local want = copy(x)
    t.eq(y:stride(), want:stride(), what)
    t.is_true(tide.equal(y:cpu(), want), what)
    return n
end

local function turned(x) return x:t():contiguous() end
local function channels_last(x) return x:contiguous { memory_format = "channels_last" } end
local function channels_first(x) return x:contiguous() end

-- The launches are known on the played device alone.
local function is_turned(n, what) t.is_true(n == nil or n == 1, what .. ": turned by tiles") end
local function is_not_turned(n, what) t.is_true(n == nil or n == 0, what .. ": not by tiles") end

t.test("every_dtype", function()
    for _, dtype in ipairs(both.ALL) do
        is_turned(launches(both.elements(dtype, 37, 70), turned, dtype), dtype)
    end
end)

t.test("edges_of_tiles", function()
    for _, a in ipairs { 8, 31, 32, 33, 64, 65, 200 } do
        for _, b in ipairs { 8, 32, 33, 97 } do
            is_turned(launches(tide.randn(a, b), turned, a .. " x " .. b), a .. " x " .. b)
        end
    end
    is_not_turned(launches(tide.randn(7, 500), turned, "a short dim"), "a short dim")
    is_not_turned(launches(tide.randn(500, 7), turned, "a short dim"), "a short dim")
end)

t.test("other_dims_beside_the_two", function()
    local x = tide.randn(3, 16, 9, 11)
    is_turned(launches(x, channels_last, "to channels last"), "to channels last")
    is_turned(launches(channels_last(x), channels_first, "and back"), "and back")
    is_turned(launches(tide.randn(2, 3, 40, 5, 33), function(y) return y:transpose(3, 5):contiguous() end, "five dims"),
        "five dims")
    is_turned(launches(tide.randn(20, 4, 5, 30), function(y) return y:permute(4, 3, 2, 1):contiguous() end, "all dims"),
        "all dims")
end)

t.test("parts_and_strides", function()
    local function part(x) return x:narrow(1, 5, 41):narrow(2, 3, 37):t():contiguous() end
    is_turned(launches(tide.randn(60, 50), part, "a part"), "a part")
    local function into(x)
        local wide = tide.zeros(50, 90, { device = x.device })
        wide:narrow(1, 6, 40):narrow(2, 2, 61):copy_(x:t())
        return wide
    end
    is_turned(launches(tide.randn(61, 40), into, "into a part"), "into a part")
    is_not_turned(launches(tide.randn(40, 60), function(x) return x:narrow(2, 4, 50):contiguous() end, "rows apart"),
        "rows apart")
    local function widened(x) return tide.zeros(60, 40, { dtype = "float64", device = x.device }):copy_(x:t()) end
    is_not_turned(launches(tide.randn(40, 60), widened, "another dtype"), "another dtype")
end)
