#!/usr/bin/env python3
"""networks_table.py [--rounds N] [--threads N] [--scores] [CASE...]: the reference networks in every way, beside PyTorch, as one table.

Each case runs in processes of its own, Tide's and PyTorch's in turns, N rounds (2); a time is the least median of them, memory the most
that a process held. --scores: instead of times, what each network scores on data that it has not seen after a few hundred steps on real
data, in both from the same weights. CASE is the beginning of a case's name, as in networks.lua. TIDE names the program, PYTHON a Python
with PyTorch and torchvision; without one Tide's figures stand alone.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TIDE = os.environ.get("TIDE", os.path.join(HERE, "..", "..", "build", "release", "tide"))
PYTHON = os.environ.get("PYTHON", sys.executable)
NETWORKS = ("tutorial", "resnet18", "resnet50", "resnet101", "tanh_rnn", "letters", "gru_letters", "gpt", "vae", "diffusion", "tacotron2",
            "waveglow", "dqn")
WAYS = ("f32", "amp", "channels_last", "amp+channels_last", "scripted", "int8")


def run(command, case, threads, **settings):
    """What a case tells of itself, in one table; empty where it has no such way."""
    settings |= {"OMP_NUM_THREADS": str(threads)}
    done = subprocess.run([*command, "=" + case], capture_output=True, text=True, check=False, env={**os.environ, **settings})
    facts = {}
    for line in done.stdout.splitlines():
        facts |= json.loads(line) if line.startswith("{") else {}
    if done.returncode != 0 or not facts and done.stderr:
        print(f"{case}: {done.stderr.strip().splitlines()[-1] if done.stderr.strip() else 'failed'}", file=sys.stderr)
    return facts


def text(seconds):
    for unit, factor in (("s", 1), ("ms", 1e3), ("µs", 1e6)):
        if seconds * factor >= 1 or unit == "µs":
            return f"{seconds * factor:.3g} {unit}"
    return ""


def best(results):
    """Least median and most memory of several runs."""
    results = [r for r in results if r]
    return (min(r["median_s"] for r in results), max(r["peak_mb"] for r in results)) if results else None


OWN, PEER = [TIDE, os.path.join(HERE, "networks.lua")], [PYTHON, os.path.join(HERE, "networks.py")]


def compare_times(network, what, way, options):
    own, peer, case = [], [], f"{network}_{what}_{way}"
    for _ in range(options.rounds):
        own.append(run(OWN, case, options.threads))
        peer.append(run(PEER, case, options.threads) if options.has_torch and own[0] else None)
    own, peer = best(own), best(peer)
    if own:
        ratio = f"{peer[0] / own[0]:.2f}" if peer else ""
        print(f"{network:<11} {what:<6} {way:<18} {text(own[0]):>9} {text(peer[0]) if peer else '':>9} {ratio:>13} {own[1]:>6} "
              f"{peer[1] if peer else '':>11}", flush=True)


def compare_scores(network, way, options, folder):
    case = f"{network}_learn_{way}"
    own = run(OWN, case, options.threads, TIDE_BENCH_DATA=folder)
    peer = run(PEER, case, options.threads, TIDE_BENCH_DATA=folder) if options.has_torch and own else {}
    if own:
        print(f"{network:<11} {way:<18} {own['score']:>9.4g} {format(peer['score'], '9.4g') if peer else '':>9}   {own['unit']}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--scores", action="store_true")
    parser.add_argument("cases", nargs="*")
    options = parser.parse_args()
    options.has_torch = subprocess.run([PYTHON, "-c", "import torch, torchvision"], capture_output=True, check=False).returncode == 0
    kinds = ("learn",) if options.scores else ("train", "run")
    chosen = [(network, what, way) for network in NETWORKS for what in kinds for way in WAYS
              if not options.cases or any(f"{network}_{what}_{way}".startswith(wanted) for wanted in options.cases)]
    if options.scores:
        print(f"{'network':<11} {'way':<18} {'tide':>9} {'pytorch':>9}")
        with tempfile.TemporaryDirectory() as folder:
            for network, _, way in chosen:
                compare_scores(network, way, options, folder)
        return
    print(f"{'network':<11} {'':<6} {'way':<18} {'tide':>9} {'pytorch':>9} {'pytorch/tide':>13} {'MB':>6} {'pytorch MB':>11}   {options.threads} threads")
    for network, what, way in chosen:
        compare_times(network, what, way, options)


if __name__ == "__main__":
    main()
