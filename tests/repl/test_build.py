"""The first build shows how far it is and how long it will take.

usage: TIDE_SOURCE=repository test_build.py
"""
import contextlib
import os
import pty
import subprocess
import tempfile
import unittest

PACKAGES = os.path.join(os.environ["TIDE_SOURCE"], "cmake/packages.sh")
LINES = r"""printf '[1/4] first\n'; sleep 5; printf 'a warning\n[2/4] second\n[4/4] last\n'"""


class Build(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.log = os.path.join(folder.name, "log")
        self.command = ["bash", "-c", f". {PACKAGES}; {{ {LINES}; }} | tide_progress {self.log}"]

    def check_log(self):
        with open(self.log) as file:
            self.assertEqual(file.read(), "[1/4] first\na warning\n[2/4] second\n[4/4] last\n")

    def test_progress_on_a_terminal(self):
        ours, theirs = pty.openpty()
        subprocess.run(self.command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=theirs, check=True)
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError), open(ours, "rb", buffering=0) as terminal:
            while piece := terminal.read(4096):  # it ends with an error when nobody writes any more
                shown += piece
        shown = shown.decode()
        steps = [text.replace("\x1b[K", "") for text in shown.split("\r")]
        self.assertEqual(steps[1], "tide: 1 of 4")
        self.assertRegex(steps[2], r"^tide: 2 of 4, about [0-9]+ s left$")
        self.assertEqual(steps[3:], ["tide: 4 of 4", ""])
        self.check_log()

    def test_nothing_but_the_log_where_it_is_short_and_nobody_watches(self):
        done = subprocess.run(self.command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
        self.assertEqual((done.stdout, done.stderr), ("", ""))
        self.check_log()


if __name__ == "__main__":
    unittest.main()
