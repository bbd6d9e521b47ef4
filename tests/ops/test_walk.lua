-- test_walk.lua: walks the table of operators; every property here is asked of every operator.
local t = require "harness"
local here = debug.getinfo(1, "S").source:match("^@(.*)/") or "."
local walk = dofile(here .. "/walk.lua")
local ops, samples, layouts = walk.ops, walk.samples, walk.layouts
local maker, run, check_same = walk.maker, walk.run, walk.check_same

-- ---- the walk ----

for _, op in ipairs(ops) do
    local list = samples[op.name]
    if not op.internal then
        t.test(op.name .. "_has_samples", function()
            t.is_true(list and #list >= 3, "at least three samples in samples/" .. op.family .. ".lua")
            t.is_true(op.doc and #op.doc > 0, "a line of doc")
        end)
    end
    for number, sample in ipairs(list or {}) do
        local name = ("%s_%d"):format(op.name, number)
        local comparable = not op.random and not op.name:find("empty") -- whatever lay in memory
        t.test(name .. "_f32_agrees_with_f64", function()
            local want = run(op, sample, tide.float64)
            local got = run(op, sample, tide.float32)
            if comparable then
                check_same(got, want, 2e-5, "float32", walk.signless[op.name])
            end
        end)
        for layout, arrange in pairs(layouts) do
            t.test(name .. "_" .. layout, function()
                if comparable then
                    local want = run(op, sample, tide.float64)
                    check_same(run(op, sample, tide.float64, false, arrange), want, 1e-12, layout)
                end
            end)
        end
        if op.inplace and not op.inplace_only then
            t.test(name .. "_in_place_equals_out_of_place", function()
                local args = sample(maker(tide.float64))
                if not tide.is_tensor(args[1]) then
                    return
                end
                local want = tide[op.name](table.unpack(args, 1, args.n or #args))
                if tostring(want.shape) ~= tostring(args[1].shape) or want.dtype ~= args[1].dtype
                    or op.random then
                    return
                end
                args[1] = args[1]:clone()
                local got = args[1][op.name .. "_"](table.unpack(args, 1, args.n or #args))
                check_same({ got }, { want }, 0, "in place")
                check_same({ args[1] }, { want }, 0, "the tensor written")
            end)
        end
        -- Numbers of normal() follow mean and std; that their gradients are 0 is a convention.
        if op.differentiable and op.name ~= "normal" then
            t.test(name .. "_gradient", function()
                local args = sample(maker(tide.float64, true))
                local inputs, places = walk.differentiable_inputs(args)
                local fn = walk.as_function(op, args, places)
                local wanted = false
                for _, y in ipairs({ fn(table.unpack(inputs)) }) do
                    wanted = wanted or y.requires_grad
                end
                if #inputs == 0 or not wanted then
                    return
                end
                t.is_true(tide.autograd.gradcheck(fn, inputs))
                t.is_true(tide.autograd.gradgradcheck(fn, inputs))
            end)
        end
    end
    if not op.internal and not op.method_only and not op.inplace_only then
        t.test(op.name .. "_names_itself_in_errors", function()
            local ok, message = pcall(tide[op.name], {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {})
            t.is_true(not ok, "nonsense is refused")
            t.is_true(message:find(op.name, 1, true), "the message names the operator: " .. message)
        end)
    end
end
