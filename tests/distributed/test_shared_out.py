#!/usr/bin/python3
"""Optimizer states, split Linears and pipelines on 1 to 4 ranks come to what one process comes to."""
import os
import subprocess
import sys
import unittest

import job


class SharedOut(unittest.TestCase):
    def test_one_process(self):
        done = subprocess.run([os.environ["TIDE"], os.path.join(job.HERE, "shared_out.lua")], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "rank 0: ok\n", ""))

    def test_ranks(self):
        for mpi in job.MPIS:
            for n in (2, 3, 4):
                with self.subTest(mpi=mpi, n=n):
                    done = job.run(mpi, n, "shared_out.lua")
                    self.assertEqual(done.code, 0, done.text)
                    for rank in range(n):
                        self.assertIn(f"rank {rank}: ok", done.text)

    def test_several_devices_a_rank(self):
        if not os.path.exists(job.PLAYED):
            self.skipTest("no device that the CPU plays in this build")
        for mpi in job.MPIS:
            with self.subTest(mpi=mpi):
                done = job.run(mpi, 2, "devices.lua", environment={"TIDE_CUDA_MODULE": job.PLAYED})
                self.assertEqual(done.code, 0, done.text)
                self.assertEqual(done.text.count(": ok"), 2, done.text)


if __name__ == "__main__":
    job.need_mpi()
    unittest.main(argv=[sys.argv[0], "-v"])
