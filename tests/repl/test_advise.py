"""tide --advise: what it says behind a script, as text and as JSON, and what it refuses.

usage: TIDE=path/to/tide test_advise.py
"""
import json
import os
import resource
import signal
import subprocess
import tempfile
import time
import unittest

TIDE = os.environ["TIDE"]

GROWING = """local tide = require "tide"
local all = tide.zeros(0, 64)
for k = 1, 200 do
    all = tide.cat { all, tide.rand(8, 64) }
end
print("rows", #all, arg[1])
"""


def run(*arguments, code=None, until=""):
    """The ended program; `code` is written to the script that the arguments name as SCRIPT. Advice goes by shares of the time: where
    the machine was busy just then, `until` is not in what was printed, and the program runs again."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "script of a user.lua")
        if code is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(code)
        given = [path if a == "SCRIPT" else a for a in arguments]
        for _ in range(5):
            done = subprocess.run([TIDE, *given], capture_output=True, text=True, timeout=100, check=False)
            if until in done.stdout:
                break
        return done


def growth(found):
    return [item for item in found if item["kind"] == "grow"]


class Advise(unittest.TestCase):
    def test_advice_comes_behind_what_the_script_prints(self):
        done = run("--advise", "SCRIPT", "7", code=GROWING, until="199 × cat")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        lines = done.stdout.splitlines()
        self.assertEqual(lines[0], "rows\t1600\t7")
        self.assertRegex(done.stdout, r"script of a user\.lua:4: 199 × cat .* — .*× \(measured\)")

    def test_json_is_one_line_with_all_fields(self):
        done = run("--advise", "--json", "SCRIPT", code=GROWING, until='"grow"')
        found = json.loads(done.stdout.splitlines()[-1])
        item = growth(found)[0]
        self.assertEqual(set(item), {"kind", "file", "line", "count", "share", "text", "fix", "gain", "measured"})
        self.assertEqual((item["line"], item["count"], item["measured"]), (4, 199, True))
        self.assertTrue(item["file"].endswith("script of a user.lua"))
        self.assertTrue(0.05 <= item["share"] <= 1 and item["gain"] > 1)
        self.assertEqual(found, sorted(found, key=lambda i: -i["share"] * (1 - 1 / i["gain"])))

    def test_a_script_with_nothing_to_say_about_draws_an_empty_list(self):
        done = run("--advise", "--json", "SCRIPT", code="local x = 1")
        self.assertEqual((done.stdout, done.returncode), ("[]\n", 0))

    def test_a_script_that_fails_is_advised_on_and_keeps_its_exit_code(self):
        done = run("--advise", "--json", "SCRIPT", code=GROWING + 'error("no more")', until='"grow"')
        self.assertEqual(done.returncode, 1)
        self.assertIn("no more", done.stderr)
        self.assertTrue(growth(json.loads(done.stdout.splitlines()[-1])))
        done = run("--advise", "--json", "SCRIPT", code=GROWING + "os.exit(7)", until='"grow"')
        self.assertEqual(done.returncode, 7)
        self.assertTrue(growth(json.loads(done.stdout.splitlines()[-1])))

    def test_a_syntax_error_and_no_file_are_the_scripts_errors(self):
        done = run("--advise", "--json", "SCRIPT", code="for")
        self.assertEqual((done.returncode, done.stdout), (1, "[]\n"))
        done = run("--advise", "/nonexistent/script.lua")
        self.assertEqual(done.returncode, 1)
        self.assertIn("/nonexistent/script.lua", done.stderr)

    def test_code_can_be_advised_on(self):
        done = run("--advise", "--json", "-e", "for k = 1, 20 do collectgarbage() end", until='"gc"')
        self.assertIn("gc", [item["kind"] for item in json.loads(done.stdout.splitlines()[-1])])

    def test_nested_loops_are_advised_on_soon_and_an_interrupt_ends_it(self):
        code = """local n = tonumber(arg[1])
local img, s = tide.rand(n, n), 0
for i = 2, n - 1 do
    for j = 2, n - 1 do
        for d = -1, 1 do s = s + img[{i + d, j}] * img[{i, j + d}] end
    end
end
io.write("done\\n") io.flush()
"""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = run("--advise", "SCRIPT", "150", code=code, until="one element of")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("one element of 150 × 150 float32", done.stdout)
        self.assertRegex(done.stdout, r"\(looked at: the last \d+ of \d+ events, the last .* s\)\n$")
        self.assertLess(after.ru_utime - before.ru_utime, 30, "of the processor")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "nested.lua")
            with open(path, "w", encoding="utf-8") as file:
                file.write(code)
            process = subprocess.Popen([TIDE, "--advise", path, "150"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.assertEqual(process.stdout.readline(), "done\n")
            while process.poll() is None:  # the first may still be the script's
                process.send_signal(signal.SIGINT)
                time.sleep(0.2)
            out, _ = process.communicate(timeout=100)
        self.assertEqual((process.returncode, out), (-signal.SIGINT, ""))

    def test_calls_that_make_no_sense_are_refused(self):
        for arguments, message in [(["--advise"], "a script is missing after '--advise'"),
                                   (["--json", "x.lua"], "--advise or --doctor is missing beside '--json'"),
                                   (["--advise", "--profile", "t.json", "x.lua"], "one recording at a time")]:
            done = run(*arguments)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(message, done.stderr)

    def test_pages_of_help_are_found_by_kind(self):
        done = run("-e", "print(tide.advice.foreach)")
        self.assertIn("tide.foreach.add_(params, grads)", done.stdout)


if __name__ == "__main__":
    unittest.main()
