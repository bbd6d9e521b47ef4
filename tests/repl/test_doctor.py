"""tide --doctor: what it finds on a machine whose faults the test makes, and what it says of files of each kind, whole,
cut off and hostile, all made here.

usage: TIDE=path/to/tide test_doctor.py
"""
import fcntl
import gzip
import io
import json
import os
import pickle
import pty
import random
import resource
import shutil
import stat
import struct
import subprocess
import sys
import tempfile
import termios
import types
import unittest
import zipfile
import zlib

TIDE = os.environ["TIDE"]
WORDS = ("ok", "note", "problem")


# Does the program start with addresses for a gigabyte? Sanitizers don't.
HAS_ADDRESSES = subprocess.run([TIDE, "--version"], stdin=subprocess.DEVNULL, capture_output=True, check=False, preexec_fn=lambda:
                               resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))).returncode == 0


class Doctor(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="tide doctor ")  # a name with a space in it
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.home = os.path.join(self.folder, "home")
        os.mkdir(self.home)

    def doctor(self, *arguments, limits=None, **variables):
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith(("XDG_", "OMP_", "GOMP_", "JUPYTER_", "LC_", "TIDE_")) and name not in
                       ("LANG", "VIRTUAL_ENV", "CONDA_PREFIX", "NO_COLOR")}
        environment.update(HOME=self.home, LC_ALL="C.UTF-8")
        environment.update(variables)
        environment = {name: value for name, value in environment.items() if value is not None}
        return subprocess.run([TIDE, "--doctor", *arguments], capture_output=True, text=True, check=False, timeout=120,
                              env=environment, cwd=self.folder, stdin=subprocess.DEVNULL, preexec_fn=limits)

    def findings(self, *arguments, **more):
        """(word, topic, rest) of each line; the exit code follows from the words."""
        done = self.doctor(*arguments, **more)
        lines = [(line[:8].strip(), line[9:21].strip(), line[22:]) for line in done.stdout.splitlines()]
        self.assertTrue(lines, done)
        for word, _, _ in lines:
            self.assertIn(word, WORDS, done.stdout)
        self.assertEqual(done.returncode, 1 if any(word == "problem" for word, _, _ in lines) else 0, done.stdout)
        return lines

    def has(self, lines, word, topic, text):
        self.assertTrue(any(w == word and t == topic and text in rest for w, t, rest in lines), (word, topic, text, lines))


class Machine(Doctor):
    def test_all_topics_are_told(self):
        lines = self.findings()
        self.assertLessEqual({"tide", "libraries", "instructions", "processors", "OpenMP", "locale", "terminal", "folders",
                              "leftovers", "Jupyter", "CUDA"}, {topic for _, topic, _ in lines})
        for name in ("oneDNN", "OpenBLAS", "SLEEF", "zlib", "libpng", "ZeroMQ", "libsodium"):
            self.assertTrue(any(topic == "libraries" and rest.startswith(name) for _, topic, rest in lines), name)

    def test_json_says_the_same(self):
        done = self.doctor("--json")
        found = json.loads(done.stdout)["findings"]
        self.assertEqual([(f["level"], f["topic"]) for f in found], [line[:2] for line in self.findings()])

    def test_the_environment(self):
        for variables, word, topic, text in (
                ({"OMP_WAIT_POLICY": "active"}, "note", "OpenMP", "mend: unset OMP_WAIT_POLICY"),
                ({"OMP_NUM_THREADS": "many"}, "problem", "OpenMP", "mend: unset OMP_NUM_THREADS"),
                ({"OMP_NUM_THREADS": "1000"}, "note", "OpenMP", "mend: export OMP_NUM_THREADS="),
                ({"OMP_PROC_BIND": "true"}, "note", "OpenMP", "mend: unset OMP_PROC_BIND"),
                ({"GOMP_SPINCOUNT": "infinity"}, "note", "OpenMP", "mend: unset GOMP_SPINCOUNT"),
                ({"LC_ALL": "C"}, "note", "locale", "mend: export LC_ALL=C.UTF-8"),
                ({"LC_ALL": "xx_XX.UTF-8"}, "problem", "locale", "not installed"),
                ({"TIDE_CPU": "abacus"}, "problem", "instructions", "mend: unset TIDE_CPU"),
                ({"HOME": None}, "problem", "folders", "HOME is not set")):
            with self.subTest(variables=variables):
                self.has(self.findings(**variables), word, topic, text)

    def test_the_terminal(self):
        for variables, columns, word, text in (({"TERM": "dumb"}, 80, "note", "mend: export TERM="), ({"TERM": None}, 80, "note", "TERM=:"),
                                               ({"TERM": "xterm"}, 20, "note", "mend: stty columns 80"),
                                               ({"TERM": "xterm", "NO_COLOR": "1"}, 80, "note", "mend: unset NO_COLOR"),
                                               ({"TERM": "xterm"}, 80, "ok", "xterm of 80 columns, 24 rows")):
            with self.subTest(variables=variables, columns=columns):
                master, slave = pty.openpty()
                fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
                environment = {**os.environ, "HOME": self.home, **variables}
                environment = {name: value for name, value in environment.items() if value is not None
                               and (name != "NO_COLOR" or name in variables)}
                process = subprocess.Popen([TIDE, "--doctor"], stdin=slave, stdout=slave, stderr=slave, env=environment, cwd=self.folder)
                os.close(slave)
                shown = b""
                while True:
                    try:
                        piece = os.read(master, 65536)
                    except OSError:  # the other side is closed
                        break
                    if not piece:
                        break
                    shown += piece
                process.wait()
                os.close(master)
                lines = [line for line in shown.decode().splitlines() if line[9:21].strip() == "terminal"]
                self.assertTrue(any(line.startswith(word) and text in line for line in lines), lines)

    def test_half_an_install(self):
        """The program and libtide.so without the modules and the kernel that belong beside them."""
        half = os.path.join(self.folder, "half")
        os.mkdir(half)
        program = os.path.realpath(TIDE)
        loaded = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
        library = next(line.split()[2] for line in loaded.splitlines() if "libtide.so" in line)
        for path in (program, library):
            shutil.copy(path, os.path.join(half, os.path.basename(path)))
        done = subprocess.run([os.path.join(half, "tide"), "--doctor"], capture_output=True, text=True, check=False, cwd=self.folder,
                              env={**os.environ, "HOME": self.home, "LD_LIBRARY_PATH": half})
        self.assertEqual(done.returncode, 1, done)
        for text in ("oneDNN (not loaded); mend: sudo apt-get install libdnnl-dev", "OpenBLAS (not loaded); mend: ", "no tide-kernel beside"):
            self.assertIn(text, done.stdout)

    @unittest.skipUnless(HAS_ADDRESSES, "sanitizers need all addresses")
    def test_limits(self):
        def few_addresses(): resource.setrlimit(resource.RLIMIT_AS, (800 << 20, 800 << 20))
        def few_files(): resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        self.has(self.findings(limits=few_addresses), "problem", "limits", "ulimit -v")
        self.has(self.findings(limits=few_files), "note", "limits", "ulimit -n")

    def test_one_processor_of_several(self):
        if os.cpu_count() < 2:
            self.skipTest("one processor")
        self.has(self.findings(limits=lambda: os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})), "note", "processors", "mend: taskset")

    def test_folders(self):
        state, config = (os.path.join(self.home, *p) for p in ((".local", "state", "tide"), (".config", "tide")))
        os.makedirs(config)
        with open(os.path.join(config, "init.lua"), "w", encoding="utf-8") as file:
            file.write("x = = 1\n")
        lines = self.findings()
        self.has(lines, "problem", "folders", "init.lua:1:")
        self.has(lines, "ok", "folders", "is made when it is needed")
        os.makedirs(os.path.join(state, "history"))  # where a file belongs
        self.has(self.findings(), "problem", "history", "is a folder")
        os.rmdir(os.path.join(state, "history"))
        with open(os.path.join(state, "history"), "w", encoding="utf-8") as file:
            file.write("1.1\t1\tx\n1.1\t2\tto")
        self.has(self.findings(), "note", "history", "ends within a line")
        blocked = os.path.join(self.home, "blocked")
        with open(blocked, "w", encoding="utf-8"):
            pass
        self.has(self.findings(XDG_CONFIG_HOME=blocked), "problem", "folders", "is no folder")

    @unittest.skipIf(os.geteuid() == 0, "root may write everywhere")
    def test_a_folder_that_may_not_be_written(self):
        os.chmod(self.home, 0o500)
        self.addCleanup(os.chmod, self.home, 0o700)
        self.has(self.findings(), "problem", "folders", "mend: chmod u+wx")

    def test_leftovers(self):
        draft = os.path.join(self.folder, ".weights.draft")
        with open(draft, "w", encoding="utf-8"):
            pass
        self.has(self.findings(), "note", "leftovers", "mend: rm ./.weights.draft")
        with open(draft, encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            self.has(self.findings(), "note", "leftovers", "being written by another process")
        os.makedirs(os.path.join(self.home, ".cache"))
        with open(os.path.join(self.home, ".cache", "tide-peak.part"), "w", encoding="utf-8"):
            pass
        self.has(self.findings(), "note", "leftovers", "tide-peak.part was left")

    def test_kernelspecs(self):
        self.has(self.findings(), "note", "Jupyter", "--install --user")
        folder = os.path.join(self.home, ".local", "share", "jupyter", "kernels", "tide")
        os.makedirs(folder)
        path, kernel = os.path.join(folder, "kernel.json"), os.path.join(os.path.dirname(os.path.realpath(TIDE)), "tide-kernel")
        other = os.path.join(self.folder, "other")
        with open(other, "w", encoding="utf-8"):
            pass
        for argv, word, text in ([[kernel, "-f"], "ok" if os.path.exists(kernel) else "problem", "names"],
                                 [["/no/such/kernel"], "problem", "does not exist"], [[], "problem", "has no argv"],
                                 [[other], "problem", "mend: chmod +x"], [["tide-kernel"], "note", "on PATH"]):
            with open(path, "w", encoding="utf-8") as file:
                json.dump({"argv": argv}, file)
            self.has(self.findings(), word, "Jupyter", text)
        os.chmod(other, stat.S_IRWXU)
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"argv": [other]}, file)
        self.has(self.findings(), "note" if os.path.exists(kernel) else "ok", "Jupyter", "names")
        with open(path, "w", encoding="utf-8") as file:
            file.write("{")
        self.has(self.findings(), "problem", "Jupyter", "JSON")

    def test_what_does_not_go_together_is_refused(self):
        for options in (["-e", "1"], ["-i"], ["--profile", "t.json"], ["--advise"], ["--bottleneck"]):
            done = self.doctor(*options)
            self.assertEqual((done.returncode, done.stdout), (2, ""), options)


# ---- files ----

def npy(descr, shape, data, version=1, order=False):
    head = repr({"descr": descr, "fortran_order": order, "shape": shape}).encode()
    wide = "<H" if version == 1 else "<I"
    head = head.ljust(63 + (len(head) // 64) * 64) + b"\n"
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack(wide, len(head)) + head + data


def archive(entries, method=zipfile.ZIP_STORED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as file:
        for name, data in entries.items():
            file.writestr(name, data)
    return out.getvalue()


def safetensors(header, data, length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


class Storage:
    def __init__(self, kind, key, n):
        self.kind, self.key, self.n = kind, key, n


def rebuild(*arguments):
    raise AssertionError("nothing is rebuilt here")


class Tensor:
    def __init__(self, kind, key, sizes):
        self.kind, self.key, self.sizes = kind, key, sizes

    def __reduce__(self):
        n = 1
        for size in self.sizes:
            n *= size
        return rebuild, (Storage(self.kind, self.key, n), 0, self.sizes, (1,) * len(self.sizes), False, {})


class Evil:
    def __reduce__(self):
        return os.mkdir, ("run by a pickle",)


def torch_pickle(value, legacy=False):
    """Bytes as torch.save pickles: its names stand in modules that are there for as long."""
    torch, utils, kinds = types.ModuleType("torch"), types.ModuleType("torch._utils"), {}
    for kind in ("Float", "Long", "ComplexFloat"):
        kinds[kind] = type(kind + "Storage", (), {"__module__": "torch"})
        setattr(torch, kind + "Storage", kinds[kind])
    rebuild.__module__, rebuild.__qualname__, rebuild.__name__ = "torch._utils", "_rebuild_tensor_v2", "_rebuild_tensor_v2"
    utils._rebuild_tensor_v2 = rebuild
    sys.modules.update({"torch": torch, "torch._utils": utils})

    class Pickler(pickle.Pickler):
        def persistent_id(self, obj):
            if isinstance(obj, Storage):
                return ("storage", kinds[obj.kind], obj.key, "cpu", obj.n) + ((None,) if legacy else ())
            return None
    out = io.BytesIO()
    Pickler(out, 2).dump(value)
    del sys.modules["torch"], sys.modules["torch._utils"]
    return out.getvalue()


def torch_archive(value, storages):
    return archive({"m/data.pkl": torch_pickle(value), "m/version": b"3\n"} | {f"m/data/{key}": data for key, data in storages.items()})


def torch_legacy(value, storages):
    front = [pickle.dumps(part, 2) for part in (0x1950a86a20f9469cfc6c, 1001, {"little_endian": True})]
    return (b"".join(front) + torch_pickle(value, True) + pickle.dumps(list(storages), 2) +
            b"".join(struct.pack("<q", len(data) // 4) + data for data in storages.values()))


def varint(n):
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def onnx(dtype=1):
    kind = field(1, field(1, 1) + field(2, field(1, field(2, b"batch")) + field(1, field(1, 3))))
    graph = (field(1, field(4, b"Relu")) + field(2, b"net") + field(5, field(1, 2) + field(1, 3) + field(2, dtype) + field(8, b"w") +
             field(9, bytes(24))) + field(11, field(1, b"in") + field(2, kind)) + field(12, field(1, b"out") + field(2, kind)))
    return field(1, 8) + field(2, b"made here") + field(7, graph) + field(8, field(2, 17))


def gguf():
    def text(t): return struct.pack("<Q", len(t)) + t
    return (b"GGUF" + struct.pack("<IQQ", 3, 1, 2) + text(b"general.architecture") + struct.pack("<I", 8) + text(b"llama") +
            text(b"tokens") + struct.pack("<IIQ", 9, 8, 2) + text(b"a") + text(b"b") + text(b"w") + struct.pack("<IQQIQ", 2, 4, 5, 0, 0) + bytes(96))


def png():
    def chunk(name, data): return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 3, 2, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(bytes(20))) + chunk(b"IEND", b""))


NOTEBOOK = json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": {"name": "tide"}}, "cells": [
    {"cell_type": "code", "source": "x", "outputs": [{"output_type": "stream"}]}, {"cell_type": "markdown", "source": "y"}]}).encode()
TRACE = json.dumps({"traceEvents": [{"ph": "X", "name": "add", "ts": 1, "dur": 2}] * 5 + [{"ph": "M"}]}).encode()
WEIGHTS = {"weight": Tensor("Float", "0", (2, 3)), "steps": Tensor("Long", "1", (1,)), "lr": 0.5}
FLOAT = {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}

# Bytes, what they are, and (word, topic, text) of what is said: of whole files without a problem, of the others with one.
WHOLE = {
    "npy": (npy("<f4", (2, 3), bytes(24)), "NumPy (.npy)", [("ok", "array", "float32 (2, 3), row by row")]),
    "npy fortran": (npy("<f8", (2, 3), bytes(48), 2, True), "NumPy (.npy)", [("ok", "array", "float64 (2, 3), column by column")]),
    "npy turned": (npy(">i4", (3,), bytes(12)), "NumPy (.npy)", [("ok", "array", "int32 (3)")]),
    "npy two": (npy("|b1", (3,), bytes(3)) + npy("<f2", (), bytes(2)), "NumPy (.npy)", [("ok", "array", "bool (3)"), ("ok", "array", "float16 ()")]),
    "npz": (archive({"x.npy": npy("<f4", (2,), bytes(8)), "y.npy": npy("<i8", (1, 1), bytes(8))}), ".npz",
            [("ok", "arrays", "2: 1 of float32, 1 of int64"), ("ok", "", "'x' float32 (2)")]),
    "npz packed": (archive({"x.npy": npy("<f4", (1000,), bytes(4000))}, zipfile.ZIP_DEFLATED), ".npz", [("ok", "", "'x' float32 (1000)")]),
    "safetensors": (safetensors({"w": FLOAT, "__metadata__": {"a": "b"}}, bytes(16)), "safetensors",
                    [("ok", "tensors", "1: 1 of float32"), ("ok", "", "'w' float32 (2, 2)"), ("ok", "metadata", "1 entries")]),
    "pt": (torch_archive(WEIGHTS, {"0": bytes(24), "1": bytes(8)}), "torch.save (an archive)",
           [("ok", "tensors", "2: 1 of float32, 1 of int64"), ("ok", "", "'weight' float32 (2, 3)"), ("ok", "besides", "1 values")]),
    "pt legacy": (torch_legacy({"w": Tensor("Float", "7", (2, 2))}, {"7": bytes(16)}), "torch.save (the form before archives)",
                  [("ok", "", "'w' float32 (2, 2)")]),
    "onnx": (onnx(), "ONNX", [("ok", "format", "IR version 8, opset 17, by made here"), ("ok", "graph", "1 nodes, 'net'"),
                             ("ok", "inputs", "'in' float32 (batch, 3)"), ("ok", "outputs", "'out'"), ("ok", "", "'w' float32 (2, 3)")]),
    "gguf": (gguf(), "GGUF", [("ok", "model", "llama"), ("ok", "", "'w' float32 (5, 4)")]),
    "trace": (TRACE, "Chrome trace", [("ok", "events", "6 (by phase: 5 X, 1 M)")]),
    "trace list": (json.dumps([{"ph": "B", "ts": 0}]).encode(), "Chrome trace", [("ok", "events", "1 (by phase: 1 B)")]),
    "trace packed": (gzip.compress(TRACE), "gzip", [("ok", "holds", "Chrome trace"), ("ok", "events", "6")]),
    "notebook": (NOTEBOOK, "notebook", [("ok", "cells", "1 code, 1 markdown; 1 outputs"), ("ok", "kernel", "tide"), ("ok", "format", "4.5")]),
    "notebook of another kernel": (NOTEBOOK.replace(b'"tide"', b'"python3"'), "notebook", [("note", "kernel", "python3")]),
    "json": (b'{"a": [1, 2.5e3, "\\u00e9"], "b": null}\n', "JSON", [("ok", "object", "2 entries: a, b")]),
    "json like safetensors": (b'{"abcd":{"x": 1}}', "JSON", [("ok", "object", "1 entries: abcd")]),
    "csv": (b"a,b\n1,2\n\"x, y\nz\",4\n", "CSV", [("ok", "table", "3 rows (the first names them) of 2 columns, parted by commas")]),
    "csv tabs": (b"1\t2\t3\n4\t5\t6\n", "CSV", [("ok", "table", "2 rows (no names) of 3 columns, parted by tabs")]),
    "lua": (b"#!/usr/bin/env tide\nlocal x = tide.ones(2)\nprint(x)\n", "script of Lua", [("ok", "script", "3 lines")]),
    "png": (png(), "PNG", [("ok", "picture", "3 × 2, RGB, 8 bits")]),
    "text": (b"Some words.\nMore of them.\n", "a text", [("ok", "content", "2 lines")]),
    "noise": (bytes([200, 3, 0, 255]) * 40, "doesn't know", [("note", "content", "c8 03 00 ff")]),
}
BROKEN = {
    "npy cut": (npy("<f4", (2, 3), bytes(20)), "length", "takes 24 bytes, the file has 20"),
    "npy header beyond": (b"\x93NUMPY\x02\0" + struct.pack("<I", 1 << 31) + b"{", "header", "ends beyond"),
    "npy without end": (npy("<f8", (1 << 62, 1 << 62), b""), "length", "cut off"),
    "npy version": (b"\x93NUMPY\x09\0" + bytes(20), "header", "version 9"),
    "npy complex": (npy("<c8", (1,), bytes(8)), "dtype", "complex"),
    "npy uint16": (npy("<u2", (1,), bytes(2)), "dtype", "unsigned"),
    "npy objects": (npy("|O", (1,), pickle.dumps([Evil()])), "dtype", "never loaded"),
    "npy records": (npy([("a", "<f4")], (1,), bytes(4)), "dtype", "records"),
    "npy extra": (npy("<f4", (1,), bytes(9)), "length", "5 bytes behind the array"),
    "npz cut": (WHOLE["npz"][0][:-30], "archive", "cut off"),
    "npz dtype": (archive({"x.npy": npy("<u4", (1,), bytes(4))}), "array", "'x.npy': dtype"),
    "safetensors beyond": (safetensors({"w": FLOAT}, bytes(16), 1 << 62), "header", "ends beyond"),
    "safetensors negative": (safetensors({"w": FLOAT}, bytes(16), (1 << 64) - 1), "header", "ends beyond"),
    "safetensors cut": (safetensors({"w": FLOAT}, bytes(10)), "length", "take 16 bytes, the file has 10"),
    "safetensors overlap": (safetensors({"w": FLOAT, "v": FLOAT | {"data_offsets": [8, 24]}}, bytes(24)), "header", "overlap"),
    "safetensors dtype": (safetensors({"w": {"dtype": "F8_E4M3", "shape": [4], "data_offsets": [0, 4]}}, bytes(4)), "dtype", "F8_E4M3"),
    "safetensors JSON": (safetensors(b'{"w":\n {"dtype" "F32"}}', b""), "header", "line 2, column 11"),
    "pt cut": (WHOLE["pt"][0][:-40], "archive", "cut off"),
    "pt elements missing": (torch_archive(WEIGHTS, {"0": bytes(24)}), "elements", "'1' are missing"),
    "pt elements short": (torch_archive(WEIGHTS, {"0": bytes(20), "1": bytes(8)}), "elements", "takes 24 bytes, its entry has 20"),
    "pt dtype": (torch_archive({"z": Tensor("ComplexFloat", "0", (1,))}, {"0": bytes(8)}), "dtype", "complex64"),
    "pt code": (torch_archive({"w": Evil()}, {}), "code", "mkdir"),
    "pt legacy cut": (WHOLE["pt legacy"][0][:-5], "length", "cut off"),
    "pt legacy pickle cut": (WHOLE["pt legacy"][0][:60], "pickle", "damaged"),
    "pickle": (pickle.dumps(Evil()), "code", "mkdir"),
    "pickle endless": (b"\x80\x02" + b")" * 4200000, "pickle", "longer than"),
    "onnx cut": (onnx()[:-12], "length", "cut off"),
    "onnx dtype": (onnx(14), "dtype", "complex64"),
    "gguf cut": (gguf()[:70], "header", "cut off"),
    "gguf nested": (b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 1) + b"k" + struct.pack("<I", 9) + struct.pack("<IQ", 9, 1) * 4000, "header", "nested more than 8 deep"),
    "gguf counts": (b"GGUF" + struct.pack("<IQQ", 3, (1 << 63) - 1, (1 << 63) - 1) + bytes(100), "header", "tensors in a file of 124 bytes"),
    "trace cut": (TRACE[:-9], "JSON", "ends early"),
    "trace packed cut": (gzip.compress(TRACE)[:-10], "length", "cut off"),
    "trace packed damaged": (gzip.compress(TRACE)[:-8] + bytes(8), "length", "damaged"),
    "notebook broken": (NOTEBOOK.replace(b'"cells"', b'\n  "cells" oops'), "JSON", "line 2, column 11"),
    "notebook old": (b'{"nbformat": 3, "cells": []}', "format", "older"),
    "json NaN": (b'[1,\n NaN]', "JSON", "NaN, which JSON has not, at line 2, column 2"),
    "json comma": (b'{"a": 1,}', "JSON", "a key in quotes expected at line 1, column 9"),
    "json zero": (b'[01]', "JSON", "at line 1, column"),
    "json two": (b'[1] [2]', "JSON", "more behind the value at line 1, column 5"),
    "json escape": (b'["a\\x"]', "JSON", "escape that JSON has not at line 1, column 4"),
    "json columns": ('{"é": oops}'.encode(), "JSON", "a value expected at line 1, column 7"),
    "json first": (b'{"a"', "JSON", "':' expected at line 1, column 5"),
    "json deep": (b"[" * 100000, "JSON", "nested more than 256 deep"),
    "csv uneven": (b"a,b,c\n1,2,3\n4,5,6\n7,8\n", "rows", "line 4 has 2 columns, the first row 3"),
    "csv quote": (b'a,b\n1,2\n"x,3\n4,5\n', "rows", "from line 3"),
    "lua broken": (b"#!/usr/bin/lua\nlocal x =\nend\n", "syntax", "line 3"),
    "lua compiled": (b"\x1bLuaT" + bytes(30), "content", "texts alone"),
    "png cut": (png()[:-14], "length", "cut off"),
    "png header": (b"\x89PNG\r\n\x1a\n" + bytes(30), "header", "IHDR"),
    "git lfs": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n", "content", "git lfs pull"),
    "empty": (b"", "length", "0 bytes"),
}


class Files(Doctor):
    def write(self, name, data):
        path = os.path.join(self.folder, name)
        with open(path, "wb") as file:
            file.write(data)
        return path

    def test_whole_files(self):
        for name, (data, kind, wanted) in WHOLE.items():
            with self.subTest(name=name):
                lines = self.findings(self.write("some file", data))
                self.assertIn(kind, lines[0][2])
                self.assertNotIn("problem", [word for word, _, _ in lines], lines)
                for finding in wanted:
                    self.has(lines, *finding)

    def test_broken_files(self):
        for name, (data, topic, text) in BROKEN.items():
            with self.subTest(name=name):
                self.has(self.findings(self.write("some file", data)), "problem", topic, text)

    def test_nothing_that_lies_in_a_file_runs(self):
        self.write("a.lua", b"local file <close> = io.open('run', 'w')\n")
        for data in (BROKEN["pickle"][0], BROKEN["pt code"][0], BROKEN["npy objects"][0]):
            self.findings(self.write("some file", data))
        self.findings("a.lua")
        self.assertEqual(sorted(os.listdir(self.folder)), ["a.lua", "home", "some file"])

    def test_every_beginning_of_every_kind_is_told(self):
        """Wherever a file is cut off, there are findings and no error."""
        for name, (data, _, _) in WHOLE.items():
            with self.subTest(name=name):
                paths = [self.write(f"{k}", data[:k]) for k in range(0, len(data), max(1, len(data) // 60))]
                done = self.doctor(*paths)
                self.assertEqual((done.returncode, done.stderr), (1, ""))  # the first is empty
                self.assertGreaterEqual(len(done.stdout.splitlines()), len(paths))

    def test_damaged_bytes_raise_nothing(self):
        for name, (data, _, _) in WHOLE.items():
            with self.subTest(name=name):
                paths = []
                for k in range(60):
                    at, value = (k * 7919) % len(data), (k * 131 + 255) % 256
                    paths.append(self.write(f"{k}", data[:at] + bytes([value]) + data[at + 1:]))
                done = self.doctor(*paths)
                self.assertIn(done.returncode, (0, 1))
                self.assertEqual(done.stderr, "")
                self.assertGreaterEqual(len(done.stdout.splitlines()), len(paths))

    def test_json_is_broken_where_python_says_so(self):
        draw, pieces = random.Random(3), ['"', ",", ":", "}", "]", "0", "-", "e", ".", "\\", "n", "\x01", "  ", "1.", "NaN"]
        paths, broken = [], []
        for k in range(300):
            text = json.dumps({"k": [1, -0.5, 2e-7, "é\"\\\n", None, True, {"a": [], "b": {}}, draw.random()]},
                              indent=draw.choice([None, 1]), ensure_ascii=draw.random() < 0.5)
            for _ in range(draw.randrange(3)):
                at = draw.randrange(8, len(text))
                text = text[:at] + draw.choice(pieces) + text[at + draw.randrange(2):]
            paths.append(self.write(f"{k}.json", text.encode()))
            try:
                json.loads(text, parse_constant=lambda name: int(name))  # which raises ValueError
                broken.append(False)
            except ValueError:
                broken.append(True)
        found = json.loads(self.doctor("--json", *paths).stdout)
        for path, wrong, told in zip(paths, broken, found):
            with open(path, encoding="utf-8") as file:
                self.assertEqual(any(f["topic"] == "JSON" for f in told["findings"] if f["level"] == "problem"), wrong, file.read())
        self.assertIn(True, broken)
        self.assertIn(False, broken)

    @unittest.skipUnless(HAS_ADDRESSES, "sanitizers need all addresses")
    def test_memory_is_bounded(self):
        """Files whose sizes or claims are huge, in addresses for a gigabyte."""
        def limit(): resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
        sparse = self.write("sparse", npy("<f4", (4,), bytes(16)))
        os.truncate(sparse, 40 << 30)
        self.has(self.findings(sparse, limits=limit), "problem", "length", "belong to nothing")
        packer, bomb = zlib.compressobj(9, zlib.DEFLATED, 31), []
        for _ in range(300):
            bomb.append(packer.compress(bytes(1 << 20)))
        self.has(self.findings(self.write("bomb", b"".join(bomb) + packer.flush()), limits=limit), "note", "length", "no more was looked at")
        self.has(self.findings(self.write("long line", b'["' + b"x" * (40 << 20) + b'"'), limits=limit), "problem", "JSON", "ends early")

    def test_what_is_no_file(self):
        os.mkfifo(os.path.join(self.folder, "pipe"))
        for name, text in (("pipe", "a pipe"), ("home", "a folder"), ("/dev/null", "a device"), ("none", "No such file")):
            self.has(self.findings(name), "problem", "file", text)

    def test_names_and_contents_move_no_cursor(self):
        path = self.write("a\x1b[2Jb", npy("\x1b[31mX", (1,), bytes(4)))
        self.assertNotIn("\x1b", self.doctor(path).stdout)
        json.loads(self.doctor("--json", path).stdout)

    def test_json_of_several_files(self):
        paths = [self.write("a", npy("<f4", (1,), bytes(4))), self.write("b", b"")]
        for arguments in (["--json", *paths], [*paths, "--json"]):
            done = self.doctor(*arguments)
            found = json.loads(done.stdout)
            self.assertEqual(([f["file"] for f in found], done.returncode), (paths, 1))
            self.assertEqual(found[0]["is"], "an array of NumPy (.npy)")
            self.assertEqual([f["level"] for f in found[1]["findings"]], ["ok", "problem"])


if __name__ == "__main__":
    unittest.main()
