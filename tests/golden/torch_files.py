"""Writes data/torch: files as torch.save writes them in both its forms (an archive, a stream of pickles) and by several
protocols of pickles, and values.lua, which says what is in them, for tests/lua/files/test_torch.lua. Run by a person who has
PyTorch; the test needs none.

    python3 tests/golden/torch_files.py
"""
import argparse
import collections
import os
import zipfile

import numpy
import torch

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data", "torch")
DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8,
          torch.bool]


def contents():
    torch.manual_seed(7)
    grid = torch.arange(12.0).reshape(3, 4)
    tensors = {str(dtype)[6:]: (torch.randn(2, 3) * 2).to(dtype) for dtype in DTYPES}
    model = collections.OrderedDict([("z.weight", torch.randn(2, 2)), ("a.bias", torch.tensor([0.5, -1e30])), ("m", torch.tensor(3))])
    model._metadata = collections.OrderedDict([("", {"version": 1})])
    return {
        "model": model, "tensors": tensors,
        "views": {"grid": grid, "row": grid[1], "turned": grid.t(), "steps": grid[:, 1::2], "last": grid[2, 3],
                  "wide": torch.tensor([1.0, 2.0])[:, None].expand(2, 3), "none": torch.zeros(0, 3), "back": grid[2:, :]},
        "parameter": torch.nn.Parameter(torch.tensor([1.0, 2.0])), "leaf": torch.tensor([3.0], requires_grad=True),
        "sparse": torch.sparse_coo_tensor([[0, 2], [1, 0]], [5.0, 6.0], (3, 2)),
        "plain": {"int": 7, "minus": -70000, "long": 2**40, "most": 2**63 - 1, "least": -(2**63), "float": 0.1, "whole": 2.0,
                  "inf": float("-inf"), "yes": True, "no": False, "text": "größe\n'\"", "empty": "", "bytes": b"\x00\xff\x80",
                  "nothing": None, 3: "three", 0: "zero", True: 1.5},
        "lists": {"list": [1, [2.5, "x"], ()], "tuple": (1, 2, 3, 4), "holes": [1, None, 3], "set": {5}, "size": torch.Size([2, 3]),
                  "long": list(range(1200))},
        "names": {"dtype": torch.float16, "device": torch.device("cuda", 1), "cpu": torch.device("cpu")},
        "scalar": numpy.float64(0.25), "count": numpy.int64(-3), "counter": collections.Counter({"a": 2}),
    }


def foreign():
    """Names of what is left out stand in values.lua."""
    return {
        "kept": torch.ones(2), "complex": torch.ones(2, dtype=torch.complex64), "uint16": torch.ones(2, dtype=torch.uint16),
        "float8": torch.ones(2).to(torch.float8_e4m3fn), "quantized": torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8),
        "args": argparse.Namespace(lr=0.1), "fn": torch.nn.functional.relu, "array": numpy.ones(2), "huge": 2**64,
        "csr": torch.eye(2).to_sparse_csr(), "deep": {"list": [torch.ones(1), argparse.Namespace()]},
    }


LEFT = {"complex": "complex64", "uint16": "uint16", "float8": "float8_e4m3fn", "quantized": "a quantized tensor", "args": "argparse.Namespace",
        "fn": "torch.nn.functional.relu", "array": "_reconstruct", "huge": "beyond 64 bits", "csr": "torch.sparse_csr",
        "deep.list.2": "argparse.Namespace"}


def number(x):
    if isinstance(x, bool):
        return str(x).lower()
    if isinstance(x, int):
        return "math.mininteger" if x == -(2**63) else str(x)
    return "0/0" if x != x else ("-" if x < 0 else "") + "math.huge" if abs(x) == float("inf") else float(x).hex()


def text(s):
    data = s.encode() if isinstance(s, str) else s
    return '"' + "".join(f"\\x{byte:02x}" for byte in data) + '"'


def lua(x):
    if isinstance(x, torch.Tensor):
        dense = x.detach().to_dense()
        values = dense.flatten().tolist()
        return (f'{{ tensor = "{str(x.dtype)[6:]}", shape = {{ {", ".join(map(str, x.shape))} }}, strides = {{ {", ".join(map(str, dense.stride()))} }}, '
                f'grad = {str(x.requires_grad).lower()}, values = {{ {", ".join(number(v) for v in values)} }} }}')
    if x is None:
        return "nil"
    if isinstance(x, (numpy.float64, numpy.int64)):
        return number(x.item())
    if isinstance(x, (bool, int, float)):
        return number(x)
    if isinstance(x, (str, bytes)):
        return text(x)
    if isinstance(x, dict):
        return "{ " + ", ".join(f"[{lua(key)}] = {lua(value)}" for key, value in x.items()) + " }"
    if isinstance(x, (list, tuple, set)):
        more = f", n = {len(x)}" if any(v is None for v in x) else ""
        return "{ " + ", ".join(lua(v) for v in x) + more + " }"
    if isinstance(x, torch.dtype):
        return "tide." + str(x)[6:]
    return text(str(x))


def save(name, value, **options):
    torch.save(value, os.path.join(FOLDER, name), **options)


def turn_bytes(name, to):
    """The archive as a machine of the other order of bytes writes it; torch reads the same of both."""
    with zipfile.ZipFile(os.path.join(FOLDER, name)) as old, zipfile.ZipFile(os.path.join(FOLDER, to), "w") as new:
        for entry in old.infolist():
            data = old.read(entry)
            if entry.filename.endswith("/byteorder"):
                data = b"big"
            elif "/data/" in entry.filename:
                data = numpy.frombuffer(data, "<f4").astype(">f4").tobytes()
            new.writestr(entry.filename, data)
    assert (torch.load(os.path.join(FOLDER, to))["w"] == torch.load(os.path.join(FOLDER, name))["w"]).all()


def main():
    os.makedirs(FOLDER, exist_ok=True)
    torch.serialization.set_crc32_options(True)
    save("archive.pt", contents())
    save("archive_5.pt", contents(), pickle_protocol=5)
    save("stream.pt", contents(), _use_new_zipfile_serialization=False)
    save("stream_4.pt", contents(), _use_new_zipfile_serialization=False, pickle_protocol=4)
    save("foreign.pt", foreign())
    save("foreign_stream.pt", foreign(), _use_new_zipfile_serialization=False)
    save("module.pt", torch.nn.Linear(2, 1))
    save("small.pt", {"w": torch.tensor([[1.0, 2.0], [3.0, 4.0]]).t(), "n": 3})
    save("small_stream.pt", {"w": torch.tensor([[1.0, 2.0], [3.0, 4.0]]).t(), "n": 3}, _use_new_zipfile_serialization=False)
    turn_bytes("small.pt", "small_big.pt")
    net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU(), torch.nn.Sequential(torch.nn.Linear(3, 1)))
    x = torch.tensor([[0.5, -1.0], [2.0, 1.0]])
    save("net.pt", net.state_dict())
    with open(os.path.join(FOLDER, "values.lua"), "w", encoding="utf-8") as out:
        out.write("-- Written by tests/golden/torch_files.py.\nlocal tide = tide\nreturn {\n")
        out.write(f"    contents = {lua(contents())},\n    left = {lua(LEFT)},\n    order = {lua(list(contents()['model']))},\n")
        out.write(f"    net = {{ x = {lua(x)}, y = {lua(net(x))} }},\n}}\n")


main()
