-- progress.lua: tide.progress(n [, text]), tide.progress(loader): a bar that moves in a terminal, a display that is updated in a
-- notebook, and one line at the end anywhere else.
local tide = ...
local Progress = { __name = "progress" }
Progress.__index = Progress
tide._class("Progress", Progress)

local BAR, INTERVAL = 24, 0.1

local function one_line(text)
    return (string.gsub(tostring(text), "[\0-\31\127]", " "))
end

local function duration(seconds)
    if seconds < 60 then
        local tenths = math.floor(seconds * 10 + 0.5)
        return string.format("%d.%d s", tenths // 10, tenths % 10)
    end
    return string.format("%d:%02d", seconds // 60, math.floor(seconds % 60))
end

-- Of a loader whose length nobody knows, n is nil.
local function line(self)
    local spent, steps = tide.time() - self.started, self.at - self.first
    local done = self.n and (self.n > 0 and math.min(self.at / self.n, 1) or 1) or self.closed and 1 or 0
    local full = math.floor(done * BAR + 0.5)
    local rate = self.loader and steps > 0 and string.format(", %s/s", tide._number(steps / math.max(spent, 1e-9), 3)) or ""
    local left = steps > 0 and self.n and self.at < self.n and ", " .. duration(spent / steps * (self.n - self.at)) .. " left" or ""
    return string.format("%s%s%s %d%s  %s%s%s%s", self.text, string.rep("█", full), string.rep("·", BAR - full), self.at,
        self.n and "/" .. self.n or "", duration(spent), rate, left, self.message ~= "" and "  " .. self.message or "")
end

-- Cut to the terminal's width: characters, not bytes.
local function fit(text, width)
    local cut = utf8.offset(text, width)
    return cut and string.sub(text, 1, cut - 1) or text
end

local function draw(self)
    if self.terminal then
        io.stderr:write("\r\27[K", fit(line(self), self.terminal))
        io.stderr:flush()
    elseif self.notebook then
        tide.display(setmetatable({}, { __tostring = function() return line(self) end }),
            { id = self.id, update = self.shown })
    end
    self.shown, self.drawn = true, tide.time()
end

local function step(self, message)
    self.at = self.at + 1
    self.message = message and one_line(message) or ""
    if not self.closed and (self.terminal or self.notebook) and tide.time() - self.drawn >= INTERVAL then
        draw(self)
    end
end
Progress.step = tide._function("step(Progress self, any message=nil)",
    "One step is done; the message stands behind the bar.", step)

-- The bar's last state stays; closing twice is harmless.
local function close(self)
    if self.closed then
        return
    end
    self.closed = true
    if self.terminal then
        draw(self)
        io.stderr:write("\n")
    elseif self.notebook then
        draw(self)
    else
        print(line(self))
    end
end

Progress.close = tide._function("close(Progress self)", "The bar's last state stays.", close)
Progress.__close = close
-- What a loader gave; the end where that is nothing.
local function pass(self, ...)
    if (...) == nil then
        close(self)
    end
    return ...
end

-- for k in tide.progress(n) do: a step for each turn, and the end behind the last; for x, y in tide.progress(loader) do: likewise.
function Progress:__call(_, last)
    if self.loader then
        if last ~= nil then
            step(self)
        end
        return pass(self, self.loader(nil, last))
    end
    if last then
        step(self)
    end
    local k = (last or 0) + 1
    if k <= self.n then
        return k
    end
    close(self)
end
function Progress:__tostring()
    return line(self)
end

local count = 0

-- n, where it begins, and the loader where it is one.
local function read(steps)
    if math.type(steps) == "integer" and steps >= 0 then
        return steps, 0
    elseif type(steps) == "table" and getmetatable(steps) == tide.data._classes.DataLoader then
        return steps:_length(), steps:state().batch, steps
    end
    tide._fail("progress: argument 1 (n): expected an integer from 0 on, or a DataLoader, got %s", tide._describe(steps))
end

local function new(steps, text)
    if type(steps) == "table" and getmetatable(steps) == nil and steps[1] ~= nil then -- progress{3, text = "bar"}
        local options = {}
        for key, value in next, steps do
            options[key] = key ~= 1 and value or nil
        end
        return tide.progress(steps[1], options)
    end
    local n, first, loader = read(steps)
    count = count + 1
    local frontend = tide._frontend and tide._frontend() or {}
    local self = setmetatable({
        n = n, at = first, first = first, loader = loader, message = "", text = text and one_line(text) .. "  " or "", started = tide.time(), drawn = 0,
        notebook = frontend.notebook, terminal = not frontend.notebook and tide._terminal_width() or nil,
        id = string.format("tide-progress-%d", count), shown = false, closed = false,
    }, Progress)
    if self.terminal or self.notebook then
        draw(self)
    end
    return self
end

return tide._function("progress(any n, str? text=nil) -> Progress",
    "A progress bar over n steps: for k in tide.progress(n) do ... end, or p:step([message]) after each and p:close(); over a DataLoader, with "
        .. "rate and remaining time: for x, y in tide.progress(loader) do ... end.", new)
