#!/usr/bin/python3
"""Executes every notebook of the repository with the kernel under test, as `jupyter nbconvert` does; the one that needs a package
of data has a script of its own (test_fashion_mnist.py)."""
import glob
import json
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
        self.assertEqual(found, {"digits.ipynb", "eager_to_script.ipynb", "fashion_mnist.ipynb", "foreach_timeline.ipynb", "quantization.ipynb"},
                         "write a test for the new notebook")

    def test_digits(self):
        cells = [cell for cell in self.execute("digits.ipynb")["cells"] if cell["cell_type"] == "code"]
        accuracy = re.fullmatch(r"test accuracy (0\.\d{4})\n", printed(cells[-1]))
        self.assertTrue(accuracy, printed(cells[-1]))
        self.assertGreaterEqual(float(accuracy.group(1)), 0.95)
        model = [cell for cell in cells if cell["source"].rstrip().endswith("model")][0]
        self.assertIn("(1): Conv2d(1, 6, kernel_size=(3, 3)", model["outputs"][-1]["data"]["text/plain"])

    def test_foreach_timeline(self):
        cells = {cell["id"]: cell for cell in self.execute("foreach_timeline.ipynb")["cells"]}
        for name, operators in (("loop", 512), ("foreach", 1)):
            self.assertRegex(printed(cells[name]), r": \d+ µs, kernels at work \d+ % of it\n$")
            shown = cells[name]["outputs"][-1]["data"]
            self.assertIn("kernels", shown["text/plain"])
            page = shown["text/html"]
            data, _ = json.JSONDecoder().raw_decode(page, page.index('{"from"'))
            self.assertEqual(len(data["slices"]), 8 * 2 * operators, "an operator and its kernel each")
        self.assertIn("a loop", cells["times"]["outputs"][-1]["data"]["text/plain"])
        self.assertRegex(printed(cells["gpu"]), r"^there is no GPU here\n$|^a loop on a GPU: \d+ µs, kernels at")

    def test_eager_to_script(self):
        cells = {cell["id"]: cell for cell in self.execute("eager_to_script.ipynb")["cells"]}
        self.assertIn("prim::Loop", printed(cells["define"]))
        self.assertEqual(printed(cells["fused"]).count("aten::mul"), 10)
        self.assertIn("prim::FusionGroup_0(%x.1, %y.1)", printed(cells["fused"]))
        self.assertIn("<svg", json.dumps(cells["draw"]["outputs"][-1]["data"]))
        self.assertRegex(cells["steps"]["outputs"][-1]["data"]["text/plain"], r"unroll: 1 rewrite[\s\S]*fuse: 1 rewrite")
        self.assertIn("scripted", cells["times"]["outputs"][-1]["data"]["text/plain"])
        self.assertIn("5 steps", printed(cells["branches"]))
        self.assertIn("has no place in a script", printed(cells["refused"]))
        self.assertIn("<ScriptFunctionBackward>\t0", printed(cells["gradient"]))
        self.assertIn("a later one serves them", cells["reasons"]["outputs"][-1]["data"]["text/plain"])
        self.assertEqual(printed(cells["saved"]), "true\n")

    def test_quantization(self):
        cells = {cell["id"]: cell for cell in self.execute("quantization.ipynb")["cells"]}
        self.assertIn("quint8 (5) cpu quantized per_tensor_affine scale=0.1 zero_point=10", printed(cells["tensor"]))
        accuracy = {name: float(re.search(r"test accuracy (0\.\d{4})", printed(cells[name])).group(1)) for name in ("network", "dynamic", "static")}
        self.assertGreater(accuracy["network"], 0.94)
        for name in ("dynamic", "static"):
            self.assertGreater(accuracy[name], accuracy["network"] - 0.01)
        self.assertEqual(printed(cells["proof"]).count("unsafe_pairs"), 3)

    def test_kept_outputs_are_of_a_whole_run(self):
        for name in ("foreach_timeline", "eager_to_script", "quantization"):
            notebook = nbformat.read(os.path.join(NOTEBOOKS, name + ".ipynb"), as_version=4)
            cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
            self.assertEqual([cell["execution_count"] for cell in cells], list(range(1, len(cells) + 1)), name)


if __name__ == "__main__":
    unittest.main()
