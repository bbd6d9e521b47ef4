"""One Tide in a process of its own, which answers calls over a pipe (driver.lua). What kills it or makes it
hang is an answer too; the next call starts another."""
import json
import os
import select
import struct
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
PATIENCE = 60  # seconds for one call


class Died(Exception):
    """Tide ended or hung during a call."""


class Tide:
    def __init__(self, program):
        self.program, self.process = program, None
        self.inventory = self._start()["inventory"]

    def _start(self):
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen([self.program, os.path.join(HERE, "driver.lua")], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
        return self._receive()[0]

    def _read(self, count):
        parts, output = [], self.process.stdout
        while count > 0:
            if not select.select([output], [], [], PATIENCE)[0]:
                raise Died(f"no answer for {PATIENCE} s")
            part = os.read(output.fileno(), min(count, 1 << 20))
            if not part:
                raise Died(self._last_words())
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def _last_words(self):
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass  # what was still to be written has nobody to read it
        said = self.process.stderr.read().decode(errors="replace").strip().replace("\n", " | ")
        return f"ended with status {self.process.wait()}: {said[-400:]}"

    def _receive(self):
        header, data = struct.unpack("<qq", self._read(16))
        return json.loads(self._read(header)), self._read(data)

    def call(self, chunk, data):
        """The answer (see driver.lua) and the numbers of its tensors. Raises Died."""
        if self.process is None:
            self._start()
        code = chunk.encode()
        try:
            try:
                self.process.stdin.write(struct.pack("<qq", len(code), len(data)) + code + data)
                self.process.stdin.flush()
            except BrokenPipeError:
                raise Died(self._last_words()) from None
            return self._receive()
        except Died:
            self.close()
            raise

    def close(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None
