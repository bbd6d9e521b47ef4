#!/usr/bin/env python3
"""networks_table.py [--rounds N] [--threads N] [CASE...]: the reference networks in every way, beside PyTorch, as one table.

Each case runs in processes of its own, Tide's and PyTorch's in turns, N rounds (2); a time is the least median of them, memory the most
that a process held. CASE is the beginning of a case's name, as in networks.lua. TIDE names the program, PYTHON a Python with
PyTorch and torchvision; without one Tide's figures stand alone.
"""
import argparse
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TIDE = os.environ.get("TIDE", os.path.join(HERE, "..", "..", "build", "release", "tide"))
PYTHON = os.environ.get("PYTHON", sys.executable)
NETWORKS = ("tutorial", "resnet18", "resnet50", "resnet101", "tanh_rnn", "letters", "gpt", "vae", "diffusion", "tacotron2")
WAYS = ("f32", "amp", "channels_last", "amp+channels_last", "scripted", "int8")


def run(command, case, threads):
    """Median seconds and most megabytes of a case; None where it has no such way."""
    limits = {"TIDE_NUM_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)}
    done = subprocess.run([*command, "=" + case], capture_output=True, text=True, check=False, env={**os.environ, **limits})
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    times = [line["median_s"] for line in lines if "median_s" in line]
    peaks = [line["peak_mb"] for line in lines if "peak_mb" in line]
    if done.returncode != 0:
        print(f"{case}: {done.stderr.strip().splitlines()[0] if done.stderr.strip() else 'failed'}", file=sys.stderr)
    return (times[0], peaks[0]) if times and peaks else None


def text(seconds):
    for unit, factor in (("s", 1), ("ms", 1e3), ("µs", 1e6)):
        if seconds * factor >= 1 or unit == "µs":
            return f"{seconds * factor:.3g} {unit}"
    return ""


def best(results):
    results = [r for r in results if r]
    return (min(r[0] for r in results), max(r[1] for r in results)) if results else None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("cases", nargs="*")
    options = parser.parse_args()
    has_torch = subprocess.run([PYTHON, "-c", "import torch, torchvision"], capture_output=True, check=False).returncode == 0
    print(f"{'network':<11} {'':<6} {'way':<18} {'tide':>9} {'pytorch':>9} {'pytorch/tide':>13} {'MB':>6} {'pytorch MB':>11}   {options.threads} threads")
    for network in NETWORKS:
        for what in ("train", "run"):
            for way in WAYS:
                case = f"{network}_{what}_{way}"
                if options.cases and not any(case.startswith(wanted) for wanted in options.cases):
                    continue
                own, peer = [], []
                for _ in range(options.rounds):
                    own.append(run([TIDE, os.path.join(HERE, "networks.lua")], case, options.threads))
                    peer.append(run([PYTHON, os.path.join(HERE, "networks.py")], case, options.threads) if has_torch and own[0] else None)
                own, peer = best(own), best(peer)
                if own:
                    ratio = f"{peer[0] / own[0]:.2f}" if peer else ""
                    print(f"{network:<11} {what:<6} {way:<18} {text(own[0]):>9} {text(peer[0]) if peer else '':>9} {ratio:>13} {own[1]:>6} "
                          f"{peer[1] if peer else '':>11}", flush=True)


if __name__ == "__main__":
    main()
