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
        ("for i in tide.data.zip({iter = function() end}) do end", "for value in object:iter() do"),
        ("for x in tide.data.TensorDataset(tide.ones(2)) do end", "with dataset:get(i)"),
        ("for row in tide.ones(2, 2) do end", "for i, row in ipairs(x) do"), ("y = [i for i in range(3)]", "lists are made by loops"),
        ("for a, b in pairs(string.gmatch('a', '.')) do end", "for name, value in f do")],
    "expressions": [
        ("y = 1 if c else 2", "condition and a or b"), ("y = a if b > 1 else c", "condition and a or b"),
        ("print('loss: %.3f' % 0.3)", '("loss %.4f"):format'), ("print(f'{x}')", '("loss %.4f"):format'),
        ("x = tide.ones(2); y = x.mean + 1", "x:mean()"), ("x = tide.ones(2); x.T()", "T is a field: x.T"),
        ("x = tide.ones(2); x:repeat(2, 1)", "x:rep(2, 1)"), ("x = tide.ones(2); x:and(x)", "x:logical_and(y)")],
    "several results": [
        ("local out, (h, c) = lstm(x)", "local out, state = lstm(x)"), ("out, (h, c) = lstm(x)", "local out, state = lstm(x)"),
        *((f"x = tide.ones(2, 2); {call}.{name}", f"local {names} = {call}")
          for call, names, name in (("x:max(2)", "values, indices", "values"), ("x:min(2)", "values, indices", "indices"), ("x:topk(1)", "values, indices", "values"),
                                    ("x:median(2)", "values, indices", "indices"), ("x:mode(2)", "values, indices", "values"), ("x:kthvalue(1)", "values, indices", "values"),
                                    ("x:cummax(1)", "values, indices", "values"), ("x:cummin(1)", "values, indices", "indices"), ("tide.sort(x, 2)", "values, indices", "values"),
                                    ("(x * 2):abs():sort(2)", "values, indices", "values"))),
        ("r = tide.ones(2, 2):max(2); r.values", "local values, indices = x:max(2)"),
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
    "lists of tensors": [
        (f"x = tide.ones(6); {local}a, b = {call}; {use}", hint)
        for call in ("x:chunk(2)", "x:split(3)", "tide.meshgrid(x, x)", "x:view(2, 3):unbind()", "x:tensor_split(2)")
        for local in ("local ", "")
        for use, hint in (("print(a + 1)", "a is a list of 2 tensors: local a, b = table.unpack(a)"), ("print(-a)", "a is a list of 2 tensors"),
                          ("print(b + 1)", f"local a, b = table.unpack({call})"), ("print(b:sum())", f"local a, b = table.unpack({call})"),
                          ("print(tide.relu(b))", f"local a, b = table.unpack({call})"), ("print(x * b)", f"local a, b = table.unpack({call})"),
                          ("print(x * a)", "got a list of 2 tensors: local a, b = table.unpack(list)"),
                          ("print(tide.relu(a))", "got a list of 2 tensors"), ("print(a:sum())", "this is a list of 2 tensors"))] + [
        ("x = tide.ones(6); a, b, c = x:chunk(3); print(c + 1)", "local a, b, c = table.unpack(x:chunk(3))"),
        ("l = tide.nn.LSTM(2, 3); local out, h, c = l(tide.ones(4, 1, 2)); print(c:sum())", "h is a list of 2 tensors: local h, c = table.unpack(h)"),
        ("x = tide.ones(6); print(tide.relu(x:split(2)[0]))", "lists count from 1"), ("x = tide.ones(6); print(x:split(2)[0] + 1)", "lists count from 1"),
        ("tide.cat(tide.ones(2), tide.ones(2))", "put it in a table, {a, b}"), ("tide.vstack(tide.ones(2), tide.ones(2))", "vstack({a, b})"),
        ("tide.cat(tide.ones(2), tide.ones(2), 1)", "cat({a, b})"), ("tide.stack(tide.ones(2))", "put it in a table, {a, b}")],
    "changes in place": [(f"{name} {sign}= {value}", hint) for name, value in (("x", "2"), ("self.x[2].y", "2"), ("p[1]", "y"))
                         for sign, operator, method in (("+", "+", "add_"), ("-", "-", "sub_"), ("*", "*", "mul_"), ("/", "/", "div_"),
                                                        ("//", "//", "floor_divide_"), ("%", "%", "remainder_"), ("**", "^", "pow_"),
                                                        ("|", "|", "bitwise_or_"), ("&", "&", "bitwise_and_"), ("^", "~", "bitwise_xor_"))
                         for hint in (f"{name} = {name} {operator} {value} (a tensor in place: {name}:{method}({value}))",)] + [
        ("x @= w", "x = x:matmul(w)"), ("x <<= 1", "x = x << 1"), ("x *= a + b", "x = x * (a + b)"), ("for i = 1, 2 do x -= i end", "x = x - i (a tensor"),
        ("y = x @ w", "x:matmul(y)"), ("@tide.no_grad", "local _ <close> = tide.no_grad()"), ("@torch.inference_mode()", "local _ <close> = tide.inference_mode()"),
        ("@property", "no decorators"), ("@staticmethod\ndef f(x): return x", "no decorators")],
    "comprehensions": [
        (form % "f(x) for x in xs", "local list = {} for _, x in ipairs(xs) do list[#list + 1] = f(x) end")
        for form in ("[%s]", "y = [%s]", "y = {%s}", "y = (%s)", "sum(%s)", "print([%s])", "tide.cat([%s])", "f(1, [%s], 2)", "return [%s]")] + [
        ("y = [x for x in xs if x > 0]", "for _, x in ipairs(xs) do if x > 0 then list[#list + 1] = x end end"),
        ("y = {k: v for k, v in d.items()}", "for k, v in pairs(d) do list[k] = v end"), ("y = [i for i in range(3)]", "for i = 1, 3 do"),
        ("y = {f(k): 2 * v for k, v in d.items()}", "list[f(k)] = 2 * v"),
        ("y = [i for i in range(2, n)]", "for i = 2, n - 1 do"), ("y = [i * x for i, x in enumerate(xs)]", "for i, x in ipairs(xs) do"),
        ("y = [a + b for a, b in zip(x, y)]", "lists are made by loops"), ("y = [i + j for i in a for j in b]", "lists are made by loops"),
        ("y = [a if c else b for x in xs]", "lists are made by loops"), ("y = {k: v}", "{a = 1, b = 2}"), ("y = {'a': 1}", "{a = 1, b = 2}"),
        ("f({'lr': 0.1, 'beta': 2})", "{a = 1, b = 2}")],
    "choices": [(form % "a if c else b", "condition and a or b") for form in ("%s", "y = %s", "print(%s)", "return %s", "f(1, %s)", "y = (%s) + 1", "y = {%s}")],
    "texts": [("'{}'.format(3)", '("loss %.4f"):format'), ("print('{:.3f}'.format(x))", '("loss %.4f"):format'), ("', '.join(xs)", "table.concat"),
              ("'abc'.upper()", '("text"):upper()'), ("('%f'):format(tide.ones(1):sum())", "x:item()"), ("string.format('%d', tide.ones(2))", "x:item()")],
    "modules of Python": [
        ("import torch", "torch is tide"), ("import torch.nn as nn", "local nn = tide.nn"), ("from torch import nn", "local nn = tide.nn"),
        ("import torch.nn.functional as F", "local F = tide.nn.functional"), ("from torch.nn import functional as F", "local F = tide.nn.functional"),
        ("from torch.optim import Adam", "local Adam = tide.optim.Adam"), ("import numpy as np", "for numpy Lua writes tide"), ("import tide", "tide is there already"),
        ("import matplotlib.pyplot as plt", "tide.plot"), ("from torch.utils.data import DataLoader", "require"), ("require 'torch'", "torch is tide"),
        ("require('torch.nn')", "local nn = tide.nn"), ("np = require 'numpy'", "for numpy Lua writes tide"), ("x = -inf", "math.huge"), ("x = 1 + nan", "0/0"),
        ("tide.seed(3)", "tide.manual_seed(n)"), ("tide.set_seed(3)", "tide.manual_seed(n)")],
    "methods of lists": [
        (use % name, hint) for name, hint in (("append", "t[#t + 1] = value"), ("pop", "table.remove"), ("keys", "pairs(t)"), ("items", "pairs(t)"))
        for use in ("t = {}; t:%s(1)", "t = {}; t.%s(1)", "local t = {}; t.%s(1)", "s = {t = {}}; s.t.%s(1)", "s = {t = {}}; s.t:%s(1)")] + [
        ("table.append({}, 1)", "t[#t + 1] = value")],
    "magics": [("%prun f()", "write %prof statement"), ("%memit f()", "%mem"), ("%lprun f()", "%prof"), ("%mprun f()", "profile_memory"), ("%pip install x", "!pip install"),
               ("%timit 1", "did you mean '%timeit'?"), ("%hsit", "did you mean '%hist'?"), ("%nonsense", "%lsmagic lists them"), ("%%script\nx", "%%bash")],
    "options by position": [
        ("tide.ones(2, 2):argmax(1, true)", "at most 1 argument, got 2 (options go in a table: {keepdim = true})"),
        ("tide.argmax(tide.ones(2, 2), 1, true)", "at most 2 arguments, got 3 (options go in a table: {keepdim = true})"),
        ("tide.ones(2, 2):std(1, true)", "{unbiased = true}"), ("tide.ones(2, 2):var(1, false, true)", "{unbiased = false, keepdim = true}"),
        ("tide.ones(2, 2):std(false)", "{unbiased = false}"), ("tide.var_mean(tide.ones(2, 2), 1, true, true)", "{unbiased = true, keepdim = true}"),
        ("tide.ones(2, 2):sum(2, true)", "argument 2: boolean where a number belongs (options go in a table: {keepdim = true})"),
        ("tide.sum(tide.ones(2, 2), 1, true)", "argument 3: boolean where"), ("tide.ones(2, 2):mean(1, true)", "{keepdim = true}"),
        ("tide.ones(2, 2):logsumexp(1, true)", "{keepdim = true}"), ("tide.tensor({1, 2}, tide.float64)", "{dtype = tide.float64}"),
        ("tide.ones(2, 3, tide.float64)", "{dtype = tide.float64}"), ("tide.ones(2, 3, 'cuda')", '{device = "cuda"}'),
        ("tide.arange(1, 5, 1, tide.float64)", "{dtype = tide.float64}")],
    "names": [
        ("tide.__file__", "?name at the prompt"), ("tide.confusion_matrix(1, 2)", "tide.plot.confusion"), ("tide.make_grid(x)", "tide.plot.image(batch)"),
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

    def test_code_that_is_no_python_gets_no_hint_of_it(self):
        for code in ("f(function() for i = 1, 2 do end end", "y = {f(function() for i in x do end end), 3", "local a = b c", "x = {1, 2", "t[1][2] = = 3"):
            with self.subTest(code=code):
                said = self.tide("-e", code).stderr
                self.assertNotIn("loops", said)
                self.assertNotIn("names and values", said)

    def test_searches_without_a_find_end_nothing(self):
        for question in ("/zzzz qqqq", "?/zzzz", "?tide.zz*", "zzzz*?", "%pinfo zzzz*"):
            with self.subTest(question=question):
                said = self.tide(stdin=f"{question}\nprint('goes on')\n")
                self.assertIn("nothing matches", said.stdout)
                self.assertEqual((said.stdout.endswith("goes on\n"), said.returncode), (True, 0))

    def test_losses_of_two_shapes_are_told_of_once_in_a_line(self):
        code = """local F = tide.nn.functional
for _ = 1, 3 do F.mse_loss(tide.ones(4), tide.ones(4, 1)) end
local l = tide.nn.%s()
for _ = 1, 3 do l(tide.ones(4, 1), tide.ones(4)) end
l(tide.ones(4), tide.ones(4)) F.mse_loss(tide.ones(4), tide.ones(4))
F.%s(tide.ones(4), tide.ones(1), {reduction = "none"})
"""
        for layer, name in (("MSELoss", "mse_loss"), ("L1Loss", "l1_loss"), ("SmoothL1Loss", "smooth_l1_loss"), ("HuberLoss", "huber_loss")):
            with self.subTest(layer=layer):
                with open(os.path.join(self.folder, "l.lua"), "w", encoding="utf-8") as file:
                    file.write(code % (layer, name))
                lines = self.tide("l.lua").stderr.splitlines()
                self.assertEqual([line.split(": ")[1:3] for line in lines], [["l.lua:2", "mse_loss"], ["l.lua:4", name], ["l.lua:6", name]])
                self.assertIn("x of shape (4, 1) and target of shape (4) broadcast", lines[1])

    def test_classes_are_shown_on_a_line(self):
        said = self.tide("-e", """local seen = {}
for _, name in ipairs(tide._lazy) do local _ = tide[name] end
local function walk(path, t)
    seen[t] = true
    for name, value in pairs(t) do
        local meta = type(value) == "table" and not seen[value] and getmetatable(value)
        local made = type(meta) == "table" and rawget(meta, "__call") and rawget(value, "__index")
        local private = type(name) == "string" and name:sub(1, 1) == "_"
        if made and not private then
            print(path .. "." .. name, value)
        end
        if type(value) == "table" and not seen[value] and not made and not private and path:len() < 60 then walk(path .. "." .. tostring(name), value) end
    end
end
walk("tide", tide)""").stdout.splitlines()
        shown = dict(line.split("\t") for line in said)
        self.assertLessEqual({"tide.nn.Linear", "tide.nn.Module", "tide.optim.AdamW", "tide.optim.lr_scheduler.StepLR", "tide.optim.LBFGS"}, set(shown))
        for path, text in shown.items():
            self.assertEqual(text, "class " + path.split(".")[-1])

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

    def test_results_and_devices_that_are_read_as_pytorchs_are_told_of(self):
        told = ("x:max(2)[1]", "y = (x * 2):min(-1)[2]", "tide.max(x, 1)[0]", "if x.device.type == 'cuda' then end", "print(x.device.index)")
        for code in told:
            with self.subTest(code=code):
                said = self.tide("-i", "--no-init", stdin=f"x = tide.ones(2, 3)\n{code}\n")
                self.assertRegex(said.stderr, "^warning: (.* gives values and indices one behind the other|a device is a string)")
                with open(os.path.join(self.folder, "r.lua"), "w", encoding="utf-8") as file:
                    file.write(f"x = tide.ones(2, 3)\nlocal _ = {code}\n" if code.startswith(("x", "tide")) else f"x = tide.ones(2, 3)\n{code}\n")
                self.assertIn("warning: r.lua:2: ", self.tide("r.lua").stderr)
        for code in ("x:max()", "x:max(x)[1]", "tide.max(x, x)[1]", "t = {math.max(1, 2)} t[1] = t[1]", "x:sort()[1]", "x.device", "x:max(2)", "t = {device = {type = 1}} t.device = nil",
                     "local values, indices = x:max(2)", "x:sum(2)[1]", "x:max(2)[{1}]"):
            with self.subTest(code=code):
                self.assertEqual(self.tide("-i", "--no-init", stdin=f"x = tide.ones(2, 3)\n{code}\n").stderr, "")

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
