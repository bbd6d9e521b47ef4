"""kernels.py: kernels.lua in PyTorch: what a training step has the device do."""
import collections
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "bench"))

import torch  # noqa: E402

import models  # noqa: E402


def digits():
    x, y = torch.rand(32, 1, 32, 32, device="cuda"), torch.randint(0, 10, (32,), device="cuda")
    return models.step(models.digits().to("cuda"), x, y)


def resnet50():
    model = models.resnet50().to("cuda").to(memory_format=torch.channels_last)
    x = torch.randn(128, 3, 224, 224, device="cuda").to(memory_format=torch.channels_last)
    return models.step(model, x, torch.randint(0, 1000, (128,), device="cuda"), "cuda")


def tell(name, step):
    for _ in range(5):
        step()
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        step()
        torch.cuda.synchronize()
    times, counts = collections.Counter(), collections.Counter()
    first, last = float("inf"), 0.0
    for event in profile.events():
        if event.device_type == torch.autograd.DeviceType.CUDA:
            start, end = event.time_range.start, event.time_range.end
            times[event.name] += end - start
            counts[event.name] += 1
            first, last = min(first, start), max(last, end)
    print(f"{name}: {last - first:.0f} µs from the first to the last, the device at work {sum(times.values()):.0f} µs")
    for kernel, us in times.most_common(40):
        print(f"{us:9.0f} µs {counts[kernel]:5}  {kernel[:150]}")


for wanted in sys.argv[1:] or ("digits", "resnet50"):
    tell(wanted, {"digits": digits, "resnet50": resnet50}[wanted]())
