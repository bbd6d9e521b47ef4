"""Tests whose Python modules are not installed are skipped with one line that names them."""
import os
import re
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
LACKING = """
import runpy, sys
sys.modules.update(dict.fromkeys(sys.argv[2:]))
sys.argv = sys.argv[1:2]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def run_without(script, *modules):
    """Runs a test script in a Python to which these modules do not exist."""
    return subprocess.run(
        [sys.executable, "-B", "-c", LACKING, os.path.join(HERE, script), *modules],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": HERE},
    )


def scripts_with_harness():
    for name in sorted(os.listdir(HERE)):
        if name.endswith(".py") and name != "harness.py":
            with open(os.path.join(HERE, name)) as file:
                if re.search(r"^(import|from) harness\b", file.read(), re.M):
                    yield name


class Missing(unittest.TestCase):
    def check_skips(self, script, *modules):
        with self.subTest(script=script, modules=modules):
            result = run_without(script, *modules)
            self.assertEqual((result.returncode, result.stderr), (77, ""))
            self.assertEqual(result.stdout, f"skipped: this python3 has no {' and no '.join(modules)}\n")

    def test_without_jupyter_client(self):
        scripts = list(scripts_with_harness())
        self.assertIn("test_protocol.py", scripts)
        for script in scripts:
            self.check_skips(script, "jupyter_client")

    def test_commands_run_all_the_same(self):
        result = run_without("test_commands.py", "jupyter_client", "zmq")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("OK (skipped=2)", result.stderr)

    def test_without_what_one_script_needs(self):
        if run_without("harness.py").returncode == 77:
            self.skipTest("there is no jupyter_client either")
        self.check_skips("test_conformance.py", "jupyter_kernel_test")
        self.check_skips("test_notebooks.py", "nbclient")
        self.check_skips("test_notebooks.py", "nbformat", "nbclient")


if __name__ == "__main__":
    unittest.main()
