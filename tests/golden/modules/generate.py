#!/usr/bin/env python3
"""Writes what PyTorch's transformers, parametrized weights, fractional pooling and CrossMapLRN2d compute: a case a line of JSON in modules.jsonl
beside this script, with the expression in Lua that makes the same module, the call, names and shapes of parameters,
results and the sums of the parameters' gradients. tests/lua/nn/test_nn_modules.lua does the same. Needs PyTorch.

Parameter k holds sin(0.37 j + k) / 2 in its element j, inputs are cos(0.61 j + o)."""
import json
import os
import warnings

import torch
from torch import nn
from torch.nn import utils

HERE = os.path.dirname(os.path.abspath(__file__))
warnings.simplefilter("ignore")


def filled(module):
    with torch.no_grad():
        for k, p in enumerate(module.double().parameters(), 1):
            p.copy_((torch.sin(torch.arange(p.numel(), dtype=torch.float64) * 0.37 + k) * 0.5).reshape(p.shape))
    return module


def wave(*sizes, offset=0.0):
    n = torch.Size(sizes).numel()
    return torch.cos(torch.arange(n, dtype=torch.float64) * 0.61 + offset).reshape(sizes)


def counted(name):
    return ".".join(str(int(part) + 1) if part.isdigit() else part for part in name.split("."))


def texts(options):
    def text(v):
        return "true" if v is True else "false" if v is False else json.dumps(v)
    return "{" + ", ".join(f"{k} = {text(v)}" for k, v in options.items()) + "}"


def case(lua, module, inputs, kwargs=None, call="", training=False):
    """inputs: (sizes, offset) of each."""
    filled(module).train(training)
    result = module(*[wave(*s, offset=o) for s, o in inputs], **(kwargs or {}))
    if result.requires_grad:
        (result * wave(*result.shape, offset=1)).sum().backward()
    print(json.dumps({
        "lua": lua, "inputs": [{"sizes": s, "offset": o} for s, o in inputs], "call": call, "training": training,
        "parameters": [{"name": counted(n), "sizes": list(p.shape), "gradient": p.grad.sum().item()}
                       for n, p in module.named_parameters()],
        "sizes": list(result.shape), "result": result.flatten().tolist()}), file=OUT)


def layers():
    forms = ({}, {"norm_first": True}, {"batch_first": True, "activation": "gelu"}, {"bias": False, "layer_norm_eps": 0.1})
    causal = "tgt_mask = nn.Transformer.generate_square_subsequent_mask(3, {dtype = tide.float64})"
    for form in forms:
        options = {"dim_feedforward": 6, **form}
        batch = [2, 3, 4] if form.get("batch_first") else [3, 2, 4]
        case(f"nn.TransformerEncoderLayer(4, 2, {texts(options)})", nn.TransformerEncoderLayer(4, 2, **options),
             [(batch, 0.0)])
        mask = nn.Transformer.generate_square_subsequent_mask(3, dtype=torch.float64)
        case(f"nn.TransformerDecoderLayer(4, 2, {texts(options)})", nn.TransformerDecoderLayer(4, 2, **options),
             [(batch, 0.0), (batch, 2.0)], {"tgt_mask": mask}, causal)
    padding = torch.tensor([[False, False, True], [False, True, True]])
    case(f"nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, {{dim_feedforward = 6}}), 2, {{norm = nn.LayerNorm(4)}})",
         nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, dim_feedforward=6), 2, norm=nn.LayerNorm(4)),
         [([3, 2, 4], 0.0)], {"src_key_padding_mask": padding},
         "src_key_padding_mask = tide.tensor {{false, false, true}, {false, true, true}}")
    case("nn.TransformerDecoder(nn.TransformerDecoderLayer(4, 2, {dim_feedforward = 6}), 2)",
         nn.TransformerDecoder(nn.TransformerDecoderLayer(4, 2, dim_feedforward=6), 2),
         [([3, 2, 4], 0.0), ([5, 2, 4], 1.0)], {"tgt_mask": mask}, causal)
    for form in forms:
        options = {"dim_feedforward": 5, "num_encoder_layers": 1, "num_decoder_layers": 2, **form}
        src, tgt = ([2, 5, 4], [2, 3, 4]) if form.get("batch_first") else ([5, 2, 4], [3, 2, 4])
        case(f"nn.Transformer(4, 2, {texts(options)})", nn.Transformer(4, 2, **options), [(src, 0.0), (tgt, 1.0)],
             {"tgt_mask": mask}, causal)


def norms():
    for dim, text in ((0, 1), (1, 2), (None, 0)):
        case(f"nn.utils.weight_norm(nn.Linear(3, 4), {{dim = {text}}})", utils.weight_norm(nn.Linear(3, 4), dim=dim),
             [([2, 3], 0.0)])
    case('nn.utils.weight_norm(nn.Conv1d(2, 3, 2), "bias")', utils.weight_norm(nn.Conv1d(2, 3, 2), "bias"), [([1, 2, 5], 0.0)])
    case("nn.utils.weight_norm(nn.Conv2d(2, 3, 2))", utils.weight_norm(nn.Conv2d(2, 3, 2)), [([1, 2, 4, 4], 0.0)])
    for training in (True, False):
        for lua, layer, sizes in (("nn.Linear(3, 4)", nn.Linear(3, 4), [2, 3]), ("nn.Conv2d(2, 3, 2)", nn.Conv2d(2, 3, 2), [1, 2, 4, 4]),
                                  ("nn.ConvTranspose1d(2, 3, 2)", nn.ConvTranspose1d(2, 3, 2), [1, 2, 4])):
            module = utils.spectral_norm(layer, n_power_iterations=2)
            with torch.no_grad():
                for b in module.double().buffers():
                    b.copy_(wave(*b.shape, offset=0.3))
            case(f"spectral({lua})", module, [(sizes, 0.0)], training=training)


def parametrizations():
    P = utils.parametrizations
    for dim, text in ((0, 1), (1, 2)):
        case(f"nn.utils.parametrizations.weight_norm(nn.Linear(3, 4), {{dim = {text}}})",
             P.weight_norm(nn.Linear(3, 4), dim=dim), [([2, 3], 0.0)])
    case("nn.utils.parametrizations.weight_norm(nn.Conv2d(2, 3, 2))", P.weight_norm(nn.Conv2d(2, 3, 2)), [([1, 2, 4, 4], 0.0)])
    for orthogonal_map in ("matrix_exp", "cayley"):
        for into, out in ((3, 3), (3, 5), (5, 3)):
            case(f'nn.utils.parametrizations.orthogonal(nn.Linear({into}, {out}), "weight", "{orthogonal_map}", '
                 "{use_trivialization = false})",
                 P.orthogonal(nn.Linear(into, out), "weight", orthogonal_map, use_trivialization=False), [([2, into], 0.0)])


def pooling():
    for lua, module, sizes in (
            ("nn.FractionalMaxPool2d(2, {output_size = {3, 4}, _random_samples = tide.tensor({{{0.1, 0.7}, {0.4, 0.9}}}, {dtype = tide.float64})})",
             nn.FractionalMaxPool2d(2, output_size=(3, 4), _random_samples=torch.tensor([[[0.1, 0.7], [0.4, 0.9]]]).double()),
             [1, 2, 7, 9]),
            ("nn.FractionalMaxPool2d({3, 2}, {output_ratio = {0.5, 0.4}, _random_samples = tide.tensor({{{0.6, 0.3}}}, {dtype = tide.float64})})",
             nn.FractionalMaxPool2d((3, 2), output_ratio=(0.5, 0.4), _random_samples=torch.tensor([[[0.6, 0.3]]]).double()),
             [1, 8, 10]),
            ("nn.FractionalMaxPool3d({2, 3, 1}, {output_size = {2, 3, 4}, _random_samples = tide.tensor({{{0.1, 0.7, 0.45}, {0.4, 0.9, 0.2}}}, {dtype = tide.float64})})",
             nn.FractionalMaxPool3d((2, 3, 1), output_size=(2, 3, 4),
                                    _random_samples=torch.tensor([[[0.1, 0.7, 0.45], [0.4, 0.9, 0.2]]]).double()),
             [1, 2, 5, 7, 8])):
        conv = f"nn.Conv{module.__class__.__name__[-2:]}({2 if len(sizes) > 3 else 1}, {2 if len(sizes) > 3 else 1}, 1)"
        case(f"nn.Sequential({conv}, {lua})", nn.Sequential(eval(conv), module), [(sizes, 0.0)])
    for size in (9, 10):  # PyTorch leaves the first channel in all windows of smaller sizes; Tide doesn't
        case(f"nn.CrossMapLRN2d({size}, 0.3, 0.6, 1.5)", nn.CrossMapLRN2d(size, 0.3, 0.6, 1.5), [([2, 5, 2, 3], 0.0)])


if __name__ == "__main__":
    with open(os.path.join(HERE, "modules.jsonl"), "w") as OUT:
        layers()
        norms()
        parametrizations()
        pooling()
