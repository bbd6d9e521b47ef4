#!/usr/bin/python3
"""What libtide exports is declared by the public headers, and the engine's rooms know one symbol of
engine/cpu, the backend: symbols_check.py ROOT libtide.so OBJECT;OBJECT;..."""
import os
import re
import subprocess
import sys

import rules

SEEN_OF_CPU = {"td_cpu_backend"}
FOR_DEBUGGERS = {"__jit_debug_descriptor", "__jit_debug_register_code"}  # engine/cpu/code/code_names.c


def symbols(path, *options):
    """The symbols of a file: {name: kind letter of nm}."""
    out = subprocess.run(["nm", *options, path], check=True, capture_output=True, text=True).stdout
    return {line.split()[-1].split("@")[0]: line.split()[-2] for line in out.splitlines() if len(line.split()) > 1}


def declared(root):
    """Names in the headers that td.h and td_backend.h include, comments left out."""
    def read(path):
        with open(os.path.join(root, path), encoding="utf-8") as file:
            return rules.blank_c(file.read(), strings=False)
    headers = re.findall(r'#include "([^"]+)"', read("engine/td.h") + read("engine/td_backend.h"))
    return {name for header in headers for name in re.findall(r"\w+", read(header))}


def room(path):
    """core, ops, cpu, ..., of an object file; None of one that is in no room (engine/start.c)."""
    found = re.search(r"\.dir/(?:\./)?(\w+)/", path)
    return found and found.group(1)


def crossing(objects):
    """Symbols of engine/cpu that other rooms take: {name: object files}."""
    defined, taken = set(), {}
    for path in objects:
        found = symbols(path, "-g")
        if room(path) == "cpu":
            defined |= {name for name, kind in found.items() if kind not in "Uvw"}
        else:
            for name, kind in found.items():
                if kind in "Uvw":
                    taken.setdefault(name, []).append(path)
    return {name: paths for name, paths in taken.items() if name in defined}


def main():
    root, library, objects = sys.argv[1:]
    objects = objects.split(";")
    exported, public = symbols(library, "-D", "--defined-only"), declared(root)
    wrong = [f"exported, and in no public header: {name}" for name in sorted(exported)
             if name not in FOR_DEBUGGERS and not name.startswith("td_operator_") and (name not in public or not name.startswith("td_"))]
    used = crossing(objects)
    wrong += [f"of engine/cpu, and used by {', '.join(used[name])}: {name}" for name in sorted(set(used) - SEEN_OF_CPU)]
    print("\n".join(wrong + [f"{len(exported)} symbols, {len(objects)} objects, {len(wrong)} findings"]))
    return 1 if wrong or not exported or set(used) != SEEN_OF_CPU else 0


if __name__ == "__main__":
    sys.exit(main())
