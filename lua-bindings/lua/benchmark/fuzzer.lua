-- benchmark/fuzzer.lua: tide.benchmark.Fuzzer: tensors of sizes drawn at random, as torch.utils.benchmark's.
local tide = ...

local MOST_TRIES = 1000

-- ---- parameters ----

local Parameter = { __name = "FuzzedParameter" }
tide._class("FuzzedParameter", Parameter)
Parameter.__index = Parameter

local function fail(what, format, ...) tide._fail(what .. ": " .. format, ...) end

local function check_choices(name, choices, weights)
    if #choices == 0 then
        fail("FuzzedParameter", "%s: choices are empty", name)
    elseif weights and #weights ~= #choices then
        fail("FuzzedParameter", "%s: %d weights for %d choices", name, #weights, #choices)
    end
    local sum = 0
    for k, weight in ipairs(weights or {}) do
        if math.type(weight) == nil or not (weight >= 0 and weight < math.huge) then
            fail("FuzzedParameter", "%s: weight %d: a number from 0 on expected, got %s", name, k, tide._describe(weight))
        end
        sum = sum + weight
    end
    if weights and sum == 0 then
        fail("FuzzedParameter", "%s: the weights are all 0", name)
    end
end

local function check_bounds(name, low, high, distribution)
    if not (low and high) then
        fail("FuzzedParameter", "%s: min and max expected, or choices", name)
    elseif not (low <= high and high - low < math.huge) then
        fail("FuzzedParameter", "%s: min %s is not below max %s", name, low, high)
    elseif distribution == "loguniform" and low <= 0 then
        fail("FuzzedParameter", "%s: loguniform from %s: min must be above 0", name, low)
    end
end

local FuzzedParameter = tide._function("FuzzedParameter(str name, *, number? min=nil, number? max=nil, "
    .. "\"uniform\"|\"loguniform\" distribution=\"uniform\", list? choices=nil, list? weights=nil, bool strict=false) -> FuzzedParameter",
    "A number that Fuzzer draws anew for each of its cases: from min to max (integers where both are and the distribution is "
    .. "uniform; loguniform: integers, each power of ten as likely as the next), or one of `choices` by their `weights`; a choice "
    .. "that is another parameter's name stands for its value. A strict one is kept while the others are drawn again.",
    function(name, min, max, distribution, choices, weights, strict)
        if choices then
            if min or max then
                fail("FuzzedParameter", "%s: either choices or min and max", name)
            end
            check_choices(name, choices, weights)
        else
            if weights then
                fail("FuzzedParameter", "%s: weights are for choices", name)
            end
            min, max = math.tointeger(min) or min, math.tointeger(max) or max
            check_bounds(name, min, max, distribution)
        end
        return setmetatable({ name = name, min = min, max = max, distribution = distribution, choices = choices,
            weights = weights, strict = strict }, Parameter)
    end)

local function choose(p, random)
    if not p.weights then
        return p.choices[math.floor(random() * #p.choices) + 1]
    end
    local sum = 0
    for _, weight in ipairs(p.weights) do
        sum = sum + weight
    end
    local at, last = random() * sum, nil
    for k, weight in ipairs(p.weights) do
        if weight > 0 then
            last = p.choices[k]
            at = at - weight
            if at < 0 then
                break
            end
        end
    end
    return last
end

function Parameter:sample(random)
    if self.choices then
        return choose(self, random)
    elseif self.distribution == "loguniform" then
        local low, high = math.log(self.min), math.log(self.max)
        local value = math.floor(math.exp(low + random() * (high - low)))
        return math.max(math.ceil(self.min), math.min(value, self.max))
    elseif math.type(self.min) == "integer" and math.type(self.max) == "integer" then
        return self.min + math.floor(random() * (self.max - self.min + 1))
    end
    return self.min + random() * (self.max - self.min)
end

-- ---- tensors ----

local Tensor = { __name = "FuzzedTensor" }
tide._class("FuzzedTensor", Tensor)
Tensor.__index = Tensor

local FuzzedTensor = tide._function("FuzzedTensor(str name, *, list size, list? steps=nil, number(0..1) probability_contiguous=0.5, "
    .. "int(0..)? min_elements=nil, int(0..)? max_elements=nil, int(0..)? max_bytes=nil, str? dim=nil, dtype? dtype=nil, "
    .. "function? make=nil) -> FuzzedTensor",
    "A tensor that Fuzzer makes for each of its cases: its sizes, and the steps it takes through a larger one, are numbers or "
    .. "names of parameters, of which the parameter named by `dim` says how many count. Others than probability_contiguous lie "
    .. "in memory in another order. Cases with fewer than min_elements, more than max_elements or max_bytes of memory are drawn "
    .. "again. make(sizes, params) makes another tensor than a random one.",
    function(name, size, steps, probability, min_elements, max_elements, max_bytes, dim, dtype, make)
        for k, n in ipairs(size) do
            if type(n) ~= "string" and not (math.type(n) == "integer" and n >= 0) then
                fail("FuzzedTensor", "%s: size %d: an integer from 0 on or a parameter's name expected, got %s", name, k, tide._describe(n))
            end
        end
        return setmetatable({ name = name, size = size, steps = steps or {}, probability = probability, min_elements = min_elements,
            max_elements = max_elements, max_bytes = max_bytes, dim = dim, dtype = dtype or tide.float32, make = make }, Tensor)
    end)

local function resolve(self, list, n, params, least)
    local out = {}
    for k = 1, n do
        local value = list[k]
        if type(value) == "string" then
            value = params[value]
        end
        value = math.tointeger(value == nil and 1 or value)
        if not value or value < least then
            fail("Fuzzer", "%s: a size or step of %s: an integer from %d on expected", self.name, tide._describe(params[list[k]]), least)
        end
        out[k] = value
    end
    return out
end

local function product(list)
    local n = 1.0
    for _, value in ipairs(list) do
        n = n * value
    end
    return n
end

-- Its sizes, its steps, and the sizes of the tensor that it steps through.
local function layout(self, params)
    local n = self.dim and params[self.dim] or #self.size
    local size, steps, whole = resolve(self, self.size, n, params, 0), resolve(self, self.steps, n, params, 1), {}
    for k = 1, n do
        whole[k] = size[k] * steps[k]
    end
    return size, steps, whole
end

function Tensor:fits(params)
    local size, _, whole = layout(self, params)
    local n, bytes = product(size), product(whole) * self.dtype.itemsize
    return not (self.max_elements and n > self.max_elements) and not (self.min_elements and n < self.min_elements)
        and not (self.max_bytes and bytes > self.max_bytes)
end

-- An order of the dims that is not their own.
local function draw_order(n, random)
    local order, moved = {}, false
    repeat
        for k = 1, n do
            order[k] = k
        end
        for k = n, 2, -1 do
            local other = math.floor(random() * k) + 1
            order[k], order[other] = order[other], order[k]
        end
        for k = 1, n do
            moved = moved or order[k] ~= k
        end
    until moved
    return order
end

local function reorder(x, random)
    local order, back = draw_order(x.ndim, random), {}
    for k, dim in ipairs(order) do
        back[dim] = k
    end
    return x:permute(order):contiguous():permute(back), order
end

local function random_tensor(size, dtype, generator)
    if dtype.is_floating_point then
        return tide.rand(size, { dtype = dtype, generator = generator })
    end
    return tide.randint(0, dtype == tide.bool and 2 or 127, size, { dtype = dtype, generator = generator })
end

-- The tensor, and what is said of it.
function Tensor:build(params, random, generator)
    local size, steps, whole = layout(self, params)
    local x, order = self.make and self.make(whole, params) or random_tensor(whole, self.dtype, generator), nil
    if not tide.is_tensor(x) or x.ndim ~= #whole then
        fail("Fuzzer", "%s: make: a tensor of %d dims expected, got %s", self.name, #whole, tide._describe(x))
    end
    if x.ndim > 1 and random() >= self.probability then
        x, order = reorder(x, random)
    end
    for k, step in ipairs(steps) do
        if step > 1 then
            x = x:slice(k, 1, whole[k], step)
        end
    end
    return x, { numel = x:numel(), shape = size, order = order, steps = steps, is_contiguous = x:is_contiguous(), dtype = x.dtype }
end

-- ---- cases ----

local Fuzzer = { __name = "Fuzzer" }
tide._class("Fuzzer", Fuzzer)
local methods = {}
Fuzzer.__index = function(self, name)
    if name == "rejection_rate" then
        return self.drawn == 0 and 0.0 or self.rejected / self.drawn
    end
    return methods[name]
end

-- Names of other parameters give way to their values; false: they go round in a circle.
local function follow_names(params, known)
    for name, value in pairs(params) do
        local hops = 0
        while type(value) == "string" and known[value] do
            value, hops = params[value], hops + 1
            if hops > 100 then
                fail("Fuzzer", "parameter %s: the names go round in a circle", name)
            end
        end
        params[name] = value
    end
end

local function draw(self, strict)
    local params = {}
    for _, p in ipairs(self.parameters) do
        local value = strict[p.name]
        if value == nil then
            value = p:sample(self.random)
        end
        if p.strict then
            strict[p.name] = value
        end
        params[p.name] = value
    end
    follow_names(params, self.known)
    return params
end

local function is_wanted(self, params)
    for _, constraint in ipairs(self.constraints) do
        if not constraint(params) then
            return false
        end
    end
    for _, tensor in ipairs(self.tensors) do
        if not tensor:fits(params) then
            return false
        end
    end
    return true
end

local function generate(self)
    local strict = {}
    for _ = 1, MOST_TRIES do
        local params = draw(self, strict)
        self.drawn = self.drawn + 1
        if is_wanted(self, params) then
            return params
        end
        self.rejected = self.rejected + 1
    end
    fail("Fuzzer", "none of %d draws met the constraints", MOST_TRIES)
end

methods.take = tide._function("take(Fuzzer f, int(0..) n) -> function",
    "For a loop over so many cases: `for tensors, params, properties in fuzzer:take(10) do`, each a table by name; the same "
    .. "ones whenever it is called, from the seed on.", function(self, n)
        local generator, k = tide.Generator(), 0
        generator:manual_seed(self.seed)
        self.random = function() return tide.rand(1, { dtype = tide.float64, generator = generator }):item() end
        return function()
            k = k + 1
            if k > n then
                return nil
            end
            local params, tensors, properties = generate(self), {}, {}
            for _, tensor in ipairs(self.tensors) do
                tensors[tensor.name], properties[tensor.name] = tensor:build(params, self.random, generator)
            end
            return tensors, params, properties
        end
    end)

local function note_names(list, what, class, known)
    for k, entry in ipairs(list) do
        if getmetatable(entry) ~= class then
            fail("Fuzzer", "%s: entry %d: a %s expected, got %s", what, k, class.__name, tide._describe(entry))
        elseif known[entry.name] then
            fail("Fuzzer", "two are called '%s'", entry.name)
        end
        known[entry.name] = entry
    end
end

local function check_references(tensors, known)
    for _, tensor in ipairs(tensors) do
        for _, list in ipairs { tensor.size, tensor.steps, { tensor.dim } } do
            for _, name in ipairs(list) do
                if type(name) == "string" and getmetatable(known[name]) ~= Parameter then
                    fail("Fuzzer", "%s: no parameter is called '%s'", tensor.name, name)
                end
            end
        end
    end
end

local function make_fuzzer(parameters, tensors, constraints, seed)
    local known = {}
    note_names(parameters, "parameters", Parameter, known)
    note_names(tensors, "tensors", Tensor, known)
    check_references(tensors, known)
    for k, constraint in ipairs(constraints or {}) do
        if type(constraint) ~= "function" then
            fail("Fuzzer", "constraints: entry %d: a function expected, got %s", k, tide._describe(constraint))
        end
    end
    return setmetatable({ parameters = parameters, tensors = tensors, constraints = constraints or {}, known = known,
        seed = seed or math.random(0, 0x7fffffff), drawn = 0, rejected = 0 }, Fuzzer)
end

return { FuzzedParameter = FuzzedParameter, FuzzedTensor = FuzzedTensor,
    Fuzzer = tide._function("Fuzzer(*, list parameters, list tensors, list? constraints=nil, int(0..)? seed=nil) -> Fuzzer",
        "Cases of random sizes for measurements: parameters (FuzzedParameter) are drawn, tensors (FuzzedTensor) made of them; "
        .. "constraints are functions of the table of parameters, and cases that one of them says false to are drawn again "
        .. "(f.rejection_rate tells how many). fuzzer:take(n) loops over cases.", make_fuzzer) }
