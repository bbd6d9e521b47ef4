"""The cases of recording.lua in PyTorch, timed the same way."""
import json
import os
import sys
import time

os.environ.setdefault("KINETO_LOG_LEVEL", "5")  # it tells of each recording otherwise
import torch  # noqa: E402
from torch.profiler import ProfilerActivity, profile  # noqa: E402

ADDS, STRETCH, ROUNDS = 100000, 1000, 7
a, b = torch.ones(1), torch.ones(1)


def adds(n):
    for _ in range(n):
        a + b


def stretches():
    """The least time of a stretch, and all of them together."""
    times = []
    for _ in range(ADDS // STRETCH):
        start = time.perf_counter()
        adds(STRETCH)
        times.append(time.perf_counter() - start)
    return min(times) * (ADDS // STRETCH), sum(times)


def recorded(stack):
    with profile(activities=[ProfilerActivity.CPU], with_stack=stack):
        return stretches()


def main():
    cases = {"recording_off": stretches, "recording_on": lambda: recorded(False), "recording_lines": lambda: recorded(True)}
    chosen = [name for name in cases if len(sys.argv) < 2 or any(name.startswith(prefix) for prefix in sys.argv[1:])]
    torch.set_num_threads(1)
    seen = {name: [] for name in chosen}
    for _ in range(ROUNDS):
        for name in chosen:
            seen[name].append(cases[name]())
    for name, runs in seen.items():
        print(json.dumps({"case": name + "_100k_adds", "median_s": sorted(total for _, total in runs)[ROUNDS // 2],
                          "min_s": min(least for least, _ in runs)}), flush=True)


if __name__ == "__main__":
    main()
