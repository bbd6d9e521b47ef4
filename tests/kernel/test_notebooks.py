#!/usr/bin/python3
"""Executes every notebook of the repository with the kernel under test, as `jupyter nbconvert` does; the one that needs a package
of data has a script of its own (test_fashion_mnist.py)."""
import glob
import json
import os
import re
import shutil
import unittest
import unittest.mock

import harness  # installs the kernel before Jupyter looks for kernelspecs

harness.need("nbformat", "nbclient")

import nbformat  # noqa: E402  (known to be there)
from nbclient import NotebookClient  # noqa: E402

NOTEBOOKS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "notebooks")


def printed(cell):
    return "".join(output["text"] for output in cell["outputs"] if output["output_type"] == "stream")


class Notebooks(unittest.TestCase):
    def execute(self, name, **sources):
        """The executed notebook; sources: what stands in cells instead, by their ids."""
        path = os.path.join(NOTEBOOKS, name)
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
        for cell in notebook["cells"]:
            cell["source"] = sources.get(cell["id"], cell["source"])
        resources = {"metadata": {"path": NOTEBOOKS}}
        NotebookClient(notebook, timeout=harness.TIMEOUT * 4, kernel_name="tide", resources=resources).execute()
        return notebook

    def test_all_are_executed_here(self):
        found = {os.path.basename(path) for path in glob.glob(NOTEBOOKS + "/*.ipynb")}
        known = {name[len("test_"):] + ".ipynb" for name in dir(self) if name.startswith("test_")} | {"fashion_mnist.ipynb"}
        self.assertEqual(found - known, set(), "write a test for the new notebook")

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
        accuracy = {name: float(re.search(r"test accuracy (0\.\d{4})", printed(cells[name])).group(1)) for name in ("network", "dynamic", "static", "trained")}
        self.assertGreater(accuracy["network"], 0.94)
        for name in ("dynamic", "static", "trained"):
            self.assertGreater(accuracy[name], accuracy["network"] - 0.01)
        self.assertEqual(printed(cells["proof"]).count("unsafe_pairs"), 3)
        shown = cells["report"]["outputs"][-1]["data"]
        self.assertIn("SNR (dB)", shown["text/plain"])
        self.assertIn("SNR (dB)</text>", shown["text/html"])
        shown = cells["plan"]["outputs"][-1]["data"]
        self.assertRegex(shown["text/plain"], r"points at 95 %, of 360 samples")
        self.assertIn("the plan</text>", shown["text/html"])
        self.assertRegex(printed(cells["strict"]), r"of 360 samples(; \d+ more samples for \+/- 0\.2)?\n$")  # of floats alone nothing is lost
        self.assertIn("loss asked for", cells["strict"]["outputs"][-1]["data"]["text/plain"])
        self.assertRegex(printed(cells["embeddings"]), r"72000 bytes in place of 256000[\s\S]*36000 bytes in place of 256000")

    def cells(self, name, **sources):
        return {cell["id"]: cell for cell in self.execute(name, **sources)["cells"]}

    def test_low_precision(self):
        cells = self.cells("low_precision.ipynb")
        self.assertIn("float16   16 bits   largest 6.55e+04", printed(cells["limits"]))
        self.assertRegex(printed(cells["holes"]), r"2\.0480e\+03,\s+inf, 0\.0000e\+00\]\nfloat16")
        self.assertEqual(printed(cells["sums"]), "by a loop\t2048.0\nby sum\t5000.0\n")
        errors = [float(text) for text in re.findall(r"error (\S+)", printed(cells["products"]))]
        self.assertTrue(errors[0] < 1e-5 < errors[2] < errors[1] < 0.05, errors)
        kept = [float(text) for text in re.findall(r"(\S+) %", printed(cells["small"]))]
        self.assertTrue(kept[0] < 60 and kept[1] > 99 and kept[2] > 99, kept)
        self.assertIn("<svg", json.dumps(cells["error"]["outputs"][-1]["data"]))

    def test_mixed_precision(self):
        cells = self.cells("mixed_precision.ipynb")
        self.assertRegex(printed(cells["which"]), r"matmul \ttide.bfloat16\n(.*\n){2}loss   \ttide.float32\n(.*\n)*outside\ttide.float32\n$")
        accuracies = [float(text) for text in re.findall(r"test accuracy (\S+)", printed(cells["train"]))]
        self.assertEqual(len(accuracies), 3)
        self.assertGreater(min(accuracies), 0.9)
        self.assertIn("step 6: scale   16384, weight 1.00\nstep 7: scale   16384, weight 0.70", printed(cells["scaler"]))

    def test_channels_last(self):
        cells = self.cells("channels_last.ipynb")
        self.assertIn("12 4 2 1\t   \t12 1 6 3", printed(cells["strides"]))
        self.assertIn("<svg", json.dumps(cells["picture"]["outputs"][-1]["data"]))
        self.assertEqual(len(re.findall(r" channels_last\n", printed(cells["stays"]))), 7, "all layers keep the order")
        self.assertLess(float(re.search(r"difference (\S+)", printed(cells["same"])).group(1)), 1e-5)
        self.assertIn("channels_last", cells["times"]["outputs"][-1]["data"]["text/plain"])

    @unittest.skipUnless(shutil.which("espeak-ng"), "no espeak-ng")
    def test_speech(self):
        cells = self.cells("speech.ipynb", steps="TACOTRON_STEPS, WAVEGLOW_STEPS = 12, 6")
        self.assertEqual(json.dumps(cells["data"]["outputs"]).count("data:audio/wav;base64"), 6)
        for name in ("tacotron", "waveglow"):
            first, last = re.search(r"loss (\S+), then (\S+)\n", printed(cells[name])).groups()
            self.assertLess(float(last), float(first), name)
        self.assertLess(float(re.search(r"furthest apart: (\S+)", printed(cells["inverse"])).group(1)), 1e-4)
        self.assertEqual(json.dumps(cells["speak"]["outputs"]).count("data:audio/wav;base64"), 7)
        self.assertIn("<svg", json.dumps(cells["attention"]["outputs"][-1]["data"]))

    def test_benchmarking(self):
        cells = self.cells("benchmarking.ipynb")
        for name in ("timeit", "cell"):
            self.assertRegex(printed(cells[name]), r"per loop \(mean ± std. dev. of 7 runs")
        self.assertIn("1000000", cells["compare"]["outputs"][-1]["data"]["text/plain"])
        self.assertIn("<svg", json.dumps(cells["curve"]["outputs"][-1]["data"]))
        self.assertIn("FLOP/s", printed(cells["rates"]))
        self.assertIn("2 threads", cells["threads"]["outputs"][-1]["data"]["text/plain"])

    def test_profiling(self):
        cells = self.cells("profiling.ipynb")
        self.assertIn("conv2d", cells["step"]["outputs"][-1]["data"]["text/plain"])
        self.assertIn("text/html", cells["timeline"]["outputs"][-1]["data"])
        self.assertIn("In[1]:8", printed(cells["events"]))
        # Whether the zeros are worth a word depends on their share of the time, which a sanitizer or a busy machine makes small.
        self.assertRegex(cells["advice"]["outputs"][-1]["data"]["text/plain"],
                         "40 × zeros of the same 8 × 1 × 32 × 32 float32|nothing that could be better takes 5 % of the time")
        self.assertGreater(int(re.search(r"(\d+) entries", printed(cells["export"])).group(1)), 100)

    def test_data(self):
        cells = self.cells("data.ipynb")
        lines = [line.split(": ", 1)[1] for line in printed(cells["loader"]).splitlines()]
        self.assertEqual(len(lines), 3)
        self.assertEqual(len(set(lines)), 1, "the same batches with any number of workers")
        self.assertIn("distort", printed(cells["slow"]))
        self.assertIn("the same to the end: true", printed(cells["state"]))
        self.assertEqual(printed(cells["broken"]), "1434 samples, skipped: 3\n")

    def test_many_devices(self):
        leaks = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"  # Open MPI never frees what its components hold
        with unittest.mock.patch.dict(os.environ, {"ASAN_OPTIONS": leaks.lstrip(":")}):
            cells = self.cells("many_devices.ipynb")
        self.assertIn("stage 3: a b A c B d C e D f E F   graphs kept: 2\nstage 4: a A b B c C d D e E f F   graphs kept: 1\n"
                      "the same gradients: true\n", printed(cells["stages"]))
        engines = [mpi for mpi in ("openmpi", "mpich")
                   if shutil.which(f"mpirun.{mpi}") and os.path.exists(os.path.join(os.path.dirname(harness.KERNEL), f"libtide_mpi_{mpi}.so"))]
        if not engines:
            self.assertIn("no job can run here: it needs an MPI", printed(cells["run"]))
            for name in ("train", "timeline", "compress", "kill"):
                self.assertIn("no job can run here", printed(cells[name]))
            return
        self.assertEqual(printed(cells["run"]), "two ranks can run\n")
        ranks = re.findall(r"rank (\d): test accuracy (\S+), sum of \|weights\| (\S+)", printed(cells["train"]))
        self.assertEqual([rank for rank, _, _ in ranks], ["0", "1"])
        self.assertEqual(ranks[0][1:], ranks[1][1:], "the same weights")
        self.assertGreater(float(ranks[0][1]), 0.9)
        self.assertRegex(printed(cells["train"]), r"all_reduce bucket 2: 7\.weight +4 +3\.21 MB ")
        picture = json.dumps(cells["timeline"]["outputs"][-1]["data"]["image/svg+xml"])
        for row in ("rank 0 script", "rank 0 transfers", "rank 1 script", "rank 1 transfers"):
            self.assertIn(row, picture)
        sent = dict(re.findall(r"(\w+) +(\d+) kB a step", printed(cells["compress"])))
        self.assertEqual([sent["none"], sent["fp16"], sent["bf16"]], ["3228", "1614", "1614"])
        self.assertLess(int(sent["powersgd"]), 100)
        self.assertRegex(printed(cells["kill"]), r"rank 0: the job ends: rank 1 is gone: .*killed by signal 9[^\n]*\n(.*\n)*tide-run ended with 113\n$")

    def test_kept_outputs_are_of_a_whole_run(self):
        for name in ("foreach_timeline", "eager_to_script", "quantization", "low_precision", "mixed_precision", "channels_last", "benchmarking",
                     "profiling", "data", "many_devices"):
            notebook = nbformat.read(os.path.join(NOTEBOOKS, name + ".ipynb"), as_version=4)
            cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
            self.assertEqual([cell["execution_count"] for cell in cells], list(range(1, len(cells) + 1)), name)


if __name__ == "__main__":
    unittest.main()
