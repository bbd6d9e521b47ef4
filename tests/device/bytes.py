"""bytes.py: the cases of bytes.lua in PyTorch: float32, float16 and, as far as it has them on a device, products of int8 without what
makes bytes or floats of their sums (torch._int_mm, of 17 rows at least). JSON lines; microseconds of a call, the least of four rounds."""
import json
import time

import torch

torch.backends.cudnn.benchmark = True


def measure(call):
    best = float("inf")
    for turn in range(5):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(30):
            call()
        torch.cuda.synchronize()
        best = min(best, (time.perf_counter() - start) / 30 * 1e6) if turn else best
    return round(best, 1)


def tell(case, layer, x, **more):
    times = {"float32_us": measure(lambda: layer(x))}
    half, small = layer.half(), x.half()
    times["float16_us"] = measure(lambda: half(small))
    print(json.dumps({"by": "pytorch", "case": case, **times, **{name: measure(call) for name, call in more.items()}}), flush=True)


with torch.inference_mode():
    for rows, width, to in ((1, 1024, 1024), (16, 1024, 1024), (256, 1024, 1024), (1, 4096, 4096), (4096, 4096, 4096)):
        bytes_of_x = torch.randint(-128, 128, (rows, width), dtype=torch.int8, device="cuda")
        weight = torch.randint(-128, 128, (to, width), dtype=torch.int8, device="cuda").t()
        sums = {"int8_sums_us": lambda a=bytes_of_x, w=weight: torch._int_mm(a, w)} if rows > 16 else {}  # pylint: disable=protected-access
        tell(f"linear {rows} x {width} to {to}", torch.nn.Linear(width, to).cuda(), torch.randn(rows, width).cuda(), **sums)
    for batch, channels, to, side, kernel, groups in ((32, 64, 64, 56, 3, 1), (32, 256, 512, 14, 1, 1), (32, 512, 512, 7, 3, 1),
                                                      (32, 144, 144, 56, 3, 144)):
        layer = torch.nn.Conv2d(channels, to, kernel, padding=kernel // 2, groups=groups).cuda().to(memory_format=torch.channels_last)
        x = torch.randn(batch, channels, side, side).cuda().to(memory_format=torch.channels_last)
        tell(f"conv {batch} x {channels} to {to}, {side} x {side}, kernel {kernel}, {groups} groups", layer, x)
