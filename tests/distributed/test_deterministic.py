#!/usr/bin/python3
"""Deterministic mode: 1 to 4 ranks, and a restart with another number of them, come to the same bits of parameters, gradients, running
statistics and losses."""
import os
import subprocess
import sys
import tempfile
import unittest

import job

SCRIPT = os.path.join(job.HERE, "deterministic.lua")


class Deterministic(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.checkpoint = os.path.join(self.folder.name, "checkpoint-")

    def tearDown(self):
        self.folder.cleanup()

    def alone(self, *epochs):
        done = subprocess.run([os.environ["TIDE"], SCRIPT, *map(str, epochs), self.checkpoint], capture_output=True, text=True, timeout=120)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def together(self, mpi, n, *epochs):
        done = job.run(mpi, n, "deterministic.lua", *epochs, self.checkpoint, environment={"TIDE_FLIGHT": self.folder.name})
        self.assertEqual(done.code, 0, done.text)
        return done.text

    def test_every_number_of_ranks_gives_the_bits_of_one_process(self):
        expected = self.alone(1, 2)
        self.assertIn("resnet\t2.norm1.num_batches_tracked\t10\n", expected)
        for mpi in job.MPIS:
            for n in (2, 3, 4):
                with self.subTest(mpi=mpi, n=n):
                    self.assertEqual(self.together(mpi, n, 1, 2), expected)

    def test_a_restart_with_another_number_of_ranks_gives_the_bits_of_one_run(self):
        expected = self.alone(1, 2)
        for before, behind in ((3, 2), (1, 4)):
            with self.subTest(before=before, behind=behind):
                self.together(job.MPIS[0], before, 1, 1)
                self.assertEqual(self.together(job.MPIS[0], behind, 2, 2), expected)


if __name__ == "__main__":
    job.need_mpi()
    unittest.main(argv=[sys.argv[0], "-v"])
