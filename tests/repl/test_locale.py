"""Numbers, names and orders are the same in every locale: os.setlocale may be called at any time.

Debian's locales come in a package of their own; where localedef can, the test makes those it needs in a
folder of its own.

usage: TIDE=path/to/tide TIDE_BUILD=build test_locale.py
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

TIDE, BUILD = os.environ["TIDE"], os.environ["TIDE_BUILD"]
LOCALES = {"de_DE.UTF-8": ("de_DE", "UTF-8"), "de_DE.ISO-8859-1": ("de_DE", "ISO-8859-1"),
           "tr_TR.ISO-8859-9": ("tr_TR", "ISO-8859-9")}

# Lua's own print and tostring write numbers as the locale does: nothing here prints a bare number.
SCRIPT = r"""
local path = os.tmpname()
local file = assert(io.open(path, "w"))
file:write("1.5,-2e-3\n")
file:close()
print(tide.io.read_csv(path), tide.io.read_csv(path, {dtype = tide.float64}))
os.remove(path)
print(tide.tensor{0.5, 1e-9}, tide.tensor{1, 2}, tide.tensor(2.5), tide.tensor{1.25})
for _, f in ipairs{
    function() return tide.zeros(1.5) end, function() return tide.zeros(4)[{1.5}] end,
    function() return tide.arange(1.5, 0.5, 0.25) end, function() return tide.nn.Dropout(1.5) end,
    function() return tide.zeros(3)["1.5"] end,
} do print(select(2, pcall(f))) end
print(tide.nn.Dropout(0.25), tide.optim.SGD({tide.zeros(2):requires_grad_()}, {lr = 0.01}))
for _, op in ipairs(tide._ops()) do print(op.signature) end
tide.display(2.5) tide.display(2.0) tide.display(-7)
tide.display{0.5, [2.5] = 3, a = 1, B = 2, _ = 3, ["\xE4"] = 4}
local model = tide.nn.class("M")()
for _, name in ipairs{"b", "A", "_x", "a", "B"} do model[name] = tide.nn.Parameter(tide.zeros(1)) end
for name in model:named_parameters() do io.write(name, " ") end
print()
"""
TRACE = r"""
local p = tide.profiler.profile(function() for _ = 1, 10 do tide.randn(50, 50):matmul(tide.randn(50, 50)) end end)
p:export_chrome_trace(arg and arg[1] or "-")
print(p:table())
"""


class Locale(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="tide-locale-test-")
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.environment = dict(os.environ, LOCPATH=cls.folder, NO_COLOR="1", HOME=cls.folder)
        for name, (source, charset) in LOCALES.items():
            subprocess.run(["localedef", "-i", source, "-f", charset, os.path.join(cls.folder, name)],
                           capture_output=True)
        if not all(os.path.isdir(os.path.join(cls.folder, name)) for name in LOCALES):
            print("skipped: localedef can't make the locales", ", ".join(LOCALES))
            sys.exit(77)

    def run_in(self, locale, code, *arguments, program=(TIDE,), **environment):
        path = os.path.join(self.folder, "script.lua")
        with open(path, "w") as file:
            file.write(f"assert(os.setlocale({locale!r})) " + code)
        return subprocess.run([*program, path, *arguments], capture_output=True, timeout=120,
                              env=dict(self.environment, **environment))

    def test_the_locales_do_write_commas(self):
        self.assertEqual(self.run_in("de_DE.UTF-8", "print(1.5)").stdout, b"1,5\n")

    def test_texts_do_not_depend_on_the_locale(self):
        plain = self.run_in("C", SCRIPT)
        self.assertEqual((plain.returncode, plain.stderr), (0, b""))
        for locale in LOCALES:
            with self.subTest(locale):
                result = self.run_in(locale, SCRIPT)
                self.assertEqual((result.stdout, result.stderr), (plain.stdout, b""))

    def test_errors_and_values_of_the_prompt(self):
        for code, text in (("error(2.5)", "2.5"), ("error({0.5})", "{0.5}")):
            self.assertIn(text, self.run_in("de_DE.UTF-8", code).stderr.decode())

    def test_traces_and_tables_of_the_profiler(self):
        path = os.path.join(self.folder, "trace.json")
        result = self.run_in("de_DE.UTF-8", TRACE, path)
        self.assertEqual(result.stderr, b"")
        with open(path) as file:
            self.assertGreater(len(json.load(file)["traceEvents"]), 10)
        self.assertIsNone(re.search(rb"\d,\d", result.stdout), result.stdout)
        self.assertIsNotNone(re.search(rb"\d\.\d %", result.stdout), result.stdout)

    def test_the_module_starts_where_a_locale_is_set(self):
        code = "tide = require 'tide' print(tide.sigmoid(tide.tensor{0.5}))"
        where = dict(LUA_CPATH=os.path.join(BUILD, "?.so"))
        plain = self.run_in("C", code, program=("lua5.4",), **where)
        if plain.returncode:
            self.skipTest("lua5.4 can't load this build")
        result = self.run_in("de_DE.UTF-8", code, program=("lua5.4",), **where)
        self.assertEqual((result.stdout, result.stderr), (plain.stdout, b""))


if __name__ == "__main__":
    unittest.main()
