#!/usr/bin/python3
"""What 1 to 3 ranks recorded: transfers as events, one trace for the job, the report; and that the trace is one that viewers
take."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

import job


class Traces(unittest.TestCase):
    def check(self, path, ranks):
        with open(path, encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
        names = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
        self.assertEqual(sorted(names), list(range(ranks)), "a process for each rank")
        for rank, name in names.items():
            self.assertRegex(name, rf"^rank {rank} \(.+\)$")
        labels = [event["args"]["labels"] for event in events if event["name"] == "process_labels"]
        self.assertEqual(sum("clock within" in label for label in labels), ranks - 1, "how well clocks are aligned")
        self.assertGreaterEqual(min(event["ts"] for event in events if "ts" in event), 0)
        arrows = [event["id"] for event in events if event["ph"] == "s"]
        self.assertEqual(len(arrows), len(set(arrows)), "arrows of ranks have ids of their own")
        numbers = {rank: {(event["args"]["group"], event["args"]["number"]): event["name"] for event in events
                          if event.get("cat") == "collective" and "number" in event["args"] and event["pid"] == rank} for rank in names}
        for rank in names:
            self.assertEqual(numbers[rank], numbers[0], "a collective has one number on all ranks")

    def test_one_process(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "trace.json")
            done = subprocess.run([os.environ["TIDE"], os.path.join(job.HERE, "trace.lua"), path], capture_output=True, text=True, timeout=60)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "rank 0: ok\n", ""))
            self.check(path, 1)

    def test_ranks(self):
        for mpi in job.MPIS:
            for n in (2, 3):
                with self.subTest(mpi=mpi, n=n), tempfile.TemporaryDirectory() as folder:
                    path = os.path.join(folder, "trace.json")
                    done = job.run(mpi, n, "trace.lua", path, environment={"TIDE_FLIGHT": folder})
                    self.assertEqual(done.code, 0, done.text)
                    for rank in range(n):
                        self.assertIn(f"rank {rank}: ok", done.text)
                    self.check(path, n)


if __name__ == "__main__":
    job.need_mpi()
    unittest.main(argv=[sys.argv[0], "-v"])
