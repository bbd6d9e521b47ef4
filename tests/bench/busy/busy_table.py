"""busy_table.py: `compare busy`: steps of training on one thread and on all, on a machine that is quiet, half busy and wholly busy with
others, who run endless loops of a shell."""
import contextlib
import json
import os
import subprocess

from speed_table import seconds

FACTS = ("median_s", "mean_s", "p90_s")


def combinations(processors):
    """(threads, busy processes), each once."""
    return [(threads, busy) for busy in sorted({0, processors // 2, processors}) for threads in sorted({1, processors})]


@contextlib.contextmanager
def neighbours(count):
    """So many processes that keep a processor each busy, until the block is left; a list of them."""
    loops = []
    try:
        loops.extend(subprocess.Popen(["/bin/sh", "-c", "while :; do :; done"]) for _ in range(count))
        yield loops
    finally:
        for loop in loops:
            loop.kill()
        for loop in loops:
            loop.wait()


def measure(command, threads):
    """What the steps of a program took."""
    settings = {"TIDE_NUM_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)}
    result = subprocess.run(command, text=True, stdout=subprocess.PIPE, check=True, env={**os.environ, **settings})
    return json.loads(result.stdout.splitlines()[-1])


def head(names):
    return f"{'threads':>7} {'busy':>5}  " + "  ".join(f"{name + ': median':>16} {'mean':>9} {'90 %':>9}" for name in names)


def row(threads, busy, lines):
    return f"{threads:>7} {busy:>5}  " + "  ".join(f"{seconds(line['median_s']):>16} {seconds(line['mean_s']):>9} {seconds(line['p90_s']):>9}"
                                                    for line in lines)


def summary(table):
    """What all threads are worth beside one, by the mean of Tide's steps, for each number of busy processes."""
    text = []
    for busy in sorted({busy for _, busy in table}):
        found = {threads: lines[0]["mean_s"] for (threads, others), lines in table.items() if others == busy}
        if len(found) == 2:
            text.append(f"{max(found)} threads beside {busy} busy processes: {found[1] / found[max(found)]:.2f} times as quick as one")
    return text
