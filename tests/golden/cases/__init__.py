"""The cases of golden values, by family. An operator's case is one line:

    case("sum", X(2, 3), At(0), keepdim=True)

reads: torch.sum(x, 0, keepdim=True) here, tide.sum(x, 1, {keepdim = true}) in Lua. Where torch has no
function of that name, or one of other arguments, `torch_function` says what is meant."""
from dataclasses import dataclass, field

from operands import restart


@dataclass
class Case:
    op: str
    args: list
    options: dict
    grad: bool = True  # whether gradients are compared
    grid: bool = False  # the case that is tried with every dtype, instead of the operator's first
    single: bool = False  # computed in float32 too


@dataclass
class Family:
    cases: list = field(default_factory=list)
    functions: dict = field(default_factory=dict)
    index_results: dict = field(default_factory=dict)


families = {}
_current = None


def family(name):
    """What follows belongs to this family: one file of data."""
    global _current
    _current = families[name] = Family()


def torch_function(name, function, index_results=()):
    """torch's meaning of an operator, and which of its results are indices."""
    _current.functions[name] = function
    _current.index_results[name] = index_results


def index_results(name, *which):
    _current.index_results[name] = which


def case(op, *args, grad=True, grid=False, single=False, **options):
    _current.cases.append(Case(op, list(args), options, grad, grid, single))
    restart()
