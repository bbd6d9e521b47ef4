"""overlap.py: overlap.lua in PyTorch: a stream of its own copies the next batch while kernels work on this one."""
import json
import time

import torch

BATCHES, ROWS, WIDTH, SIDE, PRODUCTS = 40, 4096, 4096, 4096, 8
weights = torch.randn(SIDE, SIDE, device="cuda").bfloat16()
out = torch.empty_like(weights)
beside = torch.cuda.Stream()


def work(batch=None):
    for _ in range(PRODUCTS):
        torch.mm(weights, weights, out=out)
    return None if batch is None else batch[0].sum()


def measure(fn):
    best = float("inf")
    for round in range(4):
        torch.cuda.synchronize()
        start = time.perf_counter()
        fn()
        torch.cuda.synchronize()
        if round > 0:
            best = min(best, (time.perf_counter() - start) / BATCHES * 1e3)
    return best


def tell(case, copy, kernels, both):
    print(json.dumps({"by": "torch", "case": case, "bytes": ROWS * WIDTH * 4, "copy_ms": round(copy, 3), "kernels_ms": round(kernels, 3),
                      "both_ms": round(both, 3), "hidden": round((copy + kernels - both) / min(copy, kernels), 3)}))


def move(x):
    with torch.cuda.stream(beside):
        return x.to("cuda", non_blocking=True)


def take(batch):
    torch.cuda.current_stream().wait_stream(beside)
    batch.record_stream(torch.cuda.current_stream())
    return batch


source = [torch.randn(ROWS, WIDTH).pin_memory() for _ in range(2)]


def copies():
    for k in range(BATCHES):
        move(source[k % 2])


def by_hand():
    batch = move(source[0])
    for k in range(BATCHES):
        batch = take(batch)
        following = move(source[k % 2])
        work(batch)
        batch = following


def from_pageable(step):
    for _ in range(BATCHES):
        step(pageable.to("cuda"))


class Same(torch.utils.data.Dataset):
    def __len__(self):
        return BATCHES

    def __getitem__(self, k):
        return pageable


def epoch(step):
    def run():
        for batch in loader:
            step(batch.to("cuda", non_blocking=True))
    return run


pageable = torch.randn(ROWS, WIDTH)
kernels = measure(lambda: [work() for _ in range(BATCHES)])
tell("by hand", measure(copies), kernels, measure(by_hand))
tell("from memory that is not pinned", measure(lambda: from_pageable(lambda batch: None)), kernels, measure(lambda: from_pageable(work)))
loader = torch.utils.data.DataLoader(Same(), batch_size=None, num_workers=2, prefetch_factor=4, pin_memory=True, persistent_workers=True)
tell("DataLoader, 2 workers", measure(epoch(lambda batch: None)), kernels, measure(epoch(work)))
