-- _examples_cuda.lua: examples of tide.cuda, as a machine without a device answers; _examples.lua says how they
-- stand here.
return [==[
## cuda.is_available
> device = tide.cuda.is_available() and "cuda" or "cpu"
> tide.ones(2):to(device):sum()
2  float32 () cpu

## cuda.device_count
> tide.cuda.device_count() > 0 == tide.cuda.is_available()
true

## cuda.unavailable_reason
> (tide.cuda.unavailable_reason() == nil) == tide.cuda.is_available()
true

## cuda.get_device_name
> tide.cuda.is_available() and tide.cuda.get_device_name("cuda:0")
false

## cuda.get_device_properties
> tide.cuda.is_available() and tide.cuda.get_device_properties().total_memory
false

## cuda.get_device_capability
> if tide.cuda.is_available() then print(tide.cuda.get_device_capability()) end

## cuda.current_device
> tide.cuda.current_device()
0

## cuda.set_device
> if tide.cuda.device_count() > 1 then tide.cuda.set_device("cuda:1") end

## cuda.synchronize
> if tide.cuda.is_available() then tide.cuda.synchronize() end

## cuda.memory_stats
> tide.cuda.is_available() and tide.cuda.memory_stats().allocated
false

## cuda.memory_allocated
> tide.cuda.is_available() and tide.cuda.memory_allocated()
false

## cuda.max_memory_allocated
> tide.cuda.is_available() and tide.cuda.max_memory_allocated()
false

## cuda.memory_reserved
> tide.cuda.is_available() and tide.cuda.memory_reserved()
false

## cuda.reset_peak_memory_stats
> if tide.cuda.is_available() then tide.cuda.reset_peak_memory_stats() end

## cuda.empty_cache
> if tide.cuda.is_available() then tide.cuda.empty_cache() end

## cuda.mem_get_info
> if tide.cuda.is_available() then free, total = tide.cuda.mem_get_info() end

## cuda.memory_summary
> if tide.cuda.is_available() then print(tide.cuda.memory_summary()) end

## cuda.Stream
> stream = tide.cuda.is_available() and tide.cuda.Stream("cuda:0", {priority = -1})

## cuda.current_stream
> tide.cuda.is_available() and tide.cuda.current_stream()
false

## cuda.default_stream
> tide.cuda.is_available() and tide.cuda.default_stream()
false

## cuda.stream
> if stream then local entered <close> = tide.cuda.stream(stream) y = tide.ones(3, {device = "cuda"}) * 2 end

## cuda.Event
> event = tide.cuda.is_available() and tide.cuda.Event(nil, {enable_timing = true}):record()

## cuda.pin_memory
> x = tide.cuda.is_available() and tide.cuda.pin_memory(tide.rand(1000)):cuda()

## cuda.is_pinned
> tide.cuda.is_pinned(tide.ones(3))
false

## cuda.set_sync_warnings
> tide.cuda.set_sync_warnings(true) tide.ones(3):sum():item() tide.cuda.set_sync_warnings(false)

## cuda.graph
> if tide.cuda.is_available() then x = tide.ones(3):cuda() g, y = tide.cuda.graph(function() return x:exp() + 1 end) g:replay() end

## cuda.nvtx.range_push
> if tide.cuda.is_available() then tide.cuda.nvtx.range_push("step") tide.cuda.nvtx.range_pop() end

## cuda.nvtx.range_pop
> pcall(tide.cuda.nvtx.range_pop) == tide.cuda.is_available()
true

## cuda.nvtx.mark
> if tide.cuda.is_available() then tide.cuda.nvtx.mark("epoch 1") end
]==]
