#!/usr/bin/python3
"""Checkpoints of 1 to 4 ranks, read by other numbers of them; and that kills, full disks and damaged files lose nothing."""
import os
import resource
import subprocess
import sys
import tempfile
import unittest

import job

SCRIPT = os.path.join(job.HERE, "checkpoints.lua")


def limit_files():
    """Files end at 4 KB, as on a disk that is full."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))


def alone(*arguments, **options):
    return subprocess.run([os.environ["TIDE"], SCRIPT, *arguments], capture_output=True, text=True, timeout=60, **options)


class Checkpoints(unittest.TestCase):
    def good(self, done):
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "rank 0: ok\n", ""))

    def test_another_number_of_ranks_reads_it(self):
        for k, mpi in enumerate(job.MPIS):
            with self.subTest(mpi=mpi), tempfile.TemporaryDirectory() as folder:
                for writers, readers in ((2, (3,)),) if k else ((3, (1, 2, 4)), (1, (3,))):
                    for action, counts in (("save", (writers,)), ("load", readers)):
                        for n in counts:
                            done = job.run(mpi, n, "checkpoints.lua", action, folder, 10 + writers)
                            self.assertEqual(done.code, 0, done.text)
                            self.assertEqual(done.text.count(": ok"), n, done.text)
                    # What all ranks have alike is shared out evenly, and what earlier saves have left is gone.
                    sizes = [os.path.getsize(os.path.join(folder, name)) for name in os.listdir(folder) if name.startswith("part-")]
                    self.assertEqual(len(sizes), writers)
                    self.assertLess(max(sizes), 1.3 * min(sizes))

    def test_a_rank_that_is_killed_or_fails_leaves_the_checkpoint_before(self):
        for mpi in job.MPIS[:1]:
            with self.subTest(mpi=mpi), tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "checkpoint")
                self.assertEqual(job.run(mpi, 3, "checkpoints.lua", "save", path, 20).code, 0)
                killed = job.run(mpi, 3, "checkpoints.lua", "save", path, 21, "kill", environment={"TIDE_FLIGHT": folder})
                self.assertEqual(killed.code, 113, killed.text)
                failed = job.run(mpi, 3, "checkpoints.lua", "save", path, 22, "fail")
                self.assertEqual((failed.code, failed.text.count(": ok")), (0, 3), failed.text)
                self.good(alone("load", path, "20"))

    def test_a_full_disk_leaves_the_checkpoint_before(self):
        with tempfile.TemporaryDirectory() as folder:
            self.good(alone("save", folder, "30"))
            before = sorted(os.listdir(folder))
            full = alone("save", folder, "31", preexec_fn=limit_files, restore_signals=False)
            self.assertNotEqual(full.returncode, 0)
            self.assertRegex(full.stderr, r"save: cannot write '.*/part-2-0\.safetensors': File too large")
            self.assertEqual(sorted(os.listdir(folder)), before)
            self.good(alone("load", folder, "30"))

    def test_kills_at_any_time_leave_a_whole_checkpoint(self):
        with tempfile.TemporaryDirectory() as folder:
            self.good(alone("save", folder))
            for delay in range(3):
                with subprocess.Popen([os.environ["TIDE"], SCRIPT, "repeat", folder, str(1 + 100 * delay)], stdout=subprocess.PIPE, text=True) as child:
                    child.stdout.readline()
                    for _ in range(5 * delay):
                        child.stdout.readline()
                    child.kill()
                self.good(alone("load", folder))

    def test_damage_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            self.good(alone("save", folder))
            path = os.path.join(folder, "part-1-0.safetensors")
            with open(path, "r+b") as file:
                file.seek(-1, os.SEEK_END)
                last = file.read(1)
                file.seek(-1, os.SEEK_END)
                file.write(bytes([last[0] ^ 1]))
            damaged = alone("load", folder)
            self.assertRegex(damaged.stderr, r"the elements of '.*' are not those that were saved")
            os.remove(path)
            self.assertRegex(alone("load", folder).stderr, r"part-1-0\.safetensors': No such file or directory")


if __name__ == "__main__":
    job.need_mpi()
    unittest.main(argv=[sys.argv[0], "-v"])
