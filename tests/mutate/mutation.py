"""Mutations: small wrong changes of the product, each with what a user would see, in list/*.txt.

    [atan_is_tanh] engine/ops/language/primitives.def
    - MATH(atan, 1, ATAN(a))
    + MATH(atan, 1, TANH(a))
    = x:atan() gives other numbers

A `-` line is old text, a `+` line what stands in its place (none: it is deleted), a `=` line what a user
sees. Several lines of old text are joined by line ends; each is compared without the spaces around it, so
that old text survives another indentation and line numbers play no part. It must occur exactly once."""
import os
import re
from dataclasses import dataclass, field

HERE = os.path.dirname(os.path.abspath(__file__))


class Broken(Exception):
    """A mutation that can't be made, and why."""


@dataclass
class Mutation:
    name: str
    path: str
    old: list = field(default_factory=list)
    new: list = field(default_factory=list)
    sees: str = ""

    def pattern(self):
        lines = r"\s*\n\s*".join(re.escape(line.strip()) for line in self.old)
        return re.compile(lines)

    def apply(self, text):
        """The text with the change in it."""
        if not self.old or not self.sees or self.old == self.new:
            raise Broken(f"{self.name}: needs old text, another new one and what a user sees")
        found = list(self.pattern().finditer(text))
        if len(found) != 1:
            raise Broken(f"{self.name}: the old text occurs {len(found)} times in {self.path}, expected once: "
                         f"{self.old[0].strip()}")
        start, end = found[0].span()
        return text[:start] + "\n".join(self.new) + text[end:]


def parse(text, where="list"):
    """The mutations of one file of the list."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        head = re.fullmatch(r"\[(\w+)\] (\S+)", line)
        if head:
            found.append(Mutation(*head.groups()))
        elif line[:2] in ("- ", "+ ", "= ") and found:
            if line[0] == "=":
                found[-1].sees = line[2:]
            else:
                (found[-1].old if line[0] == "-" else found[-1].new).append(line[2:])
        elif line.strip() and not line.startswith("#"):
            raise Broken(f"{where}:{number}: expected [name] file, `- `, `+ `, `= ` or `#`, got: {line}")
    return found


def load(folder=os.path.join(HERE, "list")):
    """All of them, in the order of the files' names."""
    found = []
    for name in sorted(os.listdir(folder)):
        if name.endswith(".txt"):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                found += parse(file.read(), name)
    return found


def problems(mutations, root):
    """What is wrong with a list: names given twice, and mutations that no longer apply."""
    seen, texts = set(), {}
    for m in mutations:
        if m.name in seen:
            yield f"{m.name}: named twice"
        seen.add(m.name)
        try:
            if m.path not in texts:
                with open(os.path.join(root, m.path), encoding="utf-8") as file:
                    texts[m.path] = file.read()
            m.apply(texts[m.path])
        except (Broken, OSError) as error:
            yield str(error)
