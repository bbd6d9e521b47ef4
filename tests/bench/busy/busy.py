"""busy.py: the steps of busy.lua in PyTorch."""
import json
import os
import statistics
import sys
import time

import torch
from torch import nn

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import bench  # noqa: E402
import models  # noqa: E402

WARM, STEPS = bench.size(50, 1), bench.size(300, 3)


def main():
    width = bench.size(32, 4)
    net = models.fill(nn.Sequential(
        nn.Conv2d(1, width, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(width, 2 * width, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(98 * width, 128), nn.ReLU(), nn.Linear(128, 10)))
    step = models.step(net, bench.uniform((8, 1, 28, 28)), bench.ints((8,), 0, 10))
    for _ in range(WARM):
        step()
    times = []
    for _ in range(STEPS):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    times.sort()
    print(json.dumps({"case": "conv_train_b8", "threads": torch.get_num_threads(), "median_s": statistics.median(times),
                      "mean_s": statistics.fmean(times), "p90_s": times[(9 * STEPS + 9) // 10 - 1]}), flush=True)


if __name__ == "__main__":
    main()
