#!/usr/bin/python3
"""How our libraries and programs are protected, read from the files: hardening_check.py linked|compiled FILES

Of each: functions of other libraries are bound at start, and their table is read-only then; the stack is not
executable; programs lie anywhere. `compiled`: arrays on the stack have a guard, and copies know the size of their
target. tide.so, for a plain Lua, exports how to open it and nothing else.
"""
import os
import re
import subprocess
import sys


def read(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"}).stdout


def linked(path):
    header, dynamic = read("readelf", "-hlW", path), read("readelf", "-dW", path)
    if not re.search(r"FLAGS.*\bBIND_NOW\b|FLAGS_1.*\bNOW\b", dynamic):
        yield "binds functions when they are first called (no BIND_NOW)"
    if "GNU_RELRO" not in header:
        yield "has no part that is read-only after the start (no RELRO)"
    stack = re.search(r"GNU_STACK.*", header)
    if not stack or "RWE" in stack.group():
        yield "has an executable stack"
    if not re.search(r"Type:\s+DYN", header):
        yield "lies at a fixed address"
    if "TEXTREL" in dynamic:
        yield "writes to its code at the start"


def compiled(path):
    wanted = re.findall(r" UND (\w+)", read("readelf", "--dyn-syms", "-W", path))
    if "__stack_chk_fail" not in wanted:
        yield "has no guard on the stack"
    if not any(re.fullmatch(r"__\w+_chk", name) for name in wanted):
        yield "calls no function that knows the size of its target (FORTIFY)"


def exported(path):
    names = [line.split()[-1] for line in read("nm", "-D", "--defined-only", path).splitlines()]
    foreign = [name for name in names if not name.startswith("luaopen_")]
    if foreign:
        yield f"exports {len(foreign)} that are no luaopen_, {foreign[0]} for one"
    if not names:
        yield "exports nothing"


def main():
    files = sys.argv[2:]
    found = [f"{path}: {what}" for path in files for what in linked(path)]
    if sys.argv[1] == "compiled":
        found += [f"{path}: {what}" for path in files for what in compiled(path)]
    found += [f"{path}: {what}" for path in files if path.endswith("/tide.so") for what in exported(path)]
    print("\n".join(found + [f"{len(files)} files, {len(found)} findings"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
