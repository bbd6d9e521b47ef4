"""Random small programs of views and writes in place, and what PyTorch makes of them: gradients of the
leaves, or which step it refuses, or that backward refuses. A program is a list of steps over registers;
the first ones hold the leaves:

    {"leaves": [...], "steps": [{"f": method, "x": [registers], "p": [numbers]}, ...], "sum": [registers],
     "loss": number, "g": [gradients]}     or "fails": number of the step, or "fails": "backward"

A method whose name ends with _ writes its first register; any other makes a new one. "no_grad" marks a step
taken without recording. tests/ops/test_programs.lua runs the same in Lua."""
import random

import torch

from operands import At, X, argument_data, argument_torch, restart, shorten, tensor_data

COUNT = 240
UNARY = ("sin", "exp", "sigmoid", "square", "clone", "neg", "tanh", "detach")
BINARY = ("mul", "add", "sub")
WRITE1 = ("sin_", "exp_", "sigmoid_", "zero_", "square_", "neg_", "tanh_")
WRITE2 = ("mul_", "add_", "copy_", "sub_")


def views_of(x, chance):
    """A view's method and arguments that fit x."""
    found = []
    for d in range(x.dim()):
        n = x.shape[d]
        found.append(("select", [At(d), At(chance.randrange(n))]))
        if n > 1:
            found.append(("narrow", [At(d), At(chance.randrange(n - 1)), chance.choice((1, n - 1))]))
        found.append(("unsqueeze", [At(d)]))
    if x.dim() == 2:
        found += [("t", []), ("transpose", [At(0), At(1)])]
    if x.dim() == 3:
        found += [("squeeze", []), ("permute", [[At(2), At(0), At(1)]])]
    if x.dim() and x.is_contiguous():
        found.append(("view", [[-1]]))
    if x.dim() == 1:
        found.append(("expand", [[2, x.shape[0]]]))
    return chance.choice(found) if found else ("unsqueeze", [At(0)])


def fitting(registers, target, chance, same):
    """A register that broadcasts with the target, to the target's own shape where `same`: at least itself."""
    fits = [k for k, x in enumerate(registers) if x is target][:1]
    for k, x in enumerate(registers):
        try:
            shape = torch.broadcast_shapes(x.shape, target.shape)
        except RuntimeError:
            continue
        if shape == target.shape if same else len(shape) < 3:
            fits.append(k)
    return chance.choice(fits)


def next_step(registers, chance):
    kind = chance.random()
    k = chance.randrange(len(registers))
    if chance.random() < 0.5:
        k = len(registers) - 1  # what was made last, so that chains arise
    x = registers[k]
    if kind < 0.25:
        return {"f": chance.choice(UNARY), "x": [k], "p": []}
    if kind < 0.4:
        return {"f": chance.choice(BINARY), "x": [k, fitting(registers, x, chance, False)], "p": []}
    if kind < 0.65:
        name, p = views_of(x, chance)
        return {"f": name, "x": [k], "p": p}
    other = fitting(registers, x, chance, True)
    step = ({"f": chance.choice(WRITE1), "x": [k], "p": []} if kind < 0.8 or other == k else
            {"f": chance.choice(WRITE2), "x": [k, other], "p": []})
    if chance.random() < 0.12:
        step["no_grad"] = True
    return step


def run_step(step, registers):
    x = [registers[k] for k in step["x"]]
    method = getattr(x[0], step["f"])
    p = [argument_torch(v, []) for v in step["p"]]
    with torch.set_grad_enabled("no_grad" not in step):
        result = method(*x[1:], *p)
    if not step["f"].endswith("_"):
        registers.append(result)


def weights(x, number):
    values = [(((k * 7 + 3 + 5 * number) % 11) - 5.5) / 8 for k in range(x.numel())]
    return torch.tensor(values, dtype=x.dtype).reshape(x.shape)


def finish(leaves, registers, chosen):
    """The outcome: loss and gradients, or that backward refuses."""
    total = sum((registers[k] * weights(registers[k], k)).sum() for k in chosen)
    if not total.requires_grad:
        return None
    try:
        grads = torch.autograd.grad(total, leaves, allow_unused=True)
    except RuntimeError:
        return {"fails": "backward"}
    values = [(torch.zeros_like(x) if g is None else g).flatten().tolist() for x, g in zip(leaves, grads)]
    return {"loss": total.item(), "g": [shorten([float(f"{v:.14g}") for v in row]) for row in values]}


def program(seed):
    """One program with its outcome; None where there is nothing to compare."""
    chance = random.Random(seed)
    restart()
    operands = [X(2, 3), X(2, 3), X(3)]
    leaves = [operand.tensor() for operand in operands]
    registers, steps = list(leaves), []
    outcome = None
    for number in range(chance.randrange(3, 9)):
        step = next_step(registers, chance)
        steps.append(step)
        try:
            run_step(step, registers)
        except RuntimeError:
            outcome = {"fails": number}
            break
    chosen = sorted(chance.sample(range(len(registers)), min(len(registers), chance.randrange(1, 4))))
    outcome = outcome or finish(leaves, registers, chosen)
    if outcome is None or "loss" in outcome and not abs(outcome["loss"]) < 1e6:
        return None
    steps = [{**s, "p": [argument_data(v) for v in s["p"]]} for s in steps]
    return {"leaves": [tensor_data(o.shape, o.values, o.dtype) for o in operands], "steps": steps,
            "sum": chosen, **outcome}


def worth(entry):
    """Programs with a write in place and something that could notice it."""
    writes = [k for k, s in enumerate(entry["steps"]) if s["f"].endswith("_")]
    return bool(writes) and (len(entry["steps"]) > 2 or "fails" in entry)


def programs():
    """COUNT programs: at most a third that a step refuses, a third that backward refuses."""
    counts, seed, found = {}, 0, 0
    while found < COUNT:
        seed += 1
        entry = program(seed)
        if entry is None or not worth(entry):
            continue
        kind = "gradients" if "g" in entry else "backward" if entry["fails"] == "backward" else "step"
        if counts.get(kind, 0) >= COUNT * {"gradients": 0.6, "backward": 0.25, "step": 0.15}[kind]:
            continue
        counts[kind] = counts.get(kind, 0) + 1
        found += 1
        yield {"seed": seed, **entry}
