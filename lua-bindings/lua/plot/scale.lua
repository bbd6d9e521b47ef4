-- plot/scale.lua: axes: the range of data, where on it a number lies, and the ticks with their labels. Positions run
-- from 0 to 1. It knows no pixels and no cells.
local tide = ...
local scale = {}

local TICKS = 5 -- about so many
local SMALLEST, LARGEST = 1e-300, 1.7e308 -- of a range; of a number that is drawn

local function is_finite(v) return v == v and v ~= math.huge and v ~= -math.huge end

-- Half the span: the whole may be beyond what a float holds.
local function half_of(low, high) return high / 2 - low / 2 end

-- A range with room in it, though all of the data is one number.
local function widen(low, high)
    local room = math.max(math.abs(low) * 0.1, 0.5)
    if half_of(low, high) > math.max(math.max(math.abs(low), math.abs(high)) * 1e-15, SMALLEST) then
        return low, high
    end
    return math.max(low - room, -LARGEST), math.min(high + room, LARGEST)
end

local function fixed(v, decimals) return (string.gsub(string.format(string.gsub("%.*f", "%*", decimals), v), ",", ".")) end

-- ---- ticks ----

local function round_step(raw)
    local power = math.floor(math.log(raw, 10))
    local unit = 10.0 ^ power
    for _, factor in ipairs { 1, 2, 5, 10 } do
        if factor * unit >= raw * 0.999 then
            return factor * unit, math.floor(math.log(factor * unit, 10) + 1e-9)
        end
    end
    return 10 * unit, power + 1
end

-- whole: only whole numbers are shown on the axis.
local function linear_ticks(low, high, wanted, whole)
    local step, power = round_step(half_of(low, high) / wanted * 2)
    if whole and power < 0 then
        step, power = 1.0, 0
    end
    local ticks = {}
    local first, most = math.ceil(low / step - 1e-9), math.max(math.abs(low), math.abs(high))
    for k = 0, 3 * wanted do
        local v = (first + k) * step
        if v > high + step * 1e-9 or not is_finite(v) then
            break
        end
        v = math.abs(v) < step * 1e-9 and 0.0 or v
        local plain = most < 1e6 and power >= -5
        ticks[#ticks + 1] = { value = v, label = plain and fixed(v, math.max(0, -power)) or tide._number(v, 5) }
    end
    if #ticks < 2 and wanted < 12 and not (whole and power == 0) then
        return linear_ticks(low, high, wanted * 2, whole)
    end
    return ticks
end

local function log_ticks(low, high, wanted)
    local from, to = math.log(low, 10), math.log(high, 10)
    local ticks = {}
    local function add(v)
        if v >= low * 0.9999 and v <= high * 1.0001 then
            ticks[#ticks + 1] = { value = v, label = tide._number(v, 3) }
        end
    end
    local every = math.max(1, math.ceil((to - from) / (wanted + 1)))
    local factors = to - from < 1 and { 1, 2, 3, 5, 7 } or to - from < 2.5 and { 1, 3 } or { 1 }
    for power = math.floor(from), math.ceil(to), every do
        for _, factor in ipairs(factors) do
            add(factor * 10.0 ^ power)
        end
    end
    return #ticks >= 2 and ticks or linear_ticks(low, high, wanted) -- so narrow that powers are no help
end

-- ---- scales ----

local Scale = {}
Scale.__index = Scale

--- at(v): its position; nil for what has none: nan, infinities, on a logarithmic scale what isn't above 0.
function Scale:at(v)
    if not is_finite(v) or self.log and v <= 0 then
        return nil
    elseif self.log then
        return (math.log(v, 10) - self.from) / (self.to - self.from)
    end
    return (v / 2 - self.low / 2) / half_of(self.low, self.high)
end

--- holds(v): has it a position within the range?
function Scale:holds(v)
    local p = self:at(v)
    return p ~= nil and p >= -1e-9 and p <= 1 + 1e-9
end

function Scale:ticks(wanted)
    return (self.log and log_ticks or linear_ticks)(self.low, self.high, wanted or TICKS, self.whole)
end

--- new(values, options): a scale over lists of numbers. options: log, limits {low, high}, zero (0 is in it), pad (room
--- at both ends, a share of the range). nil: no value has a place.
function scale.new(lists, options)
    local low, high, whole = math.huge, -math.huge, true
    for _, list in ipairs(lists) do
        for _, v in ipairs(list) do
            if is_finite(v) and (v > 0 or not options.log) then
                whole = whole and v == math.floor(v)
                low, high = math.min(low, v), math.max(high, v)
            end
        end
    end
    local empty = low > high
    if options.limits then
        low, high = options.limits[1], options.limits[2]
    elseif empty then
        low, high = options.log and 1 or 0, options.log and 10 or 1
    else
        if options.zero and not options.log then
            low, high = math.min(low, 0), math.max(high, 0)
        end
        if options.log then
            if low == high then
                low, high = math.max(low / 2, SMALLEST), math.min(high, LARGEST / 2) * 2
            end
            low = math.log(low, 10) < math.log(high, 10) and low or low / 2
        else
            low, high = widen(low, high)
            local room = half_of(low, high) * 2 * (options.pad or 0)
            if is_finite(room) then
                local bottom = options.zero and low == 0 and 0 or room
                low, high = low - bottom, high + (options.zero and high == 0 and 0 or room)
            end
        end
    end
    low, high = low + 0.0, high + 0.0
    return setmetatable({ low = low, high = high, log = options.log, empty = empty, whole = whole and not empty,
        from = options.log and math.log(low, 10), to = options.log and math.log(high, 10) }, Scale)
end

--- names(list): a scale of names side by side, each in the middle of its band.
function scale.names(list)
    local self = setmetatable({ low = 0.5, high = #list + 0.5, names = list, empty = #list == 0 }, Scale)
    if self.empty then
        self.high = 1.5
    end
    function self:ticks()
        local ticks = {}
        for k, name in ipairs(list) do
            ticks[k] = { value = k, label = name }
        end
        return ticks
    end
    return self
end

return scale
