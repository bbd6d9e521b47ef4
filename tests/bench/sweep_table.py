"""sweep_table.py: what the sweep makes of the times of all operators: what is slower than PyTorch, and what takes longer
than its bytes need."""
import collections

SLOWER = 0.95      # of PyTorch's rate: below, it isn't noise
OF_LIMIT = 0.7     # of the bandwidth that operators of elements should reach
LONG = 0.02        # seconds in which noise is little
LARGE = "1e7"      # elements that no cache holds


def size(case):
    return case.split("/")[1]


def operator(case):
    return case.split("/")[0].split(":")[0]


def ratio(line, other):
    """PyTorch's time over Tide's; None where one has no such case."""
    return other["min_s"] / line["min_s"] if line and other else None


def is_clear(ours, theirs):
    """Need a case not be measured again? What seems slower may be noise, unless it is long."""
    beside = ratio(ours, theirs)
    return beside is None or beside >= 1 or ours["min_s"] > LONG


def of_limit(line, bandwidth):
    """Which part of the bandwidth a large case reaches; None where bytes are not what limits it."""
    if not line or not line["bytes"] or size(line["case"]) != LARGE:
        return None
    return line["bytes"] / line["min_s"] / bandwidth


def findings(lines, bandwidth):
    """(slower, wasteful): [(figure, case, Tide's line, PyTorch's)] of what is slower than PyTorch, and of what isn't but
    does not come near the limit; the worst first."""
    slower, wasteful = [], []
    for case, ours, theirs in lines:
        beside, part = ratio(ours, theirs), of_limit(ours, bandwidth)
        if beside is not None and beside < SLOWER:
            slower.append((beside, case, ours, theirs))
        elif part is not None and part < OF_LIMIT:
            wasteful.append((part, case, ours, theirs))
    return sorted(slower, key=lambda row: row[:2]), sorted(wasteful, key=lambda row: row[:2])


def lesser(lines, more):
    """Lines, of which some were measured again: the lesser time of each side."""
    again = {case: (ours, theirs) for case, ours, theirs in more}

    def side(line, other):
        return other if line and other and other["min_s"] < line["min_s"] else line

    return [(case, *map(side, (ours, theirs), again.get(case, (None, None)))) for case, ours, theirs in lines]


def counts(lines, bandwidth):
    """The last line: how many cases of how many operators are slower, how many under the limit."""
    slower, wasteful = findings(lines, bandwidth)
    both = sum(ratio(ours, theirs) is not None for _, ours, theirs in lines)
    limited = [of_limit(ours, bandwidth) for _, ours, _ in lines]
    under = sum(part is not None and part < OF_LIMIT for part in limited)
    text = f"slower than PyTorch: {len(slower)} of {both} cases ({len({operator(row[1]) for row in slower})} operators)"
    return text + f"; under {OF_LIMIT:.0%} of the bandwidth: {under} of {sum(part is not None for part in limited)} cases"


def by_operator(slower, most=12):
    """Operators by how many of their cases are slower."""
    count = collections.Counter(operator(row[1]) for row in slower)
    return ", ".join(f"{name} {n}" for name, n in count.most_common(most))


def never_taken(case_lines, refused):
    """[(operator, why)] of the operators none of whose cases ran in Tide: a call that is wrong."""
    ran = {operator(case) for case, ours, _ in case_lines if ours}
    return sorted({operator(case): why for case, why in refused.items() if operator(case) not in ran}.items())


def otherwise(case_lines):
    """[(operator, what)] of the operators whose results are of other dtypes or shapes in PyTorch: another call. Large
    operands have other numbers there."""
    found = {}
    for case, ours, theirs in case_lines:
        if ours and theirs and size(case) != LARGE and ours["kinds"] != theirs["kinds"]:
            found.setdefault(operator(case), f"{case} gives {ours['kinds']}, PyTorch's {theirs['kinds']}")
    return sorted(found.items())
