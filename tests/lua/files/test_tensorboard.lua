-- test_tensorboard.lua: event files byte by byte as TensorBoard's own code writes them (tests/golden/event_files.py).
local t = require "harness"
local here = arg[0]:match("^(.*)/") or "."
local golden = dofile(here .. "/../../golden/data/tensorboard.lua")
local SummaryWriter = tide.utils.tensorboard.SummaryWriter

-- A folder that is gone afterwards.
local function folder()
    local path = os.tmpname()
    os.remove(path)
    return path, setmetatable({}, { __close = function() os.execute("rm -rf -- '" .. path .. "'") end })
end

local function files_in(path)
    local list = {}
    local pipe = io.popen("find '" .. path .. "' -type f | sort")
    for line in pipe:lines() do
        list[#list + 1] = line
    end
    pipe:close()
    return list
end

local function hex(s) return (s:gsub(".", function(c) return ("%02x"):format(c:byte()) end)) end

-- The records of a file, in hex; the first says the version.
local function records_of(path)
    local file = assert(io.open(path, "rb"))
    local text = file:read("a")
    file:close()
    local list, at = {}, 1
    while at <= #text do
        local n = ("<I8"):unpack(text, at)
        list[#list + 1] = hex(text:sub(at, at + n + 15))
        at = at + n + 16
    end
    t.eq(at, #text + 1, "whole records")
    return list
end

-- The record that `add` writes.
local function written(add)
    local path, gone = folder()
    local _ <close> = gone
    local writer <close> = SummaryWriter(path)
    add(writer)
    writer:flush()
    local list = records_of(files_in(path)[1])
    t.is_true(list[1]:find(hex("brain.Event:2"), 1, true), "the version comes first")
    return list[2], #list
end

t.test("records_are_tensorboard_s_own", function()
    local at = { walltime = 1.5 }
    t.eq(written(function(w) w:add_scalar("loss/train", 0.1, 300, at) end), golden.scalar)
    t.eq(written(function(w) w:add_scalar("/loss/train", tide.tensor(0.1), 300, at) end), golden.scalar)
    t.eq(written(function(w) w:add_scalar("x", 1e300, 1, at) end), golden.infinite)
    t.eq(written(function(w) w:add_scalar("x", math.huge, 1, at) end), golden.infinite)
    t.eq(written(function(w) w:add_scalar("a", 2, nil, at) end), golden.without_step)
    t.eq(written(function(w) w:add_text("note", "*é*", 5, at) end), golden.text)
    t.eq(written(function(w) w:add_histogram("h", tide.tensor { 1, 2, 3, 4 }, 2, 2, at) end), golden.histogram)
    t.eq(written(function(w) w:add_histogram("h", { 4, 3, 2, 1 }, 2, 2, at) end), golden.histogram)
end)

t.test("tensorflow_s_buckets_hold_every_element", function()
    for _, x in ipairs { tide.randn(1000), tide.zeros(5), tide.rand(10) * 1e-3 - 5e-4, tide.tensor { -7.0 } } do
        local record = written(function(w) w:add_histogram("h", x, 1) end)
        local bytes = record:gsub("%x%x", function(byte) return string.char(tonumber(byte, 16)) end)
        local buckets = bytes:sub(1, -5) -- without the last sum
        local total, best = 0, false
        for at = 1, #buckets do -- packed doubles at the record's end, behind their key
            if buckets:sub(at, at) == "\58" then
                local length, shift, place = 0, 0, at + 1
                repeat
                    local byte = buckets:byte(place) or 0
                    length, shift, place = length | (byte & 127) << shift, shift + 7, place + 1
                until byte < 128
                if place + length == #buckets + 1 and length % 8 == 0 then
                    total, best = 0, true
                    for k = place, #buckets, 8 do
                        total = total + ("<d"):unpack(buckets, k)
                    end
                    break
                end
            end
        end
        t.is_true(best, "buckets are found")
        t.eq(total, x:numel())
    end
end)

t.test("pictures_are_png_files_in_their_order", function()
    for _, row in ipairs { { tide.rand(3, 4, 5), "CHW" }, { tide.rand(4, 5, 3), "HWC" }, { tide.rand(4, 5), "HW" },
        { tide.full({ 1, 4, 5 }, 255, { dtype = tide.uint8 }), "CHW" }, { tide.rand(4, 4, 5), "CHW" } } do
        local record = written(function(w) w:add_image("i", row[1], 1, row[2]) end)
        t.is_true(record:find("08041005", 1, true), "height and width")
        t.is_true(record:find(hex("\137PNG\r\n"), 1, true))
        t.is_true(record:find(hex("IHDR" .. (">I4I4"):pack(5, 4)), 1, true))
    end
end)

t.test("numbers_of_one_picture_have_runs_of_their_own", function()
    local path, gone = folder()
    local _ <close> = gone
    local writer = SummaryWriter { path, flush_secs = 0 }
    for step = 1, 3 do
        writer:add_scalars("loss", { train = 1 / step, test = 2 / step }, step)
    end
    writer:close()
    local list = files_in(path)
    t.eq(#list, 3)
    local with = 0
    for _, file in ipairs(list) do
        if file:find("/loss_train/", 1, true) or file:find("/loss_test/", 1, true) then
            with = with + 1
            t.eq(#records_of(file), 4)
        end
    end
    t.eq(with, 2)
end)

t.test("odd_names_of_folders_are_made_and_wrong_calls_are_a_line", function()
    local path, gone = folder()
    local _ <close> = gone
    local writer = SummaryWriter(path .. "/it's; a $HOME")
    t.eq(#files_in(path), 1)
    t.eq(writer:get_logdir(), path .. "/it's; a $HOME")
    t.error_has(function() writer:add_scalar("a", tide.ones(2)) end, "a tensor of one element expected, got shape (2)")
    t.error_has(function() writer:add_scalar("a", {}) end, "add_scalar: value: a number expected")
    t.error_has(function() writer:add_histogram("a", tide.zeros(0)) end, "the values are empty")
    t.error_has(function() writer:add_histogram("a", tide.zeros(1), 1, "auto") end, "bins:")
    t.error_has(function() writer:add_image("a", tide.zeros(4, 4)) end, "an image of 3 dims (CHW) expected, got shape (4, 4)")
    t.error_has(function() writer:add_image("a", tide.zeros(2, 4, 4)) end, "1, 3 or 4 channels expected, got 2")
    t.error_has(function() writer:add_image("a", tide.zeros(4, 4), 1, "WH") end, "dataformats")
    writer:close()
    writer:close()
    t.error_has(function() writer:add_scalar("a", 1) end, "it is closed")
    t.error_has(function() SummaryWriter("/dev/null/x") end, "can't be made")
end)
