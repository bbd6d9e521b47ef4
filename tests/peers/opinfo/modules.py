"""PyTorch's samples of modules (ModuleInfo) as trials: a layer made with the same arguments in both, given the
same parameters and buffers, called with the same inputs; its results, its buffers afterwards, and the gradients
of inputs and parameters are compared."""
import copy
import inspect
import warnings

import torch

import samples
import translate
from binding import NoForm
from process import Died
from translate import Message, Storages, Writer
from trial import Answer, Trial, check_results, judge, plan_text

DTYPES = ("float64", "float32", "bfloat16")
NAMES = translate.DTYPES

# Arguments that count classes or positions, of the constructor and of the call.
COUNTED = {
    "NLLLoss": ("ignore_index", 1), "CrossEntropyLoss": ("ignore_index", 1), "MultiMarginLoss": (1,),
    "MultiLabelMarginLoss": (1,), "Embedding": ("padding_idx", 0), "CTCLoss": ("blank", 1),
}
CONSTRUCTED = ("ignore_index", "padding_idx", "blank")
# Dims among the constructor's arguments, by name and by place.
DIMS = {"Softmax": ("dim", 0), "LogSoftmax": ("dim", 0), "Softmin": ("dim", 0), "GLU": ("dim", 0)}

# Layers that may give places, which count.
POOLS = {f"{kind}MaxPool{n}d": f"{function}max_pool{n}d" for n in (1, 2, 3)
         for kind, function in (("", ""), ("Adaptive", "adaptive_"), ("Fractional", "fractional_"))}


class Call:
    """What judge() asks a bound call for."""

    method = False

    def __init__(self, info):
        name, self.arguments = info.module_cls.__name__, []
        self.name = POOLS.get(name, "nn." + name)

    def value(self, parameter):
        return None


def sample_modules(info, dtype, training):
    torch.manual_seed(0)
    return info.module_inputs_func(info, device="cpu", dtype=dtype, requires_grad=True, training=training)


def make(info, sample, dtype, training):
    """PyTorch's module, in the dtype."""
    torch.manual_seed(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        given = sample.constructor_input
        return info.module_cls(*given.args, **given.kwargs).to(dtype).train(training)


def float_state(module):
    """(name, tensor) of parameters, then of buffers."""
    if any(isinstance(x, torch.nn.parameter.UninitializedTensorMixin) for x in (*module.parameters(), *module.buffers())):
        raise NoForm("parameters whose shape the first call tells")
    return list(module.named_parameters()), list(module.named_buffers())


class Lua:
    """The same module in Lua."""

    def __init__(self, info, message, forms):
        self.name, self.message = info.module_cls.__name__, message
        if not forms.has("nn." + self.name) and not forms.has("nn." + self.name + ".new"):
            raise NoForm("no such function")
        self.writer = Writer(message, forms.has)

    def value(self, value, key, among):
        if among == "constructor" and value is None and "BatchNorm" in self.name and key in ("momentum", 2):
            return "false"  # means over all batches
        counted = key in COUNTED.get(self.name, ()) and (among == "call" or key in CONSTRUCTED)
        dim = among == "constructor" and key in DIMS.get(self.name, ())
        if isinstance(value, torch.nn.TransformerEncoderLayer):
            return encoder_layer_text(value)
        if value is torch.nn.functional.gelu:
            return "tide.gelu"
        return self.writer.text(value, 1 if counted or dim else 0)

    def arguments(self, args, kwargs, among):
        texts = [self.value(v, k, among) for k, v in enumerate(args)]
        options = [f"{k} = {self.value(v, k, among)}" for k, v in sorted(kwargs.items())]
        options = [o for o in options if not o.endswith(" = nil")]
        return ", ".join(texts + ["{" + ", ".join(options) + "}"] if options else texts)

    def chunk(self, module, sample, state, dtype, training):
        """Lines that make the module and give it what PyTorch's has; and the call."""
        given, inputs = sample.constructor_input, sample.forward_input
        lines = [f"local m = tide.nn.{self.name}({self.arguments(given.args, given.kwargs, 'constructor')})",
                 f"m:train({str(training).lower()})", f"m:to(tide.{NAMES[dtype]})", "local state = {}"]
        for name, x in state[0] + state[1]:
            lines.append(f'state["{counted_name(name)}"] = {self.message.tensor(x)}')
        lines += ["m:load_state_dict(state)", "for name, p in m:named_parameters() do",
                  "    for k, x in ipairs(a) do if rawequal(x, state[name]) then a[k] = p end end", "end"]
        args = in_order(module, inputs)
        return "\n".join(lines), f"m({self.arguments(args, {}, 'call')})"


def encoder_layer_text(layer):
    """The same layer, whose parameters come with the state."""
    attention, flags = layer.self_attn, {True: "true", False: "false"}
    activation = layer.activation.__name__
    if activation not in ("relu", "gelu"):
        raise NoForm("an activation of one's own")
    return (f"tide.nn.TransformerEncoderLayer({attention.embed_dim}, {attention.num_heads}, {{"
            f"dim_feedforward = {layer.linear1.out_features}, dropout = {layer.dropout.p}, "
            f"activation = \"{activation}\", layer_norm_eps = {layer.norm1.eps}, "
            f"batch_first = {flags[attention.batch_first]}, norm_first = {flags[layer.norm_first]}, "
            f"bias = {flags[layer.linear1.bias is not None]}}})")


def in_order(module, inputs):
    """The call's arguments by place, without the last that are the defaults."""
    bound = inspect.signature(module.forward).bind(*inputs.args, **inputs.kwargs)
    kinds = inspect.signature(module.forward).parameters
    if any(k.kind in (k.VAR_POSITIONAL, k.VAR_KEYWORD) for k in kinds.values()):
        return inputs.args
    bound.apply_defaults()
    args = list(bound.arguments.values())
    while args and args[-1] is None:
        args.pop()
    return args


def counted_name(name):
    """Parts of a name that are places count from 1."""
    return ".".join(str(int(part) + 1) if part.isdigit() else part for part in name.split("."))


def call_module(module, sample):
    torch.manual_seed(2)
    results, error = None, None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            results = module(*sample.forward_input.args, **sample.forward_input.kwargs)
        except Exception as caught:  # whatever PyTorch refuses with
            error = caught
    return results, error


def attempt_module(info, sample, dtype, training, tide, forms):
    try:
        return carry_out(info, sample, dtype, training, tide, forms)
    except NoForm as reason:
        return Trial("no form", str(reason))


def carry_out(info, sample, dtype, training, tide, forms):
    module = make(info, sample, dtype, training)
    args, kwargs = samples.refresh((sample.forward_input.args, sample.forward_input.kwargs))
    sample.forward_input.args, sample.forward_input.kwargs = args, kwargs
    state = float_state(module)
    storages, owned = Storages(), [x for _, x in state[0] + state[1]]
    operands = samples.tensors_of((args, kwargs, sample.constructor_input.args, sample.constructor_input.kwargs))
    for x in operands + owned:
        storages.add(x)
    message = Message(storages)
    lua = Lua(info, message, forms)
    exact = ExactModule(module, sample, dtype)
    setup, text = lua.chunk(module, sample, state, dtype, training)
    results, error = call_module(module, sample)
    buffers = [x for _, x in state[1] if x.dtype.is_floating_point]
    call = Call(info)
    found = samples.Torch(call, None if error is not None else samples.flat(results) + buffers, error)
    if error is not None and found.lacks_kernel():
        return Trial("skipped", "PyTorch has no kernel")
    check_results(found)
    inputs = [x for x in operands + owned if x.requires_grad and x.is_leaf]
    gradients = None if error is not None else samples.differentiate(found.results, inputs, False)
    plan = plan_text(gradients, message)
    names = [counted_name(name) for name, x in state[1] if x.dtype.is_floating_point]
    after = "".join(f', buffers["{name}"]' for name in names)
    chunk = (f"{message.declarations()}\n{setup}\nreturn function() local r = table.pack({text}) "
             f"local buffers = {{}} for n, b in m:named_buffers() do buffers[n] = b end return r{after} end, {plan}")
    trial = Trial("", "", text, message, call, plan)
    trial.setup = setup
    try:
        answer, data = tide.call(chunk, message.data())
    except Died as end:
        trial.outcome, trial.detail = "crash", str(end)
        return trial
    trial.outcome, trial.detail = judge_module(found, gradients, Answer(answer, data), message, exact.with_gradients(gradients)) or ("agrees", "")
    return trial


class ExactModule:
    """The same module in float64, called when it is asked for."""

    values = None

    def __init__(self, module, sample, dtype):
        self.module = copy.deepcopy(module).double() if dtype != torch.float64 else None
        given = sample.forward_input
        self.inputs = samples.widen((given.args, given.kwargs))
        self.gradients, self.done = None, None

    def with_gradients(self, gradients):
        self.gradients = gradients
        return self

    def run(self):
        if self.done is None and self.module is not None:
            torch.manual_seed(2)
            try:
                results = samples.flat(self.module(*self.inputs[0], **self.inputs[1]))
            except RuntimeError:
                results = []
            operands = samples.tensors_of(self.inputs) + [p for p in self.module.parameters()]
            inputs = [x for x in operands if x.requires_grad and x.is_leaf]
            self.done = results, self.differentiate(results, inputs) if results and self.gradients else []
        return self.done or ([], [])

    def differentiate(self, results, inputs):
        try:
            return torch.autograd.grad([results[k] for k in self.gradients.places], inputs,
                                       [c.double() for c in self.gradients.cotangents], allow_unused=True)
        except (RuntimeError, IndexError):
            return []

    def result(self, k):
        results = self.run()[0]
        return results[k].detach() if k < len(results) and isinstance(results[k], torch.Tensor) else None

    def gradient(self, k):
        first = self.run()[1]
        return first[k] if k < len(first) else None


def judge_module(found, gradients, answer, message, exact):
    """As of an operator, but where a module keeps what it writes is its own business."""
    for r in answer.results:
        if hasattr(r, "storage"):
            r.storage = None
    message.base_keys = {}
    return judge(found, gradients, answer, message, exact)
