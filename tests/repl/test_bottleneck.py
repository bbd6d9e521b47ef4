"""tide --bottleneck: the page about a script, its output, exit code and errors.

usage: test_bottleneck.py path/to/tide
"""
import os
import signal
import subprocess
import sys
import tempfile
import unittest

TIDE = os.path.abspath(sys.argv.pop(1))

SCRIPT = """
io.write("began ", table.concat(arg, ","), "\\n")
local params, grads = {}, {}
for k = 1, 200 do params[k], grads[k] = tide.zeros(10), tide.ones(10) end
local function step()
    for k = 1, #params do
        params[k]:add_(grads[k])
    end
end
local function spin(n)
    local sum = 0
    for k = 1, n do sum = sum + k % 7 end
    return sum
end
for _ = 1, 20 do step() end
spin(3e6)
local held = tide.zeros(1 << 20)
if arg[1] == "fail" then error("failed late") end
os.exit(tonumber(arg[1]))
"""


class Bottleneck(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = os.path.join(self.folder.name, "slow.lua")
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(SCRIPT)

    def tide(self, *arguments, **options):
        return subprocess.run([TIDE, *arguments], text=True, capture_output=True, timeout=120, cwd=self.folder.name,
                              check=False, **options)

    def test_the_page_names_functions_operators_memory_and_what_to_change(self):
        result = self.tide("--bottleneck", "slow.lua", "0", "b c")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        out, page = result.stdout.split("---- ", 1)
        self.assertEqual(out, "began 0,b c\n")
        for part in ("spin (slow.lua:10)", "step (slow.lua:5)", "slow.lua:7 add_", "4000", "slow.lua:17 zeros",
                     "Memory: at most 4.", "To change first:", "  1. ", "peak of 4."):
            self.assertIn(part, page)
        self.assertNotIn("  4. ", page)
        self.assertRegex(page, r"% of the time: spin \(slow.lua:10\): .* in Lua itself")

    def test_exit_codes_and_errors_are_the_scripts(self):
        result = self.tide("--bottleneck", "slow.lua", "7")
        self.assertEqual((result.returncode, result.stderr), (7, ""))
        self.assertIn("the script ended with code 7: this is what it did until then", result.stdout)
        result = self.tide("--bottleneck", "slow.lua", "fail")
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stderr.count("slow.lua:18: failed late"), 1, result.stderr)
        self.assertIn("spin (slow.lua:10)", result.stdout)

    def test_a_script_may_lose_tide(self):
        with open(self.path, "w", encoding="utf-8") as file:
            file.write("tide.ones(3):exp() tide = nil")
        result = self.tide("--bottleneck", "slow.lua")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("slow.lua:1 exp", result.stdout)
        trace = os.path.join(self.folder.name, "t.json")
        result = self.tide("--profile", trace, "slow.lua")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertTrue(os.path.exists(trace))

    def test_what_is_no_script_is_refused(self):
        for arguments, code, message in (((), 2, "the path of a script is missing after '--bottleneck'"),
                                         (("-",), 2, "the path of a script is missing"),
                                         (("-e", "1", "slow.lua"), 2, "-e, -l, -i and --profile don't go with"),
                                         (("-i", "slow.lua"), 2, "don't go with '--bottleneck'"),
                                         (("none.lua",), 1, "cannot open none.lua")):
            result = self.tide("--bottleneck", *arguments)
            self.assertEqual((result.returncode, result.stdout), (code, ""), result)
            self.assertIn(message, result.stderr)

    def test_runs_that_end_otherwise_are_told_and_only_the_first_reads(self):
        with open(self.path, "w", encoding="utf-8") as file:
            file.write('local line = io.read("l") print(line) tide.ones(3):exp() os.exit(line and 0 or 5)')
        result = self.tide("--bottleneck", "slow.lua", input="given\n")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertTrue(result.stdout.startswith("given\n---- slow.lua"), result.stdout)
        self.assertIn("the run with memory recorded ended with code 5, the first with 0", result.stdout)

    def test_nothing_that_takes_time_is_said_to(self):
        with open(self.path, "w", encoding="utf-8") as file:
            file.write("local x = 1")
        result = self.tide("--bottleneck", "slow.lua")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("Memory: no tensor took more than 64 bytes", result.stdout)

    def test_an_interrupt_ends_it_as_it_ends_the_script(self):
        with open(self.path, "w", encoding="utf-8") as file:
            file.write('print("ready") io.stdout:flush() while true do end')
        before = set(os.listdir("/tmp"))
        with subprocess.Popen([TIDE, "--bottleneck", "slow.lua"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, cwd=self.folder.name, start_new_session=True) as process:
            self.assertEqual(process.stdout.readline(), "ready\n")
            os.killpg(process.pid, signal.SIGINT)
            out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, -signal.SIGINT, (out, err))
        self.assertIn("interrupted", err)
        left = [name for name in set(os.listdir("/tmp")) - before if name.startswith("tide-bottleneck.")]
        self.assertEqual(left, [])


if __name__ == "__main__":
    unittest.main()
