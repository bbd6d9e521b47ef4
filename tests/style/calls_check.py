#!/usr/bin/python3
"""The files of a room call one another in no circle, nor upwards where they stand on floors
(rules.FILE_FLOORS): calls_check.py room/ library.a, or room/ objects, with ; between them, for a room of
rooms. What an object takes from another, functions and variables, is read off its symbols; that rows of
operators name one another (td_operator_*) is no call. rules.RECURSION is the one call that may close a
circle."""
import re
import subprocess
import sys

import rules


def symbols(library):
    """Of each object: the names that it defines, and those that it takes from elsewhere."""
    out = subprocess.run(["nm", "-A", "-g", *library.split(";")], check=True, capture_output=True, text=True).stdout
    defined, taken = {}, {}
    for match in re.finditer(r"^(?:.*\.dir/(?:\./)?|.*:)([^:]+?)(?:\.c)?\.o:[0-9a-f ]+ (\w) (\S+)$", out, re.M):
        stem, kind, name = match.groups()
        if name.startswith("td_operator_"):
            continue
        if kind in "Uvw":
            taken.setdefault(stem, set()).add(name)
        else:
            defined[name] = stem
    return defined, taken


def calls(archive):
    """What each object takes from which others: {object: {other: names}}; all objects are there."""
    defined, taken = symbols(archive)
    found = {stem: {} for stem in set(defined.values()) | set(taken)} if defined else {}
    for stem, names in taken.items():
        for name in names & set(defined):
            if defined[name] != stem and (stem, defined[name]) != rules.RECURSION:
                found[stem].setdefault(defined[name], set()).add(name)
    return found


def circle(found):
    """Objects that call one another in a ring, or None."""
    done, way = set(), []

    def visit(stem):
        if stem in way:
            return way[way.index(stem):] + [stem]
        if stem in done:
            return None
        way.append(stem)
        ring = next((ring for ring in map(visit, sorted(found[stem])) if ring), None)
        way.pop()
        done.add(stem)
        return ring

    return next((ring for ring in map(visit, sorted(found)) if ring), None)


def main():
    room, archive = sys.argv[1:]
    found = calls(archive)
    wrong = []
    ring = circle(found)
    if ring:
        wrong.append("files that call one another in a circle: " + " -> ".join(
            f"{one}.c ({', '.join(sorted(found[one][next_one]))})" for one, next_one in zip(ring, ring[1:])))
    for stem, others in sorted(found.items()):
        for other, names in sorted(others.items()):
            if rules.runs_upwards(f"{room}{stem}.c", f"{room}{other}.c"):
                wrong.append(f"a call that runs upwards: {room}{stem}.c takes {', '.join(sorted(names))} of {other}.c")
    print("\n".join(wrong + [f"{len(found)} objects, {len(wrong)} findings"]))
    return 1 if wrong or not found else 0


if __name__ == "__main__":
    sys.exit(main())
