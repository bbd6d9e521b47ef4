#!/usr/bin/env python3
"""What each way to a product brings: reads lines of bench_rungs, of one machine or several.

    tests/bench/rungs/table.py [--worst N] FILE...

For each instruction set, dtype, number of threads and way: in how many cases it is the quickest by more than 5 %, what the
best of the others costs there (the geometric mean and the worst), and in how many the choice takes it. Then what the
choice costs beside the quickest way, over all cases, and the N cases where it costs most.
"""
import argparse
import json
import math
from collections import defaultdict

CLEAR = 1.05


def mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else 1


def name(case):
    batch = f"{case['batch']} x " if case["batch"] > 1 else ""
    return f"{batch}{case['m']} x {case['n']} x {case['k']} {case['layout']}"


def ways_of(cases):
    """way -> (chosen, [(what the best of the others costs, case)] where it is clearly the quickest)"""
    chosen, wins, can = defaultdict(int), defaultdict(list), defaultdict(int)
    for case in cases:
        chosen[case["chosen"]] += 1
        for way, ns in case["ns"].items():
            others = [t for other, t in case["ns"].items() if other != way]
            can[way] += 1
            if others and min(others) > CLEAR * ns:
                wins[way].append((min(others) / ns, case))
    return {way: (can[way], chosen[way], sorted(wins[way], key=lambda w: -w[0])) for way in sorted(can)}


def show(key, cases, worst):
    print("%s %s, %d threads: %d cases" % (*key, len(cases)))
    for way, (can, chosen, wins) in ways_of(cases).items():
        line = f"  {way:14} of {can:4}, chosen {chosen:4}, clearly quickest {len(wins):4}"
        if wins:
            line += f"; without it {mean([r for r, _ in wins]):5.2f} x, at worst {wins[0][0]:5.2f} x ({name(wins[0][1])})"
        print(line)
    costs = sorted(((c["ns"][c["chosen"]] / min(c["ns"].values()), c) for c in cases if c["chosen"] in c["ns"]),
                   key=lambda w: -w[0])
    print(f"  the choice costs {mean([r for r, _ in costs]):.3f} x the quickest")
    for ratio, case in costs[:worst]:
        times = ", ".join(f"{way} {ns / 1000:.2f}" for way, ns in sorted(case["ns"].items(), key=lambda w: w[1]))
        print(f"    {ratio:5.2f} x {name(case)}: {case['chosen']} of (us) {times}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--worst", type=int, default=0)
    parser.add_argument("files", nargs="+")
    args = parser.parse_args()
    groups = defaultdict(list)
    for path in args.files:
        with open(path) as lines:
            for line in lines:
                case = json.loads(line)
                groups[case["isa"], case["dtype"], case["threads"]].append(case)
    for key in sorted(groups):
        show(key, groups[key], args.worst)


if __name__ == "__main__":
    main()
