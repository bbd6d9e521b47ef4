"""From a bound PyTorch call to the chunk of Lua that makes the same call in Tide: tensors over copies of
the same storages with the same strides, dims and indices from 1, keyword arguments as options."""
import math
import re

import torch

import roles
from binding import NoForm

DTYPES = {torch.float64: "float64", torch.float32: "float32", torch.float16: "float16", torch.bfloat16: "bfloat16",
          torch.int64: "int64", torch.int32: "int32", torch.int16: "int16", torch.int8: "int8", torch.uint8: "uint8",
          torch.bool: "bool"}
MEMORY_FORMATS = {torch.contiguous_format: "contiguous_format", torch.preserve_format: "preserve_format",
                  torch.channels_last: "channels_last", torch.channels_last_3d: "channels_last_3d"}
OPERATORS = {"__rsub__": "{1} - {0}", "__rdiv__": "{1} / {0}", "__rmod__": "{1} % {0}", "__rpow__": "{1} ^ {0}",
             "__add__": "{0} + {1}", "__sub__": "{0} - {1}", "__mul__": "{0} * {1}", "__truediv__": "{0} / {1}"}
PROPERTIES = {"T", "mT", "H", "mH", "real", "imag", "data", "grad"}
KEYWORDS = {"end", "repeat", "and", "or", "not"}
LARGEST = 4_000_000  # elements of a storage


def storage_values(x):
    """All elements of the storage that x looks into, as x's dtype."""
    count = x.untyped_storage().nbytes() // x.element_size()
    return torch.empty(0, dtype=x.dtype).set_(x.untyped_storage(), 0, (count,), (1,)).clone()


class Storages:
    """Copies of the storages of a call's tensors, taken before the call may write."""

    def __init__(self):
        self.copies, self.layouts = {}, {}

    def add(self, x):
        self.layouts.setdefault(id(x), (x, list(x.shape), list(x.stride()), x.storage_offset()))
        key = (x.untyped_storage()._cdata, x.dtype)
        if key not in self.copies:
            self.copies[key] = (x.untyped_storage(), storage_values(x.detach()))

    def values(self, x):
        self.add(x)
        return self.copies[(x.untyped_storage()._cdata, x.dtype)][1]


class Message:
    """What is sent: bases (storages), tensors over them, and the call's text."""

    def __init__(self, storages):
        self.storages = storages
        self.bases, self.base_keys, self.base_shifts = [], {}, []
        self.views, self.places = [], {}
        self.renamed = {}

    def base(self, x, shift):
        key = (x.untyped_storage()._cdata, x.dtype, shift)
        if key not in self.base_keys:
            values = self.storages.values(x)
            if values.numel() > LARGEST:
                raise NoForm("a storage too large to send")
            if shift:
                values = torch.where(values >= 0, values + 1, values)
            self.base_keys[key] = len(self.bases) + 1
            self.bases.append(values)
            self.base_shifts.append(shift)
        return self.base_keys[key]

    def place(self, x, shift=0):
        """The number of the tensor in the message."""
        if not isinstance(x, torch.Tensor) or x.layout != torch.strided or x.is_quantized:
            raise NoForm("a tensor that isn't strided")
        if x.dtype not in DTYPES or x.is_conj() or x.is_neg():
            raise NoForm(f"a tensor of {x.dtype}")
        if x.device.type != "cpu":
            raise NoForm(f"a tensor on {x.device.type}")
        key = (id(x), shift)
        if key not in self.places:
            base = self.base(x, shift)
            self.views.append((base, *self.storages.layouts[id(x)][1:], x.requires_grad))
            self.places[key] = (len(self.views), x)  # holds x, so that its id stays its own
        return self.places[key][0]

    def tensor(self, x, shift=0):
        return self.renamed.get(id(x)) or f"a[{self.place(x, shift)}]"

    def data(self):
        return b"".join(numbers(values) for values in self.bases)

    def declarations(self):
        lines = [f'B("{DTYPES[v.dtype]}", {v.numel()})' for v in self.bases]
        for base, shape, stride, offset, grad in self.views:
            lines.append(f"V({base}, {table(shape)}, {table(stride)}, {offset}, {str(grad).lower()})")
        return "\n".join(lines)


def numbers(values):
    values = values.to(torch.float64 if values.dtype.is_floating_point else torch.int64)
    return values.contiguous().numpy().tobytes()


def from_numbers(data, dtype):
    wide = torch.float64 if dtype.is_floating_point else torch.int64
    return torch.frombuffer(bytearray(data), dtype=wide).to(dtype) if data else torch.empty(0, dtype=dtype)


# ---- values as Lua writes them ----

def table(values):
    return "{" + ", ".join(str(v) for v in values) + "}"


def number(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        if not -2 ** 63 <= value < 2 ** 63:
            raise NoForm("an integer beyond 64 bits")
        return str(value) if value != -2 ** 63 else "math.mininteger"
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return repr(value) if value != int(value) or abs(value) >= 1e15 else f"{value:.1f}"


def counted(value):
    """A dim or an index from 1."""
    return value + 1 if value >= 0 else value


class Writer:
    """Writes values; `has(name)` says whether Tide has a value of that name."""

    def __init__(self, message, has):
        self.message, self.has = message, has

    def text(self, value, shift=0):
        if value is None:
            return "nil"
        if isinstance(value, torch.Tensor):
            integral = not value.dtype.is_floating_point and value.dtype != torch.bool
            return self.message.tensor(value, shift if integral else 0)
        if isinstance(value, int) and not isinstance(value, bool):
            return number(counted(value) if shift else value)
        if isinstance(value, (bool, float)):
            return number(value)
        if isinstance(value, str):
            return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
        if isinstance(value, (list, tuple)):
            return "{" + ", ".join("false" if v is None else self.text(v, shift) for v in value) + "}"
        return self._special(value)

    def _special(self, value):
        if isinstance(value, torch.dtype):
            if value not in DTYPES:
                raise NoForm(str(value))
            return "tide." + DTYPES[value]
        if isinstance(value, torch.memory_format):
            name = MEMORY_FORMATS[value]
            if not self.has(name):
                raise NoForm("memory formats")
            return "tide." + name
        if isinstance(value, torch.device):
            if value.type != "cpu":
                raise NoForm(f"the device {value.type}")
            return '"cpu"'
        if hasattr(value, "item"):
            return number(value.item())
        raise NoForm(f"an argument of type {type(value).__name__}")

    def index(self, key):
        """x[key]"""
        keys = key if isinstance(key, tuple) else (key,)
        return "{" + ", ".join(self._index_element(k) for k in keys) + "}"

    def _index_element(self, key):
        if key is None:
            return "tide.newaxis"
        if key is Ellipsis:
            return '"..."'
        if isinstance(key, slice):
            return range_text(key)
        if isinstance(key, (list, torch.Tensor)):
            key = torch.as_tensor(key)
            return self.text(key, shift=1)
        if isinstance(key, bool) or not isinstance(key, int):
            raise NoForm(f"an index of type {type(key).__name__}")
        return number(counted(key))


def range_text(key):
    """A slice as a range with both ends in it."""
    first = "" if key.start is None else counted(key.start)
    last = "" if key.stop is None else key.stop if key.stop > 0 else key.stop - 1
    if key.stop == 0:
        raise NoForm("an empty range x[a:0]")
    return f'"{first}:{last}' + (f':{key.step}"' if key.step not in (None, 1) else '"')


# ---- which function ----

class Forms:
    """What Tide has: its functions and methods (":name") with their signatures."""

    def __init__(self, inventory):
        self.inventory = inventory
        self.parameters = {name: read_signature(text) for name, text in inventory.items()}

    def has(self, name):
        return name in self.inventory

    def find(self, bound):
        """The callee of a bound call, or NoForm."""
        last = bound.name.rsplit(".", 1)[-1]
        names = [":" + last] if bound.method else [bound.name]
        parts = bound.name.split(".")
        if len(parts) > 1:
            names += ["_".join(parts[-2:])]
        if bound.name in roles.NOT_SHORT:
            return next((n for n in names if self.has(n)), None)
        if not bound.method and parts[0] in ("nn", "special") or len(parts) == 1:
            names += [last, ":" + last]
        return next((n for n in names if self.has(n)), None)


def read_signature(text):
    """(positional names, option names) of "name(TYPE a, TYPE b=1, {TYPE c}) -> RESULT"."""
    match = re.match(r"\w+\((.*)\)(?: -> .*)?$", text)
    if not match:
        return None
    positional, options = [], []
    head, _, tail = match.group(1).partition("{") if re.search(r"(^|, )\{(?!\d|\})", match.group(1)) else (match.group(1), "", "")
    if tail or "{" in match.group(1):
        split = re.search(r"(?:^|, )\{(?=[A-Za-z\"])", match.group(1))
        head = match.group(1)[:split.start()] if split else match.group(1)
        tail = match.group(1)[split.end():-1] if split else ""
    for part, into in ((head, positional), (tail, options)):
        into += re.findall(r"(?:^|[ \]])([A-Za-z_]\w*)(?==|,|$)", re.sub(r"=(\{[^}]*\}|\"[^\"]*\"|[^,]+)", "", part))
    return positional, options


# ---- a call ----

def call_text(bound, message, forms):
    """The call in Lua. Raises NoForm."""
    writer = Writer(message, forms.has)
    special = special_text(bound, writer)
    if special:
        return special
    callee = forms.find(bound)
    if callee is None:
        raise NoForm("no such function")
    return plain_text(bound, callee, writer, forms)


def special_text(bound, writer):
    name = bound.name
    if name.endswith(".__get__") and name.split(".")[-2] in PROPERTIES:
        return f"{writer.text(bound.arguments[0][1])}.{name.split('.')[-2]}"
    if name == "__getitem__":
        (_, x, _), (_, key, _) = bound.arguments
        return f"{writer.text(x)}[{writer.index(key)}]"
    if name == "broadcast_shapes":
        return f"tide.broadcast_shapes({', '.join(writer.text(shape) for _, shapes, _ in bound.arguments for shape in shapes)})"
    if name in OPERATORS:
        if not any(isinstance(v, torch.Tensor) for _, v, _ in bound.arguments[:2]):
            raise NoForm("an operator of two numbers")
        x, other = (writer.text(v) for _, v, _ in bound.arguments[:2])
        return OPERATORS[name].format(x, other)
    return None


def plain_text(bound, callee, writer, forms):
    arguments, options = arrange(bound, forms.parameters.get(callee), writer)
    if options:
        arguments.append("{" + ", ".join(f"{option_key(k)} = {v}" for k, v in options.items()) + "}")
    if not callee.startswith(":"):
        name = f'["{callee}"]' if callee in KEYWORDS else f".{callee}"
        return f"tide{name}({', '.join(arguments)})"
    if not arguments:
        raise NoForm("no such function")
    if callee[1:] in KEYWORDS:
        return f'{arguments[0]}["{callee[1:]}"]({", ".join(arguments)})'
    receiver = arguments[0] if arguments[0].startswith("a[") else f"({arguments[0]})"
    return f"{receiver}{callee}({', '.join(arguments[1:])})"


def option_key(name):
    return f'["{name}"]' if name in KEYWORDS else name


def value_text(bound, parameter, value, writer):
    if parameter in ("alpha", "beta", "start", "end", "step") and isinstance(value, bool):
        value = int(value)  # Python's True is a number, Lua's is none
    if (bound.name, parameter) in roles.STOPS and isinstance(value, int):
        if value == 0:
            raise NoForm("an empty range x[a:0]")
        value = min(value, 2 ** 63 - 1) if value > 0 else value - 1
    counts = roles.is_index(bound.name, parameter) or roles.is_dim(bound.name, parameter, value)
    return writer.text(value, 1 if counts else 0)


def is_dropped(bound, parameter, value, known):
    """What Lua need not say: nothing, and PyTorch's default of something that Tide has no name for."""
    if value is None:
        return True
    if parameter in ("layout", "pin_memory", "device") and value in (torch.strided, False, torch.device("cpu"), "cpu"):
        return True
    return parameter not in known and parameter in bound.defaults and bound.defaults[parameter] == value


def arrange(bound, signature, writer):
    """(positional texts, options by name)"""
    positional, options = signature or (None, [])
    texts, named, filled = [], {}, True
    known = set(positional or ()) | set(options)
    for k, (parameter, value, by_position) in enumerate(bound.arguments):
        own = parameter != "out" and (positional is None or k < len(positional) and parameter not in options)
        renames = positional is not None and k < len(positional) and parameter not in known and parameter != "out"
        if own and filled and (by_position or renames) and not (k > 0 and is_dropped(bound, parameter, value, known)):
            texts.append(value_text(bound, parameter, value, writer))
            continue
        filled = False
        if not is_dropped(bound, parameter, value, known):
            key = positional[k] if renames and not by_position else parameter
            named[key] = value_text(bound, parameter, value, writer)
    if texts and texts[-1] == "{}" and not named and positional and len(texts) <= len(positional):
        last = len(texts) - 1
        own = bound.arguments[last][0]
        named[own if own in known else positional[last]] = texts.pop()  # a table at the end would be the options
    return texts, named
