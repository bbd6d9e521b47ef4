#!/usr/bin/env python3
"""Writes tables.jsonl: tables that PyTorch packs with 8 and 4 bits for an element, row by row, and sums of their rows by bags.
Run with PyTorch 2.x; tests/lua/quantization/test_quantized_tables.lua reads the file.

    python3 tests/golden/quantization/tables.py
"""
import json
import os
import struct

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
torch.manual_seed(1)


def bits(x):
    return ["%08x" % struct.unpack("<I", struct.pack("<f", v))[0] for v in x.reshape(-1).tolist()]


def weight(rows, width, spread):
    x = torch.randn(rows, width) * spread
    x[0], x[1], x[2, 1:] = 0, 2.5, 0
    return x


ops = torch.ops.quantized
with open(os.path.join(HERE, "tables.jsonl"), "w") as file:
    for width, spread in ((2, 1.0), (8, 1e-6), (30, 1.0), (64, 30.0), (130, 1e-3), (18, 1e-8)):
        w = weight(7, width, spread)
        index, offsets = torch.tensor([0, 1, 3, 3, 2, 6, 5]), torch.tensor([0, 3, 3])
        samples = torch.tensor([1, 0.5, -1, 2, 0.25, 1, 3.0])
        for name in ("byte", "4bit"):
            packed = getattr(ops, "embedding_bag_%s_prepack" % name)(w)
            look = getattr(ops, "embedding_bag_%s_rowwise_offsets" % name)
            file.write(json.dumps({
                "bits": 8 if name == "byte" else 4, "width": width, "weight": bits(w), "packed": packed.reshape(-1).tolist(),
                "floats": bits(getattr(ops, "embedding_bag_%s_unpack" % name)(packed)),
                "sums": bits(look(packed, index, offsets, False, 0, False, None, None, False)),
                "weighted": bits(look(packed, index, offsets, False, 0, False, samples, None, False))}) + "\n")
