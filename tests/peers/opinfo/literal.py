"""A trial as two lines that anybody can run: one of Lua, one of Python."""
import torch

from translate import DTYPES, number, table


def lines_of(trial):
    lines = ["tide:   " + lua_line(trial)]
    return lines if hasattr(trial, "setup") else lines + ["torch:  " + python_line(trial)]


def lua_tensor(message, view):
    base, shape, stride, offset, grad = view
    values = message.bases[base - 1]
    dtype = DTYPES[values.dtype]
    text = "tide.tensor({" + ", ".join(number(v) for v in values.tolist()) + f"}}, {{dtype = tide.{dtype}}})"
    if shape != [values.numel()] or offset or stride not in ([1], []):
        text += f":as_strided({table(shape)}, {table(stride)}, {offset})"
    return text + (":requires_grad_()" if grad else "")


def setup_of(trial):
    """Of a layer: how it is made."""
    return "".join(line + " " for line in getattr(trial, "setup", "").splitlines())


def lua_line(trial):
    message = trial.message
    tensors = ", ".join(lua_tensor(message, v) for v in message.views)
    line = f"local nan, inf = 0/0, math.huge; local a = {{{tensors}}}; {setup_of(trial)}local y = {{{trial.text}}}; print(table.unpack(y))"
    if trial.plan != "{}":
        line += f"; local p = {trial.plan} -- gradients"
    return line


def python_tensor(message, view):
    base, shape, stride, offset, grad = view
    values = message.bases[base - 1]
    shift = message.base_shifts[base - 1]
    if shift:
        values = torch.where(values > 0, values - 1, values)
    numbers = str(values.tolist()).replace("nan", "float('nan')").replace("inf", "float('inf')")
    text = f"torch.tensor({numbers}, dtype={values.dtype})"
    if shape != [values.numel()] or offset or stride not in ([1], []):
        text += f".as_strided({tuple(shape)}, {tuple(stride)}, {offset})"
    return text + (".requires_grad_()" if grad else "")


def python_value(value, places):
    if isinstance(value, torch.Tensor):
        return places.get(id(value), "?")
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(python_value(v, places) for v in value) + "]"
    return repr(value)


def python_line(trial):
    message, bound = trial.message, trial.bound
    places = {key: f"a[{number_ - 1}]" for (key, _), (number_, _) in message.places.items()}
    for key, text in message.renamed.items():
        place = text.split("]")[0][2:]
        places[key] = f"a[{int(place) - 1}].clone()"
    tensors = ", ".join(python_tensor(message, v) for v in message.views)
    arguments = [python_value(v, places) if by_position else f"{p}={python_value(v, places)}"
                 for p, v, by_position in bound.arguments]
    head = f"torch.{bound.name}"
    if bound.method:
        head, arguments = f"{arguments[0]}.{bound.name}", arguments[1:]
    return f"a = [{tensors}]; print({head}({', '.join(arguments)}))"
