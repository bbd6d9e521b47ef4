#!/usr/bin/python3
"""Applies the rules of style to every text file of the repository. Arguments: files to look at instead."""
import os
import sys

import rules
import tree

ANY_BYTES = "tests/torture/fuzz/corpus/"  # inputs of fuzzers are as they are


def main():
    paths = tree.files()
    known = set(paths)
    crowded = [] if sys.argv[1:] else list(rules.crowded(paths))
    for where, line, message in crowded:
        print(f"{where}:{line}: {message}")
    wrong, seen, texts = len(crowded), 0, {}
    for path in sys.argv[1:] or paths:
        with open(os.path.join(tree.ROOT, path), "rb") as file:
            data = file.read()
        if b"\0" in data or path.startswith(ANY_BYTES):
            continue
        seen += 1
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            found = [(path, 1, f"not UTF-8: {error}")]
        else:
            found = rules.check(path, text, known)
            texts[path] = text
        for where, line, message in found:
            wrong += 1
            print(f"{where}:{line}: {message}")
    for where, line, message in rules.twice_named({path: text for path, text in texts.items() if not path.startswith("tests/")}):
        wrong += 1
        print(f"{where}:{line}: {message}")
    print(f"{seen} files, {wrong} findings")
    return 1 if wrong or not seen else 0


if __name__ == "__main__":
    sys.exit(main())
