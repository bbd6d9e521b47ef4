#!/usr/bin/python3
"""Rehearsals: each program in rehearsal/bad is found out, for the reason that stands in it, each in rehearsal/good runs in
silence; and what jobs of the other tests do, without MPI. Needs none."""
import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
RUN = os.path.join(os.environ["TIDE_BUILD"], "tide-run")


def rehearse(ranks, script, *arguments, patience=60):
    with tempfile.TemporaryDirectory() as folder:
        return subprocess.run([RUN, "--patience", str(patience), "--rehearse", str(ranks), os.path.join(HERE, script), *arguments],
                              capture_output=True, text=True, timeout=200, stdin=subprocess.DEVNULL, env={**os.environ, "TMPDIR": folder})


def programs(folder):
    return [os.path.join("rehearsal", folder, name) for name in sorted(os.listdir(os.path.join(HERE, "rehearsal", folder)))]


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return " Z " not in file.read()
    except OSError:
        return False


class Rehearsals(unittest.TestCase):
    def each(self, scripts, check):
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            runs = [(script, pool.submit(rehearse, 4, script, patience=2 if script.endswith("hang.lua") else 60)) for script in scripts]
            for script, run in runs:
                with self.subTest(script=script):
                    check(script, run.result())

    def test_what_can_not_go_well_is_found(self):
        def check(script, done):
            with open(os.path.join(HERE, script), encoding="utf-8") as file:
                expected = re.search(r"^-- EXPECT (.*)$", file.read(), re.M).group(1)
            self.assertEqual(done.returncode, 113, done.stderr)
            self.assertRegex(done.stderr, r"tide-run: rehearsal of 4 ranks: [\s\S]*(" + expected + ")")
        self.each(programs("bad"), check)

    def test_what_goes_well_is_silent(self):
        self.each(programs("good"), lambda script, done: self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", "")))

    def test_every_collective_gives_what_arithmetic_says(self):
        for n in (1, 3, 4):
            done = rehearse(n, "collectives.lua", str(n))
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertEqual(done.stdout.count("ok, rehearsal"), n)

    def test_training_comes_to_the_curve_of_one_process(self):
        done = rehearse(2, "ddp.lua")
        self.assertEqual((done.returncode, done.stderr, done.stdout.count(": ok")), (0, "", 2))

    def test_many_ranks(self):
        done = rehearse(64, "rehearsal/good/grid.lua")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        done = rehearse(20, "rehearsal/bad/both_receive.lua")
        self.assertIn("\n  ranks 2-19: at the end of the script", done.stderr)

    def test_wrong_numbers_are_refused(self):
        for arguments, text in ((["--rehearse", "0", "x.lua"], "a number of processes from 1 to 4096 expected, not '0'"),
                                (["--rehearse", "2", "--patience", "x", "x.lua"], "seconds from 1 to 1000000 expected after --patience"),
                                (["--rehearse", "2"], "no script to run")):
            done = subprocess.run([RUN, *arguments], capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 2)
            self.assertIn(text, done.stderr)

    def test_no_rank_outlives_tide_run(self):
        with subprocess.Popen([RUN, "--rehearse", "2", os.path.join(HERE, "rehearsal", "bad", "hang.lua")], stdin=subprocess.DEVNULL) as child:
            ranks = []
            for _ in range(6000):
                with open(f"/proc/{child.pid}/task/{child.pid}/children", encoding="utf-8") as file:
                    ranks = file.read().split()
                if len(ranks) == 2:
                    break
                time.sleep(0.01)
            self.assertEqual(len(ranks), 2)
            child.kill()
        for rank in ranks:
            for _ in range(6000):
                if not is_alive(rank):
                    break
                time.sleep(0.01)
            else:
                self.fail("a rank is still there")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
