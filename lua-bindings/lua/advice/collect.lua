-- advice/collect.lua: p:advice(): asks each recogniser (advice/KIND.lua) what it finds in a recording's calls, and lists what
-- is worth a line, worst first.
--
-- A recogniser is a function (view, add, replay) that calls add{...} with kind, site (or file and number), count, cost (ns
-- that it is about), text, fix, gain (`least`: another bound than usual) and measured. It asks for little: `add` leaves out what is not worth a line.
local tide = ...

local KINDS = { "foreach", "batch", "elementwise_loop", "sync", "layout", "cast", "fuse", "script", "no_grad", "hoist", "grow", "allocate",
    "small_batch", "chain_order", "precision", "threads", "data", "gc", "scalar", "optimizer" }
local LEAST_SHARE, LEAST_GAIN, MOST_GAIN = 0.05, 1.15, 1000

local Advice = { __name = "Advice" }
tide._class("Advice", Advice)

-- ---- text and JSON ----

local function number_text(x) return x >= 9.95 and string.format("%.0f", x) or string.format("%.1f", x) end

-- How much faster the whole is when a share of it is that much faster.
local function whole_gain(item) return 1 / (1 - item.share * (1 - 1 / item.gain)) end

local function line_of(item)
    local place = item.file and string.format("%s:%d: ", item.file, item.line) or ""
    return string.format("%s%s: %s — in all %s×, there %s× (%s)", place, item.text, item.fix, number_text(whole_gain(item)),
        number_text(item.gain), item.measured and "measured" or "estimated")
end

local Item = { __name = "AdviceItem", __tostring = line_of }
tide._class("AdviceItem", Item)

function Advice.__tostring(self)
    if #self == 0 then
        return "no advice: nothing that could be better takes 5 % of the time"
    end
    local lines = {}
    for k, item in ipairs(self) do
        lines[k] = line_of(item)
    end
    return table.concat(lines, "\n")
end

-- One line of JSON: a list of objects with the fields of each item, of which file and line may be null.
local function to_json(advice)
    local json = tide._require "files.json"
    local out = json.list {}
    for k, item in ipairs(advice) do
        local fields = { file = json.null, line = json.null }
        for name, value in pairs(item) do
            fields[name] = math.type(value) == "float" and math.floor(value * 1e4 + 0.5) / 1e4
                or type(value) == "string" and not utf8.len(value) and string.gsub(value, "[\128-\255]", "?") or value
        end
        out[k] = fields
    end
    return json.encode(out, "advice")
end

-- ---- the list ----

-- Time that the mend would save, as a share of all.
local function saving(item) return item.share * (1 - 1 / item.gain) end

local function is_worse(a, b)
    local x, y = saving(a), saving(b)
    if x ~= y then
        return x > y
    elseif a.kind ~= b.kind then
        return a.kind < b.kind
    end
    return (a.line or 0) < (b.line or 0)
end

local function place_of(view, found)
    if found.site then
        return found.site.file, found.site.number
    end
    return view.place(found.line)
end

local function adder(view, list)
    local seen = {}
    return function(found)
        local share = math.min(found.cost / view.wall, 1)
        local gain = math.min(found.gain or 1, MOST_GAIN)
        local file, line = place_of(view, found)
        local key = found.kind .. "\0" .. (file or "") .. "\0" .. (line or 0) .. "\0" .. found.fix
        if share < LEAST_SHARE or not (gain >= (found.least or LEAST_GAIN)) or seen[key] then
            return
        end
        seen[key] = true
        list[#list + 1] = setmetatable({ kind = found.kind, file = file, line = line, count = found.count, share = share,
            text = found.text, fix = found.fix, gain = gain, measured = found.measured or false }, Item)
    end
end

local function advise(profile)
    local view = tide._require("advice.view")(profile)
    local list = setmetatable({}, Advice)
    local add = adder(view, list)
    tide._require("advice.replay").begin(view.wall * 1e-9)
    for _, kind in ipairs(KINDS) do
        tide._require("advice." .. kind)(view, add, tide._require "advice.replay")
    end
    table.sort(list, is_worse)
    return list
end

return { advise = advise, to_json = to_json, kinds = KINDS }
