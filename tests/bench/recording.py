"""recording.py: the cases of recording.lua in PyTorch."""
import json
import sys
import time

import torch
from torch.profiler import ProfilerActivity, profile

ADDS, RUNS = 100000, 5
a, b = torch.ones(1), torch.ones(1)


def adds():
    for _ in range(ADDS):
        a + b


def recorded(stack):
    with profile(activities=[ProfilerActivity.CPU], with_stack=stack):
        adds()


torch.set_num_threads(1)
for name, fn in (("recording_off", adds), ("recording_on", lambda: recorded(False)),
                 ("recording_lines", lambda: recorded(True))):
    name += "_100k_adds"
    if len(sys.argv) > 1 and not any(name.startswith(prefix) for prefix in sys.argv[1:]):
        continue
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        fn()
        times.append(time.perf_counter() - start)
    print(json.dumps({"case": name, "median_s": sorted(times)[RUNS // 2], "min_s": min(times)}), flush=True)
