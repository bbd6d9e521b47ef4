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
