"""test_speed.py: the table of speed: what it says of measurements, how two programs take turns, and that every case of
the table runs, with PyTorch's results where PyTorch is. Sizes are tiny, and nobody looks at a clock."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

BENCH = os.path.join(os.environ["TIDE_SOURCE"], "tests", "bench")
PYTHON = os.environ.get("PYTHON", "/usr/bin/python3")
sys.path.insert(0, BENCH)

import speed_table  # noqa: E402
import turns  # noqa: E402

HAS_TORCH = subprocess.run([PYTHON, "-c", "import torch"], stderr=subprocess.DEVNULL, check=False).returncode == 0


def compare(*arguments, **environment):
    return subprocess.run([sys.executable, os.path.join(BENCH, "compare"), "speed", *arguments], capture_output=True, text=True,
                          env={**os.environ, **environment}, check=False)


def rows(text):
    """The table's lines by case, and its last line."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return {line.split()[0]: line for line in lines[1:-1]}, lines[-1]


def line(seconds, **digest):
    facts = {"dtype": "float32", "count": 2, "sum": 3.0, "sizes": 3.0, "squares": 5.0, "places": 1.0, **digest}
    return {"median_s": seconds, "digest": facts}


class Words(unittest.TestCase):
    def test_a_goal_is_met_by_the_figure_and_by_pytorch(self):
        for ours, theirs, words in ((100e-9, 1e-6, []), (100e-9, 90e-9, ["PyTorch"]), (130e-9, 1e-6, ["goal"]),
                                    (130e-9, 90e-9, ["goal", "PyTorch"])):
            self.assertEqual(speed_table.missed("add_1", line(ours), line(theirs)), words)
        self.assertEqual(speed_table.missed("add_1", line(100e-9), None), [])

    def test_without_a_figure_pytorch_alone_judges(self):
        self.assertIsNone(speed_table.GOALS["sum_10000000"])
        self.assertEqual(speed_table.missed("sum_10000000", line(2), line(1)), ["PyTorch"])
        self.assertFalse(speed_table.judged("sum_10000000", line(2), None))
        self.assertNotIn("met", speed_table.row("sum_10000000", line(2), None))

    def test_a_row_has_both_sides_ratio_goal_and_verdict(self):
        self.assertEqual(speed_table.row("start_memory", {"median_s": 20e6}, {"median_s": 240e6}).split(),
                         ["start_memory", "20", "MB", "240", "MB", "12.00x", "25", "MB", "met"])
        self.assertEqual(speed_table.row("add_1", line(2e-7), line(1e-7)).split(),
                         ["add_1", "200", "ns", "100", "ns", "0.50x", "120", "ns", "MISSED:", "goal,", "PyTorch"])

    def test_results_may_differ_by_roundings_only(self):
        self.assertEqual(speed_table.differ(line(1), line(1, sum=3.00001)), "")
        self.assertEqual(speed_table.differ(line(1), line(1, sum=3.001)), "sum is 3, PyTorch's 3.001")
        self.assertEqual(speed_table.differ(line(1, tolerance=0.01), line(1, sum=3.001)), "")
        self.assertIn("places", speed_table.differ(line(1), line(1, places=1.1)))
        self.assertIn("squares", speed_table.differ(line(1), line(1, squares=None)))
        self.assertIn("count", speed_table.differ(line(1), line(1, count=3)))
        self.assertIn("sum", speed_table.differ(line(1, dtype="int64"), line(1, dtype="int64", sum=3.00001)))
        self.assertEqual(speed_table.differ(line(1, dtype="int64"), line(1, dtype="int64", places=1 + 1e-15)), "")
        self.assertEqual(speed_table.differ(line(1), None), "")


PROGRAM = """
import json, sys
for case in sys.argv[2:]:
    print("not for us")
    print(json.dumps({"ready": case}), flush=True)
    time = 5
    while sys.stdin.readline() == "go\\n":
        time -= 1
        print(json.dumps({"case": case, "median_s": time, "who": sys.argv[1]}), flush=True)
sys.exit(sys.argv[2:] == ["bad"])
"""


class Turns(unittest.TestCase):
    def run_both(self, ours, theirs, rounds=1):
        with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
            file.write(PROGRAM)
            file.flush()
            commands = [[sys.executable, file.name, who, *cases] for who, cases in (("A", ours), ("B", theirs)) if cases]
            return [(case, *(line and line["median_s"] for line in both)) for case, *both in turns.in_turns(commands, rounds)]

    def test_the_least_round_of_each_side_counts(self):
        self.assertEqual(self.run_both(["a", "b"], ["a", "b"], rounds=3), [("a", 2, 2), ("b", 2, 2)])

    def test_cases_of_one_side_stand_alone(self):
        self.assertEqual(self.run_both(["a", "b", "c"], ["b", "d", "c"]),
                         [("a", 4, None), ("b", 4, 4), ("c", 4, None), ("d", None, 4), ("c", None, 4)])
        self.assertEqual(self.run_both(["a"], []), [("a", 4, None)])

    def test_a_program_that_fails_ends_it(self):
        with self.assertRaisesRegex(SystemExit, "ended with 1"):
            self.run_both(["bad"], ["bad"])


class Table(unittest.TestCase):
    def test_every_case_runs(self):
        result = compare("--tiny", PYTHON="/bin/false")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        found, last = rows(result.stdout)
        self.assertEqual(sorted(found), sorted(speed_table.GOALS))
        figures = sum(goal is not None for goal in speed_table.GOALS.values())
        self.assertRegex(last, rf"^goals met: \d+ of {figures}$")
        self.assertRegex(result.stdout, r"(?m)^# .*, \d+ cores \(.*\); load \d+\.\d before the run\.$")

    @unittest.skipUnless(HAS_TORCH, "no PyTorch here")
    def test_results_are_pytorchs(self):
        result = compare("--tiny")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        found, last = rows(result.stdout)
        self.assertEqual(sorted(found), sorted(speed_table.GOALS))
        self.assertEqual([case for case, text in found.items() if "x " not in text], [])
        self.assertRegex(last, rf"^goals met: \d+ of {len(speed_table.GOALS)}$")

    def test_unknown_words_are_refused(self):
        for arguments, words in ((["--small"], "unknown option '--small'"), (["nonsense"], "no case of the table begins with 'nonsense'")):
            result = compare(*arguments, PYTHON="/bin/false")
            self.assertEqual((result.returncode, result.stdout), (1, ""))
            self.assertIn(words, result.stderr)

    def test_the_same_numbers_come_out_whatever_cases_are_chosen(self):
        def digest(*cases):
            told = subprocess.run([os.environ["TIDE"], os.path.join(BENCH, "speed.lua"), *cases], capture_output=True, text=True,
                                  env={**os.environ, "TIDE_BENCH_TINY": "1"}, check=True).stdout
            return {text["case"]: text["digest"] for text in map(json.loads, told.splitlines())}

        alone = digest("=exp_100000")
        self.assertEqual(list(alone), ["exp_100000"])
        self.assertEqual(digest("add_1", "exp")["exp_100000"], alone["exp_100000"])


if __name__ == "__main__":
    unittest.main()
