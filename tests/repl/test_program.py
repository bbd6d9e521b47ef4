"""The program tide by its command line: options, scripts, exit codes, streams.

usage: test_program.py path/to/tide
"""
import html.parser
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from process_state import PATIENCE, interrupt, until_it_has_computed

TIDE = os.path.abspath(sys.argv.pop(1))


class Page(html.parser.HTMLParser):
    """A page of HTML: its ids, where its links lead, the text behind each heading with an id, tags left open."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.entries, self.open, self.name = [], [], {}, [], None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.open.append(tag)
        if "id" in attrs:
            self.ids.append(attrs["id"])
            self.name = attrs["id"]
        if attrs.get("href", "").startswith("#"):
            self.links.append(attrs["href"][1:])

    def handle_endtag(self, tag):
        while self.open.pop() != tag:
            pass

    def handle_data(self, data):
        self.entries[self.name] = self.entries.get(self.name, "") + " " + data


class Program(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def tide(self, *arguments, stdin="", **more):
        environment = dict(os.environ, HOME=self.folder.name, NO_COLOR="1", **more)
        environment.pop("XDG_STATE_HOME", None)
        environment.pop("XDG_CONFIG_HOME", None)
        return subprocess.run([TIDE, *arguments], input=stdin, text=True, capture_output=True,
                              timeout=60, env=environment, cwd=self.folder.name)

    def script(self, code, name="script.lua"):
        path = os.path.join(self.folder.name, name)
        with open(path, "w") as file:
            file.write(code)
        return path

    def check(self, result, code, out=None, err=None):
        self.assertEqual((result.returncode, result.stderr if code == 0 else ""), (code, ""), result)
        if out is not None:
            self.assertEqual(result.stdout, out)
        if err is not None:
            self.assertIn(err, result.stderr)

    def test_code_runs_in_order(self):
        self.check(self.tide("-e", "x = 1", "-ex = x + 1", "-e", "print(x)"), 0, "2\n")

    def test_values_of_code_are_shown(self):
        self.check(self.tide("-e", "1 + 1"), 0, "2\n")
        self.check(self.tide("-e", "print('x')", "-e", "x = 3", "-e", "x + 1", "-e", "x;"), 0, "x\n4\n")

    def test_values_of_standard_input_are_shown(self):
        self.check(self.tide(stdin="1+1\n"), 0, "2\n")
        self.check(self.tide(stdin="math.max(1, 7)"), 0, "7\n")
        self.check(self.tide(stdin="x = 20\nx + 1\n"), 0, "21\n")
        self.check(self.tide(stdin="#!/usr/bin/tide\nlocal x = 2\nprint(x)\n"), 0, "2\n")
        self.check(self.tide("-", stdin="1+1\n"), 0, "2\n")
        self.check(self.tide(stdin="x = 20\nmath.max(x, 1)\n"), 0, "20\n")
        self.check(self.tide("-", stdin="x = 20\nmath.max(x, 1)\n"), 0, "")
        self.check(self.tide(stdin="x = = 1"), 1, "", "    x = = 1\n        ^\n")
        self.check(self.tide(stdin="\n\nerror('third')"), 1, "", "stdin:3: third")

    def test_standard_input_may_be_a_question_a_magic_or_a_transcript(self):
        self.check(self.tide(stdin="?string.rep\n"), 0)
        self.assertIn("Signature: string.rep(...)", self.tide(stdin="string.rep?").stdout)
        self.assertIn("Signature: conv2d(", self.tide(stdin="?tide.conv2d\n").stdout)
        self.check(self.tide(stdin="?no_such\n"), 1, "", "nothing is known of 'no_such'")
        self.check(self.tide(stdin="%%bash\necho 1\n"), 0, "1\n")
        self.check(self.tide(stdin="x = 2\n!echo two\nx\n"), 0, "two\n2\n")
        self.check(self.tide(stdin="tide> x = 3\ntide> x + 1\n4\n"), 0, "4\n")

    def test_a_byte_order_mark_on_standard_input_is_no_part_of_it(self):
        for code, out in (("1 + 1", "2\n"), ("print(3)\nprint(4)", "3\n4\n"), ("?print", None), ("#!x\nprint(5)", "5\n")):
            self.check(self.tide(stdin="\ufeff" + code), 0, out)

    def test_a_captured_cell_leaves_the_streams_as_they_were(self):
        code = "%%capture kept\nprint('a') io.stdout:write('b\\n') io.stderr:write('c\\n') os.execute('echo d; echo e >&2')\ntide.display(5)"
        shown = "print(kept.stdout, kept.stderr, #kept.outputs, kept.outputs[1]['text/plain'])"
        result = self.tide("-e", code, "-e", shown, "-e", "io.stderr:write('seen\\n')")
        self.assertEqual(sorted(result.stdout.split()), sorted("a b d c e 1 5".split()))
        self.assertEqual((result.returncode, result.stderr), (0, "seen\n"))
        self.check(self.tide("-e", "%%capture kept\nprint('a')\nos.exit(3)"), 3, "")
        self.check(self.tide("-e", "%%capture kept\nprint('a')\nos.exit(3, true)"), 3, "")

    def test_a_run_script_that_leaves_does_not_end_the_session(self):
        for ends in ("os.exit()", "os.exit(true, true)", "pcall(os.exit, 0)", "coroutine.wrap(os.exit)(0)"):
            self.script(f"print('before') {ends} print('never')", "leaves.lua")
            self.check(self.tide("-e", "%run leaves.lua", "-e", "print('on')", "-e", "while x do end"), 0, "before\non\n")
        self.script("local c <close> = setmetatable({}, {__close = function() print('closed') end}) os.exit(3, true)", "three.lua")
        self.check(self.tide("-e", "%run three.lua"), 1, "closed\n", "three.lua: exit status 3")
        self.script("%run three.lua", "no.lua")
        self.check(self.tide("-e", "function f()\n%run three.lua\nend", "-e", "print(pcall(f))"), 0,
                   "closed\nfalse\tthree.lua: exit status 3\n")

    def test_a_script_finds_modules_beside_it(self):
        os.makedirs(os.path.join(self.folder.name, "sub", "pack"))
        self.script("return {answer = 42}", "sub/beside.lua")
        self.script("return {answer = 43}", "sub/pack/init.lua")
        path = self.script("print(require('beside').answer, require('pack').answer)", "sub/main.lua")
        self.check(self.tide(path), 0, "42\t43\n")
        self.check(self.tide("sub/main.lua"), 0, "42\t43\n")
        self.script("return {answer = 1}", "beside.lua")
        self.check(self.tide("sub/main.lua"), 0, "42\t43\n")
        odd = os.path.join(self.folder.name, "a;b?")
        os.makedirs(odd)
        self.check(self.tide(self.script("print('runs')", "a;b?/main.lua")), 0, "runs\n")

    def test_error_in_code_is_1(self):
        self.check(self.tide("-e", "error('boom')"), 1, "", "tide: (input):1: boom\nstack traceback:")

    def test_syntax_error_points_at_it(self):
        self.check(self.tide("-e", "x = = 1"), 1, "", "    x = = 1\n        ^\n")

    def test_nothing_runs_after_an_error(self):
        self.check(self.tide("-e", "error('a')", "-e", "print('b')", self.script("print('c')")), 1, "")

    def test_unknown_option_is_2(self):
        result = self.tide("--nonsense")
        self.check(result, 2, "", "unknown option '--nonsense'")
        self.assertEqual(result.stderr.count("\n"), 1)
        self.check(self.tide("-e"), 2, "", "'-e'")

    def test_an_instruction_set_that_there_is_not_is_one_line(self):
        result = self.tide("-e", "1", TIDE_CPU="foo")
        self.assertEqual((result.returncode, result.stderr), (1, "tide: TIDE_CPU=foo: expected baseline, avx2 or avx512\n"))

    def test_missing_script_is_1_in_one_line(self):
        result = self.tide("nosuch.lua")
        self.check(result, 1, "", "tide: cannot open nosuch.lua")
        self.assertEqual(result.stderr.count("\n"), 1)

    def test_script_has_its_arguments(self):
        path = self.script("print(arg[0], #arg, ...) print(arg[-1] ~= nil)")
        self.check(self.tide(path, "-e", "two"), 0, f"{path}\t2\t-e\ttwo\ntrue\n")
        self.check(self.tide("--", path), 0, f"{path}\t0\ntrue\n")

    def test_tide_is_there(self):
        self.check(self.tide(self.script("print(type(tide), require('tide') == tide)")), 0,
                   "table\ttrue\n")

    def test_error_in_script_is_1(self):
        path = self.script("local function f()\n  error('deep')\nend\nf()\n")
        result = self.tide(path)
        self.check(result, 1, "", f"tide: {path}:2: deep\n")
        self.assertIn("in main chunk", result.stderr)

    def test_error_objects_in_scripts(self):
        self.check(self.tide(self.script("error({})")), 1, "", "error object is a table value")
        self.check(self.tide(self.script("error()")), 1, "", "error object is a nil value")

    def test_stdin_is_a_script(self):
        self.check(self.tide(stdin="print('in')\nprint(...)"), 0, "in\n\n")
        self.check(self.tide("-", "a", stdin="print(...)"), 0, "a\n")
        self.check(self.tide(stdin="error('x')"), 1, "", "stdin:1: x")
        self.check(self.tide(stdin="1 +"), 1, "", "SyntaxError")
        self.check(self.tide(stdin=""), 0, "")

    def test_exit_codes_of_os_exit(self):
        for code, status in (("0", 0), ("3", 3), ("true", 0), ("false", 1), ("7, true", 7)):
            self.check(self.tide("-e", f"os.exit({code})", "-e", "print('not reached')"), status, "")
        self.check(self.tide(self.script("io.write('flushed') pcall(os.exit, 5) print('no')")), 5,
                   "flushed")

    def test_close_variables_as_in_lua(self):
        code = ("local c <close> = setmetatable({}, {__close = function() print('closed') end})"
                " os.exit(true%s)")
        self.check(self.tide("-e", code % ""), 0, "")
        self.check(self.tide("-e", code % ", true"), 0, "closed\n")

    def test_require_option(self):
        self.script("return {answer = 42}", "mymodule.lua")
        self.check(self.tide("-l", "mymodule", "-e", "print(mymodule.answer)"), 0, "42\n")
        self.check(self.tide("-lnosuchmodule"), 1, "", "module 'nosuchmodule' not found")

    def test_interactive_after_code(self):
        result = self.tide("-i", "-e", "x = 6", stdin="x * 7\n")
        self.check(result, 0)
        self.assertIn("\n42\n", result.stdout)

    def test_what_a_program_reads_at_a_piped_prompt_is_not_the_rest(self):
        said = self.tide("-i", "--no-init", stdin="x = io.read()\nhello\nx .. '!'\nio.read(2)\nabcd\n1 + 1\n").stdout
        self.assertIn('\n"hello!"\n', said)
        self.assertIn('\n"ab"\n', said)
        self.assertTrue(said.endswith("\n2\ntide> \n"), said)
        said = self.tide("-i", "--no-init", stdin="name = tide.input('? ')\nLuna\n'<' .. name .. '>'\n").stdout
        self.assertIn('"<Luna>"', said)

    def test_a_script_on_standard_input_is_all_of_it(self):
        self.check(self.tide(stdin="print(io.read('a') == '')\nprint('behind')\n"), 0, "true\nbehind\n")

    def test_init_runs_before_the_prompt(self):
        folder = os.path.join(self.folder.name, ".config", "tide")
        os.makedirs(folder)
        path = os.path.join(folder, "init.lua")
        with open(path, "w") as file:
            file.write("from_init = 41")
        self.assertIn("42", self.tide("-i", stdin="from_init + 1").stdout)
        self.assertNotIn("42", self.tide("-i", "--no-init", stdin="from_init + 1").stdout)
        self.check(self.tide("-e", "print(from_init)"), 0, "nil\n")
        with open(path, "w") as file:
            file.write("error('in init')")
        result = self.tide("-i", stdin="40 + 2")
        self.assertIn("init.lua:1: in init", result.stderr)
        self.assertIn("42", result.stdout)

    def test_os_exit_leaves_before_the_prompt(self):
        self.check(self.tide("-i", self.script("os.exit(3)"), stdin="print('prompt')"), 3, "")
        self.check(self.tide("-i", "-e", "os.exit(0)", "-e", "print('b')", stdin="print('prompt')"), 0, "")
        self.assertIn("prompt", self.tide("-i", self.script("error('x')"), stdin="print('prompt')").stdout)

    def test_warnings(self):
        code = "warn('never') warn('@on') warn('one', ' line') warn('@off') warn('never')"
        result = self.tide("-e", code)
        self.assertEqual((result.returncode, result.stderr), (0, "Lua warning: one line\n"))
        code = "warn('tide: ', 'own') warn('never') warn('@off') warn('tide: silenced') warn('@on') warn('tide: again')"
        self.assertEqual(self.tide("-e", code).stderr, "tide: own\ntide: again\n")
        code = "warn('@on') setmetatable({}, {__gc = function() error('in gc') end}) collectgarbage()"
        self.assertIn("Lua warning: error in __gc", self.tide("-e", code).stderr)

    def test_slips_bring_a_hint(self):
        for code, hint in (("for _, p in tide.nn.Linear(2, 2):parameters() do end", ": for k, value in ipairs(list) do"),
                           ("local x = 1 help(x)", ": help is the prompt's: tide -e 'help(name)', or ?name there"),
                           ("('%.2f'):format(tide.ones(1))", ": x:item() is the number of a tensor")):
            with self.subTest(code=code):
                self.assertIn(hint, self.tide("-e", code).stderr)

    def test_input_that_ends_too_soon_is_an_error(self):
        for stdin in ("for i = 1, 2 do\nprint(i)\n", "for i = 1, 2 do", "x = 1\nx +\n", "f({\n\n\n"):
            with self.subTest(stdin=stdin):
                result = self.tide("-i", stdin=stdin)
                self.check(result, 1, None, "near <eof>")
                self.assertLess(result.stdout.count("....>"), 5)
        result = self.tide("-i", stdin="%%timeit -n 2 -r 2\nmath.cos(2)\n")
        self.check(result, 0)
        self.assertIn("2 runs, 2 loops each", result.stdout)
        self.check(self.tide("-i", stdin="print('last')"), 0)

    def test_facts(self):
        self.assertRegex(self.tide("--version").stdout, r"^Tide \d+\.\d+\.\d+")
        result = self.tide("--info")
        self.check(result, 0)
        self.assertRegex(result.stdout, r"(?m)^cpu: (baseline|avx2|avx512) kernels, oneDNN \d+\.\d+.*, OpenBLAS \d")
        self.assertRegex(result.stdout, r"(?m)^operators: \d+$")
        self.assertIn("usage: tide", self.tide("--help").stdout)

    def test_profile_writes_a_trace_of_what_runs(self):
        with tempfile.TemporaryDirectory() as folder:
            trace = os.path.join(folder, "trace.json")
            result = self.tide("--profile", trace, "-e", "tide.ones(3):exp()")
            self.check(result, 0)
            with open(trace, encoding="utf-8") as file:
                slices = {e["name"]: e for e in json.load(file)["traceEvents"] if e.get("cat") == "cpu_op"}
            self.assertIn("line", slices["exp"]["args"])
            os.remove(trace)
            self.check(self.tide("--profile", trace, "-e", "tide.ones(3):exp() error('late')"), 1, None, "late")
            self.assertTrue(os.path.exists(trace), "what ran before the error is in it")
            self.check(self.tide("--profile", folder + "/none/t.json", "-e", "print(1)"), 1, "", "/none/t.json: No such")
            self.assertEqual(os.listdir(folder), ["trace.json"])
        self.check(self.tide("--profile"), 2, "", "missing after '--profile'")

    def test_a_trace_is_bounded_and_says_what_it_left_out(self):
        with tempfile.TemporaryDirectory() as folder:
            trace = os.path.join(folder, "trace.json")
            code = "x = tide.ones(3) for k = 1, 3000 do x:exp() end"
            result = self.tide("--profile", trace, "--profile-events", "500", "-e", code)
            self.assertEqual((result.returncode, result.stdout), (0, ""))
            said = re.fullmatch(r"tide: --profile: the trace holds the last 500 of (\d+) events; --profile-events \1 keeps them all\n",
                                result.stderr)
            self.assertTrue(said, result.stderr)
            with open(trace, encoding="utf-8") as file:
                events = [e for e in json.load(file)["traceEvents"] if e["ph"] in "Xi"]
            self.assertEqual(len(events), 500)
            result = self.tide("--profile", trace, "--profile-events", said.group(1), "-e", code)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            with open(trace, encoding="utf-8") as file:
                self.assertEqual(len([e for e in json.load(file)["traceEvents"] if e.get("name") == "exp" and e.get("cat") == "cpu_op"]),
                                 3000)
        for value in ("0", "-1", "x", "5x", ""):
            self.check(self.tide("--profile", "t", "--profile-events", value, "-e", "1"), 2, "", "a number of events is missing")
        self.check(self.tide("--profile", "t", "--profile-events"), 2, "", "a number of events is missing")
        self.check(self.tide("--profile-events", "5", "-e", "1"), 2, "", "--profile is missing beside")

    def test_tables_show_shares_of_the_peaks_that_are_remembered(self):
        code = """local p = tide.profiler.profile{function() return tide.mm(tide.ones(64, 64), tide.ones(64, 64)) end,
            with_flops = true} print(p:table()) print(tide.profiler.peak().flops)"""
        with tempfile.TemporaryDirectory() as cache:
            env = dict(os.environ, XDG_CACHE_HOME=cache)

            def run(peak):
                with open(os.path.join(cache, "tide-peak"), "w", encoding="utf-8") as file:
                    file.write(peak)
                return subprocess.run([TIDE, "-e", "tide.set_num_threads(1)" + code], env=env, text=True,
                                      stdout=subprocess.PIPE, check=True).stdout
            out = run("tide-peak 1e9 2e9 1\n")
            self.assertRegex(out, r"(?m)^mm +operator .*FLOP/s +[\d.]+ % +[\d.]+ .?B/s +[\d.]+ %$")
            self.assertIn("1000000000.0", out)
            for other in ("tide-peak 1e9 2e9 2\n", "nonsense", ""):
                out = run(other)
                self.assertRegex(out, r"(?m)^mm +operator .*FLOP/s +[\d.]+ .?B/s *$")
                with open(os.path.join(cache, "tide-peak"), encoding="utf-8") as file:
                    self.assertRegex(file.read(), r"^tide-peak [\d.e+]+ [\d.e+]+ 1\n$")

    def test_reference_has_a_line_for_each_operator(self):
        result = self.tide("--ops")
        self.check(result, 0)
        lines = result.stdout.splitlines()
        for line in lines:
            self.assertRegex(line, r"^\w+  \w+\(.*\) -> [^ ].*  [^ ].*[.?]$")
        self.assertEqual(lines, sorted(lines, key=lambda line: re.split(r"  |\(", line)[:2]))
        self.assertIn("reduce  sum(", result.stdout)
        public = self.tide("-e", "local n = 0 for _, op in ipairs(tide._ops()) do n = n + (op.internal and 0 or 1) end print(n)")
        self.assertEqual(len(lines), int(public.stdout))

    def test_reference_is_a_page_about_everything(self):
        result = self.tide("--reference")
        self.check(result, 0)
        page = Page(result.stdout)

        def plain(text): # lines of the page end where texts have | and ;
            return " ".join(text.replace("|", " ").replace(";", " ").split())

        self.assertEqual(len(page.ids), len(set(page.ids)))
        self.assertEqual(set(page.links) - set(page.ids), set())
        self.assertEqual([tag for tag in page.open if tag not in ("meta",)], [])
        rows = self.tide("-e", "for _, op in ipairs(tide._ops()) do if not op.internal then print(((op.method_only or "
                               "op.inplace_only) and 'x:' or '') .. op.name, op.shapes, op.dtypes, op.notes) end end").stdout
        for row in rows.splitlines():
            name, shapes, dtypes, notes = row.split("\t")
            entry = page.entries[name]
            for text in (shapes, dtypes, notes):
                if text != "nil":
                    self.assertIn(plain(text), plain(entry), name)
        for name in ("tide.nn.Conv2d", "tide.optim.Adam", "tide.nn.functional.ctc_loss", "tide.data.DataLoader", "tide.no_grad"):
            self.assertIn("Signature", page.entries[name])
        self.assertIn("out_channels", page.entries["tide.nn.Conv2d"])

    def on_device(self, module, *arguments):
        return subprocess.run([TIDE, *arguments], capture_output=True, text=True,
                              env={**os.environ, "TIDE_CUDA_MODULE": module})

    def test_reference_of_a_device_that_is_not_there_is_a_line(self):
        result = self.on_device("/nowhere/libtide_cuda.so", "--ops", "--device", "cuda")
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertRegex(result.stderr, r"\Atide: device 'cuda' is not there: this machine has no CUDA device .*\n\Z")
        result = self.tide("--ops", "--device", "gpu")
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertRegex(result.stderr, r"\Atide: 'gpu' is no device: .*\n\Z")
        result = self.tide("--device", "cuda")
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertIn("--ops is missing beside '--device'", result.stderr)

    def test_reference_says_what_a_device_does_by_itself(self):
        played = os.path.join(os.environ["TIDE_BUILD"], "tide_cuda_played.so")
        if not os.path.exists(played):
            self.skipTest("no device is played in this build")
        result = self.on_device(played, "--ops", "--device", "cuda")
        self.check(result, 0)
        *lines, total = result.stdout.splitlines()
        self.assertEqual(len(lines), len(self.tide("--ops").stdout.splitlines()))
        for line in lines:
            self.assertRegex(line, r"^\w+  \w+  (cuda|cpu for \w+(, \w+)*)$")
        self.assertIn("pointwise  add  cuda", lines)
        own = sum(line.endswith("  cuda") for line in lines)
        self.assertEqual(total, f"{own} of {len(lines)} operators do all their work on cuda:0")
        # What is said to fall back does, and says so itself; and nothing else.
        for function, code in (("sort", "tide.rand(9):cuda():sort()"), ("poisson", "tide.poisson(tide.rand(9):cuda())"),
                               ("factor", "tide.linalg.inv(tide.eye(3):cuda())")):
            lent = any(re.search(rf"  cpu for .*\b{function}\b", line) for line in lines)
            result = self.on_device(played, "-e", f"local _ = {code}")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(f"'{function}' has no CUDA kernel" in result.stderr, lent, result.stderr)
        result = self.tide("--ops", "--device", "cpu")
        self.assertTrue(all(line.endswith("  cpu") for line in result.stdout.splitlines()[:-1]))

    def test_output_order_of_two_streams(self):
        result = subprocess.run([TIDE, "-e", "print('a') io.stderr:write('b\\n') error('c')"],
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertTrue(result.stdout.index("a\n") < result.stdout.index(":1: c"), result.stdout)

    def test_broken_pipe_is_quiet(self):
        result = subprocess.run(f"'{TIDE}' -e 'for i = 1, 1e6 do print(i) end' | head -n 2", shell=True,
                                text=True, capture_output=True, timeout=60)
        self.assertEqual((result.stdout, result.stderr), ("1\n2\n", ""))

    def test_full_disk_is_an_error(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full")
        with open("/dev/full", "w") as full:
            result = subprocess.run([TIDE, "-e", "print('x')"], stdout=full, stderr=subprocess.PIPE,
                                    text=True)
        self.assertEqual(result.returncode, 1)
        self.assertIn("cannot write", result.stderr)

    def test_interrupt_ends_a_script(self):
        program = subprocess.Popen([TIDE, "-e", "print('go') io.flush() while true do pcall(error) end"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(program.stdout.readline(), "go\n")
        program.send_signal(signal.SIGINT)
        _, err = program.communicate(timeout=PATIENCE)
        self.assertEqual(program.returncode, -signal.SIGINT)
        self.assertIn("interrupted", err)

    def test_a_folder_that_the_environment_names_by_half_is_ignored(self):
        code = "print(tide._require('utils.environment').cache())"
        for given, folder in (("cache", self.folder.name + "/.cache"), ("", self.folder.name + "/.cache"), ("/far/away", "/far/away")):
            self.check(self.tide("-e", code, XDG_CACHE_HOME=given), 0, folder + "\n")

    def test_no_module_makes_another_error_of_an_interrupt(self):
        head = """local function interrupt()
            os.execute(("kill -INT %d"):format(math.tointeger(io.open("/proc/self/stat"):read "n")))
            while true do end
        end
        """
        for code in ("""local model = tide.quantization.prepare(tide.nn.Sequential(tide.nn.Linear(3, 3)))
                        model(tide.randn(4, 3))
                        for _, m in model:named_modules() do
                            if m.calculate_qparams then rawset(m, "calculate_qparams", interrupt) end
                        end
                        tide.quantization.convert(model)""",
                     "for _ in tide.data.DataLoader(tide.data.map({1, 2}, interrupt), {on_error = 'skip'}) do end",
                     "tide.jit.trace(interrupt, {tide.ones(2)})",
                     "tide.utils.checkpoint(interrupt, tide.ones(2))"):
            result = self.tide("-e", head + code)
            self.assertIn(result.returncode, (130, -signal.SIGINT), result.stderr)
            self.assertRegex(result.stderr, r"^tide: interrupted\n")

    def test_an_interrupt_ends_what_finalizers_do_at_the_end(self):
        code = ("x = setmetatable({}, {__gc = function() io.stderr:write('over\\n') while true do end end})"
                " io.write('written')")
        with subprocess.Popen([TIDE, "-e", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
            self.assertEqual(program.stderr.readline(), "over\n")
            program.send_signal(signal.SIGINT)
            self.assertEqual(program.wait(PATIENCE), -signal.SIGINT)
            self.assertEqual(program.stdout.read(), "written")

    def test_a_script_that_nothing_stops_ends_at_the_third_interrupt(self):
        code = "print('go') io.flush() local x = ('a'):rep(40):find(('a*'):rep(30) .. 'b')"
        with subprocess.Popen([TIDE, "-e", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
            self.assertEqual(program.stdout.readline(), "go\n")
            until_it_has_computed(program.pid)  # find has been called
            interrupt(program.pid)
            time.sleep(0.4)  # what comes sooner does not count
            interrupt(program.pid)
            self.assertIn("waits for string.find (", program.stderr.readline())
            time.sleep(0.4)
            program.send_signal(signal.SIGINT)
            self.assertEqual(program.wait(PATIENCE), -signal.SIGINT)

    def test_a_program_that_ignores_interrupts_ends_at_the_second(self):
        code = "os.execute([[trap '' INT; echo ready; sleep 100]])"
        process = subprocess.Popen([TIDE, "-e", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                   start_new_session=True)
        self.addCleanup(process.wait)
        self.addCleanup(process.stdout.close)
        self.addCleanup(lambda: os.killpg(process.pid, signal.SIGKILL))
        self.assertEqual(process.stdout.readline(), "ready\n")
        interrupt(process.pid)
        time.sleep(0.3)  # what comes sooner does not count
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(PATIENCE), -signal.SIGINT)

    def test_a_program_that_takes_its_time_to_end_at_the_second_ends_the_script(self):
        code = "os.execute([[trap '' INT; trap 'sleep 0.5; exit 0' TERM; echo ready; while :; do sleep 0.1; done]]) print('on')"
        with subprocess.Popen([TIDE, "-e", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as program:
            self.assertEqual(program.stdout.readline(), "ready\n")
            interrupt(program.pid)
            interrupt(program.pid)
            self.assertEqual(program.wait(PATIENCE), -signal.SIGINT)
            self.assertEqual(program.stdout.read(), "")

    def test_an_ignored_interrupt_stays_ignored(self):
        code = "print('go') io.flush() io.read() print('end')"
        with subprocess.Popen([TIDE, "-e", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                              preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)) as program:
            self.assertEqual(program.stdout.readline(), "go\n")
            program.send_signal(signal.SIGINT)
            self.assertEqual(program.communicate("\n", timeout=PATIENCE)[0], "end\n")
            self.assertEqual(program.returncode, 0)

    def test_an_interrupt_ends_a_write_that_waits_for_its_reader(self):
        with subprocess.Popen([TIDE, "-e", "io.write(('x'):rep(1e8))"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as program:
            program.stdout.read(1)
            program.send_signal(signal.SIGINT)
            self.assertEqual(program.wait(PATIENCE), -signal.SIGINT)
            self.assertIn(b"interrupted", program.stderr.read())

    def test_input_that_ends_inside_a_block_ends_the_prompt(self):
        result = subprocess.run([TIDE, "-i"], input="for i = 1, 2 do\n", text=True, capture_output=True, timeout=60)
        self.assertIn("'end' expected", result.stderr)

    def test_timeit_from_the_shell(self):
        result = self.tide("-e", "%timeit -n 10 -r 2 math.sin(1)")
        self.check(result, 0)
        self.assertIn("of 2 runs, 10 loops each)", result.stdout)

    def test_same_output_as_lua(self):
        lua = "lua5.4"
        try:
            subprocess.run([lua, "-v"], capture_output=True, check=True)
        except (OSError, subprocess.CalledProcessError):
            self.skipTest("no lua5.4")
        for code in SNIPPETS:
            with self.subTest(code=code):
                path = self.script(code)
                ours = self.tide("-", "one", "two", stdin=code)
                theirs = subprocess.run([lua, "-", "one", "two"], input=code, text=True,
                                        capture_output=True, timeout=60)
                self.assertEqual((ours.stdout, ours.returncode), (theirs.stdout, theirs.returncode), path)


SNIPPETS = [
    "print(...)", "print(select('#', ...), arg[0], arg[1])", "print(1 // 0 == nil, 1 / 0, 0 / 0 ~= 0 / 0)",
    "print(pcall(error, {code = 1}) == false)", "print(pcall(error))", "print(select('#', pcall(error)))",
    "print(xpcall(function() error('x', 0) end, function(m) return m .. '!' end))",
    "print(xpcall(error, debug.traceback, 'tb') == false)",
    "print(pcall(pcall)) print(pcall(xpcall)) print(pcall(xpcall, print))",
    "local co = coroutine.create(function(a) local b = coroutine.yield(a + 1) error('e' .. b, 0) end) "
    "print(coroutine.resume(co, 1)) print(coroutine.resume(co, 2)) print(coroutine.resume(co))",
    "local co = coroutine.wrap(function() error('in wrap') end) print(pcall(co)) print(pcall(co))",
    "local co = coroutine.wrap(function() return pcall(coroutine.yield, 5) end) print(co()) print(co(6, 7))",
    "print(coroutine.resume(coroutine.running()))", "print(pcall(coroutine.wrap, 1))",
    "print(coroutine.close(coroutine.create(print)))", "print(pcall(coroutine.close, coroutine.running()))",
    "local co = coroutine.create(function() local x <close> = setmetatable({}, {__close = function(_, e) "
    "print('close', e) error('from close', 0) end}) coroutine.yield() end) coroutine.resume(co) "
    "print(coroutine.close(co)) print(coroutine.status(co))",
    "for a, b in coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i, i * i) end end) do print(a, b) end",
    "print(select(2, pcall(function() local x = nil; return x.y end)))",
    "print(pcall(string.rep))", "print(string.format('%q', 'a\\nb'))", "io.write('a', 1, 2.5, '\\n')",
    "print(io.write('') == io.stdout)", "local t = setmetatable({}, {__gc = function() print('gc') end}) t = nil "
    "collectgarbage()", "goto done do print('skipped') end ::done:: print('done')",
    "do local a <close> = setmetatable({}, {__close = function(_, e) print('closed', e) end}) print('in') end",
    "print(pcall(function() local a <close> = setmetatable({}, {__close = function(_, e) print('closed', e) "
    "end}) error('err', 0) end))", "print(load('return 1 +'))", "print(load('x ='))", "print(#arg)",
    "print(math.type(3), math.type(3.0), 7 // 2, -7 // 2, 7 % -3, 2^53 | 0)", "os.exit(9)", "os.exit(false)",
    "local a <close> = setmetatable({}, {__close = function() print('never') end}) os.exit(2)",
    "local a <close> = setmetatable({}, {__close = function() print('closed') end}) os.exit(2, true)",
    "print(pcall(setmetatable, 1, {}))", "print(tostring(nil), tostring(true), tostring(12), tostring(1e100))",
    "print(rawequal(_G, _ENV), _VERSION)", "print(next({}), type(next), rawlen({1, 2}))",
    "warn('@on') print('after warn')", "print(string.pack('i4', 7):byte(1, -1))", "print(utf8.char(228, 8364))",
    "print(pcall(function() for i = 1, 10, 0 do end end))", "print(table.unpack({1, 2, nil, 4}, 1, 4))",
    "local t = {3, 1, 2} table.sort(t, function(a, b) return a > b end) print(table.concat(t, ','))",
    "print(pcall(table.sort, {3, 1, 'x'}))", "print(('x'):rep(3, '-'))", "print(tostring(print):match('^builtin') or "
    "tostring(print):match('^function'))", "print(debug.traceback('m', 1):match('^m\\nstack traceback:'))",
    "error('top')", "error({})", "error()", "x = = 1", "local function f() return f() + 1 end print(pcall(f) == false)",
]

if __name__ == "__main__":
    unittest.main()
