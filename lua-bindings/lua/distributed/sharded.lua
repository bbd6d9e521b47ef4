-- distributed/sharded.lua: tide.distributed.checkpoint: one checkpoint of a job in a folder, which all ranks write and read
-- together, and which another number of ranks may read.
--
-- Tensors are known by their elements (BLAKE2b): what several ranks have alike is written by one of them, so that each
-- writes as many bytes as others do. `index.safetensors` appears last and names all files; until then the index before it,
-- and its files, are the checkpoint. Files bear the number of the save that they are of, so that none is ever overwritten.
local tide = ...
local fail, declare = tide._fail, tide._function
local flattened, Shard = tide._require "files.checkpoint", tide._require "distributed.shard"

local INDEX <const>, PART <const>, OPEN_MODE <const> = "index.safetensors", "^part%-(%d+)%-%d+%.safetensors$", 511 -- 0777
local MOST_NAMES <const> = 1 << 20
local checkpoint = {}

-- ---- together ----

-- The ranks that save or load: a process outside of a job is rank 0 of 1.
local function team_of(group)
    local distributed = tide.distributed
    if not distributed.is_initialized() then
        return { rank = 0, size = 1, gather = function(object) return { object } end }
    end
    return { rank = distributed.rank(group), size = distributed.size(group),
        gather = function(object) return distributed.all_gather_object(object, { group = group }) end }
end

-- A message without the line that it was raised at and the function that raised it.
local function plain(message)
    return (string.gsub(string.gsub(tostring(message), "^[^:\n]*:%d+: ", ""), "^%a+: ", ""))
end

-- fn on this rank; what fails on one rank is said on all of them. `undo` runs where this rank's part has to go.
local function together(team, fname, fn, undo)
    local ok, result = pcall(fn)
    for r, why in ipairs(team.gather(ok and "" or plain(result))) do
        if why ~= "" then
            if undo then
                undo()
            end
            fail("%s: %s%s", fname, team.size > 1 and string.format("rank %d: ", r - 1) or "", why)
        end
    end
    return result
end

-- ---- saving ----

-- The parts of a state: what all ranks are told of it, and its tensors by name.
local function describe(state)
    local names, tensors, text = flattened.flatten(state)
    local facts, by_name = { text = text, names = names, keys = {}, bytes = {}, shards = {} }, {}
    for k, x in ipairs(tensors) do
        x = x:to("cpu"):contiguous()
        by_name[names[k]] = x
        facts.keys[k] = string.format("%s %s %s", tide._checksum(x), tostring(x.dtype), table.concat(x:size(), "x"))
        facts.bytes[k] = x:numel() * x:element_size()
    end
    flattened.restore(by_name, text, "state", function(shard)
        facts.shards[shard.name] = { shape = shard.shape, start = shard.start }
    end)
    return facts, by_name
end

-- Who writes each of the tensors that differ, the largest first to who has least so far: a list of {key, rank, name, bytes},
-- the same on all ranks, and their numbers by key.
local function share_out(every)
    local list, number, loads = {}, {}, {}
    for r, facts in ipairs(every) do
        loads[r] = 0
        for k, key in ipairs(facts.keys) do
            local entry = number[key]
            if not entry then
                entry = { key = key, bytes = facts.bytes[k], owners = {} }
                number[key], list[#list + 1] = entry, entry
            end
            local last = entry.owners[#entry.owners]
            if not last or last.rank ~= r - 1 then
                entry.owners[#entry.owners + 1] = { rank = r - 1, name = facts.names[k] }
            end
        end
    end
    table.sort(list, function(a, b)
        if a.bytes ~= b.bytes then
            return a.bytes > b.bytes
        end
        return a.key < b.key
    end)
    for k, entry in ipairs(list) do
        local best
        for _, owner in ipairs(entry.owners) do
            best = (not best or loads[owner.rank + 1] < loads[best.rank + 1]) and owner or best
        end
        entry.rank, entry.name = best.rank, best.name
        loads[best.rank + 1] = loads[best.rank + 1] + entry.bytes
        number[entry.key] = k
    end
    return list, number
end

-- Where each shard's parts lie: {name = {shape, numbers, starts}}.
local function find_shards(every, number)
    local shards = {}
    for r, facts in ipairs(every) do
        for k, name in ipairs(facts.names) do
            local part = facts.shards[name]
            if part then
                local whole = shards[name] or { shape = part.shape, numbers = {}, starts = {}, rank = r - 1 }
                if table.concat(whole.shape, ", ") ~= table.concat(part.shape, ", ") then
                    fail("save: '%s' is a part of shape (%s) on rank %d and of (%s) on rank %d", name, table.concat(whole.shape, ", "), whole.rank,
                        table.concat(part.shape, ", "), r - 1)
                end
                shards[name] = whole
                table.insert(whole.numbers, number[facts.keys[k]])
                table.insert(whole.starts, part.start)
            end
        end
    end
    return shards
end

-- What is read again: tensors by number, each different structure once, and which structure each rank has.
local function make_index(every, list, number, generation)
    local index = { format = 1, save = generation, file = {}, name = {}, digest = {}, structures = {}, ranks = {}, shards = find_shards(every, number) }
    for k, entry in ipairs(list) do
        index.file[k] = string.format("part-%d-%d.safetensors", generation, entry.rank)
        index.name[k], index.digest[k] = entry.name, string.match(entry.key, "^%x+")
    end
    local known = {}
    for r, facts in ipairs(every) do
        local numbers = {}
        for k, key in ipairs(facts.keys) do
            numbers[k] = number[key]
        end
        local whole = facts.text .. "\0" .. table.concat(numbers, " ") .. "\0" .. table.concat(facts.names, "\0")
        if not known[whole] then
            known[whole] = #index.structures + 1
            index.structures[known[whole]] = { text = facts.text, names = facts.names, numbers = numbers }
        end
        index.ranks[r] = known[whole]
    end
    return index
end

-- A number that no file in the folder bears.
local function next_generation(path)
    local last = 0
    for _, name in ipairs(tide._system_calls().names(path, MOST_NAMES) or {}) do
        last = math.max(last, tonumber(string.match(name, "part%-(%d+)%-") or 0))
    end
    return last + 1
end

-- What saves before this one have left, whole or not.
local function remove_older(path, generation)
    for _, name in ipairs(tide._system_calls().names(path, MOST_NAMES) or {}) do
        local number = string.match(name, PART) or string.match(name, "^%.part%-(%d+)%-%d+%.safetensors%.draft$")
        if number and tonumber(number) < generation then
            os.remove(path .. "/" .. name)
        end
    end
end

-- Does rank 0 see what all ranks have written?
local function check_parts(index, path)
    for _, file in ipairs(index.file) do
        if not tide._system_calls().stat(path .. "/" .. file) then
            fail("'%s/%s', which rank %s wrote, is not there: all ranks must see one folder", path, file, string.match(file, "(%d+)%.safetensors$"))
        end
    end
end

local function save(state, path, group)
    if type(state) ~= "table" then
        fail("save: state: a table expected, got %s", tide._describe(state))
    end
    local team = team_of(group)
    local facts, by_name
    local generation = together(team, "save", function()
        facts, by_name = describe(state)
        if team.rank > 0 then
            return nil
        end
        local ok, why = tide._make_folder(path, OPEN_MODE)
        return ok and next_generation(path) or fail("cannot make the folder '%s': %s", path, why)
    end)
    local every = team.gather(facts)
    generation = team.gather(generation or false)[1]
    local list, number = share_out(every)
    local index = make_index(every, list, number, generation)
    local part, file = {}, string.format("%s/part-%d-%d.safetensors", path, generation, team.rank)
    for _, entry in ipairs(list) do
        if entry.rank == team.rank then
            part[entry.name] = by_name[entry.name]
        end
    end
    local function undo() os.remove(file) end
    together(team, "save", function() return next(part) and tide.save(part, file) end, undo)
    together(team, "save", function()
        if team.rank == 0 then
            check_parts(index, path)
            tide.save(index, path .. "/" .. INDEX)
        end
    end, undo)
    if team.rank == 0 then
        remove_older(path, generation)
    end
end

-- ---- loading ----

-- What a checkpoint holds, its files opened where they are asked for.
local function open(path)
    if not tide._system_calls().stat(path .. "/" .. INDEX) then
        fail("'%s' holds no checkpoint: there is no %s", path, INDEX)
    end
    local index = tide.load(path .. "/" .. INDEX)
    if type(index) ~= "table" or index.format ~= 1 or type(index.ranks) ~= "table" then
        fail("'%s/%s' is no index of a checkpoint", path, INDEX)
    end
    local files, good = {}, {}
    -- The tensor of a number, whose elements are what was saved.
    function index.tensor(k)
        local file = index.file[k]
        files[file] = files[file] or tide._archive_read(path .. "/" .. file, true)
        local x = files[file][index.name[k]] or fail("'%s/%s' has no tensor '%s'", path, file, index.name[k])
        if not good[k] and tide._checksum(x) ~= index.digest[k] then
            fail("'%s/%s': the elements of '%s' are not those that were saved", path, file, index.name[k])
        end
        good[k] = true
        return x
    end
    return index
end

-- The tensors of one rank's structure by name, read where they are asked for.
local function lazy_tensors(index, structure)
    local number = {}
    for k, name in ipairs(structure.names) do
        number[name] = structure.numbers[k]
    end
    return setmetatable({}, { __index = function(_, name) return number[name] and index.tensor(number[name]) end })
end

-- What fills x, which begins at `start` of a whole, out of the parts in the files.
local function plan_copies(loader, name, x, start)
    local whole, filled, seen, size = loader.index.shards[name], 0, {}, x:size()
    for k, number in ipairs(whole.numbers) do
        local key = table.concat(whole.starts[k], " ")
        local part = not seen[key] and loader.index.tensor(number)
        seen[key] = true
        local from, sizes
        if part then
            from, sizes = Shard.overlap(part:size(), whole.starts[k], size, start)
        end
        if from then
            local source, target = Shard.part(part, whole.starts[k], from, sizes), Shard.part(x, start, from, sizes)
            filled = filled + source:numel()
            loader.work[#loader.work + 1] = function() target:copy_(source) end
        end
    end
    if filled ~= x:numel() then
        fail("'%s' has %d elements here, of which the checkpoint's parts hold %d", name, x:numel(), filled)
    end
end

local function shape_text(sizes) return "(" .. table.concat(sizes, ", ") .. ")" end

local function check_sizes(place, saved, wanted)
    if shape_text(saved) ~= shape_text(wanted) then
        fail("%s is of shape %s in the checkpoint and of %s in the state", place, shape_text(saved), shape_text(wanted))
    end
end

-- Where a whole of so many dims begins.
local function first_of(ndim)
    local start = {}
    for d = 1, ndim do
        start[d] = 1
    end
    return start
end

local match

-- A saved shard's place: a shard or a tensor that is there is filled, else the whole is made.
local function match_shard(loader, saved, into, place)
    local start, target = first_of(#saved.shape), nil
    if getmetatable(into) == Shard then
        check_sizes(place, saved.shape, into.shape)
        start, target = into.start, into.tensor
    elseif tide.is_tensor(into) then
        check_sizes(place, saved.shape, into:size())
        target = into
    end
    local x = target or tide.empty(saved.shape, { dtype = saved.tensor.dtype, device = "cpu" })
    plan_copies(loader, saved.name, x:detach(), start)
    return target and into or x
end

local function match_tensor(loader, saved, into, place)
    if getmetatable(into) == Shard then
        check_sizes(place, saved:size(), into.shape)
        local source = Shard.part(saved, first_of(saved:dim()), into.start, into.tensor:size())
        loader.work[#loader.work + 1] = function() into.tensor:detach():copy_(source) end
        return into
    elseif not tide.is_tensor(into) then
        return saved
    end
    check_sizes(place, saved:size(), into:size())
    loader.work[#loader.work + 1] = function() into:detach():copy_(saved) end
    return into
end

local function match_table(loader, saved, into, place)
    if loader.met[saved] then
        return loader.met[saved]
    elseif type(into) ~= "table" or getmetatable(into) == Shard then
        into = {}
    end
    loader.met[saved] = into
    for key in pairs(into) do
        if saved[key] == nil then
            fail("%s.%s is not in the checkpoint", place, tostring(key))
        end
    end
    for key, value in pairs(saved) do
        local found = match(loader, value, into[key], place .. "." .. tostring(key))
        loader.work[#loader.work + 1] = function() into[key] = found end
    end
    return into
end

match = function(loader, saved, into, place)
    if getmetatable(saved) == Shard then
        return match_shard(loader, saved, into, place)
    elseif tide.is_tensor(saved) then
        return match_tensor(loader, saved, into, place)
    elseif type(saved) == "table" then
        return match_table(loader, saved, into, place)
    elseif getmetatable(saved) == "tide.Generator" and getmetatable(into) == "tide.Generator" then
        loader.work[#loader.work + 1] = function() into:set_state(saved:get_state()) end
        return into
    end
    return saved
end

local function load(state, path, rank, group)
    if state ~= nil and type(state) ~= "table" then
        fail("load: state: a table or nil expected, got %s", tide._describe(state))
    end
    local team, result = team_of(group), nil
    local work = together(team, "load", function()
        local index = open(path)
        local count = #index.ranks
        if rank and rank >= count then
            fail("option rank: rank %d is not in [0, %d]", rank, count - 1)
        end
        local structure = index.structures[index.ranks[(rank or team.rank % count) + 1]]
        local saved = flattened.restore(lazy_tensors(index, structure), structure.text, path)
        local loader = { index = index, work = {}, met = {} }
        result = match(loader, saved, state, "state")
        return loader.work
    end)
    tide.no_grad(function() -- all fits on all ranks: nothing is written before that is known
        for _, step in ipairs(work) do
            step()
        end
    end)
    return result
end

-- ---- what is public ----

checkpoint.save = declare("save(table state, str path, *, any group=nil)",
    "Write the states of all ranks into a folder, as one checkpoint: nested tables of what tide.save takes, and shards. All ranks call it. "
        .. "What ranks have alike is written once, shared out evenly; each file appears whole or not at all, the index last, and the checkpoint that "
        .. "the folder held before stays whole until then. What fails on one rank is said on all.", save)

checkpoint.load = declare("load(table? state, str path, *, int(0..)? rank=nil, any group=nil) -> table",
    "What a rank saved in a folder, also of another number of ranks: rank r gets what rank r modulo that number saved (rank: what that rank "
        .. "did). Tensors, shards and generators that the state has are filled in place, all else is put into it; a shard gets its part of the whole, "
        .. "wherever its elements lie; without a state, or where it has nothing, a whole tensor comes. Elements are held against their checksums. "
        .. "All ranks call it; where something does not fit on one, all get the error and the state is as it was.", load)

checkpoint.shard = declare("shard(Tensor x, list shape, list? start=nil) -> Shard",
    "x as a part of a tensor of a shape, from the element `start` in each dim on (from 1; 1 as if nothing is said): in a state, what one "
        .. "rank has of what others have the rest of.",
    function(x, shape, start) return Shard.checked("shard", x, shape, start) end)

checkpoint.ranks = declare("ranks(str path) -> int", "How many ranks wrote the checkpoint in a folder.",
    function(path) return #open(path).ranks end)

tide._document(checkpoint, "checkpoint", "tide.distributed.checkpoint", "Checkpoints that all ranks of a job write and read together: "
    .. "save, load, shard, ranks. Another number of ranks may read one.")

return checkpoint
