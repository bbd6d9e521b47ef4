"""quantized.py: the cases of quantized.lua in PyTorch, by the engine that ENGINE names (fbgemm, onednn, x86, qnnpack).

onednn ends the process on some machines: run each engine by itself.
"""
import os
import warnings

import torch

import bench

warnings.simplefilter("ignore")
torch.backends.quantized.engine = os.environ.get("ENGINE", "fbgemm")

size = bench.size(1024)
weight, bias = bench.uniform((size, size)), bench.uniform((size,))
quantized = torch.quantize_per_channel(weight, weight.abs().amax(1).double() / 127, torch.zeros(size, dtype=torch.int64), 0, torch.qint8)
packed = torch.ops.quantized.linear_prepack(quantized, bias)

for rows in (1, 16, 256):
    x = bench.uniform((rows, size))
    integers = torch.quantize_per_tensor(x, 1 / 127, 128, torch.quint8)
    bench.case(f"linear_bytes_{rows}", lambda q=integers: torch.ops.quantized.linear(q, packed, 0.5, 128), 1,
               lambda q=integers: torch.ops.quantized.linear(q, packed, 0.5, 128).int_repr())
    bench.case(f"linear_dynamic_{rows}", lambda x=x: torch.ops.quantized.linear_dynamic(x, packed), 1)
    bench.case(f"linear_float32_{rows}", lambda x=x: torch.nn.functional.linear(x, weight, bias), 1)

CONVS = [(3, 64, 224, 7, 2), (64, 64, 56, 3, 1), (64, 128, 56, 3, 2), (64, 128, 56, 1, 2), (128, 128, 28, 3, 1), (128, 256, 28, 3, 2),
         (128, 256, 28, 1, 2), (256, 256, 14, 3, 1), (256, 512, 14, 3, 2), (256, 512, 14, 1, 2), (512, 512, 7, 3, 1), (32, 32, 112, 3, 1, 32),
         (144, 144, 56, 3, 2, 144), (384, 384, 14, 3, 1, 384), (128, 128, 56, 3, 1, 32), (256, 256, 28, 3, 1, 32)]

for channels, out, places, k, stride, *groups in CONVS:
    groups, places = groups[0] if groups else 1, bench.size(places, 7)
    w, b = bench.uniform((out, channels // groups, k, k)), bench.uniform((out,))
    x = bench.uniform((1, channels, places, places))
    q = torch.quantize_per_channel(w, w.abs().amax((1, 2, 3)).double() / 127, torch.zeros(out, dtype=torch.int64), 0, torch.qint8)
    packed = torch.ops.quantized.conv2d_prepack(q, b, [stride, stride], [k // 2, k // 2], [1, 1], groups)
    integers = torch.quantize_per_tensor(x, 1 / 127, 128, torch.quint8).contiguous(memory_format=torch.channels_last)
    name = f"{'depthwise' if groups == channels else 'grouped' if groups > 1 else 'conv'}_{channels}_{out}_{places}_{k}x{k}_s{stride}"
    bench.case(f"{name}_bytes", lambda q=integers, p=packed: torch.ops.quantized.conv2d(q, p, 0.1, 128), 1,
               lambda q=integers, p=packed: torch.ops.quantized.conv2d(q, p, 0.1, 128).int_repr())
    bench.case(f"{name}_float32", lambda x=x, w=w, b=b, s=stride, k=k, g=groups: torch.nn.functional.conv2d(x, w, b, s, k // 2, 1, g), 1)

for channels, out, places, k, stride, pad, groups in ((64, 32, 56, 4, 2, 1, 1), (256, 128, 28, 2, 2, 0, 1), (128, 64, 28, 3, 2, 1, 1),
                                                      (32, 32, 56, 4, 2, 1, 32)):
    places = bench.size(places, 7)
    w, b = bench.uniform((channels, out // groups, k, k)), bench.uniform((out,))
    x = bench.uniform((1, channels, places, places))
    q = torch.quantize_per_tensor(w, 1 / 127, 0, torch.qint8)
    packed = torch.ops.quantized.conv_transpose2d_prepack(q, b, [stride, stride], [pad, pad], [0, 0], [1, 1], groups)
    integers = torch.quantize_per_tensor(x, 1 / 127, 128, torch.quint8).contiguous(memory_format=torch.channels_last)
    name = f"transposed_{channels}_{out}_{places}_{k}x{k}_s{stride}"
    bench.case(f"{name}_bytes", lambda q=integers, p=packed: torch.ops.quantized.conv_transpose2d(q, p, 0.1, 128), 1,
               lambda q=integers, p=packed: torch.ops.quantized.conv_transpose2d(q, p, 0.1, 128).int_repr())
    bench.case(f"{name}_float32", lambda x=x, w=w, b=b, s=stride, p=pad, g=groups: torch.nn.functional.conv_transpose2d(x, w, b, s, p, 0, g), 1)
