"""What the prompt answers to questions: pages, names by patterns, searches by words, PyTorch's names.

usage: TIDE=path/to/tide test_asking.py
"""
import os
import subprocess
import tempfile
import unittest

TIDE = os.path.abspath(os.environ["TIDE"])
PROMPT = "tide> "


def ask(*inputs):
    """What is shown behind each input at a prompt of its own."""
    with tempfile.TemporaryDirectory() as home:
        done = subprocess.run([TIDE, "-i", "--no-init"], input="\n".join(inputs) + "\n", text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, env=dict(os.environ, HOME=home, NO_COLOR="1"), cwd=home, timeout=120)
    return [part.partition("\n")[2] for part in done.stdout.split(PROMPT)[1:-1]]


class Asking(unittest.TestCase):
    def test_pages_are_found_by_their_names(self):
        for question, words in (("?nn.Module", "nn.class"), ("?tide.nn.Module", "nn.class"), ("indexing?", "Ranges"),
                                ("?newaxis", "tide.newaxis"), ("?tide.newaxis", "tide.newaxis"), ("?options", "keepdim"),
                                ("?dtype", "set_default_dtype"), ("?loops", "randperm"), ("help(pytorch)", "Deliberately absent")):
            with self.subTest(question):
                self.assertIn(words, ask(question)[0])

    def test_a_variable_comes_before_a_page(self):
        self.assertIn("number (integer)", ask("options = 5", "?options")[1])

    def test_patterns_find_names_in_rooms_and_below(self):
        shown = ask("?tide.*conv*")[0].splitlines()
        names = [line.split()[0] for line in shown]
        self.assertLess(names.index("tide.conv2d"), names.index("tide.nn.Conv2d"))
        self.assertTrue(all("conv" in name.lower() for name in names))
        self.assertRegex(shown[names.index("tide.conv2d")], r"tide\.conv2d +Cross-correlation")
        self.assertTrue(all(len(line) <= 78 for line in shown))

    def test_patterns_by_themselves_find_globals_and_all_of_tide(self):
        names = [line.split()[0] for line in ask("my_integer = 5", "*int*?")[1].splitlines()]
        self.assertLessEqual({"print", "my_integer", "tide.randint", "tide.int64"}, set(names))

    def test_patterns_look_into_tensors_tables_and_as_pytorch_writes_them(self):
        for inputs, name in ((("x = tide.ones(1)", "?x:*scatter*"), "x:scatter_add"), (("?x:*scatter*",), "x:scatter"),
                             (("t = {alpha = 1, beta = 2}", "?t.*l*"), "t.alpha"), (("?math.*sin",), "math.asin"),
                             (("?torch.*conv1*",), "torch.conv1d"), (("tide.optim.*?",), "tide.optim.Adam")):
            with self.subTest(inputs):
                self.assertIn(name, [line.split()[0] for line in ask(*inputs)[-1].splitlines()])

    def test_words_find_names_docs_pages_and_magics(self):
        for question, name in (("/scaled attention", "tide.scaled_dot_product_attention"), ("?/chrome trace", "%trace"),
                               ("/newaxis", "?newaxis"), ("/MeDiAn", "tide.median")):
            with self.subTest(question):
                names = [line.split()[0] for line in ask(question)[0].splitlines()]
                self.assertIn(name, names)
        self.assertEqual(ask("/median")[0].split()[0], "tide.median", "a name that is the word comes first")

    def test_what_matches_nothing_says_so(self):
        self.assertEqual(ask("?zzzz*")[0].strip(), "nothing matches 'zzzz*'")
        self.assertEqual(ask("/zzzz yyyy")[0].strip(), "nothing matches '/zzzz yyyy'")

    def test_pytorch_s_names_are_answered(self):
        self.assertIn("Linear(int(0..) in_features", ask("?torch.nn.Linear")[0])
        for question, words in (("?torch.utils.benchmark", "tide.benchmark"), ("?torch.fft.rfft", "not in Tide"),
                                ("?tide.from_numpy", 'tide.load("x.npy")'), ("?x:numpy", "x:tolist()")):
            with self.subTest(question):
                self.assertIn(words, ask(question)[0])

    def test_missing_methods_of_objects_are_answered(self):
        for inputs, words in ((("p = tide.profiler.profile(function() end)", "p:export_memory_timeline()"), "p:table({sort = "),
                              (("tide._foreach_mul_({}, 2)",), "tide.foreach.mul_"),
                              (("m = tide.nn.Linear(1, 1)", "m:register_backward_hook(print)"), "register_full_backward_hook")):
            with self.subTest(inputs):
                self.assertIn(words, ask(*inputs)[-1])


NET = ('Net = tide.nn.class("Net")', "net = Net()", "net.first = tide.nn.ReLU()", "model = tide.nn.Sequential(net, tide.nn.Linear(1, 2))",
       "opt = tide.optim.SGD(model:parameters(), {lr = 0.5})", "rates = tide.optim.lr_scheduler.StepLR(opt, 1)")


class Showing(unittest.TestCase):
    def test_print_shows_what_tables_hold(self):
        for code, shown in (("print({0.9})", "{0.9}\n"), ("print({a = {1, 2}}, 5, 'x', nil)", "{a = {1, 2}}\t5\tx\tnil\n"), ("print('a', 1.0)", "a\t1.0\n"),
                            ("print(setmetatable({}, {__tostring = function() return 'own' end}))", "own\n"),
                            ("for i = 1, 2 do print({i}) end", "{1}\n{2}\n")):
            with self.subTest(code):
                self.assertEqual(ask(code)[0], shown)
        self.assertEqual(ask(*NET, "print(rates:get_last_lr())")[-1], "{0.5}\n")

    def test_scripts_print_as_lua_and_ask_for_more(self):
        with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
            script.write("print({0.9}) tide.print({0.9}, {x = 1}, 'y')")
            script.flush()
            said = subprocess.run([TIDE, script.name], text=True, stdout=subprocess.PIPE, check=True, timeout=60).stdout.splitlines()
        self.assertRegex(said[0], "^table: 0x")
        self.assertEqual(said[1], "{0.9}\t{x = 1}\ty")

    def test_whos_shows_objects_by_their_first_line(self):
        rows = {line.split()[0]: line.split()[1:] for line in ask(*NET, "%whos")[-1].splitlines()}
        self.assertEqual(rows["net"], ["Net", "Net(…)"])
        self.assertEqual(rows["model"], ["Sequential", "Sequential(…)"])
        self.assertEqual(rows["opt"][:2], ["SGD", "SGD"])
        self.assertEqual(rows["Net"], ["class", "class", "Net"])

    def test_texts_for_people_are_shown_as_they_are_and_others_quoted(self):
        said = ask("model = tide.nn.Sequential(tide.nn.Linear(1, 2))", "model:summary(tide.ones(1))",
                   "p = tide.profiler.profile(function() return tide.ones(2) end)", "p:table()", "_ == p:table()", '"a\\nb"',
                   "{model:summary(tide.ones(1))}")
        self.assertTrue(said[1].startswith("Module "), said[1])
        self.assertTrue(said[3].startswith("name "), said[3])
        self.assertEqual(said[4:6], ["true\n", '"a\\nb"\n'])
        self.assertTrue(said[6].lstrip("{ \n").startswith('"Module '), said[6])


class Fingers(unittest.TestCase):
    def test_inputs_run_again(self):
        said = ask("a = 5", "a + 1", "%rerun", "%rerun 1-2", "_", "%rerun 99", "%rerun x", "%who", "%rerun 8")
        self.assertEqual(said[8], "%who\na\n")
        self.assertEqual(said[2:5], ["a + 1\n6\n", "a = 5\na + 1\n6\n", "6\n"])
        self.assertIn("%rerun: there is no such input", said[5])
        self.assertIn("a number or a range", said[6])

    def test_hist_is_history_and_recall_shows_where_no_input_can_be_set(self):
        said = ask("a = 5", "%hist 1", "%history 1", "%recall 1", "%rep 1")
        self.assertEqual(said[1], said[2])
        self.assertEqual(said[3:5], ["a = 5\n"] * 2)

    def test_edit_runs_what_the_editor_leaves(self):
        with tempfile.TemporaryDirectory() as folder:
            editor, own, seen = (os.path.join(folder, name) for name in ("editor", "it's own.lua", "seen"))
            with open(editor, "w") as file:
                file.write(f'#!/bin/sh\ncp "$1" "{seen}"\necho "x = 42; x + 1" > "$1"\n')
            os.chmod(editor, 0o755)
            environment, before = dict(EDITOR=editor, VISUAL=editor), dict(os.environ)
            os.environ.update(environment)
            try:
                for line, begins, runs in (("%edit", "", True), ("%edit 1", "function f(y) return y * 2 end", True),
                                           ("%edit f", "function f(y) return y * 2 end", True), ("%edit " + own, "", True), ("%edit -x", "", False)):
                    with self.subTest(line):
                        open(own, "w").close()
                        said = ask("function f(y) return y * 2 end", line, "x")
                        with open(seen) as file:
                            self.assertEqual(file.read().strip(), begins)
                        self.assertEqual(said[1], "43\n" if runs else "")
                        self.assertIn("42" if runs else "not defined", said[2])
                with open(own) as file:
                    self.assertEqual(file.read(), "")
                self.assertIn("there is no source of print", ask("%edit print")[0])
            finally:
                os.environ.clear()
                os.environ.update(before)

    def test_pdb_looks_at_failures_at_once(self):
        said = ask("error('before')", "%pdb on", "local z = 7; error('boom')", "l", "c", "1 + 1", "x = = 1", "%pdb", "error('after')", "%pdb maybe")
        self.assertIn("automatic %debug is on", said[1])
        self.assertRegex(said[2], r"(?s)boom.*post mortem.*debug> *z = 7\n.*debug> ")
        self.assertEqual(said[3], "2\n")
        self.assertNotIn("post mortem", said[4] + said[6])
        self.assertIn("automatic %debug is off", said[5])
        self.assertIn("on or off expected, got maybe", said[7])

    def test_a_breakpoint_in_a_scripted_function_stops_in_its_source(self):
        said = ask("f = tide.jit.script(function(x)\n    local y = x * 2\n    tide.breakpoint()\n    return y\nend)",
                   "f(tide.ones(1)):item()", "y:item() * 21", "c", "f:why()")
        self.assertRegex(said[-2], r"(?s)breakpoint.*tide.breakpoint\(\).*debug> 42.*debug> 2.0\n")
        self.assertIn("a breakpoint: calls run the Lua function", said[-1])

    def test_what_is_not_needed_says_so(self):
        for name in ("matplotlib", "pylab", "load_ext", "reload_ext", "autoreload", "tensorboard", "config", "colors"):
            with self.subTest(name):
                said = ask(f"%{name} inline")[0]
                self.assertRegex(said, rf"^%{name} is not (needed|there|here): ")
                self.assertIn(f"%{name}: ", ask(f"?%{name}")[0])

    def test_paste_runs_the_clipboard_or_says_why_not(self):
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "wl-paste")
            with open(program, "w") as file:
                file.write("#!/bin/sh\nprintf 'y = 3\\ny * 2\\n'\n")
            os.chmod(program, 0o755)
            path = os.environ["PATH"]
            os.environ["PATH"] = folder + ":" + path
            try:
                self.assertEqual(ask("%paste")[0], "y = 3\ny * 2\n\n6\n")
            finally:
                os.environ["PATH"] = path


if __name__ == "__main__":
    unittest.main()
