-- distributed/tensor_parallel.lua: Linear layers whose weights are split among ranks (Shoeybi et al. 2019): by columns of the
-- product (rows of the weight), or by rows. A pair, columns first, communicates once in forward and once in backward.
--
-- What is the same on all ranks is "replicate", what each has a slice of, along the last dim, is "shard". Sums over ranks are
-- all_reduce's, in its order, of parts that each rank sums as one Linear of its sizes.
local tide = ...
local fail, nn = tide._fail, tide.nn
local distributed

-- ---- collectives with gradients ----

-- Where rank r's slice of n begins, and its length: as chunk cuts, so that the last ones may be shorter.
local function slice(n, r, size)
    local most = (n + size - 1) // size
    local begin = math.min(r * most, n)
    return begin + 1, math.min(most, n - begin)
end

local Copy, Reduce, Gather, Cut = tide.autograd.Function "CopyToRanks", tide.autograd.Function "ReduceOverRanks",
    tide.autograd.Function "GatherFromRanks", tide.autograd.Function "CutForRank"

-- The same on all ranks, of which each makes its part of the gradient.
function Copy.forward(ctx, x, group)
    ctx.group = group
    return x:view(x:size())
end
function Copy.backward(ctx, g) return Reduce(g, ctx.group) end

-- The sum over ranks, which is the same on all.
function Reduce.forward(ctx, x, group)
    ctx.group = group
    return distributed.all_reduce(x:detach():clone(), "sum", { group = group })
end
function Reduce.backward(ctx, g) return Copy(g, ctx.group) end

-- The whole, from all ranks' slices of the last dim, which has n elements.
function Gather.forward(ctx, x, group, n)
    ctx.group = group
    local parts = distributed.all_gather(x, { group = group, uneven = n % distributed.size(group) ~= 0 })
    return tide.cat(parts, -1)
end
function Gather.backward(ctx, g) return Cut(g, ctx.group) end

-- This rank's slice of the last dim.
function Cut.forward(ctx, x, group)
    ctx.group, ctx.n = group, x:size(-1)
    local begin, length = slice(ctx.n, distributed.rank(group), distributed.size(group))
    return x:narrow(-1, begin, length):contiguous()
end
function Cut.backward(ctx, g) return Gather(g, ctx.group, ctx.n) end

-- ---- layers ----

local Split = nn.class "SplitLinear" -- what both have: weight, bias, group, sizes of the whole, layouts

function Split:describe()
    return string.format("%s(%d, %d, bias = %s, rank %d of %d)", getmetatable(self).__name, self.in_features, self.out_features,
        tostring(self.bias ~= nil), distributed.rank(self.group), distributed.size(self.group))
end

-- This rank's slice of a tensor along a dim, as a parameter; the whole is rank 0's.
local function take_slice(self, x, dim)
    local whole = distributed.broadcast(x:detach():clone(), 0, { group = self.group })
    local begin, length = slice(x:size(dim), distributed.rank(self.group), distributed.size(self.group))
    return whole:narrow(dim, begin, length):clone():requires_grad_(x.requires_grad)
end

function Split:init(layer, group, style)
    self.group, self.in_features, self.out_features = group, layer.weight:size(2), layer.weight:size(1)
    self.input, self.output, self.training = style.input_layouts, style.output_layouts, layer.training
    local split = self[style.split]
    local _, last = slice(split, distributed.size(group) - 1, distributed.size(group))
    if last <= 0 then
        fail("%s: %s %d leave nothing for some of %d ranks", style.name, style.split, split, distributed.size(group))
    end
    self.weight = take_slice(self, layer.weight, style.dim)
end

local Colwise = nn.class("ColwiseLinear", Split)

function Colwise:init(layer, group, style)
    Split.init(self, layer, group, style)
    self.bias = layer.bias and take_slice(self, layer.bias, 1) or nil
end

function Colwise:forward(x)
    x = self.input == "shard" and Gather(x, self.group, self.in_features) or x
    local y = tide.linear(Copy(x, self.group), self.weight, self.bias)
    return self.output == "replicate" and Gather(y, self.group, self.out_features) or y
end

local Rowwise = nn.class("RowwiseLinear", Split)

function Rowwise:init(layer, group, style)
    Split.init(self, layer, group, style)
    if layer.bias then
        self.bias = distributed.broadcast(layer.bias:detach():clone(), 0, { group = group }):requires_grad_(layer.bias.requires_grad)
    end
end

-- The bias is added to the sum, once.
function Rowwise:forward(x)
    x = self.input == "replicate" and Cut(x, self.group) or x
    local y = Reduce(tide.linear(x, self.weight), self.group)
    y = self.bias and y + self.bias or y
    return self.output == "shard" and Cut(y, self.group) or y
end

-- ---- plans ----

local Style = { __name = "ParallelStyle" }
Style.__index = Style

function Style:__tostring()
    return string.format("%s{input_layouts = '%s', output_layouts = '%s'}", self.name, self.input_layouts, self.output_layouts)
end

local function style(name, class, split, dim)
    return function(input, output)
        return setmetatable({ name = name, class = class, split = split, dim = dim, input_layouts = input, output_layouts = output }, Style)
    end
end

local parallel = { ColwiseParallel = style("ColwiseParallel", Colwise, "out_features", 1),
    RowwiseParallel = style("RowwiseParallel", Rowwise, "in_features", 2) }

local function split_layer(layer, how, group, path)
    if getmetatable(how) ~= Style then
        fail("parallelize_module: the plan of '%s': ColwiseParallel{} or RowwiseParallel{} expected, got %s", path, tide._describe(how))
    elseif not nn.is(layer, nn.Linear) then
        fail("parallelize_module: '%s' is %s: a Linear expected", path, getmetatable(layer).__name)
    end
    return how.class(layer, group, how)
end

-- Names in order, so that all ranks split in the same one. `*` in a name of the plan stands for one part.
local function matches(names, plan)
    local found, patterns, styles = {}, {}, {}
    for pattern, how in pairs(plan) do -- a place in a Sequential may be a number
        patterns[#patterns + 1] = tostring(pattern)
        styles[tostring(pattern)] = how
    end
    table.sort(patterns)
    for _, pattern in ipairs(patterns) do
        local before = #found
        local text = "^" .. string.gsub(string.gsub(pattern, "[%-%.%+%[%]%(%)%$%^%%%?]", "%%%0"), "%*", "[^.]*") .. "$"
        for _, name in ipairs(names) do
            if string.find(name, text) then
                found[#found + 1] = { name, styles[pattern] }
            end
        end
        if #found == before then
            fail("parallelize_module: there is no module '%s'", pattern)
        end
    end
    return found
end

function parallel.parallelize_module(module, plan, group)
    distributed = tide.distributed
    if not nn.is_module(module) then
        fail("parallelize_module: argument 1 (module): a module expected, got %s", tide._describe(module))
    elseif getmetatable(plan) == Style then
        return split_layer(module, plan, group, "the module")
    elseif type(plan) ~= "table" then
        fail("parallelize_module: argument 2 (plan): a style, or styles by modules' names expected, got %s", tide._describe(plan))
    end
    local names = {}
    for name in module:named_modules() do
        names[#names + 1] = name ~= "" and name or nil
    end
    for _, found in ipairs(matches(names, plan)) do
        local path, field = string.match(found[1], "^(.*)%.([^.]+)$")
        local owner = path and module:get_submodule(path) or module
        field = field or found[1]
        field = owner[field] == nil and math.tointeger(tonumber(field)) or field
        owner[field] = split_layer(owner[field], found[2], group, found[1])
    end
    return module
end

return parallel
