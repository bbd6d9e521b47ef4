-- test_meta.lua: the device meta, whose tensors have no elements. All operators run on it and give dtype, shape,
-- strides and device of what the CPU gives, forwards, in place and backwards, but for those whose results depend
-- on elements, which say so.
local t = require "harness"
local here = debug.getinfo(1, "S").source:match("^@(.*)/") or "."
local walk = dofile(here .. "/walk.lua")

local function all_there(value)
    if tide.is_tensor(value) then
        return value.is_sparse and value or value:to("meta")
    elseif type(value) ~= "table" or getmetatable(value) then
        return value
    end
    local moved = {}
    for key, part in walk.in_order(value) do
        moved[key] = all_there(part)
    end
    return moved
end

-- A walk's operators that make tensors of nothing make them here as well.
local function on_meta(fn)
    local _ <close> = tide.set_default_device "meta"
    return fn()
end

local function facts(x)
    if not tide.is_tensor(x) then
        return type(x)
    end
    local strides, sizes = {}, x.shape
    for d = 1, x.ndim do -- dims that take no step may have any
        strides[d] = sizes[d] > 1 and x:numel() > 0 and x.layout == "strided" and x:stride(d) or 0
    end
    return ("%s (%s) (%s)"):format(x.dtype, table.concat(sizes, ", "), table.concat(strides, ", "))
end

local function has_sparse(list)
    for _, x in ipairs(list) do
        if tide.is_tensor(x) and x.is_sparse then
            return true
        end
    end
    return false
end

local elements = {}
for _, op in ipairs(walk.ops) do
    elements[op.name] = op.by_elements
end

for _, op in ipairs(walk.ops) do
    for k, sample in ipairs(walk.samples[op.name] or {}) do
        local args = walk.arguments(sample, tide.float32)
        local ok, cpu = pcall(walk.call, op, args)
        if ok and not has_sparse(args) and not has_sparse(walk.flatten(cpu)) then
            t.test(("%s_%d"):format(op.name, k), function()
                local there = all_there(walk.arguments(sample, tide.float32))
                there.n = args.n
                local made, result = pcall(on_meta, function() return walk.call(op, there) end)
                if not made and op.name == "to" then -- to another device
                    return t.is_true(tostring(result):find("no elements", 1, true), tostring(result))
                elseif not made then
                    t.is_true(op.by_elements, tostring(result))
                    return t.is_true(tostring(result):find("no elements", 1, true), tostring(result))
                end
                local want, got = walk.flatten(cpu), walk.flatten(result)
                t.eq(#got, #want)
                for j = 1, #want do
                    t.eq(facts(got[j]), facts(want[j]), "result " .. j)
                    t.is_true(not tide.is_tensor(got[j]) or tostring(got[j].device) == "meta")
                end
            end)
        end
    end
end

-- ---- what has no elements ----

t.test("reading_an_element_says_why_it_can_not", function()
    local x = tide.empty(2, 3, { device = "meta" })
    local function refused(fn) t.error_has(fn, "has a shape, but no elements to read") end
    refused(function() return x[{ 1, 1 }]:item() end)
    refused(function() return x:tolist() end)
    refused(function() return x:to("cpu") end)
    refused(function() return x:sum():item() end)
    refused(function() return tide.nonzero(x) end)
    refused(function() return x[x:gt(0)] end)
    refused(function() return tide.zeros(2, 3):copy_(x) end)
    refused(function() return tide.equal(x, x) end)
    refused(function() tide.save(x, os.tmpname()) end)
end)

t.test("it_prints_its_facts", function()
    t.eq(tostring(tide.empty(2, 3, { device = "meta" })), "...\nfloat32 (2, 3) meta")
    t.eq(tostring(tide.empty({}, { device = "meta" })), "...   float32 () meta")
end)

t.test("no_memory_is_taken", function()
    local before = tide.memory_allocated()
    local x = tide.empty(1 << 25, 1 << 25, { device = "meta" })
    t.eq(tostring((x + 1):matmul(x:t()).shape), "(33554432, 33554432)")
    t.eq(tide.memory_allocated(), before)
end)

t.test("devices_do_not_mix", function()
    local x = tide.empty(2, 3, { device = "meta" })
    t.error_has(function() return x + tide.ones(2, 3) end, "meta and cpu")
    t.error_has(function() return x:matmul(tide.ones(3, 3)) end, "meta")
    t.eq((x + tide.tensor(1)).device, "meta") -- a number of the host, as on CUDA
    t.eq(tide.ones(2, 3):to(x).device, "meta")
    t.eq(x:copy_(tide.ones(2, 3)).device, "meta")
end)

t.test("draws_take_no_numbers_of_the_generator", function()
    tide.manual_seed(3)
    local _ = tide.rand(100, { device = "meta" }), tide.empty(5, { device = "meta" }):normal_(), tide.randperm(9, { device = "meta" })
    local first = tide.rand(1):item()
    tide.manual_seed(3)
    t.eq(tide.rand(1):item(), first)
end)

-- ---- networks ----

t.test("backward_runs_on_it", function()
    local net = tide.nn.Sequential(tide.nn.Conv2d(3, 8, 3), tide.nn.BatchNorm2d(8), tide.nn.ReLU(), tide.nn.Flatten(),
        tide.nn.Linear(8 * 6 * 6, 10)):to("meta")
    local loss = tide.nn.functional.cross_entropy(net(tide.empty(4, 3, 8, 8, { device = "meta" })),
        tide.empty(4, { device = "meta", dtype = tide.int64 }))
    loss:backward()
    for name, p in net:named_parameters() do
        t.eq(p.grad.shape, p.shape, name)
        t.eq(p.grad.device, "meta", name)
    end
    local opt = tide.optim.AdamW(net:parameters())
    opt:step()
end)

t.test("layers_are_made_on_a_device_and_of_a_dtype", function()
    local layer = tide.nn.TransformerEncoderLayer(64, 4, { device = "meta" })
    for name, p in layer:named_parameters() do
        t.eq(p.device, "meta", name)
        t.is_true(p.requires_grad, name)
    end
    t.eq(layer(tide.empty(2, 7, 64, { device = "meta" })).shape, tide.empty(2, 7, 64).shape)
    t.eq(tide.nn.Linear(3, 2, { dtype = tide.float64 }).weight.dtype, tide.float64)
    t.eq(tide.nn.BatchNorm1d(3, { dtype = tide.float16, device = "meta" }).num_batches_tracked.dtype, tide.int64)
    t.eq(tide.get_default_device(), "cpu")
end)

-- ---- the default device ----

t.test("the_default_device_is_where_tensors_are_made", function()
    t.eq(tide.set_default_device("meta", function() return tide.zeros(2).device, tide.tensor({ 1 }).device end), "meta")
    t.eq(tide.zeros(2).device, "cpu")
    do
        local _ <close> = tide.set_default_device "meta"
        t.eq(tide.rand(2).device, "meta")
        t.eq(tide.zeros_like(tide.ones(2, { device = "cpu" })).device, "cpu") -- as the tensor given
        t.eq(tide.ones(2, { device = "cpu" }).device, "cpu")
        t.eq(tide.tensor({ 1, 2 }):sum().device, "meta")
    end
    t.eq(tide.zeros(2).device, "cpu")
    t.error_has(function() tide.set_default_device "nowhere" end, "is no device")
    pcall(tide.set_default_device, "meta", error)
    t.eq(tide.get_default_device(), "cpu")
end)

t.finish()
