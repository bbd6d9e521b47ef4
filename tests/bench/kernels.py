"""Start and round trip of Tide's kernel beside ipykernel's, through the same client, in turns.

usage: TIDE_KERNEL=path/to/tide-kernel python3 tests/bench/kernels.py [--runs 5] [--cells 200]

Needs jupyter_client and ipykernel in the Python that runs it. Start: from the launch to the reply to the first
kernel_info_request. Round trip: execute_request to the idle status, of a cell that shows a number; medians of each run,
of which the least is the figure.
"""
import argparse
import os
import shutil
import statistics
import subprocess
import tempfile
import time

CELL = {"tide": "1 + 1", "python3": "1 + 1"}


def start(name):
    from jupyter_client.manager import KernelManager

    manager = KernelManager(kernel_name=name)
    began = time.perf_counter()
    manager.start_kernel(stderr=subprocess.DEVNULL)
    client = manager.blocking_client()
    client.start_channels()
    client.wait_for_ready(timeout=120)
    return manager, client, time.perf_counter() - began


def cell(client, code):
    began = time.perf_counter()
    msg_id = client.execute(code)
    idle = False
    while not idle:
        message = client.get_iopub_msg(timeout=60)
        idle = message["parent_header"].get("msg_id") == msg_id and message["content"].get("execution_state") == "idle"
    reply = client.get_shell_msg(timeout=60)
    assert reply["content"]["status"] == "ok", reply
    return time.perf_counter() - began


def measure(name, cells):
    """(seconds to start, median seconds of a cell, MiB of the process)"""
    manager, client, began = start(name)
    try:
        for _ in range(20):
            cell(client, CELL[name])
        trip = statistics.median(cell(client, CELL[name]) for _ in range(cells))
        with open(f"/proc/{manager.provisioner.process.pid}/status", encoding="ascii") as status:
            memory = next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    return began, trip, memory


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--cells", type=int, default=200)
    arguments = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="tide-bench-")
    try:
        os.environ.update(JUPYTER_PATH=folder + "/share/jupyter", XDG_STATE_HOME=folder, XDG_CONFIG_HOME=folder,
                          IPYTHONDIR=folder, JUPYTER_RUNTIME_DIR=folder)
        subprocess.run([os.environ["TIDE_KERNEL"], "--install", "--prefix", folder], check=True, stdout=subprocess.DEVNULL)
        results = {name: [] for name in CELL}
        for _ in range(arguments.runs):
            for name in CELL:
                results[name].append(measure(name, arguments.cells))
        print(f"{'kernel':10}{'start ms':>12}{'cell ms':>12}{'MiB':>8}   (least of {arguments.runs} runs)")
        for name, runs in results.items():
            start_s, trip, memory = (min(column) for column in zip(*runs))
            print(f"{name:10}{start_s * 1000:12.1f}{trip * 1000:12.2f}{memory:8.0f}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
