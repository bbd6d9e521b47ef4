"""test_busy.py: `compare busy` has a row for each number of threads and of busy processes, and these are gone behind it. Steps are few,
and nobody looks at a clock."""
import os
import subprocess
import sys
import unittest

BENCH = os.path.join(os.environ["TIDE_SOURCE"], "tests", "bench")
sys.path.insert(0, BENCH)

from busy import busy_table  # noqa: E402


def compare(*arguments):
    return subprocess.run([sys.executable, os.path.join(BENCH, "compare"), *arguments], capture_output=True, text=True,
                          env={**os.environ, "PYTHON": "/bin/false"}, check=False)


def lines(mean):
    return [{"median_s": mean, "mean_s": mean, "p90_s": 2 * mean}]


class Busy(unittest.TestCase):
    def test_neighbours_run_until_the_block_is_left(self):
        with self.assertRaises(ValueError), busy_table.neighbours(2) as loops:
            self.assertEqual([loop.poll() for loop in loops], [None, None])
            raise ValueError
        self.assertEqual([loop.returncode for loop in loops], [-9, -9])

    def test_one_thread_and_all_meet_a_quiet_a_half_busy_and_a_busy_machine(self):
        self.assertEqual(busy_table.combinations(2), [(1, 0), (2, 0), (1, 1), (2, 1), (1, 2), (2, 2)])
        self.assertEqual(busy_table.combinations(1), [(1, 0), (1, 1)])
        self.assertEqual(busy_table.combinations(8)[2:4], [(1, 4), (8, 4)])

    def test_all_threads_are_held_against_one(self):
        table = {(1, 0): lines(0.2), (4, 0): lines(0.1), (1, 2): lines(0.2), (4, 2): lines(0.25)}
        self.assertEqual(busy_table.summary(table), ["4 threads beside 0 busy processes: 2.00 times as quick as one",
                                                     "4 threads beside 2 busy processes: 0.80 times as quick as one"])
        self.assertEqual(busy_table.row(4, 2, lines(0.25)).split(), ["4", "2", "250", "ms", "250", "ms", "500", "ms"])
        self.assertEqual(busy_table.summary({(1, 0): lines(0.2)}), [])

    def test_compare_busy_prints_the_table(self):
        result = compare("busy", "--tiny")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        rows = [line for line in result.stdout.splitlines() if line.lstrip()[:1].isdigit() and "busy" not in line]
        self.assertEqual(len(rows), len(busy_table.combinations(os.cpu_count())))
        wrong = compare("busy", "resnet")
        self.assertEqual((wrong.returncode, wrong.stderr), (1, "compare: busy takes no cases\n"))


if __name__ == "__main__":
    unittest.main()
