#!/usr/bin/python3
"""gdb knows machine code that a script's fused operators became: its name and its line in the script. Skipped without gdb,
without LLVM, under sanitizers, and where no process may be traced.

usage: TIDE=program TIDE_BUILD=build test_gdb.py
"""
import ctypes
import os
import re
import shutil
import subprocess
import sys
import tempfile

LLVM = ["libLLVM.so.19.1", "libLLVM-19.so.1", "libLLVM.so.18.1", "libLLVM-18.so.1", "libLLVM-17.so.1", "libLLVM-16.so.1",
        "libLLVM-15.so.1"]
SCRIPT = """local f = tide.jit.script(function(x, y)
    local z = x * y
    return z + x
end, {name = "gate"})
local x = tide.rand(1000)
for _ = 1, 3 do f(x, x) end
"""


def skip(why):
    print("skipped:", why)
    sys.exit(77)


def can_load(name):
    try:
        return ctypes.CDLL(name) is not None
    except OSError:
        return False


def is_sanitized():
    with open(os.path.join(os.environ["TIDE_BUILD"], "CMakeCache.txt"), encoding="utf-8") as cache:
        return re.search(r"^TIDE_SANITIZE:\w+=.", cache.read(), re.M) is not None


def main():
    if not shutil.which("gdb"):
        skip("no gdb")
    if not any(can_load(name) for name in LLVM):
        skip("no LLVM")
    if is_sanitized():
        skip("sanitizers and debuggers trace the same process")
    with tempfile.TemporaryDirectory() as folder:
        script = os.path.join(folder, "cell.lua")
        with open(script, "w", encoding="utf-8") as file:
            file.write(SCRIPT)
        environment = {**os.environ, "TIDE_CODE": "now", "XDG_CACHE_HOME": folder, "HOME": folder, "DEBUGINFOD_URLS": ""}
        out = subprocess.run(["gdb", "-nx", "-batch", "-ex", "set startup-with-shell off", "-ex", "break exit", "-ex", "run",
                              "-ex", "info functions ^fused_", "--args", os.environ["TIDE"], script],
                             env=environment, capture_output=True, text=True, timeout=150, check=False)
    text = out.stdout + out.stderr
    if "Breakpoint 1," not in text:
        if re.search("ptrace|Operation not permitted|couldn't trace", text, re.I):
            skip("no process may be traced here")
        print(text)
        return 1
    found = re.search(r"File (\S*cell\.lua):\s+2:\s+static void (fused_mul_add\.float32\[\S*cell\.lua:2\])", text)
    if not found:
        print(text)
    return 0 if found else 1


if __name__ == "__main__":
    sys.exit(main())
