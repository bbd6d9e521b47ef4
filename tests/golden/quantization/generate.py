#!/usr/bin/env python3
"""Writes observers.jsonl: what torch.ao.quantization makes of batches that both sides draw alike: scales, zero points
what fake quantization gives, with gradients, and what layers and functions make of bytes. Run with PyTorch 2.x; tests/lua/quantization reads the file.

    python3 tests/golden/quantization/generate.py
"""
import json
import os
import struct
import subprocess
import sys
import warnings

import torch
from torch.ao.quantization import fake_quantize, observer

warnings.simplefilter("ignore")
HERE = os.path.dirname(os.path.abspath(__file__))


def draw(n, seed, spread=1.0, shift=0.0):
    """n float32 numbers of a generator that is a line in any language; the sum of four is nearly normal."""
    state, out = seed, []
    for _ in range(n):
        total = 0
        for _ in range(4):
            state = (state * 1103515245 + 12345) % 2147483648
            total += state // 65536
        out.append((total / 32768 - 2) * spread + shift)
    return torch.tensor(out, dtype=torch.float64).to(torch.float32)


def bits(x):
    return ["%08x" % struct.unpack("<I", struct.pack("<f", v))[0] for v in x.detach().reshape(-1).tolist()]


SCHEMES = {"affine": torch.per_tensor_affine, "symmetric": torch.per_tensor_symmetric}
CHANNELS = {"affine": torch.per_channel_affine, "symmetric": torch.per_channel_symmetric}
BATCHES = [[(256, 1, 1.0, 0.0)], [(300, 2, 0.5, 1.0), (300, 3, 2.0, -0.5)], [(64, 4, 1e-3, 0.0), (64, 5, 1e-2, 0.0), (200, 6, 5.0, 2.0)],
           [(128, 7, 1.0, 6.0)], [(128, 8, 1.0, -6.0)], [(8, 9, 0.0, 0.0)], [(500, 10, 1.0, 0.0), (500, 11, 0.2, 0.0)]]


def cases():
    for name in ("MinMaxObserver", "MovingAverageMinMaxObserver", "HistogramObserver", "PerChannelMinMaxObserver"):
        for dtype in ("quint8", "qint8"):
            for scheme in SCHEMES:
                for reduced in (False, True):
                    if dtype == "quint8" and scheme == "symmetric" and reduced:
                        continue  # torch refuses it too
                    for batches in BATCHES:
                        channels = name.startswith("PerChannel")
                        options = {"dtype": getattr(torch, dtype), "reduce_range": reduced,
                                   "qscheme": (CHANNELS if channels else SCHEMES)[scheme]}
                        if channels:
                            options["ch_axis"] = 1
                        made = getattr(observer, name)(**options)
                        for batch in batches:
                            made(draw(*batch).reshape(-1, 4))
                        scale, point = made.calculate_qparams()
                        yield {"observer": name, "dtype": dtype, "scheme": scheme, "reduce_range": reduced, "batches": batches,
                               "scale": bits(scale), "zero_point": point.tolist()}
    for scale, point, low, high in ((0.05, 10, 0, 255), (0.1, 0, -128, 127), (0.013, 3, 0, 15), (1 / 3, -5, -64, 63)):
        x = draw(96, 12, 4.0).reshape(4, 6, 4).requires_grad_(True)
        y = torch.fake_quantize_per_tensor_affine(x, scale, point, low, high)
        y.backward(draw(96, 13).reshape(4, 6, 4))
        yield {"fake": [scale, point, low, high], "out": bits(y), "grad": bits(x.grad)}
        x = x.detach().requires_grad_(True)
        scales, points = draw(6, 14, 0.01, 0.1), torch.full((6,), point, dtype=torch.int32)
        y = torch.fake_quantize_per_channel_affine(x, scales, points, 1, low, high)
        y.backward(draw(96, 13).reshape(4, 6, 4))
        yield {"fake_channels": [point, low, high], "out": bits(y), "grad": bits(x.grad)}
        x = x.detach().requires_grad_(True)
        s = torch.tensor([scale], requires_grad=True)
        z = torch.tensor([float(max(point, low))], requires_grad=True)
        y = torch._fake_quantize_learnable_per_tensor_affine(x, s, z, low, high, 0.25)
        y.backward(draw(96, 13).reshape(4, 6, 4))
        yield {"learnable": [scale, max(point, low), low, high], "out": bits(y), "grad": bits(x.grad), "scale_grad": s.grad.item(),
               "point_grad": z.grad.item()}


def quantized():
    """Linear layers by fbgemm, with activations of 7 bits, so that no sum saturates on any processor."""
    torch.backends.quantized.engine = "fbgemm"
    for k, (m, depth, n) in enumerate(((1, 128, 20), (6, 51, 33), (7, 4, 16), (3, 257, 5))):
        x, w, b = draw(m * depth, 20 + k).reshape(m, depth), draw(n * depth, 30 + k, 0.2).reshape(n, depth), draw(n, 40 + k)
        qx = torch.quantize_per_tensor(x, 0.04, 60, torch.quint8)
        qx = torch._make_per_tensor_quantized_tensor(qx.int_repr().clamp(0, 127), 0.04, 60)
        qw = torch.quantize_per_channel(w, w.abs().amax(1).double() / 127, torch.zeros(n, dtype=torch.int64), 0, torch.qint8)
        packed = torch.ops.quantized.linear_prepack(qw, b)
        yield {"linear": [m, depth, n, k], "x": qx.int_repr().reshape(-1).tolist(), "w": qw.int_repr().reshape(-1).tolist(),
               "out": torch.ops.quantized.linear(qx, packed, 0.05, 100).int_repr().reshape(-1).tolist(),
               "relu": torch.ops.quantized.linear_relu(qx, packed, 0.05, 100).int_repr().reshape(-1).tolist(),
               "dynamic": torch.ops.quantized.linear_dynamic(x, packed, True).reshape(-1).tolist()}


# channels, out, groups, kernel, stride, padding, dilation; 7-bit activations, which no engine saturates.
CONVS = [(3, 5, 1, 3, 1, 1, 1), (8, 16, 1, 1, 2, 0, 1), (8, 12, 4, 3, 2, 1, 1), (16, 16, 16, 3, 1, 1, 1), (16, 32, 2, 5, 2, 2, 1), (6, 7, 1, 3, 1, 2, 2)]


def convolutions():
    for k, (channels, out, groups, size, stride, padding, dilation) in enumerate(CONVS):
        x = draw(channels * 63, 50 + k).reshape(1, channels, 7, 9)
        w = draw(out * (channels // groups) * size * size, 60 + k, 0.2).reshape(out, channels // groups, size, size)
        b = draw(out, 70 + k)
        qx = torch.quantize_per_tensor(x, 0.04, 60, torch.quint8)
        qx = torch._make_per_tensor_quantized_tensor(qx.int_repr().clamp(0, 127), 0.04, 60).contiguous(memory_format=torch.channels_last)
        qw = torch.quantize_per_channel(w, w.abs().amax((1, 2, 3)).double() / 127, torch.zeros(out, dtype=torch.int64), 0, torch.qint8)
        packed = torch.ops.quantized.conv2d_prepack(qw, b, [stride] * 2, [padding] * 2, [dilation] * 2, groups)
        y = torch.ops.quantized.conv2d(qx, packed, 0.05, 100)
        other = torch.ops.quantized.conv2d_relu(qx, packed, 0.04, 90)
        yield {"conv": [channels, out, groups, size, stride, padding, dilation, k], "out": y.int_repr().reshape(-1).tolist(),
               "relu": other.int_repr().reshape(-1).tolist(),
               "sum": torch.ops.quantized.add(y, other, 0.09, 80).int_repr().reshape(-1).tolist(),
               "product": torch.ops.quantized.mul(y, other, 0.11, 70).int_repr().reshape(-1).tolist(),
               "largest": torch.nn.functional.max_pool2d(y, 2).int_repr().reshape(-1).tolist(),
               "mean": torch.nn.functional.avg_pool2d(y, 2).int_repr().reshape(-1).tolist()}


def ints(y):
    return [y.q_scale(), y.q_zero_point()] + y.int_repr().reshape(-1).tolist()


# Functions of single elements, of all that bytes can be; the functions of tests/lua/quantization have these names.
UNARY = {"sigmoid": torch.sigmoid, "tanh": torch.tanh, "hardsigmoid": torch.nn.functional.hardsigmoid, "gelu": torch.nn.functional.gelu,
         "leaky_relu": lambda x: torch.nn.functional.leaky_relu(x, 0.1), "hardtanh": lambda x: torch.nn.functional.hardtanh(x, -1.5, 2.2),
         "relu6": torch.nn.functional.relu6, "clamp": lambda x: torch.clamp(x, -0.7, 2.0)}
ops = torch.ops.quantized
ROUNDED = {"hardswish": lambda x: ops.hardswish(x, 0.03, 10), "elu": lambda x: ops.elu(x, 0.04, 30, 0.8), "celu": lambda x: ops.celu(x, 0.04, 30, 0.8),
           "softmax": lambda x: ops.softmax(x.reshape(16, 16), 1, 1 / 256, 0), "layer_norm": lambda x: ops.layer_norm(
               x.reshape(16, 16), [16], draw(16, 90, 0.5, 1.0), draw(16, 91), 1e-5, 0.03, 120)}
SCALARS = (0.7, -3.3, 6.0, 0.0, 1e3, -1e3)


def functions():
    for k, (scale, point) in enumerate(((0.05, 100), (0.02, 128), (0.1, 30))):
        order = torch.argsort(draw(256, 80 + k))
        x = torch._make_per_tensor_quantized_tensor(order.to(torch.uint8), scale, point)
        results = {name: ints(fn(x)) for name, fn in list(UNARY.items()) + list(ROUNDED.items())}
        for number in SCALARS:
            for name in ("add_scalar", "mul_scalar", "add_scalar_relu", "mul_scalar_relu"):
                results["%s %g" % (name, number)] = ints(getattr(ops, name)(x, number))
        signed = torch._make_per_tensor_quantized_tensor((order - 128).to(torch.int8), scale, point - 128)
        yield {"functions": [scale, point], "x": order.tolist(), "results": results,
               "signed": {name: ints(UNARY[name](signed)) for name in ("sigmoid", "tanh", "hardsigmoid", "leaky_relu")}}


def full(draws, seed, dtype):
    return torch.clamp(torch.round(draw(draws, seed, 200.0, 128.0 if dtype is torch.uint8 else 0.0)), *((0, 255) if dtype is torch.uint8 else (-128, 127))).to(dtype)


def saturating():
    """Full bytes by fbgemm's kernels for AVX2, whose sums of pairs saturate."""
    torch.backends.quantized.engine = "fbgemm"
    for k, (m, depth, n) in enumerate(((6, 51, 33), (3, 257, 20), (2, 32, 24), (7, 64, 16))):
        x = torch._make_per_tensor_quantized_tensor(full(m * depth, 100 + k, torch.uint8).reshape(m, depth), 0.04, 60)
        w = torch._make_per_tensor_quantized_tensor(full(n * depth, 110 + k, torch.int8).reshape(n, depth), 0.01, 0)
        y = ops.linear(x, ops.linear_prepack(w, draw(n, 120 + k)), 1.5, 100)
        yield {"saturating": [m, depth, n, k], "out": y.int_repr().reshape(-1).tolist()}
    for k, (channels, out, groups, size) in enumerate(((8, 16, 1, 3), (5, 7, 1, 3), (24, 16, 1, 1))):
        x = torch._make_per_tensor_quantized_tensor(full(channels * 30, 130 + k, torch.uint8).reshape(1, channels, 5, 6), 0.04, 60)
        w = full(out * channels // groups * size * size, 140 + k, torch.int8).reshape(out, channels // groups, size, size)
        w = torch._make_per_tensor_quantized_tensor(w, 0.01, 0)
        packed = ops.conv2d_prepack(w, draw(out, 150 + k), [1, 1], [size // 2] * 2, [1, 1], groups)
        y = ops.conv2d(x.contiguous(memory_format=torch.channels_last), packed, 1.5, 100)
        yield {"saturating_conv": [channels, out, groups, size, k], "out": y.int_repr().reshape(-1).tolist()}


if sys.argv[1:] == ["saturating"]:
    for case in saturating():
        print(json.dumps(case))
    sys.exit()

child = subprocess.run([sys.executable, os.path.abspath(__file__), "saturating"], env=dict(os.environ, FBGEMM_ENABLE_INSTRUCTIONS="AVX2"),
                       check=True, capture_output=True, text=True)
with open(os.path.join(HERE, "observers.jsonl"), "w") as file:
    for case in list(cases()) + list(quantized()) + list(convolutions()) + list(functions()):
        file.write(json.dumps(case) + "\n")
    file.write(child.stdout)
