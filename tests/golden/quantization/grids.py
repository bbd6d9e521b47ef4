#!/usr/bin/env python3
"""Writes grids.jsonl: digests of what fbgemm's engine makes of layers over the grids of FBGEMM's own tests, with activations of 7 bits
and weights up to 64, so that no sum saturates on any processor. Run with PyTorch 2.x; tests/ops/quantized reads the file.

    python3 tests/golden/quantization/grids.py
"""
import json
import os
import warnings

import torch

warnings.simplefilter("ignore")
ops = torch.ops.quantized


def draw(sizes, seed, low, high):
    """Integers from low to high that any language draws alike."""
    n = 1
    for size in sizes:
        n *= size
    k = torch.arange(n)
    return (low + ((k * k % 65521) * (2 * seed + 1) + k * 40503 + seed * 977) % 65521 % (high - low + 1)).reshape(sizes)


def digest(y):
    v = y.int_repr().reshape(-1).long()
    k = torch.arange(v.numel())
    return int(((v + 1) * ((k * k % 65521 * 31 + k * 17) % 65521 + 1)).sum())


def weight(sizes, seed, whole, symmetric):
    out = sizes[0]
    scales = draw([out], seed + 1, 1, 16).double() / 16384
    points = draw([out], seed + 2, -20, 20) * (not symmetric)
    w = draw(sizes, seed, -64, 63).to(torch.int8)
    if whole:  # a power of 2: fbgemm fuses bias * (1 / scale) with the sum, which rounds some ties of others the other way
        return torch._make_per_tensor_quantized_tensor(w, 1 / 2048, points[0].item())
    return torch._make_per_channel_quantized_tensor(w, scales, points, 0)


def bias(out, seed):
    return draw([out], seed + 3, -64, 64).float() / 32


def linears():
    """PackedRequantizeTest's shapes, by tensor and by channel."""
    shapes = [(1, 128, 512), (1, 2048, 513), (6, 512, 512), (6, 2048, 256), (6, 2048, 257), (102, 2323, 256), (102, 512, 257), (120, 4, 288)]
    for k, (m, n, depth) in enumerate(shapes):
        for whole in (False, True):
            for relu in (False, True):
                seed = 10 * k + 1
                x = torch._make_per_tensor_quantized_tensor(draw([m, depth], seed, 0, 127).to(torch.uint8), 0.03125, 43)
                packed = ops.linear_prepack(weight([n, depth], seed + 4, whole, k % 2 == 0), None if relu else bias(n, seed))
                y = (ops.linear_relu if relu else ops.linear)(x, packed, 0.25, 5)
                yield {"linear": [m, n, depth], "whole": whole, "relu": relu, "seed": seed, "symmetric": k % 2 == 0}, y


def convolutions():
    """UniConvTest's, GConvTest's and I8DepthwiseTest's: batch, channels, out, groups, size, kernel, stride, padding."""
    grid, n = [], 0
    for kernel in (1, 3, 5, 7):
        for stride in (1, 2):
            for padding in (0, 1, 2):
                for groups in (1, 4, 16):
                    n += 1
                    grid.append((1 + n % 2, 16 << n // 2 % 2, 16 << n // 4 % 2, groups, (10, 10 + n % 3 * 5), kernel, stride, padding))
    for each in (2, 4, 8, 16):
        for groups in (1, 2, 8, 32):
            for stride in (1, 2):
                grid.append((1, each * groups, each * groups, groups, (8, 9), 3, stride, 1))
    for channels in (8, 16, 24, 33, 64, 72):
        for times in (1, 2):
            for stride in (1, 2):
                grid.append((2, channels, channels * times, channels, (9, 14), 3, stride, 1))
    for k, (batch, channels, out, groups, size, kernel, stride, padding) in enumerate(grid):
        symmetric, relu, whole, point = k % 2 == 0, k % 5 == 0, k % 3 == 0, 0 if k % 4 == 0 else 43
        if groups == channels:
            symmetric, whole = True, False
        x = torch._make_per_tensor_quantized_tensor(draw([batch, channels, *size], k, 0, 127).to(torch.uint8), 0.03125, point)
        w = weight([out, channels // groups, kernel, kernel], k + 4, whole, symmetric)
        packed = ops.conv2d_prepack(w, bias(out, k), [stride] * 2, [padding] * 2, [1, 1], groups)
        y = (ops.conv2d_relu if relu else ops.conv2d)(x.contiguous(memory_format=torch.channels_last), packed, 0.125, 7)
        yield {"conv": [batch, channels, out, groups, kernel, stride, padding], "size": size, "whole": whole, "relu": relu, "seed": k,
               "symmetric": symmetric, "point": point}, y


def transposed():
    """Transposed convolutions, whose weights have one scale: channels, out, groups, kernel, stride, padding, output_padding, dilation. Without
    a kernel of 2 by 2 in steps of 2 and one group: two thirds of what fbgemm makes of that are not the sums (PyTorch 2.15)."""
    grid = []
    for kernel in (1, 2, 3, 4):
        for stride in (1, 2, 3):
            for groups in (4, 8, 16) if kernel == stride == 2 else (1, 4, 16):
                n = len(grid)
                grid.append((16, 16 << n % 2, groups, kernel, stride, min(n % 3, kernel - 1), n % stride, 1 + n % 2))
    for k, (channels, out, groups, kernel, stride, padding, extra, dilation) in enumerate(grid):
        symmetric, point, size = k % 2 == 0, 0 if k % 4 == 0 else 43, (5, 7)
        x = torch._make_per_tensor_quantized_tensor(draw([2, channels, *size], k, 0, 127).to(torch.uint8), 0.03125, point)
        w = weight([channels, out // groups, kernel, kernel], k + 4, True, symmetric)
        packed = ops.conv_transpose2d_prepack(w, bias(out, k), [stride] * 2, [padding] * 2, [extra] * 2, [dilation] * 2, groups)
        y = ops.conv_transpose2d(x.contiguous(memory_format=torch.channels_last), packed, 0.125, 7)
        yield {"transposed": [channels, out, groups, kernel, stride, padding, extra, dilation], "size": size, "seed": k,
               "symmetric": symmetric, "point": point}, y


torch.backends.quantized.engine = "fbgemm"
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "grids.jsonl"), "w") as file:
    for case, y in list(linears()) + list(convolutions()) + list(transposed()):
        case["digest"] = digest(y)
        file.write(json.dumps(case) + "\n")
