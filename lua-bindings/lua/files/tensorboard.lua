-- files/tensorboard.lua: tide.utils.tensorboard: event files as TensorBoard reads them. A file is a row of TFRecords
-- (length, data, a masked CRC-32C of each), each of which holds an Event in the wire format of protocol buffers.
local tide = ...
local fail, declare = tide._fail, tide._function
local wire = tide._require "files.wire"
local environment = tide._require "utils.environment"
local host_name, make_folder = environment.host_name, environment.make_folder
local whole, double, bytes, float = wire.whole, wire.double, wire.bytes, wire.float
local tensorboard = {}

local function doubles(field, list)
    local parts = {}
    for k, x in ipairs(list) do
        parts[k] = string.pack("<d", x)
    end
    return bytes(field, table.concat(parts))
end

-- ---- records ----

local sums

-- Castagnoli's polynomial, reflected.
local function make_sums()
    sums = {}
    for byte = 0, 255 do
        local sum = byte
        for _ = 1, 8 do
            sum = sum & 1 == 1 and sum >> 1 ~ 0x82F63B78 or sum >> 1
        end
        sums[byte] = sum
    end
end

local function masked_crc(text)
    if not sums then
        make_sums()
    end
    local sum = 0xFFFFFFFF
    for at = 1, #text, 4096 do
        for _, byte in ipairs { string.byte(text, at, math.min(at + 4095, #text)) } do
            sum = sums[(sum ~ byte) & 255] ~ sum >> 8
        end
    end
    sum = sum ~ 0xFFFFFFFF
    return ((sum >> 15 | sum << 17) + 0xA282EAD8) & 0xFFFFFFFF
end

local function record(data)
    local length = string.pack("<I8", #data)
    return length .. string.pack("<I4", masked_crc(length)) .. data .. string.pack("<I4", masked_crc(data))
end

-- ---- the writer ----

local Writer = { __name = "SummaryWriter" }
Writer.__index = Writer
tide._class("SummaryWriter", Writer)

local function method(name, parameters, doc, fn)
    Writer[name] = declare(string.format("%s(SummaryWriter self%s", name, parameters), doc, fn)
end

-- Seconds since 1970, finer than os.time.
local began = os.time() - tide.time()
local function now() return began + tide.time() end

local opened = 0

-- A file in a folder, with the event that says which version it has.
local function open(path, suffix)
    make_folder("SummaryWriter", path)
    opened = opened + 1
    local name = string.format("%s/events.out.tfevents.%d.%s.%s.%d%s", path, os.time(), host_name(), string.sub(string.format("%p", Writer), -6), opened, suffix)
    local file, message = io.open(name, "wb")
    if not file then
        fail("SummaryWriter: %s", message)
    end
    file:setvbuf("full", 1 << 16)
    file:write(record(double(1, now()) .. bytes(3, "brain.Event:2")))
    return file
end

-- As PyTorch has them.
local function clean(tag)
    return (string.gsub(string.gsub(tag, "[^-/%w_.\128-\255]", "_"), "^/+", ""))
end

local function write(self, file, value, step, walltime)
    if self.closed then
        fail("SummaryWriter: it is closed")
    end
    local event = double(1, walltime or now()) .. (step and whole(2, step) or "") .. bytes(5, bytes(1, value))
    local ok, message = file:write(record(event))
    if not ok then
        fail("SummaryWriter: %s", message)
    end
    if tide.time() - self.flushed > self.flush_secs then
        self:flush()
    end
end

local function number_of(name, value)
    if tide.is_tensor(value) then
        if value:numel() ~= 1 then
            fail("%s: value: a number or a tensor of one element expected, got shape %s", name, tostring(value.shape))
        end
        value = value:item()
    end
    if type(value) == "boolean" then
        return value and 1 or 0
    elseif type(value) ~= "number" then
        fail("%s: value: a number expected, got %s", name, tide._describe(value))
    end
    return value
end

local STEP = ", int(0..)? global_step=nil, *, number? walltime=nil)"

method("add_scalar", ", str tag, any value" .. STEP, "A number at a step: writer:add_scalar(\"loss/train\", loss, step).",
    function(self, tag, value, step, walltime)
        write(self, self.file, bytes(1, clean(tag)) .. float(2, number_of("add_scalar", value)), step, walltime)
    end)

method("add_scalars", ", str main_tag, table tag_scalar_dict" .. STEP, "Numbers that are drawn into one picture, by name; each has a run of its own.",
    function(self, main, values, step, walltime)
        local names = {}
        for name in pairs(values) do
            if type(name) ~= "string" then
                fail("add_scalars: numbers by name expected, got the key %s", tide._describe(name))
            end
            names[#names + 1] = name
        end
        table.sort(names, tide._before)
        for _, name in ipairs(names) do
            local path = self.log_dir .. "/" .. string.gsub(clean(main), "/", "_") .. "_" .. string.gsub(clean(name), "/", "_")
            self.runs[path] = self.runs[path] or open(path, self.suffix)
            write(self, self.runs[path], bytes(1, clean(main)) .. float(2, number_of("add_scalars", values[name])), step, walltime)
        end
    end)

-- The edges of TensorBoard's own buckets: each a tenth further from 0 than the one before.
local edges

local function tensorflow_edges()
    if not edges then
        local positive, list, v = {}, {}, 1e-12
        while v < 1e20 do
            positive[#positive + 1] = v
            v = v * 1.1
        end
        for k = #positive, 1, -1 do
            list[#list + 1] = -positive[k]
        end
        list[#list + 1] = 0.0
        table.move(positive, 1, #positive, #list + 1, list)
        edges = tide.tensor(list, { dtype = tide.float64 })
    end
    return edges
end

local function even_edges(x, n)
    local low, high = x:min():item(), x:max():item()
    if low == high then
        low, high = low - 0.5, high + 0.5
    end
    return tide.linspace(low, high, n + 1, { dtype = tide.float64 })
end

-- How many of x lie in each bucket; the last holds its upper edge too.
local function counts_of(x, limits)
    local n = limits:numel()
    local place = tide.searchsorted(limits, x, { right = true }) - 1
    place = place:where(x:eq(limits[n]):logical_not(), n - 1)
    place = place[place:ge(1) & place:le(n - 1)]
    return tide.zeros(n - 1, { dtype = tide.int64 }):scatter_add(1, place, tide.ones_like(place))
end

-- The buckets from the first that holds something to the last, with an empty one before, whose limit is the first's lower edge.
local function trimmed(counts, limits)
    local filled = counts:gt(0):nonzero():reshape(-1)
    if filled:numel() == 0 then
        return { 0, 0 }, { limits[1]:item(), limits[2]:item() }
    end
    local first, last = filled:min():item(), filled:max():item()
    local list = counts:narrow(1, first, last - first + 1):tolist()
    table.insert(list, 1, 0)
    return list, limits:narrow(1, first, last - first + 2):tolist()
end

method("add_histogram", ", str tag, any values, int(0..)? global_step=nil, any bins=nil, *, number? walltime=nil)",
    "How the elements of a tensor are spread: by TensorBoard's own buckets, or by so many of one width.",
    function(self, tag, values, step, bins, walltime)
        local x = tide.is_tensor(values) and values or tide.tensor(values)
        x = x:detach():cpu():double():reshape(-1)
        if x:numel() == 0 then
            fail("add_histogram: the values are empty")
        end
        local limits
        if bins == nil or bins == "tensorflow" then
            limits = tensorflow_edges()
        elseif math.type(bins) == "integer" then
            limits = even_edges(x[x:isfinite()], bins)
        else
            fail("add_histogram: bins: \"tensorflow\" or a number of buckets expected, got %s", tide._describe(bins))
        end
        local counts, ends = trimmed(counts_of(x, limits), limits)
        local histogram = double(1, x:min():item()) .. double(2, x:max():item()) .. double(3, x:numel()) .. double(4, x:sum():item())
            .. double(5, x:square():sum():item()) .. doubles(6, ends) .. doubles(7, counts)
        write(self, self.file, bytes(1, clean(tag)) .. bytes(5, histogram), step, walltime)
    end)

-- An image as height, width and channels (one to four), as bytes.
local function pixels_of(name, image, format)
    local orders = { CHW = { 2, 3, 1 }, HWC = { 1, 2, 3 }, HW = true }
    if not orders[format] then
        fail("%s: dataformats: \"CHW\", \"HWC\" or \"HW\" expected, got \"%s\"", name, format)
    elseif image:dim() ~= #format then
        fail("%s: an image of %d dims (%s) expected, got shape %s", name, #format, format, tostring(image.shape))
    end
    local x = image:detach():cpu()
    x = format == "HW" and x:unsqueeze(3) or x:permute(orders[format])
    if x:size(3) ~= 1 and x:size(3) ~= 3 and x:size(3) ~= 4 then
        fail("%s: 1, 3 or 4 channels expected, got %d", name, x:size(3))
    end
    if x:is_floating_point() then
        x = (x * 255):clamp(0, 255)
    elseif x.dtype == tide.bool then
        x = x:to(tide.uint8) * 255
    end
    return x:to(tide.uint8):contiguous()
end

method("add_image", ", str tag, Tensor img_tensor, int(0..)? global_step=nil, str dataformats=\"CHW\", *, number? walltime=nil)",
    "A picture: numbers from 0 to 1, or uint8 from 0 to 255, of 1, 3 or 4 channels.", function(self, tag, image, step, format, walltime)
        local x = pixels_of("add_image", image, format)
        local png = tide._png(x)
        local summary = whole(1, x:size(1)) .. whole(2, x:size(2)) .. whole(3, x:size(3)) .. bytes(4, png)
        write(self, self.file, bytes(1, clean(tag)) .. bytes(4, summary), step, walltime)
    end)

local STRING = 7 -- of TensorFlow's dtypes

method("add_text", ", str tag, str text_string" .. STEP, "A text, which TensorBoard reads as Markdown.", function(self, tag, text, step, walltime)
    local tensor = whole(1, STRING) .. bytes(2, bytes(2, whole(1, 1))) .. bytes(8, text)
    local metadata = bytes(1, bytes(1, "text"))
    write(self, self.file, bytes(1, clean(tag) .. "/text_summary") .. bytes(8, tensor) .. bytes(9, metadata), step, walltime)
end)

method("get_logdir", ") -> str", "The folder that it writes to.", function(self) return self.log_dir end)

method("flush", ")", "What was added is in the file now.", function(self)
    self.flushed = tide.time()
    for _, file in pairs(self.runs) do
        file:flush()
    end
    self.file:flush()
end)

method("close", ")", "The end; closing twice is harmless.", function(self)
    if self.closed then
        return
    end
    self.closed = true
    for _, file in pairs(self.runs) do
        file:close()
    end
    self.file:close()
end)

function Writer:__close() self:close() end
function Writer:__tostring() return string.format("SummaryWriter(%s)", self.log_dir) end

local DOC = "Writes what TensorBoard shows (tensorboard --logdir runs): w = SummaryWriter(\"runs/first\"); w:add_scalar(\"loss\", loss, step), "
    .. "add_scalars, add_histogram, add_image, add_text; w:close(), or local w <close> = ... Without a folder it is runs/TIME_HOST."
local SCHEMA = "SummaryWriter(str? log_dir=nil, str comment=\"\", *, number(0..) flush_secs=10, str filename_suffix=\"\")"
tensorboard.SummaryWriter = declare(SCHEMA .. " -> SummaryWriter", DOC, function(log_dir, comment, flush_secs, suffix)
    log_dir = log_dir or string.format("runs/%s_%s%s", os.date("%b%d_%H-%M-%S"), host_name(), comment)
    return setmetatable({ log_dir = log_dir, file = open(log_dir, suffix), runs = {}, flush_secs = flush_secs, suffix = suffix,
        flushed = tide.time(), closed = false }, Writer)
end)
tide._document(Writer, "SummaryWriter", SCHEMA, DOC)

tide._document(tensorboard, "tensorboard", "tide.utils.tensorboard", "SummaryWriter writes event files for TensorBoard.")

return tensorboard
