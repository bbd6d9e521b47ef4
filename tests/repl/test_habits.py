"""What people type who know Python, PyTorch and IPython, and the line that says how Tide has it; standard input as inputs.

usage: test_habits.py path/to/tide
"""
import os
import subprocess
import sys
import tempfile
import unittest

TIDE = os.path.abspath(sys.argv.pop(1))

# (an input, what stands in the answer), by kind.
HINTS = {
    "ranges": [
        ("x = tide.arange(9); x[::2]", 'x["::2"]'), ("x = tide.arange(9); x[:-1]", 'x[":-2"]'), ("x[1:3]", 'x["2:3"]'),
        ("y[1:3, :-1]", 'y["2:3, :-2"]'), ("y[None, 1:, ...]", 'y["nil, 2:, ..."]'), ("y[..., -2:]", 'y["..., -2:"]'), ("y[0, :]", 'y["1, :"]'),
        ("x[a:b]", 'ranges: x["1:2"]'), ("x[1, 2]", "several indices"), ("x[4:0:-1]", 'ranges: x["1:2"]')],
    "loops": [
        ("for i in range(3): print(i)", "for i = 1, 3 do"), ("for k in range(2, n): f(k)", "for k = 2, n - 1 do"),
        ("for k in range(0, 10, 2): f(k)", "for k = 0, 9, 2 do"), ("for i in range(len(x)):", "for i = 1, len(x) do"),
        ("while True: step()", "loops: while"), ("if x > 2: print(x)", "conditions: if"), ("for b in {1, 2} do end", "ipairs(list)"),
        ("for row in tide.ones(2, 2) do end", "for i, row in ipairs(x) do"), ("y = [i for i in range(3)]", "lists are made by loops"),
        ("for a, b in pairs(string.gmatch('a', '.')) do end", "for name, value in f do")],
    "expressions": [
        ("y = 1 if c else 2", "condition and a or b"), ("y = a if b > 1 else c", "condition and a or b"),
        ("print('loss: %.3f' % 0.3)", '("loss %.4f"):format'), ("print(f'{x}')", '("loss %.4f"):format'),
        ("x = tide.ones(2); y = x.mean + 1", "x:mean()"), ("x = tide.ones(2); x.T()", "T is a field: x.T"),
        ("x = tide.ones(2); x:repeat(2, 1)", "x:rep(2, 1)"), ("x = tide.ones(2); x:and(x)", "x:logical_and(y)")],
    "several results": [
        ("local out, (h, c) = lstm(x)", "local out, state = lstm(x)"), ("out, (h, c) = lstm(x)", "local out, state = lstm(x)"),
        ("tide.ones(2, 2):max(2).values", "values, indices = x:max(2)"), ("tide.ones(2, 2):sort().indices", "values, indices"),
        ("tide.linalg.svd(tide.eye(2)).S", "U, S, Vh = tide.linalg.svd(x)"), ("tide.linalg.qr(tide.eye(2)).Q", "Q, R ="),
        ("tide.linalg.slogdet(tide.eye(2)).logabsdet", "sign, logabsdet ="), ("tide.linalg.eigh(tide.eye(2)).eigenvalues", "values, vectors ="),
        ("tide.unique(tide.ones(2)).counts", "values, counts =")],
    "modules": [
        ("m = tide.nn.Linear(2, 2); m.fc(3)", "Linear has no 'fc'; its parts: weight, bias"), ("m = tide.nn.Linear(2, 2); m:isinstance(1)", "tide.nn.is(m"),
        ("isinstance(m, n)", "tide.nn.is(m, tide.nn.Linear)"), ("m = tide.nn.Sequential(tide.nn.ReLU()); m[0](x)", "count from 1"),
        ("m = tide.nn.Sequential(tide.nn.ReLU()); m[2](x)", "t[#t] is the last"), ("tide.nn.MSELoss(tide.ones(2), tide.ones(2))", "made first and then called"),
        ("tide.nn.CrossEntropyLoss(tide.ones(2, 3), tide.tensor{1, 2})", "made first and then called"), ("tide.nn.Relu()", "did you mean 'ReLU'?"),
        ("M = tide.nn.Module:extend('M')", "nn.class"), ("super().__init__()", "Parent.init(self"), ("nn.Linear(2, 3)", "local nn = tide.nn"),
        ("F.relu(x)", "tide.nn.functional"), ("optim.Adam(x)", "local optim = tide.optim"), ("tide.nn.ReLU():state_dict():keys()", "in pairs(t) do"),
        ("tide.distributions.Normal(0, 1):expand({2})", "parameters of that shape"), ("tide.plot({1, 2})", "tide.plot.line"),
        ("x = tide.ones(2, {requires_grad = true}); x.grad:zero_()", "nil until backward()")],
    "optimizers": [
        ("o = tide.optim.SGD({tide.ones(1, {requires_grad = true})}, {lr = 1}); o.lr = 3", "opt.param_groups[1].lr"),
        ("o = tide.optim.Adam({tide.ones(1, {requires_grad = true})}); print(o.betas)", "opt.param_groups[1].betas"),
        ("o = tide.optim.SGD({tide.ones(1, {requires_grad = true})}, {lr = 1}); o.param_groups[0].lr = 3", "lists count from 1"),
        ("o = tide.optim.SGD({tide.ones(1, {requires_grad = true})}, {lr = 1}); tide.optim.lr_scheduler.StepLR(o, 1):get_lr()", "get_last_lr()")],
    "options by position": [
        ("tide.ones(2, 2):argmax(1, true)", "at most 1 argument, got 2 (options go in a table: {keepdim = true})"),
        ("tide.argmax(tide.ones(2, 2), 1, true)", "at most 2 arguments, got 3 (options go in a table: {keepdim = true})"),
        ("tide.ones(2, 2):sum(2, true)", "argument 2: boolean where a number belongs (options go in a table: {keepdim = true})"),
        ("tide.sum(tide.ones(2, 2), 1, true)", "argument 3: boolean where"), ("tide.ones(2, 2):mean(1, true)", "{keepdim = true}"),
        ("tide.ones(2, 2):logsumexp(1, true)", "{keepdim = true}"), ("tide.tensor({1, 2}, tide.float64)", "{dtype = tide.float64}"),
        ("tide.ones(2, 3, tide.float64)", "{dtype = tide.float64}"), ("tide.ones(2, 3, 'cuda')", '{device = "cuda"}'),
        ("tide.arange(1, 5, 1, tide.float64)", "{dtype = tide.float64}")],
    "names": [
        ("tide.__version__", "write tide.version"), ("tide.confusion_matrix(1, 2)", "tide.plot.confusion"), ("tide.make_grid(x)", "tide.plot.image(batch)"),
        ("x = tide.ones(2); x:len()", "write #x"), ("x = tide.ones(2); x:get(1)", "write x[1]"), ("x = tide.ones(2); x:copy()", "write x:clone()"),
        ("x = tide.ones(2); x:astype(1)", "write x:to(tide.float64)"), ("x = tide.ones(2); x:map(f)", "write operators"),
        ("copy.deepcopy(x)", "net:clone()"), ("random.random()", "math.random()"), ("math.atan3(1)", "did you mean"), ("math.factorial(3)", "Lua writes a loop"),
        ("math.sqrt(tide.ones(2))", "x:sqrt()"), ("plt.plot(x)", "tide.plot (?matplotlib)"), ("('a b'):split()", "gmatch"), ("t = {}; t:append(1)", "t[#t + 1] = value")],
}

# What ? shows, and a word of it.
QUESTIONS = {
    "nn.Module.summary": "Signature: summary(", "nn.Sequential": "Signature: Sequential(", "Tensor.view": "Signature: view(", "F.relu": "Signature: relu(",
    "nn.functional.relu": "Signature: relu(", "broadcasting": "dims are compared from the last", "slicing": "Everything counts from 1",
    "checkpoint": "Signature: checkpoint(", "foreach": "Module:    tide.foreach", "amp": "Module:    tide.amp", "timeit": "%timeit [-n loops]",
    "save": "Signature: save(", "tide.channels_last": "A memory format", "isinstance": "tide.nn.is(m", "Adam": "Signature: Adam(", "nn.Linaer": "did you mean 'Linear'?",
}

SCRIPT = """local x = tide.randn(3)
if x:gt(2):any() then print(1) end
assert(x:eq(x):all())
local same = x:eq(x):all() == true
local y = x:gt(0):any() and 1 or 2
local z = not x:gt(0):any()
local t = x:gt(0)
print(not t)
local function f(a, b)
    if b and a:gt(2):any() then return 1 end
    while a:lt(0):all() do break end
    repeat until a:eq(1):all()
    return a
end
if (x:gt(1):all()) then end
tide.no_grad()
-- nothing is said of these
if x then end
local h = x or y
h = h or tide.ones(2)
if x:gt(2):any():item() then end
if #x > 2 and x:sum():item() > 1 then end
local loss
if not loss then loss = tide.ones(1) end
print(x:sum():item() == 0, x == nil, x:allclose(x) == true, x.grad and 1)
for _, p in ipairs{x} do if p.grad then end end
local c = x ~= nil and x:sum() or y
local _ <close> = tide.no_grad()
tide.no_grad(f, x)
tide.autocast("cpu", function() end)
tide.set_default_device("cpu")
"""


class Habits(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def tide(self, *arguments, stdin=""):
        environment = dict(os.environ, HOME=self.folder, NO_COLOR="1")
        return subprocess.run([TIDE, *arguments], input=stdin, text=True, capture_output=True, timeout=60, env=environment,
                              cwd=self.folder)

    def test_what_python_writes_is_answered_with_what_lua_writes(self):
        for kind, rows in HINTS.items():
            for code, hint in rows:
                with self.subTest(kind=kind, code=code):
                    said = self.tide("-e", code)
                    self.assertEqual(said.returncode, 1)
                    self.assertIn(hint, said.stderr)

    def test_questions_find_what_is_meant(self):
        for name, text in QUESTIONS.items():
            with self.subTest(name=name):
                said = self.tide("-e", "?" + name)
                self.assertIn(text, said.stdout + said.stderr)

    def test_files_are_told_of_tensors_that_stand_as_conditions(self):
        path = os.path.join(self.folder, "s.lua")
        with open(path, "w", encoding="utf-8") as file:
            file.write(SCRIPT)
        for said in (self.tide("s.lua"), self.tide(stdin=SCRIPT)):
            lines = [line.split(":")[2] for line in said.stderr.splitlines() if line.startswith("warning: ")]
            self.assertEqual(lines, ["2", "3", "4", "5", "6", "8", "10", "11", "12", "15", "16"], said.stderr)
            self.assertEqual(said.returncode, 0)

    def test_inputs_that_give_a_name_another_value_are_not_told_of_its_tensor(self):
        said = self.tide("-i", "--no-init", stdin="x = tide.ones(2)\nx = 5 if x then print(x) end\ny = tide.ones(2)\n"
                         "for y = 1, 1 do if y then print(y) end end\nfor k, y in ipairs{3} do if y then print(y) end end\n")
        self.assertEqual(said.stderr, "")
        said = self.tide("-i", "--no-init", stdin="y = tide.ones(2)\nif y then print(1) end\n")
        self.assertIn("warning: a tensor is true in Lua", said.stderr)

    def test_a_guard_that_nothing_holds_ends_with_its_input(self):
        said = self.tide("-i", "--no-init", stdin="tide.no_grad()\ntide.is_grad_enabled()\ng = tide.no_grad()\ntide.is_grad_enabled()\ng\n"
                         "tide.is_grad_enabled()\ng = nil collectgarbage()\ntide.is_grad_enabled()\ntide.set_default_device('meta')\ntide.ones(1).device\n")
        answers = [line.split("> ")[-1] for line in said.stdout.splitlines()]
        self.assertEqual([a for a in answers if a in ("true", "false", "tide.no_grad: on until closed", '"meta"')],
                         ["tide.no_grad: on until closed", "true", "false", "tide.no_grad: on until closed", "false", "true", '"meta"'], said.stdout)
        self.assertIn("nothing holds what tide.no_grad gives", said.stderr)

    def test_standard_input_is_inputs_one_after_the_other(self):
        for text, out in (
                ("x = 2\nx + 1\nx * 2\n", "3\n4\n"), ("local x = 2\nx + 1\nlocal y = x\ny * 5", "3\n10\n"), ("1\n\n-- c\n2\n", "1\n2\n"),
                ("for i = 1, 2 do\n  print(i)\nend\n_ = 1\n3\n", "1\n2\n3\n"), ("x = {\n1,\n2}\n#x\ny = x\n  and 5\ny\n", "2\n5\n"),
                ("4\n_ + 1\n", "4\n5\n"), ("#!/usr/bin/tide\nx = 1\nx\nx + 1\n", "1\n2\n"), ("x = 5;\nx\nx + 1;\n", "5\n"), ("!echo a\n1 + 1\n", "a\n2\n"),
                ("function f(a)\n  return a\nend\nf(1)\nf(2), 3\n", "1\n2\n3\n"), ("s = [[\na\n]]\n#s\n'z'\n", '2\n"z"\n'), ("exit\n1\n", "")):
            for arguments in ((), ("-",)):
                with self.subTest(text=text, arguments=arguments):
                    said = self.tide(*arguments, stdin=text)
                    self.assertEqual((said.stdout, said.stderr, said.returncode), (out, "", 0))

    def test_questions_and_magics_stand_on_any_line_of_standard_input(self):
        for text, words in (
                ("help\n?indexing\n", ("Tide: tensors", "Ranges {first, last, step}")), ("x = 1\n/conv stride\nx + 41\n", ("tide.conv2d", "42")),
                ("help(tide.sum)\n", ("Signature: sum(",)), ("x = 1\nhelp(tide.sum)\n", ("Signature: sum(",)), ("help", ("Tide: tensors",)),
                ("function help(x) print('own', x) end\nhelp(2)\n", ("own\t2",)),
                ("?tide.sum\n?tide.*conv2*\n", ("Signature: sum(", "tide.conv2d")), ("x = 3\nhelp(tide.cat)\nx\n", ("Signature: cat(", "3")),
                ("1 + 1\n%timeit -n 1 -r 1 1 + 1\n", ("2\n", "of 1 run"))):
            with self.subTest(text=text):
                said = self.tide(stdin=text)
                self.assertEqual((said.stderr, said.returncode), ("", 0))
                for word in words:
                    self.assertIn(word, said.stdout)

    def test_the_first_failure_ends_standard_input_and_nothing_runs_where_an_input_is_wrong(self):
        said = self.tide(stdin="1 + 1\nerror('third')\nprint('no')\n")
        self.assertEqual((said.stdout, said.returncode), ("2\n", 1))
        self.assertIn("stdin:2: third", said.stderr)
        self.assertIn("    error('third')\n", said.stderr)
        said = self.tide(stdin="1 + 1\nprint('first')\n\ny = = 2\n")
        self.assertEqual((said.stdout, said.returncode), ("", 1))
        self.assertIn("stdin:4: unexpected symbol near '='", said.stderr)
        self.assertIn("    y = = 2\n        ^", said.stderr)
        for text in ("x = tide.ones(2)\nx.mean()\n", "x = tide.ones(2)\nx\nx.mean()\n"):
            said = self.tide(stdin=text)
            self.assertIn("a method is called with a colon, x:mean()", said.stderr)
            self.assertIn("    x.mean()\n      ^", said.stderr)

    def test_no_name_of_ours_stands_in_complaints_about_magics(self):
        for code in ("x\n?tide.sum", "x\n%time y", "print(1\n?foo"):
            with self.subTest(code=code):
                said = self.tide("-e", code)
                self.assertEqual(said.returncode, 1)
                self.assertNotIn("__tide", said.stderr)

    def test_python_is_told_at_once_at_the_prompt(self):
        said = self.tide("-i", "--no-init", stdin="for i in range(3): print(i)\nfor i in range(3):\nwhile True: pass\n1 + 1\n")
        self.assertNotIn("....>", said.stdout)
        self.assertIn("2\n", said.stdout)
        said = self.tide("-i", "--no-init", stdin="for i, v in\nipairs({7}) do\nprint(v)\nend\nif true then\nprint(('x'):rep(3)) end\n")
        self.assertIn("7\n", said.stdout)
        self.assertIn("xxx\n", said.stdout)

    def test_timeit_prints_its_line_once(self):
        said = self.tide("-e", "%timeit -n 1 -r 2 -o 1 + 1")
        self.assertEqual(said.stdout.count("of 2 runs"), 1)
        self.assertEqual(self.tide("-e", "r = %timeit -n 1 -r 2 -o 1 + 1").stdout.count("of 2 runs"), 1)
        self.assertEqual(self.tide("-e", "%timeit -q -n 1 -r 2 1 + 1").stdout, "")

    def test_a_file_with_a_magic_says_whose_they_are(self):
        with open(os.path.join(self.folder, "m.lua"), "w", encoding="utf-8") as file:
            file.write("x = 1\n%timeit x\n")
        self.assertIn("magics (%timeit, %run, ...) are for the prompt", self.tide("m.lua").stderr)

    def test_matrices_are_printed_with_their_rows_below_each_other(self):
        said = self.tide("-e", "print('c', tide.ones(2, 2), 3) print('v', tide.ones(2))").stdout
        self.assertEqual(said, "c\n[[1., 1.],\n [1., 1.]]\nfloat32 (2, 2) cpu\t3\nv\t[1., 1.]\nfloat32 (2) cpu\n")


if __name__ == "__main__":
    unittest.main()
