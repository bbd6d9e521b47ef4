#!/usr/bin/python3
"""DistributedDataParallel on 1 to 4 ranks comes to what one process comes to on the whole batch."""
import os
import subprocess
import sys
import unittest

import job


class Training(unittest.TestCase):
    def test_one_process(self):
        done = subprocess.run([os.environ["TIDE"], os.path.join(job.HERE, "ddp.lua")], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "rank 0: ok\n", ""))

    def test_ranks_train_to_the_curve_of_one_process(self):
        for mpi in job.MPIS:
            for n in (2, 3, 4):
                with self.subTest(mpi=mpi, n=n):
                    done = job.run(mpi, n, "ddp.lua")
                    self.assertEqual(done.code, 0, done.text)
                    for rank in range(n):
                        self.assertIn(f"rank {rank}: ok", done.text)


if __name__ == "__main__":
    job.need_mpi()
    unittest.main(argv=[sys.argv[0], "-v"])
