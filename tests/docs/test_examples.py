"""What help shows as an example is what the prompt answers: every input is typed, and what it shows must be what stands
there; numbers may differ by what instruction sets differ in.

usage: TIDE=path/to/tide test_examples.py
"""
import os
import re
import subprocess
import tempfile
import unittest

TIDE = os.environ["TIDE"]
PROMPT = "tide> "
LIST = """
local names = {}
for name in pairs(tide._require("help.examples").all()) do names[#names + 1] = name end
table.sort(names)
for _, name in ipairs(names) do io.write("## ", name, "\\n", tide._require("help.examples").all()[name], "\\n") end"""
# Names that an example made are gone before the next, which draws the same random numbers wherever it stands. What
# autocast says once, where a processor gains nothing from it, is said before the first.
KEEP = "tide.autocast(function() end) KEPT = {KEPT = true} for k in pairs(_G) do KEPT[k] = true end"
FORGET = 'for k in pairs(_G) do if not KEPT[k] then _G[k] = nil end end tide.manual_seed(0) print("\\2{}")'
# What needs somebody who answers, or a notebook, is not typed here.
ALONE = {"input", "set_next_input"}
NUMBER = re.compile(r"-?\d+\.?\d*(?:e[+-]?\d+)?")


def read(text):
    """{name: [(input, what it shows)]}"""
    found = {}
    for line in text.splitlines():
        if line.startswith("## "):
            lines = found.setdefault(line[3:], [])
        elif line.startswith("> "):
            lines.append([line[2:], ""])
        else:
            lines[-1][1] += line + "\n"
    return {name: [(code, shown.strip("\n")) for code, shown in lines] for name, lines in found.items()}


def parts(shown):
    """Text without its numbers and the blanks that align them, and the numbers."""
    return re.sub(r"\s+", "", NUMBER.sub("0", shown)), [float(number) for number in NUMBER.findall(shown)]


def same(a, b):
    (text_a, numbers_a), (text_b, numbers_b) = parts(a), parts(b)
    return text_a == text_b and all(abs(x - y) <= 1e-4 * max(abs(x), abs(y)) + 1e-6 for x, y in zip(numbers_a, numbers_b))


class Examples(unittest.TestCase):
    def tide(self, *arguments, typed=""):
        with tempfile.TemporaryDirectory() as home:
            environment = dict(os.environ, HOME=home, TMPDIR=home, NO_COLOR="1", COLUMNS="80",
                               CUDA_VISIBLE_DEVICES="")  # they show a machine without a device
            done = subprocess.run([TIDE, *arguments], input=typed, text=True, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, env=environment, cwd=home, timeout=600)
        return done.stdout

    def type_all(self, examples):
        """{name: [(input, what it showed)]}"""
        typed = [KEEP]
        for name, lines in examples.items():
            typed += [FORGET.format(name)] + [code for code, _ in lines]
        said, shown = {}, self.tide("-i", "--no-init", typed="\n".join(typed) + "\n")
        for part in shown.split(PROMPT)[1:]:
            code, _, answer = part.partition("\n")
            if "\2" in answer:
                lines = said.setdefault(answer.strip().strip("\2"), [])
            elif said and code:
                lines.append((code, answer.strip("\n")))
        return said

    def test_examples_show_what_stands_there(self):
        examples = {name: lines for name, lines in read(self.tide("-e", LIST)).items() if name not in ALONE}
        self.assertGreater(len(examples), 900)
        said = self.type_all(examples)
        for name, lines in examples.items():
            with self.subTest(name):
                self.assertTrue(lines)
                self.assertEqual([code for code, _ in said[name]], [code for code, _ in lines])
                for (code, shown), (_, answer) in zip(lines, said[name]):
                    self.assertTrue(same(shown, answer), f"{code}\n{answer}\ninstead of\n{shown}")

    def test_examples_are_short(self):
        for name, lines in read(self.tide("-e", LIST)).items():
            for code, shown in lines:
                self.assertLessEqual(len(code), 210, name)
                self.assertLessEqual(shown.count("\n"), 12, name)

    def test_help_shows_them(self):
        for name in ("tide.sum", "tide.nn.Linear", "tide.io.read_csv", "tide.foreach.add", "tide.optim.Adam"):
            shown = self.tide("-i", "--no-init", typed=f"?{name}\n")
            self.assertRegex(shown, r"Example:\n  > ", name)
        self.assertIn("  > tide.tensor{{1, 2}, {3, 4}}:sum()\n  10  int64 () cpu", self.tide("-i", typed="?tide.sum\n"))

    def test_pages_show_what_stands_there(self):
        text = self.tide("-e", 'for name, page in pairs(tide._require "help.pages") do io.write("\\1", name, "\\n", page, "\\n\\2\\n") end')
        pages = dict(part.split("\2")[0].split("\n", 1) for part in text.split("\1")[1:])
        self.assertLessEqual({"nn.Module", "indexing", "newaxis", "options", "dtype", "loops", "pytorch"}, set(pages))
        for name, page in pages.items():
            with self.subTest(name):
                lines = []
                for block in page.split("\n\n"):
                    if block.startswith("> "):
                        lines += read("## x\n" + block + "\n")["x"]
                typed = ["tide.manual_seed(0)"] + [code for code, _ in lines]
                answers = self.tide("-i", "--no-init", typed="\n".join(typed) + "\n").split(PROMPT)[2:]
                self.assertGreaterEqual(len(answers), len(lines))
                for (code, shown), answer in zip(lines, answers):
                    said, _, answer = answer.partition("\n")
                    self.assertEqual(said, code)
                    self.assertTrue(same(shown, answer.strip("\n")), f"{code}\n{answer}\ninstead of\n{shown}")
                self.assertIn(page.strip(), self.tide("-i", "--no-init", typed=f"?{name}\n"))


if __name__ == "__main__":
    unittest.main()
