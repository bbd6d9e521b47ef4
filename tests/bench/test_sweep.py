"""test_sweep.py: the sweep over all operators: what it says of measurements, that each of its calls runs, and that it is
the same call in PyTorch where PyTorch is. Sizes are tiny, and nobody looks at a clock."""
import contextlib
import importlib.machinery
import importlib.util
import io
import json
import os
import subprocess
import sys
import unittest

BENCH = os.path.join(os.environ["TIDE_SOURCE"], "tests", "bench")
TIDE = os.environ["TIDE"]
PYTHON = os.environ.get("PYTHON", "/usr/bin/python3")
sys.path.insert(0, BENCH)

import sweep_table  # noqa: E402

HAS_TORCH = subprocess.run([PYTHON, "-c", "import torch"], stderr=subprocess.DEVNULL, check=False).returncode == 0


def run(*command, **environment):
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, check=False)


def compare(*arguments, **environment):
    return run(sys.executable, os.path.join(BENCH, "compare"), "sweep", *arguments, **environment)


def sweep(*arguments):
    result = run(TIDE, os.path.join(BENCH, "sweep.lua"), "--tiny", *arguments)
    assert (result.returncode, result.stderr) == (0, ""), result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def line(case, seconds, size=0, kinds="float32 4"):
    return {"case": case, "min_s": seconds, "bytes": size, "kinds": kinds}


def both(case, ours, theirs, size=0):
    return case, line(case, ours, size), line(case, theirs, size) if theirs else None


class Words(unittest.TestCase):
    def test_what_is_slower_comes_first_and_the_worst_of_it(self):
        lines = [both("exp/1e3/float32/contiguous", 4, 2), both("cat:1/1e5/float32/contiguous", 4, 1),
                 both("cat:2/1e5/float32/contiguous", 1.01, 1), both("abs/1/float32/contiguous", 1, None)]
        slower, wasteful = sweep_table.findings(lines, 1)
        self.assertEqual([row[:2] for row in slower],
                         [(0.25, "cat:1/1e5/float32/contiguous"), (0.5, "exp/1e3/float32/contiguous")])
        self.assertEqual(wasteful, [])
        self.assertEqual(sweep_table.counts(lines, 1),
                         "slower than PyTorch: 2 of 3 cases (2 operators); under 70% of the bandwidth: 0 of 0 cases")
        self.assertEqual(sweep_table.by_operator(slower), "cat 1, exp 1")

    def test_the_bandwidth_judges_large_cases_that_move_bytes(self):
        large, small = "exp/1e7/float32/contiguous", "exp/1e5/float32/contiguous"
        lines = [both(large, 1, 2, 60), both(small, 1, 2, 60), both("mm/1e7/float32/contiguous", 1, 2)]
        self.assertEqual([row[:2] for row in sweep_table.findings(lines, 100)[1]], [(0.6, large)])
        self.assertIn("under 70% of the bandwidth: 1 of 1 cases", sweep_table.counts(lines, 100))
        self.assertEqual(sweep_table.findings(lines, 80)[1], [])

    def test_only_what_seems_slower_is_measured_again(self):
        self.assertFalse(sweep_table.is_clear(line("a", 2e-3), line("a", 1e-3)))
        self.assertTrue(sweep_table.is_clear(line("a", 2), line("a", 1)))
        self.assertTrue(sweep_table.is_clear(line("a", 1e-3), line("a", 2e-3)))
        self.assertTrue(sweep_table.is_clear(line("a", 1), None))

    def test_the_lesser_of_two_times_counts_on_each_side(self):
        lines = [("a", line("a", 4), line("a", 2)), ("b", line("b", 1), line("b", 2)), ("c", line("c", 3), line("c", 1))]
        more = [("a", line("a", 3), line("a", 5)), ("c", None, line("c", 0.5))]
        self.assertEqual([(case, ours["min_s"], theirs["min_s"]) for case, ours, theirs in sweep_table.lesser(lines, more)],
                         [("a", 3, 2), ("b", 1, 2), ("c", 3, 0.5)])

    def test_wrong_calls_are_found(self):
        lines = [both("exp/1/float32/contiguous", 1, 1)]
        self.assertEqual(sweep_table.never_taken(lines, {"exp/1/int64/contiguous": "no", "cat/1/int64/contiguous": "why"}),
                         [("cat", "why")])
        self.assertEqual(sweep_table.otherwise(lines), [])
        lines[0][2]["kinds"] = "float32 4 1"
        self.assertEqual(sweep_table.otherwise(lines),
                         [("exp", "exp/1/float32/contiguous gives float32 4, PyTorch's float32 4 1")])


class Calls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.lines = sweep()

    def test_every_call_is_taken_by_some_dtype(self):
        ran = {sweep_table.operator(text["case"]) for text in self.lines if "case" in text}
        refused = {sweep_table.operator(text["refused"]): text["why"] for text in self.lines if "refused" in text}
        self.assertEqual({name: why for name, why in refused.items() if name not in ran}, {})
        self.assertGreater(len(ran), 400)

    def test_the_list_has_the_cases_that_run(self):
        listed = [text["case"] for text in sweep("--list") if "case" in text]
        self.assertEqual(listed, [text.get("case") or text["refused"] for text in self.lines if "uncalled" not in text])
        self.assertEqual(len(listed), len(set(listed)))

    def test_a_case_is_named_alone(self):
        names = [text["case"] for text in sweep("exp/24/float32/transposed", "cat:2/1/int64/contiguous", "--list")]
        self.assertEqual(sorted(names), ["cat:2/1/int64/contiguous", "exp/24/float32/transposed"])

    def test_layouts_and_dtypes_are_varied(self):
        names = {text["case"].partition("/")[2] for text in self.lines if text.get("case", "").startswith("exp/")}
        self.assertEqual(names, {"1/float32/contiguous", *(f"24/float32/{layout}" for layout in ("contiguous", "transposed", "channels_last")),
                                 *(f"{n}/{dtype}/contiguous" for n in (1, 24) for dtype in ("float64", "bfloat16", "int64"))})

    def test_a_quick_sweep_calls_them_all(self):
        def operators(*words):
            result = run(TIDE, os.path.join(BENCH, "sweep.lua"), *words, "--list")
            return {sweep_table.operator(json.loads(text)["case"]) for text in result.stdout.splitlines() if '"case"' in text}

        quick = operators("--quick")
        self.assertEqual(quick, operators())
        self.assertEqual(quick, operators("--tiny"))

    def test_only_operators_are_named(self):
        code = f"""local known = {{}}
for _, op in ipairs(tide._ops()) do known[op.name] = not op.internal end
for what, names in pairs(dofile("{BENCH}/sweep_calls.lua")) do
    for name in pairs(names) do if not known[name] then print(what, name) end end
end"""
        result = run(TIDE, "-e", code)
        self.assertEqual((result.stdout, result.stderr), ("", ""))


class Report(unittest.TestCase):
    def test_it_stands_without_pytorch(self):
        result = compare("--tiny", "exp", "cat", PYTHON="/bin/false")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertRegex(result.stdout, r"\A# tests/bench/compare sweep --tiny exp cat, \d+-\d+-\d+:\n")
        self.assertTrue(result.stdout.endswith("slower than PyTorch: 0 of 0 cases (0 operators); under 70% of the bandwidth: "
                                               "0 of 0 cases\n"), result.stdout)

    def test_an_interrupt_leaves_what_was_measured(self):
        loader = importlib.machinery.SourceFileLoader("compare", os.path.join(BENCH, "compare"))
        module = importlib.util.module_from_spec(importlib.util.spec_from_loader("compare", loader))
        loader.exec_module(module)

        def interrupted(commands, rounds, enough, told):
            try:
                yield both("exp/1/float32/contiguous", 1, 2)
                raise KeyboardInterrupt
            finally:
                told.append({"cat/1/int64/contiguous": "no"})

        module.in_turns = interrupted
        with contextlib.redirect_stdout(io.StringIO()) as shown:
            lines, told = module.run_calls([], "", 7)
        self.assertEqual((lines, told), ([both("exp/1/float32/contiguous", 1, 2)], [{}]))
        self.assertEqual(shown.getvalue(), "# Interrupted after 1 of 7 cases.\n")

    def test_both_sides_take_the_threads_that_are_named(self):
        most = os.cpu_count()
        result = compare("--tiny", f"--threads={most}", "exp/1/float32/contiguous", PYTHON="/bin/false")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("One thread" if most == 1 else f"# {most} threads", result.stdout)
        for word in ("0", "-1", "two", "", str(most + 1)):
            result = compare("--tiny", f"--threads={word}", PYTHON="/bin/false")
            self.assertEqual((result.returncode, result.stdout), (1, ""))
            self.assertIn(f"a number from 1 to {most} is wanted", result.stderr)

    def test_unknown_words_are_refused(self):
        for arguments, words in ((["--small"], "unknown option '--small'"), (["--tiny", "nonsense"], "no operator 'nonsense'")):
            result = compare(*arguments, PYTHON="/bin/false")
            self.assertEqual((result.returncode, result.stdout), (1, ""))
            self.assertIn(words, result.stderr)

    @unittest.skipUnless(HAS_TORCH, "no PyTorch here")
    def test_calls_mean_the_same_in_pytorch(self):
        result = compare("--tiny")
        self.assertEqual((result.returncode, result.stderr), (0, ""), result.stdout)
        self.assertRegex(result.stdout, r"slower than PyTorch: \d+ of \d{4} cases")


if __name__ == "__main__":
    unittest.main()
