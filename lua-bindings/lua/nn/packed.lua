-- nn/packed.lua: sequences of different lengths packed without padding (nn.utils.rnn): one behind the other step by
-- step, the longest first; and what recurrent layers make of them.
local tide = ...
local fail, declare = tide._fail, tide._function
local packed = {}

-- ---- what is packed ----

-- data: elements of all sequences, step by step. batch_sizes: how many sequences have each step. sorted_indices:
-- the sequences' places by length, unsorted_indices the way back; nil where they came sorted.
local PackedSequence = { __name = "PackedSequence" }
PackedSequence.__index = PackedSequence
tide._class("PackedSequence", PackedSequence)

local function new(data, batch_sizes, sorted)
    local unsorted = sorted and sorted:argsort() or nil
    return setmetatable({ data = data, batch_sizes = batch_sizes, sorted_indices = sorted,
        unsorted_indices = unsorted }, PackedSequence)
end

-- Another packing of the same sequences.
local function like(sequence, data)
    return setmetatable({ data = data, batch_sizes = sequence.batch_sizes, sorted_indices = sequence.sorted_indices,
        unsorted_indices = sequence.unsorted_indices }, PackedSequence)
end

function PackedSequence:__tostring()
    return string.format("PackedSequence(data = %s, batch_sizes = {%s})", tostring(self.data.shape),
        table.concat(self.batch_sizes:tolist(), ", "))
end

function PackedSequence:to(...)
    local moved = like(self, self.data:to(...))
    for _, name in ipairs { "sorted_indices", "unsorted_indices" } do
        moved[name] = self[name] and self[name]:to(moved.data.device)
    end
    return moved
end

function packed.is_packed(value) return type(value) == "table" and getmetatable(value) == PackedSequence end

-- ---- from padded tensors and back ----

local function lengths_of(fname, lengths, n, longest)
    if not tide.is_tensor(lengths) and (type(lengths) ~= "table" or getmetatable(lengths)) then
        fail("%s: argument 2 (lengths): expected a list of integers or a tensor, got %s", fname, tide._describe(lengths))
    end
    lengths = tide.is_tensor(lengths) and lengths:long() or tide.tensor(lengths, { dtype = tide.int64 })
    if lengths:dim() ~= 1 or lengths:numel() ~= n then
        fail("%s: expected a length for each of %d sequences, got shape %s", fname, n, tostring(lengths.shape))
    end
    for k, length in ipairs(lengths:tolist()) do
        if length < 1 or length > longest then
            fail("%s: length %d must be from 1 to %d, got %d", fname, k, longest, length)
        end
    end
    return lengths:cpu()
end

local function check_sorted(fname, lengths)
    for k = 2, #lengths do
        if lengths[k] > lengths[k - 1] then
            fail("%s: sequence %d (length %d) is longer than the one before it (%d): sort them, or give "
                .. "enforce_sorted = false", fname, k, lengths[k], lengths[k - 1])
        end
    end
end

-- How many of the lengths, longest first, reach each step.
local function sizes_of(lengths)
    local sizes, alive = {}, #lengths
    for step = 1, lengths[1] do
        while lengths[alive] < step do
            alive = alive - 1
        end
        sizes[step] = alive
    end
    return sizes
end

-- Where the elements of the packed data stand in a padded tensor (T, B, ...) whose first dims are one.
local function places(sizes, batch)
    local at, n = {}, 0
    for step, size in ipairs(sizes) do
        for k = 1, size do
            n = n + 1
            at[n] = (step - 1) * batch + k
        end
    end
    return tide.tensor(at, { dtype = tide.int64 })
end

local function pack_padded(fname, input, lengths, batch_first, enforce_sorted)
    if input:dim() < 2 then
        fail("%s: input must have two dims at least (steps and sequences), got shape %s", fname, tostring(input.shape))
    end
    input = batch_first and input:transpose(1, 2) or input
    local steps, batch = input.shape[1], input.shape[2]
    if batch == 0 then
        fail("%s: there are no sequences: shape %s", fname, tostring(input.shape))
    end
    local sorted
    lengths = lengths_of(fname, lengths, batch, steps)
    if enforce_sorted then
        check_sorted(fname, lengths:tolist())
    else
        lengths, sorted = lengths:sort(1, { descending = true })
        sorted = sorted:to(input.device)
        input = input:index_select(2, sorted)
    end
    local sizes = sizes_of(lengths:tolist())
    local data = input:reshape(steps * batch, table.unpack(input.shape, 3)):index_select(1,
        places(sizes, batch):to(input.device))
    return new(data, tide.tensor(sizes, { dtype = tide.int64 }), sorted)
end

local function lengths_from(sizes)
    local lengths = {}
    for step, size in ipairs(sizes) do
        for k = 1, size do
            lengths[k] = step
        end
    end
    return tide.tensor(lengths, { dtype = tide.int64 })
end

local function pad_packed(sequence, batch_first, value, total)
    local sizes = sequence.batch_sizes:tolist()
    local steps, batch, data = total or #sizes, sizes[1], sequence.data
    if steps < #sizes then
        fail("pad_packed_sequence: total_length must be at least that of the longest sequence, %d, got %d", #sizes, steps)
    end
    local rest = { table.unpack(data.shape, 2) }
    local padded = tide.full({ steps * batch, table.unpack(rest) }, value, { dtype = data.dtype, device = data.device })
    padded = padded:index_copy(1, places(sizes, batch):to(data.device), data)
        :reshape(steps, batch, table.unpack(rest))
    local lengths = lengths_from(sizes)
    if sequence.unsorted_indices then
        padded = padded:index_select(2, sequence.unsorted_indices)
        lengths = lengths:index_select(1, sequence.unsorted_indices:cpu())
    end
    return batch_first and padded:transpose(1, 2) or padded, lengths
end

-- ---- recurrent layers ----

-- Runs of steps that the same number of sequences have: {first element, steps, sequences}, in order.
local function runs_of(sizes)
    local runs, at = {}, 1
    for _, size in ipairs(sizes) do
        local last = runs[#runs]
        if last and last.size == size then
            last.steps = last.steps + 1
        else
            runs[#runs + 1] = { first = at, steps = 1, size = size }
        end
        at = at + size
    end
    return runs
end

local function map(states, fn)
    local results = {}
    for k, state in ipairs(states) do
        results[k] = fn(state, k)
    end
    return results
end

-- One layer in one direction over a run of steps: its output, and the states behind it.
local function run_steps(layer, data, run, states, weights, backwards)
    local x = data:narrow(1, run.first, run.steps * run.size):reshape(run.steps, run.size, data.shape[2])
    local given = map(states, function(state) return state:unsqueeze(1) end)
    local results = table.pack(tide[layer.operator](backwards and x:flip(1) or x, #given > 1 and given or given[1], weights,
        layer.has_bias, 1, 0, layer.training, false, false))
    local y = backwards and results[1]:flip(1) or results[1]
    return y:reshape(run.steps * run.size, y.shape[3]),
        map(states, function(_, k) return results[k + 1]:squeeze(1) end)
end

local function rows(state, first, last) return state:narrow(1, first, last - first + 1) end

-- From the first step on, sequences end: their states are put aside.
local function run_forwards(layer, data, runs, states, weights)
    local outputs, ended = {}, map(states, function() return {} end)
    for k, run in ipairs(runs) do
        outputs[k], states = run_steps(layer, data, run, states, weights, false)
        local left = runs[k + 1] and runs[k + 1].size or 0
        for s, state in ipairs(states) do
            table.insert(ended[s], 1, rows(state, left + 1, run.size))
        end
        states = map(states, function(state) return rows(state, 1, left) end)
    end
    return tide.cat(outputs), map(ended, function(parts) return tide.cat(parts) end)
end

-- From the last step on, sequences join with the states that they begin with.
local function run_backwards(layer, data, runs, first_states, weights)
    local outputs, states, joined = {}, nil, 0
    for k = #runs, 1, -1 do
        local run, before = runs[k], joined
        states = map(first_states, function(first, s)
            local more = rows(first, before + 1, run.size)
            return before > 0 and tide.cat { states[s], more } or more
        end)
        outputs[k], states = run_steps(layer, data, run, states, weights, true)
        joined = run.size
    end
    return tide.cat(outputs), states
end

-- A recurrent layer over packed sequences. states: of all its layers and directions, each (layers, batch, size);
-- weights_of(k): the weights of place k.
function packed.run(layer, sequence, states, weights_of)
    local runs, data = runs_of(sequence.batch_sizes:tolist()), sequence.data
    local directions, last = layer.bidirectional and 2 or 1, map(states, function() return {} end)
    if sequence.sorted_indices then
        states = map(states, function(state) return state:index_select(2, sequence.sorted_indices) end)
    end
    for depth = 1, layer.num_layers do
        local outputs = {}
        for direction = 1, directions do
            local place = (depth - 1) * directions + direction
            local own = map(states, function(state) return state[place] end)
            local run, ended = direction == 1 and run_forwards or run_backwards, nil
            outputs[direction], ended = run(layer, data, runs, own, weights_of(place))
            for s, state in ipairs(ended) do
                last[s][place] = state
            end
        end
        data = directions == 2 and tide.cat(outputs, 2) or outputs[1]
        if layer.dropout > 0 and depth < layer.num_layers then
            data = tide.dropout(data, layer.dropout, layer.training)
        end
    end
    local final = map(last, function(parts)
        local stacked = tide.stack(parts)
        return sequence.unsorted_indices and stacked:index_select(2, sequence.unsorted_indices) or stacked
    end)
    return like(sequence, data), final
end

-- ---- nn.utils.rnn ----

function packed.open(rnn)
    rnn.pack_padded_sequence = declare("pack_padded_sequence(Tensor input, any lengths, bool batch_first=false, "
        .. "bool enforce_sorted=true) -> PackedSequence",
        "Padded sequences (T, B, ...) packed without the padding: what RNN, LSTM and GRU take. Unless enforce_sorted is "
        .. "false the longest must come first.", function(input, lengths, batch_first, enforce_sorted)
            return pack_padded("pack_padded_sequence", input, lengths, batch_first, enforce_sorted)
        end)
    rnn.PackedSequence = declare("PackedSequence(Tensor data, Tensor batch_sizes, Tensor? sorted_indices=nil, Tensor? "
        .. "unsorted_indices=nil) -> PackedSequence",
        "Other elements in the packing of sequences, as of an embedding: PackedSequence(emb(p.data), p.batch_sizes, p.sorted_indices, "
        .. "p.unsorted_indices).",
        function(data, sizes, sorted)
            sizes = sizes:long():cpu()
            local all, before = 0, math.huge
            for k, n in ipairs(sizes:dim() == 1 and sizes:tolist() or {}) do
                if n < 1 or n > before then
                    fail("PackedSequence: batch_sizes: expected numbers that do not grow, got %d as number %d", n, k)
                end
                all, before = all + n, n
            end
            if data:dim() == 0 or #data ~= all or all == 0 then
                fail("PackedSequence: data of shape %s for %d elements of batch_sizes", tostring(data.shape), all)
            elseif sorted and (sorted:dim() ~= 1 or #sorted ~= sizes[1]:item()) then
                fail("PackedSequence: sorted_indices: expected a place for each of %d sequences, got shape %s", sizes[1]:item(),
                    tostring(sorted.shape))
            end
            return new(data, sizes, sorted)
        end)
    rnn.pad_packed_sequence = declare("pad_packed_sequence(PackedSequence sequence, bool batch_first=false, "
        .. "number padding_value=0, int(1..)? total_length=nil) -> Tensor, Tensor",
        "Packed sequences as one padded tensor, and their lengths.", pad_packed)
    rnn.pack_sequence = declare("pack_sequence(Tensor[] sequences, bool enforce_sorted=true) -> PackedSequence",
        "Sequences (L, ...) of different lengths packed without padding.", function(sequences, enforce_sorted)
            local lengths = {}
            for k, x in ipairs(sequences) do
                if x:dim() == 0 then
                    fail("pack_sequence: sequences have at least one dim, got a tensor of none")
                end
                lengths[k] = x.shape[1]
            end
            if #lengths == 0 then
                fail("pack_sequence: there are no sequences")
            end
            return pack_padded("pack_sequence", rnn.pad_sequence(sequences), lengths, false, enforce_sorted)
        end)
    rnn.unpack_sequence = declare("unpack_sequence(PackedSequence packed_sequences) -> list",
        "The sequences that were packed, in their order.", function(sequence)
            local padded, lengths = pad_packed(sequence, true, 0)
            return rnn.unpad_sequence(padded, lengths, true)
        end)
end

return packed
