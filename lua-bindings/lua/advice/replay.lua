-- advice/replay.lua: runs what was recorded once more, on tensors of its own, beside what could stand there instead:
-- bounded in time and memory, and without a trace in random state, gradients and modes.
local tide = ...
local replay = {}

local SECONDS, BYTES, LONGEST = 0.25, 192 << 20, 2.0
local MOST_STRIDED = 1 << 24
local PATIENCE = 1.5 -- seconds, and as long as what was recorded took, for all replays; what is left then is estimated

-- ---- tensors ----

local floats = { float32 = true, float64 = true, float16 = true, bfloat16 = true }
local budget, generator, deadline

-- From here on, for advice on what took so many seconds.
function replay.begin(seconds) deadline = tide.time() + PATIENCE + seconds end

function replay.is_float(layout) return floats[layout.dtype] or false end

local function take(bytes)
    budget = budget - bytes
    if budget < 0 then
        error("advice: no memory for a replay", 0)
    end
end

local function fill(shape, dtype)
    if floats[dtype] then
        local x = tide.empty(shape, { dtype = tide[dtype] })
        return x:uniform_(0.5, 1.5, { generator = generator })
    end
    return tide.ones(shape, { dtype = tide[dtype] or tide.float32 })
end

-- A new tensor laid out so; `lead`: with so many of them side by side.
function replay.fresh(layout, lead)
    local shape, size = {}, 8
    if lead then
        shape[1] = lead
    end
    for _, n in ipairs(layout.shape) do
        shape[#shape + 1] = n
        size = size * n
    end
    take(size * (lead or 1))
    if not lead and layout.strides then
        local room = 1
        for d, stride in ipairs(layout.strides) do
            room = room + (layout.shape[d] - 1) * stride
        end
        take(8 * room)
        if layout.numel > 0 and room <= MOST_STRIDED then
            return fill({ room }, layout.dtype):as_strided(layout.shape, layout.strides)
        end
    end
    return fill(shape, layout.dtype)
end

function replay.fresh_list(layout, n)
    local list = {}
    for k = 1, n do
        list[k] = replay.fresh(layout)
    end
    return list
end

-- ---- code ----

-- Positional and named parameters of an operator: {name, type}.
local parameters = {}
local function parameters_of(base)
    local known = parameters[base]
    if known then
        return known
    end
    local doc = tide._doc(base) or tide._doc(base .. "_")
    if not doc or doc.internal then
        return nil
    end
    known = { positional = 0 }
    local types, options = {}, string.match(doc.signature, "{(.*)}%)") or ""
    for type, name in string.gmatch(doc.signature, "([^,%(%){} ]+) ([%a_][%w_]*)") do
        types[name] = types[name] or type
    end
    for k, name in ipairs(doc.params) do
        known[k] = { name = name, type = types[name] or "" }
        if not string.find(options, "[ {]" .. name .. "=") and not string.find(options, " " .. name .. "$") then
            known.positional = k
        end
    end
    parameters[base] = known
    return known
end

local function number_text(value)
    if math.type(value) == "integer" then
        return string.format("%d", value)
    elseif value ~= value then
        return "(0/0)"
    elseif value == math.huge or value == -math.huge then
        return value > 0 and "math.huge" or "-math.huge"
    end
    local short = string.format("%.15g", value)
    return tonumber(short) == value and short or string.format("%.17g", value)
end

local function int_text(value, counted) return string.format("%d", counted and value >= 0 and value + 1 or value) end

-- The Lua text of an argument that is no tensor; false: it can't be written.
local function value_text(argument, type)
    local kind, value = argument[1], argument[2]
    local counted = string.find(type, "^dim") or string.find(type, "^index")
    if kind == "nil" then
        return "nil"
    elseif kind == "int" then
        return int_text(value, counted)
    elseif kind == "float" then
        return number_text(value)
    elseif kind == "bool" then
        return tostring(value)
    elseif kind == "string" and value then
        return string.format("%q", value)
    elseif kind == "dtype" then
        return "tide." .. value
    elseif (kind == "ints" or kind == "floats") and value then
        local parts = {}
        for k, n in ipairs(value) do
            parts[k] = kind == "ints" and int_text(n, counted) or number_text(n)
        end
        return "{" .. table.concat(parts, ", ") .. "}"
    end
    return false
end
replay.number_text = number_text

-- The call of an operator as Lua writes it, with these texts for its tensors; nil: it can't be written. `change` may
-- give another text for a parameter: change(name, text, k); the form "foreach" is that over lists.
function replay.call_text(kind, arguments, tensors, change, form)
    local known, nth = arguments and parameters_of(kind.base), 0
    if not known or #arguments > #known then
        return nil
    end
    local positional, named = {}, {}
    for k, argument in ipairs(arguments) do
        local text
        if argument[1] == "tensor" then
            nth = nth + 1
            text = tensors[nth]
        elseif argument[1] == "tensors" then
            local parts = {}
            for j = 1, argument[2] do
                parts[j] = tensors[nth + j] or "nil"
            end
            nth = nth + argument[2]
            text = "{" .. table.concat(parts, ", ") .. "}"
        else
            text = value_text(argument, known[k].type)
        end
        text = change and change(known[k].name, text, k) or text
        if not text then
            return nil
        elseif k <= known.positional then
            positional[k] = text
        elseif text ~= "nil" and text ~= "false" and not (known[k].name == "alpha" and text == "1") then
            named[#named + 1] = known[k].name .. " = " .. text
        end
    end
    while #positional > 1 and positional[#positional] == "nil" do
        positional[#positional] = nil
    end
    if #named > 0 then
        positional[#positional + 1] = "{" .. table.concat(named, ", ") .. "}"
    end
    if form == "foreach" then
        return string.format("tide.foreach.%s%s(%s)", kind.base, kind.inplace and "_" or "", table.concat(positional, ", "))
    elseif kind.inplace then
        local self = table.remove(positional, 1)
        return string.format("%s:%s_(%s)", self, kind.base, table.concat(positional, ", "))
    end
    return string.format("tide.%s(%s)", kind.base, table.concat(positional, ", "))
end

-- A function of a text that has the given values as locals.
function replay.compile(text, values)
    local names, list = {}, {}
    for name, value in pairs(values) do
        names[#names + 1] = name
        list[#list + 1] = value
    end
    local head = #names > 0 and "local " .. table.concat(names, ", ") .. " = ...\n" or ""
    local chunk = load("local tide = " .. "(...)\nlocal function make(...)\n" .. head
        .. "return function()\n" .. text .. "\nend\nend\nreturn make(select(2, ...))", "=replay", "t", { select = select, math = math, ipairs = ipairs })
    return chunk(tide, table.unpack(list, 1, #names))
end

-- ---- time ----

local function once(fn)
    local start = tide.time()
    fn()
    return tide.time() - start
end

-- The shortest time that it takes, of what can be tried in so many seconds. Whoever counts instead of telling time (tests)
-- puts other functions in the place of this one and of `race`.
function replay.best_of(fn, seconds)
    local best, stop, rounds = math.huge, tide.time() + seconds, 0
    repeat
        best, rounds = math.min(best, once(fn)), rounds + 1
    until tide.time() > stop or rounds >= 200
    return best
end

-- One after the other, where the first leaves something behind that would hinder the second.
local function race_apart(slow, fast)
    slow()
    local a = replay.best_of(slow, SECONDS / 2)
    fast()
    tide.sleep(0.01)
    return a, replay.best_of(fast, SECONDS / 2)
end

-- Both in turn until the time is over: the shortest of each, in seconds.
function replay.race(slow, fast, apart)
    if apart then
        return race_apart(slow, fast)
    end
    local stop, a, b = tide.time() + SECONDS, once(slow), once(fast)
    if a + b > LONGEST then
        return a, b
    end
    a, b = math.huge, math.huge
    local rounds = 0
    repeat
        a, b = math.min(a, once(slow)), math.min(b, once(fast))
        rounds = rounds + 1
    until tide.time() > stop and rounds >= 2 or rounds >= 200
    return a, b
end

-- What the function that build() returns takes, once: seconds; nil: it can't be told.
function replay.seconds(build)
    budget, generator = BYTES, tide.Generator()
    local ok, seconds = pcall(function()
        local _ <close> = tide.no_grad()
        return replay.best_of(build(), SECONDS / 8)
    end)
    generator = nil
    if not ok and string.find(tostring(seconds), "interrupt", 1, true) then
        error(seconds, 0)
    end
    return ok and seconds or nil
end

-- build() makes the tensors and returns what was recorded and what could stand there, two functions. How much faster
-- the second is; nil: it can't be told. `apart`: first one, then the other.
function replay.gain(build, apart)
    if deadline and tide.time() > deadline then
        return nil
    end
    budget, generator = BYTES, tide.Generator()
    local ok, gain = pcall(function()
        local _ <close> = tide.no_grad()
        local _ <close> = tide.autocast { enabled = false }
        local slow, fast = build()
        if not slow then
            return nil
        end
        local a, b = replay.race(slow, fast, apart)
        if a < 1.5 * b and a + b < LONGEST / 4 then -- near enough for others' work to hide it: once more
            local c, d = replay.race(slow, fast, apart)
            a, b = math.min(a, c), math.min(b, d)
        end
        return b > 0 and a / b or nil
    end)
    generator = nil
    if not ok and string.find(tostring(gain), "interrupt", 1, true) then
        error(gain, 0)
    end
    return ok and gain or nil, not ok and gain or nil
end

return replay
