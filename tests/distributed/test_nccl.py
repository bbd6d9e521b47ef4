#!/usr/bin/python3
"""Jobs with backend = "nccl" on devices that the CPU plays: what they compute is what MPI makes of it, and faults end them as there."""
import concurrent.futures
import os
import subprocess
import sys
import tempfile
import unittest

import job
import test_faults

TIMEOUT = 6  # of jobs with a fault: devices that the CPU plays are slow to begin
FAULTS = [(name, reason.replace(r"\),", r"\) on CUDA,").replace(r"2\.0 s", r"6\.\d s"), left) for name, reason, left in test_faults.FAULTS
          if name in ("kill", "stop", "hang", "shape", "exit")]
FAULTS += [("device", r"ranks differ in collective #41: .*rank 2 is in all_reduce of 1000 float32 \(sum\), ", (0, 1, 2))]


class Nccl(test_faults.Ends):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.environment = job.on_played_devices(self.folder.name)

    def tearDown(self):
        self.folder.cleanup()

    def alone(self, *command, environment=None):
        return subprocess.run([os.environ["TIDE"], *command], capture_output=True, text=True, timeout=100, check=False,
                              env={**os.environ, **self.environment, **(environment or {})})

    def ranks(self, mpi, n, *script):
        done = job.run(mpi, n, *script, environment=self.environment)
        self.assertEqual(done.code, 0, done.text)
        for rank in range(n):
            self.assertRegex(done.text, f"rank {rank}( of {n})?: ok")
        return done.text

    def test_one_process_needs_no_mpi(self):
        done = self.alone(os.path.join(job.HERE, "nccl.lua"))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("rank 0 of 1: ok, nccl: NCCL 2.20.3, self: one process", done.stdout)

    def test_every_collective_gives_what_mpi_gives(self):
        for mpi, n in ((job.MPIS[0], 3), (job.MPIS[-1], 2)):
            with self.subTest(mpi=mpi, n=n):
                self.assertIn("nccl: NCCL 2.20.3, mpi: ", self.ranks(mpi, n, "nccl.lua"))
        self.assertEqual(os.listdir(self.folder.name), [], "communicators that were not taken down")

    def test_training_is_what_one_process_makes_of_it(self):
        mpi = job.MPIS[0]
        self.ranks(mpi, 2, "devices.lua", "nccl")
        self.ranks(mpi, 2, "shared_out.lua", "nccl", "cuda")
        alone = self.alone(os.path.join(job.HERE, "nccl_digits.lua"))
        self.assertEqual((alone.returncode, alone.stderr), (0, ""))
        for n in (2, 3):
            bits = [line for line in self.ranks(mpi, n, "nccl_digits.lua").splitlines() if line.startswith("bits")]
            self.assertEqual(bits, [line for line in alone.stdout.splitlines() if line.startswith("bits")])

    def test_faults_end_as_they_do_on_mpi(self):
        mpi = job.MPIS[0]
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            met = [(fault, pool.submit(test_faults.meet, mpi, fault[0], "nccl", "cuda", timeout=TIMEOUT, environment=self.environment)) for fault in FAULTS]
            for (name, reason, left), future in met:
                with self.subTest(fault=name):
                    self.check(*future.result(), reason, left)

    def test_what_the_library_finds_ends_the_job(self):
        done, flights = test_faults.meet(job.MPIS[0], "none", "nccl", "cuda", timeout=TIMEOUT,
                                         environment={**self.environment, "TIDE_PLAYED_NCCL_FAIL": "41"})
        self.check(done, flights, r"the transport of rank \d failed: .*all_reduce: remote process exited or there was a network error", (0, 1, 2))

    def test_what_the_library_finds_is_an_error_where_there_is_one_process(self):
        script = """
            local dist = tide.distributed
            dist.init { backend = 'nccl' }
            local x = tide.ones(3, { device = 'cuda' })
            dist.all_reduce(x)
            print(pcall(function() while true do dist.all_reduce(x) end end))
        """
        done = self.alone("-e", script, environment={"TIDE_PLAYED_NCCL_FAIL": "5"})
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, "^false\t.*all_reduce: remote process exited or there was a network error")

    def test_a_library_that_is_missing_or_another_is_named(self):
        for file, why in (("/nowhere/libnccl.so.2", "No such file"), (os.path.join(job.BUILD, "libtide.so"), "it has no ncclGetVersion")):
            done = self.alone("-e", "tide.distributed.init{backend = 'nccl'}", environment={"TIDE_NCCL": file})
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("init: no NCCL is there: ", done.stderr)
            self.assertIn(why, done.stderr)

    def test_without_nccl_tensors_of_devices_go_by_way_of_the_cpu(self):
        script = "tide.distributed.init{} print(tide.distributed.all_reduce(tide.ones(2, {device = 'cuda'})):tolist()[2], tide.distributed.backend())"
        done = self.alone("-e", script, environment={"TIDE_NCCL": "/nowhere"})
        self.assertEqual((done.stdout, done.stderr), ("1.0\tself: one process\n", ""))


if __name__ == "__main__":
    job.need_mpi()
    if not os.path.exists(job.PLAYED):
        print("skipped: no device that the CPU plays in this build")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], "-v"])
