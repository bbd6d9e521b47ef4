"""One sample in both: runs PyTorch, sends Tide the same call, compares. A trial is one of
("agrees", ...), ("no form", reason), ("skipped", reason) or (a kind of compare.KINDS, detail)."""
import torch

import compare
import roles
import samples
from binding import NoForm
from process import Died
from translate import Message, Storages, call_text, from_numbers, DTYPES

NAMES = {name: dtype for dtype, name in DTYPES.items()}


class Trial:
    """What came of it, with what is needed to tell it: the Lua chunk's call, the message, the torch call."""

    def __init__(self, outcome, detail="", text="", message=None, bound=None, plan=""):
        self.outcome, self.detail, self.text = outcome, detail, text
        self.message, self.bound, self.plan = message, bound, plan


def prepare(op, variant, function, sample):
    """Operands of this variant over storages of their own, and those tensors that Lua clones first."""
    operands = samples.refresh((sample.input, tuple(sample.args), dict(sample.kwargs)))
    x, args, kwargs = operands
    clones = []
    if variant.startswith("inplace"):
        if not isinstance(x, torch.Tensor):
            raise NoForm("in place of what is no tensor")
        if x.requires_grad:
            clones = [(x.clone(), x)]
            operands = (clones[0][0], args, kwargs)
    if variant == "out":
        with torch.no_grad():
            trial = samples.run(op, variant, function, samples.refresh(operands))
        if trial.error is not None:
            raise NoForm("PyTorch refuses it without out=")
        operands = samples.refresh(map_no_grad((x, args, {**kwargs, "out": samples.make_out(op.name, trial.results)})))
    return operands, clones


def map_no_grad(tree):
    return samples.map_tree(tree, lambda x: x.detach())


def attempt(op, variant, function, sample, tide, forms, second):
    """Of one sample; what is written in place and has a gradient is tried without one first, when the very
    tensor can be written that was sent."""
    if variant == "strided":
        try:
            sample = sample.noncontiguous()
        except RuntimeError:
            return Trial("no form", "operands without strides")
    tensor = isinstance(sample.input, torch.Tensor)
    if variant.startswith("inplace") and tensor and sample.input.requires_grad:
        plain = sample.transform(lambda x: x.detach() if isinstance(x, torch.Tensor) else x)
        found = attempt_once(op, variant, function, plain, tide, forms, False)
        if found.outcome != "agrees":
            return found
    return attempt_once(op, variant, function, sample, tide, forms, second)


def attempt_once(op, variant, function, sample, tide, forms, second):
    try:
        operands, clones = prepare(op, variant, function, sample)
        return carry_out(op, variant, function, operands, clones, tide, forms, second)
    except NoForm as reason:
        return Trial("no form", str(reason))


def carry_out(op, variant, function, operands, clones, tide, forms, second):
    storages = Storages()
    sources = [source for _, source in clones]
    everything = samples.tensors_of(operands) + sources
    for x in everything:
        if x.layout == torch.strided and x.device.type == "cpu":
            storages.add(x)
    inputs = [x for x in everything if x.requires_grad and x.is_leaf]
    coarse = any(x.dtype.is_floating_point and x.dtype != torch.float64 for x in everything)
    before = samples.widen(((sources or operands)[0], operands[1], operands[2], inputs)) if coarse else None
    first = operands[0].detach().clone() if isinstance(operands[0], torch.Tensor) else None
    torchs = samples.run(op, variant, function, operands)
    if torchs.error is not None and torchs.lacks_kernel() and variant != "error":
        return Trial("skipped", "PyTorch has no kernel")
    message = Message(storages)
    for clone, source in clones:
        message.renamed[id(clone)] = f"a[{message.place(source)}]:clone()"
    text = call_text(torchs.bound, message, forms)
    check_results(torchs)
    gradients = None if torchs.error is not None or variant not in ("function", "inplace", "strided") else \
        samples.differentiate(torchs.results, inputs, second)
    plan = plan_text(gradients, message)
    chunk = f"{message.declarations()}\nreturn function() return {text} end, {plan}"
    trial = Trial("", "", text, message, torchs.bound, plan)
    try:
        answer, data = tide.call(chunk, message.data())
    except Died as end:
        trial.outcome, trial.detail = "crash", str(end)
        return trial
    exact = Exact(op, variant, function, before, gradients, second)
    exact.values = first
    trial.outcome, trial.detail = judge(torchs, gradients, Answer(answer, data), message, exact) or ("agrees", "")
    return trial


def check_results(torchs):
    for r in torchs.results or ():
        if isinstance(r, torch.Tensor) and (r.dtype not in DTYPES or r.layout != torch.strided):
            raise NoForm(f"a result of {r.dtype}, {r.layout}".replace("torch.", ""))
        if isinstance(r, complex):
            raise NoForm("a complex result")


def plan_text(gradients, message):
    if gradients is None:
        return "{}"

    def places(tensors):
        return "{" + ", ".join(str(message.place(x)) for x in tensors) + "}"

    def from_one(list_):
        return "{" + ", ".join(str(k + 1) for k in list_) + "}"

    fields = [f"inputs = {places(gradients.inputs)}", f"outputs = {from_one(gradients.places)}",
              f"cotangents = {places(gradients.cotangents)}"]
    if gradients.second is not None:
        fields.append(f"second = {{outputs = {from_one(gradients.second_places)}, "
                      f"cotangents = {places(gradients.second_cotangents)}}}")
    return "{" + ", ".join(fields) + "}"


class Exact:
    """The same call of PyTorch in float64, made when it is asked for."""

    def __init__(self, op, variant, function, before, gradients, second):
        self.op, self.variant, self.function, self.before = op, variant, function, before
        self.gradients, self.second, self.done = gradients, second, None
        self.values = None  # of the first operand, before the call

    def run(self):
        if self.before is None:
            return [], []
        if self.done is None:
            x, args, kwargs, inputs = self.before
            results, first = [], []
            x = x.clone() if self.variant.startswith("inplace") else x
            try:
                kwargs = {k: v for k, v in kwargs.items() if k != "out"}
                found = samples.run(self.op, "exact", self.function, (x, args, kwargs))
            except NoForm:
                found = None
            if found is not None and found.error is None:
                results = found.results
            if results and self.gradients is not None:
                first = self.differentiate(results, inputs)
            self.done = results, first
        return self.done

    def differentiate(self, results, inputs):
        try:
            return torch.autograd.grad([results[k] for k in self.gradients.places], inputs,
                                       [c.to(torch.float64) for c in self.gradients.cotangents], allow_unused=True)
        except (RuntimeError, IndexError):
            return []

    def result(self, k):
        results = self.run()[0]
        return results[k].detach() if k < len(results) and isinstance(results[k], torch.Tensor) else None

    def gradient(self, k):
        first = self.run()[1]
        return first[k] if k < len(first) else None


class Answer:
    """What the driver answered, with tensors for its numbers."""

    def __init__(self, header, data):
        self.header, self.data, self.at = header, data, 0
        self.error, self.stage = header.get("error"), header["stage"]
        self.results = self.read(header.get("results") or [])
        self.gradients = self.read(header.get("gradients") or [])
        self.second = self.read(header.get("second") or [])

    def take(self, count, dtype):
        values = from_numbers(self.data[self.at:self.at + 8 * count], dtype)
        self.at += 8 * count
        return values

    def read(self, entries):
        return [self.read_one(e) for e in entries]

    def read_one(self, entry):
        if "dtype" not in entry:
            return entry.get("value")
        dtype, shape = NAMES[entry["dtype"]], entry["shape"]
        count = 1
        for n in shape:
            count *= n
        values = self.take(count, dtype).reshape(shape)
        storage = (entry["storage"], entry["offset"]) if "storage" in entry else None
        return compare.Result(values, entry["strides"], storage, entry["grad"])

    def changed(self, message):
        """{storage number: its values} of the storages that the call wrote."""
        found = {}
        for entry in self.header.get("changed") or []:
            sent = message.bases[entry["storage"] - 1]
            found[entry["storage"]] = self.take(sent.numel(), sent.dtype)
        return found


def torch_storage(r, message):
    for (cdata, _, _), number in message.base_keys.items():
        if cdata == r.untyped_storage()._cdata:
            return number, r.storage_offset()
    return None


def wanted_results(torchs, message):
    """PyTorch's results as Tide's are to be."""
    bound = torchs.bound
    kwargs = {p: v for p, v, _ in bound.arguments}
    from_one = roles.index_results(bound.name, kwargs, len(torchs.results))
    wanted = []
    for k, r in enumerate(torchs.results):
        if not isinstance(r, torch.Tensor):
            wanted.append(tuple(r) if isinstance(r, torch.Size) else r)
            continue
        values = r.detach().clone(memory_format=torch.contiguous_format)
        if k in from_one and values.dtype in (torch.int64, torch.int32):
            values = torch.where(values >= 0, values + 1, values)
        wanted.append(compare.Result(values, r.stride(), torch_storage(r, message), r.requires_grad))
    return wanted


def judge(torchs, gradients, answer, message, exact):
    """None, or (kind, detail)."""
    if answer.error is not None and answer.stage in ("translation", "call"):
        if torchs.error is None:
            return "refused", answer.error
        return written(torchs, answer, message, False)
    if torchs.error is not None:
        return "accepted", str(torchs.error).split("\n")[0][:300]
    random = roles.is_random(torchs.bound.name, {p: v for p, v, _ in torchs.bound.arguments})
    wanted = wanted_results(torchs, message)
    if roles.base_name(torchs.bound.name) in roles.ANY_PLACE and not torchs.bound.value("stable"):
        ties = accept_places(torchs.bound, answer.results, wanted, exact.values)
        gradients = None if ties else gradients
    if roles.base_name(torchs.bound.name) in roles.UP_TO_SIGNS and align(answer.results, wanted):
        gradients = None
    return compare.compare_lists(answer.results, wanted, random, exact.result) \
        or written(torchs, answer, message, random, {w.storage[0] for w in wanted if isinstance(w, compare.Result) and w.storage}) \
        or gradients and not random and judge_gradients(gradients, answer, exact) or None


def align(found, wanted):
    """Vectors of a decomposition are unique up to their signs: found's are turned as wanted's, and what spans
    the rest of the space is taken as it is. Says whether anything was changed."""
    tensors = [r.values for r in (*found, *wanted) if isinstance(r, compare.Result)]
    if len(tensors) != 2 * len(wanted) or any(f.shape != w.shape for f, w in zip(tensors, tensors[len(wanted):])):
        return False
    f, w = tensors[:len(wanted)], tensors[len(wanted):]
    columns = 0 if len(wanted) == 3 else 1
    count = f[1 - columns].shape[-1] if f[1 - columns].ndim else 0
    signs = torch.where((f[columns] * w[columns])[..., :count].sum(-2, keepdim=True) < 0, -1, 1).to(f[columns].dtype)
    changed = bool((signs < 0).any())
    f[columns][..., :count] *= signs
    if columns == 0:
        f[2][..., :count, :] *= signs.mT
        changed |= f[0].shape[-1] > count or f[2].shape[-2] > count
        w[0][..., count:], w[2][..., count:, :] = f[0][..., count:], f[2][..., count:, :]
    return changed


def accept_places(bound, found, wanted, values):
    """Positions (the last result) that differ, but where PyTorch's input holds the same values, are as good:
    then wanted becomes found. Says whether any did."""
    f, w = (list_[-1] if list_ else None for list_ in (found, wanted))
    if not isinstance(f, compare.Result) or not isinstance(w, compare.Result) or f.values.shape != w.values.shape \
            or f.values.dtype != w.values.dtype or torch.equal(f.values, w.values) or values is None or values.ndim == 0:
        return False
    dim = bound.value("dim")
    x = values.flatten() if dim is None and w.values.ndim == 0 else values
    dim = -1 if dim is None else dim
    places = [r.values - 1 if r.values.ndim == x.ndim else r.values.unsqueeze(dim) - 1 for r in (f, w)]
    if (places[0] < 0).any() or (places[0] >= x.shape[dim]).any():
        return False
    mine, theirs = (torch.gather(x, dim, p) for p in places)
    if compare.far(mine, theirs).any():
        return False
    w.values = f.values
    return True


def written(torchs, answer, message, random, compared=()):
    """Was what PyTorch wrote written, and nothing else? After a refusal nothing is. `compared`: storages whose
    written values results have shown already."""
    changed = answer.changed(message)
    for (key, shift), number in zip(((k[:2], k[2]) for k in message.base_keys), message.base_keys.values()):
        if key not in message.storages.copies:
            continue
        storage, copy = message.storages.copies[key]
        now = torch.empty(0, dtype=copy.dtype).set_(storage, 0, (copy.numel(),), (1,))
        wanted = copy if torchs.error is not None else now.clone()
        if shift:
            wanted = torch.where(wanted >= 0, wanted + 1, wanted)
        found = changed.get(number, message.bases[number - 1])
        if number in compared and torchs.error is None or random and not torch.equal(now, copy):
            continue
        wrong = compare.compare_values(found, wanted)
        if wrong:
            return "written", f"argument storage {number}: {wrong}"
    return None


def judge_gradients(gradients, answer, exact):
    if answer.error is not None:
        return answer.stage, answer.error
    kind = "gradient"
    first = [g.values if isinstance(g, compare.Result) else None for g in answer.gradients]
    difference = compare.compare_gradients(kind, first, detached(gradients.first), exact.gradient)
    if difference or gradients.second is None:
        return difference
    second = [g.values if isinstance(g, compare.Result) else None for g in answer.second]
    return compare.compare_gradients("second gradient", second, detached(gradients.second))


def detached(list_):
    return [None if g is None else g.detach() for g in list_]
