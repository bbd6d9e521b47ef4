"""terminal.py: a tide at a pseudo-terminal, typed to and read from."""
import os
import pty
import re
import select
import signal
import time

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|\x07|\x1b\][^\x07]*\x07|\r")
PROMPT = b"tide> "


class Gone(Exception):
    """The program ended where it should not have, or says nothing more."""


class Terminal:
    def __init__(self, program, home, *arguments, **environment):
        variables = dict(os.environ, HOME=home, TERM="dumb", NO_COLOR="1", INPUTRC="/dev/null")
        variables.pop("XDG_STATE_HOME", None)
        variables.update(environment)
        self.new = b""  # what came since the last expectation
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(home)
            os.execve(program, [program, *arguments], variables)

    def send(self, text):
        os.write(self.fd, text.encode())

    def key(self, byte="\x03"):
        self.send(byte)

    def read(self, seconds):
        """Takes what comes within the time; False when nothing did."""
        if not select.select([self.fd], [], [], max(seconds, 0))[0]:
            return False
        try:
            data = os.read(self.fd, 1 << 16)
        except OSError:
            data = b""
        if not data:
            raise Gone("the program ended: " + self.tail())
        self.new += data
        return True

    def tail(self):
        return ESCAPES.sub("", self.new[-2000:].decode(errors="replace"))[-500:]

    def until(self, mark, patience, keep=1 << 16):
        """Reads until the bytes `mark` come; returns the text before them."""
        end = time.monotonic() + patience
        while mark not in self.new:
            if not self.read(end - time.monotonic()):
                raise TimeoutError(f"no {mark.decode()!r} after {patience} s: {self.tail()}")
            if len(self.new) > 4 * keep:
                self.new = self.new[-keep:]
        before, self.new = self.new.split(mark, 1)
        return ESCAPES.sub("", before.decode(errors="replace"))

    def waits(self, seconds):
        """Does the prompt come within the time?"""
        try:
            self.until(PROMPT, seconds)
            return True
        except TimeoutError:
            return False

    def evaluate(self, code, patience):
        """What a line prints."""
        self.send(code + "\r")
        self.until(b"\n", patience)
        return self.until(PROMPT, patience)

    def end(self, patience):
        """The exit code of a program that is about to end, negative where a signal ended it."""
        limit = time.monotonic() + patience
        try:
            while time.monotonic() < limit:
                self.read(0.1)
        except Gone:
            pass
        return self.close()

    def close(self):
        if self.pid:
            end = time.monotonic() + 1
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            while not pid and time.monotonic() < end:
                time.sleep(0.01)
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            if not pid:
                os.kill(self.pid, signal.SIGKILL)
                _, status = os.waitpid(self.pid, 0)
            os.close(self.fd)
            self.pid = 0
            self.code = os.waitstatus_to_exitcode(status)
        return self.code
