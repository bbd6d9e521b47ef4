"""A small terminal for tests: takes what a program writes to it and knows what stands where, in which
style; and a program behind a pseudo-terminal of that size, to type to.

Rows that become too long when the window gets narrower are broken, as most terminals do.
"""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
import unicodedata

PATIENCE = float(os.environ.get("PATIENCE", 60))  # seconds
SEQUENCE = re.compile(r"\x1b\[([0-9;?]*)([@-~])|\x1b[^\[]")


def columns(char):
    if unicodedata.category(char) in ("Mn", "Me") or char in "\u200c\u200d":
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


class Screen:
    def __init__(self, width, height):
        self.width, self.height = width, height
        self.cells = [[] for _ in range(height)]  # of each row: (text, style); "" is a right half
        self.row = self.col = 0
        self.style = ""
        self.pending = ""
        self.unknown = []
        self.pastes = False  # bracketed paste is on
        self.gone = []  # rows that have left at the top

    def put(self, char):
        wide = columns(char)
        row = self.cells[self.row]
        if wide == 0:
            at = min(self.col, len(row)) - 1
            while at > 0 and row[at][0] == "":
                at -= 1
            row[at] = (row[at][0] + char, row[at][1])
            return
        if self.col + wide > self.width:
            self.col = 0
            self.down()
            row = self.cells[self.row]
        row += [(" ", "")] * (self.col + wide - len(row))
        if row[self.col][0] == "":
            row[self.col - 1] = (" ", "")
        if self.col + wide < len(row) and row[self.col + wide][0] == "":
            row[self.col + wide] = (" ", "")
        row[self.col:self.col + wide] = [(char, self.style)] + [("", self.style)] * (wide - 1)
        self.col += wide

    def down(self):
        if self.row < self.height - 1:
            self.row += 1
        else:
            self.gone.append(self.text(0))
            self.cells = self.cells[1:] + [[]]

    def control(self, parameters, final):
        count = max(int(parameters.split(";")[0] or 0) if parameters[:1] != "?" else 0, 1)
        col = min(self.col, self.width - 1)
        if final == "m":
            self.style = "" if parameters in ("", "0") else self.style + parameters + ";"
        elif parameters == "?2004":
            self.pastes = final == "h"
        elif final in "AB":
            self.row = max(0, min(self.height - 1, self.row + (count if final == "B" else -count)))
            self.col = col
        elif final in "CD":
            self.col = max(0, min(self.width - 1, col + (count if final == "C" else -count)))
        elif final == "H":
            self.row = self.col = 0
        elif final == "K":
            del self.cells[self.row][self.col:]
        elif final == "J" and parameters in ("", "0"):
            del self.cells[self.row][self.col:]
            for row in range(self.row + 1, self.height):
                self.cells[row] = []
        elif final == "J" and parameters == "2":
            self.cells = [[] for _ in range(self.height)]
        elif (parameters, final) != ("3", "J"):
            self.unknown.append(parameters + final)

    def write(self, text):
        text, self.pending = self.pending + text, ""
        at = 0
        while at < len(text):
            char = text[at]
            found = SEQUENCE.match(text, at) if char == "\x1b" else None
            if char == "\x1b" and not found:
                self.pending = text[at:]
                return
            if found:
                if found.group(2):
                    self.control(found.group(1), found.group(2))
                else:
                    self.unknown.append(found.group(0))
            elif char == "\r":
                self.col = 0
            elif char == "\n":
                self.down()
            elif char == "\b":
                self.col = max(0, min(self.col, self.width - 1) - 1)
            elif char == "\t":
                self.col = min(self.width - 1, self.col // 8 * 8 + 8)
            elif char >= " ":
                self.put(char)
            at = found.end() if found else at + 1

    def resize(self, width, height):
        rows, cursor = [], 0
        for number, row in enumerate(self.cells):
            if number == self.row:
                cursor = len(rows) + self.col // width
            rows += [row[at:at + width] for at in range(0, max(len(row), 1), width)]
        while len(rows) > 1 and not rows[-1] and len(rows) - 1 > cursor:
            rows.pop()
        self.col %= width
        leave = max(0, cursor - height + 1)
        self.gone += ["".join(text for text, _ in row).rstrip() for row in rows[:leave]]
        self.cells = (rows[leave:] + [[] for _ in range(height)])[:height]
        self.row = cursor - leave
        self.width, self.height = width, height

    def text(self, row):
        return "".join(text for text, _ in self.cells[row]).rstrip()

    def rows(self):
        """Texts of the rows, those at the end that are empty left out."""
        rows = [self.text(row) for row in range(self.height)]
        while rows and not rows[-1]:
            rows.pop()
        return rows

    def style_of(self, text):
        """The style in which the text stands, where it is found first."""
        for row in self.cells:
            at = "".join(char or "\0" for char, _ in row).find(text)
            if at >= 0:
                return row[at][1]
        return None


class Program:
    """A program behind a terminal."""

    def __init__(self, arguments, home, width=60, height=14, **environment):
        variables = dict(os.environ, HOME=home, TERM="xterm-256color", PS1="$ ")
        for name in ("XDG_STATE_HOME", "NO_COLOR", "COLUMNS", "LINES"):
            variables.pop(name, None)
        variables.update(environment)
        self.screen = Screen(width, height)
        self.raw = b""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
            os.chdir(home)
            os.execve(arguments[0], arguments, variables)
        self.partial = b""

    def send(self, text):
        data = text if isinstance(text, bytes) else text.encode()
        while data:
            data = data[os.write(self.fd, data):]

    def send_slowly(self, text):
        """A long text, while what comes back is read."""
        data = text.encode()
        os.set_blocking(self.fd, False)
        while data:
            try:
                data = data[os.write(self.fd, data[:2048]):]
            except BlockingIOError:
                pass
            self.read(0)
        os.set_blocking(self.fd, True)

    def read(self, seconds):
        """Takes what comes within the time; None at the end, False when nothing came."""
        if not select.select([self.fd], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            return None
        self.raw += data
        data = self.partial + data
        whole = len(data)
        for back in range(1, min(4, len(data)) + 1):  # a code point that is not all there
            if data[-back] >= 0xC0:
                whole -= back if back < (2 if data[-back] < 0xE0 else 3 if data[-back] < 0xF0 else 4) else 0
            if data[-back] < 0x80 or data[-back] >= 0xC0:
                break
        self.partial = data[whole:]
        self.screen.write(data[:whole].decode(errors="replace"))
        return bool(data) or None

    def line(self):
        """The line of the cursor, counted with those that have left the screen."""
        return len(self.screen.gone) + self.screen.row

    def at_prompt(self):
        left = "".join(text for text, _ in self.screen.cells[self.screen.row][:self.screen.col])
        return re.fullmatch(r"(tide|\.\.\.\.)> *", left) is not None

    def until(self, holds, what):
        """Reads until it holds."""
        end = time.monotonic() + PATIENCE
        while not holds():
            if time.monotonic() > end or self.read(0.2) is None:
                shown = "\n".join(self.screen.rows())
                raise AssertionError(f"{what}\n--- shown, cursor {self.screen.row}, {self.screen.col}:\n{shown}")

    def resize(self, width, height):
        while self.read(0.05):
            pass
        self.screen.resize(width, height)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def wait(self):
        """Exit code of the program, which is about to end."""
        end = time.monotonic() + PATIENCE
        while self.read(0.05) is not None and time.monotonic() < end:
            pass
        _, status = os.waitpid(self.pid, 0)
        self.pid = 0
        return os.waitstatus_to_exitcode(status)

    def close(self):
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)
