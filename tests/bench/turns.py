"""turns.py: runs a benchmark in Tide and in PyTorch at once, a case of the one and then the same of the other, so that a
noisy machine is noisy for both. bench.lua says how a program waits for its turn."""
import json
import os
import subprocess
import sys
import time

SETTLED = 0.1  # seconds at most


class Side:
    """A program that stands before a case (`ready`, None behind the last) until it is told to go."""

    def __init__(self, command):
        self.command = command
        self.refused = {}  # the cases that the program says it can't do, and why
        self.process = subprocess.Popen(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        env={**os.environ, "TIDE_BENCH_TURNS": "1"})
        self.advance()

    def read(self, key):
        """The next line that has the key; None at the end."""
        for text in self.process.stdout:
            line = json.loads(text) if text.startswith("{") else {}
            if "refused" in line:
                self.refused[line["refused"]] = line["why"]
            if key in line:
                return line
        if self.process.wait():
            sys.exit(f"compare: {' '.join(self.command[:2])} ended with {self.process.returncode}")
        return None

    def tell(self, word):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()

    def advance(self):
        line = self.read("ready")
        self.ready = line and line["ready"]

    def sleeps(self):
        """Is none of the program's threads on a processor?"""
        folder = f"/proc/{self.process.pid}/task"
        try:
            for thread in os.listdir(folder):
                with open(f"{folder}/{thread}/stat") as stat:
                    if stat.read().rpartition(")")[2].split()[0] == "R":
                        return False
        except OSError:  # it has ended, or the system is another
            pass
        return True

    def settle(self):
        """Wait until the program sleeps: OpenMP's threads wait awake for a while for the next loop, and the other
        program would share the processors with them."""
        end = time.monotonic() + SETTLED
        while not self.sleeps() and time.monotonic() < end:
            time.sleep(0.0005)

    def go(self):
        self.tell("go")
        line = self.read("case")
        self.settle()
        return line

    def leave(self):
        self.tell("next")
        self.advance()

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


def least(lines):
    """The round in which a case took least."""
    return min(lines, key=lambda line: line["median_s"] if "median_s" in line else line["min_s"]) if lines else None


def who(sides, seen):
    """The sides whose turn it is: both where they stand before the same case; else PyTorch's, if Tide has passed its case
    or refused it, and Tide's otherwise."""
    open_sides = [side for side in sides if side.ready is not None]
    if len(open_sides) == 2 and open_sides[0].ready != open_sides[1].ready:
        passed = open_sides[1].ready in seen or open_sides[1].ready in open_sides[0].refused
        return open_sides[1:] if passed else open_sides[:1]
    return open_sides


def in_turns(commands, rounds, enough=lambda ours, theirs: False, told=None):
    """Yields (case, Tide's line, PyTorch's line) for the cases of one or two programs; a line is None where the program
    has no such case. Of a case's rounds the least counts, and no more are run when `enough` says so of what both have
    reached. `told` gets what each program refused."""
    sides = []
    try:
        for command in commands:
            sides.append(Side(command))
        seen = set()
        turn = who(sides, seen)
        while turn:
            case = turn[0].ready
            seen.add(case)
            lines = {id(side): [] for side in sides}
            both = [None, None]
            for _ in range(rounds):
                for side in turn:
                    lines[id(side)].append(side.go())
                both = [*(least(lines[id(side)]) for side in sides), None][:2]
                if enough(*both):
                    break
            yield (case, *both)
            for side in turn:
                side.leave()
            turn = who(sides, seen)
    finally:
        if told is not None:
            told.extend(side.refused for side in sides)
        for side in sides:
            side.close()
