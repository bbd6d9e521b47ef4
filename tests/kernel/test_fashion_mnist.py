#!/usr/bin/python3
"""Executes notebooks/fashion_mnist.ipynb, where Debian's package dataset-fashion-mnist is installed: it trains a minute on two
quiet cores, and for a sanitizer or an emulator much too long."""
import os
import re
import unittest

import harness  # installs the kernel before Jupyter looks for kernelspecs

harness.need("nbformat", "nbclient")

import nbformat  # noqa: E402  (known to be there)
from nbclient import NotebookClient  # noqa: E402

NOTEBOOKS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "notebooks")
DATA = "/usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz"
if not os.path.exists(DATA):
    print("skipped: no Fashion-MNIST here: apt install dataset-fashion-mnist")
    raise SystemExit(harness.SKIPPED)
if os.environ.get("TIDE_SANITIZED"):
    print("skipped: a sanitizer would train for half an hour")
    raise SystemExit(harness.SKIPPED)


def read():
    notebook = nbformat.read(os.path.join(NOTEBOOKS, "fashion_mnist.ipynb"), as_version=4)
    nbformat.validate(notebook)
    return notebook


def check(self, notebook):
    """What cells show, as they were kept or as they come now."""
    cells = {cell["id"]: cell["outputs"] for cell in notebook["cells"] if cell["cell_type"] == "code"}

    def printed(name):
        return "".join(output["text"] for output in cells[name] if output["output_type"] == "stream")

    accuracy = re.fullmatch(r"test accuracy (0\.\d{4})\n", printed("accuracy"))
    self.assertTrue(accuracy, printed("accuracy"))
    self.assertGreaterEqual(float(accuracy.group(1)), 0.90)
    self.assertEqual(printed("twice"), "the same bits\n")
    self.assertIn("60000\t(60000, 1, 28, 28)\tT-shirt/top", printed("load"))
    self.assertEqual(len(re.findall(" taken for ", printed("wrong"))), 8)
    for name in ("load", "train", "confusion", "wrong"):
        self.assertTrue({"image/png", "image/svg+xml"} & set(cells[name][-1]["data"]), name)


class FashionMnist(unittest.TestCase):
    def test_it_reads_nine_of_ten_pictures(self):
        notebook = read()
        NotebookClient(notebook, timeout=1500, kernel_name="tide", resources={"metadata": {"path": NOTEBOOKS}}).execute()
        check(self, notebook)

    def test_kept_outputs_are_of_a_whole_run(self):
        notebook = read()
        check(self, notebook)
        counts = [cell["execution_count"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
        self.assertEqual(counts, list(range(1, len(counts) + 1)))


if __name__ == "__main__":
    unittest.main()
