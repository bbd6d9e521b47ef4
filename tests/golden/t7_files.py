"""Writes data/t7: what Torch7's torch.save writes by its File.lua, in both forms, for tests/lua/files/test_t7.lua. Torch7 itself
is gone; where the package torchfile (PyPI) is there, it reads the binary file and must find the same. The test needs none.

    python3 tests/golden/t7_files.py
"""
import os
import struct

import numpy

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data", "t7")
CLASSES = {"u1": "Byte", "i1": "Char", "i2": "Short", "i4": "Int", "i8": "Long", "f2": "Half", "f4": "Float", "f8": "Double"}


class Function:
    def __init__(self, code, upvalues):
        self.code, self.upvalues = code, upvalues


class Object:
    def __init__(self, name, fields):
        self.name, self.fields = name, fields


class Tensor:
    """A view of a storage, which is a row of numpy's."""

    def __init__(self, storage, offset, shape, strides, cuda=False):
        self.storage, self.offset, self.shape, self.strides, self.cuda = storage, offset, shape, strides, cuda


class Binary:
    def __init__(self):
        self.out = b""

    def int(self, n):
        self.out += struct.pack("<i", n)

    def long(self, *n):
        self.out += struct.pack(f"<{len(n)}q", *n)

    def double(self, x):
        self.out += struct.pack("<d", x)

    def bytes(self, data):
        self.out += data

    def elements(self, x):
        self.out += x.astype("<" + x.dtype.str[1:]).tobytes()


class Ascii(Binary):
    def int(self, n):
        self.out += b"%d\n" % n

    def long(self, *n):
        self.out += " ".join(map(str, n)).encode() + b"\n" if n else b""

    def double(self, x):
        self.out += b"%.17g\n" % x

    def bytes(self, data):
        self.out += data + (b"\n" if data else b"")

    def elements(self, x):
        if x.dtype.itemsize == 1:
            self.bytes(x.tobytes())
        elif len(x):
            self.out += " ".join("%.17g" % v if x.dtype.kind == "f" else str(v) for v in x.tolist()).encode() + b"\n"


class Writer:
    def __init__(self, form):
        self.form, self.seen, self.kept = form, {}, []

    def text(self, text):
        data = text.encode() if isinstance(text, str) else text
        self.form.int(len(data))
        self.form.bytes(data)

    def first(self, x):
        """Writes its number; is it the first time?"""
        known = id(x) in self.seen
        self.seen.setdefault(id(x), len(self.seen) + 1)
        self.kept.append(x)
        self.form.int(self.seen[id(x)])
        return not known

    def write(self, x):
        if x is None:
            self.form.int(0)
        elif isinstance(x, bool):
            self.form.int(5)
            self.form.int(int(x))
        elif isinstance(x, (int, float)):
            self.form.int(1)
            self.form.double(float(x))
        elif isinstance(x, (str, bytes)):
            self.form.int(2)
            self.text(x)
        elif isinstance(x, dict):
            self.form.int(3)
            if self.first(x):
                self.form.int(len(x))
                for key, value in x.items():
                    self.write(key)
                    self.write(value)
        elif isinstance(x, Function):
            self.form.int(8)
            if self.first(x):
                self.text(x.code)
                self.write(x.upvalues)
        else:
            self.form.int(4)
            if self.first(x):
                self.object(x)

    def object(self, x):
        self.text("V 1")
        if isinstance(x, Object):
            self.text(x.name)
            self.write(x.fields)
        elif isinstance(x, Tensor):
            name = CLASSES[x.storage.dtype.str[1:]]
            self.text("torch.CudaTensor" if x.cuda else f"torch.{name}Tensor")
            self.form.int(len(x.shape))
            self.form.long(*x.shape)
            self.form.long(*x.strides)
            self.form.long(x.offset + 1)
            self.write(x.storage if len(x.shape) else None)
        else:
            self.text(f"torch.{CLASSES[x.dtype.str[1:]]}Storage")
            self.form.long(len(x))
            self.form.elements(x)


def listed(*items):
    return {k + 1: item for k, item in enumerate(items)}


def contents():
    row = numpy.arange(12, dtype="f4")
    shared = {"x": 1}
    tensors = {name: Tensor(numpy.array([1, 2, 3, 100, 5, 6]).astype(code), 0, (2, 3), (3, 1)) for code, name in CLASSES.items()}
    return {
        "number": 7, "half": 0.5, "big": 1e300, "text": "gr\u00f6\u00dfe\nline", "empty": "", "yes": True, "no": False, -2.5: "key", 0: "zero", True: "truth",
        "list": listed(1, "two", listed(3.25), {}), "first": shared, "again": shared, "tensors": tensors,
        "grid": Tensor(row, 0, (3, 4), (4, 1)), "turned": Tensor(row, 0, (4, 3), (1, 4)), "row": Tensor(row, 4, (4,), (1,)), "storage": row,
        "nothing": Tensor(numpy.zeros(0, "f4"), 0, (), ()), "cuda": Tensor(numpy.ones(2, "f4"), 0, (2,), (1,), cuda=True),
        "layer": Object("nn.Linear", {"weight": Tensor(row, 0, (2, 2), (2, 1)), "train": False}),
        "fn": Function(b"\x1bLJ\x01\0code", listed({"name": "up", "value": {"kept": 9}})),
    }


def write(name, form, value):
    Writer(form).write(value)
    with open(os.path.join(FOLDER, name), "wb") as out:
        out.write(form.out)


def check(path):
    try:
        import torchfile
    except ImportError:
        return print("torchfile is not there: not compared")
    torchfile.type_handlers.setdefault(b"torch.HalfTensor", None)
    got = torchfile.load(path, utf8_decode_strings=True)
    assert got["number"] == 7 and got["text"] == "gr\u00f6\u00dfe\nline" and got["list"][1] == "two" and got["first"] is got["again"]
    assert (got["turned"] == numpy.arange(12).reshape(3, 4).T).all() and (got["row"] == [4, 5, 6, 7]).all()
    assert (got["tensors"]["Char"] == [[1, 2, 3], [100, 5, 6]]).all() and (got["layer"]["weight"] == [[0, 1], [2, 3]]).all()


def main():
    os.makedirs(FOLDER, exist_ok=True)
    write("table.t7", Binary(), contents())
    write("table_ascii.t7", Ascii(), contents())
    write("tensor.t7", Binary(), contents()["turned"])
    # the reader that is compared with has no halves
    value = contents()
    del value["tensors"]["Half"]
    write("compared.t7", Binary(), value)
    check(os.path.join(FOLDER, "compared.t7"))
    os.remove(os.path.join(FOLDER, "compared.t7"))


main()
