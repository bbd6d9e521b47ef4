"""Counts trials by operator and prints what came of them. What differs on purpose is listed in the file
`differs`: a line has operator, variant, dtype and kind (shell patterns), a pattern of the detail, and behind
two dashes the reason."""
import fnmatch
import re
from collections import Counter, defaultdict

from compare import KINDS


class Differs:
    def __init__(self, path):
        self.rows = []
        self.used = set()
        for count, line in enumerate(open(path, encoding="utf-8"), 1):
            line = line.split("#")[0].strip() if line.startswith("#") else line.strip()
            if not line:
                continue
            head, dashes, reason = line.partition(" -- ")
            fields = head.split(None, 4)
            if not dashes or len(fields) < 4 or not reason.strip():
                raise SystemExit(f"{path}:{count}: expected OPERATOR VARIANT DTYPE KIND [DETAIL] -- REASON")
            self.rows.append((*fields[:4], fields[4] if len(fields) > 4 else "*", reason.strip()))

    def reason(self, *fields):
        """Of (operator, variant, dtype, kind, detail); None when it isn't on purpose."""
        for row in self.rows:
            if all(fnmatch.fnmatchcase(f.replace("\n", " "), p) for f, p in zip(fields, row)):
                self.used.add(row)
                return row[-1]
        return None


    def unused(self):
        return "; ".join(" ".join(row[:5]) for row in self.rows if row not in self.used)


class Groups:
    """Disagreements that look alike: of one operator and kind, with the same words."""

    def __init__(self):
        self.found = {}

    def add(self, operator, variant, dtype, outcome, text, detail):
        words = re.sub(r"[-+]?\d[\d.e+-]*|nan|inf|\[[^]]*\]|\([^)]*\)|call:", "", detail)
        key = operator, outcome, words if outcome in ("refused", "accepted", "crash", "dtype") or "call" in detail else ""
        entry = self.found.setdefault(key, [0, Counter(), Counter(), f"{text}: {detail}"])
        entry[0] += 1
        entry[1][variant.split()[0]] += 1
        entry[2][dtype] += 1

    def lines(self):
        for (operator, outcome, _), (count, variants, dtypes, example) in sorted(self.found.items()):
            where = "/".join(variants), "all" if len(dtypes) > 6 else "/".join(dtypes)
            yield f"{operator}: {outcome} {count} ({', '.join(where)}): {example}"


class Tally:
    def __init__(self):
        self.rows = defaultdict(Counter)
        self.reasons = defaultdict(Counter)

    def add(self, operator, outcome, count=1, reason=""):
        self.rows[operator][outcome] += count
        if outcome == "no form":
            self.reasons[reason][operator] += count

    def merge(self, other):
        for operator, row in other.rows.items():
            self.rows[operator].update(row)
        for reason, row in other.reasons.items():
            self.reasons[reason].update(row)

    def totals(self):
        total = Counter()
        for row in self.rows.values():
            total.update(row)
        return total

    def table(self):
        lines = []
        for operator in sorted(self.rows):
            row = self.rows[operator]
            formed = sum(n for kind, n in row.items() if kind not in ("no form", "skipped"))
            if not formed:
                continue
            wrong = ", ".join(f"{kind} {row[kind]}" for kind in KINDS if row[kind])
            extra = f"  (no form {row['no form']})" if row["no form"] else ""
            purpose = f"  on purpose {row['on purpose']}" if row["on purpose"] else ""
            lines.append(f"{operator:40} {formed:6} {row['agrees']:6}  {wrong}{purpose}{extra}")
        return "\n".join(lines)

    def without_form(self):
        lines = []
        for reason, operators in sorted(self.reasons.items(), key=lambda r: -sum(r[1].values())):
            names = ", ".join(f"{name} {n}" for name, n in sorted(operators.items()))
            lines.append(f"  {reason} ({sum(operators.values())}): {names}")
        return "\n".join(lines)

    def summary(self):
        total = self.totals()
        formed = sum(n for kind, n in total.items() if kind not in ("no form", "skipped"))
        counted = formed - total["on purpose"]
        share = 100 * total["agrees"] / counted if counted else 100.0
        kinds = ", ".join(f"{kind} {total[kind]}" for kind in KINDS if total[kind])
        return f"{formed} samples with a form, {total['agrees']} agree ({share:.2f} % of those that are not on purpose, " \
               f"{total['on purpose']} on purpose); {kinds or 'no disagreements'}; no form in Tide {total['no form']}, " \
               f"PyTorch has no kernel {total['skipped']}"
