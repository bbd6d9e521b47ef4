#!/usr/bin/python3
"""Every collective, dtype and operation, uneven sizes, async work, groups and objects, on 2, 3 and 4 ranks."""
import os
import subprocess
import sys
import unittest

import job


class Collectives(unittest.TestCase):
    def test_one_process_needs_no_mpi(self):
        done = subprocess.run([os.environ["TIDE"], os.path.join(job.HERE, "collectives.lua"), "1"],
                              capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("rank 0 of 1: ok, self", done.stdout)

    def test_every_rank_gets_what_arithmetic_says(self):
        for mpi in job.MPIS:
            for n in (2, 3, 4):
                with self.subTest(mpi=mpi, n=n):
                    done = job.run(mpi, n, "collectives.lua", n)
                    self.assertEqual(done.code, 0, done.text)
                    for rank in range(n):
                        self.assertIn(f"rank {rank} of {n}: ok, mpi", done.text)

    def test_an_mpi_that_knows_nothing_of_the_launcher_is_named(self):
        done = subprocess.run([os.environ["TIDE"], "-e", 'tide.distributed.init{backend = "mpi"}'],
                              capture_output=True, text=True, timeout=60,
                              env={**os.environ, "RANK": "1", "WORLD_SIZE": "3", "LOCAL_RANK": "1", "TIDE_MPI": job.MPIS[0]})
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("torchrun started 3 processes, but", done.stderr)
        self.assertIn("knows of 1", done.stderr)


if __name__ == "__main__":
    job.need_mpi()
    unittest.main(argv=[sys.argv[0], "-v"])
