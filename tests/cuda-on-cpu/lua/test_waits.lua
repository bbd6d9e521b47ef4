-- test_waits.lua: tide.cuda.set_sync_warnings names exactly what waits for the device unasked, by line and call.
local t = require "harness"

if not tide.cuda.is_available() then
    t.skip("hidden waits", tide.cuda.unavailable_reason())
    t.finish()
end

-- What a script says on standard error, as {line, call} in its order; other lines as they are.
local function warnings(code)
    local path = os.tmpname()
    local file = assert(io.open(path, "w"))
    file:write(code)
    file:close()
    local run = assert(io.popen(("'%s' %s 2>&1 >/dev/null"):format(os.getenv "TIDE", path)))
    local said = {}
    for line in run:lines() do
        local source, number, call = line:match("^tide: (.-):(%d+): (%S+) waits for cuda:0$")
        said[#said + 1] = source == path and { tonumber(number), call } or line
    end
    run:close()
    os.remove(path)
    return said
end

t.test("each_line_that_waits_is_named_once", function()
    t.eq(warnings [[
tide.cuda.set_sync_warnings(true)
local x, y = tide.randn(8):cuda(), tide.zeros(1):cuda()
for _ = 1, 3 do
    x:sum():item()
end
print(x)
local s = tostring(x)
local l = x:tolist()
local places = x:nonzero()
local some = x:masked_select(x:gt(0))
some = x[x:gt(0)]
local home = x:cpu()
home:copy_(x)
home = x:to("cpu")
if x:sum() > y:sum() then
    y = x
end
local same = tide.equal(x, x)
local function first(v) return (v[1]:item()) end
local a, b = first(x), first(x)
coroutine.wrap(function()
    local v = x:max():item()
end)()
]], { { 4, "item" }, { 6, "print" }, { 7, "tostring" }, { 8, "tolist" }, { 9, "nonzero" }, { 10, "masked_select" },
        { 11, "__index" }, { 12, "cpu" }, { 13, "copy_" }, { 14, "to" }, { 15, "__lt" }, { 18, "equal" }, { 19, "item" },
        { 22, "item" } })
end)

t.test("training_and_what_asks_to_wait_name_nothing", function()
    t.eq(warnings [[
tide.cuda.set_sync_warnings(true)
local nn = tide.nn
local net = nn.Sequential(nn.Conv2d(1, 4, 3, { padding = 1 }), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
    nn.Flatten(), nn.Linear(64, 10)):to("cuda")
local x, y = tide.randn(16, 1, 8, 8):cuda(), tide.randint(1, 11, { 16 }):cuda()
for _, make in ipairs { tide.optim.SGD, tide.optim.Adam, tide.optim.AdamW } do
    local opt = make(net:parameters(), { lr = 0.01 })
    for _ = 1, 2 do
        opt:zero_grad()
        local cast <close> = tide.autocast { device = "cuda", dtype = tide.bfloat16 }
        tide.cross_entropy(net(x), y):backward()
        opt:step()
    end
end
x:add_(1):copy_(x * 2)
local z = x:clone():to(tide.float64):sum(1)
tide.cuda.synchronize()
tide.cuda.current_stream():synchronize()
tide.cuda.Event():record():synchronize()
]], {})
end)

t.test("lua_s_own_switch_silences_it", function()
    t.eq(warnings [[
tide.cuda.set_sync_warnings(true)
local x = tide.ones(3):cuda()
warn("@off")
x:sum():item()
warn("@on")
x:max():item()
tide.cuda.set_sync_warnings(false)
x:min():item()
tide.cuda.set_sync_warnings(true)
x:tolist()
]], { { 6, "item" }, { 10, "tolist" } })
end)

t.test("as_an_error_the_wait_is_refused", function()
    local x = tide.ones(3):cuda()
    tide.cuda.set_sync_warnings("error")
    local ok, message = pcall(function() return x:sum():item() end)
    local mask = x:gt(0)
    local masked, why = pcall(function() return x[mask] end)
    tide.cuda.synchronize()
    tide.cuda.set_sync_warnings(false)
    t.is_true(not ok and message:find('test_waits.lua:%d+: .*item waits for cuda:0, which set_sync_warnings%("error"%) forbids'),
        message)
    t.is_true(not masked and why:find("__index waits for cuda:0", 1, true), why)
    t.eq(x:sum():item(), 3)
end)

t.test("modes_are_checked", function()
    for _, wrong in ipairs { 1, "loud", {} } do
        t.error_has(function() tide.cuda.set_sync_warnings(wrong) end,
            'set_sync_warnings: mode must be true, false or "error", got ')
    end
end)
