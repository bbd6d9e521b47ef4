#!/usr/bin/python3
"""The engine's library exports td_ names and nothing else: symbols_check.py libtide.so"""
import subprocess
import sys


def main():
    out = subprocess.run(["nm", "-D", "--defined-only", sys.argv[1]], check=True, capture_output=True, text=True).stdout
    names = [line.split()[-1] for line in out.splitlines()]
    foreign = [name for name in names if not name.startswith("td_")]
    for name in foreign:
        print(f"exported, and not td_: {name}")
    print(f"{len(names)} symbols, {len(foreign)} foreign")
    return 1 if foreign or not names else 0


if __name__ == "__main__":
    sys.exit(main())
