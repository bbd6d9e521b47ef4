-- nn/replicas.lua: tide.nn.DataParallel: a module on several devices of one process, a thread each. The batch is cut, each
-- thread's Lua state runs a replica of the module on its part, and the outputs are laid together.
--
-- A replica's graph stays in the state that recorded it. Here its call is one node (the Function below), whose backward runs
-- the replicas' backwards in their threads and adds up the parameters' gradients in the order of the devices. On the CPU
-- replicas read the module's own parameters.
local tide = ...
local fail = tide._fail

-- fn of each tensor in a value: in tables without a metatable, at any depth; the rest is as it was.
local function map(value, fn)
    if tide.is_tensor(value) then
        return fn(value)
    elseif type(value) ~= "table" or getmetatable(value) ~= nil then
        return value
    end
    local copy = {}
    for key, part in pairs(value) do
        copy[key] = map(part, fn)
    end
    return copy
end

-- ---- in a worker's state ----

local graphs = {} -- what backward will ask for, by the call's key

-- Calls visit(tensor, kind, owner, field) for the parameters and buffers of modules, under each of their names.
local function each_part(modules, visit)
    for _, owner in ipairs(modules) do
        for _, name in ipairs(owner._names) do
            local value, kind = rawget(owner, name), owner._kinds[name]
            if value ~= nil and kind ~= "module" then
                visit(value, kind, owner, name)
            end
        end
    end
end

-- The parameters that have gradients, once each.
local function trainable(modules)
    local list, seen = {}, {}
    each_part(modules, function(x, kind)
        if kind == "parameter" and x.requires_grad and not seen[x] then
            seen[x] = true
            list[#list + 1] = x
        end
    end)
    return list
end

-- The parts of a module's copy that are a replica's own: parameters on its device, and (but for the first replica, which
-- writes the module's) buffers that nobody else writes.
local function place(base, modules, device, home)
    local moved = {}
    local function move(x, kind)
        if kind == "buffer" then
            return x:to(x.device == home and device or x.device, { copy = true })
        end
        return x.device == device and x or x:detach():to(device):requires_grad_(x.requires_grad)
    end
    each_part(modules, function(x, kind, owner, name)
        moved[x] = moved[x] or move(x, kind)
        base.accept(moved[x])
        rawset(owner, name, moved[x])
    end)
end

local function within(modes, fn, ...)
    local _grad <close> = tide.set_grad_enabled(modes.grad)
    local _inference <close> = modes.inference and tide.inference_mode() or nil
    local _cpu <close> = tide.autocast { device = "cpu", enabled = modes.cpu ~= nil, dtype = modes.cpu }
    local _cuda <close> = tide.autocast { device = "cuda", enabled = modes.cuda ~= nil, dtype = modes.cuda }
    return fn(...)
end

local jobs, given_away = {}, {} -- given_away: what the last job's result had, which its receiver has now

-- A replica's forward. call: {key, device, home, first, seed, modes}; inputs: the tensors in arguments. Gives the outputs,
-- their tensors in a list, and which of those have a gradient.
function jobs.forward(base, call, module, inputs, arguments)
    if call.device ~= "cpu" then
        tide.cuda.set_device(call.device)
    end
    if call.seed then
        tide.manual_seed(call.seed)
    end
    local modules = base.modules(module)
    if not call.first then
        tide.no_grad(place, base, modules, call.device, call.home)
    end
    local outputs = table.pack(within(call.modes, module, table.unpack(arguments, 1, arguments.n)))
    local recorded, list, needs = {}, {}, {}
    outputs = map(outputs, function(x)
        local k = #list + 1
        recorded[k], list[k], needs[k] = x, x:detach(), x.requires_grad
        return list[k]
    end)
    if call.modes.grad then
        local sources = trainable(modules)
        for _, x in ipairs(inputs) do
            sources[#sources + 1] = x.requires_grad and x or nil
        end
        graphs[call.key] = { outputs = recorded, sources = sources }
    end
    return outputs, list, needs
end

-- The gradients of what a replica's outputs came from (parameters, then inputs; false: none), from those of its outputs.
function jobs.backward(_, key, gradients, retain)
    local graph, outputs, given = graphs[key], {}, {}
    graphs[key] = retain and graph or nil
    for k, x in ipairs(graph.outputs) do
        if gradients[k] and x.requires_grad then
            outputs[#outputs + 1], given[#given + 1] = x, gradients[k]
        end
    end
    local found, list = {}, {}
    if #outputs > 0 then
        found = tide.autograd.grad(outputs, graph.sources, { grad_outputs = given, allow_unused = true, retain_graph = retain })
    end
    for k = 1, #graph.sources do
        list[k] = found[k] or false
    end
    given_away = list
    return list
end

-- ---- threads ----

local crews = {} -- by how many they are

local Crew = { __gc = function(crew) tide._pool_close(crew.pool) end } -- waits: no thread outlives this state

-- n threads, and for each the keys of graphs that nobody will ask for.
local function crew_of(n)
    if not crews[n] then
        local function begin() return tide.nn._replica_jobs end
        local pool = tide._require "data.protocol".aside(tide._pool_new, n, begin)
        crews[n] = setmetatable({ pool = pool, dead = {}, calls = 0 }, Crew)
        for k = 1, n do
            crews[n].dead[k] = {}
        end
    end
    return crews[n]
end

-- Run a job in each replica's thread: arguments[k] are replica k's. All have ended when it returns, or raises a replica's
-- error, at which the others are stopped.
local function run(crew, devices, kind, arguments)
    local handles, results, problem = {}, {}, nil
    for k, given in ipairs(arguments) do
        local dead = crew.dead[k]
        crew.dead[k] = {}
        local ok, handle = pcall(tide._pool_submit, crew.pool, k, nil, kind, dead, table.unpack(given, 1, given.n))
        if not ok then
            problem = { k, handle }
            break
        end
        handles[k] = handle
    end
    for k, handle in ipairs(handles) do
        if problem then
            tide._job_stop(handle)
        end
        results[k] = table.pack(pcall(tide._job_get, handle, true))
        if not results[k][1] and not problem then
            problem = { k, results[k][2] }
        end
    end
    if problem then
        local text = string.gsub(string.gsub(tostring(problem[2]), "^.-in a worker: ", ""), "\nstack traceback:.*", "")
        fail("DataParallel: replica %d on %s: %s", problem[1], devices[problem[1]], text)
    end
    return results
end

-- ---- the call as a node ----

local Replicas = tide.autograd.Function "DataParallel"

-- call: {crew, devices, arguments of jobs.forward for each replica, wanted (for each replica's tensors: has it a gradient?),
-- parameters (how many)}. The other inputs are all that a gradient may be for: the replicas' tensors, one replica after the
-- other, and the parameters.
function Replicas.forward(ctx, call)
    local keep = { key = call.key }
    ctx.keep = setmetatable(keep, { __gc = function()
        for k = 1, #call.wanted do
            table.insert(call.crew.dead[k], keep.key)
        end
    end })
    ctx:set_materialize_grads(false)
    local results = run(call.crew, call.devices, "forward", call.arguments)
    ctx.call, ctx.counts = call, {}
    local all = {}
    for k, result in ipairs(results) do
        local list, needs = result[3], result[4]
        for i, x in ipairs(list) do
            all[#all + 1] = x
            if not needs[i] then
                ctx:mark_non_differentiable(x)
            end
        end
        ctx.counts[k] = #list
    end
    call.results = results
    return table.unpack(all)
end

-- The sum of one parameter's gradients, on the first device. Gradients that were added are let go at once.
local function add_up(lists, place, device)
    local sum, own = nil, false
    for _, list in ipairs(lists) do
        local g = list[place]
        if g and not sum then
            sum = g
        elseif g then
            if own then
                sum:add_(g:to(device))
            else
                local first = sum
                sum, own = first:to(device) + g:to(device), true
                first:free()
            end
            g:free()
        end
    end
    return sum and sum:to(device)
end

Replicas.backward = tide.autograd.once_differentiable(function(ctx, ...)
    local call, given, at, arguments = ctx.call, table.pack(...), 0, {}
    for k, count in ipairs(ctx.counts) do
        local gradients = {}
        for i = 1, count do
            gradients[i] = given[at + i] and given[at + i]:detach() or false
        end
        at = at + count
        arguments[k] = table.pack(ctx.keep.key, gradients, tide._autograd._retains())
    end
    local lists = {}
    for k, result in ipairs(run(call.crew, call.devices, "backward", arguments)) do
        lists[k] = result[2]
    end
    local gradients, n = {}, 1 -- the first input is no tensor
    for k, wanted in ipairs(call.wanted) do
        local place = call.parameters
        for _, wants in ipairs(wanted) do
            n = n + 1
            if wants then
                place = place + 1
                gradients[n] = lists[k][place] or nil
            end
        end
    end
    for place = 1, call.parameters do
        n = n + 1
        gradients[n] = add_up(lists, place, call.home)
    end
    return table.unpack(gradients, 1, n)
end)

-- ---- cutting and laying together ----

-- The parts of a value for each of n replicas: tensors are cut along dim and moved, the rest is for all. `seen.parts`: how
-- many the first tensor gave.
local function scatter(value, devices, dim, seen)
    local parts = {}
    if not tide.is_tensor(value) and type(value) == "table" and getmetatable(value) == nil then
        for k = 1, #devices do
            parts[k] = {}
        end
        for key, field in pairs(value) do
            for k, part in pairs(scatter(field, devices, dim, seen)) do
                parts[k][key] = part
            end
        end
    elseif tide.is_tensor(value) and value:dim() > 0 then
        local pieces = value:chunk(#devices, dim)
        if seen.parts and seen.parts ~= #pieces then
            fail("DataParallel: a tensor of shape %s makes %d parts along dim %d, and another %d", tostring(value.shape), #pieces, dim,
                seen.parts)
        end
        seen.parts = #pieces
        for k, piece in ipairs(pieces) do
            parts[k] = piece:to(devices[k])
        end
    else
        for k, device in ipairs(devices) do
            parts[k] = tide.is_tensor(value) and value:to(device) or value
        end
    end
    return parts
end

-- One value of those that the replicas gave in its place.
local function gather(values, device, dim)
    local first = values[1]
    for k, value in ipairs(values) do
        if type(value) ~= type(first) or tide.is_tensor(value) ~= tide.is_tensor(first) then
            fail("DataParallel: replica 1 returned %s and replica %d %s", tide._describe(first), k, tide._describe(value))
        end
    end
    if tide.is_tensor(first) then
        local moved = {}
        for k, x in ipairs(values) do
            moved[k] = x:to(device)
        end
        return first:dim() == 0 and tide.stack(moved) or tide.cat(moved, dim)
    elseif type(first) == "table" and getmetatable(first) == nil then
        local whole = {}
        for key in pairs(first) do
            local fields = {}
            for k, value in ipairs(values) do
                fields[k] = value[key]
                if fields[k] == nil then
                    fail("DataParallel: replica %d returned no '%s', as replica 1 did", k, tostring(key))
                end
            end
            whole[key] = gather(fields, device, dim)
        end
        return whole
    end
    return first
end

-- ---- the module ----

local function modes_now()
    return { grad = tide.is_grad_enabled(), inference = tide.is_inference_mode_enabled(),
        cpu = tide.is_autocast_enabled "cpu" and tide.get_autocast_dtype "cpu" or nil,
        cuda = tide.is_autocast_enabled "cuda" and tide.get_autocast_dtype "cuda" or nil }
end

-- The device of a number (CUDA's) or a name, as tensors call it.
local function name_of(id, what, fname)
    local name = math.type(id) == "integer" and "cuda:" .. id or id
    if type(name) ~= "string" then
        fail("%s: option %s: a device's number or name expected, got %s", fname, what, tide._describe(id))
    end
    local ok, x = pcall(tide.empty, 0, { device = name })
    return ok and x.device or fail("%s: option %s: %s", fname, what, string.gsub(x, "^.-empty: ", ""))
end

local function devices_of(ids)
    if not ids then
        ids = {}
        for k = 1, tide.cuda.is_available() and tide.cuda.device_count() or 0 do
            ids[k] = k - 1
        end
        ids[1] = ids[1] or "cpu"
    elseif #ids == 0 then
        fail("DataParallel: option device_ids: the list is empty")
    end
    local devices = {}
    for k, id in ipairs(ids) do
        devices[k] = name_of(id, string.format("device_ids[%d]", k), "DataParallel")
    end
    return devices
end

local function check_home(self, modules)
    local home = self.device_ids[1]
    each_part(modules, function(x, kind, owner, name)
        if x.device ~= home and (kind == "parameter" or x:is_floating_point()) then
            fail("DataParallel: the module must be on %s, the first of device_ids, and '%s' of a %s is on %s: module:to('%s')", home,
                tostring(name), getmetatable(owner).__name, x.device, home)
        end
    end)
end

-- Each replica's arguments of jobs.forward, and what the node's other inputs are.
local function prepare(self, modules, parts, count)
    local crew, modes, params = crew_of(#self.device_ids), modes_now(), trainable(modules)
    crew.calls = crew.calls + 1
    local call = { crew = crew, devices = self.device_ids, home = self.device_ids[1], key = crew.calls, parameters = #params, arguments = {},
        wanted = {} }
    local inputs, seed = {}, self.module.training and tide.randint(1, 2 ^ 53 // 1, { 1 }):item() or nil
    for k = 1, count do
        local wanted, plain = {}, {}
        local tree = map(parts[k], function(x)
            local i = #plain + 1
            wanted[i], inputs[#inputs + 1] = x.requires_grad, x
            plain[i] = x:detach():requires_grad_(modes.grad and x.requires_grad)
            return plain[i]
        end)
        call.wanted[k] = wanted
        local own = { key = call.key, device = self.device_ids[k], home = call.home, first = k == 1, seed = seed and seed + k, modes = modes }
        call.arguments[k] = table.pack(own, self.module, plain, tree)
    end
    table.move(params, 1, #params, #inputs + 1, inputs)
    return call, inputs
end

local function forward(base, self, ...)
    local seen, arguments = {}, table.pack(...)
    local parts = scatter(arguments, self.device_ids, self.dim, seen)
    local modules = base.modules(self.module)
    check_home(self, modules)
    if #self.device_ids == 1 then
        return self.module(table.unpack(parts[1], 1, arguments.n))
    end
    local call, inputs = prepare(self, modules, parts, seen.parts or #self.device_ids)
    local list = table.pack(Replicas(call, table.unpack(inputs)))
    local recorded, values, at = {}, {}, 0
    for k, result in ipairs(call.results) do
        for _, x in ipairs(result[3]) do
            at = at + 1
            recorded[x] = list[at]
        end
        values[k] = map(result[2], function(x) return recorded[x] end)
    end
    call.results, call.arguments = nil, nil
    local outputs = gather(values, self.output_device, self.dim)
    return table.unpack(outputs, 1, outputs.n)
end

return function(nn, base)
    local read = tide._function(
        "DataParallel(Module module, list? device_ids=nil, any output_device=nil, dim dim=0)",
        "The module on several devices of this process, a thread each: inputs are cut along dim, each device's replica runs on its part, "
            .. "outputs are laid together on output_device, and gradients are added up, in the order of devices, on the first. device_ids: "
            .. "numbers of CUDA devices, or names (\"cpu\" may come more than once); all CUDA devices as if nothing is said. The module's "
            .. "parameters are on the first. Buffers are what the first replica makes of them; other fields that forward writes are lost, "
            .. "and a backward can't be differentiated again. Example: y = tide.nn.DataParallel(net, {device_ids = {0, 1}})(x)")
    local DataParallel = nn.class "DataParallel"
    function DataParallel:init(...)
        local options = read(...)
        self.module, self.device_ids, self.dim = options.module, devices_of(options.device_ids), options.dim
        local output = options.output_device
        self.output_device = output == nil and self.device_ids[1] or name_of(output, "output_device", "DataParallel")
    end
    function DataParallel:forward(...) return forward(base, self, ...) end
    nn.DataParallel, nn._device_name = DataParallel, name_of
    tide._document(DataParallel, read)

    function nn._replica_jobs(kind, dead, ...)
        for _, key in ipairs(dead) do
            graphs[key] = nil
        end
        for _, x in ipairs(given_away) do
            if x then
                x:free()
            end
        end
        given_away = {}
        return jobs[kind](base, ...)
    end
end
