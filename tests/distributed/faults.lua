-- faults.lua FAULT [TIMEOUT [BACKEND DEVICE]]: a job that goes well for a while, until its last rank does something wrong.
local fault, device = arg[1], arg[4] or "cpu"
local dist = tide.distributed
dist.init { timeout = tonumber(arg[2] or 3), backend = arg[3] }
local rank, last = dist.rank(), dist.size() - 1
local function pid()
    local file <close> = io.open("/proc/self/stat")
    return file:read("n")
end
local x = tide.zeros(1000, { device = device })
for _ = 1, 40 do
    dist.all_reduce(x)
end
x:sum():item() -- all have arrived, on devices too
if rank == last then
    if fault == "kill" then
        os.execute("kill -9 " .. pid())
    elseif fault == "stop" then
        os.execute("kill -STOP " .. pid())
    elseif fault == "exception" then
        error("no such sample")
    elseif fault == "hang" then
        while true do
        end
    elseif fault == "shape" then
        x = tide.zeros(1001, { device = device })
    elseif fault == "dtype" then
        x = tide.zeros(1000, { dtype = tide.int32, device = device })
    elseif fault == "kind" then
        dist.broadcast(x, 0)
    elseif fault == "extra" then
        dist.all_reduce(x)
    elseif fault == "device" then
        x = x:cpu()
    elseif fault == "exit" then
        os.exit(3)
    end
elseif fault == "kill_root" and rank == 0 then
    os.execute("kill -9 " .. pid())
end
dist.all_reduce(x)
print("rank " .. rank .. " ended")
