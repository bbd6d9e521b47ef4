-- test_pytorch_forms.lua: what is written as in PyTorch, in its own names and order, and means the same here.
local t = require "harness"

t.test("a_profile_is_asked_as_in_pytorch", function()
    local x = tide.rand(20, 20)
    local p = tide.profiler.profile { function()
        tide.profiler.record_function("my part", function() return x:matmul(x) end)
    end, activities = { tide.profiler.ProfilerActivity.CPU, tide.profiler.ProfilerActivity.CUDA } }
    t.eq(p:key_averages():table { sort_by = "self_cpu_time_total", row_limit = 3 }, p:table { sort = "self", limit = 3 })
    t.eq(p:key_averages { group_by_input_shape = true }:table { limit = 3 }, p:table { group_by_shape = true, limit = 3 })
    t.eq(tostring(p:key_averages()), p:table())
    t.is_true(p:table():find("my part", 1, true) ~= nil)
    local path = os.tmpname()
    p:export_stacks(path, "self_cpu_time_total")
    os.remove(path)
    t.error_has(function() p:export_stacks(path, "self_cuda_time_total") end, "self_cpu_time_total")
end)

t.test("averages_are_a_list_under_pytorchs_names", function()
    local x = tide.rand(20, 20)
    local p = tide.profiler.profile { function()
        tide.profiler.record("outer", function()
            for _ = 1, 3 do
                x:matmul(x)
            end
            x:sum(1)
        end)
    end, profile_memory = true, record_shapes = true }
    local list, rows, own, outer = p:key_averages(), {}, 0, nil
    for _, e in ipairs(list) do
        rows[e.kind .. " " .. e.key] = e
        own = own + e.self_cpu_time_total
        t.is_true(e.cpu_time_total >= e.self_cpu_time_total and e.self_cpu_time_total >= 0, e.key)
        t.eq(e.device_time_total, 0)
        t.eq(e.cuda_time_total, 0)
    end
    t.close(list.self_cpu_time_total, own, 1e-9)
    local matmul = rows["operator matmul"]
    outer = rows["range outer"]
    t.eq({ matmul.count, outer.count }, { 3, 1 })
    t.close(matmul.cpu_time * 3, matmul.cpu_time_total, 1e-9)
    t.eq(matmul.self_cpu_memory_usage, 0) -- what it runs takes the memory
    t.is_true(matmul.cpu_memory_usage >= 3 * 1600)
    t.eq(rows["operator mm"].self_cpu_memory_usage, matmul.cpu_memory_usage)
    t.is_true(outer.cpu_time_total >= matmul.cpu_time_total)
    t.is_true(matmul.cpu_time_total_str:find("^%d+%.%d%d%d[um]?s$") ~= nil and tostring(matmul):find("key=matmul", 1, true) ~= nil)
    t.close(list:total_average().self_cpu_time_total, own, 1e-9)
    local called = {}
    for _, e in ipairs(p:key_averages { group_by_input_shape = true }) do
        called[e.kind .. " " .. e.key] = e.input_shapes
    end
    t.eq(called["operator matmul"], { { 20, 20 }, { 20, 20 } })
    table.sort(list, function(a, b) return a.count > b.count end)
    t.is_true(list[1].count >= list[#list].count)
    local events = p:events()
    for k, e in ipairs(events) do
        t.eq({ e.id, e.key, e.count, e.cpu_time_total }, { k, e.name, 1, e.duration_us })
        t.close(e.time_range["end"] - e.time_range.start, e.time_range:elapsed_us(), 1e-6)
        for _, inner in ipairs(e.cpu_children) do
            t.is_true(rawequal(inner.cpu_parent, e))
        end
    end
    t.eq({ events[1].name, #events[1].cpu_children >= 4, events[1].cpu_parent }, { "outer", true, nil })
end)

t.test("a_profile_with_a_schedule_gives_itself_to_the_function", function()
    local kept = 0
    local profile = tide.profiler.profile({ schedule = tide.profiler.schedule { wait = 1, warmup = 1, active = 2, ["repeat"] = 1 },
        on_trace_ready = function(p) kept = kept + #p:events() end }, function(p)
        for _ = 1, 6 do
            tide.ones(3):sum()
            p:step()
        end
        return "done"
    end)
    t.is_true(kept > 0 and tostring(profile) ~= nil)
    -- without one it gets what it is called with, and no more
    local _, n = tide.profiler.profile(function(...) return select("#", ...) end)
    t.eq(n, 0)
    _, n = tide.profiler.profile(function(...) return select("#", ...) end, 1, 2)
    t.eq(n, 2)
end)

t.test("traces_of_a_schedule_go_into_a_folder_for_tensorboard", function()
    local folder = os.tmpname()
    os.remove(folder)
    local p = tide.profiler.profile { schedule = tide.profiler.schedule { active = 1 },
        on_trace_ready = tide.profiler.tensorboard_trace_handler(folder .. "/it's here", "me", true) }
    p:start()
    for _ = 1, 2 do
        tide.ones(3):sum()
        p:step()
    end
    p:stop()
    local names = {}
    for name in io.popen("cd '" .. folder .. "/it'\\''s here' && ls"):lines() do
        t.is_true(name:find("^me%.%d+.*%.pt%.trace%.json%.gz$") ~= nil, name)
        names[#names + 1] = name
    end
    t.is_true(#names >= 2)
    local read = tide.profiler.load(folder .. "/it's here/" .. names[1])
    t.is_true(read:total_average().self_cpu_time_total > 0)
    os.execute("rm -r '" .. folder .. "'")
    t.error_has(function() p:start() end, "the profile has ended")
end)

t.test("a_comparison_goes_on_with_more_measurements", function()
    local function of(row) return tide.benchmark.measurement({ 1e-3, 1.5e-3 }, { label = "work", sub_label = row, env = "e" }) end
    local first = of("a")
    t.eq({ first.title, first.as_row_name, first.has_warnings }, { "work (e)", "a", true })
    local c = tide.benchmark.Compare { first }
    c:extend_results { of("b") }
    t.is_true(tostring(c):find("a ", 1, true) ~= nil and tostring(c):find("b ", 1, true) ~= nil)
end)

t.test("names_and_options_that_mean_the_same", function()
    t.eq(tide.__version__, tide.version)
    t.is_true(rawequal(tide.utils.benchmark, tide.benchmark))
    t.eq(tide.amp.GradScaler("cuda"):get_scale(), 65536)
    t.eq(tide.amp.GradScaler { device = "cpu", init_scale = 8 }:get_scale(), 8)
    tide.reset_peak_memory_stats()
    local before = tide.max_memory_allocated()
    local x = tide.zeros(500000)
    t.is_true(tide.max_memory_allocated() >= before + 4 * #x)
    t.eq(tide.max_memory_allocated(), tide.memory_stats().peak)
    local path = os.tmpname() .. ".safetensors"
    tide.save({ x = tide.ones(2) }, path)
    t.eq(tide.load(path, { map_location = "cpu", weights_only = true }).x:tolist(), { 1, 1 })
    os.remove(path)
end)

t.test("a_grid_of_images_is_one_image", function()
    local batch = tide.arange(1, 1 + 5 * 2 * 3):reshape(5, 1, 2, 3):float()
    local grid = tide.utils.make_grid(batch, { nrow = 2, padding = 1, pad_value = -1 })
    t.eq(grid.shape, { 3, 10, 9 })
    local row = { -1, 1, 2, 3, -1, 7, 8, 9, -1 }
    t.eq(grid[1][2]:tolist(), row) -- the first two side by side
    t.eq(grid[3][2]:tolist(), row)
    t.eq(grid[1][8]:tolist(), { -1, 25, 26, 27, -1, -1, -1, -1, -1 }) -- the fifth, and nothing
    t.eq(tide.utils.make_grid({ batch[1], batch[2] }, { nrow = 2, padding = 1, pad_value = -1 })[1][2]:tolist(), row)
    t.eq(tide.utils.make_grid(batch[1]:expand(3, 2, 3), { padding = 0 }).shape, { 3, 2, 3 })
    local normal = tide.utils.make_grid(batch, { normalize = true })
    t.eq({ normal:amin():item(), normal:amax():item() }, { 0, 1 })
    t.error_has(function() tide.utils.make_grid(tide.zeros(2, 3)) end, "got shape (2, 3)")
    t.error_has(function() tide.utils.make_grid(3) end, "got number")
    t.error_has(function() tide.utils.make_grid(tide.zeros(0, 3, 2, 2)) end, "images (N, C, H, W)")
end)

t.test("matplotlib's_imshow_and_options_of_scatter", function()
    local m = tide.tensor { { -2, 0 }, { 2, 1 } }
    local function pixels(p)
        local path = os.tmpname() .. ".png"
        p:save(path)
        local file = io.open(path, "rb")
        local bytes = file:read "a"
        file:close()
        os.remove(path)
        return bytes
    end
    t.eq(pixels(tide.plot.imshow(m, { cmap = "gray", scale = 4 })), pixels(tide.plot.image(m, { cmap = "gray", vmin = -2, vmax = 2, scale = 4 })))
    local rgb = tide.rand(6, 5, 3) -- height, width, channels
    t.eq(pixels(tide.plot.imshow(rgb, { scale = 2 })), pixels(tide.plot.image(rgb:permute(3, 1, 2), { scale = 2 })))
    local x, y, c = tide.rand(9), tide.rand(9), tide.arange(1, 10):remainder(3)
    t.eq(pixels(tide.plot.scatter(x, y, { c = c, s = 36, cmap = "tab10" })), pixels(tide.plot.scatter(x, y, { c = c, markersize = 4 })))
end)
