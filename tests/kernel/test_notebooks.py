#!/usr/bin/python3
"""Executes every notebook of the repository with the kernel under test, as `jupyter nbconvert` does."""
import glob
import os
import re
import unittest

import harness  # installs the kernel before Jupyter looks for kernelspecs

harness.need("nbformat", "nbclient")

import nbformat  # noqa: E402  (known to be there)
from nbclient import NotebookClient  # noqa: E402

NOTEBOOKS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "notebooks")


def printed(cell):
    return "".join(output["text"] for output in cell["outputs"] if output["output_type"] == "stream")


class Notebooks(unittest.TestCase):
    def execute(self, name):
        path = os.path.join(NOTEBOOKS, name)
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
        resources = {"metadata": {"path": NOTEBOOKS}}
        NotebookClient(notebook, timeout=harness.TIMEOUT * 4, kernel_name="tide", resources=resources).execute()
        return notebook

    def test_all_are_executed_here(self):
        found = {os.path.basename(path) for path in glob.glob(NOTEBOOKS + "/*.ipynb")}
        self.assertEqual(found, {"digits.ipynb"}, "write a test for the new notebook")

    def test_digits(self):
        cells = [cell for cell in self.execute("digits.ipynb")["cells"] if cell["cell_type"] == "code"]
        accuracy = re.fullmatch(r"test accuracy (0\.\d{4})\n", printed(cells[-1]))
        self.assertTrue(accuracy, printed(cells[-1]))
        self.assertGreaterEqual(float(accuracy.group(1)), 0.95)
        model = [cell for cell in cells if cell["source"].rstrip().endswith("model")][0]
        self.assertIn("(1): Conv2d(1, 6, kernel_size=(3, 3)", model["outputs"][-1]["data"]["text/plain"])


if __name__ == "__main__":
    unittest.main()
