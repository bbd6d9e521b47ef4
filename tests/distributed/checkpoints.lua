-- checkpoints.lua save|load|repeat FOLDER [SEED [FAULT]]: a job that writes the checkpoint of a seed, reads one that another
-- number of ranks wrote, or writes one after the other until it is killed.
local dist, nn = tide.distributed, tide.nn
local checkpoint = dist.checkpoint
local action, folder, fault = arg[1], arg[2], arg[4]
dist.init { timeout = 60 }
local rank, size = dist.rank(), dist.size()

local function fails_with(text, fn, ...)
    local ok, message = pcall(fn, ...)
    assert(not ok and message:find(text, 1, true), tostring(message))
end

-- What the whole job holds: a network that is alike on all ranks, with its optimizer's momenta, rows that are shared out, and
-- what is each rank's own. `seed` tells one state of the job from another.
local ROWS <const> = 25
local function whole_of(seed) return tide.arange(0, ROWS * 3):view(ROWS, 3):to(tide.float64) + seed end

local function rows_of(r, n)
    local first, last = r * ROWS // n + 1, (r + 1) * ROWS // n
    return first, last - first + 1
end

local function make_state(seed)
    tide.manual_seed(seed)
    local net = nn.Sequential(nn.Linear(40, 30), nn.ReLU(), nn.Linear(30, 3))
    local optimizer = tide.optim.Adam(net:parameters())
    net(tide.randn(5, 40)):sum():backward()
    optimizer:step()
    local first, count = rows_of(rank, size)
    return { model = net:state_dict(), optimizer = optimizer:state_dict(), step = seed, note = "mon \255 texte", own = { rank = rank },
        generator = tide.Generator(seed + rank),
        half = tide.full({ 4 }, seed, { dtype = tide.bfloat16 }), none = tide.zeros(0, 3), scalar = tide.tensor(seed),
        rows = checkpoint.shard(whole_of(seed):narrow(1, first, count):contiguous(), { ROWS, 3 }, { first, 1 }) }, net, optimizer
end

local function check_same(a, b, place)
    if tide.is_tensor(a) then
        assert(tide.equal(a:detach(), b:detach()), place)
    elseif type(a) == "table" and a.start then
        check_same(a.tensor, b.tensor, place)
    elseif type(a) == "table" then
        for key, value in pairs(a) do
            check_same(value, b[key], place .. "." .. tostring(key))
        end
    elseif type(a) == "userdata" then
        assert(tide.equal(tide.rand(5, { generator = a }), tide.rand(5, { generator = b })), place)
    else
        assert(a == b, place .. ": " .. tostring(a) .. ", " .. tostring(b))
    end
end

local seed = tonumber(arg[3]) or action == "load" and checkpoint.load(nil, folder).step or 1
if action == "repeat" then
    while true do
        checkpoint.save(make_state(seed), folder)
        print("saved")
        io.stdout:flush()
        seed = seed + 1
    end
elseif action == "save" then
    local state = make_state(seed)
    if fault == "kill" and rank == size - 1 then -- while the others write, or have written
        tide.save = function() os.execute("kill -9 " .. io.open("/proc/self/stat"):read("n")) end
    elseif fault == "fail" and rank == size - 1 then
        tide.save = function() error("save: cannot write 'part': No space left on device", 0) end
    end
    if size > 1 and not fault then -- ranks that do not see one folder
        local elsewhere = rank == size - 1 and folder .. "/elsewhere" or folder .. "/here"
        tide._make_folder(folder .. "/elsewhere")
        fails_with(("save: rank 0: '%s/here/part-1-%d.safetensors', which rank %d wrote, is not there"):format(folder, size - 1, size - 1),
            checkpoint.save, { own = tide.tensor { rank } }, elsewhere)
        assert(not tide._system_calls().stat(folder .. "/here/index.safetensors"))
    end
    if fault == "fail" then
        fails_with(("save: %scannot write 'part': No space left on device"):format(size > 1 and ("rank %d: "):format(size - 1) or ""),
            checkpoint.save, state, folder)
    else
        checkpoint.save(state, folder)
    end
else
    local writers = checkpoint.ranks(folder)
    local expected = make_state(seed)
    expected.own.rank = rank % writers
    expected.generator = tide.Generator(seed + rank % writers)

    -- Into a state that is there: in place.
    local state, net, optimizer = make_state(1000)
    local weight, rows = net[1].weight, state.rows.tensor
    local result = checkpoint.load(state, folder)
    assert(result == state and tide.equal(weight, expected.model["1.weight"]), "parameters are filled in place")
    assert(tide.equal(rows, expected.rows.tensor), "a shard gets its part of the whole, whoever wrote it")
    check_same(expected, state, "state")
    net:load_state_dict(state.model)
    optimizer:load_state_dict(state.optimizer)

    -- Without one: shards are whole.
    result = checkpoint.load(nil, folder)
    assert(tide.equal(result.rows, whole_of(seed)) and result.step == seed and math.type(result.step) == "integer")
    assert(result.note == "mon \255 texte" and result.half.dtype == tide.bfloat16 and tide.is_tensor(result.model["1.weight"]))
    -- An optimizer that has made no step has no momenta yet.
    local fresh = tide.optim.Adam(net:parameters()):state_dict()
    fresh = checkpoint.load({ optimizer = fresh, model = state.model, rows = state.rows }, folder).optimizer
    check_same(expected.optimizer.state, fresh.state, "momenta")
    assert(checkpoint.load(nil, folder, { rank = writers - 1 }).own.rank == writers - 1)

    -- What does not fit is said, on all ranks, and nothing is changed.
    local before = rows:clone()
    local function wrong(change)
        local other = make_state(1000)
        if rank == size - 1 then
            change(other)
        end
        return other
    end
    local where = size > 1 and ("load: rank %d: "):format(size - 1) or "load: "
    local other = wrong(function(s) s.half = tide.zeros(5) end)
    fails_with(where .. "state.half is of shape (4) in the checkpoint and of (5) in the state", checkpoint.load, other, folder)
    assert(other.step == 1000 and not tide.equal(other.rows.tensor, before), "nothing was changed")
    fails_with(where .. "state.more is not in the checkpoint", checkpoint.load, wrong(function(s) s.more = 1 end), folder)
    fails_with(where .. "state.rows is of shape (25, 3) in the checkpoint and of (26, 3)", checkpoint.load,
        wrong(function(s) s.rows = checkpoint.shard(tide.zeros(26, 3), { 26, 3 }) end), folder)
    fails_with("holds no checkpoint: there is no index.safetensors", checkpoint.load, nil, folder .. "/nowhere")
    fails_with("option rank: rank 99 is not in", checkpoint.load, nil, folder, { rank = 99 })
    fails_with("a tensor of shape (2) does not lie in one of shape (3) from (3)", checkpoint.shard, tide.zeros(2), { 3 }, { 3 })
    fails_with("state.f", checkpoint.load, { f = 1 }, folder)
    fails_with("object.f is", checkpoint.save, { f = print }, folder)
end
print("rank " .. rank .. ": ok")
