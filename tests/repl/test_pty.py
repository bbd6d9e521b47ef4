"""The prompt of tide in a pseudo-terminal: editing, completion, history, Ctrl-C, Ctrl-D.

usage: test_pty.py path/to/tide
"""
import os
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import termios
import time
import unittest

from process_state import PATIENCE, resident, until, until_delivered, until_it_has_computed

TIDE = os.path.abspath(sys.argv.pop(1))
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|\x07|\x1b\][^\x07]*\x07")
UP = "\x1b[A"


CONTROL = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z@])|\x1b[=>]|\x1b\][^\x07]*\x07")


def painted(text):
    """A line as the terminal shows it, from what was written to it."""
    shown, at = [], 0
    while text:
        control = CONTROL.match(text)
        if control:
            count = int(control.group(1) or 1) if control.group(2) in list("CDP@") else 0
            if control.group(2) == "K":
                del shown[at:]
            elif control.group(2) == "P":
                del shown[at:at + count]
            elif control.group(2) == "@":
                shown[at:at] = " " * count
            elif control.group(2) in ("C", "D"):
                at += count if control.group(2) == "C" else -count
            text = text[control.end():]
            continue
        if text[0] == "\r":
            at = 0
        elif text[0] == "\b":
            at -= 1
        else:
            shown += " " * (at - len(shown))
            shown[at:at + 1] = text[0]
            at += 1
        text = text[1:]
    return "".join(shown).rstrip()


class Terminal:
    """A tide at a pseudo-terminal. `seen` is what it has written, escape sequences removed."""

    def __init__(self, home, *arguments, **environment):
        variables = dict(os.environ, HOME=home, TERM="xterm", NO_COLOR="1", INPUTRC="/dev/null")
        variables.pop("XDG_STATE_HOME", None)
        variables.update(environment)
        self.raw = b""
        self.mark = 0
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(home)
            os.execve(TIDE, [TIDE, *arguments], variables)

    def send(self, text):
        os.write(self.fd, text.encode())

    @property
    def seen(self):
        return ESCAPES.sub("", self.raw.decode(errors="replace")).replace("\r", "")

    def read(self, seconds):
        """Reads what comes within the time; False at the end."""
        ready, _, _ = select.select([self.fd], [], [], seconds)
        if not ready:
            return True
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            data = b""
        self.raw += data
        return bool(data)

    def expect(self, text):
        """Waits until text appears behind what was expected before; returns what came up to it."""
        end = time.monotonic() + PATIENCE
        while True:
            at = self.seen.find(text, self.mark)
            if at >= 0:
                before = self.seen[self.mark:at]
                self.mark = at + len(text)
                return before
            if time.monotonic() > end or not self.read(0.1):
                raise AssertionError(f"no {text!r} in {self.seen[self.mark:]!r}")

    def enter(self, code, answer="tide> "):
        """Types a line and waits for the answer; returns what was printed before it."""
        self.send(code + "\r")
        return self.expect(answer)

    def start(self, code):
        """Types a line and waits until it is evaluated, when the terminal's Ctrl-C is a signal."""
        self.send(code + "\r")
        self.expect("\n")
        until(lambda: termios.tcgetattr(self.fd)[3] & termios.ISIG, "a terminal that makes signals")

    def wait(self):
        """Exit code of the program, which is about to end."""
        end = time.monotonic() + PATIENCE
        while self.read(0.05):
            if time.monotonic() > end:
                os.kill(self.pid, signal.SIGKILL)
                raise AssertionError(f"still running: {self.seen[-500:]!r}")
        _, status = os.waitpid(self.pid, 0)
        self.pid = 0
        return os.waitstatus_to_exitcode(status)

    def close(self):
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)


class Prompt(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.home = folder.name

    def open(self, *arguments, **environment):
        terminal = Terminal(self.home, *arguments, **environment)
        self.addCleanup(terminal.close)
        terminal.expect("tide> ")
        return terminal

    def history(self):
        with open(os.path.join(self.home, ".local/state/tide/history")) as file:
            return [line.rstrip("\n").split("\t", 2)[2] for line in file]

    def test_banner_is_two_lines(self):
        terminal = self.open()
        self.assertEqual(terminal.seen[:terminal.seen.index("tide> ")].count("\n"), 2)

    def test_expression_prints_its_value(self):
        terminal = self.open()
        self.assertIn("\n42\n", terminal.enter("6 * 7"))
        self.assertIn("\n43\n", terminal.enter("_ + 1"))
        self.assertNotIn("\n5\n", terminal.enter("5;"))

    def test_multi_line_input_continues(self):
        terminal = self.open()
        terminal.enter("for i = 1, 2 do", "....> ")
        terminal.enter("print('row', i)", "....> ")
        out = terminal.enter("end")
        self.assertIn("row\t1\nrow\t2\n", out.expandtabs().replace("row     ", "row\t"))

    def test_continuation_is_indented(self):
        terminal = self.open()
        terminal.enter("function twice(x)", "....>     ")
        terminal.enter("return 2 * x", "....>     ")
        terminal.enter("end")
        self.assertIn("\n8\n", terminal.enter("twice(4)"))
        self.assertEqual(self.history()[0], "function twice(x)\\n    return 2 * x\\nend")

    def test_what_closes_a_block_moves_left(self):
        terminal = self.open()
        lines = ["for i = 1, 2 do", "if i > 1 then", "print('yes')", "else", "endless = i", "elsewhere = {", "}", "end"]
        for line in lines:
            terminal.enter(line, "....> ")
        terminal.enter("end")
        text = terminal.raw.decode()
        shown = [painted(line) for line in text[text.index("for i"):].split("\n")]
        self.assertEqual([line.replace("....> ", "") for line in shown[:9]], [
            "for i = 1, 2 do", "    if i > 1 then", "        print('yes')", "    else", "        endless = i",
            "        elsewhere = {", "        }", "    end", "end"])
        self.assertEqual(self.history(), [
            r"for i = 1, 2 do\n    if i > 1 then\n        print('yes')\n    else\n        endless = i\n"
            r"        elsewhere = {\n        }\n    end\nend"])

    def test_ctrl_d_leaves_from_an_indented_line(self):
        terminal = self.open()
        terminal.enter("while true do", "....> ")
        terminal.send("\x04")
        self.assertEqual(terminal.wait(), 1)
        self.assertIn("'end' expected", terminal.seen)

    def test_ctrl_d_deletes_within_a_line(self):
        terminal = self.open()
        terminal.send("6 * 778\x02\x04")
        self.assertIn("\n462\n", terminal.enter(""))

    def test_quoted_string_does_not_go_on(self):
        terminal = self.open()
        self.assertIn("unfinished string", terminal.enter("x = 'abc"))
        terminal.enter("'ab\\", "....> ")
        self.assertIn('"ab\\ncd"', terminal.enter("cd'"))

    def test_tab_completes(self):
        terminal = self.open()
        terminal.send("string.for\t")
        terminal.expect("string.format")
        terminal.enter("('%d', 12)")
        self.assertIn('\n"12"\n', terminal.seen)
        terminal.enter("longish_table = {first_field = 7}")
        terminal.send("longish_t\t.fir\t")
        self.assertIn("\n7\n", terminal.enter(""))

    def test_tab_twice_lists(self):
        terminal = self.open()
        terminal.send("string.re\t\t")
        out = terminal.expect("reverse")
        self.assertIn("rep", out)
        terminal.send("\x15")
        terminal.enter("1")

    def test_tab_completes_on_a_continuation_line(self):
        terminal = self.open()
        terminal.enter("do", "....> ")
        terminal.send("print(string.upp\t('shout'))")
        terminal.expect("string.upper('shout'))")
        self.assertIn("SHOUT", terminal.enter("\rend"))

    def test_tab_completes_files_in_strings(self):
        with open(os.path.join(self.home, "my-long.file.lua"), "w") as file:
            file.write("print('file ran')")
        terminal = self.open()
        terminal.send("dofile('my-\t')")
        self.assertIn("file ran", terminal.enter(""))

    def test_ctrl_c_drops_the_line(self):
        terminal = self.open()
        terminal.send("x = 'never'")
        terminal.expect("never'")
        terminal.send("\x03")
        terminal.expect("tide> ")
        self.assertIn("\ntrue\n", terminal.enter("x == nil"))

    def test_ctrl_c_drops_unfinished_input(self):
        terminal = self.open()
        terminal.enter("for i = 1, 3 do", "....> ")
        terminal.send("\x03")
        terminal.expect("tide> ")
        self.assertIn("\n2\n", terminal.enter("1 + 1"))

    def test_ctrl_c_stops_a_loop(self):
        terminal = self.open()
        for code in ("while true do end", "while true do pcall(error) end",
                     "coroutine.wrap(function() while true do end end)()", "io.read()"):
            terminal.start(code)
            time.sleep(0.2)
            terminal.send("\x03")
            terminal.expect("interrupted")
            terminal.expect("tide> ")
        self.assertIn("\n2\n", terminal.enter("1 + 1"))

    def test_ctrl_c_stops_a_loop_over_workers_which_go_on(self):
        terminal = self.open()
        terminal.enter("slow = tide.ones(1); get = function(k) while slow[1]:item() == 1 do end return k end")
        terminal.enter("loader = tide.data.DataLoader(tide.data.map({1, 2, 3}, get), {num_workers = 2})")
        terminal.start("for x in loader do end")
        time.sleep(0.5)
        terminal.send("\x03")
        terminal.expect("interrupted")
        terminal.expect("tide> ")
        terminal.enter("slow[1], n = 0, 0; for x in loader do n = n + 1 end")
        self.assertIn("\n3\n", terminal.enter("n"))

    def test_ctrl_c_stops_a_loop_of_programs(self):
        terminal = self.open()
        terminal.start("while true do os.execute('sleep 5') end")
        time.sleep(0.3)
        terminal.send("\x03")
        terminal.expect("interrupted")
        terminal.expect("tide> ")
        self.assertIn('"exit"\n2\n', terminal.enter("os.execute('exit 2')"))

    def test_ctrl_c_between_two_programs_is_not_lost(self):
        terminal = self.open()
        for k in range(12):
            terminal.start("while true do os.execute('true') end")
            time.sleep(0.1 + 0.003 * k)
            terminal.send("\x03")
            terminal.expect("interrupted")
            terminal.expect("tide> ")

    def test_a_program_may_have_use_for_ctrl_c_itself(self):
        terminal = self.open()
        terminal.start("os.execute([[trap 'echo heard' INT; echo ready; sleep 1; sleep 1; echo done]]); print('on')")
        terminal.expect("ready")
        time.sleep(0.5)
        terminal.send("\x03")
        terminal.expect("heard")
        terminal.expect("done")
        terminal.expect("on")

    def test_ctrl_c_that_nothing_heeds_ends_the_program_at_the_fourth(self):
        terminal = self.open()
        line = "('a'):rep(40):find(('a*'):rep(30) .. 'b')"
        terminal.start(line)
        until_it_has_computed(terminal.pid)  # find has been called
        for answer in ("^C", "waits for string.find (", "Ctrl-C once more ends tide; the history is saved"):
            terminal.send("\x03")
            terminal.expect(answer)
            until_delivered(terminal.pid)
            time.sleep(0.4)  # what comes sooner does not count
        time.sleep(1.2)
        terminal.send("\x03")
        self.assertEqual(terminal.wait(), -signal.SIGINT)
        self.assertEqual(self.history(), [line])

    def test_ctrl_c_ends_printing_and_leaves_the_terminal_as_it_was(self):
        terminal = self.open()
        for code in ("io.write(('text '):rep(1e8))", "while true do print(('text '):rep(1000)) end"):
            terminal.send(code + "\r")
            terminal.expect("text text text")
            terminal.send("\x03")
            terminal.expect("interrupted")
            terminal.expect("tide> ")
        self.assertIn("\n2\n", terminal.enter("1 + 1"))
        terminal.send("\x04")
        self.assertEqual(terminal.wait(), 0)

    def test_ctrl_c_at_the_prompt_with_a_thread_pool(self):
        terminal = self.open()
        terminal.enter("total = tide.ones(2000000):exp():sum()")
        for _ in range(10):
            terminal.send("dropped = 1")
            terminal.expect("dropped = 1")
            terminal.send("\x03")
            terminal.expect("tide> ")
        self.assertIn("\ntrue\n", terminal.enter("dropped == nil"))

    def test_memory_kept_for_results_goes_back_to_the_system_while_nobody_types(self):
        terminal = self.open()
        terminal.enter("tide.ones(1)")
        before, end = resident(terminal.pid), time.monotonic() + PATIENCE
        terminal.enter("do local x = tide.ones(25, 1000, 1000) end collectgarbage()")
        while resident(terminal.pid) > before + 50e6:
            self.assertLess(time.monotonic(), end, f"{resident(terminal.pid)} bytes, {before} before")
            terminal.read(0.2)
        terminal.send("1 + ")
        self.assertIn("\n2\n", terminal.enter("1"))

    def test_tensor_methods_complete(self):
        terminal = self.open()
        terminal.enter("weights = tide.ones(2, 3)")
        terminal.send("weights:is_conti\t()")
        self.assertIn("\ntrue\n", terminal.enter(""))

    def test_ctrl_d_leaves(self):
        terminal = self.open()
        terminal.enter("error('an error before')")
        terminal.send("\x04")
        self.assertEqual(terminal.wait(), 0)

    def test_os_exit_leaves_with_its_code(self):
        terminal = self.open()
        terminal.send("os.exit(7)\r")
        self.assertEqual(terminal.wait(), 7)

    def test_error_and_a_living_session(self):
        terminal = self.open()
        out = terminal.enter("local function f() error('boom') end f()")
        self.assertIn(":1: boom\nstack traceback:\n", out)
        self.assertIn("    y = = 1\n        ^\n", terminal.enter("y = = 1"))
        self.assertIn("did you mean 'print'", terminal.enter("pirnt(1)"))
        self.assertIn("stack overflow", terminal.enter("function g() return 1 + g() end g()"))
        self.assertIn("\n3\n", terminal.enter("1 + 2"))

    def test_history_comes_back_with_up(self):
        terminal = self.open()
        terminal.enter("alpha = 11")
        terminal.enter("alpha")
        terminal.send(UP + UP)
        terminal.expect("alpha = 11")
        terminal.send("1")
        terminal.enter("")
        self.assertIn("\n111\n", terminal.enter("alpha"))

    def test_history_lasts(self):
        terminal = self.open()
        terminal.enter("kept = 'from the first'")
        terminal.enter("do", "....> ")
        terminal.enter("lines = 2", "....> ")
        terminal.enter("end")
        terminal.send("\x04")
        terminal.wait()
        self.assertEqual(self.history(), ["kept = 'from the first'", "do\\n    lines = 2\\nend"])
        terminal = self.open()
        terminal.send(UP)
        terminal.expect("lines = 2")
        terminal.enter("")
        self.assertIn("\n2\n", terminal.enter("lines"))

    def test_two_sessions_share_the_file(self):
        one, two = self.open(), self.open()
        for i in range(5):
            one.enter(f"one = {i}")
            two.enter(f"two = {i}")
        self.assertEqual(sorted(self.history()), sorted(f"{n} = {i}" for n in ("one", "two") for i in range(5)))

    def test_paste_of_several_lines_is_one_input(self):
        terminal = self.open()
        terminal.send("\x1b[200~for i = 1, 2 do\n\tprint('pasted', i)\nend\x1b[201~")
        time.sleep(0.2)
        self.assertNotIn("pasted  1", terminal.seen.expandtabs())
        terminal.enter("")
        self.assertRegex(terminal.seen.expandtabs(), r"\npasted +1\npasted +2\n")
        self.assertEqual(len(self.history()), 1)

    def test_magics_and_questions(self):
        terminal = self.open()
        self.assertIn("3 runs, 10 loops each)", terminal.enter("%timeit -n 10 -r 3 math.sin(1)"))
        self.assertIn("Wall time:", terminal.enter("%time 1 + 1"))
        self.assertIn("string.rep", terminal.enter("?string.rep"))
        terminal.enter("%%timeit -n 2 -r 2", "....> ")
        terminal.enter("math.cos(2)", "....> ")
        self.assertIn("2 runs, 2 loops each", terminal.enter(""))

    def test_reading_from_the_terminal(self):
        terminal = self.open()
        terminal.start("name = io.read()")
        time.sleep(0.2)
        terminal.send("Luna\r")
        terminal.expect("tide> ")
        self.assertIn('\n"Luna"\n', terminal.enter("name"))

    def test_broken_pipe_is_no_end(self):
        terminal = self.open()
        terminal.enter("p = io.popen('true', 'w') for i = 1, 100 do p:write(('x'):rep(1e4)) end p:close()")
        self.assertIn("\n2\n", terminal.enter("1 + 1"))

    def test_nothing_but_text_without_colour(self):
        terminal = self.open(TERM="dumb")
        terminal.enter("error('plain')")
        self.assertNotIn(b"\x1b[3", terminal.raw)
        terminal = self.open()
        terminal.enter("error('plain')")
        self.assertNotIn(b"\x1b[31m", terminal.raw)

    def test_colour_where_it_may_be(self):
        terminal = self.open(NO_COLOR="")
        terminal.enter("error('red')")
        self.assertIn(b"\x1b[31m", terminal.raw)

    def test_history_that_cannot_be_written(self):
        terminal = self.open(XDG_STATE_HOME="/proc/no/such")
        self.assertIn("history is not saved", terminal.enter("1 + 1"))
        self.assertNotIn("history is not saved", terminal.enter("1 + 2"))

    def test_no_home(self):
        terminal = self.open(HOME="")
        self.assertIn("\n2\n", terminal.enter("1 + 1"))

    def test_narrow_terminal(self):
        terminal = self.open()
        import fcntl
        import struct
        import termios
        fcntl.ioctl(terminal.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 10, 20, 0, 0))
        terminal.expect("tide> ")  # drawn anew
        self.assertIn("30", terminal.enter("{10, 20, 30}"))
        out = terminal.enter("(function() local t = {} for i = 1, 20 do t[i] = i end return t end)()")
        self.assertTrue(max(map(len, out.split("\n")[-6:])) <= 20, out)

    def test_stdin_of_a_pipe_is_a_script(self):
        result = subprocess.run([TIDE], input="print('piped')", text=True, capture_output=True)
        self.assertEqual((result.stdout, result.returncode), ("piped\n", 0))


if __name__ == "__main__":
    unittest.main()
