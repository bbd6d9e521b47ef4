"""test_script.py: `compare script` and names that `compare` doesn't know: what is said of measurements, that every program runs in
all of Tide's ways with the same results, and that wrong words are told in a line. Sizes are tiny, and nobody looks at a clock."""
import json
import os
import subprocess
import sys
import unittest

BENCH = os.path.join(os.environ["TIDE_SOURCE"], "tests", "bench")
TIDE = os.environ["TIDE"]
sys.path.insert(0, BENCH)

import script_table  # noqa: E402
import speed_table  # noqa: E402


def compare(*arguments):
    return subprocess.run([sys.executable, os.path.join(BENCH, "compare"), *arguments], capture_output=True, text=True,
                          env={**os.environ, "PYTHON": "/bin/false"}, check=False)


def cases(way):
    result = subprocess.run([TIDE, os.path.join(BENCH, "script.lua"), way], capture_output=True, text=True,
                            env={**os.environ, "TIDE_BENCH_TINY": "1"}, check=False)
    assert (result.returncode, result.stderr) == (0, ""), result.stderr
    return {line["case"]: line for line in map(json.loads, result.stdout.splitlines())}


def lines(eager, scripted, torch=None, peaks=(10, 10)):
    table = {"eager": {"median_s": eager, "peak_bytes": peaks[0]}, "scripted": {"median_s": scripted, "peak_bytes": peaks[1]}}
    return table | ({"torch eager": {"median_s": torch}, "torch compiled": {"median_s": 2 * torch}} if torch else {})


class Words(unittest.TestCase):
    def test_gains_are_geometric_means_and_slower_cases_are_named(self):
        table = {"a": lines(4.0, 1.0), "b": lines(1.0, 2.0)}
        self.assertIn("scripted against eager: 1.41x in the geometric mean, never slower in 1 of 2; slower: b 0.50x",
                      list(script_table.summary(table)))

    def test_the_best_of_pytorchs_ways_counts(self):
        self.assertIn("scripted against the best of PyTorch's ways: 3.00x in the geometric mean, never slower in 1 of 1",
                      list(script_table.summary({"a": lines(4.0, 1.0, 3.0)})))

    def test_more_memory_is_named(self):
        table = {"a": lines(1.0, 1.0, peaks=(10, 10)), "b": lines(1.0, 1.0, peaks=(10, 11))}
        self.assertIn("peak memory lower or equal in 1 of 2; more: b", list(script_table.summary(table)))

    def test_the_slides_function_is_told_in_adds(self):
        for scripted, verdict in ((1.2, "met"), (1.4, "MISSED")):
            told = list(script_table.yardsticks({"add_5": {"eager": {"median_s": 1.0}}, "tenfold_5": lines(9.0, scripted)}))
            self.assertEqual(told, [f"tenfold_5, scripted: {scripted:.2f} times one add of that size (1.3 wanted): {verdict}"])

    def test_two_threads_are_measured_against_one(self):
        self.assertEqual(script_table.on_two_threads({"a_5": lines(4.0, 2.0), "a_5_threads": lines(4.0, 1.0)}), {"a_5_threads": 2.0})


class Runs(unittest.TestCase):
    def test_all_programs_give_the_same_in_both_ways(self):
        eager, scripted = cases("eager"), cases("scripted")
        self.assertEqual(set(eager) - set(scripted), {"add_5", "add_1000", "add_100000", "copy_10000000"})
        for case, line in scripted.items():
            if "dropout" not in case:
                self.assertEqual(speed_table.differ(line, eager[case]), "", case)

    def test_the_table_runs(self):
        result = compare("script", "--tiny", "tenfold_5", "add_5")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertRegex(result.stdout, r"(?m)^tenfold_5 .*x .*\n")
        self.assertRegex(result.stdout, r"(?m)^scripted against eager: [0-9.]+x in the geometric mean")

    def test_a_name_that_nothing_has_is_told_in_a_line(self):
        for words in (("nonsense",), ("script", "--tiny", "nonsense"), ("quantized", "nonsense")):
            result = compare(*words)
            self.assertEqual(result.returncode, 1, words)
            self.assertRegex(result.stderr, r"\Acompare: no benchmark is called 'nonsense', and no case begins so \(.*quantized\)\n\Z")
        self.assertEqual(compare("nonsense").stdout, "")

    def test_sizes_that_change_run(self):
        result = subprocess.run([TIDE, os.path.join(BENCH, "script_sizes.lua"), "norm_sizes", "large_sizes"], capture_output=True, text=True,
                                env={**os.environ, "TIDE_BENCH_TINY": "1", "TIDE_SCRIPT": "later"}, check=False)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual([json.loads(line)["case"] for line in result.stdout.splitlines()],
                         ["norm_sizes", "norm_sizes_backward", "large_sizes", "large_sizes_backward"])


if __name__ == "__main__":
    unittest.main()
