#!/usr/bin/env python3
"""Writes the golden values: what PyTorch says that each operator gives, and the gradients of
sum(result * weights), in float64. One file per family in data/, one case per line of JSON:

    {"op": name, "a": [arguments], "o": {options}, "r": [results], "g": [gradients]}

    generate.py            writes data/*.jsonl
    generate.py --check    compares instead: says which files would change

Needs PyTorch; the versions are noted in each file's first line. How a tensor is written stands in
operands.py, the cases stand in cases/, and tests/ops/test_golden.lua reads what comes out."""
import importlib
import json
import os
import platform
import sys
import warnings

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import cases  # noqa: E402
from operands import PERIOD, Operand, argument_data, argument_torch, map_operands, tensor_data  # noqa: E402
from programs import programs  # noqa: E402

FAMILIES = ("pointwise", "reduce", "products", "losses", "shapes", "indices", "alias", "spatial",
            "sorting", "margins", "neural", "special", "activation", "shaping", "placing", "algebra", "linalg", "forms", "sparse")
GRID = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64")


def weights_like(result, number):
    """Fixed weights, exact in every float dtype and none of them 0."""
    values = [(((k % PERIOD) * 7 + 3 + 2 * number) % 11 - 5.5) / 8 for k in range(result.numel())]
    return torch.tensor(values, dtype=result.dtype).reshape(result.shape)


def function_of(family, name):
    """torch's meaning of an operator."""
    if name in family.functions:
        return family.functions[name]
    found = getattr(torch, name, None) or getattr(torch.nn.functional, name, None)
    return found or (lambda x, *args, **options: getattr(x, name)(*args, **options))


def flatten(results):
    return list(results) if isinstance(results, (tuple, list)) else [results]


def call(family, case):
    """Flat results, and the operands with the tensors that stood for them."""
    tensors = []
    args = [argument_torch(a, tensors) for a in case.args]
    options = {key: argument_torch(a, tensors) for key, a in case.options.items()}
    if case.op.endswith("_") and isinstance(args[0], torch.Tensor) and args[0].requires_grad:
        args[0] = args[0] * 1  # a leaf can't be written
    return flatten(function_of(family, case.op)(*args, **options)), tensors


def result_data(result, is_index):
    if not isinstance(result, torch.Tensor):
        return result
    if result.is_sparse:
        return {**result_data(result.detach().to_dense(), False), "nnz": result.coalesce()._nnz()}
    values = (result + 1 if is_index else result).detach().flatten().tolist()
    return tensor_data(result.shape, values, result.dtype)


def gradients(results, tensors):
    """Of sum(result * weights) by each differentiated operand."""
    results = [r.to_dense() if isinstance(r, torch.Tensor) and r.is_sparse else r for r in results]
    total = sum((r * weights_like(r, k)).sum() for k, r in enumerate(results)
                if isinstance(r, torch.Tensor) and r.requires_grad)
    if not isinstance(total, torch.Tensor):
        return None
    inputs = [x for operand, x in tensors if operand.grad]
    found = torch.autograd.grad(total, inputs, allow_unused=True)
    found = [torch.zeros_like(x) if g is None else g.to_dense() for x, g in zip(inputs, found)]
    return [tensor_data(g.shape, g.flatten().tolist(), g.dtype)["v"] for g in found]


def call_data(case):
    entry = {"op": case.op, "a": [argument_data(a) for a in case.args]}
    if case.options:
        entry["o"] = {key: argument_data(a) for key, a in case.options.items()}
    return entry


def exact_singles(family, case, results):
    """float32 results rounded from float64 ones: torch's own vectors differ at infinities."""
    exact, _ = call(family, in_dtype(case, torch.float64, Operand.widened))
    return [e.to(r.dtype) for r, e in zip(results, exact)]


def case_data(family, case):
    results, tensors = call(family, case)
    entry = call_data(case)
    indices = family.index_results.get(case.op, ())
    if case.single:
        results = exact_singles(family, case, results)
    entry["r"] = [result_data(r, k in indices) for k, r in enumerate(results)]
    if case.grad:
        grads = gradients(results, tensors)
        if grads is not None:
            entry["g"] = grads
    return entry


# ---- every dtype ----

def in_dtype(case, dtype, change=Operand.of_dtype):
    return cases.Case(case.op, [map_operands(a, lambda x: change(x, dtype)) for a in case.args],
                      {key: map_operands(a, lambda x: change(x, dtype)) for key, a in case.options.items()})


def grid_cases(family):
    """Of each operator the case meant for the grid, or its first, if a tensor in it may change its dtype."""
    chosen = {}
    for case in family.cases:
        if case.op not in chosen or case.grid and not chosen[case.op].grid:
            chosen[case.op] = case
    for case in chosen.values():
        found = []
        for a in case.args:
            map_operands(a, lambda x: found.append(x) or x)
        if any(x.grid is not None for x in found):
            yield case


def grid_data(family, case, name):
    """One operator in one dtype: results, computed in float64 where the result is a float; null when
    PyTorch refuses."""
    dtype = getattr(torch, name)
    entry = {"dtype": name, **call_data(in_dtype(case, dtype))}
    indices = family.index_results.get(case.op, ())
    try:
        results, _ = call(family, in_dtype(case, dtype))
    except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError):
        return {**entry, "r": None}
    data = [result_data(r, k in indices) for k, r in enumerate(results)]
    if dtype.is_floating_point:
        exact, _ = call(family, in_dtype(case, torch.float64))
        for k, (r, e) in enumerate(zip(results, exact)):
            if isinstance(r, torch.Tensor) and r.dtype.is_floating_point:
                data[k]["v"] = result_data(e, False)["v"]
    return {**entry, "r": data}


def promotions():
    """The dtype of a + b: of tensors, of a tensor and one without dims, of a tensor and a number."""
    for a in GRID:
        x = torch.ones(2, dtype=getattr(torch, a))
        for b in GRID:
            y = torch.ones((), dtype=getattr(torch, b))
            yield {"a": a, "b": b, "r": str((x + y.expand(2)).dtype)[6:], "dimless": str((x + y).dtype)[6:]}
        for number in (1, 1.5):
            yield {"a": a, "b": number, "r": str((x + number).dtype)[6:]}


# ---- files ----

def named(make, family, case, *rest):
    """make(family, case, ...); an error says which case it was."""
    try:
        return make(family, case, *rest)
    except Exception as error:
        error.add_note(f"in the case {json.dumps(call_data(case))[:500]}")
        raise


def to_text(entries, note):
    head = {"note": note, "torch": torch.__version__.split("+")[0], "python": platform.python_version()}
    return "".join(json.dumps(e, separators=(",", ":")) + "\n" for e in [head, *entries])


def texts():
    for name in FAMILIES:
        importlib.import_module("cases." + name)
        family = cases.families[name]
        yield name, to_text((named(case_data, family, c) for c in family.cases), "values and gradients")
        grid = (named(grid_data, family, c, d) for c in grid_cases(family) for d in GRID)
        yield name + ".dtypes", to_text(grid, "one case of each operator in every dtype")
    yield "promotion", to_text(promotions(), "the dtype of a + b")
    yield "programs", to_text(programs(), "views and writes in place")


def main():
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    check = sys.argv[1:] == ["--check"]
    changed = 0
    for name, text in texts():
        path = os.path.join(HERE, "data", name + ".jsonl")
        old = open(path, encoding="utf-8").read() if os.path.exists(path) else ""
        if check:
            if old.split("\n", 1)[1:] != text.split("\n", 1)[1:]:
                print("differs:", name)
                changed = 1
        elif old != text:
            with open(path, "w", encoding="utf-8") as out:
                out.write(text)
            print(name, len(text))
    return changed


if __name__ == "__main__":
    sys.exit(main())
