"""script_table.py: `compare script`: the programs of script.lua in all ways that there are, each way a process of its own, in turns
case by case; and what follows from the times."""
import math
import os
import time

from speed_table import seconds
from turns import Side, least

SECONDS = 200  # for measuring, all cases together; what torch.compile takes to compile is beside it
COMPILING = 120
CASES = 64  # about
ADDS = {"tenfold_5": 1.3, "tenfold_1000": 1.8, "tenfold_100000": 1.3}  # goals of the issue, in times of one add of that size
COPIES = {"tenfold_10000000": 1.3}  # of a copy


def commands(tide, python, here, cases):
    """(name of the way, its command), Tide's as they are written first; without PyTorch python is None."""
    ours = [(way, [tide, os.path.join(here, "script.lua"), way, *cases]) for way in ("eager", "scripted", "compiled")]
    theirs = [("torch " + way, [python, os.path.join(here, "script.py"), way, *cases]) for way in ("eager", "scripted", "compiled")]
    return ours + theirs if python else ours


def measure(turn, tiny):
    """The least of the rounds of each side, by name; as many rounds as there is time for, three at most."""
    lines = {name: [] for name, _ in turn}
    began = time.monotonic()
    for _ in range(3):
        for name, side in turn:
            lines[name].append(side.go())
        if tiny or time.monotonic() - began > SECONDS / CASES / 2:
            break
    return {name: least(of_side) for name, of_side in lines.items()}


def in_turns(ways, tiny):
    """Yields (case, lines by way); the first way has all cases."""
    os.environ.setdefault("SCRIPT_SECONDS", str(COMPILING))
    sides = []
    try:
        for name, command in ways:
            sides.append((name, Side(command)))
        first = sides[0][1]
        while first.ready is not None:
            case = first.ready
            turn = [(name, side) for name, side in sides if side.ready == case]
            yield case, measure(turn, tiny)
            for _, side in turn:
                side.leave()
    finally:
        for _, side in sides:
            side.close()


# ---- what follows ----


def time_of(lines, way):
    return lines[way]["median_s"] if way in lines else None


def best_of_torch(lines):
    times = [line["median_s"] for way, line in lines.items() if way.startswith("torch")]
    return min(times) if times else None


def size(count):
    return f"{count / 1e6:.1f} MB" if count >= 1e6 else f"{count / 1e3:.1f} kB"


def row(case, lines, ways):
    text = f"{case:28}" + "".join(f" {seconds(time_of(lines, way)) if way in lines else '':>9}" for way in ways)
    scripted, eager, torch = (time_of(lines, "scripted"), time_of(lines, "eager"), best_of_torch(lines))
    text += f" {eager / scripted:>7.2f}x" if scripted else f" {'':>8}"
    text += f" {torch / scripted:>7.2f}x" if scripted and torch else f" {'':>8}"
    if scripted:
        text += f" {size(lines['eager']['peak_bytes']):>9} {size(lines['scripted']['peak_bytes']):>9}"
    return text.rstrip()


def head(ways):
    return (f"{'case':28}" + "".join(f" {way.replace('torch ', 't.'):>9}" for way in ways)
            + f" {'eager /':>8} {'torch /':>8} {'peak':>9} {'scripted':>9}")


def mean_of(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def gains(table, way):
    """What a way of Tide's gains on eager, and on the best of PyTorch's, by case."""
    on_eager = {case: time_of(lines, "eager") / time_of(lines, way) for case, lines in table.items() if way in lines}
    on_torch = {case: best_of_torch(lines) / time_of(lines, way) for case, lines in table.items()
                if way in lines and best_of_torch(lines)}
    return on_eager, on_torch


def told(what, ratios, slow):
    """A line of one list of gains; those below `slow` are named."""
    slower = sorted((gain, case) for case, gain in ratios.items() if gain < slow)
    text = f"{what}: {mean_of(ratios.values()):.2f}x in the geometric mean, never slower in {len(ratios) - len(slower)} of {len(ratios)}"
    return text + ("; slower: " + ", ".join(f"{case} {gain:.2f}x" for gain, case in slower) if slower else "")


def yardsticks(table):
    """The slides' function in adds and copies."""
    for goals, unit in ((ADDS, "add"), (COPIES, "copy")):
        for case, most in goals.items():
            measure_of = case.replace("tenfold", unit)
            if measure_of in table and time_of(table.get(case, {}), "scripted"):
                times = time_of(table[case], "scripted") / time_of(table[measure_of], "eager")
                yield f"{case}, scripted: {times:.2f} times one {unit} of that size ({most} wanted): {'met' if times <= most else 'MISSED'}"


def on_two_threads(table):
    return {case: time_of(table[case.removesuffix("_threads")], "scripted") / time_of(lines, "scripted")
            for case, lines in table.items() if case.endswith("_threads") and "scripted" in lines
            and "scripted" in table.get(case.removesuffix("_threads"), {})}


SLOWER = 0.97  # nearer than that a clock doesn't tell


def summary(table):
    for way in ("scripted", "compiled"):
        on_eager, on_torch = gains(table, way)
        if on_eager:
            yield told(f"{way} against eager", on_eager, SLOWER)
        if on_torch:
            yield told(f"{way} against the best of PyTorch's ways", on_torch, SLOWER)
    yield from yardsticks(table)
    peaks = {case: (lines["eager"]["peak_bytes"], lines["scripted"]["peak_bytes"]) for case, lines in table.items() if "scripted" in lines}
    more = [case for case, (eager, scripted) in peaks.items() if scripted > eager]
    if peaks:
        yield (f"peak memory lower or equal in {len(peaks) - len(more)} of {len(peaks)}" + ("; more: " + ", ".join(more) if more else ""))
    threads = on_two_threads(table)
    if threads:
        yield told("scripted, two threads against one", threads, SLOWER)
