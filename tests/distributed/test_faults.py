#!/usr/bin/python3
"""One rank does something wrong: all others end soon, with the true reason, a status of their own, and a flight record."""
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

import job

TIMEOUT = 2
# Fault, what every rank that is left prints, and which of three ranks are left.
FAULTS = [
    ("kill", r"rank 2 is gone: rank 2 \(\S+, \d+\) left \d\.\d s ago: killed by signal 9 \(Killed\); "
             r"rank 0 \(\S+, \d+\) waits in all_reduce #\d+, .*faults\.lua:\d+, for \d", (0, 1)),
    ("kill_root", r"rank 0 is gone: rank 0 \(\S+, \d+\) left \d\.\d s ago: killed by signal 9 \(Killed\)", (1, 2)),
    ("stop", r"a collective has waited for 2\.0 s, the timeout: .*rank 2 \(\S+, \d+\) is stopped \(by a signal", (0, 1)),
    ("exception", r"rank 2 is gone: rank 2 \(\S+, \d+\) left \d\.\d s ago: .*faults\.lua:\d+: no such sample", (0, 1)),
    ("hang", r"the timeout: rank 2 \(\S+, \d+\) is in no collective since all_reduce #40, .*faults\.lua:12, \d", (0, 1, 2)),
    ("shape", r"ranks differ in collective #41: .*rank 2 is in all_reduce of 1001 float32 \(sum\), .*faults\.lua:\d+", (0, 1, 2)),
    ("dtype", r"ranks differ in collective #41: .*rank 2 is in all_reduce of 1000 int32 \(sum\), .*faults\.lua:\d+", (0, 1, 2)),
    ("kind", r"ranks differ in collective #41: .*rank 2 is in broadcast of 1000 float32 \(rank 0\), .*faults\.lua:\d+", (0, 1, 2)),
    ("extra", r"ranks differ in collective #42: .*rank \d is at the end of its script.*; .*rank 2 ", (0, 1, 2)),
    ("exit", r"ranks differ in collective #41: .*rank 2 is at the end of its script", (0, 1, 2)),
]


def meet(mpi, fault, *arguments, timeout=TIMEOUT, enter=(), environment=None):
    """The job, and what its flight records hold: {rank: events}. arguments: of the script, behind the timeout."""
    with tempfile.TemporaryDirectory() as folder:
        done, flights = job.run(mpi, 3, "faults.lua", fault, timeout, *arguments, enter=enter,
                                environment={**(environment or {}), "TIDE_FLIGHT": folder}), {}
        for name in os.listdir(folder):
            if not re.fullmatch(r"tide-flight-rank\d\.json", name):
                continue  # the draft of a rank that mpirun killed meanwhile
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                flights[int(re.fullmatch(r"tide-flight-rank(\d)\.json", name).group(1))] = json.load(file)["traceEvents"]
    return done, flights


class Ends(unittest.TestCase):
    def check(self, done, flights, reason, left):
        self.assertEqual(done.code, 113, done.text)
        self.assertLess(done.seconds, TIMEOUT + 40, done.text)
        for rank in left:
            said = [line for line in done.text.splitlines() if f"tide: rank {rank}: the job ends: " in line]
            self.assertTrue(said and re.search(reason, said[0]), f"rank {rank} said {said} in {done.text}")
            self.assertGreaterEqual(len(flights[rank]), 40)
            self.assertEqual(flights[rank][0]["name"], "all_reduce #1")
            self.assertEqual(flights[rank][0]["pid"], rank)


class Faults(Ends):
    def test_all_others_end_with_the_true_reason(self):
        # The jobs mostly wait: for their timeout, and for each other's last words.
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            met = [(mpi, fault, pool.submit(meet, mpi, fault[0])) for mpi in job.MPIS for fault in FAULTS]
            for mpi, (name, reason, left), future in met:
                with self.subTest(mpi=mpi, fault=name):
                    self.check(*future.result(), reason, left)

    def test_a_stopped_process_ends_when_its_job_is_ended(self):
        script = "local f = io.open('/proc/self/stat') local pid = f:read('n') print(pid) io.stdout:flush() os.execute('kill -STOP ' .. pid)"
        with subprocess.Popen([os.path.join(job.BUILD, "tide-run"), "--supervise", os.environ["TIDE"], "-e", script],
                              stdout=subprocess.PIPE, text=True) as supervisor:
            pid, state = int(supervisor.stdout.readline()), ""
            while state != "T":
                with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                    state = file.read().rpartition(")")[2].split()[0]
            supervisor.terminate()
            self.assertEqual(supervisor.wait(timeout=60), 143)

    def test_a_job_without_a_fault_ends_well(self):
        for mpi in job.MPIS:
            done = job.run(mpi, 3, "faults.lua", "none")
            self.assertEqual(done.code, 0, done.text)


if __name__ == "__main__":
    job.need_mpi()
    unittest.main(argv=[sys.argv[0], "-v"])
