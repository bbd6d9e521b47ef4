"""The prompt as a person sees it: what is typed in a pseudo-terminal, and the screen that must stand
there then, row by row. SCENARIOS says both.

usage: TIDE=path/to/tide test_screen.py [Scenario | Window]
"""
import os
import signal
import tempfile
import termios
import unittest

from vt import Program

TIDE = os.path.abspath(os.environ["TIDE"])
ESC, UP, DOWN, RIGHT, LEFT = "\x1b", "\x1b[A", "\x1b[B", "\x1b[C", "\x1b[D"
HOME, END, DELETE, BACKSPACE, BACK_TAB = "\x1b[H", "\x1b[F", "\x1b[3~", "\x7f", "\x1b[Z"
BEGIN, CLOSE = "\x1b[200~", "\x1b[201~"  # of a paste


def ctrl(letter):
    return chr(ord(letter) & 0x1F)


def paste(text):
    return BEGIN + text + CLOSE


LOOP = ["for i = 1, 2 do\r", ["tide> for i = 1, 2 do", "....>     ^"], "print(i)\r",
        ["tide> for i = 1, 2 do", "....>     print(i)", "....>     ^"]]

# Of each: what is sent; a list is what the screen shows then, with ^ where the cursor
# is; two numbers are the window's new size. The window begins with 60 columns and 14 rows.
SCENARIOS = {
    # ---- text
    "an expression": ["6 * 7\r", ["tide> 6 * 7", "42", "tide> ^"]],
    "typed letter by letter": ["a", ["tide> a^"], "b", ["tide> ab^"], "c", ["tide> abc^"]],
    "a letter in the middle": ["6 * 8", LEFT + "7", ["tide> 6 * 7^8"], "\r", ["tide> 6 * 78", "468", "tide> ^"]],
    "backspace and delete": ["abcd", LEFT + BACKSPACE + DELETE, ["tide> ab^"], LEFT + DELETE, ["tide> a^"]],
    "start and end of the line": ["23", HOME + "1", ["tide> 1^23"], END + "4", ["tide> 1234^"],
                                  ctrl("A") + "0" + ctrl("E") + "5", ["tide> 012345^"]],
    "words": ["one.two three", ESC + "b", ["tide> one.two ^three"], ESC + "b" + ESC + "b", ["tide> ^one.two three"],
              ESC + "f", ["tide> one^.two three"], "\x1b[1;5C", ["tide> one.two^ three"], "\x1b[1;3D", ["tide> one.^two three"]],
    "kill and yank": ["one two", ctrl("W"), ["tide> one ^"], HOME + ctrl("Y"), ["tide> two^one"], ctrl("K"), ["tide> two^"],
                      ctrl("U"), ["tide> ^"], ctrl("Y"), ["tide> twoone ^"], ESC + "y", ["tide> two^"]],
    "kills in a row are one": ["a b c", ctrl("W") + ctrl("W"), ["tide> a ^"], ctrl("Y"), ["tide> a b c^"]],
    "kill words": ["f(alpha, beta)", HOME + ESC + "d", ["tide> ^(alpha, beta)"], END + ESC + BACKSPACE, ["tide> (alpha, ^"]],
    "transpose": ["ab", ctrl("T"), ["tide> ba^"], LEFT + ctrl("T"), ["tide> ab^"]],
    "cases": ["one two three", HOME + ESC + "u", ["tide> ONE^ two three"], ESC + "c", ["tide> ONE Two^ three"],
              HOME + ESC + "l", ["tide> one^ Two three"]],
    "undo and redo": ["one two", ctrl("_"), ["tide> one ^"], ctrl("_"), ["tide> ^"], ESC + "_" + ESC + "_", ["tide> one two^"]],
    "undo of a kill": ["alpha", ctrl("U"), ["tide> ^"], ctrl("_"), ["tide> alpha^"]],
    "a quoted key": ["x", ctrl("V") + "\t", ["tide> x   ^"], ctrl("V") + ctrl("A"), ["tide> x   ^A"]],
    "keys without a meaning": ["a", "\x1b[15~\x1b[99z\x1bOP", "b", ["tide> ab^"]],
    "backspace within blanks": ["x    y", LEFT + BACKSPACE, ["tide> x   ^y"]],
    # ---- letters of all kinds
    "umlauts": ["#'äöü'", ["tide> #'äöü'^"], LEFT + LEFT + BACKSPACE, ["tide> #'ä^ü'"], "\r", ["tide> #'äü'", "4", "tide> ^"]],
    "wide letters": ["'日本'", LEFT + LEFT, ["tide> '日^本'"], BACKSPACE, ["tide> '^本'"]],
    "marks go with their letter": ["'e\u0301x'", LEFT + LEFT + BACKSPACE, ["tide> '^x'"]],
    "pictures": ["'🌙'", LEFT + "x", ["tide> '🌙x^'"]],
    "bytes that are no letters": [b"'\xff\xc3'", ["tide> '\ufffd\ufffd'^"], LEFT + BACKSPACE, ["tide> '\ufffd^'"], "\r",
                                  ["tide> '\ufffd'", r'"\xFF"', "tide> ^"]],
    "a wide letter at the edge": ["x" * 53 + "日", ["tide> " + "x" * 53, "日^"], BACKSPACE, ["tide> " + "x" * 53 + "^"]],
    "a full row": ["x" * 54, ["tide> " + "x" * 54, "^"], "y", ["tide> " + "x" * 54, "y^"],
                   BACKSPACE + BACKSPACE, ["tide> " + "x" * 53 + "^"]],
    "recall puts an input up to be changed": [
        "a = 5\r", "do\r", "a = 6\r", "end\r", ctrl("L"), "%recall 2\r", ["tide> %recall 2", "tide> do", "....>     a = 6", "....> end^"],
        ctrl("C"), ["tide> %recall 2", "tide> do", "....>     a = 6", "....> end^C", "tide> ^"], "%recall 1\r",
        ["tide> %recall 2", "tide> do", "....>     a = 6", "....> end^C", "tide> %recall 1", "tide> a = 5^"], "0\r", "a\r",
        ["tide> %recall 2", "tide> do", "....>     a = 6", "....> end^C", "tide> %recall 1", "tide> a = 50", "tide> a", "50", "tide> ^"]],
    # ---- choices
    "more choices than rows stand side by side": [
        "for i = 1, 40 do _G['qq' .. i] = i end\r", ctrl("L"), "qq\t",
        ["tide> qq^", "  qq1     qq15    qq20    qq26    qq31    qq37    qq6", "  qq10    qq16    qq21    qq27    qq32    qq38    qq7",
         *(rest := ["  qq11    qq17    qq22    qq28    qq33    qq39    qq8", "  qq12    qq18    qq23    qq29    qq34    qq4     qq9",
                    "  qq13    qq19    qq24    qq3     qq35    qq40", "  qq14    qq2     qq25    qq30    qq36    qq5"])],
        "\t\t", ["tide> qq10^", "  qq1     qq15    qq20    qq26    qq31    qq37    qq6",
                 "> qq10    qq16    qq21    qq27    qq32    qq38    qq7", *rest]],
    # ---- several lines
    "a loop": [*LOOP, "end\r", ["tide> for i = 1, 2 do", "....>     print(i)", "....> end", "1", "2", "tide> ^"]],
    "end moves left as it is typed": [*LOOP, "en", [*LOOP[3][:2], "....>     en^"], "d", [*LOOP[3][:2], "....> end^"]],
    "a longer word moves back": [*LOOP, "end", [*LOOP[3][:2], "....> end^"], "less", [*LOOP[3][:2], "....>     endless^"]],
    "else moves left": ["if x then\r", "y()\r", "else", ["tide> if x then", "....>     y()", "....> else^"], "\r",
                        ["tide> if x then", "....>     y()", "....> else", "....>     ^"]],
    "a bracket moves left": ["t = {\r", ["tide> t = {", "....>     ^"], "1,\r", "}\r", ["tide> t = {", "....>     1,", "....> }", "tide> ^"]],
    "a function in a call": ["f(function()\r", ["tide> f(function()", "....>     ^"], "x()\r", "end)",
                             ["tide> f(function()", "....>     x()", "....> end)^"]],
    "backspace takes a step of blanks": ["do\r", ["tide> do", "....>     ^"], BACKSPACE, ["tide> do", "....> ^"],
                                         BACKSPACE, ["tide> do^"]],
    "tab and shift-tab indent": ["do\r", "\t", ["tide> do", "....>         ^"], BACK_TAB + "x", ["tide> do", "....>     x^"]],
    "up and down within an input": [*LOOP, UP + UP, ["tide> for ^i = 1, 2 do", *LOOP[3][1:2], "....>"], DOWN, DOWN,
                                    [*LOOP[3][:2], "....>     ^"]],
    "a line in the middle is mended": ["function f()\r", "return 4 +\r", "end\r", ["tide> function f()", "....>     return 4 +", "....> end", "SyntaxError: In[1]:3: unexpected symbol near 'end'", "    end", "    ^", "tide> ^"],
                                       UP + UP + END + " 1\r", "f()\r",
                                       ["tide> function f()", "....>     return 4 +", "....> end", "SyntaxError: In[1]:3: unexpected symbol near 'end'", "    end", "    ^",
                                        "tide> function f()", "....>     return 4 + 1", "....> end", "tide> f()", "5", "tide> ^"]],
    "enter runs wherever the cursor is": ["x = {1,", "\r", "2}", UP, "\r", "#x\r", ["tide> x = {1,", "....>     2}", "tide> #x", "2", "tide> ^"]],
    "alt-enter opens a line": ["x = 1", ESC + "\r", ["tide> x = 1", "....> ^"], "y = 2\r", "x + y\r",
                               ["tide> x = 1", "....> y = 2", "tide> x + y", "3", "tide> ^"]],
    "ctrl-o opens a line": ["do", ctrl("O"), ["tide> do", "....>     ^"]],
    "a line is split": ["do x() end", HOME + "\x1b[1;5C" + ctrl("O"), ["tide> do", "....>     ^ x() end"]],
    "a string in brackets": ["s = [[a\r", "b]]\r", "s\r", ["tide> s = [[a", "....> b]]", "tide> s", r'"a\nb"', "tide> ^"]],
    "nothing": ["\r", "  \r", ["tide>", "tide>", "tide> ^"]],
    "a cell's magic": ["%%timeit -n 2 -r 2\r", ["tide> %%timeit -n 2 -r 2", "....> ^"]],
    # ---- leaving
    "ctrl-c keeps the line": ["x = never", ["tide> x = never^"], ctrl("C"), ["tide> x = never^C", "tide> ^"], "1\r", ["tide> x = never^C", "tide> 1", "1", "tide> ^"]],
    "ctrl-c in the middle": ["abc" + LEFT + LEFT, ["tide> a^bc"], ctrl("C"), ["tide> abc^C", "tide> ^"]],
    "ctrl-c drops all lines": [*LOOP, ctrl("C"), [*LOOP[3][:2], "....>     ^C", "tide> ^"]],
    "ctrl-c at nothing": [ctrl("C"), ["tide> ^C", "tide> ^"]],
    "ctrl-d deletes": ["ab", HOME + ctrl("D"), ["tide> ^b"], END + ctrl("D"), ["tide> b^"]],
    "ctrl-l": ["1\r", ["tide> 1", "1", "tide> ^"], "ab" + ctrl("L"), ["tide> ab^"]],
    # ---- history
    "up and down": ["1\r", "22\r", ["tide> 1", "1", "tide> 22", "22", "tide> ^"], UP, ["tide> 1", "1", "tide> 22", "22", "tide> 22^"], UP,
                    ["tide> 1", "1", "tide> 22", "22", "tide> 1^"], DOWN + DOWN, ["tide> 1", "1", "tide> 22", "22", "tide> ^"]],
    "up finds what begins so": ["aa = 1\r", "bb = 2\r", "a" + UP, ["tide> aa = 1", "tide> bb = 2", "tide> aa = 1^"],
                                DOWN, ["tide> aa = 1", "tide> bb = 2", "tide> aa = 1"]],
    "an input comes back whole": ["do\r", "x = 1\r", "end\r", UP, ["tide> do", "....>     x = 1", "....> end", "tide> do", "....>     x = 1", "....> end^"],
                                  UP + UP, ["tide> do", "....>     x = 1", "....> end", "tide> do^", "....>     x = 1", "....> end"],
                                  "\r", "x\r", ["tide> do", "....>     x = 1", "....> end"] * 2 + ["tide> x", "1", "tide> ^"]],
    "what was begun is kept": ["1\r", "unfinished" + "\x1b[5~", ["tide> 1", "1", "tide> 1^"], DOWN, ["tide> 1", "1", "tide> unfinished^"]],
    "a suggestion": ["print(12)\r", "pr", ["tide> print(12)", "12", "tide> pr^int(12)"], RIGHT, ["tide> print(12)", "12", "tide> print(12)^", "print(...)"][:3]],
    "a suggestion by words": ["print(12)\r", "pr", "\x1b[1;5C", ["tide> print(12)", "12", "tide> print^(12)"]],
    "a suggestion of several lines": [*LOOP, "end\r", "f", [*LOOP[3][:2], "....> end", "1", "2", "tide> f^or i = 1, 2 do …"], END,
                                      [*LOOP[3][:2], "....> end", "1", "2", *LOOP[3][:2], "....> end^"]],
    "search": ["aa = 1\r", "bb = 2\r", ctrl("R"), ["tide> aa = 1", "tide> bb = 2", "tide>", "search: ^"], "=",
               ["tide> aa = 1", "tide> bb = 2", "tide> bb = 2", "search: =^", "> bb = 2", "  aa = 1"], ctrl("R"),
               ["tide> aa = 1", "tide> bb = 2", "tide> aa = 1", "search: =^", "  bb = 2", "> aa = 1"], ESC,
               ["tide> aa = 1", "tide> bb = 2", "tide> aa ^= 1"]],
    "search and run": ["6 * 7\r", ctrl("R") + "6 *", ["tide> 6 * 7", "42", "tide> 6 * 7", "search: 6 *^", "> 6 * 7"], "\r",
                       ["tide> 6 * 7", "42", "tide> 6 * 7", "42", "tide> ^"]],
    "search given up": ["1\r", "abc" + ctrl("R") + "1", ["tide> 1", "1", "tide> 1", "search: 1^", "> 1"], ctrl("G"), ["tide> 1", "1", "tide> abc^"]],
    "search without a find": ["1\r", ctrl("R") + "zz", ["tide> 1", "1", "tide>", "search: zz^  (nothing)"]],
    # ---- completion and hints
    "one completion": ["string.for\t", ["tide> string.format^"]],
    "a list": ["longish_one = 1 longish_two = 2\r", "longi\t", ["tide> longish_one = 1 longish_two = 2", "tide> longish_^",
               "  longish_one  global  1", "  longish_two  global  2"], "\t", ["tide> longish_one = 1 longish_two = 2", "tide> longish_one^",
               "> longish_one  global  1", "  longish_two  global  2"], "\t\r", ["tide> longish_one = 1 longish_two = 2", "tide> longish_two^"],
               "\r", ["tide> longish_one = 1 longish_two = 2", "tide> longish_two", "2", "tide> ^"]],
    "a list is left": ["longish_one = 1 longish_two = 2\r", "longi\t", UP, ["tide> longish_one = 1 longish_two = 2", "tide> longish_two^",
                       "  longish_one  global  1", "> longish_two  global  2"], ctrl("G"), ["tide> longish_one = 1 longish_two = 2", "tide> longish_^one = 1 longish_two = 2"]],
    "typing narrows the list": ["longish_one = 1 longish_two = 2\r", "longi\t", "t", ["tide> longish_one = 1 longish_two = 2", "tide> longish_t^",
                                "  longish_two  global  2"]],
    "tab indents at the start": ["\t", ["tide>     ^"], "xpc\t", ["tide>     xpcall^"]],
    "a signature": ["function twice(x) return 2 * x end\r", "twice(", ["tide> function twice(x) return 2 * x end", "tide> twice(^", "twice(x)"],
                    "4", ["tide> function twice(x) return 2 * x end", "tide> twice(4^", "twice(x)"], ")",
                    ["tide> function twice(x) return 2 * x end", "tide> twice(4)^"], "\r", ["tide> function twice(x) return 2 * x end", "tide> twice(4)", "8", "tide> ^"]],
    # ---- pastes
    "a paste": [paste("for i = 1, 2 do\n\tprint(i)\nend"), ["tide> for i = 1, 2 do", "....>     print(i)", "....> end^"], "\r",
                ["tide> for i = 1, 2 do", "....>     print(i)", "....> end", "1", "2", "tide> ^"]],
    "a paste in the middle": ["f()" + LEFT, paste("1,\r2"), ["tide> f(1,", "....> 2^)"]],
    "a paste is one step": ["a ", paste("1\n2\n3"), ["tide> a 1", "....> 2", "....> 3^"], ctrl("_"), ["tide> a ^"]],
    "sent lines are not indented twice": ["for i = 1, 2 do\n    if i > 1 then\n        print(i)\n    end\nend\n",
                                          ["tide> for i = 1, 2 do", "....>     if i > 1 then", "....>         print(i)", "....>     end", "....> end", "2", "tide> ^"]],
    "a paste taller than the window": [paste("x = {\n" + "".join(f"{i},\n" for i in range(30)) + "}"),
                                       [*(f"....> {i}," for i in range(17, 30)), "....> }^"], "\r", "#x\r",
                                       [*(f"....> {i}," for i in range(20, 30)), "....> }", "tide> #x", "30", "tide> ^"]],
    "a tall text scrolls": [paste("x = {\n" + "".join(f"{i},\n" for i in range(30)) + "}"), [*(f"....> {i}," for i in range(17, 30)), "....> }^"],
                            "\x1b[1;5H", ["tide> ^x = {", *(f"....> {i}," for i in range(13))], DOWN * 14,
                            ["....> 0,", *(f"....> {i}," for i in range(1, 13)), "....> ^13,"]],
    "a long line scrolls": ["x" * 900, ["x" * 60] * 13 + ["x" * 6 + "^"]],
    # ---- the window
    "narrower": ["x" * 30, ["tide> " + "x" * 30 + "^"], (20, 14), ["tide> " + "x" * 14, "x" * 16 + "^"]],
    "wider": ["x" * 80, ["tide> " + "x" * 54, "x" * 26 + "^"], (100, 14), ["tide> " + "x" * 80 + "^"]],
    "lower": [paste("{\n1,\n2,\n3,\n4}"), ["tide> {", "....> 1,", "....> 2,", "....> 3,", "....> 4}^"], (60, 3), ["....> 2,", "....> 3,", "....> 4}^"]],
    "narrow with several lines": [*LOOP, (20, 14), ["tide> for i = 1, 2 d", "o", "....>     print(i)", "....>     ^"], "end\r",
                                  ["tide> for i = 1, 2 d", "o", "....>     print(i)", "....> end", "1", "2", "tide> ^"]],
    "resized between inputs": [(30, 14), "1\r", ["tide> 1", "1", "tide> ^"]],
    # ---- output
    "output without a line end": ["do io.write('abc') end\r", ["tide> do io.write('abc') end", "abc⏎", "tide> ^"]],
    "output of a full row": ["do io.write(('x'):rep(60)) end\r", ["tide> do io.write(('x'):rep(60)) end", "x" * 60, "tide> ^"]],
    "typed ahead": ["os.execute('sleep 0.5')\r1 + 1\r", ["tide> os.execute('sleep 0.5')", 'true', '"exit"', "0", "tide> 1 + 1", "2", "tide> ^"]],
    "read by the program": ["io.read()\r", ["tide> io.read()", "^"], "Luna\r", ["tide> io.read()", "Luna", '"Luna"', "tide> ^"]],
    "an error": ["x = = 1\r", ["tide> x = = 1", "SyntaxError: In[1]:1: unexpected symbol near '='", "    x = = 1", "        ^", "tide> ^"]],
}


class Scenario(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.home = folder.name

    def open(self, *arguments, program=(TIDE,), **options):
        """A program at its first prompt, the banner cleared away."""
        opened = Program([*program, *arguments], self.home, **options)
        self.addCleanup(opened.close)
        opened.until(opened.at_prompt, "no prompt")
        opened.send(ctrl("L"))
        self.expect(opened, ["tide> ^"])
        return opened

    def expect(self, program, want):
        """Waits until the rows are those; `^` at a row's end or before text is the cursor
        where it stands there."""
        screen = program.screen

        def holds():
            rows = screen.rows()
            rows += [""] * (screen.row + 1 - len(rows))
            at = screen.row
            line = screen.cells[screen.row]
            left = "".join(text for text, _ in line[:screen.col]) + " " * (screen.col - len(line))
            marked = rows[:at] + [left + "^" + rows[at][len(left):]] + rows[at + 1:]
            return rows == [row.rstrip() for row in want] or marked == want

        program.until(holds, "expected " + "\n".join(["", *want]))
        self.assertEqual(screen.unknown, [])


def scenario(steps):
    def test(self):
        program = self.open()
        for step, following in zip(steps, [*steps[1:], []]):
            line = program.line()
            if isinstance(step, list):
                self.expect(program, step)
            elif isinstance(step, tuple):
                program.resize(*step)
            else:
                program.send(step)
            if isinstance(step, str) and step.endswith("\r") and isinstance(following, str):
                program.until(lambda: program.line() > line and program.at_prompt(), "a prompt for " + repr(following))
    return test


class Window(Scenario):
    """What takes more than typing."""

    def modes(self, program):
        return termios.tcgetattr(program.fd)[:6]

    def test_ctrl_z_and_fg(self):
        shell = Program(["/bin/bash", "--norc", "--noprofile", "-i"], self.home, width=60, height=14)
        self.addCleanup(shell.close)
        shell.until(lambda: shell.screen.text(shell.screen.row).endswith("$"), "no shell")
        shell.send(f"PS1='$ '; clear; {TIDE}\r")
        shell.until(shell.at_prompt, "no prompt")
        shell.send("6 * 7" + ctrl("Z"))
        shell.until(lambda: "[1]+" in "\n".join(shell.screen.rows()), "not stopped")  # in any language
        shell.until(lambda: shell.screen.text(shell.screen.row) == "$", "no shell")
        self.assertFalse(shell.screen.pastes and not shell.screen.text(shell.screen.row))
        shell.send("fg\r")
        shell.until(lambda: shell.screen.text(shell.screen.row) == "tide> 6 * 7", "not back")
        shell.send("8")
        shell.until(lambda: shell.screen.text(shell.screen.row) == "tide> 6 * 78", "dead after fg")
        shell.send("\r")
        shell.until(lambda: "468" in shell.screen.rows(), "no answer")

    def test_stopped_from_without_and_continued(self):
        program = self.open()
        program.send("6 * 7")
        self.expect(program, ["tide> 6 * 7^"])
        cooked = self.modes(program)
        cooked[3] |= termios.ICANON | termios.ECHO
        termios.tcsetattr(program.fd, termios.TCSANOW, [*cooked, termios.tcgetattr(program.fd)[6]])
        os.kill(program.pid, signal.SIGCONT)
        program.until(lambda: not self.modes(program)[3] & termios.ICANON, "the modes are not set again")
        program.send("\r")
        self.expect(program, ["tide> 6 * 7", "42", "tide> ^"])

    def test_the_terminal_is_left_as_it_was(self):
        for end in (lambda program: program.send(ctrl("D")), lambda program: program.send("os.exit(0)\r"),
                    lambda program: os.kill(program.pid, signal.SIGTERM), lambda program: os.kill(program.pid, signal.SIGHUP)):
            shell = Program(["/bin/sh", "-c", f"stty -a > before; {TIDE}; stty -a > after; echo done; read x"], self.home)
            self.addCleanup(shell.close)
            shell.until(shell.at_prompt, "no prompt")
            with open(f"/proc/{shell.pid}/task/{shell.pid}/children") as children:
                child = int(children.read().split()[0])
            self.assertTrue(shell.screen.pastes)
            end(type("Child", (), {"pid": child, "send": shell.send}))
            shell.until(lambda: "done" in shell.screen.rows(), "not ended")
            with open(os.path.join(self.home, "before")) as before, open(os.path.join(self.home, "after")) as after:
                self.assertEqual(before.read(), after.read())

    def test_ctrl_d_ends(self):
        program = self.open()
        program.send("do\r")
        self.expect(program, ["tide> do", "....>     ^"])
        program.send(ctrl("D"))
        self.assertEqual(program.wait(), 1)
        self.assertIn("'end' expected", program.raw.decode())
        self.assertFalse(program.screen.pastes)
        program = self.open()
        program.send(ctrl("D"))
        self.assertEqual(program.wait(), 0)

    def test_colours(self):
        program = self.open()
        program.send("local s = f('x', 1) -- why")
        self.expect(program, ["tide> local s = f('x', 1) -- why^"])
        styles = [program.screen.style_of(text) for text in ("tide>", "local", "f(", "'x'", "1)", "-- why", "s =")]
        self.assertEqual(styles, ["1;34;", "35;", "34;", "32;", "36;", "90;", ""])
        program.send(ctrl("C") + ctrl("L") + "f(a[1])" + LEFT)
        self.expect(program, ["tide> f(a[1]^)"])
        self.assertEqual([program.screen.style_of(text) for text in ("(a", ")", "[", "]")], ["1;4;", "1;4;", "", ""])

    def test_nothing_but_text_without_colour(self):
        program = self.open(NO_COLOR="1")
        program.send("local x = 1\r")
        self.expect(program, ["tide> local x = 1", "tide> ^"])
        program.send("loc")
        self.expect(program, ["tide> local x = 1", "tide> loc^"])  # a suggestion could not be told from it
        program.send("al\t")
        program.until(lambda: "tide> local" in program.screen.rows(), "no text")
        self.assertNotRegex(program.raw, rb"\x1b\[[0-9;]*m")

    def test_a_dumb_terminal(self):
        program = Program([TIDE], self.home, width=60, height=14, TERM="dumb")
        self.addCleanup(program.close)
        program.until(program.at_prompt, "no prompt")
        for line, shown in (("for i = 1, 2 do", "....> "), ("print(i)", "....> "), ("end", "tide> ")):
            before = program.line()
            program.send(line + "\r")
            program.until(lambda: program.line() > before and program.at_prompt(), "no prompt for " + line)
            self.assertTrue(program.screen.text(program.screen.row).startswith(shown.strip()))
        program.send("unfinished")
        program.until(lambda: "tide> unfinished" in program.screen.rows(), "not echoed")
        program.send(ctrl("C"))
        program.until(lambda: program.screen.rows()[-2:] == ["tide> unfinished^C", "tide>"], "not dropped")
        self.assertNotIn(b"\x1b", program.raw)
        program.send("1 + 1\r" + ctrl("D"))
        self.assertEqual(program.wait(), 0)
        self.assertEqual(program.screen.rows()[3:], ["tide> for i = 1, 2 do", "....> print(i)", "....> end", "1", "2",
                                                     "tide> unfinished^C", "tide> 1 + 1", "2", "tide>"])

    def test_twenty_columns(self):
        program = self.open(width=20, height=8)
        program.send("tide.zeros(")
        self.expect(program, ["tide> tide.zeros(^", "zeros(int[] size, {…"])
        program.send("2)\r")
        self.expect(program, ["tide> tide.zeros(2)", "[0., 0.]", "float32 (2) cpu", "tide> ^"])
        program.send("math.f\t")
        self.expect(program, ["tide> tide.zeros(2)", "[0., 0.]", "float32 (2) cpu", "tide> math.f^", "  floor  function", "  fmod   function",
                              "  frexp  function"])

    def test_a_megabyte_on_one_line(self):
        program = self.open(width=80, height=10)
        text = "#'" + "x" * (1 << 20) + "'"
        program.send_slowly(paste(text))
        program.send("\r")
        program.until(lambda: program.screen.rows()[-2:] == [str(1 << 20), "tide>"], "no answer")

    def test_a_nul_byte(self):
        program = self.open()
        program.send(paste("#'a\0b'"))
        self.expect(program, ["tide> #'a^@b'^"])
        program.send("\r")
        self.expect(program, ["tide> #'a^@b'", "3", "tide> ^"])

    def test_a_history_that_is_none(self):
        folder = os.path.join(self.home, ".local/state/tide")
        os.makedirs(folder)
        path = os.path.join(folder, "history")
        with open(path, "wb") as file:
            file.write(b"1.1\t1\tkept = 1\n\xff\xfe\0garbage\n1.1\t2\t" + b"y" * 100000 + b"\n1.1\tx\tno\n1.1\t3\ttorn")
        program = self.open()
        program.send("\x1b[5~" + "\x1b[5~")
        self.expect(program, ["tide> kept = 1^"])
        os.chmod(path, 0o400)
        program.send("\r")
        program.until(lambda: program.screen.text(program.screen.row) == "tide>" and program.screen.row > 0, "no prompt")
        program.send("kept\r")
        program.until(lambda: "1" in program.screen.rows(), "no answer")

    def test_the_history_survives_a_kill(self):
        program = self.open()
        program.send("kept = 1\r")
        self.expect(program, ["tide> kept = 1", "tide> ^"])
        os.kill(program.pid, signal.SIGKILL)
        self.assertEqual(program.wait(), -signal.SIGKILL)
        program = self.open()
        program.send(UP)
        self.expect(program, ["tide> kept = 1^"])

    def test_standard_output_elsewhere(self):
        path = os.path.join(self.home, "out")
        shell = Program(["/bin/sh", "-c", f"{TIDE} > {path}"], self.home)
        self.addCleanup(shell.close)
        shell.send("6 * 7\r" + ctrl("D"))
        self.assertEqual(shell.wait(), 0)
        with open(path) as file:
            self.assertEqual(file.read(), "tide> 42\ntide> \n")


for name, steps in SCENARIOS.items():
    setattr(Scenario, "test " + name, scenario(steps))


if __name__ == "__main__":
    unittest.main()
