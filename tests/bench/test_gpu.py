"""test_gpu.py: the scripts for a machine with a CUDA device, where there is none: what they say, what they make of
measurements and of the compiler's words, and that the benchmarks run on the played device."""
import importlib.machinery
import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest

TIDE, BUILD, SOURCE = (os.environ[name] for name in ("TIDE", "TIDE_BUILD", "TIDE_SOURCE"))
BENCH = os.path.join(SOURCE, "tests", "bench")
PLAYED = os.path.join(BUILD, "tide_cuda_played.so")


def load(name):
    loader = importlib.machinery.SourceFileLoader(name, os.path.join(BENCH, name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


def run(*command, **environment):
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})


class Absence(unittest.TestCase):
    def check_absent(self, result):
        self.assertEqual((result.returncode, result.stdout), (2, ""), result.stderr)
        self.assertRegex(result.stderr, r"\A(tide|compare): no CUDA device here \(.+\)\n\Z")

    def test_the_device_is_told_or_its_absence_in_a_line(self):
        result = run(sys.executable, os.path.join(SOURCE, "tests", "cuda_device.py"))
        if result.returncode == 0:
            self.assertRegex(result.stdout, r"\A.+\nsm_\d+\ndriver .+\n\Z")
        else:
            self.check_absent(result)

    def test_run_ends_with_2(self):
        if run(sys.executable, os.path.join(SOURCE, "tests", "cuda_device.py")).returncode == 0:
            self.skipTest("there is a device")
        self.check_absent(run("bash", os.path.join(SOURCE, "tests", "run"), "--cuda"))

    def test_compare_ends_with_2(self):
        self.check_absent(run(sys.executable, os.path.join(BENCH, "compare"), "--cuda", "--tiny",
                              TIDE_CUDA_MODULE="/nowhere/libtide_cuda.so"))

    def test_ptxas_names_the_compiler_that_is_missing(self):
        result = run(sys.executable, os.path.join(BENCH, "ptxas"), NVCC="/nowhere/nvcc")
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertEqual(result.stderr, "ptxas: no CUDA compiler: '/nowhere/nvcc' is not there (NVCC names another)\n")


class Words(unittest.TestCase):
    def test_ptxas_reads_what_a_kernel_takes(self):
        kernels = load("ptxas").read("""\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z1av' for 'sm_90'
ptxas info    : Function properties for _Z1av
    16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers, 16 bytes cumulative stack size, 1024 bytes smem
ptxas info    : Compiling entry function '_Z1bv' for 'sm_90'
ptxas info    : Function properties for _Z1bv
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 255 registers, used 0 barriers
""")
        self.assertEqual([(k["name"], k["stack"], k["spills"], k["registers"], k["shared"]) for k in kernels],
                         [("_Z1av", 16, 20, 40, 1024), ("_Z1bv", 0, 0, 255, 0)])
        self.assertEqual(max(kernels, key=load("ptxas").badness)["name"], "_Z1av")

    def test_goals_are_reached_by_the_worst_case(self):
        def line(seconds, **facts):
            return {"median_s": seconds, **facts}

        ours = {"matmul_bf16_1024": line(1.0), "matmul_bf16_8192": line(2.0), "adam_resnet50": line(1.0),
                "digits_graph": line(1.0), "copy_f32_1e8": line(1.0, bytes=8), "sum_f32_1e8": line(1.0, bytes=4)}
        theirs = {"matmul_bf16_1024": line(2.0), "matmul_bf16_8192": line(1.5), "adam_resnet50": line(1.0),
                  "adam_loop_resnet50": line(6.0), "digits_step": line(4.0), "copy_f32_1e8": line(0.5, bytes=8)}
        for name, case in ours.items():
            case["case"] = name
        told = {text[:28].strip(): text.split()[-1] + " " + text.split()[-3] for text in load("compare").goals(ours, theirs)}
        self.assertEqual(told["matmul bf16"], "MISSED 0.75x")
        self.assertEqual(told["Adam, PyTorch fused"], "reached 1.00x")
        self.assertEqual(told["Adam, PyTorch's loop"], "reached 6.00x")
        self.assertEqual(told["digits step as a graph"], "MISSED 4.00x")
        self.assertEqual(told["sum_f32_1e8, of copy"], "MISSED 0.25x")


@unittest.skipUnless(os.path.exists(PLAYED), "no device is played in this build")
class Played(unittest.TestCase):
    def test_the_benchmarks_run(self):
        cases = ("matmul", "int_mm", "copy_f32", "sum_bf16", "adam", "chain", "digits_graph")
        result = run(sys.executable, os.path.join(BENCH, "compare"), "--cuda", "--tiny", *cases,
                     TIDE_CUDA_MODULE=PLAYED, PYTHON="/bin/false")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        head, torch, tiny, names, *lines = result.stdout.splitlines()
        self.assertRegex(head, r"^# tests/bench/compare --cuda --tiny matmul .*, \d+-\d+-\d+: Played Device, compute "
                               r"capability \d\.\d; .+\.$")
        self.assertTrue(torch.startswith("# No PyTorch."), torch)
        self.assertTrue(tiny.startswith("# Tiny sizes"), tiny)
        found = [line.split()[0] for line in lines if line and not line.startswith(("#", "goal", "copy_f32_1e8, of", "sum_bf16_1e8,"))]
        self.assertEqual(found, [*(f"matmul_{kind}_{n}" for kind in ("bf16", "f16", "tf32", "f32") for n in (16, 24)),
                                 *(f"int_mm_{n}{lies}" for n in (24, 32) for lies in ("", "_rows")),
                                 "copy_f32_1e8", "sum_bf16_1e8", "adam_resnet50", "chain_1000_adds", "digits_graph"])
        self.assertRegex(lines[0], r"^matmul_bf16_16 +\S+ [mµn]?s +\S+ TFLOP/s$")

    def test_all_that_a_device_is_asked_for_runs_and_failures_are_told(self):
        script = os.path.join(SOURCE, "tests", "device", "run")
        with tempfile.TemporaryDirectory() as out:
            def device(*arguments):
                return run(sys.executable, script, "--tiny", "--out=" + out, *arguments, TIDE_CUDA_MODULE=PLAYED,
                           PYTHON=sys.executable)

            result = device("--only=once|start_tide|timelines", "smoke", "race", "pictures")
            self.assertEqual((result.returncode, result.stderr), (0, ""), result.stdout)
            self.assertRegex(result.stdout, r"(?m)^once +\d+\.\d s  ok\n---- smoke: \d+ s\n(.*\n)*3 of 3 jobs passed$")
            with open(os.path.join(out, "loop.html"), encoding="utf-8") as page:
                self.assertIn("td_dense_kernel", page.read())
            # the module without NVIDIA's libraries does not use them
            result = device("--only=libraries", "smoke")
            self.assertEqual(result.returncode, 1)
            self.assertRegex(result.stdout, r"libraries .* FAILED \(1\)\n    FAILED cuBLASLt_multiplies\n")
            self.assertTrue(result.stdout.endswith("0 of 1 jobs passed; failed: libraries\n"), result.stdout)
            self.assertEqual(device("--only=(", "smoke").returncode, 2)
            self.assertEqual(device("smok").returncode, 2)

    def test_unknown_options_are_refused(self):
        result = run(sys.executable, os.path.join(BENCH, "compare"), "--cuda", "--small", TIDE_CUDA_MODULE=PLAYED)
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertIn("unknown option '--small'", result.stderr)


if __name__ == "__main__":
    unittest.main()
