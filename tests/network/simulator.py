#!/usr/bin/python3
"""tide.distributed.simulate held against real steps: a step of DistributedDataParallel is measured among two nodes over one link, and what
it takes among more nodes, with other buckets and over other links is predicted from it; then those are run.

    tests/network/simulator.py [--mpi mpich] [--steps 9]    # prints a table; TIDE_BUILD names the build

Backward's time is slept through, so that other processes of this machine change nothing; packets are of 9,000 bytes, of which the relay
can carry some hundred Mbit/s."""
import argparse
import collections
import os
import sys

import weather

sys.path.append(os.path.join(os.path.dirname(weather.HERE), "distributed"))
os.environ.setdefault("TIDE_BUILD", os.path.join(os.path.dirname(os.path.dirname(weather.HERE)), "build/release"))
import job  # noqa: E402

LAYERS, BACKWARD_MS, WIDTH = 6, 20, 512

# A step: of how many nodes, over what (delay in ms, Mbit/s), in buckets of how many MiB.
Step = collections.namedtuple("Step", "nodes delay rate cap")


def weather_of(step):
    return weather.Weather(delay=step.delay / 1e3, rate=step.rate * 1e6, mtu=9000)


def spell(step, measured):
    """As steps.lua takes it."""
    other = (step.delay, step.rate) != (measured.delay, measured.rate)
    return f"{step.nodes}:{step.cap}" + (f":{step.delay * 1e3}:{weather_of(step).payload():.0f}" if other else "")


def run(mpi, step, steps, others=(), width=WIDTH):
    """What the step took, µs (median), what the others are predicted to take, and by how much the relay was late, s."""
    with weather.Network(step.nodes, weather_of(step)) as network:
        script = os.path.join(weather.HERE, "steps.lua")
        done = job.run(mpi, step.nodes, script, LAYERS, width, BACKWARD_MS, step.cap, steps, *[spell(other, step) for other in others],
                       enter=network.enter(0), environment=network.environment())
    if done.code:
        raise RuntimeError(done.text)
    rows = [line.split("\t") for line in done.text.splitlines()]
    predicted = {row[1]: float(row[2]) for row in rows if row[0] == "predicted"}
    return next(float(row[1]) for row in rows if row[0] == "measured"), [predicted[spell(other, step)] for other in others], network.late


def compare(mpi, measured, others, steps):
    """Prints a table of what the others are predicted to take and took."""
    took, predicted, late = run(mpi, measured, steps, others)
    print(f"{mpi}: measured with {measured.nodes} nodes, {measured.rate:g} Mbit/s + {measured.delay:g} ms, {measured.cap:g} MiB: {took / 1e3:.0f} ms, frames late by {late * 1e3:.1f} ms")
    print("| nodes | link | buckets | predicted | measured | off | frames late by |")
    print("|---|---|---|---|---|---|---|")
    for step, expected in zip(others, predicted):
        real, _, late = run(mpi, step, steps)
        print(f"| {step.nodes} | {step.rate:g} Mbit/s + {step.delay:g} ms | {step.cap:g} MiB | {expected / 1e3:.0f} ms | {real / 1e3:.0f} ms "
              f"| {100 * (expected / real - 1):+.0f} % | {late * 1e3:.1f} ms |", flush=True)


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--mpi", default="openmpi", choices=job.MPIS)
    arguments.add_argument("--steps", type=int, default=9)
    given = arguments.parse_args()
    for delay, rate in ((0, 50), (1, 200)):
        others = [Step(nodes, delay, rate, cap) for nodes in (2, 3, 4) for cap in (1, 3, 6)]
        others += [Step(2, *link, 3) for link in ((0, 50), (1, 200), (0.2, 1000)) if link != (delay, rate)]
        compare(given.mpi, Step(2, delay, rate, 1), others, given.steps)


if __name__ == "__main__":
    main()
