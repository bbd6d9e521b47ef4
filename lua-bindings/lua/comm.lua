-- comm.lua: tide.comm: channels of one's own between Lua and a notebook's page. Either side opens one by the name of a
-- target, both send data (JSON) with bytes beside it, either closes it. What a callback prints or raises is shown at the
-- cell in which its comm was made.
local tide = ...
local fail, declare = tide._fail, tide._function
local json = tide._require "files.json"
local comm = {}

local targets, open = {}, {} -- functions by name; comms by id

local Comm = { __name = "Comm" }
Comm.__index = Comm
tide._class("Comm", Comm)

-- 32 hexadecimal digits that nobody else has.
local function new_id()
    local file = assert(io.open("/dev/urandom", "rb"))
    local bytes = file:read(16)
    file:close()
    return (string.gsub(bytes, ".", function(c) return string.format("%02x", string.byte(c)) end))
end

local MOST_BUFFERS = 1000 -- of one message

local function check_buffers(name, buffers)
    if buffers and #buffers > MOST_BUFFERS then
        fail("%s: %d buffers are more than a message takes, %d", name, #buffers, MOST_BUFFERS)
    end
    for k, bytes in ipairs(buffers or {}) do
        if type(bytes) ~= "string" then
            fail("%s: option buffers[%d]: expected a string of bytes, got %s", name, k, tide._describe(bytes))
        end
    end
    return buffers
end

local function has_comms()
    return tide._comm_send ~= nil and tide._frontend().notebook == true
end

local function send(name, type_name, content, metadata, buffers)
    local text = json.encode(content, name)
    return tide._comm_send(type_name, text, json.encode(metadata or {}, name), check_buffers(name, buffers))
end

local function new(id, target)
    local self = setmetatable({ id = id, target = target, closed = false, origin = tide._output_parent() }, Comm)
    open[id] = self
    return self
end

local OPTIONS = "table? metadata=nil, list? buffers=nil"

comm.available = declare("available() -> bool",
    "Does this front end have comms? A notebook does, a terminal doesn't. Example: tide.comm.available()", has_comms)

comm.register_target = declare("register_target(str name, function? fn)",
    "fn(comm, data, buffers) is called when the page opens a comm to that name; nil takes the name away. "
    .. "Example: tide.comm.register_target('echo', function(c) c:on_message(function(data) c:send(data) end) end)",
    function(name, fn) targets[name] = fn end)

comm.open = declare("open(str target, any data=nil, *, " .. OPTIONS .. ") -> Comm",
    "A comm to a target of the page. Example: tide.comm.available() and tide.comm.open('my_extension', {hello = 1})",
    function(target, data, metadata, buffers)
        if not has_comms() then
            fail("open: this front end has no comms: they need a notebook")
        end
        local id = new_id()
        send("open", "comm_open", { comm_id = id, target_name = target, data = data == nil and {} or data }, metadata, buffers)
        return new(id, target)
    end)

local function method(name, parameters, doc, fn) Comm[name] = declare(string.format("%s(Comm self%s", name, parameters), doc, fn) end

method("send", ", any data=nil, *, " .. OPTIONS .. ")", "Send data, with strings of bytes beside it. "
    .. "Example: pcall(function() comm:send({step = 1}) end)",
    function(self, data, metadata, buffers)
        if self.closed then
            fail("send: the comm to '%s' is closed", self.target)
        end
        send("send", "comm_msg", { comm_id = self.id, data = data == nil and {} or data }, metadata, buffers)
    end)

method("close", ", any data=nil)", "Close it; closing twice is harmless. Example: pcall(function() comm:close() end)",
    function(self, data)
        if not self.closed then
            self.closed, open[self.id] = true, nil
            send("close", "comm_close", { comm_id = self.id, data = data == nil and {} or data })
        end
    end)

method("on_message", ", function? fn)", "fn(data, buffers) is called for what the page sends. "
    .. "Example: pcall(function() comm:on_message(print) end)",
    function(self, fn) self.message = fn end)

method("on_close", ", function? fn)", "fn(data) is called when the page closes it. "
    .. "Example: pcall(function() comm:on_close(print) end)",
    function(self, fn) self.closing = fn end)

function Comm:__tostring()
    return string.format("Comm(%s, %s%s)", self.target, string.sub(self.id, 1, 8), self.closed and ", closed" or "")
end

-- ---- what the page sends ----

local handlers = {}

function handlers.comm_open(content, buffers)
    local id, name = content.comm_id, content.target_name
    if type(name) ~= "string" then
        fail("comm_open: target_name is no string")
    elseif not targets[name] and string.find(name, "^jupyter%.widget") and not rawget(tide, "widgets") then
        local _ = tide.widgets -- which has those
    end
    if not targets[name] then
        tide._comm_send("comm_close", json.encode({ comm_id = id,
            data = { error = string.format("no comm target '%s': tide.comm.register_target makes one", name) } }, "comm"), "{}")
        return
    end
    targets[name](new(id, name), content.data, buffers)
end

-- A message to a comm that is closed meanwhile is nobody's.
local function find(content)
    local self = open[content.comm_id]
    if self and self.origin then
        tide._output_parent(self.origin)
    end
    return self
end

function handlers.comm_msg(content, buffers)
    local self = find(content)
    if self and self.message then
        self.message(content.data, buffers)
    end
end

function handlers.comm_close(content)
    local self = find(content)
    if self then
        self.closed, open[self.id] = true, nil
        if self.closing then
            self.closing(content.data)
        end
    end
end

function comm._receive(type_name, text, buffers)
    local content, problem = json.decode(text)
    if type(content) ~= "table" or type(content.comm_id) ~= "string" then
        fail("%s: %s", type_name, problem or "comm_id is no string")
    end
    handlers[type_name](content, buffers)
end

--- _list(target): the open comms as JSON, by id.
function comm._list(target)
    local list = {}
    for id, self in pairs(open) do
        if not target or target == self.target then
            list[id] = { target_name = self.target }
        end
    end
    return json.encode(list, "comm_info")
end

tide._document(comm, "comm", "tide.comm", "Comms with a notebook's page: register_target, open, available.")

return comm
