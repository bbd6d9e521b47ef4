"""Writes data/npz.lua: archives as NumPy itself writes them (stored and deflated), and what is in them, for
tests/lua/files/test_npz.lua. Run by a person who has NumPy; the test needs none.

    python3 tests/golden/npz_files.py
"""
import io
import os

import numpy

rng = numpy.random.default_rng(7)
ARRAYS = {
    "plain": rng.normal(size=(3, 4)).astype("<f4"), "wide": rng.normal(size=(2, 1, 3)),
    "turned": numpy.arange(-2, 3, dtype=">i4"), "turned_wide": numpy.array([[0.1, -1e300]], dtype=">f8"),
    "turned_half": numpy.array([1.5, -2], dtype=">f2"), "columns": numpy.asfortranarray(rng.normal(size=(3, 2))),
    "turned_columns": numpy.asfortranarray(numpy.arange(6, dtype=">i2").reshape(2, 3)), "no_dims": numpy.array(2.5),
    "no_elements": numpy.zeros((0, 3), "<f4"), "truth": numpy.array([True, False, True]), "half": numpy.array([65504, -0.5], "<f2"),
    "bytes": numpy.arange(256, dtype="u1"), "small": numpy.array([-128, 127], "i1"), "long": numpy.array([2**63 - 1, -(2**63)]),
    "every other": numpy.arange(10, dtype="<i4")[::2], "a/b.npy": numpy.ones(1), "\u00fc": numpy.ones(2, "<f4"), "": numpy.zeros(1),
    "zeros": numpy.zeros(20000, "<f4"),
}
FOREIGN = {
    "text": numpy.array(["a", "bc"]), "bytes": numpy.array([b"x"]), "object": numpy.array([{}, 1], dtype=object),
    "complex": numpy.ones(1) * 1j, "uint16": numpy.ones(1, "<u2"), "record": numpy.zeros(1, [("a", "<f4")]),
    "date": numpy.array(["2020-01-01"], "datetime64[D]"),
}


def written(save, arrays):
    file = io.BytesIO()
    save(file, **arrays)
    return "".join(f"\\x{byte:02x}" for byte in file.getvalue())


def quote(text):
    return '"' + text + '"'


def main():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data", "npz.lua")
    small = {name: x for name, x in ARRAYS.items() if name != "zeros"}
    with open(path, "w", encoding="utf-8") as out:
        out.write("-- Written by tests/golden/npz_files.py.\nreturn {\n")
        out.write(f"    stored = {quote(written(numpy.savez, small))},\n")
        out.write(f"    deflated = {quote(written(numpy.savez_compressed, ARRAYS))},\n")
        out.write(f"    foreign = {quote(written(numpy.savez, {'plain': ARRAYS['plain'], **FOREIGN}))},\n")
        out.write(f"    nothing = {quote(written(numpy.savez, {}))},\n    arrays = {{\n")
        for name, x in ARRAYS.items():
            values = [f"{v:d}" if x.dtype.kind in "iu" else str(int(v)) if x.dtype.kind == "b" else float(v).hex() for v in x.ravel()]
            # the smallest integer is no literal of Lua's
            values = ["math.mininteger" if v == "-9223372036854775808" else v for v in values]
            if name == "zeros":
                values = []
            out.write(f"        [{quote(name)}] = {{ dtype = {quote(x.dtype.name)}, shape = {{ {', '.join(map(str, x.shape))} }}, "
                      f"values = {{ {', '.join(values)} }} }},\n")
        out.write("    },\n    foreign_names = { " + ", ".join(map(quote, FOREIGN)) + " },\n}\n")


main()
