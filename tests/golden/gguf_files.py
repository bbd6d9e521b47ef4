"""Writes data/gguf: files as the package gguf writes them, with every type of packed blocks, and what it makes of them, for
tests/lua/files/test_gguf.lua. Run by a person who has gguf (PyPI); the test needs none.

    python3 tests/golden/gguf_files.py

types.gguf has a tensor of each type under its name, floats.gguf the same tensors as the package unpacks them. plain.gguf has
float32 tensors that packed.gguf has packed by the package.
"""
import os

import numpy
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, GGUFValueType, GGUFWriter, dequantize, quantize

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data", "gguf")
SMALL, LARGE = ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0"], ["Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K"]
HALVES = {"Q2_K": (80, 82), "Q3_K": (108,), "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,), "Q4_1": (0, 2), "Q5_1": (0, 2)}
rng = numpy.random.default_rng(7)


def blocks(name, count):
    """Random bytes whose scales are finite."""
    data = rng.integers(0, 256, (count, GGML_QUANT_SIZES[GGMLQuantizationType[name]][1]), dtype=numpy.uint8)
    for place in HALVES.get(name, (0,)):
        data[:, place:place + 2] = rng.normal(size=(count, 1)).astype("<f2").view(numpy.uint8)
    return data


def writer(name):
    out = GGUFWriter(os.path.join(FOLDER, name), "tide")
    return out


def finish(out):
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


def metadata(out):
    for kind, value in [("uint8", 200), ("int8", -3), ("uint16", 60000), ("int16", -300), ("uint32", 4000000000), ("int32", -70000),
                        ("float32", 0.5), ("uint64", 2**64 - 2**11), ("int64", -(2**60)), ("float64", 0.1), ("bool", True)]:
        getattr(out, "add_" + kind)("kind." + kind, value)
    out.add_string("kind.string", "größe")
    out.add_array("list.strings", ["a", "", "c d"])
    out.add_array("list.ints", [1, -2, 3])
    out.add_array("list.floats", [0.5, 2.0])
    out.add_array("list.bools", [True, False])
    out.add_key_value("list.long", [7] * 3, GGUFValueType.ARRAY, GGUFValueType.UINT64)


def write_types():
    packed, floats = writer("types.gguf"), writer("floats.gguf")
    metadata(packed)
    for name in SMALL + LARGE:
        kind = GGMLQuantizationType[name]
        data = blocks(name, 2).reshape(2, -1)
        packed.add_tensor(name, data, raw_dtype=kind)
        floats.add_tensor(name, dequantize(data, kind).astype("<f4"))
    for name, dtype in [("F16", "<f2"), ("F32", "<f4"), ("F64", "<f8"), ("I8", "i1"), ("I16", "<i2"), ("I32", "<i4"), ("I64", "<i8")]:
        x = (rng.normal(size=(2, 3)) * 50).astype(dtype)
        packed.add_tensor(name, x)
        floats.add_tensor(name, x.astype("<f4"))
    x = quantize(rng.normal(size=(2, 3)).astype("<f4"), GGMLQuantizationType.BF16)
    packed.add_tensor("BF16", x, raw_dtype=GGMLQuantizationType.BF16)
    floats.add_tensor("BF16", dequantize(x, GGMLQuantizationType.BF16).astype("<f4"))
    cube = numpy.arange(24, dtype="<f4").reshape(2, 3, 4)
    packed.add_tensor("cube", cube)
    floats.add_tensor("cube", cube)
    finish(packed)
    finish(floats)


def edges():
    """Rows of 32 with zeros, ties, one large element, small numbers and equal magnitudes."""
    rows = [numpy.zeros(32), numpy.linspace(-1, 1, 32), numpy.full(32, -0.25), numpy.where(numpy.arange(32) == 5, 1e4, 0.5),
            numpy.arange(32) * 1e-7, numpy.where(numpy.arange(32) % 2, 3.0, -3.0), (numpy.arange(32) - 16) * 127 / 32, numpy.arange(32) - 15.5,
            numpy.full(32, 1e-42), numpy.arange(32) * 3e5]
    return numpy.array(rows).astype("<f4")


def write_packed():
    plain, packed = writer("plain.gguf"), writer("packed.gguf")
    packed.add_string("name", "größe")
    packed.add_uint32("number", 7)
    packed.add_float32("ratio", 0.5)
    packed.add_bool("truth", True)
    for name in ["BF16", "F16", "F32", "Q4_0", "Q8_0"]:
        kind = GGMLQuantizationType[name]
        x = numpy.concatenate([edges(), (rng.normal(size=(6, 32)) * numpy.exp(rng.normal(size=(6, 1)))).astype("<f4")])
        plain.add_tensor(name, x)
        with numpy.errstate(all="ignore"):
            packed.add_tensor(name, quantize(x, kind), raw_dtype=kind)
    finish(plain)
    finish(packed)


os.makedirs(FOLDER, exist_ok=True)
write_types()
write_packed()
