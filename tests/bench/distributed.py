#!/usr/bin/env python3
"""all_reduce and a step of DistributedDataParallel beside PyTorch's on gloo, on this machine: tests/bench/distributed.py BUILD [RANKS]

Prints a JSON object a line, Tide's under each MPI, PyTorch's where the interpreter has it, by turns, and the load of the machine.
"""
import json
import os
import shutil
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
CASES = [("4 KB", 1024, 200), ("1 MB", 262144, 40), ("26 MB", 6815744, 12)]


def report(rank, size, name, took):
    import torch
    if rank == 0:
        q = statistics.quantiles(took, n=4)
        print(json.dumps({"case": f"{name}, {size} ranks", "median_s": statistics.median(took), "iqr_s": q[2] - q[0],
                          "note": f"PyTorch {torch.__version__}: gloo"}), flush=True)


def ddp_steps(rank, size):
    """The network and the batch of distributed.lua."""
    import torch
    import torch.distributed as dist
    from torch import nn
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
    x, y = torch.randn(64, 1024), torch.randint(0, 1023, (64,))
    for name, mb, hook in (("overlapped", 4, None), ("not overlapped", 1000, None), ("fp16", 4, default_hooks.fp16_compress_hook),
                           ("bf16", 4, default_hooks.bf16_compress_hook)):
        net = nn.Sequential(nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1024))
        net = nn.parallel.DistributedDataParallel(net, bucket_cap_mb=mb)
        if hook:
            net.register_comm_hook(None, hook)
        opt, took = torch.optim.SGD(net.parameters(), lr=0.01), []
        for k in range(25):
            dist.barrier()
            began = time.perf_counter()
            opt.zero_grad()
            nn.functional.cross_entropy(net(x), y).backward()
            opt.step()
            if k >= 5:
                took.append(time.perf_counter() - began)
        report(rank, size, f"DDP step, {name}", took)


def gloo(rank, size, port):
    import torch
    import torch.distributed as dist
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=size)
    for name, n, times in CASES:
        x, took = torch.ones(n), []
        for k in range(times + 3):
            x.fill_(1)
            dist.barrier()
            began = time.perf_counter()
            dist.all_reduce(x)
            if k >= 3:
                took.append(time.perf_counter() - began)
        report(rank, size, f"all_reduce {name}", took)
    ddp_steps(rank, size)
    dist.destroy_process_group()


def main():
    build, size = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 2
    for turn in range(3):
        print(json.dumps({"turn": turn + 1, "load": os.getloadavg()[0]}), flush=True)
        for mpi in ("openmpi", "mpich"):
            if shutil.which(f"mpirun.{mpi}"):
                subprocess.run([os.path.join(build, "tide-run"), "--allow-root", "--mpi", mpi, "-n", str(size),
                                os.path.join(HERE, "distributed.lua")], check=False, timeout=120)
        ranks = [subprocess.Popen([sys.executable, __file__, "--gloo", str(r), str(size), str(29500 + turn)]) for r in range(size)]
        for rank in ranks:
            rank.wait(timeout=120)


if __name__ == "__main__":
    if sys.argv[1] == "--gloo":
        gloo(*map(int, sys.argv[2:]))
    else:
        main()
