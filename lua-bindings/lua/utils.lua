-- utils.lua: tide.utils: checkpoint, and tensorboard, which has a file of its own.
local tide = ...
local fail = tide._fail
local utils = {}

local ENOUGH = setmetatable({}, { __tostring = function() return "checkpoint: all is recomputed" end })

-- One checkpointed call: what its nodes save is numbered, not kept, and worked out again by another call
-- when backward asks for the first of it.
local Part = {}
Part.__index = Part

function Part:pack()
    self.count = self.count + 1
    return self.count
end

-- What fn saves the second time, in the same order; it is stopped when all is there.
function Part:record(x)
    local values = self.values
    values[#values + 1] = x
    if #values == self.count then
        error(ENOUGH, 0)
    end
    return x
end

-- Random numbers come as they came the first time.
local function with_state(state, fn)
    local before = tide.get_rng_state()
    tide.set_rng_state(state)
    local results = table.pack(pcall(fn))
    tide.set_rng_state(before)
    return table.unpack(results, 1, results.n)
end

function Part:recompute()
    self.values = {}
    local function run()
        tide.enable_grad(tide.autograd.graph.saved_tensors_hooks, function(x) return self:record(x) end,
            function(x) return x end, self.fn, table.unpack(self.args, 1, self.args.n))
    end
    local ok, message
    if self.state then
        ok, message = with_state(self.state, run)
    else
        ok, message = pcall(run)
    end
    if not ok and not rawequal(message, ENOUGH) then
        error(message, 0)
    end
    if #self.values ~= self.count then
        fail("checkpoint: called again the function saved %d tensors, at first %d: it must do the same each time",
            #self.values, self.count)
    end
end

function Part:unpack(place)
    if not self.values or not self.values[place] then
        self:recompute()
    end
    local x = self.values[place]
    self.values[place] = false -- asked for again, by another backward, all is worked out again
    return x
end

utils.checkpoint = tide._function("checkpoint(function fn, ..., *, bool preserve_rng_state=true, bool use_reentrant=false) -> any",
    "fn(...), whose backward works out again what it needs instead of keeping it: less memory for more time. There is one kind, PyTorch's "
    .. "use_reentrant=False.",
    function(fn, preserve_rng_state, use_reentrant, ...)
        if use_reentrant then
            fail("checkpoint: option use_reentrant: there is one kind, the one without: false, or nothing")
        end
        if not tide.is_grad_enabled() or tide.is_inference_mode_enabled() then
            return fn(...)
        end
        local part = setmetatable({ fn = fn, args = table.pack(...), count = 0,
            state = preserve_rng_state and tide.get_rng_state() or nil }, Part)
        return tide.autograd.graph.saved_tensors_hooks(function() return part:pack() end,
            function(place) return part:unpack(place) end, fn, ...)
    end)

utils.checkpoint_sequential = tide._function("checkpoint_sequential(any functions, int(1..) segments, any input, *, "
    .. "bool preserve_rng_state=true, bool use_reentrant=false) -> any",
    "A Sequential, or a list of functions, run on the input in so many segments, each but the last by checkpoint.",
    function(functions, segments, x, preserve_rng_state, use_reentrant)
        local parts = tide.nn.is_module(functions) and functions:children() or functions
        if type(parts) ~= "table" or segments > #parts then
            fail("checkpoint_sequential: a Sequential or a list of at least %d functions expected, got %s", segments,
                type(parts) == "table" and #parts .. " of them" or tide._describe(functions))
        end
        local size = #parts // segments
        local function run(first, last)
            return function(y)
                for k = first, last do
                    y = parts[k](y)
                end
                return y
            end
        end
        for k = 1, segments - 1 do
            x = utils.checkpoint(run((k - 1) * size + 1, k * size), x, { preserve_rng_state = preserve_rng_state, use_reentrant = use_reentrant })
        end
        return run((segments - 1) * size + 1, #parts)(x)
    end)

utils.make_grid = tide._function("make_grid(any images, *, int(1..) nrow=8, int(0..) padding=2, bool normalize=false, "
    .. "number pad_value=0) -> Tensor",
    "A batch (N, C, H, W), or a list of images (C, H, W), as one image (3, H, W): nrow in a row, `padding` pixels of pad_value between "
    .. "them; those of one channel get three. normalize: from least to largest become 0 to 1. tide.plot.image shows it.",
    function(images, nrow, padding, normalize, pad_value)
        local x = type(images) == "table" and tide.stack(images, 1) or images
        x = tide.is_tensor(x) and x:dim() == 3 and x:unsqueeze(1) or x -- one image
        if not tide.is_tensor(x) or x:dim() ~= 4 or x.shape[2] ~= 1 and x.shape[2] ~= 3 or x.shape[1] == 0 then
            fail("make_grid: images (N, C, H, W) of one or three channels expected, got %s", tide.is_tensor(x) and "shape " .. tostring(x.shape) or tide._describe(x))
        end
        if normalize then
            local low, high = x:amin(), x:amax()
            x = (x - low) / (high - low):clamp { min = 1e-5 }
        end
        local n, _, height, width = table.unpack(x.shape)
        local columns = math.min(nrow, n)
        local rows = math.ceil(n / columns)
        local grid = tide.full({ 3, rows * (height + padding) + padding, columns * (width + padding) + padding }, pad_value,
            { dtype = x.dtype, device = x.device })
        for k = 1, n do
            local i, j = (k - 1) // columns, (k - 1) % columns
            grid:narrow(2, i * (height + padding) + padding + 1, height):narrow(3, j * (width + padding) + padding + 1, width)
                :copy_(x[k]:expand(3, height, width))
        end
        return grid
    end)

utils.tensorboard = tide._require "files.tensorboard"
utils.benchmark = tide.benchmark

tide._document(utils, "utils", "tide.utils", "checkpoint, checkpoint_sequential, make_grid; tensorboard.SummaryWriter; benchmark.")

return utils
