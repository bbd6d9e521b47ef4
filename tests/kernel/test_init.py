"""The user's init.lua: it runs ahead of the first cell, as a part of it; and every magic does in a notebook what it does
at the prompt."""
import os
import re
import unittest

from harness import ask, kernel

SETTINGS = os.path.join(os.environ["XDG_CONFIG_HOME"], "tide")


def write_init(code):
    os.makedirs(SETTINGS, exist_ok=True)
    with open(os.path.join(SETTINGS, "init.lua"), "w", encoding="utf-8") as file:
        file.write(code)


class Init(unittest.TestCase):
    def cells(self, *codes):
        with kernel() as (_, client, _log):
            return [ask(client, client.execute(code, allow_stdin=False, stop_on_error=False)) for code in codes]

    def setUp(self):
        self.addCleanup(lambda: os.remove(os.path.join(SETTINGS, "init.lua")))

    def test_it_runs_once_ahead_of_the_first_cell(self):
        write_init("runs = (runs or 0) + 1 print('from init') function double(x) return 2 * x end")
        first, second = self.cells("double(21)", "runs")
        self.assertEqual(first.text(), "from init\n")
        self.assertEqual(first.contents("execute_result")[0]["data"]["text/plain"], "42")
        self.assertEqual(first.reply["execution_count"], 1)
        self.assertEqual(second.text(), "")
        self.assertEqual(second.contents("execute_result")[0]["data"]["text/plain"], "1")

    def test_an_error_in_it_is_told_and_the_cell_runs(self):
        write_init("before = 1\nerror('wrong')")
        first, second = self.cells("print(before)", "1 + 1")
        self.assertEqual(first.reply["status"], "ok")
        self.assertEqual(first.text(), "1\n")
        self.assertIn("init.lua:2: wrong", re.sub(r"\x1b\\[[0-9;]*m", "", first.text("stderr")))
        self.assertEqual(second.text("stderr"), "")

    def test_a_syntax_error_in_it_is_told(self):
        write_init("x = = 1")
        (first,) = self.cells("print(2)")
        self.assertEqual(first.text(), "2\n")
        self.assertIn("SyntaxError", first.text("stderr"))


MAGICS = [
    ("%who", "no variables|x"), ("%whos", "float32 \\(2, 3\\)"), ("%history 1", "x = tide.ones"), ("%hist 1", "x = tide.ones"), ("%rerun 1", "x = tide.ones"),
    ("%recall 1", ""), ("%rep 1", ""), ("%pwd", "/"), ("%ls", ""),
    ("%env HOME", "/"), ("%mem", "B"), ("%threads 1", ""), ("%threads", "1"), ("%precision 2", ""), ("%prof x:sum()", "sum"),
    ("%time x:sum()", "ms|µs|us"), ("%timeit -n 2 -r 2 x:sum()", "loop|run|±|best|µs|us|ms"), ("%trace trace.json x:sum()", "trace.json"),
    ("%%capture out\nprint(1)", ""), ("print(out)", "1"), ("%%file written.lua\nfrom_file = 5", "written.lua"),
    ("%run written.lua", ""), ("print(from_file)", "5"), ("%load written.lua", "from_file = 5"), ("%save saved.lua 1", "saved.lua"),
    ("%%bash\necho from bash", "from bash"), ("!echo once", "once"), ("files = !echo a; echo b", ""), ("print(#files)", "2"),
    ("%cd .", ""), ("%lsmagic", "%debug"), ("%reset", ""), ("%who", "no variables"), ("%flood off", ""), ("%flood on", ""), ("%debug", "post mortem"),
    ("%%html\n<b>x</b>", ""), ("%%javascript\n1", ""), ("%%js\n1", ""), ("%%markdown\nx", ""), ("%%latex\nx", ""), ("%%svg\n<svg/>", ""),
    ("%%writefile written.lua\nx = 1", "6 bytes"), ("%pinfo print", "print"), ("%pinfo2 print", "print"),
    ("%pdb off", "off"),
    ("%matplotlib inline", "tide.plot"), ("%pylab", "tide.plot"), ("%load_ext x", "require"), ("%reload_ext x", "require"),
    ("%autoreload 2", "require"), ("%tensorboard", "SummaryWriter"), ("%config", "init.lua"), ("%colors", "NO_COLOR"),
]
# What needs a terminal or its clipboard.
ELSEWHERE = {"edit", "paste"}


class Magics(unittest.TestCase):
    def test_each_magic_works_in_a_notebook(self):
        with kernel(cwd=os.environ["XDG_STATE_HOME"].rsplit("/", 1)[0]) as (_, client, _log):
            ask(client, client.execute("x = tide.ones(2, 3)"))
            for code, shown in MAGICS:
                with self.subTest(code):
                    answer = ask(client, client.execute(code, allow_stdin=False, stop_on_error=False))
                    self.assertEqual(answer.reply["status"], "ok", answer.reply)
                    value = answer.contents("execute_result")
                    text = answer.text() + (value[0]["data"]["text/plain"] if value else "")
                    self.assertTrue(not shown or re.search(shown, text), text)
                    if code == "%lsmagic":
                        listed = set(re.findall(r"^%+(\w+)", text, re.M))
                        self.assertEqual(listed - {name for code, _ in MAGICS for name in re.findall(r"^%+(\w+)", code)}, ELSEWHERE)
                    if code == "%reset":
                        ask(client, client.execute("local t = nil; t.x = 1", stop_on_error=False))


if __name__ == "__main__":
    unittest.main()
